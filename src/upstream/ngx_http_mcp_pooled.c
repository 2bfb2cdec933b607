
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_pooled.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_mcp_declared.h"
#include "ngx_mcp_id.h"
#include "ngx_mcp_splice.h"


/* ms; interval at which a running request extends its shared session's life */
#define NGX_HTTP_MCP_POOLED_EXTEND  (NGX_MCP_SHARED_TIMEOUT / 2)

/*
 * the prefix of list keys of shared sessions for callers without a session; no
 * configured list key has this prefix
 */
#define NGX_HTTP_MCP_POOLED_KEY    "\0pooled\0"


static ngx_int_t ngx_http_mcp_pooled_make_id(
    ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_pooled_replace(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text,
    ngx_mcp_path_e path, ngx_str_t *value);
static void ngx_http_mcp_pooled_extend(ngx_event_t *ev);


/* members of params._meta that are removed: servers with sessions lack them */

static ngx_str_t  ngx_http_mcp_pooled_names[] = {
    ngx_string("io.modelcontextprotocol/protocolVersion"),
    ngx_string("io.modelcontextprotocol/clientInfo"),
    ngx_string("io.modelcontextprotocol/clientCapabilities"),
    ngx_string("io.modelcontextprotocol/logLevel"),
    ngx_string("progressToken"),
    ngx_null_string
};


ngx_int_t
ngx_http_mcp_pooled_open(ngx_http_mcp_upstream_request_t *ureq)
{
    u_char                   *p;
    ngx_str_t                 key;
    ngx_uint_t                declared;
    ngx_mcp_shared_t          in;
    ngx_http_mcp_upstream_t  *u;

    u = ureq->upstream;

    if (ureq->gives_state) {
        ureq->refused = "requestState is not one that this server gave for "
                        "this request";

        ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_OK);
        return NGX_AGAIN;
    }

    if (ureq->sent_id.len == 0 && ngx_http_mcp_pooled_make_id(ureq) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ureq->exclusive) {
        return ureq->exclusive(ureq);
    }

    if (ureq->principal(ureq, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memzero(&in, sizeof(ngx_mcp_shared_t));

    /* the upstream's lists may depend on declared capabilities */

    declared = ngx_mcp_declared(&ureq->capabilities);
    ngx_str_null(&ureq->capabilities);

    if (declared) {
        ureq->capabilities = ngx_mcp_declared_compose(ureq->r->pool, declared);

        if (ureq->capabilities.data == NULL) {
            return NGX_ERROR;
        }
    }

    in.list_key.len = sizeof(NGX_HTTP_MCP_POOLED_KEY) + key.len;
    in.list_key.data = ngx_pnalloc(ureq->r->pool, in.list_key.len);

    if (in.list_key.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(in.list_key.data, NGX_HTTP_MCP_POOLED_KEY,
                   sizeof(NGX_HTTP_MCP_POOLED_KEY) - 1);
    *p++ = ngx_mcp_declared_letter(declared);
    ngx_memcpy(p, key.data, key.len);

    in.endpoint = u->endpoint;
    in.tenant = ureq->tenant;
    in.client = ureq->share;
    in.upstream = u->name;
    in.id = ureq->session;
    in.pooled = 1;

    if (ngx_mcp_shared_get(u->zone, &in, &ureq->owner) != NGX_OK) {
        ngx_http_mcp_pooled_refuse(ureq);
        return NGX_AGAIN;
    }

    if (ureq->extend == NULL) {
        ureq->extend = ngx_pcalloc(ureq->r->pool, sizeof(ngx_event_t));
        if (ureq->extend == NULL) {
            return NGX_ERROR;
        }

        ureq->extend->handler = ngx_http_mcp_pooled_extend;
        ureq->extend->data = ureq;
        ureq->extend->log = ngx_cycle->log;
        ureq->extend->cancelable = 1;
    }

    if (!ureq->extend->timer_set) {
        ngx_add_timer(ureq->extend, NGX_HTTP_MCP_POOLED_EXTEND);
    }

    return NGX_OK;
}


void
ngx_http_mcp_pooled_refuse(ngx_http_mcp_upstream_request_t *ureq)
{
    ureq->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    ngx_str_set(&ureq->why, "the zone has no room for another session at the "
                "upstream (mcp_zone); try again later");

    ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_UNREACHABLE);
}


/*
 * Makes the raw string that the upstream gets as the id and as the progress
 * token.
 */

static ngx_int_t
ngx_http_mcp_pooled_make_id(ngx_http_mcp_upstream_request_t *ureq)
{
    u_char  *p;

    p = ngx_pnalloc(ureq->r->pool, NGX_MCP_UUID_LEN + 2);

    if (p == NULL || ngx_mcp_uuid_raw(p) != NGX_OK) {
        return NGX_ERROR;
    }

    ureq->sent_id.data = p;
    ureq->sent_id.len = NGX_MCP_UUID_LEN + 2;

    return NGX_OK;
}


ngx_str_t
ngx_http_mcp_pooled_body(ngx_http_mcp_upstream_request_t *ureq)
{
    u_char          *p;
    ngx_str_t        out, members, meta;
    ngx_uint_t       n;
    ngx_pool_t      *pool;
    ngx_mcp_edit_t   edits[2];
    ngx_mcp_json_t   json;

    pool = ureq->r->pool;

    out.len = 0;
    out.data = NULL;

    if (ngx_mcp_json_scan(&json, &ureq->body) != NGX_OK) {
        return out;
    }

    ureq->caller_id = ngx_mcp_json_span(&json, NGX_MCP_PATH_ID,
                                        ureq->body.data);
    ureq->caller_token = ngx_mcp_json_span(&json, NGX_MCP_PATH_META_TOKEN,
                                           ureq->body.data);
    n = 0;

    if (ureq->caller_id.len) {
        edits[n].start = json.members[NGX_MCP_PATH_ID].start;
        edits[n].end = json.members[NGX_MCP_PATH_ID].end;
        edits[n++].text = ureq->sent_id;
    }

    if (json.members[NGX_MCP_PATH_META].type == NGX_MCP_JSON_OBJECT) {

        meta = ngx_mcp_json_span(&json, NGX_MCP_PATH_META, ureq->body.data);

        ngx_str_set(&members, "");

        if (ureq->caller_token.len) {
            p = ngx_pnalloc(pool, sizeof("\"progressToken\":")
                                  + ureq->sent_id.len);
            if (p == NULL) {
                return out;
            }

            members.data = p;
            members.len = ngx_sprintf(p, "\"progressToken\":%V", &ureq->sent_id)
                          - p;
        }

        edits[n].start = json.members[NGX_MCP_PATH_META].start;
        edits[n].end = json.members[NGX_MCP_PATH_META].end;
        edits[n].text = ngx_mcp_join(pool, &members, &meta,
                                     ngx_http_mcp_pooled_names);

        if (edits[n++].text.data == NULL) {
            return out;
        }
    }

    return ngx_mcp_splice(pool, &ureq->body, edits, n);
}


ngx_int_t
ngx_http_mcp_pooled_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t        value;
    ngx_mcp_json_t  *json;

    json = ureq->x->scan;

    if (json->members[NGX_MCP_PATH_METHOD].count == 0) {

        value = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

        return ngx_mcp_json_same_id(&value, &ureq->sent_id)
               ? ngx_http_mcp_pooled_replace(ureq, text, NGX_MCP_PATH_ID,
                                             &ureq->caller_id)
               : NGX_OK;
    }

    value = ngx_mcp_json_span(json, NGX_MCP_PATH_TOKEN, text->data);

    if (value.len == 0) {
        return NGX_OK;
    }

    return (ureq->caller_token.len
            && ngx_mcp_json_same_id(&value, &ureq->sent_id))
           ? ngx_http_mcp_pooled_replace(ureq, text, NGX_MCP_PATH_TOKEN,
                                         &ureq->caller_token)
           : NGX_DECLINED;
}


/*
 * Replaces a member of the message: in place if the value is not longer, else
 * in ureq->buffer, which is used again for each message, as there may be many.
 */

static ngx_int_t
ngx_http_mcp_pooled_replace(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text, ngx_mcp_path_e path, ngx_str_t *value)
{
    u_char          *p, *last;
    size_t           len;
    ngx_mcp_span_t  *span;

    span = &ureq->x->scan->members[path];

    if (value->len <= span->end - span->start) {

        last = text->data + text->len;

        p = ngx_cpymem(text->data + span->start, value->data, value->len);
        p = ngx_movemem(p, text->data + span->end,
                        last - (text->data + span->end));

        text->len = p - text->data;

    } else {
        len = text->len + value->len;

        if (ureq->buffer.len < len) {
            ureq->buffer.data = ngx_pnalloc(ureq->r->pool, 2 * len);
            if (ureq->buffer.data == NULL) {
                ureq->buffer.len = 0;
                return NGX_ERROR;
            }

            ureq->buffer.len = 2 * len;
        }

        p = ngx_cpymem(ureq->buffer.data, text->data, span->start);
        p = ngx_cpymem(p, value->data, value->len);
        p = ngx_cpymem(p, text->data + span->end, text->len - span->end);

        text->data = ureq->buffer.data;
        text->len = p - text->data;
    }

    return ngx_mcp_json_scan(ureq->x->scan, text);
}


static void
ngx_http_mcp_pooled_extend(ngx_event_t *ev)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = ev->data;

    ngx_mcp_shared_keep(ureq->upstream->zone, ureq->owner);

    ngx_add_timer(ev, NGX_HTTP_MCP_POOLED_EXTEND);
}
