
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_supply.h"


static ngx_int_t ngx_http_mcp_supply_join(ngx_http_mcp_supply_t *supply);
static void ngx_http_mcp_supply_timeout(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_supply_ask(ngx_http_mcp_own_t *own,
    ngx_mcp_supply_job_t *job, ngx_pool_t *pool);
static void ngx_http_mcp_supply_done(ngx_http_mcp_own_t *own,
    ngx_http_mcp_own_answer_t *answer, void *data);


static ngx_queue_t  ngx_http_mcp_supplies;

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
    if (ngx_http_mcp_supplies.next == NULL) {
        ngx_queue_init(&ngx_http_mcp_supplies);
    }

    ngx_queue_insert_tail(&ngx_http_mcp_supplies, &supply->queue);

    supply->timer.handler = ngx_http_mcp_supply_timeout;
    supply->timer.data = supply;
    supply->timer.log = ngx_cycle->log;

    ngx_add_timer(&supply->timer, supply->upstream->timeout);
}


void
ngx_http_mcp_supply_forget(ngx_http_mcp_supply_t *supply)
{
    if (supply->queue.next == NULL) {
        return;
    }

    ngx_queue_remove(&supply->queue);
    supply->queue.next = NULL;

    if (supply->timer.timer_set) {
        ngx_del_timer(&supply->timer);
    }
}


static void
ngx_http_mcp_supply_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_supply_t  *supply;

    supply = ev->data;

    ngx_http_mcp_supply_forget(supply);

    (void) ngx_mcp_session_unsubscribe(supply->bridge->zone, supply->session,
                                       &supply->uri);

    supply->done(supply->data, NGX_ABORT);
}


void
ngx_http_mcp_supply_doorbell(ngx_mcp_zone_t *zone)
{
    ngx_int_t               rc;
    ngx_queue_t            *q, looked;
    ngx_http_mcp_supply_t  *supply;

    if (ngx_http_mcp_supplies.next == NULL) {
        return;
    }

    /* done() may have others forgotten */

    ngx_queue_init(&looked);

    while (!ngx_queue_empty(&ngx_http_mcp_supplies)) {
        q = ngx_queue_head(&ngx_http_mcp_supplies);
        supply = ngx_queue_data(q, ngx_http_mcp_supply_t, queue);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&looked, q);

        if (supply->bridge->zone != zone) {
            continue;
        }

        rc = ngx_mcp_supply_state(zone, supply->session, &supply->uri);

        if (rc == NGX_ERROR) {
            rc = ngx_http_mcp_supply_join(supply);
        }

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DONE) {
            ngx_mcp_supply_part(zone, supply->session, &supply->uri);
        }

        ngx_http_mcp_supply_forget(supply);

        supply->done(supply->data, rc);
    }

    while (!ngx_queue_empty(&looked)) {
        q = ngx_queue_head(&looked);
        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ngx_http_mcp_supplies, q);
    }
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
    u_char     *p;
    ngx_str_t   params;

    params.data = ngx_pnalloc(pool, sizeof("{\"uri\":}")
                                    + ngx_mcp_json_escaped_len(&job->uri));
    if (params.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(params.data, "{\"uri\":", sizeof("{\"uri\":") - 1);
    p = ngx_mcp_json_escape(p, &job->uri);
    *p++ = '}';

    params.len = p - params.data;

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
                      "\"%V\" for all, code %i", &own->upstream->name,
                      &own->bridge->endpoint,
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
