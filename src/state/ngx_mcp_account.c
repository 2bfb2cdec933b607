
#include "ngx_mcp_state_sh.h"


/*
 * Shares.  An account may hold as many blocks as stay free, so that one alone
 * has half of the zone at most, two a third each, and there is always room for
 * another one; the account of a tenant may hold four times as many.  Events are
 * shared out likewise of the half of the zone that they may fill.
 *
 * New sessions leave a reserve to those that exist.  Calls and streams of an
 * account that has its share, the only event of a session if it is small, and
 * events that a call's reader is about to take go at the first half of it.
 * An account that holds little goes at more of it, whatever others of its
 * tenant hold.
 */

#define NGX_MCP_ROOM_SESSIONS  4
#define NGX_MCP_ROOM_EVENTS    256

/* of a client, its tenant, the tenant's sessions, and the endpoint */
#define NGX_MCP_ROOM_ACCOUNTS  4

/* looked at in one go for what may be dropped */
#define NGX_MCP_ROOM_STEPS     16

#define ngx_mcp_room_reserve(sh)  ((sh)->blocks / 16)


typedef struct {
    ngx_mcp_account_sh_t   *account;      /* or NULL */
    ngx_mcp_account_sh_t   *tenant;       /* or NULL */
    ngx_mcp_ref_t           owner;        /* of an event, or none */
    ngx_mcp_room_e          room;
    ngx_uint_t              n;
    ngx_uint_t              beside;       /* reserved before */
} ngx_mcp_room_request_t;


static ngx_mcp_account_sh_t *ngx_mcp_account_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);
static uint64_t ngx_mcp_account_key(ngx_mcp_zone_t *zone, ngx_str_t *tenant,
    ngx_str_t *client);
static ngx_mcp_account_sh_t *ngx_mcp_account_make_locked(
    ngx_mcp_zone_t *zone, uint64_t key, uint32_t parent);
static ngx_int_t ngx_mcp_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_mcp_ref_t ngx_mcp_account_ref(ngx_mcp_zone_t *zone,
    ngx_mcp_account_sh_t *a);
static ngx_uint_t ngx_mcp_room_share(uint32_t left, uint32_t used,
    uint32_t tenant, ngx_uint_t n);
static ngx_uint_t ngx_mcp_room_little(ngx_mcp_zone_sh_t *sh, uint32_t left,
    uint32_t used, ngx_uint_t n);
static ngx_uint_t ngx_mcp_room_fits(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_mcp_full_e ngx_mcp_room_refused(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_uint_t ngx_mcp_room_spare(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_uint_t ngx_mcp_room_modest(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);
static ngx_int_t ngx_mcp_room_delivered_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_account_sh_t *a);
static ngx_uint_t ngx_mcp_room_replayable(ngx_mcp_zone_t *zone,
    ngx_mcp_event_sh_t *e);
static ngx_int_t ngx_mcp_room_idle_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_account_sh_t *a);
static ngx_int_t ngx_mcp_room_own_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_room_request_t *req);


static uint64_t
ngx_mcp_account_key(ngx_mcp_zone_t *zone, ngx_str_t *tenant,
    ngx_str_t *client)
{
    return ngx_mcp_hash(zone, tenant, client);
}


static ngx_mcp_account_sh_t *
ngx_mcp_account_find_locked(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_mcp_account_sh_t  *a;

    for (a = ngx_mcp_hash_first_locked(zone, NGX_MCP_ACCOUNT, (uint32_t) key);
         a;
         a = ngx_mcp_hash_next_locked(zone, a))
    {
        if (a->key == key) {
            return a;
        }
    }

    return NULL;
}


static ngx_mcp_account_sh_t *
ngx_mcp_account_make_locked(ngx_mcp_zone_t *zone, uint64_t key,
    uint32_t parent)
{
    ngx_mcp_stage_t        stage;
    ngx_mcp_account_sh_t  *a;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_ACCOUNT, NULL, 0);

    a = ngx_mcp_make_locked(zone, &stage);
    a->rec.hash = (uint32_t) key;
    a->rec.account = parent;
    a->key = key;

    ngx_mcp_commit_locked(zone, a, NGX_MCP_ACCOUNT);
    ngx_mcp_hash_insert_locked(zone, a);

    return a;
}


/* finds or makes it, and that of its tenant, for which room was reserved */

ngx_mcp_ref_t
ngx_mcp_account_get_locked(ngx_mcp_zone_t *zone, ngx_str_t *tenant,
    ngx_str_t *client)
{
    uint64_t               key;
    uint32_t               parent;
    ngx_mcp_account_sh_t  *a;

    key = ngx_mcp_account_key(zone, tenant, client);
    a = ngx_mcp_account_find_locked(zone, key);

    if (a) {
        return ngx_mcp_ref(zone, a);
    }

    parent = 0;

    if (tenant->len) {
        key = ngx_mcp_account_key(zone, tenant, NULL);
        a = ngx_mcp_account_find_locked(zone, key);

        if (a == NULL) {
            a = ngx_mcp_account_make_locked(zone, key, 0);
        }

        parent = ngx_mcp_number(zone, a);
    }

    key = ngx_mcp_account_key(zone, tenant, client);
    a = ngx_mcp_account_make_locked(zone, key, parent);

    return ngx_mcp_ref(zone, a);
}


