
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An upstream as it is configured, and exchanges with it, on the request of a
 * client or on a background request.
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


/* the configured kind of an upstream */

typedef enum {
    NGX_HTTP_MCP_AUTO = 0,      /* a probe detects the kind */
    NGX_HTTP_MCP_RPC,
    NGX_HTTP_MCP_LEGACY,
    NGX_HTTP_MCP_MODERN,
    NGX_HTTP_MCP_EVENTS         /* a backend that sends events (mcp_events) */
} ngx_http_mcp_protocol_e;


/*
 * A worker's own record of an upstream.  The upstream's location may lead each
 * tenant to another server, so the record has places for the tenants that sent
 * requests last.
 */

#define NGX_HTTP_MCP_UPSTREAM_TENANTS  16
#define NGX_HTTP_MCP_UPSTREAM_TENANT   128

typedef struct {
    ngx_uint_t                        away;     /* the upstream could not be
                                                   reached, or its last probe
                                                   failed */
    ngx_msec_t                        silent;   /* time at which a request gave
                                                   up waiting for an answer of
                                                   the upstream; or 0 */
} ngx_http_mcp_health_t;

typedef struct {
    ngx_uint_t                        kind;     /* kind of the upstream:
                                                   ngx_mcp_profile_e */
    ngx_http_mcp_health_t             health;
    ngx_uint_t                        used;     /* worker->used at the last use
                                                   */
    size_t                            len;      /* length of "tenant" */
    u_char                            tenant[NGX_HTTP_MCP_UPSTREAM_TENANT];
} ngx_http_mcp_upstream_tenant_t;

typedef struct {
    ngx_http_mcp_upstream_tenant_t    tenants[NGX_HTTP_MCP_UPSTREAM_TENANTS];
    ngx_uint_t                        used;     /* number of uses of places */
    ngx_http_mcp_health_t             health;   /* health for the tenants whose
                                                   names are too long for a
                                                   place */
    ngx_msec_t                        refusal_logged;  /* time at which the log
                                                      said that the upstream
                                                      refused a client's
                                                      initialize; or 0 */
    ngx_msec_t                        left_out_logged;  /* time at which the log
                                                      said that a client was
                                                      answered without the
                                                      upstream; or 0 */
    ngx_uint_t                        replies;     /* number of replies to
                                                      requests of the upstream
                                                      that are under way */
    ngx_msec_t                        replies_logged;  /* time at which the log
                                                      said that they are too
                                                      many; or 0 */
    ngx_uint_t                        single_logged;  /* the log said that the
                                                         upstream notified only
                                                         one session of an
                                                         update */
    ngx_msec_t                        stream_late; /* time at which a request
                                                      gave up waiting for a GET
                                                      stream; or 0 */
    ngx_queue_t                       tools;       /* records of tenants
                                                      (ngx_http_mcp_tools.h) */
    ngx_uint_t                        ntools;      /* number of records in
                                                      tools */
    ngx_mcp_metric_t                  metric;
} ngx_http_mcp_upstream_worker_t;


/*
 * One mcp_upstream of one endpoint; members below probe are set by the merge.
 */

typedef struct ngx_http_mcp_upstream_s  ngx_http_mcp_upstream_t;

struct ngx_http_mcp_upstream_s {
    ngx_str_t                         name;
    ngx_http_complex_value_t          uri;
    ngx_uint_t                        protocol; /* ngx_http_mcp_protocol_e */
    ngx_str_t                         prefix;   /* prefix of names, before
                                                   "__"; empty: names are not
                                                   changed */
    ngx_flag_t                        bare;     /* prefix=none */
    ngx_flag_t                        listen;   /* listen= */
    ngx_flag_t                        probe;    /* probe=; off: the module sends
                                                   only requests of clients */

    uint32_t                          hash;     /* hash of the name; not 0 */
    ngx_mcp_zone_t                   *zone;
    ngx_str_t                         endpoint;
    ngx_http_conf_ctx_t              *conf_ctx; /* contexts of the endpoint */
    uint64_t                          epoch;    /* epoch of the configuration
                                                   */
    ngx_msec_t                        timeout;  /* longest silence of an
                                                   exchange, ms; 0: any */
    ngx_msec_t                        silence;  /* longest silence of an
                                                   exchange for whose answer a
                                                   client waits, ms; 0: any */
    ngx_msec_t                        total;    /* longest time of an exchange
                                                   in all, ms; 0: any */
    size_t                            limit;    /* mcp_message_limit */

    ngx_uint_t                        listless; /* an upstream of kind rpc need
                                                   not have any list */

    ngx_http_mcp_upstream_worker_t   *worker;   /* each worker's own record */
};


/* the clients on whose behalf a background request is made */

typedef struct {
    ngx_str_t                         tenant;
    ngx_str_t                         session;  /* $mcp_session_id */
    ngx_str_t                         list_key;
    ngx_str_t                         topic;
    ngx_str_t                         capabilities;  /* raw, to be declared in
                                                        a shared upstream
                                                        session; or empty */
} ngx_http_mcp_audience_t;


typedef ngx_http_request_t *(*ngx_http_mcp_background_pt)(
    ngx_http_conf_ctx_t *conf, ngx_http_mcp_audience_t *audience);

