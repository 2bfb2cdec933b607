
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_message.h"


#define META_VERSION  "\"io.modelcontextprotocol/protocolVersion\""


static ngx_mcp_message_t  message;
static u_char            *message_text;


static ngx_int_t
message_parse(const char *text)
{
    ngx_int_t    rc;
    ngx_str_t    str;
    const char  *why;

    free(message_text);

    str.len = strlen(text);
    str.data = core_copy(text, str.len);
    message_text = str.data;

    memset(&message, 0x5a, sizeof(message));
    why = NULL;

    rc = ngx_mcp_message_parse(&message, &str, &why);

    if (rc != NGX_OK && (why == NULL || message.kind != NGX_MCP_INVALID)) {
        return 0;
    }

    return rc;
}


/* checks kind, code of the method, id, and era (modern) of a message */

static int
message_good(const char *text, ngx_uint_t kind, ngx_uint_t method,
    const char *id, ngx_uint_t modern)
{
    ngx_int_t  rc;

    rc = message_parse(text);

    if (rc != NGX_OK
        || message.kind != kind
        || message.method_code != method
        || message.modern != modern
        || message.id.len != strlen(id)
        || (message.id.len
            && memcmp(message.id.data, id, message.id.len) != 0))
    {
        printf("# %s: %d, kind %d, method %d, modern %d, id %.*s\n", text,
               (int) rc, (int) message.kind, (int) message.method_code,
               (int) message.modern, (int) message.id.len,
               (char *) message.id.data);
        return 0;
    }

    return 1;
}


static int
message_bad(const char *text, ngx_int_t code, const char *id)
{
    ngx_int_t  rc;

    rc = message_parse(text);

    if (rc != code
        || message.id.len != strlen(id)
        || (message.id.len
            && memcmp(message.id.data, id, message.id.len) != 0))
    {
        printf("# %s: %d, id %.*s\n", text, (int) rc, (int) message.id.len,
               (char *) message.id.data);
        return 0;
    }

    return 1;
}


#define good(text, kind, method, id, modern)                                  \
    ok(message_good(text, NGX_MCP_ ## kind, NGX_MCP_METHOD_ ## method, id,    \
                    modern), "%s", text)

#define bad(text, id)                                                         \
    ok(message_bad(text, NGX_MCP_INVALID_REQUEST, id), "refused: %s", text)

#define J  "{\"jsonrpc\":\"2.0\","


static void
message_kinds(void)
{
    good(J "\"id\":1,\"method\":\"ping\"}", REQUEST, PING, "1", 0);
    good(J "\"id\":\"a\\u0041\",\"method\":\"tools/call\",\"params\":{}}",
         REQUEST, TOOLS_CALL, "\"a\\u0041\"", 0);
    good(J "\"id\":0,\"method\":\"tools\\/list\"}", REQUEST, TOOLS_LIST, "0",
         0);
    good(J "\"id\":-5,\"method\":\"\\u0070ing\"}", REQUEST, PING, "-5", 0);
    good(J "\"id\":1,\"method\":\"Ping\"}", REQUEST, OTHER, "1", 0);
    good(J "\"id\":1,\"method\":\"\"}", REQUEST, OTHER, "1", 0);
    good(J "\"method\":\"notifications/initialized\"}", NOTIFICATION,
         INITIALIZED, "", 0);
    good(J "\"id\":1,\"result\":{}}", RESPONSE, OTHER, "1", 0);
    good(J "\"id\":1,\"result\":null}", RESPONSE, OTHER, "1", 0);
    good(J "\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"m\"}}", RESPONSE,
         OTHER, "\"x\"", 0);
    good(J "\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}", RESPONSE,
         OTHER, "", 0);
    good(J "\"error\":{\"code\":1,\"message\":\"m\"}}", RESPONSE, OTHER, "", 0);
    good("[]", BATCH, OTHER, "", 0);
    good(" [" J "\"id\":1,\"method\":\"ping\"}]", BATCH, OTHER, "", 0);
    good("{\"jsonrpc\":\"2\\u002e0\",\"id\":1,\"method\":\"ping\"}", REQUEST,
         PING, "1", 0);
    good(J "\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{"
         META_VERSION ":\"2026-07-28\"}}}", REQUEST, PING, "1", 1);
    good(J "\"method\":\"x\",\"params\":{\"_meta\":{"
         META_VERSION ":\"z\"}}}", NOTIFICATION, OTHER, "", 1);
    good(J "\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{"
         META_VERSION ":1}}}", REQUEST, PING, "1", 0);
    good(J "\"id\":1,\"method\":\"ping\",\"params\":{" META_VERSION
         ":\"2026-07-28\"}}", REQUEST, PING, "1", 0);
    good(J "\"id\":1,\"method\":\"tools/call\",\"params\":"
         "{\"name\":\"a\\\\nb\",\"arguments\":"
         "{\"x\":\"\\n\",\"name\":1,\"name\":2}}}", REQUEST,
         TOOLS_CALL, "1", 0);
    good(J "\"id\":1,\"method\":\"x\",\"params\":{\"name\":5}}", REQUEST, OTHER,
         "1", 0);
    good(J "\"id\":1,\"method\":\"x\",\"x\":1,\"x\":2}", REQUEST, OTHER, "1",
         0);
    good(J "\"id\":1,\"method\":\"\\u0170\\u1010\\u0079\"}", REQUEST, OTHER,
         "1", 0);
}


