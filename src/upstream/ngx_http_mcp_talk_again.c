
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_upstream.h"


/* ms; for the answer to initialize, when nobody waits for it any more */
#define NGX_HTTP_MCP_TALK_LEAVE  3000


ngx_int_t
ngx_http_mcp_talk_again_level(ngx_http_mcp_talk_t *t, ngx_str_t *body)
{
    if (t->level == NGX_MCP_LEVEL_UNSET) {
        return NGX_DECLINED;
    }

    body->data = ngx_pnalloc(t->r->pool, 128);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    body->len = ngx_sprintf(body->data, "{\"jsonrpc\":\"2.0\",\"id\":%V,"
                            "\"method\":\"logging/setLevel\","
                            "\"params\":{\"level\":\"%V\"}}",
                            &ngx_http_mcp_own_id, ngx_mcp_level_name(t->level))
                - body->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_talk_again_subscribe(ngx_http_mcp_talk_t *t, ngx_str_t *body)
{
    u_char     *p;
    ngx_str_t   uri;

    do {
        if (ngx_mcp_session_private_subscription(t->upstream->zone,
                                                 t->session, t->sub++,
                                                 t->r->pool, &uri)
            != NGX_OK)
        {
            return NGX_DECLINED;
        }

        /* the message itself may be about to say so */

    } while (t->legacy_only && ngx_mcp_equal(&t->scope.name, &uri));

    body->data = ngx_pnalloc(t->r->pool, 128 + ngx_mcp_json_escaped_len(&uri));
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    t->again.name = uri;

    p = ngx_sprintf(body->data, "{\"jsonrpc\":\"2.0\",\"id\":%V,"
                    "\"method\":\"resources/subscribe\","
                    "\"params\":{\"uri\":", &ngx_http_mcp_own_id);
    p = ngx_mcp_json_escape(p, &uri);
    *p++ = '}';
    *p++ = '}';

    body->len = p - body->data;

    return NGX_OK;
}


void
ngx_http_mcp_talk_cleanup(ngx_http_mcp_talk_t *t)
{
    ngx_http_mcp_discover_forget(&t->waiter);
    t->waiting = 0;

    if (t->event.timer_set) {
        ngx_del_timer(&t->event);
    }

    if (t->claimed) {
        t->claimed = 0;
        ngx_mcp_link_fail(t->upstream->zone, t->session, &t->upstream->name);
    }
}


void
ngx_http_mcp_talk_leave(ngx_http_mcp_talk_t *t)
{
    ngx_uint_t  making;

    making = t->claimed;

    t->closed = 1;

    ngx_http_mcp_talk_cleanup(t);

    t->leaving = 1;

    if (making && !t->initialized && t->x->status == 0) {
        ngx_http_mcp_background_stay(t->r);
        ngx_add_timer(&t->event, NGX_HTTP_MCP_TALK_LEAVE);

        return;
    }

    if (!making) {
        ngx_str_null(&t->new_id);
    }

    ngx_http_mcp_talk_left(t);
}


void
ngx_http_mcp_talk_left(ngx_http_mcp_talk_t *t)
{
    ngx_str_t  none;

    if (!t->leaving) {
        return;
    }

    t->leaving = 0;

    ngx_str_null(&none);
    ngx_http_mcp_farewell(t->upstream, t->r, &t->tenant, &none, &t->new_id,
                          t->new_revision);

    ngx_http_mcp_background_close(t->r);
}
