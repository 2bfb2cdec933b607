
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_doorbell.h"
#include "ngx_mcp_id.h"


static void ngx_mcp_zone_attach(ngx_mcp_zone_t *zone);
static uint32_t ngx_mcp_zone_layout(ngx_mcp_schema_t *schema);
static ngx_int_t ngx_mcp_zone_clear(ngx_mcp_zone_t *zone, size_t size,
    ngx_uint_t workers);
static ngx_uint_t ngx_mcp_zone_slots(ngx_uint_t workers);
static ngx_int_t ngx_mcp_zone_reuse(ngx_mcp_zone_t *zone, ngx_uint_t workers);
static void ngx_mcp_zone_recover_locked(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_empty_locked(ngx_mcp_zone_t *zone);
static ngx_uint_t ngx_mcp_zone_spin(ngx_shmtx_t *mutex);
static void ngx_mcp_zone_unlock_dead(ngx_shmtx_t *mutex);
static ngx_uint_t ngx_mcp_process_exits(ngx_pid_t pid);


#define ngx_mcp_zone_trylock(mutex)                                           \
    (*(mutex)->lock == 0 && ngx_atomic_cmp_set((mutex)->lock, 0, ngx_pid))

/* PF_EXITING of the Linux kernel, in the flags in /proc/PID/stat */
#define NGX_MCP_ZONE_EXITING  0x00000004


ngx_int_t
ngx_mcp_zone_init(ngx_mcp_zone_t *zone, ngx_mcp_schema_t *schema,
    ngx_uint_t workers, ngx_uint_t reuse)
{
    size_t              size;
    ngx_uint_t          pages;
    ngx_slab_pool_t    *shpool;
    ngx_mcp_zone_sh_t  *sh;

    zone->worker = NGX_MCP_NO_WORKER;
    zone->schema = schema;
    shpool = zone->shpool;

    if (reuse && shpool->data) {
        sh = shpool->data;
        zone->sh = sh;

        if (sh->magic == NGX_MCP_ZONE_MAGIC
            && sh->version == schema->version
            && sh->layout == ngx_mcp_zone_layout(schema))
        {
            return ngx_mcp_zone_reuse(zone, workers);
        }

        schema->outdated(zone);

        size = (size_t) sh->size;

        return ngx_mcp_zone_clear(zone, size, workers);
    }

    shpool->log_nomem = 0;

    /* a few pages are left to the slab allocator, for other uses of the pool */

    pages = shpool->pfree > 8 ? shpool->pfree - 4 : 0;
    size = pages * ngx_pagesize;

    if (size < NGX_MCP_ZONE_MIN_SIZE - NGX_MCP_ZONE_MIN_SIZE / 8) {
        ngx_log_error(NGX_LOG_EMERG, zone->log, 0,
                      "mcp zone \"%V\" is too small; give \"mcp_zone\" a "
                      "larger size", &zone->name);
        return NGX_ERROR;
    }

    sh = ngx_slab_alloc(shpool, size);

    if (sh == NULL) {
        ngx_log_error(NGX_LOG_EMERG, zone->log, 0,
                      "mcp zone \"%V\" cannot allocate its memory; give "
                      "\"mcp_zone\" a larger size", &zone->name);
        return NGX_ERROR;
    }

    zone->sh = sh;
    shpool->data = sh;

    return ngx_mcp_zone_clear(zone, size, workers);
}


/*
 * Returns the number of slots for this number of workers, and for the workers
 * of older configurations that still run.
 */

static ngx_uint_t
ngx_mcp_zone_slots(ngx_uint_t workers)
{
    return ngx_min(ngx_max(workers * NGX_MCP_SLOTS_EACH, NGX_MCP_SLOTS_MIN),
                   NGX_MCP_SLOTS_MAX);
}


size_t
ngx_mcp_zone_min_size(ngx_uint_t workers)
{
    return ngx_max(ngx_mcp_zone_slots(workers) * sizeof(ngx_mcp_worker_sh_t)
                   * NGX_MCP_SLOTS_SHARE, NGX_MCP_ZONE_MIN_SIZE);
}


static ngx_int_t
ngx_mcp_zone_reuse(ngx_mcp_zone_t *zone, ngx_uint_t workers)
{
    ngx_uint_t          slots;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;
    ngx_mcp_zone_attach(zone);

    ngx_mcp_zone_lock(zone);

    slots = ngx_mcp_slots_grow_locked(zone, ngx_mcp_zone_slots(workers));

    ngx_mcp_zone_unlock(zone);

    if (slots < workers) {
        ngx_log_error(NGX_LOG_EMERG, zone->log, 0,
                      "mcp zone \"%V\" serves %ui workers at most, and the "
                      "configuration has %ui; change the size of "
                      "\"mcp_zone\", which empties it, or lower "
                      "\"worker_processes\"",
                      &zone->name, slots, workers);
        return NGX_ERROR;
    }

    zone->epoch = ngx_atomic_fetch_add(&sh->epoch, 1) + 1;

    return NGX_OK;
}


static void
ngx_mcp_zone_attach(ngx_mcp_zone_t *zone)
{
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    zone->blocks = (u_char *) sh + sh->base;
    zone->root = (ngx_mcp_root_sh_t *) ((u_char *) sh + sh->root);
}


/* new slots are made of the last blocks, which were never used */

ngx_uint_t
ngx_mcp_slots_grow_locked(ngx_mcp_zone_t *zone, ngx_uint_t slots)
{
    size_t              left;
    uint32_t            blocks;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    left = (size_t) sh->size / NGX_MCP_SLOTS_SHARE
           / sizeof(ngx_mcp_worker_sh_t);
    slots = ngx_min(slots, ngx_min(left, NGX_MCP_SLOTS_MAX));

    left = sh->size - sh->base - (size_t) sh->watermark * NGX_MCP_BLOCK_SIZE;
    slots = ngx_min(slots, left / sizeof(ngx_mcp_worker_sh_t));

    if (slots <= sh->slots) {
        return sh->slots;
    }

    left = sh->size - sh->base - slots * sizeof(ngx_mcp_worker_sh_t);
    blocks = (uint32_t) ngx_min(left / NGX_MCP_BLOCK_SIZE, 0xfffffff0);

    ngx_mcp_touch(zone, &sh->slots);

    ngx_memzero(ngx_mcp_slot(zone, slots - 1),
                (slots - sh->slots) * sizeof(ngx_mcp_worker_sh_t));

    sh->blocks = ngx_min(sh->blocks, blocks);
    sh->slots = (uint32_t) slots;

    return slots;
}


/*
 * Returns a digest of the sizes of structures: two builds of the same version
 * may have different sizes.
 */

static uint32_t
ngx_mcp_zone_layout(ngx_mcp_schema_t *schema)
{
    uint32_t    hash;
    ngx_uint_t  i;

    hash = NGX_MCP_BLOCK_SIZE;

    for (i = 0; i < schema->types; i++) {
        hash = hash * 31 + (uint32_t) schema->heads[i];
    }

    hash = hash * 31 + sizeof(ngx_mcp_zone_sh_t);
    hash = hash * 31 + sizeof(ngx_mcp_worker_sh_t);
    hash = hash * 31 + (uint32_t) schema->root(NGX_MCP_ZONE_MIN_SIZE);
    hash = hash * 31 + (uint32_t) schema->counters;

    return hash;
}


static ngx_int_t
ngx_mcp_zone_clear(ngx_mcp_zone_t *zone, size_t size, ngx_uint_t workers)
{
    size_t              left, used;
    uint32_t            buckets;
    uint64_t            random[3];
    ngx_mcp_zone_sh_t  *sh;

    if (ngx_mcp_random(random, sizeof(random)) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, zone->log, ngx_errno,
                      "getrandom() for the key of mcp zone \"%V\" failed",
                      &zone->name);
        return NGX_ERROR;
    }

    sh = zone->sh;
    left = size - sizeof(ngx_mcp_zone_sh_t);

    for (buckets = 1024;
         (size_t) buckets * 2 * NGX_MCP_BLOCK_SIZE * 2 <= left
         && buckets < 0x40000000;
         buckets *= 2)
    {
        /* void */
    }

    /* the sum is a multiple of 8, as the number of buckets is even */

    used = sizeof(ngx_mcp_zone_sh_t) + buckets * sizeof(uint32_t);

    ngx_memzero(sh, used);

    sh->counters = used;
    used += zone->schema->counters * sizeof(ngx_atomic_t);

    sh->root = used;
    used += ngx_align(zone->schema->root(size), sizeof(uint64_t));

    ngx_memzero((u_char *) sh + sh->counters, used - sh->counters);

    sh->journal = used;
    sh->journal_size = (uint32_t) ngx_max(NGX_MCP_JOURNAL_MIN,
                                     ngx_min(size / NGX_MCP_JOURNAL_SHARE,
                                             NGX_MCP_JOURNAL_MAX));
    used += sh->journal_size;

    left = size - used;

    sh->size = size;
    sh->base = used;
    sh->blocks = (uint32_t) ngx_min(left / NGX_MCP_BLOCK_SIZE, 0xfffffff0);
    sh->mask = buckets - 1;
    sh->watermark = 1;

    ngx_memcpy(sh->key, random, sizeof(sh->key));
    sh->generation = (uint32_t) random[2];

    sh->version = zone->schema->version;
    sh->layout = ngx_mcp_zone_layout(zone->schema);

    ngx_mcp_zone_attach(zone);
    zone->schema->clear(zone);

    (void) ngx_mcp_slots_grow_locked(zone, ngx_mcp_zone_slots(workers));
    ngx_mcp_journal_commit_locked(zone);

    sh->epoch = 1;
    sh->current = 1;
    zone->epoch = 1;

    ngx_mcp_barrier();
    sh->magic = NGX_MCP_ZONE_MAGIC;

    return NGX_OK;
}


