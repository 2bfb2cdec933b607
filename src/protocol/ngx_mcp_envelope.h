
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The envelope of revision 2026-07-28: the members of params._meta by which a
 * request describes its client, and the headers that repeat parts of the body.
 * Texts point into the message; only decoded texts are allocated.
 */

#ifndef _NGX_MCP_ENVELOPE_H_INCLUDED_
#define _NGX_MCP_ENVELOPE_H_INCLUDED_


#include "ngx_mcp_message.h"


typedef struct {
    ngx_str_t               requested;    /* raw protocol version of the
                                             request */
    ngx_uint_t              revision;     /* that version as
                                             ngx_mcp_revision_e */
    ngx_str_t               capabilities; /* the client's, a raw object */
    ngx_uint_t              level;        /* log level, ngx_mcp_level_e */
} ngx_mcp_envelope_t;


/*
 * Reads the envelope of a request.  NGX_OK; NGX_DECLINED: the envelope is not
 * complete or not valid, and *why says why.
 */
ngx_int_t ngx_mcp_envelope_read(ngx_mcp_message_t *m,
    ngx_mcp_envelope_t *envelope, const char **why);


/*
 * Compares the trimmed value of a header, which may be "=?base64?...?=" with
 * an encoded text, with a decoded text.  NGX_OK: they are equal; NGX_DECLINED:
 * they differ, or the encoding is not valid.
 */
ngx_int_t ngx_mcp_header_is(ngx_str_t *header, ngx_str_t *text);

/*
 * Compares a header, as ngx_mcp_header_is(), with a raw string, number, true or
 * false; integers are compared by value.  Also NGX_ABORT: no memory.
 */
ngx_int_t ngx_mcp_header_is_json(ngx_str_t *header, ngx_str_t *raw,
    ngx_pool_t *pool);


/*
 * Walks over the arguments that clients have to repeat in headers, as the
 * tool's schema says ("x-mcp-header").  For each argument it calls next() with
 * the header's name without "Mcp-Param-", and the raw value of the argument,
 * which is empty if no header is to be sent.  If next() returns anything but
 * NGX_OK, the walk ends with that code.  tool: the raw entry of the tool in the
 * list; arguments: raw, or empty.  NGX_ABORT: no memory.
 */
typedef ngx_int_t (*ngx_mcp_param_pt)(void *data, ngx_str_t *name,
    ngx_str_t *value);

ngx_int_t ngx_mcp_params_walk(ngx_str_t *tool, ngx_str_t *arguments,
    ngx_pool_t *pool, ngx_mcp_param_pt next, void *data);


#endif /* _NGX_MCP_ENVELOPE_H_INCLUDED_ */
