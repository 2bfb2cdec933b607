
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_json.h"


typedef struct {
    const char             *text;
    size_t                  len;
} json_case_t;


#define T(text)  { text, sizeof(text) - 1 }


static json_case_t  json_accepted[] = {
    T("{}"), T("[]"), T("\"\""), T("0"), T("-0"), T("null"), T("true"),
    T("false"), T(" \t\r\n[ \t\r\n] \t\r\n"), T("[1]"), T("[1,2]"),
    T("[[]]"), T("[{}]"), T("{\"a\":[]}"), T("{\"a\":{\"b\":{}}}"),
    T("{\"\":0}"), T("{\"a\":1,\"a\":2}"), T("{ \"a\" : 1 , \"b\" : 2 }"),
    T("[null,true,false]"), T("[\"a\",1,{\"b\":[2]}]"),

    T("10"), T("-1"), T("123456789012345678901234567890"), T("0.5"),
    T("-0.0"), T("1.25"), T("1e5"), T("1E5"), T("1e+5"), T("1e-5"), T("0e0"),
    T("-0.1e-10"), T("1.7976931348623157e999"), T("[0,1.5e3,-2]"), T("1 "),
    T("[9007199254740993]"), T("[1e400]"), T("{\"a\":0}"), T("[0]"),

    T("\"abc\""), T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), T("\"\\u0000\""),
    T("\"\\u0041\\u00e9\\u20AC\""), T("\"\\uD834\\uDD1E\""),
    T("\"\\ud800\\udc00\""), T("\"\\uDBFF\\uDFFF\""), T("\"\\uFFFF\""),
    T("\"\\ud7ff\\ue000\""), T("\"\x7f\""), T("\"/\""),
    T("\"\\ud800\""), T("\"\\udc00\""), T("\"\\ud800a\""),
    T("\"\\ud800\\n\""), T("\"\\ud800\\u0041\""),
    T("\"\\ud800\\ud800\""), T("\"\\udc00\\ud800\""),
    T("{\"\\ud800\":1}"), T("\"\\ud800\\udbff\""), T("\"\\ud800\\ue000\""),
    T("\"\\ud800\\\\\""), T("\"\\ud800\xc3\xa9\""),
    T("[\"\\ud83d\",\"\\ude00\"]"),
    T("\"\\ud83d\\ud83d\\ude00\\ude00\""),
    T("\"0123456789012345678901234567890123456789\""),
    T("\"0123456789\\n0123456789012345\\u0041\""),

    T("\"\xc2\x80\""), T("\"\xdf\xbf\""), T("\"\xe0\xa0\x80\""),
    T("\"\xed\x9f\xbf\""), T("\"\xee\x80\x80\""), T("\"\xef\xbf\xbf\""),
    T("\"\xf0\x90\x80\x80\""), T("\"\xf4\x8f\xbf\xbf\""),
    T("\"\xef\xbb\xbf\""), T("\"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\""),
    T("\"\xe2\x80\xa8\xe2\x80\xa9\""),
    T("\"a\xc3\xa9" "b\xf0\x9f\x98\x80" "c\""),
    T("{\"\xc3\xa9\":\"\xc3\xa9\"}")
};


