
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Calls of clients without a session (2026-07-28) during which an upstream
 * sends requests to the client.
 *
 * An upstream with sessions sends its requests (sampling, elicitation, roots)
 * on the stream of the call, and waits for the responses in its session.  A
 * client without a session gets these requests as the result of its own
 * request, and gives the responses in another request, to any worker.  So a
 * call of a client that supports such requests runs in an exclusive session
 * (ngx_mcp_parked.h):
 *
 *   - The GET stream of the upstream session is held as for a client, in any
 *     worker (ngx_http_mcp_listener.h).  Its messages are put on the general
 *     line of the exclusive session, and the call reads that line as if they
 *     came on its own stream.
 *   - Requests of the upstream are put on the line of the call, under ids of
 *     the module, as for clients with sessions.  Some ms later the client is
 *     given all of them as one round, and the stream of its request ends.
 *   - From then on the call is parked: it runs on as a call of the exclusive
 *     session whose client has left, with the client manner of clients with
 *     sessions.  The exchange is paused: no timeout counts, and nothing is
 *     read while nobody takes the messages.
 *   - The client's next request has a requestState, by which any worker finds
 *     session, line and position.  The worker posts the client's answers to
 *     the upstream session, as for a client with a session, wakes the call,
 *     and reads its line: it gives messages to the client with the id and
 *     token of the new request; requests make the next round; the response
 *     becomes the answer.
 *   - If the client does not come back in time, the open requests are answered
 *     in its place, and the call is cancelled.  A worker that quits runs its
 *     parked calls to the end, like other calls whose client has left, as long
 *     as there are newer workers, which take the client's next request.
 *
 * ngx_http_mcp_call_park.c implements the call, ngx_http_mcp_call_continue.c
 * the request that goes on with it.
 */

#ifndef _NGX_HTTP_MCP_CALL_PARK_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_PARK_H_INCLUDED_


#include "ngx_http_mcp_call_line.h"
#include "ngx_http_mcp_input.h"
#include "ngx_http_mcp_request_state.h"
#include "ngx_mcp_parked.h"


/* ms for which further requests are added to a round after its first one */
#define NGX_HTTP_MCP_ROUND_TIME  20


/* a round of requests for a client, in the pool of the client's request */

typedef struct {
    ngx_http_mcp_input_t           input;
    ngx_http_mcp_input_request_t   requests[NGX_HTTP_MCP_INPUT_MAX];
                                               /* elements of "input" */
    uint64_t                       position;   /* position in the call's line
                                                  before the first request */
    ngx_event_t                    timer;      /* timer that ends the round */
} ngx_http_mcp_round_t;


/*
 * Adds a request that was read from the line, with an id of the module; json
 * is the scan of text.  NGX_OK; NGX_DECLINED: the client has not declared the
 * capability, or the round is full; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_round_add(ngx_http_mcp_call_t *call,
    ngx_http_mcp_round_t *round, ngx_mcp_json_t *json, ngx_str_t *text,
    ngx_uint_t method);

/*
 * Composes the answer that asks the client, in r->pool; data NULL: no memory.
 * The caller has set *state but for "expires", which is set to
 * NGX_HTTP_MCP_INPUT_TIME from now.
 */
ngx_str_t ngx_http_mcp_round_compose(ngx_http_mcp_call_t *call,
    ngx_http_mcp_round_t *round, ngx_http_mcp_request_state_t *state);

/* whether clients may be asked before a call of this method is answered */
ngx_uint_t ngx_http_mcp_call_park_may(ngx_http_mcp_call_t *call);

/*
 * Prepares an upstream request that is not sent yet: it will use an exclusive
 * session if the client may be asked during the call.  NGX_OK or NGX_ERROR (no
 * memory).
 */
ngx_int_t ngx_http_mcp_call_park_prepare(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq);

/* whether the call has an exclusive session, so that it may be parked */
ngx_uint_t ngx_http_mcp_call_park_ready(ngx_http_mcp_call_t *call);

/*
 * Adds a request of the upstream to the round that the client will get.
 * NGX_OK; NGX_DECLINED: the client will not get the request.
 */
ngx_int_t ngx_http_mcp_call_park_ask(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_uint_t method);

/*
 * Puts a message of the upstream on the line of the call, which may be parked;
 * asks: the message is a request.  A parked call is cancelled if its line has
 * no room for a request.
 */
void ngx_http_mcp_call_park_deliver(ngx_http_mcp_call_t *call,
    ngx_str_t *text, ngx_uint_t asks, ngx_uint_t level);

/*
 * The client's stream has sent everything.  Returns whether the call was parked
 * by this; r may be freed then.
 */
ngx_uint_t ngx_http_mcp_call_park_sent(ngx_http_mcp_call_t *call);

/*
 * The doorbell rang for the call; why: bits of NGX_MCP_WAKE_NEWS (all messages
 * on its line have been read) and NGX_MCP_WAKE_INPUT (the client has come back)
 */
void ngx_http_mcp_call_park_wake(ngx_http_mcp_call_t *call, ngx_uint_t why);

/*
 * The worker is to quit: its parked calls end once there is no other worker to
 * which the client's next request could come.
 */
void ngx_http_mcp_call_park_quit(ngx_mcp_zone_t *zone);

/*
 * Delivers a notification of an upstream, of which json is the scan, if the
 * stream of the client's request may carry it.  A notification of progress must
 * have the raw token "theirs" (NULL: any); its token is replaced by "own";
 * "own" empty: the notification is dropped.
 */
void ngx_http_mcp_call_notified(ngx_http_mcp_call_t *call,
    ngx_mcp_json_t *json, ngx_str_t *text, ngx_str_t *theirs, ngx_str_t *own);

/*
 * The call is about to end, but still has its exclusive session for itself:
 * closes the general line, and answers the upstream's open requests.
 */
void ngx_http_mcp_call_park_end(ngx_http_mcp_call_t *call);


#endif /* _NGX_HTTP_MCP_CALL_PARK_H_INCLUDED_ */