static void
message_refusals(void)
{
    char    text[1024], id[NGX_MCP_ID_MAX + 8];
    size_t  i;

    static const char  *members[] = {
        "\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"",
        J "\"id\":1,\"method\":\"x\",\"method\":\"y\"",
        J "\"id\":1,\"method\":\"x\",\"meth\\u006fd\":\"x\"",
        J "\"id\":1,\"method\":\"x\",\"params\":{},\"params\":{}",
        J "\"id\":1,\"result\":{},\"result\":{}",
        J "\"id\":1,\"error\":{},\"error\":{}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"name\":\"a\","
            "\"name\":\"b\"}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"uri\":\"a\",\"uri\":\"a\"}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{},\"_meta\":{}}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{"
            "\"progressToken\":1,\"progressToken\":1}}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{"
            META_VERSION ":\"a\"," META_VERSION ":\"a\"}}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"progressToken\":1,"
            "\"progressToken\":1}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"requestId\":1,"
            "\"requestId\":1}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"protocolVersion\":\"a\","
            "\"protocolVersion\":\"a\"}",
        J "\"id\":1,\"method\":\"x\",\"params\":null",
        J "\"id\":1,\"method\":\"x\",\"params\":\"a\"",
        J "\"id\":1,\"method\":\"x\",\"params\":[]",
        J "\"id\":1,\"method\":\"x\",\"params\":[{\"name\":\"a\"}]",
        J "\"id\":1,\"method\":\"\\ud83d\"",
        J "\"id\":1,\"method\":1",
        J "\"id\":1,\"method\":null",
        J "\"id\":1,\"method\":{}",
        J "\"id\":1",
        J "\"id\":1,\"result\":{},\"error\":{}",
        J "\"id\":1,\"method\":\"x\",\"result\":{}",
        J "\"id\":1,\"method\":\"x\",\"error\":{}",
        J "\"id\":1,\"error\":1",
        J "\"id\":1,\"error\":null",
        "\"id\":1,\"method\":\"x\"",
        "\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"",
        "\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"",
        "\"jsonrpc\":\"2.00\",\"id\":1,\"method\":\"x\"",
        "\"jsonrpc\":null,\"id\":1,\"method\":\"x\"",
        "\"JSONRPC\":\"2.0\",\"id\":1,\"method\":\"x\"",
        J "\"id\":1,\"method\":\"a\\u0000b\"",
        J "\"id\":1,\"method\":\"ping\\n\"",
        J "\"id\":1,\"method\":\"\\u001F\"",
        J "\"id\":1,\"method\":\"\\u007F\"",
        J "\"id\":1,\"method\":\"\\u007f\"",
        J "\"id\":1,\"method\":\"a\x7f\"",
        J "\"id\":1,\"method\":\"\\b\"",
        J "\"id\":1,\"method\":\"\\f\"",
        J "\"id\":1,\"method\":\"\\r\"",
        J "\"id\":1,\"method\":\"\\\\\\t\"",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"name\":\"a\\u0000\"}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"name\":\"\\u0010\"}",
        J "\"id\":1,\"method\":\"x\",\"params\":{\"uri\":\"\\n\"}",
    };

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        snprintf(text, sizeof(text), "%s%s}",
                 members[i][0] == '{' ? "" : "{", members[i]);
        bad(text, "1");
    }

    bad("1", "");
    bad("\"x\"", "");
    bad("null", "");
    bad("{}", "");
    bad(J "\"id\":null,\"method\":\"x\"}", "");
    bad(J "\"id\":\"\\ud83d\",\"method\":\"x\"}", "");
    bad(J "\"id\":\"\\ude00\",\"result\":{}}", "");
    bad(J "\"id\":1.5,\"method\":\"x\"}", "");
    bad(J "\"id\":1.0,\"method\":\"x\"}", "");
    bad(J "\"id\":1e3,\"method\":\"x\"}", "");
    bad(J "\"id\":1E3,\"method\":\"x\"}", "");
    bad(J "\"id\":true,\"method\":\"x\"}", "");
    bad(J "\"id\":{},\"method\":\"x\"}", "");
    bad(J "\"id\":[1],\"method\":\"x\"}", "");
    bad(J "\"id\":1,\"id\":1,\"method\":\"x\"}", "");
    bad(J "\"id\":1,\"i\\u0064\":2,\"method\":\"x\"}", "");
    bad(J "\"result\":{}}", "");
    bad(J "\"id\":null,\"result\":{}}", "");
    bad(J "\"id\":1.5,\"error\":{}}", "");

    memset(id, 'a', sizeof(id));
    id[0] = '"';
    id[NGX_MCP_ID_MAX - 1] = '"';
    id[NGX_MCP_ID_MAX] = '\0';
    snprintf(text, sizeof(text), J "\"id\":%s,\"method\":\"ping\"}", id);
    ok(message_good(text, NGX_MCP_REQUEST, NGX_MCP_METHOD_PING, id, 0),
       "the longest id");

    id[NGX_MCP_ID_MAX - 1] = 'a';
    id[NGX_MCP_ID_MAX] = '"';
    id[NGX_MCP_ID_MAX + 1] = '\0';
    snprintf(text, sizeof(text), J "\"id\":%s,\"method\":\"ping\"}", id);
    ok(message_bad(text, NGX_MCP_INVALID_REQUEST, ""), "an id that is longer");

    ok(message_bad("{bad", NGX_MCP_PARSE_ERROR, "")
       && message_bad("", NGX_MCP_PARSE_ERROR, "")
       && message_bad(J "\"id\":1,\"method\":\"ping\"} x", NGX_MCP_PARSE_ERROR,
                      "")
       && message_bad(J "\"id\":1,\"method\":\"\xff\"}", NGX_MCP_PARSE_ERROR,
                      ""),
       "what is not JSON");
}


