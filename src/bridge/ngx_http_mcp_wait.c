
#include "ngx_http_mcp_wait.h"
#include <cjson/cJSON.h>


#define NGX_HTTP_MCP_WAIT_BUCKETS  256

/* waiters that are looked at in one turn of the event loop */
#define NGX_HTTP_MCP_WAIT_TURN     64


static ngx_int_t ngx_http_mcp_wait_search(ngx_http_mcp_wait_t *w);
static ngx_int_t ngx_http_mcp_wait_watch(ngx_http_mcp_wait_t *w);
static ngx_uint_t ngx_http_mcp_wait_others(ngx_http_mcp_wait_t *w);
static void ngx_http_mcp_wait_end(ngx_http_mcp_wait_t *w, ngx_int_t rc);
static void ngx_http_mcp_wait_timeout(ngx_event_t *ev);
static void ngx_http_mcp_wait_turn(ngx_event_t *ev);
static ngx_queue_t *ngx_http_mcp_wait_bucket(uint32_t block);
static void ngx_http_mcp_wait_due(ngx_queue_t *bucket, ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t topic);
static void ngx_http_mcp_wait_hurry(ngx_queue_t *bucket,
    ngx_mcp_zone_t *zone);
static ngx_uint_t ngx_http_mcp_wait_named(ngx_str_t *event, ngx_str_t *name);
static ngx_uint_t ngx_http_mcp_wait_matches(ngx_str_t *event,
    ngx_str_t *match);
static ngx_uint_t ngx_http_mcp_wait_field(ngx_str_t *object, ngx_str_t *name,
    ngx_str_t *value);
static ngx_uint_t ngx_http_mcp_wait_equal(ngx_str_t *a, ngx_str_t *b);


/* members of an event that name it */

static ngx_str_t  ngx_http_mcp_wait_names[] = {
    ngx_string("\"event_name\""),
    ngx_string("\"event\""),
    ngx_string("\"kind\""),
    ngx_string("\"method\""),
    ngx_null_string
};


static ngx_queue_t  ngx_http_mcp_waiters[NGX_HTTP_MCP_WAIT_BUCKETS];
static ngx_queue_t  ngx_http_mcp_waiters_due;
static ngx_event_t  ngx_http_mcp_waiters_turn;

/* of an event, while it is looked at */
static u_char       ngx_http_mcp_wait_text[NGX_MCP_TOPIC_BYTES];


ngx_int_t
ngx_http_mcp_wait_start(ngx_http_mcp_wait_t *w)
{
    ngx_int_t   rc;
    ngx_msec_t  timeout;

    rc = ngx_http_mcp_wait_watch(w);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_mcp_wait_search(w);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    timeout = w->timeout;

    if (ngx_exiting) {
        timeout = ngx_min(timeout, ngx_random() % (w->drain + 1));
    }

    w->timer.handler = ngx_http_mcp_wait_timeout;
    w->timer.data = w;
    w->timer.log = ngx_cycle->log;

    ngx_add_timer(&w->timer, timeout);

    w->waiting = 1;
    ngx_queue_insert_tail(ngx_http_mcp_wait_bucket(w->ref.block), &w->queue);

    return NGX_AGAIN;
}


void
ngx_http_mcp_wait_stop(ngx_http_mcp_wait_t *w)
{
    if (!w->waiting) {
        return;
    }

    w->waiting = 0;
    ngx_queue_remove(&w->queue);

    if (w->timer.timer_set) {
        ngx_del_timer(&w->timer);
    }

    if (!ngx_http_mcp_wait_others(w)) {
        ngx_mcp_topic_unwatch(w->zone, w->ref);
    }
}


/* those who are due watch it again if they go on waiting */

static ngx_uint_t
ngx_http_mcp_wait_others(ngx_http_mcp_wait_t *w)
{
    ngx_queue_t          *q, *bucket;
    ngx_http_mcp_wait_t  *other;

    bucket = ngx_http_mcp_wait_bucket(w->ref.block);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        if (other->zone == w->zone && other->ref.block == w->ref.block
            && other->ref.gen == w->ref.gen)
        {
            return 1;
        }
    }

    return 0;
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
    return ngx_mcp_topic_watch(w->zone, w->session, &w->topic, &w->ref,
                               &w->after);
}


/* with NGX_AGAIN the topic is watched: nothing can come unnoticed */

