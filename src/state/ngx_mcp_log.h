
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The event log.  A channel is the order in which messages reach one reader.  A
 * session has a general channel (number 0) and one channel for each call.  The
 * general channel consists of the session's own log and of the logs that it
 * shares with its group and with all groups of its endpoint, merged by the
 * zone-wide stamp of each event.  A message is added to one channel when it is
 * logged and stays there.
 *
 * Calls are records in the zone from the start of a request to the end of its
 * exchange ("running"), and after that for as long as their channel is stored.
 * Streams are records of open SSE responses.  At most one stream carries a
 * channel: the newest GET carries the general channel, and the newest stream
 * that was opened on the channel of a call carries this channel.  "To carry"
 * means to send the channel's events to the client.
 */

#ifndef _NGX_MCP_LOG_H_INCLUDED_
#define _NGX_MCP_LOG_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_consume.h"


#define NGX_MCP_GENERAL_CHANNEL  0


/*
 * A position in a channel: the position of the last event that was read, in
 * each of its logs.  "group" and "endpoint" are 0 in the channel of a call.
 */

typedef struct {
    uint64_t                own;          /* log of the session or call */
    uint64_t                group;        /* log of the session's group */
    uint64_t                endpoint;     /* log of the session's endpoint */
} ngx_mcp_cursor_t;


/*
 * The channel of a call keeps this many unread events even if the session has
 * more events than its limit.  With more unread events, the call has to wait
 * (ngx_mcp_call_full()).
 */
#define NGX_MCP_CHANNEL_WAITING  64

/* URIs of an event, at most */
#define NGX_MCP_EVENT_URIS  3


/* flags of an event */

#define NGX_MCP_EVENT_RESPONSE  0x01      /* the response of a call, which ends
                                             the call's channel */
#define NGX_MCP_EVENT_REQUEST   0x02      /* a server request: the channel of a
                                             parked call ends if it is lost */

/* the event is only for sessions that get their lists from an audience */
#define NGX_MCP_EVENT_LISTED    0x10

/* the event is only for sessions that get their lists from upstreams */
#define NGX_MCP_EVENT_UNLISTED  0x20

/* the event is for sessions that were offered one kind (NGX_MCP_OFFERED_*) */
#define NGX_MCP_EVENT_OFFERED(kinds)  ((kinds) << 8)
#define NGX_MCP_EVENT_KINDS(flags)    (((flags) >> 8) & 0x07)

/*
 * Lists of these kinds changed: of the sessions of subscriptions/listen, the
 * event is only for those that asked for one of the kinds.
 */
#define NGX_MCP_EVENT_CHANGED(kinds)  ((kinds) << 12)
#define NGX_MCP_EVENT_CHANGES(flags)  (((flags) >> 12) & 0x07)


/* an event to append; its text is the parts one after the other */

typedef struct {
    ngx_str_t              *parts;
    ngx_uint_t              nparts;
    ngx_uint_t              flags;
    ngx_uint_t              level;        /* of notifications/message, or 0 */

    /* the sessions that the event is for have to match all of these */

    ngx_str_t               uri[NGX_MCP_EVENT_URIS];  /* they have subscribed
                                                         to each; empty: no
                                                         condition */
    ngx_str_t               identity;     /* data NULL: any */
    ngx_str_t               list_key;     /* data NULL: any */
    ngx_str_t               upstream;     /* the event came from the shared
                                             upstream session at this upstream:
                                             they had no open GET stream of
                                             their own there; data NULL: no
                                             condition */
} ngx_mcp_event_t;


/* calls */

typedef struct {
    ngx_mcp_ref_t           ref;
    uint32_t                channel;      /* never 0 */
    uint32_t                local;        /* number that the worker gave it */
    uint32_t                upstream;     /* hash of the name of the upstream
                                             that is asked, or 0 */
    uint32_t                nrunning;     /* out, of a call without a session:
                                             number of running calls with the
                                             same key, this one included */
} ngx_mcp_call_t;

