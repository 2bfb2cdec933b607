
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"


#define NGX_HTTP_MCP_RESUMES         16

/* ms */
#define NGX_HTTP_MCP_RESUME          1000
#define NGX_HTTP_MCP_RESUME_MAX      30000
#define NGX_HTTP_MCP_TALK_WAIT       3600000

/* ms; for an exchange that may make a session, when nobody waits any more */
#define NGX_HTTP_MCP_TALK_LEAVE      3000


typedef enum {
    ngx_http_mcp_talk_find_out = 0,
    ngx_http_mcp_talk_open,
    ngx_http_mcp_talk_send,
    ngx_http_mcp_talk_resume
} ngx_http_mcp_talk_step_e;


/* of the exchanges, those with the message, not with the rest of its answer */

#define ngx_http_mcp_talk_sends(t)                                            \
    ((t)->step == ngx_http_mcp_talk_send || (t)->listen)


static ngx_int_t ngx_http_mcp_talk_step(ngx_http_mcp_talk_t *t);
static ngx_int_t ngx_http_mcp_talk_know(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_talk_ready(void *data);
static void ngx_http_mcp_talk_late(void *data);
static ngx_int_t ngx_http_mcp_talk_exchange(ngx_http_mcp_talk_t *t,
    ngx_str_t *body);
static void ngx_http_mcp_talk_header(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_talk_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_talk_no_id(ngx_mcp_json_t *json);
static ngx_int_t ngx_http_mcp_talk_piece(ngx_http_mcp_exchange_t *x,
    ngx_chain_t *in, ngx_uint_t last);
static void ngx_http_mcp_talk_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static ngx_uint_t ngx_http_mcp_talk_heal(ngx_http_mcp_talk_t *t);
static ngx_uint_t ngx_http_mcp_talk_resumes(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_talk_event(ngx_event_t *ev);
static void ngx_http_mcp_talk_left(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_talk_gone(void *data);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_talk_handlers = {
    ngx_http_mcp_talk_header,
    ngx_http_mcp_talk_message,
    NULL,
    ngx_http_mcp_talk_done
};

static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_talk_piece_handlers = {
    ngx_http_mcp_talk_header,
    ngx_http_mcp_talk_message,
    ngx_http_mcp_talk_piece,
    ngx_http_mcp_talk_done
};


ngx_http_mcp_talk_t *
ngx_http_mcp_talk_create(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_request_t   *r;
    ngx_http_mcp_talk_t  *t;

    r = ngx_http_mcp_background_open(u->conf_ctx, audience, headers);
    if (r == NULL) {
        return NULL;
    }

    t = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_talk_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (t == NULL || cln == NULL
        || ngx_http_mcp_string_copy(r->pool, &t->tenant, &audience->tenant)
           != NGX_OK)
    {
        ngx_http_mcp_background_close(r);
        return NULL;
    }

    t->r = r;
    t->upstream = u;

    cln->handler = ngx_http_mcp_talk_gone;
    cln->data = t;

    return t;
}


ngx_int_t
ngx_http_mcp_talk_run(ngx_http_mcp_talk_t *t)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    rc = ngx_http_mcp_talk_start(t);

    if (rc == NGX_OK) {
        c = t->r->connection;
        ngx_http_run_posted_requests(c);
    }

    return rc;
}


/* the request goes */

static void
ngx_http_mcp_talk_gone(void *data)
{
    ngx_http_mcp_talk_t *t = data;

    ngx_http_mcp_talk_cleanup(t);

    if (!t->closed && t->gone) {
        t->gone(t);
    }
}


ngx_int_t
ngx_http_mcp_talk_start(ngx_http_mcp_talk_t *t)
{
    ngx_int_t  rc;

    t->event.data = t;
    t->event.handler = ngx_http_mcp_talk_event;
    t->event.log = t->r->connection->log;
    t->event.cancelable = ngx_http_mcp_background(t->r);

    t->waiter.ready = ngx_http_mcp_talk_ready;
    t->waiter.late = ngx_http_mcp_talk_late;
    t->waiter.data = t;
    t->waiter.cancelable = t->event.cancelable;

    t->ends = 0;
    t->step = ngx_http_mcp_talk_find_out;

    rc = ngx_http_mcp_talk_step(t);

    if (rc != NGX_OK) {
        ngx_http_mcp_talk_cleanup(t);
    }

    return rc;
}


void
ngx_http_mcp_talk_next(ngx_http_mcp_talk_t *t)
{
    if (ngx_http_mcp_talk_step(t) != NGX_OK) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_BAD);
    }
}


/* goes on from t->step; NGX_OK, NGX_DECLINED or NGX_ERROR as talk_start() */

static ngx_int_t
ngx_http_mcp_talk_step(ngx_http_mcp_talk_t *t)
{
    ngx_int_t  rc;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, t->r->connection->log, 0,
                   "mcp talk with \"%V\": step %ui",
                   &t->upstream->name, t->step);

    if (t->step == ngx_http_mcp_talk_find_out) {

        rc = ngx_http_mcp_talk_know(t);

        if (rc != NGX_OK) {
            return rc == NGX_AGAIN ? NGX_OK : rc;
        }

        t->step = ngx_http_mcp_talk_open;
    }

    if (t->step == ngx_http_mcp_talk_open) {

        rc = t->manner->open(t);

        if (rc != NGX_OK) {
            return rc == NGX_AGAIN ? NGX_OK : rc;
        }

        t->step = t->listen ? ngx_http_mcp_talk_resume
                            : ngx_http_mcp_talk_send;
    }

    if (t->step == ngx_http_mcp_talk_resume) {
        return ngx_http_mcp_talk_exchange(t, NULL);
    }

    if (t->aborted) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_ABORTED);
        return NGX_OK;
    }

    return ngx_http_mcp_talk_exchange(t, &t->body);
}


