
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


static ngx_int_t ngx_mcp_session_room(ngx_mcp_zone_t *zone,
    ngx_mcp_admit_t *admit);
static uint32_t ngx_mcp_session_hash(ngx_str_t *id);
static ngx_mcp_session_sh_t *ngx_mcp_session_make_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_new_t *in, uint64_t account, uint32_t hash,
    ngx_mcp_stage_t *stage, ngx_mcp_stage_t *extension);
static ngx_mcp_session_sh_t *ngx_mcp_session_search_locked(
    ngx_mcp_zone_t *zone, ngx_str_t *id, uint32_t hash);
static void ngx_mcp_session_attach_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
static ngx_int_t ngx_mcp_session_text(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_uint_t key, ngx_pool_t *pool, ngx_str_t *out,
    ngx_uint_t *level);
static void ngx_mcp_session_detach_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s);
static ngx_uint_t ngx_mcp_idle_class(ngx_mcp_session_sh_t *s);


ngx_int_t
ngx_mcp_session_create(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in,
    ngx_mcp_ref_t *ref)
{
    uint32_t               hash;
    ngx_str_t              parts[5];
    ngx_int_t              rc;
    ngx_mcp_admit_t        admit;
    ngx_mcp_stage_t        stage, extension;
    ngx_mcp_session_sh_t  *s;

    if (in->id.len != NGX_MCP_UUID_LEN) {
        return NGX_DECLINED;
    }

    parts[0] = in->client_name;
    parts[0].len = ngx_min(parts[0].len, 64);
    parts[1] = in->client_version;
    parts[1].len = ngx_min(parts[1].len, 64);
    parts[2] = in->list_key;
    parts[3] = in->identity;
    parts[4] = in->initialize;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_SESSION, NULL, 0);
    ngx_mcp_stage_init(zone, &extension, NGX_MCP_EXTENSION, parts, 5);

    hash = ngx_mcp_session_hash(&in->id);

    admit.endpoint = &in->endpoint;
    admit.tenant = &in->tenant;
    admit.account = in->account ? in->account
                                : ngx_mcp_hash(zone, &in->tenant, &in->client);
    admit.limit_key = &in->limit_key;
    admit.limit = 0;
    admit.room = in->account ? NGX_MCP_ROOM_OTHER : NGX_MCP_ROOM_NEW;
    admit.blocks = stage.blocks + extension.blocks;

    if (ngx_mcp_session_room(zone, &admit) != NGX_OK
        || ngx_mcp_stage(zone, &extension) != NGX_OK)
    {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_SESSIONS_REFUSED, 1);
        return NGX_DECLINED;
    }

    admit.limit = in->limit;
    admit.blocks = stage.blocks + ngx_mcp_stage_needs(&extension);

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_admit_locked(zone, &admit);

    if (rc == NGX_OK && ngx_mcp_session_search_locked(zone, &in->id, hash)) {
        rc = NGX_BUSY;
    }

    if (rc == NGX_OK) {
        s = ngx_mcp_session_make_locked(zone, in, admit.account, hash, &stage,
                                        &extension);
        ngx_mcp_session_attach_locked(zone, s);

        *ref = ngx_mcp_ref(zone, s);

    } else {
        ngx_mcp_stage_drop_locked(zone, &extension);
    }

    ngx_mcp_zone_unlock(zone);

    if (rc != NGX_OK) {

        /* the caller may take another exclusive session instead */

        if (!in->exclusive || rc != NGX_BUSY) {
            ngx_mcp_count(zone, NGX_MCP_COUNTER_SESSIONS_REFUSED, 1);
        }

        return rc;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp session %V created, %uD", &in->id, ref->block);

    return NGX_OK;
}


/*
 * Makes room before the blocks of a large session are filled, which happens
 * before its admission.  Returns as ngx_mcp_admit_locked() does.
 */

