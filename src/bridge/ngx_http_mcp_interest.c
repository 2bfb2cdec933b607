
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_interest.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_interest.h"


static ngx_int_t ngx_http_mcp_interest_key(ngx_http_mcp_interest_t *want);
static ngx_int_t ngx_http_mcp_interest_join(ngx_http_mcp_interest_t *want);
static void ngx_http_mcp_interest_timeout(void *data);
static void ngx_http_mcp_interest_ready(void *data);


ngx_int_t
ngx_http_mcp_interest(ngx_http_mcp_interest_t *want)
{
    ngx_int_t  rc;

    if (ngx_http_mcp_interest_key(want) != NGX_OK) {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_interest_join(want);

    if (rc == NGX_DONE) {
        ngx_mcp_interest_leave(want->bridge->zone, want->caller->session,
                               &want->uri);
    }

    return rc;
}


/* sets the audience key: the session's, or the caller's if it has no session */

static ngx_int_t
ngx_http_mcp_interest_key(ngx_http_mcp_interest_t *want)
{
    ngx_mcp_caller_t  *caller;

    caller = want->caller;

    if (caller->session.block == 0) {
        want->audience_key = caller->audience_key;
        return NGX_OK;
    }

    return ngx_mcp_session_list_key(want->bridge->zone, caller->session,
                                    want->pool, &want->audience_key);
}


static ngx_int_t
ngx_http_mcp_interest_join(ngx_http_mcp_interest_t *want)
{
    ngx_int_t      rc;
    ngx_mcp_ref_t  us;

    rc = ngx_http_mcp_shared_record(want->bridge, want->upstream,
                                    &want->caller->tenant, &want->audience_key,
                                    &us);

    if (rc == NGX_OK) {
        rc = ngx_mcp_interest_join(want->bridge->zone, us,
                                   want->caller->session, &want->uri,
                                   want->limit);

        want->waiter.hash = us.block;

        if (rc == NGX_AGAIN
            && ngx_http_mcp_shared_ensure(want->bridge, want->upstream,
                                          &want->caller->tenant,
                                          &want->audience_key)
               != NGX_OK)
        {
            rc = NGX_DONE;
        }

        return rc;
    }

    /* if there are too many audiences, each session subscribes for itself */

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

    if (ngx_http_mcp_interest_key(want) == NGX_OK
        && ngx_http_mcp_shared_record(want->bridge, want->upstream,
                                      &want->caller->tenant,
                                      &want->audience_key, &us)
           == NGX_OK
        && ngx_mcp_interest_acquire(zone, us, call, &want->uri) == NGX_OK)
    {
        (void) ngx_http_mcp_shared_ensure(want->bridge, want->upstream,
                                          &want->caller->tenant,
                                          &want->audience_key);
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

        if (rc == NGX_DECLINED) {
            rc = NGX_ERROR;
        }
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
