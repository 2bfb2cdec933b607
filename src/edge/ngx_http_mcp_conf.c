
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_access.h"
#include "ngx_http_mcp_defaults.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_publish.h"


static ngx_int_t ngx_http_mcp_merge_server_info(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *conf);
static void ngx_http_mcp_merge_noname(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *prev);
static void ngx_http_mcp_merge_bridge(ngx_http_mcp_bridge_t *conf,
    ngx_http_mcp_bridge_t *prev);
static ngx_int_t ngx_http_mcp_conf_names(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);
static char *ngx_http_mcp_merge_endpoint(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);
static char *ngx_http_mcp_merge_upstreams(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);
static ngx_int_t ngx_http_mcp_conf_same(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *first, ngx_http_mcp_loc_conf_t *second);
static ngx_uint_t ngx_http_mcp_conf_same_rules(ngx_array_t *first,
    ngx_array_t *second);
static ngx_int_t ngx_http_mcp_conf_declared(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf, ngx_str_t *text);
static void ngx_http_mcp_conf_old_zones(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);
static ngx_int_t ngx_http_mcp_conf_handlers(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);
static void ngx_http_mcp_conf_warn_preempted(ngx_conf_t *cf,
    ngx_http_mcp_directive_t *d);
static ngx_uint_t ngx_http_mcp_conf_returns(ngx_array_t *codes);
static void ngx_http_mcp_conf_offers(ngx_http_mcp_loc_conf_t *mlcf);
static void ngx_http_mcp_conf_warn_unused(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);
static void ngx_http_mcp_conf_warn_idle(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);
static void ngx_http_mcp_conf_holds(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_uint_t what);
static ngx_uint_t ngx_http_mcp_conf_users(ngx_str_t *directive);
static void ngx_http_mcp_conf_warn_batch(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf, ngx_http_mcp_loc_conf_t *mlcf);
static void ngx_http_mcp_conf_publishers(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);
static void ngx_http_mcp_merge_prefixes(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);
static ngx_int_t ngx_http_mcp_conf_own(ngx_conf_t *cf, ngx_array_t **array);
static ngx_int_t ngx_http_mcp_conf_inherit(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_http_mcp_upstream_t *u);
static ngx_uint_t ngx_http_mcp_usable_name(ngx_http_core_srv_conf_t *cscf);
static void ngx_http_mcp_conf_topics(ngx_http_mcp_loc_conf_t *mlcf);
static ngx_http_conf_addr_t *ngx_http_mcp_conf_server_addr(ngx_conf_t *cf,
    ngx_http_core_srv_conf_t *cscf, ngx_uint_t *local);
static ngx_int_t ngx_http_mcp_conf_server_sockaddr(ngx_conf_t *cf,
    ngx_http_mcp_server_t *server, ngx_http_conf_addr_t *addr);
static ngx_uint_t ngx_http_mcp_conf_server_name(ngx_array_t *names,
    ngx_str_t *name);
static ngx_int_t ngx_http_mcp_conf_server(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);
static ngx_uint_t ngx_http_mcp_conf_protected(ngx_conf_t *cf,
    ngx_http_mcp_directive_t *g);
static void ngx_http_mcp_conf_warn_access(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);


void *
ngx_http_mcp_create_main_conf(ngx_conf_t *cf)
{
    ngx_time_t                *tp;
    ngx_http_mcp_main_conf_t  *mmcf;

    mmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_main_conf_t));
    if (mmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&mmcf->zones, cf->pool, 2,
                       sizeof(ngx_http_mcp_zone_t *))
        != NGX_OK
        || ngx_array_init(&mmcf->handlers, cf->pool, 4,
                          sizeof(ngx_http_mcp_directive_t))
           != NGX_OK
        || ngx_array_init(&mmcf->endpoints, cf->pool, 4,
                          sizeof(ngx_http_mcp_loc_conf_t *))
           != NGX_OK
        || ngx_array_init(&mmcf->used, cf->pool, 4,
                          sizeof(ngx_http_mcp_directive_t))
           != NGX_OK
        || ngx_array_init(&mmcf->bridges, cf->pool, 4,
                          sizeof(ngx_http_mcp_bridge_t *))
           != NGX_OK)
    {
        return NULL;
    }

    /*
     * The epoch differs from that of any other configuration, also of another
     * master; a later configuration has a higher epoch, even within the same
     * second.
     */

    tp = ngx_timeofday();
    mmcf->epoch = (((uint64_t) tp->sec * 1000 + tp->msec) << 20)
                  | (ngx_random() & 0xfffff);

    return mmcf;
}


void *
ngx_http_mcp_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_loc_conf_t));
    if (mlcf == NULL) {
        return NULL;
    }

    /* ngx_pcalloc() has set all other members */

    mlcf->upstreams = NGX_CONF_UNSET_PTR;
    mlcf->deny = NGX_CONF_UNSET_PTR;
    mlcf->bridge.feeds = NGX_CONF_UNSET_PTR;
    mlcf->bridge.invalidate = NGX_CONF_UNSET_PTR;
    mlcf->bridge.lists = NGX_CONF_UNSET_UINT;
    mlcf->bridge.lists_ttl = NGX_CONF_UNSET_MSEC;
    mlcf->bridge.lists_max = NGX_CONF_UNSET_UINT;
    mlcf->bridge.lists_kinds = NGX_CONF_UNSET_UINT;
    mlcf->bridge.lists_warm = NGX_CONF_UNSET;
    mlcf->origins = NGX_CONF_UNSET_PTR;
    mlcf->upstream_timeout = NGX_CONF_UNSET_MSEC;
    mlcf->upstream_total = NGX_CONF_UNSET_MSEC;
    mlcf->session_limit = NGX_CONF_UNSET_UINT;
    mlcf->event_max = NGX_CONF_UNSET_UINT;
    mlcf->event_size = NGX_CONF_UNSET_SIZE;

