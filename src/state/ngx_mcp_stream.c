
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


/* events skipped under one hold of the lock */
#define NGX_MCP_READ_SKIP   64

/* a longer text is copied outside of the lock */
#define NGX_MCP_READ_SMALL  4096

/* return codes in addition to those of ngx_mcp_stream_read() */
#define NGX_MCP_READ_MORE   1
#define NGX_MCP_READ_LARGE  2


/*
 * An event that is read.  "len" is the length of its text or, after NGX_ABORT,
 * the number of lost events.
 */

typedef struct {
    u_char                 *buf;
    size_t                  size;
    size_t                  len;
    ngx_uint_t              flags;
    ngx_mcp_ref_t           large;
} ngx_mcp_read_t;


typedef struct {
    ngx_mcp_stream_sh_t      *stream;
    ngx_mcp_session_sh_t     *session;
    ngx_mcp_subscriber_sh_t  *subscriber;
    ngx_mcp_call_sh_t        *call;       /* NULL: the general channel */
    ngx_mcp_group_sh_t       *group;
    ngx_mcp_group_sh_t       *endpoint;
    uint32_t                  n;
} ngx_mcp_channel_t;


/* the log that an event of a channel comes from */

typedef enum {
    NGX_MCP_CHANNEL_OWN = 0,
    NGX_MCP_CHANNEL_GROUP,
    NGX_MCP_CHANNEL_ENDPOINT
} ngx_mcp_channel_log_e;


/* number of events that were lost */

typedef struct {
    size_t                  n;
    ngx_uint_t              some;         /* n is an upper bound */
    ngx_uint_t              gap;          /* the number is unknown */
} ngx_mcp_channel_lost_t;


static void ngx_mcp_stream_begin_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c, ngx_mcp_cursor_t *from,
    ngx_mcp_stream_t *stream);
static void ngx_mcp_stream_carry_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_call_sh_t *c, ngx_mcp_stream_sh_t *st);
static ngx_uint_t ngx_mcp_channel_ended(ngx_mcp_call_sh_t *c);
static void ngx_mcp_stream_limit_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_session_sh_t *s, ngx_mcp_stream_sh_t *new, ngx_uint_t limit);
static ngx_int_t ngx_mcp_channel_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_stream_t *stream, ngx_mcp_channel_t *channel);
static void ngx_mcp_channel_delivered_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_stream_t *stream);
static void ngx_mcp_channel_release_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_cursor_t *cursor);
static size_t ngx_mcp_channel_gap_locked(ngx_mcp_log_sh_t *log,
    ngx_mcp_event_sh_t *e, uint64_t *cursor);
static ngx_mcp_event_sh_t *ngx_mcp_channel_next_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_stream_t *stream,
    ngx_mcp_channel_log_e *from,
    size_t *lost);
static ngx_mcp_event_sh_t *ngx_mcp_channel_group_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_group_sh_t *g, uint64_t *cursor,
    uint32_t hint, ngx_mcp_channel_lost_t *lost);
static void ngx_mcp_channel_advance(ngx_mcp_zone_t *zone,
    ngx_mcp_stream_t *stream, ngx_mcp_event_sh_t *e,
    ngx_mcp_channel_log_e from);
static void ngx_mcp_channel_count_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel);
static ngx_uint_t ngx_mcp_channel_hidden_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_event_sh_t *e);
static ngx_uint_t ngx_mcp_stream_inner(ngx_mcp_session_sh_t *s,
    uint32_t channel);
static ngx_int_t ngx_mcp_stream_read_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_stream_t *stream, ngx_mcp_read_t *out);


