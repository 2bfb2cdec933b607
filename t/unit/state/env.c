
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "env.h"


#define ENV_TIMERS  8


volatile ngx_time_t   *ngx_cached_time;
volatile ngx_msec_t    ngx_current_msec;
ngx_pid_t              ngx_pid;
ngx_pid_t              ngx_parent;
ngx_int_t              ngx_ncpu = 2;
ngx_uint_t             ngx_pagesize = 4096;
ngx_uint_t             ngx_pagesize_shift = 12;
ngx_uint_t             ngx_cacheline_size = 64;
ngx_uint_t             ngx_event_flags;
ngx_event_actions_t    ngx_event_actions;
ngx_rbtree_t           ngx_event_timer_rbtree;
ngx_queue_t            ngx_posted_events;
ngx_queue_t            ngx_posted_next_events;
volatile ngx_cycle_t  *ngx_cycle;

ngx_log_t              env_log;
ngx_uint_t             env_alerts;
ngx_uint_t             env_lost;
void                 (*env_unlocked)(void);
void                 (*env_committed)(void);

static ngx_rbtree_node_t  *env_timer[ENV_TIMERS];

static ngx_cycle_t     env_cycle;
static ngx_time_t      env_cached;

static int             tap_n;
static int             tap_failed;


static ngx_int_t env_event(ngx_event_t *ev, ngx_int_t event, ngx_uint_t flags);


static void __attribute__((constructor))
env_init(void)
{
    ngx_pid = getpid();
    env_log.log_level = NGX_LOG_WARN;
    env_cycle.log = &env_log;
    ngx_cycle = &env_cycle;
    ngx_cached_time = &env_cached;
    ngx_event_actions.add = env_event;
    ngx_event_actions.del = env_event;

    ngx_queue_init(&ngx_posted_events);
    ngx_queue_init(&ngx_posted_next_events);

    env_time(1000000);
}


void
env_time(ngx_msec_t now)
{
    ngx_current_msec = now;
    env_cached.sec = 1700000000 + now / 1000;
    env_cached.msec = now % 1000;
}


ngx_msec_t
env_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (ngx_msec_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


void
env_zone(ngx_mcp_zone_t *zone, size_t size)
{
    ngx_slab_pool_t  *pool;

    pool = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_ANON|MAP_SHARED, -1, 0);

    if (pool == MAP_FAILED) {
        exit(2);
    }

    ngx_memzero(zone, sizeof(ngx_mcp_zone_t));

    pool->end = (u_char *) pool + size;
    pool->addr = pool;
    pool->min_shift = 3;

#if (ENV_NGINX_SLAB)

    if (ngx_shmtx_create(&pool->mutex, &pool->lock, NULL) != NGX_OK) {
        exit(2);
    }

    ngx_slab_init(pool);

#else

    pool->mutex.lock = &pool->lock.lock;
    pool->start = (u_char *) pool + ngx_pagesize;
    pool->pfree = (pool->end - pool->start) / ngx_pagesize;

#endif

    zone->shpool = pool;
    zone->log = &env_log;
    ngx_str_set(&zone->name, "test");

    if (ngx_mcp_state_init(zone, 1, 0) != NGX_OK) {
        exit(2);
    }

    /*
     * Texts that share a place of a table make a false gap: a fixed key lets
     * the same texts share it in each run.
     */

    memset(zone->sh->key, 1, sizeof(zone->sh->key));
}


void
env_zone_free(ngx_mcp_zone_t *zone)
{
    munmap(zone->shpool, zone->shpool->end - (u_char *) zone->shpool);
}


void
env_unlock(ngx_mcp_zone_t *zone, pid_t pid)
{
    (void) ngx_shmtx_force_unlock(&zone->shpool->mutex, pid);
}


ngx_mcp_ref_t
us_of(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner, ngx_str_t *upstream)
{
    uint32_t                        n;
    uint64_t                        hash;
    ngx_mcp_ref_t                   ref;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_upstream_session_sh_t  *us;

    ref.block = 0;
    ref.gen = 0;

    if (ngx_mcp_record(zone, owner, NGX_MCP_UPSTREAM_SESSION)) {
        return owner;
    }

    hash = ngx_mcp_hash(zone, upstream, NULL);

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, owner);
    n = s ? ngx_mcp_session_extension(zone, s)->upstreams.head : 0;

    for ( /* void */ ; n; n = us->rec.links.next) {
        us = ngx_mcp_block(zone, n);

        if (us->upstream == hash) {
            ref = ngx_mcp_ref(zone, us);
        }
    }

    ngx_mcp_zone_unlock(zone);

    return ref;
}


