
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_interest.h"
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_mcp_interest.h"
#include "ngx_mcp_topic.h"


/* a gap of more resources than that is told to all, by one event */
#define NGX_HTTP_MCP_SHARED_URIS        256
#define NGX_HTTP_MCP_SHARED_URIS_BYTES  16384


static ngx_uint_t ngx_http_mcp_shared_kind(ngx_uint_t method);
static void ngx_http_mcp_shared_gap_resources(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_gap_lists(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_notify(ngx_http_mcp_shared_t *us,
    ngx_str_t *text, ngx_str_t *uri, ngx_uint_t kinds,
    ngx_mcp_consume_t *consume);


void
ngx_http_mcp_shared_stream_open(ngx_http_mcp_shared_t *us)
{
    us->listening = 1;
    us->stream_pending = 1;

    ngx_http_mcp_reader_open(&us->reader);
}


void
ngx_http_mcp_shared_stream_close(ngx_http_mcp_shared_t *us)
{
    if (!us->listening) {
        return;
    }

    us->listening = 0;
    us->stream_pending = 0;
    us->begun = 0;
    us->missed = 0;
    us->idle = 1;

    ngx_http_mcp_reader_close(&us->reader);
    ngx_mcp_upstream_session_stream_closed(us->bridge->zone, us->ref);
}


ngx_uint_t
ngx_http_mcp_shared_wanted(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    return us->needs != 0;
}


/* lists fetched from now on cannot change unnoticed */

void
ngx_http_mcp_shared_requested(ngx_http_mcp_reader_t *reader, ngx_uint_t serial)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->stream_pending = 0;
    us->begun = 1;
    us->stream_serial = serial;

    ngx_http_mcp_shared_established(us, serial);
}


void
ngx_http_mcp_shared_opened(ngx_http_mcp_reader_t *reader, ngx_uint_t gap)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    (void) ngx_mcp_upstream_session_stream_opened(us->bridge->zone, us->ref,
                                                  reader->serial,
                                                  reader->resumed);

    if (gap && !us->idle) {
        ngx_http_mcp_shared_gap(reader, "");

    } else if (!reader->resumed && us->missed) {
        ngx_http_mcp_shared_gap_resources(us);

        if (ngx_http_mcp_shared_handlers) {
            (void) ngx_http_mcp_shared_handlers->changed(us,
                                                         NGX_MCP_OFFERED_ALL);
        }
    }

    us->missed = 0;
    us->idle = 0;
}


void
ngx_http_mcp_shared_broken(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->stream_pending = 0;
    us->begun = 0;

    ngx_mcp_upstream_session_stream_closed(us->bridge->zone, us->ref);

    ngx_http_mcp_shared_post(us);
}


void
ngx_http_mcp_shared_stopped(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->listening = 0;

    if (us->needs) {
        us->no_stream = 1;
        us->refused = ngx_current_msec;
    }

    ngx_http_mcp_shared_broken(reader);
}


void
ngx_http_mcp_shared_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume)
{
    ngx_http_mcp_shared_receive(reader->data, ureq, text, consume);
}


static ngx_uint_t
ngx_http_mcp_shared_kind(ngx_uint_t method)
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
ngx_http_mcp_shared_receive(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume)
{
    ngx_str_t    id, uri;
    ngx_uint_t   kind, method;
    ngx_pool_t  *pool;

    id = ngx_mcp_json_span(&ureq->x->scan, NGX_MCP_PATH_ID, text->data);
    method = ngx_http_mcp_upstream_message_method(ureq, text);
    kind = ngx_http_mcp_shared_kind(method);

    if (id.len) {

        if (method == NGX_MCP_METHOD_PING) {
            ngx_http_mcp_server_request_reply(ureq, &us->reader.audience, &id,
                                              0, NULL);

        } else if (ureq->x->scan.members[NGX_MCP_PATH_METHOD].type
                   == NGX_MCP_JSON_STRING)
        {
            ngx_http_mcp_server_request_reply(ureq, &us->reader.audience, &id,
                                              NGX_MCP_METHOD_NOT_FOUND,
                                              "no client receives requests "
                                              "of a shared session");
        }

    } else if (kind) {

        if (ngx_http_mcp_shared_handlers == NULL
            || ngx_http_mcp_shared_handlers->changed(us, kind) != NGX_OK)
        {
            ngx_str_null(&uri);
            ngx_http_mcp_shared_notify(us, text, &uri, 0, consume);
        }

    } else if (method == NGX_MCP_METHOD_RESOURCES_UPDATED) {

        /* the request's own pool may have to last for days */

        pool = ngx_create_pool(1024, ngx_cycle->log);

        if (pool) {
            uri = ngx_http_mcp_upstream_message_uri(ureq, text, pool);

            if (uri.len) {
                ngx_http_mcp_shared_notify(us, text, &uri, 0, consume);
            }

            ngx_destroy_pool(pool);
        }
    }

    if (ngx_mcp_lease_consume(us->bridge->zone, consume) == NGX_ABORT) {
        ngx_http_mcp_reader_check_lease(&us->reader);
    }
}


