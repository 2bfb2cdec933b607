
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


#define NGX_MCP_CALL_LOST                                                     \
    "\"error\":{\"code\":-32603,"                                             \
    "\"message\":\"worker died, the call may have run\","                     \
    "\"data\":{\"reason\":\"worker died, the call may have run\"}}}"


/* blocks examined under one hold of the lock */
#define NGX_MCP_TOKEN_BATCH  2048


typedef struct {
    ngx_str_t              *token;
    ngx_mcp_token_scope_t  *scope;
    uint32_t                hash;
    uint64_t                identity;
    uint32_t                found;
    ngx_mcp_ref_t           call;
} ngx_mcp_token_t;


static ngx_mcp_call_sh_t *ngx_mcp_call_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_str_t *id, uint32_t hash);
static void ngx_mcp_call_finish_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_call_sh_t *c);
static void ngx_mcp_token_session(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t);
static void ngx_mcp_token_all(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t);
static void ngx_mcp_token_test_locked(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t,
    ngx_mcp_call_sh_t *c);


ngx_int_t
ngx_mcp_call_open(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, ngx_str_t *id,
    ngx_str_t *token, ngx_uint_t limit, ngx_mcp_call_t *call)
{
    uint32_t               hash;
    ngx_int_t              rc;
    ngx_str_t              parts[2];
    ngx_mcp_stage_t        stage;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    parts[0] = *id;
    parts[1] = *token;

    if (token->len > NGX_MCP_TOKEN_MAX) {
        parts[1].len = 0;
    }

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_CALL, parts, 2);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = session;

    if (ngx_mcp_stage(zone, &stage) != NGX_OK) {
        return NGX_DECLINED;
    }

    hash = ngx_mcp_call_hash(id);

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL) {
        rc = NGX_DECLINED;

    } else if (s->ncalls >= limit) {
        rc = NGX_BUSY;

    } else if (rc == NGX_OK
               && ngx_mcp_call_find_locked(zone, s, id, hash))
    {
        rc = NGX_MCP_EXISTS;
    }

    if (rc != NGX_OK) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    c = ngx_mcp_make_locked(zone, &stage);

    c->task.rec.owner = session;
    c->task.rec.hash = hash;
    c->task.rec.flags = NGX_MCP_CALL_RUNNING;
    c->task.local = call->local;
    c->id_len = (uint32_t) id->len;
    c->upstream = call->upstream;

    if (parts[1].len) {
        c->token = ngx_mcp_call_hash(token);
    }

    ngx_mcp_touch_range(zone, s, ncalls, channel);

    if (++s->channel == 0) {
        s->channel = 1;
    }

    c->channel = s->channel;

    ngx_mcp_commit_locked(zone, c, NGX_MCP_CALL);

    ngx_mcp_list_append(zone, &s->calls, ngx_mcp_number(zone, c),
                        NGX_MCP_LINKS);
    s->ncalls++;

    ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_CALLS_RUNNING, 1);

    call->ref = ngx_mcp_ref(zone, c);
    call->channel = c->channel;

    ngx_mcp_zone_unlock(zone);

    ngx_mcp_count(zone, NGX_MCP_COUNTER_CALLS_LEGACY, 1);

    ngx_log_debug3(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp call %V opened, line %uD, %uD", id, call->channel,
                   call->ref.block);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_call_open_sessionless(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *key, ngx_uint_t limit, ngx_mcp_call_t *call)
{
    uint32_t             hash;
    ngx_int_t            rc;
    ngx_uint_t           n;
    ngx_mcp_stage_t      stage;
    ngx_mcp_call_sh_t   *c;
    ngx_mcp_limit_sh_t  *l;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_CALL, NULL, 0);

    n = stage.blocks + ngx_mcp_text_blocks(zone, NGX_MCP_LIMIT,
                                           endpoint->len + key->len);
    hash = ngx_mcp_limit_hash(zone, endpoint, key);

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_reserve_locked(zone, stage.payer, NGX_MCP_ROOM_CALL, n);
    l = ngx_mcp_limit_find_locked(zone, endpoint, key, hash);

    if (l && l->count >= limit) {
        rc = NGX_BUSY;

    } else if (rc != NGX_OK) {
        rc = NGX_DECLINED;
    }

    if (rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    if (l == NULL) {
        l = ngx_mcp_limit_get_locked(zone, endpoint, key, hash);
    }

    ngx_mcp_touch(zone, l);
    l->count++;

    c = ngx_mcp_make_locked(zone, &stage);

    c->task.rec.flags = NGX_MCP_CALL_RUNNING;
    c->task.local = call->local;
    c->limit = ngx_mcp_number(zone, l);

    ngx_mcp_commit_locked(zone, c, NGX_MCP_CALL);

    ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_CALLS_RUNNING, 1);

    call->ref = ngx_mcp_ref(zone, c);
    call->channel = NGX_MCP_GENERAL_CHANNEL;
    call->nrunning = l->count;

    ngx_mcp_zone_unlock(zone);

    ngx_mcp_count(zone, NGX_MCP_COUNTER_CALLS_MODERN, 1);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_call_join_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_t *call)
{
    ngx_mcp_call_sh_t  *c;

    c = ngx_mcp_record(zone, call->ref, NGX_MCP_CALL);

    if (c == NULL || c->task.rec.owner.block) {
        return NGX_DECLINED;
    }

    ngx_mcp_touch(zone, c);
    ngx_mcp_touch_range(zone, s, ncalls, channel);

    if (++s->channel == 0) {
        s->channel = 1;
    }

    c->task.rec.owner = ngx_mcp_ref(zone, s);
    c->task.rec.account = s->rec.account;
    c->channel = s->channel;

    ngx_mcp_account_charge_locked(zone, s->rec.account, NGX_MCP_CALL,
                                  c->task.rec.block.blocks);

    ngx_mcp_list_append(zone, &s->calls, ngx_mcp_number(zone, c),
                        NGX_MCP_LINKS);
    s->ncalls++;

    call->channel = c->channel;

    return NGX_OK;
}


