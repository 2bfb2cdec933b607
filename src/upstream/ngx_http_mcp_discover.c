
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_failure.h"


/* ms; for the end of a session at an upstream */
#define NGX_HTTP_MCP_PATIENCE    5000


/* one finding out, under way in this worker; lives in the pool it uses */

typedef struct {
    ngx_queue_t               queue;        /* of those in this worker */
    ngx_http_mcp_upstream_t  *upstream;
    ngx_http_mcp_exchange_t  *x;            /* under way */
    ngx_pool_t               *pool;
    ngx_str_t                 key;
    ngx_str_t                 tenant;
    ngx_str_t                 session;      /* $mcp_session_id */
    u_char                    session_buf[NGX_MCP_UUID_LEN];
    ngx_mcp_knowledge_t       known;
    ngx_uint_t                probe;
    ngx_uint_t                present;      /* bits by probe */
    ngx_msec_t                end;          /* by then all is known */
    ngx_str_t                 wrong;        /* with the last answer */
    ngx_http_mcp_failure_t    failure;      /* the first "absent" */
    unsigned                  answered:1;
    unsigned                  absent:1;
    unsigned                  given_up:1;   /* for others to ask */
} ngx_http_mcp_ask_t;


static ngx_int_t ngx_http_mcp_discover_key(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_pool_t *pool, ngx_str_t *key);
static ngx_http_mcp_learned_t *ngx_http_mcp_discover_slot(
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant);
static void ngx_http_mcp_discover_learn(ngx_http_mcp_upstream_t *u,
    ngx_str_t *tenant, ngx_uint_t what);
static ngx_int_t ngx_http_mcp_ask(ngx_http_mcp_upstream_t *u, ngx_str_t *key,
    ngx_str_t *tenant);
static ngx_int_t ngx_http_mcp_ask_send(ngx_http_mcp_ask_t *ask,
    ngx_str_t *method, ngx_str_t *params);
