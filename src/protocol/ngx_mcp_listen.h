
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * subscriptions/listen (2026-07-28): the filter of a request, and the messages
 * of the stream that answers the request.  Each message has the id of the
 * request.
 */

#ifndef _NGX_MCP_LISTEN_H_INCLUDED_
#define _NGX_MCP_LISTEN_H_INCLUDED_


#include "ngx_mcp_message.h"
#include "ngx_mcp_pages.h"


typedef struct {
    ngx_uint_t              lists;        /* wanted notifications of changed
                                             lists, NGX_MCP_OFFERED_* */
    ngx_array_t             uris;         /* decoded URIs (ngx_str_t) of the
                                             wanted resources */
} ngx_mcp_listen_t;


/*
 * Reads the filter of a scanned request, with URIs from pool.  Members that
 * the revision does not know are ignored, and a URI that appears twice counts
 * once.  max: the limit of URIs.  NGX_OK; NGX_DECLINED: the filter is
 * not valid, and *why says why; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_listen_read(ngx_mcp_message_t *m, ngx_uint_t max,
    ngx_pool_t *pool, ngx_mcp_listen_t *listen, const char **why);

/*
 * Composes the acknowledgement of a filter, which has only the subscriptions
 * that the server accepted.  data NULL: no memory.
 */
ngx_str_t ngx_mcp_listen_acknowledge(ngx_pool_t *pool, ngx_str_t *id,
    ngx_mcp_listen_t *listen);


/*
 * Most bytes by which ngx_mcp_listen_tag() makes a notification longer, without
 * the id; also bytes of ngx_mcp_listen_result(), in which the id appears twice,
 * without the ids.
 */
#define NGX_MCP_LISTEN_ROOM  160

/* writes the response that ends the stream to dst; returns the end */
u_char *ngx_mcp_listen_result(u_char *dst, ngx_str_t *id);

/*
 * Puts the id of the request into a notification, in place; the memory of text
 * must have NGX_MCP_LISTEN_ROOM + id->len free bytes behind the text.  Returns
 * the new length; 0: no client can listen for such a message.
 */
size_t ngx_mcp_listen_tag(u_char *text, size_t len, ngx_str_t *id);


#endif /* _NGX_MCP_LISTEN_H_INCLUDED_ */
