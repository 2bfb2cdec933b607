
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_lease_key.h"
#include "ngx_http_mcp_reader.h"
#include "ngx_http_mcp_topic.h"


/* of connections, for feeds on demand: one in so many */
#define NGX_HTTP_MCP_FEED_SHARE  8

/* of these, for one tenant of an endpoint: one in so many */
#define NGX_HTTP_MCP_FEED_TENANTS  2

/* ms; one that is read elsewhere is not said to be wanted more often */
#define NGX_HTTP_MCP_FEED_POKE   5000
#define NGX_HTTP_MCP_FEED_POKES  64

/* ms; a limit is not logged more often */
#define NGX_HTTP_MCP_FEED_FULL   60000

/* ms; a worker of a newer configuration has to be connected by then */
#define NGX_HTTP_MCP_FEED_HOLD   3500

/* ms; if all workers quit they are told by then, and none begins to read */
#define NGX_HTTP_MCP_FEED_LINGER  200

#define NGX_HTTP_MCP_FEED_SCRATCH  4096

#define NGX_HTTP_MCP_FEED_AWAITED  64       /* buckets */


/* what a key says; strings are decoded */

typedef struct {
    ngx_str_t                 endpoint;
    ngx_str_t                 uri;
    ngx_str_t                 value;        /* topic=, as written */
    ngx_str_t                 tenant;
    ngx_str_t                 topic;
    ngx_http_mcp_bridge_t    *bridge;       /* NULL: there is none any more */
    ngx_http_mcp_feed_t      *feed;
} ngx_http_mcp_feed_key_t;


typedef struct {
    uint32_t                  hash;
    ngx_msec_t                time;
    ngx_uint_t                connected;
} ngx_http_mcp_feed_poke_t;


/* a feed that somebody waits for */

struct ngx_http_mcp_feed_awaited_s {
    ngx_queue_t                   queue;    /* linked while it waits */
    ngx_http_mcp_feed_wait_t     *wait;
    ngx_http_mcp_feed_awaited_t  *next;     /* of the same */
    ngx_http_mcp_bridge_t        *bridge;
    ngx_http_mcp_feed_t          *feed;
    uint32_t                      hash;     /* of its key */
    ngx_mcp_ref_t                 lease;
};


static void ngx_http_mcp_feed_tenants(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_feed_t *feed);
static const char *ngx_http_mcp_feed_request(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_feed_t *feed, ngx_mcp_ref_t *session, ngx_str_t *tenant,
    ngx_str_t *topic, ngx_pool_t *pool, ngx_http_mcp_feed_wait_t **wait);
static ngx_uint_t ngx_http_mcp_feed_await(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_feed_t *feed, ngx_str_t *key, ngx_pool_t *pool,
    ngx_http_mcp_feed_wait_t **wait);
static void ngx_http_mcp_feed_late(ngx_event_t *ev);
static void ngx_http_mcp_feed_settled(ngx_mcp_zone_t *zone, ngx_str_t *key);
static ngx_int_t ngx_http_mcp_feed_key_parse(ngx_http_mcp_feed_key_t *k,
    ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool);
static void ngx_http_mcp_feed_key_find(ngx_http_mcp_feed_key_t *k,
    ngx_mcp_zone_t *zone);
static ngx_http_mcp_reader_t *ngx_http_mcp_feed_reader(ngx_mcp_zone_t *zone,
    ngx_str_t *key);
static void ngx_http_mcp_feed_claim(ngx_mcp_zone_t *zone, ngx_str_t *key);
static ngx_uint_t ngx_http_mcp_feed_number(void);
static const char *ngx_http_mcp_feed_full(const char *why);


static ngx_str_t                  ngx_http_mcp_feed_kind = ngx_string("feed");
static ngx_queue_t                ngx_http_mcp_feed_readers;
static ngx_queue_t                ngx_http_mcp_feed_waits[
                                                   NGX_HTTP_MCP_FEED_AWAITED];
static ngx_array_t               *ngx_http_mcp_feed_bridges;
static ngx_http_mcp_feed_poke_t   ngx_http_mcp_feed_pokes[
                                                     NGX_HTTP_MCP_FEED_POKES];


