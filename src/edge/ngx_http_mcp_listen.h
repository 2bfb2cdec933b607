
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * subscriptions/listen (2026-07-28): the response is a stream of changes.  Each
 * such stream has a subscriber of its own in the zone, which ends with the
 * stream.
 */

#ifndef _NGX_HTTP_MCP_LISTEN_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTEN_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/*
 * Handles such a request, whose caller may use the endpoint; the content
 * handler returns what this returns.  Subscribes to all that the filter in
 * params names, then opens the stream, which begins with an acknowledgement of
 * the subscriptions that were accepted.
 */
ngx_int_t ngx_http_mcp_listen(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);


#endif /* _NGX_HTTP_MCP_LISTEN_H_INCLUDED_ */
