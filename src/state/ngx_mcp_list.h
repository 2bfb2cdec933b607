
/*
 * Cached lists.  An audience (endpoint, tenant, list key) has one list of each
 * kind, which has one part for each upstream of the endpoint, in configured
 * order.  A part is kept whole and replaced whole.  Who refreshes it is decided
 * by a lease; what there is to do stands here, so that whoever holds it next
 * goes on with it.
 *
 * A part is refreshed when the list is wanted for the first time, when a signal
 * came that no refresh has started after, and when its time is over.  All
 * workers learn by handlers->lists of what changed.
 *
 * Or it is a list that passed on its way to a client and may be given to others
 * (mcp_list_cache auto): nobody fetches it then, a change drops it, and so does
 * a newer configuration.
 */

#ifndef _NGX_MCP_LIST_H_INCLUDED_
#define _NGX_MCP_LIST_H_INCLUDED_


#include "ngx_mcp_schema.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_session.h"
#include "ngx_mcp_pages.h"


/* ms: after a failure, doubled with each that follows, up to the second */
#define NGX_MCP_LIST_RETRY      1000
#define NGX_MCP_LIST_RETRY_MAX  60000

/* one without sessions that was not asked for so long may be freed, ms */
#define NGX_MCP_LIST_IDLE       60000

#define NGX_MCP_LIST_KEY_MAX    1024

/* upstreams of an endpoint, at most */
#define NGX_MCP_SOURCES_MAX     32


/* where the parts come from; lives as long as the configuration */

typedef struct {
    ngx_str_t               name;         /* of the upstream */
    ngx_str_t               prefix;       /* of its names, or empty */
} ngx_mcp_source_t;

typedef struct {
    ngx_mcp_source_t       *elts;         /* in configured order */
    ngx_uint_t              n;
    ngx_uint_t              kinds;        /* that are fetched; others are kept
                                             as they pass */
    uint64_t                layout;       /* a digest of these; not 0 */
} ngx_mcp_sources_t;


typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               key;
} ngx_mcp_audience_t;


/*
 * Finds an audience or makes it, with parts for these upstreams; of more than
 * max of the endpoint the one least recently asked for goes.  NGX_OK;
 * NGX_DECLINED: the zone is full, or the parts are of a newer configuration.
 */
ngx_int_t ngx_mcp_audience_get(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_sources_t *sources, ngx_uint_t max, ngx_mcp_ref_t *ref);

/*
 * Gives it the parts of this configuration: those of other upstreams go, and
 * where clients see other lists by that, they changed.  NGX_OK; NGX_DONE: it
 * has them; NGX_DECLINED: as above; NGX_ERROR: the audience is gone.
 */
ngx_int_t ngx_mcp_audience_sync(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_mcp_sources_t *sources);

/* the part of an upstream; NGX_OK or NGX_DECLINED */
ngx_int_t ngx_mcp_audience_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_str_t *upstream, ngx_mcp_ref_t *part);

/* likewise, but does not make it: NGX_OK or NGX_DECLINED */
ngx_int_t ngx_mcp_audience_find(ngx_mcp_zone_t *zone, ngx_mcp_audience_t *a,
    ngx_mcp_ref_t *ref);

/*
 * Goes over those of an endpoint and tenant (NULL: all): *number starts as 0.
 * NGX_OK with the reference and, unless a is NULL, its names copied to pool;
 * NGX_DONE behind the last; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_audience_next(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, uint64_t *number, ngx_pool_t *pool,
    ngx_mcp_audience_t *a, ngx_mcp_ref_t *ref);

/*
 * The session gets its lists from there; block 0, or the audience of another
 * key than the session's: by itself, so that what is said to the audience does
 * not concern it.  NGX_OK; NGX_DECLINED: by itself.
 */
ngx_int_t ngx_mcp_audience_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_mcp_ref_t ref);

/* whether the session found is of the audience with this key */
ngx_uint_t ngx_mcp_audience_of(ngx_mcp_zone_t *zone,
    ngx_mcp_session_t *session, ngx_str_t *key);

/*
 * Drops it when no session is in it and nobody asked for "keep" ms.  NGX_OK:
 * it is gone; NGX_DECLINED: it stays.
 */
ngx_int_t ngx_mcp_audience_retire(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_msec_t keep);

/* older: only one of an older configuration */
void ngx_mcp_audience_drop(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t older);


/* names the content of a list; a new one has another name */

typedef struct {
    ngx_mcp_ref_t           content;
    size_t                  len;
    ngx_uint_t              source;       /* its place in these */
    ngx_mcp_hint_t          hint;
} ngx_mcp_list_part_t;

typedef struct {
    ngx_mcp_ref_t           audience;
    ngx_uint_t              kind;
    uint64_t                version;
    size_t                  len;          /* of all parts */
    ngx_uint_t              nparts;       /* that there are */
    ngx_uint_t              missing;      /* never fetched */
    uint32_t                left_out;     /* of these, left out for the first
                                             time; bits by source */
    ngx_mcp_hint_t          hint;         /* of all parts */
    ngx_mcp_list_part_t     parts[NGX_MCP_SOURCES_MAX];
} ngx_mcp_list_t;

/*
 * Asks for a list.  NGX_OK; NGX_AGAIN: parts of it are being fetched for the
 * first time; NGX_DECLINED: it is not kept, ask the upstreams; NGX_ERROR: the
 * audience is gone, or has no parts of this configuration yet.
 * partial: what is being fetched is left out, if there is anything else;
 * NGX_MCP_LIST_PEEK: likewise, but nobody asks.
 */
