
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_doorbell.h"
#include "ngx_mcp_id.h"


static ngx_int_t ngx_mcp_doorbell_listen(ngx_mcp_doorbell_t *bell,
    ngx_socket_t s);
static socklen_t ngx_mcp_doorbell_address(struct sockaddr_un *sun,
    u_char *name);
static void ngx_mcp_doorbell_read_handler(ngx_event_t *rev);


ngx_int_t
ngx_mcp_doorbell_open(ngx_mcp_doorbell_t *bell)
{
    ngx_log_t          *log;
    socklen_t           len;
    ngx_socket_t        s;
    struct sockaddr_un  sun;

    log = bell->cycle->log;

    if (ngx_mcp_random(bell->name, NGX_MCP_NAME_LEN) != NGX_OK) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_errno, "getrandom() failed");
        return NGX_ERROR;
    }

    s = ngx_socket(AF_UNIX, SOCK_DGRAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_socket_errno,
                      ngx_socket_n " of the mcp worker socket failed");
        return NGX_ERROR;
    }

    len = ngx_mcp_doorbell_address(&sun, bell->name);

    if (ngx_nonblocking(s) == -1
        || fcntl(s, F_SETFD, FD_CLOEXEC) == -1
        || bind(s, (struct sockaddr *) &sun, len) == -1)
    {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_socket_errno,
                      "bind() of the mcp worker socket failed");

        if (ngx_close_socket(s) == -1) {
            ngx_log_error(NGX_LOG_ALERT, log, ngx_socket_errno,
                          ngx_close_socket_n " failed");
        }

        return NGX_ERROR;
    }

    return ngx_mcp_doorbell_listen(bell, s);
}


static ngx_int_t
ngx_mcp_doorbell_listen(ngx_mcp_doorbell_t *bell, ngx_socket_t s)
{
    ngx_int_t          flags;
    ngx_event_t       *rev;
    ngx_cycle_t       *cycle;
    ngx_connection_t  *c;

    cycle = bell->cycle;

    c = ngx_get_connection(s, cycle->log);

    if (c == NULL) {
        if (ngx_close_socket(s) == -1) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_socket_errno,
                          ngx_close_socket_n " failed");
        }

        return NGX_ERROR;
    }

    c->data = bell;
    c->pool = cycle->pool;

    rev = c->read;
    rev->log = cycle->log;
    rev->handler = ngx_mcp_doorbell_read_handler;
    c->write->log = cycle->log;

    flags = (ngx_event_flags & NGX_USE_CLEAR_EVENT) ? NGX_CLEAR_EVENT
                                                    : NGX_LEVEL_EVENT;

    if (ngx_add_event(rev, NGX_READ_EVENT, flags) != NGX_OK) {
        ngx_close_connection(c);
        return NGX_ERROR;
    }

    /* nginx closes idle connections when it is asked to quit */

    c->idle = 1;
    bell->connection = c;

    return NGX_OK;
}


/* makes the abstract address of a socket: the random name in hex */

static socklen_t
ngx_mcp_doorbell_address(struct sockaddr_un *sun, u_char *name)
{
    u_char  *p;

    ngx_memzero(sun, sizeof(struct sockaddr_un));
    sun->sun_family = AF_UNIX;

    p = (u_char *) sun->sun_path + 1;
    p = ngx_cpymem(p, "nginx-mcp-", sizeof("nginx-mcp-") - 1);
    p = ngx_hex_dump(p, name, NGX_MCP_NAME_LEN);

    return (socklen_t) (p - (u_char *) sun);
}


ngx_int_t
ngx_mcp_doorbell_ring(ngx_mcp_zone_t *zone, ngx_uint_t worker)
{
    ssize_t              n;
    socklen_t            len;
    ngx_err_t            err;
    struct sockaddr_un   sun;
    ngx_mcp_doorbell_t  *bell;

    bell = zone->doorbell;

    if (bell == NULL || bell->connection == NULL) {
        return NGX_OK;
    }

    if (worker == zone->worker) {
        ngx_post_event(&bell->drain, &ngx_posted_events);
        return NGX_OK;
    }

    len = ngx_mcp_doorbell_address(&sun, ngx_mcp_slot(zone, worker)->name);

    do {
        n = sendto(bell->connection->fd, "", 0, 0, (struct sockaddr *) &sun,
                   len);

        err = (n == -1) ? ngx_socket_errno : 0;

    } while (err == NGX_EINTR);

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, zone->log, err,
                   "mcp doorbell of worker %ui: %z", worker, n);

    if (n == 0 || err == NGX_EAGAIN) {

        /* NGX_EAGAIN: the socket's queue is full of datagrams */

        return NGX_OK;
    }

    if (err == NGX_ECONNREFUSED || err == NGX_ENOENT) {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_ERR, zone->log, err, "sendto() to the mcp socket of "
                                               "another worker failed");

    return NGX_ERROR;
}


