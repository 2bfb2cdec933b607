
#include "ngx_mcp_zone_sh.h"


static void ngx_mcp_repair_log(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log);
static void ngx_mcp_repair_carriers(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
static void ngx_mcp_repair_links(ngx_mcp_zone_t *zone,
    ngx_mcp_extension_sh_t *e);
static void ngx_mcp_repair_knowledge(ngx_mcp_zone_t *zone);
static uint32_t ngx_mcp_repair_merge(ngx_mcp_zone_t *zone, uint32_t a,
    uint32_t b, size_t offset, ngx_mcp_order_pt order);

static uint64_t ngx_mcp_order_group(void *rec);
static uint64_t ngx_mcp_order_idle(void *rec);
static uint64_t ngx_mcp_order_pos(void *rec);
static uint64_t ngx_mcp_order_line(void *rec);
static uint64_t ngx_mcp_order_stream(void *rec);
static uint64_t ngx_mcp_order_knowledge(void *rec);
static uint64_t ngx_mcp_order_topic(void *rec);
static uint64_t ngx_mcp_order_used(void *rec);
static uint64_t ngx_mcp_order_lease(void *rec);
static uint64_t ngx_mcp_order_change(void *rec);


void
ngx_mcp_repair_order(ngx_mcp_zone_t *zone)
{
    uint32_t                 i, n;
    ngx_mcp_call_sh_t       *c;
    ngx_mcp_zone_sh_t       *sh;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_record_sh_t     *rec;
    ngx_mcp_session_sh_t    *s;

    sh = zone->sh;

    ngx_mcp_repair_sort(zone, &sh->groups, NGX_MCP_LINKS,
                        ngx_mcp_order_group);
    ngx_mcp_repair_sort(zone, &sh->topics, offsetof(ngx_mcp_topic_sh_t, age),
                        ngx_mcp_order_used);

    for (n = 1; n < sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (!rec->block.mark) {
            continue;
        }

        switch (rec->block.type) {

        case NGX_MCP_GROUP:
            g = (ngx_mcp_group_sh_t *) rec;

            ngx_mcp_repair_log(zone, &g->log);
            ngx_mcp_repair_sort(zone, &g->topics[0], NGX_MCP_LINKS,
                                ngx_mcp_order_topic);
            ngx_mcp_repair_sort(zone, &g->topics[1], NGX_MCP_LINKS,
                                ngx_mcp_order_topic);
            break;

        case NGX_MCP_TOPIC:
            ngx_mcp_repair_log(zone, &((ngx_mcp_topic_sh_t *) rec)->log);
            break;

        case NGX_MCP_CALL:
            c = (ngx_mcp_call_sh_t *) rec;
            ngx_mcp_repair_log(zone, &c->log);
            break;

        case NGX_MCP_SESSION:
            s = (ngx_mcp_session_sh_t *) rec;

            ngx_mcp_repair_log(zone, &s->log);
            ngx_mcp_repair_sort(zone, &s->streams, NGX_MCP_LINKS,
                                ngx_mcp_order_stream);
            ngx_mcp_repair_sort(zone, &s->lines, NGX_MCP_LINKS,
                                ngx_mcp_order_line);
            ngx_mcp_repair_carriers(zone, s);

            if (s->ended) {
                break;
            }

            ngx_mcp_repair_links(zone, ngx_mcp_session_extension(zone, s));

            if (s->nstreams == 0 && s->ncalls == 0) {
                s->idle = (u_char) ngx_mcp_idle_class(s);
                ngx_mcp_list_append(zone, &sh->idle[s->idle], n,
                                    NGX_MCP_LINKS);
            }

            break;
        }
    }

    for (i = 0; i < NGX_MCP_IDLE_CLASSES; i++) {
        ngx_mcp_repair_sort(zone, &sh->idle[i], NGX_MCP_LINKS,
                            ngx_mcp_order_idle);
    }

    ngx_mcp_repair_windows(zone);
    ngx_mcp_repair_knowledge(zone);

    ngx_mcp_repair_sort(zone, &sh->leases, NGX_MCP_LINKS,
                        ngx_mcp_order_lease);
    ngx_mcp_repair_sort(zone, &sh->news, offsetof(ngx_mcp_lease_sh_t, news),
                        ngx_mcp_order_change);
}


static void
ngx_mcp_repair_log(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log)
{
    uint32_t             n;
    ngx_mcp_event_sh_t  *e;

    ngx_mcp_repair_sort(zone, &log->list, NGX_MCP_LINKS, ngx_mcp_order_pos);

    for (n = log->list.head; n; n = e->rec.links.next) {
        e = ngx_mcp_block(zone, n);
        e->skip = ngx_mcp_log_skip_locked(zone, e);
        log->last = ngx_max(log->last, e->pos);
    }
}


static void
ngx_mcp_repair_carriers(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t              n;
    ngx_mcp_call_sh_t    *c;
    ngx_mcp_stream_sh_t  *st;

    for (n = s->streams.head; n; n = st->task.rec.links.next) {
        st = ngx_mcp_block(zone, n);

        if (st->task.rec.flags & NGX_MCP_STREAM_CLOSING) {
            continue;
        }

        if (st->task.line == NGX_MCP_GENERAL_LINE) {
            if (s->carrier == 0) {
                s->carrier = n;
            }

            continue;
        }

        c = ngx_mcp_record(zone, st->call, NGX_MCP_CALL);

        if (c && c->task.rec.block.mark && c->task.carrier == 0) {
            c->task.carrier = n;
        }
    }
}


/* of two for one upstream the newer one was about to replace the other */

static void
ngx_mcp_repair_links(ngx_mcp_zone_t *zone, ngx_mcp_extension_sh_t *e)
{
    uint32_t            n, i, next;
    ngx_str_t           name;
    ngx_uint_t          drop;
    ngx_mcp_link_sh_t  *l, *other;
    u_char              buf[NGX_MCP_BLOCK_DATA];

    for (n = e->upstreams.head; n; n = next) {
        l = ngx_mcp_block(zone, n);
        next = l->rec.links.next;
        drop = 0;

        name.data = buf;
        name.len = ngx_min(l->upstream_len, NGX_MCP_BLOCK_DATA);
        ngx_mcp_text_read(zone, l, 0, buf, name.len);

        for (i = e->upstreams.head; i; i = other->rec.links.next) {
            other = ngx_mcp_block(zone, i);

            if (i != n && other->upstream_len == l->upstream_len
                && ngx_mcp_text_equal(zone, other, 0, name.len, &name)
                && (other->state == NGX_MCP_LINK_MADE
                    && (l->state != NGX_MCP_LINK_MADE
                        || other->serial > l->serial)))
            {
                drop = 1;
            }
        }

        if (drop) {
            ngx_mcp_list_remove(zone, &e->upstreams, n, NGX_MCP_LINKS);
            ngx_mcp_repair_unmark(zone, l);
        }
    }
}


static void
ngx_mcp_repair_knowledge(ngx_mcp_zone_t *zone)
{
    u_char                  *p;
    uint32_t                 n, next;
    ngx_str_t                key;
    ngx_mcp_list_sh_t        list;
    ngx_mcp_knowledge_sh_t  *k, *other;

    list = zone->sh->knowledge;
    ngx_memzero(&zone->sh->knowledge, sizeof(ngx_mcp_list_sh_t));

    ngx_mcp_repair_sort(zone, &list, NGX_MCP_LINKS, ngx_mcp_order_knowledge);

    for (n = list.head; n; n = next) {
        k = ngx_mcp_block(zone, n);
        next = k->rec.links.next;

        zone->sh->stamp = ngx_max(zone->sh->stamp, k->serial);

        /* an older one with this key was about to be replaced */

        key.len = k->key_len;
        key.data = ngx_alloc(key.len + 1, zone->log);
        p = key.data;

        if (p) {
            ngx_mcp_text_read(zone, k, 0, p, key.len);
            other = ngx_mcp_knowledge_find_locked(zone, &key);

            if (other) {
                ngx_mcp_hash_remove_locked(zone, other);
                ngx_mcp_list_remove(zone, &zone->sh->knowledge,
                                    ngx_mcp_number(zone, other),
                                    NGX_MCP_LINKS);
                ngx_mcp_repair_unmark(zone, other);
            }

            ngx_free(p);
        }

        ngx_mcp_hash_insert_locked(zone, k);
        ngx_mcp_list_append(zone, &zone->sh->knowledge, n, NGX_MCP_LINKS);
    }
}


/* a merge sort, lowest first; runs of 1, 2, 4, ... wait in bins */

void
ngx_mcp_repair_sort(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    size_t offset, ngx_mcp_order_pt order)
{
    uint32_t             n, next, prev, bins[32];
    ngx_uint_t           i;
    ngx_mcp_links_sh_t  *l;

    ngx_memzero(bins, sizeof(bins));

    for (n = list->head; n; n = next) {
        l = ngx_mcp_links(zone, n, offset);
        next = l->next;
        l->next = 0;

        for (i = 0; i < 31 && bins[i]; i++) {
            n = ngx_mcp_repair_merge(zone, bins[i], n, offset, order);
            bins[i] = 0;
        }

        bins[i] = n;
    }

    n = 0;

    for (i = 0; i < 32; i++) {
        if (bins[i]) {
            n = n ? ngx_mcp_repair_merge(zone, bins[i], n, offset, order)
                  : bins[i];
        }
    }

    list->head = n;
    prev = 0;

    for ( /* void */ ; n; n = l->next) {
        l = ngx_mcp_links(zone, n, offset);
        l->prev = prev;
        prev = n;
    }

    list->tail = prev;
}


static uint32_t
ngx_mcp_repair_merge(ngx_mcp_zone_t *zone, uint32_t a, uint32_t b,
    size_t offset, ngx_mcp_order_pt order)
{
    uint32_t             head, *link;
    ngx_mcp_links_sh_t  *l;

    link = &head;

    while (a && b) {

        if (order(ngx_mcp_block(zone, a)) <= order(ngx_mcp_block(zone, b))) {
            *link = a;
            l = ngx_mcp_links(zone, a, offset);
            a = l->next;

        } else {
            *link = b;
            l = ngx_mcp_links(zone, b, offset);
            b = l->next;
        }

        link = &l->next;
    }

    *link = a ? a : b;

    return head;
}


static uint64_t
ngx_mcp_order_group(void *rec)
{
    return ((ngx_mcp_group_sh_t *) rec)->number;
}


static uint64_t
ngx_mcp_order_idle(void *rec)
{
    return ((ngx_mcp_session_sh_t *) rec)->touched;
}


static uint64_t
ngx_mcp_order_pos(void *rec)
{
    return ((ngx_mcp_event_sh_t *) rec)->pos;
}


uint64_t
ngx_mcp_order_stamp(void *rec)
{
    return ((ngx_mcp_event_sh_t *) rec)->stamp;
}


static uint64_t
ngx_mcp_order_line(void *rec)
{
    return ((ngx_mcp_call_sh_t *) rec)->task.line;
}


/* newest first */

static uint64_t
ngx_mcp_order_stream(void *rec)
{
    return ~((ngx_mcp_stream_sh_t *) rec)->serial;
}


static uint64_t
ngx_mcp_order_knowledge(void *rec)
{
    return ((ngx_mcp_knowledge_sh_t *) rec)->serial;
}


static uint64_t
ngx_mcp_order_topic(void *rec)
{
    return ((ngx_mcp_topic_sh_t *) rec)->serial;
}


static uint64_t
ngx_mcp_order_used(void *rec)
{
    return ((ngx_mcp_topic_sh_t *) rec)->order;
}


static uint64_t
ngx_mcp_order_lease(void *rec)
{
    return ((ngx_mcp_lease_sh_t *) rec)->serial;
}


static uint64_t
ngx_mcp_order_change(void *rec)
{
    return ((ngx_mcp_lease_sh_t *) rec)->changed;
}
