
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_walk.h"


static ngx_str_t ngx_http_mcp_origin_host(ngx_str_t *origin);
static ngx_uint_t ngx_http_mcp_loopback(ngx_str_t *host);
static ngx_uint_t ngx_http_mcp_server_name(ngx_array_t *names,
    ngx_str_t *host);


ngx_uint_t
ngx_http_mcp_origin_allowed(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *origin)
{
    u_char      *p;
    ngx_str_t    host, *value;
    ngx_uint_t   i;

    if (mlcf->origins_any) {
        return 1;
    }

    if (mlcf->origins) {
        value = mlcf->origins->elts;

        for (i = 0; i < mlcf->origins->nelts; i++) {
            if (value[i].len == origin->len
                && ngx_strncasecmp(value[i].data, origin->data, origin->len)
                   == 0)
            {
                return 1;
            }
        }

        return 0;
    }

    host = ngx_http_mcp_origin_host(origin);

    if (host.len == 0) {
        return 0;
    }

    /* as nginx compares "Host", for the sake of regular expressions */

    p = ngx_pnalloc(r->pool, host.len);
    if (p == NULL) {
        return 0;
    }

    ngx_strlow(p, host.data, host.len);
    host.data = p;

    if (ngx_http_mcp_loopback(&r->headers_in.server)
        && ngx_http_mcp_loopback(&host))
    {
        return 1;
    }

    return ngx_http_mcp_server_name(mlcf->names, &host);
}


/* SCHEME "://" HOST [":" PORT], nothing else (RFC 6454, section 7) */

static ngx_str_t
ngx_http_mcp_origin_host(ngx_str_t *origin)
{
    u_char     *p, *last;
    ngx_str_t   host;

    ngx_str_null(&host);

    p = origin->data;
    last = p + origin->len;

    while (p < last && *p != ':') {
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')
              || (*p >= '0' && *p <= '9')
              || *p == '+' || *p == '-' || *p == '.'))
        {
            return host;
        }

        p++;
    }

    if (p == origin->data || last - p < 4
        || ngx_strncmp(p, "://", 3) != 0)
    {
        return host;
    }

    p += 3;
    host.data = p;

    if (*p == '[') {
        while (p < last && *p != ']') {
            p++;
        }

        if (p == last) {
            return host;
        }

        p++;

    } else {
        while (p < last && *p != ':' && *p != '/' && *p != '@' && *p != '?'
               && *p != '#')
        {
            p++;
        }
    }

    host.len = p - host.data;

    if (p < last && *p == ':') {
        p++;

        while (p < last && *p >= '0' && *p <= '9') {
            p++;
        }
    }

    if (p != last) {
        host.len = 0;
    }

    return host;
}


static ngx_uint_t
ngx_http_mcp_loopback(ngx_str_t *host)
{
    return (host->len == 9
            && (ngx_strncasecmp(host->data, (u_char *) "localhost", 9) == 0
                || ngx_strncmp(host->data, "127.0.0.1", 9) == 0))
           || (host->len == 5 && ngx_strncmp(host->data, "[::1]", 5) == 0);
}


/* as "Host" would match, against this server alone */

static ngx_uint_t
ngx_http_mcp_server_name(ngx_array_t *names, ngx_str_t *host)
{
    size_t                   len;
    ngx_str_t                name;
    ngx_uint_t               i;
    ngx_http_server_name_t  *sn;

    sn = names->elts;

    for (i = 0; i < names->nelts; i++) {

        name = sn[i].name;

#if (NGX_PCRE)
        if (sn[i].regex) {
            if (ngx_regex_exec(sn[i].regex->regex, host, NULL, 0) >= 0) {
                return 1;
            }

            continue;
        }
#endif

        if (name.len == 0 || (name.len == 1 && name.data[0] == '_')) {
            continue;
        }

        if (name.data[0] == '*') {
            name.data++;
            name.len--;

        } else if (name.data[0] == '.') {

            if (host->len == name.len - 1
                && ngx_strncasecmp(host->data, name.data + 1, host->len) == 0)
            {
                return 1;
            }
        }

        if (name.data[0] == '.') {

            if (host->len > name.len
                && ngx_strncasecmp(host->data + host->len - name.len,
                                   name.data, name.len)
                   == 0)
            {
                return 1;
            }

            continue;
        }

        if (name.len > 2 && name.data[name.len - 1] == '*') {
            len = name.len - 1;

            if (host->len > len
                && ngx_strncasecmp(host->data, name.data, len) == 0)
            {
                return 1;
            }

            continue;
        }

        if (host->len == name.len
            && ngx_strncasecmp(host->data, name.data, name.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_mcp_preflight(ngx_http_request_t *r)
{
    ngx_str_t             value;
    ngx_table_elt_t      *h;
    ngx_http_mcp_walk_t   walk;

    if (ngx_http_discard_request_body(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&value, "GET, POST, DELETE, OPTIONS");

    if (ngx_http_mcp_header(r, "Access-Control-Allow-Methods", &value)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&value, "86400");

    if (ngx_http_mcp_header(r, "Access-Control-Max-Age", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* any header: access is decided by what the request itself carries */

    ngx_http_mcp_walk_init(&walk, &r->headers_in.headers);

    while ((h = ngx_http_mcp_walk_next(&walk)) != NULL) {

        if (h->key.len == sizeof("Access-Control-Request-Headers") - 1
            && ngx_strcasecmp(h->key.data,
                              (u_char *) "Access-Control-Request-Headers")
               == 0)
        {
            if (ngx_http_mcp_header(r, "Access-Control-Allow-Headers",
                                    &h->value)
                != NGX_OK)
            {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            break;
        }
    }

    return ngx_http_mcp_answer(r, NGX_HTTP_NO_CONTENT, NULL);
}


ngx_int_t
ngx_http_mcp_cors_headers(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t  value;

    if (!ctx->conf->cors || ctx->header_origin.len == 0) {
        return NGX_OK;
    }

    if (ngx_http_mcp_header(r, "Access-Control-Allow-Origin",
                            &ctx->header_origin)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "Origin");

    if (ngx_http_mcp_header(r, "Vary", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "Mcp-Session-Id, WWW-Authenticate, Retry-After");

    return ngx_http_mcp_header(r, "Access-Control-Expose-Headers", &value);
}
