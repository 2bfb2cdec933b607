
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"


static void ngx_http_mcp_capture_header(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
static ngx_uint_t ngx_http_mcp_capture_feed(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
static void ngx_http_mcp_capture_sample(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static ngx_int_t ngx_http_mcp_capture_add(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_drain(ngx_chain_t *in);
static ngx_int_t ngx_http_mcp_capture_keep(ngx_http_mcp_exchange_t *x);


ngx_int_t
ngx_http_mcp_exchange_header_filter(ngx_http_request_t *r)
{
    ngx_http_mcp_capture_t   *cap;
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(r);

    if (x == NULL) {
        return NGX_DECLINED;
    }

    cap = x->capture;

    r->header_sent = 1;
    r->filter_need_in_memory = 1;

    if (!cap->header && !cap->stop && !cap->done) {
        ngx_http_mcp_capture_header(x, r);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_capture_header(ngx_http_mcp_exchange_t *x, ngx_http_request_t *r)
{
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    cap->header = 1;
    cap->length = r->headers_out.content_length_n;

    x->status = r->headers_out.status;
    x->body = ngx_http_mcp_headers_body(x, r);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "mcp exchange header \"%V\" status:%ui body:%ui len:%O",
                   &x->name, x->status, x->body, cap->length);

    if (x->status < NGX_HTTP_OK) {
        ngx_log_error(x->level, r->connection->log, 0,
                      "mcp upstream \"%V\" answered with status %ui",
                      &x->name, x->status);

        ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_BAD);
        return;
    }

    if (ngx_http_mcp_headers_collect(x, r) != NGX_OK
        || ngx_http_mcp_adapt_response(x, r) != NGX_OK)
    {
        ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_CUT);
        return;
    }

    ngx_http_mcp_exchange_alive(x);

    if (x->feed && !ngx_http_mcp_capture_feed(x, r)) {
        return;
    }

    switch (x->body) {

    case NGX_HTTP_MCP_BODY_JSON:

        if (x->status < NGX_HTTP_SPECIAL_RESPONSE
            && cap->length > (off_t) x->limit)
        {
            ngx_log_error(x->level, r->connection->log, 0,
                          "mcp upstream \"%V\" sent a message of %O bytes, "
                          "over the limit of %uz; raise \"mcp_message_limit\"",
                          &x->name, cap->length, x->limit);

            ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_TOO_LARGE);
            return;
        }

        cap->mode = NGX_HTTP_MCP_GATHER;

        break;

    case NGX_HTTP_MCP_BODY_SSE:
        x->sse = ngx_pcalloc(x->r->pool, sizeof(ngx_mcp_sse_t));

        if (x->sse == NULL) {
            ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_BAD);
            return;
        }

        cap->mode = NGX_HTTP_MCP_PARSE;

        ngx_mcp_sse_init(x->sse, x->limit, r->connection->log);
        x->sse->skip = x->feed;

        ngx_http_mcp_capture_open(x);

        break;

    case NGX_HTTP_MCP_BODY_LINES:
        x->lines = ngx_pcalloc(x->r->pool, sizeof(ngx_mcp_lines_t));

        if (x->lines == NULL) {
            ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_BAD);
            return;
        }

        cap->mode = NGX_HTTP_MCP_SPLIT;

        ngx_mcp_lines_init(x->lines, x->limit, r->connection->log);
        ngx_http_mcp_capture_open(x);

        break;

    default:
        cap->mode = NGX_HTTP_MCP_DROP;
        break;
    }
}


/* whether a feed answered with a stream; the rest of another is not read */

static ngx_uint_t
ngx_http_mcp_capture_feed(ngx_http_mcp_exchange_t *x, ngx_http_request_t *r)
{
    if (x->status != NGX_HTTP_OK) {
        ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_STATUS);
        return 0;
    }

    if (x->body == NGX_HTTP_MCP_BODY_SSE || x->body == NGX_HTTP_MCP_BODY_LINES)
    {
        return 1;
    }

    ngx_log_error(x->level, r->connection->log, 0,
                  "mcp upstream \"%V\" answered with content type \"%V\"",
                  &x->name, &r->headers_out.content_type);

    ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_BAD);

    return 0;
}


