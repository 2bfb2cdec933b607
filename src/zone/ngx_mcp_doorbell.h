
/*
 * Workers and how they wake each other.  A worker claims a slot in the zone,
 * binds one AF_UNIX datagram socket to an abstract random name and puts the
 * name there.  Whoever leaves work for another worker in the zone sends it an
 * empty datagram, unless one is already under way; the datagram says nothing,
 * all meaning is in the zone.  It works between workers of different
 * configuration generations, both ways.
 *
 * A slot whose process is gone is reaped by whoever notices (a refused
 * datagram, the sweep of a second, a worker that starts): its streams are
 * closed, its running calls with a line get -32603 "worker died, the call may
 * have run", its claims on links and knowledge are given up, what it had
 * staged is freed.
 */

#ifndef _NGX_MCP_DOORBELL_H_INCLUDED_
#define _NGX_MCP_DOORBELL_H_INCLUDED_


#include "ngx_mcp_zone.h"


/*
 * Claims a slot for this process and starts listening; called from
 * init_process for each zone, in workers and single processes only.  As long
 * as there is no slot, zone->worker is NGX_MCP_NO_WORKER, and each second it
 * is tried again; NGX_ERROR: no memory.  The
 * connection of the bell is idle, so that nginx closes it first at a graceful
 * quit: "quit" is then called, once, and the bell keeps ringing until
 * ngx_mcp_worker_leave().
 */
ngx_int_t ngx_mcp_worker_join(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle,
    ngx_mcp_worker_handlers_t *handlers, void (*quit)(ngx_mcp_zone_t *zone));

/* gives the slot back; called from exit_process */
void ngx_mcp_worker_leave(ngx_mcp_zone_t *zone);

/*
 * Leaves work for a worker / for all; the bell itself is rung by
 * ngx_mcp_zone_unlock() after the lock is gone.
 */
void ngx_mcp_worker_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker);
void ngx_mcp_worker_ring_all_locked(ngx_mcp_zone_t *zone, ngx_uint_t bits);

/* rings what was asked for while the lock was held */
void ngx_mcp_worker_ring_out(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_DOORBELL_H_INCLUDED_ */
