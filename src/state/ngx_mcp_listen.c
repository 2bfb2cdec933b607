
#include "ngx_mcp_zone_sh.h"


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
    ngx_mcp_worker_sh_t     *w;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->upstreams.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        if (l->listener == 0) {
            continue;
        }

        w = &zone->sh->workers[l->listener - 1];
        w->bits |= NGX_MCP_RING_LISTENERS;

        ngx_mcp_worker_ring_locked(zone, l->listener - 1);
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
    uint32_t               n;
    ngx_mcp_stream_sh_t   *st;
    ngx_mcp_session_sh_t  *s;

    l->listener = 0;
    l->up = 0;

    s = ngx_mcp_record(zone, l->rec.owner, NGX_MCP_SESSION);

    if (s == NULL) {
        return;
    }

    s->carrier = 0;

    for (n = s->streams.head; n; n = st->task.rec.links.next) {
        st = ngx_mcp_block(zone, n);

        if (st->task.line == NGX_MCP_GENERAL_LINE) {
            st->task.rec.flags |= NGX_MCP_STREAM_CLOSING
                                  |NGX_MCP_STREAM_REPLACED;
            ngx_mcp_wake_locked(zone, &st->task, NGX_MCP_WAKE_CLOSE);
        }
    }
}
