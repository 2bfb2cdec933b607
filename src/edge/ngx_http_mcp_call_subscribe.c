
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_interest.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_topic.h"


static ngx_int_t ngx_http_mcp_subscription_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_subscription_begin(ngx_http_mcp_call_t *call,
    ngx_int_t rc, ngx_http_mcp_upstream_t *u, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_subscription_route(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_http_mcp_upstream_t *ngx_http_mcp_subscription_upstream(
    ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_subscription_again(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_subscription_refused(ngx_http_mcp_call_t *call,
    ngx_int_t rc, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_subscription_add(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u);
static ngx_int_t ngx_http_mcp_subscription_topic(ngx_http_mcp_call_t *call,
    ngx_mcp_topic_t *topic, ngx_str_t *name, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_subscription_end(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_subscription_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_subscription_done(void *data, ngx_int_t rc);
static void ngx_http_mcp_feeds_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_feeds_done(void *data);


/* the answerer for resources/subscribe and resources/unsubscribe */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_subscription = {
    .start = ngx_http_mcp_subscription_start,
    .stop = ngx_http_mcp_subscription_stop,
    .methods = NGX_HTTP_MCP_METHODS_SUBSCRIPTION
};

/* the answerer while the feeds of a topic are being connected */

static ngx_http_mcp_answerer_t  ngx_http_mcp_call_feeds = {
    .stop = ngx_http_mcp_feeds_stop
};


static ngx_int_t
ngx_http_mcp_subscription_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc;
    ngx_str_t                 name;
    ngx_uint_t                known;
    ngx_mcp_topic_t           topic;
    ngx_http_mcp_loc_conf_t  *mlcf;
    ngx_http_mcp_upstream_t  *u;

    mlcf = call->ctx->conf;

    call->uri = ngx_mcp_message_string(call->message, NGX_MCP_PATH_URI,
                                       call->r->pool);
    if (call->uri.data == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_topic_resolve(&mlcf->bridge, &call->uri, call->r->pool,
                                   &topic, &name)
        != NGX_OK)
    {
        ngx_str_null(&call->uri);
        return NGX_ERROR;
    }

    /* u stays NULL if no upstream tells of updates of the resource */

    u = NULL;

    if (name.len == 0 && mlcf->bridge.router.n) {
        rc = ngx_http_mcp_subscription_route(call, reply);

        if (rc != NGX_AGAIN) {
            ngx_str_null(&call->uri);
            return rc;
        }

        u = ngx_http_mcp_subscription_upstream(call);
    }

    if (call->message->method_code == NGX_MCP_METHOD_UNSUBSCRIBE) {
        return ngx_http_mcp_subscription_end(call, u, reply);
    }

    call->again = ngx_http_mcp_subscription_again;

    known = ngx_mcp_session_subscribed(mlcf->zone, call->ctx->caller.session,
                                       &call->uri, NULL);

    rc = ngx_http_mcp_subscription_add(call, u);

    if (known && !call->route.seek) {

        /* the subscription stays, whatever becomes of this call */

        ngx_str_null(&call->uri);
    }

    if (rc == NGX_BUSY || rc == NGX_DECLINED) {
        return ngx_http_mcp_subscription_refused(call, rc, reply);
    }

    if (name.len) {
        return ngx_http_mcp_subscription_topic(call, &topic, &name, reply);
    }

    if (mlcf->bridge.tools & NGX_HTTP_MCP_TOOL_WAIT) {
        (void) ngx_mcp_topic_subscribe(mlcf->zone, call->ctx->caller.session,
                                       &topic);
    }

    return ngx_http_mcp_subscription_begin(call, rc, u, reply);
}


/* sets the route to the upstream of the subscription, if there is one */

static ngx_int_t
ngx_http_mcp_subscription_route(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc;
    ngx_http_mcp_router_t    *router;
    ngx_http_mcp_upstream_t  *u;

    rc = ngx_http_mcp_call_route(call, reply);

    if (rc != NGX_AGAIN || !call->route.seek) {
        return rc;
    }

    router = &call->ctx->conf->bridge.router;

    for (u = ngx_http_mcp_router_next(router, NULL);
         u;
         u = ngx_http_mcp_router_next(router, u))
    {
        if (ngx_mcp_session_subscribed(call->ctx->conf->zone,
                                       call->ctx->caller.session, &call->uri,
                                       &u->name))
        {
            call->route.upstream = u;
            call->route.seek = 0;
            break;
        }
    }

    return rc;
}


/* returns the upstream that gets the subscription, or NULL */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_subscription_upstream(ngx_http_mcp_call_t *call)
{
    return ngx_http_mcp_updateless(call->route.upstream,
                                   &call->ctx->caller.tenant)
           ? NULL : call->route.upstream;
}


/* subscribes at the next upstream of the route, after one refused */

static ngx_int_t
ngx_http_mcp_subscription_again(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc;
    ngx_http_mcp_upstream_t  *u;

    call->answerer = &ngx_http_mcp_call_subscription;
    call->data = NULL;

    (void) ngx_mcp_session_unsubscribe(call->ctx->conf->zone,
                                       call->ctx->caller.session, &call->uri);

    u = ngx_http_mcp_subscription_upstream(call);
    rc = ngx_http_mcp_subscription_add(call, u);

    if (rc == NGX_BUSY || rc == NGX_DECLINED) {
        return ngx_http_mcp_subscription_refused(call, rc, reply);
    }

    return ngx_http_mcp_subscription_begin(call, rc, u, reply);
}


static ngx_int_t
ngx_http_mcp_subscription_refused(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_null(&call->uri);

    return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK, NGX_MCP_REFUSED,
                                    rc == NGX_BUSY
                                    ? "the limit of subscriptions is "
                                      "reached (mcp_subscription_limit)"
                                    : "the zone has no room for a "
                                      "subscription (mcp_zone); try again "
                                      "later");
}


/*
 * Subscribes in the zone, and at upstream u, if it is not NULL, in the shared
 * upstream session.  NGX_OK: subscribed; NGX_AGAIN: the call has to wait for
 * the upstream; NGX_DONE: the request is to be sent to the session's own
 * upstream session; NGX_BUSY: the limit is reached; NGX_DECLINED: no memory, or
 * no room in the zone
 */

static ngx_int_t
ngx_http_mcp_subscription_add(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u)
{
    ngx_int_t                 rc;
    ngx_http_mcp_interest_t  *want;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    if (u == NULL || !u->listen) {
        rc = ngx_mcp_session_subscribe(mlcf->zone, call->ctx->caller.session,
                                       &call->uri, u ? &u->name : NULL,
                                       mlcf->subscription_limit);

        return (rc == NGX_OK && u) ? NGX_DONE : rc;
    }

    want = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_interest_t));
    if (want == NULL) {
        return NGX_DECLINED;
    }

    call->data = want;

    want->bridge = &mlcf->bridge;
    want->upstream = u;
    want->caller = &call->ctx->caller;
    want->uri = call->uri;
    want->limit = mlcf->subscription_limit;
    want->pool = call->r->pool;
    want->done = ngx_http_mcp_subscription_done;
    want->data = call;

    return ngx_http_mcp_interest(want);
}


static ngx_int_t
ngx_http_mcp_subscription_begin(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_reply_t *reply)
{
    switch (rc) {

    case NGX_DONE:
        return ngx_http_mcp_call_to_upstream(call, reply);

    case NGX_AGAIN:
        rc = ngx_http_mcp_call_open(call, reply);

        if (rc == NGX_AGAIN) {
            call->ctx->upstream = u->name;
            ngx_http_mcp_interest_wait(call->data);
        }

        return rc;

    default: /* NGX_OK */

        if (u) {

            /*
             * The shared upstream session is subscribed.  But some servers tell
             * of an update only the session that caused the update.
             */

            return ngx_http_mcp_call_sync(call, reply);
        }

        return ngx_http_mcp_reply_ok(reply);
    }
}


/* subscribes to a topic, whose feeds stay from now on */

static ngx_int_t
ngx_http_mcp_subscription_topic(ngx_http_mcp_call_t *call,
    ngx_mcp_topic_t *topic, ngx_str_t *name, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                  rc;
    const char                *why;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_feed_wait_t  *feeds;

    mlcf = call->ctx->conf;
    feeds = NULL;

    switch (ngx_mcp_topic_subscribe(mlcf->zone, call->ctx->caller.session,
                                    topic))
    {

    case NGX_OK:
        why = ngx_http_mcp_feed_want(&mlcf->bridge, &call->ctx->caller, name,
                                     call->r->pool, &feeds);
        break;

    case NGX_BUSY:
        why = NGX_HTTP_MCP_TOPICS_BUSY;
        break;

    default:
        why = "the zone has no room for a subscription (mcp_zone); try again "
              "later";
    }

    if (why) {
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK, NGX_MCP_REFUSED,
                                        why);
    }

    if (feeds == NULL) {
        return ngx_http_mcp_reply_ok(reply);
    }

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc == NGX_AGAIN) {
        call->answerer = &ngx_http_mcp_call_feeds;
        call->data = feeds;

        feeds->done = ngx_http_mcp_feeds_done;
        feeds->data = call;

        ngx_http_mcp_feed_wait(feeds);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_subscription_end(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t  rc;
    ngx_str_t  uri;

    uri = call->uri;
    ngx_str_null(&call->uri);

    rc = ngx_mcp_session_unsubscribe(call->ctx->conf->zone,
                                     call->ctx->caller.session, &uri);

    if (u == NULL || (rc == NGX_DECLINED && u->listen)) {
        return ngx_http_mcp_reply_ok(reply);
    }

    call->again = ngx_http_mcp_call_to_upstream;

    return rc == NGX_DONE ? ngx_http_mcp_call_sync(call, reply)
                          : ngx_http_mcp_call_to_upstream(call, reply);
}


static void
ngx_http_mcp_subscription_stop(ngx_http_mcp_call_t *call)
{
    if (call->data) {
        ngx_http_mcp_interest_cancel(call->data);
    }
}


static void
ngx_http_mcp_subscription_done(void *data, ngx_int_t rc)
{
    ngx_http_mcp_call_t *call = data;

    ngx_connection_t         *c;
    ngx_http_mcp_reply_t      reply;
    ngx_http_mcp_interest_t  *want;

    c = call->r->connection;

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    switch (rc) {

    case NGX_DONE:
        rc = ngx_http_mcp_call_to_upstream(call, &reply);
        break;

    case NGX_ABORT:
        want = call->data;
        ngx_str_null(&call->uri);

        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "mcp upstream \"%V\" did not answer resources/subscribe "
                      "in time", &want->upstream->name);

        ngx_http_mcp_reply_outcome(call->r, &call->message->id,
                                   want->upstream, NULL,
                                   NGX_HTTP_MCP_TIMEOUT, &reply);
        rc = NGX_OK;
        break;

    case NGX_OK:
        rc = ngx_http_mcp_call_sync(call, &reply);
        break;

    case NGX_BUSY:
    case NGX_ERROR:
        rc = ngx_http_mcp_subscription_refused(call, rc, &reply);
        break;

    default: /* NGX_DECLINED */
        rc = ngx_http_mcp_reply_ok(&reply);
    }

    ngx_http_mcp_call_started(call, rc, &reply);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_feeds_stop(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_feed_cancel(call->data);
}


/* the feeds are connected, or the wait for them is over */

static void
ngx_http_mcp_feeds_done(void *data)
{
    ngx_http_mcp_call_t *call = data;

    ngx_connection_t      *c;
    ngx_http_mcp_reply_t   reply;

    c = call->r->connection;

    (void) ngx_http_mcp_reply_ok(&reply);

    ngx_http_mcp_call_started(call, NGX_OK, &reply);

    ngx_http_run_posted_requests(c);
}
