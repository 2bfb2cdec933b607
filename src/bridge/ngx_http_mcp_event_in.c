
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_event_in.h"
#include "ngx_http_mcp_topic.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_splice.h"


/* searches of all sessions for a progress token, at most, for one source */
#define NGX_HTTP_MCP_EVENT_IN_SEARCHES  64


static const char *ngx_http_mcp_event_in_parse(ngx_http_mcp_event_in_t *in,
    ngx_str_t *text, ngx_mcp_invalidate_t *inv);
static const char *ngx_http_mcp_event_in_payload(ngx_http_mcp_event_in_t *in,
    ngx_str_t *body, ngx_mcp_invalidate_t *inv);
static const char *ngx_http_mcp_event_in_json(ngx_http_mcp_event_in_t *in,
    ngx_str_t *body, ngx_uint_t *json);
static const char *ngx_http_mcp_event_in_address(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_str_t *tenant);
static const char *ngx_http_mcp_event_in_member(ngx_http_mcp_event_in_t *in,
    ngx_mcp_path_e path, ngx_str_t *value);
static const char *ngx_http_mcp_event_in_id(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, uint64_t *key);
static const char *ngx_http_mcp_event_in_deliver(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_mcp_invalidate_t *inv,
    ngx_mcp_post_t *post);
static const char *ngx_http_mcp_event_in_rpc(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to);
static const char *ngx_http_mcp_event_in_progress(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_str_t *text);
static ngx_int_t ngx_http_mcp_event_in_add_topics(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_str_t *text);
static const char *ngx_http_mcp_event_in_invalidate(
    ngx_http_mcp_event_in_t *in, ngx_http_mcp_address_t *to,
    ngx_mcp_invalidate_t *inv, ngx_mcp_post_t *post);
static const char *ngx_http_mcp_event_in_send(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_mcp_post_t *post, ngx_uint_t *repeated);
static void ngx_http_mcp_event_in_not_kept(ngx_http_mcp_event_in_t *in,
    ngx_mcp_post_t *post);
static ngx_uint_t ngx_http_mcp_event_in_matches(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_bridge_t *bridge);


/* members that address a notification; they are removed for clients */

static ngx_str_t  ngx_http_mcp_event_in_addresses[] = {
    ngx_string("tenant_id"),
    ngx_string("session_id"),
    ngx_string("identity"),
    ngx_string("uri"),
    ngx_string("topic"),
    ngx_null_string
};


#define NGX_HTTP_MCP_EVENT_IN_MEMBER(path, name)                              \
    { NGX_MCP_PATH_ ## path, "\"" name "\" appears twice",                    \
      "\"" name "\" is not a string", "half a surrogate pair in \"" name "\"" },

static struct {
    ngx_mcp_path_e           path;
    const char              *twice;
    const char              *type;
    const char              *lone;
} ngx_http_mcp_event_in_members[] = {

    NGX_HTTP_MCP_EVENT_IN_MEMBER(TENANT_ID, "tenant_id")
    NGX_HTTP_MCP_EVENT_IN_MEMBER(SESSION_ID, "session_id")
    NGX_HTTP_MCP_EVENT_IN_MEMBER(IDENTITY, "identity")
    NGX_HTTP_MCP_EVENT_IN_MEMBER(TOP_URI, "uri")
    NGX_HTTP_MCP_EVENT_IN_MEMBER(TOPIC, "topic")
    NGX_HTTP_MCP_EVENT_IN_MEMBER(KIND, "kind")
};


const char *
ngx_http_mcp_event_in(ngx_http_mcp_event_in_t *in, ngx_str_t *text,
    ngx_uint_t *sessions, ngx_uint_t *repeated)
{
    ngx_str_t                tenant;
    const char              *why;
    ngx_mcp_post_t           post;
    ngx_mcp_invalidate_t     inv;
    ngx_http_mcp_address_t   to;

    *sessions = 0;
    *repeated = 0;

    in->number++;
    in->absent = 0;
    in->full = 0;
    in->not_kept = 0;
    in->missed = 0;

    ngx_mcp_invalidate_init(&inv);
    ngx_memzero(&post, sizeof(ngx_mcp_post_t));

    why = ngx_http_mcp_event_in_parse(in, text, &inv);

    if (why == NULL) {
        why = ngx_http_mcp_event_in_address(in, &to, &tenant);
    }

    if (why == NULL && in->once) {
        why = ngx_http_mcp_event_in_id(in, &to, &post.id);
    }

    if (why == NULL) {
        why = ngx_http_mcp_event_in_deliver(in, &to, &inv, &post);
    }

    if (why == NULL) {
        why = ngx_http_mcp_event_in_send(in, &to, &post, repeated);
        *sessions = post.sessions;
    }

    return why;
}


