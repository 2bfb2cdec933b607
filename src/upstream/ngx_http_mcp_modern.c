
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_input.h"
#include "ngx_http_mcp_tools.h"
#include "ngx_mcp_envelope.h"
#include "ngx_mcp_modern.h"
#include "ngx_mcp_id.h"


/* input rounds of one request, at most */
#define NGX_HTTP_MCP_MODERN_ROUNDS  8

/* ms; pause before a request is sent again after a round without questions */
#define NGX_HTTP_MCP_MODERN_PAUSE   250


/* the log level of a client that has set none */
#define NGX_HTTP_MCP_MODERN_LEVEL  NGX_MCP_LEVEL_INFO

/* data of this manner for one upstream request (ureq->ctx), made by open() */

typedef struct {
    ngx_str_t                 envelope;     /* members of params._meta, raw */
    ngx_uint_t                method;       /* ngx_mcp_method_e */
    ngx_http_mcp_input_t     *input;        /* round that the upstream has just
                                               asked for, or NULL */
    ngx_http_mcp_input_t     *round;        /* round whose answers are sent to
                                               the upstream, or NULL */
    ngx_uint_t                rounds;       /* number of rounds so far */
    ngx_str_t                 client_id;    /* raw id that the client sent, if
                                               the message was sent again; else
                                               empty */
    ngx_str_t                 id;           /* raw id with which the message was
                                               sent again, or empty */
    ngx_str_t                 tool;         /* raw entry of the called tool in
                                               the upstream's list, or empty */
    ngx_http_mcp_tools_t     *tools;        /* the list of tools that is being
                                               read, or NULL */
    ngx_http_mcp_scope_t      scope;        /* variables of the tools/list that
                                               is being sent */
    ngx_str_t                 cursor;       /* raw cursor of the next page of
                                               the list, or empty */
    ngx_uint_t                pages;        /* number of pages read so far */
    unsigned                  listed:1;     /* "tool" was looked up */
    unsigned                  stale:1;      /* the list has to be read, even if
                                               it is known */
    unsigned                  fetched:1;    /* the list was read, or is being
                                               read */
    unsigned                  complete:1;   /* the last page that was requested
                                               has been read */
    unsigned                  empty_cursor:1;  /* a page was requested with an
                                                  empty cursor */
    unsigned                  resend:1;     /* the upstream refused headers: the
                                               list is read again, and then the
                                               message is sent again */
    unsigned                  refreshed:1;  /* the message was sent again
                                               because of refused headers */
    unsigned                  acknowledged:1;  /* the upstream has accepted the
                                                  filter of a stream */
    unsigned                  no_events:1;  /* the upstream accepted no entry of
                                               the filter, or has no streams */
    unsigned                  request_logged:1;  /* the log said that the
                                                    upstream sent a request */
} ngx_http_mcp_modern_ctx_t;


