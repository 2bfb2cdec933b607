
/*
 * Taking what is read from somewhere, under a lease, so that each event is
 * delivered once although workers die or hand over.
 */

#ifndef _NGX_MCP_TAKE_H_INCLUDED_
#define _NGX_MCP_TAKE_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_lease.h"


/*
 * What is done in steps, put into many logs or joined with others, so that it
 * is done to the end by a repeat when its worker dies in between: what was put
 * has a mark and is not put twice.  The steps are the same each time.
 */

typedef struct {
    uint64_t                key;
    uint64_t                stamp;        /* older than what it left */
    ngx_uint_t              place;        /* private */
    ngx_uint_t              rank;         /* of the step, from 1 on */
    ngx_uint_t              again;        /* it is a repeat */
} ngx_mcp_once_t;


/*
 * One event that a holder read.  text is what both readers of an overlap see
 * alike; with none, it is never the other's.
 *
 * Whoever made it begins, delivers it with "once" (ngx_mcp_event_t), and ends
 * with ngx_mcp_lease_take(), which keeps its id and begins what was not begun.
 * Between these a death leaves an event that is half delivered.  If it has an
 * id, the next holder reads it again and delivers the rest.  If it has none,
 * the other reader of an overlap does so; without one, or when that one has
 * dropped it already, the rest is lost.
 *
 *   NGX_OK        it is to be delivered
 *   NGX_DECLINED  the other reader of an overlap had it
 *   NGX_ABORT     the lease is lost: stop reading
 */

typedef struct {
    ngx_mcp_lease_t         lease;
    ngx_str_t               id;           /* empty: the event has none */
    ngx_str_t               text;
    ngx_int_t               rc;           /* NGX_AGAIN: not begun */
    ngx_mcp_once_t          once;         /* from its beginning on */
    ngx_uint_t              ended;        /* private */
} ngx_mcp_take_t;

ngx_int_t ngx_mcp_lease_begin(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take);
ngx_int_t ngx_mcp_lease_take(ngx_mcp_zone_t *zone, ngx_mcp_take_t *take);


#endif /* _NGX_MCP_TAKE_H_INCLUDED_ */
