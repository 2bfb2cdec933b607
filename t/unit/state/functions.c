
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/* Each function of the state layer, in one process or with a second one. */

#include "env.h"
#include "ngx_mcp_provider.h"
#include "ngx_mcp_state_file.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_id.h"

#include <sys/syscall.h>


#define ZONE_SIZE  (4 * 1024 * 1024)


typedef struct {
    ngx_uint_t      streams;
    ngx_uint_t      calls;
    ngx_uint_t      groups;
    ngx_uint_t      topics;
    ngx_uint_t      profiles;
    ngx_uint_t      interests;
    ngx_uint_t      pending_deletes;
    ngx_uint_t      upstream_sessions;
    uint64_t        keys;
    size_t          session_len;
    ngx_uint_t      why;
    uint32_t        local;
    ngx_mcp_ref_t   ref;
    ngx_mcp_ref_t   group;
    char            pending_delete[256];
} heard_t;


static ngx_mcp_zone_t  zone;
static heard_t         heard;
static u_char          big[70000];
static ngx_uint_t      serial;


static void on_stream(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, uint32_t local,
    ngx_uint_t why);
static void on_call(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, uint32_t local,
    ngx_uint_t why);
static void on_group(ngx_mcp_zone_t *z, ngx_mcp_ref_t group);
static void on_topic(ngx_mcp_zone_t *z, ngx_mcp_ref_t topic);
static void on_knowledge(ngx_mcp_zone_t *z, uint64_t keys);
static void on_listeners(ngx_mcp_zone_t *z, uint64_t keys);
static void on_interests(ngx_mcp_zone_t *z, uint64_t keys);
static void on_farewell(ngx_mcp_zone_t *z, ngx_mcp_pending_delete_t *due);


static void on_upstream_sessions(ngx_mcp_zone_t *z, uint64_t keys);


static ngx_mcp_worker_handlers_t  handlers = {
    .stream = on_stream,
    .call = on_call,
    .group = on_group,
    .topic = on_topic,
    .profiles = on_knowledge,
    .upstream_sessions = on_upstream_sessions,
    .listeners = on_listeners,
    .interests = on_interests,
    .pending_delete = on_farewell
};


/* searches all groups, of which there are few */

static ngx_int_t
topic_wanted(ngx_str_t *endpoint, ngx_str_t *tenant, ngx_str_t *uri)
{
    ngx_mcp_group_cursor_t  cursor = { 0 };

    return ngx_mcp_topic_wanted(&zone, endpoint, tenant, uri, &cursor);
}


static void
on_upstream_sessions(ngx_mcp_zone_t *z, uint64_t keys)
{
    heard.upstream_sessions++;
    heard.keys = keys;
}


static void
on_stream(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, uint32_t local, ngx_uint_t why)
{
    heard.streams++;
    heard.why = why;
    heard.local = local;
    heard.ref = ref;
}


static void
on_call(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, uint32_t local, ngx_uint_t why)
{
    heard.calls++;
    heard.why = why;
    heard.local = local;
    heard.ref = ref;
}


static void
on_group(ngx_mcp_zone_t *z, ngx_mcp_ref_t group)
{
    heard.groups++;
    heard.group = group;
}


static void
on_topic(ngx_mcp_zone_t *z, ngx_mcp_ref_t topic)
{
    heard.topics++;
    heard.ref = topic;
}


static void
on_knowledge(ngx_mcp_zone_t *z, uint64_t keys)
{
    heard.profiles++;
    heard.keys = keys;
}


static void
on_listeners(ngx_mcp_zone_t *z, uint64_t keys)
{
}


static void
on_interests(ngx_mcp_zone_t *z, uint64_t keys)
{
    heard.interests++;
    heard.keys = keys;
}


static void
on_farewell(ngx_mcp_zone_t *z, ngx_mcp_pending_delete_t *due)
{
    heard.pending_deletes++;
    heard.session_len = due->session.len;
    snprintf(heard.pending_delete, sizeof(heard.pending_delete),
             "%.*s %.*s %.*s %.*s %u", (int) due->endpoint.len,
             due->endpoint.data, (int) due->upstream.len, due->upstream.data,
             (int) due->id.len, due->id.data, (int) due->tenant.len,
             due->tenant.data, (unsigned) due->revision);
}


static void
listen_again(void)
{
    memset(&heard, 0, sizeof(heard));
}


static void
drain(void)
{
    while (ngx_mcp_worker_drain(&zone) == NGX_AGAIN) { /* void */ }
}


static void
start(size_t size)
{
    u_char  name[NGX_MCP_NAME_LEN];

    env_time(1000000);
    memset(name, 0, sizeof(name));
    env_zone(&zone, size);
    zone.handlers = &handlers;
    ngx_mcp_worker_claim(&zone, name);
    listen_again();
}


static void
stop(const char *what)
{
    uint32_t               n;
    ngx_msec_t             next;
    ngx_mcp_session_sh_t  *s;
    ngx_mcp_profile_sh_t  *k;

    ok(env_check(&zone) == 0, "%s: the zone is sound", what);

    ngx_mcp_worker_release(&zone);

    for (n = 1; n < zone.sh->watermark; n++) {
        s = ngx_mcp_block(&zone, n);

        if (s->rec.block.type == NGX_MCP_SESSION) {
            ngx_mcp_session_end(&zone, ngx_mcp_ref(&zone, s),
                                NGX_MCP_COUNTER_SESSIONS_DELETED);
        }

        if (s->rec.block.type == NGX_MCP_UPSTREAM_SESSION) {
            us_shared_end(&zone, ngx_mcp_ref(&zone, s));
        }
    }

    while (ngx_mcp_pending_delete_send(&zone) == NGX_OK) { /* void */ }

    while (zone.sh->used[NGX_MCP_ITEM]) {
        env_time(ngx_current_msec + 100000);
        (void) ngx_mcp_outbox_due(&zone, &next);
    }

    ngx_mcp_zone_lock(&zone);

    env_topics_end_locked(&zone);

    while (ngx_mcp_group_sweep_locked(&zone) == NGX_AGAIN) { /* void */ }

    while (zone.root->profiles.head) {
        k = ngx_mcp_block(&zone, zone.root->profiles.head);
        ngx_mcp_profile_drop_locked(&zone, k);
    }

    ngx_mcp_zone_unlock(&zone);

    ok(env_check(&zone) == 0 && zone.sh->nfree == zone.sh->watermark - 1,
       "%s: all blocks are free at the end", what);

    env_zone_free(&zone);
}


static ngx_mcp_session_new_t
new_session(const char *endpoint, const char *tenant)
{
    static char            id[64];
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));

    snprintf(id, sizeof(id), "00000000-0000-7000-8000-%012u",
             (unsigned) ++serial);

    in.id = env_str(id);
    in.endpoint = env_str(endpoint);
    in.tenant = env_str(tenant);
    in.identity = env_str("identity");
    in.initialize = env_str("{\"protocolVersion\":\"2025-11-25\"}");
    in.client_name = env_str("client");
    in.client_version = env_str("1.2");
    in.revision = NGX_MCP_2025_11_25;
    in.offered = NGX_MCP_OFFERED_TOOLS;
    in.timeout = 1800000;
    in.event_max = 16;
    in.event_size = 65536;

    return in;
}


static ngx_mcp_ref_t
session(const char *endpoint, const char *tenant)
{
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    in = new_session(endpoint, tenant);
    ref.block = 0;
    ref.gen = 0;
    (void) ngx_mcp_session_create(&zone, &in, &ref);

    return ref;
}


static ngx_mcp_ref_t
session_of(const char *tenant, const char *client)
{
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    in = new_session("e", tenant);
    in.client = env_str(client);
    ref.block = 0;
    ref.gen = 0;
    (void) ngx_mcp_session_create(&zone, &in, &ref);

    return ref;
}


static ngx_mcp_event_t
event(ngx_str_t *text)
{
    ngx_mcp_event_t  e;

    memset(&e, 0, sizeof(e));
    e.parts = text;
    e.nparts = 1;

    return e;
}


static ngx_int_t
say(ngx_mcp_ref_t ref, const char *text)
{
    ngx_str_t        str;
    ngx_mcp_event_t  e;

    str = env_str(text);
    e = event(&str);

    return ngx_mcp_log_session(&zone, ref, &e);
}


static ngx_uint_t
tell(const char *endpoint, const char *tenant, const char *text)
{
    ngx_str_t        str, ep, tn;
    ngx_uint_t       n;
    ngx_mcp_event_t  e;

    str = env_str(text);
    e = event(&str);
    ep = env_str(endpoint ? endpoint : "");
    tn = env_str(tenant ? tenant : "");

    env_tell(&zone, endpoint ? &ep : NULL, tenant ? &tn : NULL, &e,
                       &n);

    return n;
}


static ngx_int_t
session_id(ngx_mcp_ref_t ref, void *dst)
{
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(&zone);

    s = ngx_mcp_session_locked(&zone, ref);

    if (s) {
        memcpy(dst, s->id, NGX_MCP_UUID_LEN);
    }

    ngx_mcp_zone_unlock(&zone);

    return s ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
answer(ngx_mcp_ref_t call, const char *text, ngx_uint_t flags)
{
    ngx_str_t         str;
    ngx_mcp_event_t   e;
    ngx_mcp_cursor_t  cursor;

    str = env_str(text);
    e = event(&str);
    e.flags = flags;

    return ngx_mcp_log_call(&zone, call, &e, &cursor);
}


/* returns all that a stream gives now: texts, "-N" for a gap, and the end */

static const char *
take(ngx_mcp_stream_t *st)
{
    static char  all[4096];
    char        *p, *last;
    size_t       len;
    u_char       buf[1024];
    ngx_int_t    rc;
    ngx_uint_t   flags, none;

    static ngx_uint_t  calls;

    p = all;
    last = all + sizeof(all);
    none = 0;

    calls++;

    for ( ;; ) {
        rc = NGX_AGAIN;

        /* a stream that says there is no more is read nevertheless at times */

        if (!none || calls & 1) {
            rc = ngx_mcp_stream_read(&zone, st, buf, sizeof(buf), &len,
                                     &flags);
        }

        if (none && rc != NGX_AGAIN) {
            p += snprintf(p, last - p, "more ");
        }

        none = (rc == NGX_OK && !st->more);

        switch (rc) {
        case NGX_OK:
            p += snprintf(p, last - p, "%.*s%s ", (int) len, buf,
                          flags & NGX_MCP_EVENT_RESPONSE ? "!" : "");
            continue;
        case NGX_ABORT:
            p += (len == NGX_MCP_LOST_UNKNOWN)
                 ? snprintf(p, last - p, "-? ")
                 : snprintf(p, last - p, "-%u ", (unsigned) len);
            continue;
        case NGX_AGAIN:
            p += snprintf(p, last - p, "again");
            break;
        case NGX_DECLINED:
            p += snprintf(p, last - p, "declined");
            break;
        case NGX_DONE:
            p += snprintf(p, last - p, "done");
            break;
        case NGX_BUSY:
            p += snprintf(p, last - p, "busy %u", (unsigned) len);
            break;
        default:
            p += snprintf(p, last - p, "error");
            break;
        }

        return all;
    }
}


static void
is(const char *got, const char *want, const char *what)
{
    if (!ok(strcmp(got, want) == 0, "%s", what)) {
        printf("# got \"%s\", not \"%s\"\n", got, want);
    }
}


/* returns the length of the next event; 0: there is none */

static size_t
line_len(ngx_mcp_stream_t *st)
{
    size_t         len;
    ngx_uint_t     flags;
    static u_char  buf[65536];

    return ngx_mcp_stream_read(&zone, st, buf, sizeof(buf), &len, &flags)
           == NGX_OK ? len : 0;
}


static int64_t
counted(ngx_mcp_counter_e counter)
{
    return ngx_mcp_counter(&zone, counter);
}


/* expiry drops records in parts */

static void
expire_tests(void)
{
    char                buf[64];
    int32_t             before, most;
    ngx_str_t           uri;
    ngx_uint_t          i, n, holds;
    ngx_mcp_ref_t       ref;
    ngx_mcp_zone_sh_t  *sh;

    start(ZONE_SIZE);
    sh = zone.sh;

    for (i = 0; i < 200; i++) {
        ref = session("e", "t");

        for (n = 0; n < 20; n++) {
            (void) say(ref, "x");
        }
    }

    ok(sh->used[NGX_MCP_EVENT] >= 1000, "rich sessions");

    for (i = 0; i < 8; i++) {
        ref = session("e", "t");

        for (n = 0; n < 100; n++) {
            snprintf(buf, sizeof(buf), "file:///%u/%u", (unsigned) i,
                     (unsigned) n);
            uri = env_str(buf);
            (void) ngx_mcp_session_subscribe(&zone, ref, &uri, NULL, 100);
        }
    }

    ok(sh->used[NGX_MCP_SUBSCRIPTION] == 800, "and with subscriptions");
    env_time(ngx_current_msec + 100 * 24 * 3600000UL);

    most = 0;
    holds = 0;
    n = NGX_AGAIN;

    while (n == (ngx_uint_t) NGX_AGAIN && holds++ < 100) {
        ngx_mcp_zone_lock(&zone);
        before = (int32_t) ngx_mcp_free_blocks(sh);
        n = ngx_mcp_expire_locked(&zone);
        before = (int32_t) ngx_mcp_free_blocks(sh) - before;
        most = ngx_max(most, before);
        ngx_mcp_zone_unlock(&zone);

        if (env_check(&zone)) {
            break;
        }
    }

    ok(n == NGX_OK && ngx_mcp_zone_sessions(sh) == 0, "they expire");
    ok(most > 0 && most <= 300 && holds > 3,
       "%u holds free at most %u blocks each", (unsigned) holds,
       (unsigned) most);

    stop("expire");
}


static void
farewell_tests(void)
{
    ngx_str_t                   up, id;
    ngx_uint_t                  i;
    ngx_mcp_ref_t               ref, none;
    ngx_mcp_upstream_session_t  l;

    start(NGX_MCP_ZONE_MIN_SIZE);
    memset(&none, 0, sizeof(none));
    up = env_str("up");
    id = env_str("id");

    for (i = 0; i < 1000; i++) {
        ref = session("e", "t");
        (void) us_get(&zone, ref, &up, none, &l);
        (void) us_made(&zone, ref, &up, &id, 1);
        ngx_mcp_session_end(&zone, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);
    }

    i = zone.sh->used[NGX_MCP_PENDING_DELETE];
    ok(i > 100 && i <= zone.sh->blocks / NGX_MCP_PENDING_DELETES_SHARE,
       "%u DELETEs wait, the oldest are given up", (unsigned) i);
    ok(env_check(&zone) == 0, "the zone is sound");

    listen_again();

    while (ngx_mcp_pending_delete_send(&zone) == NGX_OK) {
        ngx_mcp_pending_delete_begin(&zone);
    }

    ok(heard.pending_deletes == NGX_MCP_PENDING_DELETES
       && ngx_mcp_pending_delete_full(&zone),
       "so many are under way");

    ngx_mcp_slot(&zone, zone.worker)->bits = 0;
    ngx_mcp_pending_delete_end(&zone);
    ok(ngx_mcp_slot(&zone, zone.worker)->bits & NGX_MCP_RING_PENDING_DELETE
       && ngx_mcp_pending_delete_send(&zone)
          == NGX_OK, "one ends, another one begins");

    zone.counts[NGX_MCP_COUNT_DELETES] = 0;

    while (ngx_mcp_pending_delete_send(&zone) == NGX_OK) { /* void */ }

    ok(heard.pending_deletes == i, "all of them");

    stop("farewell");
}


/* the system's random bytes, or none */

static ngx_uint_t  no_random;


ssize_t
getrandom(void *buf, size_t len, unsigned int flags)
{
    if (no_random) {
        errno = EAGAIN;
        return -1;
    }

    return syscall(SYS_getrandom, buf, len, flags);
}


static void
random_tests(void)
{
    ngx_mcp_ref_t   ref;
    ngx_mcp_zone_t  again;

    start(ZONE_SIZE);

    ref = session("e", "t");
    again = zone;
    no_random = 1;

    while (ngx_mcp_random(big, 16) == NGX_OK) { /* void */ }

    zone.sh->layout++;
    ok(ngx_mcp_state_init(&again, 1, 1) == NGX_ERROR && env_alerts == 1,
       "no zone without a random key");
    zone.sh->layout--;

    no_random = 0;
    env_alerts = 0;

    ok(ngx_mcp_session_gets(&zone, ref) == 0 && env_check(&zone) == 0,
       "the zone that was there is not emptied");

    stop("random");
}


static void
zone_tests(void)
{
    uint32_t            generation;
    ngx_mcp_ref_t       ref;
    ngx_mcp_zone_t      again;
    ngx_mcp_zone_use_t  use;

    start(ZONE_SIZE);

    ref = session("e", "t");
    generation = ngx_mcp_zone_generation(&zone);

    ngx_mcp_zone_use(&zone, &use);
    /*
     * A session and its extension, the group and its losses, the endpoint and
     * its losses, and accounts.
     */

    ok(use.blocks > 15000 && use.used[NGX_MCP_USE_FREE] == use.blocks - 17
       && use.used[NGX_MCP_USE_SESSIONS] == 17
       && use.used[NGX_MCP_USE_EVENTS] == 0 && use.workers == 1
       && use.recoveries == 0,
       "use: %u of %u free", (unsigned) use.used[NGX_MCP_USE_FREE],
       (unsigned) use.blocks);

    ok(ngx_mcp_zone_sessions(zone.sh) == 1
       && ngx_mcp_zone_sessions(NULL) == 0, "live sessions");

    memset(&again, 0, sizeof(again));
    again.shpool = zone.shpool;
    again.log = &env_log;
    ngx_str_set(&again.name, "again");

    ok(ngx_mcp_state_init(&again, 1, 1) == NGX_OK && again.sh == zone.sh
       && again.blocks == zone.blocks && ngx_mcp_zone_sessions(again.sh) == 1
       && ngx_mcp_zone_generation(&again) == generation,
       "a reused zone is kept");

    ngx_mcp_session_end(&zone, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);

    zone.sh->layout++;
    ok(ngx_mcp_state_init(&again, 1, 1) == NGX_OK
       && ngx_mcp_zone_generation(&again) != generation,
       "a zone of another layout is emptied");

    stop("zone");
}


static void
session_tests(void)
{
    u_char                 id[NGX_MCP_UUID_LEN];
    ngx_str_t              out, wrong;
    ngx_pool_t            *pool;
    ngx_mcp_ref_t          ref, other;
    ngx_mcp_session_t      s = { 0 };
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);
    pool = env_pool();

    in = new_session("e", "t");
    in.initialize.data = big;
    in.initialize.len = 32768;
    memset(big, 'a', sizeof(big));
    big[0] = '{';
    big[32767] = '}';

    ok(ngx_mcp_session_create(&zone, &in, &ref) == NGX_OK, "create");
    ok(ngx_mcp_session_exists(&zone, &in.id, &in.endpoint), "exists");
    wrong = env_str("x");
    ok(!ngx_mcp_session_exists(&zone, &in.id, &wrong), "not elsewhere");

    env_time(ngx_current_msec + 5000);

    ok(ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                            &in.identity, &s) == NGX_OK
       && s.ref.block == ref.block && s.ref.gen == ref.gen
       && s.revision == NGX_MCP_2025_11_25 && s.offered == 1
       && s.seen == s.created + 5000 && s.streams == 0 && s.calls == 0
       && s.client_name.len == 6 && s.client_version.len == 3
       && memcmp(s.client_name.data, "client1.2", 9) == 0, "find");

    ok(ngx_mcp_session_find(&zone, &in.id, &wrong, &in.tenant,
                            &in.identity, &s) == NGX_DECLINED
       && ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &wrong,
                               &in.identity, &s) == NGX_DECLINED
       && ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                               &wrong, &s) == NGX_DECLINED
       && ngx_mcp_session_find(&zone, &wrong, &in.endpoint, &in.tenant,
                               &in.identity, &s) == NGX_DECLINED,
       "not with another endpoint, tenant, identity or id");

    ok(session_id(ref, id) == NGX_OK
       && memcmp(id, in.id.data, in.id.len) == 0, "id");

    ok(ngx_mcp_session_initialize(&zone, ref, pool, &out, NULL) == NGX_OK
       && out.len == 32768 && memcmp(out.data, big, out.len) == 0,
       "initialize of 32k");

    ngx_mcp_session_set_level(&zone, ref, NGX_MCP_LEVEL_ERROR);
    (void) ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                                &in.identity, &s);
    ok(s.level == NGX_MCP_LEVEL_ERROR, "level");

    ok(ngx_mcp_session_create(&zone, &in, &other) == NGX_BUSY,
       "an id is used once");

    ngx_mcp_session_end(&zone, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(!ngx_mcp_session_exists(&zone, &in.id, &in.endpoint)
       && session_id(ref, id) == NGX_DECLINED
       && ngx_mcp_session_initialize(&zone, ref, pool, &out, NULL)
          == NGX_DECLINED
       && counted(NGX_MCP_COUNTER_SESSIONS_DELETED) == 1
       && counted(NGX_MCP_COUNTER_SESSIONS_LIVE) == 0, "ended");

    in = new_session("e", "t");
    in.identity.len = 0;
    in.tenant.len = 0;
    ok(ngx_mcp_session_create(&zone, &in, &ref) == NGX_OK
       && ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                               &in.identity, &s) == NGX_OK,
       "empty tenant and identity");

    env_pool_free(pool);
    stop("sessions");
}


