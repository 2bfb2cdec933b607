
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


static ngx_uint_t ngx_mcp_profile_valid(ngx_mcp_profile_sh_t *k,
    uint64_t epoch, ngx_msec_t max_age, ngx_msec_t age);
static ngx_uint_t ngx_mcp_profile_serves(ngx_mcp_profile_sh_t *k,
    uint64_t epoch);
static void ngx_mcp_profile_insert_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_profile_sh_t *k, ngx_str_t *key);
static ngx_int_t ngx_mcp_profile_read_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_profile_sh_t *k, ngx_pool_t *pool, ngx_mcp_profile_t *out);
static void ngx_mcp_profile_changed_locked(ngx_mcp_zone_t *zone);
static void ngx_mcp_profile_ring_locked(ngx_mcp_zone_t *zone, ngx_str_t *key);
static ngx_int_t ngx_mcp_profile_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_stage_t *stage);
static ngx_mcp_profile_sh_t *ngx_mcp_profile_find_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *key);


ngx_int_t
ngx_mcp_profile_get(ngx_mcp_zone_t *zone, ngx_str_t *key, uint64_t epoch,
    ngx_msec_t max_age, ngx_pool_t *pool, ngx_mcp_profile_t *out)
{
    uint64_t               age, now;
    ngx_int_t              rc;
    ngx_mcp_stage_t        stage;
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_PROFILE, key, 1);

    now = ngx_current_msec;

    out->hash = (uint32_t) ngx_mcp_hash(zone, key, NULL);
    out->ask = 0;
    out->asked = 0;
    out->status = 0;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k == NULL) {

        if (ngx_mcp_profile_room_locked(zone, &stage) != NGX_OK) {
            ngx_mcp_zone_unlock(zone);
            return NGX_ERROR;
        }

        k = ngx_mcp_make_locked(zone, &stage);
        k->probing = 1;
        k->epoch = epoch;
        k->prober = epoch;
        k->made = now;
        k->since = now;

        ngx_mcp_profile_insert_locked(zone, k, key);
        ngx_mcp_zone_unlock(zone);

        return NGX_DECLINED;
    }

    age = now > k->made ? now - k->made : 0;

    /*
     * Callers do not wait for a probe by an older configuration, as that probe
     * may reach another server, or none.
     */

    if (k->probing && k->prober >= epoch && age < NGX_MCP_PROBE_MAX) {

        if (ngx_mcp_profile_serves(k, epoch)) {
            rc = ngx_mcp_profile_read_locked(zone, k, pool, out);

        } else {
            rc = NGX_AGAIN;
            out->status = k->status;
            out->asked = (ngx_msec_t) age;
        }

    } else if (ngx_mcp_profile_valid(k, epoch, max_age, age)) {
        rc = ngx_mcp_profile_read_locked(zone, k, pool, out);

    } else {
        ngx_mcp_touch(zone, k);

        if (k->prober != epoch) {

            /* the profile may be of another server: do not use it meanwhile */

            k->kept = 0;
        }

        rc = NGX_DECLINED;

        if (ngx_mcp_profile_serves(k, epoch)) {
            rc = ngx_mcp_profile_read_locked(zone, k, pool, out);
            out->ask = (rc == NGX_OK);
        }

        if (rc != NGX_ERROR) {
            k->rec.worker = (uint16_t) zone->worker;
            k->prober = epoch;
            k->made = now;
            k->probing = 1;
        }

        if (rc == NGX_DECLINED) {
            out->status = k->status;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_profile_stored(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool, ngx_mcp_profile_t *out)
{
    ngx_int_t              rc;
    ngx_mcp_profile_sh_t  *k;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && k->what != NGX_MCP_PROFILE_UNKNOWN) {
        rc = ngx_mcp_profile_read_locked(zone, k, pool, out);
        out->ask = 0;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_uint_t
ngx_mcp_profile_valid(ngx_mcp_profile_sh_t *k, uint64_t epoch,
    ngx_msec_t max_age, ngx_msec_t age)
{
    ngx_msec_t  pause;

    if (k->probing) {
        return 0;
    }

    if (k->kept) {
        pause = NGX_MCP_PROFILE_SHORT_AGE << ngx_min(k->failures - 1, 4);
        pause = ngx_min(pause, NGX_MCP_PROFILE_KEPT_AGE);

        if (k->prober != epoch) {
            return 0;
        }

        return age <= pause
               || (max_age == NGX_MCP_PROFILE_ANY_AGE
                   && k->stale != NGX_MCP_PROFILE_SUSPECT);
    }

    if (k->epoch != epoch) {
        return 0;
    }

    if (k->what == NGX_MCP_PROFILE_UNKNOWN) {
        return age <= NGX_MCP_PROFILE_SHORT_AGE;
    }

    switch (k->stale) {

    case NGX_MCP_PROFILE_SUSPECT:
        return 0;

    case NGX_MCP_PROFILE_STALE:
        return max_age == NGX_MCP_PROFILE_ANY_AGE;

    default:
        return age <= max_age;
    }
}


/*
 * Returns whether the old profile is used while the upstream, which did not
 * answer the last probe, is probed again.
 */

static ngx_uint_t
ngx_mcp_profile_serves(ngx_mcp_profile_sh_t *k, uint64_t epoch)
{
    return k->kept && k->prober >= epoch
           && k->stale != NGX_MCP_PROFILE_SUSPECT;
}


static ngx_mcp_profile_sh_t *
ngx_mcp_profile_find_locked(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    uint32_t               hash;
    ngx_mcp_profile_sh_t  *k;

    hash = (uint32_t) ngx_mcp_hash(zone, key, NULL);

    for (k = ngx_mcp_hash_first_locked(zone, NGX_MCP_PROFILE, hash);
         k;
         k = ngx_mcp_hash_next_locked(zone, k))
    {
        if (ngx_mcp_text_equal(zone, k, 0, k->key_len, key)) {
            return k;
        }
    }

    return NULL;
}


/*
 * Reserves room for a profile.  All profiles take an eighth of the zone at
 * most: the oldest ones that are not probed now are dropped.
 */

static ngx_int_t
ngx_mcp_profile_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage)
{
    uint32_t               n;
    ngx_uint_t             i;
    ngx_mcp_zone_sh_t     *sh;
    ngx_mcp_profile_sh_t  *k;

    sh = zone->sh;
    n = zone->root->profiles.head;

    for (i = 0; i < 64 && n; i++) {

        if (sh->used[NGX_MCP_PROFILE] + stage->blocks <= sh->blocks / 8) {
            break;
        }

        k = ngx_mcp_block(zone, n);
        n = k->rec.links.next;

        if (!k->probing) {
            ngx_mcp_profile_drop_locked(zone, k);
            ngx_mcp_step_locked(zone);
        }
    }

    if (sh->used[NGX_MCP_PROFILE] + stage->blocks > sh->blocks / 8) {
        return NGX_DECLINED;
    }

    return ngx_mcp_stage_reserve_locked(zone, stage);
}


static void
ngx_mcp_profile_insert_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_profile_sh_t *k, ngx_str_t *key)
{
    k->key_len = (uint32_t) key->len;
    k->serial = ++zone->sh->stamp;
    k->rec.hash = (uint32_t) ngx_mcp_hash(zone, key, NULL);

    ngx_mcp_commit_locked(zone, k, NGX_MCP_PROFILE);

    ngx_mcp_hash_insert_locked(zone, k);
    ngx_mcp_list_append(zone, &zone->root->profiles, ngx_mcp_number(zone, k),
                        NGX_MCP_LINKS);
}


static ngx_int_t
ngx_mcp_profile_read_locked(ngx_mcp_zone_t *zone, ngx_mcp_profile_sh_t *k,
    ngx_pool_t *pool, ngx_mcp_profile_t *out)
{
    size_t  from;

    out->what = k->what;
    out->kept = k->kept;
    out->suspect = (k->stale == NGX_MCP_PROFILE_SUSPECT);
    out->revision = k->revision;
    out->status = k->status;

    if (ngx_mcp_text_copy(zone, k, k->key_len, k->result_len, pool,
                          &out->result)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    from = k->key_len + k->result_len;

    return ngx_mcp_text_copy(zone, k, from, k->rec.len - from, pool,
                             &out->why);
}


void
ngx_mcp_profile_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_profile_sh_t *k)
{
    ngx_mcp_hash_remove_locked(zone, k);
    ngx_mcp_list_remove(zone, &zone->root->profiles, ngx_mcp_number(zone, k),
                        NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, k);
}


ngx_int_t
ngx_mcp_profile_put(ngx_mcp_zone_t *zone, ngx_str_t *key, uint64_t epoch,
    ngx_mcp_profile_t *in)
{
    ngx_int_t              rc;
    ngx_str_t              parts[3];
    ngx_mcp_stage_t        stage;
    ngx_mcp_profile_sh_t  *k, *old;

    parts[0] = *key;
    parts[1] = in->result;
    parts[2] = in->why;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_PROFILE, parts, 3);

    rc = ngx_mcp_stage(zone, &stage);

    ngx_mcp_zone_lock(zone);

    if (rc == NGX_OK) {
        rc = ngx_mcp_profile_room_locked(zone, &stage);
    }

    k = NULL;
    old = ngx_mcp_profile_find_locked(zone, key);

    if (rc == NGX_OK) {
        k = ngx_mcp_make_locked(zone, &stage);
        k->epoch = epoch;
        k->prober = epoch;
        k->made = ngx_current_msec;
        k->since = (old && old->what == in->what && !old->failures)
                   ? old->since : k->made;
        k->result_len = (uint32_t) in->result.len;
        k->what = (uint32_t) in->what;
        k->revision = (uint32_t) in->revision;
        k->status = (uint32_t) in->status;

        ngx_mcp_profile_insert_locked(zone, k, key);

    } else {
        ngx_mcp_stage_drop_locked(zone, &stage);
    }

    if (old) {
        ngx_mcp_profile_drop_locked(zone, old);
    }

    ngx_mcp_profile_changed_locked(zone);
    ngx_mcp_profile_ring_locked(zone, key);

    ngx_mcp_zone_unlock(zone);

    return k ? NGX_OK : NGX_ERROR;
}


