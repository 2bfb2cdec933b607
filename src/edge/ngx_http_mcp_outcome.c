
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_failure.h"
#include "ngx_http_mcp_header_iter.h"
#include "ngx_mcp_splice.h"


#define NGX_HTTP_MCP_PAYMENT_REQUIRED     402
#define NGX_HTTP_MCP_UNPROCESSABLE        422
#define NGX_HTTP_MCP_UNAVAILABLE_LEGALLY  451


static ngx_uint_t ngx_http_mcp_outcome_error(ngx_http_request_t *r,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome,
    ngx_int_t *code, ngx_str_t *message);
static ngx_uint_t ngx_http_mcp_outcome_has_cause(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_outcome_why(ngx_http_request_t *r,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome,
    ngx_str_t *message);
static ngx_uint_t ngx_http_mcp_outcome_status(ngx_http_request_t *r,
    ngx_http_mcp_exchange_t *x, ngx_int_t *code, ngx_str_t *message);
static ngx_int_t ngx_http_mcp_outcome_data(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_exchange_t *x, ngx_str_t *data);
static ngx_int_t ngx_http_mcp_outcome_refusal(ngx_http_request_t *r,
    ngx_str_t *id, ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome,
    ngx_http_mcp_reply_t *reply);


/* returns the HTTP status of the error, and sets its code and message */

static ngx_uint_t
ngx_http_mcp_outcome_error(ngx_http_request_t *r, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_int_t *code, ngx_str_t *message)
{
    *code = NGX_MCP_INTERNAL_ERROR;

    switch (outcome) {

    case NGX_HTTP_MCP_TIMEOUT:
        ngx_str_set(message, "the upstream took too long");
        return NGX_HTTP_GATEWAY_TIME_OUT;

    case NGX_HTTP_MCP_UNREACHABLE:
        ngx_str_set(message, "the upstream cannot be reached");
        break;

    case NGX_HTTP_MCP_CUT:

        if (x->status) {
            ngx_str_set(message, "the upstream cut its answer; the request "
                                 "may have run");
        } else {
            ngx_str_set(message, "the upstream closed the connection before "
                                 "it answered; the request may have run");
        }

        break;

    case NGX_HTTP_MCP_TOO_LARGE:
        ngx_str_set(message, "the upstream's message is larger than "
                             "mcp_message_limit");
        break;

    case NGX_HTTP_MCP_STATUS:
        return ngx_http_mcp_outcome_status(r, x, code, message);

    case NGX_HTTP_MCP_OK:
        ngx_str_set(message, "the upstream sent no answer: a JSON-RPC message "
                             "with the id of the request, and an object as "
                             "its result or error");
        break;

    default: /* NGX_HTTP_MCP_BAD, NGX_HTTP_MCP_ABORTED */

        if (x && outcome == NGX_HTTP_MCP_BAD
            && ngx_http_mcp_outcome_has_cause(x))
        {
            ngx_http_mcp_outcome_why(r, x, outcome, message);

        } else {
            ngx_str_set(message, "the upstream's answer is not valid");
        }
    }

    return NGX_HTTP_BAD_GATEWAY;
}


/*
 * Tells whether the response of the exchange shows why the request failed: it
 * was no HTTP response, has another content type, or is no JSON.  A request may
 * also fail before, between or after its exchanges.
 */

static ngx_uint_t
ngx_http_mcp_outcome_has_cause(ngx_http_mcp_exchange_t *x)
{
    if (x->status == 0 || x->body == NGX_HTTP_MCP_BODY_OTHER) {
        return 1;
    }

    return x->stop && x->outcome == NGX_HTTP_MCP_BAD
           && x->body == NGX_HTTP_MCP_BODY_JSON && !x->delivered;
}


static void
ngx_http_mcp_outcome_why(ngx_http_request_t *r, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *message)
{
    ngx_str_t  none;

    ngx_str_null(&none);

    if (ngx_http_mcp_failure_why(x, outcome, &none, r->pool, message)
        != NGX_OK)
    {
        ngx_str_null(message);
    }
}


static ngx_uint_t
ngx_http_mcp_outcome_status(ngx_http_request_t *r, ngx_http_mcp_exchange_t *x,
    ngx_int_t *code, ngx_str_t *message)
{
    ngx_uint_t  status;

    status = NGX_HTTP_BAD_GATEWAY;

    if (x->method == NGX_HTTP_GET && x->last_event_id.len
        && x->status != NGX_HTTP_UNAUTHORIZED
        && x->status != NGX_HTTP_FORBIDDEN)
    {
        ngx_log_error(x->level, r->connection->log, 0,
                      "mcp upstream \"%V\" ended its stream without an "
                      "answer, and answered the GET that resumes it with "
                      "status %ui; it should offer that stream, or send no "
                      "event ids", &x->name, x->status);

        ngx_str_set(message, "the upstream ended its stream without an answer "
                             "and did not resume it; the request may have "
                             "run");

        return x->status == NGX_HTTP_GATEWAY_TIME_OUT ? x->status : status;
    }

    ngx_http_mcp_outcome_why(r, x, NGX_HTTP_MCP_STATUS, message);

    switch (x->status) {

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
        *code = NGX_MCP_REFUSED;
        return x->status;

    case NGX_HTTP_TOO_MANY_REQUESTS:
        status = NGX_HTTP_SERVICE_UNAVAILABLE;

        /* fall through */

    case NGX_HTTP_BAD_REQUEST:
    case NGX_HTTP_MCP_PAYMENT_REQUIRED:
    case NGX_HTTP_CONFLICT:
    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
    case NGX_HTTP_MCP_UNPROCESSABLE:
    case NGX_HTTP_MCP_UNAVAILABLE_LEGALLY:
    case NGX_HTTP_SERVICE_UNAVAILABLE:

        *code = NGX_MCP_REFUSED;

        if (status == NGX_HTTP_BAD_GATEWAY) {
            status = x->status;
        }

        break;

    case NGX_HTTP_GATEWAY_TIME_OUT:
        status = x->status;
        break;
    }

    if (x->status < NGX_HTTP_INTERNAL_SERVER_ERROR
        && !ngx_http_mcp_failure_local(x))
    {
        /* the exchange has logged all others */

        ngx_log_error(x->level, r->connection->log, 0,
                      "mcp upstream \"%V\" answered with status %ui%s%V",
                      &x->name, x->status, x->quote.len ? ": " : "",
                      &x->quote);
    }

    return status;
}


/*
 * Makes the data of an error: {"upstream":NAME}, and for a refusal or a body
 * that is no message, the status and the beginning of the body
 */

static ngx_int_t
ngx_http_mcp_outcome_data(ngx_http_request_t *r, ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_exchange_t *x, ngx_str_t *data)
{
    u_char      *p;
    ngx_uint_t   quoted;

    quoted = (x && x->status && x->quote.len
              && x->status != NGX_HTTP_UNAUTHORIZED
              && x->status != NGX_HTTP_FORBIDDEN);

    p = ngx_pnalloc(r->pool, sizeof("{\"upstream\":,\"status\":,\"body\":}") - 1
                             + ngx_mcp_json_escaped_len(&u->name)
                             + NGX_INT_T_LEN
                             + (quoted ? ngx_mcp_json_escaped_len(&x->quote)
                                       : 0));
    if (p == NULL) {
        return NGX_ERROR;
    }

    data->data = p;

    p = ngx_cpymem(p, "{\"upstream\":", sizeof("{\"upstream\":") - 1);
    p = ngx_mcp_json_escape(p, &u->name);

    if (quoted) {
        p = ngx_sprintf(p, ",\"status\":%ui,\"body\":", x->status);
        p = ngx_mcp_json_escape(p, &x->quote);
    }

    *p++ = '}';

    data->len = p - data->data;

    return NGX_OK;
}


/*
 * Makes the reply of the JSON-RPC error without an id in the body of the
 * upstream's refusal.  NGX_OK; NGX_DECLINED: there is no such error, or it is
 * not for the client; NGX_ERROR: no memory.
 */

static ngx_int_t
ngx_http_mcp_outcome_refusal(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t  code;

    /* A 404 is about the upstream session, of which the client knows nothing */

    if (outcome != NGX_HTTP_MCP_STATUS || x->refusal.len == 0
        || x->status == NGX_HTTP_UNAUTHORIZED
        || x->status == NGX_HTTP_FORBIDDEN
        || x->status == NGX_HTTP_NOT_FOUND)
    {
        return NGX_DECLINED;
    }

    code = ngx_mcp_json_get(&x->refusal, "code");

    reply->code = code.len ? ngx_mcp_error_code(&code)
                           : NGX_MCP_INTERNAL_ERROR;
    reply->parts[0] = ngx_mcp_refusal_compose(r->pool, id, &x->refusal);
    reply->nparts = 1;

    return reply->parts[0].data ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_reply_outcome(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply)
{
    ngx_int_t  rc;

    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    reply->status = ngx_http_mcp_outcome_error(r, x, outcome, &reply->code,
                                               &reply->message);

    /* an error of the upstream replaces code and message; it has its data */

    rc = ngx_http_mcp_outcome_refusal(r, id, x, outcome, reply);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_mcp_outcome_data(r, u, x, &reply->data);
    }

    if (rc != NGX_OK) {
        (void) ngx_http_mcp_reply_internal(reply);
    }
}


void
ngx_http_mcp_reply_unprobed(ngx_http_request_t *r, ngx_http_mcp_upstream_t *u,
    ngx_uint_t status, ngx_str_t *why, ngx_http_mcp_reply_t *reply)
{
    ngx_memzero(reply, sizeof(ngx_http_mcp_reply_t));

    switch (status) {

    case NGX_HTTP_BAD_REQUEST:
        reply->code = NGX_MCP_INVALID_REQUEST;
        break;

    case NGX_HTTP_SERVICE_UNAVAILABLE:
        reply->code = NGX_MCP_REFUSED;
        break;

    default:
        reply->code = NGX_MCP_INTERNAL_ERROR;
    }

    reply->status = status;
    reply->message = *why;

    if (ngx_http_mcp_outcome_data(r, u, NULL, &reply->data) != NGX_OK) {
        (void) ngx_http_mcp_reply_internal(reply);
    }
}


void
ngx_http_mcp_reply_dots(ngx_http_request_t *r, ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_reply_t *reply)
{
    ngx_str_t  why;

    ngx_str_set(&why, NGX_HTTP_MCP_DOTS);

    ngx_http_mcp_reply_unprobed(r, u, NGX_HTTP_BAD_REQUEST, &why, reply);
}


ngx_int_t
ngx_http_mcp_copy_headers(ngx_http_request_t *r, ngx_http_mcp_exchange_t *x)
{
    ngx_table_elt_t            *from, *h;
    ngx_http_mcp_header_iter_t  iter;

    if (x->headers.part.elts == NULL) {
        return NGX_OK;
    }

    ngx_http_mcp_header_iter_init(&iter, &x->headers);

    while ((from = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        h = ngx_http_mcp_header_push(&r->headers_out.headers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        h->key = from->key;
        h->value = from->value;
    }

    /* no header is copied twice, if a refusal follows the begin of an answer */

    x->headers.part.nelts = 0;
    x->headers.part.next = NULL;

    return NGX_OK;
}
