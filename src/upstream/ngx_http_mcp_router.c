
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_router.h"
#include "ngx_mcp_names.h"


ngx_int_t
ngx_http_mcp_router_name(ngx_http_mcp_router_t *router, ngx_str_t *name,
    ngx_http_mcp_upstream_t **upstream, ngx_str_t *local)
{
    ngx_int_t                 rc;
    ngx_http_mcp_upstream_t  *u, *last;

    *upstream = NULL;
    *local = *name;

    last = router->upstreams + router->n;

    for (u = router->upstreams; u < last; u++) {

        if (u->prefix.len == 0) {
            *upstream = u;
            continue;
        }

        rc = ngx_mcp_name_local(&u->prefix, name, local);

        if (rc != NGX_DECLINED) {
            *upstream = u;
            return rc;
        }
    }

    return *upstream ? NGX_OK : NGX_DECLINED;
}


ngx_http_mcp_upstream_t *
ngx_http_mcp_router_next(ngx_http_mcp_router_t *router,
    ngx_http_mcp_upstream_t *u)
{
    ngx_uint_t  i;

    i = u ? (ngx_uint_t) (u - router->upstreams) + 1 : 0;

    return i < router->n ? &router->upstreams[i] : NULL;
}


ngx_http_mcp_upstream_t *
ngx_http_mcp_router_find(ngx_http_mcp_router_t *router, ngx_str_t *name)
{
    ngx_http_mcp_upstream_t  *u;

    for (u = ngx_http_mcp_router_next(router, NULL);
         u;
         u = ngx_http_mcp_router_next(router, u))
    {
        if (ngx_mcp_equal(&u->name, name)) {
            break;
        }
    }

    return u;
}


ngx_uint_t
ngx_http_mcp_prefix_valid(ngx_str_t *prefix)
{
    u_char      c;
    ngx_uint_t  i;

    if (prefix->len == 0 || prefix->len > NGX_HTTP_MCP_PREFIX_MAX) {
        return 0;
    }

    for (i = 0; i < prefix->len; i++) {
        c = prefix->data[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')
            && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.')
        {
            return 0;
        }
    }

    return 1;
}
