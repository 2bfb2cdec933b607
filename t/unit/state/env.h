
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * What the tests of the state layer stand on: a zone in a shared mapping, as
 * much of nginx's core as the layer calls, and the check of the zone.
 */

#ifndef _ENV_H_INCLUDED_
#define _ENV_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_parked.h"
#include "ngx_mcp_subscriber.h"


#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/ptrace.h>
#include <stdarg.h>
#include <sched.h>
#include <time.h>


extern ngx_log_t   env_log;
extern ngx_uint_t  env_alerts;
extern ngx_uint_t  env_lost;              /* the journal is made too small */
extern void      (*env_unlocked)(void);   /* the lock was given back */
extern void      (*env_committed)(void);  /* a transaction is about to end */


/* a zone in a new shared mapping, emptied */
void env_zone(ngx_mcp_zone_t *zone, size_t size);
void env_zone_free(ngx_mcp_zone_t *zone);

/* releases the lock of a dead worker, as nginx's master does */
void env_unlock(ngx_mcp_zone_t *zone, pid_t pid);

/*
 * The upstream session that a client session has there, block 0: none; has
 * this worker listen on it; a shared one, whose upstream is in->identity, and
 * its end.
 */
ngx_mcp_ref_t us_of(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    ngx_str_t *upstream);
ngx_int_t us_listen(ngx_mcp_zone_t *zone, ngx_mcp_ref_t owner,
    ngx_str_t *upstream);
ngx_int_t us_shared(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in,
    ngx_mcp_ref_t *ref);
void us_shared_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

#define us_get   ngx_mcp_upstream_session_get
#define us_peek  ngx_mcp_upstream_session_peek
#define us_id    ngx_mcp_upstream_session_id

#define us_made(z, o, u, id, rev)                                             \
    ngx_mcp_upstream_session_made(z, us_of(z, o, u), u, id, rev, NULL)
#define us_fail(z, o, u)                                                      \
    ngx_mcp_upstream_session_fail(z, us_of(z, o, u))
#define us_forget(z, o, u, serial)                                            \
    ngx_mcp_upstream_session_forget(z, us_of(z, o, u), serial)
#define us_listens(z, o, u, resumed)                                          \
    ngx_mcp_upstream_session_stream_opened(z, us_of(z, o, u), 0, resumed)
#define us_breaks(z, o, u)                                                    \
    ngx_mcp_upstream_session_stream_closed(z, us_of(z, o, u))
#define us_unlisten(z, o, u, over)                                            \
    ngx_mcp_upstream_session_stream_release(z, us_of(z, o, u), over)
#define us_subscription(z, o, u, n, pool, uri)                                \
    ngx_mcp_upstream_session_subscription(z, us_of(z, o, u), n, pool, uri)

/* with what the structure has to have set as parameters */
ngx_int_t env_call_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_str_t *token, ngx_uint_t limit, uint32_t local,
    ngx_mcp_call_t *call);
ngx_int_t env_call_open_sessionless(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key, ngx_uint_t limit, uint32_t local, ngx_mcp_call_t *call);
ngx_int_t env_stream_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    uint32_t channel, ngx_mcp_cursor_t *from, ngx_uint_t limit, uint32_t local,
    ngx_mcp_stream_t *stream);

/* as if one died when it had just ended this session */
void env_half_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);

/* topics of groups without sessions go, as if nobody had waited lately */
void env_topics_end_locked(ngx_mcp_zone_t *zone);

/* the clock stands still unless set */
void env_time(ngx_msec_t now);
ngx_msec_t env_now(void);

/* called by the next allocation from a pool, once */
extern void (*env_allocating)(void);

ngx_pool_t *env_pool(void);
void env_pool_free(ngx_pool_t *pool);

ngx_str_t env_str(const char *text);

/* one with this session; valid until the next call */
ngx_mcp_caller_t *env_caller(ngx_mcp_ref_t session);

/* posted events, as nginx's event loop runs them */
void env_posted(void);

/* runs the timers that are due */
void env_timers(void);


/*
 * Whether what the journal is to bring back differs: counters, heartbeats,
 * bells and the content of free blocks may.  The first bytes are printed.
 */
ngx_uint_t env_differs(ngx_mcp_zone_sh_t *before, ngx_mcp_zone_sh_t *after,
    const char *why);

/* reads the next event of a topic behind *after into buf */
ngx_int_t env_topic_next_one(ngx_mcp_zone_t *zone, ngx_mcp_caller_t *caller,
    ngx_mcp_ref_t topic, ngx_uint_t wait, uint64_t *after, u_char *buf,
    size_t *len, ngx_uint_t *missed);

/* sends to all groups that match, and counts their sessions */
ngx_int_t env_tell(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_event_t *event, ngx_uint_t *addressed);

/*
 * Checks that each block is free or reached exactly once and that counts,
 * orders and carriers are right.  The number of errors, which are printed.
 */
/* for the module's own, as if there were n blocks less than are wanted */
ngx_int_t env_reserve_locked(ngx_mcp_zone_t *zone, ngx_uint_t n);

ngx_uint_t env_check(ngx_mcp_zone_t *zone);
ngx_uint_t env_check_locked(ngx_mcp_zone_t *zone);


/* so many upstreams, "a" and so on; several have their names as prefixes */
ngx_mcp_sources_t *env_sources(ngx_uint_t n);

/* the part of one of these; block 0: there is none */
ngx_mcp_ref_t env_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t i);


int tap(int good, const char *file, int channel, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int tap_done(void);

#define ok(cond, ...)                                                         \
    tap((cond) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)


#endif /* _ENV_H_INCLUDED_ */
