
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_output.h"
#include "ngx_http_mcp_publish.h"
#include "ngx_http_mcp_turn.h"


/* ms between two turns of a POST with many events */
#define NGX_HTTP_MCP_PUBLISH_PAUSE    1

#define NGX_HTTP_MCP_PUBLISH_SCRATCH  4096

/* the most bytes of the answer about events; bytes of one buffer of it */
#define NGX_HTTP_MCP_PUBLISH_ANSWER   (8 * 1024 * 1024)
#define NGX_HTTP_MCP_PUBLISH_BUF      4096

/* bytes of the answer before and behind the events, and about one event */
#define NGX_HTTP_MCP_PUBLISH_HEAD                                             \
    (sizeof("{\"accepted\":,\"refused\":,\"events\":[") - 1                    \
     + 2 * NGX_INT_T_LEN)
#define NGX_HTTP_MCP_PUBLISH_TAIL                                             \
    (sizeof("],\"omitted\":,\"error\":"                                      \
            "\"the tenant of this location is empty\"}\n") - 1                 \
     + NGX_INT_T_LEN)
#define NGX_HTTP_MCP_PUBLISH_EVENT                                            \
    (sizeof(",{\"sessions\":,\"missed\":,\"repeated\":true,"                   \
            "\"kept\":false}") - 1                                           \
     + 2 * NGX_INT_T_LEN)


static void ngx_http_mcp_publish_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_publish_values(ngx_http_mcp_publish_t *p);
static ngx_int_t ngx_http_mcp_publish_value(ngx_http_mcp_publish_t *p,
    ngx_http_complex_value_t *cv, ngx_str_t *value, const char *empty);
static void ngx_http_mcp_publish_cleanup(void *data);
static void ngx_http_mcp_publish_form(ngx_http_mcp_publish_t *p);
static void ngx_http_mcp_publish_turn_handler(ngx_event_t *ev);
static void ngx_http_mcp_publish_turn(ngx_http_mcp_publish_t *p);
static ngx_int_t ngx_http_mcp_publish_next(ngx_http_mcp_publish_t *p,
    ngx_str_t *text);
static void ngx_http_mcp_publish_event(ngx_http_mcp_publish_t *p,
    ngx_str_t *text);
static ngx_int_t ngx_http_mcp_publish_outcome(ngx_http_mcp_publish_t *p);
static u_char *ngx_http_mcp_publish_room(ngx_http_mcp_publish_t *p,
    size_t len);
static u_char *ngx_http_mcp_publish_number(u_char *d, const char *name,
    ngx_uint_t n);
static ngx_int_t ngx_http_mcp_publish_answer(ngx_http_mcp_publish_t *p);


ngx_int_t
ngx_http_mcp_publish_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_mcp_guard(r, NGX_HTTP_POST, "POST");

    if (rc != NGX_DECLINED) {
        return rc;
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
    ngx_pool_cleanup_t        *cln;
    ngx_http_mcp_publish_t    *p;
    ngx_http_mcp_loc_conf_t   *mlcf;
    ngx_http_mcp_main_conf_t  *mmcf;

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);
    mmcf = ngx_http_get_module_main_conf(r, ngx_http_mcp_module);

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_publish_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (p == NULL || cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    cln->handler = ngx_http_mcp_publish_cleanup;
    cln->data = p;

    p->request = r;
    p->conf = mlcf->publish;
    p->refusal = NGX_HTTP_BAD_REQUEST;
    p->last = &p->out;

    p->turn.handler = ngx_http_mcp_publish_turn_handler;
    p->turn.data = p;
    p->turn.log = r->connection->log;

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
        ngx_http_finalize_request(r, p->error ? ngx_http_mcp_publish_answer(p)
                                              : rc);
        return;
    }

    if (ngx_http_mcp_request_body(r, &p->rest) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_mcp_publish_form(p);

    if (p->form != NGX_HTTP_MCP_PUBLISH_ONE) {

        p->scratch = ngx_create_pool(NGX_HTTP_MCP_PUBLISH_SCRATCH,
                                     r->connection->log);
        if (p->scratch == NULL) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        p->in.pool = p->scratch;
    }

    ngx_http_mcp_publish_turn(p);
}


