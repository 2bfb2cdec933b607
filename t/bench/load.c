
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * The load for t/bench/run.sh, on loopback:
 *
 *   load rate PORT CONNECTIONS MILLISECONDS FILE
 *       the request in FILE over and over on connections that are kept, @@@@
 *       replaced by a number of the connection; prints requests per second
 *   load count PORT REQUESTS FILE
 *       the request in FILE so many times on one connection
 *   load fan PORT PATH PUBLISH STREAMS ROUNDS
 *       one event to all streams; prints milliseconds of each round from
 *       the first byte of the publish to the last byte received
 *   load one PORT PATH-A PUBLISH-A N-A PATH-B PUBLISH-B N-B ROUNDS
 *       one event to one session of N, turn by turn; prints both medians
 *       in microseconds
 *   load want PORT PATH-A PUBLISH-A N-A PATH-B PUBLISH-B N-B ROUNDS WHAT
 *       sessions with a stream each, all of which want another identity, uri
 *       or topic (WHAT); one event after the other for one of N; or
 *       (tenants) sessions of as many tenants, of which one has a stream, and
 *       events for all; prints both means in microseconds
 *   load hold PORT PATH STREAMS
 *       opens sessions with a stream each, says "ready", waits for its
 *       input to end
 *   load bare PORT
 *       the yardstick for "fan": an epoll loop that sends what is posted to
 *       all streams, with an id line of each stream's own
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


typedef struct {
    int         fd;
    int         id;
    size_t      sent;
    size_t      got;
    size_t      need;                         /* of this answer, 0: unknown */
    unsigned    done;
    char       *request;
    char        buf[8192];
} conn_t;


static int        port;
static int        ep;
static conn_t    *streams;


static void
die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}


static int
compare(const void *a, const void *b)
{
    double  x = *(double *) a, y = *(double *) b;

    return (x > y) - (x < y);
}


static int
dial(void)
{
    int                 fd, on;
    struct sockaddr_in  sin;

    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd == -1) {
        die("socket");
    }

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons(port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    if (connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
        die("connect");
    }

    on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

    return fd;
}


static void
watch(int fd, void *data)
{
    struct epoll_event  ev;

    ev.events = EPOLLIN;
    ev.data.ptr = data;

    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == -1) {
        die("epoll_ctl");
    }
}


static void
put(int fd, const char *text, size_t len)
{
    ssize_t  n;

    while (len) {
        n = send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0) {
            die("send");
        }

        text += n;
        len -= n;
    }
}


/* the length of an answer, 0: not all of it, or of its header, is there */

static size_t
answer_length(conn_t *c)
{
    char  *end, *p;

    c->buf[c->got] = '\0';

    end = strstr(c->buf, "\r\n\r\n");
    if (end == NULL) {
        return 0;
    }

    if (strncmp(c->buf, "HTTP/1.1 20", 11) != 0) {
        fprintf(stderr, "load: got %s\n", c->buf);
        exit(1);
    }

    p = strcasestr(c->buf, "\r\nTransfer-Encoding: chunked");

    if (p && p < end) {
        return strcmp(c->buf + c->got - 7, "\r\n0\r\n\r\n") == 0 ? c->got : 0;
    }

    p = strcasestr(c->buf, "\r\nContent-Length:");

    if (p == NULL || p > end) {
        fprintf(stderr, "load: no length in %s\n", c->buf);
        exit(1);
    }

    return end + 4 - c->buf + strtoul(p + 17, NULL, 10);
}


static unsigned
answer_read(conn_t *c)
{
    ssize_t  n;

    n = recv(c->fd, c->buf + c->got, sizeof(c->buf) - 1 - c->got, 0);

    if (n <= 0) {
        die("an answer was cut");
    }

    c->got += n;

    if (c->need == 0) {
        c->need = answer_length(c);
    }

    if (c->need == 0 || c->got < c->need) {
        return 0;
    }

    c->got = 0;
    c->need = 0;

    return 1;
}


/* the text of a file, with the number in place of each @@@@ */

static char *
request_read(const char *name, int number)
{
    FILE    *f;
    char     text[16384], digits[16], *p;
    size_t   len;

    f = fopen(name, "r");
    if (f == NULL) {
        die(name);
    }

    len = fread(text, 1, sizeof(text) - 1, f);
    text[len] = '\0';
    fclose(f);

    snprintf(digits, sizeof(digits), "%04d", number);

    while ((p = strstr(text, "@@@@")) != NULL) {
        memcpy(p, digits, 4);
    }

    return strdup(text);
}


