
/*
 * Feeds (mcp_events): which are to be read, and what becomes of their events.
 * For each there is a lease in the zone; the worker that holds it has a reader
 * (ngx_http_mcp_reader.h).  A feed whose URI or topic depends on the tenant or
 * the topic is read for each value that somebody wants, and for
 * NGX_HTTP_MCP_FEED_KEEP after that.
 */

#ifndef _NGX_HTTP_MCP_FEED_H_INCLUDED_
#define _NGX_HTTP_MCP_FEED_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_reader.h"


/* ms */
#define NGX_HTTP_MCP_FEED_KEEP      60000
#define NGX_HTTP_MCP_FEED_TIMEOUT   2000


/* in a worker that has joined the zone; bridges: ngx_http_mcp_bridge_t * */
ngx_int_t ngx_http_mcp_feed_init(ngx_mcp_zone_t *zone, ngx_array_t *bridges);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_feed_readers;

/* feeds of topics that were opened for one session, at a time */
#define NGX_HTTP_MCP_FEED_SESSION  32


/*
 * Waiting until feeds are connected, or could not be, for at most
 * NGX_HTTP_MCP_FEED_TIMEOUT; in the pool that it was made from.
 */

typedef struct ngx_http_mcp_feed_wait_s     ngx_http_mcp_feed_wait_t;
typedef struct ngx_http_mcp_feed_awaited_s  ngx_http_mcp_feed_awaited_t;

struct ngx_http_mcp_feed_wait_s {
    void                         (*done)(void *data);
    void                          *data;

    /* private */
    ngx_mcp_zone_t                *zone;
    ngx_http_mcp_feed_awaited_t   *feeds;
    unsigned                       waiting:1;
};


/*
 * A session wants the events of its tenant (topic is NULL: it began), or of
 * this topic of it.  To be called when that begins, in any worker; from then
 * on sessions of the tenant, and who subscribed to the topic or waits for it,
 * keep its feeds open.  NULL, or why a feed is not opened.
 *
 * wait: NULL, or *wait is made from pool if a feed is not connected yet, and
 * else NULL.
 */
const char *ngx_http_mcp_feed_want(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *topic, ngx_pool_t *pool,
    ngx_http_mcp_feed_wait_t **wait);

/* done() is called, once, in a later event, unless it is forgotten before */
void ngx_http_mcp_feed_wait(ngx_http_mcp_feed_wait_t *wait);
void ngx_http_mcp_feed_cancel(ngx_http_mcp_feed_wait_t *wait);


#endif /* _NGX_HTTP_MCP_FEED_H_INCLUDED_ */