/*
 * Requests of clients: those that are refused, and those that are accepted,
 * with the member that the module acts on.
 */

static struct {
    const char             *text;         /* of the method and behind it */
    ngx_int_t               code;         /* 0: accepted, with this subject */
    ngx_uint_t              subject;
} message_clients[] = {

#define S(text, subject)  { text, 0, NGX_MCP_PATH_ ## subject }
#define R(text)  { text, NGX_MCP_INVALID_REQUEST, 0 }
#define P(text)  { text, NGX_MCP_INVALID_PARAMS, 0 }

    S("tools/call\",\"params\":{\"name\":\"a\"}", NAME),
    S("tools/call\",\"params\":{\"n\\u0061me\":\"\\u0061\"}", NAME),
    S("tools/call\",\"params\":{\"name\":\"a\",\"arguments\":{\"uri\":1,"
      "\"NAME\":2,\"s\":\"\\ud83d\"},\"x\":1,\"x\":2}", NAME),
    S("prompts/get\",\"params\":{\"name\":\"a\"}", NAME),
    S("resources/read\",\"params\":{\"uri\":\"a\"}", URI),
    S("resources/subscribe\",\"params\":{\"uri\":\"a\"}", URI),
    S("resources/unsubscribe\",\"params\":{\"uri\":\"a\"}", URI),
    S("completion/complete\",\"params\":{\"ref\":{\"name\":\"a\"}}", REF_NAME),
    S("completion/complete\",\"params\":{\"ref\":{\"uri\":\"a\"}}", REF_URI),
    S("x/y\",\"params\":{\"name\":\"a\"}", NAME),
    S("x/y\",\"params\":{\"uri\":\"\"}", URI),
    S("x/y\",\"params\":{\"ref\":{\"uri\":\"a\"}}", REF_URI),
    S("x/y\",\"params\":{\"ref\":5}", NONE),
    S("x/y\",\"params\":{\"cursor\":\"\\ud83d\"}", NONE),
    S("tools/list\"", NONE),
    S("tools/list\",\"params\":{\"name\":\"a\"}", NONE),
    S("notifications/progress\",\"params\":{\"uri\":\"a\"}", NONE),
    S("initialize\",\"params\":{\"clientInfo\":{\"name\":\"\\ud83d\"}}", NONE),

    P("tools/call\""),
    P("tools/call\",\"params\":{}"),
    P("tools/call\",\"params\":{\"name\":\"\"}"),
    P("tools/call\",\"params\":{\"name\":null}"),
    P("tools/call\",\"params\":{\"name\":[\"a\"]}"),
    P("tools/call\",\"params\":{\"uri\":\"a\"}"),
    P("prompts/get\",\"params\":{\"name\":{}}"),
    P("resources/read\",\"params\":{\"name\":\"a\"}"),
    P("resources/read\",\"params\":{\"uri\":5}"),
    P("resources/subscribe\",\"params\":{}"),
    P("resources/unsubscribe\",\"params\":{\"uri\":\"\"}"),
    P("completion/complete\",\"params\":{}"),
    P("completion/complete\",\"params\":{\"ref\":\"a\"}"),
    P("completion/complete\",\"params\":{\"ref\":[{\"name\":\"a\"}]}"),
    P("completion/complete\",\"params\":{\"ref\":{}}"),
    P("completion/complete\",\"params\":{\"ref\":{\"name\":1}}"),
    P("completion/complete\",\"params\":{\"name\":\"a\"}"),
    P("x/y\",\"params\":{\"name\":5}"),
    P("x/y\",\"params\":{\"ref\":[{\"name\":\"a\"}]}"),
    P("x/y\",\"params\":{\"ref\":{\"uri\":true}}"),

    R("tools/call\",\"params\":[{\"name\":\"a\"}]"),
    R("tools/call\",\"params\":{\"name\":\"a\",\"uri\":\"b\"}"),
    R("resources/read\",\"params\":{\"name\":\"a\",\"uri\":\"b\"}"),
    R("tools/call\",\"params\":{\"name\":\"a\",\"ref\":{\"name\":\"b\"}}"),
    R("completion/complete\",\"params\":{\"ref\":{\"name\":\"a\","
      "\"uri\":\"b\"}}"),
    R("x/y\",\"params\":{\"name\":\"a\",\"uri\":\"b\"}"),
    R("tools/call\",\"params\":{\"name\":\"a\",\"Name\":\"b\"}"),
    R("tools/call\",\"params\":{\"name\":\"a\"},\"PARAMS\":{}"),
    R("tools/call\",\"params\":{\"name\":\"a\"},\"param\xc5\xbf\":{}"),
    R("tools/call\",\"METHOD\":\"x\",\"params\":{\"name\":\"a\"}"),
    R("tools/call\",\"params\":{\"name\":\"a\",\"name\\u0000\":\"b\"}"),
    R("tools/call\",\"params\":{\"name\":\"\\ud83d\"}"),
    R("tools/call\",\"params\":{\"name\":\"a\",\"_meta\":{"
      "\"progressToken\":\"\\ud83d\"}}"),
    R("resources/read\",\"params\":{\"uri\":\"\\ude00\"}"),
    R("completion/complete\",\"params\":{\"ref\":{\"name\":\"\\n\"}}"),
    R("completion/complete\",\"params\":{\"ref\":{\"uri\":\"\\u0000\"}}"),
    R("completion/complete\",\"params\":{\"ref\":{\"uri\":\"\\ud83d\"}}"),
    R("completion/complete\",\"params\":{\"ref\":{\"name\":\"a\"},"
      "\"ref\":{}}"),
    R("completion/complete\",\"params\":{\"ref\":{\"name\":\"a\","
      "\"name\":\"b\"}}"),
    R("completion/complete\",\"params\":{\"ref\":{\"NAME\":\"a\"}}"),
    R("tools/list\",\"params\":{\"cursor\":\"a\",\"cursor\":\"b\"}"),
    R("initialize\",\"params\":{\"clientInfo\":{},\"clientInfo\":{}}"),
    R("initialize\",\"params\":{\"clientinfo\":{}}"),
    R("initialize\",\"params\":{\"clientInfo\":{\"Name\":\"a\"}}"),
    R("tools/list\",\"ID\":1")

#undef S
#undef R
#undef P
};


