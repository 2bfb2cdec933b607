
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"


static ngx_int_t ngx_http_mcp_call_set_level(ngx_http_mcp_call_t *call,
    ngx_str_t *result, ngx_int_t *code, const char **why);


/*
 * What is answered here, wholly or first: NGX_OK with the result, NGX_ERROR
 * with the code and why, NGX_DECLINED: an upstream has to be asked.
 */

ngx_int_t
ngx_http_mcp_call_here(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_int_t  rc;

    switch (call->message->method_code) {

    case NGX_MCP_METHOD_TOOLS_LIST:
    case NGX_MCP_METHOD_PROMPTS_LIST:
    case NGX_MCP_METHOD_RESOURCES_LIST:
    case NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST:
        rc = ngx_http_mcp_call_list(call, why);

        if (rc == NGX_AGAIN) {
            call->listing = 1;
            return NGX_DECLINED;
        }

        if (rc != NGX_DECLINED) {
            *code = NGX_MCP_INVALID_PARAMS;
            return rc;
        }

        break;

    case NGX_MCP_METHOD_SET_LEVEL:
        return ngx_http_mcp_call_set_level(call, result, code, why);

    case NGX_MCP_METHOD_SUBSCRIBE:
    case NGX_MCP_METHOD_UNSUBSCRIBE:
        return ngx_http_mcp_call_subscribe(call, result, code, why);
    }

    rc = ngx_http_mcp_call_own(call, result, code, why);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (call->ctx->conf->upstreams == NULL) {
        *code = NGX_MCP_METHOD_NOT_FOUND;
        *why = "Method not found";
        return NGX_ERROR;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_call_set_level(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why)
{
    ngx_str_t   name;
    ngx_uint_t  level;

    if (!(call->ctx->session.offered & NGX_MCP_OFFERED_LOGGING)) {
        *code = NGX_MCP_METHOD_NOT_FOUND;
        *why = "Method not found: logging is not offered";
        return NGX_ERROR;
    }

    level = NGX_MCP_LEVEL_UNSET;

    if (call->message->json.members[NGX_MCP_PATH_LEVEL].type
        == NGX_MCP_JSON_STRING)
    {
        name = ngx_mcp_message_string(call->message, NGX_MCP_PATH_LEVEL,
                                      call->r->pool);
        level = ngx_mcp_level_parse(&name);
    }

    if (level == NGX_MCP_LEVEL_UNSET) {
        *code = NGX_MCP_INVALID_PARAMS;
        *why = "params.level must be one of debug, info, notice, warning, "
               "error, critical, alert, emergency";
        return NGX_ERROR;
    }

    ngx_mcp_session_set_level(call->ctx->conf->zone, call->ctx->session.ref,
                              level);

    ngx_str_set(result, "{}");

    if (call->ctx->conf->upstreams == NULL) {
        return NGX_OK;
    }

    /* upstream sessions of this session hear of it, later ones as well */

    call->talk.existing = 1;
    call->local_answer = 1;

    return NGX_DECLINED;
}
