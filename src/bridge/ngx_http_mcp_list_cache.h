
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Cached lists.  The zone (ngx_mcp_list.h) has a list in parts, one of each
 * upstream.  Each worker answers requests from its own copies, which it merges
 * from the parts.
 *
 * With "on", the worker that holds an audience's shared upstream session
 * (ngx_http_mcp_shared.h) fetches that upstream's parts into the zone.
 *
 * With "auto" nothing is fetched: when an upstream answers a list request of a
 * client, and marks the result as public, the result is stored as a part.
 */

#ifndef _NGX_HTTP_MCP_LIST_CACHE_H_INCLUDED_
#define _NGX_HTTP_MCP_LIST_CACHE_H_INCLUDED_


#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_event.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_merge.h"


/* a copy of a list in this worker, kept as long as it is used */

typedef struct {
    ngx_queue_t               queue;      /* link in the queue of all copies of
                                             the worker, the last used one first
                                             */
    ngx_queue_t               chain;      /* link in a bucket of the hash table
                                             */
    ngx_mcp_zone_t           *zone;
    ngx_mcp_list_t            list;       /* the version of the list in the zone
                                             that was copied */
    ngx_str_t                 text;       /* raw array of the entries */
    ngx_mcp_merge_t          *index;      /* finds an entry's upstream by its
                                             name; NULL: there is one upstream,
                                             whose names stay as they are */
    ngx_mcp_page_t           *pages;
    ngx_uint_t                npages;
    ngx_pool_t               *pool;       /* memory of the copy and its texts */
    ngx_uint_t                uses;       /* callers that have not released the
                                             copy */
    ngx_uint_t                linked;     /* the copy is in "queue" and "chain";
                                             0: its last user frees it */
    ngx_uint_t                annotated;  /* NGX_HTTP_MCP_LIST_ANNOTATED: a tool
                                             has arguments that headers repeat;
                                             0: it is not known yet */
    ngx_msec_t                touched;    /* time at which the zone last noted
                                             that the list is used */
} ngx_http_mcp_list_copy_t;


/* returns whether lists of this kind are fetched: mcp_list_cache is "on" */
#define ngx_http_mcp_list_cache_fetches(bridge, kind)                         \
    ((bridge)->lists == NGX_HTTP_MCP_LIST_CACHE_ON && (bridge)->router.n      \
     && (bridge)->lists_kinds & NGX_MCP_LIST_BIT(kind))

/*
 * Finds the list of this kind for the caller's audience.
 *
 *   NGX_OK        *list is found; the caller has to call
 *                 ngx_http_mcp_list_cache_release() after use
 *   NGX_AGAIN     the list is being fetched for the first time: the caller
 *                 waits (ngx_http_mcp_list_cache_wait()), and after a time-out
 *                 calls again with "partial", to get the parts that are there
 *   NGX_DECLINED  the list is not cached
 *   NGX_ERROR     the list could not be copied
 */
ngx_int_t ngx_http_mcp_list_cache_get(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_uint_t partial,
    ngx_http_mcp_list_copy_t **list);
void ngx_http_mcp_list_cache_release(void *list);

/*
 * With "auto": finds a list of which all parts are stored.  NGX_OK: the caller
 * has to release *list after use; NGX_DECLINED: a part is missing or too old.
 */
ngx_int_t ngx_http_mcp_list_cache_passed(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind,
    ngx_http_mcp_list_copy_t **list);

/*
 * With "auto": reads the stored parts of a list.  parts[i] is that of upstream
 * i of the router, with a text from pool; text.len 0: the part is not stored.
 * NGX_OK; NGX_DECLINED: no part is stored.
 */
ngx_int_t ngx_http_mcp_list_cache_parts(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind, ngx_pool_t *pool,
    ngx_mcp_list_content_t *parts);

/*
 * With "auto": stores a part, which was received from the upstream, if its hint
 * allows this.  forgotten: as in ngx_mcp_list_keep().
 */
void ngx_http_mcp_list_cache_keep(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_str_t *upstream,
    ngx_mcp_list_content_t *content, uint64_t forgotten);

/*
 * Returns the merged text of a list, as clients of the audience see it, from
 * pool.  data NULL: there is no list.
 */
ngx_str_t ngx_http_mcp_list_cache_view(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_ref_t audience, ngx_uint_t kind, ngx_pool_t *pool);

/* returns whether a tool of the list has arguments that headers repeat */
ngx_uint_t ngx_http_mcp_list_cache_annotated(ngx_http_mcp_list_copy_t *list);

/*
 * Returns the index of the list of this kind for the caller's audience.  The
 * index finds entries by the names that clients see (ngx_mcp_merge_find());
 * sources are numbers of the router's upstreams.  NULL: no list is known, or
 * there is one upstream, whose names stay as they are.  The index is valid
 * until control returns to the event loop.  The caller must not have lists of
 * its own.
 */
ngx_mcp_merge_t *ngx_http_mcp_list_cache_index(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_uint_t kind);


/*
 * Logs, once for each list of an upstream, that entries are hidden in the
 * merged list.  Sources are numbers of the router's upstreams.
 */
void ngx_http_mcp_list_log_hidden(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_merge_lists_t *lists);


/* a wait for a list that is being fetched for the first time */

typedef struct {
    void                    (*ready)(void *data);
    void                     *data;

    /* private */
    ngx_http_mcp_waiter_t     waiter;
    ngx_http_mcp_bridge_t    *bridge;
    ngx_mcp_ref_t             audience;
    ngx_uint_t                kind;
} ngx_http_mcp_list_waiter_t;

/*
 * Waits after ngx_http_mcp_list_cache_get() returned NGX_AGAIN: ready() is
 * called once, in a later event, unless ngx_http_mcp_list_cache_cancel() is
 * called before.
 */
void ngx_http_mcp_list_cache_wait(ngx_http_mcp_list_waiter_t *waiter,
    ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller, ngx_uint_t kind);
void ngx_http_mcp_list_cache_cancel(ngx_http_mcp_list_waiter_t *waiter);


#endif /* _NGX_HTTP_MCP_LIST_CACHE_H_INCLUDED_ */
