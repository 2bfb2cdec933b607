
/*
 * Which workers have streams with a want.  The zone has a set of workers for
 * each place, which the last bits of a want tell.  Workers change the sets
 * without the lock.  An event for a want wakes only the workers in the set of
 * its place, but for one of NGX_MCP_WANT_NEWS events, which wakes all.
 */

#ifndef _NGX_MCP_WANT_H_INCLUDED_
#define _NGX_MCP_WANT_H_INCLUDED_


#include "ngx_mcp_zone.h"


#define NGX_MCP_WANT_NEWS  64

/* every stream has this want */
#define NGX_MCP_WANT_ALL   0


/*
 * counts: of the streams of this worker, by place, from ngx_mcp_wants_make()
 * (NULL: no memory; to be freed by the caller).  A stream has to read its line
 * once more after its wants were added, as events before that woke nobody.
 */
uint32_t *ngx_mcp_wants_make(ngx_mcp_zone_t *zone);
void ngx_mcp_want_add(ngx_mcp_zone_t *zone, uint32_t *counts, uint64_t want);
void ngx_mcp_want_remove(ngx_mcp_zone_t *zone, uint32_t *counts,
    uint64_t want);


#endif /* _NGX_MCP_WANT_H_INCLUDED_ */
