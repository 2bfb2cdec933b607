
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_event_in.h"
#include "ngx_http_mcp_topic.h"


/* feeds on demand may use one eighth of a worker's connections */
#define NGX_HTTP_MCP_FEED_SHARE  8

/* a tenant may have half of the feeds on demand of a worker */
#define NGX_HTTP_MCP_FEED_TENANTS  2

/* ms between two lines of the log about a limit */
#define NGX_HTTP_MCP_FEED_LOG    60000

/* ms between two checks whether a feed on demand is still needed */
#define NGX_HTTP_MCP_FEED_CHECK  5000

/* bytes of a block of the pool for one event */
#define NGX_HTTP_MCP_FEED_SCRATCH  4096


/* a feed that this worker reads */

typedef struct {
    ngx_http_mcp_reader_t     reader;
    ngx_http_mcp_bridge_t    *bridge;
    ngx_http_mcp_feed_t      *feed;
    ngx_str_t                 tenant;       /* tenant of the feed, if the feed
                                               is on demand for a tenant
                                               (ngx_http_mcp_feed_tenant()) */
    ngx_str_t                 topic;        /* topic of the feed; empty: all
                                               topics */
    ngx_str_t                 default_topic;  /* topic of events that name no
                                                 topic */
    ngx_msec_t                wanted;       /* time when the feed was needed
                                               last */
    ngx_msec_t                checked;      /* time of the last check whether
                                               the feed is needed */
    ngx_mcp_group_cursor_t    cursor;       /* position of this check in the
                                               zone, if it was interrupted */
    ngx_pool_t               *scratch;      /* memory for one event */
    const char               *logged_error;  /* reason of the last refusal of an
                                                event that was logged */
} ngx_http_mcp_feed_stream_t;


/* a feed for which a wait waits */

struct ngx_http_mcp_feed_awaited_s {
    ngx_http_mcp_waiter_t         waiter;
    ngx_http_mcp_feed_wait_t     *wait;
    ngx_http_mcp_feed_awaited_t  *next;     /* next feed of the same wait */
    ngx_http_mcp_bridge_t        *bridge;
    ngx_http_mcp_feed_t          *feed;
    ngx_mcp_ref_t                 lease;
};


/* a request to open a feed */

typedef struct {
    ngx_http_mcp_bridge_t        *bridge;
    ngx_http_mcp_feed_t          *feed;
    ngx_str_t                    *tenant;   /* tenant of the feed; NULL: all
                                               tenants */
    ngx_str_t                    *topic;    /* topic of the feed; NULL: all
                                               topics */
    ngx_mcp_caller_t             *caller;   /* the client whose limits apply;
                                               NULL: none */
    ngx_pool_t                   *pool;
    ngx_http_mcp_feed_wait_t    **wait;     /* the wait to which the feed is
                                               added; NULL: none */
    ngx_str_t                     key;      /* key of the feed's lease */
} ngx_http_mcp_feed_request_t;


static void ngx_http_mcp_feed_tenants(ngx_http_mcp_feed_request_t *req);
static const char *ngx_http_mcp_feed_request(ngx_http_mcp_feed_request_t *req);
static const char *ngx_http_mcp_feed_open(ngx_http_mcp_feed_request_t *req);
static void ngx_http_mcp_feed_add_wait(ngx_http_mcp_feed_request_t *req);
static void ngx_http_mcp_feed_ready(void *data);
static void ngx_http_mcp_feed_timeout(void *data);
static ngx_http_mcp_reader_t *ngx_http_mcp_feed_create(ngx_mcp_zone_t *zone,
    ngx_str_t *key, ngx_pool_t *pool);
static ngx_http_mcp_feed_t *ngx_http_mcp_feed_find(ngx_mcp_zone_t *zone,
    ngx_str_t *parts, ngx_http_mcp_bridge_t **b);
