
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Loads saved records (ngx_mcp_save.h) into a zone that is still empty, before
 * workers start.  They are loaded without regard to the shares of their
 * owners, as long as a sixteenth of the zone stays free.  Sessions are loaded
 * in the order of their last use, the one used last at the end.
 *
 * Each session gets a gap, as events may have been lost while nginx did not
 * run.
 */

#ifndef _NGX_MCP_LOAD_H_INCLUDED_
#define _NGX_MCP_LOAD_H_INCLUDED_


#include "ngx_mcp_tlv.h"


typedef struct {
    /* in */
    ngx_str_t               text;         /* all entities */
    uint64_t                elapsed;      /* ms since they were saved */
    ngx_uint_t              last;         /* 1: nothing changed in the zone
                                             after they were saved */

    /* out */
    ngx_uint_t              sessions;     /* number of restored sessions */
    ngx_uint_t              ended;        /* number of sessions that were not
                                             restored */
    ngx_uint_t              lost;         /* number of subscriptions for which
                                             there was no room */
} ngx_mcp_saved_t;


/*
 * NGX_OK; NGX_DECLINED: the text is not in the format of a state file;
 * NGX_ERROR: no memory.  Unless the result is NGX_OK, the zone is unchanged.
 */
ngx_int_t ngx_mcp_load(ngx_mcp_zone_t *zone, ngx_mcp_saved_t *saved);


#endif /* _NGX_MCP_LOAD_H_INCLUDED_ */
