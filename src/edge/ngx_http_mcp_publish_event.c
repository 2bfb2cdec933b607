
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_publish.h"


/* of one POST: calls are searched for a token in all sessions */
#define NGX_HTTP_MCP_PUBLISH_SEARCHES  64


static const char *ngx_http_mcp_publish_webhook(ngx_http_mcp_publish_t *p,
    ngx_str_t *body, ngx_str_t *text, ngx_mcp_invalidate_t *in);
static const char *ngx_http_mcp_publish_payload(ngx_http_mcp_publish_t *p,
    ngx_str_t *body, ngx_uint_t *json);
static const char *ngx_http_mcp_publish_address(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_str_t *tenant);
static const char *ngx_http_mcp_publish_member(ngx_http_mcp_publish_t *p,
    ngx_mcp_path_e path, ngx_str_t *value);
static const char *ngx_http_mcp_publish_claim(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, uint64_t *key, ngx_uint_t *sessions,
    ngx_uint_t *repeated);
static const char *ngx_http_mcp_publish_rpc(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_uint_t *sessions);
static const char *ngx_http_mcp_publish_progress(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_str_t *text);
static const char *ngx_http_mcp_publish_invalidate(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_mcp_invalidate_t *in,
    ngx_uint_t *sessions);
static ngx_uint_t ngx_http_mcp_publish_skip(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_loc_conf_t **eps, ngx_uint_t n);
static const char *ngx_http_mcp_publish_error(ngx_int_t rc);


/* members that address a notification, which they do not belong to */

static ngx_str_t  ngx_http_mcp_publish_addresses[] = {
    ngx_string("tenant_id"),
    ngx_string("session_id"),
    ngx_string("identity"),
    ngx_string("uri"),
    ngx_string("topic"),
    ngx_null_string
};


static struct {
    ngx_mcp_path_e           path;
    const char              *twice;
    const char              *type;
} ngx_http_mcp_publish_members[] = {

    { NGX_MCP_PATH_TENANT_ID, "\"tenant_id\" stands there twice",
      "\"tenant_id\" is no string" },

    { NGX_MCP_PATH_SESSION_ID, "\"session_id\" stands there twice",
      "\"session_id\" is no string" },

    { NGX_MCP_PATH_IDENTITY, "\"identity\" stands there twice",
      "\"identity\" is no string" },

    { NGX_MCP_PATH_TOP_URI, "\"uri\" stands there twice",
      "\"uri\" is no string" },

    { NGX_MCP_PATH_TOPIC, "\"topic\" stands there twice",
      "\"topic\" is no string" },

    { NGX_MCP_PATH_KIND, "\"kind\" stands there twice",
      "\"kind\" is no string" },

    { NGX_MCP_PATH_NONE, NULL, NULL }
};


const char *
ngx_http_mcp_publish_deliver(ngx_http_mcp_publish_t *p, ngx_str_t *text,
    ngx_uint_t *sessions, ngx_uint_t *repeated)
{
    uint64_t                 key;
    ngx_str_t                event, tenant;
    ngx_uint_t               rpc;
    const char              *why;
    ngx_mcp_json_t          *json;
    ngx_mcp_message_t       *m;
    ngx_mcp_invalidate_t     in;
    ngx_http_mcp_address_t   to;

    m = &p->message;
    json = &m->json;
    event = *text;

    ngx_memzero(&in, sizeof(ngx_mcp_invalidate_t));

    if (p->conf->kind || p->conf->topic) {
        why = ngx_http_mcp_publish_webhook(p, text, &event, &in);

        if (why) {
            return why;
        }
    }

    if (ngx_mcp_json_scan(json, &event) != NGX_OK) {
        return json->error;
    }

    if (json->type != NGX_MCP_JSON_OBJECT) {
        return "an event must be a JSON object";
    }

    m->text = event;

    rpc = (json->members[NGX_MCP_PATH_JSONRPC].type
           || json->members[NGX_MCP_PATH_METHOD].type);

    if (rpc) {

        if (ngx_mcp_message_parse(m, &event, &why) != NGX_OK) {
            return why;
        }

        if (m->kind != NGX_MCP_NOTIFICATION) {
            return "not a JSON-RPC notification";
        }
    }

    why = ngx_http_mcp_publish_address(p, &to, &tenant);

    if (why) {
        return why;
    }

    if (!rpc) {
        in.text = event;
        why = ngx_http_mcp_publish_member(p, NGX_MCP_PATH_KIND, &in.kind);

        if (why) {
            return why;
        }

        if (in.kind.len == 0 && to.topic.len == 0) {
            return "there is no \"method\", \"kind\" or \"topic\"";
        }
    }

    key = 0;
    why = ngx_http_mcp_publish_claim(p, &to, &key, sessions, repeated);

    if (*repeated) {
        ngx_mcp_count(to.zone, NGX_MCP_COUNTER_EVENTS_REPEATED, 1);
    }

    if (why || *repeated) {
        return why;
    }

    if (rpc) {
        why = ngx_http_mcp_publish_rpc(p, &to, sessions);

    } else {
        why = ngx_http_mcp_publish_invalidate(p, &to, &in, sessions);
    }

    if (why) {

        if (key) {
            ngx_mcp_once_drop(to.zone, key);
        }

        return why;
    }

    if (key) {
        ngx_mcp_once_end(to.zone, key, *sessions);
    }

    ngx_mcp_count(to.zone, NGX_MCP_COUNTER_EVENTS_PUBLISHED, 1);

    return NULL;
}