ngx_int_t
ngx_http_mcp_exchange_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_chain_t              *cl;
    ngx_http_mcp_capture_t   *cap;
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(r);

    if (x == NULL) {
        return NGX_DECLINED;
    }

    cap = x->capture;

    if (cap->stop || cap->done || cap->ended) {
        ngx_http_mcp_capture_drain(in);
        return NGX_OK;
    }

    for (cl = in; cl; cl = cl->next) {

        if (x->sample.data) {
            ngx_http_mcp_capture_sample(x, cl->buf);
        }

        if (ngx_buf_size(cl->buf)
            && ngx_http_mcp_capture_add(x, cl->buf) != NGX_OK)
        {
            ngx_http_mcp_capture_drain(cl);
            ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_CUT);
            return NGX_OK;
        }

        if (cl->buf->last_in_chain || cl->buf->last_buf) {
            cap->last = 1;
        }
    }

    if (in) {
        ngx_http_mcp_exchange_alive(x);
    }

    ngx_http_mcp_capture_process(x);

    if (cap->in && !cap->stop && !ngx_http_mcp_capture_unbuffered(r)
        && ngx_http_mcp_capture_keep(x) != NGX_OK)
    {
        ngx_http_mcp_exchange_fail(x, NGX_HTTP_MCP_TOO_LARGE);
    }

    if (cap->stop) {
        ngx_http_mcp_capture_drain(cap->in);
        ngx_http_mcp_capture_drain(in);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_capture_sample(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    size_t  size;

    if (!ngx_buf_in_memory(b)) {
        return;
    }

    size = ngx_min((size_t) (b->last - b->pos),
                   NGX_HTTP_MCP_SAMPLE - x->sample.len);

    ngx_memcpy(x->sample.data + x->sample.len, b->pos, size);

    x->sample.len += size;
}


static ngx_int_t
ngx_http_mcp_capture_add(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    ngx_chain_t             *cl;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    cl = ngx_alloc_chain_link(x->r->pool);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    *cap->last_in = cl;
    cap->last_in = &cl->next;

    cap->received += ngx_buf_size(b);

    return NGX_OK;
}


static void
ngx_http_mcp_capture_drain(ngx_chain_t *in)
{
    for ( /* void */ ; in; in = in->next) {
        in->buf->pos = in->buf->last;
        in->buf->file_pos = in->buf->file_last;
    }
}


/*
 * A handler that is no upstream, or a buffered one, does not wait until its
 * buffers are taken: what is held becomes a copy of our own.
 */

static ngx_int_t
ngx_http_mcp_capture_keep(ngx_http_mcp_exchange_t *x)
{
    size_t                   size, copied;
    ngx_buf_t               *b;
    ngx_chain_t             *cl;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;
    copied = 0;

    for (cl = cap->in; cl; cl = cl->next) {

        size = cl->buf->last - cl->buf->pos;
        copied += size;

        if (cl->buf->tag == (ngx_buf_tag_t) &ngx_http_mcp_exchange_create) {
            continue;
        }

        if (copied > x->limit) {
            ngx_log_error(x->level, x->r->connection->log, 0,
                          "mcp upstream \"%V\" sent more than %uz bytes "
                          "before nginx could process them",
                          &x->name, x->limit);
            return NGX_ERROR;
        }

        b = ngx_create_temp_buf(x->r->pool, size);
        if (b == NULL) {
            return NGX_ERROR;
        }

        b->last = ngx_cpymem(b->last, cl->buf->pos, size);
        b->tag = (ngx_buf_tag_t) &ngx_http_mcp_exchange_create;

        cl->buf->pos = cl->buf->last;
        cl->buf = b;
    }

    return NGX_OK;
}
