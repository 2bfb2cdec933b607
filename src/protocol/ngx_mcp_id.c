
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_id.h"

#include <sys/random.h>


#define NGX_MCP_UUID_RANDOM  10


static ngx_int_t ngx_mcp_hex_parse(u_char **pos, u_char *last, ngx_uint_t max,
    uint64_t *n);


/*
 * Random bytes, of which the first "left" are not used yet.  pid: the process
 * that has read them; a child must not use the bytes of its parent.
 */

static struct {
    u_char                  bytes[4080];
    size_t                  left;
    ngx_pid_t               pid;
} ngx_mcp_random_pool;


static u_char  ngx_mcp_hex[] = "0123456789abcdef";


ngx_int_t
ngx_mcp_uuid(u_char *dst)
{
    u_char       bin[16];
    uint64_t     ms;
    ngx_uint_t   i;
    ngx_time_t  *tp;

    if (ngx_mcp_random(bin + 6, NGX_MCP_UUID_RANDOM) != NGX_OK) {
        return NGX_ERROR;
    }

    tp = ngx_timeofday();
    ms = (uint64_t) tp->sec * 1000 + tp->msec;

    for (i = 0; i < 6; i++) {
        bin[i] = (u_char) (ms >> (40 - 8 * i));
    }

    bin[6] = 0x70 | (bin[6] & 0x0f);
    bin[8] = 0x80 | (bin[8] & 0x3f);

    (void) ngx_mcp_uuid_print(dst, bin);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_uuid_raw(u_char *dst)
{
    dst[0] = '"';
    dst[NGX_MCP_UUID_LEN + 1] = '"';

    return ngx_mcp_uuid(dst + 1);
}


u_char *
ngx_mcp_uuid_print(u_char *dst, u_char *bin)
{
    ngx_uint_t  i;

    for (i = 0; i < 16; i++) {

        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *dst++ = '-';
        }

        *dst++ = ngx_mcp_hex[bin[i] >> 4];
        *dst++ = ngx_mcp_hex[bin[i] & 0xf];
    }

    return dst;
}


u_char *
ngx_mcp_event_id_print(u_char *dst, ngx_mcp_event_id_t *id)
{
    dst = ngx_mcp_hex_print(dst, id->generation);
    *dst++ = '-';
    dst = ngx_mcp_hex_print(dst, id->channel);
    *dst++ = '-';
    dst = ngx_mcp_hex_print(dst, id->own);
    *dst++ = '-';
    dst = ngx_mcp_hex_print(dst, id->group);
    *dst++ = '-';
    dst = ngx_mcp_hex_print(dst, id->endpoint);

    return dst;
}


ngx_int_t
ngx_mcp_event_id_parse(ngx_str_t *text, ngx_mcp_event_id_t *id)
{
    u_char    *p, *last;
    uint64_t   n[5];

    p = text->data;
    last = p + text->len;

    if (ngx_mcp_hex_parse(&p, last, 8, &n[0]) != NGX_OK
        || p == last || *p++ != '-'
        || ngx_mcp_hex_parse(&p, last, 8, &n[1]) != NGX_OK
        || p == last || *p++ != '-'
        || ngx_mcp_hex_parse(&p, last, 16, &n[2]) != NGX_OK
        || p == last || *p++ != '-'
        || ngx_mcp_hex_parse(&p, last, 16, &n[3]) != NGX_OK
        || p == last || *p++ != '-'
        || ngx_mcp_hex_parse(&p, last, 16, &n[4]) != NGX_OK
        || p != last)
    {
        return NGX_DECLINED;
    }

    id->generation = (uint32_t) n[0];
    id->channel = (uint32_t) n[1];
    id->own = n[2];
    id->group = n[3];
    id->endpoint = n[4];

    return NGX_OK;
}


ngx_int_t
ngx_mcp_random(void *dst, size_t len)
{
    u_char   *p;
    size_t    left;
    ssize_t   n;

    if (ngx_mcp_random_pool.pid != ngx_pid) {
        ngx_mcp_random_pool.left = 0;
        ngx_mcp_random_pool.pid = ngx_pid;
    }

    if (ngx_mcp_random_pool.left < len) {

        p = ngx_mcp_random_pool.bytes;
        left = sizeof(ngx_mcp_random_pool.bytes);

        while (left) {
            n = getrandom(p, left, GRND_NONBLOCK);

            if (n > 0) {
                p += n;
                left -= n;
                continue;
            }

            if (n == -1 && ngx_errno == NGX_EINTR) {
                continue;
            }

            return NGX_ERROR;
        }

        ngx_mcp_random_pool.left = sizeof(ngx_mcp_random_pool.bytes);
    }

    ngx_mcp_random_pool.left -= len;

    p = ngx_mcp_random_pool.bytes + ngx_mcp_random_pool.left;

    ngx_memcpy(dst, p, len);
    ngx_memzero(p, len);

    return NGX_OK;
}


u_char *
ngx_mcp_hex_print(u_char *dst, uint64_t n)
{
    u_char   buf[16], *p;

    p = buf + sizeof(buf);

    do {
        *--p = ngx_mcp_hex[n & 0xf];
        n >>= 4;
    } while (n);

    return ngx_cpymem(dst, p, buf + sizeof(buf) - p);
}


/*
 * Reads a number of at most max digits, as ngx_mcp_hex_print() writes it: no
 * capitals, no leading zeros.  NGX_OK: *pos is behind the number; else
 * NGX_DECLINED.
 */

static ngx_int_t
ngx_mcp_hex_parse(u_char **pos, u_char *last, ngx_uint_t max, uint64_t *n)
{
    u_char  ch, *p;

    *n = 0;

    for (p = *pos; p < last; p++) {

        ch = *p;

        if (ch >= '0' && ch <= '9') {
            ch = ch - '0';

        } else if (ch >= 'a' && ch <= 'f') {
            ch = ch - 'a' + 10;

        } else {
            break;
        }

        if (p > *pos && *n == 0) {
            return NGX_DECLINED;
        }

        if ((ngx_uint_t) (p - *pos) == max) {
            return NGX_DECLINED;
        }

        *n = (*n << 4) | ch;
    }

    if (p == *pos) {
        return NGX_DECLINED;
    }

    *pos = p;

    return NGX_OK;
}