ngx_int_t
us_listen(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner, ngx_str_t *upstream)
{
    ngx_mcp_ref_t  ref;

    return ngx_mcp_upstream_session_stream_claim(zone, owner, upstream, &ref);
}


ngx_int_t
us_shared(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in, ngx_mcp_ref_t *ref)
{
    ngx_mcp_shared_t  shared;

    memset(&shared, 0, sizeof(shared));

    shared.endpoint = in->endpoint;
    shared.tenant = in->tenant;
    shared.list_key = in->list_key;
    shared.upstream = in->identity;
    shared.id = in->id;
    shared.limit = in->limit;

    return ngx_mcp_shared_get(zone, &shared, ref);
}


void
us_shared_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_upstream_session_sh_t  *us;

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, ref);

    if (us) {
        while (ngx_mcp_interest_drop_locked(zone, us) == NGX_OK) {
            /* void */
        }

        ngx_mcp_upstream_session_end_locked(zone, us);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
env_call_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, ngx_str_t *id,
    ngx_str_t *token, ngx_uint_t limit, uint32_t local, ngx_mcp_call_t *call)
{
    call->local = local;

    return ngx_mcp_call_open(zone, session, id, token, limit, call);
}


ngx_int_t
env_call_open_sessionless(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key, ngx_uint_t limit, uint32_t local, ngx_mcp_call_t *call)
{
    call->local = local;

    return ngx_mcp_call_open_sessionless(zone, endpoint, key, limit, call);
}


ngx_int_t
env_stream_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, uint32_t channel,
    ngx_mcp_cursor_t *from, ngx_uint_t limit, uint32_t local,
    ngx_mcp_stream_t *stream)
{
    stream->session = session;
    stream->channel = channel;
    stream->local = local;

    return ngx_mcp_stream_open(zone, stream, from, limit);
}


void
env_half_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session)
{
    ngx_mcp_zone_lock(zone);

    ngx_mcp_session_end_locked(zone, ngx_mcp_session_locked(zone, session),
                               NGX_MCP_COUNTER_SESSIONS_DELETED);
    env_unlock(zone, ngx_pid);
}


ngx_int_t
env_topic_next_one(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_ref_t topic, ngx_uint_t wait, uint64_t *after, u_char *buf,
    size_t *len, ngx_uint_t *missed)
{
    ngx_int_t              rc;
    ngx_mcp_topic_event_t  event;

    event.position = *after;
    event.text.data = buf;

    rc = ngx_mcp_topic_next(zone, caller, topic, wait, &event);

    *after = event.position;
    *missed = event.missed;

    if (rc == NGX_OK) {
        *len = event.text.len;
    }

    return rc;
}


ngx_str_t
env_str(const char *text)
{
    ngx_str_t  str;

    str.data = (u_char *) text;
    str.len = strlen(text);

    return str;
}


void
env_topics_end_locked(ngx_mcp_zone_t *zone)
{
    ngx_msec_t  now;

    now = ngx_current_msec;
    env_time(now + 700000);

    while (ngx_mcp_topic_reclaim_locked(zone, 1)) { /* void */ }

    env_time(now);
}


ngx_mcp_caller_t *
env_caller(ngx_mcp_ref_t session)
{
    static ngx_mcp_caller_t  caller;

    ngx_memzero(&caller, sizeof(ngx_mcp_caller_t));

    caller.session = session;

    return &caller;
}


void
ngx_debug_point(void)
{
}


#if !(ENV_NGINX_SLAB)

/* as in nginx's core, without the semaphore, which is not used */

ngx_uint_t
ngx_shmtx_trylock(ngx_shmtx_t *mtx)
{
    return (*mtx->lock == 0 && ngx_atomic_cmp_set(mtx->lock, 0, ngx_pid));
}


void
ngx_shmtx_unlock(ngx_shmtx_t *mtx)
{
    (void) ngx_atomic_cmp_set(mtx->lock, ngx_pid, 0);
}


ngx_uint_t
ngx_shmtx_force_unlock(ngx_shmtx_t *mtx, ngx_pid_t pid)
{
    return ngx_atomic_cmp_set(mtx->lock, pid, 0);
}


