
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_stream_body.h"


static ngx_int_t ngx_http_mcp_stream_start(ngx_http_mcp_stream_t *s,
    ngx_uint_t revision);
static ngx_int_t ngx_http_mcp_stream_header(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_stream_advance(ngx_http_mcp_stream_t *s);
static ngx_int_t ngx_http_mcp_stream_consume(ngx_http_mcp_stream_t *s,
    size_t *missed);


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

    s->conf = ctx->conf;
    s->client = ctx->client;
    s->clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    s->connection = r->connection;
    s->owner = owner;
    s->get = (owner == NULL);
    s->offered = ctx->session.offered & NGX_MCP_OFFERED_ALL;
    s->lagged = gap;

    rc = ngx_mcp_stream_open(s->conf->zone, ctx->caller.session, channel, from,
                             s->conf->stream_limit, s->local, &s->zs);

    if (rc == NGX_DECLINED && channel != NGX_MCP_GENERAL_CHANNEL && s->get) {
        s->lagged = 1;

        rc = ngx_mcp_stream_open(s->conf->zone, ctx->caller.session,
                                 NGX_MCP_GENERAL_CHANNEL, NULL,
                                 s->conf->stream_limit, s->local, &s->zs);
    }

    if (rc != NGX_OK) {
        s->closed = 1;
        ngx_http_mcp_stream_free(s);

        switch (rc) {

        case NGX_DONE:
            return NGX_HTTP_NOT_ALLOWED;

        case NGX_DECLINED:
            return NGX_HTTP_NOT_FOUND;

        default: /* NGX_ERROR */
            return NGX_HTTP_SERVICE_UNAVAILABLE;
        }
    }

    if (s->zs.unknown) {
        s->lagged = 1;
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "mcp stream %uD opened, line:%uD at %uL-%uL", s->local,
                   s->zs.channel, s->zs.cursor.own, s->zs.cursor.shared);

    if (s->get && s->zs.channel == NGX_MCP_GENERAL_CHANNEL
        && ngx_http_mcp_stream_join_group(s) != NGX_OK)
    {
        goto failed;
    }

    ctx->responded = 1;
    ctx->response = 2;

    /* a parked one ends with its connection: nobody must use it again */

    if (s->get && s->conf->stream_park) {
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

    if (ngx_http_mcp_stream_start(s, ctx->caller.revision) != NGX_OK) {
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

    h = ngx_http_mcp_header_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&h->key, "Cache-Control");
    ngx_str_set(&h->value, "no-store");

    h = ngx_http_mcp_header_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&h->key, "X-Accel-Buffering");
    ngx_str_set(&h->value, "no");

    /* is not sent, but keeps all compressing filters off */

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


void
ngx_http_mcp_stream_wake(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_stream_queue(s);
}


void
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
        s->owner = NULL;
        ngx_http_mcp_stream_close(s, NGX_MCP_COUNTER_STREAMS_DONE);
        return;

    case NGX_DECLINED:
        /* or gives way to another, which the zone knows */
        ngx_http_mcp_stream_close(s, NGX_MCP_COUNTER_STREAMS_SESSION);
        return;

    case NGX_ABORT:
        ngx_log_error(NGX_LOG_INFO, s->connection->log, 0,
                      "mcp client is too slow: newer events have replaced the "
                      "next event of its stream");
        ngx_http_mcp_stream_close(s, NGX_MCP_COUNTER_STREAMS_SLOW);
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


void
ngx_http_mcp_stream_sent(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_stream_pace(s, 1);

    if (s->unsent < s->conf->stream_buffer) {
        ngx_http_mcp_stream_queue(s);
    }
}


/*
 * NGX_OK; NGX_DONE: the line has ended; NGX_DECLINED: the stream has to close;
 * NGX_ABORT: it fell out of the log; NGX_ERROR: the connection is broken
 */

static ngx_int_t
ngx_http_mcp_stream_advance(ngx_http_mcp_stream_t *s)
{
    size_t     missed;
    ngx_int_t  rc;

    if (s->broken) {
        return NGX_ERROR;
    }

    ngx_http_mcp_stream_unsettle(s);

    if (s->lagged) {
        s->lagged = 0;

        if (s->zs.channel == NGX_MCP_GENERAL_CHANNEL
            && ngx_http_mcp_stream_lagged(s, NGX_MCP_LOST_UNKNOWN)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    while (s->unsent < s->conf->stream_buffer) {

        rc = ngx_http_mcp_stream_consume(s, &missed);

        switch (rc) {

        case NGX_OK:
            continue;

        case NGX_AGAIN:
            s->waiting = 0;
            return NGX_OK;

        case NGX_DONE:
            if (s->missed && ngx_http_mcp_stream_answer_lost(s) != NGX_OK) {
                return NGX_ERROR;
            }

            s->missed = 0;

            return NGX_DONE;

        case NGX_ABORT:
            if (s->zs.channel != NGX_MCP_GENERAL_CHANNEL) {
                s->missed = 1;

            } else if (s->unsent) {
                return NGX_ABORT;
            }

            if (ngx_http_mcp_stream_lagged(s, missed) != NGX_OK) {
                return NGX_ERROR;
            }

            continue;

        default: /* NGX_DECLINED, NGX_ERROR */
            return rc;
        }
    }

    return NGX_OK;
}


/*
 * Takes what fits into one write.  NGX_OK: there may be more; NGX_AGAIN: there
 * is none; others as above.
 */

static ngx_int_t
ngx_http_mcp_stream_consume(ngx_http_mcp_stream_t *s, size_t *missed)
{
    u_char     *buf, *p, *id, *first, *data, *end;
    size_t      len, need, room;
    ngx_int_t   rc;
    ngx_uint_t  flags, n;
    u_char      text[NGX_HTTP_MCP_STREAM_ID];

    need = 0;

again:

    buf = ngx_http_mcp_stream_scratch(need, &room);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    n = 0;
    p = buf + NGX_HTTP_MCP_STREAM_HEAD;
    first = p;
    end = buf + room - NGX_HTTP_MCP_STREAM_END - NGX_HTTP_MCP_STREAM_TAIL;
    len = 0;

    for ( ;; ) {

        if (s->unlogged && s->zs.cursor.own + 1 >= s->unlogged) {
            rc = NGX_AGAIN;
            break;
        }

        data = p + NGX_HTTP_MCP_STREAM_ID;

        if (data >= end) {
            rc = NGX_OK;
            break;
        }

        rc = ngx_mcp_stream_read(s->streams->zone, &s->zs, data, end - data,
                                 &len, &flags);

        if (rc == NGX_BUSY && n == 0 && need == 0) {
            need = NGX_HTTP_MCP_STREAM_HEAD + NGX_HTTP_MCP_STREAM_ID + len
                   + NGX_HTTP_MCP_STREAM_END + NGX_HTTP_MCP_STREAM_TAIL;
            goto again;
        }

        if (rc != NGX_OK) {
            break;
        }

        if (flags & NGX_MCP_EVENT_RESPONSE) {
            s->missed = 0;
        }

        id = s->client->event(s, text);

        if (n++ == 0) {
            first = data - (id - text);

        } else {
            ngx_memmove(p + (id - text), data, len);
            data = p + (id - text);
        }

        ngx_memcpy(data - (id - text), text, id - text);

        p = data + len;
        ngx_mcp_sse_flatten(data, p);

        *p++ = LF;
        *p++ = LF;

        if (s->unsent + (p - first) >= s->conf->stream_buffer) {
            break;
        }

        if (!s->zs.more) {
            rc = NGX_AGAIN;
            break;
        }
    }

    if (n) {
        ngx_http_mcp_stream_count(s, n);

        if (ngx_http_mcp_stream_write(s, first, p - first) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    switch (rc) {

    case NGX_BUSY:
        return n ? NGX_OK : NGX_ERROR;

    case NGX_AGAIN:
        return (s->group && ngx_http_mcp_stream_settle(s) != NGX_OK)
               ? NGX_ERROR : NGX_AGAIN;

    case NGX_DECLINED:

        /* another one carries its line, and hears what the session wants */

        ngx_http_mcp_stream_unindex(s);
        return NGX_AGAIN;

    case NGX_ABORT:
        *missed = len;
        return NGX_ABORT;

    case NGX_ERROR:
        return NGX_DECLINED;

    default: /* NGX_OK, NGX_DONE */
        return rc;
    }
}


ngx_int_t
ngx_http_mcp_stream_write(ngx_http_mcp_stream_t *s, u_char *p, size_t len)
{
    if (s->body->write(s, p, len) != NGX_OK) {
        s->broken = 1;
        return NGX_ERROR;
    }

    ngx_http_mcp_stream_pace(s, 0);

    return NGX_OK;
}


void
ngx_http_mcp_stream_count(ngx_http_mcp_stream_t *s, ngx_uint_t n)
{
    ngx_http_mcp_ctx_t  *ctx;

    if (s->request) {
        ctx = ngx_http_get_module_ctx(s->request, ngx_http_mcp_module);
        ctx->events_sent += n;
    }
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
    if (s->unsent) {
        s->answer.data = ngx_pstrdup(s->request->pool, text);
        s->answer.len = s->answer.data ? text->len : 0;
    }
}


ngx_int_t
ngx_http_mcp_stream_send(ngx_http_mcp_stream_t *s, ngx_mcp_cursor_t *place,
    ngx_str_t *text, ngx_uint_t flags)
{
    u_char     *buf, *p, *data;
    size_t      room;
    ngx_int_t   rc;

    if (s->closed || s->broken) {
        return NGX_ERROR;
    }

    s->unlogged = place->own;

    rc = ngx_http_mcp_stream_advance(s);

    if (rc != NGX_OK) {
        /* its turn comes to the same end and acts on it */
        ngx_http_mcp_stream_queue(s);
        return NGX_ERROR;
    }

    if (s->unsent >= s->conf->stream_buffer) {
        s->source_waits = 1;
        return NGX_AGAIN;
    }

    s->unlogged = 0;

    ngx_http_mcp_stream_queue(s);

    buf = ngx_http_mcp_stream_scratch(NGX_HTTP_MCP_STREAM_HEAD
                                      + NGX_HTTP_MCP_STREAM_ID + text->len
                                      + NGX_HTTP_MCP_STREAM_END
                                      + NGX_HTTP_MCP_STREAM_TAIL, &room);
    if (buf == NULL) {
        s->broken = 1;
        return NGX_ERROR;
    }

    s->zs.cursor = *place;

    if (flags & NGX_MCP_EVENT_RESPONSE) {
        s->missed = 0;
    }

    buf += NGX_HTTP_MCP_STREAM_HEAD;

    data = s->client->event(s, buf);
    p = ngx_cpymem(data, text->data, text->len);

    ngx_mcp_sse_flatten(data, p);

    *p++ = LF;
    *p++ = LF;

    ngx_mcp_count(s->streams->zone, NGX_MCP_COUNTER_EVENTS_OUT, 1);
    ngx_http_mcp_stream_count(s, 1);

    return ngx_http_mcp_stream_write(s, buf, p - buf);
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
                   "mcp stream %uD closed: %ui", s->local,
                   (ngx_uint_t) counter);

    s->closed = 1;

    ngx_http_mcp_stream_unsettle(s);
    ngx_mcp_stream_close(s->streams->zone, &s->zs, counter);

    ngx_http_mcp_stream_leave_group(s);
    ngx_http_mcp_stream_unpace(s);

    if (s->request) {
        ctx = ngx_http_get_module_ctx(s->request, ngx_http_mcp_module);
        ctx->stream = NULL;
    }
}


void
ngx_http_mcp_stream_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why)
{
    ngx_http_mcp_stream_t   *s;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->data;

    if (streams == NULL || local >= streams->nslots) {
        return;
    }

    s = streams->slots[local];

    /* the number may have gone to another stream since */

    if (s == NULL || s->closed
        || s->zs.ref.block != ref.block || s->zs.ref.gen != ref.gen)
    {
        return;
    }

    if (why & NGX_MCP_WAKE_CLOSE) {
        s->unlogged = 0;
    }

    if (why & NGX_MCP_WAKE_FILTERS) {
        ngx_http_mcp_stream_unindex(s);
    }

    ngx_http_mcp_stream_queue(s);
}
