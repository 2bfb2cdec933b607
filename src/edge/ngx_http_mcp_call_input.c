
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_input.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_mcp_id.h"
#include "ngx_mcp_splice.h"


/* a round that a client with a session gets as server requests */

struct ngx_http_mcp_call_input_s {
    ngx_http_mcp_upstream_request_t  *ureq;   /* waits for the answers */
    ngx_http_mcp_input_t             *input;
    ngx_event_t                       timer;  /* end of the time in which the
                                                 client has to answer */
};


static ngx_uint_t ngx_http_mcp_call_input_reaches(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_call_input_send(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_request_t *request);
static ngx_str_t ngx_http_mcp_call_input_params(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_request_t *request);
static const char *ngx_http_mcp_call_input_take(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_request_t *request, ngx_str_t *response);
static void ngx_http_mcp_call_input_timeout(ngx_event_t *ev);
static void ngx_http_mcp_call_input_fail(ngx_http_mcp_call_t *call,
    const char *why);
static void ngx_http_mcp_call_input_cancel(ngx_http_mcp_call_t *call,
    ngx_uint_t say);


ngx_int_t
ngx_http_mcp_call_input(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_input_t *input)
{
    ngx_http_mcp_call_t  *call;

    call = ureq->data;

    if (call->ctx->client->input == NULL
        || call->state != NGX_HTTP_MCP_CALL_RUNNING)
    {
        return NGX_DECLINED;
    }

    if (call->route.seek
        && call->message->method_code == NGX_MCP_METHOD_RESOURCES_READ)
    {
        /* no other upstream gets the answers of the client */

        ngx_http_mcp_route_learn(&call->ctx->conf->bridge, &call->ctx->caller,
                                 call->route.upstream, &ureq->scope.name);
    }

    return call->ctx->client->input(call, ureq, input);
}


ngx_int_t
ngx_http_mcp_call_input_ask(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_input_t *input)
{
    ngx_uint_t                  i;
    ngx_http_mcp_call_input_t  *asked;

    if (input->n == 0
        || !ngx_http_mcp_call_input_reaches(call)
        || ngx_http_mcp_call_input_capable(call, input) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    asked = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_call_input_t));
    if (asked == NULL) {
        return NGX_DECLINED;
    }

    asked->ureq = ureq;
    asked->input = input;

    call->input = asked;

    for (i = 0; i < input->n; i++) {

        if (ngx_http_mcp_call_input_send(call, &input->requests[i]) != NGX_OK)
        {
            ngx_http_mcp_call_input_cancel(call, 1);
            return NGX_DECLINED;
        }
    }

    asked->timer.handler = ngx_http_mcp_call_input_timeout;
    asked->timer.data = call;
    asked->timer.log = call->r->connection->log;

    ngx_add_timer(&asked->timer, NGX_HTTP_MCP_INPUT_TIME);

    return NGX_OK;
}


/* returns whether a stream reads the call's line, or the general line */

