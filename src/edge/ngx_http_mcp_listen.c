
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_interest.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_route.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_stream.h"
#include "ngx_http_mcp_topic.h"
#include "ngx_mcp_id.h"
#include "ngx_mcp_listen.h"


/*
 * subscriptions/listen (2026-07-28): the response is a stream of changes.  Each
 * such stream has a subscriber of its own in the zone, which ends with the
 * stream.
 */

/* ms for upstreams to accept subscriptions, and for feeds to be connected */
#define NGX_HTTP_MCP_LISTEN_TIME  5000


/* a resource of whose updates the client wants to be told */

typedef struct {
    ngx_str_t                    uri;         /* URI as the client wrote it */
    ngx_http_mcp_route_t         route;
    ngx_http_mcp_interest_t      interest;
    ngx_http_mcp_feed_wait_t    *feeds;       /* feeds of the topic that are
                                                 waited for, or NULL */
    struct ngx_http_mcp_listen_s  *listen;    /* the request */
    unsigned                     waiting:1;   /* the upstream has not answered
                                                 resources/subscribe yet */
    unsigned                     connecting:1;  /* "feeds" are not connected
                                                   yet */
    unsigned                     accepted:1;  /* the acknowledgement names the
                                                 resource */
} ngx_http_mcp_listen_uri_t;


/* a subscriptions/listen whose stream is not open yet; in r->pool */

typedef struct ngx_http_mcp_listen_s {
    ngx_http_request_t          *r;
    ngx_http_mcp_ctx_t          *ctx;
    ngx_mcp_listen_t             filter;
    ngx_http_mcp_listen_uri_t   *uris;        /* one for each URI of
                                                 filter.uris */
    ngx_http_mcp_feed_wait_t    *feeds;       /* feeds of the tenant that are
                                                 waited for, or NULL */
    ngx_uint_t                   waiting;     /* number of subscriptions and
                                                 feeds that are waited for */
    ngx_event_t                  timer;       /* ends the wait */
    unsigned                     connecting:1;  /* "feeds" are not connected
                                                   yet */
    unsigned                     opened:1;    /* the stream is open, and ends
                                                 the subscriber */
} ngx_http_mcp_listen_t;


static ngx_int_t ngx_http_mcp_listen_create(ngx_http_mcp_listen_t *listen);
static ngx_int_t ngx_http_mcp_listen_subscribe(ngx_http_mcp_listen_t *listen);
static void ngx_http_mcp_listen_resource(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want);
static void ngx_http_mcp_listen_ask(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want);
static ngx_int_t ngx_http_mcp_listen_interest(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want);
static void ngx_http_mcp_listen_topic(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want, ngx_mcp_topic_t *topic, ngx_str_t *name);
static void ngx_http_mcp_listen_lists(ngx_http_mcp_listen_t *listen);
static void ngx_http_mcp_listen_subscribed(void *data, ngx_int_t rc);
static void ngx_http_mcp_listen_connected(void *data);
static void ngx_http_mcp_listen_tenant_connected(void *data);
static void ngx_http_mcp_listen_timeout(ngx_event_t *ev);
static void ngx_http_mcp_listen_next(ngx_http_mcp_listen_t *listen);
static ngx_int_t ngx_http_mcp_listen_open(ngx_http_mcp_listen_t *listen);
static void ngx_http_mcp_listen_stop(ngx_http_mcp_listen_t *listen);
static void ngx_http_mcp_listen_cleanup(void *data);


