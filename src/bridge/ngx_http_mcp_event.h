
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Makes the deliveries of an event to the sessions that it addresses: a
 * notification is delivered as it is, an invalidate event by the rules of an
 * endpoint.
 */

#ifndef _NGX_HTTP_MCP_EVENT_H_INCLUDED_
#define _NGX_HTTP_MCP_EVENT_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_mcp_outbox.h"


/*
 * The addressees of an event: the sessions that match all members that are
 * given.
 */

typedef struct {
    ngx_mcp_zone_t         *zone;
    ngx_str_t              *endpoint;     /* NULL: all endpoints */
    ngx_str_t              *tenant;       /* NULL: all tenants */
    ngx_str_t               session;      /* UUID of a session as text; data
                                             NULL: all sessions */
    ngx_str_t               identity;     /* data NULL: all identities */
    ngx_str_t               uri;          /* resource to which the sessions have
                                             subscribed; len 0: all sessions */
    ngx_str_t               topic;        /* URI of the event's topic; len 0: no
                                             topic */
    ngx_array_t             deliveries;   /* ngx_mcp_delivery_t */

    unsigned                addressed:1;  /* the sessions of the next delivery
                                             count as addressed by the event */
} ngx_http_mcp_address_t;


/*
 * The functions below add deliveries to to->deliveries.  The caller makes this
 * array and sends it (ngx_mcp_outbox_send()).  Texts are not copied.  NULL or
 * NGX_ERROR: no memory.
 */

/* adds a delivery with these addressees; the caller sets its text */
ngx_mcp_delivery_t *ngx_http_mcp_event_add_delivery(ngx_http_mcp_address_t *to);

/*
 * Adds a delivery of an event with this text to the addressees.  If the event
 * is an update of a resource, also adds one to calls that wait for it.
 */
ngx_mcp_delivery_t *ngx_http_mcp_event_add(ngx_http_mcp_address_t *to,
    ngx_str_t *text, ngx_mcp_event_t *event);

/*
 * Adds a delivery of an event (raw object) to the topic to->topic of an
 * endpoint.  The topic is made if clients without a session may read it.
 */
ngx_int_t ngx_http_mcp_event_add_to_topic(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_address_t *to, ngx_pool_t *pool, ngx_str_t *text);

/* adds a resources/updated notification for the subscribers of a resource */
ngx_int_t ngx_http_mcp_event_add_updated(ngx_http_mcp_address_t *to,
    ngx_str_t *uri, ngx_pool_t *pool);

/*
 * If the method is that of a list_changed notification, the endpoint's cached
 * lists are fetched again, and a delivery is added for each audience whose list
 * is not cached.  Returns the flags of the event for all other sessions.
 */
ngx_uint_t ngx_http_mcp_event_list_changed(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_uint_t method, ngx_str_t *text,
    ngx_pool_t *pool);

/*
 * Applies the rules of an endpoint to an event.  NGX_OK; NGX_DONE: no rule
 * matches; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_event_invalidate(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_invalidate_t *in, ngx_pool_t *pool);


#endif /* _NGX_HTTP_MCP_EVENT_H_INCLUDED_ */