static ngx_uint_t
ngx_http_mcp_call_input_reaches(ngx_http_mcp_call_t *call)
{
    if (call->batch || !(call->ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
        return ngx_mcp_session_gets(call->ctx->conf->zone,
                                    call->ctx->caller.session)
               >= 1;
    }

    return !call->left || call->response == NGX_HTTP_MCP_CALL_STREAM;
}


ngx_int_t
ngx_http_mcp_call_input_capable(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_t *input)
{
    ngx_str_t                      params, capabilities;
    ngx_uint_t                     i;
    ngx_http_mcp_input_request_t  *request;

    capabilities = call->ctx->caller.capabilities;

    if (capabilities.len == 0) {

        if (ngx_mcp_session_initialize(call->ctx->conf->zone,
                                       call->ctx->caller.session,
                                       call->r->pool, &params, NULL)
            != NGX_OK)
        {
            return NGX_DECLINED;
        }

        capabilities = ngx_mcp_json_get(&params, "capabilities");
    }

    for (i = 0; i < input->n; i++) {
        request = &input->requests[i];

        if (!ngx_http_mcp_server_request_declared(&capabilities,
                                                  call->ctx->caller.revision,
                                                  request->method,
                                                  &request->params))
        {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_call_input_send(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_request_t *request)
{
    u_char                    *p;
    ngx_str_t                  text, params;
    ngx_pool_t                *pool;
    ngx_mcp_server_request_t   record;

    pool = call->r->pool;

    p = ngx_pnalloc(pool, NGX_MCP_SERVER_REQUEST_ID_LEN);
    if (p == NULL || ngx_mcp_uuid_raw(p) != NGX_OK) {
        return NGX_ERROR;
    }

    params = ngx_http_mcp_call_input_params(call, request);

    if (params.data == NULL && request->params.len) {
        return NGX_ERROR;
    }

    ngx_memzero(&record, sizeof(ngx_mcp_server_request_t));
    record.call = call->record.ref;

    text.data = p;
    text.len = NGX_MCP_SERVER_REQUEST_ID_LEN;

    if (ngx_mcp_server_request_open(call->ctx->conf->zone,
                                    call->ctx->caller.session, &text, &record)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    request->id = text;

    text = ngx_mcp_request_compose(pool, &request->id,
                                   ngx_mcp_method_name(request->method),
                                   &params);
    if (text.data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_http_mcp_call_deliver(call, &text, 0, NGX_MCP_LEVEL_UNSET);

    return NGX_OK;
}


/* makes the params of a request; adds elicitationId, which 2026-07-28 lacks */

static ngx_str_t
ngx_http_mcp_call_input_params(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_request_t *request)
{
    u_char          *p;
    ngx_str_t        rest;
    ngx_mcp_edit_t   edit;

    if (request->method != NGX_MCP_METHOD_ELICITATION
        || !ngx_http_mcp_server_request_url(&request->params))
    {
        return request->params;
    }

    rest = ngx_mcp_json_get(&request->params, "elicitationId");

    if (rest.len) {
        return request->params;
    }

    p = ngx_pnalloc(call->r->pool,
                    sizeof("\"elicitationId\":\"\",") + NGX_MCP_UUID_LEN);
    if (p == NULL) {
        ngx_str_null(&rest);
        return rest;
    }

    edit.start = 1;
    edit.end = 1;
    edit.text.data = p;

    p = ngx_cpymem(p, "\"elicitationId\":\"",
                   sizeof("\"elicitationId\":\"") - 1);

    if (ngx_mcp_uuid(p) != NGX_OK) {
        ngx_str_null(&rest);
        return rest;
    }

    p = ngx_cpymem(p + NGX_MCP_UUID_LEN, "\",", 2);

    edit.text.len = p - edit.text.data;

    return ngx_mcp_splice(call->r->pool, &request->params, &edit, 1);
}


/* the doorbell rang: the client has answered a request of the round */

void
ngx_http_mcp_call_input_wake(ngx_http_mcp_call_t *call)
{
    ngx_int_t                         rc;
    ngx_str_t                         response;
    ngx_uint_t                        i, left;
    const char                       *why;
    ngx_http_mcp_input_t             *input;
    ngx_http_mcp_input_request_t     *request;
    ngx_http_mcp_upstream_request_t  *ureq;

    input = call->input->input;
    left = 0;

    for (i = 0; i < input->n; i++) {
        request = &input->requests[i];

        if (request->answer.len) {
            continue;
        }

        rc = ngx_mcp_server_request_take(call->ctx->conf->zone,
                                         call->ctx->caller.session,
                                         &request->id, call->r->pool,
                                         &response);
        if (rc == NGX_AGAIN) {
            left++;
            continue;
        }

        why = (rc == NGX_OK)
              ? ngx_http_mcp_call_input_take(call, request, &response)
              : "nginx lost the request to the client";

        if (why) {
            ngx_http_mcp_call_input_fail(call, why);
            return;
        }
    }

    if (left) {
        return;
    }

    ureq = call->input->ureq;

    ngx_del_timer(&call->input->timer);
    call->input = NULL;

    ngx_http_mcp_upstream_request_answered(ureq);
}


/*
 * Takes an answer.  Upstreams get no errors as answers: an error for an
 * elicitation becomes "cancel", any other error fails the call.  Returns why
 * it fails, or NULL.
 */

static const char *
ngx_http_mcp_call_input_take(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_request_t *request, ngx_str_t *response)
{
    ngx_mcp_json_t  *json;

    json = ngx_palloc(call->r->pool, sizeof(ngx_mcp_json_t));

    if (json == NULL || ngx_mcp_json_scan(json, response) != NGX_OK) {
        return "nginx is out of memory";
    }

    if (json->members[NGX_MCP_PATH_RESULT].type == NGX_MCP_JSON_OBJECT) {
        request->answer = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT,
                                            response->data);
        return NULL;
    }

    if (request->method == NGX_MCP_METHOD_ELICITATION) {
        ngx_str_set(&request->answer, "{\"action\":\"cancel\"}");
        return NULL;
    }

    return "the client answered a request of the upstream with an error";
}


static void
ngx_http_mcp_call_input_timeout(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_mcp_call_t  *call;

    call = ev->data;
    c = call->r->connection;

    ngx_http_mcp_call_input_fail(call, "the client did not answer a request "
                                 "of the upstream in time");
    ngx_http_run_posted_requests(c);
}


/* fails the call; r may be freed then */

static void
ngx_http_mcp_call_input_fail(ngx_http_mcp_call_t *call, const char *why)
{
    u_char                *p;
    ngx_str_t              message;
    ngx_http_mcp_reply_t   reply;

    ngx_log_error(NGX_LOG_INFO, call->r->connection->log, 0,
                  "mcp request %V was not completed: %s", &call->message->id,
                  why);

    ngx_http_mcp_call_input_cancel(call, 1);

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    message.data = (u_char *) why;
    message.len = ngx_strlen(why);

    p = ngx_pnalloc(call->r->pool, 128 + message.len);

    if (call->message->method_code == NGX_MCP_METHOD_TOOLS_CALL && p) {
        reply.result.data = p;
        reply.result.len = ngx_sprintf(p, "{\"content\":[{\"type\":\"text\","
                                       "\"text\":\"%V\"}],\"isError\":true}",
                                       &message)
                           - p;
        call->ctx->tool_error = 1;

    } else {
        (void) ngx_http_mcp_reply_error(&reply, NGX_HTTP_OK,
                                        NGX_MCP_INTERNAL_ERROR, why);
    }

    call->answerer->stop(call);

    ngx_http_mcp_call_end(call, &reply);
}


void
ngx_http_mcp_call_input_stop(ngx_http_mcp_call_t *call)
{
    if (call->input) {
        ngx_http_mcp_call_input_cancel(call, 0);
    }
}


/* ends the round; say: the client is told which requests are cancelled */

static void
ngx_http_mcp_call_input_cancel(ngx_http_mcp_call_t *call, ngx_uint_t say)
{
    u_char                        *p;
    ngx_str_t                      none, method, params, text;
    ngx_uint_t                     i;
    ngx_http_mcp_call_input_t     *asked;
    ngx_http_mcp_input_request_t  *request;

    asked = call->input;
    call->input = NULL;

    if (asked->timer.timer_set) {
        ngx_del_timer(&asked->timer);
    }

    ngx_str_null(&none);
    ngx_str_set(&method, "notifications/cancelled");

    for (i = 0; i < asked->input->n; i++) {
        request = &asked->input->requests[i];

        if (request->id.len == 0 || request->answer.len
            || ngx_mcp_server_request_close(call->ctx->conf->zone,
                                            call->ctx->caller.session,
                                            &request->id)
               != NGX_OK
            || !say)
        {
            continue;
        }

        p = ngx_pnalloc(call->r->pool,
                        sizeof("{\"requestId\":}") + request->id.len);
        if (p == NULL) {
            continue;
        }

        params.data = p;
        params.len = ngx_sprintf(p, "{\"requestId\":%V}", &request->id) - p;

        text = ngx_mcp_request_compose(call->r->pool, &none, &method, &params);

        if (text.data) {
            (void) ngx_http_mcp_call_deliver(call, &text, 0,
                                             NGX_MCP_LEVEL_UNSET);
        }
    }
}


ngx_int_t
ngx_http_mcp_call_input_pages(ngx_http_mcp_call_t *call, ngx_str_t *error,
    ngx_http_mcp_input_t *input)
{
    ngx_str_t                      rest, page;
    ngx_pool_t                    *pool;
    ngx_http_mcp_input_request_t  *request;

    pool = call->r->pool;

    ngx_memzero(input, sizeof(ngx_http_mcp_input_t));

    rest = ngx_mcp_json_get(error, "data");

    if (rest.len && rest.data[0] == '{') {
        rest = ngx_mcp_json_get(&rest, "elicitations");
    }

    if (rest.len == 0 || rest.data[0] != '[') {
        return NGX_DECLINED;
    }

    input->requests = ngx_pcalloc(pool, NGX_HTTP_MCP_INPUT_MAX
                                     * sizeof(ngx_http_mcp_input_request_t));
    if (input->requests == NULL) {
        return NGX_ERROR;
    }

    while (input->n < NGX_HTTP_MCP_INPUT_MAX
           && ngx_mcp_json_element(&rest, &page) == NGX_OK)
    {
        if (page.data[0] != '{') {
            return NGX_DECLINED;
        }

        request = &input->requests[input->n++];
        request->method = NGX_MCP_METHOD_ELICITATION;

        request->key.data = ngx_pnalloc(pool, sizeof("\"page-\"")
                                              + NGX_INT_T_LEN);

        if (request->key.data == NULL
            || ngx_http_mcp_string_copy(pool, &request->params, &page)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        request->key.len = ngx_sprintf(request->key.data, "\"page-%ui\"",
                                       input->n)
                           - request->key.data;

        (void) ngx_mcp_cut(&request->params, ngx_http_mcp_call_input_keep,
                           NULL);

        if (!ngx_http_mcp_server_request_url(&request->params)) {
            return NGX_DECLINED;
        }
    }

    return input->n ? NGX_OK : NGX_DECLINED;
}


ngx_uint_t
ngx_http_mcp_call_input_keep(ngx_str_t *name, ngx_str_t *value, void *data)
{
    ngx_uint_t  i;

    static ngx_str_t  names[] = {
        ngx_string("_meta"),
        ngx_string("elicitationId"),
        ngx_string("task"),
        ngx_null_string
    };

    for (i = 0; names[i].len; i++) {
        if (ngx_mcp_equal(name, &names[i])) {
            return 0;
        }
    }

    return 1;
}
