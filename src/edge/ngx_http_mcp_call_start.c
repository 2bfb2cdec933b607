
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"


static ngx_int_t ngx_http_mcp_call_dispatch(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_call_after(ngx_event_t *ev);
static void ngx_http_mcp_call_reading(ngx_http_request_t *r);


/* tried in this order, until one does not decline */

static ngx_http_mcp_answerer_t  *ngx_http_mcp_answerers[] = {
    &ngx_http_mcp_call_list,
    &ngx_http_mcp_call_subscription,
    &ngx_http_mcp_call_local,
    &ngx_http_mcp_call_forward,
    NULL
};


ngx_int_t
ngx_http_mcp_call_start(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m)
{
    ngx_str_t                 result;
    ngx_http_mcp_call_t      *call;
    ngx_http_mcp_reply_t      reply;
    ngx_http_mcp_loc_conf_t  *mlcf;

    if (m->method_code == NGX_MCP_METHOD_PING) {
        ngx_str_set(&result, "{}");
        return ngx_http_mcp_result(r, &m->id, &result);
    }

    call = ngx_http_mcp_call_create(r, m);
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->call = call;

    if (ngx_http_mcp_call_dispatch(call, &reply) == NGX_OK) {
        return ngx_http_mcp_reply_send(r, &m->id, &reply);
    }

    mlcf = ctx->conf;

    if (mlcf->stream_after) {
        ngx_http_mcp_call_open_stream_after(call, mlcf->stream_after);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_mcp_call_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


ngx_int_t
ngx_http_mcp_call_element(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_http_mcp_reply_t  reply;

    if (call->message->method_code == NGX_MCP_METHOD_PING) {
        ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));
        ngx_str_set(&reply.result, "{}");

    } else if (ngx_http_mcp_call_dispatch(call, &reply) == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    ngx_http_mcp_call_text(call, &reply, text);

    return NGX_OK;
}


ngx_http_mcp_call_t *
ngx_http_mcp_call_create(ngx_http_request_t *r, ngx_mcp_message_t *m)
{
    ngx_http_mcp_call_t  *call;

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_call_t));
    if (call == NULL) {
        return NULL;
    }

    call->r = r;
    call->ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    call->message = m;

    return call;
}


/* NGX_OK: *reply is the answer; NGX_AGAIN: the call runs */

static ngx_int_t
ngx_http_mcp_call_dispatch(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t    rc;
    ngx_uint_t   i;

    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    rc = NGX_DECLINED;

    for (i = 0; rc == NGX_DECLINED && ngx_http_mcp_answerers[i]; i++) {
        call->answerer = ngx_http_mcp_answerers[i];
        rc = call->answerer->start(call, reply);
    }

    switch (rc) {

    case NGX_AGAIN:
        return NGX_AGAIN;

    case NGX_OK:
        break;

    case NGX_DECLINED:
        (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                        NGX_MCP_METHOD_NOT_FOUND,
                                        "Method not found");
        break;

    default: /* NGX_ERROR */
        (void) ngx_http_mcp_reply_internal(reply);
    }

    call->state = NGX_HTTP_MCP_CALL_DONE;

    ngx_http_mcp_call_unregister(call);

    if (reply->status) {
        ngx_http_mcp_call_unsubscribe(call);
    }

    return NGX_OK;
}


void
ngx_http_mcp_call_open_stream_after(ngx_http_mcp_call_t *call, ngx_msec_t time)
{
    if (!(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
        return;
    }

    call->after.handler = ngx_http_mcp_call_after;
    call->after.data = call;
    call->after.log = call->r->connection->log;

    ngx_add_timer(&call->after, time);
}


static void
ngx_http_mcp_call_after(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_mcp_call_t  *call;

    call = ev->data;
    c = call->r->connection;

    ngx_http_mcp_call_open_stream(call);
    ngx_http_run_posted_requests(c);
}


/*
 * As ngx_http_test_reading(), but a client that leaves only detaches: its
 * request runs on (2025-11-25 basic/transports, "Sending Messages": a
 * disconnect is no cancellation).
 */

static void
ngx_http_mcp_call_reading(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t  *ctx;

    if (!ngx_http_mcp_call_detach(r)) {
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ngx_http_mcp_call_client_gone(ctx->call);
}
