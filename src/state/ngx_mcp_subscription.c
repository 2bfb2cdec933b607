
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* ms; an update of an interest is not paired with one that is older */
#define NGX_MCP_INTEREST_RECENT  (NGX_MCP_INTEREST_PAIR + 1000)


static ngx_int_t ngx_mcp_interest_pair_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub, uint32_t serial, ngx_uint_t n,
    ngx_uint_t last);
static ngx_int_t ngx_mcp_interest_rc(ngx_mcp_interest_sh_t *in);
static ngx_mcp_subscription_sh_t *ngx_mcp_subscription_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_subscriber_sh_t *sb, ngx_str_t *uri,
    uint64_t hash);
static ngx_int_t ngx_mcp_subscription_nth_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, uint64_t upstream, ngx_uint_t n, ngx_pool_t *pool,
    ngx_str_t *uri);
static ngx_mcp_subscription_sh_t *ngx_mcp_subscription_make_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner, ngx_mcp_stage_t *stage,
    uint64_t hash, uint64_t upstream);


static ngx_mcp_subscription_sh_t *
ngx_mcp_subscription_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_str_t *uri, uint64_t hash)
{
    ngx_mcp_subscription_sh_t  *sub;

    sub = ngx_mcp_subscriber_find_locked(zone, sb, hash);

    return (sub && ngx_mcp_text_equal(zone, sub, 0, sub->rec.len, uri)) ? sub
                                                                        : NULL;
}


ngx_mcp_subscription_sh_t *
ngx_mcp_subscription_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    ngx_str_t *uri)
{
    ngx_mcp_subscriber_sh_t  *sb;

    sb = ngx_mcp_subscriber_locked(zone, owner);

    return sb ? ngx_mcp_subscription_locked(zone, sb, uri,
                                            ngx_mcp_hash(zone, uri, NULL))
              : NULL;
}


ngx_uint_t
ngx_mcp_session_subscribed(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri, ngx_str_t *upstream)
{
    uint64_t                    name;
    ngx_uint_t                  found;
    ngx_mcp_subscription_sh_t  *sub;

    name = upstream ? ngx_mcp_hash(zone, upstream, NULL) : 0;

    ngx_mcp_zone_lock(zone);

    sub = ngx_mcp_subscription_find_locked(zone, session, uri);
    found = (sub && (upstream == NULL || sub->upstream == name));

    ngx_mcp_zone_unlock(zone);

    return found;
}


ngx_int_t
ngx_mcp_session_subscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri, ngx_str_t *upstream, ngx_uint_t limit)
{
    uint64_t                  hash, name;
    ngx_int_t                 rc;
    ngx_mcp_stage_t           stage;
    ngx_mcp_subscriber_sh_t  *sb;

    if (uri->len > NGX_MCP_URI_MAX) {
        return NGX_BUSY;
    }

    hash = ngx_mcp_hash(zone, uri, NULL);
    name = upstream ? ngx_mcp_hash(zone, upstream, NULL) : 0;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SUBSCRIPTION, uri, 1);
    stage.room = NGX_MCP_ROOM_SHARE;
    stage.payer = session;

    ngx_mcp_zone_lock(zone);

    sb = ngx_mcp_subscriber_locked(zone, session);
    rc = NGX_AGAIN;

    if (sb && ngx_mcp_subscription_locked(zone, sb, uri, hash)) {
        rc = NGX_OK;

    } else if (sb && sb->nsubscriptions >= limit) {
        rc = NGX_BUSY;
    }

    ngx_mcp_zone_unlock(zone);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    sb = ngx_mcp_subscriber_locked(zone, session);

    if (sb == NULL) {
        rc = NGX_DECLINED;

    } else if (ngx_mcp_subscription_locked(zone, sb, uri, hash)) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return NGX_OK;

    } else if (sb->nsubscriptions >= limit) {
        rc = NGX_BUSY;
    }

    if (rc != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    (void) ngx_mcp_subscription_make_locked(zone, session, &stage, hash, name);

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


static ngx_mcp_subscription_sh_t *
ngx_mcp_subscription_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    ngx_mcp_stage_t *stage, uint64_t hash, uint64_t upstream)
{
    ngx_mcp_subscription_sh_t  *sub;

    sub = ngx_mcp_make_locked(zone, stage);
    sub->rec.owner = owner;
    sub->uri = hash;
    sub->upstream = upstream;

    ngx_mcp_commit_locked(zone, sub, NGX_MCP_SUBSCRIPTION);

    ngx_mcp_subscriber_add_locked(zone, ngx_mcp_subscriber_locked(zone, owner),
                                  sub);
    return sub;
}