static json_case_t  json_refused[] = {
    T(""), T(" "), T("\n"), T("{"), T("["), T("}"), T("]"), T("\""), T(","),
    T(":"), T("{]"), T("[}"), T("[1"), T("[1,"), T("[1,]"), T("[,1]"), T("[,]"),
    T("[1 2]"), T("[1,,2]"), T("{\"a\"}"), T("{\"a\":}"), T("{\"a\":1,}"),
    T("{,}"), T("{\"a\" 1}"), T("{\"a\"::1}"), T("{a:1}"), T("{'a':1}"),
    T("{1:1}"), T("{\"a\":1 \"b\":2}"), T("{\"a\":1;\"b\":2}"), T("{null:1}"),
    T("{}{}"), T("[]]"), T("{}}"), T("1 2"), T("{} x"), T("[]\0"),
    T("\"a\"\"b\""),
    T("[1]//"), T("[1]/**/"), T("/**/[1]"), T("['a']"), T("[1}"),
    T("{\"a\":1]"),
    T("[\v]"), T("[\f]"), T("\xef\xbb\xbf{}"), T("\xc2\xa0[]"),
    T("[\xe2\x80\xa8]"),

    T("nul"), T("nulll"), T("Null"), T("NULL"), T("tru"), T("truee"), T("True"),
    T("fals"), T("falsey"), T("undefined"), T("NaN"), T("Infinity"), T("[nan]"),
    T("-Infinity"), T("[n]"), T("[nuLl]"), T("[tru]"), T("n"), T("nul1"),

    T("-"), T("+1"), T("01"), T("-01"), T("00"), T("1."), T(".1"), T("-.1"),
    T("1.e1"), T("1e"), T("1e+"), T("1E-"), T("1.2.3"), T("1e1.5"), T("0x10"),
    T("1_000"), T("1a"), T("[1.]"), T("[1e]"), T("[-]"), T("--1"), T("-+1"),
    T("1e++1"), T("[0123]"), T("\xef\xbc\x91"), T("1\0"), T("[1e5,0.]"),
    T("- 1"),
    T("1 e5"), T("0e"), T("2.\"a\""), T("[- 1]"), T("[-a]"),

    T("\"abc"), T("\"\\\""), T("\"\\"), T("\"\\x41\""), T("\"\\a\""),
    T("\"\\u\""), T("\"\\u1\""), T("\"\\u12\""), T("\"\\u123\""),
    T("\"\\u123g\""), T("\"\\U0041\""), T("\"\\'\""), T("\"\\0\""),
    T("\"a\nb\""), T("\"a\tb\""), T("\"a\rb\""), T("\"a\0b\""), T("\"\x1f\""),
    T("\"\x01\""), T("\"01234567\n\""), T("\"0123456789abcde\x1f\""),
    T("{\"a\nb\":1}"), T("{\"a"), T("{\"a\\"), T("\"\\ \""), T("\"\\\n\""),
    T("\"\\u 041\""), T("\"\\u-041\""), T("\"\\u00:0\""), T("\"\\u00@0\""),
    T("\"\\u00G0\""), T("\"\\u00`0\""), T("\"\\u00/0\""),

    T("\"\\uD834\\uDD1"), T("\"\\ud800\\\""), T("\"\\ud800"),
    T("\"\\ud800\\x\""),
    T("\"\\ud800\x80\""), T("\"\\ud800\n\""), T("\"\\ud8\""),

    T("\"\x80\""), T("\"\xbf\""), T("\"\xc0\x80\""), T("\"\xc1\xbf\""),
    T("\"\xc2\""), T("\"\xc2\x7f\""), T("\"\xc2\xc0\""), T("\"\xe0\x80\x80\""),
    T("\"\xe0\x9f\xbf\""), T("\"\xe0\xa0\""), T("\"\xe1\x80\""), T("\"\xe1\""),
    T("\"\xed\xa0\x80\""), T("\"\xed\xbf\xbf\""), T("\"\xf0\x80\x80\x80\""),
    T("\"\xf0\x8f\xbf\xbf\""), T("\"\xf0\x90\x80\""), T("\"\xf4\x90\x80\x80\""),
    T("\"\xf5\x80\x80\x80\""), T("\"\xf8\x88\x80\x80\x80\""), T("\"\xfe\""),
    T("\"\xff\""), T("\"\xe6\x97\xa5\xe6\x9c\""), T("\"0123456\x80\""),
    T("{\"\xff\":1}"), T("\"\xe2\x28\xa1\""), T("\"\xe2\x82\x28\""),
    T("\"\xf0\x28\x8c\xbc\""), T("\"\xf0\x90\x28\xbc\""),
    T("\"\xf0\x90\x8c\x28\"")
};


/* whether two scans agree in all that may not depend on the pieces */

static int
json_same(ngx_mcp_json_t *a, ngx_mcp_json_t *b)
{
    ngx_uint_t  i;

    if (a->type != b->type
        || a->ambiguous != b->ambiguous
        || a->offset != b->offset
        || (a->error == NULL) != (b->error == NULL)
        || (a->error && strcmp(a->error, b->error) != 0))
    {
        return 0;
    }

    for (i = 0; i < NGX_MCP_PATH_MAX; i++) {
        if (a->members[i].type != b->members[i].type
            || a->members[i].count != b->members[i].count
            || a->members[i].folded != b->members[i].folded
            || a->members[i].lone != b->members[i].lone
            || a->members[i].start != b->members[i].start
            || a->members[i].end != b->members[i].end)
        {
            return 0;
        }
    }

    return 1;
}


