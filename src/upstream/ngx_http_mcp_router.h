
/*
 * The router: the upstreams of an endpoint in configured order, and the one
 * that serves a message.  Whoever is about to send something asks here.
 */

#ifndef _NGX_HTTP_MCP_ROUTER_H_INCLUDED_
#define _NGX_HTTP_MCP_ROUTER_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


/* upstreams of an endpoint, at most */
#define NGX_HTTP_MCP_UPSTREAMS_MAX  32

/* bytes of a prefix, at most */
#define NGX_HTTP_MCP_PREFIX_MAX     32


/* lives as long as the configuration */

typedef struct {
    ngx_http_mcp_upstream_t  *upstreams;
    ngx_uint_t                n;
} ngx_http_mcp_router_t;


/*
 * The upstream that serves a message of this method (NGX_MCP_METHOD_*); name is
 * that of a tool or prompt, or a URI, decoded, or NULL.  NULL: none.
 */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_select(
    ngx_http_mcp_router_t *router, ngx_uint_t method_code, ngx_str_t *name);

/* the one behind u, or the first if u is NULL; NULL: there is none */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_next(
    ngx_http_mcp_router_t *router, ngx_http_mcp_upstream_t *u);

/* the one with this NAME; NULL: it is not configured (any more) */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_find(
    ngx_http_mcp_router_t *router, ngx_str_t *name);


/* whether names may begin with this prefix and "__" */
ngx_uint_t ngx_http_mcp_prefix_valid(ngx_str_t *prefix);


#endif /* _NGX_HTTP_MCP_ROUTER_H_INCLUDED_ */
