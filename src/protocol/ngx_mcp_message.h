
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


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
    NGX_MCP_BATCH               /* an array; the caller parses its elements */
} ngx_mcp_kind_e;


/* methods that the module knows: name of the constant, method */

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
    ngx_mcp_kind_e          kind;         /* kind of the message */
    ngx_uint_t              method_code;  /* ngx_mcp_method_e */
    ngx_str_t               text;         /* the whole message, raw */
    ngx_str_t               id;           /* raw token, or empty */
    ngx_str_t               method;       /* raw token with quotes, or empty */
    ngx_uint_t              modern;       /* the message has an envelope of
                                             revision 2026-07-28 */
    ngx_mcp_path_e          subject;      /* path of the subject, see
                                             ngx_mcp_message_parse_client() */
    ngx_mcp_json_t          json;         /* scan of the text */
} ngx_mcp_message_t;


/*
 * Parses a message.  Returns NGX_OK, or a JSON-RPC code (NGX_MCP_PARSE_ERROR
 * or NGX_MCP_INVALID_REQUEST); *why is then a sentence for the client.  m->id
 * is set for an invalid request, too, if it could be read and is a string or
 * an integer.  Refused: not an object, jsonrpc not "2.0", id null (except in
 * an error response, where it counts as absent), fractional or longer than
 * NGX_MCP_ID_MAX, a result without id, both or neither of method and
 * result/error, a duplicate of any member that routing uses, params that are no
 * object, half a surrogate pair in method or id, a control character in method,
 * params.name or params.uri.
 */
ngx_int_t ngx_mcp_message_parse(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why);

/* like ngx_mcp_message_parse(), for a text that m->json has scanned */
ngx_int_t ngx_mcp_message_parse_scanned(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why);

/*
 * Parses a message of a client, as ngx_mcp_message_parse(), but more strictly,
 * so that upstreams understand it in the same way as the module.  The code may
 * be NGX_MCP_INVALID_PARAMS, too.
 *
 * The subject of a message is the member that names the object of its method:
 * params.name, params.uri, params.ref.name or params.ref.uri.  m->subject
 * becomes its path, or NGX_MCP_PATH_NONE.  Also refused: a member that other
 * parsers may confuse with one that routing uses, half a surrogate pair in such
 * a member, several subjects, a subject that is no string, a method of MCP
 * without its subject or with an empty one, a request of MCP without id.
 */
ngx_int_t ngx_mcp_message_parse_client(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why);

/* returns 1 for a message without id whose method MCP defines as a request */
ngx_uint_t ngx_mcp_message_lacks_id(ngx_mcp_message_t *m);

/* the raw text of a member; len 0: it is absent */
#define ngx_mcp_message_member(m, path)                                       \
    ngx_mcp_json_span(&(m)->json, path, (m)->text.data)

/*
 * Decodes a member that is a JSON string; the value is in the message's text,
 * or in pool if it has escapes.  data NULL: the member is absent or no string,
 * or there is no memory.
 */
ngx_str_t ngx_mcp_message_string(ngx_mcp_message_t *m, ngx_mcp_path_e path,
    ngx_pool_t *pool);

/*
 * Turn a text such as "2025-06-18", without quotes, into a revision, and back;
 * NGX_MCP_REVISION_UNKNOWN has the name "".
 */
ngx_mcp_revision_e ngx_mcp_revision_parse(ngx_str_t *text);
ngx_str_t *ngx_mcp_revision_name(ngx_uint_t revision);

/* the ngx_mcp_level_e of a decoded name; NGX_MCP_LEVEL_UNSET: no such level */
ngx_uint_t ngx_mcp_level_parse(ngx_str_t *text);

/*
 * Turn a decoded method into ngx_mcp_method_e, and back; NGX_MCP_METHOD_OTHER
 * has the name "".
 */
ngx_uint_t ngx_mcp_method_parse(ngx_str_t *text);
ngx_str_t *ngx_mcp_method_name(ngx_uint_t code);

/* the ngx_mcp_method_e of a raw JSON string, which may have escapes */
ngx_uint_t ngx_mcp_method_raw(ngx_str_t *raw);

/*
 * The ngx_mcp_method_e of the method, and the ngx_mcp_level_e of params.level,
 * of a scanned message.
 */
ngx_uint_t ngx_mcp_method_of(ngx_mcp_json_t *json, ngx_str_t *text);
ngx_uint_t ngx_mcp_level_of(ngx_mcp_json_t *json, ngx_str_t *text);

/* the name of a level, "debug" ... "emergency"; NULL: it is UNSET */
ngx_str_t *ngx_mcp_level_name(ngx_uint_t level);


/* the number of a raw error code; 0: the code is 0, or no integer */
ngx_int_t ngx_mcp_error_code(ngx_str_t *raw);

/*
 * Returns whether the scanned message has an error as JSON-RPC wants it: an
 * object with an integer code and a string message.
 */
ngx_uint_t ngx_mcp_error_valid(ngx_mcp_json_t *json, ngx_str_t *text);

/*
 * The functions below compose messages from pool.  If data of the returned
 * string is NULL, there is no memory.
 */

/*
 * Composes an error response.  id: raw token, or empty if it could not be
 * read: it is left out then, or null before revision 2025-11-25.  data: raw
 * JSON for error.data, or NULL.
 */
ngx_str_t ngx_mcp_error_compose(ngx_pool_t *pool, ngx_uint_t revision,
    ngx_str_t *id, ngx_int_t code, ngx_str_t *message, ngx_str_t *data);

/* composes a request, a notification if id is empty; params: raw or empty */
ngx_str_t ngx_mcp_request_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *method, ngx_str_t *params);

/* composes raw params with this "uri" */
ngx_str_t ngx_mcp_uri_compose(ngx_pool_t *pool, ngx_str_t *uri);

/* composes a response with a raw result */
ngx_str_t ngx_mcp_result_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *result);

/* composes an error response with a raw "error" */
ngx_str_t ngx_mcp_refusal_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *error);

/*
 * Copies a scanned message with a raw value in place of the values of two
 * members, which must be present.  The second path may be NGX_MCP_PATH_NONE.
 */
ngx_str_t ngx_mcp_message_replace(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_json_t *json, ngx_mcp_path_e *paths, ngx_str_t *value);


#endif /* _NGX_MCP_MESSAGE_H_INCLUDED_ */
