
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_md5.h>
#include "ngx_http_mcp_stored.h"
#include "ngx_http_mcp_upstream.h"
#include "ngx_mcp_id.h"


/* ms between two lines of the log about refused initialize requests */
#define NGX_HTTP_MCP_REFUSAL_INTERVAL  60000

/* bytes of initialize's params without the capabilities, at most */
#define NGX_HTTP_MCP_INITIALIZE_SIZE   256


static ngx_int_t ngx_http_mcp_upstream_uri(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_http_mcp_scope_t *scope, ngx_str_t *uri);
static ngx_int_t ngx_http_mcp_value_from(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_http_variable_value_t *variables,
    const char *directive, ngx_str_t *value);
static void ngx_http_mcp_value_writer(ngx_log_t *log, ngx_uint_t level,
    u_char *buf, size_t len);
static ngx_int_t ngx_http_mcp_upstream_escape(ngx_pool_t *pool,
    ngx_str_t *uri);
static ngx_uint_t ngx_http_mcp_upstream_dot_segment(u_char *p, u_char *last);
static void ngx_http_mcp_background_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);


static ngx_http_mcp_exchange_handlers_t
    ngx_http_mcp_background_send_handlers = {
    .done = ngx_http_mcp_background_done
};


ngx_http_mcp_background_pt  ngx_http_mcp_background_make;
ngx_http_mcp_scope_pt       ngx_http_mcp_set_scope;

ngx_str_t  ngx_http_mcp_own_id = ngx_string("\"nginx-mcp\"");


