
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_mix.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_server_request.h"


#define NGX_HTTP_MCP_CALL_BUFFER  16384

/* cancellations that a worker sends at a time */
#define NGX_HTTP_MCP_CANCELS      32

/* ms; for an answer in a stream that may be the first message */
#define NGX_HTTP_MCP_STREAM_SOON  100

/* ms; for a subscription that the shared upstream session has */
#define NGX_HTTP_MCP_TELL_LATE    2000

#define NGX_HTTP_MCP_DOTS                                                     \
    "a method or name must not make a dot segment of the upstream's URI"


/* a call that an upstream answers */

typedef struct {
    ngx_http_mcp_talk_t       talk;

    ngx_chain_t              *free;       /* of an answer that passes through */
    ngx_chain_t              *busy;
    ngx_str_t                 gathered;   /* room for an answer in pieces */
    size_t                    size;       /* of them so far */

    ngx_uint_t                blamed;     /* the log has what was wrong */
    ngx_event_t               late;       /* the answer does not depend on it,
                                             and waits no longer */
} ngx_http_mcp_asked_t;


static ngx_int_t ngx_http_mcp_asked_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_http_mcp_talk_t *ngx_http_mcp_asked_create(
    ngx_http_mcp_call_t *call, ngx_http_mcp_answerer_t *answerer);
