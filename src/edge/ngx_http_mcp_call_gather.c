
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_profile.h"
#include "ngx_mcp_merge.h"
#include "ngx_mcp_provider.h"


/* ms to wait for other upstreams after a first list is there */
#define NGX_HTTP_MCP_GATHER_TIMEOUT  5000

/*
 * An upstream that took longer than GATHER_TIMEOUT is "silent" for GATHER_AGAIN
 * ms, unless it answers anything.  If only silent upstreams are missing, they
 * get GATHER_SILENT ms.
 */
#define NGX_HTTP_MCP_GATHER_SILENT   200
#define NGX_HTTP_MCP_GATHER_AGAIN    30000


typedef enum {
    NGX_HTTP_MCP_GATHER_ASKED = 0,
    NGX_HTTP_MCP_GATHER_LISTED,
    NGX_HTTP_MCP_GATHER_ABSENT,       /* the upstream has no such list */
    NGX_HTTP_MCP_GATHER_FAILED
} ngx_http_mcp_gather_state_e;


/* the list of one upstream */

typedef struct {
    ngx_http_mcp_call_t              *call;
    ngx_http_mcp_upstream_t          *upstream;
    ngx_http_mcp_upstream_request_t  *ureq;     /* asks for a page; NULL: none
                                                   is under way */
    ngx_str_t                         id;       /* raw id of this request */
    ngx_mcp_pages_t                   pages;
    ngx_str_t                         kept;     /* raw list of the cache; empty:
                                                   the upstream is asked */
    ngx_uint_t                        state;    /* ..._gather_state_e */
    ngx_uint_t                        more;     /* another page is to be asked
                                                   for */
    const char                       *why;      /* fault of the list, for the
                                                   log; or NULL */
    ngx_http_mcp_reply_t              reply;    /* error for the client, if no
                                                   upstream has a list */
    ngx_uint_t                        error;    /* 1: the reply is an answer of
                                                   the upstream */
    ngx_uint_t                        status;   /* HTTP status of this answer of
                                                   an upstream of 2026-07-28;
                                                   else 0 */
    ngx_http_mcp_exchange_t          *x;        /* last exchange, or NULL */
} ngx_http_mcp_gather_part_t;


typedef struct {
    ngx_uint_t                        kind;     /* ngx_mcp_list_kind_e */
    ngx_uint_t                        n;        /* number of parts */
    ngx_uint_t                        running;  /* parts that have not ended */
    ngx_http_mcp_gather_part_t       *parts;
    ngx_http_mcp_exchange_t          *x;        /* exchange whose headers the
                                                   response gets, or NULL */
    ngx_event_t                       timer;    /* timer after which parts that
                                                   still run are left out */
    unsigned                          listed:1;   /* a part has a list */
    unsigned                          silent:1;   /* the timer is the short one
                                                     for silent upstreams */
} ngx_http_mcp_gather_t;


