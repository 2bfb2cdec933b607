
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Fetches lists of the audiences whose shared upstream sessions this worker
 * holds, when they are due, and notifies the sessions of these audiences of
 * changes.
 */

#ifndef _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_
#define _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_


#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_list.h"


/* sets ngx_http_mcp_shared_handlers; called before workers start */
ngx_int_t ngx_http_mcp_list_refresh_init(ngx_mcp_zone_t *zone);

/*
 * The zone's doorbell rang for lists: some are due to be fetched, or were
 * fetched.  keys: NGX_MCP_RING_KEY() of their audiences.
 */
void ngx_http_mcp_list_refresh_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

/*
 * Prepares the lists of an endpoint in a worker that starts: adapts the lists
 * in the zone to the upstreams of the worker's configuration, drops them if the
 * endpoint no longer caches lists, and lets lists be fetched that have to be
 * there before a client requests them.
 */
void ngx_http_mcp_list_refresh_prepare(ngx_http_mcp_bridge_t *bridge);

/*
 * Drops the lists of endpoints that the configuration of the worker, which
 * starts, does not have.
 */
void ngx_http_mcp_list_refresh_clean(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_ */
