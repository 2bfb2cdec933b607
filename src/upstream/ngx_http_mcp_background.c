
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_background.h"
#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_header_iter.h"
#include "ngx_mcp_core.h"


typedef struct {
    ngx_http_connection_t       http;       /* has to be the first member */
    ngx_http_request_t         *request;
    ngx_http_mcp_server_t      *server;
    ngx_event_t                 close;      /* posted to end the request */
    ngx_uint_t                  holds_worker;  /* a worker that quits waits for
                                                  the end of the request */

    struct sockaddr_in          sockaddr;
    ngx_http_log_ctx_t          ctx;
    ngx_log_t                   log;
} ngx_http_mcp_background_t;


static ngx_connection_t *ngx_http_mcp_background_connection(ngx_log_t *log);
static void ngx_http_mcp_background_release(ngx_connection_t *c);
static void ngx_http_mcp_background_read(ngx_event_t *rev);
static void ngx_http_mcp_background_write(ngx_event_t *wev);
static void ngx_http_mcp_background_close_handler(ngx_event_t *ev);
static void ngx_http_mcp_background_free(ngx_http_mcp_background_t *bg);
static void ngx_http_mcp_background_cleanup(void *data);
static ngx_int_t ngx_http_mcp_background_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_mcp_background_log_error(ngx_log_t *log, u_char *buf,
    size_t len);


/*
 * Variables that show whether the client uses TLS.  For requests of clients,
 * nginx's own handlers are called, which are stored here.
 */

static struct {
    ngx_str_t                   name;
    ngx_str_t                   value;      /* value of the variable if the
                                               server speaks TLS */
    ngx_http_get_variable_pt    get_handler;
    uintptr_t                   data;
} ngx_http_mcp_background_tls[] = {
    { ngx_string("scheme"), ngx_string("https"), NULL, 0 },
    { ngx_string("https"), ngx_string("on"), NULL, 0 }
};


static ngx_str_t  ngx_http_mcp_background_addr = ngx_string("127.0.0.1");
static ngx_str_t  ngx_http_mcp_background_get = ngx_string("GET");
static ngx_str_t  ngx_http_mcp_background_uri = ngx_string("/");
static ngx_str_t  ngx_http_mcp_background_protocol = ngx_string("HTTP/1.1");


ngx_http_request_t *
ngx_http_mcp_background_create(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_server_t *server, ngx_log_t *log)
{
    ngx_table_elt_t            *host;
    ngx_connection_t           *c;
    ngx_http_cleanup_t         *cln;
    ngx_http_request_t         *r;
    ngx_http_mcp_background_t  *bg;

    c = ngx_http_mcp_background_connection(log);
    if (c == NULL) {
        return NULL;
    }

    bg = c->data;
    bg->http.conf_ctx = conf;
    bg->server = server;

    c->local_sockaddr = server->sockaddr;
    c->local_socklen = server->socklen;

    r = ngx_http_create_request(c);
    if (r == NULL) {
        ngx_http_mcp_background_release(c);
        return NULL;
    }

    bg->request = r;
    c->data = r;

    r->logged = 1;

    host = NULL;

    if (ngx_list_init(&r->headers_in.headers, r->pool, 1,
                      sizeof(ngx_table_elt_t))
        == NGX_OK)
    {
        host = ngx_http_mcp_header_push(&r->headers_in.headers);
    }

    cln = ngx_http_cleanup_add(r, 0);

    if (cln == NULL || host == NULL) {
        ngx_http_free_request(r, 0);
        ngx_http_mcp_background_release(c);
        return NULL;
    }

    ngx_str_set(&host->key, "Host");
    host->value = server->host;
    host->lowcase_key = (u_char *) "host";
    host->hash = ngx_hash_key(host->lowcase_key, host->key.len);

    cln->handler = ngx_http_mcp_background_cleanup;
    cln->data = bg;

    r->headers_in.host = host;
    r->headers_in.server = server->name;
    r->headers_in.connection_type = NGX_HTTP_CONNECTION_CLOSE;

    r->method = NGX_HTTP_GET;
    r->method_name = ngx_http_mcp_background_get;
    r->http_version = NGX_HTTP_VERSION_11;
    r->http_protocol = ngx_http_mcp_background_protocol;
    r->uri = ngx_http_mcp_background_uri;
    r->unparsed_uri = ngx_http_mcp_background_uri;

    r->internal = 1;

    /* prevents nginx from running post_action when it terminates the request */

    r->post_action = 1;
    r->uri_changes = 0;

    r->read_event_handler = ngx_http_request_empty_handler;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "mcp background create fd:%d", c->fd);

    return r;
}


