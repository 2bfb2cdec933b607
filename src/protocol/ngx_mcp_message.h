
/*
 * JSON-RPC 2.0 messages as MCP uses them: what a message is, the members that
 * decide about access and routing, and the messages that the module composes
 * itself.  All spans are raw and point into the text that was parsed.
 */

#ifndef _NGX_MCP_MESSAGE_H_INCLUDED_
#define _NGX_MCP_MESSAGE_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_json.h"


typedef enum {
    NGX_MCP_INVALID = 0,
    NGX_MCP_REQUEST,
    NGX_MCP_NOTIFICATION,
    NGX_MCP_RESPONSE,
    NGX_MCP_BATCH               /* an array; take its elements one by one */
} ngx_mcp_kind_e;


/* methods that something here knows; name, method */

#define NGX_MCP_METHODS(_)                                                    \
    _(INITIALIZE,         "initialize")                                       \
    _(PING,               "ping")                                             \
    _(TOOLS_LIST,         "tools/list")                                       \
    _(TOOLS_CALL,         "tools/call")                                       \
    _(PROMPTS_LIST,       "prompts/list")                                     \
    _(PROMPTS_GET,        "prompts/get")                                      \
    _(RESOURCES_LIST,     "resources/list")                                   \
    _(RESOURCES_TEMPLATES_LIST, "resources/templates/list")                   \
    _(RESOURCES_READ,     "resources/read")                                   \
    _(SUBSCRIBE,          "resources/subscribe")                              \
    _(UNSUBSCRIBE,        "resources/unsubscribe")                            \
    _(COMPLETE,           "completion/complete")                              \
    _(SET_LEVEL,          "logging/setLevel")                                 \
    _(INITIALIZED,        "notifications/initialized")                        \
    _(CANCELLED,          "notifications/cancelled")                          \
    _(PROGRESS,           "notifications/progress")                           \
    _(MESSAGE,            "notifications/message")                            \
    _(ROOTS_CHANGED,      "notifications/roots/list_changed")                 \
    _(TOOLS_CHANGED,      "notifications/tools/list_changed")                 \
    _(PROMPTS_CHANGED,    "notifications/prompts/list_changed")               \
    _(RESOURCES_CHANGED,  "notifications/resources/list_changed")             \
    _(RESOURCES_UPDATED,  "notifications/resources/updated")                  \
    _(SAMPLING,           "sampling/createMessage")                           \
    _(ELICITATION,        "elicitation/create")                               \
    _(ELICITATION_COMPLETE, "notifications/elicitation/complete")             \
    _(ROOTS_LIST,         "roots/list")                                       \
    _(DISCOVER,           "server/discover")                                  \
    _(LISTEN,             "subscriptions/listen")


#define NGX_MCP_METHOD_ENUM(name, method)  NGX_MCP_METHOD_ ## name,

typedef enum {
    NGX_MCP_METHOD_OTHER = 0,
    NGX_MCP_METHODS(NGX_MCP_METHOD_ENUM)
    NGX_MCP_METHOD_MAX
} ngx_mcp_method_e;


typedef struct {
    ngx_mcp_kind_e          kind;
    ngx_uint_t              method_code;  /* ngx_mcp_method_e */
    ngx_str_t               text;         /* the whole message, raw */
    ngx_str_t               id;           /* raw token or empty */
    ngx_str_t               method;       /* raw token with quotes, or empty */
    ngx_uint_t              modern;       /* carries the modern envelope */
    ngx_mcp_path_e          subject;      /* member that $mcp_name shows */
    ngx_mcp_json_t          json;         /* for the other members */
} ngx_mcp_message_t;


