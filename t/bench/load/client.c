
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "load.h"


int  port;
int  listens;
int  secure;
int  http2;
int  workers[64], nworkers;


void
die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}


void
check(int good, const char *what, const char *text)
{
    if (!good) {
        fprintf(stderr, "load: %s: %s\n", what, text);
        exit(1);
    }
}


int
hold(void)
{
    char  c;

    printf("ready\n");
    fflush(stdout);

    while (read(0, &c, 1) > 0) { /* void */ }

    return 0;
}


double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}


void
pause_until(double us)
{
    double  left;

    while ((left = us - now()) > 0) {
        usleep(left + 1);
    }
}


int
by_value(const void *a, const void *b)
{
    double  x = *(double *) a, y = *(double *) b;

    return (x > y) - (x < y);
}


double
quantile(double *sorted, size_t n, double q)
{
    return sorted[(size_t) ((n - 1) * q)];
}


double
median(double *v, size_t n)
{
    qsort(v, n, sizeof(double), by_value);

    return quantile(v, n, 0.5);
}


double
workers_time(void)
{
    int         i;
    char        name[64], text[64];
    double      sum;
    ssize_t     n;
    static int  fds[64];

    sum = 0;

    for (i = 0; i < nworkers; i++) {

        if (fds[i] == 0) {
            snprintf(name, sizeof(name), "/proc/%d/schedstat", workers[i]);
            fds[i] = open(name, O_RDONLY);
        }

        n = pread(fds[i], text, sizeof(text) - 1, 0);

        if (n <= 0) {
            die("no CPU time of a worker");
        }

        text[n] = '\0';
        sum += atof(text);
    }

    return sum;
}


double
worker_memory(int pid, const char *field)
{
    FILE    *f;
    char     text[256];
    double   kb;

    snprintf(text, sizeof(text), "/proc/%d/status", pid);

    f = fopen(text, "r");
    if (f == NULL) {
        die(text);
    }

    kb = 0;

    while (fgets(text, sizeof(text), f)) {

        if (strncmp(text, field, strlen(field)) == 0) {
            kb = atof(text + strlen(field));
        }
    }

    fclose(f);

    return kb * 1024;
}


int
dial(int source)
{
    int                 fd, on;
    struct sockaddr_in  sin;

    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd == -1) {
        die("socket");
    }

    on = 1;
    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;

    if (source > 1) {
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
        sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + source);

        if (bind(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
            die("bind");
        }
    }

    sin.sin_port = htons(port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    if (connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
        die("connect");
    }

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

    return fd;
}


void
dial_worker(conn_t *c, int source, int pid)
{
    int   i;
    char  *p;

    for (i = 0; i < 1000; i++) {
        memset(c, 0, sizeof(conn_t));
        c->fd = dial(source);

        if (pid == 0) {
            return;
        }

        get(c, "/pid");
        p = strstr(c->buf, "\r\n\r\n");

        if (p && atoi(p + 4) == pid) {
            return;
        }

        close(c->fd);
    }

    check(0, "no connection to this worker", "");
}


/* evaluates the header once all of it was received */

static void
answer_header(conn_t *c)
{
    char  *end, *p;

    c->buf[c->kept] = '\0';

    end = strstr(c->buf, "\r\n\r\n");

    if (end == NULL) {
        check(c->kept < sizeof(c->buf) - 1, "a long header", c->buf);
        return;
    }

    check(strncmp(c->buf, "HTTP/1.1 20", 11) == 0, "got", c->buf);

    p = strcasestr(c->buf, "\r\nTransfer-Encoding: chunked");

    if (p && p < end) {
        c->chunked = 1;
        return;
    }

    p = strcasestr(c->buf, "\r\nContent-Length:");
    check(p && p < end, "no length in", c->buf);

    c->need = end + 4 - c->buf + strtoul(p + 17, NULL, 10);
}


static unsigned
answer_part(conn_t *c)
{
    char         *p;
    size_t        room, have;
    ssize_t       n;
    static char   rest[262144];

    room = sizeof(c->buf) - 1 - c->kept;
    p = room ? c->buf + c->kept : rest;

    n = take(c->fd, p, room ? room : sizeof(rest));

    if (n <= 0) {
        die("an answer was cut");
    }

    c->got += n;
    c->kept += room ? n : 0;

    if (c->need == 0 && !c->chunked) {
        answer_header(c);
    }

    if (c->chunked) {
        have = (size_t) n < sizeof(c->tail) ? (size_t) n : sizeof(c->tail);
        memmove(c->tail, c->tail + have, sizeof(c->tail) - have);
        memcpy(c->tail + sizeof(c->tail) - have, p + n - have, have);

        if (memcmp(c->tail, "\r\n0\r\n\r\n", sizeof(c->tail)) != 0) {
            return 0;
        }

    } else if (c->need == 0 || c->got < c->need) {
        return 0;
    }

    c->buf[c->kept] = '\0';
    c->got = 0;
    c->kept = 0;
    c->need = 0;
    c->chunked = 0;

    return 1;
}


