
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_worker_sh.h"
#include "ngx_mcp_lease_sh.h"


/* most tasks handled under one hold of the lock */
#define NGX_MCP_DRAIN_TASKS      64

/*
 * When a dead worker is reaped: most blocks examined in one turn, and most
 * records given up under one hold of the lock.
 */
#define NGX_MCP_REAP_BLOCKS      8192
#define NGX_MCP_REAP_BATCH       8

/*
 * ms without a heartbeat, which is written every second: after LATE, other
 * workers test whether the worker's process exists; after GONE, also whether
 * its socket accepts a datagram.
 */
#define NGX_MCP_HEARTBEAT_LATE   2500
#define NGX_MCP_HEARTBEAT_GONE   10000


typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                local;
    uint32_t                reasons;
    ngx_uint_t              type;
} ngx_mcp_job_t;


static void ngx_mcp_worker_enter(ngx_mcp_doorbell_t *bell);
static void ngx_mcp_worker_quitting(ngx_mcp_doorbell_t *bell);
static void ngx_mcp_worker_drain_handler(ngx_event_t *ev);
static void ngx_mcp_worker_sweep_handler(ngx_event_t *ev);
static void ngx_mcp_worker_due_handler(ngx_event_t *ev);
static void ngx_mcp_worker_reap_handler(ngx_event_t *ev);
static void ngx_mcp_watcher_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t bit,
    uint32_t n);
static void ngx_mcp_worker_news(ngx_mcp_zone_t *zone, uint32_t n);
static ngx_uint_t ngx_mcp_worker_gone(ngx_mcp_zone_t *zone, ngx_uint_t n);
static ngx_int_t ngx_mcp_worker_dead(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    uint32_t nonce);
static ngx_int_t ngx_mcp_worker_reap_dead(ngx_mcp_zone_t *zone);
static void ngx_mcp_reap_begin(ngx_mcp_zone_t *zone, ngx_mcp_reap_t *reap,
    ngx_uint_t worker, uint32_t nonce);
static ngx_int_t ngx_mcp_reap_next(ngx_mcp_zone_t *zone, ngx_mcp_reap_t *reap);
static ngx_uint_t ngx_mcp_reap_owned(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_mcp_reap_t *reap);
static void ngx_mcp_reap_block_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_mcp_reap_t *reap);
static void ngx_mcp_reap_free_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_worker_sh_t *w);


ngx_int_t
ngx_mcp_worker_join(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle,
    ngx_mcp_worker_handlers_t *handlers, void (*quit)(ngx_mcp_zone_t *zone))
{
    ngx_mcp_doorbell_t  *bell;

    bell = ngx_pcalloc(cycle->pool, sizeof(ngx_mcp_doorbell_t));
    if (bell == NULL) {
        return NGX_ERROR;
    }

    bell->zone = zone;
    bell->cycle = cycle;
    bell->quit = quit;
    bell->quitting = ngx_mcp_worker_quitting;

    bell->drain.handler = ngx_mcp_worker_drain_handler;
    bell->drain.data = bell;
    bell->drain.log = cycle->log;

    bell->sweep.handler = ngx_mcp_worker_sweep_handler;
    bell->sweep.data = bell;
    bell->sweep.log = cycle->log;
    bell->sweep.cancelable = 1;

    bell->due.handler = ngx_mcp_worker_due_handler;
    bell->due.data = bell;
    bell->due.log = cycle->log;
    bell->due.cancelable = 1;

    bell->reap.handler = ngx_mcp_worker_reap_handler;
    bell->reap.data = bell;
    bell->reap.log = cycle->log;

    zone->log = cycle->log;
    zone->handlers = handlers;
    zone->doorbell = bell;

    ngx_mcp_worker_enter(bell);

    ngx_add_timer(&bell->sweep, 1000);

    return NGX_OK;
}


/*
 * Claims a slot.  If none is free, the worker tries again with each sweep.  It
 * does not exit, as nginx would start no new worker in its place.
 */

