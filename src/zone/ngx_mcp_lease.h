
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Leases are for work that one worker does for all, such as reading a feed.
 *
 * A lease has a key and lives in the zone from ngx_mcp_lease_ensure() to
 * ngx_mcp_lease_drop().  One worker holds it and renews it every second.  A
 * lease is free if it is new or was released, or if its holder died, did not
 * renew it in time, or belongs to an older configuration.  For a free lease,
 * schema->lease() is called with NGX_MCP_LEASE_FREE in the workers of the
 * newest configuration, at once and then every second, until a worker claims
 * it.  A lease that no worker claims for NGX_MCP_LEASE_KEEP is removed.
 * Workers that quit gracefully claim no leases and keep those that they hold.
 *
 * Each claim raises the fence, a number.  A holder consumes events under its
 * fence, so that a holder that has lost the lease without knowing it delivers
 * nothing more.
 *
 * A claim by a newer configuration takes the lease from its holder at once,
 * unless that holder is connected and its events have no ids.  Then both read,
 * in an overlap: the previous reader, and the new holder.  The previous reader
 * may consume events until NGX_MCP_LEASE_GRACE after the holder connected, or
 * until it releases the lease.  An event that both read is consumed once, by
 * the reader that reads it first; the n-th of several equal texts of one
 * reader counts as the n-th of the other.
 *
 * Limits of this comparison: a text that only the previous reader read, in the
 * last 2 s before the holder connected, causes an equal text to be dropped
 * that only the holder reads within 3 s after its claim or its connecting.
 * Events that one reader reads more than 2048 events ahead of the other are
 * consumed twice.  A holder that becomes a previous reader itself is still
 * compared with its own previous reader until 3 s after its claim.
 */

#ifndef _NGX_MCP_LEASE_H_INCLUDED_
#define _NGX_MCP_LEASE_H_INCLUDED_


#include "ngx_mcp_zone.h"


/*
 * ms; a holder renews a lease every NGX_MCP_LEASE_RENEW, and loses a lease that
 * it did not renew for NGX_MCP_LEASE_TIME
 */
#define NGX_MCP_LEASE_TIME      3000
#define NGX_MCP_LEASE_RENEW     1000

/* ms; see above */
#define NGX_MCP_LEASE_GRACE     1000
#define NGX_MCP_LEASE_KEEP      60000

/* the largest number of leases in a zone */
#define NGX_MCP_LEASES_MAX      4096

/* bytes; a longer last event id or note is not stored */
#define NGX_MCP_LEASE_ID_MAX    256
#define NGX_MCP_LEASE_NOTE_MAX  512
#define NGX_MCP_LEASE_KEY_MAX   4096


/* bits: reasons to call schema->lease() in this worker */

#define NGX_MCP_LEASE_FREE      0x01    /* the lease may be claimed */
#define NGX_MCP_LEASE_SIGNALED  0x02    /* this worker holds the lease, and it
                                           was signaled */
#define NGX_MCP_LEASE_LOST      0x04    /* this worker has lost the lease */
#define NGX_MCP_LEASE_GAP       0x08    /* this worker holds the lease, and the
                                           previous reader died in the overlap:
                                           events are missing */
#define NGX_MCP_LEASE_SETTLED   0x10    /* a reader is connected, or failed:
                                           see ngx_mcp_lease_await() */


/* a lease as a reader knows it */

typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                fence;        /* fence of the reader's claim */
} ngx_mcp_lease_t;


/*
 * The state in which the previous holder left the lease.  The texts are in the
 * pool that was given to ngx_mcp_lease_claim().
 */

typedef struct {
    ngx_str_t               id;           /* last event id */
    ngx_str_t               note;
    ngx_msec_t              pause;        /* ngx_current_msec before which not
                                             to connect, or 0 */
    ngx_uint_t              overlap;      /* 1: the previous reader still
                                             reads */
} ngx_mcp_lease_checkpoint_t;


/*
 * Makes the lease of a key if there is none.  NGX_OK; NGX_ERROR: the zone is
 * full, there are too many leases, or the key is too long.
 */
