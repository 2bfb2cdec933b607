
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "core.h"


volatile ngx_time_t  *ngx_cached_time;
ngx_pid_t             ngx_pid;

ngx_uint_t            core_no_memory;


static u_char *core_number(u_char *buf, const char **fmt, int64_t n);


u_char *
core_copy(const void *data, size_t len)
{
    u_char  *p;

    p = malloc(len ? len : 1);
    if (p == NULL) {
        exit(2);
    }

    if (len) {
        memcpy(p, data, len);
    }

    return p;
}


void *
ngx_alloc(size_t size, ngx_log_t *log)
{
    return core_no_memory ? NULL : malloc(size);
}


void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
}


ngx_pool_t *
ngx_create_pool(size_t size, ngx_log_t *log)
{
    return calloc(1, sizeof(ngx_pool_t));
}


void
ngx_destroy_pool(ngx_pool_t *pool)
{
    ngx_pool_large_t  *l, *next;

    for (l = pool->large; l; l = next) {
        next = l->next;
        free(l->alloc);
        free(l);
    }

    free(pool);
}


void *
ngx_pnalloc(ngx_pool_t *pool, size_t size)
{
    ngx_pool_large_t  *l;

    if (core_no_memory) {
        return NULL;
    }

    l = malloc(sizeof(ngx_pool_large_t));
    if (l == NULL) {
        return NULL;
    }

    l->alloc = malloc(size);
    l->next = pool->large;
    pool->large = l;

    return l->alloc;
}


void *
ngx_palloc(ngx_pool_t *pool, size_t size)
{
    return ngx_pnalloc(pool, size);
}


void *
ngx_pcalloc(ngx_pool_t *pool, size_t size)
{
    void  *p;

    p = ngx_pnalloc(pool, size);

    return p ? memset(p, 0, size) : NULL;
}


/* this stand-in knows only "%V", "%i", "%08xi" and "%016xL" */

u_char * ngx_cdecl
ngx_sprintf(u_char *buf, const char *fmt, ...)
{
    va_list     args;
    ngx_str_t  *text;

    va_start(args, fmt);

    while (*fmt) {

        if (*fmt != '%') {
            *buf++ = *fmt++;

        } else if (strncmp(fmt, "%V", 2) == 0) {
            text = va_arg(args, ngx_str_t *);
            buf = ngx_cpymem(buf, text->data, text->len);
            fmt += 2;

        } else {
            buf = core_number(buf, &fmt, va_arg(args, int64_t));
        }
    }

    va_end(args);

    return buf;
}


static u_char *
core_number(u_char *buf, const char **fmt, int64_t n)
{
    char    number[32];
    size_t  i;

    static const char  *formats[][2] = {
        { "%i", "%ld" },
        { "%08xi", "%08lx" },
        { "%016xL", "%016lx" }
    };

    for (i = 0; i < 3; i++) {
        if (strncmp(*fmt, formats[i][0], strlen(formats[i][0])) == 0) {
            *fmt += strlen(formats[i][0]);
            sprintf(number, formats[i][1], n);

            return ngx_cpymem(buf, number, strlen(number));
        }
    }

    exit(2);
}


/* not the real SHA-1: it only tells texts apart */

void
ngx_sha1_init(ngx_sha1_t *ctx)
{
    memset(ctx, 0, sizeof(ngx_sha1_t));
    ctx->bytes = 0xcbf29ce484222325ULL;
}


void
ngx_sha1_update(ngx_sha1_t *ctx, const void *data, size_t size)
{
    size_t         i;
    const u_char  *p = data;

    for (i = 0; i < size; i++) {
        ctx->bytes = (ctx->bytes ^ p[i]) * 0x100000001b3ULL;
    }
}


void
ngx_sha1_final(u_char result[20], ngx_sha1_t *ctx)
{
    memset(result, 0, 20);
    memcpy(result, &ctx->bytes, sizeof(uint64_t));
}


ngx_array_t *
ngx_array_create(ngx_pool_t *p, ngx_uint_t n, size_t size)
{
    ngx_array_t  *a;

    a = ngx_palloc(p, sizeof(ngx_array_t));

    if (a == NULL || ngx_array_init(a, p, n, size) != NGX_OK) {
        return NULL;
    }

    return a;
}


void *
ngx_array_push(ngx_array_t *a)
{
    void  *p;

    if (a->nelts == a->nalloc) {
        p = ngx_palloc(a->pool, 2 * a->nalloc * a->size);
        if (p == NULL) {
            return NULL;
        }

        memcpy(p, a->elts, a->nelts * a->size);
        a->elts = p;
        a->nalloc *= 2;
    }

    return (u_char *) a->elts + a->size * a->nelts++;
}


ngx_int_t
ngx_memn2cmp(u_char *s1, u_char *s2, size_t n1, size_t n2)
{
    int  rc;

    rc = memcmp(s1, s2, n1 < n2 ? n1 : n2);

    return rc ? rc : (ngx_int_t) (n1 > n2) - (ngx_int_t) (n1 < n2);
}


ngx_int_t
ngx_atoi(u_char *line, size_t n)
{
    ngx_int_t  value;

    if (n == 0) {
        return NGX_ERROR;
    }

    for (value = 0; n; n--, line++) {

        if (*line < '0' || *line > '9'
            || value > (NGX_MAX_INT_T_VALUE - (*line - '0')) / 10)
        {
            return NGX_ERROR;
        }

        value = value * 10 + (*line - '0');
    }

    return value;
}


ngx_int_t
ngx_hextoi(u_char *line, size_t n)
{
    char       text[32], *end;
    long long  value;

    memcpy(text, line, n);
    text[n] = '\0';
    errno = 0;
    value = strtoll(text, &end, 16);

    return (n == 0 || end != text + n || errno) ? NGX_ERROR : value;
}


void
ngx_encode_base64(ngx_str_t *dst, ngx_str_t *src)
{
    size_t     i;
    u_char    *p;
    uint32_t   group;

    static u_char  digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    p = dst->data;

    for (i = 0; i < src->len; i += 3) {
        group = src->data[i] << 16;
        group |= (i + 1 < src->len) ? src->data[i + 1] << 8 : 0;
        group |= (i + 2 < src->len) ? src->data[i + 2] : 0;

        *p++ = digits[group >> 18];
        *p++ = digits[group >> 12 & 63];
        *p++ = (i + 1 < src->len) ? digits[group >> 6 & 63] : '=';
        *p++ = (i + 2 < src->len) ? digits[group & 63] : '=';
    }

    dst->len = p - dst->data;
}
