
#include "ngx_mcp_zone_sh.h"


static void ngx_mcp_repair_audience(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a);
static void ngx_mcp_repair_content(ngx_mcp_zone_t *zone,
    ngx_mcp_content_sh_t *c);
static void ngx_mcp_repair_member(ngx_mcp_zone_t *zone,
    ngx_mcp_extension_sh_t *e);


/* audiences, then their lists, and who is counted as a member */

void
ngx_mcp_repair_lists(ngx_mcp_zone_t *zone)
{
    uint32_t              n;
    ngx_mcp_record_sh_t  *rec;

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_AUDIENCE) {
            ngx_mcp_repair_audience(zone, (ngx_mcp_audience_sh_t *) rec);
        }
    }

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_LIST) {
            ngx_mcp_repair_content(zone, (ngx_mcp_content_sh_t *) rec);
        }

        if (rec->block.type == NGX_MCP_EXTENSION && rec->block.mark) {
            ngx_mcp_repair_member(zone, (ngx_mcp_extension_sh_t *) rec);
        }
    }
}


static void
ngx_mcp_repair_audience(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a)
{
    uint32_t                n, prev;
    ngx_uint_t              i;
    ngx_mcp_list_sh_t      *list;
    ngx_mcp_links_sh_t     *l;
    ngx_mcp_audience_sh_t  *other;

    if (ngx_mcp_repair_mark(zone, a) != NGX_OK) {
        return;
    }

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        a->lists[i].content = 0;
    }

    a->members = 0;

    zone->sh->numbers = ngx_max(zone->sh->numbers, a->number);

    a->rec.bucket = 0;
    ngx_mcp_hash_insert_locked(zone, a);

    /* in the order of numbers */

    list = &zone->sh->audiences;
    prev = list->tail;

    while (prev) {
        other = ngx_mcp_block(zone, prev);

        if (other->number < a->number) {
            break;
        }

        prev = other->rec.links.prev;
    }

    n = ngx_mcp_number(zone, a);
    l = &a->rec.links;
    l->prev = prev;

    if (prev) {
        other = ngx_mcp_block(zone, prev);
        l->next = other->rec.links.next;
        other->rec.links.next = n;

    } else {
        l->next = list->head;
        list->head = n;
    }

    if (l->next) {
        ngx_mcp_links(zone, l->next, NGX_MCP_LINKS)->prev = n;

    } else {
        list->tail = n;
    }
}


/* of two the newer one was about to replace the other */

static void
ngx_mcp_repair_content(ngx_mcp_zone_t *zone, ngx_mcp_content_sh_t *c)
{
    ngx_mcp_kept_sh_t      *k;
    ngx_mcp_content_sh_t   *other;
    ngx_mcp_audience_sh_t  *a;

    a = ngx_mcp_record(zone, c->rec.owner, NGX_MCP_AUDIENCE);

    if (a == NULL || !a->rec.block.mark || c->rec.flags >= NGX_MCP_LIST_KINDS
        || ngx_mcp_repair_mark(zone, c) != NGX_OK)
    {
        return;
    }

    k = &a->lists[c->rec.flags];
    zone->sh->stamp = ngx_max(zone->sh->stamp, c->version);

    if (k->content) {
        other = ngx_mcp_block(zone, k->content);

        if (other->version > c->version) {
            ngx_mcp_repair_unmark(zone, c);
            return;
        }

        ngx_mcp_repair_unmark(zone, other);
    }

    k->content = ngx_mcp_number(zone, c);
}


static void
ngx_mcp_repair_member(ngx_mcp_zone_t *zone, ngx_mcp_extension_sh_t *e)
{
    ngx_mcp_audience_sh_t  *a;

    a = ngx_mcp_record(zone, e->listed, NGX_MCP_AUDIENCE);

    if (a && a->rec.block.mark) {
        a->members++;

    } else {
        e->listed.block = 0;
    }
}
