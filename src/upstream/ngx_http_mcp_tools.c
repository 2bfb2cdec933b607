
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_tools.h"
#include "ngx_mcp_splice.h"


/* tenants of an upstream and tools of a tenant, at most */
#define NGX_HTTP_MCP_TOOLS_TENANTS  64
#define NGX_HTTP_MCP_TOOLS_MAX      10000

/* ms; if a called tool is not in an older list, the list is read again */
#define NGX_HTTP_MCP_TOOLS_AGE      10000


typedef struct {
    uint64_t                  name;         /* hash of the tool's name */
    ngx_str_t                 raw;          /* entry of the list; empty: no
                                               headers are needed */
} ngx_http_mcp_tool_t;


struct ngx_http_mcp_tools_s {
    ngx_queue_t               queue;        /* link in worker->tools, which
                                               begins with the record used last
                                               */
    ngx_pool_t               *pool;
    ngx_str_t                 tenant;
    ngx_msec_t                made;         /* time at which the list was read
                                               */
    ngx_uint_t                cut;          /* the list has more tools than the
                                               record */
    ngx_array_t               array;        /* ngx_http_mcp_tool_t, in the
                                               order of their names' hashes */
};


static ngx_http_mcp_tools_t *ngx_http_mcp_tools_find(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant);
static ngx_int_t ngx_http_mcp_tools_entry(ngx_http_mcp_tools_t *tools,
    ngx_str_t *raw);
static uint64_t ngx_http_mcp_tools_hash(ngx_str_t *name);
static void ngx_http_mcp_tools_remove(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_tools_t *tools);
static int ngx_libc_cdecl ngx_http_mcp_tools_compare(const void *one,
    const void *two);
static ngx_int_t ngx_http_mcp_tools_queue(ngx_http_mcp_upstream_t *u);
static void ngx_http_mcp_tools_cleanup(void *data);