static void
ngx_mcp_worker_enter(ngx_mcp_doorbell_t *bell)
{
    ngx_mcp_zone_t  *zone;

    zone = bell->zone;

    if (bell->connection == NULL && ngx_mcp_doorbell_open(bell) != NGX_OK) {
        return;
    }

    if (ngx_mcp_worker_claim(zone, bell->name) != NGX_OK) {

        if (!bell->reported) {
            ngx_log_error(NGX_LOG_ERR, bell->cycle->log, 0,
                          "mcp zone \"%V\" serves its maximum number of "
                          "workers, so this worker answers 503 until workers "
                          "of earlier configurations exit; give \"mcp_zone\" "
                          "a larger size, or set \"worker_shutdown_timeout\"",
                          &zone->name);
            bell->reported = 1;
        }

        return;
    }

    if (bell->reported) {
        ngx_log_error(NGX_LOG_NOTICE, bell->cycle->log, 0,
                      "mcp zone \"%V\" now serves this worker",
                      &zone->name);
        bell->reported = 0;
    }

    /* an event posted for this turn would wait until something else happens */

    ngx_post_event(&bell->drain, &ngx_posted_next_events);
}


void
ngx_mcp_worker_leave(ngx_mcp_zone_t *zone)
{
    ngx_mcp_doorbell_t  *bell;

    bell = zone->doorbell;

    if (bell == NULL) {
        return;
    }

    ngx_mcp_worker_release(zone);

    zone->doorbell = NULL;

    if (bell->drain.posted) {
        ngx_delete_posted_event(&bell->drain);
    }

    if (bell->reap.posted) {
        ngx_delete_posted_event(&bell->reap);
    }

    if (bell->sweep.timer_set) {
        ngx_del_timer(&bell->sweep);
    }

    if (bell->due.timer_set) {
        ngx_del_timer(&bell->due);
    }

    if (bell->connection) {
        ngx_close_connection(bell->connection);
    }
}


static void
ngx_mcp_worker_quitting(ngx_mcp_doorbell_t *bell)
{
    void  (*quit)(ngx_mcp_zone_t *zone);

    quit = bell->quit;
    bell->quit = NULL;

    if (quit) {
        ngx_mcp_worker_quit(bell->zone);
        quit(bell->zone);
    }
}


static void
ngx_mcp_worker_drain_handler(ngx_event_t *ev)
{
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    if (ngx_mcp_worker_drain(bell->zone) == NGX_AGAIN) {
        ngx_post_event(&bell->drain, &ngx_posted_next_events);
    }
}


static void
ngx_mcp_worker_sweep_handler(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_msec_t           next;
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    if (bell->zone->worker == NGX_MCP_NO_WORKER) {
        ngx_mcp_worker_enter(bell);
    }

    rc = ngx_mcp_worker_sweep(bell->zone);

    if (bell->zone->reap.from) {
        ngx_post_event(&bell->reap, &ngx_posted_next_events);
    }

    /* a worker that died may have left work that is due */

    if (bell->zone->schema->due(bell->zone, &next) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    /* a worker may have died after it noted work and before it rang the bell */

    if (ngx_mcp_worker_drain(bell->zone) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    ngx_add_timer(&bell->sweep, rc == NGX_AGAIN ? 10 : 1000);
}


static void
ngx_mcp_worker_due_handler(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_msec_t           next;
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    rc = bell->zone->schema->due(bell->zone, &next);

    if (rc == NGX_AGAIN || next) {
        ngx_mcp_doorbell_due(bell->zone,
                             rc == NGX_AGAIN ? 10 : ngx_max(next, 10));
    }
}


/*
 * Reaps a dead worker, a part in each turn of the event loop, so that clients
 * are served in between.
 */

static void
ngx_mcp_worker_reap_handler(ngx_event_t *ev)
{
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    if (ngx_mcp_worker_reap_dead(bell->zone) == NGX_AGAIN) {
        ngx_post_event(ev, &ngx_posted_next_events);
    }
}


void
ngx_mcp_wake_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task,
    ngx_uint_t reasons)
{
    uint32_t              had;
    ngx_mcp_worker_sh_t  *w;

    had = task->reasons;
    ngx_mcp_touch(zone, &task->reasons);
    task->reasons = had | (uint32_t) reasons;

    if (task->rec.worker >= zone->sh->slots) {
        return;
    }

    w = ngx_mcp_slot(zone, task->rec.worker);

    if (reasons & ~had & NGX_MCP_WAKE_FIRST) {
        ngx_mcp_touch(zone, &w->nfirst);
        w->nfirst++;
    }

    if (had) {
        return;
    }

    ngx_mcp_list_append(zone, &w->pending, ngx_mcp_number(zone, task),
                        offsetof(ngx_mcp_task_sh_t, pending));

    ngx_mcp_worker_ring_locked(zone, task->rec.worker, 0);
}


void
ngx_mcp_wake_cancel_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task)
{
    uint32_t              had;
    ngx_mcp_worker_sh_t  *w;

    had = task->reasons;

    if (had == 0) {
        return;
    }

    ngx_mcp_touch(zone, &task->reasons);
    task->reasons = 0;

    if (task->rec.worker >= zone->sh->slots) {
        return;
    }

    w = ngx_mcp_slot(zone, task->rec.worker);

    if (had & NGX_MCP_WAKE_FIRST) {
        ngx_mcp_touch(zone, &w->nfirst);
        w->nfirst--;
    }

    ngx_mcp_list_remove(zone, &w->pending, ngx_mcp_number(zone, task),
                        offsetof(ngx_mcp_task_sh_t, pending));
}


