
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The functions that the files that implement an exchange call in each other.
 */

#ifndef _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_
#define _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_


#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_exchange.h"


/* whether an upstream module (proxy, ...) runs the subrequest */

#define ngx_http_mcp_capture_live(sr)                                         \
    ((sr)->upstream && (sr)->upstream->cleanup)

/* whether an upstream module runs sr, and reads on only after its buffer */

#define ngx_http_mcp_capture_unbuffered(sr)                                   \
    (ngx_http_mcp_capture_live(sr) && !(sr)->upstream->buffering)


/*
 * A pool for an exchange of r and its subrequest.  It lives as long as r, and
 * is then kept for another exchange.  NULL: no memory.
 */
ngx_pool_t *ngx_http_mcp_exchange_pool(ngx_http_request_t *r);

/* the filters received the response's header, or a part of its body */
void ngx_http_mcp_capture_header(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
void ngx_http_mcp_capture_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r, ngx_chain_t *in);

/* processes x->in, unless the exchange is paused */
void ngx_http_mcp_capture_process(ngx_http_mcp_exchange_t *x);

/* ends the exchange in a later event; the caller has logged the cause */
void ngx_http_mcp_capture_stop(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);

/* calls header() of the handlers, unless it was called before */
void ngx_http_mcp_capture_open(ngx_http_mcp_exchange_t *x);

/*
 * Gives the new subrequest the headers to send: those of x, and those of the
 * client if x->client_headers is set.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_headers_build(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * Copies Mcp-Session-Id and the headers that reach the client from the
 * response to x->session and x->headers.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_headers_collect(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* the Content-Encoding of a response, or NULL if its body is not encoded */
ngx_str_t *ngx_http_mcp_headers_encoding(ngx_http_request_t *sr);

/* the kind of body by the response's headers: ngx_http_mcp_body_e */
ngx_uint_t ngx_http_mcp_headers_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* adapts nginx's time-outs and buffering when the subrequest starts */
void ngx_http_mcp_adapt_request(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * Adapts nginx's time-outs and buffering when the response's header has come.
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_adapt_response(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * To be called when a response takes long: from now on only the exchange
 * measures the upstream's silence, and TCP keep-alive detects an upstream that
 * died.  Returns 0 if the upstream is not connected yet: the caller tries again
 * later.
 */
ngx_uint_t ngx_http_mcp_adapt_keepalive(ngx_http_mcp_exchange_t *x);


#endif /* _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_ */
