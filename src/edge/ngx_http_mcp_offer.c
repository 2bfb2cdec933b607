
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_offer.h"
#include "ngx_mcp_splice.h"


/*
 * The most capabilities that are taken although the module does not know them,
 * and the most members of "experimental" and "extensions"
 */
#define NGX_HTTP_MCP_OFFER_OTHERS    64
#define NGX_HTTP_MCP_OFFER_MEMBERS   256


/* raw members of the initialize result of an upstream, or empty */

typedef struct {
    ngx_str_t                 name;       /* name of the upstream as a raw JSON
                                             string */
    ngx_str_t                 capabilities;
    ngx_str_t                 info;
    ngx_str_t                 instructions;
} ngx_http_mcp_offer_part_t;

typedef struct {
    ngx_str_t                 name;
    ngx_str_t                 value;
} ngx_http_mcp_offer_member_t;


static ngx_http_mcp_result_t *ngx_http_mcp_offer_slot(
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant);
static ngx_uint_t ngx_http_mcp_offer_matches(ngx_http_mcp_result_t *result,
    ngx_str_t *tenant);
static void ngx_http_mcp_offer_take(ngx_http_mcp_result_t *result,
    ngx_str_t *tenant);
static ngx_int_t ngx_http_mcp_offer_stored(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_pool_t *temp, ngx_http_mcp_result_t *result);
static ngx_int_t ngx_http_mcp_offer_make(ngx_http_mcp_result_t *result,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_http_mcp_offer_source_t *sources,
    ngx_uint_t n, ngx_pool_t *temp);
static void ngx_http_mcp_offer_part(ngx_http_mcp_offer_source_t *source,
    ngx_http_mcp_offer_part_t *part);
static void ngx_http_mcp_offer_results_cleanup(void *data);
static u_char *ngx_http_mcp_offer_info(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_http_mcp_offer_part_t *parts,
    ngx_uint_t n);
static u_char *ngx_http_mcp_offer_instructions(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_http_mcp_offer_part_t *parts,
    ngx_uint_t n);
static ngx_str_t ngx_http_mcp_offer_title(ngx_http_mcp_offer_part_t *part);
static u_char *ngx_http_mcp_offer_capabilities(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_http_mcp_offer_part_t *parts,
    ngx_uint_t n, ngx_pool_t *temp, ngx_uint_t *offered);
static ngx_uint_t ngx_http_mcp_offer_known(ngx_str_t *name);
static ngx_int_t ngx_http_mcp_offer_others(ngx_array_t *others,
    ngx_http_mcp_offer_part_t *part, ngx_uint_t *has);
static ngx_int_t ngx_http_mcp_offer_join(ngx_pool_t *pool, ngx_str_t *first,
    ngx_str_t *second);
static ngx_uint_t ngx_http_mcp_offer_equal(ngx_str_t *token,
    const char *name);


/* the text of each known capability, the same whatever the upstreams offer */

static struct {
    ngx_uint_t   capability;
    ngx_uint_t   offered;
    const char  *name;
    const char  *text;
} ngx_http_mcp_offers[] = {

    { NGX_HTTP_MCP_CAP_TOOLS, NGX_MCP_OFFERED_TOOLS,
      "tools", "\"tools\":{\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_PROMPTS, NGX_MCP_OFFERED_PROMPTS,
      "prompts", "\"prompts\":{\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_RESOURCES, NGX_MCP_OFFERED_RESOURCES,
      "resources", "\"resources\":{\"subscribe\":true,\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_LOGGING, NGX_MCP_OFFERED_LOGGING,
      "logging", "\"logging\":{}" },

    { NGX_HTTP_MCP_CAP_COMPLETIONS, 0, "completions", "\"completions\":{}" },

    { 0, 0, NULL, NULL }
};


ngx_http_mcp_result_t *
ngx_http_mcp_offer_cached(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant)
{
    ngx_http_mcp_result_t  *result;

    result = ngx_http_mcp_offer_slot(mlcf, tenant);

    if (result->time
        && ngx_current_msec - result->time < NGX_MCP_PROFILE_FRESH_AGE
        && result->changes == ngx_mcp_profile_changes(mlcf->zone)
        && ngx_http_mcp_offer_matches(result, tenant))
    {
        return result;
    }

    return NULL;
}


