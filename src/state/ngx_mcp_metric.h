
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Metrics of exchanges: their outcomes and times, by endpoint, upstream and
 * method.  The table in the zone has a row for each such combination.
 * A process finds or makes a row under the lock once, and counts atomically
 * afterwards; a row stays.  Exchanges for which the table has no room are
 * counted in the first row, which has no names.
 */

#ifndef _NGX_MCP_METRIC_H_INCLUDED_
#define _NGX_MCP_METRIC_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_message.h"


/* rows of a zone, at most; a zone has one row for so many of its bytes */
#define NGX_MCP_METRICS          256
#define NGX_MCP_METRIC_SHARE     16384

/* most bytes of both names together, and of each; longer names are cut */
#define NGX_MCP_METRIC_TEXT      166
#define NGX_MCP_METRIC_ENDPOINT  110
#define NGX_MCP_METRIC_UPSTREAM  56


/* methods of exchanges beside those of ngx_mcp_message.h */

#define NGX_MCP_METRIC_GET       NGX_MCP_METHOD_MAX
#define NGX_MCP_METRIC_DELETE    (NGX_MCP_METHOD_MAX + 1)
#define NGX_MCP_METRIC_METHODS   (NGX_MCP_METHOD_MAX + 2)


/* upper ends of the buckets in ms, and as text in s */

#define NGX_MCP_BUCKETS(_)                                                    \
    _(5, "0.005")                                                             \
    _(10, "0.010")                                                            \
    _(25, "0.025")                                                            \
    _(50, "0.050")                                                            \
    _(100, "0.100")                                                           \
    _(250, "0.250")                                                           \
    _(500, "0.500")                                                           \
    _(1000, "1.000")                                                          \
    _(2500, "2.500")                                                          \
    _(5000, "5.000")                                                          \
    _(10000, "10.000")                                                        \
    _(30000, "30.000")                                                        \
    _(60000, "60.000")

#define NGX_MCP_BUCKET_ENUM(msec, text)  NGX_MCP_BUCKET_ ## msec,

enum {
    NGX_MCP_BUCKETS(NGX_MCP_BUCKET_ENUM)
    NGX_MCP_METRIC_BUCKETS
};


#define NGX_MCP_OUTCOMES(_)                                                   \
    _(OK, "ok")                                                               \
    _(REFUSED, "refused")                                                     \
    _(UNREACHABLE, "unreachable")                                             \
    _(TIMEOUT, "timeout")                                                     \
    _(BAD, "bad")                                                             \
    _(ABORTED, "aborted")

#define NGX_MCP_OUTCOME_ENUM(name, text)  NGX_MCP_OUTCOME_ ## name,

typedef enum {
    NGX_MCP_OUTCOMES(NGX_MCP_OUTCOME_ENUM)
    NGX_MCP_METRIC_OUTCOMES
} ngx_mcp_outcome_e;


/* the rows of one upstream of one endpoint, as this process found them */

typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               upstream;
    uint32_t                rows[NGX_MCP_METRIC_METHODS];  /* row + 1, or 0 */
} ngx_mcp_metric_t;

/* counts an exchange that took this many ms */
void ngx_mcp_metric_add(ngx_mcp_zone_t *zone, ngx_mcp_metric_t *metric,
    ngx_uint_t method, ngx_mcp_outcome_e outcome, ngx_msec_t took);


/* a row, for mcp_status */

typedef struct {
    ngx_str_t               endpoint;     /* both names are in the zone */
    ngx_str_t               upstream;
    ngx_uint_t              method;
    uint64_t                outcomes[NGX_MCP_METRIC_OUTCOMES];
    uint64_t                buckets[NGX_MCP_METRIC_BUCKETS];  /* cumulative */
    uint64_t                count;        /* sum of the outcomes */
    uint64_t                msec;         /* sum of the times */
} ngx_mcp_metric_info_t;

/*
 * Reads the n-th row.  NGX_OK; NGX_DECLINED: the row is not in use; NGX_DONE: n
 * is past the last row.
 */
ngx_int_t ngx_mcp_metric_info(ngx_mcp_zone_t *zone, ngx_uint_t n,
    ngx_mcp_metric_info_t *info);


#endif /* _NGX_MCP_METRIC_H_INCLUDED_ */
