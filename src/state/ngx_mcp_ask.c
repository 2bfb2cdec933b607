
#include "ngx_mcp_state_sh.h"


ngx_int_t
ngx_mcp_ask_add(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, ngx_str_t *id,
    ngx_str_t *upstream)
{
    uint32_t                 n;
    ngx_int_t                rc;
    ngx_str_t                parts[2];
    ngx_mcp_stage_t          stage;
    ngx_mcp_ask_sh_t        *ask;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    if (id->len > NGX_MCP_ID_MAX) {

        /* no client's answer to it would be taken */

        return NGX_ERROR;
    }

    parts[0] = *id;
    parts[1] = *upstream;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_ASK, parts, 2);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL || rc != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return s ? NGX_ERROR : NGX_DECLINED;
    }

    e = ngx_mcp_session_extension(zone, s);
    ngx_mcp_touch(zone, e);

    if (e->nasks >= NGX_MCP_ASKS_MAX) {

        /* one that was never answered */

        n = e->asks.head;
        ask = ngx_mcp_block(zone, n);
        ngx_mcp_list_remove(zone, &e->asks, n, NGX_MCP_LINKS);
        ngx_mcp_drop_locked(zone, ask);
        e->nasks--;
    }

    ask = ngx_mcp_make_locked(zone, &stage);
    ask->rec.owner = session;
    ask->rec.hash = (uint32_t) ngx_mcp_hash(zone, id, NULL);
    ask->id_len = (uint32_t) id->len;

    ngx_mcp_commit_locked(zone, ask, NGX_MCP_ASK);

    ngx_mcp_list_append(zone, &e->asks, ngx_mcp_number(zone, ask),
                        NGX_MCP_LINKS);
    e->nasks++;

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_ask_take(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, ngx_str_t *id,
    ngx_pool_t *pool, ngx_str_t *upstream)
{
    uint32_t                 n, hash;
    ngx_int_t                rc;
    ngx_mcp_ask_sh_t        *ask;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    hash = (uint32_t) ngx_mcp_hash(zone, id, NULL);
    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s) {
        e = ngx_mcp_session_extension(zone, s);
        ngx_mcp_touch(zone, &e->nasks);

        for (n = e->asks.head; n; n = ask->rec.links.next) {
            ask = ngx_mcp_block(zone, n);

            if (ask->rec.hash != hash
                || !ngx_mcp_text_equal(zone, ask, 0, ask->id_len, id))
            {
                continue;
            }

            rc = ngx_mcp_copy(zone, ask, ask->id_len,
                              ask->rec.len - ask->id_len, pool, upstream);

            ngx_mcp_list_remove(zone, &e->asks, n, NGX_MCP_LINKS);
            ngx_mcp_drop_locked(zone, ask);
            e->nasks--;

            break;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}
