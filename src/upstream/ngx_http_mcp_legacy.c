
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_legacy.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_pooled.h"
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_mcp_splice.h"


/* ms; the longest time of a DELETE that ends a session at an upstream */
#define NGX_HTTP_MCP_DELETE_TIME   5000

/* ms; the longest time for which a call without a session waits for setLevel */
#define NGX_HTTP_MCP_LEVEL_TIME    5000


/*
 * The longest text, in bytes, that is checked for saying that a session is
 * lost, and the longest result of ngx_http_mcp_legacy_words() for such a text.
 */
#define NGX_HTTP_MCP_LOST_TEXT   256
#define NGX_HTTP_MCP_LOST_WORDS  128


/* steps of a handshake, in their order */

typedef enum {
    ngx_http_mcp_legacy_initialize = 0,
    ngx_http_mcp_legacy_initialized,
    ngx_http_mcp_legacy_level,
    ngx_http_mcp_legacy_subscribe
} ngx_http_mcp_legacy_e;


/* a session that is being made */

struct ngx_http_mcp_handshake_s {
    ngx_uint_t                 step;
    ngx_str_t                  id;
    ngx_uint_t                 revision;
    ngx_uint_t                 level;
    ngx_uint_t                 sub;          /* number of resources to which the
                                                session was subscribed again */
    ngx_http_mcp_scope_t       scope;
    unsigned                   claimed:1;    /* this request makes the session,
                                                and others wait for it */
    unsigned                   level_only:1;  /* the session exists, and only
                                                 its log level is set */
    unsigned                   level_accepted:1;  /* the upstream has set the
                                                     level */
    unsigned                   level_unsupported:1;  /* the upstream has no
                                                        logging/setLevel */
    unsigned                   initialized:1;  /* the answer to initialize was
                                                  received */
    unsigned                   newer:1;      /* the upstream wants a newer
                                                revision */
    unsigned                   unresponsive:1;  /* the upstream did not
                                                   answer: no further requests
                                                   are sent */
};


