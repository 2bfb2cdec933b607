
/*
 * subscriptions/listen (2026-07-28): the filter of a request, and the texts of
 * the stream that answers it.  The id of the request is in each of them.
 */

#ifndef _NGX_MCP_LISTEN_H_INCLUDED_
#define _NGX_MCP_LISTEN_H_INCLUDED_


#include "ngx_mcp_message.h"
#include "ngx_mcp_pages.h"


typedef struct {
    ngx_uint_t              lists;        /* NGX_MCP_OFFERED_* */
    ngx_array_t             uris;         /* ngx_str_t, decoded */
} ngx_mcp_listen_t;


/*
 * Reads the filter of a scanned request; members that are not of the revision
 * do not matter, and a URI counts once.  NGX_OK; NGX_DECLINED: *why says what
 * is wrong; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_listen_read(ngx_mcp_message_t *m, ngx_uint_t max,
    ngx_pool_t *pool, ngx_mcp_listen_t *listen, const char **why);

/* the acknowledgement of what is left of the filter; data NULL: no memory */
ngx_str_t ngx_mcp_listen_acknowledge(ngx_pool_t *pool, ngx_str_t *id,
    ngx_mcp_listen_t *listen);


/* room that a notification needs beside the id, and the result beside two */
#define NGX_MCP_LISTEN_ROOM  160

/* the result, when the server ends the stream; returns its end */
u_char *ngx_mcp_listen_result(u_char *dst, ngx_str_t *id);

/*
 * Puts the id into a notification, in its place, behind which there is room.
 * Returns the new length; 0: it is none that can be listened for.
 */
size_t ngx_mcp_listen_tag(u_char *text, size_t len, ngx_str_t *id);


#endif /* _NGX_MCP_LISTEN_H_INCLUDED_ */
