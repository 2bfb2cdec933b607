
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A storm: several processes work on one zone at full speed and are killed at
 * random instants, while a model knows what each reader must see.
 *
 *   MCP_CRASH_SECONDS  how long (default 10)
 *   MCP_CRASH_SEED     of the parent's choices
 */

#include "env.h"

#include <sys/prctl.h>


#define CHILDREN   4
#define SESSIONS   48
#define GROUPS     3
#define RING       65536
#define STREAMS    8

#define ZONE_SIZE  (1024 * 1024)


/* the progress of a reader; changed as a whole */

typedef struct {
    uint32_t            epoch;
    ngx_mcp_cursor_t    cursor;
    uint64_t            own;            /* sequence number seen last */
    uint64_t            shared;         /* the same; 0: none yet */
    uint64_t            fed[2];         /* the same for both halves */
    uint64_t            lost;           /* events reported as lost */
    uint64_t            missing;        /* events known to be lost */
    ngx_uint_t          own_gap;        /* a gap was reported since */
    ngx_uint_t          shared_gap;
    ngx_uint_t          fed_gap[2];
} seen_t;


typedef struct {
    uint32_t            live;
    uint32_t            epoch;
    ngx_mcp_ref_t       ref;
    uint64_t            next;
    uint64_t            first;          /* first number of this epoch */
    u_char              logged[RING];
    uint32_t            current;
    seen_t              seen[2];
} slot_t;


typedef struct {
    uint64_t            next;
    u_char              logged[RING];
} group_t;


typedef struct {
    uint32_t            state;          /* 1: a line is to be answered */
    ngx_mcp_ref_t       session;
    uint32_t            channel;
} flight_t;


typedef struct {
    uint64_t            stop;
    ngx_atomic_t        errors;
    ngx_atomic_t        ops;
    ngx_atomic_t        consumed;
    ngx_atomic_t        gaps;
    ngx_atomic_t        resumed;
    ngx_atomic_t        answers;
    ngx_atomic_t        forgotten;
    ngx_atomic_t        claims;
    slot_t              slots[SESSIONS];
    group_t             groups[GROUPS];
    flight_t            flights[CHILDREN];
} model_t;


static ngx_mcp_zone_t    zone;
static model_t          *model;
static ngx_uint_t        self;

static ngx_mcp_stream_t  streams[STREAMS];   /* held, but not read */
static ngx_uint_t        nstreams;
static u_char            text[32768];

static ngx_mcp_lease_t   lease;              /* fence 0: not ours */
static uint64_t          feed;               /* event read last */


static void failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));


static void
failed(const char *fmt, ...)
{
    va_list  args;

    if (ngx_atomic_fetch_add(&model->errors, 1) > 50) {
        return;
    }

    fprintf(stderr, "# child %d: ", (int) self);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n");
}


static void on_task(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, uint32_t local,
    ngx_uint_t why)
{
}


static void on_group(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref)
{
}


static void on_zone(ngx_mcp_zone_t *z, uint64_t keys)
{
}


static void
on_farewell(ngx_mcp_zone_t *z, ngx_mcp_pending_delete_t *due)
{
    if (due->id.len != 10 || memcmp(due->id.data, "up-session", 10) != 0) {
        failed("a farewell to \"%.*s\"", (int) due->id.len, due->id.data);
    }
}


static void
on_lease(ngx_mcp_zone_t *z, ngx_str_t *key, ngx_uint_t why)
{
    if (key->len != 4 || memcmp(key->data, "feed", 4) != 0) {
        failed("a lease \"%.*s\"", (int) key->len, key->data);
    }

    if (why & NGX_MCP_LEASE_LOST) {
        lease.fence = 0;
    }
}


static ngx_mcp_worker_handlers_t  handlers = {
    .stream = on_task,
    .call = on_task,
    .group = on_group,
    .topic = on_group,
    .profiles = on_zone,
    .upstream_sessions = on_zone,
    .listeners = on_zone,
    .interests = on_zone,
    .pending_delete = on_farewell,
    .lease = on_lease,
    .lists = on_zone
};


