
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_pages.h"
#include <ngx_sha1.h>


typedef struct {
    ngx_str_t               text;
    ngx_str_t               name;         /* decoded name, URI or template, by
                                             which entries are sorted */
} ngx_mcp_entry_t;


static ngx_int_t ngx_mcp_pages_entry(ngx_mcp_pages_t *pages,
    ngx_str_t *text, const char **why);
static ngx_uint_t ngx_mcp_pages_restarted(ngx_mcp_pages_t *pages,
    ngx_uint_t before);
static ngx_int_t ngx_mcp_pages_next(ngx_mcp_pages_t *pages, ngx_str_t *cursor,
    const char **why);
static void ngx_mcp_pages_digest(ngx_mcp_entry_t *entries, ngx_uint_t n,
    u_char *digest);
static int ngx_libc_cdecl ngx_mcp_entry_cmp(const void *one, const void *two);


static struct {
    ngx_str_t   method;
    ngx_str_t   member;
    ngx_str_t   name;                     /* raw name of the member that names
                                             an entry */
    const char *nameless;                 /* reason of an error: an entry has
                                             no such member */
} ngx_mcp_lists[] = {

    { ngx_string("tools/list"), ngx_string("tools"),
      ngx_string("\"name\""), "a tool has no name" },

    { ngx_string("prompts/list"), ngx_string("prompts"),
      ngx_string("\"name\""), "a prompt has no name" },

    { ngx_string("resources/list"), ngx_string("resources"),
      ngx_string("\"uri\""), "a resource has no uri" },

    { ngx_string("resources/templates/list"), ngx_string("resourceTemplates"),
      ngx_string("\"uriTemplate\""), "a template has no uriTemplate" }
};


ngx_mcp_list_change_t  ngx_mcp_list_changes[] = {

    { NGX_MCP_OFFERED_TOOLS, NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS),
      NGX_MCP_METHOD_TOOLS_CHANGED,
      ngx_string(NGX_MCP_LIST_CHANGED("tools")) },

    { NGX_MCP_OFFERED_PROMPTS, NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS),
      NGX_MCP_METHOD_PROMPTS_CHANGED,
      ngx_string(NGX_MCP_LIST_CHANGED("prompts")) },

    { NGX_MCP_OFFERED_RESOURCES,
      NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
      |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TEMPLATES),
      NGX_MCP_METHOD_RESOURCES_CHANGED,
      ngx_string(NGX_MCP_LIST_CHANGED("resources")) },

    { 0, 0, NGX_MCP_METHOD_OTHER, ngx_null_string }
};


ngx_mcp_list_change_t *
ngx_mcp_list_change(ngx_uint_t method)
{
    ngx_mcp_list_change_t  *change;

    for (change = ngx_mcp_list_changes; change->kinds; change++) {
        if (change->method == method) {
            return change;
        }
    }

    return NULL;
}


ngx_str_t *
ngx_mcp_list_method(ngx_uint_t kind)
{
    return &ngx_mcp_lists[kind].method;
}


ngx_str_t *
ngx_mcp_list_member(ngx_uint_t kind)
{
    return &ngx_mcp_lists[kind].member;
}


