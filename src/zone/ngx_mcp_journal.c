
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_zone_sh.h"


/*
 * The journal has the old content of all memory that the present transaction
 * has changed.  It is a sequence of notes: some bytes, followed by their place
 * in the zone (48 bits) and their number (16 bits).  "noted" in the zone's
 * header is the number of bytes in use; when it is set to 0, the transaction is
 * done.  The memory outlives each process, so the order of stores is all that
 * matters.
 *
 * The first note of each transaction is that of the members "stamp" up to
 * "epoch" of the zone's header, as nearly every transaction changes them.
 *
 * A step uses a few kB at most, and ngx_mcp_step_locked() keeps half of the
 * journal free.  If a step uses more, it goes on without notes, and
 * "journal_full" is set.  If the process then dies in this step, the
 * transaction cannot be undone, so the next holder of the lock empties the
 * zone.
 */


static void ngx_mcp_journal_begin(ngx_mcp_zone_t *zone);
static ngx_inline void ngx_mcp_journal_add(ngx_mcp_zone_t *zone, void *p,
    void *old, size_t size);
static void ngx_mcp_journal_full(ngx_mcp_zone_t *zone);


#define ngx_mcp_journal_aligned(size)  (((size) + 7) & ~(size_t) 7)


void
ngx_mcp_journal_note(ngx_mcp_zone_t *zone, void *p, size_t size)
{
    ngx_mcp_journal_add(zone, p, p, size);
}


/* with a constant size, the compiler copies the bytes without a call */

void
ngx_mcp_journal_note_4(ngx_mcp_zone_t *zone, void *p)
{
    ngx_mcp_journal_add(zone, p, p, 4);
}


void
ngx_mcp_journal_note_8(ngx_mcp_zone_t *zone, void *p)
{
    ngx_mcp_journal_add(zone, p, p, 8);
}


void
ngx_mcp_journal_note_16(ngx_mcp_zone_t *zone, void *p)
{
    ngx_mcp_journal_add(zone, p, p, 16);
}


/*
 * The caller gives the old value, as reading it from the zone could miss the
 * processor's cache.
 */

void
ngx_mcp_journal_note_known(ngx_mcp_zone_t *zone, uint32_t *p, uint32_t old)
{
    ngx_mcp_journal_add(zone, p, &old, sizeof(uint32_t));
}


static void
ngx_mcp_journal_begin(ngx_mcp_zone_t *zone)
{
    u_char             *p;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;
    sh->journal_full = 0;

    p = (u_char *) sh + sh->journal;

    ngx_memcpy(p, (u_char *) sh + NGX_MCP_ALWAYS_NOTED,
               NGX_MCP_ALWAYS_NOTED_SIZE);
    p += NGX_MCP_ALWAYS_NOTED_SIZE;

    *(uint64_t *) p = (uint64_t) NGX_MCP_ALWAYS_NOTED << 16
                      | NGX_MCP_ALWAYS_NOTED_SIZE;

    ngx_mcp_barrier();
    sh->noted = NGX_MCP_ALWAYS_NOTED_SIZE + sizeof(uint64_t);
    ngx_mcp_barrier();
}


/* adds a note: the old content, followed by its place and length */

static ngx_inline void
ngx_mcp_journal_add(ngx_mcp_zone_t *zone, void *p, void *old, size_t size)
{
    size_t              len;
    u_char             *dst;
    uint32_t            noted;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    if (sh->noted == 0) {
        ngx_mcp_journal_begin(zone);
    }

    noted = sh->noted;
    len = ngx_mcp_journal_aligned(size);

    if (noted + len + sizeof(uint64_t) > sh->journal_size) {
        ngx_mcp_journal_full(zone);
        return;
    }

    dst = (u_char *) sh + sh->journal + noted;

    ngx_memcpy(dst, old, size);
    *(uint64_t *) (dst + len) =
                        (uint64_t) ((u_char *) p - (u_char *) sh) << 16 | size;

    ngx_mcp_barrier();
    sh->noted = noted + (uint32_t) (len + sizeof(uint64_t));
    ngx_mcp_barrier();
}


static void
ngx_mcp_journal_full(ngx_mcp_zone_t *zone)
{
    if (!zone->sh->journal_full) {
        ngx_log_error(NGX_LOG_ALERT, zone->log, 0,
                      "mcp zone \"%V\": an update is larger than the "
                      "journal", &zone->name);
    }

    zone->sh->journal_full = 1;
}


/*
 * Finds the note that ends at *used, and sets *used to its beginning, *p to
 * the noted memory and *old to the old content.  Returns the number of noted
 * bytes; 0: there are no more notes.
 */

size_t
ngx_mcp_journal_prev(ngx_mcp_zone_sh_t *sh, uint32_t *used, u_char **p,
    u_char **old)
{
    size_t    size;
    uint64_t  where;

    if (*used == 0) {
        return 0;
    }

    *used -= (uint32_t) sizeof(uint64_t);
    where = *(uint64_t *) ((u_char *) sh + sh->journal + *used);

    size = where & 0xffff;
    *used -= (uint32_t) ngx_mcp_journal_aligned(size);

    *p = (u_char *) sh + (where >> 16);
    *old = (u_char *) sh + sh->journal + *used;

    return size;
}


/* joins the blocks that were freed in this transaction to the free blocks */

void
ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone)
{
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_block_sh_t  *last;

    sh = zone->sh;

    if (sh->noted == 0) {
        return;
    }

    if (sh->freed) {
        last = ngx_mcp_block(zone, sh->freed_last);

        ngx_mcp_touch(zone, &last->chain);
        last->chain = sh->free;

        sh->free = sh->freed;
        sh->freed = 0;
    }

    ngx_mcp_barrier();
    sh->noted = 0;
    ngx_mcp_barrier();
}


/*
 * Undoes the transaction.  If this process dies in here, the next one goes on:
 * a note is removed only after its content is restored.  The first note stays
 * until the caller has woken all workers and sets "noted" to 0.
 */

void
ngx_mcp_journal_rollback_locked(ngx_mcp_zone_t *zone)
{
    u_char             *p, *old;
    size_t              size;
    uint32_t            used;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    used = sh->noted;

    while ((size = ngx_mcp_journal_prev(sh, &used, &p, &old)) != 0) {
        ngx_memcpy(p, old, size);
        ngx_mcp_barrier();

        if (used) {
            sh->noted = used;
            ngx_mcp_barrier();
        }
    }
}
