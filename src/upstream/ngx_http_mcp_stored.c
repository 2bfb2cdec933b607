
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_mcp_core.h"
#include "ngx_http_mcp_defaults.h"
#include "ngx_http_mcp_stored.h"


/* number of variables that subrequests inherit */
#define NGX_HTTP_MCP_STORED_INHERITED  3

/* kinds of variables; 0: the kind is not known yet */
#define NGX_HTTP_MCP_STORED_COMPUTED  1
#define NGX_HTTP_MCP_STORED_ASSIGNED  2


typedef struct {
    volatile ngx_cycle_t       *cycle;
    u_char                     *kinds;       /* of each variable:
                                                NGX_HTTP_MCP_STORED_... */
    ngx_uint_t                  ninherited;
    ngx_uint_t                  inherited[NGX_HTTP_MCP_STORED_INHERITED];
} ngx_http_mcp_stored_known_t;


static ngx_uint_t ngx_http_mcp_is_stored(ngx_http_request_t *r,
    ngx_uint_t index, ngx_http_variable_value_t *probe);
static ngx_http_mcp_stored_known_t *ngx_http_mcp_stored_known(
    ngx_http_request_t *r);


/*
 * Variables that a subrequest inherits, because nginx would compute other
 * values there.
 */

static ngx_str_t
    ngx_http_mcp_stored_inherited[NGX_HTTP_MCP_STORED_INHERITED] = {
    ngx_string("request_id"),
    ngx_string("realip_remote_addr"),
    ngx_string("realip_remote_port")
};

/* the kinds of the variables of the current configuration */

static ngx_http_mcp_stored_known_t  ngx_http_mcp_stored_cycle;


ngx_http_variable_value_t *
ngx_http_mcp_stored_variables(ngx_http_request_t *r)
{
    u_char                       *kinds;
    ngx_log_t                    *log;
    ngx_uint_t                    i, n, level;
    ngx_http_mcp_captures_t       captures;
    ngx_http_variable_value_t    *old, *stored, *probe;
    ngx_http_core_main_conf_t    *cmcf;
    ngx_http_mcp_stored_known_t  *known;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    n = cmcf->variables.nelts;
    old = r->variables;
    probe = NULL;

    known = ngx_http_mcp_stored_known(r);
    stored = ngx_pcalloc(r->pool, n * sizeof(ngx_http_variable_value_t));

    if (known == NULL || stored == NULL) {
        return NULL;
    }

    kinds = known->kinds;

    /* nginx must not log warnings about variables that are not set yet */

    log = r->connection->log;
    level = log->log_level;
    log->log_level = ngx_min(level, NGX_LOG_ERR);

    ngx_http_mcp_captures_save(r, &captures);

    for (i = 0; i < n; i++) {

        if (!old[i].valid || kinds[i] == NGX_HTTP_MCP_STORED_COMPUTED) {
            continue;
        }

        if (kinds[i] == NGX_HTTP_MCP_STORED_ASSIGNED) {

            if (!old[i].no_cacheable) {
                stored[i] = old[i];
            }

            continue;
        }

        if (old[i].len == 0) {
            continue;
        }

        if (probe == NULL) {
            probe = ngx_palloc(r->pool, n * sizeof(ngx_http_variable_value_t));

            if (probe == NULL) {
                stored = NULL;
                break;
            }
        }

        if (ngx_http_mcp_is_stored(r, i, probe)
            && (probe[i].not_found || probe[i].len == 0))
        {
            stored[i] = old[i];

        } else {
            kinds[i] = NGX_HTTP_MCP_STORED_COMPUTED;
        }
    }

    ngx_http_mcp_captures_restore(r, &captures);

    log->log_level = level;

    return stored;
}


/*
 * Whether the variable can be computed now without evaluating any other
 * variable.  probe: memory for all variables; probe[index] gets the value.
 */

static ngx_uint_t
ngx_http_mcp_is_stored(ngx_http_request_t *r, ngx_uint_t index,
    ngx_http_variable_value_t *probe)
{
    ngx_int_t                   rc;
    ngx_uint_t                  i, n;
    ngx_http_variable_t        *v;
    ngx_http_variable_value_t  *old;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    v = cmcf->variables.elts;
    n = cmcf->variables.nelts;

    if (v[index].flags & NGX_HTTP_VAR_NOCACHEABLE) {
        return 0;
    }

    ngx_memzero(probe, n * sizeof(ngx_http_variable_value_t));

    old = r->variables;
    r->variables = probe;

    rc = v[index].get_handler(r, &probe[index], v[index].data);

    r->variables = old;

    if (rc != NGX_OK) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (i != index && (probe[i].valid || probe[i].not_found)) {
            return 0;
        }
    }

    return 1;
}


ngx_http_variable_value_t *
ngx_http_mcp_subrequest_variables(ngx_http_request_t *r)
{
    ngx_uint_t                    i, n;
    ngx_http_variable_value_t    *inherited, *value;
    ngx_http_mcp_stored_known_t  *known;

    inherited = ngx_http_mcp_stored_variables(r);
    if (inherited == NULL) {
        return NULL;
    }

    known = ngx_http_mcp_stored_known(r);

    for (i = 0; i < known->ninherited; i++) {
        n = known->inherited[i];

        value = ngx_http_get_indexed_variable(r, n);

        if (value && value->valid) {
            inherited[n] = *value;
        }
    }

    return inherited;
}


static ngx_http_mcp_stored_known_t *
ngx_http_mcp_stored_known(ngx_http_request_t *r)
{
    ngx_uint_t                    i, n, *index;
    ngx_array_t                  *assigned;
    ngx_http_variable_t          *v;
    ngx_http_core_main_conf_t    *cmcf;
    ngx_http_mcp_stored_known_t  *known;

    known = &ngx_http_mcp_stored_cycle;

    if (known->cycle == ngx_cycle) {
        return known;
    }

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    known->kinds = ngx_pcalloc(ngx_cycle->pool, cmcf->variables.nelts);
    if (known->kinds == NULL) {
        return NULL;
    }

    assigned = ngx_http_mcp_defaults_assigned(r);
    index = assigned->elts;

    for (i = 0; i < assigned->nelts; i++) {
        known->kinds[index[i]] = NGX_HTTP_MCP_STORED_ASSIGNED;
    }

    known->cycle = ngx_cycle;
    known->ninherited = 0;

    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {
        for (n = 0; n < NGX_HTTP_MCP_STORED_INHERITED; n++) {
            if (ngx_mcp_equal(&v[i].name, &ngx_http_mcp_stored_inherited[n])) {
                known->inherited[known->ninherited++] = i;
            }
        }
    }

    return known;
}


void
ngx_http_mcp_captures_save(ngx_http_request_t *r,
    ngx_http_mcp_captures_t *saved)
{
#if (NGX_PCRE)
    saved->ncaptures = r->ncaptures;
    saved->captures = r->captures;
    saved->data = r->captures_data;
    saved->shared = r->realloc_captures;

    /* the next match must not overwrite them */

    r->realloc_captures = 1;
#endif
}


void
ngx_http_mcp_captures_restore(ngx_http_request_t *r,
    ngx_http_mcp_captures_t *saved)
{
#if (NGX_PCRE)
    r->ncaptures = saved->ncaptures;
    r->captures = saved->captures;
    r->captures_data = saved->data;
    r->realloc_captures = saved->shared;
#endif
}