#define NGX_HTTP_MCP_UNSET(name, member, kind, value)                         \
    mlcf->member = NGX_CONF_UNSET;

    NGX_HTTP_MCP_SETTINGS(NGX_HTTP_MCP_UNSET)

    return mlcf;
}


static ngx_int_t
ngx_http_mcp_merge_server_info(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *conf)
{
    u_char  *p;

    p = ngx_pnalloc(cf->pool,
                    sizeof("{\"name\":,\"version\":,\"title\":}") - 1
                    + ngx_mcp_json_escaped_len(&conf->server_name)
                    + ngx_mcp_json_escaped_len(&conf->server_version)
                    + ngx_mcp_json_escaped_len(&conf->server_title));
    if (p == NULL) {
        return NGX_ERROR;
    }

    conf->server_info.data = p;

    p = ngx_cpymem(p, "{\"name\":", sizeof("{\"name\":") - 1);
    p = ngx_mcp_json_escape(p, &conf->server_name);
    p = ngx_cpymem(p, ",\"version\":", sizeof(",\"version\":") - 1);
    p = ngx_mcp_json_escape(p, &conf->server_version);

    if (conf->server_title.len) {
        p = ngx_cpymem(p, ",\"title\":", sizeof(",\"title\":") - 1);
        p = ngx_mcp_json_escape(p, &conf->server_title);
    }

    *p++ = '}';

    conf->server_info.len = p - conf->server_info.data;

    return NGX_OK;
}


