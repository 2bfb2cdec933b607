
/*
 * Workers and how they wake each other.  A worker claims a slot in the zone,
 * binds one AF_UNIX datagram socket to an abstract random name and puts the
 * name there.  Whoever leaves work for another worker in the zone sends it an
 * empty datagram, unless one is already under way; the datagram says nothing,
 * all meaning is in the zone.  It works between workers of different
 * configuration generations, both ways.
 *
 * A slot whose process is gone is reaped by whoever notices (a refused
 * datagram, the sweep of a second, a worker that starts): what it had is given
 * up by schema->reap_locked(), what it had staged is freed.
 */

#ifndef _NGX_MCP_DOORBELL_H_INCLUDED_
#define _NGX_MCP_DOORBELL_H_INCLUDED_


#include "ngx_mcp_zone.h"


/*
 * Claims a slot for this process and starts listening; called from
 * init_process for each zone, in workers and single processes only.  As long
 * as there is no slot, zone->worker is NGX_MCP_NO_WORKER, and each second it
 * is tried again; NGX_ERROR: no memory.  The connection of the bell is idle,
 * so that nginx closes it first at a graceful quit: "quit" is then called,
 * once, and the bell keeps ringing until ngx_mcp_worker_leave().
 */
ngx_int_t ngx_mcp_worker_join(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle,
    ngx_mcp_worker_handlers_t *handlers, void (*quit)(ngx_mcp_zone_t *zone));

/* gives the slot back; called from exit_process */
void ngx_mcp_worker_leave(ngx_mcp_zone_t *zone);

/* NGX_DECLINED: nobody has this bell */
ngx_int_t ngx_mcp_doorbell_ring(ngx_mcp_zone_t *zone, ngx_uint_t worker);

/* has ngx_mcp_worker_sweep() called soon */
void ngx_mcp_doorbell_sweep(ngx_mcp_zone_t *zone);

/* has schema->due() called then */
void ngx_mcp_doorbell_due(ngx_mcp_zone_t *zone, ngx_msec_t delay);


#endif /* _NGX_MCP_DOORBELL_H_INCLUDED_ */
