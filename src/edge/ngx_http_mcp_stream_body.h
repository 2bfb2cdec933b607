
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Declarations for the files of streams: the stream itself, the functions of
 * its body, and the table of a worker's streams.
 *
 * A body writes and closes.  write() takes all bytes and keeps those that the
 * client does not take; it may use NGX_HTTP_MCP_STREAM_HEAD bytes in front of
 * the text and NGX_HTTP_MCP_STREAM_TAIL bytes behind it.  end() or drop() is
 * called last, when the stream is closed already, and frees the stream, now or
 * later.
 */

#ifndef _NGX_HTTP_MCP_STREAM_BODY_H_INCLUDED_
#define _NGX_HTTP_MCP_STREAM_BODY_H_INCLUDED_


#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_stream.h"
#include "ngx_mcp_subscriber.h"
#include "ngx_http_mcp_tree.h"


/* bytes for the size line of an HTTP chunk, and for the chunk's end */
#define NGX_HTTP_MCP_STREAM_HEAD   16
#define NGX_HTTP_MCP_STREAM_TAIL   2

/* bytes before a message, "id: ...\ndata: ", and at the end of an SSE event */
#define NGX_HTTP_MCP_STREAM_ID                                                \
    (sizeof("id: \ndata: ") - 1 + NGX_MCP_EVENT_ID_LEN)
#define NGX_HTTP_MCP_STREAM_END    (sizeof("\n\n") - 1)


typedef struct ngx_http_mcp_streams_s  ngx_http_mcp_streams_t;


typedef struct {
    /* writes bytes; NGX_OK; NGX_ERROR: the connection is broken */
    ngx_int_t             (*write)(ngx_http_mcp_stream_t *s, u_char *p,
                                size_t len);

    /* ends the response and frees the stream; unsent bytes still go out */
    void                  (*end)(ngx_http_mcp_stream_t *s);

    /* drops the connection and frees the stream; unsent bytes are lost */
    void                  (*drop)(ngx_http_mcp_stream_t *s);
} ngx_http_mcp_stream_body_t;


/*
 * The streams of a group that have the same want.  An event with this want
 * wakes the streams one after the other: streams still to be woken are in
 * "todo", all others in "members".
 */

typedef struct {
    ngx_http_mcp_tree_node_t      node;         /* key: hash of the want */
    ngx_queue_t                   members;
    ngx_queue_t                   todo;
} ngx_http_mcp_want_t;


typedef struct ngx_http_mcp_member_s  ngx_http_mcp_member_t;

struct ngx_http_mcp_member_s {
    ngx_queue_t                   queue;      /* place in a queue of the want */
    ngx_http_mcp_want_t          *want;
    ngx_http_mcp_stream_t        *stream;
    ngx_http_mcp_member_t        *next;       /* next want of the same stream */
};


/*
 * A group (of sessions) whose streams this worker carries, or an endpoint with
 * such groups.  News of an endpoint is looked at for one group after the other:
 * groups still to be looked at are in the endpoint's "todo", all others in
 * "groups".
 */

typedef struct ngx_http_mcp_group_s  ngx_http_mcp_group_t;

struct ngx_http_mcp_group_s {
    ngx_queue_t                   link;       /* place in a bucket of "groups"
                                                 of the worker's streams */
    ngx_queue_t                   order;      /* place in unchanged_groups or
                                                 changed_groups */
    ngx_queue_t                   pending;    /* place in pending_groups */
    ngx_mcp_ref_t                 ref;
    uint64_t                      seen;       /* position in its log up to which
                                                 news was looked at */
    ngx_uint_t                    n;          /* number of streams of a group,
                                                 or of groups of an endpoint */

    /* for a group only */
    ngx_http_mcp_group_t         *endpoint;
    ngx_queue_t                   sibling;    /* place in a queue of the
                                                 endpoint */
    ngx_http_mcp_want_t           all;        /* its members are all streams of
                                                 the group */
    ngx_rbtree_t                  wants;      /* ngx_http_mcp_want_t by hash */
    ngx_rbtree_node_t             sentinel;

