
/*
 * Profiles: what upstreams are and can.  An upstream is probed when its profile
 * is first needed, by one worker for all, and the profile is kept in the zone.
 * Endpoints that reach it in the same way share it, as long as no probe made
 * use of the endpoint's name.
 *
 * The manner of an upstream probes it (ngx_http_mcp_manner.h).  If its kind is
 * not configured, manners are tried one after the other.
 */

#ifndef _NGX_HTTP_MCP_PROFILE_H_INCLUDED_
#define _NGX_HTTP_MCP_PROFILE_H_INCLUDED_


#include "ngx_http_mcp_failure.h"


/*
 * The profile of an upstream, for a tenant.  It comes from the zone while it is
 * of this configuration and not older than max_age (or
 * NGX_MCP_PROFILE_ANY_AGE), or while the upstream is away.  NGX_OK: *known is
 * filled from pool; NGX_AGAIN: it is probed, by this or another worker: wait
 * for NGX_HTTP_MCP_WAIT_PROFILE with known->hash; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_profile(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_profile_t *profile);

/*
 * The profile that the zone has, however old; it counts as kept, and as known
 * to this worker.  NGX_OK; NGX_DECLINED: none; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_profile_stored(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool, ngx_mcp_profile_t *profile);

/* reads the profile that the zone has, and does nothing else */
ngx_int_t ngx_http_mcp_profile_peek(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool, ngx_mcp_profile_t *profile);

/* the manner, as configured or by the profile in the zone; NULL: not known */
struct ngx_http_mcp_manner_s *ngx_http_mcp_profile_manner(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_uint_t stateful);

/* whether it is known, and as far as this worker knows, not away */
ngx_uint_t ngx_http_mcp_profile_answers(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);

/* whether a profile in the zone is of the upstream */
ngx_uint_t ngx_http_mcp_profile_is(ngx_http_mcp_upstream_t *u,
    ngx_mcp_profile_info_t *info);

/* its capabilities may be out of date: the next initialize asks it */
void ngx_http_mcp_profile_stale(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* likewise: it could not be reached */
void ngx_http_mcp_profile_away(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* likewise: requests waited for it in vain */
void ngx_http_mcp_profile_silent(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* and it answers again, where u->worker says that it did not */
void ngx_http_mcp_profile_back(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/*
 * And it does not behave like its kind: the next call has it probed, or uses it
 * as of this revision, if it is one that may be of either era
 */
void ngx_http_mcp_profile_reprobe(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t revision, ngx_pool_t *pool);

/* it refuses to tell what it is, but told a client: it is of this revision */
ngx_int_t ngx_http_mcp_profile_narrow(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t revision, ngx_pool_t *pool);

/* the worker quits gracefully */
void ngx_http_mcp_profile_quit(ngx_mcp_zone_t *zone);

/* the doorbell: handlers->profiles */
void ngx_http_mcp_profile_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

/* whether an rpc upstream says by this status that it lacks the method */
ngx_uint_t ngx_http_mcp_status_absent(ngx_uint_t status);


/* for manners: a probe, under way in this worker; lives in the pool it uses */

typedef struct ngx_http_mcp_probe_s  ngx_http_mcp_probe_t;

struct ngx_http_mcp_probe_s {
    ngx_queue_t                     queue;        /* of those in this worker */
    ngx_http_mcp_upstream_t        *upstream;
    struct ngx_http_mcp_manner_s   *manner;       /* tried now */
    ngx_http_mcp_exchange_t        *x;            /* under way */
    ngx_pool_t                     *pool;
    ngx_str_t                       key;
    ngx_str_t                       tenant;
    ngx_str_t                       session;      /* $mcp_session_id */
    u_char                          session_buf[NGX_MCP_UUID_LEN];
    ngx_mcp_profile_t               profile;
    ngx_str_t                       method;       /* sent last */
    ngx_uint_t                      step;         /* of the manner */
    ngx_uint_t                      present;      /* bits by step */
    ngx_msec_t                      end;          /* by then all is known */
    ngx_str_t                       wrong;        /* with the last answer */
    ngx_http_mcp_failure_t          failure;      /* the first "absent" */
    unsigned                        answered:1;   /* by a result */
    unsigned                        absent:1;     /* it lacks the method */
    unsigned                        error:1;      /* by a JSON-RPC error */
    unsigned                        headers:1;    /* that the headers are not
                                                     those of the message */
    unsigned                        again:1;      /* that it wants the version
                                                     that it was sent */
    unsigned                        repeated:1;   /* it was sent once more */
    unsigned                        modern:1;     /* it is; it may be older as
                                                     well */
    unsigned                        guarded:1;    /* 401 or 403 said nothing of
                                                     its kind */
    unsigned                        away:1;       /* it answered nothing */
    unsigned                        given_up:1;   /* for others to probe */
    unsigned                        shared:1;     /* with other endpoints */
};


/* sends a request: manner->probed() follows; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_probe_send(ngx_http_mcp_probe_t *probe,
    ngx_str_t *method, ngx_str_t *params);

/*
 * The upstream is not of this kind: the next one is tried.  NGX_OK, NGX_ERROR,
 * or NGX_DECLINED: there is no other.
 */
ngx_int_t ngx_http_mcp_probe_next(ngx_http_mcp_probe_t *probe);

/* whether it was of this kind (ngx_mcp_profile_e) before */
ngx_uint_t ngx_http_mcp_probe_was(ngx_http_mcp_probe_t *probe,
    ngx_uint_t what);

/* the end: its kind (ngx_mcp_profile_e), with probe->known */
void ngx_http_mcp_probe_put(ngx_http_mcp_probe_t *probe, ngx_uint_t what);

/* the end: the last request failed like that, which is logged */
void ngx_http_mcp_probe_failed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_failure_t *failure);

/* the end: it has nothing, probe->failure; methods: all that it was asked */
void ngx_http_mcp_probe_unusable(ngx_http_mcp_probe_t *probe,
    ngx_str_t *methods);


#endif /* _NGX_HTTP_MCP_PROFILE_H_INCLUDED_ */
