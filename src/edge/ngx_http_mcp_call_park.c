
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call_park.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_listener.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_pooled.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_mcp_lease.h"
#include "ngx_mcp_splice.h"


/* the minimum of events that the line of a parked call can hold */
#define NGX_HTTP_MCP_PARK_EVENTS  256

/*
 * ms for which a call waits for the GET stream of its upstream session, and ms
 * for which other calls do not wait for that of an upstream that was too slow
 */
#define NGX_HTTP_MCP_PARK_STREAM  2000
#define NGX_HTTP_MCP_PARK_LATE    60000

/*
 * A call tries to join PARK_FIRST exclusive sessions in turn, then random ones,
 * at most PARK_TRIES in all
 */
#define NGX_HTTP_MCP_PARK_FIRST   4
#define NGX_HTTP_MCP_PARK_TRIES   32

/* ms between checks in a quitting worker whether a newer worker runs */
#define NGX_HTTP_MCP_PARK_QUIT    1000

/* ms until the first of these checks at a reload: new workers may begin late */
#define NGX_HTTP_MCP_PARK_RELOAD  3500


/* a call in an exclusive session; in r->pool */

struct ngx_http_mcp_call_park_s {
    ngx_http_mcp_call_t              *call;
    ngx_http_mcp_upstream_request_t  *ureq;
    ngx_str_t                         capabilities;  /* raw client capabilities
                                                        that let an upstream ask
                                                        the client */
    ngx_mcp_ref_t                     session;       /* the exclusive session;
                                                        block 0: none yet */
    ngx_str_t                         id;            /* id of the exclusive
                                                        session, a UUID */
    ngx_http_mcp_call_line_t          line;          /* general line of the
                                                        exclusive session, with
                                                        the messages of the
                                                        upstream's GET stream */
    ngx_uint_t                        listens;       /* serial of the upstream
                                                        session for whose GET
                                                        stream the call waits or
                                                        waited; 0: none */
    ngx_msec_t                        listen_end;    /* time until which the
                                                        call waits for the GET
                                                        stream */
    ngx_http_mcp_round_t             *round;         /* the last round; NULL:
                                                        the upstream has asked
                                                        nothing so far */
    ngx_event_t                       timer;         /* end of the time in which
                                                        the client of a parked
                                                        call has to come back */
    unsigned                          opens:1;       /* this call opens the GET
                                                        stream if nobody else
                                                        holds it */
    unsigned                          sending:1;     /* the round is being sent
                                                        to the client */
    unsigned                          parked:1;      /* the client was asked:
                                                        the call runs as a
                                                        call of the exclusive
                                                        session */
    unsigned                          unread:1;      /* nobody reads the line of
                                                        the call: messages of
                                                        the upstream wait */
};


static ngx_int_t ngx_http_mcp_call_park_capabilities(
    ngx_http_mcp_call_t *call, ngx_str_t *out);
static ngx_uint_t ngx_http_mcp_call_park_declare(ngx_str_t *name,
    ngx_str_t *value, void *data);
