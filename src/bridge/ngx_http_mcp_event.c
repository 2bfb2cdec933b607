
#include "ngx_http_mcp_event.h"
#include "ngx_http_mcp_lists.h"
#include "ngx_http_mcp_topic.h"


static void ngx_http_mcp_event_address(ngx_http_mcp_address_t *to,
    ngx_str_t *text, ngx_mcp_event_t *event);
static ngx_int_t ngx_http_mcp_event_log(ngx_http_mcp_address_t *to,
    ngx_mcp_event_t *event, ngx_uint_t *sessions);
static ngx_int_t ngx_http_mcp_event_coalesce(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_rule_t *rule,
    ngx_mcp_invalidate_t *in, ngx_mcp_notification_t *out,
    ngx_mcp_event_t *event, ngx_pool_t *pool, ngx_uint_t *sessions);


ngx_int_t
ngx_http_mcp_event_send(ngx_http_mcp_address_t *to, ngx_str_t *text,
    ngx_mcp_event_t *event, ngx_uint_t *sessions)
{
    ngx_http_mcp_event_address(to, text, event);

    return ngx_http_mcp_event_log(to, event, sessions);
}


static ngx_int_t
ngx_http_mcp_event_log(ngx_http_mcp_address_t *to, ngx_mcp_event_t *event,
    ngx_uint_t *sessions)
{
    ngx_int_t  rc;

    *sessions = 0;

    if (to->session.data == NULL) {
        rc = ngx_mcp_log_groups(to->zone, to->endpoint, to->tenant, event,
                                sessions);

    } else {
        rc = ngx_mcp_log_session_id(to->zone, &to->session, to->endpoint,
                                    to->tenant, event);

        if (rc == NGX_OK) {
            *sessions = 1;
        }
    }

    to->large |= event->large;

    return (rc == NGX_DONE) ? NGX_OK : rc;
}


ngx_int_t
ngx_http_mcp_event_progress(ngx_http_mcp_address_t *to, ngx_str_t *token,
    ngx_str_t *text)
{
    ngx_int_t        rc;
    ngx_mcp_event_t  event;

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    ngx_http_mcp_event_address(to, text, &event);

    rc = ngx_mcp_log_token(to->zone, token,
                           to->session.data ? &to->session : NULL,
                           to->endpoint, to->tenant, &event);

    to->large |= event.large;

    return rc;
}


static void
ngx_http_mcp_event_address(ngx_http_mcp_address_t *to, ngx_str_t *text,
    ngx_mcp_event_t *event)
{
    event->parts = text;
    event->nparts = 1;
    event->uri[1] = to->uri;
    event->uri[2] = to->topic;
    event->identity = to->identity;
    event->take = to->take;
    event->once = to->once;
    event->answered = to->answered;

    if (to->once) {
        to->once->rank++;
    }

    if (event->uri[0].len) {

        /* somebody may wait for it */

        ngx_http_mcp_topic_updated(to, &event->uri[0], text);
    }
}


ngx_int_t
ngx_http_mcp_event_updated(ngx_http_mcp_address_t *to, ngx_str_t *uri,
    ngx_pool_t *pool, ngx_uint_t *sessions)
{
    ngx_mcp_rule_t          rule;
    ngx_mcp_event_t         event;
    ngx_mcp_invalidate_t    none;
    ngx_mcp_notification_t  out;

    *sessions = 0;

    ngx_memzero(&rule, sizeof(ngx_mcp_rule_t));
    ngx_memzero(&none, sizeof(ngx_mcp_invalidate_t));
    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    rule.action = NGX_MCP_RULE_RESOURCE;
    rule.value = *uri;

    if (ngx_mcp_rule_apply(&rule, &none, NULL, pool, &out) != NGX_OK) {
        return NGX_ERROR;
    }

    event.uri[0] = out.uri;

    return ngx_http_mcp_event_send(to, &out.text, &event, sessions);
}