void
ngx_http_mcp_feed_init(ngx_mcp_zone_t *zone, ngx_array_t *bridges)
{
    ngx_uint_t                i, n;
    ngx_http_mcp_feed_t      *feed;
    ngx_http_mcp_bridge_t   **bridge;

    if (ngx_http_mcp_feed_readers.next == NULL) {
        ngx_queue_init(&ngx_http_mcp_feed_readers);

        for (i = 0; i < NGX_HTTP_MCP_FEED_AWAITED; i++) {
            ngx_queue_init(&ngx_http_mcp_feed_waits[i]);
        }
    }

    ngx_http_mcp_feed_bridges = bridges;

    bridge = bridges->elts;

    for (i = 0; i < bridges->nelts; i++) {

        if (bridge[i]->zone != zone || bridge[i]->feeds == NULL) {
            continue;
        }

        feed = bridge[i]->feeds->elts;

        for (n = 0; n < bridge[i]->feeds->nelts; n++) {

            if (feed[n].demand == 0) {
                (void) ngx_http_mcp_feed_request(bridge[i], &feed[n], NULL,
                                                 NULL, NULL, NULL, NULL);

            } else if (feed[n].demand == NGX_HTTP_MCP_FEED_TENANT) {
                ngx_http_mcp_feed_tenants(bridge[i], &feed[n]);
            }
        }
    }
}


/* sessions that are older than this configuration */

static void
ngx_http_mcp_feed_tenants(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_feed_t *feed)
{
    uint64_t     serial;
    ngx_str_t    tenants[NGX_MCP_GROUP_TENANTS];
    ngx_uint_t   i, n;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    serial = 0;

    do {
        n = ngx_mcp_group_tenants(bridge->zone, &bridge->endpoint, &serial,
                                  pool, tenants);

        for (i = 0; i < n; i++) {
            (void) ngx_http_mcp_feed_request(bridge, feed, NULL, &tenants[i],
                                             NULL, NULL, NULL);
        }

        ngx_reset_pool(pool);

    } while (n);

    ngx_destroy_pool(pool);
}


const char *
ngx_http_mcp_feed_want(ngx_http_mcp_bridge_t *bridge, ngx_mcp_ref_t session,
    ngx_str_t *tenant, ngx_str_t *topic, ngx_pool_t *pool,
    ngx_http_mcp_feed_wait_t **wait)
{
    ngx_uint_t            i;
    const char           *why, *error;
    ngx_http_mcp_feed_t  *feed;

    if (wait) {
        *wait = NULL;
    }

    if (bridge->feeds == NULL) {
        return NULL;
    }

    error = NULL;
    feed = bridge->feeds->elts;

    for (i = 0; i < bridge->feeds->nelts; i++) {

        if (feed[i].demand == 0
            || !(feed[i].demand & NGX_HTTP_MCP_FEED_TOPIC) != (topic == NULL))
        {
            continue;
        }

        why = ngx_http_mcp_feed_request(bridge, &feed[i],
                                        topic ? &session : NULL,
                                        (feed[i].demand
                                         & NGX_HTTP_MCP_FEED_TENANT)
                                        ? tenant : NULL, topic, pool, wait);
        if (why) {
            error = why;
        }
    }

    return error;
}


/*
 * Has somebody read it, or learn that it is wanted.  NULL, or why it can not
 * be opened.
 */

