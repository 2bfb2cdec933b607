
/*
 * The shared-memory zone: its layout, its one lock, its blocks, its workers.
 *
 * Everything in the zone is made of blocks of one size.  A record (session,
 * call, stream, event, ...) starts in a block of its type; what does not fit
 * continues in a chain of data blocks.  Blocks refer to each other by number,
 * never by address, and from outside they are named by ngx_mcp_ref_t, which
 * carries the block's generation, so that a stale name is recognised.
 *
 * Locking: the slab pool's mutex is the zone's only lock, because it is the
 * only one that nginx releases when a worker dies holding it.  Functions that
 * need it held end in _locked; all others take it themselves.  While it is
 * held nothing is parsed, nothing is sent and no unbounded loop runs.  Every
 * hold is a transaction: when its holder dies, the next one undoes it from a
 * journal, in microseconds (ngx_mcp_journal.c).
 *
 * Any worker, of any configuration generation, may call; no nginx request is
 * known here.
 */

#ifndef _NGX_MCP_ZONE_H_INCLUDED_
#define _NGX_MCP_ZONE_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_counter.h"


/* layout of the zone; another one is not misread but emptied */
#define NGX_MCP_ZONE_VERSION    9

#define NGX_MCP_ZONE_MIN_SIZE   (1024 * 1024)


typedef struct ngx_mcp_zone_s     ngx_mcp_zone_t;
typedef struct ngx_mcp_zone_sh_s  ngx_mcp_zone_sh_t;


/* names a record; block 0 names none */

typedef struct {
    uint32_t                block;
    uint32_t                gen;
} ngx_mcp_ref_t;


/* why a stream or call of this worker is looked at; bits */

#define NGX_MCP_WAKE_NEWS    0x01    /* its line has something to take */
#define NGX_MCP_WAKE_CLOSE   0x02    /* its session ended, or it gives way */
#define NGX_MCP_WAKE_CANCEL  0x04    /* the client cancelled the call */
#define NGX_MCP_WAKE_LINK    0x08    /* the upstream session it waits for */


/*
 * What a worker does when its doorbell was rung.  "local" is the number that
 * this worker gave when it opened the stream or call.  Called without the
 * lock; the callee may call back into the zone.
 */

typedef struct {
    void                  (*stream)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
                                uint32_t local, ngx_uint_t why);
    void                  (*call)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
                                uint32_t local, ngx_uint_t why);

    /* the shared log of a group, or a topic, got an event; block 0: any */
    void                  (*group)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group);
    void                  (*topic)(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic);

    /* something about upstreams became known (ngx_mcp_knowledge.h) */
    void                  (*knowledge)(ngx_mcp_zone_t *zone);

    /*
     * a session for which an upstream's GET stream is held here has ended or
     * has no GET of its own left (ngx_mcp_session_gets())
     */
    void                  (*listeners)(ngx_mcp_zone_t *zone);

    /* subscriptions that are shared have changed (ngx_mcp_own.h) */
    void                  (*supplies)(ngx_mcp_zone_t *zone);

    /*
     * a session ended and had a session (id) at an upstream: say DELETE there
     */
    void                  (*farewell)(ngx_mcp_zone_t *zone,
                                ngx_str_t *endpoint, ngx_str_t *upstream,
                                ngx_str_t *id, ngx_str_t *tenant,
                                ngx_str_t *session, ngx_uint_t revision);

    /* lists were replaced, or some may have changed (ngx_mcp_list.h) */
    void                  (*lists)(ngx_mcp_zone_t *zone);

    /* why: NGX_MCP_LEASE_* bits (ngx_mcp_lease.h) */
    void                  (*lease)(ngx_mcp_zone_t *zone, ngx_str_t *key,
                                ngx_uint_t why);
} ngx_mcp_worker_handlers_t;


/* what was lacking when room was refused */

typedef enum {
    NGX_MCP_FULL_NOT = 0,
    NGX_MCP_FULL_ZONE,
    NGX_MCP_FULL_CLIENT,                       /* it has its share */
    NGX_MCP_FULL_TENANT
} ngx_mcp_full_e;


