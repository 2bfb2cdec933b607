
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Preloaded into nginx: its monotonic clock, by which timers go, is ahead by
 * as many milliseconds as stand in the file MCP_CLOCK.
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


static volatile int64_t  *mcp_clock_ahead;


__attribute__((constructor))
static void
mcp_clock_init(void)
{
    int          fd;
    void        *p;
    const char  *name;

    name = getenv("MCP_CLOCK");
    fd = name ? open(name, O_RDONLY) : -1;

    if (fd == -1) {
        return;
    }

    p = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

    if (p != MAP_FAILED) {
        mcp_clock_ahead = p;
    }

    close(fd);
}


int
clock_gettime(clockid_t id, struct timespec *ts)
{
    int      rc;
    int64_t  ahead;

    rc = (int) syscall(SYS_clock_gettime, id, ts);

    if (rc == 0 && mcp_clock_ahead
        && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE))
    {
        ahead = *mcp_clock_ahead;

        ts->tv_sec += ahead / 1000;
        ts->tv_nsec += ahead % 1000 * 1000000;

        if (ts->tv_nsec >= 1000000000) {
            ts->tv_nsec -= 1000000000;
            ts->tv_sec++;
        }
    }

    return rc;
}
