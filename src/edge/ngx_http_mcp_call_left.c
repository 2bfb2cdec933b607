
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_background.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"


/*
 * Running calls whose clients have left.  Each keeps the connection that it
 * came by and one to its upstream, so that there are at most mcp_call_limit of
 * them for a tenant (or identity, or address), and together as many as take a
 * quarter of the worker's connections.
 */

#define NGX_HTTP_MCP_LEFT_SHARE    8

/* of those that are read again, so many are passed over at a time */
#define NGX_HTTP_MCP_LEFT_READ     8

/* cancellations that are being said in a worker */
#define NGX_HTTP_MCP_LEFT_CANCELS  32


typedef struct {
    ngx_http_mcp_talk_t       talk;
    ngx_mcp_message_t         message;
} ngx_http_mcp_left_cancel_t;


static ngx_http_mcp_call_t *ngx_http_mcp_call_left_oldest(
    ngx_http_mcp_call_t *call, ngx_uint_t *n);
static void ngx_http_mcp_call_abandon(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_call_left_cancel(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_call_left_message(ngx_http_mcp_talk_t *t,
    ngx_str_t *text);
static void ngx_http_mcp_call_left_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_call_left_cleanup(void *data);


static ngx_queue_t  ngx_http_mcp_call_lefts;
static ngx_uint_t   ngx_http_mcp_call_nlefts;
static ngx_uint_t   ngx_http_mcp_call_ncancels;


void
ngx_http_mcp_call_left(ngx_http_mcp_call_t *call)
{
    ngx_str_t            *key;
    ngx_uint_t            i, n, kind, max;
    ngx_http_mcp_ctx_t   *ctx;
    ngx_http_mcp_call_t  *oldest;

    if (call->left || call->done || call->cancelled) {
        return;
    }

    ctx = call->ctx;

    if (ctx->tenant.len) {
        key = &ctx->tenant;
        kind = 1;

    } else if (ctx->identity.len) {
        key = &ctx->identity;
        kind = 2;

    } else {
        key = &call->r->connection->addr_text;
        kind = 3;
    }

    call->left_key = ((uint64_t) ngx_murmur_hash2(key->data, key->len) << 32)
                     ^ ((uint64_t) ngx_crc32_long(key->data, key->len) << 2)
                     ^ kind;

    if (ngx_http_mcp_call_nlefts == 0) {
        ngx_queue_init(&ngx_http_mcp_call_lefts);
    }

    call->left = 1;
    ngx_queue_insert_tail(&ngx_http_mcp_call_lefts, &call->left_queue);
    ngx_http_mcp_call_nlefts++;

    max = ngx_max(ngx_cycle->connection_n / NGX_HTTP_MCP_LEFT_SHARE, 1);

    for (i = 0; i < NGX_HTTP_MCP_LEFT_READ; i++) {

        oldest = ngx_http_mcp_call_left_oldest(call, &n);

        if (oldest == call
            || (n <= ctx->conf->call_limit && ngx_http_mcp_call_nlefts <= max))
        {
            return;
        }

        if (!ngx_mcp_call_carried(oldest->ctx->conf->zone, oldest->record.ref))
        {
            ngx_http_mcp_call_abandon(oldest);
            return;
        }

        /* its client came back for the answer: it goes last */

        ngx_queue_remove(&oldest->left_queue);
        ngx_queue_insert_tail(&ngx_http_mcp_call_lefts, &oldest->left_queue);
    }
}


/*
 * The one to go, if one has to, and how many of the same key there are: the
 * oldest of that key, or of all where there is no other.
 */

static ngx_http_mcp_call_t *
ngx_http_mcp_call_left_oldest(ngx_http_mcp_call_t *call, ngx_uint_t *n)
{
    ngx_queue_t          *q;
    ngx_http_mcp_call_t  *c, *oldest;

    *n = 0;
    oldest = NULL;

    for (q = ngx_queue_head(&ngx_http_mcp_call_lefts);
         q != ngx_queue_sentinel(&ngx_http_mcp_call_lefts);
         q = ngx_queue_next(q))
    {
        c = ngx_queue_data(q, ngx_http_mcp_call_t, left_queue);

        if (c->left_key == call->left_key) {
            (*n)++;

            if (oldest == NULL) {
                oldest = c;
            }
        }
    }

    if (*n == 1) {
        q = ngx_queue_head(&ngx_http_mcp_call_lefts);
        oldest = ngx_queue_data(q, ngx_http_mcp_call_t, left_queue);
    }

    return oldest;
}


void
ngx_http_mcp_call_left_forget(ngx_http_mcp_call_t *call)
{
    if (call->left) {
        call->left = 0;
        ngx_queue_remove(&call->left_queue);
        ngx_http_mcp_call_nlefts--;
    }
}


/* its upstream is told, and who resumes it as well; call may be gone then */

static void
ngx_http_mcp_call_abandon(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_call_left_forget(call);

    ngx_log_error(NGX_LOG_WARN, call->r->connection->log, 0,
                  "mcp request %V is cancelled: its client left, and too many "
                  "requests of clients that left are running; the limits are "
                  "\"mcp_call_limit\" for each tenant, identity or address "
                  "and an eighth of \"worker_connections\"",
                  &call->message->id);

    ngx_mcp_count(call->ctx->conf->zone, NGX_MCP_COUNTER_CALLS_ABANDONED, 1);

    if (!call->answered && !call->cancelled) {

        if (call->talk.x && !call->talk.rpc) {
            (void) ngx_http_mcp_call_left_cancel(call);
        }

        call->abandoned = 1;
    }

    ngx_http_mcp_call_abort(call);
}


static ngx_int_t
ngx_http_mcp_call_left_cancel(ngx_http_mcp_call_t *call)
{
    u_char                      *p;
    ngx_str_t                    body;
    const char                  *why;
    ngx_connection_t            *c;
    ngx_http_cleanup_t          *cln;
    ngx_http_mcp_ctx_t          *ctx;
    ngx_http_request_t          *r;
    ngx_http_mcp_talk_t         *t;
    ngx_http_mcp_audience_t      audience;
    ngx_http_mcp_left_cancel_t  *cancel;

    if (ngx_http_mcp_call_ncancels == NGX_HTTP_MCP_LEFT_CANCELS) {
        return NGX_DECLINED;
    }

    ctx = call->ctx;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = ctx->tenant;
    audience.session = ctx->session_id;

    r = ngx_http_mcp_background_for(call->talk.upstream->conf_ctx, &audience);
    if (r == NULL) {
        return NGX_ERROR;
    }

    cancel = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_left_cancel_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (cancel == NULL || cln == NULL
        || ngx_http_mcp_background_headers(&r->headers_in, r->pool,
                                           &call->r->headers_in)
           != NGX_OK)
    {
        goto failed;
    }

    t = &cancel->talk;

    body.data = ngx_pnalloc(r->pool, call->message->id.len
        + sizeof("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                 "\"params\":{\"requestId\":,\"reason\":"
                 "\"the client left\"}}"));

    if (body.data == NULL) {
        goto failed;
    }

    p = ngx_sprintf(body.data, "{\"jsonrpc\":\"2.0\",\"method\":"
                    "\"notifications/cancelled\",\"params\":{\"requestId\":%V,"
                    "\"reason\":\"the client left\"}}", &call->message->id);
    body.len = p - body.data;

    if (ngx_mcp_message_parse(&cancel->message, &body, &why) != NGX_OK
        || ngx_http_mcp_scan_scope(r, &cancel->message, &t->scope) != NGX_OK)
    {
        goto failed;
    }

    t->r = r;
    t->upstream = call->talk.upstream;
    t->session = ctx->session.ref;
    t->tenant.len = ctx->tenant.len;
    t->tenant.data = ngx_pstrdup(r->pool, &ctx->tenant);
    t->body = body;
    t->existing = 1;
    t->answered = 1;
    t->message = ngx_http_mcp_call_left_message;
    t->done = ngx_http_mcp_call_left_done;

    if (t->tenant.data == NULL) {
        goto failed;
    }

    cln->handler = ngx_http_mcp_call_left_cleanup;
    cln->data = t;
    ngx_http_mcp_call_ncancels++;

    if (ngx_http_mcp_talk_start(t) != NGX_OK) {
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
ngx_http_mcp_call_left_message(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    /* a notification has no answer */
}


static void
ngx_http_mcp_call_left_done(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(t->r);
}


static void
ngx_http_mcp_call_left_cleanup(void *data)
{
    ngx_http_mcp_call_ncancels--;
    ngx_http_mcp_talk_cleanup(data);
}
