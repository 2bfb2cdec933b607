
/*
 * A call: one request of a client from the POST to its answer.  It may outlive
 * its connection: a client that leaves only detaches, and the answer waits on
 * the call's line.
 *
 * An answerer works for the call; the table below lists the functions that an
 * answerer has.  Answerers are asked in the order of their table,
 * and one may hand the call to another.
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
 * Independent of the state, nothing is sent yet, or the response is a JSON text
 * in pieces, or a stream; and the client is there or gone.  The answer of an
 * element of a batch goes to the batch.
 *
 * A call lives in r->pool and keeps r alive until both the answerer and the
 * stream, if one was opened, have ended.
 */

#ifndef _NGX_HTTP_MCP_CALL_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
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
    NGX_HTTP_MCP_CALL_CANCELLED,       /* by its client */
    NGX_HTTP_MCP_CALL_SESSION_ENDED,
    NGX_HTTP_MCP_CALL_LEFT,            /* the client left, nobody would get
                                          the answer */
    NGX_HTTP_MCP_CALL_ABANDONED        /* too many calls run without client */
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

typedef struct ngx_http_mcp_call_missed_s  ngx_http_mcp_call_missed_t;


typedef struct {
    /*
     * NGX_OK: *reply is the answer; NGX_AGAIN: the answerer has opened the
     * call and will end it; NGX_DECLINED: the next answerer is asked;
     * NGX_ERROR: no memory
     */
    ngx_int_t               (*start)(ngx_http_mcp_call_t *call,
                                ngx_http_mcp_reply_t *reply);

    /* frees what is not in r->pool; the call hears nothing more of it */
    void                    (*stop)(ngx_http_mcp_call_t *call);

    /* ngx_http_mcp_call_end() follows in a later event; NULL: stop() does */
    void                    (*cancel)(ngx_http_mcp_call_t *call);

    /* the client takes more (1), or no more for now (0); may be NULL */
    void                    (*room)(ngx_http_mcp_call_t *call,
                                ngx_uint_t room);

    /* a response begins: adds an upstream's headers; may be NULL */
    ngx_int_t               (*headers)(ngx_http_mcp_call_t *call);

    /* the doorbell: NGX_MCP_WAKE_UPSTREAM_SESSION; may be NULL */
    void                    (*wake)(ngx_http_mcp_call_t *call);

    /* a client that left could not resume it: the call ends then */
    ngx_uint_t                unresumable;
} ngx_http_mcp_answerer_t;


/* of a batch */

typedef struct {
    /* an element is answered; text may be empty (cancelled) */
    void                    (*answer)(ngx_http_mcp_call_t *call,
                                ngx_str_t *text);

    /* and its answerer has ended */
    void                    (*done)(ngx_http_mcp_call_t *call);
} ngx_http_mcp_call_batch_t;


struct ngx_http_mcp_call_s {
    ngx_http_request_t         *r;
    ngx_http_mcp_ctx_t         *ctx;
    ngx_mcp_message_t          *message;

    ngx_http_mcp_batch_t       *batch;        /* array with this element */
    ngx_uint_t                  index;
    ngx_http_mcp_call_batch_t  *batch_handlers;

    ngx_http_mcp_answerer_t    *answerer;
    void                       *data;         /* data of the answerer */

    ngx_uint_t                  state;        /* ngx_http_mcp_call_state_e */
    ngx_uint_t                  reason;       /* ..._reason_e */
    ngx_uint_t                  response;     /* ..._response_e */
    ngx_int_t                   rc;           /* result of the response */

    ngx_mcp_call_t              record;
    uint32_t                    local;        /* number in the worker, or 0 */
    ngx_event_t                 after;        /* timer of mcp_stream_after */
    ngx_str_t                   uri;          /* resource subscribed to */
    ngx_http_mcp_call_input_t  *input;        /* awaited input, or NULL */
    ngx_http_mcp_call_park_t   *park;         /* state of a client that may be
                                                 asked, or NULL */
    ngx_http_mcp_call_line_t   *line;         /* that it reads, or NULL */

    ngx_http_mcp_route_t        route;        /* way to the upstream */
    ngx_http_mcp_call_missed_t  *missed;      /* upstreams asked before */

    ngx_http_mcp_stream_owner_t  owner;
    ngx_http_mcp_large_t       *large;        /* messages for the stream */

