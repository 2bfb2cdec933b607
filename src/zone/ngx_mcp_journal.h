
/*
 * The journal has the old content of memory that is changed under the lock: p
 * is noted before it is changed, which is cheap if it was noted before.  All
 * these need the lock.
 *
 * A hold that changes much goes in steps.  The caller of "step" asserts that
 * the zone is consistent; when half of the journal is used, the changes so
 * far are committed.  So it is called at the begin or end of a turn of a loop
 * over records that users can have many of, and never between changes that
 * belong together.
 */

#ifndef _NGX_MCP_JOURNAL_H_INCLUDED_
#define _NGX_MCP_JOURNAL_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"


#define ngx_mcp_touch(zone, p)                                                \
    ngx_mcp_journal_note(zone, p, sizeof(*(p)))

/* from one member of a record up to another one */
#define ngx_mcp_touch_range(zone, p, from, to)                                \
    ngx_mcp_journal_note(zone, &(p)->from, (size_t)                           \
                         ((u_char *) (&(p)->to + 1) - (u_char *) &(p)->from))

#define ngx_mcp_step_locked(zone)                                             \
    if ((zone)->sh->noted > (zone)->sh->journal_size / 2) {                   \
        ngx_mcp_journal_commit_locked(zone);                                  \
    }

void ngx_mcp_journal_note(ngx_mcp_zone_t *zone, void *p, size_t size);
void ngx_mcp_journal_note_known(ngx_mcp_zone_t *zone, uint32_t *p,
    uint32_t old);
void ngx_mcp_journal_new(ngx_mcp_zone_t *zone, uint32_t block);
void ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone);
void ngx_mcp_journal_rollback_locked(ngx_mcp_zone_t *zone);
size_t ngx_mcp_journal_prev(ngx_mcp_zone_sh_t *sh, uint32_t *used, u_char **p,
    u_char **old);


#endif /* _NGX_MCP_JOURNAL_H_INCLUDED_ */
