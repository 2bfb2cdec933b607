
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_lease_sh.h"


/* bytes after the key in a lease's text: the last event id, and the note */
#define NGX_MCP_LEASE_TEXTS  (NGX_MCP_LEASE_ID_MAX + NGX_MCP_LEASE_NOTE_MAX)

/* most leases handled in one turn; most examined under one hold of the lock */
#define NGX_MCP_LEASE_TURN   64
#define NGX_MCP_LEASE_PASS   256


static ngx_mcp_lease_sh_t *ngx_mcp_lease_find_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *key);
static ngx_int_t ngx_mcp_lease_share_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_share_t *share);
static ngx_int_t ngx_mcp_lease_make_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *key, ngx_mcp_stage_t *stage, ngx_mcp_lease_share_t *share);
static ngx_uint_t ngx_mcp_lease_live_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_reader_sh_t *r);
static ngx_uint_t ngx_mcp_lease_renewed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_reader_sh_t *r);
static ngx_uint_t ngx_mcp_lease_entitled_locked(ngx_mcp_zone_t *zone);
static ngx_uint_t ngx_mcp_lease_newer_locked(ngx_mcp_zone_t *zone);
static ngx_uint_t ngx_mcp_lease_free_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static void ngx_mcp_lease_overlap_pass_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static void ngx_mcp_lease_missed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static void ngx_mcp_lease_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_mcp_reader_sh_t *r);
static ngx_int_t ngx_mcp_lease_await_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static ngx_int_t ngx_mcp_lease_state_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static void ngx_mcp_lease_settle_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static void ngx_mcp_lease_ring_former_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_mcp_reader_sh_t *r);
static void ngx_mcp_lease_change_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);
static void ngx_mcp_lease_news_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_uint_t worker);
static ngx_int_t ngx_mcp_lease_next(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t *reasons);
static uint32_t ngx_mcp_lease_next_news_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_worker_sh_t *w);
static ngx_uint_t ngx_mcp_lease_reasons_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_uint_t entitled);
static ngx_uint_t ngx_mcp_lease_stale_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);


ngx_int_t
ngx_mcp_lease_ensure(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    return ngx_mcp_lease_ensure_shared(zone, key, NULL);
}


ngx_int_t
ngx_mcp_lease_ensure_shared(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_lease_share_t *share)
{
    ngx_int_t            rc;
    ngx_str_t            parts[2];
    ngx_mcp_stage_t      stage;
    ngx_mcp_lease_sh_t  *l;

    static u_char  texts[NGX_MCP_LEASE_TEXTS];

    if (key->len > NGX_MCP_LEASE_KEY_MAX) {
        return NGX_ERROR;
    }

    parts[0] = *key;
    parts[1].data = texts;
    parts[1].len = NGX_MCP_LEASE_TEXTS;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LEASE, parts, 2);

    ngx_mcp_zone_lock(zone);

    l = ngx_mcp_lease_find_locked(zone, key);

    if (l == NULL && stage.blocks > NGX_MCP_BLOCKS_SMALL) {
        ngx_mcp_zone_unlock(zone);

        if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_mcp_zone_lock(zone);

        l = ngx_mcp_lease_find_locked(zone, key);
    }

    rc = NGX_OK;

    if (l == NULL) {
        rc = share ? ngx_mcp_lease_share_locked(zone, share) : NGX_OK;

        if (rc == NGX_OK) {
            rc = ngx_mcp_lease_make_locked(zone, key, &stage, share);
        }

    } else {
        ngx_mcp_touch(zone, l);
        l->free_since = ngx_current_msec;
    }

    ngx_mcp_stage_drop_locked(zone, &stage);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_mcp_lease_sh_t *
ngx_mcp_lease_find_locked(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    uint32_t             hash;
    ngx_mcp_lease_sh_t  *l;

    hash = (uint32_t) ngx_mcp_hash(zone, key, NULL);

    for (l = ngx_mcp_hash_first_locked(zone, NGX_MCP_LEASE, hash);
         l;
         l = ngx_mcp_hash_next_locked(zone, l))
    {
        if (ngx_mcp_text_equal(zone, l, 0, l->key_len, key)) {
            return l;
        }
    }

    return NULL;
}


/*
 * Checks whether the owner and the user may have one more lease.  NGX_OK, or a
 * return code of ngx_mcp_lease_ensure_shared().  All leases are examined, as
 * there are NGX_MCP_LEASES_MAX at most.
 */