static void
create(slot_t *m, ngx_uint_t n)
{
    char                   id[64], tenant[16];
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));

    snprintf(id, sizeof(id), "%08x-%04x-7000-8000-%012x",
             (unsigned) random(), (unsigned) n, (unsigned) random());
    snprintf(tenant, sizeof(tenant), "t%d", (int) (n % GROUPS));

    in.id = env_str(id);
    in.endpoint = env_str("endpoint");
    in.tenant = env_str(tenant);
    in.identity = env_str("an identity of some length, to have a chain here");
    in.initialize.data = text;
    in.initialize.len = random() % 2 ? random() % 20000 : 200;
    in.client_name = env_str("client");
    in.client_version = env_str("1");
    in.limit_key = in.tenant;
    in.limit = SESSIONS / GROUPS - 1;
    in.timeout = n % 8 < 4 ? 1800000 : 5;
    in.event_max = n % 3 == 0 ? 8 : 64;
    in.event_size = 16384;

    m->live = 0;
    ngx_mcp_barrier();

    if (ngx_mcp_session_create(&zone, &in, &ref) != NGX_OK) {
        return;
    }

    m->ref = ref;
    m->first = m->next + 1;
    m->epoch++;
    ngx_mcp_barrier();
    m->live = 1;
}


static ngx_mcp_event_t
event(ngx_str_t *parts, char *head, size_t size)
{
    ngx_mcp_event_t  e;

    memset(&e, 0, sizeof(e));

    parts[0] = env_str(head);
    parts[1].data = text;
    parts[1].len = size;
    e.parts = parts;
    e.nparts = 2;

    return e;
}


static size_t
any_size(void)
{
    long  r;

    r = random() % 100;

    return r < 80 ? random() % 300 : r < 97 ? random() % 3000
                  : random() % 18000;
}


static void
say(slot_t *m, ngx_uint_t n)
{
    char             head[64];
    uint64_t         seq;
    ngx_int_t        rc;
    ngx_str_t        parts[2];
    ngx_mcp_event_t  e;

    seq = m->next + 1;
    m->logged[seq % RING] = 0;
    ngx_mcp_barrier();
    m->next = seq;

    snprintf(head, sizeof(head), "O %u %u %llu ", (unsigned) n, m->epoch,
             (unsigned long long) seq);
    e = event(parts, head, any_size());

    rc = ngx_mcp_log_session(&zone, m->ref, &e);

    if (rc == NGX_OK) {
        m->logged[seq % RING] = 1;

    } else if (rc == NGX_DECLINED) {
        m->live = 0;
    }
}


static void
tell(ngx_uint_t n)
{
    char             head[64], name[16];
    uint64_t         seq;
    group_t         *g;
    ngx_str_t        parts[2], tenant;
    ngx_int_t        rc;
    ngx_uint_t       addressed;
    ngx_mcp_event_t  e;

    g = &model->groups[n];
    seq = g->next + 1;
    g->logged[seq % RING] = 0;
    ngx_mcp_barrier();
    g->next = seq;

    snprintf(head, sizeof(head), "G %u %llu ", (unsigned) n,
             (unsigned long long) seq);
    snprintf(name, sizeof(name), "t%d", (int) n);
    tenant = env_str(name);
    e = event(parts, head, any_size());

    rc = env_tell(&zone, NULL, &tenant, &e, &addressed);

    if (rc == NGX_OK && addressed) {
        g->logged[seq % RING] = 1;
    }
}


/* a feed whose events have numbers; one process reads it for all */

static void
feeding(void)
{
    char                        heads[2][64], id[32];
    unsigned                    i;
    ngx_str_t                   key, parts[2][2];
    ngx_pool_t                 *pool;
    ngx_mcp_post_t              post;
    ngx_mcp_consume_t           consume;
    ngx_mcp_delivery_t          d[2];
    ngx_mcp_lease_checkpoint_t  left;

    if (lease.fence == 0) {
        key = env_str("feed");
        pool = env_pool();

        if (ngx_mcp_lease_ensure(&zone, &key) == NGX_OK
            && ngx_mcp_lease_claim(&zone, &key, pool, &lease, &left) == NGX_OK)
        {
            (void) ngx_atomic_fetch_add(&model->claims, 1);
            snprintf(id, sizeof(id), "%.*s", (int) left.id.len, left.id.data);
            feed = strtoull(id, NULL, 10);
        }

        env_pool_free(pool);
        return;
    }

    if (random() % 64 == 0) {
        ngx_mcp_lease_release(&zone, &lease);
        lease.fence = 0;
        return;
    }

    (void) ngx_mcp_lease_renew(&zone, &lease);

    snprintf(id, sizeof(id), "%llu", (unsigned long long) feed + 1);

    memset(&consume, 0, sizeof(consume));
    memset(&post, 0, sizeof(post));
    memset(d, 0, sizeof(d));
    consume.lease = lease;
    consume.id = env_str(id);
    consume.rc = NGX_AGAIN;

    post.deliveries = d;
    post.n = 2;
    post.consume = &consume;

    for (i = 0; i < 2; i++) {
        snprintf(heads[i], sizeof(heads[i]), "F %u %llu ", i,
                 (unsigned long long) feed + 1);

        d[i].event = event(parts[i], heads[i], random() % 900);
    }

    switch (ngx_mcp_outbox_send(&zone, &post)) {

    case NGX_AGAIN:
    case NGX_ERROR:
    case NGX_OK:
        feed++;
        break;

    case NGX_ABORT:
        lease.fence = 0;
        break;

    default:
        failed("an event is not taken");
        break;
    }
}


