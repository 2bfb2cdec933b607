
/*
 * Edits of JSON that the scan has accepted: bytes that stay are copied as they
 * are, never printed again.
 */

#ifndef _NGX_MCP_SPLICE_H_INCLUDED_
#define _NGX_MCP_SPLICE_H_INCLUDED_


#include "ngx_mcp_json.h"


/* text in the place of bytes; end is start where it is only put in */

typedef struct {
    size_t                  start;
    size_t                  end;
    ngx_str_t               text;
} ngx_mcp_edit_t;


/*
 * A text with n edits, which do not overlap and are sorted here.  data NULL:
 * no memory.
 */
ngx_str_t ngx_mcp_splice(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_edit_t *edits, ngx_uint_t n);

/*
 * Members that an object loses: keep() has the decoded name and the raw value,
 * which it may make shorter in its place.
 */
typedef ngx_uint_t (*ngx_mcp_keep_pt)(ngx_str_t *name, ngx_str_t *value,
    void *data);

/* cuts an object in its place; the number of members that are left */
ngx_uint_t ngx_mcp_cut(ngx_str_t *object, ngx_mcp_keep_pt keep, void *data);

/*
 * An object with these raw members before its own, of which those with the
 * names are left out.  object: raw, or empty; names: the last one is empty.
 * data NULL: no memory.
 */
ngx_str_t ngx_mcp_join(ngx_pool_t *pool, ngx_str_t *members,
    ngx_str_t *object, ngx_str_t *names);

/* whether a raw string token, decoded, is this text */
ngx_uint_t ngx_mcp_json_is(ngx_str_t *raw, ngx_str_t *text);

/* the raw value of a member of an object, which may be empty; or empty */
ngx_str_t ngx_mcp_json_get(ngx_str_t *object, const char *name);


#endif /* _NGX_MCP_SPLICE_H_INCLUDED_ */
