
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_stream.h"


#define NGX_HTTP_MCP_LEGACY_ONLY                                              \
    "this endpoint supports 2025-11-25, 2025-06-18 and 2025-03-26; begin "    \
    "with initialize"


static ngx_int_t ngx_http_mcp_discover_probe(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_post(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_get(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_delete(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_refuse_form(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_not_allowed(ngx_http_request_t *r,
    const char *why);
static ngx_int_t ngx_http_mcp_find_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_int_t *refusal);


ngx_http_mcp_ctx_t *
ngx_http_mcp_get_ctx(ngx_http_request_t *r, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (ctx) {
        return ctx;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ctx->conf = mlcf;

    ngx_str_set(&ctx->caller.tenant, "");
    ngx_str_set(&ctx->caller.identity, "");
    ngx_str_set(&ctx->caller.list_key, "");

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    ngx_http_mcp_read_headers(r, ctx);

    ctx->origin_ok = ctx->header_origin.len == 0
                     || ngx_http_mcp_origin_allowed(r, mlcf,
                                                    &ctx->header_origin);
    return ctx;
}


/*
 * Runs before nginx's limits and access rules, so that these can look at what
 * the message says.  What is wrong with the message is only noted here and
 * said in the content phase: a refusal counts and costs like any request.
 */

ngx_int_t
ngx_http_mcp_preaccess_handler(ngx_http_request_t *r)
{
    ngx_str_t                 preflight;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    if (r != r->main) {

        /*
         * The URI of an exchange is percent-encoded as it has to go out: an
         * internal one would be taken for decoded and encoded once more.
         */

        if (r->internal && ngx_http_mcp_exchange_of(r)) {
            r->internal = 0;

            ctx = ngx_http_get_module_ctx(r->main, ngx_http_mcp_module);

            if (ctx && ctx->batch) {
                ngx_http_mcp_batch_exchange(ctx->batch);
            }
        }

        return NGX_DECLINED;
    }

    if (!mlcf->endpoint) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_mcp_get_ctx(r, mlcf);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->scanned) {

        if (ctx->batch) {
            ngx_http_mcp_batch_phase(ctx->batch);
        }

        return NGX_DECLINED;
    }

    if (ctx->reading) {
        return NGX_DONE;
    }

    if (r->method == NGX_HTTP_OPTIONS && mlcf->cors && ctx->origin_ok
        && ctx->header_origin.len)
    {
        ngx_str_set(&preflight, "Access-Control-Request-Method");

        if (ngx_http_mcp_find_header(r, &preflight) != NULL) {
            ngx_http_finalize_request(r, ngx_http_mcp_preflight(r));
            return NGX_DONE;
        }
    }

    if (r->method != NGX_HTTP_POST) {
        ctx->scanned = 1;
        return NGX_DECLINED;
    }

    if (!ctx->origin_ok || !ngx_http_mcp_is_json(r)) {
        ctx->scanned = 1;
        return NGX_DECLINED;
    }

    return ngx_http_mcp_read_body(r, ctx);
}


void
ngx_http_mcp_look_up(ngx_http_mcp_ctx_t *ctx)
{
    if (ctx->looked_up) {
        return;
    }

    ctx->looked_up = 1;

    if (ctx->header_session.len == 0) {
        return;
    }

    ctx->caller.revision = ngx_mcp_session_exists(ctx->conf->zone,
                                                   &ctx->header_session,
                                                   &ctx->conf->name);
    if (ctx->caller.revision) {
        ctx->caller.session_id = ctx->header_session;
    }
}


ngx_int_t
ngx_http_mcp_content_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    const char               *why;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    ctx = ngx_http_mcp_get_ctx(r, mlcf);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "mcp endpoint \"%V\" cannot answer a subrequest; send "
                      "requests of clients to its location directly",
                      &mlcf->name);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_mcp_refuse_form(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (mlcf->zone->worker == NGX_MCP_NO_WORKER) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   NGX_MCP_REFUSED,
                                   "this worker cannot use the zone until "
                                   "older workers exit; try again later");
    }

    /* what decides about access is computed here and not before */

    if (ctx->batch) {
        rc = ngx_http_mcp_batch_check(ctx->batch, &why);

    } else {
        rc = ngx_http_mcp_evaluate(r, ctx, &why);

        if (rc == NGX_OK) {
            rc = ngx_http_mcp_denied(r, ctx, &why);
        }
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_FORBIDDEN, NGX_MCP_REFUSED,
                                   why);
    }

    switch (r->method) {

    case NGX_HTTP_POST:
        return ngx_http_mcp_post(r, ctx);

    case NGX_HTTP_GET:
        return ngx_http_mcp_get(r, ctx);

    default: /* NGX_HTTP_DELETE */
        return ngx_http_mcp_delete(r, ctx);
    }
}


