
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_mcp_id.h"
#include "ngx_mcp_splice.h"


/*
 * At most one sixteenth of worker_connections replies to requests of one
 * upstream are under way; each uses two connections.
 */
#define NGX_HTTP_MCP_REPLIES_SHARE  16

/* ms between two lines of the log about too many replies */
#define NGX_HTTP_MCP_REPLIES_INTERVAL  60000


static ngx_int_t ngx_http_mcp_server_request_open(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_json_t *json,
    ngx_mcp_server_request_t *request, ngx_str_t *id);
static ngx_int_t ngx_http_mcp_server_request_check(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_uint_t method, ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_server_request_may_reply(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_server_request_replied(void *data);


ngx_uint_t
ngx_http_mcp_server_request_declared(ngx_str_t *capabilities,
    ngx_uint_t revision, ngx_uint_t method, ngx_str_t *params)
{
    ngx_str_t  value, url;

    switch (method) {

    case NGX_MCP_METHOD_SAMPLING:
        value = ngx_mcp_json_get(capabilities, "sampling");
        break;

    case NGX_MCP_METHOD_ROOTS_LIST:
        value = ngx_mcp_json_get(capabilities, "roots");
        break;

    case NGX_MCP_METHOD_ELICITATION:
        value = ngx_mcp_json_get(capabilities, "elicitation");
        url = ngx_mcp_json_get(&value, "url");

        if (revision < NGX_MCP_2025_11_25) {
            ngx_str_null(&url);
        }

        if (ngx_http_mcp_server_request_url(params)) {
            value = url;

        } else if (url.len) {

            /* a client that declares "url" must declare "form", too */

            value = ngx_mcp_json_get(&value, "form");
        }

        break;

    default:
        return 1;
    }

    return value.len && value.data[0] == '{';
}


ngx_uint_t
ngx_http_mcp_server_request_url(ngx_str_t *params)
{
    ngx_str_t         mode;
    static ngx_str_t  url = ngx_string("url");

    mode = ngx_mcp_json_get(params, "mode");

    return ngx_mcp_json_is(&mode, &url);
}


ngx_int_t
ngx_http_mcp_server_request_to_client(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_str_t *text, ngx_pool_t **pool,
    ngx_str_t *out)
{
    u_char                     buf[NGX_MCP_SERVER_REQUEST_ID_LEN];
    ngx_str_t                  id;
    ngx_int_t                  rc;
    ngx_mcp_json_t            *json;
    ngx_mcp_path_e             path[2];
    ngx_mcp_zone_t            *zone;
    ngx_mcp_server_request_t   request;

    json = ureq->x->scan;
    zone = ureq->upstream->zone;

    *pool = NULL;
    *out = *text;

    ngx_memzero(&request, sizeof(ngx_mcp_server_request_t));

    request.upstream = ureq->upstream->name;
    request.serial = ureq->us ? ureq->us->serial : 0;
    request.method = ngx_mcp_method_of(ureq->x->scan, text);
    request.id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    path[0] = NGX_MCP_PATH_ID;
    path[1] = NGX_MCP_PATH_NONE;

    if (request.id.len) {
        request.token = ngx_mcp_json_span(json, NGX_MCP_PATH_META_TOKEN,
                                          text->data);
        id.data = buf;

        if (ngx_http_mcp_server_request_check(zone, caller, request.method,
                                              text)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        rc = ngx_http_mcp_server_request_open(zone, caller, json, &request,
                                              &id);
        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        if (request.token.len) {
            path[1] = NGX_MCP_PATH_META_TOKEN;
        }

    } else {

        if (request.method != NGX_MCP_METHOD_CANCELLED) {
            return NGX_OK;
        }

        path[0] = NGX_MCP_PATH_REQUEST_ID;
        request.id = ngx_mcp_json_span(json, path[0], text->data);

        if (ngx_mcp_server_request_cancel(zone, caller->session,
                                          &request, buf, &id)
            != NGX_OK)
        {
            return NGX_DECLINED;
        }
    }

    *pool = ngx_create_pool(ngx_pagesize, ngx_cycle->log);

    if (*pool) {
        *out = ngx_mcp_message_replace(*pool, text, json, path, &id);

        if (out->data) {
            return NGX_OK;
        }

        ngx_destroy_pool(*pool);
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_server_request_open(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_json_t *json,
    ngx_mcp_server_request_t *request, ngx_str_t *id)
{
    /*
     * Refuses a request that has a member twice, because the client may read
     * the other one.
     */

    if (json->members[NGX_MCP_PATH_ID].count > 1
        || json->members[NGX_MCP_PATH_META_TOKEN].count > 1)
    {
        return NGX_ERROR;
    }

    id->len = NGX_MCP_SERVER_REQUEST_ID_LEN;

    if (ngx_mcp_uuid_raw(id->data) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_server_request_open(zone, caller->session, id,
                                       request);
}


/*
 * NGX_OK: the client declared the capability for this server request, in
 * initialize or, without a session, in its own request.
 */

static ngx_int_t
ngx_http_mcp_server_request_check(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_uint_t method, ngx_str_t *text)
{
    ngx_int_t    rc;
    ngx_str_t    initialize, capabilities, params;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(ngx_pagesize, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_OK;
    capabilities = caller->capabilities;

    if (capabilities.len == 0) {
        rc = ngx_mcp_session_initialize(zone, caller->session, pool,
                                        &initialize, NULL);
        if (rc == NGX_OK) {
            capabilities = ngx_mcp_json_get(&initialize, "capabilities");
        }
    }

    if (rc == NGX_OK) {
        params = ngx_mcp_json_get(text, "params");

        if (!ngx_http_mcp_server_request_declared(&capabilities,
                                                  caller->revision, method,
                                                  &params))
        {
            rc = NGX_DECLINED;
        }
    }

    ngx_destroy_pool(pool);

    return rc;
}


ngx_int_t
ngx_http_mcp_server_request_from_client(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_message_t *m, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request, ngx_str_t *out)
{
    ngx_int_t        rc;
    ngx_str_t        id, *own;
    ngx_mcp_path_e   path[2];

    ngx_memzero(request, sizeof(ngx_mcp_server_request_t));

    if (m->kind == NGX_MCP_RESPONSE) {
        path[0] = NGX_MCP_PATH_ID;
        own = &request->id;

    } else {
        path[0] = NGX_MCP_PATH_TOKEN;
        own = &request->token;
    }

    path[1] = NGX_MCP_PATH_NONE;

    id = ngx_mcp_message_member(m, path[0]);

    rc = ngx_mcp_server_request_find(zone, caller->session, &id,
                                     m->kind == NGX_MCP_RESPONSE, pool,
                                     request);

    if (rc == NGX_OK && request->call.block && m->kind == NGX_MCP_RESPONSE) {
        rc = ngx_mcp_server_request_answer(zone, caller->session, &id,
                                           &m->text);

        return rc == NGX_OK ? NGX_DONE : rc;
    }

    if (rc != NGX_OK || own->len == 0) {
        return rc != NGX_OK ? rc : NGX_DECLINED;
    }

    *out = ngx_mcp_message_replace(pool, &m->text, &m->json, path, own);

    return out->data ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_server_request_reply(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_audience_t *audience, ngx_str_t *id, ngx_int_t code,
    const char *content)
{
    ngx_str_t                 body, text, none;
    ngx_http_cleanup_t       *cln;
    ngx_http_mcp_exchange_t  *x;

    if (!ngx_http_mcp_server_request_may_reply(ureq)) {
        return;
    }

    ngx_str_set(&none, "");

    x = ngx_http_mcp_background_session(ureq->upstream, audience,
                                        &ureq->r->headers_in,
                                        ureq->us ? &ureq->us->id : &none,
                                        ureq->us ? ureq->us->revision : 0);
    if (x == NULL) {
        return;
    }

    cln = ngx_http_cleanup_add(x->r, 0);

    if (cln == NULL) {
        ngx_http_mcp_background_close(x->r);
        return;
    }

    cln->handler = ngx_http_mcp_server_request_replied;
    cln->data = ureq->upstream->worker;

    ureq->upstream->worker->replies++;

    text.data = (u_char *) content;
    text.len = ngx_strlen(content);

    if (code == 0) {
        body = ngx_mcp_result_compose(x->r->pool, id, &text);

    } else {
        body = ngx_mcp_error_compose(x->r->pool,
                                     NGX_MCP_REVISION_LATEST_LEGACY, id, code,
                                     &text, NULL);
    }

    (void) ngx_http_mcp_background_send(x, &body);
}


/* returns whether one more reply may be sent to the upstream */

static ngx_uint_t
ngx_http_mcp_server_request_may_reply(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_uint_t                       max;
    ngx_http_mcp_upstream_worker_t  *w;

    w = ureq->upstream->worker;
    max = ngx_max(ngx_cycle->connection_n / NGX_HTTP_MCP_REPLIES_SHARE, 1);

    if (w->replies < max) {
        return 1;
    }

    if (w->replies_logged == 0
        || ngx_current_msec - w->replies_logged
           >= NGX_HTTP_MCP_REPLIES_INTERVAL)
    {
        w->replies_logged = ngx_current_msec ? ngx_current_msec : 1;

        ngx_log_error(NGX_LOG_ERR, ureq->r->connection->log, 0,
                      "mcp requests of upstream \"%V\" are not answered: it "
                      "sends them faster than it accepts answers, of which "
                      "%ui are under way; raise \"worker_connections\" if "
                      "it has to send so many at once",
                      &ureq->upstream->name, max);
    }

    return 0;
}


static void
ngx_http_mcp_server_request_replied(void *data)
{
    ngx_http_mcp_upstream_worker_t *w = data;

    w->replies--;
}


void
ngx_http_mcp_server_request_fail(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_http_mcp_audience_t *audience, ngx_str_t *id)
{
    u_char                    buf[NGX_MCP_SERVER_REQUEST_ID_LEN];
    ngx_str_t                 made;
    ngx_mcp_server_request_t  request;

    ngx_memzero(&request, sizeof(ngx_mcp_server_request_t));

    request.upstream = ureq->upstream->name;
    request.serial = ureq->us ? ureq->us->serial : 0;
    request.id = *id;

    (void) ngx_mcp_server_request_cancel(ureq->upstream->zone, caller->session,
                                         &request, buf, &made);

    ngx_http_mcp_server_request_reply(ureq, audience, id,
                                      NGX_MCP_INTERNAL_ERROR,
                                      "nginx has no room for the request");
}