static void ngx_http_mcp_ask_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_ask_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static ngx_uint_t ngx_http_mcp_ask_absent(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_ask_initialized(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_ask_probed(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_ask_nothing(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_failure_t *failure);
static ngx_int_t ngx_http_mcp_ask_probe(ngx_http_mcp_ask_t *ask);
static ngx_int_t ngx_http_mcp_ask_capabilities(ngx_http_mcp_ask_t *ask);
static void ngx_http_mcp_ask_put(ngx_http_mcp_ask_t *ask, ngx_uint_t what);
static void ngx_http_mcp_ask_end(ngx_http_mcp_ask_t *ask);
static void ngx_http_mcp_farewell_cleanup(void *data);
static void ngx_http_mcp_farewell_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_ask_handlers = {
    NULL,
    ngx_http_mcp_ask_message,
    NULL,
    ngx_http_mcp_ask_done
};

static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_farewell_handlers = {
    NULL,
    NULL,
    NULL,
    ngx_http_mcp_farewell_done
};


/* in the order in which an rpc upstream is probed for them */

static struct {
    ngx_str_t   method;
    ngx_str_t   capability;
} ngx_http_mcp_probes[] = {
    { ngx_string("tools/list"), ngx_string("tools") },
    { ngx_string("prompts/list"), ngx_string("prompts") },
    { ngx_string("resources/list"), ngx_string("resources") },
    { ngx_null_string, ngx_null_string }
};


static ngx_queue_t  ngx_http_mcp_waiters;
static ngx_queue_t  ngx_http_mcp_asks;

static ngx_http_mcp_scope_t  ngx_http_mcp_farewell_scope;

static ngx_str_t  ngx_http_mcp_ask_id = ngx_string("\"nginx-mcp\"");
static ngx_str_t  ngx_http_mcp_ask_initialize = ngx_string("initialize");
static ngx_str_t  ngx_http_mcp_ask_all = ngx_string("initialize or any list");
static ngx_str_t  ngx_http_mcp_ask_lists = ngx_string("any list");


ngx_int_t
ngx_http_mcp_discover(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_msec_t max_age, ngx_pool_t *pool, ngx_mcp_knowledge_t *known,
    ngx_http_mcp_waiter_t *waiter)
{
    ngx_int_t  rc;
    ngx_str_t  key;

    if (ngx_http_mcp_discover_key(u, tenant, pool, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_knowledge_get(u->zone, &key, u->epoch, max_age, pool, known);

    if (rc == NGX_DECLINED) {

        if (ngx_http_mcp_ask(u, &key, tenant) != NGX_OK) {
            ngx_mcp_knowledge_give_up(u->zone, &key);
            return NGX_ERROR;
        }

        rc = NGX_AGAIN;
    }

    if (rc == NGX_AGAIN && waiter->queue.next == NULL) {

        if (ngx_http_mcp_waiters.next == NULL) {
            ngx_queue_init(&ngx_http_mcp_waiters);
        }

        waiter->zone = u->zone;
        ngx_queue_insert_tail(&ngx_http_mcp_waiters, &waiter->queue);
    }

    if (rc == NGX_OK && known->what != NGX_MCP_KNOWN_NOTHING) {
        ngx_http_mcp_discover_learn(u, tenant, known->what);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_discover_key(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
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


ngx_uint_t
ngx_http_mcp_discovered(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_http_mcp_learned_t  *slot;

    slot = ngx_http_mcp_discover_slot(u, tenant);

    if (slot->len != tenant->len
        || ngx_memcmp(slot->tenant, tenant->data, tenant->len) != 0)
    {
        return NGX_MCP_KNOWN_NOTHING;
    }

    return slot->what;
}


static ngx_http_mcp_learned_t *
ngx_http_mcp_discover_slot(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    return &u->learned[ngx_crc32_short(tenant->data, tenant->len)
                       % NGX_HTTP_MCP_LEARNED];
}


static void
ngx_http_mcp_discover_learn(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t what)
{
    ngx_http_mcp_learned_t  *slot;

    if (tenant->len > NGX_HTTP_MCP_LEARNED_TENANT) {
        return;
    }

    slot = ngx_http_mcp_discover_slot(u, tenant);

    slot->what = what;
    slot->len = tenant->len;
    ngx_memcpy(slot->tenant, tenant->data, tenant->len);
}


void
ngx_http_mcp_discover_stale(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool)
{
    ngx_str_t  key;

    if (ngx_http_mcp_discover_key(u, tenant, pool, &key) == NGX_OK) {
        ngx_mcp_knowledge_stale(u->zone, &key);
    }
}


void
ngx_http_mcp_discover_again(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_pool_t *pool)
{
    ngx_str_t  key;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" may have changed, "
                  "what it is will be found out again", &u->name,
                  &u->endpoint);

    ngx_http_mcp_discover_learn(u, tenant, NGX_MCP_KNOWN_NOTHING);

    if (ngx_http_mcp_discover_key(u, tenant, pool, &key) == NGX_OK) {
        ngx_mcp_knowledge_doubt(u->zone, &key);
    }
}


void
ngx_http_mcp_discover_forget(ngx_http_mcp_waiter_t *waiter)
{
    if (waiter->queue.next) {
        ngx_queue_remove(&waiter->queue);
        waiter->queue.next = NULL;
    }
}


void
ngx_http_mcp_discover_doorbell(ngx_mcp_zone_t *zone)
{
    ngx_queue_t            *q, woken;
    ngx_http_mcp_waiter_t  *waiter;

    if (ngx_http_mcp_waiters.next == NULL) {
        return;
    }

    /* who waits again is not woken again in this turn */

    ngx_queue_init(&woken);

    q = ngx_queue_head(&ngx_http_mcp_waiters);

    while (q != ngx_queue_sentinel(&ngx_http_mcp_waiters)) {

        waiter = ngx_queue_data(q, ngx_http_mcp_waiter_t, queue);
        q = ngx_queue_next(q);

        if (waiter->zone == zone) {
            ngx_queue_remove(&waiter->queue);
            ngx_queue_insert_tail(&woken, &waiter->queue);
        }
    }

    while (!ngx_queue_empty(&woken)) {
        q = ngx_queue_head(&woken);
        waiter = ngx_queue_data(q, ngx_http_mcp_waiter_t, queue);

        ngx_queue_remove(q);
        q->next = NULL;

        waiter->ready(waiter->data);
    }
}


/*
 * The worker was told to quit: what no request of its own waits for is left to
 * others, who ask again.
 */

void
ngx_http_mcp_discover_quit(ngx_mcp_zone_t *zone)
{
    ngx_queue_t            *q;
    ngx_http_mcp_ask_t     *ask;
    ngx_http_mcp_waiter_t  *waiter;

    if (ngx_http_mcp_asks.next == NULL) {
        return;
    }

    if (ngx_http_mcp_waiters.next) {

        for (q = ngx_queue_head(&ngx_http_mcp_waiters);
             q != ngx_queue_sentinel(&ngx_http_mcp_waiters);
             q = ngx_queue_next(q))
        {
            waiter = ngx_queue_data(q, ngx_http_mcp_waiter_t, queue);

            if (waiter->zone == zone) {
                return;
            }
        }
    }

    for (q = ngx_queue_head(&ngx_http_mcp_asks);
         q != ngx_queue_sentinel(&ngx_http_mcp_asks);
         q = ngx_queue_next(q))
    {
        ask = ngx_queue_data(q, ngx_http_mcp_ask_t, queue);

        if (ask->upstream->zone == zone) {
            ask->given_up = 1;
            ngx_http_mcp_exchange_abort(ask->x);
        }
    }
}


static ngx_int_t
ngx_http_mcp_ask(ngx_http_mcp_upstream_t *u, ngx_str_t *key, ngx_str_t *tenant)
{
    ngx_str_t            none;
    ngx_pool_t          *pool;
    ngx_http_mcp_ask_t  *ask;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ask = ngx_pcalloc(pool, sizeof(ngx_http_mcp_ask_t));
    if (ask == NULL) {
        goto failed;
    }

    ask->upstream = u;
    ask->pool = pool;
    ask->key.len = key->len;
    ask->key.data = ngx_pstrdup(pool, key);
    ask->tenant.len = tenant->len;
    ask->tenant.data = ngx_pstrdup(pool, tenant);

    if (ask->key.data == NULL || ask->tenant.data == NULL) {
        goto failed;
    }

    ngx_str_set(&none, "");

    ngx_http_mcp_stable_id(u, tenant, &none, ask->session_buf);

    ask->session.data = ask->session_buf;
    ask->session.len = NGX_MCP_UUID_LEN;

    ask->end = ngx_current_msec + NGX_HTTP_MCP_INITIALIZE_TIME;

    if (ngx_http_mcp_asks.next == NULL) {
        ngx_queue_init(&ngx_http_mcp_asks);
    }

    ngx_queue_insert_tail(&ngx_http_mcp_asks, &ask->queue);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp finds out about upstream \"%V\"", &u->name);

    if (u->protocol == NGX_HTTP_MCP_RPC) {

        if (ngx_http_mcp_ask_probe(ask) != NGX_OK) {
            goto failed;
        }

    } else {
        if (ngx_http_mcp_ask_send(ask, &ngx_http_mcp_ask_initialize,
                                  &ngx_http_mcp_own_initialize)
            != NGX_OK)
        {
            goto failed;
        }
    }

    return NGX_OK;

failed:

    if (ask && ask->queue.next) {
        ngx_queue_remove(&ask->queue);
    }

    ngx_destroy_pool(pool);

    return NGX_ERROR;
}


void
ngx_http_mcp_initialize_within(ngx_http_mcp_exchange_t *x, ngx_msec_t time)
{
    if (x->timeout == 0 || x->timeout > time) {
        x->timeout = time;
    }

    if (x->total == 0 || x->total > time) {
        x->total = time;
    }
}


/* each attempt has a request of its own: $mcp_method differs */

static ngx_int_t
ngx_http_mcp_ask_send(ngx_http_mcp_ask_t *ask, ngx_str_t *method,
    ngx_str_t *params)
{
    u_char                   *p;
    ngx_str_t                 body;
    ngx_msec_int_t            left;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = ask->tenant;
    audience.session = ask->session;

    r = ngx_http_mcp_background_for(ask->upstream->conf_ctx, &audience);
    if (r == NULL) {
        return NGX_ERROR;
    }

    /* clients wait for it, in this worker and in others */

    ngx_http_mcp_background_stay(r);

    body.data = ngx_pnalloc(r->pool, 128 + params->len);
    if (body.data == NULL) {
        goto failed;
    }

    p = ngx_sprintf(body.data, "{\"jsonrpc\":\"2.0\",\"id\":%V,"
                    "\"method\":\"%V\",\"params\":%V}",
                    &ngx_http_mcp_ask_id, method, params);
    body.len = p - body.data;

    scope = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_scope_t));
    if (scope == NULL) {
        goto failed;
    }

    scope->method = *method;
    scope->request_id = ngx_http_mcp_ask_id;

    x = ngx_http_mcp_upstream_exchange(r, ask->upstream, scope);
    if (x == NULL || ngx_http_mcp_upstream_body(x, &body) != NGX_OK) {
        goto failed;
    }

    x->sample.data = ngx_pnalloc(r->pool, NGX_HTTP_MCP_SAMPLE);
    if (x->sample.data == NULL) {
        goto failed;
    }

    x->data = ask;
    x->handlers = &ngx_http_mcp_ask_handlers;
    x->level = NGX_LOG_INFO;

    /* one line says what failed, in ngx_http_mcp_ask_nothing() */

    left = (ngx_msec_int_t) (ask->end - ngx_current_msec);
    left = ngx_max(left, 1);

    ngx_http_mcp_initialize_within(x, (ngx_msec_t) left);

    ask->x = x;
    ask->answered = 0;
    ask->absent = 0;
    ngx_str_null(&ask->wrong);

    if (ngx_http_mcp_exchange_start(x) != NGX_OK) {
        goto failed;
    }

    c = r->connection;
    ngx_http_run_posted_requests(c);

    return NGX_OK;

failed:

    ngx_http_mcp_background_close(r);

    return NGX_ERROR;
}


static void
ngx_http_mcp_ask_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t            id, code, version, result;
    ngx_mcp_json_t      *json;
    ngx_http_mcp_ask_t  *ask;

    ask = x->data;
    json = &x->scan;

    code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

    if (code.len == 6 && ngx_strncmp(code.data, "-32601", 6) == 0) {
        ask->absent = 1;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (json->members[NGX_MCP_PATH_RESULT].type != NGX_MCP_JSON_OBJECT
        || !ngx_mcp_json_same_id(&id, &ngx_http_mcp_ask_id))
    {
        ask->wrong = ngx_http_mcp_failure_answer(x, text, &ngx_http_mcp_ask_id,
                                                 ask->pool);

        if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
            ngx_http_mcp_exchange_answered(x);
        }

        return;
    }

    ask->answered = 1;
    ngx_http_mcp_exchange_answered(x);

    if (ask->known.what == NGX_MCP_KNOWN_RPC) {
        return;
    }

    result = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT, text->data);

    ask->known.result.len = result.len;
    ask->known.result.data = ngx_pstrdup(ask->pool, &result);

    if (ask->known.result.data == NULL) {
        ask->answered = 0;
        return;
    }

    version = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_VERSION, text->data);

    if (version.len > 2) {
        version.data++;
        version.len -= 2;
    }

    ask->known.revision = ngx_mcp_revision_parse(&version);
}


static void
ngx_http_mcp_ask_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_request_t  *r;
    ngx_http_mcp_ask_t  *ask;

    ask = x->data;
    r = x->r;

    if (ask->given_up && outcome == NGX_HTTP_MCP_ABORTED) {
        ngx_mcp_knowledge_give_up(ask->upstream->zone, &ask->key);
        ngx_http_mcp_ask_end(ask);

    } else if (ask->known.what == NGX_MCP_KNOWN_RPC
               || ask->upstream->protocol == NGX_HTTP_MCP_RPC)
    {
        ngx_http_mcp_ask_probed(ask, x, outcome);

    } else {
        ngx_http_mcp_ask_initialized(ask, x, outcome);
    }

    ngx_http_mcp_background_close(r);
}