/* what is wrong whoever sent it; NGX_DECLINED: nothing is */

static ngx_int_t
ngx_http_mcp_refuse_form(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (r->method != NGX_HTTP_POST || !ctx->origin_ok || !ctx->message) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (!ctx->origin_ok) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_FORBIDDEN, NGX_MCP_REFUSED,
                                   "the Origin is not allowed here; the "
                                   "server's operator may add it to "
                                   "mcp_allowed_origins");
    }

    switch (r->method) {

    case NGX_HTTP_POST:

        if (!ctx->message) {
            return ngx_http_mcp_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                       NGX_MCP_REFUSED,
                                       "Content-Type must be "
                                       "application/json");
        }

        if (ctx->bad) {
            return ngx_http_mcp_refuse(r, ctx->bad_status, ctx->bad_code,
                                       ctx->bad);
        }

        if (ctx->accept == 0) {
            return ngx_http_mcp_refuse(r, 406, NGX_MCP_REFUSED,
                                       "Accept must allow application/json or "
                                       "text/event-stream");
        }

        return NGX_DECLINED;

    case NGX_HTTP_GET:

        if (!(ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
            return ngx_http_mcp_refuse(r, 406, NGX_MCP_REFUSED,
                                       "Accept must allow text/event-stream");
        }

        return NGX_DECLINED;

    case NGX_HTTP_DELETE:
        return NGX_DECLINED;

    default:
        return ngx_http_mcp_not_allowed(r, "the method must be POST, GET or "
                                        "DELETE");
    }
}


static ngx_int_t
ngx_http_mcp_not_allowed(ngx_http_request_t *r, const char *why)
{
    ngx_str_t  allow;

    ngx_str_set(&allow, "GET, POST, DELETE");

    if (ngx_http_mcp_header(r, "Allow", &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_refuse(r, NGX_HTTP_NOT_ALLOWED, NGX_MCP_REFUSED, why);
}


/*
 * The request's session, found by id, endpoint, tenant and identity.  NGX_OK,
 * or NGX_DECLINED with what the handler returns in *refusal.
 */

static ngx_int_t
ngx_http_mcp_find_session(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_int_t *refusal)
{
    ngx_str_t   id;
    ngx_uint_t  revision;

    revision = ngx_mcp_revision_parse(&ctx->header_version);

    if (ctx->header_version.len
        && (revision == NGX_MCP_REVISION_UNKNOWN
            || revision == NGX_MCP_2026_07_28))
    {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_REFUSED,
                             "Unsupported protocol version (supported "
                             "versions: 2025-11-25, 2025-06-18, 2025-03-26)");
        return NGX_DECLINED;
    }

    if (ctx->header_session.len == 0) {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_REFUSED,
                             "the Mcp-Session-Id header is missing; begin "
                             "with initialize");
        return NGX_DECLINED;
    }

    ctx->looked_up = 1;

    if (ngx_mcp_session_find(ctx->conf->zone, &ctx->header_session,
                             &ctx->conf->name, &ctx->caller.tenant,
                             &ctx->caller.identity, &ctx->session)
        != NGX_OK)
    {
        if (ngx_mcp_session_exists(ctx->conf->zone, &ctx->header_session,
                                   &ctx->conf->name))
        {
            /* whoever reads the log must not get the id */

            id = ctx->header_session;
            id.len = ngx_min(id.len, 8);

            ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                          "mcp session \"%V...\" of endpoint \"%V\" belongs "
                          "to another identity or tenant than this request; "
                          "its id may be stolen", &id, &ctx->conf->name);
        }

        ngx_str_null(&ctx->caller.session_id);
        ctx->caller.revision = NGX_MCP_REVISION_UNKNOWN;

        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_NOT_FOUND,
                             NGX_MCP_SESSION_NOT_FOUND, "Session not found");
        return NGX_DECLINED;
    }

    ctx->caller.session_id = ctx->header_session;
    ctx->caller.revision = ctx->session.revision;
    ctx->caller.level = ctx->session.level;
    ctx->caller.audience = ctx->session.listed;
    ctx->caller.session = ctx->session.ref;
    ctx->caller.found = &ctx->session;

    if (ctx->client_name.len == 0) {
        ctx->client_name = ctx->session.client_name;
        ctx->client_version = ctx->session.client_version;
    }

    return NGX_OK;
}


