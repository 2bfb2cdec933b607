
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


#define ngx_mcp_list_content(zone, k)                                         \
    ((ngx_mcp_content_sh_t *) ngx_mcp_block(zone, (k)->content))


static void ngx_mcp_list_add(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list,
    ngx_mcp_list_state_sh_t *k, ngx_uint_t source);
static void ngx_mcp_list_wanted_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a, ngx_mcp_list_state_sh_t *k);
static void ngx_mcp_list_init(ngx_mcp_list_t *list, ngx_mcp_ref_t audience,
    ngx_uint_t kind);
static ngx_uint_t ngx_mcp_list_signal_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_part_sh_t *p, ngx_uint_t kinds, ngx_uint_t others);
static ngx_uint_t ngx_mcp_list_differs(ngx_mcp_zone_t *zone,
    ngx_mcp_list_state_sh_t *k, ngx_mcp_list_content_t *content);
static ngx_mcp_audience_sh_t *ngx_mcp_list_part_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t part, ngx_mcp_part_sh_t **p);
static void ngx_mcp_list_changed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_part_sh_t *p, ngx_uint_t kind);
static ngx_int_t ngx_mcp_list_store(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl,
    uint64_t *forgotten);
static void ngx_mcp_list_fetched(ngx_mcp_list_state_sh_t *k, uint32_t signals,
    ngx_msec_t ttl);
static void ngx_mcp_list_hint(ngx_mcp_list_state_sh_t *k,
    ngx_mcp_hint_t *hint);
static ngx_int_t ngx_mcp_list_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t audience, ngx_mcp_stage_t *stage);


