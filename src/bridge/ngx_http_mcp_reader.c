
#include "ngx_http_mcp_reader.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_topic.h"


/* ms; between looks whether it is still wanted */
#define NGX_HTTP_MCP_READER_LOOK  5000


#define ngx_http_mcp_reader_lagged(x)                                         \
    ((x)->sse && (x)->sse->name.len == sizeof("lagged") - 1                   \
     && ngx_strncmp((x)->sse->name.data, "lagged", sizeof("lagged") - 1) == 0)


struct ngx_http_mcp_attempt_s {
    ngx_http_mcp_reader_t    *reader;       /* NULL: it has left */
    ngx_http_request_t       *request;
    ngx_http_mcp_exchange_t  *x;
    ngx_http_mcp_scope_t      scope;
    ngx_str_t                 topic;        /* of events that name none */
    ngx_msec_t                since;        /* it is connected */

    unsigned                  connected:1;
    unsigned                  resumes:1;    /* a last event id was sent */
    unsigned                  heard:1;
};


static void ngx_http_mcp_reader_connect(ngx_http_mcp_reader_t *reader);
static ngx_http_mcp_attempt_t *ngx_http_mcp_reader_attempt(
    ngx_http_mcp_reader_t *reader);
static ngx_int_t ngx_http_mcp_reader_exchange(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_attempt_t *a);
static void ngx_http_mcp_reader_header(ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_reader_message(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text);
static void ngx_http_mcp_reader_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_attempt_t *a, ngx_str_t *text);
static void ngx_http_mcp_reader_refused(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_attempt_t *a, ngx_http_mcp_event_in_t *in, const char *why);
static void ngx_http_mcp_reader_gap_topic(ngx_http_mcp_reader_t *reader,
    ngx_str_t *tenant, const char *why);
