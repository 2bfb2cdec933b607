
/*
 * Routes: the upstream that a request is for.  Tools and prompts are known by
 * the prefix of their names.  A resource is at the upstream that listed it or
 * had it last, or has a template that matches; where none of that is known,
 * upstreams are asked one after the other in configured order, until one has
 * it.  So are methods that nobody here
 * knows.
 */

#ifndef _NGX_HTTP_MCP_ROUTE_H_INCLUDED_
#define _NGX_HTTP_MCP_ROUTE_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"


/* lives as long as the request */

typedef struct {
    ngx_http_mcp_upstream_t  *upstream;   /* NULL: nobody has it */
    ngx_str_t                 local;      /* its name there; data NULL: as it
                                             was sent */
    uint32_t                  asked;      /* bits of upstreams, this one too */
    unsigned                  cut:1;      /* unless local was cut */
    unsigned                  seek:1;     /* if it has not got it, another one
                                             may */
} ngx_http_mcp_route_t;


/*
 * subject: the path of the member that says what the method acts on (of
 * ngx_mcp_message_t), and name its value, decoded.
 */
void ngx_http_mcp_route(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t method_code, ngx_mcp_path_e subject,
    ngx_str_t *name, ngx_http_mcp_route_t *route);

/* another one is asked: NGX_OK; NGX_DECLINED: all were */
ngx_int_t ngx_http_mcp_route_next(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t method_code,
    ngx_http_mcp_route_t *route);

/* whether an error of this code says that the upstream has not got it */
ngx_uint_t ngx_http_mcp_route_absent(ngx_uint_t method_code, ngx_int_t code);

/* this upstream has the resource */
void ngx_http_mcp_route_learn(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_http_mcp_upstream_t *u, ngx_str_t *uri);


#endif /* _NGX_HTTP_MCP_ROUTE_H_INCLUDED_ */
