
/*
 * Puts what was saved (ngx_mcp_save.h) into a zone that is still empty, before
 * workers start.  It is taken as it was, whatever its owners' shares, as long
 * as a sixteenth of the zone stays free; the sessions seen last come last.
 *
 * Each session learns that it missed something, as nobody knows what happened
 * while nginx was not there.
 */

#ifndef _NGX_MCP_LOAD_H_INCLUDED_
#define _NGX_MCP_LOAD_H_INCLUDED_


#include "ngx_mcp_tlv.h"


typedef struct {
    /* in */
    ngx_str_t               text;         /* all entities */
    uint64_t                away;         /* ms, since they were saved */
    ngx_uint_t              last;         /* nothing changed after that */

    /* out */
    ngx_uint_t              sessions;     /* that go on, */
    ngx_uint_t              ended;        /* and those that do not */
    ngx_uint_t              lost;         /* subscriptions without room */
} ngx_mcp_saved_t;


/*
 * NGX_OK; NGX_DECLINED: it is no such text; NGX_ERROR: no memory.  Unless it is
 * NGX_OK, the zone is unchanged.
 */
ngx_int_t ngx_mcp_load(ngx_mcp_zone_t *zone, ngx_mcp_saved_t *saved);


#endif /* _NGX_MCP_LOAD_H_INCLUDED_ */
