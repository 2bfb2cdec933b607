
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"
#include "ngx_http_mcp_failure.h"
#include "ngx_mcp_splice.h"


/* bytes of a text of the upstream that a sentence quotes, at most */

#define NGX_HTTP_MCP_FAILURE_TEXT  200


static ngx_int_t ngx_http_mcp_failure_compose(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_str_t *why);
static ngx_int_t ngx_http_mcp_failure_detail(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_pool_t *pool, ngx_str_t *detail);
static ngx_uint_t ngx_http_mcp_failure_to_self(ngx_http_mcp_exchange_t *x);
static const char *ngx_http_mcp_failure_remedy(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer);
static const char *ngx_http_mcp_failure_remedy_local(ngx_uint_t status);
static ngx_str_t ngx_http_mcp_failure_sent_line(ngx_http_mcp_exchange_t *x,
    const char *name);
static ngx_str_t ngx_http_mcp_failure_received(ngx_http_mcp_exchange_t *x);
static u_char *ngx_http_mcp_failure_escape(u_char *dst, ngx_str_t *text,
    size_t max);


ngx_str_t
ngx_http_mcp_failure_answer(ngx_http_mcp_exchange_t *x, ngx_str_t *text,
    ngx_str_t *id, ngx_pool_t *pool)
{
    u_char          *p;
    ngx_str_t        why, theirs, code, error, message;
    ngx_mcp_json_t  *json;

    ngx_str_null(&why);

    json = x->scan;

    if (json->type != NGX_MCP_JSON_OBJECT) {
        ngx_str_set(&why, "the upstream's answer is not a JSON-RPC message");
        return why;
    }

    if (json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_ABSENT) {

        /* the message is a notification or a request */

        return why;
    }

    p = ngx_pnalloc(pool, 128 + 4 * 2 * NGX_HTTP_MCP_FAILURE_TEXT);
    if (p == NULL) {
        return why;
    }

    why.data = p;

    if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);
        error = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR, text->data);
        message = ngx_mcp_json_get(&error, "message");

        p = ngx_cpymem(p, "the upstream answered with error ", 33);
        p = ngx_http_mcp_failure_escape(p, &code, NGX_HTTP_MCP_FAILURE_TEXT);
        *p++ = ':';
        *p++ = ' ';
        p = ngx_http_mcp_failure_escape(p, &message,
                                        NGX_HTTP_MCP_FAILURE_TEXT);

    } else if (json->members[NGX_MCP_PATH_RESULT].type
               != NGX_MCP_JSON_ABSENT)
    {
        theirs = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

        if (ngx_mcp_json_same_id(&theirs, id)) {
            p = ngx_cpymem(p, "the upstream's result is not an object", 38);

        } else {
            p = ngx_cpymem(p, "the upstream answered with id ", 30);

            if (theirs.len == 0) {
                ngx_str_set(&theirs, "absent");
            }

            p = ngx_http_mcp_failure_escape(p, &theirs,
                                            NGX_HTTP_MCP_FAILURE_TEXT);
            p = ngx_cpymem(p, " instead of ", 12);
            p = ngx_http_mcp_failure_escape(p, id, NGX_HTTP_MCP_FAILURE_TEXT);
        }

    } else {
        p = ngx_cpymem(p, "the upstream's answer is not a JSON-RPC message",
                       47);
    }

    why.len = p - why.data;

    return why;
}


