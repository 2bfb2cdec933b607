
#include "ngx_mcp_state_sh.h"


/* records that expiry drops under one hold of the lock, sessions apart */
#define NGX_MCP_EXPIRE_RECORDS   128
#define NGX_MCP_EXPIRE_SESSIONS  16


static ngx_uint_t ngx_mcp_session_trim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_uint_t max);
static ngx_mcp_limit_sh_t *ngx_mcp_limit_find_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *key);
static ngx_int_t ngx_mcp_limit_reclaim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_limit_sh_t *limit);


/*
 * Idle sessions are kept in lists by the length of their time-out, each in
 * the order in which they became idle, so that its head is the one to look at.
 */

ngx_uint_t
ngx_mcp_idle_class(ngx_mcp_session_sh_t *s)
{
    uint32_t    timeout;
    ngx_uint_t  class;

    if (!s->used) {
        return NGX_MCP_IDLE_UNUSED;
    }

    class = 0;

    for (timeout = s->timeout / 1024; timeout; timeout /= 2) {
        class++;
    }

    return class;
}


void
ngx_mcp_idle_enter_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    ngx_mcp_touch_range(zone, s, ended, touched);
    s->idle = (u_char) ngx_mcp_idle_class(s);

    ngx_mcp_list_append(zone, &zone->root->idle[s->idle],
                        ngx_mcp_number(zone, s), NGX_MCP_LINKS);
}


void
ngx_mcp_idle_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    if (s->idle == NGX_MCP_IDLE_NONE) {
        return;
    }

    ngx_mcp_list_remove(zone, &zone->root->idle[s->idle],
                        ngx_mcp_number(zone, s), NGX_MCP_LINKS);

    ngx_mcp_touch_range(zone, s, ended, touched);
    s->idle = NGX_MCP_IDLE_NONE;
}


ngx_uint_t
ngx_mcp_idle_overdue(ngx_mcp_session_sh_t *s, uint64_t now, uint64_t *late)
{
    uint64_t  timeout, idle;

    if (s->idle == NGX_MCP_IDLE_NONE || now < s->touched) {
        return 0;
    }

    timeout = s->timeout;

    if (!s->used && timeout > NGX_MCP_UNUSED_TIMEOUT) {
        timeout = NGX_MCP_UNUSED_TIMEOUT;
    }

    idle = now - s->touched;

    if (idle < timeout) {
        return 0;
    }

    *late = idle - timeout;

    return 1;
}


ngx_int_t
ngx_mcp_reclaim_session_locked(ngx_mcp_zone_t *zone)
{
    uint64_t               late, latest;
    uint32_t               n;
    ngx_uint_t             i;
    ngx_mcp_session_sh_t  *s, *victim;

    victim = NULL;
    latest = 0;

    for (i = 0; i < NGX_MCP_IDLE_CLASSES; i++) {
        n = zone->root->idle[i].head;

        if (n == 0) {
            continue;
        }

        s = ngx_mcp_block(zone, n);

        if (ngx_mcp_idle_overdue(s, ngx_current_msec, &late)
            && (victim == NULL || late > latest))
        {
            victim = s;
            latest = late;
        }
    }

    if (victim == NULL) {
        return NGX_DECLINED;
    }

    ngx_mcp_session_end_locked(zone, victim, NGX_MCP_COUNTER_SESSIONS_EVICTED);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_expire_locked(ngx_mcp_zone_t *zone)
{
    uint32_t                 head;
    uint64_t                 now, timeout;
    ngx_uint_t               i, n, left;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    n = 0;
    left = NGX_MCP_EXPIRE_RECORDS;
    now = ngx_current_msec;

    for (i = 0; i < NGX_MCP_IDLE_CLASSES; i++) {

        while ((head = zone->root->idle[i].head) != 0) {
            ngx_mcp_step_locked(zone);

            s = ngx_mcp_block(zone, head);

            timeout = (uint64_t) s->timeout * NGX_MCP_IDLE_END;

            if (now < s->touched || now - s->touched < timeout) {
                break;
            }

            left -= ngx_mcp_session_trim_locked(zone, s, left);

            if (left == 0 || n++ == NGX_MCP_EXPIRE_SESSIONS) {
                return NGX_AGAIN;
            }

            /* these go with the session alone, as it may come back */

            e = ngx_mcp_session_extension(zone, s);
            left -= ngx_min(left, e->nsubscriptions + e->nserver_requests);

            ngx_mcp_session_end_locked(zone, s,
                                       NGX_MCP_COUNTER_SESSIONS_EXPIRED);
        }
    }

    return ngx_mcp_shared_expire_locked(zone, &left);
}


/*
 * Drops events and finished lines, at most that many; a client that comes back
 * amid this is told of the gap.
 */

static ngx_uint_t
ngx_mcp_session_trim_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_uint_t max)
{
    ngx_uint_t          n;
    ngx_mcp_call_sh_t  *c;

    n = ngx_mcp_log_clear_locked(zone, &s->log, max);

    while (n < max && s->finished.head) {
        c = ngx_mcp_block(zone, s->finished.head);
        n += ngx_mcp_log_clear_locked(zone, &c->log, max - n);

        if (n < max) {
            ngx_mcp_call_drop_locked(zone, c);
            n++;
        }
    }

    return n;
}


