
/*
 * The second module of the library: in locations that an mcp_upstream names,
 * it gives the proxy module's directives that the user wrote on no level the
 * values that exchanges need.  It stands before the proxy module, whose
 * configurations are merged after its own.
 */

#ifndef _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_
#define _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct ngx_http_mcp_defaults_loc_conf_s
    ngx_http_mcp_defaults_loc_conf_t;

struct ngx_http_mcp_defaults_loc_conf_s {
    ngx_http_mcp_defaults_loc_conf_t  *prev;
    void                             **loc_conf;

    unsigned                           target:1;
    unsigned                           endpoint:1;

    /* these the user wrote, here or on a level above */
    unsigned                           http_version:1;
    unsigned                           buffering:1;
    unsigned                           read_timeout:1;
    unsigned                           buffers:1;

    unsigned                           unprobed:1;  /* "off" was written for
                                                       TCP's keep-alive */

    unsigned                           reported:1;

    ngx_http_upstream_conf_t          *patient;  /* the proxy module's, without
                                                    a read time-out; made when
                                                    first needed */
};


/*
 * To be called by a directive that names the location of an upstream; a URI
 * with variables cannot be known here.
 */
ngx_int_t ngx_http_mcp_defaults_target(ngx_conf_t *cf, ngx_str_t *uri);

/* the location at hand is an endpoint: no directive may name it */
void ngx_http_mcp_defaults_endpoint(ngx_conf_t *cf);

/* whether u is the proxy module's, in the location of r */
ngx_uint_t ngx_http_mcp_defaults_is_proxy(ngx_http_request_t *r,
    ngx_http_upstream_conf_t *conf);

/* the version that the proxy module speaks in the location of r, 0: unknown */
ngx_uint_t ngx_http_mcp_defaults_version(ngx_http_request_t *r);


extern ngx_module_t  ngx_http_mcp_defaults_module;


#endif /* _NGX_HTTP_MCP_DEFAULTS_H_INCLUDED_ */
