
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_topic.h"


/* ms; a topic that calls wait for is used at least once in this time */
#define NGX_MCP_TOPIC_WATCHED   660000

/* topics examined in one search; topics and groups handled in one sweep */
#define NGX_MCP_TOPIC_SCAN      4096

#define NGX_MCP_TOPIC_SWEEP     16

/* topics examined under one hold of the lock when topics are listed */
#define NGX_MCP_TOPIC_LOOK      128

/* groups examined in a search for a topic that need not be in use */
#define NGX_MCP_TOPIC_GROUPS    512

/* groups examined in one turn of a search for a topic that is in use */
#define NGX_MCP_TOPIC_TURN      2048

/* ms for which a group remembers that a topic with events was dropped */
#define NGX_MCP_TOPIC_RECENT    60000


/*
 * Index of a topic's list in topics[] and ntopics[]: 0 for a topic, 1 for a
 * resource that is no topic.
 */
#define ngx_mcp_topic_other(t)                                                \
    ((ngx_uint_t) (((t)->rec.flags & NGX_MCP_TOPIC_OTHER) != 0))


#define ngx_mcp_topic_place(zone, uri)                                        \
    ((uint32_t) (ngx_mcp_hash(zone, uri, NULL) % NGX_MCP_TOPIC_URIS))


/* the reader of a topic: a session or, if that is NULL, another caller */

typedef struct {
    ngx_mcp_caller_t         *caller;
    ngx_mcp_group_sh_t       *group;        /* NULL: not made yet */
    ngx_mcp_session_sh_t     *session;
    ngx_mcp_subscriber_sh_t  *subscriber;   /* that of the session, or
                                               &alone */
    ngx_mcp_subscriber_sh_t   alone;
} ngx_mcp_topic_reader_t;


static void ngx_mcp_topic_reader_init(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_topic_reader_t *reader);
static ngx_int_t ngx_mcp_topic_reader_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader);
static ngx_int_t ngx_mcp_topic_reserve_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_topic_t *topic);
static ngx_mcp_topic_sh_t *ngx_mcp_topic_open_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_topic_t *topic);
static ngx_int_t ngx_mcp_topic_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_ref_t topic, ngx_uint_t wait,
    ngx_mcp_topic_event_t *event);
static uint32_t ngx_mcp_topic_hash(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_str_t *uri);
static ngx_int_t ngx_mcp_topic_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_t *topic);
static ngx_mcp_topic_sh_t *ngx_mcp_topic_victim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_uint_t other, ngx_mcp_ref_t *charged);
static ngx_uint_t ngx_mcp_topic_share_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_topic_t *topic);
static void ngx_mcp_topic_uncharge_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_sh_t *t);
static void ngx_mcp_topic_give_up_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_sh_t *t);
static ngx_uint_t ngx_mcp_topic_in_use(ngx_mcp_topic_sh_t *t);
static void ngx_mcp_topic_used_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_sh_t *t);
static void ngx_mcp_topic_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_sh_t *t);
static void ngx_mcp_topic_gone_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_sh_t *t);
static ngx_uint_t ngx_mcp_topic_visible_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_event_sh_t *e);
static ngx_int_t ngx_mcp_topic_search(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *tenant, ngx_str_t *uri,
    ngx_uint_t in_use, ngx_mcp_group_cursor_t *cursor);
static void ngx_mcp_topic_dirty_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g);
static void ngx_mcp_topic_announce_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g);


