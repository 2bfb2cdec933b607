
/*
 * Taking what is read from somewhere, under a lease, so that each event is
 * delivered once although workers die or hand over.
 *
 * text is what both readers of an overlap see alike; with none, it is never
 * the other's.  What is delivered to clients is taken by ngx_mcp_outbox_send(),
 * anything else by ngx_mcp_lease_consume().  Either keeps its id, once.
 *
 *   NGX_OK        it is taken
 *   NGX_DECLINED  the other reader of an overlap had it
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
