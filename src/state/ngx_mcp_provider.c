
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* the bits of a key that are stored; a hash of the upstream has the others */
#define NGX_MCP_PROVIDER_KEY  0xffffffffffff0000ull


static uint64_t ngx_mcp_provider_value(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream);


uint64_t
ngx_mcp_provider_key(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri)
{
    uint64_t   group;
    ngx_str_t  prefix;

    group = ngx_mcp_hash(zone, endpoint, tenant);

    prefix.data = (u_char *) &group;
    prefix.len = sizeof(uint64_t);

    return ngx_mcp_hash(zone, &prefix, uri);
}


void
ngx_mcp_provider_put(ngx_mcp_zone_t *zone, uint64_t key, ngx_str_t *upstream)
{
    uint64_t            value;
    volatile uint64_t  *place;

    place = &zone->root->providers[(key >> 16) % NGX_MCP_PROVIDERS];
    value = ngx_mcp_provider_value(zone, key, upstream);

    if (*place != value) {
        *place = value;
    }
}


ngx_uint_t
ngx_mcp_provider_is(ngx_mcp_zone_t *zone, uint64_t key, ngx_str_t *upstream)
{
    volatile uint64_t  *place;

    place = &zone->root->providers[(key >> 16) % NGX_MCP_PROVIDERS];

    return *place == ngx_mcp_provider_value(zone, key, upstream);
}


static uint64_t
ngx_mcp_provider_value(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream)
{
    return (key & NGX_MCP_PROVIDER_KEY)
           | (ngx_mcp_hash(zone, upstream, NULL) & ~NGX_MCP_PROVIDER_KEY);
}
