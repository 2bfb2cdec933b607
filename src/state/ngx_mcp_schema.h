
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The data of this module in the zone: the types of records and their uses, the
 * counters, the root; and the handlers of the work that other processes leave
 * for a worker.
 */

#ifndef _NGX_MCP_SCHEMA_H_INCLUDED_
#define _NGX_MCP_SCHEMA_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_zone.h"
#include "ngx_mcp_counter.h"


/* reasons to wake a stream or call of this worker; bits */

#define NGX_MCP_WAKE_NEWS              0x01  /* there are events to read */
#define NGX_MCP_WAKE_CLOSE             0x02  /* the session has ended, or
                                                another stream replaces this
                                                one */
#define NGX_MCP_WAKE_CANCEL            0x04  /* the client cancelled the call */
#define NGX_MCP_WAKE_UPSTREAM_SESSION  0x08  /* the handshake of the upstream
                                                session that the call waits for
                                                has ended */
#define NGX_MCP_WAKE_INPUT             0x10  /* the client answered a server
                                                request of the call */

/*
 * The wants of the stream changed, as its session has subscribed to something
 * or another stream carries the channel now.
 */
#define NGX_MCP_WAKE_WANTS  NGX_MCP_WAKE_FIRST


/* a session at an upstream that is to be ended by a DELETE request */

typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               upstream;
    ngx_str_t               id;           /* Mcp-Session-Id at the upstream */
    ngx_str_t               tenant;
    ngx_str_t               session;      /* id of the client's session, which
                                             has ended */
    ngx_uint_t              revision;     /* negotiated with the upstream */
} ngx_mcp_pending_delete_t;


/*
 * Work of a worker whose doorbell was rung.  "local" is the number that this
 * worker gave when it opened the stream or call.  The handlers are called
 * without the lock, and may use the zone.
 */

struct ngx_mcp_worker_handlers_s {
    void                  (*stream)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
                                uint32_t local, ngx_uint_t reasons);
    void                  (*call)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
                                uint32_t local, ngx_uint_t reasons);

    /*
     * The shared log of a group, or a topic, got an event.  A reference of
     * block 0 stands for all that this worker watches.
     */
    void                  (*group)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group);
    void                  (*topic)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

    /*
     * The profile of an upstream became known (ngx_mcp_profile.h).  keys, here
     * and below: NGX_MCP_RING_KEY() of the things that changed, made of the
     * hash of a profile, or of the block of an upstream session or an audience.
     */
    void                  (*profiles)(ngx_mcp_zone_t *zone, uint64_t keys);

    /*
     * A session whose upstream's GET stream is held by this worker has ended,
     * or its client has no open GET any more (ngx_mcp_session_gets()).
     */
    void                  (*listeners)(ngx_mcp_zone_t *zone, uint64_t keys);

    /* the handshake of an upstream session has ended, with success or not */
    void                  (*upstream_sessions)(ngx_mcp_zone_t *zone,
                                uint64_t keys);

    /* something about interests, or shared upstream sessions, has changed */
    void                  (*interests)(ngx_mcp_zone_t *zone, uint64_t keys);

    /* this worker has to send a DELETE to an upstream */
    void                  (*pending_delete)(ngx_mcp_zone_t *zone,
                                ngx_mcp_pending_delete_t *due);

    /* lists were replaced, or some may have changed (ngx_mcp_list.h) */
    void                  (*lists)(ngx_mcp_zone_t *zone, uint64_t keys);

    /* reasons: NGX_MCP_LEASE_* bits (ngx_mcp_lease.h) */
    void                  (*lease)(ngx_mcp_zone_t *zone, ngx_str_t *key,
                                ngx_uint_t reasons);
};


/*
 * Indices of zone->ctx, the private data of this worker for a zone.  Each
 * belongs to the file that sets it, and is NULL before.
 */

typedef enum {
    NGX_MCP_CTX_PROBES = 0,
    NGX_MCP_CTX_UPDATES,
    NGX_MCP_CTX_WAITERS,
    NGX_MCP_CTX_READERS,
    NGX_MCP_CTX_BRIDGES,                       /* array of the bridges of all
                                                  endpoints */
    NGX_MCP_CTX_LIST_CACHE,
    NGX_MCP_CTX_LIST_REFRESHES,
    NGX_MCP_CTX_WAITS,
    NGX_MCP_CTX_STREAMS,
    NGX_MCP_CTX_MAX
} ngx_mcp_ctx_e;

typedef char  ngx_mcp_ctx_fits[
    NGX_MCP_CTX_MAX <= NGX_MCP_ZONE_CTX ? 1 : -1];

/*
 * Returns zone->ctx[ctx] as an array of n queues.  If it is NULL, n empty
 * queues are allocated.  NULL: no memory.
 */
ngx_queue_t *ngx_mcp_ctx_queues(ngx_mcp_zone_t *zone, ngx_mcp_ctx_e ctx,
    ngx_uint_t n);


/* the reason for which room was refused */

typedef enum {
    NGX_MCP_FULL_NONE = 0,
    NGX_MCP_FULL_ZONE,
    NGX_MCP_FULL_CLIENT,                       /* the client has its share */
    NGX_MCP_FULL_TENANT                        /* the tenant has its share */
} ngx_mcp_full_e;


/* ngx_mcp_zone_init() with this module's schema */
ngx_int_t ngx_mcp_state_init(ngx_mcp_zone_t *zone, ngx_uint_t workers,
    ngx_uint_t reuse);

/*
 * The number of live sessions of a zone; 0 if sh is NULL or is not a zone of
 * this module.  Takes no lock.
 */
ngx_uint_t ngx_mcp_zone_sessions(ngx_mcp_zone_sh_t *sh);


/* use of the zone for mcp_status: number of blocks by purpose */

#define NGX_MCP_USES(_)                                                       \
    _(FREE, "free")                                                           \
    _(SESSIONS, "sessions")                                                   \
    _(STREAMS, "streams")                                                     \
    _(CALLS, "calls")                                                         \
    _(EVENTS, "events")                                                       \
    _(UPSTREAMS, "upstreams")                                                 \
    _(SUBSCRIPTIONS, "subscriptions")                                         \
    _(LISTS, "lists")                                                         \
    _(TOPICS, "topics")                                                       \
    _(COALESCED, "coalesced")                                                 \
    _(LEASES, "leases")                                                       \
    _(OTHER, "other")

#define NGX_MCP_USE_ENUM(name, text)  NGX_MCP_USE_ ## name,

typedef enum {
    NGX_MCP_USES(NGX_MCP_USE_ENUM)
    NGX_MCP_USE_MAX
} ngx_mcp_use_e;


typedef struct {
    ngx_uint_t              blocks;       /* number of blocks of the zone */
    ngx_uint_t              used[NGX_MCP_USE_MAX];  /* blocks, by use */
    size_t                  block_size;
    ngx_uint_t              workers;      /* number of slots of live workers */
    ngx_uint_t              recoveries;   /* transactions that were undone
                                             after a worker died */
} ngx_mcp_zone_use_t;

void ngx_mcp_zone_use(ngx_mcp_zone_t *zone, ngx_mcp_zone_use_t *use);


#endif /* _NGX_MCP_SCHEMA_H_INCLUDED_ */
