
#include "core.h"


volatile ngx_time_t  *ngx_cached_time;
ngx_pid_t             ngx_pid;

ngx_uint_t            core_no_memory;


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


/* knows only "%i" */

u_char * ngx_cdecl
ngx_sprintf(u_char *buf, const char *fmt, ...)
{
    int      n;
    char     number[32];
    va_list  args;

    if (strcmp(fmt, "%i") != 0) {
        exit(2);
    }

    va_start(args, fmt);
    n = snprintf(number, sizeof(number), "%ld",
                 (long) va_arg(args, ngx_int_t));
    va_end(args);

    return ngx_cpymem(buf, number, n);
}
