
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call_park.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_upstream_message.h"


#define NGX_HTTP_MCP_CALL_BUFFER  16384

/* the most cancellations that a worker may have under way to upstreams */
#define NGX_HTTP_MCP_CANCELS_MAX  32

/*
 * ms for which the client's stream is not opened, as the first message of the
 * upstream's stream may be the answer
 */
#define NGX_HTTP_MCP_STREAM_SOON  100

/* ms to wait for an upstream whose answer does not matter to the client */
#define NGX_HTTP_MCP_SYNC_TIMEOUT  2000

/* bytes of the raw id of an answer in pieces that are compared: all escaped */
#define NGX_HTTP_MCP_ID_ROOM  (6 * NGX_MCP_ID_MAX)


/* a call that an upstream answers */

typedef struct {
    ngx_http_mcp_upstream_request_t  ureq;

    /* a JSON answer that is passed on in pieces as they come */
    ngx_chain_t              *free;       /* links with buffers to be filled */
    ngx_chain_t              *busy;       /* links that are not sent yet */
    ngx_chain_t             **tail;       /* address at which the next link is
                                             put */
    ngx_buf_t                *room;       /* buffer that is being filled, or
                                             NULL */
    ngx_mcp_stamp_t          *stamp;      /* edits the answer; NULL: the answer
                                             is passed on unchanged */

    /* a JSON answer that comes in pieces and is read whole first */
    ngx_str_t                 buffer;     /* holds the pieces; len: size of the
                                             memory */
    size_t                    size;       /* bytes of the pieces in buffer */

    size_t                    seen;       /* bytes of all pieces that came so
                                             far */
    u_char                   *id;         /* room for the id of the answer in
                                             pieces; or NULL */
    ngx_uint_t                matched;    /* the answer in pieces has the id of
                                             the request */
    ngx_uint_t                unmatched;  /* the answer in pieces has another
                                             id, or none */

    ngx_http_mcp_exchange_t  *answer;     /* exchange whose headers the response
                                             gets; NULL: the last exchange */
    ngx_uint_t                logged;     /* the fault of the upstream is in the
                                             log already */
    ngx_uint_t                not_found;  /* the upstream lacks the subject; its
                                             answer is in call->not_found */
    ngx_event_t              *timeout;    /* timer after which a call that the
                                             module answers itself waits for
                                             the upstream no longer; NULL: the
                                             upstream's answer is needed */
} ngx_http_mcp_forward_t;


static ngx_int_t ngx_http_mcp_forward_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_http_mcp_upstream_request_t *ngx_http_mcp_forward_create(
    ngx_http_mcp_call_t *call, ngx_http_mcp_answerer_t *answerer);