ngx_int_t
ngx_mcp_stream_open(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_cursor_t *from, ngx_uint_t limit)
{
    uint32_t               channel;
    ngx_int_t              rc;
    ngx_mcp_stage_t        stage;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_stream_sh_t   *st;
    ngx_mcp_session_sh_t  *s;

    channel = stream->channel;

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_STREAM, NULL, 0);
    stage.room = NGX_MCP_ROOM_CALL;
    stage.payer = stream->session;

    ngx_mcp_zone_lock(zone);

    rc = ngx_mcp_stage_reserve_locked(zone, &stage);
    s = ngx_mcp_session_locked(zone, stream->session);

    c = NULL;

    if (s && channel != NGX_MCP_GENERAL_CHANNEL) {
        c = ngx_mcp_channel_call_locked(zone, s, channel);
    }

    if (s == NULL || (channel != NGX_MCP_GENERAL_CHANNEL && c == NULL)) {
        rc = (s && from && channel <= s->channel) ? NGX_DONE : NGX_DECLINED;
        ngx_mcp_zone_unlock(zone);
        return rc;
    }

    if (c && from && from->own >= c->log.last && ngx_mcp_channel_ended(c)) {
        ngx_mcp_zone_unlock(zone);
        return NGX_DONE;
    }

    if (rc != NGX_OK) {
        ngx_mcp_zone_unlock(zone);
        return NGX_ERROR;
    }

    ngx_mcp_stream_begin_locked(zone, s, c, from, stream);

    st = ngx_mcp_make_locked(zone, &stage);

    st->task.rec.owner = stream->session;
    st->task.local = stream->local;
    st->channel = channel;
    st->serial = ++zone->sh->stamp;

    if (c == NULL || from) {
        st->task.rec.flags |= NGX_MCP_STREAM_GET;
    }

    if (c) {
        st->call = ngx_mcp_ref(zone, c);
        st->replay_end.own = c->delivered;

    } else {
        st->replay_end = s->subscriber.delivered;
    }

    ngx_mcp_commit_locked(zone, st, NGX_MCP_STREAM);

    ngx_mcp_stream_carry_locked(zone, s, c, st);

    if (st->task.rec.flags & NGX_MCP_STREAM_GET) {
        ngx_mcp_stream_limit_locked(zone, s, st, limit);
    }

    stream->ref = ngx_mcp_ref(zone, st);
    stream->inner = ngx_mcp_stream_inner(s, channel);

    if (!stream->inner) {
        ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_STREAMS_OPEN, 1);
        ngx_mcp_count(zone, NGX_MCP_COUNTER_STREAMS_OPENED, 1);
    }

    ngx_mcp_zone_unlock(zone);

    ngx_log_debug4(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp stream opened, line %uD at %uL-%uL, %uD", channel,
                   stream->cursor.own, stream->cursor.group,
                   stream->ref.block);

    return NGX_OK;
}


/* returns whether only a call of the module reads the channel, and no client */

static ngx_uint_t
ngx_mcp_stream_inner(ngx_mcp_session_sh_t *s, uint32_t channel)
{
    return s->exclusive && channel == NGX_MCP_GENERAL_CHANNEL;
}


/* begins to read the channel of call c; NULL: the general channel */

static void
ngx_mcp_stream_begin_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c, ngx_mcp_cursor_t *from, ngx_mcp_stream_t *stream)
{
    ngx_mcp_group_sh_t       *g, *all;
    ngx_mcp_extension_sh_t   *e;
    ngx_mcp_subscriber_sh_t  *sb;

    sb = &s->subscriber;
    g = ngx_mcp_subscriber_group(zone, sb);
    all = ngx_mcp_group_endpoint(zone, g);

    stream->group = ngx_mcp_ref(zone, g);
    stream->endpoint = ngx_mcp_ref(zone, all);
    stream->seen.own = 0;
    stream->seen.group = g->log.last;
    stream->seen.endpoint = all->log.last;
    stream->own = 0;
    stream->of_group = 0;
    stream->of_endpoint = 0;
    stream->wanted = 0;
    stream->unknown = 0;
    stream->gap = NGX_MCP_GAP_NONE;

    if (c) {
        stream->cursor.own = from ? ngx_min(from->own,
                                            c->delivered) : c->delivered;
        stream->cursor.group = 0;
        stream->cursor.endpoint = 0;

    } else if (from && from->own <= sb->delivered.own
               && from->group <= sb->delivered.group
               && from->endpoint <= sb->delivered.endpoint)
    {
        e = ngx_mcp_session_extension(zone, s);

        stream->cursor.own = from->own;
        stream->cursor.group = ngx_max(from->group, e->start);
        stream->cursor.endpoint = ngx_max(from->endpoint, e->start_endpoint);

    } else {
        stream->cursor = sb->delivered;
        stream->unknown = (from != NULL);
    }
}


