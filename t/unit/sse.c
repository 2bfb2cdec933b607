
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_sse.h"


#define LIMIT  64


typedef struct {
    const char             *text;
    size_t                  len;
    const char             *events;
} sse_case_t;


#define T(text, events)  { text, sizeof(text) - 1, events }

#define X8   "xxxxxxxx"
#define X64  X8 X8 X8 X8 X8 X8 X8 X8


/* the result: events as [name/id/data], then (last id, retry, rest) */

static sse_case_t  sse_cases[] = {
    T("", "(||)"),
    T("data: a\n\n", "[||a](||)"),
    T("data: a\r\n\r\n", "[||a](||)"),
    T("data: a\r\r", "[||a](||)"),
    T("data: a\r\n\r", "[||a](||)"),
    T("data: a\n\r", "[||a](||)"),
    T("data: a\n\r\ndata: b\n\n", "[||a][||b](||)"),
    T("data: a\r\rdata: b\r\r", "[||a][||b](||)"),
    T("data: a\r\n\r\ndata: b\r\n\r\n", "[||a][||b](||)"),
    T("data: a\n\n\n\ndata: b\n\n", "[||a][||b](||)"),
    T("data:a\n\n", "[||a](||)"),
    T("data:  a\n\n", "[|| a](||)"),
    T("data:\ta\n\n", "[||\ta](||)"),
    T("data\n\n", "[||](||)"),
    T("data:\n\n", "[||](||)"),
    T("data: \n\n", "[||](||)"),
    T("data\ndata\n\n", "[||\n](||)"),
    T("data: a\ndata: b\n\n", "[||a\nb](||)"),
    T("data: a\r\ndata: b\rdata: c\n\n", "[||a\nb\nc](||)"),
    T("data: a\ndata:\ndata: c\n\n", "[||a\n\nc](||)"),
    T("data: a:b: c\n\n", "[||a:b: c](||)"),
    T("data : a\n\n", "(||)"),
    T(" data: a\n\n", "(||)"),
    T("Data: a\n\n", "(||)"),
    T("dat: a\n\ndatas: a\n\n", "(||)"),
    T("datadatadata: a\n\n", "(||)"),
    T("data: a", "(||)"),
    T("data: a\n", "(||)"),

    T("\xef\xbb\xbf" "data: a\n\n", "[||a](||)"),
    T("\xef\xbb\xbf\xef\xbb\xbf" "data: a\n\n", "(||)"),
    T("\xef\xbb" "data: a\n\ndata: b\n\n", "[||b](||)"),
    T("\xef\n\ndata: b\n\n", "[||b](||)"),
    T("\xef", "(||)"),
    T("\xef\xbb\xbf", "(||)"),
    T("data: \xef\xbb\xbf" "a\n\n", "[||\xef\xbb\xbf" "a](||)"),
    T("\n\xef\xbb\xbf" "data: a\n\n", "(||)"),
    T("\xef\xbb\xbf:c\n\ndata: a\n\n", "[||a](||)"),

    T(": comment\n\n", "(||)"),
    T(":\n\n:\r\r:\r\n\r\n", "(||)"),
    T(": c\ndata: a\n: d\ndata: b\n:data: c\n\n", "[||a\nb](||)"),
    T("foo\nbar: x\ndata: a\n\n", "[||a](||)"),
    T("foo: data: x\n\n", "(||)"),

    T("event: e\ndata: a\n\n", "[e||a](||)"),
    T("data: a\nevent: e\n\n", "[e||a](||)"),
    T("event: e\nevent: f\ndata: a\n\n", "[f||a](||)"),
    T("event: e\nevent\ndata: a\n\n", "[||a](||)"),
    T("event: e\n\ndata: a\n\n", "[||a](||)"),
    T("event: e\ndata: a\n\ndata: b\n\n", "[e||a][||b](||)"),
    T("event: " X64 "y\ndata: a\n\n", "[" X64 "||a](||)"),

    T("id: 1\ndata: a\n\n", "[|1|a](1||)"),
    T("id: 1\ndata: a\n\ndata: b\n\n", "[|1|a][|1|b](1||)"),
    T("id: 1\ndata: a\n\nid: 2\ndata: b\n\n", "[|1|a][|2|b](2||)"),
    T("id: 1\n\n", "(1||)"),
    T("id: 1\n", "(||)"),
    T("id: 1\ndata: a\n\nid: 2\ndata: b\n", "[|1|a](1||)"),
    T("id: 1\ndata: a\n\nid\ndata: b\n\n", "[|1|a][||b](||)"),
    T("id: 1\ndata: a\n\nid: 2\nid: 3\ndata: b\n\n", "[|1|a][|3|b](3||)"),
    T("id: 1\nid: 2\0\ndata: a\n\n", "[|1|a](1||)"),
    T("id: \0\ndata: a\n\n", "[||a](||)"),
    T("id: 1\n\nid: " X64 X64 X64 X64 "\ndata: a\n\n",
      "[|" X64 X64 X64 X64 "|a](" X64 X64 X64 X64 "||)"),
    T("id: 1\n\nid: " X64 X64 X64 X64 "x\ndata: a\n\n", "[||a](||)"),
    T("id: 1\n\nid: " X64 X64 X64 X64 X8 "\n\ndata: a\n\n", "[||a](||)"),

    T("retry: 100\n\n", "(|100|)"),
    T("retry:100\n", "(|100|)"),
    T("retry: 100", "(||)"),
    T("retry: 1\nretry: 2\n", "(|2|)"),
    T("retry: 1\nretry: 2x\nretry: -3\nretry: 4.5\nretry:  6\nretry\nretry:\n",
      "(|1|)"),
    T("retry: 0\n", "(|0|)"),
    T("retry: 99999999999999999999999999\n", "(|2147483647|)"),
    T("data: a\nretry: 5\ndata: b\nevent: e\nid: 7\n\n", "[e|7|a\nb](7|5|)"),

    T("data: " X64 "\n\n", "[||" X64 "](||)"),
    T("data: " X64 "x\n\n", "(||!)"),
    T("data: " X64 "\ndata\n\n", "(||!)"),
    T("data: a\n\ndata: " X64 "x\n\ndata: b\n\n", "[||a](||!)"),
    T("data: " X64 "\n\ndata: " X64 "\n\n", "[||" X64 "][||" X64 "](||)"),
    T(":" X64 X64 "\nfoo: " X64 X64 "\ndata: a\n\n", "[||a](||)"),
    T("data: a\0b\n\n", "[||a\x01" "b](||)"),
    T("data: {\"jsonrpc\":\"2.0\",\r\ndata:  \"id\":1}\r\n\r\n",
      "[||{\"jsonrpc\":\"2.0\",\n \"id\":1}](||)"),
};


