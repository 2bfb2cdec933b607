
/* Audiences and their lists. */

#include "env.h"


#define ID(n)  "00000000-0000-7000-8000-00000000000" #n

#define TTL  1000000


static ngx_mcp_zone_t  zone;
static ngx_pool_t     *pool;
static u_char          big[2000000];


static ngx_mcp_ref_t
session(const char *id, const char *tenant, const char *key,
    ngx_uint_t alone)
{
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));

    in.id = env_str(id);
    in.endpoint = env_str("endpoint");
    in.tenant = env_str(tenant);
    in.identity = env_str("");
    in.initialize = env_str("{}");
    in.client_name = env_str("client");
    in.client_version = env_str("1.0");
    in.list_key = env_str(key);
    in.alone = alone;
    in.limit_key = env_str("");
    in.timeout = 100000000;
    in.event_max = 64;
    in.event_size = 65536;

    ref.block = 0;
    ref.gen = 0;

    ok(ngx_mcp_session_create(&zone, &in, &ref) == NGX_OK, "a session");

    return ref;
}


static ngx_mcp_audience_t
names(const char *tenant, const char *key)
{
    ngx_mcp_audience_t  a;

    a.endpoint = env_str("endpoint");
    a.tenant = env_str(tenant);
    a.key = env_str(key);

    return a;
}


static ngx_mcp_ref_t
audience(const char *tenant, const char *key, ngx_uint_t max)
{
    ngx_mcp_ref_t       ref;
    ngx_mcp_audience_t  a;

    ref.block = 0;
    ref.gen = 0;

    a = names(tenant, key);
    (void) ngx_mcp_audience_get(&zone, &a, max, &ref);

    return ref;
}


static ngx_int_t
known(const char *tenant, const char *key)
{
    ngx_mcp_ref_t       ref;
    ngx_mcp_audience_t  a;

    a = names(tenant, key);

    return ngx_mcp_audience_find(&zone, &a, &ref) == NGX_OK;
}


static ngx_mcp_list_content_t
content(const char *text, u_char digest, u_char order)
{
    ngx_mcp_list_content_t  c;

    memset(&c, 0, sizeof(c));
    c.text = env_str(text);
    c.entries = 1;
    c.digest[0] = digest;
    c.order[0] = order;

    return c;
}


static ngx_int_t
put(ngx_mcp_ref_t a, const char *text, u_char digest, u_char order,
    uint32_t signals)
{
    ngx_mcp_list_content_t  c;

    c = content(text, digest, order);

    return ngx_mcp_list_put(&zone, a, NGX_MCP_LIST_TOOLS, &c, signals, TTL);
}


static ngx_uint_t
reads(ngx_mcp_ref_t a, const char *text)
{
    static u_char   buf[2000000];
    ngx_mcp_list_t  list;

    return ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &list) == NGX_OK
           && list.len == strlen(text)
           && ngx_mcp_list_current(&zone, &list)
           && ngx_mcp_list_read(&zone, &list, buf) == NGX_OK
           && memcmp(buf, text, list.len) == 0;
}


static const char *
take(ngx_mcp_stream_t *stream)
{
    size_t         len;
    ngx_int_t      rc;
    ngx_uint_t     flags;
    static u_char  buf[256];

    rc = ngx_mcp_stream_read(&zone, stream, buf, sizeof(buf) - 1, &len,
                             &flags);
    if (rc != NGX_OK) {
        return "";
    }

    buf[len] = '\0';

    return (char *) buf;
}


static ngx_int_t
due(ngx_mcp_ref_t a, uint32_t *signals, ngx_msec_t *delay)
{
    *signals = 0;
    *delay = 0;

    return ngx_mcp_list_due(&zone, a, NGX_MCP_LIST_TOOLS, signals, delay);
}