/* results that were composed of profiles have to be composed again */

static void
ngx_mcp_profile_changed_locked(ngx_mcp_zone_t *zone)
{
    ngx_mcp_touch(zone, &zone->root->profile_changes);
    zone->root->profile_changes++;
}


static void
ngx_mcp_profile_ring_locked(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_mcp_worker_ring_all_keys_locked(zone, NGX_MCP_RING_PROFILES,
                         NGX_MCP_RING_KEY(ngx_mcp_hash(zone, key, NULL)));
}


void
ngx_mcp_profile_stale(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && k->stale == 0) {
        ngx_mcp_touch(zone, k);
        k->stale = NGX_MCP_PROFILE_STALE;
        ngx_mcp_profile_changed_locked(zone);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_profile_suspect(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && !k->probing) {
        ngx_mcp_touch(zone, k);
        k->stale = NGX_MCP_PROFILE_SUSPECT;
        ngx_mcp_profile_changed_locked(zone);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_profile_narrow(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t revision)
{
    ngx_int_t              rc;
    ngx_mcp_profile_sh_t  *k;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && k->what == NGX_MCP_PROFILE_REFUSED && k->revision != revision) {
        ngx_mcp_touch(zone, k);
        k->revision = (uint32_t) revision;
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_profile_fail(ngx_mcp_zone_t *zone, ngx_str_t *key, uint64_t epoch,
    ngx_uint_t away, ngx_mcp_profile_t *in)
{
    ngx_int_t              rc;
    ngx_mcp_profile_sh_t  *k;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && k->probing && k->what != NGX_MCP_PROFILE_UNKNOWN
        && (away || (k->epoch == epoch
                     && (k->what == NGX_MCP_PROFILE_LEGACY
                         || k->what == NGX_MCP_PROFILE_MODERN
                         || k->what == NGX_MCP_PROFILE_BOTH))))
    {
        ngx_mcp_touch(zone, k);
        k->made = ngx_current_msec;
        k->kept = 1;
        k->stale = 0;
        k->probing = 0;
        k->status = (uint32_t) in->status;

        if (k->failures == 0) {
            k->since = k->made;
        }

        k->failures = ngx_min(k->failures + 1, 100);

        ngx_mcp_profile_ring_locked(zone, key);

        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    if (rc == NGX_DECLINED) {
        (void) ngx_mcp_profile_put(zone, key, epoch, in);
    }

    return rc;
}


void
ngx_mcp_profile_give_up(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && k->probing) {
        ngx_mcp_profile_give_up_locked(zone, k);
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_profile_give_up_locked(ngx_mcp_zone_t *zone, ngx_mcp_profile_sh_t *k)
{
    uint32_t  hash;

    hash = k->rec.hash;

    ngx_mcp_touch(zone, k);
    k->stale = NGX_MCP_PROFILE_SUSPECT;
    k->kept = 0;
    k->probing = 0;
    k->made = 0;

    if (k->what == NGX_MCP_PROFILE_UNKNOWN) {
        ngx_mcp_profile_drop_locked(zone, k);
    }

    ngx_mcp_worker_ring_all_keys_locked(zone, NGX_MCP_RING_PROFILES,
                                        NGX_MCP_RING_KEY(hash));
}


void
ngx_mcp_profile_back(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_profile_find_locked(zone, key);

    if (k && k->kept && !k->probing) {
        ngx_mcp_touch(zone, k);
        k->kept = 0;
        k->failures = 0;
        k->since = ngx_current_msec;
        k->stale = NGX_MCP_PROFILE_STALE;
        ngx_mcp_profile_changed_locked(zone);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_profile_info(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_profile_info_t *info)
{
    uint32_t               n;
    ngx_int_t              rc;
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    k = ngx_mcp_record(zone, info->ref, NGX_MCP_PROFILE);

    n = k ? k->rec.links.next : zone->root->profiles.head;

    while (n) {
        k = ngx_mcp_block(zone, n);

        if (k->serial > info->serial) {
            break;
        }

        n = k->rec.links.next;
    }

    rc = NGX_DONE;

    if (n) {
        info->ref = ngx_mcp_ref(zone, k);
        info->serial = k->serial;
        info->what = k->what;
        info->kept = k->kept;
        info->age = (ngx_msec_t) (ngx_current_msec > k->since
                                  ? ngx_current_msec - k->since : 0);

        rc = ngx_mcp_text_copy(zone, k, 0, k->key_len, pool, &info->key);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


uint64_t
ngx_mcp_profile_changes(ngx_mcp_zone_t *zone)
{
    return zone->root->profile_changes;
}
