
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/*
 * Most interests dropped under one hold of the lock, of those that need no
 * request to the upstream.
 */
#define NGX_MCP_INTEREST_DROPS   64

/*
 * Interests read under one hold of the lock at first; the number is doubled
 * when the list changes meanwhile.
 */
#define NGX_MCP_INTEREST_PART    32

/* interests skipped in a search under one hold of the lock */
#define NGX_MCP_INTEREST_PASSED  (2 * NGX_MCP_INTEREST_JOBS)


#define ngx_mcp_interest_hash(us, uri)                                        \
    ((uint32_t) (uri) ^ ((us).block * 2654435761U))

#define ngx_mcp_interest_owner(zone, in)                                      \
    ((ngx_mcp_upstream_session_sh_t *)                                        \
     ngx_mcp_block(zone, (in)->rec.owner.block))


static ngx_mcp_interest_sh_t *ngx_mcp_interest_find_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t us, ngx_str_t *uri, uint64_t hash);
static void ngx_mcp_interest_order_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_interest_sh_t *in);
static void ngx_mcp_interest_unlink_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, uint32_t n);
static void ngx_mcp_interest_free_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_interest_sh_t *in);
static uint32_t ngx_mcp_interest_serial(ngx_mcp_upstream_session_sh_t *us);
static ngx_uint_t ngx_mcp_interest_due(ngx_mcp_interest_sh_t *in,
    uint32_t serial);


static ngx_mcp_interest_sh_t *
ngx_mcp_interest_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t us,
    ngx_str_t *uri, uint64_t hash)
{
    uint32_t                h;
    ngx_mcp_interest_sh_t  *in;

    h = ngx_mcp_interest_hash(us, hash);

    for (in = ngx_mcp_hash_first_locked(zone, NGX_MCP_INTEREST, h);
         in;
         in = ngx_mcp_hash_next_locked(zone, in))
    {
        if (in->rec.owner.block == us.block && in->rec.owner.gen == us.gen
            && in->uri == hash
            && ngx_mcp_text_equal(zone, in, 0, in->rec.len, uri))
        {
            return in;
        }
    }

    return NULL;
}


/*
 * Finds or makes an interest, and counts one more subscription that uses it.
 * The caller has reserved room.
 */

ngx_mcp_interest_sh_t *
ngx_mcp_interest_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_mcp_stage_t *stage, uint64_t hash)
{
    ngx_mcp_ref_t           ref;
    ngx_mcp_interest_sh_t  *in;

    ref = ngx_mcp_ref(zone, us);
    in = ngx_mcp_interest_find_locked(zone, ref, stage->parts, hash);

    if (in == NULL) {
        in = ngx_mcp_make_locked(zone, stage);
        in->rec.owner = ref;
        in->rec.hash = ngx_mcp_interest_hash(ref, hash);
        in->uri = hash;
        in->serial = NGX_MCP_INTEREST_NEVER;

        ngx_mcp_commit_locked(zone, in, NGX_MCP_INTEREST);

        ngx_mcp_hash_insert_locked(zone, in);
        ngx_mcp_list_prepend(zone, &us->interests, ngx_mcp_number(zone, in),
                             NGX_MCP_LINKS);
    }

    ngx_mcp_touch(zone, in);

    if (in->count++ == 0) {

        /*
         * An unsubscribe request may be under way, so that the resource has to
         * be subscribed to again.
         */

        if (in->asker) {
            in->serial = NGX_MCP_INTEREST_NEVER;
        }

        in->state = (in->serial == ngx_mcp_interest_serial(us))
                    ? NGX_MCP_INTEREST_MADE : NGX_MCP_INTEREST_WANTED;

        ngx_mcp_interest_order_locked(zone, in);
    }

    if (in->state == NGX_MCP_INTEREST_WANTED) {
        ngx_mcp_shared_ring_locked(zone, us);
    }

    return in;
}


ngx_int_t
ngx_mcp_interest_acquire(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t call, ngx_str_t *uri)
{
    uint64_t                        hash;
    ngx_int_t                       rc;
    ngx_mcp_stage_t                 stage;
    ngx_mcp_call_sh_t              *c;
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_upstream_session_sh_t  *us;

    if (uri->len > NGX_MCP_URI_MAX) {
        return NGX_DECLINED;
    }

    hash = ngx_mcp_hash(zone, uri, NULL);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_INTEREST, uri, 1);
    stage.room = NGX_MCP_ROOM_SHARE;
    stage.payer = call;

    ngx_mcp_zone_lock(zone);

    rc = NGX_OK;

    if (ngx_mcp_interest_find_locked(zone, shared, uri, hash) == NULL) {
        rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    }

    us = ngx_mcp_upstream_session_locked(zone, shared);
    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (us == NULL || c == NULL || c->interest.block
        || !(c->task.rec.flags & NGX_MCP_CALL_RUNNING))
    {
        rc = NGX_DECLINED;
    }

    if (rc == NGX_OK) {
        in = ngx_mcp_interest_add_locked(zone, us, &stage, hash);

        ngx_mcp_touch(zone, c);
        c->interest = ngx_mcp_ref(zone, in);
    }

    ngx_mcp_zone_unlock(zone);

    return rc == NGX_OK ? NGX_OK : NGX_DECLINED;
}


