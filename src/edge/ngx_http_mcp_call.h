
/*
 * A call: one request of a client from the POST to its answer.  It runs the
 * exchange on the client's request and may outlive the client: who leaves
 * only detaches, and the answer waits on the call's line.
 *
 * It lives in r->pool and keeps r alive until both the exchange and the
 * stream, if one was opened, have ended.
 */

#ifndef _NGX_HTTP_MCP_CALL_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_lists.h"
#include "ngx_http_mcp_wait.h"
#include "ngx_http_mcp_supply.h"


typedef struct ngx_http_mcp_batch_s  ngx_http_mcp_batch_t;
typedef struct ngx_http_mcp_large_s  ngx_http_mcp_large_t;


/* a message on the call's line that the log does not keep */

struct ngx_http_mcp_large_s {
    ngx_str_t                 text;
    ngx_mcp_cursor_t          place;
    ngx_uint_t                flags;      /* NGX_MCP_EVENT_* */
    ngx_http_mcp_large_t     *next;
};


struct ngx_http_mcp_call_s {
    ngx_http_request_t       *r;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_mcp_message_t        *message;
    ngx_http_mcp_batch_t     *batch;      /* of which it is an element */
    ngx_uint_t                index;

    ngx_mcp_call_t            record;
    uint32_t                  local;
    ngx_http_mcp_talk_t       talk;
    ngx_event_t               after;      /* mcp_stream_after */
    ngx_str_t                 uri;        /* subscribed by this call */
    ngx_str_t                 data;       /* of an error, raw, or empty */
    ngx_http_mcp_wait_t      *wait;       /* in place of a talk */
    ngx_http_mcp_supply_t    *supply;     /* likewise, shared with others */

    ngx_chain_t              *free;       /* of an answer that passes through */
    ngx_chain_t              *busy;
    ngx_chain_t              *none;
    ngx_str_t                 gathered;   /* room for an answer in pieces */
    size_t                    large_size;
    ngx_http_mcp_large_t     *large;      /* waits for the stream */
    ngx_str_t                 answer;     /* likewise, beside the log's */

    ngx_http_mcp_list_t        *list;     /* that answers it */
    ngx_mcp_page_t             *page;
    ngx_http_mcp_list_waiter_t  waiter;
    ngx_event_t                 patience;

    ngx_queue_t                 left_queue;
    uint64_t                    left_key;

    unsigned                  registered:1;
    unsigned                  streaming:1;   /* SSE was opened */
    unsigned                  closed:1;      /* and its stream has ended */
    unsigned                  gone:1;        /* the client left */
    unsigned                  left:1;        /* so, and it runs on */
    unsigned                  abandoned:1;   /* as too many do */
    unsigned                  answered:1;
    unsigned                  passing:1;     /* the answer passes through */
    unsigned                  cancelled:1;
    unsigned                  ended:1;       /* the session did */
    unsigned                  done:1;        /* the exchange is over */
    unsigned                  local_answer:1;
    unsigned                  listing:1;     /* waits for a list */
    unsigned                  sharing:1;     /* waits for the supply */
    unsigned                  blamed:1;      /* the log has what was wrong */
    unsigned                  denied:1;      /* refused by mcp_deny */
};


/*
 * Starts the call for message m of a batch; its answer reaches
 * ngx_http_mcp_batch_answer().  NGX_OK, or NGX_DECLINED with *error composed.
 */
ngx_int_t ngx_http_mcp_call_element(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m, ngx_http_mcp_batch_t *batch,
    ngx_uint_t index, ngx_str_t *error);

/* the call of an element runs: batch_answer() and batch_done() will come */
void ngx_http_mcp_batch_begun(ngx_http_mcp_batch_t *batch, ngx_uint_t index,
    ngx_http_mcp_call_t *call);

/* an element of the batch is answered; text may be empty (cancelled) */
void ngx_http_mcp_batch_answer(ngx_http_mcp_batch_t *batch, ngx_uint_t index,
    ngx_str_t *text);

/* likewise, with an empty result, and its exchange has ended */
void ngx_http_mcp_batch_here(ngx_http_mcp_batch_t *batch, ngx_uint_t index,
    ngx_str_t *id);

/* and its exchange has ended */
void ngx_http_mcp_batch_done(ngx_http_mcp_batch_t *batch);

/*
 * The stream of this call is gone (client left, or it was closed); the
 * exchange runs on and the answer waits on the line.  Not called when the
 * stream ended with its line; r may be gone after it.
 */
void ngx_http_mcp_call_stream_closed(ngx_http_mcp_call_t *call);

/*
 * Whether the client of r has left; asked in a read event handler, which has
 * to stop a level-triggered event when it has not.
 */
ngx_uint_t ngx_http_mcp_client_left(ngx_http_request_t *r);

/*
 * In a read event handler of a request that runs on when its client leaves:
 * whether it has, and if so prepares the request for that.
 */
ngx_uint_t ngx_http_mcp_call_detach(ngx_http_request_t *r);

/* the stream of this call has room again */
void ngx_http_mcp_call_stream_ready(ngx_http_mcp_call_t *call);

/* from the doorbell */
void ngx_http_mcp_call_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);