/* NGX_OK: the manner is known; NGX_AGAIN: waits, or has failed */

static ngx_int_t
ngx_http_mcp_talk_know(ngx_http_mcp_talk_t *t)
{
    ngx_int_t                 rc;
    ngx_mcp_knowledge_t       known;
    ngx_http_mcp_upstream_t  *u;

    u = t->upstream;

    t->manner = ngx_http_mcp_manner(u, &t->tenant);

    if (t->manner == NULL) {

        rc = ngx_http_mcp_profile(u, &t->tenant, NGX_MCP_KNOWLEDGE_ANY,
                                  t->r->pool, &known);

        if (rc == NGX_AGAIN) {
            ngx_http_mcp_talk_wait(t, NGX_HTTP_MCP_WAIT_PROFILE);
            return NGX_AGAIN;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        t->manner = ngx_http_mcp_manner_of(known.what);

        if (t->manner == NULL) {
            t->status = known.status;
            t->why = known.why;

            ngx_http_mcp_talk_end(t, NGX_HTTP_MCP_UNREACHABLE);
            return NGX_AGAIN;
        }
    }

    t->sessionless = !t->manner->sessions;

    return NGX_OK;
}


ngx_http_mcp_manner_t *
ngx_http_mcp_manner(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_uint_t  kind;

    switch (u->protocol) {

    case NGX_HTTP_MCP_RPC:
        return &ngx_http_mcp_rpc;

    case NGX_HTTP_MCP_LEGACY:
        return &ngx_http_mcp_legacy;

    case NGX_HTTP_MCP_EVENTS:
        return &ngx_http_mcp_events;

    default: /* NGX_HTTP_MCP_AUTO */
        kind = ngx_http_mcp_profile_kind(u, tenant);

        /* of one that refused to tell, the zone may know more by now */

        return (kind == NGX_MCP_KNOWN_REFUSED) ? NULL
                                               : ngx_http_mcp_manner_of(kind);
    }
}


ngx_http_mcp_manner_t *
ngx_http_mcp_manner_of(ngx_uint_t kind)
{
    switch (kind) {

    case NGX_MCP_KNOWN_RPC:
        return &ngx_http_mcp_rpc;

    case NGX_MCP_KNOWN_LEGACY:
    case NGX_MCP_KNOWN_REFUSED:
        return &ngx_http_mcp_legacy;

    default:
        return NULL;
    }
}


ngx_uint_t
ngx_http_mcp_sessionless(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_http_mcp_manner_t  *manner;

    manner = ngx_http_mcp_manner(u, tenant);

    return manner && !manner->sessions;
}


ngx_uint_t
ngx_http_mcp_talk_absent(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    return outcome == NGX_HTTP_MCP_STATUS && t->manner->absent
           && t->manner->absent(t->x->status);
}


ngx_http_mcp_manner_t *
ngx_http_mcp_manner_first(ngx_http_mcp_upstream_t *u)
{
    return (u->protocol == NGX_HTTP_MCP_RPC) ? &ngx_http_mcp_rpc
                                             : &ngx_http_mcp_legacy;
}


ngx_http_mcp_manner_t *
ngx_http_mcp_manner_next(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_manner_t *manner)
{
    return (u->protocol == NGX_HTTP_MCP_AUTO && manner == &ngx_http_mcp_legacy)
           ? &ngx_http_mcp_rpc : NULL;
}


/* for what another may do, in another worker: this one must not exit */

void
ngx_http_mcp_talk_wait(ngx_http_mcp_talk_t *t, ngx_uint_t kind)
{
    ngx_http_mcp_upstream_t  *u;

    u = t->upstream;

    /* calls are woken one by one */

    t->waiter.hash = (kind == NGX_HTTP_MCP_WAIT_SESSION) ? t->call.block : 0;

    ngx_http_mcp_waiter_start(&t->waiter, u->zone, kind,
                              u->total ? u->total : NGX_HTTP_MCP_TALK_WAIT);
}


void
ngx_http_mcp_talk_doorbell(ngx_mcp_zone_t *zone)
{
    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_SESSION, 0);
}


