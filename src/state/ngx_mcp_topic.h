
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Topics are resources of the module.  They store their last events for clients
 * that connect later and for calls that wait.  A topic belongs to an endpoint
 * and tenant (a group) and is named by its URI.  It stores the last 32 events,
 * but at most 16k bytes of them.  Positions always grow, even if the topic was
 * dropped and made again.
 *
 * A topic is made by the first event, the first subscription or the first call
 * that waits for it.  Events of upstreams' resources ("other" ones) are stored
 * in the same way from the first subscription or waiting call on, but these
 * resources are counted apart from topics and are not listed.
 *
 * A topic without subscriptions is dropped an hour after its last use; earlier
 * if its group has too many topics, or if room is short and its group has no
 * sessions.
 */

#ifndef _NGX_MCP_TOPIC_H_INCLUDED_
#define _NGX_MCP_TOPIC_H_INCLUDED_


#include "ngx_mcp_caller.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_session.h"


#define NGX_MCP_TOPIC_EVENTS   32
#define NGX_MCP_TOPIC_BYTES    (16 * 1024)
#define NGX_MCP_TOPIC_URI_MAX  2048

/* ms; a topic without subscriptions is dropped after so long without use */
#define NGX_MCP_TOPIC_IDLE     3600000

/* a position: the start of the session or, without a session, the present */
#define NGX_MCP_TOPIC_BEGIN    ((uint64_t) -1)


typedef struct {
    ngx_str_t               uri;
    ngx_uint_t              limit;        /* most topics (with "other": other
                                             resources) of a group */
    ngx_uint_t              share;        /* most of these that are charged to
                                             one session; at least 1 */
    unsigned                other:1;      /* a resource that is no topic */
    unsigned                unannounced:1;  /* clients are not notified even if
                                               it is new */
    unsigned                existing:1;   /* an event makes no new topic, and
                                             does not count as a use of an
                                             existing one */
} ngx_mcp_topic_t;


/*
 * Adds an event to the topic of each group that matches (NULL: all), or, for
 * one session only (UUID text; NULL: none), to the topic in its group, and
 * wakes the calls that wait for the topic.  An "other" resource gets the event
 * only in groups where a client subscribed to it or waits for it.  A new topic
 * is announced to its group by notifications/resources/list_changed, once a
 * second at most.  The event is one delivery of ngx_mcp_outbox_send().  NGX_OK;
 * NGX_ERROR: at least one topic does not have the event, because it is too
 * large, too many topics are in use, or the zone is full.
 */
ngx_int_t ngx_mcp_topic_add(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_topic_t *topic, ngx_mcp_event_t *event,
    ngx_str_t *session);

/*
 * Finds or makes the topic in the caller's group.  A position *after behind
 * all events of the zone, such as NGX_MCP_TOPIC_BEGIN, is replaced by the
 * start of the session or, without a session, by the present.  The topic is
 * charged to the session unless it is charged to another live one.  When the
 * session's share is used up, its topic that is not in use and was used
 * longest ago is given up.  NGX_OK; NGX_DECLINED: the session has ended;
 * NGX_BUSY: too many topics are in use, by the session or by all; NGX_ERROR:
 * the zone is full or the URI is too long.
 */
ngx_int_t ngx_mcp_topic_watch(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t *ref, uint64_t *after);

/* if the group does not exist, and there is room: makes it, with the topic */
void ngx_mcp_topic_open(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_topic_t *topic);

/* finds a topic with events; NGX_OK; NGX_DECLINED: there is none */
ngx_int_t ngx_mcp_topic_find(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_mcp_ref_t *ref);

typedef struct {
    uint64_t                position;     /* 0: before the first event */
    ngx_str_t               text;         /* text.data is a buffer of the
                                             caller with room for
                                             NGX_MCP_TOPIC_BYTES */
    ngx_uint_t              missed;       /* 1: events between the former
                                             position and this event were
                                             dropped */
} ngx_mcp_topic_event_t;