unsigned
answer_read(conn_t *c)
{
    unsigned  done;

    do {
        done = answer_part(c);
    } while (!done && take_more(c->fd));

    return done;
}


void
answer_wait(conn_t *c)
{
    while (!answer_read(c)) { /* void */ }
}


void
get(conn_t *c, const char *path)
{
    int   n;
    char  text[256];

    n = snprintf(text, sizeof(text),
                 "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);

    put(c->fd, text, n);
    answer_wait(c);
}


void
post(conn_t *c, const char *path, const session_t *s, const char *body)
{
    int   n;
    char  text[2048], mine[256];

    mine[0] = '\0';

    if (s) {
        snprintf(mine, sizeof(mine),
                 "Accept: application/json, text/event-stream\r\n"
                 "X-User: %s\r\n%s%s%s", s->user,
                 s->id[0] ? "MCP-Protocol-Version: 2025-11-25\r\n"
                            "Mcp-Session-Id: " : "",
                 s->id, s->id[0] ? "\r\n" : "");
    }

    n = snprintf(text, sizeof(text),
                 "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Type: application/json\r\n%s"
                 "Content-Length: %zu\r\n\r\n%s",
                 path, mine, strlen(body), body);

    put(c->fd, text, n);
    answer_wait(c);
}


char *
file_read(const char *name, int number)
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


void
session_open(conn_t *c, session_t *s, const char *path, const char *user)
{
    char  *p;

    s->path = path;
    s->user = user;
    s->id[0] = '\0';

    post(c, path, s,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
         "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
         "\"clientInfo\":{\"name\":\"load\",\"version\":\"1\"}}}");

    p = strcasestr(c->buf, "\r\nMcp-Session-Id: ");
    check(p != NULL, "no session", c->buf);

    sscanf(p + 18, "%63[0-9a-zA-Z-]", s->id);
}


void
subscribe(conn_t *c, const session_t *s, const char *method, const char *uri)
{
    char  body[512];

    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
             "\"resources/%s\",\"params\":{\"uri\":\"%s\"}}", method, uri);

    post(c, s->path, s, body);
    check(strstr(c->buf, "\"result\"") != NULL, "got", c->buf);
}


static void
stream_begin(conn_t *c, const char *request, int n)
{
    char     text[1024];
    ssize_t  got;

    if (http2) {
        h2_put(c->fd, request, n);
        h2_take(c->fd);

    } else {
        put(c->fd, request, n);
        got = take(c->fd, text, sizeof(text) - 1);

        if (got <= 0) {
            die("no stream");
        }

        text[got] = '\0';
        check(strncmp(text, "HTTP/1.1 200", 12) == 0, "got", text);
    }

    fcntl(c->fd, F_SETFL, O_NONBLOCK);
}


int
listen_open(int source, const session_t *s, const char *filter)
{
    int     n;
    char    text[2048], body[512];
    conn_t  c;

    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,"
             "\"method\":\"subscriptions/listen\","
             "\"params\":{\"notifications\":{%s},\"_meta\":{"
             "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientCapabilities\":{}}}}", filter);

    c.fd = dial_over(source);

    n = snprintf(text, sizeof(text),
                 "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Accept: application/json, text/event-stream\r\n"
                 "Content-Type: application/json\r\n"
                 "MCP-Protocol-Version: 2026-07-28\r\n"
                 "Mcp-Method: subscriptions/listen\r\n"
                 "X-User: %s\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 s->path, s->user, strlen(body), body);

    stream_begin(&c, text, n);

    return c.fd;
}


void
stream_start(conn_t *c, const session_t *s)
{
    int   n;
    char  text[1024];

    n = snprintf(text, sizeof(text),
                 "GET %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Accept: text/event-stream\r\n"
                 "MCP-Protocol-Version: 2025-11-25\r\n"
                 "X-User: %s\r\n"
                 "Mcp-Session-Id: %s\r\n\r\n", s->path, s->user, s->id);

    stream_begin(c, text, n);
}


int
stream_open(int source, const session_t *s)
{
    static conn_t  c;

    c.fd = dial_over(source);
    stream_start(&c, s);

    return c.fd;
}


int
publish_text(char *text, size_t size, const char *path, const char *event)
{
    return snprintf(text, size,
                    "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\n"
                    "Content-Length: %zu\r\n\r\n%s", path, strlen(event),
                    event);
}
