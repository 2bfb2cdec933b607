
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A worker's record of the tools of an upstream, read from the upstream's list.
 * It has the names of all tools, and the entries of those with arguments that
 * have to be repeated in headers ("x-mcp-header").  Each tenant has a record,
 * because the upstream's location may lead each tenant to another server; the
 * records that were used last are kept.
 */

#ifndef _NGX_HTTP_MCP_TOOLS_H_INCLUDED_
#define _NGX_HTTP_MCP_TOOLS_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


/* pages of a list that are read, at most */
#define NGX_HTTP_MCP_TOOLS_PAGES  64

typedef struct ngx_http_mcp_tools_s  ngx_http_mcp_tools_t;


/*
 * Looks up a tool by its name.  NGX_OK: *tool is its raw entry of the list,
 * copied to pool, or empty if no headers are needed; NGX_DECLINED: the list
 * has to be read; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_tools_get(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_str_t *name, ngx_pool_t *pool, ngx_str_t *tool);

/*
 * Functions that read a list.  create() makes an empty record in a pool of its
 * own; NULL: no memory.  add() adds the tools of one raw result of tools/list;
 * NGX_DECLINED: the result has no list; NGX_ERROR: too many tools, or no
 * memory.  At the end keep() hands the record over to the worker, in place of
 * the old one, or free() frees it.  A record that is not whole does not replace
 * an old one, but delays the next reading of the list.  more: the list has
 * pages that were not read (logged, unless the old record had the same fault).
 */
ngx_http_mcp_tools_t *ngx_http_mcp_tools_create(ngx_str_t *tenant);
ngx_int_t ngx_http_mcp_tools_add(ngx_http_mcp_tools_t *tools,
    ngx_str_t *result);
void ngx_http_mcp_tools_keep(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_tools_t *tools, ngx_uint_t whole, ngx_uint_t more);
void ngx_http_mcp_tools_free(ngx_http_mcp_tools_t *tools);


#endif /* _NGX_HTTP_MCP_TOOLS_H_INCLUDED_ */
