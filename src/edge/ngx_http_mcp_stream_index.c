
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_stream_body.h"


/* a number of wants that most streams do not exceed */
#define NGX_HTTP_MCP_WANTS_FEW  16


static ngx_queue_t *ngx_http_mcp_group_bucket(ngx_http_mcp_streams_t *streams,
    ngx_mcp_ref_t ref);
static ngx_http_mcp_group_t *ngx_http_mcp_group_find(
    ngx_http_mcp_streams_t *streams, ngx_mcp_ref_t ref);
static ngx_http_mcp_group_t *ngx_http_mcp_group_make(
    ngx_http_mcp_streams_t *streams, ngx_mcp_ref_t ref, uint64_t seen);
static void ngx_http_mcp_group_free(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_group_t *g);
static ngx_int_t ngx_http_mcp_stream_index(ngx_http_mcp_stream_t *s);
static ngx_int_t ngx_http_mcp_want_join(ngx_http_mcp_stream_t *s,
    uint64_t hash);
static void ngx_http_mcp_want_prefetch(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_want_t *w);
static void ngx_http_mcp_group_wake(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_group_t *g);
static ngx_http_mcp_group_t *ngx_http_mcp_group_next(
    ngx_http_mcp_streams_t *streams);
static ngx_int_t ngx_http_mcp_group_read(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_group_t *g);


static ngx_queue_t *
ngx_http_mcp_group_bucket(ngx_http_mcp_streams_t *streams, ngx_mcp_ref_t ref)
{
    return &streams->groups[ref.block % NGX_HTTP_MCP_STREAM_GROUPS];
}


