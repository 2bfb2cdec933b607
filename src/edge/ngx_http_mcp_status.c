
#include <cjson/cJSON.h>
#include "ngx_http_mcp_module.h"
#include "ngx_mcp_lease.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_metric.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_header_iter.h"
#include "ngx_http_mcp_output.h"


/* more leases are only counted */
#define NGX_HTTP_MCP_STATUS_LEASES  256

/* more profiles, of tenants, are not looked at */
#define NGX_HTTP_MCP_STATUS_PROFILES  16384


/*
 * A number of a group: "member" in JSON; in Prometheus text one of its family,
 * told from the others by label and value, if it has any.
 */

typedef struct {
    char                       *group;
    char                       *family;
    char                       *label;
    char                       *value;
    char                       *member;
    char                       *kind;         /* "g" or "c" */
} ngx_http_mcp_number_t;

#define ngx_http_mcp_status_same(a, b)                                        \
    (ngx_strcmp((a)->group, (b)->group) == 0                                  \
     && ngx_strcmp((a)->family, (b)->family) == 0)


/*
 * Texts of the structures below are valid UTF-8 without control characters and
 * end with a zero.
 */

typedef struct {
    u_char                     *endpoint;
    u_char                     *upstream;     /* NULL: of all that had no
                                                 room of their own */
    u_char                     *method;
    ngx_mcp_metric_info_t       info;
} ngx_http_mcp_status_metric_t;


/* a number that each row of a table has */

typedef struct {
    char                       *member;       /* in JSON, or NULL */
    char                       *family;       /* in Prometheus text, or NULL */
    char                       *help;
    char                       *kind;         /* "number", "time" (ms in JSON,
                                                 seconds in text), "bool" */
} ngx_http_mcp_status_column_t;

#define NGX_HTTP_MCP_STATUS_COLUMNS  7


/* the lists of one kind of an endpoint's audiences, or a lease */

typedef struct {
    u_char                     *endpoint;
    char                       *list;
    u_char                     *key;          /* of a lease */
    uint64_t                    n[NGX_HTTP_MCP_STATUS_COLUMNS];
} ngx_http_mcp_status_row_t;


/* of an upstream, tenants for which it is so; the worst is the last */

typedef enum {
    ngx_http_mcp_upstream_known = 0,
    ngx_http_mcp_upstream_refused,
    ngx_http_mcp_upstream_away,
    ngx_http_mcp_upstream_unreached,
    ngx_http_mcp_upstream_states
} ngx_http_mcp_upstream_state_e;

typedef struct {
    ngx_http_mcp_upstream_t    *configured;
    u_char                     *endpoint;
    u_char                     *upstream;
    ngx_uint_t                  tenants[ngx_http_mcp_upstream_states];
    ngx_msec_t                  ages[ngx_http_mcp_upstream_states];
} ngx_http_mcp_status_upstream_t;


typedef struct {
    ngx_pool_t                 *pool;
    u_char                     *name;
    size_t                      size;
    ngx_mcp_zone_use_t          use;
    int64_t                     counters[NGX_MCP_COUNTER_MAX];
    ngx_array_t                 metrics;
    ngx_array_t                 upstreams;
    ngx_array_t                 lists;
    ngx_array_t                 leases;
    ngx_uint_t                  nleases;
    ngx_uint_t                  held;
} ngx_http_mcp_status_t;


#define NGX_HTTP_MCP_NUMBER(name, group, family, label, value, member, kind)  \
    { group, family, label, value, member, kind },

/* in the order of ngx_mcp_counter.h */

static ngx_http_mcp_number_t  ngx_http_mcp_status_counters[] = {
    NGX_MCP_COUNTERS(NGX_HTTP_MCP_NUMBER)
    { NULL, NULL, NULL, NULL, NULL, NULL }
};


#define NGX_HTTP_MCP_TEXT(name, text)  text,

/* how the zone's blocks are used */

static char  *ngx_http_mcp_status_uses[] = {
    NGX_MCP_USES(NGX_HTTP_MCP_TEXT)
    NULL
};

/* how exchanges end */

static char  *ngx_http_mcp_status_outcomes[] = {
    NGX_MCP_OUTCOMES(NGX_HTTP_MCP_TEXT)
    NULL
};


enum {
    ngx_http_mcp_list_kept = 0,
    ngx_http_mcp_list_failing,
    ngx_http_mcp_list_left_out,
    ngx_http_mcp_list_entries,
    ngx_http_mcp_list_size,
    ngx_http_mcp_list_age
};

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_lists_columns[] = {
    { "audiences", "lists_kept", "Audiences with a cached list.", "number" },
    { "failing", "lists_failing",
      "Audiences whose list cannot be fetched now.", "number" },
    { "left_out", "lists_left_out",
      "Lists of upstreams that were never fetched and are missing in what is "
      "served.", "number" },
    { "entries", "lists_entries", "Entries of the cached lists.", "number" },
    { "bytes", "lists_bytes", "Size of the cached lists in bytes.", "number" },
    { "age_ms", "lists_age_seconds", "Age of the oldest cached list.",
      "time" },
    { NULL, NULL, NULL, NULL }
};


enum {
    ngx_http_mcp_lease_pid = 0,
    ngx_http_mcp_lease_held,
    ngx_http_mcp_lease_age,
    ngx_http_mcp_lease_silence,
    ngx_http_mcp_lease_silent,
    ngx_http_mcp_lease_fence,
    ngx_http_mcp_lease_taken
};

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_leases_columns[] = {
    { "pid", NULL, NULL, "number" },
    { NULL, "lease_held", "Whether a worker holds the lease.", "number" },
    { "age_ms", "lease_age_seconds", "Time since the worker took the lease.",
      "time" },
    { "silence_ms", "lease_silence_seconds",
      "Time since the last data of the lease arrived.", "time" },
    { "silent", "lease_silent",
      "Whether no data arrived for three heartbeats.", "bool" },
    { "fence", NULL, NULL, "number" },
    { "taken", "lease_taken_total", "Events read under the lease.", "number" },
    { NULL, NULL, NULL, NULL }
};


