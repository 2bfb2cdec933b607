
/*
 * Copies what the zone holds into a buffer (ngx_mcp_tlv.h), record by record,
 * in slices: a hold of the lock takes less than a millisecond.  Each record is
 * consistent by itself.  A change that is made meanwhile may be missing, as one
 * made after the save, and positions tell of events that are: a reader meets a
 * gap at most.  Nothing in the zone is changed, so a process without a place in
 * it may call.
 *
 * Left out is what a restart ends (streams, workers), what is asked for again
 * (profiles of upstreams, cached lists), and what was under way (coalescing
 * windows, server requests, pending DELETEs).
 */

#ifndef _NGX_MCP_SAVE_H_INCLUDED_
#define _NGX_MCP_SAVE_H_INCLUDED_


#include "ngx_mcp_tlv.h"


typedef struct {
    ngx_uint_t              sessions;
} ngx_mcp_save_counts_t;


/* the description of the zone, which comes first; some hundred bytes */
void ngx_mcp_save_zone(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out);

/*
 * The records in the blocks from *next on, which is 0 at first.  NGX_AGAIN:
 * more is left; NGX_DONE; NGX_BUSY: the next record needs more than all of
 * this room.
 */
ngx_int_t ngx_mcp_save_slice(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    uint32_t *next, ngx_mcp_save_counts_t *counts);

/* at the end: the ids of events that were taken; they need 64k at most */
void ngx_mcp_save_event_ids(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out);


#endif /* _NGX_MCP_SAVE_H_INCLUDED_ */
