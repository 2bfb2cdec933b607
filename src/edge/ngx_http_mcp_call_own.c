
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_builtin.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_mix.h"
#include "ngx_http_mcp_topic.h"


static ngx_int_t ngx_http_mcp_call_tool(ngx_http_mcp_call_t *call,
    ngx_str_t *result, ngx_int_t *code, const char **why);
static ngx_int_t ngx_http_mcp_call_wait_for(ngx_http_mcp_call_t *call,
    ngx_str_t *arguments, ngx_str_t *result, ngx_int_t *code,
    const char **why);
static ngx_int_t ngx_http_mcp_call_read(ngx_http_mcp_call_t *call,
    ngx_str_t *result, ngx_int_t *code, const char **why);
static ngx_int_t ngx_http_mcp_call_no_resource(ngx_http_mcp_call_t *call,
    ngx_str_t *uri, ngx_int_t *code, const char **why);
static void ngx_http_mcp_call_wait_on(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_waited(ngx_http_mcp_wait_t *w, ngx_int_t rc);


ngx_int_t
ngx_http_mcp_call_own(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_mcp_message_t        *m;
    ngx_http_mcp_loc_conf_t  *mlcf;

    m = call->message;
    mlcf = call->ctx->conf;

    *code = NGX_MCP_INTERNAL_ERROR;
    *why = "internal error";

    switch (m->method_code) {

    case NGX_MCP_METHOD_TOOLS_CALL:
        return mlcf->bridge.tools
               ? ngx_http_mcp_call_tool(call, result, code, why)
               : NGX_DECLINED;

    case NGX_MCP_METHOD_RESOURCES_READ:
        return mlcf->bridge.topics
               ? ngx_http_mcp_call_read(call, result, code, why)
               : NGX_DECLINED;
    }

    if (mlcf->upstreams
        || !ngx_http_mcp_mix_has(&mlcf->bridge, m->method_code))
    {
        return NGX_DECLINED;
    }

    if (m->json.members[NGX_MCP_PATH_CURSOR].type > NGX_MCP_JSON_NULL) {
        *code = NGX_MCP_INVALID_PARAMS;
        *why = "params.cursor is unknown";
        return NGX_ERROR;
    }

    ngx_str_null(result);

    return ngx_http_mcp_filter_result(call->r, call->ctx, m, result);
}


ngx_int_t
ngx_http_mcp_call_own_list(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t           result;
    ngx_mcp_message_t  *m;

    m = call->message;

    if (!ngx_http_mcp_mix_has(&call->ctx->conf->bridge, m->method_code)
        || m->json.members[NGX_MCP_PATH_CURSOR].type > NGX_MCP_JSON_NULL)
    {
        return NGX_DECLINED;
    }

    ngx_str_null(&result);

    if (ngx_http_mcp_filter_result(call->r, call->ctx, m, &result) != NGX_OK) {
        return NGX_DECLINED;
    }

    *text = ngx_mcp_result_compose(call->r->pool, &m->id, &result);

    if (text->data == NULL) {
        return NGX_DECLINED;
    }

    call->ctx->error = 0;

    return NGX_OK;
}


/* a list with what is here, and without what the caller may not call */

void
ngx_http_mcp_call_filter(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t  result, own;

    if (!ngx_http_mcp_filters(call->ctx, call->message)) {
        return;
    }

    result = ngx_mcp_json_span(&call->talk.x->scan, NGX_MCP_PATH_RESULT,
                               text->data);

    if (result.len == 0 && call->ctx->error == NGX_MCP_METHOD_NOT_FOUND) {

        if (ngx_http_mcp_call_own_list(call, &own) == NGX_OK) {
            *text = own;
        }

        return;
    }

    if (result.len == 0 || result.data[0] != '{') {
        return;
    }

    if (ngx_http_mcp_filter(call->r, call->ctx, call->message, &result, text)
        != NGX_OK)
    {
        ngx_str_set(text, "");
    }
}


static ngx_int_t
ngx_http_mcp_call_tool(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_str_t                 name, params, arguments;
    ngx_mcp_message_t        *m;
    ngx_http_mcp_builtin_t   *tool;
    ngx_http_mcp_loc_conf_t  *mlcf;

    m = call->message;
    mlcf = call->ctx->conf;

    name = ngx_mcp_message_string(m, NGX_MCP_PATH_NAME, call->r->pool);
    tool = ngx_http_mcp_builtin(&mlcf->bridge, &name);

    if (tool == NULL) {

        if (mlcf->upstreams) {
            return NGX_DECLINED;
        }

        *code = NGX_MCP_INVALID_PARAMS;
        *why = "params.name is that of no tool";
        return NGX_ERROR;
    }

    params = ngx_mcp_message_member(m, NGX_MCP_PATH_PARAMS);

    if (ngx_http_mcp_builtin_arguments(&params, &arguments) != NGX_OK) {
        *code = NGX_MCP_INVALID_PARAMS;
        *why = "params.arguments must be an object";
        return NGX_ERROR;
    }

    if (tool->bit == NGX_HTTP_MCP_TOOL_WAIT) {
        return ngx_http_mcp_call_wait_for(call, &arguments, result, code, why);
    }

    *result = ngx_http_mcp_builtin_session(&mlcf->bridge, &call->ctx->session,
                                           &call->ctx->session_id,
                                           call->r->pool);

    return result->data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_call_wait_for(ngx_http_mcp_call_t *call, ngx_str_t *arguments,
    ngx_str_t *result, ngx_int_t *code, const char **why)
{
    ngx_int_t                 rc, error;
    ngx_str_t                 name;
    const char               *bad;
    ngx_http_mcp_wait_t      *w;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    w = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_wait_t));
    if (w == NULL) {
        return NGX_ERROR;
    }

    w->zone = mlcf->zone;
    w->session = call->ctx->session.ref;
    w->pool = call->r->pool;
    w->drain = mlcf->drain_time;
    w->ready = ngx_http_mcp_call_waited;
    w->data = call;

    bad = ngx_http_mcp_builtin_wait(&mlcf->bridge, arguments, w, &name,
                                    &error);

    if (bad && error) {
        *code = error;
        *why = bad;
        return NGX_ERROR;
    }

    if (bad) {
        call->ctx->tool_error = 1;
        *result = ngx_http_mcp_builtin_error(call->r->pool, bad);

        return result->data ? NGX_OK : NGX_ERROR;
    }

    /* it gets what reading the resource would show */

    rc = ngx_http_mcp_denied_as(call->r, call->ctx,
                                NGX_MCP_METHOD_RESOURCES_READ, &w->topic.uri,
                                why);

    if (rc != NGX_OK) {

        if (rc == NGX_DECLINED) {
            call->denied = 1;
            *code = NGX_MCP_REFUSED;
        }

        return NGX_ERROR;
    }

    if (name.len) {
        bad = ngx_http_mcp_feed_want(&mlcf->bridge, call->ctx->session.ref,
                                     &call->ctx->tenant, &name);
        if (bad) {
            *code = NGX_MCP_REFUSED;
            *why = bad;
            return NGX_ERROR;
        }
    }

    call->wait = w;
    call->talk.data = call;

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_mcp_call_wait(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_wait_start(call->wait);

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_call_wait_on(call);
        return NGX_AGAIN;
    }

    if (rc == NGX_BUSY) {
        *code = NGX_MCP_REFUSED;
        *why = NGX_HTTP_MCP_TOPICS_BUSY;
        return NGX_ERROR;
    }

    if (rc != NGX_OK) {
        call->ctx->tool_error = 1;
    }

    *result = ngx_http_mcp_builtin_waited(call->wait, rc);

    return result->data ? NGX_OK : NGX_ERROR;
}


