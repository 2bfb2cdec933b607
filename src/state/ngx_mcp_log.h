
/*
 * The event log.  A line is the order in which messages reach one reader: a
 * session has a general line (number 0), made of its own log and of the logs
 * that it shares with its group and with all groups of its endpoint, merged by
 * the zone-wide stamp of each event, and one line per call.  A message is put
 * on one line when it is logged and stays there.
 *
 * Calls are records in the zone from the start of a request to the end of its
 * exchange ("running"), and after that for as long as their line is kept.
 * Streams are records of open SSE responses; a line is carried by at most one
 * of them: the general line by the newest GET, a call's line by the newest
 * stream that opened on it.
 */

#ifndef _NGX_MCP_LOG_H_INCLUDED_
#define _NGX_MCP_LOG_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_consume.h"


#define NGX_MCP_GENERAL_CHANNEL  0


/* a place on a line: how many events of each log have been taken */

typedef struct {
    uint64_t                own;
    uint64_t                shared;       /* its group's; general line only */
    uint64_t                wide;         /* its endpoint's; likewise */
} ngx_mcp_cursor_t;


/*
 * So many events that the reader of a call's line has yet to take are kept even
 * if the session has more than its number: who appends waits before that.
 */
#define NGX_MCP_CHANNEL_WAITING  64

#define NGX_MCP_EVENT_URIS  3


/* flags of an event */

#define NGX_MCP_EVENT_RESPONSE  0x01      /* ends its call's line */

/* for sessions that share their lists; for those of which no list is kept */
#define NGX_MCP_EVENT_LISTED    0x10
#define NGX_MCP_EVENT_UNLISTED  0x20

/* for sessions that had no stream of their own at the upstream by then */
#define NGX_MCP_EVENT_SHARED    0x40

/* for sessions that were offered one of these (NGX_MCP_OFFERED_*) */
#define NGX_MCP_EVENT_OFFERED(kinds)  ((kinds) << 8)
#define NGX_MCP_EVENT_KINDS(flags)    (((flags) >> 8) & 0x07)


/* an event to append; what is written is the parts one after the other */

typedef struct {
    ngx_str_t              *parts;
    ngx_uint_t              nparts;
    ngx_uint_t              flags;
    ngx_uint_t              level;        /* of notifications/message, or 0 */
    /* for sessions that subscribed to all of these only; empty: no matter */
    ngx_str_t               uri[NGX_MCP_EVENT_URIS];

    ngx_str_t               identity;     /* for this one; data NULL: all */
    ngx_str_t               list_key;     /* for its audience, likewise */
} ngx_mcp_event_t;


/* calls */

typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                channel;      /* never 0 */
    uint32_t                upstream;     /* that is asked, or 0 */
} ngx_mcp_call_t;

/*
 * Registers a running request.  id: raw token; token: raw progress token or
 * empty; call->upstream is set.  NGX_OK, NGX_BUSY when limit calls run in this
 * session, NGX_EXISTS when a running call has this id, NGX_DECLINED when the
 * session ended or the zone is full.
 */
#define NGX_EXISTS  -20

ngx_int_t ngx_mcp_call_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_str_t *token, ngx_uint_t limit, uint32_t local,
    ngx_mcp_call_t *call);

/* of its name, for call->upstream, and to tell of another one later */
uint32_t ngx_mcp_call_upstream(ngx_mcp_zone_t *zone, ngx_str_t *upstream);
void ngx_mcp_call_moved(ngx_mcp_zone_t *zone, ngx_mcp_call_t *call);

