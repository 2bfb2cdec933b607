
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"


#define NGX_HTTP_MCP_RESUMES    16

/* ms */
#define NGX_HTTP_MCP_TALK_WAIT  3600000


typedef enum {
    ngx_http_mcp_talk_find_out = 0,
    ngx_http_mcp_talk_find_link,
    ngx_http_mcp_talk_initialize,
    ngx_http_mcp_talk_initialized,
    ngx_http_mcp_talk_level,
    ngx_http_mcp_talk_subscribe,
    ngx_http_mcp_talk_send,
    ngx_http_mcp_talk_resume
} ngx_http_mcp_talk_step_e;


static ngx_int_t ngx_http_mcp_talk_next(ngx_http_mcp_talk_t *t);
static ngx_int_t ngx_http_mcp_talk_know(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_talk_ready(void *data);
static ngx_int_t ngx_http_mcp_talk_get_link(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_talk_wait(ngx_http_mcp_talk_t *t);
static ngx_int_t ngx_http_mcp_talk_make_link(ngx_http_mcp_talk_t *t);
static ngx_int_t ngx_http_mcp_talk_exchange(ngx_http_mcp_talk_t *t,
    ngx_str_t *body);
static void ngx_http_mcp_talk_header(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_talk_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_talk_piece(ngx_http_mcp_exchange_t *x,
    ngx_chain_t *in, ngx_uint_t last);
static void ngx_http_mcp_talk_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static ngx_int_t ngx_http_mcp_talk_sent(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e *outcome);
static void ngx_http_mcp_talk_initialize_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_talk_fail(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_talk_event(ngx_event_t *ev);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_talk_handlers = {
    ngx_http_mcp_talk_header,
    ngx_http_mcp_talk_message,
    NULL,
    ngx_http_mcp_talk_done
};

static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_talk_send_handlers = {
    ngx_http_mcp_talk_header,
    ngx_http_mcp_talk_message,
    ngx_http_mcp_talk_piece,
    ngx_http_mcp_talk_done
};


ngx_str_t  ngx_http_mcp_own_id = ngx_string("\"nginx-mcp\"");

static ngx_http_mcp_scope_t  ngx_http_mcp_talk_scopes[] = {
    { ngx_string("initialize"), ngx_null_string,
      ngx_string("\"nginx-mcp\""), 0 },
    { ngx_string("notifications/initialized"), ngx_null_string,
      ngx_null_string, 0 },
    { ngx_string("logging/setLevel"), ngx_null_string,
      ngx_string("\"nginx-mcp\""), 0 },
    { ngx_string("resources/subscribe"), ngx_null_string,
      ngx_string("\"nginx-mcp\""), 0 }
};


ngx_int_t
ngx_http_mcp_talk_start(ngx_http_mcp_talk_t *t)
{
    ngx_int_t  rc;

    t->event.data = t;
    t->event.handler = ngx_http_mcp_talk_event;
    t->event.log = t->r->connection->log;
    t->event.cancelable = ngx_http_mcp_background(t->r);

    t->step = ngx_http_mcp_talk_find_out;

    rc = ngx_http_mcp_talk_next(t);

    if (rc != NGX_OK) {
        ngx_http_mcp_talk_cleanup(t);
    }

    return rc;
}


/* goes on from t->step; NGX_OK, NGX_DECLINED or NGX_ERROR as talk_start() */

static ngx_int_t
ngx_http_mcp_talk_next(ngx_http_mcp_talk_t *t)
{
    ngx_int_t  rc;
    ngx_str_t  body, none;

    for ( ;; ) {

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, t->r->connection->log, 0,
                       "mcp talk with \"%V\": step %ui",
                       &t->upstream->name, t->step);

        switch (t->step) {

        case ngx_http_mcp_talk_find_out:

            rc = ngx_http_mcp_talk_know(t);

            if (rc != NGX_DONE) {
                return rc == NGX_AGAIN ? NGX_OK : rc;
            }

            if (t->rpc && (t->existing || t->listen)) {
                return NGX_DECLINED;
            }

            if (t->rpc && t->legacy_only) {
                ngx_add_timer(&t->event, 0);
                return NGX_OK;
            }

            t->step = t->rpc ? ngx_http_mcp_talk_send
                             : ngx_http_mcp_talk_find_link;
            break;

        case ngx_http_mcp_talk_find_link:

            rc = ngx_http_mcp_talk_get_link(t);

            if (rc != NGX_DONE) {
                return rc == NGX_AGAIN ? NGX_OK : rc;
            }

            break;

        case ngx_http_mcp_talk_initialize:
            return ngx_http_mcp_talk_make_link(t);

        case ngx_http_mcp_talk_initialized:
            ngx_str_set(&body, "{\"jsonrpc\":\"2.0\","
                               "\"method\":\"notifications/initialized\"}");

            return ngx_http_mcp_talk_exchange(t, &body);

        case ngx_http_mcp_talk_level:

            rc = ngx_http_mcp_talk_again_level(t, &body);

            if (rc == NGX_DECLINED) {
                t->step = ngx_http_mcp_talk_subscribe;
                break;
            }

            return rc == NGX_OK ? ngx_http_mcp_talk_exchange(t, &body) : rc;

        case ngx_http_mcp_talk_subscribe:

            rc = ngx_http_mcp_talk_again_subscribe(t, &body);

            if (rc != NGX_DECLINED) {
                return rc == NGX_OK ? ngx_http_mcp_talk_exchange(t, &body)
                                    : rc;
            }

            rc = ngx_mcp_link_put(t->upstream->zone, t->session,
                                  &t->upstream->name, &t->new_id,
                                  t->new_revision);
            t->claimed = 0;

            if (rc != NGX_OK) {
                ngx_str_null(&none);
                ngx_http_mcp_farewell(t->upstream, t->r, &t->tenant, &none,
                                      &t->new_id, t->new_revision);

                return NGX_ERROR;
            }

            t->step = ngx_http_mcp_talk_find_link;
            break;

        case ngx_http_mcp_talk_send:

            if (t->aborted) {
                ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_ABORTED);
                return NGX_OK;
            }

            return ngx_http_mcp_talk_exchange(t, &t->body);

        default: /* ngx_http_mcp_talk_resume */
            return ngx_http_mcp_talk_exchange(t, NULL);
        }
    }
}


/* NGX_DONE: t->rpc says what the upstream is; NGX_AGAIN: waits, or failed */

static ngx_int_t
ngx_http_mcp_talk_know(ngx_http_mcp_talk_t *t)
{
    ngx_int_t                 rc;
    ngx_uint_t                what;
    ngx_mcp_knowledge_t       known;
    ngx_http_mcp_upstream_t  *u;

    u = t->upstream;

    if (u->protocol == NGX_HTTP_MCP_LEGACY) {
        return NGX_DONE;
    }

    what = (u->protocol == NGX_HTTP_MCP_RPC)
           ? NGX_MCP_KNOWN_RPC : ngx_http_mcp_discovered(u, &t->tenant);

    if (what == NGX_MCP_KNOWN_LEGACY) {
        return NGX_DONE;
    }

    if (what == NGX_MCP_KNOWN_RPC) {
        t->rpc = 1;
        return NGX_DONE;
    }

    t->waiter.ready = ngx_http_mcp_talk_ready;
    t->waiter.data = t;

    rc = ngx_http_mcp_discover(u, &t->tenant, NGX_MCP_KNOWLEDGE_ANY,
                               t->r->pool, &known, &t->waiter);

    switch (rc) {

    case NGX_OK:
        break;

    case NGX_AGAIN:
        ngx_http_mcp_talk_wait(t);
        return NGX_AGAIN;

    default:
        return NGX_ERROR;
    }

    switch (known.what) {

    case NGX_MCP_KNOWN_RPC:
        t->rpc = 1;
        return NGX_DONE;

    case NGX_MCP_KNOWN_NOTHING:
        t->unreachable = 1;
        t->status = known.status;
        t->why = known.why;
        ngx_add_timer(&t->event, 1);
        return NGX_AGAIN;

    default:
        return NGX_DONE;
    }
}


static void
ngx_http_mcp_talk_ready(void *data)
{
    ngx_http_mcp_talk_t *t = data;

    ngx_connection_t  *c;

    if (t->closed) {
        return;
    }

    c = t->r->connection;

    t->waiting = 0;

    if (t->event.timer_set) {
        ngx_del_timer(&t->event);
    }

    if (ngx_http_mcp_talk_next(t) != NGX_OK) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_BAD);
    }

    ngx_http_run_posted_requests(c);
}


