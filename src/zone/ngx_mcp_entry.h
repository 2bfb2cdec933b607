
/*
 * Ordered logs.  An entry has a position, which start at 1 and of which some
 * may have no entry, and is found by it in a few dozen steps.
 */

#ifndef _NGX_MCP_ENTRY_H_INCLUDED_
#define _NGX_MCP_ENTRY_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"


/* in a record that owns the log */

typedef struct {
    uint64_t                last;         /* position used last */
    ngx_mcp_list_sh_t       list;
    uint32_t                count;
    uint32_t                taken;        /* for its owner */
} ngx_mcp_log_sh_t;


/* begins each record that is an entry */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: of the log */
    uint64_t                pos;
    uint32_t                skip;         /* an earlier one of this log */
} ngx_mcp_entry_sh_t;


/* a new entry, of which rec is set, gets the next position */
void ngx_mcp_log_append_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *entry);
void ngx_mcp_log_remove_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *entry);

/* the first entry behind a position, or NULL; hint: the one at it, or 0 */
void *ngx_mcp_log_after_locked(ngx_mcp_zone_t *zone, ngx_mcp_log_sh_t *log,
    void *owner, uint64_t pos, uint32_t hint);


#endif /* _NGX_MCP_ENTRY_H_INCLUDED_ */
