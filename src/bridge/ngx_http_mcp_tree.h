
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Red-black trees of nginx with keys of 64 bits.  A structure in such a tree
 * begins with ngx_http_mcp_tree_node_t, and the tree is initialized with
 * ngx_http_mcp_tree_insert().
 */

#ifndef _NGX_HTTP_MCP_TREE_H_INCLUDED_
#define _NGX_HTTP_MCP_TREE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef struct {
    ngx_rbtree_node_t       node;         /* node.key is not used */
    uint64_t                key;
} ngx_http_mcp_tree_node_t;


void ngx_http_mcp_tree_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);

/* returns the structure with this key, or NULL */
void *ngx_http_mcp_tree_find(ngx_rbtree_t *tree, uint64_t key);


#endif /* _NGX_HTTP_MCP_TREE_H_INCLUDED_ */
