
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Kills a process at every instruction.  Each operation runs in a child that
 * is stepped.  Whenever the child has changed the zone under the lock, the
 * zone is copied: the next process that takes the lock of the copy must find
 * the content from the beginning of the transaction, as if the child had died
 * right there.  Once for each transaction that copy is checked, used and
 * emptied.  The last operations are rollbacks themselves.
 */

#include "env.h"


#define ZONE_SIZE  (1024 * 1024)


typedef struct {
    const char             *name;
    void                  (*run)(void);
    ngx_uint_t              kept;         /* events of the bystander, or 0 */
    ngx_uint_t            (*after)(void); /* check of the copy after a death */
    ngx_uint_t              lives;        /* the other worker stays alive */
    void                  (*left)(void);  /* a former death leaves changes */
} step_op_t;


static ngx_mcp_zone_t     zone;           /* of the process that dies */
static ngx_mcp_zone_t     other;          /* of a worker that lives */
static ngx_mcp_zone_t     copy;
static size_t             copy_size;

static ngx_mcp_ref_t      bystander, victim, tenant;
static ngx_mcp_call_t     call, streamed, finished;
static ngx_mcp_stream_t   get, newer, channel;
static ngx_mcp_ref_t      listed;
static ngx_mcp_lease_t    feed, fed, counted;
static u_char             big[6000];
static ngx_uint_t         announced;


static ngx_mcp_ref_t
session(ngx_mcp_zone_t *z, const char *id, const char *tenant_name,
    size_t initialize, ngx_uint_t event_max)
{
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));

    in.id = env_str(id);
    in.endpoint = env_str("endpoint");
    in.tenant = env_str(tenant_name);
    in.identity = env_str("an identity that does not fit into the record "
                          "of its session");
    in.initialize.data = big;
    in.initialize.len = initialize;
    in.client_name = env_str("client");
    in.client_version = env_str("1.0");
    in.limit_key = env_str("key");
    in.limit = 5;
    in.timeout = 1800000;
    in.event_max = event_max;
    in.event_size = 65536;

    ref.block = 0;
    ref.gen = 0;

    (void) ngx_mcp_session_create(z, &in, &ref);

    return ref;
}


static void join(ngx_mcp_zone_t *z, const char *what, const char *text);


static ngx_mcp_event_t
event(ngx_str_t *text, ngx_uint_t flags)
{
    ngx_mcp_event_t  e;

    memset(&e, 0, sizeof(e));
    e.parts = text;
    e.nparts = 1;
    e.flags = flags;

    return e;
}


static void
log_text(ngx_mcp_zone_t *z, ngx_mcp_ref_t ref, const char *text)
{
    ngx_str_t        str;
    ngx_mcp_event_t  e;

    str = env_str(text);
    e = event(&str, 0);

    (void) ngx_mcp_log_session(z, ref, &e);
}


static ngx_mcp_topic_t *
topic_of(ngx_str_t uri)
{
    static ngx_mcp_topic_t  topic;

    memset(&topic, 0, sizeof(topic));
    topic.uri = uri;
    topic.limit = 3;
    topic.share = 2;

    return &topic;
}


static void
add_topic(ngx_mcp_zone_t *z, const char *uri, size_t len)
{
    ngx_str_t        str, tenant_name;
    ngx_mcp_event_t  e;

    str.data = big;
    str.len = len;
    tenant_name = env_str("tenant");
    e = event(&str, 0);

    (void) ngx_mcp_topic_add(z, NULL, &tenant_name, topic_of(env_str(uri)), &e,
                             NULL);
}


static ngx_mcp_list_content_t
content(size_t len, u_char digest)
{
    ngx_mcp_list_content_t  c;

    memset(&c, 0, sizeof(c));
    c.text.data = big;
    c.text.len = len;
    c.entries = 1;
    c.digest[0] = digest;
    c.order[0] = digest;

    return c;
}


static ngx_mcp_audience_t
audience(const char *key)
{
    ngx_mcp_audience_t  a;

    a.endpoint = env_str("endpoint");
    a.tenant = env_str("tenant");
    a.key = env_str(key);

    return a;
}


static void
lease_claim(ngx_mcp_zone_t *z, const char *key, ngx_mcp_lease_t *l,
    ngx_mcp_lease_checkpoint_t *left)
{
    ngx_str_t                   str;
    ngx_pool_t                 *pool;
    ngx_mcp_lease_checkpoint_t  unused;

    str = env_str(key);
    pool = env_pool();

    (void) ngx_mcp_lease_claim(z, &str, pool, l, left ? left : &unused);

    if (left == NULL) {
        env_pool_free(pool);
    }
}


static ngx_mcp_consume_t
taking(ngx_mcp_lease_t *l, const char *id, const char *text)
{
    ngx_mcp_consume_t  t;

    memset(&t, 0, sizeof(t));

    t.lease = *l;
    t.id = env_str(id);
    t.text = env_str(text);
    t.rc = NGX_AGAIN;

    return t;
}


/* one worker holds a lease without ids, the other one a lease with ids */

static void
build_leases(u_char *bell)
{
    ngx_str_t          key;
    ngx_uint_t         gap;
    ngx_mcp_consume_t  t;

    key = env_str("feed");
    ngx_mcp_lease_ensure(&other, &key);
    lease_claim(&other, "feed", &feed, NULL);
    ngx_mcp_lease_connected(&other, &feed, &gap);

    key = env_str("counted");
    ngx_mcp_lease_ensure(&other, &key);

    ngx_mcp_worker_claim(&zone, bell);

    lease_claim(&zone, "counted", &counted, NULL);
    t = taking(&counted, "before", "");
    (void) ngx_mcp_lease_consume(&zone, &t);
}


/* counts events of this length in all logs */

static ngx_uint_t
events_of(ngx_mcp_zone_t *z, size_t len)
{
    uint32_t             n;
    ngx_uint_t           found;
    ngx_mcp_event_sh_t  *e;

    found = 0;

    for (n = 1; n < z->sh->watermark; n++) {
        e = ngx_mcp_block(z, n);
        found += (e->rec.block.type == NGX_MCP_EVENT && e->rec.len == len);
    }

    return found;
}


#define ANNOUNCEMENT                                                          \
    (sizeof("{\"jsonrpc\":\"2.0\",\"method\":"                                \
            "\"notifications/resources/list_changed\"}") - 1)

#define ID(n)  "00000000-0000-7000-8000-00000000000" #n


static void
open_server_request(ngx_mcp_ref_t session, const char *text)
{
    ngx_str_t                 id;
    ngx_mcp_server_request_t  request;

    id = env_str(text);

    request.upstream = env_str("weather");
    request.serial = 1;
    request.id = env_str("0");
    request.token = env_str("\"progress\"");

    ngx_mcp_server_request_open(&zone, session, &id, &request);
}


