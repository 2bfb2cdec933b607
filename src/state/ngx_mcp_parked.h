
/*
 * Parked calls.  A caller without a session may be asked for something while
 * an upstream with sessions works for it.  Its call then runs in a session of
 * the module's own, an exclusive one: one call at a time, of one principal,
 * with the capabilities that this caller declares.  Such a session has upstream
 * sessions, server requests, and the line of its call as that of a client has,
 * but no client may use its id, nothing is sent to it, and it is in no count of
 * sessions.  It serves one call after the other, as long as each ends with an
 * answer of the upstream; else it ends.
 *
 * A call whose client was asked is parked: it runs on without the client.  The
 * client comes back with another request, to any worker, that goes on with the
 * call: it names the round of input that it was asked in, which can be used
 * once, and reads the line.
 */

#ifndef _NGX_MCP_PARKED_H_INCLUDED_
#define _NGX_MCP_PARKED_H_INCLUDED_


#include "ngx_mcp_log.h"
#include "ngx_mcp_session.h"


/* an exclusive session that serves nobody ends after so long, ms */
#define NGX_MCP_EXCLUSIVE_TIMEOUT  120000


/*
 * The running call of a caller without a session runs in the exclusive session
 * with this id from now on, which is made when there is none.  NGX_OK, *session
 * and call->channel; NGX_BUSY: another call does; NGX_DECLINED: there is no
 * room.
 */
ngx_int_t ngx_mcp_exclusive_join(ngx_mcp_zone_t *zone,
    ngx_mcp_session_new_t *in, ngx_mcp_call_t *call, ngx_mcp_ref_t *session);

/* the call has failed: its session ends, once nobody reads its lines */
void ngx_mcp_exclusive_spend(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);


/*
 * Parks the call; its client has "time" ms to answer.  Returns the number of
 * the round; 0: the call has ended.
 */
uint32_t ngx_mcp_call_park(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_msec_t time);

/* an exclusive session, and the channel in it */

typedef struct {
    ngx_mcp_ref_t           session;
    u_char                  id[NGX_MCP_UUID_LEN];
    uint32_t                channel;
} ngx_mcp_parked_t;

/*
 * The client has answered this round.  The next round begins, of "time" ms,
 * and the call is woken with NGX_MCP_WAKE_INPUT, unless it was answered
 * meanwhile.  NGX_OK; NGX_BUSY: another request has answered this round;
 * NGX_DECLINED: the call has ended.
 */
ngx_int_t ngx_mcp_call_unpark(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    uint32_t round, ngx_msec_t time, ngx_mcp_parked_t *parked);

/*
 * The call, while it runs, is woken: its client has left again
 * (NGX_MCP_WAKE_CANCEL), or something was answered for it (NGX_MCP_WAKE_INPUT).
 */
void ngx_mcp_call_wake(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_uint_t why);

/*
 * Whether more messages have to wait, because many on the line of the call are
 * unread.  If so, the call is woken with NGX_MCP_WAKE_NEWS once they are read.
 */
ngx_uint_t ngx_mcp_call_full(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/* whether messages of its line were lost: ngx_mcp_call_lost_e */
ngx_uint_t ngx_mcp_call_lost(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/*
 * The time, in ms, that the client of a parked call still has to come back.
 * It is all of "time" while a request reads the call's line, and 0 when it is
 * over or the call has gone.
 */
ngx_msec_t ngx_mcp_call_park_time_left(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t call, ngx_msec_t time);


#endif /* _NGX_MCP_PARKED_H_INCLUDED_ */
