
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* most events of a group's log that are dropped to add a new one */
#define NGX_MCP_LOG_DROP  16


static void ngx_mcp_log_note_lost_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_target_sh_t *target, ngx_uint_t level);
static ngx_mcp_event_sh_t *ngx_mcp_log_add_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_log_input_t *in);
static ngx_mcp_event_sh_t *ngx_mcp_log_evictable_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c);
static ngx_mcp_event_sh_t *ngx_mcp_channels_evictable_locked(
    ngx_mcp_zone_t *zone, uint32_t n);
static ngx_mcp_event_sh_t *ngx_mcp_channel_evictable_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c);
static ngx_mcp_call_sh_t *ngx_mcp_log_free_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_event_sh_t *e);
static uint64_t *ngx_mcp_losses_place(ngx_mcp_zone_t *zone,
    ngx_mcp_losses_sh_t *l, ngx_uint_t i);
static void ngx_mcp_losses_set(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l,
    ngx_uint_t i, uint64_t pos);
static ngx_uint_t ngx_mcp_losses_lost(ngx_mcp_zone_t *zone,
    ngx_mcp_losses_sh_t *l, uint64_t hash, uint64_t pos);
static void ngx_mcp_losses_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, uint64_t pos, ngx_mcp_target_sh_t *target,
    ngx_uint_t level);


static u_char  ngx_mcp_losses_none[NGX_MCP_LOSSES_ALL * sizeof(uint64_t)];


ngx_int_t
ngx_mcp_log_session(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_event_t *event)
{
    return ngx_mcp_log_to_owner(zone, session, event, NULL, NULL);
}


void
ngx_mcp_log_input(ngx_mcp_zone_t *zone, ngx_mcp_log_input_t *in,
    ngx_mcp_event_t *event)
{
    in->event = event;

    ngx_mcp_log_target(zone, event, &in->target);

    ngx_mcp_stage_init(zone, &in->stage, NGX_MCP_EVENT, event->parts,
                       event->nparts);
    in->stage.room = NGX_MCP_ROOM_EVENT;
}


void
ngx_mcp_log_target(ngx_mcp_zone_t *zone, ngx_mcp_event_t *event,
    ngx_mcp_target_sh_t *target)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
        target->uri[i] = event->uri[i].len
                       ? ngx_mcp_hash(zone, &event->uri[i], NULL) : 0;
    }

    target->identity = event->identity.data
                     ? ngx_mcp_hash(zone, &event->identity, NULL) : 0;

    target->flags = event->flags
                  & (NGX_MCP_EVENT_LISTED|NGX_MCP_EVENT_UNLISTED
                     |NGX_MCP_EVENT_OFFERED(NGX_MCP_OFFERED_ALL)
                     |NGX_MCP_EVENT_CHANGED(NGX_MCP_OFFERED_ALL));

    if (event->upstream.data) {
        target->flags |= ngx_mcp_hash(zone, &event->upstream, NULL)
                         & NGX_MCP_EVENT_UPSTREAM;
    }

    target->audience = event->list_key.data
                     ? ngx_mcp_hash(zone, &event->list_key, NULL) : 0;
}


void *
ngx_mcp_log_owner_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_session_sh_t **session)
{
    ngx_mcp_call_sh_t  *c;

    *session = ngx_mcp_session_locked(zone, ref);

    if (*session) {
        return *session;
    }

    c = ngx_mcp_record(zone, ref, NGX_MCP_CALL);

    if (c == NULL || !(c->task.rec.flags & NGX_MCP_CALL_RUNNING)) {
        return NULL;
    }

    *session = ngx_mcp_session_locked(zone, c->task.rec.owner);

    return *session ? c : NULL;
}


