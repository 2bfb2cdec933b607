
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_topic.h"


static const char *ngx_http_mcp_call_topic(ngx_http_mcp_call_t *call,
    ngx_mcp_topic_t *topic, ngx_str_t *name);
static ngx_int_t ngx_http_mcp_call_supply(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u);
static ngx_int_t ngx_http_mcp_call_unsubscribe(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u);


ngx_int_t
ngx_http_mcp_call_subscribe(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_int_t                 rc;
    ngx_str_t                 name;
    ngx_mcp_topic_t           topic;
    ngx_http_mcp_loc_conf_t  *mlcf;
    ngx_http_mcp_upstream_t  *u;

    mlcf = call->ctx->conf;

    call->uri = ngx_mcp_message_string(call->message, NGX_MCP_PATH_URI,
                                       call->r->pool);
    if (call->uri.data == NULL) {
        *code = NGX_MCP_INTERNAL_ERROR;
        *why = "internal error";
        return NGX_ERROR;
    }

    if (call->uri.len > NGX_MCP_URI_MAX) {
        ngx_str_null(&call->uri);

        *code = NGX_MCP_INVALID_PARAMS;
        *why = "params.uri is longer than 16384 bytes";
        return NGX_ERROR;
    }

    if (ngx_http_mcp_topic_of(&mlcf->bridge, &call->uri, call->r->pool, &topic,
                              &name)
        != NGX_OK)
    {
        *code = NGX_MCP_INTERNAL_ERROR;
        *why = "internal error";
        return NGX_ERROR;
    }

    ngx_str_set(result, "{}");

    /* topics, and resources of an rpc upstream, are updated from here */

    u = NULL;

    if (mlcf->upstreams && name.len == 0) {
        u = mlcf->upstreams->elts;

        if (u->protocol == NGX_HTTP_MCP_RPC
            || ngx_http_mcp_discovered(u, &call->ctx->tenant)
               == NGX_MCP_KNOWN_RPC)
        {
            u = NULL;
        }
    }

    if (call->message->method_code == NGX_MCP_METHOD_UNSUBSCRIBE) {
        return ngx_http_mcp_call_unsubscribe(call, u);
    }

    rc = ngx_http_mcp_call_supply(call, u);

    if (rc == NGX_BUSY || rc == NGX_DECLINED) {
        *code = NGX_MCP_REFUSED;
        *why = rc == NGX_BUSY ? "the limit of subscriptions is reached"
                              : "there is no room for a subscription";
        return NGX_ERROR;
    }

    if (name.len) {
        *why = ngx_http_mcp_call_topic(call, &topic, &name);

        if (*why) {
            (void) ngx_mcp_session_unsubscribe(mlcf->zone,
                                               call->ctx->session.ref,
                                               &call->uri);
            *code = NGX_MCP_REFUSED;
            return NGX_ERROR;
        }

    } else if (mlcf->bridge.tools & NGX_HTTP_MCP_TOOL_WAIT) {
        (void) ngx_mcp_topic_subscribe(mlcf->zone, call->ctx->session.ref,
                                       &topic);
    }

    return rc == NGX_OK ? NGX_OK : NGX_DECLINED;
}


/* its topic and feeds stay from now on; NULL, or why they can not */

static const char *
ngx_http_mcp_call_topic(ngx_http_mcp_call_t *call, ngx_mcp_topic_t *topic,
    ngx_str_t *name)
{
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    switch (ngx_mcp_topic_subscribe(mlcf->zone, call->ctx->session.ref, topic))
    {

    case NGX_OK:
        break;

    case NGX_BUSY:
        return NGX_HTTP_MCP_TOPICS_BUSY;

    default:
        return "there is no room for a subscription";
    }

    return ngx_http_mcp_feed_want(&mlcf->bridge, call->ctx->session.ref,
                                  &call->ctx->tenant, name);
}


/* NGX_OK: answered; NGX_DONE: the session's own upstream session is asked */

static ngx_int_t
ngx_http_mcp_call_supply(ngx_http_mcp_call_t *call, ngx_http_mcp_upstream_t *u)
{
    ngx_int_t                 rc;
    ngx_http_mcp_supply_t    *supply;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    call->talk.legacy_only = 1;

    if (u == NULL || !u->listen) {
        rc = ngx_mcp_session_subscribe(mlcf->zone, call->ctx->session.ref,
                                       &call->uri, mlcf->subscription_limit);

        return (rc == NGX_OK && u) ? NGX_DONE : rc;
    }

    supply = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_supply_t));
    if (supply == NULL) {
        return NGX_DECLINED;
    }

    call->supply = supply;

    supply->bridge = &mlcf->bridge;
    supply->upstream = u;
    supply->tenant = call->ctx->tenant;
    supply->session = call->ctx->session.ref;
    supply->uri = call->uri;
    supply->limit = mlcf->subscription_limit;
    supply->pool = call->r->pool;
    supply->done = ngx_http_mcp_call_supplied;
    supply->data = call;

    rc = ngx_http_mcp_supply(supply);

    if (rc == NGX_AGAIN) {
        call->sharing = 1;
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_call_unsubscribe(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u)
{
    ngx_int_t  rc;
    ngx_str_t  uri;

    uri = call->uri;
    ngx_str_null(&call->uri);

    rc = ngx_mcp_session_unsubscribe(call->ctx->conf->zone,
                                     call->ctx->session.ref, &uri);

    if (u == NULL || rc == NGX_DONE || (rc == NGX_DECLINED && u->listen)) {
        return NGX_OK;
    }

    call->talk.legacy_only = 1;

    return NGX_DECLINED;
}
