
/*
 * A call: one request of a client from the POST to its answer.  It owns the
 * main request and runs the exchange on it; it may outlive the client.
 */

#ifndef _NGX_HTTP_MCP_CALL_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/*
 * The stream of this call is gone (client left, or it was closed); the
 * exchange runs on and the answer waits on the line.  The request r stays
 * alive until the call ends; nothing more may be written to it.
 */
void ngx_http_mcp_call_stream_closed(ngx_http_mcp_call_t *call);

/* the stream of this call has room again */
void ngx_http_mcp_call_stream_ready(ngx_http_mcp_call_t *call);

/* from the doorbell */
void ngx_http_mcp_call_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);


#endif /* _NGX_HTTP_MCP_CALL_H_INCLUDED_ */
