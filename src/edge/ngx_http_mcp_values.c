
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_builtin.h"
#include "ngx_mcp_declared.h"
#include "ngx_mcp_list.h"


static ngx_int_t ngx_http_mcp_evaluate_part(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, const char *directive, ngx_str_t *value,
    const char *empty, const char *not_text, const char **why);
static void ngx_http_mcp_list_edit_init(ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m, ngx_http_mcp_list_edit_t *edit);
static ngx_int_t ngx_http_mcp_denied_reason(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, const char **why);
static ngx_int_t ngx_http_mcp_tool_denied(void *data, ngx_str_t *name);


ngx_int_t
ngx_http_mcp_evaluate_value(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    const char *directive, ngx_str_t *value)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    return ngx_http_mcp_uncached_value(r, cv, &ctx->values, directive,
                                       value);
}


ngx_int_t
ngx_http_mcp_evaluate(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why)
{
    ngx_int_t                 rc;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    ctx->evaluated = 1;

    /* the tenant must be valid text, as events and leases have it in JSON */

    rc = ngx_http_mcp_evaluate_part(r, mlcf->tenant, "mcp_tenant",
                           &ctx->caller.tenant,
                           "the tenant of the request is empty (mcp_tenant)",
                           "the tenant of the request is not UTF-8 "
                           "(mcp_tenant)", why);
    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_mcp_evaluate_part(r, mlcf->bind, "mcp_session_bind",
                           &ctx->caller.identity,
                           "the identity of the request is empty "
                           "(mcp_session_bind)", NULL, why);
    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_mcp_evaluate_part(r, mlcf->bridge.lists_key,
                           "mcp_list_cache",
                           &ctx->caller.list_key, NULL,
                           "the list key of the request is not UTF-8 "
                           "(mcp_list_cache)", why);
}


/*
 * Evaluates the tenant, identity or list key of the caller.  empty, not_text:
 * why an empty value, or one that is no UTF-8, is refused; NULL: it is not
 * refused.
 */

