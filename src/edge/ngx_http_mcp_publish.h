
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * "mcp_publish": a location that takes events by POST and publishes them to
 * the sessions that they are for.  The body is one JSON object, an array of
 * objects, or newline-delimited JSON; wrong events are refused one by one.
 * Many events are taken in several turns of the event loop, which go on if the
 * client leaves.
 *
 * ngx_http_mcp_directives.c fills the configuration and sets clcf->handler to
 * the handler below.
 */

#ifndef _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_
#define _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_event_in.h"


struct ngx_http_mcp_publish_conf_s {
    ngx_mcp_zone_t             *zone;
    ngx_str_t                   endpoint;     /* empty: all in the zone */
    ngx_http_complex_value_t   *kind;         /* NULL: not given */
    ngx_http_complex_value_t   *topic;
    ngx_http_complex_value_t   *tenant;
    ngx_http_complex_value_t   *id;
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
    ngx_str_t                     tenant;     /* given by the location */
    ngx_str_t                     rest;       /* unread part of the body */
    ngx_http_mcp_publish_e        form;
    ngx_event_t                   turn;
    ngx_uint_t                    published;
    ngx_uint_t                    accepted;   /* some of "published" */
    ngx_uint_t                    omitted;    /* events not in the answer */
    size_t                        size;       /* bytes about the others */
    ngx_chain_t                  *out;
    ngx_chain_t                 **last;
    ngx_buf_t                    *buf;
    ngx_uint_t                    refusal;    /* status if all are refused */
    unsigned                      full:1;     /* an event was refused, as the
                                                 zone has no room */

    /* about the event at hand */
    const char                   *error;      /* NULL: accepted */
    ngx_uint_t                    sessions;
    ngx_uint_t                    repeated;

    ngx_pool_t                   *scratch;    /* pool for one event at a time;
                                                 NULL: there is one event */
    ngx_http_mcp_event_in_t       in;
} ngx_http_mcp_publish_t;


ngx_int_t ngx_http_mcp_publish_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_ */