/*
 * Makes a call of a session.  id: raw JSON id of the request; token: raw
 * progress token, or empty; the caller has set call->local and call->upstream.
 * NGX_OK; NGX_BUSY: "limit" calls run in this session; NGX_MCP_EXISTS: a
 * running call has this id; NGX_DECLINED: the session has ended, or the zone is
 * full.
 */
#define NGX_MCP_EXISTS  -20

ngx_int_t ngx_mcp_call_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_str_t *token, ngx_uint_t limit, ngx_mcp_call_t *call);

/*
 * Makes a call of a client without a session; the caller has set call->local.
 * The call has no channel, and ids need not be unique.  NGX_OK; NGX_BUSY:
 * "limit" calls with this endpoint and key run; NGX_DECLINED: the zone is full.
 */
ngx_int_t ngx_mcp_call_open_sessionless(ngx_mcp_zone_t *zone,
    ngx_str_t *endpoint, ngx_str_t *key, ngx_uint_t limit,
    ngx_mcp_call_t *call);

/* stores call->upstream after it has changed */
void ngx_mcp_call_moved(ngx_mcp_zone_t *zone, ngx_mcp_call_t *call);

/* the channel becomes resumable: its log outlives the call */
#define NGX_MCP_CALL_STREAMED  0x02

/* the response is no stream: other messages go to the general channel */
#define NGX_MCP_CALL_PLAIN     0x08

void ngx_mcp_call_mark(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_uint_t flag);

/* the reason for which a message in the channel of a parked call was lost */

typedef enum {
    NGX_MCP_CALL_WHOLE = 0,               /* none was lost */
    NGX_MCP_CALL_NO_ROOM,
    NGX_MCP_CALL_TOO_LARGE                /* larger than mcp_message_limit */
} ngx_mcp_call_lost_e;

