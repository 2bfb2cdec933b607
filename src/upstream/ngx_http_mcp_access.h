
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Access rules of nginx's own modules (access, auth_basic, auth_request) in a
 * location.
 */

#ifndef _NGX_HTTP_MCP_ACCESS_H_INCLUDED_
#define _NGX_HTTP_MCP_ACCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * The name of a directive that restricts access to the location with loc_conf,
 * or NULL.  Rules that the location inherits from outer do not count, unless
 * outer is NULL.  Rules of other modules are not known.
 */
const char *ngx_http_mcp_access(ngx_conf_t *cf, void **loc_conf, void **outer);

/* the module with this name; NULL: nginx does not have it */
ngx_module_t *ngx_http_mcp_access_module(ngx_conf_t *cf, const char *name);


#endif /* _NGX_HTTP_MCP_ACCESS_H_INCLUDED_ */
