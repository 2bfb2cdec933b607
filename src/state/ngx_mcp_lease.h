
/*
 * Leases: what one worker does for all (reading a feed, listening at an
 * upstream, refreshing its lists).
 *
 * A lease is named by a key and lives in the zone from the first want to the
 * drop.  One worker holds it and renews it every second.  When nobody does,
 * because it is new, was released, its holder died or stalled, or belongs to
 * an older configuration, handlers->lease is called with
 * NGX_MCP_LEASE_FREE in the workers of the newest configuration, and who
 * serves such keys claims it.
 *
 * Each claim raises the fence.  What a holder reads it takes under its fence,
 * so that a holder that lost the lease unaware delivers nothing any more.
 */

#ifndef _NGX_MCP_LEASE_H_INCLUDED_
#define _NGX_MCP_LEASE_H_INCLUDED_


#include "ngx_mcp_zone.h"


/* ms */
#define NGX_MCP_LEASE_TIME      3000
#define NGX_MCP_LEASE_RENEW     1000

/* a longer last event id, or note, is not kept */
#define NGX_MCP_LEASE_ID_MAX    256
#define NGX_MCP_LEASE_NOTE_MAX  512
#define NGX_MCP_LEASE_KEY_MAX   4096


/* why handlers->lease is called; bits */

#define NGX_MCP_LEASE_FREE      0x01    /* may be claimed */
#define NGX_MCP_LEASE_POKED     0x02    /* is ours, and somebody poked it */
#define NGX_MCP_LEASE_LOST      0x04    /* was ours */


typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                fence;
} ngx_mcp_lease_t;


/* what the holder before left; into pool */

typedef struct {
    ngx_str_t               id;           /* last event id */
    ngx_str_t               note;
    ngx_uint_t              gap;          /* one read without ids before, and
                                             nobody reads now */
    ngx_uint_t              overlap;      /* the one before still reads: what
                                             both read is taken once */
} ngx_mcp_lease_left_t;


/*
 * Makes the lease when there is none.  NGX_OK; NGX_ERROR: the zone is full or
 * the key too long.
 */
ngx_int_t ngx_mcp_lease_want(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * NGX_OK: ours from now on; NGX_DECLINED: there is none, or a live worker of
 * this or a newer configuration holds it; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_lease_claim(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool, ngx_mcp_lease_t *lease, ngx_mcp_lease_left_t *left);

/* NGX_OK; NGX_DECLINED: lost */
ngx_int_t ngx_mcp_lease_renew(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/*
 * The connection of the new holder stands: in an overlap, the one before
 * reads on for a little and then loses what it had left.
 */
void ngx_mcp_lease_connected(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* gives it up, for another to claim; nothing when it was lost */
void ngx_mcp_lease_release(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* likewise, and nobody wants it any more */
void ngx_mcp_lease_drop(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease);

/* leaves text for the next holder; NGX_DECLINED: lost, or too long */
ngx_int_t ngx_mcp_lease_note(ngx_mcp_zone_t *zone, ngx_mcp_lease_t *lease,
    ngx_str_t *note);

/* has the holder called with NGX_MCP_LEASE_POKED; NGX_DECLINED: none exists */
ngx_int_t ngx_mcp_lease_poke(ngx_mcp_zone_t *zone, ngx_str_t *key);


/*
 * One event that a holder read.  text is what both readers of an overlap see
 * alike.  Given with ngx_mcp_event_t.take it is taken under the lock under
 * which the event is first appended, else by itself; the second time does
 * nothing.
 *
 *   NGX_OK        it is to be delivered
 *   NGX_DECLINED  the other reader of an overlap had it
 *   NGX_ABORT     the lease is lost: stop reading
 */

typedef struct {
    ngx_mcp_lease_t         lease;
    ngx_str_t               id;           /* empty: the event has none */
    ngx_str_t               text;
    ngx_int_t               rc;           /* NGX_AGAIN: not taken yet */
} ngx_mcp_take_t;

ngx_int_t ngx_mcp_lease_take(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take);


/* for mcp_status: the n-th; NGX_DECLINED past the last */

typedef struct {
    ngx_str_t               key;
    ngx_pid_t               holder;       /* 0: nobody */
    ngx_msec_t              held;         /* for so long */
    ngx_msec_t              silent;       /* since something was taken */
    uint32_t                fence;
    uint64_t                taken;
} ngx_mcp_lease_info_t;

ngx_int_t ngx_mcp_lease_info(ngx_mcp_zone_t *zone, ngx_uint_t n,
    ngx_pool_t *pool, ngx_mcp_lease_info_t *info);


#endif /* _NGX_MCP_LEASE_H_INCLUDED_ */
