
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream_request.h"
#include "ngx_mcp_list.h"


ngx_uint_t
ngx_http_mcp_upstream_message_method(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t  method;

    method = ngx_mcp_json_span(&ureq->x->scan, NGX_MCP_PATH_METHOD, text->data);

    if (method.len < 2
        || ureq->x->scan.members[NGX_MCP_PATH_METHOD].type
        != NGX_MCP_JSON_STRING)
    {
        return NGX_MCP_METHOD_OTHER;
    }

    method.data++;
    method.len -= 2;

    return ngx_mcp_method_parse(&method);
}


ngx_str_t
ngx_http_mcp_upstream_message_uri(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_pool_t *pool)
{
    ngx_str_t  raw, uri;

    ngx_str_null(&uri);

    if (ureq->x->scan.members[NGX_MCP_PATH_URI].type != NGX_MCP_JSON_STRING) {
        return uri;
    }

    raw = ngx_mcp_json_span(&ureq->x->scan, NGX_MCP_PATH_URI, text->data);

    uri.data = ngx_pnalloc(pool, raw.len);

    if (uri.data) {
        uri.len = ngx_mcp_json_unescape(uri.data, &raw) - uri.data;
    }

    return uri;
}


ngx_uint_t
ngx_http_mcp_upstream_message_duplicate(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_str_t *text)
{
    ngx_mcp_zone_t  *zone;

    zone = ureq->upstream->zone;

    switch (ngx_http_mcp_upstream_message_method(ureq, text)) {

    case NGX_MCP_METHOD_TOOLS_CHANGED:
        return ngx_mcp_list_signal_session(zone, caller->session,
                                     NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS));

    case NGX_MCP_METHOD_PROMPTS_CHANGED:
        return ngx_mcp_list_signal_session(zone, caller->session,
                                     NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS));

    case NGX_MCP_METHOD_RESOURCES_CHANGED:
        return ngx_mcp_list_signal_session(zone, caller->session,
                                     NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
                                     |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TEMPLATES));

    case NGX_MCP_METHOD_RESOURCES_UPDATED:
        return ngx_http_mcp_update_duplicate(ureq, caller, text);
    }

    return 0;
}
