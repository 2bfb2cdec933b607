
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_stamp.h"


#define MEMBERS  "\"resultType\":\"complete\",\"ttlMs\":0"
#define META     "\"info\":{\"name\":\"n\"}"


static char    out[16384];
static size_t  len;


static ngx_int_t
stamp_write(void *data, u_char *p, size_t n)
{
    memcpy(out + len, p, n);
    len += n;

    return NGX_OK;
}


/* feeds the text in parts of this size */

static const char *
stamp(const char *text, const char *members, const char *meta, size_t part)
{
    size_t           n;
    u_char          *p, *last;
    ngx_mcp_stamp_t  s;

    static ngx_str_t  names[] = {
        ngx_string("resultType"),
        ngx_string("ttlMs"),
        ngx_string("_meta"),
        ngx_null_string
    };

    static ngx_str_t  meta_names[] = {
        ngx_string("info"),
        ngx_null_string
    };

    memset(&s, 0, sizeof(s));

    ngx_str_set(&s.id, "\"mine\"");
    s.members.data = (u_char *) members;
    s.members.len = strlen(members);
    s.names = names;
    s.meta.data = (u_char *) meta;
    s.meta.len = strlen(meta);
    s.meta_names = meta_names;
    s.write = stamp_write;

    len = 0;
    p = (u_char *) text;
    last = p + strlen(text);

    while (p < last) {
        n = ngx_min(part, (size_t) (last - p));
        (void) ngx_mcp_stamp(&s, p, p + n);
        p += n;
    }

    out[len] = '\0';

    return out;
}


/* the result is the same for parts of any size */

static void
is(const char *text, const char *members, const char *meta,
    const char *expected, const char *what)
{
    size_t  part, good;

    good = 0;

    for (part = 1; part <= strlen(text); part++) {
        if (strcmp(stamp(text, members, meta, part), expected) != 0) {
            fprintf(stderr, "# in parts of %zu: %s\n", part, out);
            break;
        }

        good++;
    }

    ok(good == strlen(text), "stamp: %s", what);
}


void
stamp_tests(void)
{
    char    text[2048], expected[4096], *p;
    size_t  i;

    is("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":[1,{\"b\":\"}\"}]}}",
       MEMBERS, META,
       "{\"jsonrpc\":\"2.0\",\"id\":\"mine\",\"result\":{" MEMBERS
       ",\"a\":[1,{\"b\":\"}\"}],\"_meta\":{" META "}}}", "members come first");
    is("{\"result\":{},\"id\":\"x\\\"y\"}", MEMBERS, META,
       "{\"result\":{" MEMBERS ",\"_meta\":{" META "}},\"id\":\"mine\"}",
       "an empty result");
    is("{\"result\":{},\"id\":1}", MEMBERS, "",
       "{\"result\":{" MEMBERS "},\"id\":\"mine\"}", "without _meta");
    is("{\"result\":{\"a\":1}}", "", "", "{\"result\":{\"a\":1}}", "nothing");
    is(" { \"id\" : null , \"result\" : { \"ttlMs\" : 5 , \"a\" : 1 ,"
       " \"resultType\" : [ {\"x\":\"]\"} ] , \"b\" : \"\\\\\" , \"ttlMs\":{} }"
       " } \n", MEMBERS, META,
       "{\"id\":\"mine\",\"result\":{" MEMBERS ",\"a\":1,\"b\":\"\\\\\","
       "\"_meta\":{" META "}}}", "its own go, wherever they are");
    is("{\"result\":{\"a\":true,\"_meta\":{\"x\":1,\"info\":{\"y\":[2]},"
       "\"z\":{\"info\":3}},\"b\":false}}", MEMBERS, META,
       "{\"result\":{" MEMBERS ",\"a\":true,\"_meta\":{" META ",\"x\":1,"
       "\"z\":{\"info\":3}},\"b\":false}}", "_meta keeps what it has");
    is("{\"result\":{\"_meta\":{},\"_meta\":{\"x\":1}}}", MEMBERS, META,
       "{\"result\":{" MEMBERS ",\"_meta\":{" META "}}}", "once");
    is("{\"result\":{\"_meta\":{\"x\":1}}}", "", "",
       "{\"result\":{\"_meta\":{\"x\":1}}}", "or has only that");
    is("{\"result\":{\"_meta\":\"no\"}}", MEMBERS, META,
       "{\"result\":{" MEMBERS ",\"_meta\":{" META "}}}", "what is no _meta");
    is("{\"result\":{\"\\u005fmeta\":{\"inf\\u006f\":1},\"ttl\\u004ds\":2}}",
       MEMBERS, META, "{\"result\":{" MEMBERS ",\"_meta\":{" META "}}}",
       "names with escapes");
    is("{\"result\":{\"a\":{\"ttlMs\":1,\"_meta\":{\"info\":2}}},"
       "\"ttlMs\":3}", MEMBERS, "",
       "{\"result\":{" MEMBERS ",\"a\":{\"ttlMs\":1,\"_meta\":{\"info\":2}}},"
       "\"ttlMs\":3}", "only of the result");
    is("{\"result\":[1,{\"ttlMs\":2}],\"x\":-1.5e3}", MEMBERS, META,
       "{\"result\":[1,{\"ttlMs\":2}],\"x\":-1.5e3}", "what is no object");

    /* a name that is too long to be one of the known ones */

    p = text + sprintf(text, "{\"result\":{\"");

    for (i = 0; i < 700; i++) {
        *p++ = (i % 50) ? 'n' : '\\';
        if (i % 50 == 0) {
            *p++ = '"';
        }
    }

    *p = '\0';
    sprintf(expected, "{\"result\":{" MEMBERS ",%s\":1}}", text + 11);
    strcpy(p, "\":1}}");

    is(text, MEMBERS, "", expected, "a long name");
}