ngx_int_t
ngx_http_mcp_event_invalidate(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_invalidate_t *in, ngx_pool_t *pool,
    ngx_uint_t *sessions)
{
    ngx_int_t                rc, result;
    ngx_uint_t               n, nrules;
    ngx_mcp_rule_t          *rule, *rules;
    ngx_mcp_event_t          event;
    ngx_mcp_notification_t   out;

    *sessions = 0;
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
        in->joining = (bridge->coalesce != 0);

        rc = ngx_mcp_rule_apply(rule, in, &bridge->logger, pool, &out);

        if (rc == NGX_DECLINED) {
            continue;
        }

        if (rc == NGX_OK) {
            ngx_memzero(&event, sizeof(ngx_mcp_event_t));

            event.level = out.level;
            event.uri[0] = out.uri;

            if (rule->action == NGX_MCP_RULE_LIST_CHANGED) {
                n = ngx_mcp_method_parse(&rule->value);
                event.flags = ngx_http_mcp_lists_signal(to, bridge,
                                                 ngx_http_mcp_lists_meant(n),
                                                 &out.text, pool);
            }

            ngx_http_mcp_event_address(to, &out.text, &event);

            rc = in->joining
                 ? ngx_http_mcp_event_coalesce(to, bridge, rule, in, &out,
                                               &event, pool, &n)
                 : ngx_http_mcp_event_log(to, &event, &n);

            *sessions = ngx_max(*sessions, n);
        }

        if (rc == NGX_ERROR) {
            result = NGX_ERROR;

        } else if (result != NGX_ERROR) {
            result = rc;
        }
    }

    return result;
}


/*
 * The first of a window goes at once, others wait for its end.  Whom it
 * addresses is known now in either case.
 */

static ngx_int_t
ngx_http_mcp_event_coalesce(ngx_http_mcp_address_t *to,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_rule_t *rule,
    ngx_mcp_invalidate_t *in, ngx_mcp_notification_t *out,
    ngx_mcp_event_t *event, ngx_pool_t *pool, ngx_uint_t *sessions)
{
    u_char             *p;
    ngx_int_t           rc;
    ngx_str_t           parts[NGX_MCP_PENDING_PARTS];
    ngx_uint_t          i;
    ngx_mcp_pending_t   pending;
    u_char              buf[NGX_MCP_PENDING_BUF];

    ngx_memzero(&pending, sizeof(ngx_mcp_pending_t));

    pending.endpoint = to->endpoint;
    pending.tenant = to->tenant;
    pending.session = to->session;
    pending.time = bridge->coalesce;
    pending.event = event;

    for (i = 0; i < NGX_MCP_PENDING_COUNTS; i++) {
        pending.counts[i] = out->counts[i];
    }

    pending.count = 1;
    pending.counted = ngx_mcp_invalidate_count(in, &pending.count);

    pending.what.len = in->kind.len + rule->value.len + rule->level.len + 3;

    p = ngx_pnalloc(pool, pending.what.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    pending.what.data = p;

    p = ngx_cpymem(p, in->kind.data, in->kind.len);
    *p++ = '\0';
    *p++ = (u_char) ('0' + rule->action);
    p = ngx_cpymem(p, rule->value.data, rule->value.len);
    *p++ = '\0';
    ngx_memcpy(p, rule->level.data, rule->level.len);

    event->count_only = 1;
    rc = ngx_http_mcp_event_log(to, event, sessions);
    event->count_only = 0;

    if (rc != NGX_OK || *sessions == 0) {
        return rc;
    }

    rc = ngx_mcp_pending_join(to->zone, &pending);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    event->nparts = ngx_mcp_pending_parts(&out->text, pending.counts,
                                          (pending.counted
                                           || pending.count > 1)
                                          ? pending.count : 0,
                                          buf, parts);
    event->parts = parts;

    return ngx_http_mcp_event_log(to, event, sessions);
}
