
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Upstream sessions for requests whose callers have no session.  Callers that
 * the upstream cannot tell apart (of one tenant, with the same credentials)
 * and that declare the same capabilities share one session.  In this session
 * the upstream cannot send requests to clients.  Ids and progress tokens are
 * replaced in the messages, because several callers may use equal ones.
 *
 * The record of the session is that of ngx_mcp_upstream_session.h.  It is kept
 * while requests use the session, and for NGX_MCP_SHARED_TIMEOUT after that.
 */

#ifndef _NGX_HTTP_MCP_POOLED_H_INCLUDED_
#define _NGX_HTTP_MCP_POOLED_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* whether the caller of the request has no session */
#define ngx_http_mcp_is_pooled(ureq)                                          \
    ((ureq)->principal && ((ureq)->owner.block == 0 || (ureq)->sent_id.len))

/*
 * Finds or makes the record of the session for the request, and sets
 * ureq->owner.  NGX_OK; NGX_AGAIN: the request has failed; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_pooled_open(ngx_http_mcp_upstream_request_t *ureq);

/* ends the request: the zone has no room for another upstream session */
void ngx_http_mcp_pooled_refuse(ngx_http_mcp_upstream_request_t *ureq);

/*
 * Returns the message with the id and token that are sent to the upstream, from
 * the pool of ureq->r; data NULL: no memory.
 */
ngx_str_t ngx_http_mcp_pooled_body(ngx_http_mcp_upstream_request_t *ureq);

/*
 * Restores the caller's id or progress token in a message from the upstream,
 * and scans the message again if it was changed.  NGX_OK; NGX_DECLINED: the
 * message belongs to another request; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_pooled_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);


#endif /* _NGX_HTTP_MCP_POOLED_H_INCLUDED_ */