ngx_int_t
ngx_http_mcp_own_id_make(ngx_pool_t *pool, ngx_str_t *id)
{
    u_char  *p;

    id->len = sizeof("\"nginx-mcp-\"") - 1 + NGX_MCP_UUID_LEN;
    id->data = ngx_pnalloc(pool, id->len);

    if (id->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(id->data, "\"nginx-mcp-", sizeof("\"nginx-mcp-") - 1);

    if (ngx_mcp_uuid(p) != NGX_OK) {
        return NGX_ERROR;
    }

    p[NGX_MCP_UUID_LEN] = '"';

    return NGX_OK;
}


void
ngx_http_mcp_stable_id(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_str_t *list_key, u_char *dst)
{
    u_char      *p, digest[16], hex[32];
    ngx_md5_t    md5;
    ngx_str_t   *part[4];
    ngx_uint_t   i;

    part[0] = &u->endpoint;
    part[1] = &u->name;
    part[2] = tenant;
    part[3] = list_key;

    ngx_md5_init(&md5);

    for (i = 0; i < 4; i++) {
        ngx_md5_update(&md5, part[i]->data, part[i]->len);
        ngx_md5_update(&md5, "", 1);
    }

    ngx_md5_final(digest, &md5);

    /* a UUID of version 8 (RFC 9562) */

    digest[6] = (digest[6] & 0x0f) | 0x80;
    digest[8] = (digest[8] & 0x3f) | 0x80;

    ngx_hex_dump(hex, digest, 16);

    p = dst;

    for (i = 0; i < 32; i++) {

        if (i == 8 || i == 12 || i == 16 || i == 20) {
            *p++ = '-';
        }

        *p++ = hex[i];
    }
}


ngx_str_t
ngx_http_mcp_own_initialize(ngx_pool_t *pool, ngx_str_t *capabilities)
{
    u_char     *p;
    ngx_str_t   params, none;

    ngx_str_null(&params);
    ngx_str_set(&none, "{}");

    if (capabilities->len == 0) {
        capabilities = &none;
    }

    p = ngx_pnalloc(pool, NGX_HTTP_MCP_INITIALIZE_SIZE + capabilities->len);

    if (p) {
        params.data = p;
        params.len = ngx_sprintf(p, "{\"protocolVersion\":\"%V\","
                                 "\"capabilities\":%V,\"clientInfo\":"
                                 "{\"name\":\"nginx-mcp\",\"version\":\""
                                 NGX_MCP_MODULE_VERSION "\"}}",
                        ngx_mcp_revision_name(NGX_MCP_REVISION_LATEST_LEGACY),
                                 capabilities)
                     - p;
    }

    return params;
}


ngx_http_mcp_upstream_tenant_t *
ngx_http_mcp_upstream_tenant(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_uint_t                       i;
    ngx_http_mcp_upstream_tenant_t  *place, *oldest;
    ngx_http_mcp_upstream_worker_t  *w;

    if (tenant->len > NGX_HTTP_MCP_UPSTREAM_TENANT) {
        return NULL;
    }

    w = u->worker;
    oldest = w->tenants;

    for (i = 0; i < NGX_HTTP_MCP_UPSTREAM_TENANTS; i++) {
        place = &w->tenants[i];

        if (place->len == tenant->len
            && ngx_memcmp(place->tenant, tenant->data, tenant->len) == 0)
        {
            place->used = ++w->used;
            return place;
        }

        if (place->used < oldest->used) {
            oldest = place;
        }
    }

    oldest->kind = NGX_MCP_PROFILE_UNKNOWN;
    oldest->health.away = 0;
    oldest->health.silent = 0;
    oldest->used = ++w->used;
    oldest->len = tenant->len;
    ngx_memcpy(oldest->tenant, tenant->data, tenant->len);

    return oldest;
}


ngx_http_mcp_health_t *
ngx_http_mcp_upstream_health(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant)
{
    ngx_http_mcp_upstream_tenant_t  *place;

    place = ngx_http_mcp_upstream_tenant(u, tenant);

    return place ? &place->health : &u->worker->health;
}


void
ngx_http_mcp_upstream_set_health(ngx_http_mcp_upstream_t *u, ngx_str_t *tenant,
    ngx_uint_t away, ngx_msec_t silent)
{
    ngx_http_mcp_health_t  *health;

    health = ngx_http_mcp_upstream_health(u, tenant);

    health->away = away;
    health->silent = silent;
}


ngx_uint_t
ngx_http_mcp_upstream_log_refusal(ngx_http_mcp_upstream_t *u)
{
    ngx_http_mcp_upstream_worker_t  *w;

    w = u->worker;

    if (w->refusal_logged
        && ngx_current_msec - w->refusal_logged
           < NGX_HTTP_MCP_REFUSAL_INTERVAL)
    {
        return 0;
    }

    w->refusal_logged = ngx_current_msec ? ngx_current_msec : 1;

    return 1;
}


ngx_http_mcp_exchange_t *
ngx_http_mcp_upstream_exchange(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_scope_t *scope)
{
    u_char                   *p, *last, *start;
    ngx_str_t                 uri;
    ngx_http_mcp_exchange_t  *x;

    scope->dots = 0;

    if (ngx_http_mcp_upstream_uri(r, &u->uri, scope, &uri) != NGX_OK) {
        return NULL;
    }

    x = ngx_http_mcp_exchange_create(r);
    if (x == NULL) {
        return NULL;
    }

    x->zone = u->zone;
    x->metric = &u->worker->metric;
    x->timeout = u->timeout;
    x->total = u->total;
    x->limit = u->limit;
    x->name = u->name;
    x->scope = scope;
    x->uri = uri;

    last = uri.data + uri.len;
    start = uri.data;

    for (p = uri.data; /* void */ ; p++) {

        if (p < last && *p != '/' && *p != '?') {
            continue;
        }

        if (ngx_http_mcp_upstream_dot_segment(start, p)) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "mcp upstream \"%V\" was not sent a request: the "
                          "URI \"%V\" has a dot segment", &u->name, &uri);
            scope->dots = 1;
            return NULL;
        }

        if (p == last) {
            break;
        }

        if (*p == '?') {
            x->uri.len = p - uri.data;
            x->args.data = p + 1;
            x->args.len = last - p - 1;
            break;
        }

        start = p + 1;
    }

    if (x->uri.len == 0 || x->uri.data[0] != '/') {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "mcp upstream \"%V\" was not sent a request: the URI "
                      "\"%V\" does not start with a slash", &u->name, &uri);
        return NULL;
    }

    return x;
}


void
ngx_http_mcp_upstream_in_session(ngx_http_mcp_exchange_t *x, ngx_str_t *id,
    ngx_uint_t revision)
{
    x->session_id = *id;

    /* earlier revisions do not have the header */

    if (revision >= NGX_MCP_2025_06_18) {
        x->protocol_version = *ngx_mcp_revision_name(revision);
    }
}


/*
 * Computes the URI twice.  The first time, variables of the scope have plain
 * values, so that a "map" looks up a plain value.  The second time, the values
 * of all other variables are used again, and variables of the scope that are
 * part of the URI itself are percent-encoded.
 */

static ngx_int_t
ngx_http_mcp_upstream_uri(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_http_mcp_scope_t *scope, ngx_str_t *uri)
{
    ngx_int_t                   rc;
    ngx_http_variable_value_t  *buffer;

    if (cv->lengths == NULL) {
        *uri = cv->value;
        return NGX_OK;
    }

    buffer = NULL;

    ngx_http_mcp_set_scope(r, scope, 0);

    rc = ngx_http_mcp_uncached_value(r, cv, &buffer, "mcp_upstream", uri);

    if (rc == NGX_OK) {
        ngx_http_mcp_set_scope(r, scope, 1);

        rc = ngx_http_mcp_value_from(r, cv, buffer, "mcp_upstream", uri);
    }

    ngx_http_mcp_set_scope(r, NULL, 0);

    return rc == NGX_OK ? ngx_http_mcp_upstream_escape(r->pool, uri) : rc;
}


