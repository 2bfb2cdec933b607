
/*
 * A line of a session that a call reads as the stream of a client would: that
 * of a call that was parked, or the general line of an exclusive session
 * (ngx_http_mcp_call_park.h).  The structure is the user's, and zero before.
 */

#ifndef _NGX_HTTP_MCP_CALL_LINE_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_LINE_H_INCLUDED_


#include "ngx_http_mcp_call.h"


struct ngx_http_mcp_call_line_s {
    /* in */
    ngx_http_mcp_call_t    *call;

    /*
     * A message behind this position; flags are NGX_MCP_EVENT_*.  NGX_OK;
     * NGX_DONE: the line is closed now, and its memory may be gone.
     */
    ngx_int_t             (*message)(ngx_http_mcp_call_line_t *line,
                              ngx_str_t *text, ngx_uint_t flags,
                              uint64_t before);

    /* nothing follows; its memory may go */
    void                  (*ended)(ngx_http_mcp_call_line_t *line);
    void                   *data;

    /* out */
    ngx_mcp_stream_t        zs;
    unsigned                open:1;

    /* private */
    u_char                 *buf;        /* not of a pool */
    size_t                  size;
    ngx_event_t             turn;       /* posted */
    unsigned                full:1;     /* nothing is read for now */
};


/*
 * As ngx_mcp_stream_open(); the call is one with a number, and reads no other
 * line.  What is there is read in a later event.
 */
ngx_int_t ngx_http_mcp_call_line_open(ngx_http_mcp_call_line_t *line,
    ngx_mcp_ref_t session, uint32_t channel, ngx_mcp_cursor_t *from);

/* may come twice */
void ngx_http_mcp_call_line_close(ngx_http_mcp_call_line_t *line);

/* messages are read (1), or none for now (0) */
void ngx_http_mcp_call_line_room(ngx_http_mcp_call_line_t *line,
    ngx_uint_t room);

/* the doorbell of a stream: that of a client, or that a call reads */
void ngx_http_mcp_call_line_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);


#endif /* _NGX_HTTP_MCP_CALL_LINE_H_INCLUDED_ */
