
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A reader: one long-lived stream of events of an upstream, which one worker
 * reads.
 *
 *     closed -> open -> read -> ended or failed -> back-off -> open
 *
 * Each attempt is an upstream request of its own
 * (ngx_http_mcp_upstream_request.h), which requests the events after the last
 * event id; the differences between upstreams are in their manners.  The user
 * of the reader receives events, and is told of gaps, through a table of
 * handlers.
 *
 * A reader may depend on a lease in the zone: then the worker that holds the
 * lease has the reader, and another worker takes over the lease when this one
 * dies or quits.  Events are delivered under the lease, so that a takeover
 * neither loses an event nor delivers it twice.  A worker that quits continues
 * reading, for a limited time, until a worker of a newer configuration reads.
 *
 * A reader lives in a pool of its own, which is destroyed after ended().
 */

#ifndef _NGX_HTTP_MCP_READER_H_INCLUDED_
#define _NGX_HTTP_MCP_READER_H_INCLUDED_


#include "ngx_http_mcp_backoff.h"
#include "ngx_http_mcp_upstream_request.h"
#include "ngx_mcp_lease.h"


typedef struct ngx_http_mcp_reader_s       ngx_http_mcp_reader_t;
typedef struct ngx_http_mcp_reader_kind_s  ngx_http_mcp_reader_kind_t;


/* how a reader ends */

typedef enum {
    NGX_HTTP_MCP_READER_RELEASED = 0,   /* another worker may take over */
    NGX_HTTP_MCP_READER_DROPPED,        /* nobody needs the stream any more */
    NGX_HTTP_MCP_READER_LOST            /* another worker has the lease */
} ngx_http_mcp_reader_e;


/* kinds of readers */

typedef enum {
    NGX_HTTP_MCP_READER_FEED = 0,
    NGX_HTTP_MCP_READER_SHARED,
    NGX_HTTP_MCP_READER_LISTENER,
    NGX_HTTP_MCP_READER_KINDS
} ngx_http_mcp_reader_kind_e;

/* the queue of this worker's readers of a kind (ngx_http_mcp_reader_kind_e) */
#define ngx_http_mcp_reader_queue(zone, kind)                                 \
    ((ngx_queue_t *) (zone)->ctx[NGX_MCP_CTX_READERS] + (kind))


/* a kind of readers: a table of handlers */

struct ngx_http_mcp_reader_kind_s {

    ngx_uint_t                number;       /* ngx_http_mcp_reader_kind_e */

    /* the first element of keys of leases; empty: this kind has no leases */
    ngx_str_t                 name;

    /*
     * The lease with this key is free.  Makes a reader from pool, with upstream
     * and audience set.  NULL: this worker does not claim the lease.
     */
    ngx_http_mcp_reader_t  *(*create)(ngx_mcp_zone_t *zone, ngx_str_t *key,
                                ngx_pool_t *pool);

    /*
     * This worker now holds the lease.  NGX_OK; NGX_ERROR: the lease is
     * dropped and ended() is not called.
     */
    ngx_int_t               (*held)(ngx_http_mcp_reader_t *reader);

    /* the lease was signaled */
    void                    (*signaled)(ngx_http_mcp_reader_t *reader);

    /*
     * Called each second while the lease is held; may end the reader.  It must
     * not be NULL if this kind has leases.
     */
    void                    (*tick)(ngx_http_mcp_reader_t *reader);

    /*
     * A newer worker is about to take over the lease: until then this worker
     * only reads the stream.
     */
    void                    (*replaced)(ngx_http_mcp_reader_t *reader);

    /*
     * Whether anybody needs the stream; called before each attempt.  This
     * handler and those below may be NULL, unless their comments say otherwise.
     */
    ngx_uint_t              (*wanted)(ngx_http_mcp_reader_t *reader);