void
ngx_http_mcp_shared_gap(ngx_http_mcp_reader_t *reader, const char *why)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" may have sent "
                  "events that were lost; clients are notified to resync",
                  &us->upstream->name, &us->bridge->endpoint);

    ngx_http_mcp_shared_gap_resources(us);
    ngx_http_mcp_shared_gap_lists(us);
}


/* resources not subscribed to again yet are notified after that */

static void
ngx_http_mcp_shared_gap_resources(ngx_http_mcp_shared_t *us)
{
    ngx_str_t   uris[NGX_HTTP_MCP_SHARED_URIS];
    ngx_uint_t  i, n;

    static u_char  buf[NGX_HTTP_MCP_SHARED_URIS_BYTES];

    n = NGX_HTTP_MCP_SHARED_URIS;

    if (ngx_mcp_interest_made(us->bridge->zone, us->ref,
                              us->reader.serial, buf, sizeof(buf), uris, &n)
        != NGX_OK)
    {
        (void) ngx_mcp_log_gap(us->bridge->zone, &us->bridge->endpoint,
                               &us->tenant);
        return;
    }

    for (i = 0; i < n; i++) {
        ngx_http_mcp_shared_notify_updated(us, &uris[i]);
    }
}


static void
ngx_http_mcp_shared_gap_lists(ngx_http_mcp_shared_t *us)
{
    ngx_str_t   none;
    ngx_uint_t  i;

    if (us->bridge->lists == NGX_HTTP_MCP_LIST_CACHE_ON) {

        if (ngx_http_mcp_shared_handlers) {
            (void) ngx_http_mcp_shared_handlers->changed(us,
                                                         NGX_MCP_OFFERED_ALL);
        }

        return;
    }

    ngx_str_null(&none);

    for (i = 1; i & NGX_MCP_OFFERED_ALL; i <<= 1) {
        ngx_http_mcp_shared_notify(us, ngx_http_mcp_list_notification(i), &none,
                                   i, NULL);
    }
}


void
ngx_http_mcp_shared_notify_updated(ngx_http_mcp_shared_t *us, ngx_str_t *uri)
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
        ngx_http_mcp_shared_notify(us, &text, uri, 0, NULL);
    }

    ngx_destroy_pool(pool);
}


/* kinds: for sessions that were offered one of these; 0: no matter */

static void
ngx_http_mcp_shared_notify(ngx_http_mcp_shared_t *us, ngx_str_t *text,
    ngx_str_t *uri, ngx_uint_t kinds, ngx_mcp_consume_t *consume)
{
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d[2];

    ngx_memzero(d, sizeof(d));
    ngx_memzero(&post, sizeof(ngx_mcp_post_t));

    post.deliveries = d;
    post.n = 1;
    post.consume = consume;

    d[0].endpoint = &us->bridge->endpoint;
    d[0].tenant = &us->tenant;
    d[0].text = *text;
    d[0].event.uri[0] = *uri;
    d[0].event.list_key = us->list_key;

    /* those that have lists of their own hear of them on their own streams */

    if (uri->len == 0) {
        d[0].event.flags = NGX_MCP_EVENT_LISTED|NGX_MCP_EVENT_OFFERED(kinds);

        /* as do those with a stream at the upstream, unless there is a gap */

        if (consume) {
            d[0].event.flags |= NGX_MCP_EVENT_SHARED;
        }

    } else if (uri->len <= NGX_MCP_TOPIC_URI_MAX) {

        /* somebody may wait for it */

        d[1] = d[0];
        d[1].topic.uri = *uri;
        d[1].topic.other = 1;
        post.n = 2;
    }

    if (ngx_mcp_outbox_send(us->bridge->zone, &post) == NGX_ABORT) {
        return;
    }

    ngx_mcp_count(us->bridge->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    if (uri->len && consume) {
        ngx_mcp_interest_updated(us->bridge->zone, us->ref, uri);
    }
}
