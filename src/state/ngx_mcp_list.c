
#include "ngx_mcp_state_sh.h"


#define ngx_mcp_list_content(zone, k)                                         \
    ((ngx_mcp_content_sh_t *) ngx_mcp_block(zone, (k)->content))


static void ngx_mcp_list_clear_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_list_state_sh_t *k);
static ngx_int_t ngx_mcp_list_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t audience, ngx_mcp_stage_t *stage);


ngx_int_t
ngx_mcp_list_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, ngx_mcp_list_t *list)
{
    ngx_int_t                 rc;
    ngx_mcp_content_sh_t     *c;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    ngx_mcp_touch(zone, &a->asked);
    a->asked = ngx_current_msec;

    k = &a->lists[kind];

    if (k->content) {
        c = ngx_mcp_list_content(zone, k);

        list->ref = ngx_mcp_ref(zone, c);
        list->audience = audience;
        list->kind = kind;
        list->version = c->version;
        list->len = c->rec.len;

        rc = NGX_OK;

    } else if (k->flags & NGX_MCP_LIST_PASS_THROUGH || k->failures) {
        rc = NGX_DECLINED;

    } else {
        rc = NGX_AGAIN;
    }

    if (!(k->flags & NGX_MCP_LIST_WANTED)) {
        ngx_mcp_touch(zone, k);
        k->flags |= NGX_MCP_LIST_WANTED;
        ngx_mcp_list_ring_locked(zone, audience.block);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_list_read(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list, u_char *dst)
{
    uint32_t  recoveries;

    /*
     * it may be dropped and overwritten meanwhile, and be there again when that
     * was undone: both is looked for
     */

    recoveries = zone->sh->recoveries;
    ngx_memory_barrier();

    if (!ngx_mcp_list_current(zone, list)) {
        return NGX_DECLINED;
    }

    ngx_mcp_text_read(zone, ngx_mcp_block(zone, list->ref.block), 0, dst,
                      list->len);

    ngx_memory_barrier();

    return (zone->sh->recoveries == recoveries
            && ngx_mcp_list_current(zone, list)) ? NGX_OK : NGX_DECLINED;
}


ngx_uint_t
ngx_mcp_list_current(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list)
{
    ngx_mcp_audience_sh_t  *a;

    a = ngx_mcp_record(zone, list->audience, NGX_MCP_AUDIENCE);

    return a && a->lists[list->kind].content == list->ref.block
           && ngx_mcp_record(zone, list->ref, NGX_MCP_LIST) != NULL;
}


ngx_uint_t
ngx_mcp_list_signal(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kinds)
{
    ngx_uint_t                i, kept, rings;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    kept = 0;
    rings = 0;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    for (i = 0; a && i < NGX_MCP_LIST_KINDS; i++) {
        k = &a->lists[i];

        if (!(kinds & NGX_MCP_LIST_BIT(i))
            || !(k->flags & NGX_MCP_LIST_WANTED))
        {
            continue;
        }

        ngx_mcp_touch(zone, k);
        k->signals++;
        k->failures = 0;
        rings = 1;

        if (k->content || k->flags & NGX_MCP_LIST_PASS_THROUGH) {
            kept |= NGX_MCP_LIST_BIT(i);
        }
    }

    if (rings) {
        ngx_mcp_list_ring_locked(zone, audience.block);
    }

    ngx_mcp_zone_unlock(zone);

    return kept;
}


ngx_uint_t
ngx_mcp_list_signal_session(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_uint_t kinds)
{
    ngx_mcp_ref_t           ref;
    ngx_mcp_session_sh_t   *s;
    ngx_mcp_audience_sh_t  *a;

    a = NULL;

    ngx_memzero(&ref, sizeof(ngx_mcp_ref_t));

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s && !s->subscriber.own_lists) {
        a = ngx_mcp_audience_find_locked(zone, ngx_mcp_session_group(zone, s),
                                         s->subscriber.audience);
    }

    if (a) {
        ref = ngx_mcp_ref(zone, a);
    }

    ngx_mcp_zone_unlock(zone);

    return a ? ngx_mcp_list_signal(zone, ref, kinds) : 0;
}


ngx_int_t
ngx_mcp_list_due(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, uint32_t *signals, ngx_msec_t *delay)
{
    uint64_t                  now;
    ngx_int_t                 rc;
    ngx_uint_t                cold;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    now = ngx_current_msec;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    k = &a->lists[kind];
    cold = !k->content && !(k->flags & NGX_MCP_LIST_PASS_THROUGH);

    if (!(k->flags & NGX_MCP_LIST_WANTED)) {
        rc = NGX_DECLINED;

    } else if (now >= k->due
               || (!k->failures && (cold || k->signals != k->seen)))
    {
        *signals = k->signals;
        rc = NGX_OK;

    } else {
        *delay = (ngx_msec_t) (k->due - now);
        rc = NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_list_put(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, ngx_mcp_list_content_t *content, uint32_t signals,
    ngx_msec_t ttl)
{
    uint32_t                  old;
    ngx_int_t                 rc;
    ngx_mcp_stage_t           stage;
    ngx_mcp_content_sh_t     *c;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    k = &a->lists[kind];

    if (k->content) {
        c = ngx_mcp_list_content(zone, k);

        if (ngx_memcmp(c->order, content->order, NGX_MCP_DIGEST_LEN) == 0) {
            ngx_mcp_touch(zone, c);
            ngx_mcp_touch(zone, k);
            c->filled = ngx_current_msec;
            k->seen = signals;
            k->due = ngx_current_msec + ttl;
            k->failures = 0;

            ngx_mcp_zone_unlock(zone);

            return NGX_DONE;
        }
    }

    ngx_mcp_zone_unlock(zone);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LIST, &content->text, 1);

    rc = ngx_mcp_stage(zone, &stage);

    ngx_mcp_zone_lock(zone);

    if (rc == NGX_OK) {
        rc = ngx_mcp_list_room_locked(zone, audience, &stage);
    }

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (rc != NGX_OK || a == NULL) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);

        if (a == NULL) {
            return NGX_ERROR;
        }

        ngx_mcp_list_pass_through(zone, audience, kind, signals, ttl);

        return NGX_DECLINED;
    }

    k = &a->lists[kind];
    old = k->content;

    if (old) {
        c = ngx_mcp_list_content(zone, k);

        rc = (ngx_memcmp(c->digest, content->digest, NGX_MCP_DIGEST_LEN) == 0)
             ? NGX_DONE : NGX_OK;

    } else {

        /* the list passed through so far may have been another one */

        rc = (k->flags & NGX_MCP_LIST_PASS_THROUGH) ? NGX_OK : NGX_DONE;
    }

    ngx_mcp_touch(zone, a);

    if (rc == NGX_OK) {
        a->dirty |= NGX_MCP_LIST_BIT(kind);
    }

    c = ngx_mcp_make_locked(zone, &stage);

    c->rec.owner = audience;
    c->rec.flags = (uint16_t) kind;
    c->version = ++zone->sh->stamp;
    c->filled = ngx_current_msec;
    c->entries = (uint32_t) content->entries;
    ngx_memcpy(c->digest, content->digest, NGX_MCP_DIGEST_LEN);
    ngx_memcpy(c->order, content->order, NGX_MCP_DIGEST_LEN);

    ngx_mcp_commit_locked(zone, c, NGX_MCP_LIST);

    k->content = ngx_mcp_number(zone, c);

    if (old) {
        ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, old));
    }

    k->flags &= ~NGX_MCP_LIST_PASS_THROUGH;
    k->seen = signals;
    k->due = ngx_current_msec + ttl;
    k->failures = 0;

    ngx_mcp_list_ring_locked(zone, audience.block);

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* a quarter of the zone at most */