    /* for an endpoint only */
    ngx_queue_t                   groups;
    ngx_queue_t                   todo;

    unsigned                      queued:1;   /* the group is in
                                                 pending_groups */
};


/*
 * The streams whose deadlines have the same interval, in the order of their
 * deadlines.  The interval is that of the heartbeat, from the last write on, or
 * send_timeout of a slow client, from its last progress on.
 */

typedef struct {
    ngx_queue_t                   link;       /* place in "deadlines" of the
                                                 worker's streams */
    ngx_queue_t                   streams;
    ngx_msec_t                    interval;   /* ms */
} ngx_http_mcp_deadlines_t;


struct ngx_http_mcp_stream_s {
    ngx_mcp_stream_t              zs;         /* handle of the stream in the
                                                 zone */
    ngx_http_mcp_streams_t       *streams;    /* table of the worker */
    ngx_http_mcp_loc_conf_t      *conf;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_mcp_client_t        *client;
    ngx_http_mcp_stream_body_t   *body;

    ngx_connection_t             *connection;
    ngx_http_request_t           *request;    /* NULL: the stream is parked */
    ngx_http_mcp_stream_owner_t  *owner;      /* the call of a POST; NULL: the
                                                 stream is that of a GET, or
                                                 is closed */
    ngx_str_t                     answer;     /* copy of the answer in r->pool,
                                                 in case the log loses it */
    ngx_str_t                     listen;     /* raw id of the request
                                                 subscriptions/listen, from
                                                 ngx_alloc(); or empty */
    void                         *held;       /* data of the held body */
    ngx_queue_t                   out;        /* unsent bytes of a parked
                                                 stream */

    ngx_http_mcp_group_t         *group;
    ngx_http_mcp_member_t         all;        /* membership in the
                                                 "all" of the group */
    ngx_http_mcp_member_t        *wants;
    ngx_uint_t                    nwants;     /* number of elements of "wants",
                                                 among them former wants, and
                                                 some wants twice */
    ngx_queue_t                   pending;    /* place in "pending" of the
                                                 worker's streams */
    ngx_queue_t                   due;        /* place among the streams of a
                                                 ngx_http_mcp_deadlines_t */
    ngx_msec_t                    deadline;   /* time of the next heartbeat, or
                                                 at which a slow client is
                                                 dropped */

    uint64_t                      unlogged;   /* position in the log of a large
                                                 message that is not in the log;
                                                 0: there is none */
    size_t                        unsent;     /* bytes that the client has not
                                                 taken */
    size_t                        waiting;    /* bytes in the call's log that
                                                 are not written yet */
    uint32_t                      sent;       /* number of messages written */

    unsigned                      offered:3;    /* NGX_MCP_OFFERED_* of the
                                                   session */
    unsigned                      get:1;        /* the stream of a GET */
    unsigned                      direct:1;     /* the stream has no channel:
                                                   messages are sent to it one
                                                   by one */
    unsigned                      answered:1;   /* the answer was sent, or is in
                                                   the channel */
    unsigned                      parkable:1;   /* the stream may be parked */
    unsigned                      chunked:1;    /* held: the module makes chunks
                                                   and bypasses filters */
    unsigned                      drained:1;    /* held: the request has
                                                   nothing unsent */
    unsigned                      queued:1;     /* the stream is in
                                                   "pending" */
    unsigned                      indexed:1;    /* the index has all wants of
                                                   the stream */
    unsigned                      follows:1;    /* the stream took all messages,
                                                   and follows its group */
    unsigned                      has_deadline:1;  /* the stream is in a queue
                                                      of deadlines */
    unsigned                      slow:1;       /* the deadline is that of
                                                   send_timeout */
    unsigned                      source_waits:1;  /* the call waits for room */
    unsigned                      gap:1;        /* the client has to be told of
                                                   a gap */
    unsigned                      answer_lost:1;  /* the answer may be among
                                                     the messages of a gap */
    unsigned                      closed:1;     /* the zone and the tables do
                                                   not have the stream any
                                                   more */
    unsigned                      finish:1;     /* the body finalizes the
                                                   request in the stream's next
                                                   turn */
    unsigned                      broken:1;     /* the connection is broken */
    unsigned                      cut:1;        /* the response ends without
                                                   its last chunk */
    unsigned                      timedout:1;   /* the client took nothing for
                                                   send_timeout */
};


