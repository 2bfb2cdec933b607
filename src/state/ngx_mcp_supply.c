
#include "ngx_mcp_state_sh.h"


/* not worth a word to the upstream, dropped under one hold of the lock */
#define NGX_MCP_SUPPLY_DROPS   64

/* ms; longer than something may have been kept until it is paired */
#define NGX_MCP_SUPPLY_RECENT  (NGX_MCP_OWN_PAIR + 1000)

/* with nothing to do for, which may stand before others after a new link */
#define NGX_MCP_SUPPLY_PASSED  (2 * NGX_MCP_SUPPLY_JOBS)


static uint32_t ngx_mcp_supply_hash(ngx_mcp_ref_t own, uint64_t uri);
static ngx_mcp_supply_sh_t *ngx_mcp_supply_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t own, ngx_str_t *uri, uint64_t hash);
static ngx_mcp_supply_sh_t *ngx_mcp_supply_make_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *own, ngx_mcp_stage_t *stage, uint64_t hash);
static ngx_mcp_supply_sh_t *ngx_mcp_supply_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t supply);
static void ngx_mcp_supply_count_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_supply_sh_t *u);
static void ngx_mcp_supply_order_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_supply_sh_t *u);
static void ngx_mcp_supply_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_supply_sh_t *u);
static ngx_int_t ngx_mcp_supply_pair_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub, uint32_t serial, ngx_uint_t n,
    ngx_uint_t last);
static uint32_t ngx_mcp_supply_serial_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *own);
static ngx_uint_t ngx_mcp_supply_due(ngx_mcp_supply_sh_t *u, uint32_t serial);
static ngx_int_t ngx_mcp_supply_rc(ngx_mcp_supply_sh_t *u);


static uint32_t
ngx_mcp_supply_hash(ngx_mcp_ref_t own, uint64_t uri)
{
    return (uint32_t) uri ^ (own.block * 2654435761U);
}


static ngx_mcp_supply_sh_t *
ngx_mcp_supply_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_str_t *uri, uint64_t hash)
{
    uint32_t              h;
    ngx_mcp_supply_sh_t  *u;

    h = ngx_mcp_supply_hash(own, hash);

    for (u = ngx_mcp_hash_first_locked(zone, NGX_MCP_SUPPLY, h);
         u;
         u = ngx_mcp_hash_next_locked(zone, u))
    {
        if (u->rec.owner.block == own.block && u->rec.owner.gen == own.gen
            && u->uri == hash
            && ngx_mcp_text_equal(zone, u, 0, u->rec.len, uri))
        {
            return u;
        }
    }

    return NULL;
}


static ngx_mcp_supply_sh_t *
ngx_mcp_supply_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *own,
    ngx_mcp_stage_t *stage, uint64_t hash)
{
    ngx_mcp_supply_sh_t     *u;
    ngx_mcp_extension_sh_t  *e;

    u = ngx_mcp_make_locked(zone, stage);
    u->rec.owner = ngx_mcp_ref(zone, own);
    u->rec.hash = ngx_mcp_supply_hash(u->rec.owner, hash);
    u->uri = hash;
    u->serial = NGX_MCP_SUPPLY_NEVER;

    ngx_mcp_commit_locked(zone, u, NGX_MCP_SUPPLY);

    e = ngx_mcp_session_extension(zone, own);

    ngx_mcp_hash_insert_locked(zone, u);
    ngx_mcp_list_prepend(zone, &e->supplies, ngx_mcp_number(zone, u),
                         NGX_MCP_LINKS);
    return u;
}


