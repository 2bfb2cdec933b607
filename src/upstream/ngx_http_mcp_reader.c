
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_reader.h"
#include "ngx_http_mcp_manner.h"
#include "ngx_mcp_json.h"


/* ms; for this time, a worker that quits waits for a newer one to take over */
#define NGX_HTTP_MCP_READER_TAKEOVER  3500

/* ms; the same, if there is no newer worker, as at a shutdown */
#define NGX_HTTP_MCP_READER_SHUTDOWN  200

/* ms; for this time, a replaced stream is still read: events may arrive late */
#define NGX_HTTP_MCP_READER_OVERLAP   1000

/*
 * ms; the longest pause (Retry-After) that a worker inherits with a lease: the
 * backend may have changed at a reload
 */
#define NGX_HTTP_MCP_READER_PAUSE     60000

/* ms; the first pause after a conflict: the other stream may end soon */
#define NGX_HTTP_MCP_READER_CONFLICT  50

/* whether the SSE event that x has received says that the feed lost events */


#define ngx_http_mcp_reader_lagged(x)                                         \
    ((x)->feed && (x)->sse && (x)->sse->name.len == sizeof("lagged") - 1      \
     && ngx_strncmp((x)->sse->name.data, "lagged", sizeof("lagged") - 1) == 0)


static void ngx_http_mcp_reader_claim(ngx_http_mcp_reader_kind_t *kind,
    ngx_mcp_zone_t *zone, ngx_str_t *key);
