
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Measures, in CPU time of the workers and in turn, the cost of one operation
 * with many other sessions, streams or calls and with few of them.
 */

#include "load.h"


#define FEW    100
#define PART   15000                         /* streams of one process */
#define ROUND  200                           /* events of one round */


/* one of the two endpoints */

typedef struct {
    const char  *path;
    const char  *publish;
    session_t    session;                    /* the one that gets an event */
    conn_t       stream;
    char         event[1024];                /* the request that sends it */
    session_t    sessions[ROUND];            /* those of a round */
    int          streams[ROUND];
} side_t;


/* one operation, the i-th of a round */

typedef void (*operate_pt)(conn_t *c, side_t *side, int i);


static side_t  sides[2] = {
    { .path = "/mcp", .publish = "/publish" },
    { .path = "/few", .publish = "/publish-few" }
};


static void
crowd_part(const char *path, int first, int last, int streams, int source)
{
    int         i;
    char        user[32], uri[64];
    conn_t      c;
    session_t   s;

    memset(&c, 0, sizeof(c));
    c.fd = dial(source);

    for (i = first; i < last; i++) {
        snprintf(user, sizeof(user), "user-%d", i);
        session_open(&c, &s, path, user);

        snprintf(uri, sizeof(uri), "memory://%d", i);
        subscribe(&c, &s, "subscribe", uri);

        snprintf(uri, sizeof(uri), "events://%d/latest", i);
        subscribe(&c, &s, "subscribe", uri);

        if (i - first < streams) {
            (void) stream_open(source, &s);
        }
    }

    close(c.fd);
    fork_ready();
}


/*
 * Makes sessions in several processes, each with a source address of its own.
 */

static void
crowd(const char *path, int first, int last, int streams)
{
    int         i, n, count;
    static int  source = 2;

    count = last - first;
    n = streams / PART + 1;

    for (i = 0; i < n; i++) {
        if (fork_part() == 0) {
            crowd_part(path, first + (long) count * i / n,
                       first + (long) count * (i + 1) / n,
                       streams / n, source + i);
        }
    }

    fork_wait(n);
    source += n;
}


/*
 * Sends an event; waits until the stream has it, and the publisher its answer.
 */

static void
event_send(conn_t *c, side_t *side, int i)
{
    char      text[8192];
    size_t    got;
    ssize_t   n;

    (void) i;

    put(c->fd, side->event, strlen(side->event));
    got = 0;

    do {
        n = recv(side->stream.fd, text + got, sizeof(text) - 1 - got, 0);

        if (n <= 0) {
            die("an event did not come");
        }

        got += n;
        text[got] = '\0';

    } while (strstr(text, "data: {") == NULL);

    answer_wait(c);
}


/*
 * Runs the operations, one after the other and for both sides in turn; prints
 * the medians of both sides for each.
 */

static void
sides_measure(conn_t *c, const operate_pt *operate, int n, int rounds)
{
    int      i, j, k, op;
    double   spent, *us;

    us = calloc(n * 2 * rounds, sizeof(double));

    for (j = -1; j < rounds; j++) {
        for (i = 0; i < 2 * n; i++) {
            op = i / 2;
            spent = workers_time();

            for (k = 0; k < ROUND; k++) {
                operate[op](c, &sides[i % 2], k);
            }

            if (j >= 0) {
                us[i * rounds + j] = (workers_time() - spent) / ROUND / 1e3;
            }
        }
    }

    for (i = 0; i < 2 * n; i += 2) {
        printf("%.2f %.2f\n", median(us + i * rounds, rounds),
               median(us + (i + 1) * rounds, rounds));
    }

    fflush(stdout);
    free(us);
}


/*
 * Measures events for all or, if the member has a name, for whom it selects;
 * without a value, it is the id of the session.
 */

static void
events_measure(conn_t *c, const char *name, const char *value, int rounds)
{
    int         i;
    char        event[512], member[128];
    side_t     *side;

    static const operate_pt  send[] = { event_send };

    for (i = 0; i < 2; i++) {
        side = &sides[i];
        member[0] = '\0';

        if (name) {
            snprintf(member, sizeof(member), ",\"%s\":\"%s\"", name,
                     value ? value : side->session.id);
        }

        snprintf(event, sizeof(event), "{%s%s}",
                 name && strcmp(name, "topic") == 0
                 ? "\"text\":\"words of a usual size\""
                 : "\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                   "\"params\":{\"level\":\"info\","
                   "\"data\":\"words of a usual size\"}", member);

        publish_text(side->event, sizeof(side->event), side->publish, event);
    }

    sides_measure(c, send, 1, rounds);
}


/* opens a session with a stream in the worker of the publisher */

static void
side_open(side_t *side, const char *user)
{
    conn_t  c;

    dial_worker(&c, 1, workers[0]);
    session_open(&c, &side->session, side->path, user);
    subscribe(&c, &side->session, "subscribe", "memory://this");
    subscribe(&c, &side->session, "subscribe", "events://this/latest");
    close(c.fd);

    dial_worker(&side->stream, 1, workers[0]);
    stream_start(&side->stream, &side->session);
    fcntl(side->stream.fd, F_SETFL, 0);
}


