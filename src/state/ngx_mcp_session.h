
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Sessions of legacy clients (2025-11-25 basic/transports, "Session
 * Management").  A session has upstream sessions
 * (ngx_mcp_upstream_session.h), server requests (ngx_mcp_server_request.h), and
 * subscriptions to resources.
 *
 * A session belongs to one endpoint, one tenant and one identity; a lookup
 * that does not name all three does not find the session.  The sessions of one
 * endpoint and tenant form a group.  The group has a log of the events that are
 * for several sessions.
 */

#ifndef _NGX_MCP_SESSION_H_INCLUDED_
#define _NGX_MCP_SESSION_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_pages.h"


typedef struct {
    ngx_str_t               id;           /* UUID text, drawn by the caller */
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               identity;
    ngx_str_t               client;       /* name of the client, which pays
                                             for the blocks; empty: the tenant
                                             pays for all its sessions */
    uint64_t                account;      /* key of the account that pays for
                                             a restored session, which may use
                                             all room; 0: "client" pays */

    /* raw "params" of the client's initialize, at most 4k, for upstream
       sessions */
    ngx_str_t               initialize;
    ngx_str_t               client_name;
    ngx_str_t               client_version;
    ngx_uint_t              revision;     /* ngx_mcp_revision_e */
    ngx_uint_t              offered;      /* NGX_MCP_OFFERED_* bits: kinds of
                                             lists that the client fetches
                                             again after a gap */

    ngx_str_t               list_key;     /* list key of its audience: a
                                             letter, and more
                                             (ngx_mcp_declared.h) */
    ngx_uint_t              own_lists;    /* 1: its lists come from upstreams,
                                             not from an audience */
    ngx_uint_t              listens;      /* 1: the session is made for a
                                             subscriptions/listen request; it
                                             ends with the stream, and no
                                             client may use its id */
    ngx_uint_t              exclusive;    /* 1: the session is for calls of a
                                             client that has no session
                                             (ngx_mcp_parked.h) */
    ngx_str_t               limit_key;
    ngx_uint_t              limit;        /* most sessions with this limit_key;
                                             0: any number */
    ngx_msec_t              timeout;      /* mcp_session_timeout */
    ngx_uint_t              event_max;    /* mcp_event_buffer N */
    size_t                  event_size;   /* mcp_event_buffer SIZE */
} ngx_mcp_session_new_t;

/*
 * A copy of the members of a session that a request needs.  The strings point
 * into "text".
 */

typedef struct {
    /* set by the caller: the number of JSON-RPC requests in the POST */
    ngx_uint_t              requests;

    ngx_mcp_ref_t           ref;
    ngx_mcp_ref_t           group;
    ngx_uint_t              revision;
    ngx_uint_t              level;        /* ngx_mcp_level_e */
    ngx_uint_t              offered;
    ngx_uint_t              streams;      /* number of open GET streams */
    ngx_uint_t              calls;        /* number of running calls */

    /* times, in ms since the epoch */
    uint64_t                created;
    uint64_t                seen;         /* this request */
    uint64_t                before;       /* the request before this one */

    ngx_mcp_ref_t           member_of;    /* audience whose lists the session
                                             gets; block 0: none */
    uint64_t                audience;     /* hash of its list key */
    u_char                  letter;       /* first letter of its list key */
    ngx_uint_t              own_lists;
    ngx_str_t               client_name;  /* at most 64 bytes */
    ngx_str_t               client_version;
    u_char                  text[128 + 1];
} ngx_mcp_session_t;


/*
 * Creates a session.  NGX_OK: *ref is set; NGX_BUSY: the limit is reached,
 * or a session with the id exists; NGX_DECLINED: the zone is full and nothing
 * can be reclaimed.
 */
ngx_int_t ngx_mcp_session_create(ngx_mcp_zone_t *zone,
    ngx_mcp_session_new_t *in, ngx_mcp_ref_t *ref);

/* returns a sentence for the client: why room was refused the last time */
const char *ngx_mcp_room_refusal(ngx_mcp_zone_t *zone);

/*
 * Returns the revision of the live session of this endpoint that has this id;
 * 0: there is none.  This does not count as a use of the session.
 */
ngx_uint_t ngx_mcp_session_exists(ngx_mcp_zone_t *zone, ngx_str_t *id,
    ngx_str_t *endpoint);

/*
 * Finds a live session, marks it as seen now, and adds out->requests to the
 * number of its requests.  NGX_OK, or NGX_DECLINED when there is none with
 * exactly this id, endpoint, tenant and identity.
 */
ngx_int_t ngx_mcp_session_find(ngx_mcp_zone_t *zone, ngx_str_t *id,
    ngx_str_t *endpoint, ngx_str_t *tenant, ngx_str_t *identity,
    ngx_mcp_session_t *out);

/* numbers of a session, for the tool session_info */

typedef struct {
    ngx_uint_t              level;        /* ngx_mcp_level_e */
    ngx_uint_t              streams;      /* number of open GET streams */
    ngx_uint_t              running;      /* number of running calls */
    ngx_uint_t              calls;        /* number of calls so far */
    uint64_t                events;       /* number of events that streams have
                                             read so far */
    ngx_msec_t              timeout;
} ngx_mcp_session_info_t;

/* NGX_OK; NGX_DECLINED: the session has ended */
ngx_int_t ngx_mcp_session_info(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_session_info_t *info);

/*
 * Copies the raw initialize params of a session to pool; *level becomes its
 * ngx_mcp_level_e, unless level is NULL.  NGX_OK; NGX_DECLINED: the session
 * has ended; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_session_initialize(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_pool_t *pool, ngx_str_t *out,
    ngx_uint_t *level);

/*
 * Copies the list key of a session to pool.  NGX_OK; NGX_DECLINED: the session
 * has ended; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_session_list_key(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_pool_t *pool, ngx_str_t *out);

/*
 * Returns the number of sessions of subscriptions/listen of an endpoint and
 * tenant; with "gets", sessions that have a GET stream are added.
 */
ngx_uint_t ngx_mcp_group_listens(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_uint_t gets);

/* the position in a walk over groups; all zero at first */

typedef struct {
    uint64_t                number;
    ngx_mcp_ref_t           ref;
} ngx_mcp_group_cursor_t;

#define NGX_MCP_GROUP_TENANTS  32

/*
 * Copies the names of the next tenants of an endpoint that have sessions to
 * pool, NGX_MCP_GROUP_TENANTS at most.  Returns the number of tenants; 0: there
 * are no more, or there is no memory.
 */
ngx_uint_t ngx_mcp_group_tenants(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_mcp_group_cursor_t *cursor, ngx_pool_t *pool, ngx_str_t *tenants);

/*
 * Ends a session.  Its streams are closed and its calls are cancelled by
 * NGX_MCP_WAKE_CLOSE on their workers, and its upstream sessions end, too
 * (handlers->pending_delete of this worker).  counter: the reason.
 */
void ngx_mcp_session_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_counter_e counter);