static uint64_t
missing(u_char *logged, uint64_t from, uint64_t upto)
{
    uint64_t  n;

    for (n = 0; from < upto; from++) {
        n += logged[from % RING];
    }

    return n;
}


static void
look(slot_t *m, ngx_uint_t n, seen_t *s, char *got)
{
    unsigned            a, b;
    uint64_t            miss;
    unsigned long long  seq;

    if (sscanf(got, "O %u %u %llu ", &a, &b, &seq) == 3) {

        if (a != n || b != s->epoch || seq <= s->own) {
            failed("session %u.%u got own %u.%u %llu after %llu", (unsigned) n,
                   s->epoch, a, b, seq, (unsigned long long) s->own);
            return;
        }

        if (seq - s->own < RING / 2) {
            miss = missing(m->logged, s->own + 1, seq);
            s->missing += miss;

            if (miss && !s->own_gap) {
                failed("session %u.%u misses %llu own before %llu without a "
                       "gap", (unsigned) n, s->epoch,
                       (unsigned long long) miss, seq);
            }

        } else if (!s->own_gap) {
            failed("session %u misses many without a gap", (unsigned) n);
        }

        s->own = seq;
        s->own_gap = 0;

    } else if (sscanf(got, "G %u %llu ", &a, &seq) == 2) {

        if (a != n % GROUPS || seq <= s->shared) {
            failed("session %u.%u got shared %u %llu after %llu", (unsigned) n,
                   s->epoch, a, seq, (unsigned long long) s->shared);
            return;
        }

        if (s->shared && seq - s->shared < RING / 2) {
            miss = missing(model->groups[a].logged, s->shared + 1, seq);
            s->missing += miss;

            if (miss && !s->shared_gap) {
                failed("session %u.%u misses %llu shared before %llu without "
                       "a gap", (unsigned) n, s->epoch,
                       (unsigned long long) miss, seq);
            }
        }

        s->shared = seq;
        s->shared_gap = 0;

    } else if (sscanf(got, "F %u %llu ", &a, &seq) == 2) {

        if (seq <= s->fed[a]
            || (seq != s->fed[a] + 1 && s->fed[a] && !s->fed_gap[a]))
        {
            failed("session %u.%u got fed %u %llu after %llu", (unsigned) n,
                   s->epoch, a, seq, (unsigned long long) s->fed[a]);
        }

        s->fed[a] = seq;
        s->fed_gap[a] = 0;

    } else {
        failed("session %u got \"%.40s\"", (unsigned) n, got);
    }

    if (s->missing > s->lost) {
        failed("session %u.%u: %llu are missing, %llu were said", (unsigned) n,
               s->epoch, (unsigned long long) s->missing,
               (unsigned long long) s->lost);
        s->missing = 0;
    }
}