/* whether the upstream says that it lacks the method */

static ngx_uint_t
ngx_http_mcp_ask_absent(ngx_http_mcp_ask_t *ask, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    return ask->absent || (outcome == NGX_HTTP_MCP_STATUS
                           && ngx_http_mcp_status_absent(x->status));
}


static void
ngx_http_mcp_ask_initialized(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_upstream_t  *u;

    u = ask->upstream;

    if (ask->answered) {

        if (x->session.len) {
            ngx_http_mcp_farewell(u, NULL, &ask->tenant, &ask->session,
                                  &x->session, ask->known.revision);
        }

        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_LEGACY);

        return;
    }

    if (x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN) {
        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_REFUSED);
        return;
    }

    if (ngx_http_mcp_failure(x, outcome, &ask->wrong, ask->pool, &failure)
        != NGX_OK)
    {
        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
        return;
    }

    if (u->protocol == NGX_HTTP_MCP_AUTO
        && ngx_http_mcp_ask_absent(ask, x, outcome))
    {
        ask->failure = failure;
        ask->known.what = NGX_MCP_KNOWN_RPC;

        if (ngx_http_mcp_ask_probe(ask) == NGX_OK) {
            return;
        }
    }

    ngx_http_mcp_ask_nothing(ask, x, &failure);
}


