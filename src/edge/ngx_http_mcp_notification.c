
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_server_request.h"


static void ngx_http_mcp_notification_reading(ngx_http_request_t *r);
static ngx_http_mcp_upstream_t *ngx_http_mcp_notification_upstream(
    ngx_http_mcp_loc_conf_t *mlcf, uint32_t hash);
static void ngx_http_mcp_notification_message(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static void ngx_http_mcp_notification_done(ngx_http_mcp_fanout_t *fanout);


/*
 * Handles a notification or a response of the client: answers 202 after the
 * upstreams that it concerns have received it, 400 if the URI of each has a dot
 * segment, and 503 if the zone has no room for the response.
 */

ngx_int_t
ngx_http_mcp_notification(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_notification_send(r, ctx, m,
                                        ngx_http_mcp_notification_done);

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_answer(r, NGX_HTTP_ACCEPTED, NULL);
    }

    if (rc == NGX_BUSY) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   NGX_MCP_REFUSED,
                                   "the zone has no room for this answer "
                                   "(mcp_zone); try again later");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_suspend(r, ngx_http_mcp_notification_reading);
}


/* the message is passed on even if the client leaves */

static void
ngx_http_mcp_notification_reading(ngx_http_request_t *r)
{
    if (ngx_http_mcp_call_test_client(r)) {
        ngx_http_mcp_fanout_left(r);
    }
}


ngx_int_t
ngx_http_mcp_notification_send(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m, void (*done)(ngx_http_mcp_fanout_t *fanout))
{
    uint32_t                   hash;
    ngx_int_t                  rc;
    ngx_str_t                  id, body;
    ngx_http_mcp_fanout_t     *fanout;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_upstream_t   *u;
    ngx_mcp_server_request_t   request;

    mlcf = ctx->conf;

    u = NULL;
    body = m->text;
    request.serial = 0;

    if (m->kind == NGX_MCP_RESPONSE
        || m->method_code == NGX_MCP_METHOD_PROGRESS)
    {
        rc = ngx_http_mcp_server_request_from_client(mlcf->zone,
                                                     &ctx->caller, m, r->pool,
                                                     &request, &body);
        if (rc == NGX_DONE) {
            return NGX_DECLINED;
        }

        if (rc == NGX_BUSY) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "mcp zone has no room for a response of the client, "
                          "id %V", &m->id);
            return NGX_BUSY;
        }

        if (rc == NGX_OK) {
            u = ngx_http_mcp_router_find(&mlcf->bridge.router,
                                         &request.upstream);
        }

        if (rc != NGX_OK || u == NULL) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "mcp client sent %s for which there was no request, "
                          "id %V",
                          m->kind == NGX_MCP_RESPONSE ? "a response"
                                                      : "progress",
                          &m->id);
            return NGX_DECLINED;
        }

    } else if (m->method_code == NGX_MCP_METHOD_CANCELLED) {

        id = ngx_mcp_message_member(m, NGX_MCP_PATH_REQUEST_ID);

        if (id.len == 0
            || ngx_mcp_call_cancel(mlcf->zone, ctx->caller.session, &id,
                                   &hash)
               != NGX_OK)
        {
            return NGX_DECLINED;
        }

        u = ngx_http_mcp_notification_upstream(mlcf, hash);

        ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_CALLS_CANCELLED, 1);
    }

    fanout = ngx_http_mcp_fanout_create(r);
    if (fanout == NULL) {
        return NGX_ERROR;
    }

    fanout->owner = ctx->caller.session;
    fanout->tenant = ctx->caller.tenant;
    fanout->body = body;
    fanout->only = u;
    fanout->serial = request.serial;
    fanout->message = ngx_http_mcp_notification_message;
    fanout->done = done;

    if (m->kind == NGX_MCP_NOTIFICATION
        && ngx_http_mcp_scan_scope(r, m, &fanout->scope) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_fanout_start(fanout, &mlcf->bridge.router);
}


/* returns the upstream of a call; NULL: all upstreams are notified */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_notification_upstream(ngx_http_mcp_loc_conf_t *mlcf,
    uint32_t hash)
{
    ngx_http_mcp_router_t    *router;
    ngx_http_mcp_upstream_t  *u;

    if (hash == 0) {
        return NULL;
    }

    router = &mlcf->bridge.router;

    for (u = ngx_http_mcp_router_next(router, NULL);
         u;
         u = ngx_http_mcp_router_next(router, u))
    {
        if (u->hash == hash) {
            break;
        }
    }

    return u;
}


static void
ngx_http_mcp_notification_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_log_error(NGX_LOG_INFO, ureq->r->connection->log, 0,
                  "mcp upstream \"%V\" answered a notification or response "
                  "with a message", &ureq->upstream->name);
}


static void
ngx_http_mcp_notification_done(ngx_http_mcp_fanout_t *fanout)
{
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_request_t    *r;
    ngx_http_mcp_reply_t   reply;

    r = fanout->r;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    if (fanout->refused) {
        ngx_http_mcp_reply_dots(r, fanout->refused, &reply);
    }

    ngx_http_finalize_request(r, ngx_http_mcp_reply_send(r, &ctx->message->id,
                                                         &reply));
}