/*
 * Wakes the workers whose bits are in the watch, and clears these bits: a
 * worker sets its bit again when it has read all.
 */

void
ngx_mcp_watch_ring_locked(ngx_mcp_zone_t *zone, uint64_t *watch, uint32_t n,
    uint64_t some)
{
    uint64_t    bits;
    ngx_uint_t  i, k;

    for (i = 0; i < NGX_MCP_WATCH_BITS / 64; i++) {
        bits = watch[i] & some;

        if (bits == 0) {
            continue;
        }

        ngx_mcp_touch(zone, &watch[i]);
        watch[i] &= ~bits;

        for (k = i * 64; bits; k++, bits >>= 1) {

            if (bits & 1) {
                ngx_mcp_watcher_ring_locked(zone, k, n);
            }
        }
    }
}


/*
 * Wakes the workers that have this bit.  Several workers may share a bit: those
 * that do not watch the record are woken in vain.
 */

static void
ngx_mcp_watcher_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t bit, uint32_t n)
{
    ngx_uint_t            i;
    ngx_mcp_worker_sh_t  *w;

    for (i = bit; i < zone->sh->top; i += NGX_MCP_WATCH_BITS) {
        w = ngx_mcp_slot(zone, i);

        if (w->state != NGX_MCP_WORKER_LIVE) {
            continue;
        }

        if (w->nring < NGX_MCP_RING) {
            w->ring[w->nring++] = n;

        } else {
            w->overflow = 1;
        }

        ngx_mcp_worker_ring_locked(zone, i, 0);
    }
}


void
ngx_mcp_watch_locked(ngx_mcp_zone_t *zone, uint64_t *watch)
{
    ngx_uint_t  bit;

    if (zone->worker != NGX_MCP_NO_WORKER) {
        bit = zone->worker % NGX_MCP_WATCH_BITS;
        ngx_mcp_touch(zone, &watch[bit / 64]);
        watch[bit / 64] |= 1ULL << (bit % 64);
    }
}


/* a bit that other workers may share stays until the next event */

void
ngx_mcp_unwatch_locked(ngx_mcp_zone_t *zone, uint64_t *watch)
{
    ngx_uint_t  bit;

    if (zone->worker != NGX_MCP_NO_WORKER
        && zone->sh->top <= NGX_MCP_WATCH_BITS)
    {
        bit = zone->worker;
        ngx_mcp_touch(zone, &watch[bit / 64]);
        watch[bit / 64] &= ~(1ULL << (bit % 64));
    }
}


