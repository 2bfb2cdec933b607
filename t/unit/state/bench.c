
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Measures the cost of operations with 100,000 sessions, and how long they
 * hold the lock of the zone, in CPU time.  Then measures the cost of a death
 * under the lock for the next holder, in a zone of 1 GB.
 */

#include "env.h"
#include "bench_hold.h"


#define SESSIONS  100000
#define EXTRA     20001
#define CROWD     500000
#define EVENTS    256
#define STREAMS   5000
#define CLOSED    50000
#define URIS      1000
#define LIST      (8 * 1024 * 1024)
#define REPEAT    3


static ngx_mcp_zone_t  zone;
static ngx_mcp_ref_t   refs[SESSIONS];
static char            ids[SESSIONS + EXTRA + 1][40];

static ngx_uint_t      heard;

static ngx_mcp_event_t    event;
static ngx_str_t          event_text;
static ngx_mcp_stream_t   streams[STREAMS];
static ngx_mcp_ref_t      extra[EXTRA];
static ngx_mcp_session_t  found = { .requests = 1 };
static ngx_mcp_ref_t      audience;
static u_char             list[LIST];


static void
on_task(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, uint32_t local, ngx_uint_t why)
{
    heard++;
}


static void
on_group(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref)
{
    heard++;
}


static void
on_zone(ngx_mcp_zone_t *z, uint64_t keys)
{
}


static ngx_mcp_worker_handlers_t  handlers = {
    .stream = on_task, .call = on_task, .group = on_group, .topic = on_group,
    .profiles = on_zone, .lists = on_zone, .listeners = on_zone,
    .upstream_sessions = on_zone, .interests = on_zone
};


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return ts.tv_sec * 1e9 + ts.tv_nsec;
}


static ngx_mcp_session_new_t
session(ngx_uint_t i)
{
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));

    snprintf(ids[i], 40, "0193a1b2-%04x-7%03x-8000-%012x",
             (unsigned) random() & 0xffff, (unsigned) random() & 0xfff,
             (unsigned) i);

    in.id = env_str(ids[i]);
    in.endpoint = env_str("agents.example.com/mcp");
    in.tenant = env_str("acme");
    in.identity = env_str("https://issuer.example.com|user-12345");
    in.initialize = env_str(
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"roots\":"
        "{\"listChanged\":true},\"sampling\":{},\"elicitation\":{}},"
        "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1.0.0\"}}");
    in.client_name = env_str("bench");
    in.client_version = env_str("1.0.0");
    in.client = in.id;
    in.limit_key = in.tenant;
    in.timeout = 1800000;
    in.event_max = 256;
    in.event_size = 65536;

    return in;
}


/*
 * Operations.  Each is done n times, with i from 0 on, in several rounds.
 */

static void
create(ngx_uint_t i)
{
    ngx_mcp_session_new_t  in;

    in = session(SESSIONS + 1 + i);
    (void) ngx_mcp_session_create(&zone, &in, &extra[i]);
}


static void
end(ngx_uint_t i)
{
    ngx_mcp_session_end(&zone, extra[i], NGX_MCP_COUNTER_SESSIONS_DELETED);
}


static void
find(ngx_uint_t i)
{
    ngx_str_t              id;
    ngx_mcp_session_new_t  in;

    in = session(SESSIONS);
    id = env_str(ids[i * 97 % SESSIONS]);

    ngx_mcp_session_find(&zone, &id, &in.endpoint, &in.tenant, &in.identity,
                         &found);
}


static void
call(ngx_uint_t i)
{
    ngx_str_t       id = env_str("17"), token = env_str("");
    ngx_mcp_call_t  c;

    if (env_call_open(&zone, refs[i * 97 % SESSIONS], &id, &token, 64, 1,
                      &c)
        == NGX_OK)
    {
        ngx_mcp_call_close(&zone, c.ref);
    }
}


static void
log_one(ngx_uint_t i)
{
    (void) ngx_mcp_log_session(&zone, refs[i * 97 % SESSIONS], &event);
}


static void
log_all(ngx_uint_t i)
{
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    post.deliveries = &d;
    post.n = 1;
    d.event = event;

    (void) ngx_mcp_outbox_send(&zone, &post);
    (void) ngx_mcp_worker_drain(&zone);
}


static void
stream_open(ngx_uint_t i)
{
    (void) env_stream_open(&zone, refs[i], 0, NULL, 8, i, &streams[i]);
}


