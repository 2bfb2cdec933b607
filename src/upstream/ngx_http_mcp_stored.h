
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Stored variables: those to which a directive ("set", "auth_request_set") or
 * a named capture of a regular expression has given a value in a request.
 * nginx cannot compute their values again.
 */

#ifndef _NGX_HTTP_MCP_STORED_H_INCLUDED_
#define _NGX_HTTP_MCP_STORED_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* the captures of a regular expression, from which nginx makes $1 etc. */

typedef struct {
#if (NGX_PCRE)
    ngx_uint_t                   ncaptures;
    int                         *captures;
    u_char                      *data;
#endif
    ngx_uint_t                   shared;
} ngx_http_mcp_captures_t;


/*
 * Makes an array to be used as r->variables, from the pool of r, in which only
 * the stored variables have values.  NULL: no memory.
 */
ngx_http_variable_value_t *ngx_http_mcp_stored_variables(
    ngx_http_request_t *r);

/*
 * Makes such an array for a subrequest of r.  It also has the values of those
 * variables of r for which nginx would compute other values in a subrequest,
 * such as $request_id.
 */
ngx_http_variable_value_t *ngx_http_mcp_subrequest_variables(
    ngx_http_request_t *r);

/*
 * Save and restore the captures of a request.  To be called before and after
 * variables are computed, because a "map" with a regular expression changes $1
 * of the request, even if the location captured it.
 */
void ngx_http_mcp_captures_save(ngx_http_request_t *r,
    ngx_http_mcp_captures_t *saved);
void ngx_http_mcp_captures_restore(ngx_http_request_t *r,
    ngx_http_mcp_captures_t *saved);


#endif /* _NGX_HTTP_MCP_STORED_H_INCLUDED_ */