/*
 * Makes this stream carry its channel.  The stream that carried it before
 * stays open, without events.
 */

static void
ngx_mcp_stream_carry_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_call_sh_t *c, ngx_mcp_stream_sh_t *st)
{
    uint32_t              n, *active_stream;
    ngx_mcp_group_sh_t   *g, *all;
    ngx_mcp_stream_sh_t  *other;

    n = ngx_mcp_number(zone, st);

    ngx_mcp_touch_range(zone, s, streams, extension);
    ngx_mcp_idle_leave_locked(zone, s);
    ngx_mcp_list_prepend(zone, &s->streams, n, NGX_MCP_LINKS);
    s->nstreams++;

    active_stream = c ? &c->active_stream : &s->subscriber.active_stream;

    if (*active_stream) {
        other = ngx_mcp_block(zone, *active_stream);
        ngx_mcp_touch(zone, other);
        other->task.rec.flags |= NGX_MCP_STREAM_RELIEVED;

        if (c == NULL) {

            /*
             * Wakes the worker of the other stream, which does not learn of
             * later subscriptions of the session.
             */

            ngx_mcp_wake_locked(zone, &other->task, NGX_MCP_WAKE_WANTS);
        }
    }

    ngx_mcp_touch(zone, active_stream);
    *active_stream = n;

    if (c == NULL) {
        g = ngx_mcp_session_group(zone, s);
        all = ngx_mcp_group_endpoint(zone, g);

        if (s->ngets++ == 0) {
            ngx_mcp_group_gets_locked(zone, s, 1);
        }

        ngx_mcp_watch_locked(zone, g->watch);
        ngx_mcp_watch_locked(zone, all->watch);
    }
}


/* returns whether no more events will be added to the call's channel */

static ngx_uint_t
ngx_mcp_channel_ended(ngx_mcp_call_sh_t *c)
{
    return c->lost
           || (c->task.rec.flags & (NGX_MCP_CALL_RUNNING|NGX_MCP_CALL_ANSWERED))
              != NGX_MCP_CALL_RUNNING;
}


/*
 * Closes the oldest GET streams above the limit (0: no limit).  If the new
 * stream carries a call's channel, closes the other GET streams of this channel
 * as well.  Streams that are about to close do not count, nor does the stream
 * that answers a request.
 */

static void
ngx_mcp_stream_limit_locked(ngx_mcp_zone_t *zone, ngx_mcp_session_sh_t *s,
    ngx_mcp_stream_sh_t *new, ngx_uint_t limit)
{
    uint32_t              n;
    ngx_uint_t            open, second;
    ngx_mcp_stream_sh_t  *st;

    open = 0;

    for (n = s->streams.head; n; n = st->task.rec.links.next) {
        st = ngx_mcp_block(zone, n);

        if (!(st->task.rec.flags & NGX_MCP_STREAM_GET)
            || st->task.rec.flags & NGX_MCP_STREAM_CLOSING)
        {
            continue;
        }

        second = (st != new && st->channel == new->channel
                      && st->channel != NGX_MCP_GENERAL_CHANNEL);

        if (second || (limit && ++open > limit)) {
            ngx_mcp_touch(zone, st);
            st->task.rec.flags |= NGX_MCP_STREAM_CLOSING
                                  |NGX_MCP_STREAM_REPLACED;
            ngx_mcp_wake_locked(zone, &st->task, NGX_MCP_WAKE_CLOSE);
        }
    }
}