static void
stream_read(ngx_uint_t i)
{
    u_char      buf[4096];
    size_t      len;
    ngx_uint_t  flags;

    (void) ngx_mcp_stream_read(&zone, &streams[i % STREAMS], buf, sizeof(buf),
                               &len, &flags);
}


static void
stream_close(ngx_uint_t i)
{
    ngx_mcp_stream_close(&zone, &streams[i], NGX_MCP_COUNTER_STREAMS_CLIENT);
}


static ngx_str_t
uri_of(ngx_uint_t i)
{
    static char  text[64];

    snprintf(text, sizeof(text), "memory://orders/%u", (unsigned) i);

    return env_str(text);
}


/* all by one session, up to its limit */

static void
subscribe(ngx_uint_t i)
{
    ngx_str_t  uri = uri_of(i);

    (void) ngx_mcp_session_subscribe(&zone, refs[7], &uri, NULL, URIS);
}


static void
unsubscribe(ngx_uint_t i)
{
    ngx_str_t  uri = uri_of(i);

    (void) ngx_mcp_session_unsubscribe(&zone, refs[7], &uri);
}


/* makes sessions with as many records as they may have */

static void
rich_make(ngx_uint_t i)
{
    char            text[16];
    ngx_str_t       id, uri, token = env_str("");
    ngx_uint_t      j;
    ngx_mcp_call_t  c;

    create(i);

    for (j = 0; j < URIS; j++) {
        uri = uri_of(j);
        (void) ngx_mcp_session_subscribe(&zone, extra[i], &uri, NULL, URIS);
    }

    for (j = 0; j < EVENTS; j++) {
        (void) ngx_mcp_log_session(&zone, extra[i], &event);
    }

    for (j = 0; j < 64; j++) {
        snprintf(text, sizeof(text), "%u", (unsigned) j);
        id = env_str(text);
        (void) env_call_open(&zone, extra[i], &id, &token, 64, 1, &c);
    }
}


static ngx_mcp_topic_t
topic_of(ngx_uint_t i)
{
    ngx_mcp_topic_t  t;
    static char      text[64];

    snprintf(text, sizeof(text), "events://builds/%u/latest", (unsigned) i);

    memset(&t, 0, sizeof(t));
    t.uri = env_str(text);
    t.limit = 4096;
    t.share = 512;

    return t;
}


static void
topic_add(ngx_uint_t i)
{
    ngx_mcp_topic_t  t = topic_of(i % 4096);

    (void) ngx_mcp_topic_add(&zone, NULL, NULL, &t, &event, NULL);
}


static void
topic_list(ngx_uint_t i)
{
    u_char                  texts[NGX_MCP_TOPIC_TEXTS];
    ngx_int_t               rc;
    ngx_uint_t              n;
    ngx_mcp_topic_info_t    infos[NGX_MCP_TOPIC_LIST];
    ngx_mcp_topic_cursor_t  cursor;

    memset(&cursor, 0, sizeof(cursor));

    do {
        rc = ngx_mcp_topic_list(&zone, env_caller(refs[5]), &cursor, texts,
                                infos, &n);
    } while (rc == NGX_OK);
}


static void
list_put(ngx_uint_t i)
{
    ngx_mcp_list_content_t  c;

    memset(&c, 0, sizeof(c));
    c.text.data = list;
    c.text.len = LIST;
    c.entries = 1000;
    c.digest[0] = (u_char) (i + 1);
    c.order[0] = (u_char) (i + 1);

    (void) ngx_mcp_list_put(&zone, env_part(&zone, audience, 0), &c, 1,
                            300000);
}


static void
list_read(ngx_uint_t i)
{
    ngx_mcp_list_t  l;

    if (ngx_mcp_list_get(&zone, audience, env_sources(1), NGX_MCP_LIST_TOOLS, 0,
                         &l)
        == NGX_OK) {
        (void) ngx_mcp_list_read(&zone, &l, list);
    }
}


static void
lists_walk(ngx_uint_t i)
{
    ngx_int_t                 rc;
    ngx_pool_t               *pool;
    ngx_mcp_audience_t        a;
    ngx_mcp_audience_walk_t   walk;

    memset(&walk, 0, sizeof(walk));

    do {
        pool = ngx_create_pool(1024, NULL);
        rc = ngx_mcp_audience_next(&zone, &walk, pool, &a);
        ngx_destroy_pool(pool);

    } while (rc == NGX_OK);
}


