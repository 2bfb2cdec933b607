
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


static ngx_mcp_account_sh_t *ngx_mcp_account_make_locked(
    ngx_mcp_zone_t *zone, uint64_t key, uint32_t parent);


ngx_mcp_account_sh_t *
ngx_mcp_account_find_locked(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_mcp_account_sh_t  *a;

    for (a = ngx_mcp_hash_first_locked(zone, NGX_MCP_ACCOUNT, (uint32_t) key);
         a;
         a = ngx_mcp_hash_next_locked(zone, a))
    {
        if (a->key == key) {
            return a;
        }
    }

    return NULL;
}


static ngx_mcp_account_sh_t *
ngx_mcp_account_make_locked(ngx_mcp_zone_t *zone, uint64_t key,
    uint32_t parent)
{
    ngx_mcp_stage_t        stage;
    ngx_mcp_account_sh_t  *a;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_ACCOUNT, NULL, 0);

    a = ngx_mcp_make_locked(zone, &stage);
    a->rec.hash = (uint32_t) key;
    a->rec.account = parent;
    a->key = key;

    ngx_mcp_commit_locked(zone, a, NGX_MCP_ACCOUNT);
    ngx_mcp_hash_insert_locked(zone, a);

    return a;
}


ngx_mcp_ref_t
ngx_mcp_account_get_locked(ngx_mcp_zone_t *zone, ngx_str_t *tenant,
    uint64_t key)
{
    uint64_t               name;
    uint32_t               parent;
    ngx_mcp_account_sh_t  *a;

    a = ngx_mcp_account_find_locked(zone, key);

    if (a) {
        return ngx_mcp_ref(zone, a);
    }

    parent = 0;

    if (tenant->len) {
        name = ngx_mcp_hash(zone, tenant, NULL);
        a = ngx_mcp_account_find_locked(zone, name);

        if (a == NULL) {
            a = ngx_mcp_account_make_locked(zone, name, 0);
        }

        parent = ngx_mcp_number(zone, a);
    }

    a = ngx_mcp_account_make_locked(zone, key, parent);

    return ngx_mcp_ref(zone, a);
}


/*
 * Returns the block of an account: "payer" itself if that is an account, else
 * the account that pays for the record "payer".  0: there is none.
 */

uint32_t
ngx_mcp_account_of_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer)
{
    ngx_mcp_record_sh_t  *rec;

    if (payer.block == 0 || payer.block >= zone->sh->watermark) {
        return 0;
    }

    rec = ngx_mcp_block(zone, payer.block);

    if (rec->block.type == NGX_MCP_FREE || rec->block.gen != payer.gen) {
        return 0;
    }

    return rec->block.type == NGX_MCP_ACCOUNT ? payer.block : rec->account;
}


void
ngx_mcp_account_charge_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks)
{
    ngx_mcp_account_sh_t  *a;

    for ( /* void */ ; n; n = a->rec.account) {
        a = ngx_mcp_block(zone, n);

        ngx_mcp_touch_range(zone, a, used, event_blocks);
        a->used += (uint32_t) blocks;
        a->event_blocks += (type == NGX_MCP_EVENT) ? (uint32_t) blocks : 0;
    }
}


void
ngx_mcp_account_release_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks)
{
    uint32_t               next;
    ngx_mcp_account_sh_t  *a;

    for (next = n; next; next = a->rec.account) {
        a = ngx_mcp_block(zone, next);

        ngx_mcp_touch_range(zone, a, used, event_blocks);
        a->used -= (uint32_t) blocks;
        a->event_blocks -= (type == NGX_MCP_EVENT) ? (uint32_t) blocks : 0;
    }

    a = n ? ngx_mcp_block(zone, n) : NULL;

    if (a && a->used == 0) {

        /* this also drops the tenant's account if that pays for nothing else */

        ngx_mcp_hash_remove_locked(zone, a);
        ngx_mcp_drop_locked(zone, a);
    }
}


ngx_mcp_list_sh_t *
ngx_mcp_account_events(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e)
{
    ngx_mcp_block_sh_t    *owner;
    ngx_mcp_account_sh_t  *a;

    a = ngx_mcp_block(zone, e->rec.account);
    owner = ngx_mcp_block(zone, e->rec.owner.block);

    return (owner->type == NGX_MCP_SESSION || owner->type == NGX_MCP_CALL)
           ? &a->events : &a->common;
}


ngx_mcp_limit_sh_t *
ngx_mcp_limit_find_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key, uint32_t hash)
{
    ngx_mcp_limit_sh_t  *l;

    for (l = ngx_mcp_hash_first_locked(zone, NGX_MCP_LIMIT, hash);
         l;
         l = ngx_mcp_hash_next_locked(zone, l))
    {
        if (ngx_mcp_text_equal(zone, l, 0, l->endpoint_len, endpoint)
            && ngx_mcp_text_equal(zone, l, l->endpoint_len,
                                  l->rec.len - l->endpoint_len, key))
        {
            return l;
        }
    }

    return NULL;
}


ngx_mcp_limit_sh_t *
ngx_mcp_limit_get_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key, uint32_t hash)
{
    ngx_str_t            parts[2];
    ngx_mcp_stage_t      stage;
    ngx_mcp_limit_sh_t  *l;

    l = ngx_mcp_limit_find_locked(zone, endpoint, key, hash);

    if (l) {
        return l;
    }

    parts[0] = *endpoint;
    parts[1] = *key;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LIMIT, parts, 2);

    l = ngx_mcp_make_locked(zone, &stage);
    l->endpoint_len = (uint32_t) endpoint->len;
    l->rec.hash = hash;

    ngx_mcp_commit_locked(zone, l, NGX_MCP_LIMIT);
    ngx_mcp_hash_insert_locked(zone, l);

    return l;
}


void
ngx_mcp_limit_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_extension_sh_t *e)
{
    ngx_mcp_limit_sh_t  *l;

    if (e->limit == 0) {
        return;
    }

    l = ngx_mcp_block(zone, e->limit);

    ngx_mcp_list_remove(zone, &l->list, ngx_mcp_number(zone, e),
                        offsetof(ngx_mcp_extension_sh_t, limited));
    ngx_mcp_limit_drop_locked(zone, e->limit);

    ngx_mcp_touch(zone, e);
    e->limit = 0;
}


void
ngx_mcp_limit_drop_locked(ngx_mcp_zone_t *zone, uint32_t limit)
{
    ngx_mcp_limit_sh_t  *l;

    l = ngx_mcp_block(zone, limit);

    ngx_mcp_touch(zone, l);

    if (--l->count == 0) {
        ngx_mcp_hash_remove_locked(zone, l);
        ngx_mcp_drop_locked(zone, l);
    }
}
