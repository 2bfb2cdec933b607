
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"


#define NGX_HTTP_MCP_BODY_IN_MEMORY  (64 * 1024 * 1024)


static void ngx_http_mcp_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_gather_body(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_values(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);


ngx_int_t
ngx_http_mcp_read_body(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    size_t                     size;
    ngx_int_t                  rc;
    ngx_http_core_loc_conf_t  *clcf;

    ctx->reading = 1;

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

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


static void
ngx_http_mcp_body_handler(ngx_http_request_t *r)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    ctx->reading = 0;
    ctx->scanned = 1;

    if (ngx_http_mcp_gather_body(r, ctx) != NGX_OK
        || ngx_http_mcp_scan(r, ctx) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->preserve_body = 1;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


static ngx_int_t
ngx_http_mcp_gather_body(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    u_char       *p;
    size_t        len;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return NGX_OK;
    }

    cl = r->request_body->bufs;

    if (cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
        ctx->body.data = cl->buf->pos;
        ctx->body.len = cl->buf->last - cl->buf->pos;
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

    ctx->body.data = p;
    ctx->body.len = len;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        if (!b->in_file) {
            /* only marks the end */
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

    ctx->message = ngx_palloc(r->pool, sizeof(ngx_mcp_message_t));
    if (ctx->message == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_mcp_message_parse_client(ctx->message, &ctx->body,
                                      &ctx->scan_error);

    if (rc != NGX_OK) {
        /* a notification that is not taken has no other answer */

        ctx->scan_status = (rc == NGX_MCP_INVALID_PARAMS
                            && ctx->message->id.len && !ctx->message->modern)
                          ? NGX_HTTP_OK : NGX_HTTP_BAD_REQUEST;
        ctx->scan_code = rc;
        return NGX_OK;
    }

    return ngx_http_mcp_scan_values(r, ctx);
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

    if (m->method_code != NGX_MCP_METHOD_INITIALIZE) {
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

    /* drawn now: the upstream may be chosen by it */

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