/* moves an interest with work to do to the front, another one to the end */

static void
ngx_mcp_interest_order_locked(ngx_mcp_zone_t *zone, ngx_mcp_interest_sh_t *in)
{
    uint32_t                        n;
    ngx_mcp_upstream_session_sh_t  *us;

    n = ngx_mcp_number(zone, in);
    us = ngx_mcp_interest_owner(zone, in);

    ngx_mcp_interest_unlink_locked(zone, us, n);

    if (ngx_mcp_interest_due(in, ngx_mcp_interest_serial(us))) {
        ngx_mcp_list_prepend(zone, &us->interests, n, NGX_MCP_LINKS);

    } else {
        ngx_mcp_list_append(zone, &us->interests, n, NGX_MCP_LINKS);
    }
}


static void
ngx_mcp_interest_unlink_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, uint32_t n)
{
    ngx_mcp_touch(zone, &us->moves);
    us->moves++;

    ngx_mcp_list_remove(zone, &us->interests, n, NGX_MCP_LINKS);
}


static void
ngx_mcp_interest_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_interest_sh_t *in)
{
    ngx_mcp_interest_unlink_locked(zone, ngx_mcp_interest_owner(zone, in),
                                   ngx_mcp_number(zone, in));
    ngx_mcp_hash_remove_locked(zone, in);
    ngx_mcp_drop_locked(zone, in);
}


ngx_int_t
ngx_mcp_interest_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    if (us->interests.head == 0) {
        return NGX_DECLINED;
    }

    ngx_mcp_interest_free_locked(zone,
                                 ngx_mcp_block(zone, us->interests.head));
    return NGX_OK;
}


void
ngx_mcp_interest_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t interest)
{
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_upstream_session_sh_t  *us;

    in = ngx_mcp_record(zone, interest, NGX_MCP_INTEREST);

    if (in == NULL) {
        return;
    }

    ngx_mcp_touch(zone, in);

    if (--in->count) {
        return;
    }

    us = ngx_mcp_interest_owner(zone, in);

    if (in->asker == 0 && (in->serial == NGX_MCP_INTEREST_NEVER
                           || in->state == NGX_MCP_INTEREST_REFUSED))
    {
        ngx_mcp_interest_free_locked(zone, in);

    } else {
        ngx_mcp_interest_order_locked(zone, in);
    }

    ngx_mcp_shared_ring_locked(zone, us);
}


