
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* limits of one hold of the lock; bytes of the journal for each target */
#define NGX_MCP_SEND_TARGETS    32
#define NGX_MCP_SEND_BLOCKS     256
#define NGX_MCP_SEND_JOURNAL    8192

/* most groups or items that are examined under one hold of the lock */
#define NGX_MCP_SEND_EXAMINE    64

/* in one turn: most targets that get an event, and most groups examined */
#define NGX_MCP_SEND_TURN       512
#define NGX_MCP_SEND_TURN_GROUPS  2048

/* most items that are delivered in one turn */
#define NGX_MCP_SEND_DUE        64

/* the working memory of a post with more deliveries comes from a pool */
#define NGX_MCP_SEND_LOCAL      2

/* items may occupy 1/8 of the zone, open windows 1/16 */
#define NGX_MCP_ITEMS_SHARE     8
#define NGX_MCP_WINDOWS_SHARE   16

/*
 * bytes; no window follows one whose endpoint and tenant are longer than this
 */
#define NGX_MCP_WINDOW_NAMES    2048

/* windows examined to find the place of a new one */
#define NGX_MCP_WINDOW_STEPS    64

#define NGX_MCP_SEND_PARTS      (2 * NGX_MCP_SEND_COUNTS + 1)
#define NGX_MCP_SEND_BUF        (sizeof(",\"count\":") + NGX_INT64_LEN)

/* parts of a delivery in an item: head, endpoint, tenant, URI, then the text */
#define NGX_MCP_SEND_FIELDS     4


/* a delivery as this process works on it */

typedef struct {
    ngx_mcp_delivery_sh_t   head;
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               uri;
    ngx_str_t               session;
    ngx_str_t              *text;         /* text in parts, without "count" */
    ngx_uint_t              ntext;
    ngx_mcp_event_t         event;
    ngx_mcp_log_input_t     in;
    ngx_str_t               whole;        /* the text if it has one part only */
    uint64_t                key;          /* key of its coalescing window */
    ngx_mcp_stage_t         stage;        /* text of the window's record */

    unsigned                addressed:1;
    unsigned                joins:1;      /* it joins an open window */
    unsigned                opens:1;      /* it opens a new window */
    unsigned                not_kept:1;

    /* room for the parts of the text; not initialized */

    ngx_str_t               parts[NGX_MCP_SEND_PARTS];
    u_char                  buf[NGX_MCP_SEND_BUF];
    ngx_str_t               fields[NGX_MCP_SEND_FIELDS + 1];
} ngx_mcp_out_t;


/* one of the sessions, calls, groups or windows to which a delivery goes */

typedef struct {
    ngx_uint_t              out;          /* index of the delivery */
    ngx_uint_t              has_room;     /* 1: there is room for the event */
    ngx_mcp_ref_t           ref;          /* session, call or group; block 0:
                                             the delivery's window */
    uint32_t                session;      /* block of the session whose log gets
                                             the event, or 0 */
    ngx_mcp_progress_sh_t   after;        /* progress of the item when this
                                             target is done */
} ngx_mcp_target_t;


typedef struct {
    ngx_mcp_post_t         *post;
    ngx_mcp_out_t          *outs;
    ngx_uint_t              n;
    ngx_mcp_ref_t           item;         /* block 0: there is no item */
    ngx_mcp_progress_sh_t   at;           /* progress if there is no item */
    ngx_uint_t              done;         /* number of targets that are done */
    ngx_uint_t              examined;     /* groups examined in this turn */
    ngx_uint_t              large;        /* number of targets for which the
                                             event is too large */
    ngx_uint_t              full;         /* number of targets without room */
    ngx_uint_t              delivered;    /* number of targets that got the
                                             event */
    ngx_uint_t              missed;       /* number of sessions that got a
                                             gap */
    ngx_msec_t              due;          /* ms until the first new window ends;
                                             0: there is none */
    ngx_mcp_stage_t        *staged;       /* the text that is staged, or NULL */
    ngx_uint_t              new;          /* 1: nothing of the post is noted in
                                             the zone yet */

    /* valid under one hold of the lock */

    ngx_uint_t              direct;       /* number of deliveries to a session
                                             or call */
    ngx_uint_t              existing;     /* number of these that exist */
    ngx_uint_t              more;         /* 1: there are more targets than one
                                             hold of the lock delivers to */
    ngx_uint_t              now_examined; /* number of groups examined */
    ngx_uint_t              blocks;       /* blocks of texts that are not
                                             staged */
    ngx_mcp_stage_t        *stage;        /* the text that has to be staged, or
                                             NULL */
    ngx_mcp_progress_sh_t   end;          /* progress behind the last target */
    ngx_uint_t              ntargets;
    ngx_mcp_target_t        targets[NGX_MCP_SEND_TARGETS];
} ngx_mcp_sending_t;


static void ngx_mcp_send_count(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd);
static void ngx_mcp_out_prepare(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_mcp_delivery_t *d);
static void ngx_mcp_out_init(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out);
static ngx_uint_t ngx_mcp_out_fields(ngx_mcp_out_t *out, ngx_str_t *fields);
static ngx_uint_t ngx_mcp_out_needs(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out);
static ngx_int_t ngx_mcp_out_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out, ngx_mcp_groups_t *cur);
static ngx_int_t ngx_mcp_out_channel_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out, ngx_mcp_ref_t *ref);
static ngx_int_t ngx_mcp_send(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd);
static void ngx_mcp_send_unfinished_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume);
static ngx_uint_t ngx_mcp_send_repeated_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_post_t *post);
static void ngx_mcp_send_find_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_mcp_progress_sh_t *at);
static void ngx_mcp_send_find_out_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_uint_t i, ngx_mcp_progress_sh_t *at);
static void ngx_mcp_send_add_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_uint_t i, ngx_mcp_ref_t *ref,
    ngx_mcp_progress_sh_t *after);
static ngx_int_t ngx_mcp_send_stage_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static void ngx_mcp_send_unstage_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static ngx_uint_t ngx_mcp_send_room_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static void ngx_mcp_send_shrink_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static ngx_uint_t ngx_mcp_send_fits_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out, ngx_mcp_ref_t ref);
static ngx_int_t ngx_mcp_send_consume_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static void ngx_mcp_send_deliver_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_mcp_progress_sh_t *at);
static void ngx_mcp_send_move_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_mcp_progress_sh_t *at,
    ngx_mcp_progress_sh_t *after);
static void ngx_mcp_send_one_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_mcp_out_t *out, ngx_mcp_ref_t ref,
    ngx_uint_t has_room);
static ngx_int_t ngx_mcp_send_channel_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out, ngx_mcp_ref_t ref, ngx_uint_t has_room);
static ngx_int_t ngx_mcp_send_item(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static ngx_int_t ngx_mcp_send_turn(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd);
static ngx_int_t ngx_mcp_item_load(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_pool_t *pool, ngx_mcp_sending_t *snd);
static u_char *ngx_mcp_out_field(ngx_str_t *field, u_char *p, size_t len);
static void ngx_mcp_item_take_over_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_item_sh_t *it);
static ngx_uint_t ngx_mcp_item_in_background_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_item_sh_t *it);
static void ngx_mcp_item_drop_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_item_sh_t *it);
static void ngx_mcp_coalescing_decide_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out);
static ngx_mcp_item_sh_t *ngx_mcp_coalescing_find_locked(ngx_mcp_zone_t *zone,
    uint64_t key);