static void
build(void)
{
    char                        text[64];
    u_char                      bell[NGX_MCP_NAME_LEN];
    ngx_int_t                   i;
    ngx_str_t                   id, token, str, name;
    ngx_mcp_list_t              list;
    ngx_mcp_event_t             e;
    ngx_mcp_cursor_t            cursor;
    ngx_mcp_audience_t          a;
    ngx_mcp_list_content_t      lc;
    ngx_mcp_upstream_session_t  l;

    memset(big, 'x', sizeof(big));
    memset(bell, 0, sizeof(bell));

    env_zone(&zone, ZONE_SIZE);
    other = zone;

    other.epoch = 1;
    zone.epoch = 2;

    ngx_mcp_worker_claim(&other, bell);
    build_leases(bell);

    bystander = session(&other, ID(1), "tenant", 700, 64);
    victim = session(&zone, ID(2), "tenant", 300, 8);
    tenant = session(&other, ID(3), "another tenant", 0, 8);

    for (i = 0; i < 5; i++) {
        snprintf(text, sizeof(text), "bystander %d", (int) i);
        log_text(&other, bystander, text);
    }

    for (i = 0; i < 6; i++) {
        log_text(&zone, victim, "an event of the one that will be gone");
    }

    str = env_str("shared");
    e = event(&str, 0);
    env_tell(&zone, NULL, NULL, &e, (ngx_uint_t *) &i);

    id = env_str("1");
    token = env_str("\"token\"");
    env_call_open(&zone, victim, &id, &token, 8, 1, &call);

    id = env_str("\"a longer id of a call\"");
    env_call_open(&zone, victim, &id, &token, 8, 2, &streamed);
    ngx_mcp_call_mark(&zone, streamed.ref, NGX_MCP_CALL_STREAMED);
    str = env_str("progress");
    e = event(&str, 0);
    ngx_mcp_log_call(&zone, streamed.ref, &e, &cursor);
    env_stream_open(&zone, victim, streamed.channel, NULL, 0, 3, &channel);

    id = env_str("3");
    token = env_str("");
    env_call_open(&zone, victim, &id, &token, 8, 3, &finished);
    ngx_mcp_call_mark(&zone, finished.ref, NGX_MCP_CALL_STREAMED);
    str = env_str("answer");
    e = event(&str, NGX_MCP_EVENT_RESPONSE);
    ngx_mcp_log_call(&zone, finished.ref, &e, &cursor);
    ngx_mcp_call_close(&zone, finished.ref);

    env_stream_open(&zone, victim, 0, NULL, 2, 4, &get);
    env_stream_open(&other, victim, 0, NULL, 2, 5, &newer);

    name = env_str("weather");
    us_get(&zone, victim, &name, call.ref, &l);
    str = env_str("upstream-session");
    us_made(&zone, victim, &name, &str, 3);
    us_listen(&zone, victim, &name);
    us_listens(&zone, victim, &name, 0);

    name = env_str("news");
    us_get(&other, victim, &name, call.ref, &l);
    us_get(&zone, victim, &name, call.ref, &l);

    open_server_request(victim, "\"00000000-0000-7000-8000-000000000041\"");

    str = env_str("file:///a");
    ngx_mcp_session_subscribe(&zone, victim, &str, NULL, 8);
    ngx_mcp_session_subscribe(&other, bystander, &str, NULL, 8);

    join(&other, "window", "first");
    join(&other, "window", "waits");

    for (i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "events://%d/latest", (int) i);
        add_topic(&other, text, 300);
    }

    str = env_str("events://2/latest");
    ngx_mcp_session_subscribe(&zone, victim, &str, NULL, 8);
    ngx_mcp_topic_subscribe(&zone, victim, topic_of(str));

    a = audience("a key");
    ngx_mcp_audience_get(&zone, &a, env_sources(2), 2, &listed);
    ngx_mcp_audience_join(&zone, bystander, listed);
    ngx_mcp_list_get(&zone, listed, env_sources(2), NGX_MCP_LIST_TOOLS, 1,
                     &list);
    lc = content(700, 1);
    ngx_mcp_list_put(&zone, env_part(&zone, listed, 0), &lc, 0, 1000);

    announced = events_of(&zone, ANNOUNCEMENT);
}


static void
op_create(void)
{
    (void) session(&zone, ID(4), "new tenant", 100, 8);
}


static void
op_create_known(void)
{
    (void) session(&zone, ID(5), "tenant", 300, 8);
}


static void
op_create_staged(void)
{
    (void) session(&zone, ID(6), "tenant", 6000, 8);
}


static void
op_find(void)
{
    ngx_str_t          id, endpoint, name, identity;
    ngx_mcp_session_t  out = { .requests = 1 };

    id = env_str(ID(1));
    endpoint = env_str("endpoint");
    name = env_str("tenant");
    identity = env_str("an identity that does not fit into the record "
                       "of its session");

    ngx_mcp_session_find(&zone, &id, &endpoint, &name, &identity, &out);
}


static void
op_end(void)
{
    ngx_mcp_session_end(&zone, victim, NGX_MCP_COUNTER_SESSIONS_DELETED);
}


static void
op_end_alone(void)
{
    ngx_mcp_session_end(&zone, tenant, NGX_MCP_COUNTER_SESSIONS_DELETED);
}


static void
op_log(void)
{
    log_text(&zone, bystander, "bystander 5");
}


static void
op_log_evict(void)
{
    ngx_uint_t  i;

    for (i = 0; i < 8; i++) {
        log_text(&zone, victim, "one more");
    }
}


static void
op_log_staged(void)
{
    ngx_str_t        str;
    ngx_mcp_event_t  e;

    str.data = big;
    str.len = 5000;
    e = event(&str, 0);
    (void) ngx_mcp_log_session(&zone, victim, &e);
}


static void
op_log_groups(void)
{
    ngx_str_t        str;
    ngx_uint_t       n;
    ngx_mcp_event_t  e;

    str = env_str("to all");
    e = event(&str, 0);
    env_tell(&zone, NULL, NULL, &e, &n);
}


static void
op_call_open(void)
{
    ngx_str_t       id, token;
    ngx_mcp_call_t  c;

    id = env_str("7");
    token = env_str("8");
    env_call_open(&zone, bystander, &id, &token, 8, 1, &c);
}


/* a call in an exclusive session is parked, resumed, and left */

static void
op_call_park(void)
{
    ngx_str_t              endpoint, key, str;
    ngx_mcp_ref_t          ref;
    ngx_mcp_call_t         c;
    ngx_mcp_event_t        e;
    ngx_mcp_cursor_t       cursor;
    ngx_mcp_parked_t       parked;
    ngx_mcp_session_new_t  in;

    endpoint = env_str("endpoint");
    key = env_str("caller");

    memset(&in, 0, sizeof(in));
    in.id = env_str("00000000-0000-8000-8000-000000000001");
    in.endpoint = endpoint;
    in.client = key;
    in.event_max = 4;
    in.event_size = 1024;

    str = env_str("asks");
    e = event(&str, 0);

    env_call_open_sessionless(&zone, &endpoint, &key, 2, 9, &c);
    ngx_mcp_exclusive_join(&zone, &in, &c, &ref);
    ngx_mcp_log_call(&zone, c.ref, &e, &cursor);
    (void) ngx_mcp_call_park(&zone, c.ref, 1000);
    (void) ngx_mcp_call_unpark(&zone, c.ref, 1, 1000, &parked);
    ngx_mcp_call_wake(&zone, c.ref, NGX_MCP_WAKE_CANCEL);
    ngx_mcp_call_close(&zone, c.ref);
    ngx_mcp_exclusive_end(&zone, ref);
}


static void
op_call_answer(void)
{
    ngx_str_t         str;
    ngx_mcp_event_t   e;
    ngx_mcp_cursor_t  cursor;

    str = env_str("{\"answer\":1}");
    e = event(&str, NGX_MCP_EVENT_RESPONSE);
    ngx_mcp_log_call(&zone, streamed.ref, &e, &cursor);
    ngx_mcp_call_close(&zone, streamed.ref);
}


static void
op_call_close(void)
{
    ngx_mcp_call_close(&zone, call.ref);
}


static void
op_call_cancel(void)
{
    uint32_t   upstream;
    ngx_str_t  id;

    id = env_str("1");
    ngx_mcp_call_cancel(&zone, victim, &id, &upstream);
}


static void
op_stream_open(void)
{
    ngx_mcp_stream_t  st;

    env_stream_open(&zone, victim, 0, NULL, 2, 9, &st);
}


static void
op_stream_close(void)
{
    ngx_mcp_stream_close(&zone, &newer, NGX_MCP_COUNTER_STREAMS_CLIENT);
}


static void
op_stream_close_line(void)
{
    ngx_mcp_stream_close(&zone, &channel, NGX_MCP_COUNTER_STREAMS_CLIENT);
}


static void
op_take(void)
{
    size_t      len;
    u_char      buf[512];
    ngx_uint_t  flags;

    while (ngx_mcp_stream_read(&zone, &newer, buf, sizeof(buf), &len, &flags)
           != NGX_AGAIN)
    {
        /* void */
    }
}


