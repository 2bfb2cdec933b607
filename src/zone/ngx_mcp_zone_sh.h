
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The structure of the zone, for the files of this folder and the layer above.
 *
 * The slab pool gives nearly all of its pages as one run at init and is used
 * for its mutex after that.  The run holds the header below, the buckets of
 * the one hash table, the counters, the root of the layer above, the journal,
 * the blocks, and the slots of workers.
 *
 * A block whose type is not NGX_MCP_FREE is the start of a record.  The text
 * of a record starts behind its structure and goes on in a chain of data
 * blocks; the length of the text tells how many.
 *
 * Every hold of the lock is a transaction: memory is noted in the journal
 * before it is changed (ngx_mcp_touch()), and if the holder dies, the next
 * holder puts the old content back.  These are not noted: counters, heartbeats
 * and bells (the members of a slot from "bits" on), as they are changed without
 * the lock or may be wrong for a moment; and the content of blocks that were
 * free when the transaction began.
 */

#ifndef _NGX_MCP_ZONE_SH_H_INCLUDED_
#define _NGX_MCP_ZONE_SH_H_INCLUDED_


#include "ngx_mcp_zone.h"


#define NGX_MCP_ZONE_MAGIC    0x4d4350207a6f6e65ULL

#define NGX_MCP_BLOCK_SIZE    256
#define NGX_MCP_BLOCK_HEAD    16
#define NGX_MCP_BLOCK_DATA    (NGX_MCP_BLOCK_SIZE - NGX_MCP_BLOCK_HEAD)

/* a text of more blocks is staged: its blocks are allocated in batches */
#define NGX_MCP_BLOCKS_SMALL  8
#define NGX_MCP_BLOCKS_BATCH  64
#define NGX_MCP_BLOCKS_NOTES  64          /* bytes of the journal that the
                                             allocation of one block needs */
#define NGX_MCP_BLOCKS_MAX    65535

/* slots of workers; old and new workers of a reload have slots together */
#define NGX_MCP_SLOTS_MIN     256
#define NGX_MCP_SLOTS_MAX     (2 * NGX_MCP_ZONE_WORKERS)
#define NGX_MCP_SLOTS_STEP    64
#define NGX_MCP_SLOTS_EACH    8           /* slots for each worker process */
#define NGX_MCP_SLOTS_SHARE   8           /* slots occupy at most 1/8 of the
                                             zone */
#define NGX_MCP_SLOT_NONE     0xffff

/* bits of a watch; worker n has bit n modulo this number */
#define NGX_MCP_WATCH_BITS    256
#define NGX_MCP_RING          32

/* the journal occupies 1/64 of the zone, within these bounds */
#define NGX_MCP_JOURNAL_SHARE  64
#define NGX_MCP_JOURNAL_MIN    (32 * 1024)
#define NGX_MCP_JOURNAL_MAX    (128 * 1024)


/*
 * Keeps the compiler from reordering stores: if this process is killed, the
 * next process reads the journal as this one left it.
 */

#if (defined __GNUC__ && (defined __x86_64__ || defined __i386__))
#define ngx_mcp_barrier()     __asm__ volatile ("" ::: "memory")
#else
#define ngx_mcp_barrier()     ngx_memory_barrier()
#endif


/* types of blocks: free or data; a lease; the first type of the schema */
#define NGX_MCP_FREE          0
#define NGX_MCP_LEASE         1
#define NGX_MCP_TYPE_FIRST    2

typedef struct {
    u_char                  type;
    u_char                  spare;
    uint16_t                blocks;       /* in the first block of a record:
                                             number of its blocks */
    uint32_t                gen;          /* generation: grows when a record
                                             in this block is dropped */
    uint32_t                chain;        /* next block of the record or, in a
                                             free block, next free block */
    uint32_t                last;         /* last block of the chain */
} ngx_mcp_block_sh_t;


typedef struct {
    uint32_t                next;
    uint32_t                prev;
} ngx_mcp_links_sh_t;


typedef struct {
    uint32_t                head;
    uint32_t                tail;
} ngx_mcp_list_sh_t;


