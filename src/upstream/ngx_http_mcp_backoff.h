
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The time to wait before the next attempt: it doubles with each attempt until
 * one succeeds.
 */

#ifndef _NGX_HTTP_MCP_BACKOFF_H_INCLUDED_
#define _NGX_HTTP_MCP_BACKOFF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* ms; the first wait and the longest one */
#define NGX_HTTP_MCP_BACKOFF       1000
#define NGX_HTTP_MCP_BACKOFF_MAX   30000

/* ms; limits of the first wait if the other side sets it ("retry:") */
#define NGX_HTTP_MCP_BACKOFF_MIN   100
#define NGX_HTTP_MCP_BACKOFF_LONG  300000


typedef struct {
    ngx_msec_t  base;       /* the shortest wait, ms */
    ngx_msec_t  next;       /* the next wait, ms */
} ngx_http_mcp_backoff_t;


#define ngx_http_mcp_backoff_init(b)                                          \
    (b)->base = (b)->next = NGX_HTTP_MCP_BACKOFF

#define ngx_http_mcp_backoff_base(b, time)                                    \
    (b)->base = ngx_min(ngx_max(time, NGX_HTTP_MCP_BACKOFF_MIN),              \
                        NGX_HTTP_MCP_BACKOFF_LONG)

/* the last attempt has succeeded: the next wait is the shortest again */
#define ngx_http_mcp_backoff_reset(b)  (b)->next = (b)->base

/*
 * Whether a stream that opened at this time lasted long enough to count as a
 * success, even if nothing was received on it.
 */
#define ngx_http_mcp_backoff_lasted(since)                                    \
    (ngx_current_msec - (since) >= NGX_HTTP_MCP_BACKOFF_MAX)


/*
 * Gives the time to wait now, in ms, and doubles the next one.  Up to a
 * quarter is added at random, so that attempts that failed together are not
 * repeated together.
 */

static ngx_inline ngx_msec_t
ngx_http_mcp_backoff_next(ngx_http_mcp_backoff_t *b)
{
    ngx_msec_t  time;

    time = b->next;

    b->next = ngx_max(b->base, ngx_min(time * 2, NGX_HTTP_MCP_BACKOFF_MAX));

    return time + ngx_random() % (time / 4 + 1);
}


#endif /* _NGX_HTTP_MCP_BACKOFF_H_INCLUDED_ */