void
ngx_mcp_stream_close(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_counter_e counter)
{
    ngx_mcp_channel_t     channel;
    ngx_mcp_stream_sh_t  *st;

    ngx_mcp_zone_lock(zone);

    if (ngx_mcp_channel_locked(zone, stream, &channel) == NGX_OK) {
        ngx_mcp_channel_delivered_locked(zone, &channel, stream);

        if (channel.subscriber->listens) {

            /* a session that listens ends with its stream */

            ngx_mcp_zone_unlock(zone);
            ngx_mcp_session_empty(zone, stream->session);
            ngx_mcp_zone_lock(zone);
        }
    }

    st = ngx_mcp_record(zone, stream->ref, NGX_MCP_STREAM);

    if (st) {
        if (counter == NGX_MCP_COUNTER_STREAMS_SESSION
            && st->task.rec.flags & NGX_MCP_STREAM_REPLACED)
        {
            counter = NGX_MCP_COUNTER_STREAMS_REPLACED;
        }

        ngx_mcp_stream_drop_locked(zone, st, counter);
    }

    ngx_mcp_zone_unlock(zone);

    ngx_log_debug4(NGX_LOG_DEBUG_CORE, zone->log, 0,
                   "mcp stream closed, line %uD at %uL-%uL, %uD",
                   stream->channel, stream->cursor.own, stream->cursor.group,
                   stream->ref.block);

    stream->ref.block = 0;
}


void
ngx_mcp_stream_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_stream_sh_t *st,
    ngx_mcp_counter_e counter)
{
    uint32_t               n, next, *active_stream;
    ngx_uint_t             ends;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_stream_sh_t   *other;
    ngx_mcp_session_sh_t  *s;

    n = ngx_mcp_number(zone, st);
    s = ngx_mcp_block(zone, st->task.rec.owner.block);
    ends = ((s->subscriber.listens
             || (s->exclusive == NGX_MCP_EXCLUSIVE_ENDING && s->nstreams == 1))
            && !s->ended);
    c = NULL;

    ngx_mcp_touch_range(zone, s, streams, extension);

    if (st->channel == NGX_MCP_GENERAL_CHANNEL) {
        active_stream = &s->subscriber.active_stream;

        if (--s->ngets == 0 && !s->ended) {
            ngx_mcp_listeners_ring_locked(zone, s);
            ngx_mcp_group_gets_locked(zone, s, -1);
        }

    } else {
        c = ngx_mcp_record(zone, st->call, NGX_MCP_CALL);
        active_stream = c ? &c->active_stream : NULL;
    }

    if (active_stream && *active_stream == n) {
        next = st->task.rec.links.next;

        while (next) {
            other = ngx_mcp_block(zone, next);

            if (other->channel == st->channel
                && !(other->task.rec.flags & NGX_MCP_STREAM_CLOSING))
            {
                ngx_mcp_wake_locked(zone, &other->task, NGX_MCP_WAKE_NEWS);
                break;
            }

            next = other->task.rec.links.next;
        }

        ngx_mcp_touch(zone, active_stream);
        *active_stream = next;
    }

    ngx_mcp_wake_cancel_locked(zone, &st->task);
    ngx_mcp_list_remove(zone, &s->streams, n, NGX_MCP_LINKS);
    s->nstreams--;

    if (!ngx_mcp_stream_inner(s, st->channel)) {
        ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_STREAMS_OPEN, -1);
        ngx_mcp_count(zone, counter, 1);
    }

    ngx_mcp_drop_locked(zone, st);

    /* an idle session gets its time-out; one that has ended may be dropped */

    ngx_mcp_session_after_use_locked(zone, s);

    if (ends) {
        ngx_mcp_session_end_locked(zone, s, NGX_MCP_COUNTER_SESSIONS_DELETED);
        return;
    }

    if (c && c->active_stream == 0
        && !(c->task.rec.flags & NGX_MCP_CALL_RUNNING)
        && (c->log.count == 0
            || !(c->task.rec.flags & NGX_MCP_CALL_STREAMED)))
    {
        ngx_mcp_channel_drop_locked(zone, c);

    } else if (c && !(c->task.rec.flags & NGX_MCP_CALL_RUNNING)) {
        ngx_mcp_finished_trim_locked(zone, s);
    }
}


