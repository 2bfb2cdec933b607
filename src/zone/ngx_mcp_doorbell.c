
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include "ngx_mcp_worker.h"


typedef struct {
    ngx_mcp_zone_t         *zone;
    ngx_connection_t       *connection;
    ngx_cycle_t            *cycle;
    ngx_event_t             drain;
    ngx_event_t             sweep;
    ngx_event_t             due;
    void                  (*quit)(ngx_mcp_zone_t *zone);
    u_char                  name[NGX_MCP_NAME_LEN];
    unsigned                told:1;       /* that there is no place */
} ngx_mcp_doorbell_t;


static void ngx_mcp_doorbell_join(ngx_mcp_doorbell_t *bell);
static ngx_int_t ngx_mcp_doorbell_open(ngx_mcp_doorbell_t *bell);
static ngx_int_t ngx_mcp_doorbell_listen(ngx_mcp_doorbell_t *bell,
    ngx_socket_t s);
static socklen_t ngx_mcp_doorbell_address(struct sockaddr_un *sun,
    u_char *name);
static void ngx_mcp_doorbell_read_handler(ngx_event_t *rev);
static void ngx_mcp_doorbell_drain_handler(ngx_event_t *ev);
static void ngx_mcp_doorbell_sweep_handler(ngx_event_t *ev);
static void ngx_mcp_doorbell_due_handler(ngx_event_t *ev);


ngx_int_t
ngx_mcp_worker_join(ngx_mcp_zone_t *zone, ngx_cycle_t *cycle,
    ngx_mcp_worker_handlers_t *handlers, void (*quit)(ngx_mcp_zone_t *zone))
{
    ngx_mcp_doorbell_t  *bell;

    bell = ngx_pcalloc(cycle->pool, sizeof(ngx_mcp_doorbell_t));
    if (bell == NULL) {
        return NGX_ERROR;
    }

    bell->zone = zone;
    bell->cycle = cycle;
    bell->quit = quit;

    bell->drain.handler = ngx_mcp_doorbell_drain_handler;
    bell->drain.data = bell;
    bell->drain.log = cycle->log;

    bell->sweep.handler = ngx_mcp_doorbell_sweep_handler;
    bell->sweep.data = bell;
    bell->sweep.log = cycle->log;
    bell->sweep.cancelable = 1;

    bell->due.handler = ngx_mcp_doorbell_due_handler;
    bell->due.data = bell;
    bell->due.log = cycle->log;
    bell->due.cancelable = 1;

    zone->log = cycle->log;
    zone->handlers = handlers;
    zone->doorbell = bell;

    ngx_mcp_doorbell_join(bell);

    ngx_add_timer(&bell->sweep, 1000);

    return NGX_OK;
}


/*
 * A worker that gets no place serves without one, as its exit would be final
 * for nginx, and tries again with each sweep.
 */

static void
ngx_mcp_doorbell_join(ngx_mcp_doorbell_t *bell)
{
    ngx_mcp_zone_t  *zone;

    zone = bell->zone;

    if (bell->connection == NULL && ngx_mcp_doorbell_open(bell) != NGX_OK) {
        return;
    }

    if (ngx_mcp_worker_claim(zone, bell->name) != NGX_OK) {

        if (!bell->told) {
            ngx_log_error(NGX_LOG_ERR, bell->cycle->log, 0,
                          "mcp zone \"%V\" serves its maximum number of "
                          "workers, so this worker answers 503 until workers "
                          "of earlier configurations exit; give \"mcp_zone\" "
                          "a larger size, or set \"worker_shutdown_timeout\"",
                          &zone->name);
            bell->told = 1;
        }

        return;
    }

    if (bell->told) {
        ngx_log_error(NGX_LOG_NOTICE, bell->cycle->log, 0,
                      "mcp zone \"%V\" now serves this worker",
                      &zone->name);
        bell->told = 0;
    }

    /* leases wait; what is posted for now would wait for the first event */

    ngx_post_event(&bell->drain, &ngx_posted_next_events);
}


