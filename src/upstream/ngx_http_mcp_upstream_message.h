
/*
 * Messages of upstreams: the members that decide on their way, and updates of
 * resources that a session receives twice, on a stream of its own and from the
 * shared upstream session.
 */

#ifndef _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_
#define _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* of the message at hand, which is scanned: ngx_mcp_method_e */
ngx_uint_t ngx_http_mcp_upstream_message_method(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);

/* its params.uri, decoded; data NULL: there is none, or no memory */
ngx_str_t ngx_http_mcp_upstream_message_uri(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_pool_t *pool);

/* its params.level: ngx_mcp_level_e */
ngx_uint_t ngx_http_mcp_upstream_message_level(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);

/* whether it refuses a request as one of an older revision */
ngx_uint_t ngx_http_mcp_upstream_message_newer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/*
 * Reads the message at hand as the answer to the initialize with this id; the
 * result is raw, and valid as long as text.  NGX_OK; NGX_DECLINED: it is none.
 */
ngx_int_t ngx_http_mcp_initialize_answer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text, ngx_str_t *id, ngx_str_t *result, ngx_uint_t *revision);

/*
 * Whether it came on a stream of this caller, who is notified otherwise: of an
 * update of a resource, which the shared upstream session receives as well, or
 * of a change of lists that are kept, which are looked at again now.
 */
ngx_uint_t ngx_http_mcp_upstream_message_duplicate(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text);

/* an update was sent to the caller's session, whose calls may wait for it */
void ngx_http_mcp_upstream_message_record(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text, ngx_mcp_event_t *event);

/* the worker quits gracefully: no update is kept any more */
void ngx_http_mcp_upstream_message_quit(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_ */