static void
message_client(void)
{
    char         text[1024];
    size_t       i;
    ngx_int_t    rc;
    ngx_str_t    str;
    const char  *why;

    for (i = 0; i < sizeof(message_clients) / sizeof(message_clients[0]); i++) {

        str.len = snprintf(text, sizeof(text), J "\"id\":1,\"method\":\"%s}",
                           message_clients[i].text);

        free(message_text);
        message_text = core_copy(text, str.len);
        str.data = message_text;

        why = NULL;
        rc = ngx_mcp_message_parse_client(&message, &str, &why);

        ok(rc == message_clients[i].code
           && (rc != NGX_OK || message.subject == message_clients[i].subject)
           && (rc == NGX_OK || (why && message.kind == NGX_MCP_INVALID))
           && message.id.len == 1,
           "of a client, %d: %s", (int) message_clients[i].code, text);
    }

    ngx_str_set(&str, J "\"id\":1,\"ID\":2,\"result\":{}}");
    rc = ngx_mcp_message_parse_client(&message, &str, &why);
    ok(rc == NGX_MCP_INVALID_REQUEST, "a response with another id");

    ngx_str_set(&str, J "\"method\":\"tools/call\","
                "\"params\":{\"name\":\"a\"}}");
    rc = ngx_mcp_message_parse_client(&message, &str, &why);
    ok(rc == NGX_MCP_INVALID_REQUEST, "a request without an id");

    ngx_str_set(&str, J "\"method\":\"notifications/roots/list_changed\"}");
    rc = ngx_mcp_message_parse_client(&message, &str, &why);
    ok(rc == NGX_OK, "a notification of MCP");

    ngx_str_set(&str, J "\"method\":\"other/call\","
                "\"params\":{\"name\":\"a\"}}");
    rc = ngx_mcp_message_parse_client(&message, &str, &why);
    ok(rc == NGX_OK, "a notification that MCP does not know");

    ngx_str_set(&str, J "\"method\":\"x\",\"params\":{\"name\":1,\"Name\":2,"
                "\"uri\":\"\\ud83d\"}}");
    ok(ngx_mcp_message_parse(&message, &str, &why) == NGX_OK,
       "what is not of a client may carry any names");
}


