
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The zone knows which workers have streams with a want.  It has a set of
 * workers for each place; the last bits of a want tell the place.  Workers
 * change the sets without the lock.  An event for a want wakes only the
 * workers in the set of the want's place; one of NGX_MCP_WANT_NEWS events
 * wakes all.
 */

#ifndef _NGX_MCP_WANT_H_INCLUDED_
#define _NGX_MCP_WANT_H_INCLUDED_


#include "ngx_mcp_zone.h"


#define NGX_MCP_WANT_NEWS  64

/* every stream has this want */
#define NGX_MCP_WANT_ALL   0


/*
 * make() allocates the counts of this worker's streams by place, which the
 * caller frees; NULL: no memory.  After the wants of a stream were added, it
 * has to read its line once more, as earlier events did not wake this worker.
 */
uint32_t *ngx_mcp_wants_make(ngx_mcp_zone_t *zone);
void ngx_mcp_want_add(ngx_mcp_zone_t *zone, uint32_t *counts, uint64_t want);
void ngx_mcp_want_remove(ngx_mcp_zone_t *zone, uint32_t *counts,
    uint64_t want);


#endif /* _NGX_MCP_WANT_H_INCLUDED_ */