/* makes the call's line resumable: from now on its end keeps the log */
void ngx_mcp_call_stream(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/* whether a stream carries its line */
ngx_uint_t ngx_mcp_call_has_stream(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/* messages for it from elsewhere go to the session's general line */
void ngx_mcp_call_plain(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/*
 * The exchange ended; the running slot is free.  If the line was opened as a
 * stream it stays for resuming within mcp_event_buffer, else all is freed.
 */
void ngx_mcp_call_close(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/*
 * notifications/cancelled: marks the running call of this session with this
 * raw id and wakes its worker; *upstream is that of the call.  NGX_OK or
 * NGX_DECLINED (unknown or done).
 */
ngx_int_t ngx_mcp_call_cancel(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, uint32_t *upstream);

/*
 * The raw id of the call of a line, copied to pool.  NGX_OK; NGX_DECLINED: the
 * session or line is gone; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_call_id(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    uint32_t channel, ngx_pool_t *pool, ngx_str_t *id);


/*
 * Appending.  All wake the worker of the stream that carries the line.
 * NGX_OK; NGX_DECLINED: the session or call has ended; NGX_ERROR: the event is
 * larger than the session keeps or the zone is full (then a place on the line
 * is consumed without a body, so that the reader learns of a gap).
 *
 * log_call also returns the cursor after the event.
 */
ngx_int_t ngx_mcp_log_session(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_event_t *event);
ngx_int_t ngx_mcp_log_call(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_mcp_event_t *event, ngx_mcp_cursor_t *cursor);

/*
 * Unknown events were lost: each session of the groups that match learns that
 * it missed something.  NULL matches all.  The number of sessions.
 */
ngx_uint_t ngx_mcp_log_gap(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant);

/*
 * The running call with this raw progress token, in the session (UUID text)
 * or, if that is NULL, in any that matches; or its session, if the call's line
 * can not be a stream.  identity: of the session; data NULL: any.  NGX_OK;
 * NGX_DECLINED: there is none; NGX_BUSY: several calls have it.
 */
ngx_int_t ngx_mcp_token_find(ngx_mcp_zone_t *zone, ngx_str_t *token,
    ngx_str_t *id, ngx_str_t *endpoint, ngx_str_t *tenant,
    ngx_str_t *identity, ngx_mcp_ref_t *ref);


/*
 * streams
 *
 * If events are refused one after the other, the stream is told of the first
 * gap.  Others wait for the next event that is taken, or until the caller sets
 * "told" to NGX_MCP_GAP_NONE.
 */

typedef enum {
    NGX_MCP_GAP_NONE = 0,
    NGX_MCP_GAP_REPORTED,                 /* and nothing was taken since */
    NGX_MCP_GAP_MORE                      /* and there was another one */
} ngx_mcp_gap_e;

typedef struct {
    ngx_mcp_ref_t           ref;          /* of the stream's record */
    ngx_mcp_ref_t           session;
    ngx_mcp_ref_t           group;
    ngx_mcp_ref_t           endpoint;
    uint32_t                channel;
    uint32_t                more;         /* there may be, after a take */
    uint32_t                gap;          /* of a gap, ngx_mcp_gap_e */
    ngx_mcp_cursor_t        cursor;       /* what it has taken */
    ngx_mcp_cursor_t        seen;         /* in the shared logs when it was
                                             opened; of what follows its worker
                                             is told */

    unsigned                unknown:1;    /* it was to go on from where its
                                             line has not been yet */
} ngx_mcp_stream_t;

/*
 * Opens a stream on a line of a session.  from: decoded Last-Event-ID, or
 * NULL to go on where the last stream of the line stopped; so it does, and
 * says "unknown", if the general line has not been at "from" yet.  One with
 * "from", or on the general line, is a GET: at most "limit" of these stay (0:
 * any number) and one on the line of a call, others are told to close, the
 * oldest first.  NGX_OK; NGX_DONE: the line of a call has ended, and nothing
 * is kept behind "from"; NGX_DECLINED: session ended, or there never was such
 * a line (which is a gap: the caller says so); NGX_ERROR: zone full.
 */
ngx_int_t ngx_mcp_stream_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    uint32_t channel, ngx_mcp_cursor_t *from, ngx_uint_t limit, uint32_t local,
    ngx_mcp_stream_t *stream);

/* closes it; the next newest of the line is woken with NGX_MCP_WAKE_NEWS */
void ngx_mcp_stream_close(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_counter_e counter);

/*
 * Takes the next event of the stream's line into buf and moves the cursor.
 * Events that the session must not see (level, subscription) are skipped.
 *
 *   NGX_OK        taken: *len bytes, *flags, cursor is its event id; if
 *                 stream->more is 0, the next answer would be NGX_AGAIN
 *   NGX_AGAIN     nothing now; it will be woken, or its worker is told of
 *                 news of its group (ngx_mcp_subscriber.h)
 *   NGX_DECLINED  another stream carries the line; heartbeats only
 *   NGX_BUSY      the event does not fit into size; *len says what it needs
 *   NGX_ABORT     a gap: *len events were lost (NGX_MCP_LOST_UNKNOWN: nobody
 *                 knows how many), the cursor is behind them
 *   NGX_DONE      the call's line has ended and all of it was taken
 *   NGX_ERROR     the session ended or the stream has to close
 */
#define NGX_MCP_LOST_UNKNOWN  ((size_t) -1)

ngx_int_t ngx_mcp_stream_read(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    u_char *buf, size_t size, size_t *len, ngx_uint_t *flags);


#endif /* _NGX_MCP_LOG_H_INCLUDED_ */
