
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A reader takes the events that it reads under a lease.  So each event is
 * delivered once although workers die or hand over.
 *
 * During an overlap two readers read the same events.  Both see the same text
 * of an event, by which the second reader finds that the event was taken; an
 * event without a text is taken by both.  An event for clients is taken by
 * ngx_mcp_outbox_send(), any other one by ngx_mcp_lease_consume().  Both keep
 * the event's id in the lease.  The result is in rc:
 *
 *   NGX_OK        the event is taken
 *   NGX_DECLINED  the other reader of an overlap has taken the event
 *   NGX_ABORT     the lease is lost: stop reading
 */

#ifndef _NGX_MCP_CONSUME_H_INCLUDED_
#define _NGX_MCP_CONSUME_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_lease.h"


typedef struct {
    ngx_mcp_lease_t         lease;
    ngx_str_t               id;           /* empty: the event has none */
    ngx_str_t               text;
    ngx_int_t               rc;           /* NGX_AGAIN: not taken yet */
    uint64_t                hash;         /* private */
} ngx_mcp_consume_t;

ngx_int_t ngx_mcp_lease_consume(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume);


#endif /* _NGX_MCP_CONSUME_H_INCLUDED_ */