static ngx_mcp_limit_sh_t *
ngx_mcp_limit_find_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key)
{
    uint32_t             hash;
    ngx_mcp_limit_sh_t  *l;

    hash = (uint32_t) ngx_mcp_hash(zone, endpoint, key);

    for (l = ngx_mcp_hash_first_locked(zone, NGX_MCP_LIMIT, hash);
         l;
         l = ngx_mcp_hash_next_locked(zone, l))
    {
        if (ngx_mcp_text_equal(zone, l, 0, l->endpoint_len, endpoint)
            && ngx_mcp_text_equal(zone, l, l->endpoint_len,
                                  l->rec.len - l->endpoint_len, key))
        {
            return l;
        }
    }

    return NULL;
}


ngx_int_t
ngx_mcp_limit_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key, ngx_uint_t max)
{
    ngx_mcp_limit_sh_t  *l;

    l = ngx_mcp_limit_find_locked(zone, endpoint, key);

    if (l == NULL || l->count < max
        || ngx_mcp_limit_reclaim_locked(zone, l) == NGX_OK)
    {
        return NGX_OK;
    }

    return NGX_BUSY;
}


static ngx_int_t
ngx_mcp_limit_reclaim_locked(ngx_mcp_zone_t *zone, ngx_mcp_limit_sh_t *limit)
{
    uint32_t                 n;
    uint64_t                 late;
    ngx_uint_t               i;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    for (i = 0; i < 8 && limit->list.head; i++) {
        n = limit->list.head;
        e = ngx_mcp_block(zone, n);
        s = ngx_mcp_block(zone, e->rec.owner.block);

        if (ngx_mcp_idle_overdue(s, ngx_current_msec, &late)) {
            ngx_mcp_session_end_locked(zone, s,
                                       NGX_MCP_COUNTER_SESSIONS_EVICTED);
            return NGX_OK;
        }

        /* others are looked at next time */

        ngx_mcp_list_remove(zone, &limit->list, n,
                            offsetof(ngx_mcp_extension_sh_t, limited));
        ngx_mcp_list_append(zone, &limit->list, n,
                            offsetof(ngx_mcp_extension_sh_t, limited));
    }

    return NGX_DECLINED;
}


ngx_mcp_limit_sh_t *
ngx_mcp_limit_get_locked(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key)
{
    ngx_str_t            parts[2];
    ngx_mcp_stage_t      stage;
    ngx_mcp_limit_sh_t  *l;

    l = ngx_mcp_limit_find_locked(zone, endpoint, key);

    if (l) {
        return l;
    }

    parts[0] = *endpoint;
    parts[1] = *key;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LIMIT, parts, 2);

    l = ngx_mcp_make_locked(zone, &stage);
    l->endpoint_len = (uint32_t) endpoint->len;
    l->rec.hash = (uint32_t) ngx_mcp_hash(zone, endpoint, key);

    ngx_mcp_commit_locked(zone, l, NGX_MCP_LIMIT);
    ngx_mcp_hash_insert_locked(zone, l);

    return l;
}


void
ngx_mcp_limit_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_extension_sh_t *e)
{
    ngx_mcp_limit_sh_t  *l;

    if (e->limit == 0) {
        return;
    }

    l = ngx_mcp_block(zone, e->limit);

    ngx_mcp_list_remove(zone, &l->list, ngx_mcp_number(zone, e),
                        offsetof(ngx_mcp_extension_sh_t, limited));
    ngx_mcp_limit_drop_locked(zone, e->limit);

    ngx_mcp_touch(zone, e);
    e->limit = 0;
}


void
ngx_mcp_limit_drop_locked(ngx_mcp_zone_t *zone, uint32_t limit)
{
    ngx_mcp_limit_sh_t  *l;

    l = ngx_mcp_block(zone, limit);

    ngx_mcp_touch(zone, l);

    if (--l->count == 0) {
        ngx_mcp_hash_remove_locked(zone, l);
        ngx_mcp_drop_locked(zone, l);
    }
}
