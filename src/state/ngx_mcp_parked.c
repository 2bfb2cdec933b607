
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_parked.h"


static ngx_mcp_session_sh_t *ngx_mcp_exclusive_locked(ngx_mcp_zone_t *zone,
    ngx_str_t *id);


ngx_int_t
ngx_mcp_exclusive_join(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in,
    ngx_mcp_call_t *call, ngx_mcp_ref_t *session)
{
    ngx_int_t              rc;
    ngx_uint_t             made;
    ngx_mcp_session_sh_t  *s;

    in->exclusive = 1;
    in->timeout = NGX_MCP_EXCLUSIVE_TIMEOUT / NGX_MCP_IDLE_END;

    for (made = 0; /* void */ ; made = 1) {

        ngx_mcp_zone_lock(zone);

        s = ngx_mcp_exclusive_locked(zone, &in->id);
        rc = NGX_DECLINED;

        if (s && (s->ncalls || s->exclusive == NGX_MCP_EXCLUSIVE_ENDING)) {
            rc = NGX_BUSY;

        } else if (s) {

            /* ends requests, and skips events, that the former call has left */

            ngx_mcp_server_requests_end_locked(zone, s);

            ngx_mcp_touch(zone, &s->subscriber.delivered);
            s->subscriber.delivered.own = s->log.last;

            rc = ngx_mcp_call_join_locked(zone, s, call);
            *session = ngx_mcp_ref(zone, s);
        }

        ngx_mcp_zone_unlock(zone);

        if (s || made) {
            return rc;
        }

        rc = ngx_mcp_session_create(zone, in, session);

        if (rc != NGX_OK) {
            return rc;
        }
    }
}


static ngx_mcp_session_sh_t *
ngx_mcp_exclusive_locked(ngx_mcp_zone_t *zone, ngx_str_t *id)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_session_lookup_locked(zone, id);

    return (s && s->exclusive) ? s : NULL;
}


void
ngx_mcp_exclusive_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session)
{
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s) {
        ngx_mcp_exclusive_end_locked(zone, s);
    }

    ngx_mcp_zone_unlock(zone);
}


uint32_t
ngx_mcp_call_park(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call, ngx_msec_t time)
{
    uint32_t            round;
    ngx_mcp_call_sh_t  *c;

    round = 0;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (c) {
        ngx_mcp_touch(zone, c);

        if (c->round == 0) {
            c->round = 1;
        }

        c->task.rec.flags |= NGX_MCP_CALL_STREAMED;
        c->expires = ngx_current_msec + time;
        round = c->round;
    }

    ngx_mcp_zone_unlock(zone);

    return round;
}


ngx_int_t
ngx_mcp_call_unpark(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call, uint32_t round,
    ngx_msec_t time, ngx_mcp_parked_t *parked)
{
    ngx_int_t              rc;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);
    s = c ? ngx_mcp_session_locked(zone, c->task.rec.owner) : NULL;

    if (s && s->exclusive == NGX_MCP_EXCLUSIVE_CLEAN
        && c->task.rec.flags & (NGX_MCP_CALL_RUNNING|NGX_MCP_CALL_ANSWERED))
    {
        rc = NGX_BUSY;

        if (c->round == round) {
            ngx_mcp_touch(zone, c);
            c->round++;
            c->expires = ngx_current_msec + time;

            if (c->task.rec.flags & NGX_MCP_CALL_RUNNING) {
                ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_INPUT);
            }

            parked->session = ngx_mcp_ref(zone, s);
            parked->channel = c->channel;
            ngx_memcpy(parked->id, s->id, NGX_MCP_UUID_LEN);

            rc = NGX_OK;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_call_wake(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call, ngx_uint_t why)
{
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (c && c->task.rec.flags & NGX_MCP_CALL_RUNNING) {
        ngx_mcp_wake_locked(zone, &c->task, why);
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_msec_t
ngx_mcp_call_park_time_left(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_msec_t time)
{
    ngx_msec_t          left;
    ngx_mcp_call_sh_t  *c;

    left = 0;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (c && c->active_stream) {
        left = time;

    } else if (c && c->expires > ngx_current_msec) {
        left = (ngx_msec_t) (c->expires - ngx_current_msec);
    }

    ngx_mcp_zone_unlock(zone);

    return left;
}


ngx_uint_t
ngx_mcp_call_full(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call)
{
    ngx_uint_t          full;
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);
    full = (c && c->log.last - c->delivered >= NGX_MCP_CHANNEL_WAITING);

    if (full) {
        ngx_mcp_touch(zone, &c->task.rec);
        c->task.rec.flags |= NGX_MCP_CALL_FULL;
    }

    ngx_mcp_zone_unlock(zone);

    return full;
}


ngx_uint_t
ngx_mcp_call_lost(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call)
{
    ngx_uint_t          lost;
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);
    lost = c ? c->lost : NGX_MCP_CALL_WHOLE;

    ngx_mcp_zone_unlock(zone);

    return lost;
}
