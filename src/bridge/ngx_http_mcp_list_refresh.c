
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_list_refresh.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_profile.h"


/* ms between two fetches of a list, at least; a shorter ttlMs is raised */
#define NGX_HTTP_MCP_LIST_TTL    10000

/*
 * ms; limits of the fetches that notifications cause, because an upstream may
 * notify whenever its list is fetched: on average one fetch in each PAUSE, but
 * fetches that were not needed for BURST ms may follow each other at once.
 */
#define NGX_HTTP_MCP_LIST_PAUSE  1000
#define NGX_HTTP_MCP_LIST_BURST  19000


typedef struct ngx_http_mcp_list_refresh_s  ngx_http_mcp_list_refresh_t;


/* one kind of the lists of an audience, and its fetch */

typedef struct {
    ngx_http_mcp_list_refresh_t  *refresh;
    ngx_uint_t                    kind;
    ngx_pool_t                   *pool;      /* memory of the fetch; NULL: the
                                                list is not being fetched */
    ngx_mcp_pages_t               pages;     /* pages fetched so far */
    uint32_t                      signals;   /* number of signals of changes in
                                                the zone when the fetch began */
    ngx_msec_t                    ttl;       /* ms until the list is to be
                                                fetched again */
    ngx_msec_t                    not_before;  /* time before which a signal
                                                  causes no fetch */
    ngx_uint_t                    failures;  /* fetches that failed since the
                                                last one that succeeded */
    ngx_uint_t                    large;     /* the log said that the list is
                                                too large */
} ngx_http_mcp_fetch_t;


/*
 * The lists of an audience at one upstream; this worker holds the shared
 * upstream session there.
 */

struct ngx_http_mcp_list_refresh_s {
    ngx_queue_t               queue;      /* link in the queue of all such
                                             structures of the worker */
    ngx_http_mcp_shared_t    *us;
    ngx_mcp_audience_t        names;      /* endpoint, tenant and key of the
                                             audience */
    ngx_mcp_ref_t             audience;   /* the audience in the zone */
    ngx_mcp_ref_t             part;       /* the upstream's part of its lists */
    ngx_event_t               timer;      /* runs until a list is due */
    ngx_uint_t                replaced;   /* another worker has become the
                                             holder */
    ngx_http_mcp_fetch_t      fetches[NGX_MCP_LIST_KINDS];
};


static void ngx_http_mcp_list_refresh_held(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_list_refresh_signaled(ngx_http_mcp_shared_t *us);
static ngx_int_t ngx_http_mcp_list_refresh_changed(ngx_http_mcp_shared_t *us,
    ngx_uint_t kinds);
static void ngx_http_mcp_list_refresh_replaced(ngx_http_mcp_shared_t *us);
static void ngx_http_mcp_list_refresh_lost(ngx_http_mcp_shared_t *us);
static ngx_int_t ngx_http_mcp_list_refresh_find(
    ngx_http_mcp_list_refresh_t *r);
static ngx_msec_t ngx_http_mcp_list_refresh_keep_time(
    ngx_http_mcp_list_refresh_t *r);
static void ngx_http_mcp_list_refresh_timer(ngx_event_t *ev);
static void ngx_http_mcp_list_refresh_work(ngx_http_mcp_list_refresh_t *r);
static void ngx_http_mcp_list_refresh_start(ngx_http_mcp_fetch_t *f);
static ngx_int_t ngx_http_mcp_list_refresh_request(ngx_http_mcp_fetch_t *f);
static void ngx_http_mcp_list_refresh_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data);
static void ngx_http_mcp_list_refresh_store(ngx_http_mcp_fetch_t *f);
static ngx_int_t ngx_http_mcp_list_refresh_put(ngx_http_mcp_fetch_t *f,
    ngx_mcp_list_content_t *content);
static void ngx_http_mcp_list_refresh_too_large(ngx_http_mcp_fetch_t *f,
    const char *remedy);
static void ngx_http_mcp_list_refresh_fail(ngx_http_mcp_fetch_t *f,
    const char *why);
static void ngx_http_mcp_list_refresh_uncached(ngx_http_mcp_fetch_t *f,
    ngx_uint_t absent);
static void ngx_http_mcp_list_refresh_end(ngx_http_mcp_fetch_t *f);
static void ngx_http_mcp_list_refresh_notify(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_t *names, ngx_mcp_ref_t audience, ngx_mcp_ref_t part,
    ngx_uint_t fetched);