char *
ngx_http_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_mcp_loc_conf_t *prev = parent;
    ngx_http_mcp_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname) {
        ngx_http_mcp_merge_noname(cf, prev);
        return NGX_CONF_OK;
    }

    conf->outer = prev;

    if (conf->server_name.data == NULL) {
        conf->server_name = prev->server_name;
        conf->server_version = prev->server_version;
        conf->server_title = prev->server_title;
    }

    if (conf->server_name.len
        && ngx_http_mcp_merge_server_info(cf, conf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_conf_merge_str_value(conf->instructions, prev->instructions, "");
    ngx_conf_merge_str_value(conf->state_key, prev->state_key, "");

    ngx_http_mcp_merge_bridge(&conf->bridge, &prev->bridge);

    if (conf->capabilities == 0) {
        conf->capabilities = prev->capabilities;
    }

    if (conf->versions == 0) {
        conf->versions = prev->versions ? prev->versions
                                        : NGX_HTTP_MCP_LEGACY_VERSIONS
                                          | NGX_HTTP_MCP_MODERN_VERSIONS;
    }

    if (conf->tenant == NULL) {
        conf->tenant = prev->tenant;
    }

    if (conf->bind == NULL) {
        conf->bind = prev->bind;
    }

    if (conf->session_limit == NGX_CONF_UNSET_UINT) {
        conf->session_limit_key = prev->session_limit_key;
    }

    if (conf->origins == NGX_CONF_UNSET_PTR) {
        conf->origins_any = prev->origins_any;
    }

    ngx_conf_merge_ptr_value(conf->upstreams, prev->upstreams, NULL);
    ngx_conf_merge_ptr_value(conf->deny, prev->deny, NULL);
    ngx_conf_merge_ptr_value(conf->origins, prev->origins, NULL);
    ngx_conf_merge_msec_value(conf->upstream_timeout, prev->upstream_timeout,
                              0);
    ngx_conf_merge_msec_value(conf->upstream_total, prev->upstream_total,
                              3600000);
    ngx_conf_merge_uint_value(conf->session_limit, prev->session_limit, 0);
    ngx_conf_merge_uint_value(conf->event_max, prev->event_max, 256);
    ngx_conf_merge_size_value(conf->event_size, prev->event_size, 64 * 1024);

#define NGX_HTTP_MCP_MERGE(name, member, kind, value)                         \
    if ((ngx_int_t) conf->member == NGX_CONF_UNSET) {                         \
        conf->member = ((ngx_int_t) prev->member == NGX_CONF_UNSET)           \
                       ? value : prev->member;                                \
    }

    NGX_HTTP_MCP_SETTINGS(NGX_HTTP_MCP_MERGE)

    if ((conf->endpoint || conf->publish || conf->status)
        && ngx_http_mcp_conf_names(cf, conf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return conf->endpoint ? ngx_http_mcp_merge_endpoint(cf, conf)
                          : NGX_CONF_OK;
}


/*
 * Lets "if" and "limit_except" blocks, which can have no directives of the
 * module, use the configuration of their location, which is completed later.
 */

static void
ngx_http_mcp_merge_noname(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *prev)
{
    ngx_http_conf_ctx_t       *ctx;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    /* a block with its own content handler is no endpoint */

    if (clcf->handler) {
        return;
    }

    ctx = cf->ctx;
    ctx->loc_conf[ngx_http_mcp_module.ctx_index] = prev;

    if (prev->endpoint) {
        clcf->handler = ngx_http_mcp_content_handler;

    } else if (prev->publish) {
        clcf->handler = ngx_http_mcp_publish_handler;

    } else if (prev->status) {
        clcf->handler = ngx_http_mcp_status_handler;
    }
}


static void
ngx_http_mcp_merge_bridge(ngx_http_mcp_bridge_t *conf,
    ngx_http_mcp_bridge_t *prev)
{
    ngx_conf_merge_str_value(conf->logger, prev->logger, "");
    ngx_conf_merge_ptr_value(conf->feeds, prev->feeds, NULL);
    ngx_conf_merge_ptr_value(conf->invalidate, prev->invalidate, NULL);

    if (conf->lists == NGX_CONF_UNSET_UINT) {
        conf->lists_ttl = prev->lists_ttl;
        conf->lists_key = prev->lists_key;
        conf->lists_max = prev->lists_max;
        conf->lists_kinds = prev->lists_kinds;
        conf->lists_warm = prev->lists_warm;
    }

    ngx_conf_merge_uint_value(conf->lists, prev->lists,
                              NGX_HTTP_MCP_LIST_CACHE_AUTO);
    ngx_conf_init_msec_value(conf->lists_ttl,
                             conf->lists == NGX_HTTP_MCP_LIST_CACHE_ON
                             ? 300000 : NGX_MAX_INT32_VALUE);
    ngx_conf_init_uint_value(conf->lists_max, 64);
    ngx_conf_init_uint_value(conf->lists_kinds, NGX_MCP_LIST_ALL);
    ngx_conf_init_value(conf->lists_warm, 0);

    if (conf->tools == 0) {
        conf->tools = prev->tools;
    }
}


/* copies the names of the server, whose own array is temporary */

static ngx_int_t
ngx_http_mcp_conf_names(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_uint_t                 n;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    n = cscf->server_names.nelts;

    mlcf->names = ngx_array_create(cf->pool, n + 1,
                                   sizeof(ngx_http_server_name_t));
    if (mlcf->names == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(ngx_array_push_n(mlcf->names, n), cscf->server_names.elts,
               n * sizeof(ngx_http_server_name_t));

    return NGX_OK;
}


static char *
ngx_http_mcp_merge_endpoint(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    u_char                    *p;
    ngx_str_t                  logger, *server;
    ngx_uint_t                 i;
    ngx_http_mcp_feed_t       *feed;
    ngx_http_mcp_bridge_t     *bridge;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_core_loc_conf_t  *clcf;

    cscf = mlcf->conf_ctx->srv_conf[ngx_http_core_module.ctx_index];
    clcf = mlcf->conf_ctx->loc_conf[ngx_http_core_module.ctx_index];

    server = &cscf->server_name;

    if (mlcf->name.len == 0) {
        mlcf->name.len = server->len + clcf->name.len;
        mlcf->name.data = ngx_pnalloc(cf->pool, mlcf->name.len + 1);
        if (mlcf->name.data == NULL) {
            return NGX_CONF_ERROR;
        }

        p = ngx_cpymem(mlcf->name.data, server->data, server->len);
        ngx_memcpy(p, clcf->name.data, clcf->name.len);
    }

    if (!ngx_http_mcp_conf_name_valid(&mlcf->name)) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "the name of \"mcp_endpoint\" in %s:%ui, which defaults "
                      "to the server's name and the location, is not UTF-8 or "
                      "has control characters; write another \"name=\"",
                      mlcf->file, mlcf->line);
        return NGX_CONF_ERROR;
    }

    if (mlcf->origins == NULL && !mlcf->origins_any
        && !ngx_http_mcp_usable_name(cscf))
    {
        ngx_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf->log, 0,
                      "mcp endpoint \"%V\": the server has no usable "
                      "\"server_name\", so the endpoint accepts requests of "
                      "browsers on this machine only; add a \"server_name\" "
                      "or \"mcp_allowed_origins\"", &mlcf->name);
    }

    bridge = &mlcf->bridge;

    bridge->zone = mlcf->zone;
    bridge->endpoint = mlcf->name;
    bridge->conf_ctx = mlcf->conf_ctx;

    mlcf->worker = ngx_pcalloc(cf->pool,
                               sizeof(ngx_http_mcp_endpoint_worker_t));
    if (mlcf->worker == NULL) {
        return NGX_CONF_ERROR;
    }

    bridge->hidden = &mlcf->worker->tools_hidden;

    logger = bridge->logger.len ? bridge->logger : mlcf->server_name;

    if (logger.len == 0) {
        ngx_str_set(&logger, "nginx-mcp");
    }

    p = ngx_pnalloc(cf->pool, ngx_mcp_json_escaped_len(&logger));
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    bridge->logger_json.data = p;
    bridge->logger_json.len = ngx_mcp_json_escape(p, &logger) - p;

    if (ngx_http_mcp_conf_own(cf, &bridge->feeds) != NGX_OK
        || ngx_http_mcp_conf_own(cf, &mlcf->upstreams) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    feed = bridge->feeds ? bridge->feeds->elts : NULL;

    for (i = 0; bridge->feeds && i < bridge->feeds->nelts; i++) {
        if (ngx_http_mcp_conf_inherit(cf, mlcf, &feed[i].upstream) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_mcp_merge_upstreams(cf, mlcf);
}


static char *
ngx_http_mcp_merge_upstreams(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_uint_t                 i;
    ngx_http_mcp_upstream_t   *u;
    ngx_http_mcp_main_conf_t  *mmcf;

    if (mlcf->upstreams == NULL) {
        return NGX_CONF_OK;
    }

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);
    u = mlcf->upstreams->elts;

    for (i = 0; i < mlcf->upstreams->nelts; i++) {
        if (ngx_http_mcp_conf_inherit(cf, mlcf, &u[i]) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        u[i].epoch = mmcf->epoch;
        u[i].timeout = mlcf->upstream_timeout ? mlcf->upstream_timeout : 60000;
        u[i].silence = mlcf->upstream_timeout ? mlcf->upstream_timeout
                                              : mlcf->upstream_total;
        u[i].total = mlcf->upstream_total;
    }

    mlcf->bridge.router.upstreams = u;
    mlcf->bridge.router.n = mlcf->upstreams->nelts;

    ngx_http_mcp_merge_prefixes(cf, mlcf);

    return ngx_http_mcp_merge_lists(cf, mlcf);
}


/* gives each of several upstreams a prefix, so that equal names differ */

static void
ngx_http_mcp_merge_prefixes(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_uint_t                i;
    ngx_http_mcp_upstream_t  *u;

    u = mlcf->upstreams->elts;

    for (i = 0; mlcf->upstreams->nelts > 1 && i < mlcf->upstreams->nelts; i++) {

        if (u[i].prefix.len || u[i].bare) {
            continue;
        }

        u[i].prefix = u[i].name;

        ngx_log_error(NGX_LOG_NOTICE, cf->log, 0,
                      "tools and prompts of \"mcp_upstream %V\" get the prefix "
                      "\"%V__\", as the endpoint in %s:%ui has several "
                      "upstreams; write \"prefix=\" for another one",
                      &u[i].name, &u[i].prefix, mlcf->file, mlcf->line);
    }
}


/* copies an inherited array, so that each endpoint has its own elements */

static ngx_int_t
ngx_http_mcp_conf_own(ngx_conf_t *cf, ngx_array_t **array)
{
    ngx_array_t  *a;

    if (*array == NULL) {
        return NGX_OK;
    }

    a = ngx_array_create(cf->pool, (*array)->nelts, (*array)->size);
    if (a == NULL) {
        return NGX_ERROR;
    }

    a->nelts = (*array)->nelts;
    ngx_memcpy(a->elts, (*array)->elts, a->nelts * a->size);

    *array = a;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_conf_inherit(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_http_mcp_upstream_t *u)
{
    u->hash = ngx_max(ngx_crc32_short(u->name.data, u->name.len), 1);
    u->zone = mlcf->zone;
    u->endpoint = mlcf->name;
    u->conf_ctx = mlcf->conf_ctx;
    u->limit = mlcf->message_limit;

    u->worker = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_upstream_worker_t));
    if (u->worker == NULL) {
        return NGX_ERROR;
    }

    u->worker->metric.endpoint = u->endpoint;
    u->worker->metric.upstream = u->name;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_usable_name(ngx_http_core_srv_conf_t *cscf)
{
    ngx_uint_t               i;
    ngx_http_server_name_t  *name;

    name = cscf->server_names.elts;

    for (i = 0; i < cscf->server_names.nelts; i++) {

        if (name[i].name.len == 0
            || (name[i].name.len == 1 && name[i].name.data[0] == '_'))
        {
            continue;
        }

        return 1;
    }

    return 0;
}


/* sets *text to advice that names the declared zones; empty without zones */

static ngx_int_t
ngx_http_mcp_conf_declared(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf,
    ngx_str_t *text)
{
    u_char                *p;
    size_t                 len;
    ngx_uint_t             i, n;
    ngx_http_mcp_zone_t  **zones;

    zones = mmcf->zones.elts;
    len = sizeof(", or name one that is declared: ");

    for (i = 0; i < mmcf->zones.nelts; i++) {
        len += zones[i]->zone.name.len + sizeof(", \"\"") - 1;
    }

    text->data = ngx_pnalloc(cf->pool, len);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    p = text->data;
    n = 0;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        if (zones[i]->size) {
            p = ngx_sprintf(p, "%s\"%V\"",
                            n++ ? ", " : ", or name one that is declared: ",
                            &zones[i]->zone.name);
        }
    }

    text->len = p - text->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_conf_check(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_str_t                   declared;
    ngx_uint_t                  i, j;
    ngx_http_mcp_zone_t       **zones;
    ngx_http_mcp_bridge_t     **bridge;
    ngx_http_mcp_loc_conf_t   **eps;

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {
        if (zones[i]->size == 0) {

            if (ngx_http_mcp_conf_declared(cf, mmcf, &declared) != NGX_OK) {
                return NGX_ERROR;
            }

            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "mcp zone \"%V\" of \"%V\" in %s:%ui is not "
                          "declared; add \"mcp_zone zone=%V:32m;\" to the "
                          "\"http\" block%V", &zones[i]->zone.name,
                          &zones[i]->directive, zones[i]->file,
                          zones[i]->line, &zones[i]->zone.name, &declared);
            return NGX_ERROR;
        }
    }

    if (ngx_http_mcp_conf_handlers(cf, mmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->endpoints.nelts; i++) {

        bridge = ngx_array_push(&mmcf->bridges);
        if (bridge == NULL) {
            return NGX_ERROR;
        }

        *bridge = &eps[i]->bridge;

        ngx_http_mcp_conf_topics(eps[i]);

        if (ngx_http_mcp_conf_server(cf, eps[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_mcp_conf_warn_unused(cf, eps[i]);
        ngx_http_mcp_conf_warn_batch(cf, mmcf, eps[i]);

        for (j = 0; j < i; j++) {

            if (eps[i]->zone != eps[j]->zone
                || !ngx_mcp_equal(&eps[i]->name, &eps[j]->name))
            {
                continue;
            }

            if (eps[i]->named && eps[j]->named) {

                if (ngx_http_mcp_conf_same(cf, eps[j], eps[i]) != NGX_OK) {
                    return NGX_ERROR;
                }

                eps[i]->bridge.duplicate = 1;
                eps[j]->bridge.topics |= eps[i]->bridge.topics;
                eps[i]->bridge.topics = eps[j]->bridge.topics;
                continue;
            }

            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"mcp_endpoint\" in %s:%ui and in %s:%ui have the "
                          "same name \"%V\" in one zone; give one of them a "
                          "\"name=\" of its own, or both the same \"name=\" "
                          "if they are to share sessions",
                          eps[j]->file, eps[j]->line, eps[i]->file,
                          eps[i]->line, &eps[i]->name);
            return NGX_ERROR;
        }
    }

    for (i = 0; i < mmcf->endpoints.nelts; i++) {
        ngx_http_mcp_conf_offers(eps[i]);
    }

    ngx_http_mcp_conf_old_zones(cf, mmcf);
    ngx_http_mcp_conf_publishers(cf, mmcf);
    ngx_http_mcp_conf_warn_access(cf, mmcf);
    ngx_http_mcp_conf_warn_idle(cf, mmcf);

    return NGX_OK;
}


/* warns of sessions that end because their zone's memory is not kept */

static void
ngx_http_mcp_conf_old_zones(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_uint_t             i, n, sessions;
    ngx_shm_zone_t        *old;
    ngx_list_part_t       *part;
    ngx_http_mcp_zone_t  **zones;

    zones = mmcf->zones.elts;

    for (part = &cf->cycle->old_cycle->shared_memory.part;
         part;
         part = part->next)
    {
        old = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (old[i].tag != &ngx_http_mcp_module || old[i].data == NULL) {
                continue;
            }

            for (n = 0; n < mmcf->zones.nelts; n++) {
                if (ngx_mcp_equal(&old[i].shm.name, &zones[n]->zone.name)) {
                    break;
                }
            }

            sessions = ngx_mcp_zone_sessions(
                                       ((ngx_mcp_zone_t *) old[i].data)->sh);

            if (n == mmcf->zones.nelts) {

                if (sessions) {
                    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                                  "mcp zone \"%V\" is no longer declared: "
                                  "%ui sessions end", &old[i].shm.name,
                                  sessions);
                }

            } else if (old[i].shm.size != zones[n]->size
                       && zones[n]->interval == 0)
            {
                /* with an interval, sessions are read from the zone's file */

                ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                              "the size of mcp zone \"%V\" in %s:%ui "
                              "changed: %ui sessions end", &old[i].shm.name,
                              zones[n]->file, zones[n]->line, sessions);
            }
        }
    }
}


/* checks that no other directive has set the content handler of a location */

static ngx_int_t
ngx_http_mcp_conf_handlers(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_mcp_directive_t  *d;

    d = mmcf->handlers.elts;

    for (i = 0; i < mmcf->handlers.nelts; i++) {
        clcf = d[i].loc_conf[ngx_http_core_module.ctx_index];

        if (clcf->post_action.data) {

            /* it would take the request's context while its stream goes on */

            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"post_action\" cannot be used for \"%V\" in "
                          "%s:%ui; move \"post_action\" to the locations that "
                          "need it, or use \"access_log\" or \"mirror\"",
                          &d[i].directive, d[i].file, d[i].line);
            return NGX_ERROR;
        }

        if (clcf->handler == d[i].handler) {
            ngx_http_mcp_conf_warn_preempted(cf, &d[i]);
            continue;
        }

        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\" cannot share a location with another directive "
                      "that answers requests; give each a location of its own "
                      "in %s:%ui", &d[i].directive, d[i].file, d[i].line);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Warns of "return" and "try_files", which answer before the content handler.
 * The configurations of their modules begin with a pointer to codes or files.
 */

static void
ngx_http_mcp_conf_warn_preempted(ngx_conf_t *cf, ngx_http_mcp_directive_t *d)
{
    const char    *other;
    ngx_array_t   *codes;
    ngx_module_t  *module;

    other = NULL;

    module = ngx_http_mcp_access_module(cf, "ngx_http_try_files_module");

    if (module && *(void **) d->loc_conf[module->ctx_index]) {
        other = "try_files";
    }

    module = ngx_http_mcp_access_module(cf, "ngx_http_rewrite_module");

    if (module) {
        codes = *(ngx_array_t **) d->loc_conf[module->ctx_index];

        if (codes && ngx_http_mcp_conf_returns(codes)) {
            other = "return";
        }
    }

    if (other) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%s\" in the location of \"%V\" in %s:%ui answers "
                      "instead of it; move \"%s\" to another location",
                      other, &d->directive, d->file, d->line, other);
    }
}


/*
 * Returns whether the codes of the rewrite module have a "return" before any
 * code that may skip it.  As not all sizes of codes are known, each word is
 * taken for the function pointer of a code.
 */

static ngx_uint_t
ngx_http_mcp_conf_returns(ngx_array_t *codes)
{
    ngx_uint_t                i, n;
    ngx_http_script_code_pt  *code;

    code = codes->elts;
    n = codes->nelts / sizeof(ngx_http_script_code_pt);

    for (i = 0; i < n; i++) {

        if (code[i] == ngx_http_script_return_code) {
            return 1;
        }

#if (NGX_PCRE)
        if (code[i] == ngx_http_script_regex_start_code) {
            return 0;
        }
#endif

        if (code[i] == ngx_http_script_if_code
            || code[i] == ngx_http_script_break_code)
        {
            return 0;
        }
    }

    return 0;
}


/* checks that two locations of one endpoint agree where they have to */

static ngx_int_t
ngx_http_mcp_conf_same(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *first,
    ngx_http_mcp_loc_conf_t *second)
{
    ngx_str_t                 *keys[2];
    ngx_uint_t                 i;
    const char                *directive;
    ngx_http_mcp_bridge_t     *a, *b;
    ngx_http_mcp_upstream_t   *u, *v;

    static ngx_str_t  none = ngx_null_string;

    a = &first->bridge;
    b = &second->bridge;

    directive = "mcp_upstream";

    if (a->router.n != b->router.n) {
        goto differ;
    }

    for (i = 0; i < a->router.n; i++) {
        u = &a->router.upstreams[i];
        v = &b->router.upstreams[i];

        if (!ngx_mcp_equal(&u->name, &v->name)
            || !ngx_mcp_equal(&u->prefix, &v->prefix)
            || u->protocol != v->protocol
            || u->listen != v->listen
            || u->probe != v->probe

            /* sessions of both locations get the upstream's notifications */

            || ((u->listen || a->lists == NGX_HTTP_MCP_LIST_CACHE_ON)
                && !ngx_mcp_equal(&u->uri.value, &v->uri.value)))
        {
            goto differ;
        }
    }

    directive = "mcp_list_cache";

    keys[0] = a->lists_key ? &a->lists_key->value : &none;
    keys[1] = b->lists_key ? &b->lists_key->value : &none;

    if (a->lists != b->lists || a->lists_kinds != b->lists_kinds
        || !ngx_mcp_equal(keys[0], keys[1]))
    {
        goto differ;
    }

    /* only those of the first location apply to events */

    directive = "mcp_invalidate";

    if (!ngx_http_mcp_conf_same_rules(a->invalidate, b->invalidate)) {
        goto differ;
    }

    directive = "mcp_coalesce";

    if (a->coalesce != b->coalesce) {
        goto differ;
    }

    directive = "mcp_logger";

    if (ngx_mcp_equal(&a->logger, &b->logger)) {
        return NGX_OK;
    }

differ:

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "\"mcp_endpoint\" in %s:%ui and in %s:%ui have the same "
                  "\"name=%V\", but their \"%s\" directives differ; write "
                  "the same in both, in the same order, or give one of them "
                  "another \"name=\"",
                  first->file, first->line, second->file, second->line,
                  &second->name, directive);

    return NGX_ERROR;
}


