
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The interest of a session in a resource, and the wait until the upstream has
 * accepted the subscription, which all sessions of the audience share.  Works
 * in any worker: the interest is written to the zone (ngx_mcp_interest.h), and
 * the worker that holds the shared upstream session (ngx_http_mcp_shared.h)
 * subscribes.
 */

#ifndef _NGX_HTTP_MCP_INTEREST_H_INCLUDED_
#define _NGX_HTTP_MCP_INTEREST_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_waiter.h"


typedef struct {
    /* in; the memory of these members must live as long as the wait */
    ngx_http_mcp_bridge_t     *bridge;
    ngx_http_mcp_upstream_t   *upstream;
    ngx_mcp_caller_t          *caller;
    ngx_str_t                  uri;        /* URI of the resource */
    ngx_uint_t                 limit;      /* limit of the session's
                                              subscriptions */
    ngx_pool_t                *pool;

    /*
     * The wait is over.  NGX_OK: the upstream accepted the subscription;
     * NGX_DONE: the subscription cannot be shared, and the caller has to
     * subscribe in the client's own upstream session; NGX_DECLINED: the session
     * is not subscribed any more; NGX_ABORT: the upstream took too long, and
     * the session was unsubscribed; NGX_BUSY, NGX_ERROR: the subscription was
     * lost, and the limit or the zone does not allow a new one.
     */
    void                     (*done)(void *data, ngx_int_t rc);
    void                      *data;

    /* private */
    ngx_http_mcp_waiter_t      waiter;
    ngx_str_t                  audience_key;
} ngx_http_mcp_interest_t;


/*
 * Subscribes the caller's session.  NGX_OK and NGX_DONE: as for done();
 * NGX_AGAIN: the caller has to call ngx_http_mcp_interest_wait(); NGX_BUSY: the
 * session has sub->limit subscriptions; NGX_DECLINED: the session has ended,
 * or the zone has no room.
 */
ngx_int_t ngx_http_mcp_interest(ngx_http_mcp_interest_t *sub);

/*
 * Waits: sub->done() is called once, in a later event, unless
 * ngx_http_mcp_interest_cancel() is called before.
 */
void ngx_http_mcp_interest_wait(ngx_http_mcp_interest_t *sub);
void ngx_http_mcp_interest_cancel(ngx_http_mcp_interest_t *sub);


/*
 * For a call that waits for an update of the resource: the shared upstream
 * session is subscribed to the resource until the call ends.  Failures are
 * ignored.
 */
void ngx_http_mcp_interest_add_call(ngx_http_mcp_interest_t *sub,
    ngx_mcp_ref_t call);


#endif /* _NGX_HTTP_MCP_INTEREST_H_INCLUDED_ */
