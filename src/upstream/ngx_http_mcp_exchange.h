
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An exchange: one message sent to an upstream and the whole response.  It is a
 * subrequest of a main request r, which is a request of a client or a
 * background request (ngx_http_mcp_background.h); the same code serves both.
 *
 * The exchange is allocated from r->pool and lives as long as r.  Once r is
 * freed, no callback is called any more.  Callbacks run from filters or posted
 * events of the subrequest: only done() may finalize r, and after done() the
 * exchange is never used again.
 */

#ifndef _NGX_HTTP_MCP_EXCHANGE_H_INCLUDED_
#define _NGX_HTTP_MCP_EXCHANGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_mcp_lines.h"
#include "ngx_mcp_message.h"
#include "ngx_mcp_sse.h"
#include "ngx_mcp_metric.h"
#include "ngx_mcp_schema.h"


typedef struct ngx_http_mcp_exchange_s  ngx_http_mcp_exchange_t;


/* how an exchange ended */

typedef enum {
    NGX_HTTP_MCP_OK = 0,        /* complete, with a status below 300 */
    NGX_HTTP_MCP_STATUS,        /* complete, with another status (x->status) */
    NGX_HTTP_MCP_UNREACHABLE,   /* nginx could not connect */
    NGX_HTTP_MCP_TIMEOUT,       /* the upstream was silent too long, or took
                                   too long in all */
    NGX_HTTP_MCP_CUT,           /* the response is incomplete or missing */
    NGX_HTTP_MCP_BAD,           /* the response is not HTTP, not JSON, or has
                                   another content type */
    NGX_HTTP_MCP_TOO_LARGE,     /* a message is larger than x->limit */
    NGX_HTTP_MCP_ABORTED        /* ngx_http_mcp_exchange_abort() was called */
} ngx_http_mcp_outcome_e;


/* the kind of a response's body */

typedef enum {
    NGX_HTTP_MCP_BODY_NONE = 0, /* 202, 204, or an empty body */
    NGX_HTTP_MCP_BODY_JSON,
    NGX_HTTP_MCP_BODY_SSE,
    NGX_HTTP_MCP_BODY_LINES,    /* newline-delimited JSON, of a feed only */
    NGX_HTTP_MCP_BODY_OTHER
} ngx_http_mcp_body_e;


typedef struct {
    /*
     * The status and the headers of the response are known (x->status, x->body,
     * x->session, ...).  May be NULL.
     */
    void                  (*header)(ngx_http_mcp_exchange_t *x);

    /*
     * A whole message was received: the data of an SSE event, or a JSON body
     * that is not given to piece().  If this is an array, the callback is
     * called for each of its messages.  The text is valid during the call, and
     * the callback may change it; x->scan has the spans of its members.  For a
     * feed, the text is the data of an event or a line, and is not scanned.
     * May be NULL.
     */
    void                  (*message)(ngx_http_mcp_exchange_t *x,
                                ngx_str_t *text);

    /*
     * A piece of a JSON object with a Content-Length over NGX_HTTP_MCP_WHOLE
     * was received.  Pieces come in order and were scanned before the call;
     * they are valid during the call.  If the whole body is valid JSON, a last
     * call follows with "last" set and "in" NULL.  NGX_OK; NGX_AGAIN: the piece
     * was not consumed, and the exchange pauses and gives the piece again after
     * ngx_http_mcp_exchange_resume(); NGX_ERROR: the exchange is aborted.  If
     * piece is NULL, such a body is gathered and given to message().
     */
    ngx_int_t             (*piece)(ngx_http_mcp_exchange_t *x, ngx_chain_t *in,
                                ngx_uint_t last);

    /* n events were skipped (x->skips), as they were too long; may be NULL */
    void                  (*skipped)(ngx_http_mcp_exchange_t *x, ngx_uint_t n);

    /* the exchange has ended; called exactly once, unless r is freed first */
    void                  (*done)(ngx_http_mcp_exchange_t *x,
                                ngx_http_mcp_outcome_e outcome);
} ngx_http_mcp_exchange_handlers_t;

/*
 * Bytes.  A longer JSON object is given to piece() while it is received.  Of a
 * longer body that is an error or is ignored, the rest is not read.
 */
#define NGX_HTTP_MCP_WHOLE  65536


/* seconds; a longer Retry-After is shortened to this time */

#define NGX_HTTP_MCP_RETRY_AFTER_MAX  3600


/* the values of $mcp_method, $mcp_name, $mcp_request_id inside an exchange */

typedef struct {
    ngx_str_t                          method;
    ngx_str_t                          name;
    ngx_str_t                          request_id;
    ngx_uint_t                         dots;   /* out: no request was sent,
                                                  because a value of the request
                                                  made a "." or ".." segment in
                                                  the URI */
} ngx_http_mcp_scope_t;


/* the treatment of the bytes of the body */

