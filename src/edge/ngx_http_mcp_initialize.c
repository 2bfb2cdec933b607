
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_failure.h"
#include "ngx_http_mcp_offer.h"
#include "ngx_http_mcp_profiles.h"
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_http_mcp_output.h"


/* the most bytes of params that a session keeps, to begin upstream sessions */
#define NGX_HTTP_MCP_INITIALIZE_MAX    4096
#define NGX_HTTP_MCP_INITIALIZE_FRAME                                         \
    sizeof("{\"protocolVersion\":\"\",\"capabilities\":,\"clientInfo\":}")


/* an initialize or server/discover, in r->pool */

struct ngx_http_mcp_initialize_s {
    ngx_http_mcp_profiles_t    *profiles;     /* profiles of which the answer is
                                                 made */
    ngx_http_mcp_feed_wait_t   *feeds;        /* feeds that the answer waits
                                                 for, or NULL */
    ngx_str_t                   result;       /* raw result of the upstream;
                                                 while feeds are waited for, the
                                                 result for the client */

    /* if the message itself was forwarded */
    ngx_http_mcp_upstream_t    *target;       /* upstream that got it */
    ngx_http_mcp_manner_t      *manner;       /* manner in which the target is
                                                 asked */
    ngx_http_mcp_exchange_t    *first;        /* exchange in the other manner,
                                                 if that was tried before, or
                                                 NULL */
    ngx_http_mcp_outcome_e      first_outcome;  /* outcome of "first" */
    ngx_uint_t                  upstream_revision;  /* revision in the
                                                       target's answer */
    ngx_str_t                   upstream_error;  /* error in the target's
                                                   answer */
    unsigned                    undecided:1;  /* the target may need another
                                                 manner */
};


static ngx_int_t ngx_http_mcp_initialize_check(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_initialize_profiles(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_initialize_known(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static void ngx_http_mcp_initialize_ready(void *data);
static ngx_int_t ngx_http_mcp_initialize_forward(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_profiles_one_t *one);
static ngx_int_t ngx_http_mcp_initialize_ask(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_initialize_again(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_initialize_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_initialize_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static ngx_int_t ngx_http_mcp_initialize_refused(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_initialize_upstream(ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_exchange_t *x);
static ngx_int_t ngx_http_mcp_initialize_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made,
    ngx_http_mcp_exchange_t *x);
static ngx_int_t ngx_http_mcp_initialize_new(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made,
    ngx_mcp_session_new_t *in);
static ngx_uint_t ngx_http_mcp_initialize_revision(
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *version);
static ngx_int_t ngx_http_mcp_initialize_reply(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made);
static void ngx_http_mcp_initialize_client_left(void *data);
static void ngx_http_mcp_initialize_feeds_ready(void *data);
static ngx_int_t ngx_http_mcp_initialize_params(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *revision, ngx_str_t *params);
static size_t ngx_http_mcp_initialize_size(ngx_mcp_message_t *m);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_initialize_handlers = {
    .message = ngx_http_mcp_initialize_message,
    .done = ngx_http_mcp_initialize_done
};


/*
 * initialize (2025-11-25 basic/lifecycle) is answered from the profiles of the
 * upstreams; one worker asks upstreams without a profile for all workers.
 */

ngx_int_t
ngx_http_mcp_initialize(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_initialize_check(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx->initialize = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_initialize_t));
    if (ctx->initialize == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_mcp_initialize_profiles(r, ctx);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    return ngx_http_mcp_suspend(r, ngx_http_test_reading);
}


/* refuses params that are not those of initialize; NGX_DECLINED: they are */

static ngx_int_t
ngx_http_mcp_initialize_check(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_mcp_json_t     *json;
    ngx_mcp_message_t  *m;

    m = ctx->message;
    json = &m->json;

    if (ctx->client->offer) {
        return NGX_DECLINED;
    }

    if (json->members[NGX_MCP_PATH_VERSION].type != NGX_MCP_JSON_STRING) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                                   "params.protocolVersion must be a string");
    }

    if (json->members[NGX_MCP_PATH_CAPABILITIES].type != NGX_MCP_JSON_OBJECT
        || json->members[NGX_MCP_PATH_CLIENT_INFO].type != NGX_MCP_JSON_OBJECT)
    {
        return ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                                   "params.capabilities and "
                                   "params.clientInfo must be objects");
    }

    if (ngx_http_mcp_initialize_size(m) > NGX_HTTP_MCP_INITIALIZE_MAX) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                                   "params.capabilities and "
                                   "params.clientInfo are larger than 4k "
                                   "together");
    }

    return NGX_DECLINED;
}


