
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_listener.h"


/* ms; a stream that is in the way may be about to end */
#define NGX_HTTP_MCP_LISTEN_CONFLICT   50


static ngx_int_t ngx_http_mcp_listener_attempt(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listener_linked(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_listener_opened(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_listener_message(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_listener_note(ngx_http_mcp_listener_t *l,
    ngx_mcp_sse_t *sse);
static void ngx_http_mcp_listener_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_listener_broken(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listener_gone(ngx_http_mcp_talk_t *t);
static void ngx_http_mcp_listener_retry(ngx_event_t *ev);
static void ngx_http_mcp_listener_detach(ngx_http_mcp_listener_t *l);


void
ngx_http_mcp_listener_start(ngx_http_mcp_listener_t *l, ngx_str_t *id)
{
    ngx_http_mcp_backoff_init(&l->backoff);

    if (id) {
        l->last_event_id.data = l->ids;
        l->last_event_id.len = 0;

        if (id->len && id->len <= NGX_HTTP_MCP_LISTENER_ID_MAX) {
            ngx_memcpy(l->ids, id->data, id->len);
            l->last_event_id.len = id->len;
        }
    }

    l->retry.handler = ngx_http_mcp_listener_retry;
    l->retry.data = l;
    l->retry.log = ngx_cycle->log;
    l->retry.cancelable = 1;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp listens at upstream \"%V\" for session %V",
                   &l->upstream->name, &l->audience.session);

    /* not from within the request of who wants it */

    ngx_add_timer(&l->retry, 0);
}


/* NGX_DECLINED: it will never do; NGX_ERROR: not now */

static ngx_int_t
ngx_http_mcp_listener_attempt(ngx_http_mcp_listener_t *l)
{
    ngx_int_t             rc;
    ngx_http_mcp_talk_t  *t;

    t = ngx_http_mcp_talk_create(l->upstream, &l->audience, l->headers);
    if (t == NULL) {
        return NGX_ERROR;
    }

    /* the request may outlive the listener */

    if (ngx_http_mcp_string_copy(t->r->pool, &t->last_event_id,
                               &l->last_event_id)
        != NGX_OK)
    {
        ngx_http_mcp_talk_leave(t);
        return NGX_ERROR;
    }

    ngx_http_mcp_background_stay(t->r);

    l->talk = t;

    t->session = l->session;
    t->listen = 1;
    t->healed = l->lasting;
    t->serial = l->serial;
    t->linked = ngx_http_mcp_listener_linked;
    t->streams = ngx_http_mcp_listener_opened;
    t->message = ngx_http_mcp_listener_message;
    t->done = ngx_http_mcp_listener_done;
    t->gone = ngx_http_mcp_listener_gone;
    t->data = l;

    rc = ngx_http_mcp_talk_run(t);

    if (rc != NGX_OK) {
        ngx_http_mcp_listener_detach(l);
        return t->scope.dots ? NGX_DECLINED : rc;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_listener_linked(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_listener_t  *l;

    l = t->data;

    if (l->linked) {
        l->linked(l, t->link->serial);
    }
}


static void
ngx_http_mcp_listener_opened(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_listener_t  *l;

    l = t->data;

    l->up = 1;
    l->resumed = (t->x->last_event_id.len != 0);
    l->conflicts = 0;
    l->lasting = 0;
    l->told = 0;
    l->since = ngx_current_msec;

    if (l->serial != t->link->serial) {

        /* ids of another session there say nothing in this one */

        l->serial = t->link->serial;
        l->last_event_id.len = 0;
    }

    if (l->opened) {
        l->opened(l);
    }
}


static void
ngx_http_mcp_listener_message(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_http_mcp_listener_t  *l;

    l = t->data;

    ngx_http_mcp_backoff_reset(&l->backoff);

    ngx_http_mcp_listener_note(l, t->x->sse);

    l->message(l, t, text);
}


static void
ngx_http_mcp_listener_note(ngx_http_mcp_listener_t *l, ngx_mcp_sse_t *sse)
{
    if (sse && sse->id.len && sse->id.len <= NGX_HTTP_MCP_LISTENER_ID_MAX) {
        ngx_memcpy(l->ids, sse->id.data, sse->id.len);
        l->last_event_id.len = sse->id.len;
    }
}


static void
ngx_http_mcp_listener_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_uint_t                status, refused;
    ngx_http_mcp_listener_t  *l;

    l = t->data;
    status = t->x ? t->x->status : 0;

    /* the id of an event without data as well */

    if (l->up && t->x) {
        ngx_http_mcp_listener_note(l, t->x->sse);
    }

    /*
     * An upstream that offers no stream says 405 (G-01) and is left alone;
     * one that has not noticed yet that the last one ended may say 409, and
     * one that does not know the event id 400.
     */

    l->conflict = 0;
    refused = 0;

    if (outcome == NGX_HTTP_MCP_STATUS && t->x->method == NGX_HTTP_GET) {

        switch (status) {

        case NGX_HTTP_NOT_ALLOWED:
            refused = 1;
            break;

        case NGX_HTTP_CONFLICT:
            l->conflict = 1;
            break;

        default:

            /* a session that was made for the stream is not made again */

            l->lasting = t->healed;

            if (status == NGX_HTTP_BAD_REQUEST) {
                l->last_event_id.len = 0;
            }

            if (status < NGX_HTTP_INTERNAL_SERVER_ERROR && !l->told) {
                l->told = 1;

                ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                              "mcp upstream \"%V\" answered GET with status "
                              "%ui; the module asks again; an upstream that "
                              "offers no stream should answer 405",
                              &l->upstream->name, status);
            }
        }
    }

    if (refused || !l->wanted(l)) {
        ngx_http_mcp_listener_stop(l);
        l->closed(l);
        return;
    }

    ngx_http_mcp_listener_broken(l);
}


static void
ngx_http_mcp_listener_broken(ngx_http_mcp_listener_t *l)
{
    ngx_msec_t  delay;

    ngx_http_mcp_listener_detach(l);

    if (l->conflict || (l->up && ngx_http_mcp_backoff_lasted(l->since))) {
        ngx_http_mcp_backoff_reset(&l->backoff);
    }

    l->up = 0;

    if (l->conflict) {
        delay = NGX_HTTP_MCP_LISTEN_CONFLICT << l->conflicts;
        delay = ngx_min(delay, NGX_HTTP_MCP_BACKOFF_MAX);

        l->conflicts = ngx_min(l->conflicts + 1, 10);

    } else {
        delay = ngx_http_mcp_backoff_next(&l->backoff);
    }

    ngx_add_timer(&l->retry, delay);

    if (l->broken) {
        l->broken(l);
    }
}


void
ngx_http_mcp_listener_again(ngx_http_mcp_listener_t *l)
{
    if (l->talk) {
        l->conflict = 0;
        ngx_http_mcp_listener_broken(l);
    }
}


/* the request goes, and not by us */

static void
ngx_http_mcp_listener_gone(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_listener_t  *l;

    l = t->data;

    l->talk = NULL;
    ngx_http_mcp_listener_stop(l);
    l->closed(l);
}


static void
ngx_http_mcp_listener_retry(ngx_event_t *ev)
{
    ngx_int_t                 rc;
    ngx_http_mcp_listener_t  *l;

    l = ev->data;

    rc = (ngx_exiting || !l->wanted(l)) ? NGX_DECLINED
                                        : ngx_http_mcp_listener_attempt(l);
    if (rc == NGX_OK) {
        return;
    }

    if (rc == NGX_ERROR) {

        /* of memory or connections, which there may be again */

        l->conflict = 0;
        ngx_http_mcp_listener_broken(l);
        return;
    }

    ngx_http_mcp_listener_stop(l);
    l->closed(l);
}


static void
ngx_http_mcp_listener_detach(ngx_http_mcp_listener_t *l)
{
    ngx_http_mcp_talk_t  *t;

    t = l->talk;

    if (t) {
        l->talk = NULL;
        ngx_http_mcp_talk_leave(t);
    }
}


void
ngx_http_mcp_listener_stop(ngx_http_mcp_listener_t *l)
{
    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp listens no more at upstream \"%V\"",
                   &l->upstream->name);

    if (l->up && l->talk) {
        ngx_http_mcp_listener_note(l, l->talk->x->sse);
    }

    l->up = 0;

    if (l->retry.timer_set) {
        ngx_del_timer(&l->retry);
    }

    ngx_http_mcp_listener_detach(l);
}
