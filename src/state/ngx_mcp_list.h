
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Cached lists.  An audience (endpoint, tenant, list key) has one list of each
 * kind, which has one part for each upstream of the endpoint, in configured
 * order.  A part is stored and replaced as a whole.  The worker that holds the
 * lease of a part refreshes it.  The zone knows which refreshes are due, so
 * that the next holder goes on with them.
 *
 * A part is refreshed when a client requests the list for the first time, when
 * a signal (a notification that it may have changed) came after the last
 * refresh began, and when its time to live is over.  handlers->lists is called
 * in all workers when a list changes.
 *
 * With "mcp_list_cache auto" a part is a copy of a list in the response to a
 * client, if the upstream allows others to get it, too.  The module does not
 * fetch such a part; a change of the list or a newer configuration drops it.
 * The comments below say that such a list "passed" (through nginx).
 */

#ifndef _NGX_MCP_LIST_H_INCLUDED_
#define _NGX_MCP_LIST_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_session.h"
#include "ngx_mcp_pages.h"


/*
 * ms; the pause after the first failed fetch; it doubles each time, up to MAX
 */
#define NGX_MCP_LIST_RETRY      1000
#define NGX_MCP_LIST_RETRY_MAX  60000

/* ms; an audience without sessions that is unused for so long may be freed */
#define NGX_MCP_LIST_IDLE       60000

#define NGX_MCP_LIST_KEY_MAX    1024

/* the largest number of upstreams of an endpoint */
#define NGX_MCP_SOURCES_MAX     32


/*
 * The upstreams whose lists make up the lists of an endpoint.  The structures
 * live as long as the configuration.
 */

typedef struct {
    ngx_str_t               name;         /* name of the upstream */
    ngx_str_t               prefix;       /* prefix of the names in its lists,
                                             or empty */
} ngx_mcp_source_t;

typedef struct {
    ngx_mcp_source_t       *elts;         /* in configured order */
    ngx_uint_t              n;
    ngx_uint_t              kinds;        /* bits of kinds that the module
                                             fetches; lists of other kinds are
                                             kept when they pass through */
    uint64_t                layout;       /* digest of the members above; never
                                             0 */
} ngx_mcp_sources_t;


typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               key;          /* list key */
} ngx_mcp_audience_t;


/*
 * Finds or makes an audience with parts for these upstreams.  If the endpoint
 * has "max" audiences, a new one replaces the one that was unused for longest:
 * of those without sessions if there are any, else of all.  NGX_OK;
 * NGX_DECLINED: the zone is full, or the parts are of a newer configuration.
 */
ngx_int_t ngx_mcp_audience_get(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_sources_t *sources, ngx_uint_t max, ngx_mcp_ref_t *ref);

/*
 * Gives an audience the parts of this configuration.  Parts of other upstreams
 * are dropped; lists that look different to clients for this reason count as
 * changed.  NGX_OK; NGX_DONE: it had these parts already; NGX_DECLINED: the
 * zone is full, or the parts are of a newer configuration; NGX_ERROR: the
 * audience is gone.
 */
ngx_int_t ngx_mcp_audience_sync(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_sources_t *sources);

/* finds the part of an upstream; NGX_OK; NGX_DECLINED: there is none */
ngx_int_t ngx_mcp_audience_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_str_t *upstream, ngx_mcp_ref_t *part);

/* finds an audience; NGX_OK; NGX_DECLINED: there is none */
ngx_int_t ngx_mcp_audience_find(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_ref_t *ref);

/* a walk over audiences; all zero at first but for endpoint and tenant */

typedef struct {
    ngx_str_t              *endpoint;     /* NULL: all */
    ngx_str_t              *tenant;       /* NULL: all */
    ngx_mcp_ref_t           ref;          /* the audience that was found last */
    uint64_t                number;       /* its number */
} ngx_mcp_audience_walk_t;

/*
 * Goes on to the next audience.  Unless a is NULL, it gets the names, copied to
 * pool.  NGX_OK; NGX_DONE: there are no more; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_audience_next(ngx_mcp_zone_t *zone,
    ngx_mcp_audience_walk_t *walk, ngx_pool_t *pool, ngx_mcp_audience_t *a);

/*
 * Makes the session a member of the audience, from which it gets its lists and
 * their changes.  NGX_OK; NGX_DECLINED: the session has ended, the audience is
 * gone, or the session has its own lists from now on, because the reference
 * has block 0 or the audience has another list key.
 */