    ngx_queue_t                 detached_queue;  /* in "detached" */
    uint64_t                    detached_key; /* of the counting client */

    unsigned                    registered:1; /* "record" is a running call */
    unsigned                    continues:1;  /* goes on with a parked call and
                                                 has no record of its own */
    unsigned                    gone:1;       /* the client has left */
    unsigned                    passing:1;    /* the answer is a list that is
                                                 cached for others, if the
                                                 upstream allows it */
    uint64_t                    forgotten;    /* ngx_mcp_lists_forgotten() when
                                                 the call began: the list is
                                                 cached only if it is equal */
};


/* calls of a worker */

typedef struct {
    ngx_http_mcp_call_t       **table;        /* by number; a free entry holds
                                                 the next free one */
    uintptr_t                   free;
    ngx_uint_t                  size;

    ngx_queue_t                 detached;     /* calls without a client */
    ngx_uint_t                  ndetached;
    ngx_uint_t                  ncancels;     /* cancellations under way to
                                                 upstreams */
} ngx_http_mcp_calls_t;

extern ngx_http_mcp_calls_t  ngx_http_mcp_calls;


/* for requests and batches */

/*
 * Starts the call for message m of a batch.  NGX_AGAIN: *call runs, the batch's
 * handlers will be called; NGX_OK: *text is the answer.
 */
ngx_int_t ngx_http_mcp_call_element(ngx_http_mcp_call_t *element,
    ngx_str_t *text);

/* makes a call in the state NEW; NULL: no memory */
ngx_http_mcp_call_t *ngx_http_mcp_call_create(ngx_http_request_t *r,
    ngx_mcp_message_t *m);


/*
 * ms that a client has to answer an input round, with a session or without; a
 * call that is parked for longer is cancelled
 */
#define NGX_HTTP_MCP_INPUT_TIME  600000

/* tried in order, the last is NULL; set before workers start */
extern ngx_http_mcp_answerer_t  **ngx_http_mcp_answerers;

extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_continue;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_list;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_subscription;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_local;
extern ngx_http_mcp_answerer_t  ngx_http_mcp_call_forward;

/*
 * Hands the call to the answerer for upstreams, as its start() would.
 * session_only: one that keeps no sessions is not asked; the result is empty.
 */
ngx_int_t ngx_http_mcp_call_to_upstream(ngx_http_mcp_call_t *call,
    ngx_uint_t session_only, ngx_http_mcp_reply_t *reply);

/*
 * Sets ctx->principal, by which callers without a session are told apart, and
 * ctx->borrowed.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_call_principal(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* sets the caller for whom an upstream is asked */