static ngx_int_t
ngx_http_mcp_evaluate_part(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    const char *directive, ngx_str_t *value, const char *empty,
    const char *not_text, const char **why)
{
    if (cv == NULL) {
        return NGX_OK;
    }

    if (ngx_http_mcp_evaluate_value(r, cv, directive, value) != NGX_OK) {
        return NGX_ERROR;
    }

    if (empty && value->len == 0 && cv->lengths) {
        *why = empty;
        return NGX_DECLINED;
    }

    if (not_text && !ngx_mcp_utf8_valid(value, 0)) {
        *why = not_text;
        return NGX_DECLINED;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_declares(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_str_t *capabilities)
{
    ngx_uint_t  declared;

    declared = ctx->conf->bridge.declared ? ngx_mcp_declared(capabilities) : 0;

    return ngx_http_mcp_declares_as(r, ctx, ngx_mcp_declared_letter(declared));
}


ngx_int_t
ngx_http_mcp_declares_as(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    u_char letter)
{
    ctx->caller.audience_key = ngx_mcp_audience_key(r->pool, letter,
                                                    &ctx->caller.list_key);

    return ctx->caller.audience_key.data ? NGX_OK : NGX_ERROR;
}


/* the name is that of "key=", else the identity, else the client's address */

ngx_int_t
ngx_http_mcp_evaluate_share(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    u_char            *p;
    ngx_str_t          value, *share;
    ngx_connection_t  *c;

    share = &ctx->caller.share;

    if (share->len) {
        return NGX_OK;
    }

    ngx_str_null(&value);

    if (ctx->conf->session_limit_key
        && ngx_http_mcp_evaluate_value(r, ctx->conf->session_limit_key,
                                       "mcp_session_limit", &value)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (value.len == 0) {
        value = ctx->caller.identity;
    }

    if (value.len) {
        p = ngx_pnalloc(r->pool, value.len + 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        share->data = p;
        share->len = value.len + 1;

        *p++ = 'k';
        ngx_memcpy(p, value.data, value.len);

        return NGX_OK;
    }

    c = r->connection;

#if (NGX_HAVE_INET6)

    /* an IPv6 client has a whole /64 network of addresses */

    if (c->sockaddr->sa_family == AF_INET6
        && !IN6_IS_ADDR_V4MAPPED(&((struct sockaddr_in6 *)
                                   c->sockaddr)->sin6_addr))
    {
        share->data = ((struct sockaddr_in6 *) c->sockaddr)->sin6_addr.s6_addr;
        share->len = 8;

        return NGX_OK;
    }

#endif

    *share = c->addr_text;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_denied(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why)
{
    ngx_str_t                  value;
    ngx_uint_t                 i;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_complex_value_t  *cv;

    mlcf = ctx->conf;

    if (mlcf->deny == NULL) {
        return NGX_OK;
    }

    cv = mlcf->deny->elts;

    for (i = 0; i < mlcf->deny->nelts; i++) {

        if (ngx_http_mcp_evaluate_value(r, &cv[i], "mcp_deny", &value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (value.len && !(value.len == 1 && value.data[0] == '0')) {
            return why ? ngx_http_mcp_denied_reason(r, ctx, why) : NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/* logs a refusal, sets *why; returns NGX_DECLINED; NGX_ERROR: no memory */

static ngx_int_t
ngx_http_mcp_denied_reason(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why)
{
    u_char      *p, *text;
    ngx_str_t    name, *kind, *method;
    ngx_uint_t   i;

    static struct {
        ngx_str_t  method;
        ngx_str_t  kind;
    } kinds[] = {
        { ngx_string("tools/call"), ngx_string("tool") },
        { ngx_string("prompts/get"), ngx_string("prompt") },
        { ngx_string("resources/read"), ngx_string("resource") },
        { ngx_string("resources/subscribe"), ngx_string("resource") },
        { ngx_string("resources/unsubscribe"), ngx_string("resource") },
        { ngx_string(""), ngx_string("method") }
    };

    method = &ctx->scope.method;

    for (i = 0; kinds[i].method.len; i++) {
        if (ngx_mcp_equal(&kinds[i].method, method)) {
            break;
        }
    }

    kind = &kinds[i].kind;
    name = kinds[i].method.len ? ctx->scope.name : *method;

    if (name.len == 0) {
        name = r->method_name;
    }

    text = ngx_pnalloc(r->pool, NGX_MCP_QUOTE + 64);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(text, "%V \"", kind);
    p = ngx_mcp_json_quote(p, &name);
    (void) ngx_sprintf(p, "\" is denied by mcp_deny%Z");

    *why = (char *) text;

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "mcp refused a request: %s, at endpoint \"%V\"", text,
                  &ctx->conf->name);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_mcp_denied_as(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_uint_t method_code, ngx_str_t *name, const char **why)
{
    ngx_int_t             rc;
    ngx_http_mcp_scope_t  scope;

    scope = ctx->scope;

    ctx->scope.method = *ngx_mcp_method_name(method_code);
    ctx->scope.name = *name;

    rc = ngx_http_mcp_denied(r, ctx, why);

    ctx->scope = scope;

    return rc;
}


ngx_uint_t
ngx_http_mcp_list_edited(ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m)
{
    ngx_http_mcp_list_edit_t  edit;

    ngx_http_mcp_list_edit_init(ctx, m, &edit);

    return ngx_http_mcp_list_edit_needed(&edit);
}


ngx_int_t
ngx_http_mcp_list_edit_text(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m, ngx_str_t *result, ngx_str_t *text)
{
    u_char     *p, *rest;
    ngx_str_t   own, out;

    own = *result;

    if (ngx_http_mcp_list_edit_result(r, ctx, m, &own) != NGX_OK) {
        return NGX_ERROR;
    }

    if (own.data == result->data) {
        return NGX_OK;
    }

    out.len = text->len - result->len + own.len;
    out.data = ngx_pnalloc(r->pool, out.len);

    if (out.data == NULL) {
        return NGX_ERROR;
    }

    rest = result->data + result->len;

    p = ngx_cpymem(out.data, text->data, result->data - text->data);
    p = ngx_cpymem(p, own.data, own.len);
    ngx_memcpy(p, rest, text->data + text->len - rest);

    *text = out;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_list_edit_result(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m, ngx_str_t *result)
{
    ngx_http_mcp_list_edit_t  edit;

    ngx_http_mcp_list_edit_init(ctx, m, &edit);

    edit.pool = r->pool;
    edit.data = r;

    return ngx_http_mcp_list_edit_needed(&edit)
           ? ngx_http_mcp_list_edit(&edit, result) : NGX_OK;
}


static void
ngx_http_mcp_list_edit_init(ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m,
    ngx_http_mcp_list_edit_t *edit)
{
    ngx_memzero(edit, sizeof(ngx_http_mcp_list_edit_t));

    edit->bridge = &ctx->conf->bridge;
    edit->caller = &ctx->caller;
    edit->method = m->method_code;
    edit->first = (m->json.members[NGX_MCP_PATH_CURSOR].type
                  <= NGX_MCP_JSON_NULL);

    if (ctx->conf->deny) {
        edit->denied = ngx_http_mcp_tool_denied;
    }
}


/* evaluates mcp_deny as for a tools/call of this caller with a tool's name */

static ngx_int_t
ngx_http_mcp_tool_denied(void *data, ngx_str_t *name)
{
    ngx_http_request_t *r = data;

    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    return ngx_http_mcp_denied_as(r, ctx, NGX_MCP_METHOD_TOOLS_CALL, name,
                                  NULL);
}


/*
 * A list that depends on a caller's headers must not be given to other
 * callers.
 */

ngx_uint_t
ngx_http_mcp_list_private(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    if (ctx->caller.list_key.len > NGX_MCP_LIST_KEY_MAX) {
        return 1;
    }

    if (ctx->caller.list_key.len) {
        return 0;
    }

    return ctx->conf->bind != NULL || r->headers_in.authorization != NULL
           || ctx->cookies;
}