#define NGX_MCP_LIST_PEEK  2

ngx_int_t ngx_mcp_list_get(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_uint_t partial,
    ngx_mcp_list_t *list);

/*
 * Likewise one of parts that passed (ngx_mcp_list_keep()) and whose time is not
 * over.  NGX_OK; NGX_AGAIN: only some of them are there; NGX_DECLINED: none is.
 */
ngx_int_t ngx_mcp_list_fresh(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_sources_t *sources, ngx_uint_t kind, ngx_mcp_list_t *list);

/*
 * Copies its list->len bytes, part behind part; NGX_DECLINED: it was replaced,
 * get it again.
 */
ngx_int_t ngx_mcp_list_read(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list,
    u_char *dst);

/* whether it was not replaced yet; without the lock */
ngx_uint_t ngx_mcp_list_current(ngx_mcp_zone_t *zone, ngx_mcp_list_t *list);

/* from now on lists of these kinds are fetched, though nobody asked for them */
void ngx_mcp_list_want(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kinds);


/*
 * Parts of these kinds (NGX_MCP_LIST_BIT) may have changed; returns those that
 * will be looked at: of others nothing is known.  part: block 0: all.  One
 * notification stands for resources and templates: said: if one of them is not
 * kept, it may be the one that changed, so that the other one is told of as
 * changed, whatever comes of it.
 */
ngx_uint_t ngx_mcp_list_signal(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part, ngx_uint_t kinds, ngx_uint_t notified);

/*
 * Likewise, if the upstream says it to this session; 0 if that has its own
 * lists.
 */
ngx_uint_t ngx_mcp_list_signal_session(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *upstream, ngx_uint_t kinds,
    ngx_uint_t notified);

/*
 * For the holder of a part: NGX_OK: fetch it now, and hand back *signals;
 * NGX_AGAIN: after *delay ms; NGX_DECLINED: nobody wants it; NGX_ERROR: it is
 * gone.
 */
ngx_int_t ngx_mcp_list_due(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, uint32_t *signals, ngx_msec_t *delay);

/*
 * The result of it.  put: NGX_OK: the list differs from the one before;
 * NGX_DONE: it does not, or is the first; NGX_DECLINED: it does, but there is
 * no room: it is passed through from now on; NGX_ERROR: the part is gone.
 */
ngx_int_t ngx_mcp_list_put(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_mcp_list_content_t *content, uint32_t signals,
    ngx_msec_t ttl);

/*
 * Whether a list that was fetched is the one that is kept: as above, but
 * NGX_DECLINED: it is not, and is to be put.
 */
ngx_int_t ngx_mcp_list_confirm(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_mcp_list_content_t *content, uint32_t signals,
    ngx_msec_t ttl);

/*
 * Keeps a list that passed, by its hint.  forgotten: as it was when the
 * upstream was asked: what may have changed since is not kept.  NGX_OK;
 * NGX_DECLINED: it is not kept.
 */
ngx_int_t ngx_mcp_list_keep(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_str_t *upstream, ngx_uint_t kind, ngx_mcp_list_content_t *content,
    uint64_t forgotten);

/*
 * Lists of these kinds changed: those that passed are dropped, of an endpoint,
 * tenant (NULL: all) and upstream (NULL: all).
 */
void ngx_mcp_list_forget(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *tenant, ngx_str_t *upstream, ngx_uint_t kinds);

/* how often that was called; without the lock */
uint64_t ngx_mcp_lists_forgotten(ngx_mcp_zone_t *zone);

/*
 * There is none that could be kept, or (absent) the upstream has no such list;
 * also for "ttl".
 */
void ngx_mcp_list_pass_through(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind, ngx_uint_t absent, uint32_t signals, ngx_msec_t ttl);

/* it could not be fetched: the one before stays */
void ngx_mcp_list_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind);

/*
 * Kinds that changed and whose sessions were not notified: of this part (block
 * 0: of none), and of parts that went.
 */
ngx_uint_t ngx_mcp_list_dirty(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part);

/* clients see no difference by what changed in this part */
void ngx_mcp_list_hidden(ngx_mcp_zone_t *zone, ngx_mcp_ref_t part,
    ngx_uint_t kind);

/*
 * Notifies them: appends the event for the audience's sessions; these kinds
 * are not dirty any more.  Returns the number of sessions in its group.
 */
ngx_uint_t ngx_mcp_list_announce(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_mcp_ref_t part, ngx_mcp_audience_t *names, ngx_uint_t kinds,
    ngx_mcp_event_t *event);


/* for mcp_status: of the audience at hand (ngx_mcp_audience_next()) */

typedef struct {
    ngx_uint_t              filled;       /* parts that there are */
    ngx_uint_t              entries;
    size_t                  size;
    ngx_msec_t              age;          /* since the oldest was confirmed */
    ngx_uint_t              failing;      /* parts that cannot be fetched */
    ngx_uint_t              left_out;     /* parts never fetched, without which
                                             it is served */
    ngx_uint_t              members;      /* sessions of the audience */
} ngx_mcp_list_info_t;

ngx_int_t ngx_mcp_list_info(ngx_mcp_zone_t *zone, ngx_mcp_ref_t audience,
    ngx_uint_t kind, ngx_mcp_list_info_t *info);


#endif /* _NGX_MCP_LIST_H_INCLUDED_ */