/*
 * Empties the zone.  If this process dies in here, the next holder of the lock
 * does it again.  The blocks begin with a new generation, so that older
 * references name no record.
 */

static void
ngx_mcp_zone_empty_locked(ngx_mcp_zone_t *zone)
{
    ngx_uint_t            i;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_worker_sh_t  *w;

    sh = zone->sh;

    zone->schema->broken(zone);

    for (i = 0; i < sh->slots; i++) {
        w = ngx_mcp_slot(zone, i);
        ngx_memzero(&w->pending, sizeof(ngx_mcp_list_sh_t));
        w->staged = 0;
        w->nfirst = 0;
    }

    sh->generation += 0x10001;
    sh->watermark = 1;
    sh->free = 0;
    sh->nfree = 0;
    sh->freed = 0;
    sh->nleases = 0;
    ngx_memzero(&sh->leases, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(&sh->news, sizeof(ngx_mcp_list_sh_t));
    ngx_memzero(sh->used, sizeof(sh->used));

    zone->schema->clear(zone);
    ngx_memzero(sh->buckets, ((size_t) sh->mask + 1) * sizeof(uint32_t));
}


static ngx_uint_t
ngx_mcp_zone_spin(ngx_shmtx_t *mutex)
{
    ngx_uint_t  i, n;

    if (ngx_ncpu > 1) {

        for (n = 1; n < 1024; n <<= 1) {

            for (i = 0; i < n; i++) {
                ngx_cpu_pause();
            }

            if (ngx_mcp_zone_trylock(mutex)) {
                return 1;
            }
        }
    }

    return 0;
}


/*
 * Takes the mutex without its semaphore: if a process were killed between its
 * release of the lock and its sem_post(), the others would sleep for ever.
 * Nobody holds the lock for longer than some microseconds.
 */

void
ngx_mcp_zone_lock(ngx_mcp_zone_t *zone)
{
    ngx_shmtx_t  *mutex;

    mutex = &zone->shpool->mutex;

    while (!ngx_mcp_zone_trylock(mutex) && !ngx_mcp_zone_spin(mutex)) {
        ngx_sched_yield();
        ngx_mcp_zone_unlock_dead(mutex);
    }

    ngx_mcp_barrier();

    if (zone->sh->noted) {
        ngx_mcp_zone_recover_locked(zone);
    }
}


/*
 * Releases the lock if its holder has been killed.  nginx does this as well,
 * but only when the kernel has removed the memory of the process, which takes
 * tens of ms for a large zone.
 */

static void
ngx_mcp_zone_unlock_dead(ngx_shmtx_t *mutex)
{
    ngx_pid_t  holder;

    holder = (ngx_pid_t) *mutex->lock;

    if (holder && holder != ngx_pid && ngx_mcp_process_exits(holder)) {
        (void) ngx_shmtx_force_unlock(mutex, holder);
    }
}


/*
 * Returns whether the process is a worker of this nginx that runs no code any
 * more.  Also returns 0 if this is not known: /proc may be absent, or show
 * other processes.
 */

static ngx_uint_t
ngx_mcp_process_exits(ngx_pid_t pid)
{
#if (NGX_LINUX)

    int            parent;
    char          *p, text[512];
    u_char         name[sizeof("/proc/stat") + 1 + NGX_INT64_LEN];
    ssize_t        n;
    ngx_fd_t       fd;
    unsigned long  flags;

    /*
     * The link "exe" has no target once the process has released its memory.
     * "stat" is read only then: the kernel holds the memory while it writes
     * "stat", and this process would have to free all of that memory if the
     * exiting one released it meanwhile.
     */

    (void) ngx_sprintf(name, "/proc/%P/exe%Z", pid);

    if (readlink((char *) name, text, 1) != -1 || ngx_errno != NGX_ENOENT) {
        return 0;
    }

    (void) ngx_sprintf(name, "/proc/%P/stat%Z", pid);

    fd = ngx_open_file(name, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        return 0;
    }

    n = ngx_read_fd(fd, text, sizeof(text) - 1);

    (void) ngx_close_file(fd);

    if (n <= 0) {
        return 0;
    }

    text[n] = '\0';

    /* after the name in parentheses: state, parent, four numbers, flags */

    p = strrchr(text, ')');

    return p
           && sscanf(p, ") %*c %d %*d %*d %*d %*d %lu", &parent, &flags) == 2
           && parent == ngx_parent
           && (flags & NGX_MCP_ZONE_EXITING);

#else

    return 0;

#endif
}


/*
 * Undoes the transaction of a process that died.  The dead process may not have
 * rung some bells, so all workers are woken to look for any work.  If this
 * process dies in here, the next holder of the lock does it all again.
 */

static void
ngx_mcp_zone_recover_locked(ngx_mcp_zone_t *zone)
{
    ngx_uint_t            i;
    ngx_mcp_zone_sh_t    *sh;
    ngx_mcp_worker_sh_t  *w;

    sh = zone->sh;

    /*
     * The recovery is counted before bytes change, so that readers without the
     * lock notice the change.
     */

    sh->recoveries++;
    ngx_mcp_barrier();

    if (sh->journal_full) {
        ngx_mcp_zone_empty_locked(zone);

    } else {
        ngx_mcp_journal_rollback_locked(zone);
        zone->schema->undone(zone);
    }

    for (i = 0; i < sh->top; i++) {
        w = ngx_mcp_slot(zone, i);

        if (w->state == NGX_MCP_WORKER_LIVE) {
            w->rung = 0;
            w->overflow = 1;
            w->lease_seen = 0;
            ngx_mcp_worker_ring_locked(zone, i, 0xffffffff);
        }
    }

    ngx_mcp_barrier();
    sh->noted = 0;
    ngx_mcp_barrier();
}


void
ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone)
{
    ngx_mcp_journal_commit_locked(zone);

    (void) ngx_atomic_cmp_set(zone->shpool->mutex.lock, ngx_pid, 0);

    if (zone->full) {
        zone->schema->full(zone);
    }

    if (zone->nbells) {
        ngx_mcp_worker_ring_out(zone);
    }
}


