
/*
 * "mcp_status": what a zone holds and has counted.  All is collected first
 * and then written, as JSON or as Prometheus text.  The zone's lock is held
 * for one audience or lease at a time.
 */

#ifndef _NGX_HTTP_MCP_STATUS_H_INCLUDED_
#define _NGX_HTTP_MCP_STATUS_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_mcp_lease.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_metric.h"


/* more leases are only counted */
#define NGX_HTTP_MCP_STATUS_LEASES  256


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

/* the counters of ngx_mcp_counter.h, in their order */
extern ngx_http_mcp_number_t  ngx_http_mcp_status_counters[];

#define ngx_http_mcp_status_same(a, b)                                        \
    (ngx_strcmp((a)->group, (b)->group) == 0                                  \
     && ngx_strcmp((a)->family, (b)->family) == 0)


/*
 * What follows has text that is valid UTF-8 without control characters and
 * ends with a zero.
 */

typedef struct {
    u_char                     *endpoint;
    u_char                     *upstream;     /* NULL: of all that had no
                                                 room of their own */
    u_char                     *method;
    ngx_mcp_metric_info_t       info;
} ngx_http_mcp_status_metric_t;


/* the lists of one kind of an endpoint's audiences */

typedef struct {
    u_char                     *endpoint;
    char                       *list;
    ngx_uint_t                  kept;
    ngx_uint_t                  entries;
    size_t                      size;
    ngx_msec_t                  age;          /* of the oldest */
    ngx_uint_t                  failing;
} ngx_http_mcp_status_list_t;


typedef struct {
    u_char                     *key;
    ngx_uint_t                  silent;       /* for too long */
    ngx_mcp_lease_info_t        info;
} ngx_http_mcp_status_lease_t;


typedef struct {
    ngx_pool_t                 *pool;
    u_char                     *name;
    size_t                      size;
    ngx_mcp_zone_use_t          use;
    int64_t                     counters[NGX_MCP_COUNTER_MAX];
    ngx_array_t                 metrics;
    ngx_array_t                 lists;
    ngx_array_t                 leases;
    ngx_uint_t                  nleases;
    ngx_uint_t                  held;
} ngx_http_mcp_status_t;


/* of the location's conf->status zone */
ngx_int_t ngx_http_mcp_status_handler(ngx_http_request_t *r);

/* the response in buffers of the pool, or NULL */
ngx_chain_t *ngx_http_mcp_status_json(ngx_http_mcp_status_t *status);
ngx_chain_t *ngx_http_mcp_status_text(ngx_http_mcp_status_t *status);

/* of the family that starts with this counter; -1: it does not */
int64_t ngx_http_mcp_status_sum(ngx_http_mcp_status_t *status, ngx_uint_t i);


/* how the zone's blocks are used: name, bytes */
extern char  *ngx_http_mcp_status_uses[];

/* how exchanges end */
extern char  *ngx_http_mcp_status_outcomes[];


#endif /* _NGX_HTTP_MCP_STATUS_H_INCLUDED_ */
