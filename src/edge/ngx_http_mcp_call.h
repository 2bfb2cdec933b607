
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A call: one request of a client from the POST to its answer.
 *
 * An answerer produces the answer of a call.  Answerers are tried in the order
 * of ngx_http_mcp_answerers; each may decline the call, at once or later, and
 * the next one is tried then.  Events change the state of a call:
 *
 *   state     event                                        next state
 *
 *   NEW       start() answers at once, or refuses          DONE
 *             the answerer opens the call                  RUNNING
 *   RUNNING   start() answers after all                    DONE
 *             ngx_http_mcp_call_reply(): the answer        ANSWERED
 *             ngx_http_mcp_call_abort()                    STOPPING
 *             ngx_http_mcp_call_end(): an answer or error  DONE
 *   STOPPING  ngx_http_mcp_call_end(): the reason decides  DONE
 *   ANSWERED  ngx_http_mcp_call_end()                      DONE
 *
 * In each state, the response may be unsent, a JSON text in pieces, or a
 * stream.  The answer of an element of a batch goes to the batch.
 *
 * In each state, the client may leave.  Three functions set call->left then:
 * ngx_http_mcp_call_client_left(), if the client's connection was closed;
 * ngx_http_mcp_call_write_failed(); and the function called when the stream of
 * the call closes.  A call with a session is kept then, if a client can resume
 * its answer: it runs on, within limits, and the answer waits on its line.
 * A call without a session is cancelled (NGX_HTTP_MCP_CALL_LEFT).  If too many
 * calls are kept, one of the same tenant or client is abandoned.
 *
 * A call lives in r->pool and keeps r alive until both the answerer and the
 * stream, if one was opened, have ended.
 */

#ifndef _NGX_HTTP_MCP_CALL_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_route.h"
#include "ngx_http_mcp_stream.h"


typedef enum {
    NGX_HTTP_MCP_CALL_NEW = 0,
    NGX_HTTP_MCP_CALL_RUNNING,
    NGX_HTTP_MCP_CALL_STOPPING,
    NGX_HTTP_MCP_CALL_ANSWERED,
    NGX_HTTP_MCP_CALL_DONE
} ngx_http_mcp_call_state_e;


/* why a call was aborted */

typedef enum {
    NGX_HTTP_MCP_CALL_NOT_ABORTED = 0,
    NGX_HTTP_MCP_CALL_CANCELLED,       /* the client sent
                                          notifications/cancelled */
    NGX_HTTP_MCP_CALL_SESSION_ENDED,
    NGX_HTTP_MCP_CALL_LEFT,            /* the client left, and nobody would get
                                          the answer */
    NGX_HTTP_MCP_CALL_ABANDONED        /* the client left, and too many calls
                                          ran on without clients */
} ngx_http_mcp_call_reason_e;


typedef enum {
    NGX_HTTP_MCP_CALL_UNSENT = 0,
    NGX_HTTP_MCP_CALL_JSON,
    NGX_HTTP_MCP_CALL_STREAM
} ngx_http_mcp_call_response_e;


typedef struct ngx_http_mcp_batch_s     ngx_http_mcp_batch_t;
typedef struct ngx_http_mcp_large_s     ngx_http_mcp_large_t;
typedef struct ngx_http_mcp_call_input_s  ngx_http_mcp_call_input_t;
typedef struct ngx_http_mcp_call_park_s  ngx_http_mcp_call_park_t;
typedef struct ngx_http_mcp_call_line_s  ngx_http_mcp_call_line_t;

typedef struct ngx_http_mcp_not_found_s  ngx_http_mcp_not_found_t;


