
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "load.h"


#define MARK      "event-"

#define RESOURCE  "\"resourceSubscriptions\":[\"u:1\"]"


static int  ep;


/* filter: the notifications that streams of subscriptions/listen ask for */

static void
streams_open(int count, int source, const char *filter)
{
    int                  i;
    conn_t               c;
    session_t            s = { .path = "/mcp", .user = "" };
    struct epoll_event   ev;

    memset(&c, 0, sizeof(c));

    c.fd = dial(source);
    ep = epoll_create1(0);

    for (i = 0; i < count; i++) {
        ev.events = EPOLLIN;

        if (listens) {
            ev.data.fd = listen_open(source + i / 10000, &s, filter);

        } else {
            session_open(&c, &s, "/mcp", "");
            ev.data.fd = stream_open(source + i / 10000, &s);
        }

        if (epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev) == -1) {
            die("epoll_ctl");
        }
    }

    close(c.fd);
}


static int
event_text(char *text, size_t size, int n)
{
    char  event[512];

    snprintf(event, sizeof(event),
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s,"
             "\"data\":\"" MARK "%06d, and a few words more so that it is of a "
             "usual size\"}}",
             listens ? "resources/updated\",\"params\":{\"uri\":\"u:1\""
                     : "message\",\"params\":{\"level\":\"info\"", n);

    return publish_text(text, size, "/publish", event);
}


/* returns a stream that can be read; 0: none within the time */

static int
stream_next(int timeout)
{
    static int                 i, n;
    static struct epoll_event  ev[512];

    if (i == n) {
        i = 0;
        n = epoll_wait(ep, ev, 512, timeout);

        if (n <= 0) {
            n = 0;
            return 0;
        }
    }

    return ev[i++].data.fd;
}


/* reads the numbers of the events that the stream has got */

static int
stream_read(int fd, int *events, int most)
{
    int      n;
    char    *p, *last;
    ssize_t  got;

    static char  buf[65536];

    got = take(fd, buf, sizeof(buf));

    if (got == -1 && errno == EAGAIN) {
        return 0;
    }

    if (got <= 0) {
        die("a stream ended");
    }

    n = 0;
    p = buf;
    last = buf + got;

    while (n < most && (p = memmem(p, last - p, MARK, sizeof(MARK) - 1))) {
        p += sizeof(MARK) - 1;
        events[n++] = atoi(p);
    }

    return n;
}


int
streams_fan(char **argv)
{
    int      i, j, n, fd, count, rounds, left, event[4];
    char     text[1024];
    conn_t   c;
    double   start, spent;

    count = atoi(argv[0]);
    rounds = atoi(argv[1]);

    streams_open(count, 1, RESOURCE);

    memset(&c, 0, sizeof(c));
    c.fd = dial(1);

    for (i = -1; i < rounds; i++) {
        pause_until(now() + 100000);

        while ((fd = stream_next(0))) {
            stream_read(fd, event, 4);
        }

        n = event_text(text, sizeof(text), i + 1);

        spent = workers_time();
        start = now();
        put(c.fd, text, n);

        for (left = count; left; /* void */ ) {
            fd = stream_next(10000);
            check(fd != 0, "an event did not come", "");

            n = stream_read(fd, event, 4);

            for (j = 0; j < n; j++) {
                left -= event[j] == i + 1;
            }
        }

        start = (now() - start) / 1000;
        answer_wait(&c);

        /* the workers may still have something to put away */

        pause_until(now() + 20000);

        if (i >= 0) {
            printf("%.3f %.3f\n", start,
                   (workers_time() - spent) / count / 1e3);
            fflush(stdout);
        }
    }

    return 0;
}