ngx_int_t
ngx_mcp_topic_keep_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_topic_t *topic, ngx_mcp_log_input_t *in, ngx_uint_t has_room)
{
    ngx_mcp_event_sh_t  *e;
    ngx_mcp_topic_sh_t  *t;

    t = NULL;

    if (has_room && topic->uri.len <= NGX_MCP_TOPIC_URI_MAX) {
        t = ngx_mcp_topic_get_locked(zone, g, topic, ngx_mcp_ref(zone, g));
    }

    if (t == NULL) {
        return NGX_ERROR;
    }

    while (t->log.count >= NGX_MCP_TOPIC_EVENTS
           || (t->log.count
               && t->bytes + in->stage.len > NGX_MCP_TOPIC_BYTES))
    {
        e = ngx_mcp_block(zone, t->log.list.head);
        ngx_mcp_log_drop_locked(zone, e);
    }

    e = ngx_mcp_log_add_locked(zone, t, in->event, &in->target, &in->stage);

    ngx_mcp_touch(zone, t);
    t->bytes += e->rec.len;
    t->time = ngx_mcp_now();

    if (!topic->existing) {
        ngx_mcp_topic_used_locked(zone, t);
    }

    ngx_mcp_watch_ring_locked(zone, t->watch, ngx_mcp_number(zone, t),
                              NGX_MCP_WATCH_ALL);

    if (!topic->other && !topic->unannounced
        && !(t->rec.flags & NGX_MCP_TOPIC_ANNOUNCED))
    {
        ngx_mcp_topic_dirty_locked(zone, g);
        ngx_mcp_touch(zone, t);
        t->rec.flags |= NGX_MCP_TOPIC_ANNOUNCED;
        ngx_mcp_topic_announce_locked(zone, g);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_mcp_topic_exists_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *uri, ngx_uint_t other)
{
    ngx_mcp_topic_sh_t  *t;

    t = ngx_mcp_topic_lookup_locked(zone, g, uri);

    return t && ngx_mcp_topic_other(t) == other;
}


static uint32_t
ngx_mcp_topic_hash(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *uri)
{
    ngx_str_t  group;

    group.data = (u_char *) &g->number;
    group.len = sizeof(g->number);

    return (uint32_t) ngx_mcp_hash(zone, uri, &group);
}


ngx_mcp_topic_sh_t *
ngx_mcp_topic_lookup_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *uri)
{
    uint32_t             hash, group;
    ngx_mcp_topic_sh_t  *t;

    hash = ngx_mcp_topic_hash(zone, g, uri);
    group = ngx_mcp_number(zone, g);

    for (t = ngx_mcp_hash_first_locked(zone, NGX_MCP_TOPIC, hash);
         t;
         t = ngx_mcp_hash_next_locked(zone, t))
    {
        if (t->rec.owner.block == group
            && ngx_mcp_text_equal(zone, t, 0, t->rec.len, uri))
        {
            return t;
        }
    }

    return NULL;
}


ngx_mcp_topic_sh_t *
ngx_mcp_topic_get_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t payer)
{
    uint32_t             n;
    ngx_mcp_stage_t      stage;
    ngx_mcp_topic_sh_t  *t;

    t = ngx_mcp_topic_lookup_locked(zone, g, &topic->uri);

    if (t) {
        return t;
    }

    if (ngx_mcp_topic_room_locked(zone, g, topic) != NGX_OK) {
        return NULL;
    }

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_TOPIC, &topic->uri, 1);
    stage.payer = payer;

    t = ngx_mcp_make_locked(zone, &stage);
    n = ngx_mcp_number(zone, t);

    t->rec.owner = ngx_mcp_ref(zone, g);
    t->rec.hash = ngx_mcp_topic_hash(zone, g, &topic->uri);
    t->rec.flags = topic->other ? NGX_MCP_TOPIC_OTHER : 0;
    t->serial = ++zone->sh->stamp;
    t->order = t->serial;
    t->place = ngx_mcp_topic_place(zone, &topic->uri);
    t->used = ngx_current_msec;

    /* events of a dropped topic with this name may have been lost */

    if (g->gone && g->gone_used + NGX_MCP_TOPIC_RECENT > ngx_current_msec) {
        t->lost = g->gone;
    }

    ngx_mcp_commit_locked(zone, t, NGX_MCP_TOPIC);

    ngx_mcp_hash_insert_locked(zone, t);
    ngx_mcp_touch(zone, &zone->root->uris[t->place]);
    zone->root->uris[t->place]++;

    ngx_mcp_touch(zone, g);
    ngx_mcp_list_append(zone, &g->topics[topic->other], n, NGX_MCP_LINKS);
    ngx_mcp_list_append(zone, &zone->root->topics, n,
                        offsetof(ngx_mcp_topic_sh_t, age));
    g->ntopics[topic->other]++;

    return t;
}


/*
 * Makes room for one more topic in the group.  NGX_OK; NGX_DECLINED: the limit
 * of the group is reached, and all of its topics are in use.
 */

static ngx_int_t
ngx_mcp_topic_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_topic_t *topic)
{
    ngx_mcp_topic_sh_t  *t;

    if (g->ntopics[topic->other] < topic->limit) {
        return NGX_OK;
    }

    t = ngx_mcp_topic_victim_locked(zone, g, topic->other, NULL);

    if (t == NULL) {
        return NGX_DECLINED;
    }

    ngx_mcp_topic_give_up_locked(zone, g, t);

    return NGX_OK;
}


/*
 * Returns the least recently used topic of the group that is not in use, or
 * NULL.  charged: only topics that are charged to this session are examined;
 * NULL: all topics are.
 */

