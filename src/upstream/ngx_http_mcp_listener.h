
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A listener reads the GET stream of a legacy upstream in the upstream session
 * of one client.  Listeners are readers without a lease: another worker could
 * not take over the stream, because it does not have the client's headers.
 */

#ifndef _NGX_HTTP_MCP_LISTENER_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTENER_H_INCLUDED_


#include "ngx_http_mcp_reader.h"


/*
 * Reads the upstream's GET stream of a session as long as the client has a GET
 * stream of its own; does nothing if a worker already reads it.  Messages go to
 * the session's general channel.  from: the client's GET, whose headers are
 * sent to the upstream.  exclusive: the session is an exclusive one; the stream
 * is read as long as a call runs in the session, and messages that do not
 * concern a call are ignored.
 */
void ngx_http_mcp_listener_start(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_mcp_caller_t *caller, ngx_uint_t exclusive);

/*
 * The doorbell rang: stops the listeners whose session has ended, and later
 * those whose session still has no GET stream.
 */
void ngx_http_mcp_listener_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_listener_readers;


#endif /* _NGX_HTTP_MCP_LISTENER_H_INCLUDED_ */
