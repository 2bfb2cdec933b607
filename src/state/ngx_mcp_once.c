
#include "ngx_mcp_zone_sh.h"


#define NGX_MCP_ONCE_BUSY  0xffffffff

/* a claim whose worker never ended it, s */
#define NGX_MCP_ONCE_MAX   5


static ngx_mcp_once_sh_t *ngx_mcp_once_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);


ngx_int_t
ngx_mcp_once_claim(ngx_mcp_zone_t *zone, ngx_str_t *scope, ngx_str_t *id,
    uint64_t *key, ngx_uint_t *sessions)
{
    uint32_t            now;
    ngx_int_t           rc;
    ngx_mcp_once_sh_t  *once;

    *key = ngx_mcp_hash(zone, scope, id);
    *sessions = 0;

    now = (uint32_t) ngx_time();
    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    once = ngx_mcp_once_find_locked(zone, *key);

    if (once == NULL) {
        once = &zone->sh->once[zone->sh->oldest];
        zone->sh->oldest = (zone->sh->oldest + 1) % NGX_MCP_ONCE;

    } else if (once->sessions != NGX_MCP_ONCE_BUSY) {
        *sessions = once->sessions;
        rc = NGX_DECLINED;

    } else if (now - once->when <= NGX_MCP_ONCE_MAX) {
        rc = NGX_AGAIN;
    }

    if (rc == NGX_OK) {
        once->id = *key;
        once->when = now;
        once->sessions = NGX_MCP_ONCE_BUSY;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_once_end(ngx_mcp_zone_t *zone, uint64_t key, ngx_uint_t sessions)
{
    ngx_mcp_once_sh_t  *once;

    ngx_mcp_zone_lock(zone);

    once = ngx_mcp_once_find_locked(zone, key);

    if (once) {
        once->sessions = (uint32_t) sessions;
    }

    ngx_mcp_zone_unlock(zone);
}


void
ngx_mcp_once_drop(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_mcp_once_sh_t  *once;

    ngx_mcp_zone_lock(zone);

    once = ngx_mcp_once_find_locked(zone, key);

    if (once) {
        once->id = 0;
    }

    ngx_mcp_zone_unlock(zone);
}


static ngx_mcp_once_sh_t *
ngx_mcp_once_find_locked(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_ONCE; i++) {
        if (zone->sh->once[i].id == key) {
            return &zone->sh->once[i];
        }
    }

    return NULL;
}
