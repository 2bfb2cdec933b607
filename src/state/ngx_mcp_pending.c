
#include "ngx_mcp_state_sh.h"


/* of one call */
#define NGX_MCP_PENDING_SEND    64

/* windows without anything that are forgotten under one hold of the lock */
#define NGX_MCP_PENDING_FORGET  64

/* places looked at for a window whose end is not the latest */
#define NGX_MCP_PENDING_STEPS   64

/* who has not sent it after that died, ms */
#define NGX_MCP_PENDING_CLAIM   3000


typedef struct {
    uint64_t                what;
    ngx_mcp_only_sh_t       only;
    uint32_t                hash;
    uint16_t                flags;
    ngx_str_t               parts[3];     /* endpoint, tenant, session */
} ngx_mcp_window_key_t;


/* what is sent now */

typedef struct {
    ngx_mcp_owed_t          owed;
    ngx_uint_t              flags;        /* of the window */
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               session;
    ngx_str_t               text;
    ngx_uint_t              level;
    uint64_t                count;
    size_t                  counts[NGX_MCP_PENDING_COUNTS];
} ngx_mcp_pending_out_t;


static ngx_int_t ngx_mcp_pending_step_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_pending_t *p, ngx_mcp_window_sh_t *w);
static void ngx_mcp_window_sent_locked(ngx_mcp_window_sh_t *w,
    ngx_mcp_event_t *event);
static void ngx_mcp_window_key(ngx_mcp_zone_t *zone, ngx_mcp_pending_t *p,
    ngx_mcp_window_key_t *key);
static ngx_mcp_window_sh_t *ngx_mcp_window_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_window_key_t *key);
static ngx_int_t ngx_mcp_window_open_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_pending_t *p, ngx_mcp_window_key_t *key);
static void ngx_mcp_window_insert_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_window_sh_t *w);
static ngx_int_t ngx_mcp_pending_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_stage_t *stage);
static void ngx_mcp_pending_put_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_window_sh_t *w, ngx_mcp_pending_t *p, ngx_mcp_stage_t *stage);
static ngx_mcp_window_sh_t *ngx_mcp_window_due_locked(ngx_mcp_zone_t *zone,
    ngx_msec_t *next);
static ngx_int_t ngx_mcp_pending_claim(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_pending_out_t *out, ngx_msec_t *next);
static void ngx_mcp_pending_log(ngx_mcp_zone_t *zone,
    ngx_mcp_pending_out_t *out);
static void ngx_mcp_pending_done(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);


ngx_int_t
ngx_mcp_pending_join(ngx_mcp_zone_t *zone, ngx_mcp_pending_t *p)
{
    ngx_int_t              rc, step;
    ngx_mcp_stage_t        stage;
    ngx_mcp_window_sh_t   *w;
    ngx_mcp_pending_sh_t  *m;
    ngx_mcp_window_key_t   key;

    ngx_mcp_window_key(zone, p, &key);
    ngx_mcp_stage_init(zone, &stage, NGX_MCP_PENDING, p->event->parts, 1);

    rc = NGX_OK;

    ngx_mcp_zone_lock(zone);

    w = ngx_mcp_window_find_locked(zone, &key);

    if (w && stage.blocks > NGX_MCP_BLOCKS_SMALL) {
        ngx_mcp_zone_unlock(zone);

        rc = ngx_mcp_stage(zone, &stage);

        ngx_mcp_zone_lock(zone);
    }

    if (w && rc == NGX_OK) {
        rc = ngx_mcp_pending_room_locked(zone, &stage);
    }

    if (w) {
        w = ngx_mcp_window_find_locked(zone, &key);
    }

    step = ngx_mcp_pending_step_locked(zone, p, w);

    if (step != NGX_AGAIN) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);

        return step;
    }

    if (w && rc == NGX_OK) {
        ngx_mcp_pending_put_locked(zone, w, p, &stage);
        ngx_mcp_zone_unlock(zone);

        return NGX_OK;
    }

    ngx_mcp_stage_drop_locked(zone, &stage);

    if (w) {
        ngx_mcp_touch(zone, w);
        ngx_mcp_window_sent_locked(w, p->event);
    }

    if (w && w->waiting) {

        /* it is said with this one */

        m = ngx_mcp_block(zone, w->waiting);
        p->count += m->count;

        w->waiting = 0;
        ngx_mcp_drop_locked(zone, m);
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_COALESCED, 1);
    }

    rc = w ? NGX_DECLINED : ngx_mcp_window_open_locked(zone, p, &key);

    ngx_mcp_zone_unlock(zone);

    if (rc == NGX_OK) {
        ngx_mcp_doorbell_due(zone, p->time);
    }

    return NGX_DECLINED;
}


