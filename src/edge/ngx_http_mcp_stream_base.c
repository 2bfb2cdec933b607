
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_stream_body.h"


#define NGX_HTTP_MCP_SCRATCH        (72 * 1024)
#define NGX_HTTP_MCP_SCRATCH_KEEP   (256 * 1024)


static ngx_int_t ngx_http_mcp_stream_grow(ngx_http_mcp_streams_t *streams);
static ngx_http_mcp_deadlines_t *ngx_http_mcp_deadlines_get(
    ngx_http_mcp_streams_t *streams, ngx_msec_t interval);
static void ngx_http_mcp_stream_clear_deadline(ngx_http_mcp_stream_t *s);


static u_char  *ngx_http_mcp_scratch;
static size_t   ngx_http_mcp_scratch_size;


ngx_http_mcp_stream_t *
ngx_http_mcp_stream_alloc(ngx_mcp_zone_t *zone)
{
    uint32_t                 local;
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->ctx[NGX_MCP_CTX_STREAMS];

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
    s->zs.local = local;

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

    /* the stack is empty: the lowest new number is pushed last */

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
    ngx_http_mcp_stream_clear_deadline(s);

    streams->slots[s->zs.local] = NULL;
    streams->unused[streams->nunused++] = s->zs.local;
    streams->n--;

    if (s->listen.data) {
        ngx_free(s->listen.data);
    }

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


static ngx_http_mcp_deadlines_t *
ngx_http_mcp_deadlines_get(ngx_http_mcp_streams_t *streams,
    ngx_msec_t interval)
{
    ngx_queue_t               *q;
    ngx_http_mcp_deadlines_t  *deadlines;

    for (q = ngx_queue_head(&streams->deadlines);
         q != ngx_queue_sentinel(&streams->deadlines);
         q = ngx_queue_next(q))
    {
        deadlines = ngx_queue_data(q, ngx_http_mcp_deadlines_t, link);

        if (deadlines->interval == interval) {
            return deadlines;
        }
    }

    /* the element is never freed: there is one for each configured interval */

    deadlines = ngx_alloc(sizeof(ngx_http_mcp_deadlines_t), ngx_cycle->log);
    if (deadlines == NULL) {
        return NULL;
    }

    deadlines->interval = interval;

    ngx_queue_init(&deadlines->streams);
    ngx_queue_insert_tail(&streams->deadlines, &deadlines->link);

    return deadlines;
}


void
ngx_http_mcp_stream_set_deadline(ngx_http_mcp_stream_t *s, ngx_uint_t progress)
{
    ngx_msec_t                 interval;
    ngx_http_mcp_streams_t    *streams;
    ngx_http_mcp_deadlines_t  *deadlines;

    if (s->unsent && s->slow && !progress) {
        return;
    }

    ngx_http_mcp_stream_clear_deadline(s);

    s->slow = (s->unsent != 0);

    if (!s->slow && s->closed) {
        return;
    }

    interval = s->slow ? s->clcf->send_timeout : s->conf->stream_heartbeat;

    if (interval == 0) {
        return;
    }

    streams = s->streams;

    deadlines = ngx_http_mcp_deadlines_get(streams, interval);
    if (deadlines == NULL) {
        return;
    }

    s->has_deadline = 1;
    s->deadline = ngx_current_msec + interval;

    ngx_queue_insert_tail(&deadlines->streams, &s->due);

    if (!streams->tick.timer_set
        || (ngx_msec_int_t) (streams->tick.timer.key - s->deadline) > 0)
    {
        ngx_add_timer(&streams->tick, interval);
    }
}


static void
ngx_http_mcp_stream_clear_deadline(ngx_http_mcp_stream_t *s)
{
    s->slow = 0;

    if (s->has_deadline) {
        s->has_deadline = 0;
        ngx_queue_remove(&s->due);
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


u_char *
ngx_http_mcp_stream_scratch_take(u_char *p)
{
    u_char  *scratch;

    scratch = ngx_http_mcp_scratch;

    if (ngx_http_mcp_scratch_size <= NGX_HTTP_MCP_SCRATCH_KEEP
        || p < scratch || p >= scratch + ngx_http_mcp_scratch_size)
    {
        return NULL;
    }

    ngx_http_mcp_scratch = NULL;
    ngx_http_mcp_scratch_size = 0;

    return scratch;
}


void
ngx_http_mcp_stream_scratch_give(ngx_mcp_memory_t *memory)
{
    if (ngx_http_mcp_scratch) {
        ngx_free(ngx_http_mcp_scratch);
    }

    ngx_http_mcp_scratch = memory->start;
    ngx_http_mcp_scratch_size = memory->end - memory->start;

    memory->start = NULL;
}


void
ngx_http_mcp_stream_sent(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_stream_set_deadline(s, 1);

    if (s->unsent < s->conf->stream_buffer) {
        ngx_http_mcp_stream_queue(s);
    }
}


ngx_int_t
ngx_http_mcp_stream_write(ngx_http_mcp_stream_t *s, u_char *p, size_t len)
{
    if (s->body->write(s, p, len) != NGX_OK) {
        s->broken = 1;
        return NGX_ERROR;
    }

    ngx_http_mcp_stream_set_deadline(s, 0);

    return NGX_OK;
}


u_char *
ngx_http_mcp_stream_chunk(u_char *p, size_t *len)
{
    u_char  *head;
    u_char   size[NGX_HTTP_MCP_STREAM_HEAD];

    head = ngx_mcp_hex_print(size, *len);
    *head++ = CR;
    *head++ = LF;

    p[*len] = CR;
    p[*len + 1] = LF;

    p -= head - size;
    ngx_memcpy(p, size, head - size);

    *len += (head - size) + 2;

    return p;
}


void
ngx_http_mcp_stream_count(ngx_http_mcp_stream_t *s, ngx_uint_t n)
{
    s->sent += (uint32_t) n;
}


void
ngx_http_mcp_stream_close(ngx_http_mcp_stream_t *s, ngx_mcp_counter_e counter)
{
    ngx_http_mcp_stream_owner_t  *owner;

    if (s->closed) {
        return;
    }

    owner = s->owner;

    ngx_http_mcp_stream_unlink(s, counter);
    s->body->end(s);

    if (owner) {
        owner->closed(owner->data);
    }
}


void
ngx_http_mcp_stream_done(ngx_http_mcp_stream_t *s)
{
    s->owner = NULL;

    ngx_http_mcp_stream_close(s, NGX_MCP_COUNTER_STREAMS_DONE);
}


void
ngx_http_mcp_stream_drop(ngx_http_mcp_stream_t *s, ngx_mcp_counter_e counter)
{
    ngx_http_mcp_stream_owner_t  *owner;

    owner = s->owner;

    ngx_http_mcp_stream_unlink(s, counter);
    s->body->drop(s);

    if (owner) {
        owner->closed(owner->data);
    }
}


void
ngx_http_mcp_stream_unlink(ngx_http_mcp_stream_t *s, ngx_mcp_counter_e counter)
{
    ngx_http_mcp_ctx_t  *ctx;

    if (s->closed) {
        return;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, s->connection->log, 0,
                   "mcp stream %uD closed: %ui", s->zs.local,
                   (ngx_uint_t) counter);

    s->closed = 1;

    if (!s->direct) {
        ngx_http_mcp_stream_unfollow(s);
        ngx_mcp_stream_close(s->streams->zone, &s->zs, counter);
    }

    ngx_http_mcp_stream_leave_group(s);
    ngx_http_mcp_stream_clear_deadline(s);

    if (s->request) {
        ctx = ngx_http_get_module_ctx(s->request, ngx_http_mcp_module);
        ctx->stream = NULL;
    }
}