static void ngx_http_mcp_reader_note_id(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_exchange_t *x);
static void ngx_http_mcp_reader_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_reader_failed(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_reader_say(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_reader_wait(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_detach(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_cleanup(void *data);
static void ngx_http_mcp_reader_renew(ngx_event_t *ev);
static void ngx_http_mcp_reader_keep_id(ngx_http_mcp_reader_t *reader);
static void ngx_http_mcp_reader_retry(ngx_event_t *ev);
static void ngx_http_mcp_reader_hold(ngx_event_t *ev);


static ngx_http_mcp_exchange_handlers_t  ngx_http_mcp_reader_handlers = {
    ngx_http_mcp_reader_header,
    ngx_http_mcp_reader_message,
    NULL,
    ngx_http_mcp_reader_done
};


void
ngx_http_mcp_reader_start(ngx_http_mcp_reader_t *reader,
    ngx_str_t *last_event_id)
{
    ngx_http_mcp_backoff_init(&reader->backoff);

    reader->wanted = ngx_current_msec;
    reader->looked = ngx_current_msec;

    reader->id.data = reader->ids;
    reader->id.len = ngx_min(last_event_id->len, NGX_MCP_LEASE_ID_MAX);

    if (reader->id.len) {
        ngx_memcpy(reader->ids, last_event_id->data, reader->id.len);
    }

    reader->renew.handler = ngx_http_mcp_reader_renew;
    reader->renew.data = reader;
    reader->renew.log = ngx_cycle->log;
    reader->renew.cancelable = 1;

    reader->retry.handler = ngx_http_mcp_reader_retry;
    reader->retry.data = reader;
    reader->retry.log = ngx_cycle->log;
    reader->retry.cancelable = 1;

    reader->hold.handler = ngx_http_mcp_reader_hold;
    reader->hold.data = reader;
    reader->hold.log = ngx_cycle->log;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp feed %V from id \"%V\"", &reader->key, &reader->id);

    ngx_add_timer(&reader->renew, NGX_MCP_LEASE_RENEW);

    ngx_http_mcp_reader_connect(reader);
}


static void
ngx_http_mcp_reader_connect(ngx_http_mcp_reader_t *reader)
{
    ngx_connection_t        *c;
    ngx_http_mcp_attempt_t  *a;

    a = ngx_http_mcp_reader_attempt(reader);

    if (a == NULL) {
        ngx_http_mcp_reader_wait(reader);
        return;
    }

    if (ngx_http_mcp_reader_exchange(reader, a) != NGX_OK) {

        ngx_http_mcp_reader_detach(reader);

        if (a->scope.dots) {

            /* it will never do: kept, so that nobody else tries */

            (void) ngx_mcp_lease_vain(reader->bridge->zone, &reader->lease);

            return;
        }

        ngx_http_mcp_reader_wait(reader);
        return;
    }

    c = a->request->connection;
    ngx_http_run_posted_requests(c);
}


static ngx_http_mcp_attempt_t *
ngx_http_mcp_reader_attempt(ngx_http_mcp_reader_t *reader)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_request_t       *r;
    ngx_http_mcp_attempt_t   *a;
    ngx_http_mcp_audience_t   audience;

    ngx_memzero(&audience, sizeof(ngx_http_mcp_audience_t));

    audience.tenant = reader->tenant;
    audience.topic = reader->topic;

    r = ngx_http_mcp_background_open(reader->bridge->conf_ctx, &audience,
                                     NULL);
    if (r == NULL) {
        return NULL;
    }

    ngx_http_mcp_background_stay(r);

    a = ngx_pcalloc(r->pool, sizeof(ngx_http_mcp_attempt_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (a == NULL || cln == NULL) {
        ngx_http_mcp_background_close(r);
        return NULL;
    }

    cln->handler = ngx_http_mcp_reader_cleanup;
    cln->data = a;

    a->reader = reader;
    a->request = r;

    reader->attempt = a;

    return a;
}


static ngx_int_t
ngx_http_mcp_reader_exchange(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_attempt_t *a)
{
    ngx_http_request_t       *r;
    ngx_http_mcp_exchange_t  *x;

    r = a->request;

    if (reader->feed->topic) {

        if (ngx_http_complex_value(r, reader->feed->topic, &a->topic)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else {
        a->topic = reader->topic;
    }

    x = ngx_http_mcp_upstream_at(r, &reader->feed->uri,
                                 &reader->feed->uri.value, &a->scope);
    if (x == NULL) {
        return NGX_ERROR;
    }

    a->x = x;

    x->handlers = &ngx_http_mcp_reader_handlers;
    x->data = a;
    x->zone = reader->bridge->zone;
    x->method = NGX_HTTP_GET;
    x->limit = reader->bridge->message_limit;
    x->level = NGX_LOG_INFO;
    x->feed = 1;

    if (reader->id.len) {
        x->last_event_id.data = ngx_pstrdup(r->pool, &reader->id);
        if (x->last_event_id.data == NULL) {
            return NGX_ERROR;
        }

        x->last_event_id.len = reader->id.len;
        a->resumes = 1;
    }

    return ngx_http_mcp_exchange_start(x);
}


static void
ngx_http_mcp_reader_header(ngx_http_mcp_exchange_t *x)
{
    ngx_int_t                rc;
    ngx_uint_t               gap;
    ngx_http_mcp_reader_t   *reader;
    ngx_http_mcp_attempt_t  *a;

    a = x->data;
    reader = a->reader;

    if (reader == NULL || x->status != NGX_HTTP_OK) {
        return;
    }

    a->connected = 1;
    a->since = ngx_current_msec;

    if (reader->failure) {
        reader->failure = 0;

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" is connected again",
                      &x->uri, &reader->bridge->endpoint);
    }

    gap = 0;

    rc = ngx_mcp_lease_connected(reader->bridge->zone, &reader->lease, &gap);

    if (rc != NGX_OK) {
        reader->lost = 1;
        ngx_http_mcp_exchange_abort(x);
        return;
    }

    if ((gap && !a->resumes) || reader->missed) {
        reader->missed = 0;
        ngx_http_mcp_reader_gap(reader, "the backend did not resume the feed "
                                        "where the connection was cut");
    }
}


static void
ngx_http_mcp_reader_message(ngx_http_mcp_exchange_t *x, ngx_str_t *text)
{
    ngx_http_mcp_reader_t   *reader;
    ngx_http_mcp_attempt_t  *a;

    a = x->data;
    reader = a->reader;

    if (reader == NULL || reader->lost) {
        return;
    }

    ngx_http_mcp_backoff_reset(&reader->backoff);

    if (!a->heard && text->len) {
        a->heard = 1;

        if (a->resumes && (x->sse == NULL || x->sse->id.len == 0)
            && !ngx_http_mcp_reader_lagged(x))
        {
            ngx_http_mcp_reader_gap(reader, "the events of the feed no longer "
                                            "have ids");
        }
    }

    ngx_http_mcp_reader_event(reader, a, text);

    ngx_reset_pool(reader->scratch);

    if (reader->lost) {
        ngx_http_mcp_exchange_abort(x);
        return;
    }

    ngx_http_mcp_reader_note_id(reader, x);
}


static void
ngx_http_mcp_reader_event(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_attempt_t *a, ngx_str_t *text)
{
    ngx_uint_t                sessions, repeated;
    const char               *why;
    ngx_mcp_sse_t            *sse;
    ngx_mcp_zone_t           *zone;
    ngx_mcp_take_t            take;
    ngx_http_mcp_event_in_t   in;

    zone = reader->bridge->zone;
    sse = a->x->sse;

    if (text->len == 0 && sse->id.len == 0) {
        return;
    }

    ngx_memzero(&take, sizeof(ngx_mcp_take_t));

    take.lease = reader->lease;
    take.text = *text;
    take.rc = NGX_AGAIN;

    if (sse) {
        take.id = sse->id;
    }

    if (text->len == 0) {

        /* nothing is said but where to go on */

        if (ngx_mcp_lease_take(zone, &take) == NGX_ABORT) {
            reader->lost = 1;
        }

        return;
    }

    if (ngx_http_mcp_reader_lagged(a->x)) {

        if (ngx_mcp_lease_take(zone, &take) == NGX_OK) {
            ngx_http_mcp_reader_gap(reader, "the backend reported that events "
                                            "were lost");

        } else if (take.rc == NGX_ABORT) {
            reader->lost = 1;
        }

        return;
    }

    ngx_memzero(&in, sizeof(ngx_http_mcp_event_in_t));

    in.zone = zone;
    in.bridges = reader->bridges;
    in.endpoint = &reader->bridge->endpoint;
    in.topic = a->topic;
    in.pool = reader->scratch;
    in.take = &take;

    if (reader->feed->demand & NGX_HTTP_MCP_FEED_TENANT) {
        in.tenant = &reader->tenant;
    }

    why = ngx_http_mcp_event_in(&in, text, &sessions, &repeated);

    switch (ngx_mcp_lease_take(zone, &take)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_REPEATED, 1);
        return;

    default:
        ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_STALE, 1);
        reader->lost = 1;
        return;
    }

    if (why) {
        ngx_http_mcp_reader_refused(reader, a, &in, why);
        return;
    }

    ngx_mcp_count(zone, NGX_MCP_COUNTER_EVENTS_FEED, 1);
}


static void
ngx_http_mcp_reader_refused(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_attempt_t *a, ngx_http_mcp_event_in_t *in, const char *why)
{
    ngx_uint_t  level;

    ngx_mcp_count(reader->bridge->zone,
                  in->absent ? NGX_MCP_COUNTER_EVENTS_UNSENT
                             : NGX_MCP_COUNTER_EVENTS_INVALID, 1);

    level = NGX_LOG_INFO;

    if (!in->absent && why != reader->complaint) {
        reader->complaint = why;
        level = NGX_LOG_ERR;
    }

    ngx_log_error(level, ngx_cycle->log, 0,
                  "mcp feed \"%V\" of endpoint \"%V\" sent an event that is "
                  "dropped: %s", &a->x->uri, &reader->bridge->endpoint, why);
}


void
ngx_http_mcp_reader_gap(ngx_http_mcp_reader_t *reader, const char *why)
{
    ngx_str_t   *tenant;
    ngx_uint_t   sessions;

    tenant = NULL;

    if (reader->feed->demand & NGX_HTTP_MCP_FEED_TENANT) {
        tenant = &reader->tenant;
    }

    if (reader->feed->demand & NGX_HTTP_MCP_FEED_TOPIC
        && reader->feed->topic == NULL)
    {
        ngx_http_mcp_reader_gap_topic(reader, tenant, why);
        return;
    }

    sessions = ngx_mcp_log_gap(reader->bridge->zone,
                               &reader->bridge->endpoint, tenant);

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp feed \"%V\" of endpoint \"%V\" has a gap: %s; sessions "
                  "notified: %ui", &reader->feed->uri.value,
                  &reader->bridge->endpoint, why, sessions);
}


/* its events are for those who subscribed to the topic */

static void
ngx_http_mcp_reader_gap_topic(ngx_http_mcp_reader_t *reader,
    ngx_str_t *tenant, const char *why)
{
    ngx_str_t               uri;
    ngx_uint_t              sessions;
    ngx_http_mcp_address_t  to;

    ngx_str_set(&uri, "");
    ngx_memzero(&to, sizeof(ngx_http_mcp_address_t));

    to.zone = reader->bridge->zone;
    to.endpoint = &reader->bridge->endpoint;
    to.tenant = tenant;

    if (ngx_http_mcp_topic_uri(&reader->topic, reader->scratch, &uri) != NGX_OK
        || ngx_http_mcp_event_updated(&to, &uri, reader->scratch, &sessions)
           != NGX_OK)
    {
        (void) ngx_mcp_log_gap(to.zone, to.endpoint, tenant);
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "mcp feed \"%V\" of endpoint \"%V\" has a gap: %s; "
                  "subscribers of \"%V\" are notified",
                  &reader->feed->uri.value, to.endpoint, why, &uri);
}


static void
ngx_http_mcp_reader_note_id(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_exchange_t *x)
{
    ngx_mcp_sse_t  *sse;

    sse = x->sse;

    if (sse == NULL || sse->id.len > NGX_MCP_LEASE_ID_MAX) {
        reader->id.len = 0;
        return;
    }

    reader->id.len = sse->id.len;

    if (sse->id.len) {
        ngx_memcpy(reader->ids, sse->id.data, sse->id.len);
    }
}


static void
ngx_http_mcp_reader_done(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_reader_t   *reader;
    ngx_http_mcp_attempt_t  *a;

    a = x->data;
    reader = a->reader;

    if (reader == NULL) {
        return;
    }

    if (reader->lost) {
        ngx_http_mcp_reader_close(reader, NGX_HTTP_MCP_READER_LOST);
        return;
    }

    if (a->connected) {

        if (x->sse && x->sse->id.len) {
            ngx_http_mcp_reader_note_id(reader, x);
        }

        if (x->sse && x->sse->retry != NGX_CONF_UNSET_MSEC) {
            ngx_http_mcp_backoff_base(&reader->backoff, x->sse->retry);
        }

        if (a->heard || ngx_http_mcp_backoff_lasted(a->since)) {
            ngx_http_mcp_backoff_reset(&reader->backoff);
        }

        ngx_mcp_lease_broken(reader->bridge->zone, &reader->lease);

        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "mcp feed \"%V\" of endpoint \"%V\" ended",
                      &x->uri, &reader->bridge->endpoint);

    } else {
        ngx_http_mcp_reader_failed(reader, x, outcome);
    }

    ngx_http_mcp_reader_detach(reader);
    ngx_http_mcp_reader_wait(reader);
}


static void
ngx_http_mcp_reader_failed(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    ngx_uint_t  failure;

    failure = (outcome << 16) + x->status + 1;

    if (reader->failure != failure) {
        reader->failure = failure;
        ngx_http_mcp_reader_say(reader, x, outcome);
    }

    if (!reader->attempt->resumes || outcome != NGX_HTTP_MCP_STATUS) {
        return;
    }

    switch (x->status) {

    case NGX_HTTP_BAD_REQUEST:
    case NGX_HTTP_CONFLICT:
    case 410:
    case NGX_HTTP_PRECONDITION_FAILED:
    case NGX_HTTP_RANGE_NOT_SATISFIABLE:

        /* it does not know the id any more */

        reader->id.len = 0;
        reader->missed = 1;
        break;
    }
}


static void
ngx_http_mcp_reader_say(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_exchange_t *x, ngx_http_mcp_outcome_e outcome)
{
    u_char     *p, *last;
    ngx_str_t   text;
    u_char      buf[256];

    p = buf;
    last = buf + sizeof(buf);

    switch (outcome) {

    case NGX_HTTP_MCP_STATUS:
        p = ngx_slprintf(p, last, "answered with status %ui", x->status);
        break;

    case NGX_HTTP_MCP_UNREACHABLE:
        p = ngx_slprintf(p, last, "could not be reached");
        break;

    case NGX_HTTP_MCP_TIMEOUT:
        p = ngx_slprintf(p, last, "timed out");
        break;

    case NGX_HTTP_MCP_BAD:

        if (x->status) {
            p = ngx_slprintf(p, last, "answered with content type \"%V\" "
                             "instead of a stream of events",
                             &x->sr->headers_out.content_type);
            break;
        }

        /* fall through */

    default:
        p = ngx_slprintf(p, last, "sent no valid response");
        break;
    }

    text.data = buf;
    text.len = p - buf;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "mcp feed \"%V\" of endpoint \"%V\" %V; the module "
                  "reconnects after growing pauses",
                  &x->uri, &reader->bridge->endpoint, &text);
}


