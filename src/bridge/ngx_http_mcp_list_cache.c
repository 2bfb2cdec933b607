
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_list_cache.h"
#include "ngx_mcp_outbox.h"


/* number and total bytes of the copies of a worker for a zone, at most */
#define NGX_HTTP_MCP_LIST_CACHE_COPIES  1024
#define NGX_HTTP_MCP_LIST_CACHE_SIZE    (32 * 1024 * 1024)

#define NGX_HTTP_MCP_LIST_CACHE_BUCKETS  1024

/* value of "annotated": a tool of the list has arguments that headers repeat */
#define NGX_HTTP_MCP_LIST_ANNOTATED  2

/* ms; interval at which a worker that uses a list notes this in the zone */
#define NGX_HTTP_MCP_LIST_CACHE_TOUCH  1000

/* bytes of an id by which the zone knows that a warning was logged */
#define NGX_HTTP_MCP_LIST_CACHE_ID  256


/*
 * Audiences of callers without a session that a worker remembers, in a hash
 * table with one audience in each place; and bytes of the tenant and key of an
 * audience, at most.
 */
#define NGX_HTTP_MCP_LIST_CACHE_KNOWN      64
#define NGX_HTTP_MCP_LIST_CACHE_KNOWN_LEN  192


typedef struct {
    ngx_http_mcp_bridge_t    *bridge;
    ngx_mcp_ref_t             audience;
    size_t                    tenant;     /* length of the tenant in "text" */
    size_t                    len;        /* length of "text" */
    u_char                    text[NGX_HTTP_MCP_LIST_CACHE_KNOWN_LEN];
                                          /* the tenant, and the audience's key
                                             behind it */
} ngx_http_mcp_list_known_t;


/* the copies that a worker keeps for a zone */

typedef struct {
    ngx_queue_t                table[NGX_HTTP_MCP_LIST_CACHE_BUCKETS];
    ngx_queue_t                copies;    /* all copies, the last used one
                                             first */
    ngx_uint_t                 n;         /* number of copies */
    size_t                     size;      /* bytes of all copies */
    ngx_http_mcp_list_known_t  known[NGX_HTTP_MCP_LIST_CACHE_KNOWN];
} ngx_http_mcp_list_cache_t;

#define ngx_http_mcp_list_cache_bucket(cache, ref, kind)                      \
    (&(cache)->table[((ref).block * NGX_MCP_LIST_KINDS + (kind))              \
                     % NGX_HTTP_MCP_LIST_CACHE_BUCKETS])


static ngx_http_mcp_list_cache_t *ngx_http_mcp_list_cache(
    ngx_mcp_zone_t *zone);
static void ngx_http_mcp_list_cache_cleanup(void *data);
static void ngx_http_mcp_list_cache_audience(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_mcp_audience_t *names);
static ngx_http_mcp_list_copy_t *ngx_http_mcp_list_cache_use(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_list_t *list);
static ngx_int_t ngx_http_mcp_list_cache_lookup(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_ref_t audience, ngx_uint_t kind, ngx_uint_t partial,
    ngx_mcp_list_t *list);
static void ngx_http_mcp_list_cache_log_left_out(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_list_t *list);
static ngx_int_t ngx_http_mcp_list_cache_join(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_mcp_audience_t *names);
static void ngx_http_mcp_list_cache_recall(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller);
static void ngx_http_mcp_list_cache_learn(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller);
static ngx_http_mcp_list_known_t *ngx_http_mcp_list_cache_known(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller);
static ngx_http_mcp_list_copy_t *ngx_http_mcp_list_cache_find(
    ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience, ngx_uint_t kind);