void
ngx_http_mcp_talk_pause(ngx_http_mcp_talk_t *t, ngx_msec_t time)
{
    ngx_add_timer(&t->event, time);
}


void
ngx_http_mcp_talk_end(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome)
{
    t->ends = 1;
    t->outcome = outcome;

    if (t->event.timer_set) {
        ngx_del_timer(&t->event);
    }

    ngx_add_timer(&t->event, 0);
}


void
ngx_http_mcp_talk_wake(ngx_http_mcp_talk_t *t)
{
    if (t->step != ngx_http_mcp_talk_open || t->aborted
        || !(ngx_http_mcp_waiter_waits(&t->waiter) || t->event.timer_set))
    {
        return;
    }

    ngx_http_mcp_waiter_stop(&t->waiter);

    if (t->event.timer_set) {
        ngx_del_timer(&t->event);
    }

    ngx_http_mcp_talk_ready(t);
}


static void
ngx_http_mcp_talk_ready(void *data)
{
    ngx_http_mcp_talk_t *t = data;

    ngx_connection_t  *c;

    c = t->r->connection;

    ngx_http_mcp_talk_next(t);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_talk_late(void *data)
{
    ngx_http_mcp_talk_t *t = data;

    ngx_connection_t  *c;

    c = t->r->connection;

    ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_TIMEOUT);
    ngx_http_run_posted_requests(c);
}


/* sends the message, or asks for a stream if body is NULL */

static ngx_int_t
ngx_http_mcp_talk_exchange(ngx_http_mcp_talk_t *t, ngx_str_t *body)
{
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_upstream_exchange(t->r, t->upstream, &t->scope);
    if (x == NULL) {
        return NGX_ERROR;
    }

    x->data = t;
    x->client_headers = 1;
    x->handlers = t->piece ? &ngx_http_mcp_talk_piece_handlers
                           : &ngx_http_mcp_talk_handlers;

    if (body == NULL) {
        x->method = NGX_HTTP_GET;
        x->last_event_id = t->last_event_id;

    } else if (ngx_http_mcp_upstream_body(x, body) != NGX_OK) {
        return NGX_ERROR;
    }

    if (t->manner->head) {
        t->manner->head(t, x);
    }

    if (t->patient) {
        x->timeout = t->upstream->silence;
    }

    if (t->listen) {
        x->timeout = 0;
        x->total = 0;

        if (t->asked) {
            t->asked(t);
        }
    }

    t->x = x;
    t->forgotten = 0;

    return ngx_http_mcp_exchange_start(x);
}


