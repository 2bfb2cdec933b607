
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Doorbells.  A worker binds an AF_UNIX datagram socket to a random abstract
 * name and puts the name into its slot.  A process that notes work for another
 * worker in the zone rings the bell of that worker: after it has released the
 * lock it sends a datagram, unless one is under way already.  The datagram is
 * empty, as the work is noted in the zone.  Workers of different configuration
 * generations can ring each other.
 */

#ifndef _NGX_MCP_DOORBELL_H_INCLUDED_
#define _NGX_MCP_DOORBELL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include "ngx_mcp_zone_sh.h"


typedef struct ngx_mcp_doorbell_s  ngx_mcp_doorbell_t;

struct ngx_mcp_doorbell_s {
    ngx_mcp_zone_t         *zone;
    ngx_connection_t       *connection;
    ngx_cycle_t            *cycle;
    ngx_event_t             drain;        /* does the work in the slot */
    ngx_event_t             sweep;        /* timer, fires every second */
    ngx_event_t             due;          /* timer that calls schema->due() */
    ngx_event_t             reap;         /* reaps a dead worker, in parts */

    /* called when nginx asks the worker to quit gracefully */
    void                  (*quitting)(ngx_mcp_doorbell_t *bell);

    /* the function that was given to ngx_mcp_worker_join() */
    void                  (*quit)(ngx_mcp_zone_t *zone);

    u_char                  name[NGX_MCP_NAME_LEN];  /* random bytes of the
                                                        socket's name */
    unsigned                reported:1;   /* the lack of a free slot was
                                             logged */
};


/*
 * Opens the socket under a new random name and reads from it.  The connection
 * is idle for nginx, so that nginx closes it first at a graceful quit;
 * bell->quitting() is called then, and the bell can still be rung.  NGX_OK or
 * NGX_ERROR (logged).
 */
ngx_int_t ngx_mcp_doorbell_open(ngx_mcp_doorbell_t *bell);

/*
 * Rings the bell of a worker: sends the datagram or, for this worker itself,
 * posts an event.  NGX_OK; NGX_DECLINED: no process has this bell; NGX_ERROR
 * (logged).
 */
ngx_int_t ngx_mcp_doorbell_ring(ngx_mcp_zone_t *zone, ngx_uint_t worker);

/* has schema->due() called after this delay, in ms */
void ngx_mcp_doorbell_due(ngx_mcp_zone_t *zone, ngx_msec_t delay);

/*
 * Set bits (NGX_MCP_RING_*) in the slot of a worker, or in all slots; the bells
 * are rung when the lock is released.  For NGX_MCP_NO_WORKER nothing is done.
 * keys: the NGX_MCP_RING_KEY() of all things that changed, as the worker
 * examines only these; functions without keys make it examine everything.
 */
void ngx_mcp_worker_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    ngx_uint_t bits);
void ngx_mcp_worker_ring_keys_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    ngx_uint_t bits, uint64_t keys);
void ngx_mcp_worker_ring_all_locked(ngx_mcp_zone_t *zone, ngx_uint_t bits);
void ngx_mcp_worker_ring_all_keys_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t bits, uint64_t keys);

/* rings the bells that are due since the lock was held; called without it */
void ngx_mcp_worker_ring_out(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_DOORBELL_H_INCLUDED_ */
