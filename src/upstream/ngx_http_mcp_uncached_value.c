
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"


static ngx_uint_t ngx_http_mcp_uncached_is_stored(ngx_http_request_t *r,
    ngx_uint_t index, ngx_uint_t n);


/*
 * A value that an earlier phase has cached, for example a "map" over a claim
 * that a limit looked at before the token was verified, must not decide here.
 * So the value is computed on an empty set of variables.  Some variables are
 * only ever stored ("set", "auth_request_set") and cannot be computed again:
 * these are handed in as they stand, and the value is computed once more.
 */

ngx_int_t
ngx_http_mcp_uncached_value(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_http_variable_value_t **room, ngx_str_t *value)
{
    size_t                      size;
    ngx_int_t                   rc;
    ngx_log_t                  *log;
    ngx_uint_t                  i, n, level, again;
    ngx_http_variable_value_t  *old, *fresh, *kept, *probe;
    ngx_http_core_main_conf_t  *cmcf;

    if (cv->lengths == NULL) {
        *value = cv->value;
        return NGX_OK;
    }

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    n = cmcf->variables.nelts;
    size = n * sizeof(ngx_http_variable_value_t);

    if (*room == NULL) {
        *room = ngx_palloc(r->pool, 3 * size);
        if (*room == NULL) {
            return NGX_ERROR;
        }
    }

    fresh = *room;
    kept = fresh + n;
    probe = kept + n;

    ngx_memzero(kept, size);

    old = r->variables;

    /* one that is not handed in yet is no reason to warn */

    log = r->connection->log;
    level = log->log_level;
    log->log_level = ngx_min(level, NGX_LOG_ERR);

    do {
        ngx_memcpy(fresh, kept, size);

        r->variables = fresh;

        rc = ngx_http_complex_value(r, cv, value);

        if (rc != NGX_OK) {
            break;
        }

        again = 0;

        for (i = 0; i < n; i++) {

            if (kept[i].valid || !old[i].valid || old[i].len == 0
                || !(fresh[i].not_found
                     || (fresh[i].valid && fresh[i].len == 0)))
            {
                continue;
            }

            ngx_memzero(probe, size);

            r->variables = probe;

            if (ngx_http_mcp_uncached_is_stored(r, i, n)) {
                kept[i] = old[i];
                again = 1;
            }
        }

    } while (again);

    log->log_level = level;
    r->variables = old;

    return rc;
}


/* whether computing the variable looks at no other: there is nothing to it */

static ngx_uint_t
ngx_http_mcp_uncached_is_stored(ngx_http_request_t *r, ngx_uint_t index,
    ngx_uint_t n)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    v = cmcf->variables.elts;

    if (v[index].flags & NGX_HTTP_VAR_NOCACHEABLE) {
        return 0;
    }

    if (v[index].get_handler(r, &r->variables[index], v[index].data)
        != NGX_OK)
    {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (i != index
            && (r->variables[i].valid || r->variables[i].not_found))
        {
            return 0;
        }
    }

    return 1;
}
