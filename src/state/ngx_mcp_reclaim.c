
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/*
 * Shares.  An account may hold as many blocks as stay free.  So a single
 * account may hold half of the zone, two a third each, and there is always room
 * for another one.  The account of a tenant may hold four times as many.
 * Events may fill half of the zone, which is shared in the same way.
 *
 * New sessions leave a reserve (1/16 of the zone) to existing ones.  Calls and
 * streams of an account that has its share may use the first half of the
 * reserve, and so may the only event of a session if it is small, and events
 * that a call's reader is about to read.  An account that holds little may use
 * more of the reserve, however much others of its tenant hold.
 */

#define NGX_MCP_ROOM_SESSIONS  4
#define NGX_MCP_ROOM_EVENTS    256

/*
 * Number of accounts that may have to be made for a new session: those of the
 * client, its tenant, the tenant's sessions, and the endpoint.
 */
#define NGX_MCP_ROOM_ACCOUNTS  4

/*
 * Records examined in one search for one that can be dropped, and sessions
 * examined when a limit of sessions is reached.
 */
#define NGX_MCP_ROOM_STEPS     16
#define NGX_MCP_ROOM_LIMITED   8

#define ngx_mcp_room_reserve(sh)  ((sh)->blocks / 16)


typedef struct {
    ngx_mcp_account_sh_t   *account;      /* account that pays; NULL: it does
                                             not exist yet */
    ngx_mcp_account_sh_t   *tenant;       /* account of its tenant, or NULL */
    ngx_mcp_ref_t           owner;        /* record that gets an event; block 0:
                                             the request is for no event */
    ngx_mcp_room_e          room;
    ngx_uint_t              n;
    ngx_uint_t              reserved;     /* blocks needed in addition, which
                                             other requests have reserved */
} ngx_mcp_room_request_t;


/* most records, and most sessions, that expire under one hold of the lock */
#define NGX_MCP_EXPIRE_RECORDS   128
#define NGX_MCP_EXPIRE_SESSIONS  16


static ngx_int_t ngx_mcp_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_mcp_ref_t ngx_mcp_account_ref(ngx_mcp_zone_t *zone,
    ngx_mcp_account_sh_t *a);
static ngx_uint_t ngx_mcp_room_share(uint32_t left, uint32_t used,
    uint32_t tenant, ngx_uint_t n);
static ngx_uint_t ngx_mcp_room_holds_little(ngx_mcp_zone_sh_t *sh,
    uint32_t left, uint32_t used, ngx_uint_t n);