static ngx_int_t
ngx_mcp_list_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_stage_t *stage)
{
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    while (sh->used[NGX_MCP_LIST] + stage->blocks > sh->blocks / 4) {

        if (ngx_mcp_audience_reclaim_locked(zone, audience) != NGX_OK) {
            return NGX_DECLINED;
        }

        ngx_mcp_step_locked(zone);
    }

    return ngx_mcp_stage_reserve_locked(zone, stage);
}


void
ngx_mcp_list_pass_through(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, uint32_t signals, ngx_msec_t ttl)
{
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a) {
        k = &a->lists[kind];

        ngx_mcp_touch(zone, a);

        /* nothing to compare with: each signal may be a change */

        if (k->content
            || (k->flags & NGX_MCP_LIST_PASS_THROUGH && k->seen != signals))
        {
            a->dirty |= NGX_MCP_LIST_BIT(kind);
        }

        k->flags |= NGX_MCP_LIST_PASS_THROUGH;

        ngx_mcp_list_clear_locked(zone, k);

        k->seen = signals;
        k->due = ngx_current_msec + ttl;
        k->failures = 0;

        ngx_mcp_list_ring_locked(zone, audience.block);
    }

    ngx_mcp_zone_unlock(zone);
}


static void
ngx_mcp_list_clear_locked(ngx_mcp_zone_t *zone, ngx_mcp_list_state_sh_t *k)
{
    uint32_t  n;

    n = k->content;
    k->content = 0;

    if (n) {
        ngx_mcp_drop_locked(zone, ngx_mcp_block(zone, n));
    }
}


