
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_header_iter.h"
#include "ngx_http_mcp_output.h"


static ngx_uint_t ngx_http_mcp_loopback(ngx_str_t *host);
static ngx_uint_t ngx_http_mcp_server_name(ngx_array_t *names,
    ngx_str_t *host);
static const char *ngx_http_mcp_guard_reason(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf);
static ngx_uint_t ngx_http_mcp_cross_site(ngx_http_request_t *r);
static ngx_uint_t ngx_http_mcp_from_loopback(struct sockaddr *sockaddr);


ngx_uint_t
ngx_http_mcp_origin_allowed(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *origin)
{
    u_char      *p;
    ngx_str_t    host, same, *value;
    ngx_uint_t   i;

    if (mlcf->origins_any) {
        return 1;
    }

    if (mlcf->origins) {
        value = mlcf->origins->elts;
        same = ngx_http_mcp_origin_short(origin);

        for (i = 0; i < mlcf->origins->nelts; i++) {
            if (value[i].len == same.len
                && ngx_strncasecmp(value[i].data, same.data, same.len) == 0)
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

    /* the host is compared in lower case, as nginx compares "Host" */

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


/* removes the default port, as browsers send an Origin without this port */

ngx_str_t
ngx_http_mcp_origin_short(ngx_str_t *origin)
{
    ngx_str_t  value;

    value = *origin;

    if (value.len > 11 && ngx_strncasecmp(value.data, (u_char *) "https://", 8)
                          == 0
        && ngx_strncmp(value.data + value.len - 4, ":443", 4) == 0)
    {
        value.len -= 4;

    } else if (value.len > 9
               && ngx_strncasecmp(value.data, (u_char *) "http://", 7) == 0
               && ngx_strncmp(value.data + value.len - 3, ":80", 3) == 0)
    {
        value.len -= 3;
    }

    return value;
}


/* an Origin is SCHEME "://" HOST [":" PORT] (RFC 6454, section 7) */

ngx_str_t
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
            && (ngx_memcmp(host->data, "localhost", 9) == 0
                || ngx_memcmp(host->data, "127.0.0.1", 9) == 0
                || ngx_strncasecmp(host->data, (u_char *) "localhost", 9)
                   == 0))
           || (host->len == 5 && ngx_strncmp(host->data, "[::1]", 5) == 0);
}


/* returns whether server_name has the host, by the rules for "Host" */

static ngx_uint_t
ngx_http_mcp_server_name(ngx_array_t *names, ngx_str_t *host)
{
    u_char                  *p;
    size_t                   len;
    ngx_str_t                name;
    ngx_uint_t               i, fits;
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

        } else if (name.data[0] == '.' && host->len == name.len - 1
                   && ngx_strncasecmp(host->data, name.data + 1, host->len)
                      == 0)
        {
            return 1;
        }

        p = host->data;
        len = name.len;
        fits = (host->len == len);

        if (name.data[0] == '.') {
            fits = (host->len > len);
            p += fits ? host->len - len : 0;

        } else if (len > 2 && name.data[len - 1] == '*') {
            fits = (host->len >= len);
            len--;
        }

        if (fits && ngx_strncasecmp(p, name.data, len) == 0) {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_mcp_guard(ngx_http_request_t *r, ngx_uint_t methods,
    const char *allow)
{
    ngx_int_t                 rc;
    ngx_buf_t                *b;
    const char               *why;
    ngx_chain_t               out;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    why = ngx_http_mcp_guard_reason(r, mlcf);

    if (why == NULL) {

        if (r->method & methods) {
            return NGX_DECLINED;
        }

        return ngx_http_mcp_header_text(r, "Allow", allow) == NGX_OK
               ? NGX_HTTP_NOT_ALLOWED : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "mcp refused a request of a web page: %s", why);

    b = ngx_create_temp_buf(r->pool, ngx_strlen(why)
                                     + sizeof("{\"error\":\"\"}"));
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->last = ngx_sprintf(b->last, "{\"error\":\"%s\"}\n", why);

    out.buf = b;
    out.next = NULL;

    return ngx_http_mcp_send_chain(r, NGX_HTTP_FORBIDDEN,
                                   &ngx_http_mcp_type_json, &out);
}


/* returns why a request, such as of a foreign web page, is refused, or NULL */

static const char *
ngx_http_mcp_guard_reason(ngx_http_request_t *r, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_str_t                  *host;
    ngx_uint_t                  origins;
    ngx_table_elt_t            *h;
    ngx_http_mcp_header_iter_t  iter;

    origins = 0;
    ngx_http_mcp_header_iter_init(&iter, &r->headers_in.headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (h->value.len == 0 || h->key.len != sizeof("origin") - 1
            || ngx_memcmp(h->lowcase_key, "origin", sizeof("origin") - 1) != 0)
        {
            continue;
        }

        if (!ngx_http_mcp_origin_allowed(r, mlcf, &h->value)) {
            return "the Origin is not allowed here (mcp_allowed_origins)";
        }

        origins++;
    }

    if (origins == 0 && !mlcf->origins_any && ngx_http_mcp_cross_site(r)) {
        return "requests of web pages of other sites are not allowed here "
               "(mcp_allowed_origins)";
    }

    /* an attacker may make a name of his own resolve to this machine */

    host = &r->headers_in.server;

    if (host->len && ngx_http_mcp_from_loopback(r->connection->sockaddr)
        && !ngx_http_mcp_loopback(host)
        && !ngx_http_mcp_server_name(mlcf->names, host))
    {
        return "the Host of a request from this machine must be localhost, "
               "127.0.0.1, [::1] or a name of server_name";
    }

    return NULL;
}


/*
 * Returns whether Sec-Fetch-Site, which browsers send with each request, tells
 * of another site.  Following a link from another site does no harm and is
 * allowed.
 */

static ngx_uint_t
ngx_http_mcp_cross_site(ngx_http_request_t *r)
{
    ngx_table_elt_t  *site, *mode;

    site = ngx_http_mcp_find_header(&r->headers_in.headers, "Sec-Fetch-Site");

    if (site == NULL
        || ngx_strcasecmp(site->value.data, (u_char *) "cross-site") != 0)
    {
        return 0;
    }

    mode = ngx_http_mcp_find_header(&r->headers_in.headers, "Sec-Fetch-Mode");

    return r->method == NGX_HTTP_POST || mode == NULL
           || ngx_strcasecmp(mode->value.data, (u_char *) "navigate") != 0;
}


static ngx_uint_t
ngx_http_mcp_from_loopback(struct sockaddr *sockaddr)
{
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    u_char               *p;
    struct sockaddr_in6  *sin6;
#endif

    switch (sockaddr->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) sockaddr;

        return (ntohl(sin->sin_addr.s_addr) >> 24) == 127;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sockaddr;
        p = sin6->sin6_addr.s6_addr;

        return IN6_IS_ADDR_LOOPBACK(&sin6->sin6_addr)
               || (IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr) && p[12] == 127);
#endif

    default:
        return 0;
    }
}
