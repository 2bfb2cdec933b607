
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_mcp_interest.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_topic.h"


#define NGX_HTTP_MCP_UPDATE_BUCKETS  256


/*
 * Equal updates of a resource for a session, which are deferred for
 * NGX_MCP_INTEREST_PAIR ms.
 */

typedef struct {
    ngx_queue_t               queue;
    ngx_pool_t               *pool;
    ngx_http_mcp_upstream_t  *upstream;
    ngx_mcp_ref_t             session;
    ngx_str_t                 id;           /* id of the session */
    ngx_str_t                 tenant;
    ngx_str_t                 uri;
    ngx_str_t                 text;
    ngx_uint_t                count;        /* number of equal updates */
    uint64_t                  stamp;        /* of the subscription */
    ngx_event_t               timer;
} ngx_http_mcp_update_t;


static ngx_uint_t ngx_http_mcp_update_duplicate(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_update_defer(
    ngx_http_mcp_upstream_request_t *ureq, ngx_mcp_caller_t *caller,
    ngx_str_t *uri, ngx_str_t *text, uint64_t stamp, ngx_pool_t *pool);
static void ngx_http_mcp_update_record(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_str_t *id, ngx_str_t *uri, ngx_mcp_event_t *event);
static void ngx_http_mcp_update_timeout(ngx_event_t *ev);
static void ngx_http_mcp_update_log_single(ngx_http_mcp_upstream_t *u,
    ngx_str_t *id, ngx_str_t *uri);


ngx_str_t
ngx_http_mcp_upstream_message_uri(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_pool_t *pool)
{
    ngx_str_t  raw, uri;

    raw = ngx_mcp_json_span(ureq->x->scan, NGX_MCP_PATH_URI, text->data);

    (void) ngx_mcp_json_text(pool, &raw, &uri);

    return uri;
}


const char *
ngx_http_mcp_upstream_message_fault(ngx_mcp_json_t *json, ngx_str_t *text)
{
    ngx_str_t         raw;
    ngx_mcp_span_t   *result, *error;
    static ngx_str_t  version = ngx_string("\"2.0\"");

    result = &json->members[NGX_MCP_PATH_RESULT];
    error = &json->members[NGX_MCP_PATH_ERROR];

    if (result->type != NGX_MCP_JSON_OBJECT
        && error->type != NGX_MCP_JSON_OBJECT)
    {
        return "neither result nor error; a response has one of them, which is "
               "an object";
    }

    if (result->type != NGX_MCP_JSON_ABSENT
        && error->type != NGX_MCP_JSON_ABSENT)
    {
        return "both result and error; clients accept only one of them";
    }

    raw = version;

    if (text) {
        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_JSONRPC, text->data);
    }

    if (!ngx_mcp_equal(&raw, &version)
        || json->members[NGX_MCP_PATH_JSONRPC].type != NGX_MCP_JSON_STRING)
    {
        return "no \"jsonrpc\":\"2.0\", without which clients do not accept "
               "it; add this member";
    }

    if (error->type != NGX_MCP_JSON_ABSENT
        && !ngx_mcp_error_valid(json, text))
    {
        return "an error without an integer \"code\" and a string "
               "\"message\"; add both to it";
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_initialize_answer(ngx_http_mcp_exchange_t *x, ngx_str_t *text,
    ngx_str_t *id, ngx_str_t *result, ngx_uint_t *revision)
{
    ngx_str_t        got, version;
    ngx_mcp_json_t  *json;

    json = x->scan;

    got = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (json->members[NGX_MCP_PATH_RESULT].type != NGX_MCP_JSON_OBJECT
        || !ngx_mcp_json_same_id(&got, id))
    {
        return NGX_DECLINED;
    }

    version = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_VERSION, text->data);

    if (version.len > 2) {
        version.data++;
        version.len -= 2;
    }

    *revision = ngx_mcp_revision_parse(&version);
    *result = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT, text->data);

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_upstream_message_newer(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_int_t  code;
    ngx_str_t  raw;

    raw = ngx_mcp_json_span(x->scan, NGX_MCP_PATH_ERROR_CODE, text->data);
    code = ngx_mcp_error_code(&raw);

    return x->status == NGX_HTTP_BAD_REQUEST
           && (code == NGX_MCP_HEADER_MISMATCH
               || code == NGX_MCP_UNSUPPORTED_VERSION);
}


ngx_uint_t
ngx_http_mcp_upstream_message_duplicate(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_str_t *text)
{
    ngx_uint_t                method;
    ngx_mcp_list_change_t    *change;
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;
    method = ngx_mcp_method_of(ureq->x->scan, text);
    change = ngx_mcp_list_change(method);

    if (change) {

        /* the shared upstream session, if there is one, is notified, too */

        if (ngx_mcp_list_signal_session(u->zone, caller->session, &u->name,
                                        change->kinds, !u->listen))
        {
            return 1;
        }

        ngx_mcp_list_forget(u->zone, &u->endpoint, &caller->tenant, &u->name,
                            change->kinds);

        return 0;
    }

    if (method == NGX_MCP_METHOD_RESOURCES_UPDATED) {
        return ngx_http_mcp_update_duplicate(ureq, caller, text);
    }

    return 0;
}


void
ngx_http_mcp_upstream_message_record(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_str_t *text, ngx_mcp_event_t *event)
{
    ngx_str_t    uri;
    ngx_pool_t  *pool;

    if (ngx_mcp_method_of(ureq->x->scan, text)
        != NGX_MCP_METHOD_RESOURCES_UPDATED)
    {
        return;
    }

    /* the request's own pool may have to last for days */

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    uri = ngx_http_mcp_upstream_message_uri(ureq, text, pool);

    if (uri.len) {
        ngx_http_mcp_update_record(ureq->upstream, &caller->tenant,
                                   &caller->session_id, &uri, event);
    }

    ngx_destroy_pool(pool);
}



/*
 * If it is not known yet whether the shared upstream session receives the same
 * update, the update is deferred until this is known, and then sent to the
 * session or dropped.  Equal updates are joined until then.
 */

static ngx_uint_t
ngx_http_mcp_update_duplicate(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_str_t *text)
{
    uint64_t     stamp;
    ngx_int_t    rc;
    ngx_str_t    uri;
    ngx_pool_t  *pool;

    /* the request's own pool may have to last for days */

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return 0;
    }

    uri = ngx_http_mcp_upstream_message_uri(ureq, text, pool);

    /* a worker that quits does not defer the update */

    stamp = 0;

    rc = ngx_mcp_interest_pair(ureq->upstream->zone, caller->session,
                               &ureq->upstream->name, &uri, 1, ngx_exiting,
                               &stamp);

    if (rc == NGX_AGAIN) {
        rc = ngx_http_mcp_update_defer(ureq, caller, &uri, text, stamp, pool);

        if (rc == NGX_AGAIN) {
            return 1;
        }
    }

    ngx_destroy_pool(pool);

    return rc == NGX_OK;
}


