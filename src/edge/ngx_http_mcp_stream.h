
/*
 * Streams: SSE responses held open to clients.  A stream carries one channel,
 * of a call or the general one, which is also called its line.  It takes from
 * the channel's log while fewer than mcp_stream_buffer bytes are unsent.  It
 * has one of two bodies: held (the request is kept) or parked (an HTTP/1.1
 * GET gave its request back and only the connection is left); everything but
 * writing and closing is the same for both.
 *
 * A stream is process-local memory of its own (not of the request), owned by
 * this file from open to close; zone->ctx finds a worker's streams.
 */

#ifndef _NGX_HTTP_MCP_STREAM_H_INCLUDED_
#define _NGX_HTTP_MCP_STREAM_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/* of the stream of a POST: its call */

typedef struct {
    /* the stream is gone for a reason of its own; r is the call's now */
    void                  (*closed)(void *data);

    /* there is room again, after stream_behind() or stream_send() said no */
    void                  (*room)(void *data);

    void                   *data;
} ngx_http_mcp_stream_owner_t;


/*
 * Opens an SSE response on r for a line of the session in the request's
 * context: sends the headers, "retry:" and, where the revision has it, the
 * priming event; what the line holds follows in a later event.  from: decoded
 * Last-Event-ID or NULL.  gap: the id could not be read; "lagged" and the
 * resync are said first (on a GET).  A GET for a line that the session never
 * had becomes a general one with a gap; one for a line that has ended, with
 * nothing left to say, gets NGX_HTTP_NOT_ALLOWED: clients come back no more.
 *
 * For a GET the stream owns the request afterwards and NGX_DONE is returned,
 * which the content handler returns in turn.
 *
 * For a POST (owner != NULL): at the end of its line the stream ends the
 * response and finalizes r itself, once, whether the exchange is over or not;
 * the call is not told and must not finalize r.  When the response ends for
 * another reason (the client left, takes nothing, the session ended) the call
 * is told, once, by owner->closed(); r is the call's then.  That never happens
 * within a function below other than close.  The stream is gone from then on,
 * and ctx->stream is NULL.
 *
 * Where the request has no session, the stream of its POST carries no line:
 * messages are sent to it one by one, and the answer ends it.
 *
 * NGX_OK (POST), NGX_DONE (GET); an HTTP status to refuse with; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_stream_open(ngx_http_request_t *r, uint32_t channel,
    ngx_mcp_cursor_t *from, ngx_uint_t gap,
    ngx_http_mcp_stream_owner_t *owner);

/*
 * For the stream of a call, on whose channel len bytes were put at place: they
 * are written in a later event.  Whether the source has to wait, because
 * mcp_stream_buffer is not sent or the log would soon be overwritten:
 * owner->room() follows then.
 */
ngx_uint_t ngx_http_mcp_stream_behind(ngx_http_mcp_stream_t *s,
    ngx_mcp_cursor_t *place, size_t len);

/*
 * Writes a message that is not in the log (too large to be kept) after all
 * that is before its place; flags are NGX_MCP_EVENT_*.  NGX_OK: taken;
 * NGX_AGAIN: mcp_stream_buffer is unsent, nothing was taken, come again after
 * owner->room(); NGX_ERROR: the stream is about to close.
 */
ngx_int_t ngx_http_mcp_stream_send(ngx_http_mcp_stream_t *s,
    ngx_mcp_cursor_t *place, ngx_str_t *text, ngx_uint_t flags);

/*
 * The answer was put on the line: it is kept in r->pool while the client has
 * not taken all, whatever becomes of the log.
 */
void ngx_http_mcp_stream_answer(ngx_http_mcp_stream_t *s, ngx_str_t *text);

/* ends it, and tells the call; what is unsent still goes out */
void ngx_http_mcp_stream_close(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);

/*
 * Nothing more is to come, as at the end of its line: it ends the response of
 * a POST and finalizes the request, and the call is not told.
 */
void ngx_http_mcp_stream_done(ngx_http_mcp_stream_t *s);

/* from the doorbell */
void ngx_http_mcp_stream_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);
void ngx_http_mcp_stream_group(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group);

/* a graceful quit: end idle streams spread over mcp_drain_time */
void ngx_http_mcp_stream_drain(ngx_mcp_zone_t *zone);

/*
 * Whether the client of r has left; asked in a read event handler, which has
 * to stop a level-triggered event when it has not.
 */
ngx_uint_t ngx_http_mcp_client_left(ngx_http_request_t *r);

/* per worker and zone: tables, the heartbeat's timer */
ngx_int_t ngx_http_mcp_stream_init_worker(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_STREAM_H_INCLUDED_ */
