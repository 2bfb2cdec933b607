
/*
 * How long to wait before the next attempt: longer each time, until one has
 * been good for something.
 */

#ifndef _NGX_HTTP_MCP_BACKOFF_H_INCLUDED_
#define _NGX_HTTP_MCP_BACKOFF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* ms */
#define NGX_HTTP_MCP_BACKOFF       1000
#define NGX_HTTP_MCP_BACKOFF_MAX   30000

/* bounds of the shortest wait, where the other side may set it ("retry:") */
#define NGX_HTTP_MCP_BACKOFF_MIN   100
#define NGX_HTTP_MCP_BACKOFF_LONG  300000


typedef struct {
    ngx_msec_t  base;       /* the shortest */
    ngx_msec_t  next;
} ngx_http_mcp_backoff_t;


#define ngx_http_mcp_backoff_init(b)                                          \
    (b)->base = (b)->next = NGX_HTTP_MCP_BACKOFF

#define ngx_http_mcp_backoff_base(b, time)                                    \
    (b)->base = ngx_min(ngx_max(time, NGX_HTTP_MCP_BACKOFF_MIN),              \
                        NGX_HTTP_MCP_BACKOFF_LONG)

/* the last attempt was good */
#define ngx_http_mcp_backoff_reset(b)  (b)->next = (b)->base

/* as it is if it lasted so long, even if nothing came */
#define ngx_http_mcp_backoff_lasted(since)                                    \
    (ngx_current_msec - (since) >= NGX_HTTP_MCP_BACKOFF_MAX)


/* those that failed together are spread over a quarter of the time */

static ngx_inline ngx_msec_t
ngx_http_mcp_backoff_next(ngx_http_mcp_backoff_t *b)
{
    ngx_msec_t  time;

    time = b->next;

    b->next = ngx_max(b->base, ngx_min(time * 2, NGX_HTTP_MCP_BACKOFF_MAX));

    return time + ngx_random() % (time / 4 + 1);
}


#endif /* _NGX_HTTP_MCP_BACKOFF_H_INCLUDED_ */
