
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Feeds (mcp_events): which feeds are read, and how their events are sent.
 * Each feed has a lease in the zone; the worker that holds the lease has a
 * reader (ngx_http_mcp_reader.h).  A feed whose URI or topic depends on the
 * tenant or the topic is opened once for each value that sessions want, and
 * stays open for NGX_HTTP_MCP_FEED_KEEP after no session wants it.
 */

#ifndef _NGX_HTTP_MCP_FEED_H_INCLUDED_
#define _NGX_HTTP_MCP_FEED_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_reader.h"


/* ms for which a feed on demand stays open after no session wants it */
#define NGX_HTTP_MCP_FEED_KEEP      60000

/* ms for which a request waits at most until feeds are connected */
#define NGX_HTTP_MCP_FEED_TIMEOUT   2000


/*
 * Starts the feeds in a worker that has joined the zone.  bridges: array of
 * ngx_http_mcp_bridge_t *.
 */
void ngx_http_mcp_feed_init(ngx_mcp_zone_t *zone, ngx_array_t *bridges);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_feed_readers;

/* feeds of topics that one session may have open at a time, at most */
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
 * Opens the feeds that the caller needs: those of its tenant if topic is NULL
 * (a session began), else those of the topic (it was subscribed to, or a call
 * waits for it).  Any worker may call this.  From then on sessions of the
 * tenant keep its feeds open, and subscribers and waiting calls keep feeds of
 * the topic open.  Returns NULL, or why a feed is not opened.
 *
 * If wait is not NULL, *wait becomes a wait for the feeds that are not
 * connected yet, or NULL if there are none.
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
