
/*
 * Work waits in the slots of workers, and is given up when a worker dies.
 *
 * A task (ngx_mcp_task_sh_t) waits in the slot of its worker, once, with the
 * reasons to handle it.  A record that many workers read has a set of its
 * watchers, of NGX_MCP_WATCH_BITS bits.  All other work is a bit.
 */

#ifndef _NGX_MCP_WORKER_SH_H_INCLUDED_
#define _NGX_MCP_WORKER_SH_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_worker.h"
#include "ngx_mcp_doorbell.h"


void ngx_mcp_wake_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task,
    ngx_uint_t reasons);
void ngx_mcp_wake_cancel_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task);

/* this worker is woken by the next change */
void ngx_mcp_watch_locked(ngx_mcp_zone_t *zone, uint64_t *watch);
void ngx_mcp_unwatch_locked(ngx_mcp_zone_t *zone, uint64_t *watch);

/*
 * Wakes the workers that watch block n (0: all that they watch), of each 64
 * places only some.
 */
#define NGX_MCP_WATCH_ALL  ((uint64_t) -1)

void ngx_mcp_watch_ring_locked(ngx_mcp_zone_t *zone, uint64_t *watch,
    uint32_t n, uint64_t some);

/* NGX_OK: zone->worker is set; NGX_DECLINED: there is no slot */
ngx_int_t ngx_mcp_worker_claim(ngx_mcp_zone_t *zone, u_char *name);
void ngx_mcp_worker_release(ngx_mcp_zone_t *zone);

/* nginx asked this worker to quit */
void ngx_mcp_worker_quit(ngx_mcp_zone_t *zone);

/* handles what waits for this worker; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_worker_drain(ngx_mcp_zone_t *zone);

/* does the work due every second; NGX_AGAIN: call again soon */
ngx_int_t ngx_mcp_worker_sweep(ngx_mcp_zone_t *zone);

/* gives up the records of a dead worker; nothing if the nonce is not its own */
void ngx_mcp_worker_reap(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    uint32_t nonce);


#endif /* _NGX_MCP_WORKER_SH_H_INCLUDED_ */
