
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_save.h"


/* limits of one hold of the lock: blocks examined, bytes written, usec */
#define NGX_MCP_SAVE_BLOCKS  1024
#define NGX_MCP_SAVE_BYTES   (64 * 1024)
#define NGX_MCP_SAVE_USEC    500


static ngx_uint_t ngx_mcp_save_late(struct timespec *start);
static void ngx_mcp_save_record_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_record_sh_t *rec,
    ngx_mcp_save_counts_t *counts);
static size_t ngx_mcp_save_begin(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_uint_t tag, ngx_mcp_record_sh_t *rec);
static uint64_t ngx_mcp_save_ref(ngx_mcp_ref_t ref);
static void ngx_mcp_save_text_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_uint_t tag, void *rec, size_t from,
    size_t len);
static void ngx_mcp_save_names_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_group_sh_t *g);
static void ngx_mcp_save_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_group_sh_t *g);
static void ngx_mcp_save_session_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_session_sh_t *s);
static void ngx_mcp_save_extension_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_extension_sh_t *e);
static void ngx_mcp_save_subscription_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_subscription_sh_t *sub);
static void ngx_mcp_save_upstream_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_upstream_session_sh_t *us);
static void ngx_mcp_save_call_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_call_sh_t *c);
static void ngx_mcp_save_event_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_event_sh_t *e);
static void ngx_mcp_save_topic_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_topic_sh_t *t);
static void ngx_mcp_save_lease_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_tlv_t *out, ngx_mcp_lease_sh_t *l);


void
ngx_mcp_save_zone(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out)
{
    size_t              begin;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    ngx_mcp_zone_lock(zone);

    begin = ngx_mcp_tlv_begin(out, NGX_MCP_TLV_ZONE);

    ngx_mcp_tlv_data(out, NGX_MCP_TLV_HASH_KEY, sh->key, sizeof(sh->key));
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_GENERATION, sh->generation);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_STAMP, sh->stamp);

    ngx_mcp_tlv_end(out, begin);

    ngx_mcp_zone_unlock(zone);
}


ngx_int_t
ngx_mcp_save_slice(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    uint32_t *next, ngx_mcp_save_counts_t *counts)
{
    u_char                *pos, *begin;
    uint32_t               n;
    ngx_int_t              rc;
    ngx_uint_t             i;
    struct timespec        start;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_save_counts_t  before;

    rc = NGX_DONE;
    begin = out->pos;
    out->full = 0;

    ngx_mcp_zone_lock(zone);

    (void) clock_gettime(CLOCK_MONOTONIC, &start);

    n = ngx_max(*next, 1);

    for (i = 1; n < zone->sh->watermark; i++, n++) {

        if (i % NGX_MCP_SAVE_BLOCKS == 0
            || out->pos - begin >= NGX_MCP_SAVE_BYTES
            || (i % 16 == 0 && ngx_mcp_save_late(&start)))
        {
            rc = NGX_AGAIN;
            break;
        }

        rec = ngx_mcp_block(zone, n);

        if (rec->block.type == NGX_MCP_FREE) {
            continue;
        }

        pos = out->pos;
        before = *counts;

        ngx_mcp_save_record_locked(zone, out, rec, counts);

        if (out->full) {
            out->pos = pos;
            *counts = before;
            rc = (pos == out->start) ? NGX_BUSY : NGX_AGAIN;
            break;
        }
    }

    *next = n;

    ngx_mcp_zone_unlock(zone);

    return rc;
}


static ngx_uint_t
ngx_mcp_save_late(struct timespec *start)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return (now.tv_sec - start->tv_sec) * 1000000
           + (now.tv_nsec - start->tv_nsec) / 1000
           >= NGX_MCP_SAVE_USEC;
}