/* the session of the events is made in the middle of the others */

static void
sides_open(int sessions, int streams)
{
    int      i;
    side_t  *side;

    for (i = 0; i < 2; i++) {
        side = &sides[i];

        crowd(side->path, 0, sessions / 2, streams / 2);
        side_open(side, "this");
        crowd(side->path, sessions / 2, sessions, streams / 2);

        sessions = FEW;
        streams = streams ? FEW : 0;
    }
}


int
growth_want(char **argv)
{
    int     rounds;
    conn_t  c;

    sides_open(atoi(argv[0]), atoi(argv[1]));
    rounds = atoi(argv[2]);

    dial_worker(&c, 1, workers[0]);

    events_measure(&c, "session_id", NULL, rounds);
    events_measure(&c, "identity", "this", rounds);
    events_measure(&c, "uri", "memory://this", rounds);
    events_measure(&c, "topic", "this", rounds);

    fork_end();

    return 0;
}


static void
session_begin(conn_t *c, side_t *side, int i)
{
    static char  users[ROUND][16];

    snprintf(users[i], sizeof(users[i]), "new-%d", i);
    session_open(c, &side->sessions[i], side->path, users[i]);
}


static void
session_end(conn_t *c, side_t *side, int i)
{
    int         n;
    char        text[512];
    session_t  *s;

    s = &side->sessions[i];

    n = snprintf(text, sizeof(text),
                 "DELETE %s HTTP/1.1\r\nHost: localhost\r\n"
                 "X-User: %s\r\nMcp-Session-Id: %s\r\n\r\n",
                 s->path, s->user, s->id);

    put(c->fd, text, n);
    answer_wait(c);
}


