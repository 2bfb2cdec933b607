
#include "ngx_mcp_state_sh.h"


static ngx_uint_t ngx_mcp_listener_matters_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_str_t *upstream);
static void ngx_mcp_listener_close_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint64_t epoch);


ngx_int_t
ngx_mcp_link_listen(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream)
{
    ngx_int_t              rc;
    ngx_mcp_stage_t        stage;
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LINK, upstream, 1);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (s && l == NULL && rc == NGX_OK) {
        l = ngx_mcp_link_make_locked(zone, s, upstream, &stage);
    }

    rc = NGX_DECLINED;

    if (l && l->listener == 0) {
        ngx_mcp_touch(zone, l);
        l->listener = (uint32_t) zone->worker + 1;
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_uint_t
ngx_mcp_link_listens(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_uint_t resumed)
{
    ngx_uint_t               told;
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    told = 0;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->listener == zone->worker + 1) {

        if (l->heard && !resumed
            && ngx_mcp_listener_matters_locked(zone, s, upstream))
        {
            /* a place without a body */

            e = ngx_mcp_session_extension(zone, s);

            ngx_mcp_touch(zone, &e->gap);
            ngx_mcp_touch(zone, &s->log);

            e->gap = s->log.last + 1;
            s->log.last++;
            told = 1;

            if (s->carrier) {
                ngx_mcp_wake_locked(zone, ngx_mcp_block(zone, s->carrier),
                                    NGX_MCP_WAKE_NEWS);
            }
        }

        ngx_mcp_touch(zone, l);
        l->heard = 1;
        l->since = zone->sh->stamp + 1;
    }

    ngx_mcp_zone_unlock(zone);

    return told;
}


void
ngx_mcp_link_breaks(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream)
{
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->listener == zone->worker + 1) {
        ngx_mcp_touch(zone, l);
        l->since = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


/* whether a stream of the session's own was there for what came then */

ngx_uint_t
ngx_mcp_link_hears_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    uint64_t stamp)
{
    uint32_t                 n;
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->upstreams.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        if (l->since && stamp >= l->since) {
            return 1;
        }
    }

    return 0;
}


/*
 * Of what this session may have to ask for again: where the module's own
 * session at the upstream listens for it, that one tells what it misses,
 * unless the upstream tells this session alone.
 */

static ngx_uint_t
ngx_mcp_listener_matters_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_str_t *upstream)
{
    uint32_t                    n;
    ngx_uint_t                  heard;
    ngx_mcp_link_sh_t          *l;
    ngx_mcp_supply_sh_t        *u;
    ngx_mcp_session_sh_t       *own;
    ngx_mcp_extension_sh_t     *e, *ext;
    ngx_mcp_subscription_sh_t  *sub;

    e = ngx_mcp_session_extension(zone, s);

    if (e->alone) {
        return 1;
    }

    for (n = e->subscriptions.head; n; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);

        if (sub->supply.block == 0 && sub->topic.block == 0) {
            return 1;
        }

        u = ngx_mcp_record(zone, sub->supply, NGX_MCP_SUPPLY);

        if (u && u->alone) {
            return 1;
        }

        if (sub->kept) {

            /* perhaps by a worker that died */

            ngx_mcp_touch(zone, sub);
            sub->kept = 0;

            return 1;
        }
    }

    if (!ngx_mcp_audience_exists_locked(zone, s)) {
        return 0;
    }

    own = ngx_mcp_own_locked(zone, ngx_mcp_session_group(zone, s),
                             e->audience, upstream);
    if (own == NULL) {
        return 1;
    }

    ext = ngx_mcp_session_extension(zone, own);
    heard = 0;

    for (n = ext->upstreams.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);
        heard |= l->heard;
    }

    return !heard;
}


void
ngx_mcp_link_unlisten(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_uint_t over)
{
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->listener == zone->worker + 1) {
        ngx_mcp_touch(zone, l);

        if (over) {
            l->heard = 0;
        }

        l->since = 0;
        l->listener = 0;

        ngx_mcp_listener_left_locked(zone, s);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_session_gets(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session)
{
    ngx_int_t              n;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    n = s ? (ngx_int_t) s->ngets : NGX_DECLINED;

    ngx_mcp_zone_unlock(zone);

    return n;
}


/* who holds an upstream's GET stream for this session looks at it again */

void
ngx_mcp_listeners_ring_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t                 n;
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->upstreams.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        if (l->listener == 0) {
            continue;
        }

        ngx_mcp_worker_ring_locked(zone, l->listener - 1,
                                   NGX_MCP_RING_LISTENERS);
    }
}


/*
 * The worker that held the upstream's GET stream is gone, and with it the
 * headers of the client that opened it.  The client's own streams are closed:
 * it comes back with these headers and what it saw last.
 */

void
ngx_mcp_listener_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_link_sh_t *l)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_record(zone, l->rec.owner, NGX_MCP_SESSION);

    if (s) {
        ngx_mcp_listener_close_locked(zone, s, 0);

        ngx_mcp_touch(zone, s);
        s->carrier = 0;
    }

    ngx_mcp_touch(zone, l);
    l->since = 0;
    l->listener = 0;
    l->up = 0;
}


/*
 * Likewise a worker that quits; streams of its own configuration, which drain,
 * come back by themselves.
 */

void
ngx_mcp_listener_left_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    if (zone->worker != NGX_MCP_NO_WORKER
        && ngx_mcp_place(zone, zone->worker)->quitting)
    {
        ngx_mcp_listener_close_locked(zone, s, zone->epoch);
    }
}


/* oldest first, of workers that are newer than this; 0: all */

static void
ngx_mcp_listener_close_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    uint64_t epoch)
{
    uint32_t              n;
    ngx_uint_t            worker;
    ngx_mcp_stream_sh_t  *st;

    for (n = s->streams.tail; n; n = st->task.rec.links.prev) {
        ngx_mcp_step_locked(zone);

        st = ngx_mcp_block(zone, n);
        worker = st->task.rec.worker;

        if (st->line != NGX_MCP_GENERAL_LINE
            || (epoch && (worker >= zone->sh->places
                          || ngx_mcp_place(zone, worker)->epoch <= epoch)))
        {
            continue;
        }

        ngx_mcp_touch(zone, st);
        st->task.rec.flags |= NGX_MCP_STREAM_CLOSING|NGX_MCP_STREAM_REPLACED;
        ngx_mcp_wake_locked(zone, &st->task, NGX_MCP_WAKE_CLOSE);
    }
}
