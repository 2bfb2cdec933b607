
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Functions that only the files of this folder call.  ngx_mcp_state_sh.h
 * includes this header.  The files have an order: a file calls functions of
 * files before it only, and calls the files after it through the zone's schema.
 */

#ifndef _NGX_MCP_STATE_H_INCLUDED_
#define _NGX_MCP_STATE_H_INCLUDED_


/* purposes of reserved blocks; they decide how many blocks may be used */

typedef enum {
    /* The module itself needs them.  It may take all free blocks. */
    NGX_MCP_ROOM_OTHER = 0,

    /* A session is made.  It stays within the share and leaves the reserve. */
    NGX_MCP_ROOM_NEW,

    /* A record of a client or tenant is made.  It stays within the share. */
    NGX_MCP_ROOM_SHARE,

    /*
     * A call or stream, or a record that it needs, is made.  Beyond the share
     * it may use the reserve.
     */
    NGX_MCP_ROOM_CALL,

    /* An event is kept.  It may replace older events of the same payer. */
    NGX_MCP_ROOM_EVENT
} ngx_mcp_room_e;

#define ngx_mcp_stage_reserve_locked(zone, stage)                             \
    ngx_mcp_reserve_locked(zone, (stage)->payer, (stage)->room,               \
                           ngx_mcp_stage_needs(stage))


/* a request for the first record of a client, whose group may be new as well */

typedef struct {
    ngx_str_t              *endpoint;
    ngx_str_t              *tenant;
    uint64_t                account;      /* key of the account that pays */
    ngx_str_t              *limit_key;
    ngx_uint_t              limit;        /* most sessions with limit_key; 0:
                                             any number */
    ngx_uint_t              room;         /* ngx_mcp_room_e */
    ngx_uint_t              blocks;       /* blocks of the record */
} ngx_mcp_admit_t;

typedef struct {
    ngx_mcp_schema_t        schema;

    /*
     * reserves in->blocks, and blocks for the group, the accounts and the
     * limit; sessions that are overdue may end for that.  Returns the same as
     * ngx_mcp_reserve_locked(), or NGX_BUSY: the limit is reached
     */
    ngx_int_t             (*admit_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_admit_t *in);
} ngx_mcp_state_schema_t;

#define ngx_mcp_admit_locked(zone, in)                                        \
    ((ngx_mcp_state_schema_t *) (zone)->schema)->admit_locked(zone, in)


/* counts of a process, in zone->counts */

typedef enum {
    NGX_MCP_COUNT_DELETES = 0             /* DELETE requests under way */
} ngx_mcp_count_e;


/*
 * Ids of events (ngx_mcp_idempotency.c).  find() returns NULL if the id is not
 * known.  add() stores an id in place of the oldest one.
 */

ngx_mcp_idempotency_sh_t *ngx_mcp_idempotency_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);
ngx_mcp_idempotency_sh_t *ngx_mcp_idempotency_add_locked(ngx_mcp_zone_t *zone,
    uint64_t key, ngx_uint_t sessions);


/*
 * Reading under a lease (ngx_mcp_consume.c).  init() hashes the text, without
 * the lock; consume_locked() returns the same as ngx_mcp_lease_consume().
 * set_item() stores the item that delivers the event; unfinished() returns
 * whether such an item still delivers an earlier event, and sets *item to it.
 */

void ngx_mcp_consume_init(ngx_mcp_zone_t *zone, ngx_mcp_consume_t *consume);
ngx_int_t ngx_mcp_consume_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume);
void ngx_mcp_consume_set_item_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume, ngx_mcp_ref_t item);
ngx_uint_t ngx_mcp_consume_unfinished_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume, ngx_mcp_ref_t *item);


/* profiles of upstreams */

void ngx_mcp_profile_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_profile_sh_t *k);

/*
 * Called when the worker that asked the upstream died: the former profile
 * stays, and another worker may ask.
 */
void ngx_mcp_profile_give_up_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_profile_sh_t *k);


/* accounts, and limits of sessions (ngx_mcp_account.c) */

/*
 * The key of an account is ngx_mcp_hash() of the tenant and client, or, with
 * client NULL, of the tenant.  The account that the sessions of a tenant have
 * in common has an empty client.  ngx_mcp_account_find_locked(): NULL: there is
 * none.  ngx_mcp_account_get_locked(): finds or makes the account and that of
 * its tenant; room for both was reserved.
 */
