
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "env.h"


/* the records that were reached; for one check at a time */

static u_char      *seen;
static ngx_uint_t   errors;
static ngx_uint_t   topics;
static ngx_uint_t   charged;              /* topics charged to live sessions */
static ngx_uint_t   counted;              /* topics that these count */
static ngx_uint_t   used[NGX_MCP_TYPE_MAX];


static void bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));


static void
bad(const char *fmt, ...)
{
    va_list  args;

    if (errors++ > 20) {
        return;
    }

    fprintf(stderr, "# ");
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n");
}


static void
reach(ngx_mcp_zone_t *zone, uint32_t n, ngx_uint_t type)
{
    uint32_t              last;
    ngx_uint_t            i, blocks;
    ngx_mcp_block_sh_t   *b;
    ngx_mcp_record_sh_t  *rec;

    rec = ngx_mcp_block(zone, n);

    if (rec->block.type != type) {
        bad("block %u has type %u, not %u", n, rec->block.type,
            (unsigned) type);
        return;
    }

    blocks = ngx_mcp_text_blocks(zone, type, rec->len);

    if (blocks != rec->block.blocks) {
        bad("record %u type %u has %u blocks, needs %u", n, (unsigned) type,
            rec->block.blocks, (unsigned) blocks);
    }

    last = n;

    for (i = 0; i < blocks; i++) {

        if (n == 0 || n >= zone->sh->watermark) {
            bad("chain of %u leaves the zone", n);
            return;
        }

        b = ngx_mcp_block(zone, n);

        if (i && b->type != NGX_MCP_FREE) {
            bad("data block %u has type %u", n, b->type);
        }

        if (seen[n]++) {
            bad("block %u is reached twice", n);
        }

        last = n;
        n = b->chain;
    }

    used[type] += blocks;

    if (rec->block.last != last) {
        bad("the last block of a record of type %u is wrong",
            (unsigned) type);
    }
}


/* returns the number of members, which must be the same in both directions */

static ngx_uint_t
length(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, size_t offset,
    const char *name)
{
    uint32_t    n, prev;
    ngx_uint_t  count;

    prev = 0;
    count = 0;

    for (n = list->head; n; n = ngx_mcp_links(zone, n, offset)->next) {

        if (n >= zone->sh->watermark || ngx_mcp_links(zone, n,
                                                      offset)->prev != prev
            || count > zone->sh->blocks)
        {
            bad("list \"%s\" is broken", name);
            return count;
        }

        prev = n;
        count++;
    }

    if (list->tail != prev) {
        bad("tail of list \"%s\" is wrong", name);
    }

    return count;
}


static ngx_uint_t
log_check(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log, void *owner)
{
    uint32_t             n;
    uint64_t             pos, stamp;
    ngx_mcp_ref_t        ref;
    ngx_mcp_event_sh_t  *e;

    pos = 0;
    stamp = 0;
    ref = ngx_mcp_ref(zone, owner);

    if (length(zone, &log->list, NGX_MCP_LINKS, "log") != log->count) {
        bad("count of a log is wrong");
    }

    for (n = log->list.head; n; n = e->rec.links.next) {
        e = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_EVENT);

        if (e->rec.owner.block != ref.block || e->rec.owner.gen != ref.gen) {
            bad("event %u has another owner", n);
        }

        if (e->pos <= pos || e->stamp <= stamp || e->pos > log->last
            || e->stamp > zone->sh->stamp)
        {
            bad("event %u is out of order", n);
        }

        pos = e->pos;
        stamp = e->stamp;
    }

    return log->count;
}


static uint32_t
active_stream_of(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    uint32_t channel)
{
    uint32_t              n;
    ngx_mcp_stream_sh_t  *st;

    for (n = s->streams.head; n; n = st->task.rec.links.next) {
        st = ngx_mcp_block(zone, n);

        if (st->channel == channel
            && !(st->task.rec.flags & NGX_MCP_STREAM_CLOSING))
        {
            return n;
        }
    }

    return 0;
}


static ngx_uint_t
sharers(ngx_mcp_zone_t *zone, ngx_mcp_interest_sh_t *in)
{
    uint32_t                    n;
    ngx_uint_t                  count;
    ngx_mcp_ref_t               ref;
    ngx_mcp_call_sh_t          *c;
    ngx_mcp_subscription_sh_t  *sub;

    count = 0;
    ref = ngx_mcp_ref(zone, in);

    for (n = 1; n < zone->sh->watermark; n++) {
        sub = ngx_mcp_block(zone, n);
        c = ngx_mcp_block(zone, n);

        count += (sub->rec.block.type == NGX_MCP_SUBSCRIPTION
                  && sub->interest.block == ref.block
                  && sub->interest.gen == ref.gen);

        count += (c->task.rec.block.type == NGX_MCP_CALL
                  && c->task.rec.flags & NGX_MCP_CALL_RUNNING
                  && c->interest.block == ref.block
                  && c->interest.gen == ref.gen);
    }

    return count;
}