static uint64_t ngx_mcp_coalescing_key(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out);
static void ngx_mcp_coalescing_use_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_sending_t *snd, ngx_mcp_out_t *out, ngx_uint_t has_room);
static void ngx_mcp_coalescing_open_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out);
static void ngx_mcp_coalescing_insert_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_item_sh_t *w, uint32_t time);
static void ngx_mcp_coalescing_join_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_out_t *out, ngx_uint_t has_room);
static ngx_int_t ngx_mcp_outbox_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t *at, ngx_mcp_ref_t *ref, ngx_msec_t *next);
static void ngx_mcp_coalescing_end_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_item_sh_t *w);


ngx_uint_t
ngx_mcp_log_gap(ngx_mcp_zone_t *zone, ngx_str_t *endpoint, ngx_str_t *tenant)
{
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    ngx_memzero(&post, sizeof(ngx_mcp_post_t));
    ngx_memzero(&d, sizeof(ngx_mcp_delivery_t));

    post.deliveries = &d;
    post.n = 1;

    d.endpoint = endpoint;
    d.tenant = tenant;
    d.addressed = 1;
    d.gap = 1;

    (void) ngx_mcp_outbox_send(zone, &post);

    return post.sessions;
}


ngx_int_t
ngx_mcp_topic_add(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_mcp_topic_t *topic, ngx_mcp_event_t *event,
    ngx_str_t *session)
{
    ngx_mcp_post_t      post;
    ngx_mcp_delivery_t  d;

    ngx_memzero(&post, sizeof(ngx_mcp_post_t));
    ngx_memzero(&d, sizeof(ngx_mcp_delivery_t));

    post.deliveries = &d;
    post.n = 1;

    d.event = *event;
    d.endpoint = endpoint;
    d.tenant = tenant;
    d.topic = *topic;

    if (session) {
        d.session = *session;
    }

    (void) ngx_mcp_outbox_send(zone, &post);

    return d.not_kept ? NGX_ERROR : NGX_OK;
}


ngx_int_t
ngx_mcp_outbox_send(ngx_mcp_zone_t *zone, ngx_mcp_post_t *post)
{
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_mcp_out_t      *outs, local[NGX_MCP_SEND_LOCAL];
    ngx_mcp_sending_t   snd;

    outs = local;

    if (post->n > NGX_MCP_SEND_LOCAL) {
        outs = ngx_pnalloc(post->pool, post->n * sizeof(ngx_mcp_out_t));
        if (outs == NULL) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < post->n; i++) {
        ngx_mcp_out_prepare(zone, &outs[i], &post->deliveries[i]);
    }

    if (post->consume) {
        ngx_mcp_consume_init(zone, post->consume);
    }

    ngx_memzero(&snd, offsetof(ngx_mcp_sending_t, targets));

    snd.post = post;
    snd.outs = outs;
    snd.n = post->n;
    snd.new = 1;

    rc = ngx_mcp_send(zone, &snd);

    if (rc == NGX_AGAIN) {
        rc = ngx_mcp_send_item(zone, &snd);

        if (rc == NGX_OK) {
            rc = ngx_mcp_send_turn(zone, &snd);
        }
    }

    ngx_mcp_send_count(zone, &snd);

    post->large = (snd.large != 0);
    post->missed = snd.missed;

    for (i = 0; i < post->n; i++) {
        post->deliveries[i].not_kept = outs[i].not_kept;
    }

    if (rc == NGX_AGAIN && !post->attended) {
        ngx_mcp_doorbell_due(zone, 1);
    }

    if (rc == NGX_OK && snd.missed && !snd.delivered && snd.item.block == 0) {
        return NGX_ERROR;
    }

    return rc;
}


static void
ngx_mcp_send_count(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    if (snd->large) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_LARGE, snd->large);
    }

    if (snd->full) {
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_FULL, snd->full);
    }

    if (snd->due) {
        ngx_mcp_doorbell_due(zone, snd->due);
    }
}


static void
ngx_mcp_out_prepare(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_mcp_delivery_t *d)
{
    ngx_uint_t              i;
    ngx_mcp_delivery_sh_t  *head;

    ngx_memzero(out, offsetof(ngx_mcp_out_t, parts));

    head = &out->head;

    ngx_mcp_log_target(zone, &d->event, &head->target);

    if (d->endpoint) {
        head->how |= NGX_MCP_SEND_ENDPOINT;
        out->endpoint = *d->endpoint;
    }

    if (d->tenant) {
        head->how |= NGX_MCP_SEND_TENANT;
        out->tenant = *d->tenant;
    }

    if (d->session.data || d->ref.block) {
        head->how |= NGX_MCP_SEND_CHANNEL;
        head->ref = d->ref;
        out->session = d->session;
    }

    if (d->topic.uri.len) {
        head->how |= NGX_MCP_SEND_TOPIC
                     | (d->topic.other ? NGX_MCP_SEND_OTHER : 0)
                     | (d->topic.unannounced ? NGX_MCP_SEND_UNANNOUNCED : 0)
                     | (d->topic.existing ? NGX_MCP_SEND_EXISTING : 0);
        head->limit = (uint32_t) d->topic.limit;
        out->uri = d->topic.uri;

        /* in a topic, the first URI is the session that may read the event */

        head->target.uri[0] = d->session.data
                            ? ngx_mcp_hash(zone, &d->session, NULL) : 0;
    }

    if (d->gap) {
        head->how |= NGX_MCP_SEND_GAP;
    }

    if (d->coalesce_key.data) {
        head->coalesce_key = ngx_mcp_hash(zone, &d->coalesce_key, NULL) | 1;
        head->time = (uint32_t) ngx_min(d->time, 0xffffffff);
        head->count = d->count;

        if (d->counted) {
            head->how |= NGX_MCP_SEND_COUNTED;
        }

        for (i = 0; i < NGX_MCP_SEND_COUNTS; i++) {
            head->counts[i] = (uint32_t) d->counts[i];
        }
    }

    head->level = (uint16_t) d->event.level;
    head->flags = (uint32_t) d->event.flags;
    out->addressed = d->addressed;

    out->whole = d->text;
    out->text = &out->whole;
    out->ntext = d->gap ? 0 : 1;

    if (d->event.parts) {
        out->text = d->event.parts;
        out->ntext = d->event.nparts;
    }

    for (i = 0; i < out->ntext; i++) {
        head->text_len += (uint32_t) out->text[i].len;
    }

    ngx_mcp_out_init(zone, out);
}


/* inserts "count" into the text, and makes an event of the text */