static ngx_mcp_topic_sh_t *
ngx_mcp_topic_victim_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_uint_t other, ngx_mcp_ref_t *charged)
{
    uint32_t             n;
    ngx_uint_t           i;
    ngx_mcp_topic_sh_t  *t, *victim;

    victim = NULL;
    n = g->topics[other].head;

    for (i = 0; n && i < NGX_MCP_TOPIC_SCAN; i++) {
        t = ngx_mcp_block(zone, n);
        n = t->rec.links.next;

        if (charged && (t->charged.block != charged->block
                        || t->charged.gen != charged->gen))
        {
            continue;
        }

        if ((victim == NULL || t->order < victim->order)
            && !ngx_mcp_topic_in_use(t))
        {
            victim = t;
        }
    }

    return victim;
}


/*
 * Returns whether one more topic may be charged to the session.  If the limit
 * of the session is reached, one of its topics that is not in use is dropped,
 * or is not charged to the session any more.
 */

static ngx_uint_t
ngx_mcp_topic_share_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_topic_t *topic)
{
    ngx_mcp_ref_t            session;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_topic_sh_t      *victim;
    ngx_mcp_extension_sh_t  *e;

    g = ngx_mcp_session_group(zone, s);
    e = ngx_mcp_session_extension(zone, s);

    if (e->ntopics[topic->other] < ngx_min(topic->share, 0xffff)) {
        return 1;
    }

    session = ngx_mcp_ref(zone, s);
    victim = ngx_mcp_topic_victim_locked(zone, g, topic->other, &session);

    if (victim == NULL) {
        return 0;
    }

    if (victim->log.last == 0) {
        ngx_mcp_topic_give_up_locked(zone, g, victim);

    } else {

        /* other sessions read its events, so the topic stays, uncharged */

        ngx_mcp_topic_uncharge_locked(zone, victim);
    }

    return 1;
}


void
ngx_mcp_topic_charge_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t,
    ngx_mcp_session_sh_t *s)
{
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    ngx_mcp_touch(zone, t);
    ngx_mcp_touch(zone, e);

    t->charged = ngx_mcp_ref(zone, s);
    e->ntopics[ngx_mcp_topic_other(t)]++;
}


static void
ngx_mcp_topic_uncharge_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t)
{
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    s = ngx_mcp_session_locked(zone, t->charged);

    if (s) {
        e = ngx_mcp_session_extension(zone, s);
        ngx_mcp_touch(zone, e);
        e->ntopics[ngx_mcp_topic_other(t)]--;
    }

    ngx_mcp_touch(zone, t);
    ngx_memzero(&t->charged, sizeof(ngx_mcp_ref_t));
}


/* drops a topic; the group is not dropped, even if this was its last record */

static void
ngx_mcp_topic_give_up_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_topic_sh_t *t)
{
    ngx_mcp_touch(zone, g);
    g->pending_deletes++;
    ngx_mcp_topic_drop_locked(zone, t);
    g->pending_deletes--;
}


/*
 * Returns whether the topic has subscribers, or calls that wait for its events.
 * The bit of a worker that died stays in t->watch until the next event, so the
 * bits are ignored NGX_MCP_TOPIC_WATCHED ms after the last use.
 */

static ngx_uint_t
ngx_mcp_topic_in_use(ngx_mcp_topic_sh_t *t)
{
    ngx_uint_t  i;

    if (t->subscribers) {
        return 1;
    }

    if (t->used + NGX_MCP_TOPIC_WATCHED < ngx_current_msec) {
        return 0;
    }

    for (i = 0; i < NGX_MCP_WATCH_BITS / 64; i++) {
        if (t->watch[i]) {
            return 1;
        }
    }

    return 0;
}


static void
ngx_mcp_topic_used_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t)
{
    uint32_t  n;

    n = ngx_mcp_number(zone, t);
    ngx_mcp_touch(zone, t);
    t->used = ngx_current_msec;
    t->order = ++zone->sh->stamp;

    ngx_mcp_list_remove(zone, &zone->root->topics, n,
                        offsetof(ngx_mcp_topic_sh_t, age));
    ngx_mcp_list_append(zone, &zone->root->topics, n,
                        offsetof(ngx_mcp_topic_sh_t, age));
}


