
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_own.h"
#include "ngx_http_mcp_lists.h"
#include "ngx_http_mcp_supply.h"
#include "ngx_mcp_topic.h"


/* a gap of more resources than that is told to all, by one event */
#define NGX_HTTP_MCP_OWN_URIS        256
#define NGX_HTTP_MCP_OWN_URIS_BYTES  16384


static ngx_uint_t ngx_http_mcp_own_wanted(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_own_begun(ngx_http_mcp_listener_t *l,
    ngx_uint_t serial);
static void ngx_http_mcp_own_opened(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_own_broken(ngx_http_mcp_listener_t *l);
static void ngx_http_mcp_own_listened(ngx_http_mcp_listener_t *l,
    ngx_http_mcp_talk_t *t, ngx_str_t *text);
static void ngx_http_mcp_own_closed(ngx_http_mcp_listener_t *l);
static ngx_uint_t ngx_http_mcp_own_kind(ngx_uint_t method);
static void ngx_http_mcp_own_missed(ngx_http_mcp_own_t *own);
static void ngx_http_mcp_own_missed_lists(ngx_http_mcp_own_t *own);
static void ngx_http_mcp_own_tell(ngx_http_mcp_own_t *own, ngx_str_t *text,
    ngx_str_t *uri, ngx_uint_t kinds, ngx_mcp_take_t *take);


void
ngx_http_mcp_own_listener(ngx_http_mcp_own_t *own, ngx_str_t *id,
    ngx_uint_t serial)
{
    ngx_http_mcp_listener_t  *l;

    l = &own->listener;

    l->upstream = own->upstream;
    l->session = own->session;
    l->audience = own->audience;
    l->serial = serial;
    l->wanted = ngx_http_mcp_own_wanted;
    l->linked = ngx_http_mcp_own_begun;
    l->opened = ngx_http_mcp_own_opened;
    l->broken = ngx_http_mcp_own_broken;
    l->message = ngx_http_mcp_own_listened;
    l->closed = ngx_http_mcp_own_closed;
    l->data = own;

    l->last_event_id.data = l->ids;

    if (serial && id->len && id->len <= NGX_HTTP_MCP_LISTENER_ID_MAX) {
        ngx_memcpy(l->ids, id->data, id->len);
        l->last_event_id.len = id->len;
    }
}


void
ngx_http_mcp_own_listen(ngx_http_mcp_own_t *own)
{
    own->listening = 1;
    own->linking = 1;

    ngx_http_mcp_listener_start(&own->listener, NULL);
}


void
ngx_http_mcp_own_unlisten(ngx_http_mcp_own_t *own)
{
    if (!own->listening) {
        return;
    }

    own->listening = 0;
    own->linking = 0;
    own->begun = 0;
    own->missed = 0;
    own->idle = 1;

    ngx_http_mcp_listener_stop(&own->listener);
    ngx_mcp_lease_broken(own->bridge->zone, &own->lease);
    ngx_mcp_own_listens(own->bridge->zone, own->session, 0, 0);
}


static ngx_uint_t
ngx_http_mcp_own_wanted(ngx_http_mcp_listener_t *l)
{
    ngx_http_mcp_own_t  *own;

    own = l->data;

    return own->needs != 0 && !own->hushed;
}


/* what is asked for from now on cannot change unheard */

static void
ngx_http_mcp_own_begun(ngx_http_mcp_listener_t *l, ngx_uint_t serial)
{
    ngx_http_mcp_own_t  *own;

    own = l->data;

    own->linking = 0;
    own->begun = 1;
    own->begun_on = serial;

    ngx_http_mcp_own_linked(own, serial);
}


static void
ngx_http_mcp_own_opened(ngx_http_mcp_listener_t *l)
{
    u_char               buf[NGX_INT_T_LEN];
    ngx_str_t            note;
    ngx_uint_t           gap;
    ngx_mcp_zone_t      *zone;
    ngx_http_mcp_own_t  *own;

    own = l->data;
    zone = own->bridge->zone;

    if (own->noted != l->serial) {

        /* the last event id first: a note must not be of an older one */

        note.data = buf;
        note.len = ngx_sprintf(buf, "%ui", l->serial) - buf;

        ngx_mcp_lease_forget(zone, &own->lease);
        (void) ngx_mcp_lease_note(zone, &own->lease, &note);

        own->noted = l->serial;
    }

    if (ngx_mcp_lease_connected(zone, &own->lease, &gap) != NGX_OK) {
        ngx_http_mcp_own_doubt(own);
        return;
    }

    ngx_mcp_own_listens(zone, own->session, l->serial, 1);

    if (!l->resumed && gap && !own->idle) {
        ngx_http_mcp_own_gap(own);

    } else if (!l->resumed && own->missed) {
        ngx_http_mcp_own_missed(own);

        if (ngx_http_mcp_own_lists) {
            (void) ngx_http_mcp_own_lists->changed(own,
                                                   NGX_MCP_OFFERED_ALL);
        }
    }

    own->missed = 0;
    own->idle = 0;
}


static void
ngx_http_mcp_own_broken(ngx_http_mcp_listener_t *l)
{
    ngx_http_mcp_own_t  *own;

    own = l->data;

    own->linking = 0;
    own->begun = 0;

    if (l->conflict) {
        ngx_mcp_lease_alone(own->bridge->zone, &own->lease);
    }

    ngx_mcp_lease_broken(own->bridge->zone, &own->lease);
    ngx_mcp_own_listens(own->bridge->zone, own->session, 0, 0);

    ngx_http_mcp_own_post(own);
}


static void
ngx_http_mcp_own_closed(ngx_http_mcp_listener_t *l)
{
    ngx_http_mcp_own_t  *own;

    own = l->data;

    if (own->hushed) {
        ngx_http_mcp_own_leave(own);
        return;
    }

    ngx_mcp_lease_broken(own->bridge->zone, &own->lease);
    ngx_mcp_own_listens(own->bridge->zone, own->session, 0, 0);

    own->listening = 0;
    own->linking = 0;
    own->begun = 0;

    if (own->needs) {
        own->unoffered = 1;
        own->refused = ngx_current_msec;
    }

    if (!ngx_exiting) {
        ngx_http_mcp_own_post(own);
    }
}


static void
ngx_http_mcp_own_listened(ngx_http_mcp_listener_t *l,
    ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_http_mcp_own_heard(l->data, t, text, &l->last_event_id);
}


static ngx_uint_t
ngx_http_mcp_own_kind(ngx_uint_t method)
{
    switch (method) {

    case NGX_MCP_METHOD_TOOLS_CHANGED:
        return NGX_MCP_OFFERED_TOOLS;

    case NGX_MCP_METHOD_PROMPTS_CHANGED:
        return NGX_MCP_OFFERED_PROMPTS;

    case NGX_MCP_METHOD_RESOURCES_CHANGED:
        return NGX_MCP_OFFERED_RESOURCES;
    }

    return 0;
}


void
ngx_http_mcp_own_heard(ngx_http_mcp_own_t *own, ngx_http_mcp_talk_t *t,
    ngx_str_t *text, ngx_str_t *id)
{
    ngx_str_t        ask, uri;
    ngx_uint_t       kind, method;
    ngx_pool_t      *pool;
    ngx_mcp_take_t   take;

    ngx_memzero(&take, sizeof(ngx_mcp_take_t));

    take.lease = own->lease;
    take.id = *id;
    take.rc = NGX_AGAIN;

    ask = ngx_mcp_json_span(&t->x->scan, NGX_MCP_PATH_ID, text->data);
    method = ngx_http_mcp_said_method(t, text);
    kind = ngx_http_mcp_own_kind(method);

    if (ask.len) {

        if (method == NGX_MCP_METHOD_PING) {
            ngx_http_mcp_said_reply(t, &own->audience, &ask, 0, NULL);

        } else if (t->x->scan.members[NGX_MCP_PATH_METHOD].type
                   == NGX_MCP_JSON_STRING)
        {
            ngx_http_mcp_said_reply(t, &own->audience, &ask,
                                    NGX_MCP_METHOD_NOT_FOUND,
                                    "no client receives requests of a shared "
                                    "session");
        }

    } else if (kind) {

        if (ngx_http_mcp_own_lists == NULL
            || ngx_http_mcp_own_lists->changed(own, kind) != NGX_OK)
        {
            ngx_str_null(&uri);
            ngx_http_mcp_own_tell(own, text, &uri, 0, &take);
        }

    } else if (method == NGX_MCP_METHOD_RESOURCES_UPDATED) {

        /* the request's own pool may have to last for days */

        pool = ngx_create_pool(1024, ngx_cycle->log);

        if (pool) {
            uri = ngx_http_mcp_said_uri(t, text, pool);

            if (uri.len) {
                ngx_http_mcp_own_tell(own, text, &uri, 0, &take);
            }

            ngx_destroy_pool(pool);
        }
    }

    if (ngx_mcp_lease_take(own->bridge->zone, &take) == NGX_ABORT) {
        ngx_http_mcp_own_doubt(own);
    }
}


void
ngx_http_mcp_own_gap(ngx_http_mcp_own_t *own)
{
    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" may have sent "
                  "events that were lost; clients are notified to resync",
                  &own->upstream->name, &own->bridge->endpoint);

    ngx_http_mcp_own_missed(own);
    ngx_http_mcp_own_missed_lists(own);
}


/* what is not subscribed to again yet is told of after that */

static void
ngx_http_mcp_own_missed(ngx_http_mcp_own_t *own)
{
    ngx_str_t   uris[NGX_HTTP_MCP_OWN_URIS];
    ngx_uint_t  i, n;

    static u_char  buf[NGX_HTTP_MCP_OWN_URIS_BYTES];

    n = NGX_HTTP_MCP_OWN_URIS;

    if (ngx_mcp_supply_made(own->bridge->zone, own->session,
                            own->listener.serial, buf, sizeof(buf), uris, &n)
        != NGX_OK)
    {
        (void) ngx_mcp_log_gap(own->bridge->zone, &own->bridge->endpoint,
                               &own->tenant);
        return;
    }

    for (i = 0; i < n; i++) {
        ngx_http_mcp_own_updated(own, &uris[i]);
    }
}


static void
ngx_http_mcp_own_missed_lists(ngx_http_mcp_own_t *own)
{
    ngx_str_t   none;
    ngx_uint_t  i;

    if (own->bridge->lists == NGX_HTTP_MCP_LISTS_ON) {

        if (ngx_http_mcp_own_lists) {
            (void) ngx_http_mcp_own_lists->changed(own, NGX_MCP_OFFERED_ALL);
        }

        return;
    }

    ngx_str_null(&none);

    for (i = 1; i & NGX_MCP_OFFERED_ALL; i <<= 1) {
        ngx_http_mcp_own_tell(own, ngx_http_mcp_lists_notification(i), &none,
                              i, NULL);
    }
}


void
ngx_http_mcp_own_updated(ngx_http_mcp_own_t *own, ngx_str_t *uri)
{
    ngx_str_t    method, none, params, text;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    ngx_str_null(&none);
    ngx_str_set(&method, "notifications/resources/updated");

    params = ngx_mcp_uri_compose(pool, uri);
    text = ngx_mcp_request_compose(pool, &none, &method, &params);

    if (params.data && text.data) {
        ngx_http_mcp_own_tell(own, &text, uri, 0, NULL);
    }

    ngx_destroy_pool(pool);
}


/* kinds: for sessions that were offered one of these; 0: no matter */

static void
ngx_http_mcp_own_tell(ngx_http_mcp_own_t *own, ngx_str_t *text,
    ngx_str_t *uri, ngx_uint_t kinds, ngx_mcp_take_t *take)
{
    ngx_uint_t        n;
    ngx_mcp_event_t   event;
    ngx_mcp_topic_t   topic;

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = text;
    event.nparts = 1;
    event.uri[0] = *uri;
    event.list_key = own->list_key;

    /* those that have lists of their own hear of them on their own streams */

    if (uri->len == 0) {
        event.flags = NGX_MCP_EVENT_LISTED|NGX_MCP_EVENT_OFFERED(kinds);

        /* as do those with a stream at the upstream, unless there is a gap */

        if (take) {
            event.flags |= NGX_MCP_EVENT_SHARED;
        }
    }

    if (take) {

        if (ngx_mcp_lease_begin(own->bridge->zone, take) != NGX_OK) {
            return;
        }

        event.take = take;
        event.once = &take->once;
    }

    ngx_mcp_count(own->bridge->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    n = 0;

    (void) ngx_mcp_log_groups(own->bridge->zone, &own->bridge->endpoint,
                              &own->tenant, &event, &n);

    if (uri->len) {

        /* somebody may wait for it */

        ngx_memzero(&topic, sizeof(ngx_mcp_topic_t));

        topic.uri = *uri;
        topic.other = 1;

        (void) ngx_mcp_topic_add(own->bridge->zone, &own->bridge->endpoint,
                                 &own->tenant, &topic, &event, NULL, &n);

        if (take) {
            ngx_mcp_own_heard(own->bridge->zone, own->session, uri);
        }
    }
}