typedef enum {
    NGX_HTTP_MCP_DROP = 0,      /* ignored */
    NGX_HTTP_MCP_GATHER,        /* collected until the body is complete */
    NGX_HTTP_MCP_PASS,          /* given to piece() */
    NGX_HTTP_MCP_PARSE,         /* parsed as SSE */
    NGX_HTTP_MCP_SPLIT          /* split into lines */
} ngx_http_mcp_mode_e;


struct ngx_http_mcp_exchange_s {
    /*
     * in: set by the caller after ngx_http_mcp_exchange_create().  The memory
     * to which these members point has to live as long as r.
     */
    ngx_http_request_t                *r;
    ngx_http_mcp_exchange_handlers_t  *handlers;
    void                              *data;

    /* -1; debug builds of nginx take the data of a timer for a connection, and
       log the fd that they find at this place */
    ngx_socket_t                       fd;

    ngx_http_mcp_scope_t              *scope;
    ngx_mcp_zone_t                    *zone;
    ngx_mcp_metric_t                  *metric;      /* NULL: not measured by
                                                       method */
    ngx_str_t                          name;        /* name of the upstream, for
                                                       the log */
    ngx_str_t                          uri;         /* URI of the upstream's
                                                       location */
    ngx_str_t                          args;
    ngx_uint_t                         method;      /* NGX_HTTP_POST, ... */
    ngx_chain_t                       *request;     /* body to send, in memory
                                                       */
    size_t                             request_len; /* bytes of the body to
                                                       send */
    unsigned                           client_headers:1;  /* headers that r has
                                                             received are sent
                                                             to the upstream */

    /* headers to send, if not empty */
    ngx_str_t                          session_id;
    ngx_str_t                          last_event_id;
    ngx_str_t                          protocol_version;
    ngx_array_t                       *appended;    /* more headers to send, of
                                                       ngx_table_elt_t; or
                                                       NULL */
    ngx_msec_t                         timeout;     /* longest silence, ms; 0:
                                                       any */
    ngx_msec_t                         total;       /* longest time in all, ms;
                                                       0: any */
    ngx_msec_t                         spent;       /* ms of "total" that have
                                                       passed before the start
                                                       */
    size_t                             limit;       /* mcp_message_limit */
    ngx_uint_t                         level;       /* level of the log for
                                                       failures */
    unsigned                           quotes:1;    /* the beginning of any
                                                       body is kept in quote */

    /* an event over the limit is skipped, and does not end the exchange */
    unsigned                           skips:1;

    /*
     * The exchange reads a feed: a GET whose response has to be a stream of SSE
     * events or of lines.  Any other response ends the exchange.
     */
    unsigned                           feed:1;

    /* out: valid from header() on */
    ngx_uint_t                         status;      /* HTTP; 0: no response */
    ngx_uint_t                         body;        /* ngx_http_mcp_body_e */
    ngx_str_t                          session;     /* Mcp-Session-Id */
    ngx_list_t                         headers;     /* ngx_table_elt_t: headers
                                                       that reach the client */
    ngx_str_t                          refusal;     /* raw "error" of an error
                                                       message without an id;
                                                       else empty */
    ngx_str_t                          quote;       /* the beginning of a body
                                                       that is no message or has
                                                       an error status, or, if
                                                       quotes is set, of any
                                                       body */
    ngx_mcp_json_t                    *scan;        /* spans of the message's
                                                       members, during message()
                                                       and piece() */
    ngx_mcp_sse_t                     *sse;         /* parser of an SSE stream,
                                                       with the last event id;
                                                       else NULL */
    ngx_mcp_lines_t                   *lines;       /* parser of lines; else
                                                       NULL */

    /* private */
    ngx_http_request_t                *sr;
    ngx_pool_t                        *pool;        /* pool of the exchange and
                                                       of its subrequest */
    ngx_chain_t                       *in;          /* buffers of the body that
                                                       were received and not
                                                       processed yet */
    ngx_chain_t                      **last_in;
    ngx_event_t                        event;       /* posted to continue in a
                                                       later turn of the event
                                                       loop; its timer checks
                                                       both time-outs */
    ngx_event_t                       *delay;       /* timer of a delay by
                                                       limit_req, or NULL */
    ngx_uint_t                         limit_req;   /* limit_req_status of the
                                                       main request when the
                                                       delay began */
    ngx_uint_t                         limit_conn;  /* limit_conn_status of the
                                                       main request when the
                                                       delay began */
    ngx_http_request_body_t            request_body;  /* that of "sr" */
    u_char                             length_text[NGX_SIZE_T_LEN];
    ngx_http_post_subrequest_t         post;
    ngx_http_handler_pt                content;     /* content handler of the
                                                       subrequest's location */
    ngx_msec_t                         silence;     /* longest silence that the
                                                       timer allows, ms; 0: any
                                                       */
    ngx_msec_t                         alive;       /* time of the last sign of
                                                       life of the upstream */
    ngx_msec_t                         started;     /* time of the start */
    ngx_uint_t                         mode;        /* ngx_http_mcp_mode_e */
    off_t                              length;      /* Content-Length of the
                                                       response, -1: not known
                                                       */
    size_t                             received;    /* bytes of the body that
                                                       were received */
    u_char                            *text;        /* body that is gathered, in
                                                       r->pool */
    size_t                             len;         /* bytes gathered in text */
    size_t                             size;        /* bytes allocated for text
                                                       */
    ngx_int_t                          rc;          /* result of the subrequest
                                                       */
    ngx_http_mcp_outcome_e             outcome;     /* outcome for done(), if
                                                       stop is set */

