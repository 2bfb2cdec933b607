
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_listener.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_upstream_message.h"


/* ms; the stream is closed if the client has no GET stream for this time */
#define NGX_HTTP_MCP_LISTENER_GRACE  10000


/* a listener: reads the GET stream of one upstream session */

typedef struct {
    ngx_http_mcp_reader_t     reader;
    ngx_mcp_caller_t          caller;
    ngx_http_headers_in_t     headers_in;
    ngx_mcp_ref_t             us;           /* upstream session */
    ngx_event_t               grace;        /* timer that stops the listener */
    ngx_uint_t                serial;       /* serial of the upstream session
                                               whose stream was read last */
    unsigned                  ids:1;        /* events have had ids */
    unsigned                  exclusive:1;  /* of an exclusive session */
} ngx_http_mcp_listener_t;


static ngx_uint_t ngx_http_mcp_listener_wanted(ngx_http_mcp_reader_t *reader);
static ngx_uint_t ngx_http_mcp_listener_refused(
    ngx_http_mcp_reader_t *reader);
static ngx_uint_t ngx_http_mcp_listener_unauthorized(
    ngx_http_mcp_reader_t *reader);
static ngx_int_t ngx_http_mcp_listener_request(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_listener_opened(ngx_http_mcp_reader_t *reader,
    ngx_uint_t gap);
static void ngx_http_mcp_listener_disconnected(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_listener_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume);
static void ngx_http_mcp_listener_gap(ngx_http_mcp_reader_t *reader,
    const char *why);
static ngx_uint_t ngx_http_mcp_listener_ignored(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_str_t *id);
static ngx_uint_t ngx_http_mcp_listener_stale(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_listener_grace(ngx_event_t *ev);
static void ngx_http_mcp_listener_stopped(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_listener_ended(ngx_http_mcp_reader_t *reader,
    ngx_uint_t how);


ngx_http_mcp_reader_kind_t  ngx_http_mcp_listener_readers = {
    .number = NGX_HTTP_MCP_READER_LISTENER,
    .wanted = ngx_http_mcp_listener_wanted,
    .request = ngx_http_mcp_listener_request,
    .opened = ngx_http_mcp_listener_opened,
    .event = ngx_http_mcp_listener_event,
    .gap = ngx_http_mcp_listener_gap,
    .disconnected = ngx_http_mcp_listener_disconnected,
    .stopped = ngx_http_mcp_listener_stopped,
    .ended = ngx_http_mcp_listener_ended
};


void
ngx_http_mcp_listener_start(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_mcp_caller_t *caller, ngx_uint_t exclusive)
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
        || ngx_http_mcp_string_copy(pool, &listener->caller.capabilities,
                                    &caller->capabilities)
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
    listener->caller.revision = caller->revision;
    listener->exclusive = exclusive ? 1 : 0;

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
    reader->no_takeover = listener->exclusive;

    ngx_http_mcp_reader_init(reader);
    (void) ngx_http_mcp_reader_open(reader);
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

    if (ngx_http_mcp_listener_refused(reader)
        || ngx_http_mcp_listener_unauthorized(reader))
    {
        return 0;
    }

    if (ngx_mcp_session_gets(zone, reader->owner) >= 1) {
        return 1;
    }

    /*
     * A new GET of the client may just have found that the stream is claimed,
     * so this worker has to look for GETs again after the release.
     */

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
 * Whether the upstream refuses the stream of an exclusive session by any 4xx
 * but 409.  Then the session's call does not wait for the stream.
 */

static ngx_uint_t
ngx_http_mcp_listener_refused(ngx_http_mcp_reader_t *reader)
{
    ngx_uint_t                status;
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;
    status = ngx_http_mcp_reader_status(reader);

    return listener->exclusive && !reader->up && !reader->id_refused
           && status >= NGX_HTTP_BAD_REQUEST
           && status < NGX_HTTP_INTERNAL_SERVER_ERROR
           && status != NGX_HTTP_CONFLICT;
}


/*
 * Whether the credentials of the client's GET have expired: the upstream
 * refuses them, but a stream with them was open before.  If there was none, the
 * upstream may refuse every GET, and a new GET of the client would not help.
 */

static ngx_uint_t
ngx_http_mcp_listener_unauthorized(ngx_http_mcp_reader_t *reader)
{
    ngx_uint_t                status;
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;
    status = ngx_http_mcp_reader_status(reader);

    return !listener->exclusive && !reader->up
           && (status == NGX_HTTP_UNAUTHORIZED || status == NGX_HTTP_FORBIDDEN)
           && listener->serial;
}


/*
 * A listener does not make an exclusive session: only the call does, as it
 * declares the capabilities of its caller.
 */

static ngx_int_t
ngx_http_mcp_listener_request(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;
    ureq->existing = listener->exclusive;

    return NGX_OK;
}


/*
 * The client is notified of a gap only if it would not have had the gap without
 * this module.  Any reader has one when a stream without event ids ends.
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

    json = ureq->x->scan;

    if (json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_STRING) {
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (listener->exclusive
        ? ngx_http_mcp_listener_ignored(reader, ureq, text, &id)
        : ngx_http_mcp_upstream_message_duplicate(ureq, &listener->caller,
                                                  text))
    {
        return;
    }

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
        event.level = ngx_mcp_level_of(ureq->x->scan, text);
    }

    ngx_mcp_count(reader->upstream->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    if (ngx_mcp_log_session(reader->upstream->zone, reader->owner, &event)
        == NGX_ERROR && id.len)
    {
        ngx_http_mcp_server_request_fail(ureq, &listener->caller,
                                         &reader->audience, &id);
    }

    if (!listener->exclusive) {
        ngx_http_mcp_upstream_message_record(ureq, &listener->caller, text,
                                             &event);
    }

    if (pool) {
        ngx_destroy_pool(pool);
    }
}


static void
ngx_http_mcp_listener_gap(ngx_http_mcp_reader_t *reader, const char *why)
{
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;

    if (ngx_mcp_upstream_session_stream_opened(reader->upstream->zone,
                                               listener->us, reader->serial, 0))
    {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" has a gap: %s; the client of "
                      "session %V is notified to resync",
                      &reader->upstream->name, why,
                      &reader->audience.session);
    }
}


/*
 * Whether a message in an exclusive session does not go to the call.  If it is
 * a request that the call's client cannot receive, this answers it.
 */

static ngx_uint_t
ngx_http_mcp_listener_ignored(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_str_t *id)
{
    switch (ngx_mcp_method_of(ureq->x->scan, text)) {

    case NGX_MCP_METHOD_PING:

        if (id->len) {
            ngx_http_mcp_server_request_reply(ureq, &reader->audience, id, 0,
                                              "{}");
        }

        return 1;

    case NGX_MCP_METHOD_ELICITATION:
    case NGX_MCP_METHOD_SAMPLING:
    case NGX_MCP_METHOD_ROOTS_LIST:

        if (id->len
            && ngx_mcp_session_gets(reader->upstream->zone, reader->owner) < 1)
        {
            /* no call runs in the exclusive session now */

            break;
        }

        return id->len == 0;

    case NGX_MCP_METHOD_PROGRESS:
    case NGX_MCP_METHOD_MESSAGE:
    case NGX_MCP_METHOD_CANCELLED:
    case NGX_MCP_METHOD_OTHER:

        if (id->len) {
            break;
        }

        return 0;

    default:

        if (id->len) {
            break;
        }

        return 1;
    }

    ngx_http_mcp_server_request_refuse(ureq, &reader->audience, id);

    return 1;
}


void
ngx_http_mcp_listener_doorbell(ngx_mcp_zone_t *zone, uint64_t keys)
{
    ngx_int_t                 n;
    ngx_queue_t              *q, *readers;
    ngx_http_mcp_reader_t    *reader;
    ngx_http_mcp_listener_t  *listener;

    readers = ngx_http_mcp_reader_queue(zone, NGX_HTTP_MCP_READER_LISTENER);

    q = ngx_queue_head(readers);

    while (q != ngx_queue_sentinel(readers)) {

        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
        listener = reader->data;
        q = ngx_queue_next(q);

        if (!(keys & NGX_MCP_RING_KEY(listener->us.block))) {
            continue;
        }

        n = ngx_mcp_session_gets(zone, reader->owner);

        if (n == NGX_DECLINED || (n == 0 && ngx_exiting)
            || ngx_http_mcp_listener_stale(reader))
        {
            ngx_http_mcp_listener_stopped(reader);

        } else if (n == 0 && !listener->grace.timer_set) {
            ngx_add_timer(&listener->grace, NGX_HTTP_MCP_LISTENER_GRACE);
        }
    }
}


/*
 * Whether the call has got a new upstream session, and the stream belongs to
 * the old one.
 */

static ngx_uint_t
ngx_http_mcp_listener_stale(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_listener_t     *listener;
    ngx_mcp_upstream_session_t   us;

    listener = reader->data;

    return listener->exclusive && reader->serial
           && ngx_mcp_upstream_session_peek(reader->upstream->zone,
                                            reader->owner,
                                            &reader->upstream->name, &us)
              == NGX_OK
           && us.serial != reader->serial;
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
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;

    if (ngx_http_mcp_listener_refused(reader)) {
        ngx_mcp_upstream_session_stream_absent(reader->upstream->zone,
                                               listener->us);
    }

    if (ngx_http_mcp_listener_unauthorized(reader)) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" refuses the credentials of the GET "
                      "of session %V; the module closes the client's stream, "
                      "so that the client opens a new one",
                      &reader->upstream->name, &reader->audience.session);

        ngx_mcp_upstream_session_stream_refused(reader->upstream->zone,
                                                listener->us);
    }

    ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_DROPPED);
}


static void
ngx_http_mcp_listener_ended(ngx_http_mcp_reader_t *reader, ngx_uint_t how)
{
    ngx_uint_t                over;
    ngx_http_mcp_listener_t  *listener;

    listener = reader->data;

    /* when this worker quits, the client opens a new GET at another worker */

    over = (!ngx_exiting
            && ngx_mcp_session_gets(reader->upstream->zone, reader->owner)
               < 1);

    if (listener->grace.timer_set) {
        ngx_del_timer(&listener->grace);
    }

    ngx_mcp_upstream_session_stream_release(reader->upstream->zone,
                                            listener->us, over);
}
