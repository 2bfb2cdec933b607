
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * One request to an upstream, from the look-up of the upstream's kind to the
 * end of the last exchange.
 *
 *     profile  ->  open  ->  send  ->  done
 *        ^           |         |
 *        +--- heal --+---------+--- resume (GET, Last-Event-ID) -+
 *                              +---------------------------------+
 *
 * The kind of the upstream is configured or in its profile
 * (ngx_http_mcp_profile.h).  Each kind has a manner (ngx_http_mcp_manner.h),
 * which has all differences between kinds of upstreams.  open() of the manner
 * prepares the upstream for the message.  If the upstream keeps sessions,
 * open() finds the caller's upstream session, waits for another request that
 * makes the session, or makes it, with the client's own initialize, log level
 * and subscriptions.  If the upstream has forgotten the session, or has become
 * a server of another kind, the request is healed: it is begun again, once,
 * because the message cannot have run.  A stream that ends before the answer is
 * resumed.
 *
 * An upstream request lives in r->pool, where r is the request of a client or
 * a background request; the same code serves both.  Handlers are called as
 * those of an exchange; ureq->x is the current exchange.
 */

#ifndef _NGX_HTTP_MCP_UPSTREAM_REQUEST_H_INCLUDED_
#define _NGX_HTTP_MCP_UPSTREAM_REQUEST_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


typedef struct ngx_http_mcp_manner_s            ngx_http_mcp_manner_t;
typedef struct ngx_http_mcp_handshake_s         ngx_http_mcp_handshake_t;
typedef struct ngx_http_mcp_input_s             ngx_http_mcp_input_t;
typedef struct ngx_http_mcp_upstream_request_s  ngx_http_mcp_upstream_request_t;

struct ngx_http_mcp_upstream_request_s {
    /* in */
    ngx_http_request_t               *r;
    ngx_http_mcp_upstream_t          *upstream;
    ngx_mcp_ref_t                     owner;      /* owner of the upstream
                                                     session: a client's
                                                     session or a shared
                                                     upstream session */
    ngx_mcp_ref_t                     call;       /* call to wake when another
                                                     request has made the
                                                     upstream session; block 0:
                                                     none */
    ngx_str_t                         tenant;
    ngx_str_t                         capabilities;  /* declared in a shared
                                                     upstream session; raw, or
                                                     empty */

    /* data that a client without a session sends with each request */
    ngx_str_t                         client;     /* raw clientInfo */
    ngx_uint_t                        level;      /* log level */