ngx_int_t
ngx_http_mcp_failure(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_http_mcp_failure_t *failure)
{
    failure->status = NGX_HTTP_BAD_GATEWAY;

    if (outcome == NGX_HTTP_MCP_TIMEOUT
        || (outcome == NGX_HTTP_MCP_STATUS
            && x->status == NGX_HTTP_GATEWAY_TIME_OUT))
    {
        failure->status = NGX_HTTP_GATEWAY_TIME_OUT;

    } else if (outcome == NGX_HTTP_MCP_STATUS
               && (x->status == NGX_HTTP_TOO_MANY_REQUESTS
                   || x->status == NGX_HTTP_SERVICE_UNAVAILABLE))
    {
        failure->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    failure->remedy = ngx_http_mcp_failure_remedy(x, outcome, answer);

    if (ngx_http_mcp_failure_why(x, outcome, answer, pool, &failure->why)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_failure_detail(x, outcome, pool, &failure->detail);
}


ngx_int_t
ngx_http_mcp_failure_why(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_str_t *why)
{
    switch (outcome) {

    case NGX_HTTP_MCP_OK:

        if (answer->len) {
            *why = *answer;

        } else if (x->body == NGX_HTTP_MCP_BODY_SSE) {
            ngx_str_set(why, "the upstream ended its stream without an "
                             "answer");
        } else {
            ngx_str_set(why, "the upstream's answer is empty");
        }

        return NGX_OK;

    case NGX_HTTP_MCP_UNREACHABLE:
        ngx_str_set(why, "the upstream cannot be reached");
        return NGX_OK;

    case NGX_HTTP_MCP_CUT:

        if (x->status) {
            ngx_str_set(why, "the upstream cut its answer");

        } else {
            ngx_str_set(why, "the upstream closed the connection without an "
                             "answer");
        }

        return NGX_OK;

    case NGX_HTTP_MCP_TOO_LARGE:
        ngx_str_set(why, "the upstream's answer is larger than "
                         "mcp_message_limit");
        return NGX_OK;

    case NGX_HTTP_MCP_ABORTED:
        ngx_str_set(why, "nginx aborted the request to the upstream");
        return NGX_OK;

    default:
        return ngx_http_mcp_failure_compose(x, outcome, answer, pool, why);
    }
}


/* composes the sentence for an outcome, which may quote the response */

static ngx_int_t
ngx_http_mcp_failure_compose(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_str_t *why)
{
    u_char     *p;
    ngx_str_t  *theirs;

    p = ngx_pnalloc(pool, 128 + answer->len
                          + 4 * NGX_HTTP_MCP_FAILURE_TEXT);
    if (p == NULL) {
        return NGX_ERROR;
    }

    why->data = p;

    switch (outcome) {

    case NGX_HTTP_MCP_TIMEOUT:
        p = ngx_sprintf(p, "the upstream did not answer within %Mms",
                        ngx_current_msec - x->started + x->spent);
        break;

    case NGX_HTTP_MCP_STATUS:

        if (ngx_http_mcp_failure_local(x)) {
            p = ngx_sprintf(p, "no upstream was asked, nginx refused with "
                            "HTTP status %ui", x->status);
            break;
        }

        p = ngx_sprintf(p, "the upstream answered with HTTP status %ui",
                        x->status);

        if (answer->len) {
            p = ngx_sprintf(p, "; %V", answer);
        }

        break;

    default: /* NGX_HTTP_MCP_BAD */

        if (x->status && x->body == NGX_HTTP_MCP_BODY_OTHER) {
            theirs = ngx_http_mcp_headers_encoding(x->sr);

            p = ngx_sprintf(p, "the upstream's answer has content %s \"",
                            theirs ? "encoding" : "type");

            if (theirs == NULL) {
                theirs = &x->sr->headers_out.content_type;
            }

            p = ngx_http_mcp_failure_escape(p, theirs,
                                            NGX_HTTP_MCP_FAILURE_TEXT);
            *p++ = '"';

        } else if (x->status) {
            p = ngx_sprintf(p, "the upstream's answer is not valid JSON");

        } else {
            p = ngx_sprintf(p, "the upstream's answer is not valid HTTP");
        }
    }

    why->len = p - why->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_failure_detail(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_pool_t *pool, ngx_str_t *detail)
{
    u_char     *p;
    ngx_str_t   line, host, place, got;

    if (outcome == NGX_HTTP_MCP_UNREACHABLE) {

        /*
         * Nothing was sent; nginx's own line in the log has the address and the
         * cause.
         */

        ngx_str_null(detail);
        return NGX_OK;
    }

    line = ngx_http_mcp_failure_sent_line(x, NULL);
    host = ngx_http_mcp_failure_sent_line(x, "Host: ");
    got = ngx_http_mcp_failure_received(x);

    if (ngx_http_mcp_failure_local(x)) {
        p = ngx_pnalloc(pool, 64 + 4 * NGX_HTTP_MCP_FAILURE_TEXT);
        if (p == NULL) {
            return NGX_ERROR;
        }

        detail->data = p;

        p = ngx_cpymem(p, "; location \"", 12);
        p = ngx_http_mcp_failure_escape(p, &x->uri, NGX_HTTP_MCP_FAILURE_TEXT);
        p = ngx_sprintf(p, "\" answered with status %ui", x->status);

        detail->len = p - detail->data;

        return NGX_OK;
    }

    ngx_str_null(&place);

    if (x->sr && x->sr->upstream && x->sr->upstream->headers_in.location) {
        place = x->sr->upstream->headers_in.location->value;
    }

    p = ngx_pnalloc(pool, 128 + 4 * (4 * NGX_HTTP_MCP_FAILURE_TEXT));
    if (p == NULL) {
        return NGX_ERROR;
    }

    detail->data = p;

    if (line.len) {
        p = ngx_cpymem(p, "; sent \"", 8);
        p = ngx_http_mcp_failure_escape(p, &line, NGX_HTTP_MCP_FAILURE_TEXT);
        p = ngx_cpymem(p, "\", \"", 4);
        p = ngx_http_mcp_failure_escape(p, &host, NGX_HTTP_MCP_FAILURE_TEXT);
        *p++ = '"';
    }

    if (place.len) {
        p = ngx_cpymem(p, "; redirected to \"", 17);
        p = ngx_http_mcp_failure_escape(p, &place, NGX_HTTP_MCP_FAILURE_TEXT);
        *p++ = '"';
    }

    if (got.len) {
        p = ngx_cpymem(p, "; got \"", 7);
        p = ngx_http_mcp_failure_escape(p, &got, NGX_MCP_QUOTE);
        *p++ = '"';

    } else if (x->status && x->received == 0) {
        p = ngx_cpymem(p, "; got no body", 13);
    }

    detail->len = p - detail->data;

    return NGX_OK;
}


/*
 * Whether the request was sent to an address on which this nginx listens.  If
 * nginx listens on all addresses, this is checked for loopback addresses only.
 */

static ngx_uint_t
ngx_http_mcp_failure_to_self(ngx_http_mcp_exchange_t *x)
{
    ngx_uint_t                  i;
    ngx_addr_t                  addr;
    ngx_array_t                *states;
    ngx_listening_t            *ls;
    struct sockaddr_in         *sin, *own;
    ngx_http_upstream_state_t  *state;

    states = x->sr ? x->sr->upstream_states : NULL;

    if (states == NULL || states->nelts == 0) {
        return 0;
    }

    state = states->elts;
    state += states->nelts - 1;

    if (state->peer == NULL
        || ngx_parse_addr_port(x->r->pool, &addr, state->peer->data,
                               state->peer->len)
           != NGX_OK)
    {
        return 0;
    }

    ls = ngx_cycle->listening.elts;

    for (i = 0; i < ngx_cycle->listening.nelts; i++) {

        if (ngx_cmp_sockaddr(ls[i].sockaddr, ls[i].socklen, addr.sockaddr,
                             addr.socklen, 1)
            == NGX_OK)
        {
            return 1;
        }

        if (addr.sockaddr->sa_family != AF_INET
            || ls[i].sockaddr->sa_family != AF_INET)
        {
            continue;
        }

        sin = (struct sockaddr_in *) addr.sockaddr;
        own = (struct sockaddr_in *) ls[i].sockaddr;

        if (own->sin_addr.s_addr == INADDR_ANY
            && own->sin_port == sin->sin_port
            && ntohl(sin->sin_addr.s_addr) >> 24 == 127)
        {
            return 1;
        }
    }

    return 0;
}


static const char *
ngx_http_mcp_failure_remedy(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer)
{
    if (outcome == NGX_HTTP_MCP_TIMEOUT) {
        return "the limit is \"mcp_upstream_timeout\", and at most 30 seconds";
    }

    if (outcome == NGX_HTTP_MCP_UNREACHABLE) {
        return "check that the upstream runs, and that \"proxy_pass\" has its "
               "address, port and scheme (http or https)";
    }

    if ((outcome == NGX_HTTP_MCP_CUT || outcome == NGX_HTTP_MCP_BAD)
        && x->status == 0)
    {
        return "check that the upstream did not crash, and that \"proxy_pass\" "
               "has the port of an HTTP server and, if that speaks TLS, "
               "\"https://\"";
    }

    if (outcome == NGX_HTTP_MCP_BAD && x->status
        && x->body == NGX_HTTP_MCP_BODY_OTHER)
    {
        if (ngx_http_mcp_headers_encoding(x->sr)) {
            return "let the upstream not compress its answers to nginx";
        }

        if (ngx_http_mcp_failure_local(x)) {
            return "write \"default_type application/json;\" in this location";
        }

        return "check that \"proxy_pass\" has the address and the path of the "
               "upstream's MCP endpoint or handler, and that no login page "
               "answers there";
    }

    if (outcome != NGX_HTTP_MCP_STATUS) {
        return NULL;
    }

    if (ngx_http_mcp_failure_local(x)) {
        return ngx_http_mcp_failure_remedy_local(x->status);
    }

    switch (x->status) {

    case NGX_HTTP_UNAUTHORIZED:
        return "let clients send the credentials that the upstream wants, or "
               "write \"proxy_set_header Authorization ...;\" in its location";

    case NGX_HTTP_BAD_REQUEST:

        if (answer->len) {
            return "if the upstream has a single session, write \"probe=off "
                   "listen=off\" in \"mcp_upstream\" so that a client gets "
                   "the session";
        }

        /* fall through */

    case NGX_HTTP_FORBIDDEN:
    case NGX_HTTP_MISDIRECTED_REQUEST:
        return "if the upstream checks the \"Host\" header, send the host "
               "that the upstream expects, for example by \"proxy_set_header "
               "Host localhost;\", with its port if it has one";

    case NGX_HTTP_NOT_FOUND:
    case NGX_HTTP_NOT_ALLOWED:
    case NGX_HTTP_NOT_IMPLEMENTED:
        return "check that \"proxy_pass\" has the path of the upstream's MCP "
               "endpoint or handler; a server of the older HTTP+SSE "
               "transport, often at /sse, is not supported";

    case NGX_HTTP_MOVED_PERMANENTLY:
    case NGX_HTTP_MOVED_TEMPORARILY:
    case NGX_HTTP_SEE_OTHER:
    case NGX_HTTP_TEMPORARY_REDIRECT:
    case NGX_HTTP_PERMANENT_REDIRECT:
        return "set \"proxy_pass\" to the URL of the redirect";

    default:
        return NULL;
    }
}


/* the remedy if nginx itself refused the request */

static const char *
ngx_http_mcp_failure_remedy_local(ngx_uint_t status)
{
    switch (status) {

    case NGX_HTTP_NOT_FOUND:
    case NGX_HTTP_NOT_ALLOWED:
        return "write a location for this URI, with \"proxy_pass\"";

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return "raise \"client_max_body_size\" of this location";

    case NGX_HTTP_TOO_MANY_REQUESTS:
    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return "if \"limit_req\" or \"limit_conn\" of this location refused, "
               "see nginx's own message, limit tools/call only, by a "
               "\"map\" of \"$mcp_method\", or add a \"burst\"";

    default:
        return "look for \"return\", \"rewrite\" and \"if\" in this location "
               "and in its server";
    }
}


ngx_uint_t
ngx_http_mcp_failure_local(ngx_http_mcp_exchange_t *x)
{
    return x->status && x->sr && x->sr->upstream == NULL;
}


/*
 * Returns a line of the request that the proxy module sent to the upstream: the
 * first one if name is NULL, else the header that begins with name.  len 0:
 * there is no such line.
 */

static ngx_str_t
ngx_http_mcp_failure_sent_line(ngx_http_mcp_exchange_t *x, const char *name)
{
    size_t      len;
    u_char     *p, *end, *last;
    ngx_buf_t  *b;
    ngx_str_t   line;

    ngx_str_null(&line);

    if (x->sr == NULL || x->sr->upstream == NULL
        || x->sr->upstream->request_bufs == NULL)
    {
        return line;
    }

    b = x->sr->upstream->request_bufs->buf;

    if (!ngx_buf_in_memory(b) || b->last - b->start < 5
        || ngx_strncmp(b->start, "POST ", 5) != 0)
    {
        return line;
    }

    p = b->start;
    last = b->last;
    len = name ? ngx_strlen(name) : 0;

    while (p < last) {
        end = ngx_strlchr(p, last, CR);

        if (end == NULL) {
            break;
        }

        if ((size_t) (end - p) >= len && ngx_strncasecmp(p, (u_char *) name,
                                                         len) == 0)
        {
            line.data = p;
            line.len = end - p;
            break;
        }

        p = end + 2;
    }

    return line;
}


/* returns the first bytes that the upstream sent, even if they are not HTTP */

static ngx_str_t
ngx_http_mcp_failure_received(ngx_http_mcp_exchange_t *x)
{
    ngx_str_t             got;
    ngx_http_upstream_t  *u;

    if (x->quote.len || x->sr == NULL || x->sr->upstream == NULL
        || x->status)
    {
        return x->quote;
    }

    ngx_str_null(&got);

    u = x->sr->upstream;

    if (u->buffer.start && u->state && u->state->bytes_received) {
        got.data = u->buffer.start;
        got.len = ngx_min((size_t) (u->buffer.last - u->buffer.start),
                          NGX_MCP_QUOTE);
    }

    return got;
}


/* writes at most max bytes of the text, each in up to four characters */

static u_char *
ngx_http_mcp_failure_escape(u_char *dst, ngx_str_t *text, size_t max)
{
    u_char  ch;
    size_t  i;

    for (i = 0; i < text->len && i < max; i++) {
        ch = text->data[i];

        if (ch == CR || ch == LF || ch == '\t') {
            *dst++ = ' ';

        } else if (ch < 0x20 || ch >= 0x7f) {
            dst = ngx_sprintf(dst, "\\x%02Xd", (ngx_int_t) ch);

        } else {
            *dst++ = ch;
        }
    }

    return dst;
}


void
ngx_http_mcp_failure_log(ngx_http_mcp_exchange_t *x, ngx_uint_t level,
    ngx_http_mcp_upstream_t *u, ngx_str_t *method,
    ngx_http_mcp_failure_t *failure)
{
    ngx_log_t   *log;
    const char  *remedy;

    log = x->r->connection->log;

    if (x->sr) {
        ngx_http_set_log_request(log, x->sr);
    }

    remedy = (failure->status == NGX_HTTP_GATEWAY_TIME_OUT
              && ngx_http_mcp_failure_to_self(x))
             ? "nginx itself listens on this address: check that the "
               "\"proxy_pass\" does not lead back to the endpoint"
             : failure->remedy;

    ngx_log_error(level, log, 0,
                  "mcp upstream \"%V\" of endpoint \"%V\" did not answer %V: "
                  "%V%V%s%s", &u->name, &u->endpoint, method, &failure->why,
                  &failure->detail, remedy ? "; " : "",
                  remedy ? remedy : "");

    ngx_http_set_log_request(log, x->r);
}
