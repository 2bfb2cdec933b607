
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Directives (ngx_http_mcp_directives.c), and how their values are merged and
 * checked.  A wrong configuration is refused with the directive, the line and
 * the remedy.
 */

#ifndef _NGX_HTTP_MCP_CONF_H_INCLUDED_
#define _NGX_HTTP_MCP_CONF_H_INCLUDED_


#include "ngx_http_mcp_module.h"


extern ngx_command_t  ngx_http_mcp_commands[];

void *ngx_http_mcp_create_main_conf(ngx_conf_t *cf);
void *ngx_http_mcp_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);

/*
 * Checks the whole configuration after all is merged, such as that zones are
 * declared and the identities of endpoints distinct.  NGX_OK or NGX_ERROR
 * (logged).
 */
ngx_int_t ngx_http_mcp_conf_check(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);


/* mcp_list_cache (ngx_http_mcp_conf_lists.c) */
char *ngx_http_mcp_conf_list_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* merges and checks where lists come from, and which are filled in advance */
char *ngx_http_mcp_merge_lists(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf);


/*
 * Checks that the arguments of the directive at hand are UTF-8: they become
 * JSON.  NGX_OK or NGX_ERROR (logged).
 */
ngx_int_t ngx_http_mcp_conf_utf8(ngx_conf_t *cf);

/* whether a name is UTF-8 without control characters */
ngx_uint_t ngx_http_mcp_conf_name_valid(ngx_str_t *name);

/*
 * Notes the directive at hand for a warning: of one that nothing in its
 * location uses, or that no access rule protects.  The first checks its
 * arguments as well.  NGX_OK or NGX_ERROR (logged, or no memory).
 */
ngx_int_t ngx_http_mcp_conf_used(ngx_conf_t *cf);
ngx_int_t ngx_http_mcp_conf_guarded(ngx_conf_t *cf);

/*
 * Warns of arguments NAME="VALUE" from this one on: nginx takes quotes only
 * around a whole argument.
 */
void ngx_http_mcp_conf_quotes(ngx_conf_t *cf, ngx_uint_t first);

/*
 * Checks that no parameter NAME=VALUE is there twice among the arguments from
 * this one on, and warns of quotes in them.  NGX_OK or NGX_ERROR (logged).
 */
ngx_int_t ngx_http_mcp_conf_once(ngx_conf_t *cf, ngx_uint_t first);

/* returns whether a parameter is NAME=VALUE, and sets *value then */
ngx_uint_t ngx_http_mcp_conf_param(ngx_str_t *param, const char *name,
    ngx_str_t *value);

/*
 * Compiles a text to a complex value; *cv is made if it is NULL.  NGX_OK or
 * NGX_ERROR (logged).
 */
ngx_int_t ngx_http_mcp_conf_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **cv);


/*
 * Set directives with a simple value, like nginx's slots.  The message for a
 * wrong value says what to write instead (ngx_http_mcp_conf_slots.c).
 */
char *ngx_http_mcp_conf_flag(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_text(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_complex(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_mcp_conf_time(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_mcp_conf_number(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* cmd->post: the names, an array of ngx_conf_bitmask_t */
char *ngx_http_mcp_conf_bitmask(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* for ngx_conf_post_t: refuses 0 */
char *ngx_http_mcp_conf_not_zero(ngx_conf_t *cf, void *post, void *data);


#endif /* _NGX_HTTP_MCP_CONF_H_INCLUDED_ */
