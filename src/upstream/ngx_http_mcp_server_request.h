
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Server requests: requests of an upstream to a client.  The client sees an id
 * and a progress token that the module made.  In later messages about the
 * request (response, progress, cancellation) ids and tokens are translated in
 * both directions.
 */

#ifndef _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_
#define _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"
#include "ngx_mcp_server_request.h"


/*
 * Whether a client with these raw capabilities and this revision accepts a
 * server request of this method (ngx_mcp_method_e) with these raw params.
 */
ngx_uint_t ngx_http_mcp_server_request_declared(ngx_str_t *capabilities,
    ngx_uint_t revision, ngx_uint_t method, ngx_str_t *params);

/* whether the raw params of an elicitation ask the client to open a URL */
ngx_uint_t ngx_http_mcp_server_request_url(ngx_str_t *params);

/*
 * Translates a message of the upstream, which is a request or notification with
 * its scan in ureq->x, for the caller.  NGX_OK: *out is the text to send; if
 * *pool is not NULL, *out lies in this pool, and the calling function destroys
 * it.  NGX_DECLINED: the client must not get the message; NGX_ERROR: the
 * message is a request for which the client declared no capability, or there is
 * no memory.
 */
ngx_int_t ngx_http_mcp_server_request_to_client(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text, ngx_pool_t **pool, ngx_str_t *out);

/*
 * Translates the client's response to a server request, or its progress
 * notification.  A response ends the request.  NGX_OK: *out is the text to
 * send to the upstream session that *request names, both in pool; NGX_DONE: a
 * call waited for the response and has received it; NGX_BUSY: the zone has no
 * room for the response, and the call still waits; NGX_DECLINED: no such
 * request is open; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_server_request_from_client(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_message_t *m, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request, ngx_str_t *out);

/*
 * Answers the server request with this raw id.  code 0: content is the raw
 * result; else the answer is an error with this code and content as the
 * message.  The answer is sent on a background request, because ureq may live
 * long.  If too many answers are under way, none is sent (logged).
 */
void ngx_http_mcp_server_request_reply(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_audience_t *audience, ngx_str_t *id, ngx_int_t code,
    const char *content);

/*
 * Ends the server request to which the upstream gave this id, and answers it
 * with an error, because it could not be stored for the client.
 */
void ngx_http_mcp_server_request_fail(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_http_mcp_audience_t *audience,
    ngx_str_t *id);

/* answers the server request with an error: the client cannot receive it */
#define ngx_http_mcp_server_request_refuse(t, audience, id)                   \
    ngx_http_mcp_server_request_reply(t, audience, id,                        \
                                      NGX_MCP_METHOD_NOT_FOUND,               \
                                      "the client cannot receive this request")


#endif /* _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_ */
