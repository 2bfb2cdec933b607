
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A worker of the zone.  It claims a slot and opens a doorbell.  When the bell
 * was rung, and every second, the worker does the work that waits in its slot
 * (schema->task(), news(), rung(), lease(), sweep(), due()).
 *
 * If the process of a slot is gone, the first process that notices reaps the
 * slot: after a refused datagram, in the sweep of each second, or when it
 * starts.  That process searches records of the dead worker without the lock
 * (schema->owned()), gives them up a few at a time (schema->reap_locked()),
 * and frees the blocks that the dead worker had staged.
 */

#ifndef _NGX_MCP_WORKER_H_INCLUDED_
#define _NGX_MCP_WORKER_H_INCLUDED_


#include "ngx_mcp_zone.h"


/*
 * Claims a slot for this process and opens its doorbell.  Called from
 * init_process for each zone, in workers and single processes only.  If there
 * is no free slot, zone->worker is NGX_MCP_NO_WORKER, and the claim is tried
 * again each second.  At a graceful quit, "quit" is called once, and the
 * worker goes on until ngx_mcp_worker_leave().  NGX_OK or NGX_ERROR (no
 * memory).
 */
ngx_int_t ngx_mcp_worker_join(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle,
    ngx_mcp_worker_handlers_t *handlers, void (*quit)(ngx_mcp_zone_t *zone));

/* gives the slot back; called from exit_process */
void ngx_mcp_worker_leave(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_WORKER_H_INCLUDED_ */
