
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_json.h"


/* longer than most, and as long as 64 with what follows */

#define TEXT_LONG                                                             \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"


static int
text_unescape(const char *raw, const char *expected, size_t len)
{
    int         good;
    u_char     *dst, *end;
    ngx_str_t   str;

    str.len = strlen(raw);
    str.data = core_copy(raw, str.len);
    dst = core_copy(raw, str.len);

    end = ngx_mcp_json_unescape(dst, &str);
    good = ((size_t) (end - dst) == len && memcmp(dst, expected, len) == 0);

    free(dst);
    free(str.data);

    return good;
}


static void
text_pool(void)
{
    ngx_str_t    raw, text;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(4096, NULL);

    ngx_str_set(&raw, "\"a\\nb\"");
    ok(ngx_mcp_json_text(pool, &raw, &text) == NGX_OK
       && text.len == 3 && memcmp(text.data, "a\nb", 3) == 0,
       "a string is decoded from a pool");

    core_no_memory = 1;
    ok(ngx_mcp_json_text(pool, &raw, &text) == NGX_ERROR && text.len == 0,
       "no memory");
    core_no_memory = 0;

    ngx_str_set(&raw, "12");
    ok(ngx_mcp_json_text(pool, &raw, &text) == NGX_DECLINED && text.len == 0,
       "no string");

    ngx_str_null(&raw);
    ok(ngx_mcp_json_text(pool, &raw, &text) == NGX_DECLINED && text.len == 0,
       "no value");

    ngx_destroy_pool(pool);
}


static int
text_escape(const char *text, size_t len, const char *expected)
{
    int              good;
    u_char          *dst;
    ngx_str_t        str, out;
    ngx_mcp_json_t   json;

    str.len = len;
    str.data = core_copy(text, len);

    out.len = ngx_mcp_json_escaped_len(&str);
    dst = core_copy("", 0);
    dst = realloc(dst, out.len);
    out.data = dst;

    good = (size_t) (ngx_mcp_json_escape(dst, &str) - dst) == out.len
           && out.len == strlen(expected)
           && memcmp(dst, expected, out.len) == 0
           && ngx_mcp_json_scan(&json, &out) == NGX_OK;

    free(dst);
    free(str.data);

    return good;
}


static int
text_quote(const char *text, const char *expected)
{
    int         good;
    u_char     *dst;
    ngx_str_t   str;

    str.len = strlen(text);
    str.data = core_copy(text, str.len);
    dst = malloc(NGX_MCP_QUOTE);

    good = (size_t) (ngx_mcp_json_quote(dst, &str) - dst) == strlen(expected)
           && memcmp(dst, expected, strlen(expected)) == 0;

    free(dst);
    free(str.data);

    return good;
}


/* quotes a part often; leaves out as many as there is no room for */

static int
text_quote_max(const char *part, size_t room)
{
    int         good;
    size_t      i, len;
    u_char     *dst;
    ngx_str_t   str;

    str.len = 0;
    str.data = malloc(4 * NGX_MCP_QUOTE);

    for (i = 0; i < NGX_MCP_QUOTE; i += room) {
        memcpy(str.data + str.len, part, strlen(part));
        str.len += strlen(part);
        memcpy(str.data + str.len, part, strlen(part));
        str.len += strlen(part);
    }

    dst = malloc(NGX_MCP_QUOTE);
    len = ngx_mcp_json_quote(dst, &str) - dst;
    good = len <= NGX_MCP_QUOTE && len + room > NGX_MCP_QUOTE;

    free(dst);
    free(str.data);

    return good;
}


static int
text_same(const char *a, const char *b)
{
    int        rc;
    ngx_str_t  sa, sb;

    sa.len = strlen(a);
    sa.data = core_copy(a, sa.len);
    sb.len = strlen(b);
    sb.data = core_copy(b, sb.len);

    rc = ngx_mcp_json_same_id(&sa, &sb);

    if ((int) ngx_mcp_json_same_id(&sb, &sa) != rc) {
        rc = -1;
    }

    free(sa.data);
    free(sb.data);

    return rc;
}


/* walks over a text and joins the elements that it finds by "|" */

