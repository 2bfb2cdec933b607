
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Work that waits in the slots of workers.
 *
 * There are three kinds.  A task (ngx_mcp_task_sh_t) waits once in the slot of
 * its worker, with the reasons to handle it.  A record that many workers read
 * has a watch: the set of workers to be woken, of NGX_MCP_WATCH_BITS bits.
 * All other work is a bit in the slot.
 */

#ifndef _NGX_MCP_WORKER_SH_H_INCLUDED_
#define _NGX_MCP_WORKER_SH_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_worker.h"
#include "ngx_mcp_doorbell.h"


/* adds reasons to a task and wakes its worker; cancels a waiting task */
void ngx_mcp_wake_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task,
    ngx_uint_t reasons);
void ngx_mcp_wake_cancel_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task);

/* adds this worker to a watch, or removes it from there */
void ngx_mcp_watch_locked(ngx_mcp_zone_t *zone, uint64_t *watch);
void ngx_mcp_unwatch_locked(ngx_mcp_zone_t *zone, uint64_t *watch);

/*
 * Wakes the workers in a watch because the record in block n has news (n 0: any
 * record that they watch may have some).  some: a mask that is applied to each
 * 64 bits of the watch.
 */
#define NGX_MCP_WATCH_ALL  ((uint64_t) -1)

void ngx_mcp_watch_ring_locked(ngx_mcp_zone_t *zone, uint64_t *watch,
    uint32_t n, uint64_t some);

/*
 * Claims a slot for a worker whose doorbell has this name.  NGX_OK:
 * zone->worker is set; NGX_DECLINED: there is no free slot.
 */
ngx_int_t ngx_mcp_worker_claim(ngx_mcp_zone_t *zone, u_char *name);
void ngx_mcp_worker_release(ngx_mcp_zone_t *zone);

/* marks this worker as quitting; called when nginx asked it to quit */
void ngx_mcp_worker_quit(ngx_mcp_zone_t *zone);

/* does the work in this worker's slot; NGX_OK; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_worker_drain(ngx_mcp_zone_t *zone);

/* does the work of every second; NGX_OK; NGX_AGAIN: call again soon */
ngx_int_t ngx_mcp_worker_sweep(ngx_mcp_zone_t *zone);

/*
 * Reaps a dead worker; does nothing if the slot has another nonce, because
 * another process has claimed it since.
 */
void ngx_mcp_worker_reap(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    uint32_t nonce);


#endif /* _NGX_MCP_WORKER_SH_H_INCLUDED_ */
