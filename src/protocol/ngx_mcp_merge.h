
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * One list made of the lists of several upstreams, one after the other.  Names
 * get the prefixes of their upstreams.  If clients would see two entries by
 * the same name, only that of the first upstream is kept.  If two upstreams
 * use the same title, the titles get a suffix.  An entry of an upstream
 * without prefix is left out if its name begins with the prefix of another
 * upstream, as calls would go to that upstream.
 *
 * Raw texts must have been accepted by the JSON scan (ngx_mcp_pages_end()).
 */

#ifndef _NGX_MCP_MERGE_H_INCLUDED_
#define _NGX_MCP_MERGE_H_INCLUDED_


#include "ngx_mcp_names.h"


typedef struct {
    ngx_str_t               upstream;     /* name of the upstream */
    ngx_str_t               prefix;       /* prefix of names; empty: names stay
                                             unchanged */
    ngx_str_t               text;         /* a raw array */
    ngx_uint_t              source;       /* the caller's number for the
                                             upstream */

    /* set by ngx_mcp_merge() */
    ngx_uint_t              hidden;       /* number of entries left out */
    ngx_str_t               first;        /* name of the first entry that was
                                             left out */
    ngx_uint_t              first_source; /* source of the other entry with
                                             that name */
} ngx_mcp_merge_part_t;


/* the lists of one kind that are to be merged */

typedef struct {
    ngx_uint_t              kind;         /* NGX_MCP_LIST_* */
    ngx_mcp_merge_part_t   *parts;
    ngx_uint_t              n;
} ngx_mcp_merge_lists_t;


/*
 * An entry of the merged list.  name and local are decoded: the name of a tool
 * or prompt, the URI of a resource, the URI template of a resource template.
 */

typedef struct {
    ngx_str_t               name;         /* as clients see it */
    ngx_str_t               local;        /* as its upstream knows it */
    ngx_uint_t              source;       /* the caller's number for the
                                             upstream */
} ngx_mcp_merge_entry_t;


typedef struct {
    ngx_str_t               text;         /* the merged list, a raw array */
    ngx_uint_t              n;            /* number of entries */

    /* private */
    ngx_mcp_merge_entry_t  *entries;
    uint32_t               *table;        /* hash table: numbers of entries,
                                             from 1 on; 0: a free place */
    ngx_uint_t              mask;         /* number of places minus 1 */
    uint64_t                seed;         /* of the hashes */
} ngx_mcp_merge_t;


/*
 * Merges lists into *m.  The memory of *m is from pool; temp is needed only
 * during the call.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_mcp_merge(ngx_mcp_merge_t *m, ngx_mcp_merge_lists_t *lists,
    ngx_pool_t *pool, ngx_pool_t *temp);

/* finds an entry by the decoded name that clients see; NULL: there is none */
ngx_mcp_merge_entry_t *ngx_mcp_merge_find(ngx_mcp_merge_t *m, ngx_str_t *name);


#endif /* _NGX_MCP_MERGE_H_INCLUDED_ */