static ngx_int_t ngx_http_mcp_forward_send(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_forward_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_forward_cancel(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_forward_room(ngx_http_mcp_call_t *call,
    ngx_uint_t room);
static ngx_int_t ngx_http_mcp_forward_headers(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_forward_wake(ngx_http_mcp_call_t *call,
    ngx_uint_t why);
static void ngx_http_mcp_forward_streams(ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_forward_paused(ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_forward_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_forward_faulty(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_forward_not_found(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static void ngx_http_mcp_forward_refuse(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *id);
static void ngx_http_mcp_forward_other_id(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_str_t *id);
static void ngx_http_mcp_forward_note(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_forward_filter(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static void ngx_http_mcp_forward_answer(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_mcp_json_t *json, ngx_uint_t keep);
static ngx_int_t ngx_http_mcp_forward_adapt(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_mcp_json_t *json, size_t room,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_forward_piece(
    ngx_http_mcp_upstream_request_t *ureq, ngx_chain_t *in, ngx_uint_t last);
static ngx_int_t ngx_http_mcp_forward_match(ngx_http_mcp_call_t *call,
    ngx_buf_t *b);
static ngx_uint_t ngx_http_mcp_forward_passes(ngx_http_mcp_call_t *call,
    ngx_chain_t *in);
static ngx_int_t ngx_http_mcp_forward_write(void *data, u_char *p,
    size_t len);
static ngx_int_t ngx_http_mcp_forward_pass(ngx_http_mcp_call_t *call,
    ngx_chain_t *in, ngx_uint_t last);
static ngx_int_t ngx_http_mcp_forward_copy(ngx_http_mcp_call_t *call,
    ngx_chain_t *in, ngx_chain_t **out);
static ngx_int_t ngx_http_mcp_forward_buffer(ngx_http_mcp_call_t *call,
    ngx_chain_t *in);
static void ngx_http_mcp_forward_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_forward_failed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_forward_cancelled(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_cancel_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_cancel_destroyed(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_sync_timeout(ngx_event_t *ev);
static void ngx_http_mcp_sync_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);


/* the answerer that sends a call to an upstream */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_forward = {
    .start = ngx_http_mcp_forward_start,
    .stop = ngx_http_mcp_forward_stop,
    .cancel = ngx_http_mcp_forward_cancel,
    .room = ngx_http_mcp_forward_room,
    .headers = ngx_http_mcp_forward_headers,
    .wake = ngx_http_mcp_forward_wake,
    .closing = ngx_http_mcp_call_park_end
};

/*
 * The answerer for a call that is sent to the upstream, but that the module
 * answers itself
 */

static ngx_http_mcp_answerer_t  ngx_http_mcp_call_syncing = {
    .stop = ngx_http_mcp_forward_stop,
    .cancel = ngx_http_mcp_forward_cancel,
    .room = ngx_http_mcp_forward_room,
    .wake = ngx_http_mcp_forward_wake
};


static ngx_int_t
ngx_http_mcp_forward_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t  rc;

    if (call->ctx->conf->bridge.router.n == 0) {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_call_route(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    call->again = ngx_http_mcp_call_to_upstream;

    return ngx_http_mcp_call_to_upstream(call, reply);
}


ngx_int_t
ngx_http_mcp_call_to_upstream(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                         rc;
    ngx_http_mcp_upstream_request_t  *ureq;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    ureq = ngx_http_mcp_forward_create(call, &ngx_http_mcp_call_forward);
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_call_park_prepare(call, ureq) != NGX_OK) {
        return NGX_ERROR;
    }

    ureq->client_waits = 1;
    ureq->session_only = (NGX_HTTP_MCP_METHOD(call->message->method_code)
                          & NGX_HTTP_MCP_METHODS_SUBSCRIPTION)
                         != 0;

    ureq->stream_opened = ngx_http_mcp_forward_streams;
    ureq->interrupted = ngx_http_mcp_forward_paused;
    ureq->input = ngx_http_mcp_call_input;
    ureq->message = ngx_http_mcp_forward_message;
    ureq->piece = ngx_http_mcp_forward_piece;
    ureq->done = ngx_http_mcp_forward_done;

    return ngx_http_mcp_forward_send(call, reply);
}


ngx_int_t
ngx_http_mcp_call_sync(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                         rc;
    ngx_event_t                      *ev;
    ngx_http_mcp_forward_t           *forward;
    ngx_http_mcp_upstream_request_t  *ureq;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    ureq = ngx_http_mcp_forward_create(call, &ngx_http_mcp_call_syncing);
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    ureq->existing = 1;
    ureq->answered = 1;
    ureq->done = ngx_http_mcp_sync_done;

    ev = ngx_pcalloc(call->r->pool, sizeof(ngx_event_t));
    if (ev == NULL) {
        return NGX_ERROR;
    }

    ev->handler = ngx_http_mcp_sync_timeout;
    ev->data = call;
    ev->log = call->r->connection->log;

    forward = call->data;
    forward->timeout = ev;

    if (ngx_http_mcp_forward_send(call, reply) == NGX_AGAIN) {
        ngx_add_timer(ev, NGX_HTTP_MCP_SYNC_TIMEOUT);
        return NGX_AGAIN;
    }

    return ngx_http_mcp_reply_ok(reply);
}


static ngx_http_mcp_upstream_request_t *
ngx_http_mcp_forward_create(ngx_http_mcp_call_t *call,
    ngx_http_mcp_answerer_t *answerer)
{
    ngx_http_mcp_ctx_t               *ctx;
    ngx_http_mcp_forward_t           *forward;
    ngx_http_mcp_upstream_request_t  *ureq;

    forward = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_forward_t));
    if (forward == NULL) {
        return NULL;
    }

    call->answerer = answerer;
    call->data = forward;

    ctx = call->ctx;
    ureq = &forward->ureq;

    ureq->r = call->r;
    ureq->call = call->record.ref;
    ureq->upstream = call->route.upstream;
    ngx_http_mcp_call_caller(call, ureq);

    ureq->data = call;

    if (call->batch == NULL) {
        ureq->scope = ctx->scope;

    } else if (ngx_http_mcp_scan_scope(call->r, call->message, &ureq->scope)
               != NGX_OK)
    {
        return NULL;
    }

    if (ngx_http_mcp_call_body(call, &ureq->body) != NGX_OK) {
        return NULL;
    }

    ctx->upstream = ureq->upstream->name;

    return ureq;
}


static ngx_int_t
ngx_http_mcp_forward_send(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    switch (ngx_http_mcp_upstream_request_start(&forward->ureq)) {

    case NGX_OK:
        return NGX_AGAIN;

    case NGX_DECLINED:
        ngx_str_set(&call->ctx->upstream, "");
        return ngx_http_mcp_reply_ok(reply);
    }

    return NGX_ERROR;
}


static void
ngx_http_mcp_forward_stop(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    ngx_http_mcp_call_input_stop(call);

    if (forward) {
        ngx_http_mcp_upstream_request_cleanup(&forward->ureq);

        if (forward->timeout && forward->timeout->timer_set) {
            ngx_del_timer(forward->timeout);
        }
    }
}


static void
ngx_http_mcp_forward_cancel(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    if (call->state == NGX_HTTP_MCP_CALL_STOPPING
        && (call->reason == NGX_HTTP_MCP_CALL_ABANDONED
            || call->reason == NGX_HTTP_MCP_CALL_LEFT)
        && forward->ureq.x && !forward->ureq.sessionless)
    {
        (void) ngx_http_mcp_forward_cancelled(call);
    }

    ngx_http_mcp_upstream_request_abort(&forward->ureq);
}


static void
ngx_http_mcp_forward_room(ngx_http_mcp_call_t *call, ngx_uint_t room)
{
    ngx_chain_t             *none;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    if (room && ngx_http_mcp_call_park_sent(call)) {
        return;
    }

    if (forward->ureq.x == NULL) {
        return;
    }

    if (!room) {
        ngx_http_mcp_exchange_pause(forward->ureq.x);
        return;
    }

    none = NULL;

    ngx_chain_update_chains(call->r->pool, &forward->free, &forward->busy,
                            &none, (ngx_buf_tag_t) &ngx_http_mcp_module);

    ngx_http_mcp_exchange_resume(forward->ureq.x);
}


static ngx_int_t
ngx_http_mcp_forward_headers(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_forward_t   *forward;
    ngx_http_mcp_exchange_t  *x;

    /* a parked call keeps its connection: no further request may come */

    if (call->response == NGX_HTTP_MCP_CALL_STREAM
        && ngx_http_mcp_call_park_ready(call))
    {
        call->r->keepalive = 0;
    }

    forward = call->data;
    x = forward->answer ? forward->answer : forward->ureq.x;

    return x ? ngx_http_mcp_copy_headers(call->r, x) : NGX_OK;
}


static void
ngx_http_mcp_forward_wake(ngx_http_mcp_call_t *call, ngx_uint_t why)
{
    ngx_connection_t        *c;
    ngx_http_mcp_forward_t  *forward;

    ngx_http_mcp_call_park_wake(call, why);

    if (why & NGX_MCP_WAKE_INPUT && call->input) {

        /* the upstream request waits only for this input */

        c = call->r->connection;

        ngx_http_mcp_call_input_wake(call);
        ngx_http_run_posted_requests(c);

        return;
    }

    if (why & NGX_MCP_WAKE_UPSTREAM_SESSION) {
        forward = call->data;
        ngx_http_mcp_upstream_request_wake(&forward->ureq);
    }
}


/*
 * The upstream answers with SSE: opens an SSE response for the client.  If the
 * first message may be the answer, nginx waits some ms: JSON costs less for the
 * result of a tool, and the client manner may give an error an HTTP status of
 * its own.
 */

static void
ngx_http_mcp_forward_streams(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_call_t  *call;

    call = ureq->data;

    if ((call->message->method_code != NGX_MCP_METHOD_TOOLS_CALL
         && !call->ctx->client->sessionless)
        || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON))
    {
        ngx_http_mcp_call_open_stream(call);

    } else if (call->response == NGX_HTTP_MCP_CALL_UNSENT
               && call->state == NGX_HTTP_MCP_CALL_RUNNING
               && call->batch == NULL)
    {
        ngx_http_mcp_call_open_stream_after(call, NGX_HTTP_MCP_STREAM_SOON);
    }
}


/*
 * The upstream has ended its stream and wants to be polled (2025-11-25
 * basic/transports, "Sending Messages", item 6): the client's stream ends as
 * well, and the client resumes it at nginx.
 */

static void
ngx_http_mcp_forward_paused(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_uint_t            resumes;
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_call_t  *call;

    call = ureq->data;
    ctx = call->ctx;

    resumes = (ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE && ctx->client->resumes
               && ctx->caller.revision >= ctx->client->resumes);

    if (resumes && !call->r->header_sent) {
        /* the call holds the connection until the call ends */
        call->r->keepalive = 0;
    }

    ngx_http_mcp_call_open_stream(call);

    if (ctx->stream && resumes) {
        ngx_http_mcp_stream_close(ctx->stream, NGX_MCP_COUNTER_STREAMS_DONE);
    }
}


static void
ngx_http_mcp_forward_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t             id;
    ngx_mcp_json_t       *json;
    ngx_http_mcp_call_t  *call;

    call = ureq->data;
    json = ureq->x->scan;

    if (!ngx_http_mcp_call_upstream_message(call, ureq, text, &id)) {
        return;
    }

    if (!ngx_mcp_json_same_id(&id, &call->message->id)) {
        ngx_http_mcp_forward_other_id(call, text, &id);
        return;
    }

    if (ureq->x->status == NGX_HTTP_UNAUTHORIZED
        || ureq->x->status == NGX_HTTP_FORBIDDEN)
    {
        return;
    }

    if (ngx_http_mcp_forward_faulty(call, text)) {
        return;
    }

    if (ngx_http_mcp_forward_not_found(call, text)) {
        ureq->answered = 1;
        return;
    }

    ngx_http_mcp_forward_note(call, text);

    /* a body that was gathered lives as long as the client's request */

    ngx_http_mcp_forward_answer(call, text, json,
                                ureq->x->text && text->data == ureq->x->text);
}


/* returns whether the answer is no response of JSON-RPC, and logs why */

static ngx_uint_t
ngx_http_mcp_forward_faulty(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    const char              *fault;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    fault = ngx_http_mcp_upstream_message_fault(forward->ureq.x->scan, text);

    if (fault == NULL) {
        return 0;
    }

    forward->logged = 1;

    ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                  "mcp upstream \"%V\" answered with %s",
                  &forward->ureq.upstream->name, fault);

    return 1;
}


/*
 * Returns whether the answer is an error by which the upstream says that it
 * lacks the subject of the call, while another upstream may have the subject.
 * Such an answer is noted in call->not_found.
 */

static ngx_uint_t
ngx_http_mcp_forward_not_found(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_int_t                code;
    ngx_str_t                value;
    ngx_mcp_json_t          *json;
    ngx_http_mcp_reply_t     reply;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;
    json = forward->ureq.x->scan;

    if (!call->route.seek
        || json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_OBJECT)
    {
        return 0;
    }

    value = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);
    code = ngx_mcp_error_code(&value);

    if (!ngx_http_mcp_route_absent(call->message->method_code, code)) {
        return 0;
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    reply.nparts = 1;

    if (ngx_http_mcp_string_copy(call->r->pool, &reply.parts[0], text)
        != NGX_OK)
    {
        return 0;
    }

    call->ctx->error = code;

    if (call->ctx->client->answer
        && ngx_http_mcp_forward_adapt(call, text, NULL, 0, &reply) != NGX_OK)
    {
        return 0;
    }

    call->ctx->error = 0;
    forward->not_found = 1;

    ngx_http_mcp_call_not_found(call, &reply, code, forward->ureq.x);

    return 1;
}


ngx_uint_t
ngx_http_mcp_call_upstream_message(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_str_t *id)
{
    ngx_int_t            rc;
    ngx_str_t            out;
    ngx_uint_t           level;
    ngx_pool_t          *pool;
    ngx_http_mcp_ctx_t  *ctx;

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        return 0;
    }

    *id = ngx_mcp_json_span(ureq->x->scan, NGX_MCP_PATH_ID, text->data);

    if (ureq->x->scan->members[NGX_MCP_PATH_METHOD].type
        != NGX_MCP_JSON_STRING)
    {
        return 1;
    }

    ctx = call->ctx;
    pool = NULL;

    if (id->len == 0 && !ctx->client->sessionless
        && ngx_http_mcp_upstream_message_duplicate(ureq, &ctx->caller, text))
    {
        return 0;
    }

    rc = ctx->client->server_request(ctx, ureq, text, &pool, &out);

    if (rc != NGX_OK) {

        if (id->len && rc == NGX_ERROR) {
            ngx_http_mcp_forward_refuse(call, ureq, id);
        }

        return 0;
    }

    level = id->len ? NGX_MCP_LEVEL_UNSET
                    : ngx_mcp_level_of(ureq->x->scan, text);

    ngx_http_mcp_call_park_deliver(call, &out, id->len != 0, level);

    if (pool) {
        ngx_destroy_pool(pool);
    }

    return 0;
}


/* answers a request of the upstream with an error: the client is not asked */

static void
ngx_http_mcp_forward_refuse(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *id)
{
    ngx_http_mcp_audience_t  audience;

    ngx_http_mcp_call_audience(call, ureq, &audience);

    if (call->ctx->caller.revision <= NGX_MCP_REVISION_LATEST_LEGACY
        && !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)
        && call->ctx->session.streams == 0)
    {
        ngx_http_mcp_server_request_reply(ureq, &audience, id,
                                          NGX_MCP_METHOD_NOT_FOUND,
                                          "the client cannot receive requests "
                                          "(its Accept lacks "
                                          "text/event-stream)");
        return;
    }

    ngx_http_mcp_server_request_refuse(ureq, &audience, id);
}


/*
 * Handles an answer that has another id than the request: a refusal without an
 * id is passed on, and other answers are logged.  text: the answer, or NULL if
 * the id is a string or number.
 */

static void
ngx_http_mcp_forward_other_id(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_str_t *id)
{
    ngx_str_t                 error;
    ngx_mcp_json_t           *json;
    ngx_http_mcp_forward_t   *forward;
    ngx_http_mcp_exchange_t  *x;

    forward = call->data;
    x = forward->ureq.x;
    json = x->scan;

    if (json->members[NGX_MCP_PATH_ID].type <= NGX_MCP_JSON_NULL) {

        if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {
            return;
        }

        if (text && x->refusal.len
            && json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT)
        {
            error = ngx_mcp_refusal_compose(call->r->pool, &call->message->id,
                                            &x->refusal);
            if (error.data) {
                ngx_http_mcp_forward_note(call, text);
                ngx_http_mcp_forward_answer(call, &error, NULL, 1);
            }

            return;
        }
    }

    if (forward->logged) {
        return;
    }

    forward->logged = 1;

    ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                  "mcp upstream \"%V\" answered %s%V instead of with id %V",
                  &forward->ureq.upstream->name,
                  id->len ? "with id " : "without an id", id,
                  &call->message->id);
}


/* notes an answer for variables and routes; an error ends a subscription */

static void
ngx_http_mcp_forward_note(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t                code;
    ngx_mcp_json_t          *json;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;
    json = forward->ureq.x->scan;

    if (json->members[NGX_MCP_PATH_IS_ERROR].type == NGX_MCP_JSON_TRUE) {
        call->ctx->tool_error = 1;
    }

    if (json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_OBJECT) {

        if (call->route.seek
            && call->message->method_code == NGX_MCP_METHOD_RESOURCES_READ)
        {
            ngx_http_mcp_route_learn(&call->ctx->conf->bridge,
                                     &call->ctx->caller, call->route.upstream,
                                     &forward->ureq.scope.name);
        }

        return;
    }

    call->ctx->failed = 1;

    if (text) {
        code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);
        call->ctx->error = ngx_mcp_error_code(&code);
    }

    ngx_http_mcp_call_unsubscribe(call);
}


/*
 * Gives the client the upstream's answer.  json: the scan of text, or NULL;
 * keep: the memory of text lives as long as the request.  The text of a large
 * event is not copied: its memory is taken from the SSE parser.
 */

static void
ngx_http_mcp_forward_answer(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_mcp_json_t *json, ngx_uint_t keep)
{
    size_t                   room;
    ngx_str_t                result, *part;
    ngx_mcp_sse_t           *sse;
    ngx_http_mcp_reply_t     reply;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    if (json && json->members[NGX_MCP_PATH_RESULT].type == NGX_MCP_JSON_OBJECT)
    {
        result = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT, text->data);
        ngx_http_mcp_list_passed(call, &forward->ureq, &result);
        call->ctx->kind = forward->ureq.kind;
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    part = &reply.parts[0];
    *part = *text;
    reply.nparts = 1;

    if (ngx_http_mcp_forward_filter(call, part) != NGX_OK) {
        return;
    }

    sse = keep ? NULL : forward->ureq.x->sse;
    room = (sse && part->data == text->data) ? ngx_mcp_sse_room(sse, text) : 0;

    if (call->ctx->client->answer
        && ngx_http_mcp_forward_adapt(call, text, json, room, &reply) != NGX_OK)
    {
        return;
    }

    if (room && part->data + part->len == text->data + text->len) {
        ngx_mcp_sse_take(sse, text, &call->memory);

    } else if (!keep && call->response != NGX_HTTP_MCP_CALL_STREAM
               && part->data == text->data)
    {
        part->data = ngx_pstrdup(call->r->pool, text);
        if (part->data == NULL) {
            return;
        }
    }

    forward->ureq.answered = 1;

    ngx_http_mcp_call_reply(call, &reply);
}


/*
 * Changes the answer as the client manner needs it.  room: bytes in front of
 * text that may be overwritten.  NGX_OK or NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_forward_adapt(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_mcp_json_t *json, size_t room, ngx_http_mcp_reply_t *reply)
{
    ngx_mcp_json_t           scan;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    if (json == NULL || reply->parts[0].data != text->data) {

        if (ngx_mcp_json_scan(&scan, &reply->parts[0]) != NGX_OK) {
            return NGX_ERROR;
        }

        json = &scan;
    }

    reply->status = (forward->ureq.manner == &ngx_http_mcp_modern)
                    ? forward->ureq.x->status : 0;

    if (call->ctx->client->answer(call->r, call->ctx, json, &reply->parts[0],
                                  room, &reply->status)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    reply->code = reply->status ? call->ctx->error : 0;

    return NGX_OK;
}


/* adds the module's entries to a list; removes tools denied to the caller */

static ngx_int_t
ngx_http_mcp_forward_filter(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t                result, own;
    ngx_http_mcp_forward_t  *forward;

    if (!ngx_http_mcp_list_edited(call->ctx, call->message)) {
        return NGX_OK;
    }

    forward = call->data;

    result = ngx_mcp_json_span(forward->ureq.x->scan, NGX_MCP_PATH_RESULT,
                               text->data);

    if (result.len == 0 && call->ctx->error == NGX_MCP_METHOD_NOT_FOUND
        && ngx_http_mcp_call_own_list(call, &result) == NGX_OK)
    {
        own = ngx_mcp_result_compose(call->r->pool, &call->message->id,
                                     &result);
        if (own.data == NULL) {
            return NGX_ERROR;
        }

        *text = own;

        return NGX_OK;
    }

    if (result.len == 0 || result.data[0] != '{') {
        return NGX_OK;
    }

    return ngx_http_mcp_list_edit_text(call->r, call->ctx, call->message,
                                       &result, text);
}


/* handles a piece of a large JSON answer: passes it on or buffers it */

static ngx_int_t
ngx_http_mcp_forward_piece(ngx_http_mcp_upstream_request_t *ureq,
    ngx_chain_t *in, ngx_uint_t last)
{
    ngx_int_t                rc;
    ngx_chain_t             *cl;
    ngx_http_mcp_call_t     *call;
    ngx_http_mcp_forward_t  *forward;

    call = ureq->data;
    forward = call->data;

    if (!forward->unmatched
        && ngx_http_mcp_forward_match(call, in ? in->buf : NULL) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING || forward->unmatched
        || (call->left && call->response != NGX_HTTP_MCP_CALL_STREAM))
    {
        /*
         * The piece has no receiver and is dropped.  Pieces for a stream are
         * kept even if the client has left, as it may resume the stream to get
         * the answer.
         */

        for (cl = in; cl; cl = cl->next) {
            cl->buf->pos = cl->buf->last;
        }

        if (last && !forward->unmatched) {
            ureq->answered = 1;
            ngx_http_mcp_call_answered(call);
        }

        return NGX_OK;
    }

    if (call->response != NGX_HTTP_MCP_CALL_STREAM && call->batch == NULL
        && call->ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON
        && !ngx_http_mcp_list_edited(call->ctx, call->message)
        && ngx_http_mcp_forward_passes(call, in))
    {
        if (last && ngx_http_mcp_forward_faulty(call, NULL)) {
            return NGX_OK;
        }

        rc = ngx_http_mcp_forward_pass(call, in, last);

        if (rc == NGX_AGAIN && in) {
            /* this handler is called again with the same piece */
            forward->seen -= in->buf->last - in->buf->pos;
        }

        return rc;
    }

    if (ngx_http_mcp_forward_buffer(call, in) != NGX_OK) {
        return NGX_ERROR;
    }

    if (last) {
        forward->buffer.len = forward->size;

        if (ngx_http_mcp_forward_faulty(call, &forward->buffer)) {
            return NGX_OK;
        }

        if (ngx_http_mcp_upstream_request_gathered(ureq, &forward->buffer)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_http_mcp_forward_note(call, &forward->buffer);
        ngx_http_mcp_forward_answer(call, &forward->buffer, ureq->x->scan, 1);
    }

    return NGX_OK;
}


/*
 * Takes the id from the next piece, in b, or notes the end of the answer if b
 * is NULL; an id that has come whole is compared with that of the request.  "1"
 * and 1.0 are accepted in place of 1, as clients may accept them.  NGX_OK or
 * NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_forward_match(ngx_http_mcp_call_t *call, ngx_buf_t *b)
{
    size_t                   before, from, to, len;
    ngx_str_t                id, value, *own;
    ngx_mcp_span_t          *span;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;
    span = &forward->ureq.x->scan->members[NGX_MCP_PATH_ID];

    before = forward->seen;
    forward->seen += b ? b->last - b->pos : 0;

    if (forward->matched) {
        return NGX_OK;
    }

    ngx_str_null(&id);

    if ((span->type == NGX_MCP_JSON_STRING || span->type == NGX_MCP_JSON_NUMBER)
        && span->start < forward->seen)
    {
        if (forward->id == NULL) {
            forward->id = ngx_pnalloc(call->r->pool, NGX_HTTP_MCP_ID_ROOM);
            if (forward->id == NULL) {
                return NGX_ERROR;
            }
        }

        /* the end of a value that has not come whole is its start */

        len = (span->end > span->start) ? span->end - span->start
                                        : NGX_HTTP_MCP_ID_ROOM;

        from = ngx_max(span->start, before);
        to = span->start + ngx_min(len, NGX_HTTP_MCP_ID_ROOM);
        to = ngx_min(to, forward->seen);

        if (from < to) {
            ngx_memcpy(forward->id + (from - span->start),
                       b->pos + (from - before), to - from);
        }

        if (span->end > span->start && span->end <= forward->seen) {
            id.data = forward->id;
            id.len = ngx_min(len, NGX_HTTP_MCP_ID_ROOM);
        }
    }

    if (id.len == 0 && b) {
        return NGX_OK;
    }

    own = forward->ureq.sent_id.len ? &forward->ureq.sent_id
                                    : &call->message->id;

    if (ngx_mcp_json_same_id(&id, own)) {
        forward->matched = 1;
        return NGX_OK;
    }

    if (id.len && own->len && own->data[0] != '"') {
        value = id;

        if (span->type == NGX_MCP_JSON_STRING) {
            value.data++;
            value.len -= 2;
        }

        if (value.len >= own->len
            && ngx_memcmp(value.data, own->data, own->len) == 0
            && (value.len == own->len || value.data[own->len] == '.'))
        {
            forward->matched = 1;
            return NGX_OK;
        }
    }

    forward->unmatched = 1;

    ngx_http_mcp_forward_other_id(call, NULL, &id);

    return NGX_OK;
}


/*
 * Returns whether the pieces of the answer are passed on at once; otherwise the
 * answer is read whole.  The first piece decides: an error, or an answer that
 * may be no response of JSON-RPC, is read whole.
 */

static ngx_uint_t
ngx_http_mcp_forward_passes(ngx_http_mcp_call_t *call, ngx_chain_t *in)
{
    ngx_str_t                piece;
    ngx_mcp_json_t          *json;
    ngx_mcp_span_t          *version;
    ngx_mcp_stamp_t         *stamp;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    if (call->response == NGX_HTTP_MCP_CALL_JSON || forward->stamp) {
        return 1;
    }

    if (forward->size || in == NULL) {
        return 0;
    }

    json = forward->ureq.x->scan;
    version = &json->members[NGX_MCP_PATH_JSONRPC];
    piece.data = in->buf->pos;
    piece.len = in->buf->last - in->buf->pos;

    if (json->members[NGX_MCP_PATH_RESULT].type != NGX_MCP_JSON_OBJECT
        || json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_ABSENT
        || (version->type != NGX_MCP_JSON_ABSENT
            && (version->end > piece.len
                || ngx_http_mcp_upstream_message_fault(json, &piece))))
    {
        return 0;
    }

    if (call->ctx->client->pass == NULL) {
        return 1;
    }

    stamp = ngx_pcalloc(call->r->pool, sizeof(ngx_mcp_stamp_t));

    if (stamp == NULL
        || call->ctx->client->pass(call->r, call->ctx, stamp) != NGX_OK)
    {
        return 0;
    }

    stamp->write = ngx_http_mcp_forward_write;
    stamp->data = call;

    forward->stamp = stamp;

    return 1;
}


/* passes a piece of the answer on to the client */

static ngx_int_t
ngx_http_mcp_forward_pass(ngx_http_mcp_call_t *call, ngx_chain_t *in,
    ngx_uint_t last)
{
    ngx_int_t                rc;
    ngx_chain_t             *out;
    ngx_http_request_t      *r;
    ngx_http_mcp_forward_t  *forward;

    r = call->r;
    forward = call->data;

    if (call->response == NGX_HTTP_MCP_CALL_JSON && r->connection->buffered) {
        return NGX_AGAIN;
    }

    if ((call->response == NGX_HTTP_MCP_CALL_UNSENT
         && ngx_http_mcp_call_open_json(call) != NGX_OK)
        || ngx_http_mcp_forward_copy(call, in, &out) != NGX_OK)
    {
        ngx_http_mcp_call_write_failed(call);
        return NGX_OK;
    }

    if (last) {
        ngx_http_mcp_forward_note(call, NULL);
        forward->ureq.answered = 1;
        ngx_http_mcp_call_answered(call);
    }

    if (out == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_mcp_output(r, out);

    ngx_chain_update_chains(r->pool, &forward->free, &forward->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_mcp_module);

    if (rc != NGX_OK) {
        ngx_http_mcp_call_write_failed(call);
    }

    return NGX_OK;
}


/* copies a piece: nginx reuses the upstream's buffers after this handler */

static ngx_int_t
ngx_http_mcp_forward_copy(ngx_http_mcp_call_t *call, ngx_chain_t *in,
    ngx_chain_t **out)
{
    ngx_int_t                rc;
    ngx_buf_t               *b;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;
    forward->tail = out;
    forward->room = NULL;

    *out = NULL;

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;

        rc = forward->stamp
             ? ngx_mcp_stamp(forward->stamp, b->pos, b->last)
             : ngx_http_mcp_forward_write(call, b->pos, b->last - b->pos);

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        b->pos = b->last;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_forward_write(void *data, u_char *p, size_t len)
{
    ngx_http_mcp_call_t *call = data;

    size_t                   n;
    ngx_buf_t               *b;
    ngx_pool_t              *pool;
    ngx_chain_t             *cl;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;
    pool = call->r->pool;
    b = forward->room;

    while (len) {

        if (b == NULL || b->last == b->end) {

            cl = ngx_chain_get_free_buf(pool, &forward->free);
            if (cl == NULL) {
                return NGX_ERROR;
            }

            cl->next = NULL;
            *forward->tail = cl;
            forward->tail = &cl->next;

            b = cl->buf;
            forward->room = b;

            if (b->start == NULL) {
                b->start = ngx_pnalloc(pool, NGX_HTTP_MCP_CALL_BUFFER);
                if (b->start == NULL) {
                    return NGX_ERROR;
                }

                b->end = b->start + NGX_HTTP_MCP_CALL_BUFFER;
                b->temporary = 1;
                b->tag = (ngx_buf_tag_t) &ngx_http_mcp_module;
            }

            b->pos = b->start;
            b->last = b->start;
            b->last_buf = 0;
            b->flush = 1;
        }

        n = ngx_min(len, (size_t) (b->end - b->last));

        b->last = ngx_cpymem(b->last, p, n);

        p += n;
        len -= n;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_forward_buffer(ngx_http_mcp_call_t *call, ngx_chain_t *in)
{
    size_t                   len, size;
    u_char                  *p;
    ngx_chain_t             *cl;
    ngx_http_mcp_forward_t  *forward;

    forward = call->data;

    for (cl = in; cl; cl = cl->next) {

        len = cl->buf->last - cl->buf->pos;

        if (forward->size + len > forward->buffer.len) {

            size = ngx_max(forward->buffer.len * 2, forward->size + len);

            p = ngx_palloc(call->r->pool, size);
            if (p == NULL) {
                return NGX_ERROR;
            }

            if (forward->size) {
                ngx_memcpy(p, forward->buffer.data, forward->size);
                ngx_pfree(call->r->pool, forward->buffer.data);
            }

            forward->buffer.data = p;
            forward->buffer.len = size;
        }

        ngx_memcpy(forward->buffer.data + forward->size, cl->buf->pos, len);
        forward->size += len;

        cl->buf->pos = cl->buf->last;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_forward_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_int_t                rc;
    ngx_http_mcp_call_t     *call;
    ngx_http_mcp_reply_t     reply;
    ngx_http_mcp_forward_t  *forward;

    call = ureq->data;

    if (call->response == NGX_HTTP_MCP_CALL_JSON
        && outcome != NGX_HTTP_MCP_OK)
    {
        call->rc = NGX_ERROR;
    }

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        ngx_http_mcp_call_end(call, NULL);
        return;
    }

    forward = call->data;

    if (!forward->not_found) {
        ngx_http_mcp_forward_failed(call, outcome, &reply);

        if (!call->route.seek || reply.status == 0
            || call->response == NGX_HTTP_MCP_CALL_JSON)
        {
            ngx_http_mcp_call_end(call, &reply);
            return;
        }

        ngx_http_mcp_call_not_found(call, &reply, reply.code, ureq->x);
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    rc = ngx_http_mcp_call_elsewhere(call, &reply, &forward->answer);

    if (rc == NGX_AGAIN) {
        rc = call->again(call, &reply);
    }

    ngx_http_mcp_call_started(call, rc, &reply);
}


/* sets the reply of a call whose exchange ended without an answer */

static void
ngx_http_mcp_forward_failed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply)
{
    ngx_http_mcp_forward_t           *forward;
    ngx_http_mcp_upstream_request_t  *ureq;

    forward = call->data;
    ureq = &forward->ureq;

    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    if (ngx_http_mcp_upstream_request_absent(ureq, outcome)) {
        if (ngx_http_mcp_call_own_list(call, &reply->result) != NGX_OK) {
            (void) ngx_http_mcp_reply_no_method(reply);
        }

        return;
    }

    if (ureq->refused) {
        (void) ngx_http_mcp_reply_invalid(reply, ureq->refused);
        return;
    }

    if (ureq->sessionless && ureq->session_only && outcome == NGX_HTTP_MCP_OK) {
        (void) ngx_http_mcp_reply_ok(reply);
        return;
    }

    if (ureq->why.len) {
        ngx_http_mcp_reply_unprobed(call->r, ureq->upstream, ureq->status,
                                    &ureq->why, reply);
        return;
    }

    if (outcome == NGX_HTTP_MCP_OK && !forward->logged) {
        ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                      "mcp upstream \"%V\" ended its response without an "
                      "answer, status %ui", &ureq->upstream->name,
                      ureq->x->status);
    }

    ngx_http_mcp_reply_outcome(call->r, &call->message->id, ureq->upstream,
                               ureq->x, outcome, reply);
}


/* sends notifications/cancelled to the upstream, in a background request */

static ngx_int_t
ngx_http_mcp_forward_cancelled(ngx_http_mcp_call_t *call)
{
    u_char                           *p;
    ngx_str_t                         none, method, params, *id;
    ngx_http_mcp_forward_t           *forward;
    ngx_http_mcp_audience_t           audience;
    ngx_http_mcp_upstream_request_t  *ureq;

    if (ngx_http_mcp_calls.ncancels == NGX_HTTP_MCP_CANCELS_MAX) {
        return NGX_DECLINED;
    }

    forward = call->data;
    id = forward->ureq.sent_id.len ? &forward->ureq.sent_id
                                   : &call->message->id;

    ngx_http_mcp_call_audience(call, &forward->ureq, &audience);

    ureq = ngx_http_mcp_upstream_request_create(forward->ureq.upstream,
                                                &audience,
                                                &call->r->headers_in);
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    ngx_http_mcp_calls.ncancels++;

    ureq->owner = forward->ureq.owner;
    ureq->stateful = forward->ureq.stateful;
    ureq->existing = 1;
    ureq->answered = 1;
    ureq->done = ngx_http_mcp_cancel_done;
    ureq->destroyed = ngx_http_mcp_cancel_destroyed;

    ngx_str_set(&none, "");
    ngx_str_set(&method, "notifications/cancelled");

    p = ngx_pnalloc(ureq->r->pool,
                    sizeof("{\"requestId\":,\"reason\":\"the client left\"}")
                    + id->len);
    if (p == NULL) {
        goto failed;
    }

    params.data = p;
    params.len = ngx_sprintf(p, "{\"requestId\":%V,\"reason\":"
                             "\"the client left\"}", id)
                 - p;

    if (ngx_http_mcp_upstream_request_compose(ureq, &none, &method, &params)
        == NGX_OK
        && ngx_http_mcp_upstream_request_run(ureq) == NGX_OK)
    {
        return NGX_OK;
    }

failed:

    ngx_http_mcp_background_close(ureq->r);

    return NGX_ERROR;
}


static void
ngx_http_mcp_cancel_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(ureq->r);
}


static void
ngx_http_mcp_cancel_destroyed(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_calls.ncancels--;
}


/* stops waiting for the upstream; ngx_http_mcp_sync_done() then answers */

static void
ngx_http_mcp_sync_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_call_t     *call;
    ngx_http_mcp_forward_t  *forward;

    call = ev->data;
    forward = call->data;

    ngx_http_set_log_request(ev->log, call->r);
    ev->log->action = NULL;

    ngx_log_error(NGX_LOG_INFO, ev->log, 0,
                  "mcp upstream \"%V\" has not answered %V on the session of "
                  "a client after %d ms; the client is answered, as the "
                  "subscription is shared",
                  &forward->ureq.upstream->name, &call->message->method,
                  NGX_HTTP_MCP_SYNC_TIMEOUT);

    ngx_http_mcp_upstream_request_abort(&forward->ureq);
}


static void
ngx_http_mcp_sync_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_reply_t   reply;

    call = ureq->data;

    ngx_http_mcp_forward_stop(call);

    (void) ngx_http_mcp_reply_ok(&reply);

    ngx_http_mcp_call_end(call, &reply);
}
