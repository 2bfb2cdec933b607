
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/* Tests leases: holders, readers, and workers that wait. */

#include "env.h"


#define ZONE_SIZE  (4 * 1024 * 1024)
#define WORKERS    4


typedef struct {
    ngx_uint_t           n;
    ngx_uint_t           why;
    char                 key[64];
} heard_t;


static ngx_mcp_zone_t    zone;
static ngx_mcp_zone_t    workers[WORKERS];
static heard_t           heard[WORKERS];
static ngx_pool_t       *pool;

static ngx_mcp_lease_t       lease, other, third;
static ngx_mcp_lease_checkpoint_t  left;


static void
on_lease(ngx_mcp_zone_t *z, ngx_str_t *key, ngx_uint_t why)
{
    heard_t  *h;

    h = z->ctx[0];
    h->n++;
    h->why |= why;
    snprintf(h->key, sizeof(h->key), "%.*s", (int) key->len, key->data);
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
    .lease = on_lease
};


static void
listen_again(void)
{
    memset(heard, 0, sizeof(heard));
}


static void
drain(ngx_uint_t n)
{
    while (ngx_mcp_worker_drain(&workers[n]) == NGX_AGAIN) { /* void */ }
}


static void
drain_all(void)
{
    ngx_uint_t  i;

    for (i = 0; i < WORKERS; i++) {
        drain(i);
    }
}


/* lets time pass while all workers run */

static void
run(ngx_msec_t ms)
{
    ngx_uint_t  i;

    while (ms) {
        env_time(ngx_current_msec + ngx_min(ms, 1000));
        ms -= ngx_min(ms, 1000);

        for (i = 0; i < WORKERS; i++) {
            (void) ngx_mcp_worker_sweep(&workers[i]);
        }
    }
}


static void
join(ngx_uint_t n, uint64_t epoch)
{
    u_char  name[NGX_MCP_NAME_LEN];

    memset(name, 0, sizeof(name));

    workers[n] = zone;
    workers[n].epoch = epoch;
    workers[n].handlers = &handlers;
    workers[n].ctx[0] = &heard[n];
    workers[n].worker = NGX_MCP_NO_WORKER;

    ngx_mcp_worker_claim(&workers[n], name);
}


/* starts two workers of a configuration; the others join later */

static void
start(void)
{
    ngx_uint_t  i;

    env_time(1000000);
    env_zone(&zone, ZONE_SIZE);
    pool = env_pool();

    for (i = 0; i < WORKERS; i++) {
        workers[i] = zone;
        workers[i].worker = NGX_MCP_NO_WORKER;
    }

    join(0, 1);
    join(1, 1);
    listen_again();
}


static void
stop(const char *what)
{
    uint32_t               n;
    ngx_uint_t             i;
    ngx_mcp_session_sh_t  *s;

    ok(env_check(&zone) == 0, "%s: the zone is sound", what);

    for (i = 0; i < WORKERS; i++) {
        ngx_mcp_worker_release(&workers[i]);
    }

    for (n = 1; n < zone.sh->watermark; n++) {
        s = ngx_mcp_block(&zone, n);

        if (s->rec.block.type == NGX_MCP_SESSION) {
            ngx_mcp_session_end(&zone, ngx_mcp_ref(&zone, s),
                                NGX_MCP_COUNTER_SESSIONS_DELETED);
        }
    }

    ngx_mcp_zone_lock(&zone);

    while (ngx_mcp_group_sweep_locked(&zone) == NGX_AGAIN) { /* void */ }

    while (zone.sh->leases.head) {
        ngx_mcp_lease_drop_locked(&zone, ngx_mcp_block(&zone,
                                                       zone.sh->leases.head));
    }

    ngx_mcp_zone_unlock(&zone);

    ok(env_check(&zone) == 0 && zone.sh->nfree == zone.sh->watermark - 1,
       "%s: all blocks are free at the end", what);

    env_pool_free(pool);
    env_zone_free(&zone);
}


static ngx_int_t
want(const char *key)
{
    ngx_str_t  str;

    str = env_str(key);

    return ngx_mcp_lease_ensure(&workers[0], &str);
}


static ngx_int_t
claim(ngx_uint_t n, const char *key, ngx_mcp_lease_t *l)
{
    ngx_str_t  str;

    str = env_str(key);

    return ngx_mcp_lease_claim(&workers[n], &str, pool, l, &left);
}


static ngx_int_t
poke(const char *key)
{
    ngx_str_t  str;

    str = env_str(key);

    return ngx_mcp_lease_signal(&workers[0], &str);
}


static ngx_uint_t
is(ngx_str_t *got, const char *want)
{
    return got->len == strlen(want)
           && memcmp(got->data, want, got->len) == 0;
}


