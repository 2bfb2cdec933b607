
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


/* there is one, whose names stay: all is for it, as it was sent */
#define ngx_http_mcp_router_plain(router)                                     \
    ((router)->n == 1 && (router)->upstreams[0].prefix.len == 0)

/*
 * The upstream of the tool or prompt that clients know by this name (decoded).
 * NGX_OK: *local is its name there; NGX_AGAIN: unless that was cut (see
 * ngx_mcp_name_local()); NGX_DECLINED: nobody has one with such a name.
 */
ngx_int_t ngx_http_mcp_router_name(ngx_http_mcp_router_t *router,
    ngx_str_t *name, ngx_http_mcp_upstream_t **upstream, ngx_str_t *local);

/* the one behind u, or the first if u is NULL; NULL: there is none */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_next(
    ngx_http_mcp_router_t *router, ngx_http_mcp_upstream_t *u);

/* the one with this NAME; NULL: it is not configured (any more) */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_find(
    ngx_http_mcp_router_t *router, ngx_str_t *name);


/* whether names may begin with this prefix and "__" */
ngx_uint_t ngx_http_mcp_prefix_valid(ngx_str_t *prefix);


#endif /* _NGX_HTTP_MCP_ROUTER_H_INCLUDED_ */
