
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_fanout.h"


/*
 * Fanouts whose clients have left use at most one eighth of worker_connections:
 * each uses the connection of its client and one to each upstream.
 */
#define NGX_HTTP_MCP_FANOUT_SHARE  8


static ngx_uint_t ngx_http_mcp_fanout_has_session(
    ngx_http_mcp_fanout_t *fanout, ngx_http_mcp_upstream_t *u);
static ngx_int_t ngx_http_mcp_fanout_send(ngx_http_mcp_fanout_t *fanout,
    ngx_http_mcp_upstream_t *u);
static void ngx_http_mcp_fanout_enqueue(ngx_http_mcp_fanout_t *fanout);
static void ngx_http_mcp_fanout_dequeue(ngx_http_mcp_fanout_t *fanout);
static void ngx_http_mcp_fanout_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_fanout_timeout(ngx_event_t *ev);
static void ngx_http_mcp_fanout_cleanup(void *data);


/* the worker's running fanouts, and those whose clients have left */

static ngx_queue_t  ngx_http_mcp_fanouts = {
    &ngx_http_mcp_fanouts, &ngx_http_mcp_fanouts
};

static ngx_queue_t  ngx_http_mcp_fanouts_left = {
    &ngx_http_mcp_fanouts_left, &ngx_http_mcp_fanouts_left
};

/* number of connections that the latter use */

static ngx_uint_t  ngx_http_mcp_fanouts_left_n;


ngx_http_mcp_fanout_t *
ngx_http_mcp_fanout_create(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t     *cln;
    ngx_http_mcp_fanout_t  *fanout;

    fanout = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_fanout_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (fanout == NULL || cln == NULL) {
        return NULL;
    }

    fanout->r = r;

    fanout->timer.handler = ngx_http_mcp_fanout_timeout;
    fanout->timer.data = fanout;
    fanout->timer.log = r->connection->log;

    cln->handler = ngx_http_mcp_fanout_cleanup;
    cln->data = fanout;

    return fanout;
}


ngx_int_t
ngx_http_mcp_fanout_start(ngx_http_mcp_fanout_t *fanout,
    ngx_http_mcp_router_t *router)
{
    ngx_uint_t                max;
    ngx_http_mcp_upstream_t  *u;

    max = fanout->only ? 1 : router->n;

    if (max == 0) {
        return NGX_DECLINED;
    }

    fanout->ureqs = ngx_pcalloc(fanout->r->pool,
                                max * sizeof(ngx_http_mcp_upstream_request_t));
    if (fanout->ureqs == NULL) {
        return NGX_ERROR;
    }

    if (fanout->only) {

        if (ngx_http_mcp_fanout_send(fanout, fanout->only) == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (fanout->n == 0) {
            return NGX_DECLINED;
        }

        ngx_http_mcp_fanout_enqueue(fanout);

        return NGX_OK;
    }

    for (u = ngx_http_mcp_router_next(router, NULL);
         u;
         u = ngx_http_mcp_router_next(router, u))
    {
        /* an upstream without a session of this client need not be probed */

        if (ngx_http_mcp_fanout_has_session(fanout, u)
            && ngx_http_mcp_fanout_send(fanout, u) == NGX_ERROR
            && fanout->n == 0)
        {
            return NGX_ERROR;
        }
    }

    if (fanout->n == 0) {
        return NGX_DECLINED;
    }

    ngx_http_mcp_fanout_enqueue(fanout);

    return NGX_OK;
}


static void
ngx_http_mcp_fanout_enqueue(ngx_http_mcp_fanout_t *fanout)
{
    ngx_queue_insert_tail(&ngx_http_mcp_fanouts, &fanout->queue);

    /* a response to one upstream may be long, so its time is not limited */

    if (fanout->only == NULL) {
        ngx_add_timer(&fanout->timer, NGX_HTTP_MCP_FANOUT_TIME);
    }
}


static void
ngx_http_mcp_fanout_dequeue(ngx_http_mcp_fanout_t *fanout)
{
    if (fanout->queue.next == NULL) {
        return;
    }

    ngx_queue_remove(&fanout->queue);
    fanout->queue.next = NULL;

    if (fanout->left) {
        fanout->left = 0;
        ngx_http_mcp_fanouts_left_n -= fanout->n + 1;
    }
}


static ngx_uint_t
ngx_http_mcp_fanout_has_session(ngx_http_mcp_fanout_t *fanout,
    ngx_http_mcp_upstream_t *u)
{
    ngx_mcp_upstream_session_t  us;

    return ngx_mcp_upstream_session_peek(u->zone, fanout->owner, &u->name, &us)
           == NGX_OK;
}


static ngx_int_t
ngx_http_mcp_fanout_send(ngx_http_mcp_fanout_t *fanout,
    ngx_http_mcp_upstream_t *u)
{
    ngx_int_t                         rc;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = &fanout->ureqs[fanout->n];

    ngx_memzero(ureq, sizeof(ngx_http_mcp_upstream_request_t));

    ureq->r = fanout->r;
    ureq->upstream = u;
    ureq->owner = fanout->owner;
    ureq->tenant = fanout->tenant;
    ureq->serial = fanout->serial;
    ureq->scope = fanout->scope;
    ureq->body = fanout->body;
    ureq->stateful = 1;
    ureq->existing = 1;
    ureq->answered = 1;
    ureq->message = fanout->message;
    ureq->done = ngx_http_mcp_fanout_done;
    ureq->data = fanout;

    rc = ngx_http_mcp_upstream_request_start(ureq);

    if (rc == NGX_OK) {
        fanout->n++;
        fanout->running++;
    }

    return rc;
}


/* never called during ngx_http_mcp_upstream_request_start() */

static void
ngx_http_mcp_fanout_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_fanout_t  *fanout;

    fanout = ureq->data;

    if (ureq->scope.dots && ++fanout->dots == fanout->n) {
        fanout->refused = ureq->upstream;
    }

    /* the request has ended, and must not be aborted */

    ureq->r = NULL;

    if (--fanout->running) {
        return;
    }

    if (fanout->timer.timer_set) {
        ngx_del_timer(&fanout->timer);
    }

    ngx_http_mcp_fanout_dequeue(fanout);

    fanout->done(fanout);
}


