
/*
 * Parsing, merging and checking of the directives.  A wrong configuration is
 * refused with the directive, the line and the remedy.
 */

#ifndef _NGX_HTTP_MCP_CONF_H_INCLUDED_
#define _NGX_HTTP_MCP_CONF_H_INCLUDED_


#include "ngx_http_mcp_module.h"


void *ngx_http_mcp_create_main_conf(ngx_conf_t *cf);
void *ngx_http_mcp_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);

/* after all is merged: zones declared, identities of endpoints distinct */
ngx_int_t ngx_http_mcp_conf_check(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);

/*
 * Notes the directive at hand, and warns of those noted that no access rule
 * protects (ngx_http_mcp_conf_warn_access.c).
 */
ngx_int_t ngx_http_mcp_conf_guarded(ngx_conf_t *cf);
void ngx_http_mcp_conf_warn_access(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);

/* whether something can be published to a topic, or somebody wait for it */
void ngx_http_mcp_conf_topics(ngx_http_mcp_loc_conf_t *mlcf);

/*
 * The zone of this name, made when there is none; a size is given by its
 * declaration alone, else it is 0.  NULL: declared twice (logged), no memory.
 */
ngx_mcp_zone_t *ngx_http_mcp_conf_find_zone(ngx_conf_t *cf, ngx_str_t *name,
    size_t size);

/* makes it the location's; refused when there is one already */
char *ngx_http_mcp_conf_handler(ngx_conf_t *cf, ngx_http_handler_pt handler);

/* whether a parameter is "name=VALUE", which may be empty */
ngx_uint_t ngx_http_mcp_conf_param(ngx_str_t *param, const char *name,
    ngx_str_t *value);

/* compiles a value; *cv is made when it is NULL; NGX_ERROR is logged */
ngx_int_t ngx_http_mcp_conf_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **cv);

char *ngx_http_mcp_conf_not_zero(ngx_conf_t *cf, void *post, void *data);

char *ngx_http_mcp_conf_time(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_number(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_capabilities(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_endpoint(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_upstream(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_upstream_timeout(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_server_info(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_deny(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_session_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_event_buffer(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_allowed_origins(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_publish(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_invalidate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_events(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_list_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_builtin_tools(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/*
 * How requests of the endpoint's own, without a client, say that its server was
 * reached, so that its rules let them pass
 */
ngx_int_t ngx_http_mcp_conf_server(ngx_conf_t *cf,
    ngx_http_mcp_loc_conf_t *mlcf);


#endif /* _NGX_HTTP_MCP_CONF_H_INCLUDED_ */
