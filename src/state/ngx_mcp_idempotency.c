
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


uint64_t
ngx_mcp_idempotency_key(ngx_mcp_zone_t *zone, ngx_str_t *scope, ngx_str_t *id)
{
    return ngx_mcp_hash(zone, scope, id);
}


ngx_int_t
ngx_mcp_idempotency_first(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_int_t  rc;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_idempotency_find_locked(zone, key) == NULL) {
        (void) ngx_mcp_idempotency_add_locked(zone, key, 0);
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_mcp_idempotency_sh_t *
ngx_mcp_idempotency_find_locked(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_uint_t                 i;
    ngx_mcp_idempotency_sh_t  *o;

    for (i = 0; i < NGX_MCP_IDEMPOTENCY; i++) {
        o = &zone->root->idempotency[i];

        if (o->key == key) {
            return o;
        }
    }

    return NULL;
}


/* adds an id in place of the oldest one */

ngx_mcp_idempotency_sh_t *
ngx_mcp_idempotency_add_locked(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_uint_t sessions)
{
    ngx_mcp_root_sh_t         *root;
    ngx_mcp_idempotency_sh_t  *o;

    root = zone->root;

    o = &root->idempotency[root->oldest];

    ngx_mcp_touch(zone, &root->oldest);
    ngx_mcp_touch(zone, o);

    root->oldest = (root->oldest + 1) % NGX_MCP_IDEMPOTENCY;

    o->key = key;
    o->sessions = (uint32_t) sessions;
    ngx_memzero(&o->item, sizeof(ngx_mcp_ref_t));

    return o;
}
