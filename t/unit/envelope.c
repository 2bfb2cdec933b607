
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_envelope.h"
#include "ngx_mcp_splice.h"


#define KEY  "\"io.modelcontextprotocol/"


typedef struct {
    char                    text[256];
    ngx_uint_t              stop;
} walked_t;


static ngx_str_t
str(const char *text)
{
    ngx_str_t  s;

    s.data = (u_char *) text;
    s.len = strlen(text);

    return s;
}


static ngx_int_t
envelope(const char *meta, ngx_mcp_envelope_t *e, const char **why)
{
    char                      buf[1024];
    static ngx_str_t          text;
    static ngx_mcp_message_t  m;

    free(text.data);

    snprintf(buf, sizeof(buf), "{\"jsonrpc\":\"2.0\",\"id\":1,"
             "\"method\":\"tools/list\",\"params\":{%s}}", meta);

    text.len = strlen(buf);
    text.data = core_copy(buf, text.len);

    if (ngx_mcp_message_parse_client(&m, &text, why) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_envelope_read(&m, e, why);
}


static void
read_tests(void)
{
    size_t               i;
    const char          *why;
    ngx_mcp_envelope_t   e;

    static const char  *bad[] = {
        "",
        "\"_meta\":null",
        "\"_meta\":{}",
        "\"_meta\":{" KEY "clientCapabilities\":{}}",
        "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\"}",
        "\"_meta\":{" KEY "protocolVersion\":20260728,"
            KEY "clientCapabilities\":{}}",
        "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\","
            KEY "clientCapabilities\":[]}",
        "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\","
            KEY "clientCapabilities\":{}," KEY "clientInfo\":\"me\"}",
        "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\","
            KEY "clientCapabilities\":{}," KEY "logLevel\":\"loud\"}",
        "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\","
            KEY "clientCapabilities\":{}," KEY "logLevel\":3}",
        NULL
    };

    for (i = 0; bad[i]; i++) {
        why = NULL;

        ok(envelope(bad[i], &e, &why) == NGX_DECLINED && why,
           "incomplete envelope: %s", bad[i]);
    }

    ok(envelope("\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\","
                KEY "clientCapabilities\":{\"roots\":{}},"
                KEY "clientInfo\":{\"name\":\"n\"},"
                KEY "logLevel\":\"warning\"}", &e, &why)
       == NGX_OK, "an envelope is read");

    ok(e.revision == NGX_MCP_2026_07_28, "its revision");
    ok(tap_is(&e.capabilities, "{\"roots\":{}}"), "its capabilities");
    ok(tap_is(&e.requested, "\"2026-07-28\""), "its version");
    ok(e.level == NGX_MCP_LEVEL_WARNING, "its level");

    ok(envelope("\"_meta\":{" KEY "protocolVersion\":\"2026\\u002d07-28\","
                KEY "clientCapabilities\":{}}", &e, &why)
       == NGX_OK && e.revision == NGX_MCP_2026_07_28
       && e.level == NGX_MCP_LEVEL_UNSET, "a version with an escape");

    ok(envelope("\"_meta\":{" KEY "protocolVersion\":\"v999.0.0\","
                KEY "clientCapabilities\":{}}", &e, &why)
       == NGX_OK && e.revision == NGX_MCP_REVISION_UNKNOWN,
       "an unknown version");

    ok(envelope("\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\","
                KEY "clientCapabilities\":{},"
                KEY "clientCapabilities\":{}}", &e, &why)
       == NGX_ERROR, "capabilities twice");
}


/* longer than what is encoded at a time */

#define GROUP_SAME  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define GROUP_TEXT  GROUP_SAME "?!"
#define GROUPS                                                                \
    "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh" "PyE="


static void
header_tests(ngx_pool_t *pool)
{
    size_t     i;
    ngx_str_t  header, text;

    static struct {
        const char  *header;
        const char  *text;
        ngx_int_t    rc;
    } values[] = {
        { "echo", "echo", NGX_OK },
        { "Echo", "echo", NGX_DECLINED },
        { "=?base64?SGVsbG8=?=", "Hello", NGX_OK },
        { "=?base64?SGVsbG8=?=", "Hellu", NGX_DECLINED },
        { "=?base64?SGVsbG8=?=", "Hello!", NGX_DECLINED },
        { "=?base64?SGVsbG8=?=", "Hell", NGX_DECLINED },
        { "=?base64?SGVsbA==?=", "Hell", NGX_OK },
        { "=?base64?SGVs?=", "Hel", NGX_OK },
        { "=?base64?" "?=", "", NGX_OK },
        { "=?base64?4pyT?=", "\xe2\x9c\x93", NGX_OK },
        { "=?base64?SGVsbG8?=", "Hello", NGX_DECLINED },
        { "=?base64?SGVs!!!bG8=?=", "Hello", NGX_DECLINED },
        { "=?base64?SGVsbG9=?=", "Hello", NGX_DECLINED },
        { "=?base64?SGVsb===?=", "Hello", NGX_DECLINED },
        { "=?base64?SG=sbG8=?=", "Hello", NGX_DECLINED },
        { "=?base64?SGVsbG-_?=", "Hello", NGX_DECLINED },
        { "=?base64?" GROUPS "?=", GROUP_TEXT, NGX_OK },
        { "=?base64?" GROUPS "?=", GROUP_TEXT "?", NGX_DECLINED },
        { "=?base64?" GROUPS "?=", GROUP_SAME "!!", NGX_DECLINED },
        { "SGVsbG8=", "Hello", NGX_DECLINED },
        { "SGVsbG8=", "SGVsbG8=", NGX_OK },
        { "=?BASE64?SGVsbG8=?=", "Hello", NGX_DECLINED },
        { "=?base64?SGVsbG8=", "Hello", NGX_DECLINED },
        { "=?base64?=", "x", NGX_DECLINED },
        { NULL, NULL, 0 }
    };

    static struct {
        const char  *header;
        const char  *raw;
        ngx_int_t    rc;
    } json[] = {
        { "us-west1", "\"us-west1\"", NGX_OK },
        { "us-west1", "\"us-\\u0077est1\"", NGX_OK },
        { "42", "42", NGX_OK },
        { "42.0", "42", NGX_OK },
        { "42", "42.00", NGX_OK },
        { "-0", "0", NGX_OK },
        { "42.5", "42", NGX_DECLINED },
        { "42.", "42", NGX_DECLINED },
        { "-42", "42", NGX_DECLINED },
        { "", "42", NGX_DECLINED },
        { "1e2", "1e2", NGX_OK },
        { "12345678901234567890", "12345678901234567891", NGX_DECLINED },
        { "true", "true", NGX_OK },
        { "True", "true", NGX_DECLINED },
        { "42", "\"42\"", NGX_OK },
        { "42.0", "\"42\"", NGX_DECLINED },
        { NULL, NULL, 0 }
    };

    for (i = 0; values[i].header; i++) {
        header = str(values[i].header);
        text = str(values[i].text);

        ok(ngx_mcp_header_is(&header, &text) == values[i].rc,
           "header %s and %s", values[i].header, values[i].text);
    }

    for (i = 0; json[i].header; i++) {
        header = str(json[i].header);
        text = str(json[i].raw);

        ok(ngx_mcp_header_is_json(&header, &text, pool) == json[i].rc,
           "header %s and JSON %s", json[i].header, json[i].raw);
    }
}


static ngx_int_t
walked(void *data, ngx_str_t *name, ngx_str_t *value)
{
    walked_t *w = data;

    snprintf(w->text + strlen(w->text), sizeof(w->text) - strlen(w->text),
             "%.*s=%.*s;", (int) name->len, name->data, (int) value->len,
             value->data);

    return w->stop ? NGX_DECLINED : NGX_OK;
}


static void
params_tests(ngx_pool_t *pool)
{
    walked_t   w;
    ngx_str_t  tool, arguments, text;

    tool = str("{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\","
               "\"properties\":{\"region\":{\"type\":\"string\","
               "\"x-mcp-header\":\"Region\"},\"plain\":{\"type\":\"string\"},"
               "\"n\":{\"x-mcp-header\":\"N\"},"
               "\"in\":{\"type\":\"object\",\"properties\":{\"ner\":{"
               "\"x-mcp-header\":\"In\\u006eer\"}}}}}}");
    arguments = str("{\"in\":{\"ner\":true},\"region\":\"a\",\"n\":null,"
                    "\"plain\":\"p\"}");

    memset(&w, 0, sizeof(w));

    ok(ngx_mcp_params_walk(&tool, &arguments, pool, walked, &w) == NGX_OK,
       "annotated arguments are walked");

    text = str(w.text);
    ok(tap_is(&text, "Region=\"a\";N=;Inner=true;"), "with their values");

    memset(&w, 0, sizeof(w));
    arguments = str("{\"region\":\"eu\",\"r\\u0065gion\":\"us\"}");

    ok(ngx_mcp_params_walk(&tool, &arguments, pool, walked, &w) == NGX_OK,
       "an argument that comes twice");

    text = str(w.text);
    ok(tap_is(&text, "Region=;N=;Inner=;"), "is in no header");

    memset(&w, 0, sizeof(w));
    ngx_str_null(&arguments);
    w.stop = 1;

    ok(ngx_mcp_params_walk(&tool, &arguments, pool, walked, &w)
       == NGX_DECLINED, "the walk ends early");

    text = str(w.text);
    ok(tap_is(&text, "Region=;"), "where there are no arguments");

    memset(&w, 0, sizeof(w));
    tool = str("{\"name\":\"t\",\"inputSchema\":true}");

    ok(ngx_mcp_params_walk(&tool, &arguments, pool, walked, &w) == NGX_OK
       && w.text[0] == '\0', "a schema that is no object");
}


static ngx_uint_t
keep(ngx_str_t *name, ngx_str_t *value, void *data)
{
    return name->len != 1 || name->data[0] != 'b';
}


static void
splice_tests(ngx_pool_t *pool)
{
    ngx_str_t       text, out, members;
    ngx_mcp_edit_t  edits[3];

    static ngx_str_t  names[] = { ngx_string("a"), ngx_null_string };

    text = str("0123456789");

    edits[0].start = 8;
    edits[0].end = 10;
    edits[0].text = str("!");
    edits[1].start = 0;
    edits[1].end = 0;
    edits[1].text = str("<");
    edits[2].start = 3;
    edits[2].end = 5;
    edits[2].text = str("");

    out = ngx_mcp_splice(pool, &text, edits, 3);
    ok(tap_is(&out, "<012567!"), "edits of a text");

    text.data = core_copy("{\"a\": 1, \"\\u0062\":[2], \"c\":{}}", 29);
    text.len = 29;

    ok(ngx_mcp_cut(&text, keep, NULL) == 2
       && tap_is(&text, "{\"a\":1,\"c\":{}}"), "a member is cut");

    members = str("\"x\":0");
    out = ngx_mcp_join(pool, &members, &text, names);
    ok(tap_is(&out, "{\"x\":0,\"c\":{}}"), "members are put in");

    free(text.data);
    ngx_str_null(&text);

    out = ngx_mcp_join(pool, &members, &text, names);
    ok(tap_is(&out, "{\"x\":0}"), "into none");
}


void
envelope_tests(void)
{
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, NULL);

    read_tests();
    header_tests(pool);
    params_tests(pool);
    splice_tests(pool);

    ngx_destroy_pool(pool);
}