/*
 * A value that an earlier phase has cached may be wrong, for example that of a
 * "map" over a claim, which limit_req evaluated before the token was verified.
 * So only the stored variables ("set", "auth_request_set") keep their values,
 * because nginx cannot compute these again.
 */

ngx_int_t
ngx_http_mcp_uncached_value(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_http_variable_value_t **buffer, const char *directive, ngx_str_t *value)
{
    size_t                      size;
    ngx_uint_t                  n;
    ngx_http_variable_value_t  *fresh, *stored;
    ngx_http_core_main_conf_t  *cmcf;

    if (cv->lengths == NULL) {
        *value = cv->value;
        return NGX_OK;
    }

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    n = cmcf->variables.nelts;
    size = n * sizeof(ngx_http_variable_value_t);

    if (*buffer == NULL) {
        stored = ngx_http_mcp_stored_variables(r);
        fresh = ngx_palloc(r->pool, 2 * size);

        if (stored == NULL || fresh == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(fresh + n, stored, size);

        *buffer = fresh;
    }

    fresh = *buffer;

    ngx_memcpy(fresh, fresh + n, size);

    return ngx_http_mcp_value_from(r, cv, fresh, directive, value);
}


/*
 * Computes the value with these variables.  If a regular expression of a "map"
 * fails, nginx only logs an alert and uses the default of the "map", which may
 * allow a request that the "map" would deny.  So the result is an error if
 * nginx logs an alert; a writer of the log detects this.  A variable may keep a
 * pointer to the log, so the log itself is changed, and its copy writes the
 * lines.
 */

static ngx_int_t
ngx_http_mcp_value_from(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_http_variable_value_t *variables, const char *directive,
    ngx_str_t *value)
{
    ngx_int_t                   rc;
    ngx_log_t                   copy, *log;
    ngx_uint_t                  level, failed, *index;
    ngx_http_mcp_captures_t     captures;
    ngx_http_variable_value_t  *old;

    old = r->variables;
    r->variables = variables;

    log = r->connection->log;
    copy = *log;
    failed = 0;

    /* nginx must not log warnings about variables that are not set yet */

    level = ngx_min(log->log_level, NGX_LOG_ERR);

    log->log_level = ngx_max(level, NGX_LOG_ALERT);
    log->writer = ngx_http_mcp_value_writer;
    log->wdata = &failed;
    log->next = &copy;

    /* a "map" in the value must not change $1 in the value, either */

    ngx_http_mcp_captures_save(r, &captures);

    for (index = cv->flushes; index && *index != (ngx_uint_t) -1; index++) {
        (void) ngx_http_get_flushed_variable(r, *index);
    }

    ngx_http_mcp_captures_restore(r, &captures);
    ngx_http_mcp_captures_save(r, &captures);

    rc = ngx_http_complex_value(r, cv, value);

    ngx_http_mcp_captures_restore(r, &captures);

    log->log_level = copy.log_level;
    log->disk_full_time = copy.disk_full_time;
    log->writer = copy.writer;
    log->wdata = copy.wdata;
    log->next = copy.next;

    r->variables = old;

    if (rc == NGX_OK && !failed) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "mcp could not evaluate \"%s\", and refuses the request; "
                  "the line before this one has the cause", directive);

    return NGX_ERROR;
}


static void
ngx_http_mcp_value_writer(ngx_log_t *log, ngx_uint_t level, u_char *buf,
    size_t len)
{
    ngx_uint_t  *failed;

    if (level <= NGX_LOG_ALERT) {
        failed = log->wdata;
        *failed = 1;
    }
}


/* encodes characters that no URI may have, which variables may contain */

static ngx_int_t
ngx_http_mcp_upstream_escape(ngx_pool_t *pool, ngx_str_t *uri)
{
    u_char  *p, *dst, ch;
    size_t   i, n;

    static u_char  hex[] = "0123456789ABCDEF";

    n = 0;

    for (i = 0; i < uri->len; i++) {
        ch = uri->data[i];
        n += (ch <= 0x20 || ch >= 0x7f || ch == '#');
    }

    if (n == 0) {
        return NGX_OK;
    }

    dst = ngx_pnalloc(pool, uri->len + 2 * n);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    p = dst;

    for (i = 0; i < uri->len; i++) {
        ch = uri->data[i];

        if (ch <= 0x20 || ch >= 0x7f || ch == '#') {
            *p++ = '%';
            *p++ = hex[ch >> 4];
            *p++ = hex[ch & 0xf];

        } else {
            *p++ = ch;
        }
    }

    uri->data = dst;
    uri->len = p - dst;

    return NGX_OK;
}