static char    sse_out[4096];
static size_t  sse_out_len;


static void
sse_put(const u_char *data, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        sse_out[sse_out_len++] = data[i] ? data[i] : 1;
    }
}


/* feeds pieces that end at i and j, or that have one byte each */

static int
sse_run(sse_case_t *c, size_t i, size_t j, ngx_uint_t bytes)
{
    char           number[32];
    u_char        *piece, *p;
    size_t         from, to;
    ngx_int_t      rc;
    ngx_mcp_sse_t  sse;

    sse_out_len = 0;

    memset(&sse, 0x5a, sizeof(sse));
    ngx_mcp_sse_init(&sse, LIMIT, NULL);

    rc = NGX_AGAIN;

    for (from = 0; from < c->len && rc != NGX_DECLINED; from = to) {

        to = bytes ? from + 1 : (from < i) ? i : (from < j) ? j : c->len;

        piece = core_copy(c->text + from, to - from);
        p = piece;

        for ( ;; ) {
            rc = ngx_mcp_sse_feed(&sse, &p, piece + (to - from));

            if (rc != NGX_OK) {
                break;
            }

            sse_put((u_char *) "[", 1);
            sse_put(sse.name.data, sse.name.len);
            sse_put((u_char *) "|", 1);
            sse_put(sse.id.data, sse.id.len);
            sse_put((u_char *) "|", 1);
            sse_put(sse.data.data, sse.data.len);
            sse_put((u_char *) "]", 1);
        }

        if (rc == NGX_AGAIN && p != piece + (to - from)) {
            sse_put((u_char *) "?", 1);
        }

        free(piece);
    }

    sse_put((u_char *) "(", 1);
    sse_put(sse.id.data, sse.id.len);
    sse_put((u_char *) "|", 1);

    if (sse.retry != NGX_CONF_UNSET_MSEC) {
        snprintf(number, sizeof(number), "%lu", (unsigned long) sse.retry);
        sse_put((u_char *) number, strlen(number));
    }

    sse_put((u_char *) "|", 1);

    if (rc == NGX_DECLINED) {
        p = (u_char *) "x";
        rc = ngx_mcp_sse_feed(&sse, &p, p + 1);
        sse_put((u_char *) (rc == NGX_DECLINED ? "!" : "?"), 1);
    }

    sse_put((u_char *) ")", 1);
    sse_out[sse_out_len] = '\0';

    ngx_mcp_sse_free(&sse);
    ngx_mcp_sse_free(&sse);

    return strcmp(sse_out, c->events) == 0;
}


