
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"


static ngx_uint_t ngx_http_mcp_only_stored(ngx_http_request_t *r,
    ngx_uint_t index, ngx_uint_t n);
static ngx_int_t ngx_http_mcp_tool_name(ngx_http_request_t *r,
    ngx_str_t *tool, ngx_str_t *decoded);


/*
 * A value that an earlier phase has cached, for example a "map" over a claim
 * that a limit looked at before the token was verified, must not decide here.
 * So the value is computed on an empty set of variables.  Some variables are
 * only ever stored ("set", "auth_request_set") and cannot be computed again:
 * these are handed in as they stand, and the value is computed once more.
 */

ngx_int_t
ngx_http_mcp_fresh_value(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_str_t *value)
{
    size_t                      size;
    ngx_int_t                   rc;
    ngx_log_t                  *log;
    ngx_uint_t                  i, n, level, again;
    ngx_http_mcp_ctx_t         *ctx;
    ngx_http_variable_value_t  *old, *fresh, *kept, *probe;
    ngx_http_core_main_conf_t  *cmcf;

    if (cv->lengths == NULL) {
        *value = cv->value;
        return NGX_OK;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    n = cmcf->variables.nelts;
    size = n * sizeof(ngx_http_variable_value_t);

    if (ctx->values == NULL) {
        ctx->values = ngx_palloc(r->pool, 3 * size);
        if (ctx->values == NULL) {
            return NGX_ERROR;
        }
    }

    fresh = ctx->values;
    kept = fresh + n;
    probe = kept + n;

    ngx_memzero(kept, size);

    old = r->variables;

    /* one that is not handed in yet is no reason to warn */

    log = r->connection->log;
    level = log->log_level;
    log->log_level = ngx_min(level, NGX_LOG_ERR);

    do {
        ngx_memcpy(fresh, kept, size);

        r->variables = fresh;

        rc = ngx_http_complex_value(r, cv, value);

        if (rc != NGX_OK) {
            break;
        }

        again = 0;

        for (i = 0; i < n; i++) {

            if (kept[i].valid || !old[i].valid || old[i].len == 0
                || !(fresh[i].not_found
                     || (fresh[i].valid && fresh[i].len == 0)))
            {
                continue;
            }

            ngx_memzero(probe, size);

            r->variables = probe;

            if (ngx_http_mcp_only_stored(r, i, n)) {
                kept[i] = old[i];
                again = 1;
            }
        }

    } while (again);

    log->log_level = level;
    r->variables = old;

    return rc;
}


/* whether computing the variable looks at no other: there is nothing to it */

static ngx_uint_t
ngx_http_mcp_only_stored(ngx_http_request_t *r, ngx_uint_t index,
    ngx_uint_t n)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    v = cmcf->variables.elts;

    if (v[index].flags & NGX_HTTP_VAR_NOCACHEABLE) {
        return 0;
    }

    if (v[index].get_handler(r, &r->variables[index], v[index].data)
        != NGX_OK)
    {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (i != index
            && (r->variables[i].valid || r->variables[i].not_found))
        {
            return 0;
        }
    }

    return 1;
}


ngx_int_t
ngx_http_mcp_evaluate(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why)
{
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    if (mlcf->tenant) {

        if (ngx_http_mcp_fresh_value(r, mlcf->tenant, &ctx->tenant) != NGX_OK) {
            return NGX_ERROR;
        }

        if (ctx->tenant.len == 0 && mlcf->tenant->lengths) {
            *why = "the tenant of the request is unknown";
            return NGX_DECLINED;
        }
    }

    if (mlcf->bind) {

        if (ngx_http_mcp_fresh_value(r, mlcf->bind, &ctx->identity) != NGX_OK) {
            return NGX_ERROR;
        }

        if (ctx->identity.len == 0 && mlcf->bind->lengths) {
            *why = "the identity of the request is unknown";
            return NGX_DECLINED;
        }
    }

    return ngx_http_mcp_denied(r, ctx, why);
}


ngx_int_t
ngx_http_mcp_denied(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why)
{
    ngx_str_t                  value;
    ngx_uint_t                 i;
    ngx_http_complex_value_t  *cv;
    ngx_http_mcp_loc_conf_t   *mlcf;

    mlcf = ctx->conf;

    if (mlcf->deny == NULL) {
        return NGX_OK;
    }

    cv = mlcf->deny->elts;

    for (i = 0; i < mlcf->deny->nelts; i++) {

        if (ngx_http_mcp_fresh_value(r, &cv[i], &value) != NGX_OK) {
            return NGX_ERROR;
        }

        if (value.len && !(value.len == 1 && value.data[0] == '0')) {
            *why = "the request is denied by the configuration";
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_filters(ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m)
{
    return ctx->conf->deny && m->method_code == NGX_MCP_METHOD_TOOLS_LIST;
}


/* what a tool is called decides, as it would in a tools/call of this caller */

ngx_int_t
ngx_http_mcp_filter(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_str_t *result, ngx_str_t *text)
{
    u_char                *p;
    ngx_int_t              rc;
    ngx_str_t              rest, name, value, tools, tool, out;
    const char            *why;
    ngx_http_mcp_scope_t   scope;

    ngx_str_null(&tools);

    rest = *result;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
        if (name.len == 7 && ngx_memcmp(name.data, "\"tools\"", 7) == 0) {
            tools = value;
        }
    }

    if (tools.len == 0 || tools.data[0] != '[') {
        return NGX_OK;
    }

    out.data = ngx_pnalloc(r->pool, text->len);
    if (out.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(out.data, text->data, tools.data - text->data);
    *p++ = '[';

    scope = ctx->scope;

    rest = tools;

    while (ngx_mcp_json_element(&rest, &tool) == NGX_OK) {

        if (tool.data[0] == '{') {

            rc = ngx_http_mcp_tool_name(r, &tool, &ctx->scope.name);

            if (rc == NGX_OK) {
                ngx_str_set(&ctx->scope.method, "tools/call");
                rc = ngx_http_mcp_denied(r, ctx, &why);
            }

            ctx->scope = scope;

            if (rc == NGX_ERROR) {
                return NGX_ERROR;
            }

            if (rc == NGX_DECLINED) {
                continue;
            }
        }

        if (p[-1] != '[') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, tool.data, tool.len);
    }

    *p++ = ']';

    p = ngx_cpymem(p, tools.data + tools.len,
                   text->data + text->len - tools.data - tools.len);

    out.len = p - out.data;
    *text = out;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_tool_name(ngx_http_request_t *r, ngx_str_t *tool,
    ngx_str_t *decoded)
{
    ngx_str_t  rest, name, value;

    ngx_str_null(decoded);

    rest = *tool;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (name.len != 6 || ngx_memcmp(name.data, "\"name\"", 6) != 0
            || value.data[0] != '"')
        {
            continue;
        }

        decoded->data = ngx_pnalloc(r->pool, value.len);
        if (decoded->data == NULL) {
            return NGX_ERROR;
        }

        decoded->len = ngx_mcp_json_unescape(decoded->data, &value)
                       - decoded->data;
    }

    return NGX_OK;
}
