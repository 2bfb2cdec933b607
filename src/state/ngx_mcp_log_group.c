
#include "ngx_mcp_state_sh.h"


/* groups that get an event under one hold of the lock, and their blocks */
#define NGX_MCP_LOG_GROUPS   32
#define NGX_MCP_LOG_BLOCKS   256

/* events that go for one */
#define NGX_MCP_LOG_DROP     16

typedef struct {
    ngx_mcp_groups_t        walk;
    ngx_uint_t              n;
    ngx_mcp_ref_t           refs[NGX_MCP_LOG_GROUPS];
} ngx_mcp_log_batch_t;


static void ngx_mcp_log_batch_init(ngx_mcp_log_batch_t *batch,
    ngx_str_t *endpoint, ngx_str_t *tenant);
static ngx_uint_t ngx_mcp_log_batch_next(ngx_mcp_zone_t *zone,
    ngx_mcp_log_batch_t *batch, ngx_uint_t max);
static ngx_uint_t ngx_mcp_log_batch_live_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_log_batch_t *batch);
static ngx_int_t ngx_mcp_log_batch(ngx_mcp_zone_t *zone,
    ngx_mcp_log_batch_t *batch, ngx_mcp_log_input_t *in,
    ngx_uint_t *addressed);
static ngx_int_t ngx_mcp_log_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_log_input_t *in, ngx_uint_t fits);


ngx_int_t
ngx_mcp_log_groups(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_event_t *event, ngx_uint_t *addressed)
{
    ngx_int_t            rc;
    ngx_uint_t           max;
    ngx_mcp_log_batch_t  batch;
    ngx_mcp_log_input_t  in;

    rc = NGX_OK;
    *addressed = 0;

    ngx_mcp_log_input(zone, &in, event);

    /* one that has to be staged, or is owed, goes to one group at a time */

    max = (in.stage.blocks > NGX_MCP_BLOCKS_SMALL || event->owed)
          ? 1 : ngx_min(NGX_MCP_LOG_GROUPS,
                        NGX_MCP_LOG_BLOCKS / in.stage.blocks);

    ngx_mcp_log_batch_init(&batch, endpoint, tenant);

    while (ngx_mcp_log_batch_next(zone, &batch, max)) {

        switch (ngx_mcp_log_batch(zone, &batch, &in, addressed)) {

        case NGX_ABORT:
            return NGX_ABORT;

        case NGX_ERROR:
            rc = NGX_ERROR;
            break;
        }
    }

    return rc;
}


ngx_uint_t
ngx_mcp_log_gap(ngx_mcp_zone_t *zone, ngx_str_t *endpoint, ngx_str_t *tenant)
{
    ngx_uint_t           i, n, addressed;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_log_batch_t  batch;

    addressed = 0;

    ngx_mcp_log_batch_init(&batch, endpoint, tenant);

    while (ngx_mcp_log_batch_next(zone, &batch, NGX_MCP_LOG_GROUPS)) {

        ngx_mcp_zone_lock(zone);

        n = ngx_mcp_log_batch_live_locked(zone, &batch);

        for (i = 0; i < n; i++) {
            ngx_mcp_step_locked(zone);

            g = ngx_mcp_block(zone, batch.refs[i].block);

            ngx_mcp_losses_gap_locked(zone, g, g->log.last + 1);
            ngx_mcp_log_miss_locked(zone, g, NULL, 0);
            addressed += g->sessions;

            ngx_mcp_watch_ring_locked(zone, g->watch, batch.refs[i].block);
        }

        ngx_mcp_zone_unlock(zone);
    }

    return addressed;
}


static void
ngx_mcp_log_batch_init(ngx_mcp_log_batch_t *batch, ngx_str_t *endpoint,
    ngx_str_t *tenant)
{
    ngx_mcp_groups_init(&batch->walk, endpoint, tenant);
    batch->n = 0;
}


/* the next groups, max at most; how many */

static ngx_uint_t
ngx_mcp_log_batch_next(ngx_mcp_zone_t *zone, ngx_mcp_log_batch_t *batch,
    ngx_uint_t max)
{
    batch->n = 0;

    while (batch->n < max
           && ngx_mcp_groups_next(zone, &batch->walk, &batch->refs[batch->n])
              == NGX_OK)
    {
        batch->n++;
    }

    return batch->n;
}


/* what was found may be gone; how many are there */

static ngx_uint_t
ngx_mcp_log_batch_live_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_batch_t *batch)
{
    ngx_uint_t           i, n;
    ngx_mcp_group_sh_t  *g;

    n = 0;

    for (i = 0; i < batch->n; i++) {
        g = ngx_mcp_record(zone, batch->refs[i], NGX_MCP_GROUP);

        if (g && g->sessions) {
            batch->refs[n++] = batch->refs[i];
        }
    }

    return n;
}


/* NGX_ABORT: the event is not to be taken; NGX_ERROR: some got a gap */

