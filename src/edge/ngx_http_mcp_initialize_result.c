
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"


static ngx_int_t ngx_http_mcp_initialize_cleanup_add(
    ngx_http_mcp_endpoint_worker_t *w);
static void ngx_http_mcp_initialize_results_cleanup(void *data);
static u_char *ngx_http_mcp_initialize_info(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *info);
static u_char *ngx_http_mcp_initialize_capabilities(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *capabilities,
    ngx_uint_t *offered);
static ngx_uint_t ngx_http_mcp_initialize_equal(ngx_str_t *token,
    const char *name);


/* the capability of each kind of list, whatever the upstream offers */

static struct {
    ngx_uint_t   capability;
    ngx_uint_t   offered;
    const char  *name;
    const char  *text;
} ngx_http_mcp_offers[] = {

    { NGX_HTTP_MCP_CAP_TOOLS, NGX_MCP_OFFERED_TOOLS,
      "tools", "\"tools\":{\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_PROMPTS, NGX_MCP_OFFERED_PROMPTS,
      "prompts", "\"prompts\":{\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_RESOURCES, NGX_MCP_OFFERED_RESOURCES,
      "resources", "\"resources\":{\"subscribe\":true,\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_LOGGING, NGX_MCP_OFFERED_LOGGING,
      "logging", "\"logging\":{}" },

    { NGX_HTTP_MCP_CAP_COMPLETIONS, 0, "completions", "\"completions\":{}" },

    { 0, 0, NULL, NULL }
};


ngx_http_mcp_result_t *
ngx_http_mcp_initialize_slot(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant)
{
    return &mlcf->worker->results[ngx_crc32_short(tenant->data, tenant->len)
                                  % NGX_HTTP_MCP_RESULTS];
}


ngx_uint_t
ngx_http_mcp_initialize_matches(ngx_http_mcp_result_t *result,
    ngx_str_t *tenant)
{
    return result->tenant_len == tenant->len
           && ngx_memcmp(result->tenant, tenant->data, tenant->len) == 0;
}


/* it is the same for most clients, so the last ones are kept */

