
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Interests.  An interest is the common subscription of sessions and calls of
 * an audience to a resource.  A shared upstream session has one for each such
 * URI, with the number of its users.  The holder of the shared upstream session
 * subscribes at the upstream when the first user comes, unsubscribes when the
 * last one has gone, and subscribes again after a session restore.
 *
 * A session's subscription either shares an interest or is private.  A private
 * subscription belongs to the session's own upstream session, if there is one.
 */

#ifndef _NGX_MCP_INTEREST_H_INCLUDED_
#define _NGX_MCP_INTEREST_H_INCLUDED_


#include "ngx_mcp_upstream_session.h"


/*
 * ms; an update on a session's own stream waits for so long for the same update
 * on the stream of the shared upstream session (ngx_mcp_interest_pair())
 */
#define NGX_MCP_INTEREST_PAIR  2000

/* most requests that the holder has under way at a time */
#define NGX_MCP_INTEREST_JOBS  8


typedef enum {
    NGX_MCP_INTEREST_WANTED = 0,
    NGX_MCP_INTEREST_MADE,
    NGX_MCP_INTEREST_REFUSED
} ngx_mcp_interest_e;

/*
 * Subscribes a session to the URI by an interest of "shared".  If the session
 * has the subscription at another upstream session, it moves to "shared".
 * limit: subscriptions of a session.  NGX_OK: the upstream has accepted;
 * NGX_AGAIN: the upstream's answer is pending, and handlers->interests will
 * notify all workers of it; NGX_DONE: the upstream has refused; NGX_BUSY: the
 * limit is reached; NGX_DECLINED: one of the sessions has ended, or there is
 * no room.
 */
ngx_int_t ngx_mcp_interest_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_uint_t limit);

/*
 * Makes a running call a user of the interest, which it remains until it is
 * closed.  NGX_OK; NGX_DECLINED: the call or the shared upstream session has
 * ended, the call has an interest already, or there is no room.
 */
ngx_int_t ngx_mcp_interest_acquire(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t call, ngx_str_t *uri);

/*
 * The state of the interest that a session's subscription shares.  NGX_OK: the
 * upstream has accepted; NGX_AGAIN: its answer is pending; NGX_DONE: it has
 * refused, or the subscription is private; NGX_DECLINED: the session is not
 * subscribed; NGX_ERROR: the interest is gone, and has to be joined again.
 */
ngx_int_t ngx_mcp_interest_state(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri);

/* makes the subscription private */
void ngx_mcp_interest_leave(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri);


/* a request that the holder sends to the upstream */

typedef struct {
    ngx_mcp_ref_t           ref;          /* the interest */
    ngx_str_t               uri;          /* in the pool given to next() */
    ngx_uint_t              subscribe;    /* 1: resources/subscribe; 0:
                                             resources/unsubscribe */
    ngx_uint_t              again;        /* 1: the upstream has accepted the
                                             subscription before, on an earlier
                                             session */
} ngx_mcp_interest_job_t;

/*
 * Takes the next job of the holder, whose lease has this fence.  NGX_OK: the
 * caller does the job, and then calls done(); NGX_DECLINED: there is nothing
 * to do now, or another worker is the holder; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_interest_next(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    uint32_t fence, ngx_pool_t *pool, ngx_mcp_interest_job_t *job);

/*
 * Ends a job.  rc: NGX_OK; NGX_DECLINED: the upstream has refused; NGX_AGAIN:
 * the upstream could not be asked.  Then a subscription that was made before a
 * restore is asked for again, and a new one counts as refused.  NGX_BUSY: the
 * upstream was not asked; next() returns the job again.  serial: of the session
 * at the upstream that the job was done on; 0: none.
 */
void ngx_mcp_interest_done(ngx_mcp_zone_t *zone, uint32_t fence,
    ngx_mcp_interest_job_t *job, ngx_int_t rc, ngx_uint_t serial);

/*
 * Lists the URIs of interests that have users and were not refused; with a
 * serial, only of those that the upstream accepted on the session with this
 * serial.  The URIs and the array are allocated from pool.  NGX_OK; NGX_BUSY:
 * there are more than max; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_interest_uris(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_uint_t *serial, ngx_uint_t max, ngx_pool_t *pool, ngx_str_t **uris,
    ngx_uint_t *n);

/*
 * Returns whether the shared upstream session has interests, with users or
 * without.
 */
ngx_uint_t ngx_mcp_interests(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared);

/*
 * Returns whether the shared upstream session has an interest with users in
 * this resource.
 */
ngx_uint_t ngx_mcp_interest_exists(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri);


/*
 * Decides whether a client has to be notified of n updates of a resource that
 * came on a stream of the session's own upstream session.  A server that
 * notifies all subscribers notifies the shared upstream session as well, a
 * little earlier or later.  So each update that the shared session receives is
 * paired with one that came on a stream of the session's own.
 *
 *   NGX_OK        no: the shared session has notified the client, or will; or
 *                 the client has unsubscribed meanwhile
 *   NGX_AGAIN     unknown: the shared session may still notify the client;
 *                 call again after NGX_MCP_INTEREST_PAIR with "last", and with
 *                 the *stamp of the subscription, which is 0 at first
 *   NGX_DECLINED  yes: the update is for this session only
 *   NGX_ABORT     as NGX_DECLINED, for the first time since an update for all
 */
ngx_int_t ngx_mcp_interest_pair(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n, ngx_uint_t last,
    uint64_t *stamp);

/* notes that the stream of the shared upstream session received an update */
void ngx_mcp_interest_updated(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri);


#endif /* _NGX_MCP_INTEREST_H_INCLUDED_ */