/* a list has been asked for */

static void
ngx_http_mcp_ask_probed(ngx_http_mcp_ask_t *ask, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_upstream_t  *u;

    u = ask->upstream;

    if (ask->answered) {
        ask->present |= 1 << ask->probe;

    } else {

        if (ngx_http_mcp_failure(x, outcome, &ask->wrong, ask->pool, &failure)
            != NGX_OK)
        {
            ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
            return;
        }

        if (!ngx_http_mcp_ask_absent(ask, x, outcome)) {
            ngx_http_mcp_ask_nothing(ask, x, &failure);
            return;
        }

        if (ask->failure.why.len == 0 && !ask->absent) {
            ask->failure = failure;
        }
    }

    if (ngx_http_mcp_probes[++ask->probe].method.len) {

        if (ngx_http_mcp_ask_probe(ask) != NGX_OK) {
            ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
        }

        return;
    }

    if (ask->present == 0 && ask->failure.why.len) {

        if (u->protocol == NGX_HTTP_MCP_AUTO) {
            ngx_http_mcp_ask_nothing(ask, x, &ask->failure);
            return;
        }

        /* it may well be meant to have none */

        ngx_http_mcp_failure_log(x, NGX_LOG_ERR, u, &ngx_http_mcp_ask_lists,
                                 &ask->failure);
    }

    if (ngx_http_mcp_ask_capabilities(ask) != NGX_OK) {
        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
        return;
    }

    ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_RPC);
}