static void ngx_http_mcp_reader_event(ngx_event_t *ev,
    ngx_event_handler_pt handler, ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_retry(ngx_event_t *ev);
static ngx_int_t ngx_http_mcp_reader_attempt(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t **slot);
static ngx_int_t ngx_http_mcp_reader_filter(
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *uris);
static void ngx_http_mcp_reader_replaced(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_replace_handler(ngx_event_t *ev);
static void ngx_http_mcp_reader_overlap_end(ngx_event_t *ev);
static void ngx_http_mcp_reader_replace_failed(ngx_http_mcp_reader_t *reader);
static ngx_uint_t ngx_http_mcp_reader_repeated(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text);
static ngx_uint_t ngx_http_mcp_reader_other_done(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_reader_close_request(
    ngx_http_mcp_upstream_request_t **slot);
static void ngx_http_mcp_reader_before_open(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_reader_opened(ngx_http_mcp_upstream_request_t *ureq);
static ngx_int_t ngx_http_mcp_reader_connected(ngx_http_mcp_reader_t *reader,
    ngx_uint_t *gap);
static void ngx_http_mcp_reader_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);
static void ngx_http_mcp_reader_skipped(ngx_http_mcp_upstream_request_t *ureq,
    ngx_uint_t n);
static void ngx_http_mcp_reader_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static ngx_uint_t ngx_http_mcp_reader_refused(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_reader_destroyed(
    ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_reader_disconnected(ngx_http_mcp_reader_t *reader);
static ngx_msec_t ngx_http_mcp_reader_delay(ngx_http_mcp_reader_t *reader);
static ngx_msec_t ngx_http_mcp_reader_pause(ngx_http_mcp_reader_t *reader,
    ngx_msec_t delay);
static void ngx_http_mcp_reader_stop(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_close_requests(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_set_id(ngx_http_mcp_reader_t *reader,
    ngx_str_t *id);
static ngx_mcp_sse_t *ngx_http_mcp_reader_sse(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_tick(ngx_event_t *ev);
static void ngx_http_mcp_reader_save_id(ngx_http_mcp_reader_t *reader);
static ngx_uint_t ngx_http_mcp_reader_drain(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_takeover_timeout(ngx_event_t *ev);
static ngx_uint_t ngx_http_mcp_reader_key_is(ngx_str_t *key, ngx_str_t *kind);


ngx_http_mcp_reader_kind_t  **ngx_http_mcp_reader_kinds;


ngx_int_t
ngx_http_mcp_reader_init_worker(ngx_mcp_zone_t *zone)
{
    return ngx_mcp_ctx_queues(zone, NGX_MCP_CTX_READERS,
                              NGX_HTTP_MCP_READER_KINDS)
           ? NGX_OK : NGX_ERROR;
}


void
ngx_http_mcp_reader_lease(ngx_mcp_zone_t *zone, ngx_str_t *key, ngx_uint_t why)
{
    uint32_t                      hash;
    ngx_http_mcp_reader_t        *reader;
    ngx_http_mcp_reader_kind_t  **kind;

    reader = ngx_http_mcp_reader_find(zone, key);

    if (reader && (why & NGX_MCP_LEASE_LOST)) {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_LOST);
        reader = NULL;
    }

    if (reader && (why & NGX_MCP_LEASE_GAP)) {
        reader->kind->gap(reader, "the worker that read the stream died");
    }

    if (reader && (why & NGX_MCP_LEASE_SIGNALED)) {
        reader->kind->signaled(reader);
    }

    if (why & NGX_MCP_LEASE_SETTLED) {
        hash = ngx_crc32_short(key->data, key->len);
        ngx_http_mcp_waiter_wake(zone, NGX_HTTP_MCP_WAIT_STREAM,
                                 NGX_MCP_RING_KEY(hash));
    }

    if (reader || !(why & NGX_MCP_LEASE_FREE) || ngx_exiting) {
        return;
    }

    for (kind = ngx_http_mcp_reader_kinds; *kind; kind++) {

        if ((*kind)->name.len
            && ngx_http_mcp_reader_key_is(key, &(*kind)->name))
        {
            ngx_http_mcp_reader_claim(*kind, zone, key);
            return;
        }
    }
}


ngx_http_mcp_reader_t *
ngx_http_mcp_reader_find(ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    uint32_t                      hash;
    ngx_queue_t                  *q, *readers;
    ngx_http_mcp_reader_t        *reader;
    ngx_http_mcp_reader_kind_t  **kind;

    hash = ngx_crc32_short(key->data, key->len);

    for (kind = ngx_http_mcp_reader_kinds; *kind; kind++) {

        if ((*kind)->name.len == 0) {
            continue;
        }

        readers = ngx_http_mcp_reader_queue(zone, (*kind)->number);

        for (q = ngx_queue_head(readers);
             q != ngx_queue_sentinel(readers);
             q = ngx_queue_next(q))
        {
            reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);

            if (reader->hash == hash && ngx_mcp_equal(&reader->key, key)) {
                return reader;
            }
        }
    }

    return NULL;
}


static void
ngx_http_mcp_reader_claim(ngx_http_mcp_reader_kind_t *kind,
    ngx_mcp_zone_t *zone, ngx_str_t *key)
{
    ngx_int_t                   serial;
    ngx_str_t                   copy;
    ngx_pool_t                 *pool;
    ngx_http_mcp_reader_t      *reader;
    ngx_mcp_lease_checkpoint_t  checkpoint;

    pool = ngx_create_pool(2048, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    reader = kind->create(zone, key, pool);

    if (reader == NULL
        || ngx_http_mcp_string_copy(pool, &copy, key) != NGX_OK
        || ngx_mcp_lease_claim(zone, key, pool, &reader->lease, &checkpoint)
           != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return;
    }

    reader->kind = kind;
    reader->pool = pool;
    reader->key = copy;
    reader->hash = ngx_crc32_short(key->data, key->len);
    reader->leased = 1;

    ngx_http_mcp_reader_init(reader);

    /* the note is the serial of the upstream session of the last event id */

    serial = ngx_atoi(checkpoint.note.data, checkpoint.note.len);

    reader->noted_serial = (serial == NGX_ERROR) ? 0 : serial;
    reader->serial = reader->noted_serial;
    reader->not_before = ngx_min(checkpoint.pause, ngx_current_msec
                                             + NGX_HTTP_MCP_READER_PAUSE);

    ngx_http_mcp_reader_set_id(reader, &checkpoint.id);

    ngx_add_timer(&reader->tick, NGX_MCP_LEASE_RENEW);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp reader %V from id \"%V\"", key, &reader->id);

    if (kind->held(reader) != NGX_OK) {
        ngx_queue_remove(&reader->queue);
        ngx_del_timer(&reader->tick);

        (void) ngx_mcp_lease_drop(zone, &reader->lease);
        ngx_destroy_pool(pool);
    }
}


void
ngx_http_mcp_reader_init(ngx_http_mcp_reader_t *reader)
{
    reader->id.data = reader->id_buf;

    ngx_http_mcp_reader_event(&reader->tick, ngx_http_mcp_reader_tick, reader);
    ngx_http_mcp_reader_event(&reader->retry, ngx_http_mcp_reader_retry,
                              reader);
    ngx_http_mcp_reader_event(&reader->takeover,
                              ngx_http_mcp_reader_takeover_timeout, reader);
    ngx_http_mcp_reader_event(&reader->replace,
                              ngx_http_mcp_reader_replace_handler, reader);
    ngx_http_mcp_reader_event(&reader->overlap,
                              ngx_http_mcp_reader_overlap_end, reader);

    ngx_http_mcp_backoff_init(&reader->replacing);

    reader->takeover.cancelable = 0;

    ngx_queue_insert_tail(ngx_http_mcp_reader_queue(reader->upstream->zone,
                                                    reader->kind->number),
                          &reader->queue);
}


static void
ngx_http_mcp_reader_event(ngx_event_t *ev, ngx_event_handler_pt handler,
    ngx_http_mcp_reader_t *reader)
{
    ev->handler = handler;
    ev->data = reader;
    ev->log = ngx_cycle->log;
    ev->cancelable = 1;
}


ngx_msec_t
ngx_http_mcp_reader_open(ngx_http_mcp_reader_t *reader)
{
    ngx_msec_t  pause;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp reader of \"%V\" opens for session %V",
                   &reader->upstream->name, &reader->audience.session);

    ngx_http_mcp_backoff_init(&reader->backoff);

    /* starts in a later event: the caller may be in a handler of a request */

    pause = ngx_http_mcp_reader_pause(reader, 0);

    if (pause && reader->leased) {
        (void) ngx_mcp_lease_failed(reader->upstream->zone, &reader->lease);
    }

    ngx_add_timer(&reader->retry, pause);

    return pause;
}


static void
ngx_http_mcp_reader_retry(ngx_event_t *ev)
{
    ngx_int_t               rc;
    ngx_http_mcp_reader_t  *reader;

    reader = ev->data;

    if (reader->replaced || (ngx_exiting && !reader->no_takeover)) {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_RELEASED);
        return;
    }

    rc = NGX_DECLINED;

    if (reader->kind->wanted == NULL || reader->kind->wanted(reader)) {
        rc = ngx_http_mcp_reader_attempt(reader, &reader->ureq);
    }

    if (rc == NGX_ERROR) {

        /* no memory or connection was free; a later attempt may succeed */

        reader->conflict = 0;
        ngx_http_mcp_reader_disconnected(reader);

    } else if (rc != NGX_OK) {
        reader->kind->stopped(reader);
    }
}


/*
 * Starts an upstream request for the stream.  NGX_OK; NGX_DECLINED: another
 * attempt would fail, too; NGX_ERROR: another attempt may succeed.
 */

static ngx_int_t
ngx_http_mcp_reader_attempt(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t **slot)
{
    ngx_int_t                         rc;
    ngx_connection_t                 *c;
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = ngx_http_mcp_upstream_request_create(reader->upstream,
                                                &reader->audience,
                                                reader->headers);
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    *slot = ureq;

    ngx_http_mcp_background_hold_worker(ureq->r);

    ureq->owner = reader->owner;
    ureq->get_stream = 1;
    ureq->stateful = (reader->kind->filter == NULL);
    ureq->healed = reader->session_kept;
    ureq->serial = reader->serial;
    ureq->before_open = ngx_http_mcp_reader_before_open;
    ureq->stream_opened = ngx_http_mcp_reader_opened;
    ureq->filter = reader->kind->filter ? ngx_http_mcp_reader_filter : NULL;
    ureq->message = ngx_http_mcp_reader_message;
    ureq->skipped = ngx_http_mcp_reader_skipped;
    ureq->done = ngx_http_mcp_reader_done;
    ureq->destroyed = ngx_http_mcp_reader_destroyed;
    ureq->data = reader;

    /* the request may outlive the reader */

    rc = ngx_http_mcp_string_copy(ureq->r->pool, &ureq->last_event_id,
                                  &reader->id);

    if (rc == NGX_OK && reader->kind->request) {
        rc = reader->kind->request(reader, ureq);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_mcp_upstream_request_start(ureq);
    }

    if (rc == NGX_OK && ureq->scope.dots) {
        rc = NGX_DECLINED;
    }

    if (rc != NGX_OK) {
        ngx_http_mcp_reader_close_request(slot);
        return rc;
    }

    /* the request may end, and be freed, during this call */

    c = ureq->r->connection;
    ngx_http_run_posted_requests(c);

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_reader_filter(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *uris)
{
    ngx_http_mcp_reader_t  *reader;

    reader = ureq->data;

    return reader->kind->filter(reader, ureq->r->pool, uris);
}


static void
ngx_http_mcp_reader_before_open(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_reader_t  *reader;

    reader = ureq->data;

    if (reader->kind->before_open) {
        reader->kind->before_open(reader, ureq->us ? ureq->us->serial : 0);
    }
}


static void
ngx_http_mcp_reader_opened(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_uint_t              gap, serial;
    ngx_http_mcp_reader_t  *reader;

    reader = ureq->data;
    serial = ureq->us ? ureq->us->serial : 0;

    if (ureq == reader->next) {
        ngx_http_mcp_reader_replaced(reader);
        return;
    }

    reader->up = 1;
    reader->resumed = (ureq->x->last_event_id.len != 0);
    reader->received = 0;
    reader->conflicts = 0;
    reader->session_kept = 0;
    reader->up_since = ngx_current_msec;

    if (reader->serial != serial) {

        /* the event id of another upstream session is not valid in this one */

        reader->serial = serial;
        reader->id.len = 0;
    }

    gap = 0;

    if (reader->leased && ngx_http_mcp_reader_connected(reader, &gap) != NGX_OK)
    {
        reader->lease_lost = 1;
        ngx_http_mcp_reader_check_lease(reader);
        return;
    }

    reader->kind->opened(reader, (gap && !reader->resumed)
                                 || reader->id_refused);

    reader->id_refused = 0;
    reader->failure = 0;

    if (reader->kind->acknowledged) {
        reader->kind->acknowledged(reader, &ureq->acknowledged);
    }
}


void
ngx_http_mcp_reader_replace(ngx_http_mcp_reader_t *reader)
{
    if (reader->up && reader->next == NULL && !reader->replaced
        && !reader->replace.timer_set)
    {
        ngx_add_timer(&reader->replace, ngx_http_mcp_reader_pause(reader, 0));
    }
}


static void
ngx_http_mcp_reader_replace_handler(ngx_event_t *ev)
{
    ngx_int_t               rc;
    ngx_http_mcp_reader_t  *reader;

    reader = ev->data;

    if (!reader->up || reader->next || reader->replaced || ngx_exiting) {
        return;
    }

    if (reader->repeats == NULL) {
        reader->repeats = ngx_palloc(reader->pool, NGX_HTTP_MCP_READER_REPEATS
                                        * sizeof(ngx_http_mcp_reader_repeat_t));
        if (reader->repeats == NULL) {
            ngx_http_mcp_reader_replace_failed(reader);
            return;
        }
    }

    /*
     * Closes an earlier replaced stream that is still read, because only two
     * streams at a time can be compared.
     */

    if (reader->overlap.timer_set) {
        ngx_del_timer(&reader->overlap);
        ngx_http_mcp_reader_close_request(&reader->old);
    }

    reader->nrepeats = 0;

    rc = ngx_http_mcp_reader_attempt(reader, &reader->next);

    /* on NGX_DECLINED no attempt can succeed, and the present stream stays */

    if (rc == NGX_ERROR) {
        ngx_http_mcp_reader_replace_failed(reader);
    }
}


static void
ngx_http_mcp_reader_replace_failed(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_reader_close_request(&reader->next);

    reader->nrepeats = 0;

    ngx_add_timer(&reader->replace,
                  ngx_http_mcp_reader_pause(reader,
                                            ngx_http_mcp_backoff_next(
                                                         &reader->replacing)));
}


/* the new stream is open and becomes the present one */

static void
ngx_http_mcp_reader_replaced(ngx_http_mcp_reader_t *reader)
{
    reader->old = reader->ureq;
    reader->ureq = reader->next;
    reader->next = NULL;

    reader->up_since = ngx_current_msec;

    ngx_http_mcp_backoff_reset(&reader->replacing);

    ngx_add_timer(&reader->overlap, NGX_HTTP_MCP_READER_OVERLAP);

    if (reader->kind->acknowledged) {
        reader->kind->acknowledged(reader, &reader->ureq->acknowledged);
    }
}


static void
ngx_http_mcp_reader_overlap_end(ngx_event_t *ev)
{
    ngx_http_mcp_reader_t  *reader;

    reader = ev->data;

    ngx_http_mcp_reader_close_request(&reader->old);

    reader->nrepeats = 0;
}


/*
 * Whether the other stream of an overlap has sent this message already.  While
 * both streams are open, each sends all messages: of equal messages, the n-th
 * of one stream and the n-th of the other are one event.  The older stream may
 * have more messages, from the time before the newer one opened.
 */

static ngx_uint_t
ngx_http_mcp_reader_repeated(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_str_t *text)
{
    uint64_t                       hash;
    ngx_uint_t                     i, newer;
    ngx_http_mcp_reader_repeat_t  *repeats;

    if (reader->next == NULL && reader->old == NULL) {
        return 0;
    }

    newer = (reader->old && ureq != reader->old);

    hash = ((uint64_t) ngx_murmur_hash2(text->data, text->len) << 32)
           | ngx_crc32_long(text->data, text->len);

    repeats = reader->repeats;

    for (i = 0; i < reader->nrepeats; i++) {
        if (repeats[i].text == hash) {
            break;
        }
    }

    if (i == reader->nrepeats) {

        if (i == NGX_HTTP_MCP_READER_REPEATS) {
            return 0;
        }

        repeats[i].text = hash;
        repeats[i].reads[0] = 0;
        repeats[i].reads[1] = 0;

        reader->nrepeats++;
    }

    return ++repeats[i].reads[newer] <= repeats[i].reads[!newer];
}


/*
 * Handles the end of a request of an overlap that is not that of the present
 * stream.  Returns 0 if the request is that of the present stream.
 */

static ngx_uint_t
ngx_http_mcp_reader_other_done(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq)
{
    if (ureq == reader->next) {
        ngx_http_mcp_reader_replace_failed(reader);
        return 1;
    }

    if (ureq == reader->old) {

        if (reader->overlap.timer_set) {
            ngx_del_timer(&reader->overlap);
        }

        ngx_http_mcp_reader_close_request(&reader->old);

        reader->nrepeats = 0;

        return 1;
    }

    return 0;
}


static ngx_int_t
ngx_http_mcp_reader_connected(ngx_http_mcp_reader_t *reader, ngx_uint_t *gap)
{
    u_char           buf[NGX_INT_T_LEN];
    ngx_str_t        note;
    ngx_mcp_zone_t  *zone;

    zone = reader->upstream->zone;

    if (reader->noted_serial != reader->serial) {

        /*
         * Clears the last event id first, so that the lease never has the new
         * note together with an id of another session.
         */

        note.data = buf;
        note.len = ngx_sprintf(buf, "%ui", reader->serial) - buf;

        ngx_mcp_lease_clear_id(zone, &reader->lease);
        (void) ngx_mcp_lease_note(zone, &reader->lease, &note);

        reader->noted_serial = reader->serial;
    }

    return ngx_mcp_lease_connected(zone, &reader->lease, gap);
}


static void
ngx_http_mcp_reader_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                    id;
    ngx_uint_t                   lagged;
    ngx_mcp_zone_t              *zone;
    ngx_mcp_consume_t            consume;
    ngx_http_mcp_reader_t       *reader;
    ngx_http_mcp_reader_kind_t  *kind;

    reader = ureq->data;
    kind = reader->kind;
    zone = reader->upstream->zone;

    if (reader->lease_lost) {
        return;
    }

    /* if the stream is not open, the message is the body of a refusal */

    if (reader->up) {
        ngx_http_mcp_backoff_reset(&reader->backoff);
    }

    ngx_str_null(&id);

    /* if an event has several messages, its id is noted after the last one */

    if (ureq->x->sse && !ureq->x->more) {
        id = ureq->x->sse->id;
    }

    /*
     * Only for a feed does an event without an id clear the last event id.
     */

    if (id.len || ureq->x->feed) {
        ngx_http_mcp_reader_set_id(reader, &id);
    }

    lagged = ngx_http_mcp_reader_lagged(ureq->x);

    if (text->len && !reader->received) {
        reader->received = 1;

        if (reader->resumed && reader->id.len == 0 && !lagged) {
            kind->gap(reader, "the events of the feed no longer have ids");
        }
    }

    ngx_memzero(&consume, sizeof(ngx_mcp_consume_t));

    consume.lease = reader->lease;
    consume.id = reader->id;
    consume.rc = NGX_AGAIN;

    if (ureq->x->feed || ureq->manner->filters) {

        /*
         * In an overlap two workers read the stream, and both get the event:
         * the text is compared.
         */

        consume.text = *text;
    }

    if (ngx_http_mcp_reader_repeated(reader, ureq, text)) {
        return;
    }

    if (text->len == 0) {

        /* the event has no data, but may have an id */

        if (id.len == 0) {
            return;
        }

    } else if (!lagged) {
        kind->event(reader, ureq, text, reader->leased ? &consume : NULL);

    } else if (!reader->leased || ngx_mcp_lease_consume(zone,
                                                        &consume) == NGX_OK) {
        kind->gap(reader, "the backend reported that events were lost");
    }

    if (ureq->closed) {
        return;
    }

    if (reader->leased && ngx_mcp_lease_consume(zone, &consume) == NGX_ABORT) {
        reader->lease_lost = 1;
        ngx_http_mcp_reader_check_lease(reader);
    }
}


static void
ngx_http_mcp_reader_skipped(ngx_http_mcp_upstream_request_t *ureq, ngx_uint_t n)
{
    ngx_http_mcp_reader_t  *reader;

    reader = ureq->data;

    if (reader->lease_lost) {
        return;
    }

    ngx_mcp_count(reader->upstream->zone, NGX_MCP_COUNTER_EVENTS_INVALID, n);

    reader->kind->gap(reader, "an event exceeded the limit");
}


static void
ngx_http_mcp_reader_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    time_t                       after;
    ngx_uint_t                   stops;
    ngx_mcp_sse_t               *sse;
    ngx_http_mcp_reader_t       *reader;
    ngx_http_mcp_reader_kind_t  *kind;

    reader = ureq->data;
    kind = reader->kind;

    if (reader->lease_lost) {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_LOST);
        return;
    }

    after = ureq->x ? ngx_http_mcp_headers_retry_after(ureq->x) : 0;

    if (after) {

        /*
         * Adds a random time, so that readers that were refused together do not
         * try again together.
         */

        reader->not_before = ngx_current_msec + 1000 * after
                             + ngx_random() % NGX_HTTP_MCP_BACKOFF;

        if (reader->leased && !reader->up) {
            ngx_mcp_lease_pause(reader->upstream->zone, &reader->lease,
                                reader->not_before);
        }
    }

    sse = ngx_http_mcp_reader_sse(reader);

    if (sse && sse->id.len && ureq == reader->ureq
        && outcome == NGX_HTTP_MCP_BAD)
    {

        /* the next stream begins after the event that could not be read */

        kind->gap(reader, "an event could not be read");
    }

    if (ureq == reader->old && outcome != NGX_HTTP_MCP_OK) {

        /* events from the time before the newer stream opened may be lost */

        reader->kind->gap(reader, "a stream broke while another replaced it");
    }

    if (ngx_http_mcp_reader_other_done(reader, ureq)) {
        return;
    }

    reader->conflict = 0;

    stops = reader->up ? 0 : ngx_http_mcp_reader_refused(reader, ureq, outcome);

    if (!stops && !reader->replaced && kind->wanted && !kind->wanted(reader)) {
        stops = 1;
    }

    if (stops) {
        ngx_http_mcp_reader_close(reader);
        kind->stopped(reader);
        return;
    }

    ngx_http_mcp_reader_disconnected(reader);
}


/* handles a failed attempt; returns 1 if the upstream offers no stream */

static ngx_uint_t
ngx_http_mcp_reader_refused(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_upstream_request_t *ureq, ngx_http_mcp_outcome_e outcome)
{
    ngx_uint_t  failure, refusal;

    failure = (outcome << 16) + (ureq->x ? ureq->x->status : 0) + 1;
    refusal = NGX_HTTP_MCP_RETRY;

    if (ureq->manner && ureq->manner->refused && ureq->x
        && (ureq->x->method == NGX_HTTP_GET || ureq->manner->filters))
    {
        refusal = ureq->manner->refused(ureq, outcome,
                                        failure != reader->failure);
    }

    reader->failure = failure;

    switch (refusal) {

    case NGX_HTTP_MCP_NO_STREAM:
        return 1;

    case NGX_HTTP_MCP_CONFLICT:
        reader->conflict = 1;
        return 0;

    case NGX_HTTP_MCP_NO_EVENT:

        if (ureq->x->last_event_id.len) {
            reader->id.len = 0;
            reader->id_refused = 1;
        }

        break;
    }

    if (outcome == NGX_HTTP_MCP_STATUS) {

        /*
         * The new session, or the new probe, did not help: the next attempt
         * does not heal again.
         */

        reader->session_kept = ureq->healed && !ureq->unsure;
    }

    return 0;
}


/* nginx frees the request, because the worker exits */

static void
ngx_http_mcp_reader_destroyed(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_reader_t  *reader;

    reader = ureq->data;

    if (ureq == reader->old) {
        reader->old = NULL;
        return;
    }

    if (ureq == reader->next) {
        reader->next = NULL;
        ngx_http_mcp_reader_replace_failed(reader);
        return;
    }

    reader->ureq = NULL;
    reader->conflict = 0;

    ngx_http_mcp_reader_disconnected(reader);
}


void
ngx_http_mcp_reader_reconnect(ngx_http_mcp_reader_t *reader)
{
    if (reader->ureq) {
        reader->conflict = 0;
        ngx_http_mcp_reader_disconnected(reader);
    }
}


static void
ngx_http_mcp_reader_disconnected(ngx_http_mcp_reader_t *reader)
{
    ngx_msec_t       delay;
    ngx_mcp_zone_t  *zone;

    zone = reader->upstream->zone;
    delay = ngx_http_mcp_reader_delay(reader);

    reader->kind->disconnected(reader);

    if (reader->leased && reader->conflict) {
        ngx_mcp_lease_overlap_end(zone, &reader->lease);
    }

    ngx_http_mcp_reader_close(reader);

    if (reader->replaced || (ngx_exiting && !reader->no_takeover)) {

        /* no stream is open, so the lease can be released without a loss */

        delay = 0;

    } else if (reader->leased) {
        (void) ngx_mcp_lease_failed(zone, &reader->lease);
    }

    ngx_add_timer(&reader->retry, delay);
}


static ngx_msec_t
ngx_http_mcp_reader_delay(ngx_http_mcp_reader_t *reader)
{
    ngx_msec_t      delay;
    ngx_mcp_sse_t  *sse;

    sse = ngx_http_mcp_reader_sse(reader);

    if (sse && sse->retry != NGX_CONF_UNSET_MSEC) {
        ngx_http_mcp_backoff_base(&reader->backoff, sse->retry);

        reader->backoff.next = ngx_max(reader->backoff.next,
                                       reader->backoff.base);
    }

    if (reader->conflict
        || (reader->up && (reader->received
                           || ngx_http_mcp_backoff_lasted(reader->up_since))))
    {
        ngx_http_mcp_backoff_reset(&reader->backoff);
    }

    if (!reader->conflict) {
        return ngx_http_mcp_reader_pause(reader,
                                   ngx_http_mcp_backoff_next(&reader->backoff));
    }

    delay = NGX_HTTP_MCP_READER_CONFLICT << reader->conflicts;

    reader->conflicts = ngx_min(reader->conflicts + 1, 10);

    return ngx_min(delay, NGX_HTTP_MCP_BACKOFF_MAX);
}


/* extends a delay, ms, to the end of the pause that a Retry-After asked for */

static ngx_msec_t
ngx_http_mcp_reader_pause(ngx_http_mcp_reader_t *reader, ngx_msec_t delay)
{
    ngx_msec_int_t  left;

    left = (ngx_msec_int_t) (reader->not_before - ngx_current_msec);

    return ngx_max((ngx_msec_int_t) delay, left);
}


void
ngx_http_mcp_reader_close(ngx_http_mcp_reader_t *reader)
{
    ngx_uint_t  up;

    up = reader->up;

    ngx_http_mcp_reader_stop(reader);

    if (reader->leased && up) {
        ngx_mcp_lease_disconnected(reader->upstream->zone, &reader->lease);
    }
}


/* closes the stream without noting this in the lease */

static void
ngx_http_mcp_reader_stop(ngx_http_mcp_reader_t *reader)
{
    ngx_mcp_sse_t  *sse;

    /* an event without data may have had an id */

    sse = ngx_http_mcp_reader_sse(reader);

    if (sse && sse->id.len) {
        ngx_http_mcp_reader_set_id(reader, &sse->id);
    }

    reader->up = 0;

    if (reader->retry.timer_set) {
        ngx_del_timer(&reader->retry);
    }

    ngx_http_mcp_reader_close_requests(reader);
}


static void
ngx_http_mcp_reader_close_requests(ngx_http_mcp_reader_t *reader)
{
    if (reader->replace.timer_set) {
        ngx_del_timer(&reader->replace);
    }

    if (reader->overlap.timer_set) {
        ngx_del_timer(&reader->overlap);
    }

    reader->nrepeats = 0;

    ngx_http_mcp_reader_close_request(&reader->old);
    ngx_http_mcp_reader_close_request(&reader->next);
    ngx_http_mcp_reader_close_request(&reader->ureq);
}


static void
ngx_http_mcp_reader_close_request(ngx_http_mcp_upstream_request_t **slot)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = *slot;

    if (ureq) {
        *slot = NULL;
        ngx_http_mcp_upstream_request_close(ureq);
    }
}


static void
ngx_http_mcp_reader_set_id(ngx_http_mcp_reader_t *reader, ngx_str_t *id)
{
    reader->id.len = 0;

    if (id->len && id->len <= NGX_MCP_LEASE_ID_MAX) {
        ngx_memcpy(reader->id_buf, id->data, id->len);
        reader->id.len = id->len;
    }
}


/* the parser of the open stream, or NULL */

static ngx_mcp_sse_t *
ngx_http_mcp_reader_sse(ngx_http_mcp_reader_t *reader)
{
    return (reader->up && reader->ureq && reader->ureq->x)
           ? reader->ureq->x->sse : NULL;
}


void
ngx_http_mcp_reader_check_lease(ngx_http_mcp_reader_t *reader)
{
    ngx_add_timer(&reader->tick, 0);
}


static void
ngx_http_mcp_reader_tick(ngx_event_t *ev)
{
    ngx_int_t               rc;
    ngx_http_mcp_reader_t  *reader;

    reader = ev->data;

    rc = ngx_mcp_lease_renew(reader->upstream->zone, &reader->lease);

    if (rc == NGX_DECLINED) {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_LOST);
        return;
    }

    if (rc == NGX_AGAIN && ngx_http_mcp_reader_drain(reader)) {
        return;
    }

    ngx_add_timer(ev, NGX_MCP_LEASE_RENEW);

    ngx_http_mcp_reader_save_id(reader);

    if (!reader->replaced) {
        reader->kind->tick(reader);
    }
}


/* notes in the lease an id that the upstream sent without data */

static void
ngx_http_mcp_reader_save_id(ngx_http_mcp_reader_t *reader)
{
    ngx_mcp_sse_t     *sse;
    ngx_mcp_consume_t  consume;

    sse = ngx_http_mcp_reader_sse(reader);

    if (sse == NULL || sse->id.len == 0
        || ngx_mcp_equal(&sse->id, &reader->id))
    {
        return;
    }

    ngx_memzero(&consume, sizeof(ngx_mcp_consume_t));

    consume.lease = reader->lease;
    consume.id = sse->id;
    consume.rc = NGX_AGAIN;

    if (ngx_mcp_lease_consume(reader->upstream->zone, &consume) == NGX_OK) {
        ngx_http_mcp_reader_set_id(reader, &sse->id);
    }
}


void
ngx_http_mcp_reader_quit(ngx_mcp_zone_t *zone)
{
    ngx_msec_t              hold;
    ngx_uint_t              i;
    ngx_queue_t            *q, *readers;
    ngx_http_mcp_reader_t  *reader;

    hold = ngx_mcp_zone_reloaded(zone) ? NGX_HTTP_MCP_READER_TAKEOVER
                                       : NGX_HTTP_MCP_READER_SHUTDOWN;

    for (i = 0; i < NGX_HTTP_MCP_READER_KINDS; i++) {

        readers = ngx_http_mcp_reader_queue(zone, i);

        q = ngx_queue_head(readers);

        while (q != ngx_queue_sentinel(readers)) {

            reader = ngx_queue_data(q, ngx_http_mcp_reader_t, queue);
            q = ngx_queue_next(q);

            if (!(reader->no_takeover && reader->kind->wanted(reader))
                && !ngx_http_mcp_reader_drain(reader)
                && !reader->takeover.timer_set)
            {
                ngx_add_timer(&reader->takeover, hold);
            }
        }
    }
}


/*
 * Lets another worker take over the stream.  Returns 1 if the reader has ended,
 * because it has no lease or no open stream.
 */

static ngx_uint_t
ngx_http_mcp_reader_drain(ngx_http_mcp_reader_t *reader)
{
    if (!reader->leased || !reader->up) {
        ngx_http_mcp_reader_end(reader, NGX_HTTP_MCP_READER_RELEASED);
        return 1;
    }

    if (!reader->replaced) {
        reader->replaced = 1;

        if (reader->kind->replaced) {
            reader->kind->replaced(reader);
        }
    }

    return 0;
}


static void
ngx_http_mcp_reader_takeover_timeout(ngx_event_t *ev)
{
    ngx_http_mcp_reader_end(ev->data, NGX_HTTP_MCP_READER_RELEASED);
}


void
ngx_http_mcp_reader_end(ngx_http_mcp_reader_t *reader, ngx_uint_t how)
{
    ngx_uint_t   wanted;
    ngx_pool_t  *pool;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp reader of \"%V\" for session %V ends:%ui",
                   &reader->upstream->name, &reader->audience.session, how);

    wanted = 0;
    pool = reader->pool;

    ngx_queue_remove(&reader->queue);

    ngx_http_mcp_reader_stop(reader);

    if (reader->leased) {

        if (how == NGX_HTTP_MCP_READER_RELEASED) {
            ngx_mcp_lease_release(reader->upstream->zone, &reader->lease);

        } else if (how == NGX_HTTP_MCP_READER_DROPPED) {

            /*
             * Another worker may need the stream since a moment ago, and wait
             * for it: the lease is created again below.
             */

            wanted = (ngx_mcp_lease_drop(reader->upstream->zone,
                                         &reader->lease)
                      == NGX_AGAIN);
        }
    }

    if (reader->tick.timer_set) {
        ngx_del_timer(&reader->tick);
    }

    if (reader->takeover.timer_set) {
        ngx_del_timer(&reader->takeover);
    }

    reader->kind->ended(reader, how);

    if (wanted) {
        (void) ngx_mcp_lease_ensure(reader->upstream->zone, &reader->key);
    }

    ngx_destroy_pool(pool);
}