static ngx_int_t
ngx_mcp_session_room(ngx_mcp_zone_t *zone, ngx_mcp_admit_t *admit)
{
    ngx_int_t  rc;

    if (admit->blocks <= NGX_MCP_BLOCKS_SMALL) {
        return NGX_OK;
    }

    ngx_mcp_zone_lock(zone);
    rc = ngx_mcp_admit_locked(zone, admit);
    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* ids of sessions are random, so that their digits serve as a hash */

static uint32_t
ngx_mcp_session_hash(ngx_str_t *id)
{
    uint64_t  first, last;

    ngx_memcpy(&first, id->data, sizeof(uint64_t));
    ngx_memcpy(&last, id->data + NGX_MCP_UUID_LEN - sizeof(uint64_t),
               sizeof(uint64_t));

    return (uint32_t) (((first ^ last * 31) * 0x9e3779b97f4a7c15ULL) >> 32);
}


static ngx_mcp_session_sh_t *
ngx_mcp_session_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in,
    uint64_t account, uint32_t hash, ngx_mcp_stage_t *stage,
    ngx_mcp_stage_t *extension)
{
    ngx_mcp_group_sh_t       *g, *all;
    ngx_mcp_limit_sh_t       *l;
    ngx_mcp_session_sh_t     *s;
    ngx_mcp_extension_sh_t   *e;
    ngx_mcp_subscriber_sh_t  *sb;

    g = ngx_mcp_group_get_locked(zone, &in->endpoint, &in->tenant);

    all = ngx_mcp_group_endpoint(zone, g);

    if (!in->exclusive) {
        ngx_mcp_touch(zone, g);
        ngx_mcp_touch(zone, all);

        g->event_max = (uint32_t) ngx_min(in->event_max, 0xfffffff) * 16;
        g->event_size = (uint32_t) ngx_min(in->event_size, 0xffffffff);
        all->event_max = g->event_max;
        all->event_size = g->event_size;
    }

    stage->payer = ngx_mcp_account_get_locked(zone, &in->tenant, account);
    extension->payer = stage->payer;

    s = ngx_mcp_make_locked(zone, stage);
    e = ngx_mcp_make_locked(zone, extension);

    e->rec.owner = ngx_mcp_ref(zone, s);
    e->created = ngx_mcp_now();
    e->name_len = (uint16_t) extension->parts[0].len;
    e->version_len = (uint16_t) extension->parts[1].len;
    e->key_len = (uint32_t) extension->parts[2].len;
    e->revision = (uint32_t) in->revision;
    e->identity_len = (uint32_t) extension->parts[3].len;
    e->start = g->log.last;
    e->start_endpoint = all->log.last;
    e->begin = zone->sh->stamp;
    e->seen = e->created;

    if (in->limit) {
        l = ngx_mcp_limit_get_locked(zone, &in->endpoint, &in->limit_key,
                                     ngx_mcp_limit_hash(zone, &in->endpoint,
                                                        &in->limit_key));
        e->limit = ngx_mcp_number(zone, l);
    }

    ngx_mcp_commit_locked(zone, e, NGX_MCP_EXTENSION);

    s->rec.owner = ngx_mcp_ref(zone, g);
    s->rec.hash = hash;
    ngx_memcpy(s->id, in->id.data, NGX_MCP_UUID_LEN);
    s->touched = ngx_current_msec;
    s->timeout = in->timeout ? (uint32_t) ngx_min(in->timeout, 0xffffffff)
                             : 0xffffffff;
    s->event_max = (uint32_t) ngx_min(in->event_max, 0xffffffff);
    s->event_size = (uint32_t) ngx_min(in->event_size, 0xffffffff);
    s->extension = ngx_mcp_number(zone, e);

    sb = &s->subscriber;
    sb->delivered.group = e->start;
    sb->delivered.endpoint = e->start_endpoint;
    sb->identity = ngx_mcp_hash(zone, &in->identity, NULL);
    sb->audience = ngx_mcp_hash(zone, &in->list_key, NULL);
    sb->offered = (u_char) in->offered;
    sb->own_lists = (u_char) in->own_lists;
    sb->listens = (u_char) in->listens;
    sb->group = ngx_mcp_number(zone, g);

    if (in->exclusive) {
        s->exclusive = NGX_MCP_EXCLUSIVE_CLEAN;
        s->used = 1;
    }

    if (in->listens) {

        /* ends the session soon if its worker dies before the stream is open */

        s->timeout = NGX_MCP_LISTEN_TIMEOUT / NGX_MCP_IDLE_END;
        s->used = 1;
    }

    ngx_mcp_commit_locked(zone, s, NGX_MCP_SESSION);

    return s;
}


