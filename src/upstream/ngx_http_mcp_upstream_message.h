
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Messages of upstreams: members by which a message is routed, and
 * notifications that a session would get twice: from a stream of its own, and
 * from the shared upstream session.
 *
 * All functions expect the scan of text in ureq->x->scan or x->scan.
 */

#ifndef _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_
#define _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* returns params.uri of the message, decoded; data NULL: absent or no memory */
ngx_str_t ngx_http_mcp_upstream_message_uri(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_pool_t *pool);

/* whether the message refuses the request because its revision is too old */
ngx_uint_t ngx_http_mcp_upstream_message_newer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/*
 * Returns NULL if clients would accept the message as a JSON-RPC response, else
 * a text about the fault and its remedy.  text NULL: the text is not available,
 * and less is checked.
 */
const char *ngx_http_mcp_upstream_message_fault(ngx_mcp_json_t *json,
    ngx_str_t *text);

/*
 * Reads the message as the answer to the initialize with this id.  NGX_OK:
 * *result is the raw result, which lies in text, and *revision is set;
 * NGX_DECLINED: the message is not such an answer.
 */
ngx_int_t ngx_http_mcp_initialize_answer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text, ngx_str_t *id, ngx_str_t *result, ngx_uint_t *revision);

/*
 * Whether a message from a stream of this caller must not be sent to it,
 * because the caller is notified in another way: of an update of a resource
 * that the shared upstream session receives as well, or of a change of a list
 * that the module is about to read again.
 */
ngx_uint_t ngx_http_mcp_upstream_message_duplicate(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text);

/*
 * To be called after the message was sent to the caller's session.  If it is an
 * update of a resource, calls of this session that wait for it get the event.
 */
void ngx_http_mcp_upstream_message_record(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text, ngx_mcp_event_t *event);

/* the worker quits gracefully: deferred updates are sent at once */
void ngx_http_mcp_upstream_message_quit(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_ */