/*
 * Counts the shared upstream sessions, and calls without session, of a limit.
 */

static ngx_uint_t
limited(ngx_mcp_zone_t *zone, uint32_t limit)
{
    uint32_t                        n;
    ngx_uint_t                      count;
    ngx_mcp_call_sh_t              *c;
    ngx_mcp_upstream_session_sh_t  *us;

    count = 0;

    for (n = zone->root->shared.head; n; n = us->rec.links.next) {
        us = ngx_mcp_block(zone, n);
        count += (us->limit == limit);
    }

    for (n = 1; n < zone->sh->watermark; n++) {
        c = ngx_mcp_block(zone, n);

        if (c->task.rec.block.type == NGX_MCP_CALL && c->limit == limit) {

            if (c->task.rec.owner.block == 0) {
                reach(zone, n, NGX_MCP_CALL);
            }

            count++;
        }
    }

    return count;
}


/* checks the topics that are charged to a session */

static void
charges_check(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_extension_sh_t *e)
{
    uint32_t             k;
    ngx_uint_t           i, n;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    g = ngx_mcp_session_group(zone, s);

    for (i = 0; i < 2; i++) {
        n = 0;

        for (k = e->ntopics[i] ? g->topics[i].head : 0; k;
             k = t->rec.links.next)
        {
            t = ngx_mcp_block(zone, k);
            n += (ngx_mcp_session_locked(zone, t->charged) == s);
        }

        if (n != e->ntopics[i]) {
            bad("a session has %u topics, counts %u", (unsigned) n,
                e->ntopics[i]);
        }

        counted += n;
    }
}


static void
session_check(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t                    n;
    uint64_t                    serial;
    ngx_uint_t                  count, gets, waiting;
    ngx_mcp_call_sh_t          *c;
    ngx_mcp_stream_sh_t        *st;
    ngx_mcp_record_sh_t        *rec;
    ngx_mcp_extension_sh_t     *e;
    ngx_mcp_subscription_sh_t  *sub;

    reach(zone, ngx_mcp_number(zone, s), NGX_MCP_SESSION);

    count = log_check(zone, &s->log, s);
    waiting = 0;

    if (length(zone, &s->calls, NGX_MCP_LINKS, "calls") != s->ncalls) {
        bad("count of calls is wrong");
    }

    for (n = s->calls.head; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_CALL);
        count += log_check(zone, &c->log, c);
        waiting += ngx_min(c->log.count, NGX_MCP_CHANNEL_WAITING);

        if (!(c->task.rec.flags & NGX_MCP_CALL_RUNNING)) {
            bad("call %u does not run", n);
        }

        if (!s->ended && c->active_stream != active_stream_of(zone, s,
                                                              c->channel))
        {
            bad("carrier of call %u is wrong", n);
        }
    }

    (void) length(zone, &s->finished, NGX_MCP_LINKS, "lines");

    for (n = s->finished.head; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_CALL);
        count += log_check(zone, &c->log, c);
        waiting += ngx_min(c->log.count, NGX_MCP_CHANNEL_WAITING);

        if (c->task.rec.flags & NGX_MCP_CALL_RUNNING || s->ended
            || (c->active_stream == 0 && c->log.count == 0))
        {
            bad("line of call %u should not be kept", n);
        }

        if (c->active_stream != active_stream_of(zone, s, c->channel)) {
            bad("carrier of line %u is wrong", n);
        }
    }

    if (count != s->events || (s->ended && count)
        || (!s->ended && s->events > s->event_max + waiting))
    {
        bad("count of events of a session is wrong: %u, %u",
            (unsigned) count, s->events);
    }

    if (length(zone, &s->streams, NGX_MCP_LINKS, "streams") != s->nstreams) {
        bad("count of streams is wrong");
    }

    gets = 0;
    serial = (uint64_t) -1;

    for (n = s->streams.head; n; n = st->task.rec.links.next) {
        st = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_STREAM);

        if (st->serial >= serial) {
            bad("streams are out of order");
        }

        serial = st->serial;
        gets += (st->channel == 0);
    }

    if (gets != s->ngets
        || s->subscriber.active_stream != active_stream_of(zone, s, 0))
    {
        bad("count or carrier of general streams is wrong");
    }

    if (s->idle == NGX_MCP_IDLE_NONE
        ? !(s->nstreams || s->ncalls || s->ended) : (s->nstreams || s->ended))
    {
        bad("a session is not where it should be when idle");
    }

    if (s->ended) {
        if (s->nstreams == 0 && s->ncalls == 0) {
            bad("session %u should be gone", ngx_mcp_number(zone, s));
        }

        return;
    }

    e = ngx_mcp_session_extension(zone, s);
    reach(zone, s->extension, NGX_MCP_EXTENSION);

    (void) length(zone, &e->upstreams, NGX_MCP_LINKS, "upstreams");

    for (n = e->upstreams.head; n; n = rec->links.next) {
        rec = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_UPSTREAM_SESSION);
    }

    if (length(zone, &e->server_requests, NGX_MCP_LINKS, "server requests")
        != e->nserver_requests) {
        bad("count of server requests is wrong");
    }

    for (n = e->server_requests.head; n; n = rec->links.next) {
        rec = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_SERVER_REQUEST);
    }

    if (length(zone, &s->subscriber.subscriptions, NGX_MCP_LINKS,
               "subscriptions")
        != s->subscriber.nsubscriptions)
    {
        bad("count of subscriptions is wrong");
    }

    charges_check(zone, s, e);

    for (n = s->subscriber.subscriptions.head; n; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_SUBSCRIPTION);

        if (ngx_mcp_subscriber_find_locked(zone, &s->subscriber, sub->uri)
            == NULL)
        {
            bad("a subscription is not found");
        }
    }
}


