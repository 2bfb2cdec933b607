
/*
 * A reader: one long-lived stream of an upstream, which one worker reads.
 *
 *     closed -> open -> read -> ended or failed -> back-off -> open
 *
 * Each attempt is an upstream request of its own
 * (ngx_http_mcp_upstream_request.h), which asks for what comes behind the last
 * event id; the differences between upstreams are in their manners.  Its
 * user gets the events, and is told of gaps, by a table of handlers.
 *
 * A reader may be had by a lease in the zone: then the worker that holds the
 * lease has the reader, and another worker takes it over when that one dies or
 * quits.  Events are taken under the lease, so that none is lost or delivered
 * twice by that.  A worker that quits reads on until a worker of a newer
 * configuration does, but not for long.
 *
 * A reader lives in a pool of its own, which goes with it.  No handler but
 * gap() and those of one stream is called after ended().
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
    NGX_HTTP_MCP_READER_RELEASED = 0,   /* for another worker to go on */
    NGX_HTTP_MCP_READER_DROPPED,        /* nobody needs it any more */
    NGX_HTTP_MCP_READER_LOST            /* another worker has the lease */
} ngx_http_mcp_reader_e;


struct ngx_http_mcp_reader_kind_s {

    /* the first element of keys of its leases; empty: it has none */
    ngx_str_t                 name;

    /*
     * A lease may be claimed: makes the reader, with its upstream and audience
     * set, from pool.  NULL: it is not for this worker.
     */
    ngx_http_mcp_reader_t  *(*create)(ngx_mcp_zone_t *zone, ngx_str_t *key,
                                ngx_pool_t *pool);

    /* the lease is held; NGX_ERROR: it is dropped, without ended() */
    ngx_int_t               (*held)(ngx_http_mcp_reader_t *reader);

    /* the lease was signaled */
    void                    (*signaled)(ngx_http_mcp_reader_t *reader);

    /* each second while the lease is held; may end the reader */
    void                    (*tick)(ngx_http_mcp_reader_t *reader);

    /* a newer worker takes over: from now on this one only reads */
    void                    (*replaced)(ngx_http_mcp_reader_t *reader);

    /* asked before each attempt; may be NULL, as those below */
    ngx_uint_t              (*wanted)(ngx_http_mcp_reader_t *reader);

    /* adds to the request of an attempt; NGX_OK or NGX_ERROR */
    ngx_int_t               (*request)(ngx_http_mcp_reader_t *reader,
                                ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The resources that it is to notify of, where they are named when it is
     * opened (see ngx_http_mcp_reader_replace()); a raw array, from pool
     */
    ngx_int_t               (*filter)(ngx_http_mcp_reader_t *reader,
                                ngx_pool_t *pool, ngx_str_t *uris);

    /* after opened(): the URIs that the stream notifies of; raw or empty */
    void                    (*acknowledged)(ngx_http_mcp_reader_t *reader,
                                ngx_str_t *uris);

    /* the stream is asked for now, on the session with this serial */
    void                    (*before_open)(ngx_http_mcp_reader_t *reader,
                                ngx_uint_t serial);

    /*
     * The stream stands.  gap: events may have been lost between the stream
     * before and this one.
     */
    void                    (*opened)(ngx_http_mcp_reader_t *reader,
                                ngx_uint_t gap);

    /*
     * One event; scanned in ureq->x, if it is a message.  take: it is delivered
     * under the lease; NULL: there is none.  Never NULL itself.
     */
    void                    (*event)(ngx_http_mcp_reader_t *reader,
                                ngx_http_mcp_upstream_request_t *ureq,
                                ngx_str_t *text,
                                ngx_mcp_consume_t *consume);

    /* events were lost; why: for the log */
    void                    (*gap)(ngx_http_mcp_reader_t *reader,
                                const char *why);

    /* an attempt failed, or the stream ended: another follows */
    void                    (*broken)(ngx_http_mcp_reader_t *reader);

    /*
     * No attempt follows: it is not wanted, or the upstream offers no stream.
     * It may be opened again, or ended.  Never NULL.
     */
    void                    (*stopped)(ngx_http_mcp_reader_t *reader);

    /* the last call, ngx_http_mcp_reader_e; the pool goes after it */
    void                    (*ended)(ngx_http_mcp_reader_t *reader,
                                ngx_uint_t how);

    ngx_queue_t               readers;      /* of this worker */
};


/* a message that the two streams of an overlap sent, by its hash */

#define NGX_HTTP_MCP_READER_REPEATS  64

typedef struct {
    uint64_t                     text;
    uint32_t                     reads[2];     /* from the older, newer one */
} ngx_http_mcp_reader_repeat_t;


struct ngx_http_mcp_reader_s {
    /* in; zero else */
    ngx_http_mcp_reader_kind_t  *kind;
    ngx_pool_t                  *pool;
    void                        *data;
    ngx_http_mcp_upstream_t     *upstream;
    ngx_http_mcp_audience_t      audience;
    ngx_mcp_ref_t                owner;     /* owner of the upstream session */
    ngx_http_headers_in_t       *headers;   /* headers that cross, or NULL */

