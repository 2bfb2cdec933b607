
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An index of a JSON object that the scan has accepted: the paths of its
 * members, at any depth outside of arrays, and their values, each as a hash of
 * 64 bits.  It is made in one pass; a member is then found and compared in
 * constant time.
 *
 * A path is names joined by dots: "a.b" is the member b of a, or a member with
 * that name.  Values are equal as JSON: numbers by value, strings after
 * decoding, objects in any order.
 *
 * Hashes depend on a seed.  Texts that are compared need the same seed, which
 * must be unknown to clients.  The caller owns all memory.
 */

#ifndef _NGX_MCP_JSON_INDEX_H_INCLUDED_
#define _NGX_MCP_JSON_INDEX_H_INCLUDED_


#include "ngx_mcp_json.h"


typedef struct {
    uint64_t                path;
    uint64_t                value;
    uint32_t                next;         /* next field of the same bucket; 0:
                                             none */
    uint32_t                bucket;       /* in fields[n]: the first field of
                                             bucket n */
} ngx_mcp_json_field_t;


typedef struct {
    uint64_t                seed;
    uint32_t                n;
    uint32_t                mask;
    ngx_mcp_json_field_t   *fields;
} ngx_mcp_json_index_t;


/*
 * How many fields an object with so many bytes may need, as a power of two.
 */
ngx_uint_t ngx_mcp_json_index_size(ngx_str_t *object);

/* makes an index of an object; size: number from ngx_mcp_json_index_size() */
void ngx_mcp_json_index(ngx_mcp_json_index_t *index, ngx_str_t *object,
    uint64_t seed, ngx_mcp_json_field_t *fields, ngx_uint_t size);

/*
 * Finds the member with this path, the last one if there are several, and sets
 * *value to the hash of its value.  Returns 0 if there is none.
 */
ngx_uint_t ngx_mcp_json_index_find(ngx_mcp_json_index_t *index, uint64_t path,
    uint64_t *value);

/*
 * The hash of the path of a raw name.  below: the decoded path of its parent
 * with a dot at the end, or empty.
 */
uint64_t ngx_mcp_json_index_path(uint64_t seed, ngx_str_t *below,
    ngx_str_t *name);

/* the hash of any raw value */
uint64_t ngx_mcp_json_index_value(uint64_t seed, ngx_str_t *raw);


#endif /* _NGX_MCP_JSON_INDEX_H_INCLUDED_ */
