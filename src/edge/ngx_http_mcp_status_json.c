
#include "ngx_http_mcp_status.h"
#include <cjson/cJSON.h>


static ngx_uint_t ngx_http_mcp_json_zone(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_counters(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_lists(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_exchanges(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_exchange(cJSON *item,
    ngx_http_mcp_status_metric_t *m);
static ngx_uint_t ngx_http_mcp_json_leases(cJSON *root,
    ngx_http_mcp_status_t *status);
static cJSON *ngx_http_mcp_json_item(cJSON *array);


#define ngx_http_mcp_json_number(object, name, n)                             \
    (cJSON_AddNumberToObject(object, name, (double) (n)) != NULL)

#define ngx_http_mcp_json_text(object, name, s)                               \
    (cJSON_AddStringToObject(object, name, (char *) (s)) != NULL)


ngx_chain_t *
ngx_http_mcp_status_json(ngx_http_mcp_status_t *status)
{
    char         *text;
    cJSON        *root;
    size_t        len;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    root = cJSON_CreateObject();
    text = NULL;

    if (root
        && ngx_http_mcp_json_text(root, "version", NGX_MCP_MODULE_VERSION)
        && ngx_http_mcp_json_number(root, "workers", status->use.workers)
        && ngx_http_mcp_json_zone(root, status)
        && ngx_http_mcp_json_counters(root, status)
        && ngx_http_mcp_json_lists(root, status)
        && ngx_http_mcp_json_exchanges(root, status)
        && ngx_http_mcp_json_leases(root, status))
    {
        text = cJSON_Print(root);
    }

    cJSON_Delete(root);

    if (text == NULL) {
        return NULL;
    }

    len = ngx_strlen(text);

    b = ngx_create_temp_buf(status->pool, len + 1);
    cl = ngx_alloc_chain_link(status->pool);

    if (b && cl) {
        b->last = ngx_cpymem(b->last, text, len);
        *b->last++ = LF;

        cl->buf = b;
        cl->next = NULL;
    }

    cJSON_free(text);

    return b ? cl : NULL;
}


static ngx_uint_t
ngx_http_mcp_json_zone(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON               *zone, *bytes;
    ngx_uint_t           i;
    ngx_mcp_zone_use_t  *use;

    use = &status->use;
    zone = cJSON_AddObjectToObject(root, "zone");

    if (zone == NULL
        || !ngx_http_mcp_json_text(zone, "name", status->name)
        || !ngx_http_mcp_json_number(zone, "size_bytes", status->size)
        || !ngx_http_mcp_json_number(zone, "blocks", use->blocks)
        || !ngx_http_mcp_json_number(zone, "blocks_free",
                                     use->used[NGX_MCP_USE_FREE])
        || !ngx_http_mcp_json_number(zone, "block_size_bytes",
                                     use->block_size)
        || !ngx_http_mcp_json_number(zone, "recoveries", use->recoveries))
    {
        return 0;
    }

    bytes = cJSON_AddObjectToObject(zone, "bytes");

    if (bytes == NULL) {
        return 0;
    }

    for (i = 0; i < NGX_MCP_USE_MAX; i++) {
        if (!ngx_http_mcp_json_number(bytes, ngx_http_mcp_status_uses[i],
                                      use->used[i] * use->block_size))
        {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_mcp_json_counters(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON                  *group;
    int64_t                 sum;
    ngx_uint_t              i;
    ngx_http_mcp_number_t  *n;

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        n = &ngx_http_mcp_status_counters[i];
        group = cJSON_GetObjectItemCaseSensitive(root, n->group);

        if (group == NULL) {
            group = cJSON_AddObjectToObject(root, n->group);
        }

        if (group == NULL) {
            return 0;
        }

        sum = ngx_http_mcp_status_sum(status, i);

        if (sum != -1 && !ngx_http_mcp_json_number(group, n->family, sum)) {
            return 0;
        }

        if (n->label[0]
            && !ngx_http_mcp_json_number(group, n->member,
                                         status->counters[i]))
        {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_mcp_json_lists(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON                       *array, *item;
    ngx_uint_t                   i;
    ngx_http_mcp_status_list_t  *list;

    array = cJSON_AddArrayToObject(
                cJSON_GetObjectItemCaseSensitive(root, "lists"), "kept");

    if (array == NULL) {
        return 0;
    }

    list = status->lists.elts;

    for (i = 0; i < status->lists.nelts; i++) {
        item = ngx_http_mcp_json_item(array);

        if (item == NULL
            || !ngx_http_mcp_json_text(item, "endpoint", list[i].endpoint)
            || !ngx_http_mcp_json_text(item, "list", list[i].list)
            || !ngx_http_mcp_json_number(item, "audiences", list[i].kept)
            || !ngx_http_mcp_json_number(item, "failing", list[i].failing)
            || !ngx_http_mcp_json_number(item, "entries", list[i].entries)
            || !ngx_http_mcp_json_number(item, "bytes", list[i].size)
            || !ngx_http_mcp_json_number(item, "age_ms", list[i].age))
        {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_mcp_json_exchanges(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON                         *array, *item;
    ngx_uint_t                     i;
    ngx_http_mcp_status_metric_t  *m;

    array = cJSON_AddArrayToObject(
                cJSON_GetObjectItemCaseSensitive(root, "exchanges"), "by");

    if (array == NULL) {
        return 0;
    }

    m = status->metrics.elts;

    for (i = 0; i < status->metrics.nelts; i++) {
        item = ngx_http_mcp_json_item(array);

        if (item == NULL || !ngx_http_mcp_json_exchange(item, &m[i])) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_mcp_json_exchange(cJSON *item, ngx_http_mcp_status_metric_t *m)
{
    char         name[NGX_INT64_LEN + 1];
    cJSON       *buckets;
    ngx_uint_t   i;

    if (!ngx_http_mcp_json_text(item, "endpoint", m->endpoint)
        || !ngx_http_mcp_json_text(item, "upstream", m->upstream)
        || !ngx_http_mcp_json_text(item, "method", m->method)
        || !ngx_http_mcp_json_number(item, "count", m->info.count)
        || !ngx_http_mcp_json_number(item, "ms", m->info.msec))
    {
        return 0;
    }

    for (i = 0; i < NGX_MCP_METRIC_OUTCOMES; i++) {
        if (!ngx_http_mcp_json_number(item, ngx_http_mcp_status_outcomes[i],
                                      m->info.outcomes[i]))
        {
            return 0;
        }
    }

    buckets = cJSON_AddObjectToObject(item, "within_ms");

    if (buckets == NULL) {
        return 0;
    }

    for (i = 0; i < NGX_MCP_METRIC_BUCKETS; i++) {
        *ngx_sprintf((u_char *) name, "%M", ngx_mcp_metric_limits[i]) = '\0';

        if (!ngx_http_mcp_json_number(buckets, name, m->info.buckets[i])) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_mcp_json_leases(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON                        *leases, *array, *item;
    ngx_uint_t                    i;
    ngx_http_mcp_status_lease_t  *lease;

    leases = cJSON_AddObjectToObject(root, "leases");

    if (leases == NULL
        || !ngx_http_mcp_json_number(leases, "held", status->held)
        || !ngx_http_mcp_json_number(leases, "free",
                                     status->nleases - status->held))
    {
        return 0;
    }

    array = cJSON_AddArrayToObject(leases, "by");

    if (array == NULL) {
        return 0;
    }

    lease = status->leases.elts;

    for (i = 0; i < status->leases.nelts; i++) {
        item = ngx_http_mcp_json_item(array);

        if (item == NULL
            || !ngx_http_mcp_json_text(item, "key", lease[i].key)
            || !ngx_http_mcp_json_number(item, "pid", lease[i].info.holder)
            || !ngx_http_mcp_json_number(item, "age_ms", lease[i].info.held)
            || !ngx_http_mcp_json_number(item, "silence_ms",
                                         lease[i].info.silent)
            || cJSON_AddBoolToObject(item, "silent", lease[i].silent) == NULL
            || !ngx_http_mcp_json_number(item, "fence", lease[i].info.fence)
            || !ngx_http_mcp_json_number(item, "taken", lease[i].info.consumed))
        {
            return 0;
        }
    }

    return 1;
}


static cJSON *
ngx_http_mcp_json_item(cJSON *array)
{
    cJSON  *item;

    item = cJSON_CreateObject();

    if (item && !cJSON_AddItemToArray(array, item)) {
        cJSON_Delete(item);
        return NULL;
    }

    return item;
}
