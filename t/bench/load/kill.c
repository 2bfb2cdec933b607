
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Measures how long other workers stall when a worker is killed that holds the
 * lock of the zone.  The lock is the first word of the mapping and contains
 * the process id of its holder.
 */

#include "load.h"

#include <sys/mman.h>
#include <sys/prctl.h>


#define LONG     200                         /* us; noted from this on */
#define NOTED    65536
#define WINDOW   300000


/* the stalls that the probe has seen */

typedef struct {
    volatile int  n;
    double        begin[NOTED];
    double        end[NOTED];
} probe_t;


static probe_t     *probe;
static int          memory;
static off_t        lock;


/* finds the largest shared mapping of the master; all workers have it there */

static void
lock_find(int master)
{
    FILE           *f;
    char            text[512], mode[8];
    unsigned long   from, to, most;

    snprintf(text, sizeof(text), "/proc/%d/maps", master);

    f = fopen(text, "r");
    if (f == NULL) {
        die(text);
    }

    most = 0;

    while (fgets(text, sizeof(text), f)) {

        if (sscanf(text, "%lx-%lx %7s", &from, &to, mode) == 3
            && mode[3] == 's' && to - from > most)
        {
            most = to - from;
            lock = from;
        }
    }

    fclose(f);

    snprintf(text, sizeof(text), "/proc/%d/mem", master);

    memory = open(text, O_RDONLY);
    if (memory == -1) {
        die(text);
    }
}


static unsigned long
lock_holder(void)
{
    unsigned long  pid;

    if (pread(memory, &pid, sizeof(pid), lock) != sizeof(pid)) {
        die("no lock");
    }

    return pid;
}


static char
state_of(int pid)
{
    char   name[64], text[256], *p;
    FILE  *f;

    snprintf(name, sizeof(name), "/proc/%d/stat", pid);

    f = fopen(name, "r");
    if (f == NULL) {
        return 'X';
    }

    p = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
    fclose(f);

    return p ? p[2] : 'X';
}


/* finds two workers of the master that serve; waits for them */

static void
workers_find(int master, int pids[2])
{
    int      i, n;
    char     name[64];
    FILE    *f;

    snprintf(name, sizeof(name), "/proc/%d/task/%d/children", master, master);

    for (i = 0; i < 1000; i++) {
        f = fopen(name, "r");
        if (f == NULL) {
            die(name);
        }

        n = fscanf(f, "%d %d", &pids[0], &pids[1]);
        fclose(f);

        if (n == 2 && state_of(pids[0]) != 'Z' && state_of(pids[1]) != 'Z') {
            return;
        }

        usleep(10000);
    }

    check(0, "no two workers", "");
}


/* sends one request after the other, on connections to any worker */

static void
load_send(const char *request)
{
    int   i, fd;
    char  buf[4096];

    for ( ;; ) {
        fd = dial(1);

        for (i = 0; i < 100; i++) {
            if (send(fd, request, strlen(request), MSG_NOSIGNAL) <= 0
                || recv(fd, buf, sizeof(buf), 0) <= 0)
            {
                break;
            }
        }

        close(fd);
    }
}


static void
probe_send(int pid, const char *request)
{
    double  begin, end;
    conn_t  c;

    dial_worker(&c, 1, pid);

    for ( ;; ) {
        begin = now();
        put(c.fd, request, strlen(request));
        answer_wait(&c);
        end = now();

        if (end - begin > LONG && probe->n < NOTED) {
            probe->begin[probe->n] = begin;
            probe->end[probe->n] = end;
            probe->n++;
        }
    }
}


/* the longest stall between two times; only its part after "from" counts */

static double
longest(double from, double to)
{
    int     i;
    double  begin, most;

    most = 0;

    for (i = 0; i < probe->n; i++) {
        begin = probe->begin[i] > from ? probe->begin[i] : from;

        if (probe->end[i] > from && begin < to
            && probe->end[i] - begin > most)
        {
            most = probe->end[i] - begin;
        }
    }

    return most / 1000;
}


/* starts a process that ends with this one */

static pid_t
start(int worker, const char *request)
{
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);

        if (worker) {
            probe_send(worker, request);
        }

        load_send(request);
    }

    return pid;
}


/*
 * Stops the worker until it has the lock (holder is 1), or has not; kills it;
 * returns the time of that.
 */

static double
kill_worker(int pid, int holder)
{
    int     i, tries;
    double  t;

    for (tries = 0; tries < 100000; tries++) {
        kill(pid, SIGSTOP);

        for (i = 0; i < 1000 && state_of(pid) != 'T'; i++) { /* void */ }

        if ((lock_holder() == (unsigned long) pid) == holder) {
            t = now();
            kill(pid, SIGKILL);
            return t;
        }

        kill(pid, SIGCONT);
        usleep(100 + random() % 2000);
    }

    check(0, "the worker always, or never, has the lock", "");

    return 0;
}


static void
print(double *v, int n)
{
    double  m;

    m = median(v, n);
    printf("%.2f %.2f\n", m, v[n - 1]);
}


int
kills(char **argv)
{
    int      i, j, n, master, holder, pids[2];
    char    *load, *ping;
    double   t, end, *before, *freed, *after, *rest;
    pid_t    loads[4], p;

    master = atoi(argv[0]);
    n = atoi(argv[1]);
    holder = atoi(argv[2]);
    load = file_read(argv[3], 0);
    ping = file_read(argv[4], 0);

    before = calloc(n, sizeof(double));
    freed = calloc(n, sizeof(double));
    after = calloc(n, sizeof(double));
    rest = calloc(n, sizeof(double));

    probe = mmap(NULL, sizeof(probe_t), PROT_READ|PROT_WRITE,
                 MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    lock_find(master);

    for (i = 0; i < 4; i++) {
        loads[i] = start(0, load);
    }

    for (j = 0; j < n; j++) {
        pause_until(now() + 500000);
        workers_find(master, pids);

        probe->n = 0;
        p = start(pids[1], ping);
        pause_until(now() + 2 * WINDOW);
        before[j] = longest(now() - WINDOW, now());

        t = kill_worker(pids[0], holder);

        while (lock_holder() == (unsigned long) pids[0]) { /* void */ }

        end = now();
        freed[j] = (end - t) / 1000;

        pause_until(end + WINDOW);
        after[j] = longest(t, end + WINDOW);
        rest[j] = longest(end, end + WINDOW);

        kill(p, SIGKILL);
        waitpid(p, NULL, 0);
    }

    for (i = 0; i < 4; i++) {
        kill(loads[i], SIGKILL);
        waitpid(loads[i], NULL, 0);
    }

    print(before, n);
    print(freed, n);
    print(after, n);
    print(rest, n);

    return 0;
}