ngx_http_mcp_result_t *
ngx_http_mcp_initialize_result(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_str_t *source)
{
    u_char                 *p;
    size_t                  len;
    ngx_str_t               rest, name, value, capabilities, info,
                            instructions;
    ngx_pool_t             *pool;
    ngx_http_mcp_result_t  *result;

    result = ngx_http_mcp_initialize_slot(mlcf, tenant);

    if (!ngx_http_mcp_initialize_matches(result, tenant)) {
        result->time = 0;
        result->tenant_len = 0;

        if (tenant->len <= NGX_HTTP_MCP_RESULT_TENANT) {
            ngx_memcpy(result->tenant, tenant->data, tenant->len);
            result->tenant_len = tenant->len;
        }
    }

    if (result->pool && ngx_mcp_equal(&result->source, source)) {
        return result;
    }

    ngx_str_null(&info);
    ngx_str_null(&instructions);
    ngx_str_set(&capabilities, "{}");

    rest = *source;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (ngx_http_mcp_initialize_equal(&name, "capabilities")) {
            capabilities = value;

        } else if (ngx_http_mcp_initialize_equal(&name, "serverInfo")) {
            info = value;

        } else if (ngx_http_mcp_initialize_equal(&name, "instructions")) {
            instructions = value;
        }
    }

    if (ngx_http_mcp_initialize_cleanup_add(mlcf->worker) != NGX_OK) {
        return NULL;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    len = source->len + 1024
          + ngx_mcp_json_escaped_len(&mlcf->server_name)
          + ngx_mcp_json_escaped_len(&mlcf->server_version)
          + ngx_mcp_json_escaped_len(&mlcf->server_title)
          + ngx_mcp_json_escaped_len(&mlcf->instructions);

    p = ngx_pnalloc(pool, len + source->len);
    if (p == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    if (result->pool) {
        ngx_destroy_pool(result->pool);
    }

    result->pool = pool;
    result->time = 0;

    result->source.data = p;
    result->source.len = source->len;

    p = ngx_cpymem(p, source->data, source->len);

    result->text.data = p;

    p = ngx_http_mcp_initialize_capabilities(p, mlcf, &capabilities,
                                             &result->offered);
    p = ngx_http_mcp_initialize_info(p, mlcf, &info);

    if (mlcf->instructions.len || instructions.len) {
        p = ngx_cpymem(p, ",\"instructions\":",
                       sizeof(",\"instructions\":") - 1);

        if (mlcf->instructions.len) {
            p = ngx_mcp_json_escape(p, &mlcf->instructions);

        } else {
            p = ngx_cpymem(p, instructions.data, instructions.len);
        }
    }

    *p++ = '}';

    result->text.len = p - result->text.data;

    return result;
}


static ngx_int_t
ngx_http_mcp_initialize_cleanup_add(ngx_http_mcp_endpoint_worker_t *w)
{
    if (w->cleanup == NULL) {
        w->cleanup = ngx_pool_cleanup_add(ngx_cycle->pool, 0);
        if (w->cleanup == NULL) {
            return NGX_ERROR;
        }

        w->cleanup->handler = ngx_http_mcp_initialize_results_cleanup;
        w->cleanup->data = w;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_initialize_results_cleanup(void *data)
{
    ngx_http_mcp_endpoint_worker_t *w = data;

    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_MCP_RESULTS; i++) {

        if (w->results[i].pool) {
            ngx_destroy_pool(w->results[i].pool);
            w->results[i].pool = NULL;
        }
    }
}


static u_char *
ngx_http_mcp_initialize_info(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *info)
{
    p = ngx_cpymem(p, ",\"serverInfo\":", sizeof(",\"serverInfo\":") - 1);

    if (mlcf->server_name.len) {
        p = ngx_cpymem(p, "{\"name\":", sizeof("{\"name\":") - 1);
        p = ngx_mcp_json_escape(p, &mlcf->server_name);
        p = ngx_cpymem(p, ",\"version\":", sizeof(",\"version\":") - 1);
        p = ngx_mcp_json_escape(p, &mlcf->server_version);

        if (mlcf->server_title.len) {
            p = ngx_cpymem(p, ",\"title\":", sizeof(",\"title\":") - 1);
            p = ngx_mcp_json_escape(p, &mlcf->server_title);
        }

        *p++ = '}';

    } else if (info->len) {
        p = ngx_cpymem(p, info->data, info->len);

    } else {
        p = ngx_sprintf(p, "{\"name\":\"nginx-mcp\",\"version\":\"%s\"}",
                        NGX_MCP_MODULE_VERSION);
    }

    return p;
}


static u_char *
ngx_http_mcp_initialize_capabilities(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *capabilities, ngx_uint_t *offered)
{
    ngx_str_t             rest, name, value;
    ngx_uint_t            i, has;
    ngx_http_mcp_zone_t  *zone;

    zone = (ngx_http_mcp_zone_t *) mlcf->zone;
    has = 0;

    p = ngx_cpymem(p, "\"capabilities\":{", sizeof("\"capabilities\":{") - 1);

    rest = *capabilities;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        for (i = 0; ngx_http_mcp_offers[i].name; i++) {

            if (ngx_http_mcp_initialize_equal(&name,
                                              ngx_http_mcp_offers[i].name))
            {
                has |= ngx_http_mcp_offers[i].capability;
                break;
            }
        }

        if (ngx_http_mcp_offers[i].name) {
            continue;
        }

        /* one that the module does not know crosses as it is */

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, name.data, name.len);
        *p++ = ':';
        p = ngx_cpymem(p, value.data, value.len);
    }

    if (zone->published || mlcf->bridge.feeds) {
        has |= NGX_HTTP_MCP_CAP_LOGGING;
    }

    if (mlcf->bridge.topics) {
        has |= NGX_HTTP_MCP_CAP_RESOURCES;
    }

    if (mlcf->capabilities) {
        has = mlcf->capabilities;
    }

    if (mlcf->bridge.tools) {
        has |= NGX_HTTP_MCP_CAP_TOOLS;
    }

    *offered = 0;

    for (i = 0; ngx_http_mcp_offers[i].name; i++) {

        if (!(has & ngx_http_mcp_offers[i].capability)) {
            continue;
        }

        *offered |= ngx_http_mcp_offers[i].offered;

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, ngx_http_mcp_offers[i].text,
                       ngx_strlen(ngx_http_mcp_offers[i].text));
    }

    *p++ = '}';

    return p;
}


/* whether a raw name token, which has no escapes then, is this name */

static ngx_uint_t
ngx_http_mcp_initialize_equal(ngx_str_t *token, const char *name)
{
    size_t  len;

    len = ngx_strlen(name);

    return token->len == len + 2
           && ngx_memcmp(token->data + 1, name, len) == 0;
}
