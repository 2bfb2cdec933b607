
/*
 * Lists: what the module itself has is put in front of what an upstream lists,
 * and what the caller may not call is left out.  Texts are raw and spliced,
 * never printed anew.
 */

#ifndef _NGX_HTTP_MCP_LIST_MERGE_H_INCLUDED_
#define _NGX_HTTP_MCP_LIST_MERGE_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_mcp_message.h"


typedef struct {
    ngx_http_mcp_bridge_t    *bridge;
    ngx_mcp_caller_t         *caller;
    ngx_uint_t                method;     /* ngx_mcp_method_e */
    ngx_uint_t                first;      /* the page without cursor */
    ngx_pool_t               *pool;

    /* of a tool: NGX_OK; NGX_DECLINED: left out; NGX_ERROR; NULL: never */
    ngx_int_t               (*denied)(void *data, ngx_str_t *name);
    void                     *data;
} ngx_http_mcp_list_merge_t;


/* whether the module has such things itself, so that it has an answer alone */
ngx_uint_t ngx_http_mcp_list_merge_own(ngx_http_mcp_bridge_t *bridge,
    ngx_uint_t method);

/* whether anything may change in an answer */
ngx_uint_t ngx_http_mcp_list_merge_needed(ngx_http_mcp_list_merge_t *mix);

/*
 * Makes of a raw result, empty when nobody has one, the one to give.  NGX_OK
 * or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_list_merge(ngx_http_mcp_list_merge_t *mix,
    ngx_str_t *result);


#endif /* _NGX_HTTP_MCP_LIST_MERGE_H_INCLUDED_ */