/* it did not become known */

static void
ngx_http_mcp_ask_nothing(ngx_http_mcp_ask_t *ask, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_failure_t *failure)
{
    ngx_str_t                *method;
    ngx_uint_t                absent;
    ngx_http_mcp_upstream_t  *u;

    u = ask->upstream;

    /* neither initialize nor a list, or what was asked for last */

    absent = (failure == &ask->failure);

    if (absent) {
        method = &ngx_http_mcp_ask_all;

    } else if (ask->known.what == NGX_MCP_KNOWN_RPC
               || u->protocol == NGX_HTTP_MCP_RPC)
    {
        method = &ngx_http_mcp_probes[ask->probe].method;

    } else {
        method = &ngx_http_mcp_ask_initialize;
    }

    ngx_http_mcp_failure_log(x, NGX_LOG_ERR, u, method, failure);

    if (absent
        && ngx_mcp_knowledge_keep(u->zone, &ask->key, u->epoch) == NGX_OK)
    {
        ngx_http_mcp_ask_end(ask);
        return;
    }

    ask->known.status = failure->status;
    ask->known.why = failure->why;

    ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
}


ngx_uint_t
ngx_http_mcp_status_absent(ngx_uint_t status)
{
    return status == NGX_HTTP_NOT_FOUND || status == NGX_HTTP_NOT_ALLOWED
           || status == NGX_HTTP_NOT_IMPLEMENTED;
}


/* asks for the next list */

