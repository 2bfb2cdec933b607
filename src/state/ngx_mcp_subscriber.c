
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_subscriber.h"


static uint32_t ngx_mcp_subscriber_hash(uint32_t block, uint64_t uri);


ngx_int_t
ngx_mcp_group_news(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group, uint64_t *seen,
    ngx_mcp_news_t *news, ngx_uint_t *n)
{
    uint64_t             none;
    ngx_int_t            rc;
    ngx_uint_t           i;
    ngx_mcp_log_sh_t    *log;
    ngx_mcp_event_sh_t  *e;
    ngx_mcp_group_sh_t  *g;

    *n = 0;
    none = ngx_mcp_want_none(zone);

    ngx_mcp_zone_lock(zone);

    g = ngx_mcp_group_locked(zone, group);

    if (g == NULL) {
        rc = NGX_DECLINED;
        goto done;
    }

    if (zone->worker != NGX_MCP_NO_WORKER
        && ngx_mcp_slot(zone, zone->worker)->nfirst)
    {
        rc = NGX_BUSY;
        goto done;
    }

    log = &g->log;
    e = ngx_mcp_log_after_locked(zone, log, g, *seen, 0);

    for (i = 0; *seen < log->last; i++) {

        if (i == NGX_MCP_NEWS) {
            rc = NGX_AGAIN;
            goto done;
        }

        news[*n].pos = *seen + 1;
        news[*n].want = NGX_MCP_WANT_ALL;

        if (e && e->pos == *seen + 1) {
            news[*n].want = ngx_mcp_event_want(&e->target, none);
            e = e->rec.links.next ? ngx_mcp_block(zone, e->rec.links.next)
                                  : NULL;
        }

        /* an event that is lost may have been for any of the readers */

        *seen = (news[*n].want == NGX_MCP_WANT_ALL) ? log->last : *seen + 1;

        /* readers with this want read all news: one entry wakes them */

        if (*n == 0 || news[*n - 1].want != news[*n].want) {
            (*n)++;
        }
    }

    ngx_mcp_watch_locked(zone, g->watch);

    rc = NGX_OK;

done:

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_mcp_subscriber_sh_t *
ngx_mcp_subscriber_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_session_locked(zone, owner);

    return s ? &s->subscriber : NULL;
}


void
ngx_mcp_subscriber_move_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_cursor_t *cursor)
{
    ngx_mcp_cursor_t  *pos;

    pos = &sb->delivered;

    if (pos->own >= cursor->own && pos->group >= cursor->group
        && pos->endpoint >= cursor->endpoint)
    {
        return;
    }

    ngx_mcp_touch(zone, pos);

    pos->own = ngx_max(pos->own, cursor->own);
    pos->group = ngx_max(pos->group, cursor->group);
    pos->endpoint = ngx_max(pos->endpoint, cursor->endpoint);
}


void
ngx_mcp_subscriber_wake_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_uint_t reasons)
{
    if (sb->active_stream) {
        ngx_mcp_wake_locked(zone, ngx_mcp_block(zone, sb->active_stream),
                            reasons);
    }
}


