
/*
 * The outbox delivers events to many exactly once although workers die.
 *
 * A post is one event and its deliveries.  If these are few, all of them are
 * made under one hold of the lock, together with what says that the event was
 * taken: the id of a published one, the last event id of a feed.  Otherwise
 * that hold makes an item, a record with all that is to be delivered.  An item
 * is delivered in steps, and the hold that delivers moves the item's cursor as
 * well.  The worker that made the item does so in turns; when that worker is
 * gone, any other one carries on.
 *
 * A delivery that has a "what" opens a window (mcp_coalesce): deliveries of
 * the same endpoint, tenant, session, audience and "what" that come before its
 * end become one, which goes at its end and opens the next window.  A window
 * in which nothing came is forgotten.  A window is an item with a deadline.
 * The worker that opened it has a timer for that; any other looks every second
 * for one that is overdue.
 */

#ifndef _NGX_MCP_OUTBOX_H_INCLUDED_
#define _NGX_MCP_OUTBOX_H_INCLUDED_


#include "ngx_mcp_log.h"
#include "ngx_mcp_topic.h"


/* places in a text where a count is put */
#define NGX_MCP_SEND_COUNTS  2


/*
 * To the channel of a session or call, or else to the log of each group that
 * matches and has sessions.  With a topic: to the topic, in each group that
 * matches or in that of the session.
 */

typedef struct {
    ngx_mcp_event_t         event;        /* parts NULL: it is "text" */
    ngx_str_t               text;
    ngx_str_t              *endpoint;     /* NULL: all */
    ngx_str_t              *tenant;       /* NULL: all */
    ngx_str_t               session;      /* UUID text; data NULL: "ref" */
    ngx_mcp_ref_t           ref;          /* session or call; block 0: groups */
    ngx_mcp_topic_t         topic;        /* no URI: none */

    ngx_str_t               what;         /* data NULL: it is sent at once */
    ngx_msec_t              time;         /* of a window */
    size_t                  counts[NGX_MCP_SEND_COUNTS];  /* 0: none */
    uint64_t                count;        /* events it stands for */

    unsigned                counted:1;    /* the text has it even if it is 1 */
    unsigned                addressed:1;  /* its sessions are the event's */
    unsigned                gap:1;        /* there is no text: unknown events
                                             were lost */
    unsigned                not_kept:1;   /* out: by a topic, in some group */
} ngx_mcp_delivery_t;


typedef struct {
    ngx_mcp_delivery_t     *deliveries;
    ngx_uint_t              n;
    ngx_pool_t             *pool;         /* may be NULL for up to two */
    ngx_mcp_consume_t      *consume;      /* of a feed; NULL: none */
    uint64_t                id;           /* of ngx_mcp_idempotency_key(), or
                                             0 */
    unsigned                answered:1;   /* few targets: it is refused where
                                             it would leave a gap otherwise */
    unsigned                attended:1;   /* the caller runs the item */
    unsigned                optional:1;   /* the session need not be there */

    /* out */

    ngx_uint_t              sessions;     /* addressed */
    ngx_uint_t              missed;       /* of these, so far: they get a gap
                                             for want of room */
    ngx_mcp_ref_t           item;         /* with NGX_AGAIN */
    unsigned                absent:1;     /* the session or call is not there */
    unsigned                large:1;      /* for some */
} ngx_mcp_post_t;


/*
 *   NGX_OK        delivered; sessions without room get a gap ("missed")
 *   NGX_AGAIN     the rest is delivered from now on: it is done when
 *                 ngx_mcp_outbox_run() does not return NGX_AGAIN
 *   NGX_DECLINED  nothing: "absent", or it was taken before, by the other
 *                 reader of a feed or with the same id ("sessions")
 *   NGX_ABORT     nothing: the lease is lost
 *   NGX_ERROR     nothing: it is "large", or the zone is full
 *
 * A feed's event is taken though "absent" or NGX_ERROR.
 */
ngx_int_t ngx_mcp_outbox_send(ngx_mcp_zone_t *zone, ngx_mcp_post_t *post);

/*
 * A part of an item.  NGX_AGAIN: more is left; NGX_OK; NGX_ERROR: no memory, to
 * be run again.  Sessions without room for it are added to *missed, unless that
 * is NULL.
 */
ngx_int_t ngx_mcp_outbox_run(ngx_mcp_zone_t *zone, ngx_mcp_ref_t item,
    ngx_uint_t *missed);

/*
 * Sends what is due, and what workers that are gone have left; NGX_AGAIN: more
 * is left; *next: ms until the next is due, or 0.
 */
ngx_int_t ngx_mcp_outbox_due(ngx_mcp_zone_t *zone, ngx_msec_t *next);


/*
 * Ids of events (ngx_mcp_idempotency.c): the last 1024 are known.  key is never
 * 0; first: NGX_OK, or NGX_DECLINED if it is known.
 */
uint64_t ngx_mcp_idempotency_key(ngx_mcp_zone_t *zone, ngx_str_t *scope,
    ngx_str_t *id);
ngx_int_t ngx_mcp_idempotency_first(ngx_mcp_zone_t *zone, uint64_t key);


#endif /* _NGX_MCP_OUTBOX_H_INCLUDED_ */
