
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A fanout sends one message, in parallel, to all upstreams at which a client's
 * session has an upstream session, or to one of these.
 */

#ifndef _NGX_HTTP_MCP_FANOUT_H_INCLUDED_
#define _NGX_HTTP_MCP_FANOUT_H_INCLUDED_


#include "ngx_http_mcp_router.h"
#include "ngx_http_mcp_upstream_request.h"


/* ms; requests that take longer are aborted */
#define NGX_HTTP_MCP_FANOUT_TIME  5000


typedef struct ngx_http_mcp_fanout_s  ngx_http_mcp_fanout_t;

struct ngx_http_mcp_fanout_s {
    /* in */
    ngx_http_request_t               *r;
    ngx_mcp_ref_t                     owner;     /* the client's session */
    ngx_str_t                         tenant;
    ngx_http_mcp_scope_t              scope;
    ngx_str_t                         body;
    ngx_http_mcp_upstream_t          *only;      /* the upstream that gets the
                                                    message; NULL: all */
    ngx_uint_t                        serial;    /* serial of the only upstream
                                                    session at "only" that gets
                                                    the message; 0: any */

    /* an upstream sends a message in response; may be NULL */
    void                            (*message)(
                                         ngx_http_mcp_upstream_request_t *ureq,
                                         ngx_str_t *text);

    /*
     * All requests have ended, or were aborted because they took too long.
     * The callback may free r.
     */
    void                            (*done)(ngx_http_mcp_fanout_t *fanout);
    void                             *data;

    /* out */
    ngx_uint_t                        n;         /* number of upstreams that
                                                    get the message */
    ngx_http_mcp_upstream_t          *refused;   /* for done(): set if no
                                                    upstream was sent the
                                                    message, to one of those
                                                    whose URI has a dot segment;
                                                    else NULL */

    /* private */
    ngx_http_mcp_upstream_request_t  *ureqs;
    ngx_uint_t                        running;   /* number of requests that have
                                                    not ended */
    ngx_uint_t                        dots;      /* number of upstreams whose
                                                    URI has a dot segment */
    ngx_event_t                       timer;
    ngx_queue_t                       queue;     /* link in the queue of running
                                                    fanouts, or of those whose
                                                    clients have left */
    unsigned                          left:1;    /* the client has left */
};


/* makes a fanout from r->pool, which stops when r ends; NULL: no memory */
ngx_http_mcp_fanout_t *ngx_http_mcp_fanout_create(ngx_http_request_t *r);

/*
 * Sends the message.  NGX_OK: done() will be called; NGX_DECLINED: no upstream
 * gets the message; NGX_ERROR: the message could not be sent.
 */
ngx_int_t ngx_http_mcp_fanout_start(ngx_http_mcp_fanout_t *fanout,
    ngx_http_mcp_router_t *router);

/* aborts the requests; done() follows in a later event */
void ngx_http_mcp_fanout_abort(ngx_http_mcp_fanout_t *fanout);

/*
 * The client of the request r has left.  Its fanouts continue, but if fanouts
 * of clients that have left use too many connections, the oldest are aborted.
 */
void ngx_http_mcp_fanout_left(ngx_http_request_t *r);

/* frees what is not in r->pool; done() is not called any more */
void ngx_http_mcp_fanout_stop(ngx_http_mcp_fanout_t *fanout);


#endif /* _NGX_HTTP_MCP_FANOUT_H_INCLUDED_ */
