
#include "ngx_mcp_state_sh.h"


#define NGX_MCP_FAREWELL_SIZE  2048


static void ngx_mcp_farewell_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_link_sh_t *l);
static void ngx_mcp_link_read_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_link_sh_t *l, ngx_mcp_link_t *link);
static void ngx_mcp_link_wake_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint32_t n);


ngx_int_t
ngx_mcp_link_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_mcp_ref_t call, ngx_mcp_link_t *link)
{
    ngx_int_t              rc;
    ngx_mcp_stage_t        stage;
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LINK, upstream, 1);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    ngx_mcp_zone_lock(zone);

    rc = NGX_OK;
    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (s && l == NULL) {
        rc = ngx_mcp_stage_reserve_locked(zone, &stage);
        s = ngx_mcp_session_locked(zone, session);
    }

    if (s == NULL || rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    if (l == NULL) {
        l = ngx_mcp_link_make_locked(zone, s, upstream, &stage);
    }

    switch (l->state) {

    case NGX_MCP_LINK_MADE:
        ngx_mcp_link_read_locked(zone, l, link);
        rc = NGX_OK;
        break;

    case NGX_MCP_LINK_MAKING:
        c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

        if (c) {
            ngx_mcp_touch(zone, c);
            c->waits = ngx_mcp_number(zone, l);
        }

        rc = NGX_AGAIN;
        break;

    default: /* NGX_MCP_LINK_NONE */
        ngx_mcp_touch(zone, l);
        l->rec.worker = (uint16_t) zone->worker;
        l->state = NGX_MCP_LINK_MAKING;
        rc = NGX_DECLINED;
        break;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_link_peek(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_mcp_link_t *link)
{
    ngx_int_t              rc;
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->state == NGX_MCP_LINK_MADE) {
        ngx_mcp_link_read_locked(zone, l, link);
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_mcp_link_sh_t *
ngx_mcp_link_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_str_t *upstream)
{
    uint32_t                 n;
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->upstreams.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        if (ngx_mcp_text_equal(zone, l, 0, l->upstream_len, upstream)) {
            return l;
        }
    }

    return NULL;
}


ngx_mcp_link_sh_t *
ngx_mcp_link_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_str_t *upstream, ngx_mcp_stage_t *stage)
{
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_extension_sh_t  *e;

    l = ngx_mcp_make_locked(zone, stage);
    ngx_memcpy(l->session, s->id, NGX_MCP_UUID_LEN);
    l->rec.owner = ngx_mcp_ref(zone, s);
    l->group = s->rec.owner;
    l->upstream_len = (uint32_t) upstream->len;
    l->serial = (uint32_t) ++zone->sh->stamp;

    ngx_mcp_commit_locked(zone, l, NGX_MCP_LINK);

    e = ngx_mcp_session_extension(zone, s);
    ngx_mcp_list_append(zone, &e->upstreams, ngx_mcp_number(zone, l),
                        NGX_MCP_LINKS);

    return l;
}


static void
ngx_mcp_link_read_locked(ngx_mcp_zone_t *zone, ngx_mcp_link_sh_t *l,
    ngx_mcp_link_t *link)
{
    link->revision = l->revision;
    link->serial = l->serial;
    link->id.len = l->rec.len - l->upstream_len;
    link->id.data = NULL;

    if (link->id.len <= NGX_MCP_LINK_ID_SHORT) {
        link->id.data = link->buf;
        ngx_mcp_text_read(zone, l, l->upstream_len, link->buf, link->id.len);
    }
}


