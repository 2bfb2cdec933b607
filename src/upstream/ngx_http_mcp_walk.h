
/*
 * A walk over a list of headers.
 */

#ifndef _NGX_HTTP_MCP_WALK_H_INCLUDED_
#define _NGX_HTTP_MCP_WALK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct {
    ngx_list_part_t  *part;
    ngx_uint_t        next;
} ngx_http_mcp_walk_t;


#define ngx_http_mcp_walk_init(walk, list)                                    \
    (walk)->part = &(list)->part;                                             \
    (walk)->next = 0


/* the next, also one marked as removed (hash is 0); NULL: there is none */

static ngx_inline ngx_table_elt_t *
ngx_http_mcp_walk_next(ngx_http_mcp_walk_t *walk)
{
    ngx_table_elt_t  *h;

    while (walk->next >= walk->part->nelts) {

        if (walk->part->next == NULL) {
            return NULL;
        }

        walk->part = walk->part->next;
        walk->next = 0;
    }

    h = walk->part->elts;

    return &h[walk->next++];
}


#endif /* _NGX_HTTP_MCP_WALK_H_INCLUDED_ */