static ngx_int_t
consume(ngx_uint_t n, ngx_mcp_lease_t *l, const char *id, const char *text)
{
    ngx_mcp_consume_t  t;

    memset(&t, 0, sizeof(t));

    t.lease = *l;
    t.id = env_str(id);
    t.text = env_str(text);
    t.rc = NGX_AGAIN;

    return ngx_mcp_lease_consume(&workers[n], &t);
}


static ngx_uint_t
connected(ngx_uint_t n, ngx_mcp_lease_t *l)
{
    ngx_uint_t  gap;

    if (ngx_mcp_lease_connected(&workers[n], l, &gap) != NGX_OK) {
        return 2;
    }

    return gap;
}


/* tests workers that wait until a holder is connected */

static void
await_tests(void)
{
    ngx_str_t        key;
    ngx_mcp_ref_t    ref;
    ngx_mcp_lease_t  any;

    start();

    key = env_str("a");

    ok(ngx_mcp_lease_await(&zone, &key, &ref) == NGX_DECLINED,
       "no lease to wait for");

    want("a");
    drain_all();
    ok(ngx_mcp_lease_await(&workers[1], &key, &ref) == NGX_AGAIN
       && ngx_mcp_lease_settled(&workers[1], ref) == NGX_AGAIN,
       "nobody has it yet");

    workers[1].awaits = 1;

    claim(0, "a", &lease);
    ok(ngx_mcp_lease_settled(&workers[1], ref) == NGX_AGAIN, "claimed");

    listen_again();
    connected(0, &lease);
    drain_all();
    ok(heard[1].n == 1 && heard[1].why == NGX_MCP_LEASE_SETTLED
       && heard[0].n == 0, "connected: who waits is told");
    ok(ngx_mcp_lease_settled(&workers[1], ref) == NGX_OK
       && ngx_mcp_lease_failed(&workers[0], &lease) == NGX_DECLINED,
       "which is not in vain");

    listen_again();
    ngx_mcp_lease_disconnected(&workers[0], &lease);
    ok(ngx_mcp_lease_await(&workers[1], &key, &ref) == NGX_AGAIN
       && ngx_mcp_lease_failed(&workers[0], &lease) == NGX_OK
       && ngx_mcp_lease_failed(&workers[0], &lease) == NGX_DECLINED, "in vain");
    drain_all();
    ok(heard[1].n == 1 && heard[1].why == NGX_MCP_LEASE_SETTLED
       && heard[0].n == 0, "who waits is told as well");
    ok(ngx_mcp_lease_await(&workers[1], &key, &ref) == NGX_DECLINED,
       "and nobody else waits");

    listen_again();
    connected(0, &lease);
    drain_all();
    ok(heard[1].n == 0
       && ngx_mcp_lease_await(&workers[1], &key, &ref) == NGX_OK,
       "connected after that: nobody was told");

    ngx_mcp_lease_release(&workers[0], &lease);
    ok(ngx_mcp_lease_await(&workers[1], &key, &ref) == NGX_AGAIN,
       "let go of");
    any.ref = ref;
    any.fence = 0;
    ok(ngx_mcp_lease_failed(&workers[1], &lease) == NGX_OK
       && ngx_mcp_lease_settled(&workers[1], ref) == NGX_DECLINED,
       "nobody came in time");
    claim(1, "a", &other);
    ok(ngx_mcp_lease_failed(&workers[0], &lease) == NGX_DECLINED
       && ngx_mcp_lease_settled(&workers[1], ref) == NGX_AGAIN,
       "the next holder tries, whatever the one before says");
    ok(ngx_mcp_lease_failed(&workers[0], &any) == NGX_OK, "any holder's");

    (void) ngx_mcp_lease_drop(&workers[1], &other);
    ok(ngx_mcp_lease_settled(&workers[1], ref) == NGX_DECLINED, "dropped");

    workers[1].awaits = 0;

    stop("those who wait");
}