static ngx_int_t ngx_http_mcp_legacy_open(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_legacy_handshake(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_legacy_handshake_step(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_legacy_session_made(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_legacy_next_subscription(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *uri);
static ngx_int_t ngx_http_mcp_legacy_handshake_send(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *params);
static ngx_int_t ngx_http_mcp_legacy_set_level(
    ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t set);
static ngx_int_t ngx_http_mcp_legacy_level_done(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_legacy_header(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_legacy_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_legacy_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static ngx_int_t ngx_http_mcp_legacy_initialize_done(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e *outcome);
static void ngx_http_mcp_legacy_log_single(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_legacy_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x);
static ngx_int_t ngx_http_mcp_legacy_translate(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_legacy_lost(
    ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t status);
static ngx_uint_t ngx_http_mcp_legacy_forgot(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_legacy_forgot_words(ngx_str_t *text,
    ngx_str_t *id);
static size_t ngx_http_mcp_legacy_words(u_char *dst, ngx_str_t *text,
    ngx_str_t *id);
static void ngx_http_mcp_legacy_heal(ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_legacy_release(ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_legacy_end(ngx_http_mcp_upstream_request_t *ureq);
static ngx_uint_t ngx_http_mcp_legacy_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome,
    ngx_uint_t changed);
static ngx_int_t ngx_http_mcp_legacy_client_probe(ngx_http_mcp_exchange_t *x,
    ngx_mcp_message_t *message);
static ngx_int_t ngx_http_mcp_legacy_probe(ngx_http_mcp_probe_t *probe);
static void ngx_http_mcp_legacy_probe_result(ngx_http_mcp_probe_t *probe,
    ngx_str_t *result, ngx_uint_t revision);
static void ngx_http_mcp_legacy_probed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_upstream_session_deleted(void *data);


/* the manner of MCP servers with sessions, which a handshake makes */

ngx_http_mcp_manner_t  ngx_http_mcp_legacy = {
    .protocol = NGX_HTTP_MCP_LEGACY,
    .kind = NGX_MCP_PROFILE_LEGACY,
    .streams = 1,
    .sessions = 1,
    .updates = 1,
    .open = ngx_http_mcp_legacy_open,
    .head = ngx_http_mcp_legacy_head,
    .message = ngx_http_mcp_legacy_translate,
    .lost = ngx_http_mcp_legacy_lost,
    .forgot = ngx_http_mcp_legacy_forgot,
    .heal = ngx_http_mcp_legacy_heal,
    .release = ngx_http_mcp_legacy_release,
    .end = ngx_http_mcp_legacy_end,
    .refused = ngx_http_mcp_legacy_refused,
    .client_probe = ngx_http_mcp_legacy_client_probe,
    .probe = ngx_http_mcp_legacy_probe,
    .probe_result = ngx_http_mcp_legacy_probe_result,
    .probed = ngx_http_mcp_legacy_probed
};


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_legacy_handlers = {
    .header = ngx_http_mcp_legacy_header,
    .message = ngx_http_mcp_legacy_message,
    .done = ngx_http_mcp_legacy_done
};


static ngx_str_t  ngx_http_mcp_legacy_methods[] = {
    ngx_string("initialize"),
    ngx_string("notifications/initialized"),
    ngx_string("logging/setLevel"),
    ngx_string("resources/subscribe")
};


/* finds the upstream session, waits for it, or begins to make it */

static ngx_int_t
ngx_http_mcp_legacy_open(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                 rc;
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;

    if (ureq->us == NULL) {
        ureq->us = ngx_pcalloc(ureq->r->pool,
                               sizeof(ngx_mcp_upstream_session_t));
        if (ureq->us == NULL) {
            return NGX_ERROR;
        }
    }

    if (!ureq->existing && ngx_http_mcp_is_pooled(ureq)) {
        rc = ngx_http_mcp_pooled_open(ureq);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    for ( ;; ) {

        if (ureq->existing) {
            rc = ngx_mcp_upstream_session_peek(u->zone, ureq->owner, &u->name,
                                               ureq->us);

            if (rc != NGX_OK
                || (ureq->serial && ureq->serial != ureq->us->serial)) {
                return NGX_DECLINED;
            }

        } else {
            rc = ngx_mcp_upstream_session_get(u->zone, ureq->owner, &u->name,
                                              ureq->call, ureq->us);
        }

        switch (rc) {

        case NGX_OK:
            rc = ngx_mcp_upstream_session_id(u->zone, ureq->r->pool, ureq->us);

            if (rc == NGX_OK && ureq->principal && !ureq->level_refused
                && ngx_mcp_level_lowers(ureq->level, ureq->us->level))
            {
                rc = ngx_http_mcp_legacy_set_level(ureq, NGX_MCP_LEVEL_UNSET);
            }

            if (rc == NGX_OK && ureq->ready) {
                return ureq->ready(ureq);
            }

            if (rc != NGX_DECLINED) {
                return rc;
            }

            /* another request has changed the session in the meantime */

            break;

        case NGX_DECLINED:
            return ngx_http_mcp_legacy_handshake(ureq);

        case NGX_AGAIN:

            ngx_http_mcp_upstream_request_wait(ureq, NGX_HTTP_MCP_WAIT_SESSION,
                                               ureq->us->ref.block);

            return NGX_AGAIN;

        default:
            return NGX_ERROR;
        }
    }
}


/* begins the handshake by which this request makes the session */

static ngx_int_t
ngx_http_mcp_legacy_handshake(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t  rc;

    ureq->handshake = ngx_pcalloc(ureq->r->pool,
                                  sizeof(ngx_http_mcp_handshake_t));

    if (ureq->handshake == NULL) {
        ngx_mcp_upstream_session_fail(ureq->upstream->zone, ureq->us->ref);
        return NGX_ERROR;
    }

    ureq->handshake->claimed = 1;

    rc = ngx_http_mcp_legacy_handshake_step(ureq);

    return rc == NGX_OK ? NGX_AGAIN : NGX_ERROR;
}


/*
 * Does the current step of the handshake.  NGX_OK: an exchange was started;
 * NGX_DONE: the session is made; NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_legacy_handshake_step(ngx_http_mcp_upstream_request_t *ureq)
{
    u_char                    *p;
    ngx_str_t                  params, *level;
    ngx_http_mcp_handshake_t  *hs;

    hs = ureq->handshake;

    ngx_memzero(&hs->scope, sizeof(ngx_http_mcp_scope_t));
    ngx_str_null(&params);

    switch (hs->step) {

    case ngx_http_mcp_legacy_initialize:

        if (ngx_mcp_upstream_session_params(ureq->upstream->zone, ureq->us->ref,
                                            ureq->r->pool, &params, &hs->level)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (params.len == 0) {
            params = ngx_http_mcp_own_initialize(ureq->r->pool,
                                                 &ureq->capabilities);
            if (params.data == NULL) {
                return NGX_ERROR;
            }
        }

        break;

    case ngx_http_mcp_legacy_initialized:
        break;

    case ngx_http_mcp_legacy_level:

        level = (ureq->principal && !hs->level_only)
                ? NULL : ngx_mcp_level_name(hs->level);

        if (level) {
            p = ngx_pnalloc(ureq->r->pool,
                            sizeof("{\"level\":\"\"}") + level->len);
            if (p == NULL) {
                return NGX_ERROR;
            }

            params.data = p;
            params.len = ngx_sprintf(p, "{\"level\":\"%V\"}", level) - p;

            break;
        }

        hs->step = ngx_http_mcp_legacy_subscribe;

        /* fall through */

    default: /* ngx_http_mcp_legacy_subscribe */

        if (ngx_http_mcp_legacy_next_subscription(ureq,
                                                  &hs->scope.name) != NGX_OK) {
            return ngx_http_mcp_legacy_session_made(ureq);
        }

        params = ngx_mcp_uri_compose(ureq->r->pool, &hs->scope.name);

        if (params.data == NULL) {
            return NGX_ERROR;
        }
    }

    return ngx_http_mcp_legacy_handshake_send(ureq, &params);
}


static ngx_int_t
ngx_http_mcp_legacy_session_made(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                  rc;
    ngx_http_mcp_upstream_t   *u;
    ngx_http_mcp_handshake_t  *hs;

    hs = ureq->handshake;
    u = ureq->upstream;

    rc = ngx_mcp_upstream_session_made(u->zone, ureq->us->ref, &u->name,
                                       &hs->id, hs->revision,
                                       hs->unresponsive ? NULL : &hs->level);

    if (rc == NGX_AGAIN) {

        /* the client has set another level in the meantime */

        hs->step = ngx_http_mcp_legacy_level;

        return ngx_http_mcp_legacy_handshake_step(ureq);
    }

    hs->claimed = 0;

    if (rc != NGX_OK) {
        (void) ngx_http_mcp_legacy_end(ureq);
        return NGX_ERROR;
    }

    ureq->handshake = NULL;

    return NGX_DONE;
}


/* finds the next resource to which a new session has to be subscribed again */

static ngx_int_t
ngx_http_mcp_legacy_next_subscription(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *uri)
{
    if (ureq->handshake->unresponsive) {
        return NGX_DECLINED;
    }

    do {
        if (ngx_mcp_upstream_session_subscription(ureq->upstream->zone,
                                                  ureq->us->ref,
                                                  ureq->handshake->sub++,
                                                  ureq->r->pool, uri)
            != NGX_OK)
        {
            return NGX_DECLINED;
        }

        /* skips the resource to which the message itself subscribes */

    } while (ureq->session_only && ngx_mcp_equal(&ureq->scope.name, uri));

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_legacy_handshake_send(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *params)
{
    ngx_str_t                  body;
    ngx_http_mcp_exchange_t   *x;
    ngx_http_mcp_handshake_t  *hs;

    hs = ureq->handshake;

    hs->scope.method = ngx_http_mcp_legacy_methods[hs->step];

    if (hs->step != ngx_http_mcp_legacy_initialized
        && ngx_http_mcp_own_id_make(ureq->r->pool, &hs->scope.request_id)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    body = ngx_mcp_request_compose(ureq->r->pool, &hs->scope.request_id,
                                   &hs->scope.method, params);
    if (body.data == NULL) {
        return NGX_ERROR;
    }

    x = ngx_http_mcp_upstream_exchange(ureq->r, ureq->upstream, &hs->scope);
    ureq->scope.dots = hs->scope.dots;

    if (x == NULL || ngx_http_mcp_upstream_body(x, &body) != NGX_OK) {
        return NGX_ERROR;
    }

    x->data = ureq;
    x->client_headers = 1;
    x->handlers = &ngx_http_mcp_legacy_handlers;

    if (hs->step == ngx_http_mcp_legacy_initialize) {
        ngx_http_mcp_exchange_limit_time(x, NGX_HTTP_MCP_INITIALIZE_TIME);

    } else {
        ngx_http_mcp_upstream_in_session(x, &hs->id, hs->revision);
    }

    if (hs->level_only) {
        ngx_http_mcp_exchange_limit_time(x, NGX_HTTP_MCP_LEVEL_TIME);
    }

    ureq->x = x;

    return ngx_http_mcp_exchange_start(x);
}


/*
 * Callers without a session share an upstream session, whose log level has to
 * be the lowest that any of them wants.  Sends this level if it is not set yet.
 * set: the level that this request has just set, or NGX_MCP_LEVEL_UNSET.
 * NGX_OK: the level is set; NGX_AGAIN: an exchange was started; NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_legacy_set_level(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t set)
{
    ngx_uint_t                 level;
    ngx_http_mcp_handshake_t  *hs;

    level = ureq->level;

    if (ngx_mcp_upstream_session_level(ureq->upstream->zone, ureq->us, set,
                                       &level)
        == NGX_OK)
    {
        ureq->handshake = NULL;
        return NGX_OK;
    }

    hs = ngx_pcalloc(ureq->r->pool, sizeof(ngx_http_mcp_handshake_t));
    if (hs == NULL) {
        return NGX_ERROR;
    }

    hs->step = ngx_http_mcp_legacy_level;
    hs->id = ureq->us->id;
    hs->revision = ureq->us->revision;
    hs->level = level;
    hs->level_only = 1;

    ureq->handshake = hs;

    return ngx_http_mcp_legacy_handshake_step(ureq) == NGX_OK ? NGX_AGAIN
                                                              : NGX_ERROR;
}


/* the exchange of logging/setLevel has ended; returns as the function above */

static ngx_int_t
ngx_http_mcp_legacy_level_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_uint_t                 never;
    ngx_http_mcp_handshake_t  *hs;

    hs = ureq->handshake;

    if (hs->level_accepted) {
        return ngx_http_mcp_legacy_set_level(ureq, hs->level);
    }

    /* later requests must not send the level, and wait, in vain again */

    never = (hs->level_unsupported || outcome == NGX_HTTP_MCP_TIMEOUT);

    ngx_mcp_upstream_session_level_refused(ureq->upstream->zone, ureq->us,
                                           hs->level, never);

    ureq->level_refused = 1;
    ureq->handshake = NULL;

    return NGX_OK;
}


static void
ngx_http_mcp_legacy_header(ngx_http_mcp_exchange_t *x)
{
    ngx_http_mcp_handshake_t         *hs;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;
    hs = ureq->handshake;

    if (hs && hs->step == ngx_http_mcp_legacy_initialize) {
        hs->id = x->session;
    }
}


static void
ngx_http_mcp_legacy_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t                         id, code, result, capabilities;
    ngx_http_mcp_handshake_t         *hs;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;
    hs = ureq->handshake;

    if (ureq->closed) {
        return;
    }

    if (hs->step == ngx_http_mcp_legacy_initialize) {

        if (ngx_http_mcp_initialize_answer(x, text, &hs->scope.request_id,
                                           &result, &hs->revision)
            == NGX_OK)
        {
            hs->initialized = 1;
            ngx_http_mcp_exchange_answered(x);

            capabilities = ngx_mcp_json_get(&result, "capabilities");

            if (ureq->principal
                && ngx_mcp_json_get(&capabilities, "logging").len == 0)
            {
                /* acts as if the lowest level were set, so that none is sent */

                hs->level = NGX_MCP_LEVEL_DEBUG;
            }

        } else {
            hs->newer |= ngx_http_mcp_upstream_message_newer(x, text);
        }

        return;
    }

    id = ngx_mcp_json_span(x->scan, NGX_MCP_PATH_ID, text->data);

    if (!ngx_mcp_json_same_id(&id, &hs->scope.request_id)) {
        return;
    }

    ngx_http_mcp_exchange_answered(x);

    code = ngx_mcp_json_span(x->scan, NGX_MCP_PATH_ERROR_CODE, text->data);

    hs->level_accepted = (x->scan->members[NGX_MCP_PATH_RESULT].count != 0);
    hs->level_unsupported = (ngx_mcp_error_code(&code)
                             == NGX_MCP_METHOD_NOT_FOUND);
}


static void
ngx_http_mcp_legacy_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_int_t                         rc;
    ngx_http_mcp_handshake_t         *hs;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, x->r->connection->log, 0,
                   "mcp session at \"%V\" is made: exchange ended with %ui, "
                   "status %ui", &ureq->upstream->name, (ngx_uint_t) outcome,
                   x->status);

    if (ngx_http_mcp_upstream_request_stopped(ureq)) {
        return;
    }

    hs = ureq->handshake;

    if (hs->level_only) {
        rc = ngx_http_mcp_legacy_level_done(ureq, outcome);

        if (rc == NGX_OK) {
            ngx_http_mcp_upstream_request_next(ureq);

        } else if (rc != NGX_AGAIN) {
            ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_BAD);
        }

        return;
    }

    if (outcome == NGX_HTTP_MCP_TIMEOUT || outcome == NGX_HTTP_MCP_UNREACHABLE)
    {
        /* each resources/subscribe could take as long, so none is sent */

        hs->unresponsive = 1;
    }

    switch (hs->step) {

    case ngx_http_mcp_legacy_initialize:

        if (ngx_http_mcp_legacy_initialize_done(ureq, &outcome) != NGX_OK) {

            if (hs->newer && !ureq->newer
                && ureq->upstream->protocol == NGX_HTTP_MCP_AUTO)
            {

                /*
                 * A server of another kind has replaced the upstream.
                 */

                ureq->newer = 1;

                ngx_http_mcp_legacy_release(ureq);
                ureq->handshake = NULL;

                ngx_http_mcp_upstream_request_renew(ureq);
                return;
            }

            ngx_http_mcp_upstream_request_end(ureq, outcome);
            return;
        }

        /* fall through */

    case ngx_http_mcp_legacy_initialized:
    case ngx_http_mcp_legacy_level:
        hs->step++;
        break;

    default: /* ngx_http_mcp_legacy_subscribe */
        break;
    }

    rc = ngx_http_mcp_legacy_handshake_step(ureq);

    if (rc == NGX_DONE) {
        ngx_http_mcp_upstream_request_next(ureq);

    } else if (rc != NGX_OK) {
        ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_BAD);
    }
}


/* the exchange with initialize has ended */

static ngx_int_t
ngx_http_mcp_legacy_initialize_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e *outcome)
{
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_upstream_t  *u;

    x = ureq->x;
    u = ureq->upstream;

    if (ureq->handshake->initialized) {

        if (ngx_http_mcp_upstream_session_id_fits(x)) {
            return NGX_OK;
        }

        (void) ngx_http_mcp_legacy_end(ureq);

        *outcome = NGX_HTTP_MCP_BAD;

        return NGX_ERROR;
    }

    if (*outcome == NGX_HTTP_MCP_OK) {
        ngx_log_error(NGX_LOG_ERR, ureq->r->connection->log, 0,
                      "mcp upstream \"%V\" did not answer initialize with a "
                      "result", &u->name);

        *outcome = NGX_HTTP_MCP_BAD;
    }

    if (x->status == NGX_HTTP_BAD_REQUEST || *outcome == NGX_HTTP_MCP_BAD
        || ngx_http_mcp_status_absent(x->status))
    {
        ngx_http_mcp_legacy_log_single(ureq);
        ngx_http_mcp_profile_reprobe(u, &ureq->tenant, NGX_MCP_2026_07_28,
                                     ureq->r->pool);
    }

    return NGX_ERROR;
}


/*
 * Logs that the upstream refused a client's initialize.  Some servers have only
 * one session, and the module's own initialize may have used it.
 */

static void
ngx_http_mcp_legacy_log_single(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_uint_t                level;
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;

    if (ureq->x->refusal.len == 0 || !u->probe
        || ngx_http_mcp_manner(u, &ureq->tenant, ureq->stateful)
           != &ngx_http_mcp_legacy)
    {
        return;
    }

    level = ngx_http_mcp_upstream_log_refusal(u) ? NGX_LOG_ERR : NGX_LOG_INFO;

    ngx_log_error(level, ureq->r->connection->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" answered the "
                  "module's own initialize, and refuses that of a client with "
                  "status %ui: %V; if it has a single session, add "
                  "\"probe=off listen=off\" to \"mcp_upstream\" and restart it",
                  &u->name, &u->endpoint, ureq->x->status, &ureq->x->quote);
}


static ngx_int_t
ngx_http_mcp_legacy_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x)
{
    ngx_str_t  body;

    ngx_http_mcp_upstream_in_session(x, &ureq->us->id, ureq->us->revision);

    if (ureq->sent_id.len && x->method == NGX_HTTP_POST) {

        body = ngx_http_mcp_pooled_body(ureq);

        if (body.data == NULL
            || ngx_http_mcp_upstream_body(x, &body) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (ureq->get_stream && ureq->serial != ureq->us->serial) {

        /* the event id belongs to another session */

        ngx_str_null(&x->last_event_id);
    }

    return NGX_OK;
}


/*
 * Translates a message of the upstream if callers without a session share the
 * upstream session.
 */

static ngx_int_t
ngx_http_mcp_legacy_translate(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    return ureq->sent_id.len ? ngx_http_mcp_pooled_message(ureq, text) : NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_legacy_lost(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t status)
{
    if (ureq->us->id.len == 0) {
        return NGX_HTTP_MCP_KEPT;
    }

    switch (status) {

    case NGX_HTTP_NOT_FOUND:
        return NGX_HTTP_MCP_LOST;

    case 410:

        /*
         * With Last-Event-ID, 410 may also mean that the upstream has dropped
         * the event with this id.
         */

        return ureq->x->last_event_id.len ? NGX_HTTP_MCP_KEPT
                                          : NGX_HTTP_MCP_LOST;

    case NGX_HTTP_BAD_REQUEST:

        /* some servers answer 400 when they have lost the session */

        return NGX_HTTP_MCP_LOST_REFUSED;

    default:
        return NGX_HTTP_MCP_KEPT;
    }
}


/*
 * Many servers report a lost session by an error or a plain text, with another
 * status than 404, even with 200.  An error of a tool may be about sessions of
 * the tool, so only codes and phrases that transports use count.
 */

static ngx_uint_t
ngx_http_mcp_legacy_forgot(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    u_char                    buf[NGX_HTTP_MCP_LOST_TEXT];
    ngx_int_t                 code;
    ngx_str_t                 value, error, message;
    ngx_mcp_json_t           *json;
    ngx_http_mcp_exchange_t  *x;

    x = ureq->x;

    if (ureq->us->id.len == 0 || x->method != NGX_HTTP_POST) {
        return 0;
    }

    if (text == NULL) {
        return (x->status == NGX_HTTP_BAD_REQUEST
                || x->status == NGX_HTTP_UNAUTHORIZED)
               && ngx_http_mcp_legacy_forgot_words(&x->quote, &ureq->us->id);
    }

    json = x->scan;

    if (json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_OBJECT
        || json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_ABSENT)
    {
        return 0;
    }

    value = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

    code = ngx_mcp_error_code(&value);

    if (code != NGX_MCP_REFUSED && code != NGX_MCP_SESSION_NOT_FOUND
        && code != NGX_MCP_INVALID_REQUEST)
    {
        return 0;
    }

    error = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);
    value = ngx_mcp_json_get(&error, "message");

    if (value.len == 0 || value.data[0] != '"'
        || value.len > NGX_HTTP_MCP_LOST_TEXT)
    {
        return 0;
    }

    message.data = buf;
    message.len = ngx_mcp_json_unescape(buf, &value) - buf;

    return ngx_http_mcp_legacy_forgot_words(&message, &ureq->us->id);
}


static ngx_uint_t
ngx_http_mcp_legacy_forgot_words(ngx_str_t *text, ngx_str_t *id)
{
    u_char      buf[NGX_HTTP_MCP_LOST_WORDS];
    ngx_str_t   words, *s;

    static ngx_str_t  statuses[] = {
        ngx_string("bad request "),
        ngx_string("error "),
        ngx_string("invalid request "),
        ngx_string("not found "),
        ngx_string("unauthorized "),
        ngx_null_string
    };

    static ngx_str_t  phrases[] = {
        ngx_string("session not found"),
        ngx_string("no valid session"),
        ngx_string("no valid session provided"),
        ngx_string("no valid session provided for non initialize request"),
        ngx_string("invalid session"),
        ngx_string("invalid or expired session"),
        ngx_string("invalid or missing session"),
        ngx_string("unknown session"),
        ngx_string("session does not exist"),
        ngx_string("session expired"),
        ngx_string("session has expired"),
        ngx_string("session terminated"),
        ngx_string("session has been terminated"),
        ngx_null_string
    };

    words.data = buf;
    words.len = ngx_http_mcp_legacy_words(buf, text, id);

    for (s = statuses; s->len; s++) {

        if (words.len > s->len
            && ngx_memcmp(words.data, s->data, s->len) == 0)
        {
            words.data += s->len;
            words.len -= s->len;
            break;
        }
    }

    for (s = phrases; s->len; s++) {

        if (ngx_mcp_equal(&words, s)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Writes the words of the text in lower case, separated by single spaces, but
 * not the session id and words such as "id".  Returns the length; 0: the result
 * would be too long.
 */

static size_t
ngx_http_mcp_legacy_words(u_char *dst, ngx_str_t *text, ngx_str_t *id)
{
    u_char     *p, *d, *last, *end;
    ngx_str_t   word, *s;

    static ngx_str_t  ignored[] = {
        ngx_string("id"),
        ngx_string("mcp"),
        ngx_string("header"),
        ngx_null_string
    };

    d = dst;
    end = dst + NGX_HTTP_MCP_LOST_WORDS;

    p = text->data;
    last = p + text->len;

    while (p < last) {

        if ((size_t) (last - p) >= id->len
            && ngx_memcmp(p, id->data, id->len) == 0)
        {
            p += id->len;
            continue;
        }

        word.data = d;

        while (p < last && d < end
               && ((*p >= '0' && *p <= '9') || *p >= 0x80
                   || (ngx_tolower(*p) >= 'a' && ngx_tolower(*p) <= 'z')))
        {
            *d++ = ngx_tolower(*p);
            p++;
        }

        if (d == end) {
            return 0;
        }

        word.len = d - word.data;

        if (word.len == 0) {
            p++;
            continue;
        }

        *d++ = ' ';

        for (s = ignored; s->len; s++) {

            if (ngx_mcp_equal(&word, s)) {
                d = word.data;
                break;
            }
        }
    }

    return d > dst ? d - dst - 1 : 0;
}


static void
ngx_http_mcp_legacy_heal(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;

    ngx_log_error(NGX_LOG_NOTICE, ureq->r->connection->log, 0,
                  "mcp upstream \"%V\" lost a session; the module creates a "
                  "new one", &u->name);

    ngx_mcp_upstream_session_forget(u->zone, ureq->us->ref, ureq->us->serial);

    ureq->level_refused = 0;

    if (ureq->newer) {
        ngx_http_mcp_profile_reprobe(u, &ureq->tenant, NGX_MCP_2026_07_28,
                                     ureq->r->pool);
        return;
    }

    ngx_http_mcp_profile_stale(u, &ureq->tenant, ureq->r->pool);
}


static void
ngx_http_mcp_legacy_release(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->handshake && ureq->handshake->claimed) {
        ureq->handshake->claimed = 0;
        ngx_mcp_upstream_session_fail(ureq->upstream->zone, ureq->us->ref);
    }
}


static ngx_int_t
ngx_http_mcp_legacy_end(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_str_t                  none;
    ngx_http_mcp_handshake_t  *hs;

    hs = ureq->handshake;

    if (hs == NULL || hs->level_only) {
        return NGX_OK;
    }

    if (hs->claimed && !hs->initialized && ureq->x && ureq->x->status == 0) {

        /*
         * The response to initialize, whose header has the session id, may
         * still come.
         */

        return NGX_AGAIN;
    }

    ngx_http_mcp_legacy_release(ureq);

    ureq->handshake = NULL;

    ngx_str_null(&none);
    ngx_http_mcp_upstream_session_delete(ureq->upstream, ureq->r, &ureq->tenant,
                                         &none, &hs->id, hs->revision);

    return NGX_OK;
}


/*
 * An upstream answers GET with 405 if it offers no stream, with 409 if it has
 * not yet noticed that the last stream ended, and with 400 or the like if it
 * does not know the event id.
 */

static ngx_uint_t
ngx_http_mcp_legacy_refused(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome, ngx_uint_t changed)
{
    ngx_uint_t  status;

    status = ureq->x->status;

    if (outcome != NGX_HTTP_MCP_STATUS && outcome != NGX_HTTP_MCP_OK) {
        return NGX_HTTP_MCP_RETRY;
    }

    if (status == NGX_HTTP_NOT_ALLOWED) {
        return NGX_HTTP_MCP_NO_STREAM;
    }

    if (status == NGX_HTTP_CONFLICT) {
        return NGX_HTTP_MCP_CONFLICT;
    }

    if (status < NGX_HTTP_INTERNAL_SERVER_ERROR && changed) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" answered GET with status %ui%s; the "
                      "module asks again; an upstream that offers no stream "
                      "should answer 405", &ureq->upstream->name, status,
                      outcome == NGX_HTTP_MCP_OK ? " and no stream" : "");
    }

    return ngx_http_mcp_status_no_event(status) ? NGX_HTTP_MCP_NO_EVENT
                                                : NGX_HTTP_MCP_RETRY;
}


/*
 * Sends the client's initialize, or one that is made from server/discover.  In
 * the latter case the caller ends the session at the upstream after the answer.
 */

static ngx_int_t
ngx_http_mcp_legacy_client_probe(ngx_http_mcp_exchange_t *x,
    ngx_mcp_message_t *message)
{
    ngx_str_t  params, body, none;

    if (message->method_code == NGX_MCP_METHOD_INITIALIZE) {
        return ngx_http_mcp_upstream_body(x, &message->text);
    }

    ngx_str_set(&none, "");

    params = ngx_http_mcp_own_initialize(x->r->pool, &none);

    if (params.data == NULL) {
        return NGX_ERROR;
    }

    body = ngx_mcp_request_compose(x->r->pool, &message->id,
                 &ngx_http_mcp_legacy_methods[ngx_http_mcp_legacy_initialize],
                 &params);

    return body.data ? ngx_http_mcp_upstream_body(x, &body) : NGX_ERROR;
}


/* sends initialize; probed() ends the session that it makes */

static ngx_int_t
ngx_http_mcp_legacy_probe(ngx_http_mcp_probe_t *probe)
{
    ngx_str_t  params, none;

    ngx_str_set(&none, "");

    params = ngx_http_mcp_own_initialize(probe->pool, &none);

    if (params.data == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_probe_send(probe,
                 &ngx_http_mcp_legacy_methods[ngx_http_mcp_legacy_initialize],
                 &params);
}


static void
ngx_http_mcp_legacy_probe_result(ngx_http_mcp_probe_t *probe,
    ngx_str_t *result, ngx_uint_t revision)
{
    probe->profile.revision = revision;

    if (ngx_http_mcp_string_copy(probe->pool, &probe->profile.result, result)
        != NGX_OK)
    {
        probe->answered = 0;
    }
}


static void
ngx_http_mcp_legacy_probed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_exchange_t  *x;

    x = probe->x;

    if (probe->answered) {
        ngx_http_mcp_upstream_session_delete(probe->upstream, NULL,
                                             &probe->tenant, &probe->session,
                                             &x->session,
                                             probe->profile.revision);

        ngx_http_mcp_probe_put(probe, probe->modern ? NGX_MCP_PROFILE_BOTH
                                                    : NGX_MCP_PROFILE_LEGACY);
        return;
    }

    if (probe->modern
        && (!probe->away
            || !ngx_http_mcp_probe_was(probe, NGX_MCP_PROFILE_BOTH)))
    {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_MODERN);
        return;
    }

    if (x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN) {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_REFUSED);
        return;
    }

    if (ngx_http_mcp_failure(x, outcome, &probe->fault, probe->pool, &failure)
        != NGX_OK)
    {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_UNKNOWN);
        return;
    }

    if (probe->absent) {

        if (probe->upstream->protocol == NGX_HTTP_MCP_LEGACY
            && probe->error && outcome != NGX_HTTP_MCP_STATUS)
        {
            failure.remedy = "if it is a plain HTTP handler, write "
                             "\"protocol=rpc\" in \"mcp_upstream\"";
        }

        probe->failure = failure;

        if (ngx_http_mcp_probe_next(probe) == NGX_OK) {
            return;
        }
    }

    /* each client will get the upstream's answer to its own initialize */

    if (outcome == NGX_HTTP_MCP_STATUS && x->refusal.len
        && !ngx_http_mcp_status_absent(x->status))
    {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_REFUSED);
        return;
    }

    ngx_http_mcp_probe_failed(probe, &failure);
}


