
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/*
 * Most events that are dropped when a group loses its last session, and in each
 * sweep after that.
 */
#define NGX_MCP_GROUP_DROP   32
#define NGX_MCP_GROUP_SWEEP  128

/* groups examined under one hold of the lock */
#define NGX_MCP_GROUP_STEPS  16

/*
 * Bytes of an endpoint's name that are looked at.  A longer one would need a
 * server name and a location of this length together.
 */
#define NGX_MCP_ENDPOINT_MAX  4096


#define ngx_mcp_group_list(zone, type)                                        \
    ((type) == NGX_MCP_GROUP ? &(zone)->root->groups                          \
                             : &(zone)->root->endpoints)

#define ngx_mcp_group_used(g)                                                 \
    ((g)->sessions || (g)->pending_deletes || (g)->shared || (g)->groups)


static ngx_mcp_group_sh_t *ngx_mcp_group_new_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t type, ngx_str_t *endpoint, ngx_str_t *tenant);
static ngx_int_t ngx_mcp_groups_of_tenant_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_groups_t *groups);
static uint32_t ngx_mcp_groups_behind(ngx_mcp_zone_t *zone, uint32_t n,
    uint64_t number);


ngx_uint_t
ngx_mcp_group_matches(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *endpoint, ngx_str_t *tenant)
{
    if (endpoint
        && !ngx_mcp_text_equal(zone, g, 0, g->endpoint_len, endpoint))
    {
        return 0;
    }

    if (tenant
        && !ngx_mcp_text_equal(zone, g, g->endpoint_len,
                               g->rec.len - g->endpoint_len, tenant))
    {
        return 0;
    }

    return 1;
}


ngx_mcp_group_sh_t *
ngx_mcp_group_find_locked(ngx_mcp_zone_t *zone, ngx_uint_t type,
    ngx_str_t *endpoint, ngx_str_t *tenant)
{
    uint32_t             hash;
    ngx_mcp_group_sh_t  *g;

    hash = (uint32_t) ngx_mcp_hash(zone, endpoint, tenant);

    for (g = ngx_mcp_hash_first_locked(zone, type, hash);
         g;
         g = ngx_mcp_hash_next_locked(zone, g))
    {
        if (ngx_mcp_group_matches(zone, g, endpoint, tenant)) {
            return g;
        }
    }

    return NULL;
}


ngx_mcp_group_sh_t *
ngx_mcp_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_group_sh_t  *g;

    g = ngx_mcp_record(zone, ref, NGX_MCP_GROUP);

    return g ? g : ngx_mcp_record(zone, ref, NGX_MCP_ENDPOINT);
}


ngx_uint_t
ngx_mcp_group_listens(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_uint_t gets)
{
    ngx_uint_t           n;
    ngx_mcp_group_sh_t  *g;

    ngx_mcp_zone_lock(zone);

    g = ngx_mcp_group_lookup_locked(zone, endpoint, tenant);
    n = g ? g->listens + (gets ? g->gets : 0) : 0;

    ngx_mcp_zone_unlock(zone);

    return n;
}


void
ngx_mcp_group_gets_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_int_t n)
{
    ngx_mcp_group_sh_t  *g;

    if (s->subscriber.listens || s->exclusive) {
        return;
    }

    g = ngx_mcp_session_group(zone, s);

    ngx_mcp_touch(zone, &g->gets);
    g->gets += n;
}


ngx_uint_t
ngx_mcp_group_tenants(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_mcp_group_cursor_t *cursor, ngx_pool_t *pool, ngx_str_t *tenants)
{
    ngx_int_t            rc;
    ngx_uint_t           n;
    ngx_mcp_groups_t     groups;
    ngx_mcp_group_sh_t  *g;

    n = 0;

    ngx_mcp_groups_init(&groups, endpoint, NULL);
    groups.number = cursor->number;
    groups.ref = cursor->ref;

    do {
        ngx_mcp_zone_lock(zone);

        rc = ngx_mcp_groups_next_locked(zone, &groups);

        if (rc == NGX_OK) {
            g = ngx_mcp_block(zone, groups.ref.block);

            if (g->sessions) {
                rc = ngx_mcp_text_copy(zone, g, g->endpoint_len,
                                       g->rec.len - g->endpoint_len, pool,
                                       &tenants[n]);
                n += (rc == NGX_OK);
            }
        }

        ngx_mcp_zone_unlock(zone);

    } while ((rc == NGX_OK || rc == NGX_AGAIN) && n < NGX_MCP_GROUP_TENANTS);

    cursor->number = groups.number;
    cursor->ref = groups.ref;

    return n;
}