static ngx_int_t ngx_http_mcp_gather_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_gather_begin(ngx_http_mcp_call_t *call,
    ngx_uint_t kind, ngx_http_mcp_upstream_t *u, ngx_uint_t n,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_gather_kept(ngx_http_mcp_call_t *call,
    ngx_http_mcp_gather_t *gather, ngx_uint_t n);
static ngx_int_t ngx_http_mcp_gather_request(ngx_http_mcp_gather_part_t *part);
static ngx_int_t ngx_http_mcp_gather_body(ngx_http_mcp_gather_part_t *part,
    ngx_str_t *body);
static void ngx_http_mcp_gather_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_gather_cancel(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_gather_end(ngx_http_mcp_call_t *call,
    void (*end)(ngx_http_mcp_upstream_request_t *ureq));
static ngx_int_t ngx_http_mcp_gather_headers(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_gather_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);
static void ngx_http_mcp_gather_result(ngx_http_mcp_gather_part_t *part,
    ngx_str_t *text);
static void ngx_http_mcp_gather_error(ngx_http_mcp_gather_part_t *part,
    ngx_str_t *text);
static void ngx_http_mcp_gather_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_gather_failed(ngx_http_mcp_gather_part_t *part,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_gather_ended(ngx_http_mcp_gather_part_t *part);
static void ngx_http_mcp_gather_wait(ngx_http_mcp_gather_t *gather);
static void ngx_http_mcp_gather_timeout(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_gather_answer(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_gather_none(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_gather_adapt(ngx_http_mcp_gather_part_t *part,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_gather_merge(ngx_http_mcp_call_t *call,
    ngx_mcp_merge_t *merge);
static void ngx_http_mcp_gather_learn(ngx_http_mcp_call_t *call,
    ngx_mcp_merge_t *merge);
static ngx_int_t ngx_http_mcp_gather_page(ngx_http_mcp_call_t *call,
    ngx_mcp_merge_t *merge, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_gather_look_up(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);


/*
 * The answerer for lists of several upstreams, or of one with a prefix, in the
 * client's own sessions.  If the client has a name that was cut, the upstream's
 * list is read to find the whole name; then the next answerer is asked.
 */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_gather = {
    .start = ngx_http_mcp_gather_start,
    .stop = ngx_http_mcp_gather_stop,
    .cancel = ngx_http_mcp_gather_cancel,
    .headers = ngx_http_mcp_gather_headers
};


static ngx_int_t
ngx_http_mcp_gather_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t               rc, kind;
    ngx_http_mcp_router_t  *router;

    router = &call->ctx->conf->bridge.router;

    if (router->n == 0 || ngx_http_mcp_router_plain(router)) {
        return NGX_DECLINED;
    }

    kind = ngx_http_mcp_list_kind(call);

    if (kind != NGX_ERROR) {
        return ngx_http_mcp_gather_begin(call, kind, router->upstreams,
                                         router->n, reply);
    }

    rc = ngx_http_mcp_call_route(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    if (!call->route.cut) {
        return NGX_DECLINED;
    }

    kind = (call->message->method_code == NGX_MCP_METHOD_TOOLS_CALL)
           ? NGX_MCP_LIST_TOOLS : NGX_MCP_LIST_PROMPTS;

    return ngx_http_mcp_gather_begin(call, kind, call->route.upstream, 1,
                                     reply);
}


static ngx_int_t
ngx_http_mcp_gather_begin(ngx_http_mcp_call_t *call, ngx_uint_t kind,
    ngx_http_mcp_upstream_t *u, ngx_uint_t n, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_pool_t                  *pool;
    ngx_http_mcp_gather_t       *gather;
    ngx_http_mcp_gather_part_t  *part;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    pool = call->r->pool;

    gather = ngx_pcalloc(pool, sizeof(ngx_http_mcp_gather_t));
    if (gather == NULL) {
        return NGX_ERROR;
    }

    gather->kind = kind;
    gather->parts = ngx_pcalloc(pool, n * sizeof(ngx_http_mcp_gather_part_t));
    if (gather->parts == NULL) {
        return NGX_ERROR;
    }

    gather->timer.handler = ngx_http_mcp_gather_timeout;
    gather->timer.data = call;
    gather->timer.log = call->r->connection->log;

    call->answerer = &ngx_http_mcp_call_gather;
    call->data = gather;

    if (call->passing && ngx_http_mcp_gather_kept(call, gather, n) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        part = &gather->parts[i];

        part->call = call;
        part->upstream = &u[i];

        if (part->kept.len) {
            part->state = NGX_HTTP_MCP_GATHER_LISTED;
            gather->listed = 1;

        } else if (ngx_mcp_pages_init(&part->pages, kind, pool) == NGX_OK
            && ngx_http_mcp_gather_request(part) == NGX_OK)
        {
            gather->running++;

        } else {
            part->state = NGX_HTTP_MCP_GATHER_FAILED;
            (void) ngx_http_mcp_reply_internal(&part->reply);
        }

        gather->n++;
    }

    if (!gather->listed) {
        return gather->running ? NGX_AGAIN : NGX_ERROR;
    }

    if (gather->running == 0) {
        return ngx_http_mcp_gather_answer(call, reply);
    }

    ngx_http_mcp_gather_wait(gather);

    return NGX_AGAIN;
}


/* sets part->kept to cached lists that their upstreams marked as public */

static ngx_int_t
ngx_http_mcp_gather_kept(ngx_http_mcp_call_t *call,
    ngx_http_mcp_gather_t *gather, ngx_uint_t n)
{
    ngx_uint_t               i;
    ngx_mcp_list_content_t  *parts;

    parts = ngx_palloc(call->r->pool, n * sizeof(ngx_mcp_list_content_t));
    if (parts == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_list_cache_parts(&call->ctx->conf->bridge,
                                      &call->ctx->caller, gather->kind,
                                      call->r->pool, parts)
        == NGX_OK)
    {
        for (i = 0; i < n; i++) {
            gather->parts[i].kept = parts[i].text;
            gather->parts[i].pages.hint = parts[i].hint;
        }
    }

    return NGX_OK;
}


/* asks an upstream for the next page of its list */

static ngx_int_t
ngx_http_mcp_gather_request(ngx_http_mcp_gather_part_t *part)
{
    ngx_http_mcp_call_t              *call;
    ngx_http_mcp_upstream_request_t  *ureq;

    call = part->call;

    ureq = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_upstream_request_t));
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    ureq->r = call->r;
    ureq->upstream = part->upstream;
    ngx_http_mcp_call_caller(call, ureq);
    ureq->client_waits = 1;
    ureq->message = ngx_http_mcp_gather_message;
    ureq->done = ngx_http_mcp_gather_done;
    ureq->data = part;

    if (ngx_http_mcp_gather_body(part, &ureq->body) != NGX_OK) {
        return NGX_ERROR;
    }

    ureq->scope.method = *ngx_mcp_list_method(part->pages.kind);
    ureq->scope.request_id = part->id;

    if (ngx_http_mcp_upstream_request_start(ureq) != NGX_OK) {
        return NGX_ERROR;
    }

    part->ureq = ureq;
    part->more = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_gather_body(ngx_http_mcp_gather_part_t *part, ngx_str_t *body)
{
    u_char               *p;
    ngx_str_t             params, *cursor;
    ngx_mcp_message_t    *m;
    ngx_http_mcp_call_t  *call;

    call = part->call;
    m = call->message;
    cursor = &part->pages.cursor;

    if (cursor->len == 0 && ngx_http_mcp_list_kind(call) != NGX_ERROR
        && m->json.members[NGX_MCP_PATH_CURSOR].type == NGX_MCP_JSON_ABSENT)
    {
        part->id = m->id;
        *body = m->text;
        return NGX_OK;
    }

    /* the client's own request, or another page, may have its id already */

    if (ngx_http_mcp_own_id_make(call->r->pool, &part->id) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_null(&params);

    if (cursor->len) {
        p = ngx_pnalloc(call->r->pool, sizeof("{\"cursor\":}") + cursor->len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        params.data = p;

        p = ngx_cpymem(p, "{\"cursor\":", sizeof("{\"cursor\":") - 1);
        p = ngx_cpymem(p, cursor->data, cursor->len);
        *p++ = '}';

        params.len = p - params.data;
    }

    *body = ngx_mcp_request_compose(call->r->pool, &part->id,
                                    ngx_mcp_list_method(part->pages.kind),
                                    &params);

    return body->data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_mcp_gather_stop(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_gather_end(call, ngx_http_mcp_upstream_request_cleanup);
}


static void
ngx_http_mcp_gather_cancel(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_gather_end(call, ngx_http_mcp_upstream_request_abort);
}


static void
ngx_http_mcp_gather_end(ngx_http_mcp_call_t *call,
    void (*end)(ngx_http_mcp_upstream_request_t *ureq))
{
    ngx_uint_t              i;
    ngx_http_mcp_gather_t  *gather;

    gather = call->data;

    if (gather == NULL) {
        return;
    }

    if (gather->timer.timer_set) {
        ngx_del_timer(&gather->timer);
    }

    for (i = 0; i < gather->n; i++) {
        if (gather->parts[i].ureq) {
            end(gather->parts[i].ureq);
        }
    }
}


static ngx_int_t
ngx_http_mcp_gather_headers(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_gather_t  *gather;

    gather = call->data;

    return gather->x ? ngx_http_mcp_copy_headers(call->r, gather->x) : NGX_OK;
}


static void
ngx_http_mcp_gather_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                    id;
    ngx_mcp_json_t              *json;
    ngx_http_mcp_call_t         *call;
    ngx_http_mcp_gather_part_t  *part;

    part = ureq->data;
    call = part->call;
    json = ureq->x->scan;

    if (!ngx_http_mcp_call_upstream_message(call, ureq, text, &id)
        || ureq->x->status == NGX_HTTP_UNAUTHORIZED
        || ureq->x->status == NGX_HTTP_FORBIDDEN)
    {
        return;
    }

    if (!ngx_mcp_json_same_id(&id, &part->id)) {

        /* a refusal may have an error without an id */

        if (ureq->x->status < NGX_HTTP_SPECIAL_RESPONSE) {
            ureq->answered = 1;
            part->why = "an answer with another id";
        }

        return;
    }

    ureq->answered = 1;

    if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        ngx_http_mcp_gather_error(part, text);

    } else {
        ngx_http_mcp_gather_result(part, text);
    }
}


static void
ngx_http_mcp_gather_result(ngx_http_mcp_gather_part_t *part, ngx_str_t *text)
{
    ngx_str_t  result;

    result = ngx_mcp_json_span(part->ureq->x->scan, NGX_MCP_PATH_RESULT,
                               text->data);

    switch (ngx_mcp_pages_add(&part->pages, &result, &part->ureq->hint,
                              &part->why))
    {

    case NGX_OK:
        part->state = NGX_HTTP_MCP_GATHER_LISTED;
        break;

    case NGX_AGAIN:
        part->more = 1;
        break;

    case NGX_DECLINED:
        part->why = "the list is too large";
        break;
    }
}


static void
ngx_http_mcp_gather_error(ngx_http_mcp_gather_part_t *part, ngx_str_t *text)
{
    ngx_str_t  code;

    code = ngx_mcp_json_span(part->ureq->x->scan, NGX_MCP_PATH_ERROR_CODE,
                             text->data);

    if (ngx_mcp_error_code(&code) == NGX_MCP_METHOD_NOT_FOUND) {
        part->state = NGX_HTTP_MCP_GATHER_ABSENT;
        return;
    }

    part->why = "an error";

    if (ngx_http_mcp_string_copy(part->call->r->pool, &part->reply.parts[0],
                                 text)
        == NGX_OK)
    {
        part->reply.nparts = 1;
        part->error = 1;

        part->status = (part->ureq->manner == &ngx_http_mcp_modern)
                       ? part->ureq->x->status : 0;
    }
}


static void
ngx_http_mcp_gather_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_gather_part_t  *part;

    part = ureq->data;
    part->ureq = NULL;
    part->x = ureq->x;

    if (part->call->state == NGX_HTTP_MCP_CALL_RUNNING
        && part->state == NGX_HTTP_MCP_GATHER_ASKED)
    {
        if (part->more && ngx_http_mcp_gather_request(part) == NGX_OK) {
            return;
        }

        if (ngx_http_mcp_upstream_request_absent(ureq, outcome)) {
            part->state = NGX_HTTP_MCP_GATHER_ABSENT;

        } else {
            part->state = NGX_HTTP_MCP_GATHER_FAILED;
            ngx_http_mcp_gather_failed(part, ureq, outcome);
        }
    }

    ngx_http_mcp_gather_ended(part);
}


static void
ngx_http_mcp_gather_failed(ngx_http_mcp_gather_part_t *part,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_request_t  *r;

    r = part->call->r;

    if (part->why) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "mcp upstream \"%V\" has no valid answer to %V: %s; "
                      "the list is served without it",
                      &part->upstream->name,
                      ngx_mcp_list_method(part->pages.kind), part->why);

    } else if (outcome == NGX_HTTP_MCP_STATUS
               && (ureq->x->status == NGX_HTTP_UNAUTHORIZED
                   || ureq->x->status == NGX_HTTP_FORBIDDEN))
    {
        /* the upstream has no fault: it wants other credentials */

        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "mcp upstream \"%V\" refused %V with status %ui; the "
                      "list is served without it",
                      &part->upstream->name,
                      ngx_mcp_list_method(part->pages.kind),
                      ureq->x->status);
    }

    if (part->reply.nparts) {
        return;
    }

    if (ureq->why.len) {
        ngx_http_mcp_reply_unprobed(r, ureq->upstream, ureq->status,
                                    &ureq->why, &part->reply);
        return;
    }

    if (part->why) {
        outcome = NGX_HTTP_MCP_BAD;
    }

    ngx_http_mcp_reply_outcome(r, &part->call->message->id, ureq->upstream,
                               ureq->x, outcome, &part->reply);
}


/* a part has ended; the call may be freed then */

static void
ngx_http_mcp_gather_ended(ngx_http_mcp_gather_part_t *part)
{
    ngx_int_t               rc;
    ngx_http_mcp_call_t    *call;
    ngx_http_mcp_reply_t    reply;
    ngx_http_mcp_gather_t  *gather;

    call = part->call;
    gather = call->data;

    if (--gather->running) {

        if (part->state == NGX_HTTP_MCP_GATHER_LISTED) {
            gather->listed = 1;
        }

        if (gather->listed && call->state == NGX_HTTP_MCP_CALL_RUNNING) {
            ngx_http_mcp_gather_wait(gather);
        }

        return;
    }

    if (gather->timer.timer_set) {
        ngx_del_timer(&gather->timer);
    }

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        ngx_http_mcp_call_end(call, NULL);
        return;
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    rc = call->route.cut ? ngx_http_mcp_gather_look_up(call, &reply)
                         : ngx_http_mcp_gather_answer(call, &reply);

    ngx_http_mcp_call_started(call, rc, &reply);
}


/* sets the timer for upstreams that have not answered yet */

static void
ngx_http_mcp_gather_wait(ngx_http_mcp_gather_t *gather)
{
    ngx_msec_t                   silent;
    ngx_uint_t                   i;
    ngx_http_mcp_gather_part_t  *part;

    for (i = 0; i < gather->n; i++) {
        part = &gather->parts[i];

        silent = ngx_http_mcp_upstream_health(part->upstream,
                                      &part->call->ctx->caller.tenant)->silent;

        if (part->ureq
            && (silent == 0
                || ngx_current_msec - silent > NGX_HTTP_MCP_GATHER_AGAIN))
        {
            break;
        }
    }

    if (i == gather->n) {

        if (!gather->silent) {
            gather->silent = 1;
            ngx_add_timer(&gather->timer, NGX_HTTP_MCP_GATHER_SILENT);
        }

    } else if (!gather->timer.timer_set) {
        ngx_add_timer(&gather->timer, NGX_HTTP_MCP_GATHER_TIMEOUT);
    }
}


/* answers with the lists that are there; the other requests end later */

static void
ngx_http_mcp_gather_timeout(ngx_event_t *ev)
{
    ngx_uint_t                   i;
    ngx_connection_t            *c;
    ngx_http_mcp_call_t         *call;
    ngx_http_mcp_reply_t         reply;
    ngx_http_mcp_gather_t       *gather;
    ngx_http_mcp_gather_part_t  *part;

    call = ev->data;
    gather = call->data;
    c = call->r->connection;

    ngx_http_set_log_request(c->log, call->r);
    c->log->action = NULL;

    for (i = 0; i < gather->n; i++) {
        part = &gather->parts[i];

        if (part->ureq == NULL) {
            continue;
        }

        if (!gather->silent) {
            ngx_log_error(NGX_LOG_ERR, c->log, 0,
                          "mcp upstream \"%V\" has not answered %V %d s after "
                          "another one; the list is served without it, and "
                          "so are others as long as it does not answer",
                          &part->upstream->name,
                          ngx_mcp_list_method(part->pages.kind),
                          NGX_HTTP_MCP_GATHER_TIMEOUT / 1000);

            ngx_http_mcp_profile_silent(part->upstream,
                                        &call->ctx->caller.tenant,
                                        call->r->pool);
        }

        ngx_http_mcp_upstream_request_abort(part->ureq);
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    if (ngx_http_mcp_gather_answer(call, &reply) != NGX_OK) {
        (void) ngx_http_mcp_reply_internal(&reply);
    }

    ngx_http_mcp_call_reply(call, &reply);

    ngx_http_run_posted_requests(c);
}


/* makes the reply of all lists that are there; NGX_OK or NGX_ERROR */

static ngx_int_t
ngx_http_mcp_gather_answer(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_uint_t              i;
    ngx_mcp_merge_t         merge;
    ngx_http_mcp_gather_t  *gather;

    gather = call->data;

    for (i = 0; i < gather->n; i++) {
        if (gather->parts[i].state == NGX_HTTP_MCP_GATHER_LISTED) {
            break;
        }
    }

    if (i == gather->n) {
        return ngx_http_mcp_gather_none(call, reply);
    }

    if (ngx_http_mcp_gather_merge(call, &merge) != NGX_OK) {
        return NGX_ERROR;
    }

    if (gather->kind == NGX_MCP_LIST_RESOURCES) {
        ngx_http_mcp_gather_learn(call, &merge);
    }

    ngx_str_null(&call->ctx->upstream);

    ngx_mcp_hint_init(&call->ctx->hint);

    for (i = 0; i < gather->n; i++) {

        if (gather->parts[i].state == NGX_HTTP_MCP_GATHER_LISTED) {
            ngx_mcp_hint_join(&call->ctx->hint, &gather->parts[i].pages.hint);

        } else {
            call->ctx->hint.until = 0;
        }
    }

    return ngx_http_mcp_gather_page(call, &merge, reply);
}


/* no upstream has a list: answers with the first error, or the module's list */

static ngx_int_t
ngx_http_mcp_gather_none(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_uint_t                   i;
    ngx_http_mcp_gather_t       *gather;
    ngx_http_mcp_gather_part_t  *part;

    gather = call->data;

    for (i = 0; i < gather->n; i++) {
        part = &gather->parts[i];

        if (part->state == NGX_HTTP_MCP_GATHER_FAILED) {
            *reply = part->reply;

            gather->x = part->x;
            call->ctx->upstream = part->upstream->name;

            return part->error ? ngx_http_mcp_gather_adapt(part, reply)
                               : NGX_OK;
        }
    }

    if (ngx_http_mcp_call_own_list(call, &reply->result) == NGX_OK) {
        return NGX_OK;
    }

    return ngx_http_mcp_reply_no_method(reply);
}


/* changes an upstream's error, which is in *reply, to that of the client */

static ngx_int_t
ngx_http_mcp_gather_adapt(ngx_http_mcp_gather_part_t *part,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t            code, *text;
    ngx_mcp_json_t       json;
    ngx_http_mcp_ctx_t  *ctx;
    ngx_http_request_t  *r;

    static ngx_mcp_path_e  paths[] = { NGX_MCP_PATH_ID, NGX_MCP_PATH_NONE };

    r = part->call->r;
    ctx = part->call->ctx;
    text = &reply->parts[0];

    if (ngx_mcp_json_scan(&json, text) != NGX_OK) {
        return NGX_ERROR;
    }

    *text = ngx_mcp_message_replace(r->pool, text, &json, paths,
                                    &ctx->message->id);

    if (text->data == NULL || ngx_mcp_json_scan(&json, text) != NGX_OK) {
        return NGX_ERROR;
    }

    code = ngx_mcp_json_span(&json, NGX_MCP_PATH_ERROR_CODE, text->data);

    ctx->error = ngx_mcp_error_code(&code);
    ctx->failed = 1;

    if (ctx->client->answer) {
        reply->status = part->status;

        if (ctx->client->answer(r, ctx, &json, text, 0, &reply->status)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        reply->code = reply->status ? ctx->error : 0;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_gather_merge(ngx_http_mcp_call_t *call, ngx_mcp_merge_t *merge)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_pool_t                  *temp;
    ngx_mcp_merge_part_t        *parts;
    ngx_mcp_merge_lists_t        lists;
    ngx_http_mcp_gather_t       *gather;
    ngx_mcp_list_content_t       content;
    ngx_http_mcp_gather_part_t  *part;

    gather = call->data;

    temp = ngx_create_pool(4096, call->r->connection->log);
    if (temp == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    parts = ngx_pcalloc(temp, gather->n * sizeof(ngx_mcp_merge_part_t));
    if (parts == NULL) {
        goto done;
    }

    for (i = 0; i < gather->n; i++) {
        part = &gather->parts[i];

        parts[i].upstream = part->upstream->name;
        parts[i].prefix = part->upstream->prefix;
        parts[i].source = i;

        if (part->state != NGX_HTTP_MCP_GATHER_LISTED) {
            ngx_str_set(&parts[i].text, "[]");
            continue;
        }

        if (part->kept.len) {
            parts[i].text = part->kept;
            continue;
        }

        if (ngx_mcp_pages_end(&part->pages, &content) != NGX_OK) {
            goto done;
        }

        parts[i].text = content.text;

        if (call->passing) {
            ngx_http_mcp_list_cache_keep(&call->ctx->conf->bridge,
                                         &call->ctx->caller,
                                         &part->upstream->name, &content,
                                         call->forgotten);
        }
    }

    lists.kind = gather->kind;
    lists.parts = parts;
    lists.n = gather->n;

    rc = ngx_mcp_merge(merge, &lists, call->r->pool, temp);

    if (rc == NGX_OK && !call->route.cut) {
        ngx_http_mcp_list_log_hidden(&call->ctx->conf->bridge, &lists);
    }

done:

    ngx_destroy_pool(temp);

    return rc;
}


/* learns routes, so that a resource is read at the upstream that lists it */

static void
ngx_http_mcp_gather_learn(ngx_http_mcp_call_t *call, ngx_mcp_merge_t *merge)
{
    ngx_uint_t              i;
    ngx_http_mcp_gather_t  *gather;

    gather = call->data;

    for (i = 0; i < merge->n && i < NGX_MCP_PROVIDERS; i++) {
        ngx_http_mcp_route_learn(&call->ctx->conf->bridge, &call->ctx->caller,
                                 gather->parts[merge->entries[i].source]
                                     .upstream,
                                 &merge->entries[i].name);
    }
}


/* makes a page of a large list, which is gathered again for each page */

static ngx_int_t
ngx_http_mcp_gather_page(ngx_http_mcp_call_t *call, ngx_mcp_merge_t *merge,
    ngx_http_mcp_reply_t *reply)
{
    ngx_array_t               *pages;
    ngx_http_mcp_gather_t     *gather;
    ngx_http_mcp_list_copy_t   list;

    gather = call->data;

    pages = ngx_mcp_pages_split(&merge->text, NGX_MCP_PAGE_SIZE,
                                NGX_MCP_PAGE_ENTRIES, call->r->pool);
    if (pages == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&list, sizeof(ngx_http_mcp_list_copy_t));

    list.list.kind = gather->kind;
    list.text = merge->text;
    list.pages = pages->elts;
    list.npages = pages->nelts;

    if (list.npages > 1) {
        list.list.version = ((uint64_t) ngx_murmur_hash2(list.text.data,
                                                         list.text.len) << 32)
                            | ngx_crc32_long(list.text.data, list.text.len);
    }

    return ngx_http_mcp_call_list_page(call, &list, reply);
}


/*
 * Replaces a cut name by the listed whole name; an unknown name is kept.
 * Returns as start() does.
 */

static ngx_int_t
ngx_http_mcp_gather_look_up(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t               name;
    ngx_mcp_merge_t         merge;
    ngx_http_mcp_gather_t  *gather;
    ngx_mcp_merge_entry_t  *entry;

    gather = call->data;

    switch (gather->parts[0].state) {

    case NGX_HTTP_MCP_GATHER_FAILED:
        return ngx_http_mcp_gather_none(call, reply);

    case NGX_HTTP_MCP_GATHER_LISTED:

        name = ngx_mcp_message_string(call->message, call->message->subject,
                                      call->r->pool);

        if (name.data == NULL
            || ngx_http_mcp_gather_merge(call, &merge) != NGX_OK)
        {
            return NGX_ERROR;
        }

        entry = ngx_mcp_merge_find(&merge, &name);

        if (entry) {
            call->route.local = entry->local;
        }
    }

    call->route.cut = 0;

    return NGX_DECLINED;
}
