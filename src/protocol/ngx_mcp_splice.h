
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Edits of JSON that the scan has accepted.  Bytes outside of the edits stay
 * as they are.
 */

#ifndef _NGX_MCP_SPLICE_H_INCLUDED_
#define _NGX_MCP_SPLICE_H_INCLUDED_


#include "ngx_mcp_json.h"


/* an edit: text replaces the bytes from start up to end, which may be none */

typedef struct {
    size_t                  start;
    size_t                  end;
    ngx_str_t               text;
} ngx_mcp_edit_t;


/*
 * Copies a text with n edits, which must not overlap; the function sorts the
 * edits.  data NULL: no memory.
 */
ngx_str_t ngx_mcp_splice(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_edit_t *edits, ngx_uint_t n);

/*
 * Returns whether a member with this decoded name and raw value stays in the
 * object.  The function may make the value shorter, in place.
 */
typedef ngx_uint_t (*ngx_mcp_keep_pt)(ngx_str_t *name, ngx_str_t *value,
    void *data);

/*
 * Removes from an object, in place, the members for which keep() returns 0.
 * Returns how many members are left.
 */
ngx_uint_t ngx_mcp_cut(ngx_str_t *object, ngx_mcp_keep_pt keep, void *data);

/*
 * Copies an object (raw, or empty), inserts raw members in front of its own
 * members, and leaves out its own members with one of these names, of which the
 * last is empty.  data NULL: no memory.
 */
ngx_str_t ngx_mcp_join(ngx_pool_t *pool, ngx_str_t *members,
    ngx_str_t *object, ngx_str_t *names);

/* whether a raw string token is this text after decoding */
ngx_uint_t ngx_mcp_json_is(ngx_str_t *raw, ngx_str_t *text);

/*
 * The raw value of a member of an object, which may be empty.  The value is
 * empty if there is no such member.
 */
ngx_str_t ngx_mcp_json_get(ngx_str_t *object, const char *name);


#endif /* _NGX_MCP_SPLICE_H_INCLUDED_ */
