
/*
 * Fetches the lists of the audiences whose shared upstream sessions this worker
 * holds, as the zone says that they are due, and notifies their sessions.
 */

#ifndef _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_
#define _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_


#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_list.h"


/* before workers start */
ngx_int_t ngx_http_mcp_list_refresh_init(ngx_mcp_zone_t *zone);

/* the doorbell: handlers->lists */
void ngx_http_mcp_list_refresh_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

/* from any worker: notifies sessions of what changed as upstreams went */
void ngx_http_mcp_list_refresh_announce(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_audience_t *names, ngx_mcp_ref_t audience);


#endif /* _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_ */