static void
ngx_http_mcp_publish_cleanup(void *data)
{
    ngx_http_mcp_publish_t *p = data;

    if (p->turn.timer_set) {
        ngx_del_timer(&p->turn);
    }

    if (p->scratch) {
        ngx_destroy_pool(p->scratch);
    }
}


/*
 * Sets the values that the location gives to all events.  NGX_OK; NGX_DECLINED:
 * a value is empty, and p->error says which; or an HTTP status.
 */

static ngx_int_t
ngx_http_mcp_publish_values(ngx_http_mcp_publish_t *p)
{
    ngx_int_t                     rc;
    ngx_table_elt_t              *h;
    ngx_http_mcp_publish_conf_t  *conf;

    conf = p->conf;

    rc = ngx_http_mcp_publish_value(p, conf->tenant, &p->tenant,
                                    "the tenant of this location is empty");

    if (rc != NGX_OK) {
        return rc;
    }

    if (conf->tenant) {
        p->in.tenant = &p->tenant;
    }

    rc = ngx_http_mcp_publish_value(p, conf->kind, &p->in.kind,
                                    "the kind of this location is empty");

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_mcp_publish_value(p, conf->topic, &p->in.topic,
                                    "the topic of this location is empty");

    if (rc != NGX_OK) {
        return rc;
    }

    if (conf->id
        && ngx_http_mcp_uncached_value(p->request, conf->id, &p->values,
                                       "mcp_publish", &p->in.id)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (p->in.id.len == 0) {
        h = ngx_http_mcp_find_header(&p->request->headers_in.headers,
                                     "Idempotency-Key");

        if (h) {
            p->in.id = h->value;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_publish_value(ngx_http_mcp_publish_t *p,
    ngx_http_complex_value_t *cv, ngx_str_t *value, const char *empty)
{
    if (cv == NULL) {
        return NGX_OK;
    }

    if (ngx_http_mcp_uncached_value(p->request, cv, &p->values, "mcp_publish",
                                    value)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (value->len == 0) {
        ngx_log_error(NGX_LOG_INFO, p->request->connection->log, 0,
                      "mcp refused a request with events: %s (mcp_publish)",
                      empty);

        p->error = empty;

        if (cv == p->conf->tenant) {
            p->refusal = NGX_HTTP_FORBIDDEN;
        }

        return NGX_DECLINED;
    }

    return NGX_OK;
}


static void
ngx_http_mcp_publish_form(ngx_http_mcp_publish_t *p)
{
    u_char          *end;
    ngx_str_t       *body;
    ngx_mcp_json_t  *json;

    if (p->in.payload) {
        return;
    }

    body = &p->rest;

    while (body->len && body->data[body->len - 1] <= ' ') {
        body->len--;
    }

    while (body->len && *body->data <= ' ') {
        body->data++;
        body->len--;
    }

    if (body->len == 0) {
        p->form = NGX_HTTP_MCP_PUBLISH_LINES;
        return;
    }

    json = &p->in.message.json;

    if (ngx_mcp_json_scan(json, body) == NGX_OK) {

        if (json->type == NGX_MCP_JSON_ARRAY) {
            p->form = NGX_HTTP_MCP_PUBLISH_ARRAY;

        } else {
            p->in.scanned = 1;
        }

        return;
    }

    /*
     * The body has several values, or is wrong JSON, which may also have more
     * than one line.
     */

    end = ngx_strlchr(body->data, body->data + body->len, LF);

    if (end == NULL) {
        return;
    }

    while (end[-1] <= ' ') {
        end--;
    }

    if (ngx_strchr("{[,:", end[-1]) == NULL) {
        p->form = NGX_HTTP_MCP_PUBLISH_LINES;
    }
}


static void
ngx_http_mcp_publish_turn_handler(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_http_mcp_publish_t  *p;

    p = ev->data;
    c = p->request->connection;

    ngx_http_set_log_request(c->log, p->request);

    ngx_http_mcp_publish_turn(p);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_mcp_publish_turn(ngx_http_mcp_publish_t *p)
{
    ngx_str_t   text;
    ngx_msec_t  start;

    start = ngx_http_mcp_turn_now();

    for ( ;; ) {

        /* an event must reach all sessions before the next event is read */

        if (p->in.item.block) {

            if (ngx_mcp_outbox_run(p->in.zone, p->in.item, &p->in.missed)
                != NGX_OK)
            {
                ngx_add_timer(&p->turn, NGX_HTTP_MCP_PUBLISH_PAUSE);
                return;
            }

            p->in.item.block = 0;
        }

        if (p->published && ngx_http_mcp_publish_outcome(p) != NGX_OK) {
            ngx_http_finalize_request(p->request,
                                      NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        if (ngx_http_mcp_publish_next(p, &text) != NGX_OK) {
            break;
        }

        ngx_http_mcp_publish_event(p, &text);

        if (p->scratch) {
            ngx_reset_pool(p->scratch);
        }

        if ((p->rest.len || p->in.item.block)
            && ngx_http_mcp_turn_over(start))
        {

            /* a worker that quits does not exit while a timer is set */

            ngx_add_timer(&p->turn, NGX_HTTP_MCP_PUBLISH_PAUSE);
            return;
        }
    }

    ngx_http_finalize_request(p->request, ngx_http_mcp_publish_answer(p));
}


/* sets *text to the next event; NGX_OK; NGX_DONE: there is no further event */

static ngx_int_t
ngx_http_mcp_publish_next(ngx_http_mcp_publish_t *p, ngx_str_t *text)
{
    u_char     *end;
    ngx_str_t  *rest;

    rest = &p->rest;

    switch (p->form) {

    case NGX_HTTP_MCP_PUBLISH_ONE:

        if (p->published) {
            return NGX_DONE;
        }

        *text = *rest;
        rest->len = 0;

        return NGX_OK;

    case NGX_HTTP_MCP_PUBLISH_ARRAY:
        return ngx_mcp_json_element(rest, text);

    default: /* NGX_HTTP_MCP_PUBLISH_LINES */
        break;
    }

    while (rest->len) {
        text->data = rest->data;

        end = ngx_strlchr(rest->data, rest->data + rest->len, LF);

        if (end == NULL) {
            end = rest->data + rest->len;
            rest->len = 0;

        } else {
            rest->len -= end + 1 - rest->data;
            rest->data = end + 1;
        }

        while (end > text->data && end[-1] <= ' ') {
            end--;
        }

        text->len = end - text->data;

        if (text->len) {
            return NGX_OK;
        }
    }

    return NGX_DONE;
}


static void
ngx_http_mcp_publish_event(ngx_http_mcp_publish_t *p, ngx_str_t *text)
{
    p->published++;
    p->error = ngx_http_mcp_event_in(&p->in, text, &p->sessions, &p->repeated);

    if (p->error == NULL) {
        p->accepted++;
        return;
    }

    ngx_log_error(NGX_LOG_INFO, p->request->connection->log, 0,
                  "mcp refused an event: %s", p->error);

    if (p->in.full) {
        p->full = 1;

    } else {
        ngx_mcp_count(p->in.zone, p->in.absent
                                  ? NGX_MCP_COUNTER_EVENTS_UNSENT
                                  : NGX_MCP_COUNTER_EVENTS_INVALID, 1);
    }
}


/* writes the outcome of the event to the answer; NGX_ERROR: no memory */

static ngx_int_t
ngx_http_mcp_publish_outcome(ngx_http_mcp_publish_t *p)
{
    u_char          *d;
    ngx_str_t        why;
    ngx_mcp_json_t  *json;

    json = &p->in.message.json;

    ngx_str_null(&why);

    if (p->error) {
        why.data = (u_char *) p->error;
        why.len = ngx_strlen(p->error);
    }

    if (p->size >= NGX_HTTP_MCP_PUBLISH_ANSWER) {
        p->omitted++;
        return NGX_OK;
    }

    d = ngx_http_mcp_publish_room(p, NGX_HTTP_MCP_PUBLISH_EVENT
                                     + ngx_mcp_json_escaped_len(&why));
    if (d == NULL) {
        return NGX_ERROR;
    }

    if (p->published > 1) {
        *d++ = ',';
    }

    if (p->error) {
        d = ngx_cpymem(d, "{\"error\":", sizeof("{\"error\":") - 1);
        d = ngx_mcp_json_escape(d, &why);

        if (p->error == json->error) {
            d = ngx_http_mcp_publish_number(d, ",\"offset\":", json->offset);
        }

        *d++ = '}';

    } else {
        d = ngx_http_mcp_publish_number(d, "{\"sessions\":", p->sessions);

        if (p->in.missed) {
            d = ngx_http_mcp_publish_number(d, ",\"missed\":", p->in.missed);
        }

        if (p->repeated) {
            d = ngx_cpymem(d, ",\"repeated\":true",
                           sizeof(",\"repeated\":true") - 1);
        }

        if (p->in.not_kept) {
            d = ngx_cpymem(d, ",\"kept\":false",
                           sizeof(",\"kept\":false") - 1);
        }

        *d++ = '}';
    }

    p->size += d - p->buf->last;
    p->buf->last = d;

    return NGX_OK;
}


/* returns room for len bytes of the answer; NULL: no memory */

static u_char *
ngx_http_mcp_publish_room(ngx_http_mcp_publish_t *p, size_t len)
{
    size_t        size;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (p->buf && (size_t) (p->buf->end - p->buf->last) >= len) {
        return p->buf->last;
    }

    size = len + NGX_HTTP_MCP_PUBLISH_HEAD + NGX_HTTP_MCP_PUBLISH_TAIL;

    if (p->form != NGX_HTTP_MCP_PUBLISH_ONE) {
        size = ngx_max(size, NGX_HTTP_MCP_PUBLISH_BUF);
    }

    b = ngx_create_temp_buf(p->request->pool, size);
    cl = ngx_alloc_chain_link(p->request->pool);

    if (b == NULL || cl == NULL) {
        return NULL;
    }

    /* the beginning of the answer, which has numbers, is written at the end */

    if (p->out == NULL) {
        b->pos += NGX_HTTP_MCP_PUBLISH_HEAD;
        b->last = b->pos;
    }

    cl->buf = b;
    cl->next = NULL;

    *p->last = cl;
    p->last = &cl->next;
    p->buf = b;

    return b->last;
}


static u_char *
ngx_http_mcp_publish_number(u_char *d, const char *name, ngx_uint_t n)
{
    d = ngx_cpymem(d, name, ngx_strlen(name));

    if (n < 10) {
        *d++ = (u_char) ('0' + n);
        return d;
    }

    return ngx_sprintf(d, "%ui", n);
}


static ngx_int_t
ngx_http_mcp_publish_answer(ngx_http_mcp_publish_t *p)
{
    u_char              *d, *last;
    u_char               head[NGX_HTTP_MCP_PUBLISH_HEAD];
    ngx_buf_t           *b;
    ngx_uint_t           status;
    ngx_http_request_t  *r;

    r = p->request;

    d = ngx_http_mcp_publish_room(p, NGX_HTTP_MCP_PUBLISH_TAIL);
    if (d == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last = ngx_http_mcp_publish_number(head, "{\"accepted\":", p->accepted);
    last = ngx_http_mcp_publish_number(last, ",\"refused\":",
                                       p->published - p->accepted);
    last = ngx_cpymem(last, ",\"events\":[", sizeof(",\"events\":[") - 1);

    b = p->out->buf;
    b->pos -= last - head;
    ngx_memcpy(b->pos, head, last - head);

    *d++ = ']';

    if (p->omitted) {
        d = ngx_http_mcp_publish_number(d, ",\"omitted\":", p->omitted);
    }

    if (p->published == 0) {
        d = ngx_sprintf(d, ",\"error\":\"%s\"",
                        p->error ? p->error : "there is no event");
    }

    *d++ = '}';
    *d++ = LF;

    p->buf->last = d;

    status = p->accepted ? NGX_HTTP_ACCEPTED : p->refusal;

    if (p->accepted == 0 && p->full) {

        /* the client may send the events again */

        status = NGX_HTTP_SERVICE_UNAVAILABLE;

        if (ngx_http_mcp_header_text(r, "Retry-After", "1") != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    return ngx_http_mcp_send_chain(r, status, &ngx_http_mcp_type_json, p->out);
}