/*
 * Scans the event, unless in->scanned is set, and checks its form.  Returns, as
 * most functions below, NULL or a text about why the event is refused.
 */

static const char *
ngx_http_mcp_event_in_parse(ngx_http_mcp_event_in_t *in, ngx_str_t *text,
    ngx_mcp_invalidate_t *inv)
{
    const char         *why;
    ngx_mcp_json_t     *json;
    ngx_mcp_message_t  *m;

    m = &in->message;
    json = &m->json;

    inv->text = *text;

    if (in->payload) {
        why = ngx_http_mcp_event_in_payload(in, text, inv);

        if (why) {
            return why;
        }

    } else if (!in->scanned && ngx_mcp_json_scan(json, text) != NGX_OK) {
        return json->error;
    }

    in->scanned = 0;

    if (json->type != NGX_MCP_JSON_OBJECT) {
        return "an event must be a JSON object";
    }

    m->text = inv->text;
    m->kind = NGX_MCP_INVALID;

    if (json->members[NGX_MCP_PATH_JSONRPC].type
        || json->members[NGX_MCP_PATH_METHOD].type)
    {
        if (ngx_mcp_message_parse_scanned(m, text, &why) != NGX_OK) {
            return why;
        }

        if (m->kind != NGX_MCP_NOTIFICATION) {
            return "not a JSON-RPC notification";
        }

        if (ngx_mcp_message_lacks_id(m)) {
            return "\"method\" is that of a request, not of a notification";
        }
    }

    return NULL;
}


static const char *
ngx_http_mcp_event_in_deliver(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_mcp_invalidate_t *inv,
    ngx_mcp_post_t *post)
{
    const char  *why;

    if (ngx_array_init(&to->deliveries, in->pool, 2,
                       sizeof(ngx_mcp_delivery_t))
        != NGX_OK)
    {
        return "no memory";
    }

    to->addressed = 1;

    if (in->message.kind == NGX_MCP_NOTIFICATION) {
        return ngx_http_mcp_event_in_rpc(in, to);
    }

    why = ngx_http_mcp_event_in_member(in, NGX_MCP_PATH_KIND, &inv->kind);

    if (why) {
        return why;
    }

    if (inv->kind.len == 0 && to->topic.len == 0) {
        return "there is no \"method\", \"kind\" or \"topic\"";
    }

    /* the topic gets the event before clients are notified */

    if (to->topic.len
        && (ngx_http_mcp_event_in_add_topics(in, to, &inv->text) != NGX_OK
            || ngx_http_mcp_event_add_updated(to, &to->topic, in->pool)
               != NGX_OK))
    {
        return "no memory";
    }

    return inv->kind.len ? ngx_http_mcp_event_in_invalidate(in, to, inv, post)
                         : NULL;
}


static const char *
ngx_http_mcp_event_in_send(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_mcp_post_t *post, ngx_uint_t *repeated)
{
    ngx_int_t  rc;

    post->deliveries = to->deliveries.elts;
    post->n = to->deliveries.nelts;
    post->pool = in->pool;
    post->consume = in->consume;
    post->answered = (in->consume == NULL);
    post->attended = post->answered;

    rc = ngx_mcp_outbox_send(in->zone, post);
    in->item = post->item;
    in->missed = post->missed;

    ngx_http_mcp_event_in_not_kept(in, post);

    switch (rc) {

    case NGX_DECLINED:

        if (post->absent) {
            in->absent = 1;
            return "there is no such session";
        }

        *repeated = 1;
        ngx_mcp_count(in->zone, NGX_MCP_COUNTER_EVENTS_REPEATED, 1);

        return NULL;

    case NGX_ABORT:
        return NULL;

    case NGX_ERROR:

        if (post->large) {
            return "the event is larger than mcp_event_buffer allows";
        }

        in->full = 1;

        return "the zone is full";

    default:
        ngx_mcp_count(in->zone, in->counter, 1);
        return NULL;
    }
}