/* returns whether the segment is "." or "..", however it is written */

static ngx_uint_t
ngx_http_mcp_upstream_dot_segment(u_char *p, u_char *last)
{
    ngx_uint_t  n;

    for (n = 0; p < last; n++) {

        if (*p == '.') {
            p++;

        } else if (last - p >= 3 && p[0] == '%' && p[1] == '2'
                   && (p[2] | 0x20) == 'e')
        {
            p += 3;

        } else {
            return 0;
        }
    }

    return n == 1 || n == 2;
}


ngx_int_t
ngx_http_mcp_string_copy(ngx_pool_t *pool, ngx_str_t *to, ngx_str_t *from)
{
    if (from->len == 0) {
        ngx_str_set(to, "");
        return NGX_OK;
    }

    to->data = ngx_pstrdup(pool, from);

    if (to->data == NULL) {
        to->len = 0;
        return NGX_ERROR;
    }

    to->len = from->len;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_upstream_body(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = ngx_calloc_buf(x->r->pool);
    cl = ngx_alloc_chain_link(x->r->pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    /* nginx sends from b->start when it tries the next server */

    b->start = text->data;
    b->pos = text->data;
    b->last = text->data + text->len;
    b->end = b->last;
    b->memory = 1;
    b->last_buf = 1;

    cl->buf = b;
    cl->next = NULL;

    x->request = cl;
    x->request_len = text->len;

    return NGX_OK;
}


ngx_http_request_t *
ngx_http_mcp_background_open(ngx_http_conf_ctx_t *conf,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers)
{
    ngx_http_request_t  *r;

    r = ngx_http_mcp_background_make(conf, audience);

    if (r && headers
        && ngx_http_mcp_background_headers(&r->headers_in, r->pool, headers)
           != NGX_OK)
    {
        ngx_http_mcp_background_close(r);
        return NULL;
    }

    return r;
}


ngx_http_mcp_exchange_t *
ngx_http_mcp_background_exchange(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers,
    ngx_http_mcp_scope_t *from)
{
    ngx_http_request_t       *r;
    ngx_http_mcp_scope_t     *scope;
    ngx_http_mcp_exchange_t  *x;

    from->dots = 0;

    r = ngx_http_mcp_background_open(u->conf_ctx, audience, headers);
    if (r == NULL) {
        return NULL;
    }

    scope = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_scope_t));

    if (scope == NULL
        || ngx_http_mcp_string_copy(r->pool, &scope->method, &from->method)
           != NGX_OK
        || ngx_http_mcp_string_copy(r->pool, &scope->request_id,
                                    &from->request_id)
           != NGX_OK)
    {
        goto failed;
    }

    x = ngx_http_mcp_upstream_exchange(r, u, scope);
    if (x == NULL) {
        from->dots = scope->dots;
        goto failed;
    }

    x->handlers = &ngx_http_mcp_background_send_handlers;
    x->client_headers = headers ? 1 : 0;

    return x;

failed:

    ngx_http_mcp_background_close(r);

    return NULL;
}


ngx_http_mcp_exchange_t *
ngx_http_mcp_background_session(ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_audience_t *audience, ngx_http_headers_in_t *headers,
    ngx_str_t *id, ngx_uint_t revision)
{
    ngx_str_t                 copy;
    ngx_http_mcp_scope_t      scope;
    ngx_http_mcp_exchange_t  *x;

    ngx_memzero(&scope, sizeof(ngx_http_mcp_scope_t));

    x = ngx_http_mcp_background_exchange(u, audience, headers, &scope);
    if (x == NULL) {
        return NULL;
    }

    if (ngx_http_mcp_string_copy(x->r->pool, &copy, id) != NGX_OK) {
        ngx_http_mcp_background_close(x->r);
        return NULL;
    }

    ngx_http_mcp_upstream_in_session(x, &copy, revision);

    return x;
}


ngx_int_t
ngx_http_mcp_background_send(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_connection_t  *c;

    if ((text && (text->data == NULL
                  || ngx_http_mcp_upstream_body(x, text) != NGX_OK))
        || ngx_http_mcp_exchange_start(x) != NGX_OK)
    {
        ngx_http_mcp_background_close(x->r);
        return NGX_ERROR;
    }

    c = x->r->connection;
    ngx_http_run_posted_requests(c);

    return NGX_OK;
}


static void
ngx_http_mcp_background_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_background_close(x->r);
}