ngx_int_t
ngx_mcp_worker_claim(ngx_mcp_zone_t *zone, u_char *name)
{
    uint32_t              nonce;
    ngx_int_t             rc;
    ngx_uint_t            i;
    ngx_mcp_worker_sh_t  *w;

    /* the slots of workers that have died become free first */

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_slot(zone, i);
        nonce = w->nonce;
        ngx_mcp_barrier();

        if (w->state == NGX_MCP_WORKER_DEAD || ngx_mcp_worker_gone(zone, i)) {
            ngx_mcp_worker_reap(zone, i, nonce);
        }
    }

    ngx_mcp_zone_lock(zone);

    for (i = 0; i < zone->sh->top; i++) {
        if (ngx_mcp_slot(zone, i)->state == NGX_MCP_WORKER_FREE) {
            break;
        }
    }

    if (i < zone->sh->slots
        || i < ngx_mcp_slots_grow_locked(zone, i + NGX_MCP_SLOTS_STEP))
    {
        rc = NGX_OK;
        w = ngx_mcp_slot(zone, i);

        ngx_mcp_touch(zone, w);
        ngx_memzero(w, sizeof(ngx_mcp_worker_sh_t));

        w->nonce = ++zone->sh->nonces;
        w->pid = ngx_pid;
        w->epoch = zone->epoch;
        w->heartbeat = ngx_current_msec;
        w->bits = NGX_MCP_RING_LEASES;
        ngx_memcpy(w->name, name, NGX_MCP_NAME_LEN);

        zone->sh->top = ngx_max(zone->sh->top, (uint32_t) i + 1);
        w->state = NGX_MCP_WORKER_LIVE;

        zone->worker = i;

    } else {
        rc = NGX_DECLINED;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_worker_quit(ngx_mcp_zone_t *zone)
{
    ngx_mcp_worker_sh_t  *w;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return;
    }

    ngx_mcp_zone_lock(zone);

    w = ngx_mcp_slot(zone, zone->worker);

    ngx_mcp_touch(zone, &w->quitting);
    w->quitting = 1;

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_worker_release(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  worker;

    worker = zone->worker;

    if (worker == NGX_MCP_NO_WORKER) {
        return;
    }

    zone->worker = NGX_MCP_NO_WORKER;

    ngx_mcp_worker_reap(zone, worker, ngx_mcp_slot(zone, worker)->nonce);
}


ngx_int_t
ngx_mcp_worker_drain(ngx_mcp_zone_t *zone)
{
    uint32_t              n, news[NGX_MCP_RING];
    uint64_t              keys;
    ngx_uint_t            i, njobs, nnews, bits, more;
    ngx_mcp_job_t         jobs[NGX_MCP_DRAIN_TASKS];
    ngx_mcp_task_sh_t    *t;
    ngx_mcp_worker_sh_t  *w;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return NGX_OK;
    }

    w = ngx_mcp_slot(zone, zone->worker);
    njobs = 0;

    ngx_mcp_zone_lock(zone);

    w->rung = 0;

    while (njobs < NGX_MCP_DRAIN_TASKS && (n = w->pending.head) != 0) {
        t = ngx_mcp_block(zone, n);

        jobs[njobs].ref = ngx_mcp_ref(zone, t);
        jobs[njobs].local = t->local;
        jobs[njobs].reasons = t->reasons;
        jobs[njobs].type = t->rec.block.type;
        njobs++;

        ngx_mcp_wake_cancel_locked(zone, t);
    }

    more = (w->pending.head != 0);

    if (w->overflow) {
        news[0] = 0;
        nnews = 1;

    } else {
        nnews = w->nring;
        ngx_memcpy(news, w->ring, nnews * sizeof(uint32_t));
    }

    w->overflow = 0;
    w->nring = 0;

    bits = w->bits;
    keys = w->keys;
    w->bits = 0;
    w->keys = 0;

    ngx_mcp_zone_unlock(zone);

    if (zone->handlers == NULL) {
        return more ? NGX_AGAIN : NGX_OK;
    }

    for (i = 0; i < njobs; i++) {
        zone->schema->task(zone, jobs[i].type, jobs[i].ref, jobs[i].local,
                           jobs[i].reasons);
    }

    for (i = 0; i < nnews; i++) {
        ngx_mcp_worker_news(zone, news[i]);
    }

    if (bits & NGX_MCP_RING_LEASES
        && ngx_mcp_lease_drain(zone) == NGX_AGAIN)
    {
        ngx_mcp_zone_lock(zone);
        w->bits |= NGX_MCP_RING_LEASES;
        ngx_mcp_zone_unlock(zone);

        more = 1;
    }

    if (bits && zone->schema->rung(zone, bits, keys) == NGX_AGAIN) {
        more = 1;
    }

    return more ? NGX_AGAIN : NGX_OK;
}


/* calls schema->news() for the record in block n; 0: for all watched records */

static void
ngx_mcp_worker_news(ngx_mcp_zone_t *zone, uint32_t n)
{
    ngx_mcp_ref_t        ref;
    ngx_mcp_block_sh_t  *block;

    if (n == 0) {
        ngx_memzero(&ref, sizeof(ngx_mcp_ref_t));
        zone->schema->news(zone, NGX_MCP_FREE, ref);
        return;
    }

    block = ngx_mcp_block(zone, n);

    ref.block = n;
    ref.gen = block->gen;

    if (block->type != NGX_MCP_FREE) {
        zone->schema->news(zone, block->type, ref);
    }
}


