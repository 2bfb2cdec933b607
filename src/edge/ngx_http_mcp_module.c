
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_call_park.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_state.h"
#include "ngx_http_mcp_stream.h"
#include "ngx_http_mcp_wait.h"
#include "ngx_http_mcp_list_refresh.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_upstream_message.h"


/* bytes of free memory that a worker may keep */
#define NGX_HTTP_MCP_HEAP_KEPT  (8 * 1024 * 1024)


static ngx_int_t ngx_http_mcp_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_mcp_postconfiguration(ngx_conf_t *cf);
static void ngx_http_mcp_quit(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_http_mcp_init_process(ngx_cycle_t *cycle);
static void ngx_http_mcp_keep_heap(ngx_log_t *log);
static void ngx_http_mcp_exit_process(ngx_cycle_t *cycle);


static ngx_http_module_t  ngx_http_mcp_module_ctx = {
    ngx_http_mcp_preconfiguration,         /* preconfiguration */
    ngx_http_mcp_postconfiguration,        /* postconfiguration */

    ngx_http_mcp_create_main_conf,         /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_mcp_create_loc_conf,          /* create location configuration */
    ngx_http_mcp_merge_loc_conf            /* merge location configuration */
};


ngx_module_t  ngx_http_mcp_module = {
    NGX_MODULE_V1,
    &ngx_http_mcp_module_ctx,              /* module context */
    ngx_http_mcp_commands,                 /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_mcp_state_init_module,        /* init module */
    ngx_http_mcp_init_process,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_mcp_exit_process,             /* exit process */
    ngx_http_mcp_state_exit_master,        /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_mcp_worker_handlers_t  ngx_http_mcp_worker_handlers = {
    ngx_http_mcp_call_line_doorbell,
    ngx_http_mcp_call_doorbell,
    ngx_http_mcp_stream_group,
    ngx_http_mcp_wait_doorbell,
    ngx_http_mcp_profile_doorbell,
    ngx_http_mcp_listener_doorbell,
    ngx_http_mcp_upstream_request_doorbell,
    ngx_http_mcp_shared_interests,
    ngx_http_mcp_pending_delete_send,
    ngx_http_mcp_list_refresh_doorbell,
    ngx_http_mcp_reader_lease
};


/* the answerers, in the order in which they are asked */

static ngx_http_mcp_answerer_t  *ngx_http_mcp_answerer_table[] = {
    &ngx_http_mcp_call_continue,
    &ngx_http_mcp_call_list,
    &ngx_http_mcp_call_subscription,
    &ngx_http_mcp_call_local,
    &ngx_http_mcp_call_gather,
    &ngx_http_mcp_call_forward,
    NULL
};


/* the manners of upstreams, in the order in which they are probed */

static ngx_http_mcp_manner_t  *ngx_http_mcp_manner_table[] = {
    &ngx_http_mcp_modern,
    &ngx_http_mcp_legacy,
    &ngx_http_mcp_rpc,
    &ngx_http_mcp_events,
    NULL
};


static ngx_http_mcp_reader_kind_t  *ngx_http_mcp_readers[] = {
    &ngx_http_mcp_feed_readers,
    &ngx_http_mcp_shared_readers,
    &ngx_http_mcp_listener_readers,
    NULL
};


static ngx_int_t
ngx_http_mcp_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_mcp_zone_t       **zones;
    ngx_http_mcp_bridge_t     **bridges;
    ngx_http_mcp_main_conf_t   *mmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    mmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_mcp_module);

    if (mmcf == NULL) {
        return NGX_OK;
    }

    if (mmcf->zones.nelts) {
        ngx_http_mcp_keep_heap(cycle->log);
    }

    ngx_http_mcp_reader_kinds = ngx_http_mcp_readers;

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        zones[i]->zone.log = cycle->log;
        zones[i]->zone.ctx[NGX_MCP_CTX_BRIDGES] = &mmcf->bridges;

        ngx_http_mcp_state_init_worker(zones[i]);

        if (ngx_http_mcp_waiter_init(&zones[i]->zone) != NGX_OK
            || ngx_http_mcp_reader_init_worker(&zones[i]->zone) != NGX_OK
            || ngx_http_mcp_stream_init_worker(&zones[i]->zone) != NGX_OK
            || ngx_http_mcp_list_refresh_init(&zones[i]->zone) != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (ngx_mcp_worker_join(&zones[i]->zone, cycle,
                                &ngx_http_mcp_worker_handlers,
                                ngx_http_mcp_quit)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_http_mcp_feed_init(&zones[i]->zone, &mmcf->bridges);
    }

    for (i = 0; i < mmcf->zones.nelts; i++) {
        ngx_http_mcp_list_refresh_clean(&zones[i]->zone);
    }

    bridges = mmcf->bridges.elts;

    for (i = 0; i < mmcf->bridges.nelts; i++) {

        if (!bridges[i]->duplicate) {
            ngx_http_mcp_list_refresh_prepare(bridges[i]);
        }
    }

    return NGX_OK;
}


/*
 * Keeps free memory in the worker, as many requests begin and end at a time.
 * Otherwise glibc returns the free end of its heap to the system as soon as it
 * is larger than twice the largest mapped block freed so far, and has to get
 * it back page by page.
 */

static void
ngx_http_mcp_keep_heap(ngx_log_t *log)
{
    void  *p;

    p = ngx_alloc(NGX_HTTP_MCP_HEAP_KEPT / 2, log);

    if (p) {
        ngx_free(p);
    }
}


/* ends all work that would keep a worker that quits from its exit */

static void
ngx_http_mcp_quit(ngx_mcp_zone_t *zone)
{
    ngx_http_mcp_stream_drain(zone);
    ngx_http_mcp_wait_drain(zone);
    ngx_http_mcp_call_park_quit(zone);
    ngx_http_mcp_reader_quit(zone);
    ngx_http_mcp_upstream_message_quit(zone);
    ngx_http_mcp_profile_quit(zone);
}


static void
ngx_http_mcp_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_mcp_zone_t       **zones;
    ngx_http_mcp_main_conf_t   *mmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    mmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_mcp_module);

    if (mmcf == NULL) {
        return;
    }

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {
        ngx_mcp_worker_leave(&zones[i]->zone);
    }
}


