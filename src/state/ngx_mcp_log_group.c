
#include "ngx_mcp_state_sh.h"


/* events that go for one */
#define NGX_MCP_LOG_DROP     16


static void ngx_mcp_log_miss_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_target_sh_t *target, ngx_uint_t level);
static ngx_mcp_event_sh_t *ngx_mcp_log_add_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_log_input_t *in);


ngx_int_t
ngx_mcp_log_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_log_input_t *in, ngx_uint_t room, ngx_uint_t gap)
{
    ngx_int_t  rc;

    rc = NGX_OK;

    if (gap) {
        ngx_mcp_losses_gap_locked(zone, g, g->log.last + 1);
        ngx_mcp_log_miss_locked(zone, g, NULL, 0);

    } else if (!room
               || ngx_mcp_log_add_group_locked(zone, g, in) == NULL)
    {
        ngx_mcp_log_miss_locked(zone, g, &in->target, in->event->level);
        rc = NGX_ERROR;
    }

    ngx_mcp_watch_ring_locked(zone, g->watch, ngx_mcp_number(zone, g));

    return rc;
}


static void
ngx_mcp_log_miss_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_target_sh_t *target, ngx_uint_t level)
{
    ngx_mcp_losses_add_locked(zone, g, g->log.last + 1, target, level);

    ngx_mcp_touch(zone, &g->log);
    g->log.last++;
}


static ngx_mcp_event_sh_t *
ngx_mcp_log_add_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_log_input_t *in)
{
    ngx_uint_t  i;

    if (in->stage.len > g->event_size || g->event_max == 0) {
        return NULL;
    }

    /* a few, as the limit of a new configuration may be lower */

    for (i = 0; g->log.count >= g->event_max && i < NGX_MCP_LOG_DROP; i++) {
        ngx_mcp_log_drop_locked(zone, ngx_mcp_block(zone, g->log.list.head));
    }

    return ngx_mcp_log_add_locked(zone, g, in->event, &in->target, &in->stage);
}
