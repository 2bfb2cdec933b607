
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"
#include "ngx_http_mcp_defaults.h"


/* ms; a read time-out longer than all timers of the exchange */

#define NGX_HTTP_MCP_ADAPT_NEVER         1728000000

/* ms; the default read time-out of upstream modules */

#define NGX_HTTP_MCP_ADAPT_READ_TIMEOUT  60000

/*
 * Times of TCP keep-alive, s: a dead upstream is detected within 80 seconds.
 * TCP sends no keep-alive probes while data is unacknowledged; then
 * TCP_USER_TIMEOUT applies.
 */

#define NGX_HTTP_MCP_ADAPT_IDLE          30
#define NGX_HTTP_MCP_ADAPT_INTERVAL      10
#define NGX_HTTP_MCP_ADAPT_COUNT         4


static ngx_int_t ngx_http_mcp_adapt_content(ngx_http_request_t *sr);
static ngx_int_t ngx_http_mcp_adapt_no_timeout(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);
static ngx_int_t ngx_http_mcp_adapt_timeout(ngx_http_request_t *sr,
    ngx_msec_t timeout);
static ngx_uint_t ngx_http_mcp_adapt_cached(ngx_http_upstream_t *u);
static ngx_uint_t ngx_http_mcp_adapt_user_timeout(ngx_http_request_t *sr);
static void ngx_http_mcp_adapt_report(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);


void
ngx_http_mcp_adapt_request(ngx_http_mcp_exchange_t *x, ngx_http_request_t *sr)
{
    if (sr->content_handler
        && sr->content_handler != ngx_http_mcp_adapt_content)
    {
        x->content = sr->content_handler;
        sr->content_handler = ngx_http_mcp_adapt_content;
    }
}


static ngx_int_t
ngx_http_mcp_adapt_content(ngx_http_request_t *sr)
{
    ngx_int_t                 rc;
    ngx_http_upstream_t      *u;
    ngx_http_mcp_exchange_t  *x;

    x = sr->post_subrequest->data;

    rc = x->content(sr);

    u = sr->upstream;

    if (u == NULL || u->conf == NULL || x->header) {
        return rc;
    }

    /* "proxy_redirect" would change the "Location" that the log quotes */

    u->rewrite_redirect = NULL;

    ngx_http_mcp_adapt_report(x, sr);

    if (!ngx_http_mcp_capture_live(sr)) {
        return rc;
    }

    if (x->silence && ngx_http_mcp_adapt_user_timeout(sr)) {

        /*
         * The user configured a read time-out, which applies: nginx's read
         * timer measures it until the header is received, and the exchange
         * after that.
         */

        x->silence = u->conf->read_timeout;
        x->read_timer = 1;

        return rc;
    }

    /* without memory, nginx's own read time-out stays in effect */

    (void) ngx_http_mcp_adapt_no_timeout(x, sr);

    return rc;
}


ngx_int_t
ngx_http_mcp_adapt_response(ngx_http_mcp_exchange_t *x, ngx_http_request_t *sr)
{
    ngx_http_upstream_t               *u;
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    u = sr->upstream;

    if (u == NULL || u->conf == NULL || !ngx_http_mcp_capture_live(sr)) {
        return NGX_OK;
    }

    dlcf = ngx_http_get_module_loc_conf(sr, ngx_http_mcp_defaults_module);

    /*
     * A buffered response of a subrequest reaches the filters only at its end,
     * so a stream is never buffered.  Another response is buffered if it is
     * cached or stored, or if the user configured buffering.
     */

    if (u->buffering
        && (x->body == NGX_HTTP_MCP_BODY_SSE
            || x->body == NGX_HTTP_MCP_BODY_LINES
            || !(dlcf->buffering || u->store || ngx_http_mcp_adapt_cached(u))))
    {
        u->buffering = 0;
    }

    if (u->buffering) {
        x->read_timer = 1;

        return ngx_http_mcp_adapt_timeout(sr, x->silence
                                              ? x->silence
                                              : NGX_HTTP_MCP_ADAPT_NEVER);
    }

    x->read_timer = 0;

    return ngx_http_mcp_adapt_no_timeout(x, sr);
}


/*
 * From now on the exchange measures the silence, and nginx's read time-out must
 * not fire.  If it is long, it is removed only when a response takes long, so
 * that nginx's timer need not be changed in most exchanges.
 */

static ngx_int_t
ngx_http_mcp_adapt_no_timeout(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr)
{
    if (!x->keepalive
        && sr->upstream->conf->read_timeout >= NGX_HTTP_MCP_ADAPT_READ_TIMEOUT)
    {
        return NGX_OK;
    }

    return ngx_http_mcp_adapt_timeout(sr, NGX_HTTP_MCP_ADAPT_NEVER);
}


