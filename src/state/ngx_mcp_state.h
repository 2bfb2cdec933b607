
/*
 * Functions that the files of this folder share, beside those of their headers;
 * included by ngx_mcp_state_sh.h.  A file calls only files before it, and those
 * behind it by the zone's schema.
 */

#ifndef _NGX_MCP_STATE_H_INCLUDED_
#define _NGX_MCP_STATE_H_INCLUDED_


/* for what blocks are asked, which decides how many there are for it */

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


/* an entity that may be the first of a client in a group */

typedef struct {
    ngx_str_t              *endpoint;
    ngx_str_t              *tenant;
    uint64_t                account;      /* that pays, its key */
    ngx_str_t              *limit_key;
    ngx_uint_t              limit;        /* of those with this key; 0: none */
    ngx_uint_t              room;         /* ngx_mcp_room_e */
    ngx_uint_t              blocks;
} ngx_mcp_admit_t;

typedef struct {
    ngx_mcp_schema_t        schema;

    /*
     * reserves these blocks, and those of the group, its accounts and the
     * limit, for which sessions that are overdue may end; also NGX_BUSY: the
     * limit
     */
    ngx_int_t             (*admit_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_admit_t *in);
} ngx_mcp_state_schema_t;

#define ngx_mcp_admit_locked(zone, in)                                        \
    ((ngx_mcp_state_schema_t *) (zone)->schema)->admit_locked(zone, in)


/* counts of a process, in zone->counts */

typedef enum {
    NGX_MCP_COUNT_DELETES = 0             /* under way at upstreams */
} ngx_mcp_count_e;


/* ids of events (ngx_mcp_idempotency.c); NULL: it is not known */

ngx_mcp_idempotency_sh_t *ngx_mcp_idempotency_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);
ngx_mcp_idempotency_sh_t *ngx_mcp_idempotency_add_locked(ngx_mcp_zone_t *zone,
    uint64_t key, ngx_uint_t sessions);


/*
 * Reading under a lease (ngx_mcp_consume.c).  init: without the lock.  As
 * ngx_mcp_lease_consume().  set_item: what the event became; unfinished:
 * whether what an earlier one became is not delivered to the end.
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

/* the asking worker died: the former profile stays, and others ask */
void ngx_mcp_profile_give_up_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_profile_sh_t *k);


/* accounts, and limits of sessions (ngx_mcp_account.c) */

/* of a client, or (NULL) of the tenant; find: NULL: there is none */
uint64_t ngx_mcp_account_key(ngx_mcp_zone_t *zone, ngx_str_t *tenant,
    ngx_str_t *client);
ngx_mcp_account_sh_t *ngx_mcp_account_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);

/* client empty: what the sessions of a tenant have in common */
ngx_mcp_ref_t ngx_mcp_account_get_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *tenant, ngx_str_t *client);

/* likewise, by the hash of both */
ngx_mcp_ref_t ngx_mcp_account_restore_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *tenant, uint64_t key);

uint32_t ngx_mcp_account_of_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t payer);
void ngx_mcp_account_charge_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks);
void ngx_mcp_account_release_locked(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_uint_t type, ngx_uint_t blocks);

/* the list of its account that an event is in */
ngx_mcp_list_sh_t *ngx_mcp_account_events(ngx_mcp_zone_t *zone,
    ngx_mcp_event_sh_t *e);

/*
 * get: makes it, too, for which room was reserved; it is gone when empty.  The
 * hash is ngx_mcp_limit_hash().
 */
#define ngx_mcp_limit_hash(zone, endpoint, key)                               \
    ((uint32_t) ngx_mcp_hash(zone, endpoint, key))

ngx_mcp_limit_sh_t *ngx_mcp_limit_find_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *key, uint32_t hash);
ngx_mcp_limit_sh_t *ngx_mcp_limit_get_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *key, uint32_t hash);
void ngx_mcp_limit_leave_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_extension_sh_t *e);

/* one less is counted by this one */
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

/* the log of a session, call, topic or group */
ngx_mcp_log_sh_t *ngx_mcp_log_of(void *owner);