ngx_int_t
ngx_mcp_worker_sweep(ngx_mcp_zone_t *zone)
{
    uint32_t              nonce;
    ngx_int_t             rc;
    ngx_uint_t            i;
    ngx_mcp_worker_sh_t  *w;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return NGX_OK;
    }

    if (ngx_mcp_zone_late(zone)) {
        zone->resumed = ngx_current_msec;
    }

    ngx_mcp_slot(zone, zone->worker)->heartbeat = ngx_current_msec;

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_slot(zone, i);
        nonce = w->nonce;
        ngx_mcp_barrier();

        if (w->heartbeat + NGX_MCP_HEARTBEAT_LATE < ngx_current_msec
            && ngx_mcp_worker_gone(zone, i))
        {
            (void) ngx_mcp_worker_dead(zone, i, nonce);
        }
    }

    rc = ngx_mcp_worker_reap_dead(zone);

    ngx_mcp_zone_lock(zone);

    /* leases expire by time, without a signal */

    w = ngx_mcp_slot(zone, zone->worker);
    w->lease_seen = 0;
    w->bits |= NGX_MCP_RING_LEASES;

    ngx_mcp_zone_unlock(zone);

    return (zone->schema->sweep(zone) == NGX_AGAIN) ? NGX_AGAIN : rc;
}


/*
 * Returns whether a worker has died.  Another process may have its pid by now,
 * so a worker that was without a heartbeat for long is alive only if its socket
 * accepts a datagram.
 */

