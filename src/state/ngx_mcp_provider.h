
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Providers.  A provider is the upstream that has listed a resource, or from
 * which the resource was read.  It is noted if the endpoint has several
 * upstreams and does not cache their lists; requests for the resource are sent
 * to it first.
 *
 * The providers are in a table of fixed size in the zone, which is used
 * without the lock.  A new entry has one of several places; if none is free, it
 * replaces an entry there.
 */

#ifndef _NGX_MCP_PROVIDER_H_INCLUDED_
#define _NGX_MCP_PROVIDER_H_INCLUDED_


#include "ngx_mcp_schema.h"


/* the largest number of resources with a provider */
#define NGX_MCP_PROVIDERS  4096


/* the key of a resource of an endpoint and tenant */
uint64_t ngx_mcp_provider_key(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri);

void ngx_mcp_provider_put(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream);

/* whether this upstream is noted as the provider */
ngx_uint_t ngx_mcp_provider_is(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream);


#endif /* _NGX_MCP_PROVIDER_H_INCLUDED_ */
