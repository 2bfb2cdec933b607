
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"
#include "ngx_http_mcp_failure.h"


static ngx_int_t ngx_http_mcp_events_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x);
static ngx_uint_t ngx_http_mcp_events_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome,
    ngx_uint_t changed);


/* the manner of backends that send events (mcp_events): only a GET stream */

ngx_http_mcp_manner_t  ngx_http_mcp_events = {
    .protocol = NGX_HTTP_MCP_EVENTS,
    .kind = NGX_MCP_PROFILE_UNKNOWN,
    .streams = 1,
    .head = ngx_http_mcp_events_head,
    .refused = ngx_http_mcp_events_refused
};


ngx_http_mcp_manner_t  **ngx_http_mcp_manners;


ngx_http_mcp_manner_t *
ngx_http_mcp_manner(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t stateful)
{
    ngx_http_mcp_upstream_tenant_t  *place;

    if (u->protocol != NGX_HTTP_MCP_AUTO) {
        return ngx_http_mcp_manner_next(u, NULL);
    }

    place = ngx_http_mcp_upstream_tenant(u, tenant);

    /*
     * If the upstream refused the probe, another worker may have learned its
     * kind from a client's request: the caller looks at the profile in the
     * zone.
     */

    if (place == NULL || place->kind == NGX_MCP_PROFILE_REFUSED) {
        return NULL;
    }

    return ngx_http_mcp_manner_of(place->kind, 0, stateful);
}


ngx_http_mcp_manner_t *
ngx_http_mcp_manner_of(ngx_uint_t kind, ngx_uint_t revision,
    ngx_uint_t stateful)
{
    ngx_http_mcp_manner_t  **manner;

    if (kind == NGX_MCP_PROFILE_UNKNOWN) {
        return NULL;
    }

    if (kind == NGX_MCP_PROFILE_BOTH
        || (kind == NGX_MCP_PROFILE_REFUSED && revision == 0))
    {
        kind = stateful ? NGX_MCP_PROFILE_LEGACY : NGX_MCP_PROFILE_MODERN;

    } else if (kind == NGX_MCP_PROFILE_REFUSED) {
        kind = (revision == NGX_MCP_2026_07_28) ? NGX_MCP_PROFILE_MODERN
                                                : NGX_MCP_PROFILE_LEGACY;
    }

    for (manner = ngx_http_mcp_manners; *manner; manner++) {
        if ((*manner)->kind == kind) {
            break;
        }
    }

    return *manner;
}


ngx_http_mcp_manner_t *
ngx_http_mcp_manner_next(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_manner_t *manner)
{
    ngx_http_mcp_manner_t  **next;

    for (next = ngx_http_mcp_manners; *next; next++) {

        if (manner) {

            if (*next == manner) {
                manner = NULL;
            }

            continue;
        }

        if ((*next)->protocol == u->protocol
            || (u->protocol == NGX_HTTP_MCP_AUTO && (*next)->probe))
        {
            break;
        }
    }

    return *next;
}


void
ngx_http_mcp_manner_note(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t kind)
{
    ngx_http_mcp_upstream_tenant_t  *place;

    place = ngx_http_mcp_upstream_tenant(u, tenant);

    if (place) {
        place->kind = kind;
    }
}


ngx_uint_t
ngx_http_mcp_updateless(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_http_mcp_manner_t  *manner;

    manner = ngx_http_mcp_manner(u, tenant, 0);

    return manner && !manner->updates;
}


static ngx_int_t
ngx_http_mcp_events_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x)
{
    x->feed = 1;
    x->client_headers = 0;
    x->metric = NULL;
    x->level = NGX_LOG_INFO;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_events_refused(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome, ngx_uint_t changed)
{
    time_t                    after;
    u_char                    buf[sizeof(" of at least  seconds, as its "
                                         "Retry-After says")
                                  + NGX_TIME_T_LEN];
    ngx_str_t                 answer, least;
    ngx_http_mcp_failure_t    failure;
    ngx_http_mcp_exchange_t  *x;

    x = ureq->x;
    ngx_str_null(&answer);

    if (changed
        && ngx_http_mcp_failure(x, outcome, &answer, x->r->pool, &failure)
           == NGX_OK)
    {
        least.data = buf;
        least.len = 0;

        after = ngx_http_mcp_headers_retry_after(x);

        if (after) {
            least.len = ngx_sprintf(buf, " of at least %T seconds, as its "
                                    "Retry-After says", after)
                        - buf;
        }

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" could not be "
                      "opened: %V; the module reconnects after growing "
                      "pauses%V", &x->uri, &ureq->upstream->endpoint,
                      &failure.why, &least);
    }

    if (outcome != NGX_HTTP_MCP_STATUS) {
        return NGX_HTTP_MCP_RETRY;
    }

    return (x->status == NGX_HTTP_CONFLICT
            || ngx_http_mcp_status_no_event(x->status))
           ? NGX_HTTP_MCP_NO_EVENT : NGX_HTTP_MCP_RETRY;
}


ngx_uint_t
ngx_http_mcp_status_no_event(ngx_uint_t status)
{
    return status == NGX_HTTP_BAD_REQUEST || status == 410
           || status == NGX_HTTP_PRECONDITION_FAILED
           || status == NGX_HTTP_RANGE_NOT_SATISFIABLE;
}
