
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_stored.h"


#define NGX_HTTP_MCP_BATCH_MAX   128

/* ms in which elements are started before other clients have their turn */
#define NGX_HTTP_MCP_BATCH_TURN  2


typedef struct {
    ngx_mcp_message_t           message;
    ngx_http_mcp_scope_t        scope;
    ngx_int_t                   code;       /* JSON-RPC code of a refusal */
    const char                 *why;        /* reason of a refusal, or NULL */
    ngx_str_t                   answer;     /* empty: none, or not yet */
    ngx_http_mcp_call_t        *call;       /* call of the element, or NULL */
} ngx_http_mcp_element_t;


struct ngx_http_mcp_batch_s {
    ngx_http_request_t         *r;
    ngx_http_mcp_element_t     *elements;
    ngx_uint_t                  nelements;
    ngx_uint_t                  checked;    /* number of elements that nginx's
                                               limits and access rules have let
                                               pass */
    ngx_uint_t                  next;       /* element to be started next */
    ngx_uint_t                  requests;   /* requests started so far */
    ngx_uint_t                  running;    /* number of calls that have not
                                               ended, and of functions during
                                               which the batch must not end */
    size_t                      size;       /* bytes of all answers so far */
    ngx_event_t                 turn;       /* starts further elements */
    const char                 *refused;    /* why the batch is refused, or
                                               NULL */

    ngx_int_t                   phase;      /* r->phase_handler with which the
                                               rules begin for each element */
    ngx_uint_t                  limit_req;  /* r->limit_req_status and
                                               r->limit_conn_status after the
                                               rules ran */
    ngx_uint_t                  limit_conn;
    ngx_http_variable_value_t  *variables;  /* values of the variables before
                                               the rules run for an element */
    ngx_http_variable_value_t  *stored;     /* values of the variables that the
                                               rules stored for the first
                                               element */
    ngx_str_t                   tenant;     /* tenant, identity and list key
                                               of the first element; all
                                               other elements must have the
                                               same ones */
    ngx_str_t                   identity;
    ngx_str_t                   list_key;

    unsigned                    full:1;     /* mcp_message_limit leaves no room
                                               for another answer */
    unsigned                    left:1;     /* the client left */
};


static const char *ngx_http_mcp_batch_parse(ngx_http_request_t *r,
    ngx_http_mcp_batch_t *batch, ngx_str_t *body);
static ngx_int_t ngx_http_mcp_batch_caller(ngx_http_mcp_batch_t *batch,
    ngx_http_mcp_ctx_t *ctx);
static ngx_uint_t ngx_http_mcp_batch_same(ngx_http_variable_value_t *a,
    ngx_http_variable_value_t *b, ngx_uint_t n);
static void ngx_http_mcp_batch_rewind(ngx_http_mcp_batch_t *batch,
    ngx_http_mcp_ctx_t *ctx);
static void ngx_http_mcp_batch_run(ngx_http_mcp_batch_t *batch);
static void ngx_http_mcp_batch_turn(ngx_event_t *ev);
static void ngx_http_mcp_batch_reading(ngx_http_request_t *r);
static void ngx_http_mcp_batch_start(ngx_http_mcp_batch_t *batch,
    ngx_uint_t n);
static void ngx_http_mcp_batch_error(ngx_http_mcp_batch_t *batch,
    ngx_uint_t n, ngx_int_t code, const char *why);
