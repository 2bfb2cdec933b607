
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The caller: the client that a request comes from, as far as anything below
 * the edge knows it.  A client of the legacy revisions has a session; one of
 * a stateless revision has none: functions that need the session's record do
 * not find it then.
 *
 * A caller belongs to the request; strings live as long as that.
 */

#ifndef _NGX_MCP_CALLER_H_INCLUDED_
#define _NGX_MCP_CALLER_H_INCLUDED_


#include "ngx_mcp_session.h"


typedef struct {
    ngx_str_t              *endpoint;
    ngx_str_t               tenant;
    ngx_str_t               identity;
    ngx_str_t               list_key;     /* of mcp_list_cache */
    ngx_str_t               audience_key; /* with what the client declares
                                             (ngx_mcp_declared.h) */
    ngx_str_t               share;        /* key of the account that pays;
                                             set when it is needed first */
    ngx_str_t               session_id;   /* verified, or drawn, or empty */
    ngx_uint_t              revision;     /* ngx_mcp_revision_e */
    ngx_uint_t              level;        /* ngx_mcp_level_e */
    ngx_str_t               capabilities; /* raw object, of a client without
                                             session; else empty */
    ngx_mcp_ref_t           audience;     /* the caller gets its lists */
    ngx_mcp_ref_t           session;      /* block 0: none */
    ngx_mcp_session_t      *found;        /* the session when it was found, or
                                             NULL */
} ngx_mcp_caller_t;


#endif /* _NGX_MCP_CALLER_H_INCLUDED_ */