    /* completes the upstream request of an attempt; NGX_OK or NGX_ERROR */
    ngx_int_t               (*request)(ngx_http_mcp_reader_t *reader,
                                ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Sets *uris to the resources whose updates are wanted: a raw array, from
     * pool.  Called if the request that opens the stream names them (see
     * ngx_http_mcp_reader_replace()).  NGX_OK or NGX_ERROR.
     */
    ngx_int_t               (*filter)(ngx_http_mcp_reader_t *reader,
                                ngx_pool_t *pool, ngx_str_t *uris);

    /*
     * Called after opened(): the upstream will notify of updates of these
     * resources (a raw array, or empty).
     */
    void                    (*acknowledged)(ngx_http_mcp_reader_t *reader,
                                ngx_str_t *uris);

    /* the stream is about to be requested in the session with this serial */
    void                    (*before_open)(ngx_http_mcp_reader_t *reader,
                                ngx_uint_t serial);

    /*
     * The stream is open.  gap: events may have been lost between the previous
     * stream and this one.  This handler must not be NULL.
     */
    void                    (*opened)(ngx_http_mcp_reader_t *reader,
                                ngx_uint_t gap);

    /*
     * An event was received; if it is a message, ureq->x->scan has its
     * members.  consume: has to be passed to the function that delivers the
     * event, so that this happens under the lease; NULL: the reader has no
     * lease.  This handler must not be NULL.
     */
    void                    (*event)(ngx_http_mcp_reader_t *reader,
                                ngx_http_mcp_upstream_request_t *ureq,
                                ngx_str_t *text,
                                ngx_mcp_consume_t *consume);

    /* events were lost; why: a text for the log.  Must not be NULL. */
    void                    (*gap)(ngx_http_mcp_reader_t *reader,
                                const char *why);

    /*
     * An attempt failed, or the stream ended; another attempt follows.  This
     * handler must not be NULL.
     */
    void                    (*disconnected)(ngx_http_mcp_reader_t *reader);

    /*
     * No attempt follows: the stream is not wanted, or the upstream offers
     * none.  The handler may open or end the reader; it must not be NULL.
     */
    void                    (*stopped)(ngx_http_mcp_reader_t *reader);

    /*
     * The reader ends (how: ngx_http_mcp_reader_e), and its pool is destroyed
     * after this call.  This handler must not be NULL.
     */
    void                    (*ended)(ngx_http_mcp_reader_t *reader,
                                ngx_uint_t how);
};


/* a message that the two streams of an overlap may both send */

#define NGX_HTTP_MCP_READER_REPEATS  64

typedef struct {
    uint64_t                     text;         /* hash of the message */
    uint32_t                     reads[2];     /* number of times that the older
                                                  and the newer stream sent the
                                                  message */
} ngx_http_mcp_reader_repeat_t;


struct ngx_http_mcp_reader_s {
    /* in: set by the user; all other members have to be zero */
    ngx_http_mcp_reader_kind_t  *kind;
    ngx_pool_t                  *pool;
    void                        *data;
    ngx_http_mcp_upstream_t     *upstream;
    ngx_http_mcp_audience_t      audience;
    ngx_mcp_ref_t                owner;     /* owner of the upstream session */
    ngx_http_headers_in_t       *headers;   /* headers of a client that are sent
                                               to the upstream, or NULL */

    /* out */
    ngx_mcp_lease_t                   lease;
    ngx_str_t                         key;
    ngx_http_mcp_upstream_request_t  *ureq;    /* the attempt under way */
    ngx_uint_t                        serial;  /* serial of the upstream session
                                                  of the stream, 0: none */
    ngx_str_t                    id;           /* last event id */
    ngx_uint_t                   failure;      /* outcome and HTTP status of the
                                                  last attempt, if it failed;
                                                  else 0 */
    unsigned                     up:1;         /* the stream is open */
    unsigned                     resumed:1;    /* the stream continues after the
                                                  last event id */
    unsigned                     replaced:1;   /* a newer worker takes over */
    unsigned                     no_takeover:1;  /* in: no other worker can take
                                                    over, so a worker that quits
                                                    continues reading while the
                                                    stream is wanted */

    /* private */
    ngx_queue_t                  queue;
    uint32_t                     hash;      /* hash of the key */
    ngx_uint_t                   noted_serial;  /* serial in the note of the
                                                   lease */
    ngx_http_mcp_backoff_t       backoff;
    ngx_msec_t                   not_before;  /* end of the pause that a
                                                 Retry-After asked for; also in
                                                 the lease, for the next worker
                                                 */
    ngx_uint_t                   conflicts; /* number of conflicts in a row */
    ngx_msec_t                   up_since;  /* time at which the stream
                                               opened */
    ngx_event_t                  tick;
    ngx_event_t                  retry;
    ngx_event_t                  takeover;  /* timer that ends the reader of a
                                               worker that quits */

