
#include "ngx_http_mcp_list_merge.h"
#include "ngx_http_mcp_builtin.h"
#include "ngx_http_mcp_topic.h"


typedef struct {
    ngx_uint_t               method;
    ngx_str_t                key;         /* raw */
} ngx_http_mcp_list_merge_list_t;


static ngx_str_t *ngx_http_mcp_list_merge_key(ngx_uint_t method);
static ngx_int_t ngx_http_mcp_list_merge_prepend(ngx_http_mcp_list_merge_t *mix,
    ngx_str_t *own);
static ngx_int_t ngx_http_mcp_list_merge_tools(ngx_http_mcp_list_merge_t *mix,
    ngx_str_t *own);
static u_char *ngx_http_mcp_list_merge_filter(ngx_http_mcp_list_merge_t *mix,
    u_char *p, ngx_str_t *list);
static ngx_int_t ngx_http_mcp_list_merge_tool(ngx_http_mcp_list_merge_t *mix,
    ngx_str_t *tool);


static ngx_http_mcp_list_merge_list_t  ngx_http_mcp_list_merge_lists[] = {
    { NGX_MCP_METHOD_TOOLS_LIST, ngx_string("\"tools\"") },
    { NGX_MCP_METHOD_RESOURCES_LIST, ngx_string("\"resources\"") },
    { NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST,
      ngx_string("\"resourceTemplates\"") },
    { NGX_MCP_METHOD_OTHER, ngx_null_string }
};