static void
shared_check(ngx_mcp_zone_t *zone, ngx_mcp_upstream_session_sh_t *us)
{
    uint32_t                n;
    ngx_mcp_interest_sh_t  *in;

    reach(zone, ngx_mcp_number(zone, us), NGX_MCP_UPSTREAM_SESSION);

    if (us->limit
        && ((ngx_mcp_limit_sh_t *) ngx_mcp_block(zone, us->limit))->count == 0)
    {
        bad("a shared upstream session is not counted");
    }

    (void) length(zone, &us->interests, NGX_MCP_LINKS, "interests");

    for (n = us->interests.head; n; n = in->rec.links.next) {
        in = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_INTEREST);

        if (in->count != sharers(zone, in)) {
            bad("interest %u is shared by %u, not %u", n,
                (unsigned) sharers(zone, in), in->count);
        }
    }
}


static void
pending_check(ngx_mcp_zone_t *zone)
{
    uint32_t              n;
    ngx_uint_t            i, count, want, wants;
    ngx_mcp_task_sh_t    *t;
    ngx_mcp_block_sh_t   *b;
    ngx_mcp_worker_sh_t  *w;

    count = 0;
    want = 0;
    wants = 0;

    for (i = 0; i < zone->sh->top; i++) {
        w = ngx_mcp_slot(zone, i);
        wants += w->nfirst;
        count += length(zone, &w->pending,
                        offsetof(ngx_mcp_task_sh_t, pending), "pending");

        for (n = w->staged; n; n = b->chain) {
            b = ngx_mcp_block(zone, n);

            if (n >= zone->sh->watermark || b->type != NGX_MCP_FREE
                || seen[n]++) {
                bad("staged block %u is somewhere else", n);
                break;
            }
        }
    }

    for (n = 1; n < zone->sh->watermark; n++) {
        t = ngx_mcp_block(zone, n);

        if ((t->rec.block.type == NGX_MCP_CALL
             || t->rec.block.type == NGX_MCP_STREAM)
            && t->reasons && t->rec.worker < zone->sh->slots)
        {
            want++;
            wants -= (t->reasons & NGX_MCP_WAKE_WANTS) ? 1 : 0;
        }
    }

    if (wants) {
        bad("%d tasks want something new, which is not so", (int) wants);
    }

    if (count != want) {
        bad("%u tasks are pending, %u should", (unsigned) count,
            (unsigned) want);
    }
}


static void
topic_check(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t)
{
    uint32_t                    n;
    ngx_uint_t                  bytes, subscribers;
    ngx_mcp_ref_t               ref;
    ngx_mcp_event_sh_t         *e;
    ngx_mcp_group_sh_t         *g;
    ngx_mcp_subscription_sh_t  *sub;

    reach(zone, ngx_mcp_number(zone, t), NGX_MCP_TOPIC);
    (void) log_check(zone, &t->log, t);

    g = ngx_mcp_block(zone, t->rec.owner.block);

    if (g->rec.block.type != NGX_MCP_GROUP
        || g->rec.block.gen != t->rec.owner.gen)
    {
        bad("a topic has no group");
    }

    bytes = 0;

    for (n = t->log.list.head; n; n = e->rec.links.next) {
        e = ngx_mcp_block(zone, n);
        bytes += e->rec.len;
    }

    if (bytes != t->bytes || bytes > NGX_MCP_TOPIC_BYTES
        || t->log.count > NGX_MCP_TOPIC_EVENTS)
    {
        bad("a topic keeps too much, or counts wrong: %u, %u",
            (unsigned) bytes, t->bytes);
    }

    ref = ngx_mcp_ref(zone, t);
    subscribers = 0;

    for (n = 1; n < zone->sh->watermark; n++) {
        sub = ngx_mcp_block(zone, n);

        if (sub->rec.block.type == NGX_MCP_SUBSCRIPTION
            && sub->topic.block == ref.block && sub->topic.gen == ref.gen)
        {
            subscribers++;
        }
    }

    charged += (ngx_mcp_session_locked(zone, t->charged) != NULL);

    if (subscribers != t->subscribers) {
        bad("a topic has %u subscribers, counts %u", (unsigned) subscribers,
            t->subscribers);
    }
}