static ngx_int_t
ngx_http_mcp_ask_probe(ngx_http_mcp_ask_t *ask)
{
    ngx_str_t  params;

    ngx_str_set(&params, "{}");

    return ngx_http_mcp_ask_send(ask, &ngx_http_mcp_probes[ask->probe].method,
                                 &params);
}


static ngx_int_t
ngx_http_mcp_ask_capabilities(ngx_http_mcp_ask_t *ask)
{
    u_char      *p;
    ngx_uint_t   i;

    p = ngx_pnalloc(ask->pool, 128);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ask->known.result.data = p;

    p = ngx_sprintf(p, "{\"capabilities\":{");

    for (i = 0; ngx_http_mcp_probes[i].method.len; i++) {

        if (ask->present & (1 << i)) {
            p = ngx_sprintf(p, "%s\"%V\":{}", p[-1] == '{' ? "" : ",",
                            &ngx_http_mcp_probes[i].capability);
        }
    }

    *p++ = '}';
    *p++ = '}';

    ask->known.result.len = p - ask->known.result.data;

    return NGX_OK;
}


static void
ngx_http_mcp_ask_put(ngx_http_mcp_ask_t *ask, ngx_uint_t what)
{
    ngx_mcp_zone_t  *zone;

    zone = ask->upstream->zone;

    ask->known.what = what;

    if (what == NGX_MCP_KNOWN_NOTHING || what == NGX_MCP_KNOWN_REFUSED) {
        ngx_str_null(&ask->known.result);
    }

    (void) ngx_mcp_knowledge_put(zone, &ask->key, ask->upstream->epoch,
                                 &ask->known);

    ngx_http_mcp_ask_end(ask);
}


static void
ngx_http_mcp_ask_end(ngx_http_mcp_ask_t *ask)
{
    ngx_mcp_zone_t  *zone;

    zone = ask->upstream->zone;

    ngx_queue_remove(&ask->queue);
    ngx_destroy_pool(ask->pool);

    ngx_http_mcp_discover_doorbell(zone);
}


void
ngx_http_mcp_farewell(ngx_http_mcp_upstream_t *u, ngx_http_request_t *from,
    ngx_str_t *tenant, ngx_str_t *session, ngx_str_t *id, ngx_uint_t revision)
{
    ngx_connection_t         *c;
    ngx_http_cleanup_t       *cln;
    ngx_http_request_t       *r;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    if (id->len == 0) {
        return;
    }

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = *tenant;
    audience.session = *session;

    r = ngx_http_mcp_background_for(u->conf_ctx, &audience);
    if (r == NULL) {
        return;
    }

    ngx_http_mcp_background_stay(r);

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        ngx_http_mcp_background_close(r);
        return;
    }

    cln->handler = ngx_http_mcp_farewell_cleanup;
    cln->data = u->zone;

    ngx_mcp_farewell_begin(u->zone);

    if (from
        && ngx_http_mcp_background_headers(&r->headers_in, r->pool,
                                           &from->headers_in)
           != NGX_OK)
    {
        ngx_http_mcp_background_close(r);
        return;
    }

    x = ngx_http_mcp_upstream_exchange(r, u, &ngx_http_mcp_farewell_scope);
    if (x == NULL) {
        ngx_http_mcp_background_close(r);
        return;
    }

    x->client_headers = from ? 1 : 0;

    x->handlers = &ngx_http_mcp_farewell_handlers;
    x->method = NGX_HTTP_DELETE;
    x->timeout = NGX_HTTP_MCP_PATIENCE;
    x->total = NGX_HTTP_MCP_PATIENCE;
    x->session_id.len = id->len;
    x->session_id.data = ngx_pstrdup(r->pool, id);

    if (revision >= NGX_MCP_2025_06_18) {
        x->protocol_version = *ngx_mcp_revision_name(revision);
    }

    if (x->session_id.data == NULL || ngx_http_mcp_exchange_start(x) != NGX_OK)
    {
        ngx_http_mcp_background_close(r);
        return;
    }

    c = r->connection;
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_farewell_cleanup(void *data)
{
    ngx_mcp_farewell_end(data);
}


static void
ngx_http_mcp_farewell_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(x->r);
}
