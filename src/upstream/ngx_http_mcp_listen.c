
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"


#define NGX_HTTP_MCP_LISTEN_RETRY      1000
#define NGX_HTTP_MCP_LISTEN_RETRY_MAX  30000

/* a client that only reconnects is not worth closing for */
#define NGX_HTTP_MCP_LISTEN_GRACE      10000


/* one upstream GET stream; each attempt has a request of its own */

typedef struct {
    ngx_queue_t               queue;
    ngx_pool_t               *pool;
    ngx_http_mcp_upstream_t  *upstream;
    ngx_mcp_ref_t             session;
    ngx_str_t                 id;
    ngx_str_t                 tenant;
    ngx_http_headers_in_t     headers_in;
    ngx_str_t                 last_event_id;
    u_char                    last_event_buf[256];
    ngx_msec_t                delay;
    ngx_http_mcp_talk_t      *talk;         /* the attempt under way */
    ngx_event_t               retry;
    ngx_event_t               grace;
} ngx_http_mcp_listener_t;


static ngx_int_t ngx_http_mcp_listen_start(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listen_message(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_listen_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_listen_cleanup(void *data);
static void ngx_http_mcp_listen_retry(ngx_event_t *ev);
static void ngx_http_mcp_listen_grace(ngx_event_t *ev);
static void ngx_http_mcp_listen_detach(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listen_close(ngx_http_mcp_listener_t *l);


static ngx_queue_t  ngx_http_mcp_listeners;


void
ngx_http_mcp_listen(ngx_http_mcp_upstream_t *u, ngx_http_request_t *from,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_str_t *tenant)
{
    ngx_pool_t               *pool;
    ngx_http_mcp_listener_t  *l;

    if (u->protocol == NGX_HTTP_MCP_RPC || u->learned == NGX_MCP_KNOWN_RPC
        || ngx_exiting)
    {
        return;
    }

    if (ngx_mcp_link_listen(u->zone, session, &u->name) != NGX_OK) {
        return;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        ngx_mcp_link_unlisten(u->zone, session, &u->name);
        return;
    }

    l = ngx_pcalloc(pool, sizeof(ngx_http_mcp_listener_t));
    if (l == NULL) {
        ngx_destroy_pool(pool);
        ngx_mcp_link_unlisten(u->zone, session, &u->name);
        return;
    }

    if (ngx_http_mcp_listeners.next == NULL) {
        ngx_queue_init(&ngx_http_mcp_listeners);
    }

    ngx_queue_insert_tail(&ngx_http_mcp_listeners, &l->queue);

    l->pool = pool;
    l->upstream = u;
    l->session = session;
    l->delay = NGX_HTTP_MCP_LISTEN_RETRY;

    l->id.len = id->len;
    l->id.data = ngx_pstrdup(pool, id);
    l->tenant.len = tenant->len;
    l->tenant.data = ngx_pstrdup(pool, tenant);

    l->retry.handler = ngx_http_mcp_listen_retry;
    l->retry.data = l;
    l->retry.log = ngx_cycle->log;
    l->retry.cancelable = 1;

    l->grace.handler = ngx_http_mcp_listen_grace;
    l->grace.data = l;
    l->grace.log = ngx_cycle->log;
    l->grace.cancelable = 1;

    if (l->id.data == NULL || l->tenant.data == NULL
        || ngx_http_mcp_background_headers(&l->headers_in, pool, from)
           != NGX_OK)
    {
        ngx_http_mcp_listen_close(l);
        return;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp listens at upstream \"%V\" for session %V",
                   &u->name, id);

    /* not from within the client's request */

    ngx_add_timer(&l->retry, 0);
}


static ngx_int_t
ngx_http_mcp_listen_start(ngx_http_mcp_listener_t *l)
{
    ngx_int_t                 rc;
    ngx_connection_t         *c;
    ngx_pool_cleanup_t       *cln;
    ngx_http_request_t       *r;
    ngx_http_mcp_talk_t      *t;
    ngx_http_mcp_audience_t   audience;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = l->tenant;
    audience.session = l->id;

    r = ngx_http_mcp_background_for(l->upstream->conf_ctx, &l->upstream->server,
                                    &audience);
    if (r == NULL) {
        return NGX_ERROR;
    }

    t = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_talk_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (t == NULL || cln == NULL) {
        ngx_http_mcp_background_close(r);
        return NGX_ERROR;
    }

    r->headers_in.headers = l->headers_in.headers;
    r->headers_in.server = l->headers_in.server;
    r->headers_in.host = l->headers_in.host;

    l->talk = t;

    t->r = r;
    t->upstream = l->upstream;
    t->session = l->session;
    t->tenant = l->tenant;
    t->listen = 1;
    t->last_event_id = l->last_event_id;
    t->message = ngx_http_mcp_listen_message;
    t->done = ngx_http_mcp_listen_done;
    t->data = l;

    cln->handler = ngx_http_mcp_listen_cleanup;
    cln->data = t;

    rc = ngx_http_mcp_talk_start(t);

    if (rc != NGX_OK) {
        ngx_http_mcp_listen_detach(l);
        return rc;
    }

    c = r->connection;
    ngx_http_run_posted_requests(c);

    return NGX_OK;
}


static void
ngx_http_mcp_listen_message(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_str_t                 id, level;
    ngx_mcp_sse_t            *sse;
    ngx_mcp_json_t           *json;
    ngx_mcp_event_t           event;
    ngx_http_mcp_listener_t  *l;

    l = t->data;
    json = &t->x->scan;

    l->delay = NGX_HTTP_MCP_LISTEN_RETRY;

    sse = t->x->sse;

    if (sse && sse->id.len && sse->id.len <= sizeof(l->last_event_buf)) {
        ngx_memcpy(l->last_event_buf, sse->id.data, sse->id.len);
        l->last_event_id.data = l->last_event_buf;
        l->last_event_id.len = sse->id.len;
    }

    if (json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_STRING) {
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (id.len && ngx_mcp_ask_add(l->upstream->zone, l->session, &id,
                                  &l->upstream->name)
                  != NGX_OK)
    {
        return;
    }

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = text;
    event.nparts = 1;

    if (id.len == 0
        && json->members[NGX_MCP_PATH_LEVEL].type == NGX_MCP_JSON_STRING)
    {
        level = ngx_mcp_json_span(json, NGX_MCP_PATH_LEVEL, text->data);
        level.data++;
        level.len -= 2;

        event.level = ngx_mcp_level_parse(&level);
    }

    ngx_mcp_count(l->upstream->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    (void) ngx_mcp_log_session(l->upstream->zone, l->session, &event);
}


static void
ngx_http_mcp_listen_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_listener_t  *l;

    l = t->data;

    /* an upstream that offers no stream says 405 (G-01) and is left alone */

    if ((outcome == NGX_HTTP_MCP_STATUS && t->x
         && t->x->status < NGX_HTTP_INTERNAL_SERVER_ERROR)
        || outcome == NGX_HTTP_MCP_BAD
        || ngx_mcp_session_gets(l->upstream->zone, l->session) < 1)
    {
        ngx_http_mcp_listen_close(l);
        return;
    }

    ngx_http_mcp_listen_detach(l);

    ngx_add_timer(&l->retry, l->delay);
    l->delay = ngx_min(l->delay * 2, NGX_HTTP_MCP_LISTEN_RETRY_MAX);
}


/* the request goes: by a close of ours, or taken by a graceful quit */

static void
ngx_http_mcp_listen_cleanup(void *data)
{
    ngx_http_mcp_talk_t *t = data;

    ngx_http_mcp_listener_t  *l;

    ngx_http_mcp_talk_cleanup(t);

    if (!t->closed) {
        l = t->data;
        l->talk = NULL;
        ngx_http_mcp_listen_close(l);
    }
}


static void
ngx_http_mcp_listen_retry(ngx_event_t *ev)
{
    ngx_http_mcp_listener_t  *l;

    l = ev->data;

    if (ngx_exiting
        || ngx_mcp_session_gets(l->upstream->zone, l->session) < 1
        || ngx_http_mcp_listen_start(l) != NGX_OK)
    {
        ngx_http_mcp_listen_close(l);
    }
}


void
ngx_http_mcp_listen_doorbell(ngx_mcp_zone_t *zone)
{
    ngx_int_t                 n;
    ngx_queue_t              *q;
    ngx_http_mcp_listener_t  *l;

    if (ngx_http_mcp_listeners.next == NULL) {
        return;
    }

    q = ngx_queue_head(&ngx_http_mcp_listeners);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_listeners)) {

        l = ngx_queue_data(q, ngx_http_mcp_listener_t, queue);
        q = ngx_queue_next(q);

        if (l->upstream->zone != zone) {
            continue;
        }

        n = ngx_mcp_session_gets(zone, l->session);

        if (n == NGX_DECLINED) {
            ngx_http_mcp_listen_close(l);

        } else if (n == 0 && !l->grace.timer_set) {
            ngx_add_timer(&l->grace, NGX_HTTP_MCP_LISTEN_GRACE);
        }
    }
}


static void
ngx_http_mcp_listen_grace(ngx_event_t *ev)
{
    ngx_http_mcp_listener_t  *l;

    l = ev->data;

    if (ngx_mcp_session_gets(l->upstream->zone, l->session) < 1) {
        ngx_http_mcp_listen_close(l);
    }
}


static void
ngx_http_mcp_listen_detach(ngx_http_mcp_listener_t *l)
{
    ngx_http_mcp_talk_t  *t;

    t = l->talk;

    if (t) {
        l->talk = NULL;
        ngx_http_mcp_talk_close(t);
        ngx_http_mcp_background_close(t->r);
    }
}


static void
ngx_http_mcp_listen_close(ngx_http_mcp_listener_t *l)
{
    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp listens no more at upstream \"%V\"",
                   &l->upstream->name);

    ngx_queue_remove(&l->queue);

    if (l->retry.timer_set) {
        ngx_del_timer(&l->retry);
    }

    if (l->grace.timer_set) {
        ngx_del_timer(&l->grace);
    }

    ngx_mcp_link_unlisten(l->upstream->zone, l->session, &l->upstream->name);

    ngx_http_mcp_listen_detach(l);

    ngx_destroy_pool(l->pool);
}