ngx_uint_t
ngx_http_mcp_upstream_session_id_fits(ngx_http_mcp_exchange_t *x)
{
    if (x->session.len <= NGX_MCP_UPSTREAM_ID_MAX) {
        return 1;
    }

    ngx_log_error(NGX_LOG_ERR, x->r->connection->log, 0,
                  "mcp upstream \"%V\" made a session whose id has %uz bytes, "
                  "more than %d; it cannot be used",
                  &x->name, x->session.len, NGX_MCP_UPSTREAM_ID_MAX);

    return 0;
}


void
ngx_http_mcp_upstream_session_delete(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_str_t *tenant, ngx_str_t *session,
    ngx_str_t *id, ngx_uint_t revision)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    if (id->len == 0) {
        return;
    }

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = *tenant;
    audience.session = *session;

    x = ngx_http_mcp_background_session(u, &audience,
                                        from ? &from->headers_in : NULL, id,
                                        revision);
    if (x == NULL) {
        return;
    }

    ngx_http_mcp_background_hold_worker(x->r);

    cln = ngx_http_cleanup_add(x->r, 0);

    if (cln == NULL) {
        ngx_http_mcp_background_close(x->r);
        return;
    }

    cln->handler = ngx_http_mcp_upstream_session_deleted;
    cln->data = u->zone;

    ngx_mcp_pending_delete_begin(u->zone);

    x->method = NGX_HTTP_DELETE;
    x->timeout = NGX_HTTP_MCP_DELETE_TIME;
    x->total = NGX_HTTP_MCP_DELETE_TIME;

    (void) ngx_http_mcp_background_send(x, NULL);
}


static void
ngx_http_mcp_upstream_session_deleted(void *data)
{
    ngx_mcp_pending_delete_end(data);
}