/* NGX_DONE: t->step is set; NGX_AGAIN: waits */

static ngx_int_t
ngx_http_mcp_talk_get_link(ngx_http_mcp_talk_t *t)
{
    ngx_int_t  rc;

    if (t->link == NULL) {
        t->link = ngx_pcalloc(t->r->pool, sizeof(ngx_mcp_link_t));
        if (t->link == NULL) {
            return NGX_ERROR;
        }
    }

    if (t->existing) {
        rc = ngx_mcp_link_peek(t->upstream->zone, t->session,
                               &t->upstream->name, t->link);

        if (rc != NGX_OK) {
            return NGX_DECLINED;
        }

    } else {
        rc = ngx_mcp_link_get(t->upstream->zone, t->session,
                              &t->upstream->name, t->call, t->link);
    }

    switch (rc) {

    case NGX_OK:
        rc = ngx_mcp_link_id(t->upstream->zone, t->session,
                             &t->upstream->name, t->r->pool, t->link);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_OK) {
            t->step = t->listen ? ngx_http_mcp_talk_resume
                                : ngx_http_mcp_talk_send;
        }

        /* else it has just changed, and is looked for again */

        return NGX_DONE;

    case NGX_DECLINED:
        t->claimed = 1;
        t->sub = 0;
        t->step = ngx_http_mcp_talk_initialize;
        return NGX_DONE;

    case NGX_AGAIN:

        if (t->listen || t->call.block == 0) {
            /* nobody is woken; who makes it is in no hurry for this */

            ngx_add_timer(&t->event, 1000);
            return NGX_AGAIN;
        }

        ngx_http_mcp_talk_wait(t);
        return NGX_AGAIN;

    default:
        return NGX_ERROR;
    }
}


