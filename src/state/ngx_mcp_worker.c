
#include "ngx_mcp_state_sh.h"


/* tasks handled under one hold of the lock */
#define NGX_MCP_DRAIN_TASKS      64

/* blocks looked at under one hold of the lock */
#define NGX_MCP_REAP_BLOCKS      1024

/* a heartbeat is written every second */
#define NGX_MCP_HEARTBEAT_LATE   2500
#define NGX_MCP_HEARTBEAT_GONE   10000


typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                local;
    uint32_t                why;
    ngx_uint_t              type;
} ngx_mcp_job_t;


typedef struct {
    ngx_uint_t              streams;
    ngx_uint_t              calls;
} ngx_mcp_reaped_t;


static void ngx_mcp_worker_tell(ngx_mcp_zone_t *zone, uint32_t *groups,
    ngx_uint_t n, ngx_uint_t bits);
static ngx_uint_t ngx_mcp_worker_gone(ngx_mcp_zone_t *zone, ngx_uint_t n);
static ngx_int_t ngx_mcp_reap_blocks(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    uint32_t nonce, uint32_t from, ngx_mcp_reaped_t *reaped);
static void ngx_mcp_reap_block_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    uint32_t n, ngx_mcp_reaped_t *reaped);


/* bells to ring once the lock that this process holds is given back */

static ngx_uint_t  ngx_mcp_bells_n;
static uint16_t    ngx_mcp_bells[NGX_MCP_PLACES_MAX];


void
ngx_mcp_wake_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task,
    ngx_uint_t why)
{
    uint32_t              had;
    ngx_mcp_worker_sh_t  *w;

    had = task->why;
    ngx_mcp_touch(zone, &task->why);
    task->why = had | (uint32_t) why;

    if (had || task->rec.worker >= zone->sh->places) {
        return;
    }

    w = ngx_mcp_place(zone, task->rec.worker);

    ngx_mcp_list_append(zone, &w->pending, ngx_mcp_number(zone, task),
                        offsetof(ngx_mcp_task_sh_t, pending));

    ngx_mcp_worker_ring_locked(zone, task->rec.worker);
}


void
ngx_mcp_unwake_locked(ngx_mcp_zone_t *zone, ngx_mcp_task_sh_t *task)
{
    ngx_mcp_worker_sh_t  *w;

    if (task->why == 0) {
        return;
    }

    ngx_mcp_touch(zone, &task->why);
    task->why = 0;

    if (task->rec.worker >= zone->sh->places) {
        return;
    }

    w = ngx_mcp_place(zone, task->rec.worker);

    ngx_mcp_list_remove(zone, &w->pending, ngx_mcp_number(zone, task),
                        offsetof(ngx_mcp_task_sh_t, pending));
}


void
ngx_mcp_worker_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker)
{
    ngx_mcp_worker_sh_t  *w;

    w = ngx_mcp_place(zone, worker);

    if (w->rung || w->state != NGX_MCP_WORKER_LIVE) {
        return;
    }

    w->rung = 1;

    if (ngx_mcp_bells_n < NGX_MCP_PLACES_MAX) {
        ngx_mcp_bells[ngx_mcp_bells_n++] = (uint16_t) worker;
    }
}


void
ngx_mcp_worker_ring_all_locked(ngx_mcp_zone_t *zone, ngx_uint_t bits)
{
    ngx_uint_t            i;
    ngx_mcp_worker_sh_t  *w;

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_place(zone, i);

        if (w->state == NGX_MCP_WORKER_LIVE) {
            w->bits |= (uint32_t) bits;
            ngx_mcp_worker_ring_locked(zone, i);
        }
    }
}


void
ngx_mcp_worker_ring_out(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  i, n, gone;

    if (ngx_mcp_bells_n == 0) {
        return;
    }

    gone = 0;

    for (i = 0; i < ngx_mcp_bells_n; i++) {
        n = ngx_mcp_bells[i];

        if (ngx_mcp_doorbell_ring(zone, n) == NGX_DECLINED) {
            ngx_mcp_place(zone, n)->heartbeat = 0;
            gone = 1;
        }
    }

    ngx_mcp_bells_n = 0;

    if (gone) {
        ngx_mcp_doorbell_sweep(zone);
    }
}