static void
ngx_mcp_doorbell_read_handler(ngx_event_t *rev)
{
    u_char               buf[8];
    ssize_t              n;
    ngx_uint_t           i;
    ngx_connection_t    *c;
    ngx_mcp_doorbell_t  *bell;

    c = rev->data;
    bell = c->data;

    if (c->close) {
        c->close = 0;

        bell->quitting(bell);

        return;
    }

    /* the limit is never reached, as the queue of a datagram socket is short */

    for (i = 0; i < 1024; i++) {
        n = recv(c->fd, buf, sizeof(buf), 0);

        if (n == -1) {
            break;
        }
    }

    bell->drain.handler(&bell->drain);
}


void
ngx_mcp_doorbell_due(ngx_mcp_zone_t *zone, ngx_msec_t delay)
{
    ngx_event_t         *ev;
    ngx_mcp_doorbell_t  *bell;

    bell = zone->doorbell;

    if (bell == NULL) {
        return;
    }

    ev = &bell->due;

    if (ev->timer_set) {

        if ((ngx_msec_int_t) (ev->timer.key - ngx_current_msec - delay) <= 0) {
            return;
        }

        ngx_del_timer(ev);
    }

    ngx_add_timer(ev, delay);
}


void
ngx_mcp_worker_ring_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    ngx_uint_t bits)
{
    ngx_mcp_worker_ring_keys_locked(zone, worker, bits, NGX_MCP_RING_ANY);
}


void
ngx_mcp_worker_ring_keys_locked(ngx_mcp_zone_t *zone, ngx_uint_t worker,
    ngx_uint_t bits, uint64_t keys)
{
    ngx_mcp_doorbell_t   *bell;
    ngx_mcp_worker_sh_t  *w;

    if (worker >= zone->sh->slots) {
        return;
    }

    w = ngx_mcp_slot(zone, worker);
    w->bits |= (uint32_t) bits;

    if (bits & ~NGX_MCP_RING_LEASES) {
        w->keys |= keys;
    }

    /* without a socket, this process leaves the ringing to the next one */

    bell = zone->doorbell;

    if (w->rung || w->state != NGX_MCP_WORKER_LIVE
        || bell == NULL || bell->connection == NULL)
    {
        return;
    }

    w->rung = 1;

    if (zone->nbells < NGX_MCP_BELLS) {
        zone->bells[zone->nbells] = (uint16_t) worker;
    }

    zone->nbells++;
}


void
ngx_mcp_worker_ring_all_locked(ngx_mcp_zone_t *zone, ngx_uint_t bits)
{
    ngx_mcp_worker_ring_all_keys_locked(zone, bits, NGX_MCP_RING_ANY);
}


void
ngx_mcp_worker_ring_all_keys_locked(ngx_mcp_zone_t *zone, ngx_uint_t bits,
    uint64_t keys)
{
    ngx_uint_t  i;

    for (i = 0; i < zone->sh->top; i++) {
        if (ngx_mcp_slot(zone, i)->state == NGX_MCP_WORKER_LIVE) {
            ngx_mcp_worker_ring_keys_locked(zone, i, bits, keys);
        }
    }
}


/* a bell that another worker rings at this moment may be rung twice */

void
ngx_mcp_worker_ring_out(ngx_mcp_zone_t *zone)
{
    ngx_uint_t           i, n, all, worker, gone;
    ngx_mcp_doorbell_t  *bell;

    all = (zone->nbells > NGX_MCP_BELLS);
    n = all ? zone->sh->top : zone->nbells;
    gone = 0;

    zone->nbells = 0;

    for (i = 0; i < n; i++) {
        worker = all ? i : zone->bells[i];

        if (!ngx_mcp_slot(zone, worker)->rung) {
            continue;
        }

        if (ngx_mcp_doorbell_ring(zone, worker) == NGX_DECLINED) {
            ngx_mcp_slot(zone, worker)->heartbeat = 0;
            gone = 1;
        }
    }

    bell = zone->doorbell;

    if (gone && bell) {
        ngx_add_timer(&bell->sweep, 1);
    }
}
