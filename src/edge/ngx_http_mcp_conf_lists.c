
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_md5.h>
#include "ngx_http_mcp_conf.h"


static ngx_int_t ngx_http_mcp_param_kinds(ngx_conf_t *cf,
    ngx_http_mcp_param_t *param, ngx_str_t *value, void *slot);


static ngx_http_mcp_param_t  ngx_http_mcp_list_cache_params[] = {
    { "ttl", ngx_http_mcp_param_time,
      offsetof(ngx_http_mcp_bridge_t, lists_ttl), 1, 0,
      "\"ttl\" is a time above 0, for example \"5m\"" },
    NGX_HTTP_MCP_PARAM("key", value, ngx_http_mcp_bridge_t, lists_key),
    { "max", ngx_http_mcp_param_number,
      offsetof(ngx_http_mcp_bridge_t, lists_max), 1, 4096,
      "\"max\" is a number from 1 to 4096" },
    { "kinds", ngx_http_mcp_param_kinds,
      offsetof(ngx_http_mcp_bridge_t, lists_kinds), 0, 0,
      "\"kinds\" are some of \"tools\", \"prompts\", \"resources\" and "
      "\"templates\", each once, with commas between them" },
    { "warm=on", NULL, offsetof(ngx_http_mcp_bridge_t, lists_warm),
      1, 0, NULL },
    { "warm=off", NULL, offsetof(ngx_http_mcp_bridge_t, lists_warm),
      0, 0, NULL },
    NGX_HTTP_MCP_PARAM_END
};


char *
ngx_http_mcp_conf_list_cache(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t              *value;
    const char             *usage;
    ngx_http_mcp_bridge_t  *bridge;

    bridge = &mlcf->bridge;

    usage = "write \"mcp_list_cache off|auto|on [ttl=TIME] [key=VALUE] "
            "[max=NUMBER] [kinds=KIND,...] [warm=on|off];\"";

    bridge->lists_here = 1;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        bridge->lists = NGX_HTTP_MCP_LIST_CACHE_OFF;

    } else if (ngx_strcmp(value[1].data, "auto") == 0) {
        bridge->lists = NGX_HTTP_MCP_LIST_CACHE_AUTO;

    } else if (ngx_strcmp(value[1].data, "on") == 0) {
        bridge->lists = NGX_HTTP_MCP_LIST_CACHE_ON;

    } else {
        return ngx_http_mcp_conf_invalid(cf, &value[1], usage);
    }

    if (ngx_http_mcp_conf_params(cf, 2, ngx_http_mcp_list_cache_params, bridge,
                                 usage)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (bridge->lists_warm == 1
        && bridge->lists != NGX_HTTP_MCP_LIST_CACHE_ON)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"warm=on\" needs a cache of all results; write "
                           "\"mcp_list_cache on warm=on;\", or remove it");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* sets an ngx_uint_t to the bits NGX_MCP_LIST_BIT() of comma-separated names */

static ngx_int_t
ngx_http_mcp_param_kinds(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    u_char      *p, *end, *last;
    ngx_uint_t   i, kinds;

    static ngx_str_t  names[NGX_MCP_LIST_KINDS] = {
        ngx_string("tools"),
        ngx_string("prompts"),
        ngx_string("resources"),
        ngx_string("templates")
    };

    kinds = 0;
    p = value->data;
    last = value->data + value->len;

    for ( ;; ) {
        end = ngx_strlchr(p, last, ',');
        end = end ? end : last;

        for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
            if (names[i].len == (size_t) (end - p)
                && ngx_memcmp(names[i].data, p, end - p) == 0)
            {
                break;
            }
        }

        if (i == NGX_MCP_LIST_KINDS || kinds & NGX_MCP_LIST_BIT(i)) {
            return NGX_DECLINED;
        }

        kinds |= NGX_MCP_LIST_BIT(i);

        if (end == last) {
            *(ngx_uint_t *) slot = kinds;
            return NGX_OK;
        }

        p = end + 1;
    }
}


char *
ngx_http_mcp_merge_lists(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_md5_t                 md5;
    ngx_uint_t                i, modern;
    ngx_mcp_source_t         *source;
    ngx_http_mcp_bridge_t    *bridge;
    ngx_http_mcp_upstream_t  *u;
    u_char                    digest[16];

    bridge = &mlcf->bridge;
    u = bridge->router.upstreams;

    source = ngx_palloc(cf->pool, bridge->router.n * sizeof(ngx_mcp_source_t));
    if (source == NULL) {
        return NGX_CONF_ERROR;
    }

    bridge->sources.elts = source;
    bridge->sources.n = bridge->router.n;
    bridge->sources.kinds = (bridge->lists == NGX_HTTP_MCP_LIST_CACHE_ON)
                            ? bridge->lists_kinds : 0;

    modern = 0;

    for (i = 0; i < bridge->router.n; i++) {
        modern |= (u[i].protocol == NGX_HTTP_MCP_AUTO
                   || u[i].protocol == NGX_HTTP_MCP_MODERN);
    }

    /* only upstreams of revision 2026-07-28 may mark a list as public */

    bridge->lists_passing = (bridge->lists == NGX_HTTP_MCP_LIST_CACHE_AUTO
                             && modern)
                            ? bridge->lists_kinds : 0;

    if (bridge->lists == NGX_HTTP_MCP_LIST_CACHE_AUTO && bridge->lists_here
        && bridge->router.n && !modern)
    {
        ngx_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf->log, 0,
                      "\"mcp_list_cache auto\" caches nothing for "
                      "\"mcp_endpoint\" in %s:%ui: only upstreams of "
                      "2026-07-28 mark lists as public, and none of this "
                      "endpoint may be one; write \"mcp_list_cache on\", or "
                      "remove the line", mlcf->file, mlcf->line);
    }

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, &bridge->lists, sizeof(ngx_uint_t));
    ngx_md5_update(&md5, &bridge->lists_kinds, sizeof(ngx_uint_t));

    for (i = 0; i < bridge->router.n; i++) {
        source[i].name = u[i].name;
        source[i].prefix = u[i].prefix;

        if (u[i].protocol != NGX_HTTP_MCP_RPC) {
            bridge->declared = 1;
        }

        ngx_md5_update(&md5, &u[i].name.len, sizeof(size_t));
        ngx_md5_update(&md5, u[i].name.data, u[i].name.len);
        ngx_md5_update(&md5, &u[i].prefix.len, sizeof(size_t));
        ngx_md5_update(&md5, u[i].prefix.data, u[i].prefix.len);
    }

    ngx_md5_final(digest, &md5);

    ngx_memcpy(&bridge->sources.layout, digest, sizeof(uint64_t));

    if (bridge->sources.layout == 0) {
        bridge->sources.layout = 1;
    }

    if (bridge->lists_key == NULL && mlcf->bind == NULL) {
        bridge->lists_tenant = ngx_http_mcp_conf_tenant(mlcf);
    }

    return NGX_CONF_OK;
}