static void
ngx_http_mcp_event_in_not_kept(ngx_http_mcp_event_in_t *in,
    ngx_mcp_post_t *post)
{
    ngx_uint_t           i;
    ngx_mcp_delivery_t  *d;

    for (i = 0; i < post->n; i++) {
        d = &post->deliveries[i];

        if (!d->not_kept || d->topic.other || d->topic.existing) {
            continue;
        }

        in->not_kept = 1;

        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp endpoint \"%V\" does not keep an event of "
                      "topic \"%V\": the event is too large, too many "
                      "topics are in use, or the zone is full; raise "
                      "\"mcp_topic_limit\" or the size of \"mcp_zone\"",
                      d->endpoint, &in->named);
    }
}


/*
 * Makes an event from a payload.  Members of the payload do not address
 * sessions, because its sender does not know them.
 */

static const char *
ngx_http_mcp_event_in_payload(ngx_http_mcp_event_in_t *in, ngx_str_t *body,
    ngx_mcp_invalidate_t *inv)
{
    u_char      *d;
    size_t       len;
    ngx_str_t   *text;
    ngx_uint_t   json;
    ngx_time_t  *tp;
    const char  *why;

    json = 0;
    why = ngx_http_mcp_event_in_json(in, body, &json);

    if (why) {
        return why;
    }

    len = sizeof("{\"kind\":,\"topic\":,\"tenant_id\":,\"ts_ms\":,"
                 "\"payload\":}")
          + ngx_mcp_json_escaped_len(&in->kind)
          + ngx_mcp_json_escaped_len(&in->topic)
          + (in->tenant ? ngx_mcp_json_escaped_len(in->tenant) : 0)
          + NGX_INT64_LEN
          + (json ? body->len : ngx_mcp_json_escaped_len(body));

    d = ngx_pnalloc(in->pool, len);
    if (d == NULL) {
        return "no memory";
    }

    text = &inv->text;
    text->data = d;

    tp = ngx_timeofday();
    d = ngx_sprintf(d, "{\"ts_ms\":%uL", (uint64_t) tp->sec * 1000 + tp->msec);

    if (in->kind.len) {
        d = ngx_cpymem(d, ",\"kind\":", sizeof(",\"kind\":") - 1);
        d = ngx_mcp_json_escape(d, &in->kind);
    }

    if (in->topic.len) {
        d = ngx_cpymem(d, ",\"topic\":", sizeof(",\"topic\":") - 1);
        d = ngx_mcp_json_escape(d, &in->topic);
    }

    if (in->tenant) {
        d = ngx_cpymem(d, ",\"tenant_id\":", sizeof(",\"tenant_id\":") - 1);
        d = ngx_mcp_json_escape(d, in->tenant);
    }

    /* scans only the text before the payload, which was scanned already */

    *d = '}';
    text->len = d + 1 - text->data;

    if (ngx_mcp_json_scan(&in->message.json, text) != NGX_OK) {
        return in->message.json.error;
    }

    if (body->len) {
        d = ngx_cpymem(d, ",\"payload\":", sizeof(",\"payload\":") - 1);

        if (json == NGX_MCP_JSON_OBJECT) {
            inv->payload.data = d;
            inv->payload.len = body->len;
        }

        d = json ? ngx_cpymem(d, body->data, body->len)
                 : ngx_mcp_json_escape(d, body);
    }

    *d++ = '}';
    text->len = d - text->data;

    return NULL;
}


/*
 * Scans a body as JSON, whatever its Content-Type is, because many senders use
 * that of forms.  Sets *json to the type of the value; it stays 0 for a text.
 */