static ngx_str_t *
ngx_http_mcp_list_merge_key(ngx_uint_t method)
{
    ngx_http_mcp_list_merge_list_t  *l;

    for (l = ngx_http_mcp_list_merge_lists; l->key.len; l++) {
        if (l->method == method) {
            return &l->key;
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_mcp_list_merge_own(ngx_http_mcp_bridge_t *bridge, ngx_uint_t method)
{
    switch (method) {

    case NGX_MCP_METHOD_TOOLS_LIST:
        return bridge->tools != 0;

    case NGX_MCP_METHOD_RESOURCES_LIST:
    case NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST:
        return (bridge->topics & NGX_HTTP_MCP_TOPICS_OFFERED) != 0;

    default:
        return 0;
    }
}


ngx_uint_t
ngx_http_mcp_list_merge_needed(ngx_http_mcp_list_merge_t *mix)
{
    if (mix->method == NGX_MCP_METHOD_TOOLS_LIST) {
        return mix->bridge->tools || mix->denied;
    }

    return mix->first && ngx_http_mcp_list_merge_own(mix->bridge, mix->method);
}


ngx_int_t
ngx_http_mcp_list_merge(ngx_http_mcp_list_merge_t *mix, ngx_str_t *result)
{
    u_char     *p, *kept;
    ngx_str_t   rest, name, value, list, own, out, *key;

    key = ngx_http_mcp_list_merge_key(mix->method);

    if (key == NULL || ngx_http_mcp_list_merge_prepend(mix, &own) != NGX_OK) {
        return key ? NGX_ERROR : NGX_OK;
    }

    ngx_str_null(&list);

    rest = *result;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
        if (ngx_mcp_equal(&name, key)) {
            list = value;
        }
    }

    if (result->len && (list.len == 0 || list.data[0] != '[')) {

        /* that is no list, and not for us to repair */

        return NGX_OK;
    }

    p = ngx_pnalloc(mix->pool, result->len + key->len + own.len
                               + sizeof("{:[,]}"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    out.data = p;

    if (result->len) {
        p = ngx_cpymem(p, result->data, list.data - result->data);

    } else {
        *p++ = '{';
        p = ngx_cpymem(p, key->data, key->len);
        *p++ = ':';
    }

    *p++ = '[';
    p = ngx_cpymem(p, own.data, own.len);

    if (list.len) {
        kept = ngx_http_mcp_list_merge_filter(mix, p, &list);

        if (kept == NULL) {
            return NGX_ERROR;
        }

        p = kept;
    }

    *p++ = ']';

    if (result->len) {
        p = ngx_cpymem(p, list.data + list.len,
                       result->data + result->len - list.data - list.len);

    } else {
        *p++ = '}';
    }

    out.len = p - out.data;
    *result = out;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_list_merge_prepend(ngx_http_mcp_list_merge_t *mix, ngx_str_t *own)
{
    own->data = (u_char *) "";
    own->len = 0;

    if (!mix->first || !ngx_http_mcp_list_merge_own(mix->bridge, mix->method)) {
        return NGX_OK;
    }

    switch (mix->method) {

    case NGX_MCP_METHOD_TOOLS_LIST:
        return ngx_http_mcp_list_merge_tools(mix, own);

    case NGX_MCP_METHOD_RESOURCES_LIST:
        return ngx_http_mcp_topic_entries(mix->bridge, mix->caller, mix->pool,
                                          own);

    default: /* NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST */
        *own = ngx_http_mcp_topic_template;
        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_mcp_list_merge_tools(ngx_http_mcp_list_merge_t *mix, ngx_str_t *own)
{
    u_char                  *p;
    size_t                   len;
    ngx_int_t                rc;
    ngx_http_mcp_builtin_t  *tool;

    len = 0;

    for (tool = ngx_http_mcp_builtins; tool->name.len; tool++) {
        len += tool->entry.len + 1;
    }

    p = ngx_pnalloc(mix->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    own->data = p;

    for (tool = ngx_http_mcp_builtins; tool->name.len; tool++) {

        if (!(mix->bridge->tools & tool->bit)) {
            continue;
        }

        rc = mix->denied ? mix->denied(mix->data, &tool->name) : NGX_OK;

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DECLINED) {
            continue;
        }

        if (p != own->data) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, tool->entry.data, tool->entry.len);
    }

    own->len = p - own->data;

    return NGX_OK;
}


/* the part of the upstream's list that stays; NULL: no memory */

static u_char *
ngx_http_mcp_list_merge_filter(ngx_http_mcp_list_merge_t *mix, u_char *p,
    ngx_str_t *list)
{
    ngx_int_t   rc;
    ngx_str_t   rest, entry;

    rest = *list;

    while (ngx_mcp_json_element(&rest, &entry) == NGX_OK) {

        if (mix->method == NGX_MCP_METHOD_TOOLS_LIST && entry.data[0] == '{') {

            rc = ngx_http_mcp_list_merge_tool(mix, &entry);

            if (rc == NGX_ERROR) {
                return NULL;
            }

            if (rc == NGX_DECLINED) {
                continue;
            }
        }

        if (p[-1] != '[') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, entry.data, entry.len);
    }

    return p;
}


/* a tool that has the name of a built-in one could never be called */

static ngx_int_t
ngx_http_mcp_list_merge_tool(ngx_http_mcp_list_merge_t *mix, ngx_str_t *tool)
{
    ngx_str_t                rest, key, value, name;
    ngx_http_mcp_builtin_t  *builtin;

    ngx_str_null(&name);

    rest = *tool;

    while (ngx_mcp_json_member(&rest, &key, &value) == NGX_OK) {

        if (key.len != 6 || ngx_memcmp(key.data, "\"name\"", 6) != 0
            || value.data[0] != '"')
        {
            continue;
        }

        name.data = ngx_pnalloc(mix->pool, value.len);
        if (name.data == NULL) {
            return NGX_ERROR;
        }

        name.len = ngx_mcp_json_unescape(name.data, &value) - name.data;
    }

    builtin = ngx_http_mcp_builtin(mix->bridge, &name);

    if (builtin) {

        if (!(mix->bridge->hidden & builtin->bit)) {
            mix->bridge->hidden |= builtin->bit;

            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "mcp endpoint \"%V\": the built-in tool hides the "
                          "tool \"%V\" of the upstream; rename that, or "
                          "change \"mcp_builtin_tools\"",
                          &mix->bridge->endpoint, &name);
        }

        return NGX_DECLINED;
    }

    return mix->denied ? mix->denied(mix->data, &name) : NGX_OK;
}