static void
ngx_mcp_topic_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t)
{
    uint32_t             n;
    ngx_uint_t           other;
    ngx_mcp_group_sh_t  *g;

    n = ngx_mcp_number(zone, t);
    g = ngx_mcp_block(zone, t->rec.owner.block);
    other = ngx_mcp_topic_other(t);

    if (t->rec.flags & NGX_MCP_TOPIC_ANNOUNCED) {
        ngx_mcp_topic_dirty_locked(zone, g);
    }

    ngx_mcp_topic_uncharge_locked(zone, t);
    ngx_mcp_topic_gone_locked(zone, g, t);

    /* wakes the workers whose calls wait: these may make the topic again */

    ngx_mcp_watch_ring_locked(zone, t->watch, 0, NGX_MCP_WATCH_ALL);

    while (t->log.list.head) {
        ngx_mcp_log_drop_locked(zone, ngx_mcp_block(zone, t->log.list.head));
    }

    ngx_mcp_hash_remove_locked(zone, t);
    ngx_mcp_list_remove(zone, &g->topics[other], n, NGX_MCP_LINKS);
    ngx_mcp_list_remove(zone, &zone->root->topics, n,
                        offsetof(ngx_mcp_topic_sh_t, age));
    ngx_mcp_touch(zone, &zone->root->uris[t->place]);
    zone->root->uris[t->place]--;

    ngx_mcp_touch(zone, g);
    g->ntopics[other]--;

    ngx_mcp_drop_locked(zone, t);

    ngx_mcp_group_drop_unused_locked(zone, g);
}


/*
 * Notes the topic's last event in the group, so that the topic reports missing
 * events if it is soon made again.
 */

static void
ngx_mcp_topic_gone_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_topic_sh_t *t)
{
    uint64_t             last;
    ngx_mcp_event_sh_t  *e;

    if (t->used + NGX_MCP_TOPIC_RECENT <= ngx_current_msec) {
        return;
    }

    last = t->lost;

    if (t->log.list.tail) {
        e = ngx_mcp_block(zone, t->log.list.tail);
        last = e->stamp;
    }

    if (last) {
        ngx_mcp_touch(zone, g);
        g->gone = ngx_max(g->gone, last);
        g->gone_used = ngx_max(g->gone_used, t->used);
    }
}


/*
 * Drops topics that are not in use.  orphans: 1: topics of groups without
 * sessions; 0: topics without events.  Returns the number of dropped topics.
 */

ngx_uint_t
ngx_mcp_topic_reclaim_locked(ngx_mcp_zone_t *zone, ngx_uint_t orphans)
{
    uint32_t             n;
    ngx_uint_t           i, dropped;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    n = zone->root->topics.head;
    dropped = 0;

    for (i = 0; n && i < NGX_MCP_TOPIC_SWEEP * 4; i++) {
        t = ngx_mcp_block(zone, n);
        g = ngx_mcp_block(zone, t->rec.owner.block);
        n = t->age.next;

        if ((orphans ? g->sessions == 0 : t->log.count == 0)
            && !ngx_mcp_topic_in_use(t))
        {
            ngx_mcp_topic_drop_locked(zone, t);
            ngx_mcp_step_locked(zone);
            dropped++;
        }
    }

    return dropped;
}


ngx_int_t
ngx_mcp_topic_sweep_locked(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    ngx_uint_t           i, announced;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    n = zone->root->dirty.head;
    announced = 0;

    for (i = 0; n && i < NGX_MCP_TOPIC_SWEEP; i++) {
        g = ngx_mcp_block(zone, n);
        n = g->announce.next;

        ngx_mcp_topic_announce_locked(zone, g);
        ngx_mcp_step_locked(zone);

        /* for some groups, it may be too early */

        announced |= !g->dirty;
    }

    announced &= (n != 0);

    for (i = 0; i < NGX_MCP_TOPIC_SWEEP; i++) {
        n = zone->root->topics.head;

        if (n == 0) {
            break;
        }

        t = ngx_mcp_block(zone, n);

        if (t->used + NGX_MCP_TOPIC_IDLE > ngx_current_msec) {
            break;
        }

        if (t->subscribers) {
            ngx_mcp_topic_used_locked(zone, t);

        } else {
            ngx_mcp_topic_drop_locked(zone, t);
        }

        ngx_mcp_step_locked(zone);
    }

    return (announced || i == NGX_MCP_TOPIC_SWEEP) ? NGX_AGAIN : NGX_OK;
}


static void
ngx_mcp_topic_dirty_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    if (g->dirty || g->sessions == 0) {
        return;
    }

    ngx_mcp_touch(zone, g);
    g->dirty = 1;
    ngx_mcp_list_append(zone, &zone->root->dirty, ngx_mcp_number(zone, g),
                        offsetof(ngx_mcp_group_sh_t, announce));
}


