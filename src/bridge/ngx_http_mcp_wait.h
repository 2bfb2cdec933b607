
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Waiting for an event of a topic, or for an update of another resource.
 * First, the events that the caller may see after a position are searched.
 * Then the waiter waits, and a new event in the zone wakes the workers that
 * have waiters for its topic.  A waiter costs its memory and a timer.
 *
 * The caller owns the waiter, which must live from ngx_http_mcp_wait_start()
 * until ready() is called or ngx_http_mcp_wait_stop() returns.
 */

#ifndef _NGX_HTTP_MCP_WAIT_H_INCLUDED_
#define _NGX_HTTP_MCP_WAIT_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_mcp_topic.h"


/* members of "match", at most */
#define NGX_HTTP_MCP_WAIT_FIELDS  16


typedef struct ngx_http_mcp_wait_s   ngx_http_mcp_wait_t;
typedef struct ngx_http_mcp_watch_s  ngx_http_mcp_watch_t;
typedef struct ngx_http_mcp_wait_field_s   ngx_http_mcp_wait_field_t;
typedef struct ngx_http_mcp_wait_filter_s  ngx_http_mcp_wait_filter_t;

struct ngx_http_mcp_wait_s {
    ngx_mcp_zone_t           *zone;
    ngx_mcp_caller_t         *caller;
    ngx_mcp_topic_t           topic;
    ngx_str_t                 name;       /* name that the event has to have, a
                                             raw string; len 0: any */
    ngx_str_t                 match;      /* raw object whose members the event
                                             has to have, at most
                                             NGX_HTTP_MCP_WAIT_FIELDS; len 0:
                                             any event matches */
    uint64_t                  after;      /* in: position in the topic after
                                             which the search begins; out:
                                             position up to which events were
                                             searched */
    ngx_msec_t                timeout;    /* longest wait, ms */
    ngx_msec_t                drain;      /* longest wait after a graceful quit
                                             began, ms */
    ngx_pool_t               *pool;       /* memory for the event */

    /* rc: see ngx_http_mcp_wait_start() */
    void                    (*ready)(ngx_http_mcp_wait_t *w, ngx_int_t rc);
    void                     *data;

    /* out */
    ngx_str_t                 event;      /* the event that matches, raw */
    ngx_uint_t                missed;     /* events after "after" may have been
                                             lost before they were searched */

    /* private */
    ngx_queue_t                   queue;      /* link in the waiters of the
                                                 watch */
    ngx_queue_t                   same;       /* link in the waiters of the
                                                 filter, or in the waiters that
                                                 are due */
    ngx_mcp_ref_t                 ref;        /* the topic in the zone */
    ngx_event_t                   timer;
    struct ngx_http_mcp_waits_s  *waits;
    ngx_http_mcp_watch_t         *watch;      /* NULL: not waiting */
    ngx_http_mcp_wait_filter_t   *filter;
    ngx_http_mcp_wait_field_t    *fields;      /* members of match */
    ngx_uint_t                    nfields;
    uint64_t                      name_hash;  /* hash of name */
    uint64_t                      shape_hash;
    uint64_t                      filter_hash;
    unsigned                      due:1;      /* an event that may match has to
                                                 be checked */
};


/*
 * Searches and waits.  NGX_OK: w->event is set; NGX_AGAIN: there is no event
 * yet, and ready() follows; NGX_DECLINED: the session has ended; NGX_BUSY: too
 * many topics are in use; NGX_ERROR: no memory, or the zone is full.  ready()
 * gets the same codes; there, NGX_AGAIN means that the time is over.
 */
ngx_int_t ngx_http_mcp_wait_start(ngx_http_mcp_wait_t *w);
void ngx_http_mcp_wait_stop(ngx_http_mcp_wait_t *w);

/* the zone's doorbell rang for a topic: it has new events */
void ngx_http_mcp_wait_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

/* the worker quits gracefully: ends each wait within its "drain" */
void ngx_http_mcp_wait_drain(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_WAIT_H_INCLUDED_ */