static ngx_connection_t *
ngx_http_mcp_background_connection(ngx_log_t *log)
{
    ngx_pool_t                 *pool;
    ngx_socket_t                fd;
    ngx_connection_t           *c;
    ngx_http_mcp_background_t  *bg;

    pool = ngx_create_pool(1024, log);
    if (pool == NULL) {
        return NULL;
    }

    bg = ngx_pcalloc(pool, sizeof(ngx_http_mcp_background_t));
    if (bg == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    /* a socket that is neither bound nor connected never becomes readable */

    fd = ngx_socket(AF_UNIX, SOCK_DGRAM, 0);

    if (fd == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ERR, log, ngx_socket_errno,
                      ngx_socket_n " failed");
        ngx_destroy_pool(pool);
        return NULL;
    }

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        (void) ngx_close_socket(fd);
        ngx_destroy_pool(pool);
        return NULL;
    }

#if (NGX_STAT_STUB)
    (void) ngx_atomic_fetch_add(ngx_stat_active, 1);
#endif

    c->pool = pool;
    c->data = bg;
    c->type = SOCK_STREAM;

    c->buffer = ngx_create_temp_buf(pool, 1);
    if (c->buffer == NULL) {
        ngx_http_mcp_background_release(c);
        return NULL;
    }

    bg->log = *log;
    bg->log.handler = ngx_http_mcp_background_log_error;
    bg->log.data = &bg->ctx;
    bg->log.action = NULL;

    bg->ctx.connection = c;

    bg->sockaddr.sin_family = AF_INET;
    bg->sockaddr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    c->sockaddr = (struct sockaddr *) &bg->sockaddr;
    c->socklen = sizeof(struct sockaddr_in);
    c->addr_text = ngx_http_mcp_background_addr;

    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);
    c->start_time = ngx_current_msec;
    c->tcp_nodelay = NGX_TCP_NODELAY_DISABLED;
    c->tcp_nopush = NGX_TCP_NOPUSH_DISABLED;
    c->sndlowat = 1;

    c->log = &bg->log;
    c->log->connection = c->number;
    c->pool->log = c->log;
    c->read->log = c->log;
    c->write->log = c->log;

    c->read->handler = ngx_http_mcp_background_read;
    c->write->handler = ngx_http_mcp_background_write;

    if (ngx_event_flags & NGX_USE_EPOLL_EVENT) {

        /* avoids calls of epoll_ctl(): the descriptor never has an event */

        c->read->active = 1;
        c->write->active = 1;
    }

    c->write->ready = 1;

    /* makes nginx close the connection at a graceful quit */

    c->idle = 1;

    bg->close.handler = ngx_http_mcp_background_close_handler;
    bg->close.data = bg;
    bg->close.log = c->log;

    return c;
}


static void
ngx_http_mcp_background_release(ngx_connection_t *c)
{
    ngx_pool_t  *pool;

#if (NGX_STAT_STUB)
    (void) ngx_atomic_fetch_add(ngx_stat_active, -1);
#endif

    pool = c->pool;
    c->destroyed = 1;

    ngx_close_connection(c);
    ngx_destroy_pool(pool);
}


void
ngx_http_mcp_background_hold_worker(ngx_http_request_t *r)
{
    ngx_http_mcp_background_t  *bg;

    bg = (ngx_http_mcp_background_t *) r->http_connection;

    bg->holds_worker = 1;
}


void
ngx_http_mcp_background_close(ngx_http_request_t *r)
{
    ngx_http_mcp_background_t  *bg;

    bg = (ngx_http_mcp_background_t *) r->http_connection;

    if (bg->request == NULL) {
        return;
    }

    ngx_post_event(&bg->close, &ngx_posted_events);
}


