
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call_park.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_header_iter.h"
#include "ngx_http_mcp_input.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_offer.h"
#include "ngx_http_mcp_server_request.h"
#include "ngx_http_mcp_stream_body.h"
#include "ngx_http_mcp_upstream_message.h"
#include "ngx_mcp_envelope.h"
#include "ngx_mcp_splice.h"


static ngx_uint_t ngx_http_mcp_modern_client_is(ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_scanned(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_post(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_bare(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_notification(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_version(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_headers(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static const char *ngx_http_mcp_modern_client_removed(ngx_uint_t method);
static ngx_int_t ngx_http_mcp_modern_client_params(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_tool(ngx_http_mcp_list_copy_t *list,
    ngx_str_t *name, ngx_pool_t *pool, ngx_str_t *tool);
static ngx_int_t ngx_http_mcp_modern_client_param(void *data, ngx_str_t *name,
    ngx_str_t *value);
static ngx_int_t ngx_http_mcp_modern_client_mismatch(ngx_http_request_t *r,
    const char *why);
static ngx_int_t ngx_http_mcp_modern_client_unsupported_header(
    ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_unsupported(ngx_http_request_t *r,
    ngx_str_t *requested);
static ngx_uint_t ngx_http_mcp_modern_client_status(ngx_uint_t status,
    ngx_int_t code);
static ngx_str_t ngx_http_mcp_modern_client_error(ngx_pool_t *pool,
    ngx_uint_t revision, ngx_str_t *id, ngx_int_t code, ngx_str_t *message,
    ngx_str_t *data);
static ngx_str_t ngx_http_mcp_modern_client_result(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *id, ngx_str_t *result);
static ngx_str_t ngx_http_mcp_modern_client_stamp(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool);
static ngx_str_t ngx_http_mcp_modern_client_members(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *meta);
static ngx_int_t ngx_http_mcp_modern_client_hints(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *hints);
static ngx_msec_t ngx_http_mcp_modern_client_ttl(ngx_http_mcp_ctx_t *ctx);
static ngx_uint_t ngx_http_mcp_modern_client_public(ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_modern_client_meta(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *meta, ngx_str_t *object);
static ngx_int_t ngx_http_mcp_modern_client_info_member(
    ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool, ngx_str_t *member);
static ngx_uint_t ngx_http_mcp_modern_client_cacheable(ngx_uint_t method);
static ngx_int_t ngx_http_mcp_modern_client_answer(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json, ngx_str_t *text,
    size_t room, ngx_uint_t *status);
static ngx_int_t ngx_http_mcp_modern_client_pass(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_stamp_t *stamp);
static ngx_int_t ngx_http_mcp_modern_client_stamped(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json, ngx_str_t *text,
    size_t room);
static ngx_uint_t ngx_http_mcp_modern_client_missing(ngx_mcp_json_t *json,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_modern_client_failed(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json, ngx_str_t *text,
    ngx_uint_t from, ngx_uint_t *status);
static ngx_int_t ngx_http_mcp_modern_client_pages(ngx_http_mcp_ctx_t *ctx,
    ngx_str_t *error, ngx_str_t *text, ngx_uint_t *status);
static ngx_int_t ngx_http_mcp_modern_client_offer(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made);
static ngx_int_t ngx_http_mcp_modern_client_discover(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made);
static ngx_str_t ngx_http_mcp_modern_client_capabilities(ngx_pool_t *pool,
    ngx_str_t *capabilities);
static ngx_int_t ngx_http_mcp_modern_client_server_request(
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_pool_t **pool, ngx_str_t *out);
static u_char *ngx_http_mcp_modern_client_begin(ngx_http_mcp_stream_t *s,
    ngx_uint_t revision, u_char *p);
static u_char *ngx_http_mcp_modern_client_event(ngx_http_mcp_stream_t *s,
    u_char *p);
static ngx_int_t ngx_http_mcp_modern_client_input(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_input_t *input);
static ngx_str_t ngx_http_mcp_modern_client_round(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_t *input);


ngx_http_mcp_client_t  ngx_http_mcp_client_modern = {
    .methods = ngx_string("POST"),
    .sessionless = 1,
    .is = ngx_http_mcp_modern_client_is,
    .scanned = ngx_http_mcp_modern_client_scanned,
    .post = ngx_http_mcp_modern_client_post,
    .status = ngx_http_mcp_modern_client_status,
    .error = ngx_http_mcp_modern_client_error,
    .result = ngx_http_mcp_modern_client_result,
    .stamp = ngx_http_mcp_modern_client_stamp,
    .answer = ngx_http_mcp_modern_client_answer,
    .pass = ngx_http_mcp_modern_client_pass,
    .offer = ngx_http_mcp_modern_client_offer,
    .server_request = ngx_http_mcp_modern_client_server_request,
    .resumes = NGX_MCP_REVISION_UNKNOWN,
    .begin = ngx_http_mcp_modern_client_begin,
    .event = ngx_http_mcp_modern_client_event,
    .input = ngx_http_mcp_modern_client_input,
    .round = ngx_http_mcp_modern_client_round
};


/* members of a result that the module writes in place of the upstream's */

static ngx_str_t  ngx_http_mcp_modern_reserved[] = {
    ngx_string("resultType"),
    ngx_string("ttlMs"),
    ngx_string("cacheScope"),
    ngx_string("_meta"),
    ngx_null_string
};

static ngx_str_t  ngx_http_mcp_modern_info[] = {
    ngx_string("io.modelcontextprotocol/serverInfo"),
    ngx_null_string
};


/* returns whether the request is treated as one of 2026-07-28 */

static ngx_uint_t
ngx_http_mcp_modern_client_is(ngx_http_mcp_ctx_t *ctx)
{
    ngx_mcp_message_t  *m;

    if (!(ctx->conf->versions & NGX_HTTP_MCP_MODERN_VERSIONS)) {
        return 0;
    }

    m = ctx->message;

    return !(ctx->conf->versions & NGX_HTTP_MCP_LEGACY_VERSIONS)
           || (m && (m->modern
                     || ctx->header_revision == NGX_MCP_2026_07_28));
}


static ngx_int_t
ngx_http_mcp_modern_client_scanned(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    /* a client of 2026-07-28 has no session: Mcp-Session-Id is ignored */

    ctx->session_checked = 1;
    ctx->caller.revision = NGX_MCP_2026_07_28;

    if (ngx_http_mcp_ctx_value(r, ctx->message, NGX_MCP_PATH_META_CLIENT_NAME,
                               &ctx->client_name)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_ctx_value(r, ctx->message,
                                  NGX_MCP_PATH_META_CLIENT_VERSION,
                                  &ctx->client_version);
}


static ngx_int_t
ngx_http_mcp_modern_client_post(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t           rc;
    const char         *why;
    ngx_mcp_message_t  *m;
    ngx_mcp_envelope_t  envelope;

    m = ctx->message;

    if (ctx->scan_error && m->id.len) {

        /* only params are wrong; a fault of a header is reported first */

        m->kind = NGX_MCP_REQUEST;
    }

    if (m->kind == NGX_MCP_NOTIFICATION) {
        return ngx_http_mcp_modern_client_notification(r, ctx);
    }

    if (m->kind != NGX_MCP_REQUEST) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                                   NGX_MCP_INVALID_REQUEST,
                                   "a message must be a single request or "
                                   "notification");
    }

    if (!m->modern) {
        return ngx_http_mcp_modern_client_bare(r, ctx);
    }

    if (ngx_mcp_envelope_read(m, &envelope, &why) != NGX_OK) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                                   NGX_MCP_INVALID_PARAMS, why);
    }

    rc = ngx_http_mcp_modern_client_version(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (!(ctx->conf->versions & NGX_HTTP_MCP_MODERN_VERSIONS
          & NGX_HTTP_MCP_VERSION(envelope.revision)))
    {
        return ngx_http_mcp_modern_client_unsupported(r, &envelope.requested);
    }

    rc = ngx_http_mcp_modern_client_headers(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    why = ngx_http_mcp_modern_client_removed(m->method_code);

    if (why) {
        return ngx_http_mcp_refuse(r, NGX_HTTP_NOT_FOUND,
                                   NGX_MCP_METHOD_NOT_FOUND, why);
    }

    if (ctx->scan_error) {
        return ngx_http_mcp_refuse(r, ctx->scan_status, ctx->scan_code,
                                   ctx->scan_error);
    }

    ctx->caller.level = envelope.level;
    ctx->caller.capabilities = envelope.capabilities;

    if ((m->method_code == NGX_MCP_METHOD_LISTEN
         || ctx->conf->bridge.lists == NGX_HTTP_MCP_LIST_CACHE_ON
         || (ctx->conf->bridge.lists_passing
             && ngx_http_mcp_modern_client_cacheable(m->method_code)))
        && ngx_http_mcp_declares(r, ctx, &envelope.capabilities) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (m->method_code == NGX_MCP_METHOD_TOOLS_CALL) {
        rc = ngx_http_mcp_modern_client_params(r, ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (m->method_code == NGX_MCP_METHOD_DISCOVER) {
        return ngx_http_mcp_initialize(r, ctx);
    }

    if (m->method_code == NGX_MCP_METHOD_LISTEN) {
        return ngx_http_mcp_listen(r, ctx);
    }

    return ngx_http_mcp_call_start(r, ctx, m);
}


/* refuses a request that lacks the members of 2026-07-28 in "_meta" */

static ngx_int_t
ngx_http_mcp_modern_client_bare(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t           requested;
    const char         *why;
    ngx_mcp_message_t  *m;
    ngx_mcp_envelope_t  envelope;

    m = ctx->message;

    if (ctx->header_revision == NGX_MCP_2026_07_28) {

        if (m->method_code == NGX_MCP_METHOD_INITIALIZE) {
            return ngx_http_mcp_modern_client_mismatch(r,
                                 "MCP-Protocol-Version names a revision that "
                                 "has no initialize; send server/discover");
        }

        (void) ngx_mcp_envelope_read(m, &envelope, &why);

        return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                                   NGX_MCP_INVALID_PARAMS, why);
    }

    /* the client asks for a revision that the endpoint does not offer */

    requested = ngx_mcp_message_member(m, NGX_MCP_PATH_VERSION);

    if (requested.len && requested.data[0] == '"') {
        return ngx_http_mcp_modern_client_unsupported(r, &requested);
    }

    if (ctx->header_version.len) {
        return ngx_http_mcp_modern_client_unsupported_header(r, ctx);
    }

    ngx_str_set(&requested, "\"2025-03-26\"");

    return ngx_http_mcp_modern_client_unsupported(r, &requested);
}


/*
 * Answers a notification with 202 and ignores it: a client of 2026-07-28
 * cancels a request by closing the response's stream.
 */

static ngx_int_t
ngx_http_mcp_modern_client_notification(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->message->modern) {
        rc = ngx_http_mcp_modern_client_version(r, ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    /* if "_meta" names a version, the header has the same one, as checked */

    if (ctx->header_version.len == 0
        || (NGX_HTTP_MCP_VERSION(ctx->header_revision) & ctx->conf->versions
            & NGX_HTTP_MCP_MODERN_VERSIONS))
    {
        return ngx_http_mcp_answer(r, NGX_HTTP_ACCEPTED, NULL);
    }

    return ngx_http_mcp_modern_client_unsupported_header(r, ctx);
}


static ngx_int_t
ngx_http_mcp_modern_client_unsupported_header(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    u_char     *p;
    ngx_str_t   requested;

    p = ngx_pnalloc(r->pool, ngx_mcp_json_escaped_len(&ctx->header_version));
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    requested.data = p;
    requested.len = ngx_mcp_json_escape(p, &ctx->header_version) - p;

    return ngx_http_mcp_modern_client_unsupported(r, &requested);
}


/*
 * This function, ..._headers() and ..._params() refuse a request whose headers
 * differ from its body.  NGX_DECLINED: no header differs; else the content
 * handler returns the result.
 */

static ngx_int_t
ngx_http_mcp_modern_client_version(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t    version;
    const char  *why;

    version = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_META_VERSION);

    if (ctx->header_twice) {
        why = "a header of MCP appears twice";

    } else if (ctx->header_version.len == 0) {
        why = "the MCP-Protocol-Version header is missing";

    } else if (!ngx_mcp_json_is(&version, &ctx->header_version)) {
        why = "MCP-Protocol-Version is another version than that in "
              "params._meta";

    } else {
        return NGX_DECLINED;
    }

    return ngx_http_mcp_modern_client_mismatch(r, why);
}


/* compares Mcp-Method and Mcp-Name with the body */

static ngx_int_t
ngx_http_mcp_modern_client_headers(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t           value;
    const char         *why;
    ngx_mcp_message_t  *m;

    m = ctx->message;

    value = ngx_mcp_message_string(m, NGX_MCP_PATH_METHOD, r->pool);

    if (value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->header_method.len == 0) {
        why = "the Mcp-Method header is missing";
        goto mismatch;
    }

    if (!ngx_mcp_equal(&ctx->header_method, &value)) {
        why = "Mcp-Method is not the method of the message";
        goto mismatch;
    }

    switch (m->method_code) {

    case NGX_MCP_METHOD_TOOLS_CALL:
    case NGX_MCP_METHOD_PROMPTS_GET:
    case NGX_MCP_METHOD_RESOURCES_READ:
        break;

    default:
        return NGX_DECLINED;
    }

    if (ctx->scan_error) {

        /* the params are wrong: they have no name to compare Mcp-Name with */

        return NGX_DECLINED;
    }

    if (ctx->header_name.data == NULL) {
        why = "the Mcp-Name header is missing";
        goto mismatch;
    }

    value = ngx_mcp_message_string(m, m->subject, r->pool);

    if (value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_mcp_header_is(&ctx->header_name, &value) == NGX_OK) {
        return NGX_DECLINED;
    }

    why = "Mcp-Name is not the name or uri in params";

mismatch:

    return ngx_http_mcp_modern_client_mismatch(r, why);
}


/* returns the message for a method that 2026-07-28 has removed, or NULL */

static const char *
ngx_http_mcp_modern_client_removed(ngx_uint_t method)
{
    switch (method) {

    case NGX_MCP_METHOD_INITIALIZE:
        return "Method not found; send server/discover";

    case NGX_MCP_METHOD_SUBSCRIBE:
    case NGX_MCP_METHOD_UNSUBSCRIBE:
        return "Method not found; use subscriptions/listen";

    case NGX_MCP_METHOD_PING:
    case NGX_MCP_METHOD_SET_LEVEL:
    case NGX_MCP_METHOD_SAMPLING:
    case NGX_MCP_METHOD_ELICITATION:
    case NGX_MCP_METHOD_ROOTS_LIST:
        return "Method not found";

    default:
        return NULL;
    }
}


/*
 * Compares Mcp-Param-* headers with the arguments of a tool, if a cached list
 * has the tool; otherwise the tool's schema is not known.
 */

static ngx_int_t
ngx_http_mcp_modern_client_params(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_str_t                  name, tool, arguments;
    ngx_mcp_message_t         *m;
    ngx_http_mcp_list_copy_t  *list;

    m = ctx->message;

    if (ctx->conf->bridge.lists != NGX_HTTP_MCP_LIST_CACHE_ON
        || ctx->conf->bridge.router.n == 0
        || ngx_http_mcp_list_private(r, ctx)
        || ngx_http_mcp_list_cache_get(&ctx->conf->bridge, &ctx->caller,
                                       NGX_MCP_LIST_TOOLS, 0, &list)
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    name = ngx_mcp_message_string(m, NGX_MCP_PATH_NAME, r->pool);

    rc = name.data ? ngx_http_mcp_modern_client_tool(list, &name, r->pool,
                                                     &tool)
                   : NGX_ABORT;

    if (rc == NGX_OK) {

        arguments = ngx_mcp_message_member(m, NGX_MCP_PATH_ARGUMENTS);

        rc = m->json.members[NGX_MCP_PATH_ARGUMENTS].count > 1
             ? NGX_DECLINED
             : ngx_mcp_params_walk(&tool, &arguments, r->pool,
                                   ngx_http_mcp_modern_client_param, r);

    } else if (rc == NGX_DECLINED) {
        rc = NGX_OK;
    }

    ngx_http_mcp_list_cache_release(list);

    if (rc == NGX_OK) {
        return NGX_DECLINED;
    }

    return rc == NGX_ABORT
           ? NGX_HTTP_INTERNAL_SERVER_ERROR
           : ngx_http_mcp_modern_client_mismatch(r,
                 "an Mcp-Param header is missing, or is not the "
                 "argument of the tool that it repeats");
}


/*
 * Sets *tool to the raw entry of the tool.  NGX_OK; NGX_DECLINED: the list has
 * no such tool; NGX_ABORT: no memory.
 */

static ngx_int_t
ngx_http_mcp_modern_client_tool(ngx_http_mcp_list_copy_t *list,
    ngx_str_t *name, ngx_pool_t *pool, ngx_str_t *tool)
{
    ngx_str_t  rest, value, text;

    if (!ngx_http_mcp_list_cache_annotated(list)) {
        return NGX_DECLINED;
    }

    rest.data = list->text.data;
    rest.len = list->text.len;

    text.data = ngx_pnalloc(pool, 6 * name->len + 2);
    if (text.data == NULL) {
        return NGX_ABORT;
    }

    while (ngx_mcp_json_element(&rest, tool) == NGX_OK) {

        value = ngx_mcp_json_get(tool, "name");

        if (value.len && value.data[0] == '"'
            && value.len <= 6 * name->len + 2)
        {
            text.len = ngx_mcp_json_unescape(text.data, &value) - text.data;

            if (ngx_mcp_equal(&text, name)) {
                return NGX_OK;
            }
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_modern_client_param(void *data, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_http_request_t *r = data;

    ngx_str_t                   header;
    ngx_uint_t                  n;
    ngx_table_elt_t            *h;
    ngx_http_mcp_header_iter_t  iter;

    static ngx_str_t  prefix = ngx_string("Mcp-Param-");

    n = 0;
    ngx_str_null(&header);
    ngx_http_mcp_header_iter_init(&iter, &r->headers_in.headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (h->key.len == prefix.len + name->len
            && ngx_strncasecmp(h->key.data, prefix.data, prefix.len) == 0
            && ngx_strncasecmp(h->key.data + prefix.len, name->data, name->len)
               == 0)
        {
            header = ngx_http_mcp_trim(h->value);
            n++;
        }
    }

    if (value->len == 0) {
        return n ? NGX_DECLINED : NGX_OK;
    }

    return n == 1 ? ngx_mcp_header_is_json(&header, value, r->pool)
                  : NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_modern_client_mismatch(ngx_http_request_t *r, const char *why)
{
    return ngx_http_mcp_refuse(r, NGX_HTTP_BAD_REQUEST,
                               NGX_MCP_HEADER_MISMATCH, why);
}


/* refuses a version; requested: the version as a raw JSON string */

static ngx_int_t
ngx_http_mcp_modern_client_unsupported(ngx_http_request_t *r,
    ngx_str_t *requested)
{
    u_char                *p;
    ngx_http_mcp_ctx_t    *ctx;
    ngx_http_mcp_reply_t   reply;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    p = ngx_pnalloc(r->pool, sizeof("{\"supported\":[\"2026-07-28\"],"
                                    "\"requested\":}") + requested->len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    (void) ngx_http_mcp_reply_error(&reply, NGX_HTTP_BAD_REQUEST,
                                    NGX_MCP_UNSUPPORTED_VERSION,
                                    "Unsupported protocol version");

    reply.data.data = p;
    reply.data.len = ngx_sprintf(p, "{\"supported\":[\"%V\"],\"requested\":%V}",
                                 ngx_mcp_revision_name(NGX_MCP_2026_07_28),
                                 requested)
                     - p;

    return ngx_http_mcp_reply_send(r, &ctx->message->id, &reply);
}


/* returns the HTTP status of an error that the module makes */

static ngx_uint_t
ngx_http_mcp_modern_client_status(ngx_uint_t status, ngx_int_t code)
{
    if (status != NGX_HTTP_OK) {
        return status;
    }

    switch (code) {

    case NGX_MCP_METHOD_NOT_FOUND:
        return NGX_HTTP_NOT_FOUND;

    case NGX_MCP_INVALID_PARAMS:
        return NGX_HTTP_BAD_REQUEST;

    default:
        return status;
    }
}


static ngx_str_t
ngx_http_mcp_modern_client_error(ngx_pool_t *pool, ngx_uint_t revision,
    ngx_str_t *id, ngx_int_t code, ngx_str_t *message, ngx_str_t *data)
{
    if (code == NGX_MCP_NO_RESOURCE) {
        code = NGX_MCP_INVALID_PARAMS;
    }

    return ngx_mcp_error_compose(pool, NGX_MCP_2026_07_28, id, code, message,
                                 data);
}


static ngx_str_t
ngx_http_mcp_modern_client_result(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool,
    ngx_str_t *id, ngx_str_t *result)
{
    ngx_str_t  stamp, whole;

    stamp = ngx_http_mcp_modern_client_stamp(ctx, pool);

    if (stamp.data == NULL) {
        return stamp;
    }

    stamp.len--;

    whole = ngx_mcp_join(pool, &stamp, result, ngx_http_mcp_modern_reserved);

    return whole.data ? ngx_mcp_result_compose(pool, id, &whole) : whole;
}


static ngx_str_t
ngx_http_mcp_modern_client_stamp(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool)
{
    ngx_str_t  none;

    ngx_str_null(&none);

    return ngx_http_mcp_modern_client_members(ctx, pool, &none);
}


/*
 * Returns the raw members that each result gets, with a comma behind each; data
 * NULL: no memory.  meta: the raw "_meta" of the upstream's result, or empty.
 */

static ngx_str_t
ngx_http_mcp_modern_client_members(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool,
    ngx_str_t *meta)
{
    u_char     *p;
    ngx_str_t   out, object, hints;

    out.len = 0;
    out.data = NULL;

    if (ngx_http_mcp_modern_client_meta(ctx, pool, meta, &object) != NGX_OK
        || ngx_http_mcp_modern_client_hints(ctx, pool, &hints) != NGX_OK)
    {
        return out;
    }

    out.data = ngx_pnalloc(pool, hints.len + sizeof(",\"_meta\":,")
                                 + object.len);
    if (out.data == NULL) {
        return out;
    }

    p = ngx_cpymem(out.data, hints.data, hints.len);
    *p++ = ',';

    if (object.len) {
        p = ngx_cpymem(p, "\"_meta\":", sizeof("\"_meta\":") - 1);
        p = ngx_cpymem(p, object.data, object.len);
        *p++ = ',';
    }

    out.len = p - out.data;

    return out;
}


/*
 * Sets *hints to the raw members resultType, ttlMs and cacheScope.  ttlMs and
 * cacheScope of a list are made of the values of its upstreams.
 */

static ngx_int_t
ngx_http_mcp_modern_client_hints(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool,
    ngx_str_t *hints)
{
    u_char      *p;
    ngx_msec_t   ttl;

    if (ctx->kind.len) {

        /* a result that is not "complete" has no ttlMs and no cacheScope */

        p = ngx_pnalloc(pool, sizeof("\"resultType\":") + ctx->kind.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        hints->data = p;
        hints->len = ngx_sprintf(p, "\"resultType\":%V", &ctx->kind) - p;

        return NGX_OK;
    }

    ttl = ngx_http_mcp_modern_client_ttl(ctx);

    if (ttl == 0) {

        if (ngx_http_mcp_modern_client_cacheable(ctx->message->method_code)) {
            ngx_str_set(hints, "\"resultType\":\"complete\",\"ttlMs\":0,"
                               "\"cacheScope\":\"private\"");
        } else {
            ngx_str_set(hints, "\"resultType\":\"complete\"");
        }

        return NGX_OK;
    }

    p = ngx_pnalloc(pool, sizeof("\"resultType\":\"complete\",\"ttlMs\":,"
                                 "\"cacheScope\":\"private\"")
                          + NGX_TIME_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    hints->data = p;
    hints->len = ngx_sprintf(p, "\"resultType\":\"complete\",\"ttlMs\":%M,"
                             "\"cacheScope\":\"%s\"", ttl,
                             ngx_http_mcp_modern_client_public(ctx)
                             ? "public" : "private")
                 - p;

    return NGX_OK;
}


/*
 * Returns ttlMs of the answer.  0: the client must not keep the answer, or the
 * answer is a list with topics, which come and go.
 */

static ngx_msec_t
ngx_http_mcp_modern_client_ttl(ngx_http_mcp_ctx_t *ctx)
{
    if (ctx->hint.until <= ngx_current_msec
        || (ctx->message->method_code != NGX_MCP_METHOD_TOOLS_LIST
            && ngx_http_mcp_list_edited(ctx, ctx->message)))
    {
        return 0;
    }

    return (ngx_msec_t) (ctx->hint.until - ngx_current_msec);
}


/*
 * Returns whether a result may be public: caches in front of nginx give it to
 * all callers of the endpoint, so the result must not depend on the caller.
 */

static ngx_uint_t
ngx_http_mcp_modern_client_public(ngx_http_mcp_ctx_t *ctx)
{
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    return ctx->hint.public && mlcf->deny == NULL && mlcf->bind == NULL
           && mlcf->bridge.lists_key == NULL
           && (mlcf->tenant == NULL || mlcf->tenant->lengths == NULL);
}


/* sets *object to "_meta": serverInfo and the members of the upstream's */

static ngx_int_t
ngx_http_mcp_modern_client_meta(ngx_http_mcp_ctx_t *ctx, ngx_pool_t *pool,
    ngx_str_t *meta, ngx_str_t *object)
{
    ngx_str_t  member;

    if (ngx_http_mcp_modern_client_info_member(ctx, pool, &member) != NGX_OK) {
        return NGX_ERROR;
    }

    if (member.len == 0) {
        *object = *meta;
        return NGX_OK;
    }

    *object = ngx_mcp_join(pool, &member, meta, ngx_http_mcp_modern_info);

    return object->data ? NGX_OK : NGX_ERROR;
}


/* sets *member to the raw serverInfo; empty: serverInfo is not known yet */

static ngx_int_t
ngx_http_mcp_modern_client_info_member(ngx_http_mcp_ctx_t *ctx,
    ngx_pool_t *pool, ngx_str_t *member)
{
    u_char                   *p;
    ngx_str_t                 info;
    ngx_http_mcp_loc_conf_t  *mlcf;

    ngx_str_null(member);

    mlcf = ctx->conf;
    info = mlcf->server_info;

    if (info.len == 0) {
        info = ngx_http_mcp_offer_server(mlcf, &ctx->caller.tenant, pool);
    }

    if (info.len == 0) {
        return NGX_OK;
    }

    member->data = ngx_pnalloc(pool, sizeof("\"\":") + info.len
                                     + ngx_http_mcp_modern_info[0].len);
    if (member->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(member->data, "\"%V\":%V", &ngx_http_mcp_modern_info[0],
                    &info);
    member->len = p - member->data;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_modern_client_cacheable(ngx_uint_t method)
{
    switch (method) {

    case NGX_MCP_METHOD_DISCOVER:
    case NGX_MCP_METHOD_TOOLS_LIST:
    case NGX_MCP_METHOD_PROMPTS_LIST:
    case NGX_MCP_METHOD_RESOURCES_LIST:
    case NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST:
    case NGX_MCP_METHOD_RESOURCES_READ:
        return 1;

    default:
        return 0;
    }
}


static ngx_int_t
ngx_http_mcp_modern_client_answer(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json, ngx_str_t *text,
    size_t room, ngx_uint_t *status)
{
    ngx_uint_t  from;

    from = *status;
    *status = 0;

    if (json->members[NGX_MCP_PATH_RESULT].type == NGX_MCP_JSON_OBJECT) {
        return ngx_http_mcp_modern_client_stamped(r, ctx, json, text, room);
    }

    if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        return ngx_http_mcp_modern_client_failed(r, ctx, json, text, from,
                                                 status);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_modern_client_pass(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_stamp_t *stamp)
{
    stamp->id = ctx->message->id;
    stamp->names = ngx_http_mcp_modern_reserved;
    stamp->meta_names = ngx_http_mcp_modern_info;

    if (ngx_http_mcp_modern_client_hints(ctx, r->pool, &stamp->members)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_modern_client_info_member(ctx, r->pool, &stamp->meta);
}


/*
 * Adds the members of 2026-07-28 to a result, in place of members that the
 * upstream wrote under the same names.
 */

static ngx_int_t
ngx_http_mcp_modern_client_stamped(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json, ngx_str_t *text, size_t room)
{
    u_char          *p, *last;
    ngx_str_t        result, meta, members;
    ngx_mcp_edit_t   edit;

    result = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT, text->data);

    ngx_str_null(&meta);

    if (json->members[NGX_MCP_PATH_RESULT_META].type == NGX_MCP_JSON_OBJECT) {
        meta = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_META, text->data);
    }

    members = ngx_http_mcp_modern_client_members(ctx, r->pool, &meta);

    if (members.data == NULL) {
        return NGX_ERROR;
    }

    edit.start = result.data - text->data;
    edit.end = edit.start;
    edit.text = members;

    if (json->members[NGX_MCP_PATH_RESULT_TYPE].type == NGX_MCP_JSON_ABSENT
        && json->members[NGX_MCP_PATH_RESULT_META].type == NGX_MCP_JSON_ABSENT
        && json->members[NGX_MCP_PATH_RESULT_TTL].type == NGX_MCP_JSON_ABSENT
        && json->members[NGX_MCP_PATH_RESULT_SCOPE].type == NGX_MCP_JSON_ABSENT)
    {
        last = result.data + result.len - 1;

        for (p = result.data + 1; p < last && *p <= ' '; p++) { /* void */ }

        edit.start++;
        edit.end++;
        edit.text.len -= (p == last);

    } else {
        members.len--;

        edit.text = ngx_mcp_join(r->pool, &members, &result,
                                 ngx_http_mcp_modern_reserved);
        if (edit.text.data == NULL) {
            return NGX_ERROR;
        }

        edit.end += result.len;
    }

    if (edit.start == edit.end && edit.text.len <= room) {

        /* the short text in front of the new members moves into the room */

        p = text->data - edit.text.len;
        ngx_memmove(p, text->data, edit.start);
        ngx_memcpy(p + edit.start, edit.text.data, edit.text.len);

        text->data = p;
        text->len += edit.text.len;

        return NGX_OK;
    }

    *text = ngx_mcp_splice(r->pool, text, &edit, 1);

    return text->data ? NGX_OK : NGX_ERROR;
}


/* returns whether the error says which capability the client lacks */

static ngx_uint_t
ngx_http_mcp_modern_client_missing(ngx_mcp_json_t *json, ngx_str_t *text)
{
    ngx_str_t  value;

    value = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);
    value = ngx_mcp_json_get(&value, "data");

    if (value.len && value.data[0] == '{') {
        value = ngx_mcp_json_get(&value, "requiredCapabilities");
    }

    return value.len && value.data[0] == '{';
}


/*
 * Adapts an error: its code may have another or no meaning in 2026-07-28.
 * from: as *status at first in ngx_http_mcp_client_t.answer().
 */

static ngx_int_t
ngx_http_mcp_modern_client_failed(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json, ngx_str_t *text,
    ngx_uint_t from, ngx_uint_t *status)
{
    u_char          *p;
    ngx_int_t        rc, code;
    ngx_str_t        raw, uri, rest, data;
    ngx_uint_t       n;
    ngx_mcp_edit_t   edits[2];

    *status = NGX_HTTP_OK;

    raw = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);
    code = ngx_mcp_error_code(&raw);
    n = 0;

    if (code == NGX_MCP_METHOD_NOT_FOUND) {

        /* with 200 it is an error of a handler, for example of no such tool */

        if (from != NGX_HTTP_OK) {
            *status = ngx_http_mcp_modern_client_status(NGX_HTTP_OK, code);
        }

        return NGX_OK;
    }

    if (code == NGX_MCP_MISSING_CAPABILITY
        && ngx_http_mcp_modern_client_missing(json, text))
    {
        *status = NGX_HTTP_BAD_REQUEST;
        return NGX_OK;
    }

    if (code == NGX_MCP_URL_ELICITATION) {
        rest = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);

        rc = ngx_http_mcp_modern_client_pages(ctx, &rest, text, status);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (code == NGX_MCP_NO_RESOURCE) {
        ctx->error = NGX_MCP_INVALID_PARAMS;
        ngx_str_set(&edits[0].text, "-32602");
        n = 1;

    } else if (code >= NGX_MCP_RESERVED_FIRST && code <= NGX_MCP_RESERVED_LAST)
    {
        ctx->error = NGX_MCP_INTERNAL_ERROR;
        ngx_str_set(&edits[0].text, "-32603");
        n = 1;
    }

    if (n == 0) {
        return NGX_OK;
    }

    edits[0].start = raw.data - text->data;
    edits[0].end = edits[0].start + raw.len;

    uri = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_URI);

    if (code == NGX_MCP_NO_RESOURCE && uri.len) {

        rest = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);
        edits[1].start = rest.data + rest.len - 1 - text->data;
        edits[1].end = edits[1].start;

        data = ngx_mcp_json_get(&rest, "data");

        if (data.len == 0) {
            p = ngx_pnalloc(r->pool, sizeof(",\"data\":{\"uri\":}") + uri.len);
            if (p == NULL) {
                return NGX_ERROR;
            }

            edits[1].text.data = p;
            edits[1].text.len = ngx_sprintf(p, ",\"data\":{\"uri\":%V}", &uri)
                                - p;
            n = 2;
        }
    }

    *text = ngx_mcp_splice(r->pool, text, edits, n);

    return text->data ? NGX_OK : NGX_ERROR;
}


/*
 * Asks the client to visit pages and to send the request again; refuses the
 * request if the client cannot visit pages.  NGX_DECLINED: the error is not
 * about pages, or the client may not be asked during this call.
 */

static ngx_int_t
ngx_http_mcp_modern_client_pages(ngx_http_mcp_ctx_t *ctx, ngx_str_t *error,
    ngx_str_t *text, ngx_uint_t *status)
{
    ngx_int_t              rc;
    ngx_str_t              result, message, data;
    ngx_pool_t            *pool;
    ngx_http_mcp_call_t   *call;
    ngx_http_mcp_input_t   input;

    call = ctx->call;

    if (call == NULL || !ngx_http_mcp_call_park_may(call)) {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_call_input_pages(call, error, &input);

    if (rc != NGX_OK) {
        return rc;
    }

    pool = call->r->pool;

    if (ngx_http_mcp_call_input_capable(call, &input) == NGX_OK) {

        result = ngx_http_mcp_modern_client_round(call, &input);

        if (result.data == NULL) {
            return NGX_ERROR;
        }

        ctx->error = 0;
        ctx->failed = 0;
        *status = 0;

        *text = ngx_mcp_result_compose(pool, &call->message->id, &result);

        return text->data ? NGX_OK : NGX_ERROR;
    }

    ctx->error = NGX_MCP_MISSING_CAPABILITY;
    *status = NGX_HTTP_BAD_REQUEST;

    ngx_str_set(&message, "the upstream wants the client to visit a page");
    ngx_str_set(&data, "{\"requiredCapabilities\":{\"elicitation\":"
                       "{\"url\":{}}}}");

    *text = ngx_mcp_error_compose(pool, NGX_MCP_2026_07_28,
                                  &call->message->id,
                                  NGX_MCP_MISSING_CAPABILITY, &message, &data);

    return text->data ? NGX_OK : NGX_ERROR;
}


/* answers server/discover */

static ngx_int_t
ngx_http_mcp_modern_client_offer(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made)
{
    ngx_str_t  body;

    if (made->discovered.len == 0
        && ngx_http_mcp_modern_client_discover(r, ctx, made) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body = ngx_mcp_result_compose(r->pool, &ctx->message->id,
                                  &made->discovered);

    return body.data ? ngx_http_mcp_answer(r, NGX_HTTP_OK, &body)
                     : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* makes made->discovered, the result of server/discover, of made->text */

static ngx_int_t
ngx_http_mcp_modern_client_discover(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_http_mcp_result_t *made)
{
    u_char     *p;
    ngx_str_t   rest, capabilities, instructions, hints;

    rest.len = made->text.len + 1;
    rest.data = ngx_pnalloc(r->pool, rest.len);

    if (rest.data == NULL) {
        return NGX_ERROR;
    }

    rest.data[0] = '{';
    ngx_memcpy(rest.data + 1, made->text.data, made->text.len);

    capabilities = ngx_mcp_json_get(&rest, "capabilities");
    instructions = ngx_mcp_json_get(&rest, "instructions");

    capabilities = ngx_http_mcp_modern_client_capabilities(r->pool,
                                                           &capabilities);

    if (ngx_http_mcp_modern_client_hints(ctx, r->pool, &hints) != NGX_OK) {
        return NGX_ERROR;
    }

    p = ngx_pnalloc(made->pool,
                    sizeof("{,\"supportedVersions\":[\"2026-07-28\"],"
                           "\"capabilities\":,\"instructions\":,"
                           "\"_meta\":{\"\":}}")
                    + hints.len + capabilities.len + instructions.len
                    + ngx_http_mcp_modern_info[0].len + made->info.len);

    if (capabilities.data == NULL || p == NULL) {
        return NGX_ERROR;
    }

    made->discovered.data = p;

    p = ngx_sprintf(p, "{%V,\"supportedVersions\":[\"%V\"],"
                       "\"capabilities\":%V",
                    &hints, ngx_mcp_revision_name(NGX_MCP_2026_07_28),
                    &capabilities);

    if (instructions.len) {
        p = ngx_sprintf(p, ",\"instructions\":%V", &instructions);
    }

    if (made->info.len) {
        p = ngx_sprintf(p, ",\"_meta\":{\"%V\":%V}",
                        &ngx_http_mcp_modern_info[0], &made->info);
    }

    *p++ = '}';

    made->discovered.len = p - made->discovered.data;

    return NGX_OK;
}


/* copies capabilities without "tasks", which 2026-07-28 does not have */

static ngx_str_t
ngx_http_mcp_modern_client_capabilities(ngx_pool_t *pool,
    ngx_str_t *capabilities)
{
    ngx_str_t  none;

    static ngx_str_t  tasks[] = { ngx_string("tasks"), ngx_null_string };

    ngx_str_null(&none);

    return ngx_mcp_join(pool, &none, capabilities, tasks);
}


/* handles a request or notification that the upstream sends during the call */

static ngx_int_t
ngx_http_mcp_modern_client_server_request(ngx_http_mcp_ctx_t *ctx,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_pool_t **pool,
    ngx_str_t *out)
{
    ngx_str_t                 id, own;
    ngx_uint_t                method;
    ngx_http_mcp_audience_t   audience;

    id = ngx_mcp_json_span(ureq->x->scan, NGX_MCP_PATH_ID, text->data);

    if (id.len) {
        method = ngx_mcp_method_of(ureq->x->scan, text);

        if (method != NGX_MCP_METHOD_PING) {
            return ngx_http_mcp_call_park_ask(ctx->call, ureq, text, method)
                   == NGX_OK ? NGX_DECLINED : NGX_ERROR;
        }

        ngx_http_mcp_call_audience(ctx->call, ureq, &audience);
        ngx_http_mcp_server_request_reply(ureq, &audience, &id, 0, "{}");

        return NGX_DECLINED;
    }

    own = ngx_mcp_message_member(ctx->message, NGX_MCP_PATH_META_TOKEN);

    ngx_http_mcp_call_notified(ctx->call, ureq->x->scan, text, &own, &own);

    return NGX_DECLINED;
}


/*
 * Writes a comment, so that nginx sends the headers at once.  The stream has no
 * event ids and no "retry:", as no client resumes it.
 */

static u_char *
ngx_http_mcp_modern_client_begin(ngx_http_mcp_stream_t *s, ngx_uint_t revision,
    u_char *p)
{
    return ngx_cpymem(p, ":\n\n", sizeof(":\n\n") - 1);
}


static u_char *
ngx_http_mcp_modern_client_event(ngx_http_mcp_stream_t *s, u_char *p)
{
    return ngx_cpymem(p, "data: ", sizeof("data: ") - 1);
}


/*
 * Answers the call with an input round.  The client then sends another request,
 * which has the client's answers and the upstream's state.
 */

static ngx_int_t
ngx_http_mcp_modern_client_input(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_input_t *input)
{
    ngx_str_t             result;
    ngx_http_mcp_reply_t  reply;

    if (ngx_http_mcp_call_input_capable(call, input) != NGX_OK) {
        return NGX_DECLINED;
    }

    result = ngx_http_mcp_modern_client_round(call, input);

    if (result.data == NULL) {
        return NGX_DECLINED;
    }

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    reply.nparts = 1;
    reply.parts[0] = ngx_mcp_result_compose(call->r->pool, &call->message->id,
                                            &result);
    if (reply.parts[0].data == NULL) {
        return NGX_DECLINED;
    }

    ureq->answered = 1;

    ngx_http_mcp_call_reply(call, &reply);
    ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_OK);

    return NGX_OK;
}


static ngx_str_t
ngx_http_mcp_modern_client_round(ngx_http_mcp_call_t *call,
    ngx_http_mcp_input_t *input)
{
    u_char                         *p;
    size_t                          len;
    ngx_str_t                       out, none, meta;
    ngx_uint_t                      i;
    ngx_http_mcp_input_request_t   *request;

    out.len = 0;
    out.data = NULL;

    ngx_str_null(&none);

    if (ngx_http_mcp_modern_client_meta(call->ctx, call->r->pool, &none, &meta)
        != NGX_OK)
    {
        return out;
    }

    len = sizeof("{\"resultType\":\"input_required\",\"inputRequests\":{},"
                 "\"requestState\":,\"_meta\":}")
          + input->state.len + meta.len;

    for (i = 0; i < input->n; i++) {
        request = &input->requests[i];

        len += sizeof(":{\"method\":\"\",\"params\":},") + request->key.len
               + ngx_mcp_method_name(request->method)->len
               + request->params.len;
    }

    p = ngx_pnalloc(call->r->pool, len);
    if (p == NULL) {
        return out;
    }

    out.data = p;

    p = ngx_sprintf(p, "{\"resultType\":\"input_required\"");

    if (input->n) {
        p = ngx_sprintf(p, ",\"inputRequests\":{");
    }

    for (i = 0; i < input->n; i++) {
        request = &input->requests[i];

        p = ngx_sprintf(p, "%s%V:{\"method\":\"%V\"", i ? "," : "",
                        &request->key, ngx_mcp_method_name(request->method));

        if (request->params.len) {
            p = ngx_sprintf(p, ",\"params\":%V", &request->params);
        }

        *p++ = '}';
    }

    if (input->n) {
        *p++ = '}';
    }

    if (input->state.len) {
        p = ngx_sprintf(p, ",\"requestState\":%V", &input->state);
    }

    if (meta.len) {
        p = ngx_sprintf(p, ",\"_meta\":%V", &meta);
    }

    *p++ = '}';

    out.len = p - out.data;

    return out;
}
