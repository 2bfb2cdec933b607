
/*
 * subscriptions/listen (2026-07-28): the response is a stream of changes.  Each
 * such stream has a subscriber of its own in the zone, which ends with it.
 */

#ifndef _NGX_HTTP_MCP_LISTEN_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTEN_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/*
 * The content handler of such a request, whose caller may use the endpoint.
 * It subscribes to all that the filter names, then opens the stream, which
 * begins with an acknowledgement of all that was accepted.
 */
ngx_int_t ngx_http_mcp_listen(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);


#endif /* _NGX_HTTP_MCP_LISTEN_H_INCLUDED_ */