ngx_int_t
ngx_mcp_link_id(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_pool_t *pool, ngx_mcp_link_t *link)
{
    u_char                *p;
    ngx_int_t              rc;
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    if (link->id.data) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, link->id.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->state == NGX_MCP_LINK_MADE && l->serial == link->serial) {
        ngx_mcp_text_read(zone, l, l->upstream_len, p, link->id.len);
        link->id.data = p;
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_link_put(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *id, ngx_uint_t revision)
{
    ngx_int_t                rc;
    ngx_str_t                parts[2];
    ngx_mcp_stage_t          stage;
    ngx_mcp_link_sh_t       *l, *old;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    if (id->len > NGX_MCP_LINK_ID_MAX) {
        ngx_mcp_link_fail(zone, session, upstream);
        return NGX_ERROR;
    }

    parts[0] = *upstream;
    parts[1] = *id;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LINK, parts, 2);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL || rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);

        if (s == NULL) {
            return NGX_DECLINED;
        }

        ngx_mcp_link_fail(zone, session, upstream);
        return NGX_ERROR;
    }

    /* a new record takes the place of the one that was claimed */

    old = ngx_mcp_link_find_locked(zone, s, upstream);

    if (old) {
        ngx_mcp_link_wake_locked(zone, s, ngx_mcp_number(zone, old));
    }

    l = ngx_mcp_link_make_locked(zone, s, upstream, &stage);

    l->revision = (uint32_t) revision;

    if (old) {
        l->listener = old->listener;
        l->heard = old->heard;
    }

    l->state = NGX_MCP_LINK_MADE;

    if (old) {
        e = ngx_mcp_session_extension(zone, s);

        ngx_mcp_list_remove(zone, &e->upstreams, ngx_mcp_number(zone, old),
                            NGX_MCP_LINKS);
        ngx_mcp_drop_locked(zone, old);
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


static void
ngx_mcp_link_wake_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    uint32_t n)
{
    uint32_t            i;
    ngx_mcp_call_sh_t  *c;

    for (i = s->calls.head; i; i = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, i);

        if (c->waits == n) {
            ngx_mcp_touch(zone, c);
            c->waits = 0;
            ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_LINK);
            ngx_mcp_step_locked(zone);
        }
    }

    if (s->rec.flags & NGX_MCP_SESSION_OWN) {
        ngx_mcp_own_ring_locked(zone, s);
    }
}


/* the claim on it ends without a result */

void
ngx_mcp_link_give_up_locked(ngx_mcp_zone_t *zone, ngx_mcp_link_sh_t *l)
{
    ngx_mcp_link_wake_locked(zone, ngx_mcp_block(zone, l->rec.owner.block),
                             ngx_mcp_number(zone, l));

    ngx_mcp_touch(zone, l);
    l->state = NGX_MCP_LINK_NONE;
}


void
ngx_mcp_link_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream)
{
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->state == NGX_MCP_LINK_MAKING) {
        ngx_mcp_link_give_up_locked(zone, l);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_link_forget(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_uint_t serial)
{
    ngx_mcp_link_sh_t     *l;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    l = s ? ngx_mcp_link_find_locked(zone, s, upstream) : NULL;

    if (l && l->state == NGX_MCP_LINK_MADE && l->serial == serial) {
        ngx_mcp_touch(zone, l);
        l->state = NGX_MCP_LINK_NONE;
    }

    ngx_mcp_zone_unlock(zone);
}


/*
 * The session ends: links with an upstream's session become farewells, which
 * keep the group, whose endpoint and tenant they are said for.
 */

void
ngx_mcp_links_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t                 n;
    ngx_mcp_link_sh_t       *l;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_extension_sh_t  *e;

    ngx_mcp_listeners_ring_locked(zone, s);

    e = ngx_mcp_session_extension(zone, s);

    while ((n = e->upstreams.head) != 0) {
        ngx_mcp_step_locked(zone);

        l = ngx_mcp_block(zone, n);

        ngx_mcp_list_remove(zone, &e->upstreams, n, NGX_MCP_LINKS);

        if (l->state != NGX_MCP_LINK_MADE || l->rec.len == l->upstream_len) {
            ngx_mcp_drop_locked(zone, l);
            continue;
        }

        ngx_mcp_touch(zone, l);
        l->rec.block.type = NGX_MCP_FAREWELL;
        zone->sh->used[NGX_MCP_LINK] -= l->rec.block.blocks;
        zone->sh->used[NGX_MCP_FAREWELL] += l->rec.block.blocks;

        g = ngx_mcp_session_group(zone, s);
        ngx_mcp_touch(zone, g);
        g->farewells++;
        ngx_mcp_list_append(zone, &zone->root->farewells, n, NGX_MCP_LINKS);

        /* the oldest ones are left to the time-out of their upstreams */

        while (zone->root->farewells.head
               && zone->sh->used[NGX_MCP_FAREWELL]
                  > zone->sh->blocks / NGX_MCP_FAREWELLS_SHARE)
        {
            ngx_mcp_farewell_drop_locked(zone,
                          ngx_mcp_block(zone, zone->root->farewells.head));
            ngx_mcp_step_locked(zone);
        }

        ngx_mcp_worker_ring_locked(zone, zone->worker,
                                   NGX_MCP_RING_FAREWELL);
    }
}