static void
limit_tests(void)
{
    ngx_mcp_ref_t          a, b, c;
    ngx_mcp_session_t      s = { 0 };
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    in = new_session("e", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    (void) ngx_mcp_session_create(&zone, &in, &a);
    (void) ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                                &in.identity, &s);

    in = new_session("e", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    (void) ngx_mcp_session_create(&zone, &in, &b);

    in = new_session("e", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    ok(ngx_mcp_session_create(&zone, &in, &c) == NGX_BUSY
       && counted(NGX_MCP_COUNTER_SESSIONS_REFUSED) == 1, "limit");

    in.limit_key = env_str("another");
    ok(ngx_mcp_session_create(&zone, &in, &c) == NGX_OK, "of another key");

    in = new_session("e2", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    ok(ngx_mcp_session_create(&zone, &in, &c) == NGX_OK,
       "of another endpoint");

    env_time(ngx_current_msec + 61000);

    in = new_session("e", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    ok(ngx_mcp_session_create(&zone, &in, &c) == NGX_OK
       && session_id(b, big) == NGX_DECLINED
       && session_id(a, big) == NGX_OK,
       "one that was never used gives way after 60s");

    in = new_session("e", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    ok(ngx_mcp_session_create(&zone, &in, &b) == NGX_BUSY, "limit again");

    env_time(ngx_current_msec + 1800000);
    ok(ngx_mcp_session_create(&zone, &in, &b) == NGX_OK,
       "one past its time-out gives way");

    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);
    in = new_session("e", "t");
    in.limit = 2;
    in.limit_key = env_str("key");
    ok(ngx_mcp_session_create(&zone, &in, &b) == NGX_OK, "an end counts");

    stop("limits");
}


static void
subscription_tests(void)
{
    ngx_str_t      a, b, out;
    ngx_uint_t     i;
    ngx_pool_t    *pool;
    ngx_mcp_ref_t  ref;
    char           text[32];

    start(ZONE_SIZE);
    pool = env_pool();
    ref = session("e", "t");

    a = env_str("file:///a");
    b = env_str("file:///b");

    ok(ngx_mcp_session_subscribe(&zone, ref, &a, NULL, 2) == NGX_OK
       && ngx_mcp_session_subscribe(&zone, ref, &a, NULL, 2) == NGX_OK
       && ngx_mcp_session_subscribe(&zone, ref, &b, NULL, 2) == NGX_OK,
       "subscribe");

    out = env_str("file:///c");
    ok(ngx_mcp_session_subscribe(&zone, ref, &out, NULL, 2) == NGX_BUSY,
       "limit");

    ok(ngx_mcp_session_subscription(&zone, ref, 1, pool, &out) == NGX_OK
       && out.len == 9 && memcmp(out.data, "file:///b", 9) == 0
       && ngx_mcp_session_subscription(&zone, ref, 2, pool, &out)
          == NGX_DECLINED, "listed");

    ok(ngx_mcp_session_unsubscribe(&zone, ref, &a) == NGX_OK
       && ngx_mcp_session_unsubscribe(&zone, ref, &a) == NGX_DECLINED,
       "unsubscribe");

    for (i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "file:///%u", (unsigned) i);
        a = env_str(text);
        (void) ngx_mcp_session_subscribe(&zone, ref, &a, NULL, 256);
    }

    a.data = big;
    a.len = 8000;
    ok(ngx_mcp_session_subscribe(&zone, ref, &a, NULL, 256) == NGX_OK
       && ngx_mcp_session_subscription(&zone, ref, 201, pool, &out) == NGX_OK
       && out.len == 8000, "a long one");

    ngx_mcp_session_end(&zone, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(ngx_mcp_session_subscribe(&zone, ref, &b, NULL, 256) == NGX_DECLINED,
       "an ended session");

    env_pool_free(pool);
    stop("subscriptions");
}


/* returns the number of made interests; 98 or 99: a result is wrong */

static ngx_uint_t
made(ngx_mcp_ref_t us, ngx_uint_t serial)
{
    ngx_str_t   *uris;
    ngx_uint_t   n;
    ngx_pool_t  *pool;

    pool = env_pool();

    if (ngx_mcp_interest_uris(&zone, us, &serial, 1000, pool, &uris, &n)
        != NGX_OK)
    {
        n = 99;

    } else if (n && uris[0].data[0] != 'f') {
        n = 98;
    }

    env_pool_free(pool);

    return n;
}


static ngx_int_t
pair(ngx_mcp_ref_t session, ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n,
    ngx_uint_t last)
{
    uint64_t  stamp;

    stamp = 0;

    return ngx_mcp_interest_pair(&zone, session, upstream, uri, n, last,
                                 &stamp);
}


/* refused interests do not hide made ones */

/* as the worker whose lease has this fence */

static ngx_int_t
hold_shared(ngx_mcp_ref_t us, uint32_t fence)
{
    ngx_int_t                    rc;
    ngx_str_t                    key;
    ngx_pool_t                  *pool;
    ngx_mcp_lease_t              lease;
    ngx_mcp_lease_sh_t          *l;
    ngx_mcp_lease_checkpoint_t   left;

    key = env_str("shared");
    pool = env_pool();

    (void) ngx_mcp_lease_ensure(&zone, &key);
    (void) ngx_mcp_lease_claim(&zone, &key, pool, &lease, &left);

    env_pool_free(pool);

    ngx_mcp_zone_lock(&zone);

    l = ngx_mcp_record(&zone, lease.ref, NGX_MCP_LEASE);
    ngx_mcp_touch(&zone, l);
    l->holder.fence = fence;

    ngx_mcp_zone_unlock(&zone);

    lease.fence = fence;
    rc = ngx_mcp_shared_claim(&zone, us, &lease);

    (void) ngx_mcp_lease_drop(&zone, &lease);

    ok(ngx_mcp_shared_claim(&zone, us, &lease) == NGX_DECLINED
       && ngx_mcp_shared_touch(&zone, us, fence) == NGX_OK,
       "nobody holds a shared session by a lease that is lost");

    return rc;
}


static ngx_mcp_ref_t  crowded, crowd;
static ngx_uint_t     moved;


/* another worker's client unsubscribes, and another one subscribes */

static void
interests_move(void)
{
    char       text[32];
    ngx_str_t  uri;

    if (moved == 20) {
        return;
    }

    env_unlocked = NULL;

    snprintf(text, sizeof(text), "file:///%u", (unsigned) (8 + moved++));
    uri = env_str(text);

    (void) ngx_mcp_session_unsubscribe(&zone, crowd, &uri);
    (void) ngx_mcp_interest_join(&zone, crowded, crowd, &uri, 64);

    env_unlocked = interests_move;
}


static void
wanted_interests_tests(void)
{
    char                    text[32];
    ngx_str_t               uri, *uris, *more;
    ngx_uint_t              i, k, n, nmore, found;
    ngx_pool_t             *pool;
    ngx_mcp_session_new_t   in;

    start(ZONE_SIZE);
    pool = env_pool();

    crowd = session("e", "t");

    in = new_session("e", "t");
    in.identity = env_str("up");
    us_shared(&zone, &in, &crowded);

    for (i = 0; i < 40; i++) {
        snprintf(text, sizeof(text), "file:///%u", (unsigned) i);
        uri = env_str(text);
        (void) ngx_mcp_interest_join(&zone, crowded, crowd, &uri, 64);
    }

    env_unlocked = interests_move;

    ok(ngx_mcp_interest_uris(&zone, crowded, NULL, 1000, pool, &uris, &n)
       == NGX_OK
       && n == 40 && moved, "all that are wanted, though others move them");

    env_unlocked = NULL;
    found = 0;

    ok(ngx_mcp_interest_uris(&zone, crowded, NULL, 39, pool, &more, &nmore)
       == NGX_BUSY, "not more than the caller takes");

    for (i = 0; i < 40; i++) {
        snprintf(text, sizeof(text), "file:///%u", (unsigned) i);

        for (k = 0; k < n; k++) {
            found += (uris[k].len == strlen(text)
                      && memcmp(uris[k].data, text, strlen(text)) == 0);
        }
    }

    ok(found == 40, "each of them once");

    env_pool_free(pool);
    stop("wanted interests");
}


static void
refused_interests_tests(void)
{
    char                        text[32];
    ngx_str_t                   uri, name, id;
    ngx_uint_t                  i;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               a, us;
    ngx_mcp_session_new_t       in;
    ngx_mcp_interest_job_t      job;
    ngx_mcp_upstream_session_t  l;

    start(ZONE_SIZE);
    pool = env_pool();

    a = session("e", "t");
    name = env_str("up");
    id = env_str("there");

    in = new_session("e", "t");
    in.identity = name;
    us_shared(&zone, &in, &us);
    hold_shared(us, 5);
    us_get(&zone, us, &name, us, &l);
    us_made(&zone, us, &name, &id, 1);
    us_peek(&zone, us, &name, &l);

    for (i = 0; i <= 2 * NGX_MCP_INTEREST_JOBS; i++) {
        if (i == 2 * NGX_MCP_INTEREST_JOBS) {
            ok(made(us, l.serial) == 1, "a made one before some refused ones");
        }

        snprintf(text, sizeof(text), "file:///%u", (unsigned) i);
        uri = env_str(text);
        (void) ngx_mcp_interest_join(&zone, us, a, &uri, 64);
        (void) ngx_mcp_interest_next(&zone, us, 5, pool, &job);
        ngx_mcp_interest_done(&zone, 5, &job, i ? NGX_DECLINED : NGX_OK,
                              l.serial);
    }

    ok(made(us, l.serial) == 1, "or before many");

    env_pool_free(pool);
    stop("refused interests");
}


static void
shared_tests(void)
{
    uint64_t                    stamp;
    ngx_int_t                   rc;
    ngx_str_t                   uri, none, name, id;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               a, b, us, other;
    ngx_mcp_call_t              call;
    ngx_mcp_session_t           s = { 0 };
    ngx_mcp_session_new_t       in;
    ngx_mcp_interest_job_t      job, second;
    ngx_mcp_upstream_session_t  l, own;

    start(ZONE_SIZE);
    pool = env_pool();

    a = session("e", "t");
    b = session("e", "t");

    name = env_str("up");
    id = env_str("there");
    none = env_str("");
    uri = env_str("file:///a");

    in = new_session("e", "t");
    in.identity = name;
    ok(us_shared(&zone, &in, &us) == NGX_OK
       && us_shared(&zone, &in, &other) == NGX_OK
       && us.block == other.block
       && counted(NGX_MCP_COUNTER_SESSIONS_LIVE) == 2,
       "a shared one, which does not count");
    ok(ngx_mcp_session_exists(&zone, &in.id, &in.endpoint) == 0
       && ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                               &in.identity, &s) == NGX_DECLINED,
       "which no client finds");

    in.list_key = env_str("key");
    in.limit = 1;
    ok(us_shared(&zone, &in, &other) == NGX_OK
       && us.block != other.block, "one for each audience");
    in.list_key = env_str("another key");
    ok(us_shared(&zone, &in, &other) == NGX_BUSY, "but not too many");

    /* two sessions share an interest */

    ok(hold_shared(us, 5) == NGX_OK
       && ngx_mcp_shared_touch(&zone, us, 4) == NGX_DECLINED, "held");

    listen_again();
    ok(ngx_mcp_interest_join(&zone, us, a, &uri, 1) == NGX_AGAIN
       && ngx_mcp_interest_join(&zone, us, a, &uri, 1) == NGX_AGAIN
       && ngx_mcp_interest_join(&zone, us, b, &uri, 1) == NGX_AGAIN,
       "wanted");
    drain();
    ok(heard.interests == 1 && heard.keys == NGX_MCP_RING_KEY(us.block),
       "the holder hears of it");
    ok(ngx_mcp_interest_join(&zone, us, a, &name, 1) == NGX_BUSY,
       "the limit");

    ok(ngx_mcp_interest_next(&zone, us, 4, pool, &job) == NGX_DECLINED
       && ngx_mcp_interest_next(&zone, us, 5, pool, &job) == NGX_OK
       && job.subscribe && !job.again && job.uri.len == uri.len
       && ngx_mcp_interest_next(&zone, us, 5, pool, &second) == NGX_DECLINED,
       "asked for once");

    us_get(&zone, us, &name, us, &l);
    ok(us_get(&zone, us, &name, us, &l) == NGX_AGAIN, "another makes it");
    us_made(&zone, us, &name, &id, 1);
    drain();
    ok(heard.upstream_sessions == 1
       && heard.keys == NGX_MCP_RING_KEY(us.block),
       "who waits without a call hears of this one");
    us_peek(&zone, us, &name, &l);

    listen_again();
    ngx_mcp_interest_done(&zone, 5, &job, NGX_OK, l.serial);
    drain();
    ok(heard.interests == 1
       && ngx_mcp_interest_state(&zone, a, &uri) == NGX_OK
       && ngx_mcp_interest_state(&zone, b, &uri) == NGX_OK
       && ngx_mcp_interest_next(&zone, us, 5, pool, &job) == NGX_DECLINED,
       "made");
    ok(made(us, l.serial) == 1 && made(us, l.serial + 1) == 0,
       "on this link");
    ok(us_get(&zone, a, &name, us, &own) == NGX_DECLINED
       && us_subscription(&zone, a, &name, 0, pool, &id) == NGX_OK
       && us_subscription(&zone, a, &name, 1, pool, &id) == NGX_DECLINED
       && us_get(&zone, a, &id, us, &own) == NGX_DECLINED
       && us_subscription(&zone, a, &id, 0, pool, &id) == NGX_DECLINED,
       "the session's own there has it, too, and at no other upstream");

    /* the shared session gets a stream */

    ok(pair(a, &name, &uri, 1, 0) == NGX_DECLINED, "does not listen");
    ngx_mcp_upstream_session_stream_opened(&zone, us, l.serial, 0);
    ok(pair(a, &name, &none, 1, 0) == NGX_OK, "listens");

    ok(pair(a, &name, &uri, 1, 0) == NGX_AGAIN, "heard on a stream alone");
    ngx_mcp_interest_updated(&zone, us, &uri);
    ok(pair(a, &name, &uri, 1, 1) == NGX_OK, "and after that for all");
    ngx_mcp_interest_updated(&zone, us, &uri);
    ngx_mcp_interest_updated(&zone, us, &uri);
    ok(pair(a, &name, &uri, 1, 0) == NGX_OK
       && pair(a, &name, &uri, 1, 0) == NGX_OK
       && pair(a, &name, &uri, 1, 0) == NGX_AGAIN
       && pair(b, &name, &uri, 3, 1) == NGX_OK, "each has one of its own");
    ok(pair(a, &name, &uri, 1, 1) == NGX_ABORT
       && pair(a, &name, &uri, 1, 0) == NGX_DECLINED
       && pair(b, &name, &uri, 1, 0) == NGX_DECLINED,
       "told alone, as the next ones are");
    ngx_mcp_interest_updated(&zone, us, &uri);
    env_time(ngx_current_msec + NGX_MCP_INTEREST_PAIR + 1001);
    ok(pair(a, &name, &uri, 1, 0) == NGX_AGAIN,
       "what was said long ago is another one");
    ngx_mcp_interest_updated(&zone, us, &uri);
    ok(pair(a, &name, &uri, 1, 1) == NGX_OK
       && pair(b, &name, &uri, 3, 1) == NGX_ABORT, "more than for all");
    ok(us_listen(&zone, b, &name) == NGX_OK
       && us_listens(&zone, b, &name, 0) == 0
       && us_listens(&zone, b, &name, 0) == 1,
       "what it misses is told");
    ngx_mcp_interest_updated(&zone, us, &uri);

    us_listen(&zone, a, &name);
    us_listens(&zone, a, &name, 0);
    ok(us_listens(&zone, a, &name, 0) == 0,
       "what sessions miss themselves is told by it");
    ok(pair(a, &name, &uri, 1, 0) == NGX_OK
       && pair(a, &name, &uri, 1, 0) == NGX_AGAIN
       && us_listens(&zone, a, &name, 0) == 1
       && us_listens(&zone, a, &name, 0) == 0,
       "but one that was kept, once");
    ok(pair(a, &name, &name, 1, 0) == NGX_DECLINED
       && pair(a, &name, &name, 1, 1) == NGX_DECLINED,
       "of another resource it is told");

    stamp = 0;
    rc = ngx_mcp_interest_pair(&zone, a, &name, &uri, 1, 0, &stamp);
    (void) ngx_mcp_session_unsubscribe(&zone, a, &uri);
    ok(rc == NGX_AGAIN
       && ngx_mcp_interest_pair(&zone, a, &name, &uri, 1, 1, &stamp) == NGX_OK,
       "but not once it has unsubscribed");
    ok(ngx_mcp_interest_join(&zone, us, a, &uri, 64) == NGX_OK
       && ngx_mcp_interest_pair(&zone, a, &name, &uri, 1, 1, &stamp) == NGX_OK,
       "nor by a later subscription");

    /* a call that waits counts as well */

    ok(env_call_open(&zone, a, &name, &none, 8, 1, &call) == NGX_OK
       && ngx_mcp_interest_acquire(&zone, us, call.ref, &uri) == NGX_OK
       && ngx_mcp_interest_acquire(&zone, us, call.ref, &uri) == NGX_DECLINED
       && ngx_mcp_interest_next(&zone, us, 5, pool, &job) == NGX_DECLINED,
       "a call shares it");
    ngx_mcp_call_close(&zone, call.ref);
    ok(ngx_mcp_interest_next(&zone, us, 5, pool, &job) == NGX_DECLINED
       && ngx_mcp_interest_acquire(&zone, us, call.ref, &uri) == NGX_DECLINED,
       "as long as it runs");
    ok(env_call_open(&zone, a, &name, &none, 8, 1, &call) == NGX_OK
       && ngx_mcp_interest_acquire(&zone, us, call.ref, &name) == NGX_OK
       && env_check(&zone) == 0
       && ngx_mcp_interest_next(&zone, us, 5, pool, &job) == NGX_OK
       && job.subscribe, "one of its own");
    ngx_mcp_interest_done(&zone, 5, &job, NGX_OK, l.serial);
    ngx_mcp_call_close(&zone, call.ref);
    ok(ngx_mcp_interest_next(&zone, us, 5, pool, &job) == NGX_OK
       && !job.subscribe, "ends with it");
    ngx_mcp_interest_done(&zone, 5, &job, NGX_OK, l.serial);

    /* another holder goes on; a new upstream session has to subscribe again */

    hold_shared(us, 6);
    ok(ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_DECLINED,
       "another holder has nothing to do");
    us_forget(&zone, us, &name, l.serial);
    ok(pair(a, &name, &none, 1, 0) == NGX_DECLINED, "forgotten");
    id = env_str("there again");
    us_made(&zone, us, &name, &id, 1);
    us_peek(&zone, us, &name, &l);
    ok(ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_OK
       && job.subscribe && job.again && made(us, l.serial) == 0
       && ngx_mcp_interest_state(&zone, a, &uri) == NGX_OK,
       "asked for again");
    ngx_mcp_interest_done(&zone, 6, &job, NGX_AGAIN, 0);
    ok(ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_OK, "retried");
    ngx_mcp_interest_done(&zone, 6, &job, NGX_OK, l.serial);
    ok(made(us, l.serial) == 1, "made again");

    /* the last session leaves, and another one comes back meanwhile */

    ok(ngx_mcp_session_unsubscribe(&zone, a, &uri) == NGX_DONE
       && ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_DECLINED
       && ngx_mcp_shared_end(&zone, us, 6) == NGX_DECLINED, "one left");
    listen_again();
    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);
    drain();
    ok(heard.interests == 1
       && ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_OK
       && !job.subscribe, "the last one left");
    ok(ngx_mcp_interest_join(&zone, us, a, &uri, 1) == NGX_AGAIN,
       "too late to be kept");
    ngx_mcp_interest_done(&zone, 6, &job, NGX_OK, l.serial);
    ok(ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_OK
       && job.subscribe, "made anew");

    /* the upstream refuses the subscription */

    ngx_mcp_interest_done(&zone, 6, &job, NGX_DECLINED, l.serial);
    ok(ngx_mcp_interest_state(&zone, a, &uri) == NGX_DONE
       && ngx_mcp_interest_next(&zone, us, 6, pool, &job) == NGX_DECLINED,
       "refused");
    ngx_mcp_interest_leave(&zone, a, &uri);
    ok(us_subscription(&zone, a, &name, 0, pool, &id) == NGX_OK
       && ngx_mcp_interest_join(&zone, us, a, &uri, 1) == NGX_DONE
       && ngx_mcp_interests(&zone, us) == 0, "tried alone");
    ngx_mcp_upstream_session_stream_opened(&zone, us, l.serial, 0);
    ok(pair(a, &name, &none, 1, 0) == NGX_OK
       && pair(a, &name, &uri, 1, 0) == NGX_DECLINED, "and heard alone");
    ok(us_listens(&zone, a, &name, 0) == 1, "missed alone, too");
    ok(ngx_mcp_session_unsubscribe(&zone, a, &uri) == NGX_OK, "ended alone");

    /* the shared session ends */

    (void) ngx_mcp_interest_join(&zone, us, a, &uri, 1);
    us_shared_end(&zone, us);
    ok(ngx_mcp_interest_state(&zone, a, &uri) == NGX_ERROR, "gone");
    in.list_key = env_str("");
    in.limit = 0;
    us_shared(&zone, &in, &us);
    hold_shared(us, 7);
    ok(ngx_mcp_interest_join(&zone, us, a, &uri, 1) == NGX_AGAIN,
       "joined again");
    ngx_mcp_session_unsubscribe(&zone, a, &uri);

    listen_again();
    env_time(ngx_current_msec + NGX_MCP_SHARED_TIMEOUT - 1);
    ngx_mcp_shared_touch(&zone, us, 7);
    env_time(ngx_current_msec + NGX_MCP_SHARED_TIMEOUT - 1);
    (void) ngx_mcp_worker_sweep(&zone);
    ok(ngx_mcp_interests(&zone, us) == 0, "kept while touched");
    env_time(ngx_current_msec + 1);
    (void) ngx_mcp_worker_sweep(&zone);
    ok(ngx_mcp_shared_touch(&zone, us, 7) == NGX_DECLINED, "and no longer");

    /* the configuration changed, and the URI is another upstream's now */

    us_shared(&zone, &in, &us);
    in.identity = env_str("up2");
    us_shared(&zone, &in, &other);
    ok(ngx_mcp_interest_join(&zone, us, a, &uri, 1) == NGX_AGAIN
       && ngx_mcp_interests(&zone, us) == 1, "joined once more");
    ok(us.block != other.block
       && ngx_mcp_interest_join(&zone, other, a, &uri, 1) == NGX_AGAIN
       && ngx_mcp_interests(&zone, us) == 0
       && ngx_mcp_interests(&zone, other) == 1,
       "the interest moves to the other upstream");

    /* a shared session that nobody holds */

    drain();
    listen_again();
    env_time(ngx_current_msec + NGX_MCP_SHARED_TIMEOUT - 1);
    (void) ngx_mcp_worker_sweep(&zone);
    drain();
    ok(heard.interests == 0, "nobody is woken in vain");
    env_time(ngx_current_msec + 1);
    (void) ngx_mcp_worker_sweep(&zone);
    drain();
    ok(heard.interests == 1
       && (heard.keys & NGX_MCP_RING_KEY(other.block))
       && ngx_mcp_interest_state(&zone, a, &uri) == NGX_ERROR,
       "a client that waits is woken when it ends");
    us_shared(&zone, &in, &other);
    ok(ngx_mcp_interest_join(&zone, other, a, &uri, 1) == NGX_AGAIN
       && ngx_mcp_interests(&zone, other) == 1, "and joins another one");

    env_pool_free(pool);
    stop("shared upstream sessions");
}


static void
link_tests(void)
{
    ngx_str_t                   uri, name, id;
    ngx_uint_t                  old;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               ref;
    ngx_mcp_call_t              a, b;
    ngx_mcp_upstream_session_t  l;

    start(ZONE_SIZE);
    pool = env_pool();
    ref = session("e", "t");

    id = env_str("1");
    name = env_str("");
    env_call_open(&zone, ref, &id, &name, 8, 11, &a);
    id = env_str("2");
    env_call_open(&zone, ref, &id, &name, 8, 12, &b);

    name = env_str("up");

    ok(us_peek(&zone, ref, &name, &l) == NGX_DECLINED
       && us_get(&zone, ref, &name, a.ref, &l) == NGX_DECLINED
       && us_get(&zone, ref, &name, b.ref, &l) == NGX_AGAIN,
       "one makes it, another waits");

    us_fail(&zone, ref, &name);
    drain();
    ok(heard.calls == 1 && heard.local == 12
       && heard.why == NGX_MCP_WAKE_UPSTREAM_SESSION, "woken by failure");

    ok(us_get(&zone, ref, &name, b.ref, &l) == NGX_DECLINED
       && us_get(&zone, ref, &name, a.ref, &l) == NGX_AGAIN,
       "the next one makes it");

    id = env_str("session-at-up");
    listen_again();
    ok(us_made(&zone, ref, &name, &id, NGX_MCP_2025_06_18) == NGX_OK,
       "put");
    drain();
    ok(heard.calls == 1 && heard.local == 11, "woken by success");

    ok(us_get(&zone, ref, &name, a.ref, &l) == NGX_OK
       && l.id.len == id.len && memcmp(l.id.data, id.data, id.len) == 0
       && l.revision == NGX_MCP_2025_06_18
       && us_peek(&zone, ref, &name, &l) == NGX_OK, "get");

    old = l.serial;
    us_forget(&zone, ref, &name, old + 1);
    ok(us_peek(&zone, ref, &name, &l) == NGX_OK,
       "forget of another serial");
    us_forget(&zone, ref, &name, old);
    ok(us_get(&zone, ref, &name, a.ref, &l) == NGX_DECLINED,
       "forget");

    id.data = big;
    id.len = NGX_MCP_UPSTREAM_ID_MAX;
    ok(us_made(&zone, ref, &name, &id, 1) == NGX_OK
       && us_get(&zone, ref, &name, a.ref, &l) == NGX_OK
       && l.id.len == NGX_MCP_UPSTREAM_ID_MAX && l.id.data == NULL
       && l.serial != old
       && us_id(&zone, pool, &l) == NGX_OK
       && ngx_memcmp(l.id.data, big, NGX_MCP_UPSTREAM_ID_MAX) == 0,
       "a long id");
    us_get(&zone, ref, &name, a.ref, &l);
    us_forget(&zone, ref, &name, l.serial);
    ok(us_id(&zone, pool, &l) == NGX_DECLINED,
       "a long id that is gone");

    ok(us_listen(&zone, ref, &name) == NGX_OK
       && us_listen(&zone, ref, &name) == NGX_DECLINED, "listen");
    ok(us_listens(&zone, ref, &name, 0) == 0
       && us_listens(&zone, ref, &name, 0) == 0,
       "the first stream, and nothing to look at again");

    uri = env_str("file:///a");
    ngx_mcp_session_subscribe(&zone, ref, &uri, NULL, 8);
    us_unlisten(&zone, ref, &name, 0);
    ok(us_listen(&zone, ref, &name) == NGX_OK
       && us_listens(&zone, ref, &name, 1) == 0
       && us_listens(&zone, ref, &name, 0) == 1,
       "who does not go on behind the one before has a gap");

    us_unlisten(&zone, ref, &name, 1);
    ok(us_listen(&zone, ref, &name) == NGX_OK
       && us_listens(&zone, ref, &name, 0) == 0,
       "one who left has none");

    id = env_str("last");
    us_made(&zone, ref, &name, &id, 2);
    ok(us_listens(&zone, ref, &name, 0) == 1,
       "a link made anew has the gap of the one before");
    id = env_str("");
    name = env_str("stateless");
    us_get(&zone, ref, &name, a.ref, &l);
    ok(us_made(&zone, ref, &name, &id, 2) == NGX_OK
       && us_get(&zone, ref, &name, a.ref, &l) == NGX_OK
       && l.id.len == 0, "an upstream without sessions");

    listen_again();
    ngx_mcp_session_end(&zone, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);
    drain();
    ok(heard.pending_deletes == 1 && heard.calls == 2
       && heard.why == NGX_MCP_WAKE_CLOSE, "farewell");
    is(heard.pending_delete, "e up last t 2", "to whom");
    ok(heard.session_len == NGX_MCP_UUID_LEN, "whose session it was for");

    ok(us_get(&zone, ref, &name, a.ref, &l) == NGX_ERROR
       && us_made(&zone, ref, &name, &id, 2) == NGX_DECLINED,
       "an ended session");

    ngx_mcp_call_close(&zone, a.ref);
    ngx_mcp_call_close(&zone, b.ref);
    ok(zone.sh->nfree == zone.sh->watermark - 1,
       "its record goes with its last call");

    env_pool_free(pool);
    stop("links");
}


static ngx_str_t
server_request_id(char *text, ngx_uint_t n)
{
    snprintf(text, 64, "\"%036u\"", (unsigned) n);

    return env_str(text);
}


static ngx_mcp_ref_t  server_request_session;
static ngx_str_t      server_request_taken;


static void
server_request_recovery(void)
{
    zone.sh->recoveries++;
}


static void
server_request_ends(void)
{
    (void) ngx_mcp_server_request_close(&zone, server_request_session,
                                        &server_request_taken);
}


static void
server_request_tests(void)
{
    char                      text[64];
    u_char                    buf[NGX_MCP_SERVER_REQUEST_ID_LEN];
    ngx_str_t                 id, out, answer;
    ngx_uint_t                i;
    ngx_pool_t               *pool;
    ngx_mcp_ref_t             ref;
    ngx_mcp_call_t            call;
    ngx_mcp_server_request_t  request, found;

    start(ZONE_SIZE);
    pool = env_pool();
    ref = session("e", "t");

    memset(&request, 0, sizeof(request));

    request.upstream = env_str("up");
    request.serial = 3;
    request.token = env_str("7");

    for (i = 0; i < NGX_MCP_SERVER_REQUESTS_MAX + 1; i++) {
        id = server_request_id(text, i);
        request.id = env_str(i % 2 ? "\"odd\"" : "0");

        if (ngx_mcp_server_request_open(&zone, ref, &id, &request)
            != NGX_OK)
        {
            break;
        }
    }

    id = server_request_id(text, 7);
    ok(i == NGX_MCP_SERVER_REQUESTS_MAX + 1
       && ngx_mcp_server_request_find(&zone, ref, &id, 0, pool, &found)
          == NGX_OK
       && found.serial == 3 && ngx_mcp_equal(&found.upstream,
                                             &request.upstream)
       && found.id.len == 5 && memcmp(found.id.data, "\"odd\"", 5) == 0
       && ngx_mcp_equal(&found.token, &request.token), "found");

    ok(ngx_mcp_server_request_find(&zone, ref, &id, 1, pool, &found) == NGX_OK
       && ngx_mcp_server_request_find(&zone, ref, &id, 1, pool, &found)
          == NGX_DECLINED, "answered once");

    id = server_request_id(text, 0);
    ok(ngx_mcp_server_request_find(&zone, ref, &id, 1, pool, &found)
       == NGX_DECLINED, "the oldest gave way");

    request.id = env_str("\"odd\"");
    id = server_request_id(text, 1);
    ok(ngx_mcp_server_request_cancel(&zone, ref, &request, buf, &out)
          == NGX_OK
       && ngx_mcp_equal(&out, &id)
       && ngx_mcp_server_request_find(&zone, ref, &id, 1, pool, &found)
          == NGX_DECLINED, "cancelled by the upstream's id");

    request.serial = 4;
    ok(ngx_mcp_server_request_cancel(&zone, ref, &request, buf, &out)
       == NGX_DECLINED, "not of another session there");

    request.serial = 3;
    request.upstream = env_str("other");
    ok(ngx_mcp_server_request_cancel(&zone, ref, &request, buf, &out)
       == NGX_DECLINED, "nor of another upstream");

    memset(big, 'x', sizeof(big));
    request.id.data = big;
    request.id.len = NGX_MCP_ID_MAX + 1;
    ok(ngx_mcp_server_request_open(&zone, ref, &id, &request) == NGX_ERROR,
       "an id that is too long");

    /* a server request that a call waits for */

    memset(&request, 0, sizeof(request));
    memset(&call, 0, sizeof(call));
    memset(&out, 0, sizeof(out));

    found.token = env_str("\"c\"");
    ok(env_call_open(&zone, ref, &found.token, &out, 4, 1, &call)
       == NGX_OK, "a call");

    request.call = call.ref;
    id = server_request_id(text, 1000);
    answer.data = big;
    answer.len = 20000;

    ok(ngx_mcp_server_request_open(&zone, ref, &id, &request) == NGX_OK
       && ngx_mcp_server_request_take(&zone, ref, &id, pool, &out)
          == NGX_AGAIN, "no answer yet");
    ok(ngx_mcp_server_request_find(&zone, ref, &id, 1, pool, &found) == NGX_OK
       && found.call.block == call.ref.block
       && ngx_mcp_server_request_answer(&zone, ref, &id, &answer) == NGX_OK
       && env_check(&zone) == 0, "a large answer for a call, not staged any "
                                 "more");
    ok(ngx_mcp_server_request_answer(&zone, ref, &id, &answer) != NGX_OK,
       "answered once");
    ok(ngx_mcp_server_request_take(&zone, ref, &id, pool, &out) == NGX_OK
       && ngx_mcp_equal(&out, &answer)
       && ngx_mcp_server_request_take(&zone, ref, &id, pool, &out)
          == NGX_DECLINED, "taken once");

    server_request_session = ref;
    server_request_taken = id;

    env_allocating = server_request_recovery;
    ok(ngx_mcp_server_request_open(&zone, ref, &id, &request) == NGX_OK
       && ngx_mcp_server_request_answer(&zone, ref, &id, &answer) == NGX_OK
       && ngx_mcp_server_request_take(&zone, ref, &id, pool, &out) == NGX_OK
       && ngx_mcp_equal(&out, &answer), "a recovery while it is taken");

    env_allocating = server_request_ends;
    ok(ngx_mcp_server_request_open(&zone, ref, &id, &request) == NGX_OK
       && ngx_mcp_server_request_answer(&zone, ref, &id, &answer) == NGX_OK
       && ngx_mcp_server_request_take(&zone, ref, &id, pool, &out)
          == NGX_DECLINED
       && env_check(&zone) == 0, "ended while it is taken, without the lock");

    ok(ngx_mcp_server_request_open(&zone, ref, &id, &request) == NGX_OK
       && ngx_mcp_server_request_close(&zone, ref, &id) == NGX_OK
       && ngx_mcp_server_request_answer(&zone, ref, &id, &answer)
          == NGX_DECLINED, "waited for no longer");

    ngx_mcp_call_close(&zone, call.ref);

    env_pool_free(pool);
    stop("server requests");
}


/* calls of callers without a session */

static void
alone_tests(void)
{
    ngx_str_t        endpoint, key, other;
    ngx_mcp_call_t   a, b, c;
    ngx_mcp_event_t  e;

    start(ZONE_SIZE);

    endpoint = env_str("e");
    key = env_str("me");
    other = env_str("you");

    ok(env_call_open_sessionless(&zone, &endpoint, &key, 2, 5, &a)
       == NGX_OK
       && env_call_open_sessionless(&zone, &endpoint, &key, 2, 6, &b)
          == NGX_OK,
       "two without a session");
    ok(env_call_open_sessionless(&zone, &endpoint, &key, 2, 7, &c)
       == NGX_BUSY,
       "the limit of a key");
    ok(env_call_open_sessionless(&zone, &endpoint, &other, 2, 7, &c)
       == NGX_OK,
       "another key has its own");
    ok(env_check(&zone) == 0, "they are counted");
    ok(ngx_mcp_counter(&zone, NGX_MCP_COUNTER_CALLS_RUNNING) == 3,
       "three run");

    memset(&e, 0, sizeof(e));
    e.parts = &key;
    e.nparts = 1;
    ok(ngx_mcp_log_call(&zone, a.ref, &e, NULL) == NGX_DECLINED,
       "they have no line");
    ok(!ngx_mcp_call_has_stream(&zone, a.ref), "and no stream");

    ngx_mcp_call_close(&zone, a.ref);
    ngx_mcp_call_close(&zone, a.ref);
    ok(env_call_open_sessionless(&zone, &endpoint, &key, 2, 5, &a)
       == NGX_OK,
       "one may follow");

    ngx_mcp_call_close(&zone, c.ref);

    ngx_mcp_worker_release(&zone);
    ok(ngx_mcp_counter(&zone, NGX_MCP_COUNTER_CALLS_RUNNING) == 0
       && zone.sh->used[NGX_MCP_CALL] == 0
       && zone.sh->used[NGX_MCP_LIMIT] == 0, "they end with their worker");

    stop("calls without a session");
}


/* topics of callers without a session */

static void
alone_topic_tests(void)
{
    size_t                   len;
    uint64_t                 after, at;
    ngx_str_t                endpoint, tenant, uri, str;
    ngx_uint_t               n, missed;
    ngx_mcp_ref_t            ref, more;
    ngx_mcp_event_t          e;
    ngx_mcp_topic_t          t;
    ngx_mcp_caller_t         ann, bob;
    ngx_mcp_topic_info_t     list[NGX_MCP_TOPIC_LIST];
    ngx_mcp_topic_cursor_t   cursor;
    static u_char            buf[NGX_MCP_TOPIC_BYTES];
    static u_char            texts[NGX_MCP_TOPIC_TEXTS];

    start(ZONE_SIZE);

    endpoint = env_str("e");
    tenant = env_str("t");
    uri = env_str("u:a");

    memset(&ann, 0, sizeof(ann));
    ann.endpoint = &endpoint;
    ann.tenant = tenant;
    ann.identity = env_str("ann");
    ann.share = ann.identity;
    bob = ann;
    bob.identity = env_str("bob");
    bob.share = bob.identity;

    memset(&t, 0, sizeof(t));
    t.uri = uri;
    t.limit = 2;
    t.share = 1;

    ok(ngx_mcp_topic_find(&zone, &ann, &t, &ref) == NGX_DECLINED
       && ngx_mcp_topics_wanted(&zone, &endpoint, &tenant) == NGX_DECLINED
       && zone.sh->used[NGX_MCP_GROUP] == 0, "none without a session");

    after = NGX_MCP_TOPIC_BEGIN;
    ok(ngx_mcp_topic_watch(&zone, &ann, &t, &ref, &after) == NGX_OK
       && env_topic_next_one(&zone, &ann, ref, 1, &after, buf, &len, &missed)
          == NGX_AGAIN, "who waits makes it");
    ok(topic_wanted(&endpoint, &tenant, &uri) == NGX_OK
       && ngx_mcp_topics_wanted(&zone, &endpoint, &tenant) == NGX_OK,
       "and wants it");
    at = after;

    memset(&e, 0, sizeof(e));
    str = env_str("for bob");
    e.parts = &str;
    e.nparts = 1;
    e.identity = bob.identity;
    (void) ngx_mcp_topic_add(&zone, &endpoint, NULL, &t, &e, NULL);
    ok(env_topic_next_one(&zone, &ann, ref, 1, &after, buf, &len, &missed)
       == NGX_AGAIN, "not what is for another");
    ok(env_topic_next_one(&zone, &bob, ref, 0, &at, buf, &len, &missed)
       == NGX_OK && len == 7, "who gets it");

    cursor = (ngx_mcp_topic_cursor_t) { 0 };
    ok(ngx_mcp_topic_list(&zone, &ann, &cursor, texts, list, &n) == NGX_DONE
       && n == 0, "not listed");
    cursor = (ngx_mcp_topic_cursor_t) { 0 };
    ok(ngx_mcp_topic_list(&zone, &bob, &cursor, texts, list, &n) == NGX_DONE
       && n == 1, "but for bob");

    t.uri = env_str("u:b");
    after = NGX_MCP_TOPIC_BEGIN;
    ok(ngx_mcp_topic_watch(&zone, &ann, &t, &more, &after) == NGX_OK
       && env_topic_next_one(&zone, &ann, more, 1, &after, buf, &len, &missed)
          == NGX_AGAIN, "another one");
    t.uri = env_str("u:c");
    bob.share = env_str("new");
    ok(ngx_mcp_topic_watch(&zone, &bob, &t, &more, &after) == NGX_BUSY,
       "as many as there may be");
    ok(env_check(&zone) == 0, "the zone is sound");

    ngx_mcp_topic_unwatch(&zone, ref);
    ok(ngx_mcp_topic_watch(&zone, &bob, &t, &more, &after) == NGX_OK,
       "one that nobody waits for goes");
    after = 0;
    ok(env_topic_next_one(&zone, &ann, ref, 1, &after, buf, &len, &missed)
       == NGX_DECLINED, "which is said");

    env_time(ngx_current_msec + NGX_MCP_TOPIC_IDLE + 1);
    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }
    ok(zone.sh->used[NGX_MCP_TOPIC] == 0 && zone.sh->used[NGX_MCP_GROUP] == 0
       && zone.sh->used[NGX_MCP_ACCOUNT] == 0, "nothing is left");

    t.limit = 1;
    t.uri = uri;
    ok(ngx_mcp_topic_watch(&zone, &ann, &t, &ref, &after) == NGX_OK,
       "the only one that there may be");
    n = zone.sh->used[NGX_MCP_ACCOUNT];
    t.uri = env_str("u:b");
    ok(ngx_mcp_topic_watch(&zone, &ann, &t, &ref, &after) == NGX_OK
       && n != 0 && zone.sh->used[NGX_MCP_ACCOUNT] == n,
       "another one in its place is charged like it");

    stop("topics without a session");
}


/* a call in an exclusive session is parked and resumed */

static void
parked_tests(void)
{
    size_t                 len;
    char                   buf[64];
    uint32_t               round;
    ngx_str_t              endpoint, key, text;
    ngx_uint_t             flags;
    ngx_mcp_ref_t          ref, again;
    ngx_mcp_call_t         a, b;
    ngx_mcp_event_t        e;
    ngx_mcp_cursor_t       cursor, from;
    ngx_mcp_parked_t       parked;
    ngx_mcp_stream_t       st;
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    endpoint = env_str("e");
    key = env_str("me");

    memset(&in, 0, sizeof(in));
    in.id = env_str("00000000-0000-8000-8000-000000000001");
    in.endpoint = endpoint;
    in.client = key;
    in.event_max = 64;
    in.event_size = 65536;

    env_call_open_sessionless(&zone, &endpoint, &key, 2, 5, &a);
    env_call_open_sessionless(&zone, &endpoint, &key, 2, 6, &b);

    ok(ngx_mcp_exclusive_join(&zone, &in, &a, &ref) == NGX_OK && a.channel,
       "a session of its own");
    ok(ngx_mcp_exclusive_join(&zone, &in, &b, &again) == NGX_BUSY,
       "which no other call has");
    ok(env_check(&zone) == 0
       && ngx_mcp_counter(&zone, NGX_MCP_COUNTER_SESSIONS_LIVE) == 0
       && ngx_mcp_counter(&zone, NGX_MCP_COUNTER_CALLS_RUNNING) == 2,
       "it is no session of a client");
    ok(!ngx_mcp_session_exists(&zone, &in.id, &endpoint), "nor is its id");

    text = env_str("a request");
    memset(&e, 0, sizeof(e));
    e.parts = &text;
    e.nparts = 1;
    ok(ngx_mcp_log_call(&zone, a.ref, &e, &cursor) == NGX_OK, "it has a line");

    ok(ngx_mcp_call_unpark(&zone, a.ref, 1, 1000, &parked) == NGX_BUSY
       && ngx_mcp_call_unpark(&zone, b.ref, 1, 1000, &parked)
          == NGX_DECLINED, "it is not parked");

    round = ngx_mcp_call_park(&zone, a.ref, 1000);
    ok(round == 1 && ngx_mcp_call_park_time_left(&zone, a.ref, 5000) == 1000,
       "parked");
    ok(ngx_mcp_call_unpark(&zone, a.ref, 2, 1000, &parked) == NGX_BUSY,
       "not in another round");
    ok(ngx_mcp_call_unpark(&zone, a.ref, 1, 2000, &parked) == NGX_OK
       && parked.session.block == ref.block && parked.channel == a.channel
       && memcmp(parked.id, in.id.data, NGX_MCP_UUID_LEN) == 0,
       "its client is back");
    ok(ngx_mcp_call_unpark(&zone, a.ref, 1, 2000, &parked) == NGX_BUSY,
       "once");
    ok(ngx_mcp_call_park(&zone, a.ref, 1000) == 2, "and is asked again");

    memset(&from, 0, sizeof(from));
    ok(env_stream_open(&zone, ref, a.channel, &from, 0, 7, &st) == NGX_OK
       && ngx_mcp_stream_read(&zone, &st, (u_char *) buf, sizeof(buf), &len,
                              &flags)
          == NGX_OK && len == text.len, "the line is read");

    env_time(ngx_current_msec + 3000);
    ok(ngx_mcp_call_park_time_left(&zone, a.ref, 5000) == 5000,
       "who reads it is waited for");

    e.flags = NGX_MCP_EVENT_RESPONSE;
    (void) ngx_mcp_log_call(&zone, a.ref, &e, &cursor);
    ngx_mcp_call_close(&zone, a.ref);
    ok(env_check(&zone) == 0 && zone.sh->used[NGX_MCP_LIMIT], "it ends");

    ngx_mcp_exclusive_end(&zone, ref);
    ok(ngx_mcp_exclusive_join(&zone, &in, &b, &again) == NGX_BUSY,
       "one that is spent serves no other");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_DONE);
    ok(zone.sh->used[NGX_MCP_SESSION] == 0, "and ends with its reader");

    ok(ngx_mcp_exclusive_join(&zone, &in, &b, &ref) == NGX_OK, "a new one");
    (void) ngx_mcp_call_park(&zone, b.ref, 1000);
    (void) ngx_mcp_log_call(&zone, b.ref, &e, &cursor);
    ngx_mcp_call_close(&zone, b.ref);
    ok(ngx_mcp_call_unpark(&zone, b.ref, 1, 1000, &parked) == NGX_OK,
       "an answer waits for the client");

    env_call_open_sessionless(&zone, &endpoint, &key, 2, 5, &a);
    ok(ngx_mcp_exclusive_join(&zone, &in, &a, &ref) == NGX_OK
       && a.channel != b.channel, "while the next call is there");
    (void) ngx_mcp_call_park(&zone, a.ref, 1000);

    ngx_mcp_worker_release(&zone);
    ok(zone.sh->used[NGX_MCP_CALL] == 0 && zone.sh->used[NGX_MCP_SESSION] == 0
       && zone.sh->used[NGX_MCP_LIMIT] == 0,
       "with the worker the call goes, and its session");

    stop("parked calls");
}


