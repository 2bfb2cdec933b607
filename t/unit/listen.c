
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_listen.h"


#define KEY  "\"io.modelcontextprotocol/subscriptionId\":"

#define HEAD(method)                                                          \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" method "\""


static void read_tests(ngx_pool_t *pool);
static void tag_tests(void);
static void filter(ngx_pool_t *pool, const char *params, ngx_int_t rc,
    const char *acknowledged);
static void tag(const char *text, const char *expected);


void
listen_tests(void)
{
    ngx_pool_t  *pool;

    pool = ngx_create_pool(4096, NULL);

    read_tests(pool);
    tag_tests();

    ngx_destroy_pool(pool);
}


static void
read_tests(ngx_pool_t *pool)
{
    filter(pool, "{\"notifications\":{\"toolsListChanged\":true,"
                 "\"promptsListChanged\":false,\"other\":1}}", NGX_OK,
           "{\"toolsListChanged\":true}");
    filter(pool, "{\"notifications\":{\"resourceSubscriptions\":"
                 "[\"a:\\u002f/\",\"b:/\",\"a://\"],"
                 "\"resourcesListChanged\":true}}", NGX_OK,
           "{\"resourcesListChanged\":true,"
           "\"resourceSubscriptions\":[\"a://\",\"b:/\"]}");
    filter(pool, "{\"notifications\":{}}", NGX_OK, "{}");
    filter(pool, "{\"notifications\":{\"resourceSubscriptions\":"
                 "[\"a\",\"b\",\"c\"]}}", NGX_DECLINED, NULL);
    filter(pool, "{\"notifications\":{\"resourceSubscriptions\":[1]}}",
           NGX_DECLINED, NULL);
    filter(pool, "{\"notifications\":{\"resourceSubscriptions\":\"a\"}}",
           NGX_DECLINED, NULL);
    filter(pool, "{\"notifications\":{\"toolsListChanged\":1}}",
           NGX_DECLINED, NULL);
    filter(pool, "{\"notifications\":[]}", NGX_DECLINED, NULL);
    filter(pool, "{}", NGX_DECLINED, NULL);
}


static void
filter(ngx_pool_t *pool, const char *params, ngx_int_t rc,
    const char *acknowledged)
{
    char               text[512];
    ngx_int_t          got;
    ngx_str_t          ack, id;
    const char        *why;
    ngx_mcp_listen_t   listen;
    ngx_mcp_message_t  m;

    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"x\","
             "\"method\":\"subscriptions/listen\",\"params\":%s}", params);

    memset(&m, 0, sizeof(m));
    m.text.len = strlen(text);
    m.text.data = core_copy(text, m.text.len);

    ok(ngx_mcp_json_scan(&m.json, &m.text) == NGX_OK, "%s", params);

    why = NULL;
    got = ngx_mcp_listen_read(&m, 2, pool, &listen, &why);

    ok(got == rc && (why != NULL) == (rc == NGX_DECLINED), "is read");

    if (acknowledged && got == NGX_OK) {
        snprintf(text, sizeof(text), HEAD("subscriptions/acknowledged")
                 ",\"params\":{\"_meta\":{" KEY "\"x\"},"
                 "\"notifications\":%s}}", acknowledged);

        id.data = (u_char *) "\"x\"";
        id.len = 3;

        ack = ngx_mcp_listen_acknowledge(pool, &id, &listen);
        ok(tap_is(&ack, text), "and acknowledged");
    }

    free(m.text.data);
}


static void
tag_tests(void)
{
    tag(HEAD("tools/list_changed") "}",
        HEAD("tools/list_changed") ",\"params\":{\"_meta\":{" KEY "42}}}");
    tag(HEAD("resources/updated") ",\"params\":{\"uri\":\"a:/\"}}",
        HEAD("resources/updated")
        ",\"params\":{\"_meta\":{" KEY "42},\"uri\":\"a:/\"}}");
    tag(HEAD("resources/updated")
        ",\"params\":{\"uri\":\"a:/\",\"_meta\":{\"b\":1}}}",
        HEAD("resources/updated")
        ",\"params\":{\"uri\":\"a:/\",\"_meta\":{" KEY "42,\"b\":1}}}");
    tag(HEAD("resources/updated") ",\"params\":{\"_meta\":{}}}",
        HEAD("resources/updated") ",\"params\":{\"_meta\":{" KEY "42}}}");
    tag(HEAD("prompts/list_changed") ",\"params\":{}} ",
        HEAD("prompts/list_changed")
        ",\"params\":{\"_meta\":{" KEY "42}}} ");
    tag("{\"method\":\"notifications/prompts/list_changed\" } ",
        "{\"method\":\"notifications/prompts/list_changed\" "
        ",\"params\":{\"_meta\":{" KEY "42}}} ");
    tag(HEAD("tools/list_changed") ",\"params\":{ }}",
        HEAD("tools/list_changed")
        ",\"params\":{\"_meta\":{" KEY "42} }}");
    tag(HEAD("resources/updated") ",\"params\":{ }}",
        HEAD("resources/updated") ",\"params\":{\"_meta\":{" KEY "42} }}");
    tag(HEAD("tools/list_changed") ",\"params\":{\"_meta\":{ }}}",
        HEAD("tools/list_changed")
        ",\"params\":{\"_meta\":{" KEY "42}}}");
    tag(HEAD("resources/updated")
        ",\"params\":{\"_meta\":{" KEY "\"other\",\"a\":1}}}",
        HEAD("resources/updated")
        ",\"params\":{\"_meta\":{" KEY "42,\"a\":1}}}");
    tag(HEAD("resources/updated") ",\"params\":{\"_meta\":null}}", "");
    tag(HEAD("message") ",\"params\":{\"level\":\"info\"}}", "");
    tag(HEAD("resources/updated") ",\"params\":[]}", "");
    tag("{}", "");
}


static void
tag(const char *text, const char *expected)
{
    size_t     len;
    u_char    *buf;
    ngx_str_t  id, got;

    len = strlen(text);
    id.data = (u_char *) "42";
    id.len = 2;

    buf = malloc(len + NGX_MCP_LISTEN_ROOM + id.len);
    memcpy(buf, text, len);

    got.data = buf;
    got.len = ngx_mcp_listen_tag(buf, len, &id);

    ok(tap_is(&got, expected), "%s", text);

    free(buf);
}
