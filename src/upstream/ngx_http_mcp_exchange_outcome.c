
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"


static ngx_http_mcp_outcome_e ngx_http_mcp_exchange_outcome_no_header(
    ngx_http_mcp_exchange_t *x);


ngx_http_mcp_outcome_e
ngx_http_mcp_exchange_outcome(ngx_http_mcp_exchange_t *x)
{
    ngx_uint_t               level;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;

    if (!cap->header) {
        return ngx_http_mcp_exchange_outcome_no_header(x);
    }

    if (x->status >= NGX_HTTP_SPECIAL_RESPONSE) {

        if (x->status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
            ngx_log_error(x->level, x->r->connection->log, 0,
                          "mcp upstream \"%V\" answered with status "
                          "%ui%s%V", &x->name, x->status,
                          x->quote.len ? ": " : "", &x->quote);
        }

        return NGX_HTTP_MCP_STATUS;
    }

    if (!cap->last) {

        /* a stream that carried nothing is opened again and loses nothing */

        level = (x->method == NGX_HTTP_GET && !x->feed && cap->received == 0)
                ? NGX_LOG_INFO : x->level;

        ngx_log_error(level, x->r->connection->log, 0,
                      "mcp upstream \"%V\" cut its response after %uz bytes",
                      &x->name, cap->received);

        return NGX_HTTP_MCP_CUT;
    }

    return cap->refused ? NGX_HTTP_MCP_BAD : NGX_HTTP_MCP_OK;
}


static ngx_http_mcp_outcome_e
ngx_http_mcp_exchange_outcome_no_header(ngx_http_mcp_exchange_t *x)
{
    ngx_log_t               *log;
    ngx_http_upstream_t     *u;
    ngx_http_mcp_capture_t  *cap;

    cap = x->capture;
    log = x->r->connection->log;
    u = x->sr->upstream;

    switch (cap->rc) {

    case NGX_HTTP_GATEWAY_TIME_OUT:
        ngx_log_error(x->level, log, 0,
                      "mcp upstream \"%V\" timed out", &x->name);
        return NGX_HTTP_MCP_TIMEOUT;

    case NGX_HTTP_BAD_GATEWAY:

        if (u && u->state && u->state->bytes_received) {
            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\" sent no valid response",
                          &x->name);
            return NGX_HTTP_MCP_BAD;
        }

        if (u && u->state && u->state->connect_time != (ngx_msec_t) -1) {
            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\" closed without a response",
                          &x->name);
            return NGX_HTTP_MCP_CUT;
        }

        break;

    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_CLIENT_CLOSED_REQUEST:
        return NGX_HTTP_MCP_ABORTED;

    case NGX_HTTP_CLOSE:
        break;

    default:

        if (cap->rc == NGX_HTTP_CREATED || cap->rc == NGX_HTTP_NO_CONTENT) {
            x->status = cap->rc;
            x->body = NGX_HTTP_MCP_BODY_NONE;
            return NGX_HTTP_MCP_OK;
        }

        if (cap->rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            x->status = cap->rc;
            x->body = NGX_HTTP_MCP_BODY_NONE;

            ngx_log_error(x->level, log, 0,
                          "mcp upstream \"%V\": location \"%V\" answered "
                          "with status %i", &x->name, &x->uri, cap->rc);

            return NGX_HTTP_MCP_STATUS;
        }

        ngx_log_error(x->level, log, 0,
                      "mcp upstream \"%V\": location \"%V\" gave no response",
                      &x->name, &x->uri);

        return NGX_HTTP_MCP_CUT;
    }

    ngx_log_error(x->level, log, 0,
                  "mcp upstream \"%V\" could not be reached", &x->name);

    return NGX_HTTP_MCP_UNREACHABLE;
}
