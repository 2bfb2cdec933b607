
/*
 * Built-in tools: their names, arguments, schemas and results, and their place
 * in lists.  ngx_http_mcp_call_local.c answers calls with them.
 */

#ifndef _NGX_HTTP_MCP_BUILTIN_H_INCLUDED_
#define _NGX_HTTP_MCP_BUILTIN_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_wait.h"
#include "ngx_mcp_caller.h"
#include "ngx_mcp_message.h"


typedef struct {
    ngx_uint_t                bit;        /* NGX_HTTP_MCP_TOOL_* */
    ngx_str_t                 name;
    ngx_str_t                 entry;      /* of tools/list */
    ngx_str_t                 alone;      /* the same without a session */
} ngx_http_mcp_builtin_t;

/* the last one has no name */
extern ngx_http_mcp_builtin_t  ngx_http_mcp_builtins[];

/* the endpoint's tool of this name, or NULL */
ngx_http_mcp_builtin_t *ngx_http_mcp_builtin(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *name);

/*
 * The raw arguments of a call whose params were scanned, empty when it has
 * none; NGX_DECLINED: they are no object.
 */
ngx_int_t ngx_http_mcp_builtin_arguments(ngx_str_t *params,
    ngx_str_t *arguments);

/*
 * Fills a waiter (zone, caller and pool are set) from the arguments of
 * wait_for_event.  name: of the topic, or empty.  NULL, or what is wrong with
 * them; code is then that of a JSON-RPC error, or 0 for a result that says so.
 */
const char *ngx_http_mcp_builtin_wait_parse(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *arguments, ngx_http_mcp_wait_t *w, ngx_str_t *name,
    ngx_int_t *code);

/* the raw result of wait_for_event; rc as of ready(); data NULL: no memory */
ngx_str_t ngx_http_mcp_builtin_wait_result(ngx_http_mcp_wait_t *w,
    ngx_int_t rc);

/* the raw result of session_info; data NULL: no memory, or no session */
ngx_str_t ngx_http_mcp_builtin_session_info(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool);

/* likewise for a caller without a session */

typedef struct {
    ngx_str_t                 client;     /* raw clientInfo, or empty */
    ngx_uint_t                calls;      /* limits */
    ngx_uint_t                subscriptions;
} ngx_http_mcp_builtin_alone_t;

ngx_str_t ngx_http_mcp_builtin_caller_info(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_http_mcp_builtin_alone_t *alone,
    ngx_pool_t *pool);

/* a raw result that says what the caller did wrong; data NULL: no memory */
ngx_str_t ngx_http_mcp_builtin_error(ngx_pool_t *pool, const char *text);


/*
 * Lists: what the module itself has is put in front of what an upstream lists,
 * and what the caller may not call is left out.  Texts are raw and spliced,
 * never printed anew.
 */

typedef struct {
    ngx_http_mcp_bridge_t    *bridge;
    ngx_mcp_caller_t         *caller;
    ngx_uint_t                method;     /* ngx_mcp_method_e */
    ngx_uint_t                first;      /* the page without cursor */
    ngx_pool_t               *pool;

    /* of a tool: NGX_OK; NGX_DECLINED: left out; NGX_ERROR; NULL: never */
    ngx_int_t               (*denied)(void *data, ngx_str_t *name);
    void                     *data;
} ngx_http_mcp_list_merge_t;


/* whether the module has such things itself, so that it has an answer alone */
ngx_uint_t ngx_http_mcp_list_merge_own(ngx_http_mcp_bridge_t *bridge,
    ngx_uint_t method);

/* whether anything may change in an answer */
ngx_uint_t ngx_http_mcp_list_merge_needed(ngx_http_mcp_list_merge_t *merge);

/*
 * Makes of a raw result, empty when nobody has one, the one to give.  NGX_OK
 * or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_list_merge(ngx_http_mcp_list_merge_t *merge,
    ngx_str_t *result);


#endif /* _NGX_HTTP_MCP_BUILTIN_H_INCLUDED_ */