static void
ngx_mcp_out_init(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out)
{
    size_t                  from;
    ngx_str_t               count;
    ngx_uint_t              i, n;
    ngx_mcp_delivery_sh_t  *head;

    head = &out->head;

    head->endpoint_len = (uint32_t) out->endpoint.len;
    head->tenant_len = (uint32_t) out->tenant.len;
    head->uri_len = (uint32_t) out->uri.len;

    out->event.level = head->level;
    out->event.flags = head->flags;
    out->event.parts = out->text;
    out->event.nparts = out->ntext;

    if (head->how & NGX_MCP_SEND_COUNTED && head->counts[0] && out->ntext) {
        from = 0;
        n = 0;

        count.data = out->buf;
        count.len = ngx_sprintf(out->buf, ",\"count\":%uL", head->count)
                    - out->buf;

        for (i = 0; i < NGX_MCP_SEND_COUNTS && head->counts[i]; i++) {
            out->parts[n].data = out->whole.data + from;
            out->parts[n++].len = head->counts[i] - from;
            out->parts[n++] = count;
            from = head->counts[i];
        }

        out->parts[n].data = out->whole.data + from;
        out->parts[n++].len = out->whole.len - from;

        out->event.parts = out->parts;
        out->event.nparts = n;
    }

    out->in.event = &out->event;
    out->in.target = head->target;

    ngx_mcp_stage_init(zone, &out->in.stage, NGX_MCP_EVENT, out->event.parts,
                       out->event.nparts);
    out->in.stage.room = NGX_MCP_ROOM_EVENT;

    /* a delivery that may join a window has a text of one part */

    if (head->coalesce_key) {
        ngx_mcp_stage_init(zone, &out->stage, NGX_MCP_ITEM, out->fields,
                           ngx_mcp_out_fields(out, out->fields));
    }
}


/* lists a delivery's parts as an item stores them; returns their number */

static ngx_uint_t
ngx_mcp_out_fields(ngx_mcp_out_t *out, ngx_str_t *fields)
{
    ngx_uint_t  i;

    fields[0].data = (u_char *) &out->head;
    fields[0].len = sizeof(ngx_mcp_delivery_sh_t);
    fields[1] = out->endpoint;
    fields[2] = out->tenant;
    fields[3] = out->uri;

    for (i = 0; i < out->ntext; i++) {
        fields[NGX_MCP_SEND_FIELDS + i] = out->text[i];
    }

    return NGX_MCP_SEND_FIELDS + out->ntext;
}


/* returns the blocks that a target needs; for a topic, with its announcement */

static ngx_uint_t
ngx_mcp_out_needs(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out)
{
    if (out->head.how & NGX_MCP_SEND_GAP) {
        return 0;
    }

    return ngx_mcp_stage_needs(&out->in.stage)
           + (out->head.how & NGX_MCP_SEND_TOPIC
              ? 1 + ngx_mcp_text_blocks(zone, NGX_MCP_TOPIC, out->uri.len) : 0);
}


/*
 * Finds the next target of a delivery.  NGX_OK: the target is cur->ref;
 * NGX_AGAIN: the group cur->ref is not a target, call again; NGX_DONE: there
 * are no more targets; NGX_DECLINED: the session or call does not exist.
 */

static ngx_int_t
ngx_mcp_out_next_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_mcp_groups_t *cur)
{
    ngx_int_t            rc;
    ngx_uint_t           how;
    ngx_mcp_group_sh_t  *g;

    how = out->head.how;

    if (how & NGX_MCP_SEND_CHANNEL) {

        if (cur->number) {
            return NGX_DONE;
        }

        cur->number = 1;
        rc = ngx_mcp_out_channel_locked(zone, out, &cur->ref);

        if (rc != NGX_OK || !(how & NGX_MCP_SEND_TOPIC)) {
            return rc;
        }

    } else {
        cur->endpoint = (how & NGX_MCP_SEND_ENDPOINT) ? &out->endpoint : NULL;
        cur->tenant = (how & NGX_MCP_SEND_TENANT) ? &out->tenant : NULL;

        /* an event for all tenants is stored once, in the endpoint's log */

        cur->type = (how & (NGX_MCP_SEND_TENANT|NGX_MCP_SEND_TOPIC))
                    ? NGX_MCP_GROUP : NGX_MCP_ENDPOINT;

        rc = ngx_mcp_groups_next_locked(zone, cur);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    g = ngx_mcp_block(zone, cur->ref.block);

    if (how & (NGX_MCP_SEND_OTHER|NGX_MCP_SEND_EXISTING)) {
        return ngx_mcp_topic_exists_locked(zone, g, &out->uri,
                                           (how & NGX_MCP_SEND_OTHER) != 0)
               ? NGX_OK : NGX_AGAIN;
    }

    return (g->sessions || how & NGX_MCP_SEND_TOPIC) ? NGX_OK : NGX_AGAIN;
}


/*
 * Finds the target of a delivery to a session or call.  NGX_OK; NGX_DONE: the
 * session does not get this event; NGX_DECLINED: the session or call is absent.
 */

static ngx_int_t
ngx_mcp_out_channel_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_mcp_ref_t *ref)
{
    ngx_mcp_target_sh_t    *target;
    ngx_mcp_session_sh_t   *s;
    ngx_mcp_delivery_sh_t  *head;

    head = &out->head;
    target = &head->target;

    if (out->session.data) {

        /* an item stores this reference instead of the session's id */

        ngx_memzero(&head->ref, sizeof(ngx_mcp_ref_t));

        s = ngx_mcp_session_lookup_locked(zone, &out->session);

        if (s == NULL
            || !ngx_mcp_group_matches(zone, ngx_mcp_session_group(zone, s),
                             (head->how & NGX_MCP_SEND_ENDPOINT)
                             ? &out->endpoint : NULL,
                             (head->how & NGX_MCP_SEND_TENANT)
                             ? &out->tenant : NULL))
        {
            return NGX_DECLINED;
        }

        if (head->how & NGX_MCP_SEND_TOPIC) {
            head->ref = ngx_mcp_ref(zone, s);
            *ref = s->rec.owner;
            return NGX_OK;
        }

        if (target->identity && target->identity != s->subscriber.identity) {
            return NGX_DECLINED;
        }

        if (ngx_mcp_subscriber_hidden_locked(zone, &s->subscriber, target)) {
            return NGX_DONE;
        }

        head->ref = ngx_mcp_ref(zone, s);
        *ref = head->ref;

        return NGX_OK;
    }

    *ref = head->ref;

    if (head->how & NGX_MCP_SEND_TOPIC) {
        s = ngx_mcp_session_locked(zone, head->ref);

        if (s) {
            *ref = s->rec.owner;
        }

        return s ? NGX_OK : NGX_DECLINED;
    }

    return ngx_mcp_log_owner_locked(zone, head->ref, &s) ? NGX_OK
                                                         : NGX_DECLINED;
}


/*
 * Delivers all of a new post, or a part of an item, under one hold of the lock.
 * NGX_OK: all is delivered, by any worker; NGX_AGAIN: more of the item, or all
 * of the new post, is left; other codes are those of ngx_mcp_outbox_send().
 */

