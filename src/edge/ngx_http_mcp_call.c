
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_output.h"


/*
 * A kept call is a running call whose client has left.  It uses two
 * connections: that of the client's request, and one to the upstream.  A
 * worker has at most worker_connections divided by this number of kept calls;
 * a tenant (or a client without one) has at most half of that maximum, and at
 * most mcp_call_limit.
 */

#define NGX_HTTP_MCP_KEPT_SHARE  8

/*
 * The most kept calls that are tried when one has to be cancelled; a call whose
 * client has come back is passed over
 */
#define NGX_HTTP_MCP_KEPT_READ   8


/* a message on the call's line that the log does not keep */

struct ngx_http_mcp_large_s {
    ngx_str_t                 text;
    ngx_mcp_memory_t          memory;     /* holds text; not in a pool */
    ngx_mcp_cursor_t          place;      /* place on the line, behind the
                                             messages in the log */
    ngx_uint_t                flags;      /* NGX_MCP_EVENT_* */
    ngx_http_mcp_large_t     *next;       /* next message of the call, or
                                             NULL */
};


static ngx_int_t ngx_http_mcp_call_dispatch(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_call_ask(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_call_open_record(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_call_open_sessionless(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_after(ngx_event_t *ev);
static void ngx_http_mcp_call_reading(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_call_number(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_cleanup(void *data);
static void ngx_http_mcp_call_respond(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_call_stopped(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static void ngx_http_mcp_call_sent(ngx_http_request_t *r, ngx_int_t rc);
static ngx_uint_t ngx_http_mcp_call_may_stream(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_stream_closed(void *data);
static void ngx_http_mcp_call_stream_room(void *data);
static void ngx_http_mcp_call_large(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_mcp_cursor_t *place, ngx_uint_t flags);
static ngx_int_t ngx_http_mcp_call_copy_large(ngx_http_mcp_call_t *call,
    ngx_http_mcp_large_t *large);
static void ngx_http_mcp_call_send_large(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_free_large(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_free_first(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_room(ngx_http_mcp_call_t *call,
    ngx_uint_t room);
static void ngx_http_mcp_call_without_client(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_keep_running(ngx_http_mcp_call_t *call);
static uint64_t ngx_http_mcp_call_kept_key(ngx_http_mcp_call_t *call);
static ngx_http_mcp_call_t *ngx_http_mcp_call_kept_oldest(
    ngx_http_mcp_call_t *call, ngx_uint_t *n);
static void ngx_http_mcp_call_kept_remove(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_abandon(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_unregister(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_text(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply, ngx_str_t *text);


ngx_http_mcp_answerer_t  **ngx_http_mcp_answerers;

ngx_http_mcp_calls_t  ngx_http_mcp_calls;

#define ngx_http_mcp_calls_next(n)  (((uintptr_t) (n) << 1) | 1)


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

    return ngx_http_mcp_suspend(r, ngx_http_mcp_call_reading);
}


ngx_int_t
ngx_http_mcp_call_element(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_http_mcp_reply_t  reply;

    if (call->message->method_code == NGX_MCP_METHOD_PING) {
        (void) ngx_http_mcp_reply_ok(&reply);

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
    call->next = ngx_http_mcp_answerers;

    return call;
}


/* starts the call; NGX_OK: *reply is the answer; NGX_AGAIN: the call runs */

static ngx_int_t
ngx_http_mcp_call_dispatch(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    if (ngx_http_mcp_call_ask(call, NGX_DECLINED, reply) == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    call->state = NGX_HTTP_MCP_CALL_DONE;

    ngx_http_mcp_call_unregister(call);

    if (reply->status) {
        ngx_http_mcp_call_unsubscribe(call);
    }

    return NGX_OK;
}


/*
 * Tries the next answerers if rc, which the last one returned, is NGX_DECLINED.
 * NGX_OK: *reply is the answer; NGX_AGAIN: the call runs.
 */

static ngx_int_t
ngx_http_mcp_call_ask(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_reply_t *reply)
{
    uint32_t                  method;
    ngx_http_mcp_answerer_t  *answerer;

    method = NGX_HTTP_MCP_METHOD(call->message->method_code);

    while (rc == NGX_DECLINED && *call->next) {

        answerer = *call->next++;

        if (answerer->methods && !(answerer->methods & method)) {
            continue;
        }

        /* a running call keeps its answerer until another one accepts it */

        if (call->state == NGX_HTTP_MCP_CALL_NEW) {
            call->answerer = answerer;
        }

        rc = answerer->start(call, reply);
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_reply_no_method(reply);
    }

    return (rc == NGX_ERROR) ? ngx_http_mcp_reply_internal(reply) : rc;
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
 * As ngx_http_test_reading(), but the request may outlive the connection of a
 * client that leaves: with a session it runs on (2025-11-25 basic/transports,
 * "Sending Messages": a disconnect is no cancellation).
 */

static void
ngx_http_mcp_call_reading(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t  *ctx;

    if (!ngx_http_mcp_call_test_client(r)) {
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ngx_http_mcp_call_client_left(ctx->call);
}


ngx_int_t
ngx_http_mcp_call_open(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc;
    ngx_pool_cleanup_t       *cln;
    ngx_http_mcp_loc_conf_t  *mlcf;

    if (call->state != NGX_HTTP_MCP_CALL_NEW) {

        /* an answerer that was tried before has opened the call */

        return NGX_AGAIN;
    }

    mlcf = call->ctx->conf;

    cln = ngx_pool_cleanup_add(call->r->pool, 0);

    if (cln == NULL || ngx_http_mcp_call_number(call) != NGX_OK) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_mcp_call_cleanup;
    cln->data = call;

    if (call->continues) {
        call->state = NGX_HTTP_MCP_CALL_RUNNING;
        return NGX_AGAIN;
    }

    rc = call->ctx->client->sessionless
         ? ngx_http_mcp_call_open_sessionless(call)
         : ngx_http_mcp_call_open_record(call);

    switch (rc) {

    case NGX_OK:
        break;

    case NGX_BUSY:
        ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_CALLS_REFUSED, 1);

        return ngx_http_mcp_reply_error(reply, NGX_HTTP_SERVICE_UNAVAILABLE,
                                        NGX_MCP_REFUSED,
                                        "the limit of running requests is "
                                        "reached (mcp_call_limit)");

    case NGX_MCP_EXISTS:
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_BAD_REQUEST,
                                        NGX_MCP_INVALID_REQUEST,
                                        "a request with this id is running "
                                        "already");

    case NGX_ERROR:
        return NGX_ERROR;

    default:
        return ngx_http_mcp_reply_error(reply, NGX_HTTP_SERVICE_UNAVAILABLE,
                                        NGX_MCP_REFUSED,
                                        "the zone has no room for another "
                                        "request (mcp_zone); try again later");
    }

    call->registered = 1;
    call->state = NGX_HTTP_MCP_CALL_RUNNING;

    if (call->batch || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
        ngx_mcp_call_mark(mlcf->zone, call->record.ref, NGX_MCP_CALL_PLAIN);
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_mcp_call_open_record(ngx_http_mcp_call_t *call)
{
    ngx_str_t                 token;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    token = ngx_mcp_message_member(call->message, NGX_MCP_PATH_META_TOKEN);

    return ngx_mcp_call_open(mlcf->zone, call->ctx->caller.session,
                             &call->message->id, &token, mlcf->call_limit,
                             &call->record);
}


/* counts the call for its tenant and client, by identity or else address */

static ngx_int_t
ngx_http_mcp_call_open_sessionless(ngx_http_mcp_call_t *call)
{
    ngx_str_t                 key;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    if (ngx_http_mcp_call_limit_key(call, "calls", &key) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_call_open_sessionless(mlcf->zone, &mlcf->name, &key,
                                         mlcf->call_limit, &call->record);
}


ngx_int_t
ngx_http_mcp_call_limit_key(ngx_http_mcp_call_t *call, const char *name,
    ngx_str_t *key)
{
    u_char            *p;
    size_t             len;
    ngx_mcp_caller_t  *caller;

    caller = &call->ctx->caller;

    if (ngx_http_mcp_evaluate_share(call->r, call->ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    len = ngx_strlen(name) + 1;

    key->len = len + caller->tenant.len + 1 + caller->share.len;
    key->data = ngx_pnalloc(call->r->pool, key->len);

    if (key->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(key->data, name, len);
    p = ngx_cpymem(p, caller->tenant.data, caller->tenant.len);
    *p++ = '\0';
    ngx_memcpy(p, caller->share.data, caller->share.len);

    return NGX_OK;
}


void
ngx_http_mcp_call_audience(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_audience_t *audience)
{
    ngx_memzero(audience, sizeof(ngx_http_mcp_audience_t));

    audience->tenant = call->ctx->caller.tenant;
    audience->session = ureq->session.len ? ureq->session
                                          : call->ctx->caller.session_id;
}


void
ngx_http_mcp_call_caller(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_mcp_caller_t  *caller;

    caller = &call->ctx->caller;

    ureq->owner = caller->session;
    ureq->tenant = caller->tenant;
    ureq->capabilities = caller->capabilities;
    ureq->level = caller->level;

    if (call->ctx->client->sessionless) {
        ureq->principal = ngx_http_mcp_principal_key;

        if (call->message->json.members[NGX_MCP_PATH_META_CLIENT].type
            == NGX_MCP_JSON_OBJECT)
        {
            ureq->client = ngx_mcp_message_member(call->message,
                                                  NGX_MCP_PATH_META_CLIENT);
        }

    } else {
        ureq->stateful = 1;
    }
}


/* gives the call a number, by which the doorbell finds it in this worker */

static ngx_int_t
ngx_http_mcp_call_number(ngx_http_mcp_call_t *call)
{
    size_t                 size;
    ngx_uint_t             i, n;
    ngx_http_mcp_call_t  **table;
    ngx_http_mcp_calls_t  *calls;

    calls = &ngx_http_mcp_calls;

    if (calls->free == calls->size) {

        n = calls->size ? calls->size * 2 : 256;
        size = n * sizeof(ngx_http_mcp_call_t *);

        table = ngx_alloc(size, ngx_cycle->log);
        if (table == NULL) {
            return NGX_ERROR;
        }

        if (calls->table) {
            ngx_memcpy(table, calls->table, calls->size * sizeof(*table));
            ngx_free(calls->table);
        }

        for (i = calls->size; i < n; i++) {
            table[i] = (ngx_http_mcp_call_t *) ngx_http_mcp_calls_next(i + 1);
        }

        calls->free = ngx_max(calls->size, 1);
        calls->table = table;
        calls->size = n;
    }

    call->record.local = (uint32_t) calls->free;
    calls->free = (uintptr_t) calls->table[call->record.local] >> 1;
    calls->table[call->record.local] = call;

    return NGX_OK;
}


/* frees the call's record in the zone and its number; may be called twice */

static void
ngx_http_mcp_call_unregister(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_calls_t  *calls;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    if (call->registered) {
        call->registered = 0;

        if (call->answerer->closing) {
            call->answerer->closing(call);
        }

        ngx_mcp_call_close(call->ctx->conf->zone, call->record.ref);
    }

    if (call->record.local) {
        calls = &ngx_http_mcp_calls;

        calls->table[call->record.local] = (ngx_http_mcp_call_t *)
                                        ngx_http_mcp_calls_next(calls->free);
        calls->free = call->record.local;
        call->record.local = 0;
    }
}


static void
ngx_http_mcp_call_cleanup(void *data)
{
    ngx_http_mcp_call_t *call = data;

    call->answerer->stop(call);

    ngx_http_mcp_call_kept_remove(call);
    ngx_http_mcp_call_unregister(call);
    ngx_http_mcp_call_free_large(call);

    if (call->memory.start) {
        ngx_free(call->memory.start);
    }
}


ngx_http_mcp_call_t *
ngx_http_mcp_call_numbered(ngx_mcp_zone_t *zone, uint32_t local)
{
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_calls_t  *calls;

    calls = &ngx_http_mcp_calls;

    if (local == 0 || local >= calls->size
        || ((uintptr_t) calls->table[local] & 1))
    {
        return NULL;
    }

    call = calls->table[local];

    return (call->ctx->conf->zone == zone) ? call : NULL;
}


void
ngx_http_mcp_call_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why)
{
    ngx_connection_t     *c;
    ngx_http_mcp_call_t  *call;

    call = ngx_http_mcp_call_numbered(zone, local);

    if (call == NULL || call->record.ref.block != ref.block
        || call->record.ref.gen != ref.gen)
    {
        return;
    }

    if (why & (NGX_MCP_WAKE_CANCEL|NGX_MCP_WAKE_CLOSE)) {

        if (call->state == NGX_HTTP_MCP_CALL_RUNNING) {
            ngx_http_mcp_call_abort(call, (why & NGX_MCP_WAKE_CLOSE)
                                          ? NGX_HTTP_MCP_CALL_SESSION_ENDED
                                          : call->park
                                            ? NGX_HTTP_MCP_CALL_LEFT
                                            : NGX_HTTP_MCP_CALL_CANCELLED);
        }

        return;
    }

    if (why & NGX_MCP_WAKE_NEWS && ngx_http_mcp_call_may_stream(call)) {

        c = call->r->connection;

        ngx_http_mcp_call_open_stream(call);
        ngx_http_run_posted_requests(c);

        if (ngx_http_mcp_call_numbered(zone, local) != call) {
            return;
        }
    }

    if (call->answerer->wake) {
        call->answerer->wake(call, why);
    }
}


void
ngx_http_mcp_call_abort(ngx_http_mcp_call_t *call, ngx_uint_t reason)
{
    ngx_connection_t  *c;

    c = call->r->connection;

    if (call->reason == NGX_HTTP_MCP_CALL_NOT_ABORTED) {
        call->reason = reason;
    }

    if (call->state == NGX_HTTP_MCP_CALL_RUNNING) {
        call->state = NGX_HTTP_MCP_CALL_STOPPING;
    }

    if (call->answerer->cancel) {
        call->answerer->cancel(call);
        return;
    }

    call->answerer->stop(call);

    ngx_http_mcp_call_end(call, NULL);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_mcp_call_started(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_reply_t *reply)
{
    if (ngx_http_mcp_call_ask(call, rc, reply) == NGX_OK) {
        ngx_http_mcp_call_end(call, reply);
    }
}


void
ngx_http_mcp_call_end(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_http_request_t    *r;
    ngx_http_mcp_reply_t   stopped;

    r = call->r;

    /* first of all: the client may send its next request after the answer */

    if (call->response != NGX_HTTP_MCP_CALL_STREAM) {
        ngx_http_mcp_call_unregister(call);
    }

    if (call->state == NGX_HTTP_MCP_CALL_STOPPING) {
        reply = &stopped;
        ngx_http_mcp_call_stopped(call, reply);
    }

    if (call->state != NGX_HTTP_MCP_CALL_ANSWERED) {

        if (call->response == NGX_HTTP_MCP_CALL_JSON) {
            call->rc = NGX_ERROR;
        }

        ngx_http_mcp_call_reply(call, reply);
    }

    call->state = NGX_HTTP_MCP_CALL_DONE;

    ngx_http_mcp_call_kept_remove(call);
    ngx_http_mcp_call_unregister(call);

    if (call->batch) {
        call->batch_handlers->done(call);
        return;
    }

    if (call->left) {
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    switch (call->response) {

    case NGX_HTTP_MCP_CALL_STREAM:

        /* the stream ends with its line and finalizes the request */

        return;

    case NGX_HTTP_MCP_CALL_JSON:

        if (call->rc != NGX_OK) {
            /* the client sees that the call failed, as the JSON text is cut */

            r->keepalive = 0;
            ngx_http_finalize_request(r, NGX_ERROR);
            return;
        }

        call->rc = ngx_http_send_special(r, NGX_HTTP_LAST);
        break;

    default: /* NGX_HTTP_MCP_CALL_UNSENT */

        if (!r->header_sent) {
            /* there was no memory for the answer */
            call->rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ngx_http_mcp_output_finalize(r, call->rc);
}


/* sets the reply of a call that was aborted */

static void
ngx_http_mcp_call_stopped(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    switch (call->reason) {

    case NGX_HTTP_MCP_CALL_SESSION_ENDED:
        (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_NOT_FOUND,
                                        NGX_MCP_SESSION_NOT_FOUND,
                                        "the session has ended");
        return;

    case NGX_HTTP_MCP_CALL_ABANDONED:
        (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_OK,
                                        NGX_MCP_INTERNAL_ERROR,
                                        "nginx cancelled the request: its "
                                        "client left, and too many such "
                                        "requests ran");
        return;
    }

    /* a request that its client cancelled is not answered */
}


void
ngx_http_mcp_call_answered(ngx_http_mcp_call_t *call)
{
    if (call->state == NGX_HTTP_MCP_CALL_RUNNING) {
        call->state = NGX_HTTP_MCP_CALL_ANSWERED;
    }
}


void
ngx_http_mcp_call_reply(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_str_t  text;

    call->state = NGX_HTTP_MCP_CALL_ANSWERED;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    if (reply->status || ngx_http_mcp_reply_empty(reply)) {
        ngx_http_mcp_call_unsubscribe(call);
    }

    if (call->response == NGX_HTTP_MCP_CALL_JSON) {
        return;
    }

    if (call->response == NGX_HTTP_MCP_CALL_UNSENT && call->batch == NULL) {

        if (!call->left) {
            ngx_http_mcp_call_respond(call, reply);
        }

        return;
    }

    if (reply->status) {
        call->ctx->error = reply->code;
        call->ctx->failed = 1;
    }

    ngx_http_mcp_call_text(call, reply, &text);

    if (call->batch) {
        call->batch_handlers->answer(call, &text);
        return;
    }

    if (text.len) {

        if (call->ctx->client->sessionless) {
            ngx_http_mcp_call_unregister(call);
        }

        (void) ngx_http_mcp_call_deliver(call, &text, NGX_MCP_EVENT_RESPONSE,
                                         NGX_MCP_LEVEL_UNSET);
        ngx_http_mcp_call_unregister(call);

    } else if (call->ctx->stream) {

        /* a cancelled request gets no answer; its stream just ends */

        ngx_http_mcp_stream_done(call->ctx->stream);
    }
}


/* sets *text to the answer for a batch or stream; empty: there is no answer */

static void
ngx_http_mcp_call_text(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply,
    ngx_str_t *text)
{
    ngx_http_mcp_reply_t  internal;

    if (ngx_http_mcp_reply_text(call->r, &call->message->id, reply, text)
        == NGX_OK)
    {
        return;
    }

    /* there is no memory for the answer, perhaps there is for an error */

    (void) ngx_http_mcp_reply_internal(&internal);
    (void) ngx_http_mcp_reply_text(call->r, &call->message->id, &internal,
                                   text);

    call->ctx->error = internal.code;
}


/* sends an answer outside of batches and streams */

static void
ngx_http_mcp_call_respond(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    if (call->answerer->headers && call->answerer->headers(call) != NGX_OK) {
        call->rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        return;
    }

    ngx_http_mcp_call_unregister(call);

    rc = ngx_http_mcp_reply_send(call->r, &call->message->id, reply);

    c = call->r->connection;

    if (rc == NGX_OK && (c->buffered || c->write->delayed)) {
        rc = ngx_http_mcp_output_start(call->r, ngx_http_mcp_call_sent);
    }

    if (rc == NGX_ERROR) {
        ngx_http_mcp_call_write_failed(call);
        return;
    }

    call->rc = rc;
}


ngx_int_t
ngx_http_mcp_call_open_json(ngx_http_mcp_call_t *call)
{
    ngx_http_request_t  *r;

    r = call->r;

    call->response = NGX_HTTP_MCP_CALL_JSON;
    call->ctx->responded = 1;
    call->ctx->response = 1;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    r->headers_out.status = NGX_HTTP_OK;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;

    if ((call->answerer->headers && call->answerer->headers(call) != NGX_OK)
        || ngx_http_mcp_send_header(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_output_start(r, ngx_http_mcp_call_sent);
}


/*
 * The handler of ngx_http_mcp_output_start().  rc NGX_OK: all that was written
 * of the answer is sent; NGX_ERROR: nothing can be sent to the client any more.
 */

static void
ngx_http_mcp_call_sent(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_call_t  *call;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    call = ctx->call;

    if (rc != NGX_OK) {
        ngx_http_mcp_call_write_failed(call);
    }

    if (call->response == NGX_HTTP_MCP_CALL_JSON) {
        ngx_http_mcp_call_room(call, 1);
    }
}


void
ngx_http_mcp_call_unsubscribe(ngx_http_mcp_call_t *call)
{
    if (call->uri.len) {
        (void) ngx_mcp_session_unsubscribe(call->ctx->conf->zone,
                                           call->ctx->caller.session,
                                           &call->uri);
        ngx_str_null(&call->uri);
    }
}


ngx_int_t
ngx_http_mcp_call_deliver(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t flags, ngx_uint_t level)
{
    ngx_int_t                 rc;
    ngx_mcp_event_t           event;
    ngx_mcp_cursor_t          cursor;
    ngx_http_mcp_stream_t    *stream;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = text;
    event.nparts = 1;
    event.flags = flags;
    event.level = level;

    ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    if (call->response != NGX_HTTP_MCP_CALL_STREAM) {

        if (call->batch || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {

            if (call->ctx->client->sessionless) {
                ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_EVENTS_UNSENT, 1);
                return NGX_OK;
            }

            return ngx_mcp_log_session(mlcf->zone, call->ctx->caller.session,
                                       &event);
        }

        if (call->left) {
            return NGX_OK;
        }

        ngx_http_mcp_call_open_stream(call);

        if (call->response != NGX_HTTP_MCP_CALL_STREAM) {
            ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_EVENTS_UNSENT, 1);
            return NGX_OK;
        }
    }

    stream = call->ctx->stream;

    ngx_memzero(&cursor, sizeof(ngx_mcp_cursor_t));

    if (call->ctx->client->sessionless) {

        if (stream) {
            ngx_http_mcp_call_large(call, text, &cursor, flags);
        }

        return NGX_OK;
    }

    if (flags & NGX_MCP_EVENT_RESPONSE && call->answerer->closing) {
        call->answerer->closing(call);
    }

    rc = ngx_mcp_log_call(mlcf->zone, call->record.ref, &event, &cursor);

    if (flags & NGX_MCP_EVENT_RESPONSE && rc != NGX_DECLINED) {
        call->registered = 0;
    }

    if (stream == NULL
        || (rc == NGX_DECLINED && !(flags & NGX_MCP_EVENT_RESPONSE)))
    {
        return rc;
    }

    if (rc != NGX_OK) {
        ngx_http_mcp_call_large(call, text, &cursor, flags);
        return rc;
    }

    if (ngx_http_mcp_stream_behind(stream, &cursor, text->len)) {
        ngx_http_mcp_call_room(call, 0);
    }

    if (flags & NGX_MCP_EVENT_RESPONSE) {
        ngx_http_mcp_stream_answer(stream, text);
    }

    return NGX_OK;
}


/* queues a message that the log does not keep, behind those in the log */

static void
ngx_http_mcp_call_large(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_mcp_cursor_t *place, ngx_uint_t flags)
{
    ngx_int_t              rc;
    ngx_http_mcp_large_t  *large, **last;

    if (call->large == NULL) {
        rc = ngx_http_mcp_stream_send(call->ctx->stream, place, text,
                                      &call->memory, flags);

        if (rc != NGX_AGAIN) {
            return;
        }

        ngx_http_mcp_call_room(call, 0);
    }

    /* the memory is not of r->pool, which is freed only with the request */

    large = ngx_alloc(sizeof(ngx_http_mcp_large_t), call->r->connection->log);
    if (large == NULL) {
        return;
    }

    large->text = *text;
    large->memory = call->memory;

    if (large->memory.start) {
        call->memory.start = NULL;

    } else if (ngx_http_mcp_call_copy_large(call, large) != NGX_OK) {
        ngx_free(large);
        return;
    }

    large->place = *place;
    large->flags = flags;
    large->next = NULL;

    for (last = &call->large; *last; last = &(*last)->next) { /* void */ }

    *last = large;
}


static ngx_int_t
ngx_http_mcp_call_copy_large(ngx_http_mcp_call_t *call,
    ngx_http_mcp_large_t *large)
{
    u_char  *p;
    size_t   size;

    size = NGX_MCP_SSE_FRONT + large->text.len + NGX_MCP_SSE_BEHIND;

    p = ngx_alloc(size, call->r->connection->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    large->memory.start = p;
    large->memory.end = p + size;

    p += NGX_MCP_SSE_FRONT;

    ngx_memcpy(p, large->text.data, large->text.len);
    large->text.data = p;

    return NGX_OK;
}


static void
ngx_http_mcp_call_send_large(ngx_http_mcp_call_t *call)
{
    ngx_int_t              rc;
    ngx_http_mcp_large_t  *large;

    while (call->large) {
        large = call->large;

        rc = ngx_http_mcp_stream_send(call->ctx->stream, &large->place,
                                      &large->text, &large->memory,
                                      large->flags);

        if (rc == NGX_AGAIN) {

            ngx_http_mcp_call_room(call, 0);
            return;
        }

        ngx_http_mcp_call_free_first(call);
    }
}


static void
ngx_http_mcp_call_free_large(ngx_http_mcp_call_t *call)
{
    while (call->large) {
        ngx_http_mcp_call_free_first(call);
    }
}


static void
ngx_http_mcp_call_free_first(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_large_t  *large;

    large = call->large;
    call->large = large->next;

    if (large->memory.start) {
        ngx_free(large->memory.start);
    }

    ngx_free(large);
}


static void
ngx_http_mcp_call_room(ngx_http_mcp_call_t *call, ngx_uint_t room)
{
    if (call->answerer->room) {
        call->answerer->room(call, room);
    }
}


static ngx_uint_t
ngx_http_mcp_call_may_stream(ngx_http_mcp_call_t *call)
{
    return call->state == NGX_HTTP_MCP_CALL_RUNNING
           && call->response == NGX_HTTP_MCP_CALL_UNSENT
           && call->batch == NULL && !call->left
           && call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE;
}


void
ngx_http_mcp_call_open_stream(ngx_http_mcp_call_t *call)
{
    ngx_int_t            rc;
    ngx_http_mcp_ctx_t  *ctx;

    if (!ngx_http_mcp_call_may_stream(call)) {
        return;
    }

    ctx = call->ctx;

    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    call->response = NGX_HTTP_MCP_CALL_STREAM;
    ctx->responded = 1;
    ctx->response = 2;

    if (call->answerer->headers) {
        (void) call->answerer->headers(call);
    }

    call->owner.closed = ngx_http_mcp_call_stream_closed;
    call->owner.room = ngx_http_mcp_call_stream_room;
    call->owner.data = call;

    rc = ngx_http_mcp_stream_open(call->r, call->record.channel, NULL, 0,
                                  &call->owner);

    if (rc != NGX_OK && !call->r->header_sent) {
        /* there is no room for a stream: the client gets only the answer */

        call->response = NGX_HTTP_MCP_CALL_UNSENT;
        ctx->responded = 0;
        ctx->response = 0;

        return;
    }

    if (!ctx->client->sessionless) {
        ngx_mcp_call_mark(ctx->conf->zone, call->record.ref,
                          NGX_MCP_CALL_STREAMED);
    }

    if (rc != NGX_OK) {
        /* messages are put on the line, from which the client can resume */

        ngx_http_mcp_call_write_failed(call);
    }
}


static void
ngx_http_mcp_call_stream_closed(void *data)
{
    ngx_http_mcp_call_t *call = data;

    ngx_connection_t  *c;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, call->r->connection->log, 0,
                   "mcp stream of a call closed, state %ui", call->state);

    c = call->r->connection;

    call->left = 1;
    call->ctx->stream = NULL;

    ngx_http_mcp_call_free_large(call);

    if (call->state == NGX_HTTP_MCP_CALL_DONE) {
        ngx_http_finalize_request(call->r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        ngx_http_run_posted_requests(c);
        return;
    }

    ngx_http_mcp_call_room(call, 1);
    ngx_http_mcp_call_without_client(call);
}


static void
ngx_http_mcp_call_stream_room(void *data)
{
    ngx_http_mcp_call_t *call = data;

    ngx_http_mcp_call_send_large(call);

    if (call->large == NULL && call->state != NGX_HTTP_MCP_CALL_DONE) {
        ngx_http_mcp_call_room(call, 1);
    }
}


ngx_uint_t
ngx_http_mcp_call_test_client(ngx_http_request_t *r)
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

    /* nothing is written any more; c->error would end the exchange */

    c->error = 0;

    r->keepalive = 0;
    r->read_event_handler = ngx_http_block_reading;

    return 1;
}


void
ngx_http_mcp_call_write_failed(ngx_http_mcp_call_t *call)
{
    /* c->error would end the exchange with the upstream */

    call->r->connection->error = 0;
    call->left = 1;

    /* the caller still uses the call, which must not end at once */

    if (call->answerer->cancel) {
        ngx_http_mcp_call_without_client(call);
    }
}


void
ngx_http_mcp_call_client_left(ngx_http_mcp_call_t *call)
{
    call->left = 1;

    if (call->answerer->unresumable) {
        ngx_http_mcp_call_abort(call, NGX_HTTP_MCP_CALL_LEFT);
        return;
    }

    ngx_http_mcp_call_room(call, 1);
    ngx_http_mcp_call_without_client(call);
}


/* the client left: cancels the call, or with a session, lets the call run on */

static void
ngx_http_mcp_call_without_client(ngx_http_mcp_call_t *call)
{
    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        return;
    }

    if (!call->ctx->client->sessionless) {
        ngx_http_mcp_call_keep_running(call);
        return;
    }

    ngx_mcp_count(call->ctx->conf->zone, NGX_MCP_COUNTER_CALLS_CANCELLED, 1);
    ngx_http_mcp_call_abort(call, NGX_HTTP_MCP_CALL_LEFT);
}


/*
 * Lets a call whose client has left run on.  If too many such calls run, the
 * oldest call with the same key whose client has not come back is cancelled.
 * It may be this call, which may be freed then.
 */

static void
ngx_http_mcp_call_keep_running(ngx_http_mcp_call_t *call)
{
    ngx_uint_t             i, n, max, limit;
    ngx_http_mcp_call_t   *oldest;
    ngx_http_mcp_calls_t  *calls;

    if (call->kept_queue.next) {
        return;
    }

    calls = &ngx_http_mcp_calls;

    call->kept_key = ngx_http_mcp_call_kept_key(call);

    if (calls->nkept == 0) {
        ngx_queue_init(&calls->kept);
    }

    ngx_queue_insert_tail(&calls->kept, &call->kept_queue);
    calls->nkept++;

    max = ngx_max(ngx_cycle->connection_n / NGX_HTTP_MCP_KEPT_SHARE, 1);
    limit = ngx_min(call->ctx->conf->call_limit, ngx_max(max / 2, 1));

    for (i = 0; i < NGX_HTTP_MCP_KEPT_READ; i++) {

        oldest = ngx_http_mcp_call_kept_oldest(call, &n);

        if (n <= limit && calls->nkept <= max) {
            return;
        }

        if (!ngx_mcp_call_has_stream(oldest->ctx->conf->zone,
                                     oldest->record.ref))
        {
            ngx_http_mcp_call_abandon(oldest);
            return;
        }

        /* the client came back: its call moves to the end of the queue */

        ngx_queue_remove(&oldest->kept_queue);
        ngx_queue_insert_tail(&calls->kept, &oldest->kept_queue);
    }
}


/*
 * Returns the key of those kept calls that are limited together: a hash of the
 * tenant, or else of the identity, or else of the client's share
 */

static uint64_t
ngx_http_mcp_call_kept_key(ngx_http_mcp_call_t *call)
{
    ngx_str_t           *key;
    ngx_uint_t           kind;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = call->ctx;

    if (ctx->caller.tenant.len) {
        key = &ctx->caller.tenant;
        kind = 0;

    } else if (ctx->caller.identity.len) {
        key = &ctx->caller.identity;
        kind = 1;

    } else {
        key = &ctx->caller.share;
        kind = 2;

        if (ngx_http_mcp_evaluate_share(call->r, ctx) != NGX_OK) {

            /* all calls with an unknown share are counted together */

            ngx_str_null(key);
        }
    }

    return ((uint64_t) ngx_murmur_hash2(key->data, key->len) << 32)
           ^ ((uint64_t) ngx_crc32_long(key->data, key->len) << 2) ^ kind;
}


/* returns the oldest kept call with the key of "call"; *n: number of these */

static ngx_http_mcp_call_t *
ngx_http_mcp_call_kept_oldest(ngx_http_mcp_call_t *call, ngx_uint_t *n)
{
    ngx_queue_t          *q;
    ngx_http_mcp_call_t  *c, *oldest;

    *n = 0;
    oldest = NULL;

    for (q = ngx_queue_head(&ngx_http_mcp_calls.kept);
         q != ngx_queue_sentinel(&ngx_http_mcp_calls.kept);
         q = ngx_queue_next(q))
    {
        c = ngx_queue_data(q, ngx_http_mcp_call_t, kept_queue);

        if (c->kept_key == call->kept_key) {
            (*n)++;

            if (oldest == NULL) {
                oldest = c;
            }
        }
    }

    return oldest;
}


static void
ngx_http_mcp_call_kept_remove(ngx_http_mcp_call_t *call)
{
    if (call->kept_queue.next) {
        ngx_queue_remove(&call->kept_queue);
        call->kept_queue.next = NULL;
        ngx_http_mcp_calls.nkept--;
    }
}


/* cancels the call, which may be freed then */

static void
ngx_http_mcp_call_abandon(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_call_kept_remove(call);

    call->r->connection->log->action = NULL;

    ngx_log_error(NGX_LOG_WARN, call->r->connection->log, 0,
                  "mcp request %V is cancelled: its client left, and too many "
                  "requests of clients that left are running; the limits are "
                  "\"mcp_call_limit\" and a sixteenth of "
                  "\"worker_connections\" for each tenant, or client without "
                  "one, and an eighth of \"worker_connections\" for all",
                  &call->message->id);

    ngx_mcp_count(call->ctx->conf->zone, NGX_MCP_COUNTER_CALLS_ABANDONED, 1);

    ngx_http_mcp_call_abort(call, NGX_HTTP_MCP_CALL_ABANDONED);
}
