
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_profile.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_upstream_message.h"


static ngx_int_t ngx_http_mcp_profile_key(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool, ngx_str_t *key);
static void ngx_http_mcp_profile_note(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_mcp_profile_t *profile);
static ngx_int_t ngx_http_mcp_probe(ngx_http_mcp_upstream_t *u,
    ngx_str_t *key, ngx_str_t *tenant, uint32_t hash);
static void ngx_http_mcp_probe_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_probe_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_probe_end(ngx_http_mcp_probe_t *probe);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_probe_handlers = {
    .message = ngx_http_mcp_probe_message,
    .done = ngx_http_mcp_probe_done
};


ngx_int_t
ngx_http_mcp_profile(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_msec_t max_age, ngx_pool_t *pool, ngx_mcp_profile_t *profile)
{
    ngx_int_t  rc, probed;
    ngx_str_t  key;

    if (!u->probe) {
        profile->what = NGX_MCP_PROFILE_REFUSED;
        profile->revision = NGX_MCP_REVISION_LATEST_LEGACY;
        return NGX_OK;
    }

    if (ngx_http_mcp_profile_key(u, tenant, pool, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_profile_get(u->zone, &key, u->epoch, max_age, pool, profile);

    if (rc == NGX_DECLINED || (rc == NGX_OK && profile->ask)) {

        probed = ngx_http_mcp_probe(u, &key, tenant, profile->hash);

        if (probed != NGX_OK) {
            ngx_mcp_profile_give_up(u->zone, &key);
            return probed;
        }

        if (rc == NGX_DECLINED) {
            rc = NGX_AGAIN;
        }
    }

    if (rc == NGX_OK) {
        ngx_http_mcp_profile_note(u, tenant, profile);
    }

    return rc;
}


ngx_uint_t
ngx_http_mcp_profile_answers(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_uint_t              answers;
    ngx_pool_t             *pool;
    ngx_mcp_profile_t       profile;
    ngx_http_mcp_health_t  *health;

    health = ngx_http_mcp_upstream_health(u, tenant);

    if (health->away || health->silent) {
        return 0;
    }

    if (!u->probe
        || (u->protocol == NGX_HTTP_MCP_AUTO
            && ngx_http_mcp_manner(u, tenant, 0)))
    {
        return 1;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return 1;
    }

    if (ngx_http_mcp_profile_peek(u, tenant, pool, &profile) == NGX_OK) {
        answers = !profile.kept;

    } else {

        /* if the kind is configured, requests need no profile */

        answers = (u->protocol != NGX_HTTP_MCP_AUTO);
    }

    ngx_destroy_pool(pool);

    return answers;
}


ngx_uint_t
ngx_http_mcp_profile_is(ngx_http_mcp_upstream_t *u, ngx_str_t *key)
{
    size_t  len;

    len = u->endpoint.len + 1 + u->name.len + 1;

    return key->len >= len
           && ngx_memcmp(key->data, u->endpoint.data, u->endpoint.len) == 0
           && key->data[u->endpoint.len] == '\0'
           && ngx_memcmp(key->data + u->endpoint.len + 1, u->name.data,
                         u->name.len)
              == 0
           && key->data[len - 1] == '\0';
}


ngx_int_t
ngx_http_mcp_profile_stored(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool, ngx_mcp_profile_t *profile)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_profile_peek(u, tenant, pool, profile);

    if (rc == NGX_OK) {
        profile->kept = 1;
        ngx_http_mcp_profile_note(u, tenant, profile);
    }

    return rc;
}


ngx_http_mcp_manner_t *
ngx_http_mcp_profile_manner(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t stateful)
{
    ngx_pool_t             *pool;
    ngx_mcp_profile_t       profile;
    ngx_http_mcp_manner_t  *manner;

    manner = ngx_http_mcp_manner(u, tenant, stateful);

    if (manner) {
        return manner;
    }

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    if (ngx_http_mcp_profile_peek(u, tenant, pool, &profile) == NGX_OK) {

        if (!profile.suspect) {
            ngx_http_mcp_manner_note(u, tenant, profile.what);
        }

        if (profile.what != NGX_MCP_PROFILE_REFUSED) {
            manner = ngx_http_mcp_manner_of(profile.what, 0, stateful);
        }
    }

    ngx_destroy_pool(pool);

    return manner;
}


ngx_int_t
ngx_http_mcp_profile_peek(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool, ngx_mcp_profile_t *profile)
{
    ngx_str_t  key;

    if (ngx_http_mcp_profile_key(u, tenant, pool, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_mcp_profile_stored(u->zone, &key, pool, profile);
}


/*
 * Notes the profile's kind in this worker's record of the upstream, unless
 * another server may have replaced the upstream.  If profile->kept is set, also
 * notes that the upstream is away.
 */

static void
ngx_http_mcp_profile_note(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_mcp_profile_t *profile)
{
    if (profile->what != NGX_MCP_PROFILE_UNKNOWN && !profile->suspect) {
        ngx_http_mcp_manner_note(u, tenant, profile->what);
    }

    if (profile->kept) {
        ngx_http_mcp_upstream_away(u, tenant);
    }
}


static ngx_int_t
ngx_http_mcp_profile_key(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool, ngx_str_t *key)
{
    u_char  *p;

    key->len = u->endpoint.len + 1 + u->name.len + 1 + tenant->len;
    key->data = ngx_pnalloc(pool, key->len);
    if (key->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(key->data, u->endpoint.data, u->endpoint.len);
    *p++ = '\0';
    p = ngx_cpymem(p, u->name.data, u->name.len);
    *p++ = '\0';
    ngx_memcpy(p, tenant->data, tenant->len);

    return NGX_OK;
}


void
ngx_http_mcp_profile_stale(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool)
{
    ngx_str_t  key;

    if (ngx_http_mcp_profile_key(u, tenant, pool, &key) == NGX_OK) {
        ngx_mcp_profile_stale(u->zone, &key);
    }
}


void
ngx_http_mcp_profile_away(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool)
{
    ngx_http_mcp_upstream_set_health(u, tenant, 1, 0);

    ngx_http_mcp_profile_stale(u, tenant, pool);
}


void
ngx_http_mcp_profile_silent(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool)
{
    ngx_http_mcp_upstream_silent(u, tenant);

    ngx_http_mcp_profile_stale(u, tenant, pool);
}


void
ngx_http_mcp_profile_back(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool)
{
    ngx_str_t  key;

    ngx_http_mcp_upstream_answers(u, tenant);

    if (ngx_http_mcp_profile_key(u, tenant, pool, &key) == NGX_OK) {
        ngx_mcp_profile_back(u->zone, &key);
    }
}


void
ngx_http_mcp_profile_reprobe(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t revision, ngx_pool_t *pool)
{
    ngx_str_t  key;

    if (!u->probe
        || ngx_http_mcp_profile_narrow(u, tenant, revision, pool) == NGX_OK)
    {
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" may have changed; "
                  "the module detects its protocol and capabilities again",
                  &u->name, &u->endpoint);

    ngx_http_mcp_manner_note(u, tenant, NGX_MCP_PROFILE_UNKNOWN);

    if (ngx_http_mcp_profile_key(u, tenant, pool, &key) == NGX_OK) {
        ngx_mcp_profile_suspect(u->zone, &key);
    }
}


ngx_int_t
ngx_http_mcp_profile_narrow(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t revision, ngx_pool_t *pool)
{
    ngx_str_t  key;

    if (revision == 0 || u->protocol != NGX_HTTP_MCP_AUTO
        || ngx_http_mcp_profile_key(u, tenant, pool, &key) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    return ngx_mcp_profile_narrow(u->zone, &key, revision);
}


void
ngx_http_mcp_profile_doorbell(ngx_mcp_zone_t *zone, uint64_t keys)
{
    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_PROFILE, keys);
}


void
ngx_http_mcp_profile_quit(ngx_mcp_zone_t *zone)
{
    ngx_queue_t           *q, *probes;
    ngx_http_mcp_probe_t  *probe;

    probes = zone->ctx[NGX_MCP_CTX_PROBES];

    if (probes == NULL
        || ngx_http_mcp_waiter_any(zone, NGX_HTTP_MCP_WAIT_PROFILE))
    {
        return;
    }

    for (q = ngx_queue_head(probes);
         q != ngx_queue_sentinel(probes);
         q = ngx_queue_next(q))
    {
        probe = ngx_queue_data(q, ngx_http_mcp_probe_t, queue);

        probe->given_up = 1;
        ngx_http_mcp_exchange_abort(probe->x);
    }
}


/* starts a probe; NGX_DECLINED: the upstream's URI has a dot segment */

static ngx_int_t
ngx_http_mcp_probe(ngx_http_mcp_upstream_t *u, ngx_str_t *key,
    ngx_str_t *tenant, uint32_t hash)
{
    ngx_int_t              rc;
    ngx_str_t              none;
    ngx_pool_t            *pool;
    ngx_queue_t           *probes;
    ngx_http_mcp_probe_t  *probe;

    rc = NGX_ERROR;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    probe = ngx_pcalloc(pool, sizeof(ngx_http_mcp_probe_t));
    if (probe == NULL) {
        goto failed;
    }

    probe->upstream = u;
    probe->pool = pool;
    probe->profile.hash = hash;

    if (ngx_http_mcp_string_copy(pool, &probe->key, key) != NGX_OK
        || ngx_http_mcp_string_copy(pool, &probe->tenant, tenant) != NGX_OK)
    {
        goto failed;
    }

    ngx_str_set(&none, "");

    ngx_http_mcp_stable_id(u, tenant, &none, probe->session_buf);

    probe->session.data = probe->session_buf;
    probe->session.len = NGX_MCP_UUID_LEN;

    probe->end = ngx_current_msec + NGX_HTTP_MCP_INITIALIZE_TIME;

    probes = ngx_mcp_ctx_queues(u->zone, NGX_MCP_CTX_PROBES, 1);
    if (probes == NULL) {
        goto failed;
    }

    ngx_queue_insert_tail(probes, &probe->queue);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp probes upstream \"%V\"", &u->name);

    probe->manner = ngx_http_mcp_manner_next(u, NULL);

    rc = probe->manner->probe(probe);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

failed:

    if (probe && probe->queue.next) {
        ngx_queue_remove(&probe->queue);
    }

    ngx_destroy_pool(pool);

    return rc;
}


/* each message has its own background request, because $mcp_method differs */

ngx_int_t
ngx_http_mcp_probe_send(ngx_http_mcp_probe_t *probe, ngx_str_t *method,
    ngx_str_t *params)
{
    ngx_str_t                 body;
    ngx_msec_int_t            left;
    ngx_http_mcp_scope_t      scope;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = probe->tenant;
    audience.session = probe->session;

    ngx_memzero(&scope, sizeof(ngx_http_mcp_scope_t));

    scope.method = *method;
    scope.request_id = ngx_http_mcp_own_id;

    x = ngx_http_mcp_background_exchange(probe->upstream, &audience, NULL,
                                         &scope);
    if (x == NULL) {
        return scope.dots ? NGX_DECLINED : NGX_ERROR;
    }

    /* clients of this and other workers wait for the end of the probe */

    ngx_http_mcp_background_hold_worker(x->r);

    probe->method = *method;

    body = ngx_mcp_request_compose(x->r->pool, &ngx_http_mcp_own_id, method,
                                   params);

    x->data = probe;
    x->handlers = &ngx_http_mcp_probe_handlers;
    x->level = NGX_LOG_INFO;
    x->quotes = 1;

    if (probe->manner->probe_head
        && probe->manner->probe_head(probe, x) != NGX_OK)
    {
        ngx_http_mcp_background_close(x->r);
        return NGX_ERROR;
    }

    left = (ngx_msec_int_t) (probe->end - ngx_current_msec);
    left = ngx_max(left, 1);

    ngx_http_mcp_exchange_limit_time(x, (ngx_msec_t) left);

    probe->x = x;
    probe->answered = 0;
    probe->absent = 0;
    probe->error = 0;
    probe->headers = 0;
    probe->again = 0;
    ngx_str_null(&probe->fault);

    return ngx_http_mcp_background_send(x, &body);
}


static void
ngx_http_mcp_probe_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t              code, error, result;
    ngx_uint_t             revision;
    ngx_mcp_json_t        *json;
    ngx_http_mcp_probe_t  *probe;

    probe = x->data;
    json = x->scan;

    if (probe->answered) {
        return;
    }

    code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

    if (ngx_mcp_error_code(&code) == NGX_MCP_METHOD_NOT_FOUND) {
        probe->absent = 1;
    }

    if (ngx_http_mcp_initialize_answer(x, text, &ngx_http_mcp_own_id, &result,
                                       &revision)
        != NGX_OK)
    {
        /* keeps the fault of the first message only: there may be many */

        if (probe->fault.data == NULL) {
            probe->fault = ngx_http_mcp_failure_answer(x, text,
                                                     &ngx_http_mcp_own_id,
                                                     probe->pool);
        }

        if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
            probe->error = 1;

            if (probe->manner->probe_error) {
                error = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);
                probe->manner->probe_error(probe, &code, &error);
            }

            ngx_http_mcp_exchange_answered(x);
        }

        return;
    }

    probe->answered = 1;
    ngx_http_mcp_exchange_answered(x);

    if (probe->manner->probe_result) {
        probe->manner->probe_result(probe, &result, revision);
    }
}