void
ngx_mcp_interest_updated(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri)
{
    ngx_mcp_interest_sh_t  *in;

    ngx_mcp_zone_lock(zone);

    in = ngx_mcp_interest_find_locked(zone, shared, uri,
                                      ngx_mcp_hash(zone, uri, NULL));
    if (in) {
        ngx_mcp_touch(zone, in);
        in->updates++;
        in->when = ngx_current_msec;
        in->separate = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


/* returns the serial of the open session at the upstream; 0: none is open */

static uint32_t
ngx_mcp_interest_serial(ngx_mcp_upstream_session_sh_t *us)
{
    return us->state == NGX_MCP_UPSTREAM_SESSION_MADE ? us->serial : 0;
}


static ngx_uint_t
ngx_mcp_interest_due(ngx_mcp_interest_sh_t *in, uint32_t serial)
{
    return in->count == 0 || in->serial != serial;
}


ngx_int_t
ngx_mcp_interest_next(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    uint32_t fence, ngx_pool_t *pool, ngx_mcp_interest_job_t *job)
{
    uint32_t                        n, next, serial;
    ngx_int_t                       rc;
    ngx_uint_t                      passed, drops;
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_upstream_session_sh_t  *us;

    rc = NGX_DECLINED;
    passed = 0;
    drops = 0;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, shared);

    if (us == NULL || us->fence != fence) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    serial = ngx_mcp_interest_serial(us);

    for (n = us->interests.head; n; n = next) {
        in = ngx_mcp_block(zone, n);
        next = in->rec.links.next;

        if (in->asker == fence || !ngx_mcp_interest_due(in, serial)) {

            if (++passed == NGX_MCP_INTEREST_PASSED) {
                break;
            }

            continue;
        }

        if (in->count == 0 && in->serial != serial) {

            /* the subscription at the upstream has ended with its session */

            ngx_mcp_interest_free_locked(zone, in);
            ngx_mcp_step_locked(zone);

            if (++drops == NGX_MCP_INTEREST_DROPS) {
                ngx_mcp_shared_ring_locked(zone, us);
                break;
            }

            continue;
        }

        rc = ngx_mcp_text_copy(zone, in, 0, in->rec.len, pool, &job->uri);

        if (rc == NGX_OK) {
            job->ref = ngx_mcp_ref(zone, in);
            job->subscribe = (in->count != 0);
            job->again = (job->subscribe
                          && in->state == NGX_MCP_INTEREST_MADE);
            ngx_mcp_touch(zone, in);
            in->asker = fence;
        }

        break;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_interest_done(ngx_mcp_zone_t *zone, uint32_t fence,
    ngx_mcp_interest_job_t *job, ngx_int_t rc, ngx_uint_t serial)
{
    ngx_mcp_interest_sh_t  *in;

    ngx_mcp_zone_lock(zone);

    in = ngx_mcp_record(zone, job->ref, NGX_MCP_INTEREST);

    if (in == NULL || in->asker != fence) {
        ngx_mcp_zone_unlock(zone);
        return;
    }

    ngx_mcp_touch(zone, in);
    in->asker = 0;

    if (rc == NGX_BUSY) {
        ngx_mcp_interest_order_locked(zone, in);
        ngx_mcp_zone_unlock(zone);
        return;
    }

    if (!job->subscribe || (in->count == 0 && rc != NGX_OK)) {
        in->serial = NGX_MCP_INTEREST_NEVER;

    } else if (rc != NGX_AGAIN || in->state != NGX_MCP_INTEREST_MADE) {

        /*
         * The serial is also noted after a refusal: the subscription is then
         * requested again for the next session at the upstream.
         */

        in->serial = (uint32_t) serial;
    }

    if (job->subscribe && in->state != NGX_MCP_INTEREST_MADE && in->count) {
        in->state = (rc == NGX_OK) ? NGX_MCP_INTEREST_MADE
                                   : NGX_MCP_INTEREST_REFUSED;

        ngx_mcp_worker_ring_all_keys_locked(zone, NGX_MCP_RING_INTERESTS,
                                      NGX_MCP_RING_KEY(in->rec.owner.block));
    }

    if (in->count == 0 && in->serial == NGX_MCP_INTEREST_NEVER) {
        ngx_mcp_interest_free_locked(zone, in);

    } else {
        ngx_mcp_interest_order_locked(zone, in);
    }

    ngx_mcp_zone_unlock(zone);
}


/*
 * Reads a part of the interests under each hold of the lock.  If an interest
 * was moved in the list meanwhile, the reading begins again, with twice as many
 * under each hold, so that it comes to an end.
 */

ngx_int_t
ngx_mcp_interest_uris(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_uint_t *serial, ngx_uint_t max, ngx_pool_t *pool, ngx_str_t **uris,
    ngx_uint_t *nuris)
{
    uint32_t                        n, moves;
    ngx_int_t                       rc;
    ngx_str_t                      *more;
    ngx_uint_t                      i, part, size;
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_upstream_session_sh_t  *us;

    rc = NGX_OK;
    n = 0;
    moves = 0;
    part = 0;
    size = 0;
    *nuris = 0;
    *uris = NULL;

    do {

        if (*nuris + 2 * part + NGX_MCP_INTEREST_PART > size) {
            size = 2 * (size + part) + NGX_MCP_INTEREST_PART;

            more = ngx_pcalloc(pool, size * sizeof(ngx_str_t));
            if (more == NULL) {
                return NGX_ERROR;
            }

            if (*nuris) {
                ngx_memcpy(more, *uris, *nuris * sizeof(ngx_str_t));
            }

            *uris = more;
        }

        ngx_mcp_zone_lock(zone);

        us = ngx_mcp_upstream_session_locked(zone, shared);

        if (us == NULL) {
            ngx_mcp_zone_unlock(zone);
            break;
        }

        if (part == 0 || us->moves != moves) {
            part = part ? 2 * part : NGX_MCP_INTEREST_PART;
            moves = us->moves;
            n = us->interests.head;
            *nuris = 0;
        }

        for (i = 0; n && i < part; i++) {
            in = ngx_mcp_block(zone, n);
            n = in->rec.links.next;

            if (in->count == 0 || in->state == NGX_MCP_INTEREST_REFUSED) {
                continue;
            }

            if (serial && (in->state != NGX_MCP_INTEREST_MADE
                           || ngx_mcp_interest_due(in, (uint32_t) *serial)))
            {
                continue;
            }

            rc = (*nuris < max) ? ngx_mcp_text_copy(zone, in, 0, in->rec.len,
                                                    pool, &(*uris)[*nuris])
                                : NGX_BUSY;
            if (rc != NGX_OK) {
                n = 0;
                break;
            }

            (*nuris)++;
        }

        ngx_mcp_zone_unlock(zone);

    } while (n);

    return rc;
}


ngx_uint_t
ngx_mcp_interest_exists(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri)
{
    uint64_t                hash;
    ngx_uint_t              exists;
    ngx_mcp_interest_sh_t  *in;

    hash = ngx_mcp_hash(zone, uri, NULL);

    ngx_mcp_zone_lock(zone);

    in = ngx_mcp_interest_find_locked(zone, shared, uri, hash);
    exists = (in && in->count);

    ngx_mcp_zone_unlock(zone);

    return exists;
}


ngx_uint_t
ngx_mcp_interests(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared)
{
    ngx_uint_t                      any;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, shared);
    any = (us && us->interests.head);

    ngx_mcp_zone_unlock(zone);

    return any;
}
