
#include "ngx_http_mcp_status.h"
#include <cjson/cJSON.h>


typedef struct {
    char          *group;
    char          *family;
    char          *label;
    char          *value;
    char          *member;
    char          *kind;                      /* "g" or "c" */
    char          *help;
} ngx_http_mcp_metric_t;


static ngx_uint_t ngx_http_mcp_status_prometheus(ngx_http_request_t *r);
static ngx_str_t ngx_http_mcp_status_json(ngx_http_request_t *r,
    ngx_mcp_zone_t *zone);
static ngx_str_t ngx_http_mcp_status_text(ngx_http_request_t *r,
    ngx_mcp_zone_t *zone);
static u_char *ngx_http_mcp_status_metric(u_char *p,
    ngx_http_mcp_metric_t *metric, ngx_str_t *label, int64_t value,
    ngx_uint_t first);
static int64_t ngx_http_mcp_status_sum(ngx_mcp_zone_t *zone, ngx_uint_t i);
static ngx_uint_t ngx_http_mcp_status_family(ngx_http_mcp_metric_t *a,
    ngx_http_mcp_metric_t *b);
static ngx_int_t ngx_http_mcp_status_label(ngx_http_request_t *r,
    ngx_mcp_zone_t *zone, ngx_str_t *label);
static void ngx_http_mcp_status_values(ngx_mcp_zone_t *zone,
    ngx_mcp_zone_use_t *use, int64_t *values);


#define NGX_HTTP_MCP_METRIC(name, group, family, label, value, member, kind)  \
    { group, family, label, value, member, kind,                              \
      "MCP " group ": " family "." },

static ngx_http_mcp_metric_t  ngx_http_mcp_counters[] = {
    NGX_MCP_COUNTERS(NGX_HTTP_MCP_METRIC)
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL }
};


/* use of the zone: member, value, kind, help */

#define NGX_HTTP_MCP_STATUS_ZONE(_)                                           \
    _("size_bytes", size, "g", "Size of the shared zone in bytes.")           \
    _("blocks", use->blocks, "g", "Blocks in the zone.")                       \
    _("blocks_free", use->free, "g", "Blocks that are free.")                  \
    _("blocks_events", use->events, "g", "Blocks that hold events.")           \
    _("blocks_windows", use->windows, "g", "Blocks that wait to be sent.")     \
    _("blocks_sessions", use->sessions, "g", "Blocks that hold sessions.")     \
    _("block_size_bytes", use->block_size, "g", "Size of a block in bytes.")   \
    _("recoveries", use->recoveries, "c", "Repairs after a worker died.")

#define NGX_HTTP_MCP_ZONE_METRIC(member, value, kind, help)                   \
    { "zone", member, "", "", member, kind, help },

#define NGX_HTTP_MCP_ZONE_VALUE(member, value, kind, help)                    \
    *values++ = (int64_t) value;

static ngx_http_mcp_metric_t  ngx_http_mcp_zone_metrics[] = {
    NGX_HTTP_MCP_STATUS_ZONE(NGX_HTTP_MCP_ZONE_METRIC)
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL }
};

#define NGX_HTTP_MCP_ZONE_METRICS                                             \
    (sizeof(ngx_http_mcp_zone_metrics) / sizeof(ngx_http_mcp_metric_t) - 1)


ngx_int_t
ngx_http_mcp_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_str_t                 text;
    ngx_buf_t                *b;
    ngx_uint_t                prometheus;
    ngx_chain_t               out;
    ngx_table_elt_t          *h;
    ngx_http_mcp_loc_conf_t  *mlcf;

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

    text = prometheus ? ngx_http_mcp_status_text(r, mlcf->status)
                      : ngx_http_mcp_status_json(r, mlcf->status);

    if (text.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = text.len;

    if (prometheus) {
        ngx_str_set(&r->headers_out.content_type,
                    "text/plain; version=0.0.4; charset=utf-8");
    } else {
        ngx_str_set(&r->headers_out.content_type, "application/json");
    }

    r->headers_out.content_type_len = r->headers_out.content_type.len;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = text.data;
    b->last = text.data + text.len;
    b->memory = 1;
    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static ngx_uint_t
ngx_http_mcp_status_prometheus(ngx_http_request_t *r)
{
    ngx_str_t         format;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    if (ngx_http_arg(r, (u_char *) "format", sizeof("format") - 1, &format)
        == NGX_OK)
    {
        return format.len == sizeof("prometheus") - 1
               && ngx_strncmp(format.data, "prometheus", format.len) == 0;
    }

    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return 0;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len != sizeof("Accept") - 1
            || ngx_strncasecmp(h[i].key.data, (u_char *) "Accept",
                               sizeof("Accept") - 1)
               != 0)
        {
            continue;
        }

        if (ngx_strlcasestrn(h[i].value.data, h[i].value.data + h[i].value.len,
                             (u_char *) "application/json",
                             sizeof("application/json") - 2)
            == NULL
            && ngx_strlcasestrn(h[i].value.data,
                                h[i].value.data + h[i].value.len,
                                (u_char *) "text/plain",
                                sizeof("text/plain") - 2))
        {
            return 1;
        }
    }
}