static ngx_int_t
ngx_mcp_send(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    ngx_int_t                rc;
    ngx_uint_t               fits;
    ngx_mcp_post_t          *post;
    ngx_mcp_item_sh_t       *it;
    ngx_mcp_progress_sh_t   *at;

    post = snd->post;
    it = NULL;

    ngx_mcp_zone_lock(zone);

    if (snd->new && post->consume) {
        ngx_mcp_send_unfinished_locked(zone, post->consume);
    }

    do {
        at = &snd->at;

        if (snd->item.block) {
            it = ngx_mcp_record(zone, snd->item, NGX_MCP_ITEM);

            if (it == NULL) {
                ngx_mcp_send_unstage_locked(zone, snd);
                ngx_mcp_zone_unlock(zone);
                return NGX_OK;
            }

            at = &it->at;
        }

        ngx_mcp_send_find_locked(zone, snd, at);

        if (snd->new && ngx_mcp_send_repeated_locked(zone, post)) {
            ngx_mcp_send_unstage_locked(zone, snd);
            ngx_mcp_zone_unlock(zone);
            return NGX_DECLINED;
        }

        rc = ngx_mcp_send_stage_locked(zone, snd);

    } while (rc == NGX_AGAIN);

    snd->examined += snd->now_examined;

    if (snd->new && snd->more) {
        ngx_mcp_zone_unlock(zone);
        return NGX_AGAIN;
    }

    fits = ngx_mcp_send_room_locked(zone, snd);

    if (snd->new) {
        rc = (post->answered && !fits) ? NGX_ERROR
                                       : ngx_mcp_send_consume_locked(zone, snd);
    }

    if (rc == NGX_OK) {
        ngx_mcp_send_deliver_locked(zone, snd, at);

        if (snd->more) {
            rc = NGX_AGAIN;

        } else if (it) {
            ngx_mcp_item_drop_locked(zone, it);
        }
    }

    ngx_mcp_send_unstage_locked(zone, snd);
    ngx_mcp_zone_unlock(zone);

    return rc;
}


/* delivers the rest of the feed's previous event: events keep their order */

static void
ngx_mcp_send_unfinished_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_consume_t *consume)
{
    ngx_int_t      rc;
    ngx_mcp_ref_t  item;

    while (ngx_mcp_consume_unfinished_locked(zone, consume, &item)) {
        ngx_mcp_zone_unlock(zone);

        do {
            rc = ngx_mcp_outbox_run(zone, item, NULL);

        } while (rc == NGX_AGAIN);

        ngx_mcp_zone_lock(zone);

        if (rc == NGX_ERROR) {
            break;
        }
    }
}


/* returns whether an event with the post's id was consumed before */

static ngx_uint_t
ngx_mcp_send_repeated_locked(ngx_mcp_zone_t *zone, ngx_mcp_post_t *post)
{
    ngx_mcp_idempotency_sh_t  *o;

    o = post->id ? ngx_mcp_idempotency_find_locked(zone, post->id) : NULL;

    if (o == NULL) {
        return 0;
    }

    post->sessions = o->sessions;
    post->item = o->item;

    return 1;
}


/* finds the next targets; releases the lock for moments if the post is new */

static void
ngx_mcp_send_find_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_mcp_progress_sh_t *at)
{
    ngx_uint_t  i;

again:

    if (snd->new) {
        snd->post->sessions = 0;
    }

    snd->direct = 0;
    snd->existing = 0;
    snd->more = 0;
    snd->now_examined = 0;
    snd->blocks = 0;
    snd->stage = NULL;
    snd->ntargets = 0;
    snd->end = *at;

    for (i = at->delivery; i < snd->n && (snd->new || !snd->more); i++) {
        ngx_mcp_send_find_out_locked(zone, snd, i, at);

        if (!snd->more) {
            ngx_memzero(&snd->end, sizeof(ngx_mcp_progress_sh_t));
            snd->end.delivery = i + 1;
        }
    }

    if (snd->now_examined < NGX_MCP_SEND_EXAMINE) {
        return;
    }

    /* start over if a window ended while the lock was released */

    for (i = 0; snd->new && i < snd->n; i++) {
        if (snd->outs[i].joins
            && ngx_mcp_coalescing_find_locked(zone, snd->outs[i].key) == NULL)
        {
            goto again;
        }
    }
}


static void
ngx_mcp_send_find_out_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_uint_t i, ngx_mcp_progress_sh_t *at)
{
    ngx_int_t               rc;
    ngx_uint_t              how, counts;
    ngx_mcp_out_t          *out;
    ngx_mcp_groups_t        cur;
    ngx_mcp_group_sh_t     *g;
    ngx_mcp_progress_sh_t   p, after;

    out = &snd->outs[i];
    out->joins = 0;
    out->opens = 0;

    how = out->head.how;
    counts = snd->new && out->addressed;

    ngx_mcp_groups_init(&cur, NULL, NULL);
    ngx_memzero(&after, sizeof(ngx_mcp_progress_sh_t));
    ngx_memzero(&p, sizeof(ngx_mcp_progress_sh_t));

    p.delivery = i;

    if (i == at->delivery) {
        p = *at;
    }

    do {
        if (++snd->now_examined % NGX_MCP_SEND_EXAMINE == 0) {

            if (!snd->new) {
                snd->more = 1;
                snd->end = p;
                return;
            }

            if (!counts && snd->now_examined >= NGX_MCP_SEND_TURN_GROUPS) {

                /* the other targets are found in further turns */

                snd->more = 1;
                return;
            }

            ngx_mcp_zone_unlock(zone);
            ngx_mcp_zone_lock(zone);
        }

        cur.number = p.number;
        cur.ref = p.group;

        rc = ngx_mcp_out_next_locked(zone, out, &cur);

        if ((how & (NGX_MCP_SEND_CHANNEL|NGX_MCP_SEND_TOPIC))
            == NGX_MCP_SEND_CHANNEL)
        {
            snd->direct++;
            snd->existing += (rc != NGX_DECLINED);
        }

        if (rc == NGX_OK && out->head.coalesce_key && !p.opened) {
            ngx_mcp_coalescing_decide_locked(zone, out);

            p.opened = 1;
            after = p;

            if (out->joins) {

                /* targets of the window are searched when it ends */

                ngx_memzero(&after, sizeof(ngx_mcp_progress_sh_t));
                after.delivery = i + 1;
            }

            if (out->joins || out->opens) {
                ngx_mcp_send_add_locked(zone, snd, i, NULL, &after);
            }
        }

        p.number = cur.number;
        p.group = cur.ref;

        if (rc != NGX_OK) {
            continue;
        }

        if (counts) {
            g = ngx_mcp_group_locked(zone, cur.ref);
            snd->post->sessions += g ? g->sessions : 1;
        }

        if (!out->joins) {
            ngx_mcp_send_add_locked(zone, snd, i, &cur.ref, &p);
        }

    } while ((rc == NGX_AGAIN && (counts || !snd->more))
             || (rc == NGX_OK && !(how & NGX_MCP_SEND_CHANNEL)
                 && (counts || (!snd->more && !out->joins))));
}


/*
 * Adds a target to the targets of this hold of the lock, or notes that there
 * are more.  ref NULL: the target is the window of delivery i.  after: the
 * progress when the target is done.
 */

static void
ngx_mcp_send_add_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_uint_t i, ngx_mcp_ref_t *ref, ngx_mcp_progress_sh_t *after)
{
    ngx_uint_t         max, blocks, large;
    ngx_mcp_out_t     *out;
    ngx_mcp_stage_t   *stage;
    ngx_mcp_target_t  *t;

    if (snd->more) {
        return;
    }

    out = &snd->outs[i];
    stage = ref ? &out->in.stage : &out->stage;
    blocks = 0;

    /* the text is not stored if it is too large, or if a window is opened */

    if (ref ? ngx_mcp_send_fits_locked(zone, out, *ref) : out->joins) {
        blocks = stage->blocks;
    }

    large = (blocks > NGX_MCP_BLOCKS_SMALL);
    max = NGX_MCP_SEND_TARGETS;

    if (snd->new) {
        max = ngx_min(max, zone->sh->journal_size / NGX_MCP_SEND_JOURNAL);
    }

    if (snd->ntargets == max
        || (large && snd->stage)
        || (!large && snd->blocks + blocks > NGX_MCP_SEND_BLOCKS))
    {
        snd->more = 1;
        return;
    }

    t = &snd->targets[snd->ntargets++];

    ngx_memzero(&t->ref, sizeof(ngx_mcp_ref_t));
    t->session = 0;

    if (ref) {
        t->ref = *ref;
    }

    t->out = i;
    t->after = *after;
    snd->end = *after;

    if (large) {
        snd->stage = stage;
        stage->payer = t->ref;

    } else {
        snd->blocks += blocks;
    }
}