static ngx_http_mcp_shared_handlers_t  ngx_http_mcp_list_refresh_handlers = {
    .held = ngx_http_mcp_list_refresh_held,
    .signaled = ngx_http_mcp_list_refresh_signaled,
    .changed = ngx_http_mcp_list_refresh_changed,
    .replaced = ngx_http_mcp_list_refresh_replaced,
    .lost = ngx_http_mcp_list_refresh_lost
};


ngx_int_t
ngx_http_mcp_list_refresh_init(ngx_mcp_zone_t *zone)
{
    ngx_http_mcp_shared_handlers = &ngx_http_mcp_list_refresh_handlers;

    return ngx_mcp_ctx_queues(zone, NGX_MCP_CTX_LIST_REFRESHES, 1)
           ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_list_refresh_prepare(ngx_http_mcp_bridge_t *bridge)
{
    ngx_str_t                *tenant;
    ngx_uint_t                kept;
    ngx_pool_t               *pool;
    ngx_mcp_ref_t             ref, none;
    ngx_mcp_zone_t           *zone;
    ngx_mcp_audience_t        names;
    ngx_mcp_audience_walk_t   walk;

    /* key of the audience of clients that declare no capabilities */

    static ngx_str_t  key = ngx_string("a");

    zone = bridge->zone;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    kept = (bridge->lists == NGX_HTTP_MCP_LIST_CACHE_ON && bridge->router.n);

    ngx_memzero(&none, sizeof(ngx_mcp_ref_t));
    ngx_memzero(&walk, sizeof(ngx_mcp_audience_walk_t));

    walk.endpoint = &bridge->endpoint;

    while (ngx_mcp_audience_next(zone, &walk, pool, &names) == NGX_OK) {
        ref = walk.ref;

        if (!kept) {
            ngx_mcp_audience_drop(zone, ref, bridge->lists_passing != 0);
            continue;
        }

        if (ngx_mcp_audience_sync(zone, ref, &bridge->sources) == NGX_OK) {

            /* parts of removed upstreams were dropped from the lists */

            ngx_http_mcp_list_refresh_notify(zone, &names, ref, none, 0);
        }

        if (bridge->lists_warm) {
            ngx_mcp_list_want(zone, ref, bridge->lists_kinds);
        }

        /* an added upstream was not asked for this audience's lists yet */

        if (bridge->lists_warm || bridge->router.n > 1) {
            (void) ngx_http_mcp_shared_ensure_all(bridge, &names.tenant,
                                                   &names.key);
        }
    }

    tenant = bridge->lists_tenant;

    if (kept && bridge->lists_warm && tenant) {
        names.endpoint = bridge->endpoint;
        names.tenant = *tenant;
        names.key = key;

        if (ngx_mcp_audience_get(zone, &names, &bridge->sources,
                                 bridge->lists_max, &ref)
            == NGX_OK)
        {
            ngx_mcp_list_want(zone, ref, bridge->lists_kinds);
            (void) ngx_http_mcp_shared_ensure_all(bridge, tenant, &names.key);
        }
    }

    ngx_destroy_pool(pool);
}


void
ngx_http_mcp_list_refresh_clean(ngx_mcp_zone_t *zone)
{
    ngx_uint_t                i;
    ngx_pool_t               *pool;
    ngx_array_t              *all;
    ngx_mcp_audience_t        names;
    ngx_http_mcp_bridge_t   **bridges;
    ngx_mcp_audience_walk_t   walk;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    all = zone->ctx[NGX_MCP_CTX_BRIDGES];
    bridges = all->elts;

    ngx_memzero(&walk, sizeof(ngx_mcp_audience_walk_t));

    while (ngx_mcp_audience_next(zone, &walk, pool, &names) == NGX_OK) {

        for (i = 0; i < all->nelts; i++) {
            if (bridges[i]->zone == zone
                && ngx_mcp_equal(&bridges[i]->endpoint, &names.endpoint))
            {
                break;
            }
        }

        if (i == all->nelts) {
            ngx_mcp_audience_drop(zone, walk.ref, 1);
        }

        ngx_reset_pool(pool);
    }

    ngx_destroy_pool(pool);
}


void
ngx_http_mcp_list_refresh_doorbell(ngx_mcp_zone_t *zone, uint64_t keys)
{
    ngx_queue_t                  *q, *next, *refreshes;
    ngx_http_mcp_list_refresh_t  *r;

    refreshes = zone->ctx[NGX_MCP_CTX_LIST_REFRESHES];

    for (q = ngx_queue_head(refreshes);
         q != ngx_queue_sentinel(refreshes);
         q = next)
    {
        next = ngx_queue_next(q);
        r = ngx_queue_data(q, ngx_http_mcp_list_refresh_t, queue);

        if (keys & NGX_MCP_RING_KEY(r->audience.block)) {
            ngx_http_mcp_list_refresh_work(r);
        }
    }

    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_LIST, keys);
}


