
#include "ngx_mcp_state_sh.h"


/* uses of a topic: it is kept for subscribers and for calls that wait */


ngx_int_t
ngx_mcp_topic_subscribe(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_topic_t *topic)
{
    uint64_t                    after;
    ngx_int_t                   rc;
    ngx_mcp_ref_t               ref;
    ngx_mcp_topic_sh_t         *t;
    ngx_mcp_subscription_sh_t  *sub;

    after = 0;

    rc = ngx_mcp_topic_watch(zone, session, topic, &ref, &after);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_mcp_zone_lock(zone);

    t = ngx_mcp_record(zone, ref, NGX_MCP_TOPIC);
    sub = t ? ngx_mcp_subscription_find_locked(zone, session, &topic->uri)
            : NULL;

    if (sub && ngx_mcp_record(zone, sub->topic, NGX_MCP_TOPIC) == NULL) {

        if (ngx_mcp_session_locked(zone, t->charged)) {
            ngx_mcp_touch(zone, sub);
            ngx_mcp_touch(zone, t);
            sub->topic = ref;
            t->subscribers++;

        } else {
            rc = NGX_BUSY;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_topic_unsubscribe_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_subscription_sh_t *sub)
{
    ngx_mcp_topic_sh_t  *t;

    t = ngx_mcp_record(zone, sub->topic, NGX_MCP_TOPIC);

    if (t) {
        ngx_mcp_touch(zone, t);
        t->subscribers--;
    }
}


void
ngx_mcp_topic_unwatch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic)
{
    ngx_mcp_topic_sh_t  *t;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return;
    }

    ngx_mcp_zone_lock(zone);

    t = ngx_mcp_record(zone, topic, NGX_MCP_TOPIC);

    if (t) {
        ngx_mcp_unwatch_locked(zone, t->watch);
    }

    ngx_mcp_zone_unlock(zone);
}
