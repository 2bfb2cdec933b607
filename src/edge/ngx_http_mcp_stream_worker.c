
#include "ngx_http_mcp_stream_body.h"
#include "ngx_http_mcp_turn.h"


/* one turn of the event loop ends for streams after so much */
#define NGX_HTTP_MCP_TURN_STREAMS   512

/* deadlines are met this late, so that many are met at once */
#define NGX_HTTP_MCP_TICK           50

#define NGX_HTTP_MCP_SCRATCH        (72 * 1024)
#define NGX_HTTP_MCP_SCRATCH_KEEP   (256 * 1024)


static ngx_int_t ngx_http_mcp_stream_grow(ngx_http_mcp_streams_t *streams);
static void ngx_http_mcp_stream_turn_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_stream_next(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t **s);
static ngx_http_mcp_pace_t *ngx_http_mcp_pace_get(
    ngx_http_mcp_streams_t *streams, ngx_msec_t interval);
static void ngx_http_mcp_stream_tick_handler(ngx_event_t *ev);
static void ngx_http_mcp_stream_due(ngx_http_mcp_stream_t *s);


static u_char  *ngx_http_mcp_scratch;
static size_t   ngx_http_mcp_scratch_size;


ngx_http_mcp_stream_t *
ngx_http_mcp_stream_alloc(ngx_mcp_zone_t *zone)
{
    uint32_t                 local;
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->data;

    if (streams == NULL) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "mcp zone \"%V\" is not initialized in this process",
                      &zone->name);
        return NULL;
    }

    if (streams->nunused == 0
        && ngx_http_mcp_stream_grow(streams) != NGX_OK)
    {
        return NULL;
    }

    s = ngx_calloc(sizeof(ngx_http_mcp_stream_t), ngx_cycle->log);
    if (s == NULL) {
        return NULL;
    }

    local = streams->unused[--streams->nunused];

    s->streams = streams;
    s->local = local;

    ngx_queue_init(&s->out);

    streams->slots[local] = s;
    streams->n++;

    if (streams->draining) {
        ngx_add_timer(&streams->drain, NGX_HTTP_MCP_DRAIN_TICK);
    }

    return s;
}


static ngx_int_t
ngx_http_mcp_stream_grow(ngx_http_mcp_streams_t *streams)
{
    uint32_t                *unused;
    ngx_uint_t               i, n;
    ngx_http_mcp_stream_t  **slots;

    n = streams->nslots ? streams->nslots * 2 : 64;

    slots = ngx_alloc(n * sizeof(ngx_http_mcp_stream_t *), ngx_cycle->log);
    if (slots == NULL) {
        return NGX_ERROR;
    }

    unused = ngx_alloc(n * sizeof(uint32_t), ngx_cycle->log);
    if (unused == NULL) {
        ngx_free(slots);
        return NGX_ERROR;
    }

    ngx_memzero(slots, n * sizeof(ngx_http_mcp_stream_t *));

    if (streams->nslots) {
        ngx_memcpy(slots, streams->slots,
                   streams->nslots * sizeof(ngx_http_mcp_stream_t *));
        ngx_free(streams->slots);
        ngx_free(streams->unused);
    }

    /* the stack is empty; low numbers are used first */

    for (i = n; i > streams->nslots; i--) {
        unused[streams->nunused++] = (uint32_t) (i - 1);
    }

    streams->slots = slots;
    streams->unused = unused;
    streams->nslots = n;

    return NGX_OK;
}


void
ngx_http_mcp_stream_free(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_streams_t  *streams;

    streams = s->streams;

    if (s->queued) {
        ngx_queue_remove(&s->pending);
    }

    ngx_http_mcp_stream_leave_group(s);
    ngx_http_mcp_stream_unpace(s);

    streams->slots[s->local] = NULL;
    streams->unused[streams->nunused++] = s->local;
    streams->n--;

    ngx_free(s);

    if (streams->n == 0 && streams->drain.timer_set) {
        ngx_del_timer(&streams->drain);
    }
}


void
ngx_http_mcp_stream_queue(ngx_http_mcp_stream_t *s)
{
    if (s->queued) {
        return;
    }

    s->queued = 1;
    ngx_queue_insert_tail(&s->streams->pending, &s->pending);

    ngx_post_event(&s->streams->turn, &ngx_posted_events);
}