static const char *
ngx_http_mcp_event_in_json(ngx_http_mcp_event_in_t *in, ngx_str_t *body,
    ngx_uint_t *json)
{
    ngx_mcp_json_t  *scan;

    if (body->len == 0) {
        return NULL;
    }

    scan = &in->message.json;

    if (ngx_mcp_json_scan(scan, body) != NGX_OK) {
        return in->json ? scan->error : NULL;
    }

    if (in->json
        || scan->type == NGX_MCP_JSON_OBJECT
        || scan->type == NGX_MCP_JSON_ARRAY)
    {
        *json = scan->type;

        while (*body->data <= ' ') {
            body->data++;
            body->len--;
        }
    }

    return NULL;
}


static const char *
ngx_http_mcp_event_in_address(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_str_t *tenant)
{
    ngx_int_t    rc;
    ngx_str_t    topic;
    const char  *why;

    ngx_memzero(to, sizeof(ngx_http_mcp_address_t));

    to->zone = in->zone;
    to->endpoint = in->endpoint;

    if ((why = ngx_http_mcp_event_in_member(in, NGX_MCP_PATH_TENANT_ID,
                                            tenant))
        || (why = ngx_http_mcp_event_in_member(in, NGX_MCP_PATH_SESSION_ID,
                                               &to->session))
        || (why = ngx_http_mcp_event_in_member(in, NGX_MCP_PATH_IDENTITY,
                                               &to->identity))
        || (why = ngx_http_mcp_event_in_member(in, NGX_MCP_PATH_TOP_URI,
                                               &to->uri))
        || (why = ngx_http_mcp_event_in_member(in, NGX_MCP_PATH_TOPIC,
                                               &topic)))
    {
        return why;
    }

    /* an empty member must not address everybody */

    if ((tenant->data && tenant->len == 0)
        || (to->identity.data && to->identity.len == 0)
        || (to->uri.data && to->uri.len == 0)
        || (topic.data && topic.len == 0))
    {
        return "\"tenant_id\", \"identity\", \"uri\" or \"topic\" is empty";
    }

    in->named = topic.len ? topic : in->topic;

    if (in->named.len > NGX_HTTP_MCP_TOPIC_MAX) {
        return "the topic is longer than 512 bytes";
    }

    rc = in->named.len ? ngx_http_mcp_topic_uri(&in->named, in->pool,
                                                &to->topic)
                       : NGX_OK;

    if (rc == NGX_DECLINED) {
        return "the topic has a control character or is no UTF-8";
    }

    if (rc != NGX_OK) {
        return "no memory";
    }

    to->tenant = tenant->data ? tenant : NULL;

    if (in->tenant) {

        if (to->tenant && !ngx_mcp_equal(tenant, in->tenant)) {
            return "\"tenant_id\" is not the tenant of this location";
        }

        to->tenant = in->tenant;
    }

    return NULL;
}


/* reads a member that is a string; value->data NULL: there is none */

static const char *
ngx_http_mcp_event_in_member(ngx_http_mcp_event_in_t *in, ngx_mcp_path_e path,
    ngx_str_t *value)
{
    ngx_uint_t       i;
    ngx_mcp_span_t  *span;

    span = &in->message.json.members[path];

    ngx_str_null(value);

    if (span->type == NGX_MCP_JSON_ABSENT) {
        return NULL;
    }

    for (i = 0; ngx_http_mcp_event_in_members[i].path != path; i++) {
        /* void */
    }

    if (span->count > 1) {
        return ngx_http_mcp_event_in_members[i].twice;
    }

    if (span->type != NGX_MCP_JSON_STRING) {
        return ngx_http_mcp_event_in_members[i].type;
    }

    if (span->lone) {
        return ngx_http_mcp_event_in_members[i].lone;
    }

    *value = ngx_mcp_message_string(&in->message, path, in->pool);

    return (value->data == NULL) ? "no memory" : NULL;
}


/*
 * Computes *key from the event's id, endpoint and tenant: different tenants may
 * use equal ids.  *key stays 0 if the event has no id.
 */

