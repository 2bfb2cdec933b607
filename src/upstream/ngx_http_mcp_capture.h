
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Functions by which the files that implement an exchange call each other.
 */

#ifndef _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_
#define _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_


#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_exchange.h"


/* whether an upstream module (proxy, ...) runs the subrequest */

#define ngx_http_mcp_capture_live(sr)                                         \
    ((sr)->upstream && (sr)->upstream->cleanup)

/* whether an upstream module runs sr, and reads one buffer at a time */

#define ngx_http_mcp_capture_unbuffered(sr)                                   \
    (ngx_http_mcp_capture_live(sr) && !(sr)->upstream->buffering)


/*
 * Returns a pool for an exchange of r and its subrequest.  The pool lives as
 * long as r, and may then be used for another exchange.  NULL: no memory.
 */
ngx_pool_t *ngx_http_mcp_exchange_pool(ngx_http_request_t *r);

/* process the response's header, or a part of its body, from the filters */
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
 * Fills the request headers of the new subrequest: with those of x, and those
 * of the client if x->client_headers is set.  NGX_OK or NGX_ERROR.
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

/* the kind of body (ngx_http_mcp_body_e), as the response's headers tell it */
ngx_uint_t ngx_http_mcp_headers_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* adapts nginx's time-outs and buffering when the subrequest starts */
void ngx_http_mcp_adapt_request(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * Adapts nginx's time-outs and buffering when the response's header has been
 * received.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_adapt_response(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * To be called when a response takes long: from now on the exchange itself
 * measures the upstream's silence, and TCP keep-alive detects a dead upstream.
 * Returns 0 if the upstream is not connected yet: the caller has to call again
 * later.
 */
ngx_uint_t ngx_http_mcp_adapt_keepalive(ngx_http_mcp_exchange_t *x);


#endif /* _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_ */
