
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The second nginx module of the library.  In a location that an mcp_upstream
 * or mcp_events names, it sets directives of the proxy module to the values
 * that exchanges need, unless the user wrote them on some level.  To do so, it
 * stands before the proxy module, whose configurations are merged after its
 * own.  It also lifts an inherited client_max_body_size there, because the
 * endpoint checks its own, and collects the variables that locations set.
 */

#ifndef _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_
#define _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct ngx_http_mcp_defaults_loc_conf_s
    ngx_http_mcp_defaults_loc_conf_t;

struct ngx_http_mcp_defaults_loc_conf_s {
    ngx_http_mcp_defaults_loc_conf_t  *prev;      /* the level above */
    void                             **loc_conf;  /* configurations of all
                                                     modules on this level */
    off_t                              body_size;  /* client_max_body_size */

    unsigned                           target:1;    /* a directive names the
                                                       location as that of an
                                                       upstream */
    unsigned                           endpoint:1;  /* the location has an
                                                       endpoint */

    /* the user wrote the directive, on this level or above */
    unsigned                           http_version:1;
    unsigned                           buffering:1;
    unsigned                           read_timeout:1;
    unsigned                           buffers:1;

    unsigned                           no_keepalive:1;  /* the user turned TCP
                                                           keep-alive off */

    unsigned                           reported:1;  /* the log said that the
                                                       location uses HTTP/1.0 */

    ngx_http_upstream_conf_t          *no_timeout;  /* copy of the proxy
                                                       module's configuration
                                                       without a read time-out;
                                                       made when first needed */
};


/*
 * To be called by a directive that names the location of an upstream by this
 * URI, which has no variables: the location gets the defaults.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_defaults_target(ngx_conf_t *cf, ngx_str_t *uri);

/* marks the location of cf as an endpoint, which no mcp_upstream may name */
void ngx_http_mcp_defaults_endpoint(ngx_conf_t *cf);

/* whether conf is that of the proxy module in the location of r */
ngx_uint_t ngx_http_mcp_defaults_is_proxy(ngx_http_request_t *r,
    ngx_http_upstream_conf_t *conf);

/*
 * The HTTP version that the proxy module uses in the location of r, such as
 * NGX_HTTP_VERSION_11; 0: unknown.
 */
ngx_uint_t ngx_http_mcp_defaults_version(ngx_http_request_t *r);

/*
 * The indices (ngx_uint_t) of the variables that any location sets by "set" or
 * "auth_request_set".  Even if a "map" has the same variable, nginx uses the
 * value that was set.
 */
ngx_array_t *ngx_http_mcp_defaults_assigned(ngx_http_request_t *r);


extern ngx_module_t  ngx_http_mcp_defaults_module;


#endif /* _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_ */