static ngx_int_t ngx_http_mcp_feed_held(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_feed_signaled(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_feed_tick(ngx_http_mcp_reader_t *reader);
static ngx_int_t ngx_http_mcp_feed_wanted(ngx_http_mcp_feed_stream_t *fs);
static ngx_int_t ngx_http_mcp_feed_attempt(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_feed_opened(ngx_http_mcp_reader_t *reader,
    ngx_uint_t gap);
static void ngx_http_mcp_feed_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume);
static void ngx_http_mcp_feed_refused(ngx_http_mcp_feed_stream_t *fs,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_event_in_t *in,
    const char *why);
static void ngx_http_mcp_feed_gap(ngx_http_mcp_reader_t *reader,
    const char *why);
static void ngx_http_mcp_feed_gap_topic(ngx_http_mcp_feed_stream_t *fs,
    ngx_str_t *tenant, const char *why);
static void ngx_http_mcp_feed_disconnected(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_feed_stopped(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_feed_ended(ngx_http_mcp_reader_t *reader,
    ngx_uint_t how);
static const char *ngx_http_mcp_feed_limit(const char *why);


/* returns the tenant of a feed; NULL: the feed is for all tenants */

#define ngx_http_mcp_feed_tenant(fs)                                          \
    (((fs)->feed->demand & NGX_HTTP_MCP_FEED_TENANT) ? &(fs)->tenant : NULL)


ngx_http_mcp_reader_kind_t  ngx_http_mcp_feed_readers = {
    .number = NGX_HTTP_MCP_READER_FEED,
    .name = ngx_string("feed"),
    .create = ngx_http_mcp_feed_create,
    .held = ngx_http_mcp_feed_held,
    .signaled = ngx_http_mcp_feed_signaled,
    .tick = ngx_http_mcp_feed_tick,
    .request = ngx_http_mcp_feed_attempt,
    .opened = ngx_http_mcp_feed_opened,
    .event = ngx_http_mcp_feed_event,
    .gap = ngx_http_mcp_feed_gap,
    .disconnected = ngx_http_mcp_feed_disconnected,
    .stopped = ngx_http_mcp_feed_stopped,
    .ended = ngx_http_mcp_feed_ended
};


/* number of this worker's feeds on demand, in all zones */

static ngx_uint_t  ngx_http_mcp_feed_number;


void
ngx_http_mcp_feed_init(ngx_mcp_zone_t *zone, ngx_array_t *bridges)
{
    ngx_uint_t                    i, n;
    ngx_http_mcp_feed_t          *feed;
    ngx_http_mcp_bridge_t       **bridge;
    ngx_http_mcp_feed_request_t   req;

    bridge = bridges->elts;

    for (i = 0; i < bridges->nelts; i++) {

        if (bridge[i]->zone != zone || bridge[i]->feeds == NULL) {
            continue;
        }

        feed = bridge[i]->feeds->elts;

        for (n = 0; n < bridge[i]->feeds->nelts; n++) {

            ngx_memzero(&req, sizeof(ngx_http_mcp_feed_request_t));

            req.bridge = bridge[i];
            req.feed = &feed[n];

            if (feed[n].demand == 0) {
                (void) ngx_http_mcp_feed_request(&req);

            } else if (feed[n].demand == NGX_HTTP_MCP_FEED_TENANT) {
                ngx_http_mcp_feed_tenants(&req);
            }
        }
    }
}


/*
 * Opens the feed for each tenant that has sessions: sessions that are older
 * than this configuration did not open it when they began.
 */

static void
ngx_http_mcp_feed_tenants(ngx_http_mcp_feed_request_t *req)
{
    ngx_str_t                tenants[NGX_MCP_GROUP_TENANTS];
    ngx_uint_t               i, n;
    ngx_pool_t              *pool;
    ngx_http_mcp_bridge_t   *bridge;
    ngx_mcp_group_cursor_t   cursor;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    bridge = req->bridge;

    ngx_memzero(&cursor, sizeof(ngx_mcp_group_cursor_t));

    do {
        n = ngx_mcp_group_tenants(bridge->zone, &bridge->endpoint, &cursor,
                                  pool, tenants);

        for (i = 0; i < n; i++) {
            req->tenant = &tenants[i];
            (void) ngx_http_mcp_feed_request(req);
        }

        ngx_reset_pool(pool);

    } while (n);

    ngx_destroy_pool(pool);
}


const char *
ngx_http_mcp_feed_want(ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller,
    ngx_str_t *topic, ngx_pool_t *pool, ngx_http_mcp_feed_wait_t **wait)
{
    ngx_uint_t                    i;
    const char                   *why, *error;
    ngx_http_mcp_feed_t          *feed;
    ngx_http_mcp_feed_request_t   req;

    if (wait) {
        *wait = NULL;
    }

    if (bridge->feeds == NULL) {
        return NULL;
    }

    error = NULL;
    feed = bridge->feeds->elts;

    ngx_memzero(&req, sizeof(ngx_http_mcp_feed_request_t));

    req.bridge = bridge;
    req.topic = topic;
    req.caller = topic ? caller : NULL;
    req.pool = pool;
    req.wait = wait;

    for (i = 0; i < bridge->feeds->nelts; i++) {

        if (feed[i].demand == 0
            || !(feed[i].demand & NGX_HTTP_MCP_FEED_TOPIC) != (topic == NULL))
        {
            continue;
        }

        req.feed = &feed[i];
        req.tenant = (feed[i].demand & NGX_HTTP_MCP_FEED_TENANT)
                     ? &caller->tenant : NULL;

        why = ngx_http_mcp_feed_request(&req);

        if (why) {
            error = why;
        }
    }

    return error;
}


/*
 * Opens a feed, or signals its holder that the feed is needed.  Returns NULL,
 * or a text about why it cannot be opened.
 */

static const char *
ngx_http_mcp_feed_request(ngx_http_mcp_feed_request_t *req)
{
    ngx_str_t              *parts[5];
    ngx_http_mcp_feed_t    *feed;
    ngx_http_mcp_reader_t  *reader;

    feed = req->feed;

    parts[0] = &req->bridge->endpoint;
    parts[1] = &feed->upstream.name;
    parts[2] = feed->topic ? &feed->topic->value : NULL;
    parts[3] = req->tenant;
    parts[4] = req->topic;

    if (ngx_http_mcp_reader_key(&ngx_http_mcp_feed_readers.name, parts, 5,
                                &req->key)
        != NGX_OK)
    {
        return ngx_http_mcp_feed_limit("the names of the endpoint, tenant and "
                                       "topic are too long");
    }

    reader = ngx_http_mcp_reader_find(req->bridge->zone, &req->key);

    if (reader) {
        ngx_http_mcp_feed_signaled(reader);

        if (!reader->up) {
            ngx_http_mcp_feed_add_wait(req);
        }

        return NULL;
    }

    if (feed->demand
        && ngx_mcp_lease_signal(req->bridge->zone, &req->key) == NGX_OK)
    {
        ngx_http_mcp_feed_add_wait(req);
        return NULL;
    }

    return ngx_http_mcp_feed_open(req);
}


/* the same for a feed that no worker reads */

static const char *
ngx_http_mcp_feed_open(ngx_http_mcp_feed_request_t *req)
{
    ngx_int_t        rc;
    ngx_uint_t       tenants;
    ngx_mcp_zone_t  *zone;

    zone = req->bridge->zone;

    if (req->caller) {
        tenants = ngx_max(1, ngx_cycle->connection_n / NGX_HTTP_MCP_FEED_SHARE
                             / NGX_HTTP_MCP_FEED_TENANTS);

        rc = ngx_mcp_topic_lease(zone, &req->key, req->caller,
                                 NGX_HTTP_MCP_FEED_SESSION, tenants);

    } else {
        rc = ngx_mcp_lease_ensure(zone, &req->key);
    }

    switch (rc) {

    case NGX_OK:
        ngx_http_mcp_feed_add_wait(req);
        return NULL;

    case NGX_BUSY:
        return "this client has 32 event feeds (mcp_events with $mcp_topic), "
               "as many as are allowed; try again later";

    case NGX_DECLINED:
        (void) ngx_http_mcp_feed_limit("a tenant has as many feeds as are "
                                       "allowed, a sixteenth of "
                                       "\"worker_connections\"; raise "
                                       "\"worker_connections\"");

        return "this tenant has as many event feeds (mcp_events with "
               "$mcp_topic) as are allowed, a sixteenth of "
               "worker_connections; try again later";

    case NGX_ABORT:
        return "the session has ended";

    default:
        return ngx_http_mcp_feed_limit("the zone is full; give \"mcp_zone\" a "
                                       "larger size");
    }
}


/* adds a feed to the wait, if it is not connected but may be connected soon */

static void
ngx_http_mcp_feed_add_wait(ngx_http_mcp_feed_request_t *req)
{
    ngx_mcp_ref_t                 lease;
    ngx_http_mcp_feed_wait_t     *wait;
    ngx_http_mcp_feed_awaited_t  *awaited;

    if (req->wait == NULL
        || ngx_mcp_lease_await(req->bridge->zone, &req->key, &lease)
           != NGX_AGAIN)
    {
        return;
    }

    awaited = ngx_pcalloc(req->pool, sizeof(ngx_http_mcp_feed_awaited_t));
    if (awaited == NULL) {
        return;
    }

    wait = *req->wait;

    if (wait == NULL) {
        wait = ngx_pcalloc(req->pool, sizeof(ngx_http_mcp_feed_wait_t));
        if (wait == NULL) {
            return;
        }

        wait->zone = req->bridge->zone;
        *req->wait = wait;
    }

    awaited->wait = wait;
    awaited->bridge = req->bridge;
    awaited->feed = req->feed;
    awaited->waiter.hash = ngx_crc32_short(req->key.data, req->key.len);
    awaited->lease = lease;

    awaited->next = wait->feeds;
    wait->feeds = awaited;
}


void
ngx_http_mcp_feed_wait(ngx_http_mcp_feed_wait_t *wait)
{
    ngx_http_mcp_feed_awaited_t  *awaited;

    wait->waiting = 1;
    wait->zone->awaits++;

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {
        awaited->waiter.ready = ngx_http_mcp_feed_ready;
        awaited->waiter.late = ngx_http_mcp_feed_timeout;
        awaited->waiter.data = awaited;

        ngx_http_mcp_waiter_start(&awaited->waiter, wait->zone,
                                  NGX_HTTP_MCP_WAIT_STREAM,
                                  NGX_HTTP_MCP_FEED_TIMEOUT);
    }
}


void
ngx_http_mcp_feed_cancel(ngx_http_mcp_feed_wait_t *wait)
{
    ngx_http_mcp_feed_awaited_t  *awaited;

    if (!wait->waiting) {
        return;
    }

    wait->waiting = 0;
    wait->zone->awaits--;

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {
        ngx_http_mcp_waiter_stop(&awaited->waiter);
    }
}


/* ends the wait if each of its feeds has connected or failed by now */

static void
ngx_http_mcp_feed_ready(void *data)
{
    ngx_http_mcp_feed_awaited_t *awaited = data;

    ngx_http_mcp_feed_wait_t  *wait;

    wait = awaited->wait;

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {

        if (ngx_mcp_lease_settled(wait->zone, awaited->lease) == NGX_AGAIN) {

            /* the worker that connected the feed may have died */

            if (!ngx_http_mcp_waiter_waiting(&awaited->waiter)) {
                ngx_http_mcp_waiter_restart(&awaited->waiter);
            }

            return;
        }
    }

    ngx_http_mcp_feed_cancel(wait);

    wait->done(wait->data);
}


/*
 * The wait has timed out.  Feeds that are not connected are noted as failed, so
 * that later requests do not wait for them.
 */

static void
ngx_http_mcp_feed_timeout(void *data)
{
    ngx_http_mcp_feed_awaited_t *awaited = data;

    ngx_mcp_lease_t            lease;
    ngx_http_mcp_feed_wait_t  *wait;

    wait = awaited->wait;

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {

        lease.ref = awaited->lease;
        lease.fence = 0;

        /*
         * A feed may be connected by now, or the wait of another client may
         * have noted the failure.
         */

        if (ngx_mcp_lease_failed(wait->zone, &lease) != NGX_OK) {
            continue;
        }

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" is not connected "
                      "after %d ms: its backend must send the response header "
                      "at once; clients no longer wait for the feed, and may "
                      "miss events that the backend sends before the feed is "
                      "connected",
                      &awaited->feed->upstream.name, &awaited->bridge->endpoint,
                      NGX_HTTP_MCP_FEED_TIMEOUT);
    }

    ngx_http_mcp_feed_cancel(wait);

    wait->done(wait->data);
}


static ngx_http_mcp_reader_t *
ngx_http_mcp_feed_create(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool)
{
    ngx_str_t                    parts[5], *p[5];
    ngx_uint_t                   i;
    ngx_http_mcp_feed_stream_t  *fs;

    for (i = 0; i < 5; i++) {
        p[i] = &parts[i];
    }

    fs = ngx_pcalloc(pool, sizeof(ngx_http_mcp_feed_stream_t));

    if (fs == NULL
        || ngx_http_mcp_reader_key_parse(key, pool, p, 5) != NGX_OK)
    {
        return NULL;
    }

    fs->feed = ngx_http_mcp_feed_find(zone, parts, &fs->bridge);

    if (fs->feed == NULL) {

        /* another configuration made the lease */

        return NULL;
    }

    if (fs->feed->demand
        && ngx_http_mcp_feed_number >= ngx_cycle->connection_n
                                       / NGX_HTTP_MCP_FEED_SHARE)
    {
        (void) ngx_http_mcp_feed_limit("the worker has as many feeds as are "
                                       "allowed; raise \"worker_connections\"");
        return NULL;
    }

    fs->tenant = parts[3];
    fs->topic = parts[4];
    fs->wanted = ngx_current_msec;
    fs->checked = ngx_current_msec;

    fs->reader.data = fs;
    fs->reader.upstream = &fs->feed->upstream;
    fs->reader.audience.tenant = fs->tenant;
    fs->reader.audience.topic = fs->topic;

    return &fs->reader;
}


/*
 * Finds a feed of this configuration by parts of its key: the endpoint, the
 * URI, and the value of "topic=" with its variables.
 */

static ngx_http_mcp_feed_t *
ngx_http_mcp_feed_find(ngx_mcp_zone_t *zone, ngx_str_t *parts,
    ngx_http_mcp_bridge_t **b)
{
    ngx_str_t                *value;
    ngx_uint_t                i, n;
    ngx_array_t              *bridges;
    ngx_http_mcp_feed_t      *feed;
    ngx_http_mcp_bridge_t   **bridge;

    bridges = zone->ctx[NGX_MCP_CTX_BRIDGES];
    bridge = bridges->elts;

    for (i = 0; i < bridges->nelts; i++) {

        if (bridge[i]->zone != zone || bridge[i]->feeds == NULL
            || !ngx_mcp_equal(&bridge[i]->endpoint, &parts[0]))
        {
            continue;
        }

        feed = bridge[i]->feeds->elts;

        for (n = 0; n < bridge[i]->feeds->nelts; n++) {

            value = feed[n].topic ? &feed[n].topic->value : NULL;

            if (ngx_mcp_equal(&feed[n].upstream.name, &parts[1])
                && (value == NULL) == (parts[2].data == NULL)
                && (value == NULL || ngx_mcp_equal(value, &parts[2])))
            {
                *b = bridge[i];
                return &feed[n];
            }
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_mcp_feed_held(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;

    fs->scratch = ngx_create_pool(NGX_HTTP_MCP_FEED_SCRATCH, ngx_cycle->log);
    if (fs->scratch == NULL) {
        return NGX_ERROR;
    }

    ngx_http_mcp_feed_number += (fs->feed->demand != 0);

    (void) ngx_http_mcp_reader_open(reader);

    return NGX_OK;
}


static void
ngx_http_mcp_feed_signaled(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;
    fs->wanted = ngx_current_msec;
}


static void
ngx_http_mcp_feed_tick(ngx_http_mcp_reader_t *reader)
{
    ngx_int_t                    rc;
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;

    if (fs->feed->demand == 0
        || ngx_current_msec - fs->checked < NGX_HTTP_MCP_FEED_CHECK)
    {
        return;
    }

    rc = ngx_http_mcp_feed_wanted(fs);

    if (rc == NGX_AGAIN) {
        return;
    }

    fs->checked = ngx_current_msec;

    if (rc == NGX_OK) {
        fs->wanted = ngx_current_msec;
        return;
    }

    if (ngx_current_msec - fs->wanted
        >= NGX_HTTP_MCP_FEED_KEEP + NGX_HTTP_MCP_FEED_CHECK)
    {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_DROPPED);
    }
}


/*
 * Checks whether the feed is needed.  NGX_OK: yes; NGX_DECLINED: no; NGX_AGAIN:
 * the next call continues the search.
 */

static ngx_int_t
ngx_http_mcp_feed_wanted(ngx_http_mcp_feed_stream_t *fs)
{
    ngx_int_t               rc;
    ngx_str_t              *tenant, uri;
    ngx_http_mcp_bridge_t  *bridge;

    bridge = fs->bridge;
    tenant = ngx_http_mcp_feed_tenant(fs);

    if ((fs->feed->demand & NGX_HTTP_MCP_FEED_TOPIC) == 0) {
        return ngx_mcp_topics_wanted(bridge->zone, &bridge->endpoint, tenant);
    }

    rc = ngx_http_mcp_topic_uri(&fs->topic, fs->scratch, &uri);

    if (rc != NGX_OK) {
        return (rc == NGX_ERROR) ? NGX_OK : NGX_DECLINED;
    }

    rc = ngx_mcp_topic_wanted(bridge->zone, &bridge->endpoint, tenant, &uri,
                              &fs->cursor);

    ngx_reset_pool(fs->scratch);

    return rc;
}


static ngx_int_t
ngx_http_mcp_feed_attempt(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;

    if (fs->feed->topic) {
        return ngx_http_complex_value(ureq->r, fs->feed->topic,
                                      &fs->default_topic);
    }

    fs->default_topic = fs->topic;

    return NGX_OK;
}


static void
ngx_http_mcp_feed_opened(ngx_http_mcp_reader_t *reader, ngx_uint_t gap)
{
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;

    if (reader->failure) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" is connected again",
                      &reader->ureq->x->uri, &fs->bridge->endpoint);
    }

    if (gap) {
        ngx_http_mcp_feed_gap(reader, "the backend did not resume the feed "
                                      "where the connection was cut");
    }
}


static void
ngx_http_mcp_feed_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_consume_t *consume)
{
    ngx_uint_t                   sessions, repeated;
    const char                  *why;
    ngx_mcp_zone_t              *zone;
    ngx_http_mcp_event_in_t      in;
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;
    zone = fs->bridge->zone;

    ngx_memzero(&in, sizeof(ngx_http_mcp_event_in_t));

    in.zone = zone;
    in.bridges = zone->ctx[NGX_MCP_CTX_BRIDGES];
    in.endpoint = &fs->bridge->endpoint;
    in.tenant = ngx_http_mcp_feed_tenant(fs);
    in.topic = fs->default_topic;
    in.pool = fs->scratch;
    in.consume = consume;
    in.counter = NGX_MCP_COUNTER_EVENTS_FEED;

    why = ngx_http_mcp_event_in(&in, text, &sessions, &repeated);

    if (ngx_mcp_lease_consume(zone, consume) == NGX_ABORT) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_STALE, 1);

    } else if (why) {
        ngx_http_mcp_feed_refused(fs, ureq, &in, why);
    }

    ngx_reset_pool(fs->scratch);
}


