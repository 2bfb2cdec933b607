
/*
 * Messages one to a line: an incremental parser for newline-delimited JSON,
 * and for JSON text sequences (RFC 7464) whose texts have no line feeds.
 */

#ifndef _NGX_MCP_LINES_H_INCLUDED_
#define _NGX_MCP_LINES_H_INCLUDED_


#include "ngx_mcp_core.h"


typedef struct {
    ngx_str_t               data;         /* valid until the next feed */
    ngx_uint_t              skipped;      /* lines over the limit, so far */

    /* private; buf is ngx_alloc()ed and holds the part of a line */
    u_char                 *buf;
    size_t                  len;
    size_t                  size;
    size_t                  limit;
    ngx_log_t              *log;
    unsigned                over:1;
    unsigned                ready:1;      /* the caller has what is in buf */
} ngx_mcp_lines_t;


/* limit: the longest line */
void ngx_mcp_lines_init(ngx_mcp_lines_t *lines, size_t limit, ngx_log_t *log);

/*
 * Takes bytes from *p on.  NGX_OK: a line is in lines->data, without white
 * space around it, and *p is behind it (call again); NGX_AGAIN: all was taken;
 * NGX_ERROR: memory ran out.  Empty lines and those over the limit are left
 * out.
 */
ngx_int_t ngx_mcp_lines_feed(ngx_mcp_lines_t *lines, u_char **p, u_char *last);

/* no more will come: NGX_OK: a last line without its end; NGX_DECLINED */
ngx_int_t ngx_mcp_lines_end(ngx_mcp_lines_t *lines);

/* frees the buffer */
void ngx_mcp_lines_free(ngx_mcp_lines_t *lines);


#endif /* _NGX_MCP_LINES_H_INCLUDED_ */
