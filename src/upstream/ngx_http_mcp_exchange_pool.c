
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"


/* bytes of a pool's first block; most exchanges need no second one */
#define NGX_HTTP_MCP_EXCHANGE_POOL  8160

/* pools that a worker keeps for later exchanges, at most */
#define NGX_HTTP_MCP_EXCHANGE_KEPT  64


static void ngx_http_mcp_exchange_pool_free(void *data);


static ngx_pool_t  *ngx_http_mcp_exchange_kept[NGX_HTTP_MCP_EXCHANGE_KEPT];
static ngx_uint_t   ngx_http_mcp_exchange_nkept;


ngx_pool_t *
ngx_http_mcp_exchange_pool(ngx_http_request_t *r)
{
    ngx_pool_t           *pool;
    ngx_pool_cleanup_t   *cln, **last;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    if (ngx_http_mcp_exchange_nkept) {
        pool = ngx_http_mcp_exchange_kept[--ngx_http_mcp_exchange_nkept];
        pool->log = r->pool->log;

    } else {
        pool = ngx_create_pool(NGX_HTTP_MCP_EXCHANGE_POOL, r->pool->log);
        if (pool == NULL) {
            return NULL;
        }
    }

    cln->handler = ngx_http_mcp_exchange_pool_free;
    cln->data = pool;

    /*
     * Moves the cleanup to the end of the list, so that it runs last: other
     * cleanups of r may use the exchange.
     */

    r->pool->cleanup = cln->next;

    for (last = &r->pool->cleanup; *last; last = &(*last)->next) {
        /* void */
    }

    *last = cln;
    cln->next = NULL;

    return pool;
}


static void
ngx_http_mcp_exchange_pool_free(void *data)
{
    ngx_pool_t *pool = data;

#if !(NGX_DEBUG_PALLOC)

    ngx_pool_cleanup_t  *cln;

    if (ngx_http_mcp_exchange_nkept < NGX_HTTP_MCP_EXCHANGE_KEPT
        && pool->d.next == NULL)
    {
        for (cln = pool->cleanup; cln; cln = cln->next) {
            if (cln->handler) {
                cln->handler(cln->data);
            }
        }

        pool->cleanup = NULL;

        ngx_reset_pool(pool);

        ngx_http_mcp_exchange_kept[ngx_http_mcp_exchange_nkept++] = pool;

        return;
    }

#endif

    ngx_destroy_pool(pool);
}