/* scans in pieces that end at i and j; each piece has memory of its own */

static ngx_int_t
json_pieces(ngx_mcp_json_t *json, json_case_t *c, size_t i, size_t j)
{
    u_char     *p;
    size_t      k, from, to;
    ngx_int_t   rc;

    memset(json, 0x5a, sizeof(ngx_mcp_json_t));
    ngx_mcp_json_init(json);

    rc = NGX_AGAIN;
    from = 0;

    for (k = 0; k < 3; k++) {
        to = (k == 0) ? i : (k == 1) ? j : c->len;
        p = core_copy(c->text + from, to - from);
        rc = ngx_mcp_json_feed(json, p, p + (to - from));
        free(p);

        if (rc == NGX_ERROR) {
            break;
        }

        from = to;
    }

    return ngx_mcp_json_end(json);
}


static ngx_int_t
json_bytes(ngx_mcp_json_t *json, json_case_t *c)
{
    u_char  *p;
    size_t   i;

    ngx_mcp_json_init(json);

    for (i = 0; i < c->len; i++) {
        p = core_copy(c->text + i, 1);
        (void) ngx_mcp_json_feed(json, p, p + 1);
        free(p);
    }

    return ngx_mcp_json_end(json);
}


/* checks the result of the whole text, of bytes, and of any three pieces */

static int
json_check(json_case_t *c, ngx_int_t expected)
{
    size_t           i, j;
    ngx_int_t        rc;
    ngx_str_t        text;
    ngx_mcp_json_t   whole, part;

    text.data = core_copy(c->text, c->len);
    text.len = c->len;
    rc = ngx_mcp_json_scan(&whole, &text);
    free(text.data);

    if (rc != expected || (rc == NGX_ERROR && whole.error == NULL)) {
        return 0;
    }

    if (json_bytes(&part, c) != rc || !json_same(&whole, &part)) {
        printf("# by bytes\n");
        return 0;
    }

    for (i = 0; i <= c->len; i++) {
        for (j = i; j <= c->len; j += (c->len > 200 ? 13 : 1)) {
            if (json_pieces(&part, c, i, j) != rc || !json_same(&whole, &part))
            {
                printf("# in pieces, %d %d\n", (int) i, (int) j);
                return 0;
            }
        }
    }

    return 1;
}


static void
json_print(json_case_t *c, const char *what)
{
    size_t  i;

    printf("# %s: ", what);

    for (i = 0; i < c->len; i++) {
        printf(c->text[i] < ' ' || c->text[i] > '~' ? "<%02x>" : "%c",
               (u_char) c->text[i]);
    }

    printf("\n");
}


static void
json_grammar(void)
{
    size_t  i, bad;

    bad = 0;

    for (i = 0; i < sizeof(json_accepted) / sizeof(json_case_t); i++) {
        if (!json_check(&json_accepted[i], NGX_OK)) {
            json_print(&json_accepted[i], "to be accepted");
            bad++;
        }
    }

    ok(bad == 0, "JSON is accepted, in any pieces (%d texts)", (int) i);

    bad = 0;

    for (i = 0; i < sizeof(json_refused) / sizeof(json_case_t); i++) {
        if (!json_check(&json_refused[i], NGX_ERROR)) {
            json_print(&json_refused[i], "to be refused");
            bad++;
        }
    }

    ok(bad == 0, "what is not JSON is refused, in any pieces (%d texts)",
       (int) i);
}


/*
 * Checks all strings of one, two and three bytes against Unicode's table 3-7.
 */

static int
json_utf8_valid(uint32_t a, uint32_t b, uint32_t c, int n)
{
    if (n == 2) {
        return a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf;
    }

    return ((a == 0xe0 && b >= 0xa0 && b <= 0xbf)
            || (a >= 0xe1 && a <= 0xec && b >= 0x80 && b <= 0xbf)
            || (a == 0xed && b >= 0x80 && b <= 0x9f)
            || (a >= 0xee && a <= 0xef && b >= 0x80 && b <= 0xbf))
           && c >= 0x80 && c <= 0xbf;
}


