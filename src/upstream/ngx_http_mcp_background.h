
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A background request: a main request without a client.  An exchange runs on
 * one when no client waits for it (probes, shared upstream sessions, upstream
 * GET streams, DELETE, feeds).  Phases of the background request never run; it
 * only carries background subrequests.  Each attempt has a background request
 * of its own, because the memory of subrequests is freed together with it.
 */

#ifndef _NGX_HTTP_MCP_BACKGROUND_H_INCLUDED_
#define _NGX_HTTP_MCP_BACKGROUND_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* the address and names of the server that a background request is for */

typedef struct {
    ngx_str_t         host;         /* value of the "Host" header */
    ngx_str_t         name;         /* host without the port, for $host */
    struct sockaddr  *sockaddr;     /* address on which the server listens */
    socklen_t         socklen;
    ngx_uint_t        ssl;          /* the server speaks TLS */
} ngx_http_mcp_server_t;


/*
 * Makes a background request.  conf: the configurations (main, srv, loc) of
 * the endpoint's location, so that directives and variables of the location
 * apply.  conf and server have to live as long as the request.  NULL: there is
 * no memory or no connection (logged).
 */
ngx_http_request_t *ngx_http_mcp_background_create(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_server_t *server, ngx_log_t *log);

/*
 * A graceful quit of the worker ends background requests.  After this call it
 * does not end r: the worker waits until r is closed.
 */
void ngx_http_mcp_background_hold_worker(ngx_http_request_t *r);

/*
 * Ends the request and all its subrequests, and frees its memory, in a later
 * event.  Cleanups run, but no callback of an exchange is called.  May be
 * called from done() of an exchange, and more than once.
 */
void ngx_http_mcp_background_close(ngx_http_request_t *r);

/*
 * Copies headers of a client into "in", with memory of pool; "from" may be
 * freed afterwards.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_background_headers(ngx_http_headers_in_t *in,
    ngx_pool_t *pool, ngx_http_headers_in_t *from);

/*
 * Makes $scheme and $https of background requests depend on whether the server
 * speaks TLS, because such a request has no TLS connection.  To be called at
 * the end of the configuration.
 */
void ngx_http_mcp_background_variables(ngx_conf_t *cf);

/* whether r is a background request, or a subrequest of one */
ngx_uint_t ngx_http_mcp_is_background(ngx_http_request_t *r);

/*
 * Sets the event handlers of a background request again, because nginx replaces
 * them when it uses an error page.  Does nothing for other requests.
 */
void ngx_http_mcp_background_handlers(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_BACKGROUND_H_INCLUDED_ */
