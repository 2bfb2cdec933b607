
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


#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/ptrace.h>
#include <stdarg.h>
#include <sched.h>
#include <time.h>


extern ngx_log_t   env_log;
extern ngx_uint_t  env_alerts;
extern ngx_uint_t  env_lost;              /* the journal is made too small */


/* a zone in a new shared mapping, emptied */
void env_zone(ngx_mcp_zone_t *zone, size_t size);
void env_zone_free(ngx_mcp_zone_t *zone);

/* what nginx's master does for a dead worker */
void env_unlock(ngx_mcp_zone_t *zone, pid_t pid);

/* as if one died when it had just ended this session */
void env_half_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session);

/* the clock stands still unless set */
void env_time(ngx_msec_t now);
ngx_msec_t env_now(void);

ngx_pool_t *env_pool(void);
void env_pool_free(ngx_pool_t *pool);

ngx_str_t env_str(const char *text);

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

/*
 * Checks that each block is free or reached exactly once and that counts,
 * orders and carriers are right.  The number of errors, which are printed.
 */
/* for the module's own, as if there were n blocks less than are wanted */
ngx_int_t env_reserve_locked(ngx_mcp_zone_t *zone, ngx_uint_t n);

ngx_uint_t env_check(ngx_mcp_zone_t *zone);
ngx_uint_t env_check_locked(ngx_mcp_zone_t *zone);


int tap(int good, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int tap_done(void);

#define ok(cond, ...)                                                         \
    tap((cond) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)


#endif /* _ENV_H_INCLUDED_ */