/*
 * Fills the blocks of a large text while the lock is released.  NGX_OK;
 * NGX_AGAIN: the lock was released, so the targets have to be found again.
 */

static ngx_int_t
ngx_mcp_send_stage_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    ngx_mcp_stage_t  *stage;

    stage = (snd->new && snd->more) ? NULL : snd->stage;

    if (snd->staged == stage) {
        return NGX_OK;
    }

    ngx_mcp_send_unstage_locked(zone, snd);

    if (stage == NULL) {
        return NGX_OK;
    }

    snd->staged = stage;

    ngx_mcp_zone_unlock(zone);

    (void) ngx_mcp_stage(zone, stage);

    ngx_mcp_zone_lock(zone);

    return NGX_AGAIN;
}


static void
ngx_mcp_send_unstage_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    if (snd->staged) {
        ngx_mcp_stage_drop_locked(zone, snd->staged);
        snd->staged = NULL;
    }
}


/*
 * Makes room for the targets.  Returns 0 if the post is "answered" and a target
 * has no room, else 1.
 */

static ngx_uint_t
ngx_mcp_send_room_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    ngx_uint_t         i, n, sum, fits, may, room;
    ngx_mcp_out_t     *out;
    ngx_mcp_target_t  *t;

    sum = 0;
    fits = 1;

    for (i = 0; i < snd->ntargets; i++) {
        t = &snd->targets[i];
        out = &snd->outs[t->out];

        if (t->ref.block) {
            may = ngx_mcp_send_fits_locked(zone, out, t->ref);
            room = NGX_MCP_ROOM_EVENT;
            n = ngx_mcp_out_needs(zone, out);
            t->has_room = may && ngx_mcp_stage_ready(zone, &out->in.stage);

        } else {
            may = 1;
            room = NGX_MCP_ROOM_OTHER;
            n = ngx_mcp_stage_needs(&out->stage);
            t->has_room = out->opens || ngx_mcp_stage_ready(zone, &out->stage);
        }

        t->has_room = t->has_room
                      && ngx_mcp_room_reserve_more_locked(zone, t->ref, room,
                                                          n, sum) == NGX_OK;

        if (t->has_room) {
            sum += n;

        } else if (snd->new && snd->post->answered && t->ref.block
                   && !(out->head.how & NGX_MCP_SEND_TOPIC))
        {
            fits = 0;
            ++*(may ? &snd->full : &snd->large);
        }
    }

    if (fits || !snd->new || !snd->post->answered) {
        ngx_mcp_send_shrink_locked(zone, snd);
    }

    return fits;
}


/*
 * Drops older events of the sessions that are targets, so that the new ones are
 * within the sessions' limits.  This may end the transaction, so it is done
 * before the event is consumed: everything after that is one transaction.
 */

static void
ngx_mcp_send_shrink_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    void                  *owner;
    ngx_uint_t             i, k, how, others;
    ngx_mcp_target_t      *t;
    ngx_mcp_session_sh_t  *s;

    for (i = 0; i < snd->ntargets; i++) {
        t = &snd->targets[i];
        how = snd->outs[t->out].head.how;

        if (!t->has_room || t->ref.block == 0
            || (how & (NGX_MCP_SEND_CHANNEL|NGX_MCP_SEND_TOPIC
                       |NGX_MCP_SEND_GAP))
               != NGX_MCP_SEND_CHANNEL)
        {
            continue;
        }

        owner = ngx_mcp_log_owner_locked(zone, t->ref, &s);

        if (owner == NULL) {
            continue;
        }

        t->session = ngx_mcp_number(zone, s);
        others = 0;

        for (k = 0; k < i; k++) {
            others += (snd->targets[k].session == t->session);
        }

        t->has_room = (ngx_mcp_log_shrink_locked(zone, s,
                                                 (owner == s) ? NULL : owner,
                                                 others)
                       == NGX_OK);
    }
}


/* returns whether the text is within the size limit of the target */

static ngx_uint_t
ngx_mcp_send_fits_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_mcp_ref_t ref)
{
    ngx_mcp_group_sh_t    *g;
    ngx_mcp_session_sh_t  *s;

    if (out->head.how & NGX_MCP_SEND_TOPIC) {
        return out->in.stage.len <= NGX_MCP_TOPIC_BYTES;
    }

    if (out->head.how & NGX_MCP_SEND_CHANNEL) {
        return ngx_mcp_log_owner_locked(zone, ref, &s)
               && out->in.stage.len <= s->event_size;
    }

    g = ngx_mcp_group_locked(zone, ref);

    return g && out->in.stage.len <= g->event_size;
}


/* notes that the event is consumed; returns as ngx_mcp_outbox_send() does */

static ngx_int_t
ngx_mcp_send_consume_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    ngx_int_t                  rc;
    ngx_mcp_post_t            *post;
    ngx_mcp_idempotency_sh_t  *o;

    post = snd->post;

    if (post->consume) {
        rc = ngx_mcp_consume_locked(zone, post->consume);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (snd->direct && !snd->existing && !post->optional) {
        post->absent = 1;
        return NGX_DECLINED;
    }

    if (post->id) {
        o = ngx_mcp_idempotency_add_locked(zone, post->id, post->sessions);
        o->item = snd->item;
    }

    return NGX_OK;
}


/* delivers to the targets: in one transaction if the post is new */

static void
ngx_mcp_send_deliver_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_mcp_progress_sh_t *at)
{
    ngx_uint_t         i;
    ngx_mcp_out_t     *out;
    ngx_mcp_target_t  *t;

    for (i = 0; i < snd->ntargets; i++) {
        t = &snd->targets[i];
        out = &snd->outs[t->out];

        if (!snd->new) {
            ngx_mcp_step_locked(zone);
        }

        if (t->ref.block) {
            ngx_mcp_send_one_locked(zone, snd, out, t->ref, t->has_room);

        } else {
            ngx_mcp_coalescing_use_locked(zone, snd, out, t->has_room);
        }

        ngx_mcp_send_move_locked(zone, snd, at, &t->after);
    }

    ngx_mcp_send_move_locked(zone, snd, at, &snd->end);

    snd->done += snd->ntargets;
}


static void
ngx_mcp_send_move_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_mcp_progress_sh_t *at, ngx_mcp_progress_sh_t *after)
{
    /* "at" is in the zone if there is an item, else in this process' memory */

    if (snd->item.block) {
        ngx_mcp_touch(zone, at);
    }

    *at = *after;
}


