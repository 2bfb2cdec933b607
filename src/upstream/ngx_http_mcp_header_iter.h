
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A walk over a list of headers.
 */

#ifndef _NGX_HTTP_MCP_HEADER_ITER_H_INCLUDED_
#define _NGX_HTTP_MCP_HEADER_ITER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct {
    ngx_list_part_t  *part;
    ngx_uint_t        next;
} ngx_http_mcp_header_iter_t;


#define ngx_http_mcp_header_iter_init(iter, list)                             \
    (iter)->part = &(list)->part;                                             \
    (iter)->next = 0


/* the next header, even one marked as removed (hash 0); NULL: no more */

static ngx_inline ngx_table_elt_t *
ngx_http_mcp_header_iter_next(ngx_http_mcp_header_iter_t *iter)
{
    ngx_table_elt_t  *h;

    while (iter->next >= iter->part->nelts) {

        if (iter->part->next == NULL) {
            return NULL;
        }

        iter->part = iter->part->next;
        iter->next = 0;
    }

    h = iter->part->elts;

    return &h[iter->next++];
}


#endif /* _NGX_HTTP_MCP_HEADER_ITER_H_INCLUDED_ */
