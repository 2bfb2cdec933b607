
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <cjson/cJSON.h>
#include "ngx_http_mcp_module.h"
#include "ngx_mcp_lease.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_metric.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_header_iter.h"
#include "ngx_http_mcp_output.h"


/* the most leases that have rows; further leases are only counted */
#define NGX_HTTP_MCP_STATUS_LEASES  256

/* the most profiles of tenants that are looked at */
#define NGX_HTTP_MCP_STATUS_PROFILES  16384


/*
 * The status is made of tables.  A row has labels and numbers; a column says
 * how its number is written in JSON and in Prometheus' text.  All texts are
 * valid UTF-8 without control characters and end with a zero.
 */

typedef enum {
    ngx_http_mcp_status_number = 0,
    ngx_http_mcp_status_time,             /* ms in JSON, seconds in text */
    ngx_http_mcp_status_flag
} ngx_http_mcp_status_kind_e;

typedef struct {
    /* in JSON */
    char                           *object;  /* object in the row that has the
                                                member; NULL: the row has it */
    char                           *member;  /* name of the member; NULL: the
                                                number is not in JSON */
    char                           *sum;     /* member to which the number is
                                                added, or NULL */

    /* in Prometheus' text; the columns of a family follow each other */
    char                           *family;  /* name of the metric family; NULL:
                                                the number is not in the text */
    char                           *suffix;  /* suffix of a histogram's sample,
                                                or NULL */
    char                           *label;   /* name of the label by which the
                                                samples of a family differ, or
                                                NULL */
    char                           *value;   /* value of that label */
    char                           *help;    /* HELP of the family, in its first
                                                column */

    ngx_http_mcp_status_kind_e      kind;
} ngx_http_mcp_status_column_t;


#define NGX_HTTP_MCP_STATUS_LABELS  3

typedef struct {
    char                           *object;  /* name of an object in JSON; NULL:
                                                the root */
    char                           *array;   /* name of the array in that object
                                                that has the rows; NULL: the
                                                object is the only row */
    char                           *labels[NGX_HTTP_MCP_STATUS_LABELS];
    ngx_http_mcp_status_column_t   *columns;
    ngx_uint_t                      ncolumns;
} ngx_http_mcp_status_table_t;


/* the value of a number that is left out */
#define NGX_HTTP_MCP_STATUS_NONE  ((uint64_t) 1 << 63)

typedef struct {
    u_char                         *labels[NGX_HTTP_MCP_STATUS_LABELS];
    uint64_t                       *n;       /* numbers by column */
    char                           *state;   /* member "state" in JSON, or
                                                NULL */
    ngx_http_mcp_upstream_t        *upstream;
} ngx_http_mcp_status_row_t;


enum {
    ngx_http_mcp_status_zone = 0,
    ngx_http_mcp_status_counters,
    ngx_http_mcp_status_upstreams,
    ngx_http_mcp_status_lists,
    ngx_http_mcp_status_exchanges,
    ngx_http_mcp_status_leases,
    ngx_http_mcp_status_tables
};

typedef struct {
    ngx_pool_t                     *pool;
    u_char                         *name;
    ngx_array_t                     rows[ngx_http_mcp_status_tables];
} ngx_http_mcp_status_t;