ngx_int_t
ngx_mcp_log_to_owner(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_event_t *event, ngx_mcp_cursor_t *cursor,
    void (*finish)(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c))
{
    void                  *owner;
    ngx_int_t              rc;
    ngx_uint_t             fits, large;
    ngx_mcp_log_input_t    in;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_log_input(zone, &in, event);

    fits = 1;

    if (in.stage.blocks > NGX_MCP_BLOCKS_SMALL) {
        ngx_mcp_zone_lock(zone);

        fits = ngx_mcp_log_owner_locked(zone, ref, &s)
               && in.stage.len <= s->event_size;

        ngx_mcp_zone_unlock(zone);

        if (fits) {
            in.stage.payer = ref;
            fits = (ngx_mcp_stage(zone, &in.stage) == NGX_OK);
        }
    }

    ngx_mcp_zone_lock(zone);

    if (fits) {
        fits = (ngx_mcp_reserve_locked(zone, ref, NGX_MCP_ROOM_EVENT,
                                       ngx_mcp_stage_needs(&in.stage))
                == NGX_OK);
    }

    owner = ngx_mcp_log_owner_locked(zone, ref, &s);

    if (owner == NULL) {
        ngx_mcp_stage_drop_locked(zone, &in.stage);
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    large = (in.stage.len > s->event_size);

    if (fits && !large) {
        fits = (ngx_mcp_log_shrink_locked(zone, s,
                                          (owner == s) ? NULL : owner, 0)
                == NGX_OK);
    }

    rc = ngx_mcp_log_channel_locked(zone, owner, &in, fits, cursor);

    if (finish && owner != s) {
        finish(zone, owner);
    }

    ngx_mcp_zone_unlock(zone);

    if (rc != NGX_OK) {
        ngx_mcp_count(zone, large ? NGX_MCP_COUNTER_EVENTS_LARGE
                                  : NGX_MCP_COUNTER_EVENTS_FULL, 1);
    }

    return rc;
}


ngx_int_t
ngx_mcp_log_channel_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_log_input_t *in, ngx_uint_t has_room, ngx_mcp_cursor_t *cursor)
{
    uint32_t               active_stream;
    ngx_mcp_log_sh_t      *log;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_event_sh_t    *e;
    ngx_mcp_session_sh_t  *s;

    c = owner;

    if (c->task.rec.block.type == NGX_MCP_CALL) {
        s = ngx_mcp_block(zone, c->task.rec.owner.block);
        log = &c->log;
        active_stream = c->active_stream;

    } else {
        c = NULL;
        s = owner;
        log = &s->log;
        active_stream = s->subscriber.active_stream;
    }

    e = NULL;

    has_room = (has_room && in->stage.len <= s->event_size);

    ngx_mcp_touch(zone, &s->events);
    ngx_mcp_touch(zone, log);

    if (has_room) {
        e = ngx_mcp_log_add_locked(zone, owner, in->event, &in->target,
                                   &in->stage);
    }

    if (e) {
        s->events++;

    } else {
        ngx_mcp_stage_drop_locked(zone, &in->stage);
        log->last++;
    }

    if (c && e == NULL && s->exclusive
        && in->event->flags & (NGX_MCP_EVENT_RESPONSE|NGX_MCP_EVENT_REQUEST))
    {
        ngx_mcp_touch(zone, c);
        c->lost = (in->stage.len > s->event_size) ? NGX_MCP_CALL_TOO_LARGE
                                                  : NGX_MCP_CALL_NO_ROOM;
    }

    if (c && in->event->flags & NGX_MCP_EVENT_RESPONSE) {
        ngx_mcp_touch(zone, &c->task.rec);
        c->task.rec.flags |= NGX_MCP_CALL_ANSWERED;
    }

    if (cursor) {
        cursor->own = log->last;
        cursor->group = 0;
        cursor->endpoint = 0;
    }

    if (active_stream) {
        ngx_mcp_wake_locked(zone, ngx_mcp_block(zone, active_stream),
                            NGX_MCP_WAKE_NEWS);
    }

    return e ? NGX_OK : NGX_ERROR;
}


/*
 * The channel of a call may have some unread events beyond the session's limit,
 * as its reader waits for the answer that follows these events.
 */

ngx_int_t
ngx_mcp_log_shrink_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c, ngx_uint_t others)
{
    ngx_int_t  rc;

    while (s->events + others >= s->event_max) {
        ngx_mcp_step_locked(zone);

        rc = ngx_mcp_log_drop_oldest_locked(zone, s, c);

        if (rc == NGX_DONE) {

            /*
             * The new event replaces an event of the same log, so the number
             * of events does not grow.
             */

            return NGX_OK;
        }

        if (rc == NGX_OK) {
            continue;
        }

        if (c == NULL || c->log.count < NGX_MCP_CHANNEL_WAITING) {
            return s->event_max ? NGX_OK : NGX_DECLINED;
        }

        ngx_mcp_log_drop_locked(zone, ngx_mcp_block(zone, c->log.list.head));
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_log_drop_oldest_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c)
{
    uint32_t             n;
    ngx_mcp_call_sh_t   *channel;
    ngx_mcp_event_sh_t  *e;

    for (n = s->finished.head; n; n = channel->task.rec.links.next) {
        channel = ngx_mcp_block(zone, n);

        if (channel->active_stream == 0) {
            ngx_mcp_channel_drop_locked(zone, channel);
            return NGX_OK;
        }
    }

    if (c == NULL && s->log.list.head) {
        ngx_mcp_log_drop_locked(zone, ngx_mcp_block(zone, s->log.list.head));
        return NGX_DONE;
    }

    e = ngx_mcp_log_evictable_locked(zone, s, c);

    if (e == NULL) {
        return NGX_DECLINED;
    }

    ngx_mcp_log_drop_locked(zone, e);

    return NGX_OK;
}


/*
 * Returns an event of a channel that may be dropped, or NULL: the oldest one of
 * call c or else of all calls of the session.
 */

static ngx_mcp_event_sh_t *
ngx_mcp_log_evictable_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c)
{
    ngx_mcp_event_sh_t  *e, *p;

    e = c ? ngx_mcp_channel_evictable_locked(zone, c) : NULL;

    if (e) {
        return e;
    }

    e = ngx_mcp_channels_evictable_locked(zone, s->calls.head);
    p = ngx_mcp_channels_evictable_locked(zone, s->finished.head);

    return (e == NULL || (p && p->stamp < e->stamp)) ? p : e;
}