static ngx_int_t
ngx_mcp_lease_share_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_share_t *share)
{
    uint32_t             n;
    ngx_uint_t           owners, users;
    ngx_mcp_lease_sh_t  *l;

    owners = 0;
    users = 0;

    for (n = zone->sh->leases.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        users += (l->user == share->user);
        owners += (l->rec.owner.block == share->owner.block
                   && l->rec.owner.gen == share->owner.gen);
    }

    if (users >= share->user_max) {
        return NGX_BUSY;
    }

    return (owners >= share->owner_max) ? NGX_DECLINED : NGX_OK;
}


/* makes a lease; all leases together take at most an eighth of the zone */

static ngx_int_t
ngx_mcp_lease_make_locked(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_stage_t *stage, ngx_mcp_lease_share_t *share)
{
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_lease_sh_t  *l;

    sh = zone->sh;

    if (sh->nleases >= NGX_MCP_LEASES_MAX
        || sh->used[NGX_MCP_LEASE] + stage->blocks > sh->blocks / 8
        || ngx_mcp_reserve_locked(zone, stage->payer, stage->room,
                                  ngx_mcp_stage_needs(stage)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    l = ngx_mcp_make_locked(zone, stage);

    l->key_len = (uint16_t) key->len;
    l->serial = ++sh->stamp;
    l->changed = l->serial;
    l->free_since = ngx_current_msec;
    l->rec.hash = (uint32_t) ngx_mcp_hash(zone, key, NULL);

    if (share) {
        l->user = share->user;
        l->rec.owner = share->owner;
    }

    ngx_mcp_commit_locked(zone, l, NGX_MCP_LEASE);

    stage->head = 0;

    ngx_mcp_touch(zone, &sh->nleases);
    sh->nleases++;

    ngx_mcp_hash_insert_locked(zone, l);
    ngx_mcp_list_append(zone, &sh->leases, ngx_mcp_number(zone, l),
                        NGX_MCP_LINKS);
    ngx_mcp_list_append(zone, &sh->news, ngx_mcp_number(zone, l),
                        offsetof(ngx_mcp_lease_sh_t, news));

    ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_LEASES);

    return NGX_OK;
}


void
ngx_mcp_lease_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    uint32_t            n;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;
    n = ngx_mcp_number(zone, l);

    ngx_mcp_list_remove(zone, &sh->leases, n, NGX_MCP_LINKS);
    ngx_mcp_list_remove(zone, &sh->news, n,
                        offsetof(ngx_mcp_lease_sh_t, news));
    ngx_mcp_hash_remove_locked(zone, l);

    ngx_mcp_touch(zone, &sh->nleases);
    sh->nleases--;

    ngx_mcp_drop_locked(zone, l);
}