void ngx_mcp_session_set_level(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_uint_t level);


/*
 * Returns the number of GET streams on the general channel of a session;
 * NGX_DECLINED: the session has ended.
 */
ngx_int_t ngx_mcp_session_gets(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);


/*
 * Subscriptions.
 * subscribe() subscribes a session to a resource of this upstream or, if it is
 * NULL, of the module.  NGX_OK: it is subscribed, now or before; NGX_BUSY: the
 * limit is reached; NGX_DECLINED: the session has ended or the zone is full.
 * unsubscribe(): NGX_OK; NGX_DONE: the subscription shared an interest
 * (ngx_mcp_interest.h); NGX_DECLINED: there was none.
 * subscribed(): whether a session is subscribed to the URI at this upstream
 * (NULL: at any).
 * subscription() copies the n-th URI to pool.  NGX_OK; NGX_DECLINED: n is past
 * the last one; NGX_ERROR: no memory.
 */
ngx_uint_t ngx_mcp_session_subscribed(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_str_t *upstream);
ngx_int_t ngx_mcp_session_subscribe(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_str_t *upstream,
    ngx_uint_t limit);
ngx_int_t ngx_mcp_session_unsubscribe(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *uri);
ngx_int_t ngx_mcp_session_subscription(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri);


#endif /* _NGX_MCP_SESSION_H_INCLUDED_ */
