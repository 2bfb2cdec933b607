
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The shared-memory zone: its one lock, its blocks, its workers.
 *
 * Everything in the zone is made of blocks of one size.  A record starts in a
 * block of its type and goes on in a chain of data blocks if it does not fit.
 * Blocks refer to each other by number, never by address.  Outside of the
 * zone, a record is named by an ngx_mcp_ref_t; it has the block's generation,
 * so that a reference to a record that is gone is recognised.
 *
 * Locking: the slab pool's mutex is the zone's only lock, because it is the
 * only one that nginx releases when a worker dies holding it; on Linux, the
 * next worker that waits for it does so earlier.  Functions that need it held
 * end in _locked; all others take it themselves.  While it is held nothing is
 * parsed, nothing is sent and no unbounded loop runs.  Every hold is a
 * transaction: if its holder dies, the next holder undoes it from a journal,
 * in microseconds (ngx_mcp_journal.c).
 *
 * The layer above gives a schema: the types of records, and the other contents
 * of the zone.  Workers of any configuration generation may call the functions
 * here, which know no nginx requests.
 */

#ifndef _NGX_MCP_ZONE_H_INCLUDED_
#define _NGX_MCP_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_MCP_ZONE_MIN_SIZE   (1024 * 1024)

/* a reason of a task that is to be handled before news are read */
#define NGX_MCP_WAKE_FIRST      0x80000000

/* types of records at most */
#define NGX_MCP_TYPES           32


typedef struct ngx_mcp_zone_s             ngx_mcp_zone_t;
typedef struct ngx_mcp_zone_sh_s          ngx_mcp_zone_sh_t;
typedef struct ngx_mcp_root_sh_s          ngx_mcp_root_sh_t;
typedef struct ngx_mcp_worker_handlers_s  ngx_mcp_worker_handlers_t;


/* names a record; block 0 names none */

typedef struct {
    uint32_t                block;
    uint32_t                gen;
} ngx_mcp_ref_t;


/*
 * The schema: the functions and sizes that the layer above gives.  Functions
 * that end in _locked are called with the lock held.
 */

typedef struct {
    uint32_t                version;      /* of the layout */
    ngx_uint_t              types;        /* number of types of records,
                                             NGX_MCP_FREE included */
    size_t                 *heads;        /* sizes of the types' structures */
    ngx_uint_t              counters;     /* number of counters */

    /* the size of the root in a zone of this size; a new root is all zero */
    size_t                (*root)(size_t size);

    /* sets up the root of a zone that has no records now */
    void                  (*clear)(ngx_mcp_zone_t *zone);

    /*
     * Log that the zone is emptied, as it has another layout (outdated) or as
     * a transaction cannot be undone (broken), or that one was undone.
     */
    void                  (*outdated)(ngx_mcp_zone_t *zone);
    void                  (*broken)(ngx_mcp_zone_t *zone);
    void                  (*undone)(ngx_mcp_zone_t *zone);

    /*
     * Makes sure that n blocks are free for the payer; may remove records.
     * NGX_OK; NGX_ERROR: there is no room.
     */
    ngx_int_t             (*reserve_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_ref_t payer, ngx_uint_t room,
                                ngx_uint_t n);

    /* logs that a request for room was refused; called without the lock */
    void                  (*full)(ngx_mcp_zone_t *zone);

    /* finds the payer's account, or 0; charges blocks to it; releases them */
    uint32_t              (*account_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_ref_t payer);
    void                  (*charge_locked)(ngx_mcp_zone_t *zone, uint32_t n,
                                ngx_uint_t type, ngx_uint_t blocks);
    void                  (*release_locked)(ngx_mcp_zone_t *zone, uint32_t n,
                                ngx_uint_t type, ngx_uint_t blocks);

    /*
     * The work of a worker whose bell was rung.  They are called without the
     * lock, only in workers with handlers, and may call the zone.
     *
     * task: for each task that waits; local: the number that this worker gave
     * it.  news: for each watched record that has news; type NGX_MCP_FREE: for
     * all that this worker watches.  rung: once for all bits, with the keys of
     * all that changed; NGX_AGAIN: more is left.  lease: for a lease, with
     * reasons of NGX_MCP_LEASE_*.
     */
    void                  (*task)(ngx_mcp_zone_t *zone, ngx_uint_t type,
                                ngx_mcp_ref_t ref, uint32_t local,
                                ngx_uint_t reasons);
    void                  (*news)(ngx_mcp_zone_t *zone, ngx_uint_t type,
                                ngx_mcp_ref_t ref);
    ngx_int_t             (*rung)(ngx_mcp_zone_t *zone, ngx_uint_t bits,
                                uint64_t keys);
    void                  (*lease)(ngx_mcp_zone_t *zone, ngx_str_t *key,
                                ngx_uint_t reasons);

    /* called every second; NGX_OK; NGX_AGAIN: call again soon */
    ngx_int_t             (*sweep)(ngx_mcp_zone_t *zone);

    /*
     * Called every second, and at the time of ngx_mcp_doorbell_due().  *next
     * becomes the time in ms until it is to be called again, or 0.  NGX_OK;
     * NGX_AGAIN: call again soon.
     */
    ngx_int_t             (*due)(ngx_mcp_zone_t *zone, ngx_msec_t *next);

    /*
     * Called when a worker died.  owned: whether a record belongs to it; this
     * is called without the lock as well, so the record may change meanwhile.
     * reap_locked: gives a record up; returns whether it counts as lost.
     * died: logs how many records were lost, by type.
     */
    ngx_uint_t            (*owned)(void *rec, ngx_uint_t worker);
    ngx_uint_t            (*reap_locked)(ngx_mcp_zone_t *zone, void *rec,
                                ngx_uint_t worker);
    void                  (*died)(ngx_mcp_zone_t *zone, ngx_pid_t pid,
                                ngx_uint_t *lost);
} ngx_mcp_schema_t;