ngx_mcp_account_sh_t *ngx_mcp_account_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);

ngx_mcp_ref_t ngx_mcp_account_get_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *tenant, uint64_t key);
uint32_t ngx_mcp_account_of_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer);
void ngx_mcp_account_charge_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks);
void ngx_mcp_account_release_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks);

/* returns the list of an account in which the event is linked by its age */
ngx_mcp_list_sh_t *ngx_mcp_account_events(ngx_mcp_zone_t *zone,
    ngx_mcp_event_sh_t *e);

/*
 * Limits of sessions; hash: ngx_mcp_limit_hash().  find: NULL: there is none;
 * get: finds or makes one, whose room was reserved.  A limit is dropped when
 * its count is 0.
 */
#define ngx_mcp_limit_hash(zone, endpoint, key)                               \
    ((uint32_t) ngx_mcp_hash(zone, endpoint, key))

ngx_mcp_limit_sh_t *ngx_mcp_limit_find_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *key, uint32_t hash);
ngx_mcp_limit_sh_t *ngx_mcp_limit_get_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *key, uint32_t hash);
void ngx_mcp_limit_leave_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_extension_sh_t *e);

/* lowers the count of the limit in this block by one */
void ngx_mcp_limit_drop_locked(ngx_mcp_zone_t *zone, uint32_t limit);


/* logs, and the channels of sessions and calls (ngx_mcp_log.c) */

typedef struct {
    ngx_mcp_event_t        *event;
    ngx_mcp_target_sh_t     target;
    ngx_mcp_stage_t         stage;
} ngx_mcp_log_input_t;

void ngx_mcp_log_input(ngx_mcp_zone_t *zone, ngx_mcp_log_input_t *in,
    ngx_mcp_event_t *event);
void ngx_mcp_log_target(ngx_mcp_zone_t *zone, ngx_mcp_event_t *event,
    ngx_mcp_target_sh_t *target);

/* returns the log of a session, call, topic or group */
ngx_mcp_log_sh_t *ngx_mcp_log_of(void *owner);

/* makes an event, whose room was reserved, at the end of a log */
ngx_mcp_event_sh_t *ngx_mcp_log_add_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_event_t *event, ngx_mcp_target_sh_t *target,
    ngx_mcp_stage_t *stage);

/*
 * Finds the live session or running call that the reference names; *session
 * becomes the session, or that of the call.  NULL: it has ended.
 */
void *ngx_mcp_log_owner_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_session_sh_t **session);

/*
 * Implements ngx_mcp_log_session() and ngx_mcp_log_call().  finish: called for
 * the call before the lock is released; NULL: the call runs on.
 */
ngx_int_t ngx_mcp_log_to_owner(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_event_t *event, ngx_mcp_cursor_t *cursor,
    void (*finish)(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c));

/*
 * Append an event to the channel of its owner, or an event or (gap) a gap to a
 * group's log.  has_room: 1: blocks were reserved, and the session has room
 * (ngx_mcp_log_shrink_locked()).  NGX_OK; NGX_ERROR: the event has got a
 * position, but its text is not stored.
 */
ngx_int_t ngx_mcp_log_channel_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_log_input_t *in, ngx_uint_t has_room, ngx_mcp_cursor_t *cursor);
ngx_int_t ngx_mcp_log_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_log_input_t *in, ngx_uint_t has_room,
    ngx_uint_t gap);

/*
 * Makes room for one more event in a session, on the channel of the call c or,
 * if c is NULL, on the general channel.  others: number of other events that
 * are about to be added.  May end a step of the transaction.  NGX_OK;
 * NGX_DECLINED: there is no room.
 */
ngx_int_t ngx_mcp_log_shrink_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c, ngx_uint_t others);

/*
 * Drops an event of a session so that a new event on this channel has room: the
 * oldest one that may be dropped.  NGX_OK; NGX_DONE: the new event may take the
 * place of the dropped one; NGX_DECLINED: nothing was dropped.
 */
ngx_int_t ngx_mcp_log_drop_oldest_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c);
void ngx_mcp_log_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e);

/* drops up to max events; returns their number */
ngx_uint_t ngx_mcp_log_clear_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_log_sh_t *log, ngx_uint_t max);