/*
 * Returns the oldest event that may be dropped, of the calls in the list from
 * block n on, or NULL.
 */

static ngx_mcp_event_sh_t *
ngx_mcp_channels_evictable_locked(ngx_mcp_zone_t *zone, uint32_t n)
{
    ngx_mcp_call_sh_t   *c;
    ngx_mcp_event_sh_t  *e, *oldest;

    oldest = NULL;

    for ( /* void */ ; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);
        e = ngx_mcp_channel_evictable_locked(zone, c);

        if (e && (oldest == NULL || e->stamp < oldest->stamp)) {
            oldest = e;
        }
    }

    return oldest;
}


/*
 * Returns the oldest event of a call's channel if that event was read, or if no
 * stream carries the channel; else NULL.
 */

static ngx_mcp_event_sh_t *
ngx_mcp_channel_evictable_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c)
{
    ngx_mcp_event_sh_t  *e;

    if (c->log.list.head == 0) {
        return NULL;
    }

    e = ngx_mcp_block(zone, c->log.list.head);

    return (c->active_stream == 0 || e->pos <= c->delivered) ? e : NULL;
}


ngx_mcp_log_sh_t *
ngx_mcp_log_of(void *owner)
{
    ngx_mcp_record_sh_t  *rec;

    rec = owner;

    switch (rec->block.type) {

    case NGX_MCP_SESSION:
        return &((ngx_mcp_session_sh_t *) owner)->log;

    case NGX_MCP_CALL:
        return &((ngx_mcp_call_sh_t *) owner)->log;

    case NGX_MCP_TOPIC:
        return &((ngx_mcp_topic_sh_t *) owner)->log;

    default: /* NGX_MCP_GROUP, NGX_MCP_ENDPOINT */
        return &((ngx_mcp_group_sh_t *) owner)->log;
    }
}


ngx_mcp_event_sh_t *
ngx_mcp_log_add_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_event_t *event, ngx_mcp_target_sh_t *target,
    ngx_mcp_stage_t *stage)
{
    ngx_mcp_event_sh_t   *e;
    ngx_mcp_record_sh_t  *rec;

    rec = owner;

    stage->payer = (rec->block.type == NGX_MCP_TOPIC)
                   ? rec->owner : ngx_mcp_ref(zone, owner);

    e = ngx_mcp_make_locked(zone, stage);

    e->rec.owner = ngx_mcp_ref(zone, owner);
    e->rec.flags = (uint16_t) event->flags;
    e->level = (uint32_t) event->level;

    if (target) {
        e->target = *target;
    }

    e->stamp = ++zone->sh->stamp;

    ngx_mcp_commit_locked(zone, e, NGX_MCP_EVENT);

    ngx_mcp_log_append_locked(zone, ngx_mcp_log_of(owner), e);
    ngx_mcp_list_append(zone, ngx_mcp_account_events(zone, e),
                        ngx_mcp_number(zone, e),
                        offsetof(ngx_mcp_event_sh_t, age));

    stage->head = 0;

    return e;
}


void
ngx_mcp_log_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e)
{
    ngx_mcp_call_sh_t  *c;

    c = ngx_mcp_log_free_locked(zone, e);

    if (c && c->log.count == 0 && c->active_stream == 0
        && !(c->task.rec.flags & NGX_MCP_CALL_RUNNING))
    {
        ngx_mcp_channel_drop_locked(zone, c);
    }
}


/* frees an event; returns the call in whose channel it was, or NULL */