/* for what another may do, in another worker: this one must not exit */

static void
ngx_http_mcp_talk_wait(ngx_http_mcp_talk_t *t)
{
    t->waiting = 1;

    ngx_add_timer(&t->event, t->upstream->total ? t->upstream->total
                                                : NGX_HTTP_MCP_TALK_WAIT);
}


void
ngx_http_mcp_talk_wake(ngx_http_mcp_talk_t *t)
{
    if (t->step != ngx_http_mcp_talk_find_link || t->aborted) {
        return;
    }

    if (t->event.timer_set) {
        ngx_del_timer(&t->event);
        t->waiting = 1;
    }

    if (t->waiting) {
        ngx_http_mcp_talk_ready(t);
    }
}


static ngx_int_t
ngx_http_mcp_talk_make_link(ngx_http_mcp_talk_t *t)
{
    u_char     *p;
    ngx_str_t   params, body;

    if (ngx_mcp_session_initialize(t->upstream->zone, t->session, t->r->pool,
                                   &params)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    body.data = ngx_pnalloc(t->r->pool, 128 + params.len);
    if (body.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(body.data, "{\"jsonrpc\":\"2.0\",\"id\":%V,"
                    "\"method\":\"initialize\",\"params\":%V}",
                    &ngx_http_mcp_own_id, &params);
    body.len = p - body.data;

    t->initialized = 0;
    ngx_str_null(&t->new_id);
    t->new_revision = NGX_MCP_REVISION_UNKNOWN;

    return ngx_http_mcp_talk_exchange(t, &body);
}


static ngx_int_t
ngx_http_mcp_talk_exchange(ngx_http_mcp_talk_t *t, ngx_str_t *body)
{
    ngx_str_t                 name;
    ngx_uint_t                revision;
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;

    scope = &t->scope;

    if (t->step >= ngx_http_mcp_talk_initialize
        && t->step <= ngx_http_mcp_talk_subscribe)
    {
        name = t->again.name;

        scope = &t->again;
        *scope = ngx_http_mcp_talk_scopes[t->step
                                          - ngx_http_mcp_talk_initialize];

        if (t->step == ngx_http_mcp_talk_subscribe) {
            scope->name = name;
        }
    }

    x = ngx_http_mcp_upstream_exchange(t->r, t->upstream, scope);
    if (x == NULL) {
        t->scope.dots = scope->dots;
        return NGX_ERROR;
    }

    x->data = t;
    x->client_headers = 1;
    x->handlers = &ngx_http_mcp_talk_handlers;

    if (body) {
        if (ngx_http_mcp_upstream_body(x, body) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        x->method = NGX_HTTP_GET;

        if (!t->listen || t->serial == t->link->serial) {
            x->last_event_id = t->last_event_id;
        }
    }

    revision = NGX_MCP_REVISION_UNKNOWN;

    switch (t->step) {

    case ngx_http_mcp_talk_initialize:
        break;

    case ngx_http_mcp_talk_send:
    case ngx_http_mcp_talk_resume:

        if (t->piece) {
            x->handlers = &ngx_http_mcp_talk_send_handlers;
        }

        if (!t->rpc) {
            x->session_id = t->link->id;
            revision = t->link->revision;
        }

        break;

    default:
        x->session_id = t->new_id;
        revision = t->new_revision;
    }

    if (revision) {
        x->protocol_version = *ngx_mcp_revision_name(revision);
    }

    if (t->step == ngx_http_mcp_talk_initialize) {
        ngx_http_mcp_initialize_within(x, NGX_HTTP_MCP_INITIALIZE_TIME);
    }

    if (t->patient && t->step >= ngx_http_mcp_talk_send) {
        x->timeout = t->upstream->silence;
    }

    if (t->listen && t->step == ngx_http_mcp_talk_resume) {
        x->timeout = 0;
        x->total = 0;
    }

    if (t->listen && t->step == ngx_http_mcp_talk_resume && t->linked) {
        t->linked(t);
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

    if (t->closed && !t->leaving) {
        return;
    }

    if (t->step == ngx_http_mcp_talk_initialize) {

        t->new_id = x->session;

        return;
    }

    if ((t->step == ngx_http_mcp_talk_send || t->listen)
        && !t->rpc && !t->healed
        && t->link->id.len && x->status == NGX_HTTP_NOT_FOUND)
    {
        t->forgotten = 1;
        return;
    }

    if ((t->step == ngx_http_mcp_talk_send || t->listen) && t->streams
        && x->body == NGX_HTTP_MCP_BODY_SSE
        && x->status < NGX_HTTP_SPECIAL_RESPONSE)
    {
        t->streams(t);
    }
}


static void
ngx_http_mcp_talk_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t             id, version;
    ngx_mcp_json_t       *json;
    ngx_http_mcp_talk_t  *t;

    t = x->data;
    json = &x->scan;

    if (t->closed) {
        return;
    }

    switch (t->step) {

    case ngx_http_mcp_talk_initialize:

        id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

        if (json->members[NGX_MCP_PATH_RESULT].type != NGX_MCP_JSON_OBJECT
            || !ngx_mcp_json_same_id(&id, &ngx_http_mcp_own_id))
        {
            return;
        }

        version = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_VERSION,
                                    text->data);

        if (version.len > 2) {
            version.data++;
            version.len -= 2;
        }

        t->new_revision = ngx_mcp_revision_parse(&version);
        t->initialized = 1;

        ngx_http_mcp_exchange_answered(x);

        return;

    case ngx_http_mcp_talk_send:
    case ngx_http_mcp_talk_resume:

        if ((t->step == ngx_http_mcp_talk_send || t->listen)
            && x->status == NGX_HTTP_BAD_REQUEST && !t->healed && !t->heard
            && (t->rpc ? t->upstream->protocol == NGX_HTTP_MCP_AUTO
                       : t->link->id.len != 0)
            && json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT
            && json->members[NGX_MCP_PATH_ID].type != NGX_MCP_JSON_NUMBER
            && json->members[NGX_MCP_PATH_ID].type != NGX_MCP_JSON_STRING)
        {
            /*
             * refused by a transport that says 400 for a lost session, or for
             * none where an rpc upstream has become an MCP server
             */

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

        return;

    default:

        id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

        if (ngx_mcp_json_same_id(&id, &ngx_http_mcp_own_id)) {
            ngx_http_mcp_exchange_answered(x);
        }
    }
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
    ngx_int_t             rc;
    ngx_str_t             none;
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

    if (t->aborted && t->step < ngx_http_mcp_talk_send) {

        /* a request that waits makes the session; half a session is ended */

        ngx_str_null(&none);
        ngx_http_mcp_farewell(t->upstream, t->r, &t->tenant, &none,
                              &t->new_id, t->new_revision);

        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_ABORTED);
        return;
    }

    switch (t->step) {

    case ngx_http_mcp_talk_initialize:
        ngx_http_mcp_talk_initialize_done(t, outcome);
        return;

    case ngx_http_mcp_talk_initialized:
        t->step = ngx_http_mcp_talk_level;
        break;

    case ngx_http_mcp_talk_level:
        t->step = ngx_http_mcp_talk_subscribe;
        break;

    case ngx_http_mcp_talk_subscribe:
        break;

    default:
        rc = ngx_http_mcp_talk_sent(t, &outcome);

        if (rc == NGX_DECLINED) {
            ngx_http_mcp_talk_fail(t, outcome);
            return;
        }

        if (rc == NGX_AGAIN) {
            return;
        }
    }

    if (ngx_http_mcp_talk_next(t) != NGX_OK) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_BAD);
    }
}


