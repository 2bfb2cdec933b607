
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Strings and numbers of the JSON scan; only for the scan.  The functions take
 * bytes from *pos on.  NGX_OK: the token is complete, and *pos is behind it;
 * NGX_AGAIN: the piece ended within the token; NGX_ERROR: the token is
 * invalid, and *pos is at the wrong byte.
 */

#ifndef _NGX_MCP_JSON_TOKEN_H_INCLUDED_
#define _NGX_MCP_JSON_TOKEN_H_INCLUDED_


#include "ngx_mcp_json.h"

#if (__SSE2__)
#include <emmintrin.h>
#endif


/* states within a string */

enum {
    json_plain = 0,
    json_escape,
    json_hex,
    json_utf8
};


/* states within a number, named by the part that was read last */

enum {
    json_minus = 0,
    json_zero,
    json_integer,
    json_dot,
    json_fraction,
    json_e,
    json_e_sign,
    json_exponent
};


/* the meaning of a backslash and a character; 0: not an escape, or \u */
extern const u_char  ngx_mcp_json_unescaped[256];


ngx_int_t ngx_mcp_json_string(ngx_mcp_json_t *json, u_char **pos,
    u_char *last);
ngx_int_t ngx_mcp_json_number(ngx_mcp_json_t *json, u_char **pos,
    u_char *last);

/*
 * Decodes one character of a string that the scan has accepted to dst; returns
 * its length, which is at most 4 bytes.
 */
size_t ngx_mcp_json_decode(u_char **pos, u_char *last, u_char *dst);


/* returns the first byte at or behind p that is no white space, or last */
u_char *ngx_mcp_json_space(u_char *p, u_char *last);

/*
 * Skips all bytes, characters and escapes of a string that are complete in this
 * piece.  Returns the quote at the end, or a byte from which on
 * ngx_mcp_json_string() has to read, or last.
 */
u_char *ngx_mcp_json_skip_rest(u_char *p, u_char *last);


/*
 * Skips plain bytes of a string.  Returns the first quote, backslash, control
 * character or byte of a longer UTF-8 character, or last.
 */

static ngx_inline u_char *
ngx_mcp_json_skip(u_char *p, u_char *last)
{
    uint64_t  word, quote, slash;

#if (__SSE2__)

    int      stop;
    __m128i  bytes;

    for ( /* void */ ; last - p >= 16; p += 16) {

        bytes = _mm_loadu_si128((__m128i *) p);

        /* as signed bytes, those of longer characters are less than 0x20 */

        stop = 0xffff ^ _mm_movemask_epi8(
                   _mm_andnot_si128(
                       _mm_or_si128(
                           _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                           _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
                       _mm_cmpgt_epi8(bytes, _mm_set1_epi8(0x1f))));

        if (stop) {
            return p + __builtin_ctz((unsigned) stop);
        }
    }

#endif

    while (last - p >= 8) {

        ngx_memcpy(&word, p, 8);

        /* a borrow reaches only bytes that lie above a byte that stops */

        quote = (word ^ 0x2222222222222222ull) - 0x0101010101010101ull;
        slash = (word ^ 0x5c5c5c5c5c5c5c5cull) - 0x0101010101010101ull;

        word |= (word - 0x2020202020202020ull) | quote | slash;
        word &= 0x8080808080808080ull;

        if (word) {
#if (NGX_HAVE_LITTLE_ENDIAN && (__GNUC__ || __clang__))
            return p + (__builtin_ctzll(word) >> 3);
#else
            break;
#endif
        }

        p += 8;
    }

    while (p < last
           && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
    {
        p++;
    }

    return p;
}


/* like ngx_mcp_json_skip_rest(), without a call if all bytes are plain */

static ngx_inline u_char *
ngx_mcp_json_skip_whole(u_char *p, u_char *last)
{
    p = ngx_mcp_json_skip(p, last);

    return (p == last || *p == '"') ? p : ngx_mcp_json_skip_rest(p, last);
}


#endif /* _NGX_MCP_JSON_TOKEN_H_INCLUDED_ */
