
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_listener.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_server_request.h"


/* a client that only reconnects is not worth closing for */
#define NGX_HTTP_MCP_LISTEN_GRACE  10000


/* for a client's session */

typedef struct {
    ngx_http_mcp_listener_t   listener;
    ngx_queue_t               queue;
    ngx_pool_t               *pool;
    ngx_http_headers_in_t     headers_in;
    ngx_event_t               grace;
    ngx_uint_t                serial;       /* of the link it has heard */
    unsigned                  ids:1;        /* events have had them */
} ngx_http_mcp_listen_t;


static ngx_uint_t ngx_http_mcp_listen_wanted(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listen_opened(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listen_broken(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_listen_message(ngx_http_mcp_listener_t *l,
    ngx_http_mcp_talk_t *t, ngx_str_t *text);
static void ngx_http_mcp_listen_updated(ngx_http_mcp_listener_t *l,
    ngx_http_mcp_talk_t *t, ngx_str_t *text, ngx_mcp_event_t *event);
static void ngx_http_mcp_listen_grace(ngx_event_t *ev);
static void ngx_http_mcp_listen_closed(ngx_http_mcp_listener_t *l);


static ngx_queue_t  ngx_http_mcp_listeners;


void
ngx_http_mcp_listen(ngx_http_mcp_upstream_t *u, ngx_http_request_t *from,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_str_t *tenant)
{
    ngx_str_t                 none;
    ngx_pool_t               *pool;
    ngx_http_mcp_listen_t    *listen;
    ngx_http_mcp_manner_t    *manner;
    ngx_http_mcp_listener_t  *l;

    manner = ngx_http_mcp_manner(u, tenant);

    if (ngx_exiting || (manner && !manner->streams)) {
        return;
    }

    if (ngx_mcp_link_listen(u->zone, session, &u->name) != NGX_OK) {
        return;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        ngx_mcp_link_unlisten(u->zone, session, &u->name, 0);
        return;
    }

    listen = ngx_pcalloc(pool, sizeof(ngx_http_mcp_listen_t));
    if (listen == NULL) {
        ngx_destroy_pool(pool);
        ngx_mcp_link_unlisten(u->zone, session, &u->name, 0);
        return;
    }

    if (ngx_http_mcp_listeners.next == NULL) {
        ngx_queue_init(&ngx_http_mcp_listeners);
    }

    ngx_queue_insert_tail(&ngx_http_mcp_listeners, &listen->queue);

    listen->pool = pool;

    listen->grace.handler = ngx_http_mcp_listen_grace;
    listen->grace.data = listen;
    listen->grace.log = ngx_cycle->log;
    listen->grace.cancelable = 1;

    l = &listen->listener;

    l->upstream = u;
    l->session = session;
    l->headers = &listen->headers_in;
    l->wanted = ngx_http_mcp_listen_wanted;
    l->opened = ngx_http_mcp_listen_opened;
    l->broken = ngx_http_mcp_listen_broken;
    l->message = ngx_http_mcp_listen_message;
    l->closed = ngx_http_mcp_listen_closed;
    l->data = listen;

    l->audience.session.len = id->len;
    l->audience.session.data = ngx_pstrdup(pool, id);
    l->audience.tenant.len = tenant->len;
    l->audience.tenant.data = ngx_pstrdup(pool, tenant);

    if (l->audience.session.data == NULL || l->audience.tenant.data == NULL
        || ngx_http_mcp_background_headers(&listen->headers_in, pool,
                                           &from->headers_in)
           != NGX_OK)
    {
        ngx_http_mcp_listen_closed(l);
        return;
    }

    ngx_str_null(&none);

    ngx_http_mcp_listener_start(l, &none);
}


static ngx_uint_t
ngx_http_mcp_listen_wanted(ngx_http_mcp_listener_t *l)
{
    ngx_mcp_zone_t           *zone;
    ngx_http_mcp_upstream_t  *u;

    u = l->upstream;
    zone = u->zone;

    if (ngx_mcp_session_gets(zone, l->session) >= 1) {
        return 1;
    }

    /* a GET may have come just now and found that somebody listens */

    ngx_mcp_link_unlisten(zone, l->session, &u->name, 1);

    if (ngx_mcp_session_gets(zone, l->session) < 1
        || ngx_mcp_link_listen(zone, l->session, &u->name) != NGX_OK)
    {
        return 0;
    }

    if (l->up) {
        (void) ngx_mcp_link_listens(zone, l->session, &u->name, 1);
    }

    return 1;
}


/*
 * Told is what a client would not have missed without us: a stream that the
 * upstream ends, and that has no ids, has a gap for whoever reads it.
 */

static void
ngx_http_mcp_listen_opened(ngx_http_mcp_listener_t *l)
{
    ngx_uint_t              resumed;
    ngx_http_mcp_listen_t  *listen;

    listen = l->data;

    resumed = l->resumed || (listen->serial == l->serial && !listen->ids);

    listen->serial = l->serial;
    listen->ids = (l->last_event_id.len != 0);

    if (ngx_mcp_link_listens(l->upstream->zone, l->session,
                             &l->upstream->name, resumed))
    {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" may have sent events that were "
                      "lost; the client of session %V is notified to resync",
                      &l->upstream->name, &l->audience.session);
    }
}


static void
ngx_http_mcp_listen_broken(ngx_http_mcp_listener_t *l)
{
    ngx_mcp_link_breaks(l->upstream->zone, l->session, &l->upstream->name);
}


static void
ngx_http_mcp_listen_message(ngx_http_mcp_listener_t *l,
    ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_str_t               id, level, out;
    ngx_pool_t             *pool;
    ngx_mcp_json_t         *json;
    ngx_mcp_event_t         event;
    ngx_http_mcp_listen_t  *listen;

    listen = l->data;
    listen->ids |= (l->last_event_id.len != 0);

    json = &t->x->scan;

    if (json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_STRING
        || ngx_http_mcp_said_elsewhere(t, l->session, &l->audience.session,
                                       text))
    {
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (ngx_http_mcp_server_request_to_client(t, l->session, text, &pool, &out)
        != NGX_OK)
    {
        if (id.len) {
            ngx_http_mcp_server_request_refuse(t, &l->audience, &id);
        }

        return;
    }

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = &out;
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

    if (ngx_http_mcp_said_method(t, text) == NGX_MCP_METHOD_RESOURCES_UPDATED) {
        ngx_http_mcp_listen_updated(l, t, text, &event);
    }

    if (pool) {
        ngx_destroy_pool(pool);
    }
}


/* the session may wait for it */

static void
ngx_http_mcp_listen_updated(ngx_http_mcp_listener_t *l,
    ngx_http_mcp_talk_t *t, ngx_str_t *text, ngx_mcp_event_t *event)
{
    ngx_str_t    uri;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    uri = ngx_http_mcp_said_uri(t, text, pool);

    if (uri.len) {
        ngx_http_mcp_updated_keep(l->upstream, &l->audience.tenant,
                                  &l->audience.session, &uri, event);
    }

    ngx_destroy_pool(pool);
}


void
ngx_http_mcp_listen_doorbell(ngx_mcp_zone_t *zone)
{
    ngx_int_t                 n;
    ngx_queue_t              *q;
    ngx_http_mcp_listen_t    *listen;
    ngx_http_mcp_listener_t  *l;

    if (ngx_http_mcp_listeners.next == NULL) {
        return;
    }

    q = ngx_queue_head(&ngx_http_mcp_listeners);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_listeners)) {

        listen = ngx_queue_data(q, ngx_http_mcp_listen_t, queue);
        q = ngx_queue_next(q);

        l = &listen->listener;

        if (l->upstream->zone != zone) {
            continue;
        }

        n = ngx_mcp_session_gets(zone, l->session);

        if (n == NGX_DECLINED) {
            ngx_http_mcp_listener_stop(l);
            ngx_http_mcp_listen_closed(l);

        } else if (n == 0 && !listen->grace.timer_set) {
            ngx_add_timer(&listen->grace, NGX_HTTP_MCP_LISTEN_GRACE);
        }
    }
}


void
ngx_http_mcp_listen_quit(ngx_mcp_zone_t *zone)
{
    ngx_queue_t              *q;
    ngx_http_mcp_listen_t    *listen;
    ngx_http_mcp_listener_t  *l;

    ngx_http_mcp_updated_quit(zone);

    if (ngx_http_mcp_listeners.next == NULL) {
        return;
    }

    q = ngx_queue_head(&ngx_http_mcp_listeners);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_listeners)) {

        listen = ngx_queue_data(q, ngx_http_mcp_listen_t, queue);
        q = ngx_queue_next(q);

        l = &listen->listener;

        if (l->upstream->zone == zone) {
            ngx_http_mcp_listener_stop(l);
            ngx_http_mcp_listen_closed(l);
        }
    }
}


static void
ngx_http_mcp_listen_grace(ngx_event_t *ev)
{
    ngx_http_mcp_listen_t  *listen;

    listen = ev->data;

    if (!ngx_http_mcp_listen_wanted(&listen->listener)) {
        ngx_http_mcp_listener_stop(&listen->listener);
        ngx_http_mcp_listen_closed(&listen->listener);
    }
}


static void
ngx_http_mcp_listen_closed(ngx_http_mcp_listener_t *l)
{
    ngx_uint_t              over;
    ngx_http_mcp_listen_t  *listen;

    listen = l->data;

    /* a client whose worker quits comes back */

    over = (!ngx_exiting
            && ngx_mcp_session_gets(l->upstream->zone, l->session) < 1);

    ngx_queue_remove(&listen->queue);

    if (listen->grace.timer_set) {
        ngx_del_timer(&listen->grace);
    }

    ngx_mcp_link_unlisten(l->upstream->zone, l->session, &l->upstream->name,
                          over);

    ngx_destroy_pool(listen->pool);
}
