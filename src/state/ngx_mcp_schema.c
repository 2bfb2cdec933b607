
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


static size_t ngx_mcp_root_size(size_t size);
static void ngx_mcp_root_clear(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_outdated(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_broken(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_undone(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_task(ngx_mcp_zone_t *zone, ngx_uint_t type,
    ngx_mcp_ref_t ref, uint32_t local, ngx_uint_t reasons);
static void ngx_mcp_zone_news(ngx_mcp_zone_t *zone, ngx_uint_t type,
    ngx_mcp_ref_t ref);
static ngx_int_t ngx_mcp_zone_rung(ngx_mcp_zone_t *zone, ngx_uint_t bits,
    uint64_t keys);
static void ngx_mcp_zone_lease(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t reasons);
static ngx_int_t ngx_mcp_zone_sweep(ngx_mcp_zone_t *zone);
static ngx_uint_t ngx_mcp_zone_owned(void *p, ngx_uint_t worker);
static ngx_uint_t ngx_mcp_zone_reap_locked(ngx_mcp_zone_t *zone, void *rec,
    ngx_uint_t worker);
static void ngx_mcp_zone_died(ngx_mcp_zone_t *zone, ngx_pid_t pid,
    ngx_uint_t *lost);


/* most pending DELETEs that are sent in one turn */
#define NGX_MCP_ZONE_DELETES  64


#define NGX_MCP_RECORD_HEAD(name, type, use)  sizeof(type),
#define NGX_MCP_RECORD_USE(name, type, use)   NGX_MCP_USE_ ## use,

static size_t  ngx_mcp_heads[] = {
    NGX_MCP_BLOCK_HEAD,
    sizeof(ngx_mcp_lease_sh_t),
    NGX_MCP_RECORDS(NGX_MCP_RECORD_HEAD)
};

static u_char  ngx_mcp_uses[] = {
    NGX_MCP_USE_FREE,
    NGX_MCP_USE_LEASES,
    NGX_MCP_RECORDS(NGX_MCP_RECORD_USE)
};


static ngx_mcp_state_schema_t  ngx_mcp_schema = { {
    NGX_MCP_STATE_VERSION,
    NGX_MCP_TYPE_MAX,
    ngx_mcp_heads,
    NGX_MCP_COUNTER_MAX,
    ngx_mcp_root_size,
    ngx_mcp_root_clear,
    ngx_mcp_zone_outdated,
    ngx_mcp_zone_broken,
    ngx_mcp_zone_undone,
    ngx_mcp_room_reserve_locked,
    ngx_mcp_room_full,
    ngx_mcp_account_of_locked,
    ngx_mcp_account_charge_locked,
    ngx_mcp_account_release_locked,
    ngx_mcp_zone_task,
    ngx_mcp_zone_news,
    ngx_mcp_zone_rung,
    ngx_mcp_zone_lease,
    ngx_mcp_zone_sweep,
    ngx_mcp_outbox_due,
    ngx_mcp_zone_owned,
    ngx_mcp_zone_reap_locked,
    ngx_mcp_zone_died
}, ngx_mcp_room_admit_locked };


ngx_int_t
ngx_mcp_state_init(ngx_mcp_zone_t *zone, ngx_uint_t workers, ngx_uint_t reuse)
{
    return ngx_mcp_zone_init(zone, &ngx_mcp_schema.schema, workers, reuse);
}


static size_t
ngx_mcp_root_size(size_t size)
{
    return sizeof(ngx_mcp_root_sh_t)
           + ngx_min(size / NGX_MCP_METRIC_SHARE, NGX_MCP_METRICS)
             * sizeof(ngx_mcp_metric_sh_t)
           + ngx_mcp_wanted_places(size) * sizeof(ngx_atomic_t);
}


/* clears the root; numbers that must grow, and most counters, are kept */

static void
ngx_mcp_root_clear(ngx_mcp_zone_t *zone)
{
    ngx_atomic_t       *counters;
    ngx_mcp_root_sh_t  *root;

    root = zone->root;
    counters = ngx_mcp_counters(zone->sh);

    root->metrics = (uint32_t) ngx_min(zone->sh->size / NGX_MCP_METRIC_SHARE,
                                       NGX_MCP_METRICS);
    root->wanted = (uint32_t) ngx_mcp_wanted_places(zone->sh->size);
    root->oldest = 0;
    root->next = 0;

    ngx_memzero(root->idle, offsetof(ngx_mcp_root_sh_t, metric)
                            - offsetof(ngx_mcp_root_sh_t, idle));

    counters[NGX_MCP_COUNTER_SESSIONS_LIVE] = 0;
    counters[NGX_MCP_COUNTER_LISTENS_OPEN] = 0;
    counters[NGX_MCP_COUNTER_STREAMS_OPEN] = 0;
    counters[NGX_MCP_COUNTER_CALLS_RUNNING] = 0;
}


ngx_uint_t
ngx_mcp_zone_sessions(ngx_mcp_zone_sh_t *sh)
{
    if (sh == NULL || sh->magic != NGX_MCP_ZONE_MAGIC) {
        return 0;
    }

    return (ngx_uint_t) ngx_mcp_counters(sh)[NGX_MCP_COUNTER_SESSIONS_LIVE];
}


ngx_queue_t *
ngx_mcp_ctx_queues(ngx_mcp_zone_t *zone, ngx_mcp_ctx_e ctx, ngx_uint_t n)
{
    ngx_uint_t    i;
    ngx_queue_t  *queues;

    queues = zone->ctx[ctx];

    if (queues) {
        return queues;
    }

    queues = ngx_pcalloc(ngx_cycle->pool, n * sizeof(ngx_queue_t));

    for (i = 0; queues && i < n; i++) {
        ngx_queue_init(&queues[i]);
    }

    zone->ctx[ctx] = queues;

    return queues;
}


static void
ngx_mcp_zone_outdated(ngx_mcp_zone_t *zone)
{
    ngx_log_error(NGX_LOG_WARN, zone->log, 0,
                  "mcp zone \"%V\" has the layout of another version of "
                  "the module and is emptied, %ui sessions end",
                  &zone->name, ngx_mcp_zone_sessions(zone->sh));
}


static void
ngx_mcp_zone_broken(ngx_mcp_zone_t *zone)
{
    ngx_log_error(NGX_LOG_ALERT, zone->log, 0,
                  "mcp zone \"%V\" is emptied, as the update of a process "
                  "that died cannot be undone, %ui sessions end",
                  &zone->name, ngx_mcp_zone_sessions(zone->sh));
}


static void
ngx_mcp_zone_undone(ngx_mcp_zone_t *zone)
{
    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "mcp zone \"%V\": the update of a process that died was "
                  "undone, %ui sessions", &zone->name,
                  ngx_mcp_zone_sessions(zone->sh));
}


static void
ngx_mcp_zone_task(ngx_mcp_zone_t *zone, ngx_uint_t type, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t reasons)
{
    if (type == NGX_MCP_STREAM) {
        zone->handlers->stream(zone, ref, local, reasons);

    } else {
        zone->handlers->call(zone, ref, local, reasons);
    }
}


static void
ngx_mcp_zone_news(ngx_mcp_zone_t *zone, ngx_uint_t type, ngx_mcp_ref_t ref)
{
    if (ref.block == 0 || type == NGX_MCP_TOPIC) {
        zone->handlers->topic(zone, ref);
    }

    if (ref.block == 0 || type == NGX_MCP_GROUP
        || type == NGX_MCP_ENDPOINT)
    {
        zone->handlers->group(zone, ref);
    }
}


static ngx_int_t
ngx_mcp_zone_rung(ngx_mcp_zone_t *zone, ngx_uint_t bits, uint64_t keys)
{
    ngx_uint_t  i;

    if (bits & NGX_MCP_RING_PROFILES) {
        zone->handlers->profiles(zone, keys);
    }

    if (bits & NGX_MCP_RING_LISTS) {
        zone->handlers->lists(zone, keys);
    }

    if (bits & NGX_MCP_RING_LISTENERS) {
        zone->handlers->listeners(zone, keys);
    }

    if (bits & NGX_MCP_RING_UPSTREAM_SESSIONS) {
        zone->handlers->upstream_sessions(zone, keys);
    }

    if (bits & NGX_MCP_RING_INTERESTS) {
        zone->handlers->interests(zone, keys);
    }

    if (!(bits & NGX_MCP_RING_PENDING_DELETE)) {
        return NGX_OK;
    }

    for (i = 0; i < NGX_MCP_ZONE_DELETES; i++) {
        if (ngx_mcp_pending_delete_send(zone) != NGX_OK) {
            return NGX_OK;
        }
    }

    ngx_mcp_zone_lock(zone);
    ngx_mcp_slot(zone, zone->worker)->bits |= NGX_MCP_RING_PENDING_DELETE;
    ngx_mcp_zone_unlock(zone);

    return NGX_AGAIN;
}


static void
ngx_mcp_zone_lease(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t reasons)
{
    if (zone->handlers->lease) {
        zone->handlers->lease(zone, key, reasons);
    }
}


static ngx_int_t
ngx_mcp_zone_sweep(ngx_mcp_zone_t *zone)
{
    ngx_int_t   rc;
    ngx_uint_t  i;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_expire_locked(zone);

    if (ngx_mcp_group_sweep_locked(zone) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    if (ngx_mcp_topic_sweep_locked(zone) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    for (i = 0; i < NGX_MCP_ZONE_DELETES; i++) {
        if (ngx_mcp_pending_delete_send(zone) != NGX_OK) {
            return rc;
        }
    }

    return NGX_AGAIN;
}


static ngx_uint_t
ngx_mcp_zone_owned(void *p, ngx_uint_t worker)
{
    ngx_mcp_record_sh_t            *rec;
    ngx_mcp_upstream_session_sh_t  *us;

    rec = p;

    switch (rec->block.type) {

    case NGX_MCP_STREAM:
        return rec->worker == worker;

    case NGX_MCP_CALL:
        return rec->worker == worker && rec->flags & NGX_MCP_CALL_RUNNING;

    case NGX_MCP_UPSTREAM_SESSION:
        us = p;
        return us->listener == worker + 1
               || (rec->worker == worker
                   && us->state == NGX_MCP_UPSTREAM_SESSION_MAKING);

    case NGX_MCP_PROFILE:
        return rec->worker == worker && ((ngx_mcp_profile_sh_t *) p)->probing;

    default:
        return 0;
    }
}


static ngx_uint_t
ngx_mcp_zone_reap_locked(ngx_mcp_zone_t *zone, void *p, ngx_uint_t worker)
{
    ngx_mcp_record_sh_t  *rec;

    rec = p;

    switch (rec->block.type) {

    case NGX_MCP_STREAM:
        ngx_mcp_stream_drop_locked(zone, p, NGX_MCP_COUNTER_STREAMS_LOST);
        return 1;

    case NGX_MCP_CALL:

        /*
         * Reserves room for the call's last event.  Making room never drops a
         * running call.
         */

        (void) ngx_mcp_reserve_locked(zone, ngx_mcp_ref(zone, p),
                                      NGX_MCP_ROOM_EVENT,
                                      NGX_MCP_BLOCKS_SMALL);

        ngx_mcp_call_lost_locked(zone, p);
        return 1;

    case NGX_MCP_UPSTREAM_SESSION:
        ngx_mcp_upstream_session_lost_locked(zone, p, worker);
        return 0;

    default: /* NGX_MCP_PROFILE */
        ngx_mcp_profile_give_up_locked(zone, p);
        return 0;
    }
}


static void
ngx_mcp_zone_died(ngx_mcp_zone_t *zone, ngx_pid_t pid, ngx_uint_t *lost)
{
    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "mcp zone \"%V\": worker %P died, its %ui streams and "
                  "%ui calls were closed", &zone->name, pid,
                  lost[NGX_MCP_STREAM], lost[NGX_MCP_CALL]);
}


void
ngx_mcp_zone_use(ngx_mcp_zone_t *zone, ngx_mcp_zone_use_t *use)
{
    ngx_uint_t          i, other;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    ngx_memzero(use, sizeof(ngx_mcp_zone_use_t));

    use->blocks = sh->blocks - 1;
    use->block_size = NGX_MCP_BLOCK_SIZE;

    ngx_mcp_zone_lock(zone);

    use->used[NGX_MCP_USE_FREE] = ngx_mcp_free_blocks(sh);
    use->recoveries = sh->recoveries;

    other = use->blocks - use->used[NGX_MCP_USE_FREE];

    for (i = NGX_MCP_FREE + 1; i < NGX_MCP_TYPE_MAX; i++) {
        use->used[ngx_mcp_uses[i]] += sh->used[i];
        other -= sh->used[i];
    }

    for (i = 0; i < zone->sh->top; i++) {
        if (ngx_mcp_slot(zone, i)->state == NGX_MCP_WORKER_LIVE) {
            use->workers++;
        }
    }

    ngx_mcp_zone_unlock(zone);

    /* blocks of texts that are being written belong to no record yet */

    use->used[NGX_MCP_USE_OTHER] += other;
}