/* below: between the files of calls */

#define NGX_HTTP_MCP_DOTS                                                     \
    "a method or name must not make a dot segment of the upstream's URI"

/*
 * A number by which the doorbell finds the call (ngx_http_mcp_call_table.c).
 * unregister also frees the running slot in the zone; it may come twice.
 */
ngx_int_t ngx_http_mcp_call_register(ngx_http_mcp_call_t *call);
void ngx_http_mcp_call_unregister(ngx_http_mcp_call_t *call);

/* ends it as if it were cancelled; r may be gone after it */
void ngx_http_mcp_call_abort(ngx_http_mcp_call_t *call);

/*
 * The client of a running call has left (ngx_http_mcp_call_left.c): where too
 * many run so, the oldest that no stream carries again is cancelled; never
 * this one.
 */
void ngx_http_mcp_call_left(ngx_http_mcp_call_t *call);
void ngx_http_mcp_call_left_forget(ngx_http_mcp_call_t *call);

/*
 * What is answered here, wholly or first (ngx_http_mcp_call_here.c): NGX_OK
 * with the result, NGX_ERROR with the code and why (and call->data),
 * NGX_DECLINED: an upstream has to be asked, NGX_AGAIN: call->wait has to be
 * started.
 */
ngx_int_t ngx_http_mcp_call_here(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why);

/*
 * Cached lists (ngx_http_mcp_call_list.c): NGX_OK: there is one, to be sent or
 * put into a batch; NGX_AGAIN: the call has to wait for it; NGX_ERROR with
 * *why: -32602; NGX_DECLINED: an upstream has to be asked.
 */
ngx_int_t ngx_http_mcp_call_list(ngx_http_mcp_call_t *call, const char **why);
ngx_int_t ngx_http_mcp_call_list_send(ngx_http_mcp_call_t *call);
ngx_int_t ngx_http_mcp_call_list_element(ngx_http_mcp_call_t *call,
    ngx_str_t *text);

/* waits, and then answers or begins the talk; forget: waits no more */
void ngx_http_mcp_call_list_wait(ngx_http_mcp_call_t *call);
void ngx_http_mcp_call_list_forget(ngx_http_mcp_call_t *call);
void ngx_http_mcp_call_list_abort(ngx_http_mcp_call_t *call);

/*
 * Likewise the module's own tools, topics and lists
 * (ngx_http_mcp_call_own.c); NGX_DECLINED: none of these.
 */
ngx_int_t ngx_http_mcp_call_own(ngx_http_mcp_call_t *call, ngx_str_t *result,
    ngx_int_t *code, const char **why);

/* NGX_OK with the result; NGX_AGAIN: the answer follows; NGX_ERROR */
ngx_int_t ngx_http_mcp_call_wait(ngx_http_mcp_call_t *call,
    ngx_str_t *result, ngx_int_t *code, const char **why);

/* waits no more, and ends the call: r may be gone after it */
void ngx_http_mcp_call_wait_abort(ngx_http_mcp_call_t *call);

/* the answer of a list that no upstream has; NGX_DECLINED: it is not ours */
ngx_int_t ngx_http_mcp_call_own_list(ngx_http_mcp_call_t *call,
    ngx_str_t *text);

/* resources/subscribe and unsubscribe (ngx_http_mcp_call_subscribe.c) */
ngx_int_t ngx_http_mcp_call_subscribe(ngx_http_mcp_call_t *call,
    ngx_str_t *result, ngx_int_t *code, const char **why);

/* a part of a JSON answer too large to be looked at whole
   (ngx_http_mcp_call_pass.c) */
ngx_int_t ngx_http_mcp_call_piece(ngx_http_mcp_talk_t *t, ngx_chain_t *in,
    ngx_uint_t last);

/* of its JSON answer all was sent, or no more can be (ngx_http_mcp_output.h) */
void ngx_http_mcp_call_sent(ngx_http_request_t *r, ngx_int_t rc);

/* the subscription that it was about to make */
void ngx_http_mcp_call_take_back(ngx_http_mcp_call_t *call);

/* notes what an answer says, leaves out what is denied, gives it */
void ngx_http_mcp_call_note(ngx_http_mcp_call_t *call, ngx_str_t *text);
void ngx_http_mcp_call_filter(ngx_http_mcp_call_t *call, ngx_str_t *text);
void ngx_http_mcp_call_answer(ngx_http_mcp_call_t *call, ngx_str_t *text);

/* puts a message on the call's line; flags are NGX_MCP_EVENT_* */
void ngx_http_mcp_call_deliver(ngx_http_mcp_call_t *call, ngx_str_t *text,
    ngx_uint_t flags);

/* something was put on the call's line that no stream carries yet */
void ngx_http_mcp_call_news(ngx_http_mcp_call_t *call);

/* the supply's done(): the answer, or the talk begins after all */
void ngx_http_mcp_call_supplied(void *data, ngx_int_t rc);

/* the talk's done(): says what is left to say (ngx_http_mcp_call_end.c) */
void ngx_http_mcp_call_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);


#endif /* _NGX_HTTP_MCP_CALL_H_INCLUDED_ */