static void
ngx_http_mcp_talk_header(ngx_http_mcp_exchange_t *x)
{
    ngx_http_mcp_talk_t  *t;

    t = x->data;

    if (t->closed || !ngx_http_mcp_talk_sends(t)) {
        return;
    }

    if (!t->healed && t->manner->lost(t, x->status) == NGX_HTTP_MCP_LOST) {
        t->forgotten = 1;
        return;
    }

    if (t->streams && x->status < NGX_HTTP_SPECIAL_RESPONSE
        && (x->body == NGX_HTTP_MCP_BODY_SSE
            || x->body == NGX_HTTP_MCP_BODY_LINES))
    {
        t->streams(t);
    }
}


static void
ngx_http_mcp_talk_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_http_mcp_talk_t  *t;

    t = x->data;

    if (t->closed) {
        return;
    }

    if (ngx_http_mcp_talk_sends(t) && !t->healed && !t->heard
        && t->manner->lost(t, x->status) != NGX_HTTP_MCP_KEPT
        && ngx_http_mcp_talk_no_id(&x->scan))
    {
        /* refused by the transport, and not by what the message was for */

        t->forgotten = 1;
    }

    if (t->forgotten) {
        return;
    }

    t->heard = 1;
    t->message(t, text);

    if (t->answered) {
        ngx_http_mcp_exchange_answered(x);
    }
}


static ngx_uint_t
ngx_http_mcp_talk_no_id(ngx_mcp_json_t *json)
{
    return json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT
           && json->members[NGX_MCP_PATH_ID].type != NGX_MCP_JSON_NUMBER
           && json->members[NGX_MCP_PATH_ID].type != NGX_MCP_JSON_STRING;
}


static ngx_int_t
ngx_http_mcp_talk_piece(ngx_http_mcp_exchange_t *x, ngx_chain_t *in,
    ngx_uint_t last)
{
    ngx_chain_t          *cl;
    ngx_http_mcp_talk_t  *t;

    t = x->data;

    if (t->closed || t->forgotten) {

        for (cl = in; cl; cl = cl->next) {
            cl->buf->pos = cl->buf->last;
        }

        return NGX_OK;
    }

    t->heard = 1;

    return t->piece(t, in, last);
}


static void
ngx_http_mcp_talk_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_talk_t  *t;

    t = x->data;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, x->r->connection->log, 0,
                   "mcp talk with \"%V\": step %ui ended with %ui, status %ui",
                   &t->upstream->name, t->step, (ngx_uint_t) outcome,
                   x->status);

    if (t->closed) {
        ngx_http_mcp_talk_left(t);
        return;
    }

    if (ngx_http_mcp_talk_heal(t)) {
        ngx_http_mcp_talk_next(t);
        return;
    }

    if (outcome == NGX_HTTP_MCP_UNREACHABLE && t->manner->probe) {
        ngx_http_mcp_profile_stale(t->upstream, &t->tenant, t->r->pool);
    }

    if (!ngx_http_mcp_talk_resumes(t, outcome)) {
        ngx_http_mcp_talk_fail(t, outcome);
    }
}


/* whether the message is sent again, because it cannot have run */

static ngx_uint_t
ngx_http_mcp_talk_heal(ngx_http_mcp_talk_t *t)
{
    if (t->aborted || t->existing || t->healed
        || !ngx_http_mcp_talk_sends(t))
    {
        return 0;
    }

    if (!t->forgotten
        && (t->heard || t->manner->lost(t, t->x->status)
                        != NGX_HTTP_MCP_LOST_UNHEARD))
    {
        return 0;
    }

    t->manner->heal(t);

    t->healed = 1;
    t->step = ngx_http_mcp_talk_find_out;

    return 1;
}


