
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_profiles.h"


/*
 * ms; longest wait for an upstream that has an old profile, and, once any
 * upstream has answered, for each of the others
 */
#define NGX_HTTP_MCP_PROFILES_PATIENCE  5000

/* ms; longest wait: the time of a probe, and until its result is seen here */
#define NGX_HTTP_MCP_PROFILES_TIME      (NGX_HTTP_MCP_INITIALIZE_TIME + 5000)

/* ms between two lines of the log about an upstream that is left out */
#define NGX_HTTP_MCP_PROFILES_LOG       60000


static ngx_int_t ngx_http_mcp_profiles_try(ngx_http_mcp_profiles_one_t *one);
static ngx_msec_t ngx_http_mcp_profiles_wait(
    ngx_http_mcp_profiles_t *profiles);
static ngx_msec_t ngx_http_mcp_profiles_patience(
    ngx_http_mcp_profiles_one_t *one);
static void ngx_http_mcp_profiles_stored(ngx_http_mcp_profiles_one_t *one);
static void ngx_http_mcp_profiles_woken(void *data);
static void ngx_http_mcp_profiles_timeout(ngx_event_t *ev);
static void ngx_http_mcp_profiles_end(ngx_http_mcp_profiles_t *profiles);
static void ngx_http_mcp_profiles_log(ngx_http_mcp_profiles_one_t *one);
static void ngx_http_mcp_profiles_cleanup(void *data);


ngx_http_mcp_profiles_t *
ngx_http_mcp_profiles_create(ngx_pool_t *pool, ngx_http_mcp_router_t *router)
{
    ngx_uint_t                    i;
    ngx_pool_cleanup_t           *cln;
    ngx_http_mcp_upstream_t      *u;
    ngx_http_mcp_profiles_t      *profiles;
    ngx_http_mcp_profiles_one_t  *one;

    profiles = ngx_pcalloc(pool, sizeof(ngx_http_mcp_profiles_t));
    one = ngx_pcalloc(pool, router->n * sizeof(ngx_http_mcp_profiles_one_t));
    cln = ngx_pool_cleanup_add(pool, 0);

    if (profiles == NULL || one == NULL || cln == NULL) {
        return NULL;
    }

    for (i = 0, u = NULL; i < router->n; i++) {
        u = ngx_http_mcp_router_next(router, u);

        one[i].upstream = u;
        one[i].profiles = profiles;
        one[i].waiter.ready = ngx_http_mcp_profiles_woken;
        one[i].waiter.data = &one[i];
    }

    profiles->pool = pool;
    profiles->one = one;
    profiles->n = router->n;
    profiles->start = ngx_current_msec;

    profiles->timer.handler = ngx_http_mcp_profiles_timeout;
    profiles->timer.data = profiles;
    profiles->timer.log = ngx_cycle->log;

    cln->handler = ngx_http_mcp_profiles_cleanup;
    cln->data = profiles;

    return profiles;
}


ngx_int_t
ngx_http_mcp_profiles_get(ngx_http_mcp_profiles_t *profiles)
{
    ngx_int_t                     rc;
    ngx_msec_t                    wait;
    ngx_uint_t                    i;
    ngx_http_mcp_profiles_one_t  *one;

    for (i = 0; i < profiles->n; i++) {
        one = &profiles->one[i];

        if (one->settled || ngx_http_mcp_waiter_waiting(&one->waiter)) {
            continue;
        }

        rc = ngx_http_mcp_profiles_try(one);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_AGAIN) {
            ngx_http_mcp_waiter_start(&one->waiter, one->upstream->zone,
                                      NGX_HTTP_MCP_WAIT_PROFILE, 0);
        }
    }

    wait = ngx_http_mcp_profiles_wait(profiles);

    if (wait == 0) {
        ngx_http_mcp_profiles_end(profiles);
        return NGX_OK;
    }

    ngx_add_timer(&profiles->timer, wait);

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_mcp_profiles_try(ngx_http_mcp_profiles_one_t *one)
{
    ngx_int_t                 rc;
    ngx_http_mcp_profiles_t  *profiles;

    profiles = one->profiles;

    ngx_memzero(&one->known, sizeof(ngx_mcp_profile_t));

    rc = ngx_http_mcp_profile(one->upstream, profiles->tenant,
                              profiles->max_age, profiles->pool, &one->known);

    if (rc == NGX_AGAIN) {
        one->waiter.hash = one->known.hash;
        return NGX_AGAIN;
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        one->known.what = NGX_MCP_PROFILE_UNKNOWN;
        one->known.status = NGX_HTTP_BAD_REQUEST;
        ngx_str_set(&one->known.why, NGX_HTTP_MCP_DOTS);
    }

    one->settled = 1;

    if (one->known.what != NGX_MCP_PROFILE_UNKNOWN && !profiles->answered) {
        profiles->answered = 1;
        profiles->first = ngx_current_msec;
    }

    return NGX_OK;
}


/* returns the time to wait for more profiles, ms; 0: the wait is over */

static ngx_msec_t
ngx_http_mcp_profiles_wait(ngx_http_mcp_profiles_t *profiles)
{
    ngx_msec_t                    passed, patience, time, next, until;
    ngx_uint_t                    i;
    ngx_http_mcp_profiles_one_t  *one;

    passed = ngx_current_msec - profiles->start;

    /* uses the old profile of an upstream for which the wait is over */

    for (i = 0; i < profiles->n; i++) {
        one = &profiles->one[i];

        if (!one->settled && passed >= ngx_http_mcp_profiles_patience(one)) {
            ngx_http_mcp_profiles_stored(one);
        }
    }

    time = 0;
    next = NGX_MAX_INT32_VALUE;

    for (i = 0; i < profiles->n; i++) {
        one = &profiles->one[i];

        if (one->settled) {
            continue;
        }

        patience = ngx_http_mcp_profiles_patience(one);
        until = NGX_HTTP_MCP_PROFILES_TIME;

        if (profiles->answered) {
            until = profiles->first - profiles->start + patience;
        }

        time = ngx_max(time, until);

        if (patience > passed) {
            next = ngx_min(next, patience);
        }
    }

    if (time <= passed) {
        return 0;
    }

    return ngx_min(time, next) - passed;
}


