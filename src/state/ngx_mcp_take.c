
#include "ngx_mcp_state_sh.h"


/* the lowest bit of a text that was read in an overlap says by whom */

#define NGX_MCP_TWICE_BEFORE  0
#define NGX_MCP_TWICE_HOLDER  1

/* one reader read alone before the other was connected, ms */
#define NGX_MCP_TWICE_EARLY   2000


static ngx_uint_t ngx_mcp_twice_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_mcp_reader_sh_t *r, uint64_t hash);
static uint64_t ngx_mcp_twice_key(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    uint64_t hash, uint32_t fence);
static ngx_uint_t ngx_mcp_twice_find_locked(ngx_mcp_zone_t *zone,
    uint64_t text, uint64_t joined);


ngx_int_t
ngx_mcp_lease_take(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    if (take->rc == NGX_AGAIN) {
        ngx_mcp_take_init(zone, take);

        ngx_mcp_zone_lock(zone);

        (void) ngx_mcp_take_locked(zone, take);

        ngx_mcp_zone_unlock(zone);
    }

    return take->rc;
}


void
ngx_mcp_take_init(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    take->hash = take->text.len ? ngx_mcp_hash(zone, &take->text, NULL) : 0;
}


ngx_int_t
ngx_mcp_take_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    r = ngx_mcp_lease_reader_locked(zone, &take->lease, &l);

    if (r == NULL) {
        take->rc = NGX_ABORT;
        return NGX_ABORT;
    }

    if (take->hash && ngx_mcp_twice_locked(zone, l, r, take->hash)) {
        take->rc = NGX_DECLINED;
        return NGX_DECLINED;
    }

    ngx_mcp_touch(zone, l);

    if (take->id.len) {
        l->id = 0;

        if (take->id.len <= NGX_MCP_LEASE_ID_MAX) {
            ngx_mcp_text_store(zone, l, l->key_len, take->id.data,
                               take->id.len);
            l->id = (uint32_t) take->id.len;
        }
    }

    l->taken++;
    l->last = ngx_current_msec;

    take->rc = NGX_OK;

    return NGX_OK;
}


void
ngx_mcp_take_left_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take,
    ngx_mcp_ref_t item)
{
    ngx_mcp_lease_sh_t  *l;

    l = ngx_mcp_record(zone, take->lease.ref, NGX_MCP_LEASE);

    if (l) {
        ngx_mcp_touch(zone, &l->left);
        l->left = item;
    }
}


ngx_uint_t
ngx_mcp_take_before_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take,
    ngx_mcp_ref_t *item)
{
    ngx_mcp_lease_sh_t  *l;

    l = ngx_mcp_record(zone, take->lease.ref, NGX_MCP_LEASE);

    if (l == NULL || ngx_mcp_record(zone, l->left, NGX_MCP_ITEM) == NULL) {
        return 0;
    }

    *item = l->left;

    return 1;
}


/*
 * Whether the other reader has read it.  If not, this one has, for as long as
 * both read.
 */

static ngx_uint_t
ngx_mcp_twice_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_mcp_reader_sh_t *r, uint64_t hash)
{
    uint64_t              key;
    ngx_uint_t            side;
    ngx_mcp_root_sh_t    *root;
    ngx_mcp_twice_sh_t   *twice;
    ngx_mcp_reader_sh_t  *before;

    before = ngx_mcp_lease_before_locked(zone, l);

    if (before == NULL && ngx_current_msec >= l->until) {
        return 0;
    }

    side = (r == &l->holder) ? NGX_MCP_TWICE_HOLDER : NGX_MCP_TWICE_BEFORE;

    if (side == NGX_MCP_TWICE_BEFORE && l->earlier
        && ngx_current_msec < r->claimed + NGX_MCP_LEASE_ALIKE)
    {
        /* it was the holder in the overlap before */

        key = ngx_mcp_twice_key(zone, l, hash, l->earlier);

        if (ngx_mcp_twice_find_locked(zone, key | NGX_MCP_TWICE_BEFORE,
                                      r->claimed))
        {
            return 1;
        }
    }

    key = ngx_mcp_twice_key(zone, l, hash, l->fence);

    if (ngx_mcp_twice_find_locked(zone, key | !side, l->joined)) {
        return 1;
    }

    if (before) {
        root = zone->root;
        twice = &root->twice[root->next];

        ngx_mcp_touch(zone, &root->next);
        ngx_mcp_touch(zone, twice);
        root->next = (root->next + 1) % NGX_MCP_TWICE;
        twice->when = ngx_current_msec;
        twice->text = key | side;
    }

    return 0;
}


/* the one of another overlap is another text */

static uint64_t
ngx_mcp_twice_key(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l, uint64_t hash,
    uint32_t fence)
{
    uint64_t  key;

    key = (hash + l->rec.block.gen) * 0x9e3779b97f4a7c15ULL;

    return (key ^ (key >> 29) ^ ((uint64_t) fence << 32)
            ^ ngx_mcp_number(zone, l))
           & ~(uint64_t) 1;
}


/* an event that the other reader read first is read by this one now */

static ngx_uint_t
ngx_mcp_twice_find_locked(ngx_mcp_zone_t *zone, uint64_t text,
    uint64_t joined)
{
    ngx_uint_t           i, n;
    ngx_mcp_twice_sh_t  *twice;

    n = zone->root->next;

    for (i = 0; i < NGX_MCP_TWICE; i++) {
        twice = &zone->root->twice[n];

        if (twice->text == text
            && twice->when + NGX_MCP_TWICE_EARLY >= joined)
        {
            ngx_mcp_touch(zone, twice);
            twice->text = 0;

            return 1;
        }

        n = (n + 1) % NGX_MCP_TWICE;
    }

    return 0;
}