/*
 * server/discover, by which a client of both eras finds out which one to speak.
 * All of them then begin with initialize if the error is -32601 with the id of
 * the request; several take another code for the end.
 */

static ngx_int_t
ngx_http_mcp_discover_probe(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  refusal;

    if (ctx->header_session.len
        && ngx_mcp_revision_parse(&ctx->header_version) != NGX_MCP_2026_07_28)
    {
        if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
            return refusal;
        }

        return ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_METHOD_NOT_FOUND,
                                   "Method not found");
    }

    return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                               NGX_MCP_METHOD_NOT_FOUND,
                               NGX_HTTP_MCP_LEGACY_ONLY);
}


static ngx_int_t
ngx_http_mcp_post(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t           refusal;
    ngx_mcp_message_t  *m;

    m = ctx->message;

    if (m->kind == NGX_MCP_REQUEST
        && m->method_code == NGX_MCP_METHOD_DISCOVER)
    {
        return ngx_http_mcp_discover_probe(r, ctx);
    }

    if (m->modern) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST, NGX_MCP_REFUSED,
                                   NGX_HTTP_MCP_LEGACY_ONLY);
    }

    if (m->kind == NGX_MCP_REQUEST
        && m->method_code == NGX_MCP_METHOD_INITIALIZE)
    {
        return ngx_http_mcp_initialize(r, ctx);
    }

    if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    switch (m->kind) {

    case NGX_MCP_REQUEST:
        return ngx_http_mcp_call_start(r, ctx, m);

    case NGX_MCP_BATCH:
        return ngx_http_mcp_batch(r, ctx);

    default: /* NGX_MCP_NOTIFICATION, NGX_MCP_RESPONSE */
        return ngx_http_mcp_notice(r, ctx, m);
    }
}