static ngx_uint_t
ngx_http_mcp_conf_same_rules(ngx_array_t *first, ngx_array_t *second)
{
    ngx_uint_t       i;
    ngx_mcp_rule_t  *a, *b;

    if (first == second) {
        return 1;
    }

    if (first == NULL || second == NULL || first->nelts != second->nelts) {
        return 0;
    }

    a = first->elts;
    b = second->elts;

    for (i = 0; i < first->nelts; i++) {

        if (a[i].action != b[i].action
            || !ngx_mcp_equal(&a[i].kind, &b[i].kind)
            || !ngx_mcp_equal(&a[i].value, &b[i].value)
            || !ngx_mcp_equal(&a[i].level, &b[i].level))
        {
            return 0;
        }
    }

    return 1;
}


/* notes in upstreams whether clients find something here besides lists */

static void
ngx_http_mcp_conf_offers(ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_uint_t                i;
    ngx_http_mcp_upstream_t  *u;

    if (mlcf->upstreams == NULL) {
        return;
    }

    u = mlcf->upstreams->elts;

    for (i = 0; i < mlcf->upstreams->nelts; i++) {
        u[i].listless = (mlcf->capabilities || mlcf->bridge.topics
                         || mlcf->bridge.tools);
    }
}


/* warns of an endpoint without upstreams, events and tools */

