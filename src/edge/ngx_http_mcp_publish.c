
#include "ngx_http_mcp_publish.h"
#include <cjson/cJSON.h>


/* of one POST */

typedef struct {
    ngx_http_request_t           *request;
    ngx_http_mcp_publish_conf_t  *conf;
    ngx_str_t                    *endpoint;   /* NULL: any */
    ngx_str_t                    *tenant;     /* fixed here; NULL: any */
    ngx_str_t                     value;      /* of tenant */
    cJSON                        *events;
    ngx_uint_t                    accepted;
    ngx_uint_t                    refused;
    ngx_mcp_message_t             message;
} ngx_http_mcp_publish_t;


static void ngx_http_mcp_publish_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_publish_body(ngx_http_request_t *r,
    ngx_str_t *body);
static ngx_int_t ngx_http_mcp_publish_events(ngx_http_mcp_publish_t *p,
    ngx_str_t *body);
static ngx_int_t ngx_http_mcp_publish_lines(ngx_http_mcp_publish_t *p,
    ngx_str_t *body);
static ngx_int_t ngx_http_mcp_publish_event(ngx_http_mcp_publish_t *p,
    ngx_str_t *text);
static const char *ngx_http_mcp_publish_deliver(ngx_http_mcp_publish_t *p,
    ngx_str_t *text, ngx_uint_t *sessions);
