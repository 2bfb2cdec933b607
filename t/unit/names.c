
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_names.h"


/* a local name of 62 characters, and where it is cut behind "p__" */
#define LONG  "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789"
#define CUT   "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"


static ngx_str_t
str(const char *text)
{
    ngx_str_t  s;

    s.data = (u_char *) text;
    s.len = strlen(text);

    return s;
}


static ngx_str_t
expose(const char *prefix, const char *name)
{
    ngx_str_t      p, n, out;
    static u_char  buf[NGX_MCP_NAME_MAX];

    p = str(prefix);
    n = str(name);

    out.data = buf;
    out.len = ngx_mcp_name_expose(buf, &p, &n) - buf;

    return out;
}


static ngx_int_t
local(const char *prefix, ngx_str_t exposed, ngx_str_t *name)
{
    ngx_str_t  p;

    p = str(prefix);

    return ngx_mcp_name_local(&p, &exposed, name);
}


static ngx_str_t
entry(ngx_pool_t *pool, ngx_uint_t kind, const char *text, const char *prefix,
    const char *suffix)
{
    ngx_str_t  e, p, s, out;

    e.len = strlen(text);
    e.data = core_copy(text, e.len);
    p = str(prefix);
    s = str(suffix);

    out = ngx_mcp_entry_expose(&e, kind, &p, &s, pool);

    if (out.data == e.data) {
        out.data = ngx_pnalloc(pool, out.len);
        memcpy(out.data, e.data, out.len);
    }

    free(e.data);

    return out;
}


static void
name_tests(void)
{
    ngx_str_t  out, name;

    out = expose("git", "log");
    ok(tap_is(&out, "git__log"), "a prefix");
    ok(local("git", out, &name) == NGX_OK && tap_is(&name, "log"),
       "and without it");
    ok(local("gi", out, &name) == NGX_DECLINED
       && local("gits", out, &name) == NGX_DECLINED
       && local("git", str("git__"), &name) == NGX_DECLINED
       && local("git", str("git_log"), &name) == NGX_DECLINED
       && local("git", str("g"), &name) == NGX_DECLINED, "other prefixes");

    out = expose("p", LONG + 1);
    ok(out.len == 64 && local("p", out, &name) == NGX_OK
       && tap_is(&name, LONG + 1), "as long as may be");

    out = expose("p", LONG);
    ok(out.len == 64 && memcmp(out.data, "p__" CUT "_", 56) == 0,
       "a longer one is cut");
    ok(local("p", out, &name) == NGX_AGAIN, "and has to be looked up");
    ok(local("p", str("p__" LONG), &name) == NGX_DECLINED,
       "the whole name is none");

    out = expose("p", LONG "x");
    name = out;
    ok(out.len == 64 && memcmp(out.data, "p__" CUT "_", 56) == 0
       && !tap_is(&out, "p__" CUT "_00000000"), "its tail is a hash");

    out = expose("p", CUT "_0123456");
    ok(local("p", out, &name) == NGX_OK, "7 digits are no tail");
    out = expose("p", CUT "_0123456g");
    ok(local("p", out, &name) == NGX_OK, "a letter too much");
    out = expose("p", CUT "_01234567");
    ok(out.len == 64 && local("p", out, &name) == NGX_AGAIN
       && tap_is(&name, CUT "_01234567"), "a name that only looks like it");

    out = expose("p", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx"
                 "\xf0\x9f\x98\x80 and more than there is room for");
    ok(out.len == 62 && out.data[53] == '_'
       && local("p", out, &name) == NGX_AGAIN, "no character is cut in two");
}


static void
entry_tests(ngx_pool_t *pool)
{
    ngx_str_t  out, in, name, title;

    out = entry(pool, NGX_MCP_LIST_TOOLS,
                "{ \"a\":[1, {\"name\":\"x\"}], \"name\" : \"l\\u006fg\" }",
                "git", "");
    ok(tap_is(&out, "{ \"a\":[1, {\"name\":\"x\"}], "
                    "\"name\" : \"git__log\" }"), "the name alone changes");

    out = entry(pool, NGX_MCP_LIST_TOOLS,
                "{\"name\":\"a\",\"n\\u0061me\":\"b\"}", "p", "");
    ok(tap_is(&out, "{\"name\":\"p__a\",\"n\\u0061me\":\"p__b\"}"),
       "no name is left as it is");

    out = entry(pool, NGX_MCP_LIST_TOOLS,
                "{\"annotations\":{\"title\":\"A\\\"\",\"x\":1},"
                "\"title\":\"B\",\"name\":\"n\"}", "p", "q\"");
    ok(tap_is(&out, "{\"annotations\":{\"title\":\"A\\\" (q\\\")\",\"x\":1},"
                    "\"title\":\"B (q\\\")\",\"name\":\"p__n\"}"),
       "titles are told apart");

    out = entry(pool, NGX_MCP_LIST_PROMPTS, "{\"name\":\"" LONG "\"}", "p",
                "");
    ok(out.len == 64 + strlen("{\"name\":\"\"}")
       && memcmp(out.data, "{\"name\":\"p__" CUT "_", 65) == 0,
       "a long name in an entry");

    out = entry(pool, NGX_MCP_LIST_RESOURCES,
                "{\"uri\":\"a:b\",\"name\":\"n\",\"title\":\"t\"}", "p", "u");
    ok(tap_is(&out, "{\"uri\":\"a:b\",\"name\":\"n\",\"title\":\"t (u)\"}"),
       "a resource keeps its name");

    in = str("{\"name\":\"a\",\"title\":1}");
    name = str("");
    title = str("x");
    out = ngx_mcp_entry_expose(&in, NGX_MCP_LIST_TOOLS, &name, &title, pool);
    ok(out.data == in.data, "nothing to change");

    in = str("{\"title\":\"T\",\"annotations\":{\"title\":\"A\"},"
             "\"name\":\"\\u0041\"}");
    ok(ngx_mcp_entry_names(&in, NGX_MCP_LIST_TOOLS, pool, &name, &title)
       == NGX_OK && tap_is(&name, "A") && tap_is(&title, "T"), "its names");

    in = str("{\"annotations\":{\"title\":\"A\"},\"uriTemplate\":\"a{b}\"}");
    ok(ngx_mcp_entry_names(&in, NGX_MCP_LIST_TEMPLATES, pool, &name, &title)
       == NGX_OK && tap_is(&name, "a{b}") && tap_is(&title, "A"),
       "of a template");

    core_no_memory = 1;
    out = str("p");
    title = ngx_mcp_entry_expose(&in, NGX_MCP_LIST_TOOLS, &out, &out, pool);
    ok(title.data == NULL
       && ngx_mcp_entry_names(&in, NGX_MCP_LIST_TEMPLATES, pool, &name,
                              &title) == NGX_ERROR, "no memory");
    core_no_memory = 0;
}


void
names_tests(void)
{
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, NULL);

    name_tests();
    entry_tests(pool);

    ngx_destroy_pool(pool);
}
