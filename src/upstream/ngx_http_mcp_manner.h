
/*
 * The manners of upstreams: how a request is opened, healed, resumed and ended
 * at upstreams of one kind.  A manner is a table of functions; all that
 * differs between kinds of upstreams is in these, and
 * ngx_http_mcp_upstream_request.c knows none of the kinds.  To add a
 * kind, add a table, and its line in ngx_http_mcp_manner_of().
 */

#ifndef _NGX_HTTP_MCP_MANNER_H_INCLUDED_
#define _NGX_HTTP_MCP_MANNER_H_INCLUDED_


#include "ngx_http_mcp_profile.h"
#include "ngx_http_mcp_upstream_request.h"


/* whether an upstream has lost what open() had found or made there */

typedef enum {
    NGX_HTTP_MCP_KEPT = 0,
    NGX_HTTP_MCP_LOST,
    NGX_HTTP_MCP_LOST_REFUSED,      /* if it answers an error without an id */
    NGX_HTTP_MCP_LOST_UNANSWERED    /* likewise, or if it says nothing else */
} ngx_http_mcp_lost_e;


/* the meaning of a GET stream that could not be opened */

typedef enum {
    NGX_HTTP_MCP_RETRY = 0,
    NGX_HTTP_MCP_NO_EVENT,          /* the last event id is not known */
    NGX_HTTP_MCP_CONFLICT,          /* the session has another stream */
    NGX_HTTP_MCP_NO_STREAM          /* it offers none */
} ngx_http_mcp_refusal_e;


struct ngx_http_mcp_manner_s {

    ngx_uint_t    protocol;         /* ngx_http_mcp_protocol_e */
    ngx_uint_t    kind;             /* ngx_mcp_profile_e */

    /* the upstream has GET streams: to listen to, and to resume others */
    ngx_uint_t    streams;

    /* the upstream keeps sessions, with subscriptions */
    ngx_uint_t    sessions;

    /* it notifies of resources that are subscribed to ... */
    ngx_uint_t    updates;

    /* ... which the request that opens the stream names */
    ngx_uint_t    filters;

    /*
     * Makes the upstream ready for the message.  NGX_OK: it is ready;
     * NGX_AGAIN: ngx_http_mcp_upstream_request_next() is called when it is, or
     * the request has failed; NGX_DECLINED: the message is not for this
     * upstream; NGX_ERROR.  May be NULL, as the functions below.
     */
    ngx_int_t   (*open)(ngx_http_mcp_upstream_request_t *ureq);