    /*
     * For a caller without a session: writes its principal to *key, in
     * r->pool, and sets ureq->session and ureq->share.  Callers with the same
     * principal share sessions at the upstream.  NGX_OK or NGX_ERROR.  NULL:
     * the caller has a session.
     */
    ngx_int_t (*principal)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *key);

    /*
     * Gives a caller without a session an exclusive session: sets ureq->owner,
     * ureq->session and ureq->capabilities.  NGX_OK; NGX_AGAIN: the request
     * has failed; NGX_ERROR.  NULL: the caller shares an upstream session.
     */
    ngx_int_t (*exclusive)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The exclusive session has been made.  NGX_OK: the message may be sent;
     * NGX_AGAIN: ready() is called again after
     * ngx_http_mcp_upstream_request_wake(), or after the time that was set by
     * ngx_http_mcp_upstream_request_later().  May be NULL.
     */
    ngx_int_t (*ready)(ngx_http_mcp_upstream_request_t *ureq);

    ngx_http_mcp_scope_t              scope;      /* variables of the message */
    ngx_str_t                         body;       /* the message */
    unsigned                          stateful:1; /* the client has a session
                                                     */
    unsigned                          existing:1; /* the message is sent only if
                                                     the upstream session
                                                     already exists */
    unsigned                          session_only:1; /* if the upstream keeps
                                                     no sessions, the message
                                                     is not sent, and done()
                                                     gets NGX_HTTP_MCP_OK */
    unsigned                          client_waits:1; /* a client waits for the
                                                     answer */
    unsigned                          gives_state:1;  /* the message has a
                                                     requestState that this
                                                     module did not make */
    unsigned                          get_stream:1;  /* opens the upstream's
                                                        stream of events, once;
                                                        no body */
    ngx_str_t                         last_event_id;  /* Last-Event-ID of the
                                                     GET, or empty */
    ngx_uint_t                        serial;     /* serial of the upstream
                                                     session to which
                                                     last_event_id or existing
                                                     refers; 0: any */
    unsigned                          answered:1; /* set by message() when it
                                                     has received the answer */

    /* the stream is about to be requested in ureq->us; may be NULL */
    void      (*before_open)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Sets *uris to the resources whose updates the stream has to carry: a raw
     * array, from r->pool.  Called if the request that opens the stream names
     * them.  NGX_OK or NGX_ERROR.  May be NULL.
     */
    ngx_int_t (*filter)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *uris);

    /* the answer is a stream; may be NULL */
    void      (*stream_opened)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The upstream wants input of the client before it answers
     * (ngx_http_mcp_input.h).  NGX_OK: the client gets the requests, and its
     * answers lead to ngx_http_mcp_upstream_request_answered(), unless the
     * request is closed or aborted before; NGX_DECLINED: the client cannot
     * receive the requests, or there are none.  May be NULL.
     */
    ngx_int_t (*input)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_http_mcp_input_t *input);

    /* the stream ended early and will be resumed; may be NULL */
    void      (*interrupted)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Handlers of the exchange that sends the message, as those of
     * ngx_http_mcp_exchange.h; message, piece and skipped may be NULL.
     */
    void      (*message)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *text);
    ngx_int_t (*piece)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_chain_t *in, ngx_uint_t last);
    void      (*skipped)(ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t n);
    void      (*done)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_http_mcp_outcome_e outcome);

    /* r is freed, and done() will not be called; may be NULL */
    void      (*destroyed)(ngx_http_mcp_upstream_request_t *ureq);

    void                             *data;

    /* out */
    ngx_http_mcp_exchange_t          *x;          /* the last exchange, or NULL
                                                     */
    ngx_uint_t                        sessionless;  /* the upstream keeps no
                                                     sessions */
    ngx_str_t                         kind;       /* raw resultType of an
                                                     extension that the client
                                                     may know; in r->pool */
    ngx_mcp_hint_t                    hint;       /* ttlMs, cacheScope of the
                                                     result */

    /*
     * If the request failed before the message was sent (no profile, a dot
     * segment in the URI, no room in the zone): HTTP status and sentence for
     * the client.
     */
    ngx_uint_t                        status;
    ngx_str_t                         why;

    const char                       *refused;    /* sentence for clients about
                                                     why the message is not
                                                     acceptable, or NULL */
    ngx_str_t                         acknowledged;  /* for stream_opened():
                                                     raw array of those URIs of
                                                     filter() that the upstream
                                                     has accepted, or empty */
    ngx_mcp_upstream_session_t       *us;         /* the upstream session, or
                                                     NULL */

    /* for a caller without a session */
    ngx_str_t                         session;    /* $mcp_session_id */
    ngx_str_t                         share;      /* key of the account to
                                                     which the session at the
                                                     upstream counts */
    ngx_str_t                         sent_id;    /* raw id that is sent to the
                                                     upstream, also as the
                                                     progress token; or empty */
    ngx_str_t                         caller_id;  /* raw id of the caller, or
                                                     empty */
    ngx_str_t                         caller_token;  /* raw progress token of
                                                     the caller, or empty */

    /* private */
    ngx_http_mcp_manner_t            *manner;
    ngx_http_mcp_handshake_t         *handshake;  /* data of the manner, during
                                                     open() */
    void                             *ctx;        /* other data of the manner
                                                     */
    ngx_uint_t                        step;       /* current or next step */
    ngx_uint_t                        resumes;    /* number of times that the
                                                     stream was resumed */
    ngx_msec_t                        sent;       /* time at which the message
                                                     was sent */
    ngx_http_mcp_waiter_t             waiter;
    ngx_event_t                       event;
    ngx_http_mcp_exchange_t          *get;        /* exchange of the GET that
                                                     was refused, while a ping
                                                     asks for the session; or
                                                     NULL */
    ngx_str_t                         buffer;     /* memory in r->pool for the
                                                     message whose id or token
                                                     was replaced last */
    ngx_event_t                      *extend;     /* timer that extends the
                                                     life of the shared upstream
                                                     session; or NULL */
    ngx_http_mcp_outcome_e            outcome;    /* outcome for done(), if
                                                     end_posted is set */
    unsigned                          end_posted:1;  /* event has a timer that
                                                     ends the request */
    unsigned                          closed:1;   /* r is about to be freed; no
                                                     handler is called */
    unsigned                          end_pending:1;  /* the manner's end() is
                                                     called once more before r
                                                     is freed */
    unsigned                          healed:1;   /* the request was healed, or
                                                     must not be healed */
    unsigned                          lost:1;     /* the upstream has lost the
                                                     session of open() */
    unsigned                          newer:1;    /* the upstream now is of a
                                                     revision without sessions
                                                     */
    unsigned                          aborted:1;  /* ..._request_abort() was
                                                     called */
    unsigned                          asking:1;   /* the request waits for input
                                                     of the client */
    unsigned                          level_refused:1;  /* the upstream did
                                                     not set the log level */
    unsigned                          received:1; /* a message was received */
    unsigned                          examined:1; /* the first message was
                                                     checked for a loss of the
                                                     session */
    unsigned                          unsure:1;   /* the upstream's kind may
                                                     have changed, because its
                                                     last request was not
                                                     answered */
};