void
ngx_http_mcp_offer_keep(ngx_http_mcp_result_t *result, ngx_str_t *tenant,
    uint64_t changes)
{
    if (ngx_http_mcp_offer_matches(result, tenant)) {
        result->changes = changes;
        result->time = ngx_current_msec ? ngx_current_msec : 1;
    }
}


static ngx_http_mcp_result_t *
ngx_http_mcp_offer_slot(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant)
{
    return &mlcf->worker->results[ngx_crc32_short(tenant->data, tenant->len)
                                  % NGX_HTTP_MCP_RESULTS];
}


static ngx_uint_t
ngx_http_mcp_offer_matches(ngx_http_mcp_result_t *result,
    ngx_str_t *tenant)
{
    return result->tenant_len == tenant->len
           && ngx_memcmp(result->tenant, tenant->data, tenant->len) == 0;
}


static void
ngx_http_mcp_offer_take(ngx_http_mcp_result_t *result, ngx_str_t *tenant)
{
    if (ngx_http_mcp_offer_matches(result, tenant)) {
        return;
    }

    result->time = 0;
    result->known_at = 0;
    result->tenant_len = 0;

    if (tenant->len <= NGX_HTTP_MCP_RESULT_TENANT) {
        ngx_memcpy(result->tenant, tenant->data, tenant->len);
        result->tenant_len = tenant->len;
    }
}


ngx_str_t
ngx_http_mcp_offer_server(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant,
    ngx_pool_t *temp)
{
    uint64_t                changes;
    ngx_str_t               none;
    ngx_http_mcp_result_t  *result;

    ngx_str_null(&none);

    result = ngx_http_mcp_offer_slot(mlcf, tenant);
    changes = ngx_mcp_profile_changes(mlcf->zone);

    if (result->time && result->changes == changes) {

        /* another tenant's offer that still holds is not replaced */

        return ngx_http_mcp_offer_matches(result, tenant) ? result->info
                                                          : none;
    }

    ngx_http_mcp_offer_take(result, tenant);

    if (result->known_at != changes + 1) {

        if (ngx_http_mcp_offer_stored(mlcf, tenant, temp, result) != NGX_OK) {
            return none;
        }

        if (ngx_http_mcp_offer_matches(result, tenant)) {
            result->known_at = changes + 1;
        }
    }

    return result->known ? result->info : none;
}


/* sets result->known from the profiles in the zone; NGX_OK or NGX_ERROR */

static ngx_int_t
ngx_http_mcp_offer_stored(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant,
    ngx_pool_t *temp, ngx_http_mcp_result_t *result)
{
    ngx_int_t                     rc;
    ngx_uint_t                    n;
    ngx_mcp_profile_t             profile;
    ngx_http_mcp_router_t        *router;
    ngx_http_mcp_upstream_t      *u;
    ngx_http_mcp_offer_source_t  *sources;

    n = 0;
    router = &mlcf->bridge.router;

    result->known = 0;

    sources = ngx_pnalloc(temp, (router->n + 1)
                                * sizeof(ngx_http_mcp_offer_source_t));
    if (sources == NULL) {
        return NGX_ERROR;
    }

    for (u = ngx_http_mcp_router_next(router, NULL);
         u;
         u = ngx_http_mcp_router_next(router, u))
    {
        ngx_memzero(&profile, sizeof(ngx_mcp_profile_t));

        rc = ngx_http_mcp_profile_peek(u, tenant, temp, &profile);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_OK && profile.what != NGX_MCP_PROFILE_REFUSED) {
            sources[n].upstream = u;
            sources[n].result = profile.result;
            n++;
        }
    }

    if (n == 0 && router->n) {
        return NGX_OK;
    }

    if (ngx_http_mcp_offer(mlcf, tenant, sources, n, temp) == NULL) {
        return NGX_ERROR;
    }

    result->known = 1;

    return NGX_OK;
}