ngx_int_t ngx_mcp_lease_ensure(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * Makes a lease, as ngx_mcp_lease_ensure(), for an owner and one of its users.
 * A new lease counts against the limits of both as long as it exists.  Also
 * NGX_BUSY: the user's limit is reached; NGX_DECLINED: the owner's limit is
 * reached.
 */

typedef struct {
    ngx_mcp_ref_t           owner;        /* any record */
    uint32_t                user;         /* hash of the user's name; not 0 */
    ngx_uint_t              owner_max;    /* most leases of one owner */
    ngx_uint_t              user_max;     /* most leases of one user */
} ngx_mcp_lease_share_t;

ngx_int_t ngx_mcp_lease_ensure_shared(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_lease_share_t *share);

/*
 * Claims a lease for this worker.  NGX_OK: *lease and *checkpoint are set, with
 * texts from pool; NGX_DECLINED: there is no such lease, a live worker of this
 * or a newer configuration holds it, an overlap has not ended, workers of a
 * newer configuration live, or this worker is quitting; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_lease_claim(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool, ngx_mcp_lease_t *lease,
    ngx_mcp_lease_checkpoint_t *checkpoint);

/*
 * Keeps the lease for NGX_MCP_LEASE_TIME.  NGX_OK; NGX_AGAIN: the caller is
 * the previous reader in an overlap; NGX_DECLINED: the lease is lost.
 */
ngx_int_t ngx_mcp_lease_renew(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Notes that the holder is connected.  *gap is set if a reader was connected
 * earlier but no reader was connected until now: unless the holder resumes
 * after the last event, an unknown number of events may be missing.  In an
 * overlap, the previous reader goes on for NGX_MCP_LEASE_GRACE and then loses
 * the lease.  A holder that never calls this has neither gaps nor overlaps.
 * NGX_OK; NGX_DECLINED: the lease is lost.
 */
ngx_int_t ngx_mcp_lease_connected(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_t *lease, ngx_uint_t *gap);

/*
 * Notes that the holder could not connect yet, so that callers of
 * ngx_mcp_lease_await() do not wait for it.  A fence of 0 stands for any
 * holder.  NGX_OK; NGX_DECLINED: a failure is known already, a reader is
 * connected, or the lease is lost.
 */
ngx_int_t ngx_mcp_lease_failed(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Notes that the caller's connection has ended.  In an overlap, the previous
 * reader loses the lease by this.
 */
void ngx_mcp_lease_disconnected(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Ends an overlap: the previous reader loses the lease at once.  For a holder
 * that cannot connect as long as the previous reader is connected.
 */
void ngx_mcp_lease_overlap_end(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* removes the last event id, as the events that the holder reads have no ids */
void ngx_mcp_lease_clear_id(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * releases the lease, so that another worker may claim it; no-op if it is lost
 */
void ngx_mcp_lease_release(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Removes the lease, as its work is not needed any more; for the previous
 * reader in an overlap this is ngx_mcp_lease_release().  NGX_OK; NGX_AGAIN: the
 * lease was removed, but had a signal that the holder has not handled.
 */
ngx_int_t ngx_mcp_lease_drop(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * Stores a note for the next holder.  NGX_OK, also for the previous reader in
 * an overlap, whose note is not stored; NGX_DECLINED: the lease is lost, or
 * the note is longer than NGX_MCP_LEASE_NOTE_MAX.
 */
ngx_int_t ngx_mcp_lease_note(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_str_t *note);

/* notes that the next holder must not connect before this ngx_current_msec */
void ngx_mcp_lease_pause(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_msec_t until);

/*
 * Has schema->lease() called with NGX_MCP_LEASE_SIGNALED in the worker that
 * holds the lease, or that claims it next.  NGX_OK; NGX_DECLINED: there is no
 * such lease.
 */
ngx_int_t ngx_mcp_lease_signal(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * Tells whether a reader is connected for the lease of this key; *ref becomes a
 * reference to the lease.  NGX_OK: a reader is connected; NGX_AGAIN: none is
 * yet, and when this changes, schema->lease() is called with
 * NGX_MCP_LEASE_SETTLED in workers with zone->awaits; NGX_DECLINED: the holder
 * failed to connect, or there is no such lease.  ngx_mcp_lease_settled() tells
 * the same for a reference.
 */
ngx_int_t ngx_mcp_lease_await(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_mcp_ref_t *ref);
ngx_int_t ngx_mcp_lease_settled(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);


/*
 * Returns whether there are live workers of a newer configuration, which then
 * take over the leases.
 */
ngx_uint_t ngx_mcp_lease_newer(ngx_mcp_zone_t *zone);


/*
 * A walk over the leases, the oldest first, for mcp_status.  The caller calls
 * ngx_mcp_lease_info() with n = 0, 1 and so on, and leaves *info as it is from
 * one call to the next.  NGX_OK: *info describes the next lease; its key is in
 * pool; NGX_DECLINED: there are no more; NGX_ERROR: no memory.
 */

typedef struct {
    ngx_mcp_ref_t           ref;
    ngx_str_t               key;
    ngx_pid_t               holder;       /* 0: there is none */
    ngx_msec_t              held;         /* ms since it was claimed */
    ngx_msec_t              silent;       /* ms since an event was consumed, or
                                             the holder claimed or connected;
                                             0: this never happened */
    uint32_t                fence;        /* number of the last claim */
    uint64_t                consumed;     /* number of consumed events */
} ngx_mcp_lease_info_t;

ngx_int_t ngx_mcp_lease_info(ngx_mcp_zone_t *zone, ngx_uint_t n,
    ngx_pool_t *pool, ngx_mcp_lease_info_t *info);


#endif /* _NGX_MCP_LEASE_H_INCLUDED_ */