/* messages of an upstream on the GET stream of an exclusive session */

static void
parked_stream_tests(void)
{
    size_t                      len;
    char                        buf[64];
    ngx_str_t                   endpoint, key, text, up;
    ngx_uint_t                  i, flags;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               ref, us;
    ngx_mcp_call_t              a;
    ngx_mcp_event_t             e;
    ngx_mcp_cursor_t            cursor;
    ngx_mcp_stream_t            st, line;
    ngx_mcp_session_new_t       in;
    ngx_mcp_server_request_t    request, found;
    ngx_mcp_upstream_session_t  made;

    start(ZONE_SIZE);

    pool = ngx_create_pool(1024, &env_log);
    endpoint = env_str("e");
    key = env_str("me");
    up = env_str("up");

    memset(&in, 0, sizeof(in));
    in.id = env_str("00000000-0000-8000-8000-000000000001");
    in.endpoint = endpoint;
    in.client = key;
    in.event_max = 256;
    in.event_size = 64;

    text = env_str("a message");
    memset(&e, 0, sizeof(e));
    e.parts = &text;
    e.nparts = 1;

    env_call_open_sessionless(&zone, &endpoint, &key, 2, 5, &a);
    (void) ngx_mcp_exclusive_join(&zone, &in, &a, &ref);

    ok(ngx_mcp_upstream_session_get(&zone, ref, &up, a.ref, &made)
       == NGX_DECLINED
       && ngx_mcp_upstream_session_made(&zone, made.ref, &up, &key, 1, NULL)
          == NGX_OK, "a session at an upstream");
    ok(ngx_mcp_upstream_session_stream_await(&zone, made.ref, a.ref)
       == NGX_DECLINED, "nobody holds its stream");

    (void) ngx_mcp_log_session(&zone, ref, &e);
    ngx_mcp_call_close(&zone, a.ref);
    env_call_open_sessionless(&zone, &endpoint, &key, 2, 5, &a);
    (void) ngx_mcp_exclusive_join(&zone, &in, &a, &ref);

    ok(env_stream_open(&zone, ref, NGX_MCP_GENERAL_CHANNEL, NULL, 0, 7,
                       &line)
       == NGX_OK && ngx_mcp_session_gets(&zone, ref) == 1
       && ngx_mcp_counter(&zone, NGX_MCP_COUNTER_STREAMS_OPEN) == 0
       && env_check(&zone) == 0, "a call holds one, which is no client's");
    ok(ngx_mcp_stream_read(&zone, &line, (u_char *) buf, sizeof(buf), &len,
                           &flags)
       == NGX_AGAIN, "and reads nothing of the call before");

    ok(ngx_mcp_upstream_session_stream_claim(&zone, ref, &up, &us) == NGX_OK
       && ngx_mcp_upstream_session_stream_await(&zone, us, a.ref) == NGX_AGAIN,
       "a worker opens it");
    (void) ngx_mcp_upstream_session_stream_opened(&zone, us, made.serial + 1,
                                                  0);
    ngx_mcp_upstream_session_stream_closed(&zone, us);
    ok(ngx_mcp_upstream_session_stream_await(&zone, us, a.ref) == NGX_OK,
       "nobody waits once that failed");
    ngx_mcp_upstream_session_stream_absent(&zone, us);
    ngx_mcp_upstream_session_stream_release(&zone, us, 1);
    ok(ngx_mcp_upstream_session_stream_await(&zone, us, a.ref) == NGX_DONE,
       "or there is none");

    (void) ngx_mcp_log_session(&zone, ref, &e);
    (void) ngx_mcp_log_gap(&zone, &endpoint, NULL);
    ok(ngx_mcp_stream_read(&zone, &line, (u_char *) buf, sizeof(buf), &len,
                           &flags)
       == NGX_OK && len == text.len
       && ngx_mcp_stream_read(&zone, &line, (u_char *) buf, sizeof(buf), &len,
                              &flags)
          == NGX_AGAIN, "the call reads what is for it alone");

    memset(&request, 0, sizeof(request));
    request.upstream = up;
    request.serial = 3;
    request.method = 7;
    request.id = env_str("9");
    in.list_key = env_str("\"00000000-0000-4000-8000-000000000002\"");
    ok(ngx_mcp_server_request_next(&zone, ref, pool, &found) == NGX_DECLINED
       && ngx_mcp_server_request_open(&zone, ref, &in.list_key, &request)
          == NGX_OK
       && ngx_mcp_server_request_next(&zone, ref, pool, &found) == NGX_OK
       && found.method == 7 && found.serial == 3
       && ngx_mcp_equal(&found.id, &request.id)
       && ngx_mcp_server_request_next(&zone, ref, pool, &found)
          == NGX_DECLINED, "what was asked can be answered for the client");

    (void) ngx_mcp_call_park(&zone, a.ref, 1000);

    for (i = 0; i < NGX_MCP_CHANNEL_WAITING; i++) {
        ok(!ngx_mcp_call_full(&zone, a.ref), "there is room");
        (void) ngx_mcp_log_call(&zone, a.ref, &e, &cursor);
    }

    ok(ngx_mcp_call_full(&zone, a.ref), "until nobody reads");

    memset(&cursor, 0, sizeof(cursor));
    (void) env_stream_open(&zone, ref, a.channel, &cursor, 0, 7, &st);

    while (ngx_mcp_stream_read(&zone, &st, (u_char *) buf, sizeof(buf), &len,
                               &flags)
           == NGX_OK)
    {
        /* void */
    }

    ok(!ngx_mcp_call_full(&zone, a.ref)
       && ngx_mcp_call_lost(&zone, a.ref) == NGX_MCP_CALL_WHOLE,
       "all was read");

    text = env_str("a message that is larger than a session of these may "
                   "have, so that it is lost");
    e.flags = NGX_MCP_EVENT_REQUEST;
    ok(ngx_mcp_log_call(&zone, a.ref, &e, &cursor) == NGX_ERROR
       && ngx_mcp_call_lost(&zone, a.ref) == NGX_MCP_CALL_TOO_LARGE,
       "a request that is lost");
    (void) ngx_mcp_stream_read(&zone, &st, (u_char *) buf, sizeof(buf), &len,
                               &flags);
    ok(ngx_mcp_stream_read(&zone, &st, (u_char *) buf, sizeof(buf), &len,
                           &flags)
       == NGX_DONE, "ends the line");

    ngx_mcp_exclusive_end(&zone, ref);
    ngx_mcp_stream_close(&zone, &line, NGX_MCP_COUNTER_STREAMS_DONE);
    ok(ngx_mcp_session_gets(&zone, ref) == 0 && env_check(&zone) == 0,
       "a session that is spent stays for each reader");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_DONE);
    ok(ngx_mcp_session_gets(&zone, ref) == NGX_DECLINED, "and ends then");

    ngx_mcp_call_close(&zone, a.ref);

    ngx_destroy_pool(pool);

    stop("streams of parked calls");
}


static void
provider_tests(void)
{
    u_char      buf[NGX_INT_T_LEN];
    uint64_t    key, other;
    ngx_str_t   endpoint, tenant, uri, one, two;
    ngx_uint_t  i, known;

    start(ZONE_SIZE);

    endpoint = env_str("e");
    tenant = env_str("t");
    uri = env_str("a:b");
    one = env_str("one");
    two = env_str("two");

    key = ngx_mcp_provider_key(&zone, &endpoint, &tenant, &uri);
    ok(!ngx_mcp_provider_is(&zone, key, &one), "nothing is known");

    ngx_mcp_provider_put(&zone, key, &one);
    ok(ngx_mcp_provider_is(&zone, key, &one)
       && !ngx_mcp_provider_is(&zone, key, &two), "a provider");

    other = ngx_mcp_provider_key(&zone, &endpoint, &uri, &tenant);
    ok(!ngx_mcp_provider_is(&zone, other, &one), "of nothing else");

    ngx_mcp_provider_put(&zone, key, &two);
    ok(ngx_mcp_provider_is(&zone, key, &two)
       && !ngx_mcp_provider_is(&zone, key, &one), "another one");

    uri.data = buf;

    for (i = 0; i < 200; i++) {
        uri.len = sprintf((char *) buf, "%d", (int) i);
        ngx_mcp_provider_put(&zone, ngx_mcp_provider_key(&zone, &endpoint,
                                                         &tenant, &uri), &one);
    }

    for (known = 0, i = 0; i < 200; i++) {
        uri.len = sprintf((char *) buf, "%d", (int) i);
        known += ngx_mcp_provider_is(&zone, ngx_mcp_provider_key(&zone,
                                                &endpoint, &tenant, &uri),
                                     &one);
    }

    ok(known == 200 && ngx_mcp_provider_is(&zone, key, &two),
       "many resources: %d are known", (int) known);

    stop("providers");
}


