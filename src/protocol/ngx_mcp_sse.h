
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
 * The parser's buffer has room in front of the data of an event and behind the
 * data, so that new members and the frame of an SSE event ("id: ", "data: ")
 * can be added to a large event in place.  FRONT: bytes in front of the data;
 * FRAME: those of the FRONT bytes that are for the frame; BEHIND: bytes behind
 * the data.
 */
#define NGX_MCP_SSE_FRONT  512
#define NGX_MCP_SSE_FRAME  128
#define NGX_MCP_SSE_BEHIND  16

/* bytes of the smallest data whose memory ngx_mcp_sse_take() gives away */
#define NGX_MCP_SSE_LARGE  65536


/* memory from ngx_alloc() that has a text in it; start NULL: no memory */

typedef struct {
    u_char                 *start;
    u_char                 *end;
} ngx_mcp_memory_t;


typedef struct {
    ngx_str_t               data;         /* valid until the next feed */
    ngx_str_t               name;         /* event type (field "event");
                                             empty: "message" */
    ngx_str_t               id;           /* last event id of the stream */
    ngx_msec_t              retry;        /* value of the last field "retry";
                                             NGX_CONF_UNSET_MSEC: there was
                                             none */
    ngx_uint_t              skipped;      /* number of events that were left
                                             out, as their data was over the
                                             limit */

    /*
     * The caller sets this bit after ngx_mcp_sse_init().  1: an event whose
     * data is over the limit is left out; 0: such an event ends the parser.
     */
    unsigned                skip:1;

    /* private; buf is from ngx_alloc(), see NGX_MCP_SSE_FRONT */
    u_char                 *buf;
    size_t                  len;          /* bytes of data in buf */
    size_t                  size;         /* bytes of buf without its room */
    size_t                  limit;        /* bytes of the largest data */
    ngx_log_t              *log;
    ngx_uint_t              state;
    ngx_uint_t              kind;         /* name of the line's field, as an
                                             enum */
    size_t                  value_len;    /* bytes of the line's value, which
                                             is in buf behind the data, unless
                                             the value is data itself */
    ngx_uint_t              field_len;
    ngx_uint_t              name_len;
    ngx_uint_t              id_len;
    u_char                  field[8];
    u_char                  names[64];
    u_char                  ids[2][256];  /* the last event id, and the one that
                                             the current event will set */
    unsigned                current:1;    /* ids[current] is the last event
                                             id */
    unsigned                has_id:1;     /* the event has a field "id" */
    unsigned                has_data:1;   /* the event has a field "data" */
    unsigned                over:1;       /* the data is over the limit */
    unsigned                skip_lf:1;    /* a CR ended the line: an LF that
                                             follows is skipped */
    unsigned                ready:1;      /* the event was returned to the
                                             caller, and its data is still in
                                             use */
} ngx_mcp_sse_t;


/* prepares a parser; limit: bytes of the largest data of one event */
void ngx_mcp_sse_init(ngx_mcp_sse_t *sse, size_t limit, ngx_log_t *log);

/*
 * Reads bytes from *p on.  NGX_OK: an event with data is ready in sse->data,
 * name and id, and *p is behind the event (call again); NGX_AGAIN: all bytes
 * were read; NGX_DECLINED: an event is over the limit and sse->skip is not set,
 * or there is no memory.  LF, CRLF and CR, a BOM, comments and unknown fields
 * are treated as in the standard (WHATWG HTML, "Server-sent events"); a name is
 * cut at 64 bytes, an id over 256 bytes counts as empty.
 */
ngx_int_t ngx_mcp_sse_feed(ngx_mcp_sse_t *sse, u_char **p, u_char *last);

/*
 * Gives the parser's buffer to the caller, who frees memory->start, if text is
 * sse->data and has NGX_MCP_SSE_LARGE bytes at least.  Else memory->start
 * becomes NULL.
 */
void ngx_mcp_sse_take(ngx_mcp_sse_t *sse, ngx_str_t *text,
    ngx_mcp_memory_t *memory);

/*
 * Returns the number of bytes in front of text that the caller may use for new
 * members; 0 if ngx_mcp_sse_take() would not give away the memory of text.
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
