
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An endpoint's settings for events, lists and topics.  The files of this
 * folder (the bridge) connect upstreams and sessions.  They do not depend on
 * requests of clients or on directives.
 */

#ifndef _NGX_HTTP_MCP_BRIDGE_H_INCLUDED_
#define _NGX_HTTP_MCP_BRIDGE_H_INCLUDED_


#include "ngx_http_mcp_router.h"
#include "ngx_http_mcp_upstream_request.h"
#include "ngx_mcp_caller.h"
#include "ngx_mcp_invalidate.h"
#include "ngx_mcp_list.h"


/* one mcp_events directive */

typedef struct {
    ngx_http_mcp_upstream_t     upstream;   /* the backend that sends the
                                               events, named by its URI */
    ngx_http_complex_value_t   *topic;      /* topic of all events; NULL: each
                                               event names its topic */
    ngx_uint_t                  demand;     /* NGX_HTTP_MCP_FEED_*; 0: the feed
                                               is always open */
} ngx_http_mcp_feed_t;

/*
 * Bits of "demand": the feed is opened on demand, once for each tenant or each
 * topic, because its URI or "topic=" has a variable of the tenant or topic.
 */

#define NGX_HTTP_MCP_FEED_TENANT  0x01
#define NGX_HTTP_MCP_FEED_TOPIC   0x02


/* values of mcp_list_cache */

typedef enum {
    NGX_HTTP_MCP_LIST_CACHE_OFF = 0,
    NGX_HTTP_MCP_LIST_CACHE_AUTO,
    NGX_HTTP_MCP_LIST_CACHE_ON
} ngx_http_mcp_list_cache_e;


/* bits of "tools": built-in tools that mcp_builtin_tools names */

#define NGX_HTTP_MCP_TOOL_WAIT     0x02
#define NGX_HTTP_MCP_TOOL_SESSION  0x04


/*
 * Bits of "topics": topics keep the endpoint's events; clients see topics as
 * resources; clients without a session may read topics, too.
 */

#define NGX_HTTP_MCP_TOPICS_KEPT         0x01
#define NGX_HTTP_MCP_TOPICS_OFFERED      0x02
#define NGX_HTTP_MCP_TOPICS_SESSIONLESS  0x04


/* the settings of one endpoint, which live as long as its configuration */

typedef struct {
    ngx_mcp_zone_t             *zone;
    ngx_str_t                   endpoint;    /* name of the endpoint */
    ngx_http_conf_ctx_t        *conf_ctx;    /* contexts of its location */
    ngx_http_mcp_router_t       router;      /* upstreams of the endpoint */
    ngx_uint_t                  duplicate;   /* earlier settings exist for the
                                                same endpoint */

    ngx_array_t                *feeds;       /* ngx_http_mcp_feed_t */
    ngx_array_t                *invalidate;  /* ngx_mcp_rule_t; NULL: the
                                                default rules */
    ngx_str_t                   logger;      /* mcp_logger, or empty */
    ngx_str_t                   logger_json; /* "logger" of messages that rules
                                                send, a JSON string */
    ngx_msec_t                  coalesce;    /* length of a coalescing window;
                                                0: events are sent at once */

    ngx_uint_t                  lists;       /* ngx_http_mcp_list_cache_e */
    ngx_msec_t                  lists_ttl;   /* age at which a cached list is
                                                fetched again */
    ngx_http_complex_value_t   *lists_key;   /* key of an audience beside its
                                                tenant; NULL: none */
    ngx_uint_t                  lists_max;   /* audiences that the endpoint may
                                                have */
    ngx_uint_t                  lists_kinds; /* NGX_MCP_LIST_BIT() of kinds of
                                                lists that are cached */
    ngx_uint_t                  lists_passing;  /* the cached kinds whose lists
                                                   are not fetched, but stored
                                                   when a client requests them
                                                   */
    ngx_uint_t                  lists_here;  /* mcp_list_cache is written in
                                                the location itself */
    ngx_flag_t                  lists_warm;  /* lists are fetched before a
                                                client asks for them */
    ngx_str_t                  *lists_tenant;  /* tenant of the one audience
                                                  that is known before clients
                                                  ask, or NULL */
    ngx_mcp_sources_t           sources;     /* sources of lists' parts: the
                                                router's upstreams */
    ngx_uint_t                  declared;    /* lists of upstreams may depend
                                                on the capabilities that clients
                                                declare */

    ngx_uint_t                  tools;       /* NGX_HTTP_MCP_TOOL_* */
    ngx_uint_t                 *hidden;      /* NGX_HTTP_MCP_TOOL_* of built-in
                                                tools that hide a tool of an
                                                upstream, as this worker has
                                                logged */
    ngx_uint_t                  topics;      /* NGX_HTTP_MCP_TOPICS_* */
    ngx_uint_t                  topic_limit; /* topics of a tenant, at most
                                                */
    ngx_str_t                  *tenant;      /* tenant of all clients; NULL:
                                                clients have different ones */
} ngx_http_mcp_bridge_t;


#endif /* _NGX_HTTP_MCP_BRIDGE_H_INCLUDED_ */
