
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* the bits of a key that are stored; a hash of the upstream has the others */
#define NGX_MCP_PROVIDER_KEY  0xffffffffffff0000ull

/* number of places that an entry may have: they are one cache line */
#define NGX_MCP_PROVIDER_PLACES  8


static volatile uint64_t *ngx_mcp_provider_places(ngx_mcp_zone_t *zone,
    uint64_t key);
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
    ngx_uint_t          i, n;
    volatile uint64_t  *places;

    places = ngx_mcp_provider_places(zone, key);
    value = ngx_mcp_provider_value(zone, key, upstream);

    /* uses the place that the resource has, else a free one, else any one */

    n = ngx_random() % NGX_MCP_PROVIDER_PLACES;

    for (i = 0; i < NGX_MCP_PROVIDER_PLACES; i++) {

        if (((places[i] ^ key) & NGX_MCP_PROVIDER_KEY) == 0) {
            n = i;
            break;
        }

        if (places[i] == 0) {
            n = i;
        }
    }

    if (places[n] != value) {
        places[n] = value;
    }
}


ngx_uint_t
ngx_mcp_provider_is(ngx_mcp_zone_t *zone, uint64_t key, ngx_str_t *upstream)
{
    ngx_uint_t          i;
    volatile uint64_t  *places;

    places = ngx_mcp_provider_places(zone, key);

    for (i = 0; i < NGX_MCP_PROVIDER_PLACES; i++) {

        if (((places[i] ^ key) & NGX_MCP_PROVIDER_KEY) == 0) {
            return places[i] == ngx_mcp_provider_value(zone, key, upstream);
        }
    }

    return 0;
}


static volatile uint64_t *
ngx_mcp_provider_places(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_uint_t  n;

    n = (key >> 16) % (NGX_MCP_PROVIDERS / NGX_MCP_PROVIDER_PLACES);

    return &zone->root->providers[n * NGX_MCP_PROVIDER_PLACES];
}


static uint64_t
ngx_mcp_provider_value(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream)
{
    return (key & NGX_MCP_PROVIDER_KEY)
           | (ngx_mcp_hash(zone, upstream, NULL) & ~NGX_MCP_PROVIDER_KEY);
}