static void
audience_check(ngx_mcp_zone_t *zone, ngx_mcp_audience_sh_t *a)
{
    uint32_t                 m, n, members;
    ngx_uint_t               i;
    ngx_mcp_part_sh_t       *p;
    ngx_mcp_content_sh_t    *c;
    ngx_mcp_extension_sh_t  *e;

    reach(zone, ngx_mcp_number(zone, a), NGX_MCP_AUDIENCE);

    (void) length(zone, &a->parts, NGX_MCP_LINKS, "parts of an audience");

    for (m = a->parts.head; m; m = p->rec.links.next) {
        reach(zone, m, NGX_MCP_PART);
        p = ngx_mcp_block(zone, m);

        if (p->rec.owner.block != ngx_mcp_number(zone, a)
            || p->rec.owner.gen != a->rec.block.gen)
        {
            bad("part %u is of another audience", m);
        }

        for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
            n = p->lists[i].content;

            if (n == 0) {
                continue;
            }

            reach(zone, n, NGX_MCP_LIST);
            c = ngx_mcp_block(zone, n);

            if (c->rec.flags != i || a->versions[i] > zone->sh->stamp
                || c->rec.owner.block != m
                || c->rec.owner.gen != p->rec.block.gen)
            {
                bad("list %u is in the wrong place", n);
            }
        }
    }

    members = 0;

    for (n = 1; n < zone->sh->watermark; n++) {
        e = ngx_mcp_block(zone, n);

        if (e->rec.block.type == NGX_MCP_EXTENSION
            && ngx_mcp_record(zone, e->member_of, NGX_MCP_AUDIENCE) == a)
        {
            members++;
        }
    }

    if (members != a->members) {
        bad("an audience has %u members, not %u", members, a->members);
    }
}


static void
topics_check(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    uint32_t             n;
    uint64_t             serial;
    ngx_uint_t           i;
    ngx_mcp_topic_sh_t  *t;

    for (i = 0; i < 2; i++) {

        if (length(zone, &g->topics[i], NGX_MCP_LINKS, "topics of a group")
            != g->ntopics[i])
        {
            bad("count of topics is wrong");
        }

        serial = 0;

        for (n = g->topics[i].head; n; n = t->rec.links.next) {
            t = ngx_mcp_block(zone, n);

            if (t->serial <= serial
                || ((t->rec.flags & NGX_MCP_TOPIC_OTHER) ? 1u : 0u) != i)
            {
                bad("a topic is in the wrong place");
            }

            serial = t->serial;
        }
    }
}


static void
lease_check(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l)
{
    reach(zone, ngx_mcp_number(zone, l), NGX_MCP_LEASE);

    if (l->id_len > NGX_MCP_LEASE_ID_MAX
        || l->note_len > NGX_MCP_LEASE_NOTE_MAX
        || l->rec.len != (uint32_t) NGX_MCP_LEASE_ID_MAX + l->key_len
                         + NGX_MCP_LEASE_NOTE_MAX)
    {
        bad("the texts of a lease are wrong");
    }

    if (l->previous.nonce && l->previous.fence >= l->holder.fence) {
        bad("the one before in a lease is not before");
    }
}


static void
audiences_check(ngx_mcp_zone_t *zone)
{
    uint32_t                n;
    uint64_t                number;
    ngx_uint_t              count;
    ngx_mcp_audience_sh_t  *a;

    number = 0;

    for (n = zone->root->audiences.head; n; n = a->rec.links.next) {
        a = ngx_mcp_block(zone, n);

        if (a->number <= number || a->number > zone->root->numbers) {
            bad("audiences are out of order");
        }

        number = a->number;
    }

    count = length(zone, &zone->root->audiences, NGX_MCP_LINKS, "audiences");

    for (n = 1; n < zone->sh->watermark; n++) {
        a = ngx_mcp_block(zone, n);
        count -= (a->rec.block.type == NGX_MCP_AUDIENCE);
    }

    if (count) {
        bad("audiences are not all in the list");
    }
}


static void
items_check(ngx_mcp_zone_t *zone)
{
    uint32_t            n;
    uint64_t            deadline;
    ngx_uint_t          i, items;
    ngx_mcp_item_sh_t  *it;

    items = 0;

    for (n = 1; n < zone->sh->watermark; n++) {
        it = ngx_mcp_block(zone, n);
        items += (it->rec.block.type == NGX_MCP_ITEM);
    }

    for (i = 0; i < NGX_MCP_COALESCING_CLASSES; i++) {
        items -= length(zone, &zone->root->coalescing[i], NGX_MCP_LINKS,
                        "windows");
        deadline = 0;

        for (n = zone->root->coalescing[i].head; n; n = it->rec.links.next) {
            it = ngx_mcp_block(zone, n);

            if (it->class != i || it->deadline < deadline) {
                bad("windows are out of order");
            }

            deadline = it->deadline;
        }
    }

    items -= length(zone, &zone->root->items, NGX_MCP_LINKS, "items");

    for (n = zone->root->items.head; n; n = it->rec.links.next) {
        it = ngx_mcp_block(zone, n);

        reach(zone, n, NGX_MCP_ITEM);

        if (it->class != NGX_MCP_COALESCING_NONE) {
            bad("an item is a window");
        }
    }

    if (items) {
        bad("items are not all in lists");
    }
}