static void
sse_splits(void)
{
    int         good;
    size_t      i, j, k, n;
    sse_case_t *c;

    for (k = 0; k < sizeof(sse_cases) / sizeof(sse_case_t); k++) {

        c = &sse_cases[k];
        good = sse_run(c, c->len, c->len, 0) && sse_run(c, 0, 0, 1);

        for (i = 0; good && i <= c->len; i++) {
            for (j = i; good && j <= c->len; j++) {
                good = sse_run(c, i, j, 0);
            }
        }

        if (!ok(good, "SSE in any pieces, text %d", (int) k)) {
            printf("# ");

            for (n = 0; n < c->len; n++) {
                printf(c->text[n] < ' ' || c->text[n] > '~' ? "<%02x>" : "%c",
                       (u_char) c->text[n]);
            }

            printf("\n# %s\n", sse_out);
        }
    }
}


static void
sse_large(void)
{
    int            bad;
    u_char        *text, *p;
    size_t         len;
    ngx_mcp_sse_t  sse;

    len = 300000;
    text = malloc(len + 8);
    memcpy(text, "data: ", 6);
    memset(text + 6, 'x', len);
    memcpy(text + 6 + len, "\n\n", 2);

    ngx_mcp_sse_init(&sse, len, NULL);
    bad = 0;

    p = text;
    bad += (ngx_mcp_sse_feed(&sse, &p, text + 1000) != NGX_AGAIN);
    bad += (ngx_mcp_sse_feed(&sse, &p, text + len + 8) != NGX_OK);
    bad += (sse.data.len != len || memcmp(sse.data.data, text + 6, len) != 0);
    bad += (ngx_mcp_sse_feed(&sse, &p, text + len + 8) != NGX_AGAIN);
    bad += (sse.data.len != 0 || sse.size != 0);

    ok(bad == 0, "a large event, whose memory is given back");

    ngx_mcp_sse_free(&sse);

    ngx_mcp_sse_init(&sse, len, NULL);
    core_no_memory = 1;
    p = text;
    ok(ngx_mcp_sse_feed(&sse, &p, text + len + 8) == NGX_DECLINED, "no memory");
    core_no_memory = 0;

    ngx_mcp_sse_free(&sse);
    free(text);
}


/* the memory of a large event is the caller's, who writes around the data */

