
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Names of tools and prompts where several upstreams stand behind one
 * endpoint: clients see "PREFIX__NAME", upstreams their own names.
 *
 * A name that would be longer than NGX_MCP_NAME_MAX bytes is cut, and ends in
 * "_" and the first 8 hexadecimal digits of the SHA-1 of "PREFIX__NAME".
 * Where there is no prefix, names stay as they are, whatever their length.
 *
 * There is no state; composed texts come from the caller's pool.
 */

#ifndef _NGX_MCP_NAMES_H_INCLUDED_
#define _NGX_MCP_NAMES_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_pages.h"


/* bytes of the longest name that SDKs and models accept */
#define NGX_MCP_NAME_MAX     64

/* the text between the prefix and the name */
#define NGX_MCP_NAME_JOINT   "__"


/*
 * Writes an upstream's name (decoded) as clients see it to dst, which has room
 * for NGX_MCP_NAME_MAX bytes; prefix is not empty, and of 32 bytes at most.
 * Returns the end.
 */
u_char *ngx_mcp_name_expose(u_char *dst, ngx_str_t *prefix, ngx_str_t *name);

/*
 * Finds the upstream's name in the name that a client sent; both are decoded,
 * and *name points into *exposed.  NGX_OK; NGX_AGAIN: *exposed may be a name
 * that was cut, and *name is right only if it was not: the caller compares
 * *exposed with the exposed names of the upstream's list; NGX_DECLINED:
 * *exposed has another prefix, or is longer than any exposed name.
 */
ngx_int_t ngx_mcp_name_local(ngx_str_t *prefix, ngx_str_t *exposed,
    ngx_str_t *name);


/*
 * Turns the raw entry of an upstream's list (NGX_MCP_LIST_*) into one for
 * clients: the name gets the prefix, unless the prefix is empty or the entry
 * is a resource or template, and titles get " (SUFFIX)", unless the suffix is
 * empty.  Other bytes stay as they are; if nothing changes, the entry itself
 * is returned.  data NULL: no memory.
 */
ngx_str_t ngx_mcp_entry_expose(ngx_str_t *entry, ngx_uint_t kind,
    ngx_str_t *prefix, ngx_str_t *suffix, ngx_pool_t *pool);

/*
 * Reads the name of a raw entry (or its URI or template) and the title that
 * clients show, both decoded; empty: the entry has none.  NGX_OK or NGX_ERROR
 * (no memory).
 */
ngx_int_t ngx_mcp_entry_names(ngx_str_t *entry, ngx_uint_t kind,
    ngx_pool_t *pool, ngx_str_t *name, ngx_str_t *title);


#endif /* _NGX_MCP_NAMES_H_INCLUDED_ */