ngx_int_t
ngx_mcp_session_unsubscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_int_t                   rc;
    ngx_mcp_subscriber_sh_t    *sb;
    ngx_mcp_subscription_sh_t  *sub;

    ngx_mcp_zone_lock(zone);

    sb = ngx_mcp_subscriber_locked(zone, session);
    sub = ngx_mcp_subscription_find_locked(zone, session, uri);

    if (sub == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    rc = sub->interest.block ? NGX_DONE : NGX_OK;

    ngx_mcp_subscription_drop_locked(zone, sb, sub);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_subscription_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub)
{
    ngx_mcp_subscriber_remove_locked(zone, sb, sub);
    ngx_mcp_interest_leave_locked(zone, sub->interest);
    ngx_mcp_topic_unsubscribe_locked(zone, sub);
    ngx_mcp_drop_locked(zone, sub);
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


static ngx_int_t
ngx_mcp_subscription_nth_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    uint64_t upstream, ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri)
{
    uint32_t                    block;
    ngx_mcp_subscriber_sh_t    *sb;
    ngx_mcp_subscription_sh_t  *sub;

    sb = ngx_mcp_subscriber_locked(zone, owner);
    block = sb ? sb->subscriptions.head : 0;

    for ( /* void */ ; block; block = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, block);

        if ((upstream == 0 || sub->upstream == upstream) && n-- == 0) {
            return ngx_mcp_text_copy(zone, sub, 0, sub->rec.len, pool, uri);
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_mcp_topic_subscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_topic_t *topic)
{
    uint64_t                    after;
    ngx_int_t                   rc;
    ngx_mcp_ref_t               ref;
    ngx_mcp_caller_t            caller;
    ngx_mcp_topic_sh_t         *t;
    ngx_mcp_subscription_sh_t  *sub;

    after = 0;

    ngx_memzero(&caller, sizeof(ngx_mcp_caller_t));
    caller.session = session;

    rc = ngx_mcp_topic_watch(zone, &caller, topic, &ref, &after);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_mcp_zone_lock(zone);

    t = ngx_mcp_record(zone, ref, NGX_MCP_TOPIC);
    sub = t ? ngx_mcp_subscription_find_locked(zone, session, &topic->uri)
            : NULL;

    if (sub && ngx_mcp_record(zone, sub->topic, NGX_MCP_TOPIC) == NULL) {

        if (ngx_mcp_session_locked(zone, t->charged)) {
            ngx_mcp_touch(zone, sub);
            ngx_mcp_touch(zone, t);
            sub->topic = ref;
            t->subscribers++;

        } else {
            rc = NGX_BUSY;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_upstream_session_subscription(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri)
{
    ngx_int_t                       rc;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);
    rc = us ? ngx_mcp_subscription_nth_locked(zone, us->rec.owner,
                                              us->upstream, n, pool, uri)
            : NGX_DECLINED;

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_interest_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_uint_t limit)
{
    uint64_t                        hash;
    ngx_int_t                       rc;
    ngx_mcp_stage_t                 stage, interest;
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_subscriber_sh_t        *sb;
    ngx_mcp_subscription_sh_t      *sub;
    ngx_mcp_upstream_session_sh_t  *us;

    if (uri->len > NGX_MCP_URI_MAX) {
        return NGX_BUSY;
    }

    hash = ngx_mcp_hash(zone, uri, NULL);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SUBSCRIPTION, uri, 1);
    ngx_mcp_stage_init(zone, &interest, NGX_MCP_INTEREST, uri, 1);
    stage.payer = session;
    interest.payer = session;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, shared);
    sb = ngx_mcp_subscriber_locked(zone, session);
    sub = sb ? ngx_mcp_subscription_locked(zone, sb, uri, hash) : NULL;
    in = sub ? ngx_mcp_record(zone, sub->interest, NGX_MCP_INTEREST) : NULL;

    if (sub && sub->interest.block == 0) {

        /* a subscription at the client's own upstream session stays there */

        ngx_mcp_zone_unlock(zone);
        return NGX_DONE;
    }

    if (in && (in->rec.owner.block != shared.block
               || in->rec.owner.gen != shared.gen))
    {
        /* the interest is at another upstream, from before a reload */

        in = NULL;
    }

    rc = NGX_OK;

    if (sb && sub == NULL && sb->nsubscriptions >= limit) {

        /* the limit does not depend on the room that there is */

        ngx_mcp_zone_unlock(zone);
        return NGX_BUSY;
    }

    if (in == NULL) {

        /* making room may end sessions, so the records are looked up again */

        rc = ngx_mcp_reserve_locked(zone, session, NGX_MCP_ROOM_SHARE,
                                    (sub ? 0 : ngx_mcp_stage_needs(&stage))
                                    + ngx_mcp_stage_needs(&interest));
        us = ngx_mcp_upstream_session_locked(zone, shared);
        sb = ngx_mcp_subscriber_locked(zone, session);
        sub = sb ? ngx_mcp_subscription_locked(zone, sb, uri, hash) : NULL;
    }

    if (sb == NULL || us == NULL) {
        rc = NGX_DECLINED;
    }

    if (rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);

        /*
         * If there is no room to share an existing subscription, it stays at
         * the client's own upstream session.
         */

        return sub ? NGX_DONE : rc;
    }

    if (in == NULL) {
        in = ngx_mcp_interest_add_locked(zone, us, &interest, hash);

        if (sub == NULL) {
            sub = ngx_mcp_subscription_make_locked(zone, session, &stage, hash,
                                                   us->upstream);
        }

        ngx_mcp_interest_leave_locked(zone, sub->interest);

        ngx_mcp_touch(zone, sub);
        sub->interest = ngx_mcp_ref(zone, in);
        sub->upstream = us->upstream;
        sub->paired = in->updates;
    }

    rc = ngx_mcp_interest_rc(in);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_interest_state(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_int_t                   rc;
    ngx_mcp_interest_sh_t      *in;
    ngx_mcp_subscription_sh_t  *sub;

    ngx_mcp_zone_lock(zone);

    sub = ngx_mcp_subscription_find_locked(zone, session, uri);

    if (sub == NULL) {
        rc = NGX_DECLINED;

    } else if (sub->interest.block == 0) {
        rc = NGX_DONE;

    } else {
        in = ngx_mcp_record(zone, sub->interest, NGX_MCP_INTEREST);
        rc = in ? ngx_mcp_interest_rc(in) : NGX_ERROR;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_interest_leave(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri)
{
    ngx_mcp_subscription_sh_t  *sub;

    ngx_mcp_zone_lock(zone);

    sub = ngx_mcp_subscription_find_locked(zone, session, uri);

    if (sub) {
        ngx_mcp_interest_leave_locked(zone, sub->interest);
        ngx_mcp_touch(zone, sub);
        ngx_memzero(&sub->interest, sizeof(ngx_mcp_ref_t));
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_interest_pair(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n, ngx_uint_t last,
    uint64_t *stamp)
{
    ngx_int_t                       rc;
    ngx_mcp_subscriber_sh_t        *sb;
    ngx_mcp_subscription_sh_t      *sub;
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    sb = ngx_mcp_subscriber_locked(zone, session);

    if (sb == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_OK;
    }

    sub = ngx_mcp_subscription_find_locked(zone, session, uri);

    if (*stamp && (sub == NULL || sub->stamp != *stamp)) {

        /* the session has unsubscribed meanwhile */

        ngx_mcp_zone_unlock(zone);
        return NGX_OK;
    }

    us = ngx_mcp_shared_locked(zone, ngx_mcp_subscriber_group(zone, sb),
                               sb->audience,
                               ngx_mcp_hash(zone, upstream, NULL));
    rc = NGX_DECLINED;

    if (us && us->since && us->state == NGX_MCP_UPSTREAM_SESSION_MADE) {

        if (sub) {
            rc = ngx_mcp_interest_pair_locked(zone, sub, us->serial, n, last);
            *stamp = sub->stamp;

        } else if (uri->len == 0) {
            rc = NGX_OK;
        }

        /*
         * Otherwise the URI may be a part of a resource that the session
         * subscribed to.
         */
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_int_t
ngx_mcp_interest_pair_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub, uint32_t serial, ngx_uint_t n,
    ngx_uint_t last)
{
    ngx_uint_t              first;
    ngx_mcp_interest_sh_t  *in;

    if (sub->interest.block == 0) {
        return NGX_DECLINED;
    }

    in = ngx_mcp_record(zone, sub->interest, NGX_MCP_INTEREST);

    if (in == NULL) {
        return NGX_OK;
    }

    ngx_mcp_touch(zone, sub);

    if (last) {
        sub->delayed = 0;
    }

    if (in->state == NGX_MCP_INTEREST_MADE && in->serial != serial
        && !in->separate)
    {
        /* all sessions are notified when the subscription is made again */

        return NGX_OK;
    }

    /* earlier updates that are too old are not paired with this one */

    if (!last && in->when + NGX_MCP_INTEREST_RECENT < ngx_current_msec) {
        sub->paired = in->updates;
    }

    if (in->updates - sub->paired >= n) {
        sub->paired += (uint32_t) n;
        return NGX_OK;
    }

    sub->paired = in->updates;

    if (!last && !in->separate) {
        sub->delayed = 1;
        return NGX_AGAIN;
    }

    first = !in->separate;

    ngx_mcp_touch(zone, in);
    in->separate = 1;

    return first ? NGX_ABORT : NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_interest_rc(ngx_mcp_interest_sh_t *in)
{
    switch (in->state) {

    case NGX_MCP_INTEREST_MADE:
        return NGX_OK;

    case NGX_MCP_INTEREST_REFUSED:
        return NGX_DONE;

    default: /* NGX_MCP_INTEREST_WANTED */
        return NGX_AGAIN;
    }
}
