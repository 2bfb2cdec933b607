
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call.h"
#include "ngx_http_mcp_list_cache.h"
#include "ngx_mcp_names.h"


/*
 * The best answer so far of upstreams that have not got the subject of a call.
 * The client gets it if no upstream has the subject.
 */

struct ngx_http_mcp_not_found_s {
    ngx_uint_t                rank;       /* 1: the upstream lacks the method;
                                             2: it lacks the named subject; 3:
                                             it failed, and could not tell */
    ngx_http_mcp_reply_t      reply;
    ngx_int_t                 code;       /* JSON-RPC code of reply */
    ngx_http_mcp_exchange_t  *x;          /* exchange that brought reply, or
                                             NULL */
    ngx_http_mcp_upstream_t  *upstream;   /* upstream that gave reply */
};


static ngx_int_t ngx_http_mcp_call_unknown(ngx_http_mcp_call_t *call,
    ngx_str_t *name, ngx_http_mcp_reply_t *reply);
static ngx_int_t ngx_http_mcp_call_route_cut(ngx_http_mcp_call_t *call,
    ngx_str_t *name);
static void ngx_http_mcp_call_moved(ngx_http_mcp_call_t *call);


ngx_int_t
ngx_http_mcp_call_route(ngx_http_mcp_call_t *call, ngx_http_mcp_reply_t *reply)
{
    ngx_str_t                name;
    ngx_http_mcp_ctx_t      *ctx;
    ngx_http_mcp_bridge_t   *bridge;

    if (call->route.upstream) {
        return NGX_AGAIN;
    }

    ctx = call->ctx;
    bridge = &ctx->conf->bridge;

    if (ngx_http_mcp_router_plain(&bridge->router)) {
        call->route.upstream = ngx_http_mcp_router_next(&bridge->router, NULL);
        return NGX_AGAIN;
    }

    ngx_str_null(&name);

    if (call->message->subject == NGX_MCP_PATH_NAME && call->batch == NULL) {
        name = ctx->scope.name;

    } else if (call->message->subject != NGX_MCP_PATH_NONE) {
        name = ngx_mcp_message_string(call->message, call->message->subject,
                                      call->r->pool);
        if (name.data == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_http_mcp_route(bridge, &ctx->caller, call->message->method_code,
                       call->message->subject, &name, &call->route);

    if (call->route.upstream == NULL) {
        return ngx_http_mcp_call_unknown(call, &name, reply);
    }

    if (call->route.cut
        && ngx_http_mcp_call_route_cut(call, &name) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    ngx_http_mcp_call_moved(call);

    return NGX_AGAIN;
}


/*
 * Finds the whole name of a cut one in a cached list.  NGX_OK; NGX_DECLINED:
 * the name has to be looked up later; NGX_ERROR (no memory).
 */

static ngx_int_t
ngx_http_mcp_call_route_cut(ngx_http_mcp_call_t *call, ngx_str_t *name)
{
    ngx_uint_t              kind;
    ngx_mcp_merge_t        *index;
    ngx_mcp_merge_entry_t  *entry;

    kind = (call->message->method_code == NGX_MCP_METHOD_TOOLS_CALL)
           ? NGX_MCP_LIST_TOOLS : NGX_MCP_LIST_PROMPTS;

    index = ngx_http_mcp_list_cache_index(&call->ctx->conf->bridge,
                                          &call->ctx->caller, kind);
    entry = index ? ngx_mcp_merge_find(index, name) : NULL;

    if (entry == NULL) {
        return NGX_DECLINED;
    }

    call->route.cut = 0;

    return ngx_http_mcp_string_copy(call->r->pool, &call->route.local,
                                    &entry->local);
}


/* refuses in the specification's words (server/tools, "Error Handling") */

static ngx_int_t
ngx_http_mcp_call_unknown(ngx_http_mcp_call_t *call, ngx_str_t *name,
    ngx_http_mcp_reply_t *reply)
{
    u_char  *p;

    (void) ngx_http_mcp_reply_error(reply, NGX_HTTP_OK, NGX_MCP_INVALID_PARAMS,
                                    "");

    p = ngx_pnalloc(call->r->pool, sizeof("Unknown prompt: ") - 1
                                   + NGX_MCP_QUOTE);
    if (p == NULL) {
        return NGX_ERROR;
    }

    reply->message.data = p;

    p = ngx_sprintf(p, "Unknown %s: ",
                    call->message->method_code == NGX_MCP_METHOD_TOOLS_CALL
                    ? "tool" : "prompt");
    p = ngx_mcp_json_quote(p, name);

    reply->message.len = p - reply->message.data;

    return NGX_OK;
}


/* stores the call's upstream, to which a cancellation of the client is sent */

static void
ngx_http_mcp_call_moved(ngx_http_mcp_call_t *call)
{
    call->record.upstream = call->route.upstream->hash;

    if (call->registered) {
        ngx_mcp_call_moved(call->ctx->conf->zone, &call->record);
    }
}


ngx_int_t
ngx_http_mcp_call_body(ngx_http_mcp_call_t *call, ngx_str_t *body)
{
    u_char             *p;
    size_t              cut;
    ngx_str_t           value, *local;
    ngx_pool_t         *pool;
    ngx_mcp_span_t     *span;
    ngx_mcp_path_e      path[2];
    ngx_mcp_message_t  *m;

    m = call->message;
    *body = m->text;

    local = &call->route.local;

    if (local->data == NULL) {
        return NGX_OK;
    }

    pool = call->r->pool;

    span = &m->json.members[m->subject];
    cut = call->route.upstream->prefix.len + sizeof(NGX_MCP_NAME_JOINT) - 1;

    if (cut + local->len <= NGX_MCP_NAME_MAX
        && span->end - span->start == cut + local->len + 2)
    {
        /* the name was not cut, and has no escapes: the prefix is left out */

        body->len = m->text.len - cut;
        body->data = ngx_pnalloc(pool, body->len);

        if (body->data == NULL) {
            return NGX_ERROR;
        }

        p = ngx_cpymem(body->data, m->text.data, span->start + 1);
        ngx_memcpy(p, m->text.data + span->start + 1 + cut,
                   m->text.len - span->start - 1 - cut);

        return NGX_OK;
    }

    value.data = ngx_pnalloc(pool, ngx_mcp_json_escaped_len(local));
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_mcp_json_escape(value.data, local) - value.data;

    path[0] = m->subject;
    path[1] = NGX_MCP_PATH_NONE;

    *body = ngx_mcp_message_replace(pool, &m->text, &m->json, path, &value);

    return body->data ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_call_not_found(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply, ngx_int_t code, ngx_http_mcp_exchange_t *x)
{
    ngx_uint_t                 rank;
    ngx_http_mcp_not_found_t  *not_found;

    if (call->not_found == NULL) {
        call->not_found = ngx_pcalloc(call->r->pool,
                                      sizeof(ngx_http_mcp_not_found_t));
        if (call->not_found == NULL) {
            return;
        }
    }

    not_found = call->not_found;

    rank = (code == NGX_MCP_METHOD_NOT_FOUND)
           ? 1 : ngx_http_mcp_route_absent(call->message->method_code, code)
                 ? 2 : 3;

    if (rank <= not_found->rank) {
        return;
    }

    not_found->rank = rank;
    not_found->reply = *reply;
    not_found->code = code;
    not_found->x = x;
    not_found->upstream = call->route.upstream;
}


ngx_int_t
ngx_http_mcp_call_elsewhere(ngx_http_mcp_call_t *call,
    ngx_http_mcp_reply_t *reply, ngx_http_mcp_exchange_t **x)
{
    ngx_http_mcp_ctx_t        *ctx;
    ngx_http_mcp_not_found_t  *not_found;

    ctx = call->ctx;

    if (ngx_http_mcp_route_next(&ctx->conf->bridge, &ctx->caller,
                                call->message->method_code, &call->route)
        == NGX_OK)
    {
        ngx_http_mcp_call_moved(call);

        return NGX_AGAIN;
    }

    not_found = call->not_found;

    if (not_found == NULL) {
        return NGX_ERROR;
    }

    *reply = not_found->reply;
    *x = not_found->x;

    call->route.upstream = not_found->upstream;

    ctx->upstream = not_found->upstream->name;
    ctx->error = not_found->code;

    ngx_http_mcp_call_unsubscribe(call);

    return NGX_OK;
}