static void
ngx_http_mcp_list_refresh_held(ngx_http_mcp_shared_t *us)
{
    ngx_uint_t                    i;
    ngx_queue_t                  *refreshes;
    ngx_http_mcp_list_refresh_t  *r;

    us->lists = NULL;

    if (us->bridge->lists != NGX_HTTP_MCP_LIST_CACHE_ON) {
        return;
    }

    r = ngx_pcalloc(us->pool, sizeof(ngx_http_mcp_list_refresh_t));
    if (r == NULL) {
        return;
    }

    r->us = us;
    r->names.endpoint = us->bridge->endpoint;
    r->names.tenant = us->tenant;
    r->names.key = us->audience_key;

    r->timer.handler = ngx_http_mcp_list_refresh_timer;
    r->timer.data = r;
    r->timer.log = ngx_cycle->log;
    r->timer.cancelable = 1;

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        r->fetches[i].refresh = r;
        r->fetches[i].kind = i;
    }

    us->lists = r;

    refreshes = us->bridge->zone->ctx[NGX_MCP_CTX_LIST_REFRESHES];
    ngx_queue_insert_tail(refreshes, &r->queue);

    /* changes may have been missed while no worker read the stream */

    if (ngx_http_mcp_list_refresh_find(r) == NGX_OK) {
        (void) ngx_mcp_list_signal(us->bridge->zone, r->audience, r->part,
                                   NGX_MCP_LIST_ALL, 0);
    }

    ngx_http_mcp_list_refresh_work(r);
}


static void
ngx_http_mcp_list_refresh_signaled(ngx_http_mcp_shared_t *us)
{
    if (us->lists) {
        ngx_http_mcp_list_refresh_work(us->lists);
    }
}


static ngx_int_t
ngx_http_mcp_list_refresh_changed(ngx_http_mcp_shared_t *us, ngx_uint_t kinds)
{
    ngx_http_mcp_list_refresh_t  *r;

    r = us->lists;

    if (us->bridge->lists_passing) {
        ngx_mcp_list_forget(us->bridge->zone, &us->bridge->endpoint,
                            &us->tenant, &us->upstream->name, kinds);
    }

    if (r == NULL || r->audience.block == 0) {
        return NGX_DECLINED;
    }

    return ngx_mcp_list_signal(us->bridge->zone, r->audience, r->part, kinds,
                               1)
           ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_mcp_list_refresh_replaced(ngx_http_mcp_shared_t *us)
{
    ngx_uint_t                    i;
    ngx_http_mcp_list_refresh_t  *r;

    r = us->lists;

    if (r == NULL) {
        return;
    }

    r->replaced = 1;

    if (r->timer.timer_set) {
        ngx_del_timer(&r->timer);
    }

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        ngx_http_mcp_list_refresh_end(&r->fetches[i]);
    }
}


static void
ngx_http_mcp_list_refresh_lost(ngx_http_mcp_shared_t *us)
{
    ngx_http_mcp_list_refresh_t  *r;

    r = us->lists;

    if (r == NULL) {
        return;
    }

    ngx_http_mcp_list_refresh_replaced(us);

    us->lists = NULL;

    ngx_queue_remove(&r->queue);
}


static void
ngx_http_mcp_list_refresh_timer(ngx_event_t *ev)
{
    ngx_http_mcp_list_refresh_work(ev->data);
}


static ngx_int_t
ngx_http_mcp_list_refresh_find(ngx_http_mcp_list_refresh_t *r)
{
    ngx_mcp_zone_t  *zone;

    zone = r->us->bridge->zone;

    if (ngx_mcp_audience_find(zone, &r->names, &r->audience) == NGX_OK
        && ngx_mcp_audience_part(zone, r->audience, &r->us->upstream->name,
                                 &r->part)
           == NGX_OK)
    {
        return NGX_OK;
    }

    r->audience.block = 0;
    r->part.block = 0;

    return NGX_DECLINED;
}