static void
message_tables(void)
{
    char        text[256], *p;
    size_t      j;
    ngx_str_t   str, *name;
    ngx_uint_t  i, bad;

    bad = 0;

    for (i = 1; i < NGX_MCP_METHOD_MAX; i++) {
        name = ngx_mcp_method_name(i);
        bad += (ngx_mcp_method_parse(name) != i);

        p = text + sprintf(text, J "\"method\":\"");

        for (j = 0; j < name->len; j++) {
            p += sprintf(p, "\\u%04x", name->data[j]);
        }

        strcpy(p, "\"}");

        if (message_parse(text) != NGX_OK || message.method_code != i) {
            bad++;
        }
    }

    ok(bad == 0 && ngx_mcp_method_name(NGX_MCP_METHOD_MAX)->len == 0
       && ngx_mcp_method_name(0)->len == 0, "methods, also escaped");

    for (i = NGX_MCP_2025_03_26; i <= NGX_MCP_2026_07_28; i++) {
        bad += (ngx_mcp_revision_parse(ngx_mcp_revision_name(i)) != i);
    }

    ngx_str_set(&str, "2025-06-19");
    bad += (ngx_mcp_revision_parse(&str) != NGX_MCP_REVISION_UNKNOWN);
    ngx_str_set(&str, "\"2025-06-18\"");
    bad += (ngx_mcp_revision_parse(&str) != NGX_MCP_REVISION_UNKNOWN);
    ngx_str_null(&str);
    bad += (ngx_mcp_revision_parse(&str) != NGX_MCP_REVISION_UNKNOWN);
    ngx_str_set(&str, "2025-11-25");
    bad += (ngx_mcp_revision_parse(&str) != NGX_MCP_2025_11_25);

    ok(bad == 0 && ngx_mcp_revision_name(99)->len == 0, "revisions");

    ngx_str_set(&str, "debug");
    bad += (ngx_mcp_level_parse(&str) != NGX_MCP_LEVEL_DEBUG);
    ngx_str_set(&str, "emergency");
    bad += (ngx_mcp_level_parse(&str) != NGX_MCP_LEVEL_EMERGENCY);
    ngx_str_set(&str, "Info");
    bad += (ngx_mcp_level_parse(&str) != NGX_MCP_LEVEL_UNSET);
    ngx_str_null(&str);
    bad += (ngx_mcp_level_parse(&str) != NGX_MCP_LEVEL_UNSET);

    ok(bad == 0, "levels");
}