static void
ping(conn_t *c, side_t *side, int i)
{
    (void) i;

    post(c, side->path, &side->session,
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
}


static void
call(conn_t *c, side_t *side, int i)
{
    (void) i;

    post(c, side->path, &side->session,
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":"
         "{\"name\":\"weather\",\"arguments\":{\"city\":\"Berlin\"}}}");
}


static void
tools(conn_t *c, side_t *side, int i)
{
    (void) i;

    post(c, side->path, &side->session,
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
}


static void
resources(conn_t *c, side_t *side, int i)
{
    (void) i;

    post(c, side->path, &side->session,
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/list\"}");
}


static void
stream_get(conn_t *c, side_t *side, int i)
{
    (void) c;

    side->streams[i] = stream_open(1 + i % 100, &side->sessions[i]);
}


static void
stream_listen(conn_t *c, side_t *side, int i)
{
    (void) c;

    side->streams[i] = listen_open(1 + i % 100, &side->sessions[i],
                                   "\"toolsListChanged\":true");
}


/* the worker has seen the end when it answers something else */

static void
stream_end(conn_t *c, side_t *side, int i)
{
    close(side->streams[i]);
    get(c, "/pid");
}


/* "tenant_id": each tenant has a topic, and these are listed */

int
growth_sessions(char **argv)
{
    int      i, j, n, rounds, tenants;
    char     event[128];
    conn_t   c;

    static const operate_pt  all[] = {
        session_begin, stream_get, stream_end, stream_listen, stream_end,
        session_end, ping, call, tools, resources
    };

    n = atoi(argv[0]);
    rounds = atoi(argv[1]);
    tenants = strcmp(argv[2], "tenant_id") == 0;

    sides_open(n, 0);
    dial_worker(&c, 1, workers[0]);

    for (i = 0; tenants && i < 2; i++) {
        for (j = 0; j < n; j++) {
            snprintf(event, sizeof(event),
                     "{\"topic\":\"%d\",\"tenant_id\":\"user-%d\"}", j, j);
            post(&c, sides[i].publish, NULL, event);
        }

        n = FEW;
    }

    n = sizeof(all) / sizeof(all[0]);

    events_measure(&c, NULL, NULL, rounds);
    events_measure(&c, argv[2], "this", rounds);
    sides_measure(&c, all, tenants ? n : n - 1, rounds);

    fork_end();

    return 0;
}


int
growth_subscribe(char **argv)
{
    int         i, j, k, n, rounds;
    char        uri[64];
    conn_t      c, streams[6];
    double      spent, *us[6];
    session_t   s[6];

    static const int  counts[3] = { 1, 100, 1000 };

    rounds = atoi(argv[0]);
    dial_worker(&c, 1, workers[0]);

    /* the last three have a stream */

    for (i = 0; i < 6; i++) {
        us[i] = calloc(rounds, sizeof(double));
        session_open(&c, &s[i], "/mcp", "");

        if (i >= 3) {
            dial_worker(&streams[i], 1, workers[0]);
            stream_start(&streams[i], &s[i]);
        }

        for (n = 1; n < counts[i % 3]; n++) {
            snprintf(uri, sizeof(uri), "memory://%d", n);
            subscribe(&c, &s[i], "subscribe", uri);
        }
    }

    for (j = -1; j < rounds; j++) {
        for (i = 0; i < 6; i++) {
            spent = workers_time();

            for (k = 0; k < ROUND; k++) {
                subscribe(&c, &s[i], "subscribe", "memory://this");
                subscribe(&c, &s[i], "unsubscribe", "memory://this");
            }

            if (j >= 0) {
                us[i][j] = (workers_time() - spent) / ROUND / 2e3;
            }
        }
    }

    for (i = 0; i < 6; i++) {
        printf("%.2f%c", median(us[i], rounds), i < 5 ? ' ' : '\n');
    }

    return 0;
}


typedef struct {
    int         n;
    session_t  *sessions;
    conn_t     *conns;
    double     *us[4];
} waiters_t;


static const char  waiting[] =
    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":"
    "{\"name\":\"wait_for_event\",\"arguments\":{\"topic\":\"this\","
    "\"after\":%llu,\"timeout_seconds\":600%s}}}";


/* returns the position in the last answer, behind which the calls wait */

static unsigned long long
position(conn_t *c)
{
    char  *p, *next;

    for (p = c->buf; (next = strstr(p, "position")); p = next + 1) {
        /* void */
    }

    check(p != c->buf, "no position in", c->buf);
    p += strcspn(p, "0123456789");

    return strtoull(p, NULL, 10);
}


static void
waiters_open(side_t *side, waiters_t *w)
{
    int   i;
    char  user[32];

    w->sessions = calloc(w->n, sizeof(session_t));
    w->conns = calloc(w->n, sizeof(conn_t));

    for (i = 0; i < w->n; i++) {
        snprintf(user, sizeof(user), "user-%d", i);
        w->conns[i].fd = dial(1 + i / 10000);
        session_open(&w->conns[i], &w->sessions[i], side->path, strdup(user));
    }
}


/*
 * Begins the calls; they wait by the time that another request is answered.
 * If "each" is set, each call waits for another value of a member.
 */

static double
waiters_start(side_t *side, waiters_t *w, conn_t *c, unsigned long long after,
    int each)
{
    int         i, n;
    char        text[1024], body[512], match[64];
    double      spent;
    session_t  *s;

    match[0] = '\0';
    spent = workers_time();

    for (i = 0; i < w->n; i++) {
        s = &w->sessions[i];

        if (each) {
            snprintf(match, sizeof(match), ",\"match\":{\"n\":%d}", i);
        }

        snprintf(body, sizeof(body), waiting, after, match);

        n = snprintf(text, sizeof(text),
                     "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                     "Content-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n"
                     "X-User: %s\r\nMcp-Session-Id: %s\r\n"
                     "MCP-Protocol-Version: 2025-11-25\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     side->path, s->user, s->id, strlen(body), body);

        put(w->conns[i].fd, text, n);
    }

    get(c, "/pid");
    pause_until(now() + 100000);

    return (workers_time() - spent) / w->n / 1e3;
}


/* publishes ROUND events; returns the CPU time for each, in us */

static double
waiters_publish(conn_t *c, const char *event)
{
    int     i;
    double  spent;

    spent = workers_time();

    for (i = 0; i < ROUND; i++) {
        put(c->fd, event, strlen(event));
        answer_wait(c);
    }

    return (workers_time() - spent) / ROUND / 1e3;
}


/* the few calls are first, as the memory of many is given back late */

int
growth_wait(char **argv)
{
    int                  i, j, k, rounds;
    char                 other[1024], event[1024];
    conn_t               c;
    double               spent;
    side_t              *side;
    waiters_t            all[2], *w;
    unsigned long long   after;

    memset(all, 0, sizeof(all));
    all[0].n = atoi(argv[0]);
    all[1].n = FEW;
    rounds = atoi(argv[1]);

    memset(&c, 0, sizeof(c));
    c.fd = dial(1);

    for (i = 1; i >= 0; i--) {
        side = &sides[i];
        w = &all[i];
        after = 0;

        waiters_open(side, w);

        for (k = 0; k < 4; k++) {
            w->us[k] = calloc(rounds, sizeof(double));
        }

        publish_text(other, sizeof(other), side->publish,
                     "{\"topic\":\"other\",\"text\":\"of a usual size\"}");
        publish_text(event, sizeof(event), side->publish,
                     "{\"topic\":\"this\",\"text\":\"of a usual size\"}");

        for (j = 0; j < rounds; j++) {
            w->us[0][j] = waiters_start(side, w, &c, after, 0);
            w->us[2][j] = waiters_publish(&c, other);

            spent = workers_time();
            put(c.fd, event, strlen(event));
            answer_wait(&c);

            for (k = 0; k < w->n; k++) {
                answer_wait(&w->conns[k]);
            }

            pause_until(now() + 20000);
            w->us[1][j] = (workers_time() - spent) / w->n / 1e3;
            after = position(&w->conns[0]);
        }

        waiters_start(side, w, &c, after, 1);

        for (j = 0; j < rounds; j++) {
            w->us[3][j] = waiters_publish(&c, event);
        }
    }

    for (k = 0; k < 4; k++) {
        printf("%.2f %.2f\n", median(all[0].us[k], rounds),
               median(all[1].us[k], rounds));
    }

    return 0;
}