static void
reading(slot_t *m, ngx_uint_t n)
{
    char              buf[20100];
    size_t            len;
    seen_t            s;
    uint32_t          epoch;
    ngx_int_t         rc;
    ngx_uint_t        i, flags;
    ngx_mcp_ref_t     ref;
    ngx_mcp_cursor_t *from;
    ngx_mcp_stream_t  st;

    epoch = m->epoch;
    ngx_mcp_barrier();
    ref = m->ref;
    s.own = m->first - 1;
    ngx_mcp_barrier();

    if (!m->live || m->epoch != epoch) {
        return;
    }

    from = NULL;

    if (m->seen[m->current].epoch == epoch) {
        s = m->seen[m->current];
        from = &s.cursor;

    } else {
        i = s.own;
        memset(&s, 0, sizeof(s));
        s.own = i;
        s.epoch = epoch;
    }

    rc = env_stream_open(&zone, ref, 0, from, 3, 1, &st);

    if (rc != NGX_OK) {
        return;
    }

    if (from == NULL) {

        /* a reader that died may have taken events and not noted that */

        s.own_gap = 1;
        s.lost = RING;
    }

    for (i = 0; i < 40; i++) {
        rc = ngx_mcp_stream_read(&zone, &st, (u_char *) buf, sizeof(buf) - 1,
                                 &len, &flags);

        if (rc == NGX_OK) {
            buf[len] = '\0';
            look(m, n, &s, buf);
            (void) ngx_atomic_fetch_add(&model->consumed, 1);

        } else if (rc == NGX_ABORT) {
            s.lost += len;
            s.own_gap = 1;
            s.shared_gap = 1;
            s.fed_gap[0] = 1;
            s.fed_gap[1] = 1;
            (void) ngx_atomic_fetch_add(&model->gaps, 1);

        } else {
            break;
        }

        s.cursor = st.cursor;
        m->seen[!m->current] = s;
        ngx_mcp_barrier();
        m->current = !m->current;
    }

    if (rc != NGX_OK && rc != NGX_ABORT && rc != NGX_AGAIN
        && rc != NGX_ERROR && rc != NGX_DECLINED)
    {
        failed("take says %d", (int) rc);
    }

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
}


static void
calling(slot_t *m)
{
    char              head[64];
    ngx_str_t         id, token, parts[2];
    flight_t         *flight;
    ngx_uint_t        i;
    ngx_mcp_call_t    call;
    ngx_mcp_event_t   e;
    ngx_mcp_cursor_t  cursor;
    ngx_mcp_stream_t  st;

    flight = &model->flights[self];

    snprintf(head, sizeof(head), "%u", (unsigned) random() % 50);
    id = env_str(head);
    token = env_str("\"token\"");

    if (env_call_open(&zone, m->ref, &id, &token, 8, 1, &call) != NGX_OK) {
        return;
    }

    if (random() % 3 == 0) {
        ngx_mcp_call_close(&zone, call.ref);
        return;
    }

    ngx_mcp_call_mark(&zone, call.ref, NGX_MCP_CALL_STREAMED);

    flight->session = m->ref;
    flight->channel = call.channel;
    ngx_mcp_barrier();
    flight->state = 1;

    st.ref.block = 0;

    if (random() % 2) {
        (void) env_stream_open(&zone, m->ref, call.channel, NULL, 0, 1,
                               &st);
    }

    for (i = random() % 3; i; i--) {
        e = event(parts, "progress ", any_size());
        (void) ngx_mcp_log_call(&zone, call.ref, &e, &cursor);
    }

    e = event(parts, "answer ", random() % 300);
    e.flags = NGX_MCP_EVENT_RESPONSE;
    (void) ngx_mcp_log_call(&zone, call.ref, &e, &cursor);

    ngx_mcp_call_close(&zone, call.ref);

    if (st.ref.block) {
        ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_DONE);
    }

    flight->state = 0;
}


/* reads the rest of the call that ran when the former process died */

static void
landing(void)
{
    size_t            len;
    u_char            buf[20100];
    flight_t         *flight;
    ngx_int_t         rc;
    ngx_uint_t        flags, answered, gap;
    ngx_mcp_cursor_t  from;
    ngx_mcp_stream_t  st;

    flight = &model->flights[self];

    if (flight->state == 0) {
        return;
    }

    flight->state = 0;
    memset(&from, 0, sizeof(from));

    if (env_stream_open(&zone, flight->session, flight->channel, &from, 0,
                        1, &st) != NGX_OK)
    {
        (void) ngx_atomic_fetch_add(&model->forgotten, 1);
        return;
    }

    answered = 0;
    gap = 0;

    for ( ;; ) {
        rc = ngx_mcp_stream_read(&zone, &st, buf, sizeof(buf), &len, &flags);

        if (rc == NGX_OK) {
            answered |= flags & NGX_MCP_EVENT_RESPONSE;

        } else if (rc == NGX_ABORT) {
            gap = 1;

        } else {
            break;
        }
    }

    if (rc == NGX_DONE && answered) {
        (void) ngx_atomic_fetch_add(&model->answers, 1);

    } else if (rc != NGX_ERROR && !(rc == NGX_DONE && gap)) {
        failed("the line of a lost call says %d", (int) rc);
    }

    ngx_mcp_stream_close(&zone, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);
}


