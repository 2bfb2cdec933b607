
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


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
    in.own_lists = alone;
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
    (void) ngx_mcp_audience_get(&zone, &a, env_sources(1), max, &ref);

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

    return ngx_mcp_list_put(&zone, env_part(&zone, a, 0), &c, signals, TTL);
}


static ngx_int_t
get(ngx_mcp_ref_t a, ngx_uint_t kind, ngx_mcp_list_t *list)
{
    return ngx_mcp_list_get(&zone, a, env_sources(1), kind, 0, list);
}


static ngx_uint_t
signal_all(ngx_mcp_ref_t a)
{
    ngx_mcp_ref_t  none;

    memset(&none, 0, sizeof(none));

    return ngx_mcp_list_signal(&zone, a, none, NGX_MCP_LIST_ALL, 1);
}


static ngx_uint_t
dirty(ngx_mcp_ref_t a)
{
    return ngx_mcp_list_dirty(&zone, a, env_part(&zone, a, 0));
}


static ngx_uint_t
announce(ngx_mcp_ref_t a, ngx_mcp_audience_t *an, ngx_mcp_event_t *e)
{
    return ngx_mcp_list_announce(&zone, a, env_part(&zone, a, 0), an,
                                 NGX_MCP_LIST_ALL, e);
}


static ngx_uint_t
reads(ngx_mcp_ref_t a, const char *text)
{
    static u_char   buf[2000000];
    ngx_mcp_list_t  list;

    return get(a, NGX_MCP_LIST_TOOLS, &list) == NGX_OK
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


static ngx_msec_t  not_before;

static ngx_int_t
due(ngx_mcp_ref_t a, uint32_t *signals, ngx_msec_t *delay)
{
    *signals = 0;
    *delay = 0;

    return ngx_mcp_list_due(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS,
                            not_before, signals, delay);
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
    ok(get(a, NGX_MCP_LIST_TOOLS, &list) == NGX_AGAIN,
       "cold");
    ok(due(a, &signals, &delay) == NGX_OK && signals == 0,
       "and due at once");
    ok(signal_all(a) == 0,
       "a signal, with nothing to compare");

    ok(put(a, "[1]", 1, 1, signals) == NGX_DONE, "the first");
    ok(reads(a, "[1]"), "is served");
    ok(dirty(a) == 0, "and nobody is told");
    ok(due(a, &signals, &delay) == NGX_OK && signals == 1,
       "the signal came after it began");
    ok(get(a, NGX_MCP_LIST_TOOLS, &stale) == NGX_OK,
       "a name of it");
    ok(put(a, "[1]", 1, 1, signals) == NGX_DONE
       && due(a, &signals, &delay) == NGX_AGAIN && delay == TTL,
       "equal: nothing to do until its time is over");
    ok(ngx_mcp_list_current(&zone, &stale), "and it is still the one");

    ok(signal_all(a)
       == NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), "a signal");
    ok(signal_all(a)
       == NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), "and another");
    not_before = ngx_current_msec + 10;
    ok(due(a, &signals, &delay) == NGX_AGAIN && delay == 10, "due later");
    not_before = 0;
    ok(due(a, &signals, &delay) == NGX_OK && signals == 3, "due once");
    ok(put(a, "[2,1]", 1, 2, signals) == NGX_DONE
       && dirty(a) == 0 && reads(a, "[2,1]"),
       "a new order is stored silently");
    ok(!ngx_mcp_list_current(&zone, &stale)
       && ngx_mcp_list_read(&zone, &stale, buf) == NGX_DECLINED,
       "the one before is gone");

    ok(put(a, "[3]", 3, 3, signals) == NGX_OK
       && dirty(a)
          == NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS), "another one");

    env_time(ngx_current_msec + TTL);
    ok(due(a, &signals, &delay) == NGX_OK, "its time is over");

    ngx_mcp_list_fail(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS);
    ok(reads(a, "[3]"), "a failure: the old one stays");
    ok(due(a, &signals, &first) == NGX_AGAIN && first > 700
       && first <= 1000, "tried again after a second");
    ngx_mcp_list_fail(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS);
    ok(due(a, &signals, &delay) == NGX_AGAIN && delay > 1400
       && delay <= 2000, "then two");

    for (i = 0; i < 20; i++) {
        ngx_mcp_list_fail(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS);
    }

    ok(due(a, &signals, &delay) == NGX_AGAIN && delay > 44000
       && delay <= 60000, "at last a minute");
    signal_all(a);
    ok(due(a, &signals, &delay) == NGX_OK, "a signal is tried at once");

    ok(put(a, "[3]", 3, 3, signals) == NGX_DONE
       && due(a, &signals, &delay) == NGX_AGAIN && delay == TTL,
       "which heals it");

    ngx_mcp_list_pass_through(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS,
                              0, signals, TTL);
    ok(get(a, NGX_MCP_LIST_TOOLS, &list) == NGX_DECLINED
       && dirty(a), "one that can not be kept");

    a = audience("t", "cold", 4);
    (void) get(a, NGX_MCP_LIST_TOOLS, &list);
    ngx_mcp_list_fail(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS);
    ok(get(a, NGX_MCP_LIST_TOOLS, &list) == NGX_DECLINED,
       "a failure while cold lets requests go on");
    ok(put(a, "[1]", 1, 1, 0) == NGX_DONE
       && dirty(a) == 0, "the first after all");

    ngx_mcp_list_pass_through(&zone, env_part(&zone, a, 0),
                              NGX_MCP_LIST_PROMPTS, 0, 0, TTL);
    ok(dirty(a) == 0, "none from the beginning");
    (void) get(a, NGX_MCP_LIST_PROMPTS, &list);
    ok(signal_all(a)
       == (NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS)
           |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS)), "a signal for it");
    ngx_mcp_list_pass_through(&zone, env_part(&zone, a, 0),
                              NGX_MCP_LIST_PROMPTS, 0, 1, TTL);
    ok(dirty(a)
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

    env_stream_open(&zone, one, 0, NULL, 2, 1, &st1);
    env_stream_open(&zone, two, 0, NULL, 2, 2, &st2);
    env_stream_open(&zone, alone, 0, NULL, 2, 3, &st3);

    an = names("m", "a");
    str = env_str("changed");
    memset(&e, 0, sizeof(e));
    e.parts = &str;
    e.nparts = 1;

    ok(announce(a, &an, &e) == 0
       && strcmp(take(&st1), "") == 0, "nothing to tell");

    (void) put(a, "[1]", 1, 1, 0);
    (void) put(a, "[2]", 2, 2, 0);

    ok(announce(a, &an, &e) == 3,
       "a change is told");
    ok(strcmp(take(&st1), "changed") == 0, "to the audience");
    ok(strcmp(take(&st2), "") == 0, "not to another");
    ok(strcmp(take(&st3), "") == 0, "nor to one whose lists are its own");
    ok(announce(a, &an, &e) == 0
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


static ngx_uint_t  unlocks;


static void
count_unlocks(void)
{
    unlocks++;
}


/* a walk examines few audiences under one hold of the lock */

static void
walk_tests(void)
{
    char                     key[16];
    ngx_str_t                other;
    ngx_uint_t               i;
    ngx_mcp_audience_walk_t  walk;

    env_zone_free(&zone);
    env_zone(&zone, 4 * 1024 * 1024);
    ngx_mcp_worker_claim(&zone, (u_char *) "0123456789abcdef");

    for (i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "%u", (unsigned) i);
        (void) audience("t", key, 1000);
    }

    memset(&walk, 0, sizeof(walk));
    other = env_str("other");
    walk.endpoint = &other;

    unlocks = 0;
    env_unlocked = count_unlocks;
    ok(ngx_mcp_audience_next(&zone, &walk, NULL, NULL) == NGX_DONE
       && unlocks > 2, "the lock is given back in a walk over others");

    unlocks = 0;
    (void) audience("t", "new", 1000);
    ok(unlocks > 2 && known("t", "0"), "or in a search for one to drop");

    env_unlocked = NULL;

    (void) audience("t", "last", 150);
    ok(!known("t", "0") && !known("t", "1") && known("t", "2"),
       "a smaller limit drops two for a new one");
    ok(env_check(&zone) == 0, "the zone is sound");
}


static void
bound_tests(void)
{
    ngx_int_t                rc;
    ngx_str_t                endpoint;
    ngx_uint_t               n;
    ngx_mcp_ref_t            a, b, s;
    ngx_mcp_list_t           list;
    ngx_mcp_audience_t       an;
    ngx_mcp_list_info_t      info;
    ngx_mcp_list_content_t   c;
    ngx_mcp_audience_walk_t  walk;

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
    ok(get(b, NGX_MCP_LIST_TOOLS, &list) == NGX_ERROR,
       "it is gone");

    endpoint = env_str("endpoint");
    memset(&walk, 0, sizeof(walk));
    walk.endpoint = &endpoint;

    for (n = 0; n < 9; n++) {
        rc = ngx_mcp_audience_next(&zone, &walk, pool, &an);
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

    ok(ngx_mcp_list_put(&zone, env_part(&zone, b, 0), &c, 0, TTL) == NGX_DONE,
       "a large list");
    ok(ngx_mcp_list_info(&zone, b, NGX_MCP_LIST_TOOLS, &info) == NGX_OK
       && info.filled && info.size == 700000 && info.entries == 1,
       "is seen");
    ok(ngx_mcp_list_put(&zone, env_part(&zone, a, 0), &c, 0, TTL)
       == NGX_DECLINED && known("t", "4"),
       "two are too much, and both are in use");
    ok(get(a, NGX_MCP_LIST_TOOLS, &list) == NGX_DECLINED,
       "the second is passed through");

    env_time(ngx_current_msec + NGX_MCP_LIST_IDLE + 1);
    ok(ngx_mcp_list_put(&zone, env_part(&zone, a, 0), &c, 0, TTL) == NGX_OK
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


/* several upstreams */

static ngx_mcp_list_t  found;


static ngx_int_t
ask(ngx_mcp_ref_t a, ngx_mcp_sources_t *sources, ngx_uint_t partial)
{
    return ngx_mcp_list_get(&zone, a, sources, NGX_MCP_LIST_TOOLS, partial,
                            &found);
}


static ngx_int_t
put_part(ngx_mcp_ref_t a, ngx_uint_t i, const char *text, u_char digest)
{
    ngx_mcp_list_content_t  c;

    c = content(text, digest, digest);

    return ngx_mcp_list_put(&zone, env_part(&zone, a, i), &c, 0, TTL);
}


static ngx_uint_t
shows(const char *text)
{
    u_char  buf[256];

    return found.len == strlen(text)
           && ngx_mcp_list_read(&zone, &found, buf) == NGX_OK
           && memcmp(buf, text, found.len) == 0;
}


static void
part_tests(void)
{
    ngx_uint_t             tools, changed;
    ngx_mcp_ref_t          a, none, part[3];
    ngx_mcp_list_info_t    info;
    ngx_mcp_audience_t     an;
    ngx_mcp_sources_t      sources, *three;
    ngx_mcp_list_content_t  c;

    memset(&none, 0, sizeof(none));

    tools = NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS);
    three = env_sources(3);
    an = names("parts", "");

    ok(ngx_mcp_audience_get(&zone, &an, three, 8, &a) == NGX_OK
       && ngx_mcp_audience_sync(&zone, a, three) == NGX_DONE,
       "an audience of three upstreams");

    part[0] = env_part(&zone, a, 0);
    part[1] = env_part(&zone, a, 1);
    part[2] = env_part(&zone, a, 2);

    ok(ask(a, three, 0) == NGX_AGAIN && found.missing == 3
       && ask(a, three, 1) == NGX_AGAIN, "nothing is there");
    ok(put_part(a, 0, "[1]", 1) == NGX_DONE && ask(a, three, 0) == NGX_AGAIN,
       "one is not all");
    ok(put_part(a, 2, "[3]", 3) == NGX_DONE
       && ask(a, three, 1) == NGX_OK && found.left_out == 2
       && found.nparts == 2 && found.parts[1].source == 2 && shows("[1][3]"),
       "until it takes too long");
    ok(ask(a, three, 0) == NGX_OK && found.left_out == 0 && found.missing == 1,
       "nobody waits for it any more, and it is said once");
    ok(ngx_mcp_list_info(&zone, a, NGX_MCP_LIST_TOOLS, &info) == NGX_OK
       && info.filled == 2 && info.left_out == 1 && info.entries == 2,
       "which is seen");
    ok(ngx_mcp_list_signal(&zone, a, part[1], NGX_MCP_LIST_ALL, 1) == tools,
       "a signal of it is looked at");
    ok(put_part(a, 1, "[2]", 2) == NGX_OK
       && ngx_mcp_list_dirty(&zone, a, part[1]) == tools
       && ngx_mcp_list_dirty(&zone, a, part[0]) == 0,
       "it comes, and is a change");
    ok(!ngx_mcp_list_current(&zone, &found) && ask(a, three, 0) == NGX_OK
       && shows("[1][2][3]") && found.missing == 0, "in its place");

    ngx_mcp_list_fail(&zone, part[0], NGX_MCP_LIST_TOOLS);
    ok(ask(a, three, 0) == NGX_OK && shows("[1][2][3]"),
       "the part of one that is away stays");
    ngx_mcp_list_pass_through(&zone, part[0], NGX_MCP_LIST_TOOLS, 1, 0, TTL);
    ok(ask(a, three, 0) == NGX_OK && shows("[2][3]")
       && ngx_mcp_list_dirty(&zone, a, part[0]) == tools,
       "one that has no such list any more");
    ngx_mcp_list_pass_through(&zone, part[1], NGX_MCP_LIST_TOOLS, 0, 0, TTL);
    ok(ask(a, three, 0) == NGX_DECLINED, "one that cannot be kept");
    ok(put_part(a, 1, "[2]", 2) == NGX_OK && put_part(a, 0, "[1]", 1)
       == NGX_OK && ask(a, three, 0) == NGX_OK && shows("[1][2][3]"),
       "all of them again");

    /* other kinds: one fails while all are cold */

    (void) ngx_mcp_list_get(&zone, a, three, NGX_MCP_LIST_PROMPTS, 0, &found);
    c = content("[p]", 1, 1);
    c.kind = NGX_MCP_LIST_PROMPTS;
    ngx_mcp_list_fail(&zone, part[0], NGX_MCP_LIST_PROMPTS);
    ngx_mcp_list_put(&zone, part[1], &c, 0, TTL);
    ngx_mcp_list_pass_through(&zone, part[2], NGX_MCP_LIST_PROMPTS, 1, 0, TTL);
    ok(ngx_mcp_list_get(&zone, a, three, NGX_MCP_LIST_PROMPTS, 0, &found)
       == NGX_OK && found.left_out == 1 && shows("[p]"),
       "one that failed is not waited for");

    /* another configuration: the second goes, one comes, in another order */

    sources = *env_sources(4);
    sources.elts[1] = sources.elts[2];
    sources.elts[2] = sources.elts[0];
    sources.elts[0] = sources.elts[3];
    sources.n = 3;
    sources.layout = 99;

    ok(ngx_mcp_audience_sync(&zone, a, &sources) == NGX_DECLINED,
       "not for another location of the same name");
    (void) ask(a, three, 0);
    zone.epoch++;
    ok(ask(a, &sources, 0) == NGX_ERROR, "a new configuration");
    ok(ngx_mcp_audience_sync(&zone, a, &sources) == NGX_OK
       && ngx_mcp_audience_sync(&zone, a, &sources) == NGX_DONE,
       "gives it its upstreams");
    ok(!ngx_mcp_list_current(&zone, &found), "copies are of another list");
    ok(ask(a, &sources, 0) == NGX_OK && shows("[3][1]") && found.missing == 1
       && found.left_out == 0 && found.parts[0].source == 1,
       "in another order, and the new one is not waited for");
    ok(ngx_mcp_list_dirty(&zone, a, none)
       == (tools|NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS)),
       "what went is a change");
    ok(ngx_mcp_list_put(&zone, part[1], &c, 0, TTL) == NGX_ERROR,
       "it is gone");
    ok(put_part(a, 3, "[4]", 4) == NGX_OK && ask(a, &sources, 0) == NGX_OK
       && shows("[4][3][1]"), "what came is a change");
    zone.epoch--;
    ok(ask(a, three, 0) == NGX_DECLINED
       && ngx_mcp_audience_get(&zone, &an, three, 8, &none) == NGX_DECLINED,
       "an old worker does not undo it");
    zone.epoch++;
    ok(env_check(&zone) == 0, "the zone is sound");

    /* names with another prefix */

    (void) ngx_mcp_list_announce(&zone, a, part[0], &an, NGX_MCP_LIST_ALL,
                                 &(ngx_mcp_event_t) { .nparts = 0 });
    ok(ngx_mcp_list_dirty(&zone, a, part[0]) == 0, "all was told");

    zone.epoch++;
    sources.elts[0].prefix = env_str("x");
    sources.layout = 100;
    ok(ngx_mcp_audience_sync(&zone, a, &sources) == NGX_OK
       && ngx_mcp_list_dirty(&zone, a, part[0]) == tools,
       "another prefix is a change");

    /* kinds that are kept no more, and one of a pair */

    (void) ngx_mcp_list_get(&zone, a, &sources, NGX_MCP_LIST_RESOURCES, 0,
                            &found);
    c = content("[r]", 1, 1);
    c.kind = NGX_MCP_LIST_RESOURCES;
    ngx_mcp_list_put(&zone, part[0], &c, 0, TTL);

    zone.epoch++;
    sources.kinds = NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES);
    sources.layout = 101;
    ok(ngx_mcp_audience_sync(&zone, a, &sources) == NGX_OK
       && ngx_mcp_list_info(&zone, a, NGX_MCP_LIST_TOOLS, &info) == NGX_OK
       && info.filled == 0, "other kinds");

    changed = NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
              |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TEMPLATES);
    ok(ngx_mcp_list_signal(&zone, a, part[0], changed, 1)
       == NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
       && ngx_mcp_list_signal(&zone, a, part[0], tools, 1) == 0,
       "signals for those that are kept");
    ok(ngx_mcp_list_put(&zone, part[0], &c, 1, TTL) == NGX_OK
       && ngx_mcp_list_dirty(&zone, a, part[0])
          & NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES),
       "an equal one is told where the other of a pair may have changed");
    ok(ngx_mcp_list_put(&zone, part[0], &c, 1, TTL) == NGX_DONE, "once");

    ngx_mcp_audience_drop(&zone, a, 0);
    ok(ask(a, &sources, 0) == NGX_ERROR && env_check(&zone) == 0,
       "the zone is sound");
}


