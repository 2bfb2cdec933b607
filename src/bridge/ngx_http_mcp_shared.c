
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_mcp_declared.h"
#include "ngx_mcp_interest.h"
#include "ngx_mcp_outbox.h"


/* ms; if an upstream refused the stream, it is requested again after this */
#define NGX_HTTP_MCP_SHARED_RETRY       300000

/* requests of one session that run at a time, at most; others wait */
#define NGX_HTTP_MCP_SHARED_RUNNING     8

/*
 * Resources, at most, whose subscribers are notified one by one after a gap.
 * If there are more, all sessions of the endpoint and tenant get a gap.
 */
#define NGX_HTTP_MCP_SHARED_URIS        256

/*
 * Places in a URI, counted from its end, at which the URI of a parent resource
 * may end.
 */
#define NGX_HTTP_MCP_SHARED_PARENTS      16


/* a request in the shared upstream session */

typedef struct {
    ngx_queue_t                       queue;
    ngx_pool_t                       *pool;
    ngx_http_mcp_shared_t            *us;
    ngx_str_t                         method;
    ngx_str_t                         params;
    ngx_str_t                         uri;    /* the resource, if the request
                                                 is one of subscriptions; else
                                                 empty */
    ngx_str_t                         id;
    ngx_http_mcp_shared_done_pt       done;
    void                             *data;
    ngx_http_mcp_upstream_request_t  *ureq;
    ngx_http_mcp_shared_answer_t      answer;
} ngx_http_mcp_shared_request_t;


/* a subscription that the next request of the stream has to make or end */

typedef struct {
    ngx_queue_t                       queue;
    ngx_pool_t                       *pool;
    ngx_mcp_interest_job_t            job;
    ngx_uint_t                        sent;   /* the request of a stream was
                                                 sent with this change */
} ngx_http_mcp_interest_change_t;


static ngx_int_t ngx_http_mcp_shared_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key,
    ngx_str_t *key);
static ngx_http_mcp_reader_t *ngx_http_mcp_shared_create(ngx_mcp_zone_t *zone,
    ngx_str_t *key, ngx_pool_t *pool);
static ngx_http_mcp_upstream_t *ngx_http_mcp_shared_find(ngx_mcp_zone_t *zone,
    ngx_str_t *parts, ngx_http_mcp_bridge_t **bridge);
