
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_state.h"


static ngx_uint_t ngx_http_mcp_state_folder(ngx_str_t *name, u_char *folder,
    size_t size);
static ngx_msec_t ngx_http_mcp_state_manager(void *data);
static void ngx_http_mcp_state_close(void *data);
static void ngx_http_mcp_state_whose(ngx_http_mcp_zone_t *zone,
    ngx_log_t *log);


/* time at which this nginx was started (not reloaded), ms since the epoch */

static uint64_t  ngx_http_mcp_state_started;


ngx_int_t
ngx_http_mcp_state_file(ngx_conf_t *cf, ngx_http_mcp_zone_t *zone)
{
    u_char                     folder[NGX_MAX_PATH];
    ngx_uint_t                 i;
    ngx_file_info_t            fi;
    ngx_http_mcp_zone_t      **zp;
    ngx_http_mcp_main_conf_t  *mmcf;

    if (ngx_conf_full_name(cf->cycle, &zone->state.name, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    zp = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        if (zp[i] != zone
            && ngx_mcp_equal(&zp[i]->state.name, &zone->state.name))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" is the file of \"mcp_zone\" \"%V\"; "
                               "give each zone a file of its own",
                               &zone->state.name, &zp[i]->zone.name);
            return NGX_ERROR;
        }
    }

    if (!ngx_http_mcp_state_folder(&zone->state.name, folder, NGX_MAX_PATH)
        || ngx_file_info(folder, &fi) == NGX_FILE_ERROR || !ngx_is_dir(&fi))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"state\" of \"mcp_zone\" names the file \"%V\", "
                           "and there is no directory \"%s\"; create it",
                           &zone->state.name, folder);
        return NGX_ERROR;
    }

    if (access((char *) folder, W_OK|X_OK) == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "\"state\" of \"mcp_zone\" names the file \"%V\", "
                           "and \"%s\" is not writable; let the user that "
                           "starts nginx write there",
                           &zone->state.name, folder);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_state_folder(ngx_str_t *name, u_char *folder, size_t size)
{
    size_t  len;

    for (len = name->len; len && name->data[len - 1] != '/'; len--) {
        /* void */
    }

    if (len >= size) {
        len = 0;
    }

    *ngx_cpymem(folder, name->data, len) = '\0';

    return len && len < name->len;
}


/*
 * The cache manager is called for a path, which nginx creates and gives to the
 * user of the workers.  So this names a path of nginx itself, for which that
 * happens anyway.
 */

ngx_int_t
ngx_http_mcp_state_conf(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_uint_t             i;
    ngx_path_t            *path, **p;
    ngx_http_mcp_zone_t  **zones;

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {
        if (zones[i]->interval) {
            break;
        }
    }

    if (i == mmcf->zones.nelts || cf->cycle->paths.nelts == 0) {
        return NGX_OK;
    }

    path = ngx_palloc(cf->pool, sizeof(ngx_path_t));
    if (path == NULL) {
        return NGX_ERROR;
    }

    p = cf->cycle->paths.elts;

    *path = *p[0];
    path->manager = ngx_http_mcp_state_manager;
    path->purger = NULL;
    path->loader = NULL;
    path->data = mmcf;

    p = ngx_array_push(&cf->cycle->paths);
    if (p == NULL) {
        return NGX_ERROR;
    }

    *p = path;

    return NGX_OK;
}


void
ngx_http_mcp_state_check(ngx_http_mcp_zone_t *zone, ngx_core_conf_t *ccf)
{
    u_char           folder[NGX_MAX_PATH];
    ngx_uint_t       mode;
    ngx_file_info_t  fi;

    if (zone->state.name.len == 0) {
        return;
    }

    zone->state.user = (geteuid() == 0
                        && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT)
                       ? ccf->user : geteuid();

    if (ngx_test_config) {
        ngx_mcp_state_test(&zone->zone, &zone->state);
    }

    if (zone->interval == 0) {
        return;
    }

    if (!ccf->master) {
        ngx_log_error(NGX_LOG_WARN, zone->zone.log, 0,
                      "\"interval\" of \"mcp_zone\" \"%V\" has no effect with "
                      "\"master_process off\"", &zone->zone.name);
        zone->interval = 0;
        return;
    }

    if (zone->state.user == geteuid()
        || !ngx_http_mcp_state_folder(&zone->state.name, folder, NGX_MAX_PATH)
        || ngx_file_info(folder, &fi) == NGX_FILE_ERROR)
    {
        return;
    }

    if (fi.st_uid == ccf->user) {
        mode = S_IWUSR|S_IXUSR;

    } else if (fi.st_gid == ccf->group) {
        mode = S_IWGRP|S_IXGRP;

    } else {
        mode = S_IWOTH|S_IXOTH;
    }

    if ((fi.st_mode & mode) != mode) {
        ngx_log_error(NGX_LOG_WARN, zone->zone.log, 0,
                      "\"interval\" of \"mcp_zone\" \"%V\" needs a directory "
                      "that the user \"%s\" writes to, and \"%s\" seems to be "
                      "none; name a file in a directory of this user",
                      &zone->zone.name, ccf->username, folder);
    }
}