ngx_int_t
ngx_mcp_list_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_uint_t partial,
    ngx_mcp_list_t *list)
{
    uint32_t                  n;
    ngx_int_t                 rc;
    ngx_uint_t                i, cold, through;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_list_init(list, audience, kind);

    cold = 0;
    through = 0;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a == NULL || a->layout != sources->layout) {
        rc = (a && a->epoch > zone->epoch) ? NGX_DECLINED : NGX_ERROR;
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    if (partial != NGX_MCP_LIST_PEEK) {
        ngx_mcp_touch(zone, &a->used);
        a->used = ngx_current_msec;
    }

    list->version = a->versions[kind];

    for (n = a->parts.head, i = 0; n; n = p->rec.links.next, i++) {
        p = ngx_mcp_block(zone, n);
        k = &p->lists[kind];

        if (partial != NGX_MCP_LIST_PEEK) {
            ngx_mcp_list_wanted_locked(zone, a, k);
        }

        if (k->content) {
            ngx_mcp_list_add(zone, list, k, i);
            continue;
        }

        list->hint.until = 0;

        if (k->flags & NGX_MCP_LIST_PASS_THROUGH) {
            through = 1;

        } else if (!(k->flags & NGX_MCP_LIST_ABSENT)) {
            list->missing++;

            cold += !(k->failures || k->flags & NGX_MCP_LIST_LEFT_OUT);
        }
    }

    if (through) {
        rc = NGX_DECLINED;

    } else if (cold && !(partial && list->nparts)) {
        rc = NGX_AGAIN;

    } else {
        rc = list->nparts ? NGX_OK : NGX_DECLINED;
    }

    /* notes, once, the missing parts without which clients are served */

    for (n = (rc != NGX_AGAIN && partial != NGX_MCP_LIST_PEEK
              && list->missing && sources->n > 1)
             ? a->parts.head : 0, i = 0;
         n;
         n = p->rec.links.next, i++)
    {
        p = ngx_mcp_block(zone, n);
        k = &p->lists[kind];

        if (k->content
            || k->flags & (NGX_MCP_LIST_PASS_THROUGH|NGX_MCP_LIST_ABSENT
                           |NGX_MCP_LIST_LEFT_OUT))
        {
            continue;
        }

        ngx_mcp_touch(zone, &k->flags);
        k->flags |= NGX_MCP_LIST_LEFT_OUT;

        list->left_out |= 1u << i;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static void
ngx_mcp_list_init(ngx_mcp_list_t *list, ngx_mcp_ref_t audience,
    ngx_uint_t kind)
{
    list->audience = audience;
    list->kind = kind;
    list->len = 0;
    list->nparts = 0;
    list->missing = 0;
    list->left_out = 0;

    ngx_mcp_hint_init(&list->hint);
}


static void
ngx_mcp_list_add(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list,
    ngx_mcp_list_state_sh_t *k, ngx_uint_t source)
{
    ngx_mcp_list_part_t   *part;
    ngx_mcp_content_sh_t  *c;

    c = ngx_mcp_list_content(zone, k);
    part = &list->parts[list->nparts++];

    part->content = ngx_mcp_ref(zone, c);
    part->len = c->rec.len;
    part->source = source;
    part->hint.until = k->until;
    part->hint.public = (k->flags & NGX_MCP_LIST_PUBLIC) != 0;

    list->len += part->len;

    ngx_mcp_hint_join(&list->hint, &part->hint);
}


ngx_int_t
ngx_mcp_list_fresh(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_mcp_list_t *list)
{
    uint32_t                  n;
    ngx_uint_t                i;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_list_init(list, audience, kind);

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a && a->layout == sources->layout && a->epoch == zone->epoch) {

        ngx_mcp_touch(zone, &a->used);
        a->used = ngx_current_msec;

        list->version = a->versions[kind];

        for (n = a->parts.head, i = 0; n; n = p->rec.links.next, i++) {
            p = ngx_mcp_block(zone, n);
            k = &p->lists[kind];

            if (k->content && k->flags & NGX_MCP_LIST_PUBLIC
                && k->until > ngx_current_msec)
            {
                ngx_mcp_list_add(zone, list, k, i);

            } else {
                list->missing++;
            }
        }
    }

    ngx_mcp_zone_unlock(zone);

    if (list->nparts == 0) {
        return NGX_DECLINED;
    }

    return list->missing ? NGX_AGAIN : NGX_OK;
}


static void
ngx_mcp_list_wanted_locked(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a,
    ngx_mcp_list_state_sh_t *k)
{
    if (!(k->flags & NGX_MCP_LIST_WANTED)) {
        ngx_mcp_touch(zone, &k->flags);
        k->flags |= NGX_MCP_LIST_WANTED;
        ngx_mcp_list_ring_locked(zone, ngx_mcp_number(zone, a));
    }
}


void
ngx_mcp_list_want(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kinds)
{
    uint32_t                n;
    ngx_uint_t              i;
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_audience_sh_t  *a;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    for (n = a ? a->parts.head : 0; n; n = p->rec.links.next) {
        p = ngx_mcp_block(zone, n);

        for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
            if (kinds & NGX_MCP_LIST_BIT(i)) {
                ngx_mcp_list_wanted_locked(zone, a, &p->lists[i]);
            }
        }
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_list_read(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list, u_char *dst)
{
    uint32_t              recoveries;
    ngx_uint_t            i;
    ngx_mcp_list_part_t  *part;

    /*
     * The list may be dropped and overwritten while it is copied, and a
     * recovery may even restore it afterwards: both are checked.
     */

    recoveries = zone->sh->recoveries;
    ngx_memory_barrier();

    if (!ngx_mcp_list_current(zone, list)) {
        return NGX_DECLINED;
    }

    for (i = 0; i < list->nparts; i++) {
        part = &list->parts[i];

        ngx_mcp_text_read(zone, ngx_mcp_block(zone, part->content.block), 0,
                          dst, part->len);
        dst += part->len;
    }

    ngx_memory_barrier();

    return (zone->sh->recoveries == recoveries
            && ngx_mcp_list_current(zone, list)) ? NGX_OK : NGX_DECLINED;
}


ngx_uint_t
ngx_mcp_list_current(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list)
{
    ngx_mcp_audience_sh_t  *a;

    a = ngx_mcp_record(zone, list->audience, NGX_MCP_AUDIENCE);

    return a && a->versions[list->kind] == list->version;
}


ngx_uint_t
ngx_mcp_list_signal(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part, ngx_uint_t kinds, ngx_uint_t notified)
{
    uint32_t                n;
    ngx_uint_t              kept;
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_audience_sh_t  *a;

    kept = 0;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    for (n = a ? a->parts.head : 0; n; n = p->rec.links.next) {
        p = ngx_mcp_block(zone, n);

        if (part.block == 0 || part.block == n) {
            kept |= ngx_mcp_list_signal_locked(zone, p, kinds,
                                               notified ? ~a->kinds : 0);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return kept;
}


/*
 * Notes for a part that lists of these kinds may have changed.  "others" are
 * kinds that are not cached, to which the notification may refer as well.
 */

static ngx_uint_t
ngx_mcp_list_signal_locked(ngx_mcp_zone_t *zone, ngx_mcp_part_sh_t *p,
    ngx_uint_t kinds, ngx_uint_t others)
{
    ngx_uint_t                i, kept, rings, pair;
    ngx_mcp_list_state_sh_t  *k;

    kept = 0;
    rings = 0;
    pair = NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
           |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TEMPLATES);

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        k = &p->lists[i];

        if (!(kinds & NGX_MCP_LIST_BIT(i))
            || !(k->flags & NGX_MCP_LIST_WANTED))
        {
            continue;
        }

        ngx_mcp_touch(zone, k);
        k->signals++;
        k->failures = 0;
        k->until = 0;
        rings = 1;

        if (pair & NGX_MCP_LIST_BIT(i) && pair & kinds & others) {
            k->flags |= NGX_MCP_LIST_NOTIFY;
        }

        if (k->content
            || k->flags & (NGX_MCP_LIST_PASS_THROUGH|NGX_MCP_LIST_ABSENT
                           |NGX_MCP_LIST_LEFT_OUT))
        {
            kept |= NGX_MCP_LIST_BIT(i);
        }
    }

    if (rings) {
        ngx_mcp_list_ring_locked(zone, p->rec.owner.block);
    }

    return kept;
}


ngx_uint_t
ngx_mcp_list_signal_session(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_uint_t kinds, ngx_uint_t notified)
{
    ngx_uint_t              kept;
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_session_sh_t   *s;
    ngx_mcp_audience_sh_t  *a;

    a = NULL;
    p = NULL;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s && !s->subscriber.own_lists) {
        a = ngx_mcp_audience_find_locked(zone, ngx_mcp_session_group(zone, s),
                                         s->subscriber.audience);

        p = a ? ngx_mcp_audience_part_locked(zone, a, upstream) : NULL;
    }

    kept = p ? ngx_mcp_list_signal_locked(zone, p, kinds,
                                          notified ? ~a->kinds : 0)
             : 0;

    ngx_mcp_zone_unlock(zone);

    return kept;
}


/* finds a part and returns its audience; NULL: one of them is gone */

static ngx_mcp_audience_sh_t *
ngx_mcp_list_part_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_part_sh_t **p)
{
    *p = ngx_mcp_record(zone, part, NGX_MCP_PART);

    return *p ? ngx_mcp_record(zone, (*p)->rec.owner, NGX_MCP_AUDIENCE)
              : NULL;
}


