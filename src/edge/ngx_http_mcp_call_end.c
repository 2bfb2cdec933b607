
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_stream.h"


static void ngx_http_mcp_call_fail(ngx_http_mcp_call_t *call,
    ngx_http_mcp_outcome_e outcome);


void
ngx_http_mcp_call_done(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome)
{
    ngx_str_t             text, result;
    ngx_http_request_t   *r;
    ngx_http_mcp_call_t  *call;

    call = t->data;
    r = call->r;

    if (call->local_answer && !call->streaming) {
        call->done = 1;

        ngx_http_mcp_call_left_forget(call);
        ngx_http_mcp_call_unregister(call);

        if (call->batch) {
            ngx_http_mcp_batch_here(call->batch, call->index,
                                    &call->message->id);
            return;
        }

        ngx_http_finalize_request(r, call->gone
                                     ? NGX_HTTP_CLIENT_CLOSED_REQUEST
                                     : ngx_http_mcp_empty_result(r,
                                                       &call->message->id));
        return;
    }

    if (call->local_answer) {
        ngx_str_set(&result, "{}");

        text = ngx_mcp_result_compose(r->pool, &call->message->id, &result);

        if (text.data) {
            ngx_http_mcp_call_answer(call, &text);
        }
    }

    if (!call->streaming) {
        ngx_http_mcp_call_unregister(call);
    }

    if (!call->answered) {
        ngx_http_mcp_call_fail(call, outcome);
    }

    call->done = 1;

    ngx_http_mcp_call_left_forget(call);
    ngx_http_mcp_call_unregister(call);

    if (call->batch) {
        ngx_http_mcp_batch_done(call->batch);
        return;
    }

    if (call->streaming) {

        if (call->closed) {
            ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        }

        /* else the stream ends with its line and finalizes the request */

        return;
    }

    if (call->gone) {
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    if (call->passing) {

        if (outcome != NGX_HTTP_MCP_OK) {
            /* a JSON text that is cut short tells the client */

            r->keepalive = 0;
            ngx_http_finalize_request(r, NGX_ERROR);
            return;
        }

        ngx_http_mcp_output_finalize(r, ngx_http_send_special(r,
                                                              NGX_HTTP_LAST));
        return;
    }

    ngx_http_mcp_output_finalize(r, NGX_OK);
}


void
ngx_http_mcp_call_supplied(void *data, ngx_int_t rc)
{
    ngx_http_mcp_call_t *call = data;

    ngx_str_t                text, result;
    ngx_connection_t        *c;
    ngx_http_mcp_outcome_e   outcome;

    c = call->r->connection;

    call->sharing = 0;

    if (rc == NGX_DONE) {
        rc = ngx_http_mcp_talk_start(&call->talk);

        if (rc == NGX_OK) {
            ngx_http_run_posted_requests(c);
            return;
        }

        outcome = NGX_HTTP_MCP_BAD;

    } else if (rc == NGX_ABORT) {
        ngx_str_null(&call->uri);

        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "mcp upstream \"%V\" was not heard of about a "
                      "subscription", &call->talk.upstream->name);

        outcome = NGX_HTTP_MCP_TIMEOUT;

    } else {
        ngx_str_set(&result, "{}");

        text = ngx_mcp_result_compose(call->r->pool, &call->message->id,
                                      &result);

        ngx_http_mcp_call_answer(call, &text);

        outcome = NGX_HTTP_MCP_OK;
    }

    ngx_http_mcp_call_done(&call->talk, outcome);

    ngx_http_run_posted_requests(c);
}


/* the exchange ended without an answer for the client */