static void
ngx_mcp_topic_announce_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    ngx_str_t            text;
    ngx_mcp_event_t      event;
    ngx_mcp_log_input_t  in;

    if (!g->dirty || ngx_current_msec - g->announced < 1000) {
        return;
    }

    ngx_mcp_touch(zone, g);
    g->announced = ngx_current_msec;

    ngx_mcp_group_clean_locked(zone, g);

    if (g->sessions == 0) {
        return;
    }

    ngx_str_set(&text, NGX_MCP_LIST_CHANGED("resources"));

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = &text;
    event.nparts = 1;
    event.flags = NGX_MCP_EVENT_CHANGED(NGX_MCP_OFFERED_RESOURCES);

    ngx_mcp_log_input(zone, &in, &event);

    (void) ngx_mcp_log_group_locked(zone, g, &in,
                                    ngx_mcp_free_blocks(zone->sh)
                                    >= in.stage.blocks, 0);
}


/* initializes the part of a reader that needs no lock */

static void
ngx_mcp_topic_reader_init(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_reader_t *reader)
{
    ngx_memzero(reader, sizeof(ngx_mcp_topic_reader_t));

    reader->caller = caller;

    if (caller->session.block == 0) {
        reader->alone.identity = ngx_mcp_hash(zone, &caller->identity, NULL);
        reader->alone.audience = ngx_mcp_hash(zone, &caller->audience_key,
                                              NULL);
        reader->alone.own_lists = 1;
    }
}


/* finds group and subscriber; NGX_DECLINED: the reader's session has ended */

