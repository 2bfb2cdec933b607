
/*
 * Windows of mcp_coalesce.  A notification that is sent opens one; those of
 * the same endpoint, tenant, session, audience and "what" that come before its
 * end become one, which is sent at its end and opens the next.  A window in
 * which nothing came is forgotten.
 *
 * All is in the zone: each worker may join and send.  The worker that opened
 * a window has a timer for its end; any other looks every second for one that
 * is overdue.  What waits is given up only under the lock under which it was
 * logged, for each group on its own, so that it is neither lost nor repeated
 * when its sender dies.
 */

#ifndef _NGX_MCP_PENDING_H_INCLUDED_
#define _NGX_MCP_PENDING_H_INCLUDED_


#include "ngx_mcp_log.h"


/* places in a text where a count is put */
#define NGX_MCP_PENDING_COUNTS  2


typedef struct {
    ngx_str_t              *endpoint;     /* NULL: all */
    ngx_str_t              *tenant;       /* NULL: all */
    ngx_str_t               session;      /* UUID text; data NULL: all */
    ngx_str_t               what;
    ngx_msec_t              time;         /* of a window */
    ngx_mcp_event_t        *event;        /* of one part */
    size_t                  counts[NGX_MCP_PENDING_COUNTS];  /* 0: none */
    uint64_t                count;        /* events it stands for */
    ngx_uint_t              counted;      /* that is said even if it is 1 */
} ngx_mcp_pending_t;


/*
 * NGX_OK: it waits with those that it joined.  NGX_DECLINED: it is the first,
 * or there is no room: it has to be sent now, with the count that p->count is
 * now.  NGX_ABORT: event->take says so (ngx_mcp_log.h).
 *
 * A repeat of an event (event->once) is told what it was told before.
 */
ngx_int_t ngx_mcp_pending_join(ngx_mcp_zone_t *zone, ngx_mcp_pending_t *p);

/* sends what is due; NGX_AGAIN: more is left; *next: ms to the next, or 0 */
ngx_int_t ngx_mcp_pending_send(ngx_mcp_zone_t *zone, ngx_msec_t *next);

/*
 * A text with its count, as parts; buf is for the count.  The number of
 * parts.
 */
#define NGX_MCP_PENDING_PARTS  (2 * NGX_MCP_PENDING_COUNTS + 1)
#define NGX_MCP_PENDING_BUF    (sizeof(",\"count\":") + NGX_INT64_LEN)

ngx_uint_t ngx_mcp_pending_parts(ngx_str_t *text, size_t *counts,
    uint64_t count, u_char *buf, ngx_str_t *parts);


#endif /* _NGX_MCP_PENDING_H_INCLUDED_ */
