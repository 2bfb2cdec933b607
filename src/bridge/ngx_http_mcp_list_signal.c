
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_list_cache.h"


/* in the order of NGX_MCP_OFFERED_* */

static struct {
    ngx_uint_t   kinds;
    ngx_uint_t   method;
    ngx_str_t    text;
} ngx_http_mcp_list_notifications[] = {

    { NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), NGX_MCP_METHOD_TOOLS_CHANGED,
      ngx_string("{\"jsonrpc\":\"2.0\","
                 "\"method\":\"notifications/tools/list_changed\"}") },

    { NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS), NGX_MCP_METHOD_PROMPTS_CHANGED,
      ngx_string("{\"jsonrpc\":\"2.0\","
                 "\"method\":\"notifications/prompts/list_changed\"}") },

    { NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
      |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TEMPLATES),
      NGX_MCP_METHOD_RESOURCES_CHANGED,
      ngx_string("{\"jsonrpc\":\"2.0\","
                 "\"method\":\"notifications/resources/list_changed\"}") }
};


ngx_uint_t
ngx_http_mcp_list_kinds(ngx_uint_t offered)
{
    ngx_uint_t  i, kinds;

    kinds = 0;

    for (i = 0; i < 3; i++) {
        if (offered & (1 << i)) {
            kinds |= ngx_http_mcp_list_notifications[i].kinds;
        }
    }

    return kinds;
}


ngx_uint_t
ngx_http_mcp_list_method_kinds(ngx_uint_t method)
{
    ngx_uint_t  i;

    for (i = 0; i < 3; i++) {
        if (ngx_http_mcp_list_notifications[i].method == method) {
            return 1 << i;
        }
    }

    return 0;
}


ngx_str_t *
ngx_http_mcp_list_notification(ngx_uint_t offered)
{
    ngx_uint_t  i;

    for (i = 0; i < 2; i++) {
        if (offered & (1 << i)) {
            break;
        }
    }

    return &ngx_http_mcp_list_notifications[i].text;
}


ngx_uint_t
ngx_http_mcp_list_cache_signal(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_uint_t offered, ngx_str_t *text,
    ngx_pool_t *pool)
{
    uint64_t             number;
    ngx_uint_t           kinds;
    ngx_mcp_ref_t        ref;
    ngx_mcp_audience_t  *a;
    ngx_mcp_delivery_t  *d;

    if (offered == 0 || bridge->lists != NGX_HTTP_MCP_LIST_CACHE_ON
        || bridge->router.n == 0 || to->session.data || to->identity.data
        || to->uri.len || to->topic.len)
    {
        return 0;
    }

    kinds = ngx_http_mcp_list_kinds(offered);
    number = 0;

    for ( ;; ) {
        a = ngx_palloc(pool, sizeof(ngx_mcp_audience_t));

        if (a == NULL
            || ngx_mcp_audience_next(bridge->zone, &bridge->endpoint,
                                     to->tenant, &number, pool, a, &ref)
               != NGX_OK)
        {
            break;
        }

        if (ngx_mcp_list_signal(bridge->zone, ref, kinds)) {
            continue;
        }

        /* there is nothing to compare with */

        d = ngx_http_mcp_event_add_delivery(to);
        if (d == NULL) {
            break;
        }

        d->endpoint = &a->endpoint;
        d->tenant = &a->tenant;
        d->text = *text;
        d->event.list_key = a->key;
        d->event.flags = NGX_MCP_EVENT_LISTED;
    }

    return NGX_MCP_EVENT_UNLISTED;
}


void
ngx_http_mcp_list_cache_clear(ngx_http_mcp_bridge_t *bridge)
{
    uint64_t       number;
    ngx_mcp_ref_t  ref;

    if (bridge->lists == NGX_HTTP_MCP_LIST_CACHE_ON) {
        return;
    }

    number = 0;

    while (ngx_mcp_audience_next(bridge->zone, &bridge->endpoint, NULL,
                                 &number, NULL, NULL, &ref)
           == NGX_OK)
    {
        ngx_mcp_audience_drop(bridge->zone, ref);
    }
}
