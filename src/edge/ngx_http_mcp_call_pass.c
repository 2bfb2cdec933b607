
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_output.h"


#define NGX_HTTP_MCP_CALL_BUFFER  16384


static ngx_int_t ngx_http_mcp_call_begin(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_call_copy(ngx_http_mcp_call_t *call,
    ngx_chain_t *in, ngx_chain_t **out);
static ngx_int_t ngx_http_mcp_call_gather(ngx_http_mcp_call_t *call,
    ngx_chain_t *in);


/* a part of a JSON answer that is too large to be looked at whole */

ngx_int_t
ngx_http_mcp_call_piece(ngx_http_mcp_talk_t *t, ngx_chain_t *in,
    ngx_uint_t last)
{
    ngx_int_t             rc;
    ngx_chain_t          *cl, *out;
    ngx_http_request_t   *r;
    ngx_http_mcp_call_t  *call;

    call = t->data;
    r = call->r;

    if (call->cancelled || call->gone || call->local_answer) {

        for (cl = in; cl; cl = cl->next) {
            cl->buf->pos = cl->buf->last;
        }

        if (last) {
            call->answered = 1;
            t->answered = 1;
        }

        return NGX_OK;
    }

    if (call->streaming || call->batch
        || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON)
        || ngx_http_mcp_filters(call->ctx, call->message))
    {
        if (ngx_http_mcp_call_gather(call, in) != NGX_OK) {
            return NGX_OK;
        }

        if (last) {
            call->gathered.len = call->large_size;
            ngx_http_mcp_call_note(call, &call->gathered);
            ngx_http_mcp_call_filter(call, &call->gathered);
            ngx_http_mcp_call_answer(call, &call->gathered);
        }

        return NGX_OK;
    }

    if (call->passing && r->connection->buffered) {
        return NGX_AGAIN;
    }

    if ((!call->passing && ngx_http_mcp_call_begin(call) != NGX_OK)
        || ngx_http_mcp_call_copy(call, in, &out) != NGX_OK)
    {
        call->gone = 1;
        return NGX_OK;
    }

    if (last) {
        ngx_http_mcp_call_note(call, NULL);
        call->answered = 1;
        t->answered = 1;
    }

    if (out == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_mcp_output(r, out);

    ngx_chain_update_chains(r->pool, &call->free, &call->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_mcp_module);

    if (rc != NGX_OK) {
        r->connection->error = 0;
        call->gone = 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_call_begin(ngx_http_mcp_call_t *call)
{
    ngx_http_request_t  *r;

    r = call->r;

    call->passing = 1;
    call->ctx->responded = 1;
    call->ctx->response = 1;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    r->headers_out.status = NGX_HTTP_OK;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;

    if (ngx_http_mcp_copy_headers(r, call->talk.x) != NGX_OK
        || ngx_http_mcp_send_header(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_output_start(r, ngx_http_mcp_call_sent);
}


/* the upstream's buffers are used again at once, the client may be slow */

static ngx_int_t
ngx_http_mcp_call_copy(ngx_http_mcp_call_t *call, ngx_chain_t *in,
    ngx_chain_t **out)
{
    size_t         n;
    ngx_buf_t     *b;
    ngx_pool_t    *pool;
    ngx_chain_t  **ll;

    pool = call->r->pool;
    ll = out;

    for ( /* void */ ; in; in = in->next) {

        while (in->buf->pos < in->buf->last) {

            *ll = ngx_chain_get_free_buf(pool, &call->free);
            if (*ll == NULL) {
                return NGX_ERROR;
            }

            b = (*ll)->buf;
            ll = &(*ll)->next;

            if (b->start == NULL) {
                b->start = ngx_pnalloc(pool, NGX_HTTP_MCP_CALL_BUFFER);
                if (b->start == NULL) {
                    return NGX_ERROR;
                }

                b->end = b->start + NGX_HTTP_MCP_CALL_BUFFER;
                b->temporary = 1;
                b->tag = (ngx_buf_tag_t) &ngx_http_mcp_module;
            }

            n = ngx_min(in->buf->last - in->buf->pos, b->end - b->start);

            b->pos = b->start;
            b->last = ngx_cpymem(b->start, in->buf->pos, n);
            b->last_buf = 0;
            b->flush = 1;

            in->buf->pos += n;
        }
    }

    *ll = NULL;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_call_gather(ngx_http_mcp_call_t *call, ngx_chain_t *in)
{
    size_t        len, size;
    u_char       *p;
    ngx_chain_t  *cl;

    for (cl = in; cl; cl = cl->next) {

        len = cl->buf->last - cl->buf->pos;

        if (call->large_size + len > call->gathered.len) {

            size = ngx_max(call->gathered.len * 2, call->large_size + len);

            p = ngx_palloc(call->r->pool, size);
            if (p == NULL) {
                return NGX_ERROR;
            }

            if (call->large_size) {
                ngx_memcpy(p, call->gathered.data, call->large_size);
                ngx_pfree(call->r->pool, call->gathered.data);
            }

            call->gathered.data = p;
            call->gathered.len = size;
        }

        ngx_memcpy(call->gathered.data + call->large_size, cl->buf->pos, len);
        call->large_size += len;

        cl->buf->pos = cl->buf->last;
    }

    return NGX_OK;
}


void
ngx_http_mcp_call_sent(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_call_t  *call;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    call = ctx->call;

    if (rc != NGX_OK) {
        call->gone = 1;
    }

    if (!call->passing) {
        return;
    }

    ngx_chain_update_chains(r->pool, &call->free, &call->busy, &call->none,
                            (ngx_buf_tag_t) &ngx_http_mcp_module);

    ngx_http_mcp_exchange_resume(call->talk.x);
}
