
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
 * (ngx_http_mcp_profile.h); it has a manner then (ngx_http_mcp_manner.h), and
 * all that differs between kinds of upstreams is in that.  open() makes it
 * ready for the message: where sessions are kept at the upstream it finds that
 * of the caller, waits for another request that makes it, or makes it, with the
 * client's own initialize, level and subscriptions.  If the upstream has
 * forgotten that, or is of another kind by now, the request is healed: begun
 * again, once, because the message cannot have run.  A stream that ends before
 * the answer is resumed.
 *
 * It lives in r->pool, where r is the request of a client or one that no client
 * waits for; the code is the same.  Handlers are called as those of an
 * exchange; ureq->x is the exchange whose answer it is.
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
    ngx_mcp_ref_t                     owner;      /* of the upstream session: a
                                                     client's session, or it is
                                                     a shared one itself */
    ngx_mcp_ref_t                     call;       /* is woken when another has
                                                     made it, or block 0 */
    ngx_str_t                         tenant;
    ngx_str_t                         capabilities;  /* declared if it is a
                                                     shared one; raw, or empty
                                                     */
    ngx_str_t                         client;     /* raw clientInfo, and */
    ngx_uint_t                        level;      /* of logs, of a client
                                                     without a session */

    /*
     * Of a caller without a session: writes its principal to *key, in r->pool,
     * and sets ureq->session.  Callers with the same principal share sessions
     * at the upstream.  May be NULL.
     */
    ngx_int_t (*principal)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *key);

    /*
     * Gives such a caller an upstream session that nobody else uses: sets
     * ureq->owner, ureq->session and ureq->capabilities.  NGX_OK; NGX_AGAIN:
     * the request has failed; NGX_ERROR.  NULL: the caller shares one.
     */
    ngx_int_t (*exclusive)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * That session is made.  NGX_OK: the message is sent; NGX_AGAIN: it waits
     * for ngx_http_mcp_upstream_request_wake(), or as long as
     * ngx_http_mcp_upstream_request_later() says, and this is called again.
     */
    ngx_int_t (*ready)(ngx_http_mcp_upstream_request_t *ureq);

    ngx_http_mcp_scope_t              scope;      /* of the message */
    ngx_str_t                         body;
    unsigned                          stateful:1; /* for a client with a
                                                     session */
    unsigned                          existing:1; /* only if it is made; else
                                                     NGX_DECLINED */
    unsigned                          session_only:1; /* done(OK), unsent,
                                                     if it keeps no sessions */
    unsigned                          client_waits:1;  /* for the answer */
    unsigned                          gives_state:1;  /* it has a requestState,
                                                     which nobody here made */
    unsigned                          get_stream:1;  /* opens the upstream's GET
                                                     stream, once; no body */
    ngx_str_t                         last_event_id;  /* for that, in the one
                                                     with this serial */
    ngx_uint_t                        serial;     /* existing: that one, or 0
                                                     for any */
    unsigned                          answered:1; /* set by message() when the
                                                     answer was in it */

    /* the GET stream is about to be asked for on ureq->us; may be NULL */
    void      (*before_stream)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The resources that the stream is to notify of, where the request that
     * opens it names them: a raw array from the request's pool; NGX_OK or
     * NGX_ERROR.  May be NULL.
     */
    ngx_int_t (*filter)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *uris);

    /* the answer is a stream; may be NULL */
    void      (*stream_opened)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The upstream wants input before it answers (ngx_http_mcp_input.h).
     * NGX_OK: the client is asked; ngx_http_mcp_upstream_request_answered()
     * follows, or the request is left or aborted; NGX_DECLINED: it cannot be.
     * May be NULL.
     */
    ngx_int_t (*input)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_http_mcp_input_t *input);

    /* the stream ended early, and is resumed in a while; may be NULL */
    void      (*interrupted)(ngx_http_mcp_upstream_request_t *ureq);

    /* may be NULL, as piece(): messages are of no interest */
    void      (*message)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_str_t *text);
    ngx_int_t (*piece)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_chain_t *in, ngx_uint_t last);
    void      (*done)(ngx_http_mcp_upstream_request_t *ureq,
                  ngx_http_mcp_outcome_e outcome);

    /* r ends, and done() does not come; may be NULL */
    void      (*destroyed)(ngx_http_mcp_upstream_request_t *ureq);

    void                             *data;

    /* out */
    ngx_http_mcp_exchange_t          *x;
    ngx_uint_t                        sessionless;  /* the upstream keeps no
                                                     sessions */
    ngx_str_t                         kind;       /* resultType of an extension,
                                                     raw, where the client may
                                                     know it; in r->pool */
    ngx_mcp_hint_t                    hint;       /* ttlMs, cacheScope of the
                                                     result */
    ngx_uint_t                        status;     /* the profile could not be
                                                     found out: HTTP status */
    ngx_str_t                         why;        /* and sentence for clients;
                                                     else empty */
    const char                       *refused;    /* the upstream does not take
                                                     the message: a sentence
                                                     for clients */
    ngx_str_t                         acknowledged;  /* stream_opened: URIs of
                                                     filter() that it notifies
                                                     of, raw, during the call;
                                                     or empty */
    ngx_mcp_upstream_session_t       *us;         /* the upstream session, or
                                                     NULL */
    ngx_str_t                         session;    /* $mcp_session_id, where it
                                                     is one that callers without
                                                     share */
    ngx_str_t                         minted;     /* raw id and progress token
                                                     in it, instead of */
    ngx_str_t                         own_id;     /* these, raw */
    ngx_str_t                         own_token;

    /* private */
    ngx_http_mcp_manner_t            *manner;
    ngx_http_mcp_handshake_t         *handshake;  /* its, while it opens */
    void                             *own;        /* the manner's, likewise, and
                                                     later */
    ngx_uint_t                        step;
    ngx_uint_t                        resumes;
    ngx_http_mcp_waiter_t             waiter;
    ngx_event_t                       event;
    ngx_str_t                         room;       /* for the message at hand */
    ngx_event_t                      *keep;       /* keeps the shared one; or
                                                     NULL */
    ngx_http_mcp_outcome_e            outcome;
    unsigned                          end_posted:1;  /* with this outcome */
    unsigned                          closed:1;   /* r is about to go, */
    unsigned                          end_pending:1;  /* when what was opened
                                                     can be ended */
    unsigned                          healed:1;
    unsigned                          lost:1;     /* what open() had made */
    unsigned                          newer:1;    /* the upstream now is of a
                                                     revision without sessions
                                                     */
    unsigned                          aborted:1;
    unsigned                          asking:1;   /* waits for input */
    unsigned                          received:1; /* a message */
};


