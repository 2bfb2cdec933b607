
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Texts of revision 2026-07-28.  Messages inside the module have no envelope;
 * these functions turn them into messages for servers of that revision, and
 * the answers of such servers into messages of the module.
 */

#ifndef _NGX_MCP_MODERN_H_INCLUDED_
#define _NGX_MCP_MODERN_H_INCLUDED_


#include "ngx_mcp_message.h"
#include "ngx_mcp_splice.h"


/* the description of a client that each request has in its envelope */

typedef struct {
    ngx_str_t               info;         /* raw object, or empty */
    ngx_str_t               capabilities; /* raw object, or empty */
    ngx_uint_t              level;        /* log level, ngx_mcp_level_e */
} ngx_mcp_modern_client_t;


/*
 * Reads the description of a client from the raw params of initialize.
 * client->capabilities is a copy from pool without the members that the
 * revision does not define.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_mcp_modern_client(ngx_pool_t *pool, ngx_str_t *initialize,
    ngx_mcp_modern_client_t *client);

/*
 * Composes the envelope of a client: raw members of params._meta, without
 * braces.  data NULL: no memory.
 */
ngx_str_t ngx_mcp_modern_envelope(ngx_pool_t *pool,
    ngx_mcp_modern_client_t *client);

/*
 * Copies a scanned request and adds the envelope.  If id (raw) is not empty,
 * it replaces the request's id; if members (raw) is not empty, they are put
 * into params.  data NULL: no memory.
 */
ngx_str_t ngx_mcp_modern_request(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_json_t *json, ngx_str_t *envelope, ngx_str_t *id,
    ngx_str_t *members);

/*
 * Removes from a scanned message, in place, the members that only this revision
 * defines, for a client of a legacy revision.  method: the method of the
 * request that a result answers, or NGX_MCP_METHOD_OTHER.  Returns 1 if the
 * text may have changed, so that the scan is not valid any more, else 0.
 */
ngx_uint_t ngx_mcp_modern_plain(ngx_str_t *text, ngx_mcp_json_t *json,
    ngx_uint_t method);

/*
 * Turns the raw result of server/discover into one of initialize.  data NULL:
 * no memory, or the server does not list the revision as supported.
 */
ngx_str_t ngx_mcp_modern_discovered(ngx_pool_t *pool, ngx_str_t *result);

/* whether a raw result of server/discover lists the revision as supported */
ngx_uint_t ngx_mcp_modern_offered(ngx_str_t *result);

/* whether a raw error of a server lists the revision as supported */
ngx_uint_t ngx_mcp_modern_supported(ngx_str_t *error);


#endif /* _NGX_MCP_MODERN_H_INCLUDED_ */