/* process-local handle; one per mcp_zone and configuration */

struct ngx_mcp_zone_s {
    ngx_str_t                   name;
    ngx_slab_pool_t            *shpool;
    ngx_mcp_zone_sh_t          *sh;
    u_char                     *blocks;       /* block n at blocks + n * 256 */
    uint64_t                    epoch;        /* newer is higher */
    ngx_uint_t                  worker;       /* our slot, or ..._NO_WORKER */
    ngx_uint_t                  farewells;    /* DELETEs under way here */
    ngx_uint_t                  awaits;       /* who waits here for leases */
    ngx_mcp_worker_handlers_t  *handlers;
    ngx_log_t                  *log;
    void                       *data;         /* the edge's, per zone */
    void                       *doorbell;     /* private */

    unsigned                    full:2;       /* to be logged at unlock:
                                                 ngx_mcp_full_e */
    unsigned                    lacking:2;    /* at the last refusal */
};

#define NGX_MCP_NO_WORKER  ((ngx_uint_t) -1)


/*
 * Prepares a zone in the master, in the zone's init callback.  reuse: the
 * memory comes from an earlier configuration; its content is kept when magic,
 * version and sizes agree, else it is emptied, which is logged at "warn" with
 * the number of sessions that end.  zone->epoch is drawn, by which workers
 * tell which of their configurations is the newer one.  There are places for
 * several generations of that many workers.  NGX_OK, or NGX_ERROR (logged)
 * when the zone is too small.
 */
ngx_int_t ngx_mcp_zone_init(ngx_mcp_zone_t *zone, ngx_uint_t workers,
    ngx_uint_t reuse);

/* the size that a zone for so many workers needs; at most that many */
size_t ngx_mcp_zone_least(ngx_uint_t workers);

#define NGX_MCP_ZONE_WORKERS    8192

/* live sessions; safe without the lock; sh may be NULL (0) */
ngx_uint_t ngx_mcp_zone_sessions(ngx_mcp_zone_sh_t *sh);

void ngx_mcp_zone_lock(ngx_mcp_zone_t *zone);
void ngx_mcp_zone_unlock(ngx_mcp_zone_t *zone);

/* the zone's generation, in every event id; drawn when the zone was emptied */
uint32_t ngx_mcp_zone_generation(ngx_mcp_zone_t *zone);

/* adds to a counter, atomically, no lock needed */
void ngx_mcp_count(ngx_mcp_zone_t *zone, ngx_mcp_counter_e counter,
    ngx_int_t n);
int64_t ngx_mcp_counter(ngx_mcp_zone_t *zone, ngx_mcp_counter_e counter);

/* zone use for mcp_status: blocks by what they are used for */

#define NGX_MCP_USES(_)                                                       \
    _(FREE, "free")                                                           \
    _(SESSIONS, "sessions")                                                   \
    _(STREAMS, "streams")                                                     \
    _(CALLS, "calls")                                                         \
    _(EVENTS, "events")                                                       \
    _(UPSTREAMS, "upstreams")                                                 \
    _(SUBSCRIPTIONS, "subscriptions")                                         \
    _(LISTS, "lists")                                                         \
    _(TOPICS, "topics")                                                       \
    _(COALESCED, "coalesced")                                                 \
    _(LEASES, "leases")                                                       \
    _(OTHER, "other")

#define NGX_MCP_USE_ENUM(name, text)  NGX_MCP_USE_ ## name,

typedef enum {
    NGX_MCP_USES(NGX_MCP_USE_ENUM)
    NGX_MCP_USE_MAX
} ngx_mcp_use_e;


typedef struct {
    ngx_uint_t              blocks;       /* all */
    ngx_uint_t              used[NGX_MCP_USE_MAX];
    size_t                  block_size;
    ngx_uint_t              workers;      /* live slots */
    ngx_uint_t              recoveries;
} ngx_mcp_zone_use_t;

void ngx_mcp_zone_use(ngx_mcp_zone_t *zone, ngx_mcp_zone_use_t *use);


#endif /* _NGX_MCP_ZONE_H_INCLUDED_ */
