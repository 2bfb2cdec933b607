
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_lease_key.h"
#include "ngx_http_mcp_interest.h"


/* ms; after this an upstream may have learned to offer a GET stream */
#define NGX_HTTP_MCP_SHARED_OFFER       300000


/* what a key says; strings are decoded */

typedef struct {
    ngx_str_t                  endpoint;
    ngx_str_t                  upstream;
    ngx_str_t                  tenant;
    ngx_str_t                  list_key;
} ngx_http_mcp_shared_key_t;


static ngx_int_t ngx_http_mcp_shared_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_str_t *key);
static ngx_int_t ngx_http_mcp_shared_key_parse(ngx_http_mcp_shared_key_t *k,
    ngx_str_t *key, ngx_pool_t *pool);
static ngx_int_t ngx_http_mcp_shared_key_find(ngx_http_mcp_shared_key_t *k,
    ngx_mcp_zone_t *zone, ngx_http_mcp_bridge_t **bridge,
    ngx_http_mcp_upstream_t **u);
static ngx_http_mcp_shared_t *ngx_http_mcp_shared_find(ngx_mcp_zone_t *zone,
    ngx_str_t *key);
static void ngx_http_mcp_shared_claim(ngx_mcp_zone_t *zone, ngx_str_t *key);
static void ngx_http_mcp_shared_held(ngx_http_mcp_shared_t *us,
    ngx_mcp_lease_left_t *left);
