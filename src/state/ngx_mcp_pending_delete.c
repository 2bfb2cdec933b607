
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


#define NGX_MCP_PENDING_DELETE_BUF  2048


static void ngx_mcp_pending_delete_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);


/*
 * The owner of an upstream session has ended: the record becomes a pending
 * DELETE.  It keeps the reference to its group, whose endpoint and tenant the
 * DELETE needs.
 */

void
ngx_mcp_pending_delete_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    uint32_t             n;
    ngx_mcp_group_sh_t  *g;

    ngx_mcp_touch(zone, us);
    us->rec.block.type = NGX_MCP_PENDING_DELETE;
    zone->sh->used[NGX_MCP_UPSTREAM_SESSION] -= us->rec.block.blocks;
    zone->sh->used[NGX_MCP_PENDING_DELETE] += us->rec.block.blocks;

    g = ngx_mcp_block(zone, us->group.block);
    ngx_mcp_touch(zone, g);
    g->pending_deletes++;

    n = ngx_mcp_number(zone, us);
    ngx_mcp_list_append(zone, &zone->root->pending_deletes, n, NGX_MCP_LINKS);

    /* drops the oldest ones; their upstreams end these sessions by time-out */

    while (zone->root->pending_deletes.head != n
           && zone->sh->used[NGX_MCP_PENDING_DELETE]
              > zone->sh->blocks / NGX_MCP_PENDING_DELETES_SHARE)
    {
        ngx_mcp_pending_delete_drop_locked(zone,
                        ngx_mcp_block(zone, zone->root->pending_deletes.head));
        ngx_mcp_step_locked(zone);
    }

    ngx_mcp_worker_ring_locked(zone, zone->worker, NGX_MCP_RING_PENDING_DELETE);
}


static void
ngx_mcp_pending_delete_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us)
{
    ngx_mcp_group_sh_t  *g;

    g = ngx_mcp_block(zone, us->group.block);

    ngx_mcp_list_remove(zone, &zone->root->pending_deletes,
                        ngx_mcp_number(zone, us), NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, us);

    ngx_mcp_touch(zone, g);
    g->pending_deletes--;
    ngx_mcp_group_drop_unused_locked(zone, g);
}


void
ngx_mcp_pending_delete_begin(ngx_mcp_zone_t *zone)
{
    zone->counts[NGX_MCP_COUNT_DELETES]++;
}


void
ngx_mcp_pending_delete_end(ngx_mcp_zone_t *zone)
{
    zone->counts[NGX_MCP_COUNT_DELETES]--;

    ngx_mcp_zone_lock(zone);

    if (zone->root->pending_deletes.head) {
        ngx_mcp_worker_ring_locked(zone, zone->worker,
                                   NGX_MCP_RING_PENDING_DELETE);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_uint_t
ngx_mcp_pending_delete_full(ngx_mcp_zone_t *zone)
{
    return zone->counts[NGX_MCP_COUNT_DELETES] >= NGX_MCP_PENDING_DELETES;
}


ngx_int_t
ngx_mcp_pending_delete_send(ngx_mcp_zone_t *zone)
{
    size_t                          len;
    u_char                         *p, *heap, buf[NGX_MCP_PENDING_DELETE_BUF];
    u_char                          text[NGX_MCP_UUID_LEN];
    uint32_t                        n;
    ngx_mcp_group_sh_t             *g;
    ngx_mcp_pending_delete_t        due;
    ngx_mcp_upstream_session_sh_t  *us;

    heap = NULL;

    if (ngx_mcp_pending_delete_full(zone)) {
        return NGX_DECLINED;
    }

    ngx_mcp_zone_lock(zone);

    n = zone->root->pending_deletes.head;

    if (n == 0
        || (zone->worker != NGX_MCP_NO_WORKER
            && ngx_mcp_slot(zone, zone->worker)->quitting))
    {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    us = ngx_mcp_block(zone, n);
    g = ngx_mcp_block(zone, us->group.block);

    len = us->rec.len + g->rec.len;
    p = buf;

    if (len > NGX_MCP_PENDING_DELETE_BUF) {
        heap = ngx_alloc(len, zone->log);
        p = heap;
    }

    if (p) {
        due.upstream.data = p;
        due.upstream.len = us->upstream_len;
        due.id.data = p + us->upstream_len;
        due.id.len = us->rec.len - us->upstream_len;
        ngx_mcp_text_read(zone, us, 0, p, us->rec.len);

        p += us->rec.len;

        due.endpoint.data = p;
        due.endpoint.len = g->endpoint_len;
        due.tenant.data = p + g->endpoint_len;
        due.tenant.len = g->rec.len - g->endpoint_len;
        ngx_mcp_text_read(zone, g, 0, p, g->rec.len);
    }

    due.revision = us->revision;
    due.session.data = text;
    due.session.len = NGX_MCP_UUID_LEN;
    ngx_memcpy(text, us->session, NGX_MCP_UUID_LEN);

    ngx_mcp_pending_delete_drop_locked(zone, us);

    ngx_mcp_zone_unlock(zone);

    if (p && zone->handlers && zone->handlers->pending_delete) {
        zone->handlers->pending_delete(zone, &due);
    }

    if (heap) {
        ngx_free(heap);
    }

    return NGX_OK;
}