#define NGX_HTTP_MCP_STREAM_GROUPS  1024
#define NGX_HTTP_MCP_DRAIN_TICK     20


/* the streams of one worker and zone */

struct ngx_http_mcp_streams_s {
    ngx_mcp_zone_t               *zone;

    ngx_http_mcp_stream_t       **slots;      /* streams by local number; NULL:
                                                 the number is unused */
    uint32_t                     *unused;     /* stack of the unused numbers */
    ngx_uint_t                    nslots;     /* size of slots and unused */
    ngx_uint_t                    nunused;    /* height of the stack */
    ngx_uint_t                    n;          /* number of streams */

    ngx_queue_t                   pending;    /* streams that get a turn */
    ngx_event_t                   turn;       /* event that gives streams their
                                                 turns */

    uint32_t                     *counts;     /* number of wants of all groups,
                                                 by place; see
                                                 ngx_mcp_want_add() */

    ngx_queue_t                   unchanged_groups;  /* groups without news */
    ngx_queue_t                   changed_groups;  /* groups that may have
                                                      news */
    ngx_queue_t                   pending_groups;  /* groups with news */

    ngx_http_mcp_group_t         *reading;    /* group or endpoint whose news is
                                                 in news[]; NULL: none */
    ngx_http_mcp_want_t          *want;       /* want whose streams the current
                                                 piece of news wakes, or NULL */
    uint64_t                      hash;       /* hash of the current want */
    uint64_t                      seen;       /* log position of the last piece
                                                 of news */
    ngx_uint_t                    next;       /* index of the next piece in
                                                 news[] */
    ngx_uint_t                    nnews;      /* number of pieces in news[] */
    ngx_uint_t                    more;       /* the log has more news */
    ngx_mcp_news_t                news[NGX_MCP_NEWS];

    ngx_queue_t                   deadlines;  /* ngx_http_mcp_deadlines_t, one
                                                 for each interval */
    ngx_event_t                   tick;       /* timer of the next deadline */

    /* ending of streams while the worker quits */
    ngx_event_t                   drain;      /* timer of the next turn */
    ngx_msec_t                    drain_start;  /* time when the ending began */
    ngx_uint_t                    drain_next; /* first slot not looked at yet */
    ngx_uint_t                    drain_top;  /* number of slots to look at */
    ngx_uint_t                    drain_jitter;  /* random part of the time of
                                                    each end, so that workers
                                                    differ */
    ngx_uint_t                    draining;   /* the worker quits */

    ngx_queue_t                   groups[NGX_HTTP_MCP_STREAM_GROUPS];
                                              /* hash table of groups */
};


/* ngx_http_mcp_stream_base.c: functions for the other files of streams */

ngx_http_mcp_stream_t *ngx_http_mcp_stream_alloc(ngx_mcp_zone_t *zone);
void ngx_http_mcp_stream_free(ngx_http_mcp_stream_t *s);

/* gives the stream a turn in a later event of the event loop */
void ngx_http_mcp_stream_queue(ngx_http_mcp_stream_t *s);

/*
 * Sets the stream's next deadline: that of the heartbeat or, while bytes are
 * unsent, that of send_timeout, which moves only with progress.  progress: the
 * client took bytes.
 */
void ngx_http_mcp_stream_set_deadline(ngx_http_mcp_stream_t *s,
    ngx_uint_t progress);

/*
 * Returns the scratch memory of this process, of at least size bytes, and sets
 * *room to its size.  NULL: no memory.
 */
u_char *ngx_http_mcp_stream_scratch(size_t size, size_t *room);

