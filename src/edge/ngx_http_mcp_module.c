
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_stream.h"
#include "ngx_http_mcp_wait.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_upstream_message.h"


static ngx_int_t ngx_http_mcp_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_mcp_postconfiguration(ngx_conf_t *cf);
static void ngx_http_mcp_quit(ngx_mcp_zone_t *zone);
static ngx_int_t ngx_http_mcp_init_process(ngx_cycle_t *cycle);
static void ngx_http_mcp_exit_process(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_mcp_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);


static ngx_conf_bitmask_t  ngx_http_mcp_capability_names[] = {
    { ngx_string("tools"), NGX_HTTP_MCP_CAP_TOOLS },
    { ngx_string("prompts"), NGX_HTTP_MCP_CAP_PROMPTS },
    { ngx_string("resources"), NGX_HTTP_MCP_CAP_RESOURCES },
    { ngx_string("logging"), NGX_HTTP_MCP_CAP_LOGGING },
    { ngx_string("completions"), NGX_HTTP_MCP_CAP_COMPLETIONS },
    { ngx_null_string, 0 }
};


static ngx_conf_post_t  ngx_http_mcp_not_zero = {
    ngx_http_mcp_conf_not_zero
};


#define NGX_HTTP_MCP_ANYWHERE                                                 \
    (NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF)


static ngx_command_t  ngx_http_mcp_commands[] = {

    { ngx_string("mcp_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_endpoint"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_endpoint,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_upstream"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_2MORE,
      ngx_http_mcp_conf_upstream,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_upstream_timeout"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_upstream_timeout,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_server_info"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE123,
      ngx_http_mcp_conf_server_info,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_instructions"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, instructions),
      NULL },

    { ngx_string("mcp_capabilities"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_capabilities,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, capabilities),
      &ngx_http_mcp_capability_names },

    { ngx_string("mcp_tenant"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, tenant),
      NULL },

    { ngx_string("mcp_session_bind"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bind),
      NULL },

    { ngx_string("mcp_deny"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_deny,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_session_timeout"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_time,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, session_timeout),
      &ngx_http_mcp_not_zero },

    { ngx_string("mcp_session_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_session_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_stream_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, stream_limit),
      NULL },

    { ngx_string("mcp_batch"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, batch),
      NULL },

    { ngx_string("mcp_call_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, call_limit),
      NULL },

    { ngx_string("mcp_subscription_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, subscription_limit),
      NULL },

    { ngx_string("mcp_stream_after"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_time,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, stream_after),
      NULL },

    { ngx_string("mcp_stream_heartbeat"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_time,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, stream_heartbeat),
      NULL },

    { ngx_string("mcp_stream_retry"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_time,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, stream_retry),
      NULL },

    { ngx_string("mcp_stream_buffer"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_size,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, stream_buffer),
      NULL },

    { ngx_string("mcp_stream_park"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, stream_park),
      NULL },

    { ngx_string("mcp_event_buffer"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_event_buffer,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_message_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_size,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, message_limit),
      NULL },

    { ngx_string("mcp_drain_time"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_time,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, drain_time),
      NULL },

    { ngx_string("mcp_allowed_origins"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_allowed_origins,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_cors"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, cors),
      NULL },

    { ngx_string("mcp_invalidate"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_2MORE,
      ngx_http_mcp_conf_invalidate,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_events"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_events,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_coalesce"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_time,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bridge.coalesce),
      NULL },

    { ngx_string("mcp_list_cache"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_list_cache,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_builtin_tools"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_builtin_tools,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_topic_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bridge.topic_limit),
      NULL },

    { ngx_string("mcp_logger"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bridge.logger),
      NULL },

    { ngx_string("mcp_publish"),
      NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_mcp_conf_publish,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("mcp_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


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
    NULL,                                  /* init module */
    ngx_http_mcp_init_process,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_mcp_exit_process,             /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_mcp_worker_handlers_t  ngx_http_mcp_worker_handlers = {
    ngx_http_mcp_stream_doorbell,
    ngx_http_mcp_call_doorbell,
    ngx_http_mcp_stream_group,
    ngx_http_mcp_wait_doorbell,
    ngx_http_mcp_profile_doorbell,
    ngx_http_mcp_listener_doorbell,
    ngx_http_mcp_upstream_request_doorbell,
    ngx_http_mcp_shared_interests,
    ngx_http_mcp_pending_delete_send,
    ngx_http_mcp_list_cache_doorbell,
    ngx_http_mcp_reader_lease
};


static ngx_http_mcp_reader_kind_t  *ngx_http_mcp_readers[] = {
    &ngx_http_mcp_feed_readers,
    &ngx_http_mcp_shared_readers,
    &ngx_http_mcp_listener_readers,
    NULL
};


ngx_http_output_header_filter_pt  ngx_http_mcp_next_header_filter;
ngx_http_output_body_filter_pt    ngx_http_mcp_next_body_filter;


static ngx_int_t
ngx_http_mcp_header_filter(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_exchange_header_filter(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r == r->main) {
        rc = ngx_http_mcp_answer_header_filter(r);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_mcp_next_header_filter(r);
}


static ngx_int_t
ngx_http_mcp_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_exchange_body_filter(r, in);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r == r->main) {
        rc = ngx_http_mcp_answer_body_filter(r, in);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_mcp_next_body_filter(r, in);
}


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

    ngx_http_mcp_reader_kinds = ngx_http_mcp_readers;

    ngx_http_mcp_shared_init(&mmcf->bridges);
    ngx_http_mcp_list_cache_init();

    zones = mmcf->zones.elts;

    for (i = 0; i < mmcf->zones.nelts; i++) {

        zones[i]->zone.log = cycle->log;

        if (ngx_http_mcp_stream_init_worker(&zones[i]->zone) != NGX_OK) {
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

    bridges = mmcf->bridges.elts;

    for (i = 0; i < mmcf->bridges.nelts; i++) {
        ngx_http_mcp_list_cache_clear(bridges[i]);
    }

    return NGX_OK;
}


/* ends the work that keeps this worker from its exit */

static void
ngx_http_mcp_quit(ngx_mcp_zone_t *zone)
{
    ngx_http_mcp_stream_drain(zone);
    ngx_http_mcp_wait_drain(zone);
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


static ngx_int_t
ngx_http_mcp_preconfiguration(ngx_conf_t *cf)
{
    return ngx_http_mcp_add_variables(cf);
}


static ngx_int_t
ngx_http_mcp_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_mcp_main_conf_t   *mmcf;
    ngx_http_core_main_conf_t  *cmcf;

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    if (ngx_http_mcp_conf_check(cf, mmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (mmcf->endpoints.nelts == 0) {
        return NGX_OK;
    }

    if (ngx_http_mcp_exchange_init(cf) != NGX_OK) {
        return NGX_ERROR;
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

    ngx_http_mcp_client_default = &ngx_http_mcp_client_legacy;
    ngx_http_mcp_background_make = ngx_http_mcp_background_request;
    ngx_http_mcp_set_scope = ngx_http_mcp_compute_scope;
    ngx_http_mcp_background_variables(cf);

    ngx_http_mcp_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_mcp_header_filter;

    ngx_http_mcp_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_mcp_body_filter;

    return NGX_OK;
}