/*
 * Starts the request, after its "in" members were set.  NGX_OK: done() will be
 * called; NGX_DECLINED: ureq->existing is set and there is no upstream
 * session, or this upstream does not get such messages; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_start(
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * To be called when ureq->call was woken with NGX_MCP_WAKE_UPSTREAM_SESSION:
 * the request looks up its session again.
 */
void ngx_http_mcp_upstream_request_wake(ngx_http_mcp_upstream_request_t *ureq);

/*
 * The doorbell rang (handlers->upstream_sessions): requests that wait for an
 * upstream session look it up again.
 */
void ngx_http_mcp_upstream_request_doorbell(ngx_mcp_zone_t *zone,
    uint64_t keys);

/* aborts the request; done(NGX_HTTP_MCP_ABORTED) follows in a later event */
void ngx_http_mcp_upstream_request_abort(ngx_http_mcp_upstream_request_t *ureq);

/*
 * Frees what is not in r->pool (waiter, timers, claims); to be called by a
 * cleanup of r.  No callback is called afterwards.
 */
void ngx_http_mcp_upstream_request_cleanup(
    ngx_http_mcp_upstream_request_t *ureq);


/*
 * lost() of manners whose upstreams keep no sessions: status 400 may mean that
 * the upstream was replaced by a server that requires a session.
 */
ngx_uint_t ngx_http_mcp_upstream_request_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t status);

/* whether the request ended because the upstream lacks the method */
ngx_uint_t ngx_http_mcp_upstream_request_absent(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);


/*
 * Makes an upstream request on a background request.  Sets r, upstream,
 * tenant, capabilities and the cleanup.  headers: headers of a client, which
 * are copied and sent to the upstream, or NULL.  NULL: no memory or no
 * connection.
 */
ngx_http_mcp_upstream_request_t *ngx_http_mcp_upstream_request_create(
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_audience_t *audience,
    ngx_http_headers_in_t *headers);

/*
 * Composes the message of such a request: sets its scope and body.  id: raw,
 * or empty for a notification.  Strings are copied.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_compose(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *id, ngx_str_t *method,
    ngx_str_t *params);

/*
 * Starts such a request and runs its subrequests; returns the result of
 * ngx_http_mcp_upstream_request_start().  The caller has to close the request
 * in any case.
 */
ngx_int_t ngx_http_mcp_upstream_request_run(
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * Closes such a request; no callback is called any more.  A session that the
 * request was making at the upstream is ended.
 */
void ngx_http_mcp_upstream_request_close(ngx_http_mcp_upstream_request_t *ureq);

/*
 * Translates an answer that the caller gathered from pieces to the text that
 * message() would have received.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_gathered(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);


#endif /* _NGX_HTTP_MCP_UPSTREAM_REQUEST_H_INCLUDED_ */
