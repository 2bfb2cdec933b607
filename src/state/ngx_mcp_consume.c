
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* the lowest bit of a noted text: the reader that has read the text */

#define NGX_MCP_OVERLAP_PREVIOUS  0
#define NGX_MCP_OVERLAP_HOLDER    1

/*
 * ms; a text counts for an overlap if it was read at most this long before the
 * overlap's second reader connected.
 */
#define NGX_MCP_OVERLAP_EARLY     2000


static ngx_uint_t ngx_mcp_overlap_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, ngx_mcp_reader_sh_t *r, uint64_t hash);
static uint64_t ngx_mcp_overlap_key(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l, uint64_t hash, uint32_t overlap);
static ngx_uint_t ngx_mcp_overlap_find_locked(ngx_mcp_zone_t *zone,
    uint64_t text, uint64_t joined);


ngx_int_t
ngx_mcp_lease_consume(ngx_mcp_zone_t *zone, ngx_mcp_consume_t *consume)
{
    if (consume->rc == NGX_AGAIN) {
        ngx_mcp_consume_init(zone, consume);

        ngx_mcp_zone_lock(zone);

        (void) ngx_mcp_consume_locked(zone, consume);

        ngx_mcp_zone_unlock(zone);
    }

    return consume->rc;
}


void
ngx_mcp_consume_init(ngx_mcp_zone_t *zone, ngx_mcp_consume_t *consume)
{
    consume->hash = consume->text.len ? ngx_mcp_hash(zone, &consume->text,
                                                     NULL) : 0;
}


ngx_int_t
ngx_mcp_consume_locked(ngx_mcp_zone_t *zone, ngx_mcp_consume_t *consume)
{
    ngx_mcp_lease_sh_t   *l;
    ngx_mcp_reader_sh_t  *r;

    r = ngx_mcp_lease_reader_locked(zone, &consume->lease, &l);

    if (r == NULL) {
        consume->rc = NGX_ABORT;
        return NGX_ABORT;
    }

    if (consume->hash && ngx_mcp_overlap_locked(zone, l, r, consume->hash)) {
        consume->rc = NGX_DECLINED;
        return NGX_DECLINED;
    }

    ngx_mcp_touch(zone, l);

    if (consume->id.len) {
        l->id_len = 0;

        if (consume->id.len <= NGX_MCP_LEASE_ID_MAX) {
            ngx_mcp_text_store(zone, l, l->key_len, consume->id.data,
                               consume->id.len);
            l->id_len = (uint32_t) consume->id.len;
        }
    }

    l->consumed++;
    l->active = ngx_current_msec;

    consume->rc = NGX_OK;

    return NGX_OK;
}


void
ngx_mcp_consume_set_item_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume, ngx_mcp_ref_t item)
{
    ngx_mcp_lease_sh_t  *l;

    l = ngx_mcp_record(zone, consume->lease.ref, NGX_MCP_LEASE);

    if (l) {
        ngx_mcp_touch(zone, &l->item);
        l->item = item;
    }
}


ngx_uint_t
ngx_mcp_consume_unfinished_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume, ngx_mcp_ref_t *item)
{
    ngx_mcp_lease_sh_t  *l;

    l = ngx_mcp_record(zone, consume->lease.ref, NGX_MCP_LEASE);

    if (l == NULL || ngx_mcp_record(zone, l->item, NGX_MCP_ITEM) == NULL) {
        return 0;
    }

    *item = l->item;

    return 1;
}


/*
 * Returns whether the other reader of an overlap has read the text.  If not,
 * and both readers still read, notes that this reader has read the text.
 */

static ngx_uint_t
ngx_mcp_overlap_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_mcp_reader_sh_t *r, uint64_t hash)
{
    uint64_t               key;
    ngx_uint_t             side;
    ngx_mcp_root_sh_t     *root;
    ngx_mcp_reader_sh_t   *previous;
    ngx_mcp_overlap_sh_t  *overlaps;

    previous = ngx_mcp_lease_previous_locked(zone, l);

    if (previous == NULL && ngx_current_msec >= l->match_until) {
        return 0;
    }

    side = (r == &l->holder) ? NGX_MCP_OVERLAP_HOLDER
                             : NGX_MCP_OVERLAP_PREVIOUS;

    if (side == NGX_MCP_OVERLAP_PREVIOUS && l->earlier
        && ngx_current_msec < r->claimed + NGX_MCP_LEASE_MATCH_TIME)
    {
        /* this reader was the holder in the overlap before this one */

        key = ngx_mcp_overlap_key(zone, l, hash, l->earlier);

        if (ngx_mcp_overlap_find_locked(zone, key | NGX_MCP_OVERLAP_PREVIOUS,
                                        r->claimed))
        {
            return 1;
        }
    }

    key = ngx_mcp_overlap_key(zone, l, hash, l->overlap);

    if (ngx_mcp_overlap_find_locked(zone, key | !side, l->joined)) {
        return 1;
    }

    if (previous) {
        root = zone->root;
        overlaps = &root->overlaps[root->next];

        ngx_mcp_touch(zone, &root->next);
        ngx_mcp_touch(zone, overlaps);
        root->next = (root->next + 1) % NGX_MCP_OVERLAPS;
        overlaps->when = ngx_current_msec;
        overlaps->text = key | side;
    }

    return 0;
}


/* the key of a text differs for each overlap */

static uint64_t
ngx_mcp_overlap_key(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l, uint64_t hash,
    uint32_t overlap)
{
    uint64_t  key;

    key = (hash + l->rec.block.gen) * 0x9e3779b97f4a7c15ULL;

    return (key ^ (key >> 29) ^ ((uint64_t) overlap << 32)
            ^ ngx_mcp_number(zone, l))
           & ~(uint64_t) 1;
}


/* returns whether a reader has noted the text, and removes that note */

static ngx_uint_t
ngx_mcp_overlap_find_locked(ngx_mcp_zone_t *zone, uint64_t text,
    uint64_t joined)
{
    ngx_uint_t             i, n;
    ngx_mcp_overlap_sh_t  *overlaps;

    n = zone->root->next;

    for (i = 0; i < NGX_MCP_OVERLAPS; i++) {
        overlaps = &zone->root->overlaps[n];

        if (overlaps->text == text
            && overlaps->when + NGX_MCP_OVERLAP_EARLY >= joined)
        {
            ngx_mcp_touch(zone, overlaps);
            overlaps->text = 0;

            return 1;
        }

        n = (n + 1) % NGX_MCP_OVERLAPS;
    }

    return 0;
}