static void
json_utf8(void)
{
    int             a, b, c, bad;
    u_char          text[6];
    ngx_int_t       rc;
    ngx_str_t       str;
    ngx_mcp_json_t  json;

    bad = 0;
    str.data = text;
    text[0] = '"';

    for (a = 0x80; a < 0x100; a++) {
        for (b = 0x80; b < 0x100; b++) {
            text[1] = a; text[2] = b; text[3] = '"';
            str.len = 4;
            rc = ngx_mcp_json_scan(&json, &str);
            bad += ((rc == NGX_OK) != json_utf8_valid(a, b, 0, 2));

            for (c = 0x7e; c < 0xc2; c++) {
                text[3] = c; text[4] = '"';
                str.len = 5;
                rc = ngx_mcp_json_scan(&json, &str);
                bad += ((rc == NGX_OK)
                        != (json_utf8_valid(a, b, c, 3)
                            || (json_utf8_valid(a, b, 0, 2) && c < 0x80)));
            }
        }
    }

    ok(bad == 0, "UTF-8 of two and three bytes");

    bad = 0;

    for (a = 0xf0; a < 0x100; a++) {
        for (b = 0x70; b < 0x100; b++) {
            text[1] = a; text[2] = b; text[3] = 0x80; text[4] = 0xbf;
            text[5] = '"';
            str.len = 6;
            rc = ngx_mcp_json_scan(&json, &str);
            bad += ((rc == NGX_OK)
                    != ((a == 0xf0 && b >= 0x90 && b <= 0xbf)
                        || (a >= 0xf1 && a <= 0xf3 && b >= 0x80 && b <= 0xbf)
                        || (a == 0xf4 && b >= 0x80 && b <= 0x8f)));
        }
    }

    ok(bad == 0, "UTF-8 of four bytes");
}


/* tries each byte value at each place of a long string */

static void
json_places(void)
{
    int             ch, bad, stop;
    size_t          i;
    u_char          text[42];
    ngx_str_t       str;
    ngx_mcp_json_t  json;

    bad = 0;
    str.data = text;
    str.len = sizeof(text);

    for (ch = 0; ch < 256; ch++) {
        for (i = 1; i < sizeof(text) - 1; i++) {
            memset(text, 'x', sizeof(text));
            text[0] = '"';
            text[sizeof(text) - 1] = '"';
            text[i] = ch;

            stop = (ch < 0x20 || ch >= 0x80 || ch == '"' || ch == '\\');
            bad += ((ngx_mcp_json_scan(&json, &str) == NGX_ERROR) != stop);
        }
    }

    ok(bad == 0, "any byte at any place of a string");
}


static void
json_depth(void)
{
    size_t           i;
    u_char          *text;
    ngx_str_t        str;
    ngx_mcp_json_t   json;

    text = malloc(4096);
    str.data = text;

    memset(text, '[', 512);
    memset(text + 512, ']', 512);
    str.len = 1024;
    ok(ngx_mcp_json_scan(&json, &str) == NGX_OK, "512 arrays");

    memset(text, '[', 513);
    memset(text + 513, ']', 513);
    str.len = 1026;
    ok(ngx_mcp_json_scan(&json, &str) == NGX_ERROR && json.offset == 512,
       "513 arrays");

    for (i = 0; i < 510; i++) {
        text[i] = '[';
    }

    memcpy(text + 510, "{\"a\":{}}", 8);
    memset(text + 518, ']', 510);
    str.len = 1028;
    ok(ngx_mcp_json_scan(&json, &str) == NGX_OK, "arrays and two objects");

    text[517] = ']';
    ok(ngx_mcp_json_scan(&json, &str) == NGX_ERROR, "closed as another kind");

    for (i = 0; i < 512; i++) {
        memcpy(text + i * 5, "{\"a\":", 5);
    }

    text[2560] = '1';
    memset(text + 2561, '}', 512);
    str.len = 2561 + 512;
    ok(ngx_mcp_json_scan(&json, &str) == NGX_OK, "512 objects");

    free(text);
}


/* texts, and the spans that a scan notes, as "PATH=raw" */