static ngx_int_t
ngx_mcp_topic_reader_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader)
{
    ngx_mcp_caller_t  *caller;

    caller = reader->caller;

    if (caller->session.block == 0) {
        reader->group = ngx_mcp_group_lookup_locked(zone, caller->endpoint,
                                                    &caller->tenant);
        reader->subscriber = &reader->alone;

        return NGX_OK;
    }

    reader->session = ngx_mcp_session_locked(zone, caller->session);

    if (reader->session == NULL) {
        return NGX_DECLINED;
    }

    reader->group = ngx_mcp_session_group(zone, reader->session);
    reader->subscriber = &reader->session->subscriber;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_topic_watch(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t *ref, uint64_t *after)
{
    ngx_int_t                rc;
    ngx_mcp_topic_sh_t      *t;
    ngx_mcp_topic_reader_t   reader;

    if (topic->uri.len > NGX_MCP_TOPIC_URI_MAX) {
        return NGX_ERROR;
    }

    ngx_mcp_topic_reader_init(zone, caller, &reader);

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_topic_reader_locked(zone, &reader);

    if (rc == NGX_OK) {
        rc = ngx_mcp_topic_reserve_locked(zone, &reader, topic);
    }

    if (rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    t = ngx_mcp_topic_open_locked(zone, &reader, topic);

    if (t == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_BUSY;
    }

    ngx_mcp_topic_used_locked(zone, t);

    *ref = ngx_mcp_ref(zone, t);

    /* a position after all events comes from before the zone was emptied */

    if (*after > zone->sh->stamp) {
        *after = reader.session
                 ? ngx_mcp_session_extension(zone, reader.session)->begin
                 : zone->sh->stamp;
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


/*
 * Reserves room for a topic that does not exist yet.  Returns as
 * ngx_mcp_topic_watch() does.
 */

static ngx_int_t
ngx_mcp_topic_reserve_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_topic_t *topic)
{
    ngx_int_t          rc;
    ngx_str_t          none;
    ngx_mcp_admit_t    admit;
    ngx_mcp_caller_t  *caller;

    caller = reader->caller;

    if (reader->group
        && ngx_mcp_topic_lookup_locked(zone, reader->group, &topic->uri))
    {
        return NGX_OK;
    }

    admit.blocks = ngx_mcp_text_blocks(zone, NGX_MCP_TOPIC, topic->uri.len);
    admit.room = NGX_MCP_ROOM_SHARE;

    if (reader->session) {
        rc = ngx_mcp_reserve_locked(zone, caller->session, admit.room,
                                    admit.blocks);

    } else {
        ngx_str_null(&none);

        admit.endpoint = caller->endpoint;
        admit.tenant = &caller->tenant;
        admit.account = ngx_mcp_hash(zone, &caller->tenant, &caller->share);
        admit.limit_key = &none;
        admit.limit = 0;

        rc = ngx_mcp_admit_locked(zone, &admit);
    }

    if (ngx_mcp_topic_reader_locked(zone, reader) != NGX_OK) {
        return NGX_DECLINED;
    }

    return (rc == NGX_OK) ? NGX_OK : NGX_ERROR;
}


/* finds or makes the topic; NULL: too many other topics are in use */

static ngx_mcp_topic_sh_t *
ngx_mcp_topic_open_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_topic_t *topic)
{
    ngx_uint_t           charge;
    ngx_mcp_ref_t        payer;
    ngx_mcp_caller_t    *caller;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    caller = reader->caller;
    g = reader->group;

    t = g ? ngx_mcp_topic_lookup_locked(zone, g, &topic->uri) : NULL;

    if (reader->session == NULL) {

        if (t) {
            return t;
        }

        g = ngx_mcp_group_get_locked(zone, caller->endpoint, &caller->tenant);

        /* making room may drop the account with the last topic it pays for */

        if (ngx_mcp_topic_room_locked(zone, g, topic) != NGX_OK) {
            ngx_mcp_group_drop_unused_locked(zone, g);
            return NULL;
        }

        payer = ngx_mcp_account_get_locked(zone, &caller->tenant,
                                           ngx_mcp_hash(zone, &caller->tenant,
                                                        &caller->share));

        return ngx_mcp_topic_get_locked(zone, g, topic, payer);
    }

    if (t == NULL || ngx_mcp_session_locked(zone, t->charged) == NULL) {
        charge = ngx_mcp_topic_share_locked(zone, reader->session, topic);

        if (t == NULL && charge) {
            t = ngx_mcp_topic_get_locked(zone, g, topic, caller->session);
        }

        if (t && charge) {
            ngx_mcp_topic_charge_locked(zone, t, reader->session);
        }
    }

    return t;
}


void
ngx_mcp_topic_open(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_topic_t *topic)
{
    uint64_t             after;
    ngx_mcp_ref_t        ref;
    ngx_mcp_caller_t     caller;
    ngx_mcp_group_sh_t  *g;

    ngx_mcp_zone_lock(zone);
    g = ngx_mcp_group_lookup_locked(zone, endpoint, tenant);
    ngx_mcp_zone_unlock(zone);

    if (g) {
        return;
    }

    ngx_memzero(&caller, sizeof(ngx_mcp_caller_t));

    caller.endpoint = endpoint;
    caller.tenant = *tenant;
    after = 0;

    (void) ngx_mcp_topic_watch(zone, &caller, topic, &ref, &after);
}


ngx_int_t
ngx_mcp_topic_lease(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_caller_t *caller, ngx_uint_t callers, ngx_uint_t tenants)
{
    ngx_str_t               id;
    ngx_mcp_lease_share_t   share;
    ngx_mcp_topic_reader_t  reader;

    ngx_memzero(&share, sizeof(ngx_mcp_lease_share_t));

    ngx_mcp_topic_reader_init(zone, caller, &reader);

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_topic_reader_locked(zone, &reader) != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ABORT;
    }

    if (reader.group) {
        share.owner = ngx_mcp_ref(zone, reader.group);
    }

    if (reader.session) {
        id.data = reader.session->id;
        id.len = NGX_MCP_UUID_LEN;

        share.user = (uint32_t) ngx_mcp_hash(zone, &id, NULL) | 1;
    }

    ngx_mcp_zone_unlock(zone);

    if (share.user == 0) {
        share.user = (uint32_t) ngx_mcp_hash(zone, &caller->tenant,
                                             &caller->share)
                     | 1;
    }

    share.owner_max = tenants;
    share.user_max = callers;

    return ngx_mcp_lease_ensure_shared(zone, key, &share);
}


ngx_int_t
ngx_mcp_topic_find(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t *ref)
{
    ngx_int_t                rc;
    ngx_mcp_topic_sh_t      *t;
    ngx_mcp_topic_reader_t   reader;

    rc = NGX_DECLINED;

    ngx_mcp_topic_reader_init(zone, caller, &reader);

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_topic_reader_locked(zone, &reader) == NGX_OK && reader.group) {

        t = ngx_mcp_topic_lookup_locked(zone, reader.group, &topic->uri);

        if (t && t->log.last) {
            ngx_mcp_topic_used_locked(zone, t);
            *ref = ngx_mcp_ref(zone, t);
            rc = NGX_OK;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_topic_next(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_ref_t topic, ngx_uint_t wait, ngx_mcp_topic_event_t *event)
{
    ngx_int_t                rc;
    ngx_mcp_topic_reader_t   reader;

    event->missed = 0;

    if (caller) {
        ngx_mcp_topic_reader_init(zone, caller, &reader);
    }

    ngx_mcp_zone_lock(zone);

    if (caller && ngx_mcp_topic_reader_locked(zone, &reader) != NGX_OK) {
        rc = NGX_DONE;

    } else {
        rc = ngx_mcp_topic_next_locked(zone, caller ? &reader : NULL, topic,
                                       wait, event);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* reads the next event that the reader may see; reader NULL: any event */

static ngx_int_t
ngx_mcp_topic_next_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_reader_t *reader,
    ngx_mcp_ref_t topic, ngx_uint_t wait, ngx_mcp_topic_event_t *event)
{
    uint32_t             n;
    ngx_mcp_event_sh_t  *e;
    ngx_mcp_topic_sh_t  *t;

    t = ngx_mcp_record(zone, topic, NGX_MCP_TOPIC);

    if (t == NULL) {
        return NGX_DECLINED;
    }

    if (event->position < t->lost) {
        event->position = t->lost;
        event->missed = 1;
    }

    for (n = t->log.list.head; n; n = e->rec.links.next) {
        e = ngx_mcp_block(zone, n);

        if (e->stamp <= event->position) {
            continue;
        }

        event->position = e->stamp;

        if (reader && !ngx_mcp_topic_visible_locked(zone, reader, e)) {
            continue;
        }

        event->text.len = ngx_min(e->rec.len, NGX_MCP_TOPIC_BYTES);
        ngx_mcp_text_read(zone, e, 0, event->text.data, event->text.len);

        return NGX_OK;
    }

    if (wait) {
        ngx_mcp_watch_locked(zone, t->watch);
    }

    return NGX_AGAIN;
}


void
ngx_mcp_topic_unsubscribe_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub)
{
    ngx_mcp_topic_sh_t  *t;

    t = ngx_mcp_record(zone, sub->topic, NGX_MCP_TOPIC);

    if (t) {
        ngx_mcp_touch(zone, t);
        t->subscribers--;
    }
}


void
ngx_mcp_topic_unwatch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic)
{
    ngx_mcp_topic_sh_t  *t;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return;
    }

    ngx_mcp_zone_lock(zone);

    t = ngx_mcp_record(zone, topic, NGX_MCP_TOPIC);

    if (t) {
        ngx_mcp_unwatch_locked(zone, t->watch);
    }

    ngx_mcp_zone_unlock(zone);
}


/*
 * Returns whether the reader may see the event.  target.uri[0] of the event is
 * the session that it is for, or 0.
 */

static ngx_uint_t
ngx_mcp_topic_visible_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_topic_reader_t *reader, ngx_mcp_event_sh_t *e)
{
    ngx_str_t            id;
    ngx_mcp_target_sh_t  target;

    target = e->target;

    if (target.uri[0]) {

        if (reader->session == NULL) {
            return 0;
        }

        id.data = reader->session->id;
        id.len = NGX_MCP_UUID_LEN;

        if (ngx_mcp_hash(zone, &id, NULL) != target.uri[0]) {
            return 0;
        }

        target.uri[0] = 0;
    }

    return !ngx_mcp_subscriber_hidden_locked(zone, reader->subscriber,
                                             &target);
}