static ngx_str_t
ngx_http_mcp_status_json(ngx_http_request_t *r, ngx_mcp_zone_t *zone)
{
    char                   *text;
    cJSON                  *root, *group;
    int64_t                 sum, values[NGX_HTTP_MCP_ZONE_METRICS];
    ngx_str_t               out, name;
    ngx_uint_t              i, ok;
    ngx_mcp_zone_use_t      use;
    ngx_http_mcp_metric_t  *m;

    ngx_str_null(&out);

    name.len = zone->name.len;
    name.data = ngx_pnalloc(r->pool, name.len + 1);
    root = cJSON_CreateObject();

    if (name.data == NULL || root == NULL) {
        cJSON_Delete(root);
        return out;
    }

    (void) ngx_cpystrn(name.data, zone->name.data, name.len + 1);

    ngx_http_mcp_status_values(zone, &use, values);

    ok = cJSON_AddStringToObject(root, "version", NGX_MCP_MODULE_VERSION)
         != NULL;

    group = cJSON_AddObjectToObject(root, "zone");

    ok = ok && group
         && cJSON_AddStringToObject(group, "name", (char *) name.data);

    for (i = 0; ok && i < NGX_HTTP_MCP_ZONE_METRICS; i++) {
        ok = cJSON_AddNumberToObject(group, ngx_http_mcp_zone_metrics[i].member,
                                     (double) values[i])
             != NULL;
    }

    for (i = 0; ok && i < NGX_MCP_COUNTER_MAX; i++) {
        m = &ngx_http_mcp_counters[i];

        group = cJSON_GetObjectItemCaseSensitive(root, m->group);

        if (group == NULL) {
            group = cJSON_AddObjectToObject(root, m->group);
        }

        sum = ngx_http_mcp_status_sum(zone, i);

        if (sum != -1) {
            ok = group
                 && cJSON_AddNumberToObject(group, m->family, (double) sum);
        }

        if (m->label[0]) {
            ok = ok && group
                 && cJSON_AddNumberToObject(group, m->member,
                                            (double) ngx_mcp_counter(zone, i));
        }
    }

    ok = ok && cJSON_AddNumberToObject(root, "workers",
                                       (double) use.workers);

    text = ok ? cJSON_Print(root) : NULL;

    cJSON_Delete(root);

    if (text == NULL) {
        return out;
    }

    out.len = ngx_strlen(text) + 1;
    out.data = ngx_pnalloc(r->pool, out.len);

    if (out.data) {
        *ngx_cpymem(out.data, text, out.len - 1) = LF;
    }

    cJSON_free(text);

    return out;
}


