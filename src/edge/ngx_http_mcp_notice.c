
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"


struct ngx_http_mcp_batch_s {
    ngx_http_request_t  *r;
    ngx_str_t           *answers;
    ngx_uint_t           nanswers;
    ngx_uint_t           running;
};


static ngx_int_t ngx_http_mcp_notice_talk(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m,
    void (*done)(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome));
static void ngx_http_mcp_notice_message(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_notice_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_notice_cleanup(void *data);
static ngx_int_t ngx_http_mcp_batch_denied(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m, ngx_str_t *refusal);
static ngx_int_t ngx_http_mcp_batch_send(ngx_http_mcp_batch_t *batch);
static void ngx_http_mcp_batch_notice_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);


ngx_int_t
ngx_http_mcp_empty_result(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_str_t  result;

    ngx_str_set(&result, "{}");

    return ngx_http_mcp_result(r, id, &result);
}


/*
 * A notification or a response of the client: 202, after the upstream that it
 * concerns has heard it.
 */

ngx_int_t
ngx_http_mcp_notice(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_notice_talk(r, ctx, m, ngx_http_mcp_notice_done);

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_answer(r, NGX_HTTP_ACCEPTED, NULL);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* it is passed on even if the client does not wait */

    r->main->count++;
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


/* NGX_OK: done() will come; NGX_DECLINED: nobody has to hear it */

static ngx_int_t
ngx_http_mcp_notice_talk(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m,
    void (*done)(ngx_http_mcp_talk_t *t, ngx_http_mcp_outcome_e outcome))
{
    ngx_str_t                 id, upstream;
    ngx_pool_cleanup_t       *cln;
    ngx_http_mcp_talk_t      *t;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    if (m->kind == NGX_MCP_RESPONSE) {

        if (ngx_mcp_ask_take(mlcf->zone, ctx->session.ref, &m->id, r->pool,
                             &upstream)
            != NGX_OK)
        {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "mcp client sent a response to no request, id %V",
                          &m->id);
            return NGX_DECLINED;
        }

    } else if (m->method_code == NGX_MCP_METHOD_CANCELLED) {

        id = ngx_mcp_message_member(m, NGX_MCP_PATH_REQUEST_ID);

        if (id.len == 0
            || ngx_mcp_call_cancel(mlcf->zone, ctx->session.ref, &id) != NGX_OK)
        {
            return NGX_DECLINED;
        }

        ngx_mcp_count(mlcf->zone, NGX_MCP_COUNTER_CALLS_CANCELLED, 1);
    }

    if (mlcf->upstreams == NULL) {
        return NGX_DECLINED;
    }

    t = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_talk_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (t == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    t->r = r;
    t->upstream = mlcf->upstreams->elts;
    t->session = ctx->session.ref;
    t->tenant = ctx->tenant;
    t->body = m->text;
    t->existing = 1;
    t->answered = 1;
    t->message = ngx_http_mcp_notice_message;
    t->done = done;

    if (m->kind == NGX_MCP_NOTIFICATION
        && ngx_http_mcp_scan_scope(r, m, &t->scope) != NGX_OK)
    {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_mcp_notice_cleanup;
    cln->data = t;

    return ngx_http_mcp_talk_start(t);
}


static void
ngx_http_mcp_notice_message(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_log_error(NGX_LOG_INFO, t->r->connection->log, 0,
                  "mcp upstream \"%V\" answered a notification or response "
                  "with a message", &t->upstream->name);
}


static void
ngx_http_mcp_notice_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_finalize_request(t->r, ngx_http_mcp_answer(t->r,
                                                   NGX_HTTP_ACCEPTED, NULL));
}


static void
ngx_http_mcp_notice_cleanup(void *data)
{
    ngx_http_mcp_talk_cleanup(data);
}


/*
 * A batch (2025-03-26 basic, "Batching"): its requests run side by side, and
 * their answers leave together as one array.
 */

ngx_int_t
ngx_http_mcp_batch(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t              rc;
    ngx_str_t              rest, text, why, refusal;
    ngx_uint_t             n;
    const char            *bad;
    ngx_mcp_message_t     *m;
    ngx_http_mcp_batch_t  *batch;

    if (ctx->session.revision != NGX_MCP_2025_03_26) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                         NGX_MCP_INVALID_REQUEST,
                         "a batch is for sessions of 2025-03-26 only; send one "
                         "message per request");
    }

    rest = ctx->body;

    for (n = 0; ngx_mcp_json_element(&rest, &text) == NGX_OK; n++) {
        /* void */
    }

    batch = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_batch_t));
    if (batch == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    batch->r = r;
    batch->answers = ngx_pcalloc(r->pool, n * sizeof(ngx_str_t));

    if (batch->answers == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rest = ctx->body;

    while (ngx_mcp_json_element(&rest, &text) == NGX_OK) {

        m = ngx_palloc(r->pool, sizeof(ngx_mcp_message_t));
        if (m == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = ngx_mcp_message_accept(m, &text, &bad);

        if (rc == NGX_OK && m->kind == NGX_MCP_BATCH) {
            rc = NGX_MCP_INVALID_REQUEST;
            bad = "an element of a batch must be a JSON object";
        }

        if (rc == NGX_MCP_INVALID_PARAMS && m->id.len == 0) {
            /* a notification */
            continue;
        }

        if (rc != NGX_OK) {
            why.data = (u_char *) bad;
            why.len = ngx_strlen(bad);

            batch->answers[batch->nanswers++] =
                         ngx_mcp_error_compose(r->pool, ctx->session.revision,
                                               &m->id, rc, &why, NULL);
            continue;
        }

        rc = ngx_http_mcp_batch_denied(r, ctx, m, &refusal);

        if (rc == NGX_ERROR) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (rc == NGX_DECLINED) {

            if (m->kind == NGX_MCP_REQUEST) {
                batch->answers[batch->nanswers++] = refusal;
            }

            continue;
        }

        if (m->kind == NGX_MCP_REQUEST) {
            n = batch->nanswers++;

            rc = ngx_http_mcp_call_element(r, ctx, m, batch, n,
                                           &batch->answers[n]);
        } else {
            rc = ngx_http_mcp_notice_talk(r, ctx, m,
                                          ngx_http_mcp_batch_notice_done);
        }

        if (rc == NGX_OK) {
            batch->running++;
        }
    }

    if (batch->running == 0) {
        return ngx_http_mcp_batch_send(batch);
    }

    ctx->batch = batch;

    r->main->count++;
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


/*
 * What mcp_deny says of an element, whose values the request as a whole does
 * not have.  NGX_OK; NGX_DECLINED with the error; NGX_ERROR.
 */

static ngx_int_t
ngx_http_mcp_batch_denied(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m, ngx_str_t *refusal)
{
    ngx_int_t              rc;
    ngx_str_t              text;
    const char            *why;
    ngx_http_mcp_scope_t   scope;

    if (ctx->conf->deny == NULL || m->kind == NGX_MCP_RESPONSE) {
        return NGX_OK;
    }

    scope = ctx->scope;
    why = NULL;

    rc = ngx_http_mcp_scan_scope(r, m, &ctx->scope);

    if (rc == NGX_OK) {
        rc = ngx_http_mcp_denied(r, ctx, &why);
    }

    ctx->scope = scope;

    if (rc == NGX_DECLINED) {
        text.data = (u_char *) why;
        text.len = ngx_strlen(why);

        *refusal = ngx_mcp_error_compose(r->pool, ctx->session.revision,
                                         &m->id, NGX_MCP_REFUSED, &text, NULL);
        if (refusal->data == NULL) {
            return NGX_ERROR;
        }
    }

    return rc;
}


void
ngx_http_mcp_batch_answer(ngx_http_mcp_batch_t *batch, ngx_uint_t index,
    ngx_str_t *text)
{
    batch->answers[index] = *text;
}


void
ngx_http_mcp_batch_here(ngx_http_mcp_batch_t *batch, ngx_uint_t index,
    ngx_str_t *id)
{
    ngx_str_t  result;

    ngx_str_set(&result, "{}");

    batch->answers[index] = ngx_mcp_result_compose(batch->r->pool, id, &result);

    ngx_http_mcp_batch_done(batch);
}


static void
ngx_http_mcp_batch_notice_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(t->r, ngx_http_mcp_module);

    ngx_http_mcp_batch_done(ctx->batch);
}


void
ngx_http_mcp_batch_done(ngx_http_mcp_batch_t *batch)
{
    if (--batch->running == 0) {
        ngx_http_finalize_request(batch->r, ngx_http_mcp_batch_send(batch));
    }
}


static ngx_int_t
ngx_http_mcp_batch_send(ngx_http_mcp_batch_t *batch)
{
    u_char      *p;
    size_t       len;
    ngx_str_t    body;
    ngx_uint_t   i, n;

    len = 2;
    n = 0;

    for (i = 0; i < batch->nanswers; i++) {
        if (batch->answers[i].len) {
            len += batch->answers[i].len + 1;
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

    for (i = 0; i < batch->nanswers; i++) {

        if (batch->answers[i].len == 0) {
            continue;
        }

        if (p[-1] != '[') {
            *p++ = ',';
        }

        p = ngx_cpymem(p, batch->answers[i].data, batch->answers[i].len);
    }

    *p++ = ']';

    body.len = p - body.data;

    return ngx_http_mcp_answer(batch->r, NGX_HTTP_OK, &body);
}
