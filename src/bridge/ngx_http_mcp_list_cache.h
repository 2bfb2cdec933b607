
/*
 * Cached lists: who has them fetched and says that they changed, and each
 * worker's copies, from which requests are answered.
 *
 * The holder of an audience's shared session at an upstream
 * (ngx_http_mcp_shared.h) fetches that upstream's part of the lists; all that
 * it has to know stands in the zone (ngx_mcp_list.h).  A copy is merged from
 * the parts.
 *
 * With "auto" nothing is fetched: what an upstream marked as public is kept as
 * it passes on its way to a client.
 */

#ifndef _NGX_HTTP_MCP_LIST_CACHE_H_INCLUDED_
#define _NGX_HTTP_MCP_LIST_CACHE_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_event.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_http_mcp_list_refresh.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_merge.h"


/* a copy of this worker; lives as long as it is used */

typedef struct {
    ngx_queue_t               queue;      /* of all, used last comes first */
    ngx_queue_t               chain;      /* in the table */
    ngx_mcp_zone_t           *zone;
    ngx_mcp_list_t            list;
    ngx_str_t                 text;       /* an array; "}}" follows it */
    ngx_mcp_merge_t          *index;      /* NULL: of one upstream, whose names
                                             stay */
    ngx_mcp_page_t           *pages;
    ngx_uint_t                npages;
    ngx_pool_t               *pool;       /* in which all of it is */
    ngx_uint_t                uses;
    ngx_uint_t                linked;
    ngx_uint_t                annotated;  /* 0: it is not known yet */
    ngx_msec_t                touched;    /* the zone knows of its use then */
} ngx_http_mcp_list_copy_t;


/* whether lists of this kind are kept */
#define ngx_http_mcp_list_cache_keeps(bridge, kind)                           \
    ((bridge)->lists == NGX_HTTP_MCP_LIST_CACHE_ON && (bridge)->router.n      \
     && (bridge)->lists_kinds & NGX_MCP_LIST_BIT(kind))

/*
 * The list of this kind for the caller's audience.
 * NGX_OK: to be released after use; NGX_AGAIN: it is being fetched for the
 * first time: wait for it, or, when that took too long, ask for what there is
 * of it (partial); NGX_DECLINED: it is not kept; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_list_cache_get(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_uint_t partial,
    ngx_http_mcp_list_copy_t **list);
void ngx_http_mcp_list_cache_release(void *list);

/* one of lists that pass: NGX_OK: likewise; NGX_DECLINED: not all of it is kept
 */
ngx_int_t ngx_http_mcp_list_cache_passed(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind,
    ngx_http_mcp_list_copy_t **list);

/*
 * What is kept of it, by itself: the part of each of the router's upstreams,
 * from pool, text.len 0: none.  NGX_OK; NGX_DECLINED: nothing is.
 */
ngx_int_t ngx_http_mcp_list_cache_parts(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_pool_t *pool,
    ngx_mcp_list_content_t *parts);

/*
 * A part that passes is kept, if its hint allows it.  forgotten: as in
 * ngx_mcp_list_keep().
 */
void ngx_http_mcp_list_cache_keep(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *upstream, ngx_uint_t kind,
    ngx_mcp_list_content_t *content, uint64_t forgotten);

/* its text for clients of the audience, from pool; data NULL: no list */
ngx_str_t ngx_http_mcp_list_cache_view(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_ref_t audience, ngx_uint_t kind, ngx_pool_t *pool);

/* whether a tool of it has arguments that headers repeat */
ngx_uint_t ngx_http_mcp_list_cache_annotated(ngx_http_mcp_list_copy_t *list);

/*
 * The index of the list of this kind for the caller's audience, by the
 * names that clients see (ngx_mcp_merge_find()); sources are numbers of the
 * router's upstreams.  NULL: none is known, or of one upstream whose names
 * stay.  Valid until control goes back to the event loop.  For callers who have
 * no lists of their own.
 */
ngx_mcp_merge_t *ngx_http_mcp_list_cache_index(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind);


/*
 * Says, once, that entries of this part were left out when a list of this kind
 * was merged; sources are as above.
 */
void ngx_http_mcp_list_log_hidden(ngx_http_mcp_bridge_t *bridge,
    ngx_uint_t kind, ngx_mcp_merge_part_t *part);


/* waits for a list that is fetched for the first time */

typedef struct {
    void                    (*ready)(void *data);
    void                     *data;

    /* private */
    ngx_http_mcp_waiter_t     waiter;
    ngx_http_mcp_bridge_t    *bridge;
    ngx_mcp_ref_t             audience;
    ngx_uint_t                kind;
} ngx_http_mcp_list_waiter_t;

/* after NGX_AGAIN; ready() is called once in a later event, unless forgotten */
void ngx_http_mcp_list_cache_wait(ngx_http_mcp_list_waiter_t *waiter,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller, ngx_uint_t kind);
void ngx_http_mcp_list_cache_cancel(ngx_http_mcp_list_waiter_t *waiter);


/*
 * In a worker that begins: gives the lists that there are the upstreams of its
 * configuration, forgets those of an endpoint that caches none any more, and
 * has those fetched that are to be there before they are asked for.
 */
void ngx_http_mcp_list_cache_start(ngx_http_mcp_bridge_t *bridge);


/* the doorbell: handlers->lists */
void ngx_http_mcp_list_cache_doorbell(ngx_mcp_zone_t *zone, uint64_t keys);


#endif /* _NGX_HTTP_MCP_LIST_CACHE_H_INCLUDED_ */