static const char *ngx_http_mcp_publish_address(ngx_http_mcp_publish_t *p,
    ngx_mcp_path_e path, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_publish_strip(ngx_http_mcp_publish_t *p,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_publish_answer(ngx_http_mcp_publish_t *p);


ngx_int_t
ngx_http_mcp_publish_handler(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_table_elt_t  *h;

    if (r->method != NGX_HTTP_POST) {

        h = ngx_http_mcp_header_push(&r->headers_out.headers);
        if (h == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_str_set(&h->key, "Allow");
        ngx_str_set(&h->value, "POST");

        return NGX_HTTP_NOT_ALLOWED;
    }

    r->request_body_in_single_buf = 1;

    rc = ngx_http_read_client_request_body(r,
                                           ngx_http_mcp_publish_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


static void
ngx_http_mcp_publish_body_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_str_t                 body;
    ngx_http_mcp_publish_t   *p;
    ngx_http_mcp_loc_conf_t  *mlcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_publish_t));
    if (p == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    p->request = r;
    p->conf = mlcf->publish;

    if (p->conf->endpoint.len) {
        p->endpoint = &p->conf->endpoint;
    }

    if (p->conf->tenant) {

        if (ngx_http_complex_value(r, p->conf->tenant, &p->value) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        if (p->value.len == 0) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "mcp: tenant of published events is empty");
            ngx_http_finalize_request(r, NGX_HTTP_FORBIDDEN);
            return;
        }

        p->tenant = &p->value;
    }

    rc = ngx_http_mcp_publish_body(r, &body);

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    p->events = cJSON_CreateArray();
    if (p->events == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    rc = ngx_http_mcp_publish_events(p, &body);

    if (rc == NGX_OK) {
        rc = ngx_http_mcp_publish_answer(p);

    } else {
        cJSON_Delete(p->events);
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_finalize_request(r, rc);
}


/* the body in one piece; NGX_OK or an HTTP status */

static ngx_int_t
ngx_http_mcp_publish_body(ngx_http_request_t *r, ngx_str_t *body)
{
    u_char       *p;
    size_t        size;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_str_null(body);

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return NGX_OK;
    }

    cl = r->request_body->bufs;

    if (cl->next == NULL && !cl->buf->in_file) {
        body->data = cl->buf->pos;
        body->len = cl->buf->last - cl->buf->pos;
        return NGX_OK;
    }

    size = 0;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        size += ngx_buf_size(cl->buf);
    }

    p = ngx_pnalloc(r->pool, size);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body->data = p;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {

        b = cl->buf;

        if (!b->in_file) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        size = (size_t) (b->file_last - b->file_pos);

        n = ngx_read_file(b->file, p, size, b->file_pos);

        if (n == NGX_ERROR || (size_t) n != size) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        p += size;
    }

    body->len = p - body->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_publish_events(ngx_http_mcp_publish_t *p, ngx_str_t *body)
{
    ngx_str_t        rest, element;
    ngx_mcp_json_t  *json;

    while (body->len && body->data[body->len - 1] <= ' ') {
        body->len--;
    }

    while (body->len && *body->data <= ' ') {
        body->data++;
        body->len--;
    }

    if (body->len == 0) {
        return NGX_OK;
    }

    json = &p->message.json;

    if (ngx_mcp_json_scan(json, body) != NGX_OK) {

        /* several values, or one that is none */

        if (ngx_strlchr(body->data, body->data + body->len, LF)) {
            return ngx_http_mcp_publish_lines(p, body);
        }

        return ngx_http_mcp_publish_event(p, body);
    }

    if (json->type != NGX_MCP_JSON_ARRAY) {
        return ngx_http_mcp_publish_event(p, body);
    }

    rest = *body;

    while (ngx_mcp_json_element(&rest, &element) == NGX_OK) {
        if (ngx_http_mcp_publish_event(p, &element) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_publish_lines(ngx_http_mcp_publish_t *p, ngx_str_t *body)
{
    u_char     *start, *end, *last;
    ngx_str_t   line;

    last = body->data + body->len;

    for (start = body->data; start < last; start = end + 1) {

        end = ngx_strlchr(start, last, LF);

        if (end == NULL) {
            end = last;
        }

        line.data = start;
        line.len = end - start;

        while (line.len && line.data[line.len - 1] <= ' ') {
            line.len--;
        }

        if (line.len && ngx_http_mcp_publish_event(p, &line) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* its outcome goes into the answer; NGX_ERROR: no memory for that */

static ngx_int_t
ngx_http_mcp_publish_event(ngx_http_mcp_publish_t *p, ngx_str_t *text)
{
    cJSON       *event, *item;
    ngx_uint_t   sessions;
    const char  *error;

    event = cJSON_CreateObject();
    if (event == NULL) {
        return NGX_ERROR;
    }

    cJSON_AddItemToArray(p->events, event);

    error = ngx_http_mcp_publish_deliver(p, text, &sessions);

    if (error) {
        ngx_log_error(NGX_LOG_INFO, p->request->connection->log, 0,
                      "client sent an event that is refused: %s", error);

        p->refused++;
        item = cJSON_AddStringToObject(event, "error", error);

    } else {
        p->accepted++;
        item = cJSON_AddNumberToObject(event, "sessions", (double) sessions);
    }

    return (item == NULL) ? NGX_ERROR : NGX_OK;
}


/* NULL, or why it is refused */

static const char *
ngx_http_mcp_publish_deliver(ngx_http_mcp_publish_t *p, ngx_str_t *text,
    ngx_uint_t *sessions)
{
    ngx_int_t           rc;
    ngx_str_t           session, tenant, level, *to;
    const char         *why;
    ngx_mcp_event_t     event;
    ngx_mcp_message_t  *m;

    m = &p->message;
    why = NULL;

    if (ngx_mcp_message_parse(m, text, &why) != NGX_OK) {
        return why ? why : "not a JSON-RPC message";
    }

    if (m->kind != NGX_MCP_NOTIFICATION) {
        return "not a JSON-RPC notification";
    }

    why = ngx_http_mcp_publish_address(p, NGX_MCP_PATH_SESSION_ID, &session);
    if (why) {
        return why;
    }

    why = ngx_http_mcp_publish_address(p, NGX_MCP_PATH_TENANT_ID, &tenant);
    if (why) {
        return why;
    }

    to = tenant.data ? &tenant : NULL;

    if (p->tenant) {

        if (to && (to->len != p->tenant->len
                   || ngx_memcmp(to->data, p->tenant->data, to->len) != 0))
        {
            return "\"tenant_id\" is not the tenant of this location";
        }

        to = p->tenant;
    }

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    if (m->method_code == NGX_MCP_METHOD_MESSAGE) {
        level = ngx_mcp_message_string(m, NGX_MCP_PATH_LEVEL,
                                       p->request->pool);
        event.level = ngx_mcp_level_parse(&level);

        if (event.level == NGX_MCP_LEVEL_UNSET) {
            return "\"params.level\" is no level";
        }
    }

    if (m->method_code == NGX_MCP_METHOD_RESOURCES_UPDATED) {
        event.uri = ngx_mcp_message_string(m, NGX_MCP_PATH_URI,
                                           p->request->pool);

        if (event.uri.len == 0) {
            return "\"params.uri\" is missing";
        }
    }

    if ((session.data || tenant.data)
        && ngx_http_mcp_publish_strip(p, text) != NGX_OK)
    {
        return "no memory";
    }

    event.parts = text;
    event.nparts = 1;

    if (session.data) {
        rc = ngx_mcp_log_session_id(p->conf->zone, &session, p->endpoint, to,
                                    &event);
        *sessions = 1;

        if (rc == NGX_DECLINED) {
            return "there is no such session";
        }

    } else {
        *sessions = 0;
        rc = ngx_mcp_log_groups(p->conf->zone, p->endpoint, to, &event,
                                sessions);
    }

    if (rc == NGX_ERROR) {
        return "the event is too large, or the zone is full";
    }

    ngx_mcp_count(p->conf->zone, NGX_MCP_COUNTER_EVENTS_IN, 1);
    ngx_mcp_count(p->conf->zone, NGX_MCP_COUNTER_EVENTS_PUBLISHED, 1);

    return NULL;
}


/* value.data is NULL when the member is absent */

static const char *
ngx_http_mcp_publish_address(ngx_http_mcp_publish_t *p, ngx_mcp_path_e path,
    ngx_str_t *value)
{
    ngx_mcp_span_t     *span;
    ngx_mcp_message_t  *m;

    m = &p->message;
    span = &m->json.members[path];

    ngx_str_null(value);

    if (span->type == NGX_MCP_JSON_ABSENT) {
        return NULL;
    }

    if (span->count > 1) {
        return "\"session_id\" or \"tenant_id\" stands there twice";
    }

    if (span->type != NGX_MCP_JSON_STRING) {
        return "\"session_id\" or \"tenant_id\" is no string";
    }

    *value = ngx_mcp_message_string(m, path, p->request->pool);

    return (value->data == NULL) ? "no memory" : NULL;
}


/* splices the message from all members but those that address it */

static ngx_int_t
ngx_http_mcp_publish_strip(ngx_http_mcp_publish_t *p, ngx_str_t *text)
{
    u_char          *d;
    ngx_str_t        rest, name, value;
    ngx_mcp_json_t  *json;
    u_char          *session, *tenant;

    json = &p->message.json;

    session = ngx_mcp_json_span(json, NGX_MCP_PATH_SESSION_ID, text->data).data;
    tenant = ngx_mcp_json_span(json, NGX_MCP_PATH_TENANT_ID, text->data).data;

    d = ngx_pnalloc(p->request->pool, text->len);
    if (d == NULL) {
        return NGX_ERROR;
    }

    rest = *text;
    text->data = d;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (value.data == session || value.data == tenant) {
            continue;
        }

        *d = (d == text->data) ? '{' : ',';
        d++;

        d = ngx_cpymem(d, name.data, name.len);
        *d++ = ':';
        d = ngx_cpymem(d, value.data, value.len);
    }

    *d++ = '}';

    text->len = d - text->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_publish_answer(ngx_http_mcp_publish_t *p)
{
    char                *text;
    cJSON               *root, *accepted, *refused;
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t          out;
    ngx_http_request_t  *r;

    r = p->request;

    root = cJSON_CreateObject();
    if (root == NULL) {
        cJSON_Delete(p->events);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    accepted = cJSON_AddNumberToObject(root, "accepted", (double) p->accepted);
    refused = cJSON_AddNumberToObject(root, "refused", (double) p->refused);
    cJSON_AddItemToObject(root, "events", p->events);

    text = (accepted && refused) ? cJSON_PrintUnformatted(root) : NULL;

    cJSON_Delete(root);

    if (text == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_create_temp_buf(r->pool, ngx_strlen(text) + 1);

    if (b) {
        b->last = ngx_cpymem(b->last, text, ngx_strlen(text));
        *b->last++ = LF;
    }

    cJSON_free(text);

    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    r->headers_out.status = p->accepted ? NGX_HTTP_ACCEPTED
                                        : NGX_HTTP_BAD_REQUEST;
    r->headers_out.content_length_n = b->last - b->pos;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_output_filter(r, &out);
}
