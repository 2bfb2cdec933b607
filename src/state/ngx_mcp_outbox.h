
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The outbox delivers an event to many sessions, exactly once even if workers
 * die.
 *
 * A post is one event and its deliveries.  If these are few, all of them are
 * made under one hold of the lock, which also notes that the event was
 * consumed: the id of a published event, or the last event id of a feed.
 * Otherwise that hold makes an item, a record of all deliveries.  An item is
 * delivered in steps; each step moves the item's cursor under the same hold of
 * the lock.  The worker that made the item delivers it in turns; if that worker
 * is gone, any other one carries on.
 *
 * A delivery with a coalesce_key opens a coalescing window (mcp_coalesce).
 * Deliveries of the same endpoint, tenant, session, audience and coalesce_key
 * that come before the end of the window become one, which is sent at the end
 * and opens the next window.  A window that stays empty is forgotten.  A window
 * is an item with a deadline.  The worker that opened it has a timer for the
 * deadline; the other workers look every second for windows that are overdue.
 */

#ifndef _NGX_MCP_OUTBOX_H_INCLUDED_
#define _NGX_MCP_OUTBOX_H_INCLUDED_


#include "ngx_mcp_log.h"
#include "ngx_mcp_topic.h"


/* most places in a text where the number of coalesced events is inserted */
#define NGX_MCP_SEND_COUNTS  2


/*
 * A delivery goes to the channel of a session or call, or else to the log of
 * each group that matches and has sessions.  A delivery with a topic goes to
 * the topic, in the session's group or in each group that matches.
 */

typedef struct {
    ngx_mcp_event_t         event;        /* parts NULL: "text" is used */
    ngx_str_t               text;
    ngx_str_t              *endpoint;     /* NULL: all */
    ngx_str_t              *tenant;       /* NULL: all */
    ngx_str_t               session;      /* UUID text; data NULL: "ref" is
                                             used */
    ngx_mcp_ref_t           ref;          /* session or call; block 0: none */
    ngx_mcp_topic_t         topic;        /* no URI: none */

    ngx_str_t               coalesce_key; /* equal in notifications that may
                                             be coalesced; data NULL: the event
                                             is sent at once */
    ngx_msec_t              time;         /* length of a window, ms */
    size_t                  counts[NGX_MCP_SEND_COUNTS];  /* offsets in the text
                                                             where "count" is
                                                             put; 0: none */
    uint64_t                count;        /* number of events that this one
                                             stands for */

    unsigned                counted:1;    /* "count" is inserted into the text
                                             even if it is 1 */
    unsigned                addressed:1;  /* the sessions that get the event
                                             are added to post->sessions */
    unsigned                gap:1;        /* there is no text: the sessions get
                                             a gap, as unknown events were
                                             lost */
    unsigned                not_kept:1;   /* out: the topic of at least one
                                             group does not have the event */
} ngx_mcp_delivery_t;


typedef struct {
    ngx_mcp_delivery_t     *deliveries;
    ngx_uint_t              n;
    ngx_pool_t             *pool;         /* may be NULL if n is 2 at most */
    ngx_mcp_consume_t      *consume;      /* the event as a feed's reader
                                             consumes it; NULL: the event is not
                                             from a feed */
    uint64_t                id;           /* ngx_mcp_idempotency_key() of the
                                             event's id; 0: it has no id */
    unsigned                answered:1;   /* the sender gets an answer: if there
                                             are few targets, the post fails
                                             instead of leaving a gap */
    unsigned                attended:1;   /* the caller delivers the item by
                                             ngx_mcp_outbox_run() */
    unsigned                optional:1;   /* it is no failure if the session
                                             does not exist */

    /* out */

    ngx_uint_t              sessions;     /* number of sessions that the
                                             "addressed" deliveries are for */
    ngx_uint_t              missed;       /* number of sessions that got a gap
                                             so far, as there was no room */
    ngx_mcp_ref_t           item;         /* after NGX_AGAIN: the item that has
                                             the rest */
    unsigned                absent:1;     /* the session or call has ended */
    unsigned                large:1;      /* the event is larger than a session
                                             allows */
} ngx_mcp_post_t;


/*
 * Sends a post.
 *
 *   NGX_OK        it is delivered; sessions without room get a gap ("missed")
 *   NGX_AGAIN     an item has the rest: it is delivered when
 *                 ngx_mcp_outbox_run() returns something else than NGX_AGAIN
 *   NGX_DECLINED  nothing is delivered: "absent" is set, or the event was
 *                 consumed before, by the other reader of a feed or with the
 *                 same id ("sessions" has the number of that time)
 *   NGX_ABORT     nothing is delivered: the lease is lost
 *   NGX_ERROR     nothing is delivered: the event is "large", or the zone is
 *                 full
 *
 * An event of a feed counts as consumed also if "absent" is set and after
 * NGX_ERROR.
 */
ngx_int_t ngx_mcp_outbox_send(ngx_mcp_zone_t *zone, ngx_mcp_post_t *post);

/*
 * Delivers a part of an item.  The number of sessions without room for it is
 * added to *missed, unless missed is NULL.  NGX_OK: the item is delivered;
 * NGX_AGAIN: more is left; NGX_ERROR: no memory, run it again.
 */
ngx_int_t ngx_mcp_outbox_run(ngx_mcp_zone_t *zone, ngx_mcp_ref_t item,
    ngx_uint_t *missed);

/*
 * Delivers windows that are due, and items of workers that are gone.  NGX_OK;
 * NGX_AGAIN: more is left.  *next: ms until the next window is due, or 0.
 */
ngx_int_t ngx_mcp_outbox_due(ngx_mcp_zone_t *zone, ngx_msec_t *next);


/*
 * Ids of events (ngx_mcp_idempotency.c); the zone knows the last 1024.  key()
 * returns the hash of an id, never 0.  first(): NGX_OK: the id is new, and is
 * known from now on; NGX_DECLINED: it was known.
 */
uint64_t ngx_mcp_idempotency_key(ngx_mcp_zone_t *zone, ngx_str_t *scope,
    ngx_str_t *id);
ngx_int_t ngx_mcp_idempotency_first(ngx_mcp_zone_t *zone, uint64_t key);


#endif /* _NGX_MCP_OUTBOX_H_INCLUDED_ */