/*
 * The event of a body that is a payload.  What it says addresses nobody: it
 * comes from those who know nothing of sessions.
 */

static const char *
ngx_http_mcp_publish_webhook(ngx_http_mcp_publish_t *p, ngx_str_t *body,
    ngx_str_t *text, ngx_mcp_invalidate_t *in)
{
    u_char      *d;
    size_t       len;
    ngx_uint_t   json;
    ngx_time_t  *tp;
    const char  *why;

    json = 0;
    why = ngx_http_mcp_publish_payload(p, body, &json);

    if (why) {
        return why;
    }

    len = sizeof("{\"kind\":,\"topic\":,\"tenant_id\":,\"ts_ms\":,"
                 "\"payload\":}")
          + ngx_mcp_json_escaped_len(&p->kind)
          + ngx_mcp_json_escaped_len(&p->topic)
          + ngx_mcp_json_escaped_len(&p->value) + NGX_INT64_LEN
          + (json ? body->len : ngx_mcp_json_escaped_len(body));

    d = ngx_pnalloc(p->request->pool, len);
    if (d == NULL) {
        return "no memory";
    }

    text->data = d;

    tp = ngx_timeofday();
    d = ngx_sprintf(d, "{\"ts_ms\":%uL", (uint64_t) tp->sec * 1000 + tp->msec);

    if (p->kind.len) {
        d = ngx_cpymem(d, ",\"kind\":", sizeof(",\"kind\":") - 1);
        d = ngx_mcp_json_escape(d, &p->kind);
    }

    if (p->topic.len) {
        d = ngx_cpymem(d, ",\"topic\":", sizeof(",\"topic\":") - 1);
        d = ngx_mcp_json_escape(d, &p->topic);
    }

    if (p->tenant) {
        d = ngx_cpymem(d, ",\"tenant_id\":", sizeof(",\"tenant_id\":") - 1);
        d = ngx_mcp_json_escape(d, p->tenant);
    }

    if (body->len) {
        d = ngx_cpymem(d, ",\"payload\":", sizeof(",\"payload\":") - 1);

        if (json == NGX_MCP_JSON_OBJECT) {
            in->payload.data = d;
            in->payload.len = body->len;
        }

        d = json ? ngx_cpymem(d, body->data, body->len)
                 : ngx_mcp_json_escape(d, body);
    }

    *d++ = '}';
    text->len = d - text->data;

    return NULL;
}


/* many senders of JSON call it a form; json is its type, 0 for text */

