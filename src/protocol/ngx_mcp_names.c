
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_names.h"
#include "ngx_mcp_splice.h"
#include <ngx_sha1.h>


/* bytes of the hash in a cut name, and of its text with the "_" before it */
#define NGX_MCP_NAME_HASH  4
#define NGX_MCP_NAME_TAIL  (1 + 2 * NGX_MCP_NAME_HASH)

/* most bytes by which a cut name is shorter, as no character is cut in two */
#define NGX_MCP_NAME_CUT   3

/* the most tokens of an entry that are replaced */
#define NGX_MCP_ENTRY_EDITS  8


typedef struct {
    ngx_pool_t             *pool;
    ngx_str_t              *entry;        /* raw */
    ngx_uint_t              n;            /* number of edits */
    ngx_mcp_edit_t          edits[NGX_MCP_ENTRY_EDITS];
} ngx_mcp_entry_edits_t;


static ngx_uint_t ngx_mcp_name_is_cut(ngx_str_t *exposed);
static ngx_int_t ngx_mcp_entry_name(ngx_mcp_entry_edits_t *e,
    ngx_str_t *prefix, ngx_str_t *raw);
static ngx_int_t ngx_mcp_entry_title(ngx_mcp_entry_edits_t *e,
    ngx_str_t *suffix, ngx_str_t *raw);
static ngx_mcp_edit_t *ngx_mcp_entry_edit(ngx_mcp_entry_edits_t *e,
    ngx_str_t *raw);


static ngx_str_t  ngx_mcp_key_name = ngx_string("name");
static ngx_str_t  ngx_mcp_key_title = ngx_string("title");
static ngx_str_t  ngx_mcp_key_hints = ngx_string("annotations");
static ngx_str_t  ngx_mcp_key_uri = ngx_string("uri");
static ngx_str_t  ngx_mcp_key_template = ngx_string("uriTemplate");


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
     * The joint, two equal characters, is compared first, as most other names
     * do not have it there.  A name that is too long is exposed only in its cut
     * form: the whole name would be a second name, which rules do not know.
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
    ngx_str_t               out, rest, name, value, inner, key, title;
    ngx_uint_t              named;
    ngx_mcp_entry_edits_t   e;

    e.pool = pool;
    e.entry = entry;
    e.n = 0;

    named = (prefix->len && (kind == NGX_MCP_LIST_TOOLS
                             || kind == NGX_MCP_LIST_PROMPTS));
    rest = *entry;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (named && ngx_mcp_json_is(&name, &ngx_mcp_key_name)) {

            if (ngx_mcp_entry_name(&e, prefix, &value) != NGX_OK) {
                goto failed;
            }

        } else if (suffix->len && ngx_mcp_json_is(&name, &ngx_mcp_key_title)) {

            if (ngx_mcp_entry_title(&e, suffix, &value) != NGX_OK) {
                goto failed;
            }

        } else if (suffix->len && value.data[0] == '{'
                   && ngx_mcp_json_is(&name, &ngx_mcp_key_hints))
        {
            inner = value;

            while (ngx_mcp_json_member(&inner, &key, &title) == NGX_OK) {

                if (ngx_mcp_json_is(&key, &ngx_mcp_key_title)
                    && ngx_mcp_entry_title(&e, suffix, &title) != NGX_OK)
                {
                    goto failed;
                }
            }
        }
    }

    return e.n ? ngx_mcp_splice(pool, entry, e.edits, e.n) : *entry;

failed:

    ngx_str_null(&out);

    return out;
}


static ngx_int_t
ngx_mcp_entry_name(ngx_mcp_entry_edits_t *e, ngx_str_t *prefix, ngx_str_t *raw)
{
    ngx_str_t        name, exposed;
    ngx_mcp_edit_t  *edit;
    u_char           buf[NGX_MCP_NAME_MAX];

    edit = ngx_mcp_entry_edit(e, raw);
    if (edit == NULL) {
        return NGX_OK;
    }

    if (ngx_mcp_json_text(e->pool, raw, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    exposed.data = buf;
    exposed.len = ngx_mcp_name_expose(buf, prefix, &name) - buf;

    edit->text.data = ngx_pnalloc(e->pool, ngx_mcp_json_escaped_len(&exposed));
    if (edit->text.data == NULL) {
        return NGX_ERROR;
    }

    edit->text.len = ngx_mcp_json_escape(edit->text.data, &exposed)
                     - edit->text.data;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_entry_title(ngx_mcp_entry_edits_t *e, ngx_str_t *suffix,
    ngx_str_t *raw)
{
    size_t           len;
    u_char          *dst;
    ngx_mcp_edit_t  *edit;

    edit = ngx_mcp_entry_edit(e, raw);
    if (edit == NULL) {
        return NGX_OK;
    }

    len = raw->len - 1;

    dst = ngx_pnalloc(e->pool, len + sizeof(" ()") - 1
                               + ngx_mcp_json_escaped_len(suffix));
    if (dst == NULL) {
        return NGX_ERROR;
    }

    edit->text.data = dst;

    dst = ngx_cpymem(dst, raw->data, len);
    *dst++ = ' ';

    /* the parentheses replace the quotes of the suffix */

    len = ngx_mcp_json_escape(dst, suffix) - dst;

    dst[0] = '(';
    dst[len - 1] = ')';
    dst[len] = '"';

    edit->text.len = dst + len + 1 - edit->text.data;

    return NGX_OK;
}


/*
 * Adds an edit that replaces a raw value, and returns the edit.  NULL: the
 * value is no string, or there are too many edits.
 */

static ngx_mcp_edit_t *
ngx_mcp_entry_edit(ngx_mcp_entry_edits_t *e, ngx_str_t *raw)
{
    ngx_mcp_edit_t  *edit;

    if (e->n == NGX_MCP_ENTRY_EDITS || raw->data[0] != '"') {
        return NULL;
    }

    edit = &e->edits[e->n++];

    edit->start = raw->data - e->entry->data;
    edit->end = edit->start + raw->len;

    return edit;
}


ngx_int_t
ngx_mcp_entry_names(ngx_str_t *entry, ngx_uint_t kind, ngx_pool_t *pool,
    ngx_str_t *name, ngx_str_t *title)
{
    ngx_str_t  rest, key, value, inner, hint, *out, *known;

    known = (kind == NGX_MCP_LIST_RESOURCES) ? &ngx_mcp_key_uri
            : (kind == NGX_MCP_LIST_TEMPLATES) ? &ngx_mcp_key_template
            : &ngx_mcp_key_name;

    ngx_str_null(name);
    ngx_str_null(title);
    ngx_str_null(&hint);

    rest = *entry;

    while (ngx_mcp_json_member(&rest, &key, &value) == NGX_OK) {

        if (value.data[0] == '{'
            && ngx_mcp_json_is(&key, &ngx_mcp_key_hints))
        {
            inner = value;

            while (ngx_mcp_json_member(&inner, &key, &value) == NGX_OK) {

                if (value.data[0] == '"'
                    && ngx_mcp_json_is(&key, &ngx_mcp_key_title)
                    && ngx_mcp_json_text(pool, &value, &hint) != NGX_OK)
                {
                    return NGX_ERROR;
                }
            }

            continue;
        }

        out = ngx_mcp_json_is(&key, known) ? name
              : ngx_mcp_json_is(&key, &ngx_mcp_key_title) ? title : NULL;

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
