
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_discover.h"
#include "ngx_http_mcp_failure.h"
#include "ngx_http_mcp_legacy.h"


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
    ngx_uint_t                kind;         /* that it is asked as now */
    ngx_uint_t                probe;        /* the list, of the kind rpc */
    ngx_uint_t                present;      /* bits by probe */
    ngx_msec_t                end;          /* by then all is known */
    ngx_str_t                 wrong;        /* with the last answer */
    ngx_http_mcp_failure_t    failure;      /* the first "absent" */
    unsigned                  answered:1;
    unsigned                  absent:1;
    unsigned                  error:1;      /* a JSON-RPC one */
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


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_ask_handlers = {
    NULL,
    ngx_http_mcp_ask_message,
    NULL,
    ngx_http_mcp_ask_done
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


static ngx_queue_t  ngx_http_mcp_asks;

static ngx_str_t  ngx_http_mcp_ask_initialize = ngx_string("initialize");
static ngx_str_t  ngx_http_mcp_ask_all = ngx_string("initialize or any list");
static ngx_str_t  ngx_http_mcp_ask_lists = ngx_string("any list");


ngx_int_t
ngx_http_mcp_discover(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_msec_t max_age, ngx_pool_t *pool, ngx_mcp_knowledge_t *known)
{
    ngx_int_t  rc;
    ngx_str_t  key;

    if (!u->probe) {
        known->what = NGX_MCP_KNOWN_REFUSED;
        return NGX_OK;
    }

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
    return &u->worker->learned[ngx_crc32_short(tenant->data, tenant->len)
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

    if (!u->probe) {
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" may have changed; "
                  "the module detects its protocol and capabilities again",
                  &u->name, &u->endpoint);

    ngx_http_mcp_discover_learn(u, tenant, NGX_MCP_KNOWN_NOTHING);

    if (ngx_http_mcp_discover_key(u, tenant, pool, &key) == NGX_OK) {
        ngx_mcp_knowledge_doubt(u->zone, &key);
    }
}


void
ngx_http_mcp_discover_doorbell(ngx_mcp_zone_t *zone)
{
    ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_PROFILE, 0);
}


/*
 * The worker was told to quit: what no request of its own waits for is left to
 * others, who ask again.
 */

void
ngx_http_mcp_discover_quit(ngx_mcp_zone_t *zone)
{
    ngx_queue_t         *q;
    ngx_http_mcp_ask_t  *ask;

    if (ngx_http_mcp_asks.next == NULL
        || ngx_http_mcp_waiter_any(zone, NGX_HTTP_MCP_WAIT_PROFILE))
    {
        return;
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
        ask->kind = NGX_MCP_KNOWN_RPC;

        if (ngx_http_mcp_ask_probe(ask) != NGX_OK) {
            goto failed;
        }

    } else {
        ask->kind = NGX_MCP_KNOWN_LEGACY;

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


/* each attempt has a request of its own: $mcp_method differs */

static ngx_int_t
ngx_http_mcp_ask_send(ngx_http_mcp_ask_t *ask, ngx_str_t *method,
    ngx_str_t *params)
{
    ngx_str_t                 body;
    ngx_msec_int_t            left;
    ngx_http_mcp_scope_t      scope;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    ngx_memzero(&scope, sizeof(ngx_http_mcp_scope_t));
    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    scope.method = *method;
    scope.request_id = ngx_http_mcp_own_id;

    audience.tenant = ask->tenant;
    audience.session = ask->session;

    x = ngx_http_mcp_background_exchange(ask->upstream, &audience, NULL,
                                         &scope);
    if (x == NULL) {
        return NGX_ERROR;
    }

    /* clients wait for it, in this worker and in others */

    ngx_http_mcp_background_stay(x->r);

    body = ngx_mcp_request_compose(x->r->pool, &ngx_http_mcp_own_id, method,
                                   params);

    x->sample.data = ngx_pnalloc(x->r->pool, NGX_HTTP_MCP_SAMPLE);
    if (x->sample.data == NULL) {
        ngx_http_mcp_background_close(x->r);
        return NGX_ERROR;
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
    ask->error = 0;
    ngx_str_null(&ask->wrong);

    return ngx_http_mcp_background_send(x, &body);
}


static void
ngx_http_mcp_ask_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_str_t            code, result;
    ngx_uint_t           revision;
    ngx_mcp_json_t      *json;
    ngx_http_mcp_ask_t  *ask;

    ask = x->data;
    json = &x->scan;

    if (ask->answered) {
        return;
    }

    code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

    if (code.len == 6 && ngx_strncmp(code.data, "-32601", 6) == 0) {
        ask->absent = 1;
    }

    if (ngx_http_mcp_initialize_answer(x, text, &ngx_http_mcp_own_id, &result,
                                       &revision)
        != NGX_OK)
    {
        /* the first is kept: there may be any number of them */

        if (ask->wrong.data == NULL) {
            ask->wrong = ngx_http_mcp_failure_answer(x, text,
                                                     &ngx_http_mcp_own_id,
                                                     ask->pool);
        }

        if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
            ask->error = 1;
            ngx_http_mcp_exchange_answered(x);
        }

        return;
    }

    ask->answered = 1;
    ngx_http_mcp_exchange_answered(x);

    if (ask->kind == NGX_MCP_KNOWN_RPC) {

        /* a list, which is only seen to be there */

        return;
    }

    ask->known.revision = revision;

    if (ngx_http_mcp_string_copy(ask->pool, &ask->known.result, &result)
        != NGX_OK)
    {
        ask->answered = 0;
    }
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

    } else if (ask->kind == NGX_MCP_KNOWN_RPC) {
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
        ask->kind = NGX_MCP_KNOWN_RPC;

        if (ngx_http_mcp_ask_probe(ask) == NGX_OK) {
            return;
        }
    }

    /* each client gets what the upstream has to say of its own initialize */

    if (outcome == NGX_HTTP_MCP_STATUS && x->refusal.len
        && !ngx_http_mcp_status_absent(x->status))
    {
        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_REFUSED);
        return;
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

            if (u->protocol == NGX_HTTP_MCP_RPC
                && (ask->error || x->status == NGX_HTTP_BAD_REQUEST))
            {
                failure.remedy = "if it is an MCP server, which wants a "
                                 "session, write \"protocol=auto\"";
            }

            ngx_http_mcp_ask_nothing(ask, x, &failure);
            return;
        }

        if (ask->failure.why.len == 0) {
            ask->failure = failure;
        }
    }

    if (ngx_http_mcp_probes[++ask->probe].method.len) {

        if (ngx_http_mcp_ask_probe(ask) != NGX_OK) {
            ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
        }

        return;
    }

    if (ask->present == 0
        && (u->protocol == NGX_HTTP_MCP_AUTO || !u->listless))
    {
        ngx_http_mcp_ask_nothing(ask, x, &ask->failure);
        return;
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
        method = (u->protocol == NGX_HTTP_MCP_RPC) ? &ngx_http_mcp_ask_lists
                                                   : &ngx_http_mcp_ask_all;

    } else if (ask->kind == NGX_MCP_KNOWN_RPC) {
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