static const char *
ngx_http_mcp_event_in_id(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, uint64_t *key)
{
    u_char             *d;
    ngx_str_t           id, scope, *endpoint;
    ngx_mcp_message_t  *m;
    static ngx_str_t    none = ngx_string("");

    m = &in->message;

    ngx_str_null(&id);

    switch (m->json.members[NGX_MCP_PATH_ID].type) {

    case NGX_MCP_JSON_STRING:
    case NGX_MCP_JSON_NUMBER:

        if (m->json.members[NGX_MCP_PATH_ID].count > 1) {
            return "\"id\" appears twice";
        }

        id = ngx_mcp_message_member(m, NGX_MCP_PATH_ID);
        break;

    case NGX_MCP_JSON_ABSENT:

        if (in->id.len == 0) {
            return NULL;
        }

        /* in->id is the id of the whole body, so the event's number is added */

        d = ngx_pnalloc(in->pool, in->id.len + NGX_INT_T_LEN + 1);
        if (d == NULL) {
            return "no memory";
        }

        id.data = d;
        id.len = ngx_sprintf(d, "%ui:%V", in->number, &in->id) - d;
        break;

    default:
        return "\"id\" is neither a string nor a number";
    }

    endpoint = to->endpoint ? to->endpoint : &none;

    scope.len = endpoint->len + 2 + (to->tenant ? to->tenant->len : 0);

    d = ngx_pnalloc(in->pool, scope.len);
    if (d == NULL) {
        return "no memory";
    }

    scope.data = d;

    d = ngx_cpymem(d, endpoint->data, endpoint->len);
    *d++ = '\0';
    *d++ = to->tenant ? 't' : 'a';

    if (to->tenant) {
        ngx_memcpy(d, to->tenant->data, to->tenant->len);
    }

    *key = ngx_mcp_idempotency_key(to->zone, &scope, &id);

    return NULL;
}


static const char *
ngx_http_mcp_event_in_rpc(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to)
{
    ngx_str_t                text, level;
    ngx_uint_t               i;
    ngx_mcp_event_t          event;
    ngx_mcp_message_t       *m;
    ngx_http_mcp_bridge_t  **bridges;
    static ngx_str_t         none = ngx_string("");

    m = &in->message;

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    if (m->method_code == NGX_MCP_METHOD_MESSAGE) {
        level = ngx_mcp_message_string(m, NGX_MCP_PATH_LEVEL, in->pool);
        event.level = ngx_mcp_level_parse(&level);

        if (event.level == NGX_MCP_LEVEL_UNSET) {
            return "\"params.level\" must be one of \"debug\", \"info\", "
                   "\"notice\", \"warning\", \"error\", \"critical\", "
                   "\"alert\" and \"emergency\"";
        }
    }

    if (m->method_code == NGX_MCP_METHOD_RESOURCES_UPDATED) {
        event.uri[0] = ngx_mcp_message_string(m, NGX_MCP_PATH_URI, in->pool);

        if (event.uri[0].len == 0) {
            return "\"params.uri\" is missing";
        }

        if (m->json.members[NGX_MCP_PATH_URI].lone) {
            return "half a surrogate pair in \"params.uri\"";
        }
    }

    text = m->text;

    if (to->session.data || to->identity.data || to->uri.len || to->topic.len
        || m->json.members[NGX_MCP_PATH_TENANT_ID].type)
    {
        text = ngx_mcp_join(in->pool, &none, &m->text,
                            ngx_http_mcp_event_in_addresses);
    }

    if (text.data == NULL) {
        return "no memory";
    }

    if (m->method_code == NGX_MCP_METHOD_PROGRESS) {
        return ngx_http_mcp_event_in_progress(in, to, &text);
    }

    if (to->topic.len
        && ngx_http_mcp_event_in_add_topics(in, to, &text) != NGX_OK)
    {
        return "no memory";
    }

    bridges = in->bridges->elts;

    for (i = 0; i < in->bridges->nelts; i++) {

        if (ngx_mcp_list_change(m->method_code) == NULL) {
            break;
        }

        if (ngx_http_mcp_event_in_matches(in, bridges[i])) {
            event.flags |= ngx_http_mcp_event_list_changed(to, bridges[i],
                                                           m->method_code,
                                                           &text, in->pool);
        }
    }

    return ngx_http_mcp_event_add(to, &text, &event) ? NULL : "no memory";
}


