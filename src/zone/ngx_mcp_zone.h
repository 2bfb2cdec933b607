
/*
 * The shared-memory zone: its one lock, its blocks, its workers.
 *
 * Everything in the zone is made of blocks of one size.  A record starts in a
 * block of its type; what does not fit continues in a chain of data blocks.
 * Blocks refer to each other by number, never by address, and from outside
 * they are named by ngx_mcp_ref_t, which carries the block's generation, so
 * that a stale name is recognised.
 *
 * Locking: the slab pool's mutex is the zone's only lock, because it is the
 * only one that nginx releases when a worker dies holding it.  Functions that
 * need it held end in _locked; all others take it themselves.  While it is
 * held nothing is parsed, nothing is sent and no unbounded loop runs.  Every
 * hold is a transaction: when its holder dies, the next one undoes it from a
 * journal, in microseconds (ngx_mcp_journal.c).
 *
 * Which types of records there are, and what else the zone holds, the layer
 * above tells by a schema.  Any worker, of any configuration generation, may
 * call; no nginx request is known here.
 */

#ifndef _NGX_MCP_ZONE_H_INCLUDED_
#define _NGX_MCP_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_MCP_ZONE_MIN_SIZE   (1024 * 1024)

/* a reason to look at a task that has to be known before news are read */
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
 * The contract with the layer above.  Functions in _locked are called with the
 * lock held.
 */

typedef struct {
    uint32_t                version;      /* of the layout */
    ngx_uint_t              types;        /* of records; NGX_MCP_FREE is one */
    size_t                 *heads;        /* by type: of their structures */
    ngx_uint_t              counters;

    /* of the root's structure in a zone of this size; it is all zero first */
    size_t                (*root)(size_t size);

    /* the root of a zone without records; also what is not yet emptied */
    void                  (*clear)(ngx_mcp_zone_t *zone);

    /*
     * logs that the zone has another layout, or an update cannot be undone,
     * so that it is emptied; that an update was undone
     */
    void                  (*outdated)(ngx_mcp_zone_t *zone);
    void                  (*broken)(ngx_mcp_zone_t *zone);
    void                  (*undone)(ngx_mcp_zone_t *zone);

    /* makes sure that n blocks are free for the payer; may free records */
    ngx_int_t             (*reserve_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_ref_t payer, ngx_uint_t room,
                                ngx_uint_t n);

    /* logs that this was refused; called without the lock */
    void                  (*full)(ngx_mcp_zone_t *zone);

    /* the account of the payer, or 0; charges blocks to it, releases them */
    uint32_t              (*account_locked)(ngx_mcp_zone_t *zone,
                                ngx_mcp_ref_t payer);
    void                  (*charge_locked)(ngx_mcp_zone_t *zone, uint32_t n,
                                ngx_uint_t type, ngx_uint_t blocks);
    void                  (*release_locked)(ngx_mcp_zone_t *zone, uint32_t n,
                                ngx_uint_t type, ngx_uint_t blocks);

    /*
     * Work of a worker whose bell was rung: for each task that waits,
     * "local" is the number that this worker gave it; for each watched record
     * that has news (NULL: all); once for the bits, with keys of what changed
     * (NGX_AGAIN: more is left).  And for a lease, with NGX_MCP_LEASE_* bits.
     * Called without the lock, only in workers with handlers; may call back
     * into the zone.
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

    /* every second; NGX_AGAIN: call again soon */
    ngx_int_t             (*sweep)(ngx_mcp_zone_t *zone);

    /*
     * every second, and when it is due (ngx_mcp_doorbell_due()); *next is the
     * time to the next one, or 0; NGX_AGAIN likewise
     */
    ngx_int_t             (*due)(ngx_mcp_zone_t *zone, ngx_msec_t *next);

    /*
     * A worker died.  owned: whether the record belongs to it; called without
     * the lock as well, so the record may change.  reap_locked: gives the
     * record up; whether it counts as lost.  died: logs the lost ones, by
     * type.
     */
    ngx_uint_t            (*owned)(void *rec, ngx_uint_t worker);
    ngx_uint_t            (*reap_locked)(ngx_mcp_zone_t *zone, void *rec,
                                ngx_uint_t worker);
    void                  (*died)(ngx_mcp_zone_t *zone, ngx_pid_t pid,
                                ngx_uint_t *lost);
} ngx_mcp_schema_t;


/* of 64 pieces of 256 bytes: what the journal has of them by now */

#define NGX_MCP_NOTED  64