/*
 * Finds the channel of a stream.  NGX_OK: the stream carries the channel;
 * NGX_DECLINED: another stream does; NGX_ERROR: the stream, its call or its
 * session has ended.
 */

static ngx_int_t
ngx_mcp_channel_locked(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_channel_t *channel)
{
    uint32_t  active_stream;

    channel->stream = ngx_mcp_record(zone, stream->ref, NGX_MCP_STREAM);

    if (channel->stream == NULL
        || channel->stream->task.rec.flags & NGX_MCP_STREAM_CLOSING)
    {
        return NGX_ERROR;
    }

    channel->n = stream->ref.block;
    channel->session = ngx_mcp_block(zone,
                                     channel->stream->task.rec.owner.block);

    if (channel->session->ended) {
        return NGX_ERROR;
    }

    channel->subscriber = &channel->session->subscriber;
    channel->group = ngx_mcp_subscriber_group(zone, channel->subscriber);
    channel->endpoint = ngx_mcp_group_endpoint(zone, channel->group);

    if (stream->channel == NGX_MCP_GENERAL_CHANNEL) {
        channel->call = NULL;
        active_stream = channel->subscriber->active_stream;

    } else {
        channel->call = ngx_mcp_record(zone, channel->stream->call,
                                       NGX_MCP_CALL);

        if (channel->call == NULL) {
            return NGX_ERROR;
        }

        active_stream = channel->call->active_stream;
    }

    return active_stream == channel->n ? NGX_OK : NGX_DECLINED;
}


static void
ngx_mcp_channel_delivered_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_stream_t *stream)
{
    ngx_mcp_call_sh_t  *c;

    c = channel->call;

    if (c == NULL) {
        ngx_mcp_subscriber_move_locked(zone, channel->subscriber,
                                       &stream->cursor);
        return;
    }

    if (c->delivered < stream->cursor.own) {
        ngx_mcp_touch(zone, &c->delivered);
        c->delivered = stream->cursor.own;
    }

    if (c->task.rec.flags & NGX_MCP_CALL_FULL
        && c->log.last - c->delivered < NGX_MCP_CHANNEL_WAITING / 2)
    {
        ngx_mcp_touch(zone, &c->task.rec);
        c->task.rec.flags &= ~NGX_MCP_CALL_FULL;

        if (c->task.rec.flags & NGX_MCP_CALL_RUNNING) {
            ngx_mcp_wake_locked(zone, &c->task, NGX_MCP_WAKE_NEWS);
        }
    }
}