static ngx_int_t ngx_http_mcp_asked_talk(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_asked_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_asked_cancel(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_asked_room(ngx_http_mcp_call_t *call,
    ngx_uint_t room);
static ngx_int_t ngx_http_mcp_asked_headers(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_asked_wake(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_asked_streams(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_asked_paused(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_asked_message(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_asked_request(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_str_t *id);
static void ngx_http_mcp_asked_refuse(ngx_http_mcp_call_t *call,
    ngx_str_t *id);
static ngx_uint_t ngx_http_mcp_asked_level(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_asked_other_id(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_str_t *id);
static void ngx_http_mcp_asked_note(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_asked_filter(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static void ngx_http_mcp_asked_answer(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_uint_t keep);
static ngx_int_t ngx_http_mcp_asked_piece(ngx_http_mcp_talk_t *t,
    ngx_chain_t *in, ngx_uint_t last);
static ngx_int_t ngx_http_mcp_asked_pass(ngx_http_mcp_call_t *call,
    ngx_chain_t *in, ngx_uint_t last);
static ngx_int_t ngx_http_mcp_asked_copy(ngx_http_mcp_call_t *call,
    ngx_chain_t *in, ngx_chain_t **out);
static ngx_int_t ngx_http_mcp_asked_gather(ngx_http_mcp_call_t *call,
    ngx_chain_t *in);
static void ngx_http_mcp_asked_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_asked_failed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_asked_own_list(ngx_http_mcp_call_t *call,
    ngx_str_t *result);
static ngx_int_t ngx_http_mcp_asked_notify(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_cancel_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_cancel_gone(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_asked_ignore(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_asked_late(ngx_event_t *ev);
static void ngx_http_mcp_asked_told(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);


/* the upstream of the endpoint */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_upstream = {
    ngx_http_mcp_asked_start,
    ngx_http_mcp_asked_stop,
    ngx_http_mcp_asked_cancel,
    ngx_http_mcp_asked_room,
    ngx_http_mcp_asked_headers,
    ngx_http_mcp_asked_wake,
    0
};

/* likewise, but the answer is made here */

static ngx_http_mcp_answerer_t  ngx_http_mcp_call_telling = {
    NULL,
    ngx_http_mcp_asked_stop,
    ngx_http_mcp_asked_cancel,
    ngx_http_mcp_asked_room,
    NULL,
    ngx_http_mcp_asked_wake,
    0
};


static ngx_int_t
ngx_http_mcp_asked_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    if (call->ctx->conf->upstreams == NULL) {
        return NGX_DECLINED;
    }

    return ngx_http_mcp_call_ask(call, 0, reply);
}


ngx_int_t
ngx_http_mcp_call_ask(ngx_http_mcp_call_t *call, ngx_uint_t session_only,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t             rc;
    ngx_http_mcp_talk_t  *t;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    t = ngx_http_mcp_asked_create(call, &ngx_http_mcp_call_upstream);
    if (t == NULL) {
        return NGX_ERROR;
    }

    t->patient = 1;
    t->session_only = session_only ? 1 : 0;

    t->streams = ngx_http_mcp_asked_streams;
    t->paused = ngx_http_mcp_asked_paused;
    t->message = ngx_http_mcp_asked_message;
    t->piece = ngx_http_mcp_asked_piece;
    t->done = ngx_http_mcp_asked_done;

    return ngx_http_mcp_asked_talk(call, reply);
}


ngx_int_t
ngx_http_mcp_call_tell(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t              rc;
    ngx_http_mcp_talk_t   *t;
    ngx_http_mcp_asked_t  *asked;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    t = ngx_http_mcp_asked_create(call, &ngx_http_mcp_call_telling);
    if (t == NULL) {
        return NGX_ERROR;
    }

    t->existing = 1;
    t->answered = 1;

    t->message = ngx_http_mcp_asked_ignore;
    t->done = ngx_http_mcp_asked_told;

    if (ngx_http_mcp_asked_talk(call, reply) == NGX_AGAIN) {

        if (call->message->method_code != NGX_MCP_METHOD_SET_LEVEL) {
            asked = call->data;

            asked->late.handler = ngx_http_mcp_asked_late;
            asked->late.data = call;
            asked->late.log = call->r->connection->log;

            ngx_add_timer(&asked->late, NGX_HTTP_MCP_TELL_LATE);
        }

        return NGX_AGAIN;
    }

    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));
    ngx_str_set(&reply->result, "{}");

    return NGX_OK;
}


static ngx_http_mcp_talk_t *
ngx_http_mcp_asked_create(ngx_http_mcp_call_t *call,
    ngx_http_mcp_answerer_t *answerer)
{
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_mcp_talk_t   *t;
    ngx_http_mcp_asked_t  *asked;

    asked = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_asked_t));
    if (asked == NULL) {
        return NULL;
    }

    call->answerer = answerer;
    call->data = asked;

    ctx = call->ctx;
    t = &asked->talk;

    t->r = call->r;
    t->upstream = ctx->conf->upstreams->elts;
    t->session = ctx->caller.session;
    t->call = call->record.ref;
    t->tenant = ctx->caller.tenant;
    t->body = call->message->text;
    t->data = call;

    if (call->batch == NULL) {
        t->scope = ctx->scope;

    } else if (ngx_http_mcp_scan_scope(call->r, call->message, &t->scope)
               != NGX_OK)
    {
        return NULL;
    }

    ctx->upstream = t->upstream->name;

    return t;
}


static ngx_int_t
ngx_http_mcp_asked_talk(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    switch (ngx_http_mcp_talk_start(&asked->talk)) {

    case NGX_OK:
        return NGX_AGAIN;

    case NGX_DECLINED:
        ngx_str_set(&call->ctx->upstream, "");
        ngx_str_set(&reply->result, "{}");
        return NGX_OK;
    }

    if (asked->talk.scope.dots) {
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_BAD_REQUEST,
                                        NGX_MCP_INVALID_REQUEST,
                                        NGX_HTTP_MCP_DOTS);
    }

    return NGX_ERROR;
}


static void
ngx_http_mcp_asked_stop(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    if (asked) {
        ngx_http_mcp_talk_cleanup(&asked->talk);

        if (asked->late.timer_set) {
            ngx_del_timer(&asked->late);
        }
    }
}


static void
ngx_http_mcp_asked_cancel(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    if (call->state == NGX_HTTP_MCP_CALL_STOPPING
        && call->reason == NGX_HTTP_MCP_CALL_ABANDONED
        && asked->talk.x && !asked->talk.sessionless)
    {
        (void) ngx_http_mcp_asked_notify(call);
    }

    ngx_http_mcp_talk_abort(&asked->talk);
}


static void
ngx_http_mcp_asked_room(ngx_http_mcp_call_t *call, ngx_uint_t room)
{
    ngx_chain_t           *none;
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    if (asked->talk.x == NULL) {
        return;
    }

    if (!room) {
        ngx_http_mcp_exchange_hold(asked->talk.x);
        return;
    }

    none = NULL;

    ngx_chain_update_chains(call->r->pool, &asked->free, &asked->busy, &none,
                            (ngx_buf_tag_t) &ngx_http_mcp_module);

    ngx_http_mcp_exchange_resume(asked->talk.x);
}


static ngx_int_t
ngx_http_mcp_asked_headers(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    return asked->talk.x ? ngx_http_mcp_copy_headers(call->r, asked->talk.x)
                         : NGX_OK;
}


static void
ngx_http_mcp_asked_wake(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    ngx_http_mcp_talk_wake(&asked->talk);
}


/*
 * The upstream answers with SSE, and so does nginx.  If the result of a tool is
 * the first message and comes soon, JSON costs less.
 */

static void
ngx_http_mcp_asked_streams(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_call_t  *call;

    call = t->data;

    if (call->message->method_code != NGX_MCP_METHOD_TOOLS_CALL
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
 * The upstream wants to be polled (2025-11-25 basic/transports, "Sending
 * Messages", item 6): the client is let go as well, and resumes here.
 */

static void
ngx_http_mcp_asked_paused(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_call_t  *call;

    call = t->data;
    ctx = call->ctx;

    ngx_http_mcp_call_open_stream(call);

    if (ctx->stream && ctx->manner->resumes(ctx)) {
        ngx_http_mcp_stream_close(ctx->stream, NGX_MCP_COUNTER_STREAMS_DONE);
    }
}


static void
ngx_http_mcp_asked_message(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_str_t              id;
    ngx_mcp_json_t        *json;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_asked_t  *asked;

    call = t->data;
    asked = call->data;
    json = &t->x->scan;

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (json->members[NGX_MCP_PATH_METHOD].type == NGX_MCP_JSON_STRING) {
        ngx_http_mcp_asked_request(call, text, &id);
        return;
    }

    if (!ngx_mcp_json_same_id(&id, &call->message->id)) {
        ngx_http_mcp_asked_other_id(call, text, &id);
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
        asked->blamed = 1;

        ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                      "mcp upstream \"%V\" answered with neither result nor "
                      "error", &t->upstream->name);
        return;
    }

    ngx_http_mcp_asked_note(call, text);
    ngx_http_mcp_asked_answer(call, text, 0);
}


/* a request or notification of the upstream */

static void
ngx_http_mcp_asked_request(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_str_t *id)
{
    ngx_int_t              rc;
    ngx_str_t              out;
    ngx_uint_t             level;
    ngx_pool_t            *pool;
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_mcp_talk_t   *t;
    ngx_http_mcp_asked_t  *asked;

    ctx = call->ctx;
    asked = call->data;
    t = &asked->talk;
    pool = NULL;

    if (id->len == 0
        && ngx_http_mcp_said_elsewhere(t, &ctx->caller, text))
    {
        return;
    }

    rc = ctx->manner->server_request(ctx, t, text, &pool, &out);

    if (rc != NGX_OK) {

        if (id->len) {
            ngx_http_mcp_asked_refuse(call, id);
        }

        return;
    }

    level = id->len ? NGX_MCP_LEVEL_UNSET : ngx_http_mcp_asked_level(t, text);

    ngx_http_mcp_call_deliver(call, &out, 0, level);

    if (pool) {
        ngx_destroy_pool(pool);
    }
}


/* the client cannot be asked */

static void
ngx_http_mcp_asked_refuse(ngx_http_mcp_call_t *call, ngx_str_t *id)
{
    ngx_http_mcp_asked_t     *asked;
    ngx_http_mcp_audience_t   audience;

    asked = call->data;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = call->ctx->caller.tenant;
    audience.session = call->ctx->caller.session_id;

    ngx_http_mcp_server_request_refuse(&asked->talk, &audience, id);
}


static ngx_uint_t
ngx_http_mcp_asked_level(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_str_t  level;

    if (t->x->scan.members[NGX_MCP_PATH_LEVEL].type != NGX_MCP_JSON_STRING) {
        return NGX_MCP_LEVEL_UNSET;
    }

    level = ngx_mcp_json_span(&t->x->scan, NGX_MCP_PATH_LEVEL, text->data);
    level.data++;
    level.len -= 2;

    return ngx_mcp_level_parse(&level);
}


/* an answer with another id than that of the request */

static void
ngx_http_mcp_asked_other_id(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_str_t *id)
{
    ngx_str_t                 error;
    ngx_mcp_json_t           *json;
    ngx_http_mcp_asked_t     *asked;
    ngx_http_mcp_exchange_t  *x;

    asked = call->data;
    x = asked->talk.x;
    json = &x->scan;

    if (json->members[NGX_MCP_PATH_ID].type <= NGX_MCP_JSON_NULL) {

        if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {
            return;
        }

        if (x->refusal.len
            && json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT)
        {
            error = ngx_mcp_refusal_compose(call->r->pool, &call->message->id,
                                            &x->refusal);
            if (error.data) {
                ngx_http_mcp_asked_note(call, text);
                ngx_http_mcp_asked_answer(call, &error, 1);
            }

            return;
        }
    }

    if (asked->blamed) {
        return;
    }

    asked->blamed = 1;

    ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                  "mcp upstream \"%V\" answered with id %V instead of %V",
                  &asked->talk.upstream->name, id, &call->message->id);
}


/* the answer's part for variables, and for the subscription it may refuse */

static void
ngx_http_mcp_asked_note(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t              code;
    ngx_mcp_json_t        *json;
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;
    json = &asked->talk.x->scan;

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

    ngx_http_mcp_call_unsubscribe(call);
}


/* keep: the text stays as long as the request */

static void
ngx_http_mcp_asked_answer(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t keep)
{
    u_char                *data;
    ngx_http_mcp_asked_t  *asked;
    ngx_http_mcp_reply_t   reply;

    asked = call->data;

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    reply.parts[0] = *text;
    reply.nparts = 1;

    if (ngx_http_mcp_asked_filter(call, &reply.parts[0]) != NGX_OK) {
        return;
    }

    if (!keep && call->response != NGX_HTTP_MCP_CALL_STREAM
        && reply.parts[0].data == text->data)
    {
        data = ngx_pstrdup(call->r->pool, text);
        if (data == NULL) {
            return;
        }

        reply.parts[0].data = data;
    }

    asked->talk.answered = 1;

    ngx_http_mcp_call_reply(call, &reply);
}


/* a list with what is here, and without what the caller may not call */

static ngx_int_t
ngx_http_mcp_asked_filter(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_str_t              result, own;
    ngx_http_mcp_asked_t  *asked;

    if (!ngx_http_mcp_filters(call->ctx, call->message)) {
        return NGX_OK;
    }

    asked = call->data;

    result = ngx_mcp_json_span(&asked->talk.x->scan, NGX_MCP_PATH_RESULT,
                               text->data);

    if (result.len == 0 && call->ctx->error == NGX_MCP_METHOD_NOT_FOUND
        && ngx_http_mcp_asked_own_list(call, &result) == NGX_OK)
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

    return ngx_http_mcp_filter(call->r, call->ctx, call->message, &result,
                               text);
}


/* the result of a list that the upstream does not have, but the module does */

static ngx_int_t
ngx_http_mcp_asked_own_list(ngx_http_mcp_call_t *call, ngx_str_t *result)
{
    ngx_mcp_message_t  *m;

    m = call->message;

    if (!ngx_http_mcp_mix_has(&call->ctx->conf->bridge, m->method_code)
        || m->json.members[NGX_MCP_PATH_CURSOR].type > NGX_MCP_JSON_NULL)
    {
        return NGX_DECLINED;
    }

    ngx_str_null(result);

    if (ngx_http_mcp_filter_result(call->r, call->ctx, m, result) != NGX_OK) {
        return NGX_DECLINED;
    }

    call->ctx->error = 0;

    return NGX_OK;
}


/* a part of a JSON answer that is too large to be looked at whole */

static ngx_int_t
ngx_http_mcp_asked_piece(ngx_http_mcp_talk_t *t, ngx_chain_t *in,
    ngx_uint_t last)
{
    ngx_chain_t           *cl;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_asked_t  *asked;

    call = t->data;
    asked = call->data;

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING
        || (call->gone && call->response != NGX_HTTP_MCP_CALL_STREAM))
    {
        /* a stream may be resumed, and says what became of the answer */

        for (cl = in; cl; cl = cl->next) {
            cl->buf->pos = cl->buf->last;
        }

        if (last) {
            t->answered = 1;
            ngx_http_mcp_call_answered(call);
        }

        return NGX_OK;
    }

    if (call->response != NGX_HTTP_MCP_CALL_STREAM && call->batch == NULL
        && call->ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON
        && !ngx_http_mcp_filters(call->ctx, call->message))
    {
        return ngx_http_mcp_asked_pass(call, in, last);
    }

    if (ngx_http_mcp_asked_gather(call, in) != NGX_OK) {
        return NGX_ERROR;
    }

    if (last) {
        asked->gathered.len = asked->size;

        ngx_http_mcp_asked_note(call, &asked->gathered);
        ngx_http_mcp_asked_answer(call, &asked->gathered, 1);
    }

    return NGX_OK;
}


/* likewise, for a client that gets each part as it comes */

static ngx_int_t
ngx_http_mcp_asked_pass(ngx_http_mcp_call_t *call, ngx_chain_t *in,
    ngx_uint_t last)
{
    ngx_int_t              rc;
    ngx_chain_t           *out;
    ngx_http_request_t    *r;
    ngx_http_mcp_asked_t  *asked;

    r = call->r;
    asked = call->data;

    if (call->response == NGX_HTTP_MCP_CALL_JSON && r->connection->buffered) {
        return NGX_AGAIN;
    }

    if ((call->response == NGX_HTTP_MCP_CALL_UNSENT
         && ngx_http_mcp_call_open_json(call) != NGX_OK)
        || ngx_http_mcp_asked_copy(call, in, &out) != NGX_OK)
    {
        ngx_http_mcp_call_lost(call);
        return NGX_OK;
    }

    if (last) {
        ngx_http_mcp_asked_note(call, NULL);
        asked->talk.answered = 1;
        ngx_http_mcp_call_answered(call);
    }

    if (out == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_mcp_output(r, out);

    ngx_chain_update_chains(r->pool, &asked->free, &asked->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_mcp_module);

    if (rc != NGX_OK) {
        ngx_http_mcp_call_lost(call);
    }

    return NGX_OK;
}


/* the upstream's buffers are used again at once, the client may be slow */

static ngx_int_t
ngx_http_mcp_asked_copy(ngx_http_mcp_call_t *call, ngx_chain_t *in,
    ngx_chain_t **out)
{
    size_t                 n;
    ngx_buf_t             *b;
    ngx_pool_t            *pool;
    ngx_chain_t          **ll;
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;
    pool = call->r->pool;
    ll = out;

    for ( /* void */ ; in; in = in->next) {

        while (in->buf->pos < in->buf->last) {

            *ll = ngx_chain_get_free_buf(pool, &asked->free);
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
ngx_http_mcp_asked_gather(ngx_http_mcp_call_t *call, ngx_chain_t *in)
{
    size_t                 len, size;
    u_char                *p;
    ngx_chain_t           *cl;
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;

    for (cl = in; cl; cl = cl->next) {

        len = cl->buf->last - cl->buf->pos;

        if (asked->size + len > asked->gathered.len) {

            size = ngx_max(asked->gathered.len * 2, asked->size + len);

            p = ngx_palloc(call->r->pool, size);
            if (p == NULL) {
                return NGX_ERROR;
            }

            if (asked->size) {
                ngx_memcpy(p, asked->gathered.data, asked->size);
                ngx_pfree(call->r->pool, asked->gathered.data);
            }

            asked->gathered.data = p;
            asked->gathered.len = size;
        }

        ngx_memcpy(asked->gathered.data + asked->size, cl->buf->pos, len);
        asked->size += len;

        cl->buf->pos = cl->buf->last;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_asked_done(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_reply_t   reply;

    call = t->data;

    if (call->response == NGX_HTTP_MCP_CALL_JSON
        && outcome != NGX_HTTP_MCP_OK)
    {
        call->rc = NGX_ERROR;
    }

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        ngx_http_mcp_call_end(call, NULL);
        return;
    }

    ngx_http_mcp_asked_failed(call, outcome, &reply);
    ngx_http_mcp_call_end(call, &reply);
}


/* the exchange ended without an answer for the client */

static void
ngx_http_mcp_asked_failed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply)
{
    ngx_http_mcp_talk_t   *t;
    ngx_http_mcp_asked_t  *asked;

    asked = call->data;
    t = &asked->talk;

    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    if (ngx_http_mcp_talk_absent(t, outcome)) {
        if (ngx_http_mcp_asked_own_list(call, &reply->result) != NGX_OK) {
            (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                            NGX_MCP_METHOD_NOT_FOUND,
                                            "Method not found");
        }

        return;
    }

    if (t->sessionless && t->session_only && outcome == NGX_HTTP_MCP_OK) {
        ngx_str_set(&reply->result, "{}");
        return;
    }

    if (t->scope.dots) {
        (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_BAD_REQUEST,
                                        NGX_MCP_INVALID_REQUEST,
                                        NGX_HTTP_MCP_DOTS);
        return;
    }

    if (t->why.len) {
        ngx_http_mcp_reply_unknown(call->r, t->upstream, t->status, &t->why,
                                   reply);
        return;
    }

    if (outcome == NGX_HTTP_MCP_OK && !asked->blamed) {
        ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                      "mcp upstream \"%V\" ended its response without an "
                      "answer, status %ui", &t->upstream->name, t->x->status);
    }

    ngx_http_mcp_reply_outcome(call->r, &call->message->id, t->upstream, t->x,
                               outcome, reply);
}


/* tells the upstream that nobody waits for the answer any more */

static ngx_int_t
ngx_http_mcp_asked_notify(ngx_http_mcp_call_t *call)
{
    u_char                   *p;
    ngx_str_t                 none, params;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_talk_t      *t;
    ngx_http_mcp_asked_t     *asked;
    ngx_http_mcp_audience_t   audience;

    if (ngx_http_mcp_calls.ncancels == NGX_HTTP_MCP_CANCELS) {
        return NGX_DECLINED;
    }

    ctx = call->ctx;
    asked = call->data;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = ctx->caller.tenant;
    audience.session = ctx->caller.session_id;

    t = ngx_http_mcp_talk_create(asked->talk.upstream, &audience,
                                 &call->r->headers_in);
    if (t == NULL) {
        return NGX_ERROR;
    }

    ngx_http_mcp_calls.ncancels++;

    t->session = ctx->caller.session;
    t->existing = 1;
    t->answered = 1;
    t->message = ngx_http_mcp_asked_ignore;
    t->done = ngx_http_mcp_cancel_done;
    t->gone = ngx_http_mcp_cancel_gone;

    ngx_str_null(&none);
    ngx_str_set(&t->scope.method, "notifications/cancelled");

    p = ngx_pnalloc(t->r->pool,
                    sizeof("{\"requestId\":,\"reason\":\"the client left\"}")
                    + call->message->id.len);
    if (p == NULL) {
        goto failed;
    }

    params.data = p;
    params.len = ngx_sprintf(p, "{\"requestId\":%V,\"reason\":"
                             "\"the client left\"}", &call->message->id)
                 - p;

    t->body = ngx_mcp_request_compose(t->r->pool, &none, &t->scope.method,
                                      &params);

    if (t->body.data && ngx_http_mcp_talk_run(t) == NGX_OK) {
        return NGX_OK;
    }

failed:

    ngx_http_mcp_background_close(t->r);

    return NGX_ERROR;
}


static void
ngx_http_mcp_cancel_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(t->r);
}


static void
ngx_http_mcp_cancel_gone(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_calls.ncancels--;
}


static void
ngx_http_mcp_asked_ignore(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    /* nothing in it is for the client */
}


/* told() follows */

static void
ngx_http_mcp_asked_late(ngx_event_t *ev)
{
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_asked_t  *asked;

    call = ev->data;
    asked = call->data;

    ngx_log_error(NGX_LOG_INFO, ev->log, 0,
                  "mcp upstream \"%V\" has not answered %V on the session of "
                  "a client after %d ms; the client is answered, as the "
                  "subscription is shared",
                  &asked->talk.upstream->name, &call->message->method,
                  NGX_HTTP_MCP_TELL_LATE);

    ngx_http_mcp_talk_abort(&asked->talk);
}


static void
ngx_http_mcp_asked_told(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_reply_t   reply;

    call = t->data;

    ngx_http_mcp_asked_stop(call);

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));
    ngx_str_set(&reply.result, "{}");

    ngx_http_mcp_call_end(call, &reply);
}