static void
ngx_http_mcp_stream_turn_handler(ngx_event_t *ev)
{
    ngx_int_t                rc;
    ngx_uint_t               n;
    ngx_msec_t               start;
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = ev->data;
    start = ngx_http_mcp_turn_now();

    for (n = 0; /* void */ ; n++) {

        if (n && n % 32 == 0
            && (n >= NGX_HTTP_MCP_TURN_STREAMS
                || ngx_http_mcp_turn_over(start)))
        {
            break;
        }

        rc = ngx_http_mcp_stream_next(streams, &s);

        if (rc == NGX_DONE) {
            return;
        }

        if (rc == NGX_AGAIN) {
            break;
        }

        if (s) {
            ngx_http_mcp_stream_turn(s);
        }
    }

    ngx_post_event(ev, &ngx_posted_next_events);
}


/* as ngx_http_mcp_stream_news() */

static ngx_int_t
ngx_http_mcp_stream_next(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t **s)
{
    ngx_queue_t  *q;

    if (ngx_queue_empty(&streams->pending)) {
        return ngx_http_mcp_stream_news(streams, s);
    }

    q = ngx_queue_head(&streams->pending);
    *s = ngx_queue_data(q, ngx_http_mcp_stream_t, pending);

    ngx_queue_remove(q);
    (*s)->queued = 0;

    return NGX_OK;
}


static ngx_http_mcp_pace_t *
ngx_http_mcp_pace_get(ngx_http_mcp_streams_t *streams, ngx_msec_t interval)
{
    ngx_queue_t          *q;
    ngx_http_mcp_pace_t  *pace;

    for (q = ngx_queue_head(&streams->paces);
         q != ngx_queue_sentinel(&streams->paces);
         q = ngx_queue_next(q))
    {
        pace = ngx_queue_data(q, ngx_http_mcp_pace_t, link);

        if (pace->interval == interval) {
            return pace;
        }
    }

    /* as many as there are different times in the configuration */

    pace = ngx_alloc(sizeof(ngx_http_mcp_pace_t), ngx_cycle->log);
    if (pace == NULL) {
        return NULL;
    }

    pace->interval = interval;

    ngx_queue_init(&pace->streams);
    ngx_queue_insert_tail(&streams->paces, &pace->link);

    return pace;
}


void
ngx_http_mcp_stream_pace(ngx_http_mcp_stream_t *s, ngx_uint_t progress)
{
    ngx_msec_t               interval;
    ngx_http_mcp_pace_t     *pace;
    ngx_http_mcp_streams_t  *streams;

    if (s->unsent && s->slow && !progress) {
        return;
    }

    ngx_http_mcp_stream_unpace(s);

    s->slow = (s->unsent != 0);

    if (!s->slow && s->closed) {
        return;
    }

    interval = s->slow ? s->clcf->send_timeout : s->conf->stream_heartbeat;

    if (interval == 0) {
        return;
    }

    streams = s->streams;

    pace = ngx_http_mcp_pace_get(streams, interval);
    if (pace == NULL) {
        return;
    }

    s->paced = 1;
    s->deadline = ngx_current_msec + interval;

    ngx_queue_insert_tail(&pace->streams, &s->pace);

    if (!streams->tick.timer_set
        || (ngx_msec_int_t) (streams->tick.timer.key - s->deadline) > 0)
    {
        ngx_add_timer(&streams->tick, interval);
    }
}


void
ngx_http_mcp_stream_unpace(ngx_http_mcp_stream_t *s)
{
    s->slow = 0;

    if (s->paced) {
        s->paced = 0;
        ngx_queue_remove(&s->pace);
    }
}


