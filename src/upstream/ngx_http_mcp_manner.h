
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


/* whether the upstream has lost the session that open() found or made */

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

    /* upstreams have GET streams, for events and to resume other streams */
    ngx_uint_t    streams;

    /* upstreams keep sessions, with subscriptions */
    ngx_uint_t    sessions;

    /* upstreams send notifications/resources/updated */
    ngx_uint_t    updates;

    /* the request that opens a stream names the resources of such updates */
    ngx_uint_t    filters;

    /*
     * Upstreams may answer with 404 or the like (ngx_http_mcp_status_absent())
     * if they do not have the method.
     */
    ngx_uint_t    absent;

    /*
     * Prepares the upstream for the message.  NGX_OK: the message may be sent;
     * NGX_AGAIN: the request has failed, or the manner calls
     * ngx_http_mcp_upstream_request_next() later; NGX_DECLINED: this upstream
     * does not get the message; NGX_ERROR.  This and the functions below may be
     * NULL.
     */
    ngx_int_t   (*open)(ngx_http_mcp_upstream_request_t *ureq);

    /* completes the exchange that sends the message; NGX_OK or NGX_ERROR */
    ngx_int_t   (*head)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_exchange_t *x);

    /*
     * Called for each message of the upstream before ureq->message().  If it
     * changes the message, it scans the message again.  NGX_OK; any other
     * result: ureq->message() is not called.
     */
    ngx_int_t   (*message)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_str_t *text);

    /*
     * The exchange of the message has ended.  NGX_OK: the caller resumes or
     * ends the request; NGX_AGAIN: the manner continues the request, and calls
     * ngx_http_mcp_upstream_request_next() or .._end() later.
     */
    ngx_int_t   (*done)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_outcome_e outcome);

    /* whether this HTTP status means a lost session: ngx_http_mcp_lost_e */
    ngx_uint_t  (*lost)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_uint_t status);

    /*
     * Whether the first message of a response (text, with its scan in
     * ureq->x->scan) says that the session is lost, whatever the status is.
     * text NULL: the response has no message, and the beginning of its body
     * (x->quote) is checked.
     */
    ngx_uint_t  (*forgot)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_str_t *text);

    /*
     * Forgets the session that open() found or made, because the upstream has
     * lost it; open() is called again after that.
     */
    void        (*heal)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * The request ends.  If it was making a session for which other requests
     * wait, one of these makes the session instead.
     */
    void        (*release)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Asks the upstream to end a session that open() has begun to make.
     * NGX_OK; NGX_AGAIN: to be called again when the present exchange has
     * ended, because it is not known yet whether there is a session.
     */
    ngx_int_t   (*end)(ngx_http_mcp_upstream_request_t *ureq);

    /*
     * Returns why the request of a reader did not open a stream
     * (ngx_http_mcp_refusal_e).  changed: the last attempt did not fail in the
     * same way, so this failure is to be logged.
     */
    ngx_uint_t  (*refused)(ngx_http_mcp_upstream_request_t *ureq,
                    ngx_http_mcp_outcome_e outcome, ngx_uint_t changed);

    /*
     * For an upstream that refuses the module's own probe and is probed by
     * requests of clients.  client_probe() makes the exchange send the client's
     * initialize or server/discover: NGX_OK or NGX_ERROR.  client_result()
     * converts the raw result to one of initialize, from pool; data NULL: no
     * memory.  client_result is NULL if no conversion is needed.
     */
    ngx_int_t   (*client_probe)(ngx_http_mcp_exchange_t *x,
                    ngx_mcp_message_t *message);
    ngx_str_t   (*client_result)(ngx_pool_t *pool, ngx_str_t *result);

    /*
     * These probe whether an upstream is of this kind.  probe() sends the
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
 * All manners, in the order in which they probe an upstream; the last pointer
 * is NULL.  To be set before workers start.
 */
extern ngx_http_mcp_manner_t  **ngx_http_mcp_manners;

extern ngx_http_mcp_manner_t  ngx_http_mcp_rpc;
extern ngx_http_mcp_manner_t  ngx_http_mcp_legacy;
extern ngx_http_mcp_manner_t  ngx_http_mcp_modern;
extern ngx_http_mcp_manner_t  ngx_http_mcp_events;


/*
 * The manner of an upstream whose profile has this kind (ngx_mcp_profile_e)
 * and revision; NULL: there is none.  If the upstream supports both eras, or
 * may support both, this is the manner of the client's era.  stateful: the
 * client has a session.
 */
ngx_http_mcp_manner_t *ngx_http_mcp_manner_of(ngx_uint_t kind,
    ngx_uint_t revision, ngx_uint_t stateful);

/*
 * The manner that probes the upstream after "manner" has probed it, or the
 * first one if "manner" is NULL.  NULL: there are no more.
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
void ngx_http_mcp_manner_note(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t kind);

/* whether it is known that the upstream sends no updates of resources */
ngx_uint_t ngx_http_mcp_updateless(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);

/* whether this status may mean that the upstream refused Last-Event-ID */
ngx_uint_t ngx_http_mcp_status_no_event(ngx_uint_t status);


/*
 * Functions for manners.  ..._next() continues the request from its step, and
 * ..._end() ends the request; both may free ureq.
 */
void ngx_http_mcp_upstream_request_next(ngx_http_mcp_upstream_request_t *ureq);
void ngx_http_mcp_upstream_request_end(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);

/* calls ..._next() after this time, ms */
void ngx_http_mcp_upstream_request_later(ngx_http_mcp_upstream_request_t *ureq,
    ngx_msec_t time);

/* calls open() in a later event, and sends the message again after it */
void ngx_http_mcp_upstream_request_reopen(
    ngx_http_mcp_upstream_request_t *ureq);

/* the same, but looks up the upstream's kind again before open() */
void ngx_http_mcp_upstream_request_renew(
    ngx_http_mcp_upstream_request_t *ureq);

/* ends the request with this outcome in a later event */
void ngx_http_mcp_upstream_request_post_end(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);

/*
 * Continues the request when another request, of this or another worker, has
 * done something (kind and hash as in ngx_http_mcp_waiter.h).
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