static void
ngx_mcp_session_attach_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_limit_sh_t      *l;
    ngx_mcp_account_sh_t    *a;
    ngx_mcp_extension_sh_t  *e;

    g = ngx_mcp_session_group(zone, s);
    e = ngx_mcp_session_extension(zone, s);

    ngx_mcp_idle_enter_locked(zone, s);

    a = ngx_mcp_block(zone, s->rec.account);
    ngx_mcp_list_append(zone, &a->sessions, s->extension,
                        offsetof(ngx_mcp_extension_sh_t, charged));

    if (e->limit) {
        l = ngx_mcp_block(zone, e->limit);
        ngx_mcp_touch(zone, l);
        l->count++;
        ngx_mcp_list_append(zone, &l->list, s->extension,
                            offsetof(ngx_mcp_extension_sh_t, limited));
    }

    ngx_mcp_hash_insert_locked(zone, s);

    if (s->exclusive) {
        ngx_mcp_touch(zone, g);
        g->shared++;
        return;
    }

    ngx_mcp_group_count_locked(zone, g, 1);

    if (s->subscriber.listens) {
        g->listens++;

        ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_LISTENS_OPEN, 1);
        ngx_mcp_count(zone, NGX_MCP_COUNTER_LISTENS_OPENED, 1);
        return;
    }

    ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_SESSIONS_LIVE, 1);
    ngx_mcp_count(zone, NGX_MCP_COUNTER_SESSIONS_CREATED, 1);
}


ngx_mcp_session_sh_t *
ngx_mcp_session_lookup_locked(ngx_mcp_zone_t *zone, ngx_str_t *id)
{
    if (id->len != NGX_MCP_UUID_LEN) {
        return NULL;
    }

    return ngx_mcp_session_search_locked(zone, id, ngx_mcp_session_hash(id));
}


static ngx_mcp_session_sh_t *
ngx_mcp_session_search_locked(ngx_mcp_zone_t *zone, ngx_str_t *id,
    uint32_t hash)
{
    ngx_mcp_session_sh_t  *s;

    for (s = ngx_mcp_hash_first_locked(zone, NGX_MCP_SESSION, hash);
         s;
         s = ngx_mcp_hash_next_locked(zone, s))
    {
        if (ngx_memcmp(s->id, id->data, NGX_MCP_UUID_LEN) == 0) {
            return s;
        }
    }

    return NULL;
}


ngx_uint_t
ngx_mcp_session_exists(ngx_mcp_zone_t *zone, ngx_str_t *id,
    ngx_str_t *endpoint)
{
    ngx_uint_t             revision;
    ngx_mcp_session_sh_t  *s;

    revision = NGX_MCP_REVISION_UNKNOWN;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_lookup_locked(zone, id);

    if (s != NULL && !s->subscriber.listens && !s->exclusive
        && ngx_mcp_group_matches(zone, ngx_mcp_session_group(zone, s),
                                 endpoint, NULL))
    {
        revision = ngx_mcp_session_extension(zone, s)->revision;
    }

    ngx_mcp_zone_unlock(zone);

    return revision;
}