/*
 * Returns the time, ms, for which lists are kept up to date after their last
 * use.  It is unlimited if all clients have the same audience.
 */

static ngx_msec_t
ngx_http_mcp_list_refresh_keep_time(ngx_http_mcp_list_refresh_t *r)
{
    ngx_http_mcp_bridge_t  *bridge;

    bridge = r->us->bridge;

    if (bridge->lists_warm && bridge->lists_tenant && r->names.key.len == 1
        && ngx_mcp_equal(&r->names.tenant, bridge->lists_tenant))
    {
        return NGX_MAX_INT32_VALUE;
    }

    return ngx_max(bridge->lists_ttl, NGX_MCP_LIST_IDLE);
}


/* starts to fetch the lists that are due, and sets the timer for the next */

static void
ngx_http_mcp_list_refresh_work(ngx_http_mcp_list_refresh_t *r)
{
    ngx_int_t               rc;
    ngx_msec_t              delay, next;
    ngx_uint_t              i, fetched;
    ngx_mcp_zone_t         *zone;
    ngx_http_mcp_fetch_t   *f;

    if (r->replaced) {
        return;
    }

    zone = r->us->bridge->zone;

    if (r->timer.timer_set) {
        ngx_del_timer(&r->timer);
    }

    if (ngx_http_mcp_list_refresh_find(r) != NGX_OK
        || ngx_mcp_audience_retire(zone, r->audience,
                                   ngx_http_mcp_list_refresh_keep_time(r))
           == NGX_OK)
    {
        r->audience.block = 0;
        r->part.block = 0;
        ngx_http_mcp_shared_use(r->us, NGX_HTTP_MCP_SHARED_LISTS, 0);
        return;
    }

    ngx_http_mcp_shared_use(r->us, NGX_HTTP_MCP_SHARED_LISTS, 1);

    next = NGX_MAX_INT32_VALUE;
    fetched = 0;

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        f = &r->fetches[i];

        if (f->pool == NULL) {
            rc = ngx_mcp_list_due(zone, r->part, i, f->not_before, &f->signals,
                                  &delay);

            if (rc == NGX_OK) {
                ngx_http_mcp_list_refresh_start(f);

            } else if (rc == NGX_AGAIN) {
                next = ngx_min(next, delay);
            }
        }

        if (f->pool) {
            fetched |= NGX_MCP_LIST_BIT(i);
        }
    }

    ngx_http_mcp_list_refresh_notify(zone, &r->names, r->audience, r->part,
                                     fetched);

    if (next != NGX_MAX_INT32_VALUE && !r->timer.timer_set) {
        ngx_add_timer(&r->timer, next);
    }
}


static void
ngx_http_mcp_list_refresh_start(ngx_http_mcp_fetch_t *f)
{
    ngx_mcp_count(f->refresh->us->bridge->zone,
                  NGX_MCP_COUNTER_LISTS_REFRESHES, 1);

    f->ttl = f->refresh->us->bridge->lists_ttl;
    f->not_before = ngx_max(f->not_before + NGX_HTTP_MCP_LIST_BURST,
                            ngx_current_msec)
                    - NGX_HTTP_MCP_LIST_BURST + NGX_HTTP_MCP_LIST_PAUSE;

    f->pool = ngx_create_pool(4096, ngx_cycle->log);
    if (f->pool == NULL) {
        ngx_http_mcp_list_refresh_fail(f, "no memory");
        return;
    }

    if (ngx_mcp_pages_init(&f->pages, f->kind, f->pool) != NGX_OK
        || ngx_http_mcp_list_refresh_request(f) != NGX_OK)
    {
        ngx_http_mcp_list_refresh_fail(f, "no memory");
    }
}