/* returns whether a stream carries the call's channel */
ngx_uint_t ngx_mcp_call_has_stream(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/*
 * Ends a running call, as its exchange has ended.  A channel that was marked
 * as NGX_MCP_CALL_STREAMED stays within mcp_event_buffer, so that the client
 * can resume it; else the call is freed.
 */
void ngx_mcp_call_close(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call);

/*
 * Cancels the running call of a session that has this raw id: wakes it with
 * NGX_MCP_WAKE_CANCEL.  NGX_OK, and *upstream is the call's; NGX_DECLINED: no
 * such call runs.
 */
ngx_int_t ngx_mcp_call_cancel(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, uint32_t *upstream);

/*
 * Copies the raw id of the call of a channel to pool.  NGX_OK; NGX_DECLINED:
 * the session or channel has ended; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_call_id(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    uint32_t channel, ngx_pool_t *pool, ngx_str_t *id);


/*
 * Append an event to the general channel of a session, or to the channel of a
 * call, and wake the stream that carries the channel.  NGX_OK; NGX_DECLINED:
 * the session or call has ended; NGX_ERROR: the event is larger than the
 * session's limit, or the zone is full.  Then the event takes a position of
 * the channel without a body, and the reader gets a gap.  *cursor becomes the
 * position behind the event.  NGX_MCP_EVENT_RESPONSE ends the call as
 * ngx_mcp_call_close() does, unless NGX_DECLINED is returned.
 */
ngx_int_t ngx_mcp_log_session(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_event_t *event);
ngx_int_t ngx_mcp_log_call(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_mcp_event_t *event, ngx_mcp_cursor_t *cursor);

/*
 * Gives a gap to each session of the groups that match (NULL: all), as unknown
 * events were lost.  Returns the number of sessions.
 */
ngx_uint_t ngx_mcp_log_gap(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant);

/* the sessions in which a progress token is searched */

typedef struct {
    ngx_str_t              *session;      /* UUID text; NULL: all that match */
    ngx_str_t              *endpoint;
    ngx_str_t              *tenant;
    ngx_str_t              *identity;     /* data NULL: any */
} ngx_mcp_token_scope_t;

/*
 * Finds the running call with this raw progress token.  *ref becomes the call,
 * or its session if the response of the call can not be a stream.  NGX_OK;
 * NGX_DECLINED: no call has the token; NGX_BUSY: several calls have it.
 */
ngx_int_t ngx_mcp_token_find(ngx_mcp_zone_t *zone, ngx_str_t *token,
    ngx_mcp_token_scope_t *scope, ngx_mcp_ref_t *ref);


/*
 * streams
 *
 * If several events in a row are lost, the stream reports the first gap.  It
 * reports another one after the next event that is read, or when the caller has
 * set "gap" to NGX_MCP_GAP_NONE.
 */

typedef enum {
    NGX_MCP_GAP_NONE = 0,
    NGX_MCP_GAP_REPORTED,                 /* a gap was reported, and no event
                                             was read since */
    NGX_MCP_GAP_MORE                      /* and another gap followed */
} ngx_mcp_gap_e;

typedef struct {
    ngx_mcp_ref_t           ref;          /* the stream's record */
    ngx_mcp_ref_t           session;
    ngx_mcp_ref_t           group;
    ngx_mcp_ref_t           endpoint;
    uint32_t                channel;      /* number of the channel */
    uint32_t                local;        /* number that the worker gave it */
    uint32_t                more;         /* after a read: there may be more
                                             events to read */
    uint32_t                gap;          /* ngx_mcp_gap_e */

    /* blocks of the events that were read last in the three logs, or 0 */
    uint32_t                own;
    uint32_t                of_group;
    uint32_t                of_endpoint;
    uint32_t                nwants;       /* wants that the session had when
                                             they were listed last, at most */
    uint64_t                wanted;       /* stamp up to which the session's
                                             subscriptions were listed; 0: list
                                             all wants */

    ngx_mcp_cursor_t        cursor;       /* position of the event read last */
    ngx_mcp_cursor_t        seen;         /* end of the shared logs when the
                                             stream was opened; its worker is
                                             notified of later events */

    unsigned                unknown:1;    /* the client's Last-Event-ID is
                                             behind the end of the channel */
    unsigned                inner:1;      /* 1: the module reads the stream for
                                             a call, and no client does */
} ngx_mcp_stream_t;

/*
 * Opens a stream, in which session, channel and local are set.  from: decoded
 * Last-Event-ID; NULL: the stream goes on where the last stream of the channel
 * stopped.  So does a stream with a "from" behind the end of the general
 * channel, and "unknown" is set then.  A stream with "from", or on the general
 * channel, is a GET.  At most "limit" GETs of a session stay open (0: any
 * number), and one on the channel of a call; others are closed, the oldest
 * first.  NGX_OK; NGX_DONE: the channel of a call has ended, and no event
 * behind "from" is stored; NGX_DECLINED: the session has ended, or there never
 * was such a channel (the caller reports this gap); NGX_ERROR: the zone is
 * full.
 */
ngx_int_t ngx_mcp_stream_open(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_cursor_t *from, ngx_uint_t limit);

/*
 * Closes a stream; counter: the reason.  The next newest stream of the channel
 * carries it from now on, and is woken with NGX_MCP_WAKE_NEWS.
 */
void ngx_mcp_stream_close(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_counter_e counter);

/*
 * Reads the next event of the stream's channel into buf and moves the cursor.
 * Events that the session must not see (level, subscription) are skipped.
 *
 *   NGX_OK        *len bytes, *flags; the cursor is the event's id; if
 *                 stream->more is 0, the next call would return NGX_AGAIN
 *   NGX_AGAIN     there is no event now; the stream will be woken, or its
 *                 worker is notified of events of the group
 *                 (ngx_mcp_subscriber.h)
 *   NGX_DECLINED  another stream carries the channel; this one gets only
 *                 heartbeats
 *   NGX_BUSY      the event does not fit into size but needs *len bytes
 *   NGX_ABORT     a gap: *len events were lost (NGX_MCP_LOST_UNKNOWN: an
 *                 unknown number), the cursor is behind them
 *   NGX_DONE      the call's channel has ended and all of it was read
 *   NGX_ERROR     the session ended or the stream has to close
 */
#define NGX_MCP_LOST_UNKNOWN  ((size_t) -1)

ngx_int_t ngx_mcp_stream_read(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    u_char *buf, size_t size, size_t *len, ngx_uint_t *flags);


#endif /* _NGX_MCP_LOG_H_INCLUDED_ */