static void
ngx_http_mcp_stream_tick_handler(ngx_event_t *ev)
{
    ngx_uint_t               n;
    ngx_msec_t               wait;
    ngx_queue_t             *q;
    ngx_msec_int_t           left;
    ngx_http_mcp_pace_t     *pace;
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = ev->data;

    n = 0;
    wait = NGX_CONF_UNSET_MSEC;

    for (q = ngx_queue_head(&streams->paces);
         q != ngx_queue_sentinel(&streams->paces);
         q = ngx_queue_next(q))
    {
        pace = ngx_queue_data(q, ngx_http_mcp_pace_t, link);

        while (!ngx_queue_empty(&pace->streams)) {

            s = ngx_queue_data(ngx_queue_head(&pace->streams),
                               ngx_http_mcp_stream_t, pace);

            left = (ngx_msec_int_t) (s->deadline - ngx_current_msec);

            if (left <= 0 && n++ < NGX_HTTP_MCP_TURN_STREAMS) {
                ngx_http_mcp_stream_due(s);
                continue;
            }

            if (left <= 0) {
                left = 1;

            } else if (left < NGX_HTTP_MCP_TICK) {
                left = NGX_HTTP_MCP_TICK;
            }

            wait = ngx_min(wait, (ngx_msec_t) left);

            break;
        }
    }

    if (wait != NGX_CONF_UNSET_MSEC) {
        ngx_add_timer(ev, wait);
    }
}


static void
ngx_http_mcp_stream_due(ngx_http_mcp_stream_t *s)
{
    u_char  *p;
    u_char   buf[NGX_HTTP_MCP_STREAM_HEAD + sizeof(":\n\n")
                 + NGX_HTTP_MCP_STREAM_TAIL];

    if (s->slow) {
        ngx_log_error(NGX_LOG_INFO, s->connection->log, NGX_ETIMEDOUT,
                      "mcp client did not read from its stream within "
                      "\"send_timeout\"");

        s->timedout = 1;
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_SLOW);
        return;
    }

    p = buf + NGX_HTTP_MCP_STREAM_HEAD;
    ngx_memcpy(p, ":\n\n", 3);

    if (ngx_http_mcp_stream_write(s, p, 3) != NGX_OK) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        return;
    }

    if (s->zs.gap == NGX_MCP_GAP_MORE && s->unsent == 0) {

        /* events have been refused all the time since it was told of that */

        s->zs.gap = NGX_MCP_GAP_NONE;
        ngx_http_mcp_stream_queue(s);

    } else if (ngx_http_mcp_stream_outdated(s)) {
        ngx_http_mcp_stream_queue(s);
    }
}


u_char *
ngx_http_mcp_stream_scratch(size_t size, size_t *room)
{
    size = ngx_max(size, NGX_HTTP_MCP_SCRATCH);

    if (size > ngx_http_mcp_scratch_size
        || (ngx_http_mcp_scratch_size > NGX_HTTP_MCP_SCRATCH_KEEP
            && size <= NGX_HTTP_MCP_SCRATCH_KEEP))
    {
        if (ngx_http_mcp_scratch) {
            ngx_free(ngx_http_mcp_scratch);
            ngx_http_mcp_scratch_size = 0;
        }

        ngx_http_mcp_scratch = ngx_alloc(size, ngx_cycle->log);
        if (ngx_http_mcp_scratch == NULL) {
            return NULL;
        }

        ngx_http_mcp_scratch_size = size;
    }

    *room = ngx_http_mcp_scratch_size;

    return ngx_http_mcp_scratch;
}


ngx_int_t
ngx_http_mcp_stream_init_worker(ngx_mcp_zone_t *zone)
{
    ngx_uint_t               i;
    ngx_http_mcp_streams_t  *streams;

    streams = ngx_calloc(sizeof(ngx_http_mcp_streams_t), ngx_cycle->log);
    if (streams == NULL) {
        return NGX_ERROR;
    }

    streams->zone = zone;

    ngx_queue_init(&streams->pending);
    ngx_queue_init(&streams->pending_groups);
    ngx_queue_init(&streams->unchanged_groups);
    ngx_queue_init(&streams->changed_groups);
    ngx_queue_init(&streams->paces);

    for (i = 0; i < NGX_HTTP_MCP_STREAM_GROUPS; i++) {
        ngx_queue_init(&streams->groups[i]);
    }

    streams->turn.handler = ngx_http_mcp_stream_turn_handler;
    streams->turn.data = streams;
    streams->turn.log = ngx_cycle->log;

    streams->tick.handler = ngx_http_mcp_stream_tick_handler;
    streams->tick.data = streams;
    streams->tick.log = ngx_cycle->log;
    streams->tick.cancelable = 1;

    streams->drain.handler = ngx_http_mcp_stream_drain_handler;
    streams->drain.data = streams;
    streams->drain.log = ngx_cycle->log;

    zone->data = streams;

    return NGX_OK;
}
