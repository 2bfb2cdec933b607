
/*
 * Leases are for work that one worker does for all, such as reading a feed.
 *
 * A lease is named by a key and lives in the zone from the first want to the
 * drop.  One worker holds it and renews it every second.  When nobody does,
 * because it is new, was released, its holder died or stalled, or belongs to
 * an older configuration, handlers->lease is called with
 * NGX_MCP_LEASE_FREE in the workers of the newest configuration, and who
 * serves such keys claims it: at once, and again every second for as long as
 * nobody does.  One that nobody claims for NGX_MCP_LEASE_KEEP is forgotten.
 * Workers that quit gracefully claim nothing more and keep what they hold.
 *
 * Each claim raises the fence.  What a holder reads it takes under its fence,
 * so that a holder that lost the lease unaware delivers nothing any more.
 *
 * A claim by a newer configuration takes the lease from its holder at once,
 * unless that one is connected and no event had an id: then both read, in an
 * overlap.  The one before may take until the new one is connected and
 * NGX_MCP_LEASE_GRACE has passed, or until it lets go; what both read is taken
 * once, from whichever reads it first, and the n-th of equal texts of one is
 * the n-th of the other.  A text that only the one before read, in the last
 * 2 s before the new one was connected, makes an equal one be dropped that the
 * new one reads alone within 3 s of its claim or of being connected; what one
 * reads more than 2048 events ahead of the other is taken from both.  One that
 * has itself become the one before has, until 3 s after its claim, still what
 * its own one before took.
 */

#ifndef _NGX_MCP_LEASE_H_INCLUDED_
#define _NGX_MCP_LEASE_H_INCLUDED_


#include "ngx_mcp_zone.h"


/* ms */
#define NGX_MCP_LEASE_TIME      3000
#define NGX_MCP_LEASE_RENEW     1000
#define NGX_MCP_LEASE_GRACE     1000
#define NGX_MCP_LEASE_KEEP      60000

#define NGX_MCP_LEASES_MAX      4096

/* a longer last event id, or note, is not stored */
#define NGX_MCP_LEASE_ID_MAX    256
#define NGX_MCP_LEASE_NOTE_MAX  512
#define NGX_MCP_LEASE_KEY_MAX   4096


/* reasons to call handlers->lease; bits */

#define NGX_MCP_LEASE_FREE      0x01    /* may be claimed */
#define NGX_MCP_LEASE_SIGNALED  0x02    /* is ours, and a worker signaled it */
#define NGX_MCP_LEASE_LOST      0x04    /* was ours */
#define NGX_MCP_LEASE_GAP       0x08    /* is ours, and the one before died in
                                           the overlap: what it had not read
                                           yet is missing */
#define NGX_MCP_LEASE_SETTLED   0x10    /* nobody has to wait for it */


typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                fence;
} ngx_mcp_lease_t;


/* the state that the holder before left; into pool */

typedef struct {
    ngx_str_t               id;           /* last event id */
    ngx_str_t               note;
    ngx_uint_t              overlap;      /* the one before still reads: what
                                             both read is taken once */
} ngx_mcp_lease_checkpoint_t;


/*
 * Makes the lease when there is none.  NGX_OK; NGX_ERROR: the zone is full or
 * the key too long.
 */
ngx_int_t ngx_mcp_lease_ensure(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * Likewise, for a user of an owner: a new lease is charged to both for as long
 * as it exists.  Also NGX_BUSY: the user, and NGX_DECLINED: the owner, has as
 * many as it may.
 */

typedef struct {
    ngx_mcp_ref_t           owner;        /* record */
    uint32_t                user;         /* hash, not 0 */
    ngx_uint_t              owners;       /* leases of one owner */
    ngx_uint_t              users;        /* and of one user */
} ngx_mcp_lease_share_t;

ngx_int_t ngx_mcp_lease_ensure_shared(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_lease_share_t *share);

/*
 * NGX_OK: ours from now on; NGX_DECLINED: there is none, a live worker of this
 * or a newer configuration holds it, a worker of a newer one lives, or we are
 * quitting; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_lease_claim(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool, ngx_mcp_lease_t *lease,
    ngx_mcp_lease_checkpoint_t *left);

/* NGX_OK; NGX_AGAIN: it is the one before in an overlap; NGX_DECLINED: lost */
ngx_int_t ngx_mcp_lease_renew(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * The holder's connection stands.  *gap: a reader was connected before, and
 * none is now: if the holder does not go on behind the last event, an unknown
 * number of events may be missing.  In an overlap, the reader before goes on
 * for NGX_MCP_LEASE_GRACE and then loses the rest.  A holder that never calls
 * this has neither gaps nor overlaps.  NGX_OK; NGX_DECLINED: lost.
 */
ngx_int_t ngx_mcp_lease_connected(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_t *lease, ngx_uint_t *gap);

/*
 * The holder tries to connect, in vain so far: nobody waits for it.  A fence
 * of 0 is any holder's.  NGX_OK; NGX_DECLINED: that is known, or it is lost,
 * or connected.
 */
ngx_int_t ngx_mcp_lease_failed(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* the connection broke; in an overlap, the one before loses what it had left */
void ngx_mcp_lease_disconnected(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* the holder cannot connect for the one before, who loses what it had left */
void ngx_mcp_lease_overlap_end(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* the holder reads what knows nothing of the last event id: there is none */
void ngx_mcp_lease_clear_id(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* gives it up, for another to claim; nothing when it was lost */
void ngx_mcp_lease_release(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Likewise, and nobody wants it any more; for the former holder in an overlap,
 * as release.  NGX_AGAIN: it was signaled, and the holder has not seen that.
 */
ngx_int_t ngx_mcp_lease_drop(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Leaves text for the next holder.  NGX_OK, also for the former holder in an
 * overlap, whose note is not stored; NGX_DECLINED: lost, or too long.
 */
ngx_int_t ngx_mcp_lease_note(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_str_t *note);

/*
 * Has the holder, or the next one, called with NGX_MCP_LEASE_SIGNALED;
 * NGX_DECLINED: there is no such lease.
 */
ngx_int_t ngx_mcp_lease_signal(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * Whether somebody is connected under it.  NGX_OK: so it is, *ref names the
 * lease; NGX_AGAIN: not yet, and handlers->lease is called with
 * NGX_MCP_LEASE_SETTLED when that has changed, in workers with zone->awaits;
 * NGX_DECLINED: tried in vain, or there is no such lease.  settled() is the
 * same once more.
 */
ngx_int_t ngx_mcp_lease_await(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_ref_t *ref);
ngx_int_t ngx_mcp_lease_settled(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);


/* whether workers of a newer configuration live, who take over */
ngx_uint_t ngx_mcp_lease_newer(ngx_mcp_zone_t *zone);


/* for mcp_status: the n-th, oldest first; NGX_DECLINED past the last */

typedef struct {
    ngx_str_t               key;
    ngx_pid_t               holder;       /* 0: nobody */
    ngx_msec_t              held;         /* for so long */
    ngx_msec_t              silent;       /* since something was taken, or it
                                             was connected or claimed */
    uint32_t                fence;
    uint64_t                consumed;
} ngx_mcp_lease_info_t;

ngx_int_t ngx_mcp_lease_info(ngx_mcp_zone_t *zone, ngx_uint_t n,
    ngx_pool_t *pool, ngx_mcp_lease_info_t *info);


#endif /* _NGX_MCP_LEASE_H_INCLUDED_ */
