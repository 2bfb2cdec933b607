
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


#define ngx_mcp_shared_hash(group, audience, upstream)                        \
    ((uint32_t) ((group)->number * 2654435761U ^ (audience) ^ (upstream)))

#define ngx_mcp_shared_audience(zone, in)                                     \
    ((in)->audience ? (in)->audience                                          \
                    : ngx_mcp_hash(zone, &(in)->list_key, NULL))

#define ngx_mcp_shared_account(zone, in)                                      \
    ((in)->account ? (in)->account                                            \
                   : ngx_mcp_hash(zone, &(in)->tenant, &(in)->client))


static ngx_mcp_upstream_session_sh_t *ngx_mcp_upstream_session_find_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner, ngx_str_t *upstream);
static ngx_mcp_upstream_session_sh_t *ngx_mcp_upstream_session_get_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner, ngx_str_t *upstream);
static ngx_mcp_upstream_session_sh_t *ngx_mcp_upstream_session_make_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
static void ngx_mcp_upstream_session_read_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_mcp_upstream_session_t *out);
static void ngx_mcp_upstream_session_wake_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);
static ngx_mcp_upstream_session_sh_t *
    ngx_mcp_upstream_session_streamed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);
static void ngx_mcp_upstream_stream_set_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_uint_t stream);
static ngx_uint_t ngx_mcp_upstream_session_missed_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_upstream_session_sh_t *us);
static void ngx_mcp_upstream_session_close_all_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
static void ngx_mcp_upstream_session_close_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint64_t epoch);
static ngx_int_t ngx_mcp_shared_admit_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_shared_t *in, ngx_uint_t blocks);
static ngx_mcp_upstream_session_sh_t *ngx_mcp_shared_make_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_shared_t *in, ngx_mcp_stage_t *stage);
static void ngx_mcp_shared_touch_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);
static ngx_mcp_upstream_session_sh_t *ngx_mcp_shared_held_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref, uint32_t fence);
static void ngx_mcp_upstream_session_give_up_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);


/*
 * The key under which shared upstream sessions are counted.  No limit of client
 * sessions has this key.
 */

static ngx_str_t  ngx_mcp_shared_limit = ngx_string("\0shared\0");


