
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_names.h"
#include <ngx_sha1.h>


#define NGX_MCP_NAME_HASH  4                          /* bytes */
#define NGX_MCP_NAME_TAIL  (1 + 2 * NGX_MCP_NAME_HASH)

/* so much shorter a cut name may be, as no character is cut in two */
#define NGX_MCP_NAME_CUT   3

/* replaced tokens of an entry */
#define NGX_MCP_ENTRY_PATCHES  8


/* edits of an entry, in the order in which they stand in it */

typedef struct {
    ngx_str_t               from;
    ngx_str_t               to;
} ngx_mcp_patch_t;

typedef struct {
    ngx_pool_t             *pool;
    ngx_uint_t              n;
    ngx_mcp_patch_t         patches[NGX_MCP_ENTRY_PATCHES];
} ngx_mcp_patches_t;


static ngx_uint_t ngx_mcp_name_is_cut(ngx_str_t *exposed);
static ngx_int_t ngx_mcp_entry_name(ngx_mcp_patches_t *p, ngx_str_t *prefix,
    ngx_str_t *raw);
static ngx_int_t ngx_mcp_entry_title(ngx_mcp_patches_t *p, ngx_str_t *suffix,
    ngx_str_t *raw);
static ngx_uint_t ngx_mcp_entry_member(ngx_str_t *raw, const char *name);


u_char *
ngx_mcp_name_expose(u_char *dst, ngx_str_t *prefix, ngx_str_t *name)
{
    size_t      len, n;
    u_char     *p, digest[20];
    ngx_uint_t  i;
    ngx_sha1_t  sha1;

    static u_char  hex[] = "0123456789abcdef";

    len = prefix->len + sizeof(NGX_MCP_NAME_JOINT) - 1;

    p = ngx_cpymem(dst, prefix->data, prefix->len);
    p = ngx_cpymem(p, NGX_MCP_NAME_JOINT, sizeof(NGX_MCP_NAME_JOINT) - 1);

    if (len + name->len <= NGX_MCP_NAME_MAX) {
        return ngx_cpymem(p, name->data, name->len);
    }

    ngx_sha1_init(&sha1);
    ngx_sha1_update(&sha1, dst, len);
    ngx_sha1_update(&sha1, name->data, name->len);
    ngx_sha1_final(digest, &sha1);

    /* a character is not cut in two */

    n = NGX_MCP_NAME_MAX - NGX_MCP_NAME_TAIL - len;

    for (i = 0; i < NGX_MCP_NAME_CUT && (name->data[n] & 0xc0) == 0x80; i++) {
        n--;
    }

    p = ngx_cpymem(p, name->data, n);

    *p++ = '_';

    for (i = 0; i < NGX_MCP_NAME_HASH; i++) {
        *p++ = hex[digest[i] >> 4];
        *p++ = hex[digest[i] & 0xf];
    }

    return p;
}


ngx_int_t
ngx_mcp_name_local(ngx_str_t *prefix, ngx_str_t *exposed, ngx_str_t *name)
{
    size_t  len;

    len = prefix->len + sizeof(NGX_MCP_NAME_JOINT) - 1;

    /*
     * The joint, of two like characters, tells most of them apart.  A longer
     * name was cut: whole, it would be a second one, which rules do not know.
     */

    if (exposed->len <= len || exposed->len > NGX_MCP_NAME_MAX
        || exposed->data[len - 1] != NGX_MCP_NAME_JOINT[0]
        || exposed->data[len - 2] != NGX_MCP_NAME_JOINT[0]
        || ngx_memcmp(exposed->data, prefix->data, prefix->len) != 0)
    {
        return NGX_DECLINED;
    }

    name->data = exposed->data + len;
    name->len = exposed->len - len;

    return ngx_mcp_name_is_cut(exposed) ? NGX_AGAIN : NGX_OK;
}


/* returns whether the name looks like one that was cut */

static ngx_uint_t
ngx_mcp_name_is_cut(ngx_str_t *exposed)
{
    u_char  *p, *last;

    if (exposed->len < NGX_MCP_NAME_MAX - NGX_MCP_NAME_CUT) {
        return 0;
    }

    last = exposed->data + exposed->len;
    p = last - NGX_MCP_NAME_TAIL;

    if (*p++ != '_') {
        return 0;
    }

    for ( /* void */ ; p < last; p++) {
        if (!(*p >= '0' && *p <= '9') && !(*p >= 'a' && *p <= 'f')) {
            return 0;
        }
    }

    return 1;
}