/* an event that is linked at the end of a log; room was reserved */
ngx_mcp_event_sh_t *ngx_mcp_log_add_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_event_t *event, ngx_mcp_target_sh_t *target,
    ngx_mcp_stage_t *stage);

/* the session or running call, and its session; NULL: it is gone */
void *ngx_mcp_log_owner_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_session_sh_t **session);

/*
 * To the channel of an owner, and to a group's log, where a gap has no event.
 * room: it was reserved, and made in the session (ngx_mcp_log_shrink_locked()).
 * NGX_OK; NGX_ERROR: a place without a body.
 */
ngx_int_t ngx_mcp_log_channel_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_log_input_t *in, ngx_uint_t room, ngx_mcp_cursor_t *cursor);
ngx_int_t ngx_mcp_log_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_log_input_t *in, ngx_uint_t room,
    ngx_uint_t gap);

/*
 * Makes room for one event more in a session, on the channel of c or, if that
 * is NULL, on the general one; "beside" others are about to be added as well.
 * May commit.  NGX_OK or NGX_DECLINED.
 */
ngx_int_t ngx_mcp_log_shrink_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c, ngx_uint_t beside);

/*
 * Drops what has to go first for an event likewise.  NGX_DONE: the event may
 * take the place of the dropped one; NGX_DECLINED: nothing was dropped.
 */
ngx_int_t ngx_mcp_log_oldest_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c);
void ngx_mcp_log_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_event_sh_t *e);

/* drops up to max events; the number dropped */
ngx_uint_t ngx_mcp_log_clear_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_log_sh_t *log, ngx_uint_t max);

/* the channel of a call that has finished */
void ngx_mcp_channel_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c);

void ngx_mcp_losses_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g);

/* whether a subscriber, perhaps, lost an event of the group's log behind pos */

typedef enum {
    NGX_MCP_LOST_NONE = 0,
    NGX_MCP_LOST_ALL,                     /* all that is missing */
    NGX_MCP_LOST_SOME,                    /* of it, or nobody knows */
    NGX_MCP_LOST_GAP                      /* there is one of unknown size */
} ngx_mcp_lost_e;

ngx_mcp_lost_e ngx_mcp_losses_since_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_subscriber_sh_t *sb, uint64_t pos);


/* groups */

#define ngx_mcp_group_endpoint(zone, g)                                       \
    ((ngx_mcp_group_sh_t *) ngx_mcp_block(zone, (g)->endpoint))

/* NGX_MCP_GROUP, or NGX_MCP_ENDPOINT with tenant NULL; NULL: there is none */
ngx_mcp_group_sh_t *ngx_mcp_group_find_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t type, ngx_str_t *endpoint, ngx_str_t *tenant);

#define ngx_mcp_group_lookup_locked(zone, endpoint, tenant)                   \
    ngx_mcp_group_find_locked(zone, NGX_MCP_GROUP, endpoint, tenant)

/* finds it, or makes it, for which room was reserved */
ngx_mcp_group_sh_t *ngx_mcp_group_get_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *tenant);
ngx_uint_t ngx_mcp_group_matches(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *endpoint, ngx_str_t *tenant);

/* a group, or an endpoint; NULL: it is gone */
ngx_mcp_group_sh_t *ngx_mcp_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);

/* so many sessions more */
void ngx_mcp_group_count_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_int_t n);

/* the group is not notified any more of changes of its topics */
void ngx_mcp_group_clean_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g);

/* frees it once nobody needs it */
void ngx_mcp_group_settle_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g);

/* the session, which has not ended, has a GET stream from now on, or none */
void ngx_mcp_group_gets_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_int_t n);

/* frees a part of groups without sessions; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_group_sweep_locked(ngx_mcp_zone_t *zone);

/* the groups of an endpoint and tenant (NULL: of all) one by one */

typedef struct {
    ngx_str_t              *endpoint;
    ngx_str_t              *tenant;
    uint64_t                number;
    ngx_uint_t              type;         /* may be set to NGX_MCP_ENDPOINT */
    ngx_mcp_ref_t           ref;
} ngx_mcp_groups_t;