/* drops a finished call, with its channel */
void ngx_mcp_channel_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c);

void ngx_mcp_losses_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g);

/*
 * Tells which of the events that are missing after pos in a group's log were
 * for a subscriber.
 */

typedef enum {
    NGX_MCP_LOST_NONE = 0,
    NGX_MCP_LOST_ALL,
    NGX_MCP_LOST_SOME,                    /* perhaps some, perhaps none */
    NGX_MCP_LOST_GAP                      /* an unknown number of events is
                                             missing */
} ngx_mcp_lost_e;

ngx_mcp_lost_e ngx_mcp_losses_since_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_subscriber_sh_t *sb, uint64_t pos);


/* groups */

#define ngx_mcp_group_endpoint(zone, g)                                       \
    ((ngx_mcp_group_sh_t *) ngx_mcp_block(zone, (g)->endpoint))

/*
 * Finds a group.  type: NGX_MCP_GROUP, or NGX_MCP_ENDPOINT with tenant NULL.
 * NULL: there is none.
 */
ngx_mcp_group_sh_t *ngx_mcp_group_find_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t type, ngx_str_t *endpoint, ngx_str_t *tenant);

#define ngx_mcp_group_lookup_locked(zone, endpoint, tenant)                   \
    ngx_mcp_group_find_locked(zone, NGX_MCP_GROUP, endpoint, tenant)

/* finds or makes a group, whose room was reserved */
ngx_mcp_group_sh_t *ngx_mcp_group_get_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *tenant);
ngx_uint_t ngx_mcp_group_matches(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *endpoint, ngx_str_t *tenant);

/* returns the group or endpoint of a reference; NULL: it is gone */
ngx_mcp_group_sh_t *ngx_mcp_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);

/* adds n, which may be negative, to the number of sessions */
void ngx_mcp_group_count_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_int_t n);

/* cancels the pending notification that topics of the group changed */
void ngx_mcp_group_clean_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g);

/* frees the group if nobody needs it, at once or in sweeps */
void ngx_mcp_group_drop_unused_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g);

/*
 * Called when a live session has got its first GET stream (n 1) or has lost its
 * last one (n -1).
 */
void ngx_mcp_group_gets_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_int_t n);

/*
 * Frees a part of the logs of groups in root->removals.  NGX_OK; NGX_AGAIN:
 * more is left.
 */
ngx_int_t ngx_mcp_group_sweep_locked(ngx_mcp_zone_t *zone);

/* a walk over groups, in the order of their numbers */

typedef struct {
    ngx_str_t              *endpoint;     /* NULL: groups of all endpoints */
    ngx_str_t              *tenant;       /* NULL: groups of all tenants */
    uint64_t                number;       /* number of the group at "ref", or,
                                             if only a tenant is given, of the
                                             endpoint looked at last */
    ngx_uint_t              type;         /* NGX_MCP_GROUP, unless the caller
                                             sets NGX_MCP_ENDPOINT */
    ngx_mcp_ref_t           ref;          /* group that was found last */
} ngx_mcp_groups_t;

void ngx_mcp_groups_init(ngx_mcp_groups_t *groups, ngx_str_t *endpoint,
    ngx_str_t *tenant);

/*
 * Finds the next group.  NGX_OK: groups->ref is the group; NGX_DONE: there are
 * no more; NGX_AGAIN: it was not among the groups examined under this hold of
 * the lock.
 */
ngx_int_t ngx_mcp_groups_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_groups_t *groups);


/* audiences */

void ngx_mcp_audience_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a);

/*
 * Drops the lists of these kinds that were copied from responses to clients
 * (ngx_mcp_list_keep()).
 */
void ngx_mcp_audience_drop_passed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p, ngx_uint_t kinds);

ngx_int_t ngx_mcp_audience_reclaim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t except);

/* ends the membership of the session that has this extension */
void ngx_mcp_audience_leave_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_extension_sh_t *e);

/* returns the audience of a group with this hash of its list key, or NULL */
ngx_mcp_audience_sh_t *ngx_mcp_audience_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, uint64_t key);

/* returns the part of an audience for this upstream, or NULL */
ngx_mcp_part_sh_t *ngx_mcp_audience_part_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a, ngx_str_t *upstream);


/* wants (ngx_mcp_want.c) */

