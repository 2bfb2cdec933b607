
/*
 * Interests: resources that sessions and calls of an audience want updates of,
 * counted by URI for each shared upstream session.  Its holder subscribes at
 * the upstream when the first comes, unsubscribes when the last has gone, and
 * subscribes again after a session restore.
 *
 * A session's subscription either shares an interest or is private: kept on the
 * session's own upstream session, if at all.
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
 * NGX_AGAIN: it will, or not, which handlers->interests tells in all workers;
 * NGX_DONE: the upstream refused it there; NGX_BUSY: the limit; NGX_DECLINED:
 * a session ended, or there is no room.  *owner, unless it is NULL: the shared
 * upstream session that has the interest, whose key is rung.  A subscription
 * that exists keeps its interest, which another one than "shared" may have.
 */
ngx_int_t ngx_mcp_interest_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_uint_t limit,
    ngx_mcp_ref_t *owner);

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

/* makes the subscription a private one */
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

/* whether there are any */
ngx_uint_t ngx_mcp_interests(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared);


/*
 * A session's own stream said n times that this resource was updated.  A
 * server that tells all who subscribed tells the shared upstream session as
 * well, a little earlier or later; each update that it hears is one that the
 * session's own streams say.
 *
 *   NGX_OK        that has told the session, or will
 *   NGX_AGAIN     it may tell it yet: ask again, as the last time, in
 *                 NGX_MCP_INTEREST_PAIR
 *   NGX_DECLINED  the session is told alone
 *   NGX_ABORT     likewise, for the first time since all were told
 */
ngx_int_t ngx_mcp_interest_pair(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n, ngx_uint_t last);

/* the stream of the shared upstream session said so */
void ngx_mcp_interest_updated(ngx_mcp_zone_t *zone, ngx_mcp_ref_t shared,
    ngx_str_t *uri);


#endif /* _NGX_MCP_INTEREST_H_INCLUDED_ */
