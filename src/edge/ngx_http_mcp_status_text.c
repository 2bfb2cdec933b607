
#include "ngx_http_mcp_status.h"


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


static void ngx_http_mcp_text_zone(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_counters(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_exchanges(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_lists(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
static void ngx_http_mcp_text_leases(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status);
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


#define ngx_http_mcp_text_puts(t, s)                                          \
    ngx_http_mcp_text_put(t, s, ngx_strlen(s))


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
    { "calls_started", "Requests of clients started." },
    { "calls_refused", "Requests refused over mcp_call_limit." },
    { "calls_cancelled", "Requests cancelled by their client." },
    { "calls_lost", "Requests lost because their worker died." },
    { "calls_abandoned", "Requests cancelled after their client left." },
    { "exchanges_started", "Messages sent to upstreams." },
    { "exchanges_ended", "Exchanges with upstreams ended, by outcome." },
    { NULL, NULL }
};


ngx_chain_t *
ngx_http_mcp_status_text(ngx_http_mcp_status_t *status)
{
    ngx_http_mcp_text_t  t;

    ngx_memzero(&t, sizeof(ngx_http_mcp_text_t));

    t.pool = status->pool;
    t.last = &t.out;

    ngx_http_mcp_text_family(&t, "info", "gauge", "Version of the module.");
    ngx_http_mcp_text_sample(&t, "info");
    ngx_http_mcp_text_label(&t, "version", NGX_MCP_MODULE_VERSION);
    ngx_http_mcp_text_number(&t, 1);

    t.zone = status->name;

    ngx_http_mcp_text_family(&t, "workers", "gauge",
                             "Workers that use the zone, also exiting ones.");
    ngx_http_mcp_text_sample(&t, "workers");
    ngx_http_mcp_text_number(&t, (int64_t) status->use.workers);

    ngx_http_mcp_text_zone(&t, status);
    ngx_http_mcp_text_counters(&t, status);
    ngx_http_mcp_text_exchanges(&t, status);
    ngx_http_mcp_text_lists(&t, status);
    ngx_http_mcp_text_leases(&t, status);

    return t.failed ? NULL : t.out;
}


static void
ngx_http_mcp_text_zone(ngx_http_mcp_text_t *t, ngx_http_mcp_status_t *status)
{
    ngx_uint_t           i;
    ngx_mcp_zone_use_t  *use;

    use = &status->use;

    ngx_http_mcp_text_family(t, "zone_size_bytes", "gauge",
                             "Size of the zone in bytes.");
    ngx_http_mcp_text_sample(t, "zone_size_bytes");
    ngx_http_mcp_text_number(t, (int64_t) status->size);

    ngx_http_mcp_text_family(t, "zone_blocks", "gauge",
                             "Number of blocks in the zone.");
    ngx_http_mcp_text_sample(t, "zone_blocks");
    ngx_http_mcp_text_number(t, (int64_t) use->blocks);

    ngx_http_mcp_text_family(t, "zone_blocks_free", "gauge",
                             "Number of free blocks in the zone.");
    ngx_http_mcp_text_sample(t, "zone_blocks_free");
    ngx_http_mcp_text_number(t, (int64_t) use->used[NGX_MCP_USE_FREE]);

    ngx_http_mcp_text_family(t, "zone_bytes", "gauge",
                             "Bytes of the zone's blocks, by use.");

    for (i = 0; i < NGX_MCP_USE_MAX; i++) {
        ngx_http_mcp_text_sample(t, "zone_bytes");
        ngx_http_mcp_text_label(t, "use", ngx_http_mcp_status_uses[i]);
        ngx_http_mcp_text_number(t, (int64_t) (use->used[i]
                                               * use->block_size));
    }

    ngx_http_mcp_text_family(t, "zone_recoveries_total", "counter",
                             "Repairs of the zone after a worker died.");
    ngx_http_mcp_text_sample(t, "zone_recoveries_total");
    ngx_http_mcp_text_number(t, (int64_t) use->recoveries);
}


static void
ngx_http_mcp_text_counters(ngx_http_mcp_text_t *t,
    ngx_http_mcp_status_t *status)
{
    char                    name[64];
    u_char                 *p;
    ngx_uint_t              i, j, counter;
    ngx_http_mcp_number_t  *n;

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        n = &ngx_http_mcp_status_counters[i];
        counter = (n->kind[0] == 'c');

        p = ngx_snprintf((u_char *) name, sizeof(name) - 1, "%s_%s",
                         n->group, n->family);
        *p = '\0';

        if (i == 0 || !ngx_http_mcp_status_same(n - 1, n)) {

            for (j = 0; ngx_http_mcp_text_helps[j].name; j++) {
                if (ngx_strcmp(ngx_http_mcp_text_helps[j].name, name) == 0) {
                    break;
                }
            }

            *ngx_snprintf(p, sizeof(name) - 1 - (p - (u_char *) name), "%s",
                          counter ? "_total" : "") = '\0';

            ngx_http_mcp_text_family(t, name, counter ? "counter" : "gauge",
                                     ngx_http_mcp_text_helps[j].help
                                     ? ngx_http_mcp_text_helps[j].help
                                     : n->family);

        } else {
            *ngx_snprintf(p, sizeof(name) - 1 - (p - (u_char *) name), "%s",
                          counter ? "_total" : "") = '\0';
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

    ngx_http_mcp_text_family(t, "exchanges_total", "counter",
                             "Exchanges with upstreams ended, by method and "
                             "outcome.");

    for (i = 0; i < status->metrics.nelts; i++) {
        for (j = 0; j < NGX_MCP_METRIC_OUTCOMES; j++) {
            ngx_http_mcp_text_sample(t, "exchanges_total");
            ngx_http_mcp_text_label(t, "endpoint", m[i].endpoint);
            ngx_http_mcp_text_label(t, "upstream", m[i].upstream);
            ngx_http_mcp_text_label(t, "method", m[i].method);
            ngx_http_mcp_text_label(t, "outcome",
                                    ngx_http_mcp_status_outcomes[j]);
            ngx_http_mcp_text_number(t, (int64_t) m[i].info.outcomes[j]);
        }
    }

    ngx_http_mcp_text_family(t, "exchange_duration_seconds", "histogram",
                             "Duration of exchanges with upstreams.");

    for (i = 0; i < status->metrics.nelts; i++) {

        for (j = 0; j <= NGX_MCP_METRIC_BUCKETS; j++) {
            ngx_http_mcp_text_sample(t, "exchange_duration_seconds_bucket");
            ngx_http_mcp_text_label(t, "endpoint", m[i].endpoint);
            ngx_http_mcp_text_label(t, "upstream", m[i].upstream);
            ngx_http_mcp_text_label(t, "method", m[i].method);

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

        ngx_http_mcp_text_sample(t, "exchange_duration_seconds_sum");
        ngx_http_mcp_text_label(t, "endpoint", m[i].endpoint);
        ngx_http_mcp_text_label(t, "upstream", m[i].upstream);
        ngx_http_mcp_text_label(t, "method", m[i].method);
        ngx_http_mcp_text_seconds(t, m[i].info.msec);

        ngx_http_mcp_text_sample(t, "exchange_duration_seconds_count");
        ngx_http_mcp_text_label(t, "endpoint", m[i].endpoint);
        ngx_http_mcp_text_label(t, "upstream", m[i].upstream);
        ngx_http_mcp_text_label(t, "method", m[i].method);
        ngx_http_mcp_text_number(t, (int64_t) m[i].info.count);
    }
}


static void
ngx_http_mcp_text_lists(ngx_http_mcp_text_t *t, ngx_http_mcp_status_t *status)
{
    ngx_uint_t                   i, j;
    ngx_http_mcp_status_list_t  *list;

    static struct {
        char                    *name;
        char                    *help;
    } families[] = {
        { "lists_kept", "Audiences with a cached list." },
        { "lists_failing", "Audiences whose list cannot be fetched now." },
        { "lists_entries", "Entries of the cached lists." },
        { "lists_bytes", "Size of the cached lists in bytes." },
        { "lists_age_seconds", "Age of the oldest cached list." }
    };

    list = status->lists.elts;

    if (status->lists.nelts == 0) {
        return;
    }

    for (j = 0; j < sizeof(families) / sizeof(families[0]); j++) {

        ngx_http_mcp_text_family(t, families[j].name, "gauge",
                                 families[j].help);

        for (i = 0; i < status->lists.nelts; i++) {
            ngx_http_mcp_text_sample(t, families[j].name);
            ngx_http_mcp_text_label(t, "endpoint", list[i].endpoint);
            ngx_http_mcp_text_label(t, "list", list[i].list);

            switch (j) {

            case 0:
                ngx_http_mcp_text_number(t, (int64_t) list[i].kept);
                break;

            case 1:
                ngx_http_mcp_text_number(t, (int64_t) list[i].failing);
                break;

            case 2:
                ngx_http_mcp_text_number(t, (int64_t) list[i].entries);
                break;

            case 3:
                ngx_http_mcp_text_number(t, (int64_t) list[i].size);
                break;

            default:
                ngx_http_mcp_text_seconds(t, list[i].age);
                break;
            }
        }
    }
}


static void
ngx_http_mcp_text_leases(ngx_http_mcp_text_t *t, ngx_http_mcp_status_t *status)
{
    ngx_uint_t                    i, j;
    ngx_http_mcp_status_lease_t  *lease;

    static struct {
        char                     *name;
        char                     *kind;
        char                     *help;
    } families[] = {
        { "lease_held", "gauge", "Whether a worker holds the lease." },
        { "lease_age_seconds", "gauge", "Time since the worker took the "
                                        "lease." },
        { "lease_silence_seconds", "gauge",
          "Time since the last data of the lease arrived." },
        { "lease_silent", "gauge",
          "Whether no data arrived for three heartbeats." },
        { "lease_taken_total", "counter", "Events read under the lease." }
    };

    ngx_http_mcp_text_family(t, "leases", "gauge",
                             "Leases (feeds, shared upstream sessions, "
                             "fetches of lists), by state.");

    ngx_http_mcp_text_sample(t, "leases");
    ngx_http_mcp_text_label(t, "state", "held");
    ngx_http_mcp_text_number(t, (int64_t) status->held);

    ngx_http_mcp_text_sample(t, "leases");
    ngx_http_mcp_text_label(t, "state", "free");
    ngx_http_mcp_text_number(t, (int64_t) (status->nleases - status->held));

    lease = status->leases.elts;

    if (status->leases.nelts == 0) {
        return;
    }

    for (j = 0; j < sizeof(families) / sizeof(families[0]); j++) {

        ngx_http_mcp_text_family(t, families[j].name, families[j].kind,
                                 families[j].help);

        for (i = 0; i < status->leases.nelts; i++) {
            ngx_http_mcp_text_sample(t, families[j].name);
            ngx_http_mcp_text_label(t, "key", lease[i].key);

            switch (j) {

            case 0:
                ngx_http_mcp_text_number(t, lease[i].info.holder ? 1 : 0);
                break;

            case 1:
                ngx_http_mcp_text_seconds(t, lease[i].info.held);
                break;

            case 2:
                ngx_http_mcp_text_seconds(t, lease[i].info.silent);
                break;

            case 3:
                ngx_http_mcp_text_number(t, (int64_t) lease[i].silent);
                break;

            default:
                ngx_http_mcp_text_number(t, (int64_t) lease[i].info.consumed);
                break;
            }
        }
    }
}


static void
ngx_http_mcp_text_family(ngx_http_mcp_text_t *t, const char *name,
    const char *kind, const char *help)
{
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