static ngx_mcp_call_sh_t *
ngx_mcp_log_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e)
{
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_topic_sh_t    *t;
    ngx_mcp_record_sh_t   *owner;
    ngx_mcp_session_sh_t  *s;

    owner = ngx_mcp_block(zone, e->rec.owner.block);
    c = NULL;

    switch (owner->block.type) {

    case NGX_MCP_SESSION:
        s = (ngx_mcp_session_sh_t *) owner;
        ngx_mcp_touch(zone, &s->events);
        s->events--;
        break;

    case NGX_MCP_CALL:
        c = (ngx_mcp_call_sh_t *) owner;
        s = ngx_mcp_block(zone, owner->owner.block);
        ngx_mcp_touch(zone, &s->events);
        s->events--;
        break;

    case NGX_MCP_TOPIC:
        t = (ngx_mcp_topic_sh_t *) owner;
        ngx_mcp_touch(zone, &t->bytes);
        ngx_mcp_touch(zone, &t->lost);
        t->bytes -= e->rec.len;
        t->lost = e->stamp;
        break;

    default: /* NGX_MCP_GROUP, NGX_MCP_ENDPOINT */
        ngx_mcp_losses_add_locked(zone, (ngx_mcp_group_sh_t *) owner, e->pos,
                                  &e->target, e->level);
        break;
    }

    ngx_mcp_log_remove_locked(zone, ngx_mcp_log_of(owner), e);
    ngx_mcp_list_remove(zone, ngx_mcp_account_events(zone, e),
                        ngx_mcp_number(zone, e),
                        offsetof(ngx_mcp_event_sh_t, age));

    ngx_mcp_drop_locked(zone, e);

    return c;
}


ngx_uint_t
ngx_mcp_log_clear_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    ngx_uint_t max)
{
    ngx_uint_t  dropped;

    for (dropped = 0; dropped < max && log->list.head; dropped++) {
        (void) ngx_mcp_log_free_locked(zone, ngx_mcp_block(zone,
                                                           log->list.head));
        ngx_mcp_step_locked(zone);
    }

    return dropped;
}


/* drops the channel of a call that has finished */

void
ngx_mcp_channel_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_block(zone, c->task.rec.owner.block);

    (void) ngx_mcp_log_clear_locked(zone, &c->log, NGX_MAX_INT_T_VALUE);

    ngx_mcp_list_remove(zone, &s->finished, ngx_mcp_number(zone, c),
                        NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, c);
}


ngx_int_t
ngx_mcp_log_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_log_input_t *in, ngx_uint_t has_room, ngx_uint_t gap)
{
    if (gap) {
        ngx_mcp_losses_set(zone, ngx_mcp_block(zone, g->losses),
                           NGX_MCP_LOSSES_GAP, g->log.last + 1);
        ngx_mcp_log_note_lost_locked(zone, g, NULL, 0);
        return NGX_OK;
    }

    if (!has_room || ngx_mcp_log_add_group_locked(zone, g, in) == NULL) {
        ngx_mcp_log_note_lost_locked(zone, g, &in->target, in->event->level);
        return NGX_ERROR;
    }

    ngx_mcp_group_ring_locked(zone, g, &in->target);

    return NGX_OK;
}


/* gives the next position of a group's log to an event that is lost */

static void
ngx_mcp_log_note_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_target_sh_t *target, ngx_uint_t level)
{
    ngx_mcp_losses_add_locked(zone, g, g->log.last + 1, target, level);

    ngx_mcp_touch(zone, &g->log);
    g->log.last++;

    /* wakes all readers, as the target of the event is not stored exactly */

    ngx_mcp_group_ring_locked(zone, g, NULL);
}


static ngx_mcp_event_sh_t *
ngx_mcp_log_add_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_log_input_t *in)
{
    ngx_uint_t  i;

    if (in->stage.len > g->event_size || g->event_max == 0) {
        return NULL;
    }

    /* drops more than one event if a new configuration has a lower limit */

    for (i = 0; g->log.count >= g->event_max && i < NGX_MCP_LOG_DROP; i++) {
        ngx_mcp_log_drop_locked(zone, ngx_mcp_block(zone, g->log.list.head));
    }

    return ngx_mcp_log_add_locked(zone, g, in->event, &in->target, &in->stage);
}