ngx_str_t
ngx_mcp_entry_expose(ngx_str_t *entry, ngx_uint_t kind, ngx_str_t *prefix,
    ngx_str_t *suffix, ngx_pool_t *pool)
{
    size_t              len;
    u_char             *dst, *from;
    ngx_str_t           out, rest, name, value, inner, key, title;
    ngx_uint_t          i, named;
    ngx_mcp_patches_t   p;

    p.pool = pool;
    p.n = 0;

    named = (prefix->len && (kind == NGX_MCP_LIST_TOOLS
                             || kind == NGX_MCP_LIST_PROMPTS));
    rest = *entry;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (named && ngx_mcp_entry_member(&name, "name")) {

            if (ngx_mcp_entry_name(&p, prefix, &value) != NGX_OK) {
                goto failed;
            }

        } else if (suffix->len && ngx_mcp_entry_member(&name, "title")) {

            if (ngx_mcp_entry_title(&p, suffix, &value) != NGX_OK) {
                goto failed;
            }

        } else if (suffix->len && value.data[0] == '{'
                   && ngx_mcp_entry_member(&name, "annotations"))
        {
            inner = value;

            while (ngx_mcp_json_member(&inner, &key, &title) == NGX_OK) {

                if (ngx_mcp_entry_member(&key, "title")
                    && ngx_mcp_entry_title(&p, suffix, &title) != NGX_OK)
                {
                    goto failed;
                }
            }
        }
    }

    if (p.n == 0) {
        return *entry;
    }

    len = entry->len;

    for (i = 0; i < p.n; i++) {
        len += p.patches[i].to.len - p.patches[i].from.len;
    }

    out.len = len;
    out.data = ngx_pnalloc(pool, len);

    if (out.data == NULL) {
        goto failed;
    }

    dst = out.data;
    from = entry->data;

    for (i = 0; i < p.n; i++) {
        dst = ngx_cpymem(dst, from, p.patches[i].from.data - from);
        dst = ngx_cpymem(dst, p.patches[i].to.data, p.patches[i].to.len);
        from = p.patches[i].from.data + p.patches[i].from.len;
    }

    ngx_memcpy(dst, from, entry->data + entry->len - from);

    return out;

failed:

    ngx_str_null(&out);

    return out;
}


static ngx_int_t
ngx_mcp_entry_name(ngx_mcp_patches_t *p, ngx_str_t *prefix, ngx_str_t *raw)
{
    u_char           *last;
    ngx_str_t         name, exposed;
    ngx_mcp_patch_t  *patch;
    u_char            buf[NGX_MCP_NAME_MAX];

    if (p->n == NGX_MCP_ENTRY_PATCHES || raw->data[0] != '"') {
        return NGX_OK;
    }

    patch = &p->patches[p->n++];
    patch->from = *raw;

    if (ngx_mcp_json_text(p->pool, raw, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    exposed.data = buf;
    exposed.len = ngx_mcp_name_expose(buf, prefix, &name) - buf;

    patch->to.data = ngx_pnalloc(p->pool, ngx_mcp_json_escaped_len(&exposed));
    if (patch->to.data == NULL) {
        return NGX_ERROR;
    }

    last = ngx_mcp_json_escape(patch->to.data, &exposed);
    patch->to.len = last - patch->to.data;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_entry_title(ngx_mcp_patches_t *p, ngx_str_t *suffix, ngx_str_t *raw)
{
    size_t            len;
    u_char           *dst;
    ngx_mcp_patch_t  *patch;

    if (p->n == NGX_MCP_ENTRY_PATCHES || raw->data[0] != '"') {
        return NGX_OK;
    }

    patch = &p->patches[p->n++];
    patch->from = *raw;

    len = raw->len - 1;

    dst = ngx_pnalloc(p->pool, len + sizeof(" ()") - 1
                               + ngx_mcp_json_escaped_len(suffix));
    if (dst == NULL) {
        return NGX_ERROR;
    }

    patch->to.data = dst;

    dst = ngx_cpymem(dst, raw->data, len);
    *dst++ = ' ';

    /* the quotes of the suffix make room for the brackets */

    len = ngx_mcp_json_escape(dst, suffix) - dst;

    dst[0] = '(';
    dst[len - 1] = ')';
    dst[len] = '"';

    patch->to.len = dst + len + 1 - patch->to.data;

    return NGX_OK;
}


ngx_int_t
ngx_mcp_entry_names(ngx_str_t *entry, ngx_uint_t kind, ngx_pool_t *pool,
    ngx_str_t *name, ngx_str_t *title)
{
    ngx_str_t    rest, key, value, inner, hint, *out;
    const char  *known;

    known = (kind == NGX_MCP_LIST_RESOURCES) ? "uri"
            : (kind == NGX_MCP_LIST_TEMPLATES) ? "uriTemplate" : "name";

    ngx_str_null(name);
    ngx_str_null(title);
    ngx_str_null(&hint);

    rest = *entry;

    while (ngx_mcp_json_member(&rest, &key, &value) == NGX_OK) {

        if (value.data[0] == '{'
            && ngx_mcp_entry_member(&key, "annotations"))
        {
            inner = value;

            while (ngx_mcp_json_member(&inner, &key, &value) == NGX_OK) {

                if (value.data[0] == '"'
                    && ngx_mcp_entry_member(&key, "title")
                    && ngx_mcp_json_text(pool, &value, &hint) != NGX_OK)
                {
                    return NGX_ERROR;
                }
            }

            continue;
        }

        out = ngx_mcp_entry_member(&key, known) ? name
              : ngx_mcp_entry_member(&key, "title") ? title : NULL;

        if (out && value.data[0] == '"'
            && ngx_mcp_json_text(pool, &value, out) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (title->len == 0) {
        *title = hint;
    }

    return NGX_OK;
}


/* returns whether a raw name, which may have escapes, is this one */

static ngx_uint_t
ngx_mcp_entry_member(ngx_str_t *raw, const char *name)
{
    size_t     len;
    u_char     buf[80];
    ngx_str_t  key;

    len = ngx_strlen(name);

    key.data = raw->data + 1;
    key.len = raw->len - 2;

    if (key.len != len && key.len <= sizeof(buf) - 2
        && ngx_strlchr(key.data, key.data + key.len, '\\'))
    {
        key.len = ngx_mcp_json_unescape(buf, raw) - buf;
        key.data = buf;
    }

    return key.len == len && ngx_memcmp(key.data, name, len) == 0;
}
