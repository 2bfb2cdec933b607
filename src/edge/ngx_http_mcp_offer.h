
/*
 * The offer of an endpoint in initialize: capabilities, server info and
 * instructions, made of those of its upstreams.
 */

#ifndef _NGX_HTTP_MCP_OFFER_H_INCLUDED_
#define _NGX_HTTP_MCP_OFFER_H_INCLUDED_


#include "ngx_http_mcp_module.h"


typedef struct {
    ngx_http_mcp_upstream_t  *upstream;
    ngx_str_t                 result;     /* of its initialize, raw; or empty */
} ngx_http_mcp_offer_source_t;


/* the offer that this worker has cached for clients of the tenant, or NULL */
ngx_http_mcp_result_t *ngx_http_mcp_offer_cached(
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant);

/*
 * What the server is, raw, as far as the zone knows, however old that is; or
 * empty.  temp: a pool for the time of the call.
 */
ngx_str_t ngx_http_mcp_offer_server(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_pool_t *temp);

/*
 * Makes an offer of these sources, in configured order; temp: a pool for the
 * time of the call.  The offer belongs to the worker, and is valid until the
 * next call.  NULL: no memory.
 */
ngx_http_mcp_result_t *ngx_http_mcp_offer(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_http_mcp_offer_source_t *sources, ngx_uint_t n,
    ngx_pool_t *temp);

/* caches an offer for other clients of the tenant, until profiles change */
void ngx_http_mcp_offer_keep(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_http_mcp_result_t *result, uint64_t changes);


#endif /* _NGX_HTTP_MCP_OFFER_H_INCLUDED_ */