static void
ngx_http_mcp_feed_refused(ngx_http_mcp_feed_stream_t *fs,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_event_in_t *in,
    const char *why)
{
    ngx_uint_t  level;

    ngx_mcp_count(fs->bridge->zone,
                  in->absent ? NGX_MCP_COUNTER_EVENTS_UNSENT
                             : NGX_MCP_COUNTER_EVENTS_INVALID, 1);

    level = NGX_LOG_INFO;

    if (!in->absent && why != fs->logged_error) {
        fs->logged_error = why;
        level = NGX_LOG_ERR;
    }

    ngx_log_error(level, ngx_cycle->log, 0,
                  "mcp feed \"%V\" of endpoint \"%V\" sent an event that is "
                  "dropped: %s", &ureq->x->uri, &fs->bridge->endpoint, why);
}


static void
ngx_http_mcp_feed_gap(ngx_http_mcp_reader_t *reader, const char *why)
{
    ngx_str_t                   *tenant;
    ngx_uint_t                   sessions;
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;
    tenant = ngx_http_mcp_feed_tenant(fs);

    if (fs->feed->demand & NGX_HTTP_MCP_FEED_TOPIC && fs->feed->topic == NULL) {
        ngx_http_mcp_feed_gap_topic(fs, tenant, why);
        return;
    }

    sessions = ngx_mcp_log_gap(fs->bridge->zone, &fs->bridge->endpoint,
                               tenant);

    if (sessions) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" has a gap: %s; "
                      "sessions notified: %ui", &fs->feed->upstream.name,
                      &fs->bridge->endpoint, why, sessions);
    }
}