static struct {
    json_case_t             text;
    ngx_uint_t              path;
    const char             *raw;
    ngx_uint_t              type;
    ngx_uint_t              count;
} json_spans[] = {

#define S(text, path, raw, type, count)                                       \
    { T(text), NGX_MCP_PATH_ ## path, raw, NGX_MCP_JSON_ ## type, count }

    S("{\"id\":1}", ID, "1", NUMBER, 1),
    S("{\"id\": -12.5e3 }", ID, "-12.5e3", NUMBER, 1),
    S("{\"id\":\"a\\\"b\"}", ID, "\"a\\\"b\"", STRING, 1),
    S(" { \"id\" : null , \"x\":1}", ID, "null", NULL, 1),
    S("{\"x\":1,\"id\":true}", ID, "true", TRUE, 1),
    S("{\"x\":[1],\"id\":false}", ID, "false", FALSE, 1),
    S("{\"id\":[1, [2]]}", ID, "[1, [2]]", ARRAY, 1),
    S("{\"id\":{\"id\":5}}", ID, "{\"id\":5}", OBJECT, 1),
    S("{\"id\":{\"id\":5},\"id\":6}", ID, "6", NUMBER, 2),
    S("{\"i\\u0064\":7}", ID, "7", NUMBER, 1),
    S("{\"\\u0069\\u0064\":8,\"id\":9}", ID, "9", NUMBER, 2),
    S("{\"i\\/d\":7}", ID, "", ABSENT, 0),
    S("{\"ID\":7}", ID, "", ABSENT, 0),
    S("{\"id\\u0000\":7}", ID, "", ABSENT, 0),
    S("{\"id \":7}", ID, "", ABSENT, 0),
    S("{\"i\xc3\xa9" "d\":7}", ID, "", ABSENT, 0),
    S("{\"\\u00e9id\":7}", ID, "", ABSENT, 0),
    S("{\"\\ud834\\udd1eid\":7}", ID, "", ABSENT, 0),
    S("{\"\xc3\xa9\":1,\"id\":7}", ID, "7", NUMBER, 1),
    S("{\"i\":7}", ID, "", ABSENT, 0),
    S("[{\"id\":7}]", ID, "", ABSENT, 0),
    S("{\"x\":{\"id\":7}}", ID, "", ABSENT, 0),
    S("{\"x\":{\"id\":7},\"id\":8}", ID, "8", NUMBER, 1),
    S("{\"x\":[{\"id\":7}],\"id\":8}", ID, "8", NUMBER, 1),
    S("{\"x\":\"{\\\"id\\\":7}\",\"id\":8}", ID, "8", NUMBER, 1),
    S("{\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "\":1,\"id\":8}", ID, "8", NUMBER, 1),

    S("{\"params\":{\"name\":\"x\"}}", NAME, "\"x\"", STRING, 1),
    S("{\"params\":{\"name\":\"x\"}}", PARAMS, "{\"name\":\"x\"}", OBJECT, 1),
    S("{\"params\":[{\"name\":\"x\"}]}", NAME, "", ABSENT, 0),
    S("{\"params\":{\"a\":{\"name\":\"x\"}}}", NAME, "", ABSENT, 0),
    S("{\"params\":{\"arguments\":{\"uri\":{}},\"uri\":\"u\"}}", URI, "\"u\"",
      STRING, 1),
    S("{\"params\":{\"name\":1},\"params\":{\"name\":2}}", NAME, "2",
      NUMBER, 2),
    S("{\"name\":1}", NAME, "", ABSENT, 0),
    S("{\"p\\u0061rams\":{\"n\\u0061me\":1}}", NAME, "1", NUMBER, 1),
    S("{\"params\":{},\"name\":1}", NAME, "", ABSENT, 0),
    S("{\"params\":{\"_meta\":{\"progressToken\":{\"a\":[1]}}}}", META_TOKEN,
      "{\"a\":[1]}", OBJECT, 1),
    S("{\"params\":{\"_meta\":{\"progressToken\":5,"
      "\"a\":{\"progressToken\":6}},\"progressToken\":7}}", META_TOKEN, "5",
      NUMBER, 1),
    S("{\"params\":{\"_meta\":{\"progressToken\":5,"
      "\"a\":{\"progressToken\":6}},\"progressToken\":7}}", TOKEN, "7",
      NUMBER, 1),
    S("{\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
      "\"2026-07-28\"}}}", META_VERSION, "\"2026-07-28\"", STRING, 1),
    S("{\"params\":{\"_meta\":{\"io.modelcontextprotocol\\/protocolVersion\":"
      "\"x\"}}}", META_VERSION, "\"x\"", STRING, 1),
    S("{\"params\":{\"_meta\":{\"io\":"
      "{\"modelcontextprotocol/protocolVersion\":\"x\"}}}}", META_VERSION, "",
      ABSENT, 0),
    S("{\"params.name\":1}", NAME, "", ABSENT, 0),
    S("{\"params\":{\"clientInfo\":{\"name\":\"n\",\"version\":\"v\"}}}",
      CLIENT_VERSION, "\"v\"", STRING, 1),
    S("{\"result\":{\"isError\":true}}", IS_ERROR, "true", TRUE, 1),
    S("{\"result\":{\"content\":[{\"isError\":true}],\"isError\":false}}",
      IS_ERROR, "false", FALSE, 1),
    S("{\"error\":{\"code\":-32600,\"message\":\"m\"}}", ERROR_CODE, "-32600",
      NUMBER, 1),
    S("{\"uri\":\"t\",\"params\":{\"uri\":\"p\"}}", TOP_URI, "\"t\"",
      STRING, 1),
    S("{\"uri\":\"t\",\"params\":{\"uri\":\"p\"}}", URI, "\"p\"", STRING, 1),
    S("{\"kind\":\"k\",\"topic\":\"t\"}", TOPIC, "\"t\"", STRING, 1),

#undef S
};


static void
json_members(void)
{
    u_char          *text;
    ngx_str_t        raw, str;
    ngx_uint_t       i;
    ngx_mcp_json_t   json;

    for (i = 0; i < sizeof(json_spans) / sizeof(json_spans[0]); i++) {

        text = core_copy(json_spans[i].text.text, json_spans[i].text.len);
        str.data = text;
        str.len = json_spans[i].text.len;

        if (!ok(ngx_mcp_json_scan(&json, &str) == NGX_OK
                && json_check(&json_spans[i].text, NGX_OK), "span: %s",
                json_spans[i].text.text))
        {
            free(text);
            continue;
        }

        raw = ngx_mcp_json_span(&json, json_spans[i].path, text);

        ok(raw.len == strlen(json_spans[i].raw)
           && (raw.len == 0
               || memcmp(raw.data, json_spans[i].raw, raw.len) == 0)
           && json.members[json_spans[i].path].type == json_spans[i].type
           && json.members[json_spans[i].path].count == json_spans[i].count,
           "is %s", json_spans[i].raw);

        free(text);
    }
}


/* a text, a path, and whether its member is noted as folded or lone */

static struct {
    json_case_t             text;
    ngx_uint_t              path;
    ngx_uint_t              folded;
    ngx_uint_t              lone;
} json_suspects[] = {

#define F(text, path)  { T(text), NGX_MCP_PATH_ ## path, 1, 0 }
#define L(text, path)  { T(text), NGX_MCP_PATH_ ## path, 0, 1 }
#define N(text, path)  { T(text), NGX_MCP_PATH_ ## path, 0, 0 }

    F("{\"ID\":1}", ID), F("{\"iD\":1,\"id\":1}", ID),
    F("{\"METHOD\":1}", METHOD),
    F("{\"\\u004d\\u0045thod\":1}", METHOD), F("{\"Params\":{}}", PARAMS),
    F("{\"param\xc5\xbf\":{}}", PARAMS), F("{\"param\\u017f\":{}}", PARAMS),
    F("{\"param\\u017F\":{}}", PARAMS), F("{\"\xc4\xb1" "d\":1}", ID),
    F("{\"\xc4\xb0" "D\":1}", ID), F("{\"\\u0131d\":1}", ID),
    F("{\"\\u0130d\":1}", ID), F("{\"id\\u0000\":1}", ID),
    F("{\"ID\\u0000\":1}", ID), F("{\"id\\u0000x\xc3\xa9\":1}", ID),
    F("{\"id\\u0000xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxx\":1}", ID),
    F("{\"id\\ud83d\":1}", ID), F("{\"\\ude00i\\ud83dD\":1}", ID),
    F("{\"params\":{\"Name\":1}}", NAME), F("{\"params\":{\"URI\":1}}", URI),
    F("{\"params\":{\"ur\\u0131\":1}}", URI),
    F("{\"params\":{\"_META\":1}}", META),
    F("{\"params\":{\"progre\xc5\xbf\xc5\xbfTo\xe2\x84\xaa" "en\":1}}",
      TOKEN),
    F("{\"params\":{\"_meta\":{\"PROGRESS\\u0054O\\u212aEN\":1}}}", META_TOKEN),
    F("{\"params\":{\"_meta\":{"
      "\"IO.MODELCONTEXTPROTOCOL/PROTOCOLVERSION\":1}}}", META_VERSION),
    F("{\"params\":{\"ref\":{\"NAME\":1}}}", REF_NAME),
    F("{\"params\":{\"ref\":{\"Uri\":1}}}", REF_URI),
    F("{\"params\":{\"clientInfo\":{\"Name\":1}}}", CLIENT_NAME),

    N("{\"id\":1}", ID), N("{\"\\u0069d\":1}", ID), N("{\"x\":{\"ID\":1}}", ID),
    N("{\"params\":{\"\x7fmeta\":1}}", META), N("{\"id \":1}", ID),
    N("{\"\\u0000id\":1}", ID), N("{\"\":1}", ID), N("{\"\\u0000\":1}", ID),
    N("{\"\\ud83d\":1}", ID), N("{\"i\\ud83d\\ude00d\":1}", ID),
    N("{\"params\":{\"n\xc3\xa4me\":1}}", NAME),
    N("{\"params\":{\"arguments\":{\"Name\":1}}}", NAME),
    N("{\"params\":[{\"Name\":1}]}", NAME), N("{\"Name\":1}", NAME),

    L("{\"id\":\"\\ud83d\"}", ID), L("{\"id\":\"a\\ude00b\"}", ID),
    L("{\"method\":\"\\ud83d\\ud83d\\ude00\"}", METHOD),
    L("{\"method\":\"\\ud83dx\"}", METHOD),
    L("{\"method\":\"\\ud83d\\n\"}", METHOD),
    L("{\"params\":{\"name\":\"\\ud83d\xc3\xa9\"}}", NAME),
    L("{\"params\":{\"uri\":\"x\\uDBFF\"}}", URI),
    N("{\"id\":\"\\ud83d\\ude00\"}", ID), N("{\"id\":{\"a\":\"\\ud83d\"}}", ID),
    N("{\"x\":\"\\ud83d\",\"id\":\"a\"}", ID), N("{\"id\":[\"\\ud83d\"]}", ID)

#undef F
#undef L
#undef N
};


static void
json_suspicions(void)
{
    u_char          *text;
    ngx_str_t        str;
    ngx_uint_t       i, j, bad, folded, lone;
    ngx_mcp_json_t   json;

    bad = 0;

    for (i = 0; i < sizeof(json_suspects) / sizeof(json_suspects[0]); i++) {

        text = core_copy(json_suspects[i].text.text, json_suspects[i].text.len);
        str.data = text;
        str.len = json_suspects[i].text.len;

        if (ngx_mcp_json_scan(&json, &str) != NGX_OK
            || !json_check(&json_suspects[i].text, NGX_OK))
        {
            json_print(&json_suspects[i].text, "to be accepted");
            bad++;
        }

        for (j = 0; j < NGX_MCP_PATH_MAX; j++) {
            folded = json_suspects[i].folded && j == json_suspects[i].path;
            lone = json_suspects[i].lone && j == json_suspects[i].path;

            if (json.members[j].folded != folded
                || json.members[j].lone != lone)
            {
                json_print(&json_suspects[i].text, "noted wrongly");
                bad++;
            }
        }

        if (json.ambiguous
            != (json_suspects[i].folded || json_suspects[i].lone))
        {
            json_print(&json_suspects[i].text, "suspect or not");
            bad++;
        }

        free(text);
    }

    ok(bad == 0, "names that others may read, and half surrogate pairs (%d)",
       (int) i);
}


/* checks that each path of the table is found, and nothing else with it */

static void
json_table(void)
{
    char            text[512], inner[256];
    ngx_str_t       str;
    ngx_uint_t      i, j, bad, escaped, node;
    ngx_mcp_json_t  json;

#define P(name, parent, first, key)  { NGX_MCP_PATH_ ## parent, key },
    static struct {
        ngx_uint_t   parent;
        const char  *key;
    } paths[] = { NGX_MCP_JSON_PATHS(P) };
#undef P

    bad = 0;

    for (i = 0; i < 2 * NGX_MCP_PATH_MAX; i++) {

        escaped = i & 1;
        strcpy(text, "[]");

        for (node = i / 2;
             node != NGX_MCP_PATH_ROOT;
             node = paths[node].parent)
        {
            snprintf(inner, sizeof(inner), "%.255s", text);

            if (escaped) {
                sprintf(text, "{\"\\u%04x%s\":%s}", paths[node].key[0],
                        paths[node].key + 1, inner);
            } else {
                sprintf(text, "{\"%s\":%s}", paths[node].key, inner);
            }
        }

        str.data = (u_char *) text;
        str.len = strlen(text);

        bad += (ngx_mcp_json_scan(&json, &str) != NGX_OK);

        for (j = 0; j < NGX_MCP_PATH_MAX; j++) {

            node = i / 2;

            while (node != NGX_MCP_PATH_ROOT && node != j) {
                node = paths[node].parent;
            }

            bad += (json.members[j].count != (node == j));
        }
    }

    ok(bad == 0, "all paths of the table");
}


static void
json_many(void)
{
    size_t           i;
    u_char          *p, *text;
    ngx_str_t        str;
    ngx_mcp_json_t   json;

    text = malloc(300 * 7 + 2);
    p = text;
    *p++ = '{';

    for (i = 0; i < 300; i++) {
        p = ngx_cpymem(p, "\"id\":1,", 7);
    }

    p[-1] = '}';

    str.data = text;
    str.len = p - text;

    ok(ngx_mcp_json_scan(&json, &str) == NGX_OK
       && json.members[NGX_MCP_PATH_ID].count == 255,
       "a count that does not wrap");

    ok(ngx_mcp_json_feed(&json, (u_char *) " ", (u_char *) " " + 1) == NGX_AGAIN
       && ngx_mcp_json_feed(&json, (u_char *) "x", (u_char *) "x" + 1)
          == NGX_ERROR
       && ngx_mcp_json_feed(&json, (u_char *) " ", (u_char *) " " + 1)
          == NGX_ERROR
       && ngx_mcp_json_feed(&json, NULL, NULL) == NGX_ERROR
       && ngx_mcp_json_end(&json) == NGX_ERROR,
       "a fault stays one");

    free(text);
}


/* what is not plain, at each place of strings of each length */

static void
json_lengths(void)
{
    size_t           i, len, n;
    u_char          *text;
    ngx_str_t        str;
    ngx_uint_t       k, bad;
    ngx_mcp_json_t   json;

    static struct {
        const char  *text;
        ngx_int_t    rc;
    } others[] = {
        { "", NGX_OK }, { "\\n", NGX_OK }, { "\\u00e9", NGX_OK },
        { "\\ud83d\\ude00", NGX_OK }, { "\xc3\xa9", NGX_OK },
        { "\xf0\x9f\x98\x80", NGX_OK }, { "\x7f", NGX_OK },
        { "\x1f", NGX_ERROR }, { "\x80", NGX_ERROR }, { "\\q", NGX_ERROR },
        { "\\u00g0", NGX_ERROR }, { "\xe2\x82", NGX_ERROR },
        { "\"", NGX_ERROR }
    };

    bad = 0;

    for (k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
        n = strlen(others[k].text);

        for (len = 0; len < 70; len++) {
            for (i = 0; i <= len; i++) {

                text = malloc(len + n + 2);
                memset(text, 'a', len + n + 2);
                memcpy(text + 1 + i, others[k].text, n);
                text[0] = '"';
                text[len + n + 1] = '"';

                str.data = text;
                str.len = len + n + 2;

                bad += (ngx_mcp_json_scan(&json, &str) != others[k].rc);
                bad += (others[k].rc == NGX_ERROR
                        && (json.offset < 1 + i || json.offset > 1 + i + n));

                free(text);
            }
        }
    }

    ok(bad == 0, "bytes that are not plain, at each place");
}


void
json_tests(void)
{
    json_grammar();
    json_utf8();
    json_places();
    json_depth();
    json_members();
    json_suspicions();
    json_table();
    json_many();
    json_lengths();
}
