
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * All that differs between nginx versions, in one place.
 */

#ifndef _NGX_HTTP_MCP_COMPAT_H_INCLUDED_
#define _NGX_HTTP_MCP_COMPAT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Adds an element to a list of headers, zeroed but for its hash.  Since 1.23.0
 * elements are linked, so that "next" has to be set.  NULL: no memory.
 */

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


/* adds a copy of an element of another list; NULL: no memory */

static ngx_inline ngx_table_elt_t *
ngx_http_mcp_header_copy(ngx_list_t *headers, ngx_table_elt_t *from)
{
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = headers->last;

    if (part->nelts < headers->nalloc) {
        h = (ngx_table_elt_t *) part->elts + part->nelts++;

    } else {
        h = ngx_list_push(headers);
        if (h == NULL) {
            return NULL;
        }
    }

    *h = *from;

#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    return h;
}


#endif /* _NGX_HTTP_MCP_COMPAT_H_INCLUDED_ */
