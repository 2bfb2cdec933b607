
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_manner.h"


static ngx_int_t ngx_http_mcp_events_open(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_events_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x);
static ngx_uint_t ngx_http_mcp_events_lost(
    ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t status);
static ngx_uint_t ngx_http_mcp_events_refused(
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome,
    ngx_uint_t news);


/* a backend that sends events (mcp_events): a GET stream is all it has */

ngx_http_mcp_manner_t  ngx_http_mcp_events = {
    NGX_MCP_PROFILE_UNKNOWN,
    1,                                     /* streams */
    0,                                     /* sessions */
    ngx_http_mcp_events_open,
    ngx_http_mcp_events_head,
    ngx_http_mcp_events_lost,
    NULL,                                  /* absent */
    NULL,                                  /* heal */
    NULL,                                  /* release */
    NULL,                                  /* end */
    ngx_http_mcp_events_refused,
    NULL,                                  /* probe */
    NULL,                                  /* probe_result */
    NULL                                   /* probed */
};


static ngx_int_t
ngx_http_mcp_events_open(ngx_http_mcp_upstream_request_t *ureq)
{
    return NGX_OK;
}


static void
ngx_http_mcp_events_head(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_exchange_t *x)
{
    x->feed = 1;
    x->client_headers = 0;
    x->metric = NULL;
    x->level = NGX_LOG_INFO;
}


static ngx_uint_t
ngx_http_mcp_events_lost(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t status)
{
    return NGX_HTTP_MCP_KEPT;
}


static ngx_uint_t
ngx_http_mcp_events_refused(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome, ngx_uint_t news)
{
    u_char                   *p, *last;
    ngx_str_t                 text;
    u_char                    buf[256];
    ngx_http_mcp_exchange_t  *x;

    x = ureq->x;

    if (news) {
        p = buf;
        last = buf + sizeof(buf);

        if (outcome == NGX_HTTP_MCP_STATUS) {
            p = ngx_slprintf(p, last, "answered with status %ui", x->status);

        } else if (outcome == NGX_HTTP_MCP_UNREACHABLE) {
            p = ngx_slprintf(p, last, "could not be reached");

        } else if (outcome == NGX_HTTP_MCP_TIMEOUT) {
            p = ngx_slprintf(p, last, "timed out");

        } else if (outcome == NGX_HTTP_MCP_BAD && x->status) {
            p = ngx_slprintf(p, last, "answered with content type \"%V\" "
                             "instead of a stream of events",
                             &x->sr->headers_out.content_type);

        } else {
            p = ngx_slprintf(p, last, "sent no valid response");
        }

        text.data = buf;
        text.len = p - buf;

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" %V; the module "
                      "reconnects after growing pauses",
                      &x->uri, &ureq->upstream->endpoint, &text);
    }

    if (outcome != NGX_HTTP_MCP_STATUS) {
        return NGX_HTTP_MCP_RETRY;
    }

    switch (x->status) {

    case NGX_HTTP_BAD_REQUEST:
    case NGX_HTTP_CONFLICT:
    case 410:
    case NGX_HTTP_PRECONDITION_FAILED:
    case NGX_HTTP_RANGE_NOT_SATISFIABLE:
        return NGX_HTTP_MCP_NO_EVENT;

    default:
        return NGX_HTTP_MCP_RETRY;
    }
}
