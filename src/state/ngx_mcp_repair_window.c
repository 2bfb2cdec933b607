
#include "ngx_mcp_zone_sh.h"


static uint64_t ngx_mcp_order_window(void *rec);


void
ngx_mcp_repair_window(ngx_mcp_zone_t *zone, ngx_mcp_window_sh_t *w)
{
    if (ngx_mcp_repair_mark(zone, w) != NGX_OK) {
        return;
    }

    w->waiting = 0;
    w->sending = 0;

    ngx_mcp_hash_insert_locked(zone, w);
}


/* of two that wait the newer one was about to replace the other */

void
ngx_mcp_repair_pending(ngx_mcp_zone_t *zone, ngx_mcp_pending_sh_t *m)
{
    uint32_t              *place;
    ngx_mcp_window_sh_t   *w;
    ngx_mcp_pending_sh_t  *other;

    w = ngx_mcp_repair_owner(zone, &m->rec, NGX_MCP_WINDOW);

    if (w == NULL) {
        return;
    }

    place = (m->rec.flags & NGX_MCP_PENDING_SENDING) ? &w->sending
                                                     : &w->waiting;
    other = NULL;

    if (*place) {
        other = ngx_mcp_block(zone, *place);

        if (other->serial > m->serial) {
            return;
        }
    }

    if (ngx_mcp_repair_mark(zone, m) != NGX_OK) {
        return;
    }

    if (other) {
        ngx_mcp_repair_unmark(zone, other);
    }

    *place = ngx_mcp_number(zone, m);

    zone->sh->stamp = ngx_max(zone->sh->stamp, m->serial);
}


void
ngx_mcp_repair_windows(ngx_mcp_zone_t *zone)
{
    uint32_t              n;
    ngx_uint_t            i;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_window_sh_t  *w;

    sh = zone->sh;

    for (n = 1; n < sh->fresh; n++) {
        w = ngx_mcp_block(zone, n);

        if (w->rec.block.type != NGX_MCP_WINDOW || !w->rec.block.mark) {
            continue;
        }

        w->class = (uint32_t) ngx_mcp_window_class(w);
        ngx_mcp_list_append(zone, &sh->windows[w->class], n, NGX_MCP_LINKS);
    }

    for (i = 0; i < NGX_MCP_WINDOW_CLASSES; i++) {
        ngx_mcp_repair_sort(zone, &sh->windows[i], NGX_MCP_LINKS,
                            ngx_mcp_order_window);
    }
}


static uint64_t
ngx_mcp_order_window(void *rec)
{
    return ((ngx_mcp_window_sh_t *) rec)->deadline;
}
