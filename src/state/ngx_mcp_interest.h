
/*
 * Interests: resources that sessions and calls of an audience want updates of,
 * counted by URI for each shared upstream session.  Its holder subscribes at
 * the upstream when the first comes, unsubscribes when the last has gone, and
 * subscribes again after a session restore.
 *
 * A session's subscription either shares an interest or is private: then it
 * belongs to the session's own upstream session, if there is one.
 */

#ifndef _NGX_MCP_INTEREST_H_INCLUDED_
#define _NGX_MCP_INTEREST_H_INCLUDED_


#include "ngx_mcp_upstream_session.h"


/* ms */
#define NGX_MCP_INTEREST_PAIR  2000

/* requests that the holder sends at a time */
#define NGX_MCP_INTEREST_JOBS  8


typedef enum {
    NGX_MCP_INTEREST_WANTED = 0,
    NGX_MCP_INTEREST_MADE,
    NGX_MCP_INTEREST_REFUSED
} ngx_mcp_interest_e;

/*
 * Subscribes the session, and counts it.  NGX_OK: the upstream has accepted;
 * NGX_AGAIN: its answer is pending, and handlers->interests notifies all
 * workers; NGX_DONE: the upstream refused it; NGX_BUSY: the limit is reached;
 * NGX_DECLINED: a session ended, or there is no room.  A subscription that it
 * has at another one than "shared" moves there.
 */
ngx_int_t ngx_mcp_interest_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_uint_t limit);

/*
 * A running call waits on the resource, and counts like a session until it is
 * closed.  NGX_OK; NGX_DECLINED: something has ended, or there is no room.
 */
ngx_int_t ngx_mcp_interest_acquire(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t call, ngx_str_t *uri);

/*
 * How it stands: as for joining; NGX_DECLINED: the session is not subscribed
 * (any more), NGX_ERROR: the interest is gone, and has to be joined again.
 */
ngx_int_t ngx_mcp_interest_state(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri);

/* makes the subscription private */
void ngx_mcp_interest_leave(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri);


/* one thing that the holder does at the upstream */

typedef struct {
    ngx_mcp_ref_t           ref;
    ngx_str_t               uri;          /* into pool */
    ngx_uint_t              subscribe;    /* or unsubscribe */
    ngx_uint_t              again;        /* it was made before the restore */
} ngx_mcp_interest_job_t;

/* NGX_OK; NGX_DECLINED: nothing is to be done now; NGX_ERROR: no memory */
ngx_int_t ngx_mcp_interest_next(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    uint32_t fence, ngx_pool_t *pool, ngx_mcp_interest_job_t *job);

/*
 * It ended.  rc: NGX_OK; NGX_DECLINED: refused; NGX_AGAIN: the upstream could
 * not be asked, so that what was made before is to be asked for again.
 * serial: of the session at the upstream, 0: none.
 */
void ngx_mcp_interest_done(ngx_mcp_zone_t *zone, uint32_t fence,
    ngx_mcp_interest_job_t *job, ngx_int_t rc, ngx_uint_t serial);

/*
 * Those made on the session with this serial; URIs are put into buf.  *n of
 * them at most, *n is how many.  NGX_OK; NGX_BUSY: there are more.
 */
ngx_int_t ngx_mcp_interest_made(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_uint_t serial, u_char *buf, size_t size, ngx_str_t *uris,
    ngx_uint_t *n);

/*
 * All that is wanted and was not refused, n URIs into pool.  NGX_OK or
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_interest_wanted(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_pool_t *pool, ngx_str_t **uris, ngx_uint_t *n);

/* whether it has any interests */
ngx_uint_t ngx_mcp_interests(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared);

/* whether it has one in this resource */
ngx_uint_t ngx_mcp_interest_exists(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri);


/*
 * A session's own stream received n updates of this resource.  A server that
 * notifies all subscribers notifies the shared upstream session as well, a
 * little earlier or later.  Each update that the shared session receives is
 * paired with one of the session's own streams.
 *
 *   NGX_OK        the shared session has notified the client, or will
 *   NGX_AGAIN     it may still do so: call again after NGX_MCP_INTEREST_PAIR
 *                 with "last"
 *   NGX_DECLINED  the update is for this session only
 *   NGX_ABORT     likewise, for the first time since an update for all
 */
ngx_int_t ngx_mcp_interest_pair(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n, ngx_uint_t last);

/* the stream of the shared upstream session received an update */
void ngx_mcp_interest_updated(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri);


#endif /* _NGX_MCP_INTEREST_H_INCLUDED_ */
