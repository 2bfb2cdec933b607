
/*
 * Sessions at upstreams for requests whose callers have none.  Callers who are
 * the same to the upstream (of one tenant, with the same credentials) and
 * declare the same share one, in which nobody can be asked.  Ids and progress
 * tokens of the requests are made here, because those of several callers may be
 * equal.
 *
 * The record is one of ngx_mcp_upstream_session.h.  It is kept while requests
 * use it, and NGX_MCP_SHARED_TIMEOUT longer.
 */

#ifndef _NGX_HTTP_MCP_POOLED_H_INCLUDED_
#define _NGX_HTTP_MCP_POOLED_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* whether the request has no session of its own */
#define ngx_http_mcp_is_pooled(ureq)                                          \
    ((ureq)->principal && ((ureq)->owner.block == 0 || (ureq)->minted.len))

/*
 * Finds the place of its session: sets ureq->owner.  NGX_OK; NGX_AGAIN: the
 * request has failed; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_pooled_open(ngx_http_mcp_upstream_request_t *ureq);

/* its message as it leaves; data NULL: no memory */
ngx_str_t ngx_http_mcp_pooled_body(ngx_http_mcp_upstream_request_t *ureq);

/*
 * A message that came, which is scanned: about the request it has the caller's
 * own id or token again, and the scan is that of this text.  NGX_OK;
 * NGX_DECLINED: it is about another one; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_pooled_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);


#endif /* _NGX_HTTP_MCP_POOLED_H_INCLUDED_ */