static int
count(int requests, const char *name)
{
    int      i;
    conn_t   c;
    size_t   len;

    memset(&c, 0, sizeof(c));

    c.fd = dial();
    c.request = request_read(name, 1000);
    len = strlen(c.request);

    for (i = 0; i < requests; i++) {
        put(c.fd, c.request, len);
        while (!answer_read(&c)) { /* void */ }
    }

    return 0;
}


static int
rate(int connections, double ms, const char *name)
{
    int                  i, n;
    conn_t              *c;
    double               start, end, t;
    uint64_t             done;
    struct epoll_event   ev[256];

    for (i = 0; i < connections; i++) {
        c = calloc(1, sizeof(conn_t));
        c->fd = dial();
        c->request = request_read(name, 1000 + i);

        watch(c->fd, c);
        put(c->fd, c->request, strlen(c->request));
    }

    done = 0;
    start = now();
    end = start + ms * 1000;

    for ( ;; ) {
        n = epoll_wait(ep, ev, 256, 1000);

        if (n <= 0) {
            die("nothing comes");
        }

        for (i = 0; i < n; i++) {
            c = ev[i].data.ptr;

            if (answer_read(c)) {
                done++;
                put(c->fd, c->request, strlen(c->request));
            }
        }

        t = now();

        if (t >= end) {
            break;
        }
    }

    printf("%.0f\n", done * 1e6 / (t - start));

    return 0;
}


/* the session's id in buf; keeps the connection */

static void
session_open(conn_t *c, const char *path, const char *user, char id[64])
{
    int    n;
    char   text[1024], *p;

    static const char  body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
        "\"clientInfo\":{\"name\":\"load\",\"version\":\"1\"}}}";

    n = snprintf(text, sizeof(text),
                 "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Accept: application/json, text/event-stream\r\n"
                 "Content-Type: application/json\r\n"
                 "X-User: %s\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 path, user, sizeof(body) - 1, body);

    put(c->fd, text, n);

    c->got = 0;
    c->need = 0;

    while (!answer_read(c)) { /* void */ }

    p = strcasestr(c->buf, "\r\nMcp-Session-Id: ");
    if (p == NULL) {
        fprintf(stderr, "load: no session\n");
        exit(1);
    }

    sscanf(p + 18, "%63[0-9a-zA-Z-]", id);
}


static void
stream_open(conn_t *c, const char *path, const char *user, const char *id)
{
    int       n;
    char      text[1024];
    ssize_t   got;

    c->fd = dial();

    n = snprintf(text, sizeof(text),
                 "GET %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Accept: text/event-stream\r\n"
                 "MCP-Protocol-Version: 2025-11-25\r\n"
                 "X-User: %s\r\n"
                 "Mcp-Session-Id: %s\r\n\r\n", path, user, id);

    put(c->fd, text, n);

    got = recv(c->fd, c->buf, sizeof(c->buf) - 1, 0);

    if (got <= 0) {
        die("no stream");
    }

    c->buf[got] = '\0';

    if (strncmp(c->buf, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "load: got %s\n", c->buf);
        exit(1);
    }

    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    watch(c->fd, c);
}


static void
streams_open(const char *path, int count)
{
    int      i;
    char     id[64];
    conn_t   c;

    memset(&c, 0, sizeof(c));

    streams = calloc(count, sizeof(conn_t));
    c.fd = dial();

    for (i = 0; i < count; i++) {
        session_open(&c, path, "", id);
        stream_open(&streams[i], path, "", id);
    }

    close(c.fd);
}


/* takes what has come; counts the streams that got mark */

static int
streams_read(const char *mark, size_t len, int timeout)
{
    int                  i, n, hits;
    conn_t              *c;
    ssize_t              got;
    struct epoll_event   ev[512];

    n = epoll_wait(ep, ev, 512, timeout);

    if (n == 0 && timeout) {
        errno = ETIMEDOUT;
        die("an event did not come");
    }

    hits = 0;

    for (i = 0; i < n; i++) {
        c = ev[i].data.ptr;

        got = recv(c->fd, c->buf, sizeof(c->buf), 0);

        if (got <= 0) {
            die("a stream ended");
        }

        if (len && memmem(c->buf, got, mark, len)) {
            hits++;
        }
    }

    return hits;
}


static int
event_text(char *text, size_t size, const char *publish, const char *id,
    const char *mark)
{
    int    n;
    char   body[512];

    n = snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                 "\"params\":{\"level\":\"info\",\"data\":\"%s, and a few "
                 "words more so that it is of a usual size\"}", mark);

    if (id) {
        n += snprintf(body + n, sizeof(body) - n, ",\"session_id\":\"%s\"",
                      id);
    }

    n += snprintf(body + n, sizeof(body) - n, "}");

    return snprintf(text, size,
                    "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\n"
                    "Content-Length: %d\r\n\r\n%s", publish, n, body);
}


