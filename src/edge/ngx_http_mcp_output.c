
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_output.h"


struct ngx_http_mcp_output_s {
    ngx_event_t    timer;       /* runs during a delay, or for send_timeout */
    off_t          progress;    /* c->sent when the timer was set */
    ngx_uint_t     delayed;     /* the timer is that of a delay */
    void         (*sent)(ngx_http_request_t *r, ngx_int_t rc);
};


static ngx_int_t ngx_http_mcp_output_wait(ngx_http_request_t *r,
    ngx_http_mcp_output_t *o);
static void ngx_http_mcp_output_delay(ngx_http_mcp_output_t *o,
    ngx_event_t *wev);
static ngx_msec_t ngx_http_mcp_output_left(ngx_event_t *ev);
static void ngx_http_mcp_output_writer(ngx_http_request_t *r);
static void ngx_http_mcp_output_timer(ngx_event_t *ev);
static void ngx_http_mcp_output_failed(ngx_http_request_t *r,
    ngx_http_mcp_output_t *o);
static void ngx_http_mcp_output_cleanup(void *data);


ngx_str_t  ngx_http_mcp_type_json = ngx_string("application/json");


ngx_int_t
ngx_http_mcp_header(ngx_http_request_t *r, const char *name, ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_http_mcp_header_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_header_text(ngx_http_request_t *r, const char *name,
    const char *text)
{
    ngx_str_t  value;

    value.data = (u_char *) text;
    value.len = ngx_strlen(text);

    return ngx_http_mcp_header(r, name, &value);
}


ngx_int_t
ngx_http_mcp_output(ngx_http_request_t *r, ngx_chain_t *out)
{
    ngx_int_t            rc;
    ngx_http_mcp_ctx_t  *ctx;

    rc = ngx_http_output_filter(r, out);

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    return (ctx && ctx->output) ? ngx_http_mcp_output_wait(r, ctx->output)
                                : NGX_OK;
}


ngx_int_t
ngx_http_mcp_send_chain(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_chain_t *out)
{
    off_t         len;
    ngx_int_t     rc;
    ngx_chain_t  *cl;

    len = 0;

    for (cl = out; cl; cl = cl->next) {
        len += ngx_buf_size(cl->buf);

        if (cl->next == NULL) {
            cl->buf->last_buf = (r == r->main) ? 1 : 0;
            cl->buf->last_in_chain = 1;
        }
    }

    r->headers_out.status = status;
    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type->len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.content_length_n = len;

    rc = ngx_http_mcp_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_mcp_output(r, out);
}


ngx_int_t
ngx_http_mcp_output_start(ngx_http_request_t *r,
    void (*sent)(ngx_http_request_t *r, ngx_int_t rc))
{
    ngx_http_mcp_ctx_t     *ctx;
    ngx_pool_cleanup_t     *cln;
    ngx_http_mcp_output_t  *o;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    o = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_output_t));
    if (o == NULL) {
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_mcp_output_cleanup;
    cln->data = o;

    o->timer.handler = ngx_http_mcp_output_timer;
    o->timer.data = r;
    o->timer.log = r->connection->log;
    o->sent = sent;

    ctx->output = o;

    r->write_event_handler = ngx_http_mcp_output_writer;

    return ngx_http_mcp_output_wait(r, o);
}


void
ngx_http_mcp_output_finalize(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_event_t            *wev;
    ngx_connection_t       *c;
    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_output_t  *o;

    c = r->connection;
    wev = c->write;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    o = ctx->output;

    if (o) {
        ctx->output = NULL;

        if (wev->delayed) {

            /* nginx waits for the timer that was taken from it */

            ngx_add_timer(wev, ngx_http_mcp_output_left(&o->timer));

        } else if (c->buffered && wev->ready) {

            /* nginx waits for an event that has come already */

            ngx_post_event(wev, &ngx_posted_events);
        }

        ngx_http_mcp_output_cleanup(o);
    }

    if (r->postponed && r == c->data && wev->ready && !wev->delayed) {

        /* output waited for a filter's subrequest, which ended before */

        ngx_post_event(wev, &ngx_posted_events);
    }

    ngx_http_finalize_request(r, rc);
}


