
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_builtin.h"
#include "ngx_http_mcp_topic.h"
#include "ngx_mcp_splice.h"


/* seconds; default and maximum of timeout_seconds */
#define NGX_HTTP_MCP_WAIT_DEFAULT  30
#define NGX_HTTP_MCP_WAIT_MAX      600

/* bytes of "match", at most */
#define NGX_HTTP_MCP_WAIT_MATCH    4096


/* the raw arguments of wait_for_event; empty: absent */

typedef struct {
    ngx_str_t                 topic;
    ngx_str_t                 uri;
    ngx_str_t                 name;
    ngx_str_t                 match;
    ngx_str_t                 params;
    ngx_str_t                 timeout;
    ngx_str_t                 after;
} ngx_http_mcp_builtin_args_t;


typedef struct {
    ngx_uint_t               method;
    ngx_str_t                key;         /* raw */
} ngx_http_mcp_list_key_t;


static const char *ngx_http_mcp_builtin_args(ngx_str_t *arguments,
    ngx_http_mcp_builtin_args_t *args);
static const char *ngx_http_mcp_builtin_resource(
    ngx_http_mcp_bridge_t *bridge, ngx_http_mcp_builtin_args_t *args,
    ngx_http_mcp_wait_t *w, ngx_str_t *name);
static const char *ngx_http_mcp_builtin_match(
    ngx_http_mcp_builtin_args_t *args, ngx_http_mcp_wait_t *w,
    ngx_int_t *code);
static ngx_int_t ngx_http_mcp_builtin_seconds(ngx_str_t *raw,
    ngx_msec_t *timeout);
static ngx_int_t ngx_http_mcp_builtin_position(ngx_str_t *raw,
    uint64_t *position);
static ngx_str_t ngx_http_mcp_builtin_result(ngx_pool_t *pool,
    ngx_str_t *structured);
static ngx_int_t ngx_http_mcp_builtin_client(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool, ngx_str_t *client);
static ngx_int_t ngx_http_mcp_builtin_describe(ngx_str_t *info,
    ngx_str_t *capabilities, ngx_pool_t *pool, ngx_str_t *client);
static ngx_int_t ngx_http_mcp_builtin_subscriptions(
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller,
    ngx_pool_t *pool, ngx_str_t *list);
static u_char *ngx_http_mcp_builtin_time(u_char *p, uint64_t msec);
static ngx_str_t *ngx_http_mcp_list_edit_key(ngx_uint_t method);
static ngx_int_t ngx_http_mcp_list_edit_prepend(
    ngx_http_mcp_list_edit_t *edit, ngx_str_t *key, ngx_str_t *result);
static ngx_int_t ngx_http_mcp_list_edit_tools(
    ngx_http_mcp_list_edit_t *edit, ngx_str_t *key, ngx_str_t *result);
static u_char *ngx_http_mcp_list_edit_builtins(
    ngx_http_mcp_list_edit_t *edit, u_char *p);
static u_char *ngx_http_mcp_list_edit_filter(ngx_http_mcp_list_edit_t *edit,
    u_char *p, ngx_str_t *rest);
static u_char *ngx_http_mcp_list_edit_copy(u_char *p, u_char *from,
    u_char *to);
static ngx_int_t ngx_http_mcp_list_edit_tool(ngx_http_mcp_list_edit_t *edit,
    ngx_str_t *raw);


static ngx_http_mcp_list_key_t  ngx_http_mcp_list_keys[] = {
    { NGX_MCP_METHOD_TOOLS_LIST, ngx_string("\"tools\"") },
    { NGX_MCP_METHOD_RESOURCES_LIST, ngx_string("\"resources\"") },
    { NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST,
      ngx_string("\"resourceTemplates\"") },
    { NGX_MCP_METHOD_OTHER, ngx_null_string }
};


/* entry of wait_for_event; since: a text about the oldest event it returns */

