
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_merge.h"


/* an entry and its source, needed only during the merge */

typedef struct {
    ngx_str_t               raw;
    ngx_str_t               title;
    ngx_mcp_merge_part_t   *part;
} ngx_mcp_merge_item_t;


/* a hash table of titles: numbers of items, from 1 on; 0: a free place */

typedef struct {
    ngx_mcp_merge_item_t   *items;
    uint32_t               *table;
} ngx_mcp_merge_titles_t;


static ngx_uint_t ngx_mcp_merge_count(ngx_mcp_merge_lists_t *lists);
static ngx_int_t ngx_mcp_merge_add(ngx_mcp_merge_t *m,
    ngx_mcp_merge_lists_t *lists, ngx_mcp_merge_part_t *part,
    ngx_mcp_merge_titles_t *titles, ngx_pool_t *pool, ngx_pool_t *temp);
static ngx_int_t ngx_mcp_merge_name(ngx_mcp_merge_entry_t *e, ngx_uint_t kind,
    ngx_str_t *prefix, ngx_pool_t *pool);
static ngx_mcp_merge_part_t *ngx_mcp_merge_prefixed(
    ngx_mcp_merge_lists_t *lists, ngx_mcp_merge_part_t *part,
    ngx_str_t *name);
static void ngx_mcp_merge_hide(ngx_mcp_merge_part_t *part, ngx_str_t *name,
    ngx_uint_t source);
static ngx_uint_t ngx_mcp_merge_place(ngx_mcp_merge_t *m, ngx_str_t *name);
static ngx_uint_t ngx_mcp_merge_title(ngx_mcp_merge_t *m,
    ngx_mcp_merge_titles_t *titles, ngx_mcp_merge_item_t *item);
static uint64_t ngx_mcp_merge_hash(ngx_mcp_merge_t *m, ngx_str_t *text);


ngx_int_t
ngx_mcp_merge(ngx_mcp_merge_t *m, ngx_mcp_merge_lists_t *lists,
    ngx_pool_t *pool, ngx_pool_t *temp)
{
    u_char                  *p;
    size_t                   len, size;
    ngx_uint_t               i, max;
    ngx_mcp_merge_titles_t   titles;

    ngx_memzero(m, sizeof(ngx_mcp_merge_t));

    max = ngx_mcp_merge_count(lists);

    /* the address is different in each process */

    m->seed = (uint64_t) (uintptr_t) pool * 0x9e3779b97f4a7c15ULL;

    for (m->mask = 16; m->mask < max * 2; m->mask *= 2) { /* void */ }

    size = m->mask * sizeof(uint32_t);
    m->mask--;

    m->entries = ngx_palloc(pool, (max + 1) * sizeof(ngx_mcp_merge_entry_t));
    m->table = ngx_pcalloc(pool, size);

    titles.items = ngx_palloc(temp, (max + 1) * sizeof(ngx_mcp_merge_item_t));
    titles.table = ngx_pcalloc(temp, size);

    if (m->entries == NULL || m->table == NULL || titles.items == NULL
        || titles.table == NULL)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < lists->n; i++) {
        lists->parts[i].hidden = 0;

        if (ngx_mcp_merge_add(m, lists, &lists->parts[i], &titles, pool, temp)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    len = m->n + 2;

    for (i = 0; i < m->n; i++) {
        len += titles.items[i].raw.len;
    }

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    m->text.data = p;

    *p++ = '[';

    for (i = 0; i < m->n; i++) {

        if (i) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, titles.items[i].raw.data, titles.items[i].raw.len);
    }

    *p++ = ']';

    m->text.len = p - m->text.data;

    return NGX_OK;
}


static ngx_uint_t
ngx_mcp_merge_count(ngx_mcp_merge_lists_t *lists)
{
    ngx_str_t   rest, entry;
    ngx_uint_t  i, max;

    max = 0;

    for (i = 0; i < lists->n; i++) {
        rest = lists->parts[i].text;

        while (ngx_mcp_json_element(&rest, &entry) == NGX_OK) {
            max++;
        }
    }

    return max;
}