static void
others(slot_t *m)
{
    ngx_int_t                   rc;
    ngx_str_t                   name, id;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               none;
    ngx_mcp_profile_t           k;
    ngx_mcp_server_request_t    request;
    ngx_mcp_upstream_session_t  l;

    pool = env_pool();
    none.block = 0;
    none.gen = 0;

    switch (random() % 8) {

    case 0:
    case 1:
        name = env_str(random() % 2 ? "one" : "two");
        id = env_str("up-session");

        if (us_get(&zone, m->ref, &name, none, &l) == NGX_DECLINED) {
            if (random() % 4) {
                us_made(&zone, m->ref, &name, &id, 1);
            } else {
                us_fail(&zone, m->ref, &name);
            }
        } else if (random() % 4 == 0) {
            us_forget(&zone, m->ref, &name, l.serial);
        }

        break;

    case 2:
        name = env_str("one");

        if (us_listen(&zone, m->ref, &name) == NGX_OK) {
            us_unlisten(&zone, m->ref, &name, 0);
        }

        break;

    case 3:
        id = env_str("\"00000000-0000-7000-8000-000000000017\"");
        memset(&request, 0, sizeof(request));
        request.upstream = env_str("one");
        request.serial = 1;
        request.id = env_str("17");
        request.token = env_str("");
        ngx_mcp_server_request_open(&zone, m->ref, &id, &request);

        if (random() % 2) {
            ngx_mcp_server_request_find(&zone, m->ref, &id, random() % 2, pool,
                                        &request);
        }

        break;

    case 4:
        name = env_str(random() % 2 ? "file:///a" : "file:///b");

        if (random() % 2) {
            ngx_mcp_session_subscribe(&zone, m->ref, &name, NULL, 8);
        } else {
            ngx_mcp_session_unsubscribe(&zone, m->ref, &name);
        }

        break;

    case 5:
        name = env_str(random() % 2 ? "key a" : "key b");

        rc = ngx_mcp_profile_get(&zone, &name, 1, 2, pool, &k);

        if (rc == NGX_DECLINED || (rc == NGX_OK && k.ask)) {
            memset(&k, 0, sizeof(k));

            if (random() % 2) {
                k.what = NGX_MCP_PROFILE_LEGACY;
                k.result.data = text;
                k.result.len = any_size();
                ngx_mcp_profile_put(&zone, &name, 1, &k);

            } else {
                ngx_mcp_profile_fail(&zone, &name, 1, 1, &k);
            }

        } else if (random() % 2) {
            ngx_mcp_profile_back(&zone, &name);

        } else {
            ngx_mcp_profile_suspect(&zone, &name);
        }

        break;

    case 6:
        if (nstreams < STREAMS
            && env_stream_open(&zone, m->ref, 0, NULL, 3, 1,
                               &streams[nstreams]) == NGX_OK)
        {
            nstreams++;
            (void) ngx_atomic_fetch_add(&model->resumed, 1);
        }

        break;

    default:
        if (nstreams) {
            ngx_mcp_stream_close(&zone, &streams[--nstreams],
                                 NGX_MCP_COUNTER_STREAMS_SESSION);
        }

        break;
    }

    env_pool_free(pool);
}


/* the events of a topic are in order for any reader */

static void
topics(slot_t *m, ngx_uint_t n)
{
    char             head[64], name[16];
    size_t           len;
    uint64_t         after, before;
    ngx_int_t        rc;
    ngx_str_t        parts[2], tenant;
    ngx_uint_t       missed;
    ngx_mcp_ref_t    ref;
    ngx_mcp_event_t  e;
    ngx_mcp_topic_t  topic;
    static u_char    buf[NGX_MCP_TOPIC_BYTES];

    memset(&topic, 0, sizeof(topic));

    snprintf(head, sizeof(head), "events://topic %d/latest",
             (int) random() % 12);
    topic.uri = env_str(head);
    topic.limit = 8;
    topic.share = 3;
    topic.unannounced = 1;
    topic.other = random() % 4 == 0;

    snprintf(name, sizeof(name), "t%d", (int) (n % GROUPS));
    tenant = env_str(name);

    switch (random() % 4) {

    case 0:
    case 1:
        e = event(parts, "T", any_size());
        (void) ngx_mcp_topic_add(&zone, NULL, &tenant, &topic, &e, NULL);
        break;

    case 2:
        (void) ngx_mcp_session_subscribe(&zone, m->ref, &topic.uri, NULL, 8);
        ngx_mcp_topic_subscribe(&zone, m->ref, &topic);
        break;

    default:
        after = NGX_MCP_TOPIC_BEGIN;

        if (ngx_mcp_topic_watch(&zone, env_caller(m->ref), &topic, &ref,
                                &after)
            != NGX_OK)
        {
            break;
        }

        for ( ;; ) {
            before = after;
            rc = env_topic_next_one(&zone, env_caller(m->ref), ref, 1, &after,
                                    buf, &len, &missed);
            if (rc != NGX_OK) {
                break;
            }

            if (after <= before || buf[0] != 'T') {
                failed("a topic gives %llu after %llu",
                       (unsigned long long) after,
                       (unsigned long long) before);
                break;
            }
        }
    }
}


