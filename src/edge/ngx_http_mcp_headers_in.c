
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_header_iter.h"


/* whether a header was there before: no; with this value; with another value */
#define NGX_HTTP_MCP_HEADER_NONE   0
#define NGX_HTTP_MCP_HEADER_SAME   1
#define NGX_HTTP_MCP_HEADER_OTHER  2


/* the rank of a range without "*", the highest */
#define NGX_HTTP_MCP_RANK_EXACT  6


static ngx_uint_t ngx_http_mcp_read_header(ngx_str_t *value,
    ngx_table_elt_t *h);
static void ngx_http_mcp_parse_accept(ngx_str_t *accept, ngx_uint_t *json,
    ngx_uint_t *sse);
static ngx_uint_t ngx_http_mcp_weight_zero(u_char *p, u_char *last);


ngx_table_elt_t *
ngx_http_mcp_search_header(ngx_list_t *headers, const char *name, size_t len)
{
    ngx_table_elt_t            *h;
    ngx_http_mcp_header_iter_t  iter;

    ngx_http_mcp_header_iter_init(&iter, headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (h->key.len == len
            && ngx_strncasecmp(h->key.data, (u_char *) name, len) == 0
            && h->hash)
        {
            return h;
        }
    }

    return NULL;
}


/* one walk over the headers sets all values */

void
ngx_http_mcp_read_headers(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_uint_t                  accepts, json, sse, was;
    ngx_table_elt_t            *h;
    ngx_http_mcp_header_iter_t  iter;

    accepts = 0;
    json = 0;
    sse = 0;
    ngx_http_mcp_header_iter_init(&iter, &r->headers_in.headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        switch (h->key.len) {

        case sizeof("accept") - 1:

            if (ngx_memcmp(h->lowcase_key, "accept", 6) == 0) {
                ngx_http_mcp_parse_accept(&h->value, &json, &sse);
                accepts = 1;

            } else if (ngx_memcmp(h->lowcase_key, "cookie", 6) == 0) {
                ctx->cookies = 1;

            } else if (ngx_memcmp(h->lowcase_key, "origin", 6) == 0) {
                was = ngx_http_mcp_read_header(&ctx->header_origin, h);

                if (was == NGX_HTTP_MCP_HEADER_OTHER) {
                    ctx->origins_differ = 1;
                }
            }

            break;

        case sizeof("mcp-name") - 1:

            if (ngx_memcmp(h->lowcase_key, "mcp-name", 8) == 0) {
                was = ngx_http_mcp_read_header(&ctx->header_name, h);
                ctx->header_twice |= was;
            }

            break;

        case sizeof("mcp-method") - 1:

            if (ngx_memcmp(h->lowcase_key, "mcp-method", 10) == 0) {
                was = ngx_http_mcp_read_header(&ctx->header_method, h);
                ctx->header_twice |= was;
            }

            break;

        case sizeof("last-event-id") - 1:

            if (ngx_memcmp(h->lowcase_key, "last-event-id", 13) == 0) {
                was = ngx_http_mcp_read_header(&ctx->header_last_event, h);

                if (was == NGX_HTTP_MCP_HEADER_OTHER) {
                    ctx->header_differs = "Last-Event-ID";
                }
            }

            break;

        case sizeof("mcp-session-id") - 1:

            if (ngx_memcmp(h->lowcase_key, "mcp-session-id", 14) == 0) {
                was = ngx_http_mcp_read_header(&ctx->header_session, h);

                if (was == NGX_HTTP_MCP_HEADER_OTHER) {
                    ctx->header_differs = "Mcp-Session-Id";
                }
            }

            break;

        case sizeof("mcp-protocol-version") - 1:

            if (ngx_memcmp(h->lowcase_key, "mcp-protocol-version", 20) == 0) {
                was = ngx_http_mcp_read_header(&ctx->header_version, h);
                ctx->header_twice |= was;

                if (was == NGX_HTTP_MCP_HEADER_OTHER) {
                    ctx->header_differs = "MCP-Protocol-Version";
                }

                ctx->header_revision =
                                   ngx_mcp_revision_parse(&ctx->header_version);
            }

            break;
        }
    }

    if (!accepts || (json & 1)) {
        ctx->accept |= NGX_HTTP_MCP_ACCEPT_JSON;
    }

    if (!accepts || (sse & 1)) {
        ctx->accept |= NGX_HTTP_MCP_ACCEPT_SSE;
    }
}


/* keeps the first value; returns NGX_HTTP_MCP_HEADER_* */

