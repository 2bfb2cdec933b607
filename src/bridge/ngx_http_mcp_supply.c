
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_supply.h"


static ngx_int_t ngx_http_mcp_supply_join(ngx_http_mcp_supply_t *supply);
static void ngx_http_mcp_supply_ready(void *data);
static void ngx_http_mcp_supply_late(void *data);
static ngx_int_t ngx_http_mcp_supply_ask(ngx_http_mcp_own_t *own,
    ngx_mcp_supply_job_t *job, ngx_pool_t *pool);
static void ngx_http_mcp_supply_done(ngx_http_mcp_own_t *own,
    ngx_http_mcp_own_answer_t *answer, void *data);


static ngx_str_t  ngx_http_mcp_supply_methods[] = {
    ngx_string("resources/unsubscribe"),
    ngx_string("resources/subscribe")
};


ngx_int_t
ngx_http_mcp_supply(ngx_http_mcp_supply_t *supply)
{
    ngx_int_t  rc;

    if (ngx_mcp_session_list_key(supply->bridge->zone, supply->session,
                                 supply->pool, &supply->list_key)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_supply_join(supply);

    if (rc == NGX_DONE) {
        ngx_mcp_supply_part(supply->bridge->zone, supply->session,
                            &supply->uri);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_supply_join(ngx_http_mcp_supply_t *supply)
{
    ngx_int_t       rc;
    ngx_mcp_ref_t   own;

    rc = ngx_http_mcp_own_session(supply->bridge, supply->upstream,
                                  &supply->tenant, &supply->list_key, &own);

    if (rc == NGX_OK) {
        rc = ngx_mcp_supply_join(supply->bridge->zone, own, supply->session,
                                 &supply->uri, supply->limit);

        if (rc == NGX_AGAIN
            && ngx_http_mcp_own_want(supply->bridge, supply->upstream,
                                     &supply->tenant, &supply->list_key)
               != NGX_OK)
        {
            rc = NGX_DONE;
        }

        return rc;
    }

    /* too many audiences: each session for itself then */

    rc = ngx_mcp_session_subscribe(supply->bridge->zone, supply->session,
                                   &supply->uri, supply->limit);

    return rc == NGX_OK ? NGX_DONE : rc;
}


void
ngx_http_mcp_supply_hold(ngx_http_mcp_supply_t *supply, ngx_mcp_ref_t call)
{
    ngx_mcp_ref_t    own;
    ngx_mcp_zone_t  *zone;

    zone = supply->bridge->zone;

    if (ngx_mcp_session_list_key(zone, supply->session, supply->pool,
                                 &supply->list_key)
        == NGX_OK
        && ngx_http_mcp_own_session(supply->bridge, supply->upstream,
                                    &supply->tenant, &supply->list_key, &own)
           == NGX_OK
        && ngx_mcp_supply_hold(zone, own, call, &supply->uri) == NGX_OK)
    {
        (void) ngx_http_mcp_own_want(supply->bridge, supply->upstream,
                                     &supply->tenant, &supply->list_key);
    }
}


void
ngx_http_mcp_supply_wait(ngx_http_mcp_supply_t *supply)
{
    supply->waiter.ready = ngx_http_mcp_supply_ready;
    supply->waiter.late = ngx_http_mcp_supply_late;
    supply->waiter.data = supply;

    ngx_http_mcp_waiter_start(&supply->waiter, supply->bridge->zone,
                              NGX_HTTP_MCP_WAIT_SUBSCRIPTION,
                              supply->upstream->timeout);
}


void
ngx_http_mcp_supply_forget(ngx_http_mcp_supply_t *supply)
{
    ngx_http_mcp_waiter_stop(&supply->waiter);
}


static void
ngx_http_mcp_supply_late(void *data)
{
    ngx_http_mcp_supply_t *supply = data;

    (void) ngx_mcp_session_unsubscribe(supply->bridge->zone, supply->session,
                                       &supply->uri);

    supply->done(supply->data, NGX_ABORT);
}


static void
ngx_http_mcp_supply_ready(void *data)
{
    ngx_http_mcp_supply_t *supply = data;

    ngx_int_t        rc;
    ngx_mcp_zone_t  *zone;

    zone = supply->bridge->zone;

    rc = ngx_mcp_supply_state(zone, supply->session, &supply->uri);

    if (rc == NGX_ERROR) {
        rc = ngx_http_mcp_supply_join(supply);
    }

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_waiter_again(&supply->waiter);
        return;
    }

    if (rc == NGX_DONE) {
        ngx_mcp_supply_part(zone, supply->session, &supply->uri);
    }

    supply->done(supply->data, rc);
}


void
ngx_http_mcp_supply_run(ngx_http_mcp_own_t *own)
{
    ngx_int_t              rc;
    ngx_pool_t            *pool;
    ngx_mcp_supply_job_t  *job;

    for ( ;; ) {

        pool = ngx_create_pool(512, ngx_cycle->log);
        if (pool == NULL) {
            return;
        }

        job = ngx_palloc(pool, sizeof(ngx_mcp_supply_job_t));

        rc = job ? ngx_mcp_supply_next(own->bridge->zone, own->session,
                                       own->lease.fence, pool, job)
                 : NGX_ERROR;

        if (rc != NGX_OK) {
            ngx_destroy_pool(pool);
            return;
        }

        if (ngx_http_mcp_supply_ask(own, job, pool) != NGX_OK) {
            ngx_mcp_supply_done(own->bridge->zone, own->session,
                                own->lease.fence, job, NGX_AGAIN, 0);
            ngx_destroy_pool(pool);

            ngx_http_mcp_own_pause(own);
            return;
        }
    }
}


static ngx_int_t
ngx_http_mcp_supply_ask(ngx_http_mcp_own_t *own, ngx_mcp_supply_job_t *job,
    ngx_pool_t *pool)
{
    ngx_str_t  params;

    params = ngx_mcp_uri_compose(pool, &job->uri);

    if (params.data == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_own_ask(own, pool,
                                &ngx_http_mcp_supply_methods[job->subscribe],
                                &params, &job->uri, ngx_http_mcp_supply_done,
                                job);
}


static void
ngx_http_mcp_supply_done(ngx_http_mcp_own_t *own,
    ngx_http_mcp_own_answer_t *answer, void *data)
{
    ngx_mcp_supply_job_t *job = data;

    ngx_int_t  rc;

    if (answer->result.len
        || (answer->rpc && answer->outcome == NGX_HTTP_MCP_OK))
    {
        rc = NGX_OK;

    } else if (answer->code) {
        rc = NGX_DECLINED;

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" of endpoint \"%V\" refused %V of "
                      "\"%V\" in the shared session with error %i",
                      &own->upstream->name, &own->bridge->endpoint,
                      &ngx_http_mcp_supply_methods[job->subscribe],
                      &job->uri, answer->code);

    } else {
        rc = NGX_AGAIN;
        ngx_http_mcp_own_pause(own);
    }

    if (job->again && rc != NGX_AGAIN && own->listener.up
        && own->listener.serial == answer->serial)
    {
        /* nobody was told of updates before that */

        ngx_http_mcp_own_updated(own, &job->uri);
    }

    ngx_mcp_supply_done(own->bridge->zone, own->session, own->lease.fence,
                        job, rc, answer->serial);
}
