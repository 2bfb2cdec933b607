
/*
 * Events on their way from a source to the log of the sessions they address:
 * notifications as they are, and invalidate events by the rules of an
 * endpoint.
 */

#ifndef _NGX_HTTP_MCP_EVENT_H_INCLUDED_
#define _NGX_HTTP_MCP_EVENT_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_pending.h"
#include "ngx_mcp_take.h"


/* who an event is for; what is given narrows together */

typedef struct {
    ngx_mcp_zone_t         *zone;
    ngx_str_t              *endpoint;     /* NULL: all */
    ngx_str_t              *tenant;       /* NULL: all */
    ngx_str_t               session;      /* UUID text; data NULL: all */
    ngx_str_t               identity;     /* data NULL: all */
    ngx_str_t               uri;          /* subscribed to; len 0: all */
    ngx_str_t               topic;        /* URI of the topic, likewise */
    ngx_mcp_take_t         *take;         /* NULL: none */
    ngx_mcp_once_t         *once;         /* NULL: it is not repeated */

    unsigned                answered:1;   /* the sender hears what became
                                             of it */
    unsigned                large:1;      /* out: it is, for some */
} ngx_http_mcp_address_t;


/*
 * Puts an event, whose address and parts are filled in here, into the log.
 * NGX_OK and the number of sessions; NGX_DECLINED: there is no such session;
 * NGX_ERROR: it is too large, or the zone is full.
 */
ngx_int_t ngx_http_mcp_event_send(ngx_http_mcp_address_t *to, ngx_str_t *text,
    ngx_mcp_event_t *event, ngx_uint_t *sessions);

/* likewise to the call that carries this token; also NGX_BUSY: several do */
ngx_int_t ngx_http_mcp_event_progress(ngx_http_mcp_address_t *to,
    ngx_str_t *token, ngx_str_t *text);

/* says that a resource changed to those who subscribed to it */
ngx_int_t ngx_http_mcp_event_updated(ngx_http_mcp_address_t *to,
    ngx_str_t *uri, ngx_pool_t *pool, ngx_uint_t *sessions);

/* what the rules of an endpoint make of an event; NGX_DONE: nothing */
ngx_int_t ngx_http_mcp_event_invalidate(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_invalidate_t *in, ngx_pool_t *pool,
    ngx_uint_t *sessions);


#endif /* _NGX_HTTP_MCP_EVENT_H_INCLUDED_ */