static void
use(ngx_uint_t i)
{
    ngx_mcp_zone_use_t  u;

    ngx_mcp_zone_use(&zone, &u);
}


static void
sweep(ngx_uint_t i)
{
    (void) ngx_mcp_worker_sweep(&zone);
}


/* removes idle sessions, in turns */

static void
expire(ngx_uint_t i)
{
    if (i == 0) {
        env_time(ngx_current_msec + (ngx_msec_t) 25 * 1800000);
    }

    (void) ngx_mcp_worker_sweep(&zone);
}


static void
release(ngx_uint_t i)
{
    ngx_mcp_worker_release(&zone);
}


/* fills another zone with sessions past their time-out */

static void
fill(ngx_uint_t i)
{
    u_char                 name[NGX_MCP_NAME_LEN];
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    env_log.log_level = NGX_LOG_EMERG;           /* but no full zone */
    env_zone_free(&zone);
    env_zone(&zone, 64 * 1024 * 1024);
    zone.handlers = &handlers;
    memset(name, 0, sizeof(name));
    ngx_mcp_worker_claim(&zone, name);

    do {
        in = session(i++ % SESSIONS);
    } while (ngx_mcp_session_create(&zone, &in, &ref) == NGX_OK);

    env_time(ngx_current_msec + 1800001);
}


static struct {
    const char   *name;
    void        (*run)(ngx_uint_t i);
    ngx_uint_t    n;
    ngx_uint_t    repeat;
} operations[] = {
    { "session made", create, EXTRA - 1, 1 },
    { "session ended", end, EXTRA - 1, 1 },
    { "session found", find, 100000, REPEAT },
    { "call opened and closed", call, 100000, REPEAT },
    { "stream opened", stream_open, STREAMS, 1 },
    { "event for one session", log_one, 100000, REPEAT },
    { "event for all sessions", log_all, 1000, REPEAT },
    { "event read by a stream", stream_read, 500000, REPEAT },
    { "stream closed", stream_close, STREAMS, 1 },
    { "subscribed, up to 1000", subscribe, URIS, 1 },
    { "unsubscribed", unsubscribe, URIS, 1 },
    { "event kept in a topic of 4096", topic_add, 40960, REPEAT },
    { "4096 topics listed", topic_list, 20, REPEAT },
    { "list of 8 MB kept", list_put, 10, REPEAT },
    { "list of 8 MB read", list_read, 10, REPEAT },
    { "lists of 4096 tenants walked", lists_walk, 20, REPEAT },
    { "status of the zone", use, 1000, REPEAT },
    { "session with 1000 URIs, 64 calls made", rich_make, 50, 1 },
    { "session with 1000 URIs, 64 calls ended", end, 50, 1 },
    { "every second", sweep, 100, REPEAT },
    { "every second, sessions to expire", expire, 200, 1 },
    { "worker ended", release, 1, 1 },
    { "zone of 64 MB filled", fill, 1, 1 },
    { "session made, another one goes", create, 5000, 1 }
};

#define OPERATIONS  (sizeof(operations) / sizeof(operations[0]))


static void
measure(ngx_uint_t n)
{
    double      t, us, longest;
    ngx_uint_t  i, j;

    us = 0;
    longest = 0;

    for (j = 0; j < operations[n].repeat; j++) {
        bench_hold_reset();

        t = now();

        for (i = 0; i < operations[n].n; i++) {
            operations[n].run(i);
        }

        t = (now() - t) / operations[n].n / 1e3;

        us = (j == 0) ? t : ngx_min(us, t);
        t = bench_hold_quantile(1);
        longest = (j == 0) ? t : ngx_min(longest, t);
    }

    printf("%-40s %10.2f %10.2f %10.2f %10.2f\n", operations[n].name, us,
           bench_hold_quantile(0.5), bench_hold_quantile(0.999), longest);
    fflush(stdout);
}


/* measures the death of a worker that ended a session with many events */