/* a list repeats one letter: a copy with two letters is torn */

static void
listing(slot_t *m, ngx_uint_t n)
{
    char                    name[16];
    size_t                  at;
    u_char                 *p;
    ngx_int_t               rc;
    ngx_uint_t              i, kind;
    ngx_mcp_ref_t           ref, part;
    ngx_mcp_list_t          list;
    ngx_mcp_sources_t      *sources;
    ngx_mcp_audience_t      a;
    ngx_mcp_list_content_t  c;
    static u_char           buf[100000];

    memset(&c, 0, sizeof(c));
    memset(&list, 0, sizeof(list));

    snprintf(name, sizeof(name), "t%d", (int) (n % GROUPS));
    a.endpoint = env_str("endpoint");
    a.tenant = env_str(name);
    a.key = env_str("");
    kind = random() % NGX_MCP_LIST_KINDS;
    c.kind = kind;
    sources = env_sources(1 + random() % 4);

    if (ngx_mcp_audience_get(&zone, &a, sources, 3, &ref) != NGX_OK) {
        return;
    }

    rc = ngx_mcp_list_get(&zone, ref, sources, kind, 1, &list);
    part = env_part(&zone, ref, random() % sources->n);

    switch (random() % 11) {

    case 10:
        ngx_mcp_list_forget(&zone, &a.endpoint,
                            random() % 2 ? &a.tenant : NULL, NULL, 1 << kind);
        break;

    case 9:
        c.text.data = buf;
        c.text.len = any_size();
        c.order[0] = (u_char) ('a' + random() % 8);
        c.hint.until = ngx_current_msec + 1000;
        c.hint.public = 1;
        memset(buf, c.order[0], c.text.len);
        (void) ngx_mcp_list_keep(&zone, ref, &sources->elts[0].name, &c,
                                 ngx_mcp_lists_forgotten(&zone));
        break;

    case 8:

        /* as another configuration does */

        zone.epoch++;
        (void) ngx_mcp_audience_sync(&zone, ref,
                                     env_sources(1 + random() % 4));
        break;

    case 0:
        (void) ngx_mcp_audience_join(&zone, m->ref, ref);
        break;

    case 1:
        (void) ngx_mcp_list_signal(&zone, ref, part, NGX_MCP_LIST_ALL,
                                   random() % 2);
        break;

    case 2:
        ngx_mcp_list_pass_through(&zone, part, kind, random() % 2, 1, 1);
        break;

    case 3:
        ngx_mcp_audience_drop(&zone, ref, 0);
        break;

    case 4:
    case 5:
        c.text.data = buf;
        c.text.len = any_size();
        c.digest[0] = c.order[0] = (u_char) ('a' + random() % 8);
        memset(buf, c.order[0], c.text.len);
        (void) ngx_mcp_list_put(&zone, part, &c, 1, 1);
        break;

    default:

        if (rc != NGX_OK
            || ngx_mcp_list_read(&zone, &list, buf) != NGX_OK)
        {
            break;
        }

        for (i = 0, p = buf; i < list.nparts; p += list.parts[i].len, i++) {
            for (at = 1; at < list.parts[i].len; at++) {
                if (p[at] != p[0]) {
                    failed("a list is torn at %u of %u", (unsigned) at,
                           (unsigned) list.parts[i].len);
                    break;
                }
            }
        }
    }
}