ngx_int_t
ngx_http_mcp_listen(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t               rc;
    const char             *why;
    ngx_pool_cleanup_t     *cln;
    ngx_http_mcp_listen_t  *listen;

    if (!(ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
        return ngx_http_mcp_refuse(r, 406, NGX_MCP_REFUSED,
                                   "subscriptions/listen is answered by a "
                                   "stream; Accept must allow "
                                   "text/event-stream");
    }

    listen = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_listen_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (listen == NULL || cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    listen->r = r;
    listen->ctx = ctx;

    rc = ngx_mcp_listen_read(ctx->message, ctx->conf->subscription_limit,
                             r->pool, &listen->filter, &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                                   why);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_mcp_listen_create(listen);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    cln->handler = ngx_http_mcp_listen_cleanup;
    cln->data = listen;

    if (ngx_http_mcp_listen_subscribe(listen) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (listen->waiting == 0) {
        return ngx_http_mcp_listen_open(listen);
    }

    listen->timer.handler = ngx_http_mcp_listen_timeout;
    listen->timer.data = listen;
    listen->timer.log = r->connection->log;

    ngx_add_timer(&listen->timer, NGX_HTTP_MCP_LISTEN_TIME);

    return ngx_http_mcp_suspend(r, ngx_http_test_reading);
}


/* makes the subscriber, or refuses the request; NGX_DECLINED: it is made */

static ngx_int_t
ngx_http_mcp_listen_create(ngx_http_mcp_listen_t *listen)
{
    ngx_http_mcp_ctx_t     *ctx;
    ngx_mcp_session_new_t   in;

    ctx = listen->ctx;

    ngx_memzero(&in, sizeof(ngx_mcp_session_new_t));

    in.id.len = NGX_MCP_UUID_LEN;
    in.id.data = ngx_pnalloc(listen->r->pool, NGX_MCP_UUID_LEN);

    if (in.id.data == NULL || ngx_mcp_uuid(in.id.data) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    in.listens = 1;
    in.revision = ctx->caller.revision;
    in.offered = listen->filter.lists;

    ctx->session.offered = in.offered;

    return ngx_http_mcp_session_create(listen->r, ctx, &in);
}


static ngx_int_t
ngx_http_mcp_listen_subscribe(ngx_http_mcp_listen_t *listen)
{
    ngx_str_t                  *uri;
    ngx_uint_t                  i, n;
    ngx_http_mcp_ctx_t         *ctx;
    ngx_http_mcp_listen_uri_t  *want;

    ctx = listen->ctx;
    uri = listen->filter.uris.elts;
    n = listen->filter.uris.nelts;

    listen->uris = ngx_pcalloc(listen->r->pool,
                               n * sizeof(ngx_http_mcp_listen_uri_t) + 1);
    if (listen->uris == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        want = &listen->uris[i];

        want->listen = listen;
        want->uri = uri[i];

        if (uri[i].len <= NGX_MCP_URI_MAX) {
            ngx_http_mcp_listen_resource(listen, want);
        }
    }

    ngx_http_mcp_listen_lists(listen);

    (void) ngx_http_mcp_feed_want(&ctx->conf->bridge, &ctx->caller, NULL,
                                  listen->r->pool, &listen->feeds);

    if (listen->feeds) {
        listen->connecting = 1;
        listen->waiting++;

        listen->feeds->done = ngx_http_mcp_listen_tenant_connected;
        listen->feeds->data = listen;

        ngx_http_mcp_feed_wait(listen->feeds);
    }

    return NGX_OK;
}


/*
 * Subscribes to the resource at an upstream.  A topic, or a resource of an
 * endpoint without upstreams, is subscribed only in the zone.
 */

static void
ngx_http_mcp_listen_resource(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want)
{
    ngx_str_t                 uri, name;
    ngx_mcp_topic_t           topic;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    ctx = listen->ctx;
    mlcf = ctx->conf;
    uri = want->uri;

    /* mcp_deny sees the same URI of a topic as in resources/subscribe */

    if (ngx_http_mcp_topic_resolve(&mlcf->bridge, &uri, listen->r->pool,
                                   &topic, &name)
        != NGX_OK)
    {
        return;
    }

    if (mlcf->deny
        && ngx_http_mcp_denied_as(listen->r, ctx, NGX_MCP_METHOD_SUBSCRIBE,
                                  &uri, NULL)
           != NGX_OK)
    {
        return;
    }

    if (name.len == 0 && mlcf->bridge.router.n) {
        ngx_http_mcp_route(&mlcf->bridge, &ctx->caller,
                           NGX_MCP_METHOD_SUBSCRIBE, NGX_MCP_PATH_URI, &uri,
                           &want->route);

        want->interest.uri = uri;

        ngx_http_mcp_listen_ask(listen, want);

        return;
    }

    if (ngx_mcp_session_subscribe(mlcf->zone, ctx->caller.session, &uri, NULL,
                                  mlcf->subscription_limit)
        != NGX_OK)
    {
        return;
    }

    if (name.len) {
        ngx_http_mcp_listen_topic(listen, want, &topic, &name);

    } else {
        want->accepted = 1;
    }
}


/* subscribes at the first upstream of the route that has the resource */

static void
ngx_http_mcp_listen_ask(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want)
{
    ngx_int_t                 rc;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;
    ngx_http_mcp_upstream_t  *u;

    ctx = listen->ctx;
    mlcf = ctx->conf;

    while ((u = want->route.upstream) != NULL) {

        if (ngx_http_mcp_updateless(u, &ctx->caller.tenant)) {
            want->accepted = (ngx_mcp_session_subscribe(mlcf->zone,
                                         ctx->caller.session,
                                         &want->interest.uri, NULL,
                                         mlcf->subscription_limit)
                              == NGX_OK);
            return;
        }

        rc = u->listen ? ngx_http_mcp_listen_interest(listen, want)
                       : NGX_DONE;

        if (rc == NGX_OK) {
            want->accepted = 1;
            return;
        }

        if (rc == NGX_AGAIN) {
            want->waiting = 1;
            listen->waiting++;
            ngx_http_mcp_interest_wait(&want->interest);
            return;
        }

        if (rc != NGX_DONE || !want->route.seek
            || ngx_http_mcp_route_next(&mlcf->bridge, &ctx->caller,
                                       NGX_MCP_METHOD_SUBSCRIBE, &want->route)
               != NGX_OK)
        {
            return;
        }
    }
}


static ngx_int_t
ngx_http_mcp_listen_interest(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want)
{
    ngx_int_t                 rc;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_interest_t  *interest;

    ctx = listen->ctx;
    interest = &want->interest;

    interest->bridge = &ctx->conf->bridge;
    interest->upstream = want->route.upstream;
    interest->caller = &ctx->caller;
    interest->limit = ctx->conf->subscription_limit;
    interest->pool = listen->r->pool;
    interest->done = ngx_http_mcp_listen_subscribed;
    interest->data = want;

    rc = ngx_http_mcp_interest(interest);

    if (rc == NGX_DONE) {
        (void) ngx_mcp_session_unsubscribe(ctx->conf->zone,
                                           ctx->caller.session,
                                           &interest->uri);
    }

    return rc;
}


static void
ngx_http_mcp_listen_topic(ngx_http_mcp_listen_t *listen,
    ngx_http_mcp_listen_uri_t *want, ngx_mcp_topic_t *topic, ngx_str_t *name)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = listen->ctx;

    if (ngx_mcp_topic_subscribe(ctx->conf->zone, ctx->caller.session, topic)
        != NGX_OK
        || ngx_http_mcp_feed_want(&ctx->conf->bridge, &ctx->caller, name,
                                  listen->r->pool, &want->feeds))
    {
        (void) ngx_mcp_session_unsubscribe(ctx->conf->zone,
                                           ctx->caller.session, &topic->uri);
        return;
    }

    want->accepted = 1;

    if (want->feeds) {
        want->connecting = 1;
        listen->waiting++;

        want->feeds->done = ngx_http_mcp_listen_connected;
        want->feeds->data = want;

        ngx_http_mcp_feed_wait(want->feeds);
    }
}


/*
 * Makes sure that changes of lists are noticed: opens shared upstream sessions,
 * which listen to upstreams, and caches lists, which are refreshed then.
 */

static void
ngx_http_mcp_listen_lists(ngx_http_mcp_listen_t *listen)
{
    ngx_uint_t                 kind;
    ngx_http_mcp_ctx_t        *ctx;
    ngx_http_mcp_bridge_t     *bridge;
    ngx_mcp_list_change_t     *change;
    ngx_http_mcp_upstream_t   *u;
    ngx_http_mcp_list_copy_t  *list;

    ctx = listen->ctx;
    bridge = &ctx->conf->bridge;

    for (u = ngx_http_mcp_router_next(&bridge->router, NULL);
         u && listen->filter.lists;
         u = ngx_http_mcp_router_next(&bridge->router, u))
    {
        if (u->listen && !ngx_http_mcp_updateless(u, &ctx->caller.tenant)) {
            (void) ngx_http_mcp_shared_ensure(bridge, u, &ctx->caller.tenant,
                                              &ctx->caller.audience_key);
        }
    }

    for (change = ngx_mcp_list_changes; change->kinds; change++) {

        for (kind = 0; kind < NGX_MCP_LIST_KINDS; kind++) {

            if (!(listen->filter.lists & change->offered)
                || !(change->kinds & NGX_MCP_LIST_BIT(kind)))
            {
                continue;
            }

            if (ngx_http_mcp_list_cache_fetches(bridge, kind)
                && ngx_http_mcp_list_cache_get(bridge, &ctx->caller, kind, 0,
                                               &list)
                   == NGX_OK)
            {
                ngx_http_mcp_list_cache_release(list);
            }
        }
    }
}


static void
ngx_http_mcp_listen_subscribed(void *data, ngx_int_t rc)
{
    ngx_http_mcp_listen_uri_t *want = data;

    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_listen_t  *listen;

    listen = want->listen;
    ctx = listen->ctx;

    want->waiting = 0;

    if (rc == NGX_OK) {
        want->accepted = 1;

    } else if (rc == NGX_DONE) {
        (void) ngx_mcp_session_unsubscribe(ctx->conf->zone,
                                           ctx->caller.session,
                                           &want->interest.uri);

        if (want->route.seek
            && ngx_http_mcp_route_next(&ctx->conf->bridge, &ctx->caller,
                                       NGX_MCP_METHOD_SUBSCRIBE, &want->route)
               == NGX_OK)
        {
            ngx_http_mcp_listen_ask(listen, want);
        }
    }

    ngx_http_mcp_listen_next(listen);
}


static void
ngx_http_mcp_listen_connected(void *data)
{
    ngx_http_mcp_listen_uri_t *want = data;

    want->connecting = 0;

    ngx_http_mcp_listen_next(want->listen);
}


static void
ngx_http_mcp_listen_tenant_connected(void *data)
{
    ngx_http_mcp_listen_t *listen = data;

    listen->connecting = 0;

    ngx_http_mcp_listen_next(listen);
}


/* stops waiting: subscriptions that are not accepted by now are left out */

static void
ngx_http_mcp_listen_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_listen_t *listen = ev->data;

    ngx_uint_t                  i;
    ngx_http_mcp_ctx_t         *ctx;
    ngx_http_mcp_listen_uri_t  *want;

    ctx = listen->ctx;

    for (i = 0; i < listen->filter.uris.nelts; i++) {
        want = &listen->uris[i];

        if (!want->waiting) {
            continue;
        }

        ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                      "mcp upstream \"%V\" did not answer resources/subscribe "
                      "in %d ms; the client's subscriptions/listen is "
                      "acknowledged without the resource",
                      &want->interest.upstream->name,
                      NGX_HTTP_MCP_LISTEN_TIME);

        ngx_http_mcp_interest_cancel(&want->interest);
        want->waiting = 0;

        (void) ngx_mcp_session_unsubscribe(ctx->conf->zone,
                                           ctx->caller.session,
                                           &want->interest.uri);
    }

    listen->waiting = 1;

    ngx_http_mcp_listen_next(listen);
}


/* a subscription or feed is ready; opens the stream after the last one */

static void
ngx_http_mcp_listen_next(ngx_http_mcp_listen_t *listen)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    if (--listen->waiting) {
        return;
    }

    r = listen->r;
    c = r->connection;

    ngx_http_mcp_listen_stop(listen);

    ngx_http_finalize_request(r, ngx_http_mcp_listen_open(listen));
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_mcp_listen_open(ngx_http_mcp_listen_t *listen)
{
    ngx_int_t            rc;
    ngx_str_t           *uri;
    ngx_uint_t           i, n;
    ngx_http_request_t  *r;
    ngx_http_mcp_ctx_t  *ctx;

    r = listen->r;
    ctx = listen->ctx;

    uri = listen->filter.uris.elts;
    n = listen->filter.uris.nelts;

    listen->filter.uris.nelts = 0;

    for (i = 0; i < n; i++) {
        if (listen->uris[i].accepted) {
            uri[listen->filter.uris.nelts++] = listen->uris[i].uri;
        }
    }

    ctx->listen = ngx_mcp_listen_acknowledge(r->pool, &ctx->message->id,
                                             &listen->filter);
    if (ctx->listen.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_mcp_stream_open(r, NGX_MCP_GENERAL_CHANNEL, NULL, 0, NULL);

    if (rc == NGX_DONE) {

        /* the subscriber ends with the stream */

        listen->opened = 1;
    }

    return rc;
}


static void
ngx_http_mcp_listen_stop(ngx_http_mcp_listen_t *listen)
{
    ngx_uint_t                  i;
    ngx_http_mcp_listen_uri_t  *want;

    if (listen->timer.timer_set) {
        ngx_del_timer(&listen->timer);
    }

    if (listen->connecting) {
        listen->connecting = 0;
        ngx_http_mcp_feed_cancel(listen->feeds);
    }

    for (i = 0; listen->uris && i < listen->filter.uris.nelts; i++) {
        want = &listen->uris[i];

        if (want->waiting) {
            want->waiting = 0;
            ngx_http_mcp_interest_cancel(&want->interest);
        }

        if (want->connecting) {
            want->connecting = 0;
            ngx_http_mcp_feed_cancel(want->feeds);
        }
    }
}


static void
ngx_http_mcp_listen_cleanup(void *data)
{
    ngx_http_mcp_listen_t *listen = data;

    if (listen->opened) {
        return;
    }

    ngx_http_mcp_listen_stop(listen);

    ngx_mcp_session_end(listen->ctx->conf->zone, listen->ctx->caller.session,
                        NGX_MCP_COUNTER_SESSIONS_DELETED);
}