ngx_int_t
ngx_mcp_upstream_session_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    ngx_str_t *upstream, ngx_mcp_ref_t call, ngx_mcp_upstream_session_t *out)
{
    ngx_int_t                       rc;
    ngx_mcp_call_sh_t              *c;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_get_locked(zone, owner, upstream);

    if (us == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    ngx_mcp_upstream_session_read_locked(zone, us, out);

    switch (us->state) {

    case NGX_MCP_UPSTREAM_SESSION_MADE:
        rc = NGX_OK;
        break;

    case NGX_MCP_UPSTREAM_SESSION_MAKING:
        c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

        /* a waiting call of a client session is woken alone, not all workers */

        if (c && ngx_mcp_session_locked(zone, us->rec.owner)) {
            ngx_mcp_touch(zone, c);
            c->waits_for = ngx_mcp_number(zone, us);

        } else {
            ngx_mcp_touch(zone, us);
            us->awaited = 1;
        }

        rc = NGX_AGAIN;
        break;

    default: /* NGX_MCP_UPSTREAM_SESSION_NONE */
        ngx_mcp_touch(zone, us);
        us->rec.worker = (uint16_t) zone->worker;
        us->state = NGX_MCP_UPSTREAM_SESSION_MAKING;
        rc = NGX_DECLINED;
        break;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_upstream_session_peek(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    ngx_str_t *upstream, ngx_mcp_upstream_session_t *out)
{
    ngx_int_t                       rc;
    ngx_mcp_upstream_session_sh_t  *us;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_find_locked(zone, owner, upstream);

    if (us && us->state == NGX_MCP_UPSTREAM_SESSION_MADE) {
        ngx_mcp_upstream_session_read_locked(zone, us, out);
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_mcp_upstream_session_sh_t *
ngx_mcp_upstream_session_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, ngx_str_t *upstream)
{
    uint32_t                        n;
    uint64_t                        hash;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_upstream_session_sh_t  *us;

    us = ngx_mcp_upstream_session_locked(zone, owner);

    if (us) {
        return us;
    }

    s = ngx_mcp_session_locked(zone, owner);

    if (s == NULL) {
        return NULL;
    }

    hash = ngx_mcp_hash(zone, upstream, NULL);

    for (n = ngx_mcp_session_extension(zone, s)->upstreams.head;
         n;
         n = us->rec.links.next)
    {
        us = ngx_mcp_block(zone, n);

        if (us->upstream == hash) {
            return us;
        }
    }

    return NULL;
}


ngx_mcp_upstream_session_sh_t *
ngx_mcp_upstream_session_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    return ngx_mcp_record(zone, ref, NGX_MCP_UPSTREAM_SESSION);
}


/*
 * Finds or makes the record of an upstream session.  NULL: the owner has ended,
 * or there is no room.
 */

static ngx_mcp_upstream_session_sh_t *
ngx_mcp_upstream_session_get_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, ngx_str_t *upstream)
{
    ngx_mcp_stage_t                 stage;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_extension_sh_t         *e;
    ngx_mcp_upstream_session_sh_t  *us;

    us = ngx_mcp_upstream_session_find_locked(zone, owner, upstream);

    if (us) {
        return us;
    }

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_UPSTREAM_SESSION, upstream, 1);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = owner;

    if (ngx_mcp_stage_reserve_locked(zone, &stage) != NGX_OK) {
        return NULL;
    }

    s = ngx_mcp_session_locked(zone, owner);

    if (s == NULL) {
        return NULL;
    }

    us = ngx_mcp_upstream_session_make_locked(zone, &stage);

    us->rec.owner = owner;
    us->group = s->rec.owner;
    ngx_memcpy(us->session, s->id, NGX_MCP_UUID_LEN);

    e = ngx_mcp_session_extension(zone, s);
    ngx_mcp_list_append(zone, &e->upstreams, ngx_mcp_number(zone, us),
                        NGX_MCP_LINKS);
    return us;
}


static ngx_mcp_upstream_session_sh_t *
ngx_mcp_upstream_session_make_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_stage_t *stage)
{
    ngx_mcp_upstream_session_sh_t  *us;

    us = ngx_mcp_make_locked(zone, stage);
    us->upstream = ngx_mcp_hash(zone, stage->parts, NULL);
    us->upstream_len = (uint32_t) stage->len;
    us->holder = NGX_MCP_SLOT_NONE;

    ngx_mcp_commit_locked(zone, us, NGX_MCP_UPSTREAM_SESSION);

    return us;
}


static void
ngx_mcp_upstream_session_read_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_mcp_upstream_session_t *out)
{
    out->ref = ngx_mcp_ref(zone, us);
    out->revision = us->revision;
    out->serial = us->serial;
    out->level = us->level;
    out->id.len = us->rec.len - us->upstream_len;
    out->id.data = NULL;

    if (out->id.len <= NGX_MCP_UPSTREAM_ID_SHORT) {
        out->id.data = out->buf;
        ngx_mcp_text_read(zone, us, us->upstream_len, out->buf, out->id.len);
    }
}