static void
ngx_mcp_save_record_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_record_sh_t *rec, ngx_mcp_save_counts_t *counts)
{
    ngx_mcp_session_sh_t  *s;

    switch (rec->block.type) {

    case NGX_MCP_GROUP:
    case NGX_MCP_ENDPOINT:
        ngx_mcp_save_group_locked(zone, out, (ngx_mcp_group_sh_t *) rec);
        break;

    case NGX_MCP_SESSION:
        s = (ngx_mcp_session_sh_t *) rec;

        if (!s->ended && !s->subscriber.listens && !s->exclusive) {
            ngx_mcp_save_session_locked(zone, out, s);
            counts->sessions++;
        }

        break;

    case NGX_MCP_SUBSCRIPTION:
        ngx_mcp_save_subscription_locked(zone, out,
                                         (ngx_mcp_subscription_sh_t *) rec);
        break;

    case NGX_MCP_UPSTREAM_SESSION:
        ngx_mcp_save_upstream_locked(zone, out,
                                     (ngx_mcp_upstream_session_sh_t *) rec);
        break;

    case NGX_MCP_CALL:
        ngx_mcp_save_call_locked(zone, out, (ngx_mcp_call_sh_t *) rec);
        break;

    case NGX_MCP_EVENT:
        ngx_mcp_save_event_locked(zone, out, (ngx_mcp_event_sh_t *) rec);
        break;

    case NGX_MCP_TOPIC:
        ngx_mcp_save_topic_locked(zone, out, (ngx_mcp_topic_sh_t *) rec);
        break;

    case NGX_MCP_LEASE:
        ngx_mcp_save_lease_locked(zone, out, (ngx_mcp_lease_sh_t *) rec);
        break;

    default:
        break;
    }
}


static size_t
ngx_mcp_save_begin(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out, ngx_uint_t tag,
    ngx_mcp_record_sh_t *rec)
{
    size_t  begin;

    begin = ngx_mcp_tlv_begin(out, tag);

    ngx_mcp_tlv_number(out, NGX_MCP_TLV_REF,
                       ngx_mcp_save_ref(ngx_mcp_ref(zone, rec)));
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_OWNER, ngx_mcp_save_ref(rec->owner));

    return begin;
}


static uint64_t
ngx_mcp_save_ref(ngx_mcp_ref_t ref)
{
    return ref.block ? (uint64_t) ref.gen << 32 | ref.block : 0;
}


static void
ngx_mcp_save_text_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_uint_t tag, void *rec, size_t from, size_t len)
{
    u_char  *p;

    if (len == 0) {
        return;
    }

    p = ngx_mcp_tlv_room(out, tag, len);

    if (p) {
        ngx_mcp_text_read(zone, rec, from, p, len);
    }
}


static void
ngx_mcp_save_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_group_sh_t *g)
{
    size_t                begin;
    ngx_mcp_losses_sh_t  *l;

    begin = ngx_mcp_save_begin(zone, out,
                               g->rec.block.type == NGX_MCP_GROUP
                               ? NGX_MCP_TLV_GROUP : NGX_MCP_TLV_ALL_TENANTS,
                               &g->rec);

    ngx_mcp_save_names_locked(zone, out, g);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_EVENT_MAX, g->event_max);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_EVENT_SIZE, g->event_size);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LAST, g->log.last);

    l = ngx_mcp_block(zone, g->losses);
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_LOSSES, l, 0,
                             l->rec.len);

    ngx_mcp_tlv_end(out, begin);
}


static void
ngx_mcp_save_names_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_group_sh_t *g)
{
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_ENDPOINT, g, 0,
                             g->endpoint_len);
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_TENANT, g,
                             g->endpoint_len, g->rec.len - g->endpoint_len);
}


static void
ngx_mcp_save_session_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_session_sh_t *s)
{
    size_t                   begin;
    ngx_mcp_group_sh_t      *g;
    ngx_mcp_account_sh_t    *a;
    ngx_mcp_extension_sh_t  *e;

    g = ngx_mcp_session_group(zone, s);
    e = ngx_mcp_session_extension(zone, s);
    a = ngx_mcp_block(zone, s->rec.account);

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_SESSION, &s->rec);

    ngx_mcp_tlv_data(out, NGX_MCP_TLV_ID, s->id, NGX_MCP_UUID_LEN);
    ngx_mcp_save_names_locked(zone, out, g);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_ACCOUNT, a->key);

    ngx_mcp_tlv_number(out, NGX_MCP_TLV_SEEN, e->seen);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_IDLE,
                        s->nstreams || s->ncalls
                        || ngx_current_msec < s->touched
                        ? 0 : ngx_current_msec - s->touched);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_USED, s->used);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_TIMEOUT, s->timeout);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LEVEL, s->subscriber.level);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_EVENT_MAX, s->event_max);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_EVENT_SIZE, s->event_size);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_CHANNEL, s->channel);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LAST, s->log.last);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_OFFERED, s->subscriber.offered);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_OWN_LISTS, s->subscriber.own_lists);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_READ_OWN, s->subscriber.delivered.own);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_READ_GROUP,
                       s->subscriber.delivered.group);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_READ_ENDPOINT,
                       s->subscriber.delivered.endpoint);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_TAKEN, s->log.nread);

    ngx_mcp_save_extension_locked(zone, out, e);

    ngx_mcp_tlv_end(out, begin);
}