ngx_int_t
ngx_mcp_worker_claim(ngx_mcp_zone_t *zone, u_char *name)
{
    uint32_t              nonce;
    ngx_int_t             rc;
    ngx_uint_t            i;
    ngx_mcp_worker_sh_t  *w;

    /* a worker is started as soon as another one has died */

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_place(zone, i);
        nonce = w->nonce;
        ngx_mcp_barrier();

        if (w->state == NGX_MCP_WORKER_DEAD || ngx_mcp_worker_gone(zone, i)) {
            ngx_mcp_worker_reap(zone, i, nonce);
        }
    }

    ngx_mcp_zone_lock(zone);

    for (i = 0; i < zone->sh->top; i++) {
        if (ngx_mcp_place(zone, i)->state == NGX_MCP_WORKER_FREE) {
            break;
        }
    }

    if (i < zone->sh->places
        || i < ngx_mcp_places_grow_locked(zone, i + NGX_MCP_PLACES_STEP))
    {
        rc = NGX_OK;
        w = ngx_mcp_place(zone, i);

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

    w = ngx_mcp_place(zone, zone->worker);

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

    ngx_mcp_worker_reap(zone, worker, ngx_mcp_place(zone, worker)->nonce);
}


ngx_int_t
ngx_mcp_worker_drain(ngx_mcp_zone_t *zone)
{
    uint32_t                    n, groups[NGX_MCP_RING + 1];
    ngx_uint_t                  i, njobs, ngroups, bits, more;
    ngx_mcp_job_t               jobs[NGX_MCP_DRAIN_TASKS];
    ngx_mcp_task_sh_t          *t;
    ngx_mcp_worker_sh_t        *w;
    ngx_mcp_worker_handlers_t  *handlers;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return NGX_OK;
    }

    w = ngx_mcp_place(zone, zone->worker);
    handlers = zone->handlers;
    njobs = 0;

    ngx_mcp_zone_lock(zone);

    w->rung = 0;

    while (njobs < NGX_MCP_DRAIN_TASKS && (n = w->pending.head) != 0) {
        t = ngx_mcp_block(zone, n);

        jobs[njobs].ref = ngx_mcp_ref(zone, t);
        jobs[njobs].local = t->local;
        jobs[njobs].why = t->why;
        jobs[njobs].type = t->rec.block.type;
        njobs++;

        ngx_mcp_unwake_locked(zone, t);
    }

    more = (w->pending.head != 0);

    if (w->overflow) {
        groups[0] = 0;
        ngroups = 1;

    } else {
        ngroups = w->nring;
        ngx_memcpy(groups, w->ring, ngroups * sizeof(uint32_t));
    }

    w->overflow = 0;
    w->nring = 0;

    bits = w->bits;
    w->bits = 0;

    ngx_mcp_zone_unlock(zone);

    if (handlers == NULL) {
        return more ? NGX_AGAIN : NGX_OK;
    }

    for (i = 0; i < njobs; i++) {

        if (jobs[i].type == NGX_MCP_STREAM) {
            handlers->stream(zone, jobs[i].ref, jobs[i].local, jobs[i].why);

        } else {
            handlers->call(zone, jobs[i].ref, jobs[i].local, jobs[i].why);
        }
    }

    ngx_mcp_worker_tell(zone, groups, ngroups, bits);

    if (bits & NGX_MCP_RING_LEASES
        && ngx_mcp_lease_drain(zone) == NGX_AGAIN)
    {
        ngx_mcp_zone_lock(zone);
        w->bits |= NGX_MCP_RING_LEASES;
        ngx_mcp_zone_unlock(zone);

        more = 1;
    }

    if (bits & NGX_MCP_RING_FAREWELL) {

        for (i = 0; i < NGX_MCP_DRAIN_TASKS; i++) {
            if (ngx_mcp_farewell(zone) != NGX_OK) {
                return more ? NGX_AGAIN : NGX_OK;
            }
        }

        ngx_mcp_zone_lock(zone);
        w->bits |= NGX_MCP_RING_FAREWELL;
        ngx_mcp_zone_unlock(zone);

        more = 1;
    }

    return more ? NGX_AGAIN : NGX_OK;
}


