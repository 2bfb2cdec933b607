
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_merge.h"


#define NONE  ((ngx_uint_t) -1)


static ngx_mcp_merge_t       merged;
static ngx_mcp_merge_part_t  parts[3];


static ngx_str_t
str(const char *text)
{
    ngx_str_t  s;

    s.len = strlen(text);
    s.data = (u_char *) text;

    return s;
}


static ngx_str_t *
merge(ngx_pool_t *pool, ngx_uint_t kind, const char *a, const char *b,
    const char *c)
{
    ngx_uint_t             i;
    ngx_mcp_merge_lists_t  lists;

    const char  *texts[] = { a, b, c };
    const char  *prefixes[] = { "one", "two", "" };
    const char  *names[] = { "one", "up\"2", "three" };

    for (i = 0; i < 3; i++) {
        parts[i].upstream = str(names[i]);
        parts[i].prefix = str(prefixes[i]);
        parts[i].text = str(texts[i]);
        parts[i].source = i;
    }

    lists.kind = kind;
    lists.parts = parts;
    lists.n = 3;

    if (ngx_mcp_merge(&merged, &lists, pool, pool) != NGX_OK) {
        ngx_str_null(&merged.text);
    }

    return &merged.text;
}


/* returns the source of a name if its upstream knows it as "local", or NONE */

static ngx_uint_t
finds(const char *name, const char *local)
{
    ngx_str_t               s;
    ngx_mcp_merge_entry_t  *e;

    s = str(name);
    e = ngx_mcp_merge_find(&merged, &s);

    return (e && tap_is(&e->local, local)) ? e->source : NONE;
}


void
merge_tests(void)
{
    char         text[8192], *p;
    ngx_uint_t   i, n;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(4096, NULL);

    ok(tap_is(merge(pool, NGX_MCP_LIST_TOOLS, "[{\"name\":\"a\",\"x\":1.50}]",
                    "[ {\"name\": \"a\"} ]", "[{\"name\":\"a\"}]"),
              "[{\"name\":\"one__a\",\"x\":1.50},{\"name\": \"two__a\"},"
              "{\"name\":\"a\"}]"), "names with prefixes, and without");
    ok(finds("one__a", "a") == 0 && finds("two__a", "a") == 1
       && finds("a", "a") == 2 && finds("b", "") == NONE
       && finds("one__b", "") == NONE, "are found");

    ok(tap_is(merge(pool, NGX_MCP_LIST_PROMPTS, "[]", "[{\"name\":\"a\"}]",
                    "[{\"name\":\"one__a\"},{\"name\":\"one_a\"}]"),
              "[{\"name\":\"two__a\"},{\"name\":\"one_a\"}]")
       && parts[2].hidden == 1 && tap_is(&parts[2].first, "one__a")
       && parts[2].first_source == 0,
       "what another upstream would be asked for is left out");

    ok(tap_is(merge(pool, NGX_MCP_LIST_PROMPTS, "[]", "[]", "[]"), "[]")
       && finds("a", "") == NONE && merged.n == 0, "nothing");

    ok(tap_is(merge(pool, NGX_MCP_LIST_RESOURCES,
                    "[{\"uri\":\"r:1\",\"name\":\"n\"}]",
                    "[{\"uri\":\"r:\\u0031\"},{\"uri\":\"r:2\"},"
                    "{\"uri\":\"r:2\",\"y\":2}]",
                    "[{\"uri\":\"r:2\"},{\"uri\":\"r:1\"}]"),
              "[{\"uri\":\"r:1\",\"name\":\"n\"},{\"uri\":\"r:2\"},"
              "{\"uri\":\"r:2\",\"y\":2}]"),
       "URIs stay, and the first upstream's stands");
    ok(finds("r:1", "r:1") == 0 && finds("r:2", "r:2") == 1, "are found");
    ok(parts[0].hidden == 0 && parts[1].hidden == 1
       && tap_is(&parts[1].first, "r:1") && parts[1].first_source == 0
       && parts[2].hidden == 2 && tap_is(&parts[2].first, "r:2")
       && parts[2].first_source == 1, "the hidden ones are known");

    ok(tap_is(merge(pool, NGX_MCP_LIST_TOOLS,
                    "[{\"name\":\"one__a\"}]", "[]",
                    "[{\"name\":\"one__one__a\"},{\"name\":\"b\"}]"),
              "[{\"name\":\"one__one__a\"},{\"name\":\"b\"}]"),
       "a bare name like one with a prefix");

    ok(tap_is(merge(pool, NGX_MCP_LIST_TOOLS,
                    "[{\"name\":\"a\",\"title\":\"T\"},"
                    "{\"name\":\"b\",\"title\":\"T\"}]",
                    "[{\"name\":\"a\",\"annotations\":{\"title\":\"T\"}},"
                    "{\"name\":\"b\",\"title\":\"U\"}]",
                    "[{\"name\":\"c\",\"title\":\"\\u0055\"}]"),
              "[{\"name\":\"one__a\",\"title\":\"T\"},"
              "{\"name\":\"one__b\",\"title\":\"T\"},"
              "{\"name\":\"two__a\",\"annotations\":"
              "{\"title\":\"T (up\\\"2)\"}},"
              "{\"name\":\"two__b\",\"title\":\"U\"},"
              "{\"name\":\"c\",\"title\":\"\\u0055 (three)\"}]"),
       "titles are told apart");

    /* a name of 70 bytes, then 200 entries */

    memset(text, 0, sizeof(text));
    p = text + sprintf(text, "[{\"name\":\"%070d\"}]", 7);
    (void) merge(pool, NGX_MCP_LIST_TOOLS, text, "[]", "[]");
    ok(merged.n == 1 && merged.entries[0].name.len == NGX_MCP_NAME_MAX
       && ngx_mcp_merge_find(&merged, &merged.entries[0].name)->local.len
          == 70, "a cut name");

    p = text;

    for (i = 0; i < 200; i++) {
        p += sprintf(p, "%c{\"name\":\"tool-%d\"}", i ? ',' : '[', (int) i);
    }

    sprintf(p, "]");

    (void) merge(pool, NGX_MCP_LIST_TOOLS, text, text, text);

    for (i = 0, n = 0; i < merged.n; i++) {
        n += (ngx_mcp_merge_find(&merged, &merged.entries[i].name)
              == &merged.entries[i]);
    }

    ok(n == 600, "many");

    core_no_memory = 1;
    ok(merge(pool, NGX_MCP_LIST_TOOLS, "[{\"name\":\"a\"}]", "[]", "[]")->len
       == 0, "no memory");
    core_no_memory = 0;

    ngx_destroy_pool(pool);
}