static int
death(void)
{
    double                 t, most;
    uint32_t               recoveries;
    ngx_uint_t             i, j;
    ngx_mcp_ref_t          ref, last;
    ngx_mcp_session_new_t  in;

    env_zone(&zone, 1024 * 1024 * 1024);

    for (i = 0; i < CROWD; i++) {
        in = session(i % SESSIONS);

        if (ngx_mcp_session_create(&zone, &in, &ref) != NGX_OK) {
            return 1;
        }

        if (i < SESSIONS) {
            refs[i] = ref;
        }

        last = ref;
    }

    for (i = 0; i < EVENTS; i++) {
        (void) ngx_mcp_log_session(&zone, last, &event);
    }

    recoveries = zone.sh->recoveries;
    most = 0;

    for (j = 0; j < 5; j++) {
        env_half_end(&zone, last);

        t = now();
        ngx_mcp_zone_lock(&zone);
        ngx_mcp_zone_unlock(&zone);
        t = now() - t;
        most = ngx_max(most, t);
    }

    printf("\nrecovery with %u sessions, %u blocks: %.1f us at most\n", CROWD,
           zone.sh->watermark, most / 1e3);

    return zone.sh->recoveries == recoveries + 5 ? 0 : 1;
}


static double
clock_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}


/*
 * Measures how long another worker waits for the lock while a dead worker with
 * n streams is reaped.
 */

static void
reaped(ngx_uint_t n)
{
    pid_t             pid;
    double            t, most;
    u_char            name[NGX_MCP_NAME_LEN];
    ngx_uint_t        i, k;
    ngx_mcp_stream_t  st;
    volatile double  *took;

    took = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                -1, 0);

    for (i = 0; i < REPEAT; i++) {
        *took = 0;
        pid = fork();

        if (pid == 0) {
            ngx_pid = getpid();
            memset(name, 0, sizeof(name));
            ngx_mcp_worker_claim(&zone, name);

            for (k = 0; k < n; k++) {
                (void) env_stream_open(&zone, refs[k], 0, NULL, 0, 1, &st);
            }

            *took = -1;

            t = clock_ms();
            ngx_mcp_worker_release(&zone);
            *took = clock_ms() - t;

            _exit(0);
        }

        while (*took == 0) { /* void */ }

        most = 0;

        while (*took == -1) {
            t = clock_ms();
            find(i);
            most = ngx_max(most, clock_ms() - t);
        }

        (void) waitpid(pid, NULL, 0);

        printf("a worker with %u streams is reaped in %.1f ms, another one "
               "waits for the lock %.2f ms at most\n", (unsigned) n, *took,
               most);
    }
}


int
main(void)
{
    int                    rc;
    u_char                 name[NGX_MCP_NAME_LEN];
    ngx_uint_t             i;
    ngx_mcp_ref_t          ref;
    ngx_mcp_audience_t     a;
    ngx_mcp_session_new_t  in;
    static char            tenants[4096][24];

    env_zone(&zone, (size_t) 1536 * 1024 * 1024);
    zone.handlers = &handlers;
    memset(name, 0, sizeof(name));
    ngx_mcp_worker_claim(&zone, name);

    for (i = 0; i < SESSIONS; i++) {
        in = session(i);

        if (ngx_mcp_session_create(&zone, &in, &refs[i]) != NGX_OK) {
            return 1;
        }
    }

    event_text = env_str("{\"jsonrpc\":\"2.0\",\"method\":"
                         "\"notifications/message\",\"params\":{\"level\":"
                         "\"info\",\"data\":\"documents_updated\"}}");
    event.parts = &event_text;
    event.nparts = 1;

    memset(&a, 0, sizeof(a));
    a.endpoint = in.endpoint;
    a.tenant = in.tenant;
    a.key = env_str("");
    memset(list, 'x', sizeof(list));

    if (ngx_mcp_audience_get(&zone, &a, env_sources(1), 64, &audience)
        != NGX_OK)
    {
        return 1;
    }

    for (i = 0; i < 4096; i++) {
        (void) snprintf(tenants[i], sizeof(tenants[i]), "tenant-%u",
                        (unsigned) i);
        a.tenant = env_str(tenants[i]);

        if (ngx_mcp_audience_get(&zone, &a, env_sources(1), 5000, &ref)
            != NGX_OK)
        {
            return 1;
        }
    }

    printf("%u sessions, %.2f blocks each\n\n", SESSIONS,
           (double) (zone.sh->watermark - 1) / SESSIONS);
    printf("%-40s %10s %10s %10s %10s\n", "us", "each", "hold: half", "99.9%",
           "longest");

    for (i = 0; i < OPERATIONS; i++) {
        measure(i);
    }

    env_zone_free(&zone);

    rc = death();
    reaped(0);
    reaped(CLOSED);

    return rc;
}
