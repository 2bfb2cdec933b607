
/*
 * What upstreams are and can: asked when it is first needed, by one worker for
 * all, and kept in the zone.
 */

#ifndef _NGX_HTTP_MCP_DISCOVER_H_INCLUDED_
#define _NGX_HTTP_MCP_DISCOVER_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


/*
 * Finds out what an upstream is and can, for an audience: initialize with a
 * session of the module's own, which is ended again.  Answers come from the
 * zone while they are of this configuration and not older than max_age (or
 * NGX_MCP_KNOWLEDGE_ANY).  NGX_OK: *known is
 * filled from pool; NGX_AGAIN: being asked, by this or another worker: wait for
 * NGX_HTTP_MCP_WAIT_PROFILE; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_discover(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_knowledge_t *known);

/* the kind that this worker knows without the zone, or KNOWN_NOTHING */
ngx_uint_t ngx_http_mcp_discovered(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);

/* its capabilities may be out of date: the next initialize asks it */
void ngx_http_mcp_discover_stale(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* and it does not behave as what it was known for: the next call finds out */
void ngx_http_mcp_discover_again(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* the worker was told to quit */
void ngx_http_mcp_discover_quit(ngx_mcp_zone_t *zone);

/* the doorbell: handlers->knowledge */
void ngx_http_mcp_discover_doorbell(ngx_mcp_zone_t *zone);

/* whether an rpc upstream says by this status that it lacks the method */
ngx_uint_t ngx_http_mcp_status_absent(ngx_uint_t status);


#endif /* _NGX_HTTP_MCP_DISCOVER_H_INCLUDED_ */