static void
ngx_mcp_farewell_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_link_sh_t *l)
{
    ngx_mcp_group_sh_t  *g;

    g = ngx_mcp_block(zone, l->group.block);

    ngx_mcp_list_remove(zone, &zone->root->farewells, ngx_mcp_number(zone, l),
                        NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, l);

    ngx_mcp_touch(zone, g);
    g->farewells--;
    ngx_mcp_group_settle_locked(zone, g);
}


void
ngx_mcp_farewell_begin(ngx_mcp_zone_t *zone)
{
    zone->farewells++;
}


void
ngx_mcp_farewell_end(ngx_mcp_zone_t *zone)
{
    zone->farewells--;

    ngx_mcp_zone_lock(zone);

    if (zone->root->farewells.head) {
        ngx_mcp_worker_ring_locked(zone, zone->worker,
                                   NGX_MCP_RING_FAREWELL);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_uint_t
ngx_mcp_farewell_full(ngx_mcp_zone_t *zone)
{
    return zone->farewells >= NGX_MCP_FAREWELLS;
}


ngx_int_t
ngx_mcp_farewell(ngx_mcp_zone_t *zone)
{
    size_t               len;
    u_char              *p, *heap, buf[NGX_MCP_FAREWELL_SIZE];
    u_char               text[NGX_MCP_UUID_LEN];
    uint32_t             n;
    ngx_str_t            endpoint, tenant, upstream, id, session;
    ngx_uint_t           revision;
    ngx_mcp_link_sh_t   *l;
    ngx_mcp_group_sh_t  *g;

    heap = NULL;

    if (ngx_mcp_farewell_full(zone)) {
        return NGX_DECLINED;
    }

    ngx_mcp_zone_lock(zone);

    n = zone->root->farewells.head;

    if (n == 0
        || (zone->worker != NGX_MCP_NO_WORKER
            && ngx_mcp_place(zone, zone->worker)->quitting))
    {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    l = ngx_mcp_block(zone, n);
    g = ngx_mcp_block(zone, l->group.block);

    len = l->rec.len + g->rec.len;
    p = buf;

    if (len > NGX_MCP_FAREWELL_SIZE) {
        heap = ngx_alloc(len, zone->log);
        p = heap;
    }

    if (p) {
        upstream.data = p;
        upstream.len = l->upstream_len;
        id.data = p + l->upstream_len;
        id.len = l->rec.len - l->upstream_len;
        ngx_mcp_text_read(zone, l, 0, p, l->rec.len);

        p += l->rec.len;

        endpoint.data = p;
        endpoint.len = g->endpoint_len;
        tenant.data = p + g->endpoint_len;
        tenant.len = g->rec.len - g->endpoint_len;
        ngx_mcp_text_read(zone, g, 0, p, g->rec.len);
    }

    revision = l->revision;
    session.data = text;
    session.len = NGX_MCP_UUID_LEN;
    ngx_memcpy(text, l->session, NGX_MCP_UUID_LEN);

    ngx_mcp_farewell_drop_locked(zone, l);

    ngx_mcp_zone_unlock(zone);

    if (p && zone->handlers && zone->handlers->farewell) {
        zone->handlers->farewell(zone, &endpoint, &upstream, &id, &tenant,
                                 &session, revision);
    }

    if (heap) {
        ngx_free(heap);
    }

    return NGX_OK;
}
