
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Sessions at MCP servers of the legacy revisions: the DELETE that ends one.
 * The handshake that makes one is in the manner of these servers
 * (ngx_http_mcp_manner.h).
 */

#ifndef _NGX_HTTP_MCP_LEGACY_H_INCLUDED_
#define _NGX_HTTP_MCP_LEGACY_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


/*
 * Whether the id of the session that the upstream made in x is short enough to
 * be stored; if not, this is logged.
 */
ngx_uint_t ngx_http_mcp_upstream_session_id_fits(ngx_http_mcp_exchange_t *x);

/*
 * Ends the upstream session with this id by a DELETE; does nothing if the id
 * is empty.  The outcome is ignored.  from: the client's request, whose headers
 * are sent to the upstream, or NULL.  session: value of $mcp_session_id.
 * Strings are copied.
 */
void ngx_http_mcp_upstream_session_delete(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_str_t *tenant, ngx_str_t *session,
    ngx_str_t *id, ngx_uint_t revision);


#endif /* _NGX_HTTP_MCP_LEGACY_H_INCLUDED_ */
