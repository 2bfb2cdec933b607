
/*
 * A worker of the zone.  It claims a slot and opens a doorbell; when it was
 * rung, and every second, it handles what waits in its slot (schema->task(),
 * news(), rung(), lease(), sweep(), due()).
 *
 * A slot whose process is gone is reaped by the process that notices (after a
 * refused datagram, with the sweep of each second, or when it starts).  It
 * looks for the records of the dead worker without the lock (schema->owned()),
 * gives them up a few at a time (schema->reap_locked()), and frees what that
 * worker had staged.
 */

#ifndef _NGX_MCP_WORKER_H_INCLUDED_
#define _NGX_MCP_WORKER_H_INCLUDED_


#include "ngx_mcp_zone.h"


/*
 * Claims a slot for this process and starts listening; called from
 * init_process for each zone, in workers and single processes only.  As long
 * as there is no slot, zone->worker is NGX_MCP_NO_WORKER, and each second it
 * is tried again; NGX_ERROR: no memory.  At a graceful quit, "quit" is called,
 * once, and the worker goes on until ngx_mcp_worker_leave().
 */
ngx_int_t ngx_mcp_worker_join(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle,
    ngx_mcp_worker_handlers_t *handlers, void (*quit)(ngx_mcp_zone_t *zone));

/* gives the slot back; called from exit_process */
void ngx_mcp_worker_leave(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_WORKER_H_INCLUDED_ */
