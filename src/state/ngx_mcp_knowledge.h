
/*
 * What is known of upstreams: which protocol one speaks and what it said to
 * initialize, per upstream and audience.  Asked once, by one worker, for all.
 */

#ifndef _NGX_MCP_KNOWLEDGE_H_INCLUDED_
#define _NGX_MCP_KNOWLEDGE_H_INCLUDED_


#include "ngx_mcp_zone.h"


typedef enum {
    NGX_MCP_KNOWN_NOTHING = 0,    /* asked, nobody answered */
    NGX_MCP_KNOWN_RPC,
    NGX_MCP_KNOWN_LEGACY,
    NGX_MCP_KNOWN_MODERN,
    NGX_MCP_KNOWN_REFUSED         /* 401 or 403: ask with client's initialize */
} ngx_mcp_known_e;

typedef struct {
    ngx_uint_t              what;         /* ngx_mcp_known_e */
    ngx_uint_t              revision;     /* negotiated with it */
    ngx_str_t               result;       /* raw result of its initialize */
    ngx_str_t               session;      /* the module's own session there */
} ngx_mcp_knowledge_t;


/*
 * Looks up what is known under a key (upstream + audience, made by the
 * caller).  epoch: configuration generation; an entry of another epoch, or
 * one older than max_age ms, counts as unknown.  NGX_OK: *out, strings copied
 * to pool.  NGX_DECLINED: unknown, and asking is now the caller's duty, which
 * ends with put.  NGX_AGAIN: another worker is asking; handlers->knowledge
 * will be called.  NGX_ERROR: zone full.
 */
ngx_int_t ngx_mcp_knowledge_get(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_knowledge_t *out);

/* stores the outcome and rings all workers; result at most 64k */
ngx_int_t ngx_mcp_knowledge_put(ngx_mcp_zone_t *zone, ngx_str_t *key,
    uint64_t epoch, ngx_mcp_knowledge_t *in);

/* any age, and also when it was declared stale */
#define NGX_MCP_KNOWLEDGE_ANY  ((ngx_msec_t) -1)

/* it may be out of date: who does not take any age asks again */
void ngx_mcp_knowledge_stale(ngx_mcp_zone_t *zone, ngx_str_t *key);

/* a number that grows whenever anything known changes; without the lock */
uint64_t ngx_mcp_knowledge_changes(ngx_mcp_zone_t *zone);

/* forgets what is known, so that the next one asks again */
void ngx_mcp_knowledge_forget(ngx_mcp_zone_t *zone, ngx_str_t *key);


#endif /* _NGX_MCP_KNOWLEDGE_H_INCLUDED_ */