static void
holder_tests(void)
{
    char                   key[4200];
    ngx_str_t              note;
    ngx_uint_t             i;
    ngx_mcp_lease_info_t   info;

    start();

    ok(claim(0, "a", &lease) == NGX_DECLINED, "no lease that nobody wants");
    ok(poke("a") == NGX_DECLINED, "none to poke");

    ok(want("a") == NGX_OK && want("a") == NGX_OK, "want");
    drain_all();
    ok(heard[0].n == 1 && heard[1].n == 1
       && heard[0].why == NGX_MCP_LEASE_FREE
       && heard[1].why == NGX_MCP_LEASE_FREE && strcmp(heard[1].key, "a") == 0,
       "all are told, once");
    ok(ngx_mcp_lease_info(&zone, 0, pool, &info) == NGX_OK
       && info.holder == 0 && info.silent == 0, "nobody reads it yet");

    ok(claim(0, "a", &lease) == NGX_OK && left.id.len == 0
       && left.note.len == 0 && !left.overlap, "claim");
    ok(claim(1, "a", &other) == NGX_DECLINED
       && claim(0, "a", &other) == NGX_DECLINED, "one holds it");

    listen_again();
    (void) ngx_mcp_worker_sweep(&workers[1]);
    drain_all();
    ok(heard[0].n == 0 && heard[1].n == 0, "it is not free");

    poke("a");
    poke("a");
    drain_all();
    ok(heard[0].n == 1 && heard[0].why == NGX_MCP_LEASE_SIGNALED
       && heard[1].n == 0, "the holder is signaled");

    note = env_str("a note");
    ok(ngx_mcp_lease_note(&workers[0], &lease, &note) == NGX_OK, "note");
    note = env_str("another");
    ok(ngx_mcp_lease_note(&workers[0], &lease, &note) == NGX_OK, "again");
    ok(consume(0, &lease, "id-1", "x") == NGX_OK
       && consume(0, &lease, "id-22", "x") == NGX_OK, "take");

    ok(ngx_mcp_lease_info(&zone, 0, pool, &info) == NGX_OK
       && info.holder == ngx_pid && info.consumed == 2 && is(&info.key, "a")
       && ngx_mcp_lease_info(&zone, 1, pool, &info) == NGX_DECLINED, "info");

    listen_again();
    ngx_mcp_lease_release(&workers[0], &lease);
    ok(ngx_mcp_lease_renew(&workers[0], &lease) == NGX_DECLINED
       && consume(0, &lease, "id-3", "x") == NGX_ABORT, "release");
    drain_all();
    ok(heard[0].why == NGX_MCP_LEASE_FREE
       && heard[1].why == NGX_MCP_LEASE_FREE, "free for all");

    listen_again();
    poke("a");
    ok(claim(1, "a", &other) == NGX_OK && is(&left.id, "id-22")
       && is(&left.note, "another"), "what the one before left");
    drain_all();
    ok(heard[1].why == NGX_MCP_LEASE_SIGNALED && heard[0].n == 0,
       "a poke waits for the next holder");

    /* a holder that stalls */

    run(2999);
    ok(claim(0, "a", &lease) == NGX_DECLINED, "held for three seconds");
    env_time(ngx_current_msec + 2);
    listen_again();
    (void) ngx_mcp_worker_sweep(&workers[0]);
    (void) ngx_mcp_worker_sweep(&workers[1]);
    drain_all();
    ok(heard[0].why == NGX_MCP_LEASE_FREE && heard[1].n == 0, "it ran out");
    ok(ngx_mcp_lease_renew(&workers[1], &other) == NGX_OK,
       "but nobody else has it");

    /* the machine is paused, and all workers with it */

    env_time(ngx_current_msec + 60000);
    ok(claim(0, "a", &lease) == NGX_DECLINED, "nobody ran");
    listen_again();
    (void) ngx_mcp_worker_sweep(&workers[0]);
    drain_all();
    ok(heard[0].n == 0 && claim(0, "a", &lease) == NGX_DECLINED,
       "a pause is no reason to take it");
    ok(ngx_mcp_lease_renew(&workers[1], &other) == NGX_OK,
       "the holder goes on");

    run(3001);
    listen_again();
    ok(claim(0, "a", &lease) == NGX_OK && lease.fence > other.fence,
       "claimed by another one");
    ok(consume(1, &other, "id-4", "x") == NGX_ABORT
       && ngx_mcp_lease_renew(&workers[1], &other) == NGX_DECLINED,
       "the former one takes no more");
    drain_all();
    ok(heard[1].n == 1 && heard[1].why == NGX_MCP_LEASE_LOST
       && heard[0].n == 0, "and is told");

    /* a holder that dies */

    listen_again();
    ngx_mcp_worker_reap(&workers[1], workers[0].worker,
                        ngx_mcp_slot(&zone, workers[0].worker)->nonce);
    workers[0].worker = NGX_MCP_NO_WORKER;
    drain_all();
    ok(heard[1].n == 1 && heard[1].why == NGX_MCP_LEASE_FREE, "it died");
    ok(claim(1, "a", &other) == NGX_OK && is(&left.id, "id-22"), "taken over");
    ok(consume(0, &lease, "", "x") == NGX_ABORT, "for good");

    poke("a");
    ok(ngx_mcp_lease_drop(&workers[1], &other) == NGX_AGAIN,
       "signaled while it is dropped");
    ok(ngx_mcp_lease_info(&zone, 0, pool, &info) == NGX_DECLINED
       && claim(1, "a", &other) == NGX_DECLINED, "dropped");
    ok(ngx_mcp_lease_drop(&workers[1], &other) == NGX_OK, "dropped once");

    /* texts of any length */

    join(0, 1);
    memset(key, 'k', sizeof(key));
    key[4097] = '\0';
    ok(want(key) == NGX_ERROR, "a key too long");
    key[4096] = '\0';
    ok(want(key) == NGX_OK && claim(0, key, &lease) == NGX_OK, "a long one");
    note.data = (u_char *) key;
    note.len = 513;
    ok(ngx_mcp_lease_note(&workers[0], &lease, &note) == NGX_DECLINED,
       "a note too long");
    note.len = 512;
    ok(ngx_mcp_lease_note(&workers[0], &lease, &note) == NGX_OK, "a long one");
    key[256] = '\0';
    ok(consume(0, &lease, key, "x") == NGX_OK, "a long id");
    ngx_mcp_lease_release(&workers[0], &lease);
    key[256] = 'k';
    ok(claim(0, key, &lease) == NGX_OK && left.note.len == 512
       && left.id.len == 256, "kept");
    key[257] = '\0';
    ok(consume(0, &lease, key, "x") == NGX_OK, "an id too long");
    key[257] = 'k';
    ngx_mcp_lease_release(&workers[0], &lease);
    ok(claim(0, key, &lease) == NGX_OK && left.id.len == 0, "is not kept");
    (void) ngx_mcp_lease_drop(&workers[0], &lease);

    /* there is an end */

    for (i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "key %u", (unsigned) i);

        if (want(key) != NGX_OK) {
            break;
        }
    }

    ok(i > 50 && i <= NGX_MCP_LEASES_MAX
       && zone.sh->used[NGX_MCP_LEASE] <= zone.sh->blocks / 8,
       "an eighth of the zone: %u", (unsigned) i);

    listen_again();
    drain_all();
    ok(heard[0].n == i && heard[1].n == i, "all are told of all");

    ok(claim(0, "key 7", &lease) == NGX_OK, "one is claimed");

    env_time(ngx_current_msec + 59000);
    (void) ngx_mcp_lease_renew(&workers[0], &lease);
    ok(want("key 8") == NGX_OK, "one is wanted still");
    env_time(ngx_current_msec + 2000);
    listen_again();
    (void) ngx_mcp_worker_sweep(&workers[1]);
    drain_all();
    ok(zone.sh->nleases == 2 && heard[1].n == 1, "the others are forgotten");

    stop("holders");
}


