
/*
 * A main request without a client: an exchange runs on one when no client
 * waits for it (probes, shared upstream sessions, upstream GET streams, DELETE,
 * feeds).  Its own phases never run; it only carries background subrequests.
 * One is made for each attempt, because memory of its subrequests is freed only
 * with it.
 */

#ifndef _NGX_HTTP_MCP_BACKGROUND_H_INCLUDED_
#define _NGX_HTTP_MCP_BACKGROUND_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* how the server is reached for which a request is made */

typedef struct {
    ngx_str_t         host;         /* of the header */
    ngx_str_t         name;         /* that without a port, for $host */
    struct sockaddr  *sockaddr;     /* it listens there */
    socklen_t         socklen;
    ngx_uint_t        ssl;          /* by TLS */
} ngx_http_mcp_server_t;


/*
 * conf: the configurations (main, srv, loc) of the endpoint's location; they
 * become those of the request, so that its directives and variables hold.
 * NULL when memory or connections ran out (logged).
 */
ngx_http_request_t *ngx_http_mcp_background_create(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_server_t *server, ngx_log_t *log);

/*
 * A graceful quit does not end it, as it does else, like that of a client that
 * left: the one that made it does.
 */
void ngx_http_mcp_background_hold_worker(ngx_http_request_t *r);

/*
 * Ends it, with whatever still runs on it: cleanups run, no callback of an
 * exchange is called.  Safe from any handler of an exchange's done(); the
 * memory goes in a later event.
 */
void ngx_http_mcp_background_close(ngx_http_request_t *r);

/* copies what crosses of a client's headers; from may go then */
ngx_int_t ngx_http_mcp_background_headers(ngx_http_headers_in_t *in,
    ngx_pool_t *pool, ngx_http_headers_in_t *from);

/*
 * Has $scheme and $https speak of the server, for such a request, whose
 * connection is none of TLS; at the end of the configuration.
 */
void ngx_http_mcp_background_variables(ngx_conf_t *cf);

/* whether r is such a request */
ngx_uint_t ngx_http_mcp_is_background(ngx_http_request_t *r);

/*
 * Notes that something was made of the endpoint's name, with which the outcome
 * holds for this endpoint alone; and whether that was noted.
 */
void ngx_http_mcp_background_use_endpoint(ngx_http_request_t *r);
ngx_uint_t ngx_http_mcp_background_uses_endpoint(ngx_http_request_t *r);

/* puts its own event handlers back, which nginx's error pages replace */
void ngx_http_mcp_background_handlers(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_BACKGROUND_H_INCLUDED_ */
