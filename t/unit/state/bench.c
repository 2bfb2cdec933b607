
/*
 * What the hot paths cost; prints ns of CPU time per operation.  Then what a
 * death under the lock costs the next one in a zone of 1 GB.
 */

#include "env.h"


#define SESSIONS  100000
#define CROWD     500000
#define EVENTS    256


static ngx_mcp_zone_t  zone;
static ngx_mcp_ref_t   refs[SESSIONS];
static char            ids[SESSIONS][40];


static ngx_uint_t  heard;


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
    .profiles = on_zone
};


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

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


/* of one that ended a session with many events */

static int
death(ngx_mcp_event_t *e)
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

        last = ref;
    }

    for (i = 0; i < EVENTS; i++) {
        (void) ngx_mcp_log_session(&zone, last, e);
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

    printf("recovery, %u sessions, %u blocks %8.1f us at most\n", CROWD,
           zone.sh->watermark, most / 1e3);

    return zone.sh->recoveries == recoveries + 5 ? 0 : 1;
}


int
main(void)
{
    u_char                 name[NGX_MCP_NAME_LEN], buf[4096];
    double                 t;
    size_t                 len;
    ngx_str_t              id, token, text;
    ngx_uint_t             i, j, n, flags;
    ngx_mcp_ref_t          ref;
    ngx_mcp_call_t         call;
    ngx_mcp_event_t        e;
    ngx_mcp_session_t      out = { .requests = 1 };
    ngx_mcp_session_new_t  in;
    static ngx_mcp_stream_t  st[5000];

    env_zone(&zone, (size_t) 1536 * 1024 * 1024);
    zone.handlers = &handlers;
    memset(name, 0, sizeof(name));
    ngx_mcp_worker_claim(&zone, name);

    t = now();

    for (i = 0; i < SESSIONS; i++) {
        in = session(i);

        if (ngx_mcp_session_create(&zone, &in, &refs[i]) != NGX_OK) {
            return 1;
        }
    }

    printf("session_create          %6.0f\n", (now() - t) / SESSIONS);
    printf("blocks of a session     %6.2f\n",
           (double) (zone.sh->watermark - 1) / SESSIONS);

    in = session(0);
    id = env_str("17");
    token = env_str("");

    for (j = 0; j < 2; j++) {
        t = now();

        for (i = 0; i < 1000000; i++) {
            n = j ? random() % SESSIONS : 1;
            in.id.data = (u_char *) ids[n];

            if (n == 0) {
                continue;
            }

            ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                                 &in.identity, &out);
            ngx_mcp_call_open(&zone, out.ref, &id, &token, 64, 1, &call);
            ngx_mcp_call_close(&zone, call.ref);
        }

        printf("find, open, close       %6.0f  (%s)\n", (now() - t) / 1000000,
               j ? "any of 100,000" : "one");
    }

    text = env_str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                   "\"params\":{\"level\":\"info\",\"logger\":\"x\","
                   "\"data\":\"documents_updated\"}}");
    memset(&e, 0, sizeof(e));
    e.parts = &text;
    e.nparts = 1;

    for (n = 10; n <= 10000; n *= 10) {
        for (j = 0; j < 2; j++) {
            t = now();

            for (i = 0; i < 500000; i++) {
                ngx_mcp_log_session(&zone, refs[(i * 97) % n + 10000], &e);
            }
        }

        printf("log_session             %6.0f  (%u sessions)\n",
               (now() - t) / 500000, (unsigned) n);
    }

    for (i = 0; i < 5000; i++) {
        ref = refs[1000 + i];

        if (ngx_mcp_stream_open(&zone, ref, 0, NULL, 8, i, &st[i]) != NGX_OK) {
            return 1;
        }

        ngx_mcp_stream_read(&zone, &st[i], buf, sizeof(buf), &len, &flags);
    }

    heard = 0;
    t = now();

    for (j = 0; j < 100; j++) {
        env_tell(&zone, NULL, NULL, &e, &n);
        (void) ngx_mcp_worker_drain(&zone);

        for (i = 0; i < 5000; i++) {
            while (ngx_mcp_stream_read(&zone, &st[i], buf, sizeof(buf), &len,
                                       &flags) == NGX_OK)
            {
                heard++;
            }
        }
    }

    printf("event to one of 5,000   %6.0f\n", (now() - t) / 500000);

    if (heard != 500100) {
        printf("taken: %u\n", (unsigned) heard);
        return 1;
    }

    t = now();

    for (i = 0; i < 100000; i++) {
        ngx_mcp_log_session(&zone, refs[1000 + i % 5000], &e);
        (void) ngx_mcp_worker_drain(&zone);
        j = i % 5000;

        while (ngx_mcp_stream_read(&zone, &st[j], buf, sizeof(buf), &len,
                                   &flags) == NGX_OK)
        {
            heard++;
        }
    }

    printf("event to one session    %6.0f\n", (now() - t) / 100000);

    t = now();
    ngx_mcp_worker_release(&zone);
    printf("reap of %7u blocks  %6.1f ms\n", zone.sh->watermark,
           (now() - t) / 1e6);

    env_zone_free(&zone);

    return death(&e);
}
