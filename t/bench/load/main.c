
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * The load for t/bench/run.sh:
 *
 *   load -p PORT [-l] [-t] [-2] [-w PID]... WHAT ...
 *
 * PID is a worker whose CPU time counts.  -l: "fan", "steady" and "hold" open
 * streams of subscriptions/listen in the place of sessions with a stream.
 * -t, -2: these streams are opened over TLS, over HTTP/2, at PORT + 2; -t also
 * "beside" and "count".
 */

#include "load.h"


static struct {
    const char   *name;
    int         (*run)(char **argv);
    int           args;
    const char   *usage;
} commands[] = {

    { "beside", requests_beside, 5, "CONNECTIONS MS ROUNDS FILE-A FILE-B\n"
      "    the requests in two files over and over, in turn; prints for each\n"
      "    requests per second (median, most) and us of the workers for one\n"
      "    (median, least).  @@@@ is a number of the connection" },

    { "count", requests_count, 2, "REQUESTS FILE\n"
      "    the request in FILE so many times on one connection" },

    { "fill", requests_fill, 2, "REQUESTS FILE\n"
      "    the same from many addresses" },

    { "each", requests_each, 2, "REQUESTS FILE\n"
      "    the same one by one, on a connection each; @@@@ is a number of the\n"
      "    request; says \"ready\", waits for its input to end" },

    { "keep", requests_keep, 2, "REQUESTS FILE\n"
      "    the same at a time, without reading of answers" },

    { "fan", streams_fan, 2, "STREAMS ROUNDS\n"
      "    one event to all streams; prints for each round the ms from the\n"
      "    first byte of the publish to the last byte received, and the us\n"
      "    of the workers for one stream" },

    { "steady", streams_steady, 3, "STREAMS RATE EVENTS\n"
      "    RATE events per second, one by one, to all streams; prints ms\n"
      "    until half and 99% of the deliveries, and us of the workers each" },

    { "hold", streams_hold, 2, "STREAMS SOURCE\n"
      "    opens sessions with a stream each, from 127.0.0.SOURCE on, says\n"
      "    \"ready\", waits for its input to end" },

    { "bare", streams_bare, 0, "\n"
      "    the yardstick of fan and steady: an epoll loop that sends what is\n"
      "    posted to all streams, with an id line of each stream's own" },

    { "want", growth_want, 3, "SESSIONS STREAMS ROUNDS\n"
      "    one event for one session, identity, uri and topic of so many,\n"
      "    beside one of 100; prints four pairs of us of the workers" },

    { "sessions", growth_sessions, 3, "SESSIONS ROUNDS MEMBER\n"
      "    operations among so many sessions, of which one has a stream,\n"
      "    beside 100; MEMBER of an event selects this one: \"identity\" or\n"
      "    \"tenant_id\"; prints pairs of us of the workers" },

    { "subscribe", growth_subscribe, 1, "ROUNDS\n"
      "    subscribe and unsubscribe when a session has 1, 100, 1000\n"
      "    subscriptions; prints us of the workers, without and with an open\n"
      "    stream" },

    { "wait", growth_wait, 2, "WAITERS ROUNDS\n"
      "    so many calls that wait for one topic, beside 100; prints us of\n"
      "    the workers for the start of one, its end by an event, and for an\n"
      "    event of another topic meanwhile" },

    { "payload", payload, 3, "ROUNDS FILE-A FILE-B\n"
      "    requests with large answers, in turn; prints for each ms, ms of\n"
      "    the worker, and by how many bytes its memory grew" },

    { "kill", kills, 5, "MASTER KILLS HOLDER LOAD PING\n"
      "    kills one of two workers, when it has the lock of the zone (the\n"
      "    largest shared mapping) or, with HOLDER 0, has not, while LOAD is\n"
      "    sent; prints, median and most, ms of the longest PING to the other\n"
      "    before, ms until the master has freed the lock, and ms of the\n"
      "    longest PING since the death, and since the lock was free" }
};

#define COMMANDS  (sizeof(commands) / sizeof(commands[0]))


int
main(int argc, char **argv)
{
    int            c;
    size_t         i;
    struct rlimit  rl;

    while ((c = getopt(argc, argv, "+2lp:tw:")) != -1) {

        if (c == 'p') {
            port = atoi(optarg);

        } else if (c == 'l') {
            listens = 1;

        } else if (c == 't') {
            secure = 1;

        } else if (c == '2') {
            http2 = 1;

        } else if (c == 'w' && nworkers < 64) {
            workers[nworkers++] = atoi(optarg);

        } else {
            return 1;
        }
    }

    (void) getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = rl.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &rl);

    argv += optind;
    argc -= optind;

    for (i = 0; i < COMMANDS; i++) {

        if (argc && strcmp(argv[0], commands[i].name) == 0
            && argc - 1 == commands[i].args)
        {
            return commands[i].run(argv + 1);
        }
    }

    for (i = 0; i < COMMANDS; i++) {
        fprintf(stderr, "load -p PORT [-l] [-t] [-2] [-w PID]... %s %s\n",
                commands[i].name, commands[i].usage);
    }

    return 1;
}
