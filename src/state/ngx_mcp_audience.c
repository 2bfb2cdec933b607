
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


static ngx_mcp_audience_sh_t *ngx_mcp_audience_lookup_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a);
static void ngx_mcp_audience_limit(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_uint_t max);
static ngx_int_t ngx_mcp_audience_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_walk_t *walk);
static ngx_int_t ngx_mcp_audience_sync_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_mcp_sources_t *sources);
static void ngx_mcp_audience_layout_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, uint64_t layout);
static void ngx_mcp_audience_drop_older_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud);
static ngx_mcp_part_sh_t *ngx_mcp_audience_add_part_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref, ngx_mcp_source_t *source);
static void ngx_mcp_audience_forget_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_part_sh_t *p, ngx_uint_t kinds);
static void ngx_mcp_audience_drop_part_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p);
static void ngx_mcp_audience_changed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p, ngx_uint_t kinds);
static ngx_uint_t ngx_mcp_audience_matches(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a, ngx_str_t *endpoint, ngx_str_t *tenant);


/* audiences examined under one hold of the lock */
#define NGX_MCP_AUDIENCE_STEPS  64


#define ngx_mcp_audience_hash(group, key)                                     \
    ((uint32_t) (group) ^ (uint32_t) (key))


ngx_int_t
ngx_mcp_audience_get(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_sources_t *sources, ngx_uint_t max, ngx_mcp_ref_t *ref)
{
    ngx_int_t               rc;
    ngx_str_t               parts[3];
    ngx_mcp_stage_t         stage;
    ngx_mcp_audience_sh_t  *aud;

    parts[0] = a->endpoint;
    parts[1] = a->tenant;
    parts[2] = a->key;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_AUDIENCE, parts, 3);

    if (stage.blocks > NGX_MCP_BLOCKS_BATCH) {
        return NGX_DECLINED;
    }

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_audience_lookup_locked(zone, a) == NULL) {
        ngx_mcp_zone_unlock(zone);
        ngx_mcp_audience_limit(zone, &a->endpoint, max);
        ngx_mcp_zone_lock(zone);
    }

    aud = ngx_mcp_audience_lookup_locked(zone, a);

    if (aud) {
        *ref = ngx_mcp_ref(zone, aud);
        goto found;
    }

    if (ngx_mcp_stage_reserve_locked(zone, &stage) != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    aud = ngx_mcp_make_locked(zone, &stage);

    ngx_mcp_touch(zone, &zone->root->numbers);
    aud->number = ++zone->root->numbers;
    aud->group = ngx_mcp_hash(zone, &a->endpoint, &a->tenant);
    aud->key = ngx_mcp_hash(zone, &a->key, NULL);
    aud->used = ngx_current_msec;
    aud->endpoint_len = (uint32_t) a->endpoint.len;
    aud->tenant_len = (uint32_t) a->tenant.len;
    aud->rec.hash = ngx_mcp_audience_hash(aud->group, aud->key);

    ngx_mcp_commit_locked(zone, aud, NGX_MCP_AUDIENCE);

    ngx_mcp_hash_insert_locked(zone, aud);
    ngx_mcp_list_append(zone, &zone->root->audiences,
                        ngx_mcp_number(zone, aud), NGX_MCP_LINKS);

    *ref = ngx_mcp_ref(zone, aud);

found:

    rc = ngx_mcp_audience_sync_locked(zone, *ref, sources);

    ngx_mcp_zone_unlock(zone);

    return (rc == NGX_OK || rc == NGX_DONE) ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_audience_sync(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_sources_t *sources)
{
    ngx_int_t  rc;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_audience_sync_locked(zone, ref, sources);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/*
 * Makes the parts of an audience agree with "sources", in several steps.  If
 * this process dies between them, another one begins again.
 */

static ngx_int_t
ngx_mcp_audience_sync_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_sources_t *sources)
{
    uint32_t                n, next;
    uint64_t                prefix;
    ngx_uint_t              i;
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_audience_sh_t  *aud;

    aud = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (aud == NULL) {
        return NGX_ERROR;
    }

    if (aud->layout == sources->layout) {

        if (aud->epoch < zone->epoch) {
            ngx_mcp_audience_drop_older_locked(zone, aud);

            ngx_mcp_touch(zone, &aud->epoch);
            aud->epoch = zone->epoch;
        }

        return NGX_DONE;
    }

    if (aud->epoch > zone->epoch
        || (aud->epoch == zone->epoch && aud->layout))
    {
        return NGX_DECLINED;
    }

    ngx_mcp_touch(zone, &aud->epoch);
    aud->epoch = zone->epoch;

    ngx_mcp_audience_layout_locked(zone, aud, 0);
    ngx_mcp_audience_drop_older_locked(zone, aud);

    for (n = aud->parts.head; n; n = next) {
        p = ngx_mcp_block(zone, n);
        next = p->rec.links.next;

        for (i = 0; i < sources->n; i++) {
            if (ngx_mcp_text_equal(zone, p, 0, p->rec.len,
                                   &sources->elts[i].name))
            {
                break;
            }
        }

        if (i == sources->n) {
            ngx_mcp_audience_changed_locked(zone, aud, p, NGX_MCP_LIST_ALL);
            aud->dirty |= p->dirty;
            ngx_mcp_audience_drop_part_locked(zone, aud, p);
            ngx_mcp_step_locked(zone);
        }
    }

    for (i = 0; i < sources->n; i++) {
        prefix = ngx_mcp_hash(zone, &sources->elts[i].prefix, NULL);

        p = ngx_mcp_audience_part_locked(zone, aud, &sources->elts[i].name);

        if (p == NULL) {
            p = ngx_mcp_audience_add_part_locked(zone, ref, &sources->elts[i]);
            aud = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

            if (p == NULL) {
                return aud ? NGX_DECLINED : NGX_ERROR;
            }

        } else {
            ngx_mcp_list_remove(zone, &aud->parts, ngx_mcp_number(zone, p),
                                NGX_MCP_LINKS);

            if (p->prefix != prefix) {
                ngx_mcp_audience_changed_locked(zone, aud, p,
                                        NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS)
                                        |NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS)
                                        );
            }
        }

        ngx_mcp_list_append(zone, &aud->parts, ngx_mcp_number(zone, p),
                            NGX_MCP_LINKS);

        ngx_mcp_touch(zone, &p->prefix);
        p->prefix = prefix;

        ngx_mcp_audience_forget_locked(zone, p, ~sources->kinds);

        ngx_mcp_step_locked(zone);
    }

    ngx_mcp_touch(zone, &aud->kinds);
    aud->kinds = (uint32_t) sources->kinds;

    ngx_mcp_audience_layout_locked(zone, aud, sources->layout);
    ngx_mcp_list_ring_locked(zone, ref.block);

    return NGX_OK;
}


