
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

/*
 * Among the reasons to wake a task: the worker handles the task before it reads
 * the logs that it watches.
 */
#define NGX_MCP_WAKE_FIRST      0x80000000

/* the largest number of types of blocks */
#define NGX_MCP_TYPES           32


typedef struct ngx_mcp_zone_s             ngx_mcp_zone_t;
typedef struct ngx_mcp_zone_sh_s          ngx_mcp_zone_sh_t;
typedef struct ngx_mcp_root_sh_s          ngx_mcp_root_sh_t;
typedef struct ngx_mcp_worker_handlers_s  ngx_mcp_worker_handlers_t;


/* names a record; block 0 names none */

typedef struct {
    uint32_t                block;        /* number of its first block */
    uint32_t                gen;          /* generation of this block */
} ngx_mcp_ref_t;


/*
 * The schema: the functions and sizes that the layer above gives.  Functions
 * that end in _locked are called with the lock held.
 */

typedef struct {
    uint32_t                version;      /* version of the layout of records */
    ngx_uint_t              types;        /* number of types, NGX_MCP_FREE
                                             included */
    size_t                 *heads;        /* by type: size of the structure */
    ngx_uint_t              counters;     /* number of counters */

    /* returns the size of the root in a zone of "size" bytes */
    size_t                (*root)(size_t size);

    /* sets up the root of a zone without records; a new root is all zero */
    void                  (*clear)(ngx_mcp_zone_t *zone);

    /*
     * These write to the log.  outdated: the zone is emptied, as it has another
     * layout.  broken: the zone is emptied, as a transaction cannot be undone.
     * undone: a transaction was undone.
     */
    void                  (*outdated)(ngx_mcp_zone_t *zone);
    void                  (*broken)(ngx_mcp_zone_t *zone);
    void                  (*undone)(ngx_mcp_zone_t *zone);

    /*
     * Makes sure that n blocks are free for the payer; may remove records for
     * that.  room: the purpose of the blocks, a number of the layer above.
     * NGX_OK; else there is no room.
     */
    ngx_int_t             (*reserve_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_ref_t payer, ngx_uint_t room,
                                ngx_uint_t n);

    /* logs that a request for room was refused; called without the lock */
    void                  (*full)(ngx_mcp_zone_t *zone);

    /*
     * account: returns the block of the payer's account, or 0.  charge and
     * release: called when blocks of this type were allocated for the account
     * in block n, or freed.
     */
    uint32_t              (*account_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_ref_t payer);
    void                  (*charge_locked)(ngx_mcp_zone_t *zone, uint32_t n,
                                ngx_uint_t type, ngx_uint_t blocks);
    void                  (*release_locked)(ngx_mcp_zone_t *zone, uint32_t n,
                                ngx_uint_t type, ngx_uint_t blocks);

    /*
     * The work of a worker whose bell was rung.  These functions are called
     * without the lock, only in workers with handlers, and may use the zone.
     *
     * task: called for each task that waits; local: the number that this worker
     * gave the task.  news: called for each watched record that has news; type
     * NGX_MCP_FREE stands for all records that this worker watches.  rung:
     * called once for all bits, with the keys of all that changed; NGX_OK, or
     * NGX_AGAIN: more is left.  lease: called for a lease, with bits of
     * NGX_MCP_LEASE_* as reasons.
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
     * Called when a worker died.  owned: returns whether a record belongs to
     * the worker; is also called without the lock, so that the record may
     * change meanwhile.  reap_locked: removes a record of the worker or frees
     * it for other workers; returns whether the record counts as lost.  died:
     * logs how many records were lost, by type.
     */
    ngx_uint_t            (*owned)(void *rec, ngx_uint_t worker);
    ngx_uint_t            (*reap_locked)(ngx_mcp_zone_t *zone, void *rec,
                                ngx_uint_t worker);
    void                  (*died)(ngx_mcp_zone_t *zone, ngx_pid_t pid,
                                ngx_uint_t *lost);
} ngx_mcp_schema_t;


/*
 * A key stands for a thing that has changed.  It is one of 64 bits, chosen by
 * the number or hash of that thing, so that several things may have the same
 * key.
 */
#define NGX_MCP_RING_KEY(hash)  ((uint64_t) 1 << ((hash) & 63))
#define NGX_MCP_RING_ANY        ((uint64_t) -1)


