
/*
 * Doorbells.  A worker binds one AF_UNIX datagram socket to an abstract random
 * name, which its slot has.  A process that leaves work for another worker in
 * the zone sends it an empty datagram, after it has released the lock and
 * unless one is already under way.  The datagram is empty, as the zone has the
 * work. It works between workers of different configuration generations, both
 * ways.
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
    ngx_event_t             drain;        /* handles the work in the slot */
    ngx_event_t             sweep;
    ngx_event_t             due;
    ngx_event_t             reap;         /* gives up a part of a dead worker */
    void                  (*quitting)(ngx_mcp_doorbell_t *bell);
    void                  (*quit)(ngx_mcp_zone_t *zone);
    u_char                  name[NGX_MCP_NAME_LEN];
    unsigned                reported:1;   /* that there is no place */
};


/*
 * Opens the socket, draws its name, and listens.  Its connection is idle, so
 * that nginx closes it first at a graceful quit: bell->quitting() is called
 * then, and the bell keeps ringing.  NGX_ERROR is logged.
 */
ngx_int_t ngx_mcp_doorbell_open(ngx_mcp_doorbell_t *bell);

/* NGX_DECLINED: nobody has this bell */
ngx_int_t ngx_mcp_doorbell_ring(ngx_mcp_zone_t *zone, ngx_uint_t worker);

/* has schema->due() called then */
void ngx_mcp_doorbell_due(ngx_mcp_zone_t *zone, ngx_msec_t delay);

/*
 * Leaves bits for a worker, or for all; the bell itself is rung when the lock
 * is released.  NGX_MCP_NO_WORKER is no worker.  keys: of what has changed,
 * so that the worker looks at nothing else; without them at anything.
 */
void ngx_mcp_worker_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    ngx_uint_t bits);
void ngx_mcp_worker_ring_keys_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    ngx_uint_t bits, uint64_t keys);
void ngx_mcp_worker_ring_all_locked(ngx_mcp_zone_t *zone, ngx_uint_t bits);
void ngx_mcp_worker_ring_all_keys_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t bits, uint64_t keys);

/* sends the bells that were requested while the lock was held */
void ngx_mcp_worker_ring_out(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_DOORBELL_H_INCLUDED_ */