/*
 * Notifies only the subscribers of the feed's topic of a gap, because events of
 * the feed concern no other sessions.
 */

static void
ngx_http_mcp_feed_gap_topic(ngx_http_mcp_feed_stream_t *fs, ngx_str_t *tenant,
    const char *why)
{
    ngx_int_t               rc;
    ngx_str_t               uri;
    ngx_mcp_post_t          post;
    ngx_http_mcp_address_t  to;

    ngx_str_set(&uri, "");
    ngx_memzero(&to, sizeof(ngx_http_mcp_address_t));
    ngx_memzero(&post, sizeof(ngx_mcp_post_t));

    to.zone = fs->bridge->zone;
    to.endpoint = &fs->bridge->endpoint;
    to.tenant = tenant;

    rc = NGX_ERROR;

    if (ngx_http_mcp_topic_uri(&fs->topic, fs->scratch, &uri) == NGX_OK
        && ngx_array_init(&to.deliveries, fs->scratch, 2,
                          sizeof(ngx_mcp_delivery_t))
           == NGX_OK
        && ngx_http_mcp_event_add_updated(&to, &uri, fs->scratch) == NGX_OK)
    {
        post.deliveries = to.deliveries.elts;
        post.n = to.deliveries.nelts;

        rc = ngx_mcp_outbox_send(to.zone, &post);
    }

    if (rc == NGX_ERROR) {
        (void) ngx_mcp_log_gap(to.zone, to.endpoint, tenant);
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp feed \"%V\" of endpoint \"%V\" has a gap: %s; "
                  "subscribers of \"%V\" are notified",
                  &fs->feed->upstream.name, to.endpoint, why, &uri);

    ngx_reset_pool(fs->scratch);
}