ngx_int_t
ngx_mcp_session_find(ngx_mcp_zone_t *zone, ngx_str_t *id, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *identity, ngx_mcp_session_t *out)
{
    size_t                   len;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_lookup_locked(zone, id);

    if (s == NULL || s->subscriber.listens || s->exclusive) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    g = ngx_mcp_session_group(zone, s);
    e = ngx_mcp_session_extension(zone, s);

    if (!ngx_mcp_group_matches(zone, g, endpoint, tenant)
        || !ngx_mcp_text_equal(zone, e,
                               e->name_len + e->version_len + e->key_len,
                               e->identity_len, identity))
    {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    out->before = e->seen;

    ngx_mcp_touch_range(zone, e, calls, seen);
    e->seen = ngx_mcp_now();
    e->calls += (uint32_t) out->requests;

    if (!s->used) {
        ngx_mcp_idle_leave_locked(zone, s);

        ngx_mcp_touch_range(zone, s, ended, touched);
        s->used = 1;
    }

    ngx_mcp_session_after_use_locked(zone, s);

    out->ref = ngx_mcp_ref(zone, s);
    out->group = s->rec.owner;
    out->revision = e->revision;
    out->level = s->subscriber.level;
    out->offered = s->subscriber.offered;
    out->streams = s->ngets;
    out->calls = s->ncalls;
    out->created = e->created;
    out->seen = e->seen;
    out->member_of = e->member_of;
    out->own_lists = s->subscriber.own_lists;
    out->audience = s->subscriber.audience;

    out->client_name.len = e->name_len;
    out->client_name.data = out->text;
    out->client_version.len = e->version_len;
    out->client_version.data = out->text + e->name_len;

    len = e->name_len + e->version_len;

    ngx_mcp_text_read(zone, e, 0, out->text, len + (e->key_len != 0));

    out->letter = out->text[len];

    ngx_mcp_zone_unlock(zone);

    return NGX_OK;
}


ngx_int_t
ngx_mcp_session_info(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_session_info_t *info)
{
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s) {
        e = ngx_mcp_session_extension(zone, s);

        info->level = s->subscriber.level;
        info->streams = s->ngets;
        info->running = s->ncalls;
        info->calls = e->calls;
        info->events = s->log.nread;
        info->timeout = s->timeout;
    }

    ngx_mcp_zone_unlock(zone);

    return s ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_session_initialize(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_pool_t *pool, ngx_str_t *out, ngx_uint_t *level)
{
    return ngx_mcp_session_text(zone, session, 0, pool, out, level);
}


ngx_int_t
ngx_mcp_session_list_key(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_pool_t *pool, ngx_str_t *out)
{
    return ngx_mcp_session_text(zone, session, 1, pool, out, NULL);
}


static ngx_int_t
ngx_mcp_session_text(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_uint_t key, ngx_pool_t *pool, ngx_str_t *out, ngx_uint_t *level)
{
    size_t                   from, len;
    ngx_int_t                rc;
    ngx_mcp_session_sh_t    *s;
    ngx_mcp_extension_sh_t  *e;

    rc = NGX_DECLINED;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s) {
        e = ngx_mcp_session_extension(zone, s);
        from = e->name_len + e->version_len;
        len = e->key_len;

        if (!key) {
            from += len + e->identity_len;
            len = e->rec.len - from;
        }

        rc = ngx_mcp_text_copy(zone, e, from, len, pool, out);

        if (level) {
            *level = s->subscriber.level;
        }
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


void
ngx_mcp_session_set_level(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_uint_t level)
{
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s) {
        ngx_mcp_touch(zone, s);
        s->subscriber.level = (u_char) level;
    }

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_session_gets(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session)
{
    ngx_int_t              n;
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);
    n = s ? (ngx_int_t) s->ngets : NGX_DECLINED;

    ngx_mcp_zone_unlock(zone);

    return n;
}


void
ngx_mcp_session_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_counter_e counter)
{
    ngx_mcp_session_sh_t  *s;

    ngx_mcp_session_empty(zone, session);

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s) {
        ngx_mcp_session_end_locked(zone, s, counter);
    }

    ngx_mcp_zone_unlock(zone);

    ngx_log_debug1(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp session ended, %uD", session.block);
}


