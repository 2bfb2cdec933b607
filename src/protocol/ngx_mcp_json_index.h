
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
 * Hashes depend on a seed, which must be the same for all that is compared and
 * unknown to others.  The caller owns all memory; no allocation, no state.
 */

#ifndef _NGX_MCP_JSON_INDEX_H_INCLUDED_
#define _NGX_MCP_JSON_INDEX_H_INCLUDED_


#include "ngx_mcp_json.h"


typedef struct {
    uint64_t                path;
    uint64_t                value;
    uint32_t                next;         /* of its bucket; 0: none */
    uint32_t                bucket;       /* the first field of bucket n */
} ngx_mcp_json_field_t;


typedef struct {
    uint64_t                seed;
    uint32_t                n;
    uint32_t                mask;
    ngx_mcp_json_field_t   *fields;
} ngx_mcp_json_index_t;


/* an object of so many bytes needs this many fields at most, a power of two */
ngx_uint_t ngx_mcp_json_index_size(ngx_str_t *object);

/* fields: as many as ngx_mcp_json_index_size() says */
void ngx_mcp_json_index(ngx_mcp_json_index_t *index, ngx_str_t *object,
    uint64_t seed, ngx_mcp_json_field_t *fields, ngx_uint_t size);

/* of several members with one path the last one; 0: there is none */
ngx_uint_t ngx_mcp_json_index_find(ngx_mcp_json_index_t *index, uint64_t path,
    uint64_t *value);

/* the path of a raw name below a decoded one that ends in a dot, or is empty */
uint64_t ngx_mcp_json_index_path(uint64_t seed, ngx_str_t *below,
    ngx_str_t *name);

/* any raw value */
uint64_t ngx_mcp_json_index_value(uint64_t seed, ngx_str_t *raw);


#endif /* _NGX_MCP_JSON_INDEX_H_INCLUDED_ */