ngx_int_t
ngx_mcp_pages_init(ngx_mcp_pages_t *pages, ngx_uint_t kind, ngx_pool_t *pool)
{
    ngx_memzero(pages, sizeof(ngx_mcp_pages_t));

    pages->kind = kind;
    pages->pool = pool;

    ngx_mcp_hint_init(&pages->hint);

    if (ngx_array_init(&pages->entries, pool, 64, sizeof(ngx_mcp_entry_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_array_init(&pages->cursors, pool, 4, sizeof(ngx_str_t));
}


ngx_int_t
ngx_mcp_pages_add(ngx_mcp_pages_t *pages, ngx_str_t *result,
    ngx_mcp_hint_t *hint, const char **why)
{
    u_char      *p;
    ngx_int_t    rc;
    ngx_str_t    rest, name, value, list, cursor, entry, *member;
    ngx_uint_t   lists, cursors, before;

    if (result->len == 0 || result->data[0] != '{') {
        *why = "the result is not an object";
        return NGX_ERROR;
    }

    ngx_str_null(&list);
    ngx_str_null(&cursor);

    lists = 0;
    cursors = 0;

    member = &ngx_mcp_lists[pages->kind].member;
    rest = *result;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (name.len == member->len + 2
            && ngx_memcmp(name.data + 1, member->data, member->len) == 0)
        {
            list = value;
            lists++;

        } else if (name.len == sizeof("\"nextCursor\"") - 1
                   && ngx_memcmp(name.data, "\"nextCursor\"", name.len) == 0)
        {
            cursor = value;
            cursors++;
        }
    }

    if (lists != 1 || list.data[0] != '[' || cursors > 1) {
        *why = "the result has no list";
        return NGX_ERROR;
    }

    ngx_mcp_hint_join(&pages->hint, hint);

    pages->size += list.len;

    if (pages->size > NGX_MCP_LIST_SIZE) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(pages->pool, list.len);
    if (p == NULL) {
        *why = "no memory";
        return NGX_ERROR;
    }

    ngx_memcpy(p, list.data, list.len);

    rest.data = p;
    rest.len = list.len;

    before = pages->entries.nelts;

    while (ngx_mcp_json_element(&rest, &entry) == NGX_OK) {
        rc = ngx_mcp_pages_entry(pages, &entry, why);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ngx_mcp_pages_restarted(pages, before)) {
        pages->entries.nelts = before;
        ngx_str_null(&cursor);
    }

    return ngx_mcp_pages_next(pages, &cursor, why);
}


static ngx_int_t
ngx_mcp_pages_entry(ngx_mcp_pages_t *pages, ngx_str_t *text, const char **why)
{
    ngx_str_t         rest, name, value, *want;
    ngx_mcp_entry_t  *entry;

    if (text->data[0] != '{') {
        *why = "an entry is not an object";
        return NGX_ERROR;
    }

    if (pages->entries.nelts == NGX_MCP_LIST_ENTRIES) {
        return NGX_DECLINED;
    }

    entry = ngx_array_push(&pages->entries);
    if (entry == NULL) {
        *why = "no memory";
        return NGX_ERROR;
    }

    entry->text = *text;
    ngx_str_null(&entry->name);

    want = &ngx_mcp_lists[pages->kind].name;
    rest = *text;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (!ngx_mcp_equal(&name, want)) {
            continue;
        }

        if (value.data[0] != '"' || entry->name.data) {
            *why = ngx_mcp_lists[pages->kind].nameless;
            return NGX_ERROR;
        }

        if (ngx_mcp_json_text(pages->pool, &value, &entry->name) != NGX_OK) {
            *why = "no memory";
            return NGX_ERROR;
        }
    }

    if (entry->name.data == NULL) {
        *why = ngx_mcp_lists[pages->kind].nameless;
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Returns whether a page is the first page once more, which some servers send
 * in answer to an empty cursor at the end of a list, perhaps in another order.
 * before: the number of entries without this page.
 */

static ngx_uint_t
ngx_mcp_pages_restarted(ngx_mcp_pages_t *pages, ngx_uint_t before)
{
    ngx_uint_t        i;
    ngx_mcp_entry_t  *entries;

    if (pages->cursor.len != 2 || pages->entries.nelts == before) {
        return 0;
    }

    entries = pages->entries.elts;

    for (i = 0; i < before; i++) {
        if (ngx_mcp_equal(&entries[i].name, &entries[before].name)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Stores the cursor of the next page.  A cursor that appeared before would lead
 * in a circle, so it is an error.  An empty cursor may be that of a page or
 * mean the end of the list; the second empty cursor is treated as the end.
 */

static ngx_int_t
ngx_mcp_pages_next(ngx_mcp_pages_t *pages, ngx_str_t *cursor,
    const char **why)
{
    ngx_str_t   *known, *copy;
    ngx_uint_t   i;

    ngx_str_null(&pages->cursor);

    if (cursor->len == 0 || cursor->data[0] == 'n') {
        return NGX_OK;
    }

    if (cursor->data[0] != '"') {
        *why = "nextCursor is not a string";
        return NGX_ERROR;
    }

    if (pages->cursors.nelts + 1 >= NGX_MCP_PAGES_MAX) {
        return NGX_DECLINED;
    }

    known = pages->cursors.elts;

    for (i = 0; i < pages->cursors.nelts; i++) {
        if (ngx_mcp_equal(&known[i], cursor)) {

            if (cursor->len == 2) {
                return NGX_OK;
            }

            *why = "a nextCursor was repeated";
            return NGX_ERROR;
        }
    }

    copy = ngx_array_push(&pages->cursors);
    if (copy == NULL) {
        *why = "no memory";
        return NGX_ERROR;
    }

    copy->len = cursor->len;
    copy->data = ngx_pnalloc(pages->pool, cursor->len);

    if (copy->data == NULL) {
        *why = "no memory";
        return NGX_ERROR;
    }

    ngx_memcpy(copy->data, cursor->data, cursor->len);

    pages->cursor = *copy;

    return NGX_AGAIN;
}


ngx_int_t
ngx_mcp_pages_end(ngx_mcp_pages_t *pages, ngx_mcp_list_content_t *out)
{
    u_char           *p;
    size_t            len;
    ngx_uint_t        i, n;
    ngx_mcp_entry_t  *entries;

    entries = pages->entries.elts;
    n = pages->entries.nelts;
    len = n + 2;

    for (i = 0; i < n; i++) {
        len += entries[i].text.len;
    }

    p = ngx_pnalloc(pages->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    out->kind = pages->kind;
    out->text.data = p;
    out->entries = n;
    out->hint = pages->hint;

    *p++ = '[';

    for (i = 0; i < n; i++) {

        if (i) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, entries[i].text.data, entries[i].text.len);
    }

    *p++ = ']';

    out->text.len = p - out->text.data;

    ngx_mcp_pages_digest(entries, n, out->order);

    if (n) {
        ngx_qsort(entries, n, sizeof(ngx_mcp_entry_t), ngx_mcp_entry_cmp);
    }

    ngx_mcp_pages_digest(entries, n, out->digest);

    return NGX_OK;
}


static void
ngx_mcp_pages_digest(ngx_mcp_entry_t *entries, ngx_uint_t n, u_char *digest)
{
    uint64_t    len;
    ngx_uint_t  i;
    ngx_sha1_t  sha1;

    ngx_sha1_init(&sha1);

    for (i = 0; i < n; i++) {
        len = entries[i].text.len;

        ngx_sha1_update(&sha1, &len, sizeof(uint64_t));
        ngx_sha1_update(&sha1, entries[i].text.data, entries[i].text.len);
    }

    ngx_sha1_final(digest, &sha1);
}


static int ngx_libc_cdecl
ngx_mcp_entry_cmp(const void *one, const void *two)
{
    ngx_int_t         rc;
    ngx_mcp_entry_t  *a, *b;

    a = (ngx_mcp_entry_t *) one;
    b = (ngx_mcp_entry_t *) two;

    rc = ngx_memn2cmp(a->name.data, b->name.data, a->name.len, b->name.len);

    if (rc == 0) {
        rc = ngx_memn2cmp(a->text.data, b->text.data, a->text.len,
                          b->text.len);
    }

    return (int) rc;
}


ngx_array_t *
ngx_mcp_pages_split(ngx_str_t *text, size_t size, ngx_uint_t entries,
    ngx_pool_t *pool)
{
    u_char          *end;
    ngx_str_t        rest, entry;
    ngx_uint_t       n;
    ngx_array_t     *pages;
    ngx_mcp_page_t  *page;

    pages = ngx_array_create(pool, 1, sizeof(ngx_mcp_page_t));
    if (pages == NULL) {
        return NULL;
    }

    page = ngx_array_push(pages);
    if (page == NULL) {
        return NULL;
    }

    page->start = 1;
    page->end = text->len - 1;
    page->entry = 0;

    rest = *text;
    end = NULL;

    for (n = 0; ngx_mcp_json_element(&rest, &entry) == NGX_OK; n++) {

        if (end
            && (n - page->entry == entries
                || (size_t) (entry.data + entry.len - text->data)
                   - page->start > size))
        {
            page->end = end - text->data;

            page = ngx_array_push(pages);
            if (page == NULL) {
                return NULL;
            }

            page->start = entry.data - text->data;
            page->end = text->len - 1;
            page->entry = n;
        }

        end = entry.data + entry.len;
    }

    return pages;
}


u_char *
ngx_mcp_cursor_print(u_char *dst, uint64_t version, ngx_uint_t entry)
{
    return ngx_sprintf(dst, "mcp-%016xL%08xi", version, entry);
}


ngx_int_t
ngx_mcp_cursor_parse(ngx_str_t *text, uint64_t *version, ngx_uint_t *entry)
{
    ngx_int_t  high, low, e;

    if (text->len != NGX_MCP_CURSOR_LEN
        || ngx_memcmp(text->data, "mcp-", 4) != 0)
    {
        return NGX_DECLINED;
    }

    /* ngx_hextoi() refuses a number whose highest bit is set */

    high = ngx_hextoi(text->data + 4, 8);
    low = ngx_hextoi(text->data + 12, 8);
    e = ngx_hextoi(text->data + 20, 8);

    if (high == NGX_ERROR || low == NGX_ERROR || e == NGX_ERROR) {
        return NGX_DECLINED;
    }

    *version = (uint64_t) high << 32 | (uint64_t) low;
    *entry = e;

    return NGX_OK;
}