ngx_int_t
ngx_mcp_upstream_session_id(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_upstream_session_t *out)
{
    u_char                         *p;
    ngx_int_t                       rc;
    ngx_mcp_upstream_session_sh_t  *us;

    if (out->id.data) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, out->id.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, out->ref);

    if (us && us->state == NGX_MCP_UPSTREAM_SESSION_MADE
        && us->serial == out->serial)
    {
        ngx_mcp_text_read(zone, us, us->upstream_len, p, out->id.len);
        out->id.data = p;
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_upstream_session_params(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_pool_t *pool, ngx_str_t *initialize, ngx_uint_t *level)
{
    size_t                          from;
    ngx_int_t                       rc;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_extension_sh_t         *e;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_str_null(initialize);
    *level = NGX_MCP_LEVEL_UNSET;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);
    s = us ? ngx_mcp_session_locked(zone, us->rec.owner) : NULL;

    rc = us ? NGX_OK : NGX_DECLINED;

    if (s) {
        *level = s->subscriber.level;

        e = ngx_mcp_session_extension(zone, s);
        from = e->name_len + e->version_len + e->key_len + e->identity_len;
        rc = ngx_mcp_text_copy(zone, e, from, e->rec.len - from, pool,
                               initialize);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_upstream_session_made(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_str_t *upstream, ngx_str_t *id, ngx_uint_t revision, ngx_uint_t *level)
{
    ngx_int_t                       rc;
    ngx_str_t                       parts[2];
    ngx_mcp_stage_t                 stage;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_upstream_session_sh_t  *us;

    if (id->len > NGX_MCP_UPSTREAM_ID_MAX) {
        ngx_mcp_upstream_session_fail(zone, ref);
        return NGX_ERROR;
    }

    parts[0] = *upstream;
    parts[1] = *id;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_UPSTREAM_SESSION, parts, 2);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = ref;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    us = ngx_mcp_upstream_session_locked(zone, ref);

    if (us == NULL || rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);

        if (us == NULL) {
            return NGX_DECLINED;
        }

        ngx_mcp_upstream_session_fail(zone, ref);
        return NGX_ERROR;
    }

    s = level ? ngx_mcp_session_locked(zone, us->rec.owner) : NULL;

    if (s && !s->exclusive && s->subscriber.level != *level) {
        *level = s->subscriber.level;
        ngx_mcp_zone_unlock(zone);
        return NGX_AGAIN;
    }

    ngx_mcp_upstream_session_wake_locked(zone, us);

    ngx_mcp_text_replace_locked(zone, us, &stage);

    ngx_mcp_touch(zone, us);
    us->revision = (uint32_t) revision;
    us->serial = (uint32_t) ++zone->sh->stamp;
    us->since = 0;
    us->stream = NGX_MCP_UPSTREAM_STREAM_UNTRIED;
    us->level = level ? (uint32_t) *level : NGX_MCP_LEVEL_UNSET;
    us->wanted = us->level;
    us->state = NGX_MCP_UPSTREAM_SESSION_MADE;

    s = ngx_mcp_session_locked(zone, us->rec.owner);

    if (s && s->exclusive) {

        /* the GET stream of the former upstream session has to be replaced */

        ngx_mcp_listeners_ring_locked(zone, s);
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


/*
 * Two requests may send levels at the same time, and the upstream may get them
 * in any order.  Therefore a request whose level is not the lowest any more,
 * when the upstream has answered, sends the lowest level again.
 */

ngx_int_t
ngx_mcp_upstream_session_level(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_t *out, ngx_uint_t set, ngx_uint_t *level)
{
    ngx_int_t                       rc;
    ngx_mcp_upstream_session_sh_t  *us;

    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, out->ref);

    if (us && us->state == NGX_MCP_UPSTREAM_SESSION_MADE
        && us->serial == out->serial)
    {
        ngx_mcp_touch(zone, us);

        if (ngx_mcp_level_lowers(*level, us->wanted)) {
            us->wanted = (uint32_t) *level;
        }

        if (set == us->wanted) {
            us->level = (uint32_t) set;
        }

        if ((set == NGX_MCP_LEVEL_UNSET)
            ? ngx_mcp_level_lowers(*level, us->level)
            : ngx_mcp_level_lowers(us->wanted, set))
        {
            *level = us->wanted;
            rc = NGX_AGAIN;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_upstream_session_level_refused(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_t *out, ngx_uint_t level, ngx_uint_t never)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, out->ref);

    if (us && us->state == NGX_MCP_UPSTREAM_SESSION_MADE
        && us->serial == out->serial)
    {
        ngx_mcp_touch(zone, us);

        if (never) {
            us->level = NGX_MCP_LEVEL_DEBUG;

        } else if (us->wanted == level) {
            us->wanted = us->level;
        }
    }

    ngx_mcp_zone_unlock(zone);
}


/* wakes the calls and workers that wait for the upstream session */

static void
ngx_mcp_upstream_session_wake_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    uint32_t               n, i;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    n = ngx_mcp_number(zone, us);
    s = ngx_mcp_session_locked(zone, us->rec.owner);

    if (s == NULL) {
        ngx_mcp_shared_ring_locked(zone, us);
    }

    if (us->awaited) {
        ngx_mcp_touch(zone, us);
        us->awaited = 0;

        ngx_mcp_worker_ring_all_keys_locked(zone,
                                            NGX_MCP_RING_UPSTREAM_SESSIONS,
                                            NGX_MCP_RING_KEY(n));
    }

    for (i = s ? s->calls.head : 0; i; i = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, i);

        if (c->waits_for == n) {
            ngx_mcp_touch(zone, c);
            c->waits_for = 0;
            ngx_mcp_wake_locked(zone, &c->task,
                                NGX_MCP_WAKE_UPSTREAM_SESSION);
            ngx_mcp_step_locked(zone);
        }
    }
}


