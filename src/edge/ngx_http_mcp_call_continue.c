
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call_park.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_mcp_splice.h"


#define NGX_HTTP_MCP_CONTINUE_FOREIGN                                         \
    "requestState is not one that this server gave for this request: method, " \
    "name, arguments and caller have to be the same, and nginx must not "      \
    "have been restarted since"
#define NGX_HTTP_MCP_CONTINUE_ELSEWHERE                                       \
    "requestState is of another host, or of nginx before it was restarted: a " \
    "client has to come back to the host that asked; the request may have run"
#define NGX_HTTP_MCP_CONTINUE_EXPIRED                                         \
    "requestState has expired; the request that asked was cancelled"
#define NGX_HTTP_MCP_CONTINUE_USED                                            \
    "requestState was used before"
#define NGX_HTTP_MCP_CONTINUE_ENDED                                           \
    "the request that asked has ended, by an error of nginx or of the "       \
    "upstream; it may have run"
#define NGX_HTTP_MCP_CONTINUE_NO_ROOM                                         \
    "the zone has no room for what the upstream says (mcp_zone); the request " \
    "may have run"
#define NGX_HTTP_MCP_CONTINUE_TOO_LARGE                                       \
    "what the upstream says is larger than mcp_message_limit; the request "   \
    "may have run"


/* a request that continues a parked call; in r->pool */

typedef struct {
    ngx_http_mcp_call_t           *call;       /* call of this request */
    ngx_http_mcp_call_line_t       line;       /* line of the parked call */
    ngx_mcp_parked_t               parked;     /* the parked call */
    ngx_http_mcp_request_state_t   state;      /* contents of requestState */
    ngx_http_mcp_round_t           round;      /* the next round */
    unsigned                       answered:1; /* the line had the answer of the
                                                  parked call */
} ngx_http_mcp_continue_t;


static ngx_int_t ngx_http_mcp_continue_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_continue_open(ngx_http_mcp_continue_t *cont);
static ngx_int_t ngx_http_mcp_continue_responses(ngx_http_mcp_call_t *call,
    ngx_str_t *responses);
static void ngx_http_mcp_continue_answer(ngx_http_mcp_continue_t *cont,
    ngx_str_t *responses);
static void ngx_http_mcp_continue_post(ngx_http_mcp_continue_t *cont,
    ngx_mcp_server_request_t *open, ngx_str_t *body);
static void ngx_http_mcp_continue_posted(ngx_http_mcp_fanout_t *fanout);
static void ngx_http_mcp_continue_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_continue_close(ngx_http_mcp_continue_t *cont);
static void ngx_http_mcp_continue_room(ngx_http_mcp_call_t *call,
    ngx_uint_t room);
static ngx_int_t ngx_http_mcp_continue_message(ngx_http_mcp_call_line_t *line,
    ngx_str_t *text, ngx_uint_t flags, uint64_t before);
static void ngx_http_mcp_continue_ended(ngx_http_mcp_call_line_t *line);
static void ngx_http_mcp_continue_request(ngx_http_mcp_continue_t *cont,
    ngx_mcp_json_t *json, ngx_str_t *text, uint64_t before);
static void ngx_http_mcp_continue_ask(ngx_event_t *ev);
static void ngx_http_mcp_continue_done(ngx_http_mcp_continue_t *cont,
    ngx_str_t *text);
static void ngx_http_mcp_continue_end(ngx_http_mcp_continue_t *cont,
    ngx_http_mcp_reply_t *reply);


/* the answerer for a parked call, of this or another worker */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_continue = {
    .start = ngx_http_mcp_continue_start,
    .stop = ngx_http_mcp_continue_stop,
    .room = ngx_http_mcp_continue_room
};