void
ngx_mcp_zone_current(ngx_mcp_zone_t *zone)
{
    zone->sh->current = zone->epoch;
}


ngx_uint_t
ngx_mcp_zone_reloaded(ngx_mcp_zone_t *zone)
{
    return zone->sh->current > zone->epoch;
}


uint32_t
ngx_mcp_zone_generation(ngx_mcp_zone_t *zone)
{
    return zone->sh->generation;
}


void
ngx_mcp_zone_key(ngx_mcp_zone_t *zone, u_char *dst)
{
    ngx_memcpy(dst, zone->sh->key, NGX_MCP_ZONE_KEY);
}


void
ngx_mcp_count(ngx_mcp_zone_t *zone, ngx_uint_t counter, ngx_int_t n)
{
    (void) ngx_atomic_fetch_add(&ngx_mcp_counters(zone->sh)[counter], n);
}


void
ngx_mcp_gauge_locked(ngx_mcp_zone_t *zone, ngx_uint_t counter,
    ngx_int_t n)
{
    ngx_atomic_t  *gauge;

    gauge = &ngx_mcp_counters(zone->sh)[counter];

    ngx_mcp_journal_sized(zone, (void *) gauge, sizeof(ngx_atomic_t));
    *gauge += n;
}


int64_t
ngx_mcp_counter(ngx_mcp_zone_t *zone, ngx_uint_t counter)
{
    return (ngx_atomic_int_t) ngx_mcp_counters(zone->sh)[counter];
}
