
#include "ngx_mcp_state_sh.h"


/* the lowest bit of a text that was read in an overlap says by whom */

#define NGX_MCP_TWICE_BEFORE  0
#define NGX_MCP_TWICE_HOLDER  1

/* what was read by one alone before the other was connected, ms */
#define NGX_MCP_TWICE_EARLY   2000


static void ngx_mcp_take_begin_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_take_t *take, uint64_t hash, uint32_t key);
static ngx_int_t ngx_mcp_take_twice_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_mcp_reader_sh_t *r, uint64_t hash,
    uint64_t *text);
static uint64_t ngx_mcp_twice_key(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    uint64_t hash, uint32_t fence);
static ngx_mcp_twice_sh_t *ngx_mcp_twice_locked(ngx_mcp_zone_t *zone,
    uint64_t text, uint64_t joined);
static void ngx_mcp_take_part_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_part_sh_t *part, uint32_t key, uint32_t place);
static void ngx_mcp_take_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_take_t *take);
static ngx_mcp_reader_sh_t *ngx_mcp_take_reader_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_take_t *take, ngx_mcp_lease_sh_t **l);
static void ngx_mcp_take_act(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take,
    ngx_uint_t end);


ngx_int_t
ngx_mcp_lease_begin(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    if (take->rc == NGX_AGAIN) {
        ngx_mcp_take_act(zone, take, 0);
    }

    return take->rc;
}


ngx_int_t
ngx_mcp_lease_take(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    if (take->rc == NGX_AGAIN || (take->rc == NGX_OK && !take->ended)) {
        ngx_mcp_take_act(zone, take, 1);
    }

    return take->rc;
}


static void
ngx_mcp_take_act(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take, ngx_uint_t end)
{
    uint32_t  key;
    uint64_t  hash;

    hash = 0;
    key = 0;

    if (take->rc == NGX_AGAIN) {
        hash = take->text.len ? ngx_mcp_hash(zone, &take->text, NULL) : 0;
        key = take->id.len
              ? (uint32_t) ((hash >> 32)
                            ^ ngx_mcp_hash(zone, &take->id, NULL)) : 0;
    }

    ngx_mcp_zone_lock(zone);

    if (take->rc == NGX_AGAIN) {
        ngx_mcp_take_begin_locked(zone, take, hash, key);
    }

    if (take->rc == NGX_OK && end) {
        ngx_mcp_take_end_locked(zone, take);
    }

    ngx_mcp_zone_unlock(zone);
}


static void
ngx_mcp_take_begin_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take,
    uint64_t hash, uint32_t key)
{
    uint32_t              place;
    uint64_t              text;
    ngx_mcp_root_sh_t    *root;
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_twice_sh_t   *twice;
    ngx_mcp_reader_sh_t  *r;

    root = zone->root;
    r = ngx_mcp_lease_reader_locked(zone, &take->lease, &l);

    if (r == NULL) {
        take->rc = NGX_ABORT;
        return;
    }

    text = 0;
    take->once.again = 1;
    take->rc = ngx_mcp_take_twice_locked(zone, l, r, hash, &text);

    if (take->rc == NGX_DECLINED) {
        return;
    }

    if (take->rc == NGX_AGAIN
        && (take->id.len == 0 || r->part.stamp == 0 || r->part.key != key))
    {
        take->once.again = 0;
        place = text ? root->next : NGX_MCP_TWICE;

        ngx_mcp_take_part_locked(zone, &r->part,
                                 take->id.len ? key : r->fence, place);

        if (text) {
            twice = &root->twice[place];

            ngx_mcp_touch(zone, &root->next);
            ngx_mcp_touch(zone, twice);
            root->next = (place + 1) % NGX_MCP_TWICE;
            twice->when = ngx_current_msec;
            twice->text = text;
        }
    }

    take->once.stamp = r->part.stamp;
    take->once.rank = 0;
    take->rc = NGX_OK;
}


/*
 * NGX_AGAIN: nobody else read it, and it is to be kept as *text, unless that
 * is 0; NGX_DECLINED: the other one did; NGX_OK: it did and died over it, so
 * that this one goes on with what it has begun.
 */