void
ngx_mcp_upstream_session_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);

    if (us) {
        ngx_mcp_upstream_session_give_up_locked(zone, us);
    }

    ngx_mcp_zone_unlock(zone);
}


/* ends a handshake that has not made an upstream session */

static void
ngx_mcp_upstream_session_give_up_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    if (us->state == NGX_MCP_UPSTREAM_SESSION_MAKING) {
        ngx_mcp_upstream_session_wake_locked(zone, us);

        ngx_mcp_touch(zone, us);
        us->state = NGX_MCP_UPSTREAM_SESSION_NONE;
    }
}


void
ngx_mcp_upstream_session_forget(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t serial)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);

    if (us && us->state == NGX_MCP_UPSTREAM_SESSION_MADE
        && us->serial == serial)
    {
        ngx_mcp_touch(zone, us);
        us->state = NGX_MCP_UPSTREAM_SESSION_NONE;
    }

    ngx_mcp_zone_unlock(zone);
}


/* ends an upstream session; the caller has dropped its interests */

void
ngx_mcp_upstream_session_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    uint32_t                 n;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    n = ngx_mcp_number(zone, us);
    g = ngx_mcp_block(zone, us->group.block);
    s = ngx_mcp_record(zone, us->rec.owner, NGX_MCP_SESSION);

    if (s) {
        e = ngx_mcp_session_extension(zone, s);
        ngx_mcp_list_remove(zone, &e->upstreams, n, NGX_MCP_LINKS);

    } else {
        ngx_mcp_hash_remove_locked(zone, us);
        ngx_mcp_list_remove(zone, &zone->root->shared, n, NGX_MCP_LINKS);

        if (us->limit) {
            ngx_mcp_limit_drop_locked(zone, us->limit);
        }

        ngx_mcp_touch(zone, g);
        g->shared--;
    }

    if (us->state == NGX_MCP_UPSTREAM_SESSION_MADE
        && us->rec.len > us->upstream_len)
    {
        ngx_mcp_pending_delete_add_locked(zone, us);

    } else {

        if (us->awaited) {
            ngx_mcp_worker_ring_all_keys_locked(zone,
                                                NGX_MCP_RING_UPSTREAM_SESSIONS,
                                                NGX_MCP_RING_KEY(n));
        }

        ngx_mcp_drop_locked(zone, us);
    }

    if (s == NULL) {
        ngx_mcp_group_drop_unused_locked(zone, g);
    }
}


void
ngx_mcp_upstream_sessions_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s)
{
    ngx_mcp_extension_sh_t  *e;

    ngx_mcp_listeners_ring_locked(zone, s);

    e = ngx_mcp_session_extension(zone, s);

    while (e->upstreams.head) {
        ngx_mcp_step_locked(zone);

        ngx_mcp_upstream_session_end_locked(zone,
                                     ngx_mcp_block(zone, e->upstreams.head));
    }
}


