
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The data of this module in the zone: the types of its records and what they
 * are used for, its counters, its root; and what a worker does when others
 * left work for it.
 */

#ifndef _NGX_MCP_SCHEMA_H_INCLUDED_
#define _NGX_MCP_SCHEMA_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_zone.h"
#include "ngx_mcp_counter.h"


/* reasons to wake a stream or call of this worker; bits */

#define NGX_MCP_WAKE_NEWS              0x01  /* there are events to read */
#define NGX_MCP_WAKE_CLOSE             0x02  /* its session ended, or another
                                                stream replaces it */
#define NGX_MCP_WAKE_CANCEL            0x04  /* the client cancelled the call */
#define NGX_MCP_WAKE_UPSTREAM_SESSION  0x08  /* the upstream session that it
                                                waits for is made or not */
#define NGX_MCP_WAKE_INPUT             0x10  /* the client answered a server
                                                request of the call */

/* its session subscribed to something, or another stream relieves it */
#define NGX_MCP_WAKE_WANTS  NGX_MCP_WAKE_FIRST


/* a session (id) at an upstream, whose own session has ended */

typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               upstream;
    ngx_str_t               id;
    ngx_str_t               tenant;
    ngx_str_t               session;
    ngx_uint_t              revision;
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

    /* the shared log of a group, or a topic, got an event; block 0: any */
    void                  (*group)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group);
    void                  (*topic)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

    /*
     * The profile of an upstream became known (ngx_mcp_profile.h).  keys, here
     * and below, are of what has changed: NGX_MCP_RING_KEY() of the hash of a
     * profile, or of the block of an upstream session or an audience.
     */
    void                  (*profiles)(ngx_mcp_zone_t *zone, uint64_t keys);

    /*
     * a session for which an upstream's GET stream is held here has ended or
     * has no GET of its own left (ngx_mcp_session_gets())
     */
    void                  (*listeners)(ngx_mcp_zone_t *zone, uint64_t keys);

    /* an upstream session that was being made is made, or not */
    void                  (*upstream_sessions)(ngx_mcp_zone_t *zone,
                                uint64_t keys);

    /* something about interests, or shared upstream sessions, has changed */
    void                  (*interests)(ngx_mcp_zone_t *zone, uint64_t keys);

    /* a DELETE is due, for a session at an upstream */
    void                  (*pending_delete)(ngx_mcp_zone_t *zone,
                                ngx_mcp_pending_delete_t *due);

    /* lists were replaced, or some may have changed (ngx_mcp_list.h) */
    void                  (*lists)(ngx_mcp_zone_t *zone, uint64_t keys);

    /* reasons: NGX_MCP_LEASE_* bits (ngx_mcp_lease.h) */
    void                  (*lease)(ngx_mcp_zone_t *zone, ngx_str_t *key,
                                ngx_uint_t reasons);
};


/*
 * Data of a worker for a zone, beside the zone: zone->ctx, each owned by the
 * file that sets it; NULL before.
 */

typedef enum {
    NGX_MCP_CTX_PROBES = 0,
    NGX_MCP_CTX_UPDATES,
    NGX_MCP_CTX_WAITERS,
    NGX_MCP_CTX_READERS,
    NGX_MCP_CTX_BRIDGES,                       /* array of all */
    NGX_MCP_CTX_FEEDS,
    NGX_MCP_CTX_LIST_CACHE,
    NGX_MCP_CTX_LIST_REFRESHES,
    NGX_MCP_CTX_WAITS,
    NGX_MCP_CTX_STREAMS,
    NGX_MCP_CTX_MAX
} ngx_mcp_ctx_e;

typedef char  ngx_mcp_ctx_fits[
    NGX_MCP_CTX_MAX <= NGX_MCP_ZONE_CTX ? 1 : -1];

/* data that is n queues; empty ones are made if it is NULL; NULL: no memory */
ngx_queue_t *ngx_mcp_ctx_queues(ngx_mcp_zone_t *zone, ngx_mcp_ctx_e ctx,
    ngx_uint_t n);


/* the reason for which room was refused */

typedef enum {
    NGX_MCP_FULL_NONE = 0,
    NGX_MCP_FULL_ZONE,
    NGX_MCP_FULL_CLIENT,                       /* it has its share */
    NGX_MCP_FULL_TENANT
} ngx_mcp_full_e;


/* ngx_mcp_zone_init() with this module's schema */
ngx_int_t ngx_mcp_state_init(ngx_mcp_zone_t *zone, ngx_uint_t workers,
    ngx_uint_t reuse);

/*
 * The number of live sessions of a zone; 0 if sh is NULL or is not a zone of
 * this module.  Takes no lock.
 */
ngx_uint_t ngx_mcp_zone_sessions(ngx_mcp_zone_sh_t *sh);


/* zone use for mcp_status: blocks by what they are used for */

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
    ngx_uint_t              blocks;       /* all */
    ngx_uint_t              used[NGX_MCP_USE_MAX];
    size_t                  block_size;
    ngx_uint_t              workers;      /* live slots */
    ngx_uint_t              recoveries;
} ngx_mcp_zone_use_t;

void ngx_mcp_zone_use(ngx_mcp_zone_t *zone, ngx_mcp_zone_use_t *use);


#endif /* _NGX_MCP_SCHEMA_H_INCLUDED_ */
