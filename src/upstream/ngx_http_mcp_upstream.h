
/*
 * An upstream as configured, and how one talks with it: the manners of rpc and
 * legacy upstreams, sessions kept there for client sessions (links), what is
 * known of it.
 */

#ifndef _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_
#define _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_


#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_exchange.h"
#include "ngx_http_mcp_background.h"
#include "ngx_mcp_session.h"
#include "ngx_mcp_own.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_knowledge.h"


typedef enum {
    NGX_HTTP_MCP_AUTO = 0,
    NGX_HTTP_MCP_RPC,
    NGX_HTTP_MCP_LEGACY
} ngx_http_mcp_protocol_e;


/*
 * What a worker found out an upstream to be, of the tenants asked for last: its
 * location may lead each to another server.
 */

#define NGX_HTTP_MCP_LEARNED         16
#define NGX_HTTP_MCP_LEARNED_TENANT  64

typedef struct {
    ngx_uint_t                        what;     /* ngx_mcp_known_e */
    size_t                            len;
    u_char                            tenant[NGX_HTTP_MCP_LEARNED_TENANT];
} ngx_http_mcp_learned_t;


/* one mcp_upstream of one endpoint; what stands below comes at merge time */

typedef struct {
    ngx_str_t                         name;
    ngx_http_complex_value_t          uri;
    ngx_uint_t                        protocol; /* ngx_http_mcp_protocol_e */
    ngx_flag_t                        listen;

    ngx_mcp_zone_t                   *zone;
    ngx_str_t                         endpoint;
    ngx_http_conf_ctx_t              *conf_ctx; /* of the endpoint */
    uint64_t                          epoch;
    ngx_msec_t                        timeout;
    ngx_msec_t                        silence;  /* in a client's request */
    ngx_msec_t                        total;
    size_t                            limit;

    ngx_mcp_metric_t                  metric;

    ngx_http_mcp_learned_t            learned[NGX_HTTP_MCP_LEARNED];
    ngx_msec_t                        blamed;   /* in this worker: when it
                                                   refused a client's own
                                                   initialize, 0: never */
} ngx_http_mcp_upstream_t;


/* for whom the module speaks when no client waits */

typedef struct {
    ngx_str_t                         tenant;
    ngx_str_t                         session;  /* $mcp_session_id */
    ngx_str_t                         list_key;
    ngx_str_t                         topic;
} ngx_http_mcp_audience_t;


/*
 * Makes the client-less main request on which an upstream or feed of the
 * endpoint of this configuration is reached; its endpoint variables hold the
 * audience's values.  NULL on failure.
 */
typedef ngx_http_request_t *(*ngx_http_mcp_background_pt)(
    ngx_http_conf_ctx_t *conf, ngx_http_mcp_audience_t *audience);

/* set by the edge, which knows the variables */
extern ngx_http_mcp_background_pt  ngx_http_mcp_background_for;

/*
 * While an upstream's URI is computed: whose values are seen, and whether they
 * are percent-encoded.  Else NULL and 0.
 */
extern ngx_http_mcp_scope_t  *ngx_http_mcp_scope;
extern ngx_uint_t             ngx_http_mcp_encoding;

/*
 * A complex value not from any value cached earlier.  *room is allocated when
 * it is NULL and may be used again; it starts with the variables of which the
 * value was made.
 */
ngx_int_t ngx_http_mcp_fresh(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_http_variable_value_t **room,
    ngx_str_t *value);

/*
 * The id of the module's own session at an upstream, for an audience, as
 * $mcp_session_id says it: always the same (36 bytes), so that a hash of it
 * finds the same server again.
 */
void ngx_http_mcp_stable_id(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_str_t *list_key, u_char *dst);

/* params of initialize in such a session */
extern ngx_str_t  ngx_http_mcp_own_initialize;

/*
 * Makes an exchange with the upstream on r, with its URI for this scope, which
 * has to live as long as r.
 * NULL: no memory, or the URI has a "." or ".." segment (logged).
 */
ngx_http_mcp_exchange_t *ngx_http_mcp_upstream_exchange(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_scope_t *scope);

/* likewise with any location, for the log called name; without time-outs */
ngx_http_mcp_exchange_t *ngx_http_mcp_upstream_at(ngx_http_request_t *r,
    ngx_http_complex_value_t *location, ngx_str_t *name,
    ngx_http_mcp_scope_t *scope);

/* puts text into the exchange as its body; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_upstream_body(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);


/* waits for something to become known of an upstream */