ngx_int_t
ngx_mcp_supply_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_uint_t limit)
{
    uint64_t                    hash;
    ngx_int_t                   rc;
    ngx_mcp_stage_t             stage, supply;
    ngx_mcp_supply_sh_t        *u;
    ngx_mcp_session_sh_t       *s, *o;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    if (uri->len > NGX_MCP_URI_MAX) {
        return NGX_BUSY;
    }

    hash = ngx_mcp_hash(zone, uri, NULL);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SUBSCRIPTION, uri, 1);
    ngx_mcp_stage_init(zone, &supply, NGX_MCP_SUPPLY, uri, 1);
    stage.payer = session;
    supply.payer = session;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    sub = s ? ngx_mcp_subscription_locked(zone, s, uri, hash) : NULL;
    u = sub ? ngx_mcp_supply_locked(zone, sub->supply) : NULL;

    if (sub && u == NULL && sub->supply.block == 0) {

        /* a private one stays that */

        ngx_mcp_zone_unlock(zone);
        return NGX_DONE;
    }

    rc = NGX_OK;

    if (u == NULL) {

        /* making room may end sessions, and with them what they have */

        rc = ngx_mcp_reserve_locked(zone, session, NGX_MCP_ROOM_SHARE,
                                    (sub ? 0 : ngx_mcp_stage_needs(&stage))
                                    + ngx_mcp_stage_needs(&supply));
        s = ngx_mcp_session_locked(zone, session);
        sub = s ? ngx_mcp_subscription_locked(zone, s, uri, hash) : NULL;
    }

    o = ngx_mcp_session_locked(zone, own);

    if (s == NULL || o == NULL) {
        rc = NGX_DECLINED;
    }

    if (rc == NGX_OK && sub == NULL) {
        e = ngx_mcp_session_extension(zone, s);

        if (e->nsubscriptions >= limit) {
            rc = NGX_BUSY;
        }
    }

    if (rc != NGX_OK) {

        /* a subscription that exists goes on without the others */

        if (sub) {
            rc = NGX_DONE;
        }

        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    if (u == NULL) {
        u = ngx_mcp_supply_find_locked(zone, own, uri, hash);

        if (u == NULL) {
            u = ngx_mcp_supply_make_locked(zone, o, &supply, hash);
        }

        ngx_mcp_supply_count_locked(zone, u);

        if (sub) {
            ngx_mcp_touch(zone, sub);
            sub->supply = ngx_mcp_ref(zone, u);

        } else {
            sub = ngx_mcp_subscription_make_locked(zone, s, &stage, hash,
                                                   ngx_mcp_ref(zone, u));
        }

        ngx_mcp_touch(zone, sub);
        sub->paired = u->heard;
    }

    rc = ngx_mcp_supply_rc(u);

    if (rc == NGX_AGAIN) {
        ngx_mcp_own_ring_locked(zone, o);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_supply_hold(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_mcp_ref_t call, ngx_str_t *uri)
{
    uint64_t               hash;
    ngx_int_t              rc;
    ngx_mcp_stage_t        stage;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_supply_sh_t   *u;
    ngx_mcp_session_sh_t  *o;

    if (uri->len > NGX_MCP_URI_MAX) {
        return NGX_DECLINED;
    }

    hash = ngx_mcp_hash(zone, uri, NULL);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SUPPLY, uri, 1);
    stage.room = NGX_MCP_ROOM_SHARE;
    stage.payer = call;

    ngx_mcp_zone_lock(zone);

    rc = NGX_OK;

    if (ngx_mcp_supply_find_locked(zone, own, uri, hash) == NULL) {
        rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    }

    o = ngx_mcp_session_locked(zone, own);
    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (rc != NGX_OK || o == NULL || c == NULL || c->supply.block
        || !(c->task.rec.flags & NGX_MCP_CALL_RUNNING))
    {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    u = ngx_mcp_supply_find_locked(zone, own, uri, hash);

    if (u == NULL) {
        u = ngx_mcp_supply_make_locked(zone, o, &stage, hash);
    }

    ngx_mcp_supply_count_locked(zone, u);

    ngx_mcp_touch(zone, c);
    c->supply = ngx_mcp_ref(zone, u);

    if (ngx_mcp_supply_rc(u) == NGX_AGAIN) {
        ngx_mcp_own_ring_locked(zone, o);
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


static ngx_mcp_supply_sh_t *
ngx_mcp_supply_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t supply)
{
    return supply.block ? ngx_mcp_record(zone, supply, NGX_MCP_SUPPLY) : NULL;
}


/* one more; what was about to end may have to be asked for again */

static void
ngx_mcp_supply_count_locked(ngx_mcp_zone_t *zone, ngx_mcp_supply_sh_t *u)
{
    ngx_mcp_session_sh_t  *own;

    ngx_mcp_touch(zone, u);

    if (u->count++) {
        return;
    }

    own = ngx_mcp_block(zone, u->rec.owner.block);

    if (u->asked) {
        u->serial = NGX_MCP_SUPPLY_NEVER;
    }

    if (u->serial == ngx_mcp_supply_serial_locked(zone, own)) {
        u->state = NGX_MCP_SUPPLY_MADE;

    } else {
        u->state = NGX_MCP_SUPPLY_WANTED;
    }

    ngx_mcp_supply_order_locked(zone, u);
}


/* what is to be done comes first */

static void
ngx_mcp_supply_order_locked(ngx_mcp_zone_t *zone, ngx_mcp_supply_sh_t *u)
{
    uint32_t                 n;
    ngx_mcp_session_sh_t    *own;
    ngx_mcp_extension_sh_t  *e;

    n = ngx_mcp_number(zone, u);
    own = ngx_mcp_block(zone, u->rec.owner.block);
    e = ngx_mcp_session_extension(zone, own);

    ngx_mcp_list_remove(zone, &e->supplies, n, NGX_MCP_LINKS);

    if (ngx_mcp_supply_due(u, ngx_mcp_supply_serial_locked(zone, own))) {
        ngx_mcp_list_prepend(zone, &e->supplies, n, NGX_MCP_LINKS);

    } else {
        ngx_mcp_list_append(zone, &e->supplies, n, NGX_MCP_LINKS);
    }
}


static void
ngx_mcp_supply_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_supply_sh_t *u)
{
    ngx_mcp_session_sh_t    *own;
    ngx_mcp_extension_sh_t  *e;

    own = ngx_mcp_block(zone, u->rec.owner.block);
    e = ngx_mcp_session_extension(zone, own);

    ngx_mcp_list_remove(zone, &e->supplies, ngx_mcp_number(zone, u),
                        NGX_MCP_LINKS);
    ngx_mcp_hash_remove_locked(zone, u);
    ngx_mcp_drop_locked(zone, u);
}


void
ngx_mcp_supply_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t supply)
{
    ngx_mcp_supply_sh_t   *u;
    ngx_mcp_session_sh_t  *own;

    u = ngx_mcp_supply_locked(zone, supply);

    if (u == NULL) {
        return;
    }

    ngx_mcp_touch(zone, u);

    if (--u->count) {
        return;
    }

    own = ngx_mcp_block(zone, u->rec.owner.block);

    if (u->asked == 0 && (u->serial == NGX_MCP_SUPPLY_NEVER
                          || u->state == NGX_MCP_SUPPLY_REFUSED))
    {
        ngx_mcp_supply_drop_locked(zone, u);

    } else {
        ngx_mcp_supply_order_locked(zone, u);
    }

    ngx_mcp_own_ring_locked(zone, own);
}


void
ngx_mcp_own_heard(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own, ngx_str_t *uri)
{
    ngx_mcp_supply_sh_t  *u;

    ngx_mcp_zone_lock(zone);

    u = ngx_mcp_supply_find_locked(zone, own, uri,
                                   ngx_mcp_hash(zone, uri, NULL));
    if (u) {
        ngx_mcp_touch(zone, u);
        u->heard++;
        u->when = ngx_current_msec;
        u->alone = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_own_pair(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n, ngx_uint_t last)
{
    ngx_int_t                   rc;
    ngx_mcp_link_sh_t          *l;
    ngx_mcp_session_sh_t       *s, *own;
    ngx_mcp_subscription_sh_t  *sub;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_OK;
    }

    own = ngx_mcp_own_locked(zone, ngx_mcp_session_group(zone, s),
                             ngx_mcp_session_extension(zone, s)->audience,
                             upstream);
    l = own ? ngx_mcp_own_link_locked(zone, own) : NULL;

    rc = NGX_DECLINED;

    if (l && l->up) {
        sub = ngx_mcp_subscription_locked(zone, s, uri,
                                          ngx_mcp_hash(zone, uri, NULL));

        if (sub) {
            rc = ngx_mcp_supply_pair_locked(zone, sub, l->serial, n, last);

        } else if (last || uri->len == 0) {

            /* it has left meanwhile */

            rc = NGX_OK;
        }

        /* else it may be a part of what it is subscribed to */
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_int_t
ngx_mcp_supply_pair_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub, uint32_t serial, ngx_uint_t n,
    ngx_uint_t last)
{
    ngx_uint_t            first;
    ngx_mcp_supply_sh_t  *u;

    if (sub->supply.block == 0) {
        return NGX_DECLINED;
    }

    u = ngx_mcp_supply_locked(zone, sub->supply);

    if (u == NULL) {
        return NGX_OK;
    }

    ngx_mcp_touch(zone, sub);

    if (last) {
        sub->kept = 0;
    }

    if (u->state == NGX_MCP_SUPPLY_MADE && u->serial != serial && !u->alone) {

        /* all are told once it is asked for again */

        return NGX_OK;
    }

    /* one that was heard long ago is another one */

    if (!last && u->when + NGX_MCP_SUPPLY_RECENT < ngx_current_msec) {
        sub->paired = u->heard;
    }

    if (u->heard - sub->paired >= n) {
        sub->paired += (uint32_t) n;
        return NGX_OK;
    }

    sub->paired = u->heard;

    if (!last && !u->alone) {
        sub->kept = 1;
        return NGX_AGAIN;
    }

    first = !u->alone;

    ngx_mcp_touch(zone, u);
    u->alone = 1;

    return first ? NGX_ABORT : NGX_DECLINED;
}


/* the link that the own session has now, 0: none */

static uint32_t
ngx_mcp_supply_serial_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *own)
{
    ngx_mcp_link_sh_t  *l;

    l = ngx_mcp_own_link_locked(zone, own);

    return l ? l->serial : 0;
}


static ngx_uint_t
ngx_mcp_supply_due(ngx_mcp_supply_sh_t *u, uint32_t serial)
{
    return u->count == 0 || u->serial != serial;
}


static ngx_int_t
ngx_mcp_supply_rc(ngx_mcp_supply_sh_t *u)
{
    switch (u->state) {

    case NGX_MCP_SUPPLY_MADE:
        return NGX_OK;

    case NGX_MCP_SUPPLY_REFUSED:
        return NGX_DONE;

    default: /* NGX_MCP_SUPPLY_WANTED */
        return NGX_AGAIN;
    }
}


ngx_int_t
ngx_mcp_supply_state(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_int_t                   rc;
    ngx_mcp_supply_sh_t        *u;
    ngx_mcp_session_sh_t       *s;
    ngx_mcp_subscription_sh_t  *sub;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    sub = s ? ngx_mcp_subscription_locked(zone, s, uri,
                                          ngx_mcp_hash(zone, uri, NULL))
            : NULL;

    if (sub == NULL) {
        rc = NGX_DECLINED;

    } else if (sub->supply.block == 0) {
        rc = NGX_DONE;

    } else {
        u = ngx_mcp_supply_locked(zone, sub->supply);
        rc = u ? ngx_mcp_supply_rc(u) : NGX_ERROR;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_supply_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_mcp_session_sh_t       *s;
    ngx_mcp_subscription_sh_t  *sub;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    sub = s ? ngx_mcp_subscription_locked(zone, s, uri,
                                          ngx_mcp_hash(zone, uri, NULL))
            : NULL;

    if (sub) {
        ngx_mcp_supply_leave_locked(zone, sub->supply);
        ngx_mcp_touch(zone, sub);
        ngx_memzero(&sub->supply, sizeof(ngx_mcp_ref_t));
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_supply_next(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own, uint32_t fence,
    ngx_pool_t *pool, ngx_mcp_supply_job_t *job)
{
    uint32_t                 n, next, serial;
    ngx_int_t                rc;
    ngx_uint_t               passed, drops;
    ngx_mcp_supply_sh_t     *u;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    rc = NGX_DECLINED;
    passed = 0;
    drops = 0;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, own);

    if (s == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    e = ngx_mcp_session_extension(zone, s);
    serial = ngx_mcp_supply_serial_locked(zone, s);

    for (n = (e->fence == fence) ? e->supplies.head : 0; n; n = next) {
        u = ngx_mcp_block(zone, n);
        next = u->rec.links.next;

        if (u->asked == fence || !ngx_mcp_supply_due(u, serial)) {

            if (++passed == NGX_MCP_SUPPLY_PASSED) {
                break;
            }

            continue;
        }

        if (u->count == 0 && u->serial != serial) {

            /* the session that had it is no more */

            ngx_mcp_supply_drop_locked(zone, u);
            ngx_mcp_step_locked(zone);

            if (++drops == NGX_MCP_SUPPLY_DROPS) {
                ngx_mcp_own_ring_locked(zone, s);
                break;
            }

            continue;
        }

        rc = ngx_mcp_copy(zone, u, 0, u->rec.len, pool, &job->uri);

        if (rc == NGX_OK) {
            job->ref = ngx_mcp_ref(zone, u);
            job->subscribe = (u->count != 0);
            job->again = (job->subscribe && u->state == NGX_MCP_SUPPLY_MADE);
            ngx_mcp_touch(zone, u);
            u->asked = fence;
        }

        break;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_supply_done(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own, uint32_t fence,
    ngx_mcp_supply_job_t *job, ngx_int_t rc, ngx_uint_t serial)
{
    ngx_mcp_supply_sh_t   *u;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, own);
    u = ngx_mcp_record(zone, job->ref, NGX_MCP_SUPPLY);

    if (s == NULL || u == NULL || u->asked != fence) {
        ngx_mcp_zone_unlock(zone);
        return;
    }

    ngx_mcp_touch(zone, u);
    u->asked = 0;

    if (!job->subscribe || (u->count == 0 && rc != NGX_OK)) {
        u->serial = NGX_MCP_SUPPLY_NEVER;

    } else if (rc != NGX_AGAIN || u->state != NGX_MCP_SUPPLY_MADE) {

        /* one that was refused is asked for again on the next link */

        u->serial = (uint32_t) serial;
    }

    if (job->subscribe && u->state != NGX_MCP_SUPPLY_MADE && u->count) {
        u->state = (rc == NGX_OK) ? NGX_MCP_SUPPLY_MADE
                                  : NGX_MCP_SUPPLY_REFUSED;

        ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_SUPPLIES);
    }

    if (u->count == 0 && u->serial == NGX_MCP_SUPPLY_NEVER) {
        ngx_mcp_supply_drop_locked(zone, u);

    } else {
        ngx_mcp_supply_order_locked(zone, u);
    }

    ngx_mcp_zone_unlock(zone);
}


/* what is due, and not made, comes first */

ngx_int_t
ngx_mcp_supply_made(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_uint_t serial, u_char *buf, size_t size, ngx_str_t *uris,
    ngx_uint_t *n)
{
    uint32_t               block;
    ngx_int_t              rc;
    ngx_uint_t             max, passed;
    ngx_mcp_supply_sh_t   *u;
    ngx_mcp_session_sh_t  *s;

    rc = NGX_OK;
    max = *n;
    passed = 0;
    *n = 0;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, own);

    block = s ? ngx_mcp_session_extension(zone, s)->supplies.tail : 0;

    for ( /* void */ ; block; block = u->rec.links.prev) {
        u = ngx_mcp_block(zone, block);

        if (ngx_mcp_supply_due(u, (uint32_t) serial)
            || u->state != NGX_MCP_SUPPLY_MADE)
        {
            if (++passed == NGX_MCP_SUPPLY_PASSED) {
                break;
            }

            continue;
        }

        if (*n == max || u->rec.len > size) {
            rc = NGX_BUSY;
            break;
        }

        uris[*n].data = buf;
        uris[*n].len = u->rec.len;

        ngx_mcp_text_read(zone, u, 0, buf, u->rec.len);

        buf += u->rec.len;
        size -= u->rec.len;
        (*n)++;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_supplies(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own)
{
    ngx_int_t              rc;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, own);

    if (s == NULL) {
        rc = NGX_DECLINED;

    } else {
        rc = ngx_mcp_session_extension(zone, s)->supplies.head ? 1 : 0;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}