static ngx_int_t ngx_http_mcp_call_park_session(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_call_park_join(ngx_http_mcp_call_t *call,
    ngx_str_t *principal);
static ngx_int_t ngx_http_mcp_call_park_listen(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_call_park_open_line(ngx_http_mcp_call_park_t *park);
static void ngx_http_mcp_call_park_line_ended(ngx_http_mcp_call_line_t *line);
static ngx_int_t ngx_http_mcp_call_park_message(ngx_http_mcp_call_line_t *line,
    ngx_str_t *text, ngx_uint_t flags, uint64_t before);
static void ngx_http_mcp_call_park_notified(ngx_http_mcp_call_park_t *park,
    ngx_mcp_json_t *json, ngx_str_t *text);
static ngx_int_t ngx_http_mcp_call_park_add(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_uint_t method);
static void ngx_http_mcp_call_park_round(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_call_park_send(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_park_done(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_park_log(ngx_http_request_t *r);
static void ngx_http_mcp_call_park_no_room(ngx_http_mcp_call_t *call);
static ngx_uint_t ngx_http_mcp_call_park_orphan(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_park_wait(ngx_http_mcp_call_park_t *park,
    ngx_msec_t time);
static void ngx_http_mcp_call_park_timeout(ngx_event_t *ev);
static void ngx_http_mcp_call_park_answer(ngx_http_mcp_call_t *call,
    const char *why);
static void ngx_http_mcp_call_park_reply(ngx_http_mcp_call_park_t *park,
    ngx_mcp_server_request_t *open, ngx_int_t code, const char *what);


ngx_int_t
ngx_http_mcp_call_park_prepare(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_str_t                  capabilities;
    ngx_http_mcp_call_park_t  *park;

    if (!call->ctx->client->sessionless) {
        return NGX_OK;
    }

    ureq->gives_state =
        (call->message->json.members[NGX_MCP_PATH_STATE].type
         != NGX_MCP_JSON_ABSENT);

    if (call->park == NULL) {

        /* the client is asked by a stream, which can be ended at any time */

        if (!ngx_http_mcp_call_park_may(call)
            || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE))
        {
            return NGX_OK;
        }

        if (ngx_http_mcp_call_park_capabilities(call, &capabilities)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (capabilities.len == 0) {
            return NGX_OK;
        }

        park = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_call_park_t));
        if (park == NULL) {
            return NGX_ERROR;
        }

        park->call = call;
        park->capabilities = capabilities;

        park->line.call = call;
        park->line.message = ngx_http_mcp_call_park_message;
        park->line.ended = ngx_http_mcp_call_park_line_ended;
        park->line.data = park;

        park->timer.handler = ngx_http_mcp_call_park_timeout;
        park->timer.data = park;
        park->timer.log = call->r->connection->log;

        call->park = park;
    }

    call->park->ureq = ureq;
    call->park->listens = 0;

    ureq->exclusive = ngx_http_mcp_call_park_session;
    ureq->ready = ngx_http_mcp_call_park_listen;

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_call_park_may(ngx_http_mcp_call_t *call)
{
    switch (call->message->method_code) {

    case NGX_MCP_METHOD_TOOLS_CALL:
    case NGX_MCP_METHOD_PROMPTS_GET:
    case NGX_MCP_METHOD_RESOURCES_READ:
        return call->batch == NULL;

    default:
        return 0;
    }
}


/*
 * Sets *out to those capabilities of the client that let a server send it
 * requests; empty: there are none
 */

static ngx_int_t
ngx_http_mcp_call_park_capabilities(ngx_http_mcp_call_t *call, ngx_str_t *out)
{
    ngx_str_t  *capabilities;

    ngx_str_null(out);

    capabilities = &call->ctx->caller.capabilities;

    if (capabilities->len <= sizeof("{}") - 1) {
        return NGX_OK;
    }

    if (ngx_http_mcp_string_copy(call->r->pool, out, capabilities) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_mcp_cut(out, ngx_http_mcp_call_park_declare, NULL) == 0) {
        ngx_str_null(out);
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_call_park_declare(ngx_str_t *name, ngx_str_t *value, void *data)
{
    static ngx_str_t  elicitation = ngx_string("elicitation");
    static ngx_str_t  sampling = ngx_string("sampling");
    static ngx_str_t  roots = ngx_string("roots");

    if (value->data[0] != '{') {
        return 0;
    }

    if (ngx_mcp_equal(name, &roots)) {

        /* clients of 2026-07-28 send no roots/list_changed notifications */

        value->data[1] = '}';
        value->len = 2;

        return 1;
    }

    return ngx_mcp_equal(name, &elicitation) || ngx_mcp_equal(name, &sampling);
}


/*
 * The handler exclusive() of an upstream request: gives the request an
 * exclusive session
 */

static ngx_int_t
ngx_http_mcp_call_park_session(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                  rc;
    ngx_str_t                  principal;
    ngx_http_mcp_call_t       *call;
    ngx_http_mcp_call_park_t  *park;

    call = ureq->data;
    park = call->park;

    if (park->session.block == 0) {

        if (ureq->principal(ureq, &principal) != NGX_OK) {
            return NGX_ERROR;
        }

        rc = ngx_http_mcp_call_park_join(call, &principal);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc != NGX_OK) {
            ngx_http_mcp_pooled_refuse(ureq);

            if (rc == NGX_BUSY) {
                ngx_mcp_count(call->ctx->conf->zone,
                              NGX_MCP_COUNTER_CALLS_REFUSED, 1);
                ngx_str_set(&ureq->why, "the limit of running requests is "
                            "reached (mcp_call_limit)");
            }

            return NGX_AGAIN;
        }

        /* "hash $mcp_session_id" chooses the upstream's server by this id */

        call->ctx->session_id = park->id;
    }

    ureq->owner = park->session;
    ureq->capabilities = park->capabilities;
    ureq->session = park->id;

    return NGX_OK;
}


/*
 * Joins a free exclusive session of this principal and these capabilities; if
 * the caller has no identity, also of this address.  The first sessions are
 * tried in turn, so that few are made; then random ones out of more than twice
 * as many as are in use, so that half of them are free.
 */

static ngx_int_t
ngx_http_mcp_call_park_join(ngx_http_mcp_call_t *call, ngx_str_t *principal)
{
    u_char                    *p, *last;
    ngx_int_t                  rc;
    ngx_str_t                  key;
    ngx_uint_t                 i, n;
    ngx_mcp_caller_t          *caller;
    ngx_mcp_session_new_t      in;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_call_park_t  *park;

    park = call->park;
    mlcf = call->ctx->conf;
    caller = &call->ctx->caller;

    key.data = ngx_pnalloc(call->r->pool, sizeof("exclusive") + principal->len
                                          + caller->share.len + 1
                                          + park->capabilities.len
                                          + NGX_INT_T_LEN);
    park->id.data = ngx_pnalloc(call->r->pool, NGX_MCP_UUID_LEN);
    park->id.len = NGX_MCP_UUID_LEN;

    if (key.data == NULL || park->id.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(key.data, "exclusive", sizeof("exclusive"));
    p = ngx_cpymem(p, principal->data, principal->len);
    p = ngx_cpymem(p, caller->share.data, caller->share.len);
    *p++ = '\0';
    last = ngx_cpymem(p, park->capabilities.data, park->capabilities.len);

    ngx_memzero(&in, sizeof(ngx_mcp_session_new_t));

    in.id = park->id;
    in.endpoint = mlcf->name;
    in.tenant = caller->tenant;
    in.identity = caller->identity;
    in.client = caller->share;
    in.list_key = caller->audience_key;
    in.revision = NGX_MCP_REVISION_LATEST_LEGACY;
    in.event_max = ngx_max(mlcf->event_max, NGX_HTTP_MCP_PARK_EVENTS);
    in.event_size = mlcf->message_limit;

    /* sessions are limited, as each holds a GET stream of the upstream */

    in.limit = mlcf->call_limit;

    if (ngx_http_mcp_call_limit_key(call, "exclusive", &in.limit_key)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = NGX_BUSY;

    for (i = 0; rc == NGX_BUSY && i < NGX_HTTP_MCP_PARK_TRIES; i++) {

        n = i;

        if (i >= NGX_HTTP_MCP_PARK_FIRST) {
            n = ngx_random() % (NGX_HTTP_MCP_PARK_TRIES
                                + 2 * call->record.nrunning);
        }

        key.len = ngx_sprintf(last, "%ui", n) - key.data;

        ngx_http_mcp_stable_id(ngx_http_mcp_router_next(&mlcf->bridge.router,
                                                        NULL),
                               &caller->tenant, &key, park->id.data);

        rc = ngx_mcp_exclusive_join(mlcf->zone, &in, &call->record,
                                    &park->session);
    }

    return rc;
}


/*
 * The handler ready() of an upstream request: waits for the GET stream of the
 * upstream session.  A server may send requests on that stream instead of the
 * call's; they may be lost if the GET stream is not open yet.
 */

static ngx_int_t
ngx_http_mcp_call_park_listen(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                        rc;
    ngx_msec_int_t                   left;
    ngx_mcp_zone_t                  *zone;
    ngx_mcp_caller_t                 caller;
    ngx_http_mcp_call_t             *call;
    ngx_http_mcp_call_park_t        *park;
    ngx_http_mcp_upstream_worker_t  *worker;

    call = ureq->data;
    park = call->park;
    zone = ureq->upstream->zone;
    worker = ureq->upstream->worker;

    if (ureq->us->id.len == 0) {

        /* the upstream keeps no sessions, and has no GET stream */

        return NGX_OK;
    }

    if (park->listens != ureq->us->serial) {
        park->opens = 1;
        park->listens = ureq->us->serial;
        park->listen_end = ngx_current_msec + NGX_HTTP_MCP_PARK_STREAM;

        if (ngx_mcp_upstream_session_stream_await(zone, ureq->us->ref,
                                                  call->record.ref)
            != NGX_DONE)
        {
            ngx_http_mcp_call_park_open_line(park);
        }
    }

    rc = ngx_mcp_upstream_session_stream_await(zone, ureq->us->ref,
                                               call->record.ref);

    if (rc == NGX_DECLINED && park->opens && park->line.open) {
        park->opens = 0;

        caller = call->ctx->caller;
        caller.session = park->session;
        caller.session_id = park->id;

        ngx_http_mcp_listener_start(ureq->upstream, call->r, &caller, 1);

        rc = ngx_mcp_upstream_session_stream_await(zone, ureq->us->ref,
                                                   call->record.ref);
    }

    if (rc != NGX_AGAIN
        || (worker->stream_late
            && ngx_current_msec - worker->stream_late
               < NGX_HTTP_MCP_PARK_LATE))
    {
        return NGX_OK;
    }

    left = (ngx_msec_int_t) (park->listen_end - ngx_current_msec);

    if (left <= 0) {
        worker->stream_late = ngx_current_msec;

        /* log lines must not end with an old "while ..." of nginx */

        call->r->connection->log->action = NULL;

        ngx_log_error(NGX_LOG_INFO, call->r->connection->log, 0,
                      "mcp upstream \"%V\" has not answered GET on its "
                      "session after %d ms; what it asks there during the "
                      "request may be lost",
                      &ureq->upstream->name, NGX_HTTP_MCP_PARK_STREAM);
        return NGX_OK;
    }

    ngx_http_mcp_upstream_request_later(ureq, left);

    return NGX_AGAIN;
}


static void
ngx_http_mcp_call_park_open_line(ngx_http_mcp_call_park_t *park)
{
    if (!park->line.open) {
        (void) ngx_http_mcp_call_line_open(&park->line, park->session,
                                           NGX_MCP_GENERAL_CHANNEL, NULL);
    }
}


/*
 * The general line has ended: the session has ended, and the call will end; or
 * the worker died that held the upstream's GET stream, and another stream is
 * opened.
 */

static void
ngx_http_mcp_call_park_line_ended(ngx_http_mcp_call_line_t *line)
{
    ngx_mcp_caller_t           caller;
    ngx_http_mcp_call_park_t  *park;

    park = line->data;

    ngx_http_mcp_call_line_close(line);
    ngx_http_mcp_call_park_open_line(park);

    if (line->open && park->listens) {
        caller = park->call->ctx->caller;
        caller.session = park->session;
        caller.session_id = park->id;

        ngx_http_mcp_listener_start(park->ureq->upstream, park->call->r,
                                    &caller, 1);
    }
}


/*
 * Handles a message of the upstream's GET stream; a request has an id of the
 * module already
 */

static ngx_int_t
ngx_http_mcp_call_park_message(ngx_http_mcp_call_line_t *line, ngx_str_t *text,
    ngx_uint_t flags, uint64_t before)
{
    ngx_str_t                  id;
    ngx_uint_t                 method;
    ngx_mcp_json_t             json;
    ngx_http_mcp_call_t       *call;
    ngx_http_mcp_call_park_t  *park;
    ngx_mcp_server_request_t   open;

    park = line->data;
    call = line->call;

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING
        || (call->left && !park->parked)
        || ngx_mcp_json_scan(&json, text) != NGX_OK)
    {
        return NGX_OK;
    }

    if (json.members[NGX_MCP_PATH_ID].count == 0) {
        ngx_http_mcp_call_park_notified(park, &json, text);
        return NGX_OK;
    }

    if (park->parked) {
        ngx_http_mcp_call_park_deliver(call, text, 1, NGX_MCP_LEVEL_UNSET);
        return NGX_OK;
    }

    method = ngx_mcp_method_of(&json, text);

    if (ngx_http_mcp_call_park_add(call, text, method) != NGX_OK) {
        id = ngx_mcp_json_span(&json, NGX_MCP_PATH_ID, text->data);

        if (ngx_mcp_server_request_find(call->ctx->conf->zone, park->session,
                                        &id, 1, call->r->pool, &open)
            == NGX_OK)
        {
            ngx_http_mcp_call_park_reply(park, &open, NGX_MCP_METHOD_NOT_FOUND,
                                         "the client cannot receive requests");
        }
    }

    return NGX_OK;
}


static void
ngx_http_mcp_call_park_notified(ngx_http_mcp_call_park_t *park,
    ngx_mcp_json_t *json, ngx_str_t *text)
{
    ngx_http_mcp_call_t  *call;

    call = park->call;

    if (park->unread || call->large
        || (park->parked && ngx_mcp_call_full(call->ctx->conf->zone,
                                              call->record.ref)))
    {
        /*
         * The room on the call's line is needed for requests, and a client that
         * reads nothing must not hold up the upstream's GET stream: the
         * notification is dropped.
         */

        return;
    }

    ngx_http_mcp_call_notified(call, json, text, &park->ureq->sent_id,
                               &park->ureq->caller_token);
}


void
ngx_http_mcp_call_notified(ngx_http_mcp_call_t *call, ngx_mcp_json_t *json,
    ngx_str_t *text, ngx_str_t *theirs, ngx_str_t *own)
{
    ngx_str_t        out, token;
    ngx_uint_t       level;
    ngx_pool_t      *pool;
    ngx_mcp_path_e   path[2];

    switch (ngx_mcp_method_of(json, text)) {

    case NGX_MCP_METHOD_OTHER:
        (void) ngx_http_mcp_call_deliver(call, text, 0, NGX_MCP_LEVEL_UNSET);
        return;

    case NGX_MCP_METHOD_MESSAGE:
        level = ngx_mcp_level_of(json, text);

        /* the client's next request has the log level for a parked call */

        if ((call->park && call->park->parked)
            || (call->ctx->caller.level != NGX_MCP_LEVEL_UNSET
                && level >= call->ctx->caller.level))
        {
            (void) ngx_http_mcp_call_deliver(call, text, 0, level);
        }

        return;

    case NGX_MCP_METHOD_PROGRESS:
        break;

    default:
        return;
    }

    token = ngx_mcp_json_span(json, NGX_MCP_PATH_TOKEN, text->data);

    if (token.len == 0 || own->len == 0
        || (theirs && !ngx_mcp_json_same_id(&token, theirs)))
    {
        return;
    }

    if (ngx_mcp_json_same_id(&token, own)) {
        (void) ngx_http_mcp_call_deliver(call, text, 0, NGX_MCP_LEVEL_UNSET);
        return;
    }

    pool = ngx_create_pool(ngx_pagesize, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    path[0] = NGX_MCP_PATH_TOKEN;
    path[1] = NGX_MCP_PATH_NONE;

    out = ngx_mcp_message_replace(pool, text, json, path, own);

    if (out.data) {
        (void) ngx_http_mcp_call_deliver(call, &out, 0, NGX_MCP_LEVEL_UNSET);
    }

    ngx_destroy_pool(pool);
}


ngx_uint_t
ngx_http_mcp_call_park_ready(ngx_http_mcp_call_t *call)
{
    return call->park && call->park->session.block;
}


ngx_int_t
ngx_http_mcp_call_park_ask(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_uint_t method)
{
    ngx_int_t                  rc;
    ngx_str_t                  out;
    ngx_pool_t                *pool;
    ngx_mcp_caller_t           caller;
    ngx_http_mcp_call_park_t  *park;

    park = call->park;

    if (!ngx_http_mcp_call_park_ready(call) || park->ureq != ureq
        || call->left || call->state != NGX_HTTP_MCP_CALL_RUNNING)
    {
        return NGX_DECLINED;
    }

    caller = call->ctx->caller;
    caller.session = park->session;

    if (ngx_http_mcp_server_request_to_client(ureq, &caller, text, &pool, &out)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_call_park_add(call, &out, method);

    if (pool) {
        ngx_destroy_pool(pool);
    }

    return rc;
}


/* adds a request, under an id of the module, to the round of a call */

static ngx_int_t
ngx_http_mcp_call_park_add(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t method)
{
    ngx_mcp_json_t             json;
    ngx_mcp_event_t            event;
    ngx_mcp_cursor_t           cursor;
    ngx_http_mcp_round_t      *round;
    ngx_http_mcp_call_park_t  *park;

    park = call->park;

    if (park->round == NULL) {
        round = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_round_t));
        if (round == NULL) {
            return NGX_DECLINED;
        }

        round->timer.handler = ngx_http_mcp_call_park_round;
        round->timer.data = park;
        round->timer.log = call->r->connection->log;

        park->round = round;
    }

    if (ngx_mcp_json_scan(&json, text) != NGX_OK
        || ngx_http_mcp_round_add(call, park->round, &json, text, method)
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = text;
    event.nparts = 1;

    if (ngx_mcp_log_call(call->ctx->conf->zone, call->record.ref, &event,
                         &cursor)
        != NGX_OK)
    {
        park->round->input.n--;
        return NGX_DECLINED;
    }

    if (park->round->input.n == 1) {
        park->round->position = cursor.own - 1;
        ngx_add_timer(&park->round->timer, NGX_HTTP_MCP_ROUND_TIME);
    }

    return NGX_OK;
}


/*
 * Ends a round and sends it to the client.  The client of a parked call gets
 * it from the worker that reads the line for the client's next request.
 */

static void
ngx_http_mcp_call_park_round(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_mcp_call_t       *call;
    ngx_http_mcp_round_t      *round;
    ngx_http_mcp_call_park_t  *park;

    park = ev->data;
    call = park->call;
    round = park->round;
    c = call->r->connection;

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        return;
    }

    /* the upstream's next messages wait until the client comes back */

    park->unread = 1;

    call->answerer->room(call, 0);

    if (!park->parked && ngx_http_mcp_call_park_send(call) != NGX_OK) {

        ngx_http_mcp_call_park_answer(call, "the client cannot be asked");

        round->input.n = 0;
        park->unread = 0;

        call->answerer->room(call, 1);
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_mcp_call_park_send(ngx_http_mcp_call_t *call)
{
    ngx_str_t                     text;
    ngx_http_mcp_call_park_t     *park;
    ngx_http_mcp_request_state_t  state;

    park = call->park;

    ngx_http_mcp_call_open_stream(call);

    if (call->ctx->stream == NULL) {
        return NGX_DECLINED;
    }

    state.call = call->record.ref;
    state.position = park->round->position;
    state.round = ngx_mcp_call_park(call->ctx->conf->zone, call->record.ref,
                                    NGX_HTTP_MCP_INPUT_TIME);

    text = ngx_http_mcp_round_compose(call, park->round, &state);

    if (text.data == NULL || state.round == 0) {
        return NGX_DECLINED;
    }

    park->sending = 1;

    (void) ngx_http_mcp_call_deliver(call, &text, 0, NGX_MCP_LEVEL_UNSET);

    if (call->large == NULL) {
        (void) ngx_http_mcp_call_park_sent(call);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_call_park_sent(ngx_http_mcp_call_t *call)
{
    if (call->park == NULL || !call->park->sending || call->left) {
        return 0;
    }

    call->park->sending = 0;

    ngx_http_mcp_call_park_done(call);

    return 1;
}


/* parks the call: it runs on as a call of the exclusive session */

static void
ngx_http_mcp_call_park_done(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_ctx_t        *ctx;
    ngx_http_mcp_call_park_t  *park;

    ctx = call->ctx;
    park = call->park;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, call->r->connection->log, 0,
                   "mcp call parked, %uD", call->record.ref.block);

    park->parked = 1;

    ngx_http_mcp_call_park_log(call->r);

    ctx->client = ngx_http_mcp_client_default;
    ctx->caller.session = park->session;
    ctx->caller.session_id = park->id;
    ctx->caller.revision = NGX_MCP_REVISION_LATEST_LEGACY;

    ngx_http_mcp_call_park_wait(park, NGX_HTTP_MCP_INPUT_TIME);

    ngx_http_mcp_stream_close(ctx->stream, NGX_MCP_COUNTER_STREAMS_DONE);

    call->answerer->room(call, 0);
}


/* logs the request when its response is sent, as the call may last for long */

static void
ngx_http_mcp_call_park_log(ngx_http_request_t *r)
{
    ngx_uint_t                  i, n;
    ngx_http_handler_pt        *handlers;
    ngx_http_core_main_conf_t  *cmcf;

    if (r->logged) {
        return;
    }

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    handlers = cmcf->phases[NGX_HTTP_LOG_PHASE].handlers.elts;
    n = cmcf->phases[NGX_HTTP_LOG_PHASE].handlers.nelts;

    for (i = 0; i < n; i++) {
        (void) handlers[i](r);
    }

    r->logged = 1;
}


void
ngx_http_mcp_call_park_deliver(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t asks, ngx_uint_t level)
{
    ngx_int_t                  rc;
    ngx_http_mcp_round_t      *round;
    ngx_http_mcp_call_park_t  *park;

    rc = ngx_http_mcp_call_deliver(call, text,
                                   asks ? NGX_MCP_EVENT_REQUEST : 0, level);
    park = call->park;

    if (park == NULL || !park->parked) {
        return;
    }

    if (rc == NGX_ERROR && asks) {
        ngx_http_mcp_call_park_no_room(call);
        return;
    }

    round = park->round;

    if (asks && !round->timer.timer_set) {
        ngx_add_timer(&round->timer, NGX_HTTP_MCP_ROUND_TIME);
    }

    /* the line must not drop a request before the client has read it */

    if (ngx_mcp_call_full(call->ctx->conf->zone, call->record.ref)) {
        call->answerer->room(call, 0);
    }
}


/* the line has no room for a request: cancels the call */

static void
ngx_http_mcp_call_park_no_room(ngx_http_mcp_call_t *call)
{
    call->r->connection->log->action = NULL;

    ngx_log_error(NGX_LOG_ERR, call->r->connection->log, 0,
                  "mcp request %V is cancelled: mcp upstream \"%V\" asks its "
                  "client for something, and the zone has no room for that; "
                  "give \"mcp_zone\" a larger size",
                  &call->message->id, &call->park->ureq->upstream->name);

    ngx_http_mcp_call_park_answer(call, "nginx has no room for the request");

    ngx_http_mcp_call_abort(call, NGX_HTTP_MCP_CALL_LEFT);
}


void
ngx_http_mcp_call_park_wake(ngx_http_mcp_call_t *call, ngx_uint_t why)
{
    ngx_http_mcp_call_park_t  *park;

    park = call->park;

    if (park == NULL || !park->parked
        || call->state != NGX_HTTP_MCP_CALL_RUNNING)
    {
        return;
    }

    if (why & NGX_MCP_WAKE_INPUT) {

        /* the timer of an old round must not stop the messages again */

        if (park->round->timer.timer_set) {
            ngx_del_timer(&park->round->timer);
        }

        park->unread = 0;
    }

    if (!park->unread && why & (NGX_MCP_WAKE_NEWS|NGX_MCP_WAKE_INPUT)) {
        call->answerer->room(call, 1);
    }
}


void
ngx_http_mcp_call_park_quit(ngx_mcp_zone_t *zone)
{
    ngx_msec_t             wait;
    ngx_queue_t           *q;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_calls_t  *calls;

    calls = &ngx_http_mcp_calls;

    if (calls->nkept == 0) {
        return;
    }

    /* newer workers may not have begun yet, or be about to quit as well */

    wait = ngx_mcp_zone_reloaded(zone) ? NGX_HTTP_MCP_PARK_RELOAD
                                       : NGX_HTTP_MCP_PARK_QUIT;

    for (q = ngx_queue_head(&calls->kept);
         q != ngx_queue_sentinel(&calls->kept);
         q = ngx_queue_next(q))
    {
        call = ngx_queue_data(q, ngx_http_mcp_call_t, kept_queue);

        if (call->park && call->state == NGX_HTTP_MCP_CALL_RUNNING
            && call->ctx->conf->zone == zone)
        {
            ngx_add_timer(&call->park->timer, wait);
        }
    }
}


/* returns whether there is no other worker for the client's next request */

static ngx_uint_t
ngx_http_mcp_call_park_orphan(ngx_http_mcp_call_t *call)
{
    return ngx_exiting && !ngx_mcp_lease_newer(call->ctx->conf->zone);
}


static void
ngx_http_mcp_call_park_wait(ngx_http_mcp_call_park_t *park, ngx_msec_t time)
{
    /* a worker that is exiting already does not learn that nginx quits */

    if (ngx_exiting) {
        time = ngx_min(time, NGX_HTTP_MCP_PARK_QUIT);
    }

    ngx_add_timer(&park->timer, time);
}


/* cancels the call, unless its client has come back meanwhile */

static void
ngx_http_mcp_call_park_timeout(ngx_event_t *ev)
{
    ngx_msec_t                 left;
    ngx_http_mcp_call_t       *call;
    ngx_http_mcp_call_park_t  *park;

    park = ev->data;
    call = park->call;

    if (call->state != NGX_HTTP_MCP_CALL_RUNNING) {
        return;
    }

    left = ngx_mcp_call_park_time_left(call->ctx->conf->zone, call->record.ref,
                                       NGX_HTTP_MCP_INPUT_TIME);

    if (left
        && (!ngx_http_mcp_call_park_orphan(call)
            || ngx_mcp_call_has_stream(call->ctx->conf->zone,
                                       call->record.ref)))
    {
        ngx_http_mcp_call_park_wait(park, left);
        return;
    }

    call->r->connection->log->action = NULL;

    ngx_log_error(NGX_LOG_INFO, call->r->connection->log, 0,
                  "mcp request %V is cancelled: the upstream asked its client "
                  "for something, and %s", &call->message->id,
                  left ? "nginx quits before the client came back"
                       : "the client did not come back in time");

    ngx_http_mcp_call_park_answer(call,
                                  left ? "the server quits"
                                       : "the client did not answer in time");

    ngx_http_mcp_call_abort(call, NGX_HTTP_MCP_CALL_LEFT);
}


/*
 * Answers the upstream's open requests in place of the client: elicitations
 * with "cancel", others with an error whose message is "why"
 */

static void
ngx_http_mcp_call_park_answer(ngx_http_mcp_call_t *call, const char *why)
{
    ngx_mcp_server_request_t   open;
    ngx_http_mcp_call_park_t  *park;

    park = call->park;

    while (ngx_mcp_server_request_next(call->ctx->conf->zone, park->session,
                                       call->r->pool, &open)
           == NGX_OK)
    {
        if (open.method == NGX_MCP_METHOD_ELICITATION) {
            ngx_http_mcp_call_park_reply(park, &open, 0,
                                         "{\"action\":\"cancel\"}");
        } else {
            ngx_http_mcp_call_park_reply(park, &open, NGX_MCP_INTERNAL_ERROR,
                                         why);
        }
    }
}


static void
ngx_http_mcp_call_park_reply(ngx_http_mcp_call_park_t *park,
    ngx_mcp_server_request_t *open, ngx_int_t code, const char *what)
{
    ngx_http_mcp_audience_t           audience;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = park->ureq;

    if (!ngx_mcp_equal(&open->upstream, &ureq->upstream->name)
        || ureq->us == NULL || ureq->us->serial != open->serial)
    {
        return;
    }

    ngx_http_mcp_call_audience(park->call, ureq, &audience);

    ngx_http_mcp_server_request_reply(ureq, &audience, &open->id, code, what);
}


void
ngx_http_mcp_call_park_end(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_call_park_t  *park;

    park = call->park;

    if (park == NULL) {
        return;
    }

    /* a call that has ended is not parked once its stream has sent all */

    park->sending = 0;

    if (park->timer.timer_set) {
        ngx_del_timer(&park->timer);
    }

    if (park->round && park->round->timer.timer_set) {
        ngx_del_timer(&park->round->timer);
    }

    ngx_http_mcp_call_line_close(&park->line);

    if (park->session.block == 0) {
        return;
    }

    if (call->state != NGX_HTTP_MCP_CALL_ANSWERED || !park->ureq->answered) {
        ngx_mcp_exclusive_end(call->ctx->conf->zone, park->session);
        return;
    }

    /* the upstream may have answered the call while its requests are open */

    ngx_http_mcp_call_park_answer(call, "the request has ended");
}


ngx_int_t
ngx_http_mcp_round_add(ngx_http_mcp_call_t *call, ngx_http_mcp_round_t *round,
    ngx_mcp_json_t *json, ngx_str_t *text, ngx_uint_t method)
{
    ngx_str_t                      id, params;
    ngx_pool_t                    *pool;
    ngx_http_mcp_input_t           one;
    ngx_http_mcp_input_request_t  *request;

    if (round->input.n == NGX_HTTP_MCP_INPUT_MAX
        || (method != NGX_MCP_METHOD_ELICITATION
            && method != NGX_MCP_METHOD_SAMPLING
            && method != NGX_MCP_METHOD_ROOTS_LIST))
    {
        return NGX_DECLINED;
    }

    pool = call->r->pool;
    request = &round->requests[round->input.n];

    ngx_memzero(request, sizeof(ngx_http_mcp_input_request_t));

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);
    params = ngx_mcp_json_span(json, NGX_MCP_PATH_PARAMS, text->data);

    request->method = method;
    request->params = params;

    one.requests = request;
    one.n = 1;

    /* a refused request costs no memory: an upstream may send many */

    if (ngx_http_mcp_call_input_capable(call, &one) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_http_mcp_string_copy(pool, &request->key, &id) != NGX_OK
        || ngx_http_mcp_string_copy(pool, &request->params, &params)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (request->params.len) {
        (void) ngx_mcp_cut(&request->params, ngx_http_mcp_call_input_keep,
                           NULL);
    }

    round->input.requests = round->requests;
    round->input.n++;

    return NGX_OK;
}


ngx_str_t
ngx_http_mcp_round_compose(ngx_http_mcp_call_t *call,
    ngx_http_mcp_round_t *round, ngx_http_mcp_request_state_t *state)
{
    ngx_str_t  result;

    state->expires = ngx_current_msec + NGX_HTTP_MCP_INPUT_TIME;

    round->input.state = ngx_http_mcp_request_state_make(call, state);

    if (round->input.state.data == NULL) {
        return round->input.state;
    }

    result = call->ctx->client->round(call, &round->input);

    if (result.data == NULL) {
        return result;
    }

    return ngx_mcp_result_compose(call->r->pool, &call->message->id, &result);
}