static void
ngx_http_mcp_conf_warn_unused(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    if (mlcf->upstreams || mlcf->bridge.topics || mlcf->bridge.tools) {
        return;
    }

    ngx_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf->log, 0,
                  "mcp endpoint \"%V\" in %s:%ui has no \"mcp_upstream\", no "
                  "events and no tools of its own: clients find nothing "
                  "there; add \"mcp_upstream NAME URI;\"",
                  &mlcf->name, mlcf->file, mlcf->line);
}


/*
 * Warns of directives that nothing uses, neither in their location nor in the
 * locations within it, once for each location.
 */

static void
ngx_http_mcp_conf_warn_idle(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_uint_t                 i;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_directive_t  *d;

    d = mmcf->handlers.elts;

    for (i = 0; i < mmcf->handlers.nelts; i++) {
        mlcf = d[i].loc_conf[ngx_http_mcp_module.ctx_index];

        ngx_http_mcp_conf_holds(mlcf,
                                mlcf->endpoint ? NGX_HTTP_MCP_HOLDS_ENDPOINT
                                : mlcf->publish ? NGX_HTTP_MCP_HOLDS_PUBLISH
                                                : NGX_HTTP_MCP_HOLDS_STATUS);
    }

    d = mmcf->used.elts;

    for (i = 0; i < mmcf->used.nelts; i++) {
        mlcf = d[i].loc_conf[ngx_http_mcp_module.ctx_index];

        if (mlcf->warned
            || mlcf->holds & ngx_http_mcp_conf_users(&d[i].directive))
        {
            continue;
        }

        mlcf->warned = 1;

        ngx_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf->log, 0,
                      "\"%V\" in %s:%ui has no effect: its location is no "
                      "endpoint, nor is one in it; add \"mcp_endpoint "
                      "zone=NAME;\" there, or remove the line",
                      &d[i].directive, d[i].file, d[i].line);
    }
}


