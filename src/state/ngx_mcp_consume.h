
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A reader consumes the events that it reads under a lease.  So each event is
 * delivered once even if workers die or the lease changes hands.
 *
 * During an overlap two readers read the same events.  Both see the same text
 * of an event, by which the second reader finds that the event was consumed; an
 * event without a text is consumed by both.  ngx_mcp_outbox_send() consumes an
 * event for clients, ngx_mcp_lease_consume() any other one.  Both store the
 * event's id in the lease.  The result is in rc:
 *
 *   NGX_OK        the event is consumed
 *   NGX_DECLINED  the other reader of an overlap has consumed the event
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
    ngx_int_t               rc;           /* NGX_AGAIN: not consumed yet */
    uint64_t                hash;         /* private */
} ngx_mcp_consume_t;

ngx_int_t ngx_mcp_lease_consume(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume);


#endif /* _NGX_MCP_CONSUME_H_INCLUDED_ */
