
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_entry.h"


static uint32_t ngx_mcp_log_skip(ngx_mcp_zone_t *zone, ngx_mcp_entry_sh_t *e);
static ngx_uint_t ngx_mcp_log_before(ngx_mcp_entry_sh_t *e,
    ngx_mcp_entry_sh_t *p);


void
ngx_mcp_log_append_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *entry)
{
    ngx_mcp_entry_sh_t  *e;

    e = entry;

    ngx_mcp_touch(zone, log);
    ngx_mcp_touch(zone, e);

    e->pos = ++log->last;
    log->count++;

    ngx_mcp_list_append(zone, &log->list, ngx_mcp_number(zone, e),
                        NGX_MCP_LINKS);

    e->skip = ngx_mcp_log_skip(zone, e);
}


void
ngx_mcp_log_remove_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *entry)
{
    ngx_mcp_touch(zone, log);
    log->count--;

    ngx_mcp_list_remove(zone, &log->list, ngx_mcp_number(zone, entry),
                        NGX_MCP_LINKS);
}


/*
 * Returns the block of the entry at the position of e without its lowest set
 * bit.  Each entry has this reference, so that any position is found from the
 * end in a few dozen steps.  The block may hold another record later, so a
 * reader that follows the reference has to check the record.
 */

static uint32_t
ngx_mcp_log_skip(ngx_mcp_zone_t *zone, ngx_mcp_entry_sh_t *e)
{
    uint32_t             n;
    uint64_t             target;
    ngx_mcp_entry_sh_t  *p, *next;

    n = e->rec.links.prev;

    if (n == 0) {
        return 0;
    }

    target = e->pos & (e->pos - 1);
    p = ngx_mcp_block(zone, n);

    while (p->skip) {
        next = ngx_mcp_block(zone, p->skip);

        if (!ngx_mcp_log_before(next, p) || next->pos < target) {
            break;
        }

        n = p->skip;
        p = next;
    }

    return n;
}


/* returns whether e is an entry of the same log as p, and older than p */

static ngx_uint_t
ngx_mcp_log_before(ngx_mcp_entry_sh_t *e, ngx_mcp_entry_sh_t *p)
{
    return e->rec.block.type == p->rec.block.type
           && e->rec.owner.block == p->rec.owner.block
           && e->rec.owner.gen == p->rec.owner.gen
           && e->pos < p->pos;
}


void *
ngx_mcp_log_after_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *owner, uint64_t pos, uint32_t hint)
{
    ngx_uint_t           type;
    ngx_mcp_ref_t        ref;
    ngx_mcp_entry_sh_t  *e, *p;

    if (log->list.head == 0 || pos >= log->last) {
        return NULL;
    }

    e = ngx_mcp_block(zone, log->list.head);

    if (e->pos > pos) {
        return e;
    }

    ref = ngx_mcp_ref(zone, owner);
    type = e->rec.block.type;

    if (hint) {
        e = ngx_mcp_block(zone, hint);

        if (e->rec.block.type == type && e->pos == pos
            && e->rec.owner.block == ref.block && e->rec.owner.gen == ref.gen)
        {
            return e->rec.links.next ? ngx_mcp_block(zone, e->rec.links.next)
                                     : NULL;
        }
    }

    e = ngx_mcp_block(zone, log->list.tail);

    if (e->pos <= pos) {
        return NULL;
    }

    for ( ;; ) {

        if (e->skip) {
            p = ngx_mcp_block(zone, e->skip);

            if (ngx_mcp_log_before(p, e) && p->pos > pos) {
                e = p;
                continue;
            }
        }

        /* the head is at pos or before it */

        p = ngx_mcp_block(zone, e->rec.links.prev);

        if (p->pos <= pos) {
            return e;
        }

        e = p;
    }
}
