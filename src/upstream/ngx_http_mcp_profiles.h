
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Gets the profiles of all upstreams of an endpoint at the same time.  An
 * upstream that takes long is left out if another one has answered.
 */

#ifndef _NGX_HTTP_MCP_PROFILES_H_INCLUDED_
#define _NGX_HTTP_MCP_PROFILES_H_INCLUDED_


#include "ngx_http_mcp_profile.h"
#include "ngx_http_mcp_router.h"


typedef struct ngx_http_mcp_profiles_s  ngx_http_mcp_profiles_t;

/* the profile of one upstream */

typedef struct {
    ngx_http_mcp_upstream_t  *upstream;
    ngx_mcp_profile_t         known;      /* the profile, or the reason why
                                             there is none */
    ngx_uint_t                settled;    /* "known" is set; 0: the upstream
                                             was left out */

    /* private */
    ngx_http_mcp_profiles_t  *profiles;
    ngx_http_mcp_waiter_t     waiter;
} ngx_http_mcp_profiles_one_t;

struct ngx_http_mcp_profiles_s {
    /* in */
    ngx_str_t                    *tenant;
    ngx_msec_t                    max_age;
    ngx_pool_t                   *pool;
    void                        (*ready)(void *data);
    void                         *data;

    /* out: the upstreams in configured order */
    ngx_http_mcp_profiles_one_t  *one;
    ngx_uint_t                    n;
    unsigned                      whole:1;  /* all profiles are known, and none
                                               is an old one that is kept while
                                               the upstream is away */

    /* private */
    ngx_uint_t                    answered; /* an upstream has answered */
    ngx_msec_t                    first;    /* time of the first answer of an
                                               upstream */
    ngx_msec_t                    start;    /* time at which the structure was
                                               made */
    ngx_event_t                   timer;
};


/*
 * Makes the structure for all upstreams of the router, from pool; the caller
 * sets its "in" members then.  NULL: no memory.
 */
ngx_http_mcp_profiles_t *ngx_http_mcp_profiles_create(ngx_pool_t *pool,
    ngx_http_mcp_router_t *router);

/*
 * Gets the profiles.  NGX_OK: each profile is settled or left out; NGX_AGAIN:
 * ready() will be called, and has to call this function again or to free the
 * structure; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_profiles_get(ngx_http_mcp_profiles_t *profiles);


#endif /* _NGX_HTTP_MCP_PROFILES_H_INCLUDED_ */
