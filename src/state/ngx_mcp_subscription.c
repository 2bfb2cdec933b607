
#include "ngx_mcp_state_sh.h"


uint64_t
ngx_mcp_bloom(uint64_t hash)
{
    return (1ULL << (hash & 63)) | (1ULL << ((hash >> 6) & 63));
}


ngx_uint_t
ngx_mcp_subscribed_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    uint64_t uri)
{
    uint32_t                    n;
    uint64_t                    bits;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    bits = ngx_mcp_bloom(uri);

    if ((s->bloom & bits) != bits) {
        return 0;
    }

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->subscriptions.head; n; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);

        if (sub->uri == uri) {
            return 1;
        }
    }

    return 0;
}


ngx_mcp_subscription_sh_t *
ngx_mcp_subscription_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_str_t *uri, uint64_t hash)
{
    uint32_t                    n;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    e = ngx_mcp_session_extension(zone, s);

    for (n = e->subscriptions.head; n; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);

        if (sub->uri == hash
            && ngx_mcp_text_equal(zone, sub, 0, sub->rec.len, uri))
        {
            return sub;
        }
    }

    return NULL;
}


ngx_mcp_subscription_sh_t *
ngx_mcp_subscription_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_session_locked(zone, session);

    return s ? ngx_mcp_subscription_locked(zone, s, uri,
                                           ngx_mcp_hash(zone, uri, NULL))
             : NULL;
}


ngx_uint_t
ngx_mcp_session_subscribed(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_uint_t  found;

    ngx_mcp_zone_lock(zone);
    found = (ngx_mcp_subscription_find_locked(zone, session, uri) != NULL);
    ngx_mcp_zone_unlock(zone);

    return found;
}


ngx_int_t
ngx_mcp_session_subscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri, ngx_str_t *upstream, ngx_uint_t limit)
{
    uint64_t               hash, name;
    ngx_int_t              rc;
    ngx_mcp_stage_t        stage;
    ngx_mcp_session_sh_t  *s;

    if (uri->len > NGX_MCP_URI_MAX) {
        return NGX_BUSY;
    }

    hash = ngx_mcp_hash(zone, uri, NULL);
    name = upstream ? ngx_mcp_hash(zone, upstream, NULL) : 0;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SUBSCRIPTION, uri, 1);
    stage.room = NGX_MCP_ROOM_SHARE;
    stage.payer = session;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    rc = (s && ngx_mcp_subscription_locked(zone, s, uri, hash)) ? NGX_OK
                                                                : NGX_AGAIN;
    ngx_mcp_zone_unlock(zone);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL) {
        rc = NGX_DECLINED;

    } else if (ngx_mcp_subscription_locked(zone, s, uri, hash)) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return NGX_OK;

    } else if (ngx_mcp_session_extension(zone, s)->nsubscriptions >= limit) {
        rc = NGX_BUSY;
    }

    if (rc != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    (void) ngx_mcp_subscription_make_locked(zone, s, &stage, hash, name);

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


ngx_mcp_subscription_sh_t *
ngx_mcp_subscription_make_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_stage_t *stage, uint64_t hash,
    uint64_t upstream)
{
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    sub = ngx_mcp_make_locked(zone, stage);
    sub->rec.owner = ngx_mcp_ref(zone, s);
    sub->uri = hash;
    sub->upstream = upstream;

    ngx_mcp_commit_locked(zone, sub, NGX_MCP_SUBSCRIPTION);

    e = ngx_mcp_session_extension(zone, s);
    ngx_mcp_touch(zone, e);
    ngx_mcp_touch(zone, s);

    ngx_mcp_list_append(zone, &e->subscriptions, ngx_mcp_number(zone, sub),
                        NGX_MCP_LINKS);
    e->nsubscriptions++;
    s->bloom |= ngx_mcp_bloom(hash);

    /* before the first event that it is to get */

    if (s->active_stream) {
        ngx_mcp_wake_locked(zone, ngx_mcp_block(zone, s->active_stream),
                            NGX_MCP_WAKE_FILTERS);
    }

    return sub;
}


ngx_int_t
ngx_mcp_session_unsubscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    uint32_t                    n;
    uint64_t                    hash, bloom;
    ngx_int_t                   rc;
    ngx_mcp_session_sh_t       *s;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    hash = ngx_mcp_hash(zone, uri, NULL);

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    sub = s ? ngx_mcp_subscription_locked(zone, s, uri, hash) : NULL;

    if (sub == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    e = ngx_mcp_session_extension(zone, s);
    ngx_mcp_touch(zone, e);
    ngx_mcp_touch(zone, s);

    ngx_mcp_list_remove(zone, &e->subscriptions, ngx_mcp_number(zone, sub),
                        NGX_MCP_LINKS);
    e->nsubscriptions--;

    rc = sub->interest.block ? NGX_DONE : NGX_OK;

    ngx_mcp_interest_leave_locked(zone, sub->interest);
    ngx_mcp_topic_unsubscribe_locked(zone, sub);
    ngx_mcp_drop_locked(zone, sub);

    bloom = 0;

    for (n = e->subscriptions.head; n; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);
        bloom |= ngx_mcp_bloom(sub->uri);
    }

    s->bloom = bloom;

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_session_subscription(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri)
{
    ngx_int_t  rc;

    ngx_mcp_zone_lock(zone);
    rc = ngx_mcp_subscription_nth_locked(zone, session, 0, n, pool, uri);
    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_subscription_nth_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    uint64_t upstream, ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri)
{
    uint32_t                    block;
    ngx_mcp_session_sh_t       *s;
    ngx_mcp_subscription_sh_t  *sub;

    s = ngx_mcp_session_locked(zone, session);
    block = s ? ngx_mcp_session_extension(zone, s)->subscriptions.head : 0;

    for ( /* void */ ; block; block = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, block);

        if ((upstream == 0 || sub->upstream == upstream) && n-- == 0) {
            return ngx_mcp_text_copy(zone, sub, 0, sub->rec.len, pool, uri);
        }
    }

    return NGX_DECLINED;
}