#define NGX_HTTP_MCP_BUILTIN_WAIT(since)                                      \
    "{\"name\":\"wait_for_event\",\"title\":\"Wait for an event\","           \
    "\"description\":\"Waits until something happens and returns it. Use it " \
    "instead of asking again and again whether something is done or has "     \
    "changed. Name a topic, or the URI of a resource whose next update you "  \
    "wait for. "                                                              \
    since                                                                     \
    "if there is none yet, the call waits for up to timeout_seconds. "        \
    "To get the next event, call again with the returned position as "        \
    "'after'. A result with timeout true means that nothing came yet (it "    \
    "may come early): call again with its position if you still need to "     \
    "wait.\","                                                                \
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"                   \
    "\"topic\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":512,"       \
    "\"description\":\"Name of the topic, which may contain slashes. Give "   \
    "either topic or uri.\"},"                                                \
    "\"uri\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":2048,"        \
    "\"description\":\"URI of a resource, to wait for its next update.\"},"   \
    "\"event_name\":{\"type\":\"string\",\"minLength\":1,"                    \
    "\"description\":\"Only events with this name as their event_name, "      \
    "event, kind or method.\"},"                                              \
    "\"match\":{\"type\":\"object\",\"maxProperties\":16,"                    \
    "\"description\":\"Only events that have all of these fields with these " \
    "values, at their top level, else in their params, else in their "        \
    "payload. The name of a field may be a path: a.b is b in a.\"},"          \
    "\"match_params\":{\"type\":\"object\",\"maxProperties\":16,"             \
    "\"description\":\"The same as match.\"},"                                \
    "\"timeout_seconds\":{\"type\":\"number\",\"minimum\":0,"                 \
    "\"maximum\":600,\"default\":30,\"description\":\"How long to wait at "   \
    "most.\"},"                                                               \
    "\"after\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Only "   \
    "events behind this position, which an earlier call returned.\"}},"       \
    "\"additionalProperties\":false},"                                        \
    "\"outputSchema\":{\"type\":\"object\",\"properties\":{"                  \
    "\"event\":{\"type\":\"object\",\"description\":\"The event; absent "     \
    "when no event came in time.\"},"                                         \
    "\"position\":{\"type\":\"integer\",\"description\":\"Pass it as "        \
    "'after' to go on from here.\"},"                                         \
    "\"timeout\":{\"type\":\"boolean\",\"description\":\"True when nothing "  \
    "came in time.\"},"                                                       \
    "\"missed\":{\"type\":\"boolean\",\"description\":\"True when events "    \
    "between 'after' and this one are no longer kept.\"}},"                   \
    "\"required\":[\"position\"],\"additionalProperties\":false},"            \
    "\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false,"       \
    "\"idempotentHint\":true,\"openWorldHint\":false}}"


ngx_http_mcp_builtin_t  ngx_http_mcp_builtins[] = {

    { NGX_HTTP_MCP_TOOL_WAIT, ngx_string("wait_for_event"), ngx_string(
      NGX_HTTP_MCP_BUILTIN_WAIT(
      "The first matching event since this session began is returned at once, "
      "or the first behind the position 'after'; ")), ngx_string(
      NGX_HTTP_MCP_BUILTIN_WAIT(
      "The next matching event from now on is returned, or the first behind "
      "the position 'after' (0: of all that are kept); ")) },

    { NGX_HTTP_MCP_TOOL_SESSION, ngx_string("session_info"), ngx_string(
      "{\"name\":\"session_info\",\"title\":\"About this session\","
      "\"description\":\"Returns information about the MCP session of this "
      "client: its start, the client's name and capabilities, its "
      "subscriptions, the numbers of its calls and events, and the time until "
      "it ends when nothing more is sent. Use it to find out why "
      "notifications do not arrive, or whether the session is still the "
      "same.\","
      "\"inputSchema\":{\"type\":\"object\",\"properties\":{},"
      "\"additionalProperties\":false},"
      "\"outputSchema\":{\"type\":\"object\",\"properties\":{"
      "\"session_id\":{\"type\":\"string\"},"
      "\"endpoint\":{\"type\":\"string\"},"
      "\"created\":{\"type\":\"string\",\"format\":\"date-time\"},"
      "\"last_seen\":{\"type\":\"string\",\"format\":\"date-time\","
      "\"description\":\"Time of the request before this one.\"},"
      "\"duration_seconds\":{\"type\":\"integer\"},"
      "\"protocol_version\":{\"type\":\"string\"},"
      "\"client\":{\"type\":\"object\",\"description\":\"clientInfo and "
      "capabilities, as they were given to initialize.\"},"
      "\"log_level\":{\"type\":\"string\",\"description\":\"The "
      "level that logging/setLevel set.\"},"
      "\"subscriptions\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
      "\"description\":\"URIs.\"},"
      "\"open_streams\":{\"type\":\"integer\",\"description\":\"GET streams, "
      "on which notifications arrive.\"},"
      "\"running_calls\":{\"type\":\"integer\"},"
      "\"calls\":{\"type\":\"integer\",\"description\":\"Number of calls.\"},"
      "\"events\":{\"type\":\"integer\",\"description\":\"Number of events "
      "sent on streams.\"},"
      "\"time_left_seconds\":{\"type\":\"integer\",\"description\":\"Time "
      "until the session ends when nothing is sent and no stream is open.\"}},"
      "\"required\":[\"session_id\",\"endpoint\",\"created\",\"last_seen\","
      "\"duration_seconds\",\"protocol_version\",\"client\","
      "\"subscriptions\",\"open_streams\",\"running_calls\",\"calls\","
      "\"events\",\"time_left_seconds\"],\"additionalProperties\":false},"
      "\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false,"
      "\"idempotentHint\":true,\"openWorldHint\":false}}"), ngx_string(
      "{\"name\":\"session_info\",\"title\":\"About this client\","
      "\"description\":\"Returns what the server knows of this client: name, "
      "capabilities, and limits. There is no session: each request is on its "
      "own.\","
      "\"inputSchema\":{\"type\":\"object\",\"properties\":{},"
      "\"additionalProperties\":false},"
      "\"outputSchema\":{\"type\":\"object\",\"properties\":{"
      "\"session\":{\"const\":false},"
      "\"endpoint\":{\"type\":\"string\"},"
      "\"tenant\":{\"type\":\"string\"},"
      "\"protocol_version\":{\"type\":\"string\"},"
      "\"client\":{\"type\":\"object\",\"description\":\"clientInfo and "
      "capabilities of this request.\"},"
      "\"log_level\":{\"type\":\"string\",\"description\":\"Of this "
      "request.\"},"
      "\"running_calls_limit\":{\"type\":\"integer\"},"
      "\"subscriptions_limit\":{\"type\":\"integer\"}},"
      "\"required\":[\"session\",\"endpoint\",\"protocol_version\","
      "\"client\",\"running_calls_limit\",\"subscriptions_limit\"],"
      "\"additionalProperties\":false},"
      "\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false,"
      "\"idempotentHint\":true,\"openWorldHint\":false}}") },

    { 0, ngx_null_string, ngx_null_string, ngx_null_string }
};


