
/*
 * Requests of an upstream to the client of a session.  The client sees an id
 * and a progress token that are made here; messages of either side about the
 * request (the response, progress, cancellation) are translated on their way to
 * the other.
 */

#ifndef _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_
#define _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"
#include "ngx_mcp_server_request.h"


/*
 * The message at hand, which has a method, on its way to the caller's
 * client: *out is the text to send; it may lie in *pool, which the caller
 * destroys then.  NGX_OK; NGX_DECLINED: it is not for the client; NGX_ERROR:
 * it is a request, and the client cannot be asked.
 */
ngx_int_t ngx_http_mcp_server_request_to_client(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text, ngx_pool_t **pool, ngx_str_t *out);

/*
 * The client's response to a request, or its progress: request says which
 * upstream session gets *out, both in pool.  A response ends the request.
 * NGX_OK; NGX_DONE: a call has waited for it, and has it; NGX_DECLINED: no such
 * request is open; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_server_request_from_client(ngx_mcp_zone_t *zone,
    ngx_mcp_caller_t *caller, ngx_mcp_message_t *m, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request, ngx_str_t *out);

/*
 * Answers the upstream's request with this raw result, or with an error where
 * code is not 0; on a request of its own, because t may live long.
 */
void ngx_http_mcp_server_request_reply(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_audience_t *audience, ngx_str_t *id, ngx_int_t code,
    const char *what);

/* there is no room for the upstream's request with this id, which ends */
void ngx_http_mcp_server_request_unsaid(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_http_mcp_audience_t *audience,
    ngx_str_t *id);

/* with the error that the client cannot be asked */
#define ngx_http_mcp_server_request_refuse(t, audience, id)                   \
    ngx_http_mcp_server_request_reply(t, audience, id,                        \
                                      NGX_MCP_METHOD_NOT_FOUND,               \
                                      "the client cannot receive requests")


#endif /* _NGX_HTTP_MCP_SERVER_REQUEST_H_INCLUDED_ */