static void
call_tests(void)
{
    uint32_t          upstream;
    ngx_str_t         id, token;
    ngx_mcp_ref_t     ref;
    ngx_mcp_call_t    a, b;
    ngx_mcp_cursor_t  from;
    ngx_mcp_stream_t  post, get;

    start(ZONE_SIZE);
    ref = session("e", "t");

    id = env_str("\"id\"");
    token = env_str("17");
    a.upstream = 0;
    b.upstream = 0;

    ok(env_call_open(&zone, ref, &id, &token, 2, 5, &a) == NGX_OK
       && a.channel != 0, "open");
    ok(env_call_open(&zone, ref, &id, &token, 2, 5, &b) == NGX_MCP_EXISTS,
       "an id runs once");

    token.len = 0;
    id = env_str("2");
    ok(env_call_open(&zone, ref, &id, &token, 2, 6, &b) == NGX_OK
       && b.channel != a.channel, "open another");
    id = env_str("3");
    ok(env_call_open(&zone, ref, &id, &token, 2, 6, &b) == NGX_BUSY,
       "limit");

    token = env_str("u");
    a.upstream = (uint32_t) ngx_mcp_hash(&zone, &token, NULL);
    ngx_mcp_call_moved(&zone, &a);

    id = env_str("\"id\"");
    upstream = 0;
    ok(ngx_mcp_call_cancel(&zone, ref, &id, &upstream) == NGX_OK
       && upstream == a.upstream, "cancel, at the upstream of the call");
    drain();
    ok(heard.calls == 1 && heard.local == 5
       && heard.why == NGX_MCP_WAKE_CANCEL, "its worker hears");
    id = env_str("9");
    ok(ngx_mcp_call_cancel(&zone, ref, &id, &upstream) == NGX_DECLINED,
       "cancel of an unknown one");

    /* the POST's stream, direct and from the log */

    ngx_mcp_call_mark(&zone, a.ref, NGX_MCP_CALL_STREAMED);
    ok(env_stream_open(&zone, ref, a.channel, NULL, 0, 7, &post) == NGX_OK,
       "stream");
    listen_again();
    ok(answer(a.ref, "p1", 0) == NGX_OK, "progress");
    drain();
    ok(heard.streams == 1 && heard.local == 7
       && heard.why == NGX_MCP_WAKE_NEWS, "its stream hears");
    is(take(&post), "p1 again", "progress arrives");

    memset(big, 'b', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    ok(answer(a.ref, (char *) big, 0) == NGX_ERROR, "one that is too large");
    is(take(&post), "-1 again", "is a gap");

    ngx_mcp_stream_close(&zone, &post, NGX_MCP_COUNTER_STREAMS_CLIENT);
    answer(a.ref, "p3", 0);
    answer(a.ref, "done", NGX_MCP_EVENT_RESPONSE);
    ok(ngx_mcp_call_cancel(&zone, ref, &id, &upstream) == NGX_DECLINED,
       "cancel after the answer");
    ngx_mcp_call_close(&zone, a.ref);

    ok(env_stream_open(&zone, ref, a.channel, NULL, 0, 8, &get) == NGX_OK,
       "resume");
    is(take(&get), "p3 done! done", "what was not handed out");
    ngx_mcp_stream_close(&zone, &get, NGX_MCP_COUNTER_STREAMS_DONE);

    memset(&from, 0, sizeof(from));
    ok(env_stream_open(&zone, ref, a.channel, &from, 0, 8, &get) == NGX_OK,
       "resume from the start");
    is(take(&get), "p1 -1 p3 done! done", "all, but the one that is too large");
    ngx_mcp_stream_close(&zone, &get, NGX_MCP_COUNTER_STREAMS_DONE);

    from.own = get.cursor.own;
    ok(env_stream_open(&zone, ref, a.channel, &from, 0, 8,
                       &get) == NGX_DONE,
       "nothing is behind its end");
    from.own = 0;
    ok(env_stream_open(&zone, ref, 999, &from, 0, 8, &get)
       == NGX_DECLINED, "no such line");

    /* a call without a stream leaves no events behind */

    id = env_str("2");
    ok(env_call_open(&zone, ref, &id, &token, 2, 6, &b) == NGX_MCP_EXISTS,
       "still running");
    ngx_mcp_zone_lock(&zone);
    b.ref = ngx_mcp_ref(&zone, ngx_mcp_block(&zone,
                ngx_mcp_session_locked(&zone, ref)->calls.head));
    b.channel = ((ngx_mcp_call_sh_t *) ngx_mcp_block(&zone, b.ref.block))
             ->channel;
    ngx_mcp_zone_unlock(&zone);
    answer(b.ref, "x", NGX_MCP_EVENT_RESPONSE);
    ngx_mcp_call_close(&zone, b.ref);
    ok(env_stream_open(&zone, ref, b.channel, NULL, 0, 8, &get)
       == NGX_DECLINED
       && counted(NGX_MCP_COUNTER_CALLS_RUNNING) == 0, "closed");
    ok(env_stream_open(&zone, ref, b.channel, &from, 0, 8,
                       &get) == NGX_DONE,
       "and over");

    stop("calls");
}


static void
line_tests(void)
{
    char                   text[32];
    size_t                 len;
    u_char                 small[4];
    ngx_str_t              str, parts[3];
    ngx_uint_t             i, flags;
    ngx_mcp_ref_t          ref, other;
    ngx_mcp_event_t        e;
    ngx_mcp_cursor_t       from;
    ngx_mcp_stream_t       st, st2, st3;
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    tell("e", "t", "nobody");
    ref = session("e", "t");
    tell("e", "t", "s1");
    say(ref, "o1");
    tell("e", "t", "s2");
    say(ref, "o2");

    ok(env_stream_open(&zone, ref, 0, NULL, 8, 1, &st) == NGX_OK, "open");
    ok(ngx_mcp_stream_read(&zone, &st, big, sizeof(big), &len, &flags)
       == NGX_OK && len == 2 && memcmp(big, "s1", 2) == 0 && st.more,
       "there is more");
    is(take(&st), "o1 s2 o2 again", "own and shared in their order");

    say(ref, "o");
    ok(ngx_mcp_stream_read(&zone, &st, big, sizeof(big), &len, &flags)
       == NGX_OK && len == 1 && !st.more, "there is no more");

    listen_again();
    say(ref, "o3");
    drain();
    ok(heard.streams == 1 && heard.why == NGX_MCP_WAKE_NEWS,
       "news of its own");
    tell("e", "t", "s3");
    tell("e", "t", "s4");
    drain();
    ok(heard.groups == 1 && heard.group.block == st.group.block
       && heard.group.gen == st.group.gen, "news of the group, said once");
    is(take(&st), "o3 s3 s4 again", "taken");
    from = st.cursor;

    /* a newer stream takes over the channel */

    drain();
    listen_again();
    ok(env_stream_open(&zone, ref, 0, NULL, 8, 2, &st2) == NGX_OK,
       "a newer one");
    drain();
    ok(heard.streams == 1 && heard.local == 1
       && heard.why == NGX_MCP_WAKE_WANTS, "of which the older one hears");
    is(take(&st), "declined", "takes the line over");
    say(ref, "o4");
    listen_again();
    is(take(&st2), "o4 again", "and goes on");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);
    drain();
    ok(heard.streams == 1 || heard.local == 1, "the older one is woken");
    is(take(&st), "again", "what was handed out is not repeated");

    ok(env_stream_open(&zone, ref, 0, &from, 8, 2, &st2) == NGX_OK,
       "an earlier Last-Event-ID");
    is(take(&st2), "o4 again", "repeats");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);

    /* a repetition that is interrupted goes on, and ends where it was to */

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    memset(&from, 0, sizeof(from));
    env_stream_open(&zone, ref, 0, &from, 8, 1, &st);
    ok(ngx_mcp_stream_read(&zone, &st, big, sizeof(big), &len, &flags)
       == NGX_OK && len == 2 && memcmp(big, "s1", 2) == 0, "a repetition");
    env_stream_open(&zone, ref, 0, NULL, 8, 2, &st2);
    say(ref, "o5");
    is(take(&st2), "o5 again", "is interrupted");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);
    say(ref, "o6");
    is(take(&st), "o1 s2 o2 o o3 s3 s4 o4 o6 again",
       "and goes on without what another one was handed");

    from.own = 1000;
    from.group = 1000;
    env_stream_open(&zone, ref, 0, &from, 8, 2, &st2);
    is(take(&st2), "again", "a Last-Event-ID from the future");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);

    /* two streams at most */

    env_stream_open(&zone, ref, 0, NULL, 2, 2, &st2);
    drain();
    listen_again();
    env_stream_open(&zone, ref, 0, NULL, 2, 3, &st3);
    drain();
    ok(heard.streams == 2 && heard.local == 1
       && heard.why & NGX_MCP_WAKE_CLOSE, "the oldest has to go");
    is(take(&st), "error", "and is told so");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_SESSION);
    ok(counted(NGX_MCP_COUNTER_STREAMS_REPLACED) == 1
       && counted(NGX_MCP_COUNTER_STREAMS_OPEN) == 2, "counted");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);

    /* texts that do not fit */

    say(ref, "a longer text");
    ok(ngx_mcp_stream_read(&zone, &st3, small, 4, &len, &flags) == NGX_BUSY
       && len == 13, "a small buffer");
    is(take(&st3), "a longer text again", "a larger one");

    parts[0] = env_str("{");
    parts[1].data = big;
    parts[1].len = 65534;
    memset(big, 'b', sizeof(big));
    parts[2] = env_str("}");
    e = event(parts);
    e.nparts = 3;
    ok(ngx_mcp_log_session(&zone, ref, &e) == NGX_OK, "64k");
    big[0] = 0;
    ok(ngx_mcp_stream_read(&zone, &st3, big, sizeof(big), &len, &flags)
       == NGX_OK && len == 65536 && big[0] == '{' && big[1] == 'b'
       && big[65534] == 'b' && big[65535] == '}', "64k arrive");

    parts[1].len++;
    ok(ngx_mcp_log_session(&zone, ref, &e) == NGX_ERROR, "more than that");
    is(take(&st3), "-1 again", "is a gap");

    /* filters of level, subscription and audience */

    ngx_mcp_session_set_level(&zone, ref, NGX_MCP_LEVEL_WARNING);
    str = env_str("info");
    e = event(&str);
    e.level = NGX_MCP_LEVEL_INFO;
    ngx_mcp_log_session(&zone, ref, &e);
    str = env_str("error");
    e.level = NGX_MCP_LEVEL_ERROR;
    ngx_mcp_log_session(&zone, ref, &e);
    is(take(&st3), "error again", "levels");

    str = env_str("file:///a");
    ngx_mcp_session_subscribe(&zone, ref, &str, NULL, 8);
    e = event(&str);
    e.uri[0] = str;
    ngx_mcp_log_session(&zone, ref, &e);
    str = env_str("file:///b");
    e.uri[0] = str;
    ngx_mcp_log_session(&zone, ref, &e);
    is(take(&st3), "file:///a again", "subscriptions");

    str = env_str("mine");
    e = event(&str);
    e.list_key = env_str("");
    ngx_mcp_log_session(&zone, ref, &e);
    str = env_str("another's");
    e.list_key = env_str("key");
    ngx_mcp_log_session(&zone, ref, &e);
    is(take(&st3), "mine again", "audiences");

    /*
     * A reader missed more events than are kept; some may be below its level.
     */

    ngx_mcp_stream_close(&zone, &st3, NGX_MCP_COUNTER_STREAMS_CLIENT);

    for (i = 0; i < 20; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned) i);
        say(ref, text);
    }

    env_stream_open(&zone, ref, 0, NULL, 2, 3, &st3);
    is(take(&st3), "-? 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 again",
       "own events");

    ngx_mcp_stream_close(&zone, &st3, NGX_MCP_COUNTER_STREAMS_CLIENT);

    for (i = 0; i < 300; i++) {
        tell("e", "t", "x");
    }

    env_stream_open(&zone, ref, 0, NULL, 2, 3, &st3);
    ok(ngx_mcp_stream_read(&zone, &st3, big, sizeof(big), &len, &flags)
       == NGX_ABORT && len == 300 - 256, "shared events");

    for (i = 0; ngx_mcp_stream_read(&zone, &st3, big, sizeof(big), &len,
                                    &flags) == NGX_OK; i++)
    {
        /* void */
    }

    ok(i == 256, "256 of them are kept");

    /* a stream can resume at any position */

    for (i = 0; i < 256; i++) {
        from.own = st3.cursor.own;
        from.group = 300 + 4 - 256 + i;
        env_stream_open(&zone, ref, 0, &from, 0, 3, &st2);

        if (ngx_mcp_stream_read(&zone, &st2, big, sizeof(big), &len, &flags)
            != NGX_OK || st2.cursor.group != from.group + 1)
        {
            break;
        }

        ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);
    }

    ok(i == 256, "each of them can be resumed from");

    /* a Last-Event-ID from before the session */

    other = session("e", "t");
    memset(&from, 0, sizeof(from));
    env_stream_open(&zone, other, 0, &from, 0, 3, &st2);
    is(take(&st2), "again", "nothing from before the session");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);

    listen_again();
    ngx_mcp_session_end(&zone, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);
    drain();
    ok(heard.streams == 1 && heard.why & NGX_MCP_WAKE_CLOSE, "end");
    is(take(&st3), "error", "of the session");
    ok(say(ref, "x") == NGX_DECLINED, "nothing can be said");
    ngx_mcp_stream_close(&zone, &st3, NGX_MCP_COUNTER_STREAMS_SESSION);

    /* a session that keeps one event */

    in = new_session("e", "t");
    in.event_max = 1;
    ngx_mcp_session_create(&zone, &in, &ref);
    say(ref, "a");
    say(ref, "b");
    env_stream_open(&zone, ref, 0, NULL, 2, 3, &st);
    is(take(&st), "-1 b again", "one event kept");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    stop("lines");
}


static ngx_int_t
say_much(ngx_mcp_ref_t ref, size_t len)
{
    ngx_str_t        str;
    ngx_mcp_event_t  e;

    str.data = big;
    str.len = len;
    e = event(&str);

    return ngx_mcp_log_session(&zone, ref, &e);
}


static ngx_uint_t
tell_some(const char *text, size_t len, const char *uri)
{
    ngx_str_t        str, ep, tn;
    ngx_uint_t       n;
    ngx_mcp_event_t  e;

    str = env_str(text);

    if (len) {
        str.data = big;
        str.len = len;
    }

    e = event(&str);
    e.uri[0] = env_str(uri);
    ep = env_str("e");
    tn = env_str("t");

    return env_tell(&zone, &ep, &tn, &e, &n) == NGX_OK;
}


/* the entries of news: their positions, and a letter for the want of each */

static const char *
news(ngx_mcp_ref_t group, uint64_t *seen, uint64_t a, uint64_t b)
{
    ngx_int_t        rc;
    ngx_uint_t       i, n;
    ngx_mcp_news_t   list[NGX_MCP_NEWS];
    static char      text[NGX_MCP_NEWS * 16];

    rc = ngx_mcp_group_news(&zone, group, seen, list, &n);

    text[0] = '\0';

    for (i = 0; i < n && i < 8; i++) {
        snprintf(text + strlen(text), 16, "%u%s ", (unsigned) list[i].pos,
                 list[i].want == a ? "a" : list[i].want == b ? "b"
                 : list[i].want == NGX_MCP_WANT_ALL ? "*" : "?");
    }

    return strcat(text, rc == NGX_OK ? "ok" : rc == NGX_AGAIN ? "again"
                        : rc == NGX_BUSY ? "busy" : "declined");
}


static void
wanted_tests(void)
{
    char                    uri[16];
    uint32_t               *counts;
    ngx_str_t               a, b;
    uint64_t                wants[4], seen;
    ngx_uint_t              i;
    ngx_mcp_ref_t           one, two, none;
    ngx_mcp_stream_t        st, other;
    ngx_mcp_group_sh_t     *g;
    ngx_mcp_session_sh_t   *s;

    start(1024 * 1024);

    tell("e", "t", "nobody");
    one = session("e", "t");
    two = session("e", "t");
    tell("e", "t", "early");

    a = env_str("u:a");
    b = env_str("u:b");
    ngx_mcp_session_subscribe(&zone, one, &a, NULL, 8);
    env_stream_open(&zone, one, 0, NULL, 2, 1, &st);
    env_stream_open(&zone, two, 0, NULL, 2, 2, &other);
    drain();

    ok(ngx_mcp_stream_wants(&zone, &st, wants, 0) == 2,
       "what a stream wants may be more than there is room for");
    ok(ngx_mcp_stream_wants(&zone, &other, wants, 4) == 1
       && ngx_mcp_stream_wants(&zone, &st, wants, 4) == 2
       && wants[1] == ngx_mcp_hash(&zone, &a, NULL),
       "an identity, a subscription");
    ok(ngx_mcp_stream_wants(&zone, &st, wants, 4) == 0, "each is listed once");

    s = ngx_mcp_record(&zone, one, NGX_MCP_SESSION);
    g = ngx_mcp_session_group(&zone, s);

    counts = ngx_mcp_wants_make(&zone);
    ngx_mcp_want_add(&zone, counts, ngx_mcp_hash(&zone, &a, NULL));
    ngx_mcp_want_add(&zone, counts, ngx_mcp_hash(&zone, &b, NULL));
    ngx_mcp_want_add(&zone, counts, ngx_mcp_hash(&zone, &b, NULL));

    seen = st.seen.group;
    ok(seen == g->log.last, "it is told of what comes");
    is(news(st.group, &seen, 1, 2), "ok", "no news");

    listen_again();
    tell_some("x", 0, "u:b");
    tell_some("x", 0, "u:a");
    drain();
    ok(heard.groups == 1, "the worker is told once");
    i = (ngx_uint_t) seen;
    is(news(st.group, &seen, ngx_mcp_hash(&zone, &a, NULL),
            ngx_mcp_hash(&zone, &b, NULL)),
       i == 1 ? "2b 3a ok" : "", "and reads whom it is about");
    is(news(st.group, &seen, 1, 2), "ok", "once");

    listen_again();
    tell_some("x", 0, "u:a");
    tell("e", "t", "all");
    tell_some("x", 0, "u:a");
    drain();
    ok(heard.groups == 1, "it is told again");
    is(news(st.group, &seen, ngx_mcp_hash(&zone, &a, NULL), 2), "4a 5* ok",
       "behind one for all there are no others");
    ok(seen == g->log.last, "up to the end");

    for (i = 0; i < NGX_MCP_NEWS + 2; i++) {
        tell_some("x", 0, "u:b");
    }

    drain();
    i = (ngx_uint_t) seen;
    (void) news(st.group, &seen, 1, 2);
    ok(seen == i + NGX_MCP_NEWS, "many come in parts");
    listen_again();
    tell_some("x", 0, "u:b");
    drain();
    ok(heard.groups == 0, "of which it is told when they are over");
    is(news(st.group, &seen, 1, ngx_mcp_hash(&zone, &b, NULL)),
       "71b ok", "the rest, of which all are for the same");

    ok(!tell_some("", 70000, "u:b"), "one that is too large");
    is(news(st.group, &seen, 1, 2), "74* ok", "may have been for any");

    listen_again();
    ngx_mcp_session_subscribe(&zone, one, &b, NULL, 8);
    tell_some("x", 0, "u:b");
    is(news(st.group, &seen, 1, 2), "busy", "before a new subscription");
    drain();
    ok(heard.streams == 1 && heard.local == 1
       && heard.why == NGX_MCP_WAKE_WANTS, "of which the stream hears");
    ok(ngx_mcp_stream_wants(&zone, &st, wants, 4) == 1
       && wants[0] == ngx_mcp_hash(&zone, &b, NULL), "it is the only new one");
    ngx_mcp_session_unsubscribe(&zone, one, &b);
    ngx_mcp_session_subscribe(&zone, one, &b, NULL, 8);
    drain();
    ok(ngx_mcp_stream_wants(&zone, &st, wants, 4) == 1,
       "and again behind an end of it");
    st.wanted = 0;
    ok(ngx_mcp_stream_wants(&zone, &st, wants, 4) == 3 && st.nwants >= 3,
       "all are listed on demand");
    is(news(st.group, &seen, 1, ngx_mcp_hash(&zone, &b, NULL)), "75b ok",
       "there are no news");

    ngx_mcp_want_remove(&zone, counts, ngx_mcp_hash(&zone, &b, NULL));
    listen_again();
    tell_some("x", 0, "u:b");
    drain();
    ok(heard.groups == 1, "the worker is told while a stream wants it");
    (void) news(st.group, &seen, 1, 2);

    ngx_mcp_want_remove(&zone, counts, ngx_mcp_hash(&zone, &b, NULL));
    listen_again();

    for (i = 0; i < NGX_MCP_NEWS && !heard.groups; i++) {
        tell_some("x", 0, "u:b");
        drain();
    }

    ok(i > 1, "of an event that no stream wants it is not told");
    ok(i < NGX_MCP_NEWS, "but now and then");
    is(news(st.group, &seen, 1, ngx_mcp_hash(&zone, &b, NULL)), "77b ok",
       "so that it reads them before they go");
    listen_again();
    tell("e", "t", "all");
    drain();
    ok(heard.groups == 1, "of one for all it is told");
    free(counts);

    memset(&none, 0, sizeof(none));
    is(news(none, &seen, 1, 2), "declined", "of a group that is gone");

    for (i = 0; i < 2 * NGX_MCP_SESSION_PART; i++) {
        snprintf(uri, sizeof(uri), "u:%u", (unsigned) i);
        a = env_str(uri);
        ngx_mcp_session_subscribe(&zone, one, &a, NULL, 1000);
    }

    ngx_mcp_session_end(&zone, one, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(ngx_mcp_stream_wants(&zone, &st, wants, 4) == 0,
       "a session that ended wants nothing");
    ok(zone.sh->used[NGX_MCP_SUBSCRIPTION] == 0,
       "and has no subscription left, however many they were");
}


/* the number of events lost, where it is known */

static void
gap_tests(void)
{
    char                        client[16];
    ngx_str_t                   ep, a, b, up, id;
    ngx_uint_t                  i;
    ngx_mcp_ref_t               all, one;
    ngx_mcp_stream_t            st, st1;
    ngx_mcp_upstream_session_t  l;

    start(1024 * 1024);

    all = session("e", "t");
    one = session("e", "t");
    ep = env_str("e");
    a = env_str("u:a");
    b = env_str("u:b");
    ngx_mcp_session_subscribe(&zone, all, &a, NULL, 8);
    ngx_mcp_session_subscribe(&zone, all, &b, NULL, 8);
    ngx_mcp_session_subscribe(&zone, one, &b, NULL, 8);
    env_stream_open(&zone, all, 0, NULL, 2, 1, &st);
    env_stream_open(&zone, one, 0, NULL, 2, 2, &st1);

    ok(!tell_some("", 70000, ""), "an event that is too large");
    is(take(&st), "-1 again", "is a gap of one");
    tell_some("", 70000, "");
    tell_some("", 70000, "");
    is(take(&st), "again", "of more it is not told one by one");
    st.gap = NGX_MCP_GAP_NONE;
    is(take(&st), "-2 again", "but now and then");
    tell_some("", 70000, "");
    tell_some("x", 0, "");
    is(take(&st), "-1 x again", "and before the next event");
    is(take(&st1), "-4 x again", "at once if it comes late");

    tell_some("", 70000, "u:a");
    tell_some("", 70000, "u:b");
    is(take(&st), "-? again", "events for some are not counted");
    is(take(&st1), "-? again", "as others lost some of them");
    tell_some("", 70000, "u:a");
    tell_some("y", 0, "");
    is(take(&st1), "y again", "those for others are no gap");
    is(take(&st), "-? y again", "but of who lost one");

    ngx_mcp_log_gap(&zone, &ep, NULL);
    is(take(&st), "-? again", "a gap of unknown size");
    ngx_mcp_log_gap(&zone, &ep, NULL);
    is(take(&st), "-? again", "is told each time");

    up = env_str("up");
    id = env_str("there");
    (void) us_get(&zone, all, &up, all, &l);
    us_made(&zone, all, &up, &id, 1);
    us_listen(&zone, all, &up);
    (void) us_listens(&zone, all, &up, 0);

    for (i = 0; i < 2; i++) {
        ok(us_listens(&zone, all, &up, 0) == 1, "a stream broke");
        is(take(&st), "-? again", "nobody knows what it would have said");
    }

    say(all, "w");
    say_much(all, 70000);
    is(take(&st), "w -1 again", "an event for one session");
    say_much(all, 70000);
    is(take(&st), "again", "is not told one by one either");
    say(all, "z");
    is(take(&st), "-1 z again", "but before the next one");

    for (i = 0; i < 40; i++) {
        snprintf(client, sizeof(client), "c%u", (unsigned) i);

        do {
            one = session_of("v", client);
            (void) say_much(one, 30000);
        } while (one.block);
    }

    ok(!tell_some("", 60000, "") && counted(NGX_MCP_COUNTER_EVENTS_FULL),
       "a full zone");
    is(take(&st), "-1 again", "is told");

    for (i = 0; i < 10; i++) {
        tell_some("", 60000, "");
    }

    is(take(&st), "again", "once");
    tell_some("x", 0, "");
    is(take(&st), "-10 x again", "until an event goes");

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_stream_close(&zone, &st1, NGX_MCP_COUNTER_STREAMS_CLIENT);
    stop("gaps");
}


static void
eviction_tests(void)
{
    size_t                 len;
    u_char                 buf[64];
    ngx_str_t              id, token;
    ngx_uint_t             i, flags;
    ngx_mcp_ref_t          ref;
    ngx_mcp_call_t         a, b, c;
    ngx_mcp_stream_t       st, st2;
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    in = new_session("e", "t");
    in.event_max = 4;
    ngx_mcp_session_create(&zone, &in, &ref);
    token = env_str("");

    id = env_str("1");
    env_call_open(&zone, ref, &id, &token, 8, 1, &a);
    id = env_str("2");
    env_call_open(&zone, ref, &id, &token, 8, 2, &b);
    id = env_str("3");
    env_call_open(&zone, ref, &id, &token, 8, 3, &c);
    ngx_mcp_call_mark(&zone, a.ref, NGX_MCP_CALL_STREAMED);
    ngx_mcp_call_mark(&zone, b.ref, NGX_MCP_CALL_STREAMED);
    ngx_mcp_call_mark(&zone, c.ref, NGX_MCP_CALL_STREAMED);

    say(ref, "g1");
    answer(a.ref, "a1", 0);
    answer(a.ref, "a2", NGX_MCP_EVENT_RESPONSE);
    ngx_mcp_call_close(&zone, a.ref);
    answer(b.ref, "b1", 0);

    say(ref, "g2");
    ok(env_stream_open(&zone, ref, a.channel, NULL, 0, 1, &st)
       == NGX_DECLINED, "a finished line goes first");

    answer(b.ref, "b2", 0);
    answer(b.ref, "b3", 0);
    env_stream_open(&zone, ref, b.channel, NULL, 0, 1, &st);
    is(take(&st), "-1 b2 b3 again", "then the oldest of the same line");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    answer(c.ref, "c1", 0);
    env_stream_open(&zone, ref, 0, NULL, 0, 1, &st);
    is(take(&st), "g1 g2 again", "then of other calls, not the general line");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    for (i = 0; i < 4; i++) {
        answer(b.ref, "b", 0);
    }

    say(ref, "g3");
    ok(answer(c.ref, "c2", NGX_MCP_EVENT_RESPONSE) == NGX_OK,
       "an answer is never without room");

    ngx_mcp_call_close(&zone, b.ref);
    ngx_mcp_call_close(&zone, c.ref);

    /* events that a call's reader has yet to take are kept beyond the limit */

    in = new_session("e", "t");
    in.event_max = 4;
    ngx_mcp_session_create(&zone, &in, &ref);
    env_call_open(&zone, ref, &id, &token, 8, 1, &a);
    ngx_mcp_call_mark(&zone, a.ref, NGX_MCP_CALL_STREAMED);
    env_stream_open(&zone, ref, a.channel, NULL, 0, 1, &st);

    for (i = 0; i < 9; i++) {
        say(ref, "g");
        answer(a.ref, "a", 0);
    }

    is(take(&st), "a a a a a a a a a again", "a call's reader has all");

    env_stream_open(&zone, ref, 0, NULL, 0, 2, &st2);
    is(take(&st2), "-7 g g again", "which leaves others theirs");
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);

    answer(a.ref, "b", 0);
    is(take(&st), "b again", "what it has taken goes first");

    for (i = 0; i < NGX_MCP_CHANNEL_WAITING + 5; i++) {
        answer(a.ref, "c", 0);
    }

    ok(ngx_mcp_stream_read(&zone, &st, buf, sizeof(buf), &len, &flags)
       == NGX_ABORT && len == 5, "but not without end");

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_call_close(&zone, a.ref);

    stop("eviction");
}


static ngx_int_t
to_one(ngx_str_t *id, ngx_str_t *endpoint, ngx_str_t *tenant,
    ngx_mcp_event_t *e)
{
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    post.deliveries = &d;
    post.n = 1;
    d.event = *e;
    d.session = *id;
    d.endpoint = endpoint;
    d.tenant = tenant;

    return ngx_mcp_outbox_send(&zone, &post);
}


static void
group_tests(void)
{
    char                        name[32];
    u_char                      uuid[NGX_MCP_UUID_LEN];
    ngx_str_t                   id, endpoint, tenant, str, up;
    ngx_str_t                   names[NGX_MCP_GROUP_TENANTS];
    ngx_uint_t                  i;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               a, b, c;
    ngx_mcp_call_t              call;
    ngx_mcp_event_t             e;
    ngx_mcp_stream_t            sa, sb, sc;
    ngx_mcp_group_cursor_t      cursor = { 0 };
    ngx_mcp_upstream_session_t  l;

    start(ZONE_SIZE);

    a = session("e", "t1");
    b = session("e", "t2");
    c = session("f", "t1");
    (void) session("f", "t1");

    pool = env_pool();
    endpoint = env_str("f");
    tenant = env_str("t1");
    ok(ngx_mcp_topics_wanted(&zone, &endpoint, &tenant) == NGX_OK
       && ngx_mcp_topics_wanted(&zone, &endpoint, &endpoint) == NGX_DECLINED
       && ngx_mcp_group_tenants(&zone, &endpoint, &cursor, pool, names)
          == 1 && names[0].len == 2 && memcmp(names[0].data, "t1", 2) == 0
       && ngx_mcp_group_tenants(&zone, &endpoint, &cursor, pool, names)
          == 0, "tenants that have sessions");
    env_pool_free(pool);

    ok(tell("e", "t1", "1") == 1 && tell("e", NULL, "2") == 2
       && tell(NULL, "t1", "3") == 3 && tell(NULL, NULL, "4") == 4
       && tell("x", "t1", "5") == 0 && tell(NULL, "x", "6") == 0,
       "addressed");

    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);
    env_stream_open(&zone, b, 0, NULL, 0, 1, &sb);
    env_stream_open(&zone, c, 0, NULL, 0, 1, &sc);
    is(take(&sa), "1 2 3 4 again", "endpoint e, tenant t1");
    is(take(&sb), "2 4 again", "endpoint e, tenant t2");
    is(take(&sc), "3 4 again", "endpoint f, tenant t1");

    session_id(a, uuid);
    id.data = uuid;
    id.len = sizeof(uuid);
    endpoint = env_str("e");
    tenant = env_str("t1");
    str = env_str("to one");
    e = event(&str);
    ok(to_one(&id, NULL, NULL, &e) == NGX_OK
       && to_one(&id, &endpoint, &tenant, &e) == NGX_OK, "to one by its id");
    tenant = env_str("t2");
    ok(to_one(&id, &endpoint, &tenant, &e) == NGX_DECLINED,
       "not for another tenant");
    is(take(&sa), "to one to one again", "arrives");

    up = env_str("up");
    str = env_str("its session");
    id = env_str("1");
    a = session("g", "t1");
    env_call_open(&zone, a, &id, &up, 8, 1, &call);
    us_get(&zone, a, &up, call.ref, &l);
    us_made(&zone, a, &up, &str, 1);
    ngx_mcp_session_end(&zone, a, NGX_MCP_COUNTER_SESSIONS_DELETED);
    endpoint = env_str("g");
    tenant = env_str("t1");
    ok(env_tell(&zone, &endpoint, &tenant, &e, &i) == NGX_OK
       && i == 0, "a group whose last session has ended");
    drain();

    listen_again();

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "many %u", (unsigned) i);
        a = session("e", name);
        env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);
    }

    ok(tell("e", NULL, "to many") == 42, "one for all tenants");
    drain();
    ok(heard.groups == 1 && heard.group.block == sa.endpoint.block
       && heard.group.gen == sa.endpoint.gen, "is news of the endpoint alone");

    listen_again();

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "many %u", (unsigned) i);
        tell("e", name, "to each");
    }

    drain();
    ok(heard.groups == 1 && heard.group.block == 0,
       "of more groups than a ring has, all are to be looked at");
    is(take(&sa), "to many to each again", "in the order of both logs");

    stop("groups");
}


static ngx_int_t
join(const char *endpoint, const char *tenant, const char *what,
    const char *text, ngx_uint_t count)
{
    ngx_str_t           ep, tn;
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    ep = env_str(endpoint ? endpoint : "");
    tn = env_str(tenant ? tenant : "");

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    post.deliveries = &d;
    post.n = 1;
    d.text = env_str(text);
    d.endpoint = endpoint ? &ep : NULL;
    d.tenant = tenant ? &tn : NULL;
    d.coalesce_key = env_str(what);
    d.time = 500;
    d.counts[0] = d.text.len ? 1 : 0;
    d.count = count ? count : 1;
    d.counted = (count != 0);

    return ngx_mcp_outbox_send(&zone, &post);
}