/* sets the layout, and new versions: copies that workers have are outdated */

static void
ngx_mcp_audience_layout_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, uint64_t layout)
{
    ngx_uint_t  i;

    ngx_mcp_touch_range(zone, aud, layout, versions);
    aud->layout = layout;

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        aud->versions[i] = ++zone->sh->stamp;
    }
}


/* drops lists that were kept from responses under an older configuration */

static void
ngx_mcp_audience_drop_older_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud)
{
    uint32_t            n;
    ngx_mcp_part_sh_t  *p;

    for (n = aud->parts.head; n; n = p->rec.links.next) {
        p = ngx_mcp_block(zone, n);

        ngx_mcp_audience_drop_passed_locked(zone, aud, p, NGX_MCP_LIST_ALL);
        ngx_mcp_step_locked(zone);
    }
}


void
ngx_mcp_audience_drop_passed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p, ngx_uint_t kinds)
{
    ngx_uint_t                i, passed;
    ngx_mcp_list_state_sh_t  *k;

    passed = 0;

    ngx_mcp_touch(zone, &aud->versions);

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        k = &p->lists[i];

        if (k->content && !(k->flags & NGX_MCP_LIST_WANTED)
            && kinds & NGX_MCP_LIST_BIT(i))
        {
            aud->versions[i] = ++zone->sh->stamp;
            passed |= NGX_MCP_LIST_BIT(i);
        }
    }

    ngx_mcp_audience_forget_locked(zone, p, passed);
}


/*
 * Makes a part, which the caller puts into the list of parts.  NULL: there is
 * no room, or the audience is gone.
 */