static void
leases_check(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    uint64_t             last;
    ngx_mcp_lease_sh_t  *l;

    if (length(zone, &zone->sh->leases, NGX_MCP_LINKS, "leases")
        != zone->sh->nleases
        || length(zone, &zone->sh->news, offsetof(ngx_mcp_lease_sh_t, news),
                  "news of leases")
           != zone->sh->nleases)
    {
        bad("leases are not all in the lists");
    }

    last = 0;

    for (n = zone->sh->leases.head; n; n = l->rec.links.next) {
        l = ngx_mcp_block(zone, n);

        if (l->serial <= last || l->rec.block.type != NGX_MCP_LEASE) {
            bad("leases are out of order");
        }

        last = l->serial;
    }

    last = 0;

    for (n = zone->sh->news.head; n; n = l->news.next) {
        l = ngx_mcp_block(zone, n);

        if (l->changed <= last || l->changed > zone->sh->stamp) {
            bad("news of leases are out of order");
        }

        last = l->changed;
    }
}


/*
 * Checks the sum of the records that an account pays for, also by way of
 * another account.
 */

static void
account_check(ngx_mcp_zone_t *zone, ngx_mcp_account_sh_t *a)
{
    uint32_t              n, account, number;
    uint64_t              stamp;
    ngx_uint_t            charged, kept, extensions, events;
    ngx_mcp_event_sh_t   *e;
    ngx_mcp_record_sh_t  *rec;

    number = ngx_mcp_number(zone, a);
    charged = kept = extensions = events = 0;

    reach(zone, number, NGX_MCP_ACCOUNT);

    for (n = 1; n < zone->sh->watermark; n++) {
        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_FREE) {
            continue;
        }

        for (account = rec->account; account; /* void */ ) {

            if (account == number) {
                charged += rec->block.blocks;
                kept += rec->block.type == NGX_MCP_EVENT ? rec->block.blocks
                                                         : 0;
                break;
            }

            account = ((ngx_mcp_record_sh_t *) ngx_mcp_block(zone, account))
                      ->account;
        }

        if (rec->account == number) {
            extensions += (rec->block.type == NGX_MCP_EXTENSION);
            events += (rec->block.type == NGX_MCP_EVENT);
        }
    }

    if (charged != a->used || kept != a->event_blocks || charged == 0) {
        bad("account %u holds %u blocks, %u of events, counts %u, %u", number,
            (unsigned) charged, (unsigned) kept, a->used, a->event_blocks);
    }

    if (extensions != length(zone, &a->sessions,
                             offsetof(ngx_mcp_extension_sh_t, charged),
                             "sessions of an account")
        || events != length(zone, &a->events,
                            offsetof(ngx_mcp_event_sh_t, age),
                            "events of an account")
                     + length(zone, &a->common,
                              offsetof(ngx_mcp_event_sh_t, age),
                              "common events of an account"))
    {
        bad("lists of account %u are not complete", number);
    }

    stamp = 0;

    for (n = a->common.head; n; n = e->age.next) {
        e = ngx_mcp_block(zone, n);

        if (e->stamp <= stamp || e->rec.block.type != NGX_MCP_EVENT) {
            bad("common events are not in the order of their age");
            break;
        }

        stamp = e->stamp;
    }
}


