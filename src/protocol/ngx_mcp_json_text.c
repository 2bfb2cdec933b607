
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_json.h"
#include "ngx_mcp_json_token.h"


/* bytes of a string that are skipped before memchr() is called */
#define NGX_MCP_JSON_SHORT  64


static ngx_int_t ngx_mcp_json_next(ngx_str_t *rest, u_char open,
    u_char close);
static u_char *ngx_mcp_json_skip_string(u_char *p, u_char *last);
static u_char *ngx_mcp_json_skip_value(u_char *p, u_char *last);
static uint32_t ngx_mcp_json_code(u_char *p, u_char *last);


/* the letter that escapes a character, 'u': \u00XX, 0: it is not escaped */

static u_char  ngx_mcp_json_escapes[128] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'b', 't', 'n', 'u', 'f', 'r', 'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    0, 0, '"', 0, 0, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,     0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,     0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,     0, 0, 0, 0, '\\', 0, 0, 0
};


ngx_int_t
ngx_mcp_json_element(ngx_str_t *rest, ngx_str_t *element)
{
    if (ngx_mcp_json_next(rest, '[', ']') != NGX_OK) {
        return NGX_DONE;
    }

    ngx_mcp_json_value(rest, element);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_json_member(ngx_str_t *rest, ngx_str_t *name, ngx_str_t *value)
{
    if (ngx_mcp_json_name(rest, name) != NGX_OK) {
        return NGX_DONE;
    }

    ngx_mcp_json_value(rest, value);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_json_name(ngx_str_t *rest, ngx_str_t *name)
{
    u_char  *p, *last;

    if (ngx_mcp_json_next(rest, '{', '}') != NGX_OK) {
        return NGX_DONE;
    }

    last = rest->data + rest->len;
    p = rest->data;

    if (*p == '"') {
        p = ngx_mcp_json_skip_string(p, last);

        name->data = rest->data;
        name->len = p - name->data;

        p = ngx_mcp_json_space(p, last);

        if (p < last && *p == ':') {
            p = ngx_mcp_json_space(p + 1, last);

            rest->data = p;
            rest->len = last - p;

            return NGX_OK;
        }
    }

    /* the scan would not have accepted this text */

    rest->data = last;
    rest->len = 0;

    return NGX_DONE;
}


void
ngx_mcp_json_value(ngx_str_t *rest, ngx_str_t *value)
{
    u_char  *p, *last;

    last = rest->data + rest->len;
    p = ngx_mcp_json_skip_value(rest->data, last);

    value->data = rest->data;
    value->len = p - rest->data;

    rest->data = p;
    rest->len = last - p;
}


/*
 * Moves *rest to the next element or member.  NGX_DONE: there is none, and
 * rest->data is behind the closing bracket.
 */

static ngx_int_t
ngx_mcp_json_next(ngx_str_t *rest, u_char open, u_char close)
{
    u_char  *p, *last;

    last = rest->data + rest->len;
    p = ngx_mcp_json_space(rest->data, last);

    if (p < last && (*p == open || *p == ',')) {
        p = ngx_mcp_json_space(p + 1, last);

        if (p < last && *p != close) {
            rest->data = p;
            rest->len = last - p;

            return NGX_OK;
        }
    }

    rest->data = (p < last) ? p + 1 : last;
    rest->len = 0;

    return NGX_DONE;
}


ngx_uint_t
ngx_mcp_json_control(ngx_str_t *raw)
{
    u_char  *p, *last, ch;

    if (memchr(raw->data, 0x7f, raw->len)) {
        return 1;
    }

    p = raw->data;
    last = p + raw->len;

    for ( ;; ) {
        p = memchr(p, '\\', last - p);

        if (p == NULL) {
            return 0;
        }

        /* a byte follows the backslash, as a quote ends the token */

        ch = *++p;
        p++;

        switch (ch) {

        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
            return 1;

        case 'u':

            if (p[0] != '0' || p[1] != '0') {
                break;
            }

            if (p[2] == '0' || p[2] == '1'
                || (p[2] == '7' && (p[3] | 0x20) == 'f'))
            {
                return 1;
            }

            break;
        }
    }
}


u_char *
ngx_mcp_json_unescape(u_char *dst, ngx_str_t *raw)
{
    size_t   n;
    u_char  *p, *last, *slash;

    if (raw->len < 2) {
        return dst;
    }

    p = raw->data + 1;
    last = raw->data + raw->len - 1;

    while (p < last) {

        slash = memchr(p, '\\', last - p);

        n = (slash ? slash : last) - p;
        dst = ngx_cpymem(dst, p, n);
        p += n;

        if (slash) {
            dst += ngx_mcp_json_decode(&p, last, dst);
        }
    }

    return dst;
}


ngx_int_t
ngx_mcp_json_text(ngx_pool_t *pool, ngx_str_t *raw, ngx_str_t *text)
{
    ngx_str_null(text);

    if (raw->len < 2 || raw->data[0] != '"') {
        return NGX_DECLINED;
    }

    text->data = ngx_pnalloc(pool, raw->len);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    text->len = ngx_mcp_json_unescape(text->data, raw) - text->data;

    return NGX_OK;
}


size_t
ngx_mcp_json_escaped_len(ngx_str_t *text)
{
    size_t   n, len;
    u_char  *p, *last, esc;

    p = text->data;
    last = p + text->len;
    len = 2;

    while (p < last) {

        if (*p < 0x80) {
            esc = ngx_mcp_json_escapes[*p++];
            len += (esc == 0) ? 1 : (esc == 'u') ? 6 : 2;
            continue;
        }

        n = ngx_mcp_utf8_len(p, last);

        p += n ? n : 1;
        len += n ? n : 3;
    }

    return len;
}


u_char *
ngx_mcp_json_escape(u_char *dst, ngx_str_t *text)
{
    size_t         n;
    u_char        *p, *last, esc;
    static u_char  hex[] = "0123456789abcdef";

    p = text->data;
    last = p + text->len;

    *dst++ = '"';

    while (p < last) {

        if (*p < 0x80) {
            esc = ngx_mcp_json_escapes[*p];

            if (esc == 0) {
                *dst++ = *p++;
                continue;
            }

            *dst++ = '\\';
            *dst++ = esc;

            if (esc == 'u') {
                *dst++ = '0';
                *dst++ = '0';
                *dst++ = hex[*p >> 4];
                *dst++ = hex[*p & 0xf];
            }

            p++;
            continue;
        }

        n = ngx_mcp_utf8_len(p, last);

        if (n) {
            dst = ngx_cpymem(dst, p, n);
            p += n;

        } else {
            dst = ngx_cpymem(dst, "\xef\xbf\xbd", 3);
            p++;
        }
    }

    *dst++ = '"';

    return dst;
}


u_char *
ngx_mcp_json_quote(u_char *dst, ngx_str_t *text)
{
    size_t       n;
    u_char      *p, *start, *last;
    ngx_uint_t   space;

    start = dst;
    space = 0;

    p = text->data;
    last = p + text->len;

    while (p < last) {

        if (*p <= 0x20 || *p == 0x7f) {
            space = (dst > start);
            p++;
            continue;
        }

        n = ngx_mcp_utf8_len(p, last);

        if ((size_t) (dst - start) + space + ngx_max(n, 1) > NGX_MCP_QUOTE) {
            break;
        }

        if (space) {
            *dst++ = ' ';
            space = 0;
        }

        if (n == 0) {
            *dst++ = '?';
            p++;
            continue;
        }

        dst = ngx_cpymem(dst, p, n);
        p += n;
    }

    return dst;
}


ngx_uint_t
ngx_mcp_json_same_id(ngx_str_t *a, ngx_str_t *b)
{
    size_t   n;
    u_char  *p, *q, *plast, *qlast, pbuf[4], qbuf[4];

    if (a->len == 0 || b->len == 0) {
        return 0;
    }

    if (a->data[0] != '"' || b->data[0] != '"') {

        if (a->data[0] != '-' && (a->data[0] < '0' || a->data[0] > '9')) {
            return 0;
        }

        return ngx_mcp_equal(a, b);
    }

    if (ngx_mcp_equal(a, b)) {
        return 1;
    }

    p = a->data + 1;
    plast = a->data + a->len - 1;
    q = b->data + 1;
    qlast = b->data + b->len - 1;

    while (p < plast && q < qlast) {

        n = ngx_mcp_json_decode(&p, plast, pbuf);

        if (ngx_mcp_json_decode(&q, qlast, qbuf) != n
            || ngx_memcmp(pbuf, qbuf, n) != 0)
        {
            return 0;
        }
    }

    return p >= plast && q >= qlast;
}


/* p is at the opening quote; returns the byte behind the closing quote */

static u_char *
ngx_mcp_json_skip_string(u_char *p, u_char *last)
{
    u_char  *q, *end;

    /* most strings are short */

    p++;
    p = ngx_mcp_json_skip(p, (last - p > NGX_MCP_JSON_SHORT)
                             ? p + NGX_MCP_JSON_SHORT : last);

    if (p < last && *p == '"') {
        return p + 1;
    }

    for ( /* void */ ; p < last; p = end + 1) {

        end = memchr(p, '"', last - p);

        if (end == NULL) {
            break;
        }

        for (q = end; q > p && q[-1] == '\\'; q--) { /* void */ }

        if (((end - q) & 1) == 0) {
            return end + 1;
        }
    }

    return last;
}


static u_char *
ngx_mcp_json_skip_value(u_char *p, u_char *last)
{
    ngx_uint_t  depth;

    depth = 0;

    while (p < last) {

        switch (*p) {

        case '"':
            p = ngx_mcp_json_skip_string(p, last);
            break;

        case '{':
        case '[':
            depth++;
            p++;
            continue;

        case '}':
        case ']':
            if (depth == 0) {
                return p;
            }

            depth--;
            p++;
            break;

        case ',':
        case ' ':
        case '\n':
        case '\r':
        case '\t':
            if (depth == 0) {
                return p;
            }

            p++;
            continue;

        default:
            p++;
            continue;
        }

        if (depth == 0) {
            return p;
        }
    }

    return last;
}


/* *pos must be below last */

size_t
ngx_mcp_json_decode(u_char **pos, u_char *last, u_char *dst)
{
    size_t     n;
    u_char    *p;
    uint32_t   code, low;

    p = *pos;

    if (*p != '\\') {
        n = ngx_mcp_utf8_len(p, last);
        n = n ? n : 1;

        ngx_memcpy(dst, p, n);
        *pos = p + n;

        return n;
    }

    if (++p == last) {
        *pos = p;
        return 0;
    }

    *pos = p + 1;

    if (*p != 'u') {
        *dst = ngx_mcp_json_unescaped[*p];
        return 1;
    }

    if (last - p < 5) {
        *pos = last;
        return 0;
    }

    code = ngx_mcp_json_code(p + 1, last);
    p += 5;

    if (code >= 0xd800 && code <= 0xdbff
        && last - p >= 6 && p[0] == '\\' && p[1] == 'u')
    {
        low = ngx_mcp_json_code(p + 2, last);

        if (low >= 0xdc00 && low <= 0xdfff) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
    }

    *pos = p;

    if (code < 0x80) {
        dst[0] = (u_char) code;
        return 1;
    }

    if (code < 0x800) {
        dst[0] = (u_char) (0xc0 | (code >> 6));
        dst[1] = (u_char) (0x80 | (code & 0x3f));
        return 2;
    }

    if (code >= 0xd800 && code <= 0xdfff) {
        code = 0xfffd;
    }

    if (code < 0x10000) {
        dst[0] = (u_char) (0xe0 | (code >> 12));
        dst[1] = (u_char) (0x80 | ((code >> 6) & 0x3f));
        dst[2] = (u_char) (0x80 | (code & 0x3f));
        return 3;
    }

    dst[0] = (u_char) (0xf0 | (code >> 18));
    dst[1] = (u_char) (0x80 | ((code >> 12) & 0x3f));
    dst[2] = (u_char) (0x80 | ((code >> 6) & 0x3f));
    dst[3] = (u_char) (0x80 | (code & 0x3f));
    return 4;
}


/* returns the value of four hex digits, which the scan has accepted */

static uint32_t
ngx_mcp_json_code(u_char *p, u_char *last)
{
    u_char    *end;
    uint32_t   code;

    end = (last - p < 4) ? last : p + 4;

    for (code = 0; p < end; p++) {
        code <<= 4;
        code |= (*p <= '9') ? (*p & 0xf) : (uint32_t) ((*p & 0xf) + 9);
    }

    return code;
}


ngx_uint_t
ngx_mcp_utf8_valid(ngx_str_t *text, u_char least)
{
    size_t   n;
    u_char  *p, *last;

    last = text->data + text->len;

    for (p = text->data; p < last; p += n) {
        n = ngx_mcp_utf8_len(p, last);

        if (n == 0 || *p < least) {
            return 0;
        }
    }

    return 1;
}
