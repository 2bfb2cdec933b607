
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
    ngx_str_t                   endpoint;     /* empty: events are for all
                                                 endpoints of the zone */

    /* values for all events of a POST; NULL: not configured */
    ngx_http_complex_value_t   *kind;
    ngx_http_complex_value_t   *topic;
    ngx_http_complex_value_t   *tenant;
    ngx_http_complex_value_t   *id;
};


/* the form of a body: one event, a JSON array, or newline-delimited JSON */

typedef enum {
    NGX_HTTP_MCP_PUBLISH_ONE = 0,
    NGX_HTTP_MCP_PUBLISH_ARRAY,
    NGX_HTTP_MCP_PUBLISH_LINES
} ngx_http_mcp_publish_e;


/* the work on one POST */

typedef struct {
    ngx_http_request_t           *request;
    ngx_http_mcp_publish_conf_t  *conf;
    ngx_http_variable_value_t    *values;     /* memory for variables of the
                                                 location's values */
    ngx_str_t                     tenant;     /* tenant that the location sets,
                                                 or empty */
    ngx_str_t                     rest;       /* unread part of the body */
    ngx_http_mcp_publish_e        form;
    ngx_event_t                   turn;       /* timer of the next turn */
    ngx_uint_t                    published;  /* number of events read */
    ngx_uint_t                    accepted;   /* number of accepted events */
    ngx_uint_t                    omitted;    /* number of events about which
                                                 the answer says nothing */
    size_t                        size;       /* bytes of the answer about
                                                 events */
    ngx_chain_t                  *out;        /* the answer */
    ngx_chain_t                 **last;
    ngx_buf_t                    *buf;        /* the answer's last buffer */
    ngx_uint_t                    refusal;    /* HTTP status if no event is
                                                 accepted */
    unsigned                      full:1;     /* an event was refused, as the
                                                 zone has no room */

    /* the current event */
    const char                   *error;      /* why the event is refused; NULL:
                                                 it is accepted */
    ngx_uint_t                    sessions;   /* number of sessions that the
                                                 event is for */
    ngx_uint_t                    repeated;   /* an earlier event has the same
                                                 id */

    ngx_pool_t                   *scratch;    /* pool that is reset for each
                                                 event; NULL: the request's
                                                 pool, as there is one event */
    ngx_http_mcp_event_in_t       in;
} ngx_http_mcp_publish_t;


ngx_int_t ngx_http_mcp_publish_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_MCP_PUBLISH_H_INCLUDED_ */
