
#include "ngx_http_mcp_edge.h"
#include "ngx_http_mcp_status.h"
#include "ngx_http_mcp_output.h"


static ngx_uint_t ngx_http_mcp_status_prometheus(ngx_http_request_t *r);
static ngx_int_t ngx_http_mcp_status_collect(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence);
static ngx_int_t ngx_http_mcp_status_metrics(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone);
static ngx_int_t ngx_http_mcp_status_lists(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone);
static ngx_http_mcp_status_list_t *ngx_http_mcp_status_list(
    ngx_http_mcp_status_t *status, ngx_str_t *endpoint);
static ngx_int_t ngx_http_mcp_status_leases(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence);
static u_char *ngx_http_mcp_status_clean(ngx_pool_t *pool, ngx_str_t *text);


#define NGX_HTTP_MCP_NUMBER(name, group, family, label, value, member, kind)  \
    { group, family, label, value, member, kind },

ngx_http_mcp_number_t  ngx_http_mcp_status_counters[] = {
    NGX_MCP_COUNTERS(NGX_HTTP_MCP_NUMBER)
    { NULL, NULL, NULL, NULL, NULL, NULL }
};


#define NGX_HTTP_MCP_TEXT(name, text)  text,

char  *ngx_http_mcp_status_uses[] = {
    NGX_MCP_USES(NGX_HTTP_MCP_TEXT)
    NULL
};

char  *ngx_http_mcp_status_outcomes[] = {
    NGX_MCP_OUTCOMES(NGX_HTTP_MCP_TEXT)
    NULL
};


static char  *ngx_http_mcp_status_kinds[NGX_MCP_LIST_KINDS] = {
    "tools", "prompts", "resources", "resources/templates"
};


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


static ngx_int_t
ngx_http_mcp_status_collect(ngx_http_mcp_status_t *status,
    ngx_mcp_zone_t *zone, ngx_msec_t silence)
{
    ngx_uint_t  i;

    if (ngx_array_init(&status->metrics, status->pool, 16,
                       sizeof(ngx_http_mcp_status_metric_t))
        != NGX_OK
        || ngx_array_init(&status->lists, status->pool, NGX_MCP_LIST_KINDS,
                          sizeof(ngx_http_mcp_status_list_t))
           != NGX_OK
        || ngx_array_init(&status->leases, status->pool, 4,
                          sizeof(ngx_http_mcp_status_lease_t))
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
        || ngx_http_mcp_status_lists(status, zone) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_status_leases(status, zone, silence);
}


int64_t
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


static ngx_int_t
ngx_http_mcp_status_lists(ngx_http_mcp_status_t *status, ngx_mcp_zone_t *zone)
{
    uint64_t                     number;
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_mcp_ref_t                ref;
    ngx_mcp_audience_t           audience;
    ngx_mcp_list_info_t          info;
    ngx_http_mcp_status_list_t  *list;

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

            list[i].failing += (info.failures != 0);

            if (info.filled) {
                list[i].kept++;
                list[i].entries += info.entries;
                list[i].size += info.size;
                list[i].age = ngx_max(list[i].age, info.age);
            }
        }
    }
}


/* the first of those of an endpoint */

static ngx_http_mcp_status_list_t *
ngx_http_mcp_status_list(ngx_http_mcp_status_t *status, ngx_str_t *endpoint)
{
    u_char                      *name;
    ngx_uint_t                   i;
    ngx_http_mcp_status_list_t  *list;

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

    ngx_memzero(list, NGX_MCP_LIST_KINDS * sizeof(ngx_http_mcp_status_list_t));

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
    ngx_int_t                     rc;
    ngx_mcp_lease_info_t          info;
    ngx_http_mcp_status_lease_t  *lease;

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

        lease->info = info;
        lease->silent = (silence && info.silent > silence);
        lease->key = ngx_http_mcp_status_clean(status->pool, &info.key);

        if (lease->key == NULL) {
            return NGX_ERROR;
        }
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