/* an upstream may end a stream early, and go on when it is resumed */

static ngx_uint_t
ngx_http_mcp_talk_resumes(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_msec_t      delay;
    ngx_mcp_sse_t  *sse;

    sse = t->x->sse;

    if (!t->manner->streams || t->answered || t->aborted || t->listen
        || sse == NULL || sse->id.len == 0
        || (outcome != NGX_HTTP_MCP_OK && outcome != NGX_HTTP_MCP_CUT)
        || t->resumes++ == NGX_HTTP_MCP_RESUMES
        || ngx_http_mcp_string_copy(t->r->pool, &t->last_event_id, &sse->id)
           != NGX_OK)
    {
        return 0;
    }

    delay = sse->retry;

    if (delay == NGX_CONF_UNSET_MSEC) {
        delay = NGX_HTTP_MCP_RESUME;
    }

    t->step = ngx_http_mcp_talk_resume;

    ngx_http_mcp_talk_pause(t, ngx_min(delay, NGX_HTTP_MCP_RESUME_MAX));

    if (t->paused) {
        t->paused(t);
    }

    return 1;
}


/* the end, for whatever reason, of one that has started */

void
ngx_http_mcp_talk_fail(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_talk_cleanup(t);

    t->done(t, outcome);
}


void
ngx_http_mcp_talk_abort(ngx_http_mcp_talk_t *t)
{
    t->aborted = 1;

    if (ngx_http_mcp_waiter_waits(&t->waiter) || t->event.timer_set) {
        ngx_http_mcp_waiter_stop(&t->waiter);
        ngx_http_mcp_talk_end(t, NGX_HTTP_MCP_ABORTED);
        return;
    }

    if (t->x) {
        ngx_http_mcp_exchange_abort(t->x);
    }
}


ngx_uint_t
ngx_http_mcp_talk_over(ngx_http_mcp_talk_t *t)
{
    if (t->closed) {
        ngx_http_mcp_talk_left(t);
        return 1;
    }

    if (t->aborted) {

        /* half a session is ended; a request that waits for it makes one */

        (void) t->manner->end(t);

        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_ABORTED);
        return 1;
    }

    return 0;
}


static void
ngx_http_mcp_talk_event(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_mcp_talk_t  *t;

    t = ev->data;
    c = t->r->connection;

    if (t->closed) {
        ngx_http_mcp_talk_left(t);
        return;
    }

    if (t->ends) {
        ngx_http_mcp_talk_fail(t, t->outcome);

    } else {
        ngx_http_mcp_talk_next(t);
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_http_mcp_talk_cleanup(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_waiter_stop(&t->waiter);

    if (t->event.timer_set) {
        ngx_del_timer(&t->event);
    }

    if (t->manner && t->manner->release) {
        t->manner->release(t);
    }
}


void
ngx_http_mcp_talk_leave(ngx_http_mcp_talk_t *t)
{
    ngx_int_t  rc;

    t->closed = 1;

    rc = (t->manner && t->manner->end) ? t->manner->end(t) : NGX_OK;

    ngx_http_mcp_talk_cleanup(t);

    if (rc == NGX_AGAIN) {
        t->leaving = 1;

        ngx_http_mcp_background_stay(t->r);
        ngx_http_mcp_talk_pause(t, NGX_HTTP_MCP_TALK_LEAVE);

        return;
    }

    ngx_http_mcp_background_close(t->r);
}


/* the exchange that may have made a session has ended, or takes too long */

static void
ngx_http_mcp_talk_left(ngx_http_mcp_talk_t *t)
{
    if (t->leaving) {
        t->leaving = 0;

        (void) t->manner->end(t);

        ngx_http_mcp_background_close(t->r);
    }
}