/*
 * Reads the next event behind event->position that the caller may see; NULL:
 * any event.
 *
 *   NGX_OK        event has its text and position
 *   NGX_AGAIN     there is none; if "wait", handlers->topic will be called
 *   NGX_DECLINED  the topic was dropped: watch it again
 *   NGX_DONE      the session has ended
 */
ngx_int_t ngx_mcp_topic_next(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_ref_t topic, ngx_uint_t wait, ngx_mcp_topic_event_t *event);

/* notes that nobody in this worker waits for the topic any more */
void ngx_mcp_topic_unwatch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

/*
 * Tells whether a session of the groups that match (NULL: all) has subscribed
 * to the URI, or may be waiting for its events.  NGX_OK: yes; NGX_DECLINED: no;
 * NGX_AGAIN: not in the groups examined, and the next call searches on.
 */
ngx_int_t ngx_mcp_topic_wanted(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri, ngx_mcp_group_cursor_t *cursor);

/* returns whether the zone has any topic */
ngx_uint_t ngx_mcp_topics_any(ngx_mcp_zone_t *zone);

/*
 * Tells whether a group that matches (NULL: all) has the topic.  NGX_OK: one
 * has it, or there are too many groups to search all; NGX_DECLINED: none has
 * it, which is often found without a search.
 */
ngx_int_t ngx_mcp_topic_exists(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri);

/*
 * Tells whether the group has sessions, or a topic that is in use.  NGX_OK:
 * yes; NGX_DECLINED: no.
 */
ngx_int_t ngx_mcp_topics_wanted(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant);

/*
 * Makes a lease, like ngx_mcp_lease_ensure(), for the feed of a topic.  The
 * lease is charged to the session, or to the client if there is no session,
 * and to the tenant at the endpoint.  A session or client has "callers" such
 * leases at most, a tenant "tenants".  Returns also NGX_BUSY: the limit of the
 * session or client is reached; NGX_DECLINED: the limit of the tenant is
 * reached; NGX_ABORT: the session has ended.
 */
ngx_int_t ngx_mcp_topic_lease(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_caller_t *caller, ngx_uint_t callers, ngx_uint_t tenants);

/*
 * Finds or makes the topic of a URI that the session has subscribed to; the
 * topic stays as long as the subscription.  Returns the same as
 * ngx_mcp_topic_watch(), and NGX_BUSY also if the topic exists but is charged
 * to no session.
 */
ngx_int_t ngx_mcp_topic_subscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_topic_t *topic);


/* a topic of a caller's group with events that the caller may see */

typedef struct {
    ngx_str_t               uri;
    uint64_t                time;         /* time of the last event, in ms
                                             since the epoch */
} ngx_mcp_topic_info_t;

#define NGX_MCP_TOPIC_LIST   32
#define NGX_MCP_TOPIC_TEXTS  (4 * NGX_MCP_TOPIC_URI_MAX)


/* the place in a list of topics up to which it was read; all zero at first */

typedef struct {
    uint64_t                serial;       /* of the topic examined last */
    ngx_mcp_ref_t           ref;          /* the topic examined last */
    ngx_uint_t              seen;         /* number of topics examined so far */
    ngx_uint_t              topics;       /* number of topics of the group; not
                                             below "seen" */
} ngx_mcp_topic_cursor_t;

/*
 * Lists the next *n topics, NGX_MCP_TOPIC_LIST at most and perhaps none, in
 * the order in which they were made.  Their URIs are put into buf, which has
 * NGX_MCP_TOPIC_TEXTS bytes.  NGX_OK: call again for more; NGX_DONE: no more
 * follow.
 */
ngx_int_t ngx_mcp_topic_list(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_cursor_t *cursor, u_char *buf, ngx_mcp_topic_info_t *list,
    ngx_uint_t *n);


#endif /* _NGX_MCP_TOPIC_H_INCLUDED_ */