/* an upstream says what is new of its resources to who subscribed */

static void
ngx_http_mcp_call_wait_on(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_supply_t     supply;
    ngx_http_mcp_loc_conf_t  *mlcf;
    ngx_http_mcp_upstream_t  *u;

    mlcf = call->ctx->conf;

    if (mlcf->upstreams == NULL || !call->wait->topic.other) {
        return;
    }

    u = mlcf->upstreams->elts;

    if (u->protocol == NGX_HTTP_MCP_RPC || !u->listen
        || ngx_http_mcp_discovered(u, &call->ctx->tenant) == NGX_MCP_KNOWN_RPC)
    {
        return;
    }

    ngx_memzero(&supply, sizeof(ngx_http_mcp_supply_t));

    supply.bridge = &mlcf->bridge;
    supply.upstream = u;
    supply.tenant = call->ctx->tenant;
    supply.session = call->ctx->session.ref;
    supply.uri = call->wait->topic.uri;
    supply.pool = call->r->pool;

    ngx_http_mcp_supply_hold(&supply, call->record.ref);
}


static void
ngx_http_mcp_call_waited(ngx_http_mcp_wait_t *w, ngx_int_t rc)
{
    ngx_str_t             result, text;
    ngx_connection_t     *c;
    ngx_http_mcp_call_t  *call;

    call = w->data;
    c = call->r->connection;

    if (rc == NGX_DECLINED) {
        call->cancelled = 1;
        call->ended = 1;

    } else {
        call->ctx->tool_error = (rc != NGX_OK && rc != NGX_AGAIN);

        result = ngx_http_mcp_builtin_waited(w, rc);

        if (result.data) {
            text = ngx_mcp_result_compose(w->pool, &call->message->id,
                                          &result);
            if (text.data) {
                ngx_http_mcp_call_answer(call, &text);
            }
        }
    }

    ngx_http_mcp_call_done(&call->talk, NGX_HTTP_MCP_ABORTED);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_mcp_call_wait_abort(ngx_http_mcp_call_t *call)
{
    ngx_connection_t  *c;

    c = call->r->connection;

    ngx_http_mcp_wait_stop(call->wait);
    ngx_http_mcp_call_done(&call->talk, NGX_HTTP_MCP_ABORTED);

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_mcp_call_read(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_int_t                 rc;
    ngx_str_t                 uri, asked, name;
    ngx_mcp_topic_t           topic;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    uri = ngx_mcp_message_string(call->message, NGX_MCP_PATH_URI,
                                 call->r->pool);
    if (uri.data == NULL) {
        return NGX_ERROR;
    }

    asked = uri;

    if (ngx_http_mcp_topic_of(&mlcf->bridge, &uri, call->r->pool, &topic,
                              &name)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (name.len == 0 && mlcf->upstreams) {
        return NGX_DECLINED;
    }

    rc = name.len ? ngx_http_mcp_topic_read(&mlcf->bridge,
                                            call->ctx->session.ref, &topic,
                                            &name, call->r->pool, result)
                  : NGX_DECLINED;

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_call_no_resource(call, &asked, code, why);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_call_no_resource(ngx_http_mcp_call_t *call, ngx_str_t *uri,
    ngx_int_t *code, const char **why)
{
    u_char  *p;

    p = ngx_pnalloc(call->r->pool, sizeof("{\"uri\":}") - 1
                                   + ngx_mcp_json_escaped_len(uri));
    if (p == NULL) {
        return NGX_ERROR;
    }

    call->data.data = p;

    p = ngx_cpymem(p, "{\"uri\":", sizeof("{\"uri\":") - 1);
    p = ngx_mcp_json_escape(p, uri);
    *p++ = '}';

    call->data.len = p - call->data.data;

    *code = NGX_MCP_NO_RESOURCE;
    *why = "Resource not found";

    return NGX_ERROR;
}