static ngx_int_t
ngx_http_mcp_continue_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                 rc;
    ngx_str_t                 responses;
    const char               *why;
    ngx_http_mcp_continue_t  *cont;

    if (!call->ctx->client->sessionless
        || call->message->json.members[NGX_MCP_PATH_STATE].type
           == NGX_MCP_JSON_ABSENT)
    {
        return NGX_DECLINED;
    }

    cont = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_continue_t));
    if (cont == NULL) {
        return NGX_ERROR;
    }

    cont->call = call;

    rc = ngx_http_mcp_request_state_read(call, &cont->state);

    if (rc == NGX_DECLINED || rc == NGX_ERROR) {
        return rc;
    }

    if (rc != NGX_OK) {
        why = NGX_HTTP_MCP_CONTINUE_FOREIGN;
        goto refused;
    }

    /*
     * With an mcp_state_key of several hosts, the state may be of another
     * host's zone, and "expires" is the time of that host.
     */

    if (cont->state.generation
        != ngx_mcp_zone_generation(call->ctx->conf->zone))
    {
        why = NGX_HTTP_MCP_CONTINUE_ELSEWHERE;
        goto refused;
    }

    if (cont->state.expires < ngx_current_msec) {
        why = NGX_HTTP_MCP_CONTINUE_EXPIRED;
        goto refused;
    }

    if (ngx_http_mcp_continue_responses(call, &responses) != NGX_OK) {
        why = "params.inputResponses must be an object of objects";
        goto refused;
    }

    call->data = cont;
    call->continues = 1;

    rc = ngx_http_mcp_call_open(call, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    switch (ngx_http_mcp_continue_open(cont)) {

    case NGX_OK:
        ngx_http_mcp_continue_answer(cont, &responses);
        return NGX_AGAIN;

    case NGX_BUSY:
        why = NGX_HTTP_MCP_CONTINUE_USED;
        break;

    case NGX_DECLINED:
        why = NGX_HTTP_MCP_CONTINUE_ENDED;
        break;

    default: /* NGX_ERROR */
        return NGX_ERROR;
    }

refused:

    return ngx_http_mcp_reply_error(reply, NGX_HTTP_BAD_REQUEST,
                                    NGX_MCP_INVALID_PARAMS, why);
}


/* finds the inputResponses of the request, if any: raw objects by names */

static ngx_int_t
ngx_http_mcp_continue_responses(ngx_http_mcp_call_t *call,
    ngx_str_t *responses)
{
    ngx_str_t  rest, name, value;

    *responses = ngx_mcp_message_member(call->message,
                                        NGX_MCP_PATH_INPUT_RESPONSES);

    if (responses->len && responses->data[0] != '{') {
        return NGX_DECLINED;
    }

    rest = *responses;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
        if (value.data[0] != '{') {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/*
 * Opens the parked call.  NGX_OK; NGX_BUSY: this round is over; NGX_DECLINED:
 * the call is over; NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_continue_open(ngx_http_mcp_continue_t *cont)
{
    ngx_int_t             rc;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_cursor_t      from;
    ngx_http_mcp_call_t  *call;

    call = cont->call;
    zone = call->ctx->conf->zone;

    rc = ngx_mcp_call_unpark(zone, cont->state.call, cont->state.round,
                             NGX_HTTP_MCP_INPUT_TIME, &cont->parked);
    if (rc != NGX_OK) {
        return rc;
    }

    from.own = cont->state.position;
    from.group = 0;
    from.endpoint = 0;

    cont->line.call = call;
    cont->line.message = ngx_http_mcp_continue_message;
    cont->line.ended = ngx_http_mcp_continue_ended;
    cont->line.data = cont;

    rc = ngx_http_mcp_call_line_open(&cont->line, cont->parked.session,
                                     cont->parked.channel, &from);
    if (rc != NGX_OK) {
        ngx_mcp_call_wake(zone, cont->state.call, NGX_MCP_WAKE_CANCEL);
        return rc == NGX_ERROR ? NGX_ERROR : NGX_DECLINED;
    }

    cont->round.timer.handler = ngx_http_mcp_continue_ask;
    cont->round.timer.data = cont;
    cont->round.timer.log = call->r->connection->log;

    /* "hash $mcp_session_id" chooses the upstream's server by this id */

    call->ctx->session_id.data = cont->parked.id;
    call->ctx->session_id.len = NGX_MCP_UUID_LEN;

    return NGX_OK;
}


/*
 * Sends the client's answers to the upstream session that asked; answers that
 * nobody asked for are ignored
 */

static void
ngx_http_mcp_continue_answer(ngx_http_mcp_continue_t *cont,
    ngx_str_t *responses)
{
    ngx_str_t                  rest, name, value, body;
    ngx_pool_t                *pool;
    ngx_mcp_server_request_t   open;

    pool = cont->call->r->pool;
    rest = *responses;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (ngx_mcp_server_request_find(cont->call->ctx->conf->zone,
                                        cont->parked.session, &name, 1, pool,
                                        &open)
            == NGX_OK)
        {
            body = ngx_mcp_result_compose(pool, &open.id, &value);
            ngx_http_mcp_continue_post(cont, &open, &body);
        }
    }
}