typedef struct {
    uint64_t                serial;
    uint64_t                cell;
    uint32_t                from;
    uint32_t                to;
} ngx_mcp_noted_t;


/*
 * The key of something that changes is a bit by its number or hash, so that
 * others may have the same one.
 */
#define NGX_MCP_RING_KEY(hash)  ((uint64_t) 1 << ((hash) & 63))
#define NGX_MCP_RING_ANY        ((uint64_t) -1)


/* a dead worker whose records this process gives up; from is 0: none */

typedef struct {
    ngx_uint_t              worker;
    uint32_t                nonce;
    uint32_t                from;         /* block to be looked at next */
    uint32_t                recoveries;   /* of the zone, when it began */
    ngx_uint_t              lost[NGX_MCP_TYPES];
} ngx_mcp_reap_t;


/* numbers that the layer above counts in a process, and contexts there */
#define NGX_MCP_ZONE_COUNTS  4
#define NGX_MCP_ZONE_CTX     16


/* workers whose bells are rung when the lock is given back; more: all */
#define NGX_MCP_BELLS  32


/* process-local handle; one per zone and configuration */

struct ngx_mcp_zone_s {
    ngx_str_t                   name;
    ngx_slab_pool_t            *shpool;
    ngx_mcp_zone_sh_t          *sh;
    ngx_mcp_root_sh_t          *root;
    ngx_mcp_schema_t           *schema;
    u_char                     *blocks;        /* block n at blocks + n * 256 */
    uint64_t                    epoch;         /* newer is higher */
    ngx_uint_t                  worker;        /* our slot, or ..._NO_WORKER */
    ngx_uint_t                  awaits;        /* waiters for leases here */
    ngx_mcp_worker_handlers_t  *handlers;
    ngx_log_t                  *log;
    void                       *doorbell;      /* private */

    unsigned                    full:2;       /* schema->full() is called at
                                                 unlock */
    unsigned                    refused:2;    /* at the last refusal */

    ngx_mcp_reap_t              reap;

    ngx_uint_t                  nbells;
    uint16_t                    bells[NGX_MCP_BELLS];

    /* of the layers above, in this process */

    ngx_uint_t                  counts[NGX_MCP_ZONE_COUNTS];
    void                       *ctx[NGX_MCP_ZONE_CTX];

    uint64_t                    serial;       /* of the transaction */
    ngx_mcp_noted_t             noted[NGX_MCP_NOTED];
};

#define NGX_MCP_NO_WORKER  ((ngx_uint_t) -1)


/*
 * Prepares a zone in the master, in the zone's init callback.  reuse: the
 * memory comes from an earlier configuration; its content is kept when magic,
 * version and sizes agree, else it is emptied.  zone->epoch is drawn, by which
 * workers tell which of their configurations is the newer one.  There are
 * places for several generations of that many workers.  NGX_OK, or NGX_ERROR
 * (logged) when the zone is too small.
 */
ngx_int_t ngx_mcp_zone_init(ngx_mcp_zone_t *zone, ngx_mcp_schema_t *schema,
    ngx_uint_t workers, ngx_uint_t reuse);

/* the size that a zone for so many workers needs; at most that many */
size_t ngx_mcp_zone_min_size(ngx_uint_t workers);

#define NGX_MCP_ZONE_WORKERS    8192

void ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);

/* the zone's generation; drawn when the zone was emptied */
uint32_t ngx_mcp_zone_generation(ngx_mcp_zone_t *zone);

/* a secret that is the zone's as long as that is not emptied */
#define NGX_MCP_ZONE_KEY  16

void ngx_mcp_zone_key(ngx_mcp_zone_t *zone, u_char *dst);

/* adds to a counter, atomically, no lock needed */
void ngx_mcp_count(ngx_mcp_zone_t *zone, ngx_uint_t counter, ngx_int_t n);
int64_t ngx_mcp_counter(ngx_mcp_zone_t *zone, ngx_uint_t counter);

/* of what there is now; those are counters that change under the lock */
void ngx_mcp_gauge_locked(ngx_mcp_zone_t *zone, ngx_uint_t counter,
    ngx_int_t n);

/* makes slots for workers, up to so many if it can; all that there are */
ngx_uint_t ngx_mcp_slots_grow_locked(ngx_mcp_zone_t *zone, ngx_uint_t slots);

/* between two holds of the lock of one process, so that others get it */

#define NGX_MCP_PAUSE  512

static ngx_inline void
ngx_mcp_zone_pause(void)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_MCP_PAUSE; i++) {
        ngx_cpu_pause();
    }
}


/* lets the processor fetch memory that is needed soon */

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