static ngx_int_t
ngx_http_mcp_get(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    uint32_t                  line;
    ngx_int_t                 rc, refusal;
    ngx_uint_t                gap;
    ngx_mcp_cursor_t          from, *fp;
    ngx_mcp_event_id_t        id;
    ngx_http_mcp_upstream_t  *u;

    if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    line = NGX_MCP_GENERAL_LINE;
    gap = 0;
    fp = NULL;

    if (ctx->header_last_event.len) {

        if (ngx_mcp_event_id_parse(&ctx->header_last_event, &id) == NGX_OK
            && id.generation == ngx_mcp_zone_generation(ctx->conf->zone))
        {
            line = id.line;
            from.own = id.own;
            from.shared = id.shared;
            fp = &from;

        } else {
            gap = 1;
        }
    }

    u = ctx->conf->upstreams ? ctx->conf->upstreams->elts : NULL;

    rc = ngx_http_mcp_stream_open(r, line, fp, gap, NULL);

    if (rc == NGX_HTTP_NOT_ALLOWED) {
        return ngx_http_mcp_not_allowed(r, "the request of this Last-Event-ID "
                                           "has ended; the stream has no "
                                           "further messages");
    }

    if (rc == NGX_DONE && u && line == NGX_MCP_GENERAL_LINE) {
        ngx_http_mcp_listen(u, r, &ctx->caller);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_delete(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t                    refusal;
    ngx_uint_t                   i;
    ngx_http_mcp_upstream_t     *u;
    ngx_mcp_upstream_session_t  *us;

    if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    /*
     * Upstreams are told with the headers of who asks, while these are here.
     * Where many are told already, it waits in the zone, without these.
     */

    u = NULL;
    us = NULL;

    if (ctx->conf->upstreams && !ngx_mcp_farewell_full(ctx->conf->zone)) {
        u = ctx->conf->upstreams->elts;
        us = ngx_pcalloc(r->pool, ctx->conf->upstreams->nelts
                                  * sizeof(ngx_mcp_upstream_session_t));
        if (us == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        for (i = 0; i < ctx->conf->upstreams->nelts; i++) {

            if (ngx_mcp_upstream_session_peek(ctx->conf->zone,
                                              ctx->caller.session, &u[i].name,
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

    for (i = 0; u && i < ctx->conf->upstreams->nelts; i++) {

        if (us[i].id.data == NULL) {

            /* none, or it is for the zone to say */

            continue;
        }

        ngx_http_mcp_farewell(&u[i], r, &ctx->caller.tenant,
                              &ctx->caller.session_id, &us[i].id,
                              us[i].revision);
    }

    return ngx_http_mcp_answer(r, NGX_HTTP_OK, NULL);
}


ngx_http_request_t *
ngx_http_mcp_background_request(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_audience_t *audience)
{
    ngx_http_request_t       *r;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = conf->loc_conf[ngx_http_mcp_module.ctx_index];

    r = ngx_http_mcp_background_create(conf, &mlcf->server, ngx_cycle->log);
    if (r == NULL) {
        return NULL;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_ctx_t));
    if (ctx == NULL) {
        goto failed;
    }

    ctx->conf = mlcf;
    ctx->background = 1;

    ctx->caller.tenant.data = ngx_pstrdup(r->pool, &audience->tenant);
    ctx->caller.session_id.data = ngx_pstrdup(r->pool, &audience->session);
    ctx->caller.list_key.data = ngx_pstrdup(r->pool, &audience->list_key);
    ctx->topic.data = ngx_pstrdup(r->pool, &audience->topic);

    if (ctx->caller.tenant.data == NULL || ctx->caller.session_id.data == NULL
        || ctx->caller.list_key.data == NULL || ctx->topic.data == NULL)
    {
        goto failed;
    }

    ctx->caller.tenant.len = audience->tenant.len;
    ctx->caller.session_id.len = audience->session.len;
    ctx->caller.list_key.len = audience->list_key.len;
    ctx->topic.len = audience->topic.len;

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    return r;

failed:

    ngx_http_mcp_background_close(r);

    return NULL;
}


void
ngx_http_mcp_farewell_doorbell(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *upstream, ngx_str_t *id, ngx_str_t *tenant, ngx_str_t *session,
    ngx_uint_t revision)
{
    ngx_uint_t                  i, n;
    ngx_http_mcp_upstream_t    *u;
    ngx_http_mcp_loc_conf_t   **eps;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_mcp_module);
    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->endpoints.nelts; i++) {

        if (eps[i]->zone != zone || eps[i]->upstreams == NULL
            || !ngx_mcp_equal(&eps[i]->name, endpoint))
        {
            continue;
        }

        u = eps[i]->upstreams->elts;

        for (n = 0; n < eps[i]->upstreams->nelts; n++) {

            if (ngx_mcp_equal(&u[n].name, upstream)) {
                ngx_http_mcp_farewell(&u[n], NULL, tenant, session, id,
                                      revision);
                return;
            }
        }
    }
}
