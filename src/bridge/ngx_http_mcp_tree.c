
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_tree.h"


#define ngx_http_mcp_tree_key(node)  ((ngx_http_mcp_tree_node_t *) (node))->key


void
ngx_http_mcp_tree_insert(ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    uint64_t             key;
    ngx_rbtree_node_t  **p;

    key = ngx_http_mcp_tree_key(node);

    for ( ;; ) {
        p = (key < ngx_http_mcp_tree_key(temp)) ? &temp->left : &temp->right;

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


void *
ngx_http_mcp_tree_find(ngx_rbtree_t *tree, uint64_t key)
{
    ngx_rbtree_node_t  *node;

    node = tree->root;

    while (node != tree->sentinel) {

        if (key == ngx_http_mcp_tree_key(node)) {
            return node;
        }

        node = (key < ngx_http_mcp_tree_key(node)) ? node->left : node->right;
    }

    return NULL;
}
