
#include "ngx_mcp_zone_sh.h"


static void ngx_mcp_along_store(ngx_mcp_zone_t *zone);


void
ngx_mcp_along_locked(ngx_mcp_zone_t *zone, void *where, uint64_t value,
    size_t size)
{
    ngx_mcp_along_sh_t  *along;

    along = &zone->sh->along;

    along->value = value;
    along->place = (u_char *) where - (u_char *) zone->sh;
    along->size = size;

    ngx_mcp_barrier();
    along->stamp = zone->sh->stamp + 1;
    ngx_mcp_barrier();
}


void
ngx_mcp_along_end_locked(ngx_mcp_zone_t *zone)
{
    ngx_mcp_barrier();
    ngx_mcp_along_store(zone);
    ngx_mcp_barrier();

    zone->sh->along.stamp = 0;
}


/* may be done again */

static void
ngx_mcp_along_store(ngx_mcp_zone_t *zone)
{
    u_char              *p;
    ngx_mcp_along_sh_t  *along;

    along = &zone->sh->along;
    p = (u_char *) zone->sh + along->place;

    switch (along->size) {

    case sizeof(uint16_t):
        *(uint16_t *) p = (uint16_t) along->value;
        break;

    case sizeof(uint32_t):
        *(uint32_t *) p = (uint32_t) along->value;
        break;

    default: /* sizeof(uint64_t) */
        *(uint64_t *) p = along->value;
        break;
    }
}


/* once the types of all blocks are known to be right */

void
ngx_mcp_along_repair(ngx_mcp_zone_t *zone)
{
    uint32_t              n;
    uint64_t              stamp;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_record_sh_t  *rec;

    sh = zone->sh;

    for (n = 1; sh->along.stamp && n < sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        switch (rec->block.type) {

        case NGX_MCP_EVENT:
            stamp = ((ngx_mcp_event_sh_t *) rec)->stamp;
            break;

        case NGX_MCP_PENDING:
            stamp = ((ngx_mcp_pending_sh_t *) rec)->serial;
            break;

        case NGX_MCP_LIST:
            stamp = ((ngx_mcp_content_sh_t *) rec)->version;
            break;

        default:
            continue;
        }

        if (stamp == sh->along.stamp) {
            ngx_mcp_along_end_locked(zone);
        }
    }

    sh->along.stamp = 0;
}