static ngx_int_t
ngx_mcp_merge_add(ngx_mcp_merge_t *m, ngx_mcp_merge_lists_t *lists,
    ngx_mcp_merge_part_t *part, ngx_mcp_merge_titles_t *titles,
    ngx_pool_t *pool, ngx_pool_t *temp)
{
    ngx_str_t               rest, raw, suffix;
    ngx_uint_t              kind, place;
    ngx_mcp_merge_part_t   *owner;
    ngx_mcp_merge_item_t   *item;
    ngx_mcp_merge_entry_t  *e, *other;

    kind = lists->kind;
    rest = part->text;

    while (ngx_mcp_json_element(&rest, &raw) == NGX_OK) {
        e = &m->entries[m->n];
        item = &titles->items[m->n];

        e->source = part->source;
        item->part = part;

        if (ngx_mcp_entry_names(&raw, kind, pool, &e->local, &item->title)
            != NGX_OK
            || ngx_mcp_merge_name(e, kind, &part->prefix, pool) != NGX_OK)
        {
            return NGX_ERROR;
        }

        owner = ngx_mcp_merge_prefixed(lists, part, &e->name);

        if (owner) {
            ngx_mcp_merge_hide(part, &e->name, owner->source);
            continue;
        }

        place = ngx_mcp_merge_place(m, &e->name);

        if (m->table[place]) {
            other = &m->entries[m->table[place] - 1];

            if (other->source != part->source) {
                ngx_mcp_merge_hide(part, &e->name, other->source);
                continue;
            }

            /* one upstream may list a name twice; both entries are kept */

        } else {
            m->table[place] = (uint32_t) m->n + 1;
        }

        ngx_str_null(&suffix);

        if (item->title.len && ngx_mcp_merge_title(m, titles, item)) {
            suffix = part->upstream;
        }

        item->raw = ngx_mcp_entry_expose(&raw, kind, &part->prefix, &suffix,
                                         temp);
        if (item->raw.data == NULL) {
            return NGX_ERROR;
        }

        m->n++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_merge_name(ngx_mcp_merge_entry_t *e, ngx_uint_t kind,
    ngx_str_t *prefix, ngx_pool_t *pool)
{
    e->name = e->local;

    if (prefix->len == 0
        || (kind != NGX_MCP_LIST_TOOLS && kind != NGX_MCP_LIST_PROMPTS))
    {
        return NGX_OK;
    }

    e->name.data = ngx_pnalloc(pool, NGX_MCP_NAME_MAX);
    if (e->name.data == NULL) {
        return NGX_ERROR;
    }

    e->name.len = ngx_mcp_name_expose(e->name.data, prefix, &e->local)
                  - e->name.data;

    return NGX_OK;
}


/*
 * Finds the upstream to which calls of a name would go because the name begins
 * with the prefix of that upstream.  NULL: there is no such upstream, or part
 * has a prefix itself.
 */

static ngx_mcp_merge_part_t *
ngx_mcp_merge_prefixed(ngx_mcp_merge_lists_t *lists,
    ngx_mcp_merge_part_t *part, ngx_str_t *name)
{
    ngx_str_t              local;
    ngx_uint_t             i;
    ngx_mcp_merge_part_t  *other;

    if (part->prefix.len
        || (lists->kind != NGX_MCP_LIST_TOOLS
            && lists->kind != NGX_MCP_LIST_PROMPTS))
    {
        return NULL;
    }

    for (i = 0; i < lists->n; i++) {
        other = &lists->parts[i];

        if (other->prefix.len
            && ngx_mcp_name_local(&other->prefix, name, &local)
               != NGX_DECLINED)
        {
            return other;
        }
    }

    return NULL;
}


static void
ngx_mcp_merge_hide(ngx_mcp_merge_part_t *part, ngx_str_t *name,
    ngx_uint_t source)
{
    if (part->hidden++ == 0) {
        part->first = *name;
        part->first_source = source;
    }
}


ngx_mcp_merge_entry_t *
ngx_mcp_merge_find(ngx_mcp_merge_t *m, ngx_str_t *name)
{
    uint32_t  n;

    n = m->table[ngx_mcp_merge_place(m, name)];

    return n ? &m->entries[n - 1] : NULL;
}


/* returns the place of a name in m->table, or the free place to put it at */

static ngx_uint_t
ngx_mcp_merge_place(ngx_mcp_merge_t *m, ngx_str_t *name)
{
    ngx_uint_t  i;

    for (i = ngx_mcp_merge_hash(m, name) & m->mask;
         m->table[i];
         i = (i + 1) & m->mask)
    {
        if (ngx_mcp_equal(&m->entries[m->table[i] - 1].name, name)) {
            break;
        }
    }

    return i;
}


/*
 * Returns whether an upstream before item->part has the title of the item.  If
 * no entry had it before, the title goes into the table.
 */

static ngx_uint_t
ngx_mcp_merge_title(ngx_mcp_merge_t *m, ngx_mcp_merge_titles_t *titles,
    ngx_mcp_merge_item_t *item)
{
    ngx_uint_t             i;
    ngx_mcp_merge_item_t  *first;

    for (i = ngx_mcp_merge_hash(m, &item->title) & m->mask;
         titles->table[i];
         i = (i + 1) & m->mask)
    {
        first = &titles->items[titles->table[i] - 1];

        if (ngx_mcp_equal(&first->title, &item->title)) {
            return first->part != item->part;
        }
    }

    titles->table[i] = (uint32_t) m->n + 1;

    return 0;
}


static uint64_t
ngx_mcp_merge_hash(ngx_mcp_merge_t *m, ngx_str_t *text)
{
    size_t    i;
    uint64_t  h;

    h = m->seed;

    for (i = 0; i < text->len; i++) {
        h = (h ^ text->data[i]) * 0x100000001b3ULL;
        h ^= h >> 29;
    }

    return (h * 0x9e3779b97f4a7c15ULL) >> 16;
}
