
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A line of a session that a call reads as a client's stream does: the line of
 * a parked call, or the general line of an exclusive session
 * (ngx_http_mcp_call_park.h).  The structure belongs to the caller, who fills
 * it with zeroes before the first use.
 */

#ifndef _NGX_HTTP_MCP_CALL_LINE_H_INCLUDED_
#define _NGX_HTTP_MCP_CALL_LINE_H_INCLUDED_


#include "ngx_http_mcp_call.h"


struct ngx_http_mcp_call_line_s {
    /* set by the caller */
    ngx_http_mcp_call_t    *call;       /* reads the line */

    /*
     * Takes a message that stands behind position "before"; flags are
     * NGX_MCP_EVENT_*.  Returns NGX_OK, or NGX_DONE if it has closed the line:
     * the memory of the line may be freed then.
     */
    ngx_int_t             (*message)(ngx_http_mcp_call_line_t *line,
                              ngx_str_t *text, ngx_uint_t flags,
                              uint64_t before);

    /* the line has ended: no message follows; the handler may free the line */
    void                  (*ended)(ngx_http_mcp_call_line_t *line);
    void                   *data;       /* data of the two handlers */

    /* for the caller to read */
    ngx_mcp_stream_t        zs;         /* stream in the zone that carries the
                                           line */
    unsigned                open:1;

    /* private */
    u_char                 *buf;        /* memory for a message; not in a
                                           pool */
    size_t                  size;       /* bytes of buf */
    ngx_event_t             turn;       /* posted event that reads messages */
    unsigned                full:1;     /* reading has stopped for now */
};


/*
 * Opens the line, and returns as ngx_mcp_stream_open() does; NGX_ERROR also if
 * there is no memory.  The call must have a local number and read no other
 * line.  Messages that the line holds already are read in a later event.
 */
ngx_int_t ngx_http_mcp_call_line_open(ngx_http_mcp_call_line_t *line,
    ngx_mcp_ref_t session, uint32_t channel, ngx_mcp_cursor_t *from);

/* closes the line; may be called again for a closed one */
void ngx_http_mcp_call_line_close(ngx_http_mcp_call_line_t *line);

/* lets messages be read (1), or stops the reading for now (0) */
void ngx_http_mcp_call_line_room(ngx_http_mcp_call_line_t *line,
    ngx_uint_t room);

/* the doorbell rang for a client's stream, or for a line that a call reads */
void ngx_http_mcp_call_line_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why);


#endif /* _NGX_HTTP_MCP_CALL_LINE_H_INCLUDED_ */
