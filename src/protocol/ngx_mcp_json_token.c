
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_json_token.h"


#define ngx_mcp_json_is_digit(ch)  ((u_char) ((ch) - '0') < 10)


static ngx_int_t ngx_mcp_json_escaped(ngx_mcp_json_t *json, u_char ch);
static void ngx_mcp_json_unicode(ngx_mcp_json_t *json);
static void ngx_mcp_json_character(ngx_mcp_json_t *json);
static void ngx_mcp_json_lone(ngx_mcp_json_t *json);
static ngx_int_t ngx_mcp_json_utf8(ngx_mcp_json_t *json, u_char ch);


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
    size_t     n;
    ngx_int_t  rc;

    p = *pos;

    while (p < last) {

        if (json->substate == json_plain) {

            if (json->surrogate && *p != '\\') {
                ngx_mcp_json_lone(json);
            }

            start = p;
            p = ngx_mcp_json_skip(p, last);

            if (json->name) {
                ngx_mcp_json_keep(json, start, p - start);
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

            if (!json->name || !json->keep) {

                do {
                    n = ngx_mcp_utf8_len(p, last);
                    p += n;
                } while (n && p < last && *p >= 0x80);

                if (n || p == last) {
                    continue;
                }
            }

            /* invalid, cut by the end of the piece, or looked at */

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


static ngx_int_t
ngx_mcp_json_escaped(ngx_mcp_json_t *json, u_char ch)
{
    u_char      c;
    ngx_uint_t  digit;

    switch (json->substate) {

    case json_escape:

        if (json->surrogate && ch != 'u') {
            ngx_mcp_json_lone(json);
        }

        switch (ch) {
        case '"': case '\\': case '/':
            c = ch;
            break;
        case 'b':
            c = '\b';
            break;
        case 'f':
            c = '\f';
            break;
        case 'n':
            c = '\n';
            break;
        case 'r':
            c = '\r';
            break;
        case 't':
            c = '\t';
            break;
        case 'u':
            json->code = 0;
            json->need = 4;
            json->substate = json_hex;
            return NGX_OK;
        default:
            json->error = "invalid escape in a JSON string";
            return NGX_ERROR;
        }

        if (json->name) {
            ngx_mcp_json_keep(json, &c, 1);
        }

        json->substate = json_plain;
        return NGX_OK;

    default: /* json_hex */

        c = (u_char) (ch | 0x20);

        if (ch >= '0' && ch <= '9') {
            digit = ch - '0';

        } else if (c >= 'a' && c <= 'f') {
            digit = c - 'a' + 10;

        } else {
            json->error = "invalid escape in a JSON string";
            return NGX_ERROR;
        }

        json->code = (json->code << 4) | (uint32_t) digit;

        if (--json->need) {
            return NGX_OK;
        }

        ngx_mcp_json_unicode(json);

        json->substate = json_plain;
        return NGX_OK;
    }
}


/* \uXXXX is complete */

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


/* a character of a name, by its code, which may be ASCII or not */

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
            /* no name that is looked for has it */
            json->keep = 0;
            return;
        }

        ch = (u_char) json->code;
    }

    ngx_mcp_json_keep(json, &ch, 1);
}


/* half a surrogate pair */

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
