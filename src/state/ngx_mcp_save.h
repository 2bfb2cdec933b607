
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Saves the records of the zone in a buffer (ngx_mcp_tlv.h), one by one, in
 * slices: a hold of the lock takes less than a millisecond.  Each record is
 * consistent by itself.  A change that is made during the save may be missing,
 * like a change after the save.  As positions of events are saved, the worst
 * that a reader gets then is a gap.  The zone is not changed, so a process
 * without a place in it may call these functions.
 *
 * These records are not saved: streams and workers, which a restart ends;
 * profiles of upstreams and cached lists, for which the upstreams are asked
 * again; and coalescing windows, server requests and pending DELETEs, which are
 * under way.
 */

#ifndef _NGX_MCP_SAVE_H_INCLUDED_
#define _NGX_MCP_SAVE_H_INCLUDED_


#include "ngx_mcp_tlv.h"


typedef struct {
    ngx_uint_t              sessions;
} ngx_mcp_save_counts_t;


/* saves the description of the zone, some hundred bytes; to be called first */
void ngx_mcp_save_zone(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out);

/*
 * Saves the records in the blocks from *next on, which is 0 at first.
 * NGX_AGAIN: more is left; NGX_DONE: all are saved; NGX_BUSY: the next record
 * does not fit into the whole buffer.
 */
ngx_int_t ngx_mcp_save_slice(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    uint32_t *next, ngx_mcp_save_counts_t *counts);

/* saves the ids of consumed events, at most 64k bytes; to be called last */
void ngx_mcp_save_event_ids(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out);


#endif /* _NGX_MCP_SAVE_H_INCLUDED_ */
