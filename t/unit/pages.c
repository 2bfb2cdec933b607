
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_pages.h"


static ngx_int_t
add(ngx_mcp_pages_t *pages, const char *text, const char **why)
{
    ngx_int_t       rc;
    ngx_str_t       str;
    ngx_mcp_hint_t  hint;
    ngx_mcp_json_t  json;

    hint.until = strstr(text, "\"c\"") ? 5 : 7;
    hint.public = strstr(text, "private") == NULL;

    str.len = strlen(text);
    str.data = core_copy(text, str.len);

    if (ngx_mcp_json_scan(&json, &str) != NGX_OK) {
        free(str.data);
        *why = "the test is wrong";
        return NGX_ERROR;
    }

    rc = ngx_mcp_pages_add(pages, &str, &hint, why);

    free(str.data);

    return rc;
}


static ngx_mcp_list_content_t
whole(ngx_pool_t *pool, const char *text)
{
    const char              *why;
    ngx_mcp_pages_t          pages;
    ngx_mcp_list_content_t   content;

    memset(&content, 0, sizeof(content));
    ngx_mcp_pages_init(&pages, NGX_MCP_LIST_TOOLS, pool);

    if (add(&pages, text, &why) == NGX_OK) {
        ngx_mcp_pages_end(&pages, &content);
    }

    return content;
}


static ngx_uint_t
same(ngx_mcp_list_content_t *a, ngx_mcp_list_content_t *b)
{
    return memcmp(a->digest, b->digest, NGX_MCP_DIGEST_LEN) == 0;
}


static void
gather_tests(ngx_pool_t *pool)
{
    size_t                   i;
    char                     page[128];
    const char              *why;
    ngx_mcp_pages_t          pages;
    ngx_mcp_list_content_t   content;

    static struct {
        ngx_uint_t   kind;
        const char  *text;
        const char  *why;
    } bad[] = {
        { NGX_MCP_LIST_TOOLS, "[]", "the result is not an object" },
        { NGX_MCP_LIST_TOOLS, "{}", "the result has no list" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":{}}", "the result has no list" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":[],\"tools\":[]}",
          "the result has no list" },
        { NGX_MCP_LIST_TOOLS, "{\"prompts\":[]}", "the result has no list" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":[1]}", "an entry is not an object" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":[{}]}", "a tool has no name" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":[{\"name\":1}]}",
          "a tool has no name" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":[{\"name\":\"a\",\"name\":\"b\"}]}",
          "a tool has no name" },
        { NGX_MCP_LIST_TOOLS, "{\"tools\":[],\"nextCursor\":1}",
          "nextCursor is not a string" },
        { NGX_MCP_LIST_PROMPTS, "{\"prompts\":[{}]}", "a prompt has no name" },
        { NGX_MCP_LIST_RESOURCES, "{\"resources\":[{\"name\":\"a\"}]}",
          "a resource has no uri" },
        { NGX_MCP_LIST_TEMPLATES, "{\"resourceTemplates\":[{\"uri\":\"a\"}]}",
          "a template has no uriTemplate" },
    };

    static struct {
        const char  *first;
        const char  *second;
        const char  *list;
    } empty[] = {
        { "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"\"}",
          "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"\"}",
          "[{\"name\":\"a\"}]" },
        { "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"\"}",
          "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"1\"}",
          "[{\"name\":\"a\"}]" },
        { "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"\"}",
          "{\"tools\":[{\"name\":\"b\"}],\"nextCursor\":\"\"}",
          "[{\"name\":\"a\"},{\"name\":\"b\"}]" },
        { "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"\"}",
          "{\"tools\":[{\"name\":\"b\"}]}",
          "[{\"name\":\"a\"},{\"name\":\"b\"}]" },
        { "{\"tools\":[],\"nextCursor\":\"\"}",
          "{\"tools\":[],\"nextCursor\":\"\"}", "[]" },
        { "{\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"nextCursor\":\"\"}",
          "{\"tools\":[{\"name\":\"b\"},{\"name\":\"a\"}],\"nextCursor\":\"\"}",
          "[{\"name\":\"a\"},{\"name\":\"b\"}]" },
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        why = "";
        ngx_mcp_pages_init(&pages, bad[i].kind, pool);
        ok(add(&pages, bad[i].text, &why) == NGX_ERROR
           && strcmp(why, bad[i].why) == 0, "refused: %s", bad[i].text);
    }

    ngx_mcp_pages_init(&pages, NGX_MCP_LIST_TOOLS, pool);

    ok(add(&pages, "{\"tools\": [ {\"name\":\"b\"} , {\"name\":\"a\"} ],"
                   "\"nextCursor\":\"\\u0041\"}", &why) == NGX_AGAIN
       && tap_is(&pages.cursor, "\"\\u0041\""), "a page with a cursor");
    ok(add(&pages, "{\"tools\":[],\"nextCursor\":\"2\"}", &why) == NGX_AGAIN,
       "an empty page");
    ok(add(&pages, "{\"tools\":[{\"name\":\"c\",\"x\":[1, 2]}],"
                   "\"nextCursor\":null}", &why) == NGX_OK, "the last page");
    ok(ngx_mcp_pages_end(&pages, &content) == NGX_OK && content.entries == 3
       && content.hint.until == 5 && content.hint.public
       && tap_is(&content.text, "[{\"name\":\"b\"},{\"name\":\"a\"},"
                                "{\"name\":\"c\",\"x\":[1, 2]}]"),
       "entries stand as they were sent");

    ngx_mcp_pages_init(&pages, NGX_MCP_LIST_TOOLS, pool);
    ok(add(&pages, "{\"tools\":[],\"nextCursor\":\"1\"}", &why) == NGX_AGAIN
       && add(&pages, "{\"tools\":[],\"nextCursor\":\"2\"}", &why) == NGX_AGAIN
       && add(&pages, "{\"tools\":[],\"nextCursor\":\"1\"}", &why) == NGX_ERROR,
       "a circle of pages");

    for (i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        ngx_mcp_pages_init(&pages, NGX_MCP_LIST_TOOLS, pool);
        ok(add(&pages, empty[i].first, &why) == NGX_AGAIN
           && tap_is(&pages.cursor, "\"\"")
           && add(&pages, empty[i].second, &why) == NGX_OK
           && pages.cursor.len == 0
           && ngx_mcp_pages_end(&pages, &content) == NGX_OK
           && tap_is(&content.text, empty[i].list),
           "an empty cursor: %s", empty[i].second);
    }

    ngx_mcp_pages_init(&pages, NGX_MCP_LIST_TOOLS, pool);

    for (i = 0; i < NGX_MCP_PAGES_MAX + 1; i++) {
        snprintf(page, sizeof(page), "{\"tools\":[],\"nextCursor\":\"%d\"}",
                 (int) i);

        if (add(&pages, page, &why) != NGX_AGAIN) {
            break;
        }
    }

    ok(i == NGX_MCP_PAGES_MAX - 1, "the number of pages is bounded");

    core_no_memory = 1;
    ok(add(&pages, "{\"tools\":[]}", &why) == NGX_ERROR
       && ngx_mcp_pages_end(&pages, &content) == NGX_ERROR, "no memory");
    core_no_memory = 0;

    ok(tap_is(ngx_mcp_list_method(NGX_MCP_LIST_TEMPLATES),
              "resources/templates/list")
       && tap_is(ngx_mcp_list_member(NGX_MCP_LIST_TEMPLATES),
                 "resourceTemplates"), "names");
}