static void
ngx_mcp_save_extension_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_extension_sh_t *e)
{
    size_t               from;
    ngx_mcp_limit_sh_t  *l;

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_CLIENT_NAME, e, 0,
                             e->name_len);
    from = e->name_len;
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_CLIENT_VERSION, e,
                             from, e->version_len);
    from += e->version_len;
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_LIST_KEY, e, from,
                             e->key_len);
    from += e->key_len;
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_IDENTITY, e, from,
                             e->identity_len);
    from += e->identity_len;
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_INITIALIZE, e, from,
                             e->rec.len - from);

    ngx_mcp_tlv_number(out, NGX_MCP_TLV_CREATED, e->created);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_START, e->start);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_START_ENDPOINT, e->start_endpoint);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_BEGIN, e->begin);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_GAP, e->gap);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_COUNT, e->calls);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_REVISION, e->revision);

    if (e->limit) {
        l = ngx_mcp_block(zone, e->limit);

        ngx_mcp_tlv_number(out, NGX_MCP_TLV_LIMITED, 1);
        ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_LIMIT_KEY, l,
                                 l->endpoint_len,
                                 l->rec.len - l->endpoint_len);
    }
}


static void
ngx_mcp_save_subscription_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_subscription_sh_t *sub)
{
    size_t                          begin;
    uint64_t                        flags;
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_upstream_session_sh_t  *us;

    flags = 0;

    if (sub->interest.block) {
        flags |= NGX_MCP_TLV_INTEREST;

        in = ngx_mcp_record(zone, sub->interest, NGX_MCP_INTEREST);

        if (in && in->state == NGX_MCP_INTEREST_MADE) {
            us = ngx_mcp_block(zone, in->rec.owner.block);
            flags |= (in->serial == us->serial) ? NGX_MCP_TLV_ACCEPTED : 0;
        }
    }

    if (ngx_mcp_record(zone, sub->topic, NGX_MCP_TOPIC)) {
        flags |= NGX_MCP_TLV_TOPIC_KEPT;
    }

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_SUBSCRIPTION, &sub->rec);

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_URI, sub, 0,
                             sub->rec.len);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_UPSTREAM, sub->upstream);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FLAGS, flags);

    ngx_mcp_tlv_end(out, begin);
}


/*
 * Saves an upstream session that is open at the upstream.  Any other one is
 * made again when a client needs it.
 */

static void
ngx_mcp_save_upstream_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_upstream_session_sh_t *us)
{
    size_t                 begin;
    ngx_mcp_account_sh_t  *a;

    if (us->state != NGX_MCP_UPSTREAM_SESSION_MADE) {
        return;
    }

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_UPSTREAM_SESSION,
                               &us->rec);

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_NAME, us, 0,
                             us->upstream_len);
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_TEXT, us,
                             us->upstream_len,
                             us->rec.len - us->upstream_len);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_REVISION, us->revision);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_SERIAL, us->serial);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LEVEL, us->level);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FLAGS,
                        us->had_stream ? NGX_MCP_TLV_CONNECTED : 0);

    if (ngx_mcp_record(zone, us->rec.owner, NGX_MCP_GROUP)) {
        a = ngx_mcp_block(zone, us->rec.account);

        ngx_mcp_tlv_number(out, NGX_MCP_TLV_AUDIENCE, us->audience);
        ngx_mcp_tlv_number(out, NGX_MCP_TLV_LIMITED, us->limit ? 1 : 0);
        ngx_mcp_tlv_number(out, NGX_MCP_TLV_ACCOUNT, a->key);
        ngx_mcp_tlv_data(out, NGX_MCP_TLV_ID, us->session,
                          NGX_MCP_UUID_LEN);
    }

    ngx_mcp_tlv_end(out, begin);
}


/* saves a call if a client can resume its channel */

static void
ngx_mcp_save_call_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_call_sh_t *c)
{
    size_t    begin;
    uint64_t  flags;

    if (!(c->task.rec.flags & NGX_MCP_CALL_STREAMED)) {
        return;
    }

    flags = 0;

    if (c->task.rec.flags & NGX_MCP_CALL_RUNNING) {
        flags |= NGX_MCP_TLV_RUNNING;
    }

    if (c->task.rec.flags & NGX_MCP_CALL_ANSWERED) {
        flags |= NGX_MCP_TLV_ANSWERED;
    }

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_CALL, &c->task.rec);

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_ID, c, 0, c->id_len);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_CHANNEL, c->channel);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FLAGS, flags);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LAST, c->log.last);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_READ_OWN, c->delivered);

    ngx_mcp_tlv_end(out, begin);
}