static void
hash_check(ngx_mcp_zone_t *zone)
{
    uint32_t                 i, n;
    ngx_uint_t               steps;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_limit_sh_t      *l;
    ngx_mcp_record_sh_t     *rec;
    ngx_mcp_session_sh_t    *s;

    for (i = 0; i <= zone->sh->mask; i++) {
        steps = 0;

        for (n = zone->sh->buckets[i]; n; n = rec->bucket) {
            rec = ngx_mcp_block(zone, n);

            if (n >= zone->sh->watermark || steps++ > zone->sh->blocks
                || (rec->hash & zone->sh->mask) != i)
            {
                bad("bucket %u is broken", i);
                break;
            }

            switch (rec->block.type) {

            case NGX_MCP_SESSION:
                s = (ngx_mcp_session_sh_t *) rec;

                if (s->ended) {
                    bad("an ended session can be found");
                    break;
                }

                session_check(zone, s);
                break;

            case NGX_MCP_ACCOUNT:
                account_check(zone, (ngx_mcp_account_sh_t *) rec);
                break;

            case NGX_MCP_GROUP:
                reach(zone, n, NGX_MCP_GROUP);
                g = (ngx_mcp_group_sh_t *) rec;
                reach(zone, g->losses, NGX_MCP_LOSSES);
                (void) log_check(zone, &g->log, g);
                topics_check(zone, g);
                break;

            case NGX_MCP_ENDPOINT:
                reach(zone, n, NGX_MCP_ENDPOINT);
                g = (ngx_mcp_group_sh_t *) rec;
                reach(zone, g->losses, NGX_MCP_LOSSES);
                (void) log_check(zone, &g->log, g);
                break;

            case NGX_MCP_TOPIC:
                topic_check(zone, (ngx_mcp_topic_sh_t *) rec);
                topics++;
                break;

            case NGX_MCP_LIMIT:
                reach(zone, n, NGX_MCP_LIMIT);
                l = (ngx_mcp_limit_sh_t *) rec;

                if (l->count == 0
                    || l->count
                       != length(zone, &l->list,
                                 offsetof(ngx_mcp_extension_sh_t, limited),
                                 "limited")
                          + limited(zone, n))
                {
                    bad("count of a limit is wrong");
                }

                break;

            case NGX_MCP_PROFILE:
                reach(zone, n, NGX_MCP_PROFILE);
                break;

            case NGX_MCP_LEASE:
                lease_check(zone, (ngx_mcp_lease_sh_t *) rec);
                break;

            case NGX_MCP_ITEM:
                reach(zone, n, NGX_MCP_ITEM);
                break;

            case NGX_MCP_INTEREST:
            case NGX_MCP_SUBSCRIPTION:
                break;

            case NGX_MCP_UPSTREAM_SESSION:
                shared_check(zone, (ngx_mcp_upstream_session_sh_t *) rec);
                break;

            case NGX_MCP_AUDIENCE:
                audience_check(zone, (ngx_mcp_audience_sh_t *) rec);
                break;

            default:
                bad("type %u is in the hash table", rec->block.type);
                break;
            }
        }
    }
}


