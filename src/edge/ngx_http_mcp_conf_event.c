
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_publish.h"


typedef struct {
    const char                 *name;
    size_t                      offset;
} ngx_http_mcp_publish_value_t;


static ngx_int_t ngx_http_mcp_conf_invalidate_level(ngx_conf_t *cf,
    ngx_str_t *value, ngx_str_t *name, ngx_str_t *level);


static ngx_http_mcp_publish_value_t  ngx_http_mcp_publish_values[] = {
    { "kind", offsetof(ngx_http_mcp_publish_conf_t, kind) },
    { "topic", offsetof(ngx_http_mcp_publish_conf_t, topic) },
    { "tenant", offsetof(ngx_http_mcp_publish_conf_t, tenant) },
    { "id", offsetof(ngx_http_mcp_publish_conf_t, id) },
    { NULL, 0 }
};


static ngx_int_t ngx_http_mcp_conf_publish_value(ngx_conf_t *cf,
    ngx_http_mcp_publish_conf_t *pcf, ngx_str_t *value);


char *
ngx_http_mcp_conf_publish(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_int_t                      rc;
    ngx_str_t                     *value, s;
    ngx_uint_t                     i;
    ngx_http_mcp_main_conf_t      *mmcf;
    ngx_http_mcp_publish_conf_t   *pcf, **p;

    if (mlcf->publish) {
        return "is duplicate";
    }

    pcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_publish_conf_t));
    if (pcf == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_http_mcp_conf_param(&value[i], "zone", &s) && s.len) {
            pcf->zone = ngx_http_mcp_conf_find_zone(cf, &s, 0);
            if (pcf->zone == NULL) {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_http_mcp_conf_param(&value[i], "endpoint", &s) && s.len) {
            pcf->endpoint = s;
            continue;
        }

        rc = ngx_http_mcp_conf_publish_value(cf, pcf, &value[i]);

        if (rc == NGX_OK) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"; write \"mcp_publish "
                               "zone=NAME [endpoint=ID] [kind=VALUE] "
                               "[topic=VALUE] [tenant=VALUE] [id=VALUE];\"",
                               &value[i]);
        }

        return NGX_CONF_ERROR;
    }

    if (pcf->zone == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_publish\" needs \"zone=NAME\", the name of "
                           "an \"mcp_zone\"");
        return NGX_CONF_ERROR;
    }

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    p = ngx_array_push(&mmcf->publishers);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    *p = pcf;

    pcf->file = cf->conf_file->file.name.data;
    pcf->line = cf->conf_file->line;

    if (ngx_http_mcp_conf_guarded(cf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    mlcf->publish = pcf;
    ((ngx_http_mcp_zone_t *) pcf->zone)->published = 1;

    return ngx_http_mcp_conf_handler(cf, ngx_http_mcp_publish_handler);
}


/* NGX_DECLINED: it is none of these; NGX_ERROR is logged */

static ngx_int_t
ngx_http_mcp_conf_publish_value(ngx_conf_t *cf,
    ngx_http_mcp_publish_conf_t *pcf, ngx_str_t *value)
{
    ngx_str_t                       s;
    ngx_http_complex_value_t      **cv;
    ngx_http_mcp_publish_value_t   *pv;

    for (pv = ngx_http_mcp_publish_values; /* void */ ; pv++) {

        if (pv->name == NULL) {
            return NGX_DECLINED;
        }

        if (ngx_http_mcp_conf_param(value, pv->name, &s)) {
            break;
        }
    }

    cv = (ngx_http_complex_value_t **) ((u_char *) pcf + pv->offset);

    if (*cv) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate parameter \"%V\"; remove one", value);
        return NGX_ERROR;
    }

    return ngx_http_mcp_conf_value(cf, &s, cv);
}


char *
ngx_http_mcp_conf_invalidate(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t       *value, level;
    ngx_uint_t       i, n, first, drop, message;
    const char      *bad;
    ngx_mcp_rule_t  *rule, one;

    value = cf->args->elts;

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the kind of \"mcp_invalidate\" is empty; write "
                           "\"*\" for all kinds that have no rule");
        return NGX_CONF_ERROR;
    }

    if (mlcf->bridge.invalidate == NGX_CONF_UNSET_PTR) {
        mlcf->bridge.invalidate = ngx_array_create(cf->pool, 4,
                                                   sizeof(ngx_mcp_rule_t));
        if (mlcf->bridge.invalidate == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    first = mlcf->bridge.invalidate->nelts;
    drop = 0;
    message = 0;

    ngx_str_null(&level);

    for (i = 2; i < cf->args->nelts; i++) {
        ngx_memzero(&one, sizeof(ngx_mcp_rule_t));

        one.kind = value[1];
        bad = ngx_mcp_rule_parse(&one, &value[i]);

        if (bad) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" in \"mcp_invalidate\" %s; the actions "
                               "are \"message=DATA\", \"level=LEVEL\", "
                               "\"list_changed=tools|prompts|resources\", "
                               "\"updated=URI\", \"notify=METHOD\" and "
                               "\"drop\"", &value[i], bad);
            return NGX_CONF_ERROR;
        }

        if (one.action == NGX_MCP_RULE_LEVEL) {

            if (ngx_http_mcp_conf_invalidate_level(cf, &value[i], &one.value,
                                                   &level)
                != NGX_OK)
            {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (one.action == NGX_MCP_RULE_DROP) {
            drop = 1;
        }

        if (one.action == NGX_MCP_RULE_MESSAGE) {
            message = 1;
        }

        rule = ngx_array_push(mlcf->bridge.invalidate);
        if (rule == NULL) {
            return NGX_CONF_ERROR;
        }

        *rule = one;
    }

    if (drop && cf->args->nelts > 3) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"drop\" cannot be combined with other actions in "
                           "\"mcp_invalidate %V\"; remove \"drop\" or the "
                           "other actions", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (level.len && !message) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"level=\" in \"mcp_invalidate %V\" needs "
                           "\"message=DATA\"; add \"message=DATA\" or remove "
                           "\"level=\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    rule = mlcf->bridge.invalidate->elts;

    for (n = first; n < mlcf->bridge.invalidate->nelts; n++) {
        rule[n].level = level;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_mcp_conf_invalidate_level(ngx_conf_t *cf, ngx_str_t *value,
    ngx_str_t *name, ngx_str_t *level)
{
    if (level->len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"level=\" appears twice in "
                           "\"mcp_invalidate\"; remove one");
        return NGX_ERROR;
    }

    *level = *name;

    if (ngx_mcp_level_parse(level) == NGX_MCP_LEVEL_UNSET
        && !ngx_strlchr(level->data, level->data + level->len, '$'))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"%V\" in \"mcp_invalidate\" is not a "
                           "level of MCP and means \"info\"; the "
                           "levels are \"debug\", \"info\", "
                           "\"notice\", \"warning\", \"error\", "
                           "\"critical\", \"alert\" and \"emergency\"",
                           value);
    }

    return NGX_OK;
}
