
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_output.h"


#define NGX_HTTP_MCP_BODY_IN_MEMORY  (64 * 1024 * 1024)


static ngx_int_t ngx_http_mcp_preflight(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_refuse_form(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_refuse_header(ngx_http_request_t *r,
    const char *name);
static void ngx_http_mcp_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_scan(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static void ngx_http_mcp_classify(ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_values(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_read_body(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);


/* client manners in the order of the test; the last one takes any client */

static ngx_http_mcp_client_t  *ngx_http_mcp_clients[] = {
    &ngx_http_mcp_client_modern,
    &ngx_http_mcp_client_legacy
};


/*
 * Runs before nginx's limits and access rules, so that these can look at the
 * message.  A fault of the message is only noted here, and reported in the
 * content phase: a refusal counts and costs like any request.
 */

ngx_int_t
ngx_http_mcp_preaccess_handler(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    if (r != r->main) {

        if (ngx_http_mcp_exchange_preaccess(r)) {
            ctx = ngx_http_get_module_ctx(r->main, ngx_http_mcp_module);

            if (ctx && ctx->batch) {
                ngx_http_mcp_batch_exchange(ctx->batch);
            }
        }

        return NGX_DECLINED;
    }

    if (!mlcf->endpoint) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_mcp_get_ctx(r, mlcf);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->scanned) {
        return NGX_DECLINED;
    }

    if (ctx->reading) {
        return NGX_DONE;
    }

    if (r->method == NGX_HTTP_OPTIONS && mlcf->cors && ctx->origin_ok
        && ctx->header_origin.len
        && ngx_http_mcp_find_header(&r->headers_in.headers,
                                    "Access-Control-Request-Method")
           != NULL)
    {
        ngx_http_finalize_request(r, ngx_http_mcp_preflight(r));
        return NGX_DONE;
    }

    if (r->method != NGX_HTTP_POST) {
        ctx->scanned = 1;
        return NGX_DECLINED;
    }

    if (!ctx->origin_ok || !ngx_http_mcp_is_json(r)) {
        ctx->scanned = 1;
        return NGX_DECLINED;
    }

    return ngx_http_mcp_read_body(r, ctx);
}


static ngx_int_t
ngx_http_mcp_preflight(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    if (ngx_http_discard_request_body(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_mcp_header_text(r, "Access-Control-Allow-Methods",
                                 "GET, POST, DELETE, OPTIONS")
        != NGX_OK
        || ngx_http_mcp_header_text(r, "Access-Control-Max-Age", "86400")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* any header is allowed: access rules check the request that follows */

    h = ngx_http_mcp_find_header(&r->headers_in.headers,
                                 "Access-Control-Request-Headers");

    if (h && ngx_http_mcp_header(r, "Access-Control-Allow-Headers", &h->value)
             != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_answer(r, NGX_HTTP_NO_CONTENT, NULL);
}


ngx_int_t
ngx_http_mcp_content_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    const char               *why;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    /* an auth_request may have left its action, which log lines would show */

    r->connection->log->action = NULL;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    ctx = ngx_http_mcp_get_ctx(r, mlcf);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "mcp endpoint \"%V\" cannot answer a subrequest; send "
                      "requests of clients to its location directly",
                      &mlcf->name);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->message == NULL) {
        ngx_http_mcp_classify(ctx);
    }

    rc = ngx_http_mcp_refuse_form(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (mlcf->zone->worker == NGX_MCP_NO_WORKER) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   NGX_MCP_REFUSED,
                                   "this worker cannot use the zone until "
                                   "older workers exit; try again later");
    }

    /* values that decide about access are not computed before this phase */

    if (ctx->batch) {
        rc = ngx_http_mcp_batch_check(ctx->batch, &why);

    } else {
        rc = ngx_http_mcp_evaluate(r, ctx, &why);

        if (rc == NGX_OK) {
            rc = ngx_http_mcp_denied(r, ctx, &why);
        }
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_FORBIDDEN, NGX_MCP_REFUSED,
                                   why);
    }

    switch (r->method) {

    case NGX_HTTP_POST:
        return ctx->client->post(r, ctx);

    case NGX_HTTP_GET:
        return ctx->client->get(r, ctx);

    default: /* NGX_HTTP_DELETE */
        return ctx->client->delete(r, ctx);
    }
}


/* refuses faults that do not depend on the sender; NGX_DECLINED: none */

static ngx_int_t
ngx_http_mcp_refuse_form(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (r->method != NGX_HTTP_POST || !ctx->origin_ok || !ctx->message) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (!ctx->origin_ok) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_FORBIDDEN, NGX_MCP_REFUSED,
                                   "the Origin is not allowed here; the "
                                   "server's operator may add it to "
                                   "mcp_allowed_origins");
    }

    if (ctx->header_differs && !ctx->client->sessionless) {
        return ngx_http_mcp_refuse_header(r, ctx->header_differs);
    }

    if (r->method != NGX_HTTP_POST && ctx->client->get == NULL) {
        return ngx_http_mcp_not_allowed(r, "the method must be POST: this "
                                        "endpoint has no sessions");
    }

    switch (r->method) {

    case NGX_HTTP_POST:

        if (!ctx->message) {
            return ngx_http_mcp_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                       NGX_MCP_REFUSED,
                                       "Content-Type must be "
                                       "application/json");
        }

        if (ctx->scan_error
            && !(ctx->client->sessionless
                 && ctx->scan_code == NGX_MCP_INVALID_PARAMS))
        {
            return ngx_http_mcp_refuse(r, ctx->scan_status, ctx->scan_code,
                                       ctx->scan_error);
        }

        if (ctx->accept == 0) {
            return ngx_http_mcp_refuse(r, 406, NGX_MCP_REFUSED,
                                       "Accept must allow application/json or "
                                       "text/event-stream");
        }

        return NGX_DECLINED;

    case NGX_HTTP_GET:

        if (!(ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
            return ngx_http_mcp_refuse(r, 406, NGX_MCP_REFUSED,
                                       "Accept must allow text/event-stream");
        }

        return NGX_DECLINED;

    case NGX_HTTP_DELETE:
        return NGX_DECLINED;

    default:
        return ngx_http_mcp_not_allowed(r, "the method must be POST, GET or "
                                        "DELETE");
    }
}