static void
ngx_http_mcp_probe_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_request_t    *r;
    ngx_http_mcp_probe_t  *probe;

    probe = x->data;
    r = x->r;

    if (probe->given_up && outcome == NGX_HTTP_MCP_ABORTED) {
        ngx_mcp_profile_give_up(probe->upstream->zone, &probe->key);
        ngx_http_mcp_probe_end(probe);

    } else {
        probe->absent |= (outcome == NGX_HTTP_MCP_STATUS
                          && ngx_http_mcp_status_absent(x->status));

        probe->away = (outcome == NGX_HTTP_MCP_UNREACHABLE
                       || outcome == NGX_HTTP_MCP_TIMEOUT
                       || outcome == NGX_HTTP_MCP_CUT
                       || (outcome == NGX_HTTP_MCP_STATUS && !probe->absent
                           && x->status >= NGX_HTTP_INTERNAL_SERVER_ERROR));

        probe->manner->probed(probe, outcome);
    }

    ngx_http_mcp_background_close(r);
}


ngx_int_t
ngx_http_mcp_probe_next(ngx_http_mcp_probe_t *probe)
{
    ngx_http_mcp_manner_t  *manner;

    manner = ngx_http_mcp_manner_next(probe->upstream, probe->manner);

    if (manner == NULL) {
        return NGX_DECLINED;
    }

    probe->manner = manner;

    return manner->probe(probe);
}


