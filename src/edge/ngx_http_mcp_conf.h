
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


/* the level of advice: "nginx -t" shows warnings and worse */
#define NGX_HTTP_MCP_LOG_ADVICE                                               \
    (ngx_test_config ? NGX_LOG_WARN : NGX_LOG_NOTICE)


extern ngx_command_t  ngx_http_mcp_commands[];

void *ngx_http_mcp_create_main_conf(ngx_conf_t *cf);
void *ngx_http_mcp_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_mcp_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);

/*
 * Checks the whole configuration after it is merged: that zones are declared,
 * the identities of endpoints distinct, and the like.  NGX_OK or NGX_ERROR
 * (logged).
 */
ngx_int_t ngx_http_mcp_conf_check(ngx_conf_t *cf,
    ngx_http_mcp_main_conf_t *mmcf);


/* mcp_list_cache (ngx_http_mcp_conf_lists.c) */
char *ngx_http_mcp_conf_list_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* merges and checks mcp_list_cache: the lists that are cached, their sources */
char *ngx_http_mcp_merge_lists(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf);


/*
 * Checks that the arguments of the directive at hand are UTF-8: they become
 * JSON.  NGX_OK or NGX_ERROR (logged).
 */
ngx_int_t ngx_http_mcp_conf_utf8(ngx_conf_t *cf);

/* whether a name is UTF-8 without control characters */
ngx_uint_t ngx_http_mcp_conf_name_valid(ngx_str_t *name);

/*
 * Makes the current directive set the content handler of its location.  It is
 * checked later that no other directive sets one.  NGX_CONF_OK or
 * NGX_CONF_ERROR (no memory).
 */
char *ngx_http_mcp_conf_handler(ngx_conf_t *cf, ngx_http_handler_pt handler);

/* returns the tenant of all requests to an endpoint; NULL: tenants differ */
ngx_str_t *ngx_http_mcp_conf_tenant(ngx_http_mcp_loc_conf_t *mlcf);

/*
 * Warns of arguments NAME="VALUE" from argument "first" on, as nginx takes
 * quotes only around a whole argument.
 */
void ngx_http_mcp_conf_quotes(ngx_conf_t *cf, ngx_uint_t first);

/*
 * Returns whether a parameter is NAME=VALUE; if so, sets *value, which may be
 * empty.
 */
ngx_uint_t ngx_http_mcp_conf_param(ngx_str_t *param, const char *name,
    ngx_str_t *value);

/*
 * Compiles a text to a complex value in *cv; if *cv is NULL, memory for it is
 * allocated.  NGX_OK or NGX_ERROR (logged).
 */
ngx_int_t ngx_http_mcp_conf_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **cv);


/*
 * A parameter of a directive, NAME=VALUE.  set() sets the slot at "offset" of
 * the configuration: NGX_OK; NGX_DECLINED: the value is wrong; NGX_ERROR
 * (logged).  set NULL: the parameter is NAME alone, and sets its slot, an
 * ngx_uint_t, to "least".  name "": the row takes the first parameter that no
 * row above it takes, whatever the parameter is.
 */

typedef struct ngx_http_mcp_param_s  ngx_http_mcp_param_t;

struct ngx_http_mcp_param_s {
    const char                 *name;
    ngx_int_t                 (*set)(ngx_conf_t *cf,
                                    ngx_http_mcp_param_t *param,
                                    ngx_str_t *value, void *slot);
    size_t                      offset;
    ngx_int_t                   least;        /* the least value: bytes, ms, or
                                                 a number */
    ngx_int_t                   most;         /* the largest number or size */
    const char                 *advice;       /* advice that is logged if the
                                                 value is wrong; NULL: the usage
                                                 of the directive */
};