static void
ngx_mcp_worker_tell(ngx_mcp_zone_t *zone, uint32_t *groups, ngx_uint_t n,
    ngx_uint_t bits)
{
    ngx_uint_t           i;
    ngx_mcp_ref_t        ref;
    ngx_mcp_block_sh_t  *block;

    for (i = 0; i < n; i++) {
        ref.block = groups[i];
        ref.gen = 0;

        if (ref.block) {
            block = ngx_mcp_block(zone, ref.block);

            ref.gen = block->gen;

            if (block->type == NGX_MCP_TOPIC) {
                zone->handlers->topic(zone, ref);
                continue;
            }

            if (block->type != NGX_MCP_GROUP) {
                continue;
            }

        } else {
            zone->handlers->topic(zone, ref);
        }

        zone->handlers->group(zone, ref);
    }

    if (bits & NGX_MCP_RING_KNOWLEDGE) {
        zone->handlers->knowledge(zone);
    }

    if (bits & NGX_MCP_RING_LISTS) {
        zone->handlers->lists(zone);
    }

    if (bits & NGX_MCP_RING_LISTENERS) {
        zone->handlers->listeners(zone);
    }

    if (bits & NGX_MCP_RING_SUPPLIES) {
        zone->handlers->supplies(zone);
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

    ngx_mcp_place(zone, zone->worker)->heartbeat = ngx_current_msec;

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_place(zone, i);
        nonce = w->nonce;
        ngx_mcp_barrier();

        if (i == zone->worker || w->state == NGX_MCP_WORKER_FREE) {
            continue;
        }

        if (w->state == NGX_MCP_WORKER_DEAD
            || (w->heartbeat + NGX_MCP_HEARTBEAT_LATE < ngx_current_msec
                && ngx_mcp_worker_gone(zone, i)))
        {
            ngx_mcp_worker_reap(zone, i, nonce);
        }
    }

    ngx_mcp_zone_lock(zone);

    /* time alone makes leases free */

    w = ngx_mcp_place(zone, zone->worker);
    w->leases = 0;
    w->bits |= NGX_MCP_RING_LEASES;

    rc = ngx_mcp_expire_locked(zone);

    if (ngx_mcp_group_sweep_locked(zone) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    if (ngx_mcp_topic_sweep_locked(zone) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    for (i = 0; i < NGX_MCP_DRAIN_TASKS; i++) {
        if (ngx_mcp_farewell(zone) != NGX_OK) {
            return rc;
        }
    }

    return NGX_AGAIN;
}


/*
 * The number of a process may be in use again: one that is said to live but
 * gave no sign for long has to answer to its bell.
 */

static ngx_uint_t
ngx_mcp_worker_gone(ngx_mcp_zone_t *zone, ngx_uint_t n)
{
    ngx_mcp_worker_sh_t  *w;

    w = ngx_mcp_place(zone, n);

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
 * Goes over all blocks, a part of them under each hold of the lock.  Who dies
 * in between leaves the slot to the next one, which starts again.  The nonce
 * was read before the worker was found to be gone: the slot may have passed
 * on to another one since.
 */

void
ngx_mcp_worker_reap(ngx_mcp_zone_t *zone, ngx_uint_t worker, uint32_t nonce)
{
    uint32_t              from;
    ngx_pid_t             pid;
    ngx_mcp_reaped_t      reaped;
    ngx_mcp_worker_sh_t  *w;

    w = ngx_mcp_place(zone, worker);

    ngx_memzero(&reaped, sizeof(ngx_mcp_reaped_t));

    ngx_mcp_zone_lock(zone);

    if (w->state == NGX_MCP_WORKER_FREE || w->nonce != nonce) {
        ngx_mcp_zone_unlock(zone);
        return;
    }

    ngx_mcp_touch(zone, &w->state);
    w->state = NGX_MCP_WORKER_DEAD;
    pid = w->pid;

    /* what it held may be claimed at once */

    ngx_mcp_lease_ring_locked(zone);

    ngx_mcp_zone_unlock(zone);

    for (from = 1; from < zone->sh->fresh; from += NGX_MCP_REAP_BLOCKS) {

        if (ngx_mcp_reap_blocks(zone, worker, nonce, from, &reaped)
            != NGX_OK)
        {
            return;
        }
    }

    ngx_mcp_zone_lock(zone);

    if (w->state == NGX_MCP_WORKER_DEAD && w->nonce == nonce) {
        ngx_mcp_staged_free_locked(zone, w);

        ngx_mcp_touch(zone, &w->pending);
        ngx_mcp_touch(zone, &w->state);

        ngx_memzero(&w->pending, sizeof(ngx_mcp_list_sh_t));
        w->state = NGX_MCP_WORKER_FREE;

        while (zone->sh->top
               && ngx_mcp_place(zone, zone->sh->top - 1)->state
                  == NGX_MCP_WORKER_FREE)
        {
            zone->sh->top--;
        }
    }

    ngx_mcp_zone_unlock(zone);

    if (pid != ngx_pid) {
        ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                      "mcp zone \"%V\": worker %P died, its %ui streams and "
                      "%ui calls were closed",
                      &zone->name, pid, reaped.streams, reaped.calls);
    }
}


static ngx_int_t
ngx_mcp_reap_blocks(ngx_mcp_zone_t *zone, ngx_uint_t worker, uint32_t nonce,
    uint32_t from, ngx_mcp_reaped_t *reaped)
{
    uint32_t              n, last;
    ngx_mcp_worker_sh_t  *w;

    w = ngx_mcp_place(zone, worker);

    ngx_mcp_zone_lock(zone);

    if (w->state != NGX_MCP_WORKER_DEAD || w->nonce != nonce) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    last = ngx_min(from + NGX_MCP_REAP_BLOCKS, zone->sh->fresh);

    for (n = from; n < last; n++) {
        ngx_mcp_reap_block_locked(zone, worker, n, reaped);
        ngx_mcp_step_locked(zone);
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


static void
ngx_mcp_reap_block_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker, uint32_t n,
    ngx_mcp_reaped_t *reaped)
{
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_call_sh_t       *c;
    ngx_mcp_record_sh_t     *rec;
    ngx_mcp_stream_sh_t     *st;
    ngx_mcp_knowledge_sh_t  *k;

    rec = ngx_mcp_block(zone, n);

    switch (rec->block.type) {

    case NGX_MCP_STREAM:
        st = (ngx_mcp_stream_sh_t *) rec;

        if (rec->worker == worker) {
            ngx_mcp_stream_drop_locked(zone, st,
                                       NGX_MCP_COUNTER_STREAMS_LOST);
            reaped->streams++;
        }

        break;

    case NGX_MCP_CALL:
        c = (ngx_mcp_call_sh_t *) rec;

        if (rec->worker != worker || !(rec->flags & NGX_MCP_CALL_RUNNING)) {
            break;
        }

        /* for its last word; it stays, as it runs */

        (void) ngx_mcp_reserve_locked(zone, ngx_mcp_ref(zone, c),
                                      NGX_MCP_ROOM_EVENT,
                                      NGX_MCP_BLOCKS_SMALL);

        ngx_mcp_call_lost_locked(zone, c);
        reaped->calls++;

        break;

    case NGX_MCP_LINK:
        l = (ngx_mcp_link_sh_t *) rec;

        if (l->listener == worker + 1) {
            ngx_mcp_listener_lost_locked(zone, l);
        }

        if (l->state == NGX_MCP_LINK_MAKING && rec->worker == worker) {
            ngx_mcp_link_give_up_locked(zone, l);
        }

        break;

    case NGX_MCP_KNOWLEDGE:
        k = (ngx_mcp_knowledge_sh_t *) rec;

        if (k->asking && rec->worker == worker) {
            ngx_mcp_knowledge_drop_locked(zone, k);
            ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_KNOWLEDGE);
        }

        break;

    case NGX_MCP_LEASE:
        ngx_mcp_lease_lost_locked(zone, (ngx_mcp_lease_sh_t *) rec, worker,
                                  ngx_mcp_place(zone, worker)->nonce);
        break;
    }
}
