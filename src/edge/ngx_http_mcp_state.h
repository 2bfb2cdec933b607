
/*
 * The files of zones ("state=" of mcp_zone): when they are read and written.
 *
 * A file is read into a fresh zone before workers start.  Without "interval"
 * the first worker marks it as used: only then it is sure that nginx runs.  It
 * is written by the master when all workers have gone.  With "interval" it is
 * written also by nginx's cache manager process, which may block and is started
 * for that.
 *
 * At SIGQUIT the ports are free at once, while workers may still run for long:
 * an nginx that is started meanwhile finds no sessions, unless there is an
 * interval, and says so; and the older one does not write the file any more.
 */

#ifndef _NGX_HTTP_MCP_STATE_H_INCLUDED_
#define _NGX_HTTP_MCP_STATE_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/* zone->state.name as it is configured becomes a path; its folder exists */
ngx_int_t ngx_http_mcp_state_file(ngx_conf_t *cf, ngx_http_mcp_zone_t *zone);

/* once all is configured: has the cache manager called */
ngx_int_t ngx_http_mcp_state_conf(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);

/* warns where the cache manager cannot write, and of a file of no use */
void ngx_http_mcp_state_check(ngx_http_mcp_zone_t *zone,
    ngx_core_conf_t *ccf);

ngx_int_t ngx_http_mcp_state_init_module(ngx_cycle_t *cycle);
void ngx_http_mcp_state_init_worker(ngx_http_mcp_zone_t *zone);
void ngx_http_mcp_state_exit_master(ngx_cycle_t *cycle);


#endif /* _NGX_HTTP_MCP_STATE_H_INCLUDED_ */