static const char *
ngx_http_mcp_event_in_progress(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_str_t *text)
{
    ngx_str_t               token;
    ngx_mcp_ref_t           call;
    ngx_mcp_message_t      *m;
    ngx_mcp_delivery_t     *d;
    ngx_mcp_token_scope_t   scope;

    m = &in->message;
    token = ngx_mcp_message_member(m, NGX_MCP_PATH_TOKEN);

    if (token.len == 0) {
        return "\"params.progressToken\" is missing";
    }

    if (m->json.members[NGX_MCP_PATH_TOKEN].lone) {
        return "half a surrogate pair in \"params.progressToken\"";
    }

    if (to->session.data == NULL
        && in->searches++ >= NGX_HTTP_MCP_EVENT_IN_SEARCHES)
    {
        return "the request has too many progress events without "
               "\"session_id\"; add \"session_id\"";
    }

    scope.session = to->session.data ? &to->session : NULL;
    scope.endpoint = to->endpoint;
    scope.tenant = to->tenant;
    scope.identity = &to->identity;

    switch (ngx_mcp_token_find(to->zone, &token, &scope, &call)) {

    case NGX_DECLINED:
        in->absent = 1;
        return "no running call carries this \"progressToken\"";

    case NGX_BUSY:
        return "several calls carry this \"progressToken\"; add "
               "\"session_id\"";
    }

    d = ngx_http_mcp_event_add_delivery(to);
    if (d == NULL) {
        return "no memory";
    }

    ngx_str_null(&d->session);

    d->ref = call;
    d->text = *text;
    d->addressed = 1;

    return NULL;
}


/* adds a delivery to the event's topic at each endpoint that has topics */

static ngx_int_t
ngx_http_mcp_event_in_add_topics(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_str_t *text)
{
    ngx_uint_t               i;
    ngx_http_mcp_bridge_t  **bridges;

    bridges = in->bridges->elts;

    for (i = 0; i < in->bridges->nelts; i++) {

        if (bridges[i]->topics
            && ngx_http_mcp_event_in_matches(in, bridges[i])
            && ngx_http_mcp_event_add_to_topic(bridges[i], to, in->pool, text)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* adds deliveries of the event by the rules of each endpoint */

static const char *
ngx_http_mcp_event_in_invalidate(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_address_t *to, ngx_mcp_invalidate_t *inv,
    ngx_mcp_post_t *post)
{
    ngx_int_t                rc;
    ngx_str_t               *endpoint;
    ngx_uint_t               i, n, absent;
    ngx_http_mcp_bridge_t  **bridges;

    absent = (to->session.data && to->deliveries.nelts == 0);
    endpoint = to->endpoint;
    bridges = in->bridges->elts;

    for (i = 0; i < in->bridges->nelts; i++) {

        if (!ngx_http_mcp_event_in_matches(in, bridges[i])) {
            continue;
        }

        /* if the event has a topic, only the topic's subscribers are counted */

        to->addressed = (to->topic.len == 0);
        to->endpoint = &bridges[i]->endpoint;
        n = to->deliveries.nelts;

        rc = ngx_http_mcp_event_invalidate(to, bridges[i], inv, in->pool);

        if (rc == NGX_ERROR) {
            return "no memory";
        }

        if (to->deliveries.nelts == n) {

            if (to->session.data
                && !ngx_mcp_session_exists(in->zone, &to->session,
                                           to->endpoint))
            {
                continue;
            }

            /* the event addresses this endpoint, but no rule of it matches */

            post->optional = 1;
        }

        absent = 0;
    }

    to->endpoint = endpoint;

    if (absent) {
        in->absent = 1;
        return "there is no such session";
    }

    return NULL;
}


static ngx_uint_t
ngx_http_mcp_event_in_matches(ngx_http_mcp_event_in_t *in,
    ngx_http_mcp_bridge_t *bridge)
{
    if (bridge->zone != in->zone || bridge->duplicate) {
        return 0;
    }

    return in->endpoint == NULL
           || ngx_mcp_equal(&bridge->endpoint, in->endpoint);
}