/* that of a record, or the account that is named; 0: none */

uint32_t
ngx_mcp_account_of_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer)
{
    ngx_mcp_record_sh_t  *rec;

    if (payer.block == 0 || payer.block >= zone->sh->watermark) {
        return 0;
    }

    rec = ngx_mcp_block(zone, payer.block);

    if (rec->block.type == NGX_MCP_FREE || rec->block.gen != payer.gen) {
        return 0;
    }

    return rec->block.type == NGX_MCP_ACCOUNT ? payer.block : rec->account;
}


void
ngx_mcp_account_charge_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks)
{
    ngx_mcp_account_sh_t  *a;

    for ( /* void */ ; n; n = a->rec.account) {
        a = ngx_mcp_block(zone, n);

        ngx_mcp_touch_range(zone, a, used, kept);
        a->used += (uint32_t) blocks;
        a->kept += (type == NGX_MCP_EVENT) ? (uint32_t) blocks : 0;
    }
}


void
ngx_mcp_account_release_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks)
{
    uint32_t               next;
    ngx_mcp_account_sh_t  *a;

    for (next = n; next; next = a->rec.account) {
        a = ngx_mcp_block(zone, next);

        ngx_mcp_touch_range(zone, a, used, kept);
        a->used -= (uint32_t) blocks;
        a->kept -= (type == NGX_MCP_EVENT) ? (uint32_t) blocks : 0;
    }

    a = n ? ngx_mcp_block(zone, n) : NULL;

    if (a && a->used == 0) {

        /* its tenant's may go with it */

        ngx_mcp_hash_remove_locked(zone, a);
        ngx_mcp_drop_locked(zone, a);
    }
}


ngx_mcp_list_sh_t *
ngx_mcp_account_events(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e)
{
    ngx_mcp_block_sh_t    *owner;
    ngx_mcp_account_sh_t  *a;

    a = ngx_mcp_block(zone, e->rec.account);
    owner = ngx_mcp_block(zone, e->rec.owner.block);

    return (owner->type == NGX_MCP_SESSION || owner->type == NGX_MCP_CALL)
           ? &a->events : &a->common;
}


ngx_int_t
ngx_mcp_reserve_new_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *client, ngx_str_t *limit, ngx_uint_t room,
    ngx_uint_t n)
{
    uint64_t                key;
    ngx_mcp_room_request_t  req;

    ngx_memzero(&req, sizeof(ngx_mcp_room_request_t));

    req.room = room;
    req.n = n + NGX_MCP_ROOM_ACCOUNTS
            + 2 * ngx_mcp_text_blocks(zone, NGX_MCP_LOSSES,
                                      NGX_MCP_LOSSES_ALL * 8)
            + ngx_mcp_text_blocks(zone, NGX_MCP_ENDPOINT, endpoint->len)
            + ngx_mcp_text_blocks(zone, NGX_MCP_GROUP,
                                  endpoint->len + tenant->len)
            + ngx_mcp_text_blocks(zone, NGX_MCP_LIMIT,
                                  endpoint->len + limit->len);

    key = ngx_mcp_account_key(zone, tenant, client);
    req.account = ngx_mcp_account_find_locked(zone, key);

    if (tenant->len) {
        key = ngx_mcp_account_key(zone, tenant, NULL);
        req.tenant = ngx_mcp_account_find_locked(zone, key);
    }

    return ngx_mcp_room_locked(zone, &req);
}


ngx_int_t
ngx_mcp_account_reserve_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer,
    ngx_uint_t room, ngx_uint_t n)
{
    return ngx_mcp_reserve_beside_locked(zone, payer, room, n, 0);
}


