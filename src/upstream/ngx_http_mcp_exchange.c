
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"
#include "ngx_http_mcp_background.h"
#include "ngx_http_mcp_stored.h"


#define NGX_HTTP_MCP_EXCHANGE_LIMIT  (4 * 1024 * 1024)

/*
 * ms; time to wait for the end of a stream after its answer, so that the
 * connection can be used again.  Most servers send the end at once.
 */
#define NGX_HTTP_MCP_EXCHANGE_REST   20

/*
 * ms; a response that takes longer has its connection probed; less than the
 * time-outs of upstream modules
 */
#define NGX_HTTP_MCP_EXCHANGE_LONG   10000


typedef struct {
    ngx_http_mcp_exchange_t    exchange;
    ngx_http_mcp_capture_t     capture;
} ngx_http_mcp_exchange_block_t;


static void ngx_http_mcp_exchange_method(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_alive(ngx_http_mcp_capture_t *cap);
static void ngx_http_mcp_exchange_set_timer(ngx_http_mcp_capture_t *cap,
    ngx_msec_t timeout);
static ngx_http_mcp_exchange_t *ngx_http_mcp_exchange_self(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_exchange_finished(ngx_http_request_t *sr,
    void *data, ngx_int_t rc);
static ngx_uint_t ngx_http_mcp_exchange_error_page(ngx_http_request_t *sr,
    ngx_int_t rc);
static void ngx_http_mcp_exchange_enter(ngx_http_request_t *sr);
static void ngx_http_mcp_exchange_delay(ngx_event_t *ev);
static void ngx_http_mcp_exchange_delayed(ngx_connection_t *c);
static void ngx_http_mcp_exchange_handler(ngx_event_t *ev);
static void ngx_http_mcp_exchange_run(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_timer(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_exchange_timed_out(ngx_http_mcp_exchange_t *x,
    char *what, ngx_msec_t timeout);
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
static void ngx_http_mcp_exchange_release(ngx_http_mcp_capture_t *cap);
static void ngx_http_mcp_exchange_cleanup(void *data);


/* whether the time-out of silence applies */

#define ngx_http_mcp_exchange_counts_silence(cap)                             \
    ((cap)->timeout && !(cap)->held && !(cap)->theirs && !(cap)->ended)


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
 * The URI of an exchange is percent-encoded as it has to go out: an internal
 * one would be taken for decoded and encoded once more.
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
    ngx_pool_t                     *pool;
    ngx_http_cleanup_t             *cln;
    ngx_http_mcp_capture_t         *cap;
    ngx_http_mcp_exchange_t        *x;
    ngx_http_mcp_exchange_block_t  *room;

    pool = ngx_http_mcp_exchange_pool(r);
    if (pool == NULL) {
        return NULL;
    }

    room = ngx_pcalloc(pool, sizeof(ngx_http_mcp_exchange_block_t));
    if (room == NULL) {
        return NULL;
    }

    x = &room->exchange;
    cap = &room->capture;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_mcp_exchange_cleanup;
    cln->data = cap;

    x->r = r;
    x->method = NGX_HTTP_POST;
    x->limit = NGX_HTTP_MCP_EXCHANGE_LIMIT;
    x->level = NGX_LOG_ERR;
    x->capture = cap;

    cap->exchange = x;
    cap->pool = pool;
    cap->last_in = &cap->in;
    cap->fd = (ngx_socket_t) -1;
    cap->length = -1;

    cap->event.handler = ngx_http_mcp_exchange_handler;
    cap->event.data = cap;
    cap->event.log = r->connection->log;
    cap->event.cancelable = ngx_http_mcp_is_background(r);

    cap->post.handler = ngx_http_mcp_exchange_finished;
    cap->post.data = x;

    return x;
}


ngx_int_t
ngx_http_mcp_exchange_start(ngx_http_mcp_exchange_t *x)
{
    ngx_int_t                   rc;
    ngx_msec_t                  time;
    ngx_pool_t                 *pool;
    ngx_http_request_t         *r, *sr;
    ngx_http_mcp_capture_t     *cap;
    ngx_http_variable_value_t  *variables;

    r = x->r;
    cap = x->capture;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "mcp exchange start \"%V\" \"%V\" len:%uz",
                   &x->name, &x->uri, x->request_len);

    cap->body.bufs = x->request;

    /* other values cached for r may differ from what the subrequest sees */

    variables = ngx_http_mcp_handed_variables(r);
    if (variables == NULL) {
        return NGX_ERROR;
    }

    /* the subrequest takes the pool of its parent */

    pool = r->pool;
    r->pool = cap->pool;

    rc = ngx_http_subrequest(r, &x->uri, x->args.len ? &x->args : NULL, &sr,
                             &cap->post, NGX_HTTP_SUBREQUEST_BACKGROUND);
    r->pool = pool;

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_headers_build(x, sr) != NGX_OK) {
        cap->done = 1;
        sr->write_event_handler = ngx_http_mcp_exchange_drop;
        return NGX_ERROR;
    }

    sr->header_in = r->header_in;
    sr->request_body = &cap->body;
    sr->variables = variables;
    sr->discard_body = 0;
    sr->filter_need_in_memory = 1;
    sr->write_event_handler = ngx_http_mcp_exchange_enter;

    x->sr = sr;

    if (x->zone) {
        ngx_mcp_count(x->zone, NGX_MCP_COUNTER_EXCHANGES_STARTED, 1);
    }

    ngx_http_mcp_exchange_method(x);

    cap->timeout = x->timeout;
    cap->started = ngx_current_msec;
    cap->alive = ngx_current_msec;

    time = NGX_HTTP_MCP_EXCHANGE_LONG;

    if (x->timeout) {
        time = ngx_min(time, x->timeout);
    }

    if (x->total) {
        time = ngx_min(time, x->total);
    }

    ngx_add_timer(&cap->event, time);

    /* runs posted requests in a later event, if no caller does */

    ngx_post_event(&cap->event, &ngx_posted_events);

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

        /* $request_method is that of the main request */

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
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    if (x->sse == NULL || cap->answered || cap->stop || cap->done) {
        return;
    }

    cap->answered = 1;

    if (cap->ended) {
        return;
    }

    cap->timeout = 0;

    x->total = ngx_current_msec - cap->started + NGX_HTTP_MCP_EXCHANGE_REST;

    /* the end may have come with the answer: a later event looks */

    ngx_post_event(&cap->event, &ngx_posted_events);
}


void
ngx_http_mcp_exchange_pause(ngx_http_mcp_exchange_t *x)
{
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;
    cap->held = 1;
}


void
ngx_http_mcp_exchange_resume(ngx_http_mcp_exchange_t *x)
{
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    if (!cap->held) {
        return;
    }

    cap->held = 0;

    if (cap->done) {
        return;
    }

    cap->resumed = 1;

    ngx_http_mcp_exchange_alive(cap);

    /* goes on in the next turn of the event loop, so that others have theirs
       */

    ngx_post_event(&cap->event, &ngx_posted_next_events);
}


/*
 * The upstream is alive, and its silence may count from now on.  While silence
 * counts, the timer is set already, and looks at the time of the last bytes.
 */

static void
ngx_http_mcp_exchange_alive(ngx_http_mcp_capture_t *cap)
{
    cap->alive = ngx_current_msec;

    if (!cap->stop && ngx_http_mcp_exchange_counts_silence(cap)) {
        ngx_http_mcp_exchange_set_timer(cap, cap->timeout);
    }
}


/* makes the timer fire after this time, ms, or leaves it if it fires before */

static void
ngx_http_mcp_exchange_set_timer(ngx_http_mcp_capture_t *cap, ngx_msec_t timeout)
{
    if (!cap->event.timer_set
        || (ngx_msec_int_t) (cap->event.timer.key - ngx_current_msec - timeout)
           > 0)
    {
        ngx_add_timer(&cap->event, timeout);
    }
}


/* the exchange whose subrequest r itself is, or NULL */

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
    ngx_http_mcp_capture_t   *cap;
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(r);

    if (x == NULL) {
        return NGX_DECLINED;
    }

    cap = x->capture;

    /* or lines of the module would say what nginx did before */

    r->connection->log->action = NULL;

    r->header_sent = 1;
    r->filter_need_in_memory = 1;

    if (!cap->header && !cap->stop && !cap->done) {
        ngx_http_mcp_capture_header(x, r);
        ngx_http_mcp_exchange_alive(cap);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_exchange_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_mcp_capture_t   *cap;
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(r);

    if (x == NULL) {
        return NGX_DECLINED;
    }

    r->connection->log->action = NULL;

    if (in) {
        cap = x->capture;
        cap->alive = ngx_current_msec;
    }

    ngx_http_mcp_capture_body(x, r, in);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_exchange_finished(ngx_http_request_t *sr, void *data,
    ngx_int_t rc)
{
    ngx_http_mcp_exchange_t *x = data;

    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    sr->connection->log->action = NULL;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, sr->connection->log, 0,
                   "mcp exchange finished \"%V\" rc:%i status:%ui last:%d",
                   &x->name, rc, x->status, cap->last);

    if (cap->ended || cap->done) {
        return NGX_OK;
    }

    if (!cap->header && ngx_http_mcp_exchange_error_page(sr, rc)) {
        ngx_post_event(&cap->event, &ngx_posted_events);
        return rc;
    }

    cap->ended = 1;
    cap->rc = rc;

    if (cap->header && !cap->last) {

        /* complete by its length, or made by a handler that says no end */

        if ((cap->length >= 0 && cap->received >= (size_t) cap->length)
            || sr->header_only
            || (sr->upstream == NULL && (rc == NGX_OK || rc == NGX_AGAIN)))
        {
            cap->last = 1;
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

    ngx_post_event(&cap->event, &ngx_posted_events);

    /* NGX_OK in any case: no error page is sent, and r does not end */

    return NGX_OK;
}


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
 * limit_req delays a request by the timer of its connection's write event,
 * which then wakes the main request, but not a background subrequest.  So each
 * subrequest has a timer of its own; others of the connection may be delayed
 * at the same time.  The marks of limits in the main request are set as they
 * were before the subrequest goes on.
 */

static void
ngx_http_mcp_exchange_enter(ngx_http_request_t *sr)
{
    ngx_uint_t                delayed;
    ngx_event_t              *ev, *wev;
    ngx_msec_int_t            timer;
    ngx_http_mcp_capture_t   *cap;
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_exchange_self(sr);
    cap = x->capture;
    wev = sr->connection->write;

    if (cap->event.posted && !cap->stop && !cap->resumed) {
        ngx_delete_posted_event(&cap->event);
    }

    delayed = wev->delayed;

    ngx_http_handler(sr);

    if (delayed || !wev->delayed || !wev->timer_set
        || cap->ended || cap->done || sr->upstream)
    {
        return;
    }

    ev = ngx_pcalloc(sr->pool, sizeof(ngx_event_t));
    if (ev == NULL) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_CUT);
        return;
    }

    ev->handler = ngx_http_mcp_exchange_delay;
    ev->data = cap;
    ev->log = sr->connection->log;
    ev->cancelable = cap->event.cancelable;

    cap->delay = ev;

    cap->limit_req = sr->main->limit_req_status;
    cap->limit_conn = sr->main->limit_conn_status;

    timer = (ngx_msec_int_t) (wev->timer.key - ngx_current_msec);

    ngx_http_mcp_exchange_delayed(sr->connection);

    ngx_add_timer(ev, (ngx_msec_t) ngx_max(timer, 1));
}


static void
ngx_http_mcp_exchange_delay(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_http_request_t      *sr;
    ngx_http_mcp_capture_t  *cap;

    cap = ev->data;
    sr = cap->exchange->sr;
    c = sr->connection;

    ngx_http_mcp_exchange_delayed(c);

    sr->main->limit_req_status = cap->limit_req;
    sr->main->limit_conn_status = cap->limit_conn;

    ngx_http_set_log_request(c->log, sr);

    sr->write_event_handler(sr);

    ngx_http_run_posted_requests(c);
}


/* the delay is over, for the exchange and for the client's response */

static void
ngx_http_mcp_exchange_delayed(ngx_connection_t *c)
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
    ngx_connection_t        *c;
    ngx_http_mcp_capture_t  *cap;

    cap = ev->data;
    c = cap->exchange->r->connection;

    if (ev->timedout) {
        ev->timedout = 0;
        ngx_http_mcp_exchange_timer(cap->exchange);
        return;
    }

    ngx_http_mcp_exchange_run(cap->exchange);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_exchange_run(ngx_http_mcp_exchange_t *x)
{
    ngx_http_request_t      *r, *sr;
    ngx_http_mcp_capture_t  *cap;

    r = x->r;
    sr = x->sr;
    cap = x->capture;

    if (cap->done) {
        return;
    }

    ngx_http_mcp_background_handlers(r);

    if (cap->header || cap->ended) {
        r->connection->log->action = NULL;
    }

    if (!cap->stop && (cap->resumed || cap->ended)) {

        cap->resumed = 0;

        ngx_http_mcp_capture_process(x);

        if (!cap->stop && !cap->held && !cap->ended && cap->header
            && ngx_http_mcp_capture_unbuffered(sr))
        {
            /* reads on; r may have been freed after this */

            ngx_http_set_log_request(sr->connection->log, sr);
            sr->write_event_handler(sr);
            return;
        }

        if (cap->done) {
            return;
        }
    }

    if (cap->stop) {

        /* the subrequest may be the last that keeps r */

        r->main->count++;

        ngx_http_mcp_exchange_kill(x);
        ngx_http_mcp_exchange_complete(x, cap->outcome);

        ngx_http_finalize_request(r, NGX_DONE);
        return;
    }

    if (cap->ended && !cap->held && cap->in == NULL) {

        /* another subrequest may have used the log since */

        ngx_http_set_log_request(r->connection->log, x->sr);
        r->connection->log->action = NULL;

        ngx_http_mcp_exchange_complete(x, ngx_http_mcp_exchange_outcome(x));

    } else if (cap->answered && !cap->ended) {
        ngx_http_mcp_exchange_set_timer(cap, NGX_HTTP_MCP_EXCHANGE_REST);
    }
}


/* one timer serves both time-outs: this checks which of them has passed */

static void
ngx_http_mcp_exchange_timer(ngx_http_mcp_exchange_t *x)
{
    ngx_msec_t               gone;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    if (!cap->probed && !cap->ended && !cap->answered) {

        cap->probed = ngx_http_mcp_adapt_probe(x);

        if (!cap->probed) {
            ngx_http_mcp_exchange_set_timer(cap, NGX_HTTP_MCP_EXCHANGE_LONG);
        }
    }

    if (x->total) {
        gone = ngx_current_msec - cap->started;

        if (gone >= x->total) {
            ngx_http_mcp_exchange_timed_out(x, "did not finish within",
                                            x->total);
            return;
        }

        ngx_http_mcp_exchange_set_timer(cap, x->total - gone);
    }

    if (ngx_http_mcp_exchange_counts_silence(cap)) {
        gone = ngx_current_msec - cap->alive;

        if (gone >= cap->timeout) {
            ngx_http_mcp_exchange_timed_out(x, "was silent for", cap->timeout);
            return;
        }

        ngx_http_mcp_exchange_set_timer(cap, cap->timeout - gone);
    }
}


static void
ngx_http_mcp_exchange_timed_out(ngx_http_mcp_exchange_t *x, char *what,
    ngx_msec_t timeout)
{
    char                    *action;
    ngx_log_t               *log;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    if (cap->answered) {
        ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_OK);
        return;
    }

    log = x->r->connection->log;

    ngx_http_set_log_request(log, x->sr);

    action = log->action;
    log->action = NULL;

    ngx_log_error(x->level, log, 0, "mcp upstream \"%V\" %s %Mms",
                  &x->name, what, timeout);

    log->action = action;

    ngx_http_mcp_capture_stop(x, NGX_HTTP_MCP_TIMEOUT);
}


