
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_wait.h"
#include "ngx_http_mcp_tree.h"
#include "ngx_http_mcp_turn.h"
#include "ngx_mcp_json_index.h"


/* events, of all topics, whose index is cached, at most */
#define NGX_HTTP_MCP_WAIT_CACHED  NGX_MCP_TOPIC_EVENTS

/* objects in an event in which a member of "match" is searched */
#define NGX_HTTP_MCP_WAIT_LEVELS  3


/* members of an event that may hold its name */
#define NGX_HTTP_MCP_WAIT_NAMES   4


typedef struct ngx_http_mcp_waits_s        ngx_http_mcp_waits_t;
typedef struct ngx_http_mcp_wait_shape_s   ngx_http_mcp_wait_shape_t;


/*
 * A topic for which this worker has waiters.  An event is read once, and is
 * compared once with each shape, however many waiters there are.
 */

struct ngx_http_mcp_watch_s {
    ngx_http_mcp_tree_node_t    node;     /* node with the topic's key */
    ngx_http_mcp_waits_t       *waits;
    ngx_mcp_ref_t               topic;
    ngx_queue_t                 rung;     /* link in waits->rung */
    uint64_t                    seen;     /* position of the last event that
                                             was compared with all shapes */
    ngx_queue_t                 shapes;   /* shapes with which the next event
                                             has to be compared */
    ngx_queue_t                 done;     /* shapes with which the next event
                                             has been compared */
    ngx_rbtree_t                tree;     /* all shapes */
    ngx_rbtree_node_t           sentinel;
    ngx_queue_t                 waiters;  /* all waiters of the topic */
    ngx_uint_t                  is_rung;  /* the watch is in waits->rung */
};


/* a shape: the waiters whose filters have the same members */

struct ngx_http_mcp_wait_shape_s {
    ngx_http_mcp_tree_node_t    node;     /* its key is a hash of "named" and
                                             "paths" */
    ngx_queue_t                 queue;    /* link in "shapes" or "done" of the
                                             watch */
    ngx_rbtree_t                filters;
    ngx_rbtree_node_t           sentinel;
    ngx_uint_t                  count;    /* number of filters */
    ngx_uint_t                  named;    /* the filters have a name */
    ngx_uint_t                  n;        /* number of members of "match" */
    uint64_t                    paths[][NGX_HTTP_MCP_WAIT_LEVELS];
                                          /* hashes of the places of a member in
                                             an event */
};


/* a filter: the waiters of a shape that want the same values, by their hash */

struct ngx_http_mcp_wait_filter_s {
    ngx_http_mcp_tree_node_t    node;     /* node with a hash of the values */
    ngx_http_mcp_wait_shape_t  *shape;
    ngx_queue_t                 waiters;  /* waiters that are not due */
    ngx_uint_t                  count;    /* number of all waiters */
};


/* a member of "match", as hashes */

struct ngx_http_mcp_wait_field_s {
    uint64_t                  paths[NGX_HTTP_MCP_WAIT_LEVELS];
    uint64_t                  value;
};


/* the index of an event */

typedef struct {
    uint64_t                  position;   /* position of the event; 0: the
                                             place is unused */
    ngx_mcp_json_index_t      index;
} ngx_http_mcp_wait_cached_t;


#define ngx_http_mcp_watch_key(topic)                                         \
    ((uint64_t) (topic).gen << 32 | (topic).block)


/* mixes values, which are hashes with a seed, into one hash */

#define ngx_http_mcp_wait_mix(hash, value)                                    \
    (((hash) ^ (value)) * 0x9e3779b97f4a7c15ULL + ((hash) >> 29))


/* this worker's waiters for topics of a zone */