static void
counts_check(ngx_mcp_zone_t *zone)
{
    uint32_t                        n, *sessions, *deletes, *shared, *members;
    uint32_t                       *gets;
    ngx_int_t                       live, streams, calls;
    ngx_uint_t                      i, idle, total, groups, endpoints;
    ngx_mcp_zone_sh_t              *sh;
    ngx_mcp_group_sh_t             *g;
    ngx_mcp_record_sh_t            *rec;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_upstream_session_sh_t  *us;

    sh = zone->sh;
    live = streams = calls = 0;
    idle = total = groups = endpoints = 0;

    sessions = calloc(sh->watermark, sizeof(uint32_t));
    deletes = calloc(sh->watermark, sizeof(uint32_t));
    shared = calloc(sh->watermark, sizeof(uint32_t));
    members = calloc(sh->watermark, sizeof(uint32_t));
    gets = calloc(sh->watermark, sizeof(uint32_t));

    for (n = 1; n < sh->watermark; n++) {
        rec = ngx_mcp_block(zone, n);

        switch (rec->block.type) {

        case NGX_MCP_SESSION:
            s = (ngx_mcp_session_sh_t *) rec;

            if (s->ended) {
                session_check(zone, s);
                break;
            }

            idle += (s->idle != NGX_MCP_IDLE_NONE);

            if (s->exclusive) {
                shared[rec->owner.block]++;
                break;
            }

            live++;
            sessions[rec->owner.block]++;
            gets[rec->owner.block] += (s->ngets && !s->subscriber.listens);
            break;

        case NGX_MCP_UPSTREAM_SESSION:
            us = (ngx_mcp_upstream_session_sh_t *) rec;

            if (rec->owner.block == us->group.block) {
                shared[us->group.block]++;
                total++;
            }

            break;

        case NGX_MCP_PENDING_DELETE:
            deletes[((ngx_mcp_upstream_session_sh_t *) rec)->group.block]++;
            break;

        case NGX_MCP_STREAM:

            /* the general stream of an exclusive session is not counted */

            s = ngx_mcp_block(zone, rec->owner.block);
            streams += !(s->exclusive
                         && ((ngx_mcp_stream_sh_t *) rec)->channel == 0);
            break;

        case NGX_MCP_CALL:
            calls += (rec->flags & NGX_MCP_CALL_RUNNING) ? 1 : 0;
            break;
        }
    }

    for (n = 1; n < sh->watermark; n++) {
        g = ngx_mcp_block(zone, n);

        if (g->rec.block.type != NGX_MCP_GROUP) {
            continue;
        }

        groups++;

        if (g->sessions != sessions[n]
            || g->pending_deletes != deletes[n]
            || g->shared != shared[n] || g->gets != gets[n])
        {
            bad("counts of group %u are wrong: %u sessions, %u", n,
                g->sessions, sessions[n]);
        }

        members[g->endpoint]++;
        sessions[g->endpoint] += g->sessions;
    }

    for (n = 1; n < sh->watermark; n++) {
        g = ngx_mcp_block(zone, n);

        if (g->rec.block.type == NGX_MCP_ENDPOINT) {
            endpoints++;

            if (g->sessions != sessions[n] || g->groups != members[n]) {
                bad("counts of endpoint %u are wrong: %u sessions, %u; "
                    "%u groups, %u", n, g->sessions, sessions[n], g->groups,
                    members[n]);
            }
        }
    }

    if (endpoints != length(zone, &zone->root->endpoints, NGX_MCP_LINKS,
                            "endpoints"))
    {
        bad("endpoints are not all in the list");
    }

    free(sessions);
    free(deletes);
    free(shared);
    free(members);
    free(gets);

    if (total != length(zone, &zone->root->shared, NGX_MCP_LINKS, "shared")) {
        bad("shared upstream sessions are not all in the list");
    }

    if (live != ngx_mcp_counter(zone, NGX_MCP_COUNTER_SESSIONS_LIVE)
                + ngx_mcp_counter(zone, NGX_MCP_COUNTER_LISTENS_OPEN)
        || streams != ngx_mcp_counter(zone, NGX_MCP_COUNTER_STREAMS_OPEN)
        || calls != ngx_mcp_counter(zone, NGX_MCP_COUNTER_CALLS_RUNNING))
    {
        bad("gauges are wrong");
    }

    for (i = 0; i < NGX_MCP_IDLE_CLASSES; i++) {
        idle -= length(zone, &zone->root->idle[i], NGX_MCP_LINKS, "idle");
    }

    if (idle) {
        bad("idle sessions are not all in lists");
    }

    if (groups != length(zone, &zone->root->groups, NGX_MCP_LINKS, "groups")) {
        bad("groups are not all in the list");
    }

    for (n = zone->root->pending_deletes.head; n; n = rec->links.next) {
        rec = ngx_mcp_block(zone, n);
        reach(zone, n, NGX_MCP_PENDING_DELETE);
    }

    (void) length(zone, &zone->root->pending_deletes, NGX_MCP_LINKS,
                  "farewells");
    (void) length(zone, &zone->root->profiles, NGX_MCP_LINKS, "knowledge");
    (void) length(zone, &zone->root->removals,
                  offsetof(ngx_mcp_group_sh_t, removals), "doomed");
    (void) length(zone, &zone->root->dirty,
                  offsetof(ngx_mcp_group_sh_t, announce), "unsaid");

    if (topics != length(zone, &zone->root->topics,
                         offsetof(ngx_mcp_topic_sh_t, age), "topics"))
    {
        bad("topics are not all in the list");
    }

    if (charged != counted) {
        bad("%u topics are charged to sessions, which count %u",
            (unsigned) charged, (unsigned) counted);
    }
}


static ngx_uint_t
free_check(ngx_mcp_zone_t *zone, uint32_t n)
{
    ngx_uint_t           nfree;
    ngx_mcp_block_sh_t  *b;

    for (nfree = 0; n; nfree++, n = b->chain) {
        b = ngx_mcp_block(zone, n);

        if (n >= zone->sh->watermark || seen[n]++) {
            bad("free block %u is used", n);
            break;
        }

        if (b->type != NGX_MCP_FREE) {
            bad("free block %u has type %u", n, b->type);
        }
    }

    return nfree;
}


ngx_uint_t
env_check_locked(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    ngx_uint_t           nfree;
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_block_sh_t  *b;

    sh = zone->sh;
    errors = 0;
    topics = 0;
    charged = 0;
    counted = 0;
    memset(used, 0, sizeof(used));

    seen = calloc(sh->watermark + 1, 1);

    if (sh->top > sh->slots
        || sh->base + (uint64_t) sh->blocks * NGX_MCP_BLOCK_SIZE
           + sh->slots * sizeof(ngx_mcp_worker_sh_t) > sh->size)
    {
        bad("slots of workers lie in blocks");
    }

    hash_check(zone);
    counts_check(zone);
    items_check(zone);
    pending_check(zone);
    audiences_check(zone);
    leases_check(zone);

    nfree = free_check(zone, sh->free) + free_check(zone, sh->freed);

    if (nfree != sh->nfree) {
        bad("%u blocks are free, not %u", (unsigned) nfree, sh->nfree);
    }

    for (n = 1; n < NGX_MCP_TYPE_MAX; n++) {
        if (used[n] != sh->used[n]) {
            bad("%u blocks are used by type %u, not %u", (unsigned) used[n],
                n, sh->used[n]);
        }
    }

    for (n = 1; n < sh->watermark; n++) {
        if (seen[n] != 1) {
            b = ngx_mcp_block(zone, n);
            bad("block %u of type %u is reached %u times", n, b->type,
                seen[n]);
        }
    }

    free(seen);

    return errors;
}


