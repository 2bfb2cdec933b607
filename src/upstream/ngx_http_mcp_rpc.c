
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"


static ngx_int_t ngx_http_mcp_rpc_open(ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_rpc_heal(ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_rpc_probe(ngx_http_mcp_probe_t *probe);
static void ngx_http_mcp_rpc_probed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_outcome_e outcome);
static ngx_int_t ngx_http_mcp_rpc_capabilities(ngx_http_mcp_probe_t *probe);


/* the manner of plain HTTP handlers, without a handshake or sessions */

ngx_http_mcp_manner_t  ngx_http_mcp_rpc = {
    .protocol = NGX_HTTP_MCP_RPC,
    .kind = NGX_MCP_PROFILE_RPC,
    .absent = 1,
    .open = ngx_http_mcp_rpc_open,
    .lost = ngx_http_mcp_upstream_request_refused,
    .heal = ngx_http_mcp_rpc_heal,
    .probe = ngx_http_mcp_rpc_probe,
    .probed = ngx_http_mcp_rpc_probed
};


/* the lists of an rpc upstream, in the order in which they are probed */

static struct {
    ngx_str_t   method;
    ngx_str_t   capability;
} ngx_http_mcp_rpc_lists[] = {
    { ngx_string("tools/list"), ngx_string("tools") },
    { ngx_string("prompts/list"), ngx_string("prompts") },
    { ngx_string("resources/list"), ngx_string("resources") },
    { ngx_null_string, ngx_null_string }
};


static ngx_int_t
ngx_http_mcp_rpc_open(ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq->existing || ureq->get_stream) {
        return NGX_DECLINED;
    }

    if (ureq->session_only) {
        ngx_http_mcp_upstream_request_post_end(ureq, NGX_HTTP_MCP_OK);
        return NGX_AGAIN;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_rpc_heal(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_profile_reprobe(ureq->upstream, &ureq->tenant, 0,
                                 ureq->r->pool);
}


static ngx_int_t
ngx_http_mcp_rpc_probe(ngx_http_mcp_probe_t *probe)
{
    ngx_str_t  params;

    ngx_str_set(&params, "{}");

    return ngx_http_mcp_probe_send(probe,
                                   &ngx_http_mcp_rpc_lists[probe->step].method,
                                   &params);
}


/* a result of a list's method shows that the upstream has the capability */

static void
ngx_http_mcp_rpc_probed(ngx_http_mcp_probe_t *probe,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_upstream_t  *u;

    u = probe->upstream;

    if (probe->answered) {
        probe->present |= 1 << probe->step;

    } else {

        if (ngx_http_mcp_failure(probe->x, outcome, &probe->fault, probe->pool,
                                 &failure)
            != NGX_OK)
        {
            ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_UNKNOWN);
            return;
        }

        if (!probe->absent) {

            if (u->protocol == NGX_HTTP_MCP_RPC
                && (probe->error || probe->x->status == NGX_HTTP_BAD_REQUEST))
            {
                failure.remedy = "if it is an MCP server, which wants a "
                                 "session, write \"protocol=auto\"";
            }

            ngx_http_mcp_probe_failed(probe, &failure);
            return;
        }

        if (probe->failure.why.len == 0) {
            probe->failure = failure;
        }
    }

    if (ngx_http_mcp_rpc_lists[++probe->step].method.len) {

        if (ngx_http_mcp_rpc_probe(probe) != NGX_OK) {
            ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_UNKNOWN);
        }

        return;
    }

    if (probe->present == 0
        && (u->protocol == NGX_HTTP_MCP_AUTO || !u->listless))
    {
        if (u->protocol == NGX_HTTP_MCP_RPC) {
            ngx_str_set(&probe->method, "any list");

        } else {
            ngx_str_set(&probe->method, "initialize or any list");
        }

        ngx_http_mcp_probe_failed(probe, &probe->failure);
        return;
    }

    if (ngx_http_mcp_rpc_capabilities(probe) != NGX_OK) {
        ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_UNKNOWN);
        return;
    }

    ngx_http_mcp_probe_put(probe, NGX_MCP_PROFILE_RPC);
}


static ngx_int_t
ngx_http_mcp_rpc_capabilities(ngx_http_mcp_probe_t *probe)
{
    u_char      *p;
    ngx_uint_t   i;

    p = ngx_pnalloc(probe->pool, 128);
    if (p == NULL) {
        return NGX_ERROR;
    }

    probe->profile.result.data = p;

    p = ngx_sprintf(p, "{\"capabilities\":{");

    for (i = 0; ngx_http_mcp_rpc_lists[i].method.len; i++) {

        if (probe->present & (1 << i)) {
            p = ngx_sprintf(p, "%s\"%V\":{}", p[-1] == '{' ? "" : ",",
                            &ngx_http_mcp_rpc_lists[i].capability);
        }
    }

    *p++ = '}';
    *p++ = '}';

    probe->profile.result.len = p - probe->profile.result.data;

    return NGX_OK;
}
