
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_json_token.h"


#define ngx_mcp_json_is_digit(ch)  ((u_char) ((ch) - '0') < 10)

#define NGX_MCP_JSON_HEX  0x10


static size_t ngx_mcp_json_escape_len(u_char *p, u_char *last);
static ngx_uint_t ngx_mcp_json_hex(u_char *p);
static ngx_int_t ngx_mcp_json_escaped(ngx_mcp_json_t *json, u_char ch);
static void ngx_mcp_json_unicode(ngx_mcp_json_t *json);
static void ngx_mcp_json_character(ngx_mcp_json_t *json);
static void ngx_mcp_json_lone(ngx_mcp_json_t *json);
static ngx_int_t ngx_mcp_json_utf8(ngx_mcp_json_t *json, u_char ch);


/* the values of hexadecimal digits, each with the bit NGX_MCP_JSON_HEX */

static const u_char  ngx_mcp_json_digits[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14,
    ['5'] = 0x15, ['6'] = 0x16, ['7'] = 0x17, ['8'] = 0x18, ['9'] = 0x19,
    ['a'] = 0x1a, ['b'] = 0x1b, ['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e,
    ['f'] = 0x1f, ['A'] = 0x1a, ['B'] = 0x1b, ['C'] = 0x1c, ['D'] = 0x1d,
    ['E'] = 0x1e, ['F'] = 0x1f
};


const u_char  ngx_mcp_json_unescaped[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f',
    ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
};


static ngx_inline void
ngx_mcp_json_keep(ngx_mcp_json_t *json, u_char *p, size_t len)
{
    if (!json->keep || json->cut) {
        return;
    }

    if (len > sizeof(json->key) - json->key_len) {
        json->keep = 0;
        return;
    }

    ngx_memcpy(json->key + json->key_len, p, len);
    json->key_len += (u_char) len;
}


ngx_int_t
ngx_mcp_json_string(ngx_mcp_json_t *json, u_char **pos, u_char *last)
{
    u_char     ch, *p, *start;
    ngx_int_t  rc;

    p = *pos;

    while (p < last) {

        if (json->substate == json_plain) {

            if (json->surrogate && *p != '\\') {
                ngx_mcp_json_lone(json);
            }

            if (json->name) {
                start = p;
                p = ngx_mcp_json_skip(p, last);
                ngx_mcp_json_keep(json, start, p - start);

            } else if (!json->surrogate) {
                p = ngx_mcp_json_skip_whole(p, last);
            }

            if (p == last) {
                break;
            }

            ch = *p;

            if (ch == '"') {
                *pos = p + 1;
                return NGX_OK;
            }

            if (ch == '\\') {
                p++;
                json->substate = json_escape;
                continue;
            }

            if (ch < 0x20) {
                json->error = "raw control character in a JSON string";
                *pos = p;
                return NGX_ERROR;
            }

            json->need = 0;
            json->substate = json_utf8;
        }

        rc = (json->substate == json_utf8) ? ngx_mcp_json_utf8(json, *p)
                                           : ngx_mcp_json_escaped(json, *p);

        if (rc == NGX_ERROR) {
            *pos = p;
            return NGX_ERROR;
        }

        p++;
    }

    *pos = p;

    return NGX_AGAIN;
}


u_char *
ngx_mcp_json_space(u_char *p, u_char *last)
{
    while (p < last
           && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
    {
        p++;
    }

    return p;
}


u_char *
ngx_mcp_json_skip_rest(u_char *p, u_char *last)
{
    size_t  n;

    do {
        p = ngx_mcp_json_skip(p, last);

        if (p == last || *p == '"') {
            break;
        }

        if (*p == '\\') {
            n = ngx_mcp_json_escape_len(p, last);
            p += n;
            continue;
        }

        if (*p < 0x20) {
            break;
        }

        do {
            n = ngx_mcp_utf8_len(p, last);
            p += n;
        } while (n && p < last && *p >= 0x80);

    } while (n);

    return p;
}


/* returns the bytes of the escape at p; 0: it is invalid, or not complete */

static size_t
ngx_mcp_json_escape_len(u_char *p, u_char *last)
{
    ngx_uint_t  code;

    if (last - p < 6 || p[1] != 'u') {

        if (last - p < 2 || p[1] == 'u' || !ngx_mcp_json_unescaped[p[1]]) {
            return 0;
        }

        return 2;
    }

    code = ngx_mcp_json_hex(p + 2);

    if ((code & 0xf800) != 0xd800) {
        return (code <= 0xffff) ? 6 : 0;
    }

    /* the first half of a surrogate pair, or a lone half */

    if (code >= 0xdc00 || last - p < 12 || p[6] != '\\' || p[7] != 'u') {
        return 0;
    }

    return ((ngx_mcp_json_hex(p + 8) & ~0x3ff) == 0xdc00) ? 12 : 0;
}


/* returns the value of four hex digits; above 0xffff: not all are digits */

static ngx_uint_t
ngx_mcp_json_hex(u_char *p)
{
    u_char      all;
    ngx_uint_t  i, code;

    code = 0;
    all = NGX_MCP_JSON_HEX;

    for (i = 0; i < 4; i++) {
        all &= ngx_mcp_json_digits[p[i]];
        code = (code << 4) | (ngx_mcp_json_digits[p[i]] & 0xf);
    }

    return all ? code : 0x10000;
}


static ngx_int_t
ngx_mcp_json_escaped(ngx_mcp_json_t *json, u_char ch)
{
    u_char  c;

    if (json->substate == json_escape) {

        if (json->surrogate && ch != 'u') {
            ngx_mcp_json_lone(json);
        }

        if (ch == 'u') {
            json->code = 0;
            json->need = 4;
            json->substate = json_hex;
            return NGX_OK;
        }

        c = ngx_mcp_json_unescaped[ch];

        if (c == 0) {
            goto failed;
        }

        if (json->name) {
            ngx_mcp_json_keep(json, &c, 1);
        }

        json->substate = json_plain;
        return NGX_OK;
    }

    /* json_hex */

    c = ngx_mcp_json_digits[ch];

    if (c == 0) {
        goto failed;
    }

    json->code = (json->code << 4) | (c & 0xf);

    if (--json->need == 0) {
        ngx_mcp_json_unicode(json);
        json->substate = json_plain;
    }

    return NGX_OK;

failed:

    json->error = "invalid escape in a JSON string";

    return NGX_ERROR;
}


/* handles an escape \uXXXX whose code is complete */

static void
ngx_mcp_json_unicode(ngx_mcp_json_t *json)
{
    if (json->code >= 0xdc00 && json->code <= 0xdfff) {

        if (json->surrogate) {
            json->surrogate = 0;
            ngx_mcp_json_character(json);

        } else {
            ngx_mcp_json_lone(json);
        }

        return;
    }

    if (json->surrogate) {
        ngx_mcp_json_lone(json);
    }

    if (json->code >= 0xd800 && json->code <= 0xdbff) {
        json->surrogate = json->code;
        return;
    }

    ngx_mcp_json_character(json);
}


/* adds a character to the key, as other parsers may fold it */

static void
ngx_mcp_json_character(ngx_mcp_json_t *json)
{
    u_char  ch;

    if (!json->name || !json->keep || json->cut) {
        return;
    }

    switch (json->code) {

    case 0x0000:
        json->cut = 1;
        json->altered = 1;
        return;

    case 0x0130:
    case 0x0131:
        ch = 'i';
        json->altered = 1;
        break;

    case 0x017f:
        ch = 's';
        json->altered = 1;
        break;

    case 0x212a:
        ch = 'k';
        json->altered = 1;
        break;

    default:

        if (json->code >= 0x80) {
            /* the names of noted members have only ASCII characters */
            json->keep = 0;
            return;
        }

        ch = (u_char) json->code;
    }

    ngx_mcp_json_keep(json, &ch, 1);
}


/* notes that the string has half a surrogate pair */

static void
ngx_mcp_json_lone(ngx_mcp_json_t *json)
{
    json->surrogate = 0;

    if (json->name) {
        json->altered = 1;

    } else if (json->node < NGX_MCP_PATH_MAX) {
        json->members[json->node].lone = 1;
        json->ambiguous = 1;
    }
}


static ngx_int_t
ngx_mcp_json_utf8(ngx_mcp_json_t *json, u_char ch)
{
    if (json->need == 0) {
        json->low = 0x80;
        json->high = 0xbf;

        if (ch >= 0xc2 && ch <= 0xdf) {
            json->need = 1;
            json->code = ch & 0x1f;
            return NGX_OK;
        }

        if (ch >= 0xe0 && ch <= 0xef) {
            json->need = 2;
            json->code = ch & 0x0f;

            if (ch == 0xe0) {
                json->low = 0xa0;

            } else if (ch == 0xed) {
                json->high = 0x9f;
            }

            return NGX_OK;
        }

        if (ch >= 0xf0 && ch <= 0xf4) {
            json->need = 3;
            json->code = ch & 0x07;

            if (ch == 0xf0) {
                json->low = 0x90;

            } else if (ch == 0xf4) {
                json->high = 0x8f;
            }

            return NGX_OK;
        }

    } else if (ch >= json->low && ch <= json->high) {
        json->low = 0x80;
        json->high = 0xbf;
        json->code = (json->code << 6) | (ch & 0x3f);

        if (--json->need == 0) {
            ngx_mcp_json_character(json);
            json->substate = json_plain;
        }

        return NGX_OK;
    }

    json->error = "invalid UTF-8 in a JSON string";

    return NGX_ERROR;
}


ngx_int_t
ngx_mcp_json_number(ngx_mcp_json_t *json, u_char **pos, u_char *last)
{
    u_char  ch, *p;

    p = *pos;

    for ( ;; ) {

        switch (json->substate) {

        case json_integer:
        case json_fraction:
        case json_exponent:
            while (p < last && ngx_mcp_json_is_digit(*p)) {
                p++;
            }
        }

        *pos = p;

        if (p == last) {
            return NGX_AGAIN;
        }

        ch = *p++;

        switch (json->substate) {

        case json_minus:
            if (!ngx_mcp_json_is_digit(ch)) {
                goto failed;
            }

            json->substate = (ch == '0') ? json_zero : json_integer;
            break;

        case json_zero:
        case json_integer:
            if (ch == '.') {
                json->substate = json_dot;
                break;
            }

            /* fall through */

        case json_fraction:
            if (ch == 'e' || ch == 'E') {
                json->substate = json_e;
                break;
            }

            /* fall through */

        case json_exponent:
            return NGX_OK;

        case json_dot:
            if (!ngx_mcp_json_is_digit(ch)) {
                goto failed;
            }

            json->substate = json_fraction;
            break;

        case json_e:
            if (ch == '+' || ch == '-') {
                json->substate = json_e_sign;
                break;
            }

            /* fall through */

        default: /* json_e_sign */
            if (!ngx_mcp_json_is_digit(ch)) {
                goto failed;
            }

            json->substate = json_exponent;
        }
    }

failed:

    json->error = "invalid number in JSON";

    return NGX_ERROR;
}