/*
 * A hash of the last bytes of a text.  Texts with equal hashes are compared, so
 * the hash need not be a good one.
 */

uint32_t
ngx_mcp_call_hash(ngx_str_t *text)
{
    size_t    i;
    uint32_t  hash;

    hash = (uint32_t) text->len + 1;

    for (i = text->len - ngx_min(text->len, 8); i < text->len; i++) {
        hash = hash * 31 + text->data[i];
    }

    return hash;
}


static ngx_mcp_call_sh_t *
ngx_mcp_call_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_str_t *id, uint32_t hash)
{
    uint32_t            n;
    ngx_mcp_call_sh_t  *c;

    for (n = s->calls.head; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);

        if (c->task.rec.hash == hash
            && ngx_mcp_text_equal(zone, c, 0, c->id_len, id))
        {
            return c;
        }
    }

    return NULL;
}


void
ngx_mcp_call_mark(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call, ngx_uint_t flag)
{
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (c) {
        ngx_mcp_touch(zone, &c->task.rec);
        c->task.rec.flags |= flag;
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_uint_t
ngx_mcp_call_has_stream(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call)
{
    ngx_uint_t          carried;
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);
    carried = (c && c->active_stream);

    ngx_mcp_zone_unlock(zone);

    return carried;
}


void
ngx_mcp_call_moved(ngx_mcp_zone_t *zone, ngx_mcp_call_t *call)
{
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call->ref, NGX_MCP_CALL);

    if (c) {
        ngx_mcp_touch(zone, &c->upstream);
        c->upstream = call->upstream;
    }

    ngx_mcp_zone_unlock(zone);
}


/*
 * A response finishes the call at once, as the client may send its next request
 * as soon as it has the response.
 */

ngx_int_t
ngx_mcp_log_call(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call,
    ngx_mcp_event_t *event, ngx_mcp_cursor_t *cursor)
{
    return ngx_mcp_log_to_owner(zone, call, event, cursor,
                                event->flags & NGX_MCP_EVENT_RESPONSE
                                ? ngx_mcp_call_finish_locked : NULL);
}


void
ngx_mcp_call_close(ngx_mcp_zone_t *zone, ngx_mcp_ref_t call)
{
    ngx_mcp_call_sh_t  *c;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, call, NGX_MCP_CALL);

    if (c && c->task.rec.flags & NGX_MCP_CALL_RUNNING) {
        ngx_mcp_call_finish_locked(zone, c);
    }

    ngx_mcp_zone_unlock(zone);

    ngx_log_debug1(NGX_LOG_DEBUG_CORE, zone->log, 0, "mcp call closed, %uD",
                   call.block);
}


