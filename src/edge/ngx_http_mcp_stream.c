
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_stream_body.h"
#include "ngx_http_mcp_turn.h"
#include "ngx_mcp_listen.h"


/* the most streams that are served in one turn of the event loop */
#define NGX_HTTP_MCP_TURN_STREAMS   512

/* a comment of SSE, which clients ignore */
#define NGX_HTTP_MCP_HEARTBEAT      ":\n\n"

/* the least ms between two ticks, each of which serves all due deadlines */
#define NGX_HTTP_MCP_TICK           50


/* SSE events of several messages of the log, which are written at once */

typedef struct {
    u_char       *first;                  /* begin of the events */
    u_char       *last;                   /* end of the events */
    ngx_uint_t    n;                      /* number of messages */
    size_t        len;                    /* bytes of the message read last */
} ngx_http_mcp_frames_t;


/*
 * Events that inform the client of a gap, composed in the scratch memory.  Only
 * the last one has an event id: a client that loses the connection before it
 * resumes with an older id, and is informed of the gap again.
 */

typedef struct {
    u_char       *start;
    u_char       *pos;
    u_char       *last;
    ngx_uint_t    n;                      /* number of notifications */

    /* the last event, which is composed when it is known whether it is last */
    const char   *type;                   /* line "event: ..." of the event;
                                             NULL: the event is a
                                             notification */
    ngx_str_t    *text;                   /* NULL: there is no last event */
    ngx_str_t     uri;                    /* URI that ends the text, or empty */
} ngx_http_mcp_gap_t;


/* bytes that the id of subscriptions/listen adds to a message */
#define ngx_http_mcp_stream_tag(s)                                            \
    ((s)->listen.len ? NGX_MCP_LISTEN_ROOM + (s)->listen.len : 0)


/* ms for which a client that reads nothing may keep an old worker */
#define NGX_HTTP_MCP_DRAIN_SLOW   1500

/* the most streams that are ended in one turn */
#define NGX_HTTP_MCP_DRAIN_TURN   512

/* ms to the next turn if all other streams end with their calls */
#define NGX_HTTP_MCP_DRAIN_WAIT   3600000


static ngx_int_t ngx_http_mcp_stream_make(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_stream_t *s);
static ngx_int_t ngx_http_mcp_stream_open_line(ngx_http_mcp_stream_t *s,
    ngx_mcp_ref_t session, uint32_t channel, ngx_mcp_cursor_t *from);
static ngx_int_t ngx_http_mcp_stream_start(ngx_http_mcp_stream_t *s,
    ngx_uint_t revision);