void *
ngx_slab_alloc(ngx_slab_pool_t *pool, size_t size)
{
    u_char  *p;

    if (size > (size_t) (pool->end - pool->start)) {
        return NULL;
    }

    p = pool->start;
    pool->start += size;

    return p;
}

#endif


void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
    if (level <= NGX_LOG_ALERT) {
        env_alerts++;
    }

    fprintf(stderr, "# log level %d (%d): %s\n", (int) level, (int) err, fmt);
}


void *
ngx_alloc(size_t size, ngx_log_t *log)
{
    return malloc(size);
}


void *
ngx_calloc(size_t size, ngx_log_t *log)
{
    return calloc(1, size);
}


ngx_pool_t *
ngx_create_pool(size_t size, ngx_log_t *log)
{
    return env_pool();
}


void
ngx_destroy_pool(ngx_pool_t *pool)
{
    env_pool_free(pool);
}


ngx_pool_t *
env_pool(void)
{
    return calloc(1, sizeof(ngx_pool_t));
}


void
env_pool_free(ngx_pool_t *pool)
{
    ngx_pool_large_t  *l, *next;

    for (l = pool->large; l; l = next) {
        next = l->next;
        free(l->alloc);
        free(l);
    }

    free(pool);
}


void  (*env_allocating)(void);


void *
ngx_pnalloc(ngx_pool_t *pool, size_t size)
{
    void             (*allocating)(void);
    ngx_pool_large_t  *l;

    allocating = env_allocating;

    if (allocating) {
        env_allocating = NULL;
        allocating();
    }

    l = malloc(sizeof(ngx_pool_large_t));
    if (l == NULL) {
        return NULL;
    }

    l->alloc = malloc(size);
    l->next = pool->large;
    pool->large = l;

    return l->alloc;
}


void *
ngx_pcalloc(ngx_pool_t *pool, size_t size)
{
    void  *p;

    p = ngx_pnalloc(pool, size);

    if (p) {
        memset(p, 0, size);
    }

    return p;
}


void *
ngx_array_push(ngx_array_t *a)
{
    void  *grown;

    if (a->nelts == a->nalloc) {
        grown = ngx_pnalloc(a->pool, 2 * a->size * (a->nalloc + 1));
        if (grown == NULL) {
            return NULL;
        }

        memcpy(grown, a->elts, a->nelts * a->size);
        a->elts = grown;
        a->nalloc = 2 * (a->nalloc + 1);
    }

    return (u_char *) a->elts + a->size * a->nelts++;
}


u_char *
ngx_hex_dump(u_char *dst, u_char *src, size_t len)
{
    static u_char  hex[] = "0123456789abcdef";

    while (len--) {
        *dst++ = hex[*src >> 4];
        *dst++ = hex[*src++ & 0xf];
    }

    return dst;
}


/* this stand-in knows "%uL", "%P" and "%Z" */

u_char * ngx_cdecl
ngx_sprintf(u_char *buf, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);

    while (*fmt) {

        if (strncmp(fmt, "%uL", 3) == 0) {
            buf += sprintf((char *) buf, "%lu",
                           (unsigned long) va_arg(args, uint64_t));
            fmt += 3;

        } else if (strncmp(fmt, "%P", 2) == 0) {
            buf += sprintf((char *) buf, "%d", (int) va_arg(args, ngx_pid_t));
            fmt += 2;

        } else if (strncmp(fmt, "%Z", 2) == 0) {
            *buf++ = '\0';
            fmt += 2;

        } else if (*fmt == '%') {
            exit(2);

        } else {
            *buf++ = *fmt++;
        }
    }

    va_end(args);

    return buf;
}


int
ngx_nonblocking(ngx_socket_t s)
{
    return fcntl(s, F_SETFL, fcntl(s, F_GETFL) | O_NONBLOCK);
}


static ngx_int_t
env_event(ngx_event_t *ev, ngx_int_t event, ngx_uint_t flags)
{
    return NGX_OK;
}


ngx_connection_t *
ngx_get_connection(ngx_socket_t s, ngx_log_t *log)
{
    ngx_connection_t  *c;

    c = calloc(1, sizeof(ngx_connection_t));
    c->read = calloc(1, sizeof(ngx_event_t));
    c->write = calloc(1, sizeof(ngx_event_t));
    c->read->data = c;
    c->write->data = c;
    c->fd = s;
    c->log = log;

    return c;
}


