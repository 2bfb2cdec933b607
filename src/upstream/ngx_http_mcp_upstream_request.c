
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_input.h"
#include "ngx_http_mcp_upstream_message.h"


/* times that the stream of one request is resumed, at most */
#define NGX_HTTP_MCP_RESUMES         16

/*
 * ms; default and longest pause before a stream is resumed; longest wait for
 * another request
 */
#define NGX_HTTP_MCP_RESUME                 1000
#define NGX_HTTP_MCP_RESUME_MAX             30000
#define NGX_HTTP_MCP_UPSTREAM_REQUEST_WAIT  3600000

/* ms; longest wait of a closed request for the answer to its initialize */
#define NGX_HTTP_MCP_UPSTREAM_REQUEST_CLOSE  3000


typedef enum {
    ngx_http_mcp_upstream_request_profile = 0,
    ngx_http_mcp_upstream_request_open,
    ngx_http_mcp_upstream_request_send,
    ngx_http_mcp_upstream_request_resume
} ngx_http_mcp_upstream_request_step_e;


/* whether the exchange sends the message or opens a stream, not resumes one */

#define ngx_http_mcp_upstream_request_sends(ureq)                             \
    ((ureq)->step == ngx_http_mcp_upstream_request_send || (ureq)->get_stream)


static ngx_int_t ngx_http_mcp_upstream_request_step(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_upstream_request_try(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_upstream_request_get_profile(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_upstream_request_continue(void *data);
static void ngx_http_mcp_upstream_request_timeout(void *data);
static ngx_int_t ngx_http_mcp_upstream_request_exchange(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *body);
static ngx_int_t ngx_http_mcp_upstream_request_ping(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_upstream_request_header(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_upstream_request_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_upstream_request_lost(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_uint_t ngx_http_mcp_upstream_request_forgot(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_upstream_request_no_id(ngx_mcp_json_t *json);
static ngx_int_t ngx_http_mcp_upstream_request_piece(ngx_http_mcp_exchange_t *x,
    ngx_chain_t *in, ngx_uint_t last);
static void ngx_http_mcp_upstream_request_skipped(ngx_http_mcp_exchange_t *x,
    ngx_uint_t n);
static void ngx_http_mcp_upstream_request_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static ngx_uint_t ngx_http_mcp_upstream_request_heal(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_uint_t ngx_http_mcp_upstream_request_resumes(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e *outcome);
static void ngx_http_mcp_upstream_request_event(ngx_event_t *ev);
static void ngx_http_mcp_upstream_request_closed(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_upstream_request_destroyed(void *data);


static ngx_http_mcp_exchange_handlers_t
    ngx_http_mcp_upstream_request_handlers = {
    .header = ngx_http_mcp_upstream_request_header,
    .message = ngx_http_mcp_upstream_request_message,
    .skipped = ngx_http_mcp_upstream_request_skipped,
    .done = ngx_http_mcp_upstream_request_done
};

static ngx_http_mcp_exchange_handlers_t
    ngx_http_mcp_upstream_request_piece_handlers = {
    .header = ngx_http_mcp_upstream_request_header,
    .message = ngx_http_mcp_upstream_request_message,
    .piece = ngx_http_mcp_upstream_request_piece,
    .done = ngx_http_mcp_upstream_request_done
};


ngx_http_mcp_upstream_request_t *
ngx_http_mcp_upstream_request_create(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers)
{
    ngx_pool_cleanup_t               *cln;
    ngx_http_request_t               *r;
    ngx_http_mcp_upstream_request_t  *ureq;

    r = ngx_http_mcp_background_open(u->conf_ctx, audience, headers);
    if (r == NULL) {
        return NULL;
    }

    ureq = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_upstream_request_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (ureq == NULL || cln == NULL
        || ngx_http_mcp_string_copy(r->pool, &ureq->tenant, &audience->tenant)
           != NGX_OK
        || ngx_http_mcp_string_copy(r->pool, &ureq->capabilities,
                                    &audience->capabilities)
           != NGX_OK)
    {
        ngx_http_mcp_background_close(r);
        return NULL;
    }

    ureq->r = r;
    ureq->upstream = u;

    cln->handler = ngx_http_mcp_upstream_request_destroyed;
    cln->data = ureq;

    return ureq;
}


ngx_int_t
ngx_http_mcp_upstream_request_compose(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *id, ngx_str_t *method, ngx_str_t *params)
{
    ngx_pool_t  *pool;

    pool = ureq->r->pool;

    ureq->body = ngx_mcp_request_compose(pool, id, method, params);

    if (ureq->body.data == NULL
        || ngx_http_mcp_string_copy(pool, &ureq->scope.method, method)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_string_copy(pool, &ureq->scope.request_id, id);
}


ngx_int_t
ngx_http_mcp_upstream_request_run(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    rc = ngx_http_mcp_upstream_request_start(ureq);

    if (rc == NGX_OK) {
        c = ureq->r->connection;
        ngx_http_run_posted_requests(c);
    }

    return rc;
}


/* nginx frees ureq->r */

static void
ngx_http_mcp_upstream_request_destroyed(void *data)
{
    ngx_http_mcp_upstream_request_t *ureq = data;

    ngx_http_mcp_upstream_request_cleanup(ureq);

    if (!ureq->closed && ureq->destroyed) {
        ureq->destroyed(ureq);
    }
}


ngx_int_t
ngx_http_mcp_upstream_request_start(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t  rc;

    ureq->event.data = ureq;
    ureq->event.handler = ngx_http_mcp_upstream_request_event;
    ureq->event.log = ureq->r->connection->log;
    ureq->event.cancelable = ngx_http_mcp_is_background(ureq->r);

    ureq->waiter.ready = ngx_http_mcp_upstream_request_continue;
    ureq->waiter.late = ngx_http_mcp_upstream_request_timeout;
    ureq->waiter.data = ureq;
    ureq->waiter.cancelable = ureq->event.cancelable;

    ureq->end_posted = 0;
    ureq->step = ngx_http_mcp_upstream_request_profile;

    rc = ngx_http_mcp_upstream_request_step(ureq);

    if (rc != NGX_OK) {
        ngx_http_mcp_upstream_request_cleanup(ureq);
    }

    return rc;
}


void
ngx_http_mcp_upstream_request_next(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ngx_http_mcp_upstream_request_step(ureq) != NGX_OK) {
        ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_BAD);
    }
}


/* continues from ureq->step; returns as ..._start() does */

static ngx_int_t
ngx_http_mcp_upstream_request_step(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_upstream_request_try(ureq);

    if (rc == NGX_ERROR && ureq->scope.dots) {

        ureq->status = NGX_HTTP_BAD_REQUEST;
        ngx_str_set(&ureq->why, NGX_HTTP_MCP_DOTS);

        ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_UNREACHABLE);
        return NGX_OK;
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_upstream_request_try(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t  rc;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ureq->r->connection->log, 0,
                   "mcp request to \"%V\": step %ui",
                   &ureq->upstream->name, ureq->step);

    if (ureq->step == ngx_http_mcp_upstream_request_profile) {

        rc = ngx_http_mcp_upstream_request_get_profile(ureq);

        if (rc != NGX_OK) {
            return rc == NGX_AGAIN ? NGX_OK : rc;
        }

        ureq->step = ngx_http_mcp_upstream_request_open;
    }

    if (ureq->step == ngx_http_mcp_upstream_request_open) {

        rc = ureq->manner->open ? ureq->manner->open(ureq) : NGX_OK;

        if (rc != NGX_OK) {
            return rc == NGX_AGAIN ? NGX_OK : rc;
        }

        ureq->step = ureq->get_stream ? ngx_http_mcp_upstream_request_resume
                            : ngx_http_mcp_upstream_request_send;
    }

    if (ureq->step == ngx_http_mcp_upstream_request_resume) {
        return ngx_http_mcp_upstream_request_exchange(ureq, NULL);
    }

    if (ureq->aborted) {
        ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_ABORTED);
        return NGX_OK;
    }

    return ngx_http_mcp_upstream_request_exchange(ureq, &ureq->body);
}


/*
 * Finds the manner.  NGX_OK; NGX_AGAIN: the request waits for the profile, or
 * has failed; NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_upstream_request_get_profile(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                 rc;
    ngx_mcp_profile_t         profile;
    ngx_http_mcp_health_t    *health;
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;

    ureq->manner = ngx_http_mcp_manner(u, &ureq->tenant, ureq->stateful);

    if (ureq->manner == NULL) {

        rc = ngx_http_mcp_profile(u, &ureq->tenant, NGX_MCP_PROFILE_ANY_AGE,
                                  ureq->r->pool, &profile);

        if (rc == NGX_AGAIN) {
            ngx_http_mcp_upstream_request_wait(ureq, NGX_HTTP_MCP_WAIT_PROFILE,
                                               profile.hash);
            return NGX_AGAIN;
        }

        if (rc != NGX_OK) {
            ureq->scope.dots = (rc == NGX_DECLINED);
            return NGX_ERROR;
        }

        ureq->manner = ngx_http_mcp_manner_of(profile.what, profile.revision,
                                              ureq->stateful);

        if (ureq->manner == NULL) {
            ureq->status = profile.status;
            ureq->why = profile.why;

            ngx_http_mcp_upstream_request_post_end(ureq,
                                                   NGX_HTTP_MCP_UNREACHABLE);
            return NGX_AGAIN;
        }
    }

    health = ngx_http_mcp_upstream_health(u, &ureq->tenant);

    ureq->sessionless = !ureq->manner->sessions;
    ureq->unsure = health->away || health->silent;

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_upstream_request_refused(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t status)
{
    return (status == NGX_HTTP_BAD_REQUEST
            && ureq->upstream->protocol == NGX_HTTP_MCP_AUTO)
           ? NGX_HTTP_MCP_LOST_UNANSWERED : NGX_HTTP_MCP_KEPT;
}


ngx_uint_t
ngx_http_mcp_upstream_request_absent(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    return outcome == NGX_HTTP_MCP_STATUS && ureq->manner->absent
           && ngx_http_mcp_status_absent(ureq->x->status);
}


void
ngx_http_mcp_upstream_request_wait(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t kind, uint32_t hash)
{
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;

    ureq->waiter.hash = hash;

    ngx_http_mcp_waiter_start(&ureq->waiter, u->zone, kind,
                              u->total ? u->total
                                       : NGX_HTTP_MCP_UPSTREAM_REQUEST_WAIT);
}


void
ngx_http_mcp_upstream_request_doorbell(ngx_mcp_zone_t *zone, uint64_t keys)
{
    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_SESSION, keys);
}


void
ngx_http_mcp_upstream_request_post_end(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ureq->end_posted = 1;
    ureq->outcome = outcome;

    if (ureq->event.timer_set) {
        ngx_del_timer(&ureq->event);
    }

    ngx_add_timer(&ureq->event, 0);
}


void
ngx_http_mcp_upstream_request_wake(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->step != ngx_http_mcp_upstream_request_open || ureq->aborted
        || !(ngx_http_mcp_waiter_waiting(&ureq->waiter)
             || ureq->event.timer_set))
    {
        return;
    }

    ngx_http_mcp_waiter_stop(&ureq->waiter);

    if (ureq->event.timer_set) {
        ngx_del_timer(&ureq->event);
    }

    ngx_http_mcp_upstream_request_continue(ureq);
}


static void
ngx_http_mcp_upstream_request_continue(void *data)
{
    ngx_http_mcp_upstream_request_t *ureq = data;

    ngx_connection_t  *c;

    c = ureq->r->connection;

    ngx_http_mcp_upstream_request_next(ureq);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_upstream_request_timeout(void *data)
{
    ngx_http_mcp_upstream_request_t *ureq = data;

    ngx_connection_t  *c;

    c = ureq->r->connection;

    ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_TIMEOUT);
    ngx_http_run_posted_requests(c);
}


void
ngx_http_mcp_upstream_request_later(ngx_http_mcp_upstream_request_t *ureq,
    ngx_msec_t time)
{
    ngx_add_timer(&ureq->event, time);
}


void
ngx_http_mcp_upstream_request_reopen(ngx_http_mcp_upstream_request_t *ureq)
{
    ureq->step = ngx_http_mcp_upstream_request_open;
    ngx_add_timer(&ureq->event, 0);
}


void
ngx_http_mcp_upstream_request_renew(ngx_http_mcp_upstream_request_t *ureq)
{
    ureq->step = ngx_http_mcp_upstream_request_profile;
    ngx_add_timer(&ureq->event, 0);
}


void
ngx_http_mcp_upstream_request_answered(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->asking) {
        ureq->asking = 0;
        ngx_add_timer(&ureq->event, 0);
    }
}


/* sends the message, or, if body is NULL, requests a stream */

static ngx_int_t
ngx_http_mcp_upstream_request_exchange(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *body)
{
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_upstream_exchange(ureq->r, ureq->upstream, &ureq->scope);
    if (x == NULL) {
        return NGX_ERROR;
    }

    x->data = ureq;
    x->client_headers = 1;
    x->handlers = (ureq->piece
                   && (ureq->manner->message == NULL
                       || ureq->manner->sessions))
                  ? &ngx_http_mcp_upstream_request_piece_handlers
                  : &ngx_http_mcp_upstream_request_handlers;

    if (body == NULL) {
        x->method = NGX_HTTP_GET;
        x->last_event_id = ureq->last_event_id;

        if (!ureq->get_stream) {
            x->spent = ngx_current_msec - ureq->sent;
        }

    } else {
        ureq->sent = ngx_current_msec;

        if (ngx_http_mcp_upstream_body(x, body) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ureq->manner->head && ureq->manner->head(ureq, x) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ureq->client_waits) {
        x->timeout = ureq->upstream->silence;
    }

    if (ureq->get_stream) {
        x->timeout = 0;
        x->total = 0;
        x->skips = 1;

        if (ureq->before_open) {
            ureq->before_open(ureq);
        }
    }

    ureq->x = x;
    ureq->lost = 0;

    return ngx_http_mcp_exchange_start(x);
}


/*
 * The status of the answer to GET may mean a lost session, or only that the
 * upstream has no streams.  Sends a ping in the session to find out which.
 * NGX_OK or NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_upstream_request_ping(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_str_t                 params, body;
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;

    scope = ngx_pcalloc(ureq->r->pool, sizeof(ngx_http_mcp_scope_t));

    if (scope == NULL
        || ngx_http_mcp_own_id_make(ureq->r->pool, &scope->request_id)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_set(&scope->method, "ping");

    ngx_str_null(&params);

    body = ngx_mcp_request_compose(ureq->r->pool, &scope->request_id,
                                   &scope->method, &params);
    if (body.data == NULL) {
        return NGX_ERROR;
    }

    x = ngx_http_mcp_upstream_exchange(ureq->r, ureq->upstream, scope);

    if (x == NULL
        || ngx_http_mcp_upstream_body(x, &body) != NGX_OK
        || (ureq->manner->head && ureq->manner->head(ureq, x) != NGX_OK))
    {
        return NGX_ERROR;
    }

    x->data = ureq;
    x->client_headers = 1;
    x->handlers = &ngx_http_mcp_upstream_request_handlers;

    ngx_http_mcp_exchange_limit_time(x, NGX_HTTP_MCP_INITIALIZE_TIME);

    ureq->get = ureq->x;
    ureq->x = x;
    ureq->lost = 0;
    ureq->examined = 0;

    return ngx_http_mcp_exchange_start(x);
}


static void
ngx_http_mcp_upstream_request_header(ngx_http_mcp_exchange_t *x)
{
    ngx_http_mcp_health_t            *health;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;

    if (ureq->closed || !ngx_http_mcp_upstream_request_sends(ureq)) {
        return;
    }

    if (ureq->manner->probe && x->status < NGX_HTTP_INTERNAL_SERVER_ERROR) {

        health = ngx_http_mcp_upstream_health(ureq->upstream, &ureq->tenant);

        if (health->away || health->silent) {
            ngx_http_mcp_profile_back(ureq->upstream, &ureq->tenant,
                                      ureq->r->pool);
        }
    }

    if (!ureq->healed
        && ngx_http_mcp_upstream_request_lost(ureq) == NGX_HTTP_MCP_LOST)
    {
        ureq->lost = 1;
        return;
    }

    if (ureq->stream_opened && !ureq->manner->filters && ureq->get == NULL
        && x->status < NGX_HTTP_SPECIAL_RESPONSE
        && (x->body == NGX_HTTP_MCP_BODY_SSE
            || x->body == NGX_HTTP_MCP_BODY_LINES))
    {
        ureq->stream_opened(ureq);
    }
}


static void
ngx_http_mcp_upstream_request_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;

    if (ureq->closed) {
        return;
    }

    if (ngx_http_mcp_upstream_request_sends(ureq) && !ureq->healed
        && !ureq->received && !ureq->examined)
    {
        ureq->examined = 1;

        /*
         * The first message may be an error of the transport about the session
         * or the revision.
         */

        ureq->newer = ureq->upstream->protocol == NGX_HTTP_MCP_AUTO
                      && ureq->manner->sessions
                      && ngx_http_mcp_upstream_message_newer(x, text);

        ureq->lost = ureq->newer
                     || (ngx_http_mcp_upstream_request_lost(ureq)
                         != NGX_HTTP_MCP_KEPT
                         && ngx_http_mcp_upstream_request_no_id(x->scan))
                     || ngx_http_mcp_upstream_request_forgot(ureq, text);
    }

    if (ureq->lost || ureq->get) {
        ngx_http_mcp_exchange_answered(x);
        return;
    }

    ureq->received = 1;

    if ((ureq->manner->message == NULL
         || ureq->manner->message(ureq, text) == NGX_OK)
        && ureq->message)
    {
        ureq->message(ureq, text);
    }

    if (ureq->answered) {
        ngx_http_mcp_exchange_answered(x);
    }
}


/* whether the status means a lost session: ngx_http_mcp_lost_e */

static ngx_uint_t
ngx_http_mcp_upstream_request_lost(ngx_http_mcp_upstream_request_t *ureq)
{
    return ureq->manner->lost ? ureq->manner->lost(ureq, ureq->x->status)
                              : NGX_HTTP_MCP_KEPT;
}


/* whether the message, or the body if text is NULL, reports a lost session */

static ngx_uint_t
ngx_http_mcp_upstream_request_forgot(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    return !ureq->existing && ureq->manner->forgot
           && ureq->manner->forgot(ureq, text);
}


/* whether the message is an error without an id */

static ngx_uint_t
ngx_http_mcp_upstream_request_no_id(ngx_mcp_json_t *json)
{
    return json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT
           && json->members[NGX_MCP_PATH_ID].type != NGX_MCP_JSON_NUMBER
           && json->members[NGX_MCP_PATH_ID].type != NGX_MCP_JSON_STRING;
}


static ngx_int_t
ngx_http_mcp_upstream_request_piece(ngx_http_mcp_exchange_t *x, ngx_chain_t *in,
    ngx_uint_t last)
{
    ngx_chain_t                      *cl;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;

    if (ureq->closed || ureq->lost) {

        for (cl = in; cl; cl = cl->next) {
            cl->buf->pos = cl->buf->last;
        }

        return NGX_OK;
    }

    ureq->received = 1;

    return ureq->piece(ureq, in, last);
}


ngx_int_t
ngx_http_mcp_upstream_request_gathered(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    return (ureq->manner->message == NULL
            || ureq->manner->message(ureq, text) == NGX_OK)
           ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_mcp_upstream_request_skipped(ngx_http_mcp_exchange_t *x, ngx_uint_t n)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;

    if (!ureq->closed && ureq->skipped) {
        ureq->skipped(ureq, n);
    }
}


static void
ngx_http_mcp_upstream_request_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, x->r->connection->log, 0,
                   "mcp request to \"%V\": step %ui ended with %ui, status %ui",
                   &ureq->upstream->name, ureq->step, (ngx_uint_t) outcome,
                   x->status);

    if (ureq->closed) {
        ngx_http_mcp_upstream_request_closed(ureq);
        return;
    }

    if (ureq->lost && !ureq->newer && !ureq->existing && !ureq->healed
        && ureq->get_stream && x->method == NGX_HTTP_GET
        && ngx_http_mcp_upstream_request_ping(ureq) == NGX_OK)
    {
        return;
    }

    if (ngx_http_mcp_upstream_request_heal(ureq)) {
        ureq->get = NULL;
        ngx_http_mcp_upstream_request_next(ureq);
        return;
    }

    if (outcome == NGX_HTTP_MCP_UNREACHABLE && ureq->manner->probe) {
        ngx_http_mcp_profile_away(ureq->upstream, &ureq->tenant,
                                  ureq->r->pool);
    }

    if (ureq->get) {

        /* the ping did not report a lost session: only the GET was refused */

        ureq->x = ureq->get;
        ureq->get = NULL;

        outcome = NGX_HTTP_MCP_STATUS;
    }

    if (ureq->manner->done
        && ureq->manner->done(ureq, outcome) == NGX_AGAIN)
    {
        return;
    }

    if (!ngx_http_mcp_upstream_request_resumes(ureq, &outcome)) {
        ngx_http_mcp_upstream_request_end(ureq, outcome);
    }
}


/* heals the request if its message cannot have run; returns whether it did */

static ngx_uint_t
ngx_http_mcp_upstream_request_heal(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->aborted || ureq->existing || ureq->healed
        || !ngx_http_mcp_upstream_request_sends(ureq))
    {
        return 0;
    }

    if (!ureq->lost
        && (ureq->received
            || (ngx_http_mcp_upstream_request_lost(ureq)
                != NGX_HTTP_MCP_LOST_UNANSWERED
                && !ngx_http_mcp_upstream_request_forgot(ureq, NULL))))
    {
        return 0;
    }

    ureq->manner->heal(ureq);

    ureq->healed = 1;
    ureq->step = ngx_http_mcp_upstream_request_profile;

    return 1;
}


/*
 * If the upstream ended the stream before the answer, arranges that the stream
 * is resumed.  Returns whether it is; sets *outcome if there is no time left.
 */

static ngx_uint_t
ngx_http_mcp_upstream_request_resumes(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e *outcome)
{
    ngx_msec_t      delay, total;
    ngx_mcp_sse_t  *sse;

    sse = ureq->x->sse;

    if (!ureq->manner->streams || ureq->answered || ureq->aborted
        || ureq->get_stream
        || sse == NULL || sse->id.len == 0
        || (*outcome != NGX_HTTP_MCP_OK && *outcome != NGX_HTTP_MCP_CUT)
        || ureq->resumes++ == NGX_HTTP_MCP_RESUMES
        || ngx_http_mcp_string_copy(ureq->r->pool, &ureq->last_event_id,
                                    &sse->id)
           != NGX_OK)
    {
        return 0;
    }

    delay = sse->retry;

    if (delay == NGX_CONF_UNSET_MSEC) {
        delay = NGX_HTTP_MCP_RESUME;
    }

    delay = ngx_min(delay, NGX_HTTP_MCP_RESUME_MAX);
    total = ureq->upstream->total;

    if (total && ngx_current_msec - ureq->sent + delay >= total) {

        ngx_log_error(NGX_LOG_ERR, ureq->r->connection->log, 0,
                      "mcp upstream \"%V\" did not finish within %Mms: it "
                      "ended its stream, which is to be resumed later",
                      &ureq->upstream->name, total);

        *outcome = NGX_HTTP_MCP_TIMEOUT;
        return 0;
    }

    ureq->step = ngx_http_mcp_upstream_request_resume;

    ngx_add_timer(&ureq->event, delay);

    if (ureq->interrupted) {
        ureq->interrupted(ureq);
    }

    return 1;
}


/* ends a request that has started, for any reason */

void
ngx_http_mcp_upstream_request_end(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_upstream_request_cleanup(ureq);

    ureq->done(ureq, outcome);
}


void
ngx_http_mcp_upstream_request_abort(ngx_http_mcp_upstream_request_t *ureq)
{
    ureq->aborted = 1;

    if (ngx_http_mcp_waiter_waiting(&ureq->waiter) || ureq->event.timer_set
        || ureq->asking)
    {
        ureq->asking = 0;

        ngx_http_mcp_waiter_stop(&ureq->waiter);
        ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_ABORTED);
        return;
    }

    if (ureq->x) {
        ngx_http_mcp_exchange_abort(ureq->x);
    }
}


ngx_uint_t
ngx_http_mcp_upstream_request_stopped(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->closed) {
        ngx_http_mcp_upstream_request_closed(ureq);
        return 1;
    }

    if (ureq->aborted) {

        /* ends the unfinished session; a waiting request makes a new one */

        if (ureq->manner->end) {
            (void) ureq->manner->end(ureq);
        }

        ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_ABORTED);
        return 1;
    }

    return 0;
}