void
ngx_mcp_losses_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g)
{
    ngx_str_t             text;
    ngx_mcp_stage_t       stage;
    ngx_mcp_losses_sh_t  *l;

    text.data = ngx_mcp_losses_none;
    text.len = sizeof(ngx_mcp_losses_none);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_LOSSES, &text, 1);
    stage.payer = ngx_mcp_ref(zone, g);

    l = ngx_mcp_make_locked(zone, &stage);
    l->rec.owner = stage.payer;

    ngx_mcp_commit_locked(zone, l, NGX_MCP_LOSSES);

    g->losses = ngx_mcp_number(zone, l);
}


/*
 * Returns the address of position i in the text of the losses.  A position does
 * not cross a block, as the heads of blocks and of the record are multiples of
 * 8 bytes.
 */

static uint64_t *
ngx_mcp_losses_place(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l,
    ngx_uint_t i)
{
    u_char              *p;
    ngx_uint_t           here;
    ngx_mcp_block_sh_t  *block;

    block = &l->rec.block;
    p = (u_char *) l + sizeof(ngx_mcp_losses_sh_t);
    here = (NGX_MCP_BLOCK_SIZE - sizeof(ngx_mcp_losses_sh_t))
           / sizeof(uint64_t);

    while (i >= here) {
        i -= here;
        block = ngx_mcp_block(zone, block->chain);
        p = (u_char *) block + NGX_MCP_BLOCK_HEAD;
        here = NGX_MCP_BLOCK_DATA / sizeof(uint64_t);
    }

    return (uint64_t *) p + i;
}


static void
ngx_mcp_losses_set(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l, ngx_uint_t i,
    uint64_t pos)
{
    uint64_t  *place;

    place = ngx_mcp_losses_place(zone, l, i);

    if (*place < pos) {
        ngx_mcp_touch(zone, place);
        *place = pos;
    }
}


static void
ngx_mcp_losses_add_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    uint64_t pos, ngx_mcp_target_sh_t *target, ngx_uint_t level)
{
    uint64_t              hash;
    ngx_uint_t            i;
    ngx_mcp_losses_sh_t  *l;

    l = ngx_mcp_block(zone, g->losses);
    hash = 0;

    if (target) {
        hash = target->identity ? target->identity : target->audience;

        for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
            if (target->uri[i]) {
                hash = target->uri[i];
                break;
            }
        }

        if (target->flags) {
            ngx_mcp_losses_set(zone, l, NGX_MCP_LOSSES_KINDS, pos);
        }
    }

    i = hash ? NGX_MCP_LOSSES_LEVELS + hash % NGX_MCP_LOSSES_SOME
             : ngx_min(level, NGX_MCP_LOSSES_LEVELS - 1);

    ngx_mcp_losses_set(zone, l, i, pos);
}


static ngx_uint_t
ngx_mcp_losses_lost(ngx_mcp_zone_t *zone, ngx_mcp_losses_sh_t *l,
    uint64_t hash, uint64_t pos)
{
    return *ngx_mcp_losses_place(zone, l, NGX_MCP_LOSSES_LEVELS
                                          + hash % NGX_MCP_LOSSES_SOME)
           > pos;
}


ngx_mcp_lost_e
ngx_mcp_losses_since_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_subscriber_sh_t *sb, uint64_t pos)
{
    uint32_t                    n;
    ngx_uint_t                  i, lost, others;
    ngx_mcp_losses_sh_t        *l;
    ngx_mcp_subscription_sh_t  *sub;

    l = ngx_mcp_block(zone, g->losses);

    lost = 0;
    others = 0;

    for (i = 0; i < NGX_MCP_LOSSES_LEVELS; i++) {

        if (*ngx_mcp_losses_place(zone, l, i) > pos) {
            lost |= (i == 0 || i >= sb->level);
            others |= (i && i < sb->level);
        }
    }

    lost |= ngx_mcp_losses_lost(zone, l, sb->identity, pos)
            || ngx_mcp_losses_lost(zone, l, sb->audience, pos);

    for (n = sb->subscriptions.head; n && !lost; n = sub->rec.links.next) {
        sub = ngx_mcp_block(zone, n);
        lost = ngx_mcp_losses_lost(zone, l, sub->uri, pos);
    }

    if (!lost) {
        return NGX_MCP_LOST_NONE;
    }

    if (*ngx_mcp_losses_place(zone, l, NGX_MCP_LOSSES_GAP) > pos) {
        return NGX_MCP_LOST_GAP;
    }

    for (i = NGX_MCP_LOSSES_LEVELS; i <= NGX_MCP_LOSSES_KINDS && !others; i++) {
        others = (*ngx_mcp_losses_place(zone, l, i) > pos);
    }

    return others ? NGX_MCP_LOST_SOME : NGX_MCP_LOST_ALL;
}
