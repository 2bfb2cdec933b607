
#include "ngx_http_mcp_wait.h"
#include "ngx_http_mcp_turn.h"
#include "ngx_mcp_json_index.h"


/* events whose index is kept while they are looked at, of all topics */
#define NGX_HTTP_MCP_WAIT_CACHED  NGX_MCP_TOPIC_EVENTS

/* where a member of match may stand in an event */
#define NGX_HTTP_MCP_WAIT_LEVELS  3


typedef struct ngx_http_mcp_waits_s  ngx_http_mcp_waits_t;


/* a topic that is waited for in this worker */

struct ngx_http_mcp_watch_s {
    ngx_rbtree_node_t         node;
    ngx_http_mcp_waits_t     *waits;
    ngx_mcp_ref_t             topic;
    ngx_queue_t               waiters;    /* but for those that are due */
    ngx_uint_t                count;      /* of all */
};


struct ngx_http_mcp_wait_field_s {
    uint64_t                  paths[NGX_HTTP_MCP_WAIT_LEVELS];
    uint64_t                  value;
};


typedef struct {
    uint64_t                  position;   /* 0: unused */
    ngx_mcp_json_index_t      index;
} ngx_http_mcp_wait_cached_t;


/* of a worker and zone */

struct ngx_http_mcp_waits_s {
    ngx_mcp_zone_t             *zone;
    uint64_t                    seed;
    ngx_rbtree_t                watches;
    ngx_rbtree_node_t           sentinel;
    ngx_queue_t                 due;      /* waiters */
    ngx_event_t                 turn;
    ngx_http_mcp_wait_cached_t  cache[NGX_HTTP_MCP_WAIT_CACHED];

    /* of an event, while it is looked at */
    u_char                      text[NGX_MCP_TOPIC_BYTES];
};


