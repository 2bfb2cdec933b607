
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"
#include "ngx_mcp_list.h"


static void ngx_http_mcp_said_reply_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_said_handlers = {
    NULL,
    NULL,
    NULL,
    ngx_http_mcp_said_reply_done
};

static ngx_http_mcp_scope_t  ngx_http_mcp_said_scope;


ngx_uint_t
ngx_http_mcp_said_method(ngx_http_mcp_talk_t *t, ngx_str_t *text)
{
    ngx_str_t  method;

    method = ngx_mcp_json_span(&t->x->scan, NGX_MCP_PATH_METHOD, text->data);

    if (method.len < 2
        || t->x->scan.members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_STRING)
    {
        return NGX_MCP_METHOD_OTHER;
    }

    method.data++;
    method.len -= 2;

    return ngx_mcp_method_parse(&method);
}


ngx_str_t
ngx_http_mcp_said_uri(ngx_http_mcp_talk_t *t, ngx_str_t *text,
    ngx_pool_t *pool)
{
    ngx_str_t  raw, uri;

    ngx_str_null(&uri);

    if (t->x->scan.members[NGX_MCP_PATH_URI].type != NGX_MCP_JSON_STRING) {
        return uri;
    }

    raw = ngx_mcp_json_span(&t->x->scan, NGX_MCP_PATH_URI, text->data);

    uri.data = ngx_pnalloc(pool, raw.len);

    if (uri.data) {
        uri.len = ngx_mcp_json_unescape(uri.data, &raw) - uri.data;
    }

    return uri;
}


ngx_uint_t
ngx_http_mcp_said_elsewhere(ngx_http_mcp_talk_t *t, ngx_mcp_ref_t session,
    ngx_str_t *text)
{
    ngx_str_t        uri;
    ngx_uint_t       rc;
    ngx_pool_t      *pool;
    ngx_mcp_zone_t  *zone;

    zone = t->upstream->zone;

    switch (ngx_http_mcp_said_method(t, text)) {

    case NGX_MCP_METHOD_TOOLS_CHANGED:
        return ngx_mcp_list_heard(zone, session,
                                  NGX_MCP_LIST_BIT(NGX_MCP_LIST_TOOLS));

    case NGX_MCP_METHOD_PROMPTS_CHANGED:
        return ngx_mcp_list_heard(zone, session,
                                  NGX_MCP_LIST_BIT(NGX_MCP_LIST_PROMPTS));

    case NGX_MCP_METHOD_RESOURCES_CHANGED:
        return ngx_mcp_list_heard(zone, session,
                                  NGX_MCP_LIST_BIT(NGX_MCP_LIST_RESOURCES)
                                  |NGX_MCP_LIST_BIT(NGX_MCP_LIST_TEMPLATES));

    case NGX_MCP_METHOD_RESOURCES_UPDATED:

        /* the request's own pool may have to last for days */

        pool = ngx_create_pool(1024, ngx_cycle->log);
        if (pool == NULL) {
            return 0;
        }

        uri = ngx_http_mcp_said_uri(t, text, pool);

        rc = ngx_mcp_own_covers(zone, session, &t->upstream->name, &uri);

        ngx_destroy_pool(pool);

        return rc;
    }

    return 0;
}


/* on a request of its own, for that of a listener lives long */

void
ngx_http_mcp_said_reply(ngx_http_mcp_talk_t *t,
    ngx_http_mcp_audience_t *audience, ngx_str_t *id, ngx_int_t code,
    const char *why)
{
    ngx_str_t                 body, text;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_mcp_exchange_t  *x;

    r = ngx_http_mcp_background_for(t->upstream->conf_ctx, audience);
    if (r == NULL) {
        return;
    }

    if (code == 0) {
        ngx_str_set(&text, "{}");
        body = ngx_mcp_result_compose(r->pool, id, &text);

    } else {
        text.data = (u_char *) why;
        text.len = ngx_strlen(why);

        body = ngx_mcp_error_compose(r->pool, NGX_MCP_REVISION_LATEST_LEGACY,
                                     id, code, &text, NULL);
    }

    if (body.data == NULL) {
        goto failed;
    }

    x = ngx_http_mcp_upstream_exchange(r, t->upstream,
                                       &ngx_http_mcp_said_scope);

    if (x == NULL || ngx_http_mcp_upstream_body(x, &body) != NGX_OK) {
        goto failed;
    }

    x->handlers = &ngx_http_mcp_said_handlers;

    if (t->link) {
        x->session_id.len = t->link->id.len;
        x->session_id.data = ngx_pstrdup(r->pool, &t->link->id);
        x->protocol_version = *ngx_mcp_revision_name(t->link->revision);

        if (x->session_id.data == NULL) {
            goto failed;
        }
    }

    if (ngx_http_mcp_exchange_start(x) != NGX_OK) {
        goto failed;
    }

    c = r->connection;
    ngx_http_run_posted_requests(c);

    return;

failed:

    ngx_http_mcp_background_close(r);
}


static void
ngx_http_mcp_said_reply_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(x->r);
}
