
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The manners of upstreams: how an upstream request is opened, healed, resumed
 * and ended at upstreams of one kind.  A manner is a table of functions.  All
 * differences between kinds of upstreams are in these functions;
 * ngx_http_mcp_upstream_request.c knows none of the kinds.  To add a kind, add
 * a table, and a line to ngx_http_mcp_module.c.
 */

#ifndef _NGX_HTTP_MCP_MANNER_H_INCLUDED_
#define _NGX_HTTP_MCP_MANNER_H_INCLUDED_


#include "ngx_http_mcp_profile.h"
#include "ngx_http_mcp_upstream_request.h"


/* whether the upstream has lost the session that open() had found or made */

typedef enum {
    NGX_HTTP_MCP_KEPT = 0,
    NGX_HTTP_MCP_LOST,
    NGX_HTTP_MCP_LOST_REFUSED,      /* lost, if the upstream answers with an
                                       error without an id */
    NGX_HTTP_MCP_LOST_UNANSWERED    /* lost, if the upstream answers with such
                                       an error, or sends no message */
} ngx_http_mcp_lost_e;


/* why the upstream did not open the stream of a reader */

typedef enum {
    NGX_HTTP_MCP_RETRY = 0,         /* another attempt may succeed */
    NGX_HTTP_MCP_NO_EVENT,          /* the upstream does not know the last
                                       event id */
    NGX_HTTP_MCP_CONFLICT,          /* the session has another stream */
    NGX_HTTP_MCP_NO_STREAM          /* the upstream offers no stream */
} ngx_http_mcp_refusal_e;


struct ngx_http_mcp_manner_s {

    ngx_uint_t    protocol;         /* ngx_http_mcp_protocol_e */
    ngx_uint_t    kind;             /* ngx_mcp_profile_e */

    /* the upstream has GET streams, for events and to resume other streams */
    ngx_uint_t    streams;

    /* the upstream keeps sessions, with subscriptions */
    ngx_uint_t    sessions;

    /* the upstream notifies of updates of resources */
    ngx_uint_t    updates;

    /* the request that opens a stream names the resources of such updates */
    ngx_uint_t    filters;

    /*
     * For a method that the upstream lacks, it may answer with 404 or the like
     * (ngx_http_mcp_status_absent()).
     */
    ngx_uint_t    absent;

    /*
     * Makes the upstream ready for the message.  NGX_OK: the upstream is
     * ready; NGX_AGAIN: ngx_http_mcp_upstream_request_next() will be called
     * when it is ready, or the request has failed; NGX_DECLINED: the message
     * is not for this upstream; NGX_ERROR.  This and the functions below may
     * be NULL.
     */
    ngx_int_t   (*open)(ngx_http_mcp_upstream_request_t *ureq);

    /* completes the exchange that sends the message; NGX_OK or NGX_ERROR */
    ngx_int_t   (*head)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_exchange_t *x);

    /*
     * Gets each message of the upstream before ureq->message(), and may change
     * and scan it again.  NGX_OK; any other result: ureq->message() does not
     * get it.
     */
    ngx_int_t   (*message)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_str_t *text);

    /*
     * The exchange of the message has ended.  NGX_OK: the caller resumes or
     * ends the request, as for any kind; NGX_AGAIN: the manner goes on with
     * the request, and calls ngx_http_mcp_upstream_request_next() or .._end().
     */
    ngx_int_t   (*done)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_outcome_e outcome);

    /* whether this status means a loss of the session: ngx_http_mcp_lost_e */
    ngx_uint_t  (*lost)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_uint_t status);

    /*
     * Whether the first message of a response (text, scanned as ureq->x->scan)
     * says that the session is lost, whatever the status is.  text NULL: the
     * response has no message, and the beginning of its body (x->quote) counts.
     */
    ngx_uint_t  (*forgot)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_str_t *text);

    /*
     * Forgets the session that open() found or made, because the upstream has
     * lost it; open() is called again after that.
     */
    void        (*heal)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The request ends: if it is making a session for several requests, another
     * one of these may make the session from now on.
     */
    void        (*release)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Asks the upstream to end a session that open() has not finished.
     * NGX_OK; NGX_AGAIN: to be called again after the exchange under way,
     * because only then it is known whether there is a session.
     */
    ngx_int_t   (*end)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Tells why the request of a reader did not open a stream
     * (ngx_http_mcp_refusal_e).  news: the attempt before ended in another way,
     * so that this failure is to be logged.
     */
    ngx_uint_t  (*refused)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_outcome_e outcome, ngx_uint_t news);

    /*
     * For an upstream that tells its profile only to clients.  ask() makes the
     * exchange send this initialize or server/discover of a client: NGX_OK or
     * NGX_ERROR.  answer() turns the raw result into one of initialize, from
     * pool; data NULL: no memory.  answer is NULL if the result already is
     * one.
     */
    ngx_int_t   (*ask)(ngx_http_mcp_exchange_t *x,
                    ngx_mcp_message_t *message);
    ngx_str_t   (*answer)(ngx_pool_t *pool, ngx_str_t *result);

    /*
     * These find out whether an upstream is of this kind.  probe() sends the
     * first request: NGX_OK or NGX_ERROR; NULL: this kind is never probed.
     * probe_head() completes the exchange: NGX_OK or NGX_ERROR.
     * probe_result() gets the raw result, which is valid during the call;
     * probe_error() gets the JSON-RPC error.  These three may be NULL.
     * probed() is called at the end of the exchange; it sends the next request
     * or ends the probe.
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


/*
 * All manners, in the order in which an upstream is probed by them; the last
 * pointer is NULL.  To be set before workers start.
 */
