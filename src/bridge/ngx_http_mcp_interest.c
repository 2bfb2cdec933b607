
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_interest.h"


static ngx_int_t ngx_http_mcp_interest_join(ngx_http_mcp_interest_t *want);
static void ngx_http_mcp_interest_ready(void *data);
static void ngx_http_mcp_interest_timeout(void *data);
static ngx_int_t ngx_http_mcp_interest_request(ngx_http_mcp_shared_t *us,
    ngx_mcp_interest_job_t *job, ngx_pool_t *pool);
static void ngx_http_mcp_interest_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data);


static ngx_str_t  ngx_http_mcp_interest_methods[] = {
    ngx_string("resources/unsubscribe"),
    ngx_string("resources/subscribe")
};


ngx_int_t
ngx_http_mcp_interest(ngx_http_mcp_interest_t *want)
{
    ngx_int_t  rc;

    if (ngx_mcp_session_list_key(want->bridge->zone, want->caller->session,
                                 want->pool, &want->list_key)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_interest_join(want);

    if (rc == NGX_DONE) {
        ngx_mcp_interest_leave(want->bridge->zone, want->caller->session,
                               &want->uri);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_interest_join(ngx_http_mcp_interest_t *want)
{
    ngx_int_t      rc;
    ngx_mcp_ref_t  us;

    rc = ngx_http_mcp_shared_record(want->bridge, want->upstream,
                                    &want->caller->tenant, &want->list_key,
                                    &us);

    if (rc == NGX_OK) {
        want->waiter.hash = us.block;

        rc = ngx_mcp_interest_join(want->bridge->zone, us,
                                   want->caller->session, &want->uri,
                                   want->limit);

        if (rc == NGX_AGAIN
            && ngx_http_mcp_shared_ensure(want->bridge, want->upstream,
                                          &want->caller->tenant,
                                          &want->list_key)
               != NGX_OK)
        {
            rc = NGX_DONE;
        }

        return rc;
    }

    /* too many audiences: each session for itself then */

    rc = ngx_mcp_session_subscribe(want->bridge->zone, want->caller->session,
                                   &want->uri, &want->upstream->name,
                                   want->limit);

    return rc == NGX_OK ? NGX_DONE : rc;
}


void
ngx_http_mcp_interest_add_call(ngx_http_mcp_interest_t *want,
    ngx_mcp_ref_t call)
{
    ngx_mcp_ref_t    us;
    ngx_mcp_zone_t  *zone;

    zone = want->bridge->zone;

    if (ngx_mcp_session_list_key(zone, want->caller->session, want->pool,
                                 &want->list_key)
        == NGX_OK
        && ngx_http_mcp_shared_record(want->bridge, want->upstream,
                                      &want->caller->tenant, &want->list_key,
                                      &us)
           == NGX_OK
        && ngx_mcp_interest_acquire(zone, us, call, &want->uri) == NGX_OK)
    {
        (void) ngx_http_mcp_shared_ensure(want->bridge, want->upstream,
                                          &want->caller->tenant,
                                          &want->list_key);
    }
}


void
ngx_http_mcp_interest_wait(ngx_http_mcp_interest_t *want)
{
    want->waiter.ready = ngx_http_mcp_interest_ready;
    want->waiter.late = ngx_http_mcp_interest_timeout;
    want->waiter.data = want;

    ngx_http_mcp_waiter_start(&want->waiter, want->bridge->zone,
                              NGX_HTTP_MCP_WAIT_SUBSCRIPTION,
                              want->upstream->timeout);
}


void
ngx_http_mcp_interest_cancel(ngx_http_mcp_interest_t *want)
{
    ngx_http_mcp_waiter_stop(&want->waiter);
}


static void
ngx_http_mcp_interest_timeout(void *data)
{
    ngx_http_mcp_interest_t *want = data;

    (void) ngx_mcp_session_unsubscribe(want->bridge->zone,
                                       want->caller->session, &want->uri);

    want->done(want->data, NGX_ABORT);
}


static void
ngx_http_mcp_interest_ready(void *data)
{
    ngx_http_mcp_interest_t *want = data;

    ngx_int_t        rc;
    ngx_mcp_zone_t  *zone;

    zone = want->bridge->zone;

    rc = ngx_mcp_interest_state(zone, want->caller->session, &want->uri);

    if (rc == NGX_ERROR) {
        rc = ngx_http_mcp_interest_join(want);
    }

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_waiter_restart(&want->waiter);
        return;
    }

    if (rc == NGX_DONE) {
        ngx_mcp_interest_leave(zone, want->caller->session, &want->uri);
    }

    want->done(want->data, rc);
}


void
ngx_http_mcp_interest_run(ngx_http_mcp_shared_t *us)
{
    ngx_int_t                rc;
    ngx_pool_t              *pool;
    ngx_mcp_interest_job_t  *job;

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

        if (ngx_http_mcp_interest_request(us, job, pool) != NGX_OK) {
            ngx_mcp_interest_done(us->bridge->zone, us->reader.lease.fence,
                                  job, NGX_AGAIN, 0);
            ngx_destroy_pool(pool);

            ngx_http_mcp_shared_pause(us);
            return;
        }
    }
}


static ngx_int_t
ngx_http_mcp_interest_request(ngx_http_mcp_shared_t *us,
    ngx_mcp_interest_job_t *job, ngx_pool_t *pool)
{
    ngx_str_t  params;

    params = ngx_mcp_uri_compose(pool, &job->uri);

    if (params.data == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_shared_enqueue(us, pool,
                              &ngx_http_mcp_interest_methods[job->subscribe],
                              &params, &job->uri, ngx_http_mcp_interest_done,
                              job);
}


static void
ngx_http_mcp_interest_done(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data)
{
    ngx_mcp_interest_job_t *job = data;

    ngx_int_t  rc;

    if (answer->result.len
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

    if (job->again && rc != NGX_AGAIN && us->reader.up
        && us->reader.serial == answer->serial)
    {
        /* nobody was told of updates before that */

        ngx_http_mcp_shared_notify_updated(us, &job->uri);
    }

    ngx_mcp_interest_done(us->bridge->zone, us->reader.lease.fence, job, rc,
                          answer->serial);
}