static void
epoch_tests(void)
{
    ngx_mcp_zone_t  again;

    start();

    again = zone;
    ok(zone.epoch == 1 && ngx_mcp_state_init(&again, 1, 1) == NGX_OK
       && again.epoch == 2, "each configuration has its epoch");

    want("ids");
    want("none");
    claim(0, "ids", &lease);
    (void) connected(0, &lease);
    consume(0, &lease, "7", "x");
    claim(0, "none", &other);
    drain_all();

    /* a reload */

    listen_again();
    ok(!ngx_mcp_lease_newer(&workers[0]), "no worker is newer");
    join(2, 2);
    ok(ngx_mcp_lease_newer(&workers[0]) && !ngx_mcp_lease_newer(&workers[2]),
       "now one is");
    drain_all();
    ok(heard[2].n == 2 && heard[2].why == NGX_MCP_LEASE_FREE
       && heard[0].n == 0 && heard[1].n == 0, "free for the newer one");
    ok(claim(1, "ids", &third) == NGX_DECLINED, "not for the older one");

    ok(claim(2, "ids", &third) == NGX_OK && is(&left.id, "7")
       && !left.overlap, "it goes on from the last id");
    ok(consume(0, &lease, "8", "x") == NGX_ABORT, "alone");
    drain_all();
    ok(heard[0].why == NGX_MCP_LEASE_LOST && heard[0].n == 1
       && strcmp(heard[0].key, "ids") == 0, "the other one is told");
    ok(connected(2, &third) == 1, "nobody reads then");

    ok(claim(2, "none", &third) == NGX_OK && !left.overlap
       && ngx_mcp_lease_renew(&workers[0], &other) == NGX_DECLINED,
       "who was not connected has nothing to overlap");

    ngx_mcp_lease_release(&workers[2], &third);
    ok(claim(0, "none", &other) == NGX_DECLINED, "the older ones are out");

    /* the newer one is told to quit, and gone */

    ngx_mcp_worker_quit(&workers[2]);
    ok(claim(2, "none", &third) == NGX_DECLINED, "who quits claims nothing");
    ok(ngx_mcp_lease_renew(&workers[2], &third) == NGX_DECLINED, "nothing");
    ok(claim(1, "none", &other) == NGX_OK, "the others may");

    stop("epochs");
}


