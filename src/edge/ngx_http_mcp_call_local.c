
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_builtin.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_interest.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_topic.h"
#include "ngx_http_mcp_wait.h"


static ngx_int_t ngx_http_mcp_local_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_local_stop(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_local_set_level(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_level_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_level_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_level_cancel(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_level_done(ngx_http_mcp_fanout_t *fanout);
static ngx_int_t ngx_http_mcp_local_list(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_local_tool(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_str_t ngx_http_mcp_local_caller_info(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_local_read(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_local_no_resource(ngx_http_mcp_call_t *call,
    ngx_str_t *uri, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_local_wait(ngx_http_mcp_call_t *call,
    ngx_str_t *arguments, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_wait_begin(ngx_http_mcp_call_t *call,
    ngx_http_mcp_wait_t *w, ngx_str_t *name, ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_wait_subscribe(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_wait_abort(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_wait_ready(ngx_http_mcp_wait_t *w, ngx_int_t rc);


/* the answerer for the module's own tools, topics and lists, and log levels */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_local = {
    .start = ngx_http_mcp_local_start,
    .stop = ngx_http_mcp_local_stop,
    .methods = NGX_HTTP_MCP_METHODS_LIST
        | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_SET_LEVEL)
        | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_TOOLS_CALL)
        | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_RESOURCES_READ)
};

/* the answerer for logging/setLevel, of which upstreams are told */

static ngx_http_mcp_answerer_t  ngx_http_mcp_call_level = {
    .stop = ngx_http_mcp_level_stop,
    .cancel = ngx_http_mcp_level_cancel
};

/* the answerer for the tool wait_for_event while it waits */

static ngx_http_mcp_answerer_t  ngx_http_mcp_call_waiting = {
    .stop = ngx_http_mcp_wait_abort,
    .unresumable = 1
};


static ngx_int_t
ngx_http_mcp_local_start(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    switch (call->message->method_code) {

    case NGX_MCP_METHOD_SET_LEVEL:
        return ngx_http_mcp_local_set_level(call, reply);

    case NGX_MCP_METHOD_TOOLS_CALL:
        return mlcf->bridge.tools ? ngx_http_mcp_local_tool(call, reply)
                                  : NGX_DECLINED;

    case NGX_MCP_METHOD_RESOURCES_READ:
        return mlcf->bridge.topics ? ngx_http_mcp_local_read(call, reply)
                                   : NGX_DECLINED;

    default:
        return ngx_http_mcp_local_list(call, reply);
    }
}


static void
ngx_http_mcp_local_stop(ngx_http_mcp_call_t *call)
{
    /* void */
}


static ngx_int_t
ngx_http_mcp_local_set_level(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t   name;
    ngx_uint_t  level;

    if (!(call->ctx->session.offered & NGX_MCP_OFFERED_LOGGING)) {
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                        NGX_MCP_METHOD_NOT_FOUND,
                                        "Method not found: logging is not "
                                        "offered");
    }

    level = NGX_MCP_LEVEL_UNSET;

    if (call->message->json.members[NGX_MCP_PATH_LEVEL].type
        == NGX_MCP_JSON_STRING)
    {
        name = ngx_mcp_message_string(call->message, NGX_MCP_PATH_LEVEL,
                                      call->r->pool);
        level = ngx_mcp_level_parse(&name);
    }

    if (level == NGX_MCP_LEVEL_UNSET) {
        return ngx_http_mcp_reply_invalid(reply, "params.level must be one of "
                                                 "debug, info, notice, "
                                                 "warning, error, critical, "
                                                 "alert, emergency");
    }

    ngx_mcp_session_set_level(call->ctx->conf->zone, call->ctx->caller.session,
                              level);

    if (call->ctx->conf->bridge.router.n) {
        return ngx_http_mcp_level_start(call, reply);
    }

    return ngx_http_mcp_reply_ok(reply);
}


/* sets the level in the session's upstream sessions, also in later ones */

static ngx_int_t
ngx_http_mcp_level_start(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t               rc;
    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_fanout_t  *fanout;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    ctx = call->ctx;

    fanout = ngx_http_mcp_fanout_create(call->r);
    if (fanout == NULL) {
        return NGX_ERROR;
    }

    call->answerer = &ngx_http_mcp_call_level;
    call->data = fanout;

    fanout->owner = ctx->caller.session;
    fanout->tenant = ctx->caller.tenant;
    fanout->body = call->message->text;
    fanout->done = ngx_http_mcp_level_done;
    fanout->data = call;

    if (call->batch == NULL) {
        fanout->scope = ctx->scope;

    } else if (ngx_http_mcp_scan_scope(call->r, call->message, &fanout->scope)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_fanout_start(fanout, &ctx->conf->bridge.router) != NGX_OK)
    {
        return ngx_http_mcp_reply_ok(reply);
    }

    return NGX_AGAIN;
}


static void
ngx_http_mcp_level_stop(ngx_http_mcp_call_t *call)
{
    if (call->data) {
        ngx_http_mcp_fanout_stop(call->data);
    }
}


static void
ngx_http_mcp_level_cancel(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_fanout_abort(call->data);
}


static void
ngx_http_mcp_level_done(ngx_http_mcp_fanout_t *fanout)
{
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_reply_t   reply;

    call = fanout->data;

    if (fanout->refused) {

        /* the level is not set, as the answer says */

        ngx_mcp_session_set_level(call->ctx->conf->zone, fanout->owner,
                                  call->ctx->session.level);

        ngx_http_mcp_reply_dots(call->r, fanout->refused, &reply);

    } else {
        (void) ngx_http_mcp_reply_ok(&reply);
    }

    ngx_http_mcp_call_end(call, &reply);
}


/* answers a list at an endpoint without upstreams */

static ngx_int_t
ngx_http_mcp_local_list(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_mcp_message_t        *m;
    ngx_http_mcp_loc_conf_t  *mlcf;

    m = call->message;
    mlcf = call->ctx->conf;

    if (mlcf->bridge.router.n
        || !ngx_http_mcp_list_own(&mlcf->bridge, m->method_code))
    {
        return NGX_DECLINED;
    }

    if (m->json.members[NGX_MCP_PATH_CURSOR].type > NGX_MCP_JSON_NULL) {
        return ngx_http_mcp_reply_invalid(reply, "params.cursor is unknown");
    }

    return ngx_http_mcp_list_edit_result(call->r, call->ctx, m,
                                         &reply->result);
}


static ngx_int_t
ngx_http_mcp_local_tool(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
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

        if (mlcf->bridge.router.n) {
            return NGX_DECLINED;
        }

        return ngx_http_mcp_reply_invalid(reply, "params.name is not the name "
                                                 "of a tool");
    }

    params = ngx_mcp_message_member(m, NGX_MCP_PATH_PARAMS);

    if (ngx_http_mcp_builtin_arguments(&params, &arguments) != NGX_OK) {
        return ngx_http_mcp_reply_invalid(reply, "params.arguments must be an "
                                                 "object");
    }

    if (tool->bit == NGX_HTTP_MCP_TOOL_WAIT) {
        return ngx_http_mcp_local_wait(call, &arguments, reply);
    }

    reply->result = call->ctx->client->sessionless
                    ? ngx_http_mcp_local_caller_info(call)
                    : ngx_http_mcp_builtin_session_info(&mlcf->bridge,
                                                        &call->ctx->caller,
                                                        call->r->pool);

    return reply->result.data ? NGX_OK : NGX_ERROR;
}


static ngx_str_t
ngx_http_mcp_local_caller_info(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_loc_conf_t        *mlcf;
    ngx_http_mcp_builtin_caller_t   data;

    mlcf = call->ctx->conf;

    data.client = ngx_mcp_message_member(call->message,
                                         NGX_MCP_PATH_META_CLIENT);
    data.calls = mlcf->call_limit;
    data.subscriptions = mlcf->subscription_limit;

    return ngx_http_mcp_builtin_caller_info(&mlcf->bridge, &call->ctx->caller,
                                            &data, call->r->pool);
}


static ngx_int_t
ngx_http_mcp_local_read(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc;
    ngx_str_t                 uri, requested, name;
    ngx_mcp_topic_t           topic;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    uri = ngx_mcp_message_string(call->message, NGX_MCP_PATH_URI,
                                 call->r->pool);
    if (uri.data == NULL) {
        return NGX_ERROR;
    }

    requested = uri;

    if (ngx_http_mcp_topic_resolve(&mlcf->bridge, &uri, call->r->pool, &topic,
                                   &name)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (name.len == 0 && mlcf->bridge.router.n) {
        return NGX_DECLINED;
    }

    rc = name.len ? ngx_http_mcp_topic_read(&mlcf->bridge,
                                            &call->ctx->caller, &topic, &name,
                                            call->r->pool, &reply->result)
                  : NGX_DECLINED;

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_local_no_resource(call, &requested, reply);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_local_no_resource(ngx_http_mcp_call_t *call, ngx_str_t *uri,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t  data;

    data = ngx_mcp_uri_compose(call->r->pool, uri);
    if (data.data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_OK, NGX_MCP_NO_RESOURCE,
                                    "Resource not found");
    reply->data = data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_local_wait(ngx_http_mcp_call_t *call, ngx_str_t *arguments,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc, code;
    ngx_str_t                 name;
    const char               *why;
    ngx_http_mcp_wait_t      *w;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    w = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_wait_t));
    if (w == NULL) {
        return NGX_ERROR;
    }

    w->zone = mlcf->zone;
    w->caller = &call->ctx->caller;
    w->pool = call->r->pool;
    w->drain = mlcf->drain_time;
    w->ready = ngx_http_mcp_wait_ready;
    w->data = call;

    why = ngx_http_mcp_builtin_wait_parse(&mlcf->bridge, arguments, w, &name,
                                          &code);

    if (why && code) {
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK, code, why);
    }

    if (why) {
        call->ctx->tool_error = 1;
        reply->result = ngx_http_mcp_builtin_error(call->r->pool, why);

        return reply->result.data ? NGX_OK : NGX_ERROR;
    }

    /* the result shows the resource: mcp_deny decides as for resources/read */

    rc = ngx_http_mcp_denied_as(call->r, call->ctx,
                                NGX_MCP_METHOD_RESOURCES_READ, &w->topic.uri,
                                &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_FORBIDDEN,
                                        NGX_MCP_REFUSED, why);
    }

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_mcp_call_open(call, reply);

    return rc == NGX_AGAIN ? ngx_http_mcp_wait_begin(call, w, &name, reply)
                           : rc;
}


/* begins to wait for an event; name: name of the topic, or empty */

static ngx_int_t
ngx_http_mcp_wait_begin(ngx_http_mcp_call_t *call, ngx_http_mcp_wait_t *w,
    ngx_str_t *name, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t         rc;
    const char       *why;
    ngx_mcp_caller_t *caller;

    caller = &call->ctx->caller;

    call->answerer = &ngx_http_mcp_call_waiting;
    call->data = w;

    rc = ngx_http_mcp_wait_start(w);

    if (name->len && (rc == NGX_AGAIN || rc == NGX_OK)) {

        if (caller->session.block == 0) {
            (void) ngx_http_mcp_feed_want(&call->ctx->conf->bridge, caller,
                                          NULL, w->pool, NULL);
        }

        why = ngx_http_mcp_feed_want(&call->ctx->conf->bridge, caller, name,
                                     w->pool, NULL);

        if (why && rc == NGX_AGAIN) {
            ngx_http_mcp_wait_stop(w);

            return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                            NGX_MCP_REFUSED, why);
        }
    }

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_wait_subscribe(call);
        return NGX_AGAIN;
    }

    if (rc != NGX_OK) {
        call->ctx->tool_error = 1;
    }

    reply->result = ngx_http_mcp_builtin_wait_result(w, rc);

    return reply->result.data ? NGX_OK : NGX_ERROR;
}


/* subscribes to the resource, so that the upstream tells of its updates */

static void
ngx_http_mcp_wait_subscribe(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_wait_t      *w;
    ngx_http_mcp_route_t      route;
    ngx_http_mcp_interest_t   want;
    ngx_http_mcp_loc_conf_t  *mlcf;
    ngx_http_mcp_upstream_t  *u;

    w = call->data;
    mlcf = call->ctx->conf;

    if (!w->topic.other) {
        return;
    }

    ngx_http_mcp_route(&mlcf->bridge, &call->ctx->caller,
                       NGX_MCP_METHOD_SUBSCRIBE, NGX_MCP_PATH_URI,
                       &w->topic.uri, &route);

    u = route.upstream;

    if (u == NULL || !u->listen
        || ngx_http_mcp_updateless(u, &call->ctx->caller.tenant)) {
        return;
    }

    ngx_memzero(&want, sizeof(ngx_http_mcp_interest_t));

    want.bridge = &mlcf->bridge;
    want.upstream = u;
    want.caller = &call->ctx->caller;
    want.uri = w->topic.uri;
    want.pool = call->r->pool;

    ngx_http_mcp_interest_add_call(&want, call->record.ref);
}


static void
ngx_http_mcp_wait_abort(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_wait_stop(call->data);
}


static void
ngx_http_mcp_wait_ready(ngx_http_mcp_wait_t *w, ngx_int_t rc)
{
    ngx_connection_t      *c;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_reply_t   reply;

    call = w->data;
    c = call->r->connection;

    if (rc == NGX_DECLINED) {
        rc = ngx_http_mcp_reply_error(&reply, NGX_HTTP_NOT_FOUND,
                                      NGX_MCP_SESSION_NOT_FOUND,
                                      "the session has ended");
    } else {
        call->ctx->tool_error = (rc != NGX_OK && rc != NGX_AGAIN);

        ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

        reply.result = ngx_http_mcp_builtin_wait_result(w, rc);
        rc = reply.result.data ? NGX_OK : NGX_ERROR;
    }

    ngx_http_mcp_call_started(call, rc, &reply);

    ngx_http_run_posted_requests(c);
}