static ngx_str_t
ngx_http_mcp_status_text(ngx_http_request_t *r, ngx_mcp_zone_t *zone)
{
    u_char                 *p;
    size_t                  len;
    int64_t                 values[NGX_HTTP_MCP_ZONE_METRICS];
    ngx_str_t               out, label;
    ngx_uint_t              i;
    ngx_mcp_zone_use_t      use;
    ngx_http_mcp_metric_t  *m;

    ngx_str_null(&out);

    if (ngx_http_mcp_status_label(r, zone, &label) != NGX_OK) {
        return out;
    }

    ngx_http_mcp_status_values(zone, &use, values);

    len = 0;

    for (m = ngx_http_mcp_counters; m->group; m++) {
        len += 3 * (ngx_strlen(m->group) + ngx_strlen(m->family))
               + ngx_strlen(m->label) + ngx_strlen(m->value)
               + ngx_strlen(m->help);
    }

    for (m = ngx_http_mcp_zone_metrics; m->group; m++) {
        len += 3 * (ngx_strlen(m->group) + ngx_strlen(m->family))
               + ngx_strlen(m->label) + ngx_strlen(m->value)
               + ngx_strlen(m->help);
    }

    len += (NGX_MCP_COUNTER_MAX + NGX_HTTP_MCP_ZONE_METRICS)
           * (sizeof("# HELP nginx_mcp___total \n"
                     "# TYPE nginx_mcp___total counter\n"
                     "nginx_mcp___total{zone=\"\",=\"\"} \n")
              + label.len + NGX_INT64_LEN);

    len += sizeof("# HELP nginx_mcp_info Version of the module.\n"
                  "# TYPE nginx_mcp_info gauge\n"
                  "nginx_mcp_info{version=\"" NGX_MCP_MODULE_VERSION "\"} 1\n"
                  "# HELP nginx_mcp_workers Workers that use the zone.\n"
                  "# TYPE nginx_mcp_workers gauge\n"
                  "nginx_mcp_workers{zone=\"\"} \n")
           + label.len + NGX_INT64_LEN;

    out.data = ngx_pnalloc(r->pool, len);
    if (out.data == NULL) {
        return out;
    }

    p = ngx_sprintf(out.data, "# HELP nginx_mcp_info Version of the module.\n"
                    "# TYPE nginx_mcp_info gauge\n"
                    "nginx_mcp_info{version=\"" NGX_MCP_MODULE_VERSION
                    "\"} 1\n");

    p = ngx_sprintf(p, "# HELP nginx_mcp_workers Workers that use the zone.\n"
                    "# TYPE nginx_mcp_workers gauge\n"
                    "nginx_mcp_workers{zone=\"%V\"} %ui\n",
                    &label, use.workers);

    for (i = 0; i < NGX_HTTP_MCP_ZONE_METRICS; i++) {
        p = ngx_http_mcp_status_metric(p, &ngx_http_mcp_zone_metrics[i],
                                       &label, values[i], 1);
    }

    for (i = 0; i < NGX_MCP_COUNTER_MAX; i++) {
        m = &ngx_http_mcp_counters[i];

        p = ngx_http_mcp_status_metric(p, m, &label, ngx_mcp_counter(zone, i),
                                       i == 0
                                       || !ngx_http_mcp_status_family(m - 1,
                                                                      m));
    }

    out.len = p - out.data;

    return out;
}


static u_char *
ngx_http_mcp_status_metric(u_char *p, ngx_http_mcp_metric_t *metric,
    ngx_str_t *label, int64_t value, ngx_uint_t first)
{
    char  *kind, *total;

    if (metric->kind[0] == 'c') {
        kind = "counter";
        total = "_total";

    } else {
        kind = "gauge";
        total = "";
    }

    if (first) {
        p = ngx_sprintf(p, "# HELP nginx_mcp_%s_%s%s %s\n", metric->group,
                        metric->family, total, metric->help);
        p = ngx_sprintf(p, "# TYPE nginx_mcp_%s_%s%s %s\n", metric->group,
                        metric->family, total, kind);
    }

    p = ngx_sprintf(p, "nginx_mcp_%s_%s%s{zone=\"%V\"", metric->group,
                    metric->family, total, label);

    if (metric->label[0]) {
        p = ngx_sprintf(p, ",%s=\"%s\"", metric->label, metric->value);
    }

    return ngx_sprintf(p, "} %L\n", value);
}


/* of the family that starts with this counter; -1: it does not */

static int64_t
ngx_http_mcp_status_sum(ngx_mcp_zone_t *zone, ngx_uint_t i)
{
    int64_t                 sum;
    ngx_http_mcp_metric_t  *m;

    m = &ngx_http_mcp_counters[i];

    if (i && ngx_http_mcp_status_family(m - 1, m)) {
        return -1;
    }

    sum = ngx_mcp_counter(zone, i);

    while (++i < NGX_MCP_COUNTER_MAX
           && ngx_http_mcp_status_family(m, &ngx_http_mcp_counters[i]))
    {
        sum += ngx_mcp_counter(zone, i);
    }

    return sum;
}


static ngx_uint_t
ngx_http_mcp_status_family(ngx_http_mcp_metric_t *a, ngx_http_mcp_metric_t *b)
{
    return ngx_strcmp(a->group, b->group) == 0
           && ngx_strcmp(a->family, b->family) == 0;
}


static ngx_int_t
ngx_http_mcp_status_label(ngx_http_request_t *r, ngx_mcp_zone_t *zone,
    ngx_str_t *label)
{
    u_char  *p;
    size_t   i;

    p = ngx_pnalloc(r->pool, zone->name.len * 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    label->data = p;

    for (i = 0; i < zone->name.len; i++) {

        if (zone->name.data[i] == '"' || zone->name.data[i] == '\\') {
            *p++ = '\\';
        }

        *p++ = zone->name.data[i];
    }

    label->len = p - label->data;

    return NGX_OK;
}


static void
ngx_http_mcp_status_values(ngx_mcp_zone_t *zone, ngx_mcp_zone_use_t *use,
    int64_t *values)
{
    size_t  size;

    ngx_mcp_zone_use(zone, use);

    size = zone->shpool->end - (u_char *) zone->shpool;

    NGX_HTTP_MCP_STATUS_ZONE(NGX_HTTP_MCP_ZONE_VALUE)
}