/*
 * Drops records of a large session, in several holds of the lock, until
 * NGX_MCP_SESSION_PART events and subscriptions are left, or only events of
 * running calls.
 */

void
ngx_mcp_session_empty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session)
{
    uint32_t                    head;
    ngx_uint_t                  n;
    ngx_mcp_session_sh_t       *s;
    ngx_mcp_subscription_sh_t  *sub;

    for ( ;; ) {
        ngx_mcp_zone_lock(zone);

        s = ngx_mcp_session_locked(zone, session);

        if (s == NULL
            || s->events + s->subscriber.nsubscriptions
               <= NGX_MCP_SESSION_PART)
        {
            ngx_mcp_zone_unlock(zone);
            return;
        }

        n = ngx_mcp_session_trim_locked(zone, s, NGX_MCP_SESSION_PART);

        while (n < NGX_MCP_SESSION_PART
               && (head = s->subscriber.subscriptions.head) != 0)
        {
            sub = ngx_mcp_block(zone, head);
            ngx_mcp_subscription_drop_locked(zone, &s->subscriber, sub);
            ngx_mcp_step_locked(zone);
            n++;
        }

        ngx_mcp_zone_unlock(zone);

        if (n == 0) {

            /* the events that are left belong to running calls */

            return;
        }

        ngx_mcp_zone_pause();
    }
}


ngx_uint_t
ngx_mcp_session_trim_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_uint_t max)
{
    ngx_uint_t          n;
    ngx_mcp_call_sh_t  *c;

    n = ngx_mcp_log_clear_locked(zone, &s->log, max);

    while (n < max && s->finished.head) {
        c = ngx_mcp_block(zone, s->finished.head);
        n += ngx_mcp_log_clear_locked(zone, &c->log, max - n);

        if (n < max) {
            ngx_mcp_channel_drop_locked(zone, c);
            n++;
        }
    }

    return n;
}


/*
 * Ends a session.  Its record stays as long as streams or calls of the session
 * are open in some worker, which only need to know that the session has ended.
 * Events, subscriptions and so on may be many and are freed first, in steps:
 * if the process dies between two steps, the session goes on without the freed
 * ones.
 */

void
ngx_mcp_session_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_counter_e counter)
{
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_account_sh_t    *a;
    ngx_mcp_extension_sh_t  *e;

    ngx_mcp_session_detach_locked(zone, s);

    if (s->ngets) {
        ngx_mcp_group_gets_locked(zone, s, -1);
    }

    ngx_mcp_touch(zone, s);
    s->ended = 1;

    ngx_mcp_idle_leave_locked(zone, s);

    e = ngx_mcp_session_extension(zone, s);
    g = ngx_mcp_session_group(zone, s);

    a = ngx_mcp_block(zone, s->rec.account);
    ngx_mcp_list_remove(zone, &a->sessions, s->extension,
                        offsetof(ngx_mcp_extension_sh_t, charged));

    ngx_mcp_limit_leave_locked(zone, e);
    ngx_mcp_audience_leave_locked(zone, e);

    ngx_mcp_hash_remove_locked(zone, s);

    if (s->exclusive) {
        ngx_mcp_touch(zone, g);
        g->shared--;

    } else if (s->subscriber.listens) {
        ngx_mcp_group_count_locked(zone, g, -1);
        g->listens--;

        ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_LISTENS_OPEN, -1);

    } else {
        ngx_mcp_group_count_locked(zone, g, -1);

        ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_SESSIONS_LIVE, -1);
        ngx_mcp_count(zone, counter, 1);
    }

    ngx_mcp_drop_locked(zone, e);
    s->extension = 0;

    ngx_mcp_group_drop_unused_locked(zone, g);
    ngx_mcp_session_after_use_locked(zone, s);
}