static const char *
ngx_http_mcp_feed_request(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_feed_t *feed, ngx_mcp_ref_t *session, ngx_str_t *tenant,
    ngx_str_t *topic, ngx_pool_t *pool, ngx_http_mcp_feed_wait_t **wait)
{
    uint32_t                   hash;
    ngx_int_t                  rc;
    ngx_str_t                  key, *parts[5];
    ngx_mcp_lease_share_t      share;
    ngx_http_mcp_reader_t     *reader;
    ngx_http_mcp_feed_poke_t  *poke;

    parts[0] = &bridge->endpoint;
    parts[1] = &feed->uri.value;
    parts[2] = feed->topic ? &feed->topic->value : NULL;
    parts[3] = tenant;
    parts[4] = topic;

    if (ngx_http_mcp_lease_key(&ngx_http_mcp_feed_kind, parts, 5, &key)
        != NGX_OK)
    {
        return ngx_http_mcp_feed_full("the names of the endpoint, tenant and "
                                      "topic are too long");
    }

    reader = ngx_http_mcp_feed_reader(bridge->zone, &key);

    if (reader) {
        reader->wanted = ngx_current_msec;

        if (!ngx_http_mcp_reader_connected(reader)) {
            (void) ngx_http_mcp_feed_await(bridge, feed, &key, pool, wait);
        }

        return NULL;
    }

    poke = NULL;

    if (feed->demand) {
        hash = ngx_crc32_short(key.data, key.len);
        poke = &ngx_http_mcp_feed_pokes[hash % NGX_HTTP_MCP_FEED_POKES];

        if (poke->hash == hash
            && ngx_current_msec - poke->time < NGX_HTTP_MCP_FEED_POKE)
        {
            if (!poke->connected) {
                poke->connected = ngx_http_mcp_feed_await(bridge, feed, &key,
                                                          pool, wait);
            }

            return NULL;
        }

        poke->hash = hash;
        poke->time = ngx_current_msec;
        poke->connected = 0;

        if (ngx_mcp_lease_poke(bridge->zone, &key) == NGX_OK) {
            poke->connected = ngx_http_mcp_feed_await(bridge, feed, &key, pool,
                                                      wait);
            return NULL;
        }
    }

    if (session) {
        share.session = *session;
        share.sessions = NGX_HTTP_MCP_FEED_SESSION;
        share.tenants = ngx_max(1, ngx_cycle->connection_n
                                   / NGX_HTTP_MCP_FEED_SHARE
                                   / NGX_HTTP_MCP_FEED_TENANTS);
    }

    rc = ngx_mcp_lease_want_shared(bridge->zone, &key,
                                   session ? &share : NULL);

    if (rc == NGX_OK) {
        (void) ngx_http_mcp_feed_await(bridge, feed, &key, pool, wait);
        return NULL;
    }

    if (poke) {
        poke->hash = 0;
    }

    switch (rc) {

    case NGX_BUSY:
        return "this session has 32 event feeds (mcp_events with $mcp_topic), "
               "as many as are allowed; try again later";

    case NGX_DECLINED:
        (void) ngx_http_mcp_feed_full("a tenant has as many feeds as are "
                                      "allowed, a sixteenth of "
                                      "\"worker_connections\"; raise "
                                      "\"worker_connections\"");

        return "this tenant has as many event feeds (mcp_events with "
               "$mcp_topic) as are allowed, a sixteenth of "
               "worker_connections; try again later";

    case NGX_ABORT:
        return "the session has ended";

    default:
        return ngx_http_mcp_feed_full("the zone is full; give \"mcp_zone\" a "
                                      "larger size");
    }
}


/* whether it is connected; one that may be soon is added to what is awaited */

static ngx_uint_t
ngx_http_mcp_feed_await(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_feed_t *feed, ngx_str_t *key, ngx_pool_t *pool,
    ngx_http_mcp_feed_wait_t **wait)
{
    ngx_int_t                     rc;
    ngx_mcp_ref_t                 lease;
    ngx_http_mcp_feed_awaited_t  *awaited;

    if (wait == NULL) {
        return 0;
    }

    rc = ngx_mcp_lease_await(bridge->zone, key, &lease);

    if (rc != NGX_AGAIN) {
        return rc == NGX_OK;
    }

    if (*wait == NULL) {
        *wait = ngx_pcalloc(pool, sizeof(ngx_http_mcp_feed_wait_t));
        if (*wait == NULL) {
            return 0;
        }

        (*wait)->zone = bridge->zone;
    }

    awaited = ngx_palloc(pool, sizeof(ngx_http_mcp_feed_awaited_t));

    if (awaited) {
        awaited->wait = *wait;
        awaited->bridge = bridge;
        awaited->feed = feed;
        awaited->hash = ngx_crc32_short(key->data, key->len);
        awaited->lease = lease;

        awaited->next = (*wait)->feeds;
        (*wait)->feeds = awaited;
    }

    return 0;
}