typedef struct {
    /*
     * Starts work on the call.  NGX_OK: *reply is the answer; NGX_AGAIN: the
     * answerer has opened the call and will end it; NGX_DECLINED: the next
     * answerer is tried; NGX_ERROR: no memory.
     */
    ngx_int_t               (*start)(ngx_http_mcp_call_t *call,
                                ngx_http_mcp_reply_t *reply);

    /*
     * Stops at once and frees memory that is not in r->pool; the answerer
     * calls no function of the call any more.
     */
    void                    (*stop)(ngx_http_mcp_call_t *call);

    /*
     * Begins to stop; the answerer calls ngx_http_mcp_call_end() in a later
     * event.  NULL: stop() is called instead, and the call is ended.
     */
    void                    (*cancel)(ngx_http_mcp_call_t *call);

    /*
     * The client can receive more messages (room is 1), or none for now (0).
     * r may be freed then.  May be NULL.
     */
    void                    (*room)(ngx_http_mcp_call_t *call,
                                ngx_uint_t room);

    /*
     * Adds an upstream's headers to a response that is about to begin; NGX_OK
     * or NGX_ERROR.  May be NULL.
     */
    ngx_int_t               (*headers)(ngx_http_mcp_call_t *call);

    /*
     * The doorbell rang for the call; why: bits of NGX_MCP_WAKE_NEWS, ..._INPUT
     * and ..._UPSTREAM_SESSION.  r may be freed then.  May be NULL.
     */
    void                    (*wake)(ngx_http_mcp_call_t *call,
                                ngx_uint_t why);

    /*
     * The zone's record of the call is about to be closed, as the call ends.
     * May be NULL.
     */
    void                    (*closing)(ngx_http_mcp_call_t *call);

    /*
     * 1: the call is cancelled when its client leaves before a stream was
     * opened, because nobody could resume the answer
     */
    ngx_uint_t                unresumable;

    /* bits of the methods for which start() is called; 0: for all */
    uint32_t                  methods;
} ngx_http_mcp_answerer_t;

#define NGX_HTTP_MCP_METHOD(code)  ((uint32_t) 1 << (code))

#define NGX_HTTP_MCP_METHODS_LIST                                             \
    (NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_TOOLS_LIST)                           \
     | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_PROMPTS_LIST)                       \
     | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_RESOURCES_LIST)                     \
     | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST))

#define NGX_HTTP_MCP_METHODS_SUBSCRIPTION                                     \
    (NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_SUBSCRIBE)                            \
     | NGX_HTTP_MCP_METHOD(NGX_MCP_METHOD_UNSUBSCRIBE))


/* functions of a batch that its calls use */

typedef struct {
    /*
     * Adds the answer of an element to the batch; text is empty if the element
     * was cancelled.
     */
    void                    (*answer)(ngx_http_mcp_call_t *call,
                                ngx_str_t *text);

    /* the answerer of an element has ended, after its answer */
    void                    (*done)(ngx_http_mcp_call_t *call);
} ngx_http_mcp_call_batch_t;


struct ngx_http_mcp_call_s {
    ngx_http_request_t         *r;
    ngx_http_mcp_ctx_t         *ctx;
    ngx_mcp_message_t          *message;

    ngx_http_mcp_batch_t       *batch;        /* batch that has the message as
                                                 an element, or NULL */
    ngx_uint_t                  index;        /* index of the element in the
                                                 batch */
    ngx_http_mcp_call_batch_t  *batch_handlers;

    ngx_http_mcp_answerer_t    *answerer;
    void                       *data;         /* belongs to the answerer; NULL
                                                 if its start() failed early */
    ngx_http_mcp_answerer_t   **next;         /* answerer to be tried next */

    ngx_uint_t                  state;        /* ngx_http_mcp_call_state_e */
    ngx_uint_t                  reason;       /* ..._reason_e */
    ngx_uint_t                  response;     /* ..._response_e */
    ngx_int_t                   rc;           /* result with which r is
                                                 finalized once the response is
                                                 sent */

    ngx_mcp_call_t              record;       /* the zone's record of the call;
                                                 record.local is the number of
                                                 the call in this worker; 0: it
                                                 has no number */
    ngx_event_t                 after;        /* timer of mcp_stream_after */
    ngx_str_t                   uri;          /* URI of the subscription that
                                                 this call made, or seeks an
                                                 upstream for: the subscription
                                                 ends if the call fails; or
                                                 empty */
    ngx_http_mcp_call_input_t  *input;        /* input that the upstream
                                                 requests of the client, or
                                                 NULL */
    ngx_http_mcp_call_park_t   *park;         /* exclusive session, if a client
                                                 without a session may be asked
                                                 for input during the call; else
                                                 NULL */
    ngx_http_mcp_call_line_t   *line;         /* line that the call reads, or
                                                 NULL */