ngx_int_t
ngx_mcp_lease_claim(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool,
    ngx_mcp_lease_t *lease, ngx_mcp_lease_checkpoint_t *checkpoint)
{
    ngx_int_t             rc;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    l = ngx_mcp_lease_find_locked(zone, key);

    if (l == NULL || !ngx_mcp_lease_entitled_locked(zone)
        || !ngx_mcp_lease_free_locked(zone, l))
    {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    rc = ngx_mcp_text_copy(zone, l, l->key_len, l->id_len, pool,
                           &checkpoint->id);

    if (rc == NGX_OK) {
        rc = ngx_mcp_text_copy(zone, l, l->key_len + NGX_MCP_LEASE_ID_MAX,
                               l->note_len, pool, &checkpoint->note);
    }

    if (rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    ngx_mcp_touch(zone, l);
    ngx_mcp_lease_overlap_pass_locked(zone, l);

    r = &l->holder;

    r->worker = (uint32_t) zone->worker;
    r->nonce = ngx_mcp_slot(zone, zone->worker)->nonce;
    r->epoch = zone->epoch;
    r->connected = 0;
    r->claimed = ngx_current_msec;
    r->deadline = ngx_current_msec + NGX_MCP_LEASE_TIME;
    r->fence++;

    l->rec.flags &= ~NGX_MCP_LEASE_FAILED;
    l->active = ngx_current_msec;

    checkpoint->pause = (ngx_msec_t) l->pause_until;
    checkpoint->overlap = (l->previous.nonce != 0);
    lease->ref = ngx_mcp_ref(zone, l);
    lease->fence = r->fence;

    if (l->rec.flags & (NGX_MCP_LEASE_SIGNAL|NGX_MCP_LEASE_MISSED)) {
        ngx_mcp_lease_news_locked(zone, l, zone->worker);
    }

    ngx_mcp_zone_unlock(zone);

    ngx_log_debug4(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp lease \"%V\" claimed, fence %uD, id \"%V\"%s",
                   key, lease->fence, &checkpoint->id,
                   checkpoint->overlap ? ", overlap" : "");

    return NGX_OK;
}


/* returns whether there is a reader whose worker has not died */

static ngx_uint_t
ngx_mcp_lease_live_locked(ngx_mcp_zone_t *zone, ngx_mcp_reader_sh_t *r)
{
    ngx_mcp_worker_sh_t  *w;

    if (r->nonce == 0) {
        return 0;
    }

    w = ngx_mcp_slot(zone, r->worker);

    return w->state == NGX_MCP_WORKER_LIVE && w->nonce == r->nonce;
}


/* returns whether the reader's worker is alive and has renewed the lease */

static ngx_uint_t
ngx_mcp_lease_renewed_locked(ngx_mcp_zone_t *zone, ngx_mcp_reader_sh_t *r)
{
    return ngx_mcp_lease_live_locked(zone, r)
           && r->deadline >= ngx_current_msec;
}


/*
 * Returns whether this worker may claim leases: it belongs to the newest
 * configuration and does not quit.
 */

static ngx_uint_t
ngx_mcp_lease_entitled_locked(ngx_mcp_zone_t *zone)
{
    return zone->worker != NGX_MCP_NO_WORKER
           && !ngx_mcp_slot(zone, zone->worker)->quitting
           && !ngx_mcp_lease_newer_locked(zone);
}


static ngx_uint_t
ngx_mcp_lease_newer_locked(ngx_mcp_zone_t *zone)
{
    ngx_uint_t            i;
    ngx_mcp_worker_sh_t  *w;

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_slot(zone, i);

        if (w->state == NGX_MCP_WORKER_LIVE && !w->quitting
            && w->epoch > zone->epoch)
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_mcp_lease_newer(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  newer;

    ngx_mcp_zone_lock(zone);
    newer = ngx_mcp_lease_newer_locked(zone);
    ngx_mcp_zone_unlock(zone);

    return newer;
}


/* returns whether the lease may be claimed by a worker that may claim leases */

static ngx_uint_t
ngx_mcp_lease_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (!ngx_mcp_lease_live_locked(zone, &l->holder)) {
        return 1;
    }

    if (l->holder.deadline < ngx_current_msec) {

        /* if this worker was paused, the holder probably was paused as well */

        return !ngx_mcp_zone_late(zone)
               && (zone->resumed == 0
                   || ngx_current_msec - zone->resumed
                      > NGX_MCP_HEARTBEAT_PAUSE);
    }

    if (l->holder.epoch >= zone->epoch) {
        return 0;
    }

    /* an overlap has to end before the next one begins */

    return !(l->holder.connected && ngx_mcp_lease_previous_locked(zone, l));
}


/*
 * Takes the lease from its holder, so that a new holder can get it.  If an
 * overlap can begin, the old holder becomes the previous reader; otherwise it
 * loses the lease.
 */

static void
ngx_mcp_lease_overlap_pass_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    uint32_t              earlier;
    ngx_mcp_reader_sh_t  *r;

    r = &l->holder;

    if (ngx_mcp_lease_previous_locked(zone, l)) {

        /*
         * An overlap is under way: its previous reader goes on reading until
         * the new holder is connected, and the old holder loses the lease.
         */

        l->joined = 0;
        l->match_until = ngx_current_msec + NGX_MCP_LEASE_MATCH_TIME;

        ngx_mcp_lease_ring_former_locked(zone, l, r);
        return;
    }

    earlier = (ngx_current_msec < l->match_until) ? l->overlap : 0;

    l->joined = 0;
    l->match_until = 0;

    if (ngx_mcp_lease_renewed_locked(zone, r) && r->connected
        && l->id_len == 0)
    {
        /*
         * The holder may still read texts that the previous reader consumed in
         * the last overlap.
         */

        l->earlier = earlier;

        l->overlap = r->fence + 1;
        l->match_until = ngx_current_msec + NGX_MCP_LEASE_MATCH_TIME;

        l->previous = *r;

        return;
    }

    ngx_mcp_lease_ring_former_locked(zone, l, r);
}


ngx_mcp_reader_sh_t *
ngx_mcp_lease_reader_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_mcp_lease_sh_t **l)
{
    *l = ngx_mcp_record(zone, lease->ref, NGX_MCP_LEASE);

    if (*l == NULL) {
        return NULL;
    }

    if ((*l)->holder.nonce && (*l)->holder.fence == lease->fence) {
        return &(*l)->holder;
    }

    if (ngx_mcp_lease_previous_locked(zone, *l)
        && (*l)->previous.fence == lease->fence)
    {
        return &(*l)->previous;
    }

    return NULL;
}


