
/*
 * Server-sent events (WHATWG HTML, "Server-sent events"): an incremental
 * parser for what upstreams send and the writer for our own streams.
 */

#ifndef _NGX_MCP_SSE_H_INCLUDED_
#define _NGX_MCP_SSE_H_INCLUDED_


#include "ngx_mcp_core.h"


typedef struct {
    ngx_str_t               data;         /* valid until the next feed */
    ngx_str_t               name;         /* "event:", empty means message */
    ngx_str_t               id;           /* last event id so far */
    ngx_msec_t              retry;        /* NGX_CONF_UNSET_MSEC: none */
    ngx_uint_t              skipped;      /* events over the limit, so far */

    /* set by the caller after ngx_mcp_sse_init(): such are left out */
    unsigned                skip:1;

    /* private; buf is ngx_alloc()ed and grows with the data */
    u_char                 *buf;
    size_t                  len;
    size_t                  size;
    size_t                  limit;
    ngx_log_t              *log;
    ngx_uint_t              state;
    ngx_uint_t              kind;         /* field of the line at hand */
    size_t                  value_len;    /* its value lies behind the data */
    ngx_uint_t              field_len;
    ngx_uint_t              name_len;
    ngx_uint_t              id_len;
    u_char                  field[8];
    u_char                  names[64];
    u_char                  ids[2][256];  /* the last, the one under way */
    unsigned                current:1;    /* which of them is the last */
    unsigned                has_id:1;
    unsigned                has_data:1;
    unsigned                over:1;
    unsigned                skip_lf:1;
    unsigned                ready:1;      /* the caller has the data */
} ngx_mcp_sse_t;


/* limit: the largest data of one event */
void ngx_mcp_sse_init(ngx_mcp_sse_t *sse, size_t limit, ngx_log_t *log);

/*
 * Takes bytes from *p on.  NGX_OK: an event with data is ready in sse->data,
 * name and id, and *p is behind it (call again); NGX_AGAIN: all was taken;
 * NGX_DECLINED: an event over the limit that is not left out, or memory ran
 * out.
 * LF, CRLF and CR lines, a BOM, comments and unknown fields as in the standard;
 * a name is cut at 64 bytes, an id over 256 bytes counts as empty.
 */
ngx_int_t ngx_mcp_sse_feed(ngx_mcp_sse_t *sse, u_char **p, u_char *last);

/* frees the buffer */
void ngx_mcp_sse_free(ngx_mcp_sse_t *sse);

/*
 * Writes "id: ...\ndata: ...\n\n" in front of and behind a message that may
 * not contain a line feed; raw line feeds in JSON text are white space, and
 * ngx_mcp_sse_flatten() turns them into spaces in place.
 */
void ngx_mcp_sse_flatten(u_char *p, u_char *last);


#endif /* _NGX_MCP_SSE_H_INCLUDED_ */
