
#include "ngx_mcp_zone_sh.h"


/* the lowest bit of a text that was read in an overlap says by whom */

#define NGX_MCP_TWICE_BEFORE  0
#define NGX_MCP_TWICE_HOLDER  1

/* what was read by one alone before the other was connected, ms */
#define NGX_MCP_TWICE_EARLY   2000


static ngx_mcp_twice_sh_t *ngx_mcp_twice_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, uint64_t text);
static void ngx_mcp_take_change(ngx_mcp_zone_t *zone);


ngx_int_t
ngx_mcp_lease_take(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    if (take->rc != NGX_AGAIN) {
        return take->rc;
    }

    ngx_mcp_take_prepare(zone, take);

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_take_begin_locked(zone, take, 0) == NGX_OK) {
        ngx_mcp_take_end_locked(zone, take);
    }

    ngx_mcp_zone_unlock(zone);

    return take->rc;
}


void
ngx_mcp_take_prepare(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    if (take->hash == 0 && take->text.len) {
        take->hash = ngx_mcp_hash(zone, &take->text, NULL);
    }
}


ngx_int_t
ngx_mcp_take_begin_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take,
    ngx_uint_t count)
{
    uint64_t              text;
    ngx_str_t             id;
    ngx_uint_t            side;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_twice_sh_t   *twice;
    ngx_mcp_taking_sh_t  *t;
    ngx_mcp_reader_sh_t  *r, *before;

    if (take == NULL || take->rc == NGX_OK) {
        return NGX_OK;
    }

    if (take->rc != NGX_AGAIN) {
        return take->rc;
    }

    sh = zone->sh;
    t = &sh->taking;

    r = ngx_mcp_lease_reader_locked(zone, &take->lease, &l);

    if (r == NULL) {
        take->rc = NGX_ABORT;
        return NGX_ABORT;
    }

    before = ngx_mcp_lease_before_locked(zone, l);

    t->place = NGX_MCP_TWICE;

    if (take->hash && (before || ngx_current_msec < l->until)) {

        /* the one of another overlap is another text */

        text = (take->hash + l->rec.block.gen) * 0x9e3779b97f4a7c15ULL;
        text = (text ^ (text >> 29) ^ ((uint64_t) l->fence << 32)
                ^ ngx_mcp_number(zone, l))
               & ~(uint64_t) 1;

        side = (r == &l->holder) ? NGX_MCP_TWICE_HOLDER
                                 : NGX_MCP_TWICE_BEFORE;

        twice = ngx_mcp_twice_locked(zone, l, text | !side);

        if (twice) {
            twice->text = 0;
            take->rc = NGX_DECLINED;
            return NGX_DECLINED;
        }

        if (before) {
            t->place = sh->next;
            t->next = (sh->next + 1) % NGX_MCP_TWICE;
            t->twice.text = text | side;
            t->twice.when = ngx_current_msec;
        }
    }

    t->id = l->id;

    if (take->id.len) {
        t->id = (l->id & NGX_MCP_LEASE_SECOND) ^ NGX_MCP_LEASE_SECOND;
        id = take->id;

        if (id.len <= NGX_MCP_LEASE_ID_MAX) {
            ngx_mcp_text_store(zone, l, l->key_len
                               + (t->id ? NGX_MCP_LEASE_ID_MAX : 0),
                               id.data, id.len);
            t->id |= (uint32_t) id.len;
        }
    }

    t->lease = ngx_mcp_number(zone, l);
    t->taken = l->taken + 1;
    t->last = ngx_current_msec;
    t->stamp = sh->stamp;
    t->count = (uint32_t) count;

    ngx_mcp_barrier();
    t->valid = 1;
    ngx_mcp_barrier();

    return NGX_OK;
}


/* what the other reader has read first and this one not yet */

static ngx_mcp_twice_sh_t *
ngx_mcp_twice_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    uint64_t text)
{
    ngx_uint_t           i, n;
    ngx_mcp_twice_sh_t  *twice;

    n = zone->sh->next;

    for (i = 0; i < NGX_MCP_TWICE; i++) {
        twice = &zone->sh->twice[n];

        if (twice->text == text
            && twice->when + NGX_MCP_TWICE_EARLY >= l->joined)
        {
            return twice;
        }

        n = (n + 1) % NGX_MCP_TWICE;
    }

    return NULL;
}


void
ngx_mcp_take_less_locked(ngx_mcp_zone_t *zone)
{
    if (zone->sh->taking.valid) {
        zone->sh->taking.count--;
    }
}


void
ngx_mcp_take_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    if (!zone->sh->taking.valid) {
        return;
    }

    ngx_mcp_barrier();
    ngx_mcp_take_change(zone);
    ngx_mcp_barrier();

    zone->sh->taking.valid = 0;

    take->rc = NGX_OK;
}


/* may be done again */

static void
ngx_mcp_take_change(ngx_mcp_zone_t *zone)
{
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_taking_sh_t  *t;

    sh = zone->sh;
    t = &sh->taking;
    l = ngx_mcp_block(zone, t->lease);

    l->id = t->id;
    l->taken = t->taken;
    l->last = t->last;

    if (t->place < NGX_MCP_TWICE) {
        sh->twice[t->place] = t->twice;
        sh->next = t->next;
    }
}


void
ngx_mcp_take_repair(ngx_mcp_zone_t *zone)
{
    uint32_t              n, found;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_event_sh_t   *e;
    ngx_mcp_taking_sh_t  *t;

    t = &zone->sh->taking;

    if (!t->valid) {
        return;
    }

    found = 0;

    for (n = 1; n < zone->sh->fresh; n++) {
        e = ngx_mcp_block(zone, n);

        if (e->rec.block.type == NGX_MCP_EVENT
            && ngx_mcp_take_undone(zone, e))
        {
            found++;
        }
    }

    if (found < t->count) {
        return;
    }

    l = t->lease < zone->sh->fresh ? ngx_mcp_block(zone, t->lease) : NULL;

    if (l && l->rec.block.type == NGX_MCP_LEASE) {
        ngx_mcp_take_change(zone);
    }

    t->valid = 0;
}


ngx_uint_t
ngx_mcp_take_undone(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e)
{
    ngx_mcp_taking_sh_t  *t;

    t = &zone->sh->taking;

    return t->valid && e->stamp > t->stamp;
}


void
ngx_mcp_take_repaired(ngx_mcp_zone_t *zone)
{
    zone->sh->taking.valid = 0;
}