typedef struct {
    ngx_mcp_block_sh_t      block;
    ngx_mcp_ref_t           owner;        /* record that this one belongs to */
    ngx_mcp_links_sh_t      links;        /* in a list of the owner */
    uint32_t                hash;
    uint32_t                bucket;       /* next in the hash table */
    uint32_t                len;          /* length of the text */
    uint16_t                flags;        /* flags of this type of record */
    uint16_t                worker;       /* slot of the worker that made or
                                             holds it, or NGX_MCP_SLOT_NONE */
    uint32_t                account;      /* block of the account that pays
                                             for it, or 0 */
} ngx_mcp_record_sh_t;


/* a record that a worker is woken for */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* worker: slot of its worker */
    ngx_mcp_links_sh_t      pending;      /* in the list of the worker's slot */
    uint32_t                reasons;      /* why its worker is woken; 0: the
                                             task does not wait */
    uint32_t                local;        /* number by which the worker finds
                                             its own data of the task */
} ngx_mcp_task_sh_t;


#define NGX_MCP_WORKER_FREE     0
#define NGX_MCP_WORKER_LIVE     1
#define NGX_MCP_WORKER_DEAD     2         /* being reaped */

/* the bit in w->bits for changes of leases; schema->rung() gets the others */
#define NGX_MCP_RING_LEASES     0x80000000

#define NGX_MCP_NAME_LEN        16

typedef struct {
    uint32_t                state;        /* NGX_MCP_WORKER_FREE, .._LIVE or
                                             .._DEAD */
    uint32_t                nonce;        /* number of this claim of the slot */
    ngx_pid_t               pid;
    uint64_t                epoch;        /* number of its configuration */
    u_char                  name[NGX_MCP_NAME_LEN];  /* of its doorbell */
    ngx_mcp_list_sh_t       pending;      /* tasks that wait */
    uint32_t                staged;       /* first of the blocks that the
                                             worker fills without the lock, or
                                             0 */
    uint32_t                quitting;     /* 1: nginx asked the worker to quit
                                             gracefully */
    uint32_t                nfirst;       /* number of tasks that wait with
                                             NGX_MCP_WAKE_FIRST */
    uint32_t                released;     /* 1: the worker released the slot
                                             when it exited */

    /* not noted in the journal */

    uint32_t                bits;         /* NGX_MCP_RING_*: work to do */
    uint32_t                rung;         /* 1: a datagram to the worker was
                                             sent and is not read yet */
    uint64_t                heartbeat;    /* ngx_current_msec, every second */
    uint64_t                keys;         /* keys of all that changed
                                             (NGX_MCP_RING_KEY()) */
    uint64_t                lease_seen;   /* l->changed of the lease that the
                                             worker examined last; 0: it has to
                                             examine all leases */
    uint32_t                lease_block;  /* block of that lease */
    uint32_t                nring;        /* number of blocks in "ring" */
    uint32_t                overflow;     /* more blocks have news than fit into
                                             "ring" */
    uint32_t                spare;
    uint32_t                ring[NGX_MCP_RING];  /* watched blocks with news */
} ngx_mcp_worker_sh_t;


struct ngx_mcp_zone_sh_s {
    uint64_t                magic;        /* NGX_MCP_ZONE_MAGIC */
    uint32_t                version;      /* version of the schema */
    uint32_t                layout;       /* digest of sizes of structures */
    uint64_t                size;         /* bytes of the whole zone */

    /* offsets in the zone */

    uint64_t                counters;
    uint64_t                root;
    uint64_t                journal;
    uint64_t                base;         /* the blocks */

    uint64_t                key[2];       /* key of hashes */
    uint32_t                generation;   /* of blocks when they are used for
                                             the first time */
    uint32_t                mask;         /* number of buckets, - 1 */
    uint32_t                recoveries;   /* number of processes that died
                                             while they held the lock */

    /* the journal; a transaction is under way if noted is not 0 */

    uint32_t                journal_size;
    volatile uint32_t       noted;        /* bytes of it that are in use */
    uint32_t                journal_full; /* the journal was too small for all
                                             notes of the transaction */