/* sets bits in "holds" of a location and of all locations around it */

static void
ngx_http_mcp_conf_holds(ngx_http_mcp_loc_conf_t *mlcf, ngx_uint_t what)
{
    for ( /* void */ ; mlcf; mlcf = mlcf->outer) {
        mlcf->holds |= what;
    }
}


/* returns the kinds of locations that use a directive, NGX_HTTP_MCP_HOLDS_* */

static ngx_uint_t
ngx_http_mcp_conf_users(ngx_str_t *directive)
{
    if (ngx_strcmp(directive->data, "mcp_allowed_origins") == 0) {
        return NGX_HTTP_MCP_HOLDS_ENDPOINT|NGX_HTTP_MCP_HOLDS_PUBLISH
               |NGX_HTTP_MCP_HOLDS_STATUS;
    }

    /* mcp_status counts leases that are silent for some heartbeats */

    if (ngx_strcmp(directive->data, "mcp_stream_heartbeat") == 0) {
        return NGX_HTTP_MCP_HOLDS_ENDPOINT|NGX_HTTP_MCP_HOLDS_STATUS;
    }

    return NGX_HTTP_MCP_HOLDS_ENDPOINT;
}


/* warns of "mcp_batch on": modules may check or log a batch only as a whole */

static void
ngx_http_mcp_conf_warn_batch(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf,
    ngx_http_mcp_loc_conf_t *mlcf)
{
    if (!mlcf->batch) {
        return;
    }

    mmcf->batches = 1;

    ngx_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf->log, 0,
                  "\"mcp_batch on\" at mcp endpoint \"%V\" in %s:%ui: "
                  "\"limit_req\", \"limit_conn\", \"auth_request\" and the "
                  "like check each message of a batch, but \"access_log\" "
                  "writes one line for a whole batch, and modules that are "
                  "not part of nginx may check a batch only once; set "
                  "\"mcp_batch off\" unless a client sends batches",
                  &mlcf->name, mlcf->file, mlcf->line);
}


