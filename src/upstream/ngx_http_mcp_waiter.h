
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A waiter waits until another worker, or another request of this one, puts
 * something into the zone.  That one then rings the doorbell with a key
 * (NGX_MCP_RING_KEY()), and all waiters for this kind and key look again.
 */

#ifndef _NGX_HTTP_MCP_WAITER_H_INCLUDED_
#define _NGX_HTTP_MCP_WAITER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include "ngx_mcp_schema.h"


/* kinds of things to wait for */

typedef enum {
    NGX_HTTP_MCP_WAIT_PROFILE = 0,  /* the profile of an upstream */
    NGX_HTTP_MCP_WAIT_SESSION,      /* an upstream session */
    NGX_HTTP_MCP_WAIT_SUBSCRIPTION,
    NGX_HTTP_MCP_WAIT_LIST,
    NGX_HTTP_MCP_WAIT_STREAM,       /* an open stream of a reader */
    NGX_HTTP_MCP_WAIT_KINDS
} ngx_http_mcp_waiter_e;


typedef struct {
    /* in: the structure is the caller's memory, all other members are zero */

    /*
     * The thing may be there now.  The waiter waits no longer, unless ready()
     * calls ngx_http_mcp_waiter_restart(); ready() may free the waiter.
     */
    void                    (*ready)(void *data);

    /*
     * The time is over, and the waiter waits no longer; late() may free it.
     * NULL is allowed if the time is not limited.
     */
    void                    (*late)(void *data);
    void                     *data;
    uint32_t                  hash;          /* hash of the thing */
    unsigned                  cancelable:1;  /* does not keep a worker that
                                                quits */

    /* private */
    ngx_queue_t               queue;         /* linked while it waits */
    ngx_mcp_zone_t           *zone;
    ngx_uint_t                kind;
    ngx_msec_t                end;
    ngx_event_t               timer;
    unsigned                  timed:1;
} ngx_http_mcp_waiter_t;


/* makes the queues of a worker that starts; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_waiter_init(ngx_mcp_zone_t *zone);

/* starts to wait, for at most this time, ms; 0: without limit */
void ngx_http_mcp_waiter_start(ngx_http_mcp_waiter_t *w, ngx_mcp_zone_t *zone,
    ngx_uint_t kind, ngx_msec_t time);

/* waits again, until the end that was set before; for ready() */
void ngx_http_mcp_waiter_restart(ngx_http_mcp_waiter_t *w);

/* stops waiting; neither ready() nor late() is called; may be called always */
void ngx_http_mcp_waiter_stop(ngx_http_mcp_waiter_t *w);

/* calls ready() of all waiters for this kind with one of these keys */
void ngx_http_mcp_waiter_wake(ngx_mcp_zone_t *zone, ngx_uint_t kind,
    uint64_t keys);

/* whether there is a waiter of this worker for this kind */
ngx_uint_t ngx_http_mcp_waiter_any(ngx_mcp_zone_t *zone, ngx_uint_t kind);

#define ngx_http_mcp_waiter_waiting(w)  ((w)->queue.next != NULL)


#endif /* _NGX_HTTP_MCP_WAITER_H_INCLUDED_ */