/*
 * Defers an update.  NGX_AGAIN: the update is stored in this pool; NGX_OK: it
 * was joined to an equal one; NGX_ERROR: no memory.  In the latter two cases
 * the caller destroys the pool.
 */

static ngx_int_t
ngx_http_mcp_update_defer(ngx_http_mcp_upstream_request_t *ureq,
    ngx_mcp_caller_t *caller, ngx_str_t *uri, ngx_str_t *text, uint64_t stamp,
    ngx_pool_t *pool)
{
    ngx_queue_t            *q, *bucket;
    ngx_http_mcp_update_t  *update;

    bucket = ngx_mcp_ctx_queues(ureq->upstream->zone, NGX_MCP_CTX_UPDATES,
                                NGX_HTTP_MCP_UPDATE_BUCKETS);
    if (bucket == NULL) {
        return NGX_ERROR;
    }

    bucket += caller->session.block % NGX_HTTP_MCP_UPDATE_BUCKETS;

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        update = ngx_queue_data(q, ngx_http_mcp_update_t, queue);

        if (update->session.block == caller->session.block
            && update->session.gen == caller->session.gen
            && update->stamp == stamp
            && update->upstream == ureq->upstream
            && ngx_mcp_equal(&update->uri, uri))
        {
            update->count++;
            return NGX_OK;
        }
    }

    update = ngx_pcalloc(pool, sizeof(ngx_http_mcp_update_t));
    if (update == NULL) {
        return NGX_ERROR;
    }

    update->pool = pool;
    update->upstream = ureq->upstream;
    update->session = caller->session;
    update->uri = *uri;
    update->count = 1;
    update->stamp = stamp;

    if (ngx_http_mcp_string_copy(pool, &update->id, &caller->session_id)
        != NGX_OK
        || ngx_http_mcp_string_copy(pool, &update->tenant, &ureq->tenant)
           != NGX_OK
        || ngx_http_mcp_string_copy(pool, &update->text, text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    update->timer.handler = ngx_http_mcp_update_timeout;
    update->timer.data = update;
    update->timer.log = ngx_cycle->log;
    update->timer.cancelable = 1;

    ngx_queue_insert_tail(bucket, &update->queue);
    ngx_add_timer(&update->timer, NGX_MCP_INTEREST_PAIR);

    return NGX_AGAIN;
}


static void
ngx_http_mcp_update_timeout(ngx_event_t *ev)
{
    ngx_int_t                 rc;
    ngx_mcp_event_t           event;
    ngx_http_mcp_update_t    *update;
    ngx_http_mcp_upstream_t  *u;

    update = ev->data;
    u = update->upstream;

    ngx_queue_remove(&update->queue);

    rc = ngx_mcp_interest_pair(u->zone, update->session, &u->name,
                               &update->uri, update->count, 1, &update->stamp);

    if (rc == NGX_ABORT) {
        ngx_http_mcp_update_log_single(u, &update->id, &update->uri);
    }

    if (rc != NGX_OK) {
        ngx_memzero(&event, sizeof(ngx_mcp_event_t));

        event.parts = &update->text;
        event.nparts = 1;

        ngx_mcp_count(u->zone, NGX_MCP_COUNTER_EVENTS_UPSTREAM, 1);

        (void) ngx_mcp_log_session(u->zone, update->session, &event);

        ngx_http_mcp_update_record(u, &update->tenant, &update->id,
                                   &update->uri, &event);
    }

    ngx_destroy_pool(update->pool);
}


/* records the update for calls of the session with this id */

static void
ngx_http_mcp_update_record(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_str_t *id, ngx_str_t *uri, ngx_mcp_event_t *event)
{
    ngx_mcp_topic_t  topic;

    ngx_memzero(&topic, sizeof(ngx_mcp_topic_t));

    topic.uri = *uri;
    topic.other = 1;

    (void) ngx_mcp_topic_add(u->zone, &u->endpoint, tenant, &topic, event, id);
}


static void
ngx_http_mcp_update_log_single(ngx_http_mcp_upstream_t *u, ngx_str_t *id,
    ngx_str_t *uri)
{
    if (u->worker->single_logged) {
        return;
    }

    u->worker->single_logged = 1;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" notified one "
                  "session (%V) of an update of \"%V\", and not all sessions "
                  "that subscribed: clients that hold a GET stream receive "
                  "the update, the first one 2 s late; if the upstream always "
                  "does so, set \"listen=off\" of \"mcp_upstream\" to save "
                  "the shared subscriptions",
                  &u->name, &u->endpoint, id, uri);
}


void
ngx_http_mcp_upstream_message_quit(ngx_mcp_zone_t *zone)
{
    ngx_uint_t              i;
    ngx_queue_t            *q, *buckets;
    ngx_http_mcp_update_t  *update;

    buckets = zone->ctx[NGX_MCP_CTX_UPDATES];

    for (i = 0; buckets && i < NGX_HTTP_MCP_UPDATE_BUCKETS; i++) {

        while (!ngx_queue_empty(&buckets[i])) {
            q = ngx_queue_head(&buckets[i]);
            update = ngx_queue_data(q, ngx_http_mcp_update_t, queue);

            ngx_del_timer(&update->timer);
            ngx_http_mcp_update_timeout(&update->timer);
        }
    }
}
