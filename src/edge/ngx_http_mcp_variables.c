
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"


/* sets *value to a variable's value for a request; NGX_OK or NGX_ERROR */

typedef ngx_int_t (*ngx_http_mcp_value_pt)(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);

typedef struct {
    ngx_str_t               name;
    ngx_http_mcp_value_pt   get;
    size_t                  offset;         /* argument of get() */
    ngx_uint_t              slash;          /* "/" of a method that the module
                                               knows is not percent-encoded in
                                               an upstream's URI */
} ngx_http_mcp_variable_t;


static ngx_int_t ngx_http_mcp_value_str(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_evaluated(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_scope(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_method(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_version(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_endpoint(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_response(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_error(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_events_sent(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, size_t offset, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_value_number(ngx_http_request_t *r,
    ngx_int_t number, ngx_str_t *value);

static ngx_int_t ngx_http_mcp_variable_encode(ngx_pool_t *pool,
    ngx_http_variable_value_t *v, ngx_uint_t slash);


static ngx_http_mcp_variable_t  ngx_http_mcp_vars[] = {

    { ngx_string("mcp_method"), ngx_http_mcp_value_method,
      offsetof(ngx_http_mcp_scope_t, method), 1 },

    { ngx_string("mcp_name"), ngx_http_mcp_value_scope,
      offsetof(ngx_http_mcp_scope_t, name), 0 },

    { ngx_string("mcp_request_id"), ngx_http_mcp_value_scope,
      offsetof(ngx_http_mcp_scope_t, request_id), 0 },

    { ngx_string("mcp_session_id"), ngx_http_mcp_value_session, 0, 0 },

    { ngx_string("mcp_protocol_version"), ngx_http_mcp_value_version, 0, 0 },

    { ngx_string("mcp_client_name"), ngx_http_mcp_value_str,
      offsetof(ngx_http_mcp_ctx_t, client_name), 0 },

    { ngx_string("mcp_client_version"), ngx_http_mcp_value_str,
      offsetof(ngx_http_mcp_ctx_t, client_version), 0 },

    { ngx_string("mcp_tenant"), ngx_http_mcp_value_evaluated,
      offsetof(ngx_http_mcp_ctx_t, caller.tenant), 0 },

    { ngx_string("mcp_endpoint"), ngx_http_mcp_value_endpoint, 0, 0 },

    { ngx_string("mcp_list_key"), ngx_http_mcp_value_evaluated,
      offsetof(ngx_http_mcp_ctx_t, caller.list_key), 0 },

    { ngx_string("mcp_topic"), ngx_http_mcp_value_str,
      offsetof(ngx_http_mcp_ctx_t, topic), 0 },

    { ngx_string("mcp_upstream"), ngx_http_mcp_value_str,
      offsetof(ngx_http_mcp_ctx_t, upstream), 0 },

    { ngx_string("mcp_response"), ngx_http_mcp_value_response, 0, 0 },

    { ngx_string("mcp_error"), ngx_http_mcp_value_error, 0, 0 },

    { ngx_string("mcp_events_sent"), ngx_http_mcp_value_events_sent, 0, 0 },

    { ngx_null_string, NULL, 0, 0 }
};


static ngx_int_t
ngx_http_mcp_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t                 value;
    ngx_uint_t                slash;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_variable_t  *var;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_mcp_module);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    var = (ngx_http_mcp_variable_t *) data;

    if (var->get(r, ctx, var->offset, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    /*
     * A value that is no part of the message, such as a tenant, may have any
     * byte.
     */

    if (ngx_http_mcp_printable(r->pool, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = value.len;
    v->data = value.data;

    if (!ctx->encoded) {
        return NGX_OK;
    }

    /* any other method with "/" might lead to the location of a tool */

    slash = var->slash
            && ngx_mcp_method_parse(&value) != NGX_MCP_METHOD_OTHER;

    return ngx_http_mcp_variable_encode(r->pool, v, slash);
}


void
ngx_http_mcp_compute_scope(ngx_http_request_t *r, ngx_http_mcp_scope_t *scope,
    ngx_uint_t encoded)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_mcp_module);

    if (ctx) {
        ctx->computed = scope;
        ctx->encoded = encoded ? 1 : 0;
    }
}


static ngx_int_t
ngx_http_mcp_value_str(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    *value = *(ngx_str_t *) ((char *) ctx + offset);

    return NGX_OK;
}


/*
 * Gives a value that the content handler evaluates.  If the request was refused
 * before, the value is evaluated now.
 */

static ngx_int_t
ngx_http_mcp_value_evaluated(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    const char  *why;

    if (!ctx->evaluated && !ctx->background && r->main->header_sent
        && ngx_http_mcp_evaluate(r->main, ctx, &why) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_value_str(r, ctx, offset, value);
}


static ngx_int_t
ngx_http_mcp_value_scope(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;

    scope = ctx->computed;

    if (scope == NULL && r != r->main) {
        x = ngx_http_mcp_exchange_of(r);
        scope = x ? x->scope : NULL;
    }

    if (scope == NULL) {
        scope = &ctx->scope;
    }

    *value = *(ngx_str_t *) ((char *) scope + offset);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value_method(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    /* a message that is not read is refused, and the log shows its header */

    if (ctx->message == NULL && !ctx->background && !ctx->header_twice
        && r->main->method == NGX_HTTP_POST)
    {
        *value = ctx->header_method;
        return NGX_OK;
    }

    return ngx_http_mcp_value_scope(r, ctx, offset, value);
}


static ngx_int_t
ngx_http_mcp_value_session(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    if (ctx->session_id.len && (ctx->computed || r != r->main)) {

        /* this id chooses the server of an upstream, as a session id does */

        *value = ctx->session_id;

        return NGX_OK;
    }

    ngx_http_mcp_verify_session(ctx);

    *value = ctx->caller.session_id;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value_version(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    ngx_http_mcp_verify_session(ctx);

    *value = ctx->caller.revision
             ? *ngx_mcp_revision_name(ctx->caller.revision)
             : ctx->header_version;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value_endpoint(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    *value = ctx->conf->name;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value_response(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    static ngx_str_t  names[] = {
        ngx_string("none"),
        ngx_string("json"),
        ngx_string("sse")
    };

    *value = names[ctx->response];

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value_error(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    if (ctx->tool_error) {
        ngx_str_set(value, "tool");
        return NGX_OK;
    }

    if (ctx->error || ctx->failed) {
        return ngx_http_mcp_value_number(r, ctx->error, value);
    }

    ngx_str_set(value, "");

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value_events_sent(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    size_t offset, ngx_str_t *value)
{
    return ngx_http_mcp_value_number(r, ctx->events_sent, value);
}


static ngx_int_t
ngx_http_mcp_value_number(ngx_http_request_t *r, ngx_int_t number,
    ngx_str_t *value)
{
    value->data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, "%i", number) - value->data;

    return NGX_OK;
}


/*
 * Percent-encodes a value for an upstream's URI, in which the value is one
 * segment: all but unreserved characters are encoded, also "/" unless slash is
 * set.
 */

static ngx_int_t
ngx_http_mcp_variable_encode(ngx_pool_t *pool, ngx_http_variable_value_t *v,
    ngx_uint_t slash)
{
    u_char  *p, *dst, *from, *end, *last;

    dst = ngx_pnalloc(pool, v->len * 3);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    p = dst;
    last = v->data + v->len;

    for (from = v->data; from <= last; from = end + 1) {

        end = slash ? ngx_strlchr(from, last, '/') : NULL;

        if (end == NULL) {
            end = last;
        }

        p = (u_char *) ngx_escape_uri(p, from, end - from,
                                      NGX_ESCAPE_URI_COMPONENT);
        if (end < last) {
            *p++ = '/';
        }
    }

    v->data = dst;
    v->len = p - dst;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t      *var;
    ngx_http_mcp_variable_t  *v;

    for (v = ngx_http_mcp_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, NGX_HTTP_VAR_NOCACHEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = ngx_http_mcp_variable;
        var->data = (uintptr_t) v;
    }

    return NGX_OK;
}
