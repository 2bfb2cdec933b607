
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Streams: SSE responses that are held open.  A stream carries one channel of
 * a session, which is its line: the channel of a call, or the general one.  It
 * reads messages from the channel's log while fewer than mcp_stream_buffer
 * bytes are unsent.  It has one of two bodies: held (the request is kept) or
 * parked (an HTTP/1.1 GET gave its request back, and only the connection is
 * left).  Both differ only in writing and closing.
 *
 * The memory of a stream is the worker's, not the request's; the files of
 * streams own it from open to close.  zone->ctx has the worker's streams.
 */

#ifndef _NGX_HTTP_MCP_STREAM_H_INCLUDED_
#define _NGX_HTTP_MCP_STREAM_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/* handlers of a call, called by the stream of its POST */

typedef struct {
    /* the stream was closed before its line ended; the call owns r again */
    void                  (*closed)(void *data);

    /*
     * The stream can take messages again, after ngx_http_mcp_stream_behind()
     * returned 1 or ngx_http_mcp_stream_send() returned NGX_AGAIN.
     */
    void                  (*room)(void *data);

    void                   *data;         /* argument of both functions */
} ngx_http_mcp_stream_owner_t;


/*
 * Opens an SSE response on r for a channel of the session in the request's
 * context.  Sends the headers, "retry:" and, if the revision has it, the
 * priming event; messages that the log holds follow in a later event.  from:
 * the decoded Last-Event-ID, or NULL.  gap: the id could not be read; a GET
 * begins with "lagged" and the notifications that make the client ask again.
 * A GET for a channel that the session never had becomes a general stream with
 * a gap.  A GET for a channel that has ended, with no message left, gets
 * NGX_HTTP_NOT_ALLOWED, so that clients do not come back.
 *
 * The stream of a GET, which is ctx->stream, owns the request, and the content
 * handler returns NGX_DONE as well.
 *
 * The stream of a POST (owner != NULL) ends the response and finalizes r
 * itself at the end of its line, once, even if the exchange runs on; it calls
 * no handler of the call, which must not finalize r.  If the response ends for
 * another reason (the client left or reads nothing), it calls owner->closed()
 * once, and r belongs to the call again.  Of the functions below, only
 * ngx_http_mcp_stream_close() calls owner->closed().  The stream is gone then,
 * and ctx->stream is NULL.
 *
 * If the request has no session, or its session has ended, the stream of its
 * POST carries no channel: messages are sent to it one by one, and the answer
 * ends it.
 *
 * Returns NGX_OK (POST) or NGX_DONE (GET); an HTTP status with which the
 * request is to be refused; or NGX_ERROR.  A GET for whose stream the zone has
 * no room is refused here, and the content handler returns the result as well.
 */
ngx_int_t ngx_http_mcp_stream_open(ngx_http_request_t *r, uint32_t channel,
    ngx_mcp_cursor_t *from, ngx_uint_t gap,
    ngx_http_mcp_stream_owner_t *owner);

/*
 * Notifies the stream of a call that a message of len bytes was put on its
 * channel at this place; it is written in a later event.  Returns whether the
 * source of messages has to wait for owner->room(), because mcp_stream_buffer
 * bytes are unsent, or the log would soon overwrite unsent messages.
 */
ngx_uint_t ngx_http_mcp_stream_behind(ngx_http_mcp_stream_t *s,
    ngx_mcp_cursor_t *place, size_t len);

/*
 * Writes a message that is too large for the log, behind the messages that the
 * log has before its place; flags are NGX_MCP_EVENT_*.  If text is in *memory
 * with room around it, the stream may take over the memory in place of a copy:
 * it sets memory->start to NULL.  NGX_OK: it is accepted; NGX_AGAIN: it is
 * not, as mcp_stream_buffer bytes are unsent: call again after
 * owner->room(); NGX_ERROR: the stream is about to close.
 */
ngx_int_t ngx_http_mcp_stream_send(ngx_http_mcp_stream_t *s,
    ngx_mcp_cursor_t *place, ngx_str_t *text, ngx_mcp_memory_t *memory,
    ngx_uint_t flags);

/*
 * Notifies the stream that the answer was put on its line.  If bytes are
 * unsent, a copy of text is kept in r->pool, in case the log loses the answer.
 */
void ngx_http_mcp_stream_answer(ngx_http_mcp_stream_t *s, ngx_str_t *text);

/*
 * Closes the stream and calls owner->closed(); unsent bytes still go out.
 * counter: the cause, which is counted.
 */
void ngx_http_mcp_stream_close(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);

/*
 * Ends the response of a POST and finalizes the request, as at the end of the
 * line; owner->closed() is not called.
 */
void ngx_http_mcp_stream_done(ngx_http_mcp_stream_t *s);

/* handlers of the doorbell: a stream, or streams of a group, have news */
void ngx_http_mcp_stream_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);
void ngx_http_mcp_stream_group(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group);

/* ends idle streams of a worker that quits, spread over mcp_drain_time */
void ngx_http_mcp_stream_drain(ngx_mcp_zone_t *zone);

/*
 * Returns, in a read event handler, whether the client of r has left.  If it
 * has not, the handler has to stop a level-triggered event.
 */
ngx_uint_t ngx_http_mcp_client_left(ngx_http_request_t *r);

/*
 * Makes the tables of a zone's streams in this worker, and the heartbeat's
 * timer.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_stream_init_worker(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_STREAM_H_INCLUDED_ */