static void
ngx_http_mcp_talk_initialize_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_str_t  none;

    if (t->initialized && !ngx_http_mcp_link_fits(t->x)) {

        /* the session that it made is ended */

        ngx_str_null(&none);
        ngx_http_mcp_farewell(t->upstream, t->r, &t->tenant, &none,
                              &t->new_id, t->new_revision);

        outcome = NGX_HTTP_MCP_BAD;

    } else if (t->initialized) {
        t->step = ngx_http_mcp_talk_initialized;

        if (ngx_http_mcp_talk_next(t) == NGX_OK) {
            return;
        }

        outcome = NGX_HTTP_MCP_BAD;

    } else {

        if (outcome == NGX_HTTP_MCP_OK) {
            ngx_log_error(NGX_LOG_ERR, t->r->connection->log, 0,
                          "mcp upstream \"%V\" did not answer initialize "
                          "with a result", &t->upstream->name);
            outcome = NGX_HTTP_MCP_BAD;
        }

        if (t->x->status == NGX_HTTP_BAD_REQUEST || outcome == NGX_HTTP_MCP_BAD
            || ngx_http_mcp_status_absent(t->x->status))
        {
            ngx_http_mcp_discover_again(t->upstream, &t->tenant, t->r->pool);
        }
    }

    ngx_http_mcp_talk_fail(t, outcome);
}