/*
 * Sets the values of $mcp_method, $mcp_name and $mcp_request_id in the request
 * to those of this scope, or, if scope is NULL, to those of the request itself.
 * encoded: the values are percent-encoded for a URI.
 */
typedef void (*ngx_http_mcp_scope_pt)(ngx_http_request_t *r,
    ngx_http_mcp_scope_t *scope, ngx_uint_t encoded);

/* pointers that the edge sets, because it knows the variables */
extern ngx_http_mcp_background_pt  ngx_http_mcp_background_make;
extern ngx_http_mcp_scope_pt       ngx_http_mcp_set_scope;

/*
 * Computes a complex value.  Of the variables that r has cached, only stored
 * ones (ngx_http_mcp_stored.h) are used; the others are computed again.
 * *buffer: NULL at the first call for r, which allocates it from r->pool and
 * copies the stored variables; later calls use it again.  After a call it
 * begins with the variables from which the value was made.  NGX_OK or NGX_ERROR
 * (logged, with the name of the directive).
 */
ngx_int_t ngx_http_mcp_uncached_value(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_http_variable_value_t **buffer,
    const char *directive, ngx_str_t *value);

/*
 * Writes to dst (36 bytes) the value of $mcp_session_id for the shared
 * upstream session of an audience.  The value is always the same, so that a
 * hash of it leads to the same server each time.
 */
void ngx_http_mcp_stable_id(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_str_t *list_key, u_char *dst);

/* ms; limit of the time of an initialize, besides mcp_upstream_timeout */
#define NGX_HTTP_MCP_INITIALIZE_TIME  30000

/*
 * Makes the params of the module's own initialize, from pool.  capabilities: a
 * raw object to be declared, or empty.  data NULL: no memory.
 */
ngx_str_t ngx_http_mcp_own_initialize(ngx_pool_t *pool,
    ngx_str_t *capabilities);

/* the raw id of the module's own requests outside of sessions */
extern ngx_str_t  ngx_http_mcp_own_id;

/*
 * Makes a unique raw id for the module's own request in an upstream session,
 * from pool.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_own_id_make(ngx_pool_t *pool, ngx_str_t *id);

/* the reason for clients why no request was sent, if scope->dots is set */
#define NGX_HTTP_MCP_DOTS                                                     \
    "a method, name, tenant or other value of a request must not make a dot " \
    "segment (\".\" or \"..\") of the upstream's URI"

/*
 * Makes an exchange with the upstream on r.  The upstream's URI is computed
 * for this scope, which has to live as long as r.  NULL: no memory, or the URI
 * has a "." or ".." segment (logged).
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_upstream_exchange(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_scope_t *scope);

/*
 * Sets the headers of a message in a legacy upstream session.  id: the id of
 * the session, which has to live as long as x->r; empty if the session has no
 * id.
 */
void ngx_http_mcp_upstream_in_session(ngx_http_mcp_exchange_t *x,
    ngx_str_t *id, ngx_uint_t revision);

/*
 * Makes a background request (ngx_http_mcp_background.h) for an upstream or
 * feed of the endpoint with this configuration.  Variables of the endpoint have
 * the audience's values.  headers: headers of a client, which are copied, or
 * NULL.  NULL: no memory or no connection (logged).
 */
ngx_http_request_t *ngx_http_mcp_background_open(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers);

/*
 * Makes a background request and an exchange on it, for a message of the
 * module's own.  from: method and request id of the message (copied).  Unless
 * the caller sets other handlers, the response is ignored and the request is
 * closed at the end.  NULL: no memory or no connection, or, if from->dots is
 * set, the URI has a dot segment (logged).
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_background_exchange(
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_audience_t *audience,
    ngx_http_headers_in_t *headers, ngx_http_mcp_scope_t *from);

/*
 * Makes a background request and an exchange on it, for a message in the
 * upstream session with this id (copied); else as the function above.
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_background_session(
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_audience_t *audience,
    ngx_http_headers_in_t *headers, ngx_str_t *id, ngx_uint_t revision);

/*
 * Starts an exchange that one of the two functions above has made.  text: the
 * body, or NULL.  NGX_OK; NGX_ERROR: the background request was closed.
 */
ngx_int_t ngx_http_mcp_background_send(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/* copies *from to *to, with memory of pool; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_string_copy(ngx_pool_t *pool, ngx_str_t *to,
    ngx_str_t *from);

/* sets the body of x to text, which is not copied; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_upstream_body(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);

/*
 * Returns the tenant's place in the worker's record.  A tenant without a place
 * gets the least recently used one, which is reset: the upstream's kind is not
 * known, and the upstream counts as one that answers.  NULL: the tenant's name
 * is too long.
 */
ngx_http_mcp_upstream_tenant_t *ngx_http_mcp_upstream_tenant(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant);

/*
 * Returns the health of the upstream for this tenant, as far as this worker
 * knows.  The look-up of another tenant may overwrite the structure.
 */
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

/*
 * Limits how often the log says at level "error" that the upstream refused a
 * client's initialize.  Returns 1 if it may say so, and notes the time; 0: it
 * has said so shortly before.
 */
ngx_uint_t ngx_http_mcp_upstream_log_refusal(ngx_http_mcp_upstream_t *u);


#endif /* _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_ */
