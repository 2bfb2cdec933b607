
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * One request to an upstream, from finding out its kind to the end of the last
 * exchange.
 *
 *     find out  ->  open  ->  send  ->  done
 *        ^            |         |
 *        +--- heal ---+---------+--- resume (GET, Last-Event-ID) -+
 *                               +---------------------------------+
 *
 * The kind of the upstream is configured or in its profile
 * (ngx_http_mcp_profile.h).  The kind has a manner (ngx_http_mcp_manner.h), in
 * which are all differences between kinds of upstreams.  open() of the manner
 * makes the upstream ready for the message.  If the upstream keeps sessions,
 * open() finds the caller's upstream session, waits for another request that
 * makes the session, or makes it, with the client's own initialize, level and
 * subscriptions.  If the upstream has forgotten the session, or is of another
 * kind by now, the request is healed: it is begun again, once, because the
 * message cannot have run.  A stream that ends before the answer is resumed.
 *
 * An upstream request lives in r->pool, where r is the request of a client or
 * a background request; the code is the same.  Handlers are called as those of
 * an exchange; ureq->x is the exchange under way.
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
    ngx_mcp_ref_t                     call;       /* call that is woken when
                                                     another request has made
                                                     the upstream session; block
                                                     0: none */
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
     * NGX_AGAIN: the request waits for ngx_http_mcp_upstream_request_wake(),
     * or for the time of ngx_http_mcp_upstream_request_later(), and then
     * ready() is called again.
     */
    ngx_int_t (*ready)(ngx_http_mcp_upstream_request_t *ureq);

    ngx_http_mcp_scope_t              scope;      /* variables of the message */
    ngx_str_t                         body;       /* the message */
    unsigned                          stateful:1; /* the client has a session
                                                     */
    unsigned                          existing:1; /* the message is sent in an
                                                     upstream session that
                                                     exists already, or not at
                                                     all */
    unsigned                          session_only:1; /* if the upstream keeps
                                                     no sessions, the message
                                                     is not sent, and done()
                                                     gets NGX_HTTP_MCP_OK */
    unsigned                          client_waits:1; /* a client waits for the
                                                     answer */
    unsigned                          gives_state:1;  /* the message has a
                                                     requestState that this
                                                     module did not make */
    unsigned                          get_stream:1; /* opens the upstream's GET
                                                     stream once; no body */
    ngx_str_t                         last_event_id;  /* Last-Event-ID of the
                                                     GET, or empty */
    ngx_uint_t                        serial;     /* serial of the upstream
                                                     session that last_event_id
                                                     or existing is about; 0:
                                                     any */
    unsigned                          answered:1; /* set by message() when it
                                                     has received the answer */

    /* the GET stream is about to be asked for on ureq->us; may be NULL */
    void      (*before_open)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Gives the resources whose updates the stream has to carry, if the
     * request that opens the stream names them: a raw array, from r->pool.
     * NGX_OK or NGX_ERROR.  May be NULL.
     */
    ngx_int_t (*filter)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *uris);

    /* the answer is a stream; may be NULL */
    void      (*stream_opened)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The upstream wants input before it answers (ngx_http_mcp_input.h).
     * NGX_OK: the client is asked, and then
     * ngx_http_mcp_upstream_request_answered() is called, or the request is
     * closed or aborted; NGX_DECLINED: the client cannot be asked, or need not
     * be.  May be NULL.
     */
    ngx_int_t (*input)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_http_mcp_input_t *input);

    /* the stream ended early, and is resumed in a while; may be NULL */
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

    /* set if the upstream has no profile, or its URI has a dot segment */
    ngx_uint_t                        status;     /* HTTP status for clients */
    ngx_str_t                         why;        /* sentence for clients */

    const char                       *refused;    /* sentence for clients that
                                                     says why the message cannot
                                                     be sent, or NULL */
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
    ngx_str_t                         sent_id;    /* raw id that the upstream
                                                     gets, also as the progress
                                                     token; or empty */
    ngx_str_t                         own_id;     /* raw id of the caller, or
                                                     empty */
    ngx_str_t                         own_token;  /* raw progress token of the
                                                     caller, or empty */

    /* private */
    ngx_http_mcp_manner_t            *manner;
    ngx_http_mcp_handshake_t         *handshake;  /* data of the manner, during
                                                     open() */
    void                             *own;        /* other data of the manner
                                                     */
    ngx_uint_t                        step;       /* step that is done now or
                                                     next */
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
    ngx_str_t                         room;       /* memory in r->pool for the
                                                     message whose id or token
                                                     was replaced last */
    ngx_event_t                      *keep;       /* timer that keeps the
                                                     shared upstream session;
                                                     or NULL */
    ngx_http_mcp_outcome_e            outcome;    /* outcome for done(), if
                                                     end_posted is set */
    unsigned                          end_posted:1;  /* event has a timer that
                                                     ends the request */
    unsigned                          closed:1;   /* r is about to be freed; no
                                                     handler is called */
    unsigned                          end_pending:1;  /* the manner's end() is
                                                     called once more before r
                                                     is freed */
    unsigned                          healed:1;   /* the request was begun
                                                     again, or must not be begun
                                                     again */
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
                                                     not set the level */
    unsigned                          received:1; /* a message was received */
    unsigned                          examined:1; /* the first message was
                                                     checked for the loss of the
                                                     session */
    unsigned                          unsure:1;   /* the upstream may be of
                                                     another kind now, because
                                                     it did not answer last */
};


/*
 * Starts the request, after its "in" members were set.  NGX_OK: done() will be
 * called; NGX_DECLINED: ureq->existing is set and there is no upstream
 * session, or the message is not for this upstream; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_start(
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * To be called when the call ureq->call was woken with
 * NGX_MCP_WAKE_UPSTREAM_SESSION: the request looks for its session again.
 */
void ngx_http_mcp_upstream_request_wake(ngx_http_mcp_upstream_request_t *ureq);

/*
 * The doorbell rang (handlers->upstream_sessions): requests that wait for an
 * upstream session look again.
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
 * lost() of a manner whose upstreams keep no sessions: status 400 may mean that
 * the upstream has become a server that wants a session.
 */
ngx_uint_t ngx_http_mcp_upstream_request_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t status);

/* whether the request ended because the upstream lacks the method */
ngx_uint_t ngx_http_mcp_upstream_request_absent(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);


/*
 * Makes an upstream request on a background request.  Sets r, upstream,
 * tenant, capabilities and the cleanup.  headers: of a client, which are
 * copied and passed on, or NULL.  NULL: no memory or no connection.
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
 * Starts such a request and runs its subrequests; gives what
 * ngx_http_mcp_upstream_request_start() gives.  The caller has to close the
 * request in any case.
 */
ngx_int_t ngx_http_mcp_upstream_request_run(
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * Closes such a request; no callback is called any more.  A session that the
 * request was making at the upstream is ended.
 */
void ngx_http_mcp_upstream_request_close(ngx_http_mcp_upstream_request_t *ureq);

/*
 * Turns an answer that was gathered from pieces into the text that message()
 * would have got.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_gathered(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);


#endif /* _NGX_HTTP_MCP_UPSTREAM_REQUEST_H_INCLUDED_ */