void ngx_http_mcp_call_caller(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * Likewise for a call that is answered here, with an empty result, once the
 * session's upstream session was asked for it, if there is one.
 */
ngx_int_t ngx_http_mcp_call_sync(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);


/* resources/subscribe: the upstream has refused, and the route has another */
ngx_int_t ngx_http_mcp_call_subscribe_again(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);


/* the upstream that a call is for (ngx_http_mcp_call_route.c) */

/* call->route: NGX_AGAIN; else start() returns this: nobody has it */
ngx_int_t ngx_http_mcp_call_route(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/* the message as that upstream understands it; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_call_body(ngx_http_mcp_call_t *call, ngx_str_t *body);

/*
 * Lists of several upstreams, or of one with a prefix, gathered from all on the
 * client's own sessions there; as start() would.  NGX_DECLINED: it is no list,
 * or that of the only upstream.
 */
ngx_int_t ngx_http_mcp_call_gather(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/* finds out the upstream's name of what is called, then calls it; likewise */
ngx_int_t ngx_http_mcp_call_look_up(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/* ngx_mcp_list_kind_e, or NGX_ERROR: the method is none of a list */
ngx_int_t ngx_http_mcp_list_kind(ngx_http_mcp_call_t *call);

/* an upstream's raw result is about to pass: others may get it as well */
void ngx_http_mcp_list_passed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *result);

/* why a cursor is refused */
#define NGX_HTTP_MCP_CURSOR                                                   \
    "params.cursor is not a cursor of the current list; begin with the first " \
    "page"

/*
 * The result of a list that no upstream has, but the module does.  NGX_OK or
 * NGX_DECLINED.
 */
ngx_int_t ngx_http_mcp_call_own_list(ngx_http_mcp_call_t *call,
    ngx_str_t *result);

/* a request or notification of an upstream on its way to the client */
void ngx_http_mcp_call_upstream_message(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_str_t *id);

/*
 * It has not got it, or cannot tell: its answer, with a JSON-RPC code, which
 * is given if others have not got it either.
 */
void ngx_http_mcp_call_missed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply, ngx_int_t code, ngx_http_mcp_exchange_t *x);

/*
 * Asks another one, as ngx_http_mcp_call_to_upstream() does.  NGX_OK: all were
 * asked; the answer is that of *x.
 */
ngx_int_t ngx_http_mcp_call_elsewhere(ngx_http_mcp_call_t *call,
    ngx_uint_t session_only, ngx_http_mcp_reply_t *reply,
    ngx_http_mcp_exchange_t **x);


/* for answerers */

/*
 * The call begins to run: limits apply, and it is known to other workers.
 * NGX_AGAIN; else start() returns this.
 */
ngx_int_t ngx_http_mcp_call_open(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/* gives the client the answer, an error, or (an empty reply) none */
void ngx_http_mcp_call_reply(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/* the answer is in the response already, or the client has left */
void ngx_http_mcp_call_answered(ngx_http_mcp_call_t *call);

/* the answerer has ended; reply if there was none; r may be gone after it */
void ngx_http_mcp_call_end(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);

/* likewise with what another answerer's start returned; NGX_AGAIN: not yet */
void ngx_http_mcp_call_started(ngx_http_mcp_call_t *call, ngx_int_t rc,
    ngx_http_mcp_reply_t *reply);

/* puts a message on the call's line; flags are NGX_MCP_EVENT_* */
void ngx_http_mcp_call_deliver(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t flags, ngx_uint_t level);

/* opens the stream, if the client takes one and nothing was sent yet */
void ngx_http_mcp_call_open_stream(ngx_http_mcp_call_t *call);

/* likewise when so many ms have passed without an answer */
void ngx_http_mcp_call_open_stream_after(ngx_http_mcp_call_t *call,
    ngx_msec_t time);

/* begins a JSON response in pieces; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_call_open_json(ngx_http_mcp_call_t *call);

/* nothing can be written to the client any more: the call runs on without it */
void ngx_http_mcp_call_client_lost(ngx_http_mcp_call_t *call);

/* ends the subscription that the call made */
void ngx_http_mcp_call_unsubscribe(ngx_http_mcp_call_t *call);


/*
 * Input that an upstream wants of the client (ngx_http_mcp_input.h): as input()
 * of an upstream request with the call as its data; of a client with a session;
 * the doorbell: NGX_MCP_WAKE_INPUT; and the call ends.
 */
ngx_int_t ngx_http_mcp_call_input(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_input_t *input);
ngx_int_t ngx_http_mcp_call_input_ask(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_input_t *input);
void ngx_http_mcp_call_input_wake(ngx_http_mcp_call_t *call);

/* whether the client said that it can do all of that: NGX_OK or NGX_DECLINED */
ngx_int_t ngx_http_mcp_call_input_capable(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_t *input);
void ngx_http_mcp_call_input_stop(ngx_http_mcp_call_t *call);

/*
 * Input that an upstream wants by an error (-32042): pages to visit.  error:
 * raw.  NGX_OK; NGX_DECLINED: it names none; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_call_input_pages(ngx_http_mcp_call_t *call,
    ngx_str_t *error, ngx_http_mcp_input_t *input);

/* members of params that have no meaning in 2026-07-28, for ngx_mcp_cut() */
ngx_uint_t ngx_http_mcp_call_input_keep(ngx_str_t *name, ngx_str_t *value,
    void *data);


/* for others */

/*
 * Its client has left: it runs on, within limits, or ends.  r may be gone
 * after it.
 */
void ngx_http_mcp_call_client_gone(ngx_http_mcp_call_t *call);

/*
 * In a read event handler of a request that runs on when its client leaves:
 * whether it has, and if so prepares the request for that.
 */
ngx_uint_t ngx_http_mcp_call_detach(ngx_http_request_t *r);

/* ends it for this reason; r may be gone after it */
void ngx_http_mcp_call_abort(ngx_http_mcp_call_t *call, ngx_uint_t reason);

/* from the doorbell */
void ngx_http_mcp_call_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);


#endif /* _NGX_HTTP_MCP_CALL_H_INCLUDED_ */
