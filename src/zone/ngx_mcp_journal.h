
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The journal has the old content of memory that is changed under the lock.
 * The caller notes memory in the journal before it changes this memory.  The
 * same memory may be noted again: a rollback goes from the newest note to the
 * oldest.  All functions here need the lock.
 *
 * A long hold of the lock is divided into steps.  A caller of
 * ngx_mcp_step_locked() states that the zone is consistent; if more than half
 * of the journal is used, the changes so far are committed.  It is called at
 * the beginning or end of each turn of a loop over records of which users can
 * have many, and never between changes that belong together.
 */

#ifndef _NGX_MCP_JOURNAL_H_INCLUDED_
#define _NGX_MCP_JOURNAL_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"


/* as the size is a constant, the compiler leaves only one of these calls */

#define ngx_mcp_journal_sized(zone, p, size)                                  \
    ((size) == 4 ? ngx_mcp_journal_note_4(zone, p)                            \
     : (size) == 8 ? ngx_mcp_journal_note_8(zone, p)                          \
     : (size) == 16 ? ngx_mcp_journal_note_16(zone, p)                        \
     : ngx_mcp_journal_note(zone, p, size))

#define ngx_mcp_touch(zone, p)  ngx_mcp_journal_sized(zone, p, sizeof(*(p)))

/* notes the members of a record from "from" up to and including "to" */
#define ngx_mcp_touch_range(zone, p, from, to)                                \
    ngx_mcp_journal_sized(zone, &(p)->from,                                   \
                          (size_t) ((u_char *) (&(p)->to + 1)                 \
                                    - (u_char *) &(p)->from))

#define ngx_mcp_step_locked(zone)                                             \
    if ((zone)->sh->noted > (zone)->sh->journal_size / 2) {                   \
        ngx_mcp_journal_commit_locked(zone);                                  \
    }

/*
 * ngx_mcp_journal_note(), .._4(), .._8(), .._16(): notes the bytes at p.
 * ngx_mcp_journal_note_known(): notes a number whose old value is known.
 * ngx_mcp_journal_commit_locked(): ends the transaction.
 * ngx_mcp_journal_rollback_locked(): puts the old content back.
 * ngx_mcp_journal_prev(): finds the note before *used, for a walk backwards.
 */
void ngx_mcp_journal_note(ngx_mcp_zone_t *zone, void *p, size_t size);
void ngx_mcp_journal_note_4(ngx_mcp_zone_t *zone, void *p);
void ngx_mcp_journal_note_8(ngx_mcp_zone_t *zone, void *p);
void ngx_mcp_journal_note_16(ngx_mcp_zone_t *zone, void *p);
void ngx_mcp_journal_note_known(ngx_mcp_zone_t *zone, uint32_t *p,
    uint32_t old);
void ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone);
void ngx_mcp_journal_rollback_locked(ngx_mcp_zone_t *zone);
size_t ngx_mcp_journal_prev(ngx_mcp_zone_sh_t *sh, uint32_t *used, u_char **p,
    u_char **old);


#endif /* _NGX_MCP_JOURNAL_H_INCLUDED_ */