/* lists that passed */

static ngx_int_t
keep(ngx_mcp_ref_t a, ngx_uint_t i, const char *text, uint64_t until,
    ngx_uint_t public, uint64_t forgotten)
{
    ngx_mcp_list_content_t  c;

    c = content(text, text[1], text[1]);
    c.hint.until = until;
    c.hint.public = public;

    return ngx_mcp_list_keep(&zone, a, &env_sources(2)->elts[i].name,
                             &c, forgotten);
}


static ngx_int_t
fresh(ngx_mcp_ref_t a)
{
    return ngx_mcp_list_fresh(&zone, a, env_sources(2), NGX_MCP_LIST_TOOLS,
                              &found);
}


static void
passed_tests(void)
{
    uint32_t            signals;
    uint64_t            n, now;
    ngx_str_t           endpoint, tenant;
    ngx_msec_t          delay;
    ngx_mcp_ref_t       a, other;
    ngx_mcp_audience_t  an;

    env_zone_free(&zone);
    env_zone(&zone, 4 * 1024 * 1024);
    ngx_mcp_worker_claim(&zone, (u_char *) "0123456789abcdef");

    now = ngx_current_msec;
    endpoint = env_str("endpoint");
    n = ngx_mcp_lists_forgotten(&zone);

    an = names("t", "a");
    ngx_mcp_audience_get(&zone, &an, env_sources(2), 9, &a);
    an = names("u", "a");
    ngx_mcp_audience_get(&zone, &an, env_sources(2), 9, &other);

    ok(fresh(a) == NGX_DECLINED, "nothing has passed");
    ok(keep(a, 0, "[1]", now + 100, 1, n) == NGX_OK
       && fresh(a) == NGX_AGAIN && found.nparts == 1
       && found.parts[0].source == 0 && found.parts[0].hint.until == now + 100,
       "a part of it");
    ok(keep(a, 1, "[2]", now + 50, 1, n) == NGX_OK && fresh(a) == NGX_OK
       && found.len == 6 && found.hint.until == now + 50 && found.hint.public,
       "all of it");
    ok(ngx_mcp_list_due(&zone, env_part(&zone, a, 0), NGX_MCP_LIST_TOOLS,
                        0, &signals, &delay)
       == NGX_DECLINED, "nobody fetches it");
    ok(ngx_mcp_list_dirty(&zone, a, env_part(&zone, a, 0)) == 0
       && keep(a, 0, "[3]", now + 100, 1, n) == NGX_OK
       && ngx_mcp_list_dirty(&zone, a, env_part(&zone, a, 0)) == 0,
       "or tells of it");

    env_time(now + 50);
    ok(fresh(a) == NGX_AGAIN && found.parts[0].source == 0,
       "a part that is over");
    ok(keep(a, 1, "[2]", now + 200, 1, n) == NGX_OK && fresh(a) == NGX_OK
       && found.hint.until == now + 100, "and there again");
    ok(keep(a, 1, "[2]", now + 200, 0, n) == NGX_OK && fresh(a) == NGX_AGAIN,
       "for one caller alone");
    ok(keep(a, 1, "[2]", now + 200, 1, n) == NGX_OK && fresh(a) == NGX_OK,
       "for all");

    ok(keep(other, 0, "[4]", now + 100, 1, n) == NGX_OK
       && fresh(other) == NGX_AGAIN, "of another tenant");

    tenant = env_str("t");
    ngx_mcp_list_forget(&zone, &endpoint, &tenant, NULL,
                        NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS));
    ok(fresh(a) == NGX_OK, "another kind changed");

    n = ngx_mcp_lists_forgotten(&zone);
    ngx_mcp_list_forget(&zone, &endpoint, &tenant,
                        &env_sources(2)->elts[1].name, NGX_MCP_LIST_ALL);
    ok(fresh(a) == NGX_AGAIN && found.parts[0].source == 0
       && fresh(other) == NGX_AGAIN, "one of one upstream and tenant");
    ok(keep(a, 1, "[2]", now + 200, 1, n) == NGX_DECLINED
       && fresh(a) == NGX_AGAIN, "what was on its way is not kept");

    ngx_mcp_list_forget(&zone, &endpoint, NULL, NULL, NGX_MCP_LIST_ALL);
    ok(fresh(a) == NGX_DECLINED && fresh(other) == NGX_DECLINED, "all");

    /* another configuration */

    n = ngx_mcp_lists_forgotten(&zone);
    ok(keep(a, 0, "[1]", now + 100, 1, n) == NGX_OK && fresh(a) == NGX_AGAIN,
       "a list");
    zone.epoch++;
    ok(fresh(a) == NGX_DECLINED, "is none of a newer configuration");
    ok(keep(a, 0, "[5]", now + 100, 1, n) == NGX_DECLINED
       && fresh(a) == NGX_DECLINED, "until that has the audience");
    ok(ngx_mcp_audience_sync(&zone, a, env_sources(2)) == NGX_DONE
       && fresh(a) == NGX_DECLINED, "which has none then");
    zone.epoch--;
    ok(keep(a, 1, "[2]", now + 200, 1, n) == NGX_DECLINED,
       "an old one keeps no more");
    zone.epoch++;
    ngx_mcp_audience_drop(&zone, a, 1);
    ok(known("t", "a"), "it stays,");
    zone.epoch++;
    ngx_mcp_audience_drop(&zone, a, 1);
    ok(!known("t", "a"), "as long as there is no newer one");

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
    walk_tests();
    part_tests();
    passed_tests();

    env_zone_free(&zone);
    env_pool_free(pool);

    ok(env_alerts == 0, "no alerts");

    return tap_done();
}
