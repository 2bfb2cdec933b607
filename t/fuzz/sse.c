
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The incremental parser in random pieces against a plain reading of the
 * standard, line by line over the whole text.
 */

#include "core.h"
#include "ngx_mcp_sse.h"


#define LIMIT  48


#define check(cond)                                                           \
    if (!(cond)) {                                                            \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);            \
        __builtin_trap();                                                     \
    }


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


typedef struct {
    char                   *text;
    size_t                  len;
    size_t                  size;
} out_t;


static void
put(out_t *out, const void *data, size_t len)
{
    if (out->len + len > out->size) {
        out->size = 2 * (out->len + len);
        out->text = realloc(out->text, out->size);
    }

    if (len) {
        memcpy(out->text + out->len, data, len);
        out->len += len;
    }
}


static void
put_event(out_t *out, const void *name, size_t name_len, const void *id,
    size_t id_len, const void *data, size_t len)
{
    put(out, "[", 1);
    put(out, name, name_len);
    put(out, "|", 1);
    put(out, id, id_len);
    put(out, "|", 1);
    put(out, data, len);
    put(out, "]", 1);
}


static void
put_end(out_t *out, const void *id, size_t id_len, long retry, int failed)
{
    char  number[32];

    put(out, "(", 1);
    put(out, id, id_len);
    put(out, number, snprintf(number, sizeof(number), "|%ld|%d)", retry,
                              failed));
}


static void
plain(out_t *out, const u_char *p, const u_char *end)
{
    int            any, has_id;
    long           retry;
    size_t         i, field_len, len, name_len, id_len, last_len, value_len;
    u_char         data[LIMIT + 1], name[64], id[256], last[256];
    const u_char  *line, *colon, *value;

    any = 0;
    has_id = 0;
    retry = -1;
    len = 0;
    name_len = 0;
    id_len = 0;
    last_len = 0;

    if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }

    for ( ;; ) {
        for (line = p; p < end && *p != '\n' && *p != '\r'; p++) { /* void */ }

        field_len = p - line;
        colon = memchr(line, ':', field_len);
        value = p;
        value_len = 0;

        if (colon) {
            value = colon + 1;

            if (value < p && *value == ' ') {
                value++;
            }

            value_len = p - value;
            field_len = colon - line;
        }

        /* data counts before its line is complete */

        if (field_len == 4 && memcmp(line, "data", 4) == 0
            && (colon || p < end))
        {
            if (any && len < LIMIT + 1) {
                data[len++] = '\n';
            }

            any = 1;

            if (value_len > LIMIT || len + value_len > LIMIT) {
                put_end(out, last, last_len, retry, 1);
                return;
            }

            memcpy(data + len, value, value_len);
            len += value_len;
        }

        if (p == end) {
            put_end(out, last, last_len, retry, 0);
            return;
        }

        if (field_len == 5 && memcmp(line, "event", 5) == 0) {
            name_len = ngx_min(value_len, sizeof(name));
            memcpy(name, value, name_len);
        }

        if (field_len == 2 && memcmp(line, "id", 2) == 0) {
            if (value_len > sizeof(id)) {
                id_len = 0;
                has_id = 1;

            } else if (memchr(value, '\0', value_len) == NULL) {
                id_len = value_len;
                memcpy(id, value, id_len);
                has_id = 1;
            }
        }

        if (field_len == 5 && memcmp(line, "retry", 5) == 0 && value_len
            && value_len <= 256)
        {
            for (i = 0; i < value_len && isdigit(value[i]); i++) { /* void */ }

            if (i == value_len) {
                retry = 0;

                for (i = 0; i < value_len; i++) {
                    retry = retry * 10 + value[i] - '0';
                    retry = ngx_min(retry, 0x7fffffff);
                }
            }
        }

        if (p == line) {
            if (has_id) {
                last_len = id_len;
                memcpy(last, id, id_len);
                has_id = 0;
            }

            if (any) {
                put_event(out, name, name_len, last, last_len, data, len);
            }

            any = 0;
            len = 0;
            name_len = 0;
        }

        p += (end - p >= 2 && p[0] == '\r' && p[1] == '\n') ? 2 : 1;
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    u_char         *piece, *p;
    size_t          i, n, from;
    uint32_t        seed;
    out_t           expected, got;
    ngx_int_t       rc;
    ngx_mcp_sse_t   sse;

    memset(&expected, 0, sizeof(expected));
    memset(&got, 0, sizeof(got));

    plain(&expected, data, data + size);

    for (seed = 5381, i = 0; i < size; i++) {
        seed = seed * 33 + data[i];
    }

    memset(&sse, 0x5a, sizeof(sse));
    ngx_mcp_sse_init(&sse, LIMIT, NULL);

    rc = NGX_AGAIN;

    for (from = 0; from < size && rc != NGX_DECLINED; from += n) {
        seed = seed * 1103515245 + 12345;
        n = ((seed >> 16) & 7) ? 1 + (seed >> 20) % 9 : 1 + (seed >> 16) % 99;
        n = ngx_min(n, size - from);

        piece = core_copy(data + from, n);
        p = piece;

        while ((rc = ngx_mcp_sse_feed(&sse, &p, piece + n)) == NGX_OK) {
            put_event(&got, sse.name.data, sse.name.len, sse.id.data,
                      sse.id.len, sse.data.data, sse.data.len);
        }

        check(rc == NGX_DECLINED || p == piece + n);
        free(piece);
    }

    put_end(&got, sse.id.data, sse.id.len,
            sse.retry == NGX_CONF_UNSET_MSEC ? -1 : (long) sse.retry,
            rc == NGX_DECLINED);

    if (got.len != expected.len || memcmp(got.text, expected.text, got.len)) {
        fprintf(stderr, "expected %.*s\ngot      %.*s\n",
                (int) expected.len, expected.text, (int) got.len, got.text);
        __builtin_trap();
    }

    ngx_mcp_sse_free(&sse);
    free(got.text);
    free(expected.text);

    piece = core_copy(data, size);
    ngx_mcp_sse_flatten(piece, piece + size);
    check(memchr(piece, '\n', size) == NULL);
    check(memchr(piece, '\r', size) == NULL);
    free(piece);

    return 0;
}
