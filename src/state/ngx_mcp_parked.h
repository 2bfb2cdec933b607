
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Parked calls.  An upstream of a legacy revision may send requests to a caller
 * that has no session.  The call therefore runs in a session that the module
 * makes, an exclusive session: it has one call at a time, of one principal,
 * with the capabilities that this caller declares.  Like a client's session it
 * has upstream sessions, server requests and the channel of its call.  But no
 * client may use its id, no events are sent to it, and no count of sessions
 * includes it.  An exclusive session serves one call after the other.  It ends
 * when a call ends without an answer of the upstream.
 *
 * When the client gets such a request (input_required), its call is parked: it
 * runs on without the client.  The client answers with another request, to any
 * worker.  This request names the round that it answers, and reads the channel
 * of the call.  A round can be named once.  The record of the call has the
 * number of the round and the time when it ends, but not whether the call is
 * parked now: this is known to the worker that runs it.
 */

#ifndef _NGX_MCP_PARKED_H_INCLUDED_
#define _NGX_MCP_PARKED_H_INCLUDED_


#include "ngx_mcp_log.h"
#include "ngx_mcp_session.h"


/* ms; an exclusive session ends if it has no call for so long */
#define NGX_MCP_EXCLUSIVE_TIMEOUT  120000


/*
 * Moves the running call of a caller without a session to the exclusive
 * session with the id in->id, which is made if there is none; at most in->limit
 * are kept, of which one that is not in use ends for it.  NGX_OK: *session and
 * call->channel are set; NGX_BUSY: another call runs there, the session is
 * about to end, or the limit is reached and none of the sessions examined is
 * free (the next call examines others); NGX_DECLINED: there is no room.
 */
ngx_int_t ngx_mcp_exclusive_join(ngx_mcp_zone_t *zone,
    ngx_mcp_session_new_t *in, ngx_mcp_call_t *call, ngx_mcp_ref_t *session);

/*
 * Ends the exclusive session of a call that has failed, once no stream reads
 * its channels.
 */
void ngx_mcp_exclusive_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);


/*
 * Parks the call; its client has "time" ms to answer.  Returns the number of
 * the round; 0: the call has ended.
 */
uint32_t ngx_mcp_call_park(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_msec_t time);

/* the exclusive session of a parked call, and the call's channel in it */

typedef struct {
    ngx_mcp_ref_t           session;
    u_char                  id[NGX_MCP_UUID_LEN];
    uint32_t                channel;
} ngx_mcp_parked_t;

/*
 * Resumes a parked call, as the client has answered this round.  The next
 * round begins, of "time" ms.  The call is woken with NGX_MCP_WAKE_INPUT if it
 * still runs.  NGX_OK: *parked is set; NGX_BUSY: another request has answered
 * this round; NGX_DECLINED: the call or its session has ended.
 */
ngx_int_t ngx_mcp_call_unpark(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    uint32_t round, ngx_msec_t time, ngx_mcp_parked_t *parked);

/*
 * Wakes a call that still runs.  why: NGX_MCP_WAKE_CANCEL: the client has left
 * again; NGX_MCP_WAKE_INPUT: the client has answered a server request.
 */
void ngx_mcp_call_wake(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_uint_t why);

/*
 * Returns whether the channel of the call has NGX_MCP_CHANNEL_WAITING unread
 * messages, so that further ones have to wait.  If so, the call is woken with
 * NGX_MCP_WAKE_NEWS once the messages are read.
 */
ngx_uint_t ngx_mcp_call_full(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/* returns whether messages of the call's channel were lost, and why */
ngx_uint_t ngx_mcp_call_lost(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/*
 * Returns the time, in ms, that the client of a parked call still has to come
 * back.  It is "time" as long as a request reads the channel of the call, and 0
 * when the time is over or the call has ended.
 */
ngx_msec_t ngx_mcp_call_park_time_left(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t call, ngx_msec_t time);


#endif /* _NGX_MCP_PARKED_H_INCLUDED_ */