ngx_int_t
ngx_mcp_topic_wanted(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri, ngx_mcp_group_cursor_t *cursor)
{
    return ngx_mcp_topic_search(zone, endpoint, tenant, uri, 1, cursor);
}


ngx_uint_t
ngx_mcp_topics_any(ngx_mcp_zone_t *zone)
{
    return zone->sh->used[NGX_MCP_TOPIC] != 0;
}


ngx_int_t
ngx_mcp_topic_exists(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri)
{
    ngx_int_t               rc;
    ngx_mcp_group_cursor_t  cursor;

    ngx_memzero(&cursor, sizeof(ngx_mcp_group_cursor_t));

    rc = ngx_mcp_topic_search(zone, endpoint, tenant, uri, 0, &cursor);

    return (rc == NGX_AGAIN) ? NGX_OK : rc;
}


/*
 * Searches some groups for the topic.  NGX_OK: one has it; NGX_DECLINED: none
 * has it; NGX_AGAIN: the search goes on behind *cursor.
 */

static ngx_int_t
ngx_mcp_topic_search(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri, ngx_uint_t in_use,
    ngx_mcp_group_cursor_t *cursor)
{
    ngx_int_t            rc;
    ngx_uint_t           i, max;
    ngx_mcp_groups_t     groups;
    volatile uint32_t   *count;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    count = &zone->root->uris[ngx_mcp_topic_place(zone, uri)];

    ngx_mcp_groups_init(&groups, endpoint, tenant);
    groups.number = cursor->number;
    groups.ref = cursor->ref;

    ngx_memzero(cursor, sizeof(ngx_mcp_group_cursor_t));

    if (*count == 0) {
        return NGX_DECLINED;
    }

    rc = NGX_AGAIN;
    max = in_use ? NGX_MCP_TOPIC_TURN : NGX_MCP_TOPIC_GROUPS;

    for (i = 0; i < max; i++) {

        ngx_mcp_zone_lock(zone);

        if (groups.ref.block
            && ngx_mcp_record(zone, groups.ref, NGX_MCP_GROUP) == NULL)
        {
            /*
             * The group has ended.  The search begins anew, because it would
             * take long to skip all groups up to there.
             */

            ngx_mcp_groups_init(&groups, endpoint, tenant);
        }

        rc = ngx_mcp_groups_next_locked(zone, &groups);

        if (rc == NGX_OK) {
            g = ngx_mcp_block(zone, groups.ref.block);
            t = ngx_mcp_topic_lookup_locked(zone, g, uri);

            if (t == NULL || (in_use && !ngx_mcp_topic_in_use(t))) {
                rc = NGX_AGAIN;
            }
        }

        ngx_mcp_zone_unlock(zone);

        if (rc != NGX_AGAIN) {
            break;
        }
    }

    if (rc == NGX_AGAIN) {
        cursor->number = groups.number;
        cursor->ref = groups.ref;
    }

    return (rc == NGX_DONE) ? NGX_DECLINED : rc;
}


