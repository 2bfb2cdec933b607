
/*
 * Sessions at MCP servers of the legacy revisions: the handshake that makes one
 * and the DELETE that ends one.  Requests use them by their manner
 * (ngx_http_mcp_manner.h).
 */

#ifndef _NGX_HTTP_MCP_LEGACY_H_INCLUDED_
#define _NGX_HTTP_MCP_LEGACY_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


/* whether the id of the session that it made can be kept; else it is logged */
ngx_uint_t ngx_http_mcp_upstream_session_id_fits(ngx_http_mcp_exchange_t *x);

/*
 * Tells an upstream that a session has ended: DELETE, outcome ignored.  from:
 * the client's request, whose headers cross; NULL when there is none.
 */
void ngx_http_mcp_upstream_session_delete(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_str_t *tenant, ngx_str_t *session,
    ngx_str_t *id, ngx_uint_t revision);


#endif /* _NGX_HTTP_MCP_LEGACY_H_INCLUDED_ */