static void
ngx_mcp_save_event_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_event_sh_t *e)
{
    size_t      begin;
    uint64_t    target[3 + NGX_MCP_EVENT_URIS];
    ngx_uint_t  i, any;

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_EVENT, &e->rec);

    ngx_mcp_tlv_number(out, NGX_MCP_TLV_POSITION, e->pos);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_STAMP, e->stamp);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FLAGS, e->rec.flags);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LEVEL, e->level);

    target[0] = e->target.identity;
    target[1] = e->target.audience;
    target[2] = e->target.flags;

    for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
        target[3 + i] = e->target.uri[i];
    }

    for (any = 0, i = 0; i < 3 + NGX_MCP_EVENT_URIS; i++) {
        any |= (target[i] != 0);
    }

    if (any) {
        ngx_mcp_tlv_data(out, NGX_MCP_TLV_TARGET, target, sizeof(target));
    }

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_TEXT, e, 0,
                             e->rec.len);

    ngx_mcp_tlv_end(out, begin);
}


static void
ngx_mcp_save_topic_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_topic_sh_t *t)
{
    size_t                 begin;
    uint64_t               flags;
    ngx_mcp_session_sh_t  *s;

    flags = 0;

    if (t->rec.flags & NGX_MCP_TOPIC_OTHER) {
        flags |= NGX_MCP_TLV_OTHER;
    }

    if (t->rec.flags & NGX_MCP_TOPIC_ANNOUNCED) {
        flags |= NGX_MCP_TLV_ANNOUNCED;
    }

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_TOPIC, &t->rec);

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_URI, t, 0, t->rec.len);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FLAGS, flags);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LAST, t->log.last);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_ORDER, t->order);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_TIME, t->time);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_LOST, t->lost);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_IDLE,
                        ngx_current_msec < t->used ? 0
                        : ngx_current_msec - t->used);

    s = ngx_mcp_session_locked(zone, t->charged);

    if (s) {
        ngx_mcp_tlv_data(out, NGX_MCP_TLV_ID, s->id, NGX_MCP_UUID_LEN);
    }

    ngx_mcp_tlv_end(out, begin);
}


static void
ngx_mcp_save_lease_locked(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out,
    ngx_mcp_lease_sh_t *l)
{
    size_t  begin;

    begin = ngx_mcp_save_begin(zone, out, NGX_MCP_TLV_LEASE, &l->rec);

    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_KEY, l, 0, l->key_len);
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_ID, l, l->key_len,
                             l->id_len);
    ngx_mcp_save_text_locked(zone, out, NGX_MCP_TLV_NOTE, l,
                             l->key_len + NGX_MCP_LEASE_ID_MAX, l->note_len);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FENCE, l->holder.fence);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_COUNT, l->consumed);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_USER, l->user);
    ngx_mcp_tlv_number(out, NGX_MCP_TLV_FLAGS,
                        l->rec.flags & NGX_MCP_LEASE_READ
                        ? NGX_MCP_TLV_CONNECTED : 0);

    ngx_mcp_tlv_end(out, begin);
}


/* saves the ids of events, except for events that are still being delivered */

void
ngx_mcp_save_event_ids(ngx_mcp_zone_t *zone, ngx_mcp_tlv_t *out)
{
    size_t                     begin;
    ngx_uint_t                 i;
    ngx_mcp_root_sh_t         *root;
    ngx_mcp_idempotency_sh_t  *o;

    root = zone->root;
    out->full = 0;

    ngx_mcp_zone_lock(zone);

    for (i = 0; i < NGX_MCP_IDEMPOTENCY; i++) {
        o = &root->idempotency[(root->oldest + i) % NGX_MCP_IDEMPOTENCY];

        if (o->key == 0 || ngx_mcp_record(zone, o->item, NGX_MCP_ITEM)) {
            continue;
        }

        begin = ngx_mcp_tlv_begin(out, NGX_MCP_TLV_EVENT_ID);

        ngx_mcp_tlv_number(out, NGX_MCP_TLV_KEY, o->key);
        ngx_mcp_tlv_number(out, NGX_MCP_TLV_COUNT, o->sessions);

        ngx_mcp_tlv_end(out, begin);
    }

    ngx_mcp_zone_unlock(zone);
}