    unsigned                           header:1;    /* the response's header
                                                       was received */
    unsigned                           opened:1;    /* header() was called */
    unsigned                           more:1;      /* the message is one of an
                                                       array, and others of the
                                                       array follow */
    unsigned                           delivered:1;  /* message() or piece()
                                                        was called */
    unsigned                           scanned:1;   /* the first buffer of "in"
                                                       was scanned */
    unsigned                           last:1;      /* the last buffer of the
                                                       body was received */
    unsigned                           finished:1;  /* the body was processed
                                                       to its end */
    unsigned                           wrong_type:1;  /* the body's content type
                                                         is none of MCP's */
    unsigned                           keepalive:1;  /* TCP keep-alive of a
                                                        silent connection is
                                                        set */
    unsigned                           ignored_logged:1;  /* the log said that
                                                             an event was
                                                             ignored */
    unsigned                           paused:1;
    unsigned                           resumed:1;   /* the pause was ended, and
                                                       event is posted to
                                                       continue */
    unsigned                           read_timer:1;  /* the silence is measured
                                                         by the read timer of
                                                         nginx's upstream, not
                                                         by the exchange */
    unsigned                           ended:1;     /* the subrequest has ended
                                                       */
    unsigned                           answered:1;  /* the caller ignores the
                                                       rest of the response */
    unsigned                           stop:1;      /* event is posted to end
                                                       the exchange early */
    unsigned                           done:1;      /* done() was called, or r
                                                       was freed */
};


/*
 * Makes an exchange from r->pool.  Its "in" members are zero, except r, method
 * (POST) and level ("error").  NULL: no memory.
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_exchange_create(ngx_http_request_t *r);

/* limits both time-outs to this time, ms; to be called before the start */
void ngx_http_mcp_exchange_limit_time(ngx_http_mcp_exchange_t *x,
    ngx_msec_t time);

/* appends a header to the request of the exchange; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_headers_append(ngx_http_mcp_exchange_t *x,
    ngx_str_t *name, ngx_str_t *value);

/*
 * The seconds of Retry-After, if the response is 429 or 503; at most
 * NGX_HTTP_MCP_RETRY_AFTER_MAX.  0: the response has none.
 */
time_t ngx_http_mcp_headers_retry_after(ngx_http_mcp_exchange_t *x);

/*
 * Starts the subrequest.  NGX_OK: done() will be called, in a later event or
 * when the caller runs ngx_http_run_posted_requests(); NGX_ERROR: done() will
 * not be called.
 */
ngx_int_t ngx_http_mcp_exchange_start(ngx_http_mcp_exchange_t *x);

/* ends the exchange in a later event, with done(NGX_HTTP_MCP_ABORTED) */
void ngx_http_mcp_exchange_abort(ngx_http_mcp_exchange_t *x);

/*
 * To be called when the caller has received the answer and ignores the rest of
 * the response.  The rest of an SSE stream is read for a short time only, so
 * that the connection can be used again; then done(NGX_HTTP_MCP_OK) follows.
 */
void ngx_http_mcp_exchange_answered(ngx_http_mcp_exchange_t *x);

/*
 * Backpressure: between pause and resume no more than one buffer is read from
 * the upstream, message() and piece() are not called, and the silence of the
 * upstream does not count.
 */
void ngx_http_mcp_exchange_pause(ngx_http_mcp_exchange_t *x);
void ngx_http_mcp_exchange_resume(ngx_http_mcp_exchange_t *x);

/*
 * To be called in the preaccess phase of each subrequest.  Returns 1 if the
 * subrequest belongs to an exchange and has just entered a location, also by an
 * internal redirect.
 */
ngx_uint_t ngx_http_mcp_exchange_preaccess(ngx_http_request_t *sr);

/*
 * Filters, which the module installs.  They process responses of exchanges.
 * NGX_DECLINED: the response is not one of an exchange, and goes to the next
 * filter.
 */
ngx_int_t ngx_http_mcp_exchange_header_filter(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_exchange_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);

/*
 * The exchange of which r is the subrequest, or a request inside that (as for
 * an error page); NULL: r is no part of an exchange.
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_exchange_of(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_EXCHANGE_H_INCLUDED_ */
