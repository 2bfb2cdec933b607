
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The access rules that nginx's own modules have for a location.
 */

#ifndef _NGX_HTTP_MCP_ACCESS_H_INCLUDED_
#define _NGX_HTTP_MCP_ACCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * The name of a directive by which nginx checks who sends a request to the
 * location with loc_conf, or NULL.  Rules that the location has from outer, if
 * that is not NULL, do not count.  Rules of other modules are unknown.
 */
const char *ngx_http_mcp_access(ngx_conf_t *cf, void **loc_conf, void **outer);

/* the module with this name; NULL: nginx does not have it */
ngx_module_t *ngx_http_mcp_access_module(ngx_conf_t *cf, const char *name);


#endif /* _NGX_HTTP_MCP_ACCESS_H_INCLUDED_ */