static void
ngx_http_mcp_call_fail(ngx_http_mcp_call_t *call,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_str_t             error;
    ngx_http_request_t   *r;
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_talk_t  *t;

    r = call->r;
    ctx = call->ctx;
    t = &call->talk;

    call->answered = 1;

    if (t->rpc && outcome == NGX_HTTP_MCP_STATUS
        && ngx_http_mcp_status_absent(t->x->status)
        && ngx_http_mcp_call_own_list(call, &error) == NGX_OK)
    {
        ctx->error = 0;

    } else if (t->rpc && t->legacy_only && outcome == NGX_HTTP_MCP_OK) {
        ngx_str_t  result = ngx_string("{}");

        error = ngx_mcp_result_compose(r->pool, &call->message->id, &result);

    } else if (t->rpc && outcome == NGX_HTTP_MCP_STATUS
               && ngx_http_mcp_status_absent(t->x->status))
    {
        ngx_str_t  why = ngx_string("Method not found");

        ctx->error = NGX_MCP_METHOD_NOT_FOUND;
        error = ngx_mcp_error_compose(r->pool, ctx->session.revision,
                                      &call->message->id,
                                      NGX_MCP_METHOD_NOT_FOUND, &why, NULL);

    } else if (call->abandoned) {
        ngx_str_t  why = ngx_string("cancelled, as the client had left and "
                                    "too many such requests were running");

        ngx_http_mcp_call_take_back(call);

        ctx->error = NGX_MCP_INTERNAL_ERROR;
        error = ngx_mcp_error_compose(r->pool, ctx->session.revision,
                                      &call->message->id,
                                      NGX_MCP_INTERNAL_ERROR, &why, NULL);

    } else if (call->cancelled && !call->ended) {
        ngx_http_mcp_call_take_back(call);
        ngx_str_null(&error);

    } else if (call->wait && !(call->ended && !call->streaming
                               && !call->batch))
    {
        ngx_str_t  why = ngx_string("internal error");

        ctx->error = NGX_MCP_INTERNAL_ERROR;

        if (call->ended) {
            ngx_str_set(&why, "the session has ended");
            ctx->error = NGX_MCP_SESSION_NOT_FOUND;
        }

        error = ngx_mcp_error_compose(r->pool, ctx->session.revision,
                                      &call->message->id, ctx->error, &why,
                                      NULL);

    } else {
        if (outcome == NGX_HTTP_MCP_OK && !call->blamed) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "mcp upstream \"%V\" ended its response without an "
                          "answer, status %ui", &t->upstream->name,
                          t->x->status);
        }

        ngx_http_mcp_call_take_back(call);

        if (!call->streaming && !call->batch && !call->passing) {

            if (call->gone) {
                return;
            }

            if (call->ended) {
                (void) ngx_http_mcp_refuse(r, NGX_HTTP_NOT_FOUND,
                                           NGX_MCP_SESSION_NOT_FOUND,
                                           "the session has ended");
                return;
            }

            if (t->scope.dots) {
                (void) ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           NGX_MCP_INVALID_REQUEST,
                                           NGX_HTTP_MCP_DOTS);
                return;
            }

            if (t->why.len) {
                (void) ngx_http_mcp_refuse_unknown(r, &call->message->id,
                                                   t->upstream, t->status,
                                                   &t->why);
                return;
            }

            (void) ngx_http_mcp_refuse_outcome(r, &call->message->id,
                                               t->upstream, t->x, outcome);
            return;
        }

        error = ngx_http_mcp_outcome_error(r, &call->message->id, t->upstream,
                                           t->x, outcome);
    }

    if (call->passing) {
        return;
    }

    if (call->batch) {
        ngx_http_mcp_batch_answer(call->batch, call->index, &error);
        return;
    }

    if (call->streaming) {

        if (error.len) {
            ngx_http_mcp_call_deliver(call, &error, NGX_MCP_EVENT_RESPONSE);
            return;
        }

        /* a cancelled request gets no answer; its stream just ends */

        if (ctx->stream) {
            ngx_http_mcp_stream_close(ctx->stream,
                                      NGX_MCP_COUNTER_STREAMS_DONE);
        }

        return;
    }

    if (call->gone) {
        return;
    }

    if (error.len) {
        (void) ngx_http_mcp_answer(r, NGX_HTTP_OK, &error);

    } else {
        (void) ngx_http_mcp_answer(r, NGX_HTTP_ACCEPTED, NULL);
    }
}
