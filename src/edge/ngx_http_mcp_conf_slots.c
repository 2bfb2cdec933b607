
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_conf.h"


static ngx_int_t ngx_http_mcp_conf_used(ngx_conf_t *cf);
static ngx_int_t ngx_http_mcp_conf_note(ngx_conf_t *cf,
    ngx_array_t *directives, ngx_http_handler_pt handler);
static ngx_int_t ngx_http_mcp_conf_alone(ngx_conf_t *cf, const char *alone,
    ngx_http_mcp_loc_conf_t *mlcf, uint64_t bit);
static ngx_int_t ngx_http_mcp_conf_once(ngx_conf_t *cf, ngx_uint_t first);


/*
 * Checks the arguments of the directive at hand, and notes it for a warning if
 * nothing in its location uses it.  NGX_OK or NGX_ERROR (logged, or no memory).
 */

static ngx_int_t
ngx_http_mcp_conf_used(ngx_conf_t *cf)
{
    ngx_http_mcp_main_conf_t  *mmcf;

    if (ngx_http_mcp_conf_utf8(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a directive outside of locations may be meant for endpoints below it */

    if (!(cf->cmd_type & NGX_HTTP_LOC_CONF)) {
        return NGX_OK;
    }

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    return ngx_http_mcp_conf_note(cf, &mmcf->used, NULL);
}


char *
ngx_http_mcp_conf_handler(ngx_conf_t *cf, ngx_http_handler_pt handler)
{
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_mcp_main_conf_t  *mmcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    if (clcf->handler == NULL) {
        clcf->handler = handler;
    }

    return ngx_http_mcp_conf_note(cf, &mmcf->handlers, handler) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* adds the current directive to an array */

static ngx_int_t
ngx_http_mcp_conf_note(ngx_conf_t *cf, ngx_array_t *directives,
    ngx_http_handler_pt handler)
{
    ngx_str_t                 *value;
    ngx_http_conf_ctx_t       *ctx;
    ngx_http_mcp_directive_t  *d;

    ctx = cf->ctx;
    value = cf->args->elts;

    d = ngx_array_push(directives);
    if (d == NULL) {
        return NGX_ERROR;
    }

    d->directive = value[0];
    d->file = cf->conf_file->file.name.data;
    d->line = cf->conf_file->line;
    d->loc_conf = ctx->loc_conf;
    d->srv_conf = ctx->srv_conf;
    d->handler = handler;

    return NGX_OK;
}


char *
ngx_http_mcp_conf_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    char                *rc;
    uint64_t             bit;
    ngx_int_t            n;
    ngx_str_t           *value;
    ngx_command_t        slot;
    ngx_http_mcp_set_t  *set;

    set = cmd->post;
    bit = (uint64_t) 1 << (cmd - ngx_http_mcp_module.commands);

    if (ngx_http_mcp_conf_used(cf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (mlcf->written & bit && !set->many) {
        return "is duplicate";
    }

    if (set->alone && ngx_http_mcp_conf_alone(cf, set->alone, mlcf, bit)
                      != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    mlcf->written |= bit;

    if (set->params) {
        return ngx_http_mcp_conf_params(cf, 1, set->params, conf,
                                        set->advice);
    }

    slot = *cmd;
    slot.post = set->post;

    rc = set->set(cf, &slot, conf);

    if (set->advice == NULL || rc == NGX_CONF_ERROR) {
        return rc;
    }

    if (rc == NGX_CONF_OK) {
        n = *(ngx_int_t *) ((u_char *) conf + cmd->offset);

        if (n >= set->least && n <= set->most) {
            return NGX_CONF_OK;
        }
    }

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\"; write %s",
                       &value[1], &value[0], set->advice);
    return NGX_CONF_ERROR;
}


/* refuses the value "alone" of the directive at hand beside other values */

static ngx_int_t
ngx_http_mcp_conf_alone(ngx_conf_t *cf, const char *alone,
    ngx_http_mcp_loc_conf_t *mlcf, uint64_t bit)
{
    ngx_str_t   *value;
    ngx_uint_t   i, others;

    value = cf->args->elts;
    others = (mlcf->written & bit) || cf->args->nelts > 2;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_strcasecmp(value[i].data, (u_char *) alone) == 0) {
            mlcf->alone |= bit;
        }
    }

    if (!(mlcf->alone & bit) || !others) {
        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%s\" cannot be combined with other values of "
                       "\"%V\"; remove \"%s\" or the other values",
                       alone, &value[0], alone);
    return NGX_ERROR;
}


char *
ngx_http_mcp_conf_bitmask(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char              *p, text[256];
    ngx_str_t           *value;
    ngx_uint_t           i, n;
    ngx_conf_bitmask_t  *mask;

    value = cf->args->elts;
    mask = cmd->post;

    for (i = 1; i < cf->args->nelts; i++) {

        p = text;

        for (n = 0; mask[n].name.len; n++) {
            if (mask[n].name.len == value[i].len
                && ngx_strcasecmp(mask[n].name.data, value[i].data) == 0)
            {
                break;
            }

            p = ngx_sprintf(p, "%s\"%V\"",
                            n == 0 ? "" : mask[n + 1].name.len ? ", " : " and ",
                            &mask[n].name);
        }

        if (mask[n].name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" in \"%V\"; the values "
                               "are %*s", &value[i], &value[0],
                               (size_t) (p - text), text);
            return NGX_CONF_ERROR;
        }
    }

    return ngx_conf_set_bitmask_slot(cf, cmd, conf);
}


void
ngx_http_mcp_conf_quotes(ngx_conf_t *cf, ngx_uint_t first)
{
    u_char      *p;
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    for (i = first; i < cf->args->nelts; i++) {

        p = (u_char *) ngx_strchr(value[i].data, '=');

        if (p && (p[1] == '"' || p[1] == '\'')) {
            ngx_conf_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf, 0,
                               "the quotes in %V of \"%V\" become a part of "
                               "the value; write none, or write them around "
                               "the whole parameter", &value[i], &value[0]);
        }
    }
}