#define NGX_HTTP_MCP_PARAM(name, kind, conf, member)                          \
    { name, ngx_http_mcp_param_ ## kind, offsetof(conf, member), 1, 0, NULL }

#define NGX_HTTP_MCP_PARAM_END  { NULL, NULL, 0, 0, 0, NULL }


/*
 * Reads the parameters from argument "first" on, each at most once, and warns
 * of quotes in them.  usage: the advice that is logged for a wrong parameter.
 * NGX_CONF_OK or NGX_CONF_ERROR (logged).
 */
char *ngx_http_mcp_conf_params(ngx_conf_t *cf, ngx_uint_t first,
    ngx_http_mcp_param_t *params, void *conf, const char *usage);

ngx_int_t ngx_http_mcp_param_text(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot);
ngx_int_t ngx_http_mcp_param_value(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot);
ngx_int_t ngx_http_mcp_param_time(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot);
ngx_int_t ngx_http_mcp_param_size(ngx_conf_t *cf, ngx_http_mcp_param_t *param,
    ngx_str_t *value, void *slot);
ngx_int_t ngx_http_mcp_param_number(ngx_conf_t *cf,
    ngx_http_mcp_param_t *param, ngx_str_t *value, void *slot);

/* logs that a parameter is wrong, and the advice; returns NGX_CONF_ERROR */
char *ngx_http_mcp_conf_invalid(ngx_conf_t *cf, ngx_str_t *param,
    const char *advice);


/*
 * The description of a directive for ngx_http_mcp_conf_set(), in "post" of the
 * command.  That function notes the directive, to warn if nothing in its
 * location uses it.  It refuses a directive that a location has twice, unless
 * "many" is set, and other values beside "alone".
 */

typedef struct {
    /*
     * A function like nginx's slots.  It is called with "post" of this struct
     * as that of the command.
     */
    char                     *(*set)(ngx_conf_t *cf, ngx_command_t *cmd,
                                    void *conf);
    void                       *post;

    /* parameters that are read if set is NULL */
    ngx_http_mcp_param_t       *params;

    /* bounds of the number, time or size that set() sets */
    ngx_int_t                   least;
    ngx_int_t                   most;

    const char                 *advice;       /* advice that is logged if the
                                                 value is wrong; NULL: set()
                                                 logs, and sets no number */
    ngx_uint_t                  many;         /* a location may have the
                                                 directive several times */
    const char                 *alone;        /* value that excludes any other
                                                 value in a location, or NULL */
} ngx_http_mcp_set_t;

char *ngx_http_mcp_conf_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* cmd->post: the names, an array of ngx_conf_bitmask_t */
char *ngx_http_mcp_conf_bitmask(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/*
 * Directives with one number, time, size or flag: name, member of
 * ngx_http_mcp_loc_conf_t, which is one word, ngx_http_mcp_set_... in
 * ngx_http_mcp_directives.c, and default
 */

#define NGX_HTTP_MCP_SETTINGS(SETTING)                                        \
    SETTING("mcp_session_timeout", session_timeout, time_above_0, 1800000)    \
    SETTING("mcp_stream_limit", stream_limit, number, 8)                      \
    SETTING("mcp_batch", batch, flag, 0)                                      \
    SETTING("mcp_call_limit", call_limit, number, 64)                         \
    SETTING("mcp_subscription_limit", subscription_limit, number, 256)        \
    SETTING("mcp_stream_after", stream_after, time, 5000)                     \
    SETTING("mcp_stream_heartbeat", stream_heartbeat, time, 15000)            \
    SETTING("mcp_stream_retry", stream_retry, time, 1000)                     \
    SETTING("mcp_stream_buffer", stream_buffer, size, 64 * 1024)              \
    SETTING("mcp_stream_park", stream_park, flag, 1)                          \
    SETTING("mcp_message_limit", message_limit, size, 4 * 1024 * 1024)        \
    SETTING("mcp_drain_time", drain_time, time, 2000)                         \
    SETTING("mcp_cors", cors, flag, 1)                                        \
    SETTING("mcp_coalesce", bridge.coalesce, time, 0)                         \
    SETTING("mcp_topic_limit", bridge.topic_limit, number, 1024)


#endif /* _NGX_HTTP_MCP_CONF_H_INCLUDED_ */
