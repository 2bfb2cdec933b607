
/*
 * An exchange: one message sent to an upstream and all that comes back.  It is
 * a background subrequest of a main request r, which is a client's POST or a
 * client-less one (ngx_http_mcp_is_background.h); the code is the same.
 *
 * The exchange is allocated from r->pool and lives as long as r.  When r goes
 * away (its cleanup runs) no callback is called any more.  Callbacks run from
 * filters or posted events of the subrequest: they must not finalize r or
 * abort the exchange at once, except in done(), after which the exchange is
 * never used again.
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
    NGX_HTTP_MCP_UNREACHABLE,   /* connect failed, 502 made here */
    NGX_HTTP_MCP_TIMEOUT,       /* silence or total exceeded */
    NGX_HTTP_MCP_CUT,           /* ended in the middle */
    NGX_HTTP_MCP_BAD,           /* not HTTP, not JSON, another content type */
    NGX_HTTP_MCP_TOO_LARGE,     /* a message over the limit */
    NGX_HTTP_MCP_ABORTED        /* by ngx_http_mcp_exchange_abort() */
} ngx_http_mcp_outcome_e;


typedef enum {
    NGX_HTTP_MCP_BODY_NONE = 0, /* 202, 204, or an empty body */
    NGX_HTTP_MCP_BODY_JSON,
    NGX_HTTP_MCP_BODY_SSE,
    NGX_HTTP_MCP_BODY_LINES,    /* newline-delimited JSON, of a feed only */
    NGX_HTTP_MCP_BODY_OTHER
} ngx_http_mcp_body_e;


typedef struct {
    /*
     * The response's status and headers are there (x->status, x->body,
     * x->session, ...).  May be NULL.
     */
    void                  (*header)(ngx_http_mcp_exchange_t *x);

    /*
     * One whole message: the data of one SSE event, or a JSON body that was
     * at most NGX_HTTP_MCP_WHOLE bytes.  The text is valid during the call,
     * already scanned (x->scan has the members), and may be changed by it.
     * May be NULL.  Of a feed: any event or line, not scanned.
     */
    void                  (*message)(ngx_http_mcp_exchange_t *x,
                                ngx_str_t *text);

    /*
     * A piece of a JSON body larger than that, in order, scanned as it passes
     * and valid during the call.  Once the body has proved to be whole, one
     * more call has last set and in NULL.  NGX_OK, or NGX_AGAIN: not taken,
     * hold (see ngx_http_mcp_exchange_resume()).  NULL: bodies are gathered
     * up to x->limit and given to message().
     */
    ngx_int_t             (*piece)(ngx_http_mcp_exchange_t *x, ngx_chain_t *in,
                                ngx_uint_t last);

    /* the end, called exactly once unless r dies first */
    void                  (*done)(ngx_http_mcp_exchange_t *x,
                                ngx_http_mcp_outcome_e outcome);
} ngx_http_mcp_exchange_handlers_t;

#define NGX_HTTP_MCP_WHOLE  65536


/* so much of a body is kept as its sample */

#define NGX_HTTP_MCP_SAMPLE  200


/* the values of $mcp_method, $mcp_name, $mcp_request_id inside an exchange */

typedef struct {
    ngx_str_t                          method;
    ngx_str_t                          name;
    ngx_str_t                          request_id;
    ngx_uint_t                         dots;   /* they made a dot segment */
} ngx_http_mcp_scope_t;