/* a search for the records of a dead worker, in which this process reaps it */

typedef struct {
    ngx_uint_t              worker;       /* slot of the dead worker */
    uint32_t                nonce;        /* nonce of that slot */
    uint32_t                from;         /* block to be examined next; 0: no
                                             search is under way */
    uint32_t                recoveries;   /* sh->recoveries when the search
                                             began */
    ngx_uint_t              lost[NGX_MCP_TYPES];  /* lost records, by type */
} ngx_mcp_reap_t;


/* sizes of zone->counts and zone->ctx */
#define NGX_MCP_ZONE_COUNTS  4
#define NGX_MCP_ZONE_CTX     16


/*
 * Size of zone->bells, the list of workers whose bells are rung when the lock
 * is released.  If there are more, the bells of all workers are examined.
 */
#define NGX_MCP_BELLS  32


/*
 * The data of a process about a zone.  Each configuration has its own
 * structure.
 */

struct ngx_mcp_zone_s {
    ngx_str_t                   name;
    ngx_slab_pool_t            *shpool;
    ngx_mcp_zone_sh_t          *sh;
    ngx_mcp_root_sh_t          *root;
    ngx_mcp_schema_t           *schema;
    u_char                     *blocks;        /* address of block 0 */
    uint64_t                    epoch;         /* number of the configuration,
                                                  which grows with each
                                                  reload */
    ngx_uint_t                  worker;        /* slot of this worker, or
                                                  NGX_MCP_NO_WORKER */
    ngx_msec_t                  resumed;       /* ngx_current_msec at the end of
                                                  the last pause of this worker;
                                                  0: none */
    ngx_uint_t                  awaits;        /* number of requests in this
                                                  process that wait until a
                                                  lease has a reader */
    ngx_mcp_worker_handlers_t  *handlers;
    ngx_log_t                  *log;
    void                       *doorbell;      /* private */

    unsigned                    full:2;       /* not 0: room was refused, and
                                                 unlock calls schema->full() */
    unsigned                    refused:2;    /* why room was refused the last
                                                 time */

    ngx_mcp_reap_t              reap;

    ngx_uint_t                  nbells;       /* number of bells to be rung;
                                                 may exceed NGX_MCP_BELLS */
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
 * Returns the minimum size of a zone for this number of workers, which may be
 * up to NGX_MCP_ZONE_WORKERS.
 */
size_t ngx_mcp_zone_min_size(ngx_uint_t workers);

#define NGX_MCP_ZONE_WORKERS    8192

/*
 * lock: if the last holder died, first undoes its transaction.  unlock: ends
 * the transaction, and rings the bells of workers for which there is work.
 */
void ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);

/* notes that nginx uses the configuration: its reload cannot fail any more */
void ngx_mcp_zone_current(ngx_mcp_zone_t *zone);

/*
 * Returns whether nginx uses a newer configuration, even if its workers have
 * not started yet.
 */
ngx_uint_t ngx_mcp_zone_reloaded(ngx_mcp_zone_t *zone);


/* returns a number that changes each time that the zone is emptied */
uint32_t ngx_mcp_zone_generation(ngx_mcp_zone_t *zone);

/*
 * Copies the zone's secret key of NGX_MCP_ZONE_KEY bytes to dst.  The key is
 * random and stays the same until the zone is cleared.
 */
#define NGX_MCP_ZONE_KEY  16

void ngx_mcp_zone_key(ngx_mcp_zone_t *zone, u_char *dst);

/* adds n to a counter, or reads a counter, atomically and without the lock */
void ngx_mcp_count(ngx_mcp_zone_t *zone, ngx_uint_t counter, ngx_int_t n);
int64_t ngx_mcp_counter(ngx_mcp_zone_t *zone, ngx_uint_t counter);

/* adds n to a gauge, which is a counter that is changed only under the lock */
void ngx_mcp_gauge_locked(ngx_mcp_zone_t *zone, ngx_uint_t counter,
    ngx_int_t n);

/*
 * Makes slots for workers until there are "slots" of them or there is no room.
 * Returns the number of slots.
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


/* tells the processor to load memory into its cache */

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


/* returns the time in ms since the epoch */

static ngx_inline uint64_t
ngx_mcp_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


#endif /* _NGX_MCP_ZONE_H_INCLUDED_ */
