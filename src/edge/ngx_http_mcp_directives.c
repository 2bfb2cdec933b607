
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_defaults.h"
#include "ngx_http_mcp_publish.h"
#include "ngx_http_mcp_state.h"


#define NGX_HTTP_MCP_ANYWHERE                                                 \
    (NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF)


#define NGX_HTTP_MCP_STATE_KEY_MIN  32

#define NGX_HTTP_MCP_CONF_ZONE                                                \
    "write \"mcp_zone zone=NAME:SIZE [state=FILE [interval=TIME]];\" with a "  \
    "size in k or m, for example \"mcp_zone zone=main:32m;\""


static ngx_int_t ngx_http_mcp_init_zone(ngx_shm_zone_t *shm_zone, void *data);
static ngx_mcp_zone_t *ngx_http_mcp_conf_find_zone(ngx_conf_t *cf,
    ngx_str_t *name, size_t size);
static char *ngx_http_mcp_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_mcp_param_zone(ngx_conf_t *cf,
    ngx_http_mcp_param_t *param, ngx_str_t *value, void *slot);
static char *ngx_http_mcp_conf_status(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_mcp_conf_needs_zone(ngx_conf_t *cf,
    ngx_mcp_zone_t *zone);
static ngx_http_mcp_upstream_t *ngx_http_mcp_conf_add_upstream(
    ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf);
static ngx_int_t ngx_http_mcp_conf_target(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_complex_value_t *uri);
static ngx_int_t ngx_http_mcp_param_prefix(ngx_conf_t *cf,
    ngx_http_mcp_param_t *param, ngx_str_t *value, void *slot);
static ngx_int_t ngx_http_mcp_param_key(ngx_conf_t *cf,
    ngx_http_mcp_param_t *param, ngx_str_t *value, void *slot);
static char *ngx_http_mcp_conf_prefixes(ngx_conf_t *cf,
    ngx_array_t *upstreams);
static ngx_uint_t ngx_http_mcp_conf_prefixes_clash(ngx_str_t *prefix,
    ngx_str_t *other);
static char *ngx_http_mcp_conf_endpoint(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_mcp_conf_upstream(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_uint_t ngx_http_mcp_conf_demand(ngx_conf_t *cf,
    ngx_http_complex_value_t *cv);
static char *ngx_http_mcp_conf_events(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_mcp_conf_invalidate_rules(ngx_conf_t *cf,
    ngx_array_t *rules, ngx_str_t *level);
static ngx_int_t ngx_http_mcp_conf_invalidate_level(ngx_conf_t *cf,
    ngx_str_t *value, ngx_str_t *name, ngx_str_t *level);
static char *ngx_http_mcp_conf_publish(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_mcp_conf_invalidate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_mcp_conf_server_info(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_mcp_conf_deny(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_mcp_conf_allowed_origins(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static ngx_uint_t ngx_http_mcp_conf_origin_valid(ngx_str_t *origin);
static ngx_int_t ngx_http_mcp_conf_array(ngx_conf_t *cf, ngx_array_t **array,
    size_t size);


static ngx_conf_bitmask_t  ngx_http_mcp_capability_names[] = {
    { ngx_string("tools"), NGX_HTTP_MCP_CAP_TOOLS },
    { ngx_string("prompts"), NGX_HTTP_MCP_CAP_PROMPTS },
    { ngx_string("resources"), NGX_HTTP_MCP_CAP_RESOURCES },
    { ngx_string("logging"), NGX_HTTP_MCP_CAP_LOGGING },
    { ngx_string("completions"), NGX_HTTP_MCP_CAP_COMPLETIONS },
    { ngx_null_string, 0 }
};

static ngx_conf_bitmask_t  ngx_http_mcp_tool_names[] = {
    { ngx_string("wait_for_event"), NGX_HTTP_MCP_TOOL_WAIT },
    { ngx_string("session_info"), NGX_HTTP_MCP_TOOL_SESSION },
    { ngx_null_string, 0 }
};

static ngx_conf_bitmask_t  ngx_http_mcp_version_names[] = {
    { ngx_string("any"),
      NGX_HTTP_MCP_LEGACY_VERSIONS|NGX_HTTP_MCP_MODERN_VERSIONS },
    { ngx_string("2025-03-26"), NGX_HTTP_MCP_VERSION(NGX_MCP_2025_03_26) },
    { ngx_string("2025-06-18"), NGX_HTTP_MCP_VERSION(NGX_MCP_2025_06_18) },
    { ngx_string("2025-11-25"), NGX_HTTP_MCP_VERSION(NGX_MCP_2025_11_25) },
    { ngx_string("2026-07-28"), NGX_HTTP_MCP_VERSION(NGX_MCP_2026_07_28) },
    { ngx_null_string, 0 }
};


static ngx_http_mcp_param_t  ngx_http_mcp_zone_params[] = {
    NGX_HTTP_MCP_PARAM("state", text, ngx_http_mcp_zone_t, state.name),
    { "interval", ngx_http_mcp_param_time,
      offsetof(ngx_http_mcp_zone_t, interval), 1000, 0,
      "\"interval\" is a time of at least 1s, for example \"1m\"" },
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_endpoint_params[] = {
    NGX_HTTP_MCP_PARAM("zone", zone, ngx_http_mcp_loc_conf_t, zone),
    NGX_HTTP_MCP_PARAM("name", text, ngx_http_mcp_loc_conf_t, name),
    NGX_HTTP_MCP_PARAM_END
};

#define NGX_HTTP_MCP_UPSTREAM_PARAM(name, member, value)                      \
    { name, NULL, offsetof(ngx_http_mcp_upstream_t, member), value, 0, NULL }

static ngx_http_mcp_param_t  ngx_http_mcp_upstream_params[] = {
    NGX_HTTP_MCP_UPSTREAM_PARAM("protocol=auto", protocol, NGX_HTTP_MCP_AUTO),
    NGX_HTTP_MCP_UPSTREAM_PARAM("protocol=legacy", protocol,
                                NGX_HTTP_MCP_LEGACY),
    NGX_HTTP_MCP_UPSTREAM_PARAM("protocol=modern", protocol,
                                NGX_HTTP_MCP_MODERN),
    NGX_HTTP_MCP_UPSTREAM_PARAM("protocol=rpc", protocol, NGX_HTTP_MCP_RPC),
    NGX_HTTP_MCP_UPSTREAM_PARAM("listen=on", listen, 1),
    NGX_HTTP_MCP_UPSTREAM_PARAM("listen=off", listen, 0),
    NGX_HTTP_MCP_UPSTREAM_PARAM("probe=on", probe, 1),
    NGX_HTTP_MCP_UPSTREAM_PARAM("probe=off", probe, 0),
    NGX_HTTP_MCP_UPSTREAM_PARAM("prefix=none", bare, 1),
    { "prefix", ngx_http_mcp_param_prefix, 0, 0, 0, NULL },
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_server_info_params[] = {
    NGX_HTTP_MCP_PARAM("name", text, ngx_http_mcp_loc_conf_t, server_name),
    NGX_HTTP_MCP_PARAM("version", text, ngx_http_mcp_loc_conf_t,
                       server_version),
    { "title", ngx_http_mcp_param_text,
      offsetof(ngx_http_mcp_loc_conf_t, server_title), 0, 0, NULL },
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_upstream_timeout_params[] = {
    NGX_HTTP_MCP_PARAM("total", time, ngx_http_mcp_loc_conf_t, upstream_total),
    NGX_HTTP_MCP_PARAM("", time, ngx_http_mcp_loc_conf_t, upstream_timeout),
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_state_key_params[] = {
    NGX_HTTP_MCP_PARAM("", key, ngx_http_mcp_loc_conf_t, state_key),
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_session_limit_params[] = {
    { "", ngx_http_mcp_param_number,
      offsetof(ngx_http_mcp_loc_conf_t, session_limit), 0,
      NGX_MAX_INT_T_VALUE, NULL },
    { "key", ngx_http_mcp_param_value,
      offsetof(ngx_http_mcp_loc_conf_t, session_limit_key), 0, 0, NULL },
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_event_buffer_params[] = {
    { "", ngx_http_mcp_param_number,
      offsetof(ngx_http_mcp_loc_conf_t, event_max), 1, 65536, NULL },
    { "", ngx_http_mcp_param_size,
      offsetof(ngx_http_mcp_loc_conf_t, event_size), 1, 64 * 1024, NULL },
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_events_params[] = {
    NGX_HTTP_MCP_PARAM("topic", value, ngx_http_mcp_feed_t, topic),
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_publish_params[] = {
    NGX_HTTP_MCP_PARAM("zone", zone, ngx_http_mcp_publish_conf_t, zone),
    NGX_HTTP_MCP_PARAM("endpoint", text, ngx_http_mcp_publish_conf_t,
                       endpoint),
    NGX_HTTP_MCP_PARAM("kind", value, ngx_http_mcp_publish_conf_t, kind),
    NGX_HTTP_MCP_PARAM("topic", value, ngx_http_mcp_publish_conf_t, topic),
    NGX_HTTP_MCP_PARAM("tenant", value, ngx_http_mcp_publish_conf_t, tenant),
    NGX_HTTP_MCP_PARAM("id", value, ngx_http_mcp_publish_conf_t, id),
    NGX_HTTP_MCP_PARAM_END
};

static ngx_http_mcp_param_t  ngx_http_mcp_status_params[] = {
    NGX_HTTP_MCP_PARAM("zone", zone, ngx_http_mcp_loc_conf_t, status),
    NGX_HTTP_MCP_PARAM_END
};


/* directives with one value, of which a number is checked */

#define NGX_HTTP_MCP_SET(name, set, least, most, advice)                      \
    static ngx_http_mcp_set_t  ngx_http_mcp_set_ ## name =                    \
        { set, NULL, NULL, least, most, advice, 0, NULL }

NGX_HTTP_MCP_SET(flag, ngx_conf_set_flag_slot, 0, 0, NULL);
NGX_HTTP_MCP_SET(text, ngx_conf_set_str_slot, 0, 0, NULL);
NGX_HTTP_MCP_SET(value, ngx_http_set_complex_value_slot, 0, 0, NULL);
NGX_HTTP_MCP_SET(time, ngx_conf_set_msec_slot, 0, NGX_MAX_INT_T_VALUE,
                 "a time, for example \"30s\"");
NGX_HTTP_MCP_SET(time_above_0, ngx_conf_set_msec_slot, 1, NGX_MAX_INT_T_VALUE,
                 "a time above 0, for example \"30s\"");
NGX_HTTP_MCP_SET(size, ngx_conf_set_size_slot, 1, NGX_MAX_INT_T_VALUE,
                 "a size above 0 in k or m, for example \"64k\"");
NGX_HTTP_MCP_SET(number, ngx_conf_set_num_slot, 1, 1000000,
                 "a number from 1 to 1000000");

/* directives that have a function */

#define NGX_HTTP_MCP_FUNCTION(name, alone)                                    \
    static ngx_http_mcp_set_t  ngx_http_mcp_set_ ## name =                    \
        { ngx_http_mcp_conf_ ## name, NULL, NULL, 0, 0, NULL, 0, alone }

NGX_HTTP_MCP_FUNCTION(server_info, NULL);
NGX_HTTP_MCP_FUNCTION(allowed_origins, "any");
NGX_HTTP_MCP_FUNCTION(list_cache, "off");

/* these directives may be repeated */

#define NGX_HTTP_MCP_ADD(name, set, post, alone)                              \
    static ngx_http_mcp_set_t  ngx_http_mcp_set_ ## name =                    \
        { set, post, NULL, 0, 0, NULL, 1, alone }

NGX_HTTP_MCP_ADD(upstream, ngx_http_mcp_conf_upstream, NULL, NULL);
NGX_HTTP_MCP_ADD(deny, ngx_http_mcp_conf_deny, NULL, NULL);
NGX_HTTP_MCP_ADD(invalidate, ngx_http_mcp_conf_invalidate, NULL, NULL);
NGX_HTTP_MCP_ADD(events, ngx_http_mcp_conf_events, NULL, NULL);
NGX_HTTP_MCP_ADD(capabilities, ngx_http_mcp_conf_bitmask,
                 ngx_http_mcp_capability_names, NULL);
NGX_HTTP_MCP_ADD(versions, ngx_http_mcp_conf_bitmask,
                 ngx_http_mcp_version_names, "any");
NGX_HTTP_MCP_ADD(builtin_tools, ngx_http_mcp_conf_bitmask,
                 ngx_http_mcp_tool_names, NULL);

/* these directives have parameters */

#define NGX_HTTP_MCP_READ(name, usage)                                        \
    static ngx_http_mcp_set_t  ngx_http_mcp_set_ ## name =                    \
        { NULL, NULL, ngx_http_mcp_ ## name ## _params, 0, 0, usage, 0, NULL }

NGX_HTTP_MCP_READ(upstream_timeout,
                  "write \"mcp_upstream_timeout TIME [total=TIME];\", for "
                  "example \"60s total=1h\"");
NGX_HTTP_MCP_READ(state_key, "write \"mcp_state_key VALUE;\"");
NGX_HTTP_MCP_READ(session_limit,
                  "write \"mcp_session_limit NUMBER [key=VALUE];\", with 0 "
                  "for no limit other than the size of the zone");
NGX_HTTP_MCP_READ(event_buffer,
                  "write \"mcp_event_buffer NUMBER [SIZE];\", 1 to 65536 "
                  "events of at most 64k");


#define NGX_HTTP_MCP_SETTING(name, member, kind, value)                       \
    { ngx_string(name),                                                       \
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,                                   \
      ngx_http_mcp_conf_set,                                                  \
      NGX_HTTP_LOC_CONF_OFFSET,                                               \
      offsetof(ngx_http_mcp_loc_conf_t, member),                              \
      &ngx_http_mcp_set_ ## kind },

ngx_command_t  ngx_http_mcp_commands[] = {

    { ngx_string("mcp_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE123,
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
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_upstream },

    { ngx_string("mcp_upstream_timeout"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_upstream_timeout },

    { ngx_string("mcp_server_info"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE123,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_server_info },

    { ngx_string("mcp_state_key"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_state_key },

    { ngx_string("mcp_instructions"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, instructions),
      &ngx_http_mcp_set_text },

    { ngx_string("mcp_capabilities"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, capabilities),
      &ngx_http_mcp_set_capabilities },

    { ngx_string("mcp_versions"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, versions),
      &ngx_http_mcp_set_versions },

    { ngx_string("mcp_tenant"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, tenant),
      &ngx_http_mcp_set_value },

    { ngx_string("mcp_session_bind"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bind),
      &ngx_http_mcp_set_value },

    { ngx_string("mcp_deny"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_deny },

    { ngx_string("mcp_session_limit"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_session_limit },

    { ngx_string("mcp_event_buffer"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_event_buffer },

    { ngx_string("mcp_allowed_origins"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_allowed_origins },

    { ngx_string("mcp_invalidate"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_2MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_invalidate },

    { ngx_string("mcp_events"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE12,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_events },

    { ngx_string("mcp_list_cache"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_mcp_set_list_cache },

    { ngx_string("mcp_builtin_tools"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bridge.tools),
      &ngx_http_mcp_set_builtin_tools },

    { ngx_string("mcp_logger"),
      NGX_HTTP_MCP_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_mcp_conf_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_mcp_loc_conf_t, bridge.logger),
      &ngx_http_mcp_set_text },

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

      NGX_HTTP_MCP_SETTINGS(NGX_HTTP_MCP_SETTING)

      ngx_null_command
};


/*
 * Returns the zone with a name; if there is none, makes it.  size: bytes that
 * mcp_zone declares; 0: another directive names the zone.  NULL: the zone is
 * declared twice (logged), or there is no memory.
 */

static ngx_mcp_zone_t *
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

        if (size && zp[i]->size) {
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

        zone->size = size;
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
                      "\"mcp_zone\" \"%V\" in %s:%ui serves at most %d "
                      "workers; lower \"worker_processes\"",
                      &zone->zone.name, zone->file, zone->line,
                      NGX_MCP_ZONE_WORKERS);
        return NGX_ERROR;
    }

    least = ngx_mcp_zone_min_size(workers);

    if (shm_zone->shm.size < least) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "\"mcp_zone\" \"%V\" in %s:%ui is too small for %ui "
                      "workers; set its size to %uzm or lower "
                      "\"worker_processes\"",
                      &zone->zone.name, zone->file, zone->line, workers,
                      (least + 1024 * 1024 - 1) / (1024 * 1024));
        return NGX_ERROR;
    }

    zone->fresh = (old == NULL && !shm_zone->shm.exists);

    ngx_http_mcp_state_check(zone, ccf);

    return ngx_mcp_state_init(&zone->zone, workers, !zone->fresh);
}


static char *
ngx_http_mcp_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char               *p;
    ssize_t               size;
    ngx_str_t            *value, name, s;
    ngx_http_mcp_zone_t  *zone;

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

    zone = (ngx_http_mcp_zone_t *) ngx_http_mcp_conf_find_zone(cf, &name,
                                                               size);

    if (zone == NULL
        || ngx_http_mcp_conf_params(cf, 2, ngx_http_mcp_zone_params, zone,
                                    NGX_HTTP_MCP_CONF_ZONE)
           != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (zone->state.name.len) {

        if (ngx_http_mcp_state_file(cf, zone) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

    } else if (zone->interval) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"interval\" of \"mcp_zone\" needs \"state\"; "
                           "write \"state=FILE\" as well");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;

invalid:

    return ngx_http_mcp_conf_invalid(cf, &value[1], NGX_HTTP_MCP_CONF_ZONE);
}


static ngx_int_t
ngx_http_mcp_param_zone(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    ngx_mcp_zone_t  *zone;

    if (value->len == 0) {
        return NGX_DECLINED;
    }

    zone = ngx_http_mcp_conf_find_zone(cf, value, 0);
    *(ngx_mcp_zone_t **) slot = zone;

    return zone ? NGX_OK : NGX_ERROR;
}


static char *
ngx_http_mcp_conf_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    if (mlcf->status) {
        return "is duplicate";
    }

    if (ngx_http_mcp_conf_params(cf, 1, ngx_http_mcp_status_params, mlcf,
                                 "write \"mcp_status zone=NAME;\"")
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    return ngx_http_mcp_conf_handler(cf, ngx_http_mcp_status_handler);
}


static char *
ngx_http_mcp_conf_endpoint(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_http_mcp_loc_conf_t   **ep;
    ngx_http_mcp_main_conf_t   *mmcf;

    if (mlcf->endpoint) {
        return "is duplicate";
    }

    ngx_http_mcp_defaults_endpoint(cf);

    if (ngx_http_mcp_conf_params(cf, 1, ngx_http_mcp_endpoint_params, mlcf,
                                 "write \"mcp_endpoint zone=NAME "
                                 "[name=ID];\"")
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_strlchr(mlcf->name.data, mlcf->name.data + mlcf->name.len, '$')) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"name=%V\" of \"mcp_endpoint\" must be a name "
                           "without variables", &mlcf->name);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_mcp_conf_needs_zone(cf, mlcf->zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    ep = ngx_array_push(&mmcf->endpoints);
    if (ep == NULL) {
        return NGX_CONF_ERROR;
    }

    *ep = mlcf;

    mlcf->endpoint = 1;
    mlcf->named = (mlcf->name.len != 0);
    mlcf->conf_ctx = cf->ctx;
    mlcf->file = cf->conf_file->file.name.data;
    mlcf->line = cf->conf_file->line;

    return ngx_http_mcp_conf_handler(cf, ngx_http_mcp_content_handler);
}


/* refuses a directive whose "zone=" names no zone */

static ngx_int_t
ngx_http_mcp_conf_needs_zone(ngx_conf_t *cf, ngx_mcp_zone_t *zone)
{
    ngx_str_t  *value;

    if (zone) {
        return NGX_OK;
    }

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%V\" needs \"zone=NAME\", the name of an "
                       "\"mcp_zone\"", &value[0]);
    return NGX_ERROR;
}


static char *
ngx_http_mcp_conf_upstream(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t                *value;
    ngx_http_mcp_upstream_t  *u;

    value = cf->args->elts;

    u = ngx_http_mcp_conf_add_upstream(cf, mlcf);

    if (u == NULL
        || ngx_http_mcp_conf_target(cf, &value[2], &u->uri) != NGX_OK
        || ngx_http_mcp_conf_params(cf, 3, ngx_http_mcp_upstream_params, u,
                                    "the parameters are "
                                    "\"protocol=auto|legacy|modern|rpc\", "
                                    "\"prefix=PREFIX|none\", "
                                    "\"listen=on|off\" and "
                                    "\"probe=on|off\"")
           != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (!u->probe && u->protocol == NGX_HTTP_MCP_MODERN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"protocol=modern\" and \"probe=off\" of "
                           "\"mcp_upstream %V\" exclude each other: a server "
                           "of 2026-07-28 has no session that a probe could "
                           "use up; remove \"probe=off\"", &u->name);
        return NGX_CONF_ERROR;
    }

    if (!u->probe && u->protocol == NGX_HTTP_MCP_RPC) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"protocol=rpc\" and \"probe=off\" of "
                           "\"mcp_upstream %V\" exclude each other: the "
                           "module sends no initialize to an \"rpc\" "
                           "upstream, and must request its lists; remove one "
                           "of them", &u->name);
        return NGX_CONF_ERROR;
    }

    if (!u->probe) {
        u->protocol = NGX_HTTP_MCP_LEGACY;
    }

    return ngx_http_mcp_conf_prefixes(cf, mlcf->upstreams);
}


/* adds an upstream with the name in the arguments; NULL: refused (logged) */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_conf_add_upstream(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_str_t                *name;
    ngx_uint_t                i;
    ngx_http_mcp_upstream_t  *u;

    name = (ngx_str_t *) cf->args->elts + 1;

    if (ngx_http_mcp_conf_array(cf, &mlcf->upstreams,
                                sizeof(ngx_http_mcp_upstream_t))
        != NGX_OK)
    {
        return NULL;
    }

    if (name->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the name of \"mcp_upstream\" is empty; write a "
                           "name for logs and errors");
        return NULL;
    }

    if (!ngx_http_mcp_conf_name_valid(name)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the name of \"mcp_upstream\" has control "
                           "characters; remove them");
        return NULL;
    }

    if (mlcf->upstreams->nelts == NGX_HTTP_MCP_UPSTREAMS_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_upstream %V\" is one more than the %d that "
                           "an endpoint may have; give it an endpoint of its "
                           "own", name, NGX_HTTP_MCP_UPSTREAMS_MAX);
        return NULL;
    }

    u = mlcf->upstreams->elts;

    for (i = 0; i < mlcf->upstreams->nelts; i++) {

        if (ngx_mcp_equal(&u[i].name, name)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the endpoint has two \"mcp_upstream %V\"; "
                               "give each upstream a name of its own", name);
            return NULL;
        }
    }

    u = ngx_array_push(mlcf->upstreams);

    if (u) {
        ngx_memzero(u, sizeof(ngx_http_mcp_upstream_t));

        u->name = *name;
        u->listen = 1;
        u->probe = 1;
    }

    return u;
}


/* compiles the URI of an upstream: a location that passes requests on */

static ngx_int_t
ngx_http_mcp_conf_target(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_complex_value_t *uri)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    if (text->data[0] != '/' && text->data[0] != '$') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid URI \"%V\" of \"%V\"; write the URI of "
                           "an internal location, which starts with \"/\" "
                           "(put the address into a \"proxy_pass\" there)",
                           text, &value[0]);
        return NGX_ERROR;
    }

    if (ngx_http_mcp_conf_value(cf, text, &uri) != NGX_OK) {
        return NGX_ERROR;
    }

    if (uri->lengths == NULL) {
        ngx_http_mcp_defaults_target(cf, text);
    }

    return NGX_OK;
}


/* checks that a prefix has only characters of names of tools and prompts */

static ngx_int_t
ngx_http_mcp_param_prefix(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    ngx_http_mcp_upstream_t *u = slot;

    u->prefix = *value;

    if (ngx_http_mcp_prefix_valid(value)) {
        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid prefix \"%V\" of \"mcp_upstream %V\"; write 1 "
                       "to %d letters, digits, \"_\", \"-\" or \".\", or "
                       "\"prefix=none\"",
                       value, &u->name, NGX_HTTP_MCP_PREFIX_MAX);

    return NGX_ERROR;
}


/* checks the prefix of the last upstream, which defaults to its name */

static char *
ngx_http_mcp_conf_prefixes(ngx_conf_t *cf, ngx_array_t *upstreams)
{
    ngx_str_t                *prefix, *other;
    ngx_uint_t                i;
    ngx_http_mcp_upstream_t  *u, *last;

    u = upstreams->elts;
    last = &u[upstreams->nelts - 1];
    prefix = last->prefix.len ? &last->prefix : &last->name;

    for (i = 0; upstreams->nelts > 1 && i < upstreams->nelts; i++) {

        other = u[i].prefix.len ? &u[i].prefix : &u[i].name;

        if (!u[i].bare && !ngx_http_mcp_prefix_valid(other)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the name of \"mcp_upstream %V\" cannot be the "
                               "prefix of its tools and prompts; write "
                               "\"prefix=\" with 1 to %d letters, digits, "
                               "\"_\", \"-\" or \".\", or \"prefix=none\"",
                               &u[i].name, NGX_HTTP_MCP_PREFIX_MAX);
            return NGX_CONF_ERROR;
        }

        if (&u[i] == last) {
            break;
        }

        if (u[i].bare && last->bare) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"mcp_upstream %V\" and \"mcp_upstream %V\" "
                               "of one endpoint both have \"prefix=none\"; "
                               "remove one of them",
                               &u[i].name, &last->name);
            return NGX_CONF_ERROR;
        }

        if (!u[i].bare && !last->bare
            && (ngx_http_mcp_conf_prefixes_clash(other, prefix)
                || ngx_http_mcp_conf_prefixes_clash(prefix, other)))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "prefix \"%V\" of \"mcp_upstream %V\" clashes "
                               "with prefix \"%V\" of \"mcp_upstream %V\": a "
                               "name could belong to both; write another "
                               "\"prefix=\"",
                               prefix, &last->name, other, &u[i].name);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/*
 * Returns whether an exposed name may be read with either prefix: the prefixes
 * are equal, or "a" and "a__b", or "a" and "a_", where "a___x" may stand for
 * "_x" or "x".
 */

static ngx_uint_t
ngx_http_mcp_conf_prefixes_clash(ngx_str_t *prefix, ngx_str_t *other)
{
    u_char  *p;

    if (prefix->len > other->len
        || ngx_memcmp(prefix->data, other->data, prefix->len) != 0)
    {
        return 0;
    }

    p = other->data + prefix->len;

    switch (other->len - prefix->len) {

    case 0:
        return 1;

    case 1:
        return p[0] == '_';

    default:
        return p[0] == '_' && p[1] == '_';
    }
}


static ngx_int_t
ngx_http_mcp_param_key(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot)
{
    if (value->len < NGX_HTTP_MCP_STATE_KEY_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the key of \"mcp_state_key\" has %uz characters; "
                           "it needs at least %d, for example those of "
                           "\"openssl rand -hex 32\"", value->len,
                           NGX_HTTP_MCP_STATE_KEY_MIN);
        return NGX_ERROR;
    }

    *(ngx_str_t *) slot = *value;

    return NGX_OK;
}


static char *
ngx_http_mcp_conf_events(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t            *value;
    ngx_http_mcp_feed_t  *feed, *first;

    if (ngx_http_mcp_conf_array(cf, &mlcf->bridge.feeds,
                                sizeof(ngx_http_mcp_feed_t))
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    feed = ngx_array_push(mlcf->bridge.feeds);
    if (feed == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(feed, sizeof(ngx_http_mcp_feed_t));

    value = cf->args->elts;

    feed->upstream.protocol = NGX_HTTP_MCP_EVENTS;
    feed->upstream.name = value[1];

    if (ngx_http_mcp_conf_target(cf, &value[1], &feed->upstream.uri) != NGX_OK
        || ngx_http_mcp_conf_params(cf, 2, ngx_http_mcp_events_params, feed,
                                    "write \"mcp_events URI "
                                    "[topic=VALUE];\"")
           != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    feed->demand = ngx_http_mcp_conf_demand(cf, &feed->upstream.uri);

    if (feed->topic) {
        feed->demand |= ngx_http_mcp_conf_demand(cf, feed->topic);
    }

    for (first = mlcf->bridge.feeds->elts; first < feed; first++) {

        if (ngx_mcp_equal(&first->upstream.name, &feed->upstream.name)
            && (first->topic == NULL) == (feed->topic == NULL)
            && (feed->topic == NULL
                || ngx_mcp_equal(&first->topic->value, &feed->topic->value)))
        {
            ngx_conf_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf, 0,
                               "\"mcp_events %V\" appears twice, and is read "
                               "once; remove one", &value[1]);
            break;
        }
    }

    return NGX_CONF_OK;
}


/* returns which variables a value has, as bits NGX_HTTP_MCP_FEED_* */

static ngx_uint_t
ngx_http_mcp_conf_demand(ngx_conf_t *cf, ngx_http_complex_value_t *cv)
{
    ngx_int_t    tenant, topic;
    ngx_uint_t   demand, *index;

    static ngx_str_t  names[] = {
        ngx_string("mcp_tenant"),
        ngx_string("mcp_topic")
    };

    if (cv->flushes == NULL) {
        return 0;
    }

    tenant = ngx_http_get_variable_index(cf, &names[0]);
    topic = ngx_http_get_variable_index(cf, &names[1]);
    demand = 0;

    for (index = cv->flushes; *index != (ngx_uint_t) -1; index++) {

        if (*index == (ngx_uint_t) tenant) {
            demand |= NGX_HTTP_MCP_FEED_TENANT;

        } else if (*index == (ngx_uint_t) topic) {
            demand |= NGX_HTTP_MCP_FEED_TOPIC;
        }
    }

    return demand;
}


static char *
ngx_http_mcp_conf_publish(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_http_mcp_publish_conf_t  *pcf;

    if (mlcf->publish) {
        return "is duplicate";
    }

    pcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_publish_conf_t));
    if (pcf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_mcp_conf_utf8(cf) != NGX_OK
        || ngx_http_mcp_conf_params(cf, 1, ngx_http_mcp_publish_params, pcf,
                                    "write \"mcp_publish zone=NAME "
                                    "[endpoint=ID] [kind=VALUE] "
                                    "[topic=VALUE] [tenant=VALUE] "
                                    "[id=VALUE];\"")
           != NGX_CONF_OK
        || ngx_http_mcp_conf_needs_zone(cf, pcf->zone) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    mlcf->publish = pcf;
    ((ngx_http_mcp_zone_t *) pcf->zone)->published = 1;

    return ngx_http_mcp_conf_handler(cf, ngx_http_mcp_publish_handler);
}


static char *
ngx_http_mcp_conf_invalidate(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t       *kind, level;
    ngx_uint_t       i, first, has;
    ngx_array_t     *rules;
    ngx_mcp_rule_t  *rule;

    if (ngx_http_mcp_conf_array(cf, &mlcf->bridge.invalidate,
                                sizeof(ngx_mcp_rule_t))
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    rules = mlcf->bridge.invalidate;
    first = rules->nelts;
    kind = (ngx_str_t *) cf->args->elts + 1;

    if (kind->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the kind of \"mcp_invalidate\" is empty; write "
                           "\"*\" for all kinds that have no rule");
        return NGX_CONF_ERROR;
    }

    ngx_http_mcp_conf_quotes(cf, 2);

    if (ngx_http_mcp_conf_invalidate_rules(cf, rules, &level) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    rule = rules->elts;
    has = 0;

    for (i = first; i < rules->nelts; i++) {
        rule[i].level = level;
        has |= 1 << rule[i].action;
    }

    if (has & (1 << NGX_MCP_RULE_DROP) && cf->args->nelts > 3) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"drop\" cannot be combined with other actions in "
                           "\"mcp_invalidate %V\"; remove \"drop\" or the "
                           "other actions", kind);
        return NGX_CONF_ERROR;
    }

    if (level.len && !(has & (1 << NGX_MCP_RULE_MESSAGE))) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"level=\" in \"mcp_invalidate %V\" needs "
                           "\"message=DATA\"; add \"message=DATA\" or remove "
                           "\"level=\"", kind);
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < first; i++) {

        if (ngx_mcp_equal(&rule[i].kind, kind)
            && (rule[i].action == NGX_MCP_RULE_DROP)
               != (has == 1 << NGX_MCP_RULE_DROP))
        {
            ngx_conf_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf, 0,
                               "\"drop\" of \"mcp_invalidate %V\" has no "
                               "effect, as another line for this kind has an "
                               "action; remove one of them", kind);
            break;
        }
    }

    return NGX_CONF_OK;
}


/*
 * Adds the rules in the arguments of mcp_invalidate; sets *level to the level
 * of messages, or to empty.
 */

static ngx_int_t
ngx_http_mcp_conf_invalidate_rules(ngx_conf_t *cf, ngx_array_t *rules,
    ngx_str_t *level)
{
    ngx_str_t       *value;
    ngx_uint_t       i;
    const char      *bad;
    ngx_mcp_rule_t  *rule, one;

    value = cf->args->elts;
    ngx_str_null(level);

    for (i = 2; i < cf->args->nelts; i++) {
        ngx_memzero(&one, sizeof(ngx_mcp_rule_t));

        one.kind = value[1];
        bad = ngx_mcp_rule_parse(&one, &value[i]);

        if (bad) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" in \"mcp_invalidate\" %s; the actions "
                               "are \"message=DATA\", \"level=LEVEL\", "
                               "\"list_changed=tools|prompts|resources\", "
                               "\"updated=URI\", \"notify=METHOD\" and "
                               "\"drop\"", &value[i], bad);
            return NGX_ERROR;
        }

        if (one.action == NGX_MCP_RULE_LEVEL) {

            if (ngx_http_mcp_conf_invalidate_level(cf, &value[i], &one.value,
                                                   level)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            continue;
        }

        rule = ngx_array_push(rules);
        if (rule == NULL) {
            return NGX_ERROR;
        }

        *rule = one;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_conf_invalidate_level(ngx_conf_t *cf, ngx_str_t *value,
    ngx_str_t *name, ngx_str_t *level)
{
    if (level->len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"level=\" appears twice in "
                           "\"mcp_invalidate\"; remove one");
        return NGX_ERROR;
    }

    *level = *name;

    if (ngx_mcp_level_parse(level) == NGX_MCP_LEVEL_UNSET
        && !ngx_strlchr(level->data, level->data + level->len, '$'))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"%V\" in \"mcp_invalidate\" is not a "
                           "level of MCP and means \"info\"; the "
                           "levels are \"debug\", \"info\", "
                           "\"notice\", \"warning\", \"error\", "
                           "\"critical\", \"alert\" and \"emergency\"",
                           value);
    }

    return NGX_OK;
}


static char *
ngx_http_mcp_conf_server_info(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    const char  *usage = "write \"mcp_server_info name=NAME version=VERSION "
                         "[title=TITLE];\"";

    if (ngx_http_mcp_conf_params(cf, 1, ngx_http_mcp_server_info_params, mlcf,
                                 usage)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (mlcf->server_name.len == 0 || mlcf->server_version.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"mcp_server_info\" needs a name and a version; "
                           "%s", usage);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_mcp_conf_deny(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_complex_value_t  *cv;

    value = cf->args->elts;

    if (ngx_http_mcp_conf_array(cf, &mlcf->deny,
                                sizeof(ngx_http_complex_value_t))
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        cv = ngx_array_push(mlcf->deny);
        if (cv == NULL) {
            return NGX_CONF_ERROR;
        }

        if (ngx_http_mcp_conf_value(cf, &value[i], &cv) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        /* "1" is how a configuration denies all messages */

        if (cv->lengths || cv->value.len == 0
            || (cv->value.len == 1
                && (cv->value.data[0] == '0' || cv->value.data[0] == '1')))
        {
            continue;
        }

        ngx_conf_log_error(NGX_HTTP_MCP_LOG_ADVICE, cf, 0,
                           "\"mcp_deny %V\" denies every request; write a "
                           "variable, for example of a \"map\" over "
                           "$mcp_name", &value[i]);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_mcp_conf_allowed_origins(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_mcp_loc_conf_t *mlcf = conf;

    ngx_str_t   *value, *origin;
    ngx_uint_t   i;

    value = cf->args->elts;

    mlcf->origins = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                     sizeof(ngx_str_t));
    if (mlcf->origins == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "any") == 0) {
            mlcf->origins_any = 1;
            continue;
        }

        if (ngx_strcmp(value[i].data, "null") != 0
            && !ngx_http_mcp_conf_origin_valid(&value[i]))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid origin \"%V\" in "
                               "\"mcp_allowed_origins\"; write \"any\", "
                               "\"null\", or \"https://host[:port]\" without "
                               "a path or a wildcard", &value[i]);
            return NGX_CONF_ERROR;
        }

        origin = ngx_array_push(mlcf->origins);
        if (origin == NULL) {
            return NGX_CONF_ERROR;
        }

        *origin = ngx_http_mcp_origin_short(&value[i]);
    }

    return NGX_CONF_OK;
}


/* returns whether an Origin header of a browser can have this value */

static ngx_uint_t
ngx_http_mcp_conf_origin_valid(ngx_str_t *origin)
{
    u_char     *p, *last;
    ngx_int_t   port;
    ngx_str_t   host;

    host = ngx_http_mcp_origin_host(origin);

    if (host.len == 0 || host.data[0] == '.') {
        return 0;
    }

    for (p = host.data; p < host.data + host.len; p++) {

        if (*p <= ' ' || *p >= 0x7f || ngx_strchr("$*,;\"'\\<>{}|^`", *p)) {
            return 0;
        }
    }

    last = origin->data + origin->len;

    if (p == last) {
        return 1;
    }

    /* the host is followed by ":" and a port */

    port = ngx_atoi(p + 1, last - p - 1);

    return port > 0 && port < 65536;
}


/* makes the array of a directive that may be repeated */

static ngx_int_t
ngx_http_mcp_conf_array(ngx_conf_t *cf, ngx_array_t **array, size_t size)
{
    if (*array == NGX_CONF_UNSET_PTR) {
        *array = ngx_array_create(cf->pool, 4, size);
    }

    return *array ? NGX_OK : NGX_ERROR;
}
