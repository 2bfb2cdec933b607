
#include "ngx_mcp_zone_sh.h"


/*
 * A process died while it held the lock.  Each pass looks at all blocks:
 *
 *   1  what does not depend on others: sessions, groups, limits, knowledge,
 *      windows, and topics;
 *   2  what sessions and windows own; then groups that nobody needs go;
 *      audiences;
 *   3  events, which sessions, calls, groups or topics own;
 *   4  lists are put in order and what follows from them is set;
 *   5  blocks without a mark become free.
 *
 * It may be interrupted by the death of its own process at any point and is
 * then done again.
 */

static void ngx_mcp_repair_reset(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_roots(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_lease(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l);
static void ngx_mcp_repair_session(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
static void ngx_mcp_repair_owned(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_limited(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
static void ngx_mcp_repair_supplies(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_call(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c);
static void ngx_mcp_repair_stream(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_stream_sh_t *st);
static void ngx_mcp_repair_link(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_link_sh_t *l);
static void ngx_mcp_repair_topics(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_groups(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_events(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_leftovers(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_accounts(ngx_mcp_zone_t *zone);
static void ngx_mcp_repair_workers(ngx_mcp_zone_t *zone);


void
ngx_mcp_repair_locked(ngx_mcp_zone_t *zone)
{
    zone->sh->recoveries++;

    ngx_mcp_along_repair(zone);
    ngx_mcp_repair_reset(zone);
    ngx_mcp_repair_roots(zone);
    ngx_mcp_repair_topics(zone);
    ngx_mcp_repair_owned(zone);
    ngx_mcp_repair_groups(zone);
    ngx_mcp_repair_lists(zone);
    ngx_mcp_repair_events(zone);
    ngx_mcp_repair_order(zone);
    ngx_mcp_repair_leftovers(zone);
    ngx_mcp_repair_accounts(zone);
    ngx_mcp_repair_workers(zone);
    ngx_mcp_repair_sweep(zone);

    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "mcp zone \"%V\" was repaired after the death of a process, "
                  "%ui sessions", &zone->name,
                  ngx_mcp_zone_sessions(zone->sh));
}


static void
ngx_mcp_repair_reset(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_block_sh_t  *block;

    sh = zone->sh;

    for (n = 1; n < sh->fresh; n++) {
        block = ngx_mcp_block(zone, n);
        block->mark = 0;
    }

    ngx_memzero(sh->buckets, ((size_t) sh->mask + 1) * sizeof(uint32_t));
    ngx_memzero(sh->idle, sizeof(sh->idle));
    ngx_memzero(&sh->groups, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->doomed, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->unsaid, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->topics, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->knowledge, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->farewells, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->audiences, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(sh->windows, sizeof(sh->windows));
    ngx_memzero(&sh->leases, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->news, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(sh->used, sizeof(sh->used));

    sh->free = 0;
    sh->nfree = 0;
    sh->nleases = 0;

    sh->counters[NGX_MCP_COUNTER_SESSIONS_LIVE] = 0;
    sh->counters[NGX_MCP_COUNTER_STREAMS_OPEN] = 0;
    sh->counters[NGX_MCP_COUNTER_CALLS_RUNNING] = 0;
}


static void
ngx_mcp_repair_roots(ngx_mcp_zone_t *zone)
{
    uint32_t                 n;
    ngx_mcp_zone_sh_t       *sh;
    ngx_mcp_limit_sh_t      *l;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_record_sh_t     *rec;
    ngx_mcp_account_sh_t    *a;

    sh = zone->sh;

    for (n = 1; n < sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        switch (rec->block.type) {

        case NGX_MCP_GROUP:
            g = (ngx_mcp_group_sh_t *) rec;

            if (ngx_mcp_repair_mark(zone, g) != NGX_OK) {
                break;
            }

            ngx_memzero(&g->log.list, sizeof(ngx_mcp_list_sh_t));
            ngx_memzero(&g->own, sizeof(ngx_mcp_list_sh_t));
            ngx_memzero(g->watch, sizeof(g->watch));
            ngx_memzero(g->topics, sizeof(g->topics));
            ngx_memzero(g->ntopics, sizeof(g->ntopics));
            g->log.count = 0;
            g->sessions = 0;
            g->farewells = 0;
            g->dying = 0;

            sh->numbers = ngx_max(sh->numbers, g->number);

            break;

        case NGX_MCP_ACCOUNT:
            a = (ngx_mcp_account_sh_t *) rec;

            if (ngx_mcp_repair_mark(zone, a) != NGX_OK) {
                break;
            }

            ngx_memzero(&a->sessions, sizeof(ngx_mcp_list_sh_t));
            ngx_memzero(&a->events, sizeof(ngx_mcp_list_sh_t));
            ngx_memzero(&a->common, sizeof(ngx_mcp_list_sh_t));
            a->used = 0;
            a->kept = 0;

            break;

        case NGX_MCP_LIMIT:
            l = (ngx_mcp_limit_sh_t *) rec;

            if (ngx_mcp_repair_mark(zone, l) != NGX_OK) {
                break;
            }

            ngx_memzero(&l->list, sizeof(ngx_mcp_list_sh_t));
            l->count = 0;

            break;

        case NGX_MCP_KNOWLEDGE:
            if (ngx_mcp_repair_mark(zone, rec) != NGX_OK) {
                break;
            }

            ngx_mcp_repair_push(zone, &sh->knowledge, rec, NGX_MCP_LINKS);

            break;

        case NGX_MCP_WINDOW:
            ngx_mcp_repair_window(zone, (ngx_mcp_window_sh_t *) rec);
            break;

        case NGX_MCP_LEASE:
            ngx_mcp_repair_lease(zone, (ngx_mcp_lease_sh_t *) rec);
            break;
        }
    }

    for (n = 1; n < sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_SESSION) {
            ngx_mcp_repair_session(zone, (ngx_mcp_session_sh_t *) rec);
        }
    }
}


static void
ngx_mcp_repair_lease(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    ngx_mcp_zone_sh_t  *sh;

    if (ngx_mcp_repair_mark(zone, l) != NGX_OK) {
        return;
    }

    sh = zone->sh;

    sh->nleases++;
    sh->stamp = ngx_max(sh->stamp, l->changed);

    ngx_mcp_hash_insert_locked(zone, l);
    ngx_mcp_repair_push(zone, &sh->leases, l, NGX_MCP_LINKS);
    ngx_mcp_repair_push(zone, &sh->news, l,
                        offsetof(ngx_mcp_lease_sh_t, news));

    /* a claim that was not finished: the one before holds it */

    if (l->before.nonce && l->before.fence == l->holder.fence) {
        l->holder = l->before;
        l->before.nonce = 0;
    }
}


static void
ngx_mcp_repair_session(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    ngx_mcp_ref_t            ref;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_account_sh_t    *a;
    ngx_mcp_extension_sh_t  *e;

    ref = ngx_mcp_ref(zone, s);
    g = NULL;
    e = NULL;

    if (!s->ended) {
        g = ngx_mcp_repair_owner(zone, &s->rec, NGX_MCP_GROUP);

        if (s->extension && s->extension < zone->sh->fresh) {
            e = ngx_mcp_session_extension(zone, s);
        }

        if (g == NULL || e == NULL
            || e->rec.block.type != NGX_MCP_EXTENSION
            || e->rec.owner.block != ref.block || e->rec.owner.gen != ref.gen
            || ngx_mcp_repair_mark(zone, e) != NGX_OK)
        {
            ngx_log_error(NGX_LOG_ALERT, zone->log, 0,
                          "mcp session %uD is broken", ref.block);
            return;
        }
    }

    if (ngx_mcp_repair_mark(zone, s) != NGX_OK) {

        if (e) {
            ngx_mcp_repair_unmark(zone, e);
        }

        return;
    }

    ngx_memzero(&s->log.list, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&s->streams, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&s->calls, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&s->lines, sizeof(ngx_mcp_list_sh_t));

    s->log.count = 0;
    s->idle = NGX_MCP_IDLE_NOT;
    s->events = 0;
    s->bloom = 0;
    s->nstreams = 0;
    s->ngets = 0;
    s->ncalls = 0;
    s->carrier = 0;

    if (s->ended) {
        s->extension = 0;
        return;
    }

    ngx_memzero(&e->upstreams, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&e->asks, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&e->subscriptions, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&e->supplies, sizeof(ngx_mcp_list_sh_t));

    e->nasks = 0;
    e->nsubscriptions = 0;
    ngx_memzero(e->ntopics, sizeof(e->ntopics));

    a = ngx_mcp_block(zone, s->rec.account);
    ngx_mcp_list_append(zone, &a->sessions, s->extension,
                        offsetof(ngx_mcp_extension_sh_t, charged));

    ngx_mcp_repair_limited(zone, s);

    if (s->rec.flags & NGX_MCP_SESSION_OWN) {
        ngx_mcp_repair_push(zone, &g->own, e, NGX_MCP_LINKS);
        return;
    }

    g->sessions++;

    s->rec.bucket = 0;
    ngx_mcp_hash_insert_locked(zone, s);

    zone->sh->counters[NGX_MCP_COUNTER_SESSIONS_LIVE]++;
}


static void
ngx_mcp_repair_limited(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    ngx_mcp_limit_sh_t      *l;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    if (e->limit == 0) {
        return;
    }

    l = NULL;

    if (e->limit < zone->sh->fresh) {
        l = ngx_mcp_block(zone, e->limit);
    }

    if (l == NULL || l->rec.block.type != NGX_MCP_LIMIT
        || !l->rec.block.mark)
    {
        e->limit = 0;
        return;
    }

    l->count++;
    ngx_mcp_list_append(zone, &l->list, s->extension,
                        offsetof(ngx_mcp_extension_sh_t, limited));
}


static void
ngx_mcp_repair_owned(ngx_mcp_zone_t *zone)
{
    uint32_t                    n;
    ngx_mcp_topic_sh_t         *t;
    ngx_mcp_record_sh_t        *rec;
    ngx_mcp_session_sh_t       *s;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_FREE || rec->block.mark) {
            continue;
        }

        if (rec->block.type == NGX_MCP_PENDING) {
            ngx_mcp_repair_pending(zone, (ngx_mcp_pending_sh_t *) rec);
            continue;
        }

        s = ngx_mcp_repair_owner(zone, rec, NGX_MCP_SESSION);

        if (rec->block.type == NGX_MCP_LINK
            || rec->block.type == NGX_MCP_FAREWELL)
        {
            ngx_mcp_repair_link(zone, s, (ngx_mcp_link_sh_t *) rec);
            continue;
        }

        if (s == NULL) {
            continue;
        }

        if (rec->block.type == NGX_MCP_CALL) {
            ngx_mcp_repair_call(zone, s, (ngx_mcp_call_sh_t *) rec);
            continue;
        }

        if (rec->block.type == NGX_MCP_STREAM) {
            ngx_mcp_repair_stream(zone, s, (ngx_mcp_stream_sh_t *) rec);
            continue;
        }

        if (s->ended) {
            continue;
        }

        e = ngx_mcp_session_extension(zone, s);

        if (rec->block.type == NGX_MCP_ASK
            && ngx_mcp_repair_mark(zone, rec) == NGX_OK)
        {
            ngx_mcp_repair_push(zone, &e->asks, rec, NGX_MCP_LINKS);
            e->nasks++;
        }

        if (rec->block.type == NGX_MCP_SUBSCRIPTION
            && ngx_mcp_repair_mark(zone, rec) == NGX_OK)
        {
            sub = (ngx_mcp_subscription_sh_t *) rec;

            ngx_mcp_repair_push(zone, &e->subscriptions, rec, NGX_MCP_LINKS);
            e->nsubscriptions++;
            s->bloom |= ngx_mcp_bloom(sub->uri);

            t = ngx_mcp_record(zone, sub->topic, NGX_MCP_TOPIC);

            if (t && t->rec.block.mark) {
                t->subscribers++;
            }
        }

        if (rec->block.type == NGX_MCP_SUPPLY
            && ngx_mcp_repair_mark(zone, rec) == NGX_OK)
        {
            ((ngx_mcp_supply_sh_t *) rec)->count = 0;

            ngx_mcp_repair_push(zone, &e->supplies, rec, NGX_MCP_LINKS);
            ngx_mcp_hash_insert_locked(zone, rec);
        }
    }

    ngx_mcp_repair_supplies(zone);
}


static void
ngx_mcp_repair_supplies(ngx_mcp_zone_t *zone)
{
    uint32_t                    n;
    ngx_mcp_ref_t               supply;
    ngx_mcp_supply_sh_t        *u;
    ngx_mcp_record_sh_t        *rec;

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (!rec->block.mark) {
            continue;
        }

        if (rec->block.type == NGX_MCP_SUBSCRIPTION) {
            supply = ((ngx_mcp_subscription_sh_t *) rec)->supply;

        } else if (rec->block.type == NGX_MCP_CALL
                   && rec->flags & NGX_MCP_CALL_RUNNING)
        {
            supply = ((ngx_mcp_call_sh_t *) rec)->supply;

        } else {
            continue;
        }

        u = ngx_mcp_record(zone, supply, NGX_MCP_SUPPLY);

        if (u && u->rec.block.mark) {
            u->count++;
        }
    }

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_SUPPLY && rec->block.mark) {
            ngx_mcp_supply_order_locked(zone, (ngx_mcp_supply_sh_t *) rec);
        }
    }
}


static void
ngx_mcp_repair_call(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c)
{
    ngx_uint_t  running;

    running = c->task.rec.flags & NGX_MCP_CALL_RUNNING;

    if ((s->ended && !running) || ngx_mcp_repair_mark(zone, c) != NGX_OK) {
        return;
    }

    ngx_memzero(&c->log.list, sizeof(ngx_mcp_list_sh_t));
    c->log.count = 0;
    c->task.carrier = 0;

    s->line = ngx_max(s->line, c->task.line);

    if (running) {
        ngx_mcp_repair_push(zone, &s->calls, c, NGX_MCP_LINKS);
        s->ncalls++;
        zone->sh->counters[NGX_MCP_COUNTER_CALLS_RUNNING]++;

        /* whatever it waits for, it may ask again */

        if (c->waits) {
            c->waits = 0;
            c->task.why |= NGX_MCP_WAKE_LINK;
        }

        if (s->ended) {
            c->task.why |= NGX_MCP_WAKE_CLOSE;
        }

    } else {
        ngx_mcp_repair_push(zone, &s->lines, c, NGX_MCP_LINKS);
        c->task.why = 0;
    }
}


static void
ngx_mcp_repair_stream(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_stream_sh_t *st)
{
    if (ngx_mcp_repair_mark(zone, st) != NGX_OK) {
        return;
    }

    ngx_mcp_repair_push(zone, &s->streams, st, NGX_MCP_LINKS);
    s->nstreams++;

    if (st->task.line == NGX_MCP_GENERAL_LINE) {
        s->ngets++;
    }

    st->own = 0;
    st->shared = 0;
    st->task.why |= NGX_MCP_WAKE_NEWS;

    if (s->ended || st->task.rec.flags & NGX_MCP_STREAM_CLOSING) {
        st->task.why |= NGX_MCP_WAKE_CLOSE;
    }

    zone->sh->counters[NGX_MCP_COUNTER_STREAMS_OPEN]++;
    zone->sh->stamp = ngx_max(zone->sh->stamp, st->serial);
}


static void
ngx_mcp_repair_link(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_link_sh_t *l)
{
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_extension_sh_t  *e;

    if (l->rec.block.type == NGX_MCP_LINK && s && !s->ended) {

        if (ngx_mcp_repair_mark(zone, l) == NGX_OK) {
            e = ngx_mcp_session_extension(zone, s);
            ngx_mcp_repair_push(zone, &e->upstreams, l, NGX_MCP_LINKS);
        }

        return;
    }

    /* its session ended, or was about to */

    g = ngx_mcp_record(zone, l->group, NGX_MCP_GROUP);

    if (g == NULL || !g->rec.block.mark
        || l->state != NGX_MCP_LINK_MADE || l->rec.len == l->upstream_len
        || ngx_mcp_repair_mark(zone, l) != NGX_OK)
    {
        return;
    }

    l->rec.block.type = NGX_MCP_FAREWELL;
    g->farewells++;
    ngx_mcp_repair_push(zone, &zone->sh->farewells, l, NGX_MCP_LINKS);
}


static void
ngx_mcp_repair_topics(ngx_mcp_zone_t *zone)
{
    uint32_t               n;
    ngx_uint_t             other;
    ngx_mcp_group_sh_t    *g;
    ngx_mcp_topic_sh_t    *t;
    ngx_mcp_session_sh_t  *s;

    for (n = 1; n < zone->sh->fresh; n++) {
        t = ngx_mcp_block(zone, n);

        if (t->rec.block.type != NGX_MCP_TOPIC) {
            continue;
        }

        g = ngx_mcp_repair_owner(zone, &t->rec, NGX_MCP_GROUP);

        if (g == NULL || ngx_mcp_repair_mark(zone, t) != NGX_OK) {
            continue;
        }

        ngx_memzero(&t->log.list, sizeof(ngx_mcp_list_sh_t));
        ngx_memzero(t->watch, sizeof(t->watch));
        t->log.count = 0;
        t->bytes = 0;
        t->subscribers = 0;

        other = (t->rec.flags & NGX_MCP_TOPIC_OTHER) ? 1 : 0;
        g->ntopics[other]++;

        s = ngx_mcp_record(zone, t->charged, NGX_MCP_SESSION);

        if (s && s->rec.block.mark && !s->ended) {
            ngx_mcp_session_extension(zone, s)->ntopics[other]++;
        }

        ngx_mcp_repair_push(zone, &g->topics[other], t, NGX_MCP_LINKS);
        ngx_mcp_repair_push(zone, &zone->sh->topics, t,
                            offsetof(ngx_mcp_topic_sh_t, age));
        ngx_mcp_hash_insert_locked(zone, t);

        zone->sh->stamp = ngx_max(zone->sh->stamp, t->order);
    }
}


static void
ngx_mcp_repair_groups(ngx_mcp_zone_t *zone)
{
    uint32_t              n;
    ngx_mcp_limit_sh_t   *l;
    ngx_mcp_group_sh_t   *g;
    ngx_mcp_record_sh_t  *rec;

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (!rec->block.mark) {
            continue;
        }

        if (rec->block.type == NGX_MCP_GROUP) {
            g = (ngx_mcp_group_sh_t *) rec;

            if (g->sessions == 0) {
                g->unsaid = 0;

                if (g->farewells == 0 && g->own.head == 0
                    && g->ntopics[0] == 0 && g->ntopics[1] == 0)
                {
                    ngx_mcp_repair_unmark(zone, g);
                    continue;
                }
            }

            if (g->unsaid) {
                ngx_mcp_repair_push(zone, &zone->sh->unsaid, g,
                                    offsetof(ngx_mcp_group_sh_t, announce));
            }

            ngx_mcp_repair_push(zone, &zone->sh->groups, g, NGX_MCP_LINKS);
            ngx_mcp_hash_insert_locked(zone, g);
        }

        if (rec->block.type == NGX_MCP_LIMIT) {
            l = (ngx_mcp_limit_sh_t *) rec;

            if (l->count == 0) {
                ngx_mcp_repair_unmark(zone, l);
                continue;
            }

            ngx_mcp_hash_insert_locked(zone, l);
        }
    }

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type != NGX_MCP_LOSSES) {
            continue;
        }

        g = ngx_mcp_repair_owner(zone, rec, NGX_MCP_GROUP);

        if (g && ngx_mcp_repair_mark(zone, rec) == NGX_OK) {
            g->losses = n;
        }
    }
}


static void
ngx_mcp_repair_events(ngx_mcp_zone_t *zone)
{
    uint32_t               n;
    ngx_mcp_log_sh_t      *log;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_zone_sh_t     *sh;
    ngx_mcp_group_sh_t    *g;
    ngx_mcp_event_sh_t    *e;
    ngx_mcp_topic_sh_t    *t;
    ngx_mcp_session_sh_t  *s;

    sh = zone->sh;

    for (n = 1; n < sh->fresh; n++) {
        e = ngx_mcp_block(zone, n);

        if (e->rec.block.type != NGX_MCP_EVENT || e->rec.block.mark) {
            continue;
        }

        log = NULL;
        s = ngx_mcp_repair_owner(zone, &e->rec, NGX_MCP_SESSION);

        if (s) {
            log = &s->log;
        }

        c = ngx_mcp_repair_owner(zone, &e->rec, NGX_MCP_CALL);

        if (c) {
            s = ngx_mcp_block(zone, c->task.rec.owner.block);
            log = &c->log;

            if (e->rec.flags & NGX_MCP_EVENT_RESPONSE) {
                c->task.rec.flags |= NGX_MCP_CALL_ANSWERED;
            }
        }

        g = ngx_mcp_repair_owner(zone, &e->rec, NGX_MCP_GROUP);

        if (g) {
            log = &g->log;
        }

        t = ngx_mcp_repair_owner(zone, &e->rec, NGX_MCP_TOPIC);

        if (t) {
            log = &t->log;
        }

        if (log == NULL || (s && s->ended)
            || ngx_mcp_repair_mark(zone, e) != NGX_OK)
        {
            continue;
        }

        ngx_mcp_repair_push(zone, &log->list, e, NGX_MCP_LINKS);
        ngx_mcp_repair_push(zone, ngx_mcp_account_events(zone, e), e,
                            offsetof(ngx_mcp_event_sh_t, age));
        log->count++;

        if (s) {
            s->events++;
        }

        if (t) {
            t->bytes += e->rec.len;
        }

        sh->stamp = ngx_max(sh->stamp, e->stamp);
    }
}


/* what would have been freed next */

static void
ngx_mcp_repair_leftovers(ngx_mcp_zone_t *zone)
{
    uint32_t               n;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_zone_sh_t     *sh;
    ngx_mcp_event_sh_t    *e;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_session_sh_t  *s;

    sh = zone->sh;

    for (n = 1; n < sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (!rec->block.mark) {
            continue;
        }

        if (rec->block.type == NGX_MCP_SESSION) {
            s = (ngx_mcp_session_sh_t *) rec;

            if (s->ended && s->nstreams == 0 && s->ncalls == 0) {
                ngx_mcp_repair_unmark(zone, s);
            }
        }

        if (rec->block.type != NGX_MCP_CALL
            || rec->flags & NGX_MCP_CALL_RUNNING)
        {
            continue;
        }

        c = (ngx_mcp_call_sh_t *) rec;

        if (c->task.carrier
            || (c->log.count && rec->flags & NGX_MCP_CALL_STREAMED))
        {
            continue;
        }

        s = ngx_mcp_block(zone, rec->owner.block);

        while (c->log.list.head) {
            e = ngx_mcp_block(zone, c->log.list.head);

            ngx_mcp_list_remove(zone, &c->log.list, c->log.list.head,
                                NGX_MCP_LINKS);
            ngx_mcp_list_remove(zone, ngx_mcp_account_events(zone, e),
                                ngx_mcp_number(zone, e),
                                offsetof(ngx_mcp_event_sh_t, age));
            s->events--;
            ngx_mcp_repair_unmark(zone, e);
        }

        ngx_mcp_list_remove(zone, &s->lines, n, NGX_MCP_LINKS);
        ngx_mcp_repair_unmark(zone, c);
    }
}


/* sums the charges; accounts without any go, tenants' last */

static void
ngx_mcp_repair_accounts(ngx_mcp_zone_t *zone)
{
    uint32_t               n;
    ngx_uint_t             pass;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_account_sh_t  *a;

    for (n = 1; n < zone->sh->fresh; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.mark && rec->block.type != NGX_MCP_FREE
            && rec->block.type != NGX_MCP_ACCOUNT)
        {
            ngx_mcp_account_charge_locked(zone, rec->account, rec->block.type,
                                          rec->block.blocks);
        }
    }

    for (pass = 0; pass < 2; pass++) {

        for (n = 1; n < zone->sh->fresh; n++) {
            a = ngx_mcp_block(zone, n);

            if (!a->rec.block.mark || a->rec.block.type != NGX_MCP_ACCOUNT
                || (a->rec.account == 0) != (pass == 1))
            {
                continue;
            }

            if (a->used == 0) {
                ngx_mcp_repair_unmark(zone, a);
                continue;
            }

            ngx_mcp_hash_insert_locked(zone, a);
            ngx_mcp_account_charge_locked(zone, a->rec.account,
                                          NGX_MCP_ACCOUNT, 1);

            ngx_mcp_repair_sort(zone, &a->events,
                                offsetof(ngx_mcp_event_sh_t, age),
                                ngx_mcp_order_stamp);
            ngx_mcp_repair_sort(zone, &a->common,
                                offsetof(ngx_mcp_event_sh_t, age),
                                ngx_mcp_order_stamp);
        }
    }
}


static void
ngx_mcp_repair_workers(ngx_mcp_zone_t *zone)
{
    uint32_t              n;
    ngx_uint_t            i;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_task_sh_t    *t;
    ngx_mcp_block_sh_t   *block;
    ngx_mcp_worker_sh_t  *w;

    sh = zone->sh;

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_place(zone, i);

        ngx_memzero(&w->pending, sizeof(ngx_mcp_list_sh_t));

        w->nring = 0;
        w->overflow = 1;

        if (w->state == NGX_MCP_WORKER_FREE) {
            w->staged = 0;
            continue;
        }

        if (w->state == NGX_MCP_WORKER_LIVE) {
            w->rung = 0;
            w->bits |= NGX_MCP_RING_KNOWLEDGE|NGX_MCP_RING_FAREWELL
                       |NGX_MCP_RING_SUPPLIES|NGX_MCP_RING_LISTS
                       |NGX_MCP_RING_LEASES;
            w->leases = 0;
            ngx_mcp_worker_ring_locked(zone, i);
        }

        if (w->staged == 0) {
            continue;
        }

        block = ngx_mcp_block(zone, w->staged);

        if (block->mark) {

            /* the record had been committed */

            w->staged = 0;
            continue;
        }

        for (n = w->staged; n && n < sh->fresh; n = block->chain) {
            block = ngx_mcp_block(zone, n);

            if (block->mark) {
                break;
            }

            /* a record that was committed for an owner that ended */

            block->type = NGX_MCP_FREE;
            block->mark = 1;
        }
    }

    for (n = 1; n < sh->fresh; n++) {
        t = ngx_mcp_block(zone, n);

        if (!t->rec.block.mark
            || (t->rec.block.type != NGX_MCP_STREAM
                && t->rec.block.type != NGX_MCP_CALL)
            || t->why == 0 || t->rec.worker >= sh->places)
        {
            continue;
        }

        w = ngx_mcp_place(zone, t->rec.worker);

        ngx_mcp_list_append(zone, &w->pending, n,
                            offsetof(ngx_mcp_task_sh_t, pending));
    }
}
