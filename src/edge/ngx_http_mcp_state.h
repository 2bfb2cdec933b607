
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The files of zones ("state=" of mcp_zone): when they are read and written.
 *
 * A file is read into a fresh zone before workers start.  Without "interval"
 * the first worker marks the file as used: not before then is it sure that
 * nginx runs.  The master writes the file when all workers have exited.  With
 * "interval", nginx's cache manager process writes it as well; it may block,
 * and is started for that.
 *
 * At SIGQUIT the ports are free at once, while workers may still run for long.
 * An nginx that is started meanwhile finds no sessions, unless there is an
 * interval, and logs this; the older nginx does not write the file any more.
 */

#ifndef _NGX_HTTP_MCP_STATE_H_INCLUDED_
#define _NGX_HTTP_MCP_STATE_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/*
 * Turns zone->state.name, which is as configured, into a full path, and checks
 * that no other zone has this file and that its folder is writable.  NGX_OK or
 * NGX_ERROR (logged).
 */
ngx_int_t ngx_http_mcp_state_file(ngx_conf_t *cf, ngx_http_mcp_zone_t *zone);

/*
 * Registers with nginx's cache manager if a zone has an interval; called once
 * the configuration is read.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_state_conf(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);

/*
 * Warns if the cache manager cannot write the file of the zone and, in
 * "nginx -t", if the file cannot be used.
 */
void ngx_http_mcp_state_check(ngx_http_mcp_zone_t *zone,
    ngx_core_conf_t *ccf);

ngx_int_t ngx_http_mcp_state_init_module(ngx_cycle_t *cycle);
void ngx_http_mcp_state_init_worker(ngx_http_mcp_zone_t *zone);
void ngx_http_mcp_state_exit_master(ngx_cycle_t *cycle);


#endif /* _NGX_HTTP_MCP_STATE_H_INCLUDED_ */