ngx_int_t
ngx_mcp_list_due(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part, ngx_uint_t kind,
    ngx_msec_t not_before, uint32_t *signals, ngx_msec_t *delay)
{
    uint64_t                  now, due;
    ngx_int_t                 rc;
    ngx_uint_t                cold;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_list_state_sh_t  *k;

    now = ngx_current_msec;

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_list_part_locked(zone, part, &p) == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    k = &p->lists[kind];
    cold = !k->content
           && !(k->flags & (NGX_MCP_LIST_PASS_THROUGH|NGX_MCP_LIST_ABSENT));

    due = k->due;

    if (!k->failures && (cold || k->signals != k->seen)) {
        due = ngx_min(due, not_before);
    }

    if (!(k->flags & NGX_MCP_LIST_WANTED)) {
        rc = NGX_DECLINED;

    } else if (now >= due) {
        *signals = k->signals;
        rc = NGX_OK;

    } else {
        *delay = (ngx_msec_t) (due - now);
        rc = NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_list_put(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl)
{
    ngx_int_t  rc;

    rc = ngx_mcp_list_store(zone, part, content, signals, ttl, NULL);

    if (rc == NGX_DECLINED) {
        ngx_mcp_list_pass_through(zone, part, content->kind, 0, signals, ttl);
    }

    return rc;
}


ngx_int_t
ngx_mcp_list_keep(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_str_t *upstream, ngx_mcp_list_content_t *content, uint64_t forgotten)
{
    ngx_int_t      rc;
    ngx_mcp_ref_t  part;

    if (ngx_mcp_audience_part(zone, audience, upstream, &part) != NGX_OK) {
        return NGX_DECLINED;
    }

    rc = ngx_mcp_list_store(zone, part, content, 0, 0, &forgotten);

    return (rc == NGX_OK || rc == NGX_DONE) ? NGX_OK : NGX_DECLINED;
}


/*
 * Stores a list and returns as ngx_mcp_list_put() does, but changes nothing if
 * it returns NGX_DECLINED.  forgotten NULL: the module has fetched the list;
 * otherwise the list is from a response to a client (ngx_mcp_list_keep()), and
 * clients are not notified of a change.
 */

static ngx_int_t
ngx_mcp_list_store(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl,
    uint64_t *forgotten)
{
    uint32_t                  old;
    ngx_int_t                 rc;
    ngx_uint_t                kind;
    ngx_mcp_stage_t           stage;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_content_sh_t     *c;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    rc = ngx_mcp_list_confirm(zone, part, content, signals, ttl);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    kind = content->kind;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LIST, &content->text, 1);

    rc = ngx_mcp_stage(zone, &stage);

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_list_part_locked(zone, part, &p);

    if (rc == NGX_OK && a) {
        rc = ngx_mcp_list_room_locked(zone, p->rec.owner, &stage);
        a = ngx_mcp_list_part_locked(zone, part, &p);
    }

    if (forgotten
        && (zone->root->lists_forgotten != *forgotten
            || (a && a->epoch != zone->epoch)))
    {
        rc = NGX_DECLINED;
    }

    if (rc != NGX_OK || a == NULL) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);

        return a ? NGX_DECLINED : NGX_ERROR;
    }

    ngx_mcp_touch(zone, &a->versions);
    ngx_mcp_touch(zone, p);

    k = &p->lists[kind];
    old = k->content;

    rc = ngx_mcp_list_differs(zone, k, content) ? NGX_OK : NGX_DONE;

    if (forgotten == NULL
        && (rc == NGX_OK || k->flags & NGX_MCP_LIST_NOTIFY))
    {
        ngx_mcp_list_changed_locked(zone, p, kind);
        rc = NGX_OK;
    }

    c = ngx_mcp_make_locked(zone, &stage);

    c->rec.owner = part;
    c->rec.flags = (uint16_t) kind;
    c->filled = ngx_current_msec;
    c->entries = (uint32_t) content->entries;
    ngx_memcpy(c->digest, content->digest, NGX_MCP_DIGEST_LEN);
    ngx_memcpy(c->order, content->order, NGX_MCP_DIGEST_LEN);

    ngx_mcp_commit_locked(zone, c, NGX_MCP_LIST);

    k->content = ngx_mcp_number(zone, c);
    a->versions[kind] = ++zone->sh->stamp;

    if (old) {
        ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, old));
    }

    k->flags &= NGX_MCP_LIST_WANTED;

    ngx_mcp_list_fetched(k, signals, ttl);
    ngx_mcp_list_hint(k, &content->hint);

    if (forgotten == NULL) {
        ngx_mcp_list_ring_locked(zone, p->rec.owner.block);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* an unchanged list is not stored again: only its times and hint change */

ngx_int_t
ngx_mcp_list_confirm(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl)
{
    ngx_int_t                 rc;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_content_sh_t     *c;
    ngx_mcp_list_state_sh_t  *k;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_list_part_locked(zone, part, &p) == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    k = &p->lists[content->kind];
    c = k->content ? ngx_mcp_list_content(zone, k) : NULL;

    if (c && ngx_memcmp(c->order, content->order, NGX_MCP_DIGEST_LEN) == 0) {
        ngx_mcp_touch(zone, c);
        ngx_mcp_touch(zone, p);

        c->filled = ngx_current_msec;
        rc = NGX_DONE;

        if (k->flags & NGX_MCP_LIST_NOTIFY) {
            ngx_mcp_list_changed_locked(zone, p, content->kind);
            rc = NGX_OK;
        }

        ngx_mcp_list_fetched(k, signals, ttl);
        ngx_mcp_list_hint(k, &content->hint);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/*
 * Returns whether the list differs from the one that clients got last, even if
 * that one is not stored any more.
 */

static ngx_uint_t
ngx_mcp_list_differs(ngx_mcp_zone_t *zone, ngx_mcp_list_state_sh_t *k,
    ngx_mcp_list_content_t *content)
{
    if (k->content) {
        return ngx_memcmp(ngx_mcp_list_content(zone, k)->digest,
                          content->digest, NGX_MCP_DIGEST_LEN)
               != 0;
    }

    return k->flags & NGX_MCP_LIST_PASS_THROUGH
           || (k->flags & (NGX_MCP_LIST_ABSENT|NGX_MCP_LIST_LEFT_OUT)
               && content->entries);
}


/* notes a change of a list; the caller has touched the audience and the part */

static void
ngx_mcp_list_changed_locked(ngx_mcp_zone_t *zone, ngx_mcp_part_sh_t *p,
    ngx_uint_t kind)
{
    p->dirty |= NGX_MCP_LIST_BIT(kind);

    ngx_mcp_list_ring_locked(zone, p->rec.owner.block);
}


static void
ngx_mcp_list_fetched(ngx_mcp_list_state_sh_t *k, uint32_t signals,
    ngx_msec_t ttl)
{
    k->seen = signals;
    k->due = ngx_current_msec + ttl;
    k->failures = 0;
    k->flags &= ~NGX_MCP_LIST_NOTIFY;
}


static void
ngx_mcp_list_hint(ngx_mcp_list_state_sh_t *k, ngx_mcp_hint_t *hint)
{
    k->until = hint->until;
    k->flags &= ~NGX_MCP_LIST_PUBLIC;

    if (hint->public) {
        k->flags |= NGX_MCP_LIST_PUBLIC;
    }
}


void
ngx_mcp_list_forget(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *upstream, ngx_uint_t kinds)
{
    uint32_t                  n;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_audience_walk_t   walk;

    ngx_memzero(&walk, sizeof(ngx_mcp_audience_walk_t));

    walk.endpoint = endpoint;
    walk.tenant = tenant;

    /*
     * the number changes first, so that lists in open responses are not stored
     */

    ngx_mcp_zone_lock(zone);

    ngx_mcp_touch(zone, &zone->root->lists_forgotten);
    zone->root->lists_forgotten++;

    ngx_mcp_zone_unlock(zone);

    while (ngx_mcp_audience_next(zone, &walk, NULL, NULL) == NGX_OK) {
        ngx_mcp_zone_lock(zone);

        a = ngx_mcp_record(zone, walk.ref, NGX_MCP_AUDIENCE);

        for (n = a ? a->parts.head : 0; n; n = p->rec.links.next) {
            p = ngx_mcp_block(zone, n);

            if (upstream == NULL
                || ngx_mcp_text_equal(zone, p, 0, p->rec.len, upstream))
            {
                ngx_mcp_audience_drop_passed_locked(zone, a, p, kinds);
            }
        }

        ngx_mcp_zone_unlock(zone);
    }
}


uint64_t
ngx_mcp_lists_forgotten(ngx_mcp_zone_t *zone)
{
    return zone->root->lists_forgotten;
}


/* makes room for a list; all lists may occupy a quarter of the zone */

static ngx_int_t
ngx_mcp_list_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_stage_t *stage)
{
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    while (sh->used[NGX_MCP_LIST] + stage->blocks > sh->blocks / 4) {

        if (ngx_mcp_audience_reclaim_locked(zone, audience) != NGX_OK) {
            return NGX_DECLINED;
        }

        ngx_mcp_step_locked(zone);
    }

    return ngx_mcp_stage_reserve_locked(zone, stage);
}


void
ngx_mcp_list_pass_through(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_uint_t absent, uint32_t signals, ngx_msec_t ttl)
{
    uint32_t                  old;
    ngx_uint_t                flag;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    flag = absent ? NGX_MCP_LIST_ABSENT : NGX_MCP_LIST_PASS_THROUGH;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_list_part_locked(zone, part, &p);

    if (a) {
        k = &p->lists[kind];

        ngx_mcp_touch(zone, &a->versions);
        ngx_mcp_touch(zone, p);

        /* without a stored list each signal counts as a change */

        if (k->content || k->flags & NGX_MCP_LIST_NOTIFY
            || k->flags & (absent ? NGX_MCP_LIST_PASS_THROUGH
                           : NGX_MCP_LIST_ABSENT|NGX_MCP_LIST_LEFT_OUT)
            || (k->flags & NGX_MCP_LIST_PASS_THROUGH && k->seen != signals))
        {
            ngx_mcp_list_changed_locked(zone, p, kind);
        }

        old = k->content;

        k->content = 0;
        k->flags = (uint16_t) ((k->flags & NGX_MCP_LIST_WANTED) | flag);

        a->versions[kind] = ++zone->sh->stamp;

        if (old) {
            ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, old));
        }

        ngx_mcp_list_fetched(k, signals, ttl);
        ngx_mcp_list_ring_locked(zone, p->rec.owner.block);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_list_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part, ngx_uint_t kind)
{
    uint64_t                  delay;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_list_part_locked(zone, part, &p)) {
        k = &p->lists[kind];

        delay = NGX_MCP_LIST_RETRY << ngx_min(k->failures, 6);
        delay = ngx_min(delay, NGX_MCP_LIST_RETRY_MAX);
        delay -= (uint64_t) ngx_random() % (delay / 4);

        ngx_mcp_touch(zone, k);
        k->due = ngx_current_msec + delay;

        if (k->failures < 0xff) {
            k->failures++;
        }

        ngx_mcp_list_ring_locked(zone, p->rec.owner.block);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_uint_t
ngx_mcp_list_dirty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part)
{
    ngx_uint_t              kinds;
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_audience_sh_t  *a;

    kinds = 0;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);
    p = ngx_mcp_record(zone, part, NGX_MCP_PART);

    if (a) {
        kinds = a->dirty | (p ? p->dirty : 0);
    }

    ngx_mcp_zone_unlock(zone);

    return kinds;
}