ngx_uint_t
ngx_mcp_subscriber_hidden_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_target_sh_t *target)
{
    uint64_t                kinds;
    ngx_uint_t              i;
    ngx_mcp_group_sh_t     *g;
    ngx_mcp_audience_sh_t  *a;

    if (target->identity && target->identity != sb->identity) {
        return 1;
    }

    if (target->audience && target->audience != sb->audience) {
        return 1;
    }

    if (target->flags & NGX_MCP_EVENT_LISTED && sb->own_lists) {
        return 1;
    }

    kinds = NGX_MCP_EVENT_KINDS(target->flags);

    if (kinds && (kinds & sb->offered) == 0) {
        return 1;
    }

    if (sb->listens && !kinds && target->uri[0] == 0
        && !(NGX_MCP_EVENT_CHANGES(target->flags) & sb->offered))
    {
        return 1;
    }

    if (target->flags & NGX_MCP_EVENT_UNLISTED && !sb->own_lists) {
        g = ngx_mcp_subscriber_group(zone, sb);

        a = ngx_mcp_audience_find_locked(zone, g, sb->audience);

        if (a && a->kinds) {
            return 1;
        }
    }

    for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
        if (target->uri[i]
            && ngx_mcp_subscriber_find_locked(zone, sb, target->uri[i])
               == NULL)
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_mcp_stream_wants(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    uint64_t *wants, ngx_uint_t max)
{
    uint32_t                    n;
    uint64_t                    none;
    ngx_uint_t                  i;
    ngx_mcp_subscriber_sh_t    *sb;
    ngx_mcp_subscription_sh_t  *sub;

    i = 0;
    none = ngx_mcp_want_none(zone);

    ngx_mcp_zone_lock(zone);

    sb = ngx_mcp_subscriber_locked(zone, stream->session);

    if (sb == NULL) {
        ngx_mcp_zone_unlock(zone);
        return 0;
    }

    if (stream->wanted == 0) {

        if (sb->identity != none && i++ < max) {
            wants[i - 1] = sb->identity;
        }

        if (sb->audience != none && i++ < max) {
            wants[i - 1] = sb->audience;
        }
    }

    for (n = sb->subscriptions.tail; n; n = sub->rec.links.prev) {
        sub = ngx_mcp_block(zone, n);

        if (sub->stamp <= stream->wanted) {
            break;
        }

        if (i++ < max) {
            wants[i - 1] = sub->uri;
        }
    }

    if (i <= max) {
        stream->wanted = zone->sh->stamp;
        stream->nwants = 2 + sb->nsubscriptions;
    }

    ngx_mcp_zone_unlock(zone);

    return i;
}


void
ngx_mcp_stream_prefetch(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    uint64_t want, ngx_uint_t again)
{
    uint32_t               hash;
    ngx_mcp_stream_sh_t   *st;
    ngx_mcp_session_sh_t  *s;

    hash = ngx_mcp_subscriber_hash(stream->session.block, want);

    if (!again) {
        st = ngx_mcp_block(zone, stream->ref.block);
        s = ngx_mcp_block(zone, stream->session.block);

        ngx_mcp_prefetch(st, NGX_MCP_LINE);
        ngx_mcp_prefetch(&s->ended, sizeof(ngx_mcp_session_sh_t)
                                    - offsetof(ngx_mcp_session_sh_t, ended));
    }

    if (want != NGX_MCP_WANT_ALL) {
        ngx_mcp_hash_prefetch(zone, hash, again);
    }
}


/* hash of a subscription; block: block of the subscriber's session */

static uint32_t
ngx_mcp_subscriber_hash(uint32_t block, uint64_t uri)
{
    return (uint32_t) uri ^ block * 2654435761U;
}


ngx_mcp_subscription_sh_t *
ngx_mcp_subscriber_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, uint64_t uri)
{
    uint32_t                    n;
    ngx_mcp_subscription_sh_t  *sub;

    n = ngx_mcp_number(zone, sb);

    for (sub = ngx_mcp_hash_first_locked(zone, NGX_MCP_SUBSCRIPTION,
                                         ngx_mcp_subscriber_hash(n, uri));
         sub;
         sub = ngx_mcp_hash_next_locked(zone, sub))
    {
        if (sub->uri == uri && sub->rec.owner.block == n) {
            return sub;
        }
    }

    return NULL;
}


void
ngx_mcp_subscriber_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub)
{
    ngx_mcp_touch(zone, sb);

    sub->rec.hash = ngx_mcp_subscriber_hash(ngx_mcp_number(zone, sb),
                                            sub->uri);
    sub->stamp = ++zone->sh->stamp;

    ngx_mcp_hash_insert_locked(zone, sub);
    ngx_mcp_list_append(zone, &sb->subscriptions, ngx_mcp_number(zone, sub),
                        NGX_MCP_LINKS);
    sb->nsubscriptions++;

    /*
     * Wakes the subscriber's stream at once, so that its worker knows the URI
     * before an event comes.
     */

    ngx_mcp_subscriber_wake_locked(zone, sb, NGX_MCP_WAKE_WANTS);
}


void
ngx_mcp_subscriber_remove_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub)
{
    ngx_mcp_touch(zone, sb);

    ngx_mcp_hash_remove_locked(zone, sub);
    ngx_mcp_list_remove(zone, &sb->subscriptions, ngx_mcp_number(zone, sub),
                        NGX_MCP_LINKS);
    sb->nsubscriptions--;
}
