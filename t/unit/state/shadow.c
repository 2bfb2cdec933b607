
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A shadow of the zone: its content when the lock was taken, or when the last
 * step was done.  At each commit the journal is applied to the zone, which
 * must then equal the shadow: a byte that was changed without a note is
 * reported with the type of its record and its place there.
 *
 * The linker puts these functions around those of the layer (--wrap), but not
 * where a function is called in its own file.
 */

#include "env.h"


void __real_ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void __real_ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);
void __real_ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone);
void __wrap_ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void __wrap_ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);
void __wrap_ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone);


#define LARGE  2048


typedef struct {
    u_char             *p;
    size_t              len;
} note_t;


static u_char      *shadow;
static size_t       size;
static uint32_t     most;
static ngx_uint_t   compared;
static ngx_uint_t   holds;
static ngx_uint_t   locked, unlocking;

static note_t       notes[NGX_MCP_JOURNAL_MAX / 16];
static u_char       current[NGX_MCP_JOURNAL_MAX];


static void
take(ngx_mcp_zone_t *zone)
{
    size_t              tail, used;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    if (size < sh->size) {
        free(shadow);
        size = sh->size;
        shadow = malloc(size);
    }

    used = (size_t) sh->watermark * NGX_MCP_BLOCK_SIZE;
    tail = sh->size - sh->slots * sizeof(ngx_mcp_worker_sh_t);

    memcpy(shadow, sh, sh->journal);
    memcpy(shadow + sh->base, (u_char *) sh + sh->base, used);
    memcpy(shadow + tail, (u_char *) sh + tail, sh->size - tail);
}


/* puts back the zone, compares it, and restores its present content */

static void
compare(ngx_mcp_zone_sh_t *sh)
{
    u_char      *p, *old, *to;
    size_t       len;
    uint32_t     used;
    ngx_uint_t   n;

    n = 0;
    to = current;
    used = sh->noted;

    while ((len = ngx_mcp_journal_prev(sh, &used, &p, &old)) != 0) {
        memcpy(to, p, len);
        memcpy(p, old, len);

        notes[n].p = p;
        notes[n++].len = len;
        to += len;
    }

    if (env_differs((ngx_mcp_zone_sh_t *) shadow, sh, "without a note")) {
        ok(0, "every change is noted in the journal");
    }

    while (n--) {
        to -= notes[n].len;
        memcpy(notes[n].p, to, notes[n].len);
    }
}


void
__wrap_ngx_mcp_zone_lock(ngx_mcp_zone_t *zone)
{
    __real_ngx_mcp_zone_lock(zone);

    /* a large zone is compared rarely, as it is filled by equal operations */

    locked = (zone->sh->watermark < LARGE || ++holds % 8 == 0);

    if (locked) {
        take(zone);
    }
}


void
__wrap_ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone)
{
    unlocking = 1;

    __real_ngx_mcp_zone_unlock(zone);

    unlocking = 0;
    locked = 0;

    if (env_unlocked) {
        env_unlocked();
    }
}


void
__wrap_ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone)
{
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    if (sh->noted && env_committed) {
        env_committed();
    }

    if (locked && !env_lost) {
        most = ngx_max(most, sh->noted);
        compared++;

        if (sh->noted
            && (sh->journal_full || sh->noted > sh->journal_size / 4 * 3))
        {
            ok(0, "%u of %u bytes of the journal are used", sh->noted,
               sh->journal_size);
        }

        compare(sh);
    }

    __real_ngx_mcp_journal_commit_locked(zone);

    if (locked && !unlocking) {
        take(zone);
    }
}


static void __attribute__((destructor))
said(void)
{
    printf("# %u transactions, the journal was used up to %u bytes\n",
           (unsigned) compared, most);
}