static int
fan(const char *path, const char *publish, int count, int rounds)
{
    int      i, n, left;
    char     text[1024], mark[32];
    conn_t   c;
    double   start;

    memset(&c, 0, sizeof(c));

    streams_open(path, count);

    c.fd = dial();

    for (i = 0; i < rounds; i++) {
        usleep(100000);
        streams_read("", 0, 0);

        snprintf(mark, sizeof(mark), "event-%06d", i);
        n = event_text(text, sizeof(text), publish, NULL, mark);

        start = now();
        put(c.fd, text, n);

        for (left = count; left; /* void */ ) {
            left -= streams_read(mark, strlen(mark), 10000);
        }

        printf("%.3f\n", (now() - start) / 1000);
        fflush(stdout);

        c.got = 0;
        while (!answer_read(&c)) { /* void */ }
    }

    return 0;
}


static int
one(char **argv)
{
    int       i, j, k, n, rounds, count;
    char      text[1024], mark[32], id[2][64], any[64];
    conn_t    c, s[2];
    double   *us[2], start;

    rounds = atoi(argv[6]);

    for (i = 0; i < 2; i++) {
        memset(&s[i], 0, sizeof(conn_t));
        us[i] = calloc(rounds, sizeof(double));
        count = atoi(argv[i * 3 + 2]);

        memset(&c, 0, sizeof(c));
        c.fd = dial();

        /* a session in the middle of them has the stream */

        for (j = 0; j < count; j++) {
            session_open(&c, argv[i * 3], "", j == count / 2 ? id[i] : any);
        }

        close(c.fd);
        stream_open(&s[i], argv[i * 3], "", id[i]);
    }

    memset(&c, 0, sizeof(c));
    c.fd = dial();

    for (j = 0; j < rounds * 2; j++) {
        i = j & 1;
        k = j / 2;

        snprintf(mark, sizeof(mark), "event-%d-%06d", i, k);
        n = event_text(text, sizeof(text), argv[i * 3 + 1], id[i], mark);

        start = now();
        put(c.fd, text, n);

        while (streams_read(mark, strlen(mark), 10000) == 0) { /* void */ }

        us[i][k] = now() - start;

        c.got = 0;
        while (!answer_read(&c)) { /* void */ }
    }

    for (i = 0; i < 2; i++) {
        qsort(us[i], rounds, sizeof(double), compare);
        printf("%.1f ", us[i][rounds / 2]);
    }

    printf("\n");

    return 0;
}


static void
subscribe(conn_t *c, const char *path, const char *user, const char *id,
    const char *uri)
{
    int    n;
    char   text[1024], body[256];

    n = snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
                 "\"resources/subscribe\",\"params\":{\"uri\":\"%s\"}}", uri);

    n = snprintf(text, sizeof(text),
                 "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Accept: application/json, text/event-stream\r\n"
                 "Content-Type: application/json\r\n"
                 "MCP-Protocol-Version: 2025-11-25\r\n"
                 "X-User: %s\r\nMcp-Session-Id: %s\r\n"
                 "Content-Length: %d\r\n\r\n%s", path, user, id, n, body);

    put(c->fd, text, n);

    c->got = 0;
    c->need = 0;

    while (!answer_read(c)) { /* void */ }

    if (strstr(c->buf, "\"result\"") == NULL) {
        fprintf(stderr, "load: got %s\n", c->buf);
        exit(1);
    }
}