static void
ngx_mcp_call_finish_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c)
{
    uint32_t               n;
    ngx_uint_t             kept;
    ngx_mcp_session_sh_t  *s;

    n = ngx_mcp_number(zone, c);
    s = c->task.rec.owner.block ? ngx_mcp_block(zone, c->task.rec.owner.block)
                                : NULL;

    kept = s && !s->ended
           && (c->active_stream
               || (c->log.count
                   && c->task.rec.flags & NGX_MCP_CALL_STREAMED));

    if (!kept) {
        (void) ngx_mcp_log_clear_locked(zone, &c->log, NGX_MAX_INT_T_VALUE);
    }

    if (c->limit) {
        ngx_mcp_limit_drop_locked(zone, c->limit);
    }

    ngx_mcp_interest_leave_locked(zone, c->interest);
    ngx_mcp_wake_cancel_locked(zone, &c->task);
    ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_CALLS_RUNNING, -1);

    if (s) {
        ngx_mcp_touch(zone, &s->ncalls);
        ngx_mcp_list_remove(zone, &s->calls, n, NGX_MCP_LINKS);
        s->ncalls--;
    }

    if (!kept) {
        ngx_mcp_drop_locked(zone, c);

        if (s) {
            ngx_mcp_session_after_use_locked(zone, s);
        }

        return;
    }

    ngx_mcp_touch(zone, c);
    c->task.rec.flags &= ~NGX_MCP_CALL_RUNNING;
    c->limit = 0;
    ngx_memzero(&c->interest, sizeof(ngx_mcp_ref_t));

    if (c->active_stream) {

        /* the stream's worker has to notice that no more events follow */

        ngx_mcp_wake_locked(zone, ngx_mcp_block(zone, c->active_stream),
                            NGX_MCP_WAKE_NEWS);
    }

    ngx_mcp_list_append(zone, &s->finished, n, NGX_MCP_LINKS);

    ngx_mcp_session_after_use_locked(zone, s);
    ngx_mcp_finished_trim_locked(zone, s);
}


/*
 * Drops finished calls whose channels were read to the end, except for the
 * newest ones, which clients may resume.
 */

void
ngx_mcp_finished_trim_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t            n;
    ngx_uint_t          kept;
    ngx_mcp_call_sh_t  *c;

    kept = 0;

    for (n = s->finished.tail; n;  /* void */ ) {
        c = ngx_mcp_block(zone, n);
        n = c->task.rec.links.prev;

        if (c->active_stream == 0 && c->delivered >= c->log.last
            && kept++ == NGX_MCP_FINISHED_MAX)
        {
            kept--;
            ngx_mcp_channel_drop_locked(zone, c);
            ngx_mcp_step_locked(zone);
        }
    }
}


ngx_int_t
ngx_mcp_call_cancel(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, ngx_str_t *id,
    uint32_t *upstream)
{
    uint32_t               hash;
    ngx_int_t              rc;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    rc = NGX_DECLINED;
    hash = ngx_mcp_call_hash(id);

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    c = s ? ngx_mcp_call_find_locked(zone, s, id, hash) : NULL;

    if (c && !(c->task.rec.flags & NGX_MCP_CALL_ANSWERED)) {
        ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_CANCEL);
        *upstream = c->upstream;
        rc = NGX_OK;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


/*
 * Ends a call whose worker died.  If the client can resume the channel, and the
 * channel has no answer yet, an error becomes the answer.
 */

void
ngx_mcp_call_lost_locked(ngx_mcp_zone_t *zone, ngx_mcp_call_sh_t *c)
{
    u_char                 id[NGX_MCP_ID_MAX];
    ngx_str_t              parts[3];
    ngx_mcp_event_t        event;
    ngx_mcp_stage_t        stage;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_count(zone, NGX_MCP_COUNTER_CALLS_LOST, 1);

    s = c->task.rec.owner.block ? ngx_mcp_block(zone,
                                                c->task.rec.owner.block)
                                : NULL;

    if (s && !s->ended && !s->exclusive && c->id_len <= NGX_MCP_ID_MAX
        && c->task.rec.flags & NGX_MCP_CALL_STREAMED
        && !(c->task.rec.flags & NGX_MCP_CALL_ANSWERED))
    {
        ngx_memzero(&event, sizeof(ngx_mcp_event_t));

        ngx_mcp_text_read(zone, c, 0, id, c->id_len);

        ngx_str_set(&parts[0], "{\"jsonrpc\":\"2.0\",\"id\":");
        parts[1].data = id;
        parts[1].len = c->id_len;
        ngx_str_set(&parts[2], "," NGX_MCP_CALL_LOST);

        event.parts = parts;
        event.nparts = 3;
        event.flags = NGX_MCP_EVENT_RESPONSE;

        ngx_mcp_stage_init(zone, &stage, NGX_MCP_EVENT, parts, 3);

        if (ngx_mcp_log_shrink_locked(zone, s, c, 0) == NGX_OK
            && ngx_mcp_free_blocks(zone->sh) >= stage.blocks
            && ngx_mcp_log_add_locked(zone, c, &event, NULL, &stage))
        {
            ngx_mcp_touch(zone, s);
            s->events++;

        } else {
            ngx_mcp_touch(zone, c);
            c->log.last++;
        }

        ngx_mcp_touch(zone, c);
        c->task.rec.flags |= NGX_MCP_CALL_ANSWERED;
    }

    ngx_mcp_call_finish_locked(zone, c);

    if (s && s->exclusive && !s->ended) {
        ngx_mcp_exclusive_end_locked(zone, s);
    }
}


ngx_mcp_call_sh_t *
ngx_mcp_channel_call_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    uint32_t channel)
{
    uint32_t            n;
    ngx_mcp_call_sh_t  *c;

    for (n = s->calls.head; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);

        if (c->channel == channel) {
            return c;
        }
    }

    for (n = s->finished.tail; n; n = c->task.rec.links.prev) {
        c = ngx_mcp_block(zone, n);

        if (c->channel == channel) {
            return c;
        }
    }

    return NULL;
}