ngx_int_t
ngx_mcp_stream_read(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    u_char *buf, size_t size, size_t *len, ngx_uint_t *flags)
{
    uint32_t               recoveries;
    ngx_int_t              rc;
    ngx_mcp_read_t         out;
    ngx_mcp_channel_t      channel;
    ngx_mcp_event_sh_t    *e;
    ngx_mcp_channel_log_e  from;

    out.buf = buf;
    out.size = size;
    out.len = 0;
    out.flags = 0;

    stream->more = 1;

    for ( ;; ) {
        ngx_mcp_zone_lock(zone);

        recoveries = zone->sh->recoveries;

        rc = ngx_mcp_stream_read_locked(zone, stream, &out);

        ngx_mcp_zone_unlock(zone);

        if (rc == NGX_MCP_READ_MORE) {
            continue;
        }

        if (rc != NGX_MCP_READ_LARGE) {
            break;
        }

        /*
         * The event may be dropped and overwritten while it is copied, and a
         * recovery may even restore it afterwards: both are checked.
         */

        e = ngx_mcp_block(zone, out.large.block);
        ngx_mcp_text_read(zone, e, 0, buf, out.len);

        ngx_mcp_zone_lock(zone);

        e = (zone->sh->recoveries == recoveries)
            ? ngx_mcp_record(zone, out.large, NGX_MCP_EVENT) : NULL;

        if (e && ngx_mcp_channel_locked(zone, stream, &channel) == NGX_OK) {
            from = (e->rec.owner.block == stream->group.block)
                   ? NGX_MCP_CHANNEL_GROUP
                   : (e->rec.owner.block == stream->endpoint.block)
                     ? NGX_MCP_CHANNEL_ENDPOINT : NGX_MCP_CHANNEL_OWN;

            ngx_mcp_channel_advance(zone, stream, e, from);
            ngx_mcp_channel_count_locked(zone, &channel);
            ngx_mcp_channel_delivered_locked(zone, &channel, stream);
            out.flags = e->rec.flags;

            ngx_mcp_zone_unlock(zone);

            rc = NGX_OK;
            break;
        }

        ngx_mcp_zone_unlock(zone);
    }

    *len = out.len;
    *flags = out.flags;

    if (rc == NGX_OK) {
        stream->gap = NGX_MCP_GAP_NONE;

        if (!stream->inner) {
            ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_OUT, 1);
        }

    } else if (rc == NGX_ABORT) {
        stream->gap = NGX_MCP_GAP_REPORTED;
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_LAGGED,
                      *len == NGX_MCP_LOST_UNKNOWN ? 1 : (ngx_int_t) *len);
    }

    return rc;
}


/*
 * Returns as ngx_mcp_stream_read() does, or NGX_MCP_READ_MORE: this function
 * has to be called again, or NGX_MCP_READ_LARGE: the caller has to copy the
 * text of event out->large.
 */

static ngx_int_t
ngx_mcp_stream_read_locked(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_read_t *out)
{
    size_t                 lost;
    ngx_int_t              rc;
    ngx_uint_t             i;
    ngx_mcp_channel_t      channel;
    ngx_mcp_event_sh_t    *e;
    ngx_mcp_channel_log_e  from;

    rc = ngx_mcp_channel_locked(zone, stream, &channel);

    if (rc != NGX_OK) {
        return rc;
    }

    for (i = 0; i < NGX_MCP_READ_SKIP; i++) {

        if (channel.stream->task.rec.flags & NGX_MCP_STREAM_RELIEVED) {
            ngx_mcp_channel_release_locked(zone, &channel, &stream->cursor);
        }

        e = ngx_mcp_channel_next_locked(zone, &channel, stream, &from, &lost);

        if (lost) {
            ngx_mcp_channel_delivered_locked(zone, &channel, stream);
            out->len = lost;
            return NGX_ABORT;
        }

        if (e == NULL) {
            ngx_mcp_channel_delivered_locked(zone, &channel, stream);

            if (channel.call && ngx_mcp_channel_ended(channel.call)) {
                return NGX_DONE;
            }

            return NGX_AGAIN;
        }

        if (ngx_mcp_channel_hidden_locked(zone, &channel, e)) {
            ngx_mcp_channel_advance(zone, stream, e, from);
            continue;
        }

        out->len = e->rec.len;

        if (e->rec.len > out->size) {
            ngx_mcp_channel_delivered_locked(zone, &channel, stream);
            return NGX_BUSY;
        }

        if (e->rec.len > NGX_MCP_READ_SMALL) {
            out->large = ngx_mcp_ref(zone, e);
            return NGX_MCP_READ_LARGE;
        }

        ngx_mcp_text_read(zone, e, 0, out->buf, e->rec.len);
        out->flags = e->rec.flags;

        ngx_mcp_channel_advance(zone, stream, e, from);
        ngx_mcp_channel_count_locked(zone, &channel);
        ngx_mcp_channel_delivered_locked(zone, &channel, stream);

        if (channel.call == NULL
            && stream->cursor.own >= channel.session->log.last
            && stream->cursor.group >= channel.group->log.last
            && stream->cursor.endpoint >= channel.endpoint->log.last)
        {
            stream->more = 0;
        }

        return NGX_OK;
    }

    ngx_mcp_channel_delivered_locked(zone, &channel, stream);

    return NGX_MCP_READ_MORE;
}