ngx_int_t ngx_mcp_audience_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_ref_t ref);

/* returns whether the session has this list key */
ngx_uint_t ngx_mcp_audience_of(ngx_mcp_zone_t *zone,
    ngx_mcp_session_t *session, ngx_str_t *key);

/*
 * Drops an audience that has no sessions and was unused for "keep" ms.
 * NGX_OK: it is gone; NGX_DECLINED: it stays.
 */
ngx_int_t ngx_mcp_audience_retire(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_msec_t keep);

/* drops an audience; older: only if it is of an older configuration */
void ngx_mcp_audience_drop(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t older);


/* a part of a list as it was found; ngx_mcp_list_read() copies the text */

typedef struct {
    ngx_mcp_ref_t           content;      /* record of the content */
    size_t                  len;          /* length of the content */
    ngx_uint_t              source;       /* index in ngx_mcp_sources_t */
    ngx_mcp_hint_t          hint;         /* how long it is fresh, and for
                                             whom */
} ngx_mcp_list_part_t;

typedef struct {
    ngx_mcp_ref_t           audience;
    ngx_uint_t              kind;
    uint64_t                version;      /* number that each change of the
                                             list replaces by another one */
    size_t                  len;          /* length of all parts together */
    ngx_uint_t              nparts;       /* number of elements of "parts" */
    ngx_uint_t              missing;      /* number of parts that were never
                                             fetched */
    uint32_t                left_out;     /* bits, by source: missing parts
                                             that are left out now for the first
                                             time */
    ngx_mcp_hint_t          hint;         /* the hints of all parts, joined */
    ngx_mcp_list_part_t     parts[NGX_MCP_SOURCES_MAX];
} ngx_mcp_list_t;

/*
 * Finds a list for a client.  NGX_OK; NGX_AGAIN: parts of it are being fetched
 * for the first time; NGX_DECLINED: the list is not cached, or the parts are of
 * a newer configuration: the caller requests it from the upstreams; NGX_ERROR:
 * the audience is gone, or has no parts of this configuration yet.
 * partial: 1: if other parts are stored, parts that are being fetched are left
 * out; NGX_MCP_LIST_PEEK: the same, and the call does not count as a use of the
 * list, so that no worker fetches the list because of it.
 */
#define NGX_MCP_LIST_PEEK  2

ngx_int_t ngx_mcp_list_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_uint_t partial,
    ngx_mcp_list_t *list);

/*
 * Finds a list of parts that passed (ngx_mcp_list_keep()) and are still fresh.
 * NGX_OK; NGX_AGAIN: only some parts are stored; NGX_DECLINED: none is.
 */
ngx_int_t ngx_mcp_list_fresh(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_mcp_list_t *list);

/*
 * Copies the list->len bytes of the list to dst, part behind part.  NGX_OK;
 * NGX_DECLINED: the list was replaced, get it again.
 */
ngx_int_t ngx_mcp_list_read(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list,
    u_char *dst);

/* returns whether the list is unchanged since it was found; takes no lock */
ngx_uint_t ngx_mcp_list_current(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list);

/*
 * has lists of these kinds fetched from now on, as if a client requested them
 */
void ngx_mcp_list_want(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kinds);


/*
 * Notes that lists of these kinds (NGX_MCP_LIST_BIT) may have changed, in this
 * part or, if its block is 0, in all parts of the audience.  Returns the kinds
 * that will be fetched and compared; lists of the other kinds are not stored,
 * so that there is nothing to compare.  notified: 1: the upstream has sent a
 * notification.  As it sends the same one for resources and templates, and only
 * one of these lists may be cached, clients are then notified even if the
 * cached list is found unchanged.
 */
ngx_uint_t ngx_mcp_list_signal(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part, ngx_uint_t kinds, ngx_uint_t notified);

/*
 * Does the same for the audience of a session that the upstream notified.
 * Returns 0 if the session has its own lists.
 */