static void
ngx_http_mcp_fanout_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_fanout_t  *fanout;

    static ngx_str_t  response = ngx_string("a response");

    fanout = ev->data;

    ngx_log_error(NGX_LOG_INFO, ev->log, 0,
                  "mcp %ui of %ui upstreams have not answered %V of a client "
                  "after %d ms; the module does not wait for them",
                  fanout->running, fanout->n,
                  fanout->scope.method.len ? &fanout->scope.method : &response,
                  NGX_HTTP_MCP_FANOUT_TIME);

    ngx_http_mcp_fanout_abort(fanout);
}


void
ngx_http_mcp_fanout_abort(ngx_http_mcp_fanout_t *fanout)
{
    ngx_uint_t  i;

    for (i = 0; i < fanout->n; i++) {
        if (fanout->ureqs[i].r) {
            ngx_http_mcp_upstream_request_abort(&fanout->ureqs[i]);
        }
    }
}


void
ngx_http_mcp_fanout_left(ngx_http_request_t *r)
{
    ngx_uint_t              max;
    ngx_queue_t            *q;
    ngx_http_mcp_fanout_t  *fanout;

    q = ngx_queue_head(&ngx_http_mcp_fanouts);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_fanouts)) {

        fanout = ngx_queue_data(q, ngx_http_mcp_fanout_t, queue);
        q = ngx_queue_next(q);

        if (fanout->r == r) {
            ngx_queue_remove(&fanout->queue);
            ngx_queue_insert_tail(&ngx_http_mcp_fanouts_left, &fanout->queue);

            fanout->left = 1;
            ngx_http_mcp_fanouts_left_n += fanout->n + 1;

            if (!fanout->timer.timer_set) {
                ngx_add_timer(&fanout->timer, NGX_HTTP_MCP_FANOUT_TIME);
            }
        }
    }

    max = ngx_cycle->connection_n / NGX_HTTP_MCP_FANOUT_SHARE;

    while (ngx_http_mcp_fanouts_left_n > max) {

        q = ngx_queue_head(&ngx_http_mcp_fanouts_left);
        fanout = ngx_queue_data(q, ngx_http_mcp_fanout_t, queue);

        ngx_log_error(NGX_LOG_INFO, fanout->r->connection->log, 0,
                      "mcp does not wait for the answer of an upstream to a "
                      "notification or response: the client has left, and "
                      "such messages keep more than an eighth of "
                      "\"worker_connections\"");

        ngx_http_mcp_fanout_dequeue(fanout);
        ngx_http_mcp_fanout_abort(fanout);
    }
}


void
ngx_http_mcp_fanout_stop(ngx_http_mcp_fanout_t *fanout)
{
    ngx_uint_t  i;

    for (i = 0; i < fanout->n; i++) {
        if (fanout->ureqs[i].r) {
            ngx_http_mcp_upstream_request_cleanup(&fanout->ureqs[i]);
        }
    }

    if (fanout->timer.timer_set) {
        ngx_del_timer(&fanout->timer);
    }

    ngx_http_mcp_fanout_dequeue(fanout);
}


static void
ngx_http_mcp_fanout_cleanup(void *data)
{
    ngx_http_mcp_fanout_stop(data);
}
