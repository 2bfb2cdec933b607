
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_stream.h"


#define NGX_HTTP_MCP_BODY_IN_MEMORY  (64 * 1024 * 1024)
#define NGX_HTTP_MCP_BATCH_MAX       128


static void ngx_http_mcp_read_headers(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static void ngx_http_mcp_parse_accept(ngx_str_t *accept, ngx_uint_t *json,
    ngx_uint_t *sse);
static ngx_uint_t ngx_http_mcp_weight_zero(u_char *p, u_char *last);
static ngx_uint_t ngx_http_mcp_is_json(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_read_body(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static void ngx_http_mcp_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_gather_body(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_values(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_batch(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_scan_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_value(ngx_http_request_t *r,
    ngx_mcp_message_t *m, ngx_mcp_path_e path, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_post(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_get(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_delete(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_find_session(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_int_t *refusal);


ngx_http_mcp_ctx_t *
ngx_http_mcp_get_ctx(ngx_http_request_t *r, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    if (ctx) {
        return ctx;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ctx->conf = mlcf;

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    ngx_http_mcp_read_headers(r, ctx);

    ctx->origin_ok = ctx->header_origin.len == 0
                     || ngx_http_mcp_origin_allowed(r, mlcf,
                                                    &ctx->header_origin);
    return ctx;
}


/*
 * Runs before nginx's limits and access rules, so that these can look at what
 * the message says.  What is wrong with the message is only noted here and
 * said in the content phase: a refusal counts and costs like any request.
 */

ngx_int_t
ngx_http_mcp_preaccess_handler(ngx_http_request_t *r)
{
    ngx_str_t                 preflight;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    if (r != r->main) {

        /*
         * The URI of an exchange is percent-encoded as it has to go out: an
         * internal one would be taken for decoded and encoded once more.
         */

        if (r->internal && ngx_http_mcp_exchange_of(r)) {
            r->internal = 0;
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
        && ctx->header_origin.len)
    {
        ngx_str_set(&preflight, "Access-Control-Request-Method");

        if (ngx_http_mcp_find_header(r, &preflight) != NULL) {
            ngx_http_finalize_request(r, ngx_http_mcp_preflight(r, ctx));
            return NGX_DONE;
        }
    }

    if (ctx->header_session.len) {
        ctx->session.revision = ngx_mcp_session_exists(mlcf->zone,
                                                       &ctx->header_session,
                                                       &mlcf->name);
        if (ctx->session.revision) {
            ctx->session_id = ctx->header_session;
        }
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


ngx_table_elt_t *
ngx_http_mcp_find_header(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return NULL;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len == name->len
            && ngx_strncasecmp(h[i].key.data, name->data, name->len) == 0)
        {
            return &h[i];
        }
    }
}


/* one walk for all; the values are trimmed, nginx leaves tabs in them */

static void
ngx_http_mcp_read_headers(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t         value;
    ngx_uint_t        i, accepts, json, sse;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    accepts = 0;
    json = 0;
    sse = 0;
    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        value = h[i].value;

        while (value.len && (value.data[value.len - 1] == ' '
                             || value.data[value.len - 1] == '\t'))
        {
            value.len--;
        }

        while (value.len && (value.data[0] == ' ' || value.data[0] == '\t')) {
            value.data++;
            value.len--;
        }

        switch (h[i].key.len) {

        case sizeof("accept") - 1:

            if (ngx_memcmp(h[i].lowcase_key, "accept", 6) == 0) {
                ngx_http_mcp_parse_accept(&value, &json, &sse);
                accepts = 1;

            } else if (ngx_memcmp(h[i].lowcase_key, "origin", 6) == 0) {
                ctx->header_origin = value;
            }

            break;

        case sizeof("last-event-id") - 1:

            if (ngx_memcmp(h[i].lowcase_key, "last-event-id", 13) == 0) {
                ctx->header_last_event = value;
            }

            break;

        case sizeof("mcp-session-id") - 1:

            if (ngx_memcmp(h[i].lowcase_key, "mcp-session-id", 14) == 0) {
                ctx->header_session = value;
            }

            break;

        case sizeof("mcp-protocol-version") - 1:

            if (ngx_memcmp(h[i].lowcase_key, "mcp-protocol-version", 20) == 0) {
                ctx->header_version = value;
            }

            break;
        }
    }

    if (!accepts || (json & 1)) {
        ctx->accept |= NGX_HTTP_MCP_ACCEPT_JSON;
    }

    if (!accepts || (sse & 1)) {
        ctx->accept |= NGX_HTTP_MCP_ACCEPT_SSE;
    }
}


/*
 * The most specific range that matches decides (RFC 9110, section 12.5.1):
 * the greatest of (specificity << 1) + allowed is kept.
 */

static void
ngx_http_mcp_parse_accept(ngx_str_t *accept, ngx_uint_t *json, ngx_uint_t *sse)
{
    size_t       len;
    u_char      *p, *last, *start;
    ngx_uint_t   i, rank;

    static struct {
        ngx_str_t   range;
        ngx_uint_t  rank;
        ngx_uint_t  json;
        ngx_uint_t  sse;
    } ranges[] = {
        { ngx_string("*/*"), 2, 1, 1 },
        { ngx_string("application/*"), 4, 1, 0 },
        { ngx_string("text/*"), 4, 0, 1 },
        { ngx_string("application/json"), 6, 1, 0 },
        { ngx_string("text/event-stream"), 6, 0, 1 },
        { ngx_null_string, 0, 0, 0 }
    };

    p = accept->data;
    last = p + accept->len;

    while (p < last) {

        while (p < last && (*p == ' ' || *p == '\t' || *p == ',')) {
            p++;
        }

        start = p;

        while (p < last && *p != ',' && *p != ';' && *p != ' ' && *p != '\t') {
            p++;
        }

        len = p - start;
        rank = 1;

        while (p < last && *p != ',') {
            p++;
        }

        /* "q=0" and its like are "no" */

        if (ngx_http_mcp_weight_zero(start + len, p)) {
            rank = 0;
        }

        for (i = 0; ranges[i].rank; i++) {

            if (ranges[i].range.len != len
                || ngx_strncasecmp(ranges[i].range.data, start, len) != 0)
            {
                continue;
            }

            rank += ranges[i].rank;

            if (ranges[i].json) {
                *json = ngx_max(*json, rank);
            }

            if (ranges[i].sse) {
                *sse = ngx_max(*sse, rank);
            }

            break;
        }
    }
}


static ngx_uint_t
ngx_http_mcp_weight_zero(u_char *p, u_char *last)
{
    while (p + 3 <= last) {

        if ((*p == 'q' || *p == 'Q') && p[1] == '=') {

            if (p[2] != '0') {
                return 0;
            }

            for (p += 3; p < last; p++) {
                if (*p >= '1' && *p <= '9') {
                    return 0;
                }
            }

            return 1;
        }

        p++;
    }

    return 0;
}


static ngx_uint_t
ngx_http_mcp_is_json(ngx_http_request_t *r)
{
    size_t      len;
    u_char     *p;
    ngx_str_t  *type;

    if (r->headers_in.content_type == NULL) {
        return 0;
    }

    type = &r->headers_in.content_type->value;
    len = sizeof("application/json") - 1;

    if (type->len < len
        || ngx_strncasecmp(type->data, (u_char *) "application/json", len) != 0)
    {
        return 0;
    }

    for (p = type->data + len; p < type->data + type->len; p++) {

        if (*p == ';') {
            return 1;
        }

        if (*p != ' ' && *p != '\t') {
            return 0;
        }
    }

    return 1;
}


static ngx_int_t
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
                          "mcp could not read the request body back");
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

    rc = ngx_mcp_message_parse(ctx->message, &ctx->body, &ctx->bad);

    if (rc != NGX_OK) {
        ctx->bad_status = NGX_HTTP_BAD_REQUEST;
        ctx->bad_code = rc;
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
        return ngx_http_mcp_scan_batch(r, ctx);
    }

    if (m->kind == NGX_MCP_RESPONSE) {
        return NGX_OK;
    }

    return ngx_http_mcp_scan_scope(r, m, &ctx->scope) == NGX_OK
           ? ngx_http_mcp_scan_initialize(r, ctx) : NGX_ERROR;
}


/* what refuses the whole comes before anything of it runs */

static ngx_int_t
ngx_http_mcp_scan_batch(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t           rest, text;
    ngx_uint_t          n;
    const char         *bad;
    ngx_mcp_message_t  *m;

    m = ngx_palloc(r->pool, sizeof(ngx_mcp_message_t));
    if (m == NULL) {
        return NGX_ERROR;
    }

    bad = NULL;
    rest = ctx->body;

    for (n = 0; ngx_mcp_json_element(&rest, &text) == NGX_OK; n++) {

        if (n == NGX_HTTP_MCP_BATCH_MAX) {
            bad = "a batch has at most 128 messages";
            break;
        }

        if (ngx_mcp_message_parse(m, &text, &bad) == NGX_OK
            && (m->method_code == NGX_MCP_METHOD_INITIALIZE || m->modern))
        {
            bad = "initialize cannot be part of a batch";
            break;
        }

        bad = NULL;
    }

    if (n == 0) {
        bad = "a batch must not be empty";
    }

    if (bad) {
        ctx->bad = bad;
        ctx->bad_status = NGX_HTTP_BAD_REQUEST;
        ctx->bad_code = NGX_MCP_INVALID_REQUEST;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_scan_scope(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_http_mcp_scope_t *scope)
{
    scope->request_id = m->id;

    if (m->method_code != NGX_MCP_METHOD_OTHER) {
        scope->method = *ngx_mcp_method_name(m->method_code);

    } else if (ngx_http_mcp_value(r, m, NGX_MCP_PATH_METHOD, &scope->method)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_value(r, m, NGX_MCP_PATH_NAME, &scope->name) != NGX_OK) {
        return NGX_ERROR;
    }

    if (scope->name.len == 0) {
        return ngx_http_mcp_value(r, m, NGX_MCP_PATH_URI, &scope->name);
    }

    return NGX_OK;
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

    if (ngx_http_mcp_value(r, m, NGX_MCP_PATH_CLIENT_NAME, &ctx->client_name)
        != NGX_OK
        || ngx_http_mcp_value(r, m, NGX_MCP_PATH_CLIENT_VERSION,
                              &ctx->client_version)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->session_id.len) {
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

    ctx->session_id.data = p;
    ctx->session_id.len = NGX_MCP_UUID_LEN;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_value(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_mcp_path_e path, ngx_str_t *value)
{
    size_t  i;

    if (m->json.members[path].type != NGX_MCP_JSON_STRING) {
        return NGX_OK;
    }

    *value = ngx_mcp_message_string(m, path, r->pool);

    if (value->data == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < value->len; i++) {
        if (value->data[i] < 0x20 || value->data[i] == 0x7f) {
            value->data[i] = '?';
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_content_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_str_t                 allow;
    const char               *why;
    ngx_http_mcp_ctx_t       *ctx;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    ctx = ngx_http_mcp_get_ctx(r, mlcf);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "mcp endpoint \"%V\" was reached by a subrequest",
                      &mlcf->name);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method != NGX_HTTP_POST) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (!ctx->origin_ok) {
        if (r->method == NGX_HTTP_POST) {
            rc = ngx_http_discard_request_body(r);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        return ngx_http_mcp_refuse(r, NGX_HTTP_FORBIDDEN, NGX_MCP_REFUSED,
                                   "the Origin is not allowed here");
    }

    switch (r->method) {

    case NGX_HTTP_POST:

        if (!ctx->message) {
            rc = ngx_http_discard_request_body(r);

            if (rc != NGX_OK) {
                return rc;
            }

            return ngx_http_mcp_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                             NGX_MCP_REFUSED,
                             "Content-Type must be application/json");
        }

        if (ctx->bad) {
            return ngx_http_mcp_refuse(r, ctx->bad_status, ctx->bad_code,
                                       ctx->bad);
        }

        if (ctx->accept == 0) {
            return ngx_http_mcp_refuse(r, 406,
                             NGX_MCP_REFUSED,
                             "Accept must allow application/json or "
                             "text/event-stream");
        }

        break;

    case NGX_HTTP_GET:

        if (!(ctx->accept & NGX_HTTP_MCP_ACCEPT_SSE)) {
            return ngx_http_mcp_refuse(r, 406,
                             NGX_MCP_REFUSED,
                             "Accept must allow text/event-stream");
        }

        break;

    case NGX_HTTP_DELETE:
        break;

    default:
        ngx_str_set(&allow, "GET, POST, DELETE");

        if (ngx_http_mcp_header(r, "Allow", &allow) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_mcp_refuse(r, NGX_HTTP_NOT_ALLOWED, NGX_MCP_REFUSED,
                                   "the method must be POST, GET or DELETE");
    }

    /* what decides about access is computed here and not before */

    rc = ngx_http_mcp_evaluate(r, ctx, &why);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_FORBIDDEN, NGX_MCP_REFUSED,
                                   why);
    }

    switch (r->method) {

    case NGX_HTTP_POST:
        return ngx_http_mcp_post(r, ctx);

    case NGX_HTTP_GET:
        return ngx_http_mcp_get(r, ctx);

    default: /* NGX_HTTP_DELETE */
        return ngx_http_mcp_delete(r, ctx);
    }
}


/*
 * The request's session, found by id, endpoint, tenant and identity.  NGX_OK,
 * or NGX_DECLINED with what the handler returns in *refusal.
 */

static ngx_int_t
ngx_http_mcp_find_session(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    ngx_int_t *refusal)
{
    if (ctx->header_version.len
        && (ngx_mcp_revision_parse(&ctx->header_version)
            == NGX_MCP_REVISION_UNKNOWN
            || ngx_mcp_revision_parse(&ctx->header_version)
               == NGX_MCP_2026_07_28))
    {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_REFUSED,
                             "Unsupported protocol version (supported "
                             "versions: 2025-11-25, 2025-06-18, 2025-03-26)");
        return NGX_DECLINED;
    }

    if (ctx->header_session.len == 0) {
        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                             NGX_MCP_REFUSED,
                             "the Mcp-Session-Id header is missing; begin "
                             "with initialize");
        return NGX_DECLINED;
    }

    if (ngx_mcp_session_find(ctx->conf->zone, &ctx->header_session,
                             &ctx->conf->name, &ctx->tenant, &ctx->identity,
                             &ctx->session)
        != NGX_OK)
    {
        ngx_memzero(&ctx->session, sizeof(ngx_mcp_session_t));
        ngx_str_null(&ctx->session_id);

        *refusal = ngx_http_mcp_refuse(r, NGX_HTTP_NOT_FOUND,
                             NGX_MCP_SESSION_NOT_FOUND, "Session not found");
        return NGX_DECLINED;
    }

    ctx->session_id = ctx->header_session;

    if (ctx->client_name.len == 0) {
        ctx->client_name = ctx->session.client_name;
        ctx->client_version = ctx->session.client_version;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_post(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t           refusal;
    ngx_mcp_message_t  *m;

    m = ctx->message;

    if (m->modern
        || (m->kind == NGX_MCP_REQUEST
            && m->method_code == NGX_MCP_METHOD_DISCOVER))
    {
        /* what makes a dual-era client begin with initialize */

        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST, NGX_MCP_REFUSED,
                                   "this endpoint speaks 2025-11-25, "
                                   "2025-06-18 and 2025-03-26; begin with "
                                   "initialize");
    }

    if (m->kind == NGX_MCP_REQUEST
        && m->method_code == NGX_MCP_METHOD_INITIALIZE)
    {
        return ngx_http_mcp_initialize(r, ctx);
    }

    if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    switch (m->kind) {

    case NGX_MCP_REQUEST:
        return ngx_http_mcp_call_start(r, ctx, m);

    case NGX_MCP_BATCH:
        return ngx_http_mcp_batch(r, ctx);

    default: /* NGX_MCP_NOTIFICATION, NGX_MCP_RESPONSE */
        return ngx_http_mcp_notice(r, ctx, m);
    }
}


static ngx_int_t
ngx_http_mcp_get(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t                 rc, refusal;
    uint32_t                  line;
    ngx_uint_t                gap;
    ngx_mcp_cursor_t          from, *fp;
    ngx_mcp_event_id_t        id;
    ngx_http_mcp_upstream_t  *u;

    if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    line = NGX_MCP_GENERAL_LINE;
    gap = 0;
    fp = NULL;

    if (ctx->header_last_event.len) {

        if (ngx_mcp_event_id_parse(&ctx->header_last_event, &id) == NGX_OK
            && id.generation == ngx_mcp_zone_generation(ctx->conf->zone))
        {
            line = id.line;
            from.own = id.own;
            from.shared = id.shared;
            fp = &from;

        } else {
            gap = 1;
        }
    }

    u = ctx->conf->upstreams ? ctx->conf->upstreams->elts : NULL;

    rc = ngx_http_mcp_stream_open(r, line, fp, gap, NULL);

    if (rc == NGX_DONE && u && u->listen && line == NGX_MCP_GENERAL_LINE) {
        ngx_http_mcp_listen(u, r, ctx->session.ref, &ctx->session_id,
                            &ctx->tenant);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_delete(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  refusal;

    if (ngx_http_mcp_find_session(r, ctx, &refusal) != NGX_OK) {
        return refusal;
    }

    ngx_mcp_session_end(ctx->conf->zone, ctx->session.ref,
                        NGX_MCP_COUNTER_SESSIONS_DELETED);

    return ngx_http_mcp_answer(r, NGX_HTTP_OK, NULL);
}


ngx_http_request_t *
ngx_http_mcp_background_request(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_audience_t *audience)
{
    ngx_http_request_t  *r;
    ngx_http_mcp_ctx_t  *ctx;

    r = ngx_http_mcp_background_create(u->conf_ctx, &u->server, ngx_cycle->log,
                                       NULL);
    if (r == NULL) {
        return NULL;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_ctx_t));
    if (ctx == NULL) {
        goto failed;
    }

    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);
    ctx->background = 1;

    ctx->tenant.data = ngx_pstrdup(r->pool, &audience->tenant);
    ctx->session_id.data = ngx_pstrdup(r->pool, &audience->session);


    if (ctx->tenant.data == NULL || ctx->session_id.data == NULL) {
        goto failed;
    }

    ctx->tenant.len = audience->tenant.len;
    ctx->session_id.len = audience->session.len;

    ngx_http_set_ctx(r, ctx, ngx_http_mcp_module);

    return r;

failed:

    ngx_http_mcp_background_close(r);

    return NULL;
}


void
ngx_http_mcp_farewell_doorbell(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *upstream, ngx_str_t *id, ngx_str_t *tenant, ngx_uint_t revision)
{
    ngx_uint_t                  i, n;
    ngx_http_mcp_upstream_t    *u;
    ngx_http_mcp_loc_conf_t   **eps;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_mcp_module);
    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->endpoints.nelts; i++) {

        if (eps[i]->zone != zone || eps[i]->upstreams == NULL
            || eps[i]->name.len != endpoint->len
            || ngx_memcmp(eps[i]->name.data, endpoint->data, endpoint->len)
               != 0)
        {
            continue;
        }

        u = eps[i]->upstreams->elts;

        for (n = 0; n < eps[i]->upstreams->nelts; n++) {

            if (u[n].name.len == upstream->len
                && ngx_memcmp(u[n].name.data, upstream->data, upstream->len)
                   == 0)
            {
                ngx_http_mcp_farewell(&u[n], tenant, id, revision);
                return;
            }
        }
    }
}