static void
digest_tests(ngx_pool_t *pool)
{
    ngx_mcp_list_content_t  a, b;

    a = whole(pool, "{\"tools\":[{\"name\":\"b\"},{\"name\":\"a\"}]}");
    b = whole(pool, "{\"tools\":[{\"name\":\"b\"}, {\"name\":\"a\"}]}");
    ok(same(&a, &b) && memcmp(a.order, b.order, NGX_MCP_DIGEST_LEN) == 0,
       "equal lists");

    b = whole(pool, "{\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}]}");
    ok(same(&a, &b) && memcmp(a.order, b.order, NGX_MCP_DIGEST_LEN) != 0,
       "a new order alone");

    b = whole(pool, "{\"tools\":[{\"name\":\"a\"},{\"name\":\"b\",\"x\":1}]}");
    ok(!same(&a, &b), "a changed entry");

    b = whole(pool, "{\"tools\":[{\"name\":\"a\"}]}");
    ok(!same(&a, &b), "an entry less");

    a = whole(pool, "{\"tools\":[{\"name\":\"\\u0061\",\"x\":1},"
                    "{\"name\":\"a\"}]}");
    b = whole(pool, "{\"tools\":[{\"name\":\"a\"},"
                    "{\"name\":\"\\u0061\",\"x\":1}]}");
    ok(same(&a, &b), "names that are equal once decoded");

    a = whole(pool, "{\"tools\":[]}");
    ok(a.entries == 0 && tap_is(&a.text, "[]"), "an empty list");
}


static void
split_tests(ngx_pool_t *pool)
{
    u_char           buf[NGX_MCP_CURSOR_LEN];
    uint64_t         version;
    ngx_str_t        text, cursor;
    ngx_uint_t       entry;
    ngx_array_t     *pages;
    ngx_mcp_page_t  *page;

    text.data = (u_char *) "[{},{},{\"a\":1},{},{}]";
    text.len = strlen((char *) text.data);

    pages = ngx_mcp_pages_split(&text, 1000, 1000, pool);
    page = pages->elts;
    ok(pages->nelts == 1 && page[0].start == 1
       && page[0].end == text.len - 1, "one page");

    pages = ngx_mcp_pages_split(&text, 1000, 2, pool);
    page = pages->elts;
    ok(pages->nelts == 3 && page[0].end == 6 && page[1].start == 7
       && page[1].entry == 2 && page[2].entry == 4
       && page[2].end == text.len - 1, "pages by the number of entries");

    pages = ngx_mcp_pages_split(&text, 5, 1000, pool);
    page = pages->elts;
    ok(pages->nelts == 3 && page[0].end == 6 && page[1].entry == 2
       && page[1].end - page[1].start == 7 && page[2].entry == 3,
       "pages by size; one entry may exceed it");

    text.data = (u_char *) "[]";
    text.len = 2;
    pages = ngx_mcp_pages_split(&text, 5, 5, pool);
    page = pages->elts;
    ok(pages->nelts == 1 && page[0].start == 1 && page[0].end == 1,
       "no entries");

    cursor.data = buf;
    cursor.len = ngx_mcp_cursor_print(buf, 0xfedcba9876543210ULL, 70000) - buf;

    version = 0;
    entry = 0;

    ok(cursor.len == NGX_MCP_CURSOR_LEN
       && ngx_mcp_cursor_parse(&cursor, &version, &entry) == NGX_OK
       && version == 0xfedcba9876543210ULL && entry == 70000, "a cursor");

    buf[9] = 'g';
    ok(ngx_mcp_cursor_parse(&cursor, &version, &entry) == NGX_DECLINED,
       "no hexadecimal digit");
    cursor.len--;
    ok(ngx_mcp_cursor_parse(&cursor, &version, &entry) == NGX_DECLINED,
       "a cursor too short");
}


void
pages_tests(void)
{
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, NULL);

    gather_tests(pool);
    digest_tests(pool);
    split_tests(pool);

    ngx_destroy_pool(pool);
}
