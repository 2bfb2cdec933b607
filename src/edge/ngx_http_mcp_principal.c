
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_sha1.h>
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_header_iter.h"


/* bytes of the SHA-1 digest that is the principal of a caller */
#define NGX_HTTP_MCP_PRINCIPAL  20


static void ngx_http_mcp_principal_digest(ngx_sha1_t *sha1, ngx_str_t *text);


/*
 * The principal is made of everything by which an upstream may tell callers
 * apart: identity and list key, and request headers that may have credentials.
 */

ngx_int_t
ngx_http_mcp_principal(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    u_char                      *p;
    ngx_sha1_t                   sha1;
    ngx_uint_t                   i;
    ngx_table_elt_t             *h;
    ngx_http_mcp_header_iter_t   iter;

    /* a header may tell callers apart if its name has one of these words */

    static ngx_str_t  request_key = ngx_string("idempotency-key");
    static ngx_str_t  words[] = {
        ngx_string("auth"),
        ngx_string("cookie"),
        ngx_string("key"),
        ngx_string("token"),
        ngx_string("secret"),
        ngx_string("account"),
        ngx_string("tenant"),
        ngx_string("user-"),
        ngx_string("-user"),
        ngx_null_string
    };

    if (ctx->principal.len) {
        return NGX_OK;
    }

    ngx_sha1_init(&sha1);
    ngx_http_mcp_principal_digest(&sha1, &ctx->caller.identity);
    ngx_http_mcp_principal_digest(&sha1, &ctx->caller.list_key);

    ngx_http_mcp_header_iter_init(&iter, &r->headers_in.headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (h == r->headers_in.user_agent
            || ngx_strncasecmp(h->key.data, (u_char *) "mcp-", 4) == 0
            || (h->key.len == request_key.len
                && ngx_strncasecmp(h->key.data, request_key.data,
                                   request_key.len)
                   == 0))
        {
            continue;
        }

        for (i = 0; words[i].len; i++) {

            if (ngx_strlcasestrn(h->key.data, h->key.data + h->key.len,
                                 words[i].data, words[i].len - 1))
            {
                ngx_http_mcp_principal_digest(&sha1, &h->key);
                ngx_http_mcp_principal_digest(&sha1, &h->value);
                break;
            }
        }
    }

    p = ngx_pnalloc(r->pool, NGX_HTTP_MCP_PRINCIPAL + NGX_MCP_UUID_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_sha1_final(p, &sha1);

    ctx->principal.data = p;
    ctx->principal.len = NGX_HTTP_MCP_PRINCIPAL;

    /* the session id is the same for all upstreams of the endpoint */

    ctx->session_id.data = p + NGX_HTTP_MCP_PRINCIPAL;
    ctx->session_id.len = NGX_MCP_UUID_LEN;

    ngx_http_mcp_stable_id(ngx_http_mcp_router_next(&ctx->conf->bridge.router,
                                                    NULL),
                           &ctx->caller.tenant, &ctx->principal,
                           ctx->session_id.data);

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_principal_key(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *key)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(ureq->r, ngx_http_mcp_module);

    if (ngx_http_mcp_principal(ureq->r, ctx) != NGX_OK
        || ngx_http_mcp_evaluate_share(ureq->r, ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    *key = ctx->principal;
    ureq->session = ctx->session_id;
    ureq->share = ctx->caller.share;

    return NGX_OK;
}


/* adds a text and its length, so that "ab", "c" differs from "a", "bc" */

static void
ngx_http_mcp_principal_digest(ngx_sha1_t *sha1, ngx_str_t *text)
{
    ngx_sha1_update(sha1, &text->len, sizeof(size_t));
    ngx_sha1_update(sha1, text->data, text->len);
}