ngx_int_t
ngx_http_mcp_reader_key(ngx_str_t *kind, ngx_str_t **parts, ngx_uint_t n,
    ngx_str_t *key)
{
    u_char      *p;
    size_t       len;
    ngx_uint_t   i;

    static u_char  buf[NGX_MCP_LEASE_KEY_MAX];

    len = sizeof("[]") - 1 + ngx_mcp_json_escaped_len(kind);

    for (i = 0; i < n; i++) {
        len += 1 + (parts[i] ? ngx_mcp_json_escaped_len(parts[i])
                             : sizeof("null") - 1);
    }

    if (len > NGX_MCP_LEASE_KEY_MAX) {
        return NGX_DECLINED;
    }

    p = buf;

    *p++ = '[';
    p = ngx_mcp_json_escape(p, kind);

    for (i = 0; i < n; i++) {
        *p++ = ',';
        p = parts[i] ? ngx_mcp_json_escape(p, parts[i])
                     : ngx_cpymem(p, "null", sizeof("null") - 1);
    }

    *p++ = ']';

    key->data = buf;
    key->len = p - buf;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_reader_key_is(ngx_str_t *key, ngx_str_t *kind)
{
    return key->len > kind->len + sizeof("[\"\"") - 1
           && key->data[1] == '"' && key->data[2 + kind->len] == '"'
           && ngx_memcmp(&key->data[2], kind->data, kind->len) == 0;
}


ngx_int_t
ngx_http_mcp_reader_key_parse(ngx_str_t *key, ngx_pool_t *pool,
    ngx_str_t **parts, ngx_uint_t n)
{
    ngx_str_t   rest, element;
    ngx_uint_t  i;

    rest = *key;

    if (ngx_mcp_json_element(&rest, &element) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {

        if (ngx_mcp_json_element(&rest, &element) != NGX_OK) {
            return NGX_ERROR;
        }

        if (ngx_mcp_json_text(pool, &element, parts[i]) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