/* skips events that other streams of the channel have delivered meanwhile */

static void
ngx_mcp_channel_release_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_cursor_t *cursor)
{
    ngx_mcp_cursor_t     *replay_end, delivered;
    ngx_mcp_stream_sh_t  *st;

    st = channel->stream;
    replay_end = &st->replay_end;

    if (channel->call) {
        delivered.own = channel->call->delivered;
        delivered.group = 0;
        delivered.endpoint = 0;

    } else {
        delivered = channel->subscriber->delivered;
    }

    if (cursor->own >= replay_end->own) {
        cursor->own = ngx_max(cursor->own, delivered.own);
    }

    if (cursor->group >= replay_end->group) {
        cursor->group = ngx_max(cursor->group, delivered.group);
    }

    if (cursor->endpoint >= replay_end->endpoint) {
        cursor->endpoint = ngx_max(cursor->endpoint, delivered.endpoint);
    }

    if (cursor->own >= replay_end->own && cursor->group >= replay_end->group
        && cursor->endpoint >= replay_end->endpoint)
    {
        ngx_mcp_touch(zone, st);
        st->task.rec.flags &= ~NGX_MCP_STREAM_RELIEVED;
    }
}


/*
 * Returns the next event of the channel, or NULL.  *n is the number of events
 * lost before it: positions without an event, on the shared logs only if some
 * of these events were for this session.
 */

static ngx_mcp_event_sh_t *
ngx_mcp_channel_next_locked(ngx_mcp_zone_t *zone, ngx_mcp_channel_t *channel,
    ngx_mcp_stream_t *stream, ngx_mcp_channel_log_e *from, size_t *n)
{
    ngx_mcp_log_sh_t       *log;
    ngx_mcp_cursor_t       *cursor, before;
    ngx_mcp_event_sh_t     *e, *of_group, *of_endpoint;
    ngx_mcp_channel_lost_t  lost;

    cursor = &stream->cursor;
    before = *cursor;
    *from = NGX_MCP_CHANNEL_OWN;

    log = channel->call ? &channel->call->log : &channel->session->log;
    e = ngx_mcp_log_after_locked(zone, log,
                                 channel->call ? (void *) channel->call
                                            : (void *) channel->session,
                                 cursor->own, stream->own);

    lost.n = ngx_mcp_channel_gap_locked(log, e, &cursor->own);

    /* the levels of the lost events are not known: the session may hide some */

    lost.some = (lost.n && channel->subscriber->level > NGX_MCP_LEVEL_DEBUG);

    /* an exclusive session, or a call, gets no event of the shared logs */

    if (channel->call || channel->session->exclusive) {
        *n = lost.some ? NGX_MCP_LOST_UNKNOWN : lost.n;
        return e;
    }

    lost.gap = (lost.n && ngx_mcp_session_extension(zone, channel->session)->gap
                          > before.own);

    of_group = ngx_mcp_channel_group_locked(zone, channel, channel->group,
                                            &cursor->group, stream->of_group,
                                            &lost);
    of_endpoint = ngx_mcp_channel_group_locked(zone, channel,
                                               channel->endpoint,
                                               &cursor->endpoint,
                                               stream->of_endpoint, &lost);

    if (lost.n && !lost.gap && stream->gap
        && e == NULL && of_group == NULL && of_endpoint == NULL)
    {
        stream->gap = NGX_MCP_GAP_MORE;
        *cursor = before;
        lost.n = 0;
    }

    *n = (lost.n && (lost.gap || lost.some)) ? NGX_MCP_LOST_UNKNOWN : lost.n;

    if (of_group && (e == NULL || of_group->stamp < e->stamp)) {
        *from = NGX_MCP_CHANNEL_GROUP;
        e = of_group;
    }

    if (of_endpoint && (e == NULL || of_endpoint->stamp < e->stamp)) {
        *from = NGX_MCP_CHANNEL_ENDPOINT;
        e = of_endpoint;
    }

    return e;
}