static void
ngx_http_mcp_continue_post(ngx_http_mcp_continue_t *cont,
    ngx_mcp_server_request_t *open, ngx_str_t *body)
{
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_router_t    *router;
    ngx_http_mcp_fanout_t    *fanout;
    ngx_http_mcp_upstream_t  *u;

    ctx = cont->call->ctx;
    router = &ctx->conf->bridge.router;

    u = ngx_http_mcp_router_find(router, &open->upstream);
    fanout = ngx_http_mcp_fanout_create(cont->call->r);

    if (u == NULL || fanout == NULL || body->data == NULL) {
        return;
    }

    ctx->upstream = u->name;

    fanout->owner = cont->parked.session;
    fanout->tenant = ctx->caller.tenant;
    fanout->body = *body;
    fanout->only = u;
    fanout->serial = open->serial;
    fanout->done = ngx_http_mcp_continue_posted;

    (void) ngx_http_mcp_fanout_start(fanout, router);
}


static void
ngx_http_mcp_continue_posted(ngx_http_mcp_fanout_t *fanout)
{
    /* void */
}


/* the client has left: cancels the parked call if it is not answered */

static void
ngx_http_mcp_continue_stop(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_continue_t  *cont;

    cont = call->data;

    if (cont == NULL) {
        return;
    }

    if (cont->line.open && !cont->answered) {
        ngx_mcp_call_wake(call->ctx->conf->zone, cont->state.call,
                          NGX_MCP_WAKE_CANCEL);
    }

    ngx_http_mcp_continue_close(cont);
}


static void
ngx_http_mcp_continue_close(ngx_http_mcp_continue_t *cont)
{
    ngx_http_mcp_call_line_close(&cont->line);

    if (cont->round.timer.timer_set) {
        ngx_del_timer(&cont->round.timer);
    }
}


static void
ngx_http_mcp_continue_room(ngx_http_mcp_call_t *call, ngx_uint_t room)
{
    ngx_http_mcp_continue_t  *cont;

    cont = call->data;

    ngx_http_mcp_call_line_room(&cont->line, room);
}


/* passes a message of the parked call on to the client */

static ngx_int_t
ngx_http_mcp_continue_message(ngx_http_mcp_call_line_t *line, ngx_str_t *text,
    ngx_uint_t flags, uint64_t before)
{
    ngx_str_t                 own;
    ngx_mcp_json_t            json;
    ngx_http_mcp_continue_t  *cont;

    cont = line->data;

    if (flags & NGX_MCP_EVENT_RESPONSE) {
        ngx_http_mcp_continue_done(cont, text);
        return NGX_DONE;
    }

    if (ngx_mcp_json_scan(&json, text) != NGX_OK) {
        return NGX_OK;
    }

    if (json.members[NGX_MCP_PATH_ID].count) {
        ngx_http_mcp_continue_request(cont, &json, text, before);
        return NGX_OK;
    }

    /* messages have the progressToken of the first request: it is replaced */

    own = ngx_mcp_message_member(cont->call->message, NGX_MCP_PATH_META_TOKEN);

    ngx_http_mcp_call_notified(cont->call, &json, text, NULL, &own);

    return NGX_OK;
}


/* the parked call, or its session, has ended without an answer */

static void
ngx_http_mcp_continue_ended(ngx_http_mcp_call_line_t *line)
{
    const char               *why;
    ngx_http_mcp_reply_t      reply;
    ngx_http_mcp_continue_t  *cont;

    cont = line->data;

    switch (ngx_mcp_call_lost(line->call->ctx->conf->zone, cont->state.call)) {

    case NGX_MCP_CALL_NO_ROOM:
        why = NGX_HTTP_MCP_CONTINUE_NO_ROOM;
        break;

    case NGX_MCP_CALL_TOO_LARGE:
        why = NGX_HTTP_MCP_CONTINUE_TOO_LARGE;
        break;

    default: /* NGX_MCP_CALL_WHOLE */
        why = NGX_HTTP_MCP_CONTINUE_ENDED;
    }

    (void) ngx_http_mcp_reply_error(&reply, NGX_HTTP_OK,
                                    NGX_MCP_INTERNAL_ERROR, why);

    ngx_http_mcp_continue_end(cont, &reply);
}


/*
 * Adds a request of the line to the next round: a new one, or one that the
 * client did not answer in the last round
 */

