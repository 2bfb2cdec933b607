
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An incremental parser for messages that stand on one line each:
 * newline-delimited JSON, and JSON text sequences (RFC 7464) whose texts have
 * no line feeds.
 */

#ifndef _NGX_MCP_LINES_H_INCLUDED_
#define _NGX_MCP_LINES_H_INCLUDED_


#include "ngx_mcp_core.h"


typedef struct {
    ngx_str_t               data;         /* valid until the next feed */
    ngx_uint_t              skipped;      /* number of lines that were left
                                             out, as they were over the limit */

    /* private; buf is from ngx_alloc() and has the first part of a line */
    u_char                 *buf;
    size_t                  len;          /* bytes of the line in buf */
    size_t                  size;         /* bytes of buf */
    size_t                  limit;        /* bytes of the longest line */
    ngx_log_t              *log;
    unsigned                over:1;       /* the line is over the limit */
    unsigned                ready:1;      /* buf has the line that was returned
                                             to the caller last */
} ngx_mcp_lines_t;


/* prepares a parser; limit: bytes of the longest line */
void ngx_mcp_lines_init(ngx_mcp_lines_t *lines, size_t limit, ngx_log_t *log);

/*
 * Reads bytes from *p on.  NGX_OK: a line is in lines->data, without white
 * space around it, and *p is behind the line (call again); NGX_AGAIN: all bytes
 * were read; NGX_ERROR: no memory.  Empty lines and those over the limit are
 * left out.
 */
ngx_int_t ngx_mcp_lines_feed(ngx_mcp_lines_t *lines, u_char **p, u_char *last);

/*
 * Ends the text.  NGX_OK: lines->data is a last line, which had no line feed;
 * NGX_DECLINED: there is no such line.
 */
ngx_int_t ngx_mcp_lines_end(ngx_mcp_lines_t *lines);

/* frees the buffer */
void ngx_mcp_lines_free(ngx_mcp_lines_t *lines);


#endif /* _NGX_MCP_LINES_H_INCLUDED_ */
