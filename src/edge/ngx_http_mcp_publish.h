
/*
 * "mcp_publish": a location that takes events by POST and puts each into the
 * log of the sessions it addresses.  One JSON object, an array of them, or
 * newline-delimited JSON; bad ones are refused one by one.  Many are taken in
 * several turns of the event loop; a client that leaves does not end that.
 *
 * The configuration is filled by the directive's parser in the module file,
 * which sets clcf->handler to the handler below.
 */

#ifndef _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_
#define _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_event_in.h"


struct ngx_http_mcp_publish_conf_s {
    ngx_mcp_zone_t             *zone;
    ngx_str_t                   endpoint;     /* empty: all of the zone */
    ngx_http_complex_value_t   *kind;         /* NULL: not given */
    ngx_http_complex_value_t   *topic;
    ngx_http_complex_value_t   *tenant;
    ngx_http_complex_value_t   *id;
    u_char                     *file;         /* where it was read */
    ngx_uint_t                  line;
};


/* how events stand in a body */

typedef enum {
    NGX_HTTP_MCP_PUBLISH_ONE = 0,
    NGX_HTTP_MCP_PUBLISH_ARRAY,
    NGX_HTTP_MCP_PUBLISH_LINES
} ngx_http_mcp_publish_e;


/* one POST */

typedef struct {
    ngx_http_request_t           *request;
    ngx_http_mcp_publish_conf_t  *conf;
    ngx_str_t                     tenant;     /* fixed here */
    ngx_str_t                     rest;       /* of the body */
    ngx_http_mcp_publish_e        form;
    ngx_event_t                   turn;
    ngx_uint_t                    published;
    ngx_uint_t                    accepted;   /* of these */
    ngx_uint_t                    omitted;    /* not in the answer */
    size_t                        size;       /* of what is */
    ngx_chain_t                  *out;
    ngx_chain_t                 **last;
    ngx_buf_t                    *buf;
    unsigned                      full:1;     /* some for want of room */

    /* of the event at hand */
    const char                   *error;      /* NULL: accepted */
    ngx_uint_t                    sessions;
    ngx_uint_t                    repeated;

    ngx_pool_t                   *scratch;    /* for each of several events;
                                                 NULL: there is one */
    ngx_http_mcp_event_in_t       in;
} ngx_http_mcp_publish_t;


ngx_int_t ngx_http_mcp_publish_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_ */