static void
ngx_http_mcp_continue_request(ngx_http_mcp_continue_t *cont,
    ngx_mcp_json_t *json, ngx_str_t *text, uint64_t before)
{
    ngx_str_t                  id, message, body;
    ngx_pool_t                *pool;
    ngx_mcp_zone_t            *zone;
    ngx_mcp_server_request_t   open;

    zone = cont->call->ctx->conf->zone;
    pool = cont->call->r->pool;

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (ngx_mcp_server_request_find(zone, cont->parked.session, &id, 0, pool,
                                    &open)
        != NGX_OK)
    {
        return;
    }

    if (ngx_http_mcp_round_add(cont->call, &cont->round, json, text,
                               ngx_mcp_method_of(json, text))
        == NGX_OK)
    {
        if (cont->round.input.n == 1) {
            cont->round.position = before;
            ngx_add_timer(&cont->round.timer, NGX_HTTP_MCP_ROUND_TIME);
        }

        return;
    }

    if (ngx_mcp_server_request_find(zone, cont->parked.session, &id, 1, pool,
                                    &open)
        != NGX_OK)
    {
        return;
    }

    ngx_str_set(&message, "the client cannot receive requests");

    body = ngx_mcp_error_compose(pool, NGX_MCP_REVISION_LATEST_LEGACY,
                                 &open.id, NGX_MCP_METHOD_NOT_FOUND, &message,
                                 NULL);

    ngx_http_mcp_continue_post(cont, &open, &body);

    /* the client is not asked: the parked call must not wait for its answer */

    ngx_mcp_call_wake(zone, cont->state.call, NGX_MCP_WAKE_INPUT);
}


static void
ngx_http_mcp_continue_ask(ngx_event_t *ev)
{
    ngx_connection_t              *c;
    ngx_http_mcp_call_t           *call;
    ngx_http_mcp_reply_t           reply;
    ngx_http_mcp_continue_t       *cont;
    ngx_http_mcp_request_state_t   state;

    cont = ev->data;
    call = cont->call;
    c = call->r->connection;

    state = cont->state;
    state.position = cont->round.position;
    state.round = ngx_mcp_call_park(call->ctx->conf->zone, cont->state.call,
                                    NGX_HTTP_MCP_INPUT_TIME);
    if (state.round == 0) {

        /* the parked call has ended: the handler "ended" is called */

        return;
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    reply.nparts = 1;
    reply.parts[0] = ngx_http_mcp_round_compose(call, &cont->round, &state);

    if (reply.parts[0].data == NULL) {
        ngx_mcp_call_wake(call->ctx->conf->zone, cont->state.call,
                          NGX_MCP_WAKE_CANCEL);
        (void) ngx_http_mcp_reply_internal(&reply);
    }

    ngx_http_mcp_continue_end(cont, &reply);
    ngx_http_run_posted_requests(c);
}


/* gives the client the parked call's answer, as that of this request */

static void
ngx_http_mcp_continue_done(ngx_http_mcp_continue_t *cont, ngx_str_t *text)
{
    ngx_str_t              code;
    ngx_mcp_json_t         json;
    ngx_mcp_path_e         path[2];
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_reply_t   reply;

    call = cont->call;
    ctx = call->ctx;

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    path[0] = NGX_MCP_PATH_ID;
    path[1] = NGX_MCP_PATH_NONE;

    if (ngx_mcp_json_scan(&json, text) != NGX_OK
        || json.members[NGX_MCP_PATH_ID].count == 0)
    {
        goto failed;
    }

    reply.nparts = 1;
    reply.parts[0] = ngx_mcp_message_replace(call->r->pool, text, &json, path,
                                             &call->message->id);

    if (reply.parts[0].data == NULL
        || ngx_mcp_json_scan(&json, &reply.parts[0]) != NGX_OK)
    {
        goto failed;
    }

    ctx->tool_error = (json.members[NGX_MCP_PATH_IS_ERROR].type
                       == NGX_MCP_JSON_TRUE);

    if (json.members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        code = ngx_mcp_json_span(&json, NGX_MCP_PATH_ERROR_CODE,
                                 reply.parts[0].data);
        ctx->error = ngx_mcp_error_code(&code);
        ctx->failed = 1;
    }

    if (ctx->client->answer(call->r, ctx, &json, &reply.parts[0], 0,
                            &reply.status)
        != NGX_OK)
    {
        goto failed;
    }

    reply.code = reply.status ? ctx->error : 0;

    ngx_http_mcp_continue_end(cont, &reply);

    return;

failed:

    (void) ngx_http_mcp_reply_internal(&reply);

    ngx_http_mcp_continue_end(cont, &reply);
}


static void
ngx_http_mcp_continue_end(ngx_http_mcp_continue_t *cont,
    ngx_http_mcp_reply_t *reply)
{
    cont->answered = 1;

    ngx_http_mcp_continue_close(cont);

    ngx_http_mcp_call_reply(cont->call, reply);
    ngx_http_mcp_call_end(cont->call, NULL);
}