void
ngx_http_mcp_probe_failed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_failure_t *failure)
{
    ngx_http_mcp_upstream_t  *u;

    u = probe->upstream;

    if (probe->guarded && !probe->away) {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_REFUSED);
        return;
    }

    ngx_http_mcp_failure_log(probe->x, NGX_LOG_ERR, u, &probe->method,
                             failure);

    probe->profile.what = NGX_MCP_PROFILE_UNKNOWN;
    probe->profile.status = failure->status;
    probe->profile.why = failure->why;
    ngx_str_null(&probe->profile.result);

    if (ngx_mcp_profile_fail(u->zone, &probe->key, u->epoch, probe->away,
                             &probe->profile)
        == NGX_OK)
    {
        ngx_http_mcp_upstream_away(u, &probe->tenant);
    }

    ngx_http_mcp_probe_end(probe);
}


ngx_uint_t
ngx_http_mcp_status_absent(ngx_uint_t status)
{
    return status == NGX_HTTP_NOT_FOUND || status == NGX_HTTP_NOT_ALLOWED
           || status == NGX_HTTP_NOT_IMPLEMENTED;
}


ngx_uint_t
ngx_http_mcp_probe_was(ngx_http_mcp_probe_t *probe, ngx_uint_t kind)
{
    ngx_mcp_profile_t  before;

    return ngx_mcp_profile_stored(probe->upstream->zone, &probe->key,
                                  probe->pool, &before)
           == NGX_OK
           && before.what == kind;
}