ngx_uint_t
env_check(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  n;

    ngx_mcp_zone_lock(zone);
    n = env_check_locked(zone);
    ngx_mcp_zone_unlock(zone);

    return n;
}


/* whether the byte is restored by a rollback; others may differ */

static ngx_uint_t
noted(ngx_mcp_zone_sh_t *sh, size_t n, u_char *unused)
{
    size_t  m;

    if (n >= sh->base) {
        n -= sh->base;

        if (n / NGX_MCP_BLOCK_SIZE >= sh->blocks) {
            m = (sh->base + n) - (sh->size - sh->slots
                                             * sizeof(ngx_mcp_worker_sh_t));

            return m % sizeof(ngx_mcp_worker_sh_t)
                   < offsetof(ngx_mcp_worker_sh_t, bits);
        }

        return !unused[n / NGX_MCP_BLOCK_SIZE]
               || n % NGX_MCP_BLOCK_SIZE < NGX_MCP_BLOCK_HEAD;
    }

    if (n >= sh->journal) {
        return 0;
    }

    if (n >= sh->root + offsetof(ngx_mcp_root_sh_t, providers)
        && n < sh->root + offsetof(ngx_mcp_root_sh_t, metric))
    {
        return 0;
    }

    m = sh->root + offsetof(ngx_mcp_root_sh_t, metric);

    if (n >= m) {
        return (n - m) % sizeof(ngx_mcp_metric_sh_t)
               < offsetof(ngx_mcp_metric_sh_t, outcomes);
    }

    if (n >= sh->root) {
        m = n - sh->root - offsetof(ngx_mcp_root_sh_t, full);
        return m >= sizeof(ngx_atomic_t);
    }

    if (n >= sh->counters) {
        m = (n - sh->counters) / sizeof(ngx_atomic_t);

        return m == NGX_MCP_COUNTER_SESSIONS_LIVE
               || m == NGX_MCP_COUNTER_LISTENS_OPEN
               || m == NGX_MCP_COUNTER_STREAMS_OPEN
               || m == NGX_MCP_COUNTER_CALLS_RUNNING;
    }

    return n >= NGX_MCP_ALWAYS_NOTED
           && (n < offsetof(ngx_mcp_zone_sh_t, epoch)
               || n >= offsetof(ngx_mcp_zone_sh_t, buckets));
}


ngx_uint_t
env_differs(ngx_mcp_zone_sh_t *previous, ngx_mcp_zone_sh_t *after,
    const char *why)
{
    u_char              *a, *b, *unused;
    size_t               n, len, end, tail;
    uint32_t             free_block;
    ngx_uint_t           found, type;
    ngx_mcp_block_sh_t  *block;

    a = (u_char *) previous;
    b = (u_char *) after;
    found = 0;

    unused = calloc(previous->watermark + 1, 1);

    for (free_block = previous->free; free_block; free_block = block->chain) {
        block = (ngx_mcp_block_sh_t *) (a + previous->base + (size_t) free_block
                                                         * NGX_MCP_BLOCK_SIZE);
        unused[free_block] = 1;
    }

    end = previous->base + (size_t) previous->watermark * NGX_MCP_BLOCK_SIZE;
    tail = previous->size - previous->slots * sizeof(ngx_mcp_worker_sh_t);

    for (n = 0; n < previous->size && found < 5; n++) {

        if (n == previous->journal) {
            n = previous->base;
        }

        if (n == end) {
            n = tail;
        }

        len = (n < previous->journal ? previous->journal
                                   : n < end ? end : previous->size) - n;
        len = ngx_min(len, 4096);

        if (memcmp(a + n, b + n, len) == 0) {
            n += len - 1;
            continue;
        }

        len = ngx_min(len, 64);

        if (memcmp(a + n, b + n, len) == 0) {
            n += len - 1;
            continue;
        }

        if (a[n] == b[n] || !noted(previous, n, unused)) {
            continue;
        }

        found++;

        if (n < previous->base) {
            fprintf(stderr, "# byte %u of the zone changed %s\n",
                    (unsigned) n, why);

        } else if (n >= tail) {
            fprintf(stderr, "# byte %u of a worker's place changed %s\n",
                    (unsigned) ((n - tail) % sizeof(ngx_mcp_worker_sh_t)),
                    why);

        } else {
            type = ((ngx_mcp_block_sh_t *) (a + n - (n - previous->base)
                                                % NGX_MCP_BLOCK_SIZE))->type;

            fprintf(stderr, "# byte %u of a block of type %u (%u) changed "
                    "%s\n", (unsigned) ((n - previous->base)
                                        % NGX_MCP_BLOCK_SIZE),
                    (unsigned) type,
                    (unsigned) ((n - previous->base) / NGX_MCP_BLOCK_SIZE),
                    why);
        }

        n |= 7;
    }

    free(unused);

    return found;
}
