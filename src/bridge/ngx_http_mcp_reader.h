
/*
 * A reader: what one worker, the holder of the lease of a feed, does with it.
 * It connects, again and again with growing pauses, takes what arrives under
 * its lease and goes on from the last event id.
 *
 * It lives in a pool of its own; each connection is an attempt in the pool of
 * a request of its own.
 */

#ifndef _NGX_HTTP_MCP_READER_H_INCLUDED_
#define _NGX_HTTP_MCP_READER_H_INCLUDED_


#include "ngx_http_mcp_backoff.h"
#include "ngx_http_mcp_event_in.h"
#include "ngx_mcp_lease.h"


typedef struct ngx_http_mcp_reader_s   ngx_http_mcp_reader_t;
typedef struct ngx_http_mcp_attempt_s  ngx_http_mcp_attempt_t;


struct ngx_http_mcp_reader_s {
    ngx_queue_t               queue;
    ngx_pool_t               *pool;
    ngx_array_t              *bridges;      /* ngx_http_mcp_bridge_t * */
    ngx_http_mcp_bridge_t    *bridge;
    ngx_http_mcp_feed_t      *feed;
    uint32_t                  hash;         /* of the key */
    ngx_str_t                 key;
    ngx_str_t                 tenant;       /* by demand, as topic */
    ngx_str_t                 topic;
    ngx_msec_t                wanted;       /* when last */
    ngx_msec_t                looked;       /* whether it is */

    ngx_mcp_lease_t           lease;
    ngx_http_mcp_attempt_t   *attempt;      /* under way */
    ngx_pool_t               *scratch;      /* of an event */
    ngx_http_mcp_backoff_t    backoff;      /* of attempts */
    ngx_str_t                 id;           /* last event id */
    u_char                    ids[NGX_MCP_LEASE_ID_MAX];

    ngx_event_t               renew;
    ngx_event_t               retry;
    ngx_event_t               hold;         /* keeps a worker that quits */

    ngx_uint_t                failure;      /* that was said, or 0 */
    const char               *complaint;    /* of its events, likewise */

    unsigned                  missed:1;     /* it cannot go on from its id */
    unsigned                  lost:1;       /* the lease is */
    unsigned                  quiet:1;      /* connects no more */
};


/* how it parts with its lease */

typedef enum {
    NGX_HTTP_MCP_READER_LOST = 0,
    NGX_HTTP_MCP_READER_RELEASE,
    NGX_HTTP_MCP_READER_DROP
} ngx_http_mcp_reader_e;


/* what stands above wanted is set, and the lease, and scratch */
void ngx_http_mcp_reader_start(ngx_http_mcp_reader_t *reader,
    ngx_str_t *last_event_id);

/* the worker quits: reads on for at most so long, until another does */
void ngx_http_mcp_reader_quit(ngx_http_mcp_reader_t *reader, ngx_msec_t hold);

/* ends it and frees it; not from within a handler of its exchange */
void ngx_http_mcp_reader_close(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_reader_e how);

ngx_uint_t ngx_http_mcp_reader_connected(ngx_http_mcp_reader_t *reader);

/* whether somebody wants it still, asked now and then (ngx_http_mcp_feed.c) */
ngx_uint_t ngx_http_mcp_feed_wanted(ngx_http_mcp_reader_t *reader);

/* those whom it serves missed something */
void ngx_http_mcp_reader_gap(ngx_http_mcp_reader_t *reader, const char *why);


#endif /* _NGX_HTTP_MCP_READER_H_INCLUDED_ */
