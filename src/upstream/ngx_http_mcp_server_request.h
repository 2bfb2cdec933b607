
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Server requests: requests of an upstream to the client of a session.  The
 * client sees an id and a progress token that the module made.  In later
 * messages about the request (response, progress, cancellation) ids and tokens
 * are translated in both directions.
 */

#ifndef _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_
#define _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"
#include "ngx_mcp_server_request.h"


/*
 * Return whether a client with these raw capabilities and this revision can be
 * sent a server request of this method (ngx_mcp_method_e) with these raw
 * params, and whether such params ask the client to visit a page.
 */
ngx_uint_t ngx_http_mcp_server_request_declared(ngx_str_t *capabilities,
    ngx_uint_t revision, ngx_uint_t method, ngx_str_t *params);
ngx_uint_t ngx_http_mcp_server_request_url(ngx_str_t *params);

/*
 * Translates the message in ureq->x, which has a method, for the caller's
 * client.  NGX_OK: *out is the text to send; if *pool is not NULL, *out lies
 * in this pool, and the calling function destroys it.  NGX_DECLINED: the
 * message is not for the client; NGX_ERROR: it is a request that the client
 * cannot get or declared no capability for, or no memory.
 */
ngx_int_t ngx_http_mcp_server_request_to_client(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text, ngx_pool_t **pool, ngx_str_t *out);

/*
 * Translates the client's response to a server request, or its progress
 * notification.  A response ends the request.  NGX_OK: *out is the text to
 * send to the upstream session that *request names, both in pool; NGX_DONE: a
 * call waited for the response and has got it; NGX_BUSY: the zone has no room
 * for it, and the call still waits; NGX_DECLINED: no such request is open;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_server_request_from_client(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_message_t *m, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request, ngx_str_t *out);

/*
 * Answers the server request with this raw id: with the raw result "what", or,
 * if code is not 0, with an error of this code and text.  The answer is sent
 * on a background request, because ureq may live long.  If too many answers
 * are under way, this one is left out (logged).
 */
void ngx_http_mcp_server_request_reply(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_audience_t *audience, ngx_str_t *id, ngx_int_t code,
    const char *what);

/*
 * Answers the server request with this id of the upstream with an error,
 * because the request could not be stored for the client, and ends it.
 */
void ngx_http_mcp_server_request_unsaid(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_http_mcp_audience_t *audience,
    ngx_str_t *id);

/* answers the server request with the error that the client cannot be asked */
#define ngx_http_mcp_server_request_refuse(t, audience, id)                   \
    ngx_http_mcp_server_request_reply(t, audience, id,                        \
                                      NGX_MCP_METHOD_NOT_FOUND,               \
                                      "the client cannot receive this request")


#endif /* _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_ */
