
/*
 * The GET streams of legacy upstreams, on the upstream sessions of clients: a
 * kind of readers without a lease, because it needs the headers of a client.
 */

#ifndef _NGX_HTTP_MCP_LISTENER_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTENER_H_INCLUDED_


#include "ngx_http_mcp_reader.h"


/*
 * Holds the upstream's GET stream of a session for as long as the client holds
 * one of its own, in the first worker that asks; messages go on the session's
 * general channel.  from: the client's GET, whose headers cross.  exclusive: a
 * call runs in such a session, and holds a stream of it instead; what is not
 * for a call is ignored.
 */
void ngx_http_mcp_listener_start(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_mcp_caller_t *caller, ngx_uint_t exclusive);

/* the doorbell: a session that is listened for has ended or has no GET left */
void ngx_http_mcp_listener_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_listener_readers;


#endif /* _NGX_HTTP_MCP_LISTENER_H_INCLUDED_ */
