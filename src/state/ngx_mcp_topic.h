
/*
 * Topics are resources that store their last events, for clients that come
 * later and for calls that wait.  A topic belongs to an endpoint and tenant (a
 * group) and is named by its URI.  It holds the last 32 events and at most 16k
 * of them; their positions grow without end, also when the topic was
 * forgotten in between.
 *
 * A topic is made by the first event, the first subscription or the first
 * call that waits.  Other resources are stored likewise, apart and unlisted,
 * from the first subscription or waiting call on.
 *
 * A topic without subscriptions is dropped an hour after it was used last,
 * earlier when a group has too many, or when room is short and its group has
 * no sessions.
 */

#ifndef _NGX_MCP_TOPIC_H_INCLUDED_
#define _NGX_MCP_TOPIC_H_INCLUDED_


#include "ngx_mcp_caller.h"
#include "ngx_mcp_log.h"


#define NGX_MCP_TOPIC_EVENTS   32
#define NGX_MCP_TOPIC_BYTES    (16 * 1024)
#define NGX_MCP_TOPIC_URI_MAX  2048

/* ms */
#define NGX_MCP_TOPIC_IDLE     3600000

/* a position: where the session began, or, without one, the present */
#define NGX_MCP_TOPIC_BEGIN    ((uint64_t) -1)


typedef struct {
    ngx_str_t               uri;
    ngx_uint_t              limit;        /* of such topics per group */
    ngx_uint_t              share;        /* of them per session, at least 1 */
    unsigned                other:1;      /* another resource */
    unsigned                unannounced:1;  /* even if it is new */
    unsigned                asked:1;      /* only where it is there, which it
                                             does not make longer */
} ngx_mcp_topic_t;


/*
 * Adds an event to the topic of each group that matches (NULL: all), or to
 * that of a session (UUID text; NULL: none) for this session only, and wakes
 * the calls that wait there.  Another resource gets it only where a client has
 * asked for it.  A new topic is announced to its group by
 * notifications/resources/list_changed, once a second at most.  It is one
 * delivery of ngx_mcp_outbox_send().  NGX_OK; NGX_ERROR: at least one topic
 * does not have it, because it is too large, there are too many topics in
 * use, or the zone is full.
 */
ngx_int_t ngx_mcp_topic_add(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_topic_t *topic, ngx_mcp_event_t *event,
    ngx_str_t *session);

/*
 * The topic in the caller's group, made if there is none.  A position *after
 * of this topic is unchanged; any other one, or NGX_MCP_TOPIC_BEGIN, is
 * replaced.  The topic is charged to the session if it is not charged to
 * another one that lives.  When the session's share is used up, its unused
 * topic that was used longest ago is given up.  NGX_OK; NGX_DECLINED: the
 * session ended; NGX_BUSY: too many are in use, by the session or by all;
 * NGX_ERROR: the zone is full or the URI too long.
 */
ngx_int_t ngx_mcp_topic_watch(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t *ref, uint64_t *after);

/* makes one where the group is not there yet, if there is room for both */
void ngx_mcp_topic_open(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_topic_t *topic);

/* NGX_OK; NGX_DECLINED: it has no event; never makes one */
ngx_int_t ngx_mcp_topic_find(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t *ref);

/*
 * The next event that the caller may see, into buf, which has room for
 * NGX_MCP_TOPIC_BYTES; *missed: some between were dropped.
 *
 *   NGX_OK        *len bytes; *after is its position
 *   NGX_AGAIN     there is none; if "wait", handlers->topic will be called
 *   NGX_DECLINED  the topic was forgotten: watch again
 *   NGX_DONE      the session has ended
 */
ngx_int_t ngx_mcp_topic_next(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_ref_t topic, ngx_uint_t wait, uint64_t *after, u_char *buf,
    size_t *len, ngx_uint_t *missed);

/*
 * Likewise the next one, whoever may see it, with "wait"; NGX_OK, NGX_AGAIN or
 * NGX_DECLINED.
 */
ngx_int_t ngx_mcp_topic_any(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic,
    uint64_t *after, u_char *buf, size_t *len, ngx_uint_t *missed);

/* nobody waits in this worker any more */
void ngx_mcp_topic_unwatch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

/*
 * Whether a session of the groups that match (NULL: all) subscribed to the URI,
 * or may be waiting for it: NGX_OK or NGX_DECLINED.
 */
ngx_int_t ngx_mcp_topic_wanted(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri);

/* whether there is any topic in the zone */
ngx_uint_t ngx_mcp_topics_any(ngx_mcp_zone_t *zone);

/*
 * Likewise whether one is there, wanted or not; fast where none is anywhere.
 * NGX_OK: one is, or of many groups some may have it.
 */
ngx_int_t ngx_mcp_topic_exists(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri);

/* whether any topic of a group is wanted, or the group has sessions */
ngx_int_t ngx_mcp_topics_wanted(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant);

/*
 * Makes a lease, as ngx_mcp_lease_ensure(), for a feed of a topic.  It is
 * charged to the session, or else to the client, and to its tenant at the
 * endpoint, which have this many at most.  Also NGX_BUSY: the caller, and
 * NGX_DECLINED: its tenant, has as many; NGX_ABORT: the session has ended.
 */
ngx_int_t ngx_mcp_topic_lease(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_caller_t *caller, ngx_uint_t callers, ngx_uint_t tenants);

/*
 * The session subscribed to this URI: its topic stays for as long.  As
 * ngx_mcp_topic_watch(); also NGX_BUSY when it exists and can not be charged.
 */
ngx_int_t ngx_mcp_topic_subscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_topic_t *topic);


/* topics of a caller's group with events that it may see */

typedef struct {
    ngx_str_t               uri;
    uint64_t                time;         /* of the last event, ms */
} ngx_mcp_topic_info_t;

#define NGX_MCP_TOPIC_LIST   32
#define NGX_MCP_TOPIC_TEXTS  (4 * NGX_MCP_TOPIC_URI_MAX)


/* the topic that was looked at last; all zero at first */

typedef struct {
    uint64_t                serial;
    ngx_mcp_ref_t           ref;
    ngx_uint_t              seen;         /* by now */
    ngx_uint_t              topics;       /* seen, and in the group */
} ngx_mcp_topic_cursor_t;

/*
 * Up to NGX_MCP_TOPIC_LIST of them, perhaps none, in the order in which they
 * were made; their URIs are put into buf of NGX_MCP_TOPIC_TEXTS bytes.  The
 * number in *n; NGX_OK; NGX_DONE: no more follow.
 */
ngx_int_t ngx_mcp_topic_list(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_cursor_t *cursor, u_char *buf, ngx_mcp_topic_info_t *list,
    ngx_uint_t *n);


#endif /* _NGX_MCP_TOPIC_H_INCLUDED_ */