ngx_int_t
ngx_mcp_upstream_session_stream_claim(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *upstream, ngx_mcp_ref_t *ref)
{
    ngx_int_t                       rc;
    ngx_mcp_upstream_session_sh_t  *us;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_get_locked(zone, session, upstream);

    if (us && us->listener == 0) {
        ngx_mcp_touch(zone, us);
        us->listener = (uint32_t) zone->worker + 1;
        us->stream = NGX_MCP_UPSTREAM_STREAM_UNTRIED;
        *ref = ngx_mcp_ref(zone, us);
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_upstream_session_stream_await(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_ref_t call)
{
    ngx_int_t                       rc;
    ngx_mcp_call_sh_t              *c;
    ngx_mcp_upstream_session_sh_t  *us;

    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);
    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (us == NULL || us->stream == NGX_MCP_UPSTREAM_STREAM_ABSENT) {
        rc = NGX_DONE;

    } else if (us->listener == 0) {
        rc = NGX_DECLINED;

    } else if (c && us->stream == NGX_MCP_UPSTREAM_STREAM_UNTRIED) {
        ngx_mcp_touch(zone, c);
        c->waits_for = ngx_mcp_number(zone, us);
        rc = NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/*
 * Notes the state of an exclusive session's GET stream at the upstream, and
 * wakes the calls that wait for it.
 */

static void
ngx_mcp_upstream_stream_set_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_uint_t stream)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_record(zone, us->rec.owner, NGX_MCP_SESSION);

    if (s && s->exclusive && us->stream != stream
        && us->stream != NGX_MCP_UPSTREAM_STREAM_ABSENT)
    {
        ngx_mcp_touch(zone, us);
        us->stream = (uint32_t) stream;

        ngx_mcp_upstream_session_wake_locked(zone, us);
    }
}


void
ngx_mcp_upstream_session_stream_absent(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_streamed_locked(zone, ref);

    if (us) {
        ngx_mcp_upstream_stream_set_locked(zone, us,
                                           NGX_MCP_UPSTREAM_STREAM_ABSENT);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_upstream_session_stream_refused(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_streamed_locked(zone, ref);
    s = us ? ngx_mcp_session_locked(zone, us->rec.owner) : NULL;

    if (s) {
        ngx_mcp_upstream_session_close_all_locked(zone, s);
    }

    ngx_mcp_zone_unlock(zone);
}


/* returns the upstream session if this worker holds its stream, else NULL */

static ngx_mcp_upstream_session_sh_t *
ngx_mcp_upstream_session_streamed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref)
{
    ngx_mcp_upstream_session_sh_t  *us;

    us = ngx_mcp_upstream_session_locked(zone, ref);

    if (us == NULL || us->listener != zone->worker + 1) {
        return NULL;
    }

    ngx_mcp_touch(zone, us);

    return us;
}


ngx_uint_t
ngx_mcp_upstream_session_stream_opened(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t serial, ngx_uint_t resumed)
{
    ngx_uint_t                      gap;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_extension_sh_t         *e;
    ngx_mcp_upstream_session_sh_t  *us;

    gap = 0;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);
    s = us ? ngx_mcp_session_locked(zone, us->rec.owner) : NULL;

    if (us && s == NULL && us->serial == serial) {
        ngx_mcp_touch(zone, us);
        us->listener = (uint32_t) zone->worker + 1;
    }

    us = ngx_mcp_upstream_session_streamed_locked(zone, ref);

    if (us && (s || us->serial == serial)) {

        if (s && us->had_stream && !resumed && !s->exclusive
            && ngx_mcp_upstream_session_missed_locked(zone, s, us))
        {
            /* makes a gap: a position of the session's log without an event */

            e = ngx_mcp_session_extension(zone, s);

            ngx_mcp_touch(zone, &e->gap);
            ngx_mcp_touch(zone, &s->log);

            e->gap = s->log.last + 1;
            s->log.last++;
            gap = 1;

            ngx_mcp_subscriber_wake_locked(zone, &s->subscriber,
                                           NGX_MCP_WAKE_NEWS);
        }

        us->had_stream = 1;

        /* a gap does not interrupt the stream */

        if (us->since == 0) {
            us->since = zone->sh->stamp + 1;
        }

        ngx_mcp_upstream_stream_set_locked(zone, us,
                                           NGX_MCP_UPSTREAM_STREAM_TRIED);
    }

    ngx_mcp_zone_unlock(zone);

    return gap;
}


void
ngx_mcp_upstream_session_stream_closed(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_streamed_locked(zone, ref);

    if (us) {
        us->since = 0;

        ngx_mcp_upstream_stream_set_locked(zone, us,
                                           NGX_MCP_UPSTREAM_STREAM_TRIED);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_upstream_session_stream_release(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t over)
{
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_streamed_locked(zone, ref);

    if (us) {
        us->since = 0;
        us->listener = 0;

        ngx_mcp_upstream_stream_set_locked(zone, us,
                                           NGX_MCP_UPSTREAM_STREAM_TRIED);

        if (over) {
            us->had_stream = 0;
        }

        s = ngx_mcp_session_locked(zone, us->rec.owner);

        /*
         * A worker that quits closes the client's streams at workers of newer
         * configurations.  Workers of its own configuration quit as well, and
         * close their streams themselves.
         */

        if (s && zone->worker != NGX_MCP_NO_WORKER
            && ngx_mcp_slot(zone, zone->worker)->quitting)
        {
            ngx_mcp_upstream_session_close_locked(zone, s, zone->epoch);
        }
    }

    ngx_mcp_zone_unlock(zone);
}


/*
 * Returns whether the client session had an own GET stream from the event's
 * upstream when the event came.
 */

ngx_uint_t
ngx_mcp_upstream_session_receives_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_event_sh_t *e)
{
    uint32_t                        n;
    ngx_mcp_extension_sh_t         *ex;
    ngx_mcp_upstream_session_sh_t  *us;

    ex = ngx_mcp_session_extension(zone, s);

    for (n = ex->upstreams.head; n; n = us->rec.links.next) {
        us = ngx_mcp_block(zone, n);

        if (us->since && e->stamp >= us->since
            && ((us->upstream ^ e->target.flags) & NGX_MCP_EVENT_UPSTREAM) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Returns whether client session s may have missed updates while its GET stream
 * at the upstream was closed.  A shared upstream session that listens for s has
 * gaps of its own, but gets no updates that the upstream sends to s only.
 */

static ngx_uint_t
ngx_mcp_upstream_session_missed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_upstream_session_sh_t *us)
{
    uint32_t                        n;
    ngx_mcp_group_sh_t             *g;
    ngx_mcp_interest_sh_t          *i;
    ngx_mcp_subscriber_sh_t        *sb;
    ngx_mcp_subscription_sh_t      *sub;
    ngx_mcp_upstream_session_sh_t  *shared;

    sb = &s->subscriber;

    if (sb->own_lists) {
        return 1;
    }

    for (n = sb->subscriptions.head; n; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);

        if (sub->interest.block == 0 && sub->topic.block == 0) {
            return 1;
        }

        i = ngx_mcp_record(zone, sub->interest, NGX_MCP_INTEREST);

        if (i && i->separate) {
            return 1;
        }

        if (sub->delayed) {

            /* the worker that delayed the update may have died */

            ngx_mcp_touch(zone, sub);
            sub->delayed = 0;

            return 1;
        }
    }

    g = ngx_mcp_subscriber_group(zone, sb);

    if (ngx_mcp_audience_find_locked(zone, g, sb->audience) == NULL) {
        return 0;
    }

    shared = ngx_mcp_shared_locked(zone, g, sb->audience, us->upstream);

    return shared == NULL || !shared->had_stream;
}


/* wakes the workers that hold GET streams at upstreams for this session */

void
ngx_mcp_listeners_ring_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t                        n;
    ngx_mcp_extension_sh_t         *e;
    ngx_mcp_upstream_session_sh_t  *us;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->upstreams.head; n; n = us->rec.links.next) {
        us = ngx_mcp_block(zone, n);

        if (us->listener == 0) {
            continue;
        }

        ngx_mcp_worker_ring_keys_locked(zone, us->listener - 1,
                                        NGX_MCP_RING_LISTENERS,
                                        NGX_MCP_RING_KEY(n));
    }
}


/*
 * A worker that died held the GET stream at the upstream, with the headers of
 * the client's request.  The client's streams are closed, so that the client
 * connects again with these headers and the id of the last event that it saw.
 */

void
ngx_mcp_upstream_session_lost_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_uint_t worker)
{
    ngx_mcp_session_sh_t  *s;

    if (us->rec.worker == worker) {
        ngx_mcp_upstream_session_give_up_locked(zone, us);
    }

    if (us->listener != worker + 1) {
        return;
    }

    s = ngx_mcp_record(zone, us->rec.owner, NGX_MCP_SESSION);

    if (s) {
        ngx_mcp_upstream_session_close_all_locked(zone, s);
    }

    ngx_mcp_touch(zone, us);
    us->since = 0;
    us->listener = 0;

    ngx_mcp_upstream_stream_set_locked(zone, us,
                                       NGX_MCP_UPSTREAM_STREAM_TRIED);
}


