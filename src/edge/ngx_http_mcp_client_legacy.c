
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_listener.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_stream_body.h"


static ngx_int_t ngx_http_mcp_legacy_client_post(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_discover(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_get(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_delete(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_find_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_version(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_legacy_client_refuse_version(
    ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx, ngx_int_t code,
    const char *before, const char *after);
static ngx_int_t ngx_http_mcp_legacy_client_server_request(
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_pool_t **pool, ngx_str_t *out);
static u_char *ngx_http_mcp_legacy_client_begin(ngx_http_mcp_stream_t *s,
    ngx_uint_t revision, u_char *p);
static u_char *ngx_http_mcp_legacy_client_event(ngx_http_mcp_stream_t *s,
    u_char *p);
static u_char *ngx_http_mcp_legacy_client_retry(u_char *p, ngx_msec_t time);


ngx_http_mcp_client_t  ngx_http_mcp_client_legacy = {
    .methods = ngx_string("GET, POST, DELETE"),
    .post = ngx_http_mcp_legacy_client_post,
    .get = ngx_http_mcp_legacy_client_get,
    .delete = ngx_http_mcp_legacy_client_delete,
    .error = ngx_mcp_error_compose,
    .server_request = ngx_http_mcp_legacy_client_server_request,
    .resumes = NGX_MCP_2025_11_25,
    .begin = ngx_http_mcp_legacy_client_begin,
    .event = ngx_http_mcp_legacy_client_event,
    .retry = ngx_http_mcp_legacy_client_retry,
    .input = ngx_http_mcp_call_input_ask
};


static ngx_int_t
ngx_http_mcp_legacy_client_post(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t           rc;
    ngx_mcp_message_t  *m;

    m = ctx->message;

    if (m->kind == NGX_MCP_REQUEST
        && m->method_code == NGX_MCP_METHOD_DISCOVER)
    {
        return ngx_http_mcp_legacy_client_discover(r, ctx);
    }

    if (m->modern) {
        return ngx_http_mcp_legacy_client_refuse_version(r, ctx,
                             NGX_MCP_REFUSED,
                                                  "this endpoint supports ",
                                                  "; begin with initialize");
    }

    if (m->kind == NGX_MCP_REQUEST
        && m->method_code == NGX_MCP_METHOD_INITIALIZE)
    {
        return ngx_http_mcp_legacy_client_initialize(r, ctx);
    }

    if (m->kind == NGX_MCP_REQUEST) {
        ctx->session.requests = 1;

    } else if (m->kind == NGX_MCP_BATCH) {
        ctx->session.requests = ngx_http_mcp_batch_requests(ctx->batch);
    }

    rc = ngx_http_mcp_legacy_client_find_session(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    switch (m->kind) {

    case NGX_MCP_REQUEST:
        return ngx_http_mcp_call_start(r, ctx, m);

    case NGX_MCP_BATCH:
        return ngx_http_mcp_batch(r, ctx);

    default: /* NGX_MCP_NOTIFICATION, NGX_MCP_RESPONSE */
        return ngx_http_mcp_notification(r, ctx, m);
    }
}


static ngx_int_t
ngx_http_mcp_legacy_client_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->caller.session_id.data == ctx->header_session.data) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                                   NGX_MCP_INVALID_REQUEST,
                                   "the session is already initialized");
    }

    rc = ngx_http_mcp_legacy_client_version(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_http_mcp_initialize(r, ctx);
}


/*
 * Refuses server/discover, by which a client of both eras finds out which one
 * to speak.  All such clients then send initialize if the error is -32601 with
 * the id of the request; several give up after another code.
 */

static ngx_int_t
ngx_http_mcp_legacy_client_discover(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t    rc;
    const char  *after;

    if (ctx->header_session.len
        && ctx->header_revision != NGX_MCP_2026_07_28)
    {
        rc = ngx_http_mcp_legacy_client_find_session(r, ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        return ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_METHOD_NOT_FOUND,
                                   "Method not found");
    }

    after = "; begin with initialize";

    if (ctx->conf->versions & NGX_HTTP_MCP_MODERN_VERSIONS) {
        after = "; begin with initialize, or send MCP-Protocol-Version: "
                "2026-07-28 and params._meta";
    }

    return ngx_http_mcp_legacy_client_refuse_version(r, ctx,
                             NGX_MCP_METHOD_NOT_FOUND,
                             "this endpoint supports ", after);
}


static ngx_int_t
ngx_http_mcp_legacy_client_get(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    uint32_t                  channel;
    ngx_int_t                 rc;
    ngx_uint_t                gap;
    ngx_mcp_cursor_t          from, *fp;
    ngx_mcp_event_id_t        id;
    ngx_http_mcp_manner_t    *manner;
    ngx_http_mcp_router_t    *router;
    ngx_http_mcp_upstream_t  *u;

    rc = ngx_http_mcp_legacy_client_find_session(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    channel = NGX_MCP_GENERAL_CHANNEL;
    gap = 0;
    fp = NULL;

    if (ctx->header_last_event.len) {

        if (ngx_mcp_event_id_parse(&ctx->header_last_event, &id) == NGX_OK
            && id.generation == ngx_mcp_zone_generation(ctx->conf->zone))
        {
            channel = id.channel;
            from.own = id.own;
            from.group = id.group;
            from.endpoint = id.endpoint;
            fp = &from;

        } else {
            gap = 1;
        }
    }

    rc = ngx_http_mcp_stream_open(r, channel, fp, gap, NULL);

    if (rc == NGX_HTTP_NOT_ALLOWED) {
        return ngx_http_mcp_not_allowed(r, "the request of this Last-Event-ID "
                                           "has ended; the stream has no "
                                           "further messages");
    }

    if (rc != NGX_DONE
        || ctx->stream->zs.channel != NGX_MCP_GENERAL_CHANNEL)
    {
        return rc;
    }

    router = &ctx->conf->bridge.router;

    for (u = ngx_http_mcp_router_next(router, NULL);
         u;
         u = ngx_http_mcp_router_next(router, u))
    {
        manner = ngx_http_mcp_profile_manner(u, &ctx->caller.tenant, 1);

        if (manner == NULL || !manner->filters) {
            ngx_http_mcp_listener_start(u, r, &ctx->caller, 0);

        } else if (u->listen) {

            /* the shared upstream session hears of changes for all sessions */

            (void) ngx_http_mcp_shared_ensure(&ctx->conf->bridge, u,
                                              &ctx->caller.tenant,
                                              &ctx->caller.audience_key);
        }
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_legacy_client_delete(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_http_mcp_router_t       *router;
    ngx_http_mcp_upstream_t     *u;
    ngx_mcp_upstream_session_t  *us;

    rc = ngx_http_mcp_legacy_client_find_session(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /*
     * A DELETE that is sent to an upstream now has the headers of the client.
     * If many of them are on their way, the DELETE waits in the zone, without
     * the headers.
     */

    us = NULL;
    router = &ctx->conf->bridge.router;

    if (router->n && !ngx_mcp_pending_delete_full(ctx->conf->zone)) {
        us = ngx_pcalloc(r->pool,
                         router->n * sizeof(ngx_mcp_upstream_session_t));
        if (us == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        for (i = 0, u = NULL; i < router->n; i++) {
            u = ngx_http_mcp_router_next(router, u);

            if (ngx_mcp_upstream_session_peek(ctx->conf->zone,
                                              ctx->caller.session, &u->name,
                                              &us[i])
                == NGX_OK
                && ngx_mcp_upstream_session_id(ctx->conf->zone, r->pool,
                                               &us[i])
                   == NGX_OK)
            {
                ngx_mcp_upstream_session_forget(ctx->conf->zone, us[i].ref,
                                                us[i].serial);
            }
        }
    }

    ngx_mcp_session_end(ctx->conf->zone, ctx->caller.session,
                        NGX_MCP_COUNTER_SESSIONS_DELETED);

    for (i = 0, u = NULL; us && i < router->n; i++) {
        u = ngx_http_mcp_router_next(router, u);

        if (us[i].id.data == NULL) {

            /* there is no upstream session, or the zone ends it */

            continue;
        }

        ngx_http_mcp_upstream_session_delete(u, r, &ctx->caller.tenant,
                                             &ctx->caller.session_id, &us[i].id,
                                             us[i].revision);
    }

    return ngx_http_mcp_answer(r, NGX_HTTP_OK, NULL);
}


void
ngx_http_mcp_pending_delete_send(ngx_mcp_zone_t *zone,
    ngx_mcp_pending_delete_t *due)
{
    ngx_uint_t                  i;
    ngx_http_mcp_upstream_t    *u;
    ngx_http_mcp_loc_conf_t   **eps;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_mcp_module);
    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->endpoints.nelts; i++) {

        if (eps[i]->zone != zone
            || !ngx_mcp_equal(&eps[i]->name, &due->endpoint))
        {
            continue;
        }

        u = ngx_http_mcp_router_find(&eps[i]->bridge.router, &due->upstream);

        if (u) {
            ngx_http_mcp_upstream_session_delete(u, NULL, &due->tenant,
                                                 &due->session, &due->id,
                                                 due->revision);
            return;
        }
    }
}


/*
 * Finds the request's session by id, endpoint, tenant and identity, or refuses
 * the request.  NGX_DECLINED: the session is found; else the content handler
 * returns the result.
 */

static ngx_int_t
ngx_http_mcp_legacy_client_find_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;
    ngx_str_t  id;

    rc = ngx_http_mcp_legacy_client_version(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->header_session.len == 0) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST, NGX_MCP_REFUSED,
                                   "the Mcp-Session-Id header is missing; "
                                   "begin with initialize");
    }

    ctx->session_checked = 1;

    if (ngx_mcp_session_find(ctx->conf->zone, &ctx->header_session,
                             &ctx->conf->name, &ctx->caller.tenant,
                             &ctx->caller.identity, &ctx->session)
        != NGX_OK)
    {
        if (ngx_mcp_session_exists(ctx->conf->zone, &ctx->header_session,
                                   &ctx->conf->name))
        {
            /* a reader of the log could use the whole id */

            id = ctx->header_session;
            id.len = ngx_min(id.len, 8);

            ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                          "mcp session \"%V...\" of endpoint \"%V\" belongs "
                          "to another identity or tenant than this request; "
                          "its id may be stolen", &id, &ctx->conf->name);
        }

        ngx_str_null(&ctx->caller.session_id);
        ctx->caller.revision = NGX_MCP_REVISION_UNKNOWN;

        return ngx_http_mcp_refuse(r, NGX_HTTP_NOT_FOUND,
                                   NGX_MCP_SESSION_NOT_FOUND,
                                   "Session not found");
    }

    ctx->caller.session_id = ctx->header_session;
    ctx->caller.revision = ctx->session.revision;
    ctx->caller.level = ctx->session.level;
    ctx->caller.audience = ctx->session.member_of;
    ctx->caller.session = ctx->session.ref;
    ctx->caller.found = &ctx->session;

    if (ngx_http_mcp_declares_as(r, ctx, ctx->session.letter) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->client_name.len == 0) {
        ctx->client_name = ctx->session.client_name;
        ctx->client_version = ctx->session.client_version;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_legacy_client_version(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_uint_t  revision;

    revision = ctx->header_revision;

    if (NGX_HTTP_MCP_VERSION(revision) & ctx->conf->versions
        & NGX_HTTP_MCP_MODERN_VERSIONS)
    {
        if (ctx->header_session.len) {

            /* with a session, GET and DELETE may have any version */

            return NGX_DECLINED;
        }

        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST, NGX_MCP_REFUSED,
                                   "2026-07-28 has no GET and no DELETE; to "
                                   "listen, send subscriptions/listen");
    }

    if (ctx->header_version.len
        && !(NGX_HTTP_MCP_VERSION(revision) & ctx->conf->versions
             & NGX_HTTP_MCP_LEGACY_VERSIONS))
    {
        return ngx_http_mcp_legacy_client_refuse_version(r, ctx,
                                   NGX_MCP_REFUSED,
                                   "Unsupported protocol version (supported "
                                   "versions: ", ")");
    }

    return NGX_DECLINED;
}


/* refuses a version; the error names the offered ones, newest first */

static ngx_int_t
ngx_http_mcp_legacy_client_refuse_version(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_int_t code, const char *before,
    const char *after)
{
    u_char      *p, *text;
    ngx_uint_t   i, n;

    text = ngx_pnalloc(r->pool, 256);
    if (text == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    n = 0;
    p = ngx_sprintf(text, "%s", before);

    for (i = NGX_MCP_2026_07_28; i; i--) {

        if (ctx->conf->versions & NGX_HTTP_MCP_VERSION(i)) {
            p = ngx_sprintf(p, "%s%V", n++ ? ", " : "",
                            ngx_mcp_revision_name(i));
        }
    }

    (void) ngx_sprintf(p, "%s%Z", after);

    return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST, code, (char *) text);
}


static ngx_int_t
ngx_http_mcp_legacy_client_server_request(ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_pool_t **pool,
    ngx_str_t *out)
{
    if (ureq->x->scan->members[NGX_MCP_PATH_ID].count
        && !(ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)
        && ctx->session.streams == 0)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_server_request_to_client(ureq, &ctx->caller, text, pool,
                                                 out);
}


/*
 * Begins the stream, from 2025-11-25 on with an event that has only an id.  The
 * event is left out if the client is about to be told of a gap: a client that
 * loses its connection before that would come back with the id, and never learn
 * of the gap.
 */

static u_char *
ngx_http_mcp_legacy_client_begin(ngx_http_mcp_stream_t *s, ngx_uint_t revision,
    u_char *p)
{
    p = ngx_http_mcp_legacy_client_retry(p, s->conf->stream_retry);

    if (revision >= NGX_MCP_2025_11_25 && !s->gap) {
        p = ngx_http_mcp_legacy_client_event(s, p);
        p = ngx_cpymem(p, "\n\n", 2);
    }

    return p;
}


static u_char *
ngx_http_mcp_legacy_client_event(ngx_http_mcp_stream_t *s, u_char *p)
{
    ngx_mcp_event_id_t  id;

    id.generation = ngx_mcp_zone_generation(s->streams->zone);
    id.channel = s->zs.channel;
    id.own = s->zs.cursor.own;
    id.group = s->zs.cursor.group;
    id.endpoint = s->zs.cursor.endpoint;

    p = ngx_cpymem(p, "id: ", sizeof("id: ") - 1);
    p = ngx_mcp_event_id_print(p, &id);

    return ngx_cpymem(p, "\ndata: ", sizeof("\ndata: ") - 1);
}


static u_char *
ngx_http_mcp_legacy_client_retry(u_char *p, ngx_msec_t time)
{
    return ngx_sprintf(p, "retry: %M\n\n", time);
}
