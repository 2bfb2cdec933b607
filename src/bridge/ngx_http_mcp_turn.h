
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The time limit for work in one turn of the event loop.  Long work is
 * interrupted after NGX_HTTP_MCP_TURN_MSEC and continued in a later turn, so
 * that other requests are served in between.
 */

#ifndef _NGX_HTTP_MCP_TURN_H_INCLUDED_
#define _NGX_HTTP_MCP_TURN_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_HTTP_MCP_TURN_MSEC  5


/* returns the monotonic time, ms; nginx's cached time is too old for this */

static ngx_inline ngx_msec_t
ngx_http_mcp_turn_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (ngx_msec_t) ts.tv_sec * 1000 + (ngx_msec_t) ts.tv_nsec / 1000000;
}


/* whether the time of a turn that began at "start" is over */
#define ngx_http_mcp_turn_over(start)                                         \
    (ngx_http_mcp_turn_now() - (start) >= NGX_HTTP_MCP_TURN_MSEC)


#endif /* _NGX_HTTP_MCP_TURN_H_INCLUDED_ */
