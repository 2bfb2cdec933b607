
#include "ngx_mcp_state_sh.h"


/* blocks looked at while the lock is held once */
#define NGX_MCP_TOKEN_BATCH  2048


typedef struct {
    ngx_str_t              *token;
    ngx_str_t              *endpoint;
    ngx_str_t              *tenant;
    uint32_t                hash;
    uint64_t                identity;
    uint32_t                found;
    ngx_mcp_ref_t           call;
} ngx_mcp_token_t;


static void ngx_mcp_token_session(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t,
    ngx_str_t *id);
static void ngx_mcp_token_all(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t);
static void ngx_mcp_token_test_locked(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t,
    ngx_mcp_call_sh_t *c);


ngx_int_t
ngx_mcp_token_find(ngx_mcp_zone_t *zone, ngx_str_t *token, ngx_str_t *id,
    ngx_str_t *endpoint, ngx_str_t *tenant, ngx_str_t *identity,
    ngx_mcp_ref_t *ref)
{
    ngx_mcp_token_t     t;
    ngx_mcp_call_sh_t  *c;

    ngx_memzero(&t, sizeof(ngx_mcp_token_t));

    t.token = token;
    t.endpoint = endpoint;
    t.tenant = tenant;
    t.hash = (uint32_t) ngx_mcp_hash(zone, token, NULL);

    if (identity->data) {
        t.identity = ngx_mcp_hash(zone, identity, NULL);
    }

    if (id) {
        ngx_mcp_token_session(zone, &t, id);

    } else {
        ngx_mcp_token_all(zone, &t);
    }

    if (t.found != 1) {
        return t.found ? NGX_BUSY : NGX_DECLINED;
    }

    *ref = t.call;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, t.call, NGX_MCP_CALL);

    if (c && c->task.rec.flags & NGX_MCP_CALL_PLAIN) {
        *ref = c->task.rec.owner;
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


static void
ngx_mcp_token_session(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t, ngx_str_t *id)
{
    uint32_t               n;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_lookup_locked(zone, id);

    for (n = s ? s->calls.head : 0; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);
        ngx_mcp_token_test_locked(zone, t, c);
    }

    ngx_mcp_zone_unlock(zone);
}


/* calls are not indexed by token: all that run are looked at */

static void
ngx_mcp_token_all(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t)
{
    int64_t              running;
    uint32_t             n, last;
    ngx_mcp_call_sh_t   *c;

    running = ngx_mcp_counter(zone, NGX_MCP_COUNTER_CALLS_RUNNING);

    for (n = 1; running > 0; /* void */ ) {

        ngx_mcp_zone_lock(zone);

        last = ngx_min(n + NGX_MCP_TOKEN_BATCH, zone->sh->watermark);

        for ( /* void */ ; n < last; n++) {
            c = ngx_mcp_block(zone, n);

            if (c->task.rec.block.type == NGX_MCP_CALL
                && c->task.rec.flags & NGX_MCP_CALL_RUNNING)
            {
                running--;
                ngx_mcp_token_test_locked(zone, t, c);
            }
        }

        last = (n >= zone->sh->watermark);

        ngx_mcp_zone_unlock(zone);

        if (last || t->found > 1) {
            return;
        }
    }
}


static void
ngx_mcp_token_test_locked(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t,
    ngx_mcp_call_sh_t *c)
{
    ngx_mcp_session_sh_t  *s;

    if (c->token != t->hash
        || !ngx_mcp_text_equal(zone, c, c->id_len,
                               c->task.rec.len - c->id_len, t->token))
    {
        return;
    }

    s = ngx_mcp_session_locked(zone, c->task.rec.owner);

    if (s == NULL || (t->identity && t->identity != s->identity)
        || !ngx_mcp_group_matches(zone, ngx_mcp_session_group(zone, s),
                                  t->endpoint, t->tenant))
    {
        return;
    }

    t->call = ngx_mcp_ref(zone, c);
    t->found++;
}