#define NGX_HTTP_MCP_COLUMN(member, family, kind, help)                       \
    { NULL, member, NULL, family, NULL, NULL, NULL, help,                     \
      ngx_http_mcp_status_ ## kind }

/* a column that is one of several of its family, told apart by a label */

#define NGX_HTTP_MCP_COLUMN_OF(object, member, family, label, value, help)    \
    { object, member, NULL, family, NULL, label, value, help,                 \
      ngx_http_mcp_status_number }


enum {
    ngx_http_mcp_zone_size = 0,
    ngx_http_mcp_zone_blocks,
    ngx_http_mcp_zone_free,
    ngx_http_mcp_zone_block_size,
    ngx_http_mcp_zone_recoveries,
    ngx_http_mcp_zone_uses
};

#define NGX_HTTP_MCP_COLUMN_USE(name, text)                                   \
    NGX_HTTP_MCP_COLUMN_OF("bytes", text, "zone_bytes", "use", text,          \
                           "Bytes of the zone's blocks, by use."),

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_zone_columns[] = {
    NGX_HTTP_MCP_COLUMN("size_bytes", "zone_size_bytes", number,
                        "Size of the zone in bytes."),
    NGX_HTTP_MCP_COLUMN("blocks", "zone_blocks", number,
                        "Number of blocks in the zone."),
    NGX_HTTP_MCP_COLUMN("blocks_free", "zone_blocks_free", number,
                        "Number of free blocks in the zone."),
    NGX_HTTP_MCP_COLUMN("block_size_bytes", NULL, number, NULL),
    NGX_HTTP_MCP_COLUMN("recoveries", "zone_recoveries_total", number,
                        "Repairs of the zone after a worker died."),
    NGX_MCP_USES(NGX_HTTP_MCP_COLUMN_USE)
};


enum {
    ngx_http_mcp_counter_workers = NGX_MCP_COUNTER_MAX,
    ngx_http_mcp_counter_held,
    ngx_http_mcp_counter_free
};

#define NGX_HTTP_MCP_SUFFIX_g
#define NGX_HTTP_MCP_SUFFIX_c  "_total"

#define NGX_HTTP_MCP_COUNTER(name, group, family, kind, help)                 \
    { group, family, NULL, group "_" family NGX_HTTP_MCP_SUFFIX_ ## kind,     \
      NULL, NULL, NULL, help, ngx_http_mcp_status_number },

#define NGX_HTTP_MCP_COUNTER_OF(name, group, family, kind, label, value,      \
    member, help)                                                             \
    { group, member, family,                                                  \
      group "_" family NGX_HTTP_MCP_SUFFIX_ ## kind,                          \
      NULL, label, value, help, ngx_http_mcp_status_number },

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_counters_columns[] = {
    NGX_MCP_COUNTERS(NGX_HTTP_MCP_COUNTER, NGX_HTTP_MCP_COUNTER_OF)
    NGX_HTTP_MCP_COLUMN("workers", "workers", number,
                        "Workers that use the zone, also exiting ones."),
    NGX_HTTP_MCP_COLUMN_OF("leases", "held", "leases", "state", "held",
                           "Leases (feeds, shared upstream sessions, "
                           "fetches of lists), by state."),
    NGX_HTTP_MCP_COLUMN_OF("leases", "free", "leases", "state", "free", "")
};


/* states of an upstream for a tenant; the last is the worst */

typedef enum {
    ngx_http_mcp_upstream_known = 0,
    ngx_http_mcp_upstream_refused,
    ngx_http_mcp_upstream_away,
    ngx_http_mcp_upstream_unreached,
    ngx_http_mcp_upstream_states
} ngx_http_mcp_upstream_state_e;

#define NGX_HTTP_MCP_COLUMN_TENANTS(state)                                    \
    NGX_HTTP_MCP_COLUMN_OF("tenants", state, "upstream_tenants", "state",     \
                           state,                                             \
                           "Tenants for which an upstream is in a state.")

/* the age of an upstream's state, which is the worst of all tenants */

#define NGX_HTTP_MCP_COLUMN_AGE(state)                                        \
    { NULL, "age_ms", NULL, "upstream_state_seconds", NULL, "state", state,   \
      "How long an upstream has been in its state.",                          \
      ngx_http_mcp_status_time }

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_upstreams_columns[] =
{
    NGX_HTTP_MCP_COLUMN_TENANTS("known"),
    NGX_HTTP_MCP_COLUMN_TENANTS("refused"),
    NGX_HTTP_MCP_COLUMN_TENANTS("away"),
    NGX_HTTP_MCP_COLUMN_TENANTS("unreached"),
    NGX_HTTP_MCP_COLUMN_AGE("known"),
    NGX_HTTP_MCP_COLUMN_AGE("refused"),
    NGX_HTTP_MCP_COLUMN_AGE("away"),
    NGX_HTTP_MCP_COLUMN_AGE("unreached")
};


enum {
    ngx_http_mcp_list_kept = 0,
    ngx_http_mcp_list_failing,
    ngx_http_mcp_list_left_out,
    ngx_http_mcp_list_entries,
    ngx_http_mcp_list_size,
    ngx_http_mcp_list_age
};

