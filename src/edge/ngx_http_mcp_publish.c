
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_publish.h"


static void ngx_http_mcp_publish_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_publish_values(ngx_http_mcp_publish_t *p);
static ngx_int_t ngx_http_mcp_publish_value(ngx_http_mcp_publish_t *p,
    ngx_http_complex_value_t *cv, const char *name, ngx_str_t *value);
static ngx_int_t ngx_http_mcp_publish_body(ngx_http_request_t *r,
    ngx_str_t *body);
static ngx_int_t ngx_http_mcp_publish_events(ngx_http_mcp_publish_t *p,
    ngx_str_t *body);
static ngx_int_t ngx_http_mcp_publish_lines(ngx_http_mcp_publish_t *p,
    ngx_str_t *body);
static ngx_int_t ngx_http_mcp_publish_event(ngx_http_mcp_publish_t *p,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_publish_answer(ngx_http_mcp_publish_t *p);


ngx_int_t
ngx_http_mcp_publish_handler(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_table_elt_t  *h;

    rc = ngx_http_mcp_guard(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

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
    ngx_int_t                  rc;
    ngx_str_t                  body;
    ngx_http_mcp_publish_t    *p;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_main_conf_t  *mmcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);
    mmcf = ngx_http_get_module_main_conf(r, ngx_http_mcp_module);

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_publish_t));
    if (p == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    p->request = r;
    p->conf = mlcf->publish;

    p->in.zone = p->conf->zone;
    p->in.bridges = &mmcf->bridges;
    p->in.endpoint = p->conf->endpoint.len ? &p->conf->endpoint : NULL;
    p->in.counter = NGX_MCP_COUNTER_EVENTS_PUBLISHED;
    p->in.pool = r->pool;
    p->in.payload = (p->conf->kind || p->conf->topic);
    p->in.json = ngx_http_mcp_is_json(r);
    p->in.once = 1;

    rc = ngx_http_mcp_publish_values(p);

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, rc);
        return;
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

    if (p->in.payload) {
        rc = ngx_http_mcp_publish_event(p, &body);

    } else {
        rc = ngx_http_mcp_publish_events(p, &body);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_mcp_publish_answer(p);

    } else {
        cJSON_Delete(p->events);
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_finalize_request(r, rc);
}


/* what the location says of its events; NGX_OK or an HTTP status */

static ngx_int_t
ngx_http_mcp_publish_values(ngx_http_mcp_publish_t *p)
{
    ngx_int_t                     rc;
    ngx_table_elt_t              *h;
    ngx_http_mcp_publish_conf_t  *conf;
    static ngx_str_t              key = ngx_string("Idempotency-Key");

    conf = p->conf;

    rc = ngx_http_mcp_publish_value(p, conf->tenant, "tenant", &p->tenant);

    if (rc != NGX_OK) {
        return rc;
    }

    if (conf->tenant) {
        p->in.tenant = &p->tenant;
    }

    rc = ngx_http_mcp_publish_value(p, conf->kind, "kind", &p->in.kind);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_mcp_publish_value(p, conf->topic, "topic", &p->in.topic);

    if (rc != NGX_OK) {
        return rc;
    }

    if (conf->id
        && ngx_http_complex_value(p->request, conf->id, &p->in.id) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (p->in.id.len == 0) {
        h = ngx_http_mcp_find_header(p->request, &key);

        if (h) {
            p->in.id = h->value;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_publish_value(ngx_http_mcp_publish_t *p,
    ngx_http_complex_value_t *cv, const char *name, ngx_str_t *value)
{
    if (cv == NULL) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(p->request, cv, value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (value->len == 0) {
        ngx_log_error(NGX_LOG_INFO, p->request->connection->log, 0,
                      "mcp: %s of published events is empty", name);

        return (cv == p->conf->tenant) ? NGX_HTTP_FORBIDDEN
                                       : NGX_HTTP_BAD_REQUEST;
    }

    return NGX_OK;
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

    json = &p->in.message.json;

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
    ngx_uint_t   sessions, repeated;
    const char  *error;

    event = cJSON_CreateObject();
    if (event == NULL) {
        return NGX_ERROR;
    }

    cJSON_AddItemToArray(p->events, event);

    error = ngx_http_mcp_event_in(&p->in, text, &sessions, &repeated);

    if (error) {
        ngx_log_error(NGX_LOG_INFO, p->request->connection->log, 0,
                      "client sent an event that is refused: %s", error);

        if (p->in.full) {
            p->full = 1;

        } else {
            ngx_mcp_count(p->in.zone, p->in.absent
                                      ? NGX_MCP_COUNTER_EVENTS_UNSENT
                                      : NGX_MCP_COUNTER_EVENTS_INVALID, 1);
        }

        p->refused++;
        item = cJSON_AddStringToObject(event, "error", error);

    } else {
        p->accepted++;
        item = cJSON_AddNumberToObject(event, "sessions", (double) sessions);

        if (item && repeated) {
            item = cJSON_AddTrueToObject(event, "repeated");
        }

        if (item && p->in.unkept) {
            item = cJSON_AddFalseToObject(event, "kept");
        }
    }

    return (item == NULL) ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_mcp_publish_answer(ngx_http_mcp_publish_t *p)
{
    char                *text;
    cJSON               *root, *accepted, *refused;
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_str_t            seconds;
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

    if (refused && p->accepted + p->refused == 0) {
        refused = cJSON_AddStringToObject(root, "error", "there is no event");
    }

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

    if (p->accepted == 0 && p->full) {

        /* it may be sent again */

        r->headers_out.status = NGX_HTTP_SERVICE_UNAVAILABLE;
        ngx_str_set(&seconds, "1");

        if (ngx_http_mcp_header(r, "Retry-After", &seconds) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    r->headers_out.content_length_n = b->last - b->pos;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;

    rc = ngx_http_mcp_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_mcp_output(r, &out);
}
