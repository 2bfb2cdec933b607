
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Cached lists.  An audience (endpoint, tenant, list key) has one list of each
 * kind, which has one part for each upstream of the endpoint, in configured
 * order.  A part is kept whole and replaced whole.  The worker that holds the
 * lease of a part refreshes it; the work that is left is noted in the zone, so
 * that the next holder goes on with it.
 *
 * A part is refreshed when the list is wanted for the first time, when a signal
 * (a notification that it may have changed) came after the last refresh began,
 * and when its time is over.  handlers->lists tells all workers of changes.
 *
 * With "mcp_list_cache auto" a part is a copy of a list that passed through
 * nginx on its way to a client and may be given to others.  Such a part is not
 * fetched; a change of the list or a newer configuration drops it.
 */

#ifndef _NGX_MCP_LIST_H_INCLUDED_
#define _NGX_MCP_LIST_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_session.h"
#include "ngx_mcp_pages.h"


/* ms; the pause after the first failure; each failure doubles it, up to MAX */
#define NGX_MCP_LIST_RETRY      1000
#define NGX_MCP_LIST_RETRY_MAX  60000

/* ms; an audience without sessions that is unused for so long may be freed */
#define NGX_MCP_LIST_IDLE       60000

#define NGX_MCP_LIST_KEY_MAX    1024

/* upstreams of an endpoint, at most */
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
 * has "max" audiences, a new one replaces one without sessions, else one that
 * has some, in either case the one that was unused for longest.  NGX_OK;
 * NGX_DECLINED: the zone is full, or the parts are of a newer configuration.
 */
ngx_int_t ngx_mcp_audience_get(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_sources_t *sources, ngx_uint_t max, ngx_mcp_ref_t *ref);

/*
 * Gives an audience the parts of this configuration.  Parts of other upstreams
 * are dropped; lists that look different to clients for this reason count as
 * changed.  NGX_OK; NGX_DONE: the audience had these parts; NGX_DECLINED: the
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


/* a list as it was found; ngx_mcp_list_read() copies its text */

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
                                             that are left out for the first
                                             time */
    ngx_mcp_hint_t          hint;         /* hint that all parts allow */
    ngx_mcp_list_part_t     parts[NGX_MCP_SOURCES_MAX];
} ngx_mcp_list_t;

/*
 * Asks for a list.  NGX_OK; NGX_AGAIN: parts of it are being fetched for the
 * first time; NGX_DECLINED: the list is not kept, or the parts are of a newer
 * configuration: ask the upstreams; NGX_ERROR: the audience is gone, or has no
 * parts of this configuration yet.
 * partial: 1: if other parts are there, parts that are being fetched are left
 * out; NGX_MCP_LIST_PEEK: the same, and the call does not count as a use of the
 * list, so that nobody fetches the list for it.
 */
#define NGX_MCP_LIST_PEEK  2

ngx_int_t ngx_mcp_list_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_uint_t partial,
    ngx_mcp_list_t *list);

/*
 * Finds a list of parts that passed (ngx_mcp_list_keep()) and whose time is
 * not over.  NGX_OK; NGX_AGAIN: only some parts are there; NGX_DECLINED: none
 * is.
 */
ngx_int_t ngx_mcp_list_fresh(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_mcp_list_t *list);

/*
 * Copies the list->len bytes of the list to dst, part behind part.  NGX_OK;
 * NGX_DECLINED: the list was replaced, get it again.
 */
ngx_int_t ngx_mcp_list_read(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list,
    u_char *dst);

/* returns whether the list is as it was found; takes no lock */
ngx_uint_t ngx_mcp_list_current(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list);

/* has lists of these kinds fetched from now on, as if a client had asked */
void ngx_mcp_list_want(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kinds);


/*
 * Notes that lists of these kinds (NGX_MCP_LIST_BIT) may have changed, in this
 * part or, if its block is 0, in all parts of the audience.  Returns the kinds
 * that will be fetched and compared; for other kinds nothing is kept to
 * compare with.  notified: the upstream has sent a notification.  As it sends
 * the same one for resources and templates, and only one of them may be
 * cached, the cached one is then announced as changed even if it is found
 * unchanged.
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
 * before "not_before" (ngx_current_msec).  NGX_OK: now, and *signals are to be
 * passed on with the result; NGX_AGAIN: after *delay ms; NGX_DECLINED: nobody
 * wants the list; NGX_ERROR: the part is gone.
 */
ngx_int_t ngx_mcp_list_due(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_msec_t not_before, uint32_t *signals,
    ngx_msec_t *delay);

/*
 * Stores a list that was fetched; it is due again after "ttl" ms.  NGX_OK:
 * clients are to be notified that it changed; NGX_DONE: they are not, because
 * it did not change or is the first; NGX_DECLINED: it changed, but there is no
 * room: it is passed through from now on; NGX_ERROR: the part is gone.
 */
ngx_int_t ngx_mcp_list_put(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl);

/*
 * Compares a list that was fetched with the stored one, which is due again
 * after "ttl" ms if it is the same.  NGX_DONE: it is the same; NGX_OK: it is,
 * but clients are to be notified; NGX_DECLINED: it is not, and is to be put;
 * NGX_ERROR: the part is gone.
 */
ngx_int_t ngx_mcp_list_confirm(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_mcp_list_content_t *content, uint32_t signals, ngx_msec_t ttl);

/*
 * Keeps a list that passed, for as long as its hint allows.  forgotten:
 * ngx_mcp_lists_forgotten() when the upstream was asked; a list that may have
 * changed since is not kept.  NGX_OK; NGX_DECLINED: it is not kept.
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
 * Notes for "ttl" ms that the list cannot be kept or (absent) that the
 * upstream has no such list.
 */
void ngx_mcp_list_pass_through(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_uint_t absent, uint32_t signals, ngx_msec_t ttl);

/* notes that a list could not be fetched; the stored one stays */
void ngx_mcp_list_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind);

/*
 * Returns the kinds that changed without a notification so far: in this part
 * (block 0: in none), and by parts that were dropped.
 */
ngx_uint_t ngx_mcp_list_dirty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part);

/* notes that clients do not see the change of a list in this part */
void ngx_mcp_list_hidden(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind);

/*
 * Notifies the audience's sessions of changes of these kinds: appends the
 * event to the log of their group, if ngx_mcp_list_dirty() has one of the
 * kinds, and takes the kinds from it.  Returns the number of sessions in the
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