void ngx_mcp_groups_init(ngx_mcp_groups_t *groups, ngx_str_t *endpoint,
    ngx_str_t *tenant);
ngx_int_t ngx_mcp_groups_next(ngx_mcp_zone_t *zone, ngx_mcp_groups_t *groups,
    ngx_mcp_ref_t *ref);

/* groups->ref; also NGX_AGAIN: some did not match */
ngx_int_t ngx_mcp_groups_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_groups_t *groups);


/* audiences */

void ngx_mcp_audience_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a);

/* drops lists of these kinds that passed: others are fetched again */
void ngx_mcp_audience_passed_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *aud, ngx_mcp_part_sh_t *p, ngx_uint_t kinds);

ngx_int_t ngx_mcp_audience_reclaim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t but);

/* the session that has this extension ends, or joins another one */
void ngx_mcp_audience_leave_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_extension_sh_t *e);

/* that of a group with this hash of its key, or NULL */
ngx_mcp_audience_sh_t *ngx_mcp_audience_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, uint64_t key);

/* the part of an upstream, or NULL */
ngx_mcp_part_sh_t *ngx_mcp_audience_part_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_sh_t *a, ngx_str_t *upstream);


/* wants (ngx_mcp_want.h) */

/* the hash of an identity or a list key that is empty, which is no want */
uint64_t ngx_mcp_want_none(ngx_mcp_zone_t *zone);

/* the want that an event is for: of several, the one of the fewest readers */
uint64_t ngx_mcp_event_want(ngx_mcp_target_sh_t *target, uint64_t none);

/* how many places there are in a zone of this size */
size_t ngx_mcp_wanted_places(size_t size);

/* wakes the workers that may have readers of a new event; NULL: all of them */
void ngx_mcp_group_ring_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_mcp_target_sh_t *target);


/* subscribers */

/* that of a live record that has one, which is a session; NULL: it is gone */
ngx_mcp_subscriber_sh_t *ngx_mcp_subscriber_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner);

#define ngx_mcp_subscriber_group(zone, sb)                                    \
    ((ngx_mcp_group_sh_t *) ngx_mcp_block(zone, (sb)->group))

/* whether it does not get what is only for these */
ngx_uint_t ngx_mcp_subscriber_hidden_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_target_sh_t *target);

/* its position is not before this one */
void ngx_mcp_subscriber_move_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_cursor_t *cursor);

/* wakes the stream that carries it, if one does */
void ngx_mcp_subscriber_wake_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_uint_t reasons);

/* the subscription to a URI with this hash, or NULL */
ngx_mcp_subscription_sh_t *ngx_mcp_subscriber_find_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_subscriber_sh_t *sb, uint64_t uri);

/* puts a subscription into the filter, and takes it out ... */
void ngx_mcp_subscriber_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub);
void ngx_mcp_subscriber_remove_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb, ngx_mcp_subscription_sh_t *sub);

/* ... after which the filter is that of those that are left */
void ngx_mcp_subscriber_filter_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscriber_sh_t *sb);


/* topics */

ngx_mcp_topic_sh_t *ngx_mcp_topic_lookup_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_str_t *uri);

/* finds or makes it, for which room was reserved; NULL: too many are in use */
ngx_mcp_topic_sh_t *ngx_mcp_topic_get_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_t *topic, ngx_mcp_ref_t payer);

/* it counts for the share of this session, where there is room for it */
void ngx_mcp_topic_charge_locked(ngx_mcp_zone_t *zone, ngx_mcp_topic_sh_t *t,
    ngx_mcp_session_sh_t *s);

void ngx_mcp_topic_unsubscribe_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub);

/*
 * Some of groups without sessions go, or some without events, that nobody uses;
 * their number.
 */
ngx_uint_t ngx_mcp_topic_reclaim_locked(ngx_mcp_zone_t *zone,
    ngx_uint_t orphans);