/* columns for the cached lists of one kind that an endpoint's audiences have */

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_lists_columns[] = {
    NGX_HTTP_MCP_COLUMN("audiences", "lists_kept", number,
                        "Audiences with a cached list."),
    NGX_HTTP_MCP_COLUMN("failing", "lists_failing", number,
                        "Audiences whose list cannot be fetched now."),
    NGX_HTTP_MCP_COLUMN("left_out", "lists_left_out", number,
                        "Lists of upstreams that were never fetched and are "
                        "missing in what is served."),
    NGX_HTTP_MCP_COLUMN("entries", "lists_entries", number,
                        "Entries of the cached lists."),
    NGX_HTTP_MCP_COLUMN("bytes", "lists_bytes", number,
                        "Size of the cached lists in bytes."),
    NGX_HTTP_MCP_COLUMN("age_ms", "lists_age_seconds", time,
                        "Age of the oldest cached list.")
};


enum {
    ngx_http_mcp_exchange_buckets = NGX_MCP_METRIC_OUTCOMES,
    ngx_http_mcp_exchange_all = ngx_http_mcp_exchange_buckets
                                + NGX_MCP_METRIC_BUCKETS,
    ngx_http_mcp_exchange_time,
    ngx_http_mcp_exchange_count
};

#define NGX_HTTP_MCP_COLUMN_OUTCOME(name, text)                               \
    NGX_HTTP_MCP_COLUMN_OF(NULL, text, "exchanges_total", "outcome", text,    \
                           "Exchanges with upstreams ended, by method and "   \
                           "outcome."),