static void
message_strings(void)
{
    ngx_str_t    str;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, NULL);

    (void) message_parse(J "\"id\":1,\"method\":\"x\",\"params\":"
                         "{\"name\":\"a\\u00e9\",\"uri\":\"\",\"level\":5}}");

    str = ngx_mcp_message_string(&message, NGX_MCP_PATH_NAME, pool);
    ok(tap_is(&str, "a\xc3\xa9"), "a string");

    str = ngx_mcp_message_string(&message, NGX_MCP_PATH_URI, pool);
    ok(tap_is(&str, ""), "an empty string is not absent");

    str = ngx_mcp_message_string(&message, NGX_MCP_PATH_LEVEL, pool);
    ok(str.data == NULL && str.len == 0, "no string");

    str = ngx_mcp_message_string(&message, NGX_MCP_PATH_CURSOR, pool);
    ok(str.data == NULL && str.len == 0, "no member");

    str = ngx_mcp_message_member(&message, NGX_MCP_PATH_LEVEL);
    ok(tap_is(&str, "5"), "a member");

    str = ngx_mcp_message_member(&message, NGX_MCP_PATH_CURSOR);
    ok(str.len == 0, "no member");

    core_no_memory = 1;
    str = ngx_mcp_message_string(&message, NGX_MCP_PATH_NAME, pool);
    ok(str.data == NULL && str.len == 0, "no memory");
    core_no_memory = 0;

    ngx_destroy_pool(pool);
}