void
ngx_close_connection(ngx_connection_t *c)
{
    close(c->fd);
    free(c->read);
    free(c->write);
    free(c);
}


/* the tests themselves call the handlers of timers */

void
ngx_rbtree_insert(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    ngx_uint_t  i;

    for (i = 0; i < ENV_TIMERS; i++) {
        if (env_timer[i] == NULL) {
            env_timer[i] = node;
            return;
        }
    }
}


void
ngx_rbtree_delete(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    ngx_uint_t  i;

    for (i = 0; i < ENV_TIMERS; i++) {
        if (env_timer[i] == node) {
            env_timer[i] = NULL;
        }
    }
}


void
env_posted(void)
{
    ngx_event_t  *ev;
    ngx_queue_t  *q;

    while (!ngx_queue_empty(&ngx_posted_next_events)) {
        q = ngx_queue_head(&ngx_posted_next_events);
        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ngx_posted_events, q);
    }

    while (!ngx_queue_empty(&ngx_posted_events)) {
        q = ngx_queue_head(&ngx_posted_events);
        ev = ngx_queue_data(q, ngx_event_t, queue);
        ngx_delete_posted_event(ev);
        ev->handler(ev);
    }
}


void
env_timers(void)
{
    ngx_uint_t    i;
    ngx_event_t  *ev;

    for (i = 0; i < ENV_TIMERS; i++) {

        if (env_timer[i] == NULL
            || (ngx_msec_int_t) (env_timer[i]->key - ngx_current_msec) > 0)
        {
            continue;
        }

        ev = ngx_rbtree_data(env_timer[i], ngx_event_t, timer);
        ngx_event_del_timer(ev);
        ev->handler(ev);
    }
}


int
tap(int good, const char *file, int channel, const char *fmt, ...)
{
    va_list  args;

    printf("%s %d - ", good ? "ok" : "not ok", ++tap_n);

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    printf("\n");

    if (!good) {
        tap_failed++;
        printf("# at %s line %d\n", file, channel);
    }

    fflush(stdout);

    return good;
}


int
tap_done(void)
{
    printf("1..%d\n", tap_n);

    return tap_failed ? 1 : 0;
}


ngx_mcp_sources_t *
env_sources(ngx_uint_t n)
{
    ngx_uint_t  i;

    static u_char             names[] = "abcdefgh";
    static ngx_mcp_source_t   elts[8][8];
    static ngx_mcp_sources_t  sources[8];

    for (i = 0; i < n; i++) {
        elts[n][i].name.data = &names[i];
        elts[n][i].name.len = 1;
        elts[n][i].prefix.data = &names[i];
        elts[n][i].prefix.len = (n > 1);
    }

    sources[n].elts = elts[n];
    sources[n].n = n;
    sources[n].kinds = NGX_MCP_LIST_ALL;
    sources[n].layout = n;

    return &sources[n];
}


ngx_mcp_ref_t
env_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience, ngx_uint_t i)
{
    u_char         c;
    ngx_str_t      name;
    ngx_mcp_ref_t  ref;

    c = (u_char) ('a' + i);
    name.data = &c;
    name.len = 1;

    ref.block = 0;
    ref.gen = 0;

    (void) ngx_mcp_audience_part(zone, audience, &name, &ref);

    return ref;
}


ngx_int_t
env_reserve_locked(ngx_mcp_zone_t *zone, ngx_uint_t n)
{
    ngx_mcp_ref_t  none;

    memset(&none, 0, sizeof(ngx_mcp_ref_t));

    return ngx_mcp_reserve_locked(zone, none, NGX_MCP_ROOM_OTHER,
                                  ngx_mcp_free_blocks(zone->sh) + n);
}


ngx_int_t
env_tell(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_event_t *event, ngx_uint_t *addressed)
{
    ngx_int_t           rc;
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    memset(&post, 0, sizeof(post));
    memset(&d, 0, sizeof(d));

    post.deliveries = &d;
    post.n = 1;
    d.event = *event;
    d.endpoint = endpoint;
    d.tenant = tenant;
    d.addressed = 1;

    rc = ngx_mcp_outbox_send(zone, &post);

    *addressed = post.sessions;

    return (rc == NGX_AGAIN) ? NGX_OK : rc;
}