ngx_int_t
ngx_mcp_topics_wanted(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant)
{
    uint32_t             n;
    ngx_uint_t           i, wanted;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    wanted = 0;

    ngx_mcp_zone_lock(zone);

    g = ngx_mcp_group_lookup_locked(zone, endpoint, tenant);

    if (g) {
        wanted = (g->sessions != 0);
        n = g->topics[0].head;

        for (i = 0; n && !wanted && i < NGX_MCP_TOPIC_SCAN; i++) {
            t = ngx_mcp_block(zone, n);
            n = t->rec.links.next;
            wanted = ngx_mcp_topic_in_use(t);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return wanted ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_topic_list(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_cursor_t *cursor, u_char *buf, ngx_mcp_topic_info_t *list,
    ngx_uint_t *n)
{
    u_char                  *last;
    uint32_t                 i, k;
    ngx_int_t                rc;
    ngx_uint_t               seen;
    ngx_mcp_event_sh_t      *e;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_topic_sh_t      *t;
    ngx_mcp_topic_reader_t   reader;

    *n = 0;
    rc = NGX_DONE;
    last = buf + NGX_MCP_TOPIC_TEXTS;

    ngx_mcp_topic_reader_init(zone, caller, &reader);

    ngx_mcp_zone_lock(zone);

    (void) ngx_mcp_topic_reader_locked(zone, &reader);

    g = reader.group;

    if (g == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DONE;
    }

    t = ngx_mcp_record(zone, cursor->ref, NGX_MCP_TOPIC);

    /*
     * If the topic of the cursor is gone, the list goes on with the first
     * topic of a higher serial.
     */

    i = t ? t->rec.links.next : g->topics[0].head;

    for (seen = 0; i; i = t->rec.links.next) {
        t = ngx_mcp_block(zone, i);

        if (t->serial <= cursor->serial) {
            continue;
        }

        if (*n == NGX_MCP_TOPIC_LIST || seen++ == NGX_MCP_TOPIC_LOOK
            || t->rec.len > (size_t) (last - buf))
        {
            rc = NGX_OK;
            break;
        }

        cursor->serial = t->serial;
        cursor->ref = ngx_mcp_ref(zone, t);
        cursor->seen++;

        for (k = t->log.list.head; k; k = e->rec.links.next) {
            e = ngx_mcp_block(zone, k);

            if (ngx_mcp_topic_visible_locked(zone, &reader, e)) {
                break;
            }
        }

        if (k == 0) {
            continue;
        }

        list[*n].time = t->time;
        list[*n].uri.data = buf;
        list[*n].uri.len = t->rec.len;

        ngx_mcp_text_read(zone, t, 0, buf, t->rec.len);

        buf += t->rec.len;
        (*n)++;
    }

    cursor->topics = ngx_max(g->ntopics[0], cursor->seen);

    ngx_mcp_zone_unlock(zone);

    return rc;
}
