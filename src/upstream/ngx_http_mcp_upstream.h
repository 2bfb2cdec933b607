
/*
 * An upstream as configured, and exchanges with it: on the request of a client,
 * or on one that no client waits for.
 */

#ifndef _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_
#define _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_


#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_exchange.h"
#include "ngx_mcp_caller.h"
#include "ngx_http_mcp_background.h"
#include "ngx_http_mcp_waiter.h"
#include "ngx_mcp_session.h"
#include "ngx_mcp_upstream_session.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_profile.h"


typedef enum {
    NGX_HTTP_MCP_AUTO = 0,
    NGX_HTTP_MCP_RPC,
    NGX_HTTP_MCP_LEGACY,
    NGX_HTTP_MCP_MODERN,
    NGX_HTTP_MCP_EVENTS         /* a backend that sends events (mcp_events) */
} ngx_http_mcp_protocol_e;


/*
 * A worker's own record of an upstream.  Its location may lead each tenant to
 * another server: there are places for those asked for last.
 */

#define NGX_HTTP_MCP_UPSTREAM_TENANTS  16
#define NGX_HTTP_MCP_UPSTREAM_TENANT   128

typedef struct {
    ngx_uint_t                        away;     /* it did not answer last */
    ngx_msec_t                        silent;   /* when it was waited for in
                                                   vain; 0: it was not */
} ngx_http_mcp_health_t;

typedef struct {
    ngx_uint_t                        what;     /* ngx_mcp_profile_e */
    ngx_http_mcp_health_t             health;
    size_t                            len;
    u_char                            tenant[NGX_HTTP_MCP_UPSTREAM_TENANT];
} ngx_http_mcp_upstream_tenant_t;

typedef struct {
    ngx_http_mcp_upstream_tenant_t    tenants[NGX_HTTP_MCP_UPSTREAM_TENANTS];
    ngx_http_mcp_health_t             health;   /* of the others: as it was
                                                   found last */
    ngx_msec_t                        refusal_logged;  /* when, that it refused
                                                          a client's initialize;
                                                          0: never */
    ngx_msec_t                        left_out;    /* likewise, that a client
                                                      was answered without it
                                                      */
    ngx_uint_t                        own;         /* what it is depends on the
                                                      endpoint */
    ngx_uint_t                        single_logged;  /* it was logged that it
                                                      notified one session of
                                                      an update, not all */
    ngx_msec_t                        stream_late; /* when a GET stream of it
                                                      was waited for in vain;
                                                      0: it was not */
    ngx_queue_t                       tools;       /* ngx_http_mcp_tools.h */
    ngx_uint_t                        ntools;
} ngx_http_mcp_upstream_worker_t;


/* one mcp_upstream of one endpoint; members below probe come at merge time */

typedef struct ngx_http_mcp_upstream_s  ngx_http_mcp_upstream_t;

struct ngx_http_mcp_upstream_s {
    ngx_str_t                         name;
    ngx_http_complex_value_t          uri;
    ngx_uint_t                        protocol; /* ngx_http_mcp_protocol_e */
    ngx_str_t                         prefix;   /* of names, before "__"; empty:
                                                   they stay */
    ngx_flag_t                        bare;     /* prefix=none */
    ngx_flag_t                        listen;
    ngx_flag_t                        probe;    /* may be asked for all, else
                                                   by clients only */

    uint32_t                          hash;     /* of its name; not 0 */
    ngx_mcp_zone_t                   *zone;
    ngx_str_t                         endpoint;
    ngx_http_conf_ctx_t              *conf_ctx; /* of the endpoint */
    uint64_t                          epoch;
    ngx_msec_t                        timeout;
    ngx_msec_t                        silence;  /* in a client's request */
    ngx_msec_t                        total;
    size_t                            limit;

    ngx_uint_t                        listless; /* one of kind rpc may have
                                                   no list */

    ngx_http_mcp_upstream_t          *first;    /* that is reached in the same
                                                   way by another endpoint, if
                                                   not this one: they share the
                                                   profile of that */

    ngx_mcp_metric_t                  metric;
    ngx_http_mcp_upstream_worker_t   *worker;   /* of its own, in each */
};


/* for whom the module speaks when no client waits */

typedef struct {
    ngx_str_t                         tenant;
    ngx_str_t                         session;  /* $mcp_session_id */
    ngx_str_t                         list_key;
    ngx_str_t                         topic;
    ngx_str_t                         capabilities;  /* of its clients, raw, for
                                                        a session of the
                                                        module's own; or empty
                                                        */
} ngx_http_mcp_audience_t;