    ngx_http_mcp_route_t        route;        /* the upstream in use, and those
                                                 to be tried after it */
    ngx_int_t                 (*again)(ngx_http_mcp_call_t *call,
                                    ngx_http_mcp_reply_t *reply);
                                              /* sends the call to the next
                                                 upstream of the route, and
                                                 returns as start() does */
    ngx_http_mcp_not_found_t   *not_found;    /* best answer of upstreams that
                                                 lack the subject (see
                                                 ngx_mcp_message.h); NULL: no
                                                 such answer came */

    ngx_http_mcp_stream_owner_t  owner;       /* handlers for the stream */
    ngx_http_mcp_large_t       *large;        /* first message for the stream
                                                 that is too large for the log,
                                                 or NULL */
    ngx_mcp_memory_t            memory;       /* holds the text of an answer
                                                 that is being delivered; start
                                                 NULL: the text is elsewhere */

    ngx_queue_t                 kept_queue;   /* place in
                                                 ngx_http_mcp_calls.kept; next
                                                 NULL: not queued */
    uint64_t                    kept_key;     /* hash of the tenant or client
                                                 whose kept calls are limited
                                                 together */

    unsigned                    registered:1; /* the zone has "record" as a
                                                 running call */
    unsigned                    continues:1;  /* the request continues a parked
                                                 call, and has no record of its
                                                 own */
    unsigned                    left:1;       /* the client has left */
    unsigned                    passing:1;    /* the answer is a list, which is
                                                 cached for other callers if the
                                                 upstream allows this */
    uint64_t                    forgotten;    /* ngx_mcp_lists_forgotten() when
                                                 the call began; the upstream's
                                                 list is not cached if the
                                                 number has changed since */
};


/* the calls of a worker, of all zones, as connections are the worker's */

typedef struct {
    ngx_http_mcp_call_t       **table;        /* calls by number; a free entry
                                                 holds the number of the next
                                                 free entry, shifted, with bit 0
                                                 set */
    uintptr_t                   free;         /* number of the first free
                                                 entry; equal to "size": none
                                                 is free */
    ngx_uint_t                  size;         /* entries of table */

    ngx_queue_t                 kept;         /* running calls whose clients
                                                 have left, oldest first; not
                                                 initialized if nkept is 0 */
    ngx_uint_t                  nkept;        /* calls in "kept" */
    ngx_uint_t                  ncancels;     /* cancellations under way to
                                                 upstreams */
} ngx_http_mcp_calls_t;

extern ngx_http_mcp_calls_t  ngx_http_mcp_calls;

/* returns this worker's call with this number if it is of the zone, or NULL */
ngx_http_mcp_call_t *ngx_http_mcp_call_numbered(ngx_mcp_zone_t *zone,
    uint32_t local);


/* functions for requests and batches */

/*
 * Starts the call of an element of a batch.  NGX_OK: *text is the answer, in
 * r->pool; NGX_AGAIN: the call runs, and batch_handlers will be called.
 */
ngx_int_t ngx_http_mcp_call_element(ngx_http_mcp_call_t *element,
    ngx_str_t *text);

/* makes a call for message m, in the state NEW; NULL: no memory */
ngx_http_mcp_call_t *ngx_http_mcp_call_create(ngx_http_request_t *r,
    ngx_mcp_message_t *m);


/*
 * The time in ms that a client has to answer an input round, with a session or
 * without.  A call that is parked for longer is cancelled.
 */
#define NGX_HTTP_MCP_INPUT_TIME  600000

/* the answerers in order, and NULL at the end; set before workers start */
extern ngx_http_mcp_answerer_t  **ngx_http_mcp_answerers;

extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_continue;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_list;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_subscription;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_local;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_gather;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_forward;

/*
 * Sends the call to the upstream of call->route, and returns as start() does.
 * An upstream that keeps no sessions is not asked for a subscription; the
 * result is empty then.
 */
