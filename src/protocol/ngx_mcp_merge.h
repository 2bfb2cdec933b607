
/*
 * One list made of the lists of several upstreams, which stand in it one
 * behind the other: names get the prefixes of their upstreams, of entries that
 * are known by the same name the first upstream's stands, and titles that two
 * upstreams use are told apart.  A name without a prefix that begins with that
 * of another upstream is left out, as the other one would be asked for it.
 *
 * Raw texts are those that the scan accepted (ngx_mcp_pages_end()).
 */

#ifndef _NGX_MCP_MERGE_H_INCLUDED_
#define _NGX_MCP_MERGE_H_INCLUDED_


#include "ngx_mcp_names.h"


typedef struct {
    ngx_str_t               upstream;     /* its name */
    ngx_str_t               prefix;       /* or empty: names stay */
    ngx_str_t               text;         /* a raw array */
    ngx_uint_t              source;       /* the caller's number of it */

    /* out */
    ngx_uint_t              hidden;       /* entries that were left out */
    ngx_str_t               first;        /* of these, what it is known by */
    ngx_uint_t              first_source; /* that has another one */
} ngx_mcp_merge_part_t;


/* decoded; in lists of tools and prompts the name, else URI or template */

typedef struct {
    ngx_str_t               name;         /* as clients see it */
    ngx_str_t               local;        /* as the upstream does */
    ngx_uint_t              source;
} ngx_mcp_merge_entry_t;


typedef struct {
    ngx_str_t               text;         /* an array */
    ngx_uint_t              n;            /* its entries */

    ngx_mcp_merge_entry_t  *entries;      /* private */
    uint32_t               *table;
    ngx_uint_t              mask;
    uint64_t                seed;
} ngx_mcp_merge_t;


/*
 * Merges n parts of this kind (NGX_MCP_LIST_*), with spare bytes of room behind
 * the text; *m lasts as long as the pool, temp is needed during the call.
 * NGX_OK, or NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_merge(ngx_mcp_merge_t *m, ngx_uint_t kind,
    ngx_mcp_merge_part_t *parts, ngx_uint_t n, size_t spare, ngx_pool_t *pool,
    ngx_pool_t *temp);

/* the entry that clients know by this name, decoded; NULL: there is none */
ngx_mcp_merge_entry_t *ngx_mcp_merge_find(ngx_mcp_merge_t *m, ngx_str_t *name);


#endif /* _NGX_MCP_MERGE_H_INCLUDED_ */
