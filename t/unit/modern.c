
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_modern.h"


#define PREFIX  "io.modelcontextprotocol/"


static void client_tests(ngx_pool_t *pool);
static void request_tests(ngx_pool_t *pool);
static void plain_tests(void);
static void plain(const char *text, ngx_uint_t method, const char *expected);
static ngx_str_t escaped(ngx_pool_t *pool, const char *name);


void
modern_tests(void)
{
    ngx_pool_t  *pool;

    pool = ngx_create_pool(4096, NULL);

    client_tests(pool);
    request_tests(pool);
    plain_tests();

    ngx_destroy_pool(pool);
}


static void
client_tests(ngx_pool_t *pool)
{
    u_char                   *p;
    ngx_str_t                 text;
    ngx_uint_t                i;
    ngx_mcp_modern_client_t   client;

    ngx_memzero(&client, sizeof(ngx_mcp_modern_client_t));

    ngx_str_set(&text, "{\"capabilities\":{\"roots\":{\"listChanged\":true},"
                       "\"elicitation\":{},\"tasks\":{}}}");

    ok(ngx_mcp_modern_client(pool, &text, &client) == NGX_OK
       && tap_is(&client.capabilities,
                 "{\"roots\":{},\"elicitation\":{\"form\":{}}}"),
       "the capabilities of a client");

    /* a client may repeat a capability */

    text.data = ngx_pnalloc(pool, 20000);
    p = ngx_cpymem(text.data, "{\"capabilities\":{", 17);

    for (i = 0; i < 1000; i++) {
        p = ngx_cpymem(p, "\"elicitation\":{},", 17);
    }

    p[-1] = '}';
    *p++ = '}';
    text.len = p - text.data;

    ok(ngx_mcp_modern_client(pool, &text, &client) == NGX_OK
       && client.capabilities.len == 1000 * 26 + 1,
       "capabilities that are there often have room");
}


/* a request must not repeat a member that describes the client */

static void
request_tests(ngx_pool_t *pool)
{
    ngx_str_t        text, name, envelope, none, out;
    ngx_uint_t       i;
    ngx_mcp_json_t   json;

    const char  *names[] = {
        PREFIX "protocolVersion", PREFIX "clientInfo",
        PREFIX "clientCapabilities", PREFIX "logLevel"
    };

    ngx_str_null(&none);
    ngx_str_set(&envelope, "\"e\":1");

    for (i = 0; i < 4; i++) {
        name = escaped(pool, names[i]);

        text.data = ngx_pnalloc(pool, 512);
        text.len = sprintf((char *) text.data, "{\"id\":1,\"params\":"
                           "{\"_meta\":{\"a\":1,%.*s:{},\"b\":2}}}",
                           (int) name.len, (char *) name.data);

        ok(ngx_mcp_json_scan(&json, &text) == NGX_OK, "%s", names[i]);

        out = ngx_mcp_modern_request(pool, &text, &json, &envelope, &none,
                                     &none);

        ok(tap_is(&out, "{\"id\":1,\"params\":{\"_meta\":"
                        "{\"e\":1,\"a\":1,\"b\":2}}}"),
           "%s: left out, with each letter as an escape", names[i]);
    }
}


static void
plain_tests(void)
{
    plain("{\"result\":{\"resultType\":\"complete\",\"a\":1,\"_meta\":"
          "{\"" PREFIX "serverInfo\":{},\"b\":2}}}", NGX_MCP_METHOD_OTHER,
          "{\"result\":{\"a\":1,\"_meta\":{\"b\":2}}}");
    plain("{\"result\":{\"_meta\":{\"" PREFIX "serverInfo\":{}}}}",
          NGX_MCP_METHOD_OTHER, "{\"result\":{}}");
    plain("{\"method\":\"x\",\"params\":{ \"_meta\" : {\"" PREFIX
          "subscriptionId\":1 } , \"uri\" : \"a\" } } ", NGX_MCP_METHOD_OTHER,
          "{\"method\":\"x\",\"params\":{\"uri\":\"a\"} } ");

    /* only the member at its proper place is changed */

    plain("{\"result\":{\"_meta\":{\"_meta\":{\"" PREFIX
          "serverInfo\":{}}}}}", NGX_MCP_METHOD_OTHER,
          "{\"result\":{\"_meta\":{\"_meta\":{\"" PREFIX
          "serverInfo\":{}}}}}");
}


static void
plain(const char *text, ngx_uint_t method, const char *expected)
{
    ngx_str_t       s;
    ngx_mcp_json_t  json;

    s.len = strlen(text);
    s.data = core_copy(text, s.len);

    ok(ngx_mcp_json_scan(&json, &s) == NGX_OK
       && ngx_mcp_modern_plain(&s, &json, method) == 1
       && tap_is(&s, expected), "%s", text);

    free(s.data);
}


static ngx_str_t
escaped(ngx_pool_t *pool, const char *name)
{
    u_char     *p;
    ngx_str_t   out;

    p = ngx_pnalloc(pool, 6 * strlen(name) + 2);
    out.data = p;
    *p++ = '"';

    for ( /* void */ ; *name; name++) {
        p = ngx_cpymem(p, "\\u00", 4);
        *p++ = "0123456789abcdef"[*name >> 4];
        *p++ = "0123456789abcdef"[*name & 15];
    }

    *p++ = '"';
    out.len = p - out.data;

    return out;
}
