
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "load.h"


/*
 * The time of one answer, until its end, as the request has "Connection:
 * close".
 */

static double
payload_read(const char *request, size_t *length)
{
    int          fd;
    double       start;
    ssize_t      n;
    static char  buf[1 << 20];

    fd = dial(1);
    start = now();
    *length = 0;

    put(fd, request, strlen(request));

    while ((n = recv(fd, buf, sizeof(buf) - 1, 0)) > 0) {

        if (*length == 0) {
            buf[n] = '\0';
            check(strncmp(buf, "HTTP/1.1 200", 12) == 0, "got", buf);
        }

        *length += n;
    }

    start = now() - start;
    close(fd);

    return start;
}


/* resets the peak of the process's memory */

static void
memory_reset(int pid)
{
    int   fd;
    char  name[64];

    snprintf(name, sizeof(name), "/proc/%d/clear_refs", pid);

    fd = open(name, O_WRONLY);

    if (fd == -1 || write(fd, "5", 1) != 1) {
        die(name);
    }

    close(fd);
}


int
payload(char **argv)
{
    int      i, j, rounds;
    char    *requests[2];
    double   before, spent, *ms[2], *cpu[2], grown[2];
    size_t   length[2];

    rounds = atoi(argv[0]);

    for (i = 0; i < 2; i++) {
        requests[i] = file_read(argv[1 + i], 1);
        ms[i] = calloc(rounds, sizeof(double));
        cpu[i] = calloc(rounds, sizeof(double));
    }

    /* the yardstick is first, as the other may leave more memory behind */

    for (i = 1; i >= 0; i--) {
        before = worker_memory(workers[0], "VmRSS:");
        memory_reset(workers[0]);

        for (j = 0; j < 3; j++) {
            payload_read(requests[i], &length[i]);
        }

        grown[i] = worker_memory(workers[0], "VmHWM:") - before;
    }

    for (j = 0; j < rounds; j++) {
        for (i = 0; i < 2; i++) {
            spent = workers_time();
            ms[i][j] = payload_read(requests[i], &length[i]) / 1000;
            pause_until(now() + 5000);
            cpu[i][j] = (workers_time() - spent) / 1e6;
        }
    }

    for (i = 0; i < 2; i++) {
        printf("%.1f %.1f %.0f %zu ", median(ms[i], rounds),
               median(cpu[i], rounds), grown[i], length[i]);
    }

    printf("\n");

    return 0;
}