static ngx_uint_t ngx_mcp_room_fits(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_mcp_full_e ngx_mcp_room_refused(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_uint_t ngx_mcp_room_may_use_reserve(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_uint_t ngx_mcp_room_below_share(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_int_t ngx_mcp_room_drop_read_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_account_sh_t *a);
static ngx_uint_t ngx_mcp_room_replayable(ngx_mcp_zone_t *zone,
    ngx_mcp_event_sh_t *e);
static ngx_int_t ngx_mcp_room_drop_own_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_uint_t ngx_mcp_idle_overdue(ngx_mcp_session_sh_t *s, uint64_t now,
    uint64_t *late);
static ngx_int_t ngx_mcp_reclaim_any_locked(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_mcp_reclaim_listed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_list_sh_t *list, size_t offset, ngx_uint_t steps);
static ngx_int_t ngx_mcp_shared_expire_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t *left);


static ngx_uint_t
ngx_mcp_idle_overdue(ngx_mcp_session_sh_t *s, uint64_t now, uint64_t *late)
{
    uint64_t  timeout, idle;

    if (s->nstreams || s->ncalls || now < s->touched) {
        return 0;
    }

    timeout = (uint64_t) s->timeout + ngx_mcp_idle_grain(s);

    if (!s->used && timeout > NGX_MCP_UNUSED_TIMEOUT) {
        timeout = NGX_MCP_UNUSED_TIMEOUT;
    }

    idle = now - s->touched;

    if (idle < timeout) {
        return 0;
    }

    *late = idle - timeout;

    return 1;
}


/*
 * Examines the session that was idle for longest in each idle class, and ends
 * the one whose timeout was exceeded for longest.  NGX_DECLINED: no session was
 * ended.
 */

static ngx_int_t
ngx_mcp_reclaim_any_locked(ngx_mcp_zone_t *zone)
{
    uint64_t               late, latest;
    uint32_t               n;
    ngx_uint_t             i, steps;
    ngx_mcp_session_sh_t  *s, *victim;

    s = NULL;
    victim = NULL;
    latest = 0;
    steps = 0;

    for (i = 0; i < NGX_MCP_IDLE_CLASSES; i++) {

        while ((n = zone->root->idle[i].head) != 0) {
            s = ngx_mcp_block(zone, n);

            if (s->ncalls == 0) {
                if (ngx_mcp_idle_overdue(s, ngx_current_msec, &late)
                    && (victim == NULL || late > latest))
                {
                    victim = s;
                    latest = late;
                }

                break;
            }

            if (steps++ >= NGX_MCP_ROOM_STEPS) {
                break;
            }

            ngx_mcp_idle_leave_locked(zone, s);
        }
    }

    if (victim == NULL) {
        return NGX_DECLINED;
    }

    ngx_mcp_session_end_locked(zone, victim, NGX_MCP_COUNTER_SESSIONS_EVICTED);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_expire_locked(ngx_mcp_zone_t *zone)
{
    uint32_t                 head;
    uint64_t                 now, timeout;
    ngx_uint_t               i, n, left;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    n = 0;
    left = NGX_MCP_EXPIRE_RECORDS;
    now = ngx_current_msec;

    for (i = 0; i < NGX_MCP_IDLE_CLASSES; i++) {

        while ((head = zone->root->idle[i].head) != 0) {
            ngx_mcp_step_locked(zone);

            s = ngx_mcp_block(zone, head);

            timeout = (uint64_t) s->timeout * NGX_MCP_IDLE_END;

            if (now < s->touched || now - s->touched < timeout) {
                break;
            }

            if (n++ == NGX_MCP_EXPIRE_SESSIONS) {
                return NGX_AGAIN;
            }

            if (s->ncalls) {
                ngx_mcp_idle_leave_locked(zone, s);
                continue;
            }

            left -= ngx_mcp_session_trim_locked(zone, s, left);

            if (left == 0) {
                return NGX_AGAIN;
            }

            /*
             * Subscriptions and requests to the client were kept until now, as
             * the client could have come back.
             */

            e = ngx_mcp_session_extension(zone, s);
            left -= ngx_min(left, s->subscriber.nsubscriptions
                                  + e->nserver_requests);

            ngx_mcp_session_end_locked(zone, s,
                                       NGX_MCP_COUNTER_SESSIONS_EXPIRED);
        }
    }

    return ngx_mcp_shared_expire_locked(zone, &left);
}


/*
 * Examines the first "steps" extensions of a list, and ends the first of their
 * sessions that is overdue, or exclusive and not in use.  NGX_DECLINED: no
 * session was ended.
 */

static ngx_int_t
ngx_mcp_reclaim_listed_locked(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    size_t offset, ngx_uint_t steps)
{
    uint32_t                 n;
    uint64_t                 late;
    ngx_uint_t               i;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    for (i = 0; i < steps && list->head; i++) {
        n = list->head;
        e = ngx_mcp_block(zone, n);
        s = ngx_mcp_block(zone, e->rec.owner.block);

        if (ngx_mcp_idle_overdue(s, ngx_current_msec, &late)
            || (s->exclusive && s->nstreams == 0 && s->ncalls == 0))
        {
            ngx_mcp_session_end_locked(zone, s,
                                       NGX_MCP_COUNTER_SESSIONS_EVICTED);
            return NGX_OK;
        }

        /* moves the extension to the end: the next search examines others */

        ngx_mcp_list_remove(zone, list, n, offset);
        ngx_mcp_list_append(zone, list, n, offset);
    }

    return NGX_DECLINED;
}


/*
 * Ends shared upstream sessions that were not used for NGX_MCP_SHARED_TIMEOUT.
 * Drops at most *left interests.  NGX_OK; NGX_AGAIN: more sessions are left.
 */

static ngx_int_t
ngx_mcp_shared_expire_locked(ngx_mcp_zone_t *zone, ngx_uint_t *left)
{
    uint32_t                        n;
    ngx_mcp_upstream_session_sh_t  *us;

    while ((n = zone->root->shared.head) != 0) {
        us = ngx_mcp_block(zone, n);

        if (ngx_current_msec < us->touched
            || ngx_current_msec - us->touched < NGX_MCP_SHARED_TIMEOUT)
        {
            break;
        }

        do {
            if ((*left)-- == 0) {
                return NGX_AGAIN;
            }

            ngx_mcp_step_locked(zone);

        } while (ngx_mcp_interest_drop_locked(zone, us) == NGX_OK);

        /* wakes requests that wait for an interest: they use another session */

        ngx_mcp_worker_ring_all_keys_locked(zone, NGX_MCP_RING_INTERESTS,
                                            NGX_MCP_RING_KEY(n));

        ngx_mcp_upstream_session_end_locked(zone, us);
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_room_admit_locked(ngx_mcp_zone_t *zone, ngx_mcp_admit_t *in)
{
    uint64_t                key;
    ngx_mcp_limit_sh_t     *l;
    ngx_mcp_room_request_t  req;

    if (in->limit) {
        l = ngx_mcp_limit_find_locked(zone, in->endpoint, in->limit_key,
                                      ngx_mcp_limit_hash(zone, in->endpoint,
                                                         in->limit_key));

        if (l && l->count >= in->limit
            && ngx_mcp_reclaim_listed_locked(zone, &l->list,
                                     offsetof(ngx_mcp_extension_sh_t, limited),
                                     NGX_MCP_ROOM_LIMITED)
               != NGX_OK)
        {
            return NGX_BUSY;
        }
    }

    ngx_memzero(&req, sizeof(ngx_mcp_room_request_t));

    req.room = in->room;
    req.n = in->blocks + NGX_MCP_ROOM_ACCOUNTS
            + 2 * ngx_mcp_text_blocks(zone, NGX_MCP_LOSSES,
                                      NGX_MCP_LOSSES_ALL * 8)
            + ngx_mcp_text_blocks(zone, NGX_MCP_ENDPOINT, in->endpoint->len)
            + ngx_mcp_text_blocks(zone, NGX_MCP_GROUP,
                                  in->endpoint->len + in->tenant->len)
            + ngx_mcp_text_blocks(zone, NGX_MCP_LIMIT,
                                  in->endpoint->len + in->limit_key->len);

    req.account = ngx_mcp_account_find_locked(zone, in->account);

    if (in->tenant->len) {
        key = ngx_mcp_hash(zone, in->tenant, NULL);
        req.tenant = ngx_mcp_account_find_locked(zone, key);
    }

    return ngx_mcp_room_locked(zone, &req);
}


ngx_int_t
ngx_mcp_room_reserve_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer,
    ngx_uint_t room, ngx_uint_t n)
{
    return ngx_mcp_room_reserve_more_locked(zone, payer, room, n, 0);
}


ngx_int_t
ngx_mcp_room_reserve_more_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer,
    ngx_uint_t room, ngx_uint_t n, ngx_uint_t reserved)
{
    uint32_t                account;
    ngx_mcp_room_request_t  req;

    if (n == 0) {
        return NGX_OK;
    }

    ngx_memzero(&req, sizeof(ngx_mcp_room_request_t));

    req.room = room;
    req.n = n;
    req.reserved = reserved;

    account = ngx_mcp_account_of_locked(zone, payer);

    if (account) {
        req.account = ngx_mcp_block(zone, account);

        if (req.account->rec.account) {
            req.tenant = ngx_mcp_block(zone, req.account->rec.account);
        }
    }

    if (room == NGX_MCP_ROOM_EVENT) {
        req.owner = payer;
    }

    return ngx_mcp_room_locked(zone, &req);
}


/*
 * Makes room for a request.  Victims are looked for in this order, each time
 * from the beginning, until the request fits:
 *
 *   1. events of the account that a reader has read already;
 *   2. sessions of the account that are overdue;
 *   3. where the zone is short of blocks and the account holds little:
 *      a. unused topics of groups without sessions, in one search,
 *      b. the session that is overdue for the longest time, of any account,
 *      c. an audience without sessions, else unused topics without events;
 *   4. for an event: older events of the session that gets the event or, if a
 *      group or topic gets the event, of the account's groups and topics.
 *
 * At most NGX_MCP_ROOM_EVENTS events and NGX_MCP_ROOM_SESSIONS sessions are
 * dropped.  A request that does not fit then may get a part of the reserve.
 * NGX_OK; NGX_DECLINED: the request is refused.
 */

static ngx_int_t
ngx_mcp_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    ngx_int_t      rc;
    ngx_uint_t     sessions, events, orphans;
    ngx_mcp_ref_t  none, account, tenant;

    if (ngx_mcp_room_fits(zone, req)) {
        return NGX_OK;
    }

    /* accounts may be dropped with the last record that is charged to them */

    account = ngx_mcp_account_ref(zone, req->account);
    tenant = ngx_mcp_account_ref(zone, req->tenant);

    ngx_memzero(&none, sizeof(ngx_mcp_ref_t));

    rc = NGX_DECLINED;
    sessions = 0;
    events = 0;
    orphans = 1;

    for ( ;; ) {
        ngx_mcp_step_locked(zone);

        req->account = ngx_mcp_record(zone, account, NGX_MCP_ACCOUNT);
        req->tenant = ngx_mcp_record(zone, tenant, NGX_MCP_ACCOUNT);

        if (ngx_mcp_room_fits(zone, req)) {
            rc = NGX_OK;
            break;
        }

        if (events < NGX_MCP_ROOM_EVENTS
            && ngx_mcp_room_drop_read_locked(zone, req->account) == NGX_OK)
        {
            events++;
            continue;
        }

        if (sessions < NGX_MCP_ROOM_SESSIONS && req->account
            && ngx_mcp_reclaim_listed_locked(zone, &req->account->sessions,
                                     offsetof(ngx_mcp_extension_sh_t, charged),
                                     NGX_MCP_ROOM_STEPS)
               == NGX_OK)
        {
            sessions++;
            continue;
        }

        if (ngx_mcp_room_below_share(zone, req)) {

            if (orphans) {
                orphans = 0;
                (void) ngx_mcp_topic_reclaim_locked(zone, 1);
                continue;
            }

            if (sessions < NGX_MCP_ROOM_SESSIONS
                && ngx_mcp_reclaim_any_locked(zone) == NGX_OK)
            {
                sessions++;
                continue;
            }

            if (ngx_mcp_audience_reclaim_locked(zone, none) == NGX_OK
                || ngx_mcp_topic_reclaim_locked(zone, 0))
            {
                continue;
            }
        }

        if (events < NGX_MCP_ROOM_EVENTS
            && ngx_mcp_room_drop_own_locked(zone, req) == NGX_OK)
        {
            events++;
            continue;
        }

        if (ngx_mcp_room_may_use_reserve(zone, req)) {
            rc = NGX_OK;
        }

        break;
    }

    if (rc != NGX_OK) {
        zone->full = ngx_mcp_room_refused(zone, req);
        zone->refused = zone->full;

    } else if (zone->sh->freed) {

        /* makes the freed blocks usable now */

        ngx_mcp_journal_commit_locked(zone);
    }

    return rc;
}


static ngx_mcp_ref_t
ngx_mcp_account_ref(ngx_mcp_zone_t *zone, ngx_mcp_account_sh_t *a)
{
    ngx_mcp_ref_t  none;

    if (a) {
        return ngx_mcp_ref(zone, a);
    }

    ngx_memzero(&none, sizeof(ngx_mcp_ref_t));

    return none;
}


/*
 * Returns whether an account that holds "used" blocks may take n of the blocks
 * that are left.  "tenant" is the number of blocks that its tenant holds.
 */

static ngx_uint_t
ngx_mcp_room_share(uint32_t left, uint32_t used, uint32_t tenant, ngx_uint_t n)
{
    uint64_t  room;

    room = 4 * (uint64_t) left;

    if (tenant >= room) {
        return 0;
    }

    room = ngx_min(left, room - tenant);

    return (uint64_t) used + 2 * n <= room;
}


/*
 * Returns whether an account holds so little that its tenant's use is ignored.
 */

static ngx_uint_t
ngx_mcp_room_holds_little(ngx_mcp_zone_sh_t *sh, uint32_t left, uint32_t used,
    ngx_uint_t n)
{
    return used + n <= sh->blocks / 64
           && left >= n + ngx_mcp_room_reserve(sh) / 4;
}


static ngx_uint_t
ngx_mcp_room_fits(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    uint32_t               left, half;
    ngx_uint_t             need;
    ngx_mcp_zone_sh_t     *sh;
    ngx_mcp_account_sh_t   none, *a, *t;

    sh = zone->sh;
    left = ngx_mcp_free_blocks(sh);

    need = req->n + req->reserved
           + (req->room == NGX_MCP_ROOM_NEW ? ngx_mcp_room_reserve(sh) : 0);

    if (left < need) {
        return 0;
    }

    if (req->room == NGX_MCP_ROOM_OTHER) {
        return 1;
    }

    none.used = 0;
    none.event_blocks = 0;

    a = req->account ? req->account : &none;
    t = req->tenant ? req->tenant : &none;

    if (req->room == NGX_MCP_ROOM_EVENT) {
        half = sh->blocks / 2;

        if (half <= sh->used[NGX_MCP_EVENT]
            || !(ngx_mcp_room_share(half - sh->used[NGX_MCP_EVENT],
                                    a->event_blocks, t->event_blocks, req->n)
                 || ngx_mcp_room_holds_little(sh,
                                              half - sh->used[NGX_MCP_EVENT],
                                              a->event_blocks, req->n)))
        {
            return 0;
        }
    }

    if (req->room != NGX_MCP_ROOM_NEW
        && ngx_mcp_room_holds_little(sh, left, a->used, req->n))
    {
        return 1;
    }

    return ngx_mcp_room_share(left, a->used, t->used, req->n)
           || (req->room == NGX_MCP_ROOM_CALL
               && ngx_mcp_room_may_use_reserve(zone, req));
}


/*
 * Returns the reason for which the request was refused: its tenant's share, if
 * it fits without that limit; else the client's share, if it fits without both
 * limits; else the zone's size.
 */

static ngx_mcp_full_e
ngx_mcp_room_refused(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    ngx_mcp_room_request_t  other;

    other = *req;
    other.tenant = NULL;

    if (ngx_mcp_room_fits(zone, &other)) {
        return NGX_MCP_FULL_TENANT;
    }

    other.account = NULL;

    return ngx_mcp_room_fits(zone, &other) ? NGX_MCP_FULL_CLIENT
                                           : NGX_MCP_FULL_ZONE;
}


/*
 * Returns whether a request may use half of the reserve although its account
 * already holds its share.
 */

static ngx_uint_t
ngx_mcp_room_may_use_reserve(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_zone_sh_t     *sh;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_session_sh_t  *s;

    sh = zone->sh;

    if (ngx_mcp_free_blocks(sh)
        < req->n + req->reserved + ngx_mcp_room_reserve(sh) / 2)
    {
        return 0;
    }

    if (req->room != NGX_MCP_ROOM_EVENT) {
        return req->room == NGX_MCP_ROOM_CALL;
    }

    if (ngx_mcp_account_of_locked(zone, req->owner) == 0
        || sh->used[NGX_MCP_EVENT] + req->n
           > sh->blocks / 2 - ngx_mcp_room_reserve(sh))
    {
        return 0;
    }

    rec = ngx_mcp_block(zone, req->owner.block);

    switch (rec->block.type) {

    case NGX_MCP_SESSION:
        s = (ngx_mcp_session_sh_t *) rec;
        return s->events == 0 && req->n <= NGX_MCP_BLOCKS_SMALL;

    case NGX_MCP_CALL:
        c = (ngx_mcp_call_sh_t *) rec;
        s = ngx_mcp_block(zone, c->task.rec.owner.block);

        /* a channel that a stream carries is read soon */

        return c->active_stream
               ? c->log.count < NGX_MCP_CHANNEL_WAITING
               : s->events == 0 && req->n <= NGX_MCP_BLOCKS_SMALL;

    default:
        return 0;
    }
}


/*
 * Returns whether sessions and topics of other accounts may be dropped for the
 * request, as its account holds little, and the zone is short of blocks.
 */

static ngx_uint_t
ngx_mcp_room_below_share(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    uint32_t            left, used;
    ngx_mcp_zone_sh_t  *sh;

    if (req->room == NGX_MCP_ROOM_OTHER) {
        return 1;
    }

    sh = zone->sh;
    left = ngx_mcp_free_blocks(sh);

    if (req->room == NGX_MCP_ROOM_EVENT
        && sh->used[NGX_MCP_EVENT] + req->n > sh->blocks / 2)
    {
        return 0;
    }

    used = req->account ? req->account->used : 0;

    return used + 2 * req->n <= ngx_max(left, sh->blocks / 16);
}


/*
 * Drops an event of the account's sessions and calls that was read already.
 * NGX_OK; NGX_DECLINED: no such event was found.
 */

static ngx_int_t
ngx_mcp_room_drop_read_locked(ngx_mcp_zone_t *zone, ngx_mcp_account_sh_t *a)
{
    uint32_t             n;
    ngx_uint_t           i;
    ngx_mcp_event_sh_t  *e;

    if (a == NULL) {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_MCP_ROOM_STEPS && a->events.head; i++) {
        n = a->events.head;
        e = ngx_mcp_block(zone, n);

        if (ngx_mcp_room_replayable(zone, e)) {
            ngx_mcp_log_drop_locked(zone, e);
            return NGX_OK;
        }

        /* moves the event to the end, so that others are examined next time */

        ngx_mcp_list_remove(zone, &a->events, n,
                            offsetof(ngx_mcp_event_sh_t, age));
        ngx_mcp_list_append(zone, &a->events, n,
                            offsetof(ngx_mcp_event_sh_t, age));
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_mcp_room_replayable(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e)
{
    ngx_mcp_record_sh_t   *owner;
    ngx_mcp_session_sh_t  *s;

    owner = ngx_mcp_block(zone, e->rec.owner.block);

    if (owner->block.type == NGX_MCP_CALL) {
        return e->pos <= ((ngx_mcp_call_sh_t *) owner)->delivered;
    }

    s = (ngx_mcp_session_sh_t *) owner;

    return e->pos <= s->subscriber.delivered.own;
}


/*
 * For an event: drops an older event of the session that gets the event or, if
 * a group or topic gets the event, the oldest one of the account's groups and
 * topics.  NGX_DECLINED: there is none, or the request is for no event.
 */

static ngx_int_t
ngx_mcp_room_drop_own_locked(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_session_sh_t  *s;

    if (req->room != NGX_MCP_ROOM_EVENT
        || ngx_mcp_account_of_locked(zone, req->owner) == 0)
    {
        return NGX_DECLINED;
    }

    rec = ngx_mcp_block(zone, req->owner.block);

    switch (rec->block.type) {

    case NGX_MCP_SESSION:
        s = (ngx_mcp_session_sh_t *) rec;
        return ngx_mcp_log_drop_oldest_locked(zone, s, NULL);

    case NGX_MCP_CALL:
        c = (ngx_mcp_call_sh_t *) rec;
        s = ngx_mcp_block(zone, c->task.rec.owner.block);
        return ngx_mcp_log_drop_oldest_locked(zone, s, c);

    case NGX_MCP_GROUP:
    case NGX_MCP_ENDPOINT:
    case NGX_MCP_TOPIC:

        if (req->account->common.head == 0) {
            return NGX_DECLINED;
        }

        ngx_mcp_log_drop_locked(zone,
                                ngx_mcp_block(zone, req->account->common.head));
        return NGX_OK;
    }

    return NGX_DECLINED;
}


/* logs that room was refused, once a minute for all workers together */

void
ngx_mcp_room_full(ngx_mcp_zone_t *zone)
{
    const char         *refused, *remedy;
    ngx_uint_t          full;
    ngx_atomic_uint_t   last;

    full = zone->full;
    zone->full = 0;
    last = zone->root->full;

    if ((last && ngx_current_msec >= last && ngx_current_msec - last < 60000)
        || !ngx_atomic_cmp_set(&zone->root->full, last, ngx_current_msec))
    {
        return;
    }

    switch (full) {

    case NGX_MCP_FULL_CLIENT:
        refused = "has a client that occupies its share (as much as remains "
                  "free)";
        remedy = "set \"mcp_session_bind\" or \"mcp_tenant\" to separate "
                 "clients with one address, or give \"mcp_zone\" a larger "
                 "size";
        break;

    case NGX_MCP_FULL_TENANT:
        refused = "has a tenant that occupies its share (four times as much "
                  "as remains free)";
        remedy = "let \"mcp_tenant\" separate its clients, or give "
                 "\"mcp_zone\" a larger size";
        break;

    default: /* NGX_MCP_FULL_ZONE */
        refused = "is full";
        remedy = "give \"mcp_zone\" a larger size";
    }

    ngx_log_error(NGX_LOG_ERR, zone->log, 0,
                  "mcp zone \"%V\" %s: %uD of %uD blocks are free, %uD are "
                  "events; sessions, calls or events are refused; %s",
                  &zone->name, refused, ngx_mcp_free_blocks(zone->sh),
                  zone->sh->blocks - 1, zone->sh->used[NGX_MCP_EVENT],
                  remedy);
}


const char *
ngx_mcp_room_refusal(ngx_mcp_zone_t *zone)
{
    switch (zone->refused) {

    case NGX_MCP_FULL_CLIENT:
        return "this client occupies its share of the zone";

    case NGX_MCP_FULL_TENANT:
        return "this tenant occupies its share of the zone";

    default: /* NGX_MCP_FULL_ZONE */
        return "the zone is full";
    }
}
