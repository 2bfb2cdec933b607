
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Private parts of an exchange, for the files that implement it: the state of
 * the subrequest and its response, and the functions that these files call in
 * each other.
 */

#ifndef _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_
#define _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_


#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_exchange.h"


/* the treatment of the bytes of the body */

typedef enum {
    NGX_HTTP_MCP_DROP = 0,      /* ignored */
    NGX_HTTP_MCP_GATHER,        /* gathered to one message */
    NGX_HTTP_MCP_COLLECT,       /* kept in pieces until the end has come */
    NGX_HTTP_MCP_PASS,          /* given to piece() */
    NGX_HTTP_MCP_PARSE,         /* parsed as SSE */
    NGX_HTTP_MCP_SPLIT          /* split into lines */
} ngx_http_mcp_mode_e;


typedef struct {
    ngx_http_mcp_exchange_t    *exchange;
    ngx_pool_t                 *pool;       /* of the exchange */
    ngx_chain_t                *in;         /* received, not processed yet */
    ngx_chain_t               **last_in;

    /* debug builds log the fd of what a timer's data points to */
    ngx_socket_t                fd;

    ngx_event_t                 event;      /* posted; its timer checks both
                                               time-outs */
    ngx_event_t                *delay;      /* delay by limit_req; or NULL */
    ngx_uint_t                  limit_req;  /* limit_req_status of the main
                                               request at that time */
    ngx_uint_t                  limit_conn; /* limit_conn_status, likewise */

    ngx_http_request_body_t     body;       /* body of the subrequest */
    u_char                      body_len[NGX_SIZE_T_LEN];
    ngx_http_post_subrequest_t  post;
    ngx_http_handler_pt         content;    /* content handler of the
                                               subrequest's location */
    ngx_msec_t                  timeout;    /* allowed silence, ms; 0: any */
    ngx_msec_t                  alive;      /* time of the last sign of life */
    ngx_msec_t                  started;    /* time of the start */

    ngx_uint_t                  mode;       /* ngx_http_mcp_mode_e */
    off_t                       length;     /* of the body, -1: not known */
    size_t                      received;   /* bytes of the body so far */
    u_char                     *text;       /* the gathered body, */
    size_t                      len;        /* its length */
    size_t                      size;       /* and its room */

    ngx_chain_t                *pieces;     /* the collected body */
    ngx_chain_t               **last_piece;
    ngx_buf_t                  *piece;      /* the last of them, or NULL */

    ngx_int_t                   rc;         /* result of the subrequest */
    ngx_http_mcp_outcome_e      outcome;    /* for done(), if stop is set */

    unsigned                    header:1;   /* the response's header came */
    unsigned                    opened:1;   /* header() was called */
    unsigned                    delivered:1;  /* message() or piece() was
                                               called */
    unsigned                    scanned:1;  /* the first buffer of cap->in was
                                               scanned */
    unsigned                    last:1;     /* no more of cap->in will come */
    unsigned                    finished:1; /* the body was processed to its
                                               end */
    unsigned                    refused:1;  /* the content type of the body is
                                               not accepted */
    unsigned                    probed:1;   /* TCP probes a silent upstream */
    unsigned                    left_out:1; /* an event was left out; this is
                                               logged once */
    unsigned                    held:1;     /* paused until it is resumed */
    unsigned                    resumed:1;  /* go on after a pause */
    unsigned                    theirs:1;   /* the read timer of nginx's
                                               upstream measures the silence,
                                               not the exchange's timer */
    unsigned                    ended:1;    /* the subrequest has ended */
    unsigned                    answered:1; /* the rest is of no interest */
    unsigned                    stop:1;     /* to be ended early */
    unsigned                    done:1;     /* done() was called, or r died */
} ngx_http_mcp_capture_t;


/* whether an upstream module (proxy, ...) runs the subrequest */

#define ngx_http_mcp_capture_live(sr)                                         \
    ((sr)->upstream && (sr)->upstream->cleanup)

/* whether that module reads no further until its buffer is consumed */

#define ngx_http_mcp_capture_unbuffered(sr)                                   \
    (ngx_http_mcp_capture_live(sr) && !(sr)->upstream->buffering)


/*
 * A pool for an exchange of r and its subrequest.  It lives as long as r, and
 * is then kept for another exchange.  NULL: no memory.
 */
ngx_pool_t *ngx_http_mcp_exchange_pool(ngx_http_request_t *r);

/* the filters received the response's header, or a part of its body */
void ngx_http_mcp_capture_header(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
void ngx_http_mcp_capture_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r, ngx_chain_t *in);

/* processes cap->in, unless the exchange is paused */
void ngx_http_mcp_capture_process(ngx_http_mcp_exchange_t *x);

/* ends the exchange in a later event; the caller has logged the cause */
void ngx_http_mcp_capture_stop(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);

/* calls header(), once */
void ngx_http_mcp_capture_open(ngx_http_mcp_exchange_t *x);

/*
 * Gives the new subrequest the headers to send: those of x, and those of the
 * client if x->client_headers is set.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_headers_build(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * Copies Mcp-Session-Id and the headers that reach the client from the
 * response to x->session and x->headers.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_headers_collect(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* the Content-Encoding of a response, or NULL if its body is not encoded */
ngx_str_t *ngx_http_mcp_headers_encoding(ngx_http_request_t *sr);

/* the kind of body by the response's headers: ngx_http_mcp_body_e */
ngx_uint_t ngx_http_mcp_headers_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* adapts nginx's time-outs and buffering when the subrequest starts */
void ngx_http_mcp_adapt_request(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* the same once the response's header has come; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_adapt_response(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * For a response that takes long: only the exchange measures its silence, and
 * TCP keep-alive detects an upstream that died.  Gives 0 if the upstream is
 * not connected yet: the caller tries again later.
 */
ngx_uint_t ngx_http_mcp_adapt_probe(ngx_http_mcp_exchange_t *x);


#endif /* _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_ */