static void
overlap_tests(void)
{
    ngx_uint_t  i;
    char        text[32];

    start();

    want("f");
    ok(claim(0, "f", &lease) == NGX_OK && connected(0, &lease) == 0,
       "the first connection is no gap");
    ok(connected(0, &lease) == 0, "it stands");
    consume(0, &lease, "", "a");

    ngx_mcp_lease_disconnected(&workers[0], &lease);
    ok(connected(0, &lease) == 1, "one again is");

    join(2, 2);
    drain_all();
    listen_again();
    ok(claim(2, "f", &other) == NGX_OK && left.overlap, "an overlap");
    ok(ngx_mcp_lease_renew(&workers[0], &lease) == NGX_AGAIN
       && ngx_mcp_lease_renew(&workers[2], &other) == NGX_OK, "both have it");
    drain_all();
    ok(heard[0].n == 0, "nothing is lost");

    ok(consume(0, &lease, "", "b") == NGX_OK, "the one before reads on");
    ok(consume(0, &lease, "", "c") == NGX_OK, "and on");
    ok(connected(2, &other) == 0, "no gap");

    ok(consume(2, &other, "", "c") == NGX_DECLINED, "the new one is second");
    ok(consume(2, &other, "", "d") == NGX_OK
       && consume(0, &lease, "", "d") == NGX_DECLINED, "or first");

    /* equal texts */

    ok(consume(0, &lease, "",
               "e") == NGX_OK && consume(0, &lease, "", "e") == NGX_OK
       && consume(2, &other, "", "e") == NGX_DECLINED
       && consume(2, &other, "", "e") == NGX_DECLINED
       && consume(2, &other, "", "e") == NGX_OK
       && consume(0, &lease, "", "e") == NGX_DECLINED
       && consume(0, &lease, "", "e") == NGX_OK
       && consume(2, &other, "", "e") == NGX_DECLINED, "each is taken once");

    ok(consume(0, &lease, "",
               "") == NGX_OK && consume(2, &other, "", "") == NGX_OK,
       "no text is like no other");

    env_time(ngx_current_msec + 999);
    ok(consume(0, &lease, "", "f") == NGX_OK, "for a second");
    env_time(ngx_current_msec + 1);
    ok(consume(0, &lease, "", "g") == NGX_ABORT
       && ngx_mcp_lease_renew(&workers[0], &lease) == NGX_DECLINED,
       "then it is over");
    drain_all();
    ok(heard[0].n == 1 && heard[0].why == NGX_MCP_LEASE_LOST, "and told");

    env_time(ngx_current_msec + 1999);
    (void) ngx_mcp_lease_renew(&workers[2], &other);
    ok(consume(2, &other, "", "f") == NGX_DECLINED, "late");
    ok(consume(2, &other, "", "f") == NGX_OK, "another one");
    env_time(ngx_current_msec + 1);
    ok(consume(2, &other, "", "b") == NGX_OK, "what it never saw is forgotten");

    /* a third worker: the second one dies before it is connected */

    (void) ngx_mcp_lease_renew(&workers[2], &other);
    join(1, 3);
    join(3, 3);
    ok(claim(3, "f", &third) == NGX_OK && left.overlap, "the next overlap");
    ok(consume(2, &other, "", "f") == NGX_OK, "has a memory of its own");

    ngx_mcp_worker_reap(&workers[1], workers[3].worker,
                        ngx_mcp_slot(&zone, workers[3].worker)->nonce);
    workers[3].worker = NGX_MCP_NO_WORKER;

    ok(consume(2, &other, "", "h") == NGX_OK, "the one before lives on");
    ok(claim(1, "f", &third) == NGX_OK && left.overlap
       && connected(1, &third) == 0, "for another one");
    ok(consume(1, &third, "", "h") == NGX_DECLINED, "with what it had taken");

    ngx_mcp_lease_release(&workers[2], &other);
    ok(consume(2, &other, "", "i") == NGX_ABORT
       && consume(1, &third, "", "f") == NGX_DECLINED, "it lets go");

    /* the former holder is gone before the new one is connected */

    join(3, 4);
    ok(claim(3, "f", &other) == NGX_OK && left.overlap, "one more");
    ok(consume(1, &third, "", "j") == NGX_OK, "the one before takes");
    ngx_mcp_lease_disconnected(&workers[1], &third);
    ok(consume(1, &third, "", "k") == NGX_ABORT && connected(3, &other) == 1,
       "a gap");
    ok(connected(3, &other) == 0, "said once");
    ok(consume(3, &other, "", "j") == NGX_DECLINED
       && consume(3, &other, "", "j") == NGX_OK, "what it took is not doubled");

    /* an overlap is not mixed with another one */

    join(0, 5);
    ok(claim(0, "f", &lease) == NGX_OK && connected(0, &lease) == 0,
       "again");
    join(1, 6);
    ok(claim(1, "f", &third) == NGX_DECLINED, "not yet");
    env_time(ngx_current_msec + 1000);
    ok(claim(1, "f", &third) == NGX_OK && left.overlap, "now");

    for (i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned) i);
        (void) consume(0, &lease, "", text);
    }

    (void) connected(1, &third);
    ok(consume(1, &third, "", "2999") == NGX_DECLINED
       && consume(1, &third, "", "952") == NGX_DECLINED
       && consume(1, &third, "", "951") == NGX_OK, "the last 2048");

    /* an event that only the former holder has read, long ago */

    env_time(ngx_current_msec + 1001);
    (void) ngx_mcp_lease_renew(&workers[1], &third);
    join(2, 7);
    ok(claim(2, "f", &other) == NGX_OK, "and again");
    (void) consume(1, &third, "", "x");
    env_time(ngx_current_msec + 2001);
    (void) ngx_mcp_lease_renew(&workers[1], &third);
    (void) consume(1, &third, "", "y");
    (void) connected(2, &other);
    ok(consume(2, &other, "", "x") == NGX_OK
       && consume(2, &other, "", "y") == NGX_DECLINED, "swallows nothing");

    /* the former holder dies before it has read all */

    env_time(ngx_current_msec + 1001);
    (void) ngx_mcp_lease_renew(&workers[2], &other);
    join(3, 8);
    ok(claim(3, "f", &lease) == NGX_OK && left.overlap
       && connected(3, &lease) == 0, "the last overlap");
    drain_all();
    listen_again();
    ngx_mcp_worker_reap(&workers[3], workers[2].worker,
                        ngx_mcp_slot(&zone, workers[2].worker)->nonce);
    workers[2].worker = NGX_MCP_NO_WORKER;
    drain_all();
    ok(heard[3].n == 1 && heard[3].why == NGX_MCP_LEASE_GAP,
       "the one before died too early");

    /* one reader is in the way of the other */

    join(2, 9);
    ok(claim(2, "f", &other) == NGX_OK && left.overlap, "an overlap again");
    ngx_mcp_lease_overlap_end(&workers[3], &lease);
    ok(consume(3, &lease, "", "p") == NGX_OK, "the one before ends it not");
    listen_again();
    ngx_mcp_lease_overlap_end(&workers[2], &other);
    drain_all();
    ok(consume(3, &lease, "", "q") == NGX_ABORT
       && heard[3].n == 1 && heard[3].why == NGX_MCP_LEASE_LOST,
       "the holder does");
    ok(connected(2, &other) == 1, "which is a gap");

    /* ids */

    (void) consume(2, &other, "1", "r");
    join(1, 10);
    ok(claim(1, "f", &third) == NGX_OK && !left.overlap && left.id.len == 1
       && connected(1, &third) == 1, "nobody reads, but it can go on");
    ngx_mcp_lease_clear_id(&workers[1], &third);
    join(2, 11);
    ok(claim(2, "f", &other) == NGX_OK && left.overlap && left.id.len == 0,
       "an id that says nothing any more");

    stop("overlaps");
}


