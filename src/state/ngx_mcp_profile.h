
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Profiles of upstreams.  A profile is the protocol that an upstream speaks
 * and its answer to initialize, for an upstream and tenant.  One worker asks
 * the upstream, for all workers.
 */

#ifndef _NGX_MCP_PROFILE_H_INCLUDED_
#define _NGX_MCP_PROFILE_H_INCLUDED_


#include "ngx_mcp_schema.h"


typedef enum {
    NGX_MCP_PROFILE_UNKNOWN = 0,  /* the upstream gave no usable answer */
    NGX_MCP_PROFILE_RPC,
    NGX_MCP_PROFILE_LEGACY,
    NGX_MCP_PROFILE_MODERN,
    NGX_MCP_PROFILE_BOTH,         /* LEGACY and MODERN */
    NGX_MCP_PROFILE_REFUSED       /* the upstream refused the module's
                                     requests, and answers only those of
                                     clients */
} ngx_mcp_profile_e;

typedef struct {
    uint32_t                hash;         /* hash of the key; also set after
                                             NGX_AGAIN */
    ngx_uint_t              what;         /* ngx_mcp_profile_e */
    ngx_uint_t              kept;         /* 1: the upstream was asked again,
                                             without success, and its former
                                             profile is used */
    ngx_uint_t              ask;          /* 1: the caller has to ask the
                                             upstream again */
    ngx_uint_t              suspect;      /* 1: another server may answer at
                                             the upstream now */
    ngx_uint_t              revision;     /* negotiated with the upstream; in a
                                             REFUSED profile a revision of the
                                             kind that the upstream speaks, or
                                             0 */
    ngx_str_t               result;       /* raw result of initialize */

    /* in an UNKNOWN profile */
    ngx_uint_t              status;       /* HTTP status for clients, or 0 */
    ngx_str_t               why;          /* sentence for clients */

    ngx_msec_t              asked;        /* after NGX_AGAIN: ms since the
                                             upstream was asked; "status" is
                                             the one of the last time, or 0 */
} ngx_mcp_profile_t;


/*
 * Finds the profile with a key that the caller has made.  If the profile has
 * another epoch than the caller's configuration, or is older than max_age (ms),
 * the upstream has to be asked again.
 *
 *   NGX_OK        *out is set, with strings copied to pool.  If out->ask is
 *                 set, the caller has to ask as after NGX_DECLINED, and uses
 *                 the profile meanwhile
 *   NGX_DECLINED  the caller has to ask the upstream, and then to call put(),
 *                 fail() or give_up()
 *   NGX_AGAIN     a worker of this or a newer epoch is asking;
 *                 handlers->profiles will be called
 *   NGX_ERROR     no memory, or the zone is full
 */
ngx_int_t ngx_mcp_profile_get(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_profile_t *out);

/*
 * Finds a profile of any age and epoch; nobody has to ask then.  NGX_OK, with
 * strings copied to pool; NGX_DECLINED: there is none; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_profile_stored(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool, ngx_mcp_profile_t *out);

/*
 * ms; if the profile of an upstream or the offer of a worker is older than
 * this, the next initialize asks the upstream again or makes the offer anew
 */
#define NGX_MCP_PROFILE_FRESH_AGE  3600000

/* ms; a profile of NGX_MCP_PROFILE_UNKNOWN is valid for so long */
#define NGX_MCP_PROFILE_SHORT_AGE  1000

/* ms; a kept profile is valid longer after each attempt, up to this */
#define NGX_MCP_PROFILE_KEPT_AGE   16000

/*
 * Ends asking with a profile, which is stored, and rings all workers;
 * in->result has 64k at most.  NGX_OK; NGX_ERROR: there is no room.
 */
ngx_int_t ngx_mcp_profile_put(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_mcp_profile_t *in);

/*
 * Ends asking without a usable answer, and rings all workers.  NGX_OK: the old
 * profile is kept, and the upstream is asked again after growing pauses;
 * NGX_DECLINED: no profile can be kept, and *in, with the reason, is stored.
 * If the upstream is away, any profile can be kept, else only a profile of an
 * MCP server from this epoch.
 */
ngx_int_t ngx_mcp_profile_fail(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_uint_t away, ngx_mcp_profile_t *in);

/* ends asking without an outcome; any worker may ask at once */
void ngx_mcp_profile_give_up(ngx_mcp_zone_t *zone, ngx_str_t *key);

/* max_age that accepts a profile of any age, even a stale one */
#define NGX_MCP_PROFILE_ANY_AGE  ((ngx_msec_t) -1)

/*
 * Notes that a profile may be out of date: get() returns it only with
 * NGX_MCP_PROFILE_ANY_AGE.
 */
void ngx_mcp_profile_stale(ngx_mcp_zone_t *zone, ngx_str_t *key);

/* notes that the upstream answers again: a profile that was kept is stale */
void ngx_mcp_profile_back(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * Notes in a profile that is REFUSED that the upstream speaks the kind of this
 * revision, as a client's own request has shown.  NGX_OK; NGX_DECLINED: the
 * profile is not REFUSED, or has this revision.
 */
ngx_int_t ngx_mcp_profile_narrow(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t revision);

/*
 * A number that grows when a profile is stored, stale or suspect, or when an
 * upstream answers again.  Takes no lock.
 */
uint64_t ngx_mcp_profile_changes(ngx_mcp_zone_t *zone);

/* notes that a profile may be wrong: the next get() asks, with any max_age */
void ngx_mcp_profile_suspect(ngx_mcp_zone_t *zone, ngx_str_t *key);


/* a profile for mcp_status; all zero at first */

typedef struct {
    ngx_str_t               key;
    ngx_uint_t              what;         /* ngx_mcp_profile_e */
    ngx_uint_t              kept;         /* as in ngx_mcp_profile_t */
    ngx_msec_t              age;          /* ms since its present state began */
    ngx_mcp_ref_t           ref;
    uint64_t                serial;
} ngx_mcp_profile_info_t;

/*
 * Goes on from the profile in *info to the next one, or to the first one if
 * *info is zero; the key is copied to pool.  NGX_OK; NGX_DONE: there are no
 * more; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_profile_info(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_profile_info_t *info);


#endif /* _NGX_MCP_PROFILE_H_INCLUDED_ */
