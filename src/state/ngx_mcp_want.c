
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_subscriber.h"


/*
 * A zone has about one place for each .._SHARE bytes.  Each place has .._BITS
 * bits; worker n has bit n modulo this number.
 */
#define NGX_MCP_WANTED_SHARE  2048
#define NGX_MCP_WANTED_BITS   (8 * sizeof(ngx_atomic_t))


static ngx_atomic_t *ngx_mcp_wanted(ngx_mcp_zone_t *zone, uint64_t want);
static void ngx_mcp_wanted_set(ngx_atomic_t *place, ngx_atomic_uint_t bit,
    ngx_uint_t set);


uint64_t
ngx_mcp_event_want(ngx_mcp_target_sh_t *target, uint64_t none)
{
    ngx_uint_t  i;

    if (target->identity && target->identity != none) {
        return target->identity;
    }

    for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
        if (target->uri[i]) {
            return target->uri[i];
        }
    }

    return (target->audience != none) ? target->audience : NGX_MCP_WANT_ALL;
}


uint64_t
ngx_mcp_want_none(ngx_mcp_zone_t *zone)
{
    ngx_str_t  empty;

    ngx_str_null(&empty);

    return ngx_mcp_hash(zone, &empty, NULL);
}


size_t
ngx_mcp_wanted_places(size_t size)
{
    size_t  n;

    for (n = 1; n <= size / NGX_MCP_WANTED_SHARE / 2; n *= 2) { /* void */ }

    return n;
}


static ngx_atomic_t *
ngx_mcp_wanted(ngx_mcp_zone_t *zone, uint64_t want)
{
    ngx_mcp_root_sh_t  *root;

    root = zone->root;

    return (ngx_atomic_t *) (root->metric + root->metrics)
           + (want & (root->wanted - 1));
}


static void
ngx_mcp_wanted_set(ngx_atomic_t *place, ngx_atomic_uint_t bit, ngx_uint_t set)
{
    ngx_atomic_uint_t  old, new;

    do {
        old = *place;
        new = set ? old | bit : old & ~bit;

    } while (new != old && !ngx_atomic_cmp_set(place, old, new));
}


/*
 * Makes a worker's array of counts, one for each place; NULL: there is no
 * memory.  The bits of a worker that was killed stay set, and wake the next
 * worker with this number in vain.
 */

uint32_t *
ngx_mcp_wants_make(ngx_mcp_zone_t *zone)
{
    return ngx_calloc(zone->root->wanted * sizeof(uint32_t), zone->log);
}


void
ngx_mcp_want_add(ngx_mcp_zone_t *zone, uint32_t *counts, uint64_t want)
{
    counts[want & (zone->root->wanted - 1)]++;

    if (zone->worker != NGX_MCP_NO_WORKER) {
        ngx_mcp_wanted_set(ngx_mcp_wanted(zone, want),
                           (ngx_atomic_uint_t) 1
                           << zone->worker % NGX_MCP_WANTED_BITS, 1);
    }
}


void
ngx_mcp_want_remove(ngx_mcp_zone_t *zone, uint32_t *counts, uint64_t want)
{
    if (--counts[want & (zone->root->wanted - 1)]) {
        return;
    }

    /* a bit that another worker may share stays */

    if (zone->worker != NGX_MCP_NO_WORKER
        && zone->sh->top <= NGX_MCP_WANTED_BITS)
    {
        ngx_mcp_wanted_set(ngx_mcp_wanted(zone, want),
                           (ngx_atomic_uint_t) 1 << zone->worker, 0);
    }
}


/*
 * Wakes the workers that want an event.  Now and then all workers are woken,
 * so that a worker that is woken for an event still finds in the log all that
 * it has not read.
 */

void
ngx_mcp_group_ring_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_target_sh_t *target)
{
    uint64_t  none, want, some;

    want = NGX_MCP_WANT_ALL;
    some = NGX_MCP_WATCH_ALL;

    if (target) {
        none = (target->identity || target->audience)
               ? ngx_mcp_want_none(zone) : 0;
        want = ngx_mcp_event_want(target, none);
    }

    if (want == NGX_MCP_WANT_ALL) {
        /* void */

    } else if (g->log.last - g->rung
               >= ngx_min(NGX_MCP_NEWS, g->event_max / 2))
    {
        ngx_mcp_touch(zone, &g->rung);
        g->rung = g->log.last;

    } else {
        some = *ngx_mcp_wanted(zone, want);

#if (NGX_PTR_SIZE == 4)
        some |= some << 32;
#endif
    }

    ngx_mcp_watch_ring_locked(zone, g->watch, ngx_mcp_number(zone, g), some);
}