/*
 * NGX_OK: done() will come; NGX_DECLINED: ureq->existing is set, and there is
 * no upstream session; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_start(
    ngx_http_mcp_upstream_request_t *ureq);

/* the doorbell said NGX_MCP_WAKE_UPSTREAM_SESSION for ureq->call */
void ngx_http_mcp_upstream_request_wake(ngx_http_mcp_upstream_request_t *ureq);

/* handlers->upstream_sessions: requests that wait for a session look again */
void ngx_http_mcp_upstream_request_doorbell(ngx_mcp_zone_t *zone,
    uint64_t keys);

/* done(NGX_HTTP_MCP_ABORTED) follows in a later event */
void ngx_http_mcp_upstream_request_abort(ngx_http_mcp_upstream_request_t *ureq);

/*
 * Frees what is not in r->pool (queue, events, claims); from the cleanup of
 * a request that goes away.  No callback is called afterwards.
 */
void ngx_http_mcp_upstream_request_cleanup(
    ngx_http_mcp_upstream_request_t *ureq);


/*
 * lost() of manners without sessions: the upstream may have become a server
 * that wants one.
 */
ngx_uint_t ngx_http_mcp_upstream_request_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t status);

/* whether the request ended because the upstream lacks the method */
ngx_uint_t ngx_http_mcp_upstream_request_absent(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);


/*
 * Makes an upstream request on a background request, for which no client
 * waits.  Sets r, upstream, tenant and the cleanup.  headers: of a client,
 * which are passed on, or NULL.  NULL: no memory or no connection.
 */
ngx_http_mcp_upstream_request_t *ngx_http_mcp_upstream_request_create(
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_audience_t *audience,
    ngx_http_headers_in_t *headers);

/*
 * Composes the message of an upstream request: its scope and body, with this
 * raw id, or without if that is empty (a notification).  Strings are copied.
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_compose(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *id, ngx_str_t *method,
    ngx_str_t *params);

/* starts such a request; it has to be closed even if it could not start */
ngx_int_t ngx_http_mcp_upstream_request_run(
    ngx_http_mcp_upstream_request_t *ureq);

/*
 * Closes such a request: no callback is called any more.  A session that was
 * being made at the upstream is ended.
 */
void ngx_http_mcp_upstream_request_close(ngx_http_mcp_upstream_request_t *ureq);

/*
 * An answer that was gathered from pieces, as message() would have got it.
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_upstream_request_gathered(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);


#endif /* _NGX_HTTP_MCP_UPSTREAM_REQUEST_H_INCLUDED_ */