static ngx_int_t
ngx_http_mcp_list_refresh_request(ngx_http_mcp_fetch_t *f)
{
    u_char    *p;
    ngx_str_t  params;

    ngx_str_set(&params, "");

    if (f->pages.cursor.len) {
        params.len = sizeof("{\"cursor\":}") - 1 + f->pages.cursor.len;

        p = ngx_pnalloc(f->pool, params.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        params.data = p;

        p = ngx_cpymem(p, "{\"cursor\":", sizeof("{\"cursor\":") - 1);
        p = ngx_cpymem(p, f->pages.cursor.data, f->pages.cursor.len);
        *p = '}';
    }

    return ngx_http_mcp_shared_request(f->refresh->us,
                                       ngx_mcp_list_method(f->kind), &params,
                                       ngx_http_mcp_list_refresh_done, f);
}


static void
ngx_http_mcp_list_refresh_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data)
{
    ngx_int_t                     rc;
    ngx_msec_t                    ttl;
    const char                   *why;
    ngx_http_mcp_fetch_t         *f;
    ngx_http_mcp_list_refresh_t  *r;

    f = data;
    r = f->refresh;
    why = "no answer";

    /*
     * If this worker was blocked for long, it has lost the lease, and must not
     * replace a newer list by its own.
     */

    if (ngx_mcp_lease_renew(us->bridge->zone, &us->reader.lease) != NGX_OK) {
        ngx_http_mcp_list_refresh_end(f);
        ngx_http_mcp_reader_check_lease(&us->reader);
        return;
    }

    if (answer->result.len == 0) {

        if (answer->code == NGX_MCP_METHOD_NOT_FOUND
            || (answer->code == 0
                && ngx_http_mcp_status_absent(answer->status)))
        {
            ngx_http_mcp_list_refresh_uncached(f, 1);

        } else {
            if (answer->code) {
                why = "an error";
            }

            ngx_http_mcp_list_refresh_fail(f, why);
        }

    } else {
        if (answer->hint.until) {
            ttl = ngx_max(answer->hint.until,
                          ngx_current_msec + NGX_HTTP_MCP_LIST_TTL)
                  - ngx_current_msec;
            f->ttl = ngx_min(f->ttl, ttl);
        }

        rc = ngx_mcp_pages_add(&f->pages, &answer->result, &answer->hint,
                               &why);

        if (rc == NGX_AGAIN) {

            if (ngx_http_mcp_list_refresh_request(f) == NGX_OK) {
                return;
            }

            rc = NGX_ERROR;
            why = "no memory";
        }

        if (rc == NGX_OK) {
            ngx_http_mcp_list_refresh_store(f);

        } else if (rc == NGX_DECLINED) {
            ngx_http_mcp_list_refresh_too_large(f, "let the upstream list "
                                                "less");

        } else {
            ngx_http_mcp_list_refresh_fail(f, why);
        }
    }

    ngx_http_mcp_list_refresh_work(r);
}


static void
ngx_http_mcp_list_refresh_store(ngx_http_mcp_fetch_t *f)
{
    ngx_int_t                     rc;
    ngx_mcp_zone_t               *zone;
    ngx_mcp_list_content_t        content;
    ngx_http_mcp_list_refresh_t  *r;

    r = f->refresh;
    zone = r->us->bridge->zone;

    if (ngx_mcp_pages_end(&f->pages, &content) != NGX_OK) {
        ngx_http_mcp_list_refresh_fail(f, "no memory");
        return;
    }

    rc = ngx_mcp_list_confirm(zone, r->part, &content, f->signals, f->ttl);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_mcp_list_refresh_put(f, &content);
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp %V of \"%V\": %ui entries, %i",
                   ngx_mcp_list_method(f->kind), &r->names.endpoint,
                   content.entries, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_mcp_list_refresh_too_large(f, "give \"mcp_zone\" a larger "
                                            "size");
        return;
    }

    if (rc == NGX_OK) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_LISTS_CHANGED, 1);

    } else if (rc == NGX_DONE) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_LISTS_UNCHANGED, 1);
    }

    f->failures = 0;
    f->large = 0;

    ngx_http_mcp_list_refresh_end(f);
}


/*
 * Stores the part, and returns as ngx_mcp_list_put() does.  In addition, a
 * change is not announced if no client can see it, because the changed entries
 * are hidden by those of another upstream.
 */

