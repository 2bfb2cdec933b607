
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"


char *
ngx_http_mcp_conf_server_info(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t   *value, s;
    ngx_uint_t   i;

    if (mlcf->server_name.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_http_mcp_conf_param(&value[i], "name", &s)) {
            mlcf->server_name = s;

        } else if (ngx_http_mcp_conf_param(&value[i], "version", &s)) {
            mlcf->server_version = s;

        } else if (ngx_http_mcp_conf_param(&value[i], "title", &s)) {
            mlcf->server_title = s;

        } else {
            goto invalid;
        }
    }

    if (mlcf->server_name.len && mlcf->server_version.len) {
        return NGX_CONF_OK;
    }

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameters; write \"mcp_server_info name=NAME "
                       "version=VERSION [title=TITLE];\"");
    return NGX_CONF_ERROR;
}


char *
ngx_http_mcp_conf_deny(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_complex_value_t  *cv;

    value = cf->args->elts;

    if (mlcf->deny == NGX_CONF_UNSET_PTR) {
        mlcf->deny = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                      sizeof(ngx_http_complex_value_t));
        if (mlcf->deny == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    for (i = 1; i < cf->args->nelts; i++) {

        cv = ngx_array_push(mlcf->deny);
        if (cv == NULL) {
            return NGX_CONF_ERROR;
        }

        if (ngx_http_mcp_conf_value(cf, &value[i], &cv) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


char *
ngx_http_mcp_conf_session_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_int_t   n;
    ngx_str_t  *value, s;

    if (mlcf->session_limit != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    n = ngx_atoi(value[1].data, value[1].len);

    if (n == NGX_ERROR) {
        goto invalid;
    }

    mlcf->session_limit = n;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (!ngx_http_mcp_conf_param(&value[2], "key", &s)) {
        goto invalid;
    }

    if (ngx_http_mcp_conf_value(cf, &s, &mlcf->session_limit_key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameters; write \"mcp_session_limit NUMBER "
                       "[key=VALUE];\", with 0 for no limit other than the "
                       "size of the zone");
    return NGX_CONF_ERROR;
}


char *
ngx_http_mcp_conf_event_buffer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_int_t   n;
    ngx_str_t  *value;
    ssize_t     size;

    if (mlcf->event_max != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    n = ngx_atoi(value[1].data, value[1].len);

    if (n == NGX_ERROR || n == 0 || n > 65536) {
        goto invalid;
    }

    mlcf->event_max = n;

    if (cf->args->nelts == 3) {
        size = ngx_parse_size(&value[2]);

        if (size == NGX_ERROR || size == 0 || size > 64 * 1024) {
            goto invalid;
        }

        mlcf->event_size = size;
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameters; write \"mcp_event_buffer NUMBER "
                       "[SIZE];\", 1 to 65536 events of at most 64k");
    return NGX_CONF_ERROR;
}


char *
ngx_http_mcp_conf_allowed_origins(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    u_char      *p;
    ngx_str_t   *value, *origin;
    ngx_uint_t   i;

    if (mlcf->origins != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    mlcf->origins = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                     sizeof(ngx_str_t));
    if (mlcf->origins == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "any") == 0) {
            mlcf->origins_any = 1;
            continue;
        }

        p = (u_char *) ngx_strstr(value[i].data, "://");

        if (ngx_strcmp(value[i].data, "null") != 0
            && (p == NULL || p == value[i].data
                || ngx_strchr(p + 3, '/') != NULL || p[3] == '\0'
                || ngx_strchr(p + 3, '*') != NULL))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid origin \"%V\" in "
                               "\"mcp_allowed_origins\"; write \"any\", "
                               "\"null\", or \"https://host[:port]\" without "
                               "a path or a wildcard", &value[i]);
            return NGX_CONF_ERROR;
        }

        origin = ngx_array_push(mlcf->origins);
        if (origin == NULL) {
            return NGX_CONF_ERROR;
        }

        *origin = value[i];
        ngx_strlow(origin->data, origin->data, origin->len);
    }

    return NGX_CONF_OK;
}