static ngx_int_t ngx_http_mcp_modern_open(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_modern_tool(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_modern_list(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_modern_list_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_modern_list_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_modern_cleanup(void *data);
static ngx_int_t ngx_http_mcp_modern_params(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_exchange_t *x,
    ngx_mcp_json_t *json);
static ngx_int_t ngx_http_mcp_modern_param(void *data, ngx_str_t *name,
    ngx_str_t *value);
static ngx_int_t ngx_http_mcp_modern_envelope(ngx_pool_t *pool,
    ngx_mcp_modern_client_t *client, ngx_str_t *envelope);
static ngx_int_t ngx_http_mcp_modern_head(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_exchange_t *x);
static ngx_int_t ngx_http_mcp_modern_listen(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_modern_headers(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_exchange_t *x,
    ngx_mcp_json_t *json);
static ngx_int_t ngx_http_mcp_modern_header(ngx_http_mcp_exchange_t *x,
    ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_http_mcp_modern_plain(ngx_str_t *value);
static ngx_int_t ngx_http_mcp_modern_message(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static void ngx_http_mcp_modern_hint(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_modern_restore_id(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_int_t ngx_http_mcp_modern_members(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *members);
static ngx_int_t ngx_http_mcp_modern_input(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static const char *ngx_http_mcp_modern_round(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_http_mcp_input_t **out);
static ngx_int_t ngx_http_mcp_modern_failed(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_uint_t level,
    const char *why);
static ngx_int_t ngx_http_mcp_modern_replace(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_uint_t tool,
    ngx_int_t code, ngx_str_t *message);
static ngx_int_t ngx_http_mcp_modern_done(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);
static ngx_int_t ngx_http_mcp_modern_acknowledged(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_modern_honoured(ngx_str_t *params,
    ngx_str_t *uris);
static ngx_int_t ngx_http_mcp_modern_error(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_int_t ngx_http_mcp_modern_incapable(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text, ngx_str_t *error);
static void ngx_http_mcp_modern_heal(ngx_http_mcp_upstream_request_t *ureq);
static ngx_uint_t ngx_http_mcp_modern_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome,
    ngx_uint_t changed);
static ngx_int_t ngx_http_mcp_modern_client_probe(ngx_http_mcp_exchange_t *x,
    ngx_mcp_message_t *message);
static ngx_str_t ngx_http_mcp_modern_discover_params(ngx_pool_t *pool,
    ngx_mcp_modern_client_t *client);
static ngx_int_t ngx_http_mcp_modern_probe(ngx_http_mcp_probe_t *probe);
static ngx_int_t ngx_http_mcp_modern_probe_head(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_modern_probe_result(ngx_http_mcp_probe_t *probe,
    ngx_str_t *result, ngx_uint_t revision);
static void ngx_http_mcp_modern_probe_error(ngx_http_mcp_probe_t *probe,
    ngx_str_t *code, ngx_str_t *error);
static void ngx_http_mcp_modern_probed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_outcome_e outcome);


/*
 * The manner of MCP servers of revision 2026-07-28.  Such a server keeps
 * nothing between requests: each request names the client and its capabilities.
 */

ngx_http_mcp_manner_t  ngx_http_mcp_modern = {
    .protocol = NGX_HTTP_MCP_MODERN,
    .kind = NGX_MCP_PROFILE_MODERN,
    .updates = 1,
    .filters = 1,
    .open = ngx_http_mcp_modern_open,
    .head = ngx_http_mcp_modern_head,
    .message = ngx_http_mcp_modern_message,
    .done = ngx_http_mcp_modern_done,
    .lost = ngx_http_mcp_upstream_request_refused,
    .heal = ngx_http_mcp_modern_heal,
    .refused = ngx_http_mcp_modern_refused,
    .client_probe = ngx_http_mcp_modern_client_probe,
    .client_result = ngx_mcp_modern_discovered,
    .probe = ngx_http_mcp_modern_probe,
    .probe_head = ngx_http_mcp_modern_probe_head,
    .probe_result = ngx_http_mcp_modern_probe_result,
    .probe_error = ngx_http_mcp_modern_probe_error,
    .probed = ngx_http_mcp_modern_probed
};


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_modern_list_handlers = {
    .message = ngx_http_mcp_modern_list_message,
    .done = ngx_http_mcp_modern_list_done
};


static ngx_str_t  ngx_http_mcp_modern_discover =
    ngx_string("server/discover");

static ngx_str_t  ngx_http_mcp_modern_method = ngx_string("Mcp-Method");
static ngx_str_t  ngx_http_mcp_modern_name = ngx_string("Mcp-Name");


/*
 * NGX_DECLINED for notifications and responses of a client: without a session,
 * the upstream cannot receive these.
 */

static ngx_int_t
ngx_http_mcp_modern_open(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                   rc;
    ngx_str_t                   initialize;
    ngx_pool_t                 *pool;
    ngx_pool_cleanup_t         *cln;
    ngx_mcp_modern_client_t     client;
    ngx_http_mcp_modern_ctx_t  *ctx;

    if (ureq->existing || (ureq->get_stream && ureq->filter == NULL)) {
        return NGX_DECLINED;
    }

    if (ureq->session_only) {

        if (ngx_mcp_method_parse(&ureq->scope.method)
            == NGX_MCP_METHOD_SUBSCRIBE)
        {
            ureq->refused = "the upstream does not notify of updates of this "
                            "resource";
        }

        ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_OK);
        return NGX_AGAIN;
    }

    if (ureq->ctx) {
        return ngx_http_mcp_modern_tool(ureq);
    }

    pool = ureq->r->pool;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_mcp_modern_ctx_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_mcp_modern_ctx_t));

    cln->handler = ngx_http_mcp_modern_cleanup;

    ngx_memzero(&client, sizeof(ngx_mcp_modern_client_t));
    ngx_str_null(&initialize);

    rc = ngx_mcp_session_initialize(ureq->upstream->zone, ureq->owner, pool,
                                    &initialize, &client.level);

    if (rc == NGX_OK) {
        rc = ngx_mcp_modern_client(pool, &initialize, &client);

        if (client.level == NGX_MCP_LEVEL_UNSET) {
            client.level = NGX_HTTP_MCP_MODERN_LEVEL;
        }

    } else if (rc == NGX_DECLINED) {

        /*
         * There is no session: the request is the module's own or that of a
         * client without a session.
         */

        client.info = ureq->client;
        client.capabilities = ureq->capabilities;
        client.level = ureq->level;
        rc = NGX_OK;
    }

    if (rc != NGX_OK
        || ngx_http_mcp_modern_envelope(pool, &client, &ctx->envelope)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->method = ngx_mcp_method_parse(&ureq->scope.method);
    ureq->ctx = ctx;

    return ngx_http_mcp_modern_tool(ureq);
}


/*
 * A tool may require that some arguments are repeated in headers
 * ("x-mcp-header").  These are marked in the upstream's list of tools, which is
 * read first if it is not known.
 */

static ngx_int_t
ngx_http_mcp_modern_tool(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_int_t                   rc;
    ngx_str_t                   params, raw, name;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;

    if (ctx->method != NGX_MCP_METHOD_TOOLS_CALL || ctx->listed) {
        return NGX_OK;
    }

    params = ngx_mcp_json_get(&ureq->body, "params");
    raw = ngx_mcp_json_get(&params, "name");

    rc = ngx_mcp_json_text(ureq->r->pool, &raw, &name);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    rc = NGX_DECLINED;

    if (!ctx->stale) {
        rc = ngx_http_mcp_tools_get(ureq->upstream, &ureq->tenant, &name,
                                    ureq->r->pool, &ctx->tool);
    }

    if (rc != NGX_DECLINED || ctx->fetched) {
        ctx->listed = 1;
        return rc == NGX_DECLINED ? NGX_OK : rc;
    }

    ctx->tools = ngx_http_mcp_tools_create(&ureq->tenant);
    if (ctx->tools == NULL) {
        return NGX_ERROR;
    }

    ctx->stale = 0;
    ctx->fetched = 1;
    ctx->pages = 0;
    ctx->empty_cursor = 0;
    ngx_str_null(&ctx->cursor);

    return ngx_http_mcp_modern_list(ureq) == NGX_OK ? NGX_AGAIN : NGX_ERROR;
}


static void
ngx_http_mcp_modern_cleanup(void *data)
{
    ngx_http_mcp_modern_ctx_t *ctx = data;

    if (ctx->tools) {
        ngx_http_mcp_tools_free(ctx->tools);
        ctx->tools = NULL;
    }
}


/* requests a page of the list of tools, with the client's headers */

static ngx_int_t
ngx_http_mcp_modern_list(ngx_http_mcp_upstream_request_t *ureq)
{
    u_char                     *p;
    ngx_str_t                   params, body;
    ngx_pool_t                 *pool;
    ngx_http_mcp_exchange_t    *x;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;
    pool = ureq->r->pool;

    ctx->complete = 0;

    ngx_memzero(&ctx->scope, sizeof(ngx_http_mcp_scope_t));
    ngx_str_set(&ctx->scope.method, "tools/list");
    ctx->scope.request_id = ngx_http_mcp_own_id;

    p = ngx_pnalloc(pool, sizeof("{\"_meta\":{},\"cursor\":}")
                          + ctx->envelope.len + ctx->cursor.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    params.data = p;
    p = ngx_sprintf(p, "{\"_meta\":{%V}", &ctx->envelope);

    if (ctx->cursor.len) {
        p = ngx_sprintf(p, ",\"cursor\":%V", &ctx->cursor);
    }

    *p++ = '}';
    params.len = p - params.data;

    body = ngx_mcp_request_compose(pool, &ngx_http_mcp_own_id,
                                   &ctx->scope.method, &params);

    x = ngx_http_mcp_upstream_exchange(ureq->r, ureq->upstream, &ctx->scope);
    ureq->scope.dots = ctx->scope.dots;

    if (x == NULL || body.data == NULL
        || ngx_http_mcp_upstream_body(x, &body) != NGX_OK
        || ngx_http_mcp_headers_append(x, &ngx_http_mcp_modern_method,
                                       &ctx->scope.method)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    x->data = ureq;
    x->client_headers = 1;
    x->protocol_version = *ngx_mcp_revision_name(NGX_MCP_2026_07_28);
    x->handlers = &ngx_http_mcp_modern_list_handlers;

    ngx_http_mcp_exchange_limit_time(x, NGX_HTTP_MCP_INITIALIZE_TIME);

    ureq->x = x;

    return ngx_http_mcp_exchange_start(x);
}


static void
ngx_http_mcp_modern_list_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_int_t                         rc;
    ngx_str_t                         id, result, cursor;
    ngx_http_mcp_modern_ctx_t        *ctx;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;
    ctx = ureq->ctx;

    if (ureq->closed || ctx->tools == NULL) {
        return;
    }

    id = ngx_mcp_json_span(x->scan, NGX_MCP_PATH_ID, text->data);

    if (!ngx_mcp_json_same_id(&id, &ngx_http_mcp_own_id)) {
        return;
    }

    ngx_http_mcp_exchange_answered(x);

    ngx_str_null(&ctx->cursor);

    if (x->scan->members[NGX_MCP_PATH_RESULT].type != NGX_MCP_JSON_OBJECT) {
        return;
    }

    result = ngx_mcp_json_span(x->scan, NGX_MCP_PATH_RESULT, text->data);

    rc = ngx_http_mcp_tools_add(ctx->tools, &result);

    if (rc == NGX_DECLINED) {
        return;
    }

    ctx->complete = 1;

    if (rc != NGX_OK) {
        return;
    }

    cursor = ngx_mcp_json_get(&result, "nextCursor");

    /*
     * The first empty cursor may lead to another page; a second one means the
     * end of the list.
     */

    if (cursor.len == 2) {

        if (ctx->empty_cursor) {
            return;
        }

        ctx->empty_cursor = 1;
    }

    if (cursor.len && cursor.data[0] == '"') {
        (void) ngx_http_mcp_string_copy(ureq->r->pool, &ctx->cursor, &cursor);
    }
}


/*
 * If the list cannot be read, the call is sent without headers that repeat its
 * arguments.  If the upstream refused this client (401, 403), the list is not
 * kept for the other clients.
 */

static void
ngx_http_mcp_modern_list_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_modern_ctx_t        *ctx;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = x->data;
    ctx = ureq->ctx;

    if (ngx_http_mcp_upstream_request_stopped(ureq)) {
        return;
    }

    if (ctx->complete && ctx->cursor.len
        && ++ctx->pages < NGX_HTTP_MCP_TOOLS_PAGES)
    {

        if (ngx_http_mcp_modern_list(ureq) != NGX_OK) {
            ngx_http_mcp_upstream_request_end(ureq, NGX_HTTP_MCP_BAD);
        }

        return;
    }

    if (!ctx->complete
        && (x->status == NGX_HTTP_UNAUTHORIZED
            || x->status == NGX_HTTP_FORBIDDEN))
    {
        ngx_http_mcp_tools_free(ctx->tools);

    } else {
        ngx_http_mcp_tools_keep(ureq->upstream, ctx->tools, ctx->complete,
                                ctx->complete && ctx->cursor.len);
    }

    ctx->tools = NULL;

    ngx_http_mcp_upstream_request_next(ureq);
}


static ngx_int_t
ngx_http_mcp_modern_envelope(ngx_pool_t *pool,
    ngx_mcp_modern_client_t *client, ngx_str_t *envelope)
{
    if (client->info.len == 0) {
        ngx_str_set(&client->info, "{\"name\":\"nginx-mcp\",\"version\":\""
                                   NGX_MCP_MODULE_VERSION "\"}");
    }

    *envelope = ngx_mcp_modern_envelope(pool, client);

    return envelope->data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_modern_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x)
{
    ngx_str_t                   body, members;
    ngx_mcp_json_t              json;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;

    if (ureq->get_stream) {
        x->method = NGX_HTTP_POST;

        if (ngx_http_mcp_modern_listen(ureq) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_mcp_json_scan(&json, &ureq->body) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_null(&members);

    if (ctx->round) {

        if (ctx->client_id.len == 0) {
            ctx->client_id = ngx_mcp_json_span(&json, NGX_MCP_PATH_ID,
                                               ureq->body.data);
        }

        if (ngx_http_mcp_modern_members(ureq, &members) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    body = ngx_mcp_modern_request(ureq->r->pool, &ureq->body, &json,
                                  &ctx->envelope, &ctx->id, &members);

    if (body.data == NULL || ngx_http_mcp_upstream_body(x, &body) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->tool.len && ngx_http_mcp_modern_params(ureq, x, &json) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_modern_headers(ureq, x, &json);
}


static ngx_int_t
ngx_http_mcp_modern_params(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x, ngx_mcp_json_t *json)
{
    ngx_str_t                   rest, name, value, arguments;
    ngx_http_mcp_modern_ctx_t  *ctx;
    static ngx_str_t            member = ngx_string("arguments");

    ctx = ureq->ctx;
    ngx_str_null(&arguments);

    rest = ngx_mcp_json_span(json, NGX_MCP_PATH_PARAMS, ureq->body.data);

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
        if (ngx_mcp_json_is(&name, &member) && value.data[0] == '{') {
            arguments = value;
        }
    }

    return ngx_mcp_params_walk(&ctx->tool, &arguments, ureq->r->pool,
                               ngx_http_mcp_modern_param, x);
}


/*
 * Adds a header Mcp-Param-NAME with the value of an argument.  The upstream
 * chose the name; if it has characters that a header's name may not have, the
 * header is left out.
 */

static ngx_int_t
ngx_http_mcp_modern_param(void *data, ngx_str_t *name, ngx_str_t *value)
{
    ngx_http_mcp_exchange_t *x = data;

    u_char     *p, ch;
    size_t      i;
    ngx_str_t   header, text;

    if (value->len == 0 || name->len == 0) {
        return NGX_OK;
    }

    for (i = 0; i < name->len; i++) {
        ch = name->data[i];

        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
              || (ch >= '0' && ch <= '9') || ch == '-' || ch == '_'
              || ch == '.'))
        {
            return NGX_OK;
        }
    }

    p = ngx_pnalloc(x->r->pool, sizeof("Mcp-Param-") + name->len + value->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    header.data = p;
    p = ngx_cpymem(p, "Mcp-Param-", sizeof("Mcp-Param-") - 1);
    p = ngx_cpymem(p, name->data, name->len);
    header.len = p - header.data;

    text = *value;

    if (value->data[0] == '"') {
        text.data = p;
        text.len = ngx_mcp_json_unescape(p, value) - p;
    }

    return ngx_http_mcp_modern_header(x, &header, &text);
}


/* composes the request that opens a stream, with the filter of notifications */

static ngx_int_t
ngx_http_mcp_modern_listen(ngx_http_mcp_upstream_request_t *ureq)
{
    u_char            *p;
    ngx_str_t          uris, params;
    static ngx_str_t   method = ngx_string("subscriptions/listen");

    ngx_str_set(&uris, "[]");

    if (ureq->filter(ureq, &uris) != NGX_OK) {
        return NGX_ERROR;
    }

    p = ngx_pnalloc(ureq->r->pool, 160 + uris.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    params.data = p;

    p = ngx_sprintf(p, "{\"notifications\":{\"toolsListChanged\":true,"
                    "\"promptsListChanged\":true,"
                    "\"resourcesListChanged\":true");

    if (uris.len > 2) {
        p = ngx_sprintf(p, ",\"resourceSubscriptions\":%V", &uris);
    }

    *p++ = '}';
    *p++ = '}';

    params.len = p - params.data;

    return ngx_http_mcp_upstream_request_compose(ureq, &ngx_http_mcp_own_id,
                                                 &method, &params);
}


/* adds the headers that repeat members of the message (json: its scan) */

static ngx_int_t
ngx_http_mcp_modern_headers(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x, ngx_mcp_json_t *json)
{
    ngx_int_t                   rc;
    ngx_str_t                   raw, params, value, *method;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;
    method = &ureq->scope.method;

    x->protocol_version = *ngx_mcp_revision_name(NGX_MCP_2026_07_28);

    if (ngx_http_mcp_modern_header(x, &ngx_http_mcp_modern_method, method)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (ctx->method) {

    case NGX_MCP_METHOD_TOOLS_CALL:
    case NGX_MCP_METHOD_PROMPTS_GET:
        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_NAME, ureq->body.data);
        break;

    case NGX_MCP_METHOD_RESOURCES_READ:
        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_URI, ureq->body.data);
        break;

    default:

        /* the extension io.modelcontextprotocol/tasks */

        if (method->len < sizeof("tasks/") - 1
            || ngx_strncmp(method->data, "tasks/", sizeof("tasks/") - 1) != 0)
        {
            return NGX_OK;
        }

        params = ngx_mcp_json_span(json, NGX_MCP_PATH_PARAMS, ureq->body.data);
        raw = ngx_mcp_json_get(&params, "taskId");
    }

    rc = ngx_mcp_json_text(x->r->pool, &raw, &value);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    return ngx_http_mcp_modern_header(x, &ngx_http_mcp_modern_name, &value);
}


/* adds a header; a value that headers may not have is encoded in base64 */

static ngx_int_t
ngx_http_mcp_modern_header(ngx_http_mcp_exchange_t *x, ngx_str_t *name,
    ngx_str_t *value)
{
    u_char     *p;
    ngx_str_t   out, encoded;

    if (ngx_http_mcp_modern_plain(value)) {
        return ngx_http_mcp_headers_append(x, name, value);
    }

    out.data = ngx_pnalloc(x->r->pool, sizeof("=?base64?") + 2
                                   + ngx_base64_encoded_length(value->len));
    if (out.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(out.data, "=?base64?", sizeof("=?base64?") - 1);

    encoded.data = p;
    ngx_encode_base64(&encoded, value);

    p = ngx_cpymem(p + encoded.len, "?=", 2);

    out.len = p - out.data;

    return ngx_http_mcp_headers_append(x, name, &out);
}


static ngx_uint_t
ngx_http_mcp_modern_plain(ngx_str_t *value)
{
    size_t   i;
    u_char  *p;

    p = value->data;

    if (value->len == 0 || p[0] == ' ' || p[value->len - 1] == ' ') {
        return 0;
    }

    for (i = 0; i < value->len; i++) {
        if (p[i] < 0x20 || p[i] > 0x7e) {
            return 0;
        }
    }

    /* the upstream would decode a plain value of the form "=?base64?...?=" */

    return value->len < sizeof("=?base64?") - 1 + 2
           || ngx_strncmp(p, "=?base64?", sizeof("=?base64?") - 1) != 0
           || p[value->len - 2] != '?' || p[value->len - 1] != '=';
}


static ngx_int_t
ngx_http_mcp_modern_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                   raw;
    ngx_uint_t                  method;
    ngx_mcp_json_t             *json;
    ngx_http_mcp_modern_ctx_t  *ctx;
    static ngx_str_t            input = ngx_string("input_required");
    static ngx_str_t            complete = ngx_string("complete");

    ctx = ureq->ctx;
    json = ureq->x->scan;

    if (ureq->get_stream && !ctx->acknowledged) {
        return ngx_http_mcp_modern_acknowledged(ureq, text);
    }

    if (ureq->get_stream
        && (json->members[NGX_MCP_PATH_RESULT].count
            || json->members[NGX_MCP_PATH_ERROR].count))
    {
        /* the response, which ends the stream, is no event for the reader */

        return NGX_DECLINED;
    }

    if (ctx->id.len && ngx_http_mcp_modern_restore_id(ureq, text) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (json->members[NGX_MCP_PATH_METHOD].count
        && json->members[NGX_MCP_PATH_ID].count)
    {
        if (!ctx->request_logged) {
            ctx->request_logged = 1;

            ngx_log_error(NGX_LOG_WARN, ureq->r->connection->log, 0,
                          "mcp upstream \"%V\" sent a request, which servers "
                          "of 2026-07-28 do not; it is ignored",
                          &ureq->upstream->name);
        }

        return NGX_DECLINED;
    }

    if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        return ngx_http_mcp_modern_error(ureq, text);
    }

    if (json->members[NGX_MCP_PATH_RESULT_TYPE].count) {
        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_TYPE, text->data);

        if (ngx_mcp_json_is(&raw, &input)) {
            return ngx_http_mcp_modern_input(ureq, text);
        }

        /* the type is "complete", that of an extension, or wrong */

        if (!ureq->stateful && raw.data[0] == '"'
            && !ngx_mcp_json_is(&raw, &complete)
            && ngx_http_mcp_string_copy(ureq->r->pool, &ureq->kind, &raw)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_http_mcp_modern_hint(ureq, text);

    method = ctx->method;

    if (method == NGX_MCP_METHOD_TOOLS_CALL && !ureq->stateful) {

        /* clients of 2026-07-28 accept structuredContent that is no object */

        method = NGX_MCP_METHOD_OTHER;
    }

    if (ngx_mcp_modern_plain(text, json, method)) {
        return ngx_mcp_json_scan(json, text);
    }

    return NGX_OK;
}


/* reads ttlMs and cacheScope of the result; ignores repeated members */

static void
ngx_http_mcp_modern_hint(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_int_t         ttl;
    ngx_str_t         raw;
    ngx_mcp_json_t   *json;
    static ngx_str_t  public = ngx_string("public");

    json = ureq->x->scan;

    ureq->hint.until = 0;
    ureq->hint.public = 0;

    if (json->members[NGX_MCP_PATH_RESULT_TTL].count == 1) {
        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_TTL, text->data);
        ttl = ngx_atoi(raw.data, raw.len);

        if (ttl > 0) {
            ureq->hint.until = ngx_current_msec
                               + ngx_min(ttl, NGX_MAX_INT32_VALUE);
        }
    }

    if (json->members[NGX_MCP_PATH_RESULT_SCOPE].count == 1) {
        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT_SCOPE, text->data);
        ureq->hint.public = ngx_mcp_json_is(&raw, &public);
    }
}


/* puts the client's id into the answer to a request that was sent again */

static ngx_int_t
ngx_http_mcp_modern_restore_id(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                   id, out;
    ngx_mcp_json_t             *json;
    ngx_mcp_path_e              path[2];
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;
    json = ureq->x->scan;

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (json->members[NGX_MCP_PATH_METHOD].count
        || !ngx_mcp_json_same_id(&id, &ctx->id))
    {
        return NGX_OK;
    }

    path[0] = NGX_MCP_PATH_ID;
    path[1] = NGX_MCP_PATH_NONE;

    out = ngx_mcp_message_replace(ureq->r->pool, text, json, path,
                                  &ctx->client_id);
    if (out.data == NULL) {
        return NGX_ERROR;
    }

    *text = out;

    return ngx_mcp_json_scan(json, text);
}


/*
 * The upstream wants input before it answers.  done() asks the client, when the
 * exchange has ended.
 */

static ngx_int_t
ngx_http_mcp_modern_input(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    const char                 *why;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;

    if (ctx->method != NGX_MCP_METHOD_TOOLS_CALL
        && ctx->method != NGX_MCP_METHOD_PROMPTS_GET
        && ctx->method != NGX_MCP_METHOD_RESOURCES_READ)
    {
        why = "the upstream asked for input for a method without input";

    } else if (ctx->rounds++ == NGX_HTTP_MCP_MODERN_ROUNDS) {
        why = "the upstream asked for input too often";

    } else {
        why = ngx_http_mcp_modern_round(ureq, text, &ctx->input);
    }

    if (why) {
        ctx->input = NULL;
        return ngx_http_mcp_modern_failed(ureq, text, NGX_LOG_ERR, why);
    }

    ngx_http_mcp_exchange_answered(ureq->x);

    return NGX_DECLINED;
}


/*
 * Reads the input round from a result of the type "input_required".  Returns
 * NULL, or a sentence that describes the fault.
 */

static const char *
ngx_http_mcp_modern_round(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_http_mcp_input_t **out)
{
    ngx_str_t                      rest, inner, name, value, raw, member;
    ngx_pool_t                    *pool;
    ngx_mcp_json_t                *json;
    ngx_http_mcp_input_t          *input;
    ngx_http_mcp_input_request_t  *request;
    static ngx_str_t               method = ngx_string("method");
    static ngx_str_t               params = ngx_string("params");

    pool = ureq->r->pool;
    json = ureq->x->scan;

    input = ngx_pcalloc(pool, sizeof(ngx_http_mcp_input_t)
                              + NGX_HTTP_MCP_INPUT_MAX
                                * sizeof(ngx_http_mcp_input_request_t));
    if (input == NULL) {
        return "nginx is out of memory";
    }

    input->requests = (ngx_http_mcp_input_request_t *) (input + 1);

    raw = ngx_mcp_json_span(json, NGX_MCP_PATH_REQUEST_STATE, text->data);

    if (json->members[NGX_MCP_PATH_REQUEST_STATE].type != NGX_MCP_JSON_STRING) {
        raw.len = 0;
    }

    if (ngx_http_mcp_string_copy(pool, &input->state, &raw) != NGX_OK) {
        return "nginx is out of memory";
    }

    rest = ngx_mcp_json_span(json, NGX_MCP_PATH_INPUT_REQUESTS, text->data);

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (input->n == NGX_HTTP_MCP_INPUT_MAX) {
            return "the upstream asked for too much input at once";
        }

        request = &input->requests[input->n++];
        inner = value;
        ngx_str_null(&raw);

        while (ngx_mcp_json_member(&inner, &member, &value) == NGX_OK) {

            if (ngx_mcp_json_is(&member, &method) && value.data[0] == '"') {
                request->method = ngx_mcp_method_raw(&value);

            } else if (ngx_mcp_json_is(&member, &params)
                       && value.data[0] == '{')
            {
                raw = value;
            }
        }

        switch (request->method) {
        case NGX_MCP_METHOD_SAMPLING:
        case NGX_MCP_METHOD_ELICITATION:
        case NGX_MCP_METHOD_ROOTS_LIST:
            break;
        default:
            return "the upstream asked for input of an unknown kind";
        }

        if (ngx_http_mcp_string_copy(pool, &request->key, &name) != NGX_OK
            || ngx_http_mcp_string_copy(pool, &request->params, &raw)
               != NGX_OK)
        {
            return "nginx is out of memory";
        }
    }

    if (input->n == 0 && input->state.len == 0) {
        return "the upstream asked for input without inputRequests";
    }

    *out = input;

    return NULL;
}


/* replaces the upstream's message by an error, and logs the reason */

static ngx_int_t
ngx_http_mcp_modern_failed(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_uint_t level, const char *why)
{
    ngx_str_t  message;

    ngx_log_error(level, ureq->r->connection->log, 0,
                  "mcp upstream \"%V\": a request was not completed: %s",
                  &ureq->upstream->name, why);

    message.data = (u_char *) why;
    message.len = ngx_strlen(why);

    return ngx_http_mcp_modern_replace(ureq, text, 1, NGX_MCP_INTERNAL_ERROR,
                                       &message);
}


/*
 * Replaces the upstream's message by an error with this code and this (decoded)
 * message.  tool: if the request is tools/call, the replacement is a result
 * with isError instead.
 */

static ngx_int_t
ngx_http_mcp_modern_replace(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_uint_t tool, ngx_int_t code, ngx_str_t *message)
{
    u_char                     *p;
    ngx_str_t                   id, raw, out;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;

    id = ngx_mcp_json_span(ureq->x->scan, NGX_MCP_PATH_ID, text->data);

    if (tool && ctx->method == NGX_MCP_METHOD_TOOLS_CALL) {

        p = ngx_pnalloc(ureq->r->pool,
                        128 + ngx_mcp_json_escaped_len(message));
        if (p == NULL) {
            return NGX_DECLINED;
        }

        raw.data = p;
        p = ngx_cpymem(p, "{\"content\":[{\"type\":\"text\",\"text\":",
                       sizeof("{\"content\":[{\"type\":\"text\",\"text\":")
                       - 1);
        p = ngx_mcp_json_escape(p, message);
        p = ngx_cpymem(p, "}],\"isError\":true}",
                       sizeof("}],\"isError\":true}") - 1);
        raw.len = p - raw.data;

        out = ngx_mcp_result_compose(ureq->r->pool, &id, &raw);

    } else {
        out = ngx_mcp_error_compose(ureq->r->pool,
                                    NGX_MCP_REVISION_LATEST_LEGACY, &id,
                                    code, message, NULL);
    }

    if (out.data == NULL) {
        return NGX_DECLINED;
    }

    *text = out;

    return ngx_mcp_json_scan(ureq->x->scan, text);
}


static ngx_int_t
ngx_http_mcp_modern_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    u_char                     *p;
    ngx_str_t                   text, id;
    ngx_mcp_json_t              json;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;

    if (ureq->aborted) {
        return NGX_OK;
    }

    if (ctx->resend) {
        ctx->resend = 0;
        ctx->listed = 0;
        ctx->stale = 1;
        ctx->fetched = 0;

        ngx_http_mcp_upstream_request_reopen(ureq);

        return NGX_AGAIN;
    }

    if (ctx->input == NULL) {
        return NGX_OK;
    }

    p = ngx_pnalloc(ureq->r->pool, NGX_MCP_UUID_LEN + 2);
    if (p == NULL || ngx_mcp_uuid_raw(p) != NGX_OK) {
        return NGX_OK;
    }

    /*
     * The upstream has answered the request with the client's id, so the
     * request needs another id when it is sent again.
     */

    ctx->id.data = p;
    ctx->id.len = NGX_MCP_UUID_LEN + 2;

    ctx->round = ctx->input;
    ctx->input = NULL;

    if (ureq->input && ureq->input(ureq, ctx->round) == NGX_OK) {
        ureq->asking = 1;
        return NGX_AGAIN;
    }

    if (ctx->round->n == 0) {
        ngx_http_mcp_upstream_request_later(ureq, NGX_HTTP_MCP_MODERN_PAUSE);
        return NGX_AGAIN;
    }

    /* the client cannot be asked for input */

    id = ctx->client_id;

    if (id.len == 0) {
        id = ngx_mcp_json_get(&ureq->body, "id");
    }

    ngx_str_set(&text, "{}");
    text = ngx_mcp_result_compose(ureq->r->pool, &id, &text);

    ureq->x->scan = &json;

    if (text.data
        && ngx_mcp_json_scan(&json, &text) == NGX_OK
        && ngx_http_mcp_modern_failed(ureq, &text, NGX_LOG_INFO,
                                      "the upstream asked for input that the "
                                      "client cannot give")
           == NGX_OK
        && ureq->message)
    {
        ureq->message(ureq, &text);
    }

    ureq->x->scan = NULL;

    return NGX_OK;
}


/*
 * Composes the members that are added to the params of a request that is sent
 * again.
 */

static ngx_int_t
ngx_http_mcp_modern_members(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *members)
{
    u_char                        *p;
    size_t                         len;
    ngx_uint_t                     i;
    ngx_http_mcp_input_t          *input;
    ngx_http_mcp_modern_ctx_t     *ctx;
    ngx_http_mcp_input_request_t  *request;

    ctx = ureq->ctx;
    input = ctx->round;
    request = input->requests;

    len = sizeof("\"inputResponses\":{},\"requestState\":") + input->state.len;

    for (i = 0; i < input->n; i++) {
        len += request[i].key.len + request[i].answer.len + 2;
    }

    p = ngx_pnalloc(ureq->r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    members->data = p;

    if (input->n) {
        p = ngx_cpymem(p, "\"inputResponses\":{",
                       sizeof("\"inputResponses\":{") - 1);

        for (i = 0; i < input->n; i++) {

            if (i) {
                *p++ = ',';
            }

            p = ngx_cpymem(p, request[i].key.data, request[i].key.len);
            *p++ = ':';
            p = ngx_cpymem(p, request[i].answer.data, request[i].answer.len);
        }

        *p++ = '}';
    }

    if (input->state.len) {

        if (input->n) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, "\"requestState\":", sizeof("\"requestState\":") - 1);
        p = ngx_cpymem(p, input->state.data, input->state.len);
    }

    members->len = p - members->data;

    return NGX_OK;
}


/*
 * The first message of a stream acknowledges the filter: it names the changes
 * of which the upstream will notify.  These may be fewer than were requested;
 * if there are none, the stream is closed.
 */

static ngx_int_t
ngx_http_mcp_modern_acknowledged(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                   raw;
    ngx_mcp_json_t             *json;
    ngx_http_mcp_modern_ctx_t  *ctx;
    static ngx_str_t            acknowledged =
                     ngx_string("notifications/subscriptions/acknowledged");

    ctx = ureq->ctx;
    json = ureq->x->scan;

    raw = ngx_mcp_json_span(json, NGX_MCP_PATH_METHOD, text->data);

    if (!ngx_mcp_json_is(&raw, &acknowledged)) {

        raw = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

        if (ngx_mcp_error_code(&raw) == NGX_MCP_METHOD_NOT_FOUND) {
            ctx->no_events = 1;
        }

        return NGX_DECLINED;
    }

    raw = ngx_mcp_json_span(json, NGX_MCP_PATH_PARAMS, text->data);

    if (!ngx_http_mcp_modern_honoured(&raw, &ureq->acknowledged)) {
        ctx->no_events = 1;
        ngx_http_mcp_exchange_answered(ureq->x);
        return NGX_DECLINED;
    }

    /* the reader uses ureq->acknowledged as long as the stream is open */

    if (ngx_http_mcp_string_copy(ureq->r->pool, &ureq->acknowledged,
                                 &ureq->acknowledged)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->acknowledged = 1;

    if (ureq->stream_opened) {
        ureq->stream_opened(ureq);
    }

    return NGX_DECLINED;
}


/* returns whether the acknowledged filter has entries; *uris: its resources */

static ngx_uint_t
ngx_http_mcp_modern_honoured(ngx_str_t *params, ngx_str_t *uris)
{
    ngx_str_t         rest, name, value, inner;
    ngx_uint_t        any;
    static ngx_str_t  notifications = ngx_string("notifications");
    static ngx_str_t  resources = ngx_string("resourceSubscriptions");

    any = 0;
    rest = *params;
    ngx_str_null(uris);

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (!ngx_mcp_json_is(&name, &notifications)) {
            continue;
        }

        inner = value;

        while (ngx_mcp_json_member(&inner, &name, &value) == NGX_OK) {

            if (value.data[0] == 't') {
                any = 1;

            } else if (value.data[0] == '['
                       && ngx_mcp_json_is(&name, &resources))
            {
                any |= (value.len > 2);
                *uris = value;
            }
        }
    }

    return any;
}


/* handles errors that exist only in revision 2026-07-28 */

static ngx_int_t
ngx_http_mcp_modern_error(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_int_t                   code;
    ngx_str_t                   raw, error, why;
    ngx_mcp_json_t             *json;
    ngx_http_mcp_modern_ctx_t  *ctx;

    json = ureq->x->scan;

    raw = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

    code = ngx_mcp_error_code(&raw);

    if (code < NGX_MCP_UNSUPPORTED_VERSION || code > NGX_MCP_HEADER_MISMATCH) {
        return NGX_OK;
    }

    ctx = ureq->ctx;

    if (code == NGX_MCP_HEADER_MISMATCH && !ctx->refreshed
        && ctx->method == NGX_MCP_METHOD_TOOLS_CALL)
    {
        /*
         * The list of tools, by which the headers were made, may be out of
         * date.
         */

        ctx->resend = 1;
        ctx->refreshed = 1;

        ngx_http_mcp_exchange_answered(ureq->x);

        return NGX_DECLINED;
    }

    if (code == NGX_MCP_MISSING_CAPABILITY && ureq->principal) {

        /* a client that declares its capabilities knows this error */

        return NGX_OK;
    }

    error = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);

    if (code == NGX_MCP_MISSING_CAPABILITY) {
        return ngx_http_mcp_modern_incapable(ureq, text, &error);
    }

    ngx_log_error(NGX_LOG_ERR, ureq->r->connection->log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" refused %s of the "
                  "module: %V; %s",
                  &ureq->upstream->name, &ureq->upstream->endpoint,
                  code == NGX_MCP_HEADER_MISMATCH
                  ? "the headers" : "version 2026-07-28", &error,
                  code == NGX_MCP_HEADER_MISMATCH
                  ? "check that its location and whatever stands before it "
                    "pass on \"Mcp-Method\", \"Mcp-Name\", \"Mcp-Param-*\" "
                    "and \"MCP-Protocol-Version\""
                  : "write \"protocol=auto\" in \"mcp_upstream\"");

    ngx_str_set(&why, "the upstream refused the headers or the version of the "
                      "request");

    return ngx_http_mcp_modern_replace(ureq, text, 0, NGX_MCP_INTERNAL_ERROR,
                                       &why);
}


/* replaces an error about a capability that the client lacks */

static ngx_int_t
ngx_http_mcp_modern_incapable(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_str_t *error)
{
    ngx_str_t  raw, message;

    raw = ngx_mcp_json_get(error, "message");

    if (ngx_mcp_json_text(ureq->r->pool, &raw, &message) != NGX_OK) {
        ngx_str_set(&message, "the client lacks a capability");
    }

    return ngx_http_mcp_modern_replace(ureq, text, 1, NGX_MCP_INVALID_PARAMS,
                                       &message);
}


static void
ngx_http_mcp_modern_heal(ngx_http_mcp_upstream_request_t *ureq)
{
    ureq->ctx = NULL;

    ngx_http_mcp_profile_reprobe(ureq->upstream, &ureq->tenant,
                                 NGX_MCP_REVISION_LATEST_LEGACY,
                                 ureq->r->pool);
}


static ngx_uint_t
ngx_http_mcp_modern_refused(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome, ngx_uint_t changed)
{
    ngx_uint_t                  status;
    ngx_http_mcp_modern_ctx_t  *ctx;

    ctx = ureq->ctx;
    status = ureq->x->status;

    if ((ctx && ctx->no_events)
        || (outcome == NGX_HTTP_MCP_STATUS
            && ngx_http_mcp_status_absent(status)))
    {
        return NGX_HTTP_MCP_NO_STREAM;
    }

    if (outcome == NGX_HTTP_MCP_STATUS
        && status < NGX_HTTP_INTERNAL_SERVER_ERROR && changed)
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "mcp upstream \"%V\" answered subscriptions/listen with "
                      "status %ui; the module asks again",
                      &ureq->upstream->name, status);
    }

    return NGX_HTTP_MCP_RETRY;
}


static ngx_int_t
ngx_http_mcp_modern_client_probe(ngx_http_mcp_exchange_t *x,
    ngx_mcp_message_t *message)
{
    ngx_str_t                 params, body;
    ngx_pool_t               *pool;
    ngx_mcp_modern_client_t   client;

    pool = x->r->pool;

    if (message->method_code == NGX_MCP_METHOD_DISCOVER) {
        body = message->text;

    } else {
        ngx_memzero(&client, sizeof(ngx_mcp_modern_client_t));

        params = ngx_mcp_message_member(message, NGX_MCP_PATH_PARAMS);

        if (ngx_mcp_modern_client(pool, &params, &client) != NGX_OK) {
            return NGX_ERROR;
        }

        params = ngx_http_mcp_modern_discover_params(pool, &client);

        if (params.data == NULL) {
            return NGX_ERROR;
        }

        body = ngx_mcp_request_compose(pool, &message->id,
                                       &ngx_http_mcp_modern_discover, &params);
    }

    if (body.data == NULL || ngx_http_mcp_upstream_body(x, &body) != NGX_OK) {
        return NGX_ERROR;
    }

    x->protocol_version = *ngx_mcp_revision_name(NGX_MCP_2026_07_28);

    return ngx_http_mcp_headers_append(x, &ngx_http_mcp_modern_method,
                                       &ngx_http_mcp_modern_discover);
}


/* the raw params of server/discover; data NULL: no memory */

static ngx_str_t
ngx_http_mcp_modern_discover_params(ngx_pool_t *pool,
    ngx_mcp_modern_client_t *client)
{
    u_char     *p;
    ngx_str_t   params, envelope;

    ngx_str_null(&params);

    if (ngx_http_mcp_modern_envelope(pool, client, &envelope) != NGX_OK) {
        return params;
    }

    p = ngx_pnalloc(pool, sizeof("{\"_meta\":{}}") + envelope.len);

    if (p) {
        params.data = p;
        params.len = ngx_sprintf(p, "{\"_meta\":{%V}}", &envelope) - p;
    }

    return params;
}


static ngx_int_t
ngx_http_mcp_modern_probe(ngx_http_mcp_probe_t *probe)
{
    ngx_str_t                params;
    ngx_mcp_modern_client_t  client;

    ngx_memzero(&client, sizeof(ngx_mcp_modern_client_t));

    params = ngx_http_mcp_modern_discover_params(probe->pool, &client);

    if (params.data == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_probe_send(probe, &ngx_http_mcp_modern_discover,
                                   &params);
}


static ngx_int_t
ngx_http_mcp_modern_probe_head(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_exchange_t *x)
{
    x->protocol_version = *ngx_mcp_revision_name(NGX_MCP_2026_07_28);

    return ngx_http_mcp_headers_append(x, &ngx_http_mcp_modern_method,
                                       &probe->method);
}


static void
ngx_http_mcp_modern_probe_result(ngx_http_mcp_probe_t *probe,
    ngx_str_t *result, ngx_uint_t revision)
{
    if (!ngx_mcp_modern_offered(result)) {
        probe->answered = 0;
        probe->absent = 1;
        ngx_str_set(&probe->fault, "the upstream does not support version "
                                   "2026-07-28");
        return;
    }

    probe->profile.revision = NGX_MCP_2026_07_28;
    probe->profile.result = ngx_mcp_modern_discovered(probe->pool, result);

    if (probe->profile.result.data == NULL) {
        probe->answered = 0;
    }
}


static void
ngx_http_mcp_modern_probe_error(ngx_http_mcp_probe_t *probe, ngx_str_t *code,
    ngx_str_t *error)
{
    ngx_int_t  n;

    n = ngx_mcp_error_code(code);

    probe->headers = (n == NGX_MCP_HEADER_MISMATCH);
    probe->again = (n == NGX_MCP_UNSUPPORTED_VERSION
                    && ngx_mcp_modern_supported(error));
}


/*
 * With protocol=auto a server that answers is also probed as a legacy one.
 * After a temporary failure the probe ends, because the kind is not known.  A
 * server that refuses the headers knows the modern revision, and is not probed
 * as another kind.
 */

static void
ngx_http_mcp_modern_probed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_upstream_t  *u;

    x = probe->x;
    u = probe->upstream;

    if (probe->answered) {

        probe->modern = 1;

        if (u->protocol != NGX_HTTP_MCP_AUTO
            || ngx_http_mcp_probe_next(probe) != NGX_OK)
        {
            ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_MODERN);
        }

        return;
    }

    if (x->status == NGX_HTTP_UNAUTHORIZED || x->status == NGX_HTTP_FORBIDDEN) {

        probe->guarded = 1;

        if (ngx_http_mcp_probe_next(probe) != NGX_OK) {
            ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_REFUSED);
        }

        return;
    }

    if (probe->again && !probe->repeated) {

        probe->repeated = 1;

        if (ngx_http_mcp_modern_probe(probe) == NGX_OK) {
            return;
        }
    }

    if (ngx_http_mcp_failure(x, outcome, &probe->fault, probe->pool, &failure)
        != NGX_OK)
    {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_UNKNOWN);
        return;
    }

    if (probe->headers) {
        failure.remedy = "check that its location and whatever stands before "
                         "it pass on \"Mcp-Method\" and "
                         "\"MCP-Protocol-Version\"";

    } else if (u->protocol == NGX_HTTP_MCP_AUTO) {

        if (!probe->away && ngx_http_mcp_probe_next(probe) == NGX_OK) {
            return;
        }

        if (outcome == NGX_HTTP_MCP_STATUS && !ngx_http_mcp_failure_local(x)) {
            failure.remedy = "if the upstream does this with methods that it "
                             "does not know, write \"protocol=legacy\" or "
                             "\"protocol=rpc\" in \"mcp_upstream\"";

        } else if (outcome == NGX_HTTP_MCP_TIMEOUT) {
            failure.remedy = "check that the upstream answers at all; if only "
                             "methods that it does not know get no answer, "
                             "write \"protocol=legacy\" or \"protocol=rpc\" "
                             "in \"mcp_upstream\"";
        }

    } else if (outcome == NGX_HTTP_MCP_STATUS
               && x->status == NGX_HTTP_BAD_REQUEST && probe->fault.len)
    {
        failure.remedy = "if the upstream wants sessions, write "
                         "\"protocol=auto\" in \"mcp_upstream\"";

    } else if (probe->absent && probe->error
               && outcome != NGX_HTTP_MCP_STATUS)
    {
        failure.remedy = "if it is a plain HTTP handler, write "
                         "\"protocol=rpc\" in \"mcp_upstream\"";
    }

    ngx_http_mcp_probe_failed(probe, &failure);
}