ngx_http_mcp_builtin_t *
ngx_http_mcp_builtin(ngx_http_mcp_bridge_t *bridge, ngx_str_t *name)
{
    ngx_http_mcp_builtin_t  *tool;

    for (tool = ngx_http_mcp_builtins; tool->name.len; tool++) {

        if (bridge->tools & tool->bit && ngx_mcp_equal(&tool->name, name)) {
            return tool;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_builtin_arguments(ngx_str_t *params, ngx_str_t *arguments)
{
    ngx_str_t         rest, name, value;
    static ngx_str_t  key = ngx_string("\"arguments\"");

    arguments->data = (u_char *) "";
    arguments->len = 0;

    rest = *params;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
        if (ngx_mcp_json_same_id(&name, &key)) {
            *arguments = value;
        }
    }

    return (arguments->len == 0 || arguments->data[0] == '{') ? NGX_OK
                                                              : NGX_DECLINED;
}


static const char *
ngx_http_mcp_builtin_args(ngx_str_t *arguments,
    ngx_http_mcp_builtin_args_t *args)
{
    ngx_str_t   rest, name, value;
    ngx_uint_t  i;

    static struct {
        ngx_str_t    name;
        size_t       offset;
    } known[] = {
        { ngx_string("\"topic\""),
          offsetof(ngx_http_mcp_builtin_args_t, topic) },
        { ngx_string("\"uri\""),
          offsetof(ngx_http_mcp_builtin_args_t, uri) },
        { ngx_string("\"event_name\""),
          offsetof(ngx_http_mcp_builtin_args_t, name) },
        { ngx_string("\"match\""),
          offsetof(ngx_http_mcp_builtin_args_t, match) },
        { ngx_string("\"match_params\""),
          offsetof(ngx_http_mcp_builtin_args_t, params) },
        { ngx_string("\"timeout_seconds\""),
          offsetof(ngx_http_mcp_builtin_args_t, timeout) },
        { ngx_string("\"after\""),
          offsetof(ngx_http_mcp_builtin_args_t, after) },
        { ngx_null_string, 0 }
    };

    ngx_memzero(args, sizeof(ngx_http_mcp_builtin_args_t));

    rest = *arguments;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        for (i = 0; known[i].name.len; i++) {
            if (ngx_mcp_json_same_id(&name, &known[i].name)) {
                break;
            }
        }

        if (known[i].name.len == 0) {
            return "there is an unknown argument; the arguments are topic, "
                   "uri, event_name, match, match_params, timeout_seconds and "
                   "after";
        }

        /* some clients send null for an argument that is not given */

        if (value.data[0] == 'n') {
            ngx_str_null(&value);
        }

        *(ngx_str_t *) ((u_char *) args + known[i].offset) = value;
    }

    return NULL;
}


const char *
ngx_http_mcp_builtin_wait_parse(ngx_http_mcp_bridge_t *bridge,
    ngx_str_t *arguments, ngx_http_mcp_wait_t *w, ngx_str_t *name,
    ngx_int_t *code)
{
    const char                   *why;
    ngx_http_mcp_builtin_args_t   args;

    *code = 0;
    why = ngx_http_mcp_builtin_args(arguments, &args);

    if (why == NULL) {
        why = ngx_http_mcp_builtin_resource(bridge, &args, w, name);
    }

    if (why) {
        return why;
    }

    if (args.name.len) {

        if (args.name.data[0] != '"' || args.name.len == 2) {
            return "event_name must be a string that is not empty";
        }

        w->name = args.name;
    }

    why = ngx_http_mcp_builtin_match(&args, w, code);

    if (why) {
        return why;
    }

    w->timeout = NGX_HTTP_MCP_WAIT_DEFAULT * 1000;

    if (args.timeout.len
        && ngx_http_mcp_builtin_seconds(&args.timeout, &w->timeout) != NGX_OK)
    {
        return "timeout_seconds must be a number from 0 to 600";
    }

    w->after = NGX_MCP_TOPIC_BEGIN;

    if (args.after.len
        && ngx_http_mcp_builtin_position(&args.after, &w->after) != NGX_OK)
    {
        return "after must be a position that an earlier call returned";
    }

    return NULL;
}


static const char *
ngx_http_mcp_builtin_match(ngx_http_mcp_builtin_args_t *args,
    ngx_http_mcp_wait_t *w, ngx_int_t *code)
{
    ngx_str_t   rest, name, value;
    ngx_uint_t  n;

    w->match = args->match;

    if (args->params.len) {

        if (args->match.len) {
            return "give either match or match_params, which are the same";
        }

        w->match = args->params;
    }

    if (w->match.len == 0) {
        return NULL;
    }

    if (w->match.data[0] != '{') {
        return "match must be an object";
    }

    if (w->match.len > NGX_HTTP_MCP_WAIT_MATCH) {
        return "match must not be longer than 4096 bytes";
    }

    rest = w->match;

    for (n = 0; ngx_mcp_json_member(&rest, &name, &value) == NGX_OK; n++) {

        if (n == NGX_HTTP_MCP_WAIT_FIELDS) {
            *code = NGX_MCP_INVALID_PARAMS;
            return "match must not have more than 16 fields";
        }
    }

    return NULL;
}


static const char *
ngx_http_mcp_builtin_resource(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_builtin_args_t *args, ngx_http_mcp_wait_t *w,
    ngx_str_t *name)
{
    ngx_int_t  rc;
    ngx_str_t  uri;

    if ((args->topic.len == 0) == (args->uri.len == 0)) {
        return "give either topic or uri";
    }

    if (args->uri.len) {
        rc = ngx_mcp_json_text(w->pool, &args->uri, &uri);

        if (rc == NGX_DECLINED
            || (rc == NGX_OK
                && (uri.len == 0 || uri.len > NGX_MCP_TOPIC_URI_MAX)))
        {
            return "uri must be a string of 1 to 2048 bytes";
        }

        if (ngx_mcp_json_control(&args->uri)) {
            return "uri must not have control characters";
        }

    } else {
        rc = ngx_mcp_json_text(w->pool, &args->topic, name);

        if (rc == NGX_OK) {
            rc = name->len ? ngx_http_mcp_topic_uri(name, w->pool, &uri)
                           : NGX_DECLINED;
        }

        if (rc == NGX_DECLINED) {
            return "topic must be a string of 1 to 512 bytes without control "
                   "characters";
        }
    }

    if (rc != NGX_OK
        || ngx_http_mcp_topic_resolve(bridge, &uri, w->pool, &w->topic, name)
           != NGX_OK)
    {
        return "nginx is out of memory; try again later";
    }

    return NULL;
}


/* reads seconds, with up to three decimal places, as ms */

static ngx_int_t
ngx_http_mcp_builtin_seconds(ngx_str_t *raw, ngx_msec_t *timeout)
{
    size_t     len;
    u_char    *point;
    ngx_int_t  n;

    point = ngx_strlchr(raw->data, raw->data + raw->len, '.');
    len = point ? (size_t) (point - raw->data) : raw->len;

    n = ngx_atofp(raw->data, ngx_min(raw->len, len + 4), 3);

    if (n == NGX_ERROR || n > NGX_HTTP_MCP_WAIT_MAX * 1000) {
        return NGX_DECLINED;
    }

    *timeout = n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_builtin_position(ngx_str_t *raw, uint64_t *position)
{
    off_t  n;

    n = ngx_atoof(raw->data, raw->len);

    if (n == NGX_ERROR) {
        return NGX_DECLINED;
    }

    *position = (uint64_t) n;

    return NGX_OK;
}


ngx_str_t
ngx_http_mcp_builtin_wait_result(ngx_http_mcp_wait_t *w, ngx_int_t rc)
{
    u_char     *p;
    ngx_str_t   out, none;

    ngx_str_null(&none);

    switch (rc) {

    case NGX_BUSY:
        return ngx_http_mcp_builtin_error(w->pool, NGX_HTTP_MCP_TOPICS_BUSY);

    case NGX_OK:
    case NGX_AGAIN:
        break;

    default:
        return ngx_http_mcp_builtin_error(w->pool, "the zone has no room for "
                                                   "another waiting call; try "
                                                   "again later");
    }

    p = ngx_pnalloc(w->pool, sizeof("{\"event\":,\"position\":,"
                                    "\"missed\":true}") - 1
                             + w->event.len + NGX_INT64_LEN
                             + sizeof("\"timeout\":true"));
    if (p == NULL) {
        return none;
    }

    out.data = p;

    if (rc == NGX_OK) {
        p = ngx_cpymem(p, "{\"event\":", sizeof("{\"event\":") - 1);
        p = ngx_cpymem(p, w->event.data, w->event.len);

    } else {
        p = ngx_cpymem(p, "{\"timeout\":true", sizeof("{\"timeout\":true") - 1);
    }

    p = ngx_sprintf(p, ",\"position\":%uL%s}", w->after,
                    w->missed ? ",\"missed\":true" : "");

    out.len = p - out.data;

    return ngx_http_mcp_builtin_result(w->pool, &out);
}


/*
 * Composes a result of the raw object as "structuredContent", and as text in
 * "content" for clients that do not read the former.
 */

static ngx_str_t
ngx_http_mcp_builtin_result(ngx_pool_t *pool, ngx_str_t *structured)
{
    u_char     *p;
    ngx_str_t   result;

    result.len = sizeof("{\"content\":[{\"type\":\"text\",\"text\":}],"
                        "\"structuredContent\":}") - 1
                 + ngx_mcp_json_escaped_len(structured) + structured->len;

    p = ngx_pnalloc(pool, result.len);
    result.data = p;

    if (p == NULL) {
        return result;
    }

    p = ngx_cpymem(p, "{\"content\":[{\"type\":\"text\",\"text\":",
                   sizeof("{\"content\":[{\"type\":\"text\",\"text\":") - 1);
    p = ngx_mcp_json_escape(p, structured);
    p = ngx_cpymem(p, "}],\"structuredContent\":",
                   sizeof("}],\"structuredContent\":") - 1);
    p = ngx_cpymem(p, structured->data, structured->len);
    *p++ = '}';

    result.len = p - result.data;

    return result;
}


ngx_str_t
ngx_http_mcp_builtin_error(ngx_pool_t *pool, const char *text)
{
    u_char     *p;
    ngx_str_t   result, str;

    str.data = (u_char *) text;
    str.len = ngx_strlen(text);

    p = ngx_pnalloc(pool, sizeof("{\"content\":[{\"type\":\"text\",\"text\":}"
                                 "],\"isError\":true}") - 1
                          + ngx_mcp_json_escaped_len(&str));
    result.data = p;
    result.len = 0;

    if (p == NULL) {
        return result;
    }

    p = ngx_cpymem(p, "{\"content\":[{\"type\":\"text\",\"text\":",
                   sizeof("{\"content\":[{\"type\":\"text\",\"text\":") - 1);
    p = ngx_mcp_json_escape(p, &str);
    p = ngx_cpymem(p, "}],\"isError\":true}",
                   sizeof("}],\"isError\":true}") - 1);

    result.len = p - result.data;

    return result;
}


ngx_str_t
ngx_http_mcp_builtin_session_info(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool)
{
    u_char                    *p;
    uint64_t                   now;
    ngx_str_t                  out, none, client, subscriptions, *id, *level;
    ngx_time_t                *tp;
    ngx_mcp_session_t         *session;
    ngx_mcp_session_info_t     info;

    ngx_str_null(&none);

    id = &caller->session_id;
    session = caller->found;

    if (session == NULL
        || ngx_mcp_session_info(bridge->zone, session->ref, &info) != NGX_OK
        || ngx_http_mcp_builtin_client(bridge, caller, pool, &client)
           != NGX_OK
        || ngx_http_mcp_builtin_subscriptions(bridge, caller, pool,
                                              &subscriptions)
           != NGX_OK)
    {
        return none;
    }

    p = ngx_pnalloc(pool, 1024 + id->len + client.len + subscriptions.len
                          + ngx_mcp_json_escaped_len(&bridge->endpoint));
    if (p == NULL) {
        return none;
    }

    out.data = p;

    tp = ngx_timeofday();
    now = (uint64_t) tp->sec * 1000 + tp->msec;
    level = ngx_mcp_level_name(info.level);

    p = ngx_sprintf(p, "{\"session_id\":\"%V\",\"endpoint\":", id);
    p = ngx_mcp_json_escape(p, &bridge->endpoint);
    p = ngx_cpymem(p, ",\"created\":", sizeof(",\"created\":") - 1);
    p = ngx_http_mcp_builtin_time(p, session->created);
    p = ngx_cpymem(p, ",\"last_seen\":", sizeof(",\"last_seen\":") - 1);
    p = ngx_http_mcp_builtin_time(p, session->before);

    p = ngx_sprintf(p, ",\"duration_seconds\":%uL,\"protocol_version\":\"%V\""
                       ",\"client\":%V",
                    (now - ngx_min(now, session->created)) / 1000,
                    ngx_mcp_revision_name(caller->revision), &client);

    if (level) {
        p = ngx_sprintf(p, ",\"log_level\":\"%V\"", level);
    }

    p = ngx_sprintf(p, ",\"subscriptions\":%V,\"open_streams\":%ui,"
                       "\"running_calls\":%ui,\"calls\":%ui,\"events\":%uL,"
                       "\"time_left_seconds\":%M}",
                    &subscriptions, info.streams, info.running, info.calls,
                    info.events, info.timeout / 1000);

    out.len = p - out.data;

    return ngx_http_mcp_builtin_result(pool, &out);
}


ngx_str_t
ngx_http_mcp_builtin_caller_info(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_http_mcp_builtin_caller_t *data,
    ngx_pool_t *pool)
{
    u_char     *p;
    ngx_str_t   out, client, info, capabilities, *level;

    ngx_str_set(&info, "{}");
    ngx_str_set(&capabilities, "{}");

    if (data->client.len) {
        info = data->client;
    }

    if (caller->capabilities.len) {
        capabilities = caller->capabilities;
    }

    ngx_str_null(&out);

    if (ngx_http_mcp_builtin_describe(&info, &capabilities, pool, &client)
        != NGX_OK)
    {
        return out;
    }

    p = ngx_pnalloc(pool, 512 + client.len
                          + ngx_mcp_json_escaped_len(&bridge->endpoint)
                          + ngx_mcp_json_escaped_len(&caller->tenant));
    if (p == NULL) {
        return out;
    }

    out.data = p;

    p = ngx_cpymem(p, "{\"session\":false,\"endpoint\":",
                   sizeof("{\"session\":false,\"endpoint\":") - 1);
    p = ngx_mcp_json_escape(p, &bridge->endpoint);

    if (caller->tenant.len) {
        p = ngx_cpymem(p, ",\"tenant\":", sizeof(",\"tenant\":") - 1);
        p = ngx_mcp_json_escape(p, &caller->tenant);
    }

    p = ngx_sprintf(p, ",\"protocol_version\":\"%V\",\"client\":%V",
                    ngx_mcp_revision_name(caller->revision), &client);

    level = ngx_mcp_level_name(caller->level);

    if (level) {
        p = ngx_sprintf(p, ",\"log_level\":\"%V\"", level);
    }

    p = ngx_sprintf(p, ",\"running_calls_limit\":%ui,"
                       "\"subscriptions_limit\":%ui}",
                    data->calls, data->subscriptions);

    out.len = p - out.data;

    return ngx_http_mcp_builtin_result(pool, &out);
}


/* composes clientInfo and capabilities, as the client sent in initialize */

static ngx_int_t
ngx_http_mcp_builtin_client(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool, ngx_str_t *client)
{
    ngx_str_t  params, rest, name, value, info, capabilities;

    static ngx_str_t  key_info = ngx_string("\"clientInfo\"");
    static ngx_str_t  key_capabilities = ngx_string("\"capabilities\"");

    if (ngx_mcp_session_initialize(bridge->zone, caller->session, pool, &params,
                                   NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_set(&info, "{}");
    ngx_str_set(&capabilities, "{}");

    rest = params;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (ngx_mcp_json_same_id(&name, &key_info)) {
            info = value;

        } else if (ngx_mcp_json_same_id(&name, &key_capabilities)) {
            capabilities = value;
        }
    }

    return ngx_http_mcp_builtin_describe(&info, &capabilities, pool, client);
}


/* composes {"info":{...},"capabilities":{...}} */

static ngx_int_t
ngx_http_mcp_builtin_describe(ngx_str_t *info, ngx_str_t *capabilities,
    ngx_pool_t *pool, ngx_str_t *client)
{
    u_char  *p;

    p = ngx_pnalloc(pool, sizeof("{\"info\":,\"capabilities\":}") - 1
                          + info->len + capabilities->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    client->data = p;

    p = ngx_cpymem(p, "{\"info\":", sizeof("{\"info\":") - 1);
    p = ngx_cpymem(p, info->data, info->len);
    p = ngx_cpymem(p, ",\"capabilities\":", sizeof(",\"capabilities\":") - 1);
    p = ngx_cpymem(p, capabilities->data, capabilities->len);
    *p++ = '}';

    client->len = p - client->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_builtin_subscriptions(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool, ngx_str_t *list)
{
    u_char       *p;
    size_t        len;
    ngx_str_t    *uri;
    ngx_uint_t    i;
    ngx_array_t   uris;

    if (ngx_array_init(&uris, pool, 8, sizeof(ngx_str_t)) != NGX_OK) {
        return NGX_ERROR;
    }

    len = 2;

    for (i = 0; /* void */ ; i++) {

        uri = ngx_array_push(&uris);
        if (uri == NULL) {
            return NGX_ERROR;
        }

        if (ngx_mcp_session_subscription(bridge->zone, caller->session, i, pool,
                                         uri)
            != NGX_OK)
        {
            uris.nelts--;
            break;
        }

        len += ngx_mcp_json_escaped_len(uri) + 1;
    }

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    list->data = p;
    *p++ = '[';

    uri = uris.elts;

    for (i = 0; i < uris.nelts; i++) {

        if (i) {
            *p++ = ',';
        }

        p = ngx_mcp_json_escape(p, &uri[i]);
    }

    *p++ = ']';
    list->len = p - list->data;

    return NGX_OK;
}


static u_char *
ngx_http_mcp_builtin_time(u_char *p, uint64_t msec)
{
    ngx_tm_t  tm;

    ngx_gmtime((time_t) (msec / 1000), &tm);

    return ngx_sprintf(p, "\"%4d-%02d-%02dT%02d:%02d:%02d.%03uiZ\"",
                       tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                       tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                       (ngx_uint_t) (msec % 1000));
}


static ngx_str_t *
ngx_http_mcp_list_edit_key(ngx_uint_t method)
{
    ngx_http_mcp_list_key_t  *l;

    for (l = ngx_http_mcp_list_keys; l->key.len; l++) {
        if (l->method == method) {
            return &l->key;
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_mcp_list_own(ngx_http_mcp_bridge_t *bridge, ngx_uint_t method)
{
    switch (method) {

    case NGX_MCP_METHOD_TOOLS_LIST:
        return bridge->tools != 0;

    case NGX_MCP_METHOD_RESOURCES_LIST:
    case NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST:
        return (bridge->topics & NGX_HTTP_MCP_TOPICS_OFFERED) != 0;

    default:
        return 0;
    }
}


ngx_uint_t
ngx_http_mcp_list_edit_needed(ngx_http_mcp_list_edit_t *edit)
{
    if (edit->method == NGX_MCP_METHOD_TOOLS_LIST) {
        return edit->bridge->tools || edit->denied;
    }

    return edit->first
           && ngx_http_mcp_list_own(edit->bridge, edit->method);
}


ngx_int_t
ngx_http_mcp_list_edit(ngx_http_mcp_list_edit_t *edit, ngx_str_t *result)
{
    u_char     *p;
    ngx_str_t  *key;

    key = ngx_http_mcp_list_edit_key(edit->method);

    if (key == NULL) {
        return NGX_OK;
    }

    if (result->len == 0) {
        p = ngx_pnalloc(edit->pool, key->len + sizeof("{:[]}") - 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        result->data = p;

        *p++ = '{';
        p = ngx_cpymem(p, key->data, key->len);
        p = ngx_cpymem(p, ":[]}", sizeof(":[]}") - 1);

        result->len = p - result->data;
    }

    if (edit->method == NGX_MCP_METHOD_TOOLS_LIST) {
        return ngx_http_mcp_list_edit_tools(edit, key, result);
    }

    if (!edit->first
        || !ngx_http_mcp_list_own(edit->bridge, edit->method))
    {
        return NGX_OK;
    }

    return ngx_http_mcp_list_edit_prepend(edit, key, result);
}


/* inserts the module's own entries after "[" of the list */

static ngx_int_t
ngx_http_mcp_list_edit_prepend(ngx_http_mcp_list_edit_t *edit,
    ngx_str_t *key, ngx_str_t *result)
{
    u_char     *p, *last;
    ngx_str_t   rest, name, value, list, head, tail, *own;

    ngx_str_null(&list);

    rest = *result;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
        if (ngx_mcp_equal(&name, key)) {
            list = value;
        }
    }

    if (list.len == 0 || list.data[0] != '[') {

        /* the upstream sent no list: its result is not changed */

        return NGX_OK;
    }

    head.data = result->data;
    head.len = list.data + 1 - head.data;

    last = result->data + result->len;

    tail.data = list.data + list.len - 1;

    if (ngx_mcp_json_element(&list, &value) == NGX_OK) {
        tail.data = value.data;
    }

    tail.len = last - tail.data;

    if (edit->method == NGX_MCP_METHOD_RESOURCES_LIST) {
        return ngx_http_mcp_topic_entries(edit->bridge, edit->caller,
                                          edit->pool, &head, &tail, result);
    }

    /* NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST */

    own = &ngx_http_mcp_topic_template;

    p = ngx_pnalloc(edit->pool, head.len + own->len + 1 + tail.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    result->data = p;

    p = ngx_cpymem(p, head.data, head.len);
    p = ngx_cpymem(p, own->data, own->len);

    if (tail.data[0] != ']') {
        *p++ = ',';
    }

    p = ngx_cpymem(p, tail.data, tail.len);

    result->len = p - result->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_list_edit_tools(ngx_http_mcp_list_edit_t *edit,
    ngx_str_t *key, ngx_str_t *result)
{
    u_char                  *p, *start, *from, *last;
    size_t                   len;
    ngx_str_t                rest, name, value;
    ngx_http_mcp_builtin_t  *tool;

    len = result->len;

    for (tool = ngx_http_mcp_builtins; tool->name.len; tool++) {
        len += ngx_max(tool->entry.len, tool->sessionless.len) + 1;
    }

    start = ngx_pnalloc(edit->pool, len);
    if (start == NULL) {
        return NGX_ERROR;
    }

    p = start;

    rest = *result;
    from = rest.data;
    last = rest.data + rest.len;

    while (ngx_mcp_json_name(&rest, &name) == NGX_OK) {

        if (!ngx_mcp_equal(&name, key) || rest.len == 0 || rest.data[0] != '[')
        {
            ngx_mcp_json_value(&rest, &value);
            continue;
        }

        p = ngx_cpymem(p, from, rest.data + 1 - from);

        if (from == result->data) {
            p = ngx_http_mcp_list_edit_builtins(edit, p);
        }

        if (p) {
            p = ngx_http_mcp_list_edit_filter(edit, p, &rest);
        }

        if (p == NULL) {
            return NGX_ERROR;
        }

        /* "[" is copied together with the text that follows it */

        from = rest.data - 1;
        rest.len = last - rest.data;
    }

    p = ngx_cpymem(p, from, last - from);

    result->data = start;
    result->len = p - start;

    return NGX_OK;
}


/* writes entries of built-in tools that are not denied to p; NULL: no memory */

static u_char *
ngx_http_mcp_list_edit_builtins(ngx_http_mcp_list_edit_t *edit, u_char *p)
{
    ngx_int_t                rc;
    ngx_str_t               *entry;
    ngx_http_mcp_builtin_t  *tool;

    if (!edit->first) {
        return p;
    }

    for (tool = ngx_http_mcp_builtins; tool->name.len; tool++) {

        if (!(edit->bridge->tools & tool->bit)) {
            continue;
        }

        rc = edit->denied ? edit->denied(edit->data, &tool->name) : NGX_OK;

        if (rc == NGX_ERROR) {
            return NULL;
        }

        if (rc == NGX_OK) {
            entry = edit->caller->session.block ? &tool->entry
                                                : &tool->sessionless;

            p = ngx_http_mcp_list_edit_copy(p, entry->data,
                                            entry->data + entry->len);
        }
    }

    return p;
}


/*
 * Writes to p those entries of the upstream's list that are not denied, and
 * moves *rest behind the list.  NULL: no memory.
 */

static u_char *
ngx_http_mcp_list_edit_filter(ngx_http_mcp_list_edit_t *edit, u_char *p,
    ngx_str_t *rest)
{
    u_char            *from, *to;
    ngx_int_t          rc;
    ngx_str_t          entry, members, name, raw, value;
    static ngx_str_t   key = ngx_string("name");

    /* adjacent entries are copied at once, with the text between them */

    from = NULL;
    to = NULL;

    while (ngx_mcp_json_element(rest, &entry) == NGX_OK) {

        members = entry;
        ngx_str_null(&value);

        while (ngx_mcp_json_member(&members, &name, &raw) == NGX_OK) {
            if (ngx_mcp_json_is(&name, &key)) {
                value = raw;
            }
        }

        rc = (entry.data[0] == '{')
             ? ngx_http_mcp_list_edit_tool(edit, &value) : NGX_OK;

        if (rc == NGX_ERROR) {
            return NULL;
        }

        if (rc == NGX_OK) {
            from = from ? from : entry.data;
            to = entry.data + entry.len;
            continue;
        }

        p = ngx_http_mcp_list_edit_copy(p, from, to);
        from = NULL;
    }

    return ngx_http_mcp_list_edit_copy(p, from, to);
}


static u_char *
ngx_http_mcp_list_edit_copy(u_char *p, u_char *from, u_char *to)
{
    if (from == NULL) {
        return p;
    }

    if (p[-1] != '[') {
        *p++ = ',';
    }

    return ngx_cpymem(p, from, to - from);
}


/*
 * Checks a tool of an upstream.  NGX_OK: the caller may see it; NGX_DECLINED:
 * it is denied, or has the name of a built-in tool, so that it could never be
 * called.
 */

static ngx_int_t
ngx_http_mcp_list_edit_tool(ngx_http_mcp_list_edit_t *edit, ngx_str_t *raw)
{
    ngx_str_t                name;
    ngx_http_mcp_builtin_t  *builtin;

    ngx_str_null(&name);

    if (raw->len >= 2 && raw->data[0] == '"') {
        name.data = raw->data + 1;
        name.len = raw->len - 2;

        if (memchr(name.data, '\\', name.len)
            && ngx_mcp_json_text(edit->pool, raw, &name) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    builtin = ngx_http_mcp_builtin(edit->bridge, &name);

    if (builtin) {

        if (!(*edit->bridge->hidden & builtin->bit)) {
            *edit->bridge->hidden |= builtin->bit;

            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "mcp endpoint \"%V\": the built-in tool hides the "
                          "tool \"%V\" of the upstream; rename that, or "
                          "change \"mcp_builtin_tools\"",
                          &edit->bridge->endpoint, &name);
        }

        return NGX_DECLINED;
    }

    return edit->denied ? edit->denied(edit->data, &name) : NGX_OK;
}