ngx_int_t
ngx_http_mcp_background_headers(ngx_http_headers_in_t *in, ngx_pool_t *pool,
    ngx_http_headers_in_t *from)
{
    ngx_table_elt_t            *h, *copy;
    ngx_http_mcp_header_iter_t  iter;

    if (ngx_list_init(&in->headers, pool, 16, sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    in->server.len = from->server.len;
    in->server.data = ngx_pstrdup(pool, &from->server);

    if (in->server.data == NULL) {
        return NGX_ERROR;
    }

    ngx_http_mcp_header_iter_init(&iter, &from->headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        copy = ngx_http_mcp_header_push(&in->headers);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        copy->hash = h->hash;
        copy->key.len = h->key.len;
        copy->key.data = ngx_pstrdup(pool, &h->key);
        copy->value.len = h->value.len;
        copy->value.data = ngx_pstrdup(pool, &h->value);
        copy->lowcase_key = ngx_pnalloc(pool, h->key.len);

        if (copy->key.data == NULL || copy->value.data == NULL
            || copy->lowcase_key == NULL)
        {
            return NGX_ERROR;
        }

        ngx_strlow(copy->lowcase_key, copy->key.data, copy->key.len);

        if (h == from->host) {
            in->host = copy;
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_is_background(ngx_http_request_t *r)
{
    return r->connection->log->handler == ngx_http_mcp_background_log_error;
}


void
ngx_http_mcp_background_variables(ngx_conf_t *cf)
{
    ngx_uint_t                  i, n;
    ngx_hash_key_t             *key;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    key = cmcf->variables_keys->keys.elts;

    for (i = 0; i < cmcf->variables_keys->keys.nelts; i++) {

        for (n = 0; n < 2; n++) {

            if (!ngx_mcp_equal(&key[i].key,
                               &ngx_http_mcp_background_tls[n].name))
            {
                continue;
            }

            v = key[i].value;

            ngx_http_mcp_background_tls[n].get_handler = v->get_handler;
            ngx_http_mcp_background_tls[n].data = v->data;

            v->get_handler = ngx_http_mcp_background_variable;
            v->data = n;
        }
    }
}


static ngx_int_t
ngx_http_mcp_background_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_mcp_background_t  *bg;

    bg = (ngx_http_mcp_background_t *) r->main->http_connection;

    if (!ngx_http_mcp_is_background(r) || !bg->server->ssl) {
        return ngx_http_mcp_background_tls[data].get_handler(r, v,
                                       ngx_http_mcp_background_tls[data].data);
    }

    v->len = ngx_http_mcp_background_tls[data].value.len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->data = ngx_http_mcp_background_tls[data].value.data;

    return NGX_OK;
}


void
ngx_http_mcp_background_handlers(ngx_http_request_t *r)
{
    if (ngx_http_mcp_is_background(r)) {
        r->connection->read->handler = ngx_http_mcp_background_read;
        r->connection->write->handler = ngx_http_mcp_background_write;
    }
}


static void
ngx_http_mcp_background_read(ngx_event_t *rev)
{
    ngx_connection_t           *c;
    ngx_http_request_t         *r;
    ngx_http_mcp_background_t  *bg;

    c = rev->data;

    if (!c->close && !c->error) {
        return;
    }

    r = c->data;
    bg = (ngx_http_mcp_background_t *) r->http_connection;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "mcp background quit fd:%d", c->fd);

    c->close = 0;

    /* frees the request now: a worker that exits may not run posted events */

    if (bg->holds_worker && !c->error && !bg->close.posted) {
        return;
    }

    ngx_http_mcp_background_free(bg);
}


static void
ngx_http_mcp_background_write(ngx_event_t *wev)
{
    ngx_connection_t  *c;

    c = wev->data;

    if (wev->timedout) {

        /* the delay of a subrequest by limit_req has ended */

        wev->delayed = 0;
        wev->timedout = 0;
    }

    if (c->error) {
        ngx_http_mcp_background_read(c->read);
    }
}


static void
ngx_http_mcp_background_close_handler(ngx_event_t *ev)
{
    ngx_http_mcp_background_free(ev->data);
}


static void
ngx_http_mcp_background_free(ngx_http_mcp_background_t *bg)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = bg->request;
    c = r->connection;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "mcp background close fd:%d count:%d", c->fd, r->count);

    ngx_http_finalize_request(r, NGX_ERROR);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_background_cleanup(void *data)
{
    ngx_http_mcp_background_t *bg = data;

    bg->request = NULL;

    if (bg->close.posted) {
        ngx_delete_posted_event(&bg->close);
    }
}


static u_char *
ngx_http_mcp_background_log_error(ngx_log_t *log, u_char *buf, size_t len)
{
    u_char              *p;
    ngx_http_request_t  *r;
    ngx_http_log_ctx_t  *ctx;

    if (log->action) {
        p = ngx_snprintf(buf, len, " while %s", log->action);
        len -= p - buf;
        buf = p;
    }

    p = ngx_snprintf(buf, len, ", mcp background request");
    len -= p - buf;

    ctx = log->data;
    r = ctx->request;

    if (r) {
        return r->log_handler(r, ctx->current_request, p, len);
    }

    return p;
}
