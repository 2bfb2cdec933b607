
/*
 * "mcp_status": what a zone holds and has counted, as JSON or as Prometheus
 * text.  Reads counters only; the zone's lock is held for its use alone.
 */

#ifndef _NGX_HTTP_MCP_STATUS_H_INCLUDED_
#define _NGX_HTTP_MCP_STATUS_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/* of the location's conf->status zone */
ngx_int_t ngx_http_mcp_status_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_STATUS_H_INCLUDED_ */