ngx_mcp_group_sh_t *
ngx_mcp_group_get_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant)
{
    ngx_str_t            none;
    ngx_mcp_group_sh_t  *g, *all;

    g = ngx_mcp_group_lookup_locked(zone, endpoint, tenant);

    if (g) {
        return g;
    }

    all = ngx_mcp_group_find_locked(zone, NGX_MCP_ENDPOINT, endpoint, NULL);

    if (all == NULL) {
        ngx_str_null(&none);
        all = ngx_mcp_group_new_locked(zone, NGX_MCP_ENDPOINT, endpoint,
                                       &none);
    }

    g = ngx_mcp_group_new_locked(zone, NGX_MCP_GROUP, endpoint, tenant);
    g->endpoint = ngx_mcp_number(zone, all);

    ngx_mcp_touch(zone, all);
    all->groups++;

    return g;
}


static ngx_mcp_group_sh_t *
ngx_mcp_group_new_locked(ngx_mcp_zone_t *zone, ngx_uint_t type,
    ngx_str_t *endpoint, ngx_str_t *tenant)
{
    ngx_str_t            parts[2], client;
    ngx_mcp_stage_t      stage;
    ngx_mcp_group_sh_t  *g;

    parts[0] = *endpoint;
    parts[1] = *tenant;

    ngx_str_null(&client);

    ngx_mcp_stage_init(zone, &stage, type, parts, 2);
    stage.payer = ngx_mcp_account_get_locked(zone, tenant,
                                             ngx_mcp_hash(zone, tenant,
                                                          &client));

    g = ngx_mcp_make_locked(zone, &stage);
    g->endpoint_len = (uint32_t) endpoint->len;
    ngx_mcp_touch(zone, &zone->root->numbers);
    g->number = ++zone->root->numbers;
    g->rec.hash = (uint32_t) ngx_mcp_hash(zone, endpoint,
                                          type == NGX_MCP_GROUP ? tenant
                                                                : NULL);

    ngx_mcp_commit_locked(zone, g, type);
    ngx_mcp_losses_make_locked(zone, g);

    ngx_mcp_hash_insert_locked(zone, g);
    ngx_mcp_list_append(zone, ngx_mcp_group_list(zone, type),
                        ngx_mcp_number(zone, g), NGX_MCP_LINKS);

    return g;
}


void
ngx_mcp_groups_init(ngx_mcp_groups_t *groups, ngx_str_t *endpoint,
    ngx_str_t *tenant)
{
    ngx_memzero(groups, sizeof(ngx_mcp_groups_t));

    groups->endpoint = endpoint;
    groups->tenant = tenant;
    groups->type = NGX_MCP_GROUP;
}


ngx_int_t
ngx_mcp_groups_next_locked(ngx_mcp_zone_t *zone, ngx_mcp_groups_t *groups)
{
    uint32_t             n;
    ngx_uint_t           steps;
    ngx_mcp_group_sh_t  *g;

    if (groups->endpoint
        && (groups->tenant || groups->type == NGX_MCP_ENDPOINT))
    {
        /* at most one group has these names */

        g = (groups->number == 0)
            ? ngx_mcp_group_find_locked(zone, groups->type, groups->endpoint,
                                        groups->tenant)
            : NULL;

        if (g == NULL) {
            return NGX_DONE;
        }

        groups->ref = ngx_mcp_ref(zone, g);
        groups->number = g->number;

        return NGX_OK;
    }

    if (groups->tenant && groups->type == NGX_MCP_GROUP) {
        return ngx_mcp_groups_of_tenant_locked(zone, groups);
    }

    /*
     * Several groups that do not match are skipped under one hold of the lock.
     */

    for (steps = 0; steps < NGX_MCP_GROUP_STEPS; steps++) {

        g = ngx_mcp_record(zone, groups->ref, groups->type);
        n = ngx_mcp_groups_behind(zone, g ? g->rec.links.next
                                  : ngx_mcp_group_list(zone,
                                                       groups->type)->head,
                                  groups->number);

        if (n == 0) {
            return NGX_DONE;
        }

        g = ngx_mcp_block(zone, n);

        groups->ref = ngx_mcp_ref(zone, g);
        groups->number = g->number;

        if (ngx_mcp_group_matches(zone, g, groups->endpoint, groups->tenant)) {
            return NGX_OK;
        }
    }

    return NGX_AGAIN;
}


/*
 * Finds the next group of a tenant by a look-up for each endpoint, as a tenant
 * has only few of all groups.  groups->number is the number of the endpoint.
 */