ngx_mcp_reader_sh_t *
ngx_mcp_lease_previous_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (l->previous.nonce == 0) {
        return NULL;
    }

    if (l->joined == 0
        || ngx_current_msec < l->joined + NGX_MCP_LEASE_GRACE)
    {
        if (ngx_mcp_lease_renewed_locked(zone, &l->previous)) {
            return &l->previous;
        }

        ngx_mcp_lease_missed_locked(zone, l);
    }

    ngx_mcp_lease_ring_former_locked(zone, l, &l->previous);
    ngx_mcp_lease_end_locked(zone, l, &l->previous);

    return NULL;
}


/*
 * Notes that the previous reader died in the overlap, so that events that it
 * had not read are lost.  If the holder is not connected, this is not needed:
 * its next connection reports lost events anyway.
 */

static void
ngx_mcp_lease_missed_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (l->joined == 0 || !l->holder.connected || l->holder.nonce == 0
        || ngx_current_msec >= l->joined + NGX_MCP_LEASE_GRACE)
    {
        return;
    }

    ngx_mcp_touch(zone, l);
    l->rec.flags |= NGX_MCP_LEASE_MISSED;
    ngx_mcp_lease_news_locked(zone, l, l->holder.worker);
}


/* takes the lease from a reader */

static void
ngx_mcp_lease_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_mcp_reader_sh_t *r)
{
    ngx_mcp_touch(zone, l);

    r->nonce = 0;
    r->connected = 0;

    if (r == &l->holder) {
        l->free_since = ngx_current_msec;
    }
}


ngx_uint_t
ngx_mcp_lease_owned(ngx_mcp_lease_sh_t *l, ngx_uint_t worker, uint32_t nonce)
{
    return (l->previous.nonce == nonce && l->previous.worker == worker)
           || (l->holder.nonce == nonce && l->holder.worker == worker);
}


void
ngx_mcp_lease_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t worker, uint32_t nonce)
{
    if (l->previous.nonce == nonce && l->previous.worker == worker) {

        if (ngx_mcp_slot(zone, worker)->state == NGX_MCP_WORKER_DEAD) {
            ngx_mcp_lease_missed_locked(zone, l);
        }

        ngx_mcp_lease_end_locked(zone, l, &l->previous);
    }

    if (l->holder.nonce == nonce && l->holder.worker == worker) {
        ngx_mcp_lease_end_locked(zone, l, &l->holder);
        ngx_mcp_lease_change_locked(zone, l);
    }
}


ngx_int_t
ngx_mcp_lease_renew(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_int_t             rc;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r) {
        ngx_mcp_touch(zone, r);
        r->deadline = ngx_current_msec + NGX_MCP_LEASE_TIME;
    }

    rc = NGX_DECLINED;

    if (r) {
        rc = (r == &l->holder) ? NGX_OK : NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_lease_connected(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_uint_t *gap)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r, *previous;

    *gap = 0;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    if (r == &l->holder) {
        previous = ngx_mcp_lease_previous_locked(zone, l);
        ngx_mcp_touch(zone, l);

        if (previous) {
            l->joined = ngx_current_msec;
            l->match_until = l->joined + NGX_MCP_LEASE_MATCH_TIME;

        } else {
            *gap = (!r->connected && l->rec.flags & NGX_MCP_LEASE_READ);
        }

        r->connected = 1;
        l->rec.flags &= ~NGX_MCP_LEASE_FAILED;
        l->rec.flags |= NGX_MCP_LEASE_READ;
        l->active = ngx_current_msec;
        l->pause_until = 0;

        ngx_mcp_lease_settle_locked(zone, l);
    }

    ngx_mcp_zone_unlock(zone);

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp lease connected, fence %uD%s", lease->fence,
                   *gap ? ", gap" : "");

    return NGX_OK;
}