#define NGX_HTTP_MCP_COLUMN_DURATION(object, member, suffix, label, value,    \
    kind)                                                                     \
    { object, member, NULL, "exchange_duration_seconds", suffix, label,       \
      value, "Duration of exchanges with upstreams.",                         \
      ngx_http_mcp_status_ ## kind },

#define NGX_HTTP_MCP_COLUMN_BUCKET(msec, text)                                \
    NGX_HTTP_MCP_COLUMN_DURATION("within_ms", #msec, "_bucket", "le", text,   \
                                 number)

static ngx_http_mcp_status_column_t  ngx_http_mcp_status_exchanges_columns[] =
{
    NGX_MCP_OUTCOMES(NGX_HTTP_MCP_COLUMN_OUTCOME)
    NGX_MCP_BUCKETS(NGX_HTTP_MCP_COLUMN_BUCKET)
    NGX_HTTP_MCP_COLUMN_DURATION(NULL, NULL, "_bucket", "le", "+Inf", number)
    NGX_HTTP_MCP_COLUMN_DURATION(NULL, "ms", "_sum", NULL, NULL, time)
    NGX_HTTP_MCP_COLUMN_DURATION(NULL, "count", "_count", NULL, NULL, number)
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
    NGX_HTTP_MCP_COLUMN("pid", NULL, number, NULL),
    NGX_HTTP_MCP_COLUMN(NULL, "lease_held", number,
                        "Whether a worker holds the lease."),
    NGX_HTTP_MCP_COLUMN("age_ms", "lease_age_seconds", time,
                        "Time since the worker took the lease."),
    NGX_HTTP_MCP_COLUMN("silence_ms", "lease_silence_seconds", time,
                        "Time since the last data of the lease arrived."),
    NGX_HTTP_MCP_COLUMN("silent", "lease_silent", flag,
                        "Whether no data arrived for three heartbeats."),
    NGX_HTTP_MCP_COLUMN("fence", NULL, number, NULL),
    NGX_HTTP_MCP_COLUMN("taken", "lease_taken_total", number,
                        "Events read under the lease.")
};


#define ngx_http_mcp_status_columns(name)                                     \
    ngx_http_mcp_status_ ## name ## _columns,                                 \
    sizeof(ngx_http_mcp_status_ ## name ## _columns)                          \
    / sizeof(ngx_http_mcp_status_column_t)

static ngx_http_mcp_status_table_t  ngx_http_mcp_status_layout[] = {
    { "zone", NULL, { NULL, NULL, NULL },
      ngx_http_mcp_status_columns(zone) },
    { NULL, NULL, { NULL, NULL, NULL },
      ngx_http_mcp_status_columns(counters) },
    { NULL, "upstreams", { "endpoint", "upstream", NULL },
      ngx_http_mcp_status_columns(upstreams) },
    { "lists", "kept", { "endpoint", "list", NULL },
      ngx_http_mcp_status_columns(lists) },
    { "exchanges", "by", { "endpoint", "upstream", "method" },
      ngx_http_mcp_status_columns(exchanges) },
    { "leases", "by", { "key", NULL, NULL },
      ngx_http_mcp_status_columns(leases) }
};


/* a Prometheus text that is being written */

typedef struct {
    ngx_pool_t             *pool;
    ngx_chain_t            *out;
    ngx_chain_t           **last;
    ngx_buf_t              *buf;
    u_char                 *zone;
    ngx_uint_t              labels;       /* number of labels written of the
                                             current sample */
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
static ngx_int_t ngx_http_mcp_status_collect_zone(
    ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone);
static ngx_int_t ngx_http_mcp_status_collect_exchanges(
    ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone);
static ngx_int_t ngx_http_mcp_status_collect_upstreams(
    ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone);
static void ngx_http_mcp_status_profile(ngx_array_t *upstreams,
    ngx_mcp_profile_info_t *info);
static void ngx_http_mcp_status_worst(ngx_array_t *upstreams);
static ngx_int_t ngx_http_mcp_status_collect_lists(
    ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone);
static ngx_http_mcp_status_row_t *ngx_http_mcp_status_list(
    ngx_http_mcp_status_t *status, ngx_str_t *endpoint);
static ngx_int_t ngx_http_mcp_status_collect_leases(
    ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone, ngx_msec_t silence);
static ngx_http_mcp_status_row_t *ngx_http_mcp_status_row(
    ngx_http_mcp_status_t *status, ngx_uint_t table);
static u_char *ngx_http_mcp_status_clean(ngx_pool_t *pool, ngx_str_t *text);

static ngx_chain_t *ngx_http_mcp_status_json(ngx_http_mcp_status_t *status);
static ngx_uint_t ngx_http_mcp_json_table(cJSON *root,
    ngx_http_mcp_status_table_t *table, ngx_array_t *rows);
static ngx_uint_t ngx_http_mcp_json_row(cJSON *item,
    ngx_http_mcp_status_table_t *table, ngx_http_mcp_status_row_t *row);
static ngx_uint_t ngx_http_mcp_json_number(cJSON *item,
    ngx_http_mcp_status_column_t *column, uint64_t n);
static cJSON *ngx_http_mcp_json_object(cJSON *item, char *name);

static void ngx_http_mcp_text_table(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_table_t *table, ngx_array_t *rows);
static void ngx_http_mcp_text_row(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_table_t *table, ngx_http_mcp_status_column_t *column,
    ngx_http_mcp_status_row_t *row, uint64_t n);
static void ngx_http_mcp_text_label(ngx_http_mcp_text_t *t, const char *name,
    void *value);
static void ngx_http_mcp_text_put(ngx_http_mcp_text_t *t, const void *data,
    size_t len);
static ngx_chain_t *ngx_http_mcp_status_text(ngx_http_mcp_status_t *status);


static char  *ngx_http_mcp_status_kinds[NGX_MCP_LIST_KINDS] = {
    "tools", "prompts", "resources", "resources/templates"
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
    ngx_chain_t              *out;
    ngx_http_mcp_status_t     status;
    ngx_http_mcp_loc_conf_t  *mlcf;

    static ngx_str_t  text =
                         ngx_string("text/plain; version=0.0.4; charset=utf-8");

    rc = ngx_http_mcp_guard(r, NGX_HTTP_GET|NGX_HTTP_HEAD, "GET, HEAD");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_mcp_header_text(r, "Cache-Control", "no-store") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

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

    return ngx_http_mcp_send_chain(r, NGX_HTTP_OK,
                                   prometheus ? &text
                                              : &ngx_http_mcp_type_json, out);
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

    for (i = 0; i < ngx_http_mcp_status_tables; i++) {
        if (ngx_array_init(&status->rows[i], status->pool, 8,
                           sizeof(ngx_http_mcp_status_row_t))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (ngx_http_mcp_status_collect_zone(status, zone) != NGX_OK
        || ngx_http_mcp_status_collect_exchanges(status, zone) != NGX_OK
        || ngx_http_mcp_status_collect_upstreams(status, zone) != NGX_OK
        || ngx_http_mcp_status_collect_lists(status, zone) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_status_collect_leases(status, zone, silence);
}


static ngx_int_t
ngx_http_mcp_status_collect_zone(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone)
{
    ngx_uint_t                  i;
    ngx_mcp_zone_use_t          use;
    ngx_http_mcp_status_row_t  *row, *counters;

    status->name = ngx_http_mcp_status_clean(status->pool, &zone->name);

    row = ngx_http_mcp_status_row(status, ngx_http_mcp_status_zone);
    counters = ngx_http_mcp_status_row(status, ngx_http_mcp_status_counters);

    if (status->name == NULL || row == NULL || counters == NULL) {
        return NGX_ERROR;
    }

    ngx_mcp_zone_use(zone, &use);

    row->n[ngx_http_mcp_zone_size] = zone->shpool->end
                                     - (u_char *) zone->shpool;
    row->n[ngx_http_mcp_zone_blocks] = use.blocks;
    row->n[ngx_http_mcp_zone_free] = use.used[NGX_MCP_USE_FREE];
    row->n[ngx_http_mcp_zone_block_size] = use.block_size;
    row->n[ngx_http_mcp_zone_recoveries] = use.recoveries;

    for (i = 0; i < NGX_MCP_USE_MAX; i++) {
        row->n[ngx_http_mcp_zone_uses + i] = use.used[i] * use.block_size;
    }

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        counters->n[i] = ngx_mcp_counter(zone, i);
    }

    counters->n[ngx_http_mcp_counter_workers] = use.workers;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_status_collect_exchanges(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone)
{
    u_char                     *method;
    ngx_int_t                   rc;
    ngx_uint_t                  i;
    ngx_mcp_metric_info_t       info;
    ngx_http_mcp_status_row_t  *row;

    for (i = 0; /* void */ ; i++) {
        rc = ngx_mcp_metric_info(zone, i, &info);

        if (rc == NGX_DONE) {
            return NGX_OK;
        }

        if (rc == NGX_DECLINED) {
            continue;
        }

        switch (info.method) {

        case NGX_MCP_METHOD_OTHER:
            method = (u_char *) "other";
            break;

        case NGX_MCP_METRIC_GET:
            method = (u_char *) "GET";
            break;

        case NGX_MCP_METRIC_DELETE:
            method = (u_char *) "DELETE";
            break;

        default:
            method = ngx_http_mcp_status_clean(status->pool,
                                          ngx_mcp_method_name(info.method));
            break;
        }

        row = ngx_http_mcp_status_row(status, ngx_http_mcp_status_exchanges);
        if (row == NULL) {
            return NGX_ERROR;
        }

        row->labels[0] = ngx_http_mcp_status_clean(status->pool,
                                                   &info.endpoint);
        row->labels[1] = ngx_http_mcp_status_clean(status->pool,
                                                   &info.upstream);
        row->labels[2] = method;

        if (row->labels[0] == NULL || row->labels[1] == NULL
            || method == NULL)
        {
            return NGX_ERROR;
        }

        ngx_memcpy(row->n, info.outcomes, sizeof(info.outcomes));
        ngx_memcpy(row->n + ngx_http_mcp_exchange_buckets, info.buckets,
                   sizeof(info.buckets));

        row->n[ngx_http_mcp_exchange_all] = info.count;
        row->n[ngx_http_mcp_exchange_time] = info.msec;
        row->n[ngx_http_mcp_exchange_count] = info.count;
    }
}


/* collects the configured upstreams, with their profiles in the zone */

static ngx_int_t
ngx_http_mcp_status_collect_upstreams(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i, n;
    ngx_pool_t                  *pool;
    ngx_array_t                 *upstreams;
    ngx_mcp_profile_info_t       info;
    ngx_http_mcp_upstream_t     *u;
    ngx_http_mcp_loc_conf_t    **eps;
    ngx_http_mcp_main_conf_t    *mmcf;
    ngx_http_mcp_status_row_t   *row;

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
            row = ngx_http_mcp_status_row(status,
                                          ngx_http_mcp_status_upstreams);
            if (row == NULL) {
                return NGX_ERROR;
            }

            row->upstream = u;
            row->labels[0] = ngx_http_mcp_status_clean(status->pool,
                                                       &u->endpoint);
            row->labels[1] = ngx_http_mcp_status_clean(status->pool,
                                                       &u->name);

            if (row->labels[0] == NULL || row->labels[1] == NULL) {
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
    upstreams = &status->rows[ngx_http_mcp_status_upstreams];

    for (n = 0; rc == NGX_OK && n < NGX_HTTP_MCP_STATUS_PROFILES; n++) {
        rc = ngx_mcp_profile_info(zone, pool, &info);

        if (rc == NGX_OK) {
            ngx_http_mcp_status_profile(upstreams, &info);
        }

        ngx_reset_pool(pool);
    }

    ngx_destroy_pool(pool);

    ngx_http_mcp_status_worst(upstreams);

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_mcp_status_profile(ngx_array_t *upstreams,
    ngx_mcp_profile_info_t *info)
{
    uint64_t                   *age;
    ngx_uint_t                  i, state;
    ngx_http_mcp_status_row_t  *row;

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

    row = upstreams->elts;

    for (i = 0; i < upstreams->nelts; i++) {

        if (ngx_http_mcp_profile_is(row[i].upstream, &info->key)) {
            age = &row[i].n[ngx_http_mcp_upstream_states + state];
            *age = ngx_max(*age, info->age);

            row[i].n[state]++;
        }
    }
}


/* sets the state of each upstream to the worst of all tenants */

static void
ngx_http_mcp_status_worst(ngx_array_t *upstreams)
{
    uint64_t                   *n, *ages;
    ngx_uint_t                  i, state;
    ngx_http_mcp_status_row_t  *row;

    row = upstreams->elts;

    for (i = 0; i < upstreams->nelts; i++) {
        row[i].state = "unasked";

        n = row[i].n;
        ages = n + ngx_http_mcp_upstream_states;

        for (state = 0; state < ngx_http_mcp_upstream_states; state++) {

            if (n[state]) {
                row[i].state
                    = ngx_http_mcp_status_upstreams_columns[state].member;
            }
        }

        for (state = 0; state < ngx_http_mcp_upstream_states; state++) {

            if (row[i].state
                != ngx_http_mcp_status_upstreams_columns[state].member)
            {
                ages[state] = NGX_HTTP_MCP_STATUS_NONE;
            }
        }
    }
}


static ngx_int_t
ngx_http_mcp_status_collect_lists(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone)
{
    uint64_t                   *n;
    ngx_int_t                   rc;
    ngx_uint_t                  i;
    ngx_mcp_audience_t          audience;
    ngx_mcp_list_info_t         info;
    ngx_mcp_audience_walk_t     walk;
    ngx_http_mcp_status_row_t  *list;

    ngx_memzero(&walk, sizeof(ngx_mcp_audience_walk_t));

    for ( ;; ) {
        rc = ngx_mcp_audience_next(zone, &walk, status->pool, &audience);

        if (rc != NGX_OK) {
            return (rc == NGX_DONE) ? NGX_OK : NGX_ERROR;
        }

        list = ngx_http_mcp_status_list(status, &audience.endpoint);
        if (list == NULL) {
            return NGX_ERROR;
        }

        for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {

            if (ngx_mcp_list_info(zone, walk.ref, i, &info) != NGX_OK) {
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


/* returns the first of an endpoint's rows in the table of lists */

static ngx_http_mcp_status_row_t *
ngx_http_mcp_status_list(ngx_http_mcp_status_t *status, ngx_str_t *endpoint)
{
    u_char                     *name;
    ngx_uint_t                  i, n;
    ngx_array_t                *rows;
    ngx_http_mcp_status_row_t  *list;

    name = ngx_http_mcp_status_clean(status->pool, endpoint);
    if (name == NULL) {
        return NULL;
    }

    rows = &status->rows[ngx_http_mcp_status_lists];
    list = rows->elts;
    n = rows->nelts;

    for (i = 0; i < n; i += NGX_MCP_LIST_KINDS) {
        if (ngx_strcmp(list[i].labels[0], name) == 0) {
            return &list[i];
        }
    }

    for (i = 0; i < NGX_MCP_LIST_KINDS; i++) {
        list = ngx_http_mcp_status_row(status, ngx_http_mcp_status_lists);
        if (list == NULL) {
            return NULL;
        }

        list->labels[0] = name;
        list->labels[1] = (u_char *) ngx_http_mcp_status_kinds[i];
    }

    list = rows->elts;

    return &list[n];
}


static ngx_int_t
ngx_http_mcp_status_collect_leases(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence)
{
    uint64_t                   *n;
    ngx_int_t                   rc;
    ngx_uint_t                  i, state;
    ngx_mcp_lease_info_t        info;
    ngx_http_mcp_status_row_t  *counters, *lease;

    counters = status->rows[ngx_http_mcp_status_counters].elts;

    for (i = 0; /* void */ ; i++) {
        rc = ngx_mcp_lease_info(zone, i, status->pool, &info);

        if (rc != NGX_OK) {
            return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
        }

        state = info.holder ? ngx_http_mcp_counter_held
                            : ngx_http_mcp_counter_free;
        counters->n[state]++;

        if (i >= NGX_HTTP_MCP_STATUS_LEASES) {
            continue;
        }

        lease = ngx_http_mcp_status_row(status, ngx_http_mcp_status_leases);
        if (lease == NULL) {
            return NGX_ERROR;
        }

        lease->labels[0] = ngx_http_mcp_status_clean(status->pool, &info.key);
        if (lease->labels[0] == NULL) {
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


/* adds a row whose numbers are 0; NULL: no memory */

static ngx_http_mcp_status_row_t *
ngx_http_mcp_status_row(ngx_http_mcp_status_t *status, ngx_uint_t table)
{
    ngx_http_mcp_status_row_t  *row;

    row = ngx_array_push(&status->rows[table]);
    if (row == NULL) {
        return NULL;
    }

    ngx_memzero(row, sizeof(ngx_http_mcp_status_row_t));

    row->n = ngx_pcalloc(status->pool,
                         ngx_http_mcp_status_layout[table].ncolumns
                         * sizeof(uint64_t));

    return row->n ? row : NULL;
}


/*
 * Returns a copy of a text that is valid UTF-8 without control characters and
 * ends with a zero.  Zeros in the text, which separate the parts of a key,
 * become blanks.
 */

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
    cJSON        *root, *zone;
    size_t        len;
    ngx_buf_t    *b;
    ngx_uint_t    i, ok;
    ngx_chain_t  *cl;

    root = cJSON_CreateObject();
    zone = cJSON_AddObjectToObject(root, "zone");

    ok = cJSON_AddStringToObject(root, "version", NGX_MCP_MODULE_VERSION)
         && cJSON_AddStringToObject(zone, "name", (char *) status->name);

    for (i = 0; ok && i < ngx_http_mcp_status_tables; i++) {
        ok = ngx_http_mcp_json_table(root, &ngx_http_mcp_status_layout[i],
                                     &status->rows[i]);
    }

    text = ok ? cJSON_Print(root) : NULL;

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
ngx_http_mcp_json_table(cJSON *root, ngx_http_mcp_status_table_t *table,
    ngx_array_t *rows)
{
    cJSON                      *array, *item;
    ngx_uint_t                  i;
    ngx_http_mcp_status_row_t  *row;

    row = rows->elts;
    item = ngx_http_mcp_json_object(root, table->object);

    if (table->array == NULL) {
        return ngx_http_mcp_json_row(item, table, row);
    }

    array = cJSON_AddArrayToObject(item, table->array);
    if (array == NULL) {
        return 0;
    }

    for (i = 0; i < rows->nelts; i++) {
        item = cJSON_CreateObject();

        if (item && !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(item);
            return 0;
        }

        if (!ngx_http_mcp_json_row(item, table, &row[i])) {
            return 0;
        }
    }

    return 1;
}


/*
 * Adds the members of a row to an item, which is NULL if there was no memory.
 * Returns 0 if there is no memory.
 */

static ngx_uint_t
ngx_http_mcp_json_row(cJSON *item, ngx_http_mcp_status_table_t *table,
    ngx_http_mcp_status_row_t *row)
{
    ngx_uint_t  i, ok;

    ok = 1;

    for (i = 0; i < NGX_HTTP_MCP_STATUS_LABELS && table->labels[i]; i++) {
        ok = ok && cJSON_AddStringToObject(item, table->labels[i],
                                           (char *) row->labels[i]);
    }

    if (row->state) {
        ok = ok && cJSON_AddStringToObject(item, "state", row->state);
    }

    for (i = 0; i < table->ncolumns; i++) {
        ok = ok && ngx_http_mcp_json_number(item, &table->columns[i],
                                            row->n[i]);
    }

    return ok;
}


static ngx_uint_t
ngx_http_mcp_json_number(cJSON *item, ngx_http_mcp_status_column_t *column,
    uint64_t n)
{
    cJSON   *sum;
    double   number;

    if (column->member == NULL || n == NGX_HTTP_MCP_STATUS_NONE) {
        return 1;
    }

    item = ngx_http_mcp_json_object(item, column->object);

    if (column->kind == ngx_http_mcp_status_flag) {
        return cJSON_AddBoolToObject(item, column->member, n != 0) != NULL;
    }

    number = (double) (int64_t) n;

    if (column->sum) {
        sum = cJSON_GetObjectItemCaseSensitive(item, column->sum);

        if (sum) {
            cJSON_SetNumberValue(sum, sum->valuedouble + number);

        } else if (cJSON_AddNumberToObject(item, column->sum, number) == NULL)
        {
            return 0;
        }
    }

    return cJSON_AddNumberToObject(item, column->member, number) != NULL;
}


/* returns the object with a name in an item; if there is none, adds it */

static cJSON *
ngx_http_mcp_json_object(cJSON *item, char *name)
{
    cJSON  *object;

    if (name == NULL) {
        return item;
    }

    object = cJSON_GetObjectItemCaseSensitive(item, name);

    return object ? object : cJSON_AddObjectToObject(item, name);
}


static ngx_chain_t *
ngx_http_mcp_status_text(ngx_http_mcp_status_t *status)
{
    ngx_uint_t           i;
    ngx_http_mcp_text_t  t;

    ngx_memzero(&t, sizeof(ngx_http_mcp_text_t));

    t.pool = status->pool;
    t.last = &t.out;
    t.zone = status->name;

    ngx_http_mcp_text_puts(&t, "# HELP nginx_mcp_info Version of the module.\n"
                               "# TYPE nginx_mcp_info gauge\n"
                               "nginx_mcp_info");
    ngx_http_mcp_text_label(&t, "version", NGX_MCP_MODULE_VERSION);
    ngx_http_mcp_text_puts(&t, "} 1\n");

    for (i = 0; i < ngx_http_mcp_status_tables; i++) {
        ngx_http_mcp_text_table(&t, &ngx_http_mcp_status_layout[i],
                                &status->rows[i]);
    }

    return t.failed ? NULL : t.out;
}


/* writes a family for each name of columns, with samples of each row */

static void
ngx_http_mcp_text_table(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_table_t *table, ngx_array_t *rows)
{
    char                          *kind;
    ngx_uint_t                     i;
    ngx_http_mcp_status_row_t     *row;
    ngx_http_mcp_status_column_t  *first, *column, *last;

    row = rows->elts;
    last = table->columns + table->ncolumns;

    for (first = table->columns;
         rows->nelts && first < last;
         first = column)
    {
        column = first + 1;

        if (first->family == NULL) {
            continue;
        }

        kind = first->suffix ? "histogram"
               : ngx_strstr(first->family, "_total") ? "counter" : "gauge";

        ngx_http_mcp_text_puts(t, "# HELP nginx_mcp_");
        ngx_http_mcp_text_puts(t, first->family);
        ngx_http_mcp_text_puts(t, " ");
        ngx_http_mcp_text_puts(t, first->help);
        ngx_http_mcp_text_puts(t, "\n# TYPE nginx_mcp_");
        ngx_http_mcp_text_puts(t, first->family);
        ngx_http_mcp_text_puts(t, " ");
        ngx_http_mcp_text_puts(t, kind);
        ngx_http_mcp_text_puts(t, "\n");

        for (i = 0; i < rows->nelts; i++) {
            column = first;

            do {
                ngx_http_mcp_text_row(t, table, column, &row[i],
                                      row[i].n[column - table->columns]);
                column++;

            } while (column < last && column->family
                     && ngx_strcmp(column->family, first->family) == 0);
        }
    }
}


static void
ngx_http_mcp_text_row(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_table_t *table, ngx_http_mcp_status_column_t *column,
    ngx_http_mcp_status_row_t *row, uint64_t n)
{
    u_char      *p, buf[NGX_INT64_LEN + sizeof("} .000\n")];
    ngx_uint_t   i;

    if (n == NGX_HTTP_MCP_STATUS_NONE) {
        return;
    }

    ngx_http_mcp_text_puts(t, "nginx_mcp_");
    ngx_http_mcp_text_puts(t, column->family);
    ngx_http_mcp_text_puts(t, column->suffix ? column->suffix : "");

    t->labels = 0;

    ngx_http_mcp_text_label(t, "zone", t->zone);

    for (i = 0; i < NGX_HTTP_MCP_STATUS_LABELS && table->labels[i]; i++) {
        ngx_http_mcp_text_label(t, table->labels[i], row->labels[i]);
    }

    if (column->label) {
        ngx_http_mcp_text_label(t, column->label, column->value);
    }

    if (column->kind == ngx_http_mcp_status_time) {
        p = ngx_sprintf(buf, "} %uL.%03uL\n", n / 1000, n % 1000);

    } else {
        p = ngx_sprintf(buf, "} %L\n", (int64_t) n);
    }

    ngx_http_mcp_text_put(t, buf, p - buf);
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
