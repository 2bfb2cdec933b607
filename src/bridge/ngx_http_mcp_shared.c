
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_interest.h"


/* ms; after this an upstream may have learned to offer a GET stream */
#define NGX_HTTP_MCP_SHARED_RETRY       300000


static ngx_int_t ngx_http_mcp_shared_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_str_t *key);
static ngx_http_mcp_reader_t *ngx_http_mcp_shared_create(ngx_mcp_zone_t *zone,
    ngx_str_t *key, ngx_pool_t *pool);
static ngx_http_mcp_upstream_t *ngx_http_mcp_shared_find(ngx_mcp_zone_t *zone,
    ngx_str_t *parts, ngx_http_mcp_bridge_t **bridge);
static ngx_int_t ngx_http_mcp_shared_held(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_poked(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_tick(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_work(ngx_event_t *ev);
static void ngx_http_mcp_shared_quiet(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_shared_ended(ngx_http_mcp_reader_t *reader,
    ngx_uint_t how);


ngx_http_mcp_reader_kind_t  ngx_http_mcp_shared_readers = {
    ngx_string("own"),
    ngx_http_mcp_shared_create,
    ngx_http_mcp_shared_held,
    ngx_http_mcp_shared_poked,
    ngx_http_mcp_shared_tick,
    ngx_http_mcp_shared_quiet,
    ngx_http_mcp_shared_wanted,
    NULL,                                  /* request */
    ngx_http_mcp_shared_requested,
    ngx_http_mcp_shared_opened,
    ngx_http_mcp_shared_event,
    ngx_http_mcp_shared_gap,
    ngx_http_mcp_shared_broken,
    ngx_http_mcp_shared_stopped,
    ngx_http_mcp_shared_ended,
    { NULL, NULL }
};


ngx_http_mcp_shared_handlers_t  *ngx_http_mcp_shared_handlers;

static ngx_array_t        *ngx_http_mcp_shared_bridges;


void
ngx_http_mcp_shared_init(ngx_array_t *bridges)
{
    ngx_http_mcp_shared_bridges = bridges;
}


ngx_int_t
ngx_http_mcp_shared_ensure(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key)
{
    ngx_str_t      key;
    ngx_mcp_ref_t  ref;

    if (ngx_http_mcp_shared_record(bridge, u, tenant, list_key, &ref) != NGX_OK
        || ngx_http_mcp_shared_key(bridge, u, tenant, list_key, &key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* in this order: its holder may be about to drop one that nobody wants */

    if (ngx_mcp_lease_signal(bridge->zone, &key) == NGX_OK) {
        return NGX_OK;
    }

    return ngx_mcp_lease_ensure(bridge->zone, &key) == NGX_OK ? NGX_OK
                                                            : NGX_ERROR;
}


ngx_int_t
ngx_http_mcp_shared_record(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_mcp_ref_t *ref)
{
    u_char            id[NGX_MCP_UUID_LEN];
    ngx_mcp_shared_t  in;

    ngx_http_mcp_stable_id(u, tenant, list_key, id);

    in.id.data = id;
    in.id.len = NGX_MCP_UUID_LEN;
    in.endpoint = bridge->endpoint;
    in.tenant = *tenant;
    in.list_key = *list_key;
    in.upstream = u->name;
    in.limit = bridge->lists_max * bridge->router.n;

    return ngx_mcp_shared_get(bridge->zone, &in, ref);
}


/* into a buffer that the next call uses again */

static ngx_int_t
ngx_http_mcp_shared_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_str_t *key)
{
    ngx_str_t  *parts[4];

    parts[0] = &bridge->endpoint;
    parts[1] = &u->name;
    parts[2] = tenant;
    parts[3] = list_key;

    return ngx_http_mcp_reader_key(&ngx_http_mcp_shared_readers.name, parts, 4,
                                  key);
}


static ngx_http_mcp_reader_t *
ngx_http_mcp_shared_create(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool)
{
    ngx_str_t               parts[4], *p[4];
    ngx_uint_t              i;
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

        /* of another configuration */

        return NULL;
    }

    us->tenant = parts[2];
    us->list_key = parts[3];
    us->pool = pool;

    ngx_http_mcp_stable_id(us->upstream, &us->tenant, &us->list_key,
                           us->id);

    reader = &us->reader;

    reader->data = us;
    reader->upstream = us->upstream;
    reader->audience.tenant = us->tenant;
    reader->audience.list_key = us->list_key;
    reader->audience.session.data = us->id;
    reader->audience.session.len = NGX_MCP_UUID_LEN;

    return reader;
}


/* by the parts of a key: endpoint and name */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_shared_find(ngx_mcp_zone_t *zone, ngx_str_t *parts,
    ngx_http_mcp_bridge_t **bridge)
{
    ngx_uint_t                i;
    ngx_http_mcp_bridge_t   **b;
    ngx_http_mcp_upstream_t  *u;

    b = ngx_http_mcp_shared_bridges->elts;

    for (i = 0; i < ngx_http_mcp_shared_bridges->nelts; i++) {

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
                                   &us->list_key, &us->ref)
        != NGX_OK
        || ngx_mcp_shared_claim(us->bridge->zone, us->ref,
                                reader->lease.fence)
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

    us->work.handler = ngx_http_mcp_shared_work;
    us->work.data = us;
    us->work.log = ngx_cycle->log;

    if (ngx_mcp_upstream_session_peek(us->bridge->zone, us->ref,
                                      &us->upstream->name, &made)
        == NGX_OK)
    {
        us->made = 1;
        us->serial = made.serial;
    }

    ngx_http_mcp_shared_post(us);

    if (ngx_http_mcp_shared_handlers) {
        ngx_http_mcp_shared_handlers->held(us);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_shared_poked(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    us->unused_since = ngx_current_msec;
    us->paused = 0;

    ngx_http_mcp_shared_post(us);

    if (ngx_http_mcp_shared_handlers) {
        ngx_http_mcp_shared_handlers->poked(us);
    }
}


void
ngx_http_mcp_shared_use(ngx_http_mcp_shared_t *us, ngx_uint_t who,
    ngx_uint_t needed)
{
    ngx_uint_t  needs;

    needs = needed ? (us->needs | who) : (us->needs & ~who);

    if (needs == us->needs) {
        return;
    }

    us->needs = needs;
    us->unused_since = ngx_current_msec;

    ngx_http_mcp_shared_post(us);
}


void
ngx_http_mcp_shared_post(ngx_http_mcp_shared_t *us)
{
    ngx_post_event(&us->work, &ngx_posted_events);
}


void
ngx_http_mcp_shared_pause(ngx_http_mcp_shared_t *us)
{
    if (us->paused) {
        return;
    }

    us->paused = 1;
    us->resume = ngx_current_msec + ngx_http_mcp_backoff_next(&us->backoff);
}


void
ngx_http_mcp_shared_established(ngx_http_mcp_shared_t *us, ngx_uint_t serial)
{
    us->made = 1;
    us->paused = 0;

    ngx_http_mcp_backoff_reset(&us->backoff);

    if (us->serial != serial) {

        /* another session there: all is to be subscribed to again */

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

    if (us->needs || us->nrunning || us->nwaiting) {
        us->unused_since = ngx_current_msec;
    }

    if (ngx_current_msec - us->unused_since >= NGX_HTTP_MCP_SHARED_KEEP) {

        /* a later user finds no lease, and makes one */

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


static void
ngx_http_mcp_shared_work(ngx_event_t *ev)
{
    ngx_http_mcp_shared_t      *us;
    ngx_mcp_upstream_session_t  made;

    us = ev->data;

    if (us->reader.quiet || ngx_exiting) {
        return;
    }

    if (!us->paused) {
        ngx_http_mcp_interest_run(us);
    }

    ngx_http_mcp_shared_use(us, NGX_HTTP_MCP_SHARED_SUBSCRIPTIONS,
                            ngx_mcp_interests(us->bridge->zone, us->ref));

    if (us->needs == 0) {
        ngx_http_mcp_shared_stream_close(us);

    } else if (!us->listening && !us->no_stream && us->upstream->listen
               && (us->made || us->nrunning == 0))
    {
        ngx_http_mcp_shared_stream_open(us);

    } else if (us->begun && us->stream_serial != us->serial
               && ngx_mcp_upstream_session_peek(us->bridge->zone, us->ref,
                                                &us->upstream->name, &made)
                  == NGX_OK
               && us->stream_serial != made.serial)
    {
        /* a request found that the session of the stream was forgotten */

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

    readers = &ngx_http_mcp_shared_readers.readers;

    for (q = readers->next ? ngx_queue_head(readers) : readers;
         q != readers;
         q = ngx_queue_next(q))
    {
        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
        us = reader->data;

        if (us->bridge->zone == zone
            && keys & NGX_MCP_RING_KEY(us->ref.block))
        {
            ngx_http_mcp_shared_post(us);
        }
    }

    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_SUBSCRIPTION, keys);
}


static void
ngx_http_mcp_shared_quiet(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_shared_t  *us;

    us = reader->data;

    if (ngx_http_mcp_shared_handlers) {
        ngx_http_mcp_shared_handlers->quiet(us);
    }

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

    if (ngx_http_mcp_shared_handlers) {
        ngx_http_mcp_shared_handlers->lost(us);
    }

    if (how == NGX_HTTP_MCP_READER_DROPPED) {
        (void) ngx_mcp_shared_end(zone, us->ref, reader->lease.fence);

    } else {
        ngx_mcp_upstream_session_stream_closed(zone, us->ref);
    }

    ngx_http_mcp_shared_close_requests(us);

    if (us->work.posted) {
        ngx_delete_posted_event(&us->work);
    }
}
