
/*
 * Subscriptions that sessions of an audience share: from any worker, asking
 * for one and waiting until the upstream accepted it; in the holder, asking
 * the upstream.
 */

#ifndef _NGX_HTTP_MCP_INTEREST_H_INCLUDED_
#define _NGX_HTTP_MCP_INTEREST_H_INCLUDED_


#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_interest.h"


typedef struct {
    /* in; what is pointed to lives as long as it waits */
    ngx_http_mcp_bridge_t     *bridge;
    ngx_http_mcp_upstream_t   *upstream;
    ngx_mcp_caller_t          *caller;
    ngx_str_t                  uri;
    ngx_uint_t                 limit;
    ngx_pool_t                *pool;

    /*
     * NGX_OK: accepted; NGX_DONE: refused on the shared session, and no longer
     * shared; NGX_DECLINED: the session is not subscribed any more; NGX_ABORT:
     * it took too long, and was taken back
     */
    void                     (*done)(void *data, ngx_int_t rc);
    void                      *data;

    /* private */
    ngx_http_mcp_waiter_t      waiter;
    ngx_str_t                  list_key;
} ngx_http_mcp_interest_t;


/*
 * NGX_OK and NGX_DONE as above; NGX_AGAIN: it has to be waited for; NGX_BUSY:
 * the limit; NGX_DECLINED: the session has ended, or there is no room.
 */
ngx_int_t ngx_http_mcp_interest(ngx_http_mcp_interest_t *want);

/* done() is called, once, unless it is forgotten before */
void ngx_http_mcp_interest_wait(ngx_http_mcp_interest_t *want);
void ngx_http_mcp_interest_cancel(ngx_http_mcp_interest_t *want);


/*
 * A call waits for an update of the resource: it is subscribed to, once for
 * all, until the call ends.  Nothing is said of what comes of it.
 */
void ngx_http_mcp_interest_add_call(ngx_http_mcp_interest_t *want,
    ngx_mcp_ref_t call);


/* for shared upstream sessions: the holder does what is due */
void ngx_http_mcp_interest_run(ngx_http_mcp_shared_t *us);


#endif /* _NGX_HTTP_MCP_INTEREST_H_INCLUDED_ */
