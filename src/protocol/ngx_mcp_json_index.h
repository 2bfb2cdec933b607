
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
    uint64_t                path;         /* hash of the member's path */
    uint64_t                value;        /* hash of the member's value */
    uint32_t                next;         /* number of the next field in the
                                             same bucket; 0: there is none */
    uint32_t                bucket;       /* fields[i].bucket: number of the
                                             first field in bucket i; 0: none */
} ngx_mcp_json_field_t;


typedef struct {
    uint64_t                seed;         /* seed of all hashes */
    uint32_t                n;            /* number of fields; the first one is
                                             fields[1] */
    uint32_t                mask;         /* number of buckets minus 1 */
    ngx_mcp_json_field_t   *fields;
} ngx_mcp_json_index_t;


/*
 * Returns how many ngx_mcp_json_field_t ngx_mcp_json_index() needs for an
 * object, a power of two.
 */
ngx_uint_t ngx_mcp_json_index_size(ngx_str_t *object);

/*
 * Makes an index of an object.  fields: memory for "size" fields; size: the
 * number from ngx_mcp_json_index_size().
 */
void ngx_mcp_json_index(ngx_mcp_json_index_t *index, ngx_str_t *object,
    uint64_t seed, ngx_mcp_json_field_t *fields, ngx_uint_t size);

/*
 * Finds the member with this path, the last one if there are several, and sets
 * *value to the hash of its value.  Returns 0 if there is none.
 */
ngx_uint_t ngx_mcp_json_index_find(ngx_mcp_json_index_t *index, uint64_t path,
    uint64_t *value);

/*
 * Returns the hash of the path of a member.  below: the decoded path of the
 * member's parent with a dot at the end, or empty; name: its raw name.
 */
uint64_t ngx_mcp_json_index_path(uint64_t seed, ngx_str_t *below,
    ngx_str_t *name);

/* returns the hash of any raw value, to compare with hashes of an index */
uint64_t ngx_mcp_json_index_value(uint64_t seed, ngx_str_t *raw);


#endif /* _NGX_MCP_JSON_INDEX_H_INCLUDED_ */
