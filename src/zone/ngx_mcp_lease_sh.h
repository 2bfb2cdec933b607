
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The structure of a lease in the zone.
 */

#ifndef _NGX_MCP_LEASE_SH_H_INCLUDED_
#define _NGX_MCP_LEASE_SH_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_lease.h"


/* a reader that may consume events; nonce 0: there is none */

typedef struct {
    uint32_t                worker;       /* slot of the worker */
    uint32_t                nonce;        /* nonce of that slot */
    uint32_t                fence;        /* fence of its claim */
    uint32_t                connected;    /* 1: it is connected */
    uint64_t                epoch;        /* epoch of its configuration */

    /* ngx_current_msec */
    uint64_t                claimed;
    uint64_t                deadline;     /* the reader loses the lease then,
                                             unless it renews the lease */
} ngx_mcp_reader_sh_t;


/* flags of a lease */

#define NGX_MCP_LEASE_SIGNAL    0x01      /* the holder was signaled, and has
                                             not handled this yet */
#define NGX_MCP_LEASE_READ      0x02      /* a reader was connected once */
#define NGX_MCP_LEASE_MISSED    0x04      /* the previous reader died in the
                                             overlap */
#define NGX_MCP_LEASE_FAILED    0x08      /* the holder could not connect */
#define NGX_MCP_LEASE_AWAITED   0x10      /* a worker waits until a reader is
                                             connected */

/*
 * The record of a lease.  Text: the key, then NGX_MCP_LEASE_ID_MAX bytes for
 * the last event id and NGX_MCP_LEASE_NOTE_MAX bytes for the note.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* links: in the list of leases;
                                             owner: ngx_mcp_lease_share_t */
    ngx_mcp_links_sh_t      news;         /* in sh->news, which is in the order
                                             of the last changes */
    uint32_t                user;         /* ngx_mcp_lease_share_t; 0: none */
    uint64_t                serial;       /* zone's stamp when it was made */
    uint64_t                changed;      /* zone's stamp at its last change */
    ngx_mcp_reader_sh_t     holder;
    ngx_mcp_reader_sh_t     previous;     /* previous reader in an overlap */
    uint16_t                key_len;
    uint16_t                former;       /* worker that lost the lease and has
                                             to be woken for this */
    uint32_t                former_nonce; /* nonce of its slot; 0: no worker has
                                             to be woken */
    uint32_t                id_len;       /* length of the last event id */
    uint32_t                note_len;     /* length of the note */
    uint32_t                overlap;      /* number of the overlap: the fence
                                             of the holder's claim */
    uint32_t                earlier;      /* number of an overlap that had not
                                             ended when this one began, or 0 */
    ngx_mcp_ref_t           item;         /* outbox item that still delivers
                                             the last event; block 0: none */

    /* times: ngx_current_msec */

    uint64_t                joined;       /* when the holder connected in an
                                             overlap; 0: not yet */
    uint64_t                match_until;  /* until then, equal texts of both
                                             readers are one event */
    uint64_t                free_since;   /* since when it has no holder */
    uint64_t                pause_until;  /* ngx_mcp_lease_pause() */
    uint64_t                consumed;     /* number of consumed events */
    uint64_t                active;       /* when an event was consumed, or the
                                             holder claimed or connected, the
                                             last time */
} ngx_mcp_lease_sh_t;

/* the structure fits into one block */

typedef char  ngx_mcp_lease_fits[
    (sizeof(ngx_mcp_lease_sh_t) <= NGX_MCP_BLOCK_SIZE) ? 1 : -1];


/*
 * ms; two equal texts, one of each reader in an overlap, count as the same
 * event if they come within this time
 */

#define NGX_MCP_LEASE_MATCH_TIME  (3 * NGX_MCP_LEASE_GRACE)


/*
 * Returns the reader that has this fence, which is the holder or the previous
 * reader of an overlap; *l becomes the record of the lease.  NULL: the lease is
 * lost.
 */
ngx_mcp_reader_sh_t *ngx_mcp_lease_reader_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_t *lease, ngx_mcp_lease_sh_t **l);

/*
 * Returns the previous reader of an overlap, or NULL.  This function ends an
 * overlap whose time is over.
 */
ngx_mcp_reader_sh_t *ngx_mcp_lease_previous_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_lease_sh_t *l);

/*
 * ngx_mcp_lease_owned(): returns whether this worker is a reader of the lease.
 * ngx_mcp_lease_lost_locked(): takes the lease from this worker, which died or
 * released it.  ngx_mcp_lease_drop_locked(): removes the lease.
 */
ngx_uint_t ngx_mcp_lease_owned(ngx_mcp_lease_sh_t *l, ngx_uint_t worker,
    uint32_t nonce);
void ngx_mcp_lease_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l,
    ngx_uint_t worker, uint32_t nonce);
void ngx_mcp_lease_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_lease_sh_t *l);

/* has all workers look at all leases */
void ngx_mcp_lease_ring_locked(ngx_mcp_zone_t *zone);

/*
 * Calls schema->lease() for leases with a change that this worker has not
 * seen.  NGX_OK: all were seen; NGX_AGAIN: call again soon.
 */
ngx_int_t ngx_mcp_lease_drain(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_LEASE_SH_H_INCLUDED_ */
