
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The linker puts these functions around those of the layer (--wrap).  A hold
 * ends with the last commit before the lock is released; later work does not
 * count.
 */

#include "bench_hold.h"


#define HOLDS  (4 * 1024 * 1024)


void __real_ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void __real_ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);
void __real_ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone);
void __wrap_ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void __wrap_ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);
void __wrap_ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone);


static double      holds[HOLDS];
static ngx_uint_t  n, sorted;
static double      begin, end;


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}


static int
by_value(const void *a, const void *b)
{
    double  x = *(double *) a, y = *(double *) b;

    return (x > y) - (x < y);
}


void
bench_hold_reset(void)
{
    n = 0;
    sorted = 0;
}


double
bench_hold_quantile(double q)
{
    if (n == 0) {
        return 0;
    }

    if (!sorted) {
        qsort(holds, n, sizeof(double), by_value);
        sorted = 1;
    }

    return holds[(ngx_uint_t) ((n - 1) * q)];
}


void
__wrap_ngx_mcp_zone_lock(ngx_mcp_zone_t *zone)
{
    __real_ngx_mcp_zone_lock(zone);
    begin = now();
}


void
__wrap_ngx_mcp_journal_commit_locked(ngx_mcp_zone_t *zone)
{
    __real_ngx_mcp_journal_commit_locked(zone);
    end = now();
}


void
__wrap_ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone)
{
    __real_ngx_mcp_zone_unlock(zone);

    if (n < HOLDS) {
        holds[n++] = end - begin;
    }
}
