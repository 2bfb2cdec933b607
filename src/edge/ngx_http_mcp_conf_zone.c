
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_status.h"


static ngx_int_t ngx_http_mcp_init_zone(ngx_shm_zone_t *shm_zone, void *data);


/* finds a zone or makes it; a size is given by its declaration alone */

ngx_mcp_zone_t *
ngx_http_mcp_conf_find_zone(ngx_conf_t *cf, ngx_str_t *name, size_t size)
{
    ngx_uint_t                  i;
    ngx_shm_zone_t             *shm_zone;
    ngx_http_mcp_zone_t        *zone, **zp;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    zp = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        if (!ngx_mcp_equal(&zp[i]->zone.name, name)) {
            continue;
        }

        if (size && zp[i]->declared) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"mcp_zone\" \"%V\" is already declared; "
                               "give this one another name", name);
            return NULL;
        }

        zone = zp[i];
        goto found;
    }

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_zone_t));
    if (zone == NULL) {
        return NULL;
    }

    zone->zone.name = *name;
    zone->zone.worker = NGX_MCP_NO_WORKER;
    zone->zone.log = cf->cycle->log;
    zone->cycle = cf->cycle;
    zone->directive = ((ngx_str_t *) cf->args->elts)[0];
    zone->file = cf->conf_file->file.name.data;
    zone->line = cf->conf_file->line;

    zp = ngx_array_push(&mmcf->zones);
    if (zp == NULL) {
        return NULL;
    }

    *zp = zone;

found:

    if (size) {
        shm_zone = ngx_shared_memory_add(cf, name, size, &ngx_http_mcp_module);
        if (shm_zone == NULL) {
            return NULL;
        }

        zone->declared = 1;
        zone->shm_zone = shm_zone;
        zone->file = cf->conf_file->file.name.data;
        zone->line = cf->conf_file->line;

        shm_zone->init = ngx_http_mcp_init_zone;
        shm_zone->data = zone;
    }

    return &zone->zone;
}


static ngx_int_t
ngx_http_mcp_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    size_t                least;
    ngx_uint_t            workers;
    ngx_core_conf_t      *ccf;
    ngx_http_mcp_zone_t  *zone, *old;

    zone = shm_zone->data;
    old = data;

    zone->zone.shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->zone.log = shm_zone->shm.log;

    ccf = (ngx_core_conf_t *) ngx_get_conf(zone->cycle->conf_ctx,
                                           ngx_core_module);

    workers = ccf->master ? (ngx_uint_t) ccf->worker_processes : 1;

    if (workers > NGX_MCP_ZONE_WORKERS) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "\"mcp_zone\" \"%V\" serves at most %d workers; lower "
                      "\"worker_processes\" in %s:%ui", &zone->zone.name,
                      NGX_MCP_ZONE_WORKERS, zone->file, zone->line);
        return NGX_ERROR;
    }

    least = ngx_mcp_zone_min_size(workers);

    if (shm_zone->shm.size < least) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "\"mcp_zone\" \"%V\" is too small for %ui workers; set "
                      "its size to %uzm or lower \"worker_processes\" in "
                      "%s:%ui",
                      &zone->zone.name, workers,
                      (least + 1024 * 1024 - 1) / (1024 * 1024), zone->file,
                      zone->line);
        return NGX_ERROR;
    }

    return ngx_mcp_state_init(&zone->zone, workers,
                              old != NULL || shm_zone->shm.exists);
}


char *
ngx_http_mcp_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char           *p;
    ssize_t           size;
    ngx_str_t        *value, name, s;
    ngx_uint_t        i;
    ngx_shm_zone_t   *old;
    ngx_mcp_zone_t   *zone;
    ngx_list_part_t  *part;

    value = cf->args->elts;

    if (!ngx_http_mcp_conf_param(&value[1], "zone", &s)) {
        goto invalid;
    }

    p = (u_char *) ngx_strchr(s.data, ':');

    if (p == NULL || p == s.data) {
        goto invalid;
    }

    name.data = s.data;
    name.len = p - s.data;

    s.data = p + 1;
    s.len -= name.len + 1;

    size = ngx_parse_size(&s);

    if (size == NGX_ERROR) {
        goto invalid;
    }

    if (size < NGX_MCP_ZONE_MIN_SIZE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_zone\" \"%V\" is too small; it needs at "
                           "least 1m, and 32m holds about 20000 sessions",
                           &name);
        return NGX_CONF_ERROR;
    }

    zone = ngx_http_mcp_conf_find_zone(cf, &name, size);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    /* another size is other memory: what was in the old one ends */

    part = &cf->cycle->old_cycle->shared_memory.part;
    old = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            old = part->elts;
            i = 0;
        }

        if (old[i].tag == &ngx_http_mcp_module
            && ngx_mcp_equal(&old[i].shm.name, &name)
            && old[i].shm.size != (size_t) size
            && old[i].data != NULL)
        {
            ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                               "the size of mcp zone \"%V\" changed: "
                               "%ui sessions end", &name,
                               ngx_mcp_zone_sessions(
                                   ((ngx_mcp_zone_t *) old[i].data)->sh));
        }
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\"; write \"mcp_zone "
                       "zone=NAME:SIZE;\", for example \"mcp_zone "
                       "zone=main:32m;\"", &value[1]);
    return NGX_CONF_ERROR;
}


char *
ngx_http_mcp_conf_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t  *value, s;

    if (mlcf->status) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (!ngx_http_mcp_conf_param(&value[1], "zone", &s) || s.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\"; write \"mcp_status "
                           "zone=NAME;\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    mlcf->status = ngx_http_mcp_conf_find_zone(cf, &s, 0);

    if (mlcf->status == NULL || ngx_http_mcp_conf_guarded(cf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_mcp_conf_handler(cf, ngx_http_mcp_status_handler);
}