static void ngx_http_mcp_batch_call_answer(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static void ngx_http_mcp_batch_answer(ngx_http_mcp_batch_t *batch,
    ngx_uint_t n, ngx_str_t *text);
static void ngx_http_mcp_batch_call_done(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_batch_done(ngx_http_mcp_batch_t *batch);
static void ngx_http_mcp_batch_notification_done(
    ngx_http_mcp_fanout_t *fanout);
static void ngx_http_mcp_batch_cleanup(void *data);
static ngx_int_t ngx_http_mcp_batch_send(ngx_http_mcp_batch_t *batch);


static ngx_http_mcp_call_batch_t  ngx_http_mcp_batch_handlers = {
    .answer = ngx_http_mcp_batch_call_answer,
    .done = ngx_http_mcp_batch_call_done
};


static const char  ngx_http_mcp_batch_large[] =
    "the answers of the batch are larger than mcp_message_limit; send this "
    "request alone";


ngx_int_t
ngx_http_mcp_batch_scan(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    size_t                      size;
    ngx_pool_cleanup_t         *cln;
    ngx_http_mcp_batch_t       *batch;
    ngx_http_core_main_conf_t  *cmcf;

    if (!(ctx->conf->versions & NGX_HTTP_MCP_VERSION(NGX_MCP_2025_03_26))) {
        ctx->scan_error = "only revision 2025-03-26 has batches, and it is not "
                          "accepted here (mcp_versions); send one message per "
                          "request";
        goto bad;
    }

    if (!ctx->conf->batch) {
        ctx->scan_error = "batches are off here (mcp_batch); send one message "
                          "per request";
        goto bad;
    }

    batch = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_batch_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (batch == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    batch->r = r;
    batch->phase = r->phase_handler;

    batch->turn.handler = ngx_http_mcp_batch_turn;
    batch->turn.data = batch;
    batch->turn.log = r->connection->log;

    cln->handler = ngx_http_mcp_batch_cleanup;
    cln->data = batch;

    ctx->scan_error = ngx_http_mcp_batch_parse(r, batch, &ctx->body);

    if (ctx->scan_error) {
        goto bad;
    }

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    size = cmcf->variables.nelts * sizeof(ngx_http_variable_value_t);

    batch->variables = ngx_palloc(r->pool, size);

    if (batch->elements == NULL || batch->variables == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(batch->variables, r->variables, size);

    ctx->batch = batch;
    ctx->scope = batch->elements[0].scope;

    return NGX_OK;

bad:

    ctx->scan_status = NGX_HTTP_BAD_REQUEST;
    ctx->scan_code = NGX_MCP_INVALID_REQUEST;

    return NGX_OK;
}


/*
 * Returns why the whole batch is refused, or NULL; batch->elements is NULL
 * then if there is no memory
 */

static const char *
ngx_http_mcp_batch_parse(ngx_http_request_t *r, ngx_http_mcp_batch_t *batch,
    ngx_str_t *body)
{
    ngx_str_t                rest, text;
    ngx_uint_t               n;
    ngx_mcp_message_t       *m;
    ngx_http_mcp_element_t  *e;

    rest = *body;

    for (n = 0; ngx_mcp_json_element(&rest, &text) == NGX_OK; n++) {

        if (n == NGX_HTTP_MCP_BATCH_MAX) {
            return "a batch has at most 128 messages";
        }
    }

    if (n == 0) {
        return "a batch must not be empty";
    }

    e = ngx_pcalloc(r->pool, n * sizeof(ngx_http_mcp_element_t));
    if (e == NULL) {
        return NULL;
    }

    batch->elements = e;
    batch->nelements = n;

    rest = *body;

    for ( /* void */ ; ngx_mcp_json_element(&rest, &text) == NGX_OK; e++) {

        m = &e->message;

        e->code = ngx_mcp_message_parse_client(m, &text, &e->why);

        if (e->code != NGX_OK) {
            continue;
        }

        e->why = NULL;

        if (m->kind == NGX_MCP_BATCH) {
            m->kind = NGX_MCP_INVALID;
            e->code = NGX_MCP_INVALID_REQUEST;
            e->why = "an element of a batch must be a JSON object";
            continue;
        }

        if (m->modern) {
            return "a message of 2026-07-28 cannot be part of a batch";
        }

        if (m->method_code == NGX_MCP_METHOD_INITIALIZE) {
            return "initialize cannot be part of a batch";
        }

        if (m->kind != NGX_MCP_RESPONSE
            && ngx_http_mcp_scan_scope(r, m, &e->scope) != NGX_OK)
        {
            batch->elements = NULL;
            return NULL;
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_mcp_batch_requests(ngx_http_mcp_batch_t *batch)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < batch->nelements; i++) {
        n += (batch->elements[i].message.kind == NGX_MCP_REQUEST);
    }

    return n;
}


/*
 * Runs when nginx's limits and access rules have let an element pass, and lets
 * them run again for the next element: they check each element as a request of
 * its own before any element is started.  If they refuse one, they refuse the
 * whole batch.
 */

ngx_int_t
ngx_http_mcp_batch_handler(ngx_http_request_t *r)
{
    ngx_int_t                rc;
    const char              *why;
    ngx_http_mcp_ctx_t      *ctx;
    ngx_http_mcp_batch_t    *batch;
    ngx_http_mcp_element_t  *e;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (r != r->main || ctx == NULL || ctx->batch == NULL) {
        return NGX_DECLINED;
    }

    batch = ctx->batch;

    if (batch->checked == batch->nelements || batch->refused) {
        return NGX_DECLINED;
    }

    e = &batch->elements[batch->checked];

    rc = ngx_http_mcp_evaluate(r, ctx, &batch->refused);

    if (rc == NGX_OK) {
        rc = ngx_http_mcp_batch_caller(batch, ctx);
    }

    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }

    if (rc == NGX_OK && e->why == NULL) {
        rc = ngx_http_mcp_denied(r, ctx, &why);

        if (rc == NGX_DECLINED) {
            e->code = NGX_MCP_REFUSED;
            e->why = why;
        }
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    batch->checked++;

    if (batch->checked < batch->nelements) {
        ngx_http_mcp_batch_rewind(batch, ctx);
        return NGX_DECLINED;
    }

    /* the whole batch has no method or name */

    ngx_memzero(&ctx->scope, sizeof(ngx_http_mcp_scope_t));

    batch->limit_req = r->limit_req_status;
    batch->limit_conn = r->limit_conn_status;

    return NGX_DECLINED;
}


/*
 * The session is looked up once, so all elements need the same caller; and the
 * locations of upstreams see one set of stored variables.
 */

static ngx_int_t
ngx_http_mcp_batch_caller(ngx_http_mcp_batch_t *batch, ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_variable_value_t  *stored;
    ngx_http_core_main_conf_t  *cmcf;

    stored = ngx_http_mcp_stored_variables(batch->r);
    if (stored == NULL) {
        return NGX_ERROR;
    }

    if (batch->checked == 0) {
        batch->stored = stored;
        batch->tenant = ctx->caller.tenant;
        batch->identity = ctx->caller.identity;
        batch->list_key = ctx->caller.list_key;

        return NGX_OK;
    }

    if (!ngx_mcp_equal(&batch->tenant, &ctx->caller.tenant)
        || !ngx_mcp_equal(&batch->identity, &ctx->caller.identity)
        || !ngx_mcp_equal(&batch->list_key, &ctx->caller.list_key))
    {
        batch->refused = "the messages of a batch must have one tenant, "
                         "identity and list key";
        return NGX_DECLINED;
    }

    cmcf = ngx_http_get_module_main_conf(batch->r, ngx_http_core_module);

    if (!ngx_http_mcp_batch_same(batch->stored, stored,
                                 cmcf->variables.nelts))
    {
        batch->refused = "the messages of a batch must get the same values by "
                         "auth_request_set";
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_batch_same(ngx_http_variable_value_t *a,
    ngx_http_variable_value_t *b, ngx_uint_t n)
{
    ngx_uint_t  i;

    for (i = 0; i < n; i++) {
        if (a[i].valid != b[i].valid || a[i].len != b[i].len
            || (a[i].len && ngx_memcmp(a[i].data, b[i].data, a[i].len) != 0))
        {
            return 0;
        }
    }

    return 1;
}


/*
 * Goes back in the phases like an internal redirect, which modules know:
 * contexts are cleared, and modules that need theirs find it by a cleanup
 * handler.  The next handler is the one behind ours in the preaccess phase.
 */

static void
ngx_http_mcp_batch_rewind(ngx_http_mcp_batch_t *batch, ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_request_t         *r;
    ngx_http_core_main_conf_t  *cmcf;

    r = batch->r;
    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    ngx_memcpy(r->variables, batch->variables,
               cmcf->variables.nelts * sizeof(ngx_http_variable_value_t));

    ngx_memzero(r->ctx, sizeof(void *) * ngx_http_max_module);
    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    ctx->scope = batch->elements[batch->checked].scope;

    r->internal = 1;
    r->access_code = 0;
    r->limit_req_status = 0;
    r->limit_conn_status = 0;
    r->phase_handler = batch->phase;
}


/* limits in an upstream's location count each element, too */

void
ngx_http_mcp_batch_exchange(ngx_http_mcp_batch_t *batch)
{
    batch->r->limit_req_status = batch->limit_req;
    batch->r->limit_conn_status = batch->limit_conn;
}


ngx_int_t
ngx_http_mcp_batch_check(ngx_http_mcp_batch_t *batch, const char **why)
{
    if (batch->refused) {
        *why = batch->refused;
        return NGX_DECLINED;
    }

    if (batch->checked == batch->nelements) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_ERR, batch->r->connection->log, 0,
                  "mcp batch is refused: another module prevents the check of "
                  "access rules for each message; set \"mcp_batch off\"");
    return NGX_ERROR;
}


/*
 * A batch (2025-03-26 basic, "Batching"): its requests run side by side, and
 * their answers leave together as one array.
 */

ngx_int_t
ngx_http_mcp_batch(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_mcp_batch_t  *batch;

    if (ctx->caller.revision != NGX_MCP_2025_03_26) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                         NGX_MCP_INVALID_REQUEST,
                         "a batch is for sessions of 2025-03-26 only; send one "
                         "message per request");
    }

    batch = ctx->batch;

    ngx_http_mcp_batch_run(batch);

    if (batch->next == batch->nelements && batch->running == 0) {
        return ngx_http_mcp_batch_send(batch);
    }

    return ngx_http_mcp_suspend(r, ngx_http_mcp_batch_reading);
}


/*
 * Starts elements.  Answers that the module makes at once take time: after some
 * ms other clients get their turn.
 */

static void
ngx_http_mcp_batch_run(ngx_http_mcp_batch_t *batch)
{
    ngx_msec_t  start;

    ngx_time_update();

    start = ngx_current_msec;

    while (batch->next < batch->nelements) {

        if (ngx_current_msec - start >= NGX_HTTP_MCP_BATCH_TURN) {
            ngx_add_timer(&batch->turn, 1);
            return;
        }

        ngx_http_mcp_batch_start(batch, batch->next++);

        ngx_time_update();
    }
}


static void
ngx_http_mcp_batch_turn(ngx_event_t *ev)
{
    ngx_connection_t      *c;
    ngx_http_mcp_batch_t  *batch;

    batch = ev->data;
    c = batch->r->connection;

    ngx_http_set_log_request(c->log, batch->r);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "mcp batch goes on, %ui of %ui", batch->next,
                   batch->nelements);

    ngx_http_mcp_batch_run(batch);

    if (batch->next == batch->nelements && batch->running == 0) {
        ngx_http_finalize_request(batch->r, ngx_http_mcp_batch_send(batch));
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_batch_start(ngx_http_mcp_batch_t *batch, ngx_uint_t n)
{
    ngx_int_t                rc;
    ngx_str_t                text;
    ngx_mcp_message_t       *m;
    ngx_http_mcp_ctx_t      *ctx;
    ngx_http_mcp_call_t     *call;
    ngx_http_mcp_element_t  *e;

    e = &batch->elements[n];
    m = &e->message;

    ctx = ngx_http_get_module_ctx(batch->r, ngx_http_mcp_module);

    if (e->why) {

        /* nothing answers a notification or a response */

        if (m->kind == NGX_MCP_REQUEST
            || (m->kind == NGX_MCP_INVALID
                && (m->id.len || e->code != NGX_MCP_INVALID_PARAMS)))
        {
            ngx_http_mcp_batch_error(batch, n, e->code, e->why);
        }

        return;
    }

    if (m->kind != NGX_MCP_REQUEST) {
        rc = ngx_http_mcp_notification_send(batch->r, ctx, m,
                                        ngx_http_mcp_batch_notification_done);
        if (rc == NGX_OK) {
            batch->running++;

            if (batch->left) {
                ngx_http_mcp_fanout_left(batch->r);
            }
        }

        return;
    }

    /* all requests of the array count, also those that nginx answers itself */

    if (batch->requests == ctx->conf->call_limit) {
        ngx_mcp_count(ctx->conf->zone, NGX_MCP_COUNTER_CALLS_REFUSED, 1);
        ngx_http_mcp_batch_error(batch, n, NGX_MCP_REFUSED,
                                 "the limit of running requests is reached "
                                 "(mcp_call_limit)");
        return;
    }

    batch->requests++;

    if (batch->full) {
        ngx_http_mcp_batch_error(batch, n, NGX_MCP_REFUSED,
                                 ngx_http_mcp_batch_large);
        return;
    }

    call = ngx_http_mcp_call_create(batch->r, m);

    if (call == NULL) {
        ngx_http_mcp_batch_error(batch, n, NGX_MCP_INTERNAL_ERROR,
                                 "internal error");
        return;
    }

    call->batch = batch;
    call->index = n;
    call->batch_handlers = &ngx_http_mcp_batch_handlers;

    if (ngx_http_mcp_call_element(call, &text) != NGX_AGAIN) {
        ngx_http_mcp_batch_answer(batch, n, &text);
        return;
    }

    batch->running++;
    e->call = call;

    if (batch->left) {

        /* the caller of this function checks whether the batch ends */

        batch->running++;
        ngx_http_mcp_call_client_left(call);
        batch->running--;
    }
}


/* if the client leaves, the calls of the batch run on, within their limits */

static void
ngx_http_mcp_batch_reading(ngx_http_request_t *r)
{
    ngx_uint_t             i;
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_batch_t  *batch;

    if (!ngx_http_mcp_call_test_client(r)) {
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);
    batch = ctx->batch;

    batch->left = 1;

    /* the batch must not end before all elements were looked at */

    batch->running++;

    for (i = 0; i < batch->next; i++) {
        call = batch->elements[i].call;

        if (call && call->state != NGX_HTTP_MCP_CALL_DONE) {
            ngx_http_mcp_call_client_left(call);
        }
    }

    ngx_http_mcp_fanout_left(r);

    ngx_http_mcp_batch_done(batch);
}


static void
ngx_http_mcp_batch_error(ngx_http_mcp_batch_t *batch, ngx_uint_t n,
    ngx_int_t code, const char *why)
{
    ngx_str_t            text;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(batch->r, ngx_http_mcp_module);

    text.data = (u_char *) why;
    text.len = ngx_strlen(why);

    batch->elements[n].answer =
                     ngx_mcp_error_compose(batch->r->pool,
                                           ctx->caller.revision,
                                           &batch->elements[n].message.id,
                                           code, &text, NULL);
}


static void
ngx_http_mcp_batch_call_answer(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    ngx_http_mcp_batch_answer(call->batch, call->index, text);
}


/* takes an answer; all answers stay in memory until the last one is there */

static void
ngx_http_mcp_batch_answer(ngx_http_mcp_batch_t *batch, ngx_uint_t n,
    ngx_str_t *text)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(batch->r, ngx_http_mcp_module);

    if (text->len <= ctx->conf->message_limit - batch->size) {
        batch->size += text->len;
        batch->elements[n].answer = *text;
        return;
    }

    batch->full = 1;

    (void) ngx_pfree(batch->r->pool, text->data);

    ngx_http_mcp_batch_error(batch, n, NGX_MCP_REFUSED,
                             ngx_http_mcp_batch_large);
}


static void
ngx_http_mcp_batch_call_done(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_batch_done(call->batch);
}


static void
ngx_http_mcp_batch_notification_done(ngx_http_mcp_fanout_t *fanout)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(fanout->r, ngx_http_mcp_module);

    ngx_http_mcp_batch_done(ctx->batch);
}


static void
ngx_http_mcp_batch_done(ngx_http_mcp_batch_t *batch)
{
    batch->running--;

    if (batch->next == batch->nelements && batch->running == 0) {
        ngx_http_finalize_request(batch->r, ngx_http_mcp_batch_send(batch));
    }
}


static void
ngx_http_mcp_batch_cleanup(void *data)
{
    ngx_http_mcp_batch_t *batch = data;

    if (batch->turn.timer_set) {
        ngx_del_timer(&batch->turn);
    }
}


static ngx_int_t
ngx_http_mcp_batch_send(ngx_http_mcp_batch_t *batch)
{
    u_char      *p;
    size_t       len;
    ngx_str_t    body, *answer;
    ngx_uint_t   i, n;

    if (batch->left) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    len = 2;
    n = 0;

    for (i = 0; i < batch->nelements; i++) {
        if (batch->elements[i].answer.len) {
            len += batch->elements[i].answer.len + 1;
            n++;
        }
    }

    if (n == 0) {
        return ngx_http_mcp_answer(batch->r, NGX_HTTP_ACCEPTED, NULL);
    }

    p = ngx_pnalloc(batch->r->pool, len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body.data = p;

    *p++ = '[';

    for (i = 0; i < batch->nelements; i++) {

        answer = &batch->elements[i].answer;

        if (answer->len == 0) {
            continue;
        }

        if (p[-1] != '[') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, answer->data, answer->len);

        (void) ngx_pfree(batch->r->pool, answer->data);
    }

    *p++ = ']';

    body.len = p - body.data;

    return ngx_http_mcp_answer(batch->r, NGX_HTTP_OK, &body);
}