static void
life_tests(void)
{
    uint32_t        signals;
    ngx_msec_t      delay, first;
    ngx_uint_t      i;
    ngx_mcp_ref_t   a;
    ngx_mcp_list_t  list, stale;
    u_char          buf[64];

    a = audience("t", "", 4);
    ok(a.block && known("t", "") && !known("t", "x") && !known("u", ""),
       "an audience");
    ok(due(a, &signals, &delay) == NGX_DECLINED, "nobody wants it");
    ok(ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &list) == NGX_AGAIN,
       "cold");
    ok(due(a, &signals, &delay) == NGX_OK && signals == 0,
       "and due at once");
    ok(ngx_mcp_list_signal(&zone, a, NGX_MCP_LIST_ALL) == 0,
       "a signal, with nothing to compare");

    ok(put(a, "[1]", 1, 1, signals) == NGX_DONE, "the first");
    ok(reads(a, "[1]"), "is served");
    ok(ngx_mcp_list_dirty(&zone, a) == 0, "and nobody is told");
    ok(due(a, &signals, &delay) == NGX_OK && signals == 1,
       "the signal came after it began");
    ok(ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &stale) == NGX_OK,
       "a name of it");
    ok(put(a, "[1]", 1, 1, signals) == NGX_DONE
       && due(a, &signals, &delay) == NGX_AGAIN && delay == TTL,
       "equal: nothing to do until its time is over");
    ok(ngx_mcp_list_current(&zone, &stale), "and it is still the one");

    ok(ngx_mcp_list_signal(&zone, a, NGX_MCP_LIST_ALL)
       == NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), "a signal");
    ok(ngx_mcp_list_signal(&zone, a, NGX_MCP_LIST_ALL)
       == NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), "and another");
    ok(due(a, &signals, &delay) == NGX_OK && signals == 3, "due once");
    ok(put(a, "[2,1]", 1, 2, signals) == NGX_DONE
       && ngx_mcp_list_dirty(&zone, a) == 0 && reads(a, "[2,1]"),
       "a new order is stored silently");
    ok(!ngx_mcp_list_current(&zone, &stale)
       && ngx_mcp_list_read(&zone, &stale, buf) == NGX_DECLINED,
       "the one before is gone");

    ok(put(a, "[3]", 3, 3, signals) == NGX_OK
       && ngx_mcp_list_dirty(&zone, a)
          == NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), "another one");

    env_time(ngx_current_msec + TTL);
    ok(due(a, &signals, &delay) == NGX_OK, "its time is over");

    ngx_mcp_list_fail(&zone, a, NGX_MCP_LIST_TOOLS);
    ok(reads(a, "[3]"), "a failure: the old one stays");
    ok(due(a, &signals, &first) == NGX_AGAIN && first > 700
       && first <= 1000, "tried again after a second");
    ngx_mcp_list_fail(&zone, a, NGX_MCP_LIST_TOOLS);
    ok(due(a, &signals, &delay) == NGX_AGAIN && delay > 1400
       && delay <= 2000, "then two");

    for (i = 0; i < 20; i++) {
        ngx_mcp_list_fail(&zone, a, NGX_MCP_LIST_TOOLS);
    }

    ok(due(a, &signals, &delay) == NGX_AGAIN && delay > 44000
       && delay <= 60000, "at last a minute");
    ngx_mcp_list_signal(&zone, a, NGX_MCP_LIST_ALL);
    ok(due(a, &signals, &delay) == NGX_OK, "a signal is tried at once");

    ok(put(a, "[3]", 3, 3, signals) == NGX_DONE
       && due(a, &signals, &delay) == NGX_AGAIN && delay == TTL,
       "which heals it");

    ngx_mcp_list_pass_through(&zone, a, NGX_MCP_LIST_TOOLS, signals, TTL);
    ok(ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &list) == NGX_DECLINED
       && ngx_mcp_list_dirty(&zone, a), "one that can not be kept");

    a = audience("t", "cold", 4);
    (void) ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &list);
    ngx_mcp_list_fail(&zone, a, NGX_MCP_LIST_TOOLS);
    ok(ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &list) == NGX_DECLINED,
       "a failure while cold lets requests go on");
    ok(put(a, "[1]", 1, 1, 0) == NGX_DONE
       && ngx_mcp_list_dirty(&zone, a) == 0, "the first after all");

    ngx_mcp_list_pass_through(&zone, a, NGX_MCP_LIST_PROMPTS, 0, TTL);
    ok(ngx_mcp_list_dirty(&zone, a) == 0, "none from the beginning");
    (void) ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_PROMPTS, &list);
    ok(ngx_mcp_list_signal(&zone, a, NGX_MCP_LIST_ALL)
       == (NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS)
           |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS)), "a signal for it");
    ngx_mcp_list_pass_through(&zone, a, NGX_MCP_LIST_PROMPTS, 1, TTL);
    ok(ngx_mcp_list_dirty(&zone, a)
       == NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS),
       "is passed on: it may have changed");

    ok(env_check(&zone) == 0, "the zone is sound");
}


