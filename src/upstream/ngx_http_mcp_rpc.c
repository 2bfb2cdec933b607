
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_discover.h"


static ngx_int_t ngx_http_mcp_rpc_open(ngx_http_mcp_talk_t *t);
static ngx_uint_t ngx_http_mcp_rpc_lost(ngx_http_mcp_talk_t *t,
    ngx_uint_t status);
static void ngx_http_mcp_rpc_heal(ngx_http_mcp_talk_t *t);


/* a plain HTTP handler: neither a handshake nor sessions */

ngx_http_mcp_manner_t  ngx_http_mcp_rpc = {
    NGX_MCP_KNOWN_RPC,
    0,                                     /* streams */
    ngx_http_mcp_rpc_open,
    NULL,                                  /* head */
    ngx_http_mcp_rpc_lost,
    ngx_http_mcp_rpc_heal,
    NULL,                                  /* release */
    NULL,                                  /* end */
    NULL                                   /* refused */
};


static ngx_int_t
ngx_http_mcp_rpc_open(ngx_http_mcp_talk_t *t)
{
    if (t->existing || t->listen) {
        return NGX_DECLINED;
    }

    if (t->legacy_only) {
        ngx_http_mcp_talk_end(t, NGX_HTTP_MCP_OK);
        return NGX_AGAIN;
    }

    return NGX_OK;
}


/* it may have become an MCP server, which wants a session */

static ngx_uint_t
ngx_http_mcp_rpc_lost(ngx_http_mcp_talk_t *t, ngx_uint_t status)
{
    return (status == NGX_HTTP_BAD_REQUEST
            && t->upstream->protocol == NGX_HTTP_MCP_AUTO)
           ? NGX_HTTP_MCP_LOST_UNHEARD : NGX_HTTP_MCP_KEPT;
}


static void
ngx_http_mcp_rpc_heal(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_discover_again(t->upstream, &t->tenant, t->r->pool);
}
