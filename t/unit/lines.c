
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_lines.h"


#define LIMIT  16


typedef struct {
    const char             *text;
    size_t                  len;
    const char             *lines;
} lines_case_t;


#define T(text, lines)  { text, sizeof(text) - 1, lines }


/*
 * The result: each line in brackets, then the number of lines over the limit.
 */

static lines_case_t  lines_cases[] = {
    T("", "0"),
    T("\n", "0"),
    T("a\n", "[a]0"),
    T("a", "[a]0"),
    T("a\r\nb\r\n", "[a][b]0"),
    T("a\n\n \t\r\n\nb", "[a][b]0"),
    T(" a b \n", "[a b]0"),
    T("\x1e" "a\n\x1e" "b\n", "[a][b]0"),
    T("\x1e\n", "0"),
    T("0123456789abcdef\n", "[0123456789abcdef]0"),
    T("0123456789abcdefg\na\n", "[a]1"),
    T("0123456789abcdefg", "1"),
    T("a\n0123456789abcdef01234567\n\nb\n0123456789abcdef0\n", "[a][b]2"),
    T("                 \na\n", "[a]1"),
    T("{\"a\":1}\n{\"b\":2}\n", "[{\"a\":1}][{\"b\":2}]0"),
};


static char    lines_out[256];
static size_t  lines_len;


static void
lines_put(ngx_mcp_lines_t *lines)
{
    lines_len += snprintf(lines_out + lines_len,
                          sizeof(lines_out) - lines_len, "[%.*s]",
                          (int) lines->data.len, (char *) lines->data.data);
}


/* feeds pieces that end at i and j, or that have one byte each */

static int
lines_run(lines_case_t *c, size_t i, size_t j, ngx_uint_t bytes)
{
    u_char           *piece, *p;
    size_t            from, to;
    ngx_int_t         rc;
    ngx_mcp_lines_t   lines;

    lines_len = 0;

    memset(&lines, 0x5a, sizeof(lines));
    ngx_mcp_lines_init(&lines, LIMIT, NULL);

    for (from = 0; from < c->len; from = to) {

        to = bytes ? from + 1 : (from < i) ? i : (from < j) ? j : c->len;

        piece = core_copy(c->text + from, to - from);
        p = piece;

        for ( ;; ) {
            rc = ngx_mcp_lines_feed(&lines, &p, piece + (to - from));

            if (rc != NGX_OK) {
                break;
            }

            lines_put(&lines);
        }

        if (rc != NGX_AGAIN || p != piece + (to - from)) {
            lines_len += sprintf(lines_out + lines_len, "?");
        }

        free(piece);
    }

    if (ngx_mcp_lines_end(&lines) == NGX_OK) {
        lines_put(&lines);
    }

    sprintf(lines_out + lines_len, "%d", (int) lines.skipped);

    ngx_mcp_lines_free(&lines);
    ngx_mcp_lines_free(&lines);

    return strcmp(lines_out, c->lines) == 0;
}


static void
lines_splits(void)
{
    int           good;
    size_t        i, j, k;
    lines_case_t *c;

    for (k = 0; k < sizeof(lines_cases) / sizeof(lines_case_t); k++) {

        c = &lines_cases[k];
        good = lines_run(c, c->len, c->len, 0) && lines_run(c, 0, 0, 1);

        for (i = 0; good && i <= c->len; i++) {
            for (j = i; good && j <= c->len; j++) {
                good = lines_run(c, i, j, 0);
            }
        }

        if (!ok(good, "lines in any pieces, text %d", (int) k)) {
            printf("# %s\n", lines_out);
        }
    }
}


static void
lines_large(void)
{
    int               bad;
    u_char           *text, *p;
    size_t            len;
    ngx_mcp_lines_t   lines;

    len = 300000;
    text = malloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\n';

    ngx_mcp_lines_init(&lines, len, NULL);
    bad = 0;

    p = text;
    bad += (ngx_mcp_lines_feed(&lines, &p, text + 1000) != NGX_AGAIN);
    bad += (ngx_mcp_lines_feed(&lines, &p, text + len + 1) != NGX_OK);
    bad += (lines.data.len != len
            || memcmp(lines.data.data, text, len) != 0);
    bad += (ngx_mcp_lines_feed(&lines, &p, text + len + 1) != NGX_AGAIN);
    bad += (lines.size != 0);

    ok(bad == 0, "a large line, whose memory is given back");

    core_no_memory = 1;
    p = text;
    ok(ngx_mcp_lines_feed(&lines, &p, text + 1000) == NGX_ERROR,
       "no memory for a part of a line");
    core_no_memory = 0;

    ngx_mcp_lines_free(&lines);
    free(text);
}


void
lines_tests(void)
{
    lines_splits();
    lines_large();
}