ngx_uint_t
ngx_http_mcp_link_fits(ngx_http_mcp_exchange_t *x)
{
    if (x->session.len <= NGX_MCP_LINK_ID_MAX) {
        return 1;
    }

    ngx_log_error(NGX_LOG_ERR, x->r->connection->log, 0,
                  "mcp upstream \"%V\" made a session whose id has %uz bytes, "
                  "more than %d; it cannot be used",
                  &x->name, x->session.len, NGX_MCP_LINK_ID_MAX);

    return 0;
}


/*
 * The message's own exchange ended.  NGX_OK: t->step says how it goes on;
 * NGX_AGAIN: it goes on later; NGX_DECLINED: that was all.
 */

static ngx_int_t
ngx_http_mcp_talk_sent(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e *outcome)
{
    ngx_msec_t                delay;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_upstream_t  *u;

    x = t->x;

    u = t->upstream;

    if (t->rpc && x->status == NGX_HTTP_BAD_REQUEST && !t->heard && !t->healed
        && !t->aborted && u->protocol == NGX_HTTP_MCP_AUTO)
    {
        ngx_http_mcp_discover_again(u, &t->tenant, t->r->pool);

        t->rpc = 0;
        t->healed = 1;
        t->step = ngx_http_mcp_talk_find_out;

        return NGX_OK;
    }

    if (t->forgotten && !t->aborted && !t->existing) {

        ngx_log_error(NGX_LOG_NOTICE, t->r->connection->log, 0,
                      "mcp upstream \"%V\" forgot a session, it is made anew",
                      &t->upstream->name);

        ngx_mcp_link_forget(t->upstream->zone, t->session, &t->upstream->name,
                            t->link->serial);

        ngx_http_mcp_discover_stale(t->upstream, &t->tenant, t->r->pool);

        t->healed = 1;
        t->step = ngx_http_mcp_talk_find_link;

        return NGX_OK;
    }

    if (*outcome == NGX_HTTP_MCP_UNREACHABLE) {
        ngx_http_mcp_discover_stale(u, &t->tenant, t->r->pool);

    }

    /* an upstream may end the stream early and go on when it is resumed */

    if (t->rpc || t->answered || t->aborted || t->listen || x->sse == NULL
        || x->sse->id.len == 0
        || (*outcome != NGX_HTTP_MCP_OK && *outcome != NGX_HTTP_MCP_CUT)
        || t->resumes++ == NGX_HTTP_MCP_RESUMES)
    {
        return NGX_DECLINED;
    }

    t->last_event_id.len = x->sse->id.len;
    t->last_event_id.data = ngx_pstrdup(t->r->pool, &x->sse->id);

    if (t->last_event_id.data == NULL) {
        return NGX_DECLINED;
    }

    delay = x->sse->retry;

    if (delay == NGX_CONF_UNSET_MSEC) {
        delay = 1000;
    }

    delay = ngx_min(delay, 30000);

    t->step = ngx_http_mcp_talk_resume;
    ngx_add_timer(&t->event, delay);

    if (t->paused) {
        t->paused(t);
    }

    return NGX_AGAIN;
}


/* the end, for whatever reason, of a talk that has started */

static void
ngx_http_mcp_talk_fail(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_talk_cleanup(t);

    t->done(t, outcome);
}


void
ngx_http_mcp_talk_abort(ngx_http_mcp_talk_t *t)
{
    t->aborted = 1;

    if (t->waiting || t->event.timer_set) {
        ngx_http_mcp_discover_forget(&t->waiter);
        t->waiting = 0;

        if (t->event.timer_set) {
            ngx_del_timer(&t->event);
        }

        ngx_add_timer(&t->event, 1);
        return;
    }

    if (t->x && t->step >= ngx_http_mcp_talk_initialize) {
        ngx_http_mcp_exchange_abort(t->x);
    }
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

    if (t->aborted) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_ABORTED);

    } else if (t->waiting) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_TIMEOUT);

    } else if (t->rpc && t->legacy_only) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_OK);

    } else if (t->unreachable) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_UNREACHABLE);

    } else if (ngx_http_mcp_talk_next(t) != NGX_OK) {
        ngx_http_mcp_talk_fail(t, NGX_HTTP_MCP_BAD);
    }

    ngx_http_run_posted_requests(c);
}
