
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A listener reads the GET stream of a legacy upstream on the upstream session
 * of one client.  Listeners are a kind of readers without a lease, because
 * another worker does not have the client's headers, and so could not take the
 * stream over.
 */

#ifndef _NGX_HTTP_MCP_LISTENER_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTENER_H_INCLUDED_


#include "ngx_http_mcp_reader.h"


/*
 * Reads the upstream's GET stream of a session for as long as the client has a
 * GET stream of its own; does nothing if a worker reads it already.  Messages
 * go to the session's general channel.  from: the client's GET, from which
 * headers are passed on.  exclusive: the session is an exclusive one, and a
 * call that runs in it takes the place of the client's GET; messages that are
 * not for a call are ignored.
 */
void ngx_http_mcp_listener_start(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_mcp_caller_t *caller, ngx_uint_t exclusive);

/*
 * The doorbell rang: stops the listeners whose session has ended or has no GET
 * stream left.
 */
void ngx_http_mcp_listener_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_listener_readers;


#endif /* _NGX_HTTP_MCP_LISTENER_H_INCLUDED_ */
