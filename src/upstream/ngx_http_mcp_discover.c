
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"


#define NGX_HTTP_MCP_NOT_AGAIN   1000
#define NGX_HTTP_MCP_PATIENCE    5000


/* one finding out, under way in this worker; lives in the pool it uses */

typedef struct {
    ngx_http_mcp_upstream_t  *upstream;
    ngx_pool_t               *pool;
    ngx_str_t                 key;
    ngx_str_t                 tenant;
    ngx_str_t                 session;      /* $mcp_session_id */
    u_char                    session_buf[NGX_MCP_UUID_LEN];
    ngx_mcp_knowledge_t       known;
    ngx_uint_t                probe;
    ngx_uint_t                present;      /* bits by probe */
    unsigned                  answered:1;
    unsigned                  absent:1;
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
static ngx_int_t ngx_http_mcp_ask_initialized(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome);
static ngx_int_t ngx_http_mcp_ask_probe(ngx_http_mcp_ask_t *ask);
static void ngx_http_mcp_ask_put(ngx_http_mcp_ask_t *ask, ngx_uint_t what);
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

static ngx_http_mcp_scope_t  ngx_http_mcp_farewell_scope;

static ngx_str_t  ngx_http_mcp_ask_id = ngx_string("\"nginx-mcp\"");
static ngx_str_t  ngx_http_mcp_ask_initialize = ngx_string("initialize");


ngx_int_t
ngx_http_mcp_discover(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_msec_t max_age, ngx_pool_t *pool, ngx_mcp_knowledge_t *known,
    ngx_http_mcp_waiter_t *waiter)
{
    ngx_int_t            rc;
    ngx_str_t            key;
    ngx_mcp_knowledge_t  nothing;

    if (ngx_http_mcp_discover_key(u, tenant, pool, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_knowledge_get(u->zone, &key, u->epoch, max_age, pool, known);

    if (rc == NGX_OK && known->what == NGX_MCP_KNOWN_NOTHING) {

        /* who did not answer is asked again, but not by everyone at once */

        rc = ngx_mcp_knowledge_get(u->zone, &key, u->epoch,
                                   NGX_HTTP_MCP_NOT_AGAIN, pool, known);
    }

    if (rc == NGX_DECLINED) {

        if (ngx_http_mcp_ask(u, &key, tenant) != NGX_OK) {
            ngx_memzero(&nothing, sizeof(ngx_mcp_knowledge_t));

            (void) ngx_mcp_knowledge_put(u->zone, &key, u->epoch, &nothing);

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

    if (rc == NGX_OK) {
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
        ngx_mcp_knowledge_forget(u->zone, &key);
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

    ngx_destroy_pool(pool);

    return NGX_ERROR;
}


/* each attempt has a request of its own: $mcp_method differs */

static ngx_int_t
ngx_http_mcp_ask_send(ngx_http_mcp_ask_t *ask, ngx_str_t *method,
    ngx_str_t *params)
{
    u_char                   *p;
    ngx_str_t                 body;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = ask->tenant;
    audience.session = ask->session;

    r = ngx_http_mcp_background_for(ask->upstream->conf_ctx,
                                    &ask->upstream->server, &audience);
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

    x->data = ask;
    x->handlers = &ngx_http_mcp_ask_handlers;
    x->timeout = NGX_HTTP_MCP_PATIENCE;
    x->total = NGX_HTTP_MCP_PATIENCE;

    ask->answered = 0;
    ask->absent = 0;

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
        ngx_http_mcp_exchange_answered(x);
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (json->members[NGX_MCP_PATH_RESULT].type != NGX_MCP_JSON_OBJECT
        || !ngx_mcp_json_same_id(&id, &ngx_http_mcp_ask_id))
    {
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
    ngx_int_t            rc;
    ngx_http_request_t  *r;
    ngx_http_mcp_ask_t  *ask;

    ask = x->data;
    r = x->r;

    if (ask->known.what == NGX_MCP_KNOWN_RPC
        || ask->upstream->protocol == NGX_HTTP_MCP_RPC)
    {
        if (ask->answered) {
            ask->present |= 1 << ask->probe;

        } else if (!ask->absent
                   && !(outcome == NGX_HTTP_MCP_STATUS
                        && ngx_http_mcp_status_absent(x->status)))
        {
            ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
            goto done;
        }

        ask->probe++;

        rc = ngx_http_mcp_ask_probe(ask);

    } else {
        rc = ngx_http_mcp_ask_initialized(ask, x, outcome);
    }

    if (rc != NGX_OK) {
        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_NOTHING);
    }

done:

    ngx_http_mcp_background_close(r);
}


static ngx_int_t
ngx_http_mcp_ask_initialized(ngx_http_mcp_ask_t *ask,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_upstream_t  *u;

    u = ask->upstream;

    if (ask->answered) {

        if (x->session.len) {
            ngx_http_mcp_farewell(u, NULL, &ask->tenant, &ask->session,
                                  &x->session, ask->known.revision);
        }

        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_LEGACY);

        return NGX_OK;
    }

    if (x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN) {
        ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_REFUSED);
        return NGX_OK;
    }

    if (u->protocol == NGX_HTTP_MCP_AUTO
        && (ask->absent || (outcome == NGX_HTTP_MCP_STATUS
                            && ngx_http_mcp_status_absent(x->status))))
    {
        ask->known.what = NGX_MCP_KNOWN_RPC;
        return ngx_http_mcp_ask_probe(ask);
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" did not answer "
                  "initialize (status %ui)", &u->name, &u->endpoint, x->status);

    return NGX_ERROR;
}


ngx_uint_t
ngx_http_mcp_status_absent(ngx_uint_t status)
{
    return status == NGX_HTTP_NOT_FOUND || status == NGX_HTTP_NOT_ALLOWED
           || status == NGX_HTTP_NOT_IMPLEMENTED;
}


/* asks for the next list, or puts together what was found */

static ngx_int_t
ngx_http_mcp_ask_probe(ngx_http_mcp_ask_t *ask)
{
    u_char     *p;
    ngx_str_t   params;
    ngx_uint_t  i;

    if (ngx_http_mcp_probes[ask->probe].method.len) {
        ngx_str_set(&params, "{}");

        return ngx_http_mcp_ask_send(ask,
                                     &ngx_http_mcp_probes[ask->probe].method,
                                     &params);
    }

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

    ngx_http_mcp_ask_put(ask, NGX_MCP_KNOWN_RPC);

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

    ngx_destroy_pool(ask->pool);

    ngx_http_mcp_discover_doorbell(zone);
}


void
ngx_http_mcp_farewell(ngx_http_mcp_upstream_t *u, ngx_http_request_t *from,
    ngx_str_t *tenant, ngx_str_t *session, ngx_str_t *id, ngx_uint_t revision)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_audience_t   audience;

    if (id->len == 0) {
        return;
    }

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = *tenant;
    audience.session = *session;

    r = ngx_http_mcp_background_for(u->conf_ctx, &u->server,
                                    &audience);
    if (r == NULL) {
        return;
    }

    ngx_http_mcp_background_stay(r);

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
ngx_http_mcp_farewell_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(x->r);
}