static void
ngx_http_mcp_exchange_kill(ngx_http_mcp_exchange_t *x)
{
    ngx_http_request_t      *sr;
    ngx_http_mcp_capture_t  *cap;

    sr = x->sr;
    cap = x->capture;

    if (sr == NULL || cap->ended) {
        return;
    }

    cap->ended = 1;

    if (sr->upstream_states) {
        sr->main->upstream_states = sr->upstream_states;
    }

    if (sr->write_event_handler == ngx_http_mcp_exchange_enter) {

        /* posted, but it has not run yet */

        sr->write_event_handler = ngx_http_mcp_exchange_drop;
        return;
    }

    if (cap->delay && cap->delay->timer_set) {
        ngx_del_timer(cap->delay);

        ngx_http_mcp_exchange_drop(sr);
        return;
    }

    /* without an upstream module the subrequest runs to its end, ignored */

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


/* the outcome of an exchange whose subrequest has ended, which is logged */

static ngx_http_mcp_outcome_e
ngx_http_mcp_exchange_outcome(ngx_http_mcp_exchange_t *x)
{
    ngx_uint_t               level;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    if (!cap->header) {
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

    if (!cap->last) {

        /* a stream that carried nothing is opened again and loses nothing */

        level = (x->method == NGX_HTTP_GET && !x->feed && cap->received == 0)
                ? NGX_LOG_INFO : x->level;

        ngx_log_error(level, x->r->connection->log, 0,
                      "mcp upstream \"%V\" cut its response after %uz bytes",
                      &x->name, cap->received);

        return NGX_HTTP_MCP_CUT;
    }

    return cap->refused ? NGX_HTTP_MCP_BAD : NGX_HTTP_MCP_OK;
}


static ngx_http_mcp_outcome_e
ngx_http_mcp_exchange_outcome_no_header(ngx_http_mcp_exchange_t *x)
{
    ngx_log_t               *log;
    ngx_http_upstream_t     *u;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;
    log = x->r->connection->log;
    u = x->sr->upstream;

    switch (cap->rc) {

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

        if (cap->rc == NGX_HTTP_CREATED || cap->rc == NGX_HTTP_NO_CONTENT) {
            x->status = cap->rc;
            x->body = NGX_HTTP_MCP_BODY_NONE;
            return NGX_HTTP_MCP_OK;
        }

        if (cap->rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            x->status = cap->rc;
            x->body = NGX_HTTP_MCP_BODY_NONE;

            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\": location \"%V\" answered "
                          "with status %i%s", &x->name, &x->uri, cap->rc,
                          cap->rc == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE
                          ? "; raise \"client_max_body_size\" there" : "");

            return NGX_HTTP_MCP_STATUS;
        }

        ngx_log_error(x->level, log, 0,
                      "mcp upstream \"%V\": location \"%V\" gave no response",
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
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    ngx_http_set_log_request(x->r->connection->log, x->r);
    x->r->connection->log->action = NULL;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, x->r->connection->log, 0,
                   "mcp exchange done \"%V\" outcome:%d status:%ui",
                   &x->name, outcome, x->status);

    if (outcome == NGX_HTTP_MCP_OK || outcome == NGX_HTTP_MCP_STATUS) {
        ngx_http_mcp_capture_open(x);
    }

    ngx_http_mcp_exchange_release(cap);

    ngx_http_mcp_exchange_count(x, outcome);

    x->handlers->done(x, outcome);
}


static void
ngx_http_mcp_exchange_count(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_uint_t               method;
    ngx_http_mcp_capture_t  *cap;

    if (x->zone == NULL) {
        return;
    }

    cap = x->capture;

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

    ngx_mcp_metric_add(x->zone, x->metric, x->endpoint, &x->name, method,
                       ngx_http_mcp_exchange_outcomes[outcome].outcome,
                       ngx_current_msec - cap->started);
}


static void
ngx_http_mcp_exchange_release(ngx_http_mcp_capture_t *cap)
{
    cap->done = 1;

    if (cap->event.timer_set) {
        ngx_del_timer(&cap->event);
    }

    if (cap->delay && cap->delay->timer_set) {
        ngx_del_timer(cap->delay);
    }

    if (cap->event.posted) {
        ngx_delete_posted_event(&cap->event);
    }

    if (cap->mode == NGX_HTTP_MCP_PARSE) {
        cap->mode = NGX_HTTP_MCP_DROP;
        ngx_mcp_sse_free(cap->exchange->sse);

    } else if (cap->mode == NGX_HTTP_MCP_SPLIT) {
        cap->mode = NGX_HTTP_MCP_DROP;
        ngx_mcp_lines_free(cap->exchange->lines);
    }
}


static void
ngx_http_mcp_exchange_cleanup(void *data)
{
    ngx_http_mcp_capture_t *cap = data;

    ngx_http_mcp_exchange_t  *x;

    x = cap->exchange;

    if (!cap->done && x->sr) {
        ngx_http_mcp_exchange_count(x, cap->answered ? NGX_HTTP_MCP_OK
                                                     : NGX_HTTP_MCP_ABORTED);
    }

    ngx_http_mcp_exchange_release(cap);
}
