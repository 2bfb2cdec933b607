
/*
 * Profiles of upstreams: the protocol that one speaks and its answer to
 * initialize, per upstream and tenant.  One worker asks, for all workers.
 *
 * One may serve several endpoints.  Its key then is that of one of them, and
 * the others say "shared"; if what was found out turns out to depend on the
 * endpoint, they get NGX_DONE and use keys of their own.
 */

#ifndef _NGX_MCP_PROFILE_H_INCLUDED_
#define _NGX_MCP_PROFILE_H_INCLUDED_


#include "ngx_mcp_schema.h"


typedef enum {
    NGX_MCP_PROFILE_UNKNOWN = 0,  /* asked, without a usable answer */
    NGX_MCP_PROFILE_RPC,
    NGX_MCP_PROFILE_LEGACY,
    NGX_MCP_PROFILE_MODERN,
    NGX_MCP_PROFILE_BOTH,         /* LEGACY and MODERN */
    NGX_MCP_PROFILE_REFUSED       /* to be asked with clients' initialize */
} ngx_mcp_profile_e;

typedef struct {
    uint32_t                hash;         /* of the key, also after NGX_AGAIN */
    ngx_uint_t              what;         /* ngx_mcp_profile_e */
    ngx_uint_t              kept;         /* though asked again in vain */
    ngx_uint_t              ask;          /* the caller has to ask again */
    ngx_uint_t              revision;     /* negotiated with it; of REFUSED:
                                             one of its kind, or 0 */
    ngx_str_t               result;       /* raw result of its initialize */
    ngx_uint_t              status;       /* of UNKNOWN: the HTTP status
                                             and ... */
    ngx_str_t               why;          /* ... the sentence for clients */
    ngx_msec_t              asked;        /* NGX_AGAIN: for so long; status is
                                             that of the last time, or 0 */
    ngx_uint_t              own;          /* put, fail: it holds for the
                                             endpoint of the key alone */
} ngx_mcp_profile_t;


/*
 * Looks up what is known under a key (upstream + audience, made by the
 * caller).  epoch: configuration generation; an entry of another epoch, or
 * one older than max_age ms, is to be asked for again.  NGX_OK: *out, strings
 * copied to pool.  NGX_DECLINED: asking is now the caller's duty, which ends
 * with put, fail or give_up; so it is after NGX_OK with out->ask, but what is
 * known serves meanwhile.  NGX_AGAIN: a worker of this or a newer epoch is
 * asking; handlers->profiles will be called.  NGX_DONE: it is not shared.
 * NGX_ERROR: zone full.
 */
ngx_int_t ngx_mcp_profile_get(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_uint_t shared, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_profile_t *out);

/* likewise, whatever its age, and never asks; NGX_DECLINED: nothing is known */
ngx_int_t ngx_mcp_profile_stored(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t shared, ngx_pool_t *pool, ngx_mcp_profile_t *out);

/*
 * ms; the next initialize asks an upstream again whose profile is older than
 * this, and makes a worker's offer anew that is older
 */
#define NGX_MCP_PROFILE_FRESH_AGE  3600000

/* ms; a profile of NGX_MCP_PROFILE_UNKNOWN is valid for so long */
#define NGX_MCP_PROFILE_SHORT_AGE  1000

/* ms; a kept profile is valid longer after each attempt, up to this */
#define NGX_MCP_PROFILE_KEPT_AGE   16000

/* stores the outcome and rings all workers; result at most 64k */
ngx_int_t ngx_mcp_profile_put(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_mcp_profile_t *in);

/*
 * Ends asking in vain, with which all workers are rung.  NGX_OK: what was known
 * is kept, and the upstream is asked again after growing pauses: any profile if
 * it is away, else that of an MCP server from this epoch.  NGX_DECLINED: there
 * is none, and *in, which says why, is stored.
 */
ngx_int_t ngx_mcp_profile_fail(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_uint_t away, ngx_mcp_profile_t *in);

/* ends asking without an outcome, for anybody to ask at once */
void ngx_mcp_profile_give_up(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * Likewise, and the others have it for themselves: what was asked for one of
 * them holds for it alone.
 */
void ngx_mcp_profile_separate(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch);

/* any age, and also when it was declared stale */
#define NGX_MCP_PROFILE_ANY_AGE  ((ngx_msec_t) -1)

/* it may be out of date: who does not take any age asks again */
void ngx_mcp_profile_stale(ngx_mcp_zone_t *zone, ngx_str_t *key);

/* the upstream answers again: likewise, if the profile was only kept */
void ngx_mcp_profile_back(ngx_mcp_zone_t *zone, ngx_str_t *key);

/*
 * One that is REFUSED is of the kind of this revision, as a client's own
 * request has shown.  NGX_OK; NGX_DECLINED: it is not REFUSED, or that was
 * known.
 */
ngx_int_t ngx_mcp_profile_narrow(ngx_mcp_zone_t *zone, ngx_str_t *key,
    ngx_uint_t revision);

/* a number that grows whenever anything known changes; without the lock */
uint64_t ngx_mcp_profile_changes(ngx_mcp_zone_t *zone);

/* it is doubtful: the next one asks again, whatever age it takes */
void ngx_mcp_profile_suspect(ngx_mcp_zone_t *zone, ngx_str_t *key);


/* for the status: what a profile says, and for how long */

typedef struct {
    ngx_str_t               key;
    ngx_uint_t              what;         /* ngx_mcp_profile_e */
    ngx_uint_t              kept;
    ngx_uint_t              own;          /* it holds for one endpoint */
    uint64_t                epoch;        /* that asked last */
    ngx_msec_t              age;          /* of this state */
    ngx_mcp_ref_t           ref;
    uint64_t                serial;
} ngx_mcp_profile_info_t;

/*
 * The profile behind that of which *info tells, or the first if that is zero;
 * the key from pool.  NGX_OK, NGX_DONE or NGX_ERROR.
 */
ngx_int_t ngx_mcp_profile_info(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_profile_info_t *info);


#endif /* _NGX_MCP_PROFILE_H_INCLUDED_ */