static ngx_uint_t
ngx_http_mcp_read_header(ngx_str_t *value, ngx_table_elt_t *h)
{
    ngx_str_t  s;

    s = ngx_http_mcp_trim(h->value);

    if (value->data == NULL) {
        *value = s;
        return NGX_HTTP_MCP_HEADER_NONE;
    }

    return ngx_mcp_equal(value, &s) ? NGX_HTTP_MCP_HEADER_SAME
                                    : NGX_HTTP_MCP_HEADER_OTHER;
}


/* nginx leaves tabs in values */

ngx_str_t
ngx_http_mcp_trim(ngx_str_t value)
{
    while (value.len && (value.data[value.len - 1] == ' '
                         || value.data[value.len - 1] == '\t'))
    {
        value.len--;
    }

    while (value.len && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.len--;
    }

    return value;
}


/*
 * The most specific range that matches decides (RFC 9110, section 12.5.1):
 * the greatest of (specificity << 1) + allowed is kept.
 */

static void
ngx_http_mcp_parse_accept(ngx_str_t *accept, ngx_uint_t *json, ngx_uint_t *sse)
{
    u_char      *p, *end, *last, *weight;
    ngx_str_t    range;
    ngx_uint_t   i, rank;

    static struct {
        ngx_str_t   range;
        ngx_uint_t  rank;
        ngx_uint_t  json;
        ngx_uint_t  sse;
    } ranges[] = {
        { ngx_string("*/*"), 2, 1, 1 },
        { ngx_string("application/*"), 4, 1, 0 },
        { ngx_string("text/*"), 4, 0, 1 },
        { ngx_string("application/json"), NGX_HTTP_MCP_RANK_EXACT, 1, 0 },
        { ngx_string("text/event-stream"), NGX_HTTP_MCP_RANK_EXACT, 0, 1 },
        { ngx_null_string, 0, 0, 0 }
    };

    static ngx_str_t  usual = ngx_string("application/json, text/event-stream");

    /* the value that nearly all clients send */

    if (accept->len == usual.len
        && ngx_memcmp(accept->data, usual.data, usual.len) == 0)
    {
        *json = NGX_HTTP_MCP_RANK_EXACT + 1;
        *sse = NGX_HTTP_MCP_RANK_EXACT + 1;
        return;
    }

    last = accept->data + accept->len;

    for (p = accept->data; p < last; p = end + 1) {

        end = memchr(p, ',', last - p);

        if (end == NULL) {
            end = last;
        }

        weight = memchr(p, ';', end - p);

        if (weight == NULL) {
            weight = end;
        }

        range.data = p;
        range.len = weight - p;
        range = ngx_http_mcp_trim(range);

        /* "q=0" and "q=0.0" refuse the range */

        rank = !ngx_http_mcp_weight_zero(weight, end);

        for (i = 0; ranges[i].rank; i++) {

            if (ranges[i].range.len != range.len
                || (ngx_memcmp(ranges[i].range.data, range.data, range.len)
                    != 0
                    && ngx_strncasecmp(ranges[i].range.data, range.data,
                                       range.len)
                       != 0))
            {
                continue;
            }

            rank += ranges[i].rank;

            if (ranges[i].json) {
                *json = ngx_max(*json, rank);
            }

            if (ranges[i].sse) {
                *sse = ngx_max(*sse, rank);
            }

            break;
        }
    }
}


static ngx_uint_t
ngx_http_mcp_weight_zero(u_char *p, u_char *last)
{
    while (p + 3 <= last) {

        if ((*p == 'q' || *p == 'Q') && p[1] == '=') {

            if (p[2] != '0') {
                return 0;
            }

            for (p += 3; p < last; p++) {
                if (*p >= '1' && *p <= '9') {
                    return 0;
                }
            }

            return 1;
        }

        p++;
    }

    return 0;
}


ngx_uint_t
ngx_http_mcp_is_json(ngx_http_request_t *r)
{
    size_t      len;
    u_char     *p;
    ngx_str_t  *type;

    if (r->headers_in.content_type == NULL) {
        return 0;
    }

    type = &r->headers_in.content_type->value;
    len = sizeof("application/json") - 1;

    if (type->len < len
        || (ngx_memcmp(type->data, "application/json", len) != 0
            && ngx_strncasecmp(type->data, (u_char *) "application/json", len)
               != 0))
    {
        return 0;
    }

    for (p = type->data + len; p < type->data + type->len; p++) {

        if (*p == ';') {
            return 1;
        }

        if (*p != ' ' && *p != '\t') {
            return 0;
        }
    }

    return 1;
}
