
#include "ngx_mcp_state_sh.h"


#define NGX_MCP_ONCE_BUSY  0xffffffff

/* a claim of a process without a slot that never ended it, s */
#define NGX_MCP_ONCE_MAX   5


static ngx_mcp_once_sh_t *ngx_mcp_once_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);
static ngx_uint_t ngx_mcp_once_claimed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_once_sh_t *o);
static void ngx_mcp_once_settle(ngx_mcp_zone_t *zone, ngx_mcp_once_t *once,
    uint32_t sessions);


ngx_int_t
ngx_mcp_once_claim(ngx_mcp_zone_t *zone, ngx_str_t *scope, ngx_str_t *id,
    ngx_mcp_once_t *once, ngx_uint_t *sessions)
{
    ngx_int_t           rc;
    ngx_mcp_once_sh_t  *o;
    ngx_mcp_root_sh_t  *root;

    root = zone->root;

    ngx_memzero(once, sizeof(ngx_mcp_once_t));
    once->key = ngx_mcp_hash(zone, scope, id);

    *sessions = 0;
    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    o = ngx_mcp_once_find_locked(zone, once->key);

    if (o == NULL) {
        o = &root->once[root->oldest];

        ngx_mcp_touch(zone, o);
        o->stamp = ++zone->sh->stamp;
        o->done = 0;

    } else if (o->sessions != NGX_MCP_ONCE_BUSY) {
        *sessions = o->sessions;
        rc = NGX_DECLINED;

    } else if (ngx_mcp_once_claimed_locked(zone, o)) {
        rc = NGX_AGAIN;

    } else {
        once->again = 1;
    }

    if (rc == NGX_OK) {
        ngx_mcp_touch(zone, o);
        o->sessions = NGX_MCP_ONCE_BUSY;
        o->when = (uint32_t) ngx_time();
        o->worker = (uint16_t) zone->worker;
        o->nonce = (zone->worker == NGX_MCP_NO_WORKER)
                   ? 0 : ngx_mcp_place(zone, zone->worker)->nonce;

        if (!once->again) {
            o->id = once->key;
            ngx_mcp_touch(zone, &root->oldest);
            root->oldest = (root->oldest + 1) % NGX_MCP_ONCE;
        }

        once->stamp = o->stamp;
        once->place = o - root->once;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_uint_t
ngx_mcp_once_claimed_locked(ngx_mcp_zone_t *zone, ngx_mcp_once_sh_t *o)
{
    ngx_mcp_worker_sh_t  *w;

    if (o->worker >= zone->sh->places) {
        return (uint32_t) ngx_time() - o->when <= NGX_MCP_ONCE_MAX;
    }

    w = ngx_mcp_place(zone, o->worker);

    return w->state == NGX_MCP_WORKER_LIVE && w->nonce == o->nonce;
}


void
ngx_mcp_once_end(ngx_mcp_zone_t *zone, ngx_mcp_once_t *once,
    ngx_uint_t sessions)
{
    ngx_mcp_once_settle(zone, once, (uint32_t) sessions);
}


void
ngx_mcp_once_drop(ngx_mcp_zone_t *zone, ngx_mcp_once_t *once)
{
    ngx_mcp_once_settle(zone, once, NGX_MCP_ONCE_BUSY);
}


static void
ngx_mcp_once_settle(ngx_mcp_zone_t *zone, ngx_mcp_once_t *once,
    uint32_t sessions)
{
    ngx_mcp_once_sh_t  *o;

    ngx_mcp_zone_lock(zone);

    o = &zone->root->once[once->place];

    if (o->id == once->key) {
        ngx_mcp_touch(zone, o);
        o->sessions = sessions;

        /* nobody's: who comes next claims it */

        o->worker = NGX_MCP_PLACE_NONE;
        o->when = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


static ngx_mcp_once_sh_t *
ngx_mcp_once_find_locked(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_ONCE; i++) {
        if (zone->root->once[i].id == key) {
            return &zone->root->once[i];
        }
    }

    return NULL;
}


ngx_int_t
ngx_mcp_once_logged_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    ngx_mcp_event_t *event, ngx_mcp_only_sh_t *only)
{
    uint32_t             n;
    ngx_mcp_once_t      *once;
    ngx_mcp_event_sh_t  *e;

    once = event->once;

    if (once == NULL || !once->again) {
        return NGX_DECLINED;
    }

    for (n = log->list.tail; n; n = e->rec.links.prev) {
        e = ngx_mcp_block(zone, n);

        if (e->stamp <= once->stamp) {
            return NGX_DECLINED;
        }

        if (e->rec.hash == (uint32_t) once->stamp && e->rank == once->rank
            && e->only.audience == only->audience)
        {
            return NGX_OK;
        }
    }

    /* it may have been there, and be gone by now */

    if (log->lost && (int32_t) (log->lost - (uint32_t) once->stamp) > 0) {
        return NGX_ABORT;
    }

    return NGX_DECLINED;
}


uint16_t *
ngx_mcp_once_done_locked(ngx_mcp_zone_t *zone, ngx_mcp_event_t *event)
{
    ngx_mcp_once_sh_t  *o;

    if (event->once == NULL) {
        return NULL;
    }

    if (event->take) {
        return ngx_mcp_take_done_locked(zone, event->take);
    }

    o = &zone->root->once[event->once->place];

    return (o->id == event->once->key) ? &o->done : NULL;
}