int
streams_steady(char **argv)
{
    int                  i, n, fd, count, events, sent, event[512];
    char                 text[1024];
    size_t               got, all;
    conn_t               c;
    double               t, rate, start, spent, *ms;
    struct epoll_event   ev;

    count = atoi(argv[0]);
    rate = atof(argv[1]);
    events = atoi(argv[2]);

    streams_open(count, 1, RESOURCE);

    memset(&c, 0, sizeof(c));
    c.fd = dial(1);

    ev.events = EPOLLIN;
    ev.data.fd = c.fd;

    if (epoll_ctl(ep, EPOLL_CTL_ADD, c.fd, &ev) == -1) {
        die("epoll_ctl");
    }

    all = (size_t) count * events;
    ms = calloc(all, sizeof(double));
    got = 0;
    sent = 0;

    spent = workers_time();
    start = now() + 100000;

    while (got < all) {
        t = now();

        if (sent < events && t >= start + sent * 1e6 / rate) {
            n = event_text(text, sizeof(text), sent++);
            put(c.fd, text, n);
            continue;
        }

        t = start + sent * 1e6 / rate - t;
        fd = stream_next(sent < events ? t / 1000 + 1 : 20000);

        if (fd == 0) {
            check(sent < events || now() < start + sent * 1e6 / rate + 2e7,
                  "an event did not come", "");
            continue;
        }

        if (fd == c.fd) {
            (void) answer_read(&c);
            continue;
        }

        n = stream_read(fd, event, 512);
        t = now();

        for (i = 0; i < n; i++) {
            ms[got++] = (t - start - event[i] * 1e6 / rate) / 1000;
        }
    }

    spent = workers_time() - spent;
    qsort(ms, all, sizeof(double), by_value);

    printf("%.2f %.2f %.3f\n", quantile(ms, all, 0.5),
           quantile(ms, all, 0.99), spent / all / 1e3);

    return 0;
}


int
streams_hold(char **argv)
{
    streams_open(atoi(argv[0]), atoi(argv[1]), "\"toolsListChanged\":true");

    return hold();
}


typedef struct {
    int       fd;
    int       id;
    unsigned  stream:1;
} peer_t;


static void
bare_send(peer_t *all, int count, const char *event, size_t len)
{
    int          i, n, head;
    char         text[2048], id[64];
    static int   seq;

    seq++;

    for (i = 0; i < count; i++) {

        if (!all[i].stream) {
            continue;
        }

        n = snprintf(id, sizeof(id), "id: 0-%d-%d\ndata: ", all[i].id, seq);
        head = snprintf(text, sizeof(text), "%zx\r\n", n + len + 2);

        memcpy(text + head, id, n);
        memcpy(text + head + n, event, len);
        memcpy(text + head + n + len, "\n\n\r\n", 4);

        put(all[i].fd, text, head + n + len + 4);
    }
}


int
streams_bare(char **argv)
{
    int                  fd, on, i, n, count;
    char                *body, text[4096];
    peer_t              *all, *p;
    ssize_t              got;
    struct epoll_event   ev[512];
    struct sockaddr_in   sin;

    static const char  opened[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n";
    static const char  session[] =
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: 1\r\nContent-Length: 0\r\n\r\n";
    static const char  accepted[] =
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";

    (void) argv;

    all = calloc(65536, sizeof(peer_t));
    count = 0;

    fd = socket(AF_INET, SOCK_STREAM, 0);
    on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons(port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    if (bind(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || listen(fd, 511) == -1)
    {
        die("bind");
    }

    ep = epoll_create1(0);
    ev[0].events = EPOLLIN;
    ev[0].data.ptr = NULL;

    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev[0]) == -1) {
        die("epoll_ctl");
    }

    for ( ;; ) {
        n = epoll_wait(ep, ev, 512, -1);

        for (i = 0; i < n; i++) {
            p = ev[i].data.ptr;

            if (p == NULL) {
                p = &all[count];
                p->id = count++;
                p->fd = accept(fd, NULL, NULL);
                setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

                ev[i].data.ptr = p;

                if (epoll_ctl(ep, EPOLL_CTL_ADD, p->fd, &ev[i]) == -1) {
                    die("epoll_ctl");
                }

                continue;
            }

            got = recv(p->fd, text, sizeof(text) - 1, 0);

            if (got <= 0) {
                close(p->fd);
                p->stream = 0;
                continue;
            }

            text[got] = '\0';
            body = strstr(text, "\r\n\r\n") + 4;

            if (text[0] == 'G' || strstr(text, "subscriptions/listen")) {
                p->stream = 1;
                put(p->fd, opened, sizeof(opened) - 1);
                continue;
            }

            if (strstr(text, "\"notifications/") == NULL) {
                put(p->fd, session, sizeof(session) - 1);
                continue;
            }

            bare_send(all, count, body, text + got - body);
            put(p->fd, accepted, sizeof(accepted) - 1);
        }
    }
}