static void
member_tests(void)
{
    ngx_str_t           str;
    ngx_mcp_ref_t       a, none, one, two, alone;
    ngx_mcp_event_t     e;
    ngx_mcp_stream_t    st1, st2, st3;
    ngx_mcp_audience_t  an;

    memset(&none, 0, sizeof(none));

    a = audience("m", "a", 8);
    (void) reads(a, "");

    one = session(ID(1), "m", "a", 0);
    two = session(ID(2), "m", "b", 0);
    alone = session(ID(3), "m", "a", 1);

    ngx_mcp_stream_open(&zone, one, 0, NULL, 2, 1, &st1);
    ngx_mcp_stream_open(&zone, two, 0, NULL, 2, 2, &st2);
    ngx_mcp_stream_open(&zone, alone, 0, NULL, 2, 3, &st3);

    an = names("m", "a");
    str = env_str("changed");
    memset(&e, 0, sizeof(e));
    e.parts = &str;
    e.nparts = 1;

    ok(ngx_mcp_list_announce(&zone, a, &an, NGX_MCP_LIST_ALL, &e) == 0
       && strcmp(take(&st1), "") == 0, "nothing to tell");

    (void) put(a, "[1]", 1, 1, 0);
    (void) put(a, "[2]", 2, 2, 0);

    ok(ngx_mcp_list_announce(&zone, a, &an, NGX_MCP_LIST_ALL, &e) == 3,
       "a change is told");
    ok(strcmp(take(&st1), "changed") == 0, "to the audience");
    ok(strcmp(take(&st2), "") == 0, "not to another");
    ok(strcmp(take(&st3), "") == 0, "nor to one whose lists are its own");
    ok(ngx_mcp_list_announce(&zone, a, &an, NGX_MCP_LIST_ALL, &e) == 0
       && strcmp(take(&st1), "") == 0, "and once");

    memset(&e, 0, sizeof(e));
    e.parts = &str;
    e.nparts = 1;
    e.flags = NGX_MCP_EVENT_UNLISTED;

    env_tell(&zone, &an.endpoint, &an.tenant, &e,
                       (ngx_uint_t[]) { 0 });
    ok(strcmp(take(&st1), "") == 0 && strcmp(take(&st2), "changed") == 0
       && strcmp(take(&st3), "changed") == 0,
       "what is for those without kept lists");

    ngx_mcp_audience_join(&zone, two, a);
    ngx_mcp_audience_join(&zone, alone, a);
    ngx_mcp_audience_join(&zone, alone, a);
    ngx_mcp_audience_join(&zone, one, none);
    ok(env_check(&zone) == 0, "members");

    env_tell(&zone, &an.endpoint, &an.tenant, &e,
                       (ngx_uint_t[]) { 0 });
    ok(strcmp(take(&st1), "changed") == 0
       && strcmp(take(&st2), "changed") == 0
       && strcmp(take(&st3), "") == 0,
       "who joined it, who left it, who may not");

    env_time(ngx_current_msec + 100);
    ok(ngx_mcp_audience_retire(&zone, a, 10) == NGX_DECLINED,
       "with members it stays");
    ngx_mcp_session_end(&zone, two, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ngx_mcp_session_end(&zone, alone, NGX_MCP_COUNTER_SESSIONS_DELETED);
    ok(ngx_mcp_audience_retire(&zone, a, 1000) == NGX_DECLINED,
       "asked for recently it stays");
    ok(ngx_mcp_audience_retire(&zone, a, 10) == NGX_OK && !known("m", "a")
       && ngx_mcp_audience_retire(&zone, a, 10) == NGX_OK, "and goes");

    ngx_mcp_stream_close(&zone, &st1, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_stream_close(&zone, &st2, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_stream_close(&zone, &st3, NGX_MCP_COUNTER_STREAMS_CLIENT);
    ngx_mcp_session_end(&zone, one, NGX_MCP_COUNTER_SESSIONS_DELETED);

    ok(env_check(&zone) == 0, "the zone is sound");
}


static void
bound_tests(void)
{
    uint64_t                number;
    ngx_int_t               rc;
    ngx_str_t               endpoint;
    ngx_uint_t              n;
    ngx_mcp_ref_t           a, b, s;
    ngx_mcp_list_t          list;
    ngx_mcp_audience_t      an;
    ngx_mcp_list_info_t     info;
    ngx_mcp_list_content_t  c;

    env_zone_free(&zone);
    env_zone(&zone, 4 * 1024 * 1024);
    ngx_mcp_worker_claim(&zone, (u_char *) "0123456789abcdef");

    a = audience("t", "1", 3);
    env_time(ngx_current_msec + 1);
    b = audience("t", "2", 3);
    env_time(ngx_current_msec + 1);
    (void) audience("u", "3", 3);
    s = session(ID(4), "t", "1", 0);
    ngx_mcp_audience_join(&zone, s, a);

    env_time(ngx_current_msec + 1);
    (void) audience("t", "4", 3);
    ok(known("t", "1") && !known("t", "2") && known("u", "3")
       && known("t", "4"), "the least recently asked one without members");
    ok(ngx_mcp_list_get(&zone, b, NGX_MCP_LIST_TOOLS, &list) == NGX_ERROR,
       "it is gone");

    endpoint = env_str("endpoint");
    number = 0;

    for (n = 0; n < 9; n++) {
        rc = ngx_mcp_audience_next(&zone, &endpoint, NULL, &number, pool, &an,
                                   &b);
        if (rc != NGX_OK) {
            break;
        }
    }

    ok(rc == NGX_DONE && n == 3 && an.tenant.data[0] == 't'
       && an.key.data[0] == '4', "all of an endpoint");

    b = audience("t", "4", 3);

    memset(big, 'x', sizeof(big));
    c = content("", 1, 1);
    c.text.data = big;
    c.text.len = 700000;

    ok(ngx_mcp_list_put(&zone, b, NGX_MCP_LIST_TOOLS, &c, 0, TTL) == NGX_DONE,
       "a large list");
    ok(ngx_mcp_list_info(&zone, b, NGX_MCP_LIST_TOOLS, &info) == NGX_OK
       && info.filled && info.size == 700000 && info.entries == 1,
       "is seen");
    ok(ngx_mcp_list_put(&zone, a, NGX_MCP_LIST_TOOLS, &c, 0, TTL)
       == NGX_DECLINED && known("t", "4"),
       "two are too much, and both are in use");
    ok(ngx_mcp_list_get(&zone, a, NGX_MCP_LIST_TOOLS, &list) == NGX_DECLINED,
       "the second is passed through");

    env_time(ngx_current_msec + NGX_MCP_LIST_IDLE + 1);
    ok(ngx_mcp_list_put(&zone, a, NGX_MCP_LIST_TOOLS, &c, 0, TTL) == NGX_OK
       && !known("t", "4"), "what nobody asked for gives way");
    ok(env_check(&zone) == 0, "the zone is sound");

    /* a full zone */

    env_time(ngx_current_msec + NGX_MCP_LIST_IDLE + 1);
    ngx_mcp_session_end(&zone, s, NGX_MCP_COUNTER_SESSIONS_DELETED);

    ngx_mcp_zone_lock(&zone);
    rc = env_reserve_locked(&zone, 100);
    ngx_mcp_zone_unlock(&zone);

    ok(rc == NGX_OK && !known("t", "1"), "and so it does in a full zone");
    ok(env_check(&zone) == 0, "the zone is sound");
}


int
main(void)
{
    u_char  bell[NGX_MCP_NAME_LEN];

    memset(bell, 0, sizeof(bell));

    pool = env_pool();
    env_zone(&zone, 1024 * 1024);
    ngx_mcp_worker_claim(&zone, bell);

    life_tests();
    member_tests();
    bound_tests();

    env_zone_free(&zone);
    env_pool_free(pool);

    ok(env_alerts == 0, "no alerts");

    return tap_done();
}