typedef struct {
    ngx_queue_t                       queue;      /* linked while it waits */
    ngx_mcp_zone_t                   *zone;
    void                            (*ready)(void *data);
    void                             *data;
} ngx_http_mcp_waiter_t;


/*
 * A talk: one client message to an upstream, from finding out what the
 * upstream is to the end of the exchange.  For a legacy upstream it uses the
 * session's link, makes it when there is none (with the client's own
 * initialize), and remakes it once when the upstream forgot it; the message
 * is sent again only then, because it cannot have run.
 *
 * Lives in r->pool.  Handlers are called as the exchange's; t->x is the
 * exchange whose answer it is.
 */

typedef struct ngx_http_mcp_talk_s  ngx_http_mcp_talk_t;

struct ngx_http_mcp_talk_s {
    /* in */
    ngx_http_request_t               *r;
    ngx_http_mcp_upstream_t          *upstream;
    ngx_mcp_ref_t                     session;
    ngx_mcp_ref_t                     call;       /* is woken for links, or
                                                     block 0 */
    ngx_str_t                         tenant;
    ngx_uint_t                        level;      /* of the session */
    ngx_http_mcp_scope_t              scope;      /* of the message */
    ngx_str_t                         body;
    unsigned                          existing:1; /* only if there is a link;
                                                     else NGX_DECLINED */
    unsigned                          legacy_only:1; /* done(OK) when it is
                                                        an rpc upstream */
    unsigned                          patient:1;  /* the message is a client's
                                                     request */
    unsigned                          listen:1;   /* opens the upstream's GET
                                                     stream, once; no body */
    ngx_str_t                         last_event_id;  /* for that, in the link
                                                     with this serial */
    ngx_uint_t                        serial;
    unsigned                          answered:1; /* set by message() when the
                                                     answer was in it */
    void                            (*linked)(ngx_http_mcp_talk_t *t);
                                               /* about to listen on t->link;
                                                  may be NULL */
    void                            (*streams)(ngx_http_mcp_talk_t *t);
                                               /* the answer is a stream */
    void                            (*paused)(ngx_http_mcp_talk_t *t);
                                               /* which ended early, to be
                                                  resumed in a while */
    void                            (*message)(ngx_http_mcp_talk_t *t,
                                          ngx_str_t *text);
    ngx_int_t                       (*piece)(ngx_http_mcp_talk_t *t,
                                          ngx_chain_t *in, ngx_uint_t last);
    void                            (*done)(ngx_http_mcp_talk_t *t,
                                          ngx_http_mcp_outcome_e outcome);
    void                             *data;

    /* out */
    ngx_http_mcp_exchange_t          *x;
    ngx_uint_t                        rpc;        /* the upstream is one */
    ngx_uint_t                        status;     /* it could not be found out
                                                     what it is: HTTP status */
    ngx_str_t                         why;        /* and sentence for clients;
                                                     else empty */

    /* private */
    ngx_http_mcp_scope_t              again;      /* of a message made here */
    ngx_http_mcp_waiter_t             waiter;
    ngx_mcp_link_t                   *link;       /* legacy only */
    ngx_uint_t                        step;
    ngx_uint_t                        sub;
    ngx_uint_t                        resumes;
    ngx_str_t                         new_id;
    ngx_uint_t                        new_revision;
    ngx_event_t                       event;
    unsigned                          closed:1;   /* r is about to go */
    unsigned                          leaving:1;  /* when it knows new_id */
    unsigned                          healed:1;
    unsigned                          forgotten:1;
    unsigned                          aborted:1;
    unsigned                          waiting:1;
    unsigned                          claimed:1;
    unsigned                          heard:1;
    unsigned                          initialized:1;
    unsigned                          unreachable:1;
};

/* NGX_OK: done() will come; NGX_DECLINED: no link (existing); NGX_ERROR */
ngx_int_t ngx_http_mcp_talk_start(ngx_http_mcp_talk_t *t);

/*
 * The doorbell said NGX_MCP_WAKE_LINK for t->call, or that there is news of an
 * own session
 */
void ngx_http_mcp_talk_wake(ngx_http_mcp_talk_t *t);

/* done(NGX_HTTP_MCP_ABORTED) follows in a later event */
void ngx_http_mcp_talk_abort(ngx_http_mcp_talk_t *t);

/*
 * What a new session at the upstream is told again, before the message itself:
 * the level, the next private subscription.  NGX_OK: body; NGX_DECLINED: there
 * is none; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_talk_again_level(ngx_http_mcp_talk_t *t,
    ngx_str_t *body);
ngx_int_t ngx_http_mcp_talk_again_subscribe(ngx_http_mcp_talk_t *t,
    ngx_str_t *body);

extern ngx_str_t  ngx_http_mcp_own_id;

/*
 * Of a background request, which goes: no callback is called any more.  The
 * session that was being made at the upstream is ended.
 */