ngx_http_mcp_result_t *
ngx_http_mcp_offer(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant,
    ngx_http_mcp_offer_source_t *sources, ngx_uint_t n, ngx_pool_t *temp)
{
    ngx_pool_t                      *pool;
    ngx_http_mcp_result_t           *result;
    ngx_http_mcp_endpoint_worker_t  *w;

    w = mlcf->worker;

    if (w->cleanup == NULL) {
        w->cleanup = ngx_pool_cleanup_add(ngx_cycle->pool, 0);
        if (w->cleanup == NULL) {
            return NULL;
        }

        w->cleanup->handler = ngx_http_mcp_offer_results_cleanup;
        w->cleanup->data = w;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    result = ngx_http_mcp_offer_slot(mlcf, tenant);

    ngx_http_mcp_offer_take(result, tenant);

    if (result->pool) {
        ngx_destroy_pool(result->pool);
    }

    result->pool = pool;
    ngx_str_null(&result->discovered);
    result->time = 0;
    result->known_at = 0;

    if (ngx_http_mcp_offer_make(result, mlcf, sources, n, temp) != NGX_OK) {
        ngx_destroy_pool(pool);
        result->pool = NULL;
        return NULL;
    }

    return result;
}


static ngx_int_t
ngx_http_mcp_offer_make(ngx_http_mcp_result_t *result,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_http_mcp_offer_source_t *sources,
    ngx_uint_t n, ngx_pool_t *temp)
{
    u_char                     *p;
    size_t                      len;
    ngx_uint_t                  i;
    ngx_http_mcp_offer_part_t  *parts;

    parts = ngx_pcalloc(temp, (n + 1) * sizeof(ngx_http_mcp_offer_part_t));
    if (parts == NULL) {
        return NGX_ERROR;
    }

    len = 1024 + ngx_mcp_json_escaped_len(&mlcf->server_name)
          + ngx_mcp_json_escaped_len(&mlcf->server_version)
          + ngx_mcp_json_escaped_len(&mlcf->server_title)
          + ngx_mcp_json_escaped_len(&mlcf->instructions);

    for (i = 0; i < n; i++) {
        ngx_http_mcp_offer_part(&sources[i], &parts[i]);

        len += sources[i].result.len;

        if (n == 1) {
            break;
        }

        parts[i].name.len =
                        ngx_mcp_json_escaped_len(&sources[i].upstream->name);

        parts[i].name.data = ngx_pnalloc(temp, parts[i].name.len);
        if (parts[i].name.data == NULL) {
            return NGX_ERROR;
        }

        parts[i].name.len = ngx_mcp_json_escape(parts[i].name.data,
                                                &sources[i].upstream->name)
                            - parts[i].name.data;

        len += parts[i].name.len + parts[i].info.len + sizeof(":\\n\\n\\n");
    }

    p = ngx_pnalloc(result->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    result->text.data = p;

    p = ngx_http_mcp_offer_capabilities(p, mlcf, parts, n, temp,
                                        &result->offered);
    if (p == NULL) {
        return NGX_ERROR;
    }

    result->info.data = p + sizeof(",\"serverInfo\":") - 1;
    p = ngx_http_mcp_offer_info(p, mlcf, parts, n);
    result->info.len = p - result->info.data;
    p = ngx_http_mcp_offer_instructions(p, mlcf, parts, n);

    *p++ = '}';

    result->text.len = p - result->text.data;

    return NGX_OK;
}


static void
ngx_http_mcp_offer_part(ngx_http_mcp_offer_source_t *source,
    ngx_http_mcp_offer_part_t *part)
{
    part->capabilities = ngx_mcp_json_get(&source->result, "capabilities");
    part->info = ngx_mcp_json_get(&source->result, "serverInfo");
    part->instructions = ngx_mcp_json_get(&source->result, "instructions");
}


static void
ngx_http_mcp_offer_results_cleanup(void *data)
{
    ngx_http_mcp_endpoint_worker_t *w = data;

    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_MCP_RESULTS; i++) {

        if (w->results[i].pool) {
            ngx_destroy_pool(w->results[i].pool);
            w->results[i].pool = NULL;
        }
    }
}


static u_char *
ngx_http_mcp_offer_info(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_http_mcp_offer_part_t *parts, ngx_uint_t n)
{
    ngx_uint_t  i;

    p = ngx_cpymem(p, ",\"serverInfo\":", sizeof(",\"serverInfo\":") - 1);

    if (mlcf->server_info.len) {
        return ngx_cpymem(p, mlcf->server_info.data, mlcf->server_info.len);
    }

    for (i = 0; i < n; i++) {
        if (parts[i].info.len) {
            return ngx_cpymem(p, parts[i].info.data, parts[i].info.len);
        }
    }

    return ngx_sprintf(p, "{\"name\":\"nginx-mcp\",\"version\":\"%s\"}",
                       NGX_MCP_MODULE_VERSION);
}


/* writes instructions; if several upstreams have some, each under its title */

static u_char *
ngx_http_mcp_offer_instructions(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_http_mcp_offer_part_t *parts, ngx_uint_t n)
{
    ngx_str_t   title, *text;
    ngx_uint_t  i, some;

    some = 0;
    text = NULL;

    for (i = 0; i < n; i++) {

        if (parts[i].instructions.len > 2
            && parts[i].instructions.data[0] == '"')
        {
            text = &parts[i].instructions;
            some++;
        }
    }

    if (mlcf->instructions.len == 0 && text == NULL) {
        return p;
    }

    p = ngx_cpymem(p, ",\"instructions\":",
                   sizeof(",\"instructions\":") - 1);

    if (mlcf->instructions.len) {
        return ngx_mcp_json_escape(p, &mlcf->instructions);
    }

    if (some == 1) {
        return ngx_cpymem(p, text->data, text->len);
    }

    *p++ = '"';

    for (i = 0; i < n; i++) {
        text = &parts[i].instructions;

        if (text->len <= 2 || text->data[0] != '"') {
            continue;
        }

        if (p[-1] != '"') {
            p = ngx_cpymem(p, "\\n\\n", 4);
        }

        title = ngx_http_mcp_offer_title(&parts[i]);

        p = ngx_cpymem(p, title.data + 1, title.len - 2);

        p = ngx_cpymem(p, ":\\n", 3);
        p = ngx_cpymem(p, text->data + 1, text->len - 2);
    }

    *p++ = '"';

    return p;
}


/* returns the title of the upstream, or else its name, as a raw JSON string */

static ngx_str_t
ngx_http_mcp_offer_title(ngx_http_mcp_offer_part_t *part)
{
    ngx_str_t    title;
    ngx_uint_t   i;

    static const char  *names[] = { "title", "name" };

    for (i = 0; i < 2; i++) {
        title = ngx_mcp_json_get(&part->info, names[i]);

        if (title.len > 2 && title.data[0] == '"') {
            return title;
        }
    }

    return part->name;
}


static u_char *
ngx_http_mcp_offer_capabilities(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_http_mcp_offer_part_t *parts, ngx_uint_t n, ngx_pool_t *temp,
    ngx_uint_t *offered)
{
    ngx_uint_t                    i, has;
    ngx_array_t                   others;
    ngx_http_mcp_zone_t          *zone;
    ngx_http_mcp_offer_member_t  *other;

    if (ngx_array_init(&others, temp, 4, sizeof(ngx_http_mcp_offer_member_t))
        != NGX_OK)
    {
        return NULL;
    }

    zone = (ngx_http_mcp_zone_t *) mlcf->zone;
    has = 0;

    for (i = 0; i < n; i++) {
        if (ngx_http_mcp_offer_others(&others, &parts[i], &has) != NGX_OK) {
            return NULL;
        }
    }

    p = ngx_cpymem(p, "\"capabilities\":{", sizeof("\"capabilities\":{") - 1);

    other = others.elts;

    for (i = 0; i < others.nelts; i++) {

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, other[i].name.data, other[i].name.len);
        *p++ = ':';
        p = ngx_cpymem(p, other[i].value.data, other[i].value.len);
    }

    if (zone->published || mlcf->bridge.feeds) {
        has |= NGX_HTTP_MCP_CAP_LOGGING;
    }

    if (mlcf->bridge.topics) {
        has |= NGX_HTTP_MCP_CAP_RESOURCES;
    }

    if (mlcf->capabilities) {
        has = mlcf->capabilities;
    }

    if (mlcf->bridge.tools) {
        has |= NGX_HTTP_MCP_CAP_TOOLS;
    }

    *offered = 0;

    for (i = 0; ngx_http_mcp_offers[i].name; i++) {

        if (!(has & ngx_http_mcp_offers[i].capability)) {
            continue;
        }

        *offered |= ngx_http_mcp_offers[i].offered;

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, ngx_http_mcp_offers[i].text,
                       ngx_strlen(ngx_http_mcp_offers[i].text));
    }

    *p++ = '}';

    return p;
}


