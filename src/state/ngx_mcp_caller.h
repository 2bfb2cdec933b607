
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The caller: the client that sent a request.  A client of the legacy revisions
 * has a session; a client of a stateless revision has none.
 *
 * The structure and its strings belong to the request, and live as long as the
 * request.
 */

#ifndef _NGX_MCP_CALLER_H_INCLUDED_
#define _NGX_MCP_CALLER_H_INCLUDED_


#include "ngx_mcp_session.h"


typedef struct {
    ngx_str_t              *endpoint;
    ngx_str_t               tenant;
    ngx_str_t               identity;
    ngx_str_t               list_key;     /* value of the key of
                                             mcp_list_cache */
    ngx_str_t               audience_key; /* list_key with the capabilities
                                             that the client declared
                                             (ngx_mcp_declared.h) */
    ngx_str_t               share;        /* name under which the client pays
                                             for blocks; set when it is needed
                                             for the first time */
    ngx_str_t               session_id;   /* id of a session that exists or is
                                             about to be made; or empty */
    ngx_uint_t              revision;     /* ngx_mcp_revision_e */
    ngx_uint_t              level;        /* ngx_mcp_level_e */
    ngx_str_t               capabilities; /* raw JSON object that a client
                                             without session sent; else empty */
    ngx_mcp_ref_t           audience;     /* audience whose lists the caller
                                             gets */
    ngx_mcp_ref_t           session;      /* block 0: there is none */
    ngx_mcp_session_t      *found;        /* copy of the session's members at
                                             the begin of the request, or
                                             NULL */
} ngx_mcp_caller_t;


#endif /* _NGX_MCP_CALLER_H_INCLUDED_ */