static ngx_int_t
ngx_mcp_log_batch(ngx_mcp_zone_t *zone, ngx_mcp_log_batch_t *batch,
    ngx_mcp_log_input_t *in, ngx_uint_t *addressed)
{
    ngx_int_t            large, full;
    ngx_uint_t           i, n, fits, room;
    ngx_mcp_group_sh_t  *g;

    in->stage.head = 0;
    fits = 1;

    if (in->stage.blocks > NGX_MCP_BLOCKS_SMALL && !in->event->count_only) {
        ngx_mcp_zone_lock(zone);

        g = ngx_mcp_record(zone, batch->refs[0], NGX_MCP_GROUP);
        fits = g && in->stage.len <= g->event_size;

        ngx_mcp_zone_unlock(zone);

        if (fits) {
            in->stage.room = NGX_MCP_ROOM_EVENT;
            in->stage.payer = batch->refs[0];
            fits = (ngx_mcp_stage(zone, &in->stage) == NGX_OK);
        }
    }

    large = 0;
    full = 0;

    ngx_mcp_zone_lock(zone);

    n = ngx_mcp_log_batch_live_locked(zone, batch);

    for (i = 0; i < n; i++) {
        g = ngx_mcp_block(zone, batch->refs[i].block);
        *addressed += g->sessions;
    }

    if (n == 0 || in->event->count_only) {
        ngx_mcp_stage_drop_locked(zone, &in->stage);
        ngx_mcp_zone_unlock(zone);
        return NGX_OK;
    }

    if (ngx_mcp_take_check_locked(zone, in->event->take) != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &in->stage);
        ngx_mcp_zone_unlock(zone);
        return NGX_ABORT;
    }

    for (i = 0; i < n; i++) {
        ngx_mcp_step_locked(zone);

        room = fits && ngx_mcp_reserve_locked(zone, batch->refs[i],
                                              NGX_MCP_ROOM_EVENT,
                                              ngx_mcp_stage_needs(&in->stage))
                       == NGX_OK;

        /* its last session may have gone for that */

        g = ngx_mcp_record(zone, batch->refs[i], NGX_MCP_GROUP);

        if (g == NULL || ngx_mcp_log_group_locked(zone, g, in, room)
                         != NGX_ERROR)
        {
            continue;
        }

        if (in->stage.len > g->event_size) {
            in->event->large = 1;
            large++;

        } else {
            full++;
        }
    }

    ngx_mcp_stage_drop_locked(zone, &in->stage);

    ngx_mcp_zone_unlock(zone);

    if (large) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_LARGE, large);
    }

    if (full) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_FULL, full);
    }

    return (large || full) ? NGX_ERROR : NGX_OK;
}


/* NGX_DECLINED: it was there before; NGX_ERROR: a place without a body */

static ngx_int_t
ngx_mcp_log_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_log_input_t *in, ngx_uint_t fits)
{
    ngx_int_t              rc, logged;
    ngx_mcp_event_t       *event;
    ngx_mcp_pending_sh_t  *owed;

    event = in->event;

    if (!ngx_mcp_log_owed_locked(zone, event, g->number, &owed)) {
        return NGX_DECLINED;
    }

    if (owed) {
        ngx_mcp_touch(zone, owed);
        owed->number = g->number;
    }

    logged = ngx_mcp_once_logged_locked(zone, &g->log, event, &in->only);

    if (logged != NGX_DECLINED) {
        if (logged != NGX_OK) {
            ngx_mcp_log_miss_locked(zone, g, &in->only, event->level);
        }

        rc = NGX_DECLINED;

    } else if (fits
               && ngx_mcp_log_add_group_locked(zone, g, event, &in->only,
                                               &in->stage))
    {
        rc = NGX_OK;

    } else {
        if (!event->answered) {
            ngx_mcp_log_miss_locked(zone, g, &in->only, event->level);
        }

        rc = NGX_ERROR;
    }

    ngx_mcp_watch_ring_locked(zone, g->watch, ngx_mcp_number(zone, g));

    return rc;
}


void
ngx_mcp_log_miss_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_only_sh_t *only, ngx_uint_t level)
{
    ngx_mcp_losses_add_locked(zone, g, g->log.last + 1, only, level);

    ngx_mcp_touch(zone, &g->log);
    g->log.last++;
}


ngx_mcp_event_sh_t *
ngx_mcp_log_add_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_event_t *event, ngx_mcp_only_sh_t *only, ngx_mcp_stage_t *stage)
{
    ngx_uint_t  i;

    if (stage->len > g->event_size || g->event_max == 0) {
        return NULL;
    }

    /* a few, as the limit of a new configuration may be lower */

    for (i = 0; g->log.count >= g->event_max && i < NGX_MCP_LOG_DROP; i++) {
        ngx_mcp_log_drop_locked(zone, ngx_mcp_block(zone, g->log.list.head));
    }

    return ngx_mcp_log_add_locked(zone, g, event, only, stage);
}


ngx_uint_t
ngx_mcp_log_told_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_audience_t *names, ngx_uint_t kinds, ngx_mcp_event_t *event)
{
    ngx_int_t               rc;
    ngx_mcp_group_sh_t     *g;
    ngx_mcp_log_input_t     in;
    ngx_mcp_audience_sh_t  *a;

    ngx_mcp_log_input(zone, &in, event);

    g = ngx_mcp_group_lookup_locked(zone, &names->endpoint, &names->tenant);
    rc = NGX_DECLINED;

    if (g) {
        rc = ngx_mcp_reserve_locked(zone, ngx_mcp_ref(zone, g),
                                    NGX_MCP_ROOM_EVENT, in.stage.blocks);
    }

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a == NULL) {
        return 0;
    }

    g = ngx_mcp_group_lookup_locked(zone, &names->endpoint, &names->tenant);

    ngx_mcp_touch(zone, &a->untold);
    a->untold &= ~kinds;

    if (g == NULL || g->sessions == 0) {
        return 0;
    }

    if (rc != NGX_OK
        || ngx_mcp_log_add_group_locked(zone, g, event, &in.only, &in.stage)
           == NULL)
    {
        ngx_mcp_log_miss_locked(zone, g, &in.only, event->level);
    }

    ngx_mcp_watch_ring_locked(zone, g->watch, ngx_mcp_number(zone, g));

    return g->sessions;
}