static ngx_int_t ngx_http_mcp_shared_held(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_signaled(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_post(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_check_listening(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_pause(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_established(ngx_http_mcp_shared_t *us,
    ngx_uint_t serial);
static void ngx_http_mcp_shared_tick(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_work(ngx_event_t *ev);
static void ngx_http_mcp_shared_replaced(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_ended(ngx_http_mcp_reader_t *reader,
    ngx_uint_t how);
static ngx_http_mcp_shared_request_t *ngx_http_mcp_shared_enqueue(
    ngx_http_mcp_shared_t *us, ngx_pool_t *pool, ngx_str_t *method,
    ngx_str_t *params);
static void ngx_http_mcp_shared_run(ngx_http_mcp_shared_t *us);
static ngx_int_t ngx_http_mcp_shared_start(ngx_http_mcp_shared_request_t *req);
static void ngx_http_mcp_shared_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);
static void ngx_http_mcp_shared_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_shared_destroyed(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_shared_end(ngx_http_mcp_shared_request_t *req);
static void ngx_http_mcp_shared_free(ngx_http_mcp_shared_request_t *req);
static void ngx_http_mcp_shared_close_requests(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_drop_changes(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_stream_close(ngx_http_mcp_shared_t *us);
static ngx_uint_t ngx_http_mcp_shared_wanted(ngx_http_mcp_reader_t *reader);
static ngx_int_t ngx_http_mcp_shared_filter(ngx_http_mcp_reader_t *reader,
    ngx_pool_t *pool, ngx_str_t *uris);
static void ngx_http_mcp_shared_acknowledged(ngx_http_mcp_reader_t *reader,
    ngx_str_t *uris);
static void ngx_http_mcp_shared_before_open(ngx_http_mcp_reader_t *reader,
    ngx_uint_t serial);
static void ngx_http_mcp_shared_opened(ngx_http_mcp_reader_t *reader,
    ngx_uint_t gap);
static void ngx_http_mcp_shared_disconnected(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_stopped(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume);
static void ngx_http_mcp_shared_gap(ngx_http_mcp_reader_t *reader,
    const char *why);
static void ngx_http_mcp_shared_gap_resources(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_gap_lists(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_notify_updated(ngx_http_mcp_shared_t *us,
    ngx_str_t *uri);
static void ngx_http_mcp_shared_notify(ngx_http_mcp_shared_t *us,
    ngx_pool_t *pool, ngx_str_t *text, ngx_str_t *uri, ngx_uint_t flags,
    ngx_mcp_consume_t *consume);
static ngx_uint_t ngx_http_mcp_shared_parents(ngx_http_mcp_shared_t *us,
    ngx_str_t *uri, ngx_mcp_delivery_t *d);
static ngx_http_mcp_manner_t *ngx_http_mcp_shared_manner(
    ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_interest_run(ngx_http_mcp_shared_t *us);
static ngx_int_t ngx_http_mcp_interest_change(ngx_http_mcp_shared_t *us,
    ngx_mcp_interest_job_t *job, ngx_pool_t *pool);
static void ngx_http_mcp_interest_change_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_interest_change_t *change, ngx_int_t rc);
static void ngx_http_mcp_interest_no_stream(ngx_http_mcp_shared_t *us);
static ngx_uint_t ngx_http_mcp_interest_in(
    ngx_http_mcp_interest_change_t *change, ngx_str_t *uris);
static ngx_int_t ngx_http_mcp_interest_request(ngx_http_mcp_shared_t *us,
    ngx_mcp_interest_job_t *job, ngx_pool_t *pool);
static void ngx_http_mcp_interest_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data);


ngx_http_mcp_reader_kind_t  ngx_http_mcp_shared_readers = {
    .number = NGX_HTTP_MCP_READER_SHARED,
    .name = ngx_string("own"),
    .create = ngx_http_mcp_shared_create,
    .held = ngx_http_mcp_shared_held,
    .signaled = ngx_http_mcp_shared_signaled,
    .tick = ngx_http_mcp_shared_tick,
    .replaced = ngx_http_mcp_shared_replaced,
    .wanted = ngx_http_mcp_shared_wanted,
    .filter = ngx_http_mcp_shared_filter,
    .acknowledged = ngx_http_mcp_shared_acknowledged,
    .before_open = ngx_http_mcp_shared_before_open,
    .opened = ngx_http_mcp_shared_opened,
    .event = ngx_http_mcp_shared_event,
    .gap = ngx_http_mcp_shared_gap,
    .disconnected = ngx_http_mcp_shared_disconnected,
    .stopped = ngx_http_mcp_shared_stopped,
    .ended = ngx_http_mcp_shared_ended
};


ngx_http_mcp_shared_handlers_t  *ngx_http_mcp_shared_handlers;


static ngx_str_t  ngx_http_mcp_interest_methods[] = {
    ngx_string("resources/unsubscribe"),
    ngx_string("resources/subscribe")
};


ngx_int_t
ngx_http_mcp_shared_ensure_all(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *tenant, ngx_str_t *audience_key)
{
    ngx_http_mcp_upstream_t  *u;

    for (u = ngx_http_mcp_router_next(&bridge->router, NULL);
         u;
         u = ngx_http_mcp_router_next(&bridge->router, u))
    {
        if (ngx_http_mcp_shared_ensure(bridge, u, tenant, audience_key)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_shared_ensure(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key)
{
    ngx_str_t      key;
    ngx_mcp_ref_t  ref;

    if (ngx_http_mcp_shared_record(bridge, u, tenant, audience_key, &ref)
        != NGX_OK
        || ngx_http_mcp_shared_key(bridge, u, tenant, audience_key, &key)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* even a holder that is about to drop the lease keeps it when signaled */

    if (ngx_mcp_lease_signal(bridge->zone, &key) == NGX_OK) {
        return NGX_OK;
    }

    return ngx_mcp_lease_ensure(bridge->zone, &key) == NGX_OK ? NGX_OK
                                                            : NGX_ERROR;
}


ngx_int_t
ngx_http_mcp_shared_record(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key,
    ngx_mcp_ref_t *ref)
{
    u_char            id[NGX_MCP_UUID_LEN];
    ngx_mcp_shared_t  in;

    ngx_http_mcp_stable_id(u, tenant, audience_key, id);

    ngx_memzero(&in, sizeof(ngx_mcp_shared_t));

    in.id.data = id;
    in.id.len = NGX_MCP_UUID_LEN;
    in.endpoint = bridge->endpoint;
    in.tenant = *tenant;
    in.list_key = *audience_key;
    in.upstream = u->name;
    in.limit = bridge->lists_max * bridge->router.n;

    return ngx_mcp_shared_get(bridge->zone, &in, ref);
}


/* composes the key of the lease in a buffer that the next call overwrites */

static ngx_int_t
ngx_http_mcp_shared_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key,
    ngx_str_t *key)
{
    ngx_str_t  *parts[4];

    parts[0] = &bridge->endpoint;
    parts[1] = &u->name;
    parts[2] = tenant;
    parts[3] = audience_key;

    return ngx_http_mcp_reader_key(&ngx_http_mcp_shared_readers.name, parts, 4,
                                  key);
}


static ngx_http_mcp_reader_t *
ngx_http_mcp_shared_create(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool)
{
    ngx_str_t               parts[4], *p[4];
    ngx_uint_t              i, declared;
    ngx_http_mcp_shared_t  *us;
    ngx_http_mcp_reader_t  *reader;

    for (i = 0; i < 4; i++) {
        p[i] = &parts[i];
    }

    us = ngx_pcalloc(pool, sizeof(ngx_http_mcp_shared_t));

    if (us == NULL || ngx_http_mcp_reader_key_parse(key, pool, p, 4) != NGX_OK)
    {
        return NULL;
    }

    us->upstream = ngx_http_mcp_shared_find(zone, parts, &us->bridge);

    if (us->upstream == NULL) {

        /* another configuration made the lease */

        return NULL;
    }

    us->tenant = parts[2];
    us->audience_key = parts[3];
    us->pool = pool;

    reader = &us->reader;

    if (ngx_mcp_audience_key_parse(&us->audience_key, &declared,
                                   &reader->audience.list_key)
        != NGX_OK)
    {
        return NULL;
    }

    reader->audience.capabilities = ngx_mcp_declared_compose(pool, declared);

    if (reader->audience.capabilities.data == NULL) {
        return NULL;
    }

    ngx_http_mcp_stable_id(us->upstream, &us->tenant, &us->audience_key,
                           us->id);

    reader->data = us;
    reader->upstream = us->upstream;
    reader->audience.tenant = us->tenant;
    reader->audience.session.data = us->id;
    reader->audience.session.len = NGX_MCP_UUID_LEN;

    return reader;
}


/* finds an upstream by the parts of a key: its endpoint and its name */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_shared_find(ngx_mcp_zone_t *zone, ngx_str_t *parts,
    ngx_http_mcp_bridge_t **bridge)
{
    ngx_uint_t                i;
    ngx_array_t              *bridges;
    ngx_http_mcp_bridge_t   **b;
    ngx_http_mcp_upstream_t  *u;

    bridges = zone->ctx[NGX_MCP_CTX_BRIDGES];
    b = bridges->elts;

    for (i = 0; i < bridges->nelts; i++) {

        if (b[i]->zone != zone
            || !ngx_mcp_equal(&b[i]->endpoint, &parts[0]))
        {
            continue;
        }

        u = ngx_http_mcp_router_find(&b[i]->router, &parts[1]);

        if (u) {
            *bridge = b[i];
            return u;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_mcp_shared_held(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t      *us;
    ngx_mcp_upstream_session_t  made;

    us = reader->data;

    if (ngx_http_mcp_shared_record(us->bridge, us->upstream, &us->tenant,
                                   &us->audience_key, &us->ref)
        != NGX_OK
        || ngx_mcp_shared_claim(us->bridge->zone, us->ref, &reader->lease)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp shared session at upstream \"%V\" of \"%V\" held, "
                   "tenant \"%V\"",
                   &us->upstream->name, &us->bridge->endpoint, &us->tenant);

    reader->owner = us->ref;

    us->unused_since = ngx_current_msec;
    ngx_http_mcp_backoff_init(&us->backoff);

    ngx_queue_init(&us->waiting);
    ngx_queue_init(&us->running);
    ngx_queue_init(&us->changes);

    us->work.handler = ngx_http_mcp_shared_work;
    us->work.data = us;
    us->work.log = ngx_cycle->log;

    if (ngx_mcp_upstream_session_peek(us->bridge->zone, us->ref,
                                      &us->upstream->name, &made)
        == NGX_OK)
    {
        us->established = 1;
        us->serial = made.serial;
    }

    ngx_http_mcp_shared_post(us);

    ngx_http_mcp_shared_handlers->held(us);

    ngx_http_mcp_shared_check_listening(us);

    return NGX_OK;
}


static void
ngx_http_mcp_shared_signaled(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->unused_since = ngx_current_msec;
    us->paused = 0;

    ngx_http_mcp_shared_check_listening(us);
    ngx_http_mcp_shared_post(us);

    ngx_http_mcp_shared_handlers->signaled(us);
}


void
ngx_http_mcp_shared_use(ngx_http_mcp_shared_t *us, ngx_uint_t user,
    ngx_uint_t needed)
{
    ngx_uint_t  users;

    users = needed ? (us->users | user) : (us->users & ~user);

    if (users == us->users) {
        return;
    }

    us->users = users;
    us->unused_since = ngx_current_msec;

    ngx_http_mcp_shared_post(us);
}


static void
ngx_http_mcp_shared_post(ngx_http_mcp_shared_t *us)
{
    ngx_post_event(&us->work, &ngx_posted_events);
}


/*
 * Checks whether clients need this stream because no other one notifies them of
 * changes: clients without a session, and, if the upstream keeps no sessions,
 * all clients.
 */

static void
ngx_http_mcp_shared_check_listening(ngx_http_mcp_shared_t *us)
{
    ngx_http_mcp_manner_t  *manner;

    manner = ngx_http_mcp_profile_manner(us->upstream, &us->tenant, 1);

    ngx_http_mcp_shared_use(us, NGX_HTTP_MCP_SHARED_LISTENS,
                            ngx_mcp_group_listens(us->bridge->zone,
                                                  &us->bridge->endpoint,
                                                  &us->tenant,
                                                  manner && manner->filters));
}


static void
ngx_http_mcp_shared_pause(ngx_http_mcp_shared_t *us)
{
    if (us->paused) {
        return;
    }

    us->paused = 1;
    us->resume = ngx_current_msec + ngx_http_mcp_backoff_next(&us->backoff);
}


static void
ngx_http_mcp_shared_established(ngx_http_mcp_shared_t *us, ngx_uint_t serial)
{
    us->established = 1;
    us->paused = 0;

    ngx_http_mcp_backoff_reset(&us->backoff);

    if (us->serial != serial) {

        /* the upstream has a new session, which has no subscriptions yet */

        us->serial = serial;
        us->no_stream = 0;
    }

    ngx_http_mcp_shared_post(us);
}


static void
ngx_http_mcp_shared_tick(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    if (ngx_mcp_shared_touch(us->bridge->zone, us->ref, reader->lease.fence)
        != NGX_OK)
    {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_RELEASED);
        return;
    }

    ngx_http_mcp_shared_check_listening(us);

    if (us->users || us->nrunning || us->nwaiting) {
        us->unused_since = ngx_current_msec;
    }

    if (ngx_current_msec - us->unused_since >= NGX_HTTP_MCP_SHARED_KEEP) {

        /* a later user finds no lease, and makes a new one */

        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_DROPPED);
        return;
    }

    if (us->no_stream
        && ngx_current_msec - us->refused >= NGX_HTTP_MCP_SHARED_RETRY)
    {
        us->no_stream = 0;
        ngx_http_mcp_shared_post(us);
    }

    if (us->paused && (ngx_msec_int_t) (ngx_current_msec - us->resume) >= 0)
    {
        us->paused = 0;
        ngx_http_mcp_shared_post(us);
    }
}


/* starts everything that is due: subscriptions, the stream, requests */

static void
ngx_http_mcp_shared_work(ngx_event_t *ev)
{
    ngx_http_mcp_shared_t      *us;
    ngx_mcp_upstream_session_t  made;

    us = ev->data;

    if (us->reader.replaced || ngx_exiting) {
        return;
    }

    if (!us->paused) {
        ngx_http_mcp_interest_run(us);
    }

    ngx_http_mcp_shared_use(us, NGX_HTTP_MCP_SHARED_SUBSCRIPTIONS,
                            ngx_mcp_interests(us->bridge->zone, us->ref));

    if (!ngx_queue_empty(&us->changes)) {
        ngx_http_mcp_reader_replace(&us->reader);
    }

    if (us->users == 0) {
        ngx_http_mcp_shared_stream_close(us);

    } else if (!us->listening && !us->no_stream && us->upstream->listen
               && (us->established || us->nrunning == 0))
    {
        us->listening = 1;
        us->stream_pending = (ngx_http_mcp_reader_open(&us->reader) == 0);

    } else if (us->stream_requested && us->stream_serial != us->serial
               && ngx_mcp_upstream_session_peek(us->bridge->zone, us->ref,
                                                &us->upstream->name, &made)
                  == NGX_OK
               && us->stream_serial != made.serial)
    {
        /* a request found that the upstream has forgotten the session */

        ngx_http_mcp_reader_reconnect(&us->reader);
    }

    ngx_http_mcp_shared_run(us);
}


void
ngx_http_mcp_shared_interests(ngx_mcp_zone_t *zone, uint64_t keys)
{
    ngx_queue_t            *q, *readers;
    ngx_http_mcp_shared_t  *us;
    ngx_http_mcp_reader_t  *reader;

    readers = ngx_http_mcp_reader_queue(zone, NGX_HTTP_MCP_READER_SHARED);

    for (q = ngx_queue_head(readers);
         q != ngx_queue_sentinel(readers);
         q = ngx_queue_next(q))
    {
        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
        us = reader->data;

        if (keys & NGX_MCP_RING_KEY(us->ref.block)) {
            ngx_http_mcp_shared_post(us);
        }
    }

    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_SUBSCRIPTION, keys);
}


static void
ngx_http_mcp_shared_replaced(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    ngx_http_mcp_shared_handlers->replaced(us);

    ngx_http_mcp_shared_close_requests(us);
}


static void
ngx_http_mcp_shared_ended(ngx_http_mcp_reader_t *reader, ngx_uint_t how)
{
    ngx_mcp_zone_t         *zone;
    ngx_http_mcp_shared_t  *us;

    us = reader->data;
    zone = us->bridge->zone;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp shared session at upstream \"%V\" of \"%V\" let go, "
                   "tenant \"%V\"",
                   &us->upstream->name, &us->bridge->endpoint, &us->tenant);

    ngx_http_mcp_shared_handlers->lost(us);

    if (how == NGX_HTTP_MCP_READER_DROPPED) {
        (void) ngx_mcp_shared_end(zone, us->ref, reader->lease.fence);

    } else {
        ngx_mcp_upstream_session_stream_closed(zone, us->ref);
    }

    ngx_http_mcp_shared_close_requests(us);
    ngx_http_mcp_shared_drop_changes(us);

    if (us->work.posted) {
        ngx_delete_posted_event(&us->work);
    }
}


ngx_int_t
ngx_http_mcp_shared_request(ngx_http_mcp_shared_t *us, ngx_str_t *method,
    ngx_str_t *params, ngx_http_mcp_shared_done_pt done, void *data)
{
    ngx_pool_t                     *pool;
    ngx_http_mcp_shared_request_t  *req;

    pool = ngx_create_pool(512, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    req = ngx_http_mcp_shared_enqueue(us, pool, method, params);

    if (req == NULL) {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    req->done = done;
    req->data = data;

    return NGX_OK;
}


/*
 * Makes a request that owns the pool, and adds it to us->waiting.  The caller
 * sets the other members of the request.  NULL: no memory; the pool is still
 * the caller's.
 */

static ngx_http_mcp_shared_request_t *
ngx_http_mcp_shared_enqueue(ngx_http_mcp_shared_t *us, ngx_pool_t *pool,
    ngx_str_t *method, ngx_str_t *params)
{
    ngx_http_mcp_shared_request_t  *req;

    req = ngx_pcalloc(pool, sizeof(ngx_http_mcp_shared_request_t));

    if (req == NULL
        || ngx_http_mcp_string_copy(pool, &req->method, method) != NGX_OK
        || ngx_http_mcp_string_copy(pool, &req->params, params) != NGX_OK
        || ngx_http_mcp_own_id_make(pool, &req->id) != NGX_OK)
    {
        return NULL;
    }

    req->pool = pool;
    req->us = us;

    ngx_queue_insert_tail(&us->waiting, &req->queue);
    us->nwaiting++;

    ngx_http_mcp_shared_post(us);

    return req;
}


/*
 * Starts waiting requests.  The upstream session is made by the request of the
 * stream, or, without a stream, by the first request, which runs alone.  Later
 * requests run in parallel.  No request is sent before that of the stream.
 */

static void
ngx_http_mcp_shared_run(ngx_http_mcp_shared_t *us)
{
    ngx_queue_t                    *q;
    ngx_http_mcp_shared_request_t  *req;

    while (!ngx_queue_empty(&us->waiting)
           && us->nrunning < NGX_HTTP_MCP_SHARED_RUNNING
           && !us->stream_pending && (us->established || us->nrunning == 0))
    {
        q = ngx_queue_head(&us->waiting);
        req = ngx_queue_data(q, ngx_http_mcp_shared_request_t, queue);

        ngx_queue_remove(q);
        us->nwaiting--;

        ngx_queue_insert_tail(&us->running, q);
        us->nrunning++;

        if (ngx_http_mcp_shared_start(req) != NGX_OK) {
            req->answer.outcome = NGX_HTTP_MCP_BAD;
            ngx_http_mcp_shared_end(req);
        }
    }
}


static ngx_int_t
ngx_http_mcp_shared_start(ngx_http_mcp_shared_request_t *req)
{
    ngx_http_mcp_shared_t            *us;
    ngx_http_mcp_upstream_request_t  *ureq;

    us = req->us;

    ureq = ngx_http_mcp_upstream_request_create(us->upstream,
                                                &us->reader.audience, NULL);
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    req->ureq = ureq;

    ureq->owner = us->ref;
    ureq->session_only = (req->uri.len != 0);
    ureq->message = ngx_http_mcp_shared_message;
    ureq->done = ngx_http_mcp_shared_done;
    ureq->destroyed = ngx_http_mcp_shared_destroyed;
    ureq->data = req;

    /* the texts of the caller may be freed before the request ends */

    if (ngx_http_mcp_upstream_request_compose(ureq, &req->id, &req->method,
                                              &req->params)
        != NGX_OK
        || ngx_http_mcp_string_copy(ureq->r->pool, &ureq->scope.name,
                                    &req->uri)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_upstream_request_run(ureq);
}


static void
ngx_http_mcp_shared_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                       id, code;
    ngx_mcp_json_t                 *json;
    ngx_mcp_consume_t               consume;
    ngx_http_mcp_shared_answer_t   *answer;
    ngx_http_mcp_shared_request_t  *req;

    req = ureq->data;
    json = ureq->x->scan;
    answer = &req->answer;

    if (json->members[NGX_MCP_PATH_METHOD].type == NGX_MCP_JSON_STRING) {
        ngx_memzero(&consume, sizeof(ngx_mcp_consume_t));

        consume.lease = req->us->reader.lease;
        consume.rc = NGX_AGAIN;

        ngx_http_mcp_shared_event(&req->us->reader, ureq, text, &consume);
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (ureq->answered || !ngx_mcp_json_same_id(&id, &req->id)) {
        return;
    }

    ureq->answered = 1;

    if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

        answer->code = ngx_mcp_error_code(&code);

        if (answer->code >= 0) {
            answer->code = NGX_MCP_INTERNAL_ERROR;
        }

        return;
    }

    answer->result = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT, text->data);
    answer->result.data = ngx_pstrdup(ureq->r->pool, &answer->result);

    if (answer->result.data == NULL) {
        answer->result.len = 0;
    }
}


static void
ngx_http_mcp_shared_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_shared_request_t  *req;

    req = ureq->data;

    req->answer.outcome = outcome;
    req->answer.status = ureq->x ? ureq->x->status : 0;
    req->answer.sessionless = ureq->sessionless;
    req->answer.filters = ureq->manner && ureq->manner->filters;
    req->answer.hint = ureq->hint;

    if (ureq->manner) {
        req->us->filters = req->answer.filters;
    }

    if (!req->us->stream_requested
        || (req->answer.filters && !req->us->reader.up))
    {
        req->us->early_answer = 1;
    }

    if (ureq->sessionless || req->answer.result.len || req->answer.code) {
        req->answer.serial = (ureq->us && !ureq->sessionless)
        ? ureq->us->serial : 0;

        ngx_http_mcp_shared_established(req->us, req->answer.serial);
    }

    ngx_http_mcp_shared_end(req);
}


/* nginx frees the memory of ureq, because the worker exits */

static void
ngx_http_mcp_shared_destroyed(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_shared_request_t  *req;

    req = ureq->data;
    req->ureq = NULL;
}


static void
ngx_http_mcp_shared_end(ngx_http_mcp_shared_request_t *req)
{
    ngx_http_mcp_shared_t  *us;

    us = req->us;

    ngx_queue_remove(&req->queue);
    us->nrunning--;

    req->done(us, &req->answer, req->data);

    ngx_http_mcp_shared_free(req);

    ngx_http_mcp_shared_post(us);
}


static void
ngx_http_mcp_shared_free(ngx_http_mcp_shared_request_t *req)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = req->ureq;

    if (ureq) {
        ngx_http_mcp_upstream_request_close(ureq);
    }

    ngx_destroy_pool(req->pool);
}


static void
ngx_http_mcp_shared_close_requests(ngx_http_mcp_shared_t *us)
{
    ngx_uint_t                      i;
    ngx_queue_t                    *q, *queues[2];
    ngx_http_mcp_shared_request_t  *req;

    queues[0] = &us->waiting;
    queues[1] = &us->running;

    for (i = 0; i < 2; i++) {

        while (!ngx_queue_empty(queues[i])) {
            q = ngx_queue_head(queues[i]);
            req = ngx_queue_data(q, ngx_http_mcp_shared_request_t, queue);

            ngx_queue_remove(q);
            ngx_http_mcp_shared_free(req);
        }
    }

    us->nwaiting = 0;
    us->nrunning = 0;
}


/* drops the changes of subscriptions; the next holder makes them */

static void
ngx_http_mcp_shared_drop_changes(ngx_http_mcp_shared_t *us)
{
    ngx_queue_t                     *q;
    ngx_http_mcp_interest_change_t  *change;

    while (!ngx_queue_empty(&us->changes)) {
        q = ngx_queue_head(&us->changes);
        change = ngx_queue_data(q, ngx_http_mcp_interest_change_t, queue);

        ngx_queue_remove(q);
        ngx_destroy_pool(change->pool);
    }
}


static void
ngx_http_mcp_shared_stream_close(ngx_http_mcp_shared_t *us)
{
    if (!us->listening) {
        return;
    }

    us->listening = 0;
    us->stream_pending = 0;
    us->stream_requested = 0;
    us->early_answer = 0;
    us->idle = 1;

    ngx_http_mcp_reader_close(&us->reader);
    ngx_mcp_upstream_session_stream_closed(us->bridge->zone, us->ref);
}


static ngx_uint_t
ngx_http_mcp_shared_wanted(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    return us->users != 0;
}


static ngx_int_t
ngx_http_mcp_shared_filter(ngx_http_mcp_reader_t *reader, ngx_pool_t *pool,
    ngx_str_t *uris)
{
    u_char                          *p;
    size_t                           len;
    ngx_str_t                       *uri;
    ngx_uint_t                       i, n;
    ngx_queue_t                     *q;
    ngx_http_mcp_shared_t           *us;
    ngx_http_mcp_interest_change_t  *change;

    us = reader->data;

    if (ngx_mcp_interest_uris(us->bridge->zone, us->ref, NULL,
                              NGX_MAX_INT_T_VALUE, pool, &uri, &n)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    len = 2;

    for (i = 0; i < n; i++) {
        len += 1 + ngx_mcp_json_escaped_len(&uri[i]);
    }

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    uris->data = p;
    *p++ = '[';

    for (i = 0; i < n; i++) {

        if (i) {
            *p++ = ',';
        }

        p = ngx_mcp_json_escape(p, &uri[i]);
    }

    *p++ = ']';
    uris->len = p - uris->data;

    for (q = ngx_queue_head(&us->changes);
         q != ngx_queue_sentinel(&us->changes);
         q = ngx_queue_next(q))
    {
        change = ngx_queue_data(q, ngx_http_mcp_interest_change_t, queue);
        change->sent = 1;
    }

    return NGX_OK;
}


/* a subscription is accepted if the acknowledged filter has its URI */

static void
ngx_http_mcp_shared_acknowledged(ngx_http_mcp_reader_t *reader,
    ngx_str_t *uris)
{
    ngx_int_t                        rc;
    ngx_queue_t                     *q;
    ngx_http_mcp_shared_t           *us;
    ngx_http_mcp_interest_change_t  *change;

    us = reader->data;

    us->filters = reader->ureq->manner->filters;

    if (!us->filters) {
        ngx_http_mcp_interest_no_stream(us);
    }

    q = ngx_queue_head(&us->changes);

    while (q != ngx_queue_sentinel(&us->changes)) {
        change = ngx_queue_data(q, ngx_http_mcp_interest_change_t, queue);
        q = ngx_queue_next(q);

        rc = change->job.subscribe ? NGX_DECLINED : NGX_OK;

        if (change->job.subscribe && ngx_http_mcp_interest_in(change, uris)) {

            /* even if the filter had the URI before this change */

            rc = NGX_OK;

        } else if (!change->sent) {
            continue;
        }

        ngx_http_mcp_interest_change_done(us, change, rc);
    }

    ngx_http_mcp_shared_post(us);
}


/* the stream is requested: changes of lists after this are notified */

static void
ngx_http_mcp_shared_before_open(ngx_http_mcp_reader_t *reader,
    ngx_uint_t serial)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->filters = (reader->next ? reader->next
                                : reader->ureq)->manner->filters;
    us->stream_pending = 0;
    us->stream_requested = 1;
    us->stream_serial = serial;

    ngx_http_mcp_shared_established(us, serial);
}


static void
ngx_http_mcp_shared_opened(ngx_http_mcp_reader_t *reader, ngx_uint_t gap)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    (void) ngx_mcp_upstream_session_stream_opened(us->bridge->zone, us->ref,
                                                  reader->serial,
                                                  reader->resumed);

    if (gap && !us->idle) {
        ngx_http_mcp_shared_gap(reader, "");

    } else if (!reader->resumed && us->early_answer) {
        ngx_http_mcp_shared_gap_resources(us);

        (void) ngx_http_mcp_shared_handlers->changed(us, NGX_MCP_LIST_ALL);
    }

    us->early_answer = 0;
    us->idle = 0;
}


static void
ngx_http_mcp_shared_disconnected(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->stream_pending = 0;
    us->stream_requested = 0;

    ngx_mcp_upstream_session_stream_closed(us->bridge->zone, us->ref);

    ngx_http_mcp_shared_post(us);
}


static void
ngx_http_mcp_shared_stopped(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->listening = 0;

    if (us->users) {
        us->no_stream = 1;
        us->refused = ngx_current_msec;
    }

    ngx_http_mcp_shared_manner(us);
    ngx_http_mcp_interest_no_stream(us);

    ngx_http_mcp_shared_disconnected(reader);
}


static void
ngx_http_mcp_shared_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume)
{
    ngx_str_t               id, uri;
    ngx_uint_t              method;
    ngx_pool_t             *pool;
    ngx_http_mcp_shared_t  *us;
    ngx_mcp_list_change_t  *change;

    us = reader->data;

    id = ngx_mcp_json_span(ureq->x->scan, NGX_MCP_PATH_ID, text->data);
    method = ngx_mcp_method_of(ureq->x->scan, text);
    change = ngx_mcp_list_change(method);

    if (id.len) {

        if (method == NGX_MCP_METHOD_PING) {
            ngx_http_mcp_server_request_reply(ureq, &us->reader.audience, &id,
                                              0, "{}");

        } else if (ureq->x->scan->members[NGX_MCP_PATH_METHOD].type
                   == NGX_MCP_JSON_STRING)
        {
            ngx_http_mcp_server_request_reply(ureq, &us->reader.audience, &id,
                                              NGX_MCP_METHOD_NOT_FOUND,
                                              "no client receives requests "
                                              "of a shared session");
        }

    } else if (change) {

        if (ngx_http_mcp_shared_handlers->changed(us, change->kinds) != NGX_OK)
        {
            ngx_str_null(&uri);
            ngx_http_mcp_shared_notify(us, NULL, text, &uri,
                                       NGX_MCP_EVENT_CHANGED(change->offered),
                                       consume);
        }

    } else if (method == NGX_MCP_METHOD_RESOURCES_UPDATED) {

        /* the pool of the stream's request may live for days */

        pool = ngx_create_pool(1024, ngx_cycle->log);

        if (pool) {
            uri = ngx_http_mcp_upstream_message_uri(ureq, text, pool);

            if (uri.len) {
                ngx_http_mcp_shared_notify(us, pool, text, &uri, 0, consume);
            }

            ngx_destroy_pool(pool);
        }
    }

    if (ngx_mcp_lease_consume(us->bridge->zone, consume) == NGX_ABORT) {
        ngx_http_mcp_reader_check_lease(&us->reader);
    }
}


static void
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


/*
 * After a gap, notifies the subscribers of the resources to which the present
 * upstream session is subscribed.  Subscribers of other resources are notified
 * when the session subscribes to these.
 */

static void
ngx_http_mcp_shared_gap_resources(ngx_http_mcp_shared_t *us)
{
    ngx_int_t    rc;
    ngx_str_t   *uris;
    ngx_uint_t   i, n;
    ngx_pool_t  *pool;

    n = 0;
    uris = NULL;
    rc = NGX_ERROR;

    pool = ngx_create_pool(4096, ngx_cycle->log);

    if (pool) {
        rc = ngx_mcp_interest_uris(us->bridge->zone, us->ref,
                                   &us->reader.serial,
                                   NGX_HTTP_MCP_SHARED_URIS, pool, &uris, &n);
    }

    if (rc != NGX_OK) {
        (void) ngx_mcp_log_gap(us->bridge->zone, &us->bridge->endpoint,
                               &us->tenant);
        n = 0;
    }

    for (i = 0; i < n; i++) {
        ngx_http_mcp_shared_notify_updated(us, &uris[i]);
    }

    if (pool) {
        ngx_destroy_pool(pool);
    }
}


static void
ngx_http_mcp_shared_gap_lists(ngx_http_mcp_shared_t *us)
{
    ngx_str_t               none;
    ngx_uint_t              cached;
    ngx_mcp_list_change_t  *change;

    cached = (us->bridge->lists == NGX_HTTP_MCP_LIST_CACHE_ON)
             ? us->bridge->lists_kinds : 0;

    (void) ngx_http_mcp_shared_handlers->changed(us, NGX_MCP_LIST_ALL);

    ngx_str_null(&none);

    for (change = ngx_mcp_list_changes; change->kinds; change++) {

        if (change->kinds & cached) {
            continue;
        }

        ngx_http_mcp_shared_notify(us, NULL, &change->notification, &none,
                                   NGX_MCP_EVENT_OFFERED(change->offered),
                                   NULL);
    }
}


static void
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
        ngx_http_mcp_shared_notify(us, pool, &text, uri, 0, NULL);
    }

    ngx_destroy_pool(pool);
}


/*
 * Notifies sessions of an update of the resource with this URI or, if uri is
 * empty, of a change of lists.  Then flags are NGX_MCP_EVENT_OFFERED() or
 * .._CHANGED(), and pool may be NULL.
 */

static void
ngx_http_mcp_shared_notify(ngx_http_mcp_shared_t *us, ngx_pool_t *pool,
    ngx_str_t *text, ngx_str_t *uri, ngx_uint_t flags,
    ngx_mcp_consume_t *consume)
{
    ngx_mcp_post_t          post;
    ngx_mcp_delivery_t      d[2 + 2 * NGX_HTTP_MCP_SHARED_PARENTS];
    ngx_http_mcp_manner_t  *manner;

    ngx_memzero(d, sizeof(ngx_mcp_delivery_t));
    ngx_memzero(&post, sizeof(ngx_mcp_post_t));

    post.deliveries = d;
    post.n = 1;
    post.pool = pool;
    post.consume = consume;

    d[0].endpoint = &us->bridge->endpoint;
    d[0].tenant = &us->tenant;
    d[0].text = *text;
    d[0].event.uri[0] = *uri;
    d[0].event.list_key = us->audience_key;

    /* sessions with lists of their own are notified on their own streams */

    if (uri->len == 0) {
        manner = ngx_http_mcp_manner(us->upstream, &us->tenant, 1);

        d[0].event.flags = flags;

        if (manner == NULL || !manner->filters) {
            d[0].event.flags |= NGX_MCP_EVENT_LISTED;
        }

        /*
         * Sessions with a stream of their own at the upstream are notified of
         * the change there, but not of a gap of the shared session.
         */

        if (consume) {
            d[0].event.upstream = us->upstream->name;
        }

    } else {

        if (consume) {
            post.n += ngx_http_mcp_shared_parents(us, uri, d);
        }

        if (uri->len <= NGX_MCP_TOPIC_URI_MAX) {

            /* a delivery to calls that wait for an update of the resource */

            d[post.n] = d[0];
            d[post.n].topic.uri = *uri;
            d[post.n].topic.other = 1;
            post.n++;
        }
    }

    if (ngx_mcp_outbox_send(us->bridge->zone, &post) == NGX_ABORT) {
        return;
    }

    ngx_mcp_count(us->bridge->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

    if (uri->len && consume) {
        ngx_mcp_interest_updated(us->bridge->zone, us->ref, uri);
    }
}


/*
 * The updated resource may be a part of other resources to which sessions are
 * subscribed, its parents: its URI then begins with their URIs.  Makes copies
 * of the delivery d[0] for the parents, up to two for each of
 * NGX_HTTP_MCP_SHARED_PARENTS places, and returns the number of copies.
 * Clients with a stream at the upstream are notified on that stream.
 */

static ngx_uint_t
ngx_http_mcp_shared_parents(ngx_http_mcp_shared_t *us, ngx_str_t *uri,
    ngx_mcp_delivery_t *d)
{
    size_t      i;
    ngx_str_t   parent;
    ngx_uint_t  n, places;

    n = 0;
    places = 0;
    parent.data = uri->data;

    for (i = uri->len - 1; i && places < NGX_HTTP_MCP_SHARED_PARENTS; i--) {

        if (uri->data[i] != '/' && uri->data[i] != '?' && uri->data[i] != '#')
        {
            continue;
        }

        places++;

        /* "a:b/c" may be a part of "a:b/" and of "a:b" */

        for (parent.len = i + 1; parent.len >= i; parent.len--) {

            if (parent.len == uri->len
                || !ngx_mcp_interest_exists(us->bridge->zone, us->ref, &parent))
            {
                continue;
            }

            n++;

            d[n] = d[0];
            d[n].event.uri[0] = parent;
            d[n].event.upstream = us->upstream->name;
        }
    }

    return n;
}


/*
 * Returns the upstream's manner, and sets us->filters accordingly.  NULL: this
 * worker does not know the manner yet; us->filters is not changed.
 */

static ngx_http_mcp_manner_t *
ngx_http_mcp_shared_manner(ngx_http_mcp_shared_t *us)
{
    ngx_http_mcp_manner_t  *manner;

    manner = ngx_http_mcp_manner(us->upstream, &us->tenant, 0);

    if (manner) {
        us->filters = manner->filters;
    }

    return manner;
}


static void
ngx_http_mcp_interest_run(ngx_http_mcp_shared_t *us)
{
    ngx_int_t                rc;
    ngx_pool_t              *pool;
    ngx_http_mcp_manner_t   *manner;
    ngx_mcp_interest_job_t  *job;

    manner = ngx_http_mcp_shared_manner(us);

    if (manner == NULL && !us->established && !us->no_stream
        && us->upstream->listen)
    {
        /* the request of the stream will show how to subscribe */

        return;
    }

    for ( ;; ) {

        pool = ngx_create_pool(512, ngx_cycle->log);
        if (pool == NULL) {
            ngx_http_mcp_shared_pause(us);
            return;
        }

        job = ngx_palloc(pool, sizeof(ngx_mcp_interest_job_t));

        rc = job ? ngx_mcp_interest_next(us->bridge->zone, us->ref,
                                         us->reader.lease.fence, pool, job)
                 : NGX_ERROR;

        if (rc != NGX_OK) {
            ngx_destroy_pool(pool);

            if (rc == NGX_ERROR) {
                ngx_http_mcp_shared_pause(us);
            }

            return;
        }

        if (us->filters) {

            if (ngx_http_mcp_interest_change(us, job, pool) == NGX_OK) {
                continue;
            }

        } else if (ngx_http_mcp_interest_request(us, job, pool) == NGX_OK) {
            continue;
        }

        ngx_mcp_interest_done(us->bridge->zone, us->reader.lease.fence, job,
                              NGX_AGAIN, 0);
        ngx_destroy_pool(pool);

        ngx_http_mcp_shared_pause(us);
        return;
    }
}


/*
 * Changes a subscription at an upstream where the request of the stream names
 * the URIs: an open stream is replaced by a new one, and a stream that is being
 * opened is replaced as soon as it is open.
 */

static ngx_int_t
ngx_http_mcp_interest_change(ngx_http_mcp_shared_t *us,
    ngx_mcp_interest_job_t *job, ngx_pool_t *pool)
{
    ngx_http_mcp_interest_change_t  *change;

    change = ngx_pcalloc(pool, sizeof(ngx_http_mcp_interest_change_t));
    if (change == NULL) {
        return NGX_ERROR;
    }

    change->pool = pool;
    change->job = *job;

    ngx_queue_insert_tail(&us->changes, &change->queue);

    if (job->subscribe && us->reader.up
        && ngx_http_mcp_interest_in(change, &us->reader.ureq->acknowledged))
    {
        /* the open stream already carries updates of the resource */

        ngx_http_mcp_interest_change_done(us, change, NGX_OK);

    } else if (us->no_stream) {
        ngx_http_mcp_interest_change_done(us, change, NGX_DECLINED);
    }

    return NGX_OK;
}


/* notes the result of a change in the zone (ngx_mcp_interest_done()) */

static void
ngx_http_mcp_interest_change_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_interest_change_t *change, ngx_int_t rc)
{
    ngx_mcp_upstream_session_t  made;

    ngx_queue_remove(&change->queue);

    if (rc == NGX_DECLINED && change->job.subscribe) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" of endpoint \"%V\" does not send "
                      "updates of \"%V\"",
                      &us->upstream->name, &us->bridge->endpoint,
                      &change->job.uri);
    }

    /* before the upstream changed its revision, it may have had a session */

    if (ngx_mcp_upstream_session_peek(us->bridge->zone, us->ref,
                                      &us->upstream->name, &made)
        != NGX_OK)
    {
        made.serial = 0;
    }

    ngx_mcp_interest_done(us->bridge->zone, us->reader.lease.fence,
                          &change->job, rc, made.serial);

    ngx_destroy_pool(change->pool);
}


/*
 * Ends the wait of all changes for a stream, because there will be none.  They
 * are refused, or, if the upstream now has resources/subscribe, they are made
 * by requests.
 */

static void
ngx_http_mcp_interest_no_stream(ngx_http_mcp_shared_t *us)
{
    ngx_int_t     rc;
    ngx_queue_t  *q;

    rc = us->filters ? NGX_DECLINED : NGX_BUSY;

    while (!ngx_queue_empty(&us->changes)) {
        q = ngx_queue_head(&us->changes);

        ngx_http_mcp_interest_change_done(us, ngx_queue_data(q,
                                            ngx_http_mcp_interest_change_t,
                                            queue),
                                    rc);
    }
}


/* returns whether the subscription's URI is in this raw array of URIs */

static ngx_uint_t
ngx_http_mcp_interest_in(ngx_http_mcp_interest_change_t *change,
    ngx_str_t *uris)
{
    ngx_str_t  rest, raw, uri;

    uri.data = ngx_pnalloc(change->pool,
                           ngx_mcp_json_escaped_len(&change->job.uri));
    if (uri.data == NULL) {
        return 0;
    }

    uri.len = ngx_mcp_json_escape(uri.data, &change->job.uri) - uri.data;
    rest = *uris;

    while (rest.len && ngx_mcp_json_element(&rest, &raw) == NGX_OK) {
        if (ngx_mcp_json_same_id(&raw, &uri)) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_mcp_interest_request(ngx_http_mcp_shared_t *us,
    ngx_mcp_interest_job_t *job, ngx_pool_t *pool)
{
    ngx_str_t                       params;
    ngx_http_mcp_shared_request_t  *req;

    params = ngx_mcp_uri_compose(pool, &job->uri);

    if (params.data == NULL) {
        return NGX_ERROR;
    }

    req = ngx_http_mcp_shared_enqueue(us, pool,
                               &ngx_http_mcp_interest_methods[job->subscribe],
                               &params);
    if (req == NULL) {
        return NGX_ERROR;
    }

    req->uri = job->uri;
    req->done = ngx_http_mcp_interest_done;
    req->data = job;

    return NGX_OK;
}


static void
ngx_http_mcp_interest_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data)
{
    ngx_mcp_interest_job_t *job = data;

    ngx_int_t  rc;

    if (answer->filters && answer->outcome == NGX_HTTP_MCP_OK) {

        /* the upstream has no resources/subscribe: the stream has to do it */

        rc = NGX_BUSY;

    } else if (answer->result.len
               || (answer->sessionless && answer->outcome == NGX_HTTP_MCP_OK))
    {
        rc = NGX_OK;

    } else if (answer->code) {
        rc = NGX_DECLINED;

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" of endpoint \"%V\" refused %V of "
                      "\"%V\" in the shared session with error %i",
                      &us->upstream->name, &us->bridge->endpoint,
                      &ngx_http_mcp_interest_methods[job->subscribe],
                      &job->uri, answer->code);

    } else {
        rc = NGX_AGAIN;
        ngx_http_mcp_shared_pause(us);
    }

    if (job->again && rc != NGX_AGAIN && rc != NGX_BUSY && us->reader.up
        && us->reader.serial == answer->serial)
    {
        /* updates before the subscription was made again were missed */

        ngx_http_mcp_shared_notify_updated(us, &job->uri);
    }

    ngx_mcp_interest_done(us->bridge->zone, us->reader.lease.fence, job, rc,
                          answer->serial);
}