ngx_uint_t ngx_mcp_list_signal_session(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *upstream, ngx_uint_t kinds,
    ngx_uint_t notified);

/*
 * Tells the holder of a part when to fetch it; a signal does not make it due
 * before "not_before" (ngx_current_msec).  NGX_OK: now, and *signals has to be
 * given to the function that takes the result; NGX_AGAIN: after *delay ms;
 * NGX_DECLINED: no client uses the list; NGX_ERROR: the part is gone.
 */
ngx_int_t ngx_mcp_list_due(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_msec_t not_before, uint32_t *signals,
    ngx_msec_t *delay);

/*
 * Stores a list that was fetched; it is due again after "ttl" ms.  NGX_OK:
 * clients are to be notified that it changed; NGX_DONE: they are not, because
 * it did not change or is the first one; NGX_DECLINED: it changed, but there is
 * no room: clients get it from the upstream from now on; NGX_ERROR: the part is
 * gone.
 */
ngx_int_t ngx_mcp_list_put(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl);

/*
 * Compares a list that was fetched with the stored one, which is due again
 * after "ttl" ms if both are equal.  NGX_DONE: they are equal; NGX_OK: they are
 * equal, but clients are to be notified; NGX_DECLINED: they differ, and the
 * caller calls ngx_mcp_list_put(); NGX_ERROR: the part is gone.
 */
ngx_int_t ngx_mcp_list_confirm(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl);

/*
 * Stores a list that passed, for as long as its hint allows.  forgotten: value
 * of ngx_mcp_lists_forgotten() when the request was sent to the upstream; a
 * list that may have changed since is not stored.  NGX_OK; NGX_DECLINED: it is
 * not stored.
 */
ngx_int_t ngx_mcp_list_keep(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_str_t *upstream, ngx_mcp_list_content_t *content, uint64_t forgotten);

/*
 * Drops lists of these kinds that passed, because they changed, of an
 * endpoint, a tenant (NULL: all) and an upstream (NULL: all).
 */
void ngx_mcp_list_forget(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *upstream, ngx_uint_t kinds);

/* the number of calls of ngx_mcp_list_forget() so far; takes no lock */
uint64_t ngx_mcp_lists_forgotten(ngx_mcp_zone_t *zone);

/*
 * Notes for "ttl" ms that the list cannot be stored or (absent) that the
 * upstream has no such list.
 */
void ngx_mcp_list_pass_through(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_uint_t absent, uint32_t signals, ngx_msec_t ttl);

/* notes that a list could not be fetched; the stored one stays */
void ngx_mcp_list_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind);

/*
 * Returns the kinds that changed and of which clients were not notified yet: in
 * this part (block 0: in no part), and by parts that were dropped.
 */
ngx_uint_t ngx_mcp_list_dirty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part);

/* notes that clients need no notification of a change of a list in this part */
void ngx_mcp_list_hidden(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind);

/*
 * Notifies the audience's sessions of changes of these kinds: appends the
 * event to the log of their group, if ngx_mcp_list_dirty() returns one of the
 * kinds, and clears these kinds there.  Returns the number of sessions in the
 * group; 0: no event was appended.
 */
ngx_uint_t ngx_mcp_list_announce(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part, ngx_mcp_audience_t *names, ngx_uint_t kinds,
    ngx_mcp_event_t *event);


/* a list of an audience, for mcp_status */

typedef struct {
    ngx_uint_t              filled;       /* number of parts that are stored */
    ngx_uint_t              entries;      /* number of entries of all parts */
    size_t                  size;         /* bytes of all parts */
    ngx_msec_t              age;          /* ms since the oldest part was
                                             stored or confirmed */
    ngx_uint_t              failing;      /* number of parts that cannot be
                                             fetched */
    ngx_uint_t              left_out;     /* number of parts that were never
                                             fetched; clients get the list
                                             without them */
    ngx_uint_t              members;      /* number of sessions of the
                                             audience */
} ngx_mcp_list_info_t;

/* NGX_OK; NGX_DECLINED: the audience is gone */
ngx_int_t ngx_mcp_list_info(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, ngx_mcp_list_info_t *info);


#endif /* _NGX_MCP_LIST_H_INCLUDED_ */