static const char *
ngx_http_mcp_publish_payload(ngx_http_mcp_publish_t *p, ngx_str_t *body,
    ngx_uint_t *json)
{
    ngx_mcp_json_t  *scan;

    if (body->len == 0) {
        return NULL;
    }

    scan = &p->message.json;

    if (ngx_mcp_json_scan(scan, body) != NGX_OK) {
        return ngx_http_mcp_is_json(p->request) ? scan->error : NULL;
    }

    if (ngx_http_mcp_is_json(p->request)
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
ngx_http_mcp_publish_address(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_str_t *tenant)
{
    ngx_str_t    topic;
    const char  *why;

    ngx_memzero(to, sizeof(ngx_http_mcp_address_t));

    to->zone = p->conf->zone;
    to->endpoint = p->endpoint;

    why = ngx_http_mcp_publish_member(p, NGX_MCP_PATH_TENANT_ID, tenant);

    if (why == NULL) {
        why = ngx_http_mcp_publish_member(p, NGX_MCP_PATH_SESSION_ID,
                                          &to->session);
    }

    if (why == NULL) {
        why = ngx_http_mcp_publish_member(p, NGX_MCP_PATH_IDENTITY,
                                          &to->identity);
    }

    if (why == NULL) {
        why = ngx_http_mcp_publish_member(p, NGX_MCP_PATH_TOP_URI, &to->uri);
    }

    if (why == NULL) {
        why = ngx_http_mcp_publish_member(p, NGX_MCP_PATH_TOPIC, &topic);
    }

    if (why) {
        return why;
    }

    /* an address that was left empty must not mean everybody */

    if ((to->uri.data && to->uri.len == 0) || (topic.data && topic.len == 0)) {
        return "\"uri\" or \"topic\" is empty";
    }

    if (topic.len
        && ngx_http_mcp_event_topic(&topic, p->request->pool, &to->topic)
           != NGX_OK)
    {
        return "no memory";
    }

    to->tenant = tenant->data ? tenant : NULL;

    if (p->tenant) {

        if (to->tenant
            && (tenant->len != p->tenant->len
                || ngx_memcmp(tenant->data, p->tenant->data, tenant->len)
                   != 0))
        {
            return "\"tenant_id\" is not the tenant of this location";
        }

        to->tenant = p->tenant;
    }

    return NULL;
}


/* value->data is NULL when the member is absent */

static const char *
ngx_http_mcp_publish_member(ngx_http_mcp_publish_t *p, ngx_mcp_path_e path,
    ngx_str_t *value)
{
    ngx_uint_t       i;
    ngx_mcp_span_t  *span;

    span = &p->message.json.members[path];

    ngx_str_null(value);

    if (span->type == NGX_MCP_JSON_ABSENT) {
        return NULL;
    }

    for (i = 0; ngx_http_mcp_publish_members[i].path != path; i++) {
        /* void */
    }

    if (span->count > 1) {
        return ngx_http_mcp_publish_members[i].twice;
    }

    if (span->type != NGX_MCP_JSON_STRING) {
        return ngx_http_mcp_publish_members[i].type;
    }

    *value = ngx_mcp_message_string(&p->message, path, p->request->pool);

    return (value->data == NULL) ? "no memory" : NULL;
}


/* key stays 0 when the event has no id; an id is one of its addressees */

static const char *
ngx_http_mcp_publish_claim(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, uint64_t *key, ngx_uint_t *sessions,
    ngx_uint_t *repeated)
{
    u_char             *d;
    ngx_str_t           id, scope, *endpoint;
    ngx_int_t           rc;
    ngx_mcp_message_t  *m;
    static ngx_str_t    none = ngx_string("");

    m = &p->message;

    ngx_str_null(&id);

    switch (m->json.members[NGX_MCP_PATH_ID].type) {

    case NGX_MCP_JSON_STRING:
    case NGX_MCP_JSON_NUMBER:

        if (m->json.members[NGX_MCP_PATH_ID].count > 1) {
            return "\"id\" stands there twice";
        }

        id = ngx_mcp_message_member(m, NGX_MCP_PATH_ID);
        break;

    case NGX_MCP_JSON_ABSENT:

        if (p->id.len == 0) {
            return NULL;
        }

        /* one for the whole body: each event has its own */

        d = ngx_pnalloc(p->request->pool, p->id.len + NGX_INT_T_LEN + 1);
        if (d == NULL) {
            return "no memory";
        }

        id.data = d;
        id.len = ngx_sprintf(d, "%ui:%V", p->number, &p->id) - d;
        break;

    default:
        return "\"id\" is neither a string nor a number";
    }

    endpoint = to->endpoint ? to->endpoint : &none;

    scope.len = endpoint->len + 2 + (to->tenant ? to->tenant->len : 0);

    d = ngx_pnalloc(p->request->pool, scope.len);
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

    rc = ngx_mcp_once_claim(to->zone, &scope, &id, key, sessions);

    if (rc == NGX_AGAIN) {
        *key = 0;
        return "an event with this \"id\" is being taken; try again";
    }

    if (rc == NGX_DECLINED) {
        *repeated = 1;
    }

    return NULL;
}


static const char *
ngx_http_mcp_publish_rpc(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_uint_t *sessions)
{
    ngx_str_t           text, level;
    ngx_pool_t         *pool;
    ngx_mcp_event_t     event;
    ngx_mcp_message_t  *m;

    m = &p->message;
    pool = p->request->pool;

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    if (m->method_code == NGX_MCP_METHOD_MESSAGE) {
        level = ngx_mcp_message_string(m, NGX_MCP_PATH_LEVEL, pool);
        event.level = ngx_mcp_level_parse(&level);

        if (event.level == NGX_MCP_LEVEL_UNSET) {
            return "\"params.level\" is no level";
        }
    }

    if (m->method_code == NGX_MCP_METHOD_RESOURCES_UPDATED) {
        event.uri[0] = ngx_mcp_message_string(m, NGX_MCP_PATH_URI, pool);

        if (event.uri[0].len == 0) {
            return "\"params.uri\" is missing";
        }
    }

    text = m->text;

    if ((to->session.data || to->identity.data || to->uri.len || to->topic.len
         || m->json.members[NGX_MCP_PATH_TENANT_ID].type)
        && ngx_mcp_json_without(&m->text, ngx_http_mcp_publish_addresses, pool,
                                &text)
           != NGX_OK)
    {
        return "no memory";
    }

    if (m->method_code == NGX_MCP_METHOD_PROGRESS) {
        *sessions = 1;
        return ngx_http_mcp_publish_progress(p, to, &text);
    }

    return ngx_http_mcp_publish_error(
                      ngx_http_mcp_event_send(to, &text, &event, sessions));
}


static const char *
ngx_http_mcp_publish_progress(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_str_t *text)
{
    ngx_int_t           rc;
    ngx_str_t           token;
    ngx_mcp_message_t  *m;

    m = &p->message;
    token = ngx_mcp_message_member(m, NGX_MCP_PATH_TOKEN);

    if (token.len == 0) {
        return "\"params.progressToken\" is missing";
    }

    if (to->session.data == NULL
        && p->searches++ >= NGX_HTTP_MCP_PUBLISH_SEARCHES)
    {
        return "too much progress without \"session_id\" in one request";
    }

    rc = ngx_http_mcp_event_progress(to, &token, text);

    if (rc == NGX_DECLINED) {
        return "no running call carries this \"progressToken\"";
    }

    if (rc == NGX_BUSY) {
        return "several calls carry this \"progressToken\"; add "
               "\"session_id\"";
    }

    return ngx_http_mcp_publish_error(rc);
}


/* each endpoint says what it makes of it */

static const char *
ngx_http_mcp_publish_invalidate(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_address_t *to, ngx_mcp_invalidate_t *in,
    ngx_uint_t *sessions)
{
    ngx_int_t                   rc;
    ngx_uint_t                  i, n, all, sent, error;
    ngx_http_mcp_loc_conf_t   **eps;
    ngx_http_mcp_main_conf_t   *mmcf;

    mmcf = ngx_http_get_module_main_conf(p->request, ngx_http_mcp_module);

    *sessions = 0;
    sent = 0;
    error = 0;

    if (to->topic.len) {
        rc = ngx_http_mcp_event_updated(to, &to->topic, p->request->pool,
                                        sessions);
        sent = (rc == NGX_OK);
        error = (rc == NGX_ERROR);
    }

    if (in->kind.len == 0) {
        return sent ? NULL : ngx_http_mcp_publish_error(error ? NGX_ERROR
                                                              : NGX_DECLINED);
    }

    all = 0;
    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->endpoints.nelts; i++) {

        if (ngx_http_mcp_publish_skip(p, eps, i)) {
            continue;
        }

        to->endpoint = &eps[i]->name;

        rc = ngx_http_mcp_event_invalidate(to,
                   eps[i]->bridge.invalidate ? eps[i]->bridge.invalidate->elts
                                             : NULL,
                   eps[i]->bridge.invalidate ? eps[i]->bridge.invalidate->nelts
                                             : 0,
                   &eps[i]->bridge.logger, in, p->request->pool, &n);

        all += n;

        if (rc == NGX_ERROR) {
            error = 1;

        } else if (rc != NGX_DECLINED) {
            sent = 1;
        }
    }

    *sessions = ngx_max(*sessions, all);

    if (error) {
        return ngx_http_mcp_publish_error(NGX_ERROR);
    }

    /* without sessions at an endpoint there is nothing to be sent */

    if (to->session.data && !sent) {
        return ngx_http_mcp_publish_error(NGX_DECLINED);
    }

    return NULL;
}


/* one of another zone or name, or that shares its sessions with one before */

static ngx_uint_t
ngx_http_mcp_publish_skip(ngx_http_mcp_publish_t *p,
    ngx_http_mcp_loc_conf_t **eps, ngx_uint_t n)
{
    ngx_uint_t  i;

    if (eps[n]->zone != p->conf->zone) {
        return 1;
    }

    if (p->endpoint
        && (eps[n]->name.len != p->endpoint->len
            || ngx_memcmp(eps[n]->name.data, p->endpoint->data,
                          p->endpoint->len)
               != 0))
    {
        return 1;
    }

    for (i = 0; i < n; i++) {
        if (eps[i]->zone == eps[n]->zone
            && eps[i]->name.len == eps[n]->name.len
            && ngx_memcmp(eps[i]->name.data, eps[n]->name.data,
                          eps[n]->name.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


static const char *
ngx_http_mcp_publish_error(ngx_int_t rc)
{
    switch (rc) {

    case NGX_ERROR:
        return "the event is too large, or the zone is full";

    case NGX_DECLINED:
        return "there is no such session";

    default:
        return NULL;
    }
}