/* closes all general streams of the session */

static void
ngx_mcp_upstream_session_close_all_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s)
{
    ngx_mcp_upstream_session_close_locked(zone, s, 0);

    ngx_mcp_touch(zone, s);
    s->subscriber.active_stream = 0;
}


/*
 * Closes general streams of the session, oldest first, at workers of newer
 * configurations than "epoch"; 0: at all workers.
 */

static void
ngx_mcp_upstream_session_close_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint64_t epoch)
{
    uint32_t              n;
    ngx_uint_t            worker;
    ngx_mcp_stream_sh_t  *st;

    for (n = s->streams.tail; n; n = st->task.rec.links.prev) {
        ngx_mcp_step_locked(zone);

        st = ngx_mcp_block(zone, n);
        worker = st->task.rec.worker;

        if (st->channel != NGX_MCP_GENERAL_CHANNEL
            || (epoch && (worker >= zone->sh->slots
                          || ngx_mcp_slot(zone, worker)->epoch <= epoch)))
        {
            continue;
        }

        ngx_mcp_touch(zone, st);
        st->task.rec.flags |= NGX_MCP_STREAM_CLOSING|NGX_MCP_STREAM_REPLACED;
        ngx_mcp_wake_locked(zone, &st->task, NGX_MCP_WAKE_CLOSE);
    }
}