static ngx_http_mcp_list_copy_t *ngx_http_mcp_list_cache_load(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_list_t *list);
static ngx_int_t ngx_http_mcp_list_cache_text(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_list_copy_t *copy);
static ngx_int_t ngx_http_mcp_list_cache_merge(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_list_copy_t *copy, ngx_pool_t *temp);
static void ngx_http_mcp_list_cache_unlink(ngx_http_mcp_list_copy_t *copy);
static void ngx_http_mcp_list_cache_evict(ngx_http_mcp_list_cache_t *cache);
static void ngx_http_mcp_list_cache_ready(void *data);


/* finds or makes the cache of a zone; NULL: no memory */

static ngx_http_mcp_list_cache_t *
ngx_http_mcp_list_cache(ngx_mcp_zone_t *zone)
{
    ngx_uint_t                  i;
    ngx_pool_cleanup_t         *cln;
    ngx_http_mcp_list_cache_t  *cache;

    cache = zone->ctx[NGX_MCP_CTX_LIST_CACHE];

    if (cache) {
        return cache;
    }

    cln = ngx_pool_cleanup_add(ngx_cycle->pool, 0);
    cache = ngx_pcalloc(ngx_cycle->pool, sizeof(ngx_http_mcp_list_cache_t));

    if (cln == NULL || cache == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_mcp_list_cache_cleanup;
    cln->data = cache;

    for (i = 0; i < NGX_HTTP_MCP_LIST_CACHE_BUCKETS; i++) {
        ngx_queue_init(&cache->table[i]);
    }

    ngx_queue_init(&cache->copies);

    zone->ctx[NGX_MCP_CTX_LIST_CACHE] = cache;

    return cache;
}


/* the worker exits; copies that requests still use are freed on release */

static void
ngx_http_mcp_list_cache_cleanup(void *data)
{
    ngx_http_mcp_list_cache_t *cache = data;

    ngx_queue_t               *q;
    ngx_http_mcp_list_copy_t  *copy;

    while (!ngx_queue_empty(&cache->copies)) {
        q = ngx_queue_head(&cache->copies);
        copy = ngx_queue_data(q, ngx_http_mcp_list_copy_t, queue);

        ngx_http_mcp_list_cache_unlink(copy);
    }
}


ngx_int_t
ngx_http_mcp_list_cache_get(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_uint_t partial,
    ngx_http_mcp_list_copy_t **list)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_mcp_list_t             found;
    ngx_mcp_zone_t            *zone;
    ngx_mcp_audience_t         names;
    ngx_http_mcp_list_copy_t  *copy;

    zone = bridge->zone;

    if (caller->audience.block == 0) {
        ngx_http_mcp_list_cache_recall(bridge, caller);
    }

    if (caller->audience.block) {
        copy = ngx_http_mcp_list_cache_find(zone, caller->audience, kind);

        if (copy && ngx_mcp_list_current(zone, &copy->list)
            && ngx_current_msec - copy->touched < NGX_HTTP_MCP_LIST_CACHE_TOUCH)
        {
            copy->uses++;
            *list = copy;
            return NGX_OK;
        }
    }

    ngx_http_mcp_list_cache_audience(bridge, caller, &names);

    rc = NGX_ERROR;

    /* tries again if the list is replaced or dropped in the meantime */

    for (i = 0; i < 4; i++) {

        if (caller->audience.block == 0) {
            rc = ngx_http_mcp_list_cache_join(bridge, caller, &names);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        rc = ngx_http_mcp_list_cache_lookup(bridge, caller->audience, kind,
                                            partial, &found);

        if (rc == NGX_ERROR) {
            caller->audience.block = 0;
            continue;
        }

        if ((rc == NGX_AGAIN || found.left_out)
            && ngx_http_mcp_shared_ensure_all(bridge, &caller->tenant,
                                               &caller->audience_key)
               != NGX_OK)
        {
            return NGX_DECLINED;
        }

        if (rc != NGX_OK) {
            return rc;
        }

        copy = ngx_http_mcp_list_cache_use(bridge, &found);

        if (copy) {
            *list = copy;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static void
ngx_http_mcp_list_cache_audience(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_mcp_audience_t *names)
{
    names->endpoint = bridge->endpoint;
    names->tenant = caller->tenant;
    names->key = caller->audience_key;
}


/*
 * Returns this worker's copy of a list in the zone.  Makes the copy if there is
 * none or the list has changed.  NULL: the zone has dropped the list, or there
 * is no memory.
 */

static ngx_http_mcp_list_copy_t *
ngx_http_mcp_list_cache_use(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_list_t *list)
{
    ngx_http_mcp_list_copy_t  *copy;

    copy = ngx_http_mcp_list_cache_find(bridge->zone, list->audience,
                                        list->kind);

    if (copy == NULL || copy->list.version != list->version) {
        copy = ngx_http_mcp_list_cache_load(bridge, list);
    }

    if (copy) {
        copy->list.hint = list->hint;
        copy->touched = ngx_current_msec;
        copy->uses++;
    }

    return copy;
}


ngx_int_t
ngx_http_mcp_list_cache_passed(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_http_mcp_list_copy_t **list)
{
    ngx_mcp_ref_t       audience;
    ngx_mcp_list_t      found;
    ngx_mcp_audience_t  names;

    ngx_http_mcp_list_cache_audience(bridge, caller, &names);

    if (ngx_mcp_audience_find(bridge->zone, &names, &audience) != NGX_OK
        || ngx_mcp_list_fresh(bridge->zone, audience, &bridge->sources, kind,
                              &found)
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    *list = ngx_http_mcp_list_cache_use(bridge, &found);

    return *list ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_mcp_list_cache_parts(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_pool_t *pool,
    ngx_mcp_list_content_t *parts)
{
    u_char                  *p;
    ngx_uint_t               i;
    ngx_mcp_ref_t            audience;
    ngx_mcp_list_t           found;
    ngx_mcp_audience_t       names;
    ngx_mcp_list_content_t  *part;

    ngx_http_mcp_list_cache_audience(bridge, caller, &names);

    if (ngx_mcp_audience_find(bridge->zone, &names, &audience) != NGX_OK
        || ngx_mcp_list_fresh(bridge->zone, audience, &bridge->sources, kind,
                              &found)
           == NGX_DECLINED)
    {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(pool, found.len);

    if (p == NULL || ngx_mcp_list_read(bridge->zone, &found, p) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_memzero(parts, bridge->sources.n * sizeof(ngx_mcp_list_content_t));

    for (i = 0; i < found.nparts; i++) {
        part = &parts[found.parts[i].source];

        part->text.data = p;
        part->text.len = found.parts[i].len;
        part->hint = found.parts[i].hint;

        p += part->text.len;
    }

    return NGX_OK;
}


void
ngx_http_mcp_list_cache_keep(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *upstream,
    ngx_mcp_list_content_t *content, uint64_t forgotten)
{
    uint64_t            limit;
    ngx_mcp_ref_t       audience;
    ngx_mcp_audience_t  names;

    limit = ngx_current_msec + bridge->lists_ttl;
    content->hint.until = ngx_min(content->hint.until, limit);

    if (!content->hint.public || content->hint.until <= ngx_current_msec
        || caller->list_key.len > NGX_MCP_LIST_KEY_MAX)
    {
        return;
    }

    ngx_http_mcp_list_cache_audience(bridge, caller, &names);

    if (ngx_mcp_audience_get(bridge->zone, &names, &bridge->sources,
                             bridge->lists_max, &audience)
        == NGX_OK)
    {
        (void) ngx_mcp_list_keep(bridge->zone, audience, upstream, content,
                                 forgotten);
    }
}


ngx_mcp_merge_t *
ngx_http_mcp_list_cache_index(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind)
{
    ngx_mcp_ref_t              audience;
    ngx_mcp_list_t             found;
    ngx_mcp_zone_t            *zone;
    ngx_mcp_audience_t         names;
    ngx_http_mcp_list_copy_t  *copy;

    zone = bridge->zone;
    audience = caller->audience;

    if (!ngx_http_mcp_list_cache_fetches(bridge, kind)
        || (bridge->sources.n == 1 && bridge->sources.elts[0].prefix.len == 0))
    {
        return NULL;
    }

    if (audience.block == 0) {
        ngx_http_mcp_list_cache_audience(bridge, caller, &names);

        if (ngx_mcp_audience_find(zone, &names, &audience) != NGX_OK) {
            return NULL;
        }
    }

    copy = ngx_http_mcp_list_cache_find(zone, audience, kind);

    if (copy == NULL || !ngx_mcp_list_current(zone, &copy->list)) {

        if (ngx_http_mcp_list_cache_lookup(bridge, audience, kind, 1, &found)
            != NGX_OK)
        {
            return NULL;
        }

        if (copy == NULL || copy->list.version != found.version) {
            copy = ngx_http_mcp_list_cache_load(bridge, &found);
        }
    }

    return copy ? copy->index : NULL;
}


ngx_str_t
ngx_http_mcp_list_cache_view(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_ref_t audience, ngx_uint_t kind, ngx_pool_t *pool)
{
    ngx_str_t                 text;
    ngx_http_mcp_list_copy_t  copy;

    ngx_memzero(&copy, sizeof(ngx_http_mcp_list_copy_t));

    copy.zone = bridge->zone;
    copy.pool = pool;

    ngx_str_null(&text);

    if (ngx_mcp_list_get(bridge->zone, audience, &bridge->sources, kind,
                         NGX_MCP_LIST_PEEK, &copy.list)
        == NGX_OK
        && ngx_http_mcp_list_cache_text(bridge, &copy) == NGX_OK)
    {
        text = copy.text;
    }

    return text;
}


static ngx_int_t
ngx_http_mcp_list_cache_lookup(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_ref_t audience, ngx_uint_t kind, ngx_uint_t partial,
    ngx_mcp_list_t *list)
{
    ngx_int_t  rc;

    rc = ngx_mcp_list_get(bridge->zone, audience, &bridge->sources, kind,
                          partial, list);

    if (list->left_out) {
        ngx_http_mcp_list_cache_log_left_out(bridge, list);
    }

    return rc;
}


static void
ngx_http_mcp_list_cache_log_left_out(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_list_t *list)
{
    ngx_uint_t  i;

    for (i = 0; i < bridge->sources.n; i++) {

        if (list->left_out & (1u << i)) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "mcp upstream \"%V\" of endpoint \"%V\" is left out "
                          "of the result of %V: it has failed, or not "
                          "answered for 5 seconds; the module retries, and "
                          "notifies clients when it answers",
                          &bridge->sources.elts[i].name, &bridge->endpoint,
                          ngx_mcp_list_method(list->kind));
        }
    }
}


/* finds or makes the audience of the caller, and lets the session join it */

static ngx_int_t
ngx_http_mcp_list_cache_join(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_mcp_audience_t *names)
{
    ngx_mcp_ref_t  ref;

    if (ngx_mcp_audience_get(bridge->zone, names, &bridge->sources,
                             bridge->lists_max, &ref)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    if (caller->session.block
        && ngx_mcp_audience_join(bridge->zone, caller->session, ref) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    caller->audience = ref;

    ngx_http_mcp_list_cache_learn(bridge, caller);

    return NGX_OK;
}


/*
 * Sets the audience of a caller without a session, if this worker remembers it
 * (a session has its own reference).  If the reference is out of date, its use
 * in the zone fails.
 */

static void
ngx_http_mcp_list_cache_recall(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller)
{
    ngx_http_mcp_list_known_t  *known;

    known = ngx_http_mcp_list_cache_known(bridge, caller);

    if (known == NULL || known->bridge != bridge
        || known->tenant != caller->tenant.len
        || known->len != caller->tenant.len + caller->audience_key.len
        || ngx_memcmp(known->text, caller->tenant.data, known->tenant) != 0
        || ngx_memcmp(known->text + known->tenant, caller->audience_key.data,
                      caller->audience_key.len)
           != 0)
    {
        return;
    }

    caller->audience = known->audience;
}


static void
ngx_http_mcp_list_cache_learn(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller)
{
    u_char                     *p;
    ngx_http_mcp_list_known_t  *known;

    known = ngx_http_mcp_list_cache_known(bridge, caller);

    if (known == NULL) {
        return;
    }

    known->bridge = bridge;
    known->audience = caller->audience;
    known->tenant = caller->tenant.len;
    known->len = caller->tenant.len + caller->audience_key.len;

    p = ngx_cpymem(known->text, caller->tenant.data, caller->tenant.len);
    ngx_memcpy(p, caller->audience_key.data, caller->audience_key.len);
}


/*
 * Returns the place for the caller's audience in the hash table; another
 * audience may be stored there.  NULL: the caller has a session, or its tenant
 * and key are too long.
 */

static ngx_http_mcp_list_known_t *
ngx_http_mcp_list_cache_known(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller)
{
    uint32_t                    hash;
    ngx_http_mcp_list_cache_t  *cache;

    cache = ngx_http_mcp_list_cache(bridge->zone);

    if (cache == NULL || caller->session.block
        || caller->tenant.len + caller->audience_key.len
           > NGX_HTTP_MCP_LIST_CACHE_KNOWN_LEN)
    {
        return NULL;
    }

    hash = ngx_murmur_hash2(caller->tenant.data, caller->tenant.len)
           ^ ngx_murmur_hash2(caller->audience_key.data,
                              caller->audience_key.len);

    return &cache->known[hash % NGX_HTTP_MCP_LIST_CACHE_KNOWN];
}


static ngx_http_mcp_list_copy_t *
ngx_http_mcp_list_cache_find(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind)
{
    ngx_queue_t                *q, *bucket;
    ngx_http_mcp_list_copy_t   *copy;
    ngx_http_mcp_list_cache_t  *cache;

    cache = ngx_http_mcp_list_cache(zone);
    if (cache == NULL) {
        return NULL;
    }

    bucket = ngx_http_mcp_list_cache_bucket(cache, audience, kind);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        copy = ngx_queue_data(q, ngx_http_mcp_list_copy_t, chain);

        if (copy->list.kind == kind
            && copy->list.audience.block == audience.block
            && copy->list.audience.gen == audience.gen)
        {
            ngx_queue_remove(&copy->queue);
            ngx_queue_insert_head(&cache->copies, &copy->queue);

            return copy;
        }
    }

    return NULL;
}


/* makes a copy of the list in place of the old copy; NULL: failed */

static ngx_http_mcp_list_copy_t *
ngx_http_mcp_list_cache_load(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_list_t *list)
{
    ngx_pool_t                 *pool;
    ngx_array_t                *pages;
    ngx_mcp_zone_t             *zone;
    ngx_http_mcp_list_copy_t   *copy, *old;
    ngx_http_mcp_list_cache_t  *cache;

    zone = bridge->zone;

    cache = ngx_http_mcp_list_cache(zone);
    if (cache == NULL) {
        return NULL;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    copy = ngx_pcalloc(pool, sizeof(ngx_http_mcp_list_copy_t));
    if (copy == NULL) {
        goto failed;
    }

    copy->zone = zone;
    copy->pool = pool;
    copy->list = *list;

    if (ngx_http_mcp_list_cache_text(bridge, copy) != NGX_OK) {
        goto failed;
    }

    pages = ngx_mcp_pages_split(&copy->text, NGX_MCP_PAGE_SIZE,
                                NGX_MCP_PAGE_ENTRIES, pool);
    if (pages == NULL) {
        goto failed;
    }

    copy->pages = pages->elts;
    copy->npages = pages->nelts;

    old = ngx_http_mcp_list_cache_find(zone, list->audience, list->kind);

    if (old) {
        ngx_http_mcp_list_cache_unlink(old);
    }

    ngx_queue_insert_head(&cache->copies, &copy->queue);
    ngx_queue_insert_head(ngx_http_mcp_list_cache_bucket(cache, list->audience,
                                                         list->kind),
                          &copy->chain);
    copy->linked = 1;

    cache->n++;
    cache->size += copy->text.len;

    ngx_http_mcp_list_cache_evict(cache);

    return copy;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


static ngx_int_t
ngx_http_mcp_list_cache_text(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_list_copy_t *copy)
{
    ngx_int_t           rc;
    ngx_pool_t         *temp;
    ngx_mcp_sources_t  *sources;

    sources = &bridge->sources;

    if (sources->n > 1 || sources->elts[0].prefix.len) {
        temp = ngx_create_pool(4096, ngx_cycle->log);
        if (temp == NULL) {
            return NGX_ERROR;
        }

        rc = ngx_http_mcp_list_cache_merge(bridge, copy, temp);

        ngx_destroy_pool(temp);

        return rc;
    }

    copy->text.len = copy->list.len;
    copy->text.data = ngx_pnalloc(copy->pool, copy->text.len);

    return copy->text.data
           ? ngx_mcp_list_read(copy->zone, &copy->list, copy->text.data)
           : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_list_cache_merge(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_list_copy_t *copy, ngx_pool_t *temp)
{
    u_char                 *p;
    ngx_uint_t              i;
    ngx_mcp_list_t         *list;
    ngx_mcp_source_t       *source;
    ngx_mcp_merge_part_t   *parts, *part;
    ngx_mcp_merge_lists_t   lists;

    list = &copy->list;
    source = bridge->sources.elts;

    p = ngx_pnalloc(temp, list->len);
    parts = ngx_pcalloc(temp, bridge->sources.n * sizeof(ngx_mcp_merge_part_t));
    copy->index = ngx_palloc(copy->pool, sizeof(ngx_mcp_merge_t));

    if (p == NULL || parts == NULL || copy->index == NULL
        || ngx_mcp_list_read(copy->zone, list, p) != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < bridge->sources.n; i++) {
        parts[i].upstream = source[i].name;
        parts[i].prefix = source[i].prefix;
        parts[i].source = i;
        ngx_str_set(&parts[i].text, "[]");
    }

    for (i = 0; i < list->nparts; i++) {
        part = &parts[list->parts[i].source];

        part->text.data = p;
        part->text.len = list->parts[i].len;

        p += part->text.len;
    }

    lists.kind = list->kind;
    lists.parts = parts;
    lists.n = bridge->sources.n;

    if (ngx_mcp_merge(copy->index, &lists, copy->pool, temp) != NGX_OK) {
        return NGX_ERROR;
    }

    copy->text = copy->index->text;

    ngx_http_mcp_list_log_hidden(bridge, &lists);

    return NGX_OK;
}


void
ngx_http_mcp_list_log_hidden(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_merge_lists_t *lists)
{
    u_char                *p, quote[NGX_MCP_QUOTE];
    uint64_t               key;
    ngx_str_t              id;
    ngx_uint_t             i;
    ngx_mcp_source_t      *other;
    ngx_mcp_merge_part_t  *part;
    u_char                 buf[NGX_HTTP_MCP_LIST_CACHE_ID];

    for (i = 0; i < lists->n; i++) {
        part = &lists->parts[i];

        if (part->hidden == 0) {
            continue;
        }

        id.data = buf;
        id.len = ngx_snprintf(buf, sizeof(buf), "hidden %ui %V", lists->kind,
                              &part->upstream)
                 - buf;

        key = ngx_mcp_idempotency_key(bridge->zone, &bridge->endpoint, &id);

        if (ngx_mcp_idempotency_first(bridge->zone, key) != NGX_OK) {
            continue;
        }

        other = &bridge->sources.elts[part->first_source];
        p = ngx_mcp_json_quote(quote, &part->first);

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" of endpoint \"%V\": %ui entries of "
                      "the result of %V are hidden, as their names are those "
                      "of other upstreams, for example \"%*s\" of upstream "
                      "\"%V\"; rename them, or give the upstreams other "
                      "prefixes",
                      &part->upstream, &bridge->endpoint, part->hidden,
                      ngx_mcp_list_method(lists->kind), (size_t) (p - quote),
                      quote, &other->name);
    }
}


/* drops copies over the limits, but not the one that was just loaded */

static void
ngx_http_mcp_list_cache_evict(ngx_http_mcp_list_cache_t *cache)
{
    ngx_queue_t  *q;

    while (cache->n > 1
           && (cache->n > NGX_HTTP_MCP_LIST_CACHE_COPIES
               || cache->size > NGX_HTTP_MCP_LIST_CACHE_SIZE))
    {
        q = ngx_queue_last(&cache->copies);

        ngx_http_mcp_list_cache_unlink(ngx_queue_data(q,
                                                      ngx_http_mcp_list_copy_t,
                                                      queue));
    }
}


static void
ngx_http_mcp_list_cache_unlink(ngx_http_mcp_list_copy_t *copy)
{
    ngx_http_mcp_list_cache_t  *cache;

    cache = ngx_http_mcp_list_cache(copy->zone);

    ngx_queue_remove(&copy->queue);
    ngx_queue_remove(&copy->chain);
    copy->linked = 0;

    cache->n--;
    cache->size -= copy->text.len;

    if (copy->uses == 0) {
        ngx_destroy_pool(copy->pool);
    }
}


void
ngx_http_mcp_list_cache_release(void *data)
{
    ngx_http_mcp_list_copy_t *list = data;

    if (--list->uses == 0 && !list->linked) {
        ngx_destroy_pool(list->pool);
    }
}


ngx_uint_t
ngx_http_mcp_list_cache_annotated(ngx_http_mcp_list_copy_t *list)
{
    if (list->annotated == 0) {
        list->annotated = ngx_strnstr(list->text.data, "\"x-mcp-header\"",
                                      list->text.len)
                          ? NGX_HTTP_MCP_LIST_ANNOTATED : 1;
    }

    return list->annotated == NGX_HTTP_MCP_LIST_ANNOTATED;
}


void
ngx_http_mcp_list_cache_wait(ngx_http_mcp_list_waiter_t *waiter,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller, ngx_uint_t kind)
{
    waiter->bridge = bridge;
    waiter->audience = caller->audience;
    waiter->kind = kind;

    waiter->waiter.hash = caller->audience.block;
    waiter->waiter.ready = ngx_http_mcp_list_cache_ready;
    waiter->waiter.data = waiter;

    ngx_http_mcp_waiter_start(&waiter->waiter, bridge->zone,
                              NGX_HTTP_MCP_WAIT_LIST, 0);
}


void
ngx_http_mcp_list_cache_cancel(ngx_http_mcp_list_waiter_t *waiter)
{
    ngx_http_mcp_waiter_stop(&waiter->waiter);
}


static void
ngx_http_mcp_list_cache_ready(void *data)
{
    ngx_http_mcp_list_waiter_t *waiter = data;

    ngx_mcp_list_t  list;

    if (ngx_http_mcp_list_cache_lookup(waiter->bridge, waiter->audience,
                                       waiter->kind, 0, &list)
        == NGX_AGAIN)
    {
        ngx_http_mcp_waiter_restart(&waiter->waiter);
        return;
    }

    waiter->ready(waiter->data);
}