static void ngx_http_mcp_shared_tick(ngx_event_t *ev);
static void ngx_http_mcp_shared_work(ngx_event_t *ev);
static void ngx_http_mcp_shared_hush(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_shared_release(ngx_event_t *ev);
static void ngx_http_mcp_shared_close(ngx_http_mcp_shared_t *us);


ngx_http_mcp_shared_lists_t  *ngx_http_mcp_shared_lists;

static ngx_str_t           ngx_http_mcp_shared_kind = ngx_string("own");
static ngx_queue_t         ngx_http_mcp_shared_queue;
static ngx_array_t        *ngx_http_mcp_shared_bridges;


void
ngx_http_mcp_shared_init(ngx_array_t *bridges)
{
    ngx_queue_init(&ngx_http_mcp_shared_queue);

    ngx_http_mcp_shared_bridges = bridges;
}


ngx_int_t
ngx_http_mcp_shared_want(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key)
{
    ngx_str_t      key;
    ngx_mcp_ref_t  ref;

    if (ngx_http_mcp_shared_session(bridge, u, tenant, list_key, &ref) != NGX_OK
        || ngx_http_mcp_shared_key(bridge, u, tenant, list_key, &key) != NGX_OK
        || ngx_mcp_lease_want(bridge->zone, &key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) ngx_mcp_lease_poke(bridge->zone, &key);

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_shared_session(ngx_http_mcp_bridge_t *bridge,
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
ngx_http_mcp_shared_key(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key,
    ngx_str_t *key)
{
    ngx_str_t  *parts[4];

    parts[0] = &bridge->endpoint;
    parts[1] = &u->name;
    parts[2] = tenant;
    parts[3] = list_key;

    return ngx_http_mcp_lease_key(&ngx_http_mcp_shared_kind, parts, 4, key);
}


static ngx_int_t
ngx_http_mcp_shared_key_parse(ngx_http_mcp_shared_key_t *k, ngx_str_t *key,
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
ngx_http_mcp_shared_key_find(ngx_http_mcp_shared_key_t *k, ngx_mcp_zone_t *zone,
    ngx_http_mcp_bridge_t **bridge, ngx_http_mcp_upstream_t **u)
{
    ngx_uint_t               i, n;
    ngx_http_mcp_bridge_t  **b;

    b = ngx_http_mcp_shared_bridges->elts;

    for (i = 0; i < ngx_http_mcp_shared_bridges->nelts; i++) {

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


static ngx_http_mcp_shared_t *
ngx_http_mcp_shared_find(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_queue_t            *q;
    ngx_http_mcp_shared_t  *us;

    for (q = ngx_queue_head(&ngx_http_mcp_shared_queue);
         q != ngx_queue_sentinel(&ngx_http_mcp_shared_queue);
         q = ngx_queue_next(q))
    {
        us = ngx_queue_data(q, ngx_http_mcp_shared_t, queue);

        if (us->bridge->zone == zone && ngx_mcp_equal(&us->key, key)) {
            return us;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_shared_lease(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t why)
{
    ngx_http_mcp_shared_t  *us;

    if (!ngx_http_mcp_lease_key_is(key, &ngx_http_mcp_shared_kind)) {
        return NGX_DECLINED;
    }

    us = ngx_http_mcp_shared_find(zone, key);

    if (us && (why & NGX_MCP_LEASE_LOST)) {
        ngx_http_mcp_shared_close(us);
        us = NULL;
    }

    if (us && (why & NGX_MCP_LEASE_GAP)) {
        ngx_http_mcp_shared_gap(us);
    }

    if (us && (why & NGX_MCP_LEASE_POKED)) {
        us->unneeded = ngx_current_msec;
        us->paused = 0;

        ngx_http_mcp_shared_post(us);

        if (ngx_http_mcp_shared_lists) {
            ngx_http_mcp_shared_lists->poked(us);
        }
    }

    if (us == NULL && (why & NGX_MCP_LEASE_FREE) && !ngx_exiting) {
        ngx_http_mcp_shared_claim(zone, key);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_shared_claim(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_pool_t                *pool;
    ngx_mcp_lease_t            lease;
    ngx_mcp_lease_left_t       left;
    ngx_http_mcp_shared_t     *us;
    ngx_http_mcp_bridge_t     *bridge;
    ngx_http_mcp_upstream_t   *u;
    ngx_http_mcp_shared_key_t  k;

    pool = ngx_create_pool(2048, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    us = ngx_pcalloc(pool, sizeof(ngx_http_mcp_shared_t));

    if (us == NULL
        || ngx_http_mcp_shared_key_parse(&k, key, pool) != NGX_OK
        || ngx_mcp_lease_claim(zone, key, pool, &lease, &left) != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return;
    }

    us->key.len = key->len;
    us->key.data = ngx_pstrdup(pool, key);

    if (us->key.data == NULL) {
        ngx_mcp_lease_release(zone, &lease);
        ngx_destroy_pool(pool);
        return;
    }

    /* an upstream may be left of a configuration that had it */

    if (ngx_http_mcp_shared_key_find(&k, zone, &bridge, &u) != NGX_OK
        || ngx_http_mcp_shared_session(bridge, u, &k.tenant, &k.list_key,
                                       &us->session)
           != NGX_OK
        || ngx_mcp_own_hold(zone, us->session, lease.fence) != NGX_OK)
    {
        ngx_mcp_lease_drop(zone, &lease);
        ngx_destroy_pool(pool);
        return;
    }

    us->bridge = bridge;
    us->upstream = u;
    us->tenant = k.tenant;
    us->list_key = k.list_key;
    us->lease = lease;
    us->pool = pool;

    ngx_http_mcp_shared_held(us, &left);
}


static void
ngx_http_mcp_shared_held(ngx_http_mcp_shared_t *us, ngx_mcp_lease_left_t *left)
{
    ngx_int_t       serial;
    ngx_mcp_link_t  link;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp shared session at upstream \"%V\" of \"%V\" held, "
                   "tenant \"%V\"",
                   &us->upstream->name, &us->bridge->endpoint, &us->tenant);

    ngx_http_mcp_stable_id(us->upstream, &us->tenant, &us->list_key,
                           us->id);

    us->audience.tenant = us->tenant;
    us->audience.list_key = us->list_key;
    us->audience.session.data = us->id;
    us->audience.session.len = NGX_MCP_UUID_LEN;

    us->unneeded = ngx_current_msec;
    ngx_http_mcp_backoff_init(&us->backoff);

    ngx_queue_init(&us->waiting);
    ngx_queue_init(&us->running);
    ngx_queue_insert_tail(&ngx_http_mcp_shared_queue, &us->queue);

    us->tick.handler = ngx_http_mcp_shared_tick;
    us->tick.data = us;
    us->tick.log = ngx_cycle->log;
    us->tick.cancelable = 1;

    us->work.handler = ngx_http_mcp_shared_work;
    us->work.data = us;
    us->work.log = ngx_cycle->log;

    us->hold.handler = ngx_http_mcp_shared_release;
    us->hold.data = us;
    us->hold.log = ngx_cycle->log;

    ngx_add_timer(&us->tick, NGX_MCP_LEASE_RENEW);

    if (ngx_mcp_link_peek(us->bridge->zone, us->session,
                          &us->upstream->name, &link)
        == NGX_OK)
    {
        us->linked = 1;
        us->serial = link.serial;
    }

    /* the last event id is of the link that the note tells of */

    serial = ngx_atoi(left->note.data, left->note.len);

    us->noted = (serial == NGX_ERROR) ? 0 : serial;

    ngx_http_mcp_shared_listener(us, &left->id, us->noted);
    ngx_http_mcp_shared_post(us);

    if (ngx_http_mcp_shared_lists) {
        ngx_http_mcp_shared_lists->held(us);
    }
}


void
ngx_http_mcp_shared_need(ngx_http_mcp_shared_t *us, ngx_uint_t who,
    ngx_uint_t needed)
{
    ngx_uint_t  needs;

    needs = needed ? (us->needs | who) : (us->needs & ~who);

    if (needs == us->needs) {
        return;
    }

    us->needs = needs;
    us->unneeded = ngx_current_msec;

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
ngx_http_mcp_shared_doubt(ngx_http_mcp_shared_t *us)
{
    ngx_add_timer(&us->tick, 0);
}


void
ngx_http_mcp_shared_linked(ngx_http_mcp_shared_t *us, ngx_uint_t serial)
{
    us->linked = 1;
    us->paused = 0;

    ngx_http_mcp_backoff_reset(&us->backoff);

    if (us->serial != serial) {

        /* another session there: all is to be subscribed to again */

        us->serial = serial;
        us->unoffered = 0;
    }

    ngx_http_mcp_shared_post(us);
}


static void
ngx_http_mcp_shared_tick(ngx_event_t *ev)
{
    ngx_int_t               rc;
    ngx_mcp_zone_t         *zone;
    ngx_http_mcp_shared_t  *us;

    us = ev->data;
    zone = us->bridge->zone;

    rc = ngx_mcp_lease_renew(zone, &us->lease);

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_shared_hush(us);
    }

    if (rc != NGX_DECLINED && us->hushed) {
        ngx_add_timer(ev, NGX_MCP_LEASE_RENEW);
        return;
    }

    if (rc != NGX_OK
        || ngx_mcp_own_touch(zone, us->session, us->lease.fence) != NGX_OK)
    {
        ngx_http_mcp_shared_leave(us);
        return;
    }

    if (us->needs || us->nrunning || us->nwaiting) {
        us->unneeded = ngx_current_msec;
    }

    if (ngx_current_msec - us->unneeded >= NGX_HTTP_MCP_SHARED_KEEP) {

        /* who wants it from now on finds no lease, and makes one */

        ngx_mcp_lease_drop(zone, &us->lease);
        (void) ngx_mcp_own_end(zone, us->session, us->lease.fence);

        ngx_http_mcp_shared_close(us);
        return;
    }

    if (us->unoffered
        && ngx_current_msec - us->refused >= NGX_HTTP_MCP_SHARED_OFFER)
    {
        us->unoffered = 0;
        ngx_http_mcp_shared_post(us);
    }

    if (us->paused && (ngx_msec_int_t) (ngx_current_msec - us->resume) >= 0)
    {
        us->paused = 0;
        ngx_http_mcp_shared_post(us);
    }

    ngx_add_timer(ev, NGX_MCP_LEASE_RENEW);
}


static void
ngx_http_mcp_shared_work(ngx_event_t *ev)
{
    ngx_mcp_link_t          link;
    ngx_http_mcp_shared_t  *us;

    us = ev->data;

    if (us->hushed) {
        return;
    }

    if (!us->paused) {
        ngx_http_mcp_interest_run(us);
    }

    ngx_http_mcp_shared_need(us, NGX_HTTP_MCP_SHARED_SUBSCRIPTIONS,
                             ngx_mcp_supplies(us->bridge->zone, us->session)
                             == 1);

    if (us->needs == 0) {
        ngx_http_mcp_shared_unlisten(us);

    } else if (!us->listening && !us->unoffered && us->upstream->listen
               && (us->linked || us->nrunning == 0))
    {
        ngx_http_mcp_shared_listen(us);

    } else if (us->begun && us->begun_on != us->serial
               && ngx_mcp_link_peek(us->bridge->zone, us->session,
                                    &us->upstream->name, &link)
                  == NGX_OK
               && us->begun_on != link.serial)
    {
        /* a request found that the session of the stream was forgotten */

        ngx_http_mcp_listener_again(&us->listener);
    }

    ngx_http_mcp_shared_run(us);
}


void
ngx_http_mcp_shared_interests(ngx_mcp_zone_t *zone)
{
    ngx_queue_t            *q;
    ngx_http_mcp_shared_t  *us;

    for (q = ngx_queue_head(&ngx_http_mcp_shared_queue);
         q != ngx_queue_sentinel(&ngx_http_mcp_shared_queue);
         q = ngx_queue_next(q))
    {
        us = ngx_queue_data(q, ngx_http_mcp_shared_t, queue);

        if (us->bridge->zone == zone) {
            ngx_http_mcp_shared_wake(us);
            ngx_http_mcp_shared_post(us);
        }
    }

    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_SUBSCRIPTION, 0);
}


void
ngx_http_mcp_shared_quit(ngx_mcp_zone_t *zone)
{
    ngx_uint_t              newer;
    ngx_queue_t            *q;
    ngx_http_mcp_shared_t  *us;

    newer = ngx_mcp_lease_newer(zone);

    q = ngx_queue_head(&ngx_http_mcp_shared_queue);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_shared_queue)) {

        us = ngx_queue_data(q, ngx_http_mcp_shared_t, queue);
        q = ngx_queue_next(q);

        if (us->bridge->zone != zone) {
            continue;
        }

        if (!newer || !us->listener.up) {
            ngx_http_mcp_shared_leave(us);
            continue;
        }

        ngx_http_mcp_shared_hush(us);

        if (!us->hold.timer_set) {
            ngx_add_timer(&us->hold, NGX_HTTP_MCP_SHARED_HOLD);
        }
    }
}


static void
ngx_http_mcp_shared_hush(ngx_http_mcp_shared_t *us)
{
    if (us->hushed) {
        return;
    }

    us->hushed = 1;

    if (ngx_http_mcp_shared_lists) {
        ngx_http_mcp_shared_lists->hushed(us);
    }

    ngx_http_mcp_shared_close_requests(us);
}


static void
ngx_http_mcp_shared_release(ngx_event_t *ev)
{
    ngx_http_mcp_shared_leave(ev->data);
}


void
ngx_http_mcp_shared_leave(ngx_http_mcp_shared_t *us)
{
    ngx_mcp_lease_release(us->bridge->zone, &us->lease);
    ngx_http_mcp_shared_close(us);
}


/* the lease is lost, or given up */

static void
ngx_http_mcp_shared_close(ngx_http_mcp_shared_t *us)
{
    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp shared session at upstream \"%V\" of \"%V\" let go, "
                   "tenant \"%V\"",
                   &us->upstream->name, &us->bridge->endpoint, &us->tenant);

    if (ngx_http_mcp_shared_lists) {
        ngx_http_mcp_shared_lists->lost(us);
    }

    ngx_http_mcp_shared_unlisten(us);
    ngx_http_mcp_shared_close_requests(us);

    if (us->tick.timer_set) {
        ngx_del_timer(&us->tick);
    }

    if (us->hold.timer_set) {
        ngx_del_timer(&us->hold);
    }

    if (us->work.posted) {
        ngx_delete_posted_event(&us->work);
    }

    ngx_queue_remove(&us->queue);

    ngx_destroy_pool(us->pool);
}