/* warns of a publish location for an endpoint that does not exist */

static void
ngx_http_mcp_conf_publishers(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    u_char                       *end;
    ngx_uint_t                    i, j;
    ngx_http_mcp_loc_conf_t     **eps, *mlcf;
    ngx_http_mcp_directive_t     *d;
    ngx_http_mcp_publish_conf_t  *p;
    u_char                        names[512];

    d = mmcf->handlers.elts;
    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->handlers.nelts; i++) {
        mlcf = d[i].loc_conf[ngx_http_mcp_module.ctx_index];
        p = mlcf->publish;

        if (p == NULL || p->endpoint.len == 0) {
            continue;
        }

        end = names;

        for (j = 0; j < mmcf->endpoints.nelts; j++) {

            if (eps[j]->zone != p->zone) {
                continue;
            }

            if (ngx_mcp_equal(&eps[j]->name, &p->endpoint)) {
                break;
            }

            end = ngx_snprintf(end, names + sizeof(names) - end, "%s\"%V\"",
                               end == names ? "" : ", ", &eps[j]->name);
        }

        if (j < mmcf->endpoints.nelts) {
            continue;
        }

        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "mcp zone \"%V\" has no endpoint \"%V\", which "
                      "\"mcp_publish\" names in %s:%ui; write the \"name=\" "
                      "of an \"mcp_endpoint\", or its server's name and "
                      "location; the zone has %s %*s",
                      &p->zone->name, &p->endpoint, d[i].file, d[i].line,
                      end == names ? "no endpoints" : "the endpoints",
                      (size_t) (end - names), names);
    }
}


/* sets bridge->topics if events for topics can be published or waited for */

static void
ngx_http_mcp_conf_topics(ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_http_mcp_zone_t    *zone;
    ngx_http_mcp_bridge_t  *bridge;

    zone = (ngx_http_mcp_zone_t *) mlcf->zone;
    bridge = &mlcf->bridge;

    if (!zone->published && bridge->feeds == NULL
        && !(bridge->tools & NGX_HTTP_MCP_TOOL_WAIT))
    {
        return;
    }

    bridge->topics = NGX_HTTP_MCP_TOPICS_KEPT;

    if (mlcf->capabilities == 0
        || mlcf->capabilities & NGX_HTTP_MCP_CAP_RESOURCES)
    {
        bridge->topics |= NGX_HTTP_MCP_TOPICS_OFFERED;
    }

    if (mlcf->versions & NGX_HTTP_MCP_MODERN_VERSIONS) {
        bridge->topics |= NGX_HTTP_MCP_TOPICS_SESSIONLESS;
    }

    bridge->tenant = ngx_http_mcp_conf_tenant(mlcf);
}


/*
 * Sets the server address and name of background requests, so that the server's
 * rules let these requests pass.
 */

