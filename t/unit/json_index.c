
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_json_index.h"


static ngx_str_t
index_str(const char *text)
{
    ngx_str_t  s;

    s.data = (u_char *) text;
    s.len = strlen(text);

    return s;
}


static int
index_equal(const char *a, const char *b)
{
    ngx_str_t  x, y;

    x = index_str(a);
    y = index_str(b);

    return ngx_mcp_json_index_value(7, &x) == ngx_mcp_json_index_value(7, &y);
}


/* whether the member of this name, below another path, has this value */

static int
index_has(const char *object, const char *below, const char *name,
    const char *value)
{
    uint64_t               found;
    ngx_str_t              o, b, n, v;
    ngx_uint_t             size, has;
    ngx_mcp_json_index_t   index;
    ngx_mcp_json_field_t  *fields;

    o = index_str(object);
    b = index_str(below);
    n = index_str(name);
    v = index_str(value);

    size = ngx_mcp_json_index_size(&o);
    fields = malloc(size * sizeof(ngx_mcp_json_field_t));

    ngx_mcp_json_index(&index, &o, 7, fields, size);

    has = ngx_mcp_json_index_find(&index, ngx_mcp_json_index_path(7, &b, &n),
                                  &found);
    free(fields);

    return has && found == ngx_mcp_json_index_value(7, &v);
}


void
json_index_tests(void)
{
    int         i, n;
    char        deep[1100], object[8192], name[16], *p;
    ngx_str_t   s;

    ok(index_equal("\"a\"", "\"\\u0061\""), "strings after decoding");
    ok(!index_equal("\"a\"", "\"A\"") && !index_equal("\"\"", "\"a\""),
       "other strings");
    ok(!index_equal("\"a\\u0000b\"", "\"a\""), "a NUL does not end one");
    ok(!index_equal("1", "\"1\"") && !index_equal("true", "\"true\"")
       && !index_equal("null", "0") && !index_equal("0", "{}")
       && !index_equal("{}", "[]") && !index_equal("\"\"", "[]")
       && !index_equal("true", "false"), "types");
    ok(index_equal("1", "1.0") && index_equal("100", "1e2")
       && index_equal("0.05", "5E-2") && index_equal("-1.50e+3", "-1500")
       && index_equal("0", "-0.0e9") && index_equal("1010", "101.0e1"),
       "numbers by value");
    ok(!index_equal("1", "-1") && !index_equal("1", "10")
       && !index_equal("0.1", "1") && !index_equal("11", "101")
       && !index_equal("9007199254740993", "9007199254740992"),
       "other numbers");
    ok(index_equal("[1, {\"a\":2,\"b\":[3]}]", "[1,{\"b\" :[ 3 ],\"a\":2.0}]"),
       "structures");
    ok(!index_equal("[1,2]", "[2,1]") && !index_equal("[[1],2]", "[1,[2]]")
       && !index_equal("{\"a\":1}", "{\"b\":1}")
       && !index_equal("{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}")
       && !index_equal("{\"a\":1}", "{\"a\":1,\"b\":1}")
       && !index_equal("[]", "[[]]"), "other structures");

    ok(index_has("{\"a\":1}", "", "\"a\"", "1"), "a member");
    ok(!index_has("{\"a\":1}", "", "\"b\"", "1"), "none");
    ok(index_has("{ \"x\":[1], \"\\u0061\" : {\"b\":{\"c\":true}}}", "",
                 "\"a.b.c\"", "true"), "a path");
    ok(index_has("{\"a\":{\"b\":{\"c\":1}},\"d\":2}", "", "\"d\"", "2"),
       "a member behind an object");
    ok(index_has("{\"a\":{\"b\":{\"c\":1}}}", "", "\"a\"",
                 "{\"b\":{\"c\":1}}"), "an object as a value");
    ok(index_has("{\"params\":{\"a\":{\"b\":1}}}", "params.", "\"a.b\"", "1"),
       "below another member");
    ok(index_has("{\"a.b\":1}", "", "\"a.b\"", "1"), "a name with a dot");
    ok(!index_has("{\"ab\":1}", "", "\"a.b\"", "1"), "a name without one");
    ok(!index_has("{\"a\":[{\"b\":1}]}", "", "\"a.b\"", "1"),
       "not into arrays");
    ok(index_has("{\"a\":1,\"a\":2}", "", "\"a\"", "2"), "the last of two");

    /* an object with many members, and one of the greatest depth */

    p = object;
    *p++ = '{';

    for (n = 0; n < 700; n++) {
        p += sprintf(p, "%s\"k%d\":%d", n ? "," : "", n, n);
    }

    strcpy(p, "}");

    for (i = 0, n = 0; n < 700; n++) {
        char  key[16];

        sprintf(key, "\"k%d\"", n);
        sprintf(name, "%d", n);
        i += index_has(object, "", key, name);
    }

    ok(i == 700, "700 members");

    memset(deep, '[', 512);
    memset(deep + 512, ']', 512);
    deep[1024] = '\0';

    ok(index_equal(deep, deep) && !index_equal(deep, "[]"), "512 deep");

    s = index_str("");
    ok(ngx_mcp_json_index_value(7, &s) == 0, "nothing");
}