/* announces changes, drops idle topics; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_topic_sweep_locked(ngx_mcp_zone_t *zone);

/*
 * Adds an event to a topic of the group, and announces a new topic.  room: it
 * was reserved for all of that.  NGX_OK; NGX_ERROR: it is not added.
 */
ngx_int_t ngx_mcp_topic_keep_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_mcp_topic_t *topic, ngx_mcp_log_input_t *in,
    ngx_uint_t room);

/* whether there is that topic, or another resource */
ngx_uint_t ngx_mcp_topic_there_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_str_t *uri, ngx_uint_t other);


/* upstream sessions, and the DELETEs that are due for them */

/* the upstream is to get a DELETE */
void ngx_mcp_pending_delete_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);

/* sends one; NGX_DECLINED: there is none */
ngx_int_t ngx_mcp_pending_delete_send(ngx_mcp_zone_t *zone);

ngx_mcp_upstream_session_sh_t *ngx_mcp_upstream_session_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

/* of the group's audience, by hashes of its list key and of the upstream */
ngx_mcp_upstream_session_sh_t *ngx_mcp_shared_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, uint64_t audience, uint64_t upstream);
void ngx_mcp_shared_ring_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);

/* the worker died, which made it or held its stream */
void ngx_mcp_upstream_session_lost_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_uint_t worker);

ngx_uint_t ngx_mcp_upstream_session_receives_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint64_t stamp);
void ngx_mcp_listeners_ring_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
void ngx_mcp_upstream_session_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us);
void ngx_mcp_upstream_sessions_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* interests */

/* one more, made by the first; room for it was reserved */
ngx_mcp_interest_sh_t *ngx_mcp_interest_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_sh_t *us, ngx_mcp_stage_t *stage, uint64_t hash);

/* a subscription, or a call, that shares it goes; block 0: none */
void ngx_mcp_interest_leave_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t interest);

/* one of them, whoever shares it; NGX_DECLINED: none is left */
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
 * Drops its events and subscriptions, if there are more than that: called
 * without the lock before the session ends, which then is a short hold.
 */
#define NGX_MCP_SESSION_PART  128

void ngx_mcp_session_empty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);

/*
 * Drops events and channels of finished calls, "max" at most; a client that
 * comes back meanwhile gets a gap.  Returns how many.
 */
ngx_uint_t ngx_mcp_session_trim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_uint_t max);

/* it was used, or a call or stream of it is gone: is idle from now, or freed */
void ngx_mcp_session_settle_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);

/* a stream of it begins; neither stream nor call is there, since s->touched */
void ngx_mcp_idle_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s);
void ngx_mcp_idle_enter_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s);


/* an exclusive one ends, once no stream reads a channel of it */
void ngx_mcp_exclusive_spend_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* calls */

/* one of a caller without a session runs in this one; NGX_OK or NGX_DECLINED */
ngx_int_t ngx_mcp_call_join_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_t *call);

/* the call that has this channel, or NULL */
ngx_mcp_call_sh_t *ngx_mcp_channel_call_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, uint32_t channel);

/* the worker that ran it died */
void ngx_mcp_call_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c);
void ngx_mcp_finished_trim_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);


/* streams */

void ngx_mcp_stream_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_stream_sh_t *st,
    ngx_mcp_counter_e counter);


/*
 * Room (ngx_mcp_reclaim.c).  ngx_mcp_reserve_locked() makes sure that n blocks
 * are free, and within the share of the account that the payer is charged to,
 * or is.  For that it drops what was delivered to the account's readers, ends
 * its sessions that are overdue, and those of others for one that holds little.
 */

ngx_int_t ngx_mcp_room_reserve_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t payer, ngx_uint_t room, ngx_uint_t n);
ngx_int_t ngx_mcp_room_admit_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_admit_t *in);

/* beside others, reserved under this hold of the lock and not used yet */
ngx_int_t ngx_mcp_room_beside_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t payer, ngx_uint_t room, ngx_uint_t n, ngx_uint_t beside);

/* logs that room was refused */
void ngx_mcp_room_full(ngx_mcp_zone_t *zone);

/* ends what is idle for too long; NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_expire_locked(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_STATE_H_INCLUDED_ */