static ngx_int_t
ngx_http_mcp_conf_server(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    u_char                    *p;
    ngx_uint_t                 local;
    ngx_http_conf_addr_t      *addr;
    ngx_http_mcp_server_t     *server;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = mlcf->conf_ctx->srv_conf[ngx_http_core_module.ctx_index];

    server = &mlcf->server;

    addr = ngx_http_mcp_conf_server_addr(cf, cscf, &local);

    if (addr) {
        server->ssl = addr->opt.ssl;
    }

    if (ngx_http_mcp_conf_server_sockaddr(cf, server, addr) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_conf_server_name(mlcf->names, &server->name)) {
        server->host = server->name;
        return NGX_OK;
    }

    if (server->sockaddr->sa_family == AF_UNIX) {
        ngx_str_set(&server->name, "localhost");
        server->host = server->name;
        return NGX_OK;
    }

    p = ngx_pnalloc(cf->pool, NGX_SOCKADDR_STRLEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    server->host.data = p;
    server->host.len = ngx_sock_ntop(server->sockaddr, server->socklen, p,
                                     NGX_SOCKADDR_STRLEN, 1);

    server->name = server->host;

    while (server->name.len && server->name.data[--server->name.len] != ':') {
        /* void */
    }

    return NGX_OK;
}


/*
 * Returns the first address on which the server listens, by TLS if possible; or
 * NULL.  *local: set to 1 if the server listens only on UNIX-domain sockets,
 * else to 0.
 */

static ngx_http_conf_addr_t *
ngx_http_mcp_conf_server_addr(ngx_conf_t *cf, ngx_http_core_srv_conf_t *cscf,
    ngx_uint_t *local)
{
    ngx_uint_t                   i, j, n;
    ngx_http_conf_addr_t        *addr, *first;
    ngx_http_conf_port_t        *port;
    ngx_http_core_srv_conf_t   **servers;
    ngx_http_core_main_conf_t   *cmcf;

    first = NULL;
    *local = 1;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    if (cmcf->ports == NULL) {
        return NULL;
    }

    port = cmcf->ports->elts;

    for (i = 0; i < cmcf->ports->nelts; i++) {
        addr = port[i].addrs.elts;

        for (j = 0; j < port[i].addrs.nelts; j++) {
            servers = addr[j].servers.elts;

            for (n = 0; n < addr[j].servers.nelts; n++) {

                if (servers[n] != cscf) {
                    continue;
                }

                if (port[i].family != AF_UNIX) {
                    *local = 0;
                }

                if (first == NULL || (addr[j].opt.ssl && !first->opt.ssl)) {
                    first = &addr[j];
                }
            }
        }
    }

    return first;
}


/* sets the address at which a request can reach a listening socket */

static ngx_int_t
ngx_http_mcp_conf_server_sockaddr(ngx_conf_t *cf,
    ngx_http_mcp_server_t *server, ngx_http_conf_addr_t *addr)
{
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    server->sockaddr = ngx_pcalloc(cf->pool, sizeof(ngx_sockaddr_t));
    if (server->sockaddr == NULL) {
        return NGX_ERROR;
    }

    if (addr) {
        ngx_memcpy(server->sockaddr, addr->opt.sockaddr, addr->opt.socklen);
        server->socklen = addr->opt.socklen;

    } else {
        server->sockaddr->sa_family = AF_INET;
        server->socklen = sizeof(struct sockaddr_in);
    }

    switch (server->sockaddr->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) server->sockaddr;

        if (sin->sin_addr.s_addr == INADDR_ANY) {
            sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        }

        break;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) server->sockaddr;

        if (IN6_IS_ADDR_UNSPECIFIED(&sin6->sin6_addr)) {
            sin6->sin6_addr.s6_addr[15] = 1;
        }

        break;
#endif
    }

    return NGX_OK;
}


/* finds the first "server_name" that a client can send */

static ngx_uint_t
ngx_http_mcp_conf_server_name(ngx_array_t *names, ngx_str_t *name)
{
    ngx_uint_t               i;
    ngx_http_server_name_t  *sn;

    sn = names->elts;

    for (i = 0; i < names->nelts; i++) {
        *name = sn[i].name;

#if (NGX_PCRE)
        if (sn[i].regex) {
            continue;
        }
#endif

        if (name->len == 0
            || ngx_strlchr(name->data, name->data + name->len, '*')
            || (name->len == 1 && name->data[0] == '_'))
        {
            continue;
        }

        if (name->data[0] == '.') {
            name->data++;
            name->len--;
        }

        return 1;
    }

    return 0;
}


/* warns of mcp_publish and mcp_status that no access rule protects */

static void
ngx_http_mcp_conf_warn_access(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_uint_t                 i;
    ngx_http_mcp_directive_t  *d;

    d = mmcf->handlers.elts;

    for (i = 0; i < mmcf->handlers.nelts; i++) {

        if (d[i].handler == ngx_http_mcp_content_handler
            || ngx_http_mcp_conf_protected(cf, &d[i]))
        {
            continue;
        }

        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui accepts requests of all clients: none "
                      "of \"allow\" and \"deny\", \"auth_basic\", "
                      "\"auth_request\" and \"ssl_verify_client on\" applies "
                      "to its location; add for example \"allow 127.0.0.1; "
                      "deny all;\"",
                      &d[i].directive, d[i].file, d[i].line);
    }
}


/*
 * Returns whether access rules of nginx protect the location of a directive;
 * rules of other modules are not known.
 */

static ngx_uint_t
ngx_http_mcp_conf_protected(ngx_conf_t *cf, ngx_http_mcp_directive_t *g)
{
    ngx_uint_t                 local;
    ngx_http_core_loc_conf_t  *clcf;
#if (NGX_HTTP_SSL)
    ngx_module_t              *module;
    ngx_http_ssl_srv_conf_t   *sscf;
#endif

    clcf = g->loc_conf[ngx_http_core_module.ctx_index];

    if (clcf->internal || ngx_http_mcp_access(cf, g->loc_conf, NULL)
        || (ngx_http_mcp_conf_server_addr(cf,
                                    g->srv_conf[ngx_http_core_module.ctx_index],
                                    &local)
            && local))
    {
        return 1;
    }

#if (NGX_HTTP_SSL)

    module = ngx_http_mcp_access_module(cf, "ngx_http_ssl_module");

    if (module) {
        sscf = g->srv_conf[module->ctx_index];

        if (sscf->verify == 1) {
            return 1;
        }
    }

#endif

    return 0;
}
