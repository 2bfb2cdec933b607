
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Ordered logs.  Each entry has a position, by which it is found in a few
 * dozen steps.  Positions start at 1.  Entries may be removed, so that their
 * positions have no entry.
 */

#ifndef _NGX_MCP_ENTRY_H_INCLUDED_
#define _NGX_MCP_ENTRY_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"


/* a log, as a member of the record that owns it */

typedef struct {
    uint64_t                last;         /* position that was given last */
    ngx_mcp_list_sh_t       list;         /* entries, oldest first */
    uint32_t                count;        /* number of entries */
    uint32_t                nread;        /* for the owner's use: number of
                                             entries that were read */
} ngx_mcp_log_sh_t;


/* the first member of each record that is an entry */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: the owner of the log */
    uint64_t                pos;
    uint32_t                skip;         /* block of an earlier entry, to
                                             which a search may go at once */
} ngx_mcp_entry_sh_t;


/* appends an entry whose member rec is set, and gives it the next position */
void ngx_mcp_log_append_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *entry);
void ngx_mcp_log_remove_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *entry);

/*
 * Returns the first entry behind a position, or NULL.  hint: the block of the
 * entry at that position, or 0 if the caller does not know it.
 */
void *ngx_mcp_log_after_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *owner, uint64_t pos, uint32_t hint);


#endif /* _NGX_MCP_ENTRY_H_INCLUDED_ */
