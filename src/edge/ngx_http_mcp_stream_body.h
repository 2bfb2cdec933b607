
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


/* room for a chunk's size and end */
#define NGX_HTTP_MCP_STREAM_HEAD   16
#define NGX_HTTP_MCP_STREAM_TAIL   2

/* "id: ...\ndata: ", and the end of an event */
#define NGX_HTTP_MCP_STREAM_ID                                                \
    (sizeof("id: \ndata: ") - 1 + NGX_MCP_EVENT_ID_LEN)
#define NGX_HTTP_MCP_STREAM_END    (sizeof("\n\n") - 1)


typedef struct ngx_http_mcp_streams_s  ngx_http_mcp_streams_t;


typedef struct {
    /* NGX_OK, or NGX_ERROR: the connection is broken */
    ngx_int_t             (*write)(ngx_http_mcp_stream_t *s, u_char *p,
                                size_t len);

    /* ends the response; unsent bytes go out */
    void                  (*end)(ngx_http_mcp_stream_t *s);

    /* unsent bytes are lost */
    void                  (*drop)(ngx_http_mcp_stream_t *s);
} ngx_http_mcp_stream_body_t;


/* the streams with the same want; those in "todo" are yet to be woken */

typedef struct {
    ngx_http_mcp_tree_node_t      node;         /* key: hash of the want */
    ngx_queue_t                   members;
    ngx_queue_t                   todo;
} ngx_http_mcp_want_t;


typedef struct ngx_http_mcp_member_s  ngx_http_mcp_member_t;

struct ngx_http_mcp_member_s {
    ngx_queue_t                   queue;
    ngx_http_mcp_want_t          *want;
    ngx_http_mcp_stream_t        *stream;
    ngx_http_mcp_member_t        *next;       /* of the stream */
};


/*
 * A group whose streams this worker carries, or an endpoint with such groups;
 * those in "todo" are yet to be looked at.
 */

typedef struct ngx_http_mcp_group_s  ngx_http_mcp_group_t;

struct ngx_http_mcp_group_s {
    ngx_queue_t                   link;       /* in a bucket */
    ngx_queue_t                   order;      /* in unchanged_groups or
                                                 changed_groups */
    ngx_queue_t                   pending;    /* in pending_groups */
    ngx_mcp_ref_t                 ref;
    uint64_t                      seen;       /* log position up to which news
                                                 were looked at */
    ngx_uint_t                    n;          /* streams, or groups */

    ngx_http_mcp_group_t         *endpoint;   /* of a group */
    ngx_queue_t                   sibling;    /* in the endpoint */
    ngx_http_mcp_want_t           all;
    ngx_rbtree_t                  wants;
    ngx_rbtree_node_t             sentinel;

    ngx_queue_t                   groups;     /* of an endpoint */
    ngx_queue_t                   todo;

    unsigned                      queued:1;   /* in pending */
};


/*
 * Streams with the same interval between their last write, or last progress of
 * a slow client, and their deadline: the interval of the heartbeat, or
 * send_timeout.  They are in the order of their deadlines.
 */

typedef struct {
    ngx_queue_t                   link;       /* in "deadlines" */
    ngx_queue_t                   streams;
    ngx_msec_t                    interval;
} ngx_http_mcp_deadlines_t;


struct ngx_http_mcp_stream_s {
    ngx_mcp_stream_t              zs;
    ngx_http_mcp_streams_t       *streams;
    ngx_http_mcp_loc_conf_t      *conf;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_mcp_client_t        *client;
    ngx_http_mcp_stream_body_t   *body;

    ngx_connection_t             *connection;
    ngx_http_request_t           *request;    /* of a held stream */
    ngx_http_mcp_stream_owner_t  *owner;      /* of a POST */
    ngx_str_t                     answer;     /* copy, in case the log loses
                                                 the answer */
    ngx_str_t                     listen;     /* id of subscriptions/listen,
                                                 raw, in memory of its own */
    void                         *held;       /* data of the held body */
    ngx_queue_t                   out;        /* unsent bytes of a parked
                                                 stream */