/* a holder is followed before it has read all that its predecessor took */

static void
chain_tests(void)
{
    start();

    want("c");
    ok(claim(0, "c", &lease) == NGX_OK && connected(0, &lease) == 0, "first");

    join(2, 2);
    ok(claim(2, "c", &other) == NGX_OK && left.overlap
       && connected(2, &other) == 0, "second");
    (void) consume(0, &lease, "", "a");
    (void) consume(0, &lease, "", "b");
    (void) consume(0, &lease, "", "c");

    env_time(ngx_current_msec + 1000);
    ok(consume(2, &other, "", "a") == NGX_DECLINED, "it is behind");

    join(1, 3);
    ok(claim(1, "c", &third) == NGX_OK && left.overlap
       && connected(1, &third) == 0, "third");
    ok(consume(2, &other, "", "b") == NGX_DECLINED,
       "the second is behind still");
    ok(consume(2, &other, "", "b") == NGX_OK
       && consume(1, &third, "", "b") == NGX_DECLINED,
       "another one is of the second and third");
    ok(consume(1, &third, "", "c") == NGX_OK, "what the third reads is new");
    ok(consume(2, &other, "", "c") == NGX_DECLINED
       && consume(2, &other, "", "c") == NGX_DECLINED
       && consume(2, &other, "", "c") == NGX_OK,
       "the second has it from either");

    stop("chains");
}


