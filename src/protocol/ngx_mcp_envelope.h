
/*
 * The envelope of revision 2026-07-28: what a request says of its client in
 * params._meta, and the headers that repeat parts of the body.  Texts point
 * into the message; nothing is allocated but what is decoded.
 */

#ifndef _NGX_MCP_ENVELOPE_H_INCLUDED_
#define _NGX_MCP_ENVELOPE_H_INCLUDED_


#include "ngx_mcp_message.h"


typedef struct {
    ngx_str_t               requested;    /* the version, raw */
    ngx_uint_t              revision;     /* ngx_mcp_revision_e */
    ngx_str_t               capabilities; /* of the client, raw object */
    ngx_uint_t              level;        /* of logs, ngx_mcp_level_e */
} ngx_mcp_envelope_t;


/*
 * Reads the envelope of a request.  NGX_OK; NGX_DECLINED: it is not complete,
 * and *why says what is wrong.
 */
ngx_int_t ngx_mcp_envelope_read(ngx_mcp_message_t *m,
    ngx_mcp_envelope_t *envelope, const char **why);


/*
 * Whether the value of a header, which is trimmed, is this text, which is
 * decoded.  "=?base64?...?=" stands for what it encodes.  NGX_OK;
 * NGX_DECLINED: it is another text; NGX_ERROR: what it encodes is not valid.
 */
ngx_int_t ngx_mcp_header_is(ngx_str_t *header, ngx_str_t *text);

/*
 * Likewise for a raw string, number, true or false; numbers are compared as
 * numbers.  NGX_ABORT: no memory.
 */
ngx_int_t ngx_mcp_header_is_json(ngx_str_t *header, ngx_str_t *raw,
    ngx_pool_t *pool);


/*
 * Arguments of a tool that its schema has repeated in headers ("x-mcp-header"):
 * next() is called with the name of each, which "Mcp-Param-" precedes, and its
 * raw value, which is empty where no header is due.  It ends the walk with
 * anything but NGX_OK, which is returned.  tool: the raw entry of the list;
 * arguments: raw, or empty.  NGX_ABORT: no memory.
 */
typedef ngx_int_t (*ngx_mcp_param_pt)(void *data, ngx_str_t *name,
    ngx_str_t *value);

ngx_int_t ngx_mcp_params_walk(ngx_str_t *tool, ngx_str_t *arguments,
    ngx_pool_t *pool, ngx_mcp_param_pt next, void *data);


#endif /* _NGX_MCP_ENVELOPE_H_INCLUDED_ */