void
ngx_mcp_exclusive_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    if (s->nstreams == 0) {
        ngx_mcp_session_end_locked(zone, s, NGX_MCP_COUNTER_SESSIONS_DELETED);
        return;
    }

    ngx_mcp_touch_range(zone, s, ended, touched);
    s->exclusive = NGX_MCP_EXCLUSIVE_ENDING;
}


static void
ngx_mcp_session_detach_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    uint32_t                    n;
    ngx_mcp_call_sh_t          *c;
    ngx_mcp_task_sh_t          *t;
    ngx_mcp_subscription_sh_t  *sub;

    (void) ngx_mcp_log_clear_locked(zone, &s->log, NGX_MAX_INT_T_VALUE);

    while ((n = s->finished.head) != 0) {
        c = ngx_mcp_block(zone, n);
        ngx_mcp_channel_drop_locked(zone, c);
        ngx_mcp_step_locked(zone);
    }

    for (n = s->calls.head; n; n = c->task.rec.links.next) {
        c = ngx_mcp_block(zone, n);
        (void) ngx_mcp_log_clear_locked(zone, &c->log, NGX_MAX_INT_T_VALUE);
        ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_CLOSE);
        ngx_mcp_step_locked(zone);
    }

    for (n = s->streams.head; n; n = t->rec.links.next) {
        t = ngx_mcp_block(zone, n);
        ngx_mcp_wake_locked(zone, t, NGX_MCP_WAKE_CLOSE);
        ngx_mcp_step_locked(zone);
    }

    ngx_mcp_server_requests_end_locked(zone, s);

    ngx_mcp_upstream_sessions_end_locked(zone, s);

    while ((n = s->subscriber.subscriptions.head) != 0) {
        sub = ngx_mcp_block(zone, n);
        ngx_mcp_subscription_drop_locked(zone, &s->subscriber, sub);
        ngx_mcp_step_locked(zone);
    }
}


void
ngx_mcp_session_after_use_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    if (s->nstreams || s->ncalls) {
        return;
    }

    if (s->ended) {
        ngx_mcp_drop_locked(zone, s);
        return;
    }

    if (s->idle == NGX_MCP_IDLE_NONE
        || ngx_current_msec - s->touched >= ngx_mcp_idle_grain(s))
    {
        ngx_mcp_idle_leave_locked(zone, s);

        ngx_mcp_touch_range(zone, s, ended, touched);
        s->touched = ngx_current_msec;

        ngx_mcp_idle_enter_locked(zone, s);
    }
}


/*
 * Returns the class of a session's time-out.  Each class has a list of idle
 * sessions in the order of s->touched, so that about the head expires first:
 * the time-outs of a class differ by a factor of two at most.  s->touched is
 * renewed only when it is late by a part of the time-out, so most requests do
 * not move their session.  A call that begins does not take its session out of
 * the list: a search for overdue sessions does that.
 */

static ngx_uint_t
ngx_mcp_idle_class(ngx_mcp_session_sh_t *s)
{
    uint32_t    timeout;
    ngx_uint_t  class;

    class = s->used ? 0 : NGX_MCP_IDLE_UNUSED;

    for (timeout = s->timeout / 1024; timeout; timeout /= 2) {
        class++;
    }

    return class;
}


void
ngx_mcp_idle_enter_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    ngx_mcp_touch_range(zone, s, ended, touched);
    s->idle = (u_char) ngx_mcp_idle_class(s);

    ngx_mcp_list_append(zone, &zone->root->idle[s->idle],
                        ngx_mcp_number(zone, s), NGX_MCP_LINKS);
}


void
ngx_mcp_idle_leave_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s)
{
    if (s->idle == NGX_MCP_IDLE_NONE) {
        return;
    }

    ngx_mcp_list_remove(zone, &zone->root->idle[s->idle],
                        ngx_mcp_number(zone, s), NGX_MCP_LINKS);

    ngx_mcp_touch_range(zone, s, ended, touched);
    s->idle = NGX_MCP_IDLE_NONE;
}
