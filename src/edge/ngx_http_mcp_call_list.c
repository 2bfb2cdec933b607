
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_edge.h"


/* how long the first filling is waited for, ms */
#define NGX_HTTP_MCP_LIST_PATIENCE  5000


static ngx_int_t ngx_http_mcp_list_kind(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_list_get(ngx_http_mcp_call_t *call);
static ngx_int_t ngx_http_mcp_list_page(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_list_note(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_list_frame(ngx_http_mcp_call_t *call,
    ngx_str_t parts[3]);
static ngx_int_t ngx_http_mcp_list_text(ngx_http_mcp_call_t *call,
    ngx_str_t *text);
static void ngx_http_mcp_list_ready(void *data);
static void ngx_http_mcp_list_timeout(ngx_event_t *ev);
static void ngx_http_mcp_list_here(ngx_http_mcp_call_t *call, ngx_int_t rc);
static void ngx_http_mcp_list_go_on(ngx_http_mcp_call_t *call);


static const char  ngx_http_mcp_list_cursor[] =
    "params.cursor is not one of this list as it is now; begin with the "
    "first page";


/* what an upstream is told of who asks must not decide for others */

ngx_uint_t
ngx_http_mcp_list_alone(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t  cookie;

    if (ctx->list_key.len > NGX_MCP_LIST_KEY_MAX) {
        return 1;
    }

    if (ctx->list_key.len) {
        return 0;
    }

    ngx_str_set(&cookie, "Cookie");

    return ctx->conf->bind != NULL || r->headers_in.authorization != NULL
           || ngx_http_mcp_find_header(r, &cookie) != NULL;
}


/*
 * NGX_OK: call->list and its page are to be given; NGX_AGAIN: to be waited
 * for; NGX_DECLINED: the upstream is to be asked; NGX_ERROR with *why.
 */

ngx_int_t
ngx_http_mcp_call_list(ngx_http_mcp_call_t *call, const char **why)
{
    ngx_int_t            rc;
    ngx_uint_t           alone;
    ngx_mcp_ref_t        none;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = call->ctx;

    if (ctx->conf->bridge.lists != NGX_HTTP_MCP_LISTS_ON
        || ctx->conf->upstreams == NULL
        || ngx_http_mcp_list_kind(call) == NGX_ERROR)
    {
        return NGX_DECLINED;
    }

    alone = ngx_http_mcp_list_alone(call->r, ctx);

    if (alone) {
        ngx_http_mcp_list_note(call->r, ctx);
    }

    /* a session is told of the lists of one key only */

    if (alone
        || !ngx_mcp_audience_of(ctx->conf->zone, &ctx->session,
                                &ctx->list_key))
    {
        if (!ctx->session.alone) {
            ngx_memzero(&none, sizeof(ngx_mcp_ref_t));
            (void) ngx_mcp_audience_join(ctx->conf->zone, ctx->session.ref,
                                         none);
            ctx->session.alone = 1;
        }

        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_list_get(call);

    if (rc == NGX_ERROR) {
        *why = ngx_http_mcp_list_cursor;
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_list_kind(ngx_http_mcp_call_t *call)
{
    switch (call->message->method_code) {

    case NGX_MCP_METHOD_TOOLS_LIST:
        return NGX_MCP_LIST_TOOLS;

    case NGX_MCP_METHOD_PROMPTS_LIST:
        return NGX_MCP_LIST_PROMPTS;

    case NGX_MCP_METHOD_RESOURCES_LIST:
        return NGX_MCP_LIST_RESOURCES;

    case NGX_MCP_METHOD_RESOURCES_TEMPLATES_LIST:
        return NGX_MCP_LIST_TEMPLATES;

    default:
        return NGX_ERROR;
    }
}


/* as above; the list is released with the request */

static ngx_int_t
ngx_http_mcp_list_get(ngx_http_mcp_call_t *call)
{
    ngx_int_t                 rc;
    ngx_pool_cleanup_t       *cln;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = call->ctx->conf;

    cln = ngx_pool_cleanup_add(call->r->pool, 0);
    if (cln == NULL) {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_lists_get(&mlcf->bridge, &call->ctx->session,
                                &call->ctx->tenant, &call->ctx->list_key,
                                ngx_http_mcp_list_kind(call), &call->list);
    if (rc != NGX_OK) {
        return rc == NGX_AGAIN ? NGX_AGAIN : NGX_DECLINED;
    }

    cln->handler = (ngx_pool_cleanup_pt) ngx_http_mcp_lists_release;
    cln->data = call->list;

    return ngx_http_mcp_list_page(call);
}


static ngx_int_t
ngx_http_mcp_list_page(ngx_http_mcp_call_t *call)
{
    uint64_t               version;
    ngx_str_t              cursor;
    ngx_uint_t             i, entry;
    ngx_http_mcp_list_t   *list;

    list = call->list;
    call->page = list->pages;

    switch (call->message->json.members[NGX_MCP_PATH_CURSOR].type) {

    case NGX_MCP_JSON_ABSENT:
    case NGX_MCP_JSON_NULL:
        return NGX_OK;

    case NGX_MCP_JSON_STRING:
        break;

    default:
        return NGX_ERROR;
    }

    cursor = ngx_mcp_message_string(call->message, NGX_MCP_PATH_CURSOR,
                                    call->r->pool);

    if (ngx_mcp_cursor_parse(&cursor, &version, &entry) != NGX_OK
        || version != list->list.version)
    {
        return NGX_ERROR;
    }

    for (i = 1; i < list->npages; i++) {
        if (list->pages[i].entry == entry) {
            call->page = &list->pages[i];
            return NGX_OK;
        }
    }

    return NGX_ERROR;
}


/* once for an endpoint, as far as the zone remembers */

static void
ngx_http_mcp_list_note(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    ngx_str_t                 id;
    ngx_uint_t                n;
    ngx_mcp_once_t            once;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    if (mlcf->lists_noted) {
        return;
    }

    mlcf->lists_noted = 1;

    ngx_str_set(&id, "mcp_list_cache");

    if (ngx_mcp_once_claim(mlcf->zone, &mlcf->name, &id, &once, &n) != NGX_OK)
    {
        return;
    }

    ngx_mcp_once_end(mlcf->zone, &once, 0);

    ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                  "mcp endpoint \"%V\" lets requests that carry credentials "
                  "get lists from the upstream, not from the cache; "
                  "\"mcp_list_cache on key=VALUE\" says what lists depend on",
                  &mlcf->name);
}


/* what stands before and behind the entries of the page */

static ngx_int_t
ngx_http_mcp_list_frame(ngx_http_mcp_call_t *call, ngx_str_t parts[3])
{
    u_char               *p;
    ngx_str_t            *id, *member;
    ngx_mcp_page_t       *page;
    ngx_http_mcp_list_t  *list;

    list = call->list;
    page = call->page;
    id = &call->message->id;
    member = ngx_mcp_list_member(list->list.kind);

    p = ngx_pnalloc(call->r->pool,
                    sizeof("{\"jsonrpc\":\"2.0\",\"id\":,\"result\":{\"\":["
                           "],\"nextCursor\":\"\"}}") - 1
                    + id->len + member->len + NGX_MCP_CURSOR_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    parts[0].data = p;

    p = ngx_cpymem(p, "{\"jsonrpc\":\"2.0\",\"id\":",
                   sizeof("{\"jsonrpc\":\"2.0\",\"id\":") - 1);
    p = ngx_cpymem(p, id->data, id->len);
    p = ngx_cpymem(p, ",\"result\":{\"", sizeof(",\"result\":{\"") - 1);
    p = ngx_cpymem(p, member->data, member->len);
    p = ngx_cpymem(p, "\":[", 3);

    parts[0].len = p - parts[0].data;

    parts[1].data = list->text.data + page->start;
    parts[1].len = page->end - page->start;

    if (page == &list->pages[list->npages - 1]) {

        /* the end of the answer stands behind it */

        parts[1].len += sizeof("]}}") - 1;

        ngx_str_set(&parts[2], "");

        return NGX_OK;
    }

    parts[2].data = p;

    p = ngx_cpymem(p, "],\"nextCursor\":\"",
                   sizeof("],\"nextCursor\":\"") - 1);
    p = ngx_mcp_cursor_print(p, list->list.version, page[1].entry);
    p = ngx_cpymem(p, "\"}}", 3);

    parts[2].len = p - parts[2].data;

    return NGX_OK;
}


/* the same in one piece, and without what the caller may not see */

static ngx_int_t
ngx_http_mcp_list_text(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    u_char     *p;
    ngx_str_t   parts[3], result, whole;

    if (ngx_http_mcp_list_frame(call, parts) != NGX_OK) {
        return NGX_ERROR;
    }

    text->len = parts[0].len + parts[1].len + parts[2].len;

    p = ngx_pnalloc(call->r->pool, text->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text->data = p;

    p = ngx_cpymem(p, parts[0].data, parts[0].len);
    p = ngx_cpymem(p, parts[1].data, parts[1].len);
    ngx_memcpy(p, parts[2].data, parts[2].len);

    if (!ngx_http_mcp_filters(call->ctx, call->message)) {
        return NGX_OK;
    }

    result.len = ngx_mcp_list_member(call->list->list.kind)->len
                 + sizeof("{\"\":[") - 1;
    result.data = text->data + parts[0].len - result.len;
    result.len = text->data + text->len - 1 - result.data;

    whole = *text;

    if (ngx_http_mcp_filter(call->r, call->ctx, call->message, &result, text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (text->data != whole.data) {
        (void) ngx_pfree(call->r->pool, whole.data);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_call_list_send(ngx_http_mcp_call_t *call)
{
    ngx_str_t  text, parts[3];

    if (call->ctx->accept & NGX_HTTP_MCP_ACCEPT_JSON
        && !ngx_http_mcp_filters(call->ctx, call->message))
    {
        if (ngx_http_mcp_list_frame(call, parts) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_mcp_answer_parts(call->r, parts, 3);
    }

    if (ngx_http_mcp_list_text(call, &text) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_mcp_answer(call->r, NGX_HTTP_OK, &text);
}


ngx_int_t
ngx_http_mcp_call_list_element(ngx_http_mcp_call_t *call, ngx_str_t *text)
{
    return ngx_http_mcp_list_text(call, text);
}


void
ngx_http_mcp_call_list_wait(ngx_http_mcp_call_t *call)
{
    call->listing = 1;

    call->waiter.ready = ngx_http_mcp_list_ready;
    call->waiter.data = call;

    call->patience.handler = ngx_http_mcp_list_timeout;
    call->patience.data = call;
    call->patience.log = call->r->connection->log;

    ngx_http_mcp_lists_wait(&call->waiter, &call->ctx->conf->bridge,
                            &call->ctx->session,
                            ngx_http_mcp_list_kind(call));

    ngx_add_timer(&call->patience, NGX_HTTP_MCP_LIST_PATIENCE);
}


void
ngx_http_mcp_call_list_forget(ngx_http_mcp_call_t *call)
{
    call->listing = 0;

    ngx_http_mcp_lists_forget(&call->waiter);

    if (call->patience.timer_set) {
        ngx_del_timer(&call->patience);
    }
}


void
ngx_http_mcp_call_list_abort(ngx_http_mcp_call_t *call)
{
    ngx_connection_t  *c;

    c = call->r->connection;

    ngx_http_mcp_call_list_forget(call);
    ngx_http_mcp_call_done(&call->talk, NGX_HTTP_MCP_ABORTED);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_list_ready(void *data)
{
    ngx_int_t             rc;
    ngx_connection_t     *c;
    ngx_http_mcp_call_t  *call;

    call = data;
    c = call->r->connection;

    rc = ngx_http_mcp_list_get(call);

    if (rc == NGX_AGAIN) {
        ngx_http_mcp_lists_wait(&call->waiter, &call->ctx->conf->bridge,
                                &call->ctx->session,
                                ngx_http_mcp_list_kind(call));
        return;
    }

    ngx_http_mcp_call_list_forget(call);

    if (rc == NGX_DECLINED) {
        ngx_http_mcp_list_go_on(call);

    } else {
        ngx_http_mcp_list_here(call, rc);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_list_timeout(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_mcp_call_t  *call;

    call = ev->data;
    c = call->r->connection;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "mcp list is not there yet, the upstream is asked");

    ngx_http_mcp_call_list_forget(call);
    ngx_http_mcp_list_go_on(call);
    ngx_http_run_posted_requests(c);
}


/* the answer of a call that waited */

static void
ngx_http_mcp_list_here(ngx_http_mcp_call_t *call, ngx_int_t rc)
{
    ngx_str_t  text, why;

    ngx_str_null(&text);

    if (rc == NGX_ERROR) {
        call->ctx->error = NGX_MCP_INVALID_PARAMS;

        why.data = (u_char *) ngx_http_mcp_list_cursor;
        why.len = sizeof(ngx_http_mcp_list_cursor) - 1;

        text = ngx_mcp_error_compose(call->r->pool,
                                     call->ctx->session.revision,
                                     &call->message->id,
                                     NGX_MCP_INVALID_PARAMS, &why, NULL);

    } else if (!call->streaming && !call->batch && !call->gone) {
        call->answered = 1;

        if (ngx_http_mcp_call_list_send(call) == NGX_ERROR) {
            call->gone = 1;
        }

    } else if (ngx_http_mcp_list_text(call, &text) != NGX_OK) {
        ngx_str_null(&text);
    }

    if (text.data) {
        ngx_http_mcp_call_answer(call, &text);
    }

    ngx_http_mcp_call_done(&call->talk, call->answered
                                        ? NGX_HTTP_MCP_OK
                                        : NGX_HTTP_MCP_UNREACHABLE);
}


static void
ngx_http_mcp_list_go_on(ngx_http_mcp_call_t *call)
{
    if (ngx_http_mcp_talk_start(&call->talk) != NGX_OK) {
        ngx_http_mcp_call_done(&call->talk, NGX_HTTP_MCP_UNREACHABLE);
    }
}
