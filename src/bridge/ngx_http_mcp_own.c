
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_own.h"
#include "ngx_http_mcp_lease_key.h"
#include "ngx_http_mcp_supply.h"


/* ms; after this an upstream may have learned to offer a GET stream */
#define NGX_HTTP_MCP_OWN_OFFER       300000


/* what a key says; strings are decoded */

typedef struct {
    ngx_str_t                  endpoint;
    ngx_str_t                  upstream;
    ngx_str_t                  tenant;
    ngx_str_t                  list_key;
} ngx_http_mcp_own_key_t;


static ngx_int_t ngx_http_mcp_own_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_str_t *key);
static ngx_int_t ngx_http_mcp_own_key_parse(ngx_http_mcp_own_key_t *k,
    ngx_str_t *key, ngx_pool_t *pool);
static ngx_int_t ngx_http_mcp_own_key_find(ngx_http_mcp_own_key_t *k,
    ngx_mcp_zone_t *zone, ngx_http_mcp_bridge_t **bridge,
    ngx_http_mcp_upstream_t **u);
static ngx_http_mcp_own_t *ngx_http_mcp_own_find(ngx_mcp_zone_t *zone,
    ngx_str_t *key);
static void ngx_http_mcp_own_claim(ngx_mcp_zone_t *zone, ngx_str_t *key);
static void ngx_http_mcp_own_held(ngx_http_mcp_own_t *own,
    ngx_mcp_lease_left_t *left);
static void ngx_http_mcp_own_tick(ngx_event_t *ev);
static void ngx_http_mcp_own_work(ngx_event_t *ev);
static void ngx_http_mcp_own_hush(ngx_http_mcp_own_t *own);
static void ngx_http_mcp_own_release(ngx_event_t *ev);
static void ngx_http_mcp_own_close(ngx_http_mcp_own_t *own);


ngx_http_mcp_own_lists_t  *ngx_http_mcp_own_lists;

static ngx_str_t           ngx_http_mcp_own_kind = ngx_string("own");
static ngx_queue_t         ngx_http_mcp_owns;
static ngx_array_t        *ngx_http_mcp_own_bridges;


void
ngx_http_mcp_own_init(ngx_array_t *bridges)
{
    ngx_queue_init(&ngx_http_mcp_owns);

    ngx_http_mcp_own_bridges = bridges;
}


