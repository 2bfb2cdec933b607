
/*
 * Waiting for another worker, or another request of this one, to put something
 * into the zone.  It rings the doorbell then, with the key of what it put
 * (NGX_MCP_RING_KEY()), and those look again that wait for something of that
 * kind with that key.
 */

#ifndef _NGX_HTTP_MCP_WAITER_H_INCLUDED_
#define _NGX_HTTP_MCP_WAITER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include "ngx_mcp_schema.h"


typedef enum {
    NGX_HTTP_MCP_WAIT_PROFILE = 0,  /* what an upstream is and can */
    NGX_HTTP_MCP_WAIT_SESSION,      /* a session at an upstream */
    NGX_HTTP_MCP_WAIT_SUBSCRIPTION,
    NGX_HTTP_MCP_WAIT_LIST,
    NGX_HTTP_MCP_WAIT_STREAM,       /* a reader's, to be connected */
    NGX_HTTP_MCP_WAIT_KINDS
} ngx_http_mcp_waiter_e;


typedef struct {
    /* in; it is the caller's memory, and zero else */

    /*
     * There may be what it waits for.  It waits no more, unless it calls
     * ngx_http_mcp_waiter_restart(); memory of the waiter may go.
     */
    void                    (*ready)(void *data);

    /* the time is over; likewise */
    void                    (*late)(void *data);
    void                     *data;
    uint32_t                  hash;          /* of what is waited for */
    unsigned                  cancelable:1;  /* a worker may exit meanwhile */

    /* private */
    ngx_queue_t               queue;         /* linked while it waits */
    ngx_mcp_zone_t           *zone;
    ngx_uint_t                kind;
    ngx_msec_t                end;
    ngx_event_t               timer;
    unsigned                  timed:1;
} ngx_http_mcp_waiter_t;


/* for at most so many milliseconds; 0: for ever */
void ngx_http_mcp_waiter_start(ngx_http_mcp_waiter_t *w, ngx_mcp_zone_t *zone,
    ngx_uint_t kind, ngx_msec_t time);

/* from ready(): until the end that was set before */
void ngx_http_mcp_waiter_restart(ngx_http_mcp_waiter_t *w);

/* nothing is called any more; safe for one that does not wait */
void ngx_http_mcp_waiter_stop(ngx_http_mcp_waiter_t *w);

/* all of this kind with one of these keys; ready() of each is called */
void ngx_http_mcp_waiter_wake(ngx_mcp_zone_t *zone, ngx_uint_t kind,
    uint64_t keys);

/* whether any of this kind waits */
ngx_uint_t ngx_http_mcp_waiter_any(ngx_mcp_zone_t *zone, ngx_uint_t kind);

#define ngx_http_mcp_waiter_waiting(w)  ((w)->queue.next != NULL)


#endif /* _NGX_HTTP_MCP_WAITER_H_INCLUDED_ */