/*
 * A process without a master serves no new connection after a reload, and may
 * crash at the next one: nginx keeps its configuration if the new one fails.
 */

static ngx_int_t
ngx_http_mcp_preconfiguration(ngx_conf_t *cf)
{
    ngx_cycle_t               *old;
    ngx_http_mcp_main_conf_t  *mmcf;

    old = cf->cycle->old_cycle;

    if (ngx_process == NGX_PROCESS_SINGLE && !ngx_is_init_cycle(old)) {
        mmcf = ngx_http_cycle_get_module_main_conf(old, ngx_http_mcp_module);

        if (mmcf && mmcf->zones.nelts) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "nginx with \"master_process off\" would serve "
                               "no connections after a reload, so it goes on "
                               "with the old configuration; restart nginx");
            return NGX_ERROR;
        }
    }

    return ngx_http_mcp_add_variables(cf);
}


static ngx_int_t
ngx_http_mcp_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_mcp_main_conf_t   *mmcf;
    ngx_http_core_main_conf_t  *cmcf;

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    if (ngx_http_mcp_conf_check(cf, mmcf) != NGX_OK
        || ngx_http_mcp_state_conf(cf, mmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (mmcf->endpoints.nelts == 0) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_mcp_preaccess_handler;

    if (mmcf->batches) {
        h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        *h = ngx_http_mcp_batch_handler;
    }

    ngx_http_mcp_manners = ngx_http_mcp_manner_table;
    ngx_http_mcp_answerers = ngx_http_mcp_answerer_table;
    ngx_http_mcp_client_default = &ngx_http_mcp_client_legacy;
    ngx_http_mcp_background_make = ngx_http_mcp_background_request;
    ngx_http_mcp_set_scope = ngx_http_mcp_compute_scope;
    ngx_http_mcp_background_variables(cf);

    ngx_http_mcp_filter_init();

    return NGX_OK;
}