/*
 * Gives the scratch memory to the caller if the memory is large and p is in it:
 * returns the pointer that the caller has to free.  Else NULL.
 */
u_char *ngx_http_mcp_stream_scratch_take(u_char *p);

/* makes *memory the scratch memory; frees the former scratch memory */
void ngx_http_mcp_stream_scratch_give(ngx_mcp_memory_t *memory);

/*
 * Writes whole lines of SSE; there must be NGX_HTTP_MCP_STREAM_HEAD bytes of
 * room in front of p and NGX_HTTP_MCP_STREAM_TAIL behind the lines.  NGX_OK;
 * NGX_ERROR: the connection is broken.
 */
ngx_int_t ngx_http_mcp_stream_write(ngx_http_mcp_stream_t *s, u_char *p,
    size_t len);

/*
 * Makes an HTTP chunk of *len bytes at p, with room around them as for
 * ngx_http_mcp_stream_write().  Returns the chunk's begin and sets *len to the
 * chunk's size.
 */
u_char *ngx_http_mcp_stream_chunk(u_char *p, size_t *len);

/* counts n messages for $mcp_events_sent */
void ngx_http_mcp_stream_count(ngx_http_mcp_stream_t *s, ngx_uint_t n);

/*
 * Notes that the client took bytes: sets the deadline and, if the stream may
 * write again, gives it a turn.
 */
void ngx_http_mcp_stream_sent(ngx_http_mcp_stream_t *s);

/* closes a stream whose client left or takes nothing; unsent bytes are lost */
void ngx_http_mcp_stream_drop(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);

/* removes the stream from the zone and all tables; only the body is left */
void ngx_http_mcp_stream_unlink(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);


/* ngx_http_mcp_stream_index.c: an index of streams by their wants */

ngx_int_t ngx_http_mcp_stream_join_group(ngx_http_mcp_stream_t *s);
void ngx_http_mcp_stream_leave_group(ngx_http_mcp_stream_t *s);

/*
 * Lets a stream that took all of its general line follow its group: the stream
 * is woken for events that it wants, and its place moves on with the group's.
 * The stream stops following before it reads again or is closed.  NGX_OK;
 * NGX_AGAIN: some of its wants were not in the index until now, so it has to
 * read once more first; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_stream_follow(ngx_http_mcp_stream_t *s);
void ngx_http_mcp_stream_unfollow(ngx_http_mcp_stream_t *s);

/*
 * Removes all wants of the stream from the index; ngx_http_mcp_stream_follow()
 * adds them again.
 */
void ngx_http_mcp_stream_unindex(ngx_http_mcp_stream_t *s);

/*
 * Returns whether the stream's place, as the zone has it, is far behind,
 * because many events were not for the stream.
 */
ngx_uint_t ngx_http_mcp_stream_outdated(ngx_http_mcp_stream_t *s);

/*
 * Looks at the next piece of news of groups.  NGX_OK: *s is a stream that wants
 * this piece, or NULL; NGX_AGAIN: call again in another turn; NGX_DONE: there
 * is no news.
 */
ngx_int_t ngx_http_mcp_stream_news(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t **s);


/* ngx_http_mcp_stream_held.c */

ngx_int_t ngx_http_mcp_stream_hold(ngx_http_mcp_stream_t *s,
    ngx_http_request_t *r);

/* separates a held stream from its request */
void ngx_http_mcp_stream_release(ngx_http_mcp_stream_t *s);

/* finalizes the request of a stream that has ended, in a turn of the stream */
void ngx_http_mcp_stream_finish(ngx_http_mcp_stream_t *s);


/* ngx_http_mcp_stream_parked.c */

/*
 * Parks a held stream.  NGX_OK; NGX_DECLINED: the stream cannot be parked now;
 * NGX_ERROR: the connection is broken.
 */
ngx_int_t ngx_http_mcp_stream_park(ngx_http_mcp_stream_t *s);


#endif /* _NGX_HTTP_MCP_STREAM_BODY_H_INCLUDED_ */