static void
ngx_http_mcp_upstream_request_event(ngx_event_t *ev)
{
    ngx_connection_t                 *c;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = ev->data;
    c = ureq->r->connection;

    if (ureq->closed) {
        ngx_http_mcp_upstream_request_closed(ureq);
        return;
    }

    if (ureq->end_posted) {
        ngx_http_mcp_upstream_request_end(ureq, ureq->outcome);

    } else {
        ngx_http_mcp_upstream_request_next(ureq);
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_http_mcp_upstream_request_cleanup(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_waiter_stop(&ureq->waiter);

    if (ureq->event.timer_set) {
        ngx_del_timer(&ureq->event);
    }

    if (ureq->extend && ureq->extend->timer_set) {
        ngx_del_timer(ureq->extend);
    }

    if (ureq->manner && ureq->manner->release) {
        ureq->manner->release(ureq);
    }
}


void
ngx_http_mcp_upstream_request_close(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t  rc;

    ureq->closed = 1;

    rc = (ureq->manner && ureq->manner->end) ? ureq->manner->end(ureq) : NGX_OK;

    ngx_http_mcp_upstream_request_cleanup(ureq);

    if (rc == NGX_AGAIN) {
        ureq->end_pending = 1;

        ngx_http_mcp_background_hold_worker(ureq->r);
        ngx_add_timer(&ureq->event, NGX_HTTP_MCP_UPSTREAM_REQUEST_CLOSE);

        return;
    }

    ngx_http_mcp_background_close(ureq->r);
}


/*
 * The exchange that may have made a session has ended or timed out: ends the
 * session and the background request.
 */

static void
ngx_http_mcp_upstream_request_closed(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->end_pending) {
        ureq->end_pending = 0;

        (void) ureq->manner->end(ureq);

        ngx_http_mcp_background_close(ureq->r);
    }
}
