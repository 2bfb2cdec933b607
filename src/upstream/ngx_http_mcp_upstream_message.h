
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Messages of upstreams: the members that decide where a message goes, and
 * notifications that a session would get twice, from a stream of its own and
 * from the shared upstream session.
 *
 * ureq->x->scan or x->scan has the members of text.
 */

#ifndef _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_
#define _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* params.uri of the message, decoded; data NULL: it is absent, or no memory */
ngx_str_t ngx_http_mcp_upstream_message_uri(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_pool_t *pool);

/* whether the message refuses a request because its revision is too old */
ngx_uint_t ngx_http_mcp_upstream_message_newer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/*
 * Returns why clients would not take the message as a response of JSON-RPC, and
 * the remedy, or NULL.  text NULL: it is no longer known, and less is checked.
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
 * Whether a message from a stream of this caller must not be sent, because the
 * caller is notified in another way: of an update of a resource that the
 * shared upstream session receives as well, or of a change of a list that the
 * module reads again now.
 */
ngx_uint_t ngx_http_mcp_upstream_message_duplicate(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text);

/*
 * If the message is an update of a resource, which was sent to the caller's
 * session, calls of this session that wait for the update get the event.
 */
void ngx_http_mcp_upstream_message_record(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text, ngx_mcp_event_t *event);

/* the worker quits gracefully: updates that are held back are sent at once */
void ngx_http_mcp_upstream_message_quit(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_UPSTREAM_MESSAGE_H_INCLUDED_ */