static ngx_uint_t
ngx_mcp_worker_gone(ngx_mcp_zone_t *zone, ngx_uint_t n)
{
    ngx_mcp_worker_sh_t  *w;

    w = ngx_mcp_slot(zone, n);

    if (w->state != NGX_MCP_WORKER_LIVE || n == zone->worker) {
        return 0;
    }

    if (kill(w->pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
        return 1;
    }

    return w->heartbeat + NGX_MCP_HEARTBEAT_GONE < ngx_current_msec
           && ngx_mcp_doorbell_ring(zone, n) == NGX_DECLINED;
}


/*
 * Marks a worker as dead.  The caller read the nonce of the slot before it saw
 * that the worker is dead.  NGX_OK; NGX_DECLINED: the slot is free, or another
 * worker has it by now.
 */

static ngx_int_t
ngx_mcp_worker_dead(ngx_mcp_zone_t *zone, ngx_uint_t worker, uint32_t nonce)
{
    ngx_mcp_worker_sh_t  *w;

    w = ngx_mcp_slot(zone, worker);

    ngx_mcp_zone_lock(zone);

    if (w->state == NGX_MCP_WORKER_FREE || w->nonce != nonce) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    ngx_mcp_touch(zone, &w->state);
    ngx_mcp_touch(zone, &w->released);
    w->state = NGX_MCP_WORKER_DEAD;
    w->released = (w->pid == ngx_pid);

    /* the leases of the dead worker may be claimed at once */

    ngx_mcp_lease_ring_locked(zone);

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


void
ngx_mcp_worker_reap(ngx_mcp_zone_t *zone, ngx_uint_t worker, uint32_t nonce)
{
    ngx_mcp_reap_t  reap;

    if (ngx_mcp_worker_dead(zone, worker, nonce) != NGX_OK) {
        return;
    }

    ngx_mcp_reap_begin(zone, &reap, worker, nonce);

    while (ngx_mcp_reap_next(zone, &reap) == NGX_AGAIN) {
        ngx_mcp_zone_pause();
    }
}


/*
 * Gives up a part of the records of a dead worker.  NGX_OK; NGX_AGAIN: more is
 * left.
 */

static ngx_int_t
ngx_mcp_worker_reap_dead(ngx_mcp_zone_t *zone)
{
    ngx_uint_t       i;
    ngx_mcp_reap_t  *reap;

    reap = &zone->reap;

    if (reap->from == 0) {

        for (i = 0; i < zone->sh->top; i++) {
            if (ngx_mcp_slot(zone, i)->state == NGX_MCP_WORKER_DEAD
                && i != zone->worker)
            {
                break;
            }
        }

        if (i == zone->sh->top) {
            return NGX_OK;
        }

        ngx_mcp_reap_begin(zone, reap, i, ngx_mcp_slot(zone, i)->nonce);
    }

    if (ngx_mcp_reap_next(zone, reap) != NGX_AGAIN) {
        reap->from = 0;
    }

    return NGX_AGAIN;
}


static void
ngx_mcp_reap_begin(ngx_mcp_zone_t *zone, ngx_mcp_reap_t *reap,
    ngx_uint_t worker, uint32_t nonce)
{
    ngx_memzero(reap, sizeof(ngx_mcp_reap_t));

    reap->worker = worker;
    reap->nonce = nonce;
    reap->from = 1;
    reap->recoveries = zone->sh->recoveries;
}


/*
 * Gives up a part of a dead worker's records.  Blocks are examined without the
 * lock, as a dead worker gets no new ones.  A block that seems to be the
 * worker's is examined again under the lock and given up.  If a transaction is
 * rolled back meanwhile, it may restore a record of the worker in a block that
 * was examined before, so all blocks are examined again.  If this process dies
 * meanwhile, another one begins anew.
 *
 * NGX_OK: all is done, and the slot is free; NGX_AGAIN: more is left;
 * NGX_DECLINED: another process has done it.
 */

static ngx_int_t
ngx_mcp_reap_next(ngx_mcp_zone_t *zone, ngx_mcp_reap_t *reap)
{
    uint32_t              n, last, found[NGX_MCP_REAP_BATCH];
    ngx_pid_t             pid;
    ngx_uint_t            i, left, nfound;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_worker_sh_t  *w;

    sh = zone->sh;
    w = ngx_mcp_slot(zone, reap->worker);

    last = ngx_min(reap->from + NGX_MCP_REAP_BLOCKS, sh->watermark);
    nfound = 0;

    for (n = reap->from; n < last && nfound < NGX_MCP_REAP_BATCH; n++) {

        if (ngx_mcp_reap_owned(zone, n, reap)) {
            found[nfound++] = n;
        }
    }

    reap->from = n;

    if (nfound == 0 && n < sh->watermark) {
        return NGX_AGAIN;
    }

    ngx_mcp_zone_lock(zone);

    if (w->state != NGX_MCP_WORKER_DEAD || w->nonce != reap->nonce) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    for (i = 0; i < nfound; i++) {
        ngx_mcp_reap_block_locked(zone, found[i], reap);
        ngx_mcp_step_locked(zone);
    }

    if (reap->from < sh->watermark) {
        ngx_mcp_zone_unlock(zone);
        return NGX_AGAIN;
    }

    if (reap->recoveries != sh->recoveries) {
        reap->recoveries = sh->recoveries;
        reap->from = 1;

        ngx_mcp_zone_unlock(zone);
        return NGX_AGAIN;
    }

    pid = w->pid;
    left = w->released;
    ngx_mcp_reap_free_locked(zone, w);

    ngx_mcp_zone_unlock(zone);

    if (!left) {
        zone->schema->died(zone, pid, reap->lost);
    }

    return NGX_OK;
}


/*
 * Returns whether the record is the dead worker's.  A result without the lock
 * has to be checked under the lock.
 */

static ngx_uint_t
ngx_mcp_reap_owned(ngx_mcp_zone_t *zone, uint32_t n, ngx_mcp_reap_t *reap)
{
    ngx_mcp_block_sh_t  *block;

    block = ngx_mcp_block(zone, n);

    switch (block->type) {

    case NGX_MCP_FREE:
        return 0;

    case NGX_MCP_LEASE:
        return ngx_mcp_lease_owned((ngx_mcp_lease_sh_t *) block, reap->worker,
                                   reap->nonce);

    default:
        return zone->schema->owned(block, reap->worker);
    }
}


static void
ngx_mcp_reap_block_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_mcp_reap_t *reap)
{
    ngx_uint_t           type;
    ngx_mcp_block_sh_t  *block;

    if (!ngx_mcp_reap_owned(zone, n, reap)) {
        return;
    }

    block = ngx_mcp_block(zone, n);
    type = block->type;

    if (type == NGX_MCP_LEASE) {
        ngx_mcp_lease_lost_locked(zone, (ngx_mcp_lease_sh_t *) block,
                                  reap->worker, reap->nonce);
        return;
    }

    reap->lost[type] += zone->schema->reap_locked(zone, block, reap->worker);
}


static void
ngx_mcp_reap_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_worker_sh_t *w)
{
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    ngx_mcp_staged_free_locked(zone, w);

    ngx_mcp_touch(zone, &w->pending);
    ngx_mcp_touch(zone, &w->state);
    ngx_mcp_touch(zone, &w->nfirst);

    ngx_memzero(&w->pending, sizeof(ngx_mcp_list_sh_t));
    w->nfirst = 0;
    w->state = NGX_MCP_WORKER_FREE;

    while (sh->top
           && ngx_mcp_slot(zone, sh->top - 1)->state == NGX_MCP_WORKER_FREE)
    {
        sh->top--;
    }
}