static ngx_http_mcp_group_t *
ngx_http_mcp_group_find(ngx_http_mcp_streams_t *streams, ngx_mcp_ref_t ref)
{
    ngx_queue_t           *q, *bucket;
    ngx_http_mcp_group_t  *g;

    bucket = ngx_http_mcp_group_bucket(streams, ref);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        g = ngx_queue_data(q, ngx_http_mcp_group_t, link);

        if (g->ref.block == ref.block && g->ref.gen == ref.gen) {
            return g;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_mcp_stream_join_group(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_group_t    *g, *all;
    ngx_http_mcp_streams_t  *streams;

    streams = s->streams;

    g = ngx_http_mcp_group_find(streams, s->zs.group);

    if (g == NULL) {
        all = ngx_http_mcp_group_find(streams, s->zs.endpoint);

        if (all == NULL) {
            all = ngx_http_mcp_group_make(streams, s->zs.endpoint,
                                          s->zs.seen.endpoint);
            if (all == NULL) {
                return NGX_ERROR;
            }
        }

        g = ngx_http_mcp_group_make(streams, s->zs.group, s->zs.seen.group);

        if (g == NULL) {

            if (all->n == 0) {
                ngx_http_mcp_group_free(streams, all);
            }

            return NGX_ERROR;
        }

        g->endpoint = all;
        all->n++;

        ngx_queue_insert_tail(&all->groups, &g->sibling);
    }

    s->group = g;
    g->n++;

    s->all.stream = s;
    ngx_queue_insert_tail(&g->all.members, &s->all.queue);

    return NGX_OK;
}


static ngx_http_mcp_group_t *
ngx_http_mcp_group_make(ngx_http_mcp_streams_t *streams, ngx_mcp_ref_t ref,
    uint64_t seen)
{
    ngx_http_mcp_group_t  *g;

    g = ngx_calloc(sizeof(ngx_http_mcp_group_t), ngx_cycle->log);
    if (g == NULL) {
        return NULL;
    }

    g->ref = ref;
    g->seen = seen;

    ngx_queue_init(&g->groups);
    ngx_queue_init(&g->todo);
    ngx_queue_init(&g->all.members);
    ngx_queue_init(&g->all.todo);
    ngx_rbtree_init(&g->wants, &g->sentinel, ngx_http_mcp_tree_insert);

    ngx_queue_insert_head(ngx_http_mcp_group_bucket(streams, ref), &g->link);
    ngx_queue_insert_tail(&streams->unchanged_groups, &g->order);

    return g;
}


static void
ngx_http_mcp_group_free(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_group_t *g)
{
    if (streams->reading == g) {
        streams->reading = NULL;
    }

    if (streams->want == &g->all) {
        streams->want = NULL;
    }

    if (g->queued) {
        ngx_queue_remove(&g->pending);
    }

    ngx_queue_remove(&g->order);
    ngx_queue_remove(&g->link);
    ngx_free(g);
}


void
ngx_http_mcp_stream_leave_group(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_group_t  *g, *all;

    g = s->group;

    if (g == NULL) {
        return;
    }

    ngx_http_mcp_stream_unindex(s);

    s->group = NULL;
    ngx_queue_remove(&s->all.queue);

    if (--g->n) {
        return;
    }

    all = g->endpoint;

    ngx_queue_remove(&g->sibling);
    ngx_http_mcp_group_free(s->streams, g);

    if (--all->n == 0) {
        ngx_http_mcp_group_free(s->streams, all);
    }
}


ngx_int_t
ngx_http_mcp_stream_follow(ngx_http_mcp_stream_t *s)
{
    if (!s->indexed) {
        return (ngx_http_mcp_stream_index(s) == NGX_OK) ? NGX_AGAIN
                                                        : NGX_ERROR;
    }

    /* a stream whose gap has not been reported yet does not follow */

    s->follows = (s->zs.gap != NGX_MCP_GAP_MORE);

    return NGX_OK;
}


void
ngx_http_mcp_stream_unfollow(ngx_http_mcp_stream_t *s)
{
    ngx_mcp_cursor_t      *cursor;
    ngx_http_mcp_group_t  *g;

    if (s->follows) {
        s->follows = 0;

        g = s->group;
        cursor = &s->zs.cursor;

        cursor->group = ngx_max(cursor->group, g->seen);
        cursor->endpoint = ngx_max(cursor->endpoint, g->endpoint->seen);
    }
}


ngx_uint_t
ngx_http_mcp_stream_outdated(ngx_http_mcp_stream_t *s)
{
    ngx_mcp_cursor_t      *cursor;
    ngx_http_mcp_group_t  *g;

    if (!s->follows) {
        return 0;
    }

    g = s->group;
    cursor = &s->zs.cursor;

    return g->seen > cursor->group + s->conf->event_max
           || g->endpoint->seen > cursor->endpoint + s->conf->event_max;
}


/* adds the wants that the stream has got since the last call */

static ngx_int_t
ngx_http_mcp_stream_index(ngx_http_mcp_stream_t *s)
{
    uint64_t    *wants, few[NGX_HTTP_MCP_WANTS_FEW];
    ngx_int_t    rc;
    ngx_uint_t   i, n, max;

    wants = few;
    max = NGX_HTTP_MCP_WANTS_FEW;

    /* most indexed wants of the stream may be former ones */

    if (s->nwants > 2 * s->zs.nwants + NGX_HTTP_MCP_WANTS_FEW) {
        ngx_http_mcp_stream_unindex(s);
    }

    for ( ;; ) {
        n = ngx_mcp_stream_wants(s->streams->zone, &s->zs, wants, max);

        if (n <= max) {
            break;
        }

        if (wants != few) {
            ngx_free(wants);
        }

        max = n;

        wants = ngx_alloc(max * sizeof(uint64_t), ngx_cycle->log);
        if (wants == NULL) {
            return NGX_ERROR;
        }
    }

    rc = NGX_OK;
    s->indexed = 1;

    for (i = 0; i < n && rc == NGX_OK; i++) {
        rc = ngx_http_mcp_want_join(s, wants[i]);
    }

    if (wants != few) {
        ngx_free(wants);
    }

    if (rc != NGX_OK) {
        ngx_http_mcp_stream_unindex(s);
    }

    return rc;
}


/*
 * Events for which the stream was about to be woken are not lost, as the stream
 * reads its log once more before it follows again.
 */

void
ngx_http_mcp_stream_unindex(ngx_http_mcp_stream_t *s)
{
    ngx_http_mcp_want_t    *w;
    ngx_http_mcp_member_t  *m;

    ngx_http_mcp_stream_unfollow(s);

    s->indexed = 0;
    s->nwants = 0;
    s->zs.wanted = 0;

    while (s->wants) {
        m = s->wants;
        s->wants = m->next;

        w = m->want;
        ngx_queue_remove(&m->queue);
        ngx_free(m);

        if (ngx_queue_empty(&w->members) && ngx_queue_empty(&w->todo)) {

            if (s->streams->want == w) {
                s->streams->want = NULL;
            }

            ngx_mcp_want_remove(s->streams->zone, s->streams->counts,
                                w->node.key);
            ngx_rbtree_delete(&s->group->wants, &w->node.node);
            ngx_free(w);
        }
    }
}


static ngx_int_t
ngx_http_mcp_want_join(ngx_http_mcp_stream_t *s, uint64_t hash)
{
    ngx_http_mcp_want_t    *w;
    ngx_http_mcp_member_t  *m;

    m = ngx_alloc(sizeof(ngx_http_mcp_member_t), ngx_cycle->log);
    if (m == NULL) {
        return NGX_ERROR;
    }

    w = ngx_http_mcp_tree_find(&s->group->wants, hash);

    if (w == NULL) {
        w = ngx_alloc(sizeof(ngx_http_mcp_want_t), ngx_cycle->log);
        if (w == NULL) {
            ngx_free(m);
            return NGX_ERROR;
        }

        w->node.key = hash;

        ngx_queue_init(&w->members);
        ngx_queue_init(&w->todo);
        ngx_rbtree_insert(&s->group->wants, &w->node.node);
        ngx_mcp_want_add(s->streams->zone, s->streams->counts, hash);
    }

    m->stream = s;
    m->want = w;
    m->next = s->wants;
    s->wants = m;
    s->nwants++;

    ngx_queue_insert_tail(&w->members, &m->queue);

    return NGX_OK;
}


void
ngx_http_mcp_stream_group(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group)
{
    ngx_http_mcp_group_t    *g;
    ngx_http_mcp_streams_t  *streams;

    streams = zone->ctx[NGX_MCP_CTX_STREAMS];

    if (group.block) {
        g = ngx_http_mcp_group_find(streams, group);

        if (g == NULL) {
            return;
        }

        if (!g->queued) {
            g->queued = 1;
            ngx_queue_insert_tail(&streams->pending_groups, &g->pending);
        }

    } else if (!ngx_queue_empty(&streams->unchanged_groups)) {
        ngx_queue_add(&streams->changed_groups, &streams->unchanged_groups);
        ngx_queue_init(&streams->unchanged_groups);
    }

    ngx_post_event(&streams->turn, &ngx_posted_events);
}


/*
 * News is looked at in order, one group after the other.  No stream that
 * follows a group wants any of the news up to "seen" of that group.
 */

ngx_int_t
ngx_http_mcp_stream_news(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_stream_t **stream)
{
    ngx_queue_t            *q;
    ngx_mcp_news_t         *news;
    ngx_http_mcp_want_t    *w;
    ngx_http_mcp_group_t   *g;
    ngx_http_mcp_member_t  *m;

    *stream = NULL;

    w = streams->want;

    if (w && !ngx_queue_empty(&w->todo)) {
        q = ngx_queue_head(&w->todo);
        m = ngx_queue_data(q, ngx_http_mcp_member_t, queue);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&w->members, q);

        ngx_http_mcp_want_prefetch(streams, w);

        *stream = m->stream;

        return NGX_OK;
    }

    streams->want = NULL;
    g = streams->reading;

    if (g == NULL) {
        g = ngx_http_mcp_group_next(streams);

        return g ? ngx_http_mcp_group_read(streams, g) : NGX_DONE;
    }

    if (!ngx_queue_empty(&g->todo)) {
        q = ngx_queue_head(&g->todo);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&g->groups, q);

        g = ngx_queue_data(q, ngx_http_mcp_group_t, sibling);
        ngx_http_mcp_group_wake(streams, g);

        return NGX_OK;
    }

    if (streams->next < streams->nnews) {
        news = &streams->news[streams->next++];
        g->seen = news->pos - 1;
        streams->hash = news->want;

        if (g->endpoint) {
            ngx_http_mcp_group_wake(streams, g);

        } else {
            ngx_queue_add(&g->todo, &g->groups);
            ngx_queue_init(&g->groups);
        }

        return NGX_OK;
    }

    g->seen = streams->seen;

    if (streams->more) {
        return ngx_http_mcp_group_read(streams, g);
    }

    streams->reading = NULL;

    return NGX_OK;
}