static void
ngx_mcp_send_one_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_mcp_out_t *out, ngx_mcp_ref_t ref, ngx_uint_t has_room)
{
    ngx_int_t            rc;
    ngx_uint_t           how, sessions;
    ngx_mcp_topic_t      topic;
    ngx_mcp_group_sh_t  *g;

    how = out->head.how;

    if ((how & (NGX_MCP_SEND_CHANNEL|NGX_MCP_SEND_TOPIC))
        == NGX_MCP_SEND_CHANNEL)
    {
        sessions = 1;
        rc = ngx_mcp_send_channel_locked(zone, out, ref, has_room);

    } else {
        g = ngx_mcp_group_locked(zone, ref);

        if (g == NULL) {
            return;
        }

        sessions = g->sessions;

        if (how & NGX_MCP_SEND_TOPIC) {
            ngx_memzero(&topic, sizeof(ngx_mcp_topic_t));

            topic.uri = out->uri;
            topic.limit = out->head.limit;
            topic.other = ((how & NGX_MCP_SEND_OTHER) != 0);
            topic.unannounced = ((how & NGX_MCP_SEND_UNANNOUNCED) != 0);
            topic.existing = ((how & NGX_MCP_SEND_EXISTING) != 0);

            sessions = 0;
            rc = ngx_mcp_topic_keep_locked(zone, g, &topic, &out->in, has_room);

            out->not_kept |= (rc != NGX_OK);

        } else {
            rc = ngx_mcp_log_group_locked(zone, g, &out->in, has_room,
                                          how & NGX_MCP_SEND_GAP);
        }
    }

    if (rc == NGX_ERROR && !(how & NGX_MCP_SEND_GAP)) {
        ++*(ngx_mcp_send_fits_locked(zone, out, ref) ? &snd->full
                                                     : &snd->large);
        snd->missed += sessions;
    }

    snd->delivered += (rc == NGX_OK);
}


/* delivers to a session or call; NGX_DECLINED: the session or call has ended */

static ngx_int_t
ngx_mcp_send_channel_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_mcp_ref_t ref, ngx_uint_t has_room)
{
    void                  *owner;
    ngx_int_t              rc;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    owner = ngx_mcp_log_owner_locked(zone, ref, &s);

    if (owner == NULL) {
        return NGX_DECLINED;
    }

    /* a gap has no text, and therefore no event */

    has_room = has_room && !(out->head.how & NGX_MCP_SEND_GAP);

    rc = ngx_mcp_log_channel_locked(zone, owner, &out->in, has_room, NULL);

    /* wakes the call's worker, which opens a stream for the event */

    c = ngx_mcp_record(zone, ref, NGX_MCP_CALL);

    if (c && c->active_stream == 0) {
        ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_NEWS);
    }

    return rc;
}


/* makes an item of a new post that has too many targets for one transaction */

static ngx_int_t
ngx_mcp_send_item(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    ngx_int_t           rc;
    ngx_str_t          *fields;
    ngx_uint_t          i, n;
    ngx_mcp_post_t     *post;
    ngx_mcp_stage_t     stage;
    ngx_mcp_item_sh_t  *it;

    post = snd->post;
    n = 0;

    for (i = 0; i < snd->n; i++) {
        n += NGX_MCP_SEND_FIELDS + snd->outs[i].ntext;
    }

    fields = ngx_alloc(n * sizeof(ngx_str_t), zone->log);
    if (fields == NULL) {
        return NGX_ERROR;
    }

    n = 0;

    for (i = 0; i < snd->n; i++) {
        n += ngx_mcp_out_fields(&snd->outs[i], &fields[n]);
    }

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_ITEM, fields, n);

    rc = ngx_mcp_stage(zone, &stage);

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_send_repeated_locked(zone, post)) {
        ngx_mcp_stage_drop_locked(zone, &stage);
        ngx_mcp_zone_unlock(zone);
        ngx_free(fields);
        return NGX_DECLINED;
    }

    if (rc == NGX_OK) {
        rc = (zone->sh->used[NGX_MCP_ITEM] + stage.blocks
              > zone->sh->blocks / NGX_MCP_ITEMS_SHARE)
             ? NGX_DECLINED : ngx_mcp_stage_reserve_locked(zone, &stage);
    }

    it = NULL;

    if (rc == NGX_OK) {
        it = ngx_mcp_make_locked(zone, &stage);
        it->class = NGX_MCP_COALESCING_NONE;
        it->deliveries = (uint32_t) snd->n;

        ngx_mcp_commit_locked(zone, it, NGX_MCP_ITEM);
        ngx_mcp_list_append(zone, &zone->root->items, ngx_mcp_number(zone, it),
                            NGX_MCP_LINKS);
        ngx_mcp_item_take_over_locked(zone, it);

        if (post->attended) {
            it->rec.flags |= NGX_MCP_ITEM_ATTENDED;
        }

        snd->item = ngx_mcp_ref(zone, it);
    }

    if (it == NULL && post->answered) {
        snd->full++;
        rc = NGX_ERROR;

    } else {

        /* "it" may be NULL: then the deliveries are lost if this worker dies */

        rc = ngx_mcp_send_consume_locked(zone, snd);

        if (rc != NGX_OK && it) {
            ngx_mcp_item_drop_locked(zone, it);
        }
    }

    if (rc == NGX_OK) {
        snd->new = 0;
        post->item = snd->item;

        if (post->consume) {
            ngx_mcp_consume_set_item_locked(zone, post->consume, snd->item);
        }
    }

    ngx_mcp_stage_drop_locked(zone, &stage);

    ngx_mcp_zone_unlock(zone);

    ngx_free(fields);

    return rc;
}


/* delivers in one turn; NGX_AGAIN: targets are left for another turn */

static ngx_int_t
ngx_mcp_send_turn(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd)
{
    ngx_int_t  rc;

    snd->examined = 0;

    do {
        rc = ngx_mcp_send(zone, snd);

    } while (rc == NGX_AGAIN
             && (snd->item.block == 0
                 || (snd->done < NGX_MCP_SEND_TURN
                     && snd->examined < NGX_MCP_SEND_TURN_GROUPS)));

    return rc;
}


ngx_int_t
ngx_mcp_outbox_run(ngx_mcp_zone_t *zone, ngx_mcp_ref_t item,
    ngx_uint_t *missed)
{
    ngx_int_t           rc;
    ngx_pool_t         *pool;
    ngx_mcp_post_t      post;
    ngx_mcp_sending_t   snd;

    pool = ngx_create_pool(4096, zone->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&post, sizeof(ngx_mcp_post_t));
    ngx_memzero(&snd, offsetof(ngx_mcp_sending_t, targets));

    snd.post = &post;
    snd.item = item;

    rc = ngx_mcp_item_load(zone, item, pool, &snd);

    if (rc == NGX_OK) {
        rc = ngx_mcp_send_turn(zone, &snd);
        ngx_mcp_send_count(zone, &snd);
    }

    ngx_destroy_pool(pool);

    if (missed) {
        *missed += snd.missed;
    }

    return (rc == NGX_DECLINED) ? NGX_OK : rc;
}


