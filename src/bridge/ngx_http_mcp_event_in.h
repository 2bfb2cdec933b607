
/*
 * One event arrives, from whatever source: what it is and whom it addresses
 * is found out, and it is sent there.
 *
 * The context lives as long as the source wants, for any number of events.
 * Memory for them comes from its pool.
 */

#ifndef _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_
#define _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_event.h"
#include "ngx_mcp_message.h"


typedef struct {
    ngx_mcp_zone_t             *zone;
    ngx_array_t                *bridges;      /* ngx_http_mcp_bridge_t * */
    ngx_str_t                  *endpoint;     /* NULL: all of the zone */
    ngx_str_t                  *tenant;       /* fixed here; NULL: any */
    ngx_str_t                   kind;         /* of payloads */
    ngx_str_t                   topic;        /* of payloads, and of events
                                                 that name none */
    ngx_str_t                   id;           /* of all that follows */
    ngx_mcp_counter_e           counter;      /* of the source; not with
                                                 take, which decides later */
    ngx_pool_t                 *pool;
    ngx_mcp_consume_t          *consume;      /* NULL: none */

    unsigned                    payload:1;    /* it does not say what it is */
    unsigned                    json:1;       /* and must be JSON */
    unsigned                    once:1;       /* an id is not taken twice */

    /* in: message.json is the scan of the event; cleared */
    unsigned                    scanned:1;

    /* out: it was refused because whom it addresses is not there */
    unsigned                    absent:1;

    /* out: it was refused because the zone is full */
    unsigned                    full:1;

    /* out: its topic has it not, somewhere at least */
    unsigned                    not_kept:1;

    /*
     * out: on its way to many, unless block is 0, and the source runs it
     * (ngx_mcp_outbox_run()); missed: sessions without room for it so far
     */
    ngx_mcp_ref_t               item;
    ngx_uint_t                  missed;

    /* private */
    ngx_uint_t                  number;       /* of the event at hand */
    ngx_uint_t                  searches;     /* for tokens, everywhere */
    ngx_str_t                   named;        /* the topic of the event */
    ngx_mcp_message_t           message;
} ngx_http_mcp_event_in_t;


/*
 * NULL and how many sessions it addressed, or why it is refused.  repeated:
 * it was taken before.
 */
const char *ngx_http_mcp_event_in(ngx_http_mcp_event_in_t *in,
    ngx_str_t *text, ngx_uint_t *sessions, ngx_uint_t *repeated);


#endif /* _NGX_HTTP_MCP_EVENT_IN_H_INCLUDED_ */
