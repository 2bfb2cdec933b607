
#include "ngx_mcp_state_sh.h"


static ngx_mcp_session_sh_t *ngx_mcp_own_held_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t own, uint32_t fence);


/* no limit of sessions has this key */

static ngx_str_t  ngx_mcp_own_limit = ngx_string("\0own\0");


ngx_int_t
ngx_mcp_own_get(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in,
    ngx_mcp_ref_t *ref)
{
    uint64_t               audience;
    ngx_int_t              rc;
    ngx_uint_t             i;
    ngx_mcp_group_sh_t    *g;
    ngx_mcp_session_sh_t  *s;

    in->own = 1;
    in->timeout = NGX_MCP_OWN_TIMEOUT;
    in->limit_key = ngx_mcp_own_limit;

    audience = ngx_mcp_hash(zone, &in->list_key, NULL);

    for (i = 0; i < 2; i++) {

        ngx_mcp_zone_lock(zone);

        g = ngx_mcp_group_lookup_locked(zone, &in->endpoint, &in->tenant);
        s = g ? ngx_mcp_own_locked(zone, g, audience, &in->identity) : NULL;

        if (s) {
            *ref = ngx_mcp_ref(zone, s);
        }

        ngx_mcp_zone_unlock(zone);

        if (s) {
            return NGX_OK;
        }

        rc = ngx_mcp_session_create(zone, in, ref);

        if (rc != NGX_AGAIN) {
            return rc;
        }

        /* another one has just made it */
    }

    return NGX_DECLINED;
}


ngx_mcp_session_sh_t *
ngx_mcp_own_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    uint64_t audience, ngx_str_t *upstream)
{
    uint32_t                 n;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    for (n = g->own.head; n; n = e->rec.links.next) {
        e = ngx_mcp_block(zone, n);

        if (e->audience != audience) {
            continue;
        }

        s = ngx_mcp_block(zone, e->rec.owner.block);

        if (ngx_mcp_text_equal(zone, s, 0, s->rec.len, upstream)) {
            return s;
        }
    }

    return NULL;
}


static ngx_mcp_session_sh_t *
ngx_mcp_own_held_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    uint32_t fence)
{
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    s = ngx_mcp_session_locked(zone, own);

    if (s == NULL) {
        return NULL;
    }

    e = ngx_mcp_session_extension(zone, s);

    return (e->holder == zone->worker && e->fence == fence) ? s : NULL;
}


ngx_int_t
ngx_mcp_own_hold(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own, uint32_t fence)
{
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, own);

    if (s) {
        e = ngx_mcp_session_extension(zone, s);
        ngx_mcp_touch(zone, e);
        e->holder = (uint32_t) zone->worker;
        e->fence = fence;
    }

    ngx_mcp_zone_unlock(zone);

    return s ? ngx_mcp_own_touch(zone, own, fence) : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_own_touch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own, uint32_t fence)
{
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_own_held_locked(zone, own, fence);

    if (s) {
        ngx_mcp_touch(zone, s);
        s->seen = ngx_mcp_now();
        s->touched = ngx_current_msec;

        if (s->idle != NGX_MCP_IDLE_NOT) {
            ngx_mcp_idle_leave_locked(zone, s);
            ngx_mcp_idle_enter_locked(zone, s);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return s ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_own_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own, uint32_t fence)
{
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_own_held_locked(zone, own, fence);

    if (s && ngx_mcp_session_extension(zone, s)->supplies.head == 0) {
        ngx_mcp_session_end_locked(zone, s, NGX_MCP_COUNTER_SESSIONS_DELETED);

    } else {
        s = NULL;
    }

    ngx_mcp_zone_unlock(zone);

    return s ? NGX_OK : NGX_DECLINED;
}


/* an own session has a link at one upstream alone */

ngx_mcp_link_sh_t *
ngx_mcp_own_link_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t                 n;
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->upstreams.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        if (l->state == NGX_MCP_LINK_MADE) {
            return l;
        }
    }

    return NULL;
}


void
ngx_mcp_own_listens(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_uint_t serial, ngx_uint_t up)
{
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, own);
    l = s ? ngx_mcp_own_link_locked(zone, s) : NULL;

    if (l) {
        ngx_mcp_touch(zone, l);
    }

    if (l && up && l->serial == serial) {
        l->listener = (uint32_t) zone->worker + 1;
        l->heard = 1;
        l->up = 1;
    }

    if (l && !up && l->listener == zone->worker + 1) {
        l->listener = 0;
        l->up = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


/* the holder looks at what is to be done */

void
ngx_mcp_own_ring_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    ngx_mcp_worker_ring_locked(zone,
                               ngx_mcp_session_extension(zone, s)->holder,
                               NGX_MCP_RING_SUPPLIES);
}