/*
 * Prefetches memory of the next streams while one has its turn: of each stream
 * the memory to which the pointers lead that were prefetched before.
 */

static void
ngx_http_mcp_want_prefetch(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_want_t *w)
{
    ngx_uint_t              i;
    ngx_queue_t            *q;
    ngx_http_mcp_stream_t  *s;
    ngx_http_mcp_member_t  *m;

    q = ngx_queue_head(&w->todo);

    for (i = 0; i < 4 && q != ngx_queue_sentinel(&w->todo); i++) {
        m = ngx_queue_data(q, ngx_http_mcp_member_t, queue);

        switch (i) {

        case 0:
            s = m->stream;
            ngx_mcp_prefetch(s->connection->write, NGX_MCP_LINE);
            ngx_mcp_prefetch(s->listen.data, s->listen.len);
            ngx_mcp_stream_prefetch(streams->zone, &s->zs, streams->hash, 1);
            break;

        case 1:
            s = m->stream;
            ngx_mcp_prefetch(s->connection, sizeof(ngx_connection_t));
            ngx_mcp_stream_prefetch(streams->zone, &s->zs, streams->hash, 0);
            break;

        case 2:
            ngx_mcp_prefetch(m->stream, sizeof(ngx_http_mcp_stream_t));
            break;

        default:
            ngx_mcp_prefetch(m, sizeof(ngx_http_mcp_member_t));
        }

        q = ngx_queue_next(q);
    }
}


