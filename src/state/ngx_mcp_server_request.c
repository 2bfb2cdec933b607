
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


#define ngx_mcp_server_request_head(rq)                                       \
    (NGX_MCP_SERVER_REQUEST_ID_LEN + (rq)->upstream_len)


static ngx_int_t ngx_mcp_server_request_copy_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_server_request_sh_t *rq, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request);
static ngx_mcp_server_request_sh_t *ngx_mcp_server_request_locked(
    ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s, ngx_str_t *id);
static void ngx_mcp_server_request_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_server_request_sh_t *rq);


ngx_int_t
ngx_mcp_server_request_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_mcp_server_request_t *request)
{
    ngx_int_t                     rc;
    ngx_str_t                     parts[4];
    ngx_mcp_stage_t               stage;
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_extension_sh_t       *e;
    ngx_mcp_server_request_sh_t  *rq;

    if (request->id.len > NGX_MCP_ID_MAX
        || request->token.len > NGX_MCP_ID_MAX)
    {
        return NGX_ERROR;
    }

    parts[0] = *id;
    parts[1] = request->upstream;
    parts[2] = request->id;
    parts[3] = request->token;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SERVER_REQUEST, parts, 4);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL || rc != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return s ? NGX_ERROR : NGX_DECLINED;
    }

    e = ngx_mcp_session_extension(zone, s);

    if (e->nserver_requests >= NGX_MCP_SERVER_REQUESTS_MAX) {

        /* drops the oldest request, which was never answered */

        ngx_mcp_server_request_end_locked(zone, s,
                               ngx_mcp_block(zone, e->server_requests.head));
    }

    rq = ngx_mcp_make_locked(zone, &stage);
    rq->rec.owner = session;
    rq->rec.hash = (uint32_t) ngx_mcp_hash(zone, id, NULL);
    rq->upstream_len = (uint32_t) request->upstream.len;
    rq->id_len = (uint32_t) request->id.len;
    rq->serial = (uint32_t) request->serial;
    rq->method = (uint32_t) request->method;
    rq->call = request->call;

    ngx_mcp_commit_locked(zone, rq, NGX_MCP_SERVER_REQUEST);

    ngx_mcp_list_append(zone, &e->server_requests, ngx_mcp_number(zone, rq),
                        NGX_MCP_LINKS);

    ngx_mcp_touch(zone, &e->nserver_requests);
    e->nserver_requests++;

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_server_request_find(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_uint_t answered, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request)
{
    ngx_int_t                     rc;
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_server_request_sh_t  *rq;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    rq = s ? ngx_mcp_server_request_locked(zone, s, id) : NULL;

    if (rq == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    request->call = rq->call;

    if (rq->call.block) {
        rc = rq->answered ? NGX_DECLINED : NGX_OK;
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    rc = ngx_mcp_server_request_copy_locked(zone, rq, pool, request);

    if (answered) {
        ngx_mcp_server_request_end_locked(zone, s, rq);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_mcp_server_request_next(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_pool_t *pool, ngx_mcp_server_request_t *request)
{
    ngx_int_t                     rc;
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_extension_sh_t       *e;
    ngx_mcp_server_request_sh_t  *rq;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    e = s ? ngx_mcp_session_extension(zone, s) : NULL;

    if (e && e->server_requests.head) {
        rq = ngx_mcp_block(zone, e->server_requests.head);

        rc = ngx_mcp_server_request_copy_locked(zone, rq, pool, request);

        ngx_mcp_server_request_end_locked(zone, s, rq);
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_int_t
ngx_mcp_server_request_copy_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_server_request_sh_t *rq, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request)
{
    size_t  head, tail;

    head = ngx_mcp_server_request_head(rq);
    tail = head + rq->id_len;

    request->serial = rq->serial;
    request->method = rq->method;
    request->call = rq->call;

    if (ngx_mcp_text_copy(zone, rq, NGX_MCP_SERVER_REQUEST_ID_LEN,
                          rq->upstream_len, pool, &request->upstream)
           != NGX_OK
        || ngx_mcp_text_copy(zone, rq, head, rq->id_len, pool, &request->id)
           != NGX_OK
        || ngx_mcp_text_copy(zone, rq, tail, rq->rec.len - tail, pool,
                             &request->token)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_server_request_answer(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_str_t *response)
{
    ngx_int_t                     rc;
    ngx_str_t                     parts[2];
    ngx_mcp_stage_t               stage;
    ngx_mcp_call_sh_t            *c;
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_server_request_sh_t  *rq;

    parts[0] = *id;
    parts[1] = *response;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SERVER_REQUEST, parts, 2);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
        return NGX_BUSY;
    }

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);
    rq = s ? ngx_mcp_server_request_locked(zone, s, id) : NULL;
    c = rq ? ngx_mcp_record(zone, rq->call, NGX_MCP_CALL) : NULL;

    if (c == NULL || rq->answered
        || !(c->task.rec.flags & NGX_MCP_CALL_RUNNING))
    {
        rc = NGX_DECLINED;

    } else if (rc != NGX_OK) {
        rc = NGX_BUSY;
    }

    if (rc != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    ngx_mcp_text_replace_locked(zone, rq, &stage);

    ngx_mcp_touch(zone, rq);
    rq->upstream_len = 0;
    rq->id_len = 0;
    rq->answered = 1;

    ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_INPUT);

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_server_request_take(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id, ngx_pool_t *pool, ngx_str_t *response)
{
    uint32_t                      recoveries;
    ngx_int_t                     rc;
    ngx_mcp_ref_t                 ref;
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_server_request_sh_t  *rq;

    do {
        ngx_mcp_zone_lock(zone);

        recoveries = zone->sh->recoveries;

        s = ngx_mcp_session_locked(zone, session);
        rq = s ? ngx_mcp_server_request_locked(zone, s, id) : NULL;

        if (rq == NULL || !rq->answered) {
            rc = rq ? NGX_AGAIN : NGX_DECLINED;
            ngx_mcp_zone_unlock(zone);
            return rc;
        }

        ref = ngx_mcp_ref(zone, rq);
        response->len = rq->rec.len - NGX_MCP_SERVER_REQUEST_ID_LEN;

        ngx_mcp_zone_unlock(zone);

        response->data = ngx_pnalloc(pool, response->len);
        if (response->data == NULL) {
            response->len = 0;
            return NGX_ERROR;
        }

        /*
         * A long response is copied outside of the lock.  It may be dropped
         * and overwritten while it is copied, and a recovery may even restore
         * it afterwards: both are checked.
         */

        ngx_mcp_text_read(zone, ngx_mcp_block(zone, ref.block),
                          NGX_MCP_SERVER_REQUEST_ID_LEN, response->data,
                          response->len);

        ngx_mcp_zone_lock(zone);

        rc = NGX_AGAIN;

        if (zone->sh->recoveries == recoveries) {
            s = ngx_mcp_session_locked(zone, session);
            rq = ngx_mcp_record(zone, ref, NGX_MCP_SERVER_REQUEST);
            rc = NGX_DECLINED;

            if (s && rq) {
                ngx_mcp_server_request_end_locked(zone, s, rq);
                rc = NGX_OK;
            }
        }

        ngx_mcp_zone_unlock(zone);

    } while (rc == NGX_AGAIN);

    return rc;
}


ngx_int_t
ngx_mcp_server_request_close(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *id)
{
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_server_request_sh_t  *rq;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    rq = s ? ngx_mcp_server_request_locked(zone, s, id) : NULL;

    if (rq) {
        ngx_mcp_server_request_end_locked(zone, s, rq);
    }

    ngx_mcp_zone_unlock(zone);

    return rq ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_server_request_cancel(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_server_request_t *request, u_char *buf, ngx_str_t *id)
{
    uint32_t                      n;
    ngx_mcp_session_sh_t         *s;
    ngx_mcp_extension_sh_t       *e;
    ngx_mcp_server_request_sh_t  *rq;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    e = s ? ngx_mcp_session_extension(zone, s) : NULL;

    for (n = e ? e->server_requests.head : 0; n; n = rq->rec.links.next) {
        rq = ngx_mcp_block(zone, n);

        if (rq->serial != request->serial
            || !ngx_mcp_text_equal(zone, rq, NGX_MCP_SERVER_REQUEST_ID_LEN,
                                   rq->upstream_len, &request->upstream)
            || !ngx_mcp_text_equal(zone, rq, ngx_mcp_server_request_head(rq),
                                   rq->id_len, &request->id))
        {
            continue;
        }

        id->data = buf;
        id->len = NGX_MCP_SERVER_REQUEST_ID_LEN;

        ngx_mcp_text_read(zone, rq, 0, buf, NGX_MCP_SERVER_REQUEST_ID_LEN);
        ngx_mcp_server_request_end_locked(zone, s, rq);

        break;
    }

    ngx_mcp_zone_unlock(zone);

    return n ? NGX_OK : NGX_DECLINED;
}


static ngx_mcp_server_request_sh_t *
ngx_mcp_server_request_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_str_t *id)
{
    uint32_t                      n, hash;
    ngx_mcp_extension_sh_t       *e;
    ngx_mcp_server_request_sh_t  *rq;

    e = ngx_mcp_session_extension(zone, s);
    hash = (uint32_t) ngx_mcp_hash(zone, id, NULL);

    for (n = e->server_requests.head; n; n = rq->rec.links.next) {
        rq = ngx_mcp_block(zone, n);

        if (rq->rec.hash == hash
            && ngx_mcp_text_equal(zone, rq, 0, NGX_MCP_SERVER_REQUEST_ID_LEN,
                                  id))
        {
            return rq;
        }
    }

    return NULL;
}


static void
ngx_mcp_server_request_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_server_request_sh_t *rq)
{
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    ngx_mcp_list_remove(zone, &e->server_requests, ngx_mcp_number(zone, rq),
                        NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, rq);

    ngx_mcp_touch(zone, &e->nserver_requests);
    e->nserver_requests--;
}


void
ngx_mcp_server_requests_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s)
{
    uint32_t                 n;
    ngx_mcp_extension_sh_t  *e;

    e = ngx_mcp_session_extension(zone, s);

    while ((n = e->server_requests.head) != 0) {
        ngx_mcp_server_request_end_locked(zone, s, ngx_mcp_block(zone, n));
        ngx_mcp_step_locked(zone);
    }
}