/*
 * Returns the time to wait for this upstream, ms: less if the probe has been
 * running for some time, and 0 if the last probe has just timed out.
 */

static ngx_msec_t
ngx_http_mcp_profiles_patience(ngx_http_mcp_profiles_one_t *one)
{
    if (one->known.status == NGX_HTTP_GATEWAY_TIME_OUT
        || one->known.asked >= NGX_HTTP_MCP_PROFILES_PATIENCE)
    {
        return 0;
    }

    return NGX_HTTP_MCP_PROFILES_PATIENCE - one->known.asked;
}


static void
ngx_http_mcp_profiles_stored(ngx_http_mcp_profiles_one_t *one)
{
    ngx_mcp_profile_t         known;
    ngx_http_mcp_profiles_t  *profiles;

    profiles = one->profiles;

    ngx_memzero(&known, sizeof(ngx_mcp_profile_t));

    if (ngx_http_mcp_profile_stored(one->upstream, profiles->tenant,
                                    profiles->pool, &known)
        != NGX_OK)
    {
        return;
    }

    ngx_http_mcp_waiter_stop(&one->waiter);

    one->known = known;
    one->settled = 1;
    ngx_http_mcp_upstream_silent(one->upstream, profiles->tenant);

    profiles->answered = 1;
    profiles->first = profiles->start;
}


static void
ngx_http_mcp_profiles_woken(void *data)
{
    ngx_http_mcp_profiles_one_t *one = data;

    ngx_int_t                 rc;
    ngx_http_mcp_profiles_t  *profiles;

    profiles = one->profiles;

    rc = ngx_http_mcp_profiles_try(one);

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_waiter_restart(&one->waiter);
        return;
    }

    /* the caller gets the error from ngx_http_mcp_profiles_get() */

    if (rc == NGX_ERROR || ngx_http_mcp_profiles_wait(profiles) == 0) {
        profiles->ready(profiles->data);
    }
}


static void
ngx_http_mcp_profiles_timeout(ngx_event_t *ev)
{
    ngx_msec_t                wait;
    ngx_http_mcp_profiles_t  *profiles;

    profiles = ev->data;

    wait = ngx_http_mcp_profiles_wait(profiles);

    if (wait) {
        ngx_add_timer(ev, wait);
        return;
    }

    profiles->ready(profiles->data);
}


/* leaves out the upstreams whose profiles were not settled in time */

static void
ngx_http_mcp_profiles_end(ngx_http_mcp_profiles_t *profiles)
{
    ngx_uint_t                    i;
    ngx_http_mcp_profiles_one_t  *one;

    ngx_http_mcp_profiles_cleanup(profiles);

    profiles->whole = 1;

    for (i = 0; i < profiles->n; i++) {
        one = &profiles->one[i];

        if (!one->settled) {
            ngx_http_mcp_upstream_silent(one->upstream, profiles->tenant);
            one->known.what = NGX_MCP_PROFILE_UNKNOWN;
            one->known.status = NGX_HTTP_GATEWAY_TIME_OUT;
            ngx_str_set(&one->known.why, "the upstream did not answer "
                                         "initialize in time");

        } else if (one->known.what == NGX_MCP_PROFILE_UNKNOWN
                   && one->known.why.len == 0)
        {
            one->known.status = NGX_HTTP_BAD_GATEWAY;
            ngx_str_set(&one->known.why, "nginx failed to send a request to "
                                         "the upstream");
        }

        if (one->known.what != NGX_MCP_PROFILE_UNKNOWN) {
            one->upstream->worker->left_out_logged = 0;

            if (!one->known.kept) {
                ngx_http_mcp_upstream_answers(one->upstream, profiles->tenant);
            }

        } else if (profiles->answered) {
            ngx_http_mcp_profiles_log(one);
        }

        if (one->known.what == NGX_MCP_PROFILE_UNKNOWN || one->known.kept) {
            profiles->whole = 0;
        }
    }
}


static void
ngx_http_mcp_profiles_log(ngx_http_mcp_profiles_one_t *one)
{
    ngx_http_mcp_upstream_t         *u;
    ngx_http_mcp_upstream_worker_t  *w;

    u = one->upstream;
    w = u->worker;

    if (w->left_out_logged
        && ngx_current_msec - w->left_out_logged < NGX_HTTP_MCP_PROFILES_LOG)
    {
        return;
    }

    w->left_out_logged = ngx_current_msec ? ngx_current_msec : 1;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "mcp endpoint \"%V\" begins sessions without upstream "
                  "\"%V\", whose capabilities are not known: %V; clients that "
                  "connect after it has answered get them",
                  &u->endpoint, &u->name, &one->known.why);
}


static void
ngx_http_mcp_profiles_cleanup(void *data)
{
    ngx_http_mcp_profiles_t *profiles = data;

    ngx_uint_t  i;

    for (i = 0; i < profiles->n; i++) {
        ngx_http_mcp_waiter_stop(&profiles->one[i].waiter);
    }

    if (profiles->timer.timer_set) {
        ngx_del_timer(&profiles->timer);
    }
}