/*
 * Answers by the profiles of the upstreams.  NGX_AGAIN: the request waits for
 * profiles or feeds; else the content handler returns the result.
 */

static ngx_int_t
ngx_http_mcp_initialize_profiles(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    uint64_t                    changes;
    ngx_http_mcp_result_t      *made;
    ngx_http_mcp_loc_conf_t    *mlcf;
    ngx_http_mcp_initialize_t  *init;

    mlcf = ctx->conf;
    init = ctx->initialize;

    made = ngx_http_mcp_offer_cached(mlcf, &ctx->caller.tenant);

    if (made) {
        return ngx_http_mcp_initialize_session(r, ctx, made, NULL);
    }

    if (mlcf->bridge.router.n == 0) {
        changes = ngx_mcp_profile_changes(mlcf->zone);
        made = ngx_http_mcp_offer(mlcf, &ctx->caller.tenant, NULL, 0, r->pool);

        if (made) {
            ngx_http_mcp_offer_keep(made, &ctx->caller.tenant, changes);
        }

        return ngx_http_mcp_initialize_session(r, ctx, made, NULL);
    }

    init->profiles = ngx_http_mcp_profiles_create(r->pool,
                                                  &mlcf->bridge.router);
    if (init->profiles == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    init->profiles->tenant = &ctx->caller.tenant;
    init->profiles->max_age = NGX_MCP_PROFILE_FRESH_AGE;
    init->profiles->ready = ngx_http_mcp_initialize_ready;
    init->profiles->data = r;

    return ngx_http_mcp_initialize_known(r, ctx);
}


/*
 * Answers if the profiles are known by now; returns as
 * ngx_http_mcp_initialize_profiles() does.
 */

static ngx_int_t
ngx_http_mcp_initialize_known(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    uint64_t                      changes;
    ngx_int_t                     rc;
    ngx_uint_t                    i, n;
    ngx_http_mcp_reply_t          reply;
    ngx_http_mcp_result_t        *made;
    ngx_http_mcp_profiles_t      *profiles;
    ngx_http_mcp_profiles_one_t  *one, *refused;
    ngx_http_mcp_offer_source_t  *sources;

    profiles = ctx->initialize->profiles;
    changes = ngx_mcp_profile_changes(ctx->conf->zone);

    rc = ngx_http_mcp_profiles_get(profiles);

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    one = profiles->one;
    sources = ngx_pnalloc(r->pool, profiles->n
                                   * sizeof(ngx_http_mcp_offer_source_t));

    if (rc != NGX_OK || sources == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    n = 0;
    refused = NULL;

    for (i = 0; i < profiles->n; i++) {

        switch (one[i].known.what) {

        case NGX_MCP_PROFILE_UNKNOWN:
            break;

        case NGX_MCP_PROFILE_REFUSED:

            if (refused == NULL) {
                refused = &one[i];
            }

            break;

        default:
            sources[n].upstream = one[i].upstream;
            sources[n].result = one[i].known.result;
            n++;
        }
    }

    if (n) {
        made = ngx_http_mcp_offer(ctx->conf, &ctx->caller.tenant, sources, n,
                                  r->pool);

        if (made && profiles->whole) {
            ngx_http_mcp_offer_keep(made, &ctx->caller.tenant, changes);
        }

        return ngx_http_mcp_initialize_session(r, ctx, made, NULL);
    }

    if (refused) {
        return ngx_http_mcp_initialize_forward(r, ctx, refused);
    }

    ngx_http_mcp_reply_unprobed(r, one[0].upstream, one[0].known.status,
                                &one[0].known.why, &reply);

    return ngx_http_mcp_reply_send(r, &ctx->message->id, &reply);
}


static void
ngx_http_mcp_initialize_ready(void *data)
{
    ngx_http_request_t *r = data;

    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_mcp_ctx_t  *ctx;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    /* a subrequest of nginx may have used the log meanwhile */

    ngx_http_set_log_request(c->log, r);
    c->log->action = NULL;

    rc = ngx_http_mcp_initialize_known(r, ctx);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}


/*
 * Forwards the client's own initialize to an upstream that wants to know who
 * asks; its answer is for this session alone.  The upstream may be of either
 * era: it is asked first in the manner that is known, else in the client's.
 */

static ngx_int_t
ngx_http_mcp_initialize_forward(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_profiles_one_t *one)
{
    ngx_http_mcp_reply_t        reply;
    ngx_http_mcp_upstream_t    *u;
    ngx_http_mcp_initialize_t  *init;

    u = one->upstream;
    init = ctx->initialize;

    init->target = u;
    init->undecided = (u->protocol == NGX_HTTP_MCP_AUTO && u->probe);

    init->manner = (u->protocol == NGX_HTTP_MCP_AUTO)
                   ? ngx_http_mcp_manner_of(one->known.what,
                                            one->known.revision,
                                            !ctx->client->sessionless)
                   : ngx_http_mcp_manner_next(u, NULL);

    if (ngx_http_mcp_initialize_ask(r, ctx) != NGX_OK) {

        if (!ctx->scope.dots) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_http_mcp_reply_dots(r, u, &reply);

        return ngx_http_mcp_reply_send(r, &ctx->message->id, &reply);
    }

    return ngx_http_mcp_suspend(r, ngx_http_test_reading);
}


static ngx_int_t
ngx_http_mcp_initialize_ask(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_mcp_exchange_t    *x;
    ngx_http_mcp_initialize_t  *init;

    init = ctx->initialize;

    x = ngx_http_mcp_upstream_exchange(r, init->target, &ctx->scope);

    if (x == NULL || init->manner->client_probe(x, ctx->message) != NGX_OK) {
        return NGX_ERROR;
    }

    x->handlers = &ngx_http_mcp_initialize_handlers;
    x->client_headers = 1;
    x->level = NGX_LOG_INFO;
    x->quotes = 1;
    x->data = ctx;

    ngx_http_mcp_exchange_limit_time(x, NGX_HTTP_MCP_INITIALIZE_TIME);

    return ngx_http_mcp_exchange_start(x);
}


/*
 * Asks an upstream once more, in the other manner, if it did not answer and the
 * failure may come from the manner.  NGX_OK if the upstream is asked.
 */

static ngx_int_t
ngx_http_mcp_initialize_again(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_initialize_t  *init;

    init = ctx->initialize;

    if (!init->undecided || init->first
        || (outcome != NGX_HTTP_MCP_OK && outcome != NGX_HTTP_MCP_BAD
            && outcome != NGX_HTTP_MCP_STATUS)
        || x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN
        || (x->status >= NGX_HTTP_INTERNAL_SERVER_ERROR
            && !ngx_http_mcp_status_absent(x->status)))
    {
        return NGX_DECLINED;
    }

    init->first = x;
    init->first_outcome = outcome;

    init->manner = (init->manner == &ngx_http_mcp_modern)
                   ? &ngx_http_mcp_legacy : &ngx_http_mcp_modern;

    return ngx_http_mcp_initialize_ask(r, ctx);
}


static void
ngx_http_mcp_initialize_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t                   result;
    ngx_http_mcp_ctx_t         *ctx;
    ngx_http_mcp_initialize_t  *init;

    ctx = x->data;
    init = ctx->initialize;

    if (init->result.data) {
        return;
    }

    if (ngx_http_mcp_initialize_answer(x, text, &ctx->message->id, &result,
                                       &init->upstream_revision)
        != NGX_OK)
    {
        if (init->upstream_error.data == NULL) {
            init->upstream_error = ngx_http_mcp_failure_answer(x, text,
                                                            &ctx->message->id,
                                                            x->r->pool);
        }

        return;
    }

    if (init->manner->client_result) {
        result = init->manner->client_result(x->r->pool, &result);

        if (result.data == NULL) {
            return;
        }
    }

    (void) ngx_http_mcp_string_copy(x->r->pool, &init->result, &result);

    ngx_http_mcp_exchange_answered(x);
}


static void
ngx_http_mcp_initialize_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_int_t                     rc;
    ngx_http_request_t           *r;
    ngx_http_mcp_ctx_t           *ctx;
    ngx_http_mcp_result_t        *made;
    ngx_http_mcp_initialize_t    *init;
    ngx_http_mcp_offer_source_t   source;

    r = x->r;
    ctx = x->data;
    init = ctx->initialize;

    if (init->result.data) {
        source.upstream = init->target;
        source.result = init->result;

        made = ngx_http_mcp_offer(ctx->conf, &ctx->caller.tenant, &source, 1,
                                  r->pool);

        if (init->first) {
            (void) ngx_http_mcp_profile_narrow(init->target,
                                     &ctx->caller.tenant,
                                     init->manner == &ngx_http_mcp_modern
                                     ? NGX_MCP_2026_07_28
                                     : NGX_MCP_REVISION_LATEST_LEGACY,
                                     r->pool);
        }

        rc = ngx_http_mcp_initialize_session(r, ctx, made, x);

    } else {
        rc = ngx_http_mcp_initialize_again(r, ctx, x, outcome);

        if (rc == NGX_OK) {
            return;
        }

        if (init->first) {
            x = init->first;
            outcome = init->first_outcome;
        }

        rc = ngx_http_mcp_initialize_refused(r, ctx, x, outcome);
    }

    if (ctx->caller.session.block == 0) {
        ngx_http_mcp_initialize_upstream(ctx, x);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/*
 * The target did not answer the client's initialize: passes its HTTP status and
 * challenge on, or makes an error
 */

static ngx_int_t
ngx_http_mcp_initialize_refused(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    ngx_str_t                   method;
    ngx_uint_t                  level;
    ngx_http_mcp_reply_t        reply;
    ngx_http_mcp_failure_t      failure;
    ngx_http_mcp_upstream_t    *u;
    ngx_http_mcp_initialize_t  *init;

    init = ctx->initialize;
    u = init->target;

    if (ngx_http_mcp_failure(x, outcome, &init->upstream_error, r->pool,
                             &failure)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* each client without a token, and each repetition, would log an error */

    level = NGX_LOG_ERR;

    if ((x->status == NGX_HTTP_UNAUTHORIZED && x->headers.part.nelts)
        || !ngx_http_mcp_upstream_log_refusal(u))
    {
        level = NGX_LOG_INFO;
    }

    if (!u->probe && init->upstream_error.len) {

        /* the module has no session at the upstream that clients could use */

        failure.remedy = NULL;
    }

    ngx_str_set(&method, "initialize");

    ngx_http_mcp_failure_log(x, level, u, &method, &failure);

    if (x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN
        || (outcome == NGX_HTTP_MCP_STATUS && x->refusal.len
            && !ngx_http_mcp_status_absent(x->status)))
    {
        ngx_http_mcp_reply_outcome(r, &ctx->message->id, u, x,
                                   NGX_HTTP_MCP_STATUS, &reply);

        if (ngx_http_mcp_copy_headers(r, x) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else {
        ngx_http_mcp_reply_unprobed(r, u, failure.status, &failure.why,
                                    &reply);
    }

    return ngx_http_mcp_reply_send(r, &ctx->message->id, &reply);
}


/* keeps the upstream session that was made for this client, or ends it */

static void
ngx_http_mcp_initialize_upstream(ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_exchange_t *x)
{
    ngx_mcp_ref_t               none;
    ngx_http_mcp_upstream_t    *u;
    ngx_http_mcp_initialize_t  *init;
    ngx_mcp_upstream_session_t  us;

    init = ctx->initialize;
    u = init->target;

    if (x->session.len == 0) {
        return;
    }

    ngx_memzero(&none, sizeof(ngx_mcp_ref_t));

    if (ctx->caller.session.block
        && ngx_http_mcp_upstream_session_id_fits(x)
        && ngx_mcp_upstream_session_get(ctx->conf->zone, ctx->caller.session,
                                        &u->name, none, &us)
           == NGX_DECLINED
        && ngx_mcp_upstream_session_made(ctx->conf->zone, us.ref, &u->name,
                                         &x->session, init->upstream_revision,
                                         NULL)
           == NGX_OK)
    {
        return;
    }

    /* the client has no session that could use the upstream session */

    ngx_http_mcp_upstream_session_delete(u, x->r, &ctx->caller.tenant,
                                         &ctx->caller.session_id, &x->session,
                                         init->upstream_revision);
}


static ngx_int_t
ngx_http_mcp_initialize_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made,
    ngx_http_mcp_exchange_t *x)
{
    ngx_int_t                 rc;
    ngx_mcp_session_new_t     in;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    if (made == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->client->offer) {
        return ctx->client->offer(r, ctx, made);
    }

    if (ngx_http_mcp_initialize_new(r, ctx, made, &in) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_mcp_session_create(r, ctx, &in);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx->caller.revision = in.revision;

    if (x) {

        /* the client may call by another worker as soon as it has the answer */

        ngx_http_mcp_initialize_upstream(ctx, x);
    }

    (void) ngx_http_mcp_feed_want(&mlcf->bridge, &ctx->caller, NULL, r->pool,
                                  &ctx->initialize->feeds);

    return ngx_http_mcp_initialize_reply(r, ctx, made);
}


static ngx_int_t
ngx_http_mcp_initialize_new(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_result_t *made, ngx_mcp_session_new_t *in)
{
    ngx_str_t  version, capabilities;

    ngx_memzero(in, sizeof(ngx_mcp_session_new_t));

    version = ngx_mcp_message_string(ctx->message, NGX_MCP_PATH_VERSION,
                                     r->pool);
    in->revision = ngx_http_mcp_initialize_revision(ctx->conf, &version);

    if (ngx_http_mcp_initialize_params(ctx, r->pool,
                                       ngx_mcp_revision_name(in->revision),
                                       &in->initialize)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    capabilities = ngx_mcp_message_member(ctx->message,
                                          NGX_MCP_PATH_CAPABILITIES);

    if (ngx_http_mcp_declares(r, ctx, &capabilities) != NGX_OK) {
        return NGX_ERROR;
    }

    in->id = ctx->caller.session_id;
    in->offered = made->offered;
    in->own_lists = ngx_http_mcp_list_private(r, ctx);

    return NGX_OK;
}


/*
 * Returns the revision that the client asks for, if the endpoint offers it;
 * else the newest offered one that has sessions.
 */

static ngx_uint_t
ngx_http_mcp_initialize_revision(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *version)
{
    ngx_uint_t  revision;

    revision = ngx_mcp_revision_parse(version);

    if (revision == NGX_MCP_REVISION_UNKNOWN
        || revision > NGX_MCP_REVISION_LATEST_LEGACY
        || !(mlcf->versions & NGX_HTTP_MCP_VERSION(revision)))
    {
        revision = NGX_MCP_REVISION_LATEST_LEGACY;

        while (revision > NGX_MCP_2025_03_26
               && !(mlcf->versions & NGX_HTTP_MCP_VERSION(revision)))
        {
            revision--;
        }
    }

    return revision;
}


ngx_int_t
ngx_http_mcp_session_create(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_session_new_t *in)
{
    ngx_int_t                 rc;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    if (ngx_http_mcp_evaluate_share(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    in->endpoint = mlcf->name;
    in->tenant = ctx->caller.tenant;
    in->identity = ctx->caller.identity;
    in->client = ctx->caller.share;
    in->client_name = ctx->client_name;
    in->client_version = ctx->client_version;
    in->list_key = ctx->caller.audience_key;
    in->limit = mlcf->session_limit;
    in->limit_key = ctx->caller.tenant;
    in->timeout = mlcf->session_timeout;
    in->event_max = mlcf->event_max;
    in->event_size = mlcf->event_size;

    if (in->limit && mlcf->session_limit_key
        && ngx_http_mcp_evaluate_value(r, mlcf->session_limit_key,
                                       "mcp_session_limit", &in->limit_key)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_session_create(mlcf->zone, in, &ctx->caller.session);

    if (rc == NGX_OK) {
        return NGX_DECLINED;
    }

    return ngx_http_mcp_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                               NGX_MCP_REFUSED,
                               rc == NGX_BUSY
                               ? "the limit of sessions is reached "
                                 "(mcp_session_limit)"
                               : ngx_mcp_room_refusal(mlcf->zone));
}


/* answers once the feeds are connected that are opened for the session */

static ngx_int_t
ngx_http_mcp_initialize_reply(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_result_t *made)
{
    u_char                     *p;
    ngx_str_t                   result, *name;
    ngx_pool_cleanup_t         *cln;
    ngx_http_mcp_initialize_t  *init;

    name = ngx_mcp_revision_name(ctx->caller.revision);

    result.len = sizeof("{\"protocolVersion\":\"\",") - 1 + name->len
                 + made->text.len;
    result.data = ngx_pnalloc(r->pool, result.len);

    if (result.data == NULL
        || ngx_http_mcp_header(r, "Mcp-Session-Id", &ctx->caller.session_id)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_cpymem(result.data, "{\"protocolVersion\":\"",
                   sizeof("{\"protocolVersion\":\"") - 1);
    p = ngx_cpymem(p, name->data, name->len);
    *p++ = '"';
    *p++ = ',';

    ngx_memcpy(p, made->text.data, made->text.len);

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "mcp session %V begins at endpoint \"%V\", client \"%V\"",
                  &ctx->caller.session_id, &ctx->conf->name, &ctx->client_name);

    init = ctx->initialize;

    cln = init->feeds ? ngx_pool_cleanup_add(r->pool, 0) : NULL;

    if (cln == NULL) {
        return ngx_http_mcp_result(r, &ctx->message->id, &result);
    }

    /* the answer waits for feeds, so that the client misses no later event */

    cln->handler = ngx_http_mcp_initialize_client_left;
    cln->data = ctx;

    init->result = result;

    init->feeds->done = ngx_http_mcp_initialize_feeds_ready;
    init->feeds->data = r;

    ngx_http_mcp_feed_wait(init->feeds);

    return NGX_AGAIN;
}


/* ends a session whose client left before it got the id */

static void
ngx_http_mcp_initialize_client_left(void *data)
{
    ngx_http_mcp_ctx_t *ctx = data;

    ngx_http_mcp_feed_wait_t  *feeds;

    feeds = ctx->initialize->feeds;

    if (feeds->waiting) {
        ngx_http_mcp_feed_cancel(feeds);
        ngx_mcp_session_end(ctx->conf->zone, ctx->caller.session,
                            NGX_MCP_COUNTER_SESSIONS_DELETED);
    }
}


static void
ngx_http_mcp_initialize_feeds_ready(void *data)
{
    ngx_http_request_t *r = data;

    ngx_connection_t    *c;
    ngx_http_mcp_ctx_t  *ctx;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ngx_http_finalize_request(r, ngx_http_mcp_result(r, &ctx->message->id,
                                                     &ctx->initialize->result));
    ngx_http_run_posted_requests(c);
}


/*
 * Sets *params to the params with which upstream sessions begin: those of the
 * client, with the agreed revision.  NGX_OK or NGX_ERROR (no memory).
 */

static ngx_int_t
ngx_http_mcp_initialize_params(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool,
    ngx_str_t *revision, ngx_str_t *params)
{
    u_char     *p;
    ngx_str_t   theirs, version, capabilities, client;

    theirs = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_PARAMS);
    version = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_VERSION);

    p = ngx_pnalloc(pool, ngx_min(theirs.len, NGX_HTTP_MCP_INITIALIZE_MAX)
                          + revision->len + NGX_HTTP_MCP_INITIALIZE_FRAME);
    if (p == NULL) {
        return NGX_ERROR;
    }

    params->data = p;

    if (theirs.len <= NGX_HTTP_MCP_INITIALIZE_MAX) {
        p = ngx_cpymem(p, theirs.data, version.data - theirs.data);
        *p++ = '"';
        p = ngx_cpymem(p, revision->data, revision->len);
        *p++ = '"';
        p = ngx_cpymem(p, version.data + version.len,
                       theirs.data + theirs.len - version.data - version.len);

    } else {

        /* the params are large: upstreams get only these three members */

        capabilities = ngx_mcp_message_member(ctx->message,
                                              NGX_MCP_PATH_CAPABILITIES);
        client = ngx_mcp_message_member(ctx->message,
                                        NGX_MCP_PATH_CLIENT_INFO);

        p = ngx_sprintf(p, "{\"protocolVersion\":\"%V\",\"capabilities\":%V,"
                        "\"clientInfo\":%V}", revision, &capabilities,
                        &client);
    }

    params->len = p - params->data;

    return NGX_OK;
}


static size_t
ngx_http_mcp_initialize_size(ngx_mcp_message_t *m)
{
    ngx_str_t  capabilities, client;

    capabilities = ngx_mcp_message_member(m, NGX_MCP_PATH_CAPABILITIES);
    client = ngx_mcp_message_member(m, NGX_MCP_PATH_CLIENT_INFO);

    return capabilities.len + client.len;
}
