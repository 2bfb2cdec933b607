
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A waiter waits until another worker, or another request of this worker, puts
 * something into the zone.  The other side then rings the doorbell with a key
 * (NGX_MCP_RING_KEY()), and all waiters for this kind and key are called.
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
    /* in; the caller allocates the structure, with all other members zero */

    /*
     * The thing may be in the zone now.  The waiter has stopped, unless ready()
     * calls ngx_http_mcp_waiter_restart(); ready() may free the waiter.
     */
    void                    (*ready)(void *data);

    /*
     * The time is over, and the waiter has stopped; late() may free it.  May be
     * NULL if the time is not limited.
     */
    void                    (*late)(void *data);
    void                     *data;
    uint32_t                  hash;          /* hash of the thing */
    unsigned                  cancelable:1;  /* a worker that quits does not
                                                wait for the timer */

    /* private */
    ngx_queue_t               queue;         /* linked while it waits */
    ngx_mcp_zone_t           *zone;
    ngx_uint_t                kind;
    ngx_msec_t                end;           /* time at which late() is called,
                                                if timed is set */
    ngx_event_t               timer;
    unsigned                  timed:1;       /* the time is limited */
} ngx_http_mcp_waiter_t;


/* makes the queues of a worker that starts; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_waiter_init(ngx_mcp_zone_t *zone);

/* starts to wait, for at most this time, ms; 0: without limit */
void ngx_http_mcp_waiter_start(ngx_http_mcp_waiter_t *w, ngx_mcp_zone_t *zone,
    ngx_uint_t kind, ngx_msec_t time);

/* waits again, until the end that was set before; for ready() */
void ngx_http_mcp_waiter_restart(ngx_http_mcp_waiter_t *w);

/*
 * Stops waiting: neither ready() nor late() will be called.  May be called for
 * any waiter, even if it does not wait.
 */
void ngx_http_mcp_waiter_stop(ngx_http_mcp_waiter_t *w);

/* calls ready() of all waiters for this kind with one of these keys */
void ngx_http_mcp_waiter_wake(ngx_mcp_zone_t *zone, ngx_uint_t kind,
    uint64_t keys);

/* whether there is a waiter of this worker for this kind */
ngx_uint_t ngx_http_mcp_waiter_any(ngx_mcp_zone_t *zone, ngx_uint_t kind);

#define ngx_http_mcp_waiter_waiting(w)  ((w)->queue.next != NULL)


#endif /* _NGX_HTTP_MCP_WAITER_H_INCLUDED_ */