struct ngx_http_mcp_waits_s {
    ngx_mcp_zone_t             *zone;
    uint64_t                    seed;     /* seed of all hashes, so that clients
                                             cannot choose texts with equal
                                             hashes */
    uint64_t                    names[NGX_HTTP_MCP_WAIT_NAMES];
                                          /* hashes of the members that may hold
                                             an event's name */
    ngx_rbtree_t                watches;
    ngx_rbtree_node_t           sentinel;
    ngx_queue_t                 rung;     /* watches whose topics have new
                                             events */
    ngx_queue_t                 due;      /* waiters that an event may match */
    ngx_event_t                 turn;     /* posted while "rung" or "due" has
                                             elements */
    ngx_http_mcp_wait_cached_t  cache[NGX_HTTP_MCP_WAIT_CACHED];

    /* text of the event that is being compared */
    u_char                      text[NGX_MCP_TOPIC_BYTES];
};


static ngx_int_t ngx_http_mcp_wait_prepare(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_search(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_watch(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_join(ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_wait_leave(ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_watch_drop_unused(ngx_http_mcp_watch_t *watch);
static void ngx_http_mcp_wait_end(ngx_http_mcp_wait_t *w, ngx_int_t rc);
static void ngx_http_mcp_wait_timeout(ngx_event_t *ev);
static void ngx_http_mcp_wait_turn(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_wait_again(ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_wait_shorten(ngx_queue_t *queue);
static ngx_http_mcp_waits_t *ngx_http_mcp_waits(ngx_mcp_zone_t *zone);
static void ngx_http_mcp_watch_ring(ngx_http_mcp_watch_t *watch);
static void ngx_http_mcp_watch_check(ngx_http_mcp_watch_t *watch,
    ngx_msec_t start);
static void ngx_http_mcp_watch_seen(ngx_http_mcp_watch_t *watch,
    uint64_t position);
static void ngx_http_mcp_watch_all_due(ngx_http_mcp_watch_t *watch);
static ngx_http_mcp_wait_filter_t *ngx_http_mcp_wait_filter(
    ngx_http_mcp_watch_t *watch, ngx_http_mcp_wait_t *w);
static ngx_http_mcp_wait_shape_t *ngx_http_mcp_wait_shape(
    ngx_http_mcp_watch_t *watch, ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_wait_shape_drop_unused(ngx_http_mcp_watch_t *watch,
    ngx_http_mcp_wait_shape_t *shape);
static void ngx_http_mcp_wait_shape_check(ngx_http_mcp_watch_t *watch,
    ngx_http_mcp_wait_shape_t *shape, ngx_mcp_json_index_t *index,
    uint64_t position);
static void ngx_http_mcp_wait_shape_due(ngx_http_mcp_wait_shape_t *shape,
    uint64_t hash, uint64_t position);
static void ngx_http_mcp_wait_due(ngx_http_mcp_wait_t *w, uint64_t position);
static ngx_int_t ngx_http_mcp_wait_matches(ngx_http_mcp_wait_t *w,
    ngx_str_t *event);
static ngx_uint_t ngx_http_mcp_wait_value(ngx_mcp_json_index_t *index,
    uint64_t *paths, uint64_t *value);
static ngx_mcp_json_index_t *ngx_http_mcp_wait_index(
    ngx_http_mcp_waits_t *waits, uint64_t position, ngx_str_t *event);
static void ngx_http_mcp_wait_cache_clear(ngx_http_mcp_waits_t *waits);


static ngx_str_t  ngx_http_mcp_wait_names[NGX_HTTP_MCP_WAIT_NAMES] = {
    ngx_string("\"event_name\""),
    ngx_string("\"event\""),
    ngx_string("\"kind\""),
    ngx_string("\"method\"")
};


static ngx_str_t  ngx_http_mcp_wait_levels[NGX_HTTP_MCP_WAIT_LEVELS] = {
    ngx_string(""),
    ngx_string("params."),
    ngx_string("payload.")
};


ngx_int_t
ngx_http_mcp_wait_start(ngx_http_mcp_wait_t *w)
{
    ngx_int_t   rc;
    ngx_msec_t  timeout;

    w->waits = ngx_http_mcp_waits(w->zone);

    if (w->waits == NULL || ngx_http_mcp_wait_prepare(w) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_mcp_wait_watch(w);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_mcp_wait_search(w);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    if (ngx_http_mcp_wait_join(w) != NGX_OK) {
        return NGX_ERROR;
    }

    timeout = w->timeout;

    if (ngx_exiting) {
        timeout = ngx_min(timeout, ngx_random() % (w->drain + 1));
    }

    w->timer.handler = ngx_http_mcp_wait_timeout;
    w->timer.data = w;
    w->timer.log = ngx_cycle->log;

    ngx_add_timer(&w->timer, timeout);

    return NGX_AGAIN;
}


/* computes the hashes of the name and the members of "match" */

static ngx_int_t
ngx_http_mcp_wait_prepare(ngx_http_mcp_wait_t *w)
{
    ngx_str_t                   rest, name, value;
    ngx_uint_t                  i;
    ngx_http_mcp_wait_field_t  *field;

    w->shape_hash = 0;
    w->filter_hash = 0;

    if (w->name.len) {
        w->name_hash = ngx_mcp_json_index_value(w->waits->seed, &w->name);
        w->shape_hash = 1;
    }

    rest = w->match;

    if (rest.len) {
        w->fields = ngx_palloc(w->pool, NGX_HTTP_MCP_WAIT_FIELDS
                                       * sizeof(ngx_http_mcp_wait_field_t));
        if (w->fields == NULL) {
            return NGX_ERROR;
        }
    }

    while (rest.len && w->nfields < NGX_HTTP_MCP_WAIT_FIELDS
           && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK)
    {
        field = &w->fields[w->nfields++];

        for (i = 0; i < NGX_HTTP_MCP_WAIT_LEVELS; i++) {
            field->paths[i] = ngx_mcp_json_index_path(w->waits->seed,
                                                 &ngx_http_mcp_wait_levels[i],
                                                 &name);
        }

        field->value = ngx_mcp_json_index_value(w->waits->seed, &value);

        w->shape_hash = ngx_http_mcp_wait_mix(w->shape_hash, field->paths[0]);
        w->filter_hash = ngx_http_mcp_wait_mix(w->filter_hash, field->value);
    }

    if (w->name.len) {
        w->filter_hash = ngx_http_mcp_wait_mix(w->filter_hash, w->name_hash);
    }

    return NGX_OK;
}


void
ngx_http_mcp_wait_stop(ngx_http_mcp_wait_t *w)
{
    if (w->watch) {
        ngx_http_mcp_wait_leave(w);
    }

    if (w->timer.timer_set) {
        ngx_del_timer(&w->timer);
    }
}


/* adds the waiter to the watch of its topic; NGX_OK or NGX_ERROR */

static ngx_int_t
ngx_http_mcp_wait_join(ngx_http_mcp_wait_t *w)
{
    ngx_http_mcp_watch_t        *watch;
    ngx_http_mcp_wait_filter_t  *filter;

    watch = ngx_http_mcp_tree_find(&w->waits->watches,
                                   ngx_http_mcp_watch_key(w->ref));

    if (watch == NULL) {
        watch = ngx_alloc(sizeof(ngx_http_mcp_watch_t), ngx_cycle->log);
        if (watch == NULL) {
            return NGX_ERROR;
        }

        watch->node.key = ngx_http_mcp_watch_key(w->ref);
        watch->waits = w->waits;
        watch->topic = w->ref;
        watch->seen = w->after;
        watch->is_rung = 0;

        ngx_queue_init(&watch->shapes);
        ngx_queue_init(&watch->done);
        ngx_queue_init(&watch->waiters);
        ngx_rbtree_init(&watch->tree, &watch->sentinel,
                        ngx_http_mcp_tree_insert);
        ngx_rbtree_insert(&w->waits->watches, &watch->node.node);
    }

    filter = ngx_http_mcp_wait_filter(watch, w);

    if (filter == NULL) {
        ngx_http_mcp_watch_drop_unused(watch);
        return NGX_ERROR;
    }

    filter->count++;

    w->watch = watch;
    w->filter = filter;
    w->due = 0;

    ngx_queue_insert_tail(&watch->waiters, &w->queue);
    ngx_queue_insert_tail(&filter->waiters, &w->same);

    return NGX_OK;
}


static void
ngx_http_mcp_wait_leave(ngx_http_mcp_wait_t *w)
{
    ngx_http_mcp_watch_t        *watch;
    ngx_http_mcp_wait_shape_t   *shape;
    ngx_http_mcp_wait_filter_t  *filter;

    watch = w->watch;
    filter = w->filter;
    shape = filter->shape;

    w->watch = NULL;
    w->filter = NULL;

    ngx_queue_remove(&w->queue);
    ngx_queue_remove(&w->same);

    if (--filter->count == 0) {
        ngx_rbtree_delete(&shape->filters, &filter->node.node);
        ngx_free(filter);

        shape->count--;
        ngx_http_mcp_wait_shape_drop_unused(watch, shape);
    }

    ngx_http_mcp_watch_drop_unused(watch);
}


/* frees a watch without waiters */

static void
ngx_http_mcp_watch_drop_unused(ngx_http_mcp_watch_t *watch)
{
    if (!ngx_queue_empty(&watch->waiters)) {
        return;
    }

    if (watch->is_rung) {
        ngx_queue_remove(&watch->rung);
    }

    ngx_mcp_topic_unwatch(watch->waits->zone, watch->topic);

    ngx_rbtree_delete(&watch->waits->watches, &watch->node.node);
    ngx_free(watch);
}


/* finds or makes the filter of a waiter; NULL: no memory */

static ngx_http_mcp_wait_filter_t *
ngx_http_mcp_wait_filter(ngx_http_mcp_watch_t *watch, ngx_http_mcp_wait_t *w)
{
    ngx_http_mcp_wait_shape_t   *shape;
    ngx_http_mcp_wait_filter_t  *filter;

    shape = ngx_http_mcp_wait_shape(watch, w);

    if (shape == NULL) {
        return NULL;
    }

    filter = ngx_http_mcp_tree_find(&shape->filters, w->filter_hash);

    if (filter) {
        return filter;
    }

    filter = ngx_alloc(sizeof(ngx_http_mcp_wait_filter_t), ngx_cycle->log);

    if (filter == NULL) {
        ngx_http_mcp_wait_shape_drop_unused(watch, shape);
        return NULL;
    }

    filter->node.key = w->filter_hash;
    filter->shape = shape;
    filter->count = 0;

    ngx_queue_init(&filter->waiters);
    ngx_rbtree_insert(&shape->filters, &filter->node.node);
    shape->count++;

    return filter;
}


static ngx_http_mcp_wait_shape_t *
ngx_http_mcp_wait_shape(ngx_http_mcp_watch_t *watch, ngx_http_mcp_wait_t *w)
{
    size_t                      len;
    ngx_uint_t                  i;
    ngx_http_mcp_wait_shape_t  *shape;

    shape = ngx_http_mcp_tree_find(&watch->tree, w->shape_hash);

    if (shape) {
        return shape;
    }

    len = sizeof(ngx_http_mcp_wait_shape_t)
          + w->nfields * sizeof(shape->paths[0]);

    shape = ngx_alloc(len, ngx_cycle->log);
    if (shape == NULL) {
        return NULL;
    }

    shape->node.key = w->shape_hash;
    shape->count = 0;
    shape->named = (w->name.len != 0);
    shape->n = w->nfields;

    for (i = 0; i < shape->n; i++) {
        ngx_memcpy(shape->paths[i], w->fields[i].paths,
                   sizeof(shape->paths[i]));
    }

    ngx_rbtree_init(&shape->filters, &shape->sentinel,
                    ngx_http_mcp_tree_insert);

    ngx_rbtree_insert(&watch->tree, &shape->node.node);
    ngx_queue_insert_tail(&watch->shapes, &shape->queue);

    return shape;
}


/* frees a shape without filters */

static void
ngx_http_mcp_wait_shape_drop_unused(ngx_http_mcp_watch_t *watch,
    ngx_http_mcp_wait_shape_t *shape)
{
    if (shape->count == 0) {
        ngx_rbtree_delete(&watch->tree, &shape->node.node);
        ngx_queue_remove(&shape->queue);
        ngx_free(shape);
    }
}


static void
ngx_http_mcp_wait_end(ngx_http_mcp_wait_t *w, ngx_int_t rc)
{
    ngx_http_mcp_wait_stop(w);

    w->ready(w, rc);
}


/* finds or makes the topic in the zone, and lets it wake this worker */

static ngx_int_t
ngx_http_mcp_wait_watch(ngx_http_mcp_wait_t *w)
{
    return ngx_mcp_topic_watch(w->zone, w->caller, &w->topic, &w->ref,
                               &w->after);
}


/*
 * Searches for an event that matches; returns as ngx_http_mcp_wait_start().
 * NGX_AGAIN: none matches; the topic is watched, so the next one is noticed.
 */

static ngx_int_t
ngx_http_mcp_wait_search(ngx_http_mcp_wait_t *w)
{
    ngx_int_t              rc;
    ngx_mcp_topic_event_t  event;

    event.text.data = w->waits->text;

    for ( ;; ) {
        event.position = w->after;

        rc = ngx_mcp_topic_next(w->zone, w->caller, w->ref, 1, &event);

        w->after = event.position;
        w->missed |= event.missed;

        if (rc == NGX_DECLINED) {
            rc = ngx_http_mcp_wait_watch(w);

            if (rc == NGX_OK) {
                continue;
            }
        }

        if (rc == NGX_OK) {
            rc = ngx_http_mcp_wait_matches(w, &event.text);

            if (rc == NGX_DECLINED) {
                continue;
            }

        } else if (rc == NGX_DONE) {
            rc = NGX_DECLINED;
        }

        break;
    }

    if (ngx_queue_empty(&w->waits->due)) {
        ngx_http_mcp_wait_cache_clear(w->waits);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    w->event.len = event.text.len;
    w->event.data = ngx_pstrdup(w->pool, &event.text);

    return w->event.data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_mcp_wait_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_wait_t  *w;

    w = ev->data;

    /* the events up to this position do not match */

    if (!w->due) {
        w->after = ngx_max(w->after, w->watch->seen);
    }

    ngx_http_mcp_wait_end(w, ngx_http_mcp_wait_search(w));
}


static ngx_http_mcp_waits_t *
ngx_http_mcp_waits(ngx_mcp_zone_t *zone)
{
    ngx_uint_t             i;
    ngx_http_mcp_waits_t  *waits;

    waits = zone->ctx[NGX_MCP_CTX_WAITS];

    if (waits) {
        return waits;
    }

    waits = ngx_pcalloc(ngx_cycle->pool, sizeof(ngx_http_mcp_waits_t));
    if (waits == NULL) {
        return NULL;
    }

    waits->zone = zone;
    waits->seed = ((uint64_t) ngx_random() << 33)
                  ^ ((uint64_t) ngx_random() << 11)
                  ^ (uint64_t) ngx_pid;

    for (i = 0; i < NGX_HTTP_MCP_WAIT_NAMES; i++) {
        waits->names[i] = ngx_mcp_json_index_path(waits->seed,
                                                 &ngx_http_mcp_wait_levels[0],
                                                 &ngx_http_mcp_wait_names[i]);
    }

    ngx_queue_init(&waits->rung);
    ngx_queue_init(&waits->due);

    ngx_rbtree_init(&waits->watches, &waits->sentinel,
                    ngx_http_mcp_tree_insert);

    waits->turn.handler = ngx_http_mcp_wait_turn;
    waits->turn.data = waits;
    waits->turn.log = ngx_cycle->log;

    zone->ctx[NGX_MCP_CTX_WAITS] = waits;

    return waits;
}


void
ngx_http_mcp_wait_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic)
{
    ngx_rbtree_node_t     *node;
    ngx_http_mcp_watch_t  *watch;
    ngx_http_mcp_waits_t  *waits;

    waits = zone->ctx[NGX_MCP_CTX_WAITS];

    if (waits == NULL || waits->watches.root == &waits->sentinel) {
        return;
    }

    if (topic.block) {
        watch = ngx_http_mcp_tree_find(&waits->watches,
                                       ngx_http_mcp_watch_key(topic));

        if (watch) {
            ngx_http_mcp_watch_ring(watch);
        }

        return;
    }

    for (node = ngx_rbtree_min(waits->watches.root, &waits->sentinel);
         node;
         node = ngx_rbtree_next(&waits->watches, node))
    {
        ngx_http_mcp_watch_ring((ngx_http_mcp_watch_t *) node);
    }
}


static void
ngx_http_mcp_watch_ring(ngx_http_mcp_watch_t *watch)
{
    if (!watch->is_rung) {
        watch->is_rung = 1;
        ngx_queue_insert_tail(&watch->waits->rung, &watch->rung);
    }

    ngx_post_event(&watch->waits->turn, &ngx_posted_events);
}


/* compares new events, and lets due waiters search, for one turn */

static void
ngx_http_mcp_wait_turn(ngx_event_t *ev)
{
    ngx_int_t              rc;
    ngx_msec_t             start;
    ngx_queue_t           *q;
    ngx_http_mcp_wait_t   *w;
    ngx_http_mcp_waits_t  *waits;

    waits = ev->data;

    start = ngx_http_mcp_turn_now();

    do {
        if (ngx_queue_empty(&waits->due)) {

            if (ngx_queue_empty(&waits->rung)) {
                ngx_http_mcp_wait_cache_clear(waits);
                return;
            }

            q = ngx_queue_head(&waits->rung);
            ngx_http_mcp_watch_check(ngx_queue_data(q, ngx_http_mcp_watch_t,
                                                    rung),
                                     start);
            continue;
        }

        q = ngx_queue_head(&waits->due);
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, same);

        rc = ngx_http_mcp_wait_search(w);

        if (rc == NGX_AGAIN) {
            rc = ngx_http_mcp_wait_again(w);
        }

        if (rc != NGX_AGAIN) {
            ngx_http_mcp_wait_end(w, rc);
        }

    } while (!ngx_http_mcp_turn_over(start));

    ngx_post_event(ev, &ngx_posted_next_events);
}


/* compares the next event with the shapes, if need be in several turns */

static void
ngx_http_mcp_watch_check(ngx_http_mcp_watch_t *watch, ngx_msec_t start)
{
    ngx_int_t                   rc;
    ngx_queue_t                *q;
    ngx_mcp_json_index_t       *index;
    ngx_http_mcp_waits_t       *waits;
    ngx_mcp_topic_event_t       event;
    ngx_http_mcp_wait_shape_t  *shape;

    waits = watch->waits;
    event.text.data = waits->text;
    event.position = watch->seen;
    index = NULL;

    rc = ngx_mcp_topic_next(waits->zone, NULL, watch->topic, 1, &event);

    if (rc == NGX_OK && !event.missed) {
        index = ngx_http_mcp_wait_index(waits, event.position, &event.text);
    }

    if (index == NULL) {

        ngx_queue_remove(&watch->rung);
        watch->is_rung = 0;

        if (rc != NGX_AGAIN || event.missed) {
            ngx_http_mcp_watch_all_due(watch);
            ngx_http_mcp_watch_seen(watch, event.position);
        }

        return;
    }

    while (!ngx_queue_empty(&watch->shapes)) {

        q = ngx_queue_head(&watch->shapes);
        shape = ngx_queue_data(q, ngx_http_mcp_wait_shape_t, queue);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&watch->done, q);

        ngx_http_mcp_wait_shape_check(watch, shape, index, event.position);

        if (ngx_http_mcp_turn_over(start)) {
            break;
        }
    }

    if (ngx_queue_empty(&watch->shapes)) {
        ngx_http_mcp_watch_seen(watch, event.position);
    }
}


/* the event at this position was compared with all shapes */

static void
ngx_http_mcp_watch_seen(ngx_http_mcp_watch_t *watch, uint64_t position)
{
    watch->seen = position;

    if (!ngx_queue_empty(&watch->done)) {
        ngx_queue_add(&watch->shapes, &watch->done);
        ngx_queue_init(&watch->done);
    }
}


/*
 * Makes all waiters due: the topic was dropped, or events were lost, so each
 * waiter has to search the topic itself.
 */

static void
ngx_http_mcp_watch_all_due(ngx_http_mcp_watch_t *watch)
{
    ngx_queue_t          *q;
    ngx_http_mcp_wait_t  *w;

    for (q = ngx_queue_head(&watch->waiters);
         q != ngx_queue_sentinel(&watch->waiters);
         q = ngx_queue_next(q))
    {
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        if (!w->due) {
            ngx_http_mcp_wait_due(w, watch->seen);
        }
    }
}


/* makes those waiters due whose filters have the values of the event */

static void
ngx_http_mcp_wait_shape_check(ngx_http_mcp_watch_t *watch,
    ngx_http_mcp_wait_shape_t *shape, ngx_mcp_json_index_t *index,
    uint64_t position)
{
    uint64_t    hash, value;
    ngx_uint_t  i;

    hash = 0;

    for (i = 0; i < shape->n; i++) {

        if (!ngx_http_mcp_wait_value(index, shape->paths[i], &value)) {
            return;
        }

        hash = ngx_http_mcp_wait_mix(hash, value);
    }

    if (!shape->named) {
        ngx_http_mcp_wait_shape_due(shape, hash, position);
        return;
    }

    for (i = 0; i < NGX_HTTP_MCP_WAIT_NAMES; i++) {

        if (ngx_mcp_json_index_find(index, watch->waits->names[i], &value)) {
            value = ngx_http_mcp_wait_mix(hash, value);
            ngx_http_mcp_wait_shape_due(shape, value, position);
        }
    }
}


static void
ngx_http_mcp_wait_shape_due(ngx_http_mcp_wait_shape_t *shape, uint64_t hash,
    uint64_t position)
{
    ngx_queue_t                 *q;
    ngx_http_mcp_wait_filter_t  *filter;

    filter = ngx_http_mcp_tree_find(&shape->filters, hash);

    if (filter == NULL) {
        return;
    }

    while (!ngx_queue_empty(&filter->waiters)) {
        q = ngx_queue_head(&filter->waiters);

        ngx_http_mcp_wait_due(ngx_queue_data(q, ngx_http_mcp_wait_t, same),
                              position - 1);
    }
}


/* makes a waiter due; events up to this position do not match */

static void
ngx_http_mcp_wait_due(ngx_http_mcp_wait_t *w, uint64_t position)
{
    w->due = 1;
    w->after = ngx_max(w->after, position);

    ngx_queue_remove(&w->same);
    ngx_queue_insert_tail(&w->waits->due, &w->same);
}


/* the waiter is no longer due and continues to wait; NGX_AGAIN or NGX_ERROR */

static ngx_int_t
ngx_http_mcp_wait_again(ngx_http_mcp_wait_t *w)
{
    if (w->watch->node.key == ngx_http_mcp_watch_key(w->ref)) {
        w->due = 0;

        ngx_queue_remove(&w->same);
        ngx_queue_insert_tail(&w->filter->waiters, &w->same);

        return NGX_AGAIN;
    }

    /* the topic was dropped, and there is a new one with this name */

    ngx_http_mcp_wait_leave(w);

    return (ngx_http_mcp_wait_join(w) == NGX_OK) ? NGX_AGAIN : NGX_ERROR;
}


void
ngx_http_mcp_wait_drain(ngx_mcp_zone_t *zone)
{
    ngx_rbtree_node_t     *node;
    ngx_http_mcp_waits_t  *waits;

    waits = zone->ctx[NGX_MCP_CTX_WAITS];

    if (waits == NULL) {
        return;
    }

    if (waits->watches.root == &waits->sentinel) {
        return;
    }

    for (node = ngx_rbtree_min(waits->watches.root, &waits->sentinel);
         node;
         node = ngx_rbtree_next(&waits->watches, node))
    {
        ngx_http_mcp_wait_shorten(&((ngx_http_mcp_watch_t *) node)->waiters);
    }
}


static void
ngx_http_mcp_wait_shorten(ngx_queue_t *queue)
{
    ngx_msec_t            wait;
    ngx_queue_t          *q;
    ngx_http_mcp_wait_t  *w;

    for (q = ngx_queue_head(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_next(q))
    {
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        wait = ngx_random() % (w->drain + 1);

        if ((ngx_msec_int_t) (w->timer.timer.key - ngx_current_msec)
            > (ngx_msec_int_t) wait)
        {
            /* ngx_add_timer() alone would ignore a small difference */

            ngx_del_timer(&w->timer);
            ngx_add_timer(&w->timer, wait);
        }
    }
}


/* checks whether the event matches; NGX_OK, NGX_DECLINED, NGX_ERROR (memory) */

static ngx_int_t
ngx_http_mcp_wait_matches(ngx_http_mcp_wait_t *w, ngx_str_t *event)
{
    uint64_t               value;
    ngx_uint_t             i, n;
    ngx_mcp_json_index_t  *index;

    if (w->name.len == 0 && w->nfields == 0) {
        return NGX_OK;
    }

    index = ngx_http_mcp_wait_index(w->waits, w->after, event);
    if (index == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; w->name.len; i++) {

        if (i == NGX_HTTP_MCP_WAIT_NAMES) {
            return NGX_DECLINED;
        }

        if (ngx_mcp_json_index_find(index, w->waits->names[i], &value)
            && value == w->name_hash)
        {
            break;
        }
    }

    for (n = 0; n < w->nfields; n++) {

        if (!ngx_http_mcp_wait_value(index, w->fields[n].paths, &value)
            || value != w->fields[n].value)
        {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/* gets the value at the first level that has the member; 0: none has it */

static ngx_uint_t
ngx_http_mcp_wait_value(ngx_mcp_json_index_t *index, uint64_t *paths,
    uint64_t *value)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_MCP_WAIT_LEVELS; i++) {
        if (ngx_mcp_json_index_find(index, paths[i], value)) {
            return 1;
        }
    }

    return 0;
}


/* returns the index of an event, made once for all waiters; NULL: no memory */

static ngx_mcp_json_index_t *
ngx_http_mcp_wait_index(ngx_http_mcp_waits_t *waits, uint64_t position,
    ngx_str_t *event)
{
    ngx_uint_t                   size;
    ngx_mcp_json_field_t        *fields;
    ngx_http_mcp_wait_cached_t  *cached;

    cached = &waits->cache[position % NGX_HTTP_MCP_WAIT_CACHED];

    if (cached->position == position) {
        return &cached->index;
    }

    size = ngx_mcp_json_index_size(event);

    fields = ngx_alloc(size * sizeof(ngx_mcp_json_field_t), ngx_cycle->log);
    if (fields == NULL) {
        return NULL;
    }

    if (cached->position) {
        ngx_free(cached->index.fields);
    }

    cached->position = position;

    ngx_mcp_json_index(&cached->index, event, waits->seed, fields, size);

    return &cached->index;
}


static void
ngx_http_mcp_wait_cache_clear(ngx_http_mcp_waits_t *waits)
{
    ngx_uint_t                   i;
    ngx_http_mcp_wait_cached_t  *cached;

    for (i = 0; i < NGX_HTTP_MCP_WAIT_CACHED; i++) {
        cached = &waits->cache[i];

        if (cached->position) {
            ngx_free(cached->index.fields);
            cached->position = 0;
        }
    }
}