    /* a new stream replaces the present one */
    ngx_http_mcp_upstream_request_t  *next;    /* request that opens the new
                                                  stream, or NULL */
    ngx_http_mcp_upstream_request_t  *old;     /* replaced stream, which is read
                                                  for a while; or NULL */
    ngx_event_t                  replace;      /* timer of the next attempt to
                                                  replace the stream */
    ngx_event_t                  overlap;      /* timer that ends "old" */
    ngx_http_mcp_backoff_t       replacing;    /* pauses between the attempts to
                                                  replace the stream */
    ngx_http_mcp_reader_repeat_t *repeats;     /* messages that were received in
                                                  the overlap */
    ngx_uint_t                   nrepeats;     /* number of repeats */
    u_char                       id_buf[NGX_MCP_LEASE_ID_MAX];  /* id's bytes */
    unsigned                     leased:1;     /* the reader has a lease */
    unsigned                     lease_lost:1;  /* another worker has the lease,
                                                   and the reader will end */
    unsigned                     received:1;   /* an event came on the stream */
    unsigned                     id_refused:1;  /* the upstream refused the last
                                                   event id */
    unsigned                     conflict:1;   /* the last attempt failed,
                                                  because the upstream session
                                                  has another stream */
    unsigned                     session_kept:1;  /* a new upstream session did
                                                     not help, and attempts do
                                                     not make another one */
};


/* the HTTP status with which the last attempt failed, if it had one */
#define ngx_http_mcp_reader_status(reader)                                    \
    ((reader)->failure ? ((reader)->failure & 0xffff) - 1 : 0)


/* all kinds, the last is NULL; set by the edge before workers start */
extern ngx_http_mcp_reader_kind_t  **ngx_http_mcp_reader_kinds;

/* makes the queues of a worker that starts; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_reader_init_worker(ngx_mcp_zone_t *zone);

/*
 * The lease with this key changed (handlers->lease).  why: flags such as
 * NGX_MCP_LEASE_FREE.
 */
void ngx_http_mcp_reader_lease(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t why);

/* the reader of this worker for the lease with this key, or NULL */
ngx_http_mcp_reader_t *ngx_http_mcp_reader_find(ngx_mcp_zone_t *zone,
    ngx_str_t *key);

/* initializes a reader without a lease, after its "in" members were set */
void ngx_http_mcp_reader_init(ngx_http_mcp_reader_t *reader);

/*
 * Opens the stream in a later event, and again whenever it ends, until the
 * reader is closed or ended.  Returns the time until the first attempt, ms: not
 * 0 if the upstream has refused the stream and asked for a pause (Retry-After).
 */
ngx_msec_t ngx_http_mcp_reader_open(ngx_http_mcp_reader_t *reader);

/* closes the stream and opens it again after the back-off */
void ngx_http_mcp_reader_reconnect(ngx_http_mcp_reader_t *reader);

/*
 * To be called when the resources of filter() have changed: opens a new stream
 * with them, and closes the present stream some time after that.  A message
 * that both streams send is one event.
 */
void ngx_http_mcp_reader_replace(ngx_http_mcp_reader_t *reader);

/* closes the stream without calling a handler; any handler may call this */
void ngx_http_mcp_reader_close(ngx_http_mcp_reader_t *reader);

/* checks in a later event whether this worker still has the lease */
void ngx_http_mcp_reader_check_lease(ngx_http_mcp_reader_t *reader);

/*
 * Ends the reader (how: ngx_http_mcp_reader_e) and calls ended().  Must not be
 * called by request(), opened() or event().
 */
void ngx_http_mcp_reader_end(ngx_http_mcp_reader_t *reader, ngx_uint_t how);

/*
 * The worker quits gracefully: each reader ends, or continues until another
 * worker reads the stream.
 */
void ngx_http_mcp_reader_quit(ngx_mcp_zone_t *zone);


/*
 * The key of a lease is a JSON array: the name of the kind ("feed", "own"),
 * followed by n strings or nulls.
 *
 * Composes the key of a kind and n parts, of which some may be NULL, in a
 * static buffer, which the next call overwrites.  NGX_OK; NGX_DECLINED: the
 * key would be longer than NGX_MCP_LEASE_KEY_MAX.
 */
ngx_int_t ngx_http_mcp_reader_key(ngx_str_t *kind, ngx_str_t **parts,
    ngx_uint_t n, ngx_str_t *key);

/*
 * Reads the n parts of a key, with memory of pool; a part that was NULL gets
 * data NULL.  NGX_OK; NGX_ERROR: the key has fewer parts, or no memory.
 */
ngx_int_t ngx_http_mcp_reader_key_parse(ngx_str_t *key, ngx_pool_t *pool,
    ngx_str_t **parts, ngx_uint_t n);


#endif /* _NGX_HTTP_MCP_READER_H_INCLUDED_ */