static ngx_mcp_ref_t
session_at(const char *endpoint, const char *tenant)
{
    static unsigned        serial;

    char                   id[64];
    ngx_mcp_ref_t          ref;
    ngx_mcp_session_new_t  in;

    memset(&in, 0, sizeof(in));
    snprintf(id, sizeof(id), "00000000-0000-7000-8000-%012u", ++serial);

    in.id = env_str(id);
    in.endpoint = env_str(endpoint);
    in.tenant = env_str(tenant);
    in.timeout = 1800000;
    in.event_max = 16;
    in.event_size = 4000;

    ref.block = 0;
    (void) ngx_mcp_session_create(&zone, &in, &ref);

    return ref;
}


/* reads a stream; returns the length of the event, or the code */

static ngx_int_t
next(ngx_mcp_stream_t *st)
{
    size_t      len;
    u_char      buf[8192];
    ngx_int_t   rc;
    ngx_uint_t  flags;

    rc = ngx_mcp_stream_read(&workers[1], st, buf, sizeof(buf), &len, &flags);

    return rc == NGX_OK ? (ngx_int_t) len : rc;
}


static ngx_int_t
say_as(ngx_uint_t worker, ngx_mcp_lease_t *l, const char *id, size_t len,
    const char *tenant, ngx_mcp_ref_t *ref)
{
    static u_char       big[8192];

    ngx_str_t           str;
    ngx_mcp_post_t      post;
    ngx_mcp_consume_t   t;
    ngx_mcp_delivery_t  d;

    memset(&t, 0, sizeof(t));
    memset(&d, 0, sizeof(d));
    memset(&post, 0, sizeof(post));

    t.lease = *l;
    t.id = env_str(id);
    t.text = env_str(id);
    t.rc = NGX_AGAIN;

    post.deliveries = &d;
    post.n = 1;
    post.consume = &t;

    str = env_str(tenant ? tenant : "");
    d.text.data = big;
    d.text.len = len;
    d.tenant = tenant ? &str : NULL;

    if (ref) {
        d.ref = *ref;
    }

    return ngx_mcp_outbox_send(&workers[worker], &post);
}


static ngx_int_t
say(ngx_mcp_lease_t *l, const char *id, size_t len, const char *tenant,
    ngx_mcp_ref_t *ref)
{
    return say_as(0, l, id, len, tenant, ref);
}


static void
take_tests(void)
{
    char                  name[16];
    ngx_str_t             tenant;
    ngx_uint_t            i;
    ngx_mcp_ref_t         refs[40];
    ngx_mcp_stream_t      st[40];
    ngx_mcp_lease_info_t  info;

    start();

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "t%u", (unsigned) i);
        refs[i] = session_at("e", name);
        env_stream_open(&workers[1], refs[i], 0, NULL, 0, 1, &st[i]);
    }

    want("f");
    claim(0, "f", &lease);

    ok(say(&lease, "1", 100, NULL, NULL) == NGX_OK,
       "taken with the event");

    for (i = 0; i < 40 && next(&st[i]) == 100 && next(&st[i]) == NGX_AGAIN;
         i++)
    {
        /* void */
    }

    ok(i == 40, "by all groups");

    ok(say(&lease, "2", 50, "t3", NULL) == NGX_OK
       && next(&st[3]) == 50, "to one group");
    ok(say(&lease, "3", 3000, "t3", NULL) == NGX_OK
       && next(&st[3]) == 3000, "a long one");
    ok(say(&lease, "4", 40, NULL, &refs[5]) == NGX_OK
       && next(&st[5]) == 40, "to a session");
    ok(say(&lease, "5", 5000, "t3", NULL) == NGX_ERROR
       && next(&st[3]) == NGX_ABORT, "one too long is a gap, and taken");
    ok(say(&lease, "6", 10, "nobody", NULL) == NGX_OK,
       "one for nobody");

    ok(ngx_mcp_lease_info(&zone, 0, pool, &info) == NGX_OK
       && info.consumed == 6, "six events");

    other = lease;
    other.fence--;
    ok(say(&other, "7", 10, NULL, NULL) == NGX_ABORT
       && say(&other, "7", 10, NULL, &refs[0]) == NGX_ABORT
       && say(&other, "7", 3000, "t3", NULL) == NGX_ABORT
       && next(&st[3]) == NGX_AGAIN && next(&st[0]) == NGX_AGAIN,
       "nothing under an old fence");

    /* a feed comes back without knowing what it missed */

    tenant = env_str("t7");
    ok(ngx_mcp_log_gap(&zone, NULL, &tenant) == 1
       && next(&st[7]) == NGX_ABORT && next(&st[7]) == NGX_AGAIN
       && next(&st[8]) == NGX_AGAIN, "a gap for a tenant");
    ok(ngx_mcp_log_gap(&zone, NULL, NULL) == 40 && next(&st[7]) == NGX_ABORT
       && next(&st[39]) == NGX_ABORT && next(&st[39]) == NGX_AGAIN,
       "for all");
    ok(say(&lease, "8", 10, NULL, NULL) == NGX_OK
       && next(&st[9]) == NGX_ABORT && next(&st[9]) == 10, "before an event");

    (void) ngx_mcp_lease_drop(&workers[0], &lease);
    ok(say(&lease, "9", 10, NULL, NULL) == NGX_ABORT
       && next(&st[9]) == NGX_AGAIN, "nothing without the lease");

    stop("takes");
}