static ngx_int_t ngx_http_mcp_wait_prepare(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_search(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_watch(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_join(ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_wait_leave(ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_wait_end(ngx_http_mcp_wait_t *w, ngx_int_t rc);
static void ngx_http_mcp_wait_timeout(ngx_event_t *ev);
static void ngx_http_mcp_wait_turn(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_wait_again(ngx_http_mcp_wait_t *w);
static ngx_http_mcp_waits_t *ngx_http_mcp_waits(ngx_mcp_zone_t *zone);
static ngx_http_mcp_watch_t *ngx_http_mcp_watch_find(
    ngx_http_mcp_waits_t *waits, ngx_mcp_ref_t topic);
static ngx_int_t ngx_http_mcp_watch_compare(ngx_http_mcp_watch_t *watch,
    ngx_mcp_ref_t topic);
static void ngx_http_mcp_watch_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_mcp_watch_due(ngx_http_mcp_watch_t *watch);
static void ngx_http_mcp_wait_shorten(ngx_queue_t *queue);
static ngx_int_t ngx_http_mcp_wait_matches(ngx_http_mcp_wait_t *w,
    ngx_str_t *event);
static ngx_mcp_json_index_t *ngx_http_mcp_wait_index(ngx_http_mcp_wait_t *w,
    ngx_str_t *event);
static void ngx_http_mcp_wait_cache_clear(ngx_http_mcp_waits_t *waits);


/* members of an event that name it */

static ngx_str_t  ngx_http_mcp_wait_names[] = {
    ngx_string("\"event_name\""),
    ngx_string("\"event\""),
    ngx_string("\"kind\""),
    ngx_string("\"method\""),
    ngx_null_string
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


/* the fields of a match, prepared to be compared in constant time */

static ngx_int_t
ngx_http_mcp_wait_prepare(ngx_http_mcp_wait_t *w)
{
    ngx_str_t                   rest, name, value;
    ngx_uint_t                  i;
    ngx_http_mcp_wait_field_t  *want;

    if (w->name.len) {
        w->name_hash = ngx_mcp_json_index_value(w->waits->seed, &w->name);
    }

    if (w->match.len == 0) {
        return NGX_OK;
    }

    w->wants = ngx_palloc(w->pool, NGX_HTTP_MCP_WAIT_FIELDS
                                   * sizeof(ngx_http_mcp_wait_field_t));
    if (w->wants == NULL) {
        return NGX_ERROR;
    }

    rest = w->match;

    while (w->nmatch_fields < NGX_HTTP_MCP_WAIT_FIELDS
           && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK)
    {
        want = &w->wants[w->nmatch_fields++];

        for (i = 0; i < NGX_HTTP_MCP_WAIT_LEVELS; i++) {
            want->paths[i] = ngx_mcp_json_index_path(w->waits->seed,
                                                 &ngx_http_mcp_wait_levels[i],
                                                 &name);
        }

        want->value = ngx_mcp_json_index_value(w->waits->seed, &value);
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


static ngx_int_t
ngx_http_mcp_wait_join(ngx_http_mcp_wait_t *w)
{
    ngx_http_mcp_watch_t  *watch;

    watch = ngx_http_mcp_watch_find(w->waits, w->ref);

    if (watch == NULL) {
        watch = ngx_alloc(sizeof(ngx_http_mcp_watch_t), ngx_cycle->log);
        if (watch == NULL) {
            return NGX_ERROR;
        }

        watch->node.key = w->ref.block;
        watch->waits = w->waits;
        watch->topic = w->ref;
        watch->count = 0;

        ngx_queue_init(&watch->waiters);
        ngx_rbtree_insert(&w->waits->watches, &watch->node);
    }

    watch->count++;
    w->watch = watch;

    ngx_queue_insert_tail(&watch->waiters, &w->queue);

    return NGX_OK;
}


static void
ngx_http_mcp_wait_leave(ngx_http_mcp_wait_t *w)
{
    ngx_http_mcp_watch_t  *watch;

    watch = w->watch;
    w->watch = NULL;

    ngx_queue_remove(&w->queue);

    if (--watch->count) {
        return;
    }

    ngx_mcp_topic_unwatch(watch->waits->zone, watch->topic);

    ngx_rbtree_delete(&watch->waits->watches, &watch->node);
    ngx_free(watch);
}


static void
ngx_http_mcp_wait_end(ngx_http_mcp_wait_t *w, ngx_int_t rc)
{
    ngx_http_mcp_wait_stop(w);

    w->ready(w, rc);
}


static ngx_int_t
ngx_http_mcp_wait_watch(ngx_http_mcp_wait_t *w)
{
    return ngx_mcp_topic_watch(w->zone, w->caller, &w->topic, &w->ref,
                               &w->after);
}


/* with NGX_AGAIN the topic is watched: nothing can come unnoticed */

static ngx_int_t
ngx_http_mcp_wait_search(ngx_http_mcp_wait_t *w)
{
    ngx_int_t   rc;
    ngx_str_t   event;
    ngx_uint_t  missed;

    event.data = w->waits->text;

    for ( ;; ) {
        rc = ngx_mcp_topic_next(w->zone, w->caller, w->ref, 1, &w->after,
                                event.data, &event.len, &missed);
        w->missed |= missed;

        if (rc == NGX_DECLINED) {
            rc = ngx_http_mcp_wait_watch(w);

            if (rc == NGX_OK) {
                continue;
            }
        }

        if (rc == NGX_OK) {
            rc = ngx_http_mcp_wait_matches(w, &event);

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

    w->event.len = event.len;
    w->event.data = ngx_pstrdup(w->pool, &event);

    return w->event.data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_mcp_wait_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_wait_t  *w;

    w = ev->data;

    ngx_http_mcp_wait_end(w, ngx_http_mcp_wait_search(w));
}


static ngx_http_mcp_waits_t *
ngx_http_mcp_waits(ngx_mcp_zone_t *zone)
{
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

    ngx_queue_init(&waits->due);

    ngx_rbtree_init(&waits->watches, &waits->sentinel,
                    ngx_http_mcp_watch_insert);

    waits->turn.handler = ngx_http_mcp_wait_turn;
    waits->turn.data = waits;
    waits->turn.log = ngx_cycle->log;

    zone->ctx[NGX_MCP_CTX_WAITS] = waits;

    return waits;
}


static ngx_http_mcp_watch_t *
ngx_http_mcp_watch_find(ngx_http_mcp_waits_t *waits, ngx_mcp_ref_t topic)
{
    ngx_int_t           rc;
    ngx_rbtree_node_t  *node;

    node = waits->watches.root;

    while (node != &waits->sentinel) {

        rc = ngx_http_mcp_watch_compare((ngx_http_mcp_watch_t *) node, topic);

        if (rc == 0) {
            return (ngx_http_mcp_watch_t *) node;
        }

        node = (rc < 0) ? node->right : node->left;
    }

    return NULL;
}


static ngx_int_t
ngx_http_mcp_watch_compare(ngx_http_mcp_watch_t *watch, ngx_mcp_ref_t topic)
{
    if (watch->topic.block != topic.block) {
        return (watch->topic.block < topic.block) ? -1 : 1;
    }

    if (watch->topic.gen != topic.gen) {
        return (watch->topic.gen < topic.gen) ? -1 : 1;
    }

    return 0;
}


static void
ngx_http_mcp_watch_insert(ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t     **p;
    ngx_http_mcp_watch_t   *watch;

    watch = (ngx_http_mcp_watch_t *) node;

    for ( ;; ) {
        p = ngx_http_mcp_watch_compare((ngx_http_mcp_watch_t *) temp,
                                       watch->topic)
            < 0 ? &temp->right : &temp->left;

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
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
        watch = ngx_http_mcp_watch_find(waits, topic);

        if (watch) {
            ngx_http_mcp_watch_due(watch);
        }

        return;
    }

    for (node = ngx_rbtree_min(waits->watches.root, &waits->sentinel);
         node;
         node = ngx_rbtree_next(&waits->watches, node))
    {
        ngx_http_mcp_watch_due((ngx_http_mcp_watch_t *) node);
    }
}


static void
ngx_http_mcp_watch_due(ngx_http_mcp_watch_t *watch)
{
    if (ngx_queue_empty(&watch->waiters)) {
        return;
    }

    ngx_queue_add(&watch->waits->due, &watch->waiters);
    ngx_queue_init(&watch->waiters);

    ngx_post_event(&watch->waits->turn, &ngx_posted_events);
}


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

    while (!ngx_queue_empty(&waits->due)) {

        q = ngx_queue_head(&waits->due);
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        rc = ngx_http_mcp_wait_search(w);

        if (rc == NGX_AGAIN) {
            rc = ngx_http_mcp_wait_again(w);
        }

        if (rc != NGX_AGAIN) {
            ngx_http_mcp_wait_end(w, rc);
        }

        if (ngx_http_mcp_turn_over(start)) {
            break;
        }
    }

    if (!ngx_queue_empty(&waits->due)) {
        ngx_post_event(ev, &ngx_posted_next_events);
        return;
    }

    ngx_http_mcp_wait_cache_clear(waits);
}


/* it is due no more, and goes on waiting; NGX_AGAIN or NGX_ERROR */

static ngx_int_t
ngx_http_mcp_wait_again(ngx_http_mcp_wait_t *w)
{
    if (ngx_http_mcp_watch_compare(w->watch, w->ref) == 0) {
        ngx_queue_remove(&w->queue);
        ngx_queue_insert_tail(&w->watch->waiters, &w->queue);

        return NGX_AGAIN;
    }

    /* its topic was forgotten and made anew */

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

    ngx_http_mcp_wait_shorten(&waits->due);

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
            /* a timer that is set anew a little earlier would stay */

            ngx_del_timer(&w->timer);
            ngx_add_timer(&w->timer, wait);
        }
    }
}


/* NGX_OK or NGX_DECLINED; NGX_ERROR: no memory */

static ngx_int_t
ngx_http_mcp_wait_matches(ngx_http_mcp_wait_t *w, ngx_str_t *event)
{
    uint64_t               path, value;
    ngx_str_t             *member;
    ngx_uint_t             i, n;
    ngx_mcp_json_index_t  *index;

    if (w->name.len == 0 && w->nmatch_fields == 0) {
        return NGX_OK;
    }

    index = ngx_http_mcp_wait_index(w, event);
    if (index == NULL) {
        return NGX_ERROR;
    }

    for (member = ngx_http_mcp_wait_names; w->name.len; member++) {

        if (member->len == 0) {
            return NGX_DECLINED;
        }

        path = ngx_mcp_json_index_path(w->waits->seed,
                                       &ngx_http_mcp_wait_levels[0], member);

        if (ngx_mcp_json_index_find(index, path, &value)
            && value == w->name_hash)
        {
            break;
        }
    }

    value = 0;

    for (n = 0; n < w->nmatch_fields; n++) {

        for (i = 0; i < NGX_HTTP_MCP_WAIT_LEVELS; i++) {
            if (ngx_mcp_json_index_find(index, w->wants[n].paths[i], &value)) {
                break;
            }
        }

        if (i == NGX_HTTP_MCP_WAIT_LEVELS || value != w->wants[n].value) {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/* made once for all who wait; NULL: no memory */

static ngx_mcp_json_index_t *
ngx_http_mcp_wait_index(ngx_http_mcp_wait_t *w, ngx_str_t *event)
{
    ngx_uint_t                   size;
    ngx_mcp_json_field_t        *fields;
    ngx_http_mcp_wait_cached_t  *kept;

    kept = &w->waits->cache[w->after % NGX_HTTP_MCP_WAIT_CACHED];

    if (kept->position == w->after) {
        return &kept->index;
    }

    size = ngx_mcp_json_index_size(event);

    fields = ngx_alloc(size * sizeof(ngx_mcp_json_field_t), ngx_cycle->log);
    if (fields == NULL) {
        return NULL;
    }

    if (kept->position) {
        ngx_free(kept->index.fields);
    }

    kept->position = w->after;

    ngx_mcp_json_index(&kept->index, event, w->waits->seed, fields, size);

    return &kept->index;
}


static void
ngx_http_mcp_wait_cache_clear(ngx_http_mcp_waits_t *waits)
{
    ngx_uint_t                   i;
    ngx_http_mcp_wait_cached_t  *kept;

    for (i = 0; i < NGX_HTTP_MCP_WAIT_CACHED; i++) {
        kept = &waits->cache[i];

        if (kept->position) {
            ngx_free(kept->index.fields);
            kept->position = 0;
        }
    }
}
