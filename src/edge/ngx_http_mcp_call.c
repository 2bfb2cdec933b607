
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_stream.h"


static ngx_http_mcp_call_t *ngx_http_mcp_call_create(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m);
static ngx_int_t ngx_http_mcp_call_run(ngx_http_mcp_call_t *call,
    ngx_str_t *result, ngx_uint_t *status, ngx_int_t *code, const char **why);
static ngx_int_t ngx_http_mcp_call_talk(ngx_http_mcp_call_t *call,
    ngx_str_t *result);
static void ngx_http_mcp_call_cleanup(void *data);
static void ngx_http_mcp_call_streams(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_call_paused(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_call_message(ngx_http_mcp_talk_t *t, ngx_str_t *text);
static void ngx_http_mcp_call_large(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_mcp_cursor_t *place, ngx_uint_t flags);
static void ngx_http_mcp_call_send_large(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_free_large(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_open_stream(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_after(ngx_event_t *ev);
static void ngx_http_mcp_call_reading(ngx_http_request_t *r);


ngx_int_t
ngx_http_mcp_call_start(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m)
{
    ngx_int_t             rc, code;
    ngx_str_t             result, text;
    ngx_uint_t            status;
    const char           *why;
    ngx_http_mcp_call_t  *call;

    if (m->method_code == NGX_MCP_METHOD_PING) {
        ngx_str_set(&result, "{}");
        return ngx_http_mcp_result(r, &m->id, &result);
    }

    call = ngx_http_mcp_call_create(r, ctx, m);
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->call = call;

    rc = ngx_http_mcp_call_here(call, &result, &code, &why);

    if (rc == NGX_OK) {
        return call->list ? ngx_http_mcp_call_list_send(call)
                          : ngx_http_mcp_result(r, &m->id, &result);
    }

    if (rc == NGX_ERROR) {
        text.data = (u_char *) why;
        text.len = ngx_strlen(why);

        status = call->denied ? NGX_HTTP_FORBIDDEN : NGX_HTTP_OK;

        return ngx_http_mcp_refuse_data(r, status, &m->id, code, &text,
                                        call->data.len ? &call->data : NULL);
    }

    rc = ngx_http_mcp_call_run(call, &result, &status, &code, &why);

    if (rc == NGX_DONE) {
        return ngx_http_mcp_result(r, &m->id, &result);
    }

    if (rc != NGX_OK) {
        ngx_http_mcp_call_take_back(call);
        return ngx_http_mcp_refuse(r, status, code, why);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_mcp_call_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


ngx_int_t
ngx_http_mcp_call_element(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m, ngx_http_mcp_batch_t *batch, ngx_uint_t index,
    ngx_str_t *error)
{
    ngx_int_t             rc, code;
    ngx_str_t             result, text;
    ngx_uint_t            status;
    const char           *why;
    ngx_http_mcp_call_t  *call;

    code = NGX_MCP_INTERNAL_ERROR;
    why = "internal error";

    ngx_str_set(&result, "{}");

    call = ngx_http_mcp_call_create(r, ctx, m);
    if (call == NULL) {
        goto failed;
    }

    call->batch = batch;
    call->index = index;

    if (m->method_code == NGX_MCP_METHOD_PING) {
        rc = NGX_OK;

    } else {
        rc = ngx_http_mcp_call_here(call, &result, &code, &why);
    }

    if (rc == NGX_DECLINED || rc == NGX_AGAIN) {
        rc = ngx_http_mcp_call_run(call, &result, &status, &code, &why);

        if (rc == NGX_OK) {
            ngx_http_mcp_batch_begun(batch, index, call);
            return NGX_OK;
        }

        if (rc == NGX_DONE) {
            rc = NGX_OK;

        } else {
            ngx_http_mcp_call_take_back(call);
        }
    }

    if (rc == NGX_OK) {

        if (call->list == NULL) {
            *error = ngx_mcp_result_compose(r->pool, &m->id, &result);
            return NGX_DECLINED;
        }

        if (ngx_http_mcp_call_list_element(call, error) == NGX_OK) {
            return NGX_DECLINED;
        }
    }

failed:

    text.data = (u_char *) why;
    text.len = ngx_strlen(why);

    *error = ngx_mcp_error_compose(r->pool, ctx->session.revision, &m->id,
                                   code, &text,
                                   (call && call->data.len) ? &call->data
                                                            : NULL);
    return NGX_DECLINED;
}


static ngx_http_mcp_call_t *
ngx_http_mcp_call_create(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m)
{
    ngx_http_mcp_call_t  *call;

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_call_t));
    if (call == NULL) {
        return NULL;
    }

    call->r = r;
    call->ctx = ctx;
    call->message = m;

    return call;
}


/*
 * Registers the call and begins the talk, or to wait.  NGX_OK; NGX_DONE with
 * the result: that is over already; NGX_ERROR with the refusal.
 */

static ngx_int_t
ngx_http_mcp_call_run(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_uint_t *status, ngx_int_t *code, const char **why)
{
    ngx_int_t                 rc;
    ngx_str_t                 token;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_pool_cleanup_t       *cln;
    ngx_http_mcp_loc_conf_t  *mlcf;

    ctx = call->ctx;
    mlcf = ctx->conf;

    *status = NGX_HTTP_INTERNAL_SERVER_ERROR;
    *code = NGX_MCP_INTERNAL_ERROR;
    *why = "internal error";

    cln = ngx_pool_cleanup_add(call->r->pool, 0);

    if (cln == NULL || ngx_http_mcp_call_register(call) != NGX_OK) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_mcp_call_cleanup;
    cln->data = call;

    token = ngx_mcp_message_member(call->message, NGX_MCP_PATH_META_TOKEN);

    rc = ngx_mcp_call_open(mlcf->zone, ctx->session.ref, &call->message->id,
                           &token, mlcf->call_limit, call->local,
                           &call->record);
    switch (rc) {

    case NGX_OK:
        break;

    case NGX_BUSY:
        *status = NGX_HTTP_SERVICE_UNAVAILABLE;
        *code = NGX_MCP_REFUSED;
        *why = "the limit of running requests is reached "
               "(mcp_call_limit)";
        ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_CALLS_REFUSED, 1);
        return NGX_ERROR;

    case NGX_EXISTS:
        *status = NGX_HTTP_BAD_REQUEST;
        *code = NGX_MCP_INVALID_REQUEST;
        *why = "a request with this id is running already";
        return NGX_ERROR;

    default:
        *status = NGX_HTTP_SERVICE_UNAVAILABLE;
        *code = NGX_MCP_REFUSED;
        *why = "there is no room for another request";
        return NGX_ERROR;
    }

    call->registered = 1;

    if (call->batch || !(ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
        ngx_mcp_call_plain(mlcf->zone, call->record.ref);
    }

    if (call->wait) {
        rc = ngx_http_mcp_call_wait(call, result, code, why);

    } else {
        rc = ngx_http_mcp_call_talk(call, result);
    }

    if (rc == NGX_OK) {
        ngx_http_mcp_call_unregister(call);
        return NGX_DONE;
    }

    if (rc != NGX_AGAIN) {

        /* others of its batch may run on: it is not to be cancelled then */

        ngx_http_mcp_call_unregister(call);

        if (call->talk.scope.dots) {
            *status = NGX_HTTP_BAD_REQUEST;
            *code = NGX_MCP_INVALID_REQUEST;
            *why = NGX_HTTP_MCP_DOTS;
        }

        return NGX_ERROR;
    }

    if (mlcf->stream_after && !call->batch
        && (ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE))
    {
        call->after.handler = ngx_http_mcp_call_after;
        call->after.data = call;
        call->after.log = call->r->connection->log;

        ngx_add_timer(&call->after, mlcf->stream_after);
    }

    return NGX_OK;
}


/* NGX_AGAIN: done() will come; NGX_OK: nobody has to be asked; NGX_ERROR */

static ngx_int_t
ngx_http_mcp_call_talk(ngx_http_mcp_call_t *call, ngx_str_t *result)
{
    ngx_int_t                 rc;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_talk_t      *t;
    ngx_http_mcp_loc_conf_t  *mlcf;

    ctx = call->ctx;
    mlcf = ctx->conf;
    t = &call->talk;

    t->r = call->r;
    t->upstream = mlcf->upstreams->elts;
    t->session = ctx->session.ref;
    t->call = call->record.ref;
    t->tenant = ctx->tenant;
    t->level = ctx->session.level;
    t->body = call->message->text;
    t->streams = ngx_http_mcp_call_streams;
    t->paused = ngx_http_mcp_call_paused;
    t->message = ngx_http_mcp_call_message;
    t->piece = ngx_http_mcp_call_piece;
    t->done = ngx_http_mcp_call_done;
    t->data = call;

    t->patient = 1;

    if (call->local_answer) {
        t->patient = 0;
        t->answered = 1;
        t->level = NGX_MCP_LEVEL_UNSET;
    }

    if (call->batch == NULL) {
        t->scope = ctx->scope;

    } else if (ngx_http_mcp_scan_scope(call->r, call->message, &t->scope)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->upstream = t->upstream->name;

    if (call->listing) {
        ngx_http_mcp_call_list_wait(call);
        rc = NGX_OK;

    } else if (call->sharing) {
        ngx_http_mcp_supply_wait(call->supply);
        rc = NGX_OK;

    } else {
        rc = ngx_http_mcp_talk_start(t);
    }

    if (rc == NGX_DECLINED) {
        ngx_str_set(&ctx->upstream, "");
        ngx_str_set(result, "{}");
        return NGX_OK;
    }

    return rc == NGX_OK ? NGX_AGAIN : NGX_ERROR;
}


static void
ngx_http_mcp_call_cleanup(void *data)
{
    ngx_http_mcp_call_t *call = data;

    ngx_http_mcp_call_left_forget(call);
    ngx_http_mcp_call_list_forget(call);

    if (call->supply) {
        ngx_http_mcp_supply_forget(call->supply);
    }

    if (call->wait) {
        ngx_http_mcp_wait_stop(call->wait);
    }

    ngx_http_mcp_talk_cleanup(&call->talk);
    ngx_http_mcp_call_unregister(call);
    ngx_http_mcp_call_free_large(call);
}


/* who streams to us is streamed on, from the first moment */

static void
ngx_http_mcp_call_streams(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_call_t  *call;

    call = t->data;

    if (call->streaming || call->batch || call->gone || call->cancelled
        || call->local_answer
        || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE))
    {
        return;
    }

    ngx_http_mcp_call_open_stream(call);
}


/*
 * The upstream wants to be polled (2025-11-25 basic/transports, "Sending
 * Messages", item 6): the client is let go as well, and resumes here.
 */

static void
ngx_http_mcp_call_paused(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_call_t  *call;

    call = t->data;

    if (call->ctx->stream
        && call->ctx->session.revision >= NGX_MCP_2025_11_25)
    {
        ngx_http_mcp_stream_close(call->ctx->stream,
                                  NGX_MCP_COUNTER_STREAMS_DONE);
    }
}


static void
ngx_http_mcp_call_message(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_str_t                 id, error;
    ngx_mcp_json_t           *json;
    ngx_http_mcp_call_t      *call;
    ngx_http_mcp_loc_conf_t  *mlcf;

    call = t->data;
    json = &t->x->scan;
    mlcf = call->ctx->conf;

    if (call->answered || call->cancelled || call->local_answer) {
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (json->members[NGX_MCP_PATH_METHOD].type == NGX_MCP_JSON_STRING) {

        if (id.len) {

            if (!(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)
                && call->ctx->session.streams == 0)
            {
                ngx_http_mcp_refuse_ask(call->r, t, &id);
                return;
            }

            if (ngx_mcp_ask_add(mlcf->zone, call->ctx->session.ref, &id,
                                &t->upstream->name)
                != NGX_OK)
            {
                ngx_http_mcp_refuse_ask(call->r, t, &id);
                return;
            }

        } else if (ngx_http_mcp_said_elsewhere(t, call->ctx->session.ref,
                                               text))
        {
            return;
        }

        ngx_http_mcp_call_deliver(call, text, 0);
        return;
    }

    if (!ngx_mcp_json_same_id(&id, &call->message->id)) {

        if (json->members[NGX_MCP_PATH_ID].type <= NGX_MCP_JSON_NULL) {

            if (t->x->status >= NGX_HTTP_SPECIAL_RESPONSE) {
                return;
            }

            if (t->x->refusal.len
                && json->members[NGX_MCP_PATH_ERROR].type
                   == NGX_MCP_JSON_OBJECT)
            {
                ngx_http_mcp_call_note(call, text);

                error = ngx_mcp_refusal_compose(call->r->pool,
                                                &call->message->id,
                                                &t->x->refusal);
                if (error.data) {
                    ngx_http_mcp_call_filter(call, &error);
                    ngx_http_mcp_call_answer(call, &error);
                }

                return;
            }
        }

        if (!call->blamed) {
            call->blamed = 1;

            ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                          "mcp upstream \"%V\" answered with id %V instead "
                          "of %V", &t->upstream->name, &id,
                          &call->message->id);
        }

        return;
    }

    if (t->x->status == NGX_HTTP_UNAUTHORIZED
        || t->x->status == NGX_HTTP_FORBIDDEN)
    {
        return;
    }

    if (json->members[NGX_MCP_PATH_RESULT].type == NGX_MCP_JSON_ABSENT
        && json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_OBJECT)
    {
        call->blamed = 1;

        ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                      "mcp upstream \"%V\" answered with neither result nor "
                      "error", &t->upstream->name);
        return;
    }

    ngx_http_mcp_call_note(call, text);
    ngx_http_mcp_call_filter(call, text);
    ngx_http_mcp_call_answer(call, text);
}


/* what the answer says, for variables and for what depends on it here */

void
ngx_http_mcp_call_note(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t        code;
    ngx_mcp_json_t  *json;

    json = &call->talk.x->scan;

    if (json->members[NGX_MCP_PATH_IS_ERROR].type == NGX_MCP_JSON_TRUE) {
        call->ctx->tool_error = 1;
    }

    if (json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_OBJECT) {
        return;
    }

    if (text) {
        code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

        if (code.len) {
            call->ctx->error = ngx_http_mcp_error_code(&code);
        }
    }

    ngx_http_mcp_call_take_back(call);
}


void
ngx_http_mcp_call_take_back(ngx_http_mcp_call_t *call)
{
    if (call->uri.len) {
        (void) ngx_mcp_session_unsubscribe(call->ctx->conf->zone,
                                           call->ctx->session.ref, &call->uri);
        ngx_str_null(&call->uri);
    }
}


void
ngx_http_mcp_call_answer(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_int_t          rc;
    ngx_str_t          copy;
    ngx_connection_t  *c;

    call->answered = 1;
    call->talk.answered = 1;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    /* who has the answer may ask the next at once, by another worker */

    if (call->streaming) {
        ngx_http_mcp_call_deliver(call, text, NGX_MCP_EVENT_RESPONSE);
        ngx_http_mcp_call_unregister(call);
        return;
    }

    copy.len = text->len;
    copy.data = ngx_pstrdup(call->r->pool, text);

    if (copy.data == NULL) {
        return;
    }

    if (call->batch) {
        ngx_http_mcp_batch_answer(call->batch, call->index, &copy);
        return;
    }

    if (call->gone) {
        return;
    }

    if (call->talk.x
        && ngx_http_mcp_copy_headers(call->r, call->talk.x) != NGX_OK)
    {
        return;
    }

    ngx_http_mcp_call_unregister(call);

    rc = ngx_http_mcp_answer(call->r, NGX_HTTP_OK, &copy);

    c = call->r->connection;

    if (rc == NGX_OK && (c->buffered || c->write->delayed)) {
        rc = ngx_http_mcp_output_start(call->r, ngx_http_mcp_call_sent);
    }

    if (rc == NGX_ERROR) {
        c->error = 0;
        call->gone = 1;
    }
}


/* a message that belongs to the call, on its line */

void
ngx_http_mcp_call_deliver(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t flags)
{
    ngx_int_t                 rc;
    ngx_str_t                 level;
    ngx_mcp_json_t           *json;
    ngx_mcp_event_t           event;
    ngx_mcp_cursor_t          cursor;
    ngx_http_mcp_stream_t    *stream;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = text;
    event.nparts = 1;
    event.flags = flags;

    json = call->talk.x ? &call->talk.x->scan : NULL;

    if (!(flags & NGX_MCP_EVENT_RESPONSE) && json
        && json->members[NGX_MCP_PATH_ID].type == NGX_MCP_JSON_ABSENT
        && json->members[NGX_MCP_PATH_LEVEL].type == NGX_MCP_JSON_STRING)
    {
        level = ngx_mcp_json_span(json, NGX_MCP_PATH_LEVEL, text->data);
        level.data++;
        level.len -= 2;

        event.level = ngx_mcp_level_parse(&level);
    }

    ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    if (!call->streaming) {

        if (call->batch || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
            (void) ngx_mcp_log_session(mlcf->zone, call->ctx->session.ref,
                                       &event);
            return;
        }

        if (call->gone) {
            return;
        }

        ngx_http_mcp_call_open_stream(call);

        if (!call->streaming) {
            ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_EVENTS_UNSENT, 1);
            return;
        }
    }

    stream = call->ctx->stream;

    rc = ngx_mcp_log_call(mlcf->zone, call->record.ref, &event, &cursor);

    if (rc == NGX_DECLINED || stream == NULL) {
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_mcp_call_large(call, text, &cursor, flags);
        return;
    }

    if (ngx_http_mcp_stream_behind(stream, &cursor, text->len)
        && call->talk.x)
    {
        ngx_http_mcp_exchange_hold(call->talk.x);
    }

    if (flags & NGX_MCP_EVENT_RESPONSE && ngx_http_mcp_stream_unsent(stream)) {

        /* whatever becomes of the log until the client takes it */

        call->answer.data = ngx_pstrdup(call->r->pool, text);
        call->answer.len = call->answer.data ? text->len : 0;
    }
}


/* a message that is not kept goes out behind what is in the log */

static void
ngx_http_mcp_call_large(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_mcp_cursor_t *place, ngx_uint_t flags)
{
    ngx_http_mcp_large_t  *large, **last;

    /* the request may live long: this memory is not of its pool */

    large = ngx_alloc(sizeof(ngx_http_mcp_large_t) + text->len,
                      call->r->connection->log);
    if (large == NULL) {
        return;
    }

    large->text.len = text->len;
    large->text.data = (u_char *) (large + 1);
    ngx_memcpy(large->text.data, text->data, text->len);

    large->place = *place;
    large->flags = flags;
    large->next = NULL;

    for (last = &call->large; *last; last = &(*last)->next) { /* void */ }

    *last = large;

    if (call->large == large) {
        ngx_http_mcp_call_send_large(call);
    }
}


static void
ngx_http_mcp_call_send_large(ngx_http_mcp_call_t *call)
{
    ngx_int_t              rc;
    ngx_http_mcp_large_t  *large;

    while (call->large) {
        large = call->large;

        rc = ngx_http_mcp_stream_send(call->ctx->stream, &large->place,
                                      &large->text, large->flags);

        if (rc == NGX_AGAIN) {

            if (call->talk.x) {
                ngx_http_mcp_exchange_hold(call->talk.x);
            }

            return;
        }

        call->large = large->next;

        ngx_free(large);
    }
}


static void
ngx_http_mcp_call_free_large(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_large_t  *large;

    while (call->large) {
        large = call->large;
        call->large = large->next;

        ngx_free(large);
    }
}


static void
ngx_http_mcp_call_open_stream(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = call->ctx;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    call->streaming = 1;
    ctx->responded = 1;
    ctx->response = 2;

    ngx_mcp_call_stream(ctx->conf->zone, call->record.ref);

    if (call->talk.x) {
        (void) ngx_http_mcp_copy_headers(call->r, call->talk.x);
    }

    if (ngx_http_mcp_stream_open(call->r, call->record.line, NULL, 0, call)
        != NGX_OK)
    {
        if (!call->r->header_sent) {
            /* no room for a stream: the answer alone reaches the client */

            call->streaming = 0;
            ctx->responded = 0;
            ctx->response = 0;

            return;
        }

        /* what comes waits on the line all the same */

        call->closed = 1;
        call->gone = 1;
    }
}


static void
ngx_http_mcp_call_after(ngx_event_t *ev)
{
    ngx_http_mcp_call_news(ev->data);
}


void
ngx_http_mcp_call_news(ngx_http_mcp_call_t *call)
{
    ngx_connection_t  *c;

    c = call->r->connection;

    if (call->gone || call->streaming || call->passing || call->answered
        || call->cancelled || call->batch
        || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE))
    {
        return;
    }

    ngx_http_mcp_call_open_stream(call);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_mcp_call_stream_closed(ngx_http_mcp_call_t *call)
{
    ngx_connection_t  *c;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, call->r->connection->log, 0,
                   "mcp stream of a call closed, done:%ui",
                   (ngx_uint_t) call->done);

    c = call->r->connection;

    call->closed = 1;
    call->gone = 1;
    call->ctx->stream = NULL;

    ngx_http_mcp_call_free_large(call);

    if (call->done) {
        ngx_http_finalize_request(call->r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (call->talk.x) {
        ngx_http_mcp_exchange_resume(call->talk.x);
    }

    ngx_http_mcp_call_left(call);
}


void
ngx_http_mcp_call_stream_ready(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_call_send_large(call);

    if (call->large == NULL && !call->done && call->talk.x) {
        ngx_http_mcp_exchange_resume(call->talk.x);
    }
}


/*
 * As ngx_http_test_reading(), but a client that leaves only detaches: its
 * request runs on (2025-11-25 basic/transports, "Sending Messages": a
 * disconnect is no cancellation).
 */

static void
ngx_http_mcp_call_reading(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_call_t  *call;

    if (!ngx_http_mcp_call_detach(r)) {
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    call = ctx->call;

    if (call) {
        call->gone = 1;

        if (call->wait) {

            /* its answer could reach nobody */

            ngx_http_mcp_call_wait_abort(call);
            return;
        }

        if (call->passing && call->talk.x) {
            ngx_http_mcp_exchange_resume(call->talk.x);
        }

        ngx_http_mcp_call_left(call);
    }
}


ngx_uint_t
ngx_http_mcp_call_detach(ngx_http_request_t *r)
{
    ngx_uint_t         left;
    ngx_event_t       *rev;
    ngx_connection_t  *c;

    c = r->connection;
    rev = c->read;

    left = ngx_http_mcp_client_left(r);

    if ((ngx_event_flags & NGX_USE_LEVEL_EVENT) && rev->active) {
        (void) ngx_del_event(rev, NGX_READ_EVENT, 0);
    }

    if (!left) {
        return 0;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0, "mcp client left its call");

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    /* nothing is written any more, and the exchange is not to be ended */

    c->error = 0;

    r->keepalive = 0;
    r->read_event_handler = ngx_http_block_reading;

    return 1;
}
