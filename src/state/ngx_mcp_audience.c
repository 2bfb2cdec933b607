
#include "ngx_mcp_state_sh.h"


static ngx_mcp_audience_sh_t *ngx_mcp_audience_lookup_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a);
static void ngx_mcp_audience_bound_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_uint_t max);
static ngx_uint_t ngx_mcp_audience_matches(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a, ngx_str_t *endpoint, ngx_str_t *tenant);


#define ngx_mcp_audience_hash(group, key)                                     \
    ((uint32_t) (group) ^ (uint32_t) (key))


ngx_int_t
ngx_mcp_audience_get(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_uint_t max, ngx_mcp_ref_t *ref)
{
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

    aud = ngx_mcp_audience_lookup_locked(zone, a);

    if (aud) {
        *ref = ngx_mcp_ref(zone, aud);
        ngx_mcp_zone_unlock(zone);
        return NGX_OK;
    }

    ngx_mcp_audience_bound_locked(zone, &a->endpoint, max);

    if (ngx_mcp_stage_reserve_locked(zone, &stage) != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    aud = ngx_mcp_make_locked(zone, &stage);

    ngx_mcp_touch(zone, &zone->root->numbers);
    aud->number = ++zone->root->numbers;
    aud->group = ngx_mcp_hash(zone, &a->endpoint, &a->tenant);
    aud->key = ngx_mcp_hash(zone, &a->key, NULL);
    aud->asked = ngx_current_msec;
    aud->endpoint_len = (uint32_t) a->endpoint.len;
    aud->tenant_len = (uint32_t) a->tenant.len;
    aud->rec.hash = ngx_mcp_audience_hash(aud->group, aud->key);

    ngx_mcp_commit_locked(zone, aud, NGX_MCP_AUDIENCE);

    ngx_mcp_hash_insert_locked(zone, aud);
    ngx_mcp_list_append(zone, &zone->root->audiences,
                        ngx_mcp_number(zone, aud), NGX_MCP_LINKS);

    *ref = ngx_mcp_ref(zone, aud);

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
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


/* the names are known by their hashes only */

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


/* room for one more; one without sessions goes first */

static void
ngx_mcp_audience_bound_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_uint_t max)
{
    uint32_t                n;
    ngx_uint_t              count;
    ngx_mcp_audience_sh_t  *a, *victim;

    count = 0;
    victim = NULL;

    for (n = zone->root->audiences.head; n; n = a->rec.links.next) {
        a = ngx_mcp_block(zone, n);

        if (!ngx_mcp_audience_matches(zone, a, endpoint, NULL)) {
            continue;
        }

        count++;

        if (victim == NULL
            || (a->members == 0) > (victim->members == 0)
            || ((a->members == 0) == (victim->members == 0)
                && a->asked < victim->asked))
        {
            victim = a;
        }
    }

    if (count >= max && victim) {
        ngx_mcp_audience_drop_locked(zone, victim);
    }
}


ngx_int_t
ngx_mcp_audience_next(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, uint64_t *number, ngx_pool_t *pool,
    ngx_mcp_audience_t *a, ngx_mcp_ref_t *ref)
{
    size_t                  from;
    uint32_t                n;
    ngx_int_t               rc;
    ngx_mcp_audience_sh_t  *aud;

    rc = NGX_DONE;

    ngx_mcp_zone_lock(zone);

    for (n = zone->root->audiences.head; n; n = aud->rec.links.next) {
        aud = ngx_mcp_block(zone, n);

        if (aud->number <= *number
            || !ngx_mcp_audience_matches(zone, aud, endpoint, tenant))
        {
            continue;
        }

        *number = aud->number;
        *ref = ngx_mcp_ref(zone, aud);

        rc = NGX_OK;

        if (a == NULL) {
            break;
        }

        from = aud->endpoint_len + aud->tenant_len;

        if (ngx_mcp_text_copy(zone, aud, 0, aud->endpoint_len, pool,
                              &a->endpoint)
            != NGX_OK
            || ngx_mcp_text_copy(zone, aud, aud->endpoint_len, aud->tenant_len,
                                 pool, &a->tenant)
               != NGX_OK
            || ngx_mcp_text_copy(zone, aud, from, aud->rec.len - from, pool,
                                 &a->key)
               != NGX_OK)
        {
            rc = NGX_ERROR;
        }

        break;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
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
            e->listed = ref;
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

    a = ngx_mcp_record(zone, e->listed, NGX_MCP_AUDIENCE);

    if (a) {
        ngx_mcp_touch(zone, &a->members);
        a->members--;
    }

    ngx_mcp_touch(zone, e);

    e->listed.block = 0;
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

        if (a->members || a->asked + keep > ngx_current_msec) {
            rc = NGX_DECLINED;

        } else {
            ngx_mcp_audience_drop_locked(zone, a);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_audience_drop(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_audience_sh_t  *a;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, ref, NGX_MCP_AUDIENCE);

    if (a) {
        ngx_mcp_audience_drop_locked(zone, a);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_audience_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a)
{
    uint32_t    n, number;
    ngx_uint_t  i;

    number = ngx_mcp_number(zone, a);

    ngx_mcp_hash_remove_locked(zone, a);
    ngx_mcp_list_remove(zone, &zone->root->audiences, number, NGX_MCP_LINKS);
    ngx_mcp_touch(zone, a);

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        n = a->lists[i].content;
        a->lists[i].content = 0;

        if (n) {
            ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, n));
        }
    }

    ngx_mcp_drop_locked(zone, a);

    ngx_mcp_list_ring_locked(zone, number);
}


/* frees one that nobody seems to need, but not this one */

ngx_int_t
ngx_mcp_audience_reclaim_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t but)
{
    uint32_t                n;
    ngx_uint_t              i;
    ngx_mcp_audience_sh_t  *a, *victim;

    victim = NULL;
    n = zone->root->audiences.head;

    for (i = 0; i < 64 && n; i++, n = a->rec.links.next) {
        a = ngx_mcp_block(zone, n);

        if (a->members || n == but.block
            || a->asked + NGX_MCP_LIST_IDLE > ngx_current_msec)
        {
            continue;
        }

        if (victim == NULL || a->asked < victim->asked) {
            victim = a;
        }
    }

    if (victim == NULL) {
        return NGX_DECLINED;
    }

    ngx_mcp_audience_drop_locked(zone, victim);

    return NGX_OK;
}