/* wakes the streams of a group that want the event */

static void
ngx_http_mcp_group_wake(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_group_t *g)
{
    ngx_http_mcp_want_t  *w;

    w = (streams->hash == NGX_MCP_WANT_ALL)
        ? &g->all : ngx_http_mcp_tree_find(&g->wants, streams->hash);

    if (w) {
        ngx_queue_add(&w->todo, &w->members);
        ngx_queue_init(&w->members);
        streams->want = w;
    }
}


static ngx_http_mcp_group_t *
ngx_http_mcp_group_next(ngx_http_mcp_streams_t *streams)
{
    ngx_queue_t           *q;
    ngx_http_mcp_group_t  *g;

    if (!ngx_queue_empty(&streams->pending_groups)) {
        q = ngx_queue_head(&streams->pending_groups);
        g = ngx_queue_data(q, ngx_http_mcp_group_t, pending);

        ngx_queue_remove(q);
        g->queued = 0;

        return g;
    }

    if (ngx_queue_empty(&streams->changed_groups)) {
        return NULL;
    }

    q = ngx_queue_head(&streams->changed_groups);

    ngx_queue_remove(q);
    ngx_queue_insert_tail(&streams->unchanged_groups, q);

    return ngx_queue_data(q, ngx_http_mcp_group_t, order);
}


static ngx_int_t
ngx_http_mcp_group_read(ngx_http_mcp_streams_t *streams,
    ngx_http_mcp_group_t *g)
{
    ngx_int_t  rc;

    streams->reading = g;
    streams->seen = g->seen;
    streams->next = 0;

    rc = ngx_mcp_group_news(streams->zone, g->ref, &streams->seen,
                            streams->news, &streams->nnews);

    streams->more = (rc == NGX_AGAIN);

    switch (rc) {

    case NGX_BUSY:
        streams->reading = NULL;

        if (!g->queued) {
            g->queued = 1;
            ngx_queue_insert_head(&streams->pending_groups, &g->pending);
        }

        return NGX_AGAIN;

    case NGX_DECLINED:

        /*
         * The group has ended with its sessions, and each stream learns that
         * by itself.
         */

        streams->news[0].pos = g->seen + 1;
        streams->news[0].want = NGX_MCP_WANT_ALL;
        streams->nnews = 1;

        break;
    }

    return NGX_OK;
}
