
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_stream_body.h"


/* unsent bytes of one write */

typedef struct {
    ngx_queue_t             link;
    u_char                 *pos;
    u_char                 *last;
} ngx_http_mcp_piece_t;


#define NGX_HTTP_MCP_PARKED_READS  8


static void ngx_http_mcp_parked_strip(ngx_connection_t *c,
    ngx_http_connection_t *hc);
static ngx_int_t ngx_http_mcp_parked_write(ngx_http_mcp_stream_t *s, u_char *p,
    size_t len);
static ngx_int_t ngx_http_mcp_parked_send(ngx_http_mcp_stream_t *s, u_char *p,
    size_t len);
static ngx_int_t ngx_http_mcp_parked_flush(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_parked_end(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_parked_drop(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_parked_close(ngx_http_mcp_stream_t *s);
static void ngx_http_mcp_parked_write_handler(ngx_event_t *wev);
static void ngx_http_mcp_parked_read_handler(ngx_event_t *rev);


static ngx_http_mcp_stream_body_t  ngx_http_mcp_parked_body = {
    ngx_http_mcp_parked_write,
    ngx_http_mcp_parked_end,
    ngx_http_mcp_parked_drop
};


ngx_int_t
ngx_http_mcp_stream_park(ngx_http_mcp_stream_t *s)
{
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_http_connection_t  *hc;

    r = s->request;
    c = r->connection;

    if (s->unsent || c->buffered || r->out || r->postponed
        || r->count != 1 || r->blocked || r->discard_body
        || r != c->data || r->posted_requests
        || c->read->timer_set || c->write->timer_set)
    {
        return NGX_DECLINED;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "mcp stream %uD parked", s->zs.local);

    hc = r->http_connection;

    ngx_http_mcp_stream_release(s);

    s->parkable = 0;
    s->body = &ngx_http_mcp_parked_body;

    ngx_http_free_request(r, 0);

    c->data = s;
    c->log->action = "streaming to client";

    ngx_http_mcp_parked_strip(c, hc);

    c->read->handler = ngx_http_mcp_parked_read_handler;
    c->write->handler = ngx_http_mcp_parked_write_handler;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    if ((ngx_event_flags & NGX_USE_LEVEL_EVENT) && c->write->active
        && ngx_del_event(c->write, NGX_WRITE_EVENT, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (c->read->ready) {
        ngx_post_event(c->read, &ngx_posted_events);
    }

    return NGX_OK;
}


/* frees buffers of the connection, as ngx_http_set_keepalive() does */

static void
ngx_http_mcp_parked_strip(ngx_connection_t *c, ngx_http_connection_t *hc)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl, *ln;

    b = c->buffer;

    if (b && b->start && ngx_pfree(c->pool, b->start) == NGX_OK) {
        b->start = NULL;
        b->pos = NULL;
        b->last = NULL;
    }

    for (cl = hc->free; cl; /* void */) {
        ln = cl;
        cl = cl->next;
        ngx_pfree(c->pool, ln->buf->start);
        ngx_free_chain(c->pool, ln);
    }

    hc->free = NULL;

    for (cl = hc->busy; cl; /* void */) {
        ln = cl;
        cl = cl->next;
        ngx_pfree(c->pool, ln->buf->start);
        ngx_free_chain(c->pool, ln);
    }

    hc->busy = NULL;
    hc->nbusy = 0;

#if (NGX_HTTP_SSL)
    if (c->ssl) {
        ngx_ssl_free_buffer(c);
    }
#endif

    if (c->tcp_nopush == NGX_TCP_NOPUSH_SET) {
        if (ngx_tcp_push(c->fd) == -1) {
            ngx_connection_error(c, ngx_socket_errno, ngx_tcp_push_n " failed");
        }

        c->tcp_nopush = NGX_TCP_NOPUSH_UNSET;
    }
}


static ngx_int_t
ngx_http_mcp_parked_write(ngx_http_mcp_stream_t *s, u_char *p, size_t len)
{
    p = ngx_http_mcp_stream_chunk(p, &len);

    return ngx_http_mcp_parked_send(s, p, len);
}


static ngx_int_t
ngx_http_mcp_parked_send(ngx_http_mcp_stream_t *s, u_char *p, size_t len)
{
    ssize_t                n;
    ngx_uint_t             first, direct;
    ngx_connection_t      *c;
    ngx_http_mcp_piece_t  *piece;

    c = s->connection;

    first = ngx_queue_empty(&s->out);
    direct = first && c->write->ready;

#if (NGX_HTTP_SSL)
    /* TLS must be given unsent bytes again from the same place */
    if (c->ssl) {
        direct = 0;
    }
#endif

    if (direct) {
        n = c->send(c, p, len);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (n > 0) {
            p += n;
            len -= n;
        }

        if (len == 0) {
            return NGX_OK;
        }
    }

    piece = ngx_alloc(sizeof(ngx_http_mcp_piece_t) + len, c->log);
    if (piece == NULL) {
        return NGX_ERROR;
    }

    piece->pos = (u_char *) (piece + 1);
    piece->last = ngx_cpymem(piece->pos, p, len);

    ngx_queue_insert_tail(&s->out, &piece->link);
    s->unsent += len;

    if (first && !direct) {
        return ngx_http_mcp_parked_flush(s);
    }

    return ngx_handle_write_event(c->write, 0);
}


static ngx_int_t
ngx_http_mcp_parked_flush(ngx_http_mcp_stream_t *s)
{
    ssize_t                n;
    ngx_queue_t           *q;
    ngx_connection_t      *c;
    ngx_http_mcp_piece_t  *piece;

    c = s->connection;

    while (!ngx_queue_empty(&s->out) && c->write->ready) {

        q = ngx_queue_head(&s->out);
        piece = ngx_queue_data(q, ngx_http_mcp_piece_t, link);

        n = c->send(c, piece->pos, piece->last - piece->pos);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (n == NGX_AGAIN) {
            break;
        }

        piece->pos += n;
        s->unsent -= n;

        if (piece->pos == piece->last) {
            ngx_queue_remove(q);
            ngx_free(piece);
        }
    }

    return ngx_handle_write_event(c->write, 0);
}


static void
ngx_http_mcp_parked_end(ngx_http_mcp_stream_t *s)
{
    static u_char  last[] = "0" CRLF CRLF;

    if (s->broken
        || (!s->cut
            && ngx_http_mcp_parked_send(s, last, sizeof(last) - 1) != NGX_OK))
    {
        s->broken = 1;
        ngx_http_mcp_parked_close(s);
        return;
    }

    if (s->unsent == 0) {
        ngx_http_mcp_parked_close(s);
        return;
    }

    ngx_http_mcp_stream_set_deadline(s, 1);
}


static void
ngx_http_mcp_parked_drop(ngx_http_mcp_stream_t *s)
{
    struct linger      linger;
    ngx_connection_t  *c;

    c = s->connection;

    if (s->timedout) {
        c->timedout = 1;

        if (s->clcf->reset_timedout_connection) {
            linger.l_onoff = 1;
            linger.l_linger = 0;

            if (setsockopt(c->fd, SOL_SOCKET, SO_LINGER,
                           (const void *) &linger, sizeof(struct linger))
                == -1)
            {
                ngx_connection_error(c, ngx_socket_errno,
                                     "setsockopt(SO_LINGER) failed");
            }
        }

    } else {
        s->broken = 1;
    }

    ngx_http_mcp_parked_close(s);
}


static void
ngx_http_mcp_parked_close(ngx_http_mcp_stream_t *s)
{
    ngx_queue_t           *q;
    ngx_connection_t      *c;
    ngx_http_mcp_piece_t  *piece;

    while (!ngx_queue_empty(&s->out)) {
        q = ngx_queue_head(&s->out);
        piece = ngx_queue_data(q, ngx_http_mcp_piece_t, link);

        ngx_queue_remove(q);
        ngx_free(piece);
    }

    c = s->connection;

    if (s->broken) {
        c->error = 1;
    }

    ngx_http_mcp_stream_free(s);

    ngx_http_close_connection(c);
}


static void
ngx_http_mcp_parked_write_handler(ngx_event_t *wev)
{
    size_t                  unsent;
    ngx_connection_t       *c;
    ngx_http_mcp_stream_t  *s;

    c = wev->data;
    s = c->data;

    if (ngx_queue_empty(&s->out)) {
        return;
    }

    unsent = s->unsent;

    if (ngx_http_mcp_parked_flush(s) != NGX_OK) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
        return;
    }

    if (s->unsent == unsent) {
        return;
    }

    if (!s->closed) {
        ngx_http_mcp_stream_sent(s);
        return;
    }

    if (s->unsent == 0) {
        ngx_http_mcp_parked_close(s);
        return;
    }

    ngx_http_mcp_stream_set_deadline(s, 1);
}


static void
ngx_http_mcp_parked_read_handler(ngx_event_t *rev)
{
    ssize_t                 n;
    ngx_uint_t              i;
    ngx_connection_t       *c;
    ngx_http_mcp_stream_t  *s;
    u_char                  buf[4096];

    c = rev->data;
    s = c->data;

    if (c->close) {
        ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_DRAINED);
        return;
    }

    /* nothing that the client sends on this connection is needed */

    for (i = 0; i < NGX_HTTP_MCP_PARKED_READS; i++) {

        n = c->recv(c, buf, sizeof(buf));

        if (n == NGX_AGAIN) {

            if (ngx_handle_read_event(rev, 0) != NGX_OK) {
                ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
            }

            return;
        }

        if (n == 0 || n == NGX_ERROR) {

#if (NGX_HTTP_SSL)
            if (c->ssl) {
                c->ssl->no_send_shutdown = 1;
            }
#endif

            ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                           "mcp client left stream %uD", s->zs.local);

            ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
            return;
        }
    }

    ngx_log_error(NGX_LOG_INFO, c->log, 0,
                  "mcp client sent too much data on its stream");

    ngx_http_mcp_stream_drop(s, NGX_MCP_COUNTER_STREAMS_CLIENT);
}
