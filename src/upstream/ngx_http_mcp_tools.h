
/*
 * A worker's record of the tools of an upstream: those with arguments that
 * are repeated in headers ("x-mcp-header").  It is read from the upstream's own
 * list, of each tenant, because its location may lead each to another server;
 * of the tenants that were asked for last.
 */

#ifndef _NGX_HTTP_MCP_TOOLS_H_INCLUDED_
#define _NGX_HTTP_MCP_TOOLS_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


typedef struct ngx_http_mcp_tools_s  ngx_http_mcp_tools_t;


/*
 * NGX_OK: *tool is the raw entry of the list, copied to pool, or empty where no
 * header is due; NGX_DECLINED: the list has to be read; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_tools_get(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_str_t *name, ngx_pool_t *pool, ngx_str_t *tool);

/* they are not as they were */
void ngx_http_mcp_tools_forget(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant);


/*
 * Reads a list: a new one, NULL: no memory; a raw result of it, NGX_OK or
 * NGX_ERROR; it is known from now on, or it is left.
 */
ngx_http_mcp_tools_t *ngx_http_mcp_tools_create(ngx_str_t *tenant);
ngx_int_t ngx_http_mcp_tools_add(ngx_http_mcp_tools_t *tools,
    ngx_str_t *result);
void ngx_http_mcp_tools_keep(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_tools_t *tools);
void ngx_http_mcp_tools_free(ngx_http_mcp_tools_t *tools);


#endif /* _NGX_HTTP_MCP_TOOLS_H_INCLUDED_ */