ngx_int_t
ngx_mcp_shared_get(ngx_mcp_zone_t *zone, ngx_mcp_shared_t *in,
    ngx_mcp_ref_t *ref)
{
    ngx_int_t                       rc;
    ngx_mcp_stage_t                 stage;
    ngx_mcp_group_sh_t             *g;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_UPSTREAM_SESSION, &in->upstream,
                       1);

    ngx_mcp_zone_lock(zone);

    rc = NGX_OK;
    us = NULL;
    g = ngx_mcp_group_lookup_locked(zone, &in->endpoint, &in->tenant);

    if (g) {
        us = ngx_mcp_shared_locked(zone, g,
                                   ngx_mcp_shared_audience(zone, in),
                                   ngx_mcp_hash(zone, &in->upstream, NULL));
    }

    if (us == NULL) {
        rc = ngx_mcp_shared_admit_locked(zone, in, stage.blocks);

        if (rc == NGX_OK) {
            us = ngx_mcp_shared_make_locked(zone, in, &stage);
        }
    }

    if (us) {
        *ref = ngx_mcp_ref(zone, us);

        if (in->pooled) {
            ngx_mcp_shared_touch_locked(zone, us);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/*
 * Makes room for a shared upstream session: as for a call, because it serves
 * existing sessions.  One that a client pays for stays within that client's
 * share, as a client can make many by sending other credentials each time.
 */

static ngx_int_t
ngx_mcp_shared_admit_locked(ngx_mcp_zone_t *zone, ngx_mcp_shared_t *in,
    ngx_uint_t blocks)
{
    ngx_mcp_admit_t  admit;

    if (blocks > NGX_MCP_BLOCKS_SMALL) {
        return NGX_DECLINED;
    }

    admit.endpoint = &in->endpoint;
    admit.tenant = &in->tenant;
    admit.account = ngx_mcp_shared_account(zone, in);
    admit.limit_key = &ngx_mcp_shared_limit;
    admit.limit = in->limit;
    admit.room = in->client.len ? NGX_MCP_ROOM_SHARE : NGX_MCP_ROOM_CALL;
    admit.blocks = blocks;

    return ngx_mcp_admit_locked(zone, &admit);
}


static ngx_mcp_upstream_session_sh_t *
ngx_mcp_shared_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_shared_t *in,
    ngx_mcp_stage_t *stage)
{
    ngx_mcp_group_sh_t             *g;
    ngx_mcp_limit_sh_t             *l;
    ngx_mcp_upstream_session_sh_t  *us;

    g = ngx_mcp_group_get_locked(zone, &in->endpoint, &in->tenant);

    stage->payer = ngx_mcp_account_get_locked(zone, &in->tenant,
                                              ngx_mcp_shared_account(zone, in));

    us = ngx_mcp_upstream_session_make_locked(zone, stage);

    us->rec.owner = ngx_mcp_ref(zone, g);
    us->group = us->rec.owner;
    us->audience = ngx_mcp_shared_audience(zone, in);
    us->rec.hash = ngx_mcp_shared_hash(g, us->audience, us->upstream);
    us->touched = ngx_current_msec;
    ngx_memcpy(us->session, in->id.data, NGX_MCP_UUID_LEN);

    if (in->limit) {
        l = ngx_mcp_limit_get_locked(zone, &in->endpoint,
                                     &ngx_mcp_shared_limit,
                                     ngx_mcp_limit_hash(zone, &in->endpoint,
                                                      &ngx_mcp_shared_limit));
        ngx_mcp_touch(zone, l);
        l->count++;
        us->limit = ngx_mcp_number(zone, l);
    }

    ngx_mcp_hash_insert_locked(zone, us);
    ngx_mcp_list_append(zone, &zone->root->shared, ngx_mcp_number(zone, us),
                        NGX_MCP_LINKS);

    ngx_mcp_touch(zone, g);
    g->shared++;

    return us;
}


ngx_mcp_upstream_session_sh_t *
ngx_mcp_shared_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    uint64_t audience, uint64_t upstream)
{
    uint32_t                        hash, group;
    ngx_mcp_upstream_session_sh_t  *us;

    group = ngx_mcp_number(zone, g);
    hash = ngx_mcp_shared_hash(g, audience, upstream);

    for (us = ngx_mcp_hash_first_locked(zone, NGX_MCP_UPSTREAM_SESSION, hash);
         us;
         us = ngx_mcp_hash_next_locked(zone, us))
    {
        if (us->group.block == group && us->audience == audience
            && us->upstream == upstream)
        {
            return us;
        }
    }

    return NULL;
}


