
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_failure.h"
#include "ngx_http_mcp_upstream_message.h"


#define NGX_HTTP_MCP_FRESH           3600000

/* ms; others may ask, whose end has to reach this worker */
#define NGX_HTTP_MCP_PATIENCE        (NGX_HTTP_MCP_INITIALIZE_TIME + 5000)

/* the part of its params that is kept, to begin sessions at upstreams */
#define NGX_HTTP_MCP_INITIALIZE_MAX    4096
#define NGX_HTTP_MCP_INITIALIZE_FRAME                                         \
    sizeof("{\"protocolVersion\":\"\",\"capabilities\":,\"clientInfo\":}")


static ngx_int_t ngx_http_mcp_initialize_check(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_int_t *refusal);
static ngx_int_t ngx_http_mcp_initialize_profile(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_profile_t *known);
static ngx_http_mcp_upstream_t *ngx_http_mcp_initialize_target(
    ngx_http_mcp_ctx_t *ctx);
static ngx_http_mcp_result_t *ngx_http_mcp_initialize_cached(
    ngx_http_mcp_ctx_t *ctx);
static void ngx_http_mcp_initialize_cache(ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_profile_t *known, uint64_t changes);
static void ngx_http_mcp_initialize_ready(void *data);
static void ngx_http_mcp_initialize_timeout(void *data);
static void ngx_http_mcp_initialize_cleanup(void *data);
static ngx_int_t ngx_http_mcp_initialize_unprobed(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_profile_t *known);
static ngx_int_t ngx_http_mcp_initialize_forward(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
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
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_profile_t *known,
    ngx_http_mcp_exchange_t *x);
static ngx_int_t ngx_http_mcp_initialize_new(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made,
    ngx_mcp_session_new_t *in);
static ngx_int_t ngx_http_mcp_initialize_reply(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made);
static void ngx_http_mcp_initialize_client_left(void *data);
static void ngx_http_mcp_initialize_feeds_ready(void *data);
static ngx_int_t ngx_http_mcp_initialize_params(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *revision, ngx_str_t *params);
static size_t ngx_http_mcp_initialize_size(ngx_mcp_message_t *m);
static ngx_int_t ngx_http_mcp_initialize_cleanup_add(
    ngx_http_mcp_endpoint_worker_t *w);
static void ngx_http_mcp_initialize_results_cleanup(void *data);
static u_char *ngx_http_mcp_initialize_info(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *info);
static u_char *ngx_http_mcp_initialize_capabilities(u_char *p,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *capabilities,
    ngx_uint_t *offered);
static ngx_uint_t ngx_http_mcp_initialize_equal(ngx_str_t *token,
    const char *name);
static ngx_http_mcp_result_t *ngx_http_mcp_initialize_slot(
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant);
static ngx_uint_t ngx_http_mcp_initialize_matches(
    ngx_http_mcp_result_t *result, ngx_str_t *tenant);
static ngx_http_mcp_result_t *ngx_http_mcp_initialize_result(
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant, ngx_str_t *source);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_initialize_handlers = {
    NULL,
    ngx_http_mcp_initialize_message,
    NULL,
    ngx_http_mcp_initialize_done
};


/* the capability of each kind of list, whatever the upstream offers */

static struct {
    ngx_uint_t   capability;
    ngx_uint_t   offered;
    const char  *name;
    const char  *text;
} ngx_http_mcp_offers[] = {

    { NGX_HTTP_MCP_CAP_TOOLS, NGX_MCP_OFFERED_TOOLS,
      "tools", "\"tools\":{\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_PROMPTS, NGX_MCP_OFFERED_PROMPTS,
      "prompts", "\"prompts\":{\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_RESOURCES, NGX_MCP_OFFERED_RESOURCES,
      "resources", "\"resources\":{\"subscribe\":true,\"listChanged\":true}" },

    { NGX_HTTP_MCP_CAP_LOGGING, NGX_MCP_OFFERED_LOGGING,
      "logging", "\"logging\":{}" },

    { NGX_HTTP_MCP_CAP_COMPLETIONS, 0, "completions", "\"completions\":{}" },

    { 0, 0, NULL, NULL }
};


