
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_defaults.h"


static ngx_uint_t ngx_http_mcp_conf_demand(ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_conf_names(ngx_str_t *text, const char *name);


char *
ngx_http_mcp_conf_events(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t                 *value, s;
    ngx_http_mcp_feed_t       *feed;
    ngx_http_complex_value_t  *uri;

    value = cf->args->elts;

    if (value[1].data[0] != '/' && value[1].data[0] != '$') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid URI \"%V\" of \"mcp_events\"; write the "
                           "URI of an internal location, which starts with "
                           "\"/\" (put the address into a \"proxy_pass\" "
                           "there)", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (mlcf->bridge.feeds == NGX_CONF_UNSET_PTR) {
        mlcf->bridge.feeds = ngx_array_create(cf->pool, 2,
                                              sizeof(ngx_http_mcp_feed_t));
        if (mlcf->bridge.feeds == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    feed = ngx_array_push(mlcf->bridge.feeds);
    if (feed == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(feed, sizeof(ngx_http_mcp_feed_t));

    feed->upstream.protocol = NGX_HTTP_MCP_EVENTS;

    uri = &feed->upstream.uri;

    if (ngx_http_mcp_conf_value(cf, &value[1], &uri) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    feed->upstream.name = uri->value;

    if (uri->lengths == NULL) {
        ngx_http_mcp_defaults_target(cf, &value[1]);
    }

    feed->demand = ngx_http_mcp_conf_demand(&value[1]);

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (!ngx_http_mcp_conf_param(&value[2], "topic", &s) || s.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\"; write \"mcp_events URI "
                           "[topic=VALUE];\"", &value[2]);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_mcp_conf_value(cf, &s, &feed->topic) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    feed->demand |= ngx_http_mcp_conf_demand(&s);

    return NGX_CONF_OK;
}


static ngx_uint_t
ngx_http_mcp_conf_demand(ngx_str_t *text)
{
    ngx_uint_t  demand;

    demand = 0;

    if (ngx_http_mcp_conf_names(text, "mcp_tenant")) {
        demand |= NGX_HTTP_MCP_FEED_TENANT;
    }

    if (ngx_http_mcp_conf_names(text, "mcp_topic")) {
        demand |= NGX_HTTP_MCP_FEED_TOPIC;
    }

    return demand;
}


/* whether the text of a complex value has this variable */

static ngx_uint_t
ngx_http_mcp_conf_names(ngx_str_t *text, const char *name)
{
    u_char  *p, *last;
    size_t   len;

    len = ngx_strlen(name);
    last = text->data + text->len;

    for (p = text->data; p < last; p++) {

        if (*p != '$' || ++p == last) {
            continue;
        }

        if (*p == '{') {
            p++;
        }

        if ((size_t) (last - p) < len || ngx_strncmp(p, name, len) != 0) {
            continue;
        }

        p += len;

        if (p == last || !((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')
                           || (*p >= '0' && *p <= '9') || *p == '_'))
        {
            return 1;
        }
    }

    return 0;
}


char *
ngx_http_mcp_conf_list_cache(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_int_t               n;
    ngx_str_t              *value, s;
    ngx_uint_t              i;
    ngx_http_mcp_bridge_t  *bridge;

    bridge = &mlcf->bridge;

    if (bridge->lists != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        bridge->lists = NGX_HTTP_MCP_LIST_CACHE_OFF;

    } else if (ngx_strcmp(value[1].data, "auto") == 0) {
        bridge->lists = NGX_HTTP_MCP_LIST_CACHE_AUTO;

    } else if (ngx_strcmp(value[1].data, "on") == 0) {
        bridge->lists = NGX_HTTP_MCP_LIST_CACHE_ON;

    } else {
        i = 1;
        goto invalid;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_mcp_conf_param(&value[i], "ttl", &s)) {
            bridge->lists_ttl = ngx_parse_time(&s, 0);

            if (bridge->lists_ttl == (ngx_msec_t) NGX_ERROR
                || bridge->lists_ttl == 0)
            {
                goto invalid;
            }

        } else if (ngx_http_mcp_conf_param(&value[i], "key", &s) && s.len) {
            if (ngx_http_mcp_conf_value(cf, &s, &bridge->lists_key) != NGX_OK)
            {
                return NGX_CONF_ERROR;
            }

        } else if (ngx_http_mcp_conf_param(&value[i], "max", &s)) {
            n = ngx_atoi(s.data, s.len);

            if (n < 1 || n > 4096) {
                goto invalid;
            }

            bridge->lists_max = n;

        } else {
            goto invalid;
        }
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\"; write \"mcp_list_cache "
                       "off|auto|on [ttl=TIME] [key=VALUE] [max=NUMBER];\", "
                       "for example \"on ttl=5m max=64\"", &value[i]);
    return NGX_CONF_ERROR;
}


char *
ngx_http_mcp_conf_builtin_tools(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (mlcf->bridge.tools) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "wait_for_event") == 0) {
            mlcf->bridge.tools |= NGX_HTTP_MCP_TOOL_WAIT;

        } else if (ngx_strcmp(value[i].data, "session_info") == 0) {
            mlcf->bridge.tools |= NGX_HTTP_MCP_TOOL_SESSION;

        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown tool \"%V\" in \"mcp_builtin_tools\"; "
                               "the tools are \"wait_for_event\" and "
                               "\"session_info\"", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


void
ngx_http_mcp_conf_topics(ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_http_mcp_zone_t    *zone;
    ngx_http_mcp_bridge_t  *bridge;

    zone = (ngx_http_mcp_zone_t *) mlcf->zone;
    bridge = &mlcf->bridge;

    if (!zone->published && bridge->feeds == NULL
        && !(bridge->tools & NGX_HTTP_MCP_TOOL_WAIT))
    {
        return;
    }

    bridge->topics = NGX_HTTP_MCP_TOPICS_KEPT;

    if (mlcf->capabilities == 0
        || mlcf->capabilities & NGX_HTTP_MCP_CAP_RESOURCES)
    {
        bridge->topics |= NGX_HTTP_MCP_TOPICS_OFFERED;
    }
}
