
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"


/* messages of one array, at most: all are processed in one event */
#define NGX_HTTP_MCP_CAPTURE_ARRAY  128


/* whether a text begins with a byte order mark, which JSON does not have */
#define ngx_http_mcp_capture_has_bom(p, len)                                  \
    ((len) >= 3 && ngx_memcmp(p, "\xef\xbb\xbf", 3) == 0)


static ngx_uint_t ngx_http_mcp_capture_check_feed(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
static void ngx_http_mcp_capture_log_type(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_capture_add(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_drain(ngx_chain_t *in);
static ngx_int_t ngx_http_mcp_capture_copy(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_capture_drop(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_gather(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_gathered_too_much(
    ngx_http_mcp_exchange_t *x);
static ngx_int_t ngx_http_mcp_capture_grow(ngx_http_mcp_exchange_t *x,
    size_t size);
static void ngx_http_mcp_capture_pass(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_parse(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_event(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_split(ngx_http_mcp_exchange_t *x,
    ngx_buf_t *b);
static void ngx_http_mcp_capture_skipped(ngx_http_mcp_exchange_t *x,
    ngx_uint_t skipped);
static void ngx_http_mcp_capture_ignored(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_refusal(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_quote(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_fix_id(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_capture_zeros(u_char *p, u_char *last);
static void ngx_http_mcp_capture_whole(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_array(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_deliver(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_capture_finish(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_capture_invalid(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_capture_too_large(ngx_http_mcp_exchange_t *x,
    const char *what);


void
ngx_http_mcp_capture_header(ngx_http_mcp_exchange_t *x, ngx_http_request_t *r)
{
    x->header = 1;
    x->length = r->headers_out.content_length_n;

    x->status = r->headers_out.status;
    x->body = ngx_http_mcp_headers_body(x, r);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "mcp exchange header \"%V\" status:%ui body:%ui len:%O",
                   &x->name, x->status, x->body, x->length);

    if (x->status < NGX_HTTP_OK) {
        ngx_log_error(x->level, r->connection->log, 0,
                      x->status ? "mcp upstream \"%V\" answered with status "
                                  "%ui"
                                : "mcp upstream \"%V\" answered with bytes "
                                  "that are not HTTP",
                      &x->name, x->status);

        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_BAD);
        return;
    }

    if (ngx_http_mcp_headers_collect(x, r) != NGX_OK
        || ngx_http_mcp_adapt_response(x, r) != NGX_OK)
    {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
        return;
    }

    if (x->feed && !ngx_http_mcp_capture_check_feed(x, r)) {
        return;
    }

    switch (x->body) {

    case NGX_HTTP_MCP_BODY_JSON:

        if (x->status < NGX_HTTP_SPECIAL_RESPONSE
            && x->length > (off_t) x->limit)
        {
            ngx_log_error(x->level, r->connection->log, 0,
                          "mcp upstream \"%V\" sent a message of %O bytes, "
                          "over the limit of %uz; raise \"mcp_message_limit\"",
                          &x->name, x->length, x->limit);

            ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_TOO_LARGE);
            return;
        }

        x->mode = NGX_HTTP_MCP_GATHER;

        break;

    case NGX_HTTP_MCP_BODY_SSE:
        x->sse = ngx_pcalloc(x->r->pool, sizeof(ngx_mcp_sse_t));

        if (x->sse == NULL) {
            ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_BAD);
            return;
        }

        x->mode = NGX_HTTP_MCP_PARSE;

        ngx_mcp_sse_init(x->sse, x->limit, r->connection->log);
        x->sse->skip = x->skips;

        ngx_http_mcp_capture_open(x);

        break;

    case NGX_HTTP_MCP_BODY_LINES:
        x->lines = ngx_pcalloc(x->r->pool, sizeof(ngx_mcp_lines_t));

        if (x->lines == NULL) {
            ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_BAD);
            return;
        }

        x->mode = NGX_HTTP_MCP_SPLIT;

        ngx_mcp_lines_init(x->lines, x->limit, r->connection->log);
        ngx_http_mcp_capture_open(x);

        break;

    default:
        x->mode = NGX_HTTP_MCP_DROP;
        break;
    }
}


/*
 * Returns whether the response of a feed is a stream; any other response ends
 * the exchange.
 */

static ngx_uint_t
ngx_http_mcp_capture_check_feed(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r)
{
    if (x->status != NGX_HTTP_OK) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_STATUS);
        return 0;
    }

    if (x->body == NGX_HTTP_MCP_BODY_SSE || x->body == NGX_HTTP_MCP_BODY_LINES)
    {
        return 1;
    }

    if (x->body == NGX_HTTP_MCP_BODY_NONE) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_OK);
        return 0;
    }

    x->body = NGX_HTTP_MCP_BODY_OTHER;

    ngx_http_mcp_capture_log_type(x, r);
    ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_BAD);

    return 0;
}


static void
ngx_http_mcp_capture_log_type(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r)
{
    ngx_str_t   *value;
    const char  *what;

    what = "encoding";
    value = ngx_http_mcp_headers_encoding(r);

    if (value == NULL) {
        what = "type";
        value = &r->headers_out.content_type;
    }

    ngx_log_error(x->level, x->r->connection->log, 0,
                  "mcp upstream \"%V\" answered with content %s \"%V\"",
                  &x->name, what, value);
}


void
ngx_http_mcp_capture_body(ngx_http_mcp_exchange_t *x, ngx_http_request_t *r,
    ngx_chain_t *in)
{
    ngx_str_t     text;
    ngx_chain_t  *cl;

    if (x->stop || x->done || x->ended) {
        ngx_http_mcp_capture_drain(in);
        return;
    }

    for (cl = in; cl; cl = cl->next) {

        /* a body that is gathered is quoted when it is complete */

        if (x->quotes && x->mode != NGX_HTTP_MCP_GATHER && x->text == NULL
            && ngx_buf_in_memory(cl->buf))
        {
            text.data = cl->buf->pos;
            text.len = cl->buf->last - cl->buf->pos;

            ngx_http_mcp_capture_quote(x, &text);
        }

        if (ngx_buf_size(cl->buf)
            && ngx_http_mcp_capture_add(x, cl->buf) != NGX_OK)
        {
            ngx_http_mcp_capture_drain(cl);
            ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
            return;
        }

        if (cl->buf->last_in_chain || cl->buf->last_buf) {
            x->last = 1;
        }
    }

    ngx_http_mcp_capture_process(x);

    if (x->in && !x->stop && !ngx_http_mcp_capture_unbuffered(r)
        && ngx_http_mcp_capture_copy(x) != NGX_OK)
    {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_TOO_LARGE);
    }

    if (x->stop) {
        ngx_http_mcp_capture_drain(x->in);
        ngx_http_mcp_capture_drain(in);
    }
}


static ngx_int_t
ngx_http_mcp_capture_add(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    ngx_chain_t  *cl;

    cl = ngx_alloc_chain_link(x->r->pool);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    *x->last_in = cl;
    x->last_in = &cl->next;

    x->received += ngx_buf_size(b);

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
 * A content handler that is no upstream module, or a buffering upstream module,
 * does not wait until its buffers are processed, so the unprocessed bytes are
 * copied.  The tag marks buffers that are copies.
 */

static ngx_int_t
ngx_http_mcp_capture_copy(ngx_http_mcp_exchange_t *x)
{
    size_t        size, copied;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    copied = 0;

    for (cl = x->in; cl; cl = cl->next) {

        size = cl->buf->last - cl->buf->pos;
        copied += size;

        if (cl->buf->tag == (ngx_buf_tag_t) &ngx_http_mcp_capture_header) {
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
        b->tag = (ngx_buf_tag_t) &ngx_http_mcp_capture_header;

        cl->buf->pos = cl->buf->last;
        cl->buf = b;
    }

    return NGX_OK;
}


void
ngx_http_mcp_capture_process(ngx_http_mcp_exchange_t *x)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    while (x->in && !x->paused && !x->stop && !x->done) {

        b = x->in->buf;

        switch (x->mode) {

        case NGX_HTTP_MCP_GATHER:
            ngx_http_mcp_capture_gather(x, b);
            break;

        case NGX_HTTP_MCP_PASS:
            ngx_http_mcp_capture_pass(x, b);
            break;

        case NGX_HTTP_MCP_PARSE:
            ngx_http_mcp_capture_parse(x, b);
            break;

        case NGX_HTTP_MCP_SPLIT:
            ngx_http_mcp_capture_split(x, b);
            break;

        default:
            ngx_http_mcp_capture_drop(x, b);
            break;
        }

        cl = x->in;

        if (cl->buf->pos == cl->buf->last) {
            x->in = cl->next;

            if (x->in == NULL) {
                x->last_in = &x->in;
            }

            ngx_free_chain(x->r->pool, cl);
        }
    }

    if (x->in == NULL && x->last && !x->finished
        && !x->paused && !x->stop && !x->done)
    {
        ngx_http_mcp_capture_finish(x);
    }
}


void
ngx_http_mcp_capture_open(ngx_http_mcp_exchange_t *x)
{
    if (x->opened) {
        return;
    }

    x->opened = 1;

    if (x->handlers->header) {
        x->handlers->header(x);
    }
}


static void
ngx_http_mcp_capture_drop(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    ngx_str_t  text;

    if (ngx_http_mcp_headers_encoding(x->sr) == NULL) {
        text.data = b->pos;
        text.len = b->last - b->pos;

        ngx_http_mcp_capture_quote(x, &text);
    }

    b->pos = b->last;

    if (x->body == NGX_HTTP_MCP_BODY_OTHER
        && x->status < NGX_HTTP_SPECIAL_RESPONSE
        && !x->wrong_type)
    {
        x->wrong_type = 1;
        ngx_http_mcp_capture_log_type(x, x->sr);
    }

    /*
     * A body of at most NGX_HTTP_MCP_WHOLE bytes is read to its end, so that
     * nginx can use the connection again.
     */

    if (x->received > NGX_HTTP_MCP_WHOLE) {

        if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {
            ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_STATUS);

        } else {
            ngx_http_mcp_capture_stop(x, x->wrong_type ? NGX_HTTP_MCP_BAD
                                                       : NGX_HTTP_MCP_OK);
        }
    }
}


/* collects a JSON body in x->text, or begins to give it to piece() */

static void
ngx_http_mcp_capture_gather(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    size_t     size, max, mark;
    ngx_str_t  text;

    if (x->delivered) {
        b->pos = b->last;
        return;
    }

    mark = 0;

    if (x->len == 0 && ngx_http_mcp_capture_has_bom(b->pos, b->last - b->pos)) {
        mark = 3;
        b->pos += mark;
    }

    size = b->last - b->pos;

    if (size == 0) {
        return;
    }

    if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {
        max = NGX_HTTP_MCP_WHOLE;

    } else {
        max = x->limit;
    }

    if (x->received > max) {
        ngx_http_mcp_capture_gathered_too_much(x);
        return;
    }

    if (x->handlers->piece && x->len == 0 && *b->pos == '{'
        && x->status < NGX_HTTP_SPECIAL_RESPONSE
        && x->length > NGX_HTTP_MCP_WHOLE)
    {
        x->scan = ngx_palloc(x->r->pool, sizeof(ngx_mcp_json_t));
        if (x->scan == NULL) {
            ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
            return;
        }

        ngx_mcp_json_init(x->scan);
        x->mode = NGX_HTTP_MCP_PASS;

        return;
    }

    if (x->len == 0 && x->length == (off_t) (size + mark)
        && ngx_http_mcp_capture_unbuffered(x->sr))
    {
        /*
         * The buffer has the whole body, and handlers may change the text in
         * it.
         */

        text.len = size;
        text.data = b->pos;

        b->pos = b->last;

        ngx_http_mcp_capture_whole(x, &text);
        return;
    }

    if (x->len + size > x->size
        && ngx_http_mcp_capture_grow(x, x->len + size) != NGX_OK)
    {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
        return;
    }

    ngx_memcpy(x->text + x->len, b->pos, size);

    x->len += size;
    b->pos = b->last;
}


static void
ngx_http_mcp_capture_gathered_too_much(ngx_http_mcp_exchange_t *x)
{
    ngx_str_t  text;

    if (x->status < NGX_HTTP_SPECIAL_RESPONSE) {
        ngx_http_mcp_capture_too_large(x, "a message");
        return;
    }

    text.data = x->text;
    text.len = x->len;

    ngx_http_mcp_capture_quote(x, &text);

    x->body = NGX_HTTP_MCP_BODY_OTHER;
    x->mode = NGX_HTTP_MCP_DROP;
}


static ngx_int_t
ngx_http_mcp_capture_grow(ngx_http_mcp_exchange_t *x, size_t size)
{
    u_char  *p;

    if (x->length >= (off_t) size) {
        size = (size_t) x->length;

    } else {
        size = ngx_max(size, ngx_min(2 * x->size, x->limit));
    }

    p = ngx_pnalloc(x->r->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (x->len) {
        ngx_memcpy(p, x->text, x->len);
    }

    if (x->text) {
        ngx_pfree(x->r->pool, x->text);
    }

    x->text = p;
    x->size = size;

    return NGX_OK;
}


static void
ngx_http_mcp_capture_pass(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    u_char      *last;
    ngx_buf_t    buf;
    ngx_int_t    rc;
    ngx_chain_t  link;

    if (x->received > x->limit) {
        ngx_http_mcp_capture_too_large(x, "a message");
        return;
    }

    if (!x->scanned) {

        if (ngx_mcp_json_feed(x->scan, b->pos, b->last) == NGX_ERROR) {
            ngx_http_mcp_capture_invalid(x);
            return;
        }

        x->scanned = 1;
    }

    ngx_http_mcp_capture_open(x);

    if (x->stop || x->paused) {
        return;
    }

    last = b->pos + ngx_min(b->last - b->pos, NGX_HTTP_MCP_WHOLE);

    ngx_memzero(&buf, sizeof(ngx_buf_t));

    buf.start = b->pos;
    buf.pos = b->pos;
    buf.last = last;
    buf.end = last;
    buf.memory = 1;

    link.buf = &buf;
    link.next = NULL;

    rc = x->handlers->piece(x, &link, 0);

    if (rc == NGX_AGAIN) {
        x->paused = 1;
        return;
    }

    b->pos = last;
    x->scanned = (last != b->last);

    if (rc == NGX_ERROR) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_ABORTED);
    }
}


/* reads b up to the end of the next event, and handles the event */

static void
ngx_http_mcp_capture_parse(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    ngx_int_t       rc;
    ngx_str_t       text;
    ngx_uint_t      skipped;
    ngx_mcp_json_t  json;

    skipped = x->sse->skipped;

    rc = ngx_mcp_sse_feed(x->sse, &b->pos, b->last);

    ngx_http_mcp_capture_skipped(x, x->sse->skipped - skipped);

    if (rc == NGX_AGAIN) {
        return;
    }

    if (rc == NGX_DECLINED) {
        ngx_http_mcp_capture_too_large(x, "an event");
        return;
    }

    /* rc == NGX_OK */

    text = x->sse->data;

    if (x->feed) {
        x->handlers->message(x, &text);
        return;
    }

    x->scan = &json;
    ngx_http_mcp_capture_event(x, &text);
    x->scan = NULL;
}


static void
ngx_http_mcp_capture_event(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    if (text->len == 0
        || (x->sse->name.len
            && (x->sse->name.len != 7
                || ngx_strncmp(x->sse->name.data, "message", 7) != 0)))
    {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, x->r->connection->log, 0,
                       "mcp exchange event \"%V\" len:%uz ignored",
                       &x->sse->name, text->len);
        return;
    }

    if (ngx_mcp_json_scan(x->scan, text) != NGX_OK
        || (x->scan->type != NGX_MCP_JSON_OBJECT
            && x->scan->type != NGX_MCP_JSON_ARRAY))
    {
        ngx_http_mcp_capture_ignored(x, text);
        return;
    }

    if (x->scan->type == NGX_MCP_JSON_ARRAY) {
        ngx_http_mcp_capture_array(x, text);

    } else {
        ngx_http_mcp_capture_deliver(x, text);
    }
}


/* logs once that an event is ignored: some servers send such as heartbeats */

static void
ngx_http_mcp_capture_ignored(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    u_char     buf[NGX_MCP_QUOTE];
    ngx_str_t  quote;

    if (x->ignored_logged) {
        return;
    }

    x->ignored_logged = 1;

    quote.data = buf;
    quote.len = ngx_mcp_json_quote(buf, text) - buf;

    ngx_log_error(NGX_LOG_WARN, x->r->connection->log, 0,
                  "mcp upstream \"%V\" sent an event that is not a JSON-RPC "
                  "message: \"%V\"; the module ignores such events of the "
                  "stream", &x->name, &quote);
}


/* reads b up to the end of the next line, and handles the line */

static void
ngx_http_mcp_capture_split(ngx_http_mcp_exchange_t *x, ngx_buf_t *b)
{
    ngx_int_t   rc;
    ngx_str_t   text;
    ngx_uint_t  skipped;

    skipped = x->lines->skipped;

    rc = ngx_mcp_lines_feed(x->lines, &b->pos, b->last);

    ngx_http_mcp_capture_skipped(x, x->lines->skipped - skipped);

    if (rc == NGX_ERROR) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
        return;
    }

    if (rc == NGX_OK) {
        text = x->lines->data;
        x->handlers->message(x, &text);
    }
}


static void
ngx_http_mcp_capture_skipped(ngx_http_mcp_exchange_t *x, ngx_uint_t skipped)
{
    if (skipped) {
        ngx_log_error(NGX_LOG_ERR, x->r->connection->log, 0,
                      "mcp upstream \"%V\" sent an event over the limit of "
                      "%uz bytes; the event is ignored, raise "
                      "\"mcp_message_limit\"", &x->name, x->limit);

        if (x->handlers->skipped) {
            x->handlers->skipped(x, skipped);
        }
    }
}


/*
 * Some servers answer a request that has the id 7 with "7" or 7.0.  Changes
 * such an id to that of the request, in place.
 */

static void
ngx_http_mcp_capture_fix_id(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    size_t           len;
    u_char          *p;
    ngx_str_t       *id;
    ngx_mcp_span_t  *span;

    span = &x->scan->members[NGX_MCP_PATH_ID];

    if (x->scope == NULL
        || (span->type != NGX_MCP_JSON_STRING
            && span->type != NGX_MCP_JSON_NUMBER)
        || x->scan->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_ABSENT)
    {
        return;
    }

    id = &x->scope->request_id;
    p = text->data + span->start;

    len = span->end - span->start;

    if (id->len == 0 || id->data[0] == '"' || len < id->len + 2) {
        return;
    }

    if (span->type == NGX_MCP_JSON_NUMBER) {

        if (ngx_memcmp(p, id->data, id->len) != 0 || p[id->len] != '.'
            || ngx_http_mcp_capture_zeros(p + id->len + 1, p + len)
               != NGX_OK)
        {
            return;
        }

        ngx_memset(p + id->len, ' ', len - id->len);
        span->end = span->start + id->len;

        return;
    }

    if (len != id->len + 2 || ngx_memcmp(p + 1, id->data, id->len) != 0) {
        return;
    }

    *p = ' ';
    text->data[span->end - 1] = ' ';

    span->start++;
    span->end--;
    span->type = NGX_MCP_JSON_NUMBER;
}


static ngx_int_t
ngx_http_mcp_capture_zeros(u_char *p, u_char *last)
{
    while (p < last) {
        if (*p++ != '0') {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/* handles a complete body, whose scan is valid during this call only */

static void
ngx_http_mcp_capture_whole(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_mcp_json_t  json;

    /* a byte order mark that was spread over several buffers is still there */

    if (ngx_http_mcp_capture_has_bom(text->data, text->len)) {
        text->data += 3;
        text->len -= 3;
    }

    if (x->quotes) {
        ngx_http_mcp_capture_quote(x, text);
    }

    x->scan = &json;
    ngx_http_mcp_capture_message(x, text);
    x->scan = NULL;
}


static void
ngx_http_mcp_capture_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    if (ngx_mcp_json_scan(x->scan, text) != NGX_OK) {

        ngx_http_mcp_capture_quote(x, text);

        if (x->status < NGX_HTTP_SPECIAL_RESPONSE) {
            ngx_http_mcp_capture_invalid(x);
            return;
        }

        x->body = NGX_HTTP_MCP_BODY_OTHER;
        x->mode = NGX_HTTP_MCP_DROP;
        return;
    }

    x->delivered = 1;

    if (x->scan->type == NGX_MCP_JSON_ARRAY) {
        ngx_http_mcp_capture_array(x, text);

    } else {
        ngx_http_mcp_capture_deliver(x, text);
    }
}


/*
 * Delivers the messages of a batch one by one, as if they came in a stream.
 * Servers of 2025-03-26 may send batches.
 */

static void
ngx_http_mcp_capture_array(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t   rest, message;
    ngx_uint_t  i, n;

    rest = *text;

    for (n = 0; ngx_mcp_json_element(&rest, &message) == NGX_OK; n++) {
        /* void */
    }

    if (n > NGX_HTTP_MCP_CAPTURE_ARRAY) {
        ngx_log_error(x->level, x->r->connection->log, 0,
                      "mcp upstream \"%V\" sent an array of %ui messages, over "
                      "the limit of %d", &x->name, n,
                      NGX_HTTP_MCP_CAPTURE_ARRAY);

        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_BAD);
        return;
    }

    rest = *text;

    for (i = 1; i <= n && !x->stop && !x->done; i++) {
        (void) ngx_mcp_json_element(&rest, &message);

        x->more = (i < n);

        /*
         * The scan cannot fail, because the element is a part of a valid text.
         */

        (void) ngx_mcp_json_scan(x->scan, &message);

        ngx_http_mcp_capture_deliver(x, &message);
    }
}


static void
ngx_http_mcp_capture_deliver(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_http_mcp_capture_fix_id(x, text);
    ngx_http_mcp_capture_refusal(x, text);

    if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {
        ngx_http_mcp_capture_quote(x, text);
    }

    ngx_http_mcp_capture_open(x);

    if (!x->stop && x->handlers->message) {
        x->handlers->message(x, text);
    }
}


/*
 * Copies the error of an error message without an id to x->refusal.  Such a
 * message answers the request of the exchange, whose id the upstream did not
 * read.
 */

static void
ngx_http_mcp_capture_refusal(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t        error;
    ngx_mcp_json_t  *json;

    json = x->scan;

    if (x->method != NGX_HTTP_POST || x->refusal.len
        || !ngx_mcp_error_valid(json, text)
        || json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_ABSENT
        || json->members[NGX_MCP_PATH_ID].type > NGX_MCP_JSON_NULL)
    {
        return;
    }

    error = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);

    x->refusal.data = ngx_pstrdup(x->r->pool, &error);
    x->refusal.len = x->refusal.data ? error.len : 0;
}


static void
ngx_http_mcp_capture_quote(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    if (x->quote.len || text->len == 0) {
        return;
    }

    if (x->quote.data == NULL) {
        x->quote.data = ngx_pnalloc(x->r->pool, NGX_MCP_QUOTE);
    }

    if (x->quote.data) {
        x->quote.len = ngx_mcp_json_quote(x->quote.data, text)
                       - x->quote.data;
    }
}


static void
ngx_http_mcp_capture_finish(ngx_http_mcp_exchange_t *x)
{
    ngx_str_t   text;
    ngx_uint_t  skipped;

    switch (x->mode) {

    case NGX_HTTP_MCP_GATHER:

        x->finished = 1;

        if (x->delivered) {
            break;
        }

        if (x->len == 0) {
            x->body = NGX_HTTP_MCP_BODY_NONE;
            break;
        }

        text.len = x->len;
        text.data = x->text;

        ngx_http_mcp_capture_whole(x, &text);

        break;

    case NGX_HTTP_MCP_PASS:

        if (!x->delivered) {

            if (ngx_mcp_json_end(x->scan) != NGX_OK) {
                ngx_http_mcp_capture_invalid(x);
                break;
            }

            x->delivered = 1;
        }

        if (x->handlers->piece(x, NULL, 1) == NGX_AGAIN) {
            x->paused = 1;
            break;
        }

        x->finished = 1;

        break;

    case NGX_HTTP_MCP_SPLIT:

        x->finished = 1;

        skipped = x->lines->skipped;

        if (ngx_mcp_lines_end(x->lines) == NGX_OK) {
            text = x->lines->data;
            x->handlers->message(x, &text);
        }

        ngx_http_mcp_capture_skipped(x, x->lines->skipped - skipped);

        break;

    default:

        x->finished = 1;

        if (x->body == NGX_HTTP_MCP_BODY_OTHER && x->received == 0) {
            x->body = NGX_HTTP_MCP_BODY_NONE;
        }

        break;
    }
}


static void
ngx_http_mcp_capture_invalid(ngx_http_mcp_exchange_t *x)
{
    ngx_log_error(x->level, x->r->connection->log, 0,
                  "mcp upstream \"%V\" sent invalid JSON: %s",
                  &x->name, x->scan->error ? x->scan->error : "cut short");

    ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_BAD);
}


static void
ngx_http_mcp_capture_too_large(ngx_http_mcp_exchange_t *x, const char *what)
{
    ngx_log_error(x->level, x->r->connection->log, 0,
                  "mcp upstream \"%V\" sent %s over the limit of %uz bytes; "
                  "raise \"mcp_message_limit\"", &x->name, what, x->limit);

    ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_TOO_LARGE);
}


void
ngx_http_mcp_capture_stop(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    if (x->stop || x->done) {
        return;
    }

    x->stop = 1;
    x->outcome = outcome;

    ngx_post_event(&x->event, &ngx_posted_events);
}