static void
later(ngx_msec_t ms)
{
    ngx_msec_t  next;

    env_time(ngx_current_msec + ms);
    while (ngx_mcp_outbox_due(&zone, &next) == NGX_AGAIN) { /* void */ }
}


static void
window_tests(void)
{
    char              text[32];
    size_t            i;
    uint32_t          blocks;
    ngx_msec_t        next;
    ngx_mcp_ref_t     a, b, c;
    ngx_mcp_stream_t  sa, sb, sc;
    size_t            len;
    ngx_uint_t        flags;
    static char       many[8192];
    static u_char     huge[16384];

    start(ZONE_SIZE);

    a = session("e", "t1");
    b = session("e", "t2");
    c = session("f", "t1");
    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);
    env_stream_open(&zone, b, 0, NULL, 0, 1, &sb);
    env_stream_open(&zone, c, 0, NULL, 0, 1, &sc);

    join("e", "t1", "k", "1.", 0);
    join("e", "t1", "k", "2.", 0);
    join("e", "t1", "k", "3.", 0);
    is(take(&sa), "1. again", "the first goes at once, others wait");
    join("e", "t1", "k2", "4.", 0);
    is(take(&sa), "4. again", "not what is something else");
    join("e", "t2", "k", "5.", 0);
    is(take(&sb), "5. again", "nor of another tenant");
    join("e", NULL, "k", "6.", 0);
    is(take(&sa), "6. again", "nor for all tenants");
    is(take(&sb), "6. again", "who get it");
    join("f", "t1", "k", "7.", 0);
    is(take(&sc), "7. again", "nor of another endpoint");
    join("e", NULL, "k", "8.", 4);
    is(take(&sa), "again", "it has a window of its own");
    ok(counted(NGX_MCP_COUNTER_EVENTS_COALESCED) == 1, "one was joined");
    join("nowhere", "t1", "k", "none", 0);

    ok(ngx_mcp_outbox_due(&zone, &next) == NGX_OK && next == 500,
       "nothing is due yet");
    later(499);
    is(take(&sa), "again", "nothing comes before the end");
    later(1);
    is(take(&sa), "3,\"count\":2. 8,\"count\":4. again",
       "the last with its count, and the one for all");
    is(take(&sb), "8,\"count\":4. again", "that one alone to the other");
    is(take(&sc), "again", "nothing at the other endpoint");

    join("e", "t1", "k2", "9.", 0);
    is(take(&sa), "9. again", "a window ends with nothing in it");
    join("e", "t1", "k", "10.", 0);
    is(take(&sa), "again", "one that was sent opens another");
    later(500);
    is(take(&sa), "10. again", "one alone says no count");
    later(500);
    ok(zone.sh->used[NGX_MCP_ITEM] == 0, "windows are forgotten");

    join("e", "t1", "k", "11.", 2);
    is(take(&sa), "1,\"count\":21. again", "an own count");
    join("e", "t1", "k", "12.", 0);
    memset(many, 'x', sizeof(many) - 1);
    many[0] = '<';
    join("e", "t1", "k", many, 0);
    join("e", "t1", "k", "13.", 5);
    is(take(&sa), "again", "a long one joins, and a short one");
    later(500);
    is(take(&sa), "1,\"count\":73. again", "the sum is said");
    join("e", "t1", "k", "13.", 0);
    join("e", "t1", "k", many, 0);
    later(500);
    ok(ngx_mcp_stream_read(&zone, &sa, huge, sizeof(huge), &len, &flags)
       == NGX_OK && len == sizeof(many) + 9
       && memcmp(huge, "<,\"count\":2xxx", 14) == 0, "and with a long one");
    is(take(&sa), "again", "once");

    /* deadlines of windows of one class */

    later(2000);

    for (i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "w%u", (unsigned) i);
        (void) join("e", "t1", text, "a", 0);
        (void) join("e", "t1", text, "b", 0);
        (void) take(&sa);
        env_time(ngx_current_msec + 1);
    }

    ok(ngx_mcp_outbox_due(&zone, &next) == NGX_OK && next == 200,
       "the next is the first opened");
    env_time(ngx_current_msec + 199 + 64);
    ok(ngx_mcp_outbox_due(&zone, &next) == NGX_AGAIN
       && ngx_mcp_outbox_due(&zone, &next) == NGX_OK && next == 1,
       "a part at a time");
    later(1000);
    later(1000);
    ok(zone.sh->used[NGX_MCP_ITEM] == 0, "all windows are forgotten");
    (void) take(&sa);

    /* a death while a session ends */

    join("e", "t1", "k", "14.", 0);
    join("e", "t1", "k", "15.", 0);
    is(take(&sa), "14. again", "a first");
    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);
    env_half_end(&zone, a);
    later(500);
    is(take(&sa), "15. again", "undone and sent");

    /* no room for windows */

    for (i = 0; i < 4000; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned) i);
        (void) join("e", "t1", text, "a", 0);
        (void) take(&sa);
    }

    blocks = zone.sh->used[NGX_MCP_ITEM];
    ok(blocks > 400 && blocks <= zone.sh->blocks / 16,
       "windows in %u blocks, then there is no room", (unsigned) blocks);

    join("e", "t1", "3999", "16.", 0);
    is(take(&sa), "16. again", "what has no window goes");
    join("e", "t1", "1", "17.", 0);
    is(take(&sa), "17. again", "as does what has no room");

    stop("windows");
}


/* another worker drops a window while this one looks at groups */

static void
others_have_lock(void)
{
    ngx_msec_t  next;

    env_unlocked = NULL;
    (void) ngx_mcp_outbox_due(&zone, &next);
}


static ngx_int_t
join_two(const char *first, const char *second)
{
    ngx_uint_t          i;
    ngx_str_t           e;
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d[2];

    memset(&post, 0, sizeof(post));
    memset(d, 0, sizeof(d));

    e = env_str("e");
    post.deliveries = d;
    post.n = 2;
    d[0].text = env_str(first);
    d[1].text = env_str(second);

    for (i = 0; i < 2; i++) {
        d[i].endpoint = &e;
        d[i].coalesce_key = d[i].text;
        d[i].coalesce_key.len = 1;
        d[i].addressed = 1;
        d[i].time = i ? 100000 : 500;
        d[i].count = 1;
    }

    return ngx_mcp_outbox_send(&zone, &post);
}


static void
window_end_tests(void)
{
    char                name[16];
    ngx_uint_t          i;
    ngx_mcp_ref_t       a, b;
    ngx_mcp_post_t      post;
    ngx_mcp_stream_t    sa;
    ngx_mcp_delivery_t  d;
    static char         some[2000], large[40000];

    start(ZONE_SIZE);

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "t%u", (unsigned) i);
        a = session("e", name);
    }

    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);

    ok(join_two("k1", "l1") == NGX_OK, "windows of two deliveries");
    is(take(&sa), "k1 l1 again", "both go at once");
    env_time(ngx_current_msec + 500);
    env_unlocked = others_have_lock;
    ok(join_two("k2", "l2") == NGX_OK && env_unlocked == NULL,
       "the first ends while the groups are looked at");
    is(take(&sa), "k2 again", "so what comes goes at once, the other waits");

    stop("windows that end");

    /* a window of a session, in a zone without room for further events */

    start(1024 * 1024);

    a = session_of("t", "one");
    b = session_of("t", "two");
    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));
    post.deliveries = &d;
    post.n = 1;
    d.ref = a;
    d.coalesce_key = env_str("k");
    d.time = 500;
    d.count = 1;

    d.text = env_str("first");
    ok(ngx_mcp_outbox_send(&zone, &post) == NGX_OK, "to a session");
    is(take(&sa), "first again", "at once");

    for (i = 0; i < 4000; i++) {
        snprintf(name, sizeof(name), "c%u", (unsigned) i);
        (void) session_of(name, "client");
    }

    memset(some, 'x', sizeof(some) - 1);

    for (i = 0; i < 10; i++) {
        say(b, some);
    }

    memset(large, 'x', sizeof(large) - 1);
    d.text = env_str(large);
    (void) ngx_mcp_outbox_send(&zone, &post);
    is(take(&sa), "again", "another one waits, and there is no room");
    later(500);
    is(take(&sa), "-1 again", "it is told as lost, not sent without a text");

    ngx_mcp_stream_close(&zone, &sa, NGX_MCP_COUNTER_STREAMS_CLIENT);
    stop("windows without room");
}


static void
knowledge_tests(void)
{
    uint64_t           changes;
    ngx_str_t          key;
    ngx_uint_t         i;
    ngx_pool_t        *pool;
    ngx_mcp_profile_t  in, out, failed;
    char               text[32];

    ngx_mcp_profile_info_t  info;

    start(ZONE_SIZE);
    pool = env_pool();

    memset(&in, 0, sizeof(in));
    in.what = NGX_MCP_PROFILE_LEGACY;
    in.revision = NGX_MCP_2025_06_18;
    in.result.data = big;
    in.result.len = 65536;
    in.status = 504;
    in.why = env_str("own session");

    key = env_str("upstream audience");

    ok(ngx_mcp_profile_get(&zone, &key, 1, 1000, pool, &out)
       == NGX_DECLINED
       && ngx_mcp_profile_get(&zone, &key, 1, 1000, pool, &out)
          == NGX_AGAIN, "one asks");
    ok(ngx_mcp_profile_put(&zone, &key, 1, &in) == NGX_OK, "put");
    drain();
    ok(heard.profiles == 1 && heard.keys == NGX_MCP_RING_KEY(out.hash),
       "all hear of it");
    ok(ngx_mcp_profile_get(&zone, &key, 1, 1000, pool, &out) == NGX_OK
       && out.what == NGX_MCP_PROFILE_LEGACY
       && out.revision == NGX_MCP_2025_06_18
       && out.result.len == 65536 && memcmp(out.result.data, big, 65536) == 0
       && out.status == 504 && out.why.len == 11
       && memcmp(out.why.data, "own session", 11) == 0, "get");

    ok(ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &out)
       == NGX_DECLINED, "another epoch asks again");
    in.result.len = 10;
    ngx_mcp_profile_put(&zone, &key, 2, &in);
    env_time(ngx_current_msec + 1001);
    ok(ngx_mcp_profile_get(&zone, &key, 2, 2000, pool, &out) == NGX_OK
       && ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &out)
          == NGX_DECLINED, "age");
    env_time(ngx_current_msec + NGX_MCP_PROBE_MAX);
    ok(ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &out)
       == NGX_DECLINED, "one who never came back");

    changes = ngx_mcp_profile_changes(&zone);
    ngx_mcp_profile_put(&zone, &key, 2, &in);
    ngx_mcp_profile_stale(&zone, &key);
    ok(ngx_mcp_profile_changes(&zone) == changes + 2, "two changes");
    ok(ngx_mcp_profile_get(&zone, &key, 2, NGX_MCP_PROFILE_ANY_AGE,
                           pool, &out)
       == NGX_OK
       && ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &out)
          == NGX_DECLINED, "stale is asked again, but not by all");
    ngx_mcp_profile_put(&zone, &key, 2, &in);
    ngx_mcp_profile_suspect(&zone, &key);
    ok(ngx_mcp_profile_get(&zone, &key, 2, NGX_MCP_PROFILE_ANY_AGE,
                           pool, &out)
       == NGX_DECLINED, "doubt makes all ask");

    memset(&failed, 0, sizeof(failed));
    failed.status = 502;

    ok(ngx_mcp_profile_fail(&zone, &key, 2, 0, &failed) == NGX_OK
       && ngx_mcp_profile_get(&zone, &key, 2, 0, pool, &out) == NGX_OK
       && out.kept && out.what == NGX_MCP_PROFILE_LEGACY,
       "an MCP server is kept");
    ngx_mcp_profile_suspect(&zone, &key);
    ok(ngx_mcp_profile_get(&zone, &key, 2, 0, pool, &out) == NGX_OK,
       "for a moment");
    env_time(ngx_current_msec + NGX_MCP_PROFILE_SHORT_AGE + 1);
    ok(ngx_mcp_profile_get(&zone, &key, 2, NGX_MCP_PROFILE_ANY_AGE,
                           pool, &out)
       == NGX_DECLINED, "then it is asked again");

    ngx_mcp_profile_give_up(&zone, &key);
    ok(ngx_mcp_profile_get(&zone, &key, 2, NGX_MCP_PROFILE_ANY_AGE,
                           pool, &out)
       == NGX_DECLINED, "given up, another asks");

    ok(ngx_mcp_profile_fail(&zone, &key, 2, 1, &failed) == NGX_OK,
       "away again");
    env_time(ngx_current_msec + NGX_MCP_PROFILE_SHORT_AGE + 1);
    ok(ngx_mcp_profile_get(&zone, &key, 2, 0, pool, &out) == NGX_OK
       && !out.ask, "the second pause is longer");
    env_time(ngx_current_msec + NGX_MCP_PROFILE_SHORT_AGE);
    ok(ngx_mcp_profile_get(&zone, &key, 2, NGX_MCP_PROFILE_ANY_AGE,
                           pool, &out)
       == NGX_OK && !out.ask, "calls do not ask");
    ok(ngx_mcp_profile_get(&zone, &key, 2, 0, pool, &out) == NGX_OK
       && out.ask && out.kept && out.result.len == 10,
       "one asks, and is served meanwhile");
    ok(ngx_mcp_profile_get(&zone, &key, 2, 0, pool, &out) == NGX_OK
       && !out.ask, "others as well");
    ok(ngx_mcp_profile_fail(&zone, &key, 2, 1, &failed) == NGX_OK, "in vain");

    ok(ngx_mcp_profile_get(&zone, &key, 3, 0, pool, &out) == NGX_DECLINED
       && ngx_mcp_profile_get(&zone, &key, 3, 0, pool, &out) == NGX_AGAIN
       && out.status == 502
       && ngx_mcp_profile_stored(&zone, &key, pool, &out) == NGX_OK
       && out.what == NGX_MCP_PROFILE_LEGACY,
       "another epoch asks at first");
    ok(ngx_mcp_profile_fail(&zone, &key, 3, 0, &failed) == NGX_DECLINED
       && ngx_mcp_profile_get(&zone, &key, 3, 0, pool, &out) == NGX_OK
       && out.what == NGX_MCP_PROFILE_UNKNOWN,
       "one that answers there is not what it was");
    ok(ngx_mcp_profile_stored(&zone, &key, pool, &out) == NGX_DECLINED,
       "nothing is stored then");

    ngx_mcp_profile_put(&zone, &key, 2, &in);
    ok(ngx_mcp_profile_get(&zone, &key, 3, 0, pool, &out) == NGX_DECLINED
       && ngx_mcp_profile_fail(&zone, &key, 3, 1, &failed) == NGX_OK
       && ngx_mcp_profile_get(&zone, &key, 3, 0, pool, &out) == NGX_OK
       && out.kept, "one that is away there is kept");

    ngx_mcp_profile_back(&zone, &key);
    ok(ngx_mcp_profile_get(&zone, &key, 3, 1000, pool, &out)
       == NGX_DECLINED,
       "back, it is asked at once");
    ngx_mcp_profile_put(&zone, &key, 3, &in);

    memset(&info, 0, sizeof(info));
    ok(ngx_mcp_profile_info(&zone, pool, &info) == NGX_OK
       && info.what == NGX_MCP_PROFILE_LEGACY && !info.kept
       && info.key.len == key.len
       && ngx_mcp_profile_info(&zone, pool, &info) == NGX_DONE, "info");

    env_time(ngx_current_msec + 1);
    (void) ngx_mcp_profile_get(&zone, &key, 3, 0, pool, &out);

    in.what = NGX_MCP_PROFILE_UNKNOWN;
    ngx_mcp_profile_put(&zone, &key, 2, &in);
    ok(ngx_mcp_profile_get(&zone, &key, 2, 0, pool, &out) == NGX_OK
       && out.status == 504, "that it said nothing counts for a moment");
    env_time(ngx_current_msec + NGX_MCP_PROFILE_SHORT_AGE + 1);
    ok(ngx_mcp_profile_get(&zone, &key, 2, NGX_MCP_PROFILE_ANY_AGE,
                           pool, &out)
       == NGX_DECLINED
       && ngx_mcp_profile_fail(&zone, &key, 2, 1, &failed) == NGX_DECLINED,
       "and is not kept");
    ngx_mcp_profile_give_up(&zone, &key);
    in.what = NGX_MCP_PROFILE_LEGACY;

    for (i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "key %u", (unsigned) i);
        key = env_str(text);
        in.result.len = 1000;
        (void) ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &out);

        if (ngx_mcp_profile_put(&zone, &key, 2, &in) != NGX_OK) {
            break;
        }
    }

    ok(i == 1000
       && zone.sh->used[NGX_MCP_PROFILE] <= zone.sh->blocks / 8, "bounded");
    ok(ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &out) == NGX_OK,
       "the last one is known");

    env_pool_free(pool);
    stop("knowledge");
}


static void
idle_tests(void)
{
    ngx_mcp_ref_t          fresh_one, used, busy;
    ngx_mcp_stream_t       st;
    ngx_mcp_session_t      s = { 0 };
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    fresh_one = session("e", "t");

    in = new_session("e", "t");
    ngx_mcp_session_create(&zone, &in, &used);
    ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                         &in.identity, &s);
    busy = session("e", "t");
    env_stream_open(&zone, busy, 0, NULL, 0, 1, &st);

    ngx_mcp_zone_lock(&zone);
    (void) env_reserve_locked(&zone, 64);
    ngx_mcp_zone_unlock(&zone);
    ok(counted(NGX_MCP_COUNTER_SESSIONS_LIVE) == 3, "none is idle for long");

    env_time(ngx_current_msec + 60000);
    ngx_mcp_zone_lock(&zone);
    (void) env_reserve_locked(&zone, 64);
    ngx_mcp_zone_unlock(&zone);
    ok(session_id(fresh_one, big) == NGX_DECLINED
       && session_id(used, big) == NGX_OK
       && counted(NGX_MCP_COUNTER_SESSIONS_EVICTED) == 1,
       "a client that never came back");

    env_time(ngx_current_msec + 1740000 + 1800000 / 16);
    ngx_mcp_zone_lock(&zone);
    (void) env_reserve_locked(&zone, 64);
    ngx_mcp_zone_unlock(&zone);
    ok(session_id(used, big) == NGX_DECLINED
       && session_id(busy, big) == NGX_OK,
       "one past its time-out");

    env_time(ngx_current_msec + 100 * 1800000ULL);
    (void) ngx_mcp_worker_sweep(&zone);
    ok(session_id(busy, big) == NGX_OK,
       "an open stream is not idle");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    (void) ngx_mcp_worker_sweep(&zone);
    ok(session_id(busy, big) == NGX_OK,
       "its idle time starts with the end of the stream");
    env_time(ngx_current_msec + 24 * 1800000ULL);
    (void) ngx_mcp_worker_sweep(&zone);
    ok(session_id(busy, big) == NGX_DECLINED
       && counted(NGX_MCP_COUNTER_SESSIONS_EXPIRED) == 1,
       "after 24 times it ends");

    stop("idle");
}


static uint32_t
free_blocks(void)
{
    uint32_t  n;

    ngx_mcp_zone_lock(&zone);
    n = ngx_mcp_free_blocks(zone.sh);
    ngx_mcp_zone_unlock(&zone);

    return n;
}


static void
full_tests(void)
{
    char              client[16];
    uint32_t          half, left;
    ngx_uint_t        n, i;
    ngx_mcp_ref_t     ref, first, second, a, b;
    ngx_mcp_stream_t  st;

    /* one client has half of the zone at most */

    start(1024 * 1024);

    half = zone.sh->blocks / 2;
    first = session_of("t", "modest");

    for (i = 0; i < 10; i++) {
        say(first, "an event");
    }

    for (n = 0; session_of("t", "greedy").block; n++) { /* void */ }

    left = free_blocks();
    ok(n > 600 && left > half * 9 / 10 && left < half * 11 / 10,
       "%u sessions of one client in 1m, %u blocks are left", (unsigned) n,
       (unsigned) left);

    for (n = 0; session_of("t", "another").block; n++) { /* void */ }
    ok(n > 100 && free_blocks() > half / 4, "%u sessions of another one",
       (unsigned) n);

    for (n = 0; session_of("t", "a third").block; n++) { /* void */ }

    for (n = 0; session_of("u", "in another tenant").block; n++) {
        /* void */
    }

    ok(n > 50, "%u sessions in another tenant", (unsigned) n);

    ngx_mcp_zone_lock(&zone);
    i = zone.sh->used[NGX_MCP_EVENT];
    ngx_mcp_zone_unlock(&zone);
    ok(i == 10 && counted(NGX_MCP_COUNTER_SESSIONS_EVICTED) == 0,
       "no event and no session went for that");
    ok(env_check(&zone) == 0, "the zone is sound");

    /* many clients leave a reserve to the sessions that exist */

    for (i = 0; i < 4000; i++) {
        snprintf(client, sizeof(client), "c%u", (unsigned) i);

        if (session_of("v", client).block == 0) {
            break;
        }
    }

    left = free_blocks();
    ok(left > half / 16 && say(first, "event") == NGX_OK
       && env_stream_open(&zone, first, 0, NULL, 0, 1, &st) == NGX_OK,
       "events and streams have %u blocks", (unsigned) left);
    ok(env_check(&zone) == 0, "a full zone is sound");

    env_time(ngx_current_msec + 61000);
    ref = session_of("v", "late");
    ok(ref.block != 0, "sessions whose clients never came back make room");

    for (n = 0; line_len(&st) == sizeof("an event") - 1; n++) { /* void */ }

    ok(n == 10, "%u events are still there", (unsigned) n);

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    stop("full");

    /*
     * Events of one client take a quarter of the zone, and only its own are
     * dropped.
     */

    start(1024 * 1024);
    first = session_of("t", "greedy");
    second = session_of("t", "modest");
    ref = session_of("u", "modest");

    say_much(second, 30000);
    say_much(ref, 30000);

    for (i = 0; i < 100; i++) {
        a = session_of("t", "greedy");
        (void) say_much(a, 30000);
        (void) say_much(a, 30000);
        (void) say_much(first, 30000);
    }

    ok(zone.sh->used[NGX_MCP_EVENT] <= half * 6 / 10
       && zone.sh->used[NGX_MCP_EVENT] > half / 4,
       "%u blocks of events", (unsigned) zone.sh->used[NGX_MCP_EVENT]);
    ok(env_stream_open(&zone, second, 0, NULL, 0, 1, &st) == NGX_OK
       && line_len(&st) == 30000, "one of the modest client is there");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ok(env_stream_open(&zone, ref, 0, NULL, 0, 1, &st) == NGX_OK
       && line_len(&st) == 30000, "and that in another tenant");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ok(say_much(second, 30000) == NGX_OK && say_much(ref, 30000) == NGX_OK,
       "and there is room for more");
    ok(env_check(&zone) == 0, "the zone is sound");

    stop("shares of events");

    /* events that were read are dropped first */

    start(1024 * 1024);
    a = session_of("t", "client");
    b = session_of("t", "client");

    for (i = 0; i < 12; i++) {
        say_much(a, 8000);
        say_much(b, 3000);
    }

    ok(env_stream_open(&zone, b, 0, NULL, 0, 1, &st) == NGX_OK, "stream");

    for (i = 0; i < 12; i++) {
        (void) line_len(&st);
    }

    first = session_of("t", "client");

    for (i = 0; i < 16; i++) {
        (void) say_much(first, 10000);
    }

    ngx_mcp_zone_lock(&zone);
    n = ((ngx_mcp_session_sh_t *) ngx_mcp_block(&zone, a.block))->events;
    i = ((ngx_mcp_session_sh_t *) ngx_mcp_block(&zone, b.block))->events;
    ngx_mcp_zone_unlock(&zone);
    ok(n == 12 && i < 12, "%u wait, %u could be repeated", (unsigned) n,
       (unsigned) i);

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
    stop("handed over");
}


#define MANY  600

/* number of tenants whose topics change at once */
#define ANNOUNCED  40


/* sends a text with an id to all */

static ngx_mcp_ref_t  told;               /* the item that delivers it */
static ngx_uint_t     told_missed;
static ngx_uint_t     told_attended;

static ngx_int_t
tell_once(const char *scope, const char *id, const char *text,
    ngx_uint_t *sessions)
{
    ngx_int_t           rc;
    ngx_str_t           s, i;
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    s = env_str(scope);
    i = env_str(id);

    post.deliveries = &d;
    post.n = 1;
    post.answered = 1;
    post.attended = told_attended;
    post.id = ngx_mcp_idempotency_key(&zone, &s, &i);
    d.text = env_str(text);
    d.addressed = 1;

    rc = ngx_mcp_outbox_send(&zone, &post);

    *sessions = post.sessions;
    told = post.item;
    told_missed = post.missed;

    return rc;
}


static void
once_tests(void)
{
    char                 id[16];
    uint32_t             used;
    ngx_uint_t           i, n;
    ngx_mcp_ref_t        a, b;
    ngx_mcp_stream_t     sa, sb;
    ngx_mcp_group_sh_t  *g;
    static char          large[80000];

    start(ZONE_SIZE);

    a = session("e", "t1");
    b = session("e", "t2");
    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);
    env_stream_open(&zone, b, 0, NULL, 0, 1, &sb);

    ok(tell_once("s", "first", "1", &n) == NGX_OK && n == 2,
       "an id that is new");
    ok(tell_once("s", "first", "1", &n) == NGX_DECLINED && n == 2,
       "and taken");
    ok(tell_once("other", "first", "2", &n) == NGX_OK,
       "not in another scope");
    is(take(&sa), "1 2 again", "each arrives once");
    is(take(&sb), "1 2 again", "everywhere");

    memset(large, 'x', sizeof(large) - 1);
    ok(tell_once("s", "3", large, &n) == NGX_ERROR, "one that is refused");
    ok(tell_once("s", "3", "3", &n) == NGX_OK, "is free");
    is(take(&sa), "3 again", "and comes once, without a gap");

    for (i = 0; i < NGX_MCP_IDEMPOTENCY; i++) {
        snprintf(id, sizeof(id), "i%u", (unsigned) i);
        (void) tell_once("s", id, "x", &n);
    }

    ok(tell_once("s", "first", "1", &n) == NGX_OK
       && tell_once("s", "i1", "1", &n) == NGX_DECLINED,
       "the oldest are forgotten");

    stop("once");

    /* a repeated id while a target has no room */

    start(ZONE_SIZE);

    a = session("e", "t1");
    ok(tell_once("s", "1", "1", &n) == NGX_OK && n == 1, "one session");

    g = ngx_mcp_session_group(&zone, ngx_mcp_session_locked(&zone, a));
    ((ngx_mcp_group_sh_t *)
     ngx_mcp_block(&zone, g->endpoint))->event_size = 10;

    ok(tell_once("s", "2", "longer than 10 bytes", &n) == NGX_ERROR,
       "there is no room for another event");
    ok(tell_once("s", "1", "longer than 10 bytes", &n) == NGX_DECLINED
       && n == 1, "one that is known is repeated all the same");

    for (i = 0; i < 40; i++) {
        snprintf(id, sizeof(id), "e%u", (unsigned) i);
        (void) session(id, "t");
    }

    ok(tell_once("s", "3", "3", &n) == NGX_OK && n == 41,
       "an item for many sessions");

    used = zone.sh->used[NGX_MCP_ITEM];
    zone.sh->used[NGX_MCP_ITEM] = zone.sh->blocks;

    ok(tell_once("s", "4", "4", &n) == NGX_ERROR,
       "there is no room for another item");
    ok(tell_once("s", "3", "3", &n) == NGX_DECLINED && n == 41,
       "one that is known is repeated all the same");

    zone.sh->used[NGX_MCP_ITEM] = used;

    stop("once without room");
}