/*
 * initialize (2025-11-25 basic/lifecycle): answered from what is known of the
 * upstream; who is not known yet is asked first, by one worker for all.
 */

ngx_int_t
ngx_http_mcp_initialize(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t            rc, refusal;
    ngx_mcp_profile_t    known;
    ngx_pool_cleanup_t  *cln;

    if (ngx_http_mcp_initialize_check(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    rc = ngx_http_mcp_initialize_profile(r, ctx, &known);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    if (ctx->feeds == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, 0);
        if (cln == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        cln->handler = ngx_http_mcp_initialize_cleanup;
        cln->data = ctx;

        ctx->waiter.ready = ngx_http_mcp_initialize_ready;
        ctx->waiter.late = ngx_http_mcp_initialize_timeout;
        ctx->waiter.data = r;

        ngx_http_mcp_waiter_start(&ctx->waiter, ctx->conf->zone,
                                  NGX_HTTP_MCP_WAIT_PROFILE,
                                  NGX_HTTP_MCP_PATIENCE);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


static ngx_int_t
ngx_http_mcp_initialize_check(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_int_t *refusal)
{
    ngx_mcp_json_t     *json;
    ngx_mcp_message_t  *m;

    m = ctx->message;
    json = &m->json;

    if (ctx->caller.session_id.data == ctx->header_session.data) {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_INVALID_REQUEST,
                             "the session is already initialized");
        return NGX_DECLINED;
    }

    if (ctx->client->version(r, ctx, refusal) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (json->members[NGX_MCP_PATH_VERSION].type != NGX_MCP_JSON_STRING) {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                             "params.protocolVersion must be a string");
        return NGX_DECLINED;
    }

    if (json->members[NGX_MCP_PATH_CAPABILITIES].type != NGX_MCP_JSON_OBJECT
        || json->members[NGX_MCP_PATH_CLIENT_INFO].type != NGX_MCP_JSON_OBJECT)
    {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                             "params.capabilities and params.clientInfo must "
                             "be objects");
        return NGX_DECLINED;
    }

    if (ngx_http_mcp_initialize_size(m) > NGX_HTTP_MCP_INITIALIZE_MAX) {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                             "params.capabilities and params.clientInfo are "
                             "larger than 4k together");
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/*
 * NGX_AGAIN: waits for the doorbell, or for feeds; else what the handler
 * returns
 */

static ngx_int_t
ngx_http_mcp_initialize_profile(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_profile_t *known)
{
    uint64_t                  changes;
    ngx_int_t                 rc;
    ngx_http_mcp_upstream_t  *u;

    ngx_memzero(known, sizeof(ngx_mcp_profile_t));

    if (ctx->conf->bridge.router.n == 0) {
        ngx_str_set(&known->result, "");

        return ngx_http_mcp_initialize_session(r, ctx, known, NULL);
    }

    if (ngx_http_mcp_initialize_cached(ctx)) {
        return ngx_http_mcp_initialize_session(r, ctx, NULL, NULL);
    }

    u = ngx_http_mcp_initialize_target(ctx);
    changes = ngx_mcp_profile_changes(ctx->conf->zone);

    rc = ngx_http_mcp_profile(u, &ctx->caller.tenant, NGX_HTTP_MCP_FRESH,
                              r->pool, known);

    if (rc == NGX_AGAIN) {
        ctx->waiter.hash = known->hash;
        return NGX_AGAIN;
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    switch (known->what) {

    case NGX_MCP_PROFILE_UNKNOWN:
        return ngx_http_mcp_initialize_unprobed(r, ctx, known);

    case NGX_MCP_PROFILE_REFUSED:
        return ngx_http_mcp_initialize_forward(r, ctx);

    default:
        rc = ngx_http_mcp_initialize_session(r, ctx, known, NULL);

        if (!known->kept) {
            ngx_http_mcp_initialize_cache(ctx, known, changes);
        }

        return rc;
    }
}


/* the upstream that decides about the client's initialize */

static ngx_http_mcp_upstream_t *
ngx_http_mcp_initialize_target(ngx_http_mcp_ctx_t *ctx)
{
    return ngx_http_mcp_router_select(&ctx->conf->bridge.router,
                                      NGX_MCP_METHOD_INITIALIZE, NULL);
}


/* the result of this worker that holds for this request as well, or NULL */

static ngx_http_mcp_result_t *
ngx_http_mcp_initialize_cached(ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_mcp_result_t  *result;

    result = ngx_http_mcp_initialize_slot(ctx->conf, &ctx->caller.tenant);

    if (result->time
        && ngx_current_msec - result->time < NGX_HTTP_MCP_FRESH
        && result->changes == ngx_mcp_profile_changes(ctx->conf->zone)
        && ngx_http_mcp_initialize_matches(result, &ctx->caller.tenant))
    {
        return result;
    }

    return NULL;
}


/* where there was no memory for it, the place has another result, or none */

static void
ngx_http_mcp_initialize_cache(ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_profile_t *known, uint64_t changes)
{
    ngx_http_mcp_result_t  *result;

    result = ngx_http_mcp_initialize_slot(ctx->conf, &ctx->caller.tenant);

    if (result->pool
        && ngx_mcp_equal(&result->source, &known->result)
        && ngx_http_mcp_initialize_matches(result, &ctx->caller.tenant))
    {
        result->changes = changes;
        result->time = ngx_current_msec ? ngx_current_msec : 1;
    }
}


static void
ngx_http_mcp_initialize_ready(void *data)
{
    ngx_http_request_t *r = data;

    ngx_int_t             rc;
    ngx_connection_t     *c;
    ngx_mcp_profile_t     known;
    ngx_http_mcp_ctx_t   *ctx;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    rc = ngx_http_mcp_initialize_profile(r, ctx, &known);

    if (rc == NGX_AGAIN) {

        if (ctx->feeds == NULL) {
            ngx_http_mcp_waiter_restart(&ctx->waiter);
        }

        return;
    }

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_initialize_timeout(void *data)
{
    ngx_http_request_t *r = data;

    ngx_connection_t     *c;
    ngx_mcp_profile_t     known;
    ngx_http_mcp_ctx_t   *ctx;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    known.status = NGX_HTTP_GATEWAY_TIME_OUT;
    ngx_str_set(&known.why, "the upstream did not answer initialize in time");

    ngx_http_finalize_request(r, ngx_http_mcp_initialize_unprobed(r, ctx,
                                                                  &known));
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_initialize_cleanup(void *data)
{
    ngx_http_mcp_ctx_t *ctx = data;

    ngx_http_mcp_waiter_stop(&ctx->waiter);
}


static ngx_int_t
ngx_http_mcp_initialize_unprobed(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_profile_t *known)
{
    if (known->why.len == 0) {
        known->status = NGX_HTTP_BAD_GATEWAY;
        ngx_str_set(&known->why, "nginx failed to send a request to the "
                                 "upstream");
    }

    return ngx_http_mcp_refuse_unprobed(r, &ctx->message->id,
                                        ngx_http_mcp_initialize_target(ctx),
                                        known->status, &known->why);
}


/*
 * An upstream that wants to know who asks: it gets the client's own
 * initialize, and what it says to that is for this session alone.
 */

static ngx_int_t
ngx_http_mcp_initialize_forward(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_mcp_exchange_t  *x;

    x = ngx_http_mcp_upstream_exchange(r, ngx_http_mcp_initialize_target(ctx),
                                       &ctx->scope);

    if (x == NULL
        || ngx_http_mcp_upstream_body(x, &ctx->message->text) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    x->sample.data = ngx_pnalloc(r->pool, NGX_HTTP_MCP_SAMPLE);
    if (x->sample.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    x->handlers = &ngx_http_mcp_initialize_handlers;
    x->client_headers = 1;
    x->level = NGX_LOG_INFO;
    x->data = ctx;

    ngx_http_mcp_exchange_limit_time(x, NGX_HTTP_MCP_INITIALIZE_TIME);

    if (ngx_http_mcp_exchange_start(x) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


static void
ngx_http_mcp_initialize_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t            result;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = x->data;

    if (ctx->refusal.data) {
        return;
    }

    if (ngx_http_mcp_initialize_answer(x, text, &ctx->message->id, &result,
                                       &ctx->upstream_revision)
        != NGX_OK)
    {
        if (ctx->upstream_error.data == NULL) {
            ctx->upstream_error = ngx_http_mcp_failure_answer(x, text,
                                                              &ctx->message->id,
                                                              x->r->pool);
        }

        return;
    }

    (void) ngx_http_mcp_string_copy(x->r->pool, &ctx->refusal, &result);

    ngx_http_mcp_exchange_answered(x);
}


static void
ngx_http_mcp_initialize_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_int_t             rc;
    ngx_mcp_profile_t     known;
    ngx_http_request_t   *r;
    ngx_http_mcp_ctx_t   *ctx;

    r = x->r;
    ctx = x->data;

    if (ctx->refusal.data) {

        ngx_memzero(&known, sizeof(ngx_mcp_profile_t));

        known.what = NGX_MCP_PROFILE_LEGACY;
        known.result = ctx->refusal;

        rc = ngx_http_mcp_initialize_session(r, ctx, &known, x);

    } else {
        rc = ngx_http_mcp_initialize_refused(r, ctx, x, outcome);
    }

    if (ctx->caller.session.block == 0) {
        ngx_http_mcp_initialize_upstream(ctx, x);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/* a client that the upstream refuses gets its status and challenge */

static ngx_int_t
ngx_http_mcp_initialize_refused(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    ngx_str_t                 method;
    ngx_uint_t                level;
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_upstream_t  *u;

    u = ngx_http_mcp_initialize_target(ctx);

    if (ngx_http_mcp_failure(x, outcome, &ctx->upstream_error, r->pool,
                             &failure)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* clients without a token are nobody's fault, and any can be repeated */

    level = NGX_LOG_ERR;

    if ((x->status == NGX_HTTP_UNAUTHORIZED && x->headers.part.nelts)
        || !ngx_http_mcp_upstream_log_refusal(u))
    {
        level = NGX_LOG_INFO;
    }

    if (!u->probe && ctx->upstream_error.len) {

        /* if it has a single session, that is left to clients already */

        failure.remedy = NULL;
    }

    ngx_str_set(&method, "initialize");

    ngx_http_mcp_failure_log(x, level, u, &method, &failure);

    if (x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN
        || (outcome == NGX_HTTP_MCP_STATUS && x->refusal.len
            && !ngx_http_mcp_status_absent(x->status)))
    {
        return ngx_http_mcp_refuse_outcome(r, &ctx->message->id, u, x,
                                           NGX_HTTP_MCP_STATUS);
    }

    return ngx_http_mcp_refuse_unprobed(r, &ctx->message->id, u,
                                        failure.status, &failure.why);
}


/* the upstream session that was made for this client is its own, or is ended */

static void
ngx_http_mcp_initialize_upstream(ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_exchange_t *x)
{
    ngx_mcp_ref_t               none;
    ngx_http_mcp_upstream_t    *u;
    ngx_mcp_upstream_session_t  us;

    u = ngx_http_mcp_initialize_target(ctx);

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
                                         &x->session, ctx->upstream_revision)
           == NGX_OK)
    {
        return;
    }

    /* there is no session here that could use it */

    ngx_http_mcp_upstream_session_delete(u, x->r, &ctx->caller.tenant,
                                         &ctx->caller.session_id, &x->session,
                                         ctx->upstream_revision);
}


static ngx_int_t
ngx_http_mcp_initialize_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_profile_t *known,
    ngx_http_mcp_exchange_t *x)
{
    ngx_int_t                 rc;
    ngx_mcp_ref_t             ref;
    ngx_http_mcp_result_t    *made;
    ngx_mcp_session_new_t     in;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    /* a result kept a moment ago holds, even if it has changed since */

    made = known ? ngx_http_mcp_initialize_result(mlcf, &ctx->caller.tenant,
                                                  &known->result)
                 : ngx_http_mcp_initialize_slot(mlcf, &ctx->caller.tenant);

    if (made == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_mcp_initialize_new(r, ctx, made, &in) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_mcp_session_create(mlcf->zone, &in, &ref);

    if (rc == NGX_BUSY) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   NGX_MCP_REFUSED,
                                   "the limit of sessions is reached "
                                   "(mcp_session_limit)");
    }

    if (rc != NGX_OK) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   NGX_MCP_REFUSED,
                                   ngx_mcp_room_refusal(mlcf->zone));
    }

    ctx->caller.revision = in.revision;
    ctx->caller.session = ref;

    if (x) {

        /* a client that has the answer may call at once, by another worker */

        ngx_http_mcp_initialize_upstream(ctx, x);
    }

    (void) ngx_http_mcp_feed_want(&mlcf->bridge, &ctx->caller, NULL, r->pool,
                                  &ctx->feeds);

    return ngx_http_mcp_initialize_reply(r, ctx, made);
}


static ngx_int_t
ngx_http_mcp_initialize_new(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_result_t *made, ngx_mcp_session_new_t *in)
{
    ngx_str_t                 version;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    ngx_memzero(in, sizeof(ngx_mcp_session_new_t));

    version = ngx_mcp_message_string(ctx->message, NGX_MCP_PATH_VERSION,
                                     r->pool);
    in->revision = ctx->client->negotiate(&version);

    if (ngx_http_mcp_initialize_params(ctx, r->pool,
                                       ngx_mcp_revision_name(in->revision),
                                       &in->initialize)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    in->id = ctx->caller.session_id;
    in->endpoint = mlcf->name;
    in->tenant = ctx->caller.tenant;
    in->identity = ctx->caller.identity;

    if (ngx_http_mcp_evaluate_share(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    in->client = ctx->caller.share;
    in->client_name = ctx->client_name;
    in->client_version = ctx->client_version;
    in->offered = made->offered;
    in->list_key = ctx->caller.list_key;
    in->alone = ngx_http_mcp_list_private(r, ctx);
    in->limit = mlcf->session_limit;
    in->limit_key = ctx->caller.tenant;
    in->timeout = mlcf->session_timeout;
    in->event_max = mlcf->event_max;
    in->event_size = mlcf->event_size;

    if (in->limit && mlcf->session_limit_key
        && ngx_http_mcp_evaluate_value(r, mlcf->session_limit_key,
                                       &in->limit_key)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* once feeds that are opened for it are connected */

static ngx_int_t
ngx_http_mcp_initialize_reply(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_result_t *made)
{
    u_char              *p;
    ngx_str_t            result, *name;
    ngx_pool_cleanup_t  *cln;

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

    cln = ctx->feeds ? ngx_pool_cleanup_add(r->pool, 0) : NULL;

    if (cln == NULL) {
        return ngx_http_mcp_result(r, &ctx->message->id, &result);
    }

    /* an event that is sent after the answer is not to be missed */

    cln->handler = ngx_http_mcp_initialize_client_left;
    cln->data = ctx;

    ctx->result = result;

    ctx->feeds->done = ngx_http_mcp_initialize_feeds_ready;
    ctx->feeds->data = r;

    ngx_http_mcp_feed_wait(ctx->feeds);

    return NGX_AGAIN;
}


/* nobody has the id of a session whose client left before the answer */

static void
ngx_http_mcp_initialize_client_left(void *data)
{
    ngx_http_mcp_ctx_t *ctx = data;

    if (ctx->feeds->waiting) {
        ngx_http_mcp_feed_cancel(ctx->feeds);
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
                                                     &ctx->result));
    ngx_http_run_posted_requests(c);
}


/* the client's own, but that upstreams are offered what was agreed on here */

static ngx_int_t
ngx_http_mcp_initialize_params(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool,
    ngx_str_t *revision, ngx_str_t *params)
{
    u_char     *p;
    ngx_str_t   theirs, version, capabilities, client;

    theirs = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_PARAMS);
    version = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_VERSION);

    p = ngx_pnalloc(pool, NGX_HTTP_MCP_INITIALIZE_MAX + revision->len
                          + NGX_HTTP_MCP_INITIALIZE_FRAME);
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

        /* extensions of it are not for upstreams then */

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


static ngx_http_mcp_result_t *
ngx_http_mcp_initialize_slot(ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *tenant)
{
    return &mlcf->worker->results[ngx_crc32_short(tenant->data, tenant->len)
                                  % NGX_HTTP_MCP_RESULTS];
}


static ngx_uint_t
ngx_http_mcp_initialize_matches(ngx_http_mcp_result_t *result,
    ngx_str_t *tenant)
{
    return result->tenant_len == tenant->len
           && ngx_memcmp(result->tenant, tenant->data, tenant->len) == 0;
}


/* it is the same for most clients, so the last ones are kept */

static ngx_http_mcp_result_t *
ngx_http_mcp_initialize_result(ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *tenant, ngx_str_t *source)
{
    u_char                 *p;
    size_t                  len;
    ngx_str_t               rest, name, value, capabilities, info,
                            instructions;
    ngx_pool_t             *pool;
    ngx_http_mcp_result_t  *result;

    result = ngx_http_mcp_initialize_slot(mlcf, tenant);

    if (!ngx_http_mcp_initialize_matches(result, tenant)) {
        result->time = 0;
        result->tenant_len = 0;

        if (tenant->len <= NGX_HTTP_MCP_RESULT_TENANT) {
            ngx_memcpy(result->tenant, tenant->data, tenant->len);
            result->tenant_len = tenant->len;
        }
    }

    if (result->pool && ngx_mcp_equal(&result->source, source)) {
        return result;
    }

    ngx_str_null(&info);
    ngx_str_null(&instructions);
    ngx_str_set(&capabilities, "{}");

    rest = *source;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (ngx_http_mcp_initialize_equal(&name, "capabilities")) {
            capabilities = value;

        } else if (ngx_http_mcp_initialize_equal(&name, "serverInfo")) {
            info = value;

        } else if (ngx_http_mcp_initialize_equal(&name, "instructions")) {
            instructions = value;
        }
    }

    if (ngx_http_mcp_initialize_cleanup_add(mlcf->worker) != NGX_OK) {
        return NULL;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    len = source->len + 1024
          + ngx_mcp_json_escaped_len(&mlcf->server_name)
          + ngx_mcp_json_escaped_len(&mlcf->server_version)
          + ngx_mcp_json_escaped_len(&mlcf->server_title)
          + ngx_mcp_json_escaped_len(&mlcf->instructions);

    p = ngx_pnalloc(pool, len + source->len);
    if (p == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    if (result->pool) {
        ngx_destroy_pool(result->pool);
    }

    result->pool = pool;
    result->time = 0;

    result->source.data = p;
    result->source.len = source->len;

    p = ngx_cpymem(p, source->data, source->len);

    result->text.data = p;

    p = ngx_http_mcp_initialize_capabilities(p, mlcf, &capabilities,
                                             &result->offered);
    p = ngx_http_mcp_initialize_info(p, mlcf, &info);

    if (mlcf->instructions.len || instructions.len) {
        p = ngx_cpymem(p, ",\"instructions\":",
                       sizeof(",\"instructions\":") - 1);

        if (mlcf->instructions.len) {
            p = ngx_mcp_json_escape(p, &mlcf->instructions);

        } else {
            p = ngx_cpymem(p, instructions.data, instructions.len);
        }
    }

    *p++ = '}';

    result->text.len = p - result->text.data;

    return result;
}


static ngx_int_t
ngx_http_mcp_initialize_cleanup_add(ngx_http_mcp_endpoint_worker_t *w)
{
    if (w->cleanup == NULL) {
        w->cleanup = ngx_pool_cleanup_add(ngx_cycle->pool, 0);
        if (w->cleanup == NULL) {
            return NGX_ERROR;
        }

        w->cleanup->handler = ngx_http_mcp_initialize_results_cleanup;
        w->cleanup->data = w;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_initialize_results_cleanup(void *data)
{
    ngx_http_mcp_endpoint_worker_t *w = data;

    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_MCP_RESULTS; i++) {

        if (w->results[i].pool) {
            ngx_destroy_pool(w->results[i].pool);
            w->results[i].pool = NULL;
        }
    }
}


static u_char *
ngx_http_mcp_initialize_info(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *info)
{
    p = ngx_cpymem(p, ",\"serverInfo\":", sizeof(",\"serverInfo\":") - 1);

    if (mlcf->server_name.len) {
        p = ngx_cpymem(p, "{\"name\":", sizeof("{\"name\":") - 1);
        p = ngx_mcp_json_escape(p, &mlcf->server_name);
        p = ngx_cpymem(p, ",\"version\":", sizeof(",\"version\":") - 1);
        p = ngx_mcp_json_escape(p, &mlcf->server_version);

        if (mlcf->server_title.len) {
            p = ngx_cpymem(p, ",\"title\":", sizeof(",\"title\":") - 1);
            p = ngx_mcp_json_escape(p, &mlcf->server_title);
        }

        *p++ = '}';

    } else if (info->len) {
        p = ngx_cpymem(p, info->data, info->len);

    } else {
        p = ngx_sprintf(p, "{\"name\":\"nginx-mcp\",\"version\":\"%s\"}",
                        NGX_MCP_MODULE_VERSION);
    }

    return p;
}


static u_char *
ngx_http_mcp_initialize_capabilities(u_char *p, ngx_http_mcp_loc_conf_t *mlcf,
    ngx_str_t *capabilities, ngx_uint_t *offered)
{
    ngx_str_t             rest, name, value;
    ngx_uint_t            i, has;
    ngx_http_mcp_zone_t  *zone;

    zone = (ngx_http_mcp_zone_t *) mlcf->zone;
    has = 0;

    p = ngx_cpymem(p, "\"capabilities\":{", sizeof("\"capabilities\":{") - 1);

    rest = *capabilities;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        for (i = 0; ngx_http_mcp_offers[i].name; i++) {

            if (ngx_http_mcp_initialize_equal(&name,
                                              ngx_http_mcp_offers[i].name))
            {
                has |= ngx_http_mcp_offers[i].capability;
                break;
            }
        }

        if (ngx_http_mcp_offers[i].name) {
            continue;
        }

        /* one that the module does not know crosses as it is */

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, name.data, name.len);
        *p++ = ':';
        p = ngx_cpymem(p, value.data, value.len);
    }

    if (zone->published || mlcf->bridge.feeds) {
        has |= NGX_HTTP_MCP_CAP_LOGGING;
    }

    if (mlcf->bridge.topics) {
        has |= NGX_HTTP_MCP_CAP_RESOURCES;
    }

    if (mlcf->capabilities) {
        has = mlcf->capabilities;
    }

    if (mlcf->bridge.tools) {
        has |= NGX_HTTP_MCP_CAP_TOOLS;
    }

    *offered = 0;

    for (i = 0; ngx_http_mcp_offers[i].name; i++) {

        if (!(has & ngx_http_mcp_offers[i].capability)) {
            continue;
        }

        *offered |= ngx_http_mcp_offers[i].offered;

        if (p[-1] != '{') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, ngx_http_mcp_offers[i].text,
                       ngx_strlen(ngx_http_mcp_offers[i].text));
    }

    *p++ = '}';

    return p;
}


/* whether a raw name token, which has no escapes then, is this name */

static ngx_uint_t
ngx_http_mcp_initialize_equal(ngx_str_t *token, const char *name)
{
    size_t  len;

    len = ngx_strlen(name);

    return token->len == len + 2
           && ngx_memcmp(token->data + 1, name, len) == 0;
}
