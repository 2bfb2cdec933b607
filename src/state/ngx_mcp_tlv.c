
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_tlv.h"


size_t
ngx_mcp_tlv_begin(ngx_mcp_tlv_t *out, ngx_uint_t tag)
{
    size_t  begin;

    begin = out->pos - out->start;

    (void) ngx_mcp_tlv_room(out, tag, 0);

    return begin;
}


void
ngx_mcp_tlv_end(ngx_mcp_tlv_t *out, size_t begin)
{
    u_char    *p;
    uint32_t   len;

    if (out->full) {
        return;
    }

    p = out->start + begin;
    len = (uint32_t) (out->pos - p - NGX_MCP_TLV_HEAD);

    ngx_memcpy(p + sizeof(uint32_t), &len, sizeof(uint32_t));
}


u_char *
ngx_mcp_tlv_room(ngx_mcp_tlv_t *out, ngx_uint_t tag, size_t len)
{
    u_char    *p;
    uint32_t   head[2];

    if (out->full
        || (size_t) (out->end - out->pos) < NGX_MCP_TLV_HEAD + len)
    {
        out->full = 1;
        return NULL;
    }

    head[0] = (uint32_t) tag;
    head[1] = (uint32_t) len;

    p = ngx_cpymem(out->pos, head, NGX_MCP_TLV_HEAD);
    out->pos = p + len;

    return p;
}


void
ngx_mcp_tlv_data(ngx_mcp_tlv_t *out, ngx_uint_t tag, void *data,
    size_t len)
{
    u_char  *p;

    p = ngx_mcp_tlv_room(out, tag, len);

    if (p && len) {
        ngx_memcpy(p, data, len);
    }
}


void
ngx_mcp_tlv_number(ngx_mcp_tlv_t *out, ngx_uint_t tag, uint64_t n)
{
    if (n) {
        ngx_mcp_tlv_data(out, tag, &n, sizeof(uint64_t));
    }
}


ngx_int_t
ngx_mcp_tlv_next(ngx_str_t *left, ngx_uint_t *tag, ngx_str_t *value)
{
    uint32_t  head[2];

    if (left->len == 0) {
        return NGX_DONE;
    }

    if (left->len < NGX_MCP_TLV_HEAD) {
        return NGX_ERROR;
    }

    ngx_memcpy(head, left->data, NGX_MCP_TLV_HEAD);

    if (head[1] > left->len - NGX_MCP_TLV_HEAD) {
        return NGX_ERROR;
    }

    *tag = head[0];
    value->data = left->data + NGX_MCP_TLV_HEAD;
    value->len = head[1];

    left->data = value->data + value->len;
    left->len -= NGX_MCP_TLV_HEAD + value->len;

    return NGX_OK;
}


void
ngx_mcp_tlv_attributes(ngx_str_t *entity, ngx_str_t *attributes)
{
    ngx_str_t   left, value;
    ngx_uint_t  tag;

    ngx_memzero(attributes, NGX_MCP_TLV_ATTRIBUTES * sizeof(ngx_str_t));

    left = *entity;

    while (ngx_mcp_tlv_next(&left, &tag, &value) == NGX_OK) {

        if (tag < NGX_MCP_TLV_ATTRIBUTES) {
            attributes[tag] = value;
        }
    }
}


uint64_t
ngx_mcp_tlv_value(ngx_str_t *attribute)
{
    uint64_t  n;

    if (attribute->len != sizeof(uint64_t)) {
        return 0;
    }

    ngx_memcpy(&n, attribute->data, sizeof(uint64_t));

    return n;
}
