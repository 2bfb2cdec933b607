
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Shared upstream sessions.  There is one at each upstream for each audience
 * (endpoint, tenant, list key), for all sessions of the audience.  One worker
 * holds it, by a lease; only that worker has an ngx_http_mcp_shared_t for it.
 * The holder reads the stream of changes, makes and ends the subscriptions, and
 * fetches the lists.
 *
 * A shared upstream session is kept while something needs it
 * (ngx_http_mcp_shared_use()), and for NGX_HTTP_MCP_SHARED_KEEP after that.
 * Then the lease is dropped, and the session at the upstream is ended.
 *
 * The stream has a reader (ngx_http_mcp_reader.h), which owns the lease.  At a
 * reload, if the events have no ids, the former holder reads the stream until
 * the new holder does, and does nothing else.  A legacy upstream sends each
 * message on only one stream of a session, so messages of the two streams are
 * not compared.  If the old stream ends before the new one is open, and cannot
 * be resumed, there is a gap: sessions are notified that their resources were
 * updated, and the lists are fetched again.
 *
 * If the upstream has forgotten the session, a new one is made and subscribes
 * to all resources again (ngx_http_mcp_shared_established()).
 */

#ifndef _NGX_HTTP_MCP_SHARED_H_INCLUDED_
#define _NGX_HTTP_MCP_SHARED_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_reader.h"


/* ms; a shared upstream session that nothing needs is kept for this time */
#define NGX_HTTP_MCP_SHARED_KEEP  60000


/*
 * Users of the session and its stream of changes: cached lists, subscriptions
 * to resources, and clients that no other stream notifies of changes
 */

#define NGX_HTTP_MCP_SHARED_LISTS          0x01
#define NGX_HTTP_MCP_SHARED_SUBSCRIPTIONS  0x02
#define NGX_HTTP_MCP_SHARED_LISTENS        0x04


typedef struct ngx_http_mcp_shared_s  ngx_http_mcp_shared_t;

struct ngx_http_mcp_shared_s {
    ngx_http_mcp_bridge_t     *bridge;
    ngx_http_mcp_upstream_t   *upstream;
    ngx_str_t                  tenant;
    ngx_str_t                  audience_key;
    ngx_pool_t                *pool;       /* memory that lives as long as the
                                              worker holds the session */
    void                      *lists;      /* data of the handlers of lists */

    /* private */
    ngx_mcp_ref_t              ref;            /* record in the zone */
    u_char                     id[NGX_MCP_UUID_LEN];
    ngx_uint_t                 users;          /* bits of present users,
                                                  NGX_HTTP_MCP_SHARED_* */
    ngx_msec_t                 unused_since;   /* time when the session was
                                                  needed last */
    ngx_event_t                work;           /* posted when there may be
                                                  something to do */
    ngx_queue_t                waiting;        /* requests to be sent */
    ngx_queue_t                running;        /* requests that were sent */
    ngx_queue_t                changes;        /* changes of subscriptions that
                                                  the next request of the stream
                                                  makes, because it names the
                                                  URIs */
    ngx_uint_t                 nwaiting;       /* length of "waiting" */
    ngx_uint_t                 nrunning;       /* length of "running" */
    ngx_uint_t                 serial;         /* serial of the upstream session
                                                  that was seen last; 0: none */
    ngx_uint_t                 stream_serial;  /* serial of the upstream session
                                                  of the stream */
    ngx_http_mcp_backoff_t     backoff;        /* pause after a failure */
    ngx_msec_t                 resume;         /* time when the pause after a
                                                  failure ends */
    ngx_msec_t                 refused;        /* time of the last refusal of
                                                  the stream */
    ngx_http_mcp_reader_t      reader;

    unsigned                   established:1;     /* the upstream has a session
                                                     or needs none */
    unsigned                   paused:1;          /* no request is sent until
                                                     the time "resume" */
    unsigned                   listening:1;       /* the reader has to keep the
                                                     stream open */
    unsigned                   stream_pending:1;  /* requests wait until the
                                                     stream is requested */
    unsigned                   stream_requested:1;
    unsigned                   early_answer:1;    /* an answer came before the
                                                     stream was requested */
    unsigned                   idle:1;       /* the stream was closed, because
                                                it was not needed */
    unsigned                   no_stream:1;  /* the upstream offers no stream
                                                at present */
    unsigned                   filters:1;    /* the upstream probably has no
                                                resources/subscribe: the request
                                                of the stream names the
                                                resources */
};