static void
op_links(void)
{
    ngx_str_t                   name, id;
    ngx_mcp_upstream_session_t  l;

    name = env_str("a third");
    us_get(&zone, victim, &name, call.ref, &l);
    id = env_str("upstream-session-2");
    us_made(&zone, victim, &name, &id, 3);

    name = env_str("news");
    us_made(&zone, victim, &name, &id, 3);
    us_peek(&zone, victim, &name, &l);
    us_forget(&zone, victim, &name, l.serial);
    us_fail(&zone, victim, &name);

    name = env_str("weather");
    us_breaks(&zone, victim, &name);
    us_unlisten(&zone, victim, &name, 0);
    us_listen(&zone, victim, &name);
    us_listens(&zone, victim, &name, 0);
}


static void
op_server_requests(void)
{
    u_char                    buf[NGX_MCP_SERVER_REQUEST_ID_LEN];
    ngx_str_t                 id;
    ngx_pool_t               *pool;
    ngx_mcp_server_request_t  request;

    id = env_str("\"00000000-0000-7000-8000-000000000042\"");
    open_server_request(bystander, (char *) id.data);

    pool = env_pool();
    ngx_mcp_server_request_find(&zone, bystander, &id, 0, pool, &request);
    ngx_mcp_server_request_find(&zone, bystander, &id, 1, pool, &request);

    open_server_request(bystander, (char *) id.data);
    ngx_mcp_server_request_cancel(&zone, bystander, &request, buf, &id);
    env_pool_free(pool);
}


static void
op_subscriptions(void)
{
    ngx_str_t  uri;

    uri = env_str("file:///b");
    ngx_mcp_session_subscribe(&zone, bystander, &uri, NULL, 8);
    ngx_mcp_session_unsubscribe(&zone, bystander, &uri);
}


static ngx_mcp_ref_t
shared_session(void)
{
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));

    in.id = env_str(ID(9));
    in.endpoint = env_str("endpoint");
    in.tenant = env_str("tenant");
    in.identity = env_str("upstream");
    in.list_key = env_str("key");
    in.initialize = env_str("{}");
    in.limit = 2;

    ref.block = 0;
    ref.gen = 0;

    (void) us_shared(&zone, &in, &ref);

    return ref;
}


static void
op_shared(void)
{
    ngx_mcp_ref_t  us;

    us = shared_session();
    ngx_mcp_shared_claim(&zone, us, &feed);
    ngx_mcp_shared_end(&zone, us, feed.fence);
}


static void
op_shared_expire(void)
{
    ngx_str_t      uri;
    ngx_mcp_ref_t  us;

    us = shared_session();
    ngx_mcp_shared_claim(&zone, us, &feed);

    uri = env_str("file:///c");
    ngx_mcp_interest_join(&zone, us, victim, &uri, 8);
    uri = env_str("file:///d");
    ngx_mcp_interest_join(&zone, us, bystander, &uri, 8);

    env_time(ngx_current_msec + NGX_MCP_SHARED_TIMEOUT);

    ngx_mcp_zone_lock(&zone);
    (void) ngx_mcp_expire_locked(&zone);
    ngx_mcp_zone_unlock(&zone);
}


static void
op_interests(void)
{
    uint64_t                    stamp;
    ngx_str_t                   uri, name, id;
    ngx_pool_t                 *pool;
    ngx_mcp_ref_t               us;
    ngx_mcp_interest_job_t      job;
    ngx_mcp_upstream_session_t  l;

    stamp = 0;
    us = shared_session();
    ngx_mcp_shared_claim(&zone, us, &feed);

    name = env_str("upstream");
    id = env_str("up-session");
    us_get(&zone, us, &name, call.ref, &l);
    us_made(&zone, us, &name, &id, 3);
    us_peek(&zone, us, &name, &l);
    ngx_mcp_upstream_session_stream_opened(&zone, us, l.serial, 0);

    pool = env_pool();

    uri = env_str("file:///c");
    ngx_mcp_interest_join(&zone, us, victim, &uri, 8);
    ngx_mcp_interest_join(&zone, us, bystander, &uri, 8);
    ngx_mcp_interest_next(&zone, us, 1, pool, &job);
    ngx_mcp_interest_done(&zone, 1, &job, NGX_OK, l.serial);
    ngx_mcp_interest_pair(&zone, victim, &name, &uri, 1, 0, &stamp);
    ngx_mcp_interest_updated(&zone, us, &uri);
    ngx_mcp_interest_pair(&zone, victim, &name, &uri, 2, 1, &stamp);
    ngx_mcp_session_unsubscribe(&zone, victim, &uri);
    ngx_mcp_interest_leave(&zone, bystander, &uri);
    ngx_mcp_interest_next(&zone, us, 1, pool, &job);
    ngx_mcp_interest_done(&zone, 1, &job, NGX_OK, l.serial);

    uri = env_str("file:///d");
    ngx_mcp_interest_acquire(&zone, us, call.ref, &uri);
    ngx_mcp_interest_join(&zone, us, victim, &uri, 8);
    ngx_mcp_call_close(&zone, call.ref);
    us_shared_end(&zone, us);

    env_pool_free(pool);
}


static void
op_topic_new(void)
{
    env_time(ngx_current_msec + 2000);
    add_topic(&zone, "events://a new one/latest", 20);
}


static void
op_topic_evict(void)
{
    ngx_uint_t  i;

    for (i = 0; i < 4; i++) {
        add_topic(&zone, "events://1/latest", 5000);
    }
}


static void
op_topic_wait(void)
{
    size_t         len;
    uint64_t       after;
    ngx_uint_t     missed;
    ngx_mcp_ref_t  ref;
    static u_char  buf[NGX_MCP_TOPIC_BYTES];

    after = NGX_MCP_TOPIC_BEGIN;

    if (ngx_mcp_topic_watch(&zone, env_caller(victim),
                            topic_of(env_str("events://3/latest")), &ref,
                            &after)
        == NGX_OK)
    {
        (void) env_topic_next_one(&zone, env_caller(victim), ref, 1, &after,
                                  buf, &len, &missed);
        ngx_mcp_topic_unwatch(&zone, ref);
    }
}


/* waits for a topic in a group that does not exist yet */

static void
op_topic_wait_alone(void)
{
    uint64_t          after;
    ngx_str_t         endpoint;
    ngx_mcp_ref_t     ref;
    ngx_mcp_caller_t  caller;

    endpoint = env_str("alone");

    memset(&caller, 0, sizeof(caller));
    caller.endpoint = &endpoint;
    caller.tenant = env_str("t");
    caller.share = env_str("s");

    after = NGX_MCP_TOPIC_BEGIN;

    (void) ngx_mcp_topic_watch(&zone, &caller,
                               topic_of(env_str("events://3/latest")), &ref,
                               &after);
}


static void
op_topic_subscribe(void)
{
    ngx_str_t  uri;

    uri = env_str("events://0/latest");
    ngx_mcp_session_subscribe(&zone, bystander, &uri, NULL, 8);
    ngx_mcp_topic_subscribe(&zone, bystander, topic_of(uri));
    ngx_mcp_session_unsubscribe(&zone, bystander, &uri);
}


static void
op_topic_idle(void)
{
    env_time(ngx_current_msec + NGX_MCP_TOPIC_IDLE + 2000);

    ngx_mcp_zone_lock(&zone);
    (void) ngx_mcp_topic_sweep_locked(&zone);
    ngx_mcp_zone_unlock(&zone);
}


