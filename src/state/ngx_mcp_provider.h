
/*
 * Providers: the upstream that has a resource, where an endpoint has several
 * upstreams and does not keep their lists.  It was listed there, or read.
 *
 * A table of fixed size in the zone, without the lock: what is put last
 * replaces what had its place, and whoever asks gets what is there, or nothing.
 * It only says which upstream is asked first.
 */

#ifndef _NGX_MCP_PROVIDER_H_INCLUDED_
#define _NGX_MCP_PROVIDER_H_INCLUDED_


#include "ngx_mcp_schema.h"


/* resources, at most */
#define NGX_MCP_PROVIDERS  4096


/* of a resource of an endpoint and tenant */
uint64_t ngx_mcp_provider_key(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *uri);

void ngx_mcp_provider_put(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream);

/* whether it is known to be at this upstream */
ngx_uint_t ngx_mcp_provider_is(ngx_mcp_zone_t *zone, uint64_t key,
    ngx_str_t *upstream);


#endif /* _NGX_MCP_PROVIDER_H_INCLUDED_ */