static ngx_int_t
ngx_http_mcp_wait_search(ngx_http_mcp_wait_t *w)
{
    ngx_int_t   rc;
    ngx_str_t   event;
    ngx_uint_t  missed;

    event.data = ngx_http_mcp_wait_text;

    for ( ;; ) {
        rc = ngx_mcp_topic_next(w->zone, w->session, w->ref, 1, &w->after,
                                event.data, &event.len, &missed);
        w->missed |= missed;

        if (rc == NGX_DECLINED) {
            rc = ngx_http_mcp_wait_watch(w);

            if (rc == NGX_OK) {
                continue;
            }
        }

        if (rc == NGX_DONE) {
            return NGX_DECLINED;
        }

        if (rc != NGX_OK) {
            return rc;
        }

        if (ngx_http_mcp_wait_named(&event, &w->name)
            && ngx_http_mcp_wait_matches(&event, &w->match))
        {
            break;
        }
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


static ngx_queue_t *
ngx_http_mcp_wait_bucket(uint32_t block)
{
    ngx_uint_t  i;

    if (ngx_http_mcp_waiters_due.next == NULL) {
        ngx_queue_init(&ngx_http_mcp_waiters_due);

        for (i = 0; i < NGX_HTTP_MCP_WAIT_BUCKETS; i++) {
            ngx_queue_init(&ngx_http_mcp_waiters[i]);
        }

        ngx_http_mcp_waiters_turn.handler = ngx_http_mcp_wait_turn;
        ngx_http_mcp_waiters_turn.log = ngx_cycle->log;
    }

    return &ngx_http_mcp_waiters[block % NGX_HTTP_MCP_WAIT_BUCKETS];
}


void
ngx_http_mcp_wait_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t topic)
{
    ngx_uint_t  i;

    if (topic.block) {
        ngx_http_mcp_wait_due(ngx_http_mcp_wait_bucket(topic.block), zone,
                              topic);
        return;
    }

    for (i = 0; i < NGX_HTTP_MCP_WAIT_BUCKETS; i++) {
        ngx_http_mcp_wait_due(ngx_http_mcp_wait_bucket((uint32_t) i), zone,
                              topic);
    }
}


static void
ngx_http_mcp_wait_due(ngx_queue_t *bucket, ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t topic)
{
    ngx_queue_t          *q, *next;
    ngx_http_mcp_wait_t  *w;

    for (q = ngx_queue_head(bucket); q != ngx_queue_sentinel(bucket); q = next)
    {
        next = ngx_queue_next(q);
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        if (w->zone != zone
            || (topic.block && (w->ref.block != topic.block
                                || w->ref.gen != topic.gen)))
        {
            continue;
        }

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ngx_http_mcp_waiters_due, q);
    }

    if (!ngx_queue_empty(&ngx_http_mcp_waiters_due)) {
        ngx_post_event(&ngx_http_mcp_waiters_turn, &ngx_posted_events);
    }
}


static void
ngx_http_mcp_wait_turn(ngx_event_t *ev)
{
    ngx_int_t             rc;
    ngx_uint_t            n;
    ngx_queue_t          *q;
    ngx_http_mcp_wait_t  *w;

    for (n = 0; !ngx_queue_empty(&ngx_http_mcp_waiters_due); n++) {

        if (n == NGX_HTTP_MCP_WAIT_TURN) {
            ngx_post_event(ev, &ngx_posted_next_events);
            return;
        }

        q = ngx_queue_head(&ngx_http_mcp_waiters_due);
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        rc = ngx_http_mcp_wait_search(w);

        if (rc == NGX_AGAIN) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(ngx_http_mcp_wait_bucket(w->ref.block), q);
            continue;
        }

        ngx_http_mcp_wait_end(w, rc);
    }
}


void
ngx_http_mcp_wait_drain(ngx_mcp_zone_t *zone)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_MCP_WAIT_BUCKETS; i++) {
        ngx_http_mcp_wait_hurry(ngx_http_mcp_wait_bucket((uint32_t) i), zone);
    }

    ngx_http_mcp_wait_hurry(&ngx_http_mcp_waiters_due, zone);
}


static void
ngx_http_mcp_wait_hurry(ngx_queue_t *bucket, ngx_mcp_zone_t *zone)
{
    ngx_msec_t            wait;
    ngx_queue_t          *q;
    ngx_http_mcp_wait_t  *w;

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        w = ngx_queue_data(q, ngx_http_mcp_wait_t, queue);

        if (w->zone != zone) {
            continue;
        }

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


static ngx_uint_t
ngx_http_mcp_wait_named(ngx_str_t *event, ngx_str_t *name)
{
    ngx_str_t  value, *member;

    if (name->len == 0) {
        return 1;
    }

    for (member = ngx_http_mcp_wait_names; member->len; member++) {

        if (ngx_http_mcp_wait_field(event, member, &value)
            && ngx_http_mcp_wait_equal(&value, name))
        {
            return 1;
        }
    }

    return 0;
}


/* a field that the event lacks may stand in its payload */

static ngx_uint_t
ngx_http_mcp_wait_matches(ngx_str_t *event, ngx_str_t *match)
{
    ngx_str_t         rest, name, want, value, payload;
    static ngx_str_t  key = ngx_string("\"payload\"");

    rest = *match;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &want) == NGX_OK) {

        if (!ngx_http_mcp_wait_field(event, &name, &value)
            && (!ngx_http_mcp_wait_field(event, &key, &payload)
                || payload.data[0] != '{'
                || !ngx_http_mcp_wait_field(&payload, &name, &value)))
        {
            return 0;
        }

        if (!ngx_http_mcp_wait_equal(&value, &want)) {
            return 0;
        }
    }

    return 1;
}


/* the last member of this raw name */

static ngx_uint_t
ngx_http_mcp_wait_field(ngx_str_t *object, ngx_str_t *name, ngx_str_t *value)
{
    ngx_str_t   rest, key, v;
    ngx_uint_t  found;

    found = 0;
    rest = *object;

    while (ngx_mcp_json_member(&rest, &key, &v) == NGX_OK) {

        if (ngx_mcp_json_same_id(&key, name)) {
            *value = v;
            found = 1;
        }
    }

    return found;
}


/* strings and what is written alike; else numbers and structures by value */

static ngx_uint_t
ngx_http_mcp_wait_equal(ngx_str_t *a, ngx_str_t *b)
{
    cJSON       *x, *y;
    ngx_uint_t   equal;

    if (a->data[0] == '"' || b->data[0] == '"') {
        return a->data[0] == b->data[0] && ngx_mcp_json_same_id(a, b);
    }

    if (ngx_mcp_equal(a, b)) {
        return 1;
    }

    x = cJSON_ParseWithLength((char *) a->data, a->len);
    y = cJSON_ParseWithLength((char *) b->data, b->len);

    equal = (x && y && cJSON_Compare(x, y, 1));

    cJSON_Delete(x);
    cJSON_Delete(y);

    return equal;
}