ngx_int_t ngx_http_mcp_call_to_upstream(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/*
 * Sets *key, in r->pool, to the key of a limit with this name for the caller of
 * a call without a session: its tenant, and its identity or else its address.
 * NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_call_limit_key(ngx_http_mcp_call_t *call,
    const char *name, ngx_str_t *key);

/*
 * Sets *audience to that of a background request about the call, such as a
 * cancellation, to the upstream of ureq
 */
void ngx_http_mcp_call_audience(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_audience_t *audience);

/* sets the caller of an upstream request to the caller of the call */
void ngx_http_mcp_call_caller(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * As ngx_http_mcp_call_to_upstream(), but only to the session's upstream
 * session, if there is one; the client gets an empty result, whatever the
 * upstream answers.
 */
ngx_int_t ngx_http_mcp_call_sync(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);


/* choice of the upstream for a call (ngx_http_mcp_call_route.c) */

/*
 * Finds the upstream.  NGX_AGAIN: it is in call->route; NGX_OK or NGX_ERROR
 * are for start() to return: *reply says that no upstream has the subject of
 * the call, or there is no memory.
 */
ngx_int_t ngx_http_mcp_call_route(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/*
 * Sets *body to the message with the upstream's own name of the subject: the
 * client's text or a copy in r->pool.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_call_body(ngx_http_mcp_call_t *call, ngx_str_t *body);

/*
 * Returns the ngx_mcp_list_kind_e of the list that the call asks for, or
 * NGX_ERROR if the method does not ask for a list.
 */
ngx_int_t ngx_http_mcp_list_kind(ngx_http_mcp_call_t *call);

/*
 * Caches a list for other callers, if the upstream allows it.  result: the
 * upstream's raw result, which is about to be passed on to the client.
 */
void ngx_http_mcp_list_passed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *result);

/*
 * Makes the reply of the page of a list that the call asks for, without entries
 * that the caller may not see.  Of *list, the members kind, version, text and
 * pages are read.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_call_list_page(ngx_http_mcp_call_t *call,
    ngx_http_mcp_list_copy_t *list, ngx_http_mcp_reply_t *reply);

/*
 * Sets *result to a list of the module's own entries, for a list that no
 * upstream has.  NGX_OK or NGX_DECLINED: the module has no entries for it.
 */
ngx_int_t ngx_http_mcp_call_own_list(ngx_http_mcp_call_t *call,
    ngx_str_t *result);

/*
 * Delivers a request or notification of an upstream to the client.  Returns
 * whether text is an answer instead, while the call runs, and sets *id to its
 * raw id.
 */
ngx_uint_t ngx_http_mcp_call_upstream_message(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_str_t *id);

/*
 * Records that the upstream lacks the subject of the call, or may lack it.
 * reply is its answer, with this JSON-RPC code, and x the exchange or NULL.  If
 * no upstream has the subject, the client gets the best of these answers.
 */
void ngx_http_mcp_call_not_found(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply, ngx_int_t code, ngx_http_mcp_exchange_t *x);

/*
 * Goes on to the next upstream of the route.  NGX_AGAIN: the caller sends the
 * call to it; NGX_OK: there is no further upstream, *reply is the best of the
 * recorded answers, and *x its exchange; NGX_ERROR: there is no further
 * upstream, and no answer was recorded.
 */
ngx_int_t ngx_http_mcp_call_elsewhere(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply, ngx_http_mcp_exchange_t **x);


/* functions for answerers */

/*
 * Makes the call RUNNING: checks the limits, and registers the call in the
 * zone, where other workers find it.  NGX_AGAIN: the call runs; NGX_OK or
 * NGX_ERROR are for start() to return: *reply is a refusal, or there is no
 * memory.
 */
ngx_int_t ngx_http_mcp_call_open(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/*
 * Gives the client the answer or the error in *reply, or nothing if *reply is
 * empty; the call is ANSWERED then.
 */
void ngx_http_mcp_call_reply(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/*
 * Notes that the call needs no reply any more: the answer is in the response
 * already, or the client has left.
 */
void ngx_http_mcp_call_answered(ngx_http_mcp_call_t *call);

/*
 * Ends the call, as its answerer has ended.  reply is given to the client
 * unless the call was answered or aborted.  r may be freed then.
 */
void ngx_http_mcp_call_end(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/*
 * Goes on after start() returned NGX_AGAIN, as if it returned rc now: the next
 * answerers are asked, or the call runs on or ends.  r may be freed then.
 */
void ngx_http_mcp_call_started(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_reply_t *reply);

/*
 * Puts a message on the call's line; flags are NGX_MCP_EVENT_*.  Returns as
 * ngx_mcp_log_call() does; NGX_OK also if there is no line.
 */
ngx_int_t ngx_http_mcp_call_deliver(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t flags, ngx_uint_t level);

/*
 * Begins an SSE response if the client accepts one and no response has begun.
 * call->response tells whether it has begun.
 */
void ngx_http_mcp_call_open_stream(ngx_http_mcp_call_t *call);

/* opens the stream if there is no answer after "time" ms */
void ngx_http_mcp_call_open_stream_after(ngx_http_mcp_call_t *call,
    ngx_msec_t time);

/* begins a JSON response in pieces; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_call_open_json(ngx_http_mcp_call_t *call);

/*
 * Notes that nothing can be written to the client any more.  If its answerer
 * has cancel(), the call runs on without the client, within limits, or is
 * cancelled; any other call is left as it is until its connection is closed.
 */
void ngx_http_mcp_call_write_failed(ngx_http_mcp_call_t *call);

/* ends the subscription call->uri, if there is one, and empties call->uri */
void ngx_http_mcp_call_unsubscribe(ngx_http_mcp_call_t *call);


/*
 * Input that an upstream requests of the client (ngx_http_mcp_input.h).
 * ngx_http_mcp_call_input() is the input() of an upstream request with the
 * call as its data; ..._ask() asks a client with a session, and returns
 * NGX_OK, or NGX_DECLINED if the client cannot be asked; ..._wake() is called
 * when the doorbell rings for NGX_MCP_WAKE_INPUT; ..._stop() when the call
 * ends.
 */
ngx_int_t ngx_http_mcp_call_input(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_input_t *input);
ngx_int_t ngx_http_mcp_call_input_ask(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_input_t *input);
void ngx_http_mcp_call_input_wake(ngx_http_mcp_call_t *call);

/*
 * NGX_OK if the client declared the capabilities for all requests of the
 * input, else NGX_DECLINED.
 */
ngx_int_t ngx_http_mcp_call_input_capable(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_t *input);
void ngx_http_mcp_call_input_stop(ngx_http_mcp_call_t *call);

/*
 * Converts the URL elicitations of an upstream's raw error -32042 (2025-11-25)
 * to requests in *input, in r->pool.  NGX_OK; NGX_DECLINED: the error has no
 * elicitations, or one that is not valid; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_call_input_pages(ngx_http_mcp_call_t *call,
    ngx_str_t *error, ngx_http_mcp_input_t *input);

/*
 * For ngx_mcp_cut(): returns 0 for members of params that have no meaning in
 * 2026-07-28, else 1.
 */
ngx_uint_t ngx_http_mcp_call_input_keep(ngx_str_t *name, ngx_str_t *value,
    void *data);


/* functions for other files */

/*
 * Notes that the client of the call has left.  The call runs on, within
 * limits, or ends; r may be freed then.
 */
void ngx_http_mcp_call_client_left(ngx_http_mcp_call_t *call);

/*
 * For the read event handler of a request that runs on when its client leaves:
 * returns whether the client has left, and if so prepares the request to run
 * on.
 */
ngx_uint_t ngx_http_mcp_call_test_client(ngx_http_request_t *r);

/*
 * Ends the call for this reason, at once or when its answerer has been
 * cancelled.  r may be freed then.
 */
void ngx_http_mcp_call_abort(ngx_http_mcp_call_t *call, ngx_uint_t reason);

/* the doorbell rang for the call with this local number */
void ngx_http_mcp_call_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);


#endif /* _NGX_HTTP_MCP_CALL_H_INCLUDED_ */