static ngx_mcp_part_sh_t *
ngx_mcp_audience_add_part_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_source_t *source)
{
    uint32_t                  n;
    ngx_uint_t                i;
    ngx_mcp_stage_t           stage;
    ngx_mcp_part_sh_t        *p, *other;
    ngx_mcp_audience_sh_t    *aud;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_PART, &source->name, 1);

    if (stage.blocks > NGX_MCP_BLOCKS_SMALL
        || ngx_mcp_stage_reserve_locked(zone, &stage) != NGX_OK)
    {
        return NULL;
    }

    aud = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (aud == NULL) {
        return NULL;
    }

    p = ngx_mcp_make_locked(zone, &stage);

    p->rec.owner = ref;

    for (n = aud->parts.head; n; n = other->rec.links.next) {
        other = ngx_mcp_block(zone, n);

        for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
            k = &other->lists[i];

            p->lists[i].flags |= k->flags & NGX_MCP_LIST_WANTED;

            if (k->content) {
                p->lists[i].flags |= NGX_MCP_LIST_LEFT_OUT;
            }
        }
    }

    ngx_mcp_commit_locked(zone, p, NGX_MCP_PART);

    return p;
}


/* drops the part's lists of these kinds */

static void
ngx_mcp_audience_forget_locked(ngx_mcp_zone_t *zone, ngx_mcp_part_sh_t *p,
    ngx_uint_t kinds)
{
    uint32_t    n;
    ngx_uint_t  i;

    ngx_mcp_touch(zone, p);

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {

        if (!(kinds & NGX_MCP_LIST_BIT(i))) {
            continue;
        }

        n = p->lists[i].content;

        p->dirty &= ~NGX_MCP_LIST_BIT(i);
        ngx_memzero(&p->lists[i], sizeof(ngx_mcp_list_state_sh_t));

        if (n) {
            ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, n));
        }
    }
}


static void
ngx_mcp_audience_drop_part_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p)
{
    ngx_mcp_list_remove(zone, &aud->parts, ngx_mcp_number(zone, p),
                        NGX_MCP_LINKS);

    ngx_mcp_audience_forget_locked(zone, p, NGX_MCP_LIST_ALL);
    ngx_mcp_drop_locked(zone, p);
}


/* notes a change of those of these lists that have entries in the part */

static void
ngx_mcp_audience_changed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p, ngx_uint_t kinds)
{
    uint32_t               n;
    ngx_uint_t             i;
    ngx_mcp_content_sh_t  *c;

    ngx_mcp_touch(zone, &aud->dirty);

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        n = p->lists[i].content;

        if (n == 0 || !(kinds & NGX_MCP_LIST_BIT(i))) {
            continue;
        }

        c = ngx_mcp_block(zone, n);

        if (c->entries) {
            aud->dirty |= NGX_MCP_LIST_BIT(i);
        }
    }
}


ngx_int_t
ngx_mcp_audience_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_str_t *upstream, ngx_mcp_ref_t *part)
{
    ngx_mcp_part_sh_t      *p;
    ngx_mcp_audience_sh_t  *aud;

    p = NULL;

    ngx_mcp_zone_lock(zone);

    aud = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (aud) {
        p = ngx_mcp_audience_part_locked(zone, aud, upstream);
    }

    if (p) {
        *part = ngx_mcp_ref(zone, p);
    }

    ngx_mcp_zone_unlock(zone);

    return p ? NGX_OK : NGX_DECLINED;
}


ngx_mcp_part_sh_t *
ngx_mcp_audience_part_locked(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a,
    ngx_str_t *upstream)
{
    uint32_t            n;
    ngx_mcp_part_sh_t  *p;

    for (n = a->parts.head; n; n = p->rec.links.next) {
        p = ngx_mcp_block(zone, n);

        if (ngx_mcp_text_equal(zone, p, 0, p->rec.len, upstream)) {
            return p;
        }
    }

    return NULL;
}


ngx_int_t
ngx_mcp_audience_find(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_ref_t *ref)
{
    ngx_mcp_audience_sh_t  *aud;

    ngx_mcp_zone_lock(zone);

    aud = ngx_mcp_audience_lookup_locked(zone, a);

    if (aud) {
        *ref = ngx_mcp_ref(zone, aud);
    }

    ngx_mcp_zone_unlock(zone);

    return aud ? NGX_OK : NGX_DECLINED;
}


