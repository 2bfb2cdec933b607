
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "load.h"


/* each connection sends its request again when it has its answer */

typedef struct {
    int       ep;
    int       n;
    conn_t   *conns;
} pump_t;


static void
pump_open(pump_t *p, int n, int sources, const char *file)
{
    int                  i;
    conn_t              *c;
    struct epoll_event   ev;

    p->ep = epoll_create1(0);
    p->n = n;
    p->conns = calloc(n, sizeof(conn_t));

    for (i = 0; i < n; i++) {
        c = &p->conns[i];
        c->fd = dial_over(1 + i % sources);
        c->request = file_read(file, 1000 + i);
        c->length = strlen(c->request);

        ev.events = EPOLLIN;
        ev.data.ptr = c;

        if (epoll_ctl(p->ep, EPOLL_CTL_ADD, c->fd, &ev) == -1) {
            die("epoll_ctl");
        }
    }
}


/*
 * Serves the connections until this time, or for this number of requests;
 * returns the number of requests that were answered.
 */

static int
pump(pump_t *p, double end, int most)
{
    int                  i, n, sent, done;
    conn_t              *c;
    struct epoll_event   ev[256];

    done = 0;

    for (sent = 0; sent < p->n && sent < most; sent++) {
        c = &p->conns[sent];
        put(c->fd, c->request, c->length);
    }

    while (done < sent) {
        n = epoll_wait(p->ep, ev, 256, 20000);

        if (n <= 0) {
            die("nothing comes");
        }

        for (i = 0; i < n; i++) {
            c = ev[i].data.ptr;

            if (!answer_read(c)) {
                continue;
            }

            done++;

            if (sent < most && now() < end) {
                put(c->fd, c->request, c->length);
                sent++;
            }
        }
    }

    return done;
}


int
requests_beside(char **argv)
{
    int      i, j, k, connections, rounds;
    pump_t   p[2];
    double   ms, n, start, spent, *rate[2], *cpu[2];

    connections = atoi(argv[0]);
    ms = atof(argv[1]);
    rounds = atoi(argv[2]);

    for (i = 0; i < 2; i++) {
        pump_open(&p[i], connections, 1, argv[3 + i]);
        rate[i] = calloc(rounds, sizeof(double));
        cpu[i] = calloc(rounds, sizeof(double));
        pump(&p[i], now() + ms * 1000, 1000000000);
    }

    for (j = 0; j < rounds; j++) {
        for (k = 0; k < 2; k++) {
            i = (j + k) % 2;

            spent = workers_time();
            start = now();
            n = pump(&p[i], start + ms * 1000, 1000000000);
            rate[i][j] = n * 1e6 / (now() - start);

            /* CPU time counts once the process waits */

            pause_until(now() + 1000);
            cpu[i][j] = (workers_time() - spent) / n / 1e3;
        }
    }

    for (i = 0; i < 2; i++) {
        n = median(rate[i], rounds);
        printf("%.0f %.0f ", n, rate[i][rounds - 1]);
        n = median(cpu[i], rounds);
        printf("%.2f %.2f ", n, cpu[i][0]);
    }

    printf("\n");

    return 0;
}


int
requests_count(char **argv)
{
    pump_t  p;

    pump_open(&p, 1, 1, argv[1]);
    pump(&p, now() + 1e12, atoi(argv[0]));

    return 0;
}


int
requests_fill(char **argv)
{
    pump_t  p;

    pump_open(&p, 64, 32, argv[1]);
    pump(&p, now() + 1e12, atoi(argv[0]));

    return 0;
}


/* requests with a number and a connection of their own, one by one */

int
requests_each(char **argv)
{
    int      i;
    char    *text;
    conn_t   c;

    memset(&c, 0, sizeof(c));

    for (i = 0; i < atoi(argv[0]); i++) {
        text = file_read(argv[1], 1000 + i);
        c.fd = dial(1);
        put(c.fd, text, strlen(text));
        answer_wait(&c);
        close(c.fd);
        free(text);
    }

    return hold();
}


/* the same at a time; answers are not read */

int
requests_keep(char **argv)
{
    int    i;
    char  *text;

    for (i = 0; i < atoi(argv[0]); i++) {
        text = file_read(argv[1], 1000 + i);
        put(dial(1), text, strlen(text));
        free(text);
    }

    return hold();
}
