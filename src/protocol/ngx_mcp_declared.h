
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The capabilities that a client declares: sampling, elicitation and roots.
 * Some servers offer more to clients that have them, so clients that differ in
 * these capabilities belong to different audiences.  Other capabilities, and
 * details of these, make no difference.
 *
 * The key of an audience is one letter for the capabilities that its clients
 * declare, followed by the list key.
 */

#ifndef _NGX_MCP_DECLARED_H_INCLUDED_
#define _NGX_MCP_DECLARED_H_INCLUDED_


#include "ngx_mcp_core.h"


/* bits for declared capabilities */

#define NGX_MCP_DECLARED_SAMPLING  0x01
#define NGX_MCP_DECLARED_FORM      0x02    /* elicitation by a form */
#define NGX_MCP_DECLARED_URL       0x04    /* elicitation by a web page */
#define NGX_MCP_DECLARED_ROOTS     0x08


/* returns the bits for a client's capabilities, a raw object or empty */
ngx_uint_t ngx_mcp_declared(ngx_str_t *capabilities);

/* composes capabilities (a raw object) from bits; data NULL: no memory */
ngx_str_t ngx_mcp_declared_compose(ngx_pool_t *pool, ngx_uint_t declared);


/* the letter for bits, with which the key of an audience begins */
#define ngx_mcp_declared_letter(declared)  ((u_char) ('a' + (declared)))

/*
 * Composes the key of an audience from its letter and list key.  The memory of
 * the key is from pool, or static if the list key is empty.  data NULL: no
 * memory.
 */
ngx_str_t ngx_mcp_audience_key(ngx_pool_t *pool, u_char letter,
    ngx_str_t *list_key);

/* splits the key of an audience; NGX_OK; NGX_DECLINED: it is no such key */
ngx_int_t ngx_mcp_audience_key_parse(ngx_str_t *key, ngx_uint_t *declared,
    ngx_str_t *list_key);


#endif /* _NGX_MCP_DECLARED_H_INCLUDED_ */
