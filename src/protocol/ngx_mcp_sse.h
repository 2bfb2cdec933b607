
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Server-sent events (WHATWG HTML, "Server-sent events"): an incremental
 * parser for the streams of upstreams, and a helper for writing streams.
 */

#ifndef _NGX_MCP_SSE_H_INCLUDED_
#define _NGX_MCP_SSE_H_INCLUDED_


#include "ngx_mcp_core.h"


/*
 * The parser keeps room around the data of an event, so that a large one can
 * get new members and be framed for a stream in place: bytes in front of it,
 * those for a frame among them, and behind it
 */
#define NGX_MCP_SSE_FRONT  512
#define NGX_MCP_SSE_FRAME  128
#define NGX_MCP_SSE_BEHIND  16

/* the data of an event from which on its memory is given away */
#define NGX_MCP_SSE_LARGE  65536


/* memory of ngx_alloc() with a text in it; start NULL: none */

typedef struct {
    u_char                 *start;
    u_char                 *end;
} ngx_mcp_memory_t;


typedef struct {
    ngx_str_t               data;         /* valid until the next feed */
    ngx_str_t               name;         /* of "event:"; empty: "message" */
    ngx_str_t               id;           /* last event id so far */
    ngx_msec_t              retry;        /* NGX_CONF_UNSET_MSEC: none */
    ngx_uint_t              skipped;      /* events that were left out so far,
                                             as they were over the limit */

    /* set by the caller after ngx_mcp_sse_init(): leave such events out */
    unsigned                skip:1;

    /* private; buf has room around it and grows with the data */
    u_char                 *buf;
    size_t                  len;
    size_t                  size;
    size_t                  limit;
    ngx_log_t              *log;
    ngx_uint_t              state;
    ngx_uint_t              kind;         /* field of the current line */
    size_t                  value_len;    /* length of the line's value, which
                                             is in buf behind the data */
    ngx_uint_t              field_len;
    ngx_uint_t              name_len;
    ngx_uint_t              id_len;
    u_char                  field[8];
    u_char                  names[64];
    u_char                  ids[2][256];  /* last event id, and the next one */
    unsigned                current:1;    /* ids[current] is the last one */
    unsigned                has_id:1;
    unsigned                has_data:1;
    unsigned                over:1;
    unsigned                skip_lf:1;
    unsigned                ready:1;      /* the caller uses the data */
} ngx_mcp_sse_t;


/* prepares a parser; limit: bytes of the largest data of one event */
void ngx_mcp_sse_init(ngx_mcp_sse_t *sse, size_t limit, ngx_log_t *log);

/*
 * Takes bytes from *p on.  NGX_OK: an event with data is ready in sse->data,
 * name and id, and *p is behind it (call again); NGX_AGAIN: all was taken;
 * NGX_DECLINED: an event is over the limit and sse->skip is not set, or there
 * is no memory.  LF, CRLF and CR, a BOM, comments and unknown fields are taken
 * as in the standard; a name is cut at 64 bytes, an id over 256 bytes counts
 * as empty.
 */
ngx_int_t ngx_mcp_sse_feed(ngx_mcp_sse_t *sse, u_char **p, u_char *last);

/*
 * Gives the memory of text away if that is sse->data and large; the caller
 * frees it.  Else memory->start is NULL.
 */
void ngx_mcp_sse_take(ngx_mcp_sse_t *sse, ngx_str_t *text,
    ngx_mcp_memory_t *memory);

/*
 * Returns how many bytes in front of text may be written for new members, if
 * ngx_mcp_sse_take() would give its memory away; else 0.
 */
size_t ngx_mcp_sse_room(ngx_mcp_sse_t *sse, ngx_str_t *text);

/* frees the buffer */
void ngx_mcp_sse_free(ngx_mcp_sse_t *sse);

/*
 * Turns line feeds and carriage returns of a JSON text into spaces, in place,
 * so that the text fits into one "data:" line.  In JSON they are only white
 * space.
 */
void ngx_mcp_sse_flatten(u_char *p, u_char *last);


#endif /* _NGX_MCP_SSE_H_INCLUDED_ */