static ngx_int_t
ngx_http_mcp_adapt_timeout(ngx_http_request_t *sr, ngx_msec_t timeout)
{
    ngx_connection_t                  *c;
    ngx_http_upstream_t               *u;
    ngx_http_upstream_conf_t          *conf, **kept;
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    u = sr->upstream;

    if (u->conf->read_timeout == timeout) {
        return NGX_OK;
    }

    dlcf = ngx_http_get_module_loc_conf(sr, ngx_http_mcp_defaults_module);

    kept = NULL;
    conf = NULL;

    if (timeout == NGX_HTTP_MCP_ADAPT_NEVER
        && ngx_http_mcp_defaults_is_proxy(sr, u->conf))
    {
        kept = &dlcf->no_timeout;
        conf = *kept;
    }

    if (conf == NULL) {
        conf = ngx_palloc(kept ? ngx_cycle->pool : sr->pool,
                          sizeof(ngx_http_upstream_conf_t));
        if (conf == NULL) {
            return NGX_ERROR;
        }

        *conf = *u->conf;
        conf->read_timeout = timeout;

        if (kept) {
            *kept = conf;
        }
    }

    u->conf = conf;

    c = u->peer.connection;

    if (c && c->read->timer_set) {
        ngx_add_timer(c->read, timeout);
    }

    return NGX_OK;
}


/* whether the user configured the read time-out */

static ngx_uint_t
ngx_http_mcp_adapt_user_timeout(ngx_http_request_t *sr)
{
    ngx_http_upstream_t               *u;
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    u = sr->upstream;

    if (ngx_http_mcp_defaults_is_proxy(sr, u->conf)) {
        dlcf = ngx_http_get_module_loc_conf(sr, ngx_http_mcp_defaults_module);

        return dlcf->read_timeout;
    }

    return u->conf->read_timeout != NGX_HTTP_MCP_ADAPT_READ_TIMEOUT;
}


ngx_uint_t
ngx_http_mcp_adapt_keepalive(ngx_http_mcp_exchange_t *x)
{
    int                                on;
    ngx_socket_t                       fd;
    ngx_connection_t                  *c;
    ngx_http_request_t                *sr;
    ngx_http_upstream_t               *u;
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    sr = x->sr;
    u = sr->upstream;

    if (u == NULL || !u->request_sent) {
        return 0;
    }

    if (!x->read_timer && u->conf && ngx_http_mcp_capture_live(sr)) {
        (void) ngx_http_mcp_adapt_timeout(sr, NGX_HTTP_MCP_ADAPT_NEVER);
    }

    c = u->peer.connection;

    dlcf = ngx_http_get_module_loc_conf(sr, ngx_http_mcp_defaults_module);

    if (c == NULL || dlcf->no_keepalive || u->peer.sockaddr == NULL
        || u->peer.sockaddr->sa_family == AF_UNIX)
    {
        return 1;
    }

    fd = c->fd;
    on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, (const void *) &on,
                   sizeof(int))
        == -1)
    {
        ngx_log_error(NGX_LOG_INFO, c->log, ngx_socket_errno,
                      "setsockopt(SO_KEEPALIVE) failed");
        return 1;
    }

#if (NGX_HAVE_KEEPALIVE_TUNABLE)
    {
    int  idle, interval, count;

    idle = NGX_HTTP_MCP_ADAPT_IDLE;
    interval = NGX_HTTP_MCP_ADAPT_INTERVAL;
    count = NGX_HTTP_MCP_ADAPT_COUNT;

    if (setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, (const void *) &idle,
                   sizeof(int)) == -1
        || setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL,
                      (const void *) &interval, sizeof(int)) == -1
        || setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, (const void *) &count,
                      sizeof(int)) == -1)
    {
        ngx_log_error(NGX_LOG_INFO, c->log, ngx_socket_errno,
                      "setsockopt(TCP_KEEPIDLE) failed");
    }
    }
#endif

#ifdef TCP_USER_TIMEOUT
    {
    unsigned int  timeout;

    timeout = (NGX_HTTP_MCP_ADAPT_IDLE
               + NGX_HTTP_MCP_ADAPT_INTERVAL * NGX_HTTP_MCP_ADAPT_COUNT)
              * 1000;

    if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (const void *) &timeout,
                   sizeof(unsigned int))
        == -1)
    {
        ngx_log_error(NGX_LOG_INFO, c->log, ngx_socket_errno,
                      "setsockopt(TCP_USER_TIMEOUT) failed");
    }
    }
#endif

    return 1;
}


static ngx_uint_t
ngx_http_mcp_adapt_cached(ngx_http_upstream_t *u)
{
#if (NGX_HTTP_CACHE)
    return u->cacheable;
#else
    return 0;
#endif
}


static void
ngx_http_mcp_adapt_report(ngx_http_mcp_exchange_t *x, ngx_http_request_t *sr)
{
    ngx_http_core_loc_conf_t          *clcf;
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(sr, ngx_http_mcp_defaults_module);

    if (dlcf->reported
        || !ngx_http_mcp_defaults_is_proxy(sr, sr->upstream->conf)
        || ngx_http_mcp_defaults_version(sr) != NGX_HTTP_VERSION_10)
    {
        return;
    }

    dlcf->reported = 1;

    clcf = ngx_http_get_module_loc_conf(sr, ngx_http_core_module);

    ngx_log_error(NGX_LOG_WARN, sr->connection->log, 0,
                  "mcp upstream \"%V\": location \"%V\" uses HTTP/1.0 and "
                  "opens a connection for each message; add "
                  "\"proxy_http_version 1.1;\" and \"proxy_set_header "
                  "Connection '';\"",
                  &x->name, &clcf->name);
}