/*
 * Refuses a request with two values of a header: the module would use one
 * value, and nginx's variables and logs the other
 */

static ngx_int_t
ngx_http_mcp_refuse_header(ngx_http_request_t *r, const char *name)
{
    u_char  *why;
    size_t   len;

    len = ngx_strlen(name) + sizeof(" appears twice, with different values");

    why = ngx_pnalloc(r->pool, len);
    if (why == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_sprintf(why, "%s appears twice, with different values%Z", name);

    return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST, NGX_MCP_REFUSED,
                               (char *) why);
}


/*
 * Reads and scans the body; a fault of the body is noted in the context.  The
 * preaccess handler returns what this returns.
 */

static ngx_int_t
ngx_http_mcp_read_body(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    size_t                     size;
    ngx_int_t                  rc;
    ngx_http_core_loc_conf_t  *clcf;

    r->request_body_in_single_buf = 1;

    /*
     * A body with a length, which client_max_body_size has passed already,
     * is read into memory: the buffer's size is looked at only when the
     * reading starts, so it is raised for this moment.
     */

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    size = clcf->client_body_buffer_size;

    if (r->headers_in.content_length_n > (off_t) size
        && r->headers_in.content_length_n <= NGX_HTTP_MCP_BODY_IN_MEMORY)
    {
        clcf->client_body_buffer_size = r->headers_in.content_length_n;
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_mcp_body_handler);

    clcf->client_body_buffer_size = size;

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    if (!ctx->scanned) {
        ctx->reading = 1;

        ngx_http_finalize_request(r, NGX_DONE);

        return NGX_DONE;
    }

    /* the whole body was there, as it mostly is: the phases just go on */

    r->main->count--;

    return ngx_http_mcp_scan(r, ctx) == NGX_OK
           ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static void
ngx_http_mcp_body_handler(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ctx->scanned = 1;

    if (!ctx->reading) {
        return;
    }

    ctx->reading = 0;

    if (ngx_http_mcp_scan(r, ctx) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


ngx_int_t
ngx_http_mcp_request_body(ngx_http_request_t *r, ngx_str_t *body)
{
    u_char       *p;
    size_t        len;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_str_null(body);

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return NGX_OK;
    }

    cl = r->request_body->bufs;

    if (cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
        body->data = cl->buf->pos;
        body->len = cl->buf->last - cl->buf->pos;
        return NGX_OK;
    }

    len = 0;

    for ( /* void */ ; cl; cl = cl->next) {
        len += ngx_buf_size(cl->buf);
    }

    p = ngx_palloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    body->data = p;
    body->len = len;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        if (!b->in_file) {
            /* the buffer has no data, and marks the end of the body */
            continue;
        }

        len = b->file_last - b->file_pos;

        n = ngx_read_file(b->file, p, len, b->file_pos);

        if (n != (ssize_t) len) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "mcp failed to read the request body from its "
                          "temporary file");
            return NGX_ERROR;
        }

        p += n;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_scan(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    r->preserve_body = 1;

    ctx->message = ngx_palloc(r->pool, sizeof(ngx_mcp_message_t));

    if (ctx->message == NULL
        || ngx_http_mcp_request_body(r, &ctx->body) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_mcp_message_parse_client(ctx->message, &ctx->body,
                                      &ctx->scan_error);

    if (rc != NGX_OK) {
        /* a refused notification has no id, so that only the status tells */

        ctx->scan_status = (rc == NGX_MCP_INVALID_PARAMS
                            && ctx->message->id.len && !ctx->message->modern)
                          ? NGX_HTTP_OK : NGX_HTTP_BAD_REQUEST;
        ctx->scan_code = rc;
    }

    ngx_http_mcp_classify(ctx);

    if (rc == NGX_MCP_INVALID_PARAMS) {
        return ngx_http_mcp_scan_method(r, ctx->message, &ctx->scope);
    }

    if (rc != NGX_OK) {
        ctx->scope.request_id = ctx->message->id;
        return NGX_OK;
    }

    if (ctx->client->scanned && ctx->client->scanned(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_scan_values(r, ctx);
}


static void
ngx_http_mcp_classify(ngx_http_mcp_ctx_t *ctx)
{
    ngx_uint_t  i;

    for (i = 0;
         ngx_http_mcp_clients[i]->is && !ngx_http_mcp_clients[i]->is(ctx);
         i++)
    {
        /* void */
    }

    ctx->client = ngx_http_mcp_clients[i];
}


static ngx_int_t
ngx_http_mcp_scan_values(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_mcp_message_t  *m;

    m = ctx->message;

    ctx->scope.request_id = m->id;

    if (m->kind == NGX_MCP_BATCH) {
        return ngx_http_mcp_batch_scan(r, ctx);
    }

    if (m->kind == NGX_MCP_RESPONSE) {
        return NGX_OK;
    }

    return ngx_http_mcp_scan_scope(r, m, &ctx->scope) == NGX_OK
           ? ngx_http_mcp_scan_initialize(r, ctx) : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_scan_initialize(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    u_char             *p;
    ngx_mcp_message_t  *m;

    m = ctx->message;

    if (m->method_code != NGX_MCP_METHOD_INITIALIZE
        || ctx->client->sessionless)
    {
        return NGX_OK;
    }

    if (ngx_http_mcp_ctx_value(r, m, NGX_MCP_PATH_CLIENT_NAME,
                               &ctx->client_name)
        != NGX_OK
        || ngx_http_mcp_ctx_value(r, m, NGX_MCP_PATH_CLIENT_VERSION,
                                  &ctx->client_version)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_mcp_verify_session(ctx);

    if (ctx->caller.session_id.len) {
        return NGX_OK;
    }

    /* the id is made now: an upstream's server may be chosen by it */

    p = ngx_pnalloc(r->pool, NGX_MCP_UUID_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_mcp_uuid(p) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->caller.session_id.data = p;
    ctx->caller.session_id.len = NGX_MCP_UUID_LEN;

    return NGX_OK;
}
