
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"
#include "ngx_http_mcp_background.h"
#include "ngx_http_mcp_stored.h"


/*
 * ms; time to wait for the end of a stream after its answer, so that the
 * connection can be used again.  Most servers send the end at once.
 */
#define NGX_HTTP_MCP_EXCHANGE_REST   20

/*
 * ms; if a response takes longer, TCP keep-alive checks its connection.  This
 * time is less than the default time-outs of upstream modules.
 */
#define NGX_HTTP_MCP_EXCHANGE_LONG   10000


static void ngx_http_mcp_exchange_method(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_alive(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_set_timer(ngx_http_mcp_exchange_t *x,
    ngx_msec_t timeout);
static ngx_http_mcp_exchange_t *ngx_http_mcp_exchange_self(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_exchange_finished(ngx_http_request_t *sr,
    void *data, ngx_int_t rc);
static ngx_uint_t ngx_http_mcp_exchange_error_page(ngx_http_request_t *sr,
    ngx_int_t rc);
static void ngx_http_mcp_exchange_enter(ngx_http_request_t *sr);
static void ngx_http_mcp_exchange_delay_handler(ngx_event_t *ev);
static void ngx_http_mcp_exchange_end_delay(ngx_connection_t *c);
static void ngx_http_mcp_exchange_handler(ngx_event_t *ev);
static void ngx_http_mcp_exchange_run(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_timer(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_timed_out(ngx_http_mcp_exchange_t *x,
    char *fault, ngx_msec_t timeout);
static void ngx_http_mcp_exchange_kill(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_drop(ngx_http_request_t *sr);
static ngx_http_mcp_outcome_e ngx_http_mcp_exchange_outcome(
    ngx_http_mcp_exchange_t *x);
static ngx_http_mcp_outcome_e ngx_http_mcp_exchange_outcome_no_header(
    ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_complete(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_exchange_count(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_exchange_release(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_cleanup(void *data);


/* whether the exchange measures the upstream's silence now */

#define ngx_http_mcp_exchange_counts_silence(x)                               \
    ((x)->silence && !(x)->paused && !(x)->read_timer && !(x)->ended)


static ngx_str_t  ngx_http_mcp_exchange_post = ngx_string("POST");
static ngx_str_t  ngx_http_mcp_exchange_get = ngx_string("GET");
static ngx_str_t  ngx_http_mcp_exchange_delete = ngx_string("DELETE");


static struct {
    ngx_mcp_counter_e    counter;
    ngx_mcp_outcome_e    outcome;
} ngx_http_mcp_exchange_outcomes[] = {
    { NGX_MCP_COUNTER_EXCHANGES_OK, NGX_MCP_OUTCOME_OK },
    { NGX_MCP_COUNTER_EXCHANGES_REFUSED, NGX_MCP_OUTCOME_REFUSED },
    { NGX_MCP_COUNTER_EXCHANGES_UNREACHABLE, NGX_MCP_OUTCOME_UNREACHABLE },
    { NGX_MCP_COUNTER_EXCHANGES_TIMEOUT, NGX_MCP_OUTCOME_TIMEOUT },
    { NGX_MCP_COUNTER_EXCHANGES_BAD, NGX_MCP_OUTCOME_BAD },
    { NGX_MCP_COUNTER_EXCHANGES_BAD, NGX_MCP_OUTCOME_BAD },
    { NGX_MCP_COUNTER_EXCHANGES_BAD, NGX_MCP_OUTCOME_BAD },
    { NGX_MCP_COUNTER_EXCHANGES_ABORTED, NGX_MCP_OUTCOME_ABORTED }
};


/*
 * The URI of an exchange is percent-encoded already.  nginx would encode the
 * URI of an internal request once more, as it expects a decoded one there.  So
 * the "internal" flag of the subrequest is cleared.
 */

ngx_uint_t
ngx_http_mcp_exchange_preaccess(ngx_http_request_t *sr)
{
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(sr);

    if (x) {
        ngx_http_mcp_adapt_request(x, sr);

    } else {
        x = ngx_http_mcp_exchange_of(sr);
    }

    if (x == NULL || !sr->internal) {
        return 0;
    }

    sr->internal = 0;

    return 1;
}


ngx_http_mcp_exchange_t *
ngx_http_mcp_exchange_create(ngx_http_request_t *r)
{
    ngx_pool_t               *pool;
    ngx_http_cleanup_t       *cln;
    ngx_http_mcp_exchange_t  *x;

    pool = ngx_http_mcp_exchange_pool(r);
    if (pool == NULL) {
        return NULL;
    }

    x = ngx_pcalloc(pool, sizeof(ngx_http_mcp_exchange_t));
    if (x == NULL) {
        return NULL;
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_mcp_exchange_cleanup;
    cln->data = x;

    x->r = r;
    x->fd = (ngx_socket_t) -1;
    x->method = NGX_HTTP_POST;
    x->level = NGX_LOG_ERR;
    x->pool = pool;
    x->last_in = &x->in;
    x->length = -1;

    x->event.handler = ngx_http_mcp_exchange_handler;
    x->event.data = x;
    x->event.log = r->connection->log;
    x->event.cancelable = ngx_http_mcp_is_background(r);

    x->post.handler = ngx_http_mcp_exchange_finished;
    x->post.data = x;

    return x;
}


ngx_int_t
ngx_http_mcp_exchange_start(ngx_http_mcp_exchange_t *x)
{
    ngx_int_t                   rc;
    ngx_msec_t                  time, left;
    ngx_pool_t                 *pool;
    ngx_http_request_t         *r, *sr;
    ngx_http_variable_value_t  *variables;

    r = x->r;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "mcp exchange start \"%V\" \"%V\" len:%uz",
                   &x->name, &x->uri, x->request_len);

    x->request_body.bufs = x->request;

    /* most variables of the subrequest are computed anew, not taken from r */

    variables = ngx_http_mcp_subrequest_variables(r);
    if (variables == NULL) {
        return NGX_ERROR;
    }

    /* ngx_http_subrequest() gives the subrequest the pool of its parent */

    pool = r->pool;
    r->pool = x->pool;

    rc = ngx_http_subrequest(r, &x->uri, x->args.len ? &x->args : NULL, &sr,
                             &x->post, NGX_HTTP_SUBREQUEST_BACKGROUND);
    r->pool = pool;

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_headers_build(x, sr) != NGX_OK) {
        x->done = 1;
        sr->write_event_handler = ngx_http_mcp_exchange_drop;
        return NGX_ERROR;
    }

    sr->header_in = r->header_in;
    sr->request_body = &x->request_body;
    sr->variables = variables;
    sr->discard_body = 0;
    sr->filter_need_in_memory = 1;
    sr->write_event_handler = ngx_http_mcp_exchange_enter;

    x->sr = sr;

    ngx_mcp_count(x->zone, NGX_MCP_COUNTER_EXCHANGES_STARTED, 1);

    ngx_http_mcp_exchange_method(x);

    x->silence = x->timeout;
    x->started = ngx_current_msec;
    x->alive = ngx_current_msec;

    time = NGX_HTTP_MCP_EXCHANGE_LONG;

    if (x->timeout) {
        time = ngx_min(time, x->timeout);
    }

    if (x->total) {
        left = x->total > x->spent ? x->total - x->spent : 1;
        time = ngx_min(time, left);
    }

    ngx_add_timer(&x->event, time);

    /* the event runs posted requests, if the caller does not */

    ngx_post_event(&x->event, &ngx_posted_events);

    return NGX_OK;
}


static void
ngx_http_mcp_exchange_method(ngx_http_mcp_exchange_t *x)
{
    x->sr->method = x->method;

    switch (x->method) {

    case NGX_HTTP_GET:
        x->sr->method_name = ngx_http_mcp_exchange_get;
        break;

    case NGX_HTTP_DELETE:
        x->sr->method_name = ngx_http_mcp_exchange_delete;
        break;

    default:
        x->sr->method = NGX_HTTP_POST;
        x->sr->method_name = ngx_http_mcp_exchange_post;
        break;
    }

    if (ngx_http_mcp_is_background(x->r)) {

        /* nginx reads $request_method from the main request */

        x->r->method = x->sr->method;
        x->r->method_name = x->sr->method_name;
    }
}


void
ngx_http_mcp_exchange_limit_time(ngx_http_mcp_exchange_t *x, ngx_msec_t time)
{
    if (x->timeout == 0 || x->timeout > time) {
        x->timeout = time;
    }

    if (x->total == 0 || x->total > time) {
        x->total = time;
    }
}


void
ngx_http_mcp_exchange_abort(ngx_http_mcp_exchange_t *x)
{
    ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_ABORTED);
}


void
ngx_http_mcp_exchange_answered(ngx_http_mcp_exchange_t *x)
{
    if (x->sse == NULL || x->answered || x->stop || x->done) {
        return;
    }

    x->answered = 1;

    if (x->ended) {
        return;
    }

    x->silence = 0;

    x->total = ngx_current_msec - x->started + x->spent
               + NGX_HTTP_MCP_EXCHANGE_REST;

    /*
     * The response may have ended with the answer; exchange_run() checks this
     * and sets the timer for the rest.
     */

    ngx_post_event(&x->event, &ngx_posted_events);
}


void
ngx_http_mcp_exchange_pause(ngx_http_mcp_exchange_t *x)
{
    x->paused = 1;
}


void
ngx_http_mcp_exchange_resume(ngx_http_mcp_exchange_t *x)
{
    if (!x->paused) {
        return;
    }

    x->paused = 0;

    if (x->done) {
        return;
    }

    x->resumed = 1;

    ngx_http_mcp_exchange_alive(x);

    /* continues in the next turn of the event loop, after the other events */

    ngx_post_event(&x->event, &ngx_posted_next_events);
}


/*
 * Notes that the upstream is alive now, and sets the timer if the upstream's
 * silence counts.  If the timer is set already, its handler looks at x->alive.
 */

static void
ngx_http_mcp_exchange_alive(ngx_http_mcp_exchange_t *x)
{
    x->alive = ngx_current_msec;

    if (!x->stop && ngx_http_mcp_exchange_counts_silence(x)) {
        ngx_http_mcp_exchange_set_timer(x, x->silence);
    }
}


/* sets the timer to this time, ms, unless it would fire earlier */

static void
ngx_http_mcp_exchange_set_timer(ngx_http_mcp_exchange_t *x, ngx_msec_t timeout)
{
    if (!x->event.timer_set
        || (ngx_msec_int_t) (x->event.timer.key - ngx_current_msec - timeout)
           > 0)
    {
        ngx_add_timer(&x->event, timeout);
    }
}


/* returns the exchange of which r itself is the subrequest, or NULL */

static ngx_http_mcp_exchange_t *
ngx_http_mcp_exchange_self(ngx_http_request_t *r)
{
    ngx_http_post_subrequest_t  *ps;

    if (r == r->main) {
        return NULL;
    }

    ps = r->post_subrequest;

    if (ps == NULL || ps->handler != ngx_http_mcp_exchange_finished) {
        return NULL;
    }

    return ps->data;
}


ngx_http_mcp_exchange_t *
ngx_http_mcp_exchange_of(ngx_http_request_t *r)
{
    ngx_http_mcp_exchange_t  *x;

    for ( /* void */ ; r && r != r->main; r = r->parent) {

        x = ngx_http_mcp_exchange_self(r);

        if (x) {
            return x;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_exchange_header_filter(ngx_http_request_t *r)
{
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(r);

    if (x == NULL) {
        return NGX_DECLINED;
    }

    /* else the module's log lines would end with nginx's last action */

    r->connection->log->action = NULL;

    r->header_sent = 1;
    r->filter_need_in_memory = 1;

    if (!x->header && !x->stop && !x->done) {
        ngx_http_mcp_capture_header(x, r);
        ngx_http_mcp_exchange_alive(x);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_exchange_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(r);

    if (x == NULL) {
        return NGX_DECLINED;
    }

    r->connection->log->action = NULL;

    if (in) {
        x->alive = ngx_current_msec;
    }

    ngx_http_mcp_capture_body(x, r, in);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_exchange_finished(ngx_http_request_t *sr, void *data,
    ngx_int_t rc)
{
    ngx_http_mcp_exchange_t *x = data;

    sr->connection->log->action = NULL;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, sr->connection->log, 0,
                   "mcp exchange finished \"%V\" rc:%i status:%ui last:%d",
                   &x->name, rc, x->status, x->last);

    if (x->ended || x->done) {
        return NGX_OK;
    }

    if (!x->header && ngx_http_mcp_exchange_error_page(sr, rc)) {
        ngx_post_event(&x->event, &ngx_posted_events);
        return rc;
    }

    x->ended = 1;
    x->rc = rc;

    if (x->header && !x->last) {

        /* the body is complete, or its handler does not mark the last buffer */

        if ((x->length >= 0 && x->received >= (size_t) x->length)
            || sr->header_only
            || (sr->upstream == NULL && (rc == NGX_OK || rc == NGX_AGAIN)))
        {
            x->last = 1;
        }
    }

    if (sr->upstream_states) {
        sr->main->upstream_states = sr->upstream_states;
    }

    if (sr->connection->error) {

        /* nginx is about to terminate r */

        ngx_http_mcp_exchange_run(x);
        return NGX_OK;
    }

    ngx_post_event(&x->event, &ngx_posted_events);

    /* any other code would make nginx send an error page or end r */

    return NGX_OK;
}


/* returns whether nginx is going to use an error_page of the location */

static ngx_uint_t
ngx_http_mcp_exchange_error_page(ngx_http_request_t *sr, ngx_int_t rc)
{
    ngx_uint_t                 i;
    ngx_http_err_page_t       *err_page;
    ngx_http_core_loc_conf_t  *clcf;

    if (rc < NGX_HTTP_SPECIAL_RESPONSE
        || rc == NGX_HTTP_REQUEST_TIME_OUT
        || rc == NGX_HTTP_CLIENT_CLOSED_REQUEST
        || rc == NGX_HTTP_CLOSE
        || sr->error_page
        || sr->uri_changes == 0
        || sr->connection->error)
    {
        return 0;
    }

    clcf = ngx_http_get_module_loc_conf(sr, ngx_http_core_module);

    if (clcf->error_pages == NULL) {
        return 0;
    }

    err_page = clcf->error_pages->elts;

    for (i = 0; i < clcf->error_pages->nelts; i++) {
        if (err_page[i].status == rc) {
            return 1;
        }
    }

    return 0;
}


/*
 * The first write event handler of the subrequest; runs its phases.
 *
 * limit_req delays a request by the timer of its connection's write event,
 * which then wakes the main request, but not a background subrequest.  So a
 * delayed subrequest gets a timer of its own.  Others of the same connection
 * may be delayed at the same time, so each saves limit_req_status and
 * limit_conn_status of the main request, and restores them when it continues.
 */

static void
ngx_http_mcp_exchange_enter(ngx_http_request_t *sr)
{
    ngx_uint_t                delayed;
    ngx_event_t              *ev, *wev;
    ngx_msec_int_t            timer;
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(sr);
    wev = sr->connection->write;

    if (x->event.posted && !x->stop && !x->resumed) {
        ngx_delete_posted_event(&x->event);
    }

    delayed = wev->delayed;

    ngx_http_handler(sr);

    if (delayed || !wev->delayed || !wev->timer_set
        || x->ended || x->done || sr->upstream)
    {
        return;
    }

    ev = ngx_pcalloc(sr->pool, sizeof(ngx_event_t));
    if (ev == NULL) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
        return;
    }

    ev->handler = ngx_http_mcp_exchange_delay_handler;
    ev->data = x;
    ev->log = sr->connection->log;
    ev->cancelable = x->event.cancelable;

    x->delay = ev;

    x->limit_req = sr->main->limit_req_status;
    x->limit_conn = sr->main->limit_conn_status;

    timer = (ngx_msec_int_t) (wev->timer.key - ngx_current_msec);

    ngx_http_mcp_exchange_end_delay(sr->connection);

    ngx_add_timer(ev, (ngx_msec_t) ngx_max(timer, 1));
}


static void
ngx_http_mcp_exchange_delay_handler(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *sr;
    ngx_http_mcp_exchange_t  *x;

    x = ev->data;
    sr = x->sr;
    c = sr->connection;

    ngx_http_mcp_exchange_end_delay(c);

    sr->main->limit_req_status = x->limit_req;
    sr->main->limit_conn_status = x->limit_conn;

    ngx_http_set_log_request(c->log, sr);

    sr->write_event_handler(sr);

    ngx_http_run_posted_requests(c);
}


/* ends the delay of the connection, so that the client's response continues */

static void
ngx_http_mcp_exchange_end_delay(ngx_connection_t *c)
{
    c->write->delayed = 0;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    if (c->buffered) {
        ngx_post_event(c->write, &ngx_posted_events);
    }
}


static void
ngx_http_mcp_exchange_handler(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_mcp_exchange_t  *x;

    x = ev->data;
    c = x->r->connection;

    if (ev->timedout) {
        ev->timedout = 0;
        ngx_http_mcp_exchange_timer(x);
        return;
    }

    ngx_http_mcp_exchange_run(x);

    ngx_http_run_posted_requests(c);
}


/*
 * Continues the exchange after a pause, and completes it when the subrequest
 * has ended or x->stop is set.  May free r.
 */

static void
ngx_http_mcp_exchange_run(ngx_http_mcp_exchange_t *x)
{
    ngx_http_request_t  *r, *sr;

    r = x->r;
    sr = x->sr;

    if (x->done) {
        return;
    }

    ngx_http_mcp_background_handlers(r);

    if (x->header || x->ended) {
        r->connection->log->action = NULL;
    }

    if (!x->stop && (x->resumed || x->ended)) {

        x->resumed = 0;

        ngx_http_mcp_capture_process(x);

        if (!x->stop && !x->paused && !x->ended && x->header
            && ngx_http_mcp_capture_unbuffered(sr))
        {
            /* in this handler nginx continues reading; it may free r */

            ngx_http_set_log_request(sr->connection->log, sr);
            sr->write_event_handler(sr);
            return;
        }

        if (x->done) {
            return;
        }
    }

    if (x->stop) {

        /* else the end of the subrequest could free r */

        r->main->count++;

        ngx_http_mcp_exchange_kill(x);
        ngx_http_mcp_exchange_complete(x, x->outcome);

        ngx_http_finalize_request(r, NGX_DONE);
        return;
    }

    if (x->ended && !x->paused && x->in == NULL) {

        /* log lines may name another subrequest by now */

        ngx_http_set_log_request(r->connection->log, x->sr);
        r->connection->log->action = NULL;

        ngx_http_mcp_exchange_complete(x, ngx_http_mcp_exchange_outcome(x));

    } else if (x->answered && !x->ended) {
        ngx_http_mcp_exchange_set_timer(x, NGX_HTTP_MCP_EXCHANGE_REST);
    }
}


/* one timer serves both time-outs: this checks which one has expired */

static void
ngx_http_mcp_exchange_timer(ngx_http_mcp_exchange_t *x)
{
    ngx_msec_t  elapsed;

    if (!x->keepalive && !x->ended && !x->answered) {

        x->keepalive = ngx_http_mcp_adapt_keepalive(x);

        if (!x->keepalive) {
            ngx_http_mcp_exchange_set_timer(x, NGX_HTTP_MCP_EXCHANGE_LONG);
        }
    }

    if (x->total) {
        elapsed = ngx_current_msec - x->started + x->spent;

        if (elapsed >= x->total) {
            ngx_http_mcp_exchange_timed_out(x, "did not finish within",
                                            x->total);
            return;
        }

        ngx_http_mcp_exchange_set_timer(x, x->total - elapsed);
    }

    if (ngx_http_mcp_exchange_counts_silence(x)) {
        elapsed = ngx_current_msec - x->alive;

        if (elapsed >= x->silence) {
            ngx_http_mcp_exchange_timed_out(x, "was silent for", x->silence);
            return;
        }

        ngx_http_mcp_exchange_set_timer(x, x->silence - elapsed);
    }
}


static void
ngx_http_mcp_exchange_timed_out(ngx_http_mcp_exchange_t *x, char *fault,
    ngx_msec_t timeout)
{
    char       *action;
    ngx_log_t  *log;

    if (x->answered) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_OK);
        return;
    }

    log = x->r->connection->log;

    ngx_http_set_log_request(log, x->sr);

    action = log->action;
    log->action = NULL;

    ngx_log_error(x->level, log, 0, "mcp upstream \"%V\" %s %Mms",
                  &x->name, fault, timeout);

    log->action = action;

    ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_TIMEOUT);
}


/* ends the subrequest, if it has not ended */

static void
ngx_http_mcp_exchange_kill(ngx_http_mcp_exchange_t *x)
{
    ngx_http_request_t  *sr;

    sr = x->sr;

    if (sr == NULL || x->ended) {
        return;
    }

    x->ended = 1;

    if (sr->upstream_states) {
        sr->main->upstream_states = sr->upstream_states;
    }

    if (sr->write_event_handler == ngx_http_mcp_exchange_enter) {

        /* the subrequest was posted but has not run yet */

        sr->write_event_handler = ngx_http_mcp_exchange_drop;
        return;
    }

    if (x->delay && x->delay->timer_set) {
        ngx_del_timer(x->delay);

        ngx_http_mcp_exchange_drop(sr);
        return;
    }

    /*
     * A subrequest without an upstream module cannot be stopped: its response
     * is ignored.
     */

    if (ngx_http_mcp_capture_live(sr)) {
        ngx_http_set_log_request(sr->connection->log, sr);

        (*sr->upstream->cleanup)(sr);

        sr->read_event_handler = ngx_http_request_empty_handler;
        sr->write_event_handler = ngx_http_request_empty_handler;
    }
}


static void
ngx_http_mcp_exchange_drop(ngx_http_request_t *sr)
{
    ngx_http_finalize_request(sr, NGX_OK);
}


/* returns and logs the outcome of an exchange whose subrequest has ended */

static ngx_http_mcp_outcome_e
ngx_http_mcp_exchange_outcome(ngx_http_mcp_exchange_t *x)
{
    ngx_uint_t  level;

    if (!x->header) {
        return ngx_http_mcp_exchange_outcome_no_header(x);
    }

    if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {

        if (x->status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
            ngx_log_error(x->level, x->r->connection->log, 0,
                          "mcp upstream \"%V\" answered with status "
                          "%ui%s%V", &x->name, x->status,
                          x->quote.len ? ": " : "", &x->quote);
        }

        return NGX_HTTP_MCP_STATUS;
    }

    if (!x->last) {

        /* a stream without any bytes lost nothing, and is opened again */

        level = (x->method == NGX_HTTP_GET && !x->feed && x->received == 0)
                ? NGX_LOG_INFO : x->level;

        ngx_log_error(level, x->r->connection->log, 0,
                      "mcp upstream \"%V\" cut its response after %uz bytes",
                      &x->name, x->received);

        return NGX_HTTP_MCP_CUT;
    }

    return x->wrong_type ? NGX_HTTP_MCP_BAD : NGX_HTTP_MCP_OK;
}


static ngx_http_mcp_outcome_e
ngx_http_mcp_exchange_outcome_no_header(ngx_http_mcp_exchange_t *x)
{
    ngx_log_t            *log;
    ngx_http_upstream_t  *u;

    log = x->r->connection->log;
    u = x->sr->upstream;

    switch (x->rc) {

    case NGX_HTTP_GATEWAY_TIME_OUT:
        ngx_log_error(x->level, log, 0,
                      "mcp upstream \"%V\" timed out", &x->name);
        return NGX_HTTP_MCP_TIMEOUT;

    case NGX_HTTP_BAD_GATEWAY:

        if (u && u->state && u->state->bytes_received) {
            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\" sent no valid response",
                          &x->name);
            return NGX_HTTP_MCP_BAD;
        }

        if (u && u->state && u->state->connect_time != (ngx_msec_t) -1) {
            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\" closed without a response",
                          &x->name);
            return NGX_HTTP_MCP_CUT;
        }

        break;

    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_CLIENT_CLOSED_REQUEST:
        return NGX_HTTP_MCP_ABORTED;

    case NGX_HTTP_CLOSE:
        break;

    default:

        if (x->rc == NGX_HTTP_CREATED || x->rc == NGX_HTTP_NO_CONTENT) {
            x->status = x->rc;
            x->body = NGX_HTTP_MCP_BODY_NONE;
            return NGX_HTTP_MCP_OK;
        }

        if (x->rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            x->status = x->rc;
            x->body = NGX_HTTP_MCP_BODY_NONE;

            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\": location \"%V\" answered "
                          "with status %i%s", &x->name, &x->uri, x->rc,
                          x->rc == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE
                          ? "; raise \"client_max_body_size\" there" : "");

            return NGX_HTTP_MCP_STATUS;
        }

        ngx_log_error(x->level, log, 0,
                      "mcp upstream \"%V\": location \"%V\" sent no response",
                      &x->name, &x->uri);

        return NGX_HTTP_MCP_CUT;
    }

    ngx_log_error(x->level, log, 0,
                  "mcp upstream \"%V\" could not be reached", &x->name);

    return NGX_HTTP_MCP_UNREACHABLE;
}


static void
ngx_http_mcp_exchange_complete(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_set_log_request(x->r->connection->log, x->r);
    x->r->connection->log->action = NULL;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, x->r->connection->log, 0,
                   "mcp exchange done \"%V\" outcome:%d status:%ui",
                   &x->name, outcome, x->status);

    if (outcome == NGX_HTTP_MCP_OK || outcome == NGX_HTTP_MCP_STATUS) {
        ngx_http_mcp_capture_open(x);
    }

    ngx_http_mcp_exchange_release(x);

    ngx_http_mcp_exchange_count(x, outcome);

    x->handlers->done(x, outcome);
}


static void
ngx_http_mcp_exchange_count(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_uint_t  method;

    ngx_mcp_count(x->zone, ngx_http_mcp_exchange_outcomes[outcome].counter, 1);

    if (x->metric == NULL) {
        return;
    }

    switch (x->method) {

    case NGX_HTTP_GET:
        method = NGX_MCP_METRIC_GET;
        break;

    case NGX_HTTP_DELETE:
        method = NGX_MCP_METRIC_DELETE;
        break;

    default:
        method = x->scope ? ngx_mcp_method_parse(&x->scope->method)
                          : NGX_MCP_METHOD_OTHER;
        break;
    }

    ngx_mcp_metric_add(x->zone, x->metric, method,
                       ngx_http_mcp_exchange_outcomes[outcome].outcome,
                       ngx_current_msec - x->started);
}


static void
ngx_http_mcp_exchange_release(ngx_http_mcp_exchange_t *x)
{
    x->done = 1;

    if (x->event.timer_set) {
        ngx_del_timer(&x->event);
    }

    if (x->delay && x->delay->timer_set) {
        ngx_del_timer(x->delay);
    }

    if (x->event.posted) {
        ngx_delete_posted_event(&x->event);
    }

    if (x->mode == NGX_HTTP_MCP_PARSE) {
        x->mode = NGX_HTTP_MCP_DROP;
        ngx_mcp_sse_free(x->sse);

    } else if (x->mode == NGX_HTTP_MCP_SPLIT) {
        x->mode = NGX_HTTP_MCP_DROP;
        ngx_mcp_lines_free(x->lines);
    }
}


static void
ngx_http_mcp_exchange_cleanup(void *data)
{
    ngx_http_mcp_exchange_t *x = data;

    if (!x->done && x->sr) {
        ngx_http_mcp_exchange_count(x, x->answered ? NGX_HTTP_MCP_OK
                                                   : NGX_HTTP_MCP_ABORTED);
    }

    ngx_http_mcp_exchange_release(x);
}