ngx_int_t
ngx_mcp_reserve_beside_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer,
    ngx_uint_t room, ngx_uint_t n, ngx_uint_t beside)
{
    uint32_t                account;
    ngx_mcp_room_request_t  req;

    if (n == 0) {
        return NGX_OK;
    }

    ngx_memzero(&req, sizeof(ngx_mcp_room_request_t));

    req.room = room;
    req.n = n;
    req.beside = beside;

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


static ngx_int_t
ngx_mcp_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    ngx_int_t      rc;
    ngx_uint_t     sessions, events, orphans;
    ngx_mcp_ref_t  none, account, tenant;

    if (ngx_mcp_room_fits(zone, req)) {
        return NGX_OK;
    }

    /* they may go with what is charged to them */

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
            && ngx_mcp_room_delivered_locked(zone, req->account) == NGX_OK)
        {
            events++;
            continue;
        }

        if (sessions < NGX_MCP_ROOM_SESSIONS
            && ngx_mcp_room_idle_locked(zone, req->account) == NGX_OK)
        {
            sessions++;
            continue;
        }

        if (ngx_mcp_room_modest(zone, req)) {

            if (orphans) {
                orphans = 0;
                (void) ngx_mcp_topic_reclaim_locked(zone, 1);
                continue;
            }

            if (sessions < NGX_MCP_ROOM_SESSIONS
                && ngx_mcp_reclaim_session_locked(zone) == NGX_OK)
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
            && ngx_mcp_room_own_locked(zone, req) == NGX_OK)
        {
            events++;
            continue;
        }

        if (ngx_mcp_room_spare(zone, req)) {
            rc = NGX_OK;
        }

        break;
    }

    if (rc != NGX_OK) {
        zone->full = ngx_mcp_room_refused(zone, req);
        zone->refused = zone->full;

    } else if (zone->sh->freed) {

        /* to be used at once */

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


/* whether an account that holds "used" may take n of what is left */

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


/* one that holds little is not to suffer from others of its tenant */

static ngx_uint_t
ngx_mcp_room_little(ngx_mcp_zone_sh_t *sh, uint32_t left, uint32_t used,
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

    need = req->n + req->beside
           + (req->room == NGX_MCP_ROOM_NEW ? ngx_mcp_room_reserve(sh) : 0);

    if (left < need) {
        return 0;
    }

    if (req->room == NGX_MCP_ROOM_OTHER) {
        return 1;
    }

    none.used = 0;
    none.kept = 0;

    a = req->account ? req->account : &none;
    t = req->tenant ? req->tenant : &none;

    if (req->room == NGX_MCP_ROOM_EVENT) {
        half = sh->blocks / 2;

        if (half <= sh->used[NGX_MCP_EVENT]
            || !(ngx_mcp_room_share(half - sh->used[NGX_MCP_EVENT], a->kept,
                                    t->kept, req->n)
                 || ngx_mcp_room_little(sh, half - sh->used[NGX_MCP_EVENT],
                                        a->kept, req->n)))
        {
            return 0;
        }
    }

    if (req->room != NGX_MCP_ROOM_NEW
        && ngx_mcp_room_little(sh, left, a->used, req->n))
    {
        return 1;
    }

    return ngx_mcp_room_share(left, a->used, t->used, req->n)
           || (req->room == NGX_MCP_ROOM_CALL && ngx_mcp_room_spare(zone, req));
}


/* of what there is too little: would it fit without this limit? */

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


/* whether it may go at the reserve although the account has its share */

static ngx_uint_t
ngx_mcp_room_spare(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
{
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_zone_sh_t     *sh;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_session_sh_t  *s;

    sh = zone->sh;

    if (ngx_mcp_free_blocks(sh)
        < req->n + req->beside + ngx_mcp_room_reserve(sh) / 2)
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

        /* events that have a reader are taken soon */

        return c->active_stream
               ? c->log.count < NGX_MCP_CHANNEL_WAITING
               : s->events == 0 && req->n <= NGX_MCP_BLOCKS_SMALL;

    default:
        return 0;
    }
}


/*
 * Whether sessions of others that are overdue may go for it: it holds little,
 * and what is short is the zone.
 */

static ngx_uint_t
ngx_mcp_room_modest(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
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


/* drops what the account's readers were handed, and could only repeat */

static ngx_int_t
ngx_mcp_room_delivered_locked(ngx_mcp_zone_t *zone, ngx_mcp_account_sh_t *a)
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

        /* others are looked at next time */

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

    return e->pos <= s->delivered.own;
}


static ngx_int_t
ngx_mcp_room_idle_locked(ngx_mcp_zone_t *zone, ngx_mcp_account_sh_t *a)
{
    uint32_t                 n;
    uint64_t                 late;
    ngx_uint_t               i;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    if (a == NULL) {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_MCP_ROOM_STEPS && a->sessions.head; i++) {
        n = a->sessions.head;
        e = ngx_mcp_block(zone, n);
        s = ngx_mcp_block(zone, e->rec.owner.block);

        if (ngx_mcp_idle_overdue(s, ngx_current_msec, &late)) {
            ngx_mcp_session_end_locked(zone, s,
                                       NGX_MCP_COUNTER_SESSIONS_EVICTED);
            return NGX_OK;
        }

        ngx_mcp_list_remove(zone, &a->sessions, n,
                            offsetof(ngx_mcp_extension_sh_t, charged));
        ngx_mcp_list_append(zone, &a->sessions, n,
                            offsetof(ngx_mcp_extension_sh_t, charged));
    }

    return NGX_DECLINED;
}


/* an event makes room by older ones of its session, or of its tenant's logs */

static ngx_int_t
ngx_mcp_room_own_locked(ngx_mcp_zone_t *zone, ngx_mcp_room_request_t *req)
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
        return ngx_mcp_log_oldest_locked(zone, s, NULL);

    case NGX_MCP_CALL:
        c = (ngx_mcp_call_sh_t *) rec;
        s = ngx_mcp_block(zone, c->task.rec.owner.block);
        return ngx_mcp_log_oldest_locked(zone, s, c);

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


/* once a minute, whichever worker finds it */

void
ngx_mcp_account_full(ngx_mcp_zone_t *zone)
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
ngx_mcp_account_refusal(ngx_mcp_zone_t *zone)
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
