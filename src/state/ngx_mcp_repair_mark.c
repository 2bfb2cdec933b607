
#include "ngx_mcp_zone_sh.h"


ngx_int_t
ngx_mcp_repair_mark(ngx_mcp_zone_t *zone, void *rec)
{
    uint32_t              n, last;
    ngx_uint_t            blocks, i;
    ngx_mcp_block_sh_t   *block;
    ngx_mcp_record_sh_t  *r;

    r = rec;
    n = ngx_mcp_number(zone, rec);

    blocks = ngx_mcp_text_blocks(r->block.type, r->len);
    last = n;

    for (i = 0; i < blocks; i++) {

        if (n == 0 || n >= zone->sh->fresh) {
            break;
        }

        block = ngx_mcp_block(zone, n);

        if (block->mark || (i && block->type != NGX_MCP_FREE)) {
            break;
        }

        block->mark = 1;
        last = n;
        n = block->chain;
    }

    if (i == blocks) {
        r->block.blocks = (uint16_t) blocks;
        r->block.last = last;
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_ALERT, zone->log, 0,
                  "mcp record %uD of type %ud is broken",
                  ngx_mcp_number(zone, rec), (unsigned) r->block.type);

    n = ngx_mcp_number(zone, rec);

    while (i--) {
        block = ngx_mcp_block(zone, n);
        block->mark = 0;
        n = block->chain;
    }

    return NGX_DECLINED;
}


void
ngx_mcp_repair_unmark(ngx_mcp_zone_t *zone, void *rec)
{
    uint32_t             n;
    ngx_uint_t           i;
    ngx_mcp_block_sh_t  *head, *block;

    head = rec;
    n = ngx_mcp_number(zone, rec);

    for (i = 0; i < head->blocks; i++) {
        block = ngx_mcp_block(zone, n);
        block->mark = 0;
        n = block->chain;
    }
}


void *
ngx_mcp_repair_owner(ngx_mcp_zone_t *zone, ngx_mcp_record_sh_t *rec,
    ngx_uint_t type)
{
    ngx_mcp_record_sh_t  *owner;

    owner = ngx_mcp_record(zone, rec->owner, type);

    return (owner && owner->block.mark) ? owner : NULL;
}


void
ngx_mcp_repair_push(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, void *rec,
    size_t offset)
{
    ngx_mcp_list_append(zone, list, ngx_mcp_number(zone, rec), offset);
}


void
ngx_mcp_repair_sweep(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_block_sh_t  *block;

    sh = zone->sh;

    for (n = sh->fresh - 1; n; n--) {
        block = ngx_mcp_block(zone, n);

        if (block->mark) {

            if (block->type != NGX_MCP_FREE) {
                sh->used[block->type] += block->blocks;
            }

            continue;
        }

        block->type = NGX_MCP_FREE;
        block->gen++;
        block->chain = sh->free;
        sh->free = n;
        sh->nfree++;
    }
}
