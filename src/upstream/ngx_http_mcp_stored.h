
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Variables that a directive or a match has stored in a request ("set",
 * "auth_request_set", names in regular expressions), and that nginx cannot
 * compute again.
 */

#ifndef _NGX_HTTP_MCP_STORED_H_INCLUDED_
#define _NGX_HTTP_MCP_STORED_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* the matches of which $1 and the like are made */

typedef struct {
#if (NGX_PCRE)
    ngx_uint_t                   ncaptures;
    int                         *captures;
    u_char                      *data;
#endif
    ngx_uint_t                   shared;
} ngx_http_mcp_captures_t;


/*
 * Makes an array for all variables, from the pool of r, in which only the
 * stored ones have values.  NULL: no memory.
 */
ngx_http_variable_value_t *ngx_http_mcp_stored_variables(
    ngx_http_request_t *r);

/*
 * Such an array for a subrequest of r.  It also has variables of r that would
 * get other values in a subrequest, such as $request_id.
 */
ngx_http_variable_value_t *ngx_http_mcp_handed_variables(
    ngx_http_request_t *r);

/*
 * A "map" with a regular expression changes $1 of a request, also of one whose
 * location has captured it.  ..._save() is called before variables are
 * computed, and ..._restore() afterwards.
 */
void ngx_http_mcp_captures_save(ngx_http_request_t *r,
    ngx_http_mcp_captures_t *saved);
void ngx_http_mcp_captures_restore(ngx_http_request_t *r,
    ngx_http_mcp_captures_t *saved);


#endif /* _NGX_HTTP_MCP_STORED_H_INCLUDED_ */
