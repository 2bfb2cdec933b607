
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Routes: finds the upstream of a request.  The names of tools and prompts
 * have the prefix of their upstream.  A resource is at the upstream that
 * listed it, or had it before, or has a template for its URI.  If no such
 * upstream is known, the upstreams are asked one after the other, in configured
 * order, until one has the resource.  Requests with a method that the module
 * does not know are routed in the same way.
 */

#ifndef _NGX_HTTP_MCP_ROUTE_H_INCLUDED_
#define _NGX_HTTP_MCP_ROUTE_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"


/* the route of a request; its memory lives as long as the request */

typedef struct {
    ngx_http_mcp_upstream_t  *upstream;   /* NULL: no upstream has the subject
                                             of the request */
    ngx_str_t                 local;      /* the upstream's own name of the
                                             subject; data NULL: the name that
                                             the client sent */
    uint32_t                  asked;      /* bits of the upstreams that were
                                             asked, including "upstream" */
    unsigned                  cut:1;      /* the client's name may be a
                                             shortened one; then "local" is
                                             wrong */
    unsigned                  seek:1;     /* if "upstream" answers that it does
                                             not have the subject, the next
                                             upstream is asked */
} ngx_http_mcp_route_t;


/*
 * Finds the upstream of a request.  subject: the path of the member that names
 * the subject of the method, such as a tool or resource (ngx_mcp_message_t);
 * name: the decoded value of this member.
 */
void ngx_http_mcp_route(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t method_code, ngx_mcp_path_e subject,
    ngx_str_t *name, ngx_http_mcp_route_t *route);

/*
 * Sets the route's upstream to the next one that was not asked yet.  NGX_OK;
 * NGX_DECLINED: all upstreams were asked.
 */
ngx_int_t ngx_http_mcp_route_next(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t method_code,
    ngx_http_mcp_route_t *route);

/*
 * Returns whether an error with this code means that the upstream does not have
 * the subject.
 */
ngx_uint_t ngx_http_mcp_route_absent(ngx_uint_t method_code, ngx_int_t code);

/* remembers that this upstream has the resource */
void ngx_http_mcp_route_learn(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_http_mcp_upstream_t *u, ngx_str_t *uri);


#endif /* _NGX_HTTP_MCP_ROUTE_H_INCLUDED_ */