/*
 * What is known of an event that is repeated: NGX_OK: it joined; NGX_DECLINED:
 * it was to go at once; NGX_AGAIN: nothing; NGX_ABORT: the lease is lost.
 */

static ngx_int_t
ngx_mcp_pending_step_locked(ngx_mcp_zone_t *zone, ngx_mcp_pending_t *p,
    ngx_mcp_window_sh_t *w)
{
    uint16_t        *done;
    ngx_mcp_once_t  *once;

    if (ngx_mcp_take_check_locked(zone, p->event->take) != NGX_OK) {
        return NGX_ABORT;
    }

    once = p->event->once;
    done = ngx_mcp_once_done_locked(zone, p->event);

    if (done && *done >= once->rank) {
        return NGX_OK;
    }

    if (w && once && w->once == once->stamp && w->rank == once->rank) {
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


static void
ngx_mcp_window_sent_locked(ngx_mcp_window_sh_t *w, ngx_mcp_event_t *event)
{
    w->once = 0;

    if (event->once) {
        w->rank = (uint32_t) event->once->rank;
        w->once = event->once->stamp;
    }
}


static void
ngx_mcp_window_key(ngx_mcp_zone_t *zone, ngx_mcp_pending_t *p,
    ngx_mcp_window_key_t *key)
{
    ngx_str_t  str;

    ngx_memzero(key, sizeof(ngx_mcp_window_key_t));

    ngx_mcp_log_only(zone, p->event, &key->only);
    key->what = ngx_mcp_hash(zone, &p->what, NULL);

    ngx_str_set(&key->parts[0], "");
    ngx_str_set(&key->parts[1], "");
    ngx_str_set(&key->parts[2], "");

    if (p->endpoint) {
        key->flags |= NGX_MCP_WINDOW_ENDPOINT;
        key->parts[0] = *p->endpoint;
    }

    if (p->tenant) {
        key->flags |= NGX_MCP_WINDOW_TENANT;
        key->parts[1] = *p->tenant;
    }

    if (p->session.data) {
        key->flags |= NGX_MCP_WINDOW_SESSION;
        key->parts[2] = p->session;
    }

    str.data = (u_char *) &key->only;
    str.len = sizeof(ngx_mcp_only_sh_t);

    key->hash = (uint32_t) (key->what
                            ^ ngx_mcp_hash(zone, &str, &key->parts[2])
                            ^ ngx_mcp_hash(zone, &key->parts[0],
                                           &key->parts[1]));
}


static ngx_mcp_window_sh_t *
ngx_mcp_window_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_window_key_t *key)
{
    size_t                len;
    ngx_str_t            *parts;
    ngx_mcp_window_sh_t  *w;

    parts = key->parts;

    for (w = ngx_mcp_hash_first_locked(zone, NGX_MCP_WINDOW, key->hash);
         w;
         w = ngx_mcp_hash_next_locked(zone, w))
    {
        len = w->endpoint_len + w->tenant_len;

        if (w->what == key->what && w->rec.flags == key->flags
            && ngx_memcmp(&w->only, &key->only, sizeof(ngx_mcp_only_sh_t)) == 0
            && ngx_mcp_text_equal(zone, w, 0, w->endpoint_len, &parts[0])
            && ngx_mcp_text_equal(zone, w, w->endpoint_len, w->tenant_len,
                                  &parts[1])
            && ngx_mcp_text_equal(zone, w, len, w->rec.len - len, &parts[2]))
        {
            return w;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_mcp_window_open_locked(ngx_mcp_zone_t *zone, ngx_mcp_pending_t *p,
    ngx_mcp_window_key_t *key)
{
    ngx_mcp_stage_t       stage;
    ngx_mcp_window_sh_t  *w;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_WINDOW, key->parts, 3);

    if (stage.blocks > NGX_MCP_BLOCKS_BATCH
        || ngx_mcp_pending_room_locked(zone, &stage) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    w = ngx_mcp_make_locked(zone, &stage);

    w->rec.hash = key->hash;
    w->rec.flags = key->flags;
    w->what = key->what;
    w->only = key->only;
    w->endpoint_len = (uint32_t) key->parts[0].len;
    w->tenant_len = (uint32_t) key->parts[1].len;
    w->time = (uint32_t) ngx_min(p->time, 0xffffffff);
    w->deadline = ngx_current_msec + w->time;

    ngx_mcp_window_sent_locked(w, p->event);

    ngx_mcp_commit_locked(zone, w, NGX_MCP_WINDOW);

    ngx_mcp_hash_insert_locked(zone, w);
    ngx_mcp_window_insert_locked(zone, w);

    return NGX_OK;
}


ngx_uint_t
ngx_mcp_window_class(ngx_mcp_window_sh_t *w)
{
    uint32_t    time;
    ngx_uint_t  class;

    if (w->sending) {
        return NGX_MCP_WINDOW_CLAIMED;
    }

    class = 0;

    for (time = w->time; time > 1; time /= 2) {
        class++;
    }

    return class;
}


/*
 * Windows are kept in lists by the logarithm of their length, so that one is
 * put at the end of its list or near to it.
 */

static void
ngx_mcp_window_insert_locked(ngx_mcp_zone_t *zone, ngx_mcp_window_sh_t *w)
{
    uint32_t              n, next;
    ngx_uint_t            i;
    ngx_mcp_list_sh_t    *list;
    ngx_mcp_window_sh_t  *before;

    ngx_mcp_touch(zone, w);
    w->class = (uint32_t) ngx_mcp_window_class(w);

    list = &zone->root->windows[w->class];
    n = list->tail;

    for (i = 0; n && i < NGX_MCP_PENDING_STEPS; i++) {
        before = ngx_mcp_block(zone, n);

        if (before->deadline <= w->deadline) {
            break;
        }

        n = before->rec.links.prev;
    }

    next = n ? ngx_mcp_links(zone, n, NGX_MCP_LINKS)->next : list->head;

    ngx_mcp_list_insert(zone, list, ngx_mcp_number(zone, w), n, next,
                        NGX_MCP_LINKS);
}


/* a sixteenth of the zone at most */

static ngx_int_t
ngx_mcp_pending_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage)
{
    if (ngx_mcp_pending_blocks(zone->sh) + stage->blocks
        > zone->sh->blocks / 16)
    {
        return NGX_DECLINED;
    }

    return ngx_mcp_stage_reserve_locked(zone, stage);
}


static void
ngx_mcp_pending_put_locked(ngx_mcp_zone_t *zone, ngx_mcp_window_sh_t *w,
    ngx_mcp_pending_t *p, ngx_mcp_stage_t *stage)
{
    uint16_t              *done;
    ngx_uint_t             i;
    ngx_mcp_pending_sh_t  *m, *old;

    done = ngx_mcp_once_done_locked(zone, p->event);
    old = w->waiting ? ngx_mcp_block(zone, w->waiting) : NULL;

    m = ngx_mcp_make_locked(zone, stage);

    if (done) {
        ngx_mcp_touch(zone, done);
        *done = (uint16_t) p->event->once->rank;
    }

    m->rec.owner = ngx_mcp_ref(zone, w);
    m->serial = ++zone->sh->stamp;
    m->level = (uint32_t) p->event->level;
    m->count = p->count;

    for (i = 0; i < NGX_MCP_PENDING_COUNTS; i++) {
        m->counts[i] = (uint32_t) p->counts[i];
    }

    if (p->counted) {
        m->rec.flags |= NGX_MCP_PENDING_COUNTED;
    }

    if (old) {
        m->rec.flags |= NGX_MCP_PENDING_COUNTED;
        m->count += old->count;
    }

    ngx_mcp_commit_locked(zone, m, NGX_MCP_PENDING);

    ngx_mcp_touch(zone, w);
    w->waiting = ngx_mcp_number(zone, m);

    if (old) {
        ngx_mcp_drop_locked(zone, old);
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_COALESCED, 1);
    }
}


ngx_int_t
ngx_mcp_pending_send(ngx_mcp_zone_t *zone, ngx_msec_t *next)
{
    ngx_int_t               rc;
    ngx_uint_t              i;
    ngx_pool_t             *pool;
    ngx_mcp_pending_out_t   out;

    *next = 0;

    for (i = 0; i < NGX_MCP_PENDING_SEND; i++) {

        if (ngx_mcp_pending_blocks(zone->sh) == 0) {
            break;
        }

        pool = ngx_create_pool(1024, zone->log);
        if (pool == NULL) {
            return NGX_OK;
        }

        rc = ngx_mcp_pending_claim(zone, pool, &out, next);

        if (rc == NGX_OK) {
            ngx_mcp_pending_log(zone, &out);
            ngx_mcp_pending_done(zone, out.owed.ref);
        }

        ngx_destroy_pool(pool);

        if (rc == NGX_DECLINED) {
            return NGX_OK;
        }
    }

    return ngx_mcp_pending_blocks(zone->sh) ? NGX_AGAIN : NGX_OK;
}


/* NGX_DECLINED: nothing is due; NGX_AGAIN: look again */

static ngx_int_t
ngx_mcp_pending_claim(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_pending_out_t *out, ngx_msec_t *next)
{
    size_t                 from;
    uint32_t               n;
    ngx_int_t              rc;
    ngx_uint_t             i;
    ngx_mcp_window_sh_t   *w;
    ngx_mcp_pending_sh_t  *m;

    ngx_mcp_zone_lock(zone);

    w = ngx_mcp_window_due_locked(zone, next);

    if (w == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    n = ngx_mcp_number(zone, w);

    ngx_mcp_list_remove(zone, &zone->root->windows[w->class], n, NGX_MCP_LINKS);

    if (w->sending == 0 && w->waiting == 0) {

        /* it was one of many of these */

        ngx_mcp_hash_remove_locked(zone, w);
        ngx_mcp_drop_locked(zone, w);
        ngx_mcp_zone_unlock(zone);

        return NGX_AGAIN;
    }

    ngx_mcp_touch(zone, w);

    if (w->sending == 0) {
        m = ngx_mcp_block(zone, w->waiting);
        ngx_mcp_touch(zone, m);
        m->rec.flags |= NGX_MCP_PENDING_SENDING;

        w->sending = w->waiting;
        w->waiting = 0;
    }

    w->deadline = ngx_current_msec + NGX_MCP_PENDING_CLAIM;
    ngx_mcp_window_insert_locked(zone, w);

    m = ngx_mcp_block(zone, w->sending);

    out->owed.ref = ngx_mcp_ref(zone, m);
    out->owed.only = w->only;
    out->flags = w->rec.flags;
    out->level = m->level;
    out->count = (m->rec.flags & NGX_MCP_PENDING_COUNTED) ? m->count : 0;

    for (i = 0; i < NGX_MCP_PENDING_COUNTS; i++) {
        out->counts[i] = m->counts[i];
    }

    from = w->endpoint_len + w->tenant_len;
    rc = NGX_OK;

    if (ngx_mcp_copy(zone, w, 0, w->endpoint_len, pool, &out->endpoint)
        != NGX_OK
        || ngx_mcp_copy(zone, w, w->endpoint_len, w->tenant_len, pool,
                        &out->tenant)
           != NGX_OK
        || ngx_mcp_copy(zone, w, from, w->rec.len - from, pool, &out->session)
           != NGX_OK
        || ngx_mcp_copy(zone, m, 0, m->rec.len, pool, &out->text) != NGX_OK)
    {
        rc = NGX_AGAIN;
    }

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_mcp_window_sh_t *
ngx_mcp_window_due_locked(ngx_mcp_zone_t *zone, ngx_msec_t *next)
{
    uint32_t              n;
    uint64_t              now, earliest;
    ngx_uint_t            i, forgotten;
    ngx_mcp_window_sh_t  *w;

    now = ngx_current_msec;
    earliest = 0;
    forgotten = 0;

    for (i = 0; i < NGX_MCP_WINDOW_CLASSES; i++) {

        while ((n = zone->root->windows[i].head) != 0) {
            w = ngx_mcp_block(zone, n);

            if (w->deadline > now) {
                earliest = earliest ? ngx_min(earliest, w->deadline)
                                    : w->deadline;
                break;
            }

            if (w->waiting || w->sending
                || forgotten++ == NGX_MCP_PENDING_FORGET)
            {
                return w;
            }

            ngx_mcp_list_remove(zone, &zone->root->windows[i], n,
                                NGX_MCP_LINKS);
            ngx_mcp_hash_remove_locked(zone, w);
            ngx_mcp_drop_locked(zone, w);
            ngx_mcp_step_locked(zone);
        }
    }

    *next = earliest ? (ngx_msec_t) (earliest - now) : 0;

    return NULL;
}


static void
ngx_mcp_pending_log(ngx_mcp_zone_t *zone, ngx_mcp_pending_out_t *out)
{
    ngx_str_t        *endpoint, *tenant;
    ngx_str_t         parts[NGX_MCP_PENDING_PARTS];
    ngx_uint_t        n;
    ngx_mcp_event_t   event;
    u_char            buf[NGX_MCP_PENDING_BUF];

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));

    event.parts = parts;
    event.nparts = ngx_mcp_pending_parts(&out->text, out->counts, out->count,
                                         buf, parts);
    event.level = out->level;
    event.owed = &out->owed;

    endpoint = (out->flags & NGX_MCP_WINDOW_ENDPOINT) ? &out->endpoint : NULL;
    tenant = (out->flags & NGX_MCP_WINDOW_TENANT) ? &out->tenant : NULL;

    if (out->flags & NGX_MCP_WINDOW_SESSION) {
        (void) ngx_mcp_log_session_id(zone, &out->session, endpoint, tenant,
                                      &event);
        return;
    }

    (void) ngx_mcp_log_groups(zone, endpoint, tenant, &event, &n);
}


ngx_uint_t
ngx_mcp_pending_parts(ngx_str_t *text, size_t *counts, uint64_t count,
    u_char *buf, ngx_str_t *parts)
{
    size_t      from;
    ngx_str_t   said;
    ngx_uint_t  i, n;

    n = 0;
    from = 0;

    if (count) {
        said.data = buf;
        said.len = ngx_sprintf(buf, ",\"count\":%uL", count) - buf;

        for (i = 0; i < NGX_MCP_PENDING_COUNTS && counts[i]; i++) {
            parts[n].data = text->data + from;
            parts[n++].len = counts[i] - from;
            parts[n++] = said;
            from = counts[i];
        }
    }

    parts[n].data = text->data + from;
    parts[n++].len = text->len - from;

    return n;
}


/* the next window begins when this one was sent */

static void
ngx_mcp_pending_done(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    uint32_t               n;
    ngx_mcp_window_sh_t   *w;
    ngx_mcp_pending_sh_t  *m;

    ngx_mcp_zone_lock(zone);

    m = ngx_mcp_record(zone, ref, NGX_MCP_PENDING);

    if (m) {
        n = m->rec.owner.block;
        w = ngx_mcp_block(zone, n);

        ngx_mcp_list_remove(zone, &zone->root->windows[w->class], n,
                            NGX_MCP_LINKS);
        ngx_mcp_touch(zone, w);
        w->sending = 0;
        ngx_mcp_drop_locked(zone, m);

        w->deadline = ngx_current_msec + w->time;
        ngx_mcp_window_insert_locked(zone, w);
    }

    ngx_mcp_zone_unlock(zone);
}


/* what is still to be logged for a group, or NULL */

ngx_mcp_pending_sh_t *
ngx_mcp_pending_owed_locked(ngx_mcp_zone_t *zone, ngx_mcp_owed_t *owed,
    uint64_t number)
{
    ngx_mcp_pending_sh_t  *m;

    m = ngx_mcp_record(zone, owed->ref, NGX_MCP_PENDING);

    return (m && m->number < number) ? m : NULL;
}
