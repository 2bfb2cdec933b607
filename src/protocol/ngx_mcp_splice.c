
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_splice.h"


/*
 * Bytes of a raw name with escapes that can be decoded.  A longer name is not
 * that of any member that is looked for: the longest of them is
 * "io.modelcontextprotocol/clientCapabilities", with an escape for each letter.
 */
#define NGX_MCP_SPLICE_NAME  256


static ngx_str_t ngx_mcp_splice_name(ngx_str_t *raw, u_char *buf);


ngx_str_t
ngx_mcp_splice(ngx_pool_t *pool, ngx_str_t *text, ngx_mcp_edit_t *edits,
    ngx_uint_t n)
{
    u_char          *p;
    size_t           len, from;
    ngx_str_t        out;
    ngx_uint_t       i, j;
    ngx_mcp_edit_t   edit;

    len = text->len;

    for (i = 0; i < n; i++) {
        edit = edits[i];
        len += edit.text.len;

        for (j = i; j > 0 && edits[j - 1].start > edit.start; j--) {
            edits[j] = edits[j - 1];
        }

        edits[j] = edit;
    }

    out.len = 0;
    out.data = ngx_pnalloc(pool, len);

    if (out.data == NULL) {
        return out;
    }

    p = out.data;
    from = 0;

    for (i = 0; i < n; i++) {
        p = ngx_cpymem(p, text->data + from, edits[i].start - from);
        p = ngx_cpymem(p, edits[i].text.data, edits[i].text.len);
        from = edits[i].end;
    }

    p = ngx_cpymem(p, text->data + from, text->len - from);

    out.len = p - out.data;

    return out;
}


ngx_uint_t
ngx_mcp_cut(ngx_str_t *object, ngx_mcp_keep_pt keep, void *data)
{
    u_char      *p, buf[NGX_MCP_SPLICE_NAME];
    ngx_str_t    rest, raw, name, value;
    ngx_uint_t   n;

    n = 0;
    rest = *object;
    p = object->data + 1;

    while (ngx_mcp_json_member(&rest, &raw, &value) == NGX_OK) {

        name = ngx_mcp_splice_name(&raw, buf);

        if (!keep(&name, &value, data)) {
            continue;
        }

        if (n++) {
            *p++ = ',';
        }

        ngx_memmove(p, raw.data, raw.len);
        p += raw.len;
        *p++ = ':';
        ngx_memmove(p, value.data, value.len);
        p += value.len;
    }

    *p++ = '}';

    object->len = p - object->data;

    return n;
}


ngx_str_t
ngx_mcp_join(ngx_pool_t *pool, ngx_str_t *members, ngx_str_t *object,
    ngx_str_t *names)
{
    u_char      *p, buf[NGX_MCP_SPLICE_NAME];
    ngx_str_t    out, rest, raw, name, value;
    ngx_uint_t   i;

    out.len = 0;
    out.data = ngx_pnalloc(pool, members->len + object->len + 3);

    if (out.data == NULL) {
        return out;
    }

    p = out.data;
    *p++ = '{';
    p = ngx_cpymem(p, members->data, members->len);

    rest = *object;

    while (rest.len && ngx_mcp_json_member(&rest, &raw, &value) == NGX_OK) {

        name = ngx_mcp_splice_name(&raw, buf);

        for (i = 0; names[i].len; i++) {
            if (ngx_mcp_equal(&names[i], &name)) {
                break;
            }
        }

        if (names[i].len) {
            continue;
        }

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, raw.data, raw.len);
        *p++ = ':';
        p = ngx_cpymem(p, value.data, value.len);
    }

    *p++ = '}';

    out.len = p - out.data;

    return out;
}


ngx_uint_t
ngx_mcp_json_is(ngx_str_t *raw, ngx_str_t *text)
{
    u_char     buf[NGX_MCP_SPLICE_NAME];
    ngx_str_t  name;

    /* no decoded text is longer than the raw one */

    if (raw->len < text->len + 2 || raw->data[0] != '"') {
        return 0;
    }

    if (memchr(raw->data, '\\', raw->len) == NULL) {
        return raw->len == text->len + 2
               && ngx_memcmp(raw->data + 1, text->data, text->len) == 0;
    }

    name = ngx_mcp_splice_name(raw, buf);

    return ngx_mcp_equal(&name, text);
}


ngx_str_t
ngx_mcp_json_get(ngx_str_t *object, const char *name)
{
    ngx_str_t  rest, key, value, text;

    text.data = (u_char *) name;
    text.len = ngx_strlen(name);

    rest = *object;

    while (rest.len && ngx_mcp_json_member(&rest, &key, &value) == NGX_OK) {
        if (ngx_mcp_json_is(&key, &text)) {
            return value;
        }
    }

    ngx_str_null(&value);

    return value;
}


/* decodes a raw name into buf; empty: the name is too long */

static ngx_str_t
ngx_mcp_splice_name(ngx_str_t *raw, u_char *buf)
{
    ngx_str_t  name;

    name.len = 0;
    name.data = buf;

    if (raw->len <= NGX_MCP_SPLICE_NAME) {
        name.len = ngx_mcp_json_unescape(buf, raw) - buf;
    }

    return name;
}
