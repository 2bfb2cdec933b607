
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"


ngx_http_mcp_scope_t       *ngx_http_mcp_encoding;
ngx_http_mcp_background_pt  ngx_http_mcp_background_for;


ngx_http_mcp_exchange_t *
ngx_http_mcp_upstream_exchange(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_scope_t *scope)
{
    u_char                   *p, *last, *start;
    ngx_int_t                 rc;
    ngx_str_t                 uri;
    ngx_http_mcp_exchange_t  *x;

    ngx_http_mcp_encoding = scope;
    rc = ngx_http_complex_value(r, &u->uri, &uri);
    ngx_http_mcp_encoding = NULL;

    if (rc != NGX_OK) {
        return NULL;
    }

    x = ngx_http_mcp_exchange_create(r);
    if (x == NULL) {
        return NULL;
    }

    x->zone = u->zone;
    x->name = u->name;
    x->scope = scope;
    x->uri = uri;
    x->timeout = u->timeout;
    x->total = u->total;
    x->limit = u->limit;

    last = uri.data + uri.len;
    start = uri.data;

    for (p = uri.data; /* void */ ; p++) {

        if (p < last && *p != '/' && *p != '?') {
            continue;
        }

        if ((p - start == 1 && start[0] == '.')
            || (p - start == 2 && start[0] == '.' && start[1] == '.'))
        {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "mcp upstream \"%V\" was not asked: its URI \"%V\" "
                          "has a dot segment", &u->name, &uri);
            scope->dots = 1;
            return NULL;
        }

        if (p == last) {
            break;
        }

        if (*p == '?') {
            x->uri.len = p - uri.data;
            x->args.data = p + 1;
            x->args.len = last - p - 1;
            break;
        }

        start = p + 1;
    }

    if (x->uri.len == 0 || x->uri.data[0] != '/') {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "mcp upstream \"%V\" was not asked: its URI \"%V\" does "
                      "not start with a slash", &u->name, &uri);
        return NULL;
    }

    return x;
}


ngx_int_t
ngx_http_mcp_upstream_body(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = ngx_calloc_buf(x->r->pool);
    cl = ngx_alloc_chain_link(x->r->pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b->start = text->data;
    b->pos = text->data;
    b->last = text->data + text->len;
    b->end = b->last;
    b->memory = 1;
    b->last_buf = 1;

    cl->buf = b;
    cl->next = NULL;

    x->request = cl;
    x->request_len = text->len;

    return NGX_OK;
}