static void
ngx_http_mcp_feed_disconnected(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;

    if (reader->up && reader->ureq) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" ended",
                      &reader->ureq->x->uri, &fs->bridge->endpoint);
    }
}


/*
 * No attempt to open the feed can succeed.  The worker keeps the lease, so that
 * no other worker tries.
 */

static void
ngx_http_mcp_feed_stopped(ngx_http_mcp_reader_t *reader)
{
    (void) ngx_mcp_lease_failed(reader->upstream->zone, &reader->lease);
}


static void
ngx_http_mcp_feed_ended(ngx_http_mcp_reader_t *reader, ngx_uint_t how)
{
    ngx_int_t                    rc;
    ngx_http_mcp_feed_stream_t  *fs;

    fs = reader->data;

    if (how == NGX_HTTP_MCP_READER_DROPPED) {

        /* a request may have signaled the lease just before its end */

        do {
            rc = ngx_http_mcp_feed_wanted(fs);
        } while (rc == NGX_AGAIN);

        if (rc == NGX_OK) {
            (void) ngx_mcp_lease_ensure(reader->upstream->zone, &reader->key);
        }
    }

    ngx_http_mcp_feed_number -= (fs->feed->demand != 0);

    ngx_destroy_pool(fs->scratch);
}


static const char *
ngx_http_mcp_feed_limit(const char *why)
{
    static ngx_msec_t  logged;

    if (logged == 0 || ngx_current_msec - logged >= NGX_HTTP_MCP_FEED_LOG) {
        logged = ngx_current_msec;

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp feed is not opened: %s", why);
    }

    return "the event feed of the topic cannot be opened; try again later";
}