static ngx_mcp_upstream_session_sh_t *
ngx_mcp_shared_held_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t fence)
{
    ngx_mcp_upstream_session_sh_t  *us;

    us = ngx_mcp_upstream_session_locked(zone, ref);

    return (us && us->holder == zone->worker && us->fence == fence) ? us
                                                                    : NULL;
}


ngx_int_t
ngx_mcp_shared_claim(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_lease_t *lease)
{
    ngx_mcp_lease_sh_t             *l;
    ngx_mcp_reader_sh_t            *r;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);
    r = ngx_mcp_lease_reader_locked(zone, lease, &l);

    /* a newer configuration's worker may have got the lease meanwhile */

    if (r == NULL || r != &l->holder) {
        us = NULL;
    }

    if (us) {
        ngx_mcp_shared_touch_locked(zone, us);
        us->holder = (uint32_t) zone->worker;
        us->fence = lease->fence;
    }

    ngx_mcp_zone_unlock(zone);

    return us ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_shared_touch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref, uint32_t fence)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_shared_held_locked(zone, ref, fence);

    if (us) {
        ngx_mcp_shared_touch_locked(zone, us);
    }

    ngx_mcp_zone_unlock(zone);

    return us ? NGX_OK : NGX_DECLINED;
}


void
ngx_mcp_shared_keep(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);

    if (us) {
        ngx_mcp_shared_touch_locked(zone, us);
    }

    ngx_mcp_zone_unlock(zone);
}


/* moves the session to the end of its list, which is in the order of use */

static void
ngx_mcp_shared_touch_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    uint32_t  n;

    ngx_mcp_touch(zone, us);
    us->touched = ngx_current_msec;

    n = ngx_mcp_number(zone, us);
    ngx_mcp_list_remove(zone, &zone->root->shared, n, NGX_MCP_LINKS);
    ngx_mcp_list_append(zone, &zone->root->shared, n, NGX_MCP_LINKS);
}


ngx_int_t
ngx_mcp_shared_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref, uint32_t fence)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_shared_held_locked(zone, ref, fence);

    if (us && us->interests.head) {
        us = NULL;
    }

    if (us) {
        ngx_mcp_upstream_session_end_locked(zone, us);
    }

    ngx_mcp_zone_unlock(zone);

    return us ? NGX_OK : NGX_DECLINED;
}


/* wakes the holder of a shared upstream session, which looks for work to do */

void
ngx_mcp_shared_ring_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    ngx_mcp_worker_ring_keys_locked(zone, us->holder, NGX_MCP_RING_INTERESTS,
                                   NGX_MCP_RING_KEY(ngx_mcp_number(zone, us)));
}
