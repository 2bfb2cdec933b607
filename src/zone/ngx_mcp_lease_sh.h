
/*
 * The structure of a lease in the zone.
 */

#ifndef _NGX_MCP_LEASE_SH_H_INCLUDED_
#define _NGX_MCP_LEASE_SH_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_lease.h"


/* a reader that may take events; none when the nonce is 0 */

typedef struct {
    uint32_t                worker;
    uint32_t                nonce;
    uint32_t                fence;
    uint32_t                connected;
    uint64_t                epoch;
    uint64_t                claimed;      /* ngx_current_msec */
    uint64_t                deadline;
} ngx_mcp_reader_sh_t;


#define NGX_MCP_LEASE_SIGNAL    0x01
#define NGX_MCP_LEASE_READ      0x02      /* one was connected */
#define NGX_MCP_LEASE_MISSED    0x04      /* the one before died too early */
#define NGX_MCP_LEASE_FAILED    0x08      /* the holder could not connect */
#define NGX_MCP_LEASE_AWAITED   0x10      /* somebody waits until it can */

/* text: key, last event id, note */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of leases; owner: it
                                             is charged to, or none */
    ngx_mcp_links_sh_t      news;         /* in the order of changes */
    uint32_t                user;         /* of the owner, who wanted it first;
                                             0: none */
    uint64_t                serial;
    uint64_t                changed;      /* serial of the change */
    ngx_mcp_reader_sh_t     holder;
    ngx_mcp_reader_sh_t     previous;     /* in an overlap */
    uint16_t                key_len;
    uint16_t                former;       /* worker to be woken */
    uint32_t                former_nonce;
    uint32_t                id;           /* length */
    uint32_t                note;         /* length */
    uint32_t                fence;        /* tells overlaps apart */
    uint32_t                earlier;      /* fence of the overlap before
                                             this one; 0: it was over */
    ngx_mcp_ref_t           left;         /* a record: what was taken last
                                             and is not done yet, or none */
    uint64_t                joined;       /* the holder in an overlap */
    uint64_t                until;        /* equal texts of both are one */
    uint64_t                since;        /* held by nobody */
    uint64_t                consumed;
    uint64_t                last;         /* taken or connected, ms */
} ngx_mcp_lease_sh_t;

/* it begins in one block */

typedef char  ngx_mcp_lease_fits[
    (sizeof(ngx_mcp_lease_sh_t) <= NGX_MCP_BLOCK_SIZE) ? 1 : -1];


/* for so long an equal text may be the other reader's, ms */

#define NGX_MCP_LEASE_MATCH_TIME  (3 * NGX_MCP_LEASE_GRACE)


/* the reader that holds it or may still take; NULL: it is lost */
ngx_mcp_reader_sh_t *ngx_mcp_lease_reader_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_t *lease, ngx_mcp_lease_sh_t **l);

/* the reader before the holder, or NULL */
ngx_mcp_reader_sh_t *ngx_mcp_lease_previous_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);

/* a worker died: whether it held or read the lease; ends that */
ngx_uint_t ngx_mcp_lease_owned(ngx_mcp_lease_sh_t *l, ngx_uint_t worker,
    uint32_t nonce);
void ngx_mcp_lease_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t worker, uint32_t nonce);
void ngx_mcp_lease_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l);

/* all workers look at all leases */
void ngx_mcp_lease_ring_locked(ngx_mcp_zone_t *zone);

/* calls schema->lease(); NGX_AGAIN: more is left */
ngx_int_t ngx_mcp_lease_drain(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_LEASE_SH_H_INCLUDED_ */