static ngx_int_t
ngx_http_mcp_list_refresh_put(ngx_http_mcp_fetch_t *f,
    ngx_mcp_list_content_t *content)
{
    ngx_int_t                     rc;
    ngx_str_t                     before, after;
    ngx_uint_t                    compare;
    ngx_mcp_zone_t               *zone;
    ngx_http_mcp_bridge_t        *bridge;
    ngx_http_mcp_list_refresh_t  *r;

    r = f->refresh;
    bridge = r->us->bridge;
    zone = bridge->zone;

    /* if some kinds are not cached, a notification may concern one of these */

    compare = bridge->sources.n > 1
              && bridge->lists_kinds == NGX_MCP_LIST_ALL
              && !(ngx_mcp_list_dirty(zone, r->audience, r->part)
                   & NGX_MCP_LIST_BIT(f->kind));

    ngx_str_null(&before);

    if (compare) {
        before = ngx_http_mcp_list_cache_view(bridge, r->audience, f->kind,
                                              f->pool);
    }

    rc = ngx_mcp_list_put(zone, r->part, content, f->signals, f->ttl);

    if (rc == NGX_OK && before.data) {
        after = ngx_http_mcp_list_cache_view(bridge, r->audience, f->kind,
                                             f->pool);

        if (after.data && ngx_mcp_equal(&before, &after)) {
            ngx_mcp_list_hidden(zone, r->part, f->kind);
            rc = NGX_DONE;
        }
    }

    return rc;
}


static void
ngx_http_mcp_list_refresh_too_large(ngx_http_mcp_fetch_t *f,
    const char *remedy)
{
    ngx_http_mcp_shared_t  *us;

    us = f->refresh->us;

    if (!f->large) {
        f->large = 1;

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" of endpoint \"%V\": the result of "
                      "%V is too large for the cache, so such requests go to "
                      "the upstream; %s",
                      &us->upstream->name, &us->bridge->endpoint,
                      ngx_mcp_list_method(f->kind), remedy);
    }

    ngx_http_mcp_list_refresh_uncached(f, 0);
}


static void
ngx_http_mcp_list_refresh_fail(ngx_http_mcp_fetch_t *f, const char *why)
{
    ngx_uint_t              level;
    ngx_http_mcp_shared_t  *us;

    us = f->refresh->us;
    level = f->failures ? NGX_LOG_INFO : NGX_LOG_ERR;

    ngx_mcp_count(us->bridge->zone, NGX_MCP_COUNTER_LISTS_FAILED, 1);

    ngx_log_error(level, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\": %V failed: %s; the "
                  "cached list stays, the module retries",
                  &us->upstream->name, &us->bridge->endpoint,
                  ngx_mcp_list_method(f->kind), why);

    f->failures++;

    ngx_mcp_list_fail(us->bridge->zone, f->refresh->part, f->kind);

    ngx_http_mcp_list_refresh_end(f);
}


static void
ngx_http_mcp_list_refresh_uncached(ngx_http_mcp_fetch_t *f, ngx_uint_t absent)
{
    ngx_http_mcp_bridge_t  *bridge;

    bridge = f->refresh->us->bridge;

    ngx_mcp_list_pass_through(bridge->zone, f->refresh->part, f->kind, absent,
                              f->signals, bridge->lists_ttl);

    ngx_http_mcp_list_refresh_end(f);
}


static void
ngx_http_mcp_list_refresh_end(ngx_http_mcp_fetch_t *f)
{
    if (f->pool) {
        ngx_destroy_pool(f->pool);
        f->pool = NULL;
    }
}


/*
 * Notifies sessions of changed lists.  Resources and templates have the same
 * notification: if one of these lists has changed while the other one is being
 * fetched, the notification is sent later.
 */

static void
ngx_http_mcp_list_refresh_notify(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_t *names, ngx_mcp_ref_t audience, ngx_mcp_ref_t part,
    ngx_uint_t fetched)
{
    ngx_uint_t              n, dirty;
    ngx_mcp_event_t         event;
    ngx_mcp_list_change_t  *change;

    dirty = ngx_mcp_list_dirty(zone, audience, part);

    for (change = ngx_mcp_list_changes; change->kinds; change++) {

        if (!(dirty & change->kinds) || fetched & change->kinds) {
            continue;
        }

        ngx_memzero(&event, sizeof(ngx_mcp_event_t));

        event.parts = &change->notification;
        event.nparts = 1;
        event.flags = NGX_MCP_EVENT_CHANGED(change->offered);

        n = ngx_mcp_list_announce(zone, audience, part, names, change->kinds,
                                  &event);

        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "mcp %V, \"%V\", %ui sessions", &change->notification,
                       &names->endpoint, n);
    }
}