static void
op_knowledge(void)
{
    ngx_str_t          key;
    ngx_pool_t        *pool;
    ngx_mcp_profile_t  k, failed;

    ngx_mcp_profile_info_t  info;

    key = env_str("upstream and audience");
    pool = env_pool();
    memset(&k, 0, sizeof(k));
    memset(&failed, 0, sizeof(failed));
    memset(&info, 0, sizeof(info));
    k.result.data = big;
    k.result.len = 3000;

    ngx_mcp_profile_get(&zone, &key, 1, 1000, pool, &k);
    ngx_mcp_profile_put(&zone, &key, 1, &k);
    ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &k);
    k.result.len = 0;
    ngx_mcp_profile_put(&zone, &key, 2, &k);
    ngx_mcp_profile_suspect(&zone, &key);
    ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &k);
    ngx_mcp_profile_give_up(&zone, &key);
    k.what = NGX_MCP_PROFILE_LEGACY;
    ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &k);
    ngx_mcp_profile_put(&zone, &key, 2, &k);
    ngx_mcp_profile_suspect(&zone, &key);
    ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &k);
    failed.status = 502;
    ngx_mcp_profile_fail(&zone, &key, 2, 1, &failed);
    env_time(ngx_current_msec + NGX_MCP_PROFILE_KEPT_AGE + 1);
    ngx_mcp_profile_get(&zone, &key, 2, 1000, pool, &k);
    ngx_mcp_profile_fail(&zone, &key, 2, 1, &failed);
    ngx_mcp_profile_back(&zone, &key);
    ngx_mcp_profile_stored(&zone, &key, pool, &k);
    ngx_mcp_profile_get(&zone, &key, 3, 1000, pool, &k);
    ngx_mcp_profile_fail(&zone, &key, 3, 0, &failed);
    ngx_mcp_profile_info(&zone, pool, &info);

    env_pool_free(pool);
}


/* a delivery that may wait in a window */

static ngx_mcp_delivery_t
joining(const char *what, const char *text)
{
    ngx_mcp_delivery_t  d;
    static ngx_str_t    endpoint;

    endpoint = env_str("endpoint");

    memset(&d, 0, sizeof(d));
    d.text = env_str(text);
    d.endpoint = &endpoint;
    d.coalesce_key = env_str(what);
    d.time = 1000;
    d.count = 1;
    d.counts[0] = d.text.len;

    return d;
}


static void
join(ngx_mcp_zone_t *z, const char *what, const char *text)
{
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    d = joining(what, text);

    memset(&post, 0, sizeof(post));
    post.deliveries = &d;
    post.n = 1;

    (void) ngx_mcp_outbox_send(z, &post);
}


/* checks that each session gets a waiting event once, after any death */

