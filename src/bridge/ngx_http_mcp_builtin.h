
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Built-in tools: their names, arguments, schemas and results, and their
 * entries in lists.  ngx_http_mcp_call_local.c runs them.
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
    ngx_str_t                 entry;      /* raw entry of the tool in
                                             tools/list */
    ngx_str_t                 sessionless;  /* raw entry for clients without a
                                               session */
} ngx_http_mcp_builtin_t;

/* the last element has an empty name */
extern ngx_http_mcp_builtin_t  ngx_http_mcp_builtins[];

/* finds a built-in tool of the endpoint by its name; NULL: there is none */
ngx_http_mcp_builtin_t *ngx_http_mcp_builtin(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *name);

/*
 * Finds the raw "arguments" in the valid params of a call; *arguments points
 * into params, or is empty if there are none.  NGX_OK; NGX_DECLINED: the
 * arguments are no object.
 */
ngx_int_t ngx_http_mcp_builtin_arguments(ngx_str_t *params,
    ngx_str_t *arguments);

/*
 * Fills a waiter, of which zone, caller and pool are set, from the arguments
 * of wait_for_event.  Sets *name to the name of the topic, or empty.  Returns
 * NULL, or a sentence about a fault of the arguments: *code is then the code of
 * the JSON-RPC error to send, or 0 if a result with "isError" is to be sent.
 */
const char *ngx_http_mcp_builtin_wait_parse(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *arguments, ngx_http_mcp_wait_t *w, ngx_str_t *name,
    ngx_int_t *code);

/*
 * Composes the raw result of wait_for_event, from the waiter's pool.  rc: the
 * result of ngx_http_mcp_wait_start() or the argument of ready().  data NULL:
 * no memory.
 */
ngx_str_t ngx_http_mcp_builtin_wait_result(ngx_http_mcp_wait_t *w,
    ngx_int_t rc);

/*
 * Composes the raw result of session_info for a caller with a session, from
 * pool.  data NULL: no memory, or the session has ended.
 */
ngx_str_t ngx_http_mcp_builtin_session_info(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool);

/*
 * Data of a caller without a session, for the raw result of session_info that
 * ngx_http_mcp_builtin_caller_info() composes from pool.  data NULL: no
 * memory.
 */

typedef struct {
    ngx_str_t                 client;     /* raw clientInfo of the request;
                                             empty: it has none */
    ngx_uint_t                calls;      /* limit of running calls */
    ngx_uint_t                subscriptions;  /* limit of subscriptions */
} ngx_http_mcp_builtin_caller_t;

ngx_str_t ngx_http_mcp_builtin_caller_info(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_http_mcp_builtin_caller_t *data,
    ngx_pool_t *pool);

/*
 * Composes a raw result with "isError" and this text, from pool.  data NULL:
 * no memory.
 */
ngx_str_t ngx_http_mcp_builtin_error(ngx_pool_t *pool, const char *text);


/*
 * Lists: the module's own entries are inserted before those of upstreams, and
 * tools that the caller may not call are removed.  All other bytes of a list
 * stay as they are.
 */

typedef struct {
    ngx_http_mcp_bridge_t    *bridge;
    ngx_mcp_caller_t         *caller;
    ngx_uint_t                method;     /* ngx_mcp_method_e */
    ngx_uint_t                first;      /* the first page is requested: there
                                             is no cursor */
    ngx_pool_t               *pool;

    /*
     * Checks whether a tool is denied to the caller.  NGX_OK: it is allowed;
     * NGX_DECLINED: it is denied; NGX_ERROR.  NULL: all tools are allowed.
     */
    ngx_int_t               (*denied)(void *data, ngx_str_t *name);
    void                     *data;
} ngx_http_mcp_list_edit_t;


/*
 * Returns whether the module has entries of its own for this list method, so
 * that it can answer without an upstream.
 */
ngx_uint_t ngx_http_mcp_list_own(ngx_http_mcp_bridge_t *bridge,
    ngx_uint_t method);

/* returns whether ngx_http_mcp_list_edit() may change a result */
ngx_uint_t ngx_http_mcp_list_edit_needed(ngx_http_mcp_list_edit_t *edit);

/*
 * Converts *result, the raw result of upstreams (empty: there is none), to the
 * raw result for the client.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_list_edit(ngx_http_mcp_list_edit_t *edit,
    ngx_str_t *result);


#endif /* _NGX_HTTP_MCP_BUILTIN_H_INCLUDED_ */
