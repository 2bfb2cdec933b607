
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The router: the upstreams of an endpoint in configured order.  It finds the
 * upstream for a message.
 */

#ifndef _NGX_HTTP_MCP_ROUTER_H_INCLUDED_
#define _NGX_HTTP_MCP_ROUTER_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


/* upstreams of an endpoint, at most */
#define NGX_HTTP_MCP_UPSTREAMS_MAX  32

/* bytes of a prefix, at most */
#define NGX_HTTP_MCP_PREFIX_MAX     32


/* the upstreams of an endpoint; they live as long as the configuration */

typedef struct {
    ngx_http_mcp_upstream_t  *upstreams;
    ngx_uint_t                n;
} ngx_http_mcp_router_t;


/*
 * Whether there is only one upstream and it has no prefix: then all messages
 * go to it unchanged.
 */
#define ngx_http_mcp_router_plain(router)                                     \
    ((router)->n == 1 && (router)->upstreams[0].prefix.len == 0)

/*
 * Finds the upstream of the tool or prompt that clients know by this (decoded)
 * name.  NGX_OK: *local is its name at *upstream; NGX_AGAIN: the same, unless
 * the name that clients know is a shortened one (see ngx_mcp_name_local());
 * NGX_DECLINED: no upstream has such a name.
 */
ngx_int_t ngx_http_mcp_router_name(ngx_http_mcp_router_t *router,
    ngx_str_t *name, ngx_http_mcp_upstream_t **upstream, ngx_str_t *local);

/* the upstream after u, or the first one if u is NULL; NULL: no more */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_next(
    ngx_http_mcp_router_t *router, ngx_http_mcp_upstream_t *u);

/* the upstream with this name; NULL: it is not configured (any more) */
ngx_http_mcp_upstream_t *ngx_http_mcp_router_find(
    ngx_http_mcp_router_t *router, ngx_str_t *name);


/* whether this is a valid prefix of names (to which "__" is added) */
ngx_uint_t ngx_http_mcp_prefix_valid(ngx_str_t *prefix);


#endif /* _NGX_HTTP_MCP_ROUTER_H_INCLUDED_ */
