
#include "ngx_http_mcp_lease_key.h"
#include "ngx_mcp_json.h"
#include "ngx_mcp_lease.h"


ngx_int_t
ngx_http_mcp_lease_key(ngx_str_t *kind, ngx_str_t **parts, ngx_uint_t n,
    ngx_str_t *key)
{
    u_char      *p;
    size_t       len;
    ngx_uint_t   i;

    static u_char  buf[NGX_MCP_LEASE_KEY_MAX];

    len = sizeof("[]") - 1 + ngx_mcp_json_escaped_len(kind);

    for (i = 0; i < n; i++) {
        len += 1 + (parts[i] ? ngx_mcp_json_escaped_len(parts[i])
                             : sizeof("null") - 1);
    }

    if (len > NGX_MCP_LEASE_KEY_MAX) {
        return NGX_DECLINED;
    }

    p = buf;

    *p++ = '[';
    p = ngx_mcp_json_escape(p, kind);

    for (i = 0; i < n; i++) {
        *p++ = ',';
        p = parts[i] ? ngx_mcp_json_escape(p, parts[i])
                     : ngx_cpymem(p, "null", sizeof("null") - 1);
    }

    *p++ = ']';

    key->data = buf;
    key->len = p - buf;

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_lease_key_is(ngx_str_t *key, ngx_str_t *kind)
{
    return key->len > kind->len + sizeof("[\"\"") - 1
           && key->data[1] == '"' && key->data[2 + kind->len] == '"'
           && ngx_memcmp(&key->data[2], kind->data, kind->len) == 0;
}


ngx_int_t
ngx_http_mcp_lease_key_parse(ngx_str_t *key, ngx_pool_t *pool,
    ngx_str_t **parts, ngx_uint_t n)
{
    ngx_str_t   rest, element;
    ngx_uint_t  i;

    rest = *key;

    if (ngx_mcp_json_element(&rest, &element) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {

        if (ngx_mcp_json_element(&rest, &element) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_str_null(parts[i]);

        if (element.data[0] != '"') {
            continue;
        }

        parts[i]->data = ngx_pnalloc(pool, element.len);
        if (parts[i]->data == NULL) {
            return NGX_ERROR;
        }

        parts[i]->len = ngx_mcp_json_unescape(parts[i]->data, &element)
                        - parts[i]->data;
    }

    return NGX_OK;
}