    /* out */
    ngx_mcp_lease_t                   lease;
    ngx_str_t                         key;
    ngx_http_mcp_upstream_request_t  *ureq;    /* the attempt under way */
    ngx_uint_t                        serial;  /* of the session of the stream,
                                                  0: none */
    ngx_str_t                    id;           /* last event id */
    ngx_uint_t                   failure;      /* result of the last attempt, or
                                                  0 */
    unsigned                     up:1;         /* an open stream */
    unsigned                     resumed:1;    /* a stream that goes on behind
                                                  the last event id */
    unsigned                     replaced:1;   /* a newer worker takes over */
    unsigned                     stays:1;      /* in: a worker that quits reads
                                                  while it is wanted, as nobody
                                                  can take over */

    /* private */
    ngx_queue_t                  queue;
    uint32_t                     hash;      /* hash of the key */
    ngx_uint_t                   noted_serial;  /* serial in the lease */
    ngx_http_mcp_backoff_t       backoff;
    ngx_uint_t                   conflicts; /* number in a row */
    ngx_msec_t                   since;     /* time at which the stream
                                               opened */
    ngx_event_t                  tick;
    ngx_event_t                  retry;
    ngx_event_t                  takeover;  /* timer that keeps a quitting
                                               worker */

    /* one stream replaces another */
    ngx_http_mcp_upstream_request_t  *next;    /* attempt of the new stream */
    ngx_http_mcp_upstream_request_t  *old;     /* stream that is still read
                                                for a while */
    ngx_event_t                  replace;      /* timer of the next attempt */
    ngx_event_t                  overlap;      /* timer that ends "old" */
    ngx_http_mcp_backoff_t       replacing;
    ngx_http_mcp_reader_repeat_t *repeats;     /* messages of an overlap */
    ngx_uint_t                   nrepeats;
    u_char                       id_buf[NGX_MCP_LEASE_ID_MAX];
    unsigned                     leased:1;
    unsigned                     lease_lost:1;
    unsigned                     received:1;  /* an event came on this stream */
    unsigned                     id_refused:1;  /* the upstream refused the last
                                                event id */
    unsigned                     conflict:1;
    unsigned                     session_kept:1;  /* another session did not
                                                  help */
};


/* the HTTP status with which the last attempt failed, if it had one */
#define ngx_http_mcp_reader_status(reader)                                    \
    ((reader)->failure ? ((reader)->failure & 0xffff) - 1 : 0)


/* all kinds, the last is NULL; set by the edge before workers start */
extern ngx_http_mcp_reader_kind_t  **ngx_http_mcp_reader_kinds;

/* handlers->lease */
void ngx_http_mcp_reader_lease(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t why);

/* that of this worker for the lease with this key, or NULL */
ngx_http_mcp_reader_t *ngx_http_mcp_reader_find(ngx_mcp_zone_t *zone,
    ngx_str_t *key);

/* one without a lease begins to be */
void ngx_http_mcp_reader_init(ngx_http_mcp_reader_t *reader);

/* opens the stream in a later event, and again until it is closed or ends */
void ngx_http_mcp_reader_open(ngx_http_mcp_reader_t *reader);

/* breaks the stream, and opens it again */
void ngx_http_mcp_reader_reconnect(ngx_http_mcp_reader_t *reader);

/*
 * The stream is to tell of other resources: another one is opened with these,
 * and closes this one once it stands.  What both tell is one event.
 */
void ngx_http_mcp_reader_replace(ngx_http_mcp_reader_t *reader);

/* closes the stream, without a call; from any handler */
void ngx_http_mcp_reader_close(ngx_http_mcp_reader_t *reader);

/* the lease may be lost: asks */
void ngx_http_mcp_reader_check_lease(ngx_http_mcp_reader_t *reader);

/* ends it, ngx_http_mcp_reader_e; not from request(), opened() or event() */
void ngx_http_mcp_reader_end(ngx_http_mcp_reader_t *reader, ngx_uint_t how);

/* the worker quits gracefully */
void ngx_http_mcp_reader_quit(ngx_mcp_zone_t *zone);


/*
 * Keys of leases are JSON arrays of the kind of what is leased ("feed", "own")
 * and of strings or nulls that say which one.
 *
 * The key of n parts, of which one may be NULL, in a buffer that the next call
 * uses again.  NGX_OK; NGX_DECLINED: it is longer than NGX_MCP_LEASE_KEY_MAX.
 */
ngx_int_t ngx_http_mcp_reader_key(ngx_str_t *kind, ngx_str_t **parts,
    ngx_uint_t n, ngx_str_t *key);

/*
 * The parts of a key, into pool; one that was NULL has no data.  NGX_OK;
 * NGX_ERROR: there are fewer, or no memory.
 */
ngx_int_t ngx_http_mcp_reader_key_parse(ngx_str_t *key, ngx_pool_t *pool,
    ngx_str_t **parts, ngx_uint_t n);


#endif /* _NGX_HTTP_MCP_READER_H_INCLUDED_ */
