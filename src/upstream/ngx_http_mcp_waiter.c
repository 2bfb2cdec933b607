
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_waiter.h"


/* a bucket for each bit of NGX_MCP_RING_KEY() */
#define NGX_HTTP_MCP_WAITER_BUCKETS  64


#define ngx_http_mcp_waiter_queue(zone, kind, n)                              \
    ((ngx_queue_t *) (zone)->ctx[NGX_MCP_CTX_WAITERS]                         \
     + (kind) * NGX_HTTP_MCP_WAITER_BUCKETS                                   \
     + (n) % NGX_HTTP_MCP_WAITER_BUCKETS)


static void ngx_http_mcp_waiter_timeout(ngx_event_t *ev);


ngx_int_t
ngx_http_mcp_waiter_init(ngx_mcp_zone_t *zone)
{
    return ngx_mcp_ctx_queues(zone, NGX_MCP_CTX_WAITERS,
                              NGX_HTTP_MCP_WAIT_KINDS
                              * NGX_HTTP_MCP_WAITER_BUCKETS)
           ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_waiter_start(ngx_http_mcp_waiter_t *w, ngx_mcp_zone_t *zone,
    ngx_uint_t kind, ngx_msec_t time)
{
    ngx_http_mcp_waiter_stop(w);

    w->zone = zone;
    w->kind = kind;
    w->timed = time ? 1 : 0;
    w->end = ngx_current_msec + time;

    w->timer.handler = ngx_http_mcp_waiter_timeout;
    w->timer.data = w;
    w->timer.log = ngx_cycle->log;
    w->timer.cancelable = w->cancelable;

    ngx_http_mcp_waiter_restart(w);
}


void
ngx_http_mcp_waiter_restart(ngx_http_mcp_waiter_t *w)
{
    ngx_msec_int_t  left;

    ngx_queue_insert_tail(ngx_http_mcp_waiter_queue(w->zone, w->kind, w->hash),
                          &w->queue);

    if (w->timed) {
        left = (ngx_msec_int_t) (w->end - ngx_current_msec);
        ngx_add_timer(&w->timer, (ngx_msec_t) ngx_max(left, 1));
    }
}


void
ngx_http_mcp_waiter_stop(ngx_http_mcp_waiter_t *w)
{
    if (ngx_http_mcp_waiter_waiting(w)) {
        ngx_queue_remove(&w->queue);
        w->queue.next = NULL;
    }

    if (w->timer.timer_set) {
        ngx_del_timer(&w->timer);
    }
}


void
ngx_http_mcp_waiter_wake(ngx_mcp_zone_t *zone, ngx_uint_t kind, uint64_t keys)
{
    ngx_uint_t              n;
    ngx_queue_t            *q, *queue, woken;
    ngx_http_mcp_waiter_t  *w;

    /*
     * Moves the waiters to a separate queue, so that a waiter that starts again
     * is not called twice.
     */

    ngx_queue_init(&woken);

    for (n = 0; keys; n++, keys >>= 1) {

        queue = ngx_http_mcp_waiter_queue(zone, kind, n);

        if (keys & 1 && !ngx_queue_empty(queue)) {
            ngx_queue_add(&woken, queue);
            ngx_queue_init(queue);
        }
    }

    /* ready() may stop other waiters of the queue */

    while (!ngx_queue_empty(&woken)) {
        q = ngx_queue_head(&woken);
        w = ngx_queue_data(q, ngx_http_mcp_waiter_t, queue);

        ngx_http_mcp_waiter_stop(w);

        w->ready(w->data);
    }
}


static void
ngx_http_mcp_waiter_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_waiter_t  *w;

    w = ev->data;

    ngx_http_mcp_waiter_stop(w);

    w->late(w->data);
}


ngx_uint_t
ngx_http_mcp_waiter_any(ngx_mcp_zone_t *zone, ngx_uint_t kind)
{
    ngx_uint_t  n;

    for (n = 0; n < NGX_HTTP_MCP_WAITER_BUCKETS; n++) {

        if (!ngx_queue_empty(ngx_http_mcp_waiter_queue(zone, kind, n))) {
            return 1;
        }
    }

    return 0;
}
