
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_builtin.h"
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_client.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_mcp_splice.h"


/* ms for which a call waits for a list that is not cached yet */
#define NGX_HTTP_MCP_LIST_TIMEOUT   5000

/* the text of an answer before its id, and the text between id and result */
#define NGX_HTTP_MCP_LIST_ID      "{\"jsonrpc\":\"2.0\",\"id\":"
#define NGX_HTTP_MCP_LIST_RESULT  ",\"result\":"


/* a call that waits until a list is cached */

typedef struct {
    ngx_http_mcp_list_waiter_t  waiter;
    ngx_event_t                 timer;
} ngx_http_mcp_call_list_t;


static ngx_int_t ngx_http_mcp_list_start(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_uint_t ngx_http_mcp_list_passing(ngx_http_mcp_call_t *call,
    ngx_uint_t kind);
static ngx_int_t ngx_http_mcp_list_get(ngx_http_mcp_call_t *call,
    ngx_uint_t partial, ngx_http_mcp_reply_t *reply);
static ngx_mcp_page_t *ngx_http_mcp_list_page(ngx_http_mcp_call_t *call,
    ngx_http_mcp_list_copy_t *list);
static void ngx_http_mcp_list_log_private(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
static ngx_int_t ngx_http_mcp_list_frame(ngx_http_mcp_call_t *call,
    ngx_http_mcp_list_copy_t *list, ngx_mcp_page_t *page,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_list_edit_page(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_list_wait(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_list_stop(ngx_http_mcp_call_t *call);
static void ngx_http_mcp_list_ready(void *data);
static void ngx_http_mcp_list_timeout(ngx_event_t *ev);
static void ngx_http_mcp_list_again(ngx_http_mcp_call_t *call,
    ngx_uint_t partial);


/* the answerer for cached lists */

ngx_http_mcp_answerer_t  ngx_http_mcp_call_list = {
    .start = ngx_http_mcp_list_start,
    .stop = ngx_http_mcp_list_stop,
    .methods = NGX_HTTP_MCP_METHODS_LIST
};


static ngx_int_t
ngx_http_mcp_list_start(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t            rc;
    ngx_uint_t           kind, own_lists;
    ngx_mcp_ref_t        none;
    ngx_http_mcp_ctx_t  *ctx;

    ctx = call->ctx;

    kind = ngx_http_mcp_list_kind(call);

    if (ngx_http_mcp_list_passing(call, kind)) {
        call->passing = 1;
        call->forgotten = ngx_mcp_lists_forgotten(ctx->conf->zone);

        return ngx_http_mcp_list_get(call, 0, reply);
    }

    if (!ngx_http_mcp_list_cache_fetches(&ctx->conf->bridge, kind)) {
        return NGX_DECLINED;
    }

    own_lists = ngx_http_mcp_list_private(call->r, ctx);

    if (own_lists) {
        ngx_http_mcp_list_log_private(call->r, ctx);
    }

    if (own_lists && ctx->client->sessionless) {
        return NGX_DECLINED;
    }

    /* a session is notified of changes of lists of one audience only */

    if (!ctx->client->sessionless
        && (own_lists
            || !ngx_mcp_audience_of(ctx->conf->zone, &ctx->session,
                                    &ctx->caller.audience_key)))
    {
        if (!ctx->session.own_lists) {
            ngx_memzero(&none, sizeof(ngx_mcp_ref_t));
            (void) ngx_mcp_audience_join(ctx->conf->zone, ctx->caller.session,
                                         none);
            ctx->session.own_lists = 1;
        }

        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_list_get(call, 0, reply);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    rc = ngx_http_mcp_call_open(call, reply);

    return rc == NGX_AGAIN ? ngx_http_mcp_list_wait(call) : rc;
}


/*
 * Returns whether the list that the upstream answers may be cached for other
 * callers, provided that the upstream marks it as public
 */

static ngx_uint_t
ngx_http_mcp_list_passing(ngx_http_mcp_call_t *call, ngx_uint_t kind)
{
    ngx_str_t         params, name, value;
    static ngx_str_t  meta = ngx_string("_meta");
    static ngx_str_t  cursor = ngx_string("cursor");

    if (!(call->ctx->conf->bridge.lists_passing & NGX_MCP_LIST_BIT(kind))) {
        return 0;
    }

    /* the list may depend on other members of params */

    params = ngx_mcp_message_member(call->message, NGX_MCP_PATH_PARAMS);

    while (params.len && ngx_mcp_json_member(&params, &name, &value) == NGX_OK)
    {
        if (!ngx_mcp_json_is(&name, &meta) && !ngx_mcp_json_is(&name, &cursor))
        {
            return 0;
        }
    }

    return 1;
}


void
ngx_http_mcp_list_passed(ngx_http_mcp_call_t *call,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *result)
{
    ngx_int_t                kind;
    ngx_pool_t              *pool;
    const char              *why;
    ngx_mcp_pages_t          pages;
    ngx_mcp_list_content_t   content;

    kind = ngx_http_mcp_list_kind(call);

    if (kind == NGX_ERROR) {
        return;
    }

    call->ctx->hint = ureq->hint;

    if (!ureq->hint.public || ureq->hint.until <= ngx_current_msec
        || call->message->json.members[NGX_MCP_PATH_CURSOR].type
           > NGX_MCP_JSON_NULL
        || !call->passing)
    {
        return;
    }

    pool = ngx_create_pool(4096, call->r->connection->log);
    if (pool == NULL) {
        return;
    }

    /* a list in pages is not cached: each page has a time of its own */

    if (ngx_mcp_pages_init(&pages, kind, pool) == NGX_OK
        && ngx_mcp_pages_add(&pages, result, &ureq->hint, &why) == NGX_OK
        && ngx_mcp_pages_end(&pages, &content) == NGX_OK)
    {
        ngx_http_mcp_list_cache_keep(&call->ctx->conf->bridge,
                                     &call->ctx->caller, &ureq->upstream->name,
                                     &content, call->forgotten);
    }

    ngx_destroy_pool(pool);
}


ngx_int_t
ngx_http_mcp_call_own_list(ngx_http_mcp_call_t *call, ngx_str_t *result)
{
    ngx_mcp_message_t  *m;

    m = call->message;

    if (!ngx_http_mcp_list_own(&call->ctx->conf->bridge, m->method_code)
        || m->json.members[NGX_MCP_PATH_CURSOR].type > NGX_MCP_JSON_NULL)
    {
        return NGX_DECLINED;
    }

    ngx_str_null(result);

    if (ngx_http_mcp_list_edit_result(call->r, call->ctx, m, result)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    call->ctx->error = 0;
    call->ctx->failed = 0;

    return NGX_OK;
}


ngx_int_t
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


/*
 * Answers from the cache.  NGX_OK: *reply is the answer; NGX_AGAIN: the call
 * has to wait until the list is cached; NGX_DECLINED: the upstream is to be
 * asked; NGX_ERROR.  The list is released with the request.  partial: the call
 * has waited, and takes a list without the entries of some upstreams.
 */

static ngx_int_t
ngx_http_mcp_list_get(ngx_http_mcp_call_t *call, ngx_uint_t partial,
    ngx_http_mcp_reply_t *reply)
{
    ngx_int_t                  rc;
    ngx_pool_cleanup_t        *cln;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_list_copy_t  *list;

    mlcf = call->ctx->conf;

    cln = ngx_pool_cleanup_add(call->r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    rc = call->passing
         ? ngx_http_mcp_list_cache_passed(&mlcf->bridge, &call->ctx->caller,
                                          ngx_http_mcp_list_kind(call), &list)
         : ngx_http_mcp_list_cache_get(&mlcf->bridge, &call->ctx->caller,
                                       ngx_http_mcp_list_kind(call), partial,
                                       &list);
    if (rc != NGX_OK) {
        return rc == NGX_AGAIN ? NGX_AGAIN : NGX_DECLINED;
    }

    cln->handler = ngx_http_mcp_list_cache_release;
    cln->data = list;

    if (call->passing && ngx_http_mcp_list_page(call, list) == NULL) {

        /* the upstream may have made the cursor */

        return NGX_DECLINED;
    }

    call->ctx->hint = list->list.hint;

    return ngx_http_mcp_call_list_page(call, list, reply);
}


ngx_int_t
ngx_http_mcp_call_list_page(ngx_http_mcp_call_t *call,
    ngx_http_mcp_list_copy_t *list, ngx_http_mcp_reply_t *reply)
{
    ngx_mcp_page_t  *page;

    page = ngx_http_mcp_list_page(call, list);

    if (page == NULL) {
        return ngx_http_mcp_reply_invalid(reply, "params.cursor is not a "
                                                 "cursor of the current list; "
                                                 "begin with the first page");
    }

    if (ngx_http_mcp_list_frame(call, list, page, reply) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_list_edited(call->ctx, call->message)
           ? ngx_http_mcp_list_edit_page(call, reply) : NGX_OK;
}


/* returns the page that the request asks for; NULL: its cursor is unknown */

static ngx_mcp_page_t *
ngx_http_mcp_list_page(ngx_http_mcp_call_t *call,
    ngx_http_mcp_list_copy_t *list)
{
    uint64_t    version;
    ngx_str_t   cursor;
    ngx_uint_t  i, entry;

    switch (call->message->json.members[NGX_MCP_PATH_CURSOR].type) {

    case NGX_MCP_JSON_ABSENT:
    case NGX_MCP_JSON_NULL:
        return list->pages;

    case NGX_MCP_JSON_STRING:
        break;

    default:
        return NULL;
    }

    cursor = ngx_mcp_message_string(call->message, NGX_MCP_PATH_CURSOR,
                                    call->r->pool);

    if (cursor.data == NULL
        || ngx_mcp_cursor_parse(&cursor, &version, &entry) != NGX_OK
        || version != list->list.version)
    {
        return NULL;
    }

    for (i = 1; i < list->npages; i++) {
        if (list->pages[i].entry == entry) {
            return &list->pages[i];
        }
    }

    return NULL;
}


static void
ngx_http_mcp_list_log_private(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx)
{
    uint64_t                  key;
    ngx_str_t                 id;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ctx->conf;

    if (mlcf->worker->lists_logged) {
        return;
    }

    mlcf->worker->lists_logged = 1;

    ngx_str_set(&id, "mcp_list_cache");

    key = ngx_mcp_idempotency_key(mlcf->zone, &mlcf->name, &id);

    if (ngx_mcp_idempotency_first(mlcf->zone, key) != NGX_OK) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "mcp endpoint \"%V\" forwards list requests that carry "
                  "credentials to the upstream, as lists may depend on the "
                  "credentials; set \"mcp_list_cache on key=VALUE\" to cache "
                  "them", &mlcf->name);
}


/* makes the parts of the answer: the page's entries and the JSON around them */

static ngx_int_t
ngx_http_mcp_list_frame(ngx_http_mcp_call_t *call,
    ngx_http_mcp_list_copy_t *list, ngx_mcp_page_t *page,
    ngx_http_mcp_reply_t *reply)
{
    u_char     *p;
    ngx_str_t   stamp, *id, *member, *parts;

    parts = reply->parts;
    id = &call->message->id;
    member = ngx_mcp_list_member(list->list.kind);

    ngx_str_set(&stamp, "");

    if (call->ctx->client->stamp) {
        stamp = call->ctx->client->stamp(call->ctx, call->r->pool);
    }

    p = ngx_pnalloc(call->r->pool,
                    sizeof("{\"jsonrpc\":\"2.0\",\"id\":,\"result\":{\"\":["
                           "],\"nextCursor\":\"\"}}") - 1
                    + id->len + stamp.len + member->len + NGX_MCP_CURSOR_LEN);
    if (stamp.data == NULL || p == NULL) {
        return NGX_ERROR;
    }

    parts[0].data = p;

    p = ngx_cpymem(p, NGX_HTTP_MCP_LIST_ID,
                   sizeof(NGX_HTTP_MCP_LIST_ID) - 1);
    p = ngx_cpymem(p, id->data, id->len);
    p = ngx_cpymem(p, NGX_HTTP_MCP_LIST_RESULT "{",
                   sizeof(NGX_HTTP_MCP_LIST_RESULT "{") - 1);
    p = ngx_cpymem(p, stamp.data, stamp.len);
    *p++ = '"';
    p = ngx_cpymem(p, member->data, member->len);
    p = ngx_cpymem(p, "\":[", 3);

    parts[0].len = p - parts[0].data;

    parts[1].data = list->text.data + page->start;
    parts[1].len = page->end - page->start;

    parts[2].data = p;

    *p++ = ']';

    if (page != &list->pages[list->npages - 1]) {
        p = ngx_cpymem(p, ",\"nextCursor\":\"",
                       sizeof(",\"nextCursor\":\"") - 1);
        p = ngx_mcp_cursor_print(p, list->list.version, page[1].entry);
        *p++ = '"';
    }

    p = ngx_cpymem(p, "}}", 2);

    parts[2].len = p - parts[2].data;

    reply->nparts = 3;

    return NGX_OK;
}


/* joins the parts, without entries that the caller may not see */

static ngx_int_t
ngx_http_mcp_list_edit_page(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply)
{
    size_t     start;
    u_char    *whole;
    ngx_str_t  text, result;

    start = sizeof(NGX_HTTP_MCP_LIST_ID NGX_HTTP_MCP_LIST_RESULT) - 1
            + call->message->id.len;

    if (ngx_http_mcp_reply_text(call->r, &call->message->id, reply, &text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    whole = text.data;

    result.data = text.data + start;
    result.len = text.len - start - 1;

    if (ngx_http_mcp_list_edit_text(call->r, call->ctx, call->message,
                                    &result, &text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (text.data != whole) {
        (void) ngx_pfree(call->r->pool, whole);
    }

    reply->parts[0] = text;
    reply->nparts = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_list_wait(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_call_list_t  *wait;

    wait = ngx_pcalloc(call->r->pool, sizeof(ngx_http_mcp_call_list_t));
    if (wait == NULL) {
        return NGX_ERROR;
    }

    call->data = wait;

    wait->waiter.ready = ngx_http_mcp_list_ready;
    wait->waiter.data = call;

    wait->timer.handler = ngx_http_mcp_list_timeout;
    wait->timer.data = call;
    wait->timer.log = call->r->connection->log;

    ngx_http_mcp_list_cache_wait(&wait->waiter, &call->ctx->conf->bridge,
                                 &call->ctx->caller,
                                 ngx_http_mcp_list_kind(call));

    ngx_add_timer(&wait->timer, NGX_HTTP_MCP_LIST_TIMEOUT);

    return NGX_AGAIN;
}


static void
ngx_http_mcp_list_stop(ngx_http_mcp_call_t *call)
{
    ngx_http_mcp_call_list_t  *wait;

    wait = call->data;

    if (wait == NULL) {
        return;
    }

    ngx_http_mcp_list_cache_cancel(&wait->waiter);

    if (wait->timer.timer_set) {
        ngx_del_timer(&wait->timer);
    }
}


static void
ngx_http_mcp_list_ready(void *data)
{
    ngx_http_mcp_list_again(data, 0);
}


static void
ngx_http_mcp_list_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_call_t *call = ev->data;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, call->r->connection->log, 0,
                   "mcp list is not there yet");

    ngx_http_mcp_list_stop(call);
    ngx_http_mcp_list_again(call, 1);
}


/* partial: as for ngx_http_mcp_list_get() */

static void
ngx_http_mcp_list_again(ngx_http_mcp_call_t *call, ngx_uint_t partial)
{
    ngx_int_t                  rc;
    ngx_connection_t          *c;
    ngx_http_mcp_reply_t       reply;
    ngx_http_mcp_call_list_t  *wait;

    c = call->r->connection;

    /* a subrequest of a call in the same batch may have used the log */

    ngx_http_set_log_request(c->log, call->r);
    c->log->action = NULL;

    ngx_memzero(&reply, sizeof(ngx_http_mcp_reply_t));

    rc = ngx_http_mcp_list_get(call, partial, &reply);

    if (rc == NGX_AGAIN && !partial) {
        wait = call->data;

        ngx_http_mcp_list_cache_wait(&wait->waiter, &call->ctx->conf->bridge,
                                     &call->ctx->caller,
                                     ngx_http_mcp_list_kind(call));
        return;
    }

    ngx_http_mcp_list_stop(call);

    /* the upstreams are asked for a list that is still missing */

    ngx_http_mcp_call_started(call, rc == NGX_AGAIN ? NGX_DECLINED : rc,
                              &reply);

    ngx_http_run_posted_requests(c);
}
