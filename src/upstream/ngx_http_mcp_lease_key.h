
/*
 * Keys of leases: JSON arrays of the kind of what is leased ("feed", "own") and
 * of strings or nulls that say which one.
 */

#ifndef _NGX_HTTP_MCP_LEASE_KEY_H_INCLUDED_
#define _NGX_HTTP_MCP_LEASE_KEY_H_INCLUDED_


#include "ngx_mcp_core.h"


/*
 * The key of n parts, of which one may be NULL, in a buffer that the next call
 * uses again.  NGX_OK; NGX_DECLINED: it is longer than NGX_MCP_LEASE_KEY_MAX.
 */
ngx_int_t ngx_http_mcp_lease_key(ngx_str_t *kind, ngx_str_t **parts,
    ngx_uint_t n, ngx_str_t *key);

ngx_uint_t ngx_http_mcp_lease_key_is(ngx_str_t *key, ngx_str_t *kind);

/*
 * The parts of a key, into pool; one that was NULL has no data.  NGX_OK;
 * NGX_ERROR: there are fewer, or no memory.
 */
ngx_int_t ngx_http_mcp_lease_key_parse(ngx_str_t *key, ngx_pool_t *pool,
    ngx_str_t **parts, ngx_uint_t n);


#endif /* _NGX_HTTP_MCP_LEASE_KEY_H_INCLUDED_ */