/* sends a text to two endpoints; an error means that nobody has it */

static ngx_int_t
tell_two(const char *text, ngx_str_t *endpoints, ngx_uint_t *missed)
{
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d[2];

    memset(&post, 0, sizeof(post));
    memset(d, 0, sizeof(d));

    post.deliveries = d;
    post.n = 2;

    for (i = 0; i < 2; i++) {
        d[i].text = env_str(text);
        d[i].endpoint = &endpoints[i];
        d[i].addressed = 1;
    }

    rc = ngx_mcp_outbox_send(&zone, &post);
    *missed = post.missed;

    return rc;
}


static void
missed_some_tests(void)
{
    ngx_str_t              endpoints[2];
    ngx_uint_t             missed;
    ngx_mcp_ref_t          a, b;
    ngx_mcp_stream_t       sa, sb;
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    endpoints[0] = env_str("e");
    endpoints[1] = env_str("f");

    a = session("e", "t");
    in = new_session("f", "t");
    in.event_size = 10;
    (void) ngx_mcp_session_create(&zone, &in, &b);
    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);
    env_stream_open(&zone, b, 0, NULL, 0, 1, &sb);

    ok(tell_two("longer than 10 bytes", endpoints, &missed) == NGX_OK
       && missed == 1, "an event that one of two has is delivered");
    is(take(&sa), "longer than 10 bytes again", "to the one");
    is(take(&sb), "-1 again", "the other one is told of a gap");

    endpoints[0] = endpoints[1];
    ok(tell_two("longer than 10 bytes", endpoints, &missed) == NGX_ERROR
       && missed == 2, "an event that nobody has is an error");

    stop("missed by some");
}


/* the target is a session by name, which has another identity */

static void
identity_tests(void)
{
    char                name[16], id[NGX_MCP_UUID_LEN];
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_pool_t         *pool;
    ngx_msec_t          next;
    ngx_mcp_ref_t       a;
    ngx_mcp_post_t      post;
    ngx_mcp_stream_t    st;
    ngx_mcp_delivery_t  d[3];

    start(4 * ZONE_SIZE);

    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "e%u", (unsigned) i);
        (void) session(name, "t");
    }

    a = session("f", "t");
    (void) session_id(a, id);
    env_stream_open(&zone, a, 0, NULL, 0, 1, &st);

    pool = env_pool();
    memset(&post, 0, sizeof(post));
    memset(d, 0, sizeof(d));

    post.deliveries = d;
    post.n = 3;
    post.pool = pool;

    d[0].text = env_str("to all");
    d[1].text = env_str("to another identity");
    d[1].event.identity = env_str("another");
    d[1].session.data = (u_char *) id;
    d[1].session.len = NGX_MCP_UUID_LEN;
    d[2].text = env_str("to its own");
    d[2].event.identity = env_str("identity");
    d[2].session = d[1].session;

    ok(ngx_mcp_outbox_send(&zone, &post) == NGX_AGAIN,
       "to many and to a session, in turns");
    rc = ngx_mcp_outbox_due(&zone, &next);
    ok(rc == NGX_OK, "another turn");
    is(take(&st), "to all to its own again",
       "the session does not get what another identity gets");
    ok(ngx_mcp_session_locked(&zone, a)->events == 1, "nor does it keep that");

    env_pool_free(pool);
    stop("identity");
}


/* a death in a hold that delivers to two sessions: both have it, or none */

static uint64_t    whole_id;
static ngx_uint_t  whole_commits;

static void
whole_committed(void)
{
    whole_commits += (ngx_mcp_idempotency_find_locked(&zone, whole_id) != NULL);
}


static void
whole_tests(void)
{
    ngx_str_t              id, token, str;
    ngx_uint_t             i;
    ngx_mcp_ref_t          a, b;
    ngx_mcp_call_t         c;
    ngx_mcp_post_t         post;
    ngx_mcp_event_t        e;
    ngx_mcp_stream_t       sa, sb;
    ngx_mcp_delivery_t     d[3];
    ngx_mcp_session_new_t  in;

    start(2 * 1024 * 1024);

    a = session("e", "t");
    in = new_session("e", "t");
    in.event_max = 200;
    (void) ngx_mcp_session_create(&zone, &in, &b);

    /* the events of a call that has finished fill the session */

    id = env_str("1");
    token = env_str("");
    ok(env_call_open(&zone, b, &id, &token, 64, 1, &c) == NGX_OK,
       "a call");
    ngx_mcp_call_mark(&zone, c.ref, NGX_MCP_CALL_STREAMED);

    str = env_str("progress");
    e = event(&str);

    for (i = 0; i < 200; i++) {
        (void) ngx_mcp_log_call(&zone, c.ref, &e, NULL);
    }

    ngx_mcp_call_close(&zone, c.ref);

    memset(&post, 0, sizeof(post));
    memset(d, 0, sizeof(d));

    whole_id = 17;
    post.deliveries = d;
    post.n = 2;
    post.answered = 1;
    post.id = whole_id;
    d[0].text = env_str("news");
    d[0].ref = a;
    d[1].text = env_str("news");
    d[1].ref = b;

    env_committed = whole_committed;
    ok(ngx_mcp_outbox_send(&zone, &post) == NGX_OK, "to two sessions");
    env_committed = NULL;

    ok(whole_commits == 1,
       "both have it in one transaction with the id, however much goes for it");

    env_stream_open(&zone, a, 0, NULL, 0, 1, &sa);
    env_stream_open(&zone, b, 0, NULL, 0, 1, &sb);
    is(take(&sa), "news again", "the one has it");
    is(take(&sb), "news again", "as has the other");
    ngx_mcp_stream_close(&zone, &sa, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_stream_close(&zone, &sb, NGX_MCP_COUNTER_STREAMS_CLIENT);

    stop("whole");
}


/* an item that is listed behind more items than one search examines */

static void
behind_tests(void)
{
    char              name[16];
    u_char            bell[NGX_MCP_NAME_LEN];
    ngx_uint_t        i, n, own;
    ngx_msec_t        next;
    ngx_mcp_ref_t     a, items[70];
    ngx_mcp_zone_t    others;
    ngx_mcp_stream_t  st;

    start(8 * ZONE_SIZE);

    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "e%u", (unsigned) i);
        a = session(name, "t");
    }

    env_stream_open(&zone, a, 0, NULL, 0, 1, &st);

    others = zone;
    others.worker = NGX_MCP_NO_WORKER;
    memset(bell, 2, sizeof(bell));
    ngx_mcp_worker_claim(&others, bell);
    own = zone.worker;

    zone.worker = others.worker;
    told_attended = 1;

    for (i = 0; i < 70; i++) {
        snprintf(name, sizeof(name), "%u", (unsigned) i);
        (void) tell_once("s", name, ".", &n);
        items[i] = told;
    }

    zone.worker = own;
    told_attended = 0;

    ok(tell_once("s", "own", "own", &n) == NGX_AGAIN,
       "an item behind those of another worker");
    ok(ngx_mcp_outbox_due(&zone, &next) == NGX_OK, "the next turn");
    is(take(&st), "own again", "delivers it");

    for (i = 0; i < 70; i++) {
        while (ngx_mcp_outbox_run(&zone, items[i], NULL) == NGX_AGAIN) {
            /* void */
        }
    }

    ok(zone.sh->used[NGX_MCP_ITEM] == 0, "the others are delivered");

    ngx_mcp_worker_reap(&zone, others.worker,
                        ngx_mcp_slot(&zone, others.worker)->nonce);
    stop("behind others");
}


/* an event for more endpoints than get it in one turn */

static void
many_tests(void)
{
    char              name[16];
    u_char            bell[NGX_MCP_NAME_LEN];
    ngx_uint_t        i, n, own, wrong;
    ngx_msec_t        next;
    ngx_mcp_ref_t     a;
    ngx_mcp_zone_t    removing;
    ngx_mcp_stream_t  first, last;
    static char       large[3000];

    memset(large, 'x', sizeof(large) - 1);

    start(4 * ZONE_SIZE);

    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "e%u", (unsigned) i);
        a = session(name, "t");

        if (i == 0) {
            env_stream_open(&zone, a, 0, NULL, 0, 1, &first);
        }
    }

    env_stream_open(&zone, a, 0, NULL, 0, 1, &last);

    ok(tell_once("s", "1", "1", &n) == NGX_AGAIN && n == MANY,
       "to all, in turns");
    ok(tell_once("s", "1", "1", &n) == NGX_DECLINED && n == MANY,
       "it is taken");
    is(take(&first), "1 again", "the first ones have it");
    is(take(&last), "again", "the last ones do not");

    ok(ngx_mcp_outbox_due(&zone, &next) == NGX_OK, "another turn");
    is(take(&first), "again", "no more to the first ones");
    is(take(&last), "1 again", "the last ones have it now");
    ok(zone.sh->used[NGX_MCP_ITEM] == 0, "nothing is left");

    /* a worker dies while it delivers */

    removing = zone;
    removing.worker = NGX_MCP_NO_WORKER;
    memset(bell, 2, sizeof(bell));
    ngx_mcp_worker_claim(&removing, bell);
    own = zone.worker;

    zone.worker = removing.worker;
    ok(tell_once("s", "2", "2", &n) == NGX_AGAIN, "another one");
    zone.worker = own;

    (void) ngx_mcp_outbox_due(&zone, &next);
    is(take(&last), "again", "its worker lives");

    ngx_mcp_worker_reap(&zone, removing.worker,
                        ngx_mcp_slot(&zone, removing.worker)->nonce);
    (void) ngx_mcp_outbox_due(&zone, &next);
    is(take(&first), "2 again", "the first ones have it once");
    is(take(&last), "2 again", "as have the last ones");

    /* the event comes again before the rest is delivered */

    (void) tell_once("s", "4", "4", &n);
    memset(&told, 0, sizeof(told));
    ok(tell_once("s", "4", "4", &n) == NGX_DECLINED && n == MANY,
       "it is taken");

    while (ngx_mcp_outbox_run(&zone, told, NULL) == NGX_AGAIN) {
        /* void */
    }

    is(take(&last), "4 again", "its sender may finish it then");
    is(take(&first), "4 again", "once");

    /* a large text is an item of many blocks */

    wrong = tell_once("s", "3", large, &n) != NGX_AGAIN;
    (void) ngx_mcp_outbox_due(&zone, &next);
    ok(!wrong && zone.sh->used[NGX_MCP_ITEM] == 0, "a long text");
    is(take(&last), "busy 2999", "arrives");

    stop("many");
}


static ngx_uint_t  unlocks;


static void
count_unlocks(void)
{
    unlocks++;
}


/*
 * Tenants that asked for a kind get an event; among many tenants, they are
 * looked for in turns.
 */

static void
asked_tests(void)
{
    char                name[16];
    u_char              buf[NGX_MCP_TOPIC_BYTES];
    size_t              len;
    uint64_t            after;
    ngx_int_t           rc;
    ngx_str_t           endpoint;
    ngx_uint_t          i, missed, turns;
    ngx_mcp_ref_t       a, topic;
    ngx_mcp_post_t      post;
    ngx_mcp_topic_t     t;
    ngx_mcp_delivery_t  d;

    ngx_mcp_group_cursor_t  cursor = { 0 };

    start(3 * ZONE_SIZE);

    endpoint = env_str("e");

    memset(&t, 0, sizeof(t));
    t.uri = env_str("events://kind/latest");
    t.limit = 8;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));
    post.deliveries = &d;
    post.n = 1;
    d.endpoint = &endpoint;
    d.topic = t;
    d.topic.existing = 1;
    d.text = env_str("event");

    for (i = 0; i < 3200; i++) {

        if (i == 100) {
            ok(ngx_mcp_topic_exists(&zone, &endpoint, NULL, &t.uri)
               == NGX_DECLINED, "none has it");

            unlocks = 0;
            env_unlocked = count_unlocks;
            ok(topic_wanted(&endpoint, NULL, &t.uri) == NGX_DECLINED
               && unlocks == 0,
               "so that none is searched for readers of it");
            env_unlocked = NULL;

            ok(ngx_mcp_outbox_send(&zone, &post) == NGX_OK
               && zone.sh->used[NGX_MCP_ITEM] == 0, "few are examined at once");
        }

        snprintf(name, sizeof(name), "t%u", (unsigned) i);
        a = session_of(name, "c");
    }

    ok(a.block != 0, "many tenants");
    ok(ngx_mcp_topic_exists(&zone, &endpoint, NULL, &t.uri) == NGX_DECLINED,
       "still none has it");

    after = NGX_MCP_TOPIC_BEGIN;
    t.share = 1;
    ok(ngx_mcp_topic_watch(&zone, env_caller(a), &t, &topic, &after)
       == NGX_OK
       && env_topic_next_one(&zone, env_caller(a), topic, 1, &after, buf, &len,
                             &missed) == NGX_AGAIN, "the last one waits");
    ok(ngx_mcp_topic_exists(&zone, &endpoint, NULL, &t.uri) == NGX_OK,
       "one may have it");

    unlocks = 0;
    env_unlocked = count_unlocks;
    rc = ngx_mcp_topic_wanted(&zone, &endpoint, NULL, &t.uri, &cursor);
    env_unlocked = NULL;
    ok(rc == NGX_AGAIN && unlocks < 2500,
       "readers of it are not searched for at once");
    ok(ngx_mcp_topic_wanted(&zone, &endpoint, NULL, &t.uri, &cursor)
       == NGX_OK, "but found by the next search");
    ngx_mcp_topic_unwatch(&zone, topic);
    ok(ngx_mcp_topic_wanted(&zone, &endpoint, NULL, &t.uri, &cursor)
       == NGX_AGAIN
       && ngx_mcp_topic_wanted(&zone, &endpoint, NULL, &t.uri, &cursor)
          == NGX_DECLINED, "which begins again, and finds none");
    ok(env_topic_next_one(&zone, env_caller(a), topic, 1, &after, buf, &len,
                          &missed) == NGX_AGAIN, "one waits again");

    rc = ngx_mcp_outbox_send(&zone, &post);
    ok(rc == NGX_AGAIN, "not all are examined in one turn");
    ok(env_topic_next_one(&zone, env_caller(a), topic, 1, &after, buf, &len,
                          &missed) == NGX_AGAIN, "the last one not yet");

    for (turns = 0; rc == NGX_AGAIN && turns < 100; turns++) {
        rc = ngx_mcp_outbox_run(&zone, post.item, NULL);
    }

    ok(rc == NGX_OK && turns && turns < 4, "but in %u more",
       (unsigned) turns);
    ok(env_topic_next_one(&zone, env_caller(a), topic, 1, &after, buf, &len,
                          &missed) == NGX_OK && len == 5, "it has the event");
    ok(zone.sh->used[NGX_MCP_ITEM] == 0, "nothing is left");

    stop("asked for");
}


/* an event for many sessions, one of which has no room */

static void
missed_tests(void)
{
    char                   name[16];
    u_char                 bell[NGX_MCP_NAME_LEN];
    ngx_uint_t             i, n, own;
    ngx_msec_t             next;
    ngx_mcp_ref_t          a;
    ngx_mcp_zone_t         dying;
    ngx_mcp_stream_t       last;
    static char            some[200];
    ngx_mcp_session_new_t  in;

    memset(some, 'x', sizeof(some) - 1);

    start(4 * ZONE_SIZE);

    for (i = 0; i < MANY; i++) {

        if (i == 50) {
            ok(tell_once("s", "1", some, &n) == NGX_OK && n == 50
               && told_missed == 1, "one of 50 is told of a gap");
            ok(tell_once("s", "1", some, &n) == NGX_DECLINED && n == 50,
               "and it is taken");
        }

        snprintf(name, sizeof(name), "e%u", (unsigned) i);
        in = new_session(name, "t");

        if (i == 40 || i == MANY - 2) {
            in.event_size = 100;
        }

        a.block = 0;
        (void) ngx_mcp_session_create(&zone, &in, &a);
    }

    env_stream_open(&zone, a, 0, NULL, 0, 1, &last);

    told_attended = 1;
    ok(tell_once("s", "2", some, &n) == NGX_AGAIN && n == MANY
       && told_missed == 1, "a turn of one whose sender carries on");
    told_attended = 0;

    (void) ngx_mcp_outbox_due(&zone, &next);
    is(take(&last), "again", "nobody else in its worker does");

    while (ngx_mcp_outbox_run(&zone, told, &told_missed) == NGX_AGAIN) {
        /* void */
    }

    ok(line_len(&last) == 199, "the last one has it");
    ok(told_missed == 2, "and all that missed it are counted");
    ngx_mcp_stream_close(&zone, &last, NGX_MCP_COUNTER_STREAMS_CLIENT);

    /* the worker that carries on dies; another one needs two turns */

    for ( /* void */ ; i < 2 * MANY; i++) {
        snprintf(name, sizeof(name), "e%u", (unsigned) i);
        a = session(name, "t");
    }

    env_stream_open(&zone, a, 0, NULL, 0, 1, &last);

    dying = zone;
    dying.worker = NGX_MCP_NO_WORKER;
    memset(bell, 2, sizeof(bell));
    ngx_mcp_worker_claim(&dying, bell);
    own = zone.worker;

    zone.worker = dying.worker;
    told_attended = 1;
    ok(tell_once("s", "3", "3", &n) == NGX_AGAIN && n == 2 * MANY,
       "one whose sender dies");
    told_attended = 0;
    zone.worker = own;

    ngx_mcp_worker_reap(&zone, dying.worker,
                        ngx_mcp_slot(&zone, dying.worker)->nonce);
    ok(ngx_mcp_outbox_due(&zone, &next) == NGX_AGAIN
       && ngx_mcp_outbox_due(&zone, &next) == NGX_OK
       && zone.sh->used[NGX_MCP_ITEM] == 0, "is finished by another worker");
    is(take(&last), "3 again", "the last one has it");

    stop("missed");
}


/* the journal has room for any number of joined windows */

static void
joined_tests(void)
{
    char                what[160][8];
    ngx_str_t           e;
    ngx_uint_t          i, round;
    ngx_pool_t         *pool;
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d[160];
    static char         large[1400000];

    start(2 * 1024 * 1024);

    (void) session("e", "t");
    pool = env_pool();
    e = env_str("e");

    for (round = 0; round < 3; round++) {
        memset(&post, 0, sizeof(post));
        memset(d, 0, sizeof(d));

        for (i = 0; i < 160; i++) {
            snprintf(what[i], sizeof(what[i]), "w%u", (unsigned) i);
            d[i].endpoint = &e;
            d[i].coalesce_key = env_str(what[i]);
            d[i].text = env_str(what[i]);
            d[i].time = 500;
            d[i].count = 1;
        }

        post.deliveries = d;
        post.n = 160;
        post.pool = pool;

        (void) ngx_mcp_outbox_send(&zone, &post);
    }

    ok(env_alerts == 0 && env_check(&zone) == 0
       && counted(NGX_MCP_COUNTER_EVENTS_COALESCED) == 160,
       "many are joined at once");
    env_pool_free(pool);
    later(1000);

    stop("joined");

    start(64 * 1024 * 1024);

    for (i = 0; i < 40; i++) {
        (void) session(what[i], "t");
    }

    memset(large, 'x', sizeof(large) - 1);
    e = env_str(what[0]);

    for (round = 0; round < 2; round++) {
        memset(&post, 0, sizeof(post));
        memset(d, 0, sizeof(d));

        d[0].text = env_str("to all");
        d[1].endpoint = &e;
        d[1].coalesce_key = env_str("k");
        d[1].text = env_str(round ? large : "short");
        d[1].time = 500;
        d[1].count = 1;

        post.deliveries = d;
        post.n = 2;

        ok(ngx_mcp_outbox_send(&zone, &post) == NGX_OK, "to many");
    }

    ok(env_alerts == 0 && env_check(&zone) == 0
       && zone.sh->used[NGX_MCP_ITEM] > 5000, "a large text is joined");
    later(1000);

    stop("joined text");
}


static void
death_tests(void)
{
    int                         status;
    pid_t                       pid;
    u_char                      name[NGX_MCP_NAME_LEN];
    ngx_str_t                   id, token, up;
    ngx_mcp_ref_t               ref, heeded;
    ngx_mcp_call_t              call, plain;
    ngx_mcp_call_t             *shared;
    ngx_mcp_stream_t            st, get, heard_of;
    ngx_mcp_zone_use_t          use;
    ngx_mcp_upstream_session_t  l;

    start(ZONE_SIZE);
    ref = session("e", "t");
    heeded = session("e", "t");
    env_stream_open(&zone, heeded, 0, NULL, 0, 7, &heard_of);
    up = env_str("file:///a");
    ngx_mcp_session_subscribe(&zone, heeded, &up, NULL, 8);
    up = env_str("up");
    token = env_str("");
    id = env_str("9");
    env_call_open(&zone, ref, &id, &token, 8, 90, &plain);
    env_stream_open(&zone, ref, 0, NULL, 0, 1, &get);

    shared = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_ANON|MAP_SHARED, -1,
                  0);
    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        ngx_pid = getpid();
        zone.worker = NGX_MCP_NO_WORKER;
        memset(name, 1, sizeof(name));
        ngx_mcp_worker_claim(&zone, name);

        id = env_str("\"a\"");
        env_call_open(&zone, ref, &id, &token, 8, 2, shared);
        ngx_mcp_call_mark(&zone, shared->ref, NGX_MCP_CALL_STREAMED);
        answer(shared->ref, "p1", 0);
        env_stream_open(&zone, ref, shared->channel, NULL, 0, 3, &st);

        id = env_str("2");
        env_call_open(&zone, ref, &id, &token, 8, 2, &call);
        us_get(&zone, ref, &up, call.ref, &l);
        us_listen(&zone, heeded, &up);
        us_listens(&zone, heeded, &up, 0);
        env_stream_open(&zone, ref, 0, NULL, 0, 1, &st);

        kill(getpid(), SIGKILL);
    }

    waitpid(pid, &status, 0);
    env_unlock(&zone, pid);

    ngx_mcp_zone_use(&zone, &use);
    ok(use.workers == 2, "a worker died");
    ok(us_get(&zone, ref, &up, plain.ref, &l) == NGX_AGAIN,
       "its claim is there");
    is(take(&get), "declined", "its stream carries the line");

    listen_again();
    ngx_mcp_slot(&zone, 1)->heartbeat = 0;
    (void) ngx_mcp_worker_sweep(&zone);
    drain();

    ngx_mcp_zone_use(&zone, &use);
    ok(use.workers == 1 && counted(NGX_MCP_COUNTER_STREAMS_LOST) == 2
       && counted(NGX_MCP_COUNTER_CALLS_LOST) == 2
       && counted(NGX_MCP_COUNTER_CALLS_RUNNING) == 1
       && counted(NGX_MCP_COUNTER_STREAMS_OPEN) == 2, "it is reaped");
    ok(heard.calls == 1 && heard.streams == 2, "who waited is woken");
    is(take(&get), "again", "the line is carried on");
    is(take(&heard_of), "error",
       "a client whose upstream it listened to has to come back");
    ok(us_get(&zone, ref, &up, plain.ref, &l) == NGX_DECLINED
       && us_listen(&zone, heeded, &up) == NGX_OK,
       "its claims are given up");
    ok(us_listens(&zone, heeded, &up, 0) == 1
       && us_listens(&zone, heeded, &up, 1) == 0,
       "what it may have heard is a gap, unless the next one resumes");

    ok(env_stream_open(&zone, ref, shared->channel, NULL, 0, 3, &st)
       == NGX_OK, "its call's line is kept");
    is(take(&st), "p1 {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{"
       "\"code\":-32603,\"message\":\"worker died, the call may have run\","
       "\"data\":{\"reason\":\"worker died, the call may have run\"}}}! done",
       "and says what happened");

    munmap(shared, 4096);
    stop("death");
}


/* sweeping examines the blocks of a dead worker in parts, without the lock */

/* a worker sweeps while another one gives up its slot */

static ngx_uint_t  deaths;


static void
death(ngx_mcp_zone_t *z, ngx_pid_t pid, ngx_uint_t *lost)
{
    (void) z;
    (void) pid;
    (void) lost;

    deaths++;
}


static void
sweep_of_another(void)
{
    ngx_pid_t  pid;

    env_unlocked = NULL;

    pid = ngx_pid;
    ngx_pid = pid + 1;

    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }

    ngx_pid = pid;
}


static void
leave_tests(void)
{
    u_char                bell[NGX_MCP_NAME_LEN];
    ngx_mcp_zone_t        leaving;
    ngx_mcp_schema_t      schema;
    ngx_mcp_worker_sh_t  *w;

    start(ZONE_SIZE);

    schema = *zone.schema;
    schema.died = death;
    zone.schema = &schema;

    leaving = zone;
    leaving.worker = NGX_MCP_NO_WORKER;
    memset(bell, 2, sizeof(bell));
    ngx_mcp_worker_claim(&leaving, bell);
    w = ngx_mcp_slot(&zone, leaving.worker);

    deaths = 0;
    env_unlocked = sweep_of_another;
    ngx_mcp_worker_release(&leaving);
    ok(env_unlocked == NULL && w->state == NGX_MCP_WORKER_FREE,
       "a worker that leaves is given up by another one");
    ok(deaths == 0, "which does not take it for one that died");

    ngx_mcp_worker_claim(&leaving, bell);
    w->pid = ngx_pid + 1;
    ngx_mcp_worker_reap(&zone, leaving.worker, w->nonce);
    ok(w->state == NGX_MCP_WORKER_FREE && deaths == 1, "one that died is told");

    stop("workers that leave");
}


#define CROWD  12000
#define PART   8192

static void
reap_tests(void)
{
    int                   turns;
    u_char                bell[NGX_MCP_NAME_LEN];
    ngx_uint_t            i, own;
    ngx_mcp_ref_t         ref, last;
    ngx_mcp_zone_t        dying;
    ngx_mcp_stream_t      st;
    ngx_mcp_worker_sh_t  *w;

    start(16 * ZONE_SIZE);

    dying = zone;
    dying.worker = NGX_MCP_NO_WORKER;
    memset(bell, 2, sizeof(bell));
    ngx_mcp_worker_claim(&dying, bell);
    own = zone.worker;

    memset(&last, 0, sizeof(last));
    ref = session("e", "t");
    zone.worker = dying.worker;
    ok(env_stream_open(&zone, ref, 0, NULL, 0, 1, &st) == NGX_OK,
       "a stream of a worker");
    zone.worker = own;

    for (i = 0; i < CROWD; i++) {
        last = session("e", "t");
    }

    zone.worker = dying.worker;
    (void) env_stream_open(&zone, last, 0, NULL, 0, 2, &st);

    for (i = 1; i < 200; i++) {
        ref = session("e", "t");
        (void) env_stream_open(&zone, ref, 0, NULL, 0, 2 + i, &st);
    }

    zone.worker = own;

    w = ngx_mcp_slot(&zone, dying.worker);
    w->state = NGX_MCP_WORKER_DEAD;
    turns = 1;

    ok(ngx_mcp_worker_sweep(&zone) == NGX_AGAIN
       && counted(NGX_MCP_COUNTER_STREAMS_LOST) == 1
       && w->state == NGX_MCP_WORKER_DEAD, "a first part");

    while (counted(NGX_MCP_COUNTER_STREAMS_LOST) == 1) {
        (void) ngx_mcp_worker_sweep(&zone);
        turns++;
    }

    i = counted(NGX_MCP_COUNTER_STREAMS_LOST);
    ok(turns > 2 && i > 1 && i < 100, "some of them at a time");

    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }

    ok(counted(NGX_MCP_COUNTER_STREAMS_LOST) == 201
       && w->state == NGX_MCP_WORKER_FREE, "all are given up");

    /* a third worker dies while it drops a stream of a dead one */

    memset(bell, 3, sizeof(bell));
    dying.worker = NGX_MCP_NO_WORKER;
    ngx_mcp_worker_claim(&dying, bell);

    zone.worker = dying.worker;
    ok(env_stream_open(&zone, last, 0, NULL, 0, 1, &st) == NGX_OK,
       "another stream");
    zone.worker = own;

    w = ngx_mcp_slot(&zone, dying.worker);
    w->state = NGX_MCP_WORKER_DEAD;

    do {
        (void) ngx_mcp_worker_sweep(&zone);
    } while (zone.reap.from + PART <= st.ref.block);

    ok(zone.reap.from > PART && zone.reap.from <= st.ref.block,
       "the part before that stream");

    ngx_mcp_zone_lock(&zone);
    ngx_mcp_stream_drop_locked(&zone, ngx_mcp_block(&zone, st.ref.block),
                               NGX_MCP_COUNTER_STREAMS_CLIENT);
    env_unlock(&zone, ngx_pid);

    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }

    ok(counted(NGX_MCP_COUNTER_STREAMS_LOST) == 202
       && w->state == NGX_MCP_WORKER_FREE,
       "a stream that a rollback brings back is given up");

    stop("reap");
}


