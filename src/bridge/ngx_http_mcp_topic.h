
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Topics as resources.  Their URIs are events://TOPIC/latest; bytes of TOPIC
 * that may not stand in a URI are percent-encoded.  The zone keeps the events
 * (ngx_mcp_topic.h).
 */

#ifndef _NGX_HTTP_MCP_TOPIC_H_INCLUDED_
#define _NGX_HTTP_MCP_TOPIC_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_mcp_topic.h"


/* longest decoded name of a topic, in bytes */
#define NGX_HTTP_MCP_TOPIC_MAX  512

/* error text if one more topic is refused */
#define NGX_HTTP_MCP_TOPICS_BUSY                                              \
    "too many topics are in use: a session may keep an eighth of "            \
    "mcp_topic_limit, a tenant all of it; try again later"


/*
 * Composes the URI of a topic's resource from its decoded name, in pool.
 * NGX_OK; NGX_DECLINED: the name is too long or empty, has a control character
 * or is no UTF-8; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_topic_uri(ngx_str_t *name, ngx_pool_t *pool,
    ngx_str_t *uri);

/*
 * Fills *topic for the resource with this URI.  If it is the URI of a topic,
 * and the endpoint has topics, sets *uri to the normalized URI and *name to the
 * name of the topic; else *name is empty.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_topic_resolve(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *uri, ngx_pool_t *pool, ngx_mcp_topic_t *topic, ngx_str_t *name);

/*
 * Composes the raw result of resources/read for a topic, from pool.  NGX_OK;
 * NGX_DECLINED: there is no such topic; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_topic_read(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_mcp_topic_t *topic, ngx_str_t *name,
    ngx_pool_t *pool, ngx_str_t *result);

/*
 * Composes a text, from pool: head, then the entries of resources/list for the
 * topics that the caller may see, separated by commas, then tail.  If tail
 * begins with an entry, a comma is written before it.  NGX_OK or NGX_ERROR (no
 * memory).
 */
ngx_int_t ngx_http_mcp_topic_entries(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool, ngx_str_t *head,
    ngx_str_t *tail, ngx_str_t *text);

/* the raw entry of resources/templates/list for topics */
extern ngx_str_t  ngx_http_mcp_topic_template;


#endif /* _NGX_HTTP_MCP_TOPIC_H_INCLUDED_ */
