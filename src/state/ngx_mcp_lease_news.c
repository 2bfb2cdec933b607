
#include "ngx_mcp_state_sh.h"


/* leases told about in one turn, and looked at under one hold of the lock */
#define NGX_MCP_LEASE_TURN   64
#define NGX_MCP_LEASE_PASS   256


static ngx_int_t ngx_mcp_lease_next(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t *why);
static uint32_t ngx_mcp_lease_unseen_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_worker_sh_t *w);
static ngx_uint_t ngx_mcp_lease_why_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_uint_t entitled);
static ngx_uint_t ngx_mcp_lease_stale_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);


/* that it lost what it had */

void
ngx_mcp_lease_tell_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_mcp_reader_sh_t *r)
{
    ngx_mcp_worker_sh_t  *w;

    if (r->nonce == 0) {
        return;
    }

    w = ngx_mcp_place(zone, r->worker);

    if (w->state != NGX_MCP_WORKER_LIVE || w->nonce != r->nonce) {
        return;
    }

    ngx_mcp_touch(zone, l);
    l->former = r->worker;
    l->former_nonce = r->nonce;

    ngx_mcp_lease_news_locked(zone, l, r->worker);
}


/* for all to look at */

void
ngx_mcp_lease_change_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    ngx_mcp_lease_news_locked(zone, l, NGX_MCP_NO_WORKER);
    ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_LEASES);
}


void
ngx_mcp_lease_news_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t worker)
{
    uint32_t              n;
    ngx_mcp_worker_sh_t  *w;

    n = ngx_mcp_number(zone, l);

    ngx_mcp_list_remove(zone, &zone->root->news, n,
                        offsetof(ngx_mcp_lease_sh_t, news));

    ngx_mcp_touch(zone, l);
    l->changed = ++zone->sh->stamp;

    ngx_mcp_list_append(zone, &zone->root->news, n,
                        offsetof(ngx_mcp_lease_sh_t, news));

    if (worker == NGX_MCP_NO_WORKER) {
        return;
    }

    w = ngx_mcp_place(zone, worker);
    w->bits |= NGX_MCP_RING_LEASES;

    ngx_mcp_worker_ring_locked(zone, worker);
}


void
ngx_mcp_lease_ring_locked(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  i;

    if (zone->root->nleases == 0) {
        return;
    }

    for (i = 0; i < zone->sh->top; i++) {
        ngx_mcp_place(zone, i)->leases = 0;
    }

    ngx_mcp_worker_ring_all_locked(zone, NGX_MCP_RING_LEASES);
}


ngx_int_t
ngx_mcp_lease_drain(ngx_mcp_zone_t *zone)
{
    u_char      buf[NGX_MCP_LEASE_KEY_MAX];
    ngx_int_t   rc;
    ngx_str_t   key;
    ngx_uint_t  i, why;

    if (zone->handlers == NULL || zone->handlers->lease == NULL) {
        return NGX_OK;
    }

    for (i = 0; i < NGX_MCP_LEASE_TURN; i++) {
        key.data = buf;

        rc = ngx_mcp_lease_next(zone, &key, &why);

        if (rc == NGX_DONE) {
            return NGX_OK;
        }

        if (rc == NGX_OK) {
            zone->handlers->lease(zone, &key, why);
        }
    }

    return NGX_AGAIN;
}


/* NGX_OK: there is one; NGX_AGAIN: not yet; NGX_DONE: all were seen */

static ngx_int_t
ngx_mcp_lease_next(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t *why)
{
    uint32_t              n, next;
    ngx_int_t             rc;
    ngx_uint_t            i, entitled;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_worker_sh_t  *w;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return NGX_DONE;
    }

    w = ngx_mcp_place(zone, zone->worker);

    ngx_mcp_zone_lock(zone);

    entitled = ngx_mcp_lease_entitled_locked(zone);

    n = ngx_mcp_lease_unseen_locked(zone, w);
    rc = NGX_DONE;

    for (i = 0; n; i++, n = next) {

        if (i == NGX_MCP_LEASE_PASS) {
            rc = NGX_AGAIN;
            break;
        }

        ngx_mcp_step_locked(zone);

        l = ngx_mcp_block(zone, n);
        next = l->news.next;

        w->leases = l->changed;
        w->lease = n;

        if (ngx_mcp_lease_stale_locked(zone, l)) {
            ngx_mcp_lease_drop_locked(zone, l);
            continue;
        }

        *why = ngx_mcp_lease_why_locked(zone, l, entitled);

        if (*why) {
            key->len = l->key_len;
            ngx_mcp_text_read(zone, l, 0, key->data, key->len);
            rc = NGX_OK;
            break;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* the first of which this worker did not see the last change */

static uint32_t
ngx_mcp_lease_unseen_locked(ngx_mcp_zone_t *zone, ngx_mcp_worker_sh_t *w)
{
    uint32_t             n, prev;
    ngx_mcp_lease_sh_t  *l;

    if (w->leases == 0) {
        return zone->root->news.head;
    }

    l = ngx_mcp_block(zone, w->lease);

    if (l->rec.block.type == NGX_MCP_LEASE && l->changed == w->leases) {
        return l->news.next;
    }

    n = 0;

    for (prev = zone->root->news.tail; prev; prev = l->news.prev) {
        l = ngx_mcp_block(zone, prev);

        if (l->changed <= w->leases) {
            break;
        }

        n = prev;
    }

    return n;
}


static ngx_uint_t
ngx_mcp_lease_why_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t entitled)
{
    uint32_t    nonce;
    ngx_uint_t  why;

    why = 0;
    nonce = ngx_mcp_place(zone, zone->worker)->nonce;

    (void) ngx_mcp_lease_before_locked(zone, l);

    ngx_mcp_touch(zone, l);

    if (l->former_nonce == nonce && l->former == zone->worker) {
        l->former_nonce = 0;
        why |= NGX_MCP_LEASE_LOST;
    }

    if (zone->awaits && ngx_mcp_lease_state_locked(zone, l) != NGX_AGAIN) {
        why |= NGX_MCP_LEASE_SETTLED;
    }

    if (l->holder.nonce == nonce && l->holder.worker == zone->worker) {

        if (l->rec.flags & NGX_MCP_LEASE_POKE) {
            l->rec.flags &= ~NGX_MCP_LEASE_POKE;
            why |= NGX_MCP_LEASE_POKED;
        }

        if (l->rec.flags & NGX_MCP_LEASE_MISSED) {
            l->rec.flags &= ~NGX_MCP_LEASE_MISSED;
            why |= NGX_MCP_LEASE_GAP;
        }

        return why;
    }

    if (entitled && ngx_mcp_lease_free_locked(zone, l)) {
        why |= NGX_MCP_LEASE_FREE;
    }

    return why;
}


/* nobody has cared for it for long */

static ngx_uint_t
ngx_mcp_lease_stale_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    if (l->before.nonce || ngx_mcp_lease_alive_locked(zone, &l->holder)) {
        return 0;
    }

    return ngx_max(l->since, l->holder.deadline) + NGX_MCP_LEASE_KEEP
           < ngx_current_msec;
}
