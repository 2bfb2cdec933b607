
/*
 * subscriptions/listen (2026-07-28): a client listens for changes by a request
 * whose response is a stream.  It is a subscriber of its own in the zone, which
 * ends with the stream.
 */

#ifndef _NGX_HTTP_MCP_LISTEN_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTEN_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/*
 * The content handler of such a request, whose caller may use the endpoint.
 * What it wants is subscribed to first; the stream begins with an
 * acknowledgement of all that was accepted.
 */
ngx_int_t ngx_http_mcp_listen(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);


#endif /* _NGX_HTTP_MCP_LISTEN_H_INCLUDED_ */
