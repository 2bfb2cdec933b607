
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_call.h"


/* calls of this worker by number; a free entry holds the next free one */

static ngx_http_mcp_call_t  **ngx_http_mcp_calls;
static uintptr_t              ngx_http_mcp_calls_free;
static ngx_uint_t             ngx_http_mcp_calls_size;

#define ngx_http_mcp_calls_next(n)  (((uintptr_t) (n) << 1) | 1)


ngx_int_t
ngx_http_mcp_call_register(ngx_http_mcp_call_t *call)
{
    size_t                 size;
    ngx_uint_t             i, n;
    ngx_http_mcp_call_t  **calls;

    if (ngx_http_mcp_calls_free == ngx_http_mcp_calls_size) {

        n = ngx_http_mcp_calls_size ? ngx_http_mcp_calls_size * 2 : 256;
        size = n * sizeof(ngx_http_mcp_call_t *);

        calls = ngx_alloc(size, ngx_cycle->log);
        if (calls == NULL) {
            return NGX_ERROR;
        }

        if (ngx_http_mcp_calls) {
            ngx_memcpy(calls, ngx_http_mcp_calls,
                       ngx_http_mcp_calls_size * sizeof(*calls));
            ngx_free(ngx_http_mcp_calls);
        }

        for (i = ngx_http_mcp_calls_size; i < n; i++) {
            calls[i] = (ngx_http_mcp_call_t *) ngx_http_mcp_calls_next(i + 1);
        }

        ngx_http_mcp_calls = calls;
        ngx_http_mcp_calls_size = n;
    }

    call->local = (uint32_t) ngx_http_mcp_calls_free;
    ngx_http_mcp_calls_free = (uintptr_t) ngx_http_mcp_calls[call->local] >> 1;
    ngx_http_mcp_calls[call->local] = call;

    return NGX_OK;
}


/* the exchange is over: the slot is free and nobody wakes this call */

void
ngx_http_mcp_call_unregister(ngx_http_mcp_call_t *call)
{
    if (call->after.timer_set) {
        ngx_del_timer(&call->after);
    }

    if (call->registered) {
        call->registered = 0;
        ngx_mcp_call_close(call->ctx->conf->zone, call->record.ref);
    }

    if (ngx_http_mcp_calls[call->local] == call) {
        ngx_http_mcp_calls[call->local] = (ngx_http_mcp_call_t *)
                              ngx_http_mcp_calls_next(ngx_http_mcp_calls_free);
        ngx_http_mcp_calls_free = call->local;
    }
}


void
ngx_http_mcp_call_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why)
{
    ngx_http_mcp_call_t  *call;

    if (local >= ngx_http_mcp_calls_size
        || ((uintptr_t) ngx_http_mcp_calls[local] & 1))
    {
        return;
    }

    call = ngx_http_mcp_calls[local];

    if (call->record.ref.block != ref.block || call->record.ref.gen != ref.gen
        || call->ctx->conf->zone != zone)
    {
        return;
    }

    if (why & (NGX_MCP_WAKE_CANCEL|NGX_MCP_WAKE_CLOSE)) {

        if (call->cancelled || call->answered) {
            return;
        }

        call->ended = (why & NGX_MCP_WAKE_CLOSE) ? 1 : 0;

        ngx_http_mcp_call_abort(call);
        return;
    }

    if (why & NGX_MCP_WAKE_NEWS) {
        ngx_http_mcp_call_news(call);

        if (ngx_http_mcp_calls[local] != call) {
            return;
        }
    }

    if (why & NGX_MCP_WAKE_LINK) {
        ngx_http_mcp_talk_wake(&call->talk);
    }
}


void
ngx_http_mcp_call_abort(ngx_http_mcp_call_t *call)
{
    ngx_connection_t  *c;

    call->cancelled = 1;

    if (call->listing) {
        ngx_http_mcp_call_list_abort(call);
        return;
    }

    if (call->wait) {
        ngx_http_mcp_call_wait_abort(call);
        return;
    }

    if (!call->sharing) {
        ngx_http_mcp_talk_abort(&call->talk);
        return;
    }

    c = call->r->connection;

    call->sharing = 0;
    ngx_http_mcp_supply_forget(call->supply);

    ngx_http_mcp_call_done(&call->talk, NGX_HTTP_MCP_ABORTED);
    ngx_http_run_posted_requests(c);
}
