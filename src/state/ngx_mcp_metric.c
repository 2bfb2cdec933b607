
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"


static ngx_mcp_metric_sh_t *ngx_mcp_metric_find(ngx_mcp_zone_t *zone,
    ngx_mcp_metric_t *metric, ngx_uint_t method);
static u_char ngx_mcp_metric_name(u_char *dst, ngx_str_t *name, size_t max,
    uint64_t key);


#define NGX_MCP_BUCKET_LIMIT(msec, text)  msec,

static ngx_msec_t  ngx_mcp_metric_limits[] = {
    NGX_MCP_BUCKETS(NGX_MCP_BUCKET_LIMIT)
};


void
ngx_mcp_metric_add(ngx_mcp_zone_t *zone, ngx_mcp_metric_t *metric,
    ngx_uint_t method, ngx_mcp_outcome_e outcome, ngx_msec_t took)
{
    ngx_uint_t            i;
    ngx_mcp_metric_sh_t  *m;

    if (metric->rows[method] == 0) {
        m = ngx_mcp_metric_find(zone, metric, method);
        metric->rows[method] = (uint32_t) (m - zone->root->metric) + 1;
    }

    m = zone->root->metric + metric->rows[method] - 1;

    for (i = 0; i < NGX_MCP_METRIC_BUCKETS; i++) {
        if (took <= ngx_mcp_metric_limits[i]) {
            (void) ngx_atomic_fetch_add(&m->buckets[i], 1);
            break;
        }
    }

    (void) ngx_atomic_fetch_add(&m->msec, took);
    (void) ngx_atomic_fetch_add(&m->outcomes[outcome], 1);
}


static ngx_mcp_metric_sh_t *
ngx_mcp_metric_find(ngx_mcp_zone_t *zone, ngx_mcp_metric_t *metric,
    ngx_uint_t method)
{
    uint64_t              key;
    ngx_uint_t            i, n;
    ngx_mcp_metric_sh_t  *m, *all;

    all = zone->root->metric;
    n = zone->root->metrics;
    key = ngx_mcp_hash(zone, &metric->endpoint, &metric->upstream);
    m = all;

    ngx_mcp_zone_lock(zone);

    for (i = 1; i < n; i++) {
        m = &all[1 + (key + method + i) % (n - 1)];

        if (!m->used || (m->key == key && m->method == method)) {
            break;
        }
    }

    if (i == n) {
        m = all;

    } else if (!m->used) {
        ngx_mcp_journal_note(zone, m, offsetof(ngx_mcp_metric_sh_t, outcomes));

        m->key = key;
        m->method = (uint32_t) method;
        m->endpoint_len = ngx_mcp_metric_name(m->text, &metric->endpoint,
                                              NGX_MCP_METRIC_ENDPOINT, key);
        m->upstream_len = ngx_mcp_metric_name(m->text + m->endpoint_len,
                                              &metric->upstream,
                                              NGX_MCP_METRIC_UPSTREAM, key);
        m->used = 1;
    }

    ngx_mcp_zone_unlock(zone);

    return m;
}


/*
 * Copies a name to dst, and returns its length.  A name longer than max is cut,
 * and ends in a hash of the whole name.
 */

static u_char
ngx_mcp_metric_name(u_char *dst, ngx_str_t *name, size_t max, uint64_t key)
{
    u_char      *p;
    ngx_uint_t   i;

    if (name->len <= max) {
        ngx_memcpy(dst, name->data, name->len);
        return (u_char) name->len;
    }

    p = ngx_cpymem(dst, name->data, max - 9);
    *p++ = '~';

    for (i = 0; i < 8; i++) {
        *p++ = (u_char) "0123456789abcdef"[key & 0xf];
        key >>= 4;
    }

    return (u_char) max;
}


ngx_int_t
ngx_mcp_metric_info(ngx_mcp_zone_t *zone, ngx_uint_t n,
    ngx_mcp_metric_info_t *info)
{
    uint64_t              sum;
    ngx_uint_t            i;
    ngx_mcp_metric_sh_t  *m;

    if (n >= zone->root->metrics) {
        return NGX_DONE;
    }

    m = zone->root->metric + n;
    info->count = 0;

    for (i = 0; i < NGX_MCP_METRIC_OUTCOMES; i++) {
        info->outcomes[i] = m->outcomes[i];
        info->count += info->outcomes[i];
    }

    if (info->count == 0) {
        return NGX_DECLINED;
    }

    info->endpoint.data = m->text;
    info->endpoint.len = m->endpoint_len;
    info->upstream.data = m->text + m->endpoint_len;
    info->upstream.len = m->upstream_len;

    info->method = m->method;
    info->msec = m->msec;
    sum = 0;

    for (i = 0; i < NGX_MCP_METRIC_BUCKETS; i++) {
        sum += m->buckets[i];
        info->buckets[i] = ngx_min(sum, info->count);
    }

    return NGX_OK;
}