static ngx_int_t
ngx_mcp_item_load(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref, ngx_pool_t *pool,
    ngx_mcp_sending_t *snd)
{
    u_char             *p;
    ngx_int_t           rc;
    ngx_str_t           text;
    ngx_uint_t          i;
    ngx_mcp_out_t      *out;
    ngx_mcp_item_sh_t  *it;

    ngx_mcp_zone_lock(zone);

    it = ngx_mcp_record(zone, ref, NGX_MCP_ITEM);

    if (it == NULL) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DECLINED;
    }

    ngx_mcp_item_take_over_locked(zone, it);

    snd->n = it->deliveries;
    rc = ngx_mcp_text_copy(zone, it, 0, it->rec.len, pool, &text);

    ngx_mcp_zone_unlock(zone);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    snd->outs = ngx_pcalloc(pool, snd->n * sizeof(ngx_mcp_out_t));
    if (snd->outs == NULL) {
        return NGX_ERROR;
    }

    p = text.data;

    for (i = 0; i < snd->n; i++) {
        out = &snd->outs[i];

        ngx_memcpy(&out->head, p, sizeof(ngx_mcp_delivery_sh_t));
        p += sizeof(ngx_mcp_delivery_sh_t);

        p = ngx_mcp_out_field(&out->endpoint, p, out->head.endpoint_len);
        p = ngx_mcp_out_field(&out->tenant, p, out->head.tenant_len);
        p = ngx_mcp_out_field(&out->uri, p, out->head.uri_len);
        p = ngx_mcp_out_field(&out->whole, p, out->head.text_len);

        out->text = &out->whole;
        out->ntext = (out->head.how & NGX_MCP_SEND_GAP) ? 0 : 1;

        ngx_mcp_out_init(zone, out);
    }

    return NGX_OK;
}


static u_char *
ngx_mcp_out_field(ngx_str_t *field, u_char *p, size_t len)
{
    field->data = p;
    field->len = len;

    return p + len;
}


/* notes that this worker delivers the item, perhaps instead of another one */

static void
ngx_mcp_item_take_over_locked(ngx_mcp_zone_t *zone, ngx_mcp_item_sh_t *it)
{
    uint32_t  nonce;

    ngx_mcp_touch(zone, it);

    if (zone->worker == NGX_MCP_NO_WORKER) {
        it->rec.worker = NGX_MCP_SLOT_NONE;
        return;
    }

    nonce = ngx_mcp_slot(zone, zone->worker)->nonce;

    if (it->rec.worker != zone->worker || it->nonce != nonce) {
        it->rec.worker = (uint16_t) zone->worker;
        it->rec.flags &= ~NGX_MCP_ITEM_ATTENDED;
        it->nonce = nonce;
    }
}


/* returns whether this worker has to deliver the item in the background */

static ngx_uint_t
ngx_mcp_item_in_background_locked(ngx_mcp_zone_t *zone, ngx_mcp_item_sh_t *it)
{
    ngx_mcp_worker_sh_t  *w;

    if (it->rec.worker == NGX_MCP_SLOT_NONE) {
        return 1;
    }

    w = ngx_mcp_slot(zone, it->rec.worker);

    if (w->state != NGX_MCP_WORKER_LIVE || w->nonce != it->nonce) {
        return 1;
    }

    return it->rec.worker == zone->worker
           && !(it->rec.flags & NGX_MCP_ITEM_ATTENDED);
}


static void
ngx_mcp_item_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_item_sh_t *it)
{
    ngx_mcp_list_remove(zone, &zone->root->items, ngx_mcp_number(zone, it),
                        NGX_MCP_LINKS);
    ngx_mcp_drop_locked(zone, it);
}


/* decides whether a delivery joins a window, opens one, or neither */

static void
ngx_mcp_coalescing_decide_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out)
{
    ngx_uint_t  fits, known;

    fits = zone->sh->used[NGX_MCP_ITEM] + out->stage.blocks
           <= zone->sh->blocks / NGX_MCP_WINDOWS_SHARE;

    out->key = ngx_mcp_coalescing_key(zone, out);
    known = (ngx_mcp_coalescing_find_locked(zone, out->key) != NULL);

    out->joins = (known && fits);
    out->opens = (!known && fits);
}


static ngx_mcp_item_sh_t *
ngx_mcp_coalescing_find_locked(ngx_mcp_zone_t *zone, uint64_t key)
{
    ngx_mcp_item_sh_t  *w;

    for (w = ngx_mcp_hash_first_locked(zone, NGX_MCP_ITEM, (uint32_t) key);
         w && w->key != key;
         w = ngx_mcp_hash_next_locked(zone, w))
    {
        /* void */
    }

    return w;
}


/* returns the hash that all deliveries of a window have in common */

static uint64_t
ngx_mcp_coalescing_key(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out)
{
    ngx_str_t         key;
    struct {
        ngx_mcp_target_sh_t  target;
        ngx_mcp_ref_t        ref;
        uint64_t             names;
        uint64_t             coalesce_key;
        uint64_t             how;
    } k;

    ngx_memzero(&k, sizeof(k));

    k.target = out->head.target;
    k.ref = out->head.ref;
    k.names = ngx_mcp_hash(zone, &out->endpoint, &out->tenant);
    k.coalesce_key = out->head.coalesce_key;
    k.how = out->head.how & NGX_MCP_SEND_KEY;

    key.data = (u_char *) &k;
    key.len = sizeof(k);

    return ngx_mcp_hash(zone, &key, NULL);
}


static void
ngx_mcp_coalescing_use_locked(ngx_mcp_zone_t *zone, ngx_mcp_sending_t *snd,
    ngx_mcp_out_t *out, ngx_uint_t has_room)
{
    if (out->joins) {
        ngx_mcp_coalescing_join_locked(zone, out, has_room);
        snd->delivered++;

    } else if (out->opens && has_room
               && ngx_mcp_coalescing_find_locked(zone, out->key) == NULL)
    {
        ngx_mcp_coalescing_open_locked(zone, out);

        snd->due = snd->due ? ngx_min(snd->due, out->head.time)
                            : out->head.time;
    }
}


/* opens a window in which no event waits yet */

static void
ngx_mcp_coalescing_open_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out)
{
    ngx_str_t               fields[3];
    ngx_mcp_stage_t         stage;
    ngx_mcp_item_sh_t      *w;
    ngx_mcp_delivery_sh_t   head;

    head = out->head;
    head.uri_len = 0;
    head.text_len = 0;
    head.how &= NGX_MCP_SEND_KEY;

    fields[0].data = (u_char *) &head;
    fields[0].len = sizeof(ngx_mcp_delivery_sh_t);
    fields[1] = out->endpoint;
    fields[2] = out->tenant;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_ITEM, fields, 3);

    w = ngx_mcp_make_locked(zone, &stage);

    w->key = out->key;
    w->rec.hash = (uint32_t) out->key;
    w->rec.worker = NGX_MCP_SLOT_NONE;
    w->deadline = ngx_current_msec + head.time;
    w->deliveries = 1;

    ngx_mcp_commit_locked(zone, w, NGX_MCP_ITEM);

    ngx_mcp_hash_insert_locked(zone, w);
    ngx_mcp_coalescing_insert_locked(zone, w, head.time);
}


/*
 * There is a list of windows for each binary logarithm of a window's length,
 * so that the place of a new window is near the end of its list.
 */

