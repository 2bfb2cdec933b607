
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_stream_body.h"


/* data of a held stream, in r->pool; texts in buffers are from ngx_alloc() */

typedef struct {
    ngx_http_mcp_stream_t  *stream;       /* NULL: the stream has ended */
    ngx_chain_t            *free;
    ngx_chain_t            *busy;
} ngx_http_mcp_held_t;


static ngx_int_t ngx_http_mcp_held_write(ngx_http_mcp_stream_t *s, u_char *p,
    size_t len);
static ngx_int_t ngx_http_mcp_held_send(ngx_http_mcp_stream_t *s, u_char **p,
    size_t *len);
static ngx_int_t ngx_http_mcp_held_output(ngx_http_mcp_stream_t *s,
    ngx_chain_t *out);
static void ngx_http_mcp_held_end(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_held_drop(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_held_detach(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_held_part(ngx_http_request_t *r);
static void ngx_http_mcp_held_writer(ngx_http_request_t *r);
static void ngx_http_mcp_held_flush(ngx_http_request_t *r);
static void ngx_http_mcp_held_reader(ngx_http_request_t *r);
static void ngx_http_mcp_held_cleanup(void *data);
static void ngx_http_mcp_held_release(void *data);


static ngx_http_mcp_stream_body_t  ngx_http_mcp_held_body = {
    ngx_http_mcp_held_write,
    ngx_http_mcp_held_end,
    ngx_http_mcp_held_drop
};


ngx_int_t
ngx_http_mcp_stream_hold(ngx_http_mcp_stream_t *s, ngx_http_request_t *r)
{
    ngx_pool_cleanup_t   *pcln;
    ngx_http_cleanup_t   *cln;
    ngx_http_mcp_held_t  *h;

    h = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_held_t));
    if (h == NULL) {
        return NGX_ERROR;
    }

    pcln = ngx_pool_cleanup_add(r->pool, 0);
    if (pcln == NULL) {
        return NGX_ERROR;
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    pcln->handler = ngx_http_mcp_held_release;
    pcln->data = h;

    cln->handler = ngx_http_mcp_held_cleanup;
    cln->data = h;

    h->stream = s;

    s->held = h;
    s->request = r;
    s->body = &ngx_http_mcp_held_body;

    s->chunked = s->get && r->chunked
                 && r->http_version == NGX_HTTP_VERSION_11;

    s->parkable = s->chunked && s->conf->stream_park;

    if (s->get) {
        r->main->count++;
        r->read_event_handler = ngx_http_test_reading;

    } else {
        r->read_event_handler = ngx_http_mcp_held_reader;
    }

    r->write_event_handler = ngx_http_mcp_held_writer;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_held_write(ngx_http_mcp_stream_t *s, u_char *p, size_t len)
{
    ngx_buf_t            *b;
    ngx_chain_t          *cl;
    ngx_http_mcp_held_t  *h;

    if (s->chunked) {
        p = ngx_http_mcp_stream_chunk(p, &len);

        if (ngx_http_mcp_held_send(s, &p, &len) != NGX_OK) {
            return NGX_ERROR;
        }

        if (len == 0) {
            return NGX_OK;
        }
    }

    h = s->held;

    cl = ngx_chain_get_free_buf(s->request->pool, &h->free);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    b = cl->buf;

    b->start = ngx_http_mcp_stream_scratch_take(p);

    if (b->start == NULL) {
        b->start = ngx_alloc(len, s->connection->log);
        if (b->start == NULL) {
            return NGX_ERROR;
        }

        p = ngx_cpymem(b->start, p, len) - len;
    }

    b->pos = p;
    b->last = p + len;
    b->end = b->last;
    b->temporary = 1;
    b->flush = 1;
    b->tag = (ngx_buf_tag_t) &ngx_http_mcp_held_body;

    return ngx_http_mcp_held_output(s, cl);
}


/*
 * Sends bytes at once if none are unsent, as most clients take all.  Without
 * buffers this needs no memory of the request.
 */

static ngx_int_t
ngx_http_mcp_held_send(ngx_http_mcp_stream_t *s, u_char **p, size_t *len)
{
    ssize_t            n;
    ngx_connection_t  *c;

    c = s->connection;

    if (!s->drained || c->buffered || !c->write->ready) {
        return NGX_OK;
    }

#if (NGX_HTTP_SSL)
    /* TLS must be given unsent bytes again from the same place */
    if (c->ssl) {
        return NGX_OK;
    }
#endif

    n = c->send(c, *p, *len);

    if (n == NGX_ERROR) {
        c->error = 1;
        return NGX_ERROR;
    }

    if (n > 0) {
        *p += n;
        *len -= n;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_held_output(ngx_http_mcp_stream_t *s, ngx_chain_t *out)
{
    ngx_int_t             rc;
    ngx_chain_t          *cl;
    ngx_connection_t     *c;
    ngx_http_request_t   *r;
    ngx_http_mcp_held_t  *h;

    h = s->held;
    r = s->request;
    c = r->connection;

    if (!s->chunked) {
        rc = ngx_http_output_filter(r, out);

    } else if (out || c->buffered) {
        rc = ngx_http_write_filter(r, out);

    } else {
        /* the connection became writable, but nothing is unsent */

        rc = NGX_OK;
    }

    ngx_chain_update_chains(r->pool, &h->free, &h->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_mcp_held_body);

    for (cl = h->free; cl && cl->buf->start; cl = cl->next) {
        ngx_free(cl->buf->start);
        cl->buf->start = NULL;
    }

    s->unsent = 0;

    for (cl = h->busy; cl; cl = cl->next) {
        s->unsent += ngx_buf_size(cl->buf);
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    s->drained = (r->out == NULL);

    if (c->buffered) {

        /* TLS may have taken all bytes without sending them */
        if (s->unsent == 0) {
            s->unsent = 1;
        }

        if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_mcp_held_end(ngx_http_mcp_stream_t *s)
{
    ngx_http_request_t  *r;

    r = s->request;

    if (!s->broken && !s->cut
        && ngx_http_send_special(r, NGX_HTTP_LAST) == NGX_ERROR)
    {
        s->broken = 1;
    }

    if (s->owner == NULL) {
        s->finish = 1;
        ngx_http_mcp_stream_queue(s);
        return;
    }

    /* the call owns the request */

    if (s->broken) {
        ngx_http_mcp_held_drop(s);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_mcp_held_part;

    ngx_http_mcp_held_detach(s);

    ngx_http_mcp_held_part(r);
}


static void
ngx_http_mcp_held_drop(ngx_http_mcp_stream_t *s)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    if (s->owner == NULL) {
        s->broken = 1;
        s->finish = 1;
        ngx_http_mcp_stream_queue(s);
        return;
    }

    r = s->request;
    c = r->connection;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    if (s->timedout && r->http_version <= NGX_HTTP_VERSION_11) {

        /* the request stays open for its exchange; the client need not wait */

        if (ngx_shutdown_socket(c->fd, SHUT_RDWR) == -1) {
            ngx_connection_error(c, ngx_socket_errno,
                                 ngx_shutdown_socket_n " failed");
        }
    }

    /* c->error would make the end of the exchange finalize the request */
    c->error = 0;

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_mcp_held_detach(s);
}


/*
 * Ends a response while the request stays open for its exchange.  As a further
 * request on this connection would wait for the exchange, the sending side of
 * the connection is closed, once all bytes are sent.
 */

static void
ngx_http_mcp_held_part(ngx_http_request_t *r)
{
    ngx_connection_t  *c;

    c = r->connection;

    if (c->buffered) {
        ngx_http_mcp_held_flush(r);

        if (c->buffered) {
            return;
        }
    }

    r->write_event_handler = ngx_http_request_empty_handler;

    if (r->http_version > NGX_HTTP_VERSION_11) {
        return;
    }

#if (NGX_HTTP_SSL)
    if (c->ssl) {
        c->ssl->no_send_shutdown = 1;
    }
#endif

    if (ngx_shutdown_socket(c->fd, NGX_WRITE_SHUTDOWN) == -1) {
        ngx_connection_error(c, ngx_socket_errno,
                             ngx_shutdown_socket_n " failed");
    }
}


static void
ngx_http_mcp_held_detach(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_stream_release(s);
    ngx_http_mcp_stream_free(s);
}


void
ngx_http_mcp_stream_release(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_held_t  *h;

    h = s->held;
    h->stream = NULL;

    ctx = ngx_http_get_module_ctx(s->request, ngx_http_mcp_module);
    ctx->events_sent += s->sent;

    s->held = NULL;
    s->request = NULL;
}


void
ngx_http_mcp_stream_finish(ngx_http_mcp_stream_t *s)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = s->request;
    c = r->connection;

    rc = NGX_OK;

    if (s->timedout) {
        c->timedout = 1;
        rc = NGX_HTTP_REQUEST_TIME_OUT;

    } else if (s->broken) {
        rc = NGX_HTTP_CLIENT_CLOSED_REQUEST;

    } else if (s->cut) {
        rc = NGX_ERROR;
    }

    ngx_http_mcp_held_detach(s);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_held_writer(ngx_http_request_t *r)
{
    size_t                  unsent;
    ngx_event_t            *wev;
    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_stream_t  *s;

    wev = r->connection->write;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    s = ctx->stream;

    if (s == NULL) {
        ngx_http_mcp_held_flush(r);
        return;
    }

    if (wev->timedout) {

        /*
         * The timer is that of a subrequest's upstream, which uses this
         * connection as its own.  The stream has a deadline instead of a timer.
         */

        wev->timedout = 0;
    }

    unsent = s->unsent;

    if (ngx_http_mcp_held_output(s, NULL) != NGX_OK) {
        s->broken = 1;
        ngx_http_mcp_stream_queue(s);
        return;
    }

    if (s->unsent < unsent) {
        ngx_http_mcp_stream_sent(s);
    }
}


static void
ngx_http_mcp_held_flush(ngx_http_request_t *r)
{
    ngx_connection_t  *c;

    c = r->connection;

    if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        c->error = 0;
        r->write_event_handler = ngx_http_request_empty_handler;
        return;
    }

    if (c->buffered && ngx_handle_write_event(c->write, 0) != NGX_OK) {
        r->write_event_handler = ngx_http_request_empty_handler;
    }
}


static void
ngx_http_mcp_held_reader(ngx_http_request_t *r)
{
    ngx_event_t            *rev;
    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_stream_t  *s;

    rev = r->connection->read;

    if (!ngx_http_mcp_client_left(r)) {

        if ((ngx_event_flags & NGX_USE_LEVEL_EVENT) && rev->active) {
            (void) ngx_del_event(rev, NGX_READ_EVENT, 0);
        }

        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "mcp client left its call");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    s = ctx->stream;

    r->read_event_handler = ngx_http_block_reading;

    if (s) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
    }
}


ngx_uint_t
ngx_http_mcp_client_left(ngx_http_request_t *r)
{
    int                n;
    char               buf[1];
    ngx_connection_t  *c;

    c = r->connection;

    if (c->error || c->read->error || c->read->pending_eof) {
        return 1;
    }

    if (r->http_version > NGX_HTTP_VERSION_11) {
        return 0;
    }

    n = recv(c->fd, buf, 1, MSG_PEEK);

    return n == 0 || (n == -1 && ngx_socket_errno != NGX_EAGAIN);
}


/* called when nginx destroys the request */

static void
ngx_http_mcp_held_cleanup(void *data)
{
    ngx_http_mcp_held_t  *h = data;

    ngx_http_mcp_stream_t  *s;

    s = h->stream;

    if (s == NULL) {
        return;
    }

    s->owner = NULL;

    ngx_http_mcp_stream_unlink(s, s->connection->close
                                  ? NGX_MCP_COUNTER_STREAMS_DRAINED
                                  : NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_http_mcp_held_detach(s);
}


static void
ngx_http_mcp_held_release(void *data)
{
    ngx_http_mcp_held_t  *h = data;

    ngx_chain_t  *cl;

    for (cl = h->busy; cl; cl = cl->next) {
        ngx_free(cl->buf->start);
    }
}