void
ngx_http_mcp_feed_wait(ngx_http_mcp_feed_wait_t *wait)
{
    ngx_http_mcp_feed_awaited_t  *awaited;

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {
        ngx_queue_insert_tail(&ngx_http_mcp_feed_waits[awaited->hash
                                                 % NGX_HTTP_MCP_FEED_AWAITED],
                              &awaited->queue);
    }

    wait->waiting = 1;
    wait->zone->awaits++;

    wait->timer.handler = ngx_http_mcp_feed_late;
    wait->timer.data = wait;
    wait->timer.log = ngx_cycle->log;

    ngx_add_timer(&wait->timer, NGX_HTTP_MCP_FEED_PATIENCE);
}


void
ngx_http_mcp_feed_forget(ngx_http_mcp_feed_wait_t *wait)
{
    ngx_http_mcp_feed_awaited_t  *awaited;

    if (!wait->waiting) {
        return;
    }

    wait->waiting = 0;
    wait->zone->awaits--;

    if (wait->timer.timer_set) {
        ngx_del_timer(&wait->timer);
    }

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {
        ngx_queue_remove(&awaited->queue);
    }
}


/* its time is over; those who come next do not wait for these feeds */

static void
ngx_http_mcp_feed_late(ngx_event_t *ev)
{
    ngx_mcp_lease_t               lease;
    ngx_http_mcp_feed_wait_t     *wait;
    ngx_http_mcp_feed_awaited_t  *awaited;

    wait = ev->data;

    for (awaited = wait->feeds; awaited; awaited = awaited->next) {

        lease.ref = awaited->lease;
        lease.fence = 0;

        /* others may be connected, or another client has waited as long */

        if (ngx_mcp_lease_vain(wait->zone, &lease) != NGX_OK) {
            continue;
        }

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" is not connected "
                      "after %d ms: its backend must send the response header "
                      "at once; clients no longer wait for the feed, and may "
                      "miss events that the backend sends before the feed is "
                      "connected",
                      &awaited->feed->uri.value, &awaited->bridge->endpoint,
                      NGX_HTTP_MCP_FEED_PATIENCE);
    }

    ngx_http_mcp_feed_forget(wait);

    wait->done(wait->data);
}


/* the lease with this key was connected, or could not be */

static void
ngx_http_mcp_feed_settled(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    uint32_t                      hash;
    ngx_queue_t                  *q, *bucket, looked;
    ngx_http_mcp_feed_wait_t     *wait;
    ngx_http_mcp_feed_awaited_t  *awaited;

    hash = ngx_crc32_short(key->data, key->len);
    bucket = &ngx_http_mcp_feed_waits[hash % NGX_HTTP_MCP_FEED_AWAITED];

    /* done() may have others forgotten */

    ngx_queue_init(&looked);

    while (!ngx_queue_empty(bucket)) {
        q = ngx_queue_head(bucket);
        awaited = ngx_queue_data(q, ngx_http_mcp_feed_awaited_t, queue);
        wait = awaited->wait;

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&looked, q);

        if (awaited->hash != hash || wait->zone != zone) {
            continue;
        }

        for (awaited = wait->feeds; awaited; awaited = awaited->next) {
            if (ngx_mcp_lease_settled(zone, awaited->lease) == NGX_AGAIN) {
                break;
            }
        }

        if (awaited == NULL) {
            ngx_http_mcp_feed_forget(wait);
            wait->done(wait->data);
        }
    }

    ngx_queue_add(bucket, &looked);
}


