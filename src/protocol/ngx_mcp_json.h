
/*
 * One strict, bounded, non-recursive JSON scan (RFC 8259), the only JSON code
 * of our own.  It is resumable: text comes in pieces of any size, nothing is
 * copied and no tree is made.  It rejects what is not JSON (also raw NULs,
 * invalid UTF-8, lone surrogate escapes, trailing bytes, nesting deeper than
 * 512) and notes where the members of a fixed table of paths lie.
 *
 * Names are compared after decoding their escapes, case-sensitively.
 *
 * The caller owns the scan state and all text; no allocation, no locking.
 */

#ifndef _NGX_MCP_JSON_H_INCLUDED_
#define _NGX_MCP_JSON_H_INCLUDED_


#include "ngx_mcp_core.h"


#define NGX_MCP_JSON_DEPTH  512


typedef enum {
    NGX_MCP_JSON_ABSENT = 0,
    NGX_MCP_JSON_NULL,
    NGX_MCP_JSON_TRUE,
    NGX_MCP_JSON_FALSE,
    NGX_MCP_JSON_NUMBER,
    NGX_MCP_JSON_STRING,
    NGX_MCP_JSON_OBJECT,
    NGX_MCP_JSON_ARRAY
} ngx_mcp_json_type_e;


/* the members that are looked at: name, path */

#define NGX_MCP_JSON_PATHS(_)                                                 \
    _(JSONRPC,           "jsonrpc")                                           \
    _(ID,                "id")                                                \
    _(METHOD,            "method")                                            \
    _(PARAMS,            "params")                                            \
    _(RESULT,            "result")                                            \
    _(ERROR,             "error")                                             \
    _(NAME,              "params.name")                                       \
    _(URI,               "params.uri")                                        \
    _(META,              "params._meta")                                      \
    _(META_TOKEN,        "params._meta.progressToken")                        \
    _(META_VERSION,      "params._meta.io.modelcontextprotocol/protocolVersion") \
    _(TOKEN,             "params.progressToken")                              \
    _(REQUEST_ID,        "params.requestId")                                  \
    _(VERSION,           "params.protocolVersion")                            \
    _(CAPABILITIES,      "params.capabilities")                               \
    _(CLIENT_INFO,       "params.clientInfo")                                 \
    _(CLIENT_NAME,       "params.clientInfo.name")                            \
    _(CLIENT_VERSION,    "params.clientInfo.version")                         \
    _(LEVEL,             "params.level")                                      \
    _(CURSOR,            "params.cursor")                                     \
    _(ERROR_CODE,        "error.code")                                        \
    _(ERROR_MESSAGE,     "error.message")                                     \
    _(IS_ERROR,          "result.isError")                                    \
    _(RESULT_VERSION,    "result.protocolVersion")                            \
    _(RESULT_CAPABILITIES, "result.capabilities")                             \
    _(RESULT_SERVER_INFO, "result.serverInfo")                                \
    _(RESULT_INSTRUCTIONS, "result.instructions")                             \
    _(KIND,              "kind")                                              \
    _(TENANT_ID,         "tenant_id")                                         \
    _(SESSION_ID,        "session_id")                                        \
    _(IDENTITY,          "identity")                                          \
    _(TOPIC,             "topic")                                             \
    _(TOP_URI,           "uri")                                               \
    _(REASON,            "reason")


#define NGX_MCP_JSON_PATH_ENUM(name, path)  NGX_MCP_PATH_ ## name,

typedef enum {
    NGX_MCP_JSON_PATHS(NGX_MCP_JSON_PATH_ENUM)
    NGX_MCP_PATH_MAX
} ngx_mcp_path_e;


/* where a value lies, counted from the first byte that was fed */

typedef struct {
    size_t                  start;
    size_t                  end;
    unsigned                type:8;       /* ngx_mcp_json_type_e */
    unsigned                count:8;      /* how often the member stood there */
} ngx_mcp_span_t;


/* the fields below "members" belong to ngx_mcp_json.c */

typedef struct {
    ngx_mcp_span_t          members[NGX_MCP_PATH_MAX];
    ngx_mcp_json_type_e     type;         /* of the whole */
    const char             *error;        /* what is wrong, after NGX_ERROR */
    size_t                  offset;       /* bytes taken */

    ngx_uint_t              depth;
    u_char                  nesting[NGX_MCP_JSON_DEPTH / 8];
    ngx_uint_t              state;
    ngx_uint_t              substate;
    uint32_t                code;         /* \uXXXX under way */
    uint32_t                surrogate;
    u_char                  key[64];      /* decoded name under way */
    ngx_uint_t              key_len;
    ngx_int_t               path[8];      /* node of the path at each depth */
    ngx_int_t               open[8];      /* member open at each depth */
    ngx_int_t               node;
} ngx_mcp_json_t;


/* starts a scan */
void ngx_mcp_json_init(ngx_mcp_json_t *json);

/*
 * Scans a piece.  NGX_AGAIN: all right so far; NGX_ERROR: not JSON, and
 * json->error says why.
 */
ngx_int_t ngx_mcp_json_feed(ngx_mcp_json_t *json, u_char *p, u_char *last);

/* no more text: NGX_OK if it was exactly one JSON value, else NGX_ERROR */
ngx_int_t ngx_mcp_json_end(ngx_mcp_json_t *json);

/* init, feed and end over text that is all there */
ngx_int_t ngx_mcp_json_scan(ngx_mcp_json_t *json, ngx_str_t *text);

/* the raw text of a noted member (of text fed in one piece); len 0: absent */
ngx_str_t ngx_mcp_json_span(ngx_mcp_json_t *json, ngx_mcp_path_e path,
    u_char *text);

/*
 * Elements of a top-level array that the scan has accepted: *rest starts as
 * the whole text.  NGX_OK with the raw element, NGX_DONE behind the last.
 */
ngx_int_t ngx_mcp_json_element(ngx_str_t *rest, ngx_str_t *element);

/*
 * Members of an object that the scan has accepted, likewise; name is the raw
 * token with its quotes.  NGX_OK, NGX_DONE behind the last.
 */
ngx_int_t ngx_mcp_json_member(ngx_str_t *rest, ngx_str_t *name,
    ngx_str_t *value);

/*
 * Decodes a raw string token (quotes included) that the scan has accepted
 * into dst, which has room for raw->len bytes; returns the end.
 */
u_char *ngx_mcp_json_unescape(u_char *dst, ngx_str_t *raw);

/*
 * Writes text as a JSON string with quotes; invalid UTF-8 becomes U+FFFD.
 * escaped_len is the room it needs.
 */
size_t ngx_mcp_json_escaped_len(ngx_str_t *text);
u_char *ngx_mcp_json_escape(u_char *dst, ngx_str_t *text);

/* whether two raw tokens (strings or numbers) name the same JSON-RPC id */
ngx_uint_t ngx_mcp_json_same_id(ngx_str_t *a, ngx_str_t *b);


#endif /* _NGX_MCP_JSON_H_INCLUDED_ */
