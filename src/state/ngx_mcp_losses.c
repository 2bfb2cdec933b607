
#include "ngx_mcp_state_sh.h"


static uint64_t *ngx_mcp_losses_place(ngx_mcp_zone_t *zone,
    ngx_mcp_losses_sh_t *l, ngx_uint_t i);
static void ngx_mcp_losses_set(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l,
    ngx_uint_t i, uint64_t pos);
static ngx_uint_t ngx_mcp_losses_lost(ngx_mcp_zone_t *zone,
    ngx_mcp_losses_sh_t *l, uint64_t hash, uint64_t pos);


static u_char  ngx_mcp_losses_none[NGX_MCP_LOSSES_ALL * sizeof(uint64_t)];


void
ngx_mcp_losses_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    ngx_str_t             text;
    ngx_mcp_stage_t       stage;
    ngx_mcp_losses_sh_t  *l;

    text.data = ngx_mcp_losses_none;
    text.len = sizeof(ngx_mcp_losses_none);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LOSSES, &text, 1);
    stage.payer = ngx_mcp_ref(zone, g);

    l = ngx_mcp_make_locked(zone, &stage);
    l->rec.owner = stage.payer;

    ngx_mcp_commit_locked(zone, l, NGX_MCP_LOSSES);

    g->losses = ngx_mcp_number(zone, l);
}


/* aligned, as a block's head and that of the record are multiples of it */

static uint64_t *
ngx_mcp_losses_place(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l,
    ngx_uint_t i)
{
    u_char              *p;
    ngx_uint_t           here;
    ngx_mcp_block_sh_t  *block;

    block = &l->rec.block;
    p = (u_char *) l + sizeof(ngx_mcp_losses_sh_t);
    here = (NGX_MCP_BLOCK_SIZE - sizeof(ngx_mcp_losses_sh_t))
           / sizeof(uint64_t);

    while (i >= here) {
        i -= here;
        block = ngx_mcp_block(zone, block->chain);
        p = (u_char *) block + NGX_MCP_BLOCK_HEAD;
        here = NGX_MCP_BLOCK_DATA / sizeof(uint64_t);
    }

    return (uint64_t *) p + i;
}


static void
ngx_mcp_losses_set(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l, ngx_uint_t i,
    uint64_t pos)
{
    uint64_t  *place;

    place = ngx_mcp_losses_place(zone, l, i);

    if (*place < pos) {
        ngx_mcp_touch(zone, place);
        *place = pos;
    }
}


void
ngx_mcp_losses_add_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    uint64_t pos, ngx_mcp_target_sh_t *target, ngx_uint_t level)
{
    uint64_t              hash;
    ngx_uint_t            i;
    ngx_mcp_losses_sh_t  *l;

    l = ngx_mcp_block(zone, g->losses);
    hash = 0;

    if (target) {
        hash = target->identity ? target->identity : target->audience;

        for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
            if (target->uri[i]) {
                hash = target->uri[i];
                break;
            }
        }

        if (target->flags) {
            ngx_mcp_losses_set(zone, l, NGX_MCP_LOSSES_KINDS, pos);
        }
    }

    i = hash ? NGX_MCP_LOSSES_LEVELS + hash % NGX_MCP_LOSSES_SOME
             : ngx_min(level, NGX_MCP_LOSSES_LEVELS - 1);

    ngx_mcp_losses_set(zone, l, i, pos);
}


void
ngx_mcp_losses_gap_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    uint64_t pos)
{
    ngx_mcp_losses_set(zone, ngx_mcp_block(zone, g->losses),
                       NGX_MCP_LOSSES_GAP, pos);
}


static ngx_uint_t
ngx_mcp_losses_lost(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l,
    uint64_t hash, uint64_t pos)
{
    return *ngx_mcp_losses_place(zone, l, NGX_MCP_LOSSES_LEVELS
                                          + hash % NGX_MCP_LOSSES_SOME)
           > pos;
}


ngx_mcp_lost_e
ngx_mcp_losses_since_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_session_sh_t *s, uint64_t pos)
{
    uint32_t                    n;
    ngx_uint_t                  i, lost, others;
    ngx_mcp_losses_sh_t        *l;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    l = ngx_mcp_block(zone, g->losses);
    e = ngx_mcp_session_extension(zone, s);

    lost = 0;
    others = 0;

    for (i = 0; i < NGX_MCP_LOSSES_LEVELS; i++) {

        if (*ngx_mcp_losses_place(zone, l, i) > pos) {
            lost |= (i == 0 || i >= s->level);
            others |= (i && i < s->level);
        }
    }

    lost |= ngx_mcp_losses_lost(zone, l, s->identity, pos)
            || ngx_mcp_losses_lost(zone, l, e->audience, pos);

    for (n = e->subscriptions.head; n && !lost; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);
        lost = ngx_mcp_losses_lost(zone, l, sub->uri, pos);
    }

    if (!lost) {
        return NGX_MCP_LOST_NONE;
    }

    if (*ngx_mcp_losses_place(zone, l, NGX_MCP_LOSSES_GAP) > pos) {
        return NGX_MCP_LOST_GAP;
    }

    for (i = NGX_MCP_LOSSES_LEVELS; i <= NGX_MCP_LOSSES_KINDS && !others; i++) {
        others = (*ngx_mcp_losses_place(zone, l, i) > pos);
    }

    return others ? NGX_MCP_LOST_SOME : NGX_MCP_LOST_ALL;
}