static ngx_mcp_audience_sh_t *
ngx_mcp_audience_lookup_locked(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a)
{
    size_t                  len;
    uint32_t                hash;
    uint64_t                group, key;
    ngx_mcp_audience_sh_t  *aud;

    group = ngx_mcp_hash(zone, &a->endpoint, &a->tenant);
    key = ngx_mcp_hash(zone, &a->key, NULL);
    hash = ngx_mcp_audience_hash(group, key);
    len = a->endpoint.len + a->tenant.len;

    for (aud = ngx_mcp_hash_first_locked(zone, NGX_MCP_AUDIENCE, hash);
         aud;
         aud = ngx_mcp_hash_next_locked(zone, aud))
    {
        if (ngx_mcp_audience_matches(zone, aud, &a->endpoint, &a->tenant)
            && ngx_mcp_text_equal(zone, aud, len, aud->rec.len - len, &a->key))
        {
            return aud;
        }
    }

    return NULL;
}


/* finds an audience by the hashes of its names */

ngx_mcp_audience_sh_t *
ngx_mcp_audience_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    uint64_t key)
{
    uint32_t                hash;
    ngx_mcp_audience_sh_t  *aud;

    hash = ngx_mcp_audience_hash(g->rec.hash, key);

    for (aud = ngx_mcp_hash_first_locked(zone, NGX_MCP_AUDIENCE, hash);
         aud;
         aud = ngx_mcp_hash_next_locked(zone, aud))
    {
        if (aud->key == key && (uint32_t) aud->group == g->rec.hash) {
            return aud;
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_mcp_audience_matches(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a,
    ngx_str_t *endpoint, ngx_str_t *tenant)
{
    if (endpoint
        && !ngx_mcp_text_equal(zone, a, 0, a->endpoint_len, endpoint))
    {
        return 0;
    }

    if (tenant
        && !ngx_mcp_text_equal(zone, a, a->endpoint_len, a->tenant_len,
                               tenant))
    {
        return 0;
    }

    return 1;
}


/*
 * Drops an audience if the endpoint has reached its limit: if possible one
 * without sessions; of these, the one that was unused for longest.  If the
 * endpoint is over its limit, a second one is dropped.
 */

static void
ngx_mcp_audience_limit(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_uint_t max)
{
    uint64_t                  used;
    ngx_int_t                 rc;
    ngx_uint_t                i, count, unused;
    ngx_mcp_ref_t             victim;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_audience_walk_t   walk;

    for (i = 0; i < 2; i++) {
        ngx_memzero(&victim, sizeof(ngx_mcp_ref_t));
        ngx_memzero(&walk, sizeof(ngx_mcp_audience_walk_t));
        walk.endpoint = endpoint;

        count = 0;
        used = 0;
        unused = 0;

        do {
            ngx_mcp_zone_lock(zone);

            rc = ngx_mcp_audience_next_locked(zone, &walk);

            if (rc == NGX_OK) {
                a = ngx_mcp_block(zone, walk.ref.block);

                if (count++ == 0 || (a->members == 0) > unused
                    || ((a->members == 0) == unused && a->used < used))
                {
                    victim = walk.ref;
                    used = a->used;
                    unused = (a->members == 0);
                }
            }

            ngx_mcp_zone_unlock(zone);

        } while (rc != NGX_DONE);

        if (count < max) {
            return;
        }

        ngx_mcp_audience_drop(zone, victim, 0);

        if (count == max) {
            return;
        }
    }
}


ngx_int_t
ngx_mcp_audience_next(ngx_mcp_zone_t *zone, ngx_mcp_audience_walk_t *walk,
    ngx_pool_t *pool, ngx_mcp_audience_t *a)
{
    size_t                  from;
    ngx_int_t               rc;
    ngx_mcp_audience_sh_t  *aud;

    do {
        ngx_mcp_zone_lock(zone);

        rc = ngx_mcp_audience_next_locked(zone, walk);

        if (rc == NGX_OK && a) {
            aud = ngx_mcp_block(zone, walk->ref.block);
            from = aud->endpoint_len + aud->tenant_len;

            if (ngx_mcp_text_copy(zone, aud, 0, aud->endpoint_len, pool,
                                  &a->endpoint)
                != NGX_OK
                || ngx_mcp_text_copy(zone, aud, aud->endpoint_len,
                                     aud->tenant_len, pool, &a->tenant)
                   != NGX_OK
                || ngx_mcp_text_copy(zone, aud, from, aud->rec.len - from,
                                     pool, &a->key)
                   != NGX_OK)
            {
                rc = NGX_ERROR;
            }
        }

        ngx_mcp_zone_unlock(zone);

    } while (rc == NGX_AGAIN);

    return rc;
}


/*
 * Finds the next audience.  NGX_OK: it is walk->ref; NGX_DONE: there are no
 * more; NGX_AGAIN: the audiences examined under this hold of the lock do not
 * match.
 */

static ngx_int_t
ngx_mcp_audience_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_walk_t *walk)
{
    uint32_t                n;
    ngx_uint_t              i;
    ngx_mcp_audience_sh_t  *a;

    for (i = 0; i < NGX_MCP_AUDIENCE_STEPS; i++) {

        a = ngx_mcp_record(zone, walk->ref, NGX_MCP_AUDIENCE);
        n = a ? a->rec.links.next : zone->root->audiences.head;

        if (n == 0) {
            return NGX_DONE;
        }

        a = ngx_mcp_block(zone, n);
        walk->ref = ngx_mcp_ref(zone, a);

        if (a->number > walk->number
            && ngx_mcp_audience_matches(zone, a, walk->endpoint, walk->tenant))
        {
            walk->number = a->number;
            return NGX_OK;
        }
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_mcp_audience_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_ref_t ref)
{
    ngx_int_t                rc;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_audience_sh_t   *a;
    ngx_mcp_extension_sh_t  *e;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    a = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (s && (a || ref.block == 0)) {
        e = ngx_mcp_session_extension(zone, s);

        ngx_mcp_audience_leave_locked(zone, e);

        ngx_mcp_touch(zone, &s->subscriber);

        if (a && a->key == s->subscriber.audience) {
            ngx_mcp_touch(zone, &a->members);
            s->subscriber.own_lists = 0;
            e->member_of = ref;
            a->members++;
            rc = NGX_OK;

        } else {
            s->subscriber.own_lists = 1;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_uint_t
ngx_mcp_audience_of(ngx_mcp_zone_t *zone, ngx_mcp_session_t *session,
    ngx_str_t *key)
{
    return session->audience == ngx_mcp_hash(zone, key, NULL);
}


void
ngx_mcp_audience_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_extension_sh_t *e)
{
    ngx_mcp_audience_sh_t  *a;

    a = ngx_mcp_record(zone, e->member_of, NGX_MCP_AUDIENCE);

    if (a) {
        ngx_mcp_touch(zone, &a->members);
        a->members--;
    }

    ngx_mcp_touch(zone, e);

    e->member_of.block = 0;
}


ngx_int_t
ngx_mcp_audience_retire(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_msec_t keep)
{
    ngx_int_t               rc;
    ngx_mcp_audience_sh_t  *a;

    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (a) {

        if (a->members || a->used + keep > ngx_current_msec) {
            rc = NGX_DECLINED;

        } else {
            ngx_mcp_audience_drop_locked(zone, a);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_audience_drop(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t older)
{
    ngx_mcp_audience_sh_t  *a;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (a && (!older || a->epoch < zone->epoch)) {
        ngx_mcp_audience_drop_locked(zone, a);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_audience_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a)
{
    uint32_t  number;

    number = ngx_mcp_number(zone, a);

    ngx_mcp_audience_layout_locked(zone, a, 0);

    while (a->parts.head) {
        ngx_mcp_audience_drop_part_locked(zone, a,
                                          ngx_mcp_block(zone, a->parts.head));
        ngx_mcp_step_locked(zone);
    }

    ngx_mcp_hash_remove_locked(zone, a);
    ngx_mcp_list_remove(zone, &zone->root->audiences, number, NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, a);

    ngx_mcp_list_ring_locked(zone, number);
}


/*
 * Drops, of the oldest audiences, the one without sessions that was unused for
 * longest, but at least for NGX_MCP_LIST_IDLE.  "except" is not dropped.
 * NGX_OK; NGX_DECLINED: there is none.
 */

ngx_int_t
ngx_mcp_audience_reclaim_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t except)
{
    uint32_t                n;
    ngx_uint_t              i;
    ngx_mcp_audience_sh_t  *a, *victim;

    victim = NULL;
    n = zone->root->audiences.head;

    for (i = 0; i < 64 && n; i++, n = a->rec.links.next) {
        a = ngx_mcp_block(zone, n);

        if (a->members || n == except.block
            || a->used + NGX_MCP_LIST_IDLE > ngx_current_msec)
        {
            continue;
        }

        if (victim == NULL || a->used < victim->used) {
            victim = a;
        }
    }

    if (victim == NULL) {
        return NGX_DECLINED;
    }

    ngx_mcp_audience_drop_locked(zone, victim);

    return NGX_OK;
}
