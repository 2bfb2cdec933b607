
/*
 * The structure of the zone, for the files of this folder and the layer above.
 *
 * The slab pool gives nearly all of its pages as one run at init and is used
 * for its mutex after that.  The run holds the header below, the buckets of
 * the one hash table, the counters, the root of the layer above, the journal,
 * the blocks, and the slots of workers.
 *
 * A block whose type is not FREE is a record.  The text of a record starts
 * behind its structure and goes on in a chain of data blocks; how many follows
 * from its length.
 *
 * Every hold of the lock is a transaction: what is changed under it is noted
 * in the journal first (ngx_mcp_touch()), and if its holder dies, the next one
 * puts the old content back.  Not noted, as they are changed without the lock
 * or may be wrong for a moment, are counters, heartbeats, bells (from "bits" on
 * in a place), and the content of blocks that were free when the transaction
 * began.
 */

#ifndef _NGX_MCP_ZONE_SH_H_INCLUDED_
#define _NGX_MCP_ZONE_SH_H_INCLUDED_


#include "ngx_mcp_zone.h"


#define NGX_MCP_ZONE_MAGIC    0x4d4350207a6f6e65ULL

#define NGX_MCP_BLOCK_SIZE    256
#define NGX_MCP_BLOCK_HEAD    16
#define NGX_MCP_BLOCK_DATA    (NGX_MCP_BLOCK_SIZE - NGX_MCP_BLOCK_HEAD)

/* a text of more blocks is filled outside of the lock */
#define NGX_MCP_BLOCKS_SMALL  8
#define NGX_MCP_BLOCKS_BATCH  64
#define NGX_MCP_BLOCKS_NOTES  64          /* bytes of the journal for one */
#define NGX_MCP_BLOCKS_MAX    65535

/* of workers; old and new ones of a reload have places at the same time */
#define NGX_MCP_SLOTS_MIN     256
#define NGX_MCP_SLOTS_MAX     (2 * NGX_MCP_ZONE_WORKERS)
#define NGX_MCP_SLOTS_STEP    64
#define NGX_MCP_SLOTS_EACH    8           /* for each worker process */
#define NGX_MCP_SLOTS_SHARE   8           /* at most this part of the zone */
#define NGX_MCP_SLOT_NONE     0xffff

/* workers with the same rest share a bit */
#define NGX_MCP_WATCH_BITS    256
#define NGX_MCP_RING          32

/* of a zone's size */
#define NGX_MCP_JOURNAL_SHARE  64
#define NGX_MCP_JOURNAL_MIN    (32 * 1024)
#define NGX_MCP_JOURNAL_MAX    (128 * 1024)


/* the order of the journal's stores, as a process that is killed leaves it */

#if (defined __GNUC__ && (defined __x86_64__ || defined __i386__))
#define ngx_mcp_barrier()     __asm__ volatile ("" ::: "memory")
#else
#define ngx_mcp_barrier()     ngx_memory_barrier()
#endif


/* types: a block that is free, or data; a lease; the schema's */
#define NGX_MCP_FREE          0
#define NGX_MCP_LEASE         1
#define NGX_MCP_TYPE_FIRST    2

typedef struct {
    u_char                  type;
    u_char                  spare;
    uint16_t                blocks;       /* of the record, this one included */
    uint32_t                gen;
    uint32_t                chain;        /* goes on there; next free */
    uint32_t                last;         /* of the chain */
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
    ngx_mcp_ref_t           owner;
    ngx_mcp_links_sh_t      links;        /* in a list of the owner */
    uint32_t                hash;
    uint32_t                bucket;       /* next in the hash table */
    uint32_t                len;          /* of text */
    uint16_t                flags;
    uint16_t                worker;
    uint32_t                account;      /* its blocks are charged to */
} ngx_mcp_record_sh_t;


/* a record that a worker is woken for */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* worker: whose it is */
    ngx_mcp_links_sh_t      pending;
    uint32_t                reasons;      /* 0: it does not wait */
    uint32_t                local;        /* the worker's number of it */
} ngx_mcp_task_sh_t;


#define NGX_MCP_WORKER_FREE     0
#define NGX_MCP_WORKER_LIVE     1
#define NGX_MCP_WORKER_DEAD     2         /* being reaped */

/* a bit of a worker that is not the schema's */
#define NGX_MCP_RING_LEASES     0x80000000

#define NGX_MCP_NAME_LEN        16

typedef struct {
    uint32_t                state;
    uint32_t                nonce;        /* of this claim of the slot */
    ngx_pid_t               pid;
    uint64_t                epoch;
    u_char                  name[NGX_MCP_NAME_LEN];
    ngx_mcp_list_sh_t       pending;      /* tasks */
    uint32_t                staged;       /* blocks being filled */
    uint32_t                quitting;
    uint32_t                first;        /* of these, with ..._WAKE_FIRST */
    uint32_t                left;         /* it gave up the slot itself */

    /* not noted in the journal */

    uint32_t                bits;
    uint32_t                rung;         /* a datagram is under way */
    uint64_t                heartbeat;
    uint64_t                keys;         /* for bits: NGX_MCP_RING_KEY() */
    uint64_t                leases;       /* changes of them seen so far */
    uint32_t                lease;        /* the one seen last */
    uint32_t                nring;
    uint32_t                overflow;
    uint32_t                spare;
    uint32_t                ring[NGX_MCP_RING];  /* blocks with news */
} ngx_mcp_worker_sh_t;


struct ngx_mcp_zone_sh_s {
    uint64_t                magic;
    uint32_t                version;
    uint32_t                layout;
    uint64_t                size;

    /* places in the zone */

    uint64_t                counters;
    uint64_t                root;
    uint64_t                journal;
    uint64_t                base;         /* of blocks */

    uint64_t                key[2];       /* of hashes */
    uint32_t                generation;
    uint32_t                mask;         /* buckets - 1 */
    uint32_t                recoveries;

    /* the journal; a transaction that is under way has noted something */

    uint32_t                journal_size;
    volatile uint32_t       noted;        /* bytes of it that are in use */
    uint32_t                lost;         /* not all could be noted */

    /* from here to epoch: noted with each transaction */

    uint64_t                stamp;        /* of what comes after another */
    uint32_t                blocks;       /* 1 .. blocks - 1 */
    uint32_t                watermark;    /* never used from here on */
    uint32_t                free;
    uint32_t                nfree;
    uint32_t                freed;        /* in this transaction */
    uint32_t                freed_last;
    uint32_t                slots;        /* of workers */
    uint32_t                top;          /* those behind it are free */
    uint32_t                nonces;
    uint32_t                spare;
    uint32_t                used[NGX_MCP_TYPES];  /* blocks, by type */

    ngx_atomic_t            epoch;        /* drawn last */

    ngx_mcp_list_sh_t       leases;       /* oldest first */
    ngx_mcp_list_sh_t       news;         /* of leases */
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

/* the slots of workers end the zone, the first one last */

#define ngx_mcp_slot(zone, n)                                                 \
    ((ngx_mcp_worker_sh_t *) ((u_char *) (zone)->sh + (zone)->sh->size)       \
     - 1 - (n))

#define ngx_mcp_counters(sh)                                                  \
    ((ngx_atomic_t *) ((u_char *) (sh) + (sh)->counters))

#define ngx_mcp_free_blocks(sh)                                               \
    ((sh)->nfree + (sh)->blocks - (sh)->watermark)


/* the record that a reference names, or NULL */

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
