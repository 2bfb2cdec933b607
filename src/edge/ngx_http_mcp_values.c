
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"


static ngx_int_t ngx_http_mcp_tool_name(ngx_http_request_t *r,
    ngx_str_t *tool, ngx_str_t *decoded);


ngx_int_t
ngx_http_mcp_fresh_value(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_str_t *value)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    return ngx_http_mcp_fresh(r, cv, &ctx->values, value);
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

    if (mlcf->bridge.lists_key
        && ngx_http_mcp_fresh_value(r, mlcf->bridge.lists_key, &ctx->list_key)
           != NGX_OK)
    {
        return NGX_ERROR;
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
