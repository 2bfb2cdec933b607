
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_capture.h"
#include "ngx_http_mcp_header_iter.h"


static void ngx_http_mcp_headers_split(ngx_list_t *out, ngx_list_t *in);
static ngx_uint_t ngx_http_mcp_headers_forwarded(ngx_table_elt_t *h);
static ngx_inline ngx_uint_t ngx_http_mcp_headers_same(u_char *name,
    const char *known, size_t len);
static ngx_int_t ngx_http_mcp_headers_own(ngx_http_mcp_exchange_t *x,
    ngx_http_headers_in_t *in);
static ngx_int_t ngx_http_mcp_headers_content(ngx_http_mcp_exchange_t *x,
    ngx_http_headers_in_t *in);
static ngx_int_t ngx_http_mcp_headers_add_value(ngx_list_t *headers,
    ngx_table_elt_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_headers_appended(ngx_http_mcp_exchange_t *x,
    ngx_list_t *headers);
static ngx_int_t ngx_http_mcp_headers_client(ngx_http_mcp_exchange_t *x,
    ngx_http_headers_in_t *in);
static ngx_table_elt_t *ngx_http_mcp_headers_add(ngx_list_t *headers,
    ngx_table_elt_t *name, ngx_str_t *value);
static ngx_uint_t ngx_http_mcp_headers_is(ngx_table_elt_t *h, ngx_str_t *name);
static ngx_uint_t ngx_http_mcp_headers_is_type(ngx_str_t *type, char *name);


/*
 * The client's headers that are not sent to the upstream; the index is the
 * length of the names.  "If-*" and "Mcp-Param-*" are not sent, either.
 */

static const char  *ngx_http_mcp_headers_dropped[][4] = {
    { NULL },
    { NULL },
    { "te", NULL },
    { NULL },
    { NULL },
    { "range", NULL },
    { "accept", "expect", "origin", NULL },
    { "trailer", "upgrade", NULL },
    { "mcp-name", NULL },
    { NULL },
    { "connection", "keep-alive", "mcp-method", NULL },
    { NULL },
    { "content-type", NULL },
    { "last-event-id", NULL },
    { "content-length", "http2-settings", "mcp-session-id", NULL },
    { "accept-encoding", NULL },
    { "content-encoding", "proxy-connection", NULL },
    { "transfer-encoding", NULL },
    { "proxy-authenticate", NULL },
    { "proxy-authorization", NULL },
    { "mcp-protocol-version", NULL }
};


/* headers that the module itself sends; the hash is set at the first use */

#define ngx_http_mcp_headers_elt(name, lowcase)                               \
    { .key = ngx_string(name), .lowcase_key = (u_char *) lowcase }

static ngx_table_elt_t  ngx_http_mcp_headers_host =
    ngx_http_mcp_headers_elt("Host", "host");
static ngx_table_elt_t  ngx_http_mcp_headers_user_agent =
    ngx_http_mcp_headers_elt("User-Agent", "user-agent");
static ngx_table_elt_t  ngx_http_mcp_headers_accept =
    ngx_http_mcp_headers_elt("Accept", "accept");
static ngx_table_elt_t  ngx_http_mcp_headers_length =
    ngx_http_mcp_headers_elt("Content-Length", "content-length");
static ngx_table_elt_t  ngx_http_mcp_headers_type =
    ngx_http_mcp_headers_elt("Content-Type", "content-type");
static ngx_table_elt_t  ngx_http_mcp_headers_version =
    ngx_http_mcp_headers_elt("MCP-Protocol-Version", "mcp-protocol-version");
static ngx_table_elt_t  ngx_http_mcp_headers_session =
    ngx_http_mcp_headers_elt("Mcp-Session-Id", "mcp-session-id");
static ngx_table_elt_t  ngx_http_mcp_headers_last_event =
    ngx_http_mcp_headers_elt("Last-Event-ID", "last-event-id");


/* content types of bodies with one message in each line */

static char  *ngx_http_mcp_headers_lines[] = {
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/json-lines",
    "application/json-seq",
    "application/x-jsonlines",
    "application/stream+json",
    NULL
};


/* headers of an upstream's response that reach the client */

static ngx_str_t  ngx_http_mcp_headers_to_client[] = {
    ngx_string("www-authenticate"),
    ngx_string("retry-after"),
    ngx_string("set-cookie"),
    ngx_null_string
};


static ngx_str_t  ngx_http_mcp_headers_json = ngx_string("application/json");
static ngx_str_t  ngx_http_mcp_headers_sse = ngx_string("text/event-stream");
static ngx_str_t  ngx_http_mcp_headers_feed =
    ngx_string("text/event-stream, application/x-ndjson, application/jsonl");
static ngx_str_t  ngx_http_mcp_headers_both =
    ngx_string("application/json, text/event-stream");
static ngx_str_t  ngx_http_mcp_headers_agent =
    ngx_string("nginx-mcp/" NGX_MCP_MODULE_VERSION);


ngx_int_t
ngx_http_mcp_headers_build(ngx_http_mcp_exchange_t *x, ngx_http_request_t *sr)
{
    ngx_int_t               rc;
    ngx_str_t              *accept;
    ngx_list_t             *headers;
    ngx_table_elt_t        *h;
    ngx_http_headers_in_t  *in;

    /* nginx has copied headers_in of the main request to the subrequest */

    in = &sr->headers_in;
    headers = &in->headers;

    if (!x->client_headers) {
        ngx_memzero(in, sizeof(ngx_http_headers_in_t));
        in->server = x->r->headers_in.server;
    }

    in->content_length_n = -1;
    in->keep_alive_n = -1;

    ngx_http_mcp_headers_split(&sr->headers_out.headers, headers);

    rc = x->client_headers ? ngx_http_mcp_headers_client(x, in)
                           : ngx_http_mcp_headers_own(x, in);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (x->feed) {
        accept = &ngx_http_mcp_headers_feed;

    } else if (x->method == NGX_HTTP_GET) {
        accept = &ngx_http_mcp_headers_sse;

    } else if (x->method == NGX_HTTP_POST) {
        accept = &ngx_http_mcp_headers_both;

    } else {
        accept = &ngx_http_mcp_headers_json;
    }

    h = ngx_http_mcp_headers_add(headers, &ngx_http_mcp_headers_accept,
                                 accept);
    if (h == NULL) {
        return NGX_ERROR;
    }

#if (NGX_HTTP_HEADERS)
    in->accept = h;
#endif

    if ((x->request_len || x->method == NGX_HTTP_POST)
        && ngx_http_mcp_headers_content(x, in) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_headers_add_value(headers, &ngx_http_mcp_headers_version,
                                       &x->protocol_version)
        != NGX_OK
        || ngx_http_mcp_headers_add_value(headers,
                                          &ngx_http_mcp_headers_session,
                                          &x->session_id)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (x->appended && ngx_http_mcp_headers_appended(x, headers) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_headers_add_value(headers,
                                          &ngx_http_mcp_headers_last_event,
                                          &x->last_event_id);
}


/*
 * nginx has allocated 20 elements for headers of the response, which seldom has
 * as many as 10.  So half of this memory is used for headers of the request.
 */

static void
ngx_http_mcp_headers_split(ngx_list_t *out, ngx_list_t *in)
{
    out->nalloc /= 2;

    *in = *out;

    in->part.elts = (ngx_table_elt_t *) out->part.elts + out->nalloc;
    in->last = &in->part;
}


static ngx_int_t
ngx_http_mcp_headers_appended(ngx_http_mcp_exchange_t *x, ngx_list_t *headers)
{
    ngx_uint_t        i;
    ngx_table_elt_t  *appended;

    appended = x->appended->elts;

    for (i = 0; i < x->appended->nelts; i++) {
        if (ngx_http_mcp_header_copy(headers, &appended[i]) == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_headers_append(ngx_http_mcp_exchange_t *x, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    if (x->appended == NULL) {
        x->appended = ngx_array_create(x->r->pool, 4, sizeof(ngx_table_elt_t));
        if (x->appended == NULL) {
            return NGX_ERROR;
        }
    }

    h = ngx_array_push(x->appended);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->key = *name;
    h->value = *value;

    h->lowcase_key = ngx_pnalloc(x->r->pool, name->len);
    if (h->lowcase_key == NULL) {
        return NGX_ERROR;
    }

    h->hash = ngx_hash_strlow(h->lowcase_key, name->data, name->len);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_headers_own(ngx_http_mcp_exchange_t *x, ngx_http_headers_in_t *in)
{
    if (x->r->headers_in.host) {
        in->host = ngx_http_mcp_headers_add(&in->headers,
                                            &ngx_http_mcp_headers_host,
                                            &x->r->headers_in.host->value);
        if (in->host == NULL) {
            return NGX_ERROR;
        }
    }

    in->user_agent = ngx_http_mcp_headers_add(&in->headers,
                                              &ngx_http_mcp_headers_user_agent,
                                              &ngx_http_mcp_headers_agent);

    return in->user_agent ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_headers_content(ngx_http_mcp_exchange_t *x,
    ngx_http_headers_in_t *in)
{
    u_char              *p;
    ngx_str_t            value;
    ngx_http_request_t  *r;

    r = x->r;

    if (r->headers_in.content_length
        && r->headers_in.content_length_n == (off_t) x->request_len)
    {
        value = r->headers_in.content_length->value;

    } else {
        p = x->length_text;

        value.data = p;
        value.len = ngx_sprintf(p, "%uz", x->request_len) - p;
    }

    in->content_length = ngx_http_mcp_headers_add(&in->headers,
                                                  &ngx_http_mcp_headers_length,
                                                  &value);
    in->content_length_n = x->request_len;

    in->content_type = ngx_http_mcp_headers_add(&in->headers,
                                                &ngx_http_mcp_headers_type,
                                                &ngx_http_mcp_headers_json);

    return (in->content_length && in->content_type) ? NGX_OK : NGX_ERROR;
}


/* adds a header, unless its value is empty */

static ngx_int_t
ngx_http_mcp_headers_add_value(ngx_list_t *headers, ngx_table_elt_t *name,
    ngx_str_t *value)
{
    return (value->len == 0
            || ngx_http_mcp_headers_add(headers, name, value))
           ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_mcp_headers_client(ngx_http_mcp_exchange_t *x,
    ngx_http_headers_in_t *in)
{
    ngx_table_elt_t            *header;
    ngx_http_mcp_header_iter_t  iter;

    ngx_http_mcp_header_iter_init(&iter, &x->r->headers_in.headers);

    while ((header = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (header->hash && ngx_http_mcp_headers_forwarded(header)
            && ngx_http_mcp_header_copy(&in->headers, header) == NULL)
        {
            return NGX_ERROR;
        }
    }

    /* nginx's pointers to headers that are not passed on are cleared, too */

    in->connection = NULL;
    in->if_modified_since = NULL;
    in->if_unmodified_since = NULL;
    in->if_match = NULL;
    in->if_none_match = NULL;
    in->content_length = NULL;
    in->content_type = NULL;
    in->range = NULL;
    in->if_range = NULL;
    in->transfer_encoding = NULL;
    in->te = NULL;
    in->expect = NULL;
    in->upgrade = NULL;
    in->keep_alive = NULL;
#if (NGX_HTTP_GZIP)
    in->accept_encoding = NULL;
#endif

    in->chunked = 0;
    in->connection_type = 0;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_headers_forwarded(ngx_table_elt_t *h)
{
    const char  **name;

    if (h->key.len > 3 && ngx_http_mcp_headers_same(h->lowcase_key, "if-", 3)) {
        return 0;
    }

    if (h->key.len > 10
        && ngx_http_mcp_headers_same(h->lowcase_key, "mcp-param-", 10))
    {
        return 0;
    }

    if (h->key.len >= sizeof(ngx_http_mcp_headers_dropped)
                      / sizeof(ngx_http_mcp_headers_dropped[0]))
    {
        return 1;
    }

    for (name = ngx_http_mcp_headers_dropped[h->key.len]; *name; name++) {
        if (ngx_http_mcp_headers_same(h->lowcase_key, *name, h->key.len)) {
            return 0;
        }
    }

    return 1;
}


/*
 * Compares names so that "_" equals "-": with underscores_in_headers, many
 * upstreams do the same.
 */

static ngx_inline ngx_uint_t
ngx_http_mcp_headers_same(u_char *name, const char *known, size_t len)
{
    size_t  i;

    if (name[0] != (u_char) known[0]) {
        return 0;
    }

    if (ngx_memcmp(name, known, len) == 0) {
        return 1;
    }

    for (i = 1; i < len; i++) {
        if (name[i] != (u_char) known[i]
            && !(name[i] == '_' && known[i] == '-'))
        {
            return 0;
        }
    }

    return 1;
}


static ngx_table_elt_t *
ngx_http_mcp_headers_add(ngx_list_t *headers, ngx_table_elt_t *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    if (name->hash == 0) {
        name->hash = ngx_hash_key(name->lowcase_key, name->key.len);
    }

    h = ngx_http_mcp_header_copy(headers, name);

    if (h) {
        h->value = *value;
    }

    return h;
}


ngx_int_t
ngx_http_mcp_headers_collect(ngx_http_mcp_exchange_t *x,
    ngx_http_request_t *sr)
{
    ngx_str_t                  *name;
    ngx_table_elt_t            *header, *h;
    ngx_http_mcp_header_iter_t  iter;

    x->session.len = 0;

    ngx_http_mcp_header_iter_init(&iter, &sr->headers_out.headers);

    while ((header = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (header->hash == 0) {
            continue;
        }

        if (ngx_http_mcp_headers_is(header, &ngx_http_mcp_headers_session.key))
        {
            x->session = header->value;
            continue;
        }

        for (name = ngx_http_mcp_headers_to_client; name->len; name++) {

            if (!ngx_http_mcp_headers_is(header, name)) {
                continue;
            }

            if (x->headers.pool == NULL
                && ngx_list_init(&x->headers, x->r->pool, 2,
                                 sizeof(ngx_table_elt_t))
                   != NGX_OK)
            {
                return NGX_ERROR;
            }

            h = ngx_http_mcp_header_push(&x->headers);
            if (h == NULL) {
                return NGX_ERROR;
            }

            h->key = header->key;
            h->value = header->value;
            h->lowcase_key = name->data;
        }
    }

    if (x->session.len || sr->upstream == NULL) {
        return NGX_OK;
    }

    /*
     * "proxy_hide_header" hides a header from clients, but not from the module.
     */

    ngx_http_mcp_header_iter_init(&iter, &sr->upstream->headers_in.headers);

    while ((header = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (header->hash
            && ngx_http_mcp_headers_is(header,
                                    &ngx_http_mcp_headers_session.key))
        {
            x->session = header->value;
            break;
        }
    }

    return NGX_OK;
}


time_t
ngx_http_mcp_headers_retry_after(ngx_http_mcp_exchange_t *x)
{
    time_t                      time;
    ngx_table_elt_t            *h;
    ngx_http_mcp_header_iter_t  iter;

    if (x->status != NGX_HTTP_TOO_MANY_REQUESTS
        && x->status != NGX_HTTP_SERVICE_UNAVAILABLE)
    {
        return 0;
    }

    ngx_http_mcp_header_iter_init(&iter, &x->headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (ngx_strcmp(h->lowcase_key, "retry-after") != 0) {
            continue;
        }

        /* a date in Retry-After is ignored, because clocks differ */

        time = ngx_atotm(h->value.data, h->value.len);

        return (time == NGX_ERROR) ? 0
                                   : ngx_min(time,
                                             NGX_HTTP_MCP_RETRY_AFTER_MAX);
    }

    return 0;
}


static ngx_uint_t
ngx_http_mcp_headers_is(ngx_table_elt_t *h, ngx_str_t *name)
{
    return h->key.len == name->len
           && ngx_strncasecmp(h->key.data, name->data, name->len) == 0;
}


ngx_str_t *
ngx_http_mcp_headers_encoding(ngx_http_request_t *sr)
{
    ngx_table_elt_t  *h;

    h = sr->headers_out.content_encoding;

    if (h == NULL || h->hash == 0 || h->value.len == 0
        || (h->value.len == sizeof("identity") - 1
            && ngx_strncasecmp(h->value.data, (u_char *) "identity",
                               sizeof("identity") - 1)
               == 0))
    {
        return NULL;
    }

    return &h->value;
}


ngx_uint_t
ngx_http_mcp_headers_body(ngx_http_mcp_exchange_t *x, ngx_http_request_t *sr)
{
    char       **name;
    u_char      *p, *last;
    ngx_str_t    type;

    if (sr->headers_out.status == NGX_HTTP_ACCEPTED
        || sr->headers_out.status == NGX_HTTP_NO_CONTENT
        || sr->headers_out.status == NGX_HTTP_NOT_MODIFIED
        || sr->headers_out.content_length_n == 0
        || sr->header_only)
    {
        return NGX_HTTP_MCP_BODY_NONE;
    }

    if (ngx_http_mcp_headers_encoding(sr)) {
        return NGX_HTTP_MCP_BODY_OTHER;
    }

    if (ngx_mcp_equal(&sr->headers_out.content_type,
                      &ngx_http_mcp_headers_json))
    {
        return NGX_HTTP_MCP_BODY_JSON;
    }

    type.data = sr->headers_out.content_type.data;
    last = type.data + sr->headers_out.content_type.len;

    for (p = type.data; p < last; p++) {
        if (*p == ';' || *p == ' ' || *p == '\t') {
            break;
        }
    }

    type.len = p - type.data;

    if (x->feed) {
        for (name = ngx_http_mcp_headers_lines; *name; name++) {
            if (ngx_http_mcp_headers_is_type(&type, *name)) {
                return NGX_HTTP_MCP_BODY_LINES;
            }
        }
    }

    if (ngx_http_mcp_headers_is_type(&type, "application/json")
        || ngx_http_mcp_headers_is_type(&type, "+json"))
    {
        return NGX_HTTP_MCP_BODY_JSON;
    }

    if (ngx_http_mcp_headers_is_type(&type, "text/event-stream")) {
        return NGX_HTTP_MCP_BODY_SSE;
    }

    return NGX_HTTP_MCP_BODY_OTHER;
}


/*
 * Whether the content type (without parameters) is this name, or, if the name
 * begins with "+", ends with it.
 */

static ngx_uint_t
ngx_http_mcp_headers_is_type(ngx_str_t *type, char *name)
{
    size_t   len;
    u_char  *p;

    len = ngx_strlen(name);

    if (type->len < len || (type->len > len && *name != '+')) {
        return 0;
    }

    p = type->data + type->len - len;

    return ngx_memcmp(p, name, len) == 0
           || ngx_strncasecmp(p, (u_char *) name, len) == 0;
}
