
/*
 * A message for all upstreams at which a client session has a session, or for
 * one of them: sent side by side.
 */

#ifndef _NGX_HTTP_MCP_FANOUT_H_INCLUDED_
#define _NGX_HTTP_MCP_FANOUT_H_INCLUDED_


#include "ngx_http_mcp_router.h"
#include "ngx_http_mcp_upstream_request.h"


/* ms; of several, the rest is not waited for */
#define NGX_HTTP_MCP_FANOUT_TIME  5000


typedef struct ngx_http_mcp_fanout_s  ngx_http_mcp_fanout_t;

struct ngx_http_mcp_fanout_s {
    /* in */
    ngx_http_request_t               *r;
    ngx_mcp_ref_t                     owner;     /* the client's session */
    ngx_str_t                         tenant;
    ngx_http_mcp_scope_t              scope;
    ngx_str_t                         body;
    ngx_http_mcp_upstream_t          *only;      /* NULL: all */
    ngx_uint_t                        serial;    /* of its session, 0: any */

    /* an upstream says something to it; may be NULL */
    void                            (*message)(
                                         ngx_http_mcp_upstream_request_t *ureq,
                                         ngx_str_t *text);

    /* all have received it, or took too long; r may go */
    void                            (*done)(ngx_http_mcp_fanout_t *fanout);
    void                             *data;

    /* out */
    ngx_uint_t                        n;         /* that get the message */

    /* private */
    ngx_http_mcp_upstream_request_t  *ureqs;
    ngx_uint_t                        running;
    ngx_event_t                       timer;
};


/* one from r->pool, which ends with it; NULL: no memory */
ngx_http_mcp_fanout_t *ngx_http_mcp_fanout_create(ngx_http_request_t *r);

/* NGX_OK: done() will come; NGX_DECLINED: nobody has to hear it; NGX_ERROR */
ngx_int_t ngx_http_mcp_fanout_start(ngx_http_mcp_fanout_t *fanout,
    ngx_http_mcp_router_t *router);

/* done() follows in a later event */
void ngx_http_mcp_fanout_abort(ngx_http_mcp_fanout_t *fanout);

/* done() does not come any more */
void ngx_http_mcp_fanout_stop(ngx_http_mcp_fanout_t *fanout);


#endif /* _NGX_HTTP_MCP_FANOUT_H_INCLUDED_ */