#define ngx_http_mcp_json_number(object, name, n)                             \
    (cJSON_AddNumberToObject(object, name, (double) (n)) != NULL)

#define ngx_http_mcp_json_text(object, name, s)                               \
    (cJSON_AddStringToObject(object, name, (char *) (s)) != NULL)


/* the text as it grows */

typedef struct {
    ngx_pool_t             *pool;
    ngx_chain_t            *out;
    ngx_chain_t           **last;
    ngx_buf_t              *buf;
    u_char                 *zone;
    ngx_uint_t              labels;       /* of the sample at hand */
    ngx_uint_t              failed;
} ngx_http_mcp_text_t;


#define ngx_http_mcp_status_has(s, text)                                      \
    (ngx_strlcasestrn((s)->data, (s)->data + (s)->len, (u_char *) text,       \
                      sizeof(text) - 2)                                       \
     != NULL)

#define ngx_http_mcp_text_puts(t, s)                                          \
    ngx_http_mcp_text_put(t, s, ngx_strlen(s))


static ngx_uint_t ngx_http_mcp_status_prometheus(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_status_collect(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence);
static ngx_int_t ngx_http_mcp_status_metrics(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone);
static ngx_int_t ngx_http_mcp_status_upstreams(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone);
static void ngx_http_mcp_status_profile(ngx_http_mcp_status_t *status,
    ngx_mcp_profile_info_t *info);
static ngx_uint_t ngx_http_mcp_status_state(
    ngx_http_mcp_status_upstream_t *upstream);
static ngx_uint_t ngx_http_mcp_json_upstream(cJSON *item, void *data);
static void ngx_http_mcp_text_upstreams(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static ngx_int_t ngx_http_mcp_status_lists(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone);
static ngx_http_mcp_status_row_t *ngx_http_mcp_status_list(
    ngx_http_mcp_status_t *status, ngx_str_t *endpoint);
static ngx_int_t ngx_http_mcp_status_leases(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence);
static u_char *ngx_http_mcp_status_clean(ngx_pool_t *pool, ngx_str_t *text);
static int64_t ngx_http_mcp_status_sum(ngx_http_mcp_status_t *status,
    ngx_uint_t i);
static ngx_uint_t ngx_http_mcp_json_zone(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_counters(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_list(cJSON *item, void *data);
static ngx_uint_t ngx_http_mcp_json_exchange(cJSON *item, void *data);
static ngx_uint_t ngx_http_mcp_json_leases(cJSON *root,
    ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_lease(cJSON *item, void *data);
static ngx_uint_t ngx_http_mcp_json_row(cJSON *item,
    ngx_http_mcp_status_column_t *column, uint64_t *n);
static ngx_uint_t ngx_http_mcp_json_array(cJSON *group, char *name,
    ngx_array_t *elements, ngx_uint_t (*fill)(cJSON *item, void *data));
static ngx_chain_t *ngx_http_mcp_status_json(ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_zone(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_counters(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_exchanges(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_rows(ngx_http_mcp_text_t *t, ngx_array_t *rows,
    ngx_http_mcp_status_column_t *column);
static void ngx_http_mcp_text_leases(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_exchange(ngx_http_mcp_text_t *t,
    const char *name, ngx_http_mcp_status_metric_t *m);
static void ngx_http_mcp_text_one(ngx_http_mcp_text_t *t, const char *name,
    const char *help, uint64_t n);
static void ngx_http_mcp_text_family(ngx_http_mcp_text_t *t, const char *name,
    const char *kind, const char *help);
static void ngx_http_mcp_text_sample(ngx_http_mcp_text_t *t,
    const char *name);
static void ngx_http_mcp_text_label(ngx_http_mcp_text_t *t, const char *name,
    void *value);
static void ngx_http_mcp_text_number(ngx_http_mcp_text_t *t, int64_t n);
static void ngx_http_mcp_text_seconds(ngx_http_mcp_text_t *t, uint64_t msec);
static void ngx_http_mcp_text_put(ngx_http_mcp_text_t *t, const void *data,
    size_t len);
static ngx_chain_t *ngx_http_mcp_status_text(ngx_http_mcp_status_t *status);


/* in the order of ngx_http_mcp_upstream_state_e */

static char  *ngx_http_mcp_status_states[] = {
    "known", "refused", "away", "unreached", "unasked"
};


static char  *ngx_http_mcp_status_kinds[NGX_MCP_LIST_KINDS] = {
    "tools", "prompts", "resources", "resources/templates"
};


static struct {
    char                   *name;
    char                   *help;
} ngx_http_mcp_text_helps[] = {
    { "sessions_live", "Sessions that exist now." },
    { "sessions_created", "Sessions created." },
    { "sessions_deleted", "Sessions ended by their client." },
    { "sessions_expired", "Sessions ended after mcp_session_timeout." },
    { "sessions_evicted", "Idle sessions removed to make room." },
    { "sessions_refused", "Sessions refused for lack of room." },
    { "listens_open", "Listening clients of 2026-07-28 now." },
    { "listens_opened", "Requests subscriptions/listen accepted." },
    { "streams_open", "Event streams that are open now." },
    { "streams_opened", "Event streams opened." },
    { "streams_closed", "Event streams closed, by reason." },
    { "events_in", "Events received, by source." },
    { "events_out", "Messages written to streams." },
    { "events_coalesced", "Notifications merged into others." },
    { "events_dropped", "Events not delivered, by reason." },
    { "events_lagged", "Events that clients missed." },
    { "lists_refreshes", "Lists fetched from upstreams." },
    { "lists_changed", "Fetched lists that had changed." },
    { "lists_unchanged", "Fetched lists that had not changed." },
    { "lists_failed", "Failed fetches of lists." },
    { "calls_running", "Requests of clients that run now." },
    { "calls_started", "Requests of clients started, by era." },
    { "calls_refused", "Requests refused over mcp_call_limit." },
    { "calls_cancelled", "Requests cancelled by their client." },
    { "calls_lost", "Requests lost because their worker died." },
    { "calls_abandoned", "Requests cancelled after their client left." },
    { "exchanges_started", "Messages sent to upstreams." },
    { "exchanges_ended", "Exchanges with upstreams ended, by outcome." },
    { NULL, NULL }
};


/*
 * All is collected first and then written, as JSON or as Prometheus text.  The
 * zone's lock is held for one audience or lease at a time.
 */

ngx_int_t
ngx_http_mcp_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_uint_t                prometheus;
    ngx_chain_t              *out, *cl;
    ngx_table_elt_t          *h;
    ngx_http_mcp_status_t     status;
    ngx_http_mcp_loc_conf_t  *mlcf;

    rc = ngx_http_mcp_guard(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    h = ngx_http_mcp_header_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        ngx_str_set(&h->key, "Allow");
        ngx_str_set(&h->value, "GET, HEAD");
        return NGX_HTTP_NOT_ALLOWED;
    }

    ngx_str_set(&h->key, "Cache-Control");
    ngx_str_set(&h->value, "no-store");

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_mcp_module);

    prometheus = ngx_http_mcp_status_prometheus(r);

    ngx_memzero(&status, sizeof(ngx_http_mcp_status_t));
    status.pool = r->pool;

    if (ngx_http_mcp_status_collect(&status, mlcf->status,
                                    3 * mlcf->stream_heartbeat)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    out = prometheus ? ngx_http_mcp_status_text(&status)
                     : ngx_http_mcp_status_json(&status);

    if (out == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = 0;

    for (cl = out; cl; cl = cl->next) {
        r->headers_out.content_length_n += ngx_buf_size(cl->buf);

        if (cl->next == NULL) {
            cl->buf->last_buf = (r == r->main) ? 1 : 0;
            cl->buf->last_in_chain = 1;
        }
    }

    if (prometheus) {
        ngx_str_set(&r->headers_out.content_type,
                    "text/plain; version=0.0.4; charset=utf-8");
    } else {
        ngx_str_set(&r->headers_out.content_type, "application/json");
    }

    r->headers_out.content_type_len = r->headers_out.content_type.len;

    rc = ngx_http_mcp_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_mcp_output(r, out);
}


static ngx_uint_t
ngx_http_mcp_status_prometheus(ngx_http_request_t *r)
{
    ngx_str_t                   format;
    ngx_table_elt_t            *h;
    ngx_http_mcp_header_iter_t  iter;

    if (ngx_http_arg(r, (u_char *) "format", sizeof("format") - 1, &format)
        == NGX_OK)
    {
        return format.len == sizeof("prometheus") - 1
               && ngx_strncmp(format.data, "prometheus", format.len) == 0;
    }

    ngx_http_mcp_header_iter_init(&iter, &r->headers_in.headers);

    while ((h = ngx_http_mcp_header_iter_next(&iter)) != NULL) {

        if (h->key.len == sizeof("Accept") - 1
            && ngx_strncasecmp(h->key.data, (u_char *) "Accept",
                               sizeof("Accept") - 1)
               == 0
            && !ngx_http_mcp_status_has(&h->value, "application/json")
            && ngx_http_mcp_status_has(&h->value, "text/plain"))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_mcp_status_collect(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence)
{
    ngx_uint_t  i;

    if (ngx_array_init(&status->metrics, status->pool, 16,
                       sizeof(ngx_http_mcp_status_metric_t))
        != NGX_OK
        || ngx_array_init(&status->upstreams, status->pool, 8,
                          sizeof(ngx_http_mcp_status_upstream_t))
           != NGX_OK
        || ngx_array_init(&status->lists, status->pool, NGX_MCP_LIST_KINDS,
                          sizeof(ngx_http_mcp_status_row_t))
           != NGX_OK
        || ngx_array_init(&status->leases, status->pool, 4,
                          sizeof(ngx_http_mcp_status_row_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    status->name = ngx_http_mcp_status_clean(status->pool, &zone->name);
    if (status->name == NULL) {
        return NGX_ERROR;
    }

    status->size = zone->shpool->end - (u_char *) zone->shpool;

    ngx_mcp_zone_use(zone, &status->use);

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        status->counters[i] = ngx_mcp_counter(zone, i);
    }

    if (ngx_http_mcp_status_metrics(status, zone) != NGX_OK
        || ngx_http_mcp_status_upstreams(status, zone) != NGX_OK
        || ngx_http_mcp_status_lists(status, zone) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_status_leases(status, zone, silence);
}


/* of the family that starts with this counter; -1: none does */

static int64_t
ngx_http_mcp_status_sum(ngx_http_mcp_status_t *status, ngx_uint_t i)
{
    int64_t                 sum;
    ngx_http_mcp_number_t  *first, *n;

    first = &ngx_http_mcp_status_counters[i];

    if (i && ngx_http_mcp_status_same(first - 1, first)) {
        return -1;
    }

    sum = 0;

    for (n = first; n->group && ngx_http_mcp_status_same(first, n); n++) {
        sum += status->counters[i++];
    }

    return sum;
}


static ngx_int_t
ngx_http_mcp_status_metrics(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone)
{
    ngx_int_t                      rc;
    ngx_uint_t                     i;
    ngx_mcp_metric_info_t          info;
    ngx_http_mcp_status_metric_t  *m;

    for (i = 0; /* void */ ; i++) {
        rc = ngx_mcp_metric_info(zone, i, &info);

        if (rc == NGX_DONE) {
            return NGX_OK;
        }

        if (rc == NGX_DECLINED) {
            continue;
        }

        m = ngx_array_push(&status->metrics);
        if (m == NULL) {
            return NGX_ERROR;
        }

        m->info = info;
        m->endpoint = ngx_http_mcp_status_clean(status->pool, &info.endpoint);
        m->upstream = ngx_http_mcp_status_clean(status->pool, &info.upstream);

        switch (info.method) {

        case NGX_MCP_METHOD_OTHER:
            m->method = (u_char *) "other";
            break;

        case NGX_MCP_METRIC_GET:
            m->method = (u_char *) "GET";
            break;

        case NGX_MCP_METRIC_DELETE:
            m->method = (u_char *) "DELETE";
            break;

        default:
            m->method = ngx_http_mcp_status_clean(status->pool,
                                          ngx_mcp_method_name(info.method));
            break;
        }

        if (m->endpoint == NULL || m->upstream == NULL || m->method == NULL) {
            return NGX_ERROR;
        }
    }
}


/* those of the configuration, with what the zone knows of them */

static ngx_int_t
ngx_http_mcp_status_upstreams(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone)
{
    ngx_int_t                         rc;
    ngx_uint_t                        i, n;
    ngx_pool_t                       *pool;
    ngx_mcp_profile_info_t            info;
    ngx_http_mcp_upstream_t          *u;
    ngx_http_mcp_loc_conf_t         **eps;
    ngx_http_mcp_main_conf_t         *mmcf;
    ngx_http_mcp_status_upstream_t   *upstream;

    mmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_mcp_module);
    eps = mmcf->endpoints.elts;

    for (i = 0; i < mmcf->endpoints.nelts; i++) {

        if (eps[i]->zone != zone) {
            continue;
        }

        for (u = ngx_http_mcp_router_next(&eps[i]->bridge.router, NULL);
             u;
             u = ngx_http_mcp_router_next(&eps[i]->bridge.router, u))
        {
            upstream = ngx_array_push(&status->upstreams);
            if (upstream == NULL) {
                return NGX_ERROR;
            }

            ngx_memzero(upstream, sizeof(ngx_http_mcp_status_upstream_t));

            upstream->configured = u;
            upstream->endpoint = ngx_http_mcp_status_clean(status->pool,
                                                           &u->endpoint);
            upstream->upstream = ngx_http_mcp_status_clean(status->pool,
                                                           &u->name);

            if (upstream->endpoint == NULL || upstream->upstream == NULL) {
                return NGX_ERROR;
            }
        }
    }

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&info, sizeof(ngx_mcp_profile_info_t));

    rc = NGX_OK;

    for (n = 0; rc == NGX_OK && n < NGX_HTTP_MCP_STATUS_PROFILES; n++) {
        rc = ngx_mcp_profile_info(zone, pool, &info);

        if (rc == NGX_OK) {
            ngx_http_mcp_status_profile(status, &info);
        }

        ngx_reset_pool(pool);
    }

    ngx_destroy_pool(pool);

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_mcp_status_profile(ngx_http_mcp_status_t *status,
    ngx_mcp_profile_info_t *info)
{
    ngx_uint_t                       i, state;
    ngx_http_mcp_status_upstream_t  *upstream;

    switch (info->what) {

    case NGX_MCP_PROFILE_UNKNOWN:
        state = ngx_http_mcp_upstream_unreached;
        break;

    case NGX_MCP_PROFILE_REFUSED:
        state = ngx_http_mcp_upstream_refused;
        break;

    default:
        state = ngx_http_mcp_upstream_known;
    }

    if (info->kept) {
        state = ngx_http_mcp_upstream_away;
    }

    upstream = status->upstreams.elts;

    for (i = 0; i < status->upstreams.nelts; i++) {

        if (ngx_http_mcp_profile_is(upstream[i].configured, info)) {
            upstream[i].tenants[state]++;
            upstream[i].ages[state] = ngx_max(upstream[i].ages[state],
                                              info->age);
        }
    }
}


/* the worst of all tenants */

static ngx_uint_t
ngx_http_mcp_status_state(ngx_http_mcp_status_upstream_t *upstream)
{
    ngx_uint_t  state;

    for (state = ngx_http_mcp_upstream_states; state; state--) {
        if (upstream->tenants[state - 1]) {
            return state - 1;
        }
    }

    return ngx_http_mcp_upstream_states;
}


static ngx_int_t
ngx_http_mcp_status_lists(ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone)
{
    uint64_t                    number, *n;
    ngx_int_t                   rc;
    ngx_uint_t                  i;
    ngx_mcp_ref_t               ref;
    ngx_mcp_audience_t          audience;
    ngx_mcp_list_info_t         info;
    ngx_http_mcp_status_row_t  *list;

    number = 0;

    for ( ;; ) {
        rc = ngx_mcp_audience_next(zone, NULL, NULL, &number, status->pool,
                                   &audience, &ref);

        if (rc != NGX_OK) {
            return (rc == NGX_DONE) ? NGX_OK : NGX_ERROR;
        }

        list = ngx_http_mcp_status_list(status, &audience.endpoint);
        if (list == NULL) {
            return NGX_ERROR;
        }

        for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {

            if (ngx_mcp_list_info(zone, ref, i, &info) != NGX_OK) {
                break;
            }

            n = list[i].n;

            n[ngx_http_mcp_list_failing] += (info.failing != 0);
            n[ngx_http_mcp_list_left_out] += info.left_out;

            if (info.filled) {
                n[ngx_http_mcp_list_kept]++;
                n[ngx_http_mcp_list_entries] += info.entries;
                n[ngx_http_mcp_list_size] += info.size;
                n[ngx_http_mcp_list_age] = ngx_max(n[ngx_http_mcp_list_age],
                                                   info.age);
            }
        }
    }
}


/* the first of those of an endpoint */

static ngx_http_mcp_status_row_t *
ngx_http_mcp_status_list(ngx_http_mcp_status_t *status, ngx_str_t *endpoint)
{
    u_char                     *name;
    ngx_uint_t                  i;
    ngx_http_mcp_status_row_t  *list;

    name = ngx_http_mcp_status_clean(status->pool, endpoint);
    if (name == NULL) {
        return NULL;
    }

    list = status->lists.elts;

    for (i = 0; i < status->lists.nelts; i += NGX_MCP_LIST_KINDS) {
        if (ngx_strcmp(list[i].endpoint, name) == 0) {
            return &list[i];
        }
    }

    list = ngx_array_push_n(&status->lists, NGX_MCP_LIST_KINDS);
    if (list == NULL) {
        return NULL;
    }

    ngx_memzero(list, NGX_MCP_LIST_KINDS * sizeof(ngx_http_mcp_status_row_t));

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        list[i].endpoint = name;
        list[i].list = ngx_http_mcp_status_kinds[i];
    }

    return list;
}


static ngx_int_t
ngx_http_mcp_status_leases(ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone,
    ngx_msec_t silence)
{
    uint64_t                   *n;
    ngx_int_t                   rc;
    ngx_mcp_lease_info_t        info;
    ngx_http_mcp_status_row_t  *lease;

    for ( ;; ) {
        rc = ngx_mcp_lease_info(zone, status->nleases, status->pool, &info);

        if (rc != NGX_OK) {
            return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
        }

        status->nleases++;
        status->held += (info.holder != 0);

        if (status->nleases > NGX_HTTP_MCP_STATUS_LEASES) {
            continue;
        }

        lease = ngx_array_push(&status->leases);
        if (lease == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(lease, sizeof(ngx_http_mcp_status_row_t));

        lease->key = ngx_http_mcp_status_clean(status->pool, &info.key);

        if (lease->key == NULL) {
            return NGX_ERROR;
        }

        n = lease->n;

        n[ngx_http_mcp_lease_pid] = info.holder;
        n[ngx_http_mcp_lease_held] = (info.holder != 0);
        n[ngx_http_mcp_lease_age] = info.held;
        n[ngx_http_mcp_lease_silence] = info.silent;
        n[ngx_http_mcp_lease_silent] = (silence && info.silent > silence);
        n[ngx_http_mcp_lease_fence] = info.fence;
        n[ngx_http_mcp_lease_taken] = info.consumed;
    }
}


/* zeroes separate the parts of a key */

static u_char *
ngx_http_mcp_status_clean(ngx_pool_t *pool, ngx_str_t *text)
{
    u_char    *p, *from, *start, *last, *clean;
    uint32_t   ch;

    clean = ngx_pnalloc(pool, text->len + 1);
    if (clean == NULL) {
        return NULL;
    }

    p = clean;
    from = text->data;
    last = text->data + text->len;

    while (from < last) {
        start = from;

        if (*from < 0x80) {

            if (*from == '\0') {
                *p++ = ' ';

            } else {
                *p++ = (*from < 0x20 || *from == 0x7f) ? '?' : *from;
            }

            from++;
            continue;
        }

        ch = ngx_utf8_decode(&from, last - from);

        if (ch > 0x10ffff || (ch >= 0xd800 && ch < 0xe000)) {
            *p++ = '?';
            from = start + 1;
            continue;
        }

        p = ngx_cpymem(p, start, from - start);
    }

    *p = '\0';

    return clean;
}


static ngx_chain_t *
ngx_http_mcp_status_json(ngx_http_mcp_status_t *status)
{
    char         *text;
    cJSON        *root;
    size_t        len;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    root = cJSON_CreateObject();
    text = NULL;

    if (root
        && ngx_http_mcp_json_text(root, "version", NGX_MCP_MODULE_VERSION)
        && ngx_http_mcp_json_number(root, "workers", status->use.workers)
        && ngx_http_mcp_json_zone(root, status)
        && ngx_http_mcp_json_counters(root, status)
        && ngx_http_mcp_json_array(root, "upstreams", &status->upstreams,
                                   ngx_http_mcp_json_upstream)
        && ngx_http_mcp_json_array(
               cJSON_GetObjectItemCaseSensitive(root, "lists"), "kept",
               &status->lists, ngx_http_mcp_json_list)
        && ngx_http_mcp_json_array(
               cJSON_GetObjectItemCaseSensitive(root, "exchanges"), "by",
               &status->metrics, ngx_http_mcp_json_exchange)
        && ngx_http_mcp_json_leases(root, status))
    {
        text = cJSON_Print(root);
    }

    cJSON_Delete(root);

    if (text == NULL) {
        return NULL;
    }

    len = ngx_strlen(text);

    b = ngx_create_temp_buf(status->pool, len + 1);
    cl = ngx_alloc_chain_link(status->pool);

    if (b && cl) {
        b->last = ngx_cpymem(b->last, text, len);
        *b->last++ = LF;

        cl->buf = b;
        cl->next = NULL;
    }

    cJSON_free(text);

    return b ? cl : NULL;
}


static ngx_uint_t
ngx_http_mcp_json_zone(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON               *zone, *bytes;
    ngx_uint_t           i, ok;
    ngx_mcp_zone_use_t  *use;

    use = &status->use;
    zone = cJSON_AddObjectToObject(root, "zone");

    ok = ngx_http_mcp_json_text(zone, "name", status->name)
         && ngx_http_mcp_json_number(zone, "size_bytes", status->size)
         && ngx_http_mcp_json_number(zone, "blocks", use->blocks)
         && ngx_http_mcp_json_number(zone, "blocks_free",
                                     use->used[NGX_MCP_USE_FREE])
         && ngx_http_mcp_json_number(zone, "block_size_bytes",
                                     use->block_size)
         && ngx_http_mcp_json_number(zone, "recoveries", use->recoveries);

    bytes = cJSON_AddObjectToObject(zone, "bytes");

    for (i = 0; ok && i < NGX_MCP_USE_MAX; i++) {
        ok = ngx_http_mcp_json_number(bytes, ngx_http_mcp_status_uses[i],
                                      use->used[i] * use->block_size);
    }

    return ok;
}


static ngx_uint_t
ngx_http_mcp_json_counters(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON                  *group;
    int64_t                 sum;
    ngx_uint_t              i;
    ngx_http_mcp_number_t  *n;

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        n = &ngx_http_mcp_status_counters[i];
        group = cJSON_GetObjectItemCaseSensitive(root, n->group);

        if (group == NULL) {
            group = cJSON_AddObjectToObject(root, n->group);
        }

        if (group == NULL) {
            return 0;
        }

        sum = ngx_http_mcp_status_sum(status, i);

        if (sum != -1 && !ngx_http_mcp_json_number(group, n->family, sum)) {
            return 0;
        }

        if (n->label[0]
            && !ngx_http_mcp_json_number(group, n->member,
                                         status->counters[i]))
        {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_mcp_json_upstream(cJSON *item, void *data)
{
    ngx_http_mcp_status_upstream_t *upstream = data;

    cJSON       *tenants;
    ngx_uint_t   i, ok, state;

    state = ngx_http_mcp_status_state(upstream);

    ok = ngx_http_mcp_json_text(item, "endpoint", upstream->endpoint)
         && ngx_http_mcp_json_text(item, "upstream", upstream->upstream)
         && ngx_http_mcp_json_text(item, "state",
                                   ngx_http_mcp_status_states[state]);

    if (state == ngx_http_mcp_upstream_states) {
        return ok;
    }

    tenants = cJSON_AddObjectToObject(item, "tenants");

    ok = ok && ngx_http_mcp_json_number(item, "age_ms",
                                        upstream->ages[state]);

    for (i = 0; ok && i < ngx_http_mcp_upstream_states; i++) {
        ok = ngx_http_mcp_json_number(tenants, ngx_http_mcp_status_states[i],
                                      upstream->tenants[i]);
    }

    return ok;
}


static ngx_uint_t
ngx_http_mcp_json_list(cJSON *item, void *data)
{
    ngx_http_mcp_status_row_t *list = data;

    return ngx_http_mcp_json_text(item, "endpoint", list->endpoint)
           && ngx_http_mcp_json_text(item, "list", list->list)
           && ngx_http_mcp_json_row(item, ngx_http_mcp_status_lists_columns,
                                    list->n);
}


static ngx_uint_t
ngx_http_mcp_json_exchange(cJSON *item, void *data)
{
    ngx_http_mcp_status_metric_t *m = data;

    char         name[NGX_INT64_LEN + 1];
    cJSON       *buckets;
    ngx_uint_t   i, ok;

    ok = ngx_http_mcp_json_text(item, "endpoint", m->endpoint)
         && ngx_http_mcp_json_text(item, "upstream", m->upstream)
         && ngx_http_mcp_json_text(item, "method", m->method)
         && ngx_http_mcp_json_number(item, "count", m->info.count)
         && ngx_http_mcp_json_number(item, "ms", m->info.msec);

    for (i = 0; ok && i < NGX_MCP_METRIC_OUTCOMES; i++) {
        ok = ngx_http_mcp_json_number(item, ngx_http_mcp_status_outcomes[i],
                                      m->info.outcomes[i]);
    }

    buckets = cJSON_AddObjectToObject(item, "within_ms");

    for (i = 0; ok && i < NGX_MCP_METRIC_BUCKETS; i++) {
        *ngx_sprintf((u_char *) name, "%M", ngx_mcp_metric_limits[i]) = '\0';

        ok = ngx_http_mcp_json_number(buckets, name, m->info.buckets[i]);
    }

    return ok;
}


static ngx_uint_t
ngx_http_mcp_json_leases(cJSON *root, ngx_http_mcp_status_t *status)
{
    cJSON  *leases;

    leases = cJSON_AddObjectToObject(root, "leases");

    return leases
           && ngx_http_mcp_json_number(leases, "held", status->held)
           && ngx_http_mcp_json_number(leases, "free",
                                       status->nleases - status->held)
           && ngx_http_mcp_json_array(leases, "by", &status->leases,
                                      ngx_http_mcp_json_lease);
}


static ngx_uint_t
ngx_http_mcp_json_lease(cJSON *item, void *data)
{
    ngx_http_mcp_status_row_t *lease = data;

    return ngx_http_mcp_json_text(item, "key", lease->key)
           && ngx_http_mcp_json_row(item, ngx_http_mcp_status_leases_columns,
                                    lease->n);
}


static ngx_uint_t
ngx_http_mcp_json_row(cJSON *item, ngx_http_mcp_status_column_t *column,
    uint64_t *n)
{
    for ( /* void */ ; column->kind; column++, n++) {

        if (column->member == NULL) {
            continue;
        }

        if (column->kind[0] == 'b'
            ? cJSON_AddBoolToObject(item, column->member, *n != 0) == NULL
            : !ngx_http_mcp_json_number(item, column->member, *n))
        {
            return 0;
        }
    }

    return 1;
}


/* an object for each element, which fill() gives its members; 0: no memory */

static ngx_uint_t
ngx_http_mcp_json_array(cJSON *group, char *name, ngx_array_t *elements,
    ngx_uint_t (*fill)(cJSON *item, void *data))
{
    cJSON       *array, *item;
    u_char      *p;
    ngx_uint_t   i;

    array = cJSON_AddArrayToObject(group, name);

    if (array == NULL) {
        return 0;
    }

    p = elements->elts;

    for (i = 0; i < elements->nelts; i++) {
        item = cJSON_CreateObject();

        if (item && !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(item);
            return 0;
        }

        if (item == NULL || !fill(item, p + i * elements->size)) {
            return 0;
        }
    }

    return 1;
}


static ngx_chain_t *
ngx_http_mcp_status_text(ngx_http_mcp_status_t *status)
{
    ngx_http_mcp_text_t  t;

    ngx_memzero(&t, sizeof(ngx_http_mcp_text_t));

    t.pool = status->pool;
    t.last = &t.out;

    ngx_http_mcp_text_family(&t, "info", NULL, "Version of the module.");
    ngx_http_mcp_text_sample(&t, "info");
    ngx_http_mcp_text_label(&t, "version", NGX_MCP_MODULE_VERSION);
    ngx_http_mcp_text_number(&t, 1);

    t.zone = status->name;

    ngx_http_mcp_text_one(&t, "workers",
                          "Workers that use the zone, also exiting ones.",
                          status->use.workers);

    ngx_http_mcp_text_zone(&t, status);
    ngx_http_mcp_text_counters(&t, status);
    ngx_http_mcp_text_exchanges(&t, status);
    ngx_http_mcp_text_upstreams(&t, status);
    ngx_http_mcp_text_rows(&t, &status->lists,
                           ngx_http_mcp_status_lists_columns);
    ngx_http_mcp_text_leases(&t, status);

    return t.failed ? NULL : t.out;
}


static void
ngx_http_mcp_text_zone(ngx_http_mcp_text_t *t, ngx_http_mcp_status_t *status)
{
    ngx_uint_t           i;
    ngx_mcp_zone_use_t  *use;

    use = &status->use;

    ngx_http_mcp_text_one(t, "zone_size_bytes", "Size of the zone in bytes.",
                          status->size);
    ngx_http_mcp_text_one(t, "zone_blocks", "Number of blocks in the zone.",
                          use->blocks);
    ngx_http_mcp_text_one(t, "zone_blocks_free",
                          "Number of free blocks in the zone.",
                          use->used[NGX_MCP_USE_FREE]);

    ngx_http_mcp_text_family(t, "zone_bytes", NULL,
                             "Bytes of the zone's blocks, by use.");

    for (i = 0; i < NGX_MCP_USE_MAX; i++) {
        ngx_http_mcp_text_sample(t, "zone_bytes");
        ngx_http_mcp_text_label(t, "use", ngx_http_mcp_status_uses[i]);
        ngx_http_mcp_text_number(t, (int64_t) (use->used[i]
                                               * use->block_size));
    }

    ngx_http_mcp_text_one(t, "zone_recoveries_total",
                          "Repairs of the zone after a worker died.",
                          use->recoveries);
}


static void
ngx_http_mcp_text_counters(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status)
{
    char                    name[64];
    u_char                 *p;
    ngx_uint_t              i, j;
    ngx_http_mcp_number_t  *n;

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        n = &ngx_http_mcp_status_counters[i];

        p = ngx_snprintf((u_char *) name, sizeof(name) - 1, "%s_%s",
                         n->group, n->family);
        *p = '\0';

        for (j = 0; ngx_http_mcp_text_helps[j].name; j++) {
            if (ngx_strcmp(ngx_http_mcp_text_helps[j].name, name) == 0) {
                break;
            }
        }

        *ngx_snprintf(p, sizeof(name) - 1 - (p - (u_char *) name), "%s",
                      n->kind[0] == 'c' ? "_total" : "") = '\0';

        if (i == 0 || !ngx_http_mcp_status_same(n - 1, n)) {
            ngx_http_mcp_text_family(t, name, NULL,
                                     ngx_http_mcp_text_helps[j].help
                                     ? ngx_http_mcp_text_helps[j].help
                                     : n->family);
        }

        ngx_http_mcp_text_sample(t, name);

        if (n->label[0]) {
            ngx_http_mcp_text_label(t, n->label, n->value);
        }

        ngx_http_mcp_text_number(t, status->counters[i]);
    }
}


static void
ngx_http_mcp_text_exchanges(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status)
{
    u_char                         le[NGX_INT64_LEN + 5];
    ngx_uint_t                     i, j;
    ngx_http_mcp_status_metric_t  *m;

    m = status->metrics.elts;

    if (status->metrics.nelts == 0) {
        return;
    }

    ngx_http_mcp_text_family(t, "exchanges_total", NULL,
                             "Exchanges with upstreams ended, by method and "
                             "outcome.");

    for (i = 0; i < status->metrics.nelts; i++) {
        for (j = 0; j < NGX_MCP_METRIC_OUTCOMES; j++) {
            ngx_http_mcp_text_exchange(t, "exchanges_total", &m[i]);
            ngx_http_mcp_text_label(t, "outcome",
                                    ngx_http_mcp_status_outcomes[j]);
            ngx_http_mcp_text_number(t, (int64_t) m[i].info.outcomes[j]);
        }
    }

    ngx_http_mcp_text_family(t, "exchange_duration_seconds", "histogram",
                             "Duration of exchanges with upstreams.");

    for (i = 0; i < status->metrics.nelts; i++) {

        for (j = 0; j <= NGX_MCP_METRIC_BUCKETS; j++) {
            ngx_http_mcp_text_exchange(t, "exchange_duration_seconds_bucket",
                                       &m[i]);

            if (j == NGX_MCP_METRIC_BUCKETS) {
                ngx_http_mcp_text_label(t, "le", "+Inf");
                ngx_http_mcp_text_number(t, (int64_t) m[i].info.count);
                break;
            }

            *ngx_sprintf(le, "%M.%03M", ngx_mcp_metric_limits[j] / 1000,
                         ngx_mcp_metric_limits[j] % 1000) = '\0';

            ngx_http_mcp_text_label(t, "le", le);
            ngx_http_mcp_text_number(t, (int64_t) m[i].info.buckets[j]);
        }

        ngx_http_mcp_text_exchange(t, "exchange_duration_seconds_sum", &m[i]);
        ngx_http_mcp_text_seconds(t, m[i].info.msec);

        ngx_http_mcp_text_exchange(t, "exchange_duration_seconds_count",
                                   &m[i]);
        ngx_http_mcp_text_number(t, (int64_t) m[i].info.count);
    }
}


static void
ngx_http_mcp_text_upstreams(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status)
{
    ngx_uint_t                       i, j;
    ngx_http_mcp_status_upstream_t  *upstream;

    if (status->upstreams.nelts == 0) {
        return;
    }

    upstream = status->upstreams.elts;

    ngx_http_mcp_text_family(t, "upstream_tenants", NULL,
                             "Tenants for which an upstream is in a state.");

    for (i = 0; i < status->upstreams.nelts; i++) {

        for (j = 0; j < ngx_http_mcp_upstream_states; j++) {
            ngx_http_mcp_text_sample(t, "upstream_tenants");
            ngx_http_mcp_text_label(t, "endpoint", upstream[i].endpoint);
            ngx_http_mcp_text_label(t, "upstream", upstream[i].upstream);
            ngx_http_mcp_text_label(t, "state", ngx_http_mcp_status_states[j]);
            ngx_http_mcp_text_number(t, (int64_t) upstream[i].tenants[j]);
        }
    }

    ngx_http_mcp_text_family(t, "upstream_state_seconds", NULL,
                             "How long an upstream has been in its state.");

    for (i = 0; i < status->upstreams.nelts; i++) {
        j = ngx_http_mcp_status_state(&upstream[i]);

        if (j == ngx_http_mcp_upstream_states) {
            continue;
        }

        ngx_http_mcp_text_sample(t, "upstream_state_seconds");
        ngx_http_mcp_text_label(t, "endpoint", upstream[i].endpoint);
        ngx_http_mcp_text_label(t, "upstream", upstream[i].upstream);
        ngx_http_mcp_text_label(t, "state", ngx_http_mcp_status_states[j]);
        ngx_http_mcp_text_seconds(t, upstream[i].ages[j]);
    }
}


/* a family for each column, with a sample of each row */

static void
ngx_http_mcp_text_rows(ngx_http_mcp_text_t *t, ngx_array_t *rows,
    ngx_http_mcp_status_column_t *column)
{
    ngx_uint_t                  i, j;
    ngx_http_mcp_status_row_t  *row;

    row = rows->elts;

    for (j = 0; rows->nelts && column[j].kind; j++) {

        if (column[j].family == NULL) {
            continue;
        }

        ngx_http_mcp_text_family(t, column[j].family, NULL, column[j].help);

        for (i = 0; i < rows->nelts; i++) {
            ngx_http_mcp_text_sample(t, column[j].family);

            if (row[i].key) {
                ngx_http_mcp_text_label(t, "key", row[i].key);

            } else {
                ngx_http_mcp_text_label(t, "endpoint", row[i].endpoint);
                ngx_http_mcp_text_label(t, "list", row[i].list);
            }

            if (column[j].kind[0] == 't') {
                ngx_http_mcp_text_seconds(t, row[i].n[j]);

            } else {
                ngx_http_mcp_text_number(t, (int64_t) row[i].n[j]);
            }
        }
    }
}


static void
ngx_http_mcp_text_leases(ngx_http_mcp_text_t *t, ngx_http_mcp_status_t *status)
{
    ngx_http_mcp_text_family(t, "leases", NULL,
                             "Leases (feeds, shared upstream sessions, "
                             "fetches of lists), by state.");

    ngx_http_mcp_text_sample(t, "leases");
    ngx_http_mcp_text_label(t, "state", "held");
    ngx_http_mcp_text_number(t, (int64_t) status->held);

    ngx_http_mcp_text_sample(t, "leases");
    ngx_http_mcp_text_label(t, "state", "free");
    ngx_http_mcp_text_number(t, (int64_t) (status->nleases - status->held));

    ngx_http_mcp_text_rows(t, &status->leases,
                           ngx_http_mcp_status_leases_columns);
}


static void
ngx_http_mcp_text_exchange(ngx_http_mcp_text_t *t, const char *name,
    ngx_http_mcp_status_metric_t *m)
{
    ngx_http_mcp_text_sample(t, name);
    ngx_http_mcp_text_label(t, "endpoint", m->endpoint);
    ngx_http_mcp_text_label(t, "upstream", m->upstream);
    ngx_http_mcp_text_label(t, "method", m->method);
}


/* a family with one sample */

static void
ngx_http_mcp_text_one(ngx_http_mcp_text_t *t, const char *name,
    const char *help, uint64_t n)
{
    ngx_http_mcp_text_family(t, name, NULL, help);
    ngx_http_mcp_text_sample(t, name);
    ngx_http_mcp_text_number(t, (int64_t) n);
}


/* kind NULL: a counter if the name ends in "_total", else a gauge */

static void
ngx_http_mcp_text_family(ngx_http_mcp_text_t *t, const char *name,
    const char *kind, const char *help)
{
    if (kind == NULL) {
        kind = ngx_strstr(name, "_total") ? "counter" : "gauge";
    }

    ngx_http_mcp_text_puts(t, "# HELP nginx_mcp_");
    ngx_http_mcp_text_puts(t, name);
    ngx_http_mcp_text_puts(t, " ");
    ngx_http_mcp_text_puts(t, help);
    ngx_http_mcp_text_puts(t, "\n# TYPE nginx_mcp_");
    ngx_http_mcp_text_puts(t, name);
    ngx_http_mcp_text_puts(t, " ");
    ngx_http_mcp_text_puts(t, kind);
    ngx_http_mcp_text_puts(t, "\n");
}


/* its labels follow, and then its value */

static void
ngx_http_mcp_text_sample(ngx_http_mcp_text_t *t, const char *name)
{
    ngx_http_mcp_text_puts(t, "nginx_mcp_");
    ngx_http_mcp_text_puts(t, name);

    t->labels = 0;

    if (t->zone) {
        ngx_http_mcp_text_label(t, "zone", t->zone);
    }
}


static void
ngx_http_mcp_text_label(ngx_http_mcp_text_t *t, const char *name, void *value)
{
    u_char  *p, *from;

    ngx_http_mcp_text_put(t, t->labels++ ? "," : "{", 1);
    ngx_http_mcp_text_puts(t, name);
    ngx_http_mcp_text_puts(t, "=\"");

    from = value;

    for (p = from; *p; p++) {
        if (*p == '"' || *p == '\\') {
            ngx_http_mcp_text_put(t, from, p - from);
            ngx_http_mcp_text_puts(t, "\\");
            from = p;
        }
    }

    ngx_http_mcp_text_put(t, from, p - from);
    ngx_http_mcp_text_puts(t, "\"");
}


static void
ngx_http_mcp_text_number(ngx_http_mcp_text_t *t, int64_t n)
{
    u_char  *p, buf[NGX_INT64_LEN + sizeof("} \n")];

    p = ngx_sprintf(buf, "} %L\n", n);
    ngx_http_mcp_text_put(t, buf, p - buf);
}


static void
ngx_http_mcp_text_seconds(ngx_http_mcp_text_t *t, uint64_t msec)
{
    u_char  *p, buf[NGX_INT64_LEN + sizeof("} .000\n")];

    p = ngx_sprintf(buf, "} %uL.%03uL\n", msec / 1000, msec % 1000);
    ngx_http_mcp_text_put(t, buf, p - buf);
}


static void
ngx_http_mcp_text_put(ngx_http_mcp_text_t *t, const void *data, size_t len)
{
    size_t         n;
    ngx_chain_t   *cl;
    const u_char  *p;

    p = data;

    while (len && !t->failed) {

        if (t->buf == NULL || t->buf->last == t->buf->end) {
            t->buf = ngx_create_temp_buf(t->pool, 16384);
            cl = ngx_alloc_chain_link(t->pool);

            if (t->buf == NULL || cl == NULL) {
                t->failed = 1;
                return;
            }

            cl->buf = t->buf;
            cl->next = NULL;

            *t->last = cl;
            t->last = &cl->next;
        }

        n = ngx_min(len, (size_t) (t->buf->end - t->buf->last));
        t->buf->last = ngx_cpymem(t->buf->last, p, n);
        p += n;
        len -= n;
    }
}