    ngx_http_mcp_group_t         *group;
    ngx_http_mcp_member_t         all;        /* of the group */
    ngx_http_mcp_member_t        *wants;
    ngx_uint_t                    nwants;     /* of its members, also those for
                                                 former wants */
    ngx_queue_t                   pending;    /* place among those to be looked
                                                 at */
    ngx_queue_t                   due;        /* place in its queue of
                                                 deadlines */
    ngx_msec_t                    deadline;   /* of the heartbeat, or of a slow
                                                 client */

    uint64_t                      unlogged;   /* position of the message that
                                                 is sent beside the log */
    size_t                        unsent;
    size_t                        waiting;    /* bytes in its call's log */
    uint32_t                      sent;       /* messages */

    unsigned                      offered:3;
    unsigned                      get:1;
    unsigned                      direct:1;     /* has no channel: carries only
                                                   what is sent to it */
    unsigned                      answered:1;   /* the answer is sent, or in its
                                                   channel */
    unsigned                      parkable:1;
    unsigned                      chunked:1;    /* held: events pass no
                                                   filters */
    unsigned                      drained:1;    /* held: the request has
                                                   nothing unsent */
    unsigned                      queued:1;     /* in pending */
    unsigned                      indexed:1;    /* the index has all its
                                                   wants */
    unsigned                      follows:1;    /* took all messages, and
                                                   follows its group */
    unsigned                      has_deadline:1;  /* in such a queue */
    unsigned                      slow:1;       /* the deadline is that of
                                                   send_timeout */
    unsigned                      source_waits:1;  /* the call waits for room */
    unsigned                      lagged:1;     /* the client has to be told of
                                                   a gap */
    unsigned                      missed:1;     /* the gap may have had the
                                                   answer */
    unsigned                      closed:1;     /* only the body is left */
    unsigned                      finish:1;     /* the body finalizes the
                                                   request */
    unsigned                      broken:1;
    unsigned                      timedout:1;
};


#define NGX_HTTP_MCP_STREAM_GROUPS  1024
#define NGX_HTTP_MCP_DRAIN_TICK     20


/* the streams of one worker and zone */

struct ngx_http_mcp_streams_s {
    ngx_mcp_zone_t               *zone;

    ngx_http_mcp_stream_t       **slots;      /* by local number */
    uint32_t                     *unused;     /* a stack of local numbers */
    ngx_uint_t                    nslots;
    ngx_uint_t                    nunused;
    ngx_uint_t                    n;          /* number of streams */

    ngx_queue_t                   pending;    /* streams to be looked at */
    ngx_event_t                   turn;

    uint32_t                     *counts;     /* of wants, for the zone */

    ngx_queue_t                   unchanged_groups;  /* have no news */
    ngx_queue_t                   changed_groups;  /* may have news */
    ngx_queue_t                   pending_groups;  /* have news */

    ngx_http_mcp_group_t         *reading;    /* group of the news below */
    ngx_http_mcp_want_t          *want;       /* want of the current one */
    uint64_t                      hash;       /* hash of that want */
    uint64_t                      seen;       /* position of the last one */
    ngx_uint_t                    next;       /* index of the next one */
    ngx_uint_t                    nnews;
    ngx_uint_t                    more;       /* the log has more news */
    ngx_mcp_news_t                news[NGX_MCP_NEWS];

    ngx_queue_t                   deadlines;  /* one for each interval */
    ngx_event_t                   tick;

    ngx_event_t                   drain;
    ngx_msec_t                    drain_start;
    ngx_uint_t                    drain_next; /* slot */
    ngx_uint_t                    drain_top;
    ngx_uint_t                    drain_jitter;
    ngx_uint_t                    draining;

    ngx_queue_t                   groups[NGX_HTTP_MCP_STREAM_GROUPS];
};


/* ngx_http_mcp_stream_base.c: functions for the files below */

ngx_http_mcp_stream_t *ngx_http_mcp_stream_alloc(ngx_mcp_zone_t *zone);
void ngx_http_mcp_stream_free(ngx_http_mcp_stream_t *s);

/* gives the stream a turn in a later event */
void ngx_http_mcp_stream_queue(ngx_http_mcp_stream_t *s);

