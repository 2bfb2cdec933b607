
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_event.h"
#include "ngx_http_mcp_topic.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_splice.h"


static ngx_int_t ngx_http_mcp_event_add_waiting(ngx_http_mcp_address_t *to,
    ngx_str_t *uri, ngx_str_t *text);
static ngx_mcp_delivery_t *ngx_http_mcp_event_add_topic(
    ngx_http_mcp_bridge_t *bridge, ngx_http_mcp_address_t *to, ngx_str_t *uri,
    ngx_pool_t *pool, ngx_str_t *text);
static ngx_int_t ngx_http_mcp_event_kind(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_invalidate_t *in, ngx_pool_t *pool);
static ngx_int_t ngx_http_mcp_event_topic_of_kind(
    ngx_http_mcp_bridge_t *bridge, ngx_http_mcp_address_t *to,
    ngx_pool_t *pool, ngx_mcp_invalidate_t *in, ngx_str_t *uri);
static ngx_int_t ngx_http_mcp_event_coalesce(ngx_mcp_delivery_t *d,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_rule_t *rule,
    ngx_mcp_invalidate_t *in, ngx_mcp_notification_t *out, ngx_pool_t *pool);


ngx_mcp_delivery_t *
ngx_http_mcp_event_add_delivery(ngx_http_mcp_address_t *to)
{
    ngx_mcp_delivery_t  *d;

    d = ngx_array_push(&to->deliveries);

    if (d) {
        ngx_memzero(d, sizeof(ngx_mcp_delivery_t));

        d->endpoint = to->endpoint;
        d->tenant = to->tenant;
        d->session = to->session;
        d->event.identity = to->identity;
    }

    return d;
}


ngx_mcp_delivery_t *
ngx_http_mcp_event_add(ngx_http_mcp_address_t *to, ngx_str_t *text,
    ngx_mcp_event_t *event)
{
    ngx_mcp_delivery_t  *d;

    /* calls may wait for an update of the resource */

    if (event->uri[0].len
        && ngx_http_mcp_event_add_waiting(to, &event->uri[0], text) != NGX_OK)
    {
        return NULL;
    }

    d = ngx_http_mcp_event_add_delivery(to);
    if (d == NULL) {
        return NULL;
    }

    d->text = *text;
    d->event = *event;
    d->event.uri[1] = to->uri;
    d->event.uri[2] = to->topic;
    d->event.identity = to->identity;
    d->addressed = to->addressed;

    to->addressed = 0;

    return d;
}


/* adds a delivery for calls that wait for a resource that is no topic */