void ngx_http_mcp_talk_leave(ngx_http_mcp_talk_t *t);
void ngx_http_mcp_talk_left(ngx_http_mcp_talk_t *t);    /* private */

/*
 * Frees what is not in r->pool (queue, events, claims); from the cleanup of
 * a request that goes away.  No callback is called afterwards.
 */
void ngx_http_mcp_talk_cleanup(ngx_http_mcp_talk_t *t);


/*
 * Finds out what an upstream is and can, for an audience: initialize with a
 * session of the module's own, which is ended again.  Answers come from the
 * zone while they are of this configuration and not older than max_age (or
 * NGX_MCP_KNOWLEDGE_ANY).  NGX_OK: *known is
 * filled from pool; NGX_AGAIN: being asked, by this or another worker, and
 * ready(data) will be called once when the outcome is in the zone, unless
 * forgotten before; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_discover(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_msec_t max_age, ngx_pool_t *pool,
    ngx_mcp_knowledge_t *known, ngx_http_mcp_waiter_t *waiter);

/* the kind that this worker knows without the zone, or KNOWN_NOTHING */
ngx_uint_t ngx_http_mcp_discovered(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant);

/* what it said of itself may be out of date: the next initialize asks it */
void ngx_http_mcp_discover_stale(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

/* and it does not behave as what it was known for: the next call finds out */
void ngx_http_mcp_discover_again(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool);

void ngx_http_mcp_discover_forget(ngx_http_mcp_waiter_t *waiter);

/* the worker was told to quit */
void ngx_http_mcp_discover_quit(ngx_mcp_zone_t *zone);

/* ms; an upstream's time for initialize, if mcp_upstream_timeout is not less */
#define NGX_HTTP_MCP_INITIALIZE_TIME  30000

/* limits an exchange to this time */
void ngx_http_mcp_initialize_within(ngx_http_mcp_exchange_t *x,
    ngx_msec_t time);

/* the doorbell: handlers->knowledge */
void ngx_http_mcp_discover_doorbell(ngx_mcp_zone_t *zone);


/*
 * Holds the upstream's GET stream of a session for as long as the client holds
 * one of its own, in the first worker that asks; what arrives goes on the
 * session's general line.  from: the client's GET, whose headers cross.
 */
void ngx_http_mcp_listen(ngx_http_mcp_upstream_t *u, ngx_http_request_t *from,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_str_t *tenant);

/* the doorbell: a session that is listened for has ended or has no GET left */
void ngx_http_mcp_listen_doorbell(ngx_mcp_zone_t *zone);

/* the worker was told to quit */
void ngx_http_mcp_listen_quit(ngx_mcp_zone_t *zone);


/* of the message at hand, which is scanned: ngx_mcp_method_e */
ngx_uint_t ngx_http_mcp_said_method(ngx_http_mcp_talk_t *t, ngx_str_t *text);

/* its params.uri, decoded; data NULL: there is none, or no memory */
ngx_str_t ngx_http_mcp_said_uri(ngx_http_mcp_talk_t *t, ngx_str_t *text,
    ngx_pool_t *pool);

/*
 * Whether it came for this session alone, but is said to all of its audience:
 * a change of a resource that the module's own session listens for, or of
 * lists that are kept, which are looked at again now.
 */
ngx_uint_t ngx_http_mcp_said_elsewhere(ngx_http_mcp_talk_t *t,
    ngx_mcp_ref_t session, ngx_str_t *text);

/* answers a request of the upstream: an empty result, or an error */
void ngx_http_mcp_said_reply(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_audience_t *audience, ngx_str_t *id, ngx_int_t code,
    const char *why);


/* whether the id of the session that it made can be kept; else it is logged */
ngx_uint_t ngx_http_mcp_link_fits(ngx_http_mcp_exchange_t *x);

/* whether an rpc upstream says by this status that it lacks the method */
ngx_uint_t ngx_http_mcp_status_absent(ngx_uint_t status);


/*
 * Tells an upstream that a session has ended: DELETE, outcome ignored.  from:
 * the client's request, whose headers cross; NULL when there is none.
 */
void ngx_http_mcp_farewell(ngx_http_mcp_upstream_t *u,
    ngx_http_request_t *from, ngx_str_t *tenant, ngx_str_t *session,
    ngx_str_t *id, ngx_uint_t revision);


#endif /* _NGX_HTTP_MCP_UPSTREAM_H_INCLUDED_ */