void
ngx_http_mcp_probe_put(ngx_http_mcp_probe_t *probe, ngx_uint_t kind)
{
    ngx_mcp_zone_t          *zone;
    ngx_http_mcp_failure_t   failure;

    zone = probe->upstream->zone;

    probe->profile.what = kind;

    if (kind == NGX_MCP_PROFILE_REFUSED) {
        probe->profile.revision = probe->guarded
                                  ? 0 : NGX_MCP_REVISION_LATEST_LEGACY;
    }

    if (kind == NGX_MCP_PROFILE_UNKNOWN || kind == NGX_MCP_PROFILE_REFUSED) {
        ngx_str_null(&probe->profile.result);
    }

    if (ngx_mcp_profile_put(zone, &probe->key, probe->upstream->epoch,
                            &probe->profile)
        != NGX_OK && kind != NGX_MCP_PROFILE_UNKNOWN)
    {
        /* requests that wait for the profile must not probe again at once */

        ngx_memzero(&failure, sizeof(ngx_http_mcp_failure_t));

        failure.status = NGX_HTTP_SERVICE_UNAVAILABLE;
        ngx_str_set(&failure.why, "the zone has no room for what the upstream "
                    "says of itself (mcp_zone)");
        failure.remedy = "make mcp_zone larger";

        probe->guarded = 0;
        ngx_http_mcp_probe_failed(probe, &failure);
        return;
    }

    ngx_http_mcp_probe_end(probe);
}


static void
ngx_http_mcp_probe_end(ngx_http_mcp_probe_t *probe)
{
    uint32_t         hash;
    ngx_mcp_zone_t  *zone;

    zone = probe->upstream->zone;
    hash = probe->profile.hash;

    ngx_queue_remove(&probe->queue);
    ngx_destroy_pool(probe->pool);

    ngx_http_mcp_profile_doorbell(zone, NGX_MCP_RING_KEY(hash));
}