static int
text_walk(const char *text, ngx_uint_t object, const char *expected)
{
    u_char     *copy;
    char        joined[512];
    size_t      n;
    ngx_int_t   rc;
    ngx_str_t   rest, name, value;

    rest.len = strlen(text);
    copy = core_copy(text, rest.len);
    rest.data = copy;
    n = 0;

    for ( ;; ) {
        if (object) {
            rc = ngx_mcp_json_member(&rest, &name, &value);

        } else {
            rc = ngx_mcp_json_element(&rest, &value);
        }

        if (rc != NGX_OK) {
            break;
        }

        if (object) {
            n += sprintf(joined + n, "%.*s=", (int) name.len, name.data);
        }

        n += sprintf(joined + n, "%.*s|", (int) value.len, value.data);
    }

    joined[n] = '\0';
    free(copy);

    if (rc != NGX_DONE || strcmp(joined, expected) != 0) {
        printf("# %s: got %s\n", text, joined);
        return 0;
    }

    return 1;
}


/* walks over an array, behind which the text goes on */

static int
text_behind(const char *text, const char *expected, const char *behind)
{
    u_char     *copy, *last;
    char        joined[512];
    size_t      n;
    ngx_str_t   rest, element;

    rest.len = strlen(text);
    copy = core_copy(text, rest.len);
    rest.data = copy;
    last = copy + rest.len;
    n = 0;

    while (ngx_mcp_json_element(&rest, &element) == NGX_OK) {
        n += sprintf(joined + n, "%.*s|", (int) element.len, element.data);
    }

    joined[n] = '\0';
    n = last - rest.data;

    if (strcmp(joined, expected) != 0 || n != strlen(behind)
        || memcmp(rest.data, behind, n) != 0)
    {
        printf("# %s: got %s and %.*s\n", text, joined, (int) n, rest.data);
        free(copy);
        return 0;
    }

    free(copy);

    return 1;
}