static ngx_int_t
ngx_http_mcp_feed_key_parse(ngx_http_mcp_feed_key_t *k, ngx_mcp_zone_t *zone,
    ngx_str_t *key, ngx_pool_t *pool)
{
    ngx_str_t  *parts[5];

    ngx_memzero(k, sizeof(ngx_http_mcp_feed_key_t));

    parts[0] = &k->endpoint;
    parts[1] = &k->uri;
    parts[2] = &k->value;
    parts[3] = &k->tenant;
    parts[4] = &k->topic;

    if (ngx_http_mcp_lease_key_parse(key, pool, parts, 5) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_mcp_feed_key_find(k, zone);

    return NGX_OK;
}


static void
ngx_http_mcp_feed_key_find(ngx_http_mcp_feed_key_t *k, ngx_mcp_zone_t *zone)
{
    ngx_str_t                *value;
    ngx_uint_t                i, n;
    ngx_http_mcp_feed_t      *feed;
    ngx_http_mcp_bridge_t   **bridge;

    bridge = ngx_http_mcp_feed_bridges->elts;

    for (i = 0; i < ngx_http_mcp_feed_bridges->nelts; i++) {

        if (bridge[i]->zone != zone || bridge[i]->feeds == NULL
            || !ngx_mcp_equal(&bridge[i]->endpoint, &k->endpoint))
        {
            continue;
        }

        feed = bridge[i]->feeds->elts;

        for (n = 0; n < bridge[i]->feeds->nelts; n++) {

            value = feed[n].topic ? &feed[n].topic->value : NULL;

            if (ngx_mcp_equal(&feed[n].uri.value, &k->uri)
                && (value == NULL) == (k->value.data == NULL)
                && (value == NULL || ngx_mcp_equal(value, &k->value)))
            {
                k->bridge = bridge[i];
                k->feed = &feed[n];
                return;
            }
        }
    }
}


static ngx_http_mcp_reader_t *
ngx_http_mcp_feed_reader(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    uint32_t                hash;
    ngx_queue_t            *q;
    ngx_http_mcp_reader_t  *reader;

    hash = ngx_crc32_short(key->data, key->len);

    for (q = ngx_queue_head(&ngx_http_mcp_feed_readers);
         q != ngx_queue_sentinel(&ngx_http_mcp_feed_readers);
         q = ngx_queue_next(q))
    {
        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);

        if (reader->hash == hash && reader->bridge->zone == zone
            && ngx_mcp_equal(&reader->key, key))
        {
            return reader;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_feed_lease(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t why)
{
    ngx_http_mcp_reader_t  *reader;

    if (!ngx_http_mcp_lease_key_is(key, &ngx_http_mcp_feed_kind)) {
        return NGX_DECLINED;
    }

    reader = ngx_http_mcp_feed_reader(zone, key);

    if (reader && (why & NGX_MCP_LEASE_LOST)) {
        ngx_http_mcp_reader_close(reader, NGX_HTTP_MCP_READER_LOST);
        reader = NULL;
    }

    if (reader && (why & NGX_MCP_LEASE_GAP)) {
        ngx_http_mcp_reader_gap(reader, "the worker that read the feed died");
    }

    if (reader && (why & NGX_MCP_LEASE_POKED)) {
        reader->wanted = ngx_current_msec;
    }

    if (why & NGX_MCP_LEASE_SETTLED) {
        ngx_http_mcp_feed_settled(zone, key);
    }

    if (reader == NULL && (why & NGX_MCP_LEASE_FREE) && !ngx_exiting) {
        ngx_http_mcp_feed_claim(zone, key);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_feed_claim(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_int_t                 rc;
    ngx_pool_t               *pool;
    ngx_mcp_lease_left_t      left;
    ngx_http_mcp_reader_t    *reader;
    ngx_http_mcp_feed_key_t   k;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    if (ngx_http_mcp_feed_key_parse(&k, zone, key, pool) != NGX_OK) {
        ngx_destroy_pool(pool);
        return;
    }

    if (k.feed == NULL) {

        /* of another configuration */

        ngx_destroy_pool(pool);
        return;
    }

    if (k.feed->demand
        && ngx_http_mcp_feed_number() >= ngx_cycle->connection_n
                                         / NGX_HTTP_MCP_FEED_SHARE)
    {
        (void) ngx_http_mcp_feed_full("the worker has as many feeds as are "
                                      "allowed; raise \"worker_connections\"");
        ngx_destroy_pool(pool);
        return;
    }

    reader = ngx_pcalloc(pool, sizeof(ngx_http_mcp_reader_t));
    if (reader == NULL) {
        ngx_destroy_pool(pool);
        return;
    }

    reader->key.data = ngx_pstrdup(pool, key);
    reader->scratch = ngx_create_pool(NGX_HTTP_MCP_FEED_SCRATCH,
                                      ngx_cycle->log);

    if (reader->key.data == NULL || reader->scratch == NULL) {
        goto failed;
    }

    rc = ngx_mcp_lease_claim(zone, key, pool, &reader->lease, &left);

    if (rc != NGX_OK) {
        goto failed;
    }

    reader->pool = pool;
    reader->bridges = ngx_http_mcp_feed_bridges;
    reader->bridge = k.bridge;
    reader->feed = k.feed;
    reader->hash = ngx_crc32_short(key->data, key->len);
    reader->key.len = key->len;
    reader->tenant = k.tenant;
    reader->topic = k.topic;

    ngx_queue_insert_tail(&ngx_http_mcp_feed_readers, &reader->queue);

    ngx_http_mcp_reader_start(reader, &left.id);

    return;

failed:

    if (reader->scratch) {
        ngx_destroy_pool(reader->scratch);
    }

    ngx_destroy_pool(pool);
}


/* those on demand that are read here */

static ngx_uint_t
ngx_http_mcp_feed_number(void)
{
    ngx_uint_t              n;
    ngx_queue_t            *q;
    ngx_http_mcp_reader_t  *reader;

    n = 0;

    for (q = ngx_queue_head(&ngx_http_mcp_feed_readers);
         q != ngx_queue_sentinel(&ngx_http_mcp_feed_readers);
         q = ngx_queue_next(q))
    {
        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
        n += (reader->feed->demand != 0);
    }

    return n;
}


static const char *
ngx_http_mcp_feed_full(const char *why)
{
    static ngx_msec_t  said;

    if (said == 0 || ngx_current_msec - said >= NGX_HTTP_MCP_FEED_FULL) {
        said = ngx_current_msec;

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp feed is not opened: %s", why);
    }

    return "the event feed of the topic cannot be opened; try again later";
}


void
ngx_http_mcp_feed_quit(ngx_mcp_zone_t *zone)
{
    ngx_msec_t              hold;
    ngx_queue_t            *q;
    ngx_http_mcp_reader_t  *reader;

    if (ngx_http_mcp_feed_readers.next == NULL) {
        return;
    }

    hold = ngx_mcp_lease_newer(zone) ? NGX_HTTP_MCP_FEED_HOLD
                                     : NGX_HTTP_MCP_FEED_LINGER;

    q = ngx_queue_head(&ngx_http_mcp_feed_readers);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_feed_readers)) {

        reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
        q = ngx_queue_next(q);

        if (reader->bridge->zone != zone) {
            continue;
        }

        ngx_http_mcp_reader_quit(reader, hold);
    }
}


ngx_uint_t
ngx_http_mcp_feed_wanted(ngx_http_mcp_reader_t *reader)
{
    ngx_int_t               rc;
    ngx_str_t              *tenant, uri;
    ngx_http_mcp_bridge_t  *bridge;

    bridge = reader->bridge;
    tenant = NULL;

    if (reader->feed->demand & NGX_HTTP_MCP_FEED_TENANT) {
        tenant = &reader->tenant;
    }

    if ((reader->feed->demand & NGX_HTTP_MCP_FEED_TOPIC) == 0) {
        return ngx_mcp_group_sessions(bridge->zone, &bridge->endpoint, tenant)
               != 0;
    }

    if (ngx_http_mcp_topic_uri(&reader->topic, reader->scratch, &uri)
        != NGX_OK)
    {
        return 1;
    }

    rc = ngx_mcp_topic_wanted(bridge->zone, &bridge->endpoint, tenant, &uri);

    ngx_reset_pool(reader->scratch);

    return rc == NGX_OK;
}
