
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_listener.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_upstream_message.h"


/* a client that only reconnects is not worth closing for */
#define NGX_HTTP_MCP_LISTENER_GRACE  10000


/* for a caller with a session */

typedef struct {
    ngx_http_mcp_reader_t     reader;
    ngx_mcp_caller_t          caller;
    ngx_http_headers_in_t     headers_in;
    ngx_mcp_ref_t             us;           /* upstream session */
    ngx_event_t               grace;
    ngx_uint_t                serial;       /* of the session it read from */
    unsigned                  ids:1;        /* events have had them */
} ngx_http_mcp_listener_t;


static ngx_uint_t ngx_http_mcp_listener_wanted(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_listener_opened(ngx_http_mcp_reader_t *reader,
    ngx_uint_t gap);
static void ngx_http_mcp_listener_disconnected(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_listener_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume);
static void ngx_http_mcp_listener_grace(ngx_event_t *ev);
static void ngx_http_mcp_listener_stopped(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_listener_ended(ngx_http_mcp_reader_t *reader,
    ngx_uint_t how);


ngx_http_mcp_reader_kind_t  ngx_http_mcp_listener_readers = {
    ngx_null_string,
    NULL,                                  /* create */
    NULL,                                  /* held */
    NULL,                                  /* signaled */
    NULL,                                  /* tick */
    NULL,                                  /* replaced */
    ngx_http_mcp_listener_wanted,
    NULL,                                  /* request */
    NULL,                                  /* filter */
    NULL,                                  /* acknowledged */
    NULL,                                  /* asked */
    ngx_http_mcp_listener_opened,
    ngx_http_mcp_listener_event,
    NULL,                                  /* gap */
    ngx_http_mcp_listener_disconnected,
    ngx_http_mcp_listener_stopped,
    ngx_http_mcp_listener_ended,
    { NULL, NULL }
};


void
ngx_http_mcp_listener_start(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_mcp_caller_t *caller)
{
    ngx_pool_t               *pool;
    ngx_mcp_ref_t             us;
    ngx_http_mcp_manner_t    *manner;
    ngx_http_mcp_reader_t    *reader;
    ngx_http_mcp_listener_t  *listener;

    manner = ngx_http_mcp_manner(u, &caller->tenant, 1);

    if (ngx_exiting || (manner && !manner->streams)) {
        return;
    }

    if (ngx_mcp_upstream_session_stream_claim(u->zone, caller->session,
                                              &u->name, &us)
        != NGX_OK)
    {
        return;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    listener = pool ? ngx_pcalloc(pool, sizeof(ngx_http_mcp_listener_t)) : NULL;

    if (listener == NULL
        || ngx_http_mcp_string_copy(pool, &listener->caller.session_id,
                                    &caller->session_id)
           != NGX_OK
        || ngx_http_mcp_string_copy(pool, &listener->caller.tenant,
                                    &caller->tenant)
           != NGX_OK
        || ngx_http_mcp_background_headers(&listener->headers_in, pool,
                                           &from->headers_in)
           != NGX_OK)
    {
        if (pool) {
            ngx_destroy_pool(pool);
        }

        ngx_mcp_upstream_session_stream_release(u->zone, us, 0);
        return;
    }

    listener->us = us;
    listener->caller.session = caller->session;

    listener->grace.handler = ngx_http_mcp_listener_grace;
    listener->grace.data = listener;
    listener->grace.log = ngx_cycle->log;
    listener->grace.cancelable = 1;

    reader = &listener->reader;

    reader->kind = &ngx_http_mcp_listener_readers;
    reader->pool = pool;
    reader->data = listener;
    reader->upstream = u;
    reader->owner = caller->session;
    reader->audience.session = listener->caller.session_id;
    reader->audience.tenant = listener->caller.tenant;
    reader->headers = &listener->headers_in;

    ngx_http_mcp_reader_init(reader);
    ngx_http_mcp_reader_open(reader);
}


static ngx_uint_t
ngx_http_mcp_listener_wanted(ngx_http_mcp_reader_t *reader)
{
    ngx_mcp_zone_t           *zone;
    ngx_http_mcp_listener_t  *listener;
    ngx_http_mcp_upstream_t  *u;

    listener = reader->data;
    u = reader->upstream;
    zone = u->zone;

    if (ngx_mcp_session_gets(zone, reader->owner) >= 1) {
        return 1;
    }

    /* a GET may have come just now and found that somebody listens */

    ngx_mcp_upstream_session_stream_release(zone, listener->us, 1);

    if (ngx_mcp_session_gets(zone, reader->owner) < 1
        || ngx_mcp_upstream_session_stream_claim(zone, reader->owner,
                                                 &u->name, &listener->us)
           != NGX_OK)
    {
        return 0;
    }

    if (reader->up) {
        (void) ngx_mcp_upstream_session_stream_opened(zone, listener->us,
                                                      reader->serial, 1);
    }

    return 1;
}


/*
 * Told is what a client would not have missed without us: a stream that the
 * upstream ends, and that has no ids, has a gap for whoever reads it.
 */

static void
ngx_http_mcp_listener_opened(ngx_http_mcp_reader_t *reader, ngx_uint_t gap)
{
    ngx_uint_t                resumed;
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;

    resumed = reader->resumed
              || (listener->serial == reader->serial && !listener->ids);

    listener->serial = reader->serial;
    listener->ids = (reader->id.len != 0);

    if (ngx_mcp_upstream_session_stream_opened(reader->upstream->zone,
                                               listener->us, reader->serial,
                                               resumed))
    {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" may have sent events that were "
                      "lost; the client of session %V is notified to resync",
                      &reader->upstream->name, &reader->audience.session);
    }
}


static void
ngx_http_mcp_listener_disconnected(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;

    ngx_mcp_upstream_session_stream_closed(reader->upstream->zone,
                                           listener->us);
}


static void
ngx_http_mcp_listener_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume)
{
    ngx_str_t                 id, out;
    ngx_pool_t               *pool;
    ngx_mcp_json_t           *json;
    ngx_mcp_event_t           event;
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;
    listener->ids |= (reader->id.len != 0);

    json = &ureq->x->scan;

    if (json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_STRING
        || ngx_http_mcp_upstream_message_duplicate(ureq, &listener->caller,
                                                   text))
    {
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (ngx_http_mcp_server_request_to_client(ureq, &listener->caller, text,
                                              &pool, &out)
        != NGX_OK)
    {
        if (id.len) {
            ngx_http_mcp_server_request_refuse(ureq, &reader->audience, &id);
        }

        return;
    }

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = &out;
    event.nparts = 1;

    if (id.len == 0) {
        event.level = ngx_http_mcp_upstream_message_level(ureq, text);
    }

    ngx_mcp_count(reader->upstream->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    (void) ngx_mcp_log_session(reader->upstream->zone, reader->owner, &event);

    ngx_http_mcp_upstream_message_record(ureq, &listener->caller, text, &event);

    if (pool) {
        ngx_destroy_pool(pool);
    }
}


void
ngx_http_mcp_listener_doorbell(ngx_mcp_zone_t *zone, uint64_t keys)
{
    ngx_int_t                 n;
    ngx_queue_t              *q, *readers;
    ngx_http_mcp_reader_t    *reader;
    ngx_http_mcp_listener_t  *listener;

    readers = &ngx_http_mcp_listener_readers.readers;

    if (readers->next == NULL) {
        return;
    }

    q = ngx_queue_head(readers);

    while (q != ngx_queue_sentinel(readers)) {

        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
        listener = reader->data;
        q = ngx_queue_next(q);

        if (reader->upstream->zone != zone
            || !(keys & NGX_MCP_RING_KEY(listener->us.block)))
        {
            continue;
        }

        n = ngx_mcp_session_gets(zone, reader->owner);

        if (n == NGX_DECLINED) {
            ngx_http_mcp_listener_stopped(reader);

        } else if (n == 0 && !listener->grace.timer_set) {
            ngx_add_timer(&listener->grace, NGX_HTTP_MCP_LISTENER_GRACE);
        }
    }
}


static void
ngx_http_mcp_listener_grace(ngx_event_t *ev)
{
    ngx_http_mcp_listener_t  *listener;

    listener = ev->data;

    if (!ngx_http_mcp_listener_wanted(&listener->reader)) {
        ngx_http_mcp_listener_stopped(&listener->reader);
    }
}


static void
ngx_http_mcp_listener_stopped(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_DROPPED);
}


static void
ngx_http_mcp_listener_ended(ngx_http_mcp_reader_t *reader, ngx_uint_t how)
{
    ngx_uint_t                over;
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;

    /* a client whose worker quits comes back */

    over = (!ngx_exiting
            && ngx_mcp_session_gets(reader->upstream->zone, reader->owner)
               < 1);

    if (listener->grace.timer_set) {
        ngx_del_timer(&listener->grace);
    }

    ngx_mcp_upstream_session_stream_release(reader->upstream->zone,
                                            listener->us, over);
}