static void
ngx_http_mcp_reader_wait(ngx_http_mcp_reader_t *reader)
{
    if (reader->quiet || ngx_exiting) {

        /* between two connections nothing is lost by letting go */

        ngx_http_mcp_reader_close(reader, NGX_HTTP_MCP_READER_RELEASE);
        return;
    }

    (void) ngx_mcp_lease_vain(reader->bridge->zone, &reader->lease);

    ngx_add_timer(&reader->retry, ngx_http_mcp_backoff_next(&reader->backoff));
}


ngx_uint_t
ngx_http_mcp_reader_connected(ngx_http_mcp_reader_t *reader)
{
    return reader->attempt && reader->attempt->connected;
}


void
ngx_http_mcp_reader_quit(ngx_http_mcp_reader_t *reader, ngx_msec_t hold)
{
    if (!ngx_http_mcp_reader_connected(reader)) {
        ngx_http_mcp_reader_close(reader, NGX_HTTP_MCP_READER_RELEASE);
        return;
    }

    reader->quiet = 1;

    if (!reader->hold.timer_set) {
        ngx_add_timer(&reader->hold, hold);
    }
}


void
ngx_http_mcp_reader_close(ngx_http_mcp_reader_t *reader,
    ngx_http_mcp_reader_e how)
{
    ngx_mcp_zone_t  *zone;

    zone = reader->bridge->zone;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "mcp feed %V is left:%d", &reader->key, how);

    ngx_queue_remove(&reader->queue);

    if (how == NGX_HTTP_MCP_READER_DROP) {
        ngx_mcp_lease_drop(zone, &reader->lease);

        /* who wanted it meanwhile found that it is there */

        if (ngx_http_mcp_feed_wanted(reader)) {
            (void) ngx_mcp_lease_want(zone, &reader->key);
        }

    } else if (how == NGX_HTTP_MCP_READER_RELEASE) {
        ngx_mcp_lease_release(zone, &reader->lease);
    }

    ngx_http_mcp_reader_detach(reader);

    if (reader->renew.timer_set) {
        ngx_del_timer(&reader->renew);
    }

    if (reader->retry.timer_set) {
        ngx_del_timer(&reader->retry);
    }

    if (reader->hold.timer_set) {
        ngx_del_timer(&reader->hold);
    }

    ngx_destroy_pool(reader->scratch);
    ngx_destroy_pool(reader->pool);
}