void
ngx_mcp_list_hidden(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part, ngx_uint_t kind)
{
    ngx_mcp_part_sh_t  *p;

    ngx_mcp_zone_lock(zone);

    p = ngx_mcp_record(zone, part, NGX_MCP_PART);

    if (p) {
        ngx_mcp_touch(zone, &p->dirty);
        p->dirty &= ~NGX_MCP_LIST_BIT(kind);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_uint_t
ngx_mcp_list_announce(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part, ngx_mcp_audience_t *names, ngx_uint_t kinds,
    ngx_mcp_event_t *event)
{
    ngx_int_t               rc;
    ngx_uint_t              sessions, dirty;
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_group_sh_t     *g;
    ngx_mcp_log_input_t     in;
    ngx_mcp_audience_sh_t  *a;

    rc = NGX_DECLINED;
    dirty = 0;
    sessions = 0;

    event->list_key = names->key;
    event->flags |= NGX_MCP_EVENT_LISTED;

    ngx_mcp_log_input(zone, &in, event);

    ngx_mcp_zone_lock(zone);

    g = ngx_mcp_group_lookup_locked(zone, &names->endpoint, &names->tenant);

    if (g) {
        rc = ngx_mcp_reserve_locked(zone, ngx_mcp_ref(zone, g),
                                    NGX_MCP_ROOM_EVENT, in.stage.blocks);
    }

    g = ngx_mcp_group_lookup_locked(zone, &names->endpoint, &names->tenant);
    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);
    p = ngx_mcp_record(zone, part, NGX_MCP_PART);

    if (a) {
        dirty = a->dirty;

        ngx_mcp_touch(zone, &a->dirty);
        a->dirty &= ~kinds;
    }

    if (a && p) {
        dirty |= p->dirty;

        ngx_mcp_touch(zone, &p->dirty);
        p->dirty &= ~kinds;
    }

    if (dirty & kinds && g && g->sessions) {
        sessions = g->sessions;
        (void) ngx_mcp_log_group_locked(zone, g, &in, rc == NGX_OK, 0);
    }

    ngx_mcp_zone_unlock(zone);

    return sessions;
}


ngx_int_t
ngx_mcp_list_info(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, ngx_mcp_list_info_t *info)
{
    uint32_t                  n;
    ngx_msec_t                age;
    ngx_mcp_part_sh_t        *p;
    ngx_mcp_content_sh_t     *c;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_memzero(info, sizeof(ngx_mcp_list_info_t));

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    for (n = a ? a->parts.head : 0; n; n = p->rec.links.next) {
        p = ngx_mcp_block(zone, n);
        k = &p->lists[kind];

        info->members = a->members;

        if (!(k->flags & NGX_MCP_LIST_WANTED)
            && k->flags & NGX_MCP_LIST_PUBLIC && k->until <= ngx_current_msec)
        {
            /* the list is from a response whose time to live has passed */

            continue;
        }

        info->failing += (k->failures != 0);
        info->left_out += (k->content == 0
                           && k->flags & NGX_MCP_LIST_LEFT_OUT);

        if (k->content) {
            c = ngx_mcp_list_content(zone, k);
            age = (ngx_msec_t) (ngx_current_msec - c->filled);

            info->filled++;
            info->entries += c->entries;
            info->size += c->rec.len;
            info->age = ngx_max(info->age, age);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return a ? NGX_OK : NGX_DECLINED;
}