ngx_int_t
ngx_http_mcp_tools_get(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_str_t *name, ngx_pool_t *pool, ngx_str_t *tool)
{
    uint64_t               hash;
    ngx_uint_t             low, high, middle;
    ngx_http_mcp_tool_t   *entry;
    ngx_http_mcp_tools_t  *tools;

    ngx_str_null(tool);

    tools = ngx_http_mcp_tools_find(u, tenant);

    if (tools == NULL) {
        return NGX_DECLINED;
    }

    hash = ngx_http_mcp_tools_hash(name);
    entry = tools->array.elts;
    low = 0;
    high = tools->array.nelts;

    while (low < high) {
        middle = (low + high) / 2;

        if (entry[middle].name == hash) {
            return entry[middle].raw.len
                   ? ngx_http_mcp_string_copy(pool, tool, &entry[middle].raw)
                   : NGX_OK;
        }

        if (entry[middle].name < hash) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return (ngx_current_msec - tools->made < NGX_HTTP_MCP_TOOLS_AGE)
           ? NGX_OK : NGX_DECLINED;
}


static ngx_http_mcp_tools_t *
ngx_http_mcp_tools_find(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_queue_t           *q, *queue;
    ngx_http_mcp_tools_t  *tools;

    queue = &u->worker->tools;

    if (queue->next == NULL) {
        return NULL;
    }

    for (q = ngx_queue_head(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_next(q))
    {
        tools = ngx_queue_data(q, ngx_http_mcp_tools_t, queue);

        if (ngx_mcp_equal(&tools->tenant, tenant)) {
            ngx_queue_remove(q);
            ngx_queue_insert_head(queue, q);

            return tools;
        }
    }

    return NULL;
}


ngx_http_mcp_tools_t *
ngx_http_mcp_tools_create(ngx_str_t *tenant)
{
    ngx_pool_t            *pool;
    ngx_http_mcp_tools_t  *tools;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    tools = ngx_pcalloc(pool, sizeof(ngx_http_mcp_tools_t));

    if (tools == NULL
        || ngx_http_mcp_string_copy(pool, &tools->tenant, tenant) != NGX_OK
        || ngx_array_init(&tools->array, pool, 16, sizeof(ngx_http_mcp_tool_t))
           != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return NULL;
    }

    tools->pool = pool;

    return tools;
}


ngx_int_t
ngx_http_mcp_tools_add(ngx_http_mcp_tools_t *tools, ngx_str_t *result)
{
    ngx_str_t  rest, tool;

    rest = ngx_mcp_json_get(result, "tools");

    if (rest.len == 0 || rest.data[0] != '[') {
        return NGX_DECLINED;
    }

    while (ngx_mcp_json_element(&rest, &tool) == NGX_OK) {
        if (tool.data[0] == '{'
            && ngx_http_mcp_tools_entry(tools, &tool) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_tools_entry(ngx_http_mcp_tools_t *tools, ngx_str_t *raw)
{
    u_char               *p;
    ngx_str_t             name, value;
    ngx_http_mcp_tool_t  *entry;

    if (tools->array.nelts == NGX_HTTP_MCP_TOOLS_MAX) {
        tools->cut = 1;
        return NGX_ERROR;
    }

    value = ngx_mcp_json_get(raw, "name");

    if (value.len == 0 || value.data[0] != '"') {
        return NGX_OK;
    }

    p = ngx_alloc(value.len, ngx_cycle->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    entry = ngx_array_push(&tools->array);
    if (entry == NULL) {
        ngx_free(p);
        return NGX_ERROR;
    }

    name.data = p;
    name.len = ngx_mcp_json_unescape(p, &value) - p;

    entry->name = ngx_http_mcp_tools_hash(&name);
    ngx_str_null(&entry->raw);

    ngx_free(p);

    if (ngx_strlcasestrn(raw->data, raw->data + raw->len,
                         (u_char *) "\"x-mcp-header\"",
                         sizeof("\"x-mcp-header\"") - 2)
        == NULL)
    {
        return NGX_OK;
    }

    return ngx_http_mcp_string_copy(tools->pool, &entry->raw, raw);
}


static uint64_t
ngx_http_mcp_tools_hash(ngx_str_t *name)
{
    return ((uint64_t) ngx_murmur_hash2(name->data, name->len) << 32)
           | ngx_crc32_long(name->data, name->len);
}


void
ngx_http_mcp_tools_keep(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_tools_t *tools, ngx_uint_t whole, ngx_uint_t more)
{
    ngx_queue_t           *q;
    ngx_http_mcp_tools_t  *old;

    if (ngx_http_mcp_tools_queue(u) != NGX_OK) {
        ngx_http_mcp_tools_free(tools);
        return;
    }

    old = ngx_http_mcp_tools_find(u, &tools->tenant);

    if (old && !whole) {
        old->made = ngx_current_msec;

        ngx_http_mcp_tools_free(tools);
        return;
    }

    tools->cut |= more;

    if (tools->cut && (old == NULL || !old->cut)) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" of endpoint \"%V\" lists more "
                      "tools than the module reads, which are those of %d "
                      "pages and at most %d; calls of the others have no "
                      "\"Mcp-Param-*\" headers; let the upstream list more "
                      "tools on a page, or fewer tools",
                      &u->name, &u->endpoint, NGX_HTTP_MCP_TOOLS_PAGES,
                      NGX_HTTP_MCP_TOOLS_MAX);
    }

    if (old) {
        ngx_http_mcp_tools_remove(u, old);
    }

    ngx_qsort(tools->array.elts, tools->array.nelts,
              sizeof(ngx_http_mcp_tool_t), ngx_http_mcp_tools_compare);

    tools->made = ngx_current_msec;

    ngx_queue_insert_head(&u->worker->tools, &tools->queue);

    if (++u->worker->ntools > NGX_HTTP_MCP_TOOLS_TENANTS) {
        q = ngx_queue_last(&u->worker->tools);
        old = ngx_queue_data(q, ngx_http_mcp_tools_t, queue);

        ngx_http_mcp_tools_remove(u, old);
    }
}


static void
ngx_http_mcp_tools_remove(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_tools_t *tools)
{
    ngx_queue_remove(&tools->queue);
    u->worker->ntools--;

    ngx_http_mcp_tools_free(tools);
}


static int ngx_libc_cdecl
ngx_http_mcp_tools_compare(const void *one, const void *two)
{
    const ngx_http_mcp_tool_t  *first, *second;

    first = one;
    second = two;

    return (first->name > second->name) - (first->name < second->name);
}


static ngx_int_t
ngx_http_mcp_tools_queue(ngx_http_mcp_upstream_t *u)
{
    ngx_pool_cleanup_t  *cln;

    if (u->worker->tools.next) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(ngx_cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_mcp_tools_cleanup;
    cln->data = &u->worker->tools;

    ngx_queue_init(&u->worker->tools);

    return NGX_OK;
}


/* frees all records of an upstream, because the worker exits */

static void
ngx_http_mcp_tools_cleanup(void *data)
{
    ngx_queue_t *queue = data;

    ngx_queue_t  *q;

    while (!ngx_queue_empty(queue)) {
        q = ngx_queue_head(queue);
        ngx_queue_remove(q);

        ngx_http_mcp_tools_free(ngx_queue_data(q, ngx_http_mcp_tools_t, queue));
    }
}


void
ngx_http_mcp_tools_free(ngx_http_mcp_tools_t *tools)
{
    ngx_destroy_pool(tools->pool);
}