    /* from here to epoch: noted with each transaction */

    uint64_t                stamp;        /* a counter: later events, changes
                                             and records get higher stamps */
    uint32_t                blocks;       /* numbers are 1 .. blocks - 1 */
    uint32_t                watermark;    /* blocks from this number on were
                                             never used */
    uint32_t                free;         /* list of free blocks */
    uint32_t                nfree;        /* number of free blocks below the
                                             watermark */
    uint32_t                freed;        /* list of blocks that were freed in
                                             this transaction */
    uint32_t                freed_last;   /* last block of that list */
    uint32_t                slots;        /* number of slots */
    uint32_t                top;          /* all slots from this number on are
                                             free */
    uint32_t                nonces;       /* last nonce that was given */
    uint32_t                spare;
    uint32_t                used[NGX_MCP_TYPES];  /* number of blocks by type */

    ngx_atomic_t            epoch;        /* last epoch that was given */
    ngx_atomic_t            current;      /* epoch of the configuration that
                                             was put into use last */

    ngx_mcp_list_sh_t       leases;       /* oldest first */
    ngx_mcp_list_sh_t       news;         /* leases, by their last change */
    uint32_t                nleases;

    uint32_t                buckets[];
};


#define NGX_MCP_ALWAYS_NOTED       offsetof(ngx_mcp_zone_sh_t, stamp)
#define NGX_MCP_ALWAYS_NOTED_SIZE                                             \
    (offsetof(ngx_mcp_zone_sh_t, epoch) - NGX_MCP_ALWAYS_NOTED)


#define ngx_mcp_block(zone, n)                                                \
    ((void *) ((zone)->blocks + (size_t) (n) * NGX_MCP_BLOCK_SIZE))

#define ngx_mcp_number(zone, rec)                                             \
    ((uint32_t) ((size_t) ((u_char *) (rec) - (zone)->blocks)                 \
                 / NGX_MCP_BLOCK_SIZE))

/* the slots of workers are at the end of the zone, slot 0 last */

#define ngx_mcp_slot(zone, n)                                                 \
    ((ngx_mcp_worker_sh_t *) ((u_char *) (zone)->sh + (zone)->sh->size)       \
     - 1 - (n))

/*
 * ms; if this worker's own heartbeat is older, the worker was paused, probably
 * with the whole machine.  For as long after the pause, the worker claims no
 * lease only because its holder has not renewed it.
 */
#define NGX_MCP_HEARTBEAT_PAUSE  2000

/* whether the own heartbeat of this process, a worker, is late */
#define ngx_mcp_zone_late(zone)                                               \
    (ngx_mcp_slot(zone, (zone)->worker)->heartbeat + NGX_MCP_HEARTBEAT_PAUSE  \
     < ngx_current_msec)

#define ngx_mcp_counters(sh)                                                  \
    ((ngx_atomic_t *) ((u_char *) (sh) + (sh)->counters))

#define ngx_mcp_free_blocks(sh)                                               \
    ((sh)->nfree + (sh)->blocks - (sh)->watermark)


/* returns the record of this type that the reference names; NULL: it is gone */

static ngx_inline void *
ngx_mcp_record(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref, ngx_uint_t type)
{
    ngx_mcp_block_sh_t  *block;

    if (ref.block == 0 || ref.block >= zone->sh->watermark) {
        return NULL;
    }

    block = ngx_mcp_block(zone, ref.block);

    if (block->type != type || block->gen != ref.gen) {
        return NULL;
    }

    return block;
}


static ngx_inline ngx_mcp_ref_t
ngx_mcp_ref(ngx_mcp_zone_t *zone, void *rec)
{
    ngx_mcp_ref_t  ref;

    ref.block = ngx_mcp_number(zone, rec);
    ref.gen = ((ngx_mcp_block_sh_t *) rec)->gen;

    return ref;
}


#include "ngx_mcp_journal.h"
#include "ngx_mcp_block.h"
#include "ngx_mcp_worker_sh.h"


#endif /* _NGX_MCP_ZONE_SH_H_INCLUDED_ */