static void
sse_taken(void)
{
    int                bad;
    u_char            *text, *p, *last;
    size_t             len, head;
    ngx_str_t          data;
    ngx_mcp_sse_t      sse;
    ngx_mcp_memory_t   memory;

    static const char  tail[] = "\r\ndata: b\r\n\r\ndata: c\n\n";

    head = sizeof("data: ") - 1;
    len = 300000;
    text = malloc(head + len + sizeof(tail) - 1);
    last = text + head + len + sizeof(tail) - 1;

    memcpy(text, "data: ", head);
    memset(text + head, 'x', len);
    memcpy(text + head + len, tail, sizeof(tail) - 1);

    ngx_mcp_sse_init(&sse, 2 * len, NULL);
    bad = 0;

    for (p = text; p < text + len; /* void */) {
        bad += (ngx_mcp_sse_feed(&sse, &p, p + 1000) != NGX_AGAIN);
    }

    bad += (ngx_mcp_sse_feed(&sse, &p, last) != NGX_OK);

    data = sse.data;
    bad += (data.len != len + 2 || memcmp(data.data, text + head, len) != 0
            || memcmp(data.data + len, "\nb", 2) != 0);

    ngx_mcp_sse_take(&sse, &data, &memory);
    bad += (memory.start == NULL);

    if (memory.start) {
        memset(data.data - NGX_MCP_SSE_FRONT, 'y', NGX_MCP_SSE_FRONT);
        memset(data.data + data.len, 'z', NGX_MCP_SSE_BEHIND);

        bad += (data.data - NGX_MCP_SSE_FRONT != memory.start
                || data.data + data.len + NGX_MCP_SSE_BEHIND > memory.end);

        free(memory.start);
    }

    ngx_mcp_sse_take(&sse, &data, &memory);
    bad += (memory.start != NULL || sse.data.len != 0);

    bad += (ngx_mcp_sse_feed(&sse, &p, last) != NGX_OK);
    data = sse.data;
    bad += (data.len != 1 || data.data[0] != 'c');

    ngx_mcp_sse_take(&sse, &data, &memory);
    bad += (memory.start != NULL || sse.data.len != 1);

    ok(bad == 0, "the memory of a large event is taken, of a small it stays");

    ngx_mcp_sse_free(&sse);
    free(text);
}


/* an event over the limit is left out, but its id counts */

static void
sse_skip(void)
{
    int            bad;
    u_char        *p, *last;
    size_t         step;
    ngx_mcp_sse_t  sse;
    static char    text[] = "id: 1\ndata: " X64 "\ndata: x\nevent: e\n\n"
                            "data: a\n\nid: 2\ndata: " X64 "x\nid: 3\n\n"
                            "data: b\n\n";

    for (step = 1; step < sizeof(text); step++) {

        ngx_mcp_sse_init(&sse, LIMIT, NULL);
        sse.skip = 1;

        bad = 0;
        p = (u_char *) text;

        for (last = p; last < (u_char *) text + sizeof(text) - 1; /* void */) {

            last = ngx_min(last + step, (u_char *) text + sizeof(text) - 1);

            while (ngx_mcp_sse_feed(&sse, &p, last) == NGX_OK) {
                bad = bad * 10 + (sse.data.len == 1 && sse.name.len == 0
                                  && sse.id.len == 1)
                                 * (sse.data.data[0] - 'a' + 1)
                                 * (sse.id.data[0] - '0');
            }
        }

        if (bad != 16 || sse.skipped != 2) {
            break;
        }

        ngx_mcp_sse_free(&sse);
    }

    ok(step == sizeof(text), "events over the limit are left out");

    ngx_mcp_sse_free(&sse);
}


static void
sse_flat(void)
{
    u_char  *p;

    p = core_copy("{\r\n \"a\" :\n1}\r0123456789abcdef\n\n", 32);
    ngx_mcp_sse_flatten(p, p + 31);
    ok(memcmp(p, "{   \"a\" : 1} 0123456789abcdef  ", 31) == 0, "flat text");
    ngx_mcp_sse_flatten(p, p);
    free(p);
}


void
sse_tests(void)
{
    sse_splits();
    sse_large();
    sse_taken();
    sse_skip();
    sse_flat();
}
