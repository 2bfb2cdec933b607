
/*
 * Topics as resources: events://TOPIC/latest, where everything of TOPIC that
 * may not stand in a URI is percent-encoded.  Their events are kept by
 * ngx_mcp_topic.h.
 */

#ifndef _NGX_HTTP_MCP_TOPIC_H_INCLUDED_
#define _NGX_HTTP_MCP_TOPIC_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_event.h"
#include "ngx_mcp_topic.h"


/* of a name, decoded */
#define NGX_HTTP_MCP_TOPIC_MAX  512

/* why there can not be one more */
#define NGX_HTTP_MCP_TOPICS_BUSY                                              \
    "too many topics are in use: a session may keep an eighth of "            \
    "mcp_topic_limit, a tenant all of it; try again later"


/* NGX_OK; NGX_DECLINED: too long or empty; NGX_ERROR: no memory */
ngx_int_t ngx_http_mcp_topic_uri(ngx_str_t *name, ngx_pool_t *pool,
    ngx_str_t *uri);

/*
 * The endpoint's name of the resource of a URI: *uri becomes that of its
 * topic as it is kept, if it is one and the endpoint has topics.  name: of the
 * topic, else empty.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_topic_resolve(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *uri, ngx_pool_t *pool, ngx_mcp_topic_t *topic, ngx_str_t *name);

/*
 * Adds to what "to" delivers: an event (raw object) to be kept in the topic of
 * to->topic at an endpoint, which is made if clients without a session may read
 * it; and, for those who asked for another resource, a
 * notification that this was updated.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_topic_keep(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_address_t *to, ngx_pool_t *pool, ngx_str_t *text);
ngx_int_t ngx_http_mcp_topic_updated(ngx_http_mcp_address_t *to,
    ngx_str_t *uri, ngx_str_t *text);

/*
 * The URI of the topic that has the name of an event's kind, from pool, and a
 * delivery that adds the event to it, if it is there: NGX_OK; NGX_DECLINED: it
 * is not; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_topic_of_kind(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_address_t *to, ngx_pool_t *pool, ngx_mcp_invalidate_t *in,
    ngx_str_t *uri);

/*
 * The raw result of resources/read.  NGX_OK; NGX_DECLINED: there is no such
 * topic; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_topic_read(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_mcp_topic_t *topic, ngx_str_t *name,
    ngx_pool_t *pool, ngx_str_t *result);

/*
 * Entries of resources/list, separated by commas, for what the session may
 * see: between head and tail, which may begin with an entry that needs a comma
 * before it.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_topic_entries(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool, ngx_str_t *head,
    ngx_str_t *tail, ngx_str_t *text);

/* the entry of resources/templates/list */
extern ngx_str_t  ngx_http_mcp_topic_template;


#endif /* _NGX_HTTP_MCP_TOPIC_H_INCLUDED_ */