/* returns the bit of a capability that the module knows, or 0 */

static ngx_uint_t
ngx_http_mcp_offer_known(ngx_str_t *name)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_mcp_offers[i].name; i++) {
        if (ngx_http_mcp_offer_equal(name, ngx_http_mcp_offers[i].name)) {
            return ngx_http_mcp_offers[i].capability;
        }
    }

    return 0;
}


/*
 * Adds capabilities that the module does not know, each with the value of the
 * first upstream that has it; "experimental" and "extensions" are merged by
 * member.
 */

static ngx_int_t
ngx_http_mcp_offer_others(ngx_array_t *others, ngx_http_mcp_offer_part_t *part,
    ngx_uint_t *has)
{
    ngx_str_t                     rest, name, value;
    ngx_uint_t                    i, n, bit;
    ngx_http_mcp_offer_member_t  *other;

    rest = part->capabilities;
    n = others->nelts;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        bit = ngx_http_mcp_offer_known(&name);

        if (bit) {
            *has |= bit;
            continue;
        }

        other = others->elts;

        for (i = 0; i < n; i++) {
            if (ngx_mcp_equal(&other[i].name, &name)) {
                break;
            }
        }

        if (i < n) {

            if ((ngx_http_mcp_offer_equal(&name, "experimental")
                 || ngx_http_mcp_offer_equal(&name, "extensions"))
                && ngx_http_mcp_offer_join(others->pool, &other[i].value,
                                           &value)
                   != NGX_OK)
            {
                return NGX_ERROR;
            }

            continue;
        }

        if (n && others->nelts >= NGX_HTTP_MCP_OFFER_OTHERS) {
            continue;
        }

        other = ngx_array_push(others);
        if (other == NULL) {
            return NGX_ERROR;
        }

        other->name = name;
        other->value = value;
    }

    return NGX_OK;
}