static int
want(char **argv)
{
    int      i, j, n, rounds, count;
    char     text[1024], body[512], id[64], user[32], uri[64];
    conn_t   c, *all;
    double   start;

    rounds = atoi(argv[6]);

    for (i = 0; i < 2; i++) {
        count = atoi(argv[i * 3 + 2]);
        all = calloc(count, sizeof(conn_t));

        memset(&c, 0, sizeof(c));
        c.fd = dial();

        for (j = 0; j < count; j++) {
            snprintf(user, sizeof(user), "user-%d", j);
            session_open(&c, argv[i * 3], user, id);

            if (strcmp(argv[7], "tenants") == 0 && j != count / 2) {
                continue;
            }

            stream_open(&all[j], argv[i * 3], user, id);

            if (strcmp(argv[7], "uri") == 0) {
                snprintf(uri, sizeof(uri), "memory://%d", j);
                subscribe(&c, argv[i * 3], user, id, uri);

            } else if (strcmp(argv[7], "topic") == 0) {
                snprintf(uri, sizeof(uri), "events://%d/latest", j);
                subscribe(&c, argv[i * 3], user, id, uri);
            }
        }

        snprintf(body, sizeof(body),
                 strcmp(argv[7], "identity") == 0
                 ? "{\"jsonrpc\":\"2.0\",\"method\":"
                   "\"notifications/message\",\"params\":{\"level\":"
                   "\"info\",\"data\":\"mark\"},\"identity\":\"user-%d\"}"
                 : strcmp(argv[7], "uri") == 0
                 ? "{\"jsonrpc\":\"2.0\",\"method\":"
                   "\"notifications/message\",\"params\":{\"level\":"
                   "\"info\",\"data\":\"mark\"},\"uri\":\"memory://%d\"}"
                 : strcmp(argv[7], "tenants") == 0
                 ? "{\"jsonrpc\":\"2.0\",\"method\":"
                   "\"notifications/message\",\"params\":{\"level\":"
                   "\"info\",\"data\":\"mark %d\"}}"
                 : "{\"mark\":1,\"topic\":\"%d\"}", count / 2);

        n = snprintf(text, sizeof(text),
                     "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s", argv[i * 3 + 1],
                     strlen(body), body);

        /* each waits for what the one before left to be done */

        start = 0;

        for (j = -10; j < rounds; j++) {

            if (j == 0) {
                start = now();
            }

            put(c.fd, text, n);

            while (streams_read("data: {", 7, 10000) == 0) { /* void */ }

            c.got = 0;
            while (!answer_read(&c)) { /* void */ }
        }

        printf("%.1f ", (now() - start) / rounds);
        fflush(stdout);

        close(c.fd);

        for (j = 0; j < count; j++) {
            if (all[j].fd) {
                close(all[j].fd);
            }
        }

        sleep(1);
    }

    printf("\n");

    return 0;
}


static int
hold(const char *path, int count)
{
    char  c;

    streams_open(path, count);

    printf("ready\n");
    fflush(stdout);

    while (read(0, &c, 1) > 0) { /* void */ }

    return 0;
}


/* the yardstick */

static void
bare_send(conn_t *all, int count, const char *event, size_t len)
{
    int          i, n, head;
    char         text[2048], id[64];
    static int   seq;

    seq++;

    for (i = 0; i < count; i++) {

        if (!all[i].done) {
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


static void
bare(void)
{
    int                  fd, on, i, n, count;
    char                *body, *p;
    conn_t              *all, *c;
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

    all = calloc(65536, sizeof(conn_t));
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

    watch(fd, NULL);

    for ( ;; ) {
        n = epoll_wait(ep, ev, 512, -1);

        for (i = 0; i < n; i++) {
            c = ev[i].data.ptr;

            if (c == NULL) {
                c = &all[count];
                c->id = count++;
                c->fd = accept(fd, NULL, NULL);
                setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                watch(c->fd, c);
                continue;
            }

            got = recv(c->fd, c->buf, sizeof(c->buf) - 1, 0);

            if (got <= 0) {
                close(c->fd);
                c->done = 0;
                continue;
            }

            c->buf[got] = '\0';
            body = strstr(c->buf, "\r\n\r\n") + 4;

            if (c->buf[0] == 'G') {
                c->done = 1;
                put(c->fd, opened, sizeof(opened) - 1);
                continue;
            }

            p = strstr(c->buf, "notifications/message");

            if (p == NULL) {
                put(c->fd, session, sizeof(session) - 1);
                continue;
            }

            bare_send(all, count, body, c->buf + got - body);
            put(c->fd, accepted, sizeof(accepted) - 1);
        }
    }
}


int
main(int argc, char **argv)
{
    struct rlimit  rl;

    if (argc < 3) {
        fprintf(stderr, "load: see the top of load.c\n");
        return 1;
    }

    rl.rlim_cur = rl.rlim_max = 65536;
    (void) setrlimit(RLIMIT_NOFILE, &rl);

    port = atoi(argv[2]);
    ep = epoll_create1(0);

    if (strcmp(argv[1], "rate") == 0 && argc == 6) {
        return rate(atoi(argv[3]), atof(argv[4]), argv[5]);
    }

    if (strcmp(argv[1], "count") == 0 && argc == 5) {
        return count(atoi(argv[3]), argv[4]);
    }

    if (strcmp(argv[1], "fan") == 0 && argc == 7) {
        return fan(argv[3], argv[4], atoi(argv[5]), atoi(argv[6]));
    }

    if (strcmp(argv[1], "one") == 0 && argc == 10) {
        return one(argv + 3);
    }

    if (strcmp(argv[1], "want") == 0 && argc == 11) {
        return want(argv + 3);
    }

    if (strcmp(argv[1], "hold") == 0 && argc == 5) {
        return hold(argv[3], atoi(argv[4]));
    }

    if (strcmp(argv[1], "bare") == 0) {
        bare();
    }

    fprintf(stderr, "load: see the top of load.c\n");
    return 1;
}
