
/*
 * Shared upstream sessions: one at each upstream for each audience (endpoint,
 * tenant, list key), and what is done there is done for all its sessions.  One
 * worker holds it, by a lease, and only there it exists as
 * ngx_http_mcp_shared_t; it listens for changes, keeps the subscriptions and
 * fetches the lists.
 *
 * It is kept while something needs it (ngx_http_mcp_shared_use()), and for
 * NGX_HTTP_MCP_SHARED_KEEP after that.  Then the lease is dropped, and the
 * session at the upstream ended.
 *
 * Its GET stream has a reader (ngx_http_mcp_reader.h), to which the lease
 * belongs.  At a reload the worker that held it reads on until the next one
 * does, if the events have no ids; it does nothing else then.
 * An upstream sends each message on one of the streams that a session has
 * open, so messages of two streams are not compared.  If the old stream ends
 * before the new one is open, and cannot be resumed, there is a gap: sessions
 * are notified that their resources were updated, and the lists are checked.
 *
 * If the upstream has forgotten the session, the new one subscribes to all
 * resources again (ngx_http_mcp_shared_established()).
 */

#ifndef _NGX_HTTP_MCP_SHARED_H_INCLUDED_
#define _NGX_HTTP_MCP_SHARED_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_reader.h"


/* ms */
#define NGX_HTTP_MCP_SHARED_KEEP  60000


/* the users of it and of its listener; bits */

#define NGX_HTTP_MCP_SHARED_LISTS          0x01
#define NGX_HTTP_MCP_SHARED_SUBSCRIPTIONS  0x02
#define NGX_HTTP_MCP_SHARED_LISTENS        0x04


typedef struct ngx_http_mcp_shared_s  ngx_http_mcp_shared_t;

struct ngx_http_mcp_shared_s {
    ngx_http_mcp_bridge_t     *bridge;
    ngx_http_mcp_upstream_t   *upstream;
    ngx_str_t                  tenant;
    ngx_str_t                  audience_key;
    ngx_pool_t                *pool;       /* as long as it is held */
    void                      *lists;      /* of those who cache them */

    /* private */
    ngx_mcp_ref_t              ref;            /* in the zone */
    u_char                     id[NGX_MCP_UUID_LEN];
    ngx_uint_t                 users;          /* NGX_HTTP_MCP_SHARED_* */
    ngx_msec_t                 unused_since;   /* since then */
    ngx_event_t                work;           /* posted */
    ngx_queue_t                waiting;        /* requests */
    ngx_queue_t                running;
    ngx_queue_t                asked;          /* subscriptions, with it */
    ngx_uint_t                 nwaiting;
    ngx_uint_t                 nrunning;
    ngx_uint_t                 requests;       /* so far */
    ngx_uint_t                 serial;         /* of the one seen last, */
    ngx_uint_t                 stream_serial;  /* on which it was begun */
    ngx_http_mcp_backoff_t     backoff;        /* after a failure, */
    ngx_msec_t                 resume;         /* until then */
    ngx_msec_t                 refused;        /* the GET stream, when */
    ngx_http_mcp_reader_t      reader;

    unsigned                   established:1;     /* or needs not be */
    unsigned                   paused:1;
    unsigned                   listening:1;
    unsigned                   stream_pending:1;  /* others wait for it */
    unsigned                   stream_requested:1;
    unsigned                   early_answer:1;    /* one came before that */
    unsigned                   idle:1;     /* nobody needed it for a while */
    unsigned                   no_stream:1;  /* there is no GET stream */
};


/* the outcome of a request; strings are valid during the call of done() */

typedef struct {
    ngx_http_mcp_outcome_e     outcome;
    ngx_uint_t                 status;     /* HTTP; 0: no answer */
    ngx_int_t                  code;       /* of a JSON-RPC error, or 0 */
    ngx_str_t                  result;     /* raw; empty: there is none */
    ngx_mcp_hint_t             hint;       /* what is said of keeping it */
    ngx_uint_t                 sessionless;  /* the upstream is */
    ngx_uint_t                 serial;     /* of the session, 0: none */
} ngx_http_mcp_shared_answer_t;

typedef void (*ngx_http_mcp_shared_done_pt)(ngx_http_mcp_shared_t *us,
    ngx_http_mcp_shared_answer_t *answer, void *data);


/*
 * Of those who cache lists; set before workers start, or NULL.  Called in the
 * holder alone.
 */

typedef struct {
    /* this worker holds it from now on */
    void                     (*held)(ngx_http_mcp_shared_t *us);

    /* somebody wanted it again (ngx_http_mcp_shared_ensure()) */
    void                     (*signaled)(ngx_http_mcp_shared_t *us);

    /*
     * The upstream said that lists of these kinds (NGX_MCP_LIST_BIT) changed;
     * kinds is all when some of it may have been missed.
     * NGX_DECLINED: they are not cached: the sessions are notified now.
     */
    ngx_int_t                (*changed)(ngx_http_mcp_shared_t *us,
                                   ngx_uint_t kinds);

    /* it does nothing any more but call changed() */
    void                     (*replaced)(ngx_http_mcp_shared_t *us);

    /* it is gone after this; done() of no request is called any more */
    void                     (*lost)(ngx_http_mcp_shared_t *us);
} ngx_http_mcp_shared_handlers_t;

extern ngx_http_mcp_shared_handlers_t  *ngx_http_mcp_shared_handlers;


/*
 * From any worker: makes a worker hold it, which then knows it is wanted.
 * NGX_OK; NGX_ERROR: there is no room for it.
 */
ngx_int_t ngx_http_mcp_shared_ensure(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *audience_key);

/* a user needs it from now on, or no more */
void ngx_http_mcp_shared_use(ngx_http_mcp_shared_t *us, ngx_uint_t user,
    ngx_uint_t needed);

/*
 * Sends one request with these raw params (an object, or empty), after those
 * that are waiting already.  NGX_OK: done() is called once, in a later event,
 * unless it is lost before; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_shared_request(ngx_http_mcp_shared_t *us,
    ngx_str_t *method, ngx_str_t *params, ngx_http_mcp_shared_done_pt done,
    void *data);

extern ngx_http_mcp_reader_kind_t  ngx_http_mcp_shared_readers;

/* handlers->interests */
void ngx_http_mcp_shared_interests(ngx_mcp_zone_t *zone, uint64_t keys);


/*
 * Subscriptions that sessions of an audience share: from any worker, to ask for
 * one and to wait until the upstream accepted it.
 */

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
     * it took too long, and was taken back; NGX_BUSY, NGX_ERROR: it went, and
     * there is no place or no room for another one
     */
    void                     (*done)(void *data, ngx_int_t rc);
    void                      *data;

    /* private */
    ngx_http_mcp_waiter_t      waiter;
    ngx_str_t                  audience_key;
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


#endif /* _NGX_HTTP_MCP_SHARED_H_INCLUDED_ */
