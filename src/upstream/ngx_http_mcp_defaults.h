
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The second module of the library: in locations that an mcp_upstream names,
 * it gives the proxy module's directives that the user wrote on no level the
 * values that exchanges need.  It stands before the proxy module, whose
 * configurations are merged after its own.  client_max_body_size, of which the
 * endpoint has its own, does not limit a location that inherits it.  It also
 * finds the variables that locations set.
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

    unsigned                           target:1;    /* an mcp_upstream names the
                                                    location */
    unsigned                           endpoint:1;  /* the location has an
                                                    endpoint */

    /* the user wrote the directive, on this level or above */
    unsigned                           http_version:1;
    unsigned                           buffering:1;
    unsigned                           read_timeout:1;
    unsigned                           buffers:1;

    unsigned                           no_keepalive:1;  /* the user turned TCP
                                                           keep-alive off */

    unsigned                           reported:1;

    ngx_http_upstream_conf_t          *patient;  /* copy of the proxy module's
                                                    configuration without a read
                                                    time-out; made when first
                                                    needed */
};


/*
 * To be called by a directive that names the location of an upstream: the
 * location gets the defaults.  A URI with variables leads to no known
 * location.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_defaults_target(ngx_conf_t *cf, ngx_str_t *uri);

/* the location of cf is an endpoint, which no mcp_upstream may name */
void ngx_http_mcp_defaults_endpoint(ngx_conf_t *cf);

/* whether conf is that of the proxy module in the location of r */
ngx_uint_t ngx_http_mcp_defaults_is_proxy(ngx_http_request_t *r,
    ngx_http_upstream_conf_t *conf);

/*
 * The HTTP version that the proxy module speaks in the location of r, as
 * NGX_HTTP_VERSION_11; 0: unknown.
 */
ngx_uint_t ngx_http_mcp_defaults_version(ngx_http_request_t *r);

/*
 * The indices (ngx_uint_t) of variables that any location sets by "set" or
 * "auth_request_set".  A "map" may give them values, too, but nginx uses what
 * was set.
 */
ngx_array_t *ngx_http_mcp_defaults_assigned(ngx_http_request_t *r);


extern ngx_module_t  ngx_http_mcp_defaults_module;


#endif /* _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_ */
