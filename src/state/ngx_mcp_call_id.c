
#include "ngx_mcp_state_sh.h"


ngx_int_t
ngx_mcp_call_id(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, uint32_t channel,
    ngx_pool_t *pool, ngx_str_t *id)
{
    uint32_t               n;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    id->len = 0;
    id->data = ngx_pnalloc(pool, NGX_MCP_ID_MAX);
    if (id->data == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_zone_lock(zone);

    c = NULL;
    s = ngx_mcp_session_locked(zone, session);
    n = s ? s->calls.head : 0;

    for ( /* void */ ; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);

        if (c->channel == channel) {
            break;
        }
    }

    if (n == 0 && s) {

        for (n = s->finished.tail; n; n = c->task.rec.links.prev) {
            c = ngx_mcp_block(zone, n);

            if (c->channel == channel) {
                break;
            }
        }
    }

    if (n) {
        id->len = ngx_min(c->id_len, NGX_MCP_ID_MAX);
        ngx_mcp_text_read(zone, c, 0, id->data, id->len);
    }

    ngx_mcp_zone_unlock(zone);

    return n ? NGX_OK : NGX_DECLINED;
}
