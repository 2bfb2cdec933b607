
/*
 * What a client declares that it can be asked for: sampling, elicitation and
 * roots.  Some servers offer more to a client that can, so that clients who
 * differ in this are of different audiences.  Other capabilities, and details
 * of these, make no difference here.
 *
 * The key of an audience is a letter for what its clients declare, and the
 * list key behind it.
 */

#ifndef _NGX_MCP_DECLARED_H_INCLUDED_
#define _NGX_MCP_DECLARED_H_INCLUDED_


#include "ngx_mcp_core.h"


/* bits */

#define NGX_MCP_DECLARED_SAMPLING  0x01
#define NGX_MCP_DECLARED_FORM      0x02    /* elicitation by a form, */
#define NGX_MCP_DECLARED_URL       0x04    /* by a page */
#define NGX_MCP_DECLARED_ROOTS     0x08


/* of a client's capabilities, a raw object or empty */
ngx_uint_t ngx_mcp_declared(ngx_str_t *capabilities);

/* capabilities that declare this, a raw object; data NULL: no memory */
ngx_str_t ngx_mcp_declared_compose(ngx_pool_t *pool, ngx_uint_t declared);


#define ngx_mcp_declared_letter(declared)  ((u_char) ('a' + (declared)))

/*
 * The key of the audience with this list key; from pool, if that is not empty.
 * data NULL: no memory.
 */
ngx_str_t ngx_mcp_audience_key(ngx_pool_t *pool, u_char letter,
    ngx_str_t *list_key);

/* its two parts; NGX_DECLINED: it is none */
ngx_int_t ngx_mcp_audience_key_parse(ngx_str_t *key, ngx_uint_t *declared,
    ngx_str_t *list_key);


#endif /* _NGX_MCP_DECLARED_H_INCLUDED_ */