static ngx_uint_t  quits;


static void
on_quit(ngx_mcp_zone_t *z)
{
    quits++;
}


static ngx_connection_t *
bell(ngx_mcp_zone_t *z)
{
    /* the connection is the second member of what the zone points to */

    return ((ngx_connection_t **) z->doorbell)[1];
}


static void
doorbell_tests(void)
{
    ngx_cycle_t        cycle;
    ngx_mcp_ref_t      ref;
    ngx_mcp_zone_t     other, master;
    ngx_connection_t  *c;
    ngx_mcp_stream_t   st;

    env_time(1000000);
    env_zone(&zone, ZONE_SIZE);
    listen_again();
    memset(&cycle, 0, sizeof(cycle));
    cycle.pool = env_pool();
    cycle.log = &env_log;
    other = zone;

    ok(ngx_mcp_worker_join(&zone, &cycle, &handlers, on_quit) == NGX_OK
       && ngx_mcp_worker_join(&other, &cycle, &handlers, on_quit) == NGX_OK
       && zone.worker != other.worker, "two workers join");
    env_posted();

    ref = session("e", "t");
    env_stream_open(&other, ref, 0, NULL, 0, 33, &st);

    ok(say(ref, "x") == NGX_OK && say(ref, "y") == NGX_OK, "one says");
    env_posted();
    ok(heard.streams == 0, "it is not for itself");

    c = bell(&other);
    ok(recv(c->fd, big, 1, MSG_PEEK) == 0, "the other's bell is rung");
    c->read->handler(c->read);
    ok(heard.streams == 1 && heard.local == 33, "the other hears");
    ok(recv(c->fd, big, 1, 0) == -1, "of one bell");

    listen_again();
    tell("e", "t", "z");
    c->read->handler(c->read);
    ok(heard.groups == 1, "of the group");

    env_stream_open(&zone, ref, 0, NULL, 0, 34, &st);
    listen_again();
    say(ref, "x");
    env_posted();
    ok(heard.streams == 1 && heard.local == 34, "a worker hears itself");

    /* one dies, and a process without a socket is the next to take the lock */

    env_stream_open(&other, ref, 0, NULL, 0, 35, &st);
    c->read->handler(c->read);
    env_posted();

    master = zone;
    master.worker = NGX_MCP_NO_WORKER;
    master.doorbell = NULL;
    env_half_end(&zone, ref);
    ngx_mcp_zone_lock(&master);
    ngx_mcp_zone_unlock(&master);
    ok(zone.sh->noted == 0 && recv(c->fd, big, 1, 0) == -1,
       "no bell is rung by the master");

    listen_again();
    say(ref, "z");
    ok(recv(c->fd, big, 1, MSG_PEEK) == 0, "but by the next worker");
    ngx_mcp_slot(&zone, other.worker)->bits = 0;
    c->read->handler(c->read);
    ok(heard.streams == 1 && heard.local == 35, "which the other hears");

    ok(c->idle, "nginx closes it when it quits");
    c->close = 1;
    c->read->handler(c->read);
    c->close = 1;
    c->read->handler(c->read);
    ok(quits == 1 && c->close == 0, "quit, once");

    /* a worker that is gone without notice */

    close(c->fd);
    c->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    ok(ngx_mcp_doorbell_ring(&zone, other.worker) == NGX_DECLINED,
       "nobody has this bell");
    env_time(ngx_current_msec + 20000);
    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }
    ok(ngx_mcp_slot(&zone, other.worker)->state == NGX_MCP_WORKER_FREE,
       "so it is reaped, though its pid is in use");

    ngx_mcp_worker_leave(&other);
    ngx_mcp_worker_leave(&zone);
    ok(zone.doorbell == NULL && zone.worker == NGX_MCP_NO_WORKER, "leave");

    env_pool_free(cycle.pool);
    stop("doorbell");
}


/* there are more slots for workers until they take their share of the zone */

static void
places_tests(void)
{
    ngx_uint_t          i, n;
    ngx_cycle_t         cycle;
    ngx_mcp_ref_t       a, b;
    ngx_mcp_zone_t      all[1024], late, again;
    ngx_mcp_stream_t    first, alias;
    ngx_mcp_zone_use_t  use;

    start(NGX_MCP_ZONE_MIN_SIZE);

    memset(big, 1, NGX_MCP_NAME_LEN);

    for (n = 0; n < 1024; n++) {
        all[n] = zone;
        all[n].worker = NGX_MCP_NO_WORKER;

        if (ngx_mcp_worker_claim(&all[n], big) != NGX_OK) {
            break;
        }
    }

    ngx_mcp_zone_use(&zone, &use);
    ok(n > 512 && n < 1024 && use.workers == n + 1,
       "%u workers have a place", (unsigned) use.workers);
    ok(env_check(&zone) == 0, "the zone is sound");

    /* a worker without a slot */

    memset(&cycle, 0, sizeof(cycle));
    cycle.pool = env_pool();
    cycle.log = &env_log;

    late = zone;
    late.worker = NGX_MCP_NO_WORKER;

    ok(ngx_mcp_worker_join(&late, &cycle, &handlers, on_quit) == NGX_OK
       && late.worker == NGX_MCP_NO_WORKER, "another one lives without");

    for (i = 0; i <= n; i++) {
        ngx_mcp_slot(&zone, i)->heartbeat = ngx_current_msec + 1000;
    }

    env_time(ngx_current_msec + 1000);
    env_timers();
    ok(late.worker == NGX_MCP_NO_WORKER, "it waits");

    ngx_mcp_worker_release(&all[7]);
    env_time(ngx_current_msec + 1000);
    env_timers();
    ok(late.worker == 8, "and has a place as soon as there is one");
    ngx_mcp_worker_leave(&late);
    env_pool_free(cycle.pool);

    /* two of the workers share a bit */

    a = session("e", "t");
    b = session("e", "t");
    i = 3 + NGX_MCP_WATCH_BITS;
    env_stream_open(&all[3], a, 0, NULL, 0, 1, &first);
    env_stream_open(&all[i], b, 0, NULL, 0, 2, &alias);
    tell("e", "t", "y");
    listen_again();
    (void) ngx_mcp_worker_drain(&all[3]);
    (void) ngx_mcp_worker_drain(&all[i]);
    ok(heard.groups == 2, "both are told of the group's");

    ngx_mcp_stream_close(&all[3], &first, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_stream_close(&all[i], &alias, NGX_MCP_COUNTER_STREAMS_CLIENT);

    for (i = 0; i < n; i++) {
        ngx_mcp_worker_release(&all[i]);
    }

    ok(zone.sh->top == 1, "free places are looked at no more");

    again = zone;
    i = env_alerts;
    ok(ngx_mcp_state_init(&again, n / 2, 1) == NGX_OK
       && ngx_mcp_state_init(&again, n + 2, 1) == NGX_ERROR
       && env_alerts == i + 1, "more workers than places are refused");
    env_alerts = i;

    stop("places");
}


static ngx_mcp_topic_t
topic(const char *uri)
{
    ngx_mcp_topic_t  t;

    memset(&t, 0, sizeof(t));
    t.uri = env_str(uri);
    t.limit = 3;
    t.share = 3;

    return t;
}


/* counts events of topics with this text */

static ngx_uint_t
kept(const char *text)
{
    uint32_t              n;
    ngx_str_t             str;
    ngx_uint_t            found;
    ngx_mcp_event_sh_t   *e;
    ngx_mcp_record_sh_t  *owner;

    str = env_str(text);
    found = 0;

    for (n = 1; n < zone.sh->watermark; n++) {
        e = ngx_mcp_block(&zone, n);

        if (e->rec.block.type != NGX_MCP_EVENT) {
            continue;
        }

        owner = ngx_mcp_block(&zone, e->rec.owner.block);

        found += (owner->block.type == NGX_MCP_TOPIC
                  && ngx_mcp_text_equal(&zone, e, 0, e->rec.len, &str));
    }

    return found;
}


static ngx_uint_t
add(const char *endpoint, const char *tenant, const char *uri,
    const char *text)
{
    ngx_str_t        str, ep, tn;
    ngx_mcp_event_t  e;
    ngx_mcp_topic_t  t;

    str = env_str(text);
    e = event(&str);
    ep = env_str(endpoint ? endpoint : "");
    tn = env_str(tenant ? tenant : "");
    t = topic(uri);

    if (ngx_mcp_topic_add(&zone, endpoint ? &ep : NULL, tenant ? &tn : NULL,
                          &t, &e, NULL) != NGX_OK)
    {
        return 100;
    }

    return kept(text);
}


/* returns the events of a topic, and how the reading ended */

static const char *
kept_of(ngx_mcp_ref_t ref, const char *uri, uint64_t *after)
{
    static char      all[4096];
    char            *p;
    size_t           len;
    ngx_int_t        rc;
    ngx_uint_t       missed, any;
    ngx_mcp_ref_t    t;
    ngx_mcp_topic_t  in;
    static u_char    buf[NGX_MCP_TOPIC_BYTES];

    in = topic(uri);
    rc = ngx_mcp_topic_watch(&zone, env_caller(ref), &in, &t, after);

    if (rc != NGX_OK) {
        return rc == NGX_BUSY ? "busy" : "no";
    }

    p = all;
    any = 0;

    for ( ;; ) {
        rc = env_topic_next_one(&zone, env_caller(ref), t, 1, after, buf,
                                &len, &missed);
        any |= missed;

        if (rc != NGX_OK) {
            break;
        }

        p += snprintf(p, all + sizeof(all) - p, "%.*s ",
                      (int) ngx_min(len, 20), buf);
    }

    snprintf(p, all + sizeof(all) - p, "%s%s", any ? "missed " : "",
             rc == NGX_AGAIN ? "again" : "?");

    return all;
}


static const char *
topics_of(ngx_mcp_ref_t ref)
{
    static char             all[4096];
    char                   *p;
    u_char                  texts[NGX_MCP_TOPIC_TEXTS];
    ngx_int_t               rc;
    ngx_uint_t              i, n;
    ngx_mcp_topic_info_t    list[NGX_MCP_TOPIC_LIST];
    ngx_mcp_topic_cursor_t  cursor;

    memset(&cursor, 0, sizeof(cursor));
    p = all;
    *p = '\0';

    do {
        rc = ngx_mcp_topic_list(&zone, env_caller(ref), &cursor, texts, list,
                                &n);

        for (i = 0; i < n; i++) {
            p += snprintf(p, all + sizeof(all) - p, "%.*s ",
                          (int) list[i].uri.len, list[i].uri.data);
        }

    } while (rc == NGX_OK);

    return all;
}


/* a list is read in parts, between which topics come and go */

static void
topic_list_tests(void)
{
    char                    text[32], want[32];
    u_char                  uris[NGX_MCP_TOPIC_TEXTS];
    ngx_int_t               rc;
    ngx_str_t               endpoint, tenant, str;
    ngx_uint_t              i, n, next, wrong, parts, empty;
    ngx_mcp_ref_t           a, ref;
    ngx_mcp_event_t         e;
    ngx_mcp_topic_t         t;
    ngx_mcp_topic_info_t    list[NGX_MCP_TOPIC_LIST];
    ngx_mcp_topic_cursor_t  cursor;

    start(8 * 1024 * 1024);
    a = session_of("t", "a");

    endpoint = env_str("e");
    tenant = env_str("t");

    /* topics from 300 to 599 have events for others */

    for (i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "u:%u", (unsigned) i);
        t = topic(text);
        t.limit = 1000;
        str = env_str(text);
        e = event(&str);

        if (i >= 300 && i < 600) {
            e.identity = env_str("nobody");
        }

        if (ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL)
            != NGX_OK)
        {
            break;
        }
    }

    ok(i == 1000, "topics");

    memset(&cursor, 0, sizeof(cursor));
    next = 0;
    wrong = 0;
    parts = 0;
    empty = 0;

    do {
        rc = ngx_mcp_topic_list(&zone, env_caller(a), &cursor, uris, list, &n);

        wrong += (cursor.topics < 1000);
        empty += (n == 0);

        for (i = 0; i < n; i++) {
            next = (next == 300) ? 600 : next;
            snprintf(want, sizeof(want), "u:%u", (unsigned) next++);
            wrong += (list[i].uri.len != strlen(want)
                      || memcmp(list[i].uri.data, want, strlen(want)) != 0);
        }

        if (++parts == 2) {

            /*
             * All topics but the one that was looked at last are used once
             * more.
             */

            for (i = 0; i < 1000; i++) {

                if (i + 1 == next) {
                    continue;
                }

                snprintf(text, sizeof(text), "u:%u", (unsigned) i);
                t = topic(text);
                (void) ngx_mcp_topic_find(&zone, env_caller(a), &t, &ref);
            }

            t = topic("u:1000");
            t.limit = 1000;
            str = env_str("new");
            e = event(&str);
            (void) ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);

            snprintf(text, sizeof(text), "u:%u", (unsigned) next - 1);
            t = topic(text);
            ok(ngx_mcp_topic_find(&zone, env_caller(a), &t,
                                  &ref) == NGX_DECLINED,
               "the topic where it stands goes");
        }

    } while (rc == NGX_OK);

    ok(rc == NGX_DONE && wrong == 0 && next == 1001,
       "each of the others is listed once (%u, %u)", (unsigned) next,
       (unsigned) wrong);
    ok(empty > 0, "a part without any is no end");
}


/* a session's share counts, however many topics others have */

static void
share_tests(void)
{
    char             text[32];
    size_t           len;
    u_char           buf[NGX_MCP_TOPIC_BYTES];
    uint64_t         after;
    ngx_int_t        rc;
    ngx_uint_t       i, missed, made;
    ngx_mcp_ref_t    a, b, ref;
    ngx_mcp_topic_t  t;

    start(8 * 1024 * 1024);
    a = session_of("t", "a");
    b = session_of("t", "b");

    for (i = 0; i < 5004; i++) {
        snprintf(text, sizeof(text), "u:%u", (unsigned) i);
        t = topic(text);
        t.limit = 100000;
        t.share = i < 5000 ? 100000 : 2;
        after = NGX_MCP_TOPIC_BEGIN;

        rc = ngx_mcp_topic_watch(&zone, env_caller(i < 5000 ? a : b), &t,
                                 &ref, &after);

        if (rc != NGX_OK) {
            break;
        }

        /*
         * The others leave their shares unused; this one waits for all of its
         * own.
         */

        if (i >= 5000) {
            (void) env_topic_next_one(&zone, env_caller(b), ref, 1, &after,
                                      buf, &len,
                                      &missed);
        }
    }

    made = i;
    ok(rc == NGX_BUSY && made == 5002, "a share of 2 among %u topics is 2",
       (unsigned) made);

    ngx_mcp_topic_unwatch(&zone, ref);
    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);

    /* a client that has its share of the zone may wait for existing topics */

    b = session_of("t", "c");
    rc = NGX_OK;
    t.share = 100000;

    for (i = 0; i < 50000 && rc == NGX_OK; i++) {
        snprintf(text, sizeof(text), "v:%u", (unsigned) i);
        t.uri = env_str(text);
        rc = ngx_mcp_topic_watch(&zone, env_caller(b), &t, &ref, &after);
    }

    ok(rc == NGX_ERROR, "no room for topic %u", (unsigned) i);

    t.uri = env_str("u:0");
    ok(ngx_mcp_topic_watch(&zone, env_caller(b), &t, &ref, &after) == NGX_OK,
       "but for one that is there");

    stop("shares of topics");
}


/* a client that has its share of the zone keeps its subscriptions */

static void
share_again_tests(void)
{
    char                   text[32];
    ngx_int_t              rc;
    ngx_str_t              uri, lengthy, shared, gone, supplied, id, none;
    ngx_uint_t             i;
    ngx_mcp_ref_t          a, b, us, other;
    ngx_mcp_call_t         call;
    ngx_mcp_session_new_t  in;

    start(1024 * 1024);
    a = session_of("t", "a");
    b = session_of("t", "b");

    in = new_session("e", "t");
    (void) us_shared(&zone, &in, &us);
    in = new_session("e", "t");
    in.list_key = env_str("of another audience");
    (void) us_shared(&zone, &in, &other);

    memset(big, 'l', 8000);
    lengthy.data = big;
    lengthy.len = 8000;
    shared = env_str("s:1");
    gone = env_str("s:2");
    supplied = env_str("s:3");
    uri = env_str("p:1");

    ok(ngx_mcp_session_subscribe(&zone, b, &uri, NULL, 100000) == NGX_OK
       && ngx_mcp_session_subscribe(&zone, b, &lengthy, NULL, 100000) == NGX_OK
       && ngx_mcp_interest_join(&zone, us, b, &shared, 100000)
          == NGX_AGAIN
       && ngx_mcp_interest_join(&zone, other, b, &gone, 100000)
          == NGX_AGAIN
       && ngx_mcp_interest_join(&zone, us, a, &supplied, 8) == NGX_AGAIN,
       "subscribed");

    us_shared_end(&zone, other);

    id = env_str("1");
    none = env_str("");
    (void) env_call_open(&zone, b, &id, &none, 8, 1, &call);

    for (i = 0, rc = NGX_OK; i < 50000 && rc == NGX_OK; i++) {
        snprintf(text, sizeof(text), "q:%u", (unsigned) i);
        uri = env_str(text);
        rc = ngx_mcp_session_subscribe(&zone, b, &uri, NULL, 100000);
    }

    uri = env_str("p:1");

    ok(rc == NGX_DECLINED
       && ngx_mcp_interest_join(&zone, us, b, &supplied, 100000)
          == NGX_DECLINED, "no room for subscription %u", (unsigned) i);
    uri = env_str("one too many");
    ok(ngx_mcp_interest_join(&zone, us, b, &supplied, 4) == NGX_BUSY
       && ngx_mcp_session_subscribe(&zone, b, &uri, NULL, 4) == NGX_BUSY,
       "one beyond the limit is refused for that");
    uri = env_str("p:1");
    ok(ngx_mcp_session_subscribe(&zone, b, &uri, NULL, 100000) == NGX_OK
       && ngx_mcp_session_subscribe(&zone, b, &lengthy, NULL, 100000) == NGX_OK,
       "but for those that are there");
    ok(ngx_mcp_interest_join(&zone, us, b, &shared, 100000)
          == NGX_AGAIN,
       "shared ones as well");
    ok(ngx_mcp_interest_join(&zone, us, b, &gone, 100000) == NGX_DONE,
       "alone if there is no room to share it again");
    ok(ngx_mcp_interest_acquire(&zone, us, call.ref, &supplied) == NGX_OK,
       "a call waits on what another one subscribed to");

    stop("subscriptions of a client that has its share");
}


/*
 * Clients that have their shares do not prevent that a record which all share
 * is made.
 */

static void
share_own_tests(void)
{
    char                        client[16], text[32];
    ngx_str_t                   uri, id, up;
    ngx_uint_t                  n;
    ngx_mcp_ref_t               a, us, other;
    ngx_mcp_session_new_t       in;
    ngx_mcp_upstream_session_t  l;

    start(1024 * 1024);
    a = session_of("t", "modest");

    for (n = 0; n < 40; n++) {
        snprintf(client, sizeof(client), "c%u", (unsigned) n);

        while (session_of("t", client).block) { /* void */ }
    }

    ok(session_of("t", "late").block == 0
       && session_of("u", "in another tenant").block != 0,
       "a tenant has its share");

    up = env_str("up");
    id = env_str("there");
    uri = env_str("s:1");

    in = new_session("e", "t");
    in.identity = up;
    ok(us_shared(&zone, &in, &us) == NGX_OK
       && ngx_mcp_interest_join(&zone, us, a, &uri, 8) == NGX_AGAIN,
       "its sessions share one at the upstream");
    (void) us_get(&zone, us, &up, us, &l);
    ok(us_made(&zone, us, &up, &id, 1) == NGX_OK,
       "which has room for its id");

    /* shared sessions of a tenant */

    for (n = 0; n < 4000; n++) {
        in = new_session("e", "v");
        snprintf(text, sizeof(text), "key %u", (unsigned) n);
        in.list_key = env_str(text);

        if (us_shared(&zone, &in, &other) != NGX_OK) {
            break;
        }
    }

    ok(n < 4000 && session_of("w", "modest").block == 0,
       "%u shared ones take what is left but half of the reserve",
       (unsigned) n);
    ok(free_blocks() > zone.sh->blocks / 32 && say(a, "event") == NGX_OK,
       "an event goes at that");

    stop("sessions of the module in a full zone");
}


/* shares of leases, and a session that ended before it got one */

static void
share_lease_tests(void)
{
    ngx_str_t      key[4];
    ngx_mcp_ref_t  a, b;

    start(1024 * 1024);
    a = session_of("t", "a");
    b = session_of("t", "b");

    key[0] = env_str("key 0");
    key[1] = env_str("key 1");
    key[2] = env_str("key 2");
    key[3] = env_str("key 3");

    ok(ngx_mcp_topic_lease(&zone, &key[0], env_caller(a), 1, 2) == NGX_OK
       && ngx_mcp_topic_lease(&zone, &key[0], env_caller(a), 1, 2) == NGX_OK
       && ngx_mcp_topic_lease(&zone, &key[1], env_caller(a), 1, 2) == NGX_BUSY,
       "a session's share of leases");

    ok(ngx_mcp_topic_lease(&zone, &key[1], env_caller(b), 2, 2) == NGX_OK
       && ngx_mcp_topic_lease(&zone, &key[2], env_caller(b), 2,
                              2) == NGX_DECLINED,
       "its tenant's");

    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(ngx_mcp_topic_lease(&zone, &key[3], env_caller(b), 2, 2) == NGX_ABORT,
       "an ended session is no full zone");

    ngx_mcp_zone_lock(&zone);

    while (zone.sh->leases.head) {
        ngx_mcp_lease_drop_locked(&zone,
                                  ngx_mcp_block(&zone, zone.sh->leases.head));
    }

    ngx_mcp_zone_unlock(&zone);

    stop("shares of leases");
}


/* when clients are notified of changed topics */

static void
announce_tests(void)
{
    char              name[16];
    ngx_uint_t        i, told;
    ngx_mcp_stream_t  st[ANNOUNCED];

    start(ZONE_SIZE);

    for (i = 0; i < ANNOUNCED; i++) {
        snprintf(name, sizeof(name), "t%u", (unsigned) i);
        env_stream_open(&zone, session("e", name), 0, NULL, 0, 1, &st[i]);
    }

    ok(add("e", NULL, "u:a", "1") == ANNOUNCED
       && add("e", NULL, "u:b", "2") == ANNOUNCED, "topics of many tenants");

    for (i = 0, told = 0; i < ANNOUNCED; i++) {
        told += (take(&st[i])[0] == '{');
    }

    ok(told == ANNOUNCED, "all are told of the first");

    env_time(ngx_current_msec + 1001);
    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }

    for (i = 0, told = 0; i < ANNOUNCED; i++) {
        told += (take(&st[i])[0] == '{');
    }

    ok(told == ANNOUNCED, "of the second a second later, all %u",
       (unsigned) told);

    env_time(ngx_current_msec + NGX_MCP_TOPIC_IDLE);
    ok(add("e", "t0", "u:a", "3") == 1 && add("e", "t0", "u:c", "4") == 1
       && add("e", "t0", "u:d", "5") == 1, "one has new ones");
    ok(take(&st[0])[0] == '{', "which is told of the first");

    env_time(ngx_current_msec + 2);
    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }
    (void) ngx_mcp_worker_sweep(&zone);
    ok(take(&st[1])[0] == '{', "another, that lost its own, is told of that");
    ok(take(&st[0])[0] == 'a', "before the first is told of more");

    stop("announce");
}