/* the answer to a request; strings are valid during the call of done() */

typedef struct {
    ngx_http_mcp_outcome_e     outcome;
    ngx_uint_t                 status;     /* HTTP status; 0: there was no
                                              response */
    ngx_int_t                  code;       /* code of the JSON-RPC error; 0: no
                                              error */
    ngx_str_t                  result;     /* raw result; empty: none */
    ngx_mcp_hint_t             hint;       /* how the result may be cached */
    ngx_uint_t                 sessionless;  /* the upstream has no sessions */
    ngx_uint_t                 filters;    /* the upstream has no
                                              resources/subscribe: the request
                                              of the stream names URIs */
    ngx_uint_t                 serial;     /* serial of the upstream session
                                              that was used; 0: none */
} ngx_http_mcp_shared_answer_t;

typedef void (*ngx_http_mcp_shared_done_pt)(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data);


/*
 * Handlers of the list cache, set before workers start; NULL: lists are not
 * cached.  They are called only in the worker that holds "us".
 */

typedef struct {
    /* this worker holds the shared upstream session from now on */
    void                     (*held)(ngx_http_mcp_shared_t *us);

    /* ngx_http_mcp_shared_ensure() was called again for this session */
    void                     (*signaled)(ngx_http_mcp_shared_t *us);

    /*
     * The upstream notified that lists of these kinds (NGX_MCP_LIST_BIT)
     * changed; kinds is NGX_MCP_LIST_ALL after a gap.  NGX_OK; NGX_DECLINED:
     * these lists are not cached, so sessions have to be notified at once.
     */
    ngx_int_t                (*changed)(ngx_http_mcp_shared_t *us,
                                   ngx_uint_t kinds);

    /* a new holder takes over; after this only changed() and lost() follow */
    void                     (*replaced)(ngx_http_mcp_shared_t *us);

    /* "us" is freed after this; done() of its requests is not called */
    void                     (*lost)(ngx_http_mcp_shared_t *us);
} ngx_http_mcp_shared_handlers_t;

extern ngx_http_mcp_shared_handlers_t  *ngx_http_mcp_shared_handlers;


/*
 * Finds or makes the record of the shared upstream session in the zone.  Any
 * worker may call this.  NGX_OK; NGX_BUSY: the limit of audiences is reached;
 * NGX_DECLINED: the zone has no room.
 */
ngx_int_t ngx_http_mcp_shared_record(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key,
    ngx_mcp_ref_t *ref);

/*
 * Makes sure that a worker holds the shared upstream session, and signals the
 * holder that the session is wanted.  Any worker may call this.  NGX_OK;
 * NGX_ERROR: there is no room for another session.
 */
ngx_int_t ngx_http_mcp_shared_ensure(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key);

/*
 * Calls ngx_http_mcp_shared_ensure() for the audience at all upstreams, because
 * each of them has a part of the audience's lists.
 */
ngx_int_t ngx_http_mcp_shared_ensure_all(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *tenant, ngx_str_t *audience_key);

/* notes whether a user (NGX_HTTP_MCP_SHARED_*) needs the session now */
void ngx_http_mcp_shared_use(ngx_http_mcp_shared_t *us, ngx_uint_t user,
    ngx_uint_t needed);

/*
 * Sends a request with these raw params (an object, or empty), after requests
 * that are already waiting.  NGX_OK: done() is called once, in a later event,
 * unless this worker loses the session before; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_shared_request(ngx_http_mcp_shared_t *us,
    ngx_str_t *method, ngx_str_t *params, ngx_http_mcp_shared_done_pt done,
    void *data);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_shared_readers;

/*
 * The zone's doorbell rang for subscriptions: some have to be, or were, made or
 * ended.  keys: NGX_MCP_RING_KEY() of the shared upstream sessions.
 */
void ngx_http_mcp_shared_interests(ngx_mcp_zone_t *zone, uint64_t keys);


#endif /* _NGX_HTTP_MCP_SHARED_H_INCLUDED_ */