static ngx_uint_t
said_check(ngx_mcp_ref_t ref)
{
    size_t            len;
    u_char            buf[512];
    ngx_uint_t        i, flags;
    ngx_mcp_cursor_t  from;
    ngx_mcp_stream_t  st;

    memset(&from, 0, sizeof(from));

    if (env_stream_open(&copy, ref, 0, &from, 0, 1, &st) != NGX_OK) {
        return 1;
    }

    i = 0;

    while (ngx_mcp_stream_read(&copy, &st, buf, sizeof(buf), &len, &flags)
           != NGX_AGAIN)
    {
        if (len >= 5 && memcmp(buf, "waits", 5) == 0) {
            i++;
        }
    }

    ngx_mcp_stream_close(&copy, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    if (i != 1) {
        fprintf(stderr, "# what waits was said %u times\n", (unsigned) i);
        return 1;
    }

    return 0;
}


static void
windows_end(void)
{
    ngx_msec_t  next, now;

    now = ngx_current_msec;

    while (copy.sh->used[NGX_MCP_ITEM]) {
        env_time(ngx_current_msec + 10000);
        (void) ngx_mcp_outbox_due(&copy, &next);
    }

    env_time(now);
}


static ngx_uint_t
window_check(void)
{
    windows_end();

    return said_check(bystander) + said_check(tenant);
}


static void
op_window_open(void)
{
    join(&zone, "another", "a first");
}


static void
op_window_join(void)
{
    join(&zone, "window", "waits: longer than what was there, so that it "
                          "needs another block for its text, and is moved "
                          "while the other is there");
}


static void
op_window_send(void)
{
    ngx_msec_t  next;

    env_time(ngx_current_msec + 1000);
    (void) ngx_mcp_outbox_due(&zone, &next);
}


static void
op_audiences(void)
{
    ngx_mcp_ref_t       ref;
    ngx_mcp_audience_t  a;

    a = audience("another key");
    ngx_mcp_audience_get(&zone, &a, env_sources(2), 2, &ref);
    ngx_mcp_audience_join(&zone, victim, ref);
    ngx_mcp_audience_join(&zone, bystander, ref);

    /* one audience more than there may be */

    a = audience("a third key");
    ngx_mcp_audience_get(&zone, &a, env_sources(2), 2, &ref);
    ngx_mcp_session_end(&zone, victim, NGX_MCP_COUNTER_SESSIONS_DELETED);
}


static void
op_lists(void)
{
    ngx_mcp_list_t          list;
    ngx_mcp_list_content_t  c;

    ngx_mcp_list_signal(&zone, listed, env_part(&zone, listed, 0),
                        NGX_MCP_LIST_ALL, 1);
    c = content(300, 2);
    ngx_mcp_list_put(&zone, env_part(&zone, listed, 0), &c, 1, 1000);
    ngx_mcp_list_get(&zone, listed, env_sources(2), NGX_MCP_LIST_PROMPTS, 1,
                     &list);
    ngx_mcp_list_fail(&zone, env_part(&zone, listed, 0), NGX_MCP_LIST_PROMPTS);
    ngx_mcp_list_pass_through(&zone, env_part(&zone, listed, 0),
                              NGX_MCP_LIST_TOOLS, 0, 1, 1000);
}


/* a new configuration: one upstream goes, two come */

static void
op_lists_parts(void)
{
    ngx_mcp_sources_t  sources;

    sources = *env_sources(4);
    sources.elts++;
    sources.n--;

    zone.epoch++;
    (void) ngx_mcp_audience_sync(&zone, listed, &sources);
    zone.epoch--;

    ngx_mcp_list_want(&zone, listed, NGX_MCP_LIST_ALL);
    ngx_mcp_audience_drop(&zone, listed, 0);
}


static void
op_lists_staged(void)
{
    ngx_mcp_list_content_t  c;

    c = content(6000, 3);
    ngx_mcp_list_put(&zone, env_part(&zone, listed, 0), &c, 1, 1000);
}


static void
op_lists_passed(void)
{
    ngx_str_t               endpoint;
    ngx_mcp_audience_t      a;
    ngx_mcp_list_content_t  c;

    c = content(300, 5);
    c.kind = NGX_MCP_LIST_TEMPLATES;
    c.hint.until = ngx_current_msec + 1000;
    c.hint.public = 1;

    (void) ngx_mcp_list_keep(&zone, listed, &env_sources(2)->elts[0].name,
                             &c, ngx_mcp_lists_forgotten(&zone));

    a = audience("a key");
    endpoint = a.endpoint;

    ngx_mcp_list_forget(&zone, &endpoint, NULL, NULL, NGX_MCP_LIST_ALL);
}


static void
op_lists_told(void)
{
    ngx_str_t               str;
    ngx_mcp_event_t         e;
    ngx_mcp_audience_t      a;
    ngx_mcp_list_content_t  c;

    c = content(500, 4);
    ngx_mcp_list_put(&zone, env_part(&zone, listed, 0), &c, 1, 1000);

    a = audience("a key");
    str = env_str("tools changed");
    e = event(&str, 0);
    ngx_mcp_list_announce(&zone, listed, env_part(&zone, listed, 0), &a,
                          NGX_MCP_LIST_ALL, &e);
}


/* checks that a change is announced, and only once */

static ngx_uint_t
lists_told_check(void)
{
    ngx_str_t                str;
    ngx_uint_t               n;
    ngx_mcp_event_t          e;
    ngx_mcp_audience_t       a;
    ngx_mcp_list_content_t   c;

    c = content(500, 4);
    (void) ngx_mcp_list_put(&copy, env_part(&copy, listed, 0), &c, 1, 1000);

    a = audience("a key");
    str = env_str("tools changed");
    e = event(&str, 0);

    if (ngx_mcp_list_dirty(&copy, listed, env_part(&copy, listed, 0))) {
        ngx_mcp_list_announce(&copy, listed, env_part(&copy, listed, 0), &a,
                          NGX_MCP_LIST_ALL, &e);
    }

    n = events_of(&copy, sizeof("tools changed") - 1);

    if (n != 1
        || ngx_mcp_list_dirty(&copy, listed, env_part(&copy, listed, 0)))
    {
        fprintf(stderr, "# told %u times\n", (unsigned) n);
        return 1;
    }

    return 0;
}


static void
op_lease_want(void)
{
    ngx_str_t  key;

    key = env_str("wanted");
    ngx_mcp_topic_lease(&zone, &key, env_caller(victim), 2, 2);

    key.data = big;
    key.len = 1000;
    ngx_mcp_lease_ensure(&zone, &key);
}


static void
op_lease_claim(void)
{
    lease_claim(&zone, "feed", &fed, NULL);
}


/* checks that nobody holds the lease, and that it can be claimed */

static ngx_uint_t
lease_check(void)
{
    u_char                      bell[NGX_MCP_NAME_LEN];
    ngx_mcp_lease_t             l;
    ngx_mcp_consume_t           t;
    ngx_mcp_lease_checkpoint_t  left;

    memset(bell, 0, sizeof(bell));
    memset(&l, 0, sizeof(l));

    ngx_mcp_worker_claim(&copy, bell);
    lease_claim(&copy, "feed", &l, &left);
    t = taking(&l, "", "");

    if (ngx_mcp_lease_consume(&copy, &t) != NGX_OK || left.overlap) {
        fprintf(stderr, "# the lease is not free\n");
        return 1;
    }

    t = taking(&feed, "", "");

    return ngx_mcp_lease_consume(&copy, &t) != NGX_ABORT;
}


/* the other worker lives: it holds the lease, or still reads */

static ngx_uint_t
lease_kept_check(void)
{
    if (ngx_mcp_lease_renew(&copy, &feed) == NGX_DECLINED) {
        fprintf(stderr, "# the lease is lost\n");
        return 1;
    }

    return 0;
}


static void
op_lease_life(void)
{
    ngx_str_t      str;
    ngx_uint_t     gap;
    ngx_mcp_ref_t  ref;

    str = env_str("feed");

    lease_claim(&zone, "feed", &fed, NULL);
    ngx_mcp_lease_disconnected(&zone, &fed);
    ngx_mcp_lease_await(&zone, &str, &ref);
    ngx_mcp_lease_failed(&zone, &fed);
    ngx_mcp_lease_renew(&zone, &fed);
    ngx_mcp_lease_renew(&zone, &feed);
    ngx_mcp_lease_connected(&zone, &fed, &gap);
    ngx_mcp_lease_signal(&zone, &str);

    str = env_str("a note");
    ngx_mcp_lease_note(&zone, &fed, &str);
    str.data = big;
    str.len = NGX_MCP_LEASE_NOTE_MAX;
    ngx_mcp_lease_note(&zone, &fed, &str);

    ngx_mcp_lease_clear_id(&zone, &fed);
    ngx_mcp_lease_overlap_end(&zone, &fed);
    ngx_mcp_lease_disconnected(&zone, &feed);
    ngx_mcp_lease_disconnected(&zone, &fed);
    ngx_mcp_lease_release(&zone, &fed);
    lease_claim(&zone, "feed", &fed, NULL);
}


static void
op_lease_drop(void)
{
    (void) ngx_mcp_lease_drop(&zone, &feed);
}


static void
on_lease(ngx_mcp_zone_t *z, ngx_str_t *key, ngx_uint_t why)
{
    if (why & NGX_MCP_LEASE_FREE) {
        lease_claim(z, (char *) "feed", &fed, NULL);
    }
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


static ngx_mcp_worker_handlers_t  handlers = {
    .stream = on_task,
    .call = on_task,
    .group = on_group,
    .profiles = on_zone,
    .upstream_sessions = on_zone,
    .listeners = on_zone,
    .topic = on_group,
    .interests = on_zone,
    .lists = on_zone,
    .lease = on_lease
};


static void
op_lease_drain(void)
{
    zone.handlers = &handlers;

    env_time(ngx_current_msec + 3001);
    (void) ngx_mcp_worker_sweep(&zone);
    (void) ngx_mcp_worker_drain(&zone);

    env_time(ngx_current_msec + 63002);
    (void) ngx_mcp_worker_sweep(&zone);
    (void) ngx_mcp_worker_drain(&zone);
}


static void
op_gap(void)
{
    (void) ngx_mcp_log_gap(&zone, NULL, NULL);
}


/* sends an event of a feed, which the next holder sends again */

static ngx_int_t
read_event(ngx_mcp_zone_t *z, ngx_mcp_lease_t *l, const char *id,
    ngx_str_t *text, ngx_mcp_ref_t *session)
{
    ngx_mcp_post_t      post;
    ngx_mcp_consume_t   t;
    ngx_mcp_delivery_t  d;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    t = taking(l, id, "");
    t.text = *text;

    post.deliveries = &d;
    post.n = 1;
    post.consume = &t;
    d.text = *text;

    if (session) {
        d.ref = *session;
    }

    return ngx_mcp_outbox_send(z, &post);
}


/* checks the number of these events in each log, and that each has a text */

static ngx_uint_t
read_check(ngx_str_t *texts, ngx_uint_t n, ngx_uint_t *want)
{
    size_t            len;
    u_char            buf[8192];
    ngx_int_t         rc;
    ngx_uint_t        i, k, flags, seen[2];
    ngx_mcp_ref_t     refs[3];
    ngx_mcp_stream_t  st;

    windows_end();

    refs[0] = victim;
    refs[1] = bystander;
    refs[2] = tenant;

    for (i = 0; i < 3; i++) {
        memset(seen, 0, sizeof(seen));

        if (env_stream_open(&copy, refs[i], 0, NULL, 0, 1, &st) != NGX_OK) {
            return 1;
        }

        for ( ;; ) {
            rc = ngx_mcp_stream_read(&copy, &st, buf, sizeof(buf), &len,
                                     &flags);

            if (rc != NGX_OK) {
                break;
            }

            for (k = 0; k < n; k++) {
                seen[k] += (len == texts[k].len
                            && memcmp(buf, texts[k].data, len) == 0);
            }
        }

        ngx_mcp_stream_close(&copy, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

        if (rc != NGX_AGAIN || seen[0] != want[i]
            || (n == 2 && seen[1] != want[i]))
        {
            fprintf(stderr, "# log %d has %d, %d of %d, then %d\n", (int) i,
                    (int) seen[0], (int) seen[1], (int) want[i], (int) rc);
            return 1;
        }
    }

    return 0;
}


static void
op_read(void)
{
    ngx_str_t  text;

    text = env_str("something new");
    (void) read_event(&zone, &counted, "after", &text, NULL);
}


static void
op_read_alone(void)
{
    ngx_str_t  text;

    text = env_str("something new");
    (void) read_event(&zone, &counted, "after", &text, &bystander);
}


static void
op_read_staged(void)
{
    ngx_str_t  text;

    text.data = big;
    text.len = 5000;
    (void) read_event(&zone, &counted, "after", &text, &victim);
}


/* claims the lease for the next holder; whether that has to read the event */

static ngx_int_t
take_over(ngx_mcp_lease_t *l)
{
    u_char                      bell[NGX_MCP_NAME_LEN];
    ngx_mcp_lease_checkpoint_t  left;

    memset(bell, 0, sizeof(bell));
    memset(&left, 0, sizeof(left));
    memset(l, 0, sizeof(ngx_mcp_lease_t));

    ngx_mcp_worker_claim(&copy, bell);
    lease_claim(&copy, "counted", l, &left);

    if (left.id.len == 5 && memcmp(left.id.data, "after", 5) == 0) {
        return 0;
    }

    if (left.id.len != 6 || memcmp(left.id.data, "before", 6) != 0) {
        fprintf(stderr, "# the last id is \"%.*s\"\n", (int) left.id.len,
                left.id.data);
        return NGX_ERROR;
    }

    return 1;
}


static ngx_uint_t
read_again_check(ngx_str_t *text, ngx_mcp_ref_t *session, ngx_uint_t *want)
{
    ngx_int_t        rc;
    ngx_mcp_lease_t  l;

    rc = take_over(&l);

    if (rc == 1) {
        rc = read_event(&copy, &l, "after", text, session);
    }

    if (rc != 0) {
        fprintf(stderr, "# the event is not taken\n");
        return 1;
    }

    return read_check(text, 1, want);
}


/* sends an event to a topic that does not exist yet */

static void
read_topic(ngx_mcp_zone_t *z, ngx_mcp_lease_t *l)
{
    ngx_str_t           tenant_name;
    ngx_mcp_post_t      post;
    ngx_mcp_consume_t   t;
    ngx_mcp_delivery_t  d;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    tenant_name = env_str("tenant");
    t = taking(l, "after", "");

    post.deliveries = &d;
    post.n = 1;
    post.consume = &t;
    d.text = env_str("something new");
    d.tenant = &tenant_name;
    d.topic = *topic_of(env_str("events://new/latest"));

    (void) ngx_mcp_outbox_send(z, &post);
}


static void
op_read_topic(void)
{
    env_time(ngx_current_msec + 2000);
    read_topic(&zone, &counted);
}


/* checks that the topic exists once, and is announced once */

static ngx_uint_t
read_topic_check(void)
{
    ngx_uint_t       said, kept;
    ngx_mcp_lease_t  l;

    env_time(ngx_current_msec + 4000);

    switch (take_over(&l)) {

    case NGX_ERROR:
        return 1;

    case 1:
        read_topic(&copy, &l);
    }

    (void) ngx_mcp_worker_sweep(&copy);

    kept = events_of(&copy, sizeof("something new") - 1);
    said = events_of(&copy, ANNOUNCEMENT);

    env_time(ngx_current_msec - 4000);

    if (kept != 1 || said != announced + 1) {
        fprintf(stderr, "# %d kept, %d announced\n", (int) kept,
                (int) said - (int) announced);
        return 1;
    }

    return 0;
}


static ngx_uint_t
read_all_check(void)
{
    ngx_str_t   text;
    ngx_uint_t  want[] = { 1, 1, 1 };

    text = env_str("something new");

    return read_again_check(&text, NULL, want);
}


static ngx_uint_t
read_alone_check(void)
{
    ngx_str_t   text;
    ngx_uint_t  want[] = { 0, 1, 0 };

    text = env_str("something new");

    return read_again_check(&text, &bystander, want);
}


static ngx_uint_t
read_staged_check(void)
{
    ngx_str_t   text;
    ngx_uint_t  want[] = { 1, 0, 0 };

    text.data = big;
    text.len = 5000;

    return read_again_check(&text, &victim, want);
}


/* sends one event with many deliveries */

static void
steps(ngx_mcp_zone_t *z, ngx_mcp_post_t *post)
{
    ngx_pool_t          *pool;
    ngx_mcp_delivery_t   d[6];

    memset(d, 0, sizeof(d));

    d[0].text = env_str("a");
    d[1] = joining("window", "waits");
    d[2] = joining("another window", "begins");
    d[3].text = env_str("c");
    d[3].ref = victim;
    d[4] = joining("window", "waits");
    d[5].text.data = big;
    d[5].text.len = 2500;

    pool = env_pool();

    post->deliveries = d;
    post->n = 6;
    post->pool = pool;

    (void) ngx_mcp_outbox_send(z, post);

    env_pool_free(pool);
}


static void
steps_read(ngx_mcp_zone_t *z, ngx_mcp_lease_t *l)
{
    ngx_mcp_post_t     post;
    ngx_mcp_consume_t  t;

    memset(&post, 0, sizeof(post));

    t = taking(l, "after", "steps");
    post.consume = &t;

    steps(z, &post);
}


static void
steps_once(ngx_mcp_zone_t *z)
{
    ngx_str_t       scope, id;
    ngx_mcp_post_t  post;

    memset(&post, 0, sizeof(post));

    scope = env_str("scope");
    id = env_str("id");
    post.answered = 1;
    post.id = ngx_mcp_idempotency_key(z, &scope, &id);

    steps(z, &post);
}


/* returns the number of events that a text stands for */

static ngx_uint_t
count_of(u_char *buf, size_t len, const char *text)
{
    size_t  n;

    n = strlen(text);

    if (len < n || memcmp(buf, text, n) != 0) {
        return 0;
    }

    return len == n ? 1 : (ngx_uint_t) atoi((char *) buf + n
                                            + strlen(",\"count\":"));
}


/* checks that each delivery was made once; one event had waited before */

static ngx_uint_t
steps_check(void)
{
    size_t            len;
    u_char            buf[4096];
    ngx_int_t         rc;
    ngx_uint_t        i, flags, seen[5];
    ngx_mcp_ref_t     refs[3];
    ngx_mcp_stream_t  st;

    windows_end();

    refs[0] = victim;
    refs[1] = bystander;
    refs[2] = tenant;

    for (i = 0; i < 3; i++) {
        memset(seen, 0, sizeof(seen));

        if (env_stream_open(&copy, refs[i], 0, NULL, 0, 1, &st) != NGX_OK) {
            return 1;
        }

        for ( ;; ) {
            rc = ngx_mcp_stream_read(&copy, &st, buf, sizeof(buf) - 1, &len,
                                     &flags);

            if (rc != NGX_OK) {
                break;
            }

            buf[len] = '\0';

            seen[0] += (len == 1 && *buf == 'a');
            seen[1] += count_of(buf, len, "waits");
            seen[2] += count_of(buf, len, "begins");
            seen[3] += (len == 1 && *buf == 'c');
            seen[4] += (len == 2500);
        }

        ngx_mcp_stream_close(&copy, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

        if (rc != NGX_AGAIN || seen[0] != 1 || seen[1] != 3 || seen[2] != 1
            || seen[3] != (i == 0) || seen[4] != 1)
        {
            fprintf(stderr, "# log %d has %d, %d, %d, %d, %d, then %d\n",
                    (int) i, (int) seen[0], (int) seen[1], (int) seen[2],
                    (int) seen[3], (int) seen[4], (int) rc);
            return 1;
        }
    }

    return 0;
}


static void
op_steps_read(void)
{
    steps_read(&zone, &counted);
}


static ngx_uint_t
steps_read_check(void)
{
    ngx_int_t        rc;
    ngx_mcp_lease_t  l;

    rc = take_over(&l);

    if (rc == 1) {
        steps_read(&copy, &l);
    }

    return rc == NGX_ERROR ? 1 : steps_check();
}


/* the next holder comes after the joined window has ended */

static ngx_uint_t
steps_read_late_check(void)
{
    windows_end();

    return steps_read_check();
}


static void
op_steps_once(void)
{
    steps_once(&zone);
}


static ngx_uint_t
steps_once_check(void)
{
    steps_once(&copy);

    return steps_check();
}


static ngx_uint_t
steps_once_late_check(void)
{
    windows_end();

    return steps_once_check();
}


/* two readers of an overlap read two events, and one of them dies meanwhile */

static void
op_overlap(void)
{
    ngx_str_t   text;
    ngx_uint_t  gap;

    lease_claim(&zone, "feed", &fed, NULL);
    ngx_mcp_lease_connected(&zone, &fed, &gap);

    text = env_str("read first by the one before");
    (void) read_event(&other, &feed, "", &text, NULL);
    (void) read_event(&zone, &fed, "", &text, NULL);

    text = env_str("read first by the new one");
    (void) read_event(&zone, &fed, "", &text, NULL);
}


static ngx_uint_t
overlap_check(void)
{
    ngx_str_t            texts[2];
    ngx_uint_t           want[] = { 1, 1, 1 };
    ngx_mcp_lease_sh_t  *l;

    l = ngx_mcp_record(&copy, feed.ref, NGX_MCP_LEASE);

    if (l == NULL || ngx_mcp_lease_renew(&copy, &feed) == NGX_DECLINED) {
        fprintf(stderr, "# the one before reads no more\n");
        return 1;
    }

    texts[0] = env_str("read first by the one before");
    texts[1] = env_str("read first by the new one");

    /* the former holder did not die */

    if (l->consumed == 0) {
        return 0;
    }

    (void) read_event(&copy, &feed, "", &texts[1], NULL);

    return read_check(texts, 2, want);
}


static void
op_claim(void)
{
    u_char          bell[NGX_MCP_NAME_LEN];
    ngx_mcp_zone_t  third;

    memset(bell, 1, sizeof(bell));
    third = zone;
    third.worker = NGX_MCP_NO_WORKER;
    ngx_mcp_worker_claim(&third, bell);
    ngx_mcp_worker_release(&third);
}


/* claims a slot as if no other one were left */

static void
op_claim_grow(void)
{
    zone.sh->slots = zone.sh->top;
    op_claim();
}


static void
op_reap(void)
{
    ngx_mcp_worker_reap(&zone, other.worker,
                        ngx_mcp_slot(&zone, other.worker)->nonce);
}


static void
op_drain(void)
{
    op_log_groups();
    (void) ngx_mcp_worker_drain(&zone);
}


static void
op_reclaim(void)
{
    ngx_uint_t  i;

    env_time(ngx_current_msec + 1801000);

    ngx_mcp_zone_lock(&zone);

    for (i = 0; i < 3; i++) {
        (void) env_reserve_locked(&zone, 64);
    }

    ngx_mcp_zone_unlock(&zone);
}


static void
op_expire(void)
{
    env_time(ngx_current_msec + 25 * 1800000);
    (void) ngx_mcp_worker_sweep(&zone);
}


/* rolls back the changes that a dead worker left */

static void
op_rollback(void)
{
    ngx_mcp_zone_lock(&zone);
    ngx_mcp_zone_unlock(&zone);
}


static void
left_end(void)
{
    env_half_end(&zone, victim);
}


static void
left_topic(void)
{
    ngx_mcp_zone_lock(&zone);
    env_time(ngx_current_msec + NGX_MCP_TOPIC_IDLE + 2000);
    (void) ngx_mcp_topic_sweep_locked(&zone);
    env_unlock(&zone, ngx_pid);
}


static step_op_t  ops[] = {
    { "session_create", op_create, 5, NULL, 0, NULL },
    { "session_create in a group", op_create_known, 5, NULL, 0, NULL },
    { "session_create with a long text", op_create_staged, 5, NULL, 0, NULL },
    { "session_find", op_find, 5, NULL, 0, NULL },
    { "session_end", op_end, 5, NULL, 0, NULL },
    { "session_end of the last of a group", op_end_alone, 5, NULL, 0, NULL },
    { "log_session", op_log, 5, NULL, 0, NULL },
    { "log_session that evicts", op_log_evict, 5, NULL, 0, NULL },
    { "log_session of a long text", op_log_staged, 5, NULL, 0, NULL },
    { "log_groups", op_log_groups, 5, NULL, 0, NULL },
    { "call_open", op_call_open, 5, NULL, 0, NULL },
    { "call_park", op_call_park, 5, NULL, 0, NULL },
    { "log_call, call_close", op_call_answer, 5, NULL, 0, NULL },
    { "call_close", op_call_close, 5, NULL, 0, NULL },
    { "call_cancel", op_call_cancel, 5, NULL, 0, NULL },
    { "stream_open", op_stream_open, 5, NULL, 0, NULL },
    { "stream_close", op_stream_close, 5, NULL, 0, NULL },
    { "stream_close of a call's", op_stream_close_line, 5, NULL, 0, NULL },
    { "stream_take", op_take, 5, NULL, 0, NULL },
    { "links", op_links, 5, NULL, 0, NULL },
    { "server requests", op_server_requests, 5, NULL, 0, NULL },
    { "subscriptions", op_subscriptions, 5, NULL, 0, NULL },
    { "shared", op_shared, 5, NULL, 0, NULL },
    { "shared_expire", op_shared_expire, 5, NULL, 0, NULL },
    { "interests", op_interests, 5, NULL, 0, NULL },
    { "topic_add of a new one", op_topic_new, 5, NULL, 0, NULL },
    { "topic_add that evicts", op_topic_evict, 5, NULL, 0, NULL },
    { "topic_watch, topic_next", op_topic_wait, 5, NULL, 0, NULL },
    { "topic_watch, alone", op_topic_wait_alone, 5, NULL, 0, NULL },
    { "topic_subscribe", op_topic_subscribe, 5, NULL, 0, NULL },
    { "topic_sweep", op_topic_idle, 5, NULL, 0, NULL },
    { "knowledge", op_knowledge, 5, NULL, 0, NULL },
    { "audiences", op_audiences, 5, NULL, 0, NULL },
    { "lists", op_lists, 5, NULL, 0, NULL },
    { "lists, parts", op_lists_parts, 5, NULL, 0, NULL },
    { "lists, staged", op_lists_staged, 5, NULL, 0, NULL },
    { "lists, passed", op_lists_passed, 5, NULL, 0, NULL },
    { "lists, told", op_lists_told, 5, lists_told_check, 0, NULL },
    { "outbox_send that opens a window", op_window_open, 5, NULL, 0, NULL },
    { "outbox_send that joins one", op_window_join, 5, window_check, 0, NULL },
    { "outbox_due", op_window_send, 5, window_check, 0, NULL },
    { "lease_want", op_lease_want, 5, NULL, 0, NULL },
    { "lease_claim", op_lease_claim, 5, lease_check, 0, NULL },
    { "lease_claim in an overlap", op_lease_claim, 5, lease_kept_check, 1,
      NULL },
    { "leases", op_lease_life, 5, NULL, 0, NULL },
    { "lease_drop", op_lease_drop, 5, NULL, 0, NULL },
    { "lease_drain", op_lease_drain, 5, NULL, 0, NULL },
    { "log_gap", op_gap, 0, NULL, 0, NULL },
    { "log_groups with a take", op_read, 0, read_all_check, 0, NULL },
    { "log_session with a take", op_read_alone, 0, read_alone_check, 0, NULL },
    { "log_session of a long text with a take", op_read_staged, 0,
      read_staged_check, 0, NULL },
    { "topic_add with a take", op_read_topic, 5, read_topic_check, 0, NULL },
    { "outbox_send with a take", op_steps_read, 0,
      steps_read_check, 0, NULL },
    { "outbox_send with a take, late", op_steps_read, 0,
      steps_read_late_check, 0, NULL },
    { "outbox_send with an id", op_steps_once, 0,
      steps_once_check, 0, NULL },
    { "outbox_send with an id, late", op_steps_once, 0,
      steps_once_late_check, 0, NULL },
    { "lease_take in an overlap", op_overlap, 0, overlap_check, 1, NULL },
    { "worker_claim, worker_release", op_claim, 5, NULL, 0, NULL },
    { "worker_claim that makes places", op_claim_grow, 5, NULL, 0, NULL },
    { "worker_reap", op_reap, 5, NULL, 0, NULL },
    { "worker_drain", op_drain, 5, NULL, 0, NULL },
    { "reclaim", op_reclaim, 0, NULL, 0, NULL },
    { "expire", op_expire, 0, NULL, 0, NULL },
    { "rollback of a session_end", op_rollback, 5, NULL, 0, left_end },
    { "rollback of a topic_sweep", op_rollback, 5, NULL, 0, left_topic },
    { NULL, NULL, 0, NULL, 0, NULL }
};


static ngx_uint_t
bystander_check(ngx_uint_t kept)
{
    char              want[64];
    size_t            len;
    u_char            buf[512];
    ngx_int_t         rc;
    ngx_uint_t        i, flags, us;
    ngx_mcp_cursor_t  from;
    ngx_mcp_stream_t  st;

    memset(&from, 0, sizeof(from));

    if (env_stream_open(&copy, bystander, 0, &from, 0, 1, &st) != NGX_OK) {
        return 1;
    }

    i = 0;

    for ( ;; ) {
        us = st.cursor.own;
        rc = ngx_mcp_stream_read(&copy, &st, buf, sizeof(buf), &len, &flags);

        if (rc == NGX_AGAIN) {
            break;
        }

        if (rc != NGX_OK) {
            fprintf(stderr, "# bystander's stream says %d\n", (int) rc);
            return 1;
        }

        if (st.cursor.own == us) {
            continue;
        }

        snprintf(want, sizeof(want), "bystander %d", (int) i++);

        if (len != strlen(want) || memcmp(want, buf, len) != 0) {
            fprintf(stderr, "# bystander got \"%.*s\"\n", (int) len, buf);
            return 1;
        }
    }

    if (i != kept && i != kept + 1) {
        fprintf(stderr, "# bystander has %d events\n", (int) i);
        return 1;
    }

    ngx_mcp_stream_close(&copy, &st, NGX_MCP_COUNTER_STREAMS_CLIENT);

    return 0;
}


/* acts for the workers that live on after the death */

static ngx_uint_t
survive(step_op_t *op)
{
    uint32_t               n;
    ngx_uint_t             i, errors;
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_sh_t  *s;
    ngx_mcp_profile_sh_t  *k;

    ngx_mcp_zone_lock(&copy);
    errors = env_check_locked(&copy);
    ngx_mcp_zone_unlock(&copy);

    if (op->kept) {
        errors += bystander_check(op->kept);
    }

    for (i = 0; i < copy.sh->top; i++) {
        if (ngx_mcp_slot(&copy, i)->state != NGX_MCP_WORKER_FREE
            && !(op->lives && i == other.worker))
        {
            ngx_mcp_worker_reap(&copy, i, ngx_mcp_slot(&copy, i)->nonce);
        }
    }

    if (op->after) {
        errors += op->after();
    }

    windows_end();

    for (i = 0; i < copy.sh->top; i++) {
        if (ngx_mcp_slot(&copy, i)->state != NGX_MCP_WORKER_FREE) {
            ngx_mcp_worker_reap(&copy, i, ngx_mcp_slot(&copy, i)->nonce);
        }
    }

    copy.worker = NGX_MCP_NO_WORKER;

    errors += env_check(&copy);

    for (n = 1; n < copy.sh->watermark; n++) {
        s = ngx_mcp_block(&copy, n);

        if (s->rec.block.type == NGX_MCP_SESSION) {
            ref = ngx_mcp_ref(&copy, s);
            ngx_mcp_session_end(&copy, ref, NGX_MCP_COUNTER_SESSIONS_DELETED);
        }

        if (s->rec.block.type == NGX_MCP_UPSTREAM_SESSION) {
            us_shared_end(&copy, ngx_mcp_ref(&copy, s));
        }
    }

    while (ngx_mcp_pending_delete_send(&copy) == NGX_OK) { /* void */ }

    ngx_mcp_zone_lock(&copy);

    env_topics_end_locked(&copy);

    while (ngx_mcp_group_sweep_locked(&copy) == NGX_AGAIN) { /* void */ }

    while (copy.sh->leases.head) {
        ngx_mcp_lease_drop_locked(&copy, ngx_mcp_block(&copy,
                                                     copy.sh->leases.head));
    }

    while (copy.root->audiences.head) {
        ngx_mcp_audience_drop_locked(&copy, ngx_mcp_block(&copy,
                                                copy.root->audiences.head));
    }

    while (copy.root->profiles.head) {
        k = ngx_mcp_block(&copy, copy.root->profiles.head);
        ngx_mcp_profile_drop_locked(&copy, k);
    }

    errors += env_check_locked(&copy);

    if (copy.sh->nfree != copy.sh->watermark - 1) {
        fprintf(stderr, "# %u blocks leaked\n",
                copy.sh->watermark - 1 - copy.sh->nfree);
        errors++;
    }

    ngx_mcp_zone_unlock(&copy);

    return errors;
}


/*
 * Counts live workers that were not told, after the rollback, to look at
 * everything.
 */

static ngx_uint_t
unaware(void)
{
    ngx_uint_t            i, n;
    ngx_mcp_worker_sh_t  *w;

    n = 0;

    for (i = 0; i < zone.sh->top; i++) {
        w = ngx_mcp_slot(&zone, i);
        n += (w->state == NGX_MCP_WORKER_LIVE && !w->overflow);
    }

    return n;
}


static void
step(step_op_t *op)
{
    int              status;
    pid_t            pid;
    u_char          *before, *began;
    size_t           blocks, used, tail;
    ngx_uint_t       steps, deaths, errors, transactions, checked;
    ngx_slab_pool_t  pool;

    build();

    if (env_check(&zone)) {
        ok(0, "%s: the zone is sound before", op->name);
        return;
    }

    copy = zone;
    copy_size = (size_t) zone.sh->size;
    copy.sh = malloc(copy_size);
    copy.blocks = (u_char *) copy.sh + (zone.blocks - (u_char *) zone.sh);
    copy.root = (ngx_mcp_root_sh_t *) ((u_char *) copy.sh + zone.sh->root);
    copy.worker = NGX_MCP_NO_WORKER;
    before = malloc(copy_size);
    began = malloc(copy_size);
    blocks = zone.sh->base;
    tail = zone.sh->size - (NGX_MCP_SLOTS_MIN + NGX_MCP_SLOTS_STEP)
                           * sizeof(ngx_mcp_worker_sh_t);

    memset(&pool, 0, sizeof(pool));
    pool.mutex.lock = &pool.lock.lock;
    copy.shpool = &pool;

    memcpy(began, zone.sh, copy_size);

    if (op->left) {
        op->left();
    }

    memcpy(before, zone.sh, copy_size);

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        ngx_pid = getpid();

        if (ptrace(PTRACE_TRACEME, 0, 0, 0) == -1) {
            _exit(3);
        }

        raise(SIGSTOP);
        op->run();
        _exit(0);
    }

    steps = 0;
    deaths = 0;
    errors = 0;
    transactions = (op->left != NULL);
    checked = 0;

    for ( ;; ) {
        if (waitpid(pid, &status, 0) == -1 || !WIFSTOPPED(status)) {
            break;
        }

        steps++;
        used = (size_t) zone.sh->watermark * NGX_MCP_BLOCK_SIZE;

        if (zone.sh->noted == 0) {
            ((ngx_mcp_zone_sh_t *) before)->noted = 0;

            if (op->left && errors < 10) {
                errors += unaware();
            }

        } else if (((ngx_mcp_zone_sh_t *) before)->noted == 0) {

            /* nothing is changed yet */

            memcpy(began, zone.sh, copy_size);
            memcpy(before, zone.sh, copy_size);
            transactions++;

        } else if (errors < 10
                   && (memcmp(before, zone.sh, zone.sh->journal) != 0
                       || memcmp(before + blocks, zone.blocks, used) != 0
                       || memcmp(before + tail, (u_char *) zone.sh + tail,
                                 copy_size - tail) != 0))
        {
            memcpy(before, zone.sh, blocks + used);
            memcpy(before + tail, (u_char *) zone.sh + tail,
                   copy_size - tail);

            memcpy(copy.sh, before, blocks + used);
            memcpy((u_char *) copy.sh + tail, before + tail, copy_size - tail);

            deaths++;

            ngx_mcp_zone_lock(&copy);
            errors += env_differs((ngx_mcp_zone_sh_t *) began, copy.sh,
                                  "for ever");
            ngx_mcp_zone_unlock(&copy);

            if (checked < transactions) {
                checked = transactions;
                errors += survive(op);
            }
        }

        if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == -1) {
            break;
        }
    }

    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
        ok(1, "%s # SKIP no ptrace", op->name);

    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        ok(0, "%s: ends with status %d", op->name, status);

    } else {
        ok(errors == 0 && deaths > 0 && env_check(&zone) == 0,
           "%s: %u deaths in %u transactions, %u steps", op->name,
           (unsigned) deaths, (unsigned) transactions, (unsigned) steps);
    }

    free(before);
    free(began);
    free(copy.sh);
    env_zone_free(&zone);
    env_time(1000000);
}


int
main(int argc, char **argv)
{
    step_op_t  *op;

    for (op = ops; op->name; op++) {
        if (argc < 2 || strstr(op->name, argv[1])) {
            step(op);
        }
    }

    ok(env_alerts == 0, "no alerts");

    return tap_done();
}