static void
ngx_mcp_coalescing_insert_locked(ngx_mcp_zone_t *zone, ngx_mcp_item_sh_t *w,
    uint32_t time)
{
    uint32_t            n, next;
    ngx_uint_t          i;
    ngx_mcp_list_sh_t  *list;
    ngx_mcp_item_sh_t  *before;

    w->class = 0;

    for ( /* void */ ; time > 1; time /= 2) {
        w->class++;
    }

    list = &zone->root->coalescing[w->class];
    n = list->tail;

    for (i = 0; n && i < NGX_MCP_WINDOW_STEPS; i++) {
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


/*
 * Stores the new text in the window.  If there is no room for it, the event
 * that waits in the window also stands for the new one; if no event waits
 * there, the window delivers a gap.
 */

static void
ngx_mcp_coalescing_join_locked(ngx_mcp_zone_t *zone, ngx_mcp_out_t *out,
    ngx_uint_t has_room)
{
    ngx_mcp_item_sh_t      *w;
    ngx_mcp_delivery_sh_t   head, h;

    w = ngx_mcp_coalescing_find_locked(zone, out->key);

    ngx_mcp_text_read(zone, w, 0, (u_char *) &h,
                      sizeof(ngx_mcp_delivery_sh_t));
    head = has_room ? out->head : h;

    if (w->rec.flags & NGX_MCP_ITEM_WAITING) {
        head.count = out->head.count + h.count;
        head.how |= NGX_MCP_SEND_COUNTED;

        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_COALESCED, 1);

    } else if (!has_room) {
        head.how |= NGX_MCP_SEND_GAP;
    }

    head.how |= h.how & NGX_MCP_SEND_GAP;

    if (has_room) {
        ngx_mcp_text_replace_locked(zone, w, &out->stage);
        out->stage.head = 0;
    }

    ngx_mcp_text_store(zone, w, 0, (u_char *) &head,
                       sizeof(ngx_mcp_delivery_sh_t));

    ngx_mcp_touch(zone, &w->rec);
    w->rec.flags |= NGX_MCP_ITEM_WAITING;
}


ngx_int_t
ngx_mcp_outbox_due(ngx_mcp_zone_t *zone, ngx_msec_t *next)
{
    ngx_int_t      rc;
    ngx_uint_t     i;
    ngx_mcp_ref_t  at, ref;

    *next = 0;
    ngx_memzero(&at, sizeof(ngx_mcp_ref_t));

    for (i = 0; i < NGX_MCP_SEND_DUE; i++) {

        if (zone->sh->used[NGX_MCP_ITEM] == 0) {
            return NGX_OK;
        }

        do {
            ngx_mcp_zone_lock(zone);

            rc = ngx_mcp_outbox_next_locked(zone, &at, &ref, next);

            ngx_mcp_zone_unlock(zone);

        } while (rc == NGX_BUSY);

        if (rc == NGX_DONE) {
            return NGX_OK;
        }

        if (rc == NGX_AGAIN
            || ngx_mcp_outbox_run(zone, ref, NULL) == NGX_AGAIN)
        {
            break;
        }
    }

    return NGX_AGAIN;
}


/*
 * Finds an item to deliver.  NGX_OK: *ref is the item; NGX_DONE: no item is
 * due; NGX_BUSY: items from *at on are not examined yet; NGX_AGAIN: more is
 * left for another turn.  *next: ms until the next window ends, or 0.
 */

static ngx_int_t
ngx_mcp_outbox_next_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t *at,
    ngx_mcp_ref_t *ref, ngx_msec_t *next)
{
    uint32_t            n;
    uint64_t            now, earliest;
    ngx_uint_t          i, examined;
    ngx_mcp_item_sh_t  *it;

    now = ngx_current_msec;
    earliest = 0;
    examined = 0;

    for (i = 0; i < NGX_MCP_COALESCING_CLASSES; i++) {

        while ((n = zone->root->coalescing[i].head) != 0) {
            it = ngx_mcp_block(zone, n);

            if (it->deadline > now) {
                earliest = earliest ? ngx_min(earliest, it->deadline)
                                    : it->deadline;
                break;
            }

            if (it->rec.flags & NGX_MCP_ITEM_WAITING) {
                *ref = ngx_mcp_ref(zone, it);
                ngx_mcp_coalescing_end_locked(zone, it);

                return NGX_OK;
            }

            if (examined++ == NGX_MCP_SEND_EXAMINE) {
                return NGX_AGAIN;
            }

            ngx_mcp_list_remove(zone, &zone->root->coalescing[i], n,
                                NGX_MCP_LINKS);
            ngx_mcp_hash_remove_locked(zone, it);
            ngx_mcp_drop_locked(zone, it);
            ngx_mcp_step_locked(zone);
        }
    }

    *next = earliest ? (ngx_msec_t) (earliest - now) : 0;

    /* the item *at may have been delivered since it was noted */

    n = ngx_mcp_record(zone, *at, NGX_MCP_ITEM) ? at->block
                                                : zone->root->items.head;

    ngx_memzero(at, sizeof(ngx_mcp_ref_t));

    for (i = 0; n; i++) {
        it = ngx_mcp_block(zone, n);

        if (i == NGX_MCP_SEND_EXAMINE) {
            *at = ngx_mcp_ref(zone, it);
            return NGX_BUSY;
        }

        n = it->rec.links.next;

        if (ngx_mcp_item_in_background_locked(zone, it)) {
            *ref = ngx_mcp_ref(zone, it);

            if (n) {
                *at = ngx_mcp_ref(zone, ngx_mcp_block(zone, n));
            }

            return NGX_OK;
        }
    }

    return NGX_DONE;
}


/* ends a window: it becomes an item, and a new window is opened */

static void
ngx_mcp_coalescing_end_locked(ngx_mcp_zone_t *zone, ngx_mcp_item_sh_t *w)
{
    size_t          len;
    uint32_t        n;
    ngx_uint_t      blocks, room;
    ngx_mcp_ref_t   none;
    ngx_mcp_out_t   out;
    u_char          names[NGX_MCP_WINDOW_NAMES];

    room = 0;

    n = ngx_mcp_number(zone, w);

    ngx_memzero(&none, sizeof(ngx_mcp_ref_t));
    ngx_memzero(&out, sizeof(ngx_mcp_out_t));

    ngx_mcp_text_read(zone, w, 0, (u_char *) &out.head,
                      sizeof(ngx_mcp_delivery_sh_t));

    out.key = w->key;
    len = (size_t) out.head.endpoint_len + out.head.tenant_len;

    if (len <= NGX_MCP_WINDOW_NAMES) {
        ngx_mcp_text_read(zone, w, sizeof(ngx_mcp_delivery_sh_t), names, len);

        ngx_mcp_out_field(&out.tenant,
                          ngx_mcp_out_field(&out.endpoint, names,
                                            out.head.endpoint_len),
                          out.head.tenant_len);

        blocks = ngx_mcp_text_blocks(zone, NGX_MCP_ITEM,
                                     sizeof(ngx_mcp_delivery_sh_t) + len);

        room = (ngx_mcp_reserve_locked(zone, none, NGX_MCP_ROOM_OTHER, blocks)
                == NGX_OK);
    }

    ngx_mcp_list_remove(zone, &zone->root->coalescing[w->class], n,
                        NGX_MCP_LINKS);
    ngx_mcp_hash_remove_locked(zone, w);

    ngx_mcp_item_take_over_locked(zone, w);
    w->class = NGX_MCP_COALESCING_NONE;

    /* the delivery of this item must not join a window again */

    w->rec.flags = 0;
    w->at.opened = 1;

    ngx_mcp_list_append(zone, &zone->root->items, n, NGX_MCP_LINKS);

    if (room) {
        ngx_mcp_coalescing_open_locked(zone, &out);
    }
}
