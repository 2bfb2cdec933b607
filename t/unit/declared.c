
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_declared.h"


void
declared_tests(void)
{
    size_t       i;
    ngx_str_t    text, key, list_key, none;
    ngx_uint_t   declared;
    ngx_pool_t  *pool;

    static struct {
        const char  *text;
        ngx_uint_t   declared;
    } t[] = {
        { "", 0 },
        { "{}", 0 },
        { "{\"sampling\":{}}", NGX_MCP_DECLARED_SAMPLING },
        { "{\"s\\u0061mpling\":{}}", NGX_MCP_DECLARED_SAMPLING },
        { "{\"sampling\":null,\"roots\":true,\"elicitation\":[]}", 0 },
        { "{\"experimental\":{\"sampling\":{}}}", 0 },
        { "{ \"roots\" : { \"listChanged\" : true } }",
          NGX_MCP_DECLARED_ROOTS },
        { "{\"elicitation\":{}}", NGX_MCP_DECLARED_FORM },
        { "{\"elicitation\":{\"form\":{}}}", NGX_MCP_DECLARED_FORM },
        { "{\"elicitation\":{\"url\":{}}}", NGX_MCP_DECLARED_URL },
        { "{\"elicitation\":{\"url\":{},\"form\":{}},\"sampling\":{}}",
          NGX_MCP_DECLARED_URL|NGX_MCP_DECLARED_FORM
          |NGX_MCP_DECLARED_SAMPLING },
    };

    pool = ngx_create_pool(1024, NULL);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        text.data = (u_char *) t[i].text;
        text.len = strlen(t[i].text);

        ok(ngx_mcp_declared(&text) == t[i].declared, "declared by: %s",
           t[i].text);
    }

    ngx_str_set(&none, "");
    ngx_str_set(&list_key, "admin");

    for (i = 0; i < 16; i++) {
        text = ngx_mcp_declared_compose(pool, i);

        ok(ngx_mcp_declared(&text) == i, "capabilities %d: %.*s", (int) i,
           (int) text.len, text.data);

        key = ngx_mcp_audience_key(pool, ngx_mcp_declared_letter(i),
                                   i % 2 ? &list_key : &none);

        ok(ngx_mcp_audience_key_parse(&key, &declared, &text) == NGX_OK
           && declared == i && text.len == (i % 2 ? 5 : 0)
           && memcmp(text.data, "admin", text.len) == 0,
           "an audience's key with them");
    }

    text = ngx_mcp_declared_compose(pool, 0);
    ok(tap_is(&text, "{}"), "none");

    text = ngx_mcp_declared_compose(pool, 15);
    ok(tap_is(&text, "{\"sampling\":{},\"elicitation\":{\"form\":{},"
                     "\"url\":{}},\"roots\":{}}"), "all");

    ok(ngx_mcp_audience_key_parse(&none, &declared, &text) == NGX_DECLINED,
       "an empty key is none");

    ngx_destroy_pool(pool);
}
