
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The offer of an endpoint in initialize: capabilities, serverInfo and
 * instructions, made of the offers of its upstreams.
 */

#ifndef _NGX_HTTP_MCP_OFFER_H_INCLUDED_
#define _NGX_HTTP_MCP_OFFER_H_INCLUDED_


#include "ngx_http_mcp_module.h"


typedef struct {
    ngx_http_mcp_upstream_t  *upstream;
    ngx_str_t                 result;     /* raw initialize result of the
                                             upstream, or empty */
} ngx_http_mcp_offer_source_t;


/* returns the offer that this worker has cached for the tenant, or NULL */
ngx_http_mcp_result_t *ngx_http_mcp_offer_cached(
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant);

/*
 * Returns the raw serverInfo that the profiles in the zone tell, however old
 * they are; or an empty text.  It belongs to the worker, and is valid until
 * the next call.  temp: a pool for the time of the call.
 */
ngx_str_t ngx_http_mcp_offer_server(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_pool_t *temp);

/*
 * Makes an offer of n sources, which are in configured order.  The offer
 * belongs to the worker, and is valid until the next call.  NULL: no memory.
 * temp: a pool for the time of the call.
 */
ngx_http_mcp_result_t *ngx_http_mcp_offer(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_http_mcp_offer_source_t *sources, ngx_uint_t n,
    ngx_pool_t *temp);

/*
 * Caches an offer for other clients of the tenant, until profiles change.
 * changes: ngx_mcp_profile_changes() before the sources were read.
 */
void ngx_http_mcp_offer_keep(ngx_http_mcp_result_t *result, ngx_str_t *tenant,
    uint64_t changes);


#endif /* _NGX_HTTP_MCP_OFFER_H_INCLUDED_ */