ngx_int_t
ngx_http_mcp_conf_utf8(ngx_conf_t *cf)
{
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (!ngx_mcp_utf8_valid(&value[i], 0)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "argument %ui of \"%V\" is not UTF-8; save the "
                               "file as UTF-8", i, &value[0]);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_conf_name_valid(ngx_str_t *name)
{
    return ngx_mcp_utf8_valid(name, ' ');
}


char *
ngx_http_mcp_conf_params(ngx_conf_t *cf, ngx_uint_t first,
    ngx_http_mcp_param_t *params, void *conf, const char *usage)
{
    void                  *slot;
    ngx_int_t              rc;
    ngx_str_t             *value, s;
    ngx_uint_t             i, bare;
    ngx_http_mcp_param_t  *p;

    if (ngx_http_mcp_conf_once(cf, first) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    bare = 0;

    for (i = first; i < cf->args->nelts; i++) {

        rc = NGX_DECLINED;

        for (p = params; p->name; p++) {

            slot = (char *) conf + p->offset;

            if (p->name[0] == '\0') {

                if (!(bare & (1 << (p - params)))) {
                    bare |= 1 << (p - params);
                    rc = p->set(cf, p, &value[i], slot);
                    break;
                }

            } else if (p->set == NULL) {

                if (ngx_strcmp(value[i].data, p->name) == 0) {
                    *(ngx_uint_t *) slot = p->least;
                    rc = NGX_OK;
                    break;
                }

            } else if (ngx_http_mcp_conf_param(&value[i], p->name, &s)) {
                rc = p->set(cf, p, &s, slot);
                break;
            }
        }

        if (rc == NGX_DECLINED) {
            return ngx_http_mcp_conf_invalid(cf, &value[i],
                                             p->advice ? p->advice : usage);
        }

        if (rc != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_mcp_param_text(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    *(ngx_str_t *) slot = *value;

    return (value->len < (size_t) param->least) ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_mcp_param_value(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    return (value->len < (size_t) param->least)
           ? NGX_DECLINED : ngx_http_mcp_conf_value(cf, value, slot);
}


ngx_int_t
ngx_http_mcp_param_time(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    ngx_int_t  n;

    n = ngx_parse_time(value, 0);

    *(ngx_msec_t *) slot = n;

    return (n < param->least) ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_mcp_param_size(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    ssize_t  size;

    size = ngx_parse_size(value);

    *(size_t *) slot = size;

    return (size < param->least || size > param->most) ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_mcp_param_number(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    *(ngx_uint_t *) slot = n;

    return (n < param->least || n > param->most) ? NGX_DECLINED : NGX_OK;
}


char *
ngx_http_mcp_conf_invalid(ngx_conf_t *cf, ngx_str_t *param, const char *advice)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" of \"%V\"; %s",
                       param, &value[0], advice);
    return NGX_CONF_ERROR;
}


ngx_uint_t
ngx_http_mcp_conf_param(ngx_str_t *param, const char *name, ngx_str_t *value)
{
    size_t  len;

    len = ngx_strlen(name);

    if (ngx_strncmp(param->data, name, len) != 0 || param->data[len] != '=') {
        return 0;
    }

    value->data = param->data + len + 1;
    value->len = param->len - len - 1;

    return 1;
}


/*
 * Checks that no parameter NAME=VALUE appears twice among the arguments from
 * "first" on, and warns of quotes in them.
 */

static ngx_int_t
ngx_http_mcp_conf_once(ngx_conf_t *cf, ngx_uint_t first)
{
    u_char      *p;
    ngx_str_t   *value;
    ngx_uint_t   i, j;

    ngx_http_mcp_conf_quotes(cf, first);

    value = cf->args->elts;

    for (i = first; i < cf->args->nelts; i++) {

        p = (u_char *) ngx_strchr(value[i].data, '=');

        for (j = first; p && j < i; j++) {

            if (ngx_strncmp(value[j].data, value[i].data,
                            p - value[i].data + 1)
                == 0)
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "duplicate parameter \"%V\" of \"%V\"; "
                                   "remove one", &value[i], &value[0]);
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_conf_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **cv)
{
    ngx_http_compile_complex_value_t  ccv;

    if (*cv == NULL) {
        *cv = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
        if (*cv == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = *cv;

    return ngx_http_compile_complex_value(&ccv);
}


ngx_str_t *
ngx_http_mcp_conf_tenant(ngx_http_mcp_loc_conf_t *mlcf)
{
    static ngx_str_t  none = ngx_string("");

    if (mlcf->tenant == NULL) {
        return &none;
    }

    return mlcf->tenant->lengths ? NULL : &mlcf->tenant->value;
}
