
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Changes a JSON-RPC answer while it passes in parts that the JSON scan has
 * accepted.  The answer gets another id, and its result gets new members in
 * place of those with the same names; "_meta" of the result keeps its other
 * members.  No text is buffered except the name of one member.
 */

#ifndef _NGX_MCP_STAMP_H_INCLUDED_
#define _NGX_MCP_STAMP_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_json.h"


/* bytes of the longest raw name that is compared; longer ones never match */
#define NGX_MCP_STAMP_NAME  256


typedef struct {
    ngx_str_t               id;           /* new raw id */
    ngx_str_t               members;      /* new raw members of the result */
    ngx_str_t              *names;        /* names of the new members; the last
                                             is empty */
    ngx_str_t               meta;         /* new raw members of "_meta", or
                                             empty */
    ngx_str_t              *meta_names;   /* names of the new members of
                                             "_meta"; the last is empty */

    /* receives the changed text in pieces; returns NGX_OK or NGX_ERROR */
    ngx_int_t             (*write)(void *data, u_char *p, size_t len);
    void                   *data;

    /* private; zero at first */
    ngx_uint_t              state;
    ngx_uint_t              level;        /* the current object: the answer,
                                             result or _meta */
    ngx_uint_t              depth;        /* nesting within a value of that
                                             object */
    size_t                  len;          /* length of name */
    u_char                  name[NGX_MCP_STAMP_NAME];
    unsigned                quoted:1;     /* the next byte is in a string */
    unsigned                escaped:1;    /* the last byte is a backslash */
    unsigned                begun:1;      /* the current object has a member
                                             in the changed text */
    unsigned                drop:1;       /* the current value is left out */
    unsigned                has_meta:1;   /* the result has "_meta" */
} ngx_mcp_stamp_t;


/*
 * Reads the next part of the answer and calls write() with the changed text.
 * Returns NGX_OK, or NGX_ERROR if write() did.
 */
ngx_int_t ngx_mcp_stamp(ngx_mcp_stamp_t *s, u_char *p, u_char *last);


#endif /* _NGX_MCP_STAMP_H_INCLUDED_ */
