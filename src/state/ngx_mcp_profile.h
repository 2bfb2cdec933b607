
/*
 * What is known of upstreams: which protocol one speaks and what it said to
 * initialize, per upstream and audience.  Asked once, by one worker, for all.
 */

#ifndef _NGX_MCP_PROFILE_H_INCLUDED_
#define _NGX_MCP_PROFILE_H_INCLUDED_


#include "ngx_mcp_schema.h"


typedef enum {
    NGX_MCP_PROFILE_UNKNOWN = 0,  /* asked, without a usable answer */
    NGX_MCP_PROFILE_RPC,
    NGX_MCP_PROFILE_LEGACY,
    NGX_MCP_PROFILE_MODERN,
    NGX_MCP_PROFILE_REFUSED       /* to be asked with clients' initialize */
} ngx_mcp_profile_e;

typedef struct {
    uint32_t                hash;         /* of the key, also after NGX_AGAIN */
    ngx_uint_t              what;         /* ngx_mcp_profile_e */
    ngx_uint_t              kept;         /* though asked again in vain */
    ngx_uint_t              revision;     /* negotiated with it */
    ngx_str_t               result;       /* raw result of its initialize */
    ngx_uint_t              status;       /* of KNOWN_NOTHING: the HTTP status
                                             and ... */
    ngx_str_t               why;          /* ... the sentence for clients */
} ngx_mcp_profile_t;


/*
 * Looks up what is known under a key (upstream + audience, made by the
 * caller).  epoch: configuration generation; an entry of another epoch, or
 * one older than max_age ms, counts as unknown.  NGX_OK: *out, strings copied
 * to pool.  NGX_DECLINED: unknown, and asking is now the caller's duty, which
 * ends with put.  NGX_AGAIN: a worker of this or a newer epoch is asking;
 * handlers->profiles will be called.  NGX_ERROR: zone full.
 */
ngx_int_t ngx_mcp_profile_get(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_profile_t *out);

/* an entry that says nothing, or is only kept, counts for so long, ms */
#define NGX_MCP_PROFILE_SHORT_AGE  1000

/* stores the outcome and rings all workers; result at most 64k */
ngx_int_t ngx_mcp_profile_put(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_mcp_profile_t *in);

/*
 * Ends asking without an outcome, with which all workers are rung.  NGX_OK:
 * the former profile of an MCP server, from this epoch, is kept for a
 * moment, and then the server is asked again; NGX_DECLINED: there is none.
 */
ngx_int_t ngx_mcp_profile_keep(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch);

/* likewise, for anybody to ask at once */
void ngx_mcp_profile_give_up(ngx_mcp_zone_t *zone, ngx_str_t *key);

/* any age, and also when it was declared stale */
#define NGX_MCP_PROFILE_ANY_AGE  ((ngx_msec_t) -1)

/* it may be out of date: who does not take any age asks again */
void ngx_mcp_profile_stale(ngx_mcp_zone_t *zone, ngx_str_t *key);

/* a number that grows whenever anything known changes; without the lock */
uint64_t ngx_mcp_profile_changes(ngx_mcp_zone_t *zone);

/* it is doubtful: the next one asks again, whatever age it takes */
void ngx_mcp_profile_suspect(ngx_mcp_zone_t *zone, ngx_str_t *key);


#endif /* _NGX_MCP_PROFILE_H_INCLUDED_ */
