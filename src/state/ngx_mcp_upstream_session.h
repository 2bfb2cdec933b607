
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Upstream sessions.  The owner of an upstream session is a client session, or
 * an audience (endpoint, tenant, list key) that shares it.  Each owner has one
 * upstream session at each upstream that it needs.
 *
 * The record lasts as long as its owner.  The session at the upstream is made
 * by a handshake when it is needed first, and again when the upstream has
 * forgotten it (session restore); it gets another serial then.  When the owner
 * ends, a DELETE to the upstream is due (handlers->pending_delete).
 */

#ifndef _NGX_MCP_UPSTREAM_SESSION_H_INCLUDED_
#define _NGX_MCP_UPSTREAM_SESSION_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_lease.h"


#define NGX_MCP_UPSTREAM_ID_SHORT  512
#define NGX_MCP_UPSTREAM_ID_MAX    4096

/* ms; a shared upstream session that is not touched for so long ends */
#define NGX_MCP_SHARED_TIMEOUT     120000


typedef struct {
    ngx_mcp_ref_t           ref;
    ngx_str_t               id;           /* Mcp-Session-Id at the upstream, in
                                             "buf"; empty: the upstream gave
                                             none; data NULL: it is too long
                                             for "buf" */
    ngx_uint_t              revision;     /* negotiated with the upstream */
    ngx_uint_t              serial;       /* number of the handshake that made
                                             the session at the upstream */
    ngx_uint_t              level;        /* lowest log level that
                                             ngx_mcp_upstream_session_level()
                                             has set */
    u_char                  buf[NGX_MCP_UPSTREAM_ID_SHORT];
} ngx_mcp_upstream_session_t;


/*
 * Finds the upstream session of an owner at this upstream.  owner: a client
 * session, or the shared upstream session itself.  NGX_OK; NGX_DECLINED: the
 * caller now has to do the handshake, and to call made() or fail() at its end;
 * NGX_AGAIN: another request is doing it.  At the end of that handshake, the
 * given call is woken with NGX_MCP_WAKE_UPSTREAM_SESSION if the owner is its
 * session, else all workers with NGX_MCP_RING_UPSTREAM_SESSIONS; the caller
 * then calls get() again.  NGX_ERROR: the owner has ended or the zone is full.
 */
ngx_int_t ngx_mcp_upstream_session_get(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, ngx_str_t *upstream, ngx_mcp_ref_t call,
    ngx_mcp_upstream_session_t *us);

/*
 * Finds the upstream session of an owner, if the session at the upstream is
 * made.  NGX_OK; NGX_DECLINED: there is none.
 */
ngx_int_t ngx_mcp_upstream_session_peek(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, ngx_str_t *upstream, ngx_mcp_upstream_session_t *us);

/*
 * Reads the id of an upstream session that get() or peek() found; it is copied
 * to pool if it is too long for us->buf.  NGX_OK; NGX_DECLINED: the id has
 * changed since; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_upstream_session_id(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_upstream_session_t *us);

/*
 * The data that a handshake sends to the upstream, again after a session
 * restore.  params(): the raw initialize params and the log level of the client
 * (empty and NGX_MCP_LEVEL_UNSET if the upstream session is shared).
 * subscription(): the n-th URI that the client subscribed to at this upstream;
 * NGX_DECLINED: n is past the last one.
 */
ngx_int_t ngx_mcp_upstream_session_params(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_pool_t *pool, ngx_str_t *initialize,
    ngx_uint_t *level);
ngx_int_t ngx_mcp_upstream_session_subscription(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri);

/*
 * Ends a handshake that has succeeded: stores the id that the upstream gave,
 * and wakes all requests that wait for the upstream session.  NGX_OK;
 * NGX_DECLINED: the owner has ended; NGX_ERROR: there is no room, and another
 * request may try; NGX_AGAIN: the client has set another log level than *level.
 * *level is the new one now, which the caller sends to the upstream before it
 * calls again.  level NULL: the levels are not compared, and none counts as
 * set.
 */
ngx_int_t ngx_mcp_upstream_session_made(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_str_t *upstream, ngx_str_t *id,
    ngx_uint_t revision, ngx_uint_t *level);

/* whether "level" is not UNSET, and "set" is UNSET or a higher level */
#define ngx_mcp_level_lowers(level, set)                                      \
    ((level) != NGX_MCP_LEVEL_UNSET                                           \
     && ((set) == NGX_MCP_LEVEL_UNSET || (level) < (set)))

/*
 * Makes sure that an upstream session for callers without a session has a log
 * level that is low enough for this caller's *level.  set: the level that the
 * caller has just set at the upstream, or NGX_MCP_LEVEL_UNSET.  NGX_OK: *level
 * or a lower one is set, or the upstream session has ended; NGX_AGAIN: the
 * caller sends the new *level to the upstream, and calls again.
 */
ngx_int_t ngx_mcp_upstream_session_level(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_t *us, ngx_uint_t set, ngx_uint_t *level);

/*
 * Notes that the upstream did not accept a level of the function above.  never:
 * no level is sent any more, as if the lowest one was set.
 */