struct ngx_http_mcp_exchange_s {
    /*
     * in; set by the caller after ngx_http_mcp_exchange_create().  Pointers
     * have to be valid as long as r.
     */
    ngx_http_request_t                *r;
    ngx_http_mcp_exchange_handlers_t  *handlers;
    void                              *data;
    ngx_http_mcp_scope_t              *scope;
    ngx_mcp_zone_t                    *zone;        /* NULL: is not counted */
    ngx_mcp_metric_t                  *metric;      /* likewise */
    ngx_str_t                         *endpoint;    /* of the metric */
    ngx_str_t                          name;        /* upstream, for the log */
    ngx_str_t                          uri;         /* of the location */
    ngx_str_t                          args;
    ngx_uint_t                         method;      /* NGX_HTTP_POST, ... */
    ngx_chain_t                       *request;     /* body, in memory */
    size_t                             request_len;
    unsigned                           client_headers:1;  /* r's cross (2.3) */
    ngx_str_t                          session_id;  /* sent, if not empty */
    ngx_str_t                          last_event_id;
    ngx_str_t                          protocol_version;
    ngx_array_t                       *minted;      /* further ones, of
                                                       ngx_table_elt_t, or
                                                       NULL */
    ngx_msec_t                         timeout;     /* silence; 0: none */
    ngx_msec_t                         total;       /* whole; 0: none */
    size_t                             limit;       /* mcp_message_limit */
    ngx_uint_t                         level;       /* failures are logged at */
    ngx_str_t                          sample;      /* room for the body's first
                                                       bytes, or data NULL */

    /*
     * A GET for events, SSE or lines: one over the limit is left out, anything
     * but a stream ends the exchange.
     */
    unsigned                           feed:1;

    /* out; valid from header() on */
    ngx_uint_t                         status;      /* 0: no answer */
    ngx_uint_t                         body;        /* ngx_http_mcp_body_e */
    ngx_str_t                          session;     /* Mcp-Session-Id */
    ngx_list_t                         headers;     /* that reach the client:
                                                       ngx_table_elt_t */
    ngx_str_t                          refusal;     /* of a JSON-RPC error that
                                                       has no id: its "error",
                                                       raw; else empty */
    ngx_str_t                          quote;       /* the beginning of a body
                                                       that is no message */
    ngx_mcp_json_t                    *scan;        /* of the message at hand,
                                                       during message() and
                                                       piece() */
    ngx_mcp_sse_t                     *sse;         /* of a stream, else NULL;
                                                       id: last event id */
    ngx_mcp_lines_t                   *lines;       /* of lines, likewise */

    /* private */
    ngx_http_request_t                *sr;
    void                              *capture;
};


/* NULL when memory ran out; everything in is zero but r, limit 4m,
   POST and level "error" */
ngx_http_mcp_exchange_t *ngx_http_mcp_exchange_create(ngx_http_request_t *r);

/* limits both time-outs of one that has not started to this time, ms */
void ngx_http_mcp_exchange_limit_time(ngx_http_mcp_exchange_t *x,
    ngx_msec_t time);

/* it is sent with this header, too; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_headers_mint(ngx_http_mcp_exchange_t *x,
    ngx_str_t *name, ngx_str_t *value);

/*
 * Starts the subrequest.  NGX_OK: done() will come, in a later event or in
 * this call's ngx_http_run_posted_requests(); NGX_ERROR: it will not.
 */
ngx_int_t ngx_http_mcp_exchange_start(ngx_http_mcp_exchange_t *x);

/*
 * Stops it at the next event; done(NGX_HTTP_MCP_ABORTED) follows, never from
 * within this call.
 */
void ngx_http_mcp_exchange_abort(ngx_http_mcp_exchange_t *x);

/*
 * All that matters has come.  The rest of a stream is read, so that the
 * connection can be used again, but not for long: done(NGX_HTTP_MCP_OK) follows
 * soon.
 */
void ngx_http_mcp_exchange_answered(ngx_http_mcp_exchange_t *x);

/*
 * Backpressure: while held, the upstream is read no further than one buffer
 * and its silence does not count.
 */
void ngx_http_mcp_exchange_pause(ngx_http_mcp_exchange_t *x);
void ngx_http_mcp_exchange_resume(ngx_http_mcp_exchange_t *x);

/* at the end of the configuration */
ngx_int_t ngx_http_mcp_exchange_init(ngx_conf_t *cf);

/*
 * Filters, installed by the module: they take over the responses of exchange
 * subrequests and pass all others on.  NGX_DECLINED: not ours.
 */
ngx_int_t ngx_http_mcp_exchange_header_filter(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_exchange_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);

/*
 * Of a request inside an exchange (or of its error page): the exchange; NULL
 * for any other.
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_exchange_of(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_EXCHANGE_H_INCLUDED_ */
