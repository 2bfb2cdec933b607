
/*
 * Private parts of an exchange, shared by the files of this folder: the state
 * of the subrequest's response and the steps that one file asks of another.
 */

#ifndef _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_
#define _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_


#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_exchange.h"


/* the way that the bytes of the body take */

typedef enum {
    NGX_HTTP_MCP_DROP = 0,
    NGX_HTTP_MCP_GATHER,
    NGX_HTTP_MCP_PASS,
    NGX_HTTP_MCP_PARSE,
    NGX_HTTP_MCP_SPLIT
} ngx_http_mcp_mode_e;


typedef struct {
    ngx_http_mcp_exchange_t    *exchange;
    ngx_chain_t                *in;         /* received, not taken yet */
    ngx_chain_t               **last_in;

    /* debug builds log the fd of what a timer's data points to */
    ngx_socket_t                fd;

    ngx_event_t                 event;      /* posted; its timer ends a silence
                                               or the whole exchange */
    ngx_event_t                *delay;      /* of limits; NULL: none */
    ngx_uint_t                  limit_req;  /* status when it was delayed */
    ngx_uint_t                  limit_conn;

    ngx_http_request_body_t     body;       /* of the subrequest */
    u_char                      body_len[NGX_SIZE_T_LEN];
    ngx_http_post_subrequest_t  post;
    ngx_http_handler_pt         content;    /* of the subrequest's location */
    ngx_msec_t                  timeout;    /* of silence */
    ngx_msec_t                  alive;      /* when the last byte came */
    ngx_msec_t                  started;

    ngx_uint_t                  mode;       /* ngx_http_mcp_mode_e */
    off_t                       length;     /* of the body, -1: not known */
    size_t                      received;
    u_char                     *text;       /* gathered */
    size_t                      len;
    size_t                      size;

    ngx_int_t                   rc;         /* the subrequest ended with */
    ngx_http_mcp_outcome_e      outcome;    /* if stopped */

    unsigned                    header:1;   /* the response's header came */
    unsigned                    opened:1;   /* header() was called */
    unsigned                    delivered:1;
    unsigned                    scanned:1;  /* the first of cap->in */
    unsigned                    last:1;     /* no more of cap->in will come */
    unsigned                    finished:1; /* the body was taken to its end */
    unsigned                    refused:1;  /* of a type that is not taken */
    unsigned                    probed:1;   /* by TCP, while it is silent */
    unsigned                    left_out:1; /* an event was; it is logged */
    unsigned                    held:1;
    unsigned                    resumed:1;
    unsigned                    theirs:1;   /* the upstream's own read timer
                                               counts, not ours */
    unsigned                    ended:1;    /* the subrequest has */
    unsigned                    answered:1; /* the rest is of no interest */
    unsigned                    stop:1;     /* before its end */
    unsigned                    done:1;     /* done() was called, or r died */
} ngx_http_mcp_capture_t;


/* whether an upstream module runs the subrequest ... */

#define ngx_http_mcp_capture_live(sr)                                         \
    ((sr)->upstream && (sr)->upstream->cleanup)

/* ... and does not read on while its buffers are not taken */

#define ngx_http_mcp_capture_unbuffered(sr)                                   \
    (ngx_http_mcp_capture_live(sr) && !(sr)->upstream->buffering)


/* the response's header, and a part of its body */
void ngx_http_mcp_capture_header(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r);
void ngx_http_mcp_capture_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *r, ngx_chain_t *in);

/* takes what came, unless held */
void ngx_http_mcp_capture_process(ngx_http_mcp_exchange_t *x);

/* ends the exchange at the next event; the cause was logged */
void ngx_http_mcp_capture_stop(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);

/* calls header(), once */
void ngx_http_mcp_capture_open(ngx_http_mcp_exchange_t *x);

/* the request's headers: those of x, and of the client if they cross */
ngx_int_t ngx_http_mcp_headers_build(ngx_http_mcp_exchange_t *x,
    ngx_http_headers_in_t *in);

/* keeps Mcp-Session-Id and the response's headers that reach the client */
ngx_int_t ngx_http_mcp_headers_collect(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* the kind of body that the response's headers promise */
ngx_uint_t ngx_http_mcp_headers_body(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* time-outs and buffering of a subrequest's upstream, at its start ... */
void ngx_http_mcp_adapt_request(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/* ... and once its header came */
ngx_int_t ngx_http_mcp_adapt_response(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr);

/*
 * For a response that takes long: its silence is left to the exchange, and TCP
 * finds out whether the upstream is still there, so that one that died is not
 * waited for; 0: it is not connected yet
 */
ngx_uint_t ngx_http_mcp_adapt_probe(ngx_http_mcp_exchange_t *x);


#endif /* _NGX_HTTP_MCP_CAPTURE_H_INCLUDED_ */