void
ngx_mcp_list_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind)
{
    uint64_t                  delay;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a) {
        k = &a->lists[kind];

        delay = NGX_MCP_LIST_RETRY << ngx_min(k->failures, 6);
        delay = ngx_min(delay, NGX_MCP_LIST_RETRY_MAX);
        delay -= (uint64_t) ngx_random() % (delay / 4);

        ngx_mcp_touch(zone, k);
        k->due = ngx_current_msec + delay;

        if (k->failures < 0xff) {
            k->failures++;
        }

        ngx_mcp_list_ring_locked(zone, audience.block);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_uint_t
ngx_mcp_list_dirty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience)
{
    ngx_uint_t              kinds;
    ngx_mcp_audience_sh_t  *a;

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);
    kinds = a ? a->dirty : 0;

    ngx_mcp_zone_unlock(zone);

    return kinds;
}


ngx_uint_t
ngx_mcp_list_announce(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_audience_t *names, ngx_uint_t kinds, ngx_mcp_event_t *event)
{
    ngx_int_t               rc;
    ngx_uint_t              sessions;
    ngx_mcp_group_sh_t     *g;
    ngx_mcp_log_input_t     in;
    ngx_mcp_audience_sh_t  *a;

    rc = NGX_DECLINED;
    sessions = 0;

    event->list_key = names->key;
    event->flags |= NGX_MCP_EVENT_LISTED;

    ngx_mcp_log_input(zone, &in, event);

    ngx_mcp_zone_lock(zone);

    g = ngx_mcp_group_lookup_locked(zone, &names->endpoint, &names->tenant);

    if (g) {
        rc = ngx_mcp_reserve_locked(zone, ngx_mcp_ref(zone, g),
                                    NGX_MCP_ROOM_EVENT, in.stage.blocks);
    }

    g = ngx_mcp_group_lookup_locked(zone, &names->endpoint, &names->tenant);
    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a && a->dirty & kinds) {
        ngx_mcp_touch(zone, &a->dirty);
        a->dirty &= ~kinds;

        if (g && g->sessions) {
            sessions = g->sessions;
            (void) ngx_mcp_log_group_locked(zone, g, &in, rc == NGX_OK, 0);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return sessions;
}


ngx_int_t
ngx_mcp_list_info(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, ngx_mcp_list_info_t *info)
{
    ngx_mcp_content_sh_t     *c;
    ngx_mcp_audience_sh_t    *a;
    ngx_mcp_list_state_sh_t  *k;

    ngx_memzero(info, sizeof(ngx_mcp_list_info_t));

    ngx_mcp_zone_lock(zone);

    a = ngx_mcp_record(zone, audience, NGX_MCP_AUDIENCE);

    if (a) {
        k = &a->lists[kind];

        info->members = a->members;
        info->failures = k->failures;

        if (k->content) {
            c = ngx_mcp_list_content(zone, k);

            info->filled = 1;
            info->entries = c->entries;
            info->size = c->rec.len;
            info->age = (ngx_msec_t) (ngx_current_msec - c->filled);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return a ? NGX_OK : NGX_DECLINED;
}