/* one that is delivered in turns, and the next one by the next holder */

#define MANY  600

static void
left_tests(void)
{
    char              name[16];
    ngx_uint_t        i;
    ngx_msec_t        ms;
    ngx_mcp_ref_t     ref;
    ngx_mcp_stream_t  first, last;

    start();

    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "t%u", (unsigned) i);
        ref = session_at(name, name);

        if (i == 0) {
            env_stream_open(&workers[1], ref, 0, NULL, 0, 1, &first);
        }
    }

    env_stream_open(&workers[1], ref, 0, NULL, 0, 1, &last);

    want("f");
    claim(0, "f", &lease);

    ok(say(&lease, "1", 10, NULL, NULL) == NGX_AGAIN
       && next(&first) == 10 && next(&last) == NGX_AGAIN,
       "one that is delivered in part");

    ngx_mcp_lease_release(&workers[0], &lease);
    ok(claim(1, "f", &other) == NGX_OK && is(&left.id, "1"), "is taken");
    ok(say_as(1, &other, "2", 20, "t599", NULL) == NGX_OK
       && next(&last) == 10 && next(&last) == 20
       && next(&last) == NGX_AGAIN && next(&first) == NGX_AGAIN,
       "the next one comes after the rest of it");

    ok(say(&lease, "2", 30, NULL, NULL) == NGX_ABORT
       && next(&last) == NGX_AGAIN, "who lost the lease takes nothing");

    ok(say_as(1, &other, "3", 30, NULL, NULL) == NGX_AGAIN
       && say_as(1, &other, "4", 40, NULL, NULL) == NGX_AGAIN
       && next(&last) == 30 && next(&last) == NGX_AGAIN,
       "nor is one overtaken by the next of its holder");

    (void) ngx_mcp_outbox_due(&workers[1], &ms);

    stop("left");
}


static void
info_tests(void)
{
    ngx_mcp_lease_info_t  info;

    start();

    ok(want("a") == NGX_OK && want("b") == NGX_OK && want("c") == NGX_OK
       && want("d") == NGX_OK, "four leases");

    ok(ngx_mcp_lease_info(&zone, 0, pool, &info) == NGX_OK
       && is(&info.key, "a")
       && ngx_mcp_lease_info(&zone, 1, pool, &info) == NGX_OK
       && is(&info.key, "b"), "one after the other");

    ngx_mcp_zone_lock(&zone);
    ngx_mcp_lease_drop_locked(&zone,
                              ngx_mcp_block(&zone, zone.sh->leases.head));
    ngx_mcp_zone_unlock(&zone);

    ok(ngx_mcp_lease_info(&zone, 2, pool, &info) == NGX_OK
       && is(&info.key, "c"), "none is left out as one ends meanwhile");

    ngx_mcp_zone_lock(&zone);
    ngx_mcp_lease_drop_locked(&zone,
                              ngx_mcp_block(&zone, info.ref.block));
    ngx_mcp_zone_unlock(&zone);

    ok(ngx_mcp_lease_info(&zone, 1, pool, &info) == NGX_OK
       && is(&info.key, "d")
       && ngx_mcp_lease_info(&zone, 2, pool, &info) == NGX_DECLINED,
       "by number if the one before ended");

    stop("infos");
}


int
main(void)
{
    take_tests();
    left_tests();
    await_tests();
    holder_tests();
    info_tests();
    epoch_tests();
    overlap_tests();
    chain_tests();

    ok(env_alerts == 0, "no alerts");

    return tap_done();
}