static void
message_compose(void)
{
    size_t           i;
    ngx_str_t        id, none, text, data, str, method, uri;
    ngx_pool_t      *pool;
    ngx_mcp_json_t   json;

    static struct {
        ngx_uint_t   revision;
        const char  *id;
    } ids[] = {
        { NGX_MCP_REVISION_UNKNOWN, "" },
        { NGX_MCP_2025_03_26, "\"id\":null," },
        { NGX_MCP_2025_06_18, "\"id\":null," },
        { NGX_MCP_2025_11_25, "" },
        { NGX_MCP_2026_07_28, "" }
    };

    char             expected[256];

    static ngx_mcp_path_e  both[] = { NGX_MCP_PATH_ID,
                                      NGX_MCP_PATH_META_TOKEN };
    static ngx_mcp_path_e  one[] = { NGX_MCP_PATH_ID, NGX_MCP_PATH_NONE };

    pool = ngx_create_pool(1024, NULL);

    ngx_str_set(&id, "\"a\\u0041\"");
    ngx_str_set(&text, "it said \"no\"\n");
    ngx_str_set(&data, "{\"upstream\":1}");
    ngx_str_null(&none);

    str = ngx_mcp_error_compose(pool, NGX_MCP_2025_06_18, &id, -32600, &text,
                                &data);
    ok(tap_is(&str, J "\"id\":\"a\\u0041\",\"error\":{\"code\":-32600,"
              "\"message\":\"it said \\\"no\\\"\\n\","
              "\"data\":{\"upstream\":1}}}")
       && ngx_mcp_json_scan(&json, &str) == NGX_OK, "an error");

    for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        str = ngx_mcp_error_compose(pool, ids[i].revision, &none, -32700, &none,
                                    NULL);
        sprintf(expected, J "%s\"error\":{\"code\":-32700,\"message\":\"\"}}",
                ids[i].id);
        ok(tap_is(&str, expected), "an error without id, revision \"%s\"",
           ngx_mcp_revision_name(ids[i].revision)->data);
    }

    str = ngx_mcp_result_compose(pool, &id, &data);
    ok(tap_is(&str, J "\"id\":\"a\\u0041\",\"result\":{\"upstream\":1}}"),
       "a result");

    ngx_str_set(&text, "x:\"a\"");
    ngx_str_set(&method, "resources/subscribe");

    uri = ngx_mcp_uri_compose(pool, &text);
    ok(tap_is(&uri, "{\"uri\":\"x:\\\"a\\\"\"}"), "params with a URI");

    str = ngx_mcp_request_compose(pool, &id, &method, &uri);
    ok(tap_is(&str, J "\"id\":\"a\\u0041\",\"method\":\"resources/subscribe\","
              "\"params\":{\"uri\":\"x:\\\"a\\\"\"}}")
       && ngx_mcp_json_scan(&json, &str) == NGX_OK, "a request");

    str = ngx_mcp_request_compose(pool, &none, &method, &none);
    ok(tap_is(&str, J "\"method\":\"resources/subscribe\"}")
       && ngx_mcp_json_scan(&json, &str) == NGX_OK,
       "a notification without params");

    ngx_str_set(&text, J "\"params\":{\"_meta\":{\"progressToken\":7}},"
                "\"id\":0,\"method\":\"ping\"}");
    (void) ngx_mcp_json_scan(&json, &text);

    str = ngx_mcp_message_replace(pool, &text, &json, both, &id);
    ok(tap_is(&str, J "\"params\":{\"_meta\":{\"progressToken\":"
              "\"a\\u0041\"}},\"id\":\"a\\u0041\",\"method\":\"ping\"}"),
       "two members replaced");

    str = ngx_mcp_message_replace(pool, &text, &json, one, &id);
    ok(tap_is(&str, J "\"params\":{\"_meta\":{\"progressToken\":7}},"
              "\"id\":\"a\\u0041\",\"method\":\"ping\"}"), "one replaced");

    core_no_memory = 1;
    str = ngx_mcp_error_compose(pool, 0, &id, -32600, &text, NULL);
    ok(str.data == NULL && str.len == 0, "an error, no memory");
    str = ngx_mcp_result_compose(pool, &id, &data);
    ok(str.data == NULL && str.len == 0, "a result, no memory");
    str = ngx_mcp_request_compose(pool, &id, &method, &uri);
    ok(str.data == NULL && str.len == 0, "a request, no memory");
    str = ngx_mcp_uri_compose(pool, &text);
    ok(str.data == NULL && str.len == 0, "params, no memory");
    str = ngx_mcp_message_replace(pool, &text, &json, one, &id);
    ok(str.data == NULL && str.len == 0, "replaced, no memory");
    core_no_memory = 0;

    ngx_destroy_pool(pool);
}


static void
message_codes(void)
{
    ngx_str_t    raw;
    ngx_uint_t   i;

    static struct {
        const char  *raw;
        ngx_int_t    code;
    } codes[] = {
        { "-32601", -32601 },
        { "1", 1 },
        { "0", 0 },
        { "", 0 },
        { "-", 0 },
        { "-1.5", 0 },
        { "\"-32601\"", 0 },
        { "99999999999999999999", 0 },
        { NULL, 0 }
    };

    for (i = 0; codes[i].raw; i++) {
        raw.len = strlen(codes[i].raw);
        raw.data = core_copy(codes[i].raw, raw.len);

        ok(ngx_mcp_error_code(&raw) == codes[i].code, "the code %s",
           codes[i].raw);

        free(raw.data);
    }
}


void
message_tests(void)
{
    message_kinds();
    message_refusals();
    message_client();
    message_tables();
    message_strings();
    message_compose();
    message_codes();

    free(message_text);
    message_text = NULL;
}