/* adds the members of the second object that the first one lacks */

static ngx_int_t
ngx_http_mcp_offer_join(ngx_pool_t *pool, ngx_str_t *first, ngx_str_t *second)
{
    u_char      *p;
    ngx_str_t    rest, name, value, *names;
    ngx_uint_t   n;

    if (first->data[0] != '{' || second->data[0] != '{') {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, first->len);
    names = ngx_pcalloc(pool, (NGX_HTTP_MCP_OFFER_MEMBERS + 1)
                              * sizeof(ngx_str_t));

    if (p == NULL || names == NULL) {
        return NGX_ERROR;
    }

    n = 0;
    rest = *first;

    while (n < NGX_HTTP_MCP_OFFER_MEMBERS
           && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK)
    {
        names[n].data = p;
        p = ngx_mcp_json_unescape(p, &name);
        names[n].len = p - names[n].data;

        /* an empty name would end the array */

        n += (names[n].len != 0);
    }

    if (n == 0) {
        *first = *second;

    } else if (n < NGX_HTTP_MCP_OFFER_MEMBERS) {
        rest.data = first->data + 1;
        rest.len = first->len - 2;

        *first = ngx_mcp_join(pool, &rest, second, names);
    }

    return first->data ? NGX_OK : NGX_ERROR;
}


/* returns whether a raw token, without escapes, is this name */

static ngx_uint_t
ngx_http_mcp_offer_equal(ngx_str_t *token, const char *name)
{
    size_t  len;

    len = ngx_strlen(name);

    return token->len == len + 2
           && ngx_memcmp(token->data + 1, name, len) == 0;
}
