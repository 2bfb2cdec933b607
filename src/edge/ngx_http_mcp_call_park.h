
/*
 * Calls of clients without sessions that upstreams ask for something.
 *
 * An upstream with sessions asks on the stream of the call (sampling,
 * elicitation, roots) and waits for the answer in its session.  Such a client
 * is asked by the answer of its request, and comes back with another request,
 * to any worker.  So a call of a client that may be asked runs in an exclusive
 * session (ngx_mcp_parked.h), and once it is asked:
 *
 *   - The GET stream of that session is held as for a client, in any worker
 *     (ngx_http_mcp_listener.h).  What comes by it is put on the general line
 *     of the session, and the call reads that as if it were its own stream.
 *   - What the upstream asks is put on the line of the call, under ids of the
 *     module, as for clients with sessions; some ms later the client is given
 *     that round, and the stream of its request ends.
 *   - The call runs on as one of that session whose client has left: its
 *     client manner is that of clients with sessions from then on.  The
 *     exchange is paused, so that its silence does not count, and nothing is
 *     read that nobody takes.
 *   - The client's next request has a requestState, by which any worker finds
 *     session, line and position.  It posts the answers to the upstream
 *     session by itself, as it would those of a client with a session, wakes
 *     the call, and reads the line: messages are given to its client with its
 *     own id and token, requests make the next round, and the response is the
 *     answer.
 *   - If the client does not come back in time, what is open is answered for
 *     it, and the call is cancelled.  A worker that quits runs its parked
 *     calls to the end, as others whose client has left, while there are newer
 *     workers, which take the client's next request.
 *
 * ngx_http_mcp_call_park.c has the call, ngx_http_mcp_call_continue.c the
 * request that goes on with it.
 */

#ifndef _NGX_HTTP_MCP_CALL_PARK_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_PARK_H_INCLUDED_


#include "ngx_http_mcp_call_line.h"
#include "ngx_http_mcp_input.h"
#include "ngx_http_mcp_request_state.h"
#include "ngx_mcp_parked.h"


/* ms; requests that come together make one round */
#define NGX_HTTP_MCP_ROUND_TIME  20


/* requests for a client, and those still open, in the pool of its request */

typedef struct {
    ngx_http_mcp_input_t           input;
    ngx_http_mcp_input_request_t   requests[NGX_HTTP_MCP_INPUT_MAX];
    uint64_t                       position;   /* in the line, before them */
    ngx_event_t                    timer;
} ngx_http_mcp_round_t;


/*
 * Adds a request of the line, which has an id of the module and is scanned.
 * NGX_OK; NGX_DECLINED: the client cannot be asked for it, or for so much;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_round_add(ngx_http_mcp_call_t *call,
    ngx_http_mcp_round_t *round, ngx_mcp_json_t *json, ngx_str_t *text,
    ngx_uint_t method);

/*
 * Composes the answer that asks the client and gives it
 * NGX_HTTP_MCP_INPUT_TIME.  The caller has set all of *state but its time.
 * data NULL: no memory.
 */
ngx_str_t ngx_http_mcp_round_compose(ngx_http_mcp_call_t *call,
    ngx_http_mcp_round_t *round, ngx_http_mcp_request_state_t *state);

/* whether a request with this ngx_mcp_method_e asks the client for input */
#define ngx_http_mcp_is_input(method)                                         \
    ((method) == NGX_MCP_METHOD_ELICITATION                                   \
     || (method) == NGX_MCP_METHOD_SAMPLING                                   \
     || (method) == NGX_MCP_METHOD_ROOTS_LIST)


/* whether clients may be asked for something before such a call is answered */
ngx_uint_t ngx_http_mcp_call_park_may(ngx_http_mcp_call_t *call);

/*
 * Before a request to an upstream starts: its upstream may ask, so it gets a
 * session of its own.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_call_park_prepare(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq);

/* whether it has that session, so that it may be parked */
ngx_uint_t ngx_http_mcp_call_park_ready(ngx_http_mcp_call_t *call);

/*
 * A request of the upstream at hand, with which the client is asked.  NGX_OK;
 * NGX_DECLINED: it is not.
 */
ngx_int_t ngx_http_mcp_call_park_ask(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_uint_t method);

/* while it is parked: a text was put on the line; asks: it is a request */
void ngx_http_mcp_call_park_said(ngx_http_mcp_call_t *call, ngx_uint_t asks);

/* likewise, but there is no room for a request: the call ends */
void ngx_http_mcp_call_park_lost(ngx_http_mcp_call_t *call);

/* the doorbell: what was on the line was read */
void ngx_http_mcp_call_park_drained(ngx_http_mcp_call_t *call);

/* the stream took all; whether the call is parked now, and r may be gone */
ngx_uint_t ngx_http_mcp_call_park_sent(ngx_http_mcp_call_t *call);

/* the doorbell: the client is back */
void ngx_http_mcp_call_park_wake(ngx_http_mcp_call_t *call);

/* the worker is to quit: calls whose clients have no worker left are ended */
void ngx_http_mcp_call_park_quit(ngx_mcp_zone_t *zone);

/* the call runs no more */
void ngx_http_mcp_call_park_end(ngx_http_mcp_call_t *call);


#endif /* _NGX_HTTP_MCP_CALL_PARK_H_INCLUDED_ */