void
ngx_mcp_lease_disconnected(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r) {
        ngx_mcp_touch(zone, r);
        r->connected = 0;

        if (r == &l->previous) {
            ngx_mcp_lease_ring_former_locked(zone, l, r);
            ngx_mcp_lease_end_locked(zone, l, r);
        }
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_lease_overlap_end(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r && r == &l->holder && ngx_mcp_lease_previous_locked(zone, l)) {
        ngx_mcp_lease_ring_former_locked(zone, l, &l->previous);
        ngx_mcp_lease_end_locked(zone, l, &l->previous);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_lease_clear_id(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r && r == &l->holder) {
        ngx_mcp_touch(zone, &l->id_len);
        l->id_len = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_lease_release(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r) {
        ngx_mcp_lease_lost_locked(zone, l, r->worker, r->nonce);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_lease_drop(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_int_t             rc;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r && r == &l->previous) {
        ngx_mcp_lease_lost_locked(zone, l, r->worker, r->nonce);

    } else if (r) {
        rc = (l->rec.flags & NGX_MCP_LEASE_SIGNAL) ? NGX_AGAIN : NGX_OK;

        ngx_mcp_lease_drop_locked(zone, l);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_lease_note(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_str_t *note)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    if (note->len > NGX_MCP_LEASE_NOTE_MAX) {
        return NGX_DECLINED;
    }

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r && r == &l->holder) {
        ngx_mcp_text_store(zone, l, l->key_len + NGX_MCP_LEASE_ID_MAX,
                           note->data, note->len);

        ngx_mcp_touch(zone, &l->note_len);
        l->note_len = (uint32_t) note->len;
    }

    ngx_mcp_zone_unlock(zone);

    return r ? NGX_OK : NGX_DECLINED;
}


void
ngx_mcp_lease_pause(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_msec_t until)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    ngx_mcp_zone_lock(zone);

    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    if (r && r == &l->holder) {
        ngx_mcp_touch(zone, &l->pause_until);
        l->pause_until = until;
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_lease_signal(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_mcp_lease_sh_t  *l;

    ngx_mcp_zone_lock(zone);

    l = ngx_mcp_lease_find_locked(zone, key);

    /* a signal stays until a holder handles it; claim() checks for a signal */

    if (l && !(l->rec.flags & NGX_MCP_LEASE_SIGNAL)) {
        ngx_mcp_touch(zone, l);
        l->rec.flags |= NGX_MCP_LEASE_SIGNAL;

        if (l->holder.nonce) {
            ngx_mcp_lease_news_locked(zone, l, l->holder.worker);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return l ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_lease_await(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_mcp_ref_t *ref)
{
    ngx_int_t            rc;
    ngx_mcp_lease_sh_t  *l;

    ngx_mcp_zone_lock(zone);

    l = ngx_mcp_lease_find_locked(zone, key);

    if (l) {
        *ref = ngx_mcp_ref(zone, l);
    }

    rc = ngx_mcp_lease_await_locked(zone, l);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_lease_settled(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_int_t  rc;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_lease_await_locked(zone, ngx_mcp_record(zone, ref,
                                                         NGX_MCP_LEASE));

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_int_t
ngx_mcp_lease_await_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    ngx_int_t  rc;

    rc = l ? ngx_mcp_lease_state_locked(zone, l) : NGX_DECLINED;

    if (rc == NGX_AGAIN) {
        ngx_mcp_touch(zone, &l->rec);
        l->rec.flags |= NGX_MCP_LEASE_AWAITED;
    }

    return rc;
}


static ngx_int_t
ngx_mcp_lease_state_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (l->holder.connected && ngx_mcp_lease_renewed_locked(zone, &l->holder)) {
        return NGX_OK;
    }

    /* the previous reader reads until the holder does */

    if (ngx_mcp_lease_previous_locked(zone, l)) {
        return NGX_OK;
    }

    return (l->rec.flags & NGX_MCP_LEASE_FAILED) ? NGX_DECLINED : NGX_AGAIN;
}


/* wakes all workers, as some wait until the lease is settled */

static void
ngx_mcp_lease_settle_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (l->rec.flags & NGX_MCP_LEASE_AWAITED) {
        ngx_mcp_lease_change_locked(zone, l);
        ngx_mcp_touch(zone, &l->rec);
        l->rec.flags &= ~NGX_MCP_LEASE_AWAITED;
    }
}


ngx_int_t
ngx_mcp_lease_failed(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease)
{
    ngx_int_t            rc;
    ngx_mcp_lease_sh_t  *l;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    l = ngx_mcp_record(zone, lease->ref, NGX_MCP_LEASE);

    if (l && (lease->fence == 0 || lease->fence == l->holder.fence)
        && ngx_mcp_lease_state_locked(zone, l) == NGX_AGAIN)
    {
        ngx_mcp_touch(zone, &l->rec);
        l->rec.flags |= NGX_MCP_LEASE_FAILED;
        ngx_mcp_lease_settle_locked(zone, l);

        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_lease_info(ngx_mcp_zone_t *zone, ngx_uint_t n, ngx_pool_t *pool,
    ngx_mcp_lease_info_t *info)
{
    uint32_t             i;
    ngx_int_t            rc;
    ngx_mcp_lease_sh_t  *l;

    ngx_mcp_zone_lock(zone);

    l = n ? ngx_mcp_record(zone, info->ref, NGX_MCP_LEASE) : NULL;

    if (l) {
        i = l->rec.links.next;

    } else {
        for (i = zone->sh->leases.head; i && n; n--) {
            l = ngx_mcp_block(zone, i);
            i = l->rec.links.next;
        }
    }

    if (i == 0) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    l = ngx_mcp_block(zone, i);

    info->ref = ngx_mcp_ref(zone, l);
    info->holder = 0;
    info->held = 0;
    info->silent = l->active ? ngx_current_msec - (ngx_msec_t) l->active : 0;
    info->fence = l->holder.fence;
    info->consumed = l->consumed;

    if (ngx_mcp_lease_renewed_locked(zone, &l->holder)) {
        info->holder = ngx_mcp_slot(zone, l->holder.worker)->pid;
        info->held = ngx_current_msec - (ngx_msec_t) l->holder.claimed;
    }

    rc = ngx_mcp_text_copy(zone, l, 0, l->key_len, pool, &info->key);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* wakes the worker of a reader that lost the lease */

static void
ngx_mcp_lease_ring_former_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_mcp_reader_sh_t *r)
{
    ngx_mcp_worker_sh_t  *w;

    if (r->nonce == 0) {
        return;
    }

    w = ngx_mcp_slot(zone, r->worker);

    if (w->state != NGX_MCP_WORKER_LIVE || w->nonce != r->nonce) {
        return;
    }

    ngx_mcp_touch(zone, l);
    l->former = r->worker;
    l->former_nonce = r->nonce;

    ngx_mcp_lease_news_locked(zone, l, r->worker);
}


/* notes a change of the lease, and wakes all workers */

static void
ngx_mcp_lease_change_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    ngx_mcp_lease_news_locked(zone, l, NGX_MCP_NO_WORKER);
    ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_LEASES);
}


static void
ngx_mcp_lease_news_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t worker)
{
    uint32_t  n;

    n = ngx_mcp_number(zone, l);

    ngx_mcp_list_remove(zone, &zone->sh->news, n,
                        offsetof(ngx_mcp_lease_sh_t, news));

    ngx_mcp_touch(zone, l);
    l->changed = ++zone->sh->stamp;

    ngx_mcp_list_append(zone, &zone->sh->news, n,
                        offsetof(ngx_mcp_lease_sh_t, news));

    ngx_mcp_worker_ring_locked(zone, worker, NGX_MCP_RING_LEASES);
}


void
ngx_mcp_lease_ring_locked(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  i;

    if (zone->sh->nleases == 0) {
        return;
    }

    for (i = 0; i < zone->sh->top; i++) {
        ngx_mcp_slot(zone, i)->lease_seen = 0;
    }

    ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_LEASES);
}


ngx_int_t
ngx_mcp_lease_drain(ngx_mcp_zone_t *zone)
{
    u_char      buf[NGX_MCP_LEASE_KEY_MAX];
    ngx_int_t   rc;
    ngx_str_t   key;
    ngx_uint_t  i, reasons;

    for (i = 0; i < NGX_MCP_LEASE_TURN; i++) {
        key.data = buf;

        rc = ngx_mcp_lease_next(zone, &key, &reasons);

        if (rc == NGX_DONE) {
            return NGX_OK;
        }

        if (rc == NGX_OK) {
            zone->schema->lease(zone, &key, reasons);
        }
    }

    return NGX_AGAIN;
}


/*
 * Finds the next lease for which schema->lease() has to be called in this
 * worker.  NGX_OK: *key and *reasons are set; NGX_AGAIN: call again; NGX_DONE:
 * there are no more.
 */

static ngx_int_t
ngx_mcp_lease_next(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t *reasons)
{
    uint32_t              n, next;
    ngx_int_t             rc;
    ngx_uint_t            i, entitled;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_worker_sh_t  *w;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return NGX_DONE;
    }

    w = ngx_mcp_slot(zone, zone->worker);

    ngx_mcp_zone_lock(zone);

    entitled = ngx_mcp_lease_entitled_locked(zone);

    n = ngx_mcp_lease_next_news_locked(zone, w);
    rc = NGX_DONE;

    for (i = 0; n; i++, n = next) {

        if (i == NGX_MCP_LEASE_PASS) {
            rc = NGX_AGAIN;
            break;
        }

        ngx_mcp_step_locked(zone);

        l = ngx_mcp_block(zone, n);
        next = l->news.next;

        w->lease_seen = l->changed;
        w->lease_block = n;

        if (ngx_mcp_lease_stale_locked(zone, l)) {
            ngx_mcp_lease_drop_locked(zone, l);
            continue;
        }

        *reasons = ngx_mcp_lease_reasons_locked(zone, l, entitled);

        if (*reasons) {
            key->len = l->key_len;
            ngx_mcp_text_read(zone, l, 0, key->data, key->len);
            rc = NGX_OK;
            break;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* returns the block of the first lease whose change this worker has not seen */

static uint32_t
ngx_mcp_lease_next_news_locked(ngx_mcp_zone_t *zone, ngx_mcp_worker_sh_t *w)
{
    uint32_t             n, prev;
    ngx_mcp_lease_sh_t  *l;

    if (w->lease_seen == 0) {
        return zone->sh->news.head;
    }

    l = ngx_mcp_block(zone, w->lease_block);

    if (l->rec.block.type == NGX_MCP_LEASE && l->changed == w->lease_seen) {
        return l->news.next;
    }

    n = 0;

    for (prev = zone->sh->news.tail; prev; prev = l->news.prev) {
        l = ngx_mcp_block(zone, prev);

        if (l->changed <= w->lease_seen) {
            break;
        }

        n = prev;
    }

    return n;
}


static ngx_uint_t
ngx_mcp_lease_reasons_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t entitled)
{
    uint32_t    nonce;
    ngx_uint_t  reasons;

    reasons = 0;
    nonce = ngx_mcp_slot(zone, zone->worker)->nonce;

    (void) ngx_mcp_lease_previous_locked(zone, l);

    ngx_mcp_touch(zone, l);

    if (l->former_nonce == nonce && l->former == zone->worker) {
        l->former_nonce = 0;
        reasons |= NGX_MCP_LEASE_LOST;
    }

    if (zone->awaits && ngx_mcp_lease_state_locked(zone, l) != NGX_AGAIN) {
        reasons |= NGX_MCP_LEASE_SETTLED;
    }

    if (l->holder.nonce == nonce && l->holder.worker == zone->worker) {

        if (l->rec.flags & NGX_MCP_LEASE_SIGNAL) {
            l->rec.flags &= ~NGX_MCP_LEASE_SIGNAL;
            reasons |= NGX_MCP_LEASE_SIGNALED;
        }

        if (l->rec.flags & NGX_MCP_LEASE_MISSED) {
            l->rec.flags &= ~NGX_MCP_LEASE_MISSED;
            reasons |= NGX_MCP_LEASE_GAP;
        }

        return reasons;
    }

    if (entitled && ngx_mcp_lease_free_locked(zone, l)) {
        reasons |= NGX_MCP_LEASE_FREE;
    }

    return reasons;
}


/*
 * Returns whether the lease has to be dropped, as it had no reader for
 * NGX_MCP_LEASE_KEEP ms.
 */

static ngx_uint_t
ngx_mcp_lease_stale_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (l->previous.nonce || ngx_mcp_lease_renewed_locked(zone, &l->holder)) {
        return 0;
    }

    return ngx_max(l->free_since, l->holder.deadline) + NGX_MCP_LEASE_KEEP
           < ngx_current_msec;
}
