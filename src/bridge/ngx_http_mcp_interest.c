
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_interest.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_interest.h"


static ngx_int_t ngx_http_mcp_interest_key(ngx_http_mcp_interest_t *sub);
static ngx_int_t ngx_http_mcp_interest_join(ngx_http_mcp_interest_t *sub);
static void ngx_http_mcp_interest_timeout(void *data);
static void ngx_http_mcp_interest_ready(void *data);


ngx_int_t
ngx_http_mcp_interest(ngx_http_mcp_interest_t *sub)
{
    ngx_int_t  rc;

    if (ngx_http_mcp_interest_key(sub) != NGX_OK) {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_interest_join(sub);

    if (rc == NGX_DONE) {
        ngx_mcp_interest_leave(sub->bridge->zone, sub->caller->session,
                               &sub->uri);
    }

    return rc;
}


/* sets the audience key: the session's, or the caller's if it has no session */

static ngx_int_t
ngx_http_mcp_interest_key(ngx_http_mcp_interest_t *sub)
{
    ngx_mcp_caller_t  *caller;

    caller = sub->caller;

    if (caller->session.block == 0) {
        sub->audience_key = caller->audience_key;
        return NGX_OK;
    }

    return ngx_mcp_session_list_key(sub->bridge->zone, caller->session,
                                    sub->pool, &sub->audience_key);
}


static ngx_int_t
ngx_http_mcp_interest_join(ngx_http_mcp_interest_t *sub)
{
    ngx_int_t      rc;
    ngx_mcp_ref_t  us;

    rc = ngx_http_mcp_shared_record(sub->bridge, sub->upstream,
                                    &sub->caller->tenant, &sub->audience_key,
                                    &us);

    if (rc == NGX_OK) {
        rc = ngx_mcp_interest_join(sub->bridge->zone, us,
                                   sub->caller->session, &sub->uri,
                                   sub->limit);

        sub->waiter.hash = us.block;

        if (rc == NGX_AGAIN
            && ngx_http_mcp_shared_ensure(sub->bridge, sub->upstream,
                                          &sub->caller->tenant,
                                          &sub->audience_key)
               != NGX_OK)
        {
            rc = NGX_DONE;
        }

        return rc;
    }

    /* if there are too many audiences, each session subscribes for itself */

    rc = ngx_mcp_session_subscribe(sub->bridge->zone, sub->caller->session,
                                   &sub->uri, &sub->upstream->name,
                                   sub->limit);

    return rc == NGX_OK ? NGX_DONE : rc;
}


void
ngx_http_mcp_interest_add_call(ngx_http_mcp_interest_t *sub,
    ngx_mcp_ref_t call)
{
    ngx_mcp_ref_t    us;
    ngx_mcp_zone_t  *zone;

    zone = sub->bridge->zone;

    if (ngx_http_mcp_interest_key(sub) == NGX_OK
        && ngx_http_mcp_shared_record(sub->bridge, sub->upstream,
                                      &sub->caller->tenant,
                                      &sub->audience_key, &us)
           == NGX_OK
        && ngx_mcp_interest_acquire(zone, us, call, &sub->uri) == NGX_OK)
    {
        (void) ngx_http_mcp_shared_ensure(sub->bridge, sub->upstream,
                                          &sub->caller->tenant,
                                          &sub->audience_key);
    }
}


void
ngx_http_mcp_interest_wait(ngx_http_mcp_interest_t *sub)
{
    sub->waiter.ready = ngx_http_mcp_interest_ready;
    sub->waiter.late = ngx_http_mcp_interest_timeout;
    sub->waiter.data = sub;

    ngx_http_mcp_waiter_start(&sub->waiter, sub->bridge->zone,
                              NGX_HTTP_MCP_WAIT_SUBSCRIPTION,
                              sub->upstream->timeout);
}


void
ngx_http_mcp_interest_cancel(ngx_http_mcp_interest_t *sub)
{
    ngx_http_mcp_waiter_stop(&sub->waiter);
}


static void
ngx_http_mcp_interest_timeout(void *data)
{
    ngx_http_mcp_interest_t *sub = data;

    (void) ngx_mcp_session_unsubscribe(sub->bridge->zone,
                                       sub->caller->session, &sub->uri);

    sub->done(sub->data, NGX_ABORT);
}


static void
ngx_http_mcp_interest_ready(void *data)
{
    ngx_http_mcp_interest_t *sub = data;

    ngx_int_t        rc;
    ngx_mcp_zone_t  *zone;

    zone = sub->bridge->zone;

    rc = ngx_mcp_interest_state(zone, sub->caller->session, &sub->uri);

    if (rc == NGX_ERROR) {
        rc = ngx_http_mcp_interest_join(sub);

        if (rc == NGX_DECLINED) {
            rc = NGX_ERROR;
        }
    }

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_waiter_restart(&sub->waiter);
        return;
    }

    if (rc == NGX_DONE) {
        ngx_mcp_interest_leave(zone, sub->caller->session, &sub->uri);
    }

    sub->done(sub->data, rc);
}