/*
 * The key of a thing that changes: one of 64 bits, chosen by its number or
 * hash, so that several things may have the same key.
 */
#define NGX_MCP_RING_KEY(hash)  ((uint64_t) 1 << ((hash) & 63))
#define NGX_MCP_RING_ANY        ((uint64_t) -1)


/* the dead worker whose records this process gives up; from is 0: none */

typedef struct {
    ngx_uint_t              worker;
    uint32_t                nonce;
    uint32_t                from;         /* block to be looked at next */
    uint32_t                recoveries;   /* sh->recoveries at the start */
    ngx_uint_t              lost[NGX_MCP_TYPES];  /* records, by type */
} ngx_mcp_reap_t;


/* how many counts and contexts in a process the layers above have */
#define NGX_MCP_ZONE_COUNTS  4
#define NGX_MCP_ZONE_CTX     16


/*
 * How many workers are remembered whose bells are rung when the lock is
 * released; if there are more, all bells are rung.
 */
#define NGX_MCP_BELLS  32


/* a process's handle of a zone; there is one for each configuration */

struct ngx_mcp_zone_s {
    ngx_str_t                   name;
    ngx_slab_pool_t            *shpool;
    ngx_mcp_zone_sh_t          *sh;
    ngx_mcp_root_sh_t          *root;
    ngx_mcp_schema_t           *schema;
    u_char                     *blocks;        /* block n at blocks + n * 256 */
    uint64_t                    epoch;         /* newer is higher */
    ngx_uint_t                  worker;        /* own slot, or
                                                  NGX_MCP_NO_WORKER */
    ngx_uint_t                  awaits;        /* how many wait for leases in
                                                  this process */
    ngx_mcp_worker_handlers_t  *handlers;
    ngx_log_t                  *log;
    void                       *doorbell;      /* private */

    unsigned                    full:2;       /* schema->full() is called at
                                                 unlock */
    unsigned                    refused:2;    /* at the last refusal */

    ngx_mcp_reap_t              reap;

    ngx_uint_t                  nbells;
    uint16_t                    bells[NGX_MCP_BELLS];

    /* for the layers above */

    ngx_uint_t                  counts[NGX_MCP_ZONE_COUNTS];
    void                       *ctx[NGX_MCP_ZONE_CTX];
};

#define NGX_MCP_NO_WORKER  ((ngx_uint_t) -1)


/*
 * Prepares a zone, in the master, in the zone's init callback.  reuse: the
 * memory comes from an earlier configuration; its content is kept if magic,
 * version and sizes agree, else the zone is emptied.  zone->epoch is set; a
 * newer configuration has a higher one.  workers: the number of workers; the
 * zone gets slots for several generations of them.  NGX_OK, or NGX_ERROR
 * (logged) if the zone is too small.
 */
ngx_int_t ngx_mcp_zone_init(ngx_mcp_zone_t *zone, ngx_mcp_schema_t *schema,
    ngx_uint_t workers, ngx_uint_t reuse);

/*
 * The least size of a zone for this number of workers, which may be up to
 * NGX_MCP_ZONE_WORKERS.
 */
size_t ngx_mcp_zone_min_size(ngx_uint_t workers);

#define NGX_MCP_ZONE_WORKERS    8192

void ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);

/*
 * returns whether nginx has read a newer configuration; its workers may begin
 * later, or never, if the reload failed
 */
ngx_uint_t ngx_mcp_zone_reloaded(ngx_mcp_zone_t *zone);


/* the zone's generation: another number each time that the zone is emptied */
uint32_t ngx_mcp_zone_generation(ngx_mcp_zone_t *zone);

/* writes the zone's secret key, which stays until the zone is cleared */
#define NGX_MCP_ZONE_KEY  16

void ngx_mcp_zone_key(ngx_mcp_zone_t *zone, u_char *dst);

/* adds to a counter, or reads it, atomically and without the lock */
void ngx_mcp_count(ngx_mcp_zone_t *zone, ngx_uint_t counter, ngx_int_t n);
int64_t ngx_mcp_counter(ngx_mcp_zone_t *zone, ngx_uint_t counter);

/* adds to a gauge: a counter that is changed only under the lock */
void ngx_mcp_gauge_locked(ngx_mcp_zone_t *zone, ngx_uint_t counter,
    ngx_int_t n);

/*
 * Makes slots for workers, up to this number if there is room.  Returns how
 * many slots there are.
 */
ngx_uint_t ngx_mcp_slots_grow_locked(ngx_mcp_zone_t *zone, ngx_uint_t slots);

/* a pause between two holds of the lock, so that other processes get it */

#define NGX_MCP_PAUSE  512

static ngx_inline void
ngx_mcp_zone_pause(void)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_PAUSE; i++) {
        ngx_cpu_pause();
    }
}


/* has the processor fetch memory that is needed soon */

#define NGX_MCP_LINE  64

static ngx_inline void
ngx_mcp_prefetch(void *p, size_t size)
{
#if (defined __GNUC__)
    size_t  n;

    for (n = 0; n < size; n += NGX_MCP_LINE) {
        __builtin_prefetch((u_char *) p + n, 1);
    }
#endif
}


/* ms since the epoch */

static ngx_inline uint64_t
ngx_mcp_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


#endif /* _NGX_MCP_ZONE_H_INCLUDED_ */
