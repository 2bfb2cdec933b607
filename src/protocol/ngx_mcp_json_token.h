
/*
 * Strings and numbers of the scan; private to it.  They take bytes from *pos
 * on: NGX_OK when the token is complete (*pos is behind it), NGX_AGAIN when
 * the piece ended within it, NGX_ERROR when it is invalid (*pos is at the
 * fault).
 */

#ifndef _NGX_MCP_JSON_TOKEN_H_INCLUDED_
#define _NGX_MCP_JSON_TOKEN_H_INCLUDED_


#include "ngx_mcp_json.h"


/* within a string */

enum {
    json_plain = 0,
    json_escape,
    json_hex,
    json_low_escape,
    json_low_u,
    json_utf8
};


/* within a number, named by what was read */

enum {
    json_minus = 0,
    json_zero,
    json_integer,
    json_dot,
    json_fraction,
    json_e,
    json_e_sign,
    json_exponent
};


ngx_int_t ngx_mcp_json_string(ngx_mcp_json_t *json, u_char **pos,
    u_char *last);
ngx_int_t ngx_mcp_json_number(ngx_mcp_json_t *json, u_char **pos,
    u_char *last);


#endif /* _NGX_MCP_JSON_TOKEN_H_INCLUDED_ */