/*
 * Sets the stream's next deadline: that of the heartbeat or, while bytes are
 * unsent, send_timeout, which moves only with progress.  progress: the client
 * took something.
 */
void ngx_http_mcp_stream_set_deadline(ngx_http_mcp_stream_t *s,
    ngx_uint_t progress);

/*
 * Returns memory of this process for composing, of at least size bytes, and
 * sets *room to its size.  NULL: no memory.
 */
u_char *ngx_http_mcp_stream_scratch(size_t size, size_t *room);

/*
 * Gives the scratch memory away if p is in it and it is large: returns its
 * begin, which the caller frees.  Else NULL.
 */
u_char *ngx_http_mcp_stream_scratch_take(u_char *p);

/* makes this memory the scratch memory, in place of the one before */
void ngx_http_mcp_stream_scratch_give(ngx_mcp_memory_t *memory);

/*
 * Writes whole lines of SSE, with HEAD and TAIL bytes of room around them.
 * NGX_OK, or NGX_ERROR: the connection is broken.
 */
ngx_int_t ngx_http_mcp_stream_write(ngx_http_mcp_stream_t *s, u_char *p,
    size_t len);

/*
 * Makes an HTTP chunk of *len bytes at p, with HEAD and TAIL bytes of room
 * around them.  Returns the chunk's begin and sets *len to its size.
 */
u_char *ngx_http_mcp_stream_chunk(u_char *p, size_t *len);

/* counts n messages for $mcp_events_sent */
void ngx_http_mcp_stream_count(ngx_http_mcp_stream_t *s, ngx_uint_t n);

/* the client took something: sets the deadline; with room, queues a turn */
void ngx_http_mcp_stream_sent(ngx_http_mcp_stream_t *s);

/* closes a stream whose client left or takes nothing: unsent bytes are lost */
void ngx_http_mcp_stream_drop(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);

/* removes the stream from the zone and all tables; only the body is left */
void ngx_http_mcp_stream_unlink(ngx_http_mcp_stream_t *s,
    ngx_mcp_counter_e counter);


/* ngx_http_mcp_stream_index.c: streams by what they want */

ngx_int_t ngx_http_mcp_stream_join_group(ngx_http_mcp_stream_t *s);
void ngx_http_mcp_stream_leave_group(ngx_http_mcp_stream_t *s);

/*
 * Lets a stream that took all of its general line follow its group: it is woken
 * for events that it wants, and its place moves on with the group's.  It stops
 * following before it takes again or is closed.  NGX_OK; NGX_AGAIN: some of its
 * wants were not in the index until now, so it has to read once more first;
 * NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_stream_follow(ngx_http_mcp_stream_t *s);
void ngx_http_mcp_stream_unfollow(ngx_http_mcp_stream_t *s);

/* forgets the stream's wants, which are read again when it follows */
void ngx_http_mcp_stream_unindex(ngx_http_mcp_stream_t *s);

/*
 * Returns whether the stream's place in the zone is far behind, as many events
 * were not for it
 */
ngx_uint_t ngx_http_mcp_stream_outdated(ngx_http_mcp_stream_t *s);

/*
 * Goes on with the news of groups.  NGX_OK: *s is NULL, or a stream with
 * something to take; NGX_AGAIN: call again in another turn; NGX_DONE: there
 * are no news.
 */
ngx_int_t ngx_http_mcp_stream_news(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t **s);


/* ngx_http_mcp_stream_held.c */

ngx_int_t ngx_http_mcp_stream_hold(ngx_http_mcp_stream_t *s,
    ngx_http_request_t *r);

/* separates the stream from its request */
void ngx_http_mcp_stream_release(ngx_http_mcp_stream_t *s);

/* finalizes the request of a stream that has ended; has a turn of its own */
void ngx_http_mcp_stream_finish(ngx_http_mcp_stream_t *s);


/* ngx_http_mcp_stream_parked.c */

/*
 * Parks a held stream.  NGX_OK; NGX_DECLINED: it cannot be parked now;
 * NGX_ERROR: the connection is broken.
 */
ngx_int_t ngx_http_mcp_stream_park(ngx_http_mcp_stream_t *s);


#endif /* _NGX_HTTP_MCP_STREAM_BODY_H_INCLUDED_ */
