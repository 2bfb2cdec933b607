
/*
 * Waiting for an event of a topic, or for the update of another resource: what
 * the caller may see since a position is searched first, then an event in the
 * zone wakes the workers in which somebody waits for its topic.  A waiter
 * costs its memory and a timer.
 *
 * The caller owns the waiter; it is known here from start to ready(), or to
 * stop.
 */

#ifndef _NGX_HTTP_MCP_WAIT_H_INCLUDED_
#define _NGX_HTTP_MCP_WAIT_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_mcp_topic.h"


/* members of a match */
#define NGX_HTTP_MCP_WAIT_FIELDS  16


typedef struct ngx_http_mcp_wait_s   ngx_http_mcp_wait_t;
typedef struct ngx_http_mcp_watch_s  ngx_http_mcp_watch_t;
typedef struct ngx_http_mcp_wait_field_s   ngx_http_mcp_wait_field_t;
typedef struct ngx_http_mcp_wait_filter_s  ngx_http_mcp_wait_filter_t;

struct ngx_http_mcp_wait_s {
    ngx_mcp_zone_t           *zone;
    ngx_mcp_caller_t         *caller;
    ngx_mcp_topic_t           topic;
    ngx_str_t                 name;       /* of the event; len 0: any */
    ngx_str_t                 match;      /* raw object of at most
                                             NGX_HTTP_MCP_WAIT_FIELDS members;
                                             len 0: any */
    uint64_t                  after;      /* position; at the end: reached */
    ngx_msec_t                timeout;
    ngx_msec_t                drain;      /* at a quit it ends within this */
    ngx_pool_t               *pool;       /* of the event */

    /* NGX_OK: there is an event; else as ngx_http_mcp_wait_start() says */
    void                    (*ready)(ngx_http_mcp_wait_t *w, ngx_int_t rc);
    void                     *data;

    /* out */
    ngx_str_t                 event;      /* raw object */
    ngx_uint_t                missed;     /* some before it may be lost */

    /* private */
    ngx_queue_t                   queue;      /* of the watch */
    ngx_queue_t                   same;       /* of the filter, or if due */
    ngx_mcp_ref_t                 ref;
    ngx_event_t                   timer;
    struct ngx_http_mcp_waits_s  *waits;
    ngx_http_mcp_watch_t         *watch;      /* NULL: it does not wait */
    ngx_http_mcp_wait_filter_t   *filter;
    ngx_http_mcp_wait_field_t    *wants;      /* what match says */
    ngx_uint_t                    nmatch_fields;
    uint64_t                      name_hash;  /* what name says */
    uint64_t                      shape_hash;
    uint64_t                      filter_hash;
    unsigned                      due:1;      /* an event may be for it */
};


/*
 * NGX_OK: an event was there; NGX_AGAIN: there is none yet, ready() follows;
 * NGX_DECLINED: the session has ended; NGX_BUSY: too many topics are in use;
 * NGX_ERROR: no memory, or the zone is full.  To ready(), NGX_AGAIN says that
 * the time is over.
 */
ngx_int_t ngx_http_mcp_wait_start(ngx_http_mcp_wait_t *w);
void ngx_http_mcp_wait_stop(ngx_http_mcp_wait_t *w);

/* the doorbell: handlers->topic */
void ngx_http_mcp_wait_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

/* a graceful quit: time is over, for each within its drain */
void ngx_http_mcp_wait_drain(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_WAIT_H_INCLUDED_ */