static ngx_int_t
ngx_mcp_take_twice_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_mcp_reader_sh_t *r, uint64_t hash, uint64_t *text)
{
    uint64_t              key;
    ngx_uint_t            side;
    ngx_mcp_twice_sh_t   *twice;
    ngx_mcp_reader_sh_t  *before, *other;

    before = ngx_mcp_lease_before_locked(zone, l);

    if (hash == 0 || (before == NULL && ngx_current_msec >= l->until)) {
        return NGX_AGAIN;
    }

    side = (r == &l->holder) ? NGX_MCP_TWICE_HOLDER : NGX_MCP_TWICE_BEFORE;

    if (side == NGX_MCP_TWICE_BEFORE && l->earlier
        && ngx_current_msec < r->claimed + NGX_MCP_LEASE_ALIKE)
    {
        /* it was the holder in the overlap before */

        key = ngx_mcp_twice_key(zone, l, hash, l->earlier);
        twice = ngx_mcp_twice_locked(zone, key | NGX_MCP_TWICE_BEFORE,
                                     r->claimed);

        if (twice) {
            ngx_mcp_touch(zone, twice);
            twice->text = 0;
            return NGX_DECLINED;
        }
    }

    key = ngx_mcp_twice_key(zone, l, hash, l->fence);
    twice = ngx_mcp_twice_locked(zone, key | !side, l->joined);

    if (twice == NULL) {
        *text = before ? (key | side) : 0;
        return NGX_AGAIN;
    }

    ngx_mcp_touch(zone, twice);
    twice->text = 0;

    other = (r == &l->holder) ? &l->before : &l->holder;

    if (other->part.stamp == 0 || other->part.place != twice - zone->root->twice
        || (other->part.key == other->fence
            && ngx_mcp_lease_alive_locked(zone, other)))
    {
        return NGX_DECLINED;
    }

    ngx_mcp_touch(zone, l);

    r->part.key = r->fence;
    r->part.place = NGX_MCP_TWICE;
    r->part.done = other->part.done;
    r->part.stamp = other->part.stamp;

    other->part.stamp = 0;

    return NGX_OK;
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


/* what the other reader has read first and this one not yet */

static ngx_mcp_twice_sh_t *
ngx_mcp_twice_locked(ngx_mcp_zone_t *zone, uint64_t text, uint64_t joined)
{
    ngx_uint_t           i, n;
    ngx_mcp_twice_sh_t  *twice;

    n = zone->root->next;

    for (i = 0; i < NGX_MCP_TWICE; i++) {
        twice = &zone->root->twice[n];

        if (twice->text == text
            && twice->when + NGX_MCP_TWICE_EARLY >= joined)
        {
            return twice;
        }

        n = (n + 1) % NGX_MCP_TWICE;
    }

    return NULL;
}


/* begins another one */

static void
ngx_mcp_take_part_locked(ngx_mcp_zone_t *zone, ngx_mcp_part_sh_t *part,
    uint32_t key, uint32_t place)
{
    ngx_mcp_touch(zone, part);
    part->key = key;
    part->place = (uint16_t) place;
    part->done = 0;
    part->stamp = ++zone->sh->stamp;
}


static void
ngx_mcp_take_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    r = ngx_mcp_take_reader_locked(zone, take, &l);

    if (r == NULL) {
        return;
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

    r->part.stamp = 0;

    l->taken++;
    l->last = ngx_current_msec;

    take->ended = 1;
}


static ngx_mcp_reader_sh_t *
ngx_mcp_take_reader_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take,
    ngx_mcp_lease_sh_t **l)
{
    ngx_mcp_reader_sh_t  *r;

    if (take->rc != NGX_OK) {
        return NULL;
    }

    r = ngx_mcp_lease_reader_locked(zone, &take->lease, l);

    if (r == NULL) {
        take->rc = NGX_ABORT;
    }

    return r;
}


ngx_int_t
ngx_mcp_take_check_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    ngx_mcp_lease_sh_t  *l;

    if (take == NULL || ngx_mcp_take_reader_locked(zone, take, &l)) {
        return NGX_OK;
    }

    return NGX_ABORT;
}


uint16_t *
ngx_mcp_take_done_locked(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    r = ngx_mcp_take_reader_locked(zone, take, &l);

    return (r && r->part.stamp == take->once.stamp) ? &r->part.done : NULL;
}
