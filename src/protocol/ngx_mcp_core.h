
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Definitions for all layers: nginx's core headers without http, and the
 * protocol's revisions, error codes and log levels.
 */

#ifndef _NGX_MCP_CORE_H_INCLUDED_
#define _NGX_MCP_CORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_MCP_MODULE_VERSION   "0.1.0"

#define NGX_MCP_UUID_LEN         36

/* bytes; a JSON-RPC id that is longer, quotes included, is refused */
#define NGX_MCP_ID_MAX           256

/* bytes of the longest method, name and URI; nginx's limits can hold them */
#define NGX_MCP_URI_MAX          16384

/* most digits of an error code; clients would read longer ones inexactly */
#define NGX_MCP_ERROR_DIGITS     15


/* revisions, the oldest first, so that they can be compared by < and > */

typedef enum {
    NGX_MCP_REVISION_UNKNOWN = 0,
    NGX_MCP_2025_03_26,
    NGX_MCP_2025_06_18,
    NGX_MCP_2025_11_25,
    NGX_MCP_2026_07_28
} ngx_mcp_revision_e;

#define NGX_MCP_REVISION_LATEST_LEGACY  NGX_MCP_2025_11_25


/* JSON-RPC and MCP error codes */

#define NGX_MCP_PARSE_ERROR        -32700
#define NGX_MCP_INVALID_REQUEST    -32600
#define NGX_MCP_METHOD_NOT_FOUND   -32601
#define NGX_MCP_INVALID_PARAMS     -32602
#define NGX_MCP_INTERNAL_ERROR     -32603
#define NGX_MCP_REFUSED            -32000
#define NGX_MCP_SESSION_NOT_FOUND  -32001
#define NGX_MCP_NO_RESOURCE        -32002
#define NGX_MCP_URL_ELICITATION    -32042

/* error codes of revision 2026-07-28, and the range that it reserves */

#define NGX_MCP_HEADER_MISMATCH      -32020
#define NGX_MCP_MISSING_CAPABILITY   -32021
#define NGX_MCP_UNSUPPORTED_VERSION  -32022
#define NGX_MCP_RESERVED_FIRST       -32099
#define NGX_MCP_RESERVED_LAST        -32020


/* levels of notifications/message, the least severe first */

typedef enum {
    NGX_MCP_LEVEL_UNSET = 0,
    NGX_MCP_LEVEL_DEBUG,
    NGX_MCP_LEVEL_INFO,
    NGX_MCP_LEVEL_NOTICE,
    NGX_MCP_LEVEL_WARNING,
    NGX_MCP_LEVEL_ERROR,
    NGX_MCP_LEVEL_CRITICAL,
    NGX_MCP_LEVEL_ALERT,
    NGX_MCP_LEVEL_EMERGENCY
} ngx_mcp_level_e;


/* whether two texts (ngx_str_t *) are equal */

#define ngx_mcp_equal(a, b)                                                   \
    ((a)->len == (b)->len && ngx_memcmp((a)->data, (b)->data, (a)->len) == 0)


#endif /* _NGX_MCP_CORE_H_INCLUDED_ */
