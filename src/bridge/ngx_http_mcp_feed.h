
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Feeds (mcp_events): opens them and sends their events.  Each feed has a lease
 * in the zone; the worker that holds the lease has a reader
 * (ngx_http_mcp_reader.h).  A feed on demand, whose URI or topic depends on the
 * tenant or the topic, is opened once for each value that sessions need, and
 * stays open for NGX_HTTP_MCP_FEED_KEEP after the last of them.
 */

#ifndef _NGX_HTTP_MCP_FEED_H_INCLUDED_
#define _NGX_HTTP_MCP_FEED_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_reader.h"


/* ms; a feed on demand that no session needs stays open for this time */
#define NGX_HTTP_MCP_FEED_KEEP      60000

/* ms; the longest time for which a request waits until feeds are connected */
#define NGX_HTTP_MCP_FEED_TIMEOUT   2000


/*
 * Starts the feeds in a worker that has joined the zone.  bridges: array of
 * ngx_http_mcp_bridge_t *.
 */
void ngx_http_mcp_feed_init(ngx_mcp_zone_t *zone, ngx_array_t *bridges);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_feed_readers;

/* feeds of topics that one session may have opened at a time, at most */
#define NGX_HTTP_MCP_FEED_SESSION  32


/*
 * A wait until each feed is connected or has failed to connect, for at most
 * NGX_HTTP_MCP_FEED_TIMEOUT.  ngx_http_mcp_feed_want() makes it, in its pool.
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
 * Opens the feeds that the caller needs.  topic NULL: those of its tenant, as a
 * session begins; else those of the topic, as it is subscribed to, or a call
 * waits for it.  Any worker may call this.  Later, sessions of the tenant keep
 * its feeds open, and subscribers and waiting calls keep feeds of the topic
 * open.  Returns NULL, or a text about why a feed is not opened.
 *
 * If wait is not NULL, sets *wait to a wait for the feeds that are not
 * connected yet, or to NULL if there are none.
 */
const char *ngx_http_mcp_feed_want(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *topic, ngx_pool_t *pool,
    ngx_http_mcp_feed_wait_t **wait);

/*
 * Starts the wait: done() is called once, in a later event, unless
 * ngx_http_mcp_feed_cancel() is called before.
 */
void ngx_http_mcp_feed_wait(ngx_http_mcp_feed_wait_t *wait);
void ngx_http_mcp_feed_cancel(ngx_http_mcp_feed_wait_t *wait);


#endif /* _NGX_HTTP_MCP_FEED_H_INCLUDED_ */