static ngx_int_t
ngx_http_mcp_event_add_waiting(ngx_http_mcp_address_t *to, ngx_str_t *uri,
    ngx_str_t *text)
{
    ngx_mcp_delivery_t  *d;

    if (uri->len > NGX_MCP_TOPIC_URI_MAX) {
        return NGX_OK;
    }

    d = ngx_http_mcp_event_add_delivery(to);
    if (d == NULL) {
        return NGX_ERROR;
    }

    d->text = *text;
    d->topic.uri = *uri;
    d->topic.other = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_event_add_updated(ngx_http_mcp_address_t *to, ngx_str_t *uri,
    ngx_pool_t *pool)
{
    ngx_mcp_rule_t          rule;
    ngx_mcp_event_t         event;
    ngx_mcp_invalidate_t    none;
    ngx_mcp_notification_t  out;

    ngx_memzero(&rule, sizeof(ngx_mcp_rule_t));
    ngx_mcp_invalidate_init(&none);
    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    rule.action = NGX_MCP_RULE_RESOURCE;
    rule.value = *uri;

    if (ngx_mcp_rule_apply(&rule, &none, NULL, pool, &out) != NGX_OK) {
        return NGX_ERROR;
    }

    event.uri[0] = out.uri;

    return ngx_http_mcp_event_add(to, &out.text, &event) ? NGX_OK
                                                          : NGX_ERROR;
}


ngx_int_t
ngx_http_mcp_event_add_to_topic(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_address_t *to, ngx_pool_t *pool, ngx_str_t *text)
{
    ngx_str_t           *tenant;
    ngx_mcp_delivery_t  *d;

    d = ngx_http_mcp_event_add_topic(bridge, to, &to->topic, pool, text);

    if (d == NULL) {
        return NGX_ERROR;
    }

    tenant = to->tenant ? to->tenant : bridge->tenant;

    if (bridge->topics & NGX_HTTP_MCP_TOPICS_SESSIONLESS
        && to->session.data == NULL && tenant
        && (bridge->tenant == NULL || ngx_mcp_equal(bridge->tenant, tenant)))
    {
        ngx_mcp_topic_open(bridge->zone, &bridge->endpoint, tenant, &d->topic);
    }

    return NGX_OK;
}


static ngx_mcp_delivery_t *
ngx_http_mcp_event_add_topic(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_address_t *to, ngx_str_t *uri, ngx_pool_t *pool,
    ngx_str_t *text)
{
    ngx_mcp_delivery_t  *d;
    static ngx_str_t     none = ngx_string("");

    d = ngx_http_mcp_event_add_delivery(to);
    if (d == NULL) {
        return NULL;
    }

    d->text = ngx_mcp_join(pool, &none, text, ngx_mcp_event_private);

    if (d->text.data == NULL) {
        return NULL;
    }

    d->endpoint = &bridge->endpoint;
    d->event.uri[1] = to->uri;
    d->topic.uri = *uri;
    d->topic.limit = bridge->topic_limit;
    d->topic.unannounced = !(bridge->topics & NGX_HTTP_MCP_TOPICS_OFFERED);

    return d;
}


ngx_int_t
ngx_http_mcp_event_invalidate(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_invalidate_t *in, ngx_pool_t *pool)
{
    ngx_int_t                rc, result;
    ngx_uint_t               method, nrules;
    ngx_mcp_rule_t          *rule, *rules;
    ngx_mcp_event_t          event;
    ngx_mcp_delivery_t      *d;
    ngx_mcp_notification_t   out;

    result = NGX_DONE;

    rules = ngx_mcp_default_rules;
    nrules = NGX_MCP_DEFAULT_RULES;

    if (bridge->invalidate) {
        rules = bridge->invalidate->elts;
        nrules = bridge->invalidate->nelts;
    }

    for (rule = ngx_mcp_rule_next(rules, nrules, &in->kind, NULL);
         rule;
         rule = ngx_mcp_rule_next(rules, nrules, &in->kind, rule))
    {
        in->coalescing = (bridge->coalesce != 0);

        rc = ngx_mcp_rule_apply(rule, in, &bridge->logger_json, pool, &out);

        if (rc == NGX_DECLINED || rc == NGX_DONE) {
            continue;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_memzero(&event, sizeof(ngx_mcp_event_t));

        event.level = out.level;
        event.uri[0] = out.uri;

        if (rule->action == NGX_MCP_RULE_LIST_CHANGED) {
            method = ngx_mcp_method_parse(&rule->value);
            event.flags = ngx_http_mcp_event_list_changed(to, bridge, method,
                                                          &out.text, pool);
        }

        d = ngx_http_mcp_event_add(to, &out.text, &event);

        if (d == NULL
            || (in->coalescing
                && ngx_http_mcp_event_coalesce(d, bridge, rule, in, &out, pool)
                   != NGX_OK))
        {
            return NGX_ERROR;
        }

        result = NGX_OK;
    }

    if (bridge->invalidate == NULL && bridge->topics && to->topic.len == 0
        && ngx_http_mcp_event_kind(to, bridge, in, pool) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return result;
}


/*
 * If the endpoint has no mcp_invalidate, an event also updates the topic with
 * the name of its kind, if a client has used that topic before.
 */

static ngx_int_t
ngx_http_mcp_event_kind(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_invalidate_t *in, ngx_pool_t *pool)
{
    ngx_int_t                rc;
    ngx_mcp_rule_t           rule;
    ngx_mcp_delivery_t      *d;
    ngx_mcp_notification_t   out;

    ngx_memzero(&rule, sizeof(ngx_mcp_rule_t));
    ngx_memzero(&out, sizeof(ngx_mcp_notification_t));

    rule.action = NGX_MCP_RULE_RESOURCE;

    rc = ngx_http_mcp_event_topic_of_kind(bridge, to, pool, in, &rule.value);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_mcp_event_add_updated(to, &rule.value, pool) != NGX_OK) {
        return NGX_ERROR;
    }

    if (bridge->coalesce == 0) {
        return NGX_OK;
    }

    d = to->deliveries.elts;
    d += to->deliveries.nelts - 1;

    return ngx_http_mcp_event_coalesce(d, bridge, &rule, in, &out, pool);
}


/* adds a delivery to this topic, and sets *uri; NGX_DECLINED: no such topic */

static ngx_int_t
ngx_http_mcp_event_topic_of_kind(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_address_t *to, ngx_pool_t *pool, ngx_mcp_invalidate_t *in,
    ngx_str_t *uri)
{
    ngx_int_t            rc;
    ngx_mcp_delivery_t  *d;

    if (!ngx_mcp_topics_any(bridge->zone)) {
        return NGX_DECLINED;
    }

    rc = ngx_http_mcp_topic_uri(&in->kind, pool, uri);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_mcp_topic_exists(bridge->zone, &bridge->endpoint, to->tenant, uri)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    d = ngx_http_mcp_event_add_topic(bridge, to, uri, pool, &in->text);

    if (d == NULL) {
        return NGX_ERROR;
    }

    d->topic.existing = 1;

    return NGX_OK;
}


ngx_uint_t
ngx_http_mcp_event_list_changed(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_uint_t method, ngx_str_t *text,
    ngx_pool_t *pool)
{
    ngx_uint_t                flags;
    ngx_mcp_ref_t             all;
    ngx_mcp_audience_t       *a;
    ngx_mcp_delivery_t       *d;
    ngx_mcp_list_change_t    *change;
    ngx_mcp_audience_walk_t   walk;

    change = ngx_mcp_list_change(method);

    if (change == NULL) {
        return 0;
    }

    flags = NGX_MCP_EVENT_CHANGED(change->offered);

    if (bridge->router.n == 0 || to->session.data || to->identity.data
        || to->uri.len || to->topic.len)
    {
        return flags;
    }

    if (bridge->lists_passing) {
        ngx_mcp_list_forget(bridge->zone, &bridge->endpoint, to->tenant, NULL,
                            change->kinds);
    }

    if (bridge->lists != NGX_HTTP_MCP_LIST_CACHE_ON) {
        return flags;
    }

    ngx_memzero(&all, sizeof(ngx_mcp_ref_t));
    ngx_memzero(&walk, sizeof(ngx_mcp_audience_walk_t));

    walk.endpoint = &bridge->endpoint;
    walk.tenant = to->tenant;

    for ( ;; ) {
        a = ngx_palloc(pool, sizeof(ngx_mcp_audience_t));

        if (a == NULL
            || ngx_mcp_audience_next(bridge->zone, &walk, pool, a) != NGX_OK)
        {
            break;
        }

        if (ngx_mcp_list_signal(bridge->zone, walk.ref, all, change->kinds,
                                1))
        {
            continue;
        }

        /* the module has no old list with which it could compare a new one */

        d = ngx_http_mcp_event_add_delivery(to);
        if (d == NULL) {
            break;
        }

        d->endpoint = &a->endpoint;
        d->tenant = &a->tenant;
        d->text = *text;
        d->event.list_key = a->key;
        d->event.flags = NGX_MCP_EVENT_LISTED|flags;
    }

    return NGX_MCP_EVENT_UNLISTED|flags;
}


/*
 * Prepares the delivery to open or join a coalescing window: the first event of
 * a window is sent at once, later events are joined and sent at its end.
 */

static ngx_int_t
ngx_http_mcp_event_coalesce(ngx_mcp_delivery_t *d,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_rule_t *rule,
    ngx_mcp_invalidate_t *in, ngx_mcp_notification_t *out, ngx_pool_t *pool)
{
    u_char      *p;
    ngx_uint_t   i;

    d->time = bridge->coalesce;
    d->count = 1;
    d->counted = (ngx_mcp_invalidate_count(in, &d->count) != 0);

    for (i = 0; i < NGX_MCP_SEND_COUNTS; i++) {
        d->counts[i] = out->counts[i];
    }

    d->coalesce_key.len = in->kind.len + rule->value.len + rule->level.len + 3;

    p = ngx_pnalloc(pool, d->coalesce_key.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    d->coalesce_key.data = p;

    p = ngx_cpymem(p, in->kind.data, in->kind.len);
    *p++ = '\0';
    *p++ = (u_char) ('0' + rule->action);
    p = ngx_cpymem(p, rule->value.data, rule->value.len);
    *p++ = '\0';
    ngx_memcpy(p, rule->level.data, rule->level.len);

    return NGX_OK;
}