/*
 * Parses a message.  NGX_OK; else a JSON-RPC code (NGX_MCP_PARSE_ERROR or
 * NGX_MCP_INVALID_REQUEST) and *why, a sentence for the client.  id is set
 * also on an invalid request where it could be read and is a string or an
 * integer.  Refused: not an object, jsonrpc not "2.0", id null (except in an
 * error response, where it counts as absent), fractional or longer than
 * NGX_MCP_ID_MAX, a result without id, both or neither of method and
 * result/error, a duplicate of any member that routing looks at, params that
 * are no object, half a surrogate pair in method or id, a control character in
 * method, params.name or params.uri.
 */
ngx_int_t ngx_mcp_message_parse(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why);

/* likewise where m->json is the scan of the text already */
ngx_int_t ngx_mcp_message_parse_scanned(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why);

/*
 * Likewise a message of a client, which upstreams are to understand as it is
 * understood here; the code may be NGX_MCP_INVALID_PARAMS as well.  Refused,
 * too: a member that other parsers may take for one that routing looks at,
 * half a surrogate pair in one, more than one of the members that say what a
 * method acts on (params.name, params.uri and both of params.ref), one that is
 * no string, a method of MCP without its own of them or with an empty one.
 * m->subject is the path of that member, or NGX_MCP_PATH_NONE.
 */
ngx_int_t ngx_mcp_message_parse_client(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why);

/* raw span of a member; len 0 when absent */
#define ngx_mcp_message_member(m, path)                                       \
    ngx_mcp_json_span(&(m)->json, path, (m)->text.data)

/*
 * A member that is a JSON string, decoded into pool; data NULL when it is
 * absent or no string (or when memory ran out).
 */
ngx_str_t ngx_mcp_message_string(ngx_mcp_message_t *m, ngx_mcp_path_e path,
    ngx_pool_t *pool);

/* "2025-06-18" and back, "" for none; raw tokens with quotes are not taken */
ngx_mcp_revision_e ngx_mcp_revision_parse(ngx_str_t *text);
ngx_str_t *ngx_mcp_revision_name(ngx_uint_t revision);

/* level name to ngx_mcp_level_e, NGX_MCP_LEVEL_UNSET if it is none */
ngx_uint_t ngx_mcp_level_parse(ngx_str_t *text);

/* decoded method to ngx_mcp_method_e and back; "" is the name of the others */
ngx_uint_t ngx_mcp_method_parse(ngx_str_t *text);
ngx_str_t *ngx_mcp_method_name(ngx_uint_t code);

/* those of a message that was scanned: its method, and params.level */
ngx_uint_t ngx_mcp_method_of(ngx_mcp_json_t *json, ngx_str_t *text);
ngx_uint_t ngx_mcp_level_of(ngx_mcp_json_t *json, ngx_str_t *text);

/* "debug" ... "emergency"; NULL for UNSET */
ngx_str_t *ngx_mcp_level_name(ngx_uint_t level);


/*
 * Composes an error message into pool.  id: raw token or empty; how an
 * unreadable id is said depends on the revision (left out, or null before
 * 2025-11-25).  data: raw JSON for error.data, or NULL.  NULL data in the
 * returned string means that memory ran out.
 */
ngx_str_t ngx_mcp_error_compose(ngx_pool_t *pool, ngx_uint_t revision,
    ngx_str_t *id, ngx_int_t code, ngx_str_t *message, ngx_str_t *data);

/* a request, or a notification if id is empty; params: raw, or empty */
ngx_str_t ngx_mcp_request_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *method, ngx_str_t *params);

/* the raw params of a request that is about a resource */
ngx_str_t ngx_mcp_uri_compose(ngx_pool_t *pool, ngx_str_t *uri);

/* a response with a raw result */
ngx_str_t ngx_mcp_result_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *result);

/* an error response with a raw "error" */
ngx_str_t ngx_mcp_refusal_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *error);

/*
 * A scanned message with this raw value instead of the members at two paths
 * (the second may be NGX_MCP_PATH_NONE), which are there.
 */
ngx_str_t ngx_mcp_message_replace(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_json_t *json, ngx_mcp_path_e *paths, ngx_str_t *value);


#endif /* _NGX_MCP_MESSAGE_H_INCLUDED_ */