static void
topic_tests(void)
{
    char              name[32];
    size_t            len;
    uint64_t          after, mark;
    ngx_str_t         uri, other, id, endpoint, tenant, str;
    ngx_uint_t        i, missed;
    ngx_mcp_ref_t     a, b, c, ref, more;
    ngx_mcp_event_t   e;
    ngx_mcp_topic_t   t;
    ngx_mcp_stream_t  st;
    u_char            uuid[NGX_MCP_UUID_LEN];

    static u_char  buf[NGX_MCP_TOPIC_BYTES];

    start(ZONE_SIZE);

    ok(add("e", "t", "u:a", "early") == 0, "no group, no topic");

    a = session("e", "t");
    b = session("e", "other");
    env_stream_open(&zone, a, 0, NULL, 0, 1, &st);
    is(take(&st), "again", "nothing is announced");

    ok(add("e", "t", "u:a", "1") == 1 && add("e", NULL, "u:a", "2") == 2
       && add("f", NULL, "u:a", "3") == 0, "kept in the groups that match");
    is(topics_of(a), "u:a ", "listed");
    is(take(&st), "{\"jsonrpc\":\"2.0\",\"method\":"
       "\"notifications/resources/list_changed\"} again", "announced once");

    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(a, "u:a", &after), "1 2 again", "since the session began");
    mark = after;
    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(b, "u:a", &after), "2 again", "of the tenant alone");

    c = session("e", "t");
    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(c, "u:a", &after), "again", "not what was before");
    after = 0;
    is(kept_of(c, "u:a", &after), "1 2 again", "unless asked for");
    after = mark + 1000;
    is(kept_of(c, "u:a", &after), "again", "a position of another zone");

    listen_again();
    add("e", "other", "u:a", "x");
    drain();
    ok(heard.topics == 1, "who waits is called");
    add("e", "other", "u:a", "y");
    drain();
    ok(heard.topics == 1, "once");
    add("e", "t", "u:a", "3");
    drain();
    ok(heard.topics == 2, "and who waits elsewhere, when it is his turn");
    after = mark;
    is(kept_of(a, "u:a", &after), "3 again", "after a position");

    /* the events that are kept */

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "%u", (unsigned) i);
        add("e", "other", "u:a", name);
    }

    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(b, "u:a", &after), "8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 "
       "23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 missed again",
       "the last 32");

    str.data = big;
    str.len = 7000;
    memset(big, 'b', 7000);
    e = event(&str);
    endpoint = env_str("e");
    tenant = env_str("other");
    t = topic("u:a");
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);
    is(kept_of(b, "u:a", &after),
       "bbbbbbbbbbbbbbbbbbbb bbbbbbbbbbbbbbbbbbbb missed again",
       "16k of them");
    str.len = 16385;
    ok(ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL)
       == NGX_ERROR, "one that is larger is not kept");

    /* events for one session, or one identity */

    session_id(c, uuid);
    id.data = uuid;
    id.len = sizeof(uuid);
    tenant = env_str("t");
    str = env_str("for c");
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, &id);
    str = env_str("for nobody");
    e.identity = env_str("nobody");
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);
    str = env_str("for subscribers");
    e = event(&str);
    e.uri[1] = env_str("file:///a");
    ngx_mcp_session_subscribe(&zone, a, &e.uri[1], NULL, 8);
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);
    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(a, "u:a", &after), "1 2 3 for subscribers again",
       "not of others");
    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(c, "u:a", &after), "3 for c again", "nor they of it");

    t = topic("u:hidden");
    e = event(&str);
    e.identity = env_str("nobody");
    ngx_mcp_topic_add(&zone, &endpoint, &tenant, &t, &e, NULL);
    is(topics_of(a), "u:a ", "one that shows nothing is not listed");

    /* the number of topics */

    env_time(ngx_current_msec + 10);
    add("e", "t", "u:b", "b");
    is(topics_of(a), "u:a u:b ", "the order in which they were made");
    ok(take(&st)[0] == 'a', "announced a second later");
    env_time(ngx_current_msec + 1000);
    (void) ngx_mcp_worker_sweep(&zone);
    is(take(&st), "{\"jsonrpc\":\"2.0\",\"method\":"
       "\"notifications/resources/list_changed\"} again", "for all together");

    uri = env_str("u:b");
    ngx_mcp_session_subscribe(&zone, a, &uri, NULL, 8);
    t = topic("u:b");
    ngx_mcp_topic_subscribe(&zone, a, &t);
    after = mark;
    is(kept_of(a, "u:hidden", &after), "again", "one is waited for");
    add("e", "t", "u:a", "4");
    ok(add("e", "t", "u:c", "c") == 1, "one more than there may be");
    is(topics_of(a), "u:b u:c ", "the one used longest ago goes");
    add("e", "t", "u:c", "c2");
    after = mark;
    is(kept_of(a, "u:c", &after), "c c2 missed again",
       "it could be one that went a moment ago");
    ok(after > mark, "which is said once");
    is(kept_of(a, "u:c", &after), "again", "one is used");
    ok(add("e", "t", "u:d", "d") == 100, "none is left to go");

    env_time(ngx_current_msec + 700000);
    ok(add("e", "t", "u:d", "d") == 1, "nobody waits that long");
    is(topics_of(a), "u:b u:c u:d ", "the waiter of old has gone");
    after = mark;
    is(kept_of(a, "u:e", &after), "again", "waiting for one more");
    ok(strstr(topics_of(a), "u:b") != NULL, "not for one subscribed to");

    after = mark;
    add("e", "t", "u:a", "again");
    is(kept_of(a, "u:a", &after), "again missed again",
       "one that comes back has lost some");

    env_time(ngx_current_msec + 700000);
    after = mark;
    add("e", "t", "u:f", "f");
    is(kept_of(a, "u:f", &after), "f again", "later that is forgotten");

    /* a topic that is read is dropped later than one with a younger event */

    more = session("e", "gone");
    t = topic("u:old");
    add("e", "gone", "u:old", "old");
    add("e", "gone", "u:new", "new");
    env_time(ngx_current_msec + 50000);
    ok(ngx_mcp_topic_find(&zone, env_caller(more), &t, &ref) == NGX_OK,
       "it is read");
    add("e", "gone", "u:1", "1");
    add("e", "gone", "u:2", "2");
    is(topics_of(more), "u:old u:1 u:2 ", "another one goes");
    add("e", "gone", "u:3", "3");
    is(topics_of(more), "u:1 u:2 u:3 ", "and it");
    env_time(ngx_current_msec + 30000);
    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(more, "u:old", &after), "missed again", "which is said");
    ngx_mcp_session_end(&zone, more, NGX_MCP_COUNTER_SESSIONS_DELETED);

    /* other resources */

    t = topic("file:///x");
    t.other = 1;
    str = env_str("updated");
    e = event(&str);
    ok(ngx_mcp_topic_add(&zone, &endpoint, NULL, &t, &e, NULL) == NGX_OK
       && kept("updated") == 0, "another resource is not kept unasked");
    after = NGX_MCP_TOPIC_BEGIN;
    ok(ngx_mcp_topic_watch(&zone, env_caller(a), &t, &ref, &after) == NGX_OK
       && ngx_mcp_topic_add(&zone, &endpoint, NULL, &t, &e, NULL)
          == NGX_OK && kept("updated") == 1,
       "but from the first who waits on");
    ok(strstr(topics_of(a), "file") == NULL, "and never listed");

    /* a session's share: its unused topics go first, then it gets no more */

    t.share = 1;
    t.uri = env_str("file:///y");
    after = mark;
    ok(ngx_mcp_topic_watch(&zone, env_caller(b), &t, &more, &after) == NGX_OK,
       "another session's share");
    t.uri = env_str("file:///z");
    ok(ngx_mcp_topic_watch(&zone, env_caller(b), &t, &more, &after) == NGX_OK
       && env_topic_next_one(&zone, env_caller(b), more, 1, &after, buf, &len,
                             &missed)
          == NGX_AGAIN, "one in place of another");
    t.uri = env_str("file:///y");
    ok(ngx_mcp_topic_watch(&zone, env_caller(b), &t, &more,
                           &after) == NGX_BUSY,
       "not in place of one that is waited for");
    ngx_mcp_topic_unwatch(&zone, more);
    t.uri = env_str("file:///x");
    t.share = 3;

    while (env_topic_next_one(&zone, env_caller(a), ref, 1, &after, buf, &len,
                              &missed)
           == NGX_OK) { /* void */ }

    ok(topic_wanted(&endpoint, NULL, &t.uri) == NGX_OK,
       "wanted by who waits");
    ngx_mcp_topic_unwatch(&zone, ref);
    ok(topic_wanted(&endpoint, NULL, &t.uri) == NGX_DECLINED,
       "for as long");
    ok(ngx_mcp_topic_find(&zone, env_caller(a), &t, &ref) == NGX_OK, "found");
    t = topic("u:none");
    ok(ngx_mcp_topic_find(&zone, env_caller(a), &t, &ref) == NGX_DECLINED,
       "not found");

    /* a group that loses its sessions */

    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(add("e", "other", "u:a", "later") == 1, "its topics stay");
    b = session("e", "other");
    after = NGX_MCP_TOPIC_BEGIN;
    is(kept_of(b, "u:a", &after), "again", "with what was before");
    ngx_mcp_session_end(&zone, b, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(env_check(&zone) == 0, "the zone is sound");

    env_time(ngx_current_msec + NGX_MCP_TOPIC_IDLE + 1);
    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }
    ok(add("e", "other", "u:a", "x") == 0, "for an hour");
    other = env_str("u:e");
    endpoint = env_str("e");
    tenant = env_str("t");
    ok(topic_wanted(&endpoint, NULL, &uri) == NGX_OK
       && topic_wanted(&endpoint, &tenant, &uri) == NGX_OK
       && topic_wanted(&endpoint, &endpoint, &uri)
          == NGX_DECLINED
       && topic_wanted(&endpoint, NULL, &other)
          == NGX_DECLINED, "who is subscribed to is wanted");
    is(topics_of(a), "u:b ", "as all do, unless subscribed to");
    ngx_mcp_session_unsubscribe(&zone, a, &uri);
    env_time(ngx_current_msec + NGX_MCP_TOPIC_IDLE + 1);
    while (ngx_mcp_worker_sweep(&zone) == NGX_AGAIN) { /* void */ }
    is(topics_of(a), "", "then that one too");

    /* a death while a session with topics ends */

    add("e", "t", "u:a", "1");
    ngx_mcp_session_subscribe(&zone, a, &uri, NULL, 8);
    t = topic("u:b");
    ngx_mcp_topic_subscribe(&zone, a, &t);
    env_half_end(&zone, a);
    ok(env_check(&zone) == 0, "undone");
    after = 0;
    is(kept_of(a, "u:a", &after), "1 again", "nothing is lost");

    stop("topics");
}


/* a transaction that the journal does not hold, and a death in it */

static void
journal_tests(void)
{
    char                   text[32];
    uint32_t               n, most, noted;
    ngx_str_t              str;
    ngx_uint_t             i;
    ngx_mcp_ref_t          a, b;
    ngx_mcp_event_t        e;
    ngx_mcp_stage_t        stage;
    ngx_mcp_session_sh_t  *s;

    start(ZONE_SIZE);

    a = session("e", "t");
    b = session("e", "t");

    for (i = 0; i < 4000; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned) i);
        str = env_str(text);
        e = event(&str);
        (void) ngx_mcp_log_session(&zone, a, &e);
    }

    /* a session ends in steps */

    most = zone.sh->journal_size;
    ngx_mcp_zone_lock(&zone);
    ngx_mcp_session_end_locked(&zone, ngx_mcp_session_locked(&zone, a),
                               NGX_MCP_COUNTER_SESSIONS_DELETED);
    noted = zone.sh->noted;
    ngx_mcp_zone_unlock(&zone);
    ok(noted && noted < most && !zone.sh->journal_full, "a large session ends");

    a = session("e", "t");
    env_half_end(&zone, a);
    ok(zone.sh->noted, "a death leaves something noted");
    ok(env_check(&zone) == 0 && zone.sh->noted == 0
       && zone.sh->recoveries == 1, "which is undone");
    ok(ngx_mcp_session_gets(&zone, a) == 0, "the session is there");

    /* the only free block is that of an event that was just dropped */

    str = env_str("the first event");
    e = event(&str);
    (void) ngx_mcp_log_session(&zone, a, &e);
    s = ngx_mcp_block(&zone, a.block);
    n = s->log.list.head;

    str = env_str("another one");
    ngx_mcp_stage_init(&zone, &stage, NGX_MCP_EVENT, &str, 1);

    ngx_mcp_zone_lock(&zone);
    ngx_mcp_log_drop_locked(&zone, ngx_mcp_block(&zone, n));
    zone.sh->free = 0;
    zone.sh->blocks = zone.sh->watermark;
    ok(ngx_mcp_log_add_locked(&zone, s, &e, NULL, &stage)
       == ngx_mcp_block(&zone, n), "takes the block of the one before");
    env_unlock(&zone, ngx_pid);

    ok(env_check(&zone) == 0, "a death undoes that");
    str = env_str("the first event");
    ok(s->log.list.head == n && ngx_mcp_text_equal(&zone,
                                    ngx_mcp_block(&zone, n), 0, str.len, &str),
       "the event is there");

    /* a small journal, as if too much had been changed */

    env_lost = 1;
    zone.sh->journal_size = 512;
    env_half_end(&zone, a);
    zone.sh->journal_size = most;
    ok(zone.sh->journal_full && env_alerts == 1, "an update that is too large");
    ngx_mcp_zone_lock(&zone);
    ngx_mcp_zone_unlock(&zone);
    ok(env_check(&zone) == 0 && zone.sh->watermark == 1 && env_alerts == 2,
       "the zone is emptied");
    env_alerts = 0;
    env_lost = 0;
    ok(ngx_mcp_session_gets(&zone, a) == NGX_DECLINED
       && ngx_mcp_session_gets(&zone, b) == NGX_DECLINED,
       "no session is there");
    a = session("e", "t");
    b = session("e", "t");
    str = env_str("on");
    e = event(&str);
    ok(ngx_mcp_log_session(&zone, b, &e) == NGX_OK && env_check(&zone) == 0,
       "it goes on");

    stop("journal");
}


/* finds the same session in a zone that was read from a file */

static ngx_mcp_ref_t
again(ngx_str_t *id)
{
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_sh_t  *s;

    memset(&ref, 0, sizeof(ref));

    ngx_mcp_zone_lock(&zone);

    s = ngx_mcp_session_lookup_locked(&zone, id);

    if (s) {
        ref = ngx_mcp_ref(&zone, s);
    }

    ngx_mcp_zone_unlock(&zone);

    return ref;
}


static void
renew(size_t size)
{
    ok(env_check(&zone) == 0, "before a restart: the zone is sound");
    ngx_mcp_worker_release(&zone);
    env_zone_free(&zone);
    start(size);
    zone.name = env_str("main");
}


/* a subscriber that has no session of a client */

static void
listen_tests(void)
{
    ngx_str_t              uri, str;
    ngx_uint_t             n;
    ngx_mcp_ref_t          ref;
    ngx_mcp_event_t        e;
    ngx_mcp_stream_t       st;
    ngx_mcp_session_t      s = { 0 };
    ngx_mcp_session_new_t  in;

    start(ZONE_SIZE);

    in = new_session("e", "t");
    in.listens = 1;
    in.offered = NGX_MCP_OFFERED_TOOLS;

    ok(ngx_mcp_session_create(&zone, &in, &ref) == NGX_OK, "listens");
    ok(ngx_mcp_session_find(&zone, &in.id, &in.endpoint, &in.tenant,
                            &in.identity, &s) == NGX_DECLINED
       && !ngx_mcp_session_exists(&zone, &in.id, &in.endpoint),
       "no client may use its id");
    ok(counted(NGX_MCP_COUNTER_SESSIONS_LIVE) == 0
       && counted(NGX_MCP_COUNTER_LISTENS_OPEN) == 1, "it is no session");

    uri = env_str("file:///a");
    ok(ngx_mcp_session_subscribe(&zone, ref, &uri, NULL, 9) == NGX_OK,
       "it wants a resource");

    ok(env_stream_open(&zone, ref, 0, NULL, 8, 1, &st) == NGX_OK, "open");

    tell("e", "t", "a message");

    str = env_str("tools");
    e = event(&str);
    e.flags = NGX_MCP_EVENT_OFFERED(NGX_MCP_OFFERED_TOOLS);
    (void) env_tell(&zone, &in.endpoint, &in.tenant, &e, &n);

    str = env_str("prompts");
    e = event(&str);
    e.flags = NGX_MCP_EVENT_OFFERED(NGX_MCP_OFFERED_PROMPTS);
    (void) env_tell(&zone, &in.endpoint, &in.tenant, &e, &n);

    str = env_str("a");
    e = event(&str);
    e.uri[0] = uri;
    (void) env_tell(&zone, &in.endpoint, &in.tenant, &e, &n);

    str = env_str("b");
    e = event(&str);
    e.uri[0] = env_str("file:///b");
    (void) env_tell(&zone, &in.endpoint, &in.tenant, &e, &n);

    is(take(&st), "tools a again", "it gets the changes that it wants");

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    ok(counted(NGX_MCP_COUNTER_LISTENS_OPEN) == 0
       && counted(NGX_MCP_COUNTER_SESSIONS_DELETED) == 0,
       "it ends with its stream");
    ok(env_check(&zone) == 0, "the zone is sound");
}


/*
 * Returns the most that is written under one hold of the lock; all: the total.
 */

static size_t
largest_slice(size_t *all)
{
    size_t                 largest, len;
    uint32_t               next;
    ngx_int_t              rc;
    ngx_mcp_tlv_t          out;
    ngx_mcp_save_counts_t  counts = { 0 };
    static u_char          room[256 * 1024];

    *all = 0;
    largest = 0;
    next = 0;

    do {
        out.start = out.pos = room;
        out.end = room + sizeof(room);

        rc = ngx_mcp_save_slice(&zone, &out, &next, &counts);

        len = out.pos - out.start;
        largest = ngx_max(largest, len);
        *all += len;

    } while (rc == NGX_AGAIN);

    return rc == NGX_DONE ? largest : sizeof(room);
}


static void
restart_tests(void)
{
    u_char                 buf[64];
    size_t                 size, len;
    uint64_t               after;
    ngx_str_t              uri, file, key, id[3], up, none, str;
    ngx_uint_t             i, n, missed;
    ngx_pool_t            *pool;
    ngx_mcp_ref_t          ref[3], us, call, watch, more;
    ngx_mcp_call_t         c;
    ngx_mcp_lease_t        lease;
    ngx_mcp_topic_t        t;
    ngx_mcp_event_t        e;
    ngx_mcp_stream_t       st;
    ngx_mcp_session_t      s = { 0 };
    ngx_mcp_session_new_t  in;
    ngx_mcp_state_file_t   state;
    static char            name[64], ids[3][NGX_MCP_UUID_LEN + 1];

    ngx_mcp_upstream_session_t  made;
    ngx_mcp_lease_checkpoint_t  left;

    start(ZONE_SIZE);
    zone.name = env_str("main");
    pool = env_pool();

    snprintf(name, sizeof(name), "/tmp/mcp-state-%d", (int) getpid());
    file = env_str(name);
    up = env_str("up");
    none = env_str("");

    memset(&state, 0, sizeof(state));
    state.name = file;
    state.started = 1000;
    state.master = getpid();

    ok(ngx_mcp_state_read(&zone, &state) == NGX_DECLINED, "there is no file");

    for (i = 0; i < 3; i++) {
        in = new_session("e", i == 2 ? "u" : "t");
        in.limit = 10;
        in.limit_key = env_str("key");
        in.client = env_str("client");
        in.list_key = env_str("list");
        ok(ngx_mcp_session_create(&zone, &in, &ref[i]) == NGX_OK, "session");
        memcpy(ids[i], in.id.data, in.id.len);
        id[i].data = (u_char *) ids[i];
        id[i].len = in.id.len;
    }

    (void) ngx_mcp_session_find(&zone, &id[0], &in.endpoint,
                                &(ngx_str_t) ngx_string("t"), &in.identity,
                                &s);
    ngx_mcp_session_set_level(&zone, ref[0], NGX_MCP_LEVEL_WARNING);

    (void) env_stream_open(&zone, ref[0], 0, NULL, 0, 1, &st);
    say(ref[0], "own 1");
    tell("e", "t", "shared 1");
    tell("e", NULL, "wide 1");
    is(take(&st), "own 1 shared 1 wide 1 again", "delivered");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    say(ref[0], "own 2");
    tell("e", NULL, "wide 2");
    tell("e", "t", "shared 2");
    memset(big, 'x', 900);
    big[900] = '\0';
    say(ref[0], (char *) big);

    /* three subscriptions: a private one, a shared one, and one to a topic */

    in = new_session("e", "t");
    in.list_key = env_str("list");
    in.identity = up;
    ok(us_shared(&zone, &in, &us) == NGX_OK, "a shared upstream session");
    ok(us_get(&zone, us, &up, us, &made) == NGX_DECLINED
       && us_made(&zone, us, &up, &(ngx_str_t) ngx_string("there"), 3)
          == NGX_OK, "is made");

    i = NGX_MCP_LEVEL_INFO;
    ok(us_peek(&zone, us, &up, &made) == NGX_OK
       && ngx_mcp_upstream_session_level(&zone, &made, NGX_MCP_LEVEL_UNSET, &i)
          == NGX_AGAIN
       && ngx_mcp_upstream_session_level(&zone, &made, NGX_MCP_LEVEL_INFO, &i)
          == NGX_OK, "with a log level");

    uri = env_str("file:///alone");
    ok(ngx_mcp_session_subscribe(&zone, ref[0], &uri, &up, 9) == NGX_OK,
       "alone");
    uri = env_str("file:///together");
    ok(ngx_mcp_interest_join(&zone, us, ref[0], &uri, 9) == NGX_AGAIN
       && ngx_mcp_interest_join(&zone, us, ref[1], &uri, 9) == NGX_AGAIN,
       "together");

    ok(us_get(&zone, ref[0], &up, us, &made) == NGX_DECLINED
       && us_made(&zone, ref[0], &up, &(ngx_str_t) ngx_string("mine"), 2)
          == NGX_OK, "an upstream session of its own");

    ok(add("e", "t", "u:a", "kept 1") == 1 && add("e", "t", "u:a", "kept 2"),
       "a topic");

    t = topic("file:///first");
    t.other = 1;
    t.share = 1;
    t.limit = 9;
    after = NGX_MCP_TOPIC_BEGIN;
    ok(ngx_mcp_topic_watch(&zone, env_caller(ref[1]), &t, &watch, &after)
       == NGX_OK, "a session's share of topics");
    ngx_mcp_topic_unwatch(&zone, watch);
    str = env_str("first");
    e = event(&str);
    in = new_session("e", "t");
    ok(ngx_mcp_topic_add(&zone, &in.endpoint, &in.tenant, &t, &e, NULL)
       == NGX_OK, "an event of that topic");

    key = env_str("own 5 lease");
    ok(ngx_mcp_lease_ensure(&zone, &key) == NGX_OK, "a lease");

    ok(env_call_open(&zone, ref[1], &(ngx_str_t) ngx_string("7"), &none,
                     9, 3, &c) == NGX_OK, "a call runs");
    ngx_mcp_call_mark(&zone, c.ref, NGX_MCP_CALL_STREAMED);
    call = c.ref;
    say(call, "begun");
    ok(tell_once("s", "first", "once", &n) == NGX_OK, "an id");

    ok(ngx_mcp_state_write(&zone, &state, 1) == NGX_OK, "is written");
    env_pool_free(pool);
    pool = env_pool();

    renew(ZONE_SIZE);

    ok(ngx_mcp_state_read(&zone, &state) == NGX_OK, "is read");
    ok(env_check(&zone) == 0, "a zone that was read is sound");
    ok(counted(NGX_MCP_COUNTER_SESSIONS_LIVE) == 3, "all sessions");
    ok(counted(NGX_MCP_COUNTER_CALLS_RUNNING) == 0, "no call runs");

    for (i = 0; i < 3; i++) {
        ref[i] = again(&id[i]);
    }

    in = new_session("e", "t");
    ok(ngx_mcp_session_find(&zone, &id[0], &in.endpoint, &in.tenant,
                            &in.identity, &s) == NGX_OK
       && s.level == NGX_MCP_LEVEL_WARNING && s.offered == in.offered
       && s.revision == in.revision, "as it was");

    (void) env_stream_open(&zone, ref[0], 0, NULL, 0, 1, &st);
    ok(strncmp(take(&st), "own 2 wide 2 shared 2 xxx", 25) == 0,
       "what was not delivered, in its order");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    uri = env_str("file:///together");
    ok(ngx_mcp_session_subscribed(&zone, ref[0], &uri, NULL)
       && ngx_mcp_session_subscribed(&zone, ref[1], &uri, NULL)
       && !ngx_mcp_session_subscribed(&zone, ref[2], &uri, NULL)
       && ngx_mcp_interest_state(&zone, ref[1], &uri) == NGX_AGAIN,
       "a subscription that is shared");
    uri = env_str("file:///alone");
    ok(ngx_mcp_interest_state(&zone, ref[0], &uri) == NGX_DONE,
       "and one that is not");
    ok(us_peek(&zone, ref[0], &up, &made) == NGX_OK && made.id.len == 4
       && made.revision == 2, "its upstream session");

    in.list_key = env_str("list");
    in.identity = up;
    ok(us_shared(&zone, &in, &us) == NGX_OK
       && us_peek(&zone, us, &up, &made) == NGX_OK
       && made.level == NGX_MCP_LEVEL_INFO, "the level of the shared one");

    after = 0;
    is(kept_of(ref[0], "u:a", &after), "kept 1 kept 2 again", "a topic");

    after = NGX_MCP_TOPIC_BEGIN;
    ok(ngx_mcp_topic_watch(&zone, env_caller(ref[0]), &t, &watch, &after)
       == NGX_OK
       && env_topic_next_one(&zone, env_caller(ref[0]), watch, 9, &after, buf,
                             &len, &missed)
          == NGX_OK
       && env_topic_next_one(&zone, env_caller(ref[0]), watch, 9, &after, buf,
                             &len, &missed)
          == NGX_AGAIN, "a topic of another session's share");
    t.uri = env_str("file:///second");
    ok(ngx_mcp_topic_watch(&zone, env_caller(ref[0]), &t, &more, &after)
       == NGX_OK, "which is still charged to that one");
    ngx_mcp_topic_unwatch(&zone, watch);
    ngx_mcp_topic_unwatch(&zone, more);

    ok(ngx_mcp_lease_claim(&zone, &key, pool, &lease, &left) == NGX_OK,
       "a lease");
    ok(tell_once("s", "first", "once", &n) == NGX_DECLINED, "an id");

    (void) env_stream_open(&zone, ref[1], c.channel,
                           &(ngx_mcp_cursor_t) { 0, 0, 0 }, 0, 1, &st);
    ok(strstr(take(&st), "begun") != NULL, "the call's line");
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    /* large events of one session, in small steps */

    memset(big, 'x', 60000);
    big[60000] = '\0';

    for (i = 0; i < 8; i++) {
        say(ref[0], (char *) big);
    }

    ok(largest_slice(&size) < 128 * 1024 && size > 4 * 60000,
       "a hold of the lock writes little");

    (void) env_stream_open(&zone, ref[0], 0, NULL, 0, 1, &st);
    (void) take(&st);
    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    /* the file is written again, and read into a zone with little room */

    ok(ngx_mcp_state_write(&zone, &state, 0) == NGX_OK, "is written again");
    renew(ZONE_SIZE * 2);
    ok(ngx_mcp_state_read(&zone, &state) == NGX_OK && env_check(&zone) == 0
       && counted(NGX_MCP_COUNTER_SESSIONS_LIVE) == 3, "into a larger zone");

    for (i = 0; i < 6000; i++) {
        (void) session_of("many", "client");
    }

    n = counted(NGX_MCP_COUNTER_SESSIONS_LIVE);
    ok(ngx_mcp_state_write(&zone, &state, 1) == NGX_OK, "a full one");
    renew(ZONE_SIZE / 4);
    ok(ngx_mcp_state_read(&zone, &state) == NGX_OK && env_check(&zone) == 0
       && counted(NGX_MCP_COUNTER_SESSIONS_LIVE) > 100
       && counted(NGX_MCP_COUNTER_SESSIONS_LIVE) < (ngx_int_t) n,
       "into a small zone, as many as fit");

    /* another nginx was started later */

    state.started--;
    state.master++;
    ok(ngx_mcp_state_write(&zone, &state, 0) == NGX_DECLINED,
       "one that was started later writes it");
    unlink(name);
    ok(ngx_mcp_state_write(&zone, &state, 0) == NGX_OK, "or none does");
    unlink(name);

    ok(ngx_mcp_lease_claim(&zone, &key, pool, &lease, &left) == NGX_OK
       && ngx_mcp_lease_drop(&zone, &lease) == NGX_OK, "the lease");

    env_pool_free(pool);
    stop("restart");
}


int
main(void)
{
    journal_tests();
    topic_tests();
    topic_list_tests();
    announce_tests();
    share_tests();
    share_again_tests();
    share_own_tests();
    share_lease_tests();
    zone_tests();
    random_tests();
    session_tests();
    limit_tests();
    subscription_tests();
    shared_tests();
    refused_interests_tests();
    wanted_interests_tests();
    link_tests();
    server_request_tests();
    call_tests();
    parked_tests();
    parked_stream_tests();
    provider_tests();
    alone_tests();
    alone_topic_tests();
    line_tests();
    wanted_tests();
    gap_tests();
    eviction_tests();
    group_tests();
    window_tests();
    window_end_tests();
    knowledge_tests();
    idle_tests();
    full_tests();
    once_tests();
    missed_some_tests();
    identity_tests();
    whole_tests();
    behind_tests();
    many_tests();
    asked_tests();
    missed_tests();
    joined_tests();
    death_tests();
    leave_tests();
    reap_tests();
    doorbell_tests();
    places_tests();
    expire_tests();
    farewell_tests();
    listen_tests();
    restart_tests();

    ok(env_alerts == 0, "no alerts");

    return tap_done();
}