static void
child(ngx_uint_t n, unsigned seed)
{
    slot_t      *m;
    u_char       name[NGX_MCP_NAME_LEN];
    ngx_uint_t   i, mine;
    long         r;

    /* or it would run on, with the output of the test open */

    prctl(PR_SET_PDEATHSIG, SIGKILL);

    self = n;
    ngx_pid = getpid();
    zone.worker = NGX_MCP_NO_WORKER;
    srandom(seed);
    memset(name, 0, sizeof(name));

    env_time(env_now());

    if (ngx_mcp_worker_claim(&zone, name) != NGX_OK) {
        failed("no slot");
        _exit(1);
    }

    landing();

    while (!((volatile model_t *) model)->stop) {

        for (i = 0; i < 16; i++) {
            mine = random() % (SESSIONS / CHILDREN) * CHILDREN + n;
            m = &model->slots[mine];
            r = random() % 100;

            if (!m->live || m->ref.block == 0) {
                create(m, mine);

            } else if (r < 30) {
                say(m, mine);

            } else if (r < 40) {
                if (n < GROUPS) {
                    tell(n);
                }

            } else if (r < 50) {
                feeding();

            } else if (r < 70) {
                mine = random() % (SESSIONS / CHILDREN) * CHILDREN
                       + (n + 1) % CHILDREN;
                reading(&model->slots[mine], mine);

            } else if (r < 73) {
                topics(m, mine);

            } else if (r < 76) {
                listing(m, mine);

            } else if (r < 83) {
                calling(m);

            } else if (r < 98) {
                others(m);

            } else {
                m->live = 0;
                ngx_mcp_session_end(&zone, m->ref,
                                    NGX_MCP_COUNTER_SESSIONS_DELETED);
            }
        }

        (void) ngx_mcp_worker_drain(&zone);

        if (random() % 16 == 0) {
            env_time(env_now());
            (void) ngx_mcp_worker_sweep(&zone);
        }

        (void) ngx_atomic_fetch_add(&model->ops, 16);
    }

    if (n % 2) {
        ngx_mcp_worker_release(&zone);
    }

    _exit(0);
}


static pid_t
spawn(ngx_uint_t n)
{
    pid_t     pid;
    unsigned  seed;

    seed = (unsigned) random();
    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        child(n, seed);
    }

    return pid;
}


static void
finish(void)
{
    uint32_t               n;
    ngx_uint_t             i;
    ngx_mcp_session_sh_t  *s;
    ngx_mcp_profile_sh_t  *k;

    for (i = 0; i < zone.sh->top; i++) {
        if (ngx_mcp_slot(&zone, i)->state != NGX_MCP_WORKER_FREE) {
            ngx_mcp_worker_reap(&zone, i, ngx_mcp_slot(&zone, i)->nonce);
        }
    }

    ok(env_check(&zone) == 0, "the zone is sound after the storm");

    for (n = 1; n < zone.sh->watermark; n++) {
        s = ngx_mcp_block(&zone, n);

        if (s->rec.block.type == NGX_MCP_SESSION) {
            ngx_mcp_session_end(&zone, ngx_mcp_ref(&zone, s),
                                NGX_MCP_COUNTER_SESSIONS_DELETED);
        }
    }

    while (ngx_mcp_pending_delete_send(&zone) == NGX_OK) { /* void */ }

    ngx_mcp_zone_lock(&zone);

    env_topics_end_locked(&zone);

    while (ngx_mcp_group_sweep_locked(&zone) == NGX_AGAIN) { /* void */ }

    while (zone.sh->leases.head) {
        ngx_mcp_lease_drop_locked(&zone, ngx_mcp_block(&zone,
                                                     zone.sh->leases.head));
    }

    while (zone.root->audiences.head) {
        ngx_mcp_audience_drop_locked(&zone, ngx_mcp_block(&zone,
                                                 zone.root->audiences.head));
    }

    while (zone.root->profiles.head) {
        k = ngx_mcp_block(&zone, zone.root->profiles.head);
        ngx_mcp_profile_drop_locked(&zone, k);
    }

    ngx_mcp_zone_unlock(&zone);

    ok(env_check(&zone) == 0 && zone.sh->nfree == zone.sh->watermark - 1,
       "no block leaked");
}


/* checks that the last id of the feed is that of the last event taken */