/* waits for the event that has to happen before more can be written */

static ngx_int_t
ngx_http_mcp_output_wait(ngx_http_request_t *r, ngx_http_mcp_output_t *o)
{
    ngx_connection_t          *c;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;

    if (c->write->delayed) {
        ngx_http_mcp_output_delay(o, c->write);
        return NGX_OK;
    }

    if (!c->buffered) {
        ngx_http_mcp_output_cleanup(o);
        return NGX_OK;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!o->timer.timer_set || o->delayed || o->progress != c->sent) {
        o->delayed = 0;
        o->progress = c->sent;

        ngx_add_timer(&o->timer, clcf->send_timeout);
    }

    return ngx_handle_write_event(c->write, clcf->send_lowat);
}


/*
 * Keeps the timer of a delay here: the upstream of a subrequest treats the
 * client's connection as its own, and sets or deletes the timer of its write
 * event.
 */

static void
ngx_http_mcp_output_delay(ngx_http_mcp_output_t *o, ngx_event_t *wev)
{
    ngx_msec_t  left;

    o->delayed = 1;

    if (!wev->timer_set && o->timer.timer_set) {
        return;
    }

    left = ngx_http_mcp_output_left(wev);

    if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    if (!o->timer.timer_set
        || ngx_http_mcp_output_left(&o->timer) > left)
    {
        ngx_add_timer(&o->timer, left);
    }
}


static ngx_msec_t
ngx_http_mcp_output_left(ngx_event_t *ev)
{
    ngx_msec_int_t  left;

    if (!ev->timer_set) {
        return 1;
    }

    left = (ngx_msec_int_t) (ev->timer.key - ngx_current_msec);

    return ngx_max(left, 1);
}


static void
ngx_http_mcp_output_writer(ngx_http_request_t *r)
{
    ngx_event_t            *wev;
    ngx_connection_t       *c;
    ngx_http_mcp_ctx_t     *ctx;
    ngx_http_mcp_output_t  *o;

    c = r->connection;
    wev = c->write;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    o = ctx->output;

    /* the timer was set by the upstream of a subrequest */

    wev->timedout = 0;

    if (wev->delayed) {
        ngx_http_mcp_output_delay(o, wev);
        return;
    }

    if (ngx_http_mcp_output(r, NULL) != NGX_OK) {
        ngx_http_mcp_output_failed(r, o);
        return;
    }

    if (!c->buffered) {
        o->sent(r, NGX_OK);
    }
}


static void
ngx_http_mcp_output_timer(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_http_mcp_ctx_t  *ctx;

    r = ev->data;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (c->write->delayed) {
        c->write->delayed = 0;
        ngx_http_mcp_output_writer(r);

    } else if (c->buffered) {
        c->log->action = "sending to client";

        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT, "client timed out");

        c->timedout = 1;
        ngx_http_mcp_output_failed(r, ctx->output);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_output_failed(ngx_http_request_t *r, ngx_http_mcp_output_t *o)
{
    ngx_connection_t    *c;
    ngx_http_mcp_ctx_t  *ctx;

    c = r->connection;

    /* nginx would take the end of the exchange for that of the request */

    c->error = 0;

    r->keepalive = 0;
    r->write_event_handler = ngx_http_request_empty_handler;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    ctx->output = NULL;

    ngx_http_mcp_output_cleanup(o);

    o->sent(r, NGX_ERROR);
}


static void
ngx_http_mcp_output_cleanup(void *data)
{
    ngx_http_mcp_output_t *o = data;

    if (o->timer.timer_set) {
        ngx_del_timer(&o->timer);
    }
}
