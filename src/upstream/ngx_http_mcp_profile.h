
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Profiles of upstreams: their kind and capabilities.  When a profile is first
 * needed, one worker probes the upstream for all workers, and stores the
 * profile in the zone.
 *
 * The manner of the upstream sends the requests of the probe
 * (ngx_http_mcp_manner.h).  If the kind of the upstream is not configured,
 * manners are tried one after the other.
 *
 * Functions below that return nothing ignore a failure; their pool is for
 * temporary memory.
 */

#ifndef _NGX_HTTP_MCP_PROFILE_H_INCLUDED_
#define _NGX_HTTP_MCP_PROFILE_H_INCLUDED_


#include "ngx_http_mcp_failure.h"


/*
 * Gets the profile of an upstream for a tenant.  The profile in the zone is
 * used if it was made under this configuration and is not older than max_age ms
 * (or NGX_MCP_PROFILE_ANY_AGE), or if the upstream is away.  NGX_OK: *profile
 * is filled, with strings from pool; NGX_AGAIN: this or another worker probes
 * the upstream, and the caller has to wait for NGX_HTTP_MCP_WAIT_PROFILE with
 * profile->hash; NGX_DECLINED: the upstream cannot be probed, because the
 * tenant makes a dot segment in its URI (logged); NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_profile(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_profile_t *profile);

/*
 * Gets the profile in the zone, whatever its age, and sets profile->kept.  This
 * worker notes the upstream's kind, and that the upstream is away.  NGX_OK;
 * NGX_DECLINED: there is no profile; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_profile_stored(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool, ngx_mcp_profile_t *profile);

/* as ngx_http_mcp_profile_stored(), but this worker notes nothing */
ngx_int_t ngx_http_mcp_profile_peek(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool, ngx_mcp_profile_t *profile);

/*
 * The manner of the upstream's kind, which is configured, or noted by this
 * worker, or in the profile in the zone.  NULL: the kind is not known.
 */
struct ngx_http_mcp_manner_s *ngx_http_mcp_profile_manner(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_uint_t stateful);

/*
 * Whether the upstream will probably answer: its kind is known, and this worker
 * has not noted it as away or silent.
 */
ngx_uint_t ngx_http_mcp_profile_answers(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);

/* whether this is the key of a profile of the upstream, for any tenant */
ngx_uint_t ngx_http_mcp_profile_is(ngx_http_mcp_upstream_t *u, ngx_str_t *key);

/*
 * The upstream's capabilities may have changed: the next initialize of a
 * client leads to a new probe.
 */
void ngx_http_mcp_profile_stale(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/*
 * The upstream could not be reached: this worker notes it as away, and the next
 * initialize of a client leads to a new probe.
 */
void ngx_http_mcp_profile_away(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* the same, but the upstream did not answer in time, and is noted as silent */
void ngx_http_mcp_profile_silent(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* the upstream answers again, after it was noted as away or silent */
void ngx_http_mcp_profile_back(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/*
 * The upstream does not behave like its kind.  If its kind is not certain, the
 * upstream counts as one of this revision from now on; else the next call leads
 * to a new probe.  revision: 0 if not known.
 */
void ngx_http_mcp_profile_reprobe(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t revision, ngx_pool_t *pool);

/*
 * An upstream that refused the probe has answered a client with this revision,
 * which shows its kind.  NGX_OK; NGX_DECLINED: the profile did not have to be
 * changed.
 */
ngx_int_t ngx_http_mcp_profile_narrow(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t revision, ngx_pool_t *pool);

/*
 * The worker quits gracefully: if none of its requests waits for a profile, its
 * probes end, and other workers probe again.
 */
void ngx_http_mcp_profile_quit(ngx_mcp_zone_t *zone);

/* the doorbell rang (handlers->profiles): wakes waiters for profiles */
void ngx_http_mcp_profile_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);

/* whether this HTTP status means that the upstream does not have the method */
ngx_uint_t ngx_http_mcp_status_absent(ngx_uint_t status);


/* for manners: a probe that this worker makes; it lives in probe->pool */

typedef struct ngx_http_mcp_probe_s  ngx_http_mcp_probe_t;

struct ngx_http_mcp_probe_s {
    ngx_queue_t                     queue;        /* probes of this worker */
    ngx_http_mcp_upstream_t        *upstream;
    struct ngx_http_mcp_manner_s   *manner;       /* the manner to try now */
    ngx_http_mcp_exchange_t        *x;            /* exchange under way */
    ngx_pool_t                     *pool;
    ngx_str_t                       key;          /* key of the profile */
    ngx_str_t                       tenant;
    ngx_str_t                       session;      /* $mcp_session_id */
    u_char                          session_buf[NGX_MCP_UUID_LEN];
    ngx_mcp_profile_t               profile;
    ngx_str_t                       method;       /* method that was sent last
                                                     */
    ngx_uint_t                      step;         /* step of the manner */
    ngx_uint_t                      present;      /* bit n: the upstream has the
                                                     method of step n */
    ngx_msec_t                      end;          /* time of the end, at the
                                                     latest */
    ngx_str_t                       fault;        /* description of the fault of
                                                     the last answer, or empty
                                                     */
    ngx_http_mcp_failure_t          failure;      /* the first failure because
                                                     of a missing method */

    /* about the last answer of the upstream */
    unsigned                        answered:1;   /* the answer was a result */
    unsigned                        absent:1;     /* the upstream lacks the
                                                     method */
    unsigned                        error:1;      /* the answer was an error
                                                     message */
    unsigned                        headers:1;    /* the error says that headers
                                                     do not match the message */
    unsigned                        again:1;      /* the error refuses the
                                                     version, but lists it as
                                                     supported */

    /* about the probe */
    unsigned                        repeated:1;   /* a request was repeated */
    unsigned                        modern:1;     /* the upstream is modern,
                                                     and maybe legacy, too */
    unsigned                        guarded:1;    /* 401 or 403 hid the kind of
                                                     the upstream */
    unsigned                        away:1;       /* the upstream did not
                                                     answer the last request */
    unsigned                        given_up:1;   /* other workers may probe
                                                     instead */
};


/*
 * Sends a request.  NGX_OK: manner->probed() will be called; NGX_DECLINED: the
 * URI has a dot segment (logged); NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_probe_send(ngx_http_mcp_probe_t *probe,
    ngx_str_t *method, ngx_str_t *params);

/*
 * Tries the next manner, because the upstream is not of the present kind.
 * NGX_OK; NGX_DECLINED: there is no other manner that can be tried; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_probe_next(ngx_http_mcp_probe_t *probe);

/* whether the profile in the zone has this kind (ngx_mcp_profile_e) */
ngx_uint_t ngx_http_mcp_probe_was(ngx_http_mcp_probe_t *probe,
    ngx_uint_t kind);

/* ends the probe: stores probe->profile with this kind (ngx_mcp_profile_e) */
void ngx_http_mcp_probe_put(ngx_http_mcp_probe_t *probe, ngx_uint_t kind);

/* ends the probe with the failure of the last request, which is logged */
void ngx_http_mcp_probe_failed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_failure_t *failure);


#endif /* _NGX_HTTP_MCP_PROFILE_H_INCLUDED_ */
