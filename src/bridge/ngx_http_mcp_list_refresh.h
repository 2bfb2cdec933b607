
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Fetches lists of the audiences whose shared upstream sessions this worker
 * holds, when the zone says that they are due, and notifies the sessions of
 * those audiences of changes.
 */

#ifndef _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_
#define _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_


#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_list.h"


/* sets ngx_http_mcp_shared_handlers; called before workers start */
ngx_int_t ngx_http_mcp_list_refresh_init(ngx_mcp_zone_t *zone);

/* the doorbell: handlers->lists */
void ngx_http_mcp_list_refresh_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

/*
 * Notifies the sessions of an audience of lists that changed because upstreams
 * were removed.  Any worker may call this.
 */
void ngx_http_mcp_list_refresh_announce(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_audience_t *names, ngx_mcp_ref_t audience);


#endif /* _NGX_HTTP_MCP_LIST_REFRESH_H_INCLUDED_ */