static ngx_uint_t
fed_check(void)
{
    char                        id[32];
    uint64_t                    last;
    ngx_str_t                   key;
    ngx_pool_t                 *pool;
    ngx_uint_t                  good;
    ngx_mcp_lease_info_t        info;
    ngx_mcp_lease_checkpoint_t  left;

    good = 0;
    key = env_str("feed");
    pool = env_pool();

    env_time(ngx_current_msec + NGX_MCP_LEASE_TIME + 1);
    (void) ngx_mcp_worker_claim(&zone, (u_char *) "0123456789abcdef");

    if (ngx_mcp_lease_info(&zone, 0, pool, &info) == NGX_OK
        && ngx_mcp_lease_claim(&zone, &key, pool, &lease, &left) == NGX_OK)
    {
        snprintf(id, sizeof(id), "%.*s", (int) left.id.len, left.id.data);
        last = strtoull(id, NULL, 10);

        good = info.consumed && info.consumed == last;

        printf("# %llu events of a feed, last id %s, %lu claims\n",
               (unsigned long long) info.consumed, id,
               (unsigned long) model->claims);
    }

    ngx_mcp_worker_release(&zone);
    env_pool_free(pool);

    return good;
}


int
main(void)
{
    int          status;
    char        *env;
    pid_t        pids[CHILDREN];
    unsigned     seed;
    ngx_msec_t   end;
    ngx_uint_t   i, kills, checks, unsound;

    env = getenv("MCP_CRASH_SECONDS");
    end = env_now() + 1000 * (env ? atoi(env) : 10);

    env = getenv("MCP_CRASH_SEED");
    seed = env ? (unsigned) atoi(env) : (unsigned) time(NULL);
    srandom(seed);
    printf("# MCP_CRASH_SEED=%u\n", seed);

    env_log.log_level = NGX_LOG_ALERT;
    memset(text, '.', sizeof(text));

    model = mmap(NULL, sizeof(model_t), PROT_READ|PROT_WRITE,
                 MAP_ANON|MAP_SHARED, -1, 0);
    env_time(env_now());
    env_zone(&zone, ZONE_SIZE);
    zone.handlers = &handlers;

    for (i = 0; i < CHILDREN; i++) {
        pids[i] = spawn(i);
    }

    kills = 0;
    checks = 0;
    unsound = 0;

    while (env_now() < end && unsound == 0) {
        usleep(200 + random() % 4000);

        i = random() % CHILDREN;
        kill(pids[i], SIGKILL);
        waitpid(pids[i], &status, 0);
        env_unlock(&zone, pids[i]);
        kills++;

        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
            failed("a child got signal %d", WTERMSIG(status));
        }

        if (WIFEXITED(status)) {
            failed("a child exits with %d", WEXITSTATUS(status));
        }

        if (random() % 4 == 0) {
            env_time(env_now());
            unsound += env_check(&zone);
            checks++;
        }

        pids[i] = spawn(i);
    }

    model->stop = 1;

    for (i = 0; i < CHILDREN; i++) {
        waitpid(pids[i], &status, 0);
        env_unlock(&zone, pids[i]);

        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            failed("a child ends with status %d", status);
        }
    }

    printf("# %u kills, %u while the lock was held, %u checks\n",
           (unsigned) kills, zone.sh->recoveries, (unsigned) checks);
    printf("# %lu operations, %lu events taken, %lu gaps, %lu streams held\n",
           (unsigned long) model->ops, (unsigned long) model->consumed,
           (unsigned long) model->gaps, (unsigned long) model->resumed);
    printf("# %lu lost calls answered, %lu forgotten\n",
           (unsigned long) model->answers, (unsigned long) model->forgotten);

    ok(unsound == 0, "the zone is sound at every look");
    ok(model->errors == 0, "readers see all in order, or a gap");
    printf("# %ld sessions, %ld evicted, %ld expired, %u of %u blocks used\n",
           (long) ngx_mcp_counter(&zone, NGX_MCP_COUNTER_SESSIONS_CREATED),
           (long) ngx_mcp_counter(&zone, NGX_MCP_COUNTER_SESSIONS_EVICTED),
           (long) ngx_mcp_counter(&zone, NGX_MCP_COUNTER_SESSIONS_EXPIRED),
           zone.sh->watermark, zone.sh->blocks);

    ok(kills > 10 && zone.sh->recoveries > 0, "deaths under the lock");
    ok(model->answers > 0, "lost calls are answered");
    ok(fed_check(), "each event of the feed was taken once");
    ok(env_alerts == 0, "no alerts");

    finish();

    return tap_done();
}