    /* adds to the exchange of the message; NGX_OK or NGX_ERROR */
    ngx_int_t   (*head)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_exchange_t *x);

    /*
     * Gets each message of the upstream first, and may change it: it is
     * scanned again then.  NGX_OK; NGX_DECLINED: nobody else gets the message.
     */
    ngx_int_t   (*message)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_str_t *text);

    /*
     * The exchange of the message has ended.  NGX_OK: the request is resumed
     * or ended as for any kind; NGX_AGAIN: the manner goes on with it, and
     * calls ngx_http_mcp_upstream_request_next() or .._end().
     */
    ngx_int_t   (*done)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_outcome_e outcome);

    /* whether a status means that the session is lost: ngx_http_mcp_lost_e */
    ngx_uint_t  (*lost)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_uint_t status);

    /* whether an upstream that lacks the method answers this status */
    ngx_uint_t  (*absent)(ngx_uint_t status);

    /* the upstream has lost what open() made: forgets it; open() follows */
    void        (*heal)(ngx_http_mcp_upstream_request_t *ureq);

    /* the request goes: others may do what open() was about to do */
    void        (*release)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Asks the upstream to end what open() has made, if it was not finished.
     * NGX_AGAIN: that is not known before the exchange ends.
     */
    ngx_int_t   (*end)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The GET of a reader did not open a stream: ngx_http_mcp_refusal_e.  news:
     * the attempt before ended in another way; that is logged.
     */
    ngx_uint_t  (*refused)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_outcome_e outcome, ngx_uint_t news);

    /*
     * For an upstream that tells its profile only to clients.  ask() makes of
     * the exchange the request of a client that sent this initialize or
     * server/discover; answer() turns the raw result into one of initialize,
     * data NULL: no memory.  answer() NULL: the result is one already.
     */
    ngx_int_t   (*ask)(ngx_http_mcp_exchange_t *x,
                    ngx_mcp_message_t *message);
    ngx_str_t   (*answer)(ngx_pool_t *pool, ngx_str_t *result);

    /*
     * Find out whether an upstream is of this kind.  probe() sends the first
     * request: NGX_OK or NGX_ERROR; NULL: this kind is never probed.
     * probe_head() adds to the exchange; probe_result() gets the result, which
     * is freed after that; probe_error() gets the JSON-RPC error; these may be
     * NULL.  probed(): the exchange has ended; sends the next request or ends.
     */
    ngx_int_t   (*probe)(ngx_http_mcp_probe_t *probe);
    ngx_int_t   (*probe_head)(ngx_http_mcp_probe_t *probe,
                    ngx_http_mcp_exchange_t *x);
    void        (*probe_result)(ngx_http_mcp_probe_t *probe, ngx_str_t *result,
                    ngx_uint_t revision);
    void        (*probe_error)(ngx_http_mcp_probe_t *probe, ngx_str_t *code,
                    ngx_str_t *error);
    void        (*probed)(ngx_http_mcp_probe_t *probe,
                    ngx_http_mcp_outcome_e outcome);
};


extern ngx_http_mcp_manner_t  ngx_http_mcp_rpc;
extern ngx_http_mcp_manner_t  ngx_http_mcp_legacy;
extern ngx_http_mcp_manner_t  ngx_http_mcp_modern;


/*
 * The manner of an upstream whose profile has this kind and revision; NULL:
 * there is none.  An upstream that knows both eras, or may, is used in that of
 * the client.  stateful: the client has a session.
 */
ngx_http_mcp_manner_t *ngx_http_mcp_manner_of(ngx_uint_t kind,
    ngx_uint_t revision, ngx_uint_t stateful);

/* the manner to probe with after this one (NULL: the first); NULL: no more */
ngx_http_mcp_manner_t *ngx_http_mcp_manner_next(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_manner_t *manner);

/* the manner that is configured, or that this worker knows; NULL: neither */
ngx_http_mcp_manner_t *ngx_http_mcp_manner(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t stateful);

/* this worker knows the upstream's kind from now on: ngx_mcp_profile_e */
void ngx_http_mcp_manner_keep(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t kind);

/* whether an upstream is known to tell of no updates */
ngx_uint_t ngx_http_mcp_updateless(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);


/* for manners: goes on from where it is, or fails; the last thing to be done */
void ngx_http_mcp_upstream_request_next(ngx_http_mcp_upstream_request_t *ureq);
void ngx_http_mcp_upstream_request_end(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);

/* goes on in so many ms */
void ngx_http_mcp_upstream_request_later(ngx_http_mcp_upstream_request_t *ureq,
    ngx_msec_t time);

/* the message is sent again, in a later event, after open() */
void ngx_http_mcp_upstream_request_reopen(
    ngx_http_mcp_upstream_request_t *ureq);

/* likewise, after the kind of the upstream was looked up again */
void ngx_http_mcp_upstream_request_renew(
    ngx_http_mcp_upstream_request_t *ureq);

/* fails, or succeeds without being sent, in a later event */
void ngx_http_mcp_upstream_request_post_end(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);

/* waits for another (ngx_http_mcp_waiter.h) */
void ngx_http_mcp_upstream_request_wait(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t kind, uint32_t hash);

/* an exchange of open() ended; 1: the request is to be left or is aborted */
ngx_uint_t ngx_http_mcp_upstream_request_stopped(
    ngx_http_mcp_upstream_request_t *ureq);


#endif /* _NGX_HTTP_MCP_MANNER_H_INCLUDED_ */