void
text_tests(void)
{
    text_pool();

    ok(text_unescape("\"\"", "", 0)
       && text_unescape("\"abc\"", "abc", 3)
       && text_unescape("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8)
       && text_unescape("\"a\\u0000b\"", "a\0b", 3)
       && text_unescape("\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 6)
       && text_unescape("\"\\uD834\\uDD1E!\"", "\xf0\x9d\x84\x9e!", 5)
       && text_unescape("\"\\uffff\\ud7ff\\ue000\"",
                        "\xef\xbf\xbf\xed\x9f\xbf\xee\x80\x80", 9)
       && text_unescape("\"\xc3\xa9\\n\xc3\xa9\"", "\xc3\xa9\n\xc3\xa9", 5)
       && text_unescape("\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 4)
       && text_unescape("\"\\u007f\\u0080\\u07ff\\u0800\"",
                        "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80", 8),
       "strings are decoded");

    ok(text_unescape("", "", 0) && text_unescape("\"", "", 0)
       && text_unescape("\"\\ud800\"", "\xef\xbf\xbd", 3)
       && text_unescape("\"\\ud800\\u0041\"", "\xef\xbf\xbd" "A", 4)
       && text_unescape("\"\\\"", "", 0) && text_unescape("\"\\u12\"", "", 0),
       "what was not scanned does no harm");

    ok(text_escape("", 0, "\"\"") && text_escape("abc/", 4, "\"abc/\"")
       && text_escape("a\"b\\c", 5, "\"a\\\"b\\\\c\"")
       && text_escape("\b\f\n\r\t\v\0\x1f\x7f", 9,
                      "\"\\b\\f\\n\\r\\t\\u000b\\u0000\\u001f\x7f\"")
       && text_escape("\xc3\xa9\xf0\x9d\x84\x9e", 6,
                      "\"\xc3\xa9\xf0\x9d\x84\x9e\"")
       && text_escape("a\xff" "b", 3, "\"a\xef\xbf\xbd" "b\"")
       && text_escape("\xc3", 1, "\"\xef\xbf\xbd\"")
       && text_escape("\xed\xa0\x80", 3,
                      "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
       "text is encoded");

    ok(text_same("\"a\"", "\"a\"") == 1 && text_same("\"\"", "\"\"") == 1
       && text_same("\"a\"", "\"\\u0061\"") == 1
       && text_same("\"a/b\"", "\"a\\/b\"") == 1
       && text_same("\"\xc3\xa9x\"", "\"\\u00e9x\"") == 1
       && text_same("\"\xf0\x9d\x84\x9e\"", "\"\\ud834\\udd1e\"") == 1
       && text_same("\"\\n\"", "\"\\u000a\"") == 1
       && text_same("1", "1") == 1 && text_same("-7", "-7") == 1,
       "the same ids");

    ok(text_same("\"a\"", "\"b\"") == 0 && text_same("\"a\"", "\"ab\"") == 0
       && text_same("\"a\"", "\"\\u0062\"") == 0
       && text_same("\"\"", "\"\\u0000\"") == 0
       && text_same("\"\\u0061\"", "\"ab\"") == 0
       && text_same("\"\xc3\xa9\"", "\"\\u00c3\\u00a9\"") == 0
       && text_same("1", "\"1\"") == 0 && text_same("1", "2") == 0
       && text_same("1", "1.0") == 0 && text_same("1", "11") == 0
       && text_same("null", "null") == 0 && text_same("", "") == 0
       && text_same("\"a\"", "") == 0 && text_same("{}", "{}") == 0,
       "different ids");

    ok(text_quote("", "") && text_quote(" \t\n", "")
       && text_quote("a", "a") && text_quote(" a\r\n\x01 b\x7f", "a b")
       && text_quote("\xc3\xa9\xff<p>\"", "\xc3\xa9?<p>\"")
       && text_quote_max("x", 1) && text_quote_max(" x", 2)
       && text_quote_max("\xc3\xa9", 2) && text_quote_max("x\xff", 2)
       && text_quote_max("\xf0\x9d\x84\x9e", 4),
       "the beginning of a text");

    ok(text_walk("[]", 0, "") && text_walk(" [ ] ", 0, "")
       && text_walk("[1]", 0, "1|") && text_walk("[1,2]", 0, "1|2|")
       && text_walk(" [ 1 , \"a,]\\\"\" ,[2,[3]], {\"x\":[1,2]} , true ] ", 0,
                    "1|\"a,]\\\"\"|[2,[3]]|{\"x\":[1,2]}|true|")
       && text_walk("[[],[[]],{}]", 0, "[]|[[]]|{}|")
       && text_walk("[\"\\\\\",\"\\\\\\\"\"]", 0, "\"\\\\\"|\"\\\\\\\"\"|")
       && text_walk("[{\"a\":\"}\"},\"]\"]", 0, "{\"a\":\"}\"}|\"]\"|"),
       "elements of an array");

    ok(text_behind("[]", "", "") && text_behind("[ ],1]", "", ",1]")
       && text_behind("[1,{},[2], { } ]}", "1|{}|[2]|{ }|", "}")
       && text_behind(" [{\"c\":\"}\" } ] , []", "{\"c\":\"}\" }|", " , []")
       && text_behind("[{\"name\":\"a\"", "{\"name\":\"a\"|", "")
       && text_behind("{}", "", "}") && text_behind("", "", ""),
       "what follows an array");

    ok(text_walk("[\"" TEXT_LONG "\",\"" TEXT_LONG "\\\"x\",\"\xc3\xa9\\\\\"]",
                 0, "\"" TEXT_LONG "\"|\"" TEXT_LONG "\\\"x\"|"
                 "\"\xc3\xa9\\\\\"|"),
       "long strings");

    ok(text_walk("{}", 1, "") && text_walk(" { } ", 1, "")
       && text_walk("{\"a\":1}", 1, "\"a\"=1|")
       && text_walk(" { \"a\" : 1 , \"b\\\"\" : [ {} , {} ] , \"\":{\"a\":2}}",
                    1, "\"a\"=1|\"b\\\"\"=[ {} , {} ]|\"\"={\"a\":2}|")
       && text_walk("{\"a,\":\"b:\",\"c\":null}", 1,
                    "\"a,\"=\"b:\"|\"c\"=null|"),
       "members of an object");

    ok(text_walk("{}", 0, "") && text_walk("[]", 1, "") && text_walk("1", 0, "")
       && text_walk("", 0, "") && text_walk("", 1, "")
       && text_walk("{\"a", 1, ""),
       "something else has none");
}