/* returns the hash of an empty identity or list key, which is no want */
uint64_t ngx_mcp_want_none(ngx_mcp_zone_t *zone);

/*
 * Returns the want of an event; if the event has several, the one that is
 * likely to have the fewest readers.  none: ngx_mcp_want_none().
 */
uint64_t ngx_mcp_event_want(ngx_mcp_target_sh_t *target, uint64_t none);

/* returns the number of places of wants in a zone of this size */
size_t ngx_mcp_wanted_places(size_t size);

/*
 * Wakes the workers that may have readers of a new event in the group's log.
 * target NULL: wakes all workers that watch the group.
 */
void ngx_mcp_group_ring_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_target_sh_t *target);


/* subscribers */

/* returns the subscriber of a live session; NULL: the session is gone */
ngx_mcp_subscriber_sh_t *ngx_mcp_subscriber_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner);

#define ngx_mcp_subscriber_group(zone, sb)                                    \
    ((ngx_mcp_group_sh_t *) ngx_mcp_block(zone, (sb)->group))

/* returns whether the subscriber must not get events for this target */
ngx_uint_t ngx_mcp_subscriber_hidden_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_target_sh_t *target);

/* moves the subscriber's position to this one, unless it is behind it */
void ngx_mcp_subscriber_move_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_cursor_t *cursor);

/* wakes the stream that carries the subscriber, if there is one */
void ngx_mcp_subscriber_wake_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_uint_t reasons);

/* returns the subscription to a URI with this hash, or NULL */
ngx_mcp_subscription_sh_t *ngx_mcp_subscriber_find_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_subscriber_sh_t *sb, uint64_t uri);

/* add and remove a subscription */
void ngx_mcp_subscriber_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub);
void ngx_mcp_subscriber_remove_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub);


/* topics */

ngx_mcp_topic_sh_t *ngx_mcp_topic_lookup_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_str_t *uri);

/*
 * Finds or makes a topic; room for it was reserved.  NULL: the group has as
 * many topics as it may, and all are in use.
 */
ngx_mcp_topic_sh_t *ngx_mcp_topic_get_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_t *topic, ngx_mcp_ref_t payer);

/* charges a topic to the share of a session, which has to have room for it */
void ngx_mcp_topic_charge_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t,
    ngx_mcp_session_sh_t *s);

void ngx_mcp_topic_unsubscribe_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub);

/*
 * Drops some topics that are not in use: of groups without sessions (orphans),
 * or without events.  Returns their number.
 */
ngx_uint_t ngx_mcp_topic_reclaim_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t orphans);

/*
 * Notifies groups of changes of their topics, and drops idle topics.  NGX_OK;
 * NGX_AGAIN: more is left.
 */
ngx_int_t ngx_mcp_topic_sweep_locked(ngx_mcp_zone_t *zone);

/*
 * Adds an event to a topic of the group, and announces a new topic.  has_room:
 * 1: blocks for all of that were reserved.  NGX_OK; NGX_ERROR: the event is not
 * added.
 */
ngx_int_t ngx_mcp_topic_keep_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_t *topic, ngx_mcp_log_input_t *in,
    ngx_uint_t has_room);

/*
 * Returns whether the group has this topic or, with "other", this resource that
 * is no topic.
 */
ngx_uint_t ngx_mcp_topic_exists_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_str_t *uri, ngx_uint_t other);


/* upstream sessions, and their pending DELETE requests */

/* turns an upstream session into a pending DELETE */
void ngx_mcp_pending_delete_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);

/*
 * Has this worker send one DELETE (handlers->pending_delete).  NGX_OK;
 * NGX_DECLINED: none is pending, or this worker can not send one now.
 */
ngx_int_t ngx_mcp_pending_delete_send(ngx_mcp_zone_t *zone);

ngx_mcp_upstream_session_sh_t *ngx_mcp_upstream_session_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

/*
 * Finds the shared upstream session of an audience, by the hashes of the list
 * key and of the upstream's name.  NULL: there is none.
 */
ngx_mcp_upstream_session_sh_t *ngx_mcp_shared_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, uint64_t audience, uint64_t upstream);
void ngx_mcp_shared_ring_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);

/*
 * Called when a worker died that was making the session at the upstream or held
 * its GET stream: other workers may now do so.
 */
void ngx_mcp_upstream_session_lost_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_uint_t worker);