static ngx_int_t
ngx_mcp_groups_of_tenant_locked(ngx_mcp_zone_t *zone, ngx_mcp_groups_t *groups)
{
    uint32_t             n;
    ngx_str_t            endpoint;
    ngx_uint_t           steps;
    ngx_mcp_group_sh_t  *g, *all;
    u_char               name[NGX_MCP_ENDPOINT_MAX];

    g = ngx_mcp_record(zone, groups->ref, NGX_MCP_GROUP);
    n = g ? ngx_mcp_group_endpoint(zone, g)->rec.links.next
          : zone->root->endpoints.head;

    endpoint.data = name;

    for (steps = 0; steps < NGX_MCP_GROUP_STEPS; steps++) {

        n = ngx_mcp_groups_behind(zone, n, groups->number);

        if (n == 0) {
            return NGX_DONE;
        }

        all = ngx_mcp_block(zone, n);
        n = all->rec.links.next;
        groups->number = all->number;

        endpoint.len = ngx_min(all->endpoint_len, sizeof(name));
        ngx_mcp_text_read(zone, all, 0, name, endpoint.len);

        g = ngx_mcp_group_find_locked(zone, NGX_MCP_GROUP, &endpoint,
                                      groups->tenant);
        if (g) {
            groups->ref = ngx_mcp_ref(zone, g);
            return NGX_OK;
        }
    }

    return NGX_AGAIN;
}


/*
 * Returns the first group from block n on whose number is larger than the given
 * one; 0: there is none.
 */

static uint32_t
ngx_mcp_groups_behind(ngx_mcp_zone_t *zone, uint32_t n, uint64_t number)
{
    ngx_mcp_group_sh_t  *g;

    for ( /* void */ ; n; n = g->rec.links.next) {
        g = ngx_mcp_block(zone, n);

        if (g->number > number) {
            return n;
        }
    }

    return 0;
}


void
ngx_mcp_group_count_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_int_t n)
{
    ngx_mcp_group_sh_t  *all;

    all = ngx_mcp_group_endpoint(zone, g);

    ngx_mcp_touch(zone, g);
    ngx_mcp_touch(zone, all);

    g->sessions += (uint32_t) n;
    all->sessions += (uint32_t) n;
}


/*
 * Drops a group that is not needed any more.  A part of its log, which may be
 * long, is dropped at once, the rest by sweeps.  Topics are dropped when they
 * are idle.  An endpoint that lost its last group is dropped in the same way.
 */

void
ngx_mcp_group_drop_unused_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    ngx_uint_t           i;
    ngx_mcp_group_sh_t  *endpoint;

    i = 0;

    while (g && !ngx_mcp_group_used(g)) {

        ngx_mcp_touch(zone, g);

        while (g->log.list.head && i++ < NGX_MCP_GROUP_DROP) {
            ngx_mcp_log_drop_locked(zone,
                                    ngx_mcp_block(zone, g->log.list.head));
        }

        if (g->log.count) {

            if (!g->removing) {
                g->removing = 1;
                ngx_mcp_list_append(zone, &zone->root->removals,
                                    ngx_mcp_number(zone, g),
                                    offsetof(ngx_mcp_group_sh_t, removals));
            }

            return;
        }

        if (g->removing) {
            g->removing = 0;
            ngx_mcp_list_remove(zone, &zone->root->removals,
                                ngx_mcp_number(zone, g),
                                offsetof(ngx_mcp_group_sh_t, removals));
        }

        ngx_mcp_group_clean_locked(zone, g);

        if (g->ntopics[0] || g->ntopics[1]) {
            return;
        }

        endpoint = g->endpoint ? ngx_mcp_group_endpoint(zone, g) : NULL;

        ngx_mcp_list_remove(zone, ngx_mcp_group_list(zone, g->rec.block.type),
                            ngx_mcp_number(zone, g), NGX_MCP_LINKS);
        ngx_mcp_hash_remove_locked(zone, g);
        ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, g->losses));
        ngx_mcp_drop_locked(zone, g);

        if (endpoint) {
            ngx_mcp_touch(zone, endpoint);
            endpoint->groups--;
        }

        g = endpoint;
    }
}


void
ngx_mcp_group_clean_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    if (g->dirty) {
        ngx_mcp_touch(zone, g);
        g->dirty = 0;
        ngx_mcp_list_remove(zone, &zone->root->dirty, ngx_mcp_number(zone, g),
                            offsetof(ngx_mcp_group_sh_t, announce));
    }
}


ngx_int_t
ngx_mcp_group_sweep_locked(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    ngx_mcp_group_sh_t  *g;

    n = zone->root->removals.head;

    if (n == 0) {
        return NGX_OK;
    }

    g = ngx_mcp_block(zone, n);

    if (ngx_mcp_group_used(g)) {
        ngx_mcp_touch(zone, g);
        g->removing = 0;
        ngx_mcp_list_remove(zone, &zone->root->removals, n,
                            offsetof(ngx_mcp_group_sh_t, removals));

    } else {
        (void) ngx_mcp_log_clear_locked(zone, &g->log, NGX_MCP_GROUP_SWEEP);
        ngx_mcp_group_drop_unused_locked(zone, g);
    }

    return zone->root->removals.head ? NGX_AGAIN : NGX_OK;
}
