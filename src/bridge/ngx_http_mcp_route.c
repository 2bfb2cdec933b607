
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_profile.h"
#include "ngx_http_mcp_route.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_mcp_provider.h"
#include "ngx_mcp_template.h"


/* templates with which a URI is compared, at most */
#define NGX_HTTP_MCP_ROUTE_TEMPLATES  256


static ngx_http_mcp_upstream_t *ngx_http_mcp_route_resource(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller, ngx_str_t *uri);
static ngx_http_mcp_upstream_t *ngx_http_mcp_route_template(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller, ngx_str_t *uri);
static ngx_http_mcp_upstream_t *ngx_http_mcp_route_seek(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller,
    ngx_uint_t method_code, uint32_t asked);

#define ngx_http_mcp_route_bit(bridge, u)                                     \
    ((uint32_t) 1 << ((u) - (bridge)->router.upstreams))


void
ngx_http_mcp_route(ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller,
    ngx_uint_t method_code, ngx_mcp_path_e subject, ngx_str_t *name,
    ngx_http_mcp_route_t *route)
{
    ngx_http_mcp_router_t    *router;
    ngx_http_mcp_upstream_t  *u;

    router = &bridge->router;

    ngx_memzero(route, sizeof(ngx_http_mcp_route_t));

    if (ngx_http_mcp_router_plain(router) || router->n == 0) {
        route->upstream = ngx_http_mcp_router_next(router, NULL);
        return;
    }

    if (method_code != NGX_MCP_METHOD_OTHER
        && (subject == NGX_MCP_PATH_NAME || subject == NGX_MCP_PATH_REF_NAME))
    {
        route->cut = (ngx_http_mcp_router_name(router, name, &route->upstream,
                                               &route->local)
                      == NGX_AGAIN);

        if (route->upstream && route->upstream->prefix.len == 0) {
            ngx_str_null(&route->local);
        }

        return;
    }

    if (router->n == 1
        || (method_code != NGX_MCP_METHOD_OTHER
            && subject == NGX_MCP_PATH_NONE))
    {
        route->upstream = ngx_http_mcp_router_next(router, NULL);
        return;
    }

    u = NULL;

    if (subject == NGX_MCP_PATH_URI || subject == NGX_MCP_PATH_REF_URI) {
        u = ngx_http_mcp_route_resource(bridge, caller, name);
    }

    if (u == NULL) {
        u = ngx_http_mcp_route_seek(bridge, caller, method_code, 0);
    }

    route->upstream = u;
    route->asked = ngx_http_mcp_route_bit(bridge, u);
    route->seek = 1;
}


/*
 * Returns the upstream that listed the resource, or had it before, or has a
 * template for its URI; NULL: none is known.
 */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_route_resource(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *uri)
{
    uint64_t                  key;
    ngx_mcp_merge_t          *index;
    ngx_mcp_merge_entry_t    *entry;
    ngx_http_mcp_upstream_t  *u;

    index = ngx_http_mcp_list_cache_index(bridge, caller,
                                          NGX_MCP_LIST_RESOURCES);
    entry = index ? ngx_mcp_merge_find(index, uri) : NULL;

    if (entry) {
        return &bridge->router.upstreams[entry->source];
    }

    key = ngx_mcp_provider_key(bridge->zone, &bridge->endpoint,
                               &caller->tenant, uri);

    for (u = ngx_http_mcp_router_next(&bridge->router, NULL);
         u;
         u = ngx_http_mcp_router_next(&bridge->router, u))
    {
        if (ngx_mcp_provider_is(bridge->zone, key, &u->name)) {
            return u;
        }
    }

    return ngx_http_mcp_route_template(bridge, caller, uri);
}


/* returns the first upstream with a template that matches the URI, or NULL */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_route_template(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *uri)
{
    ngx_uint_t              i;
    ngx_mcp_merge_t        *index;
    ngx_mcp_merge_entry_t  *entry;

    index = ngx_http_mcp_list_cache_index(bridge, caller,
                                          NGX_MCP_LIST_TEMPLATES);
    if (index == NULL) {
        return NULL;
    }

    entry = ngx_mcp_merge_find(index, uri);

    for (i = 0; entry == NULL && i < index->n
                && i < NGX_HTTP_MCP_ROUTE_TEMPLATES; i++)
    {
        if (ngx_mcp_template_matches(&index->entries[i].name, uri)) {
            entry = &index->entries[i];
        }
    }

    return entry ? &bridge->router.upstreams[entry->source] : NULL;
}


ngx_int_t
ngx_http_mcp_route_next(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t method_code,
    ngx_http_mcp_route_t *route)
{
    ngx_http_mcp_upstream_t  *u;

    if (!route->seek) {
        return NGX_DECLINED;
    }

    u = ngx_http_mcp_route_seek(bridge, caller, method_code, route->asked);

    if (u == NULL) {
        route->seek = 0;
        return NGX_DECLINED;
    }

    route->upstream = u;
    route->asked |= ngx_http_mcp_route_bit(bridge, u);

    return NGX_OK;
}


/*
 * Returns the next upstream to ask; NULL: all were asked.  For an upstream that
 * does not notify of updates, any subscription succeeds without a request, so
 * for subscriptions it comes after those that notify.  An upstream that will
 * probably not answer comes last: another one may have the resource.
 */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_route_seek(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t method_code, uint32_t asked)
{
    ngx_uint_t                rank, best;
    ngx_http_mcp_upstream_t  *u, *found;

    found = NULL;
    best = 0;

    for (u = ngx_http_mcp_router_next(&bridge->router, NULL);
         u;
         u = ngx_http_mcp_router_next(&bridge->router, u))
    {
        if (asked & ngx_http_mcp_route_bit(bridge, u)) {
            continue;
        }

        rank = 0;

        if (!ngx_http_mcp_profile_answers(u, &caller->tenant)) {
            rank = 2;

        } else if ((method_code == NGX_MCP_METHOD_SUBSCRIBE
                    || method_code == NGX_MCP_METHOD_UNSUBSCRIBE)
                   && ngx_http_mcp_updateless(u, &caller->tenant))
        {
            rank = 1;
        }

        if (found == NULL || rank < best) {
            found = u;
            best = rank;
        }

        if (best == 0) {
            break;
        }
    }

    return found;
}


/* for an unknown subject, servers use various codes, even 0 */

ngx_uint_t
ngx_http_mcp_route_absent(ngx_uint_t method_code, ngx_int_t code)
{
    switch (code) {

    case NGX_MCP_METHOD_NOT_FOUND:
        return 1;

    case NGX_MCP_NO_RESOURCE:
    case NGX_MCP_INVALID_PARAMS:
    case 0:
        return method_code != NGX_MCP_METHOD_OTHER;

    default:
        return 0;
    }
}


void
ngx_http_mcp_route_learn(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_http_mcp_upstream_t *u, ngx_str_t *uri)
{
    uint64_t  key;

    if (bridge->router.n < 2) {
        return;
    }

    key = ngx_mcp_provider_key(bridge->zone, &bridge->endpoint,
                               &caller->tenant, uri);

    ngx_mcp_provider_put(bridge->zone, key, &u->name);
}