static ngx_int_t ngx_http_mcp_stream_header(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_stream_advance(ngx_http_mcp_stream_t *s);
static ngx_int_t ngx_http_mcp_stream_session_ended(ngx_http_mcp_stream_t *s);
static ngx_int_t ngx_http_mcp_stream_consume(ngx_http_mcp_stream_t *s,
    size_t *lost);
static ngx_int_t ngx_http_mcp_stream_gather(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_frames_t *frames, size_t room);
static ngx_int_t ngx_http_mcp_stream_large(ngx_http_mcp_stream_t *s,
    ngx_str_t *text, ngx_mcp_memory_t *memory);
static ngx_int_t ngx_http_mcp_stream_text(ngx_http_mcp_stream_t *s,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_stream_send_end(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_stream_break(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);
static void ngx_http_mcp_stream_turn(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_stream_turn_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_stream_next(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t **s);
static void ngx_http_mcp_stream_tick_handler(ngx_event_t *ev);
static void ngx_http_mcp_stream_due(ngx_http_mcp_stream_t *s);
static ngx_int_t ngx_http_mcp_stream_resync(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap, ngx_pool_t *pool);
static ngx_int_t ngx_http_mcp_gap_add(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap, ngx_str_t *text, ngx_str_t *uri);
static ngx_int_t ngx_http_mcp_gap_compose(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap, ngx_uint_t last);
static ngx_int_t ngx_http_mcp_gap_room(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap, size_t size);
static ngx_int_t ngx_http_mcp_stream_gap(ngx_http_mcp_stream_t *s,
    size_t lost);
static ngx_int_t ngx_http_mcp_stream_answer_lost(ngx_http_mcp_stream_t *s);
static ngx_uint_t ngx_http_mcp_drain_due(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t *s, ngx_uint_t slot, ngx_msec_t elapsed);
static ngx_uint_t ngx_http_mcp_drain_rest(ngx_http_mcp_streams_t *streams,
    ngx_msec_t elapsed);
static void ngx_http_mcp_drain_stream(ngx_http_mcp_streams_t *streams,
    ngx_uint_t slot);
static void ngx_http_mcp_stream_drain_handler(ngx_event_t *ev);


static ngx_str_t  ngx_http_mcp_gap_updated =
    ngx_string("{\"jsonrpc\":\"2.0\","
               "\"method\":\"notifications/resources/updated\","
               "\"params\":{\"uri\":");


ngx_int_t
ngx_http_mcp_stream_open(ngx_http_request_t *r, uint32_t channel,
    ngx_mcp_cursor_t *from, ngx_uint_t gap,
    ngx_http_mcp_stream_owner_t *owner)
{
    ngx_int_t               rc;
    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_stream_t  *s;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    s = ngx_http_mcp_stream_alloc(ctx->conf->zone);
    if (s == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s->owner = owner;
    s->get = (owner == NULL);
    s->gap = gap;

    rc = ngx_http_mcp_stream_make(r, ctx, s);

    if (rc == NGX_OK && !s->direct) {
        rc = ngx_http_mcp_stream_open_line(s, ctx->caller.session, channel,
                                           from);
    }

    if (rc != NGX_OK) {
        s->closed = 1;
        ngx_http_mcp_stream_free(s);

        return (rc == NGX_HTTP_SERVICE_UNAVAILABLE && owner == NULL)
               ? ngx_http_mcp_refuse(r, rc, NGX_MCP_REFUSED,
                                     "the zone has no room for a stream "
                                     "(mcp_zone); try again later")
               : rc;
    }

    if (s->get && s->zs.channel == NGX_MCP_GENERAL_CHANNEL
        && ngx_http_mcp_stream_join_group(s) != NGX_OK)
    {
        goto failed;
    }

    ctx->responded = 1;
    ctx->response = 2;

    /*
     * A parked stream ends with its connection, so no further request may come.
     * The response to a GET for the general channel has no "Connection: close"
     * all the same: with it, some clients regard a broken connection as the end
     * of the response, and do not reconnect.
     */

    if (s->get && s->conf->stream_park
        && (ctx->listen.len || s->zs.channel != NGX_MCP_GENERAL_CHANNEL))
    {
        r->keepalive = 0;
    }

    rc = ngx_http_mcp_stream_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        ngx_http_mcp_stream_unlink(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        ngx_http_mcp_stream_free(s);
        return (rc == NGX_OK) ? NGX_ERROR : rc;
    }

    if (ngx_http_mcp_stream_hold(s, r) != NGX_OK) {
        goto failed;
    }

    ctx->stream = s;

    rc = ctx->listen.len
         ? ngx_http_mcp_stream_text(s, &ctx->listen)
         : ngx_http_mcp_stream_start(s, ctx->caller.revision);

    if (rc != NGX_OK) {
        s->broken = 1;
    }

    ngx_http_mcp_stream_queue(s);

    return s->get ? NGX_DONE : NGX_OK;

failed:

    ngx_http_mcp_stream_unlink(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_http_mcp_stream_free(s);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_stream_make(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_stream_t *s)
{
    s->conf = ctx->conf;
    s->client = ctx->client;
    s->clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    s->connection = r->connection;
    s->offered = ctx->session.offered & NGX_MCP_OFFERED_ALL;

    if (ctx->listen.len == 0) {
        s->direct = ctx->client->sessionless;
        return NGX_OK;
    }

    s->listen.len = ctx->message->id.len;
    s->listen.data = ngx_alloc(s->listen.len, r->connection->log);

    if (s->listen.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(s->listen.data, ctx->message->id.data, s->listen.len);

    return NGX_OK;
}


/* returns NGX_OK, or the HTTP status with which the request is refused */

static ngx_int_t
ngx_http_mcp_stream_open_line(ngx_http_mcp_stream_t *s, ngx_mcp_ref_t session,
    uint32_t channel, ngx_mcp_cursor_t *from)
{
    ngx_int_t  rc;

    s->zs.session = session;
    s->zs.channel = channel;

    rc = ngx_mcp_stream_open(s->conf->zone, &s->zs, from,
                             s->conf->stream_limit);

    if (rc == NGX_DECLINED && channel != NGX_MCP_GENERAL_CHANNEL && s->get) {
        s->gap = 1;
        s->zs.channel = NGX_MCP_GENERAL_CHANNEL;

        rc = ngx_mcp_stream_open(s->conf->zone, &s->zs, NULL,
                                 s->conf->stream_limit);
    }

    switch (rc) {

    case NGX_OK:
        break;

    case NGX_DONE:
        return NGX_HTTP_NOT_ALLOWED;

    case NGX_DECLINED:
        return NGX_HTTP_NOT_FOUND;

    default: /* NGX_ERROR */
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    if (s->zs.unknown) {
        s->gap = 1;
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, s->connection->log, 0,
                   "mcp stream %uD opened, line:%uD at %uL-%uL", s->zs.local,
                   s->zs.channel, s->zs.cursor.own, s->zs.cursor.group);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_stream_header(ngx_http_request_t *r)
{
    ngx_table_elt_t           *h;
    ngx_http_core_loc_conf_t  *clcf;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);

    ngx_str_set(&r->headers_out.content_type, "text/event-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_mcp_header_text(r, "Cache-Control", "no-store") != NGX_OK
        || ngx_http_mcp_header_text(r, "X-Accel-Buffering", "no") != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* this header is not sent, but keeps compressing filters from the body */

    h = ngx_http_mcp_header_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 0;
    ngx_str_set(&h->key, "Content-Encoding");
    ngx_str_set(&h->value, "identity");
    r->headers_out.content_encoding = h;

#if (NGX_HTTP_GZIP)
    r->gzip_tested = 1;
    r->gzip_ok = 0;
#endif

    r->limit_rate = 0;
    r->limit_rate_set = 1;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (r->http_version <= NGX_HTTP_VERSION_11
        && clcf->tcp_nodelay
        && ngx_tcp_nodelay(r->connection) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_send_header(r);
}


static ngx_int_t
ngx_http_mcp_stream_start(ngx_http_mcp_stream_t *s, ngx_uint_t revision)
{
    u_char  *p, *last;
    u_char   buf[NGX_HTTP_MCP_STREAM_HEAD + NGX_HTTP_MCP_STREAM_TAIL
                 + NGX_HTTP_MCP_CLIENT_BEGIN];

    p = buf + NGX_HTTP_MCP_STREAM_HEAD;
    last = s->client->begin(s, revision, p);

    return ngx_http_mcp_stream_write(s, p, last - p);
}


/* writes a message that is not from the log; NGX_OK or NGX_ERROR */

static ngx_int_t
ngx_http_mcp_stream_text(ngx_http_mcp_stream_t *s, ngx_str_t *text)
{
    u_char  *buf, *data, *p;
    size_t   room;

    buf = ngx_http_mcp_stream_scratch(NGX_HTTP_MCP_STREAM_HEAD
                                      + NGX_HTTP_MCP_STREAM_ID + text->len
                                      + NGX_HTTP_MCP_STREAM_END
                                      + NGX_HTTP_MCP_STREAM_TAIL, &room);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    buf += NGX_HTTP_MCP_STREAM_HEAD;
    data = s->client->event(s, buf);
    p = ngx_cpymem(data, text->data, text->len);

    ngx_mcp_sse_flatten(data, p);

    *p++ = LF;
    *p++ = LF;

    ngx_http_mcp_stream_count(s, 1);

    return ngx_http_mcp_stream_write(s, buf, p - buf);
}


/*
 * Writes the end of a stream that the server ends: the result of
 * subscriptions/listen, or "retry:"
 */

static ngx_int_t
ngx_http_mcp_stream_send_end(ngx_http_mcp_stream_t *s)
{
    u_char      *p, *last;
    ngx_str_t    text;
    ngx_msec_t   retry;
    u_char       buf[NGX_HTTP_MCP_STREAM_HEAD + NGX_HTTP_MCP_CLIENT_RETRY
                     + NGX_HTTP_MCP_STREAM_TAIL];
    u_char       result[NGX_MCP_LISTEN_ROOM + 2 * NGX_MCP_ID_MAX];

    if (s->listen.len) {
        text.data = result;
        text.len = ngx_mcp_listen_result(result, &s->listen) - result;

        return ngx_http_mcp_stream_text(s, &text);
    }

    if (s->client->retry == NULL) {
        return NGX_OK;
    }

    retry = s->conf->stream_retry;
    retry += ngx_random() % (retry + 1);

    p = buf + NGX_HTTP_MCP_STREAM_HEAD;
    last = s->client->retry(p, retry);

    return ngx_http_mcp_stream_write(s, p, last - p);
}


/* gives a stream its turn; the stream may be freed in it */

static void
ngx_http_mcp_stream_turn(ngx_http_mcp_stream_t *s)
{
    if (s->finish) {
        ngx_http_mcp_stream_finish(s);
        return;
    }

    if (s->closed) {
        return;
    }

    if (s->parkable && ngx_http_mcp_stream_park(s) == NGX_ERROR) {
        s->broken = 1;
    }

    switch (ngx_http_mcp_stream_advance(s)) {

    case NGX_DONE:
        ngx_http_mcp_stream_done(s);
        return;

    case NGX_DECLINED:
        /* the session has ended, or a newer stream replaces this one */

        if (s->listen.len && ngx_http_mcp_stream_send_end(s) != NGX_OK) {
            ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
            return;
        }

        ngx_http_mcp_stream_close(s, NGX_MCP_COUNTER_STREAMS_SESSION);
        return;

    case NGX_ABORT:
        ngx_log_error(NGX_LOG_INFO, s->connection->log, 0,
                      "mcp client is too slow: newer events have replaced the "
                      "next event of its stream");
        ngx_http_mcp_stream_break(s, NGX_MCP_COUNTER_STREAMS_SLOW);
        return;

    case NGX_ERROR:
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        return;

    default: /* NGX_OK */
        break;
    }

    if (s->source_waits && s->unsent < s->conf->stream_buffer) {
        s->source_waits = 0;
        s->owner->room(s->owner->data);
    }
}


/*
 * Closes a stream that its client is to open again.  Older clients only do so
 * if the response is incomplete; unsent bytes of a held stream would be dropped
 * then.
 */

static void
ngx_http_mcp_stream_break(ngx_http_mcp_stream_t *s, ngx_mcp_counter_e counter)
{
    s->cut = (s->chunked && s->listen.len == 0
              && s->zs.channel == NGX_MCP_GENERAL_CHANNEL
              && (s->held == NULL || s->unsent == 0));

    ngx_http_mcp_stream_close(s, counter);
}


/*
 * Writes messages of the log.  NGX_OK; NGX_DONE: the line has ended;
 * NGX_DECLINED: the stream has to close; NGX_ABORT: the log has overwritten
 * messages that the stream did not write; NGX_ERROR: the connection is broken.
 */

static ngx_int_t
ngx_http_mcp_stream_advance(ngx_http_mcp_stream_t *s)
{
    size_t     lost;
    ngx_int_t  rc;

    if (s->broken) {
        return NGX_ERROR;
    }

    if (s->direct) {
        return s->answered ? NGX_DONE : NGX_OK;
    }

    ngx_http_mcp_stream_unfollow(s);

    if (s->gap) {
        s->gap = 0;

        if (s->zs.channel == NGX_MCP_GENERAL_CHANNEL
            && ngx_http_mcp_stream_gap(s, NGX_MCP_LOST_UNKNOWN) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    while (s->unsent < s->conf->stream_buffer) {

        rc = ngx_http_mcp_stream_consume(s, &lost);

        switch (rc) {

        case NGX_OK:
            continue;

        case NGX_AGAIN:
            s->waiting = 0;
            return NGX_OK;

        case NGX_DONE:
            if (s->answer_lost
                && ngx_http_mcp_stream_answer_lost(s) != NGX_OK)
            {
                return NGX_ERROR;
            }

            s->answer_lost = 0;

            return NGX_DONE;

        case NGX_ABORT:
            if (s->zs.channel != NGX_MCP_GENERAL_CHANNEL) {
                s->answer_lost = 1;

            } else if (s->unsent) {
                return NGX_ABORT;
            }

            if (ngx_http_mcp_stream_gap(s, lost) != NGX_OK) {
                return NGX_ERROR;
            }

            continue;

        case NGX_DECLINED:
            return s->owner ? ngx_http_mcp_stream_session_ended(s) : rc;

        default: /* NGX_ERROR */
            return rc;
        }
    }

    return NGX_OK;
}


/*
 * The stream of a call goes on without its channel until the call ends, so that
 * the connection can be used again.
 */

static ngx_int_t
ngx_http_mcp_stream_session_ended(ngx_http_mcp_stream_t *s)
{
    ngx_mcp_stream_close(s->streams->zone, &s->zs,
                         NGX_MCP_COUNTER_STREAMS_SESSION);

    s->direct = 1;
    s->unlogged = 0;

    if (!s->answered) {
        return NGX_OK;
    }

    /* the channel may have the answer, but the stream does not read it again */

    if (s->answer.len && ngx_http_mcp_stream_text(s, &s->answer) != NGX_OK) {
        return NGX_ERROR;
    }

    return NGX_DONE;
}


/*
 * Writes as many messages of the log as fit into one write.  NGX_OK: there may
 * be more; NGX_AGAIN: there are no more; other codes are those of
 * ngx_http_mcp_stream_advance().
 */

static ngx_int_t
ngx_http_mcp_stream_consume(ngx_http_mcp_stream_t *s, size_t *lost)
{
    ngx_int_t              rc;
    ngx_http_mcp_frames_t  frames;

    rc = ngx_http_mcp_stream_gather(s, &frames, 0);

    if (rc == NGX_BUSY && frames.n == 0) {

        /* the message needs more memory than most */

        rc = ngx_http_mcp_stream_gather(s, &frames, NGX_HTTP_MCP_STREAM_HEAD
                                                    + NGX_HTTP_MCP_STREAM_ID
                                                    + frames.len
                                                    + ngx_http_mcp_stream_tag(s)
                                                    + NGX_HTTP_MCP_STREAM_END
                                                    + NGX_HTTP_MCP_STREAM_TAIL);
    }

    if (frames.n) {
        ngx_http_mcp_stream_count(s, frames.n);

        if (ngx_http_mcp_stream_write(s, frames.first,
                                      frames.last - frames.first)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    switch (rc) {

    case NGX_BUSY:
        return frames.n ? NGX_OK : NGX_ERROR;

    case NGX_AGAIN:
        if (s->group == NULL) {
            return NGX_AGAIN;
        }

        rc = ngx_http_mcp_stream_follow(s);

        return (rc == NGX_OK) ? NGX_AGAIN
                              : (rc == NGX_AGAIN) ? NGX_OK : NGX_ERROR;

    case NGX_DECLINED:

        /* another stream carries the channel, and gets the session's events */

        ngx_http_mcp_stream_unindex(s);
        return NGX_AGAIN;

    case NGX_ABORT:
        *lost = frames.len;
        return NGX_ABORT;

    case NGX_ERROR:
        return NGX_DECLINED;

    default: /* NGX_OK, NGX_DONE */
        return rc;
    }
}


/*
 * Reads messages from the log as SSE events into at least "room" bytes of
 * memory.  NGX_OK: the memory or mcp_stream_buffer is full; NGX_AGAIN: the log
 * has no more; NGX_BUSY: the next message, of frames->len bytes, does not fit,
 * or there is no memory; other codes are those of ngx_mcp_stream_read().
 */

static ngx_int_t
ngx_http_mcp_stream_gather(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_frames_t *frames, size_t room)
{
    u_char     *p, *id, *data, *end;
    ngx_int_t   rc;
    ngx_uint_t  flags;
    u_char      text[NGX_HTTP_MCP_STREAM_ID];

    ngx_memzero(frames, sizeof(ngx_http_mcp_frames_t));

    p = ngx_http_mcp_stream_scratch(room, &room);
    if (p == NULL) {
        return NGX_BUSY;
    }

    end = p + room - ngx_http_mcp_stream_tag(s) - NGX_HTTP_MCP_STREAM_END
          - NGX_HTTP_MCP_STREAM_TAIL;
    p += NGX_HTTP_MCP_STREAM_HEAD;

    do {
        if (s->unlogged && s->zs.cursor.own + 1 >= s->unlogged) {
            return NGX_AGAIN;
        }

        data = p + NGX_HTTP_MCP_STREAM_ID;

        if (data >= end) {
            return NGX_OK;
        }

        rc = ngx_mcp_stream_read(s->streams->zone, &s->zs, data, end - data,
                                 &frames->len, &flags);
        if (rc != NGX_OK) {
            return rc;
        }

        if (flags & NGX_MCP_EVENT_RESPONSE) {
            s->answer_lost = 0;
            s->answer.len = 0;
        }

        if (s->listen.len) {
            frames->len = ngx_mcp_listen_tag(data, frames->len, &s->listen);

            if (frames->len == 0) {
                continue;
            }
        }

        id = s->client->event(s, text);

        if (frames->n++ == 0) {
            frames->first = data - (id - text);

        } else {
            ngx_memmove(p + (id - text), data, frames->len);
            data = p + (id - text);
        }

        ngx_memcpy(data - (id - text), text, id - text);

        p = data + frames->len;
        ngx_mcp_sse_flatten(data, p);

        *p++ = LF;
        *p++ = LF;

        frames->last = p;

        if (s->unsent + (p - frames->first) >= s->conf->stream_buffer) {
            return NGX_OK;
        }

    } while (s->zs.more);

    return NGX_AGAIN;
}


ngx_uint_t
ngx_http_mcp_stream_behind(ngx_http_mcp_stream_t *s, ngx_mcp_cursor_t *place,
    size_t len)
{
    ngx_uint_t  n;

    ngx_http_mcp_stream_queue(s);

    s->waiting += len;

    n = ngx_min(s->conf->event_max / 8, NGX_MCP_CHANNEL_WAITING / 2);

    if (s->unsent + s->waiting < s->conf->stream_buffer
        && place->own < s->zs.cursor.own + ngx_max(n, 1))
    {
        return 0;
    }

    s->source_waits = 1;

    return 1;
}


void
ngx_http_mcp_stream_answer(ngx_http_mcp_stream_t *s, ngx_str_t *text)
{
    s->answered = 1;

    if (s->unsent) {
        s->answer.data = ngx_pstrdup(s->request->pool, text);
        s->answer.len = s->answer.data ? text->len : 0;
    }
}


ngx_int_t
ngx_http_mcp_stream_send(ngx_http_mcp_stream_t *s, ngx_mcp_cursor_t *place,
    ngx_str_t *text, ngx_mcp_memory_t *memory, ngx_uint_t flags)
{
    ngx_int_t  rc;

    if (s->closed || s->broken) {
        return NGX_ERROR;
    }

    s->unlogged = place->own;

    rc = ngx_http_mcp_stream_advance(s);

    if (rc != NGX_OK) {
        /* the turn of the stream gets the same error, and closes the stream */
        ngx_http_mcp_stream_queue(s);
        return NGX_ERROR;
    }

    if (s->unsent >= s->conf->stream_buffer) {
        s->source_waits = 1;
        return NGX_AGAIN;
    }

    s->unlogged = 0;

    ngx_http_mcp_stream_queue(s);

    if (!s->direct) {
        s->zs.cursor = *place;
    }

    if (flags & NGX_MCP_EVENT_RESPONSE) {
        s->answer_lost = 0;
        s->answered = 1;
    }

    ngx_mcp_count(s->streams->zone, NGX_MCP_COUNTER_EVENTS_OUT, 1);

    if (ngx_http_mcp_stream_large(s, text, memory) != NGX_OK) {
        s->broken = 1;
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Writes a message as an SSE event.  If *memory has the message and room around
 * it, the event is made there, and *memory becomes the scratch memory.
 */

static ngx_int_t
ngx_http_mcp_stream_large(ngx_http_mcp_stream_t *s, ngx_str_t *text,
    ngx_mcp_memory_t *memory)
{
    u_char  *p, *last;
    size_t   len;
    u_char   id[NGX_HTTP_MCP_STREAM_ID];

    p = text->data;
    last = p + text->len;

    if (memory->start == NULL
        || p < memory->start + NGX_HTTP_MCP_STREAM_HEAD + NGX_HTTP_MCP_STREAM_ID
        || last + NGX_HTTP_MCP_STREAM_END + NGX_HTTP_MCP_STREAM_TAIL
           > memory->end)
    {
        return ngx_http_mcp_stream_text(s, text);
    }

    ngx_http_mcp_stream_scratch_give(memory);

    ngx_mcp_sse_flatten(p, last);

    *last++ = LF;
    *last++ = LF;

    len = s->client->event(s, id) - id;
    p -= len;

    ngx_memcpy(p, id, len);

    ngx_http_mcp_stream_count(s, 1);

    return ngx_http_mcp_stream_write(s, p, last - p);
}


void
ngx_http_mcp_stream_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why)
{
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->ctx[NGX_MCP_CTX_STREAMS];

    if (local >= streams->nslots) {
        return;
    }

    s = streams->slots[local];

    /* another stream may have got the number meanwhile */

    if (s == NULL || s->closed
        || s->zs.ref.block != ref.block || s->zs.ref.gen != ref.gen)
    {
        return;
    }

    if (why & NGX_MCP_WAKE_CLOSE) {
        s->unlogged = 0;
    }

    if (why & NGX_MCP_WAKE_WANTS) {
        ngx_http_mcp_stream_unfollow(s);
        s->indexed = 0;
    }

    ngx_http_mcp_stream_queue(s);
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


/* finds the next stream; returns as ngx_http_mcp_stream_news() does */

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


static void
ngx_http_mcp_stream_tick_handler(ngx_event_t *ev)
{
    ngx_uint_t                 n;
    ngx_msec_t                 wait;
    ngx_queue_t               *q;
    ngx_msec_int_t             left;
    ngx_http_mcp_stream_t     *s;
    ngx_http_mcp_streams_t    *streams;
    ngx_http_mcp_deadlines_t  *deadlines;

    streams = ev->data;

    n = 0;
    wait = NGX_CONF_UNSET_MSEC;

    for (q = ngx_queue_head(&streams->deadlines);
         q != ngx_queue_sentinel(&streams->deadlines);
         q = ngx_queue_next(q))
    {
        deadlines = ngx_queue_data(q, ngx_http_mcp_deadlines_t, link);

        while (!ngx_queue_empty(&deadlines->streams)) {

            s = ngx_queue_data(ngx_queue_head(&deadlines->streams),
                               ngx_http_mcp_stream_t, due);

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


/*
 * Handles a stream's deadline: the stream of a slow client is dropped, else the
 * heartbeat is written.
 */

static void
ngx_http_mcp_stream_due(ngx_http_mcp_stream_t *s)
{
    u_char  *p, *last;
    u_char   buf[NGX_HTTP_MCP_STREAM_HEAD + sizeof(NGX_HTTP_MCP_HEARTBEAT)
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
    last = ngx_cpymem(p, NGX_HTTP_MCP_HEARTBEAT,
                      sizeof(NGX_HTTP_MCP_HEARTBEAT) - 1);

    if (ngx_http_mcp_stream_write(s, p, last - p) != NGX_OK) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        return;
    }

    if (s->zs.gap == NGX_MCP_GAP_MORE && s->unsent == 0) {

        /* events were refused since the stream was last notified of a gap */

        s->zs.gap = NGX_MCP_GAP_NONE;
        ngx_http_mcp_stream_queue(s);

    } else if (ngx_http_mcp_stream_outdated(s)) {
        ngx_http_mcp_stream_queue(s);
    }
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

    streams->counts = ngx_mcp_wants_make(zone);
    if (streams->counts == NULL) {
        ngx_free(streams);
        return NGX_ERROR;
    }

    ngx_queue_init(&streams->pending);
    ngx_queue_init(&streams->pending_groups);
    ngx_queue_init(&streams->unchanged_groups);
    ngx_queue_init(&streams->changed_groups);
    ngx_queue_init(&streams->deadlines);

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

    zone->ctx[NGX_MCP_CTX_STREAMS] = streams;

    return NGX_OK;
}


/*
 * Writes the message "lagged", with the number of lost messages if that is
 * known, and notifications that make the client ask for everything again.
 */

static ngx_int_t
ngx_http_mcp_stream_gap(ngx_http_mcp_stream_t *s, size_t lost)
{
    u_char               buf[sizeof("{\"missed\":}") + NGX_SIZE_T_LEN];
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_pool_t          *pool;
    ngx_http_mcp_gap_t   gap;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, s->connection->log, 0,
                   "mcp stream %uD gap", s->zs.local);

    ngx_memzero(&gap, sizeof(ngx_http_mcp_gap_t));

    pool = ngx_create_pool(4096, s->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    if (s->listen.len == 0) {
        text.data = buf;
        text.len = (lost == NGX_MCP_LOST_UNKNOWN
                    ? ngx_sprintf(buf, "{\"missed\":null}")
                    : ngx_sprintf(buf, "{\"missed\":%uz}", lost))
                   - buf;

        gap.type = "event: lagged\n";
        gap.text = &text;
    }

    rc = NGX_OK;

    if (s->zs.channel == NGX_MCP_GENERAL_CHANNEL) {
        rc = ngx_http_mcp_stream_resync(s, &gap, pool);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_mcp_gap_compose(s, &gap, 1);
    }

    if (rc == NGX_OK && gap.pos > gap.start) {
        rc = ngx_http_mcp_stream_write(s, gap.start, gap.pos - gap.start);
    }

    ngx_http_mcp_stream_count(s, gap.n);

    ngx_destroy_pool(pool);

    return rc;
}


static ngx_int_t
ngx_http_mcp_stream_resync(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap,
    ngx_pool_t *pool)
{
    ngx_str_t               uri;
    ngx_uint_t              i;
    ngx_mcp_list_change_t  *change;

    ngx_str_null(&uri);

    for (change = ngx_mcp_list_changes; change->kinds; change++) {

        if ((s->offered & change->offered)
            && ngx_http_mcp_gap_add(s, gap, &change->notification, &uri)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    for (i = 0;
         ngx_mcp_session_subscription(s->streams->zone, s->zs.session, i, pool,
                                      &uri)
         == NGX_OK;
         i++)
    {
        if (ngx_http_mcp_gap_add(s, gap, &ngx_http_mcp_gap_updated, &uri)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* adds a notification; its text ends with the URI, unless that is empty */

static ngx_int_t
ngx_http_mcp_gap_add(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap,
    ngx_str_t *text, ngx_str_t *uri)
{
    if (ngx_http_mcp_gap_compose(s, gap, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    gap->type = NULL;
    gap->text = text;
    gap->uri = *uri;
    gap->n++;

    return NGX_OK;
}


/* composes the event that was added last, if there is one */

static ngx_int_t
ngx_http_mcp_gap_compose(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap,
    ngx_uint_t last)
{
    u_char  *p, *data;
    size_t   len;

    if (gap->text == NULL) {
        return NGX_OK;
    }

    len = NGX_HTTP_MCP_STREAM_ID + gap->text->len
          + ngx_http_mcp_stream_tag(s) + NGX_HTTP_MCP_STREAM_END
          + sizeof("event: lagged\n") + sizeof("}}")
          + ngx_mcp_json_escaped_len(&gap->uri);

    if (ngx_http_mcp_gap_room(s, gap, len) != NGX_OK) {
        return NGX_ERROR;
    }

    p = gap->pos;

    if (gap->type) {
        p = ngx_cpymem(p, gap->type, ngx_strlen(gap->type));
    }

    data = last ? s->client->event(s, p)
                : ngx_cpymem(p, "data: ", sizeof("data: ") - 1);

    p = ngx_cpymem(data, gap->text->data, gap->text->len);

    if (gap->uri.len) {
        p = ngx_mcp_json_escape(p, &gap->uri);
        *p++ = '}';
        *p++ = '}';
    }

    if (s->listen.len) {
        p = data + ngx_mcp_listen_tag(data, p - data, &s->listen);
    }

    *p++ = LF;
    *p++ = LF;

    gap->pos = p;

    return NGX_OK;
}


/* makes room for a text; if need be, writes the texts before it */

static ngx_int_t
ngx_http_mcp_gap_room(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap,
    size_t size)
{
    u_char  *p;
    size_t   room;

    if (size <= (size_t) (gap->last - gap->pos)) {
        return NGX_OK;
    }

    if (gap->pos > gap->start
        && ngx_http_mcp_stream_write(s, gap->start, gap->pos - gap->start)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = ngx_http_mcp_stream_scratch(NGX_HTTP_MCP_STREAM_HEAD + size
                                    + NGX_HTTP_MCP_STREAM_TAIL, &room);
    if (p == NULL) {
        return NGX_ERROR;
    }

    gap->start = p + NGX_HTTP_MCP_STREAM_HEAD;
    gap->pos = gap->start;
    gap->last = p + room - NGX_HTTP_MCP_STREAM_TAIL;

    return NGX_OK;
}


/*
 * Writes the copy of an answer that the log has lost, or an error if there is
 * no copy.
 */

static ngx_int_t
ngx_http_mcp_stream_answer_lost(ngx_http_mcp_stream_t *s)
{
    ngx_int_t    rc;
    ngx_str_t    id, answer, why, data;
    ngx_pool_t  *pool;

    if (s->answer.len) {
        return ngx_http_mcp_stream_text(s, &s->answer);
    }

    pool = ngx_create_pool(1024, s->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_call_id(s->streams->zone, s->zs.session, s->zs.channel, pool,
                         &id);

    if (rc == NGX_OK) {
        ngx_str_set(&why, "events were lost");
        ngx_str_set(&data, "{\"reason\":\"events were lost\"}");

        answer = s->client->error(pool, NGX_MCP_REVISION_LATEST_LEGACY, &id,
                                  NGX_MCP_INTERNAL_ERROR, &why, &data);

        rc = answer.data ? ngx_http_mcp_stream_text(s, &answer) : NGX_ERROR;
    }

    ngx_destroy_pool(pool);

    /* NGX_DECLINED: no error is written, as the request's id is gone */

    return (rc == NGX_OK || rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_stream_drain(ngx_mcp_zone_t *zone)
{
    ngx_uint_t               i;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->ctx[NGX_MCP_CTX_STREAMS];

    if (streams->draining) {
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


static void
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


/*
 * Returns whether a stream is to end now: streams end in the order of their
 * slots, evenly over time.
 */

static ngx_uint_t
ngx_http_mcp_drain_due(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t *s, ngx_uint_t slot, ngx_msec_t elapsed)
{
    uint64_t  at;

    at = (uint64_t) s->conf->drain_time
         * (slot * 1000 + streams->drain_jitter);

    return at <= (uint64_t) elapsed * streams->drain_top * 1000;
}


/* checks whether there are still streams that have to end */

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
    ngx_http_mcp_stream_t  *s;

    s = streams->slots[slot];

    if (s == NULL || !s->get || s->closed) {
        return;
    }

    /* messages that are in the log already go out before the end */

    ngx_http_mcp_stream_turn(s);

    s = streams->slots[slot];

    if (s == NULL || s->closed || s->unsent) {
        return;
    }

    if (ngx_http_mcp_stream_send_end(s) != NGX_OK) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        return;
    }

    ngx_http_mcp_stream_break(s, NGX_MCP_COUNTER_STREAMS_DRAINED);
}