static void
ngx_http_mcp_reader_detach(ngx_http_mcp_reader_t *reader)
{
    ngx_http_mcp_attempt_t  *a;

    a = reader->attempt;

    if (a) {
        a->reader = NULL;
        reader->attempt = NULL;

        ngx_http_mcp_background_close(a->request);
    }
}


/* the request goes, and not by us: the worker has to exit at last */

static void
ngx_http_mcp_reader_cleanup(void *data)
{
    ngx_http_mcp_attempt_t *a = data;

    ngx_http_mcp_reader_t  *reader;

    reader = a->reader;

    if (reader == NULL) {
        return;
    }

    a->reader = NULL;
    reader->attempt = NULL;

    if (a->connected) {
        ngx_mcp_lease_broken(reader->bridge->zone, &reader->lease);
    }

    ngx_http_mcp_reader_wait(reader);
}


static void
ngx_http_mcp_reader_renew(ngx_event_t *ev)
{
    ngx_http_mcp_reader_t  *reader;

    reader = ev->data;

    if (ngx_mcp_lease_renew(reader->bridge->zone, &reader->lease)
        == NGX_DECLINED)
    {
        ngx_http_mcp_reader_close(reader, NGX_HTTP_MCP_READER_LOST);
        return;
    }

    ngx_add_timer(&reader->renew, NGX_MCP_LEASE_RENEW);

    ngx_http_mcp_reader_keep_id(reader);

    if (reader->feed->demand == 0 || ngx_exiting
        || ngx_current_msec - reader->looked < NGX_HTTP_MCP_READER_LOOK)
    {
        return;
    }

    reader->looked = ngx_current_msec;

    if (ngx_http_mcp_feed_wanted(reader)) {
        reader->wanted = ngx_current_msec;
        return;
    }

    if (ngx_current_msec - reader->wanted
        >= NGX_HTTP_MCP_FEED_KEEP + NGX_HTTP_MCP_READER_LOOK)
    {
        ngx_http_mcp_reader_close(reader, NGX_HTTP_MCP_READER_DROP);
    }
}


/* an id may come without an event, for example at the beginning */

static void
ngx_http_mcp_reader_keep_id(ngx_http_mcp_reader_t *reader)
{
    ngx_mcp_sse_t            *sse;
    ngx_mcp_take_t            take;
    ngx_http_mcp_exchange_t  *x;

    x = reader->attempt ? reader->attempt->x : NULL;
    sse = x ? x->sse : NULL;

    if (sse == NULL || sse->id.len == 0
        || ngx_mcp_equal(&sse->id, &reader->id))
    {
        return;
    }

    ngx_memzero(&take, sizeof(ngx_mcp_take_t));

    take.lease = reader->lease;
    take.id = sse->id;
    take.rc = NGX_AGAIN;

    if (ngx_mcp_lease_take(reader->bridge->zone, &take) == NGX_OK) {
        ngx_http_mcp_reader_note_id(reader, x);
    }
}


static void
ngx_http_mcp_reader_retry(ngx_event_t *ev)
{
    ngx_http_mcp_reader_connect(ev->data);
}


static void
ngx_http_mcp_reader_hold(ngx_event_t *ev)
{
    ngx_http_mcp_reader_close(ev->data, NGX_HTTP_MCP_READER_RELEASE);
}