ngx_uint_t ngx_mcp_upstream_session_receives_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_event_sh_t *e);
void ngx_mcp_listeners_ring_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
void ngx_mcp_upstream_session_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);
void ngx_mcp_upstream_sessions_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* interests */

/*
 * Finds or makes the interest in the URI with this hash, and adds one to its
 * users.  stage: text and payer of a new interest; room for it was reserved.
 */
ngx_mcp_interest_sh_t *ngx_mcp_interest_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_mcp_stage_t *stage, uint64_t hash);

/*
 * Removes one user, which is a subscription or a call, from an interest.  Does
 * nothing if the interest has block 0.
 */
void ngx_mcp_interest_leave_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t interest);

/* drops one interest with all its users; NGX_DECLINED: none is left */
ngx_int_t ngx_mcp_interest_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);


/* subscriptions */

ngx_mcp_subscription_sh_t *ngx_mcp_subscription_find_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner, ngx_str_t *uri);
void ngx_mcp_subscription_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub);


/* server requests */

void ngx_mcp_server_requests_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* sessions */

#define ngx_mcp_session_group(zone, s)                                        \
    ((ngx_mcp_group_sh_t *) ngx_mcp_block(zone, (s)->rec.owner.block))

#define ngx_mcp_session_extension(zone, s)                                    \
    ((ngx_mcp_extension_sh_t *) ngx_mcp_block(zone, (s)->extension))

ngx_mcp_session_sh_t *ngx_mcp_session_lookup_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *id);
void ngx_mcp_session_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_counter_e counter);

/*
 * Drops events and subscriptions of a session in parts, until at most
 * NGX_MCP_SESSION_PART are left.  Called without the lock before the session
 * ends, so that its end takes only a short hold of the lock.
 */
#define NGX_MCP_SESSION_PART  128

void ngx_mcp_session_empty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);

/*
 * Drops events and channels of finished calls, at most "max"; a client that
 * comes back meanwhile gets a gap.  Returns their number.
 */
ngx_uint_t ngx_mcp_session_trim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_uint_t max);

/*
 * To be called after a use of the session, or the end of a call or stream: the
 * session is idle from now on, or is freed.
 */
void ngx_mcp_session_after_use_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);

/*
 * leave: a stream of the session begins; enter: the session has no stream and
 * no call any more, and is idle since s->touched.
 */
void ngx_mcp_idle_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s);
void ngx_mcp_idle_enter_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s);


/* ends an exclusive session as soon as no stream reads one of its channels */
void ngx_mcp_exclusive_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* calls */

/*
 * Moves the call of a caller without a session to this exclusive session.
 * NGX_OK; NGX_DECLINED: the call has ended, or has a session.
 */
ngx_int_t ngx_mcp_call_join_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_t *call);

/* returns the hash of an id or a progress token of a call */
uint32_t ngx_mcp_call_hash(ngx_str_t *text);

/* returns the call that has this channel, or NULL */
ngx_mcp_call_sh_t *ngx_mcp_channel_call_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint32_t channel);

/* ends a call after the worker that ran it died */
void ngx_mcp_call_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c);
void ngx_mcp_finished_trim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* streams */

void ngx_mcp_stream_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_stream_sh_t *st,
    ngx_mcp_counter_e counter);


/*
 * Room (ngx_mcp_reclaim.c).  ngx_mcp_reserve_locked() makes sure that n blocks
 * are free, and that they are within the share of the account that pays: the
 * payer itself, or the account to which the payer is charged.  For that it
 * drops events that the account's readers have read, and ends sessions of the
 * account that are overdue; for an account that holds little, also sessions of
 * other accounts.
 */

ngx_int_t ngx_mcp_room_reserve_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t payer, ngx_uint_t room, ngx_uint_t n);
ngx_int_t ngx_mcp_room_admit_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_admit_t *in);

/*
 * The same; reserved: number of blocks that were reserved before under this
 * hold of the lock and are not used yet.
 */
ngx_int_t ngx_mcp_room_reserve_more_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t payer, ngx_uint_t room, ngx_uint_t n, ngx_uint_t reserved);

/* logs that room was refused */
void ngx_mcp_room_full(ngx_mcp_zone_t *zone);

/* ends sessions that are idle for too long; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_expire_locked(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_STATE_H_INCLUDED_ */