ngx_int_t
ngx_http_mcp_own_want(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key)
{
    ngx_str_t      key;
    ngx_mcp_ref_t  ref;

    if (ngx_http_mcp_own_session(bridge, u, tenant, list_key, &ref) != NGX_OK
        || ngx_http_mcp_own_key(bridge, u, tenant, list_key, &key) != NGX_OK
        || ngx_mcp_lease_want(bridge->zone, &key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) ngx_mcp_lease_poke(bridge->zone, &key);

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_own_session(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_mcp_ref_t *ref)
{
    u_char                 id[NGX_MCP_UUID_LEN];
    ngx_mcp_session_new_t  in;

    ngx_memzero(&in, sizeof(ngx_mcp_session_new_t));

    ngx_http_mcp_stable_id(u, tenant, list_key, id);

    in.id.data = id;
    in.id.len = NGX_MCP_UUID_LEN;
    in.endpoint = bridge->endpoint;
    in.tenant = *tenant;
    in.list_key = *list_key;
    in.identity = u->name;
    in.initialize = ngx_http_mcp_own_initialize;
    in.revision = NGX_MCP_REVISION_LATEST_LEGACY;
    in.limit = bridge->lists_max * bridge->upstreams->nelts;

    return ngx_mcp_own_get(bridge->zone, &in, ref);
}


/* into a buffer that the next call uses again */

static ngx_int_t
ngx_http_mcp_own_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_str_t *key)
{
    ngx_str_t  *parts[4];

    parts[0] = &bridge->endpoint;
    parts[1] = &u->name;
    parts[2] = tenant;
    parts[3] = list_key;

    return ngx_http_mcp_lease_key(&ngx_http_mcp_own_kind, parts, 4, key);
}


static ngx_int_t
ngx_http_mcp_own_key_parse(ngx_http_mcp_own_key_t *k, ngx_str_t *key,
    ngx_pool_t *pool)
{
    ngx_str_t  *parts[4];

    parts[0] = &k->endpoint;
    parts[1] = &k->upstream;
    parts[2] = &k->tenant;
    parts[3] = &k->list_key;

    return ngx_http_mcp_lease_key_parse(key, pool, parts, 4);
}


static ngx_int_t
ngx_http_mcp_own_key_find(ngx_http_mcp_own_key_t *k, ngx_mcp_zone_t *zone,
    ngx_http_mcp_bridge_t **bridge, ngx_http_mcp_upstream_t **u)
{
    ngx_uint_t                i, n;
    ngx_http_mcp_bridge_t   **b;

    b = ngx_http_mcp_own_bridges->elts;

    for (i = 0; i < ngx_http_mcp_own_bridges->nelts; i++) {

        if (b[i]->zone != zone || b[i]->upstreams == NULL
            || !ngx_mcp_equal(&b[i]->endpoint, &k->endpoint))
        {
            continue;
        }

        *u = b[i]->upstreams->elts;

        for (n = 0; n < b[i]->upstreams->nelts; n++, (*u)++) {

            if (ngx_mcp_equal(&(*u)->name, &k->upstream)) {
                *bridge = b[i];
                return NGX_OK;
            }
        }
    }

    return NGX_DECLINED;
}


static ngx_http_mcp_own_t *
ngx_http_mcp_own_find(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_queue_t         *q;
    ngx_http_mcp_own_t  *own;

    for (q = ngx_queue_head(&ngx_http_mcp_owns);
         q != ngx_queue_sentinel(&ngx_http_mcp_owns);
         q = ngx_queue_next(q))
    {
        own = ngx_queue_data(q, ngx_http_mcp_own_t, queue);

        if (own->bridge->zone == zone && ngx_mcp_equal(&own->key, key)) {
            return own;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_own_lease(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t why)
{
    ngx_http_mcp_own_t  *own;

    if (!ngx_http_mcp_lease_key_is(key, &ngx_http_mcp_own_kind)) {
        return NGX_DECLINED;
    }

    own = ngx_http_mcp_own_find(zone, key);

    if (own && (why & NGX_MCP_LEASE_LOST)) {
        ngx_http_mcp_own_close(own);
        own = NULL;
    }

    if (own && (why & NGX_MCP_LEASE_GAP)) {
        ngx_http_mcp_own_gap(own);
    }

    if (own && (why & NGX_MCP_LEASE_POKED)) {
        own->unneeded = ngx_current_msec;
        own->paused = 0;

        ngx_http_mcp_own_post(own);

        if (ngx_http_mcp_own_lists) {
            ngx_http_mcp_own_lists->poked(own);
        }
    }

    if (own == NULL && (why & NGX_MCP_LEASE_FREE) && !ngx_exiting) {
        ngx_http_mcp_own_claim(zone, key);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_own_claim(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_pool_t               *pool;
    ngx_mcp_lease_t           lease;
    ngx_http_mcp_own_t       *own;
    ngx_mcp_lease_left_t      left;
    ngx_http_mcp_bridge_t    *bridge;
    ngx_http_mcp_own_key_t    k;
    ngx_http_mcp_upstream_t  *u;

    pool = ngx_create_pool(2048, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    own = ngx_pcalloc(pool, sizeof(ngx_http_mcp_own_t));

    if (own == NULL
        || ngx_http_mcp_own_key_parse(&k, key, pool) != NGX_OK
        || ngx_mcp_lease_claim(zone, key, pool, &lease, &left) != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return;
    }

    own->key.len = key->len;
    own->key.data = ngx_pstrdup(pool, key);

    if (own->key.data == NULL) {
        ngx_mcp_lease_release(zone, &lease);
        ngx_destroy_pool(pool);
        return;
    }

    /* an upstream may be left of a configuration that had it */

    if (ngx_http_mcp_own_key_find(&k, zone, &bridge, &u) != NGX_OK
        || ngx_http_mcp_own_session(bridge, u, &k.tenant, &k.list_key,
                                    &own->session)
           != NGX_OK
        || ngx_mcp_own_hold(zone, own->session, lease.fence) != NGX_OK)
    {
        ngx_mcp_lease_drop(zone, &lease);
        ngx_destroy_pool(pool);
        return;
    }

    own->bridge = bridge;
    own->upstream = u;
    own->tenant = k.tenant;
    own->list_key = k.list_key;
    own->lease = lease;
    own->pool = pool;

    ngx_http_mcp_own_held(own, &left);
}


static void
ngx_http_mcp_own_held(ngx_http_mcp_own_t *own, ngx_mcp_lease_left_t *left)
{
    ngx_int_t       serial;
    ngx_mcp_link_t  link;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp own session at upstream \"%V\" of \"%V\" held, "
                   "tenant \"%V\"",
                   &own->upstream->name, &own->bridge->endpoint, &own->tenant);

    ngx_http_mcp_stable_id(own->upstream, &own->tenant, &own->list_key,
                           own->id);

    own->audience.tenant = own->tenant;
    own->audience.list_key = own->list_key;
    own->audience.session.data = own->id;
    own->audience.session.len = NGX_MCP_UUID_LEN;

    own->unneeded = ngx_current_msec;
    ngx_http_mcp_backoff_init(&own->backoff);

    ngx_queue_init(&own->waiting);
    ngx_queue_init(&own->running);
    ngx_queue_insert_tail(&ngx_http_mcp_owns, &own->queue);

    own->tick.handler = ngx_http_mcp_own_tick;
    own->tick.data = own;
    own->tick.log = ngx_cycle->log;
    own->tick.cancelable = 1;

    own->work.handler = ngx_http_mcp_own_work;
    own->work.data = own;
    own->work.log = ngx_cycle->log;

    own->hold.handler = ngx_http_mcp_own_release;
    own->hold.data = own;
    own->hold.log = ngx_cycle->log;

    ngx_add_timer(&own->tick, NGX_MCP_LEASE_RENEW);

    if (ngx_mcp_link_peek(own->bridge->zone, own->session,
                          &own->upstream->name, &link)
        == NGX_OK)
    {
        own->linked = 1;
        own->serial = link.serial;
    }

    /* the last event id is of the link that the note tells of */

    serial = ngx_atoi(left->note.data, left->note.len);

    own->noted = (serial == NGX_ERROR) ? 0 : serial;

    ngx_http_mcp_own_listener(own, &left->id, own->noted);
    ngx_http_mcp_own_post(own);

    if (ngx_http_mcp_own_lists) {
        ngx_http_mcp_own_lists->held(own);
    }
}


void
ngx_http_mcp_own_need(ngx_http_mcp_own_t *own, ngx_uint_t who,
    ngx_uint_t needed)
{
    ngx_uint_t  needs;

    needs = needed ? (own->needs | who) : (own->needs & ~who);

    if (needs == own->needs) {
        return;
    }

    own->needs = needs;
    own->unneeded = ngx_current_msec;

    ngx_http_mcp_own_post(own);
}


void
ngx_http_mcp_own_post(ngx_http_mcp_own_t *own)
{
    ngx_post_event(&own->work, &ngx_posted_events);
}


void
ngx_http_mcp_own_pause(ngx_http_mcp_own_t *own)
{
    if (own->paused) {
        return;
    }

    own->paused = 1;
    own->resume = ngx_current_msec + ngx_http_mcp_backoff_next(&own->backoff);
}


void
ngx_http_mcp_own_doubt(ngx_http_mcp_own_t *own)
{
    ngx_add_timer(&own->tick, 0);
}


void
ngx_http_mcp_own_linked(ngx_http_mcp_own_t *own, ngx_uint_t serial)
{
    own->linked = 1;
    own->paused = 0;

    ngx_http_mcp_backoff_reset(&own->backoff);

    if (own->serial != serial) {

        /* another session there: all is to be subscribed to again */

        own->serial = serial;
        own->unoffered = 0;
    }

    ngx_http_mcp_own_post(own);
}


static void
ngx_http_mcp_own_tick(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_mcp_zone_t      *zone;
    ngx_http_mcp_own_t  *own;

    own = ev->data;
    zone = own->bridge->zone;

    rc = ngx_mcp_lease_renew(zone, &own->lease);

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_own_hush(own);
    }

    if (rc != NGX_DECLINED && own->hushed) {
        ngx_add_timer(ev, NGX_MCP_LEASE_RENEW);
        return;
    }

    if (rc != NGX_OK
        || ngx_mcp_own_touch(zone, own->session, own->lease.fence) != NGX_OK)
    {
        ngx_http_mcp_own_leave(own);
        return;
    }

    if (own->needs || own->nrunning || own->nwaiting) {
        own->unneeded = ngx_current_msec;
    }

    if (ngx_current_msec - own->unneeded >= NGX_HTTP_MCP_OWN_KEEP) {

        /* who wants it from now on finds no lease, and makes one */

        ngx_mcp_lease_drop(zone, &own->lease);
        (void) ngx_mcp_own_end(zone, own->session, own->lease.fence);

        ngx_http_mcp_own_close(own);
        return;
    }

    if (own->unoffered
        && ngx_current_msec - own->refused >= NGX_HTTP_MCP_OWN_OFFER)
    {
        own->unoffered = 0;
        ngx_http_mcp_own_post(own);
    }

    if (own->paused && (ngx_msec_int_t) (ngx_current_msec - own->resume) >= 0)
    {
        own->paused = 0;
        ngx_http_mcp_own_post(own);
    }

    ngx_add_timer(ev, NGX_MCP_LEASE_RENEW);
}


static void
ngx_http_mcp_own_work(ngx_event_t *ev)
{
    ngx_mcp_link_t       link;
    ngx_http_mcp_own_t  *own;

    own = ev->data;

    if (own->hushed) {
        return;
    }

    if (!own->paused) {
        ngx_http_mcp_supply_run(own);
    }

    ngx_http_mcp_own_need(own, NGX_HTTP_MCP_OWN_SUBSCRIPTIONS,
                          ngx_mcp_supplies(own->bridge->zone, own->session)
                          == 1);

    if (own->needs == 0) {
        ngx_http_mcp_own_unlisten(own);

    } else if (!own->listening && !own->unoffered && own->upstream->listen
               && (own->linked || own->nrunning == 0))
    {
        ngx_http_mcp_own_listen(own);

    } else if (own->begun && own->begun_on != own->serial
               && ngx_mcp_link_peek(own->bridge->zone, own->session,
                                    &own->upstream->name, &link)
                  == NGX_OK
               && own->begun_on != link.serial)
    {
        /* a request found that the session of the stream was forgotten */

        ngx_http_mcp_listener_again(&own->listener);
    }

    ngx_http_mcp_own_run(own);
}


void
ngx_http_mcp_own_supplies(ngx_mcp_zone_t *zone)
{
    ngx_queue_t         *q;
    ngx_http_mcp_own_t  *own;

    for (q = ngx_queue_head(&ngx_http_mcp_owns);
         q != ngx_queue_sentinel(&ngx_http_mcp_owns);
         q = ngx_queue_next(q))
    {
        own = ngx_queue_data(q, ngx_http_mcp_own_t, queue);

        if (own->bridge->zone == zone) {
            ngx_http_mcp_own_wake(own);
            ngx_http_mcp_own_post(own);
        }
    }

    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_SUBSCRIPTION);
}


void
ngx_http_mcp_own_quit(ngx_mcp_zone_t *zone)
{
    ngx_uint_t           newer;
    ngx_queue_t         *q;
    ngx_http_mcp_own_t  *own;

    newer = ngx_mcp_lease_newer(zone);

    q = ngx_queue_head(&ngx_http_mcp_owns);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_owns)) {

        own = ngx_queue_data(q, ngx_http_mcp_own_t, queue);
        q = ngx_queue_next(q);

        if (own->bridge->zone != zone) {
            continue;
        }

        if (!newer || !own->listener.up) {
            ngx_http_mcp_own_leave(own);
            continue;
        }

        ngx_http_mcp_own_hush(own);

        if (!own->hold.timer_set) {
            ngx_add_timer(&own->hold, NGX_HTTP_MCP_OWN_HOLD);
        }
    }
}


static void
ngx_http_mcp_own_hush(ngx_http_mcp_own_t *own)
{
    if (own->hushed) {
        return;
    }

    own->hushed = 1;

    if (ngx_http_mcp_own_lists) {
        ngx_http_mcp_own_lists->hushed(own);
    }

    ngx_http_mcp_own_close_requests(own);
}


static void
ngx_http_mcp_own_release(ngx_event_t *ev)
{
    ngx_http_mcp_own_leave(ev->data);
}


void
ngx_http_mcp_own_leave(ngx_http_mcp_own_t *own)
{
    ngx_mcp_lease_release(own->bridge->zone, &own->lease);
    ngx_http_mcp_own_close(own);
}


/* the lease is lost, or given up */

static void
ngx_http_mcp_own_close(ngx_http_mcp_own_t *own)
{
    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp own session at upstream \"%V\" of \"%V\" let go, "
                   "tenant \"%V\"",
                   &own->upstream->name, &own->bridge->endpoint, &own->tenant);

    if (ngx_http_mcp_own_lists) {
        ngx_http_mcp_own_lists->lost(own);
    }

    ngx_http_mcp_own_unlisten(own);
    ngx_http_mcp_own_close_requests(own);

    if (own->tick.timer_set) {
        ngx_del_timer(&own->tick);
    }

    if (own->hold.timer_set) {
        ngx_del_timer(&own->hold);
    }

    if (own->work.posted) {
        ngx_delete_posted_event(&own->work);
    }

    ngx_queue_remove(&own->queue);

    ngx_destroy_pool(own->pool);
}