static ngx_int_t
ngx_mcp_doorbell_open(ngx_mcp_doorbell_t *bell)
{
    ngx_log_t          *log;
    socklen_t           len;
    ngx_socket_t        s;
    struct sockaddr_un  sun;

    log = bell->cycle->log;

    ngx_mcp_random(log, bell->name, NGX_MCP_NAME_LEN);

    s = ngx_socket(AF_UNIX, SOCK_DGRAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_socket_errno,
                      ngx_socket_n " for mcp doorbell failed");
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


/* the abstract name is the random bytes in hex */

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


void
ngx_mcp_worker_leave(ngx_mcp_zone_t *zone)
{
    ngx_mcp_doorbell_t  *bell;

    bell = zone->doorbell;

    if (bell == NULL) {
        return;
    }

    ngx_mcp_worker_release(zone);

    zone->doorbell = NULL;

    if (bell->drain.posted) {
        ngx_delete_posted_event(&bell->drain);
    }

    if (bell->sweep.timer_set) {
        ngx_del_timer(&bell->sweep);
    }

    if (bell->due.timer_set) {
        ngx_del_timer(&bell->due);
    }

    if (bell->connection) {
        ngx_close_connection(bell->connection);
    }
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

    len = ngx_mcp_doorbell_address(&sun, ngx_mcp_place(zone, worker)->name);

    do {
        n = sendto(bell->connection->fd, "", 0, 0, (struct sockaddr *) &sun,
                   len);

        err = (n == -1) ? ngx_socket_errno : 0;

    } while (err == NGX_EINTR);

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, zone->log, err,
                   "mcp doorbell of worker %ui: %z", worker, n);

    if (n == 0 || err == NGX_EAGAIN) {

        /* its queue is full of bells */

        return NGX_OK;
    }

    if (err == NGX_ECONNREFUSED || err == NGX_ENOENT) {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_ERR, zone->log, err, "sendto() to the mcp socket of "
                                               "another worker failed");

    return NGX_ERROR;
}


void
ngx_mcp_doorbell_sweep(ngx_mcp_zone_t *zone)
{
    ngx_mcp_doorbell_t  *bell;

    bell = zone->doorbell;

    if (bell) {
        ngx_add_timer(&bell->sweep, 1);
    }
}


static void
ngx_mcp_doorbell_read_handler(ngx_event_t *rev)
{
    u_char               buf[8];
    ssize_t              n;
    ngx_uint_t           i;
    ngx_connection_t    *c;
    ngx_mcp_doorbell_t  *bell;
    void               (*quit)(ngx_mcp_zone_t *zone);

    c = rev->data;
    bell = c->data;

    if (c->close) {
        c->close = 0;

        quit = bell->quit;
        bell->quit = NULL;

        if (quit) {
            ngx_mcp_worker_quit(bell->zone);
            quit(bell->zone);
        }

        return;
    }

    /* the queue of a datagram socket is short */

    for (i = 0; i < 1024; i++) {
        n = recv(c->fd, buf, sizeof(buf), 0);

        if (n == -1) {
            break;
        }
    }

    ngx_mcp_doorbell_drain_handler(&bell->drain);
}


static void
ngx_mcp_doorbell_drain_handler(ngx_event_t *ev)
{
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    if (ngx_mcp_worker_drain(bell->zone) == NGX_AGAIN) {
        ngx_post_event(&bell->drain, &ngx_posted_next_events);
    }
}


static void
ngx_mcp_doorbell_sweep_handler(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_msec_t           next;
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    if (bell->zone->worker == NGX_MCP_NO_WORKER) {
        ngx_mcp_doorbell_join(bell);
    }

    rc = ngx_mcp_worker_sweep(bell->zone);

    /* what others left */

    if (bell->zone->schema->due(bell->zone, &next) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    /* a bell that was not rung: its ringer died */

    if (ngx_mcp_worker_drain(bell->zone) == NGX_AGAIN) {
        rc = NGX_AGAIN;
    }

    ngx_add_timer(&bell->sweep, rc == NGX_AGAIN ? 10 : 1000);
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


static void
ngx_mcp_doorbell_due_handler(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_msec_t           next;
    ngx_mcp_doorbell_t  *bell;

    bell = ev->data;

    rc = bell->zone->schema->due(bell->zone, &next);

    if (rc == NGX_AGAIN || next) {
        ngx_mcp_doorbell_due(bell->zone, ngx_max(next, 10));
    }
}
