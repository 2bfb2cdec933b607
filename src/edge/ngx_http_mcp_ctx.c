
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_topic.h"


ngx_http_mcp_client_t  *ngx_http_mcp_client_default;


ngx_http_mcp_ctx_t *
ngx_http_mcp_make_ctx(ngx_http_request_t *r, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ctx->conf = mlcf;
    ctx->caller.endpoint = &mlcf->name;
    ctx->client = ngx_http_mcp_client_default;

    ngx_str_set(&ctx->caller.tenant, "");
    ngx_str_set(&ctx->caller.identity, "");
    ngx_str_set(&ctx->caller.list_key, "");
    ngx_str_set(&ctx->caller.audience_key, "a");

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    ngx_http_mcp_read_headers(r, ctx);

    ctx->origin_ok = !ctx->origins_differ
                     && (ctx->header_origin.len == 0
                         || ngx_http_mcp_origin_allowed(r, mlcf,
                                                        &ctx->header_origin));
    return ctx;
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
    ctx->caller.endpoint = &mlcf->name;
    ctx->client = ngx_http_mcp_client_default;
    ctx->background = 1;

    if (ngx_http_mcp_string_copy(r->pool, &ctx->caller.tenant,
                                 &audience->tenant)
        != NGX_OK
        || ngx_http_mcp_string_copy(r->pool, &ctx->caller.session_id,
                                    &audience->session)
           != NGX_OK
        || ngx_http_mcp_string_copy(r->pool, &ctx->caller.list_key,
                                    &audience->list_key)
           != NGX_OK
        || ngx_http_mcp_string_copy(r->pool, &ctx->topic, &audience->topic)
           != NGX_OK)
    {
        goto failed;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    return r;

failed:

    ngx_http_mcp_background_close(r);

    return NULL;
}


ngx_int_t
ngx_http_mcp_suspend(ngx_http_request_t *r, ngx_http_event_handler_pt reading)
{
    r->main->count++;
    r->read_event_handler = reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


void
ngx_http_mcp_verify_session(ngx_http_mcp_ctx_t *ctx)
{
    if (ctx->session_checked) {
        return;
    }

    ctx->session_checked = 1;

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
ngx_http_mcp_scan_method(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_http_mcp_scope_t *scope)
{
    ngx_str_null(&scope->name);
    scope->request_id = m->id;

    if (m->method_code != NGX_MCP_METHOD_OTHER) {
        scope->method = *ngx_mcp_method_name(m->method_code);
        return NGX_OK;
    }

    return ngx_http_mcp_ctx_value(r, m, NGX_MCP_PATH_METHOD, &scope->method);
}


ngx_int_t
ngx_http_mcp_scan_scope(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_http_mcp_scope_t *scope)
{
    ngx_str_t                 name;
    ngx_mcp_topic_t           topic;
    ngx_http_mcp_loc_conf_t  *mlcf;

    if (ngx_http_mcp_scan_method(r, m, scope) != NGX_OK) {
        return NGX_ERROR;
    }

    if (m->subject == NGX_MCP_PATH_NONE) {
        return NGX_OK;
    }

    if (ngx_http_mcp_ctx_value(r, m, m->subject, &scope->name) != NGX_OK) {
        return NGX_ERROR;
    }

    switch (m->method_code) {

    case NGX_MCP_METHOD_RESOURCES_READ:
    case NGX_MCP_METHOD_SUBSCRIBE:
    case NGX_MCP_METHOD_UNSUBSCRIBE:

        /* rules and topics get the same form of the URI of a topic */

        mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

        return ngx_http_mcp_topic_resolve(&mlcf->bridge, &scope->name, r->pool,
                                          &topic, &name);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_ctx_value(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_mcp_path_e path, ngx_str_t *value)
{
    if (m->json.members[path].type != NGX_MCP_JSON_STRING) {
        return NGX_OK;
    }

    *value = ngx_mcp_message_string(m, path, r->pool);

    return value->data ? ngx_http_mcp_printable(r->pool, value) : NGX_ERROR;
}


ngx_int_t
ngx_http_mcp_printable(ngx_pool_t *pool, ngx_str_t *value)
{
    u_char  *p;
    size_t   i;

    for (i = 0; i < value->len; i++) {
        if (value->data[i] < 0x20 || value->data[i] == 0x7f) {
            break;
        }
    }

    if (i == value->len) {
        return NGX_OK;
    }

    p = ngx_pstrdup(pool, value);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value->data = p;

    for ( /* void */ ; i < value->len; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f) {
            p[i] = '?';
        }
    }

    return NGX_OK;
}
