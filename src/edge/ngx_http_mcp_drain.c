
#include "ngx_http_mcp_stream_body.h"


/* a client that takes nothing keeps an old worker no longer than this */
#define NGX_HTTP_MCP_DRAIN_SLOW   1500

/* streams that are ended in one turn */
#define NGX_HTTP_MCP_DRAIN_TURN   512

/* while only streams of calls are left, which end with their calls */
#define NGX_HTTP_MCP_DRAIN_WAIT   3600000


static ngx_uint_t ngx_http_mcp_drain_due(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t *s, ngx_uint_t slot, ngx_msec_t elapsed);
static ngx_uint_t ngx_http_mcp_drain_rest(ngx_http_mcp_streams_t *streams,
    ngx_msec_t elapsed);
static void ngx_http_mcp_drain_stream(ngx_http_mcp_streams_t *streams,
    ngx_uint_t slot);


void
ngx_http_mcp_stream_drain(ngx_mcp_zone_t *zone)
{
    ngx_uint_t               i;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->data;

    if (streams == NULL || streams->draining) {
        return;
    }

    streams->draining = 1;
    streams->drain_start = ngx_current_msec;
    streams->drain_next = 0;
    streams->drain_top = 0;
    streams->drain_jitter = ngx_random() % 1000;

    for (i = 0; i < streams->nslots; i++) {
        if (streams->slots[i]) {
            streams->drain_top = i + 1;
        }
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp zone \"%V\" drains %ui streams",
                   &zone->name, streams->n);

    if (streams->n) {
        ngx_add_timer(&streams->drain, NGX_HTTP_MCP_DRAIN_TICK);
    }
}


void
ngx_http_mcp_stream_drain_handler(ngx_event_t *ev)
{
    ngx_uint_t               n;
    ngx_msec_t               elapsed, wait;
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = ev->data;
    elapsed = ngx_current_msec - streams->drain_start;
    wait = NGX_HTTP_MCP_DRAIN_TICK;

    for (n = 0; streams->drain_next < streams->drain_top; n++) {

        if (n == NGX_HTTP_MCP_DRAIN_TURN) {
            wait = 1;
            break;
        }

        s = streams->slots[streams->drain_next];

        if (s && !ngx_http_mcp_drain_due(streams, s, streams->drain_next,
                                         elapsed))
        {
            break;
        }

        ngx_http_mcp_drain_stream(streams, streams->drain_next++);
    }

    if (streams->drain_next >= streams->drain_top
        && !ngx_http_mcp_drain_rest(streams, elapsed))
    {
        wait = NGX_HTTP_MCP_DRAIN_WAIT;
    }

    if (streams->n) {
        ngx_add_timer(ev, wait);
    }
}


/* the streams end in the order of their slots, evenly over the time */

static ngx_uint_t
ngx_http_mcp_drain_due(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t *s, ngx_uint_t slot, ngx_msec_t elapsed)
{
    uint64_t  at;

    at = (uint64_t) s->conf->drain_time
         * (slot * 1000 + streams->drain_jitter);

    return at <= (uint64_t) elapsed * streams->drain_top * 1000;
}


/* whether some are left that have to end */

static ngx_uint_t
ngx_http_mcp_drain_rest(ngx_http_mcp_streams_t *streams, ngx_msec_t elapsed)
{
    ngx_uint_t              i, rest;
    ngx_http_mcp_stream_t  *s;

    rest = 0;

    for (i = 0; i < streams->nslots; i++) {

        ngx_http_mcp_drain_stream(streams, i);

        s = streams->slots[i];

        if (s == NULL || !(s->get || s->closed)) {
            continue;
        }

        rest = 1;

        if (!s->finish
            && elapsed > s->conf->drain_time + NGX_HTTP_MCP_DRAIN_SLOW)
        {
            s->timedout = 1;
            ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_SLOW);
        }
    }

    return rest;
}


static void
ngx_http_mcp_drain_stream(ngx_http_mcp_streams_t *streams, ngx_uint_t slot)
{
    u_char                 *p, *last;
    ngx_msec_t              retry;
    ngx_http_mcp_stream_t  *s;
    u_char                  buf[NGX_HTTP_MCP_STREAM_HEAD
                                + NGX_HTTP_MCP_CLIENT_RETRY
                                + NGX_HTTP_MCP_STREAM_TAIL];

    s = streams->slots[slot];

    if (s == NULL || !s->get || s->closed) {
        return;
    }

    /* events that have arrived go out first */

    ngx_http_mcp_stream_turn(s);

    s = streams->slots[slot];

    if (s == NULL || s->closed || s->unsent) {
        return;
    }

    retry = s->conf->stream_retry;
    retry += ngx_random() % (retry + 1);

    p = buf + NGX_HTTP_MCP_STREAM_HEAD;
    last = s->client->retry(p, retry);

    if (ngx_http_mcp_stream_write(s, p, last - p) != NGX_OK) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        return;
    }

    ngx_http_mcp_stream_close(s, NGX_MCP_COUNTER_STREAMS_DRAINED);
}