static ngx_mcp_event_sh_t *
ngx_mcp_channel_group_locked(ngx_mcp_zone_t *zone, ngx_mcp_channel_t *channel,
    ngx_mcp_group_sh_t *g, uint64_t *cursor, uint32_t hint,
    ngx_mcp_channel_lost_t *lost)
{
    size_t               missing;
    uint64_t             before;
    ngx_mcp_lost_e       rc;
    ngx_mcp_event_sh_t  *e;

    before = *cursor;

    e = ngx_mcp_log_after_locked(zone, &g->log, g, before, hint);
    missing = ngx_mcp_channel_gap_locked(&g->log, e, cursor);

    if (missing) {
        rc = ngx_mcp_losses_since_locked(zone, g, channel->subscriber, before);

        lost->n += (rc == NGX_MCP_LOST_NONE) ? 0 : missing;
        lost->some |= (rc == NGX_MCP_LOST_SOME);
        lost->gap |= (rc == NGX_MCP_LOST_GAP);
    }

    return e;
}


static size_t
ngx_mcp_channel_gap_locked(ngx_mcp_log_sh_t *log, ngx_mcp_event_sh_t *e,
    uint64_t *cursor)
{
    uint64_t  lost, upto;

    upto = e ? e->pos - 1 : log->last;

    if (upto <= *cursor) {
        return 0;
    }

    lost = upto - *cursor;
    *cursor = upto;

    return (size_t) lost;
}


static void
ngx_mcp_channel_advance(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    ngx_mcp_event_sh_t *e, ngx_mcp_channel_log_e from)
{
    uint32_t  n;

    n = ngx_mcp_number(zone, e);

    switch (from) {

    case NGX_MCP_CHANNEL_GROUP:
        stream->cursor.group = e->pos;
        stream->of_group = n;
        break;

    case NGX_MCP_CHANNEL_ENDPOINT:
        stream->cursor.endpoint = e->pos;
        stream->of_endpoint = n;
        break;

    default: /* NGX_MCP_CHANNEL_OWN */
        stream->cursor.own = e->pos;
        stream->own = n;
    }
}


static void
ngx_mcp_channel_count_locked(ngx_mcp_zone_t *zone, ngx_mcp_channel_t *channel)
{
    ngx_mcp_session_sh_t  *s;

    s = channel->session;

    /* one note in the journal up to "delivered", which is changed next */

    ngx_mcp_touch_range(zone, s, log.nread, subscriber.delivered);
    s->log.nread++;
}


static ngx_uint_t
ngx_mcp_channel_hidden_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_channel_t *channel, ngx_mcp_event_sh_t *e)
{
    if (e->level && e->level < channel->subscriber->level) {
        return 1;
    }

    if (e->target.flags & NGX_MCP_EVENT_UPSTREAM
        && ngx_mcp_upstream_session_receives_locked(zone, channel->session, e))
    {
        return 1;
    }

    return ngx_mcp_subscriber_hidden_locked(zone, channel->subscriber,
                                            &e->target);
}
