
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_output.h"


static ngx_int_t ngx_http_mcp_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *parts, ngx_uint_t nparts);
static ngx_int_t ngx_http_mcp_frame_event(ngx_http_request_t *r,
    ngx_str_t **body);
static ngx_int_t ngx_http_mcp_cors_headers(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_refusal_body(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_answer_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_mcp_answer_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_uint_t ngx_http_mcp_revision(ngx_http_mcp_ctx_t *ctx);


static ngx_http_output_header_filter_pt  ngx_http_mcp_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_mcp_next_body_filter;


/* returns the revision of MCP whose format an error body has */

static ngx_uint_t
ngx_http_mcp_revision(ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_mcp_verify_session(ctx);

    if (ctx->caller.revision) {
        return ctx->caller.revision;
    }

    return ctx->header_revision;
}


ngx_int_t
ngx_http_mcp_answer(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *body)
{
    ngx_int_t            rc;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (body == NULL) {
        ctx->responded = 1;

        r->headers_out.status = status;
        r->headers_out.content_length_n = 0;

        /* with status 200, a filter may add a body */

        r->header_only = (status != NGX_HTTP_OK);

        ngx_http_clear_accept_ranges(r);
        ngx_http_clear_last_modified(r);

        rc = ngx_http_mcp_send_header(r);

        return (rc == NGX_OK && !r->header_only)
               ? ngx_http_send_special(r, NGX_HTTP_LAST) : rc;
    }

    if (status == NGX_HTTP_OK && !(ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON)) {

        if (ngx_http_mcp_frame_event(r, &body) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ctx->response = 2;
    }

    return ngx_http_mcp_send(r, status, body, 1);
}


/* sends parts of a JSON body, or an event of SSE if ctx->response says so */

static ngx_int_t
ngx_http_mcp_send(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *parts,
    ngx_uint_t nparts)
{
    ngx_buf_t           *b;
    ngx_str_t           *type;
    ngx_uint_t           i;
    ngx_chain_t         *cl, out[NGX_HTTP_MCP_PARTS];
    ngx_http_mcp_ctx_t  *ctx;

    static ngx_str_t  sse = ngx_string("text/event-stream");

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ctx->responded = 1;

    if (ctx->response == 2) {
        type = &sse;

    } else {
        ctx->response = 1;
        type = &ngx_http_mcp_type_json;
    }

    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);

    b = ngx_pcalloc(r->pool, nparts * sizeof(ngx_buf_t));
    if (b == NULL) {
        return NGX_ERROR;
    }

    cl = NULL;

    for (i = nparts; i-- > 0; /* void */) {

        if (parts[i].len == 0) {
            continue;
        }

        b[i].pos = parts[i].data;
        b[i].last = parts[i].data + parts[i].len;
        b[i].memory = 1;

        out[i].buf = &b[i];
        out[i].next = cl;
        cl = &out[i];
    }

    return ngx_http_mcp_send_chain(r, status, type, cl);
}


/* makes the body an SSE stream of one event, for clients that take no JSON */

static ngx_int_t
ngx_http_mcp_frame_event(ngx_http_request_t *r, ngx_str_t **body)
{
    u_char     *p;
    ngx_str_t  *framed;

    framed = ngx_palloc(r->pool, sizeof(ngx_str_t));
    if (framed == NULL) {
        return NGX_ERROR;
    }

    framed->len = sizeof("data: \n\n") - 1 + (*body)->len;
    framed->data = ngx_pnalloc(r->pool, framed->len);

    if (framed->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(framed->data, "data: ", sizeof("data: ") - 1);
    p = ngx_cpymem(p, (*body)->data, (*body)->len);

    ngx_mcp_sse_flatten(framed->data, p);

    *p++ = '\n';
    *p = '\n';

    *body = framed;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_result(ngx_http_request_t *r, ngx_str_t *id, ngx_str_t *result)
{
    ngx_str_t            body;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    body = ctx->client->result ? ctx->client->result(ctx, r->pool, id, result)
                               : ngx_mcp_result_compose(r->pool, id, result);

    if (body.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_answer(r, NGX_HTTP_OK, &body);
}


ngx_int_t
ngx_http_mcp_reply_ok(ngx_http_mcp_reply_t *reply)
{
    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));
    ngx_str_set(&reply->result, "{}");

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_reply_error(ngx_http_mcp_reply_t *reply, ngx_uint_t status,
    ngx_int_t code, const char *message)
{
    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    reply->code = code;
    reply->status = status;
    reply->message.data = (u_char *) message;
    reply->message.len = ngx_strlen(message);

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_reply_invalid(ngx_http_mcp_reply_t *reply, const char *message)
{
    return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                    NGX_MCP_INVALID_PARAMS, message);
}


ngx_int_t
ngx_http_mcp_reply_no_method(ngx_http_mcp_reply_t *reply)
{
    return ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                    NGX_MCP_METHOD_NOT_FOUND,
                                    "Method not found");
}


ngx_int_t
ngx_http_mcp_reply_internal(ngx_http_mcp_reply_t *reply)
{
    return ngx_http_mcp_reply_error(reply, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                    NGX_MCP_INTERNAL_ERROR, "internal error");
}


ngx_int_t
ngx_http_mcp_reply_send(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t            text;
    ngx_uint_t           status;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (ngx_http_mcp_reply_empty(reply)) {
        return ngx_http_mcp_answer(r, NGX_HTTP_ACCEPTED, NULL);
    }

    if (reply->nparts > 1 && ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON) {
        return ngx_http_mcp_send(r, NGX_HTTP_OK, reply->parts, reply->nparts);
    }

    if (ngx_http_mcp_reply_text(r, id, reply, &text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (reply->status == 0) {
        return ngx_http_mcp_answer(r, NGX_HTTP_OK, &text);
    }

    ctx->error = reply->code;
    ctx->failed = 1;
    status = reply->status;

    if (reply->nparts == 0) {
        if (ctx->client->status) {
            status = ctx->client->status(status, reply->code);
        }

        r->connection->log->action = NULL;

        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "mcp endpoint \"%V\" answered %ui, %i: %V",
                      &ctx->conf->name, status, reply->code, &reply->message);
    }

    /* the upstream's Retry-After may be there already */

    if (status == NGX_HTTP_SERVICE_UNAVAILABLE
        && ngx_http_mcp_find_header(&r->headers_out.headers, "Retry-After")
           == NULL
        && ngx_http_mcp_header_text(r, "Retry-After", "1") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_answer(r, status, &text);
}


ngx_int_t
ngx_http_mcp_reply_text(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_reply_t *reply, ngx_str_t *text)
{
    u_char              *p;
    ngx_uint_t           i;
    ngx_http_mcp_ctx_t  *ctx;

    ngx_str_null(text);

    if (ngx_http_mcp_reply_empty(reply)) {
        return NGX_OK;
    }

    switch (reply->nparts) {

    case 0:
        break;

    case 1:
        *text = reply->parts[0];
        return NGX_OK;

    default:

        for (i = 0; i < reply->nparts; i++) {
            text->len += reply->parts[i].len;
        }

        p = ngx_pnalloc(r->pool, text->len);
        if (p == NULL) {
            ngx_str_null(text);
            return NGX_ERROR;
        }

        text->data = p;

        for (i = 0; i < reply->nparts; i++) {
            p = ngx_cpymem(p, reply->parts[i].data, reply->parts[i].len);
        }

        return NGX_OK;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (reply->status) {
        *text = ctx->client->error(r->pool, ngx_http_mcp_revision(ctx), id,
                                   reply->code, &reply->message,
                                   reply->data.len ? &reply->data : NULL);

    } else if (ctx->client->result) {
        *text = ctx->client->result(ctx, r->pool, id, &reply->result);

    } else {
        *text = ngx_mcp_result_compose(r->pool, id, &reply->result);
    }

    return text->data ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status, ngx_int_t code,
    const char *message)
{
    ngx_str_t              id;
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_mcp_reply_t   reply;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ngx_str_null(&id);

    if (ctx->message) {
        id = ctx->message->id;
    }

    (void) ngx_http_mcp_reply_error(&reply, status, code, message);

    return ngx_http_mcp_reply_send(r, &id, &reply);
}


ngx_int_t
ngx_http_mcp_not_allowed(ngx_http_request_t *r, const char *why)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (ngx_http_mcp_header(r, "Allow", &ctx->client->methods) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_refuse(r, NGX_HTTP_NOT_ALLOWED, NGX_MCP_REFUSED, why);
}


void
ngx_http_mcp_filter_init(void)
{
    ngx_http_mcp_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_mcp_header_filter;

    ngx_http_mcp_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_mcp_body_filter;
}


static ngx_int_t
ngx_http_mcp_header_filter(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_exchange_header_filter(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r == r->main) {
        rc = ngx_http_mcp_answer_header_filter(r);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_mcp_next_header_filter(r);
}


/*
 * A refusal of nginx or another module at an endpoint gets a JSON-RPC body in
 * place of its page; status and headers stay.
 */

static ngx_int_t
ngx_http_mcp_answer_header_filter(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t        *ctx;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_core_loc_conf_t  *clcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    if (!mlcf->endpoint) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_mcp_get_ctx(r, mlcf);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    if (ctx->origin_ok && ngx_http_mcp_cors_headers(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->responded || r->headers_out.status < NGX_HTTP_BAD_REQUEST) {
        return NGX_DECLINED;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->error_pages || r->error_page) {
        return NGX_DECLINED;
    }

    if (ngx_http_mcp_refusal_body(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->refused = 1;
    ctx->response = 1;

    r->headers_out.content_type = ngx_http_mcp_type_json;
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.content_length_n = ctx->refusal.len;

    if (r->headers_out.content_length) {
        r->headers_out.content_length->hash = 0;
        r->headers_out.content_length = NULL;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_cors_headers(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    if (!ctx->conf->cors || ctx->header_origin.len == 0) {
        return NGX_OK;
    }

    if (ngx_http_mcp_header(r, "Access-Control-Allow-Origin",
                            &ctx->header_origin)
        != NGX_OK
        || ngx_http_mcp_header_text(r, "Vary", "Origin") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_header_text(r, "Access-Control-Expose-Headers",
                                    "Mcp-Session-Id, WWW-Authenticate, "
                                    "Retry-After");
}


static ngx_int_t
ngx_http_mcp_refusal_body(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t   code;
    ngx_str_t   id;
    ngx_uint_t  i, status;

    static struct {
        ngx_uint_t  status;
        ngx_str_t   message;
    } refusals[] = {
        { NGX_HTTP_UNAUTHORIZED, ngx_string("authorization is required") },
        { NGX_HTTP_FORBIDDEN, ngx_string("access is forbidden") },
        { NGX_HTTP_NOT_ALLOWED, ngx_string("the method is not allowed") },
        { NGX_HTTP_REQUEST_TIME_OUT,
          ngx_string("the request took too long to arrive") },
        { NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
          ngx_string("the request body is larger than client_max_body_size") },
        { NGX_HTTP_TOO_MANY_REQUESTS, ngx_string("too many requests") },
        { NGX_HTTP_SERVICE_UNAVAILABLE,
          ngx_string("the service is unavailable or a limit was reached") },
        { NGX_HTTP_INTERNAL_SERVER_ERROR, ngx_string("internal error") },
        { 0, ngx_string("the request was refused") }
    };

    status = r->headers_out.status;
    code = NGX_MCP_REFUSED;

    if (status >= NGX_HTTP_INTERNAL_SERVER_ERROR
        && status != NGX_HTTP_SERVICE_UNAVAILABLE)
    {
        status = NGX_HTTP_INTERNAL_SERVER_ERROR;
        code = NGX_MCP_INTERNAL_ERROR;
    }

    for (i = 0; refusals[i].status && refusals[i].status != status; i++) {
        /* void */
    }

    ngx_str_null(&id);

    if (ctx->message && status != NGX_HTTP_REQUEST_ENTITY_TOO_LARGE) {
        id = ctx->message->id;
    }

    ctx->error = code;
    ctx->refusal = ctx->client->error(r->pool, ngx_http_mcp_revision(ctx), &id,
                                      code, &refusals[i].message, NULL);

    return ctx->refusal.data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_exchange_body_filter(r, in);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r == r->main) {
        rc = ngx_http_mcp_answer_body_filter(r, in);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_mcp_next_body_filter(r, in);
}


static ngx_int_t
ngx_http_mcp_answer_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_buf_t           *b;
    ngx_uint_t           last;
    ngx_chain_t         *cl, out;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (ctx == NULL || !ctx->refused || in == NULL) {
        return NGX_DECLINED;
    }

    last = 0;

    for (cl = in; cl; cl = cl->next) {
        last |= cl->buf->last_buf;

        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;
    }

    if (!last) {
        return NGX_OK;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = ctx->refusal.data;
    b->last = ctx->refusal.data + ctx->refusal.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_mcp_next_body_filter(r, &out);
}