typedef ngx_http_request_t *(*ngx_http_mcp_background_pt)(
    ngx_http_conf_ctx_t *conf, ngx_http_mcp_audience_t *audience);

/*
 * From now on variables of the request have the values of this scope, or those
 * of the request itself if it is NULL, percent-encoded for a URI or not.
 */
typedef void (*ngx_http_mcp_scope_pt)(ngx_http_request_t *r,
    ngx_http_mcp_scope_t *scope, ngx_uint_t encoded);

/* set by the edge, which knows the variables */
extern ngx_http_mcp_background_pt  ngx_http_mcp_background_make;
extern ngx_http_mcp_scope_pt       ngx_http_mcp_set_scope;

/*
 * A complex value not from any value cached earlier.  *room is allocated when
 * it is NULL and may be used again; it starts with the variables of which the
 * value was made.
 */
ngx_int_t ngx_http_mcp_uncached_value(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_http_variable_value_t **room,
    ngx_str_t *value);

/*
 * The id by which $mcp_session_id names the shared upstream session of an
 * audience: always the same (36 bytes), so that a hash of it finds the same
 * server again.
 */
void ngx_http_mcp_stable_id(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_str_t *list_key, u_char *dst);

/* ms; an upstream's time for initialize, if mcp_upstream_timeout is not less */
#define NGX_HTTP_MCP_INITIALIZE_TIME  30000

/*
 * params of initialize in such a session, from pool; capabilities: of a client,
 * a raw object, or empty.  data NULL: no memory.
 */
ngx_str_t ngx_http_mcp_own_initialize(ngx_pool_t *pool,
    ngx_str_t *capabilities);

/* the id of its requests */
extern ngx_str_t  ngx_http_mcp_own_id;

/*
 * Makes an exchange with the upstream on r, with its URI for this scope, which
 * has to live as long as r.
 * NULL: no memory, or the URI has a "." or ".." segment (logged).
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_upstream_exchange(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_scope_t *scope);

/*
 * Makes the client-less main request on which an upstream or feed of the
 * endpoint of this configuration is reached; its endpoint variables hold the
 * audience's values, and headers of a client cross, unless NULL.  NULL: no
 * memory or no connection (logged).
 */
ngx_http_request_t *ngx_http_mcp_background_open(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers);

/*
 * Makes an exchange on such a request.  The scope is copied; NULL: an empty
 * one.  Unless other handlers are set, nothing is done with what the upstream
 * answers, and the request is closed at the end.  NULL: as above, or the URI
 * has a dot segment (logged).
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_background_exchange(
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_audience_t *audience,
    ngx_http_headers_in_t *headers, ngx_http_mcp_scope_t *scope);

/* likewise on an upstream session with this id, which is copied */
ngx_http_mcp_exchange_t *ngx_http_mcp_background_session(
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_audience_t *audience,
    ngx_http_headers_in_t *headers, ngx_str_t *id, ngx_uint_t revision);

/* starts it, with this text as its body if not NULL; NGX_ERROR: it is closed */
ngx_int_t ngx_http_mcp_background_send(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/* a string that lives as long as the pool; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_string_copy(ngx_pool_t *pool, ngx_str_t *to,
    ngx_str_t *from);

/* puts text into the exchange as its body; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_upstream_body(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/*
 * The tenant's place in the worker's record; NULL: it has none.  add: it gets
 * one, in which nothing is known.
 */
ngx_http_mcp_upstream_tenant_t *ngx_http_mcp_upstream_tenant(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_uint_t add);

/* whether it answers, as far as this worker knows */
ngx_http_mcp_health_t *ngx_http_mcp_upstream_health(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant);
void ngx_http_mcp_upstream_set_health(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t away, ngx_msec_t silent);

#define ngx_http_mcp_upstream_away(u, tenant)                                 \
    ngx_http_mcp_upstream_set_health(u, tenant, 1,                            \
                           ngx_http_mcp_upstream_health(u, tenant)->silent)

#define ngx_http_mcp_upstream_silent(u, tenant)                               \
    ngx_http_mcp_upstream_set_health(u, tenant,                               \
                           ngx_http_mcp_upstream_health(u, tenant)->away,     \
                           ngx_max(ngx_current_msec, 1))

#define ngx_http_mcp_upstream_answers(u, tenant)                              \
    ngx_http_mcp_upstream_set_health(u, tenant, 0, 0)

/* whether it is to be logged at error that it refused a client's initialize */
ngx_uint_t ngx_http_mcp_upstream_log_refusal(ngx_http_mcp_upstream_t *u);


#endif /* _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_ */