void ngx_mcp_upstream_session_level_refused(ngx_mcp_zone_t *zone,
    ngx_mcp_upstream_session_t *us, ngx_uint_t level, ngx_uint_t never);

/*
 * Ends a handshake that has failed: wakes all requests that wait for the
 * upstream session; one of them may try again.
 */
void ngx_mcp_upstream_session_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

/* notes that the upstream has forgotten the session with this serial */
void ngx_mcp_upstream_session_forget(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t serial);


/*
 * The GET stream of an upstream session.  One worker holds the stream of a
 * client session.  claim(): NGX_OK and *ref when this worker now holds it;
 * NGX_DECLINED when this or another live worker held it before.  release(), or
 * the death of the worker, gives the stream up; over: no client reads messages
 * of the upstream session from now on.  The stream of a shared upstream session
 * belongs to the worker that holds that session.
 */
ngx_int_t ngx_mcp_upstream_session_stream_claim(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *upstream, ngx_mcp_ref_t *ref);
void ngx_mcp_upstream_session_stream_release(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t over);

/*
 * Waits for the GET stream of an exclusive session before its call is sent: a
 * server may send requests for the client on that stream, and these are lost
 * while there is no stream.  NGX_OK: the stream is open, or has failed;
 * NGX_DONE: the upstream offers none; NGX_DECLINED: no worker holds it;
 * NGX_AGAIN: it is about to be opened, and the call is woken with
 * NGX_MCP_WAKE_UPSTREAM_SESSION when it is open or has failed.
 */
ngx_int_t ngx_mcp_upstream_session_stream_await(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_mcp_ref_t call);

/*
 * Called when the upstream refuses the credentials of the client's GET: closes
 * the client's general streams, so that the client opens one with its present
 * credentials.
 */
void ngx_mcp_upstream_session_stream_refused(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);

/* notes that the upstream offers no GET stream: no other GET is sent */
void ngx_mcp_upstream_session_stream_absent(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);

/*
 * Notes that the GET stream is open, on the session with this serial.  If there
 * was an earlier stream that this one does not resume, the client may have
 * missed changes of lists or resources in between.  Then the client session
 * gets a gap, unless the shared upstream session at this upstream notifies it.
 * Returns whether the client is notified now.
 */
ngx_uint_t ngx_mcp_upstream_session_stream_opened(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t serial, ngx_uint_t resumed);

/*
 * Notes that the GET stream is closed.  While it is open, a client session gets
 * changes of lists from it, and not those that the shared upstream session at
 * this upstream received ("upstream" of ngx_mcp_event_t).
 */
void ngx_mcp_upstream_session_stream_closed(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);


/*
 * A shared upstream session.  The worker that holds the lease of the audience
 * holds the shared upstream session as well, and touches it now and then.  A
 * shared upstream session that was not touched for NGX_MCP_SHARED_TIMEOUT ends.
 */

typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               client;       /* name of the client, which pays
                                             for the blocks; empty: the tenant
                                             pays */
    uint64_t                account;      /* key of the account that pays for
                                             a restored session; 0: "client"
                                             pays */
    ngx_str_t               list_key;     /* list key of the audience */
    uint64_t                audience;     /* hash of list_key; 0: not known */
    ngx_str_t               upstream;     /* name of the upstream */
    ngx_str_t               id;           /* UUID text: value of $mcp_session
                                             in requests on this session */
    ngx_uint_t              limit;        /* most shared upstream sessions of
                                             the endpoint; 0: any number */
    ngx_uint_t              pooled;       /* 1: no worker holds the session;
                                             each request on it touches it */
} ngx_mcp_shared_t;

/*
 * Finds or makes a shared upstream session.  NGX_OK; NGX_BUSY: the limit is
 * reached; NGX_DECLINED: there is no room.
 */
ngx_int_t ngx_mcp_shared_get(ngx_mcp_zone_t *zone, ngx_mcp_shared_t *in,
    ngx_mcp_ref_t *ref);

/*
 * claim(): this worker, which holds this lease, holds the shared upstream
 * session until another worker claims it, and has to touch() it now and then.
 * NGX_OK; NGX_DECLINED: it has ended, or another worker holds it or the lease.
 */
ngx_int_t ngx_mcp_shared_claim(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_lease_t *lease);
ngx_int_t ngx_mcp_shared_touch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t fence);

/* touches a shared upstream session that no worker holds */
void ngx_mcp_shared_keep(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

/*
 * Ends a shared upstream session.  NGX_OK; NGX_DECLINED: another worker holds
 * it, it has interests, or it had ended.
 */
ngx_int_t ngx_mcp_shared_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t fence);


/*
 * Count the DELETE requests that this worker has under way.  full() returns
 * whether these are as many as a worker may have; further ones wait in the
 * zone.
 */
void ngx_mcp_pending_delete_begin(ngx_mcp_zone_t *zone);
void ngx_mcp_pending_delete_end(ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_pending_delete_full(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_UPSTREAM_SESSION_H_INCLUDED_ */
