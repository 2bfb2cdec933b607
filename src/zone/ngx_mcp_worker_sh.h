
/*
 * The slots of workers: what waits in them, and what happens when one dies.
 *
 * A task (ngx_mcp_task_sh_t) waits in the slot of its worker, once, with the
 * reasons for which it is looked at.  A record that many workers read has a
 * set of those who watch it, of NGX_MCP_WATCH_BITS bits.  Everything else that
 * a worker has to look at is a bit.
 */

#ifndef _NGX_MCP_WORKER_SH_H_INCLUDED_
#define _NGX_MCP_WORKER_SH_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_worker.h"
#include "ngx_mcp_doorbell.h"


void ngx_mcp_wake_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task,
    ngx_uint_t why);
void ngx_mcp_wake_cancel_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task);

/* this worker is told of the next news */
void ngx_mcp_watch_locked(ngx_mcp_zone_t *zone, uint64_t *watch);
void ngx_mcp_unwatch_locked(ngx_mcp_zone_t *zone, uint64_t *watch);

/* tells the workers that watch block n; 0: all that they watch */
void ngx_mcp_watch_ring_locked(ngx_mcp_zone_t *zone, uint64_t *watch,
    uint32_t n);

/* NGX_OK: zone->worker is set; NGX_DECLINED: there is no slot */
ngx_int_t ngx_mcp_worker_claim(ngx_mcp_zone_t *zone, u_char *name);
void ngx_mcp_worker_release(ngx_mcp_zone_t *zone);

/* it was told to quit */
void ngx_mcp_worker_quit(ngx_mcp_zone_t *zone);

/* handles what waits for this worker; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_worker_drain(ngx_mcp_zone_t *zone);

/* does the work due every second; NGX_AGAIN: call again soon */
ngx_int_t ngx_mcp_worker_sweep(ngx_mcp_zone_t *zone);

/* gives up what a worker that is gone had; nothing if nonce is another one's */
void ngx_mcp_worker_reap(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    uint32_t nonce);


#endif /* _NGX_MCP_WORKER_SH_H_INCLUDED_ */
