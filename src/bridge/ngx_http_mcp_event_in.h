
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An event arrives from any source: its members are read, the rules of its
 * endpoints are applied, and it is sent to its addressees.
 *
 * The source owns the context and may use it for any number of events, whose
 * memory comes from in->pool.
 */

#ifndef _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_
#define _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_event.h"
#include "ngx_mcp_message.h"


typedef struct {
    ngx_mcp_zone_t             *zone;
    ngx_array_t                *bridges;      /* ngx_http_mcp_bridge_t * */
    ngx_str_t                  *endpoint;     /* the only endpoint that events
                                                 may address; NULL: any of the
                                                 zone */
    ngx_str_t                  *tenant;       /* the only tenant that events
                                                 may address; NULL: any */
    ngx_str_t                   kind;         /* kind of all events that are
                                                 payloads */
    ngx_str_t                   topic;        /* topic of payloads, and of
                                                 events that name no topic */
    ngx_str_t                   id;           /* id of all events that have no
                                                 id of their own; empty: none */
    ngx_mcp_counter_e           counter;      /* counts the source's events that
                                                 were sent */
    ngx_pool_t                 *pool;
    ngx_mcp_consume_t          *consume;      /* lease and event id with which a
                                                 feed's reader takes the event;
                                                 NULL: the source is no feed */

    unsigned                    payload:1;    /* events are payloads: their
                                                 members are not read, and
                                                 address nobody */
    unsigned                    json:1;       /* a payload has to be JSON */
    unsigned                    once:1;       /* an event whose id was taken
                                                 before is not sent again */

    /*
     * in: message.json is the scan of the event's text already;
     * ngx_http_mcp_event_in() clears this
     */
    unsigned                    scanned:1;

    /* out: the event was refused as its session or call does not exist */
    unsigned                    absent:1;

    /* out: the event was refused as the zone is full */
    unsigned                    full:1;

    /* out: the topic of at least one endpoint did not keep the event */
    unsigned                    not_kept:1;

    /*
     * out: if item.block is not 0, the event is still on its way to many
     * sessions, and the source calls ngx_mcp_outbox_run() for the item.
     * missed: number of sessions that had no room for the event so far.
     */
    ngx_mcp_ref_t               item;
    ngx_uint_t                  missed;

    /* private */
    ngx_uint_t                  number;       /* number of the event among the
                                                 events of the source, from 1 */
    ngx_uint_t                  searches;     /* how often all sessions were
                                                 searched for a progress token
                                                 so far */
    ngx_str_t                   named;        /* topic that the event names */
    ngx_mcp_message_t           message;
} ngx_http_mcp_event_in_t;


/*
 * Takes one event.  Returns NULL, or why the event is refused.  *sessions: how
 * many sessions it addressed; *repeated: it was not sent, as an event with the
 * same id was taken before.
 */
const char *ngx_http_mcp_event_in(ngx_http_mcp_event_in_t *in,
    ngx_str_t *text, ngx_uint_t *sessions, ngx_uint_t *repeated);


#endif /* _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_ */
