
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Processes an event from any source: reads its members, applies the rules of
 * the endpoints, and sends it to its addressees.
 *
 * The source owns the context and may use it for any number of events.  Memory
 * for an event is allocated from in->pool.
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
    ngx_str_t                   kind;         /* kind of payloads, or empty */
    ngx_str_t                   topic;        /* topic of payloads, and of
                                                 events that name no topic */
    ngx_str_t                   id;           /* id of all events that have no
                                                 id of their own; empty: none */
    ngx_mcp_counter_e           counter;      /* counts the source's events that
                                                 were sent */
    ngx_pool_t                 *pool;
    ngx_mcp_consume_t          *consume;      /* lease and event id under which
                                                 a feed's event is delivered;
                                                 NULL: the source is no feed */

    unsigned                    payload:1;    /* events are payloads, whose
                                                 members are not read and do
                                                 not address anybody */
    unsigned                    json:1;       /* a payload has to be JSON */
    unsigned                    once:1;       /* an event whose id was accepted
                                                 before is not sent again */

    /*
     * in: message.json already is the scan of the event's text;
     * ngx_http_mcp_event_in() clears this
     */
    unsigned                    scanned:1;

    /* out: the event was refused: its session or call does not exist */
    unsigned                    absent:1;

    /* out: the event was refused: the zone is full */
    unsigned                    full:1;

    /* out: the topic of at least one endpoint did not keep the event */
    unsigned                    not_kept:1;

    /*
     * out: if item.block is not 0, the event was not delivered to all sessions
     * yet, and the source has to call ngx_mcp_outbox_run() for the item.
     * missed: number of sessions so far that had no room for the event.
     */
    ngx_mcp_ref_t               item;
    ngx_uint_t                  missed;

    /* private */
    ngx_uint_t                  number;       /* number of the event among the
                                                 events of the source, from 1 */
    ngx_uint_t                  searches;     /* number of searches of all
                                                 sessions for a progress token
                                                 so far */
    ngx_str_t                   named;        /* name of the event's topic */
    ngx_mcp_message_t           message;
} ngx_http_mcp_event_in_t;


/*
 * Processes one event.  Returns NULL, or a text about why the event is refused.
 * *sessions: number of sessions that it addressed; *repeated: it was not sent,
 * because an event with the same id was accepted before.
 */
const char *ngx_http_mcp_event_in(ngx_http_mcp_event_in_t *in,
    ngx_str_t *text, ngx_uint_t *sessions, ngx_uint_t *repeated);


#endif /* _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_ */