ngx_int_t
ngx_http_mcp_state_init_module(ngx_cycle_t *cycle)
{
    ngx_int_t                   rc;
    ngx_uint_t                  i;
    ngx_pool_cleanup_t         *cln;
    ngx_http_mcp_zone_t       **zones;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_mcp_module);

    if (mmcf == NULL || ngx_test_config) {
        return NGX_OK;
    }

    if (ngx_http_mcp_state_started == 0) {
        ngx_http_mcp_state_started = ngx_mcp_now();
    }

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        ngx_mcp_zone_current(&zones[i]->zone);

        zones[i]->state.fd = NGX_INVALID_FILE;

        if (zones[i]->state.name.len == 0) {
            continue;
        }

        ngx_http_mcp_state_whose(zones[i], cycle->log);

        cln = ngx_pool_cleanup_add(cycle->pool, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_mcp_state_close;
        cln->data = zones[i];

        rc = NGX_DECLINED;

        if (zones[i]->fresh) {
            ngx_mcp_state_sweep(&zones[i]->zone, &zones[i]->state);
            rc = ngx_mcp_state_read(&zones[i]->zone, &zones[i]->state);
        }

        ngx_mcp_state_hold(&zones[i]->zone, &zones[i]->state,
                           rc != NGX_ERROR);
    }

    return NGX_OK;
}


static void
ngx_http_mcp_state_close(void *data)
{
    ngx_http_mcp_zone_t *zone = data;

    if (zone->state.fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(zone->state.fd);
    }
}


void
ngx_http_mcp_state_init_worker(ngx_http_mcp_zone_t *zone)
{
    if (zone->state.name.len && zone->state.fd != NGX_INVALID_FILE) {
        ngx_http_mcp_state_whose(zone, zone->zone.log);
        ngx_mcp_state_claim(&zone->zone, &zone->state, zone->interval != 0);
    }
}


/* runs in the cache manager; returns the ms after which it is called again */

static ngx_msec_t
ngx_http_mcp_state_manager(void *data)
{
    ngx_msec_t                  next;
    ngx_uint_t                  i;
    ngx_msec_int_t              left;
    ngx_http_mcp_zone_t       **zones;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = data;
    next = 60 * 60 * 1000;
    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        if (zones[i]->interval == 0) {
            continue;
        }

        left = (ngx_msec_int_t) (zones[i]->due - ngx_current_msec);

        if (zones[i]->due == 0 || left <= 0) {
            ngx_http_mcp_state_whose(zones[i], ngx_cycle->log);
            (void) ngx_mcp_state_write(&zones[i]->zone, &zones[i]->state, 0);

            ngx_time_update();

            left = zones[i]->interval;
            zones[i]->due = ngx_current_msec + left;
        }

        next = ngx_min(next, (ngx_msec_t) left);
    }

    return next;
}


void
ngx_http_mcp_state_exit_master(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_mcp_zone_t       **zones;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_mcp_module);

    if (mmcf == NULL) {
        return;
    }

    ngx_time_update();

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        if (zones[i]->state.name.len == 0) {
            continue;
        }

        if (ngx_new_binary > 0) {
            ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                          "mcp zone \"%V\" is not written to \"%V\", as "
                          "process %P runs for this one",
                          &zones[i]->zone.name, &zones[i]->state.name,
                          ngx_new_binary);
            continue;
        }

        ngx_http_mcp_state_whose(zones[i], cycle->log);
        zones[i]->state.reported = NULL;

        (void) ngx_mcp_state_write(&zones[i]->zone, &zones[i]->state, 1);
    }
}


/*
 * Names this nginx by its start and the pid of its master, which has changed
 * if nginx has become a daemon meanwhile.
 */

static void
ngx_http_mcp_state_whose(ngx_http_mcp_zone_t *zone, ngx_log_t *log)
{
    zone->state.started = ngx_http_mcp_state_started;
    zone->state.master = (ngx_process == NGX_PROCESS_HELPER
                          || ngx_process == NGX_PROCESS_WORKER)
                         ? ngx_parent : ngx_pid;
    zone->zone.log = log;
}
