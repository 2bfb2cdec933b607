
/*
 * All that differs between nginx versions, in one place.
 */

#ifndef _NGX_HTTP_MCP_COMPAT_H_INCLUDED_
#define _NGX_HTTP_MCP_COMPAT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* since 1.23.0 header elements are linked, and next has to be set */

static ngx_inline ngx_table_elt_t *
ngx_http_mcp_header_push(ngx_list_t *headers)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(headers);

    if (h) {
        ngx_memzero(h, sizeof(ngx_table_elt_t));
        h->hash = 1;
    }

    return h;
}


/* whether the request is a stream of an HTTP/2 or HTTP/3 connection */

static ngx_inline ngx_uint_t
ngx_http_mcp_is_multiplexed(ngx_http_request_t *r)
{
#if (nginx_version >= 1025000 && (NGX_HTTP_V3 || NGX_COMPAT))
    if (r->connection->quic) {
        return 1;
    }
#endif

    return r->stream != NULL;
}


#endif /* _NGX_HTTP_MCP_COMPAT_H_INCLUDED_ */
