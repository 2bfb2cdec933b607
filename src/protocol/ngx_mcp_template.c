
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_template.h"


/* an operator with which an expression may begin; name 0: no operator */

typedef struct {
    u_char                  name;
    u_char                  lead;         /* first character of the expanded
                                             text; 0: any */
    unsigned                optional:1;   /* the expanded text may be empty */
    unsigned                slashes:1;    /* the expanded text may have "/" */
} ngx_mcp_template_op_t;


static void ngx_mcp_template_literal(u_char *from, u_char *to,
    ngx_str_t *uri, u_char *p, size_t len);
static void ngx_mcp_template_expression(u_char *from, u_char *to,
    ngx_str_t *uri, ngx_mcp_template_op_t *op);


static ngx_mcp_template_op_t  ngx_mcp_template_ops[] = {
    { '+', 0, 0, 1 },
    { '#', '#', 0, 1 },
    { '/', '/', 0, 1 },
    { '.', '.', 0, 0 },
    { ';', ';', 1, 1 },
    { '?', '?', 1, 1 },
    { '&', '&', 1, 1 },
    { 0, 0, 0, 0 }
};


/*
 * After each part of the template, places[] tells for each offset of the URI
 * whether the template up to this part can match the URI up to that offset.  So
 * the time does not grow with the number of ways in which the parts can match.
 */

ngx_uint_t
ngx_mcp_template_matches(ngx_str_t *template, ngx_str_t *uri)
{
    u_char                 *p, *end, *last, *from, *to, *spare;
    ngx_mcp_template_op_t  *op;
    u_char                  places[2][NGX_MCP_TEMPLATE_URI + 1];

    if (uri->len > NGX_MCP_TEMPLATE_URI
        || template->len > NGX_MCP_TEMPLATE_URI)
    {
        return 0;
    }

    from = places[0];
    to = places[1];

    ngx_memzero(from, uri->len + 1);
    from[0] = 1;

    p = template->data;
    last = p + template->len;

    while (p < last) {

        ngx_memzero(to, uri->len + 1);

        if (*p == '{') {
            end = ngx_strlchr(p, last, '}');

            if (end == NULL) {
                return 0;
            }

            for (op = ngx_mcp_template_ops; op->name; op++) {
                if (op->name == p[1]) {
                    break;
                }
            }

            ngx_mcp_template_expression(from, to, uri, op);

            p = end + 1;

        } else {
            end = ngx_strlchr(p, last, '{');

            if (end == NULL) {
                end = last;
            }

            ngx_mcp_template_literal(from, to, uri, p, end - p);

            p = end;
        }

        spare = from;
        from = to;
        to = spare;

        /* most URIs differ from most templates in the first part */

        if (ngx_strlchr(from, from + uri->len + 1, 1) == NULL) {
            return 0;
        }
    }

    return from[uri->len];
}


static void
ngx_mcp_template_literal(u_char *from, u_char *to, ngx_str_t *uri, u_char *p,
    size_t len)
{
    size_t  i;

    for (i = 0; i + len <= uri->len; i++) {
        if (from[i] && ngx_memcmp(uri->data + i, p, len) == 0) {
            to[i + len] = 1;
        }
    }
}


static void
ngx_mcp_template_expression(u_char *from, u_char *to, ngx_str_t *uri,
    ngx_mcp_template_op_t *op)
{
    size_t      i;
    ngx_uint_t  inside;

    inside = 0;

    for (i = 0; i <= uri->len; i++) {

        if (inside) {

            if (op->slashes || uri->data[i - 1] != '/') {
                to[i] = 1;

            } else {
                inside = 0;
            }
        }

        if (op->optional && from[i]) {
            to[i] = 1;
        }

        if (op->lead
            ? (i && from[i - 1] && uri->data[i - 1] == op->lead) : from[i])
        {
            inside = 1;
        }
    }
}