ngx_int_t
ngx_mcp_call_id(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session, uint32_t channel,
    ngx_pool_t *pool, ngx_str_t *id)
{
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    id->len = 0;
    id->data = ngx_pnalloc(pool, NGX_MCP_ID_MAX);
    if (id->data == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    c = s ? ngx_mcp_channel_call_locked(zone, s, channel) : NULL;

    if (c) {
        id->len = ngx_min(c->id_len, NGX_MCP_ID_MAX);
        ngx_mcp_text_read(zone, c, 0, id->data, id->len);
    }

    ngx_mcp_zone_unlock(zone);

    return c ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_token_find(ngx_mcp_zone_t *zone, ngx_str_t *token,
    ngx_mcp_token_scope_t *scope, ngx_mcp_ref_t *ref)
{
    ngx_mcp_token_t     t;
    ngx_mcp_call_sh_t  *c;

    ngx_memzero(&t, sizeof(ngx_mcp_token_t));

    t.token = token;
    t.scope = scope;
    t.hash = ngx_mcp_call_hash(token);

    if (scope->identity->data) {
        t.identity = ngx_mcp_hash(zone, scope->identity, NULL);
    }

    if (scope->session) {
        ngx_mcp_token_session(zone, &t);

    } else {
        ngx_mcp_token_all(zone, &t);
    }

    if (t.found != 1) {
        return t.found ? NGX_BUSY : NGX_DECLINED;
    }

    *ref = t.call;

    ngx_mcp_zone_lock(zone);

    c = ngx_mcp_record(zone, t.call, NGX_MCP_CALL);

    if (c && c->task.rec.flags & NGX_MCP_CALL_PLAIN) {
        *ref = c->task.rec.owner;
    }

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


static void
ngx_mcp_token_session(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t)
{
    uint32_t               n;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_lookup_locked(zone, t->scope->session);

    for (n = s ? s->calls.head : 0; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);
        ngx_mcp_token_test_locked(zone, t, c);
    }

    ngx_mcp_zone_unlock(zone);
}


/* compares all running calls, as there is no index by progress token */

static void
ngx_mcp_token_all(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t)
{
    int64_t              running;
    uint32_t             n, last;
    ngx_mcp_call_sh_t   *c;

    running = ngx_mcp_counter(zone, NGX_MCP_COUNTER_CALLS_RUNNING);

    for (n = 1; running > 0; /* void */ ) {

        ngx_mcp_zone_lock(zone);

        last = ngx_min(n + NGX_MCP_TOKEN_BATCH, zone->sh->watermark);

        for ( /* void */ ; n < last; n++) {
            c = ngx_mcp_block(zone, n);

            if (c->task.rec.block.type == NGX_MCP_CALL
                && c->task.rec.flags & NGX_MCP_CALL_RUNNING)
            {
                running--;
                ngx_mcp_token_test_locked(zone, t, c);
            }
        }

        last = (n >= zone->sh->watermark);

        ngx_mcp_zone_unlock(zone);

        if (last || t->found > 1) {
            return;
        }
    }
}


static void
ngx_mcp_token_test_locked(ngx_mcp_zone_t *zone, ngx_mcp_token_t *t,
    ngx_mcp_call_sh_t *c)
{
    ngx_mcp_session_sh_t  *s;

    if (c->token != t->hash
        || !ngx_mcp_text_equal(zone, c, c->id_len,
                               c->task.rec.len - c->id_len, t->token))
    {
        return;
    }

    s = ngx_mcp_session_locked(zone, c->task.rec.owner);

    if (s == NULL || (t->identity && t->identity != s->subscriber.identity)
        || !ngx_mcp_group_matches(zone, ngx_mcp_session_group(zone, s),
                                  t->scope->endpoint, t->scope->tenant))
    {
        return;
    }

    t->call = ngx_mcp_ref(zone, c);
    t->found++;
}
