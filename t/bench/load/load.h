
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * What the parts of the load share: connections, answers, sessions, streams,
 * and the CPU time of nginx's workers.  All is on loopback.
 */

#ifndef _LOAD_H_INCLUDED_
#define _LOAD_H_INCLUDED_


#define _GNU_SOURCE

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


typedef struct {
    int         fd;
    size_t      got;                         /* of this answer */
    size_t      kept;                        /* of it, in buf */
    size_t      need;                        /* 0: not known */
    unsigned    chunked:1;
    char        tail[7];                     /* of a chunked answer */
    char       *request;
    size_t      length;                      /* of the request */
    char        buf[4096];
} conn_t;


/* a session, and the user that its requests name in X-User */

typedef struct {
    const char  *path;
    const char  *user;
    char         id[64];
} session_t;


extern int  port;
extern int  listens;                         /* streams are those of
                                                subscriptions/listen: -l */
extern int  secure;                          /* over TLS: -t */
extern int  http2;                           /* over HTTP/2: -2 */
extern int  workers[64], nworkers;           /* process ids, of -w */


void die(const char *what);
void check(int good, const char *what, const char *text);
int hold(void);                              /* says "ready", waits for the end
                                                of the input; returns 0 */

double now(void);                            /* microseconds */
void pause_until(double us);
int by_value(const void *a, const void *b);  /* of doubles, for qsort() */
double median(double *v, size_t n);          /* sorts */
double quantile(double *sorted, size_t n, double q);

/* CPU time of all workers so far, nanoseconds */
double workers_time(void);

/* a field of /proc/PID/status in bytes, such as "VmHWM:" */
double worker_memory(int pid, const char *field);

/*
 * Connections from 127.0.0.(source), as one address has ports for 28,000
 * only; to the worker with this process id, if it is not 0.  The server of
 * the latter has to answer GET /pid.
 */
int dial(int source);
void dial_worker(conn_t *c, int source, int pid);

/* for requests or a stream; to the port after the next with -t or -2 */
int dial_over(int source);

void put(int fd, const char *text, size_t len);

/* as recv(); EAGAIN also when TLS brought no bytes of its content */
ssize_t take(int fd, char *buf, size_t size);

/* TLS has bytes that no event will announce */
unsigned take_more(int fd);

/* a request of HTTP/1.1 as the first one of HTTP/2, and its answer's header */
void h2_put(int fd, const char *request, size_t len);
void h2_take(int fd);

/* reads what has come; 1 when the answer is complete */
unsigned answer_read(conn_t *c);
void answer_wait(conn_t *c);

/* one request and its answer; a POST has a body */
void get(conn_t *c, const char *path);
void post(conn_t *c, const char *path, const session_t *s, const char *body);

/* the text of a file, with the number in place of each @@@@ */
char *file_read(const char *name, int number);

void session_open(conn_t *c, session_t *s, const char *path,
    const char *user);
void subscribe(conn_t *c, const session_t *s, const char *method,
    const char *uri);

/* subscriptions/listen for this, of the session's path and user, likewise */
int listen_open(int source, const session_t *s, const char *filter);

/* GET of the session's stream on a new connection, its header is read */
int stream_open(int source, const session_t *s);
void stream_start(conn_t *c, const session_t *s);

/* the whole request that publishes the event; its length */
int publish_text(char *text, size_t size, const char *path,
    const char *event);

/* more descriptors than one process has: forks; see processes.c */
int fork_part(void);
void fork_ready(void);
void fork_wait(int n);
void fork_end(void);

int requests_beside(char **argv);
int requests_count(char **argv);
int requests_fill(char **argv);
int requests_each(char **argv);
int requests_keep(char **argv);
int streams_fan(char **argv);
int streams_steady(char **argv);
int streams_hold(char **argv);
int streams_bare(char **argv);
int growth_want(char **argv);
int growth_sessions(char **argv);
int growth_subscribe(char **argv);
int growth_wait(char **argv);
int payload(char **argv);
int kills(char **argv);


#endif /* _LOAD_H_INCLUDED_ */