extern ngx_http_mcp_manner_t  **ngx_http_mcp_manners;

extern ngx_http_mcp_manner_t  ngx_http_mcp_rpc;
extern ngx_http_mcp_manner_t  ngx_http_mcp_legacy;
extern ngx_http_mcp_manner_t  ngx_http_mcp_modern;
extern ngx_http_mcp_manner_t  ngx_http_mcp_events;


/*
 * The manner of an upstream whose profile has this kind (ngx_mcp_profile_e)
 * and revision; NULL: there is none.  If the upstream knows both eras, or may
 * know both, this is the manner of the client's era.  stateful: the client has
 * a session.
 */
ngx_http_mcp_manner_t *ngx_http_mcp_manner_of(ngx_uint_t kind,
    ngx_uint_t revision, ngx_uint_t stateful);

/*
 * The manner by which an upstream is probed after it was probed by "manner", or
 * the first one if "manner" is NULL.  NULL: there are no more.
 */
ngx_http_mcp_manner_t *ngx_http_mcp_manner_next(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_manner_t *manner);

/*
 * The manner of the upstream's kind, which is configured or which this worker
 * has noted.  NULL: the kind is neither configured nor noted.  stateful: the
 * client has a session.
 */
ngx_http_mcp_manner_t *ngx_http_mcp_manner(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t stateful);

/* notes the upstream's kind (ngx_mcp_profile_e) in this worker's record */
void ngx_http_mcp_manner_keep(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t kind);

/* whether an upstream is known not to notify of updates of resources */
ngx_uint_t ngx_http_mcp_updateless(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);

/* whether a GET may be answered so because the last event id is not known */
ngx_uint_t ngx_http_mcp_status_no_event(ngx_uint_t status);


/*
 * Functions for manners.  ..._next() continues the request at its step, and
 * ..._end() ends the request; ureq may be freed in both.
 */
void ngx_http_mcp_upstream_request_next(ngx_http_mcp_upstream_request_t *ureq);
void ngx_http_mcp_upstream_request_end(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);

/* continues the request after this time, ms */
void ngx_http_mcp_upstream_request_later(ngx_http_mcp_upstream_request_t *ureq,
    ngx_msec_t time);

/* the message is sent again, in a later event, after open() */
void ngx_http_mcp_upstream_request_reopen(
    ngx_http_mcp_upstream_request_t *ureq);

/* the message is sent again, after the upstream's kind was looked up again */
void ngx_http_mcp_upstream_request_renew(
    ngx_http_mcp_upstream_request_t *ureq);

/* ends the request with this outcome in a later event */
void ngx_http_mcp_upstream_request_post_end(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);

/*
 * Waits for something that another request does, here or in another worker
 * (kind and hash as in ngx_http_mcp_waiter.h), and continues the request then.
 */
void ngx_http_mcp_upstream_request_wait(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t kind, uint32_t hash);

/*
 * To be called when an exchange of open() has ended.  1: the request was
 * closed or aborted, and ureq may be freed.
 */
ngx_uint_t ngx_http_mcp_upstream_request_stopped(
    ngx_http_mcp_upstream_request_t *ureq);


#endif /* _NGX_HTTP_MCP_MANNER_H_INCLUDED_ */
