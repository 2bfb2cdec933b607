
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"


static ngx_int_t ngx_http_mcp_variable_str(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_mcp_variable_scope(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_mcp_variable_version(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_mcp_variable_endpoint(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_mcp_variable_response(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_mcp_variable_error(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_mcp_variable_events_sent(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

static ngx_int_t ngx_http_mcp_variable_set(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_str_t *value, ngx_uint_t slash);


static ngx_http_variable_t  ngx_http_mcp_vars[] = {

    { ngx_string("mcp_method"), NULL, ngx_http_mcp_variable_scope,
      offsetof(ngx_http_mcp_scope_t, method), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_name"), NULL, ngx_http_mcp_variable_scope,
      offsetof(ngx_http_mcp_scope_t, name), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_request_id"), NULL, ngx_http_mcp_variable_scope,
      offsetof(ngx_http_mcp_scope_t, request_id), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_session_id"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, session_id), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_protocol_version"), NULL, ngx_http_mcp_variable_version,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_client_name"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, client_name), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_client_version"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, client_version),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_tenant"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, tenant), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_endpoint"), NULL, ngx_http_mcp_variable_endpoint,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_list_key"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, list_key), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_topic"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, topic), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_upstream"), NULL, ngx_http_mcp_variable_str,
      offsetof(ngx_http_mcp_ctx_t, upstream), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_response"), NULL, ngx_http_mcp_variable_response,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_error"), NULL, ngx_http_mcp_variable_error,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("mcp_events_sent"), NULL, ngx_http_mcp_variable_events_sent,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_inline ngx_http_mcp_ctx_t *
ngx_http_mcp_variable_ctx(ngx_http_request_t *r)
{
    return ngx_http_get_module_ctx(r->main, ngx_http_mcp_module);
}


static ngx_int_t
ngx_http_mcp_variable_str(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    if (data == offsetof(ngx_http_mcp_ctx_t, session_id)) {
        ngx_http_mcp_look_up(ctx);
    }

    return ngx_http_mcp_variable_set(r, v,
                                     (ngx_str_t *) ((char *) ctx + data), 0);
}


static ngx_int_t
ngx_http_mcp_variable_scope(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    scope = ngx_http_mcp_scope;

    if (scope == NULL && r != r->main) {
        x = ngx_http_mcp_exchange_of(r);
        scope = x ? x->scope : NULL;
    }

    if (scope == NULL) {
        scope = &ctx->scope;
    }

    return ngx_http_mcp_variable_set(r, v,
                                     (ngx_str_t *) ((char *) scope + data),
                                     data == offsetof(ngx_http_mcp_scope_t,
                                                      method));
}


static ngx_int_t
ngx_http_mcp_variable_version(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_http_mcp_look_up(ctx);

    if (ctx->session.revision) {
        return ngx_http_mcp_variable_set(r, v,
                               ngx_mcp_revision_name(ctx->session.revision), 0);
    }

    return ngx_http_mcp_variable_set(r, v, &ctx->header_version, 0);
}


static ngx_int_t
ngx_http_mcp_variable_endpoint(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_mcp_variable_set(r, v, &ctx->conf->name, 0);
}


static ngx_int_t
ngx_http_mcp_variable_response(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t            value;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    switch (ctx->response) {

    case 1:
        ngx_str_set(&value, "json");
        break;

    case 2:
        ngx_str_set(&value, "sse");
        break;

    default:
        ngx_str_set(&value, "none");
    }

    return ngx_http_mcp_variable_set(r, v, &value, 0);
}


static ngx_int_t
ngx_http_mcp_variable_error(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t            value;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    if (ctx->tool_error) {
        ngx_str_set(&value, "tool");

    } else if (ctx->error) {
        value.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
        if (value.data == NULL) {
            return NGX_ERROR;
        }

        value.len = ngx_sprintf(value.data, "%i", ctx->error) - value.data;

    } else {
        ngx_str_set(&value, "");
    }

    return ngx_http_mcp_variable_set(r, v, &value, 0);
}


static ngx_int_t
ngx_http_mcp_variable_events_sent(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t            value;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_mcp_variable_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    value.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%ui", ctx->events_sent) - value.data;

    return ngx_http_mcp_variable_set(r, v, &value, 0);
}


/*
 * In an upstream URI a value is one segment: everything but unreserved
 * characters is percent-encoded, and so "/" is, except in a method's name.
 */

static ngx_int_t
ngx_http_mcp_variable_set(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    ngx_str_t *value, ngx_uint_t slash)
{
    u_char  *p, *dst, ch;
    size_t   i;

    static u_char  hex[] = "0123456789ABCDEF";

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = value->len;
    v->data = value->data;

    for (i = 0; i < value->len; i++) {

        if (value->data[i] >= 0x20 && value->data[i] != 0x7f) {
            continue;
        }

        /* what came from elsewhere, as a tenant does, may hold any byte */

        p = ngx_pstrdup(r->pool, value);
        if (p == NULL) {
            return NGX_ERROR;
        }

        for ( /* void */ ; i < value->len; i++) {
            if (p[i] < 0x20 || p[i] == 0x7f) {
                p[i] = '?';
            }
        }

        v->data = p;
        break;
    }

    if (!ngx_http_mcp_encoding) {
        return NGX_OK;
    }

    dst = ngx_pnalloc(r->pool, value->len * 3);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    p = dst;

    for (i = 0; i < v->len; i++) {
        ch = v->data[i];

        if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
            || (ch >= '0' && ch <= '9') || ch == '-' || ch == '_'
            || ch == '.' || ch == '~' || (ch == '/' && slash))
        {
            *p++ = ch;
            continue;
        }

        *p++ = '%';
        *p++ = hex[ch >> 4];
        *p++ = hex[ch & 0xf];
    }

    v->data = dst;
    v->len = p - dst;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_mcp_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}
