
/*
 * Upstream sessions: what an upstream keeps for somebody here.  The owner is a
 * client session, or an audience (endpoint, tenant, list key), which shares it.
 * Each owner has one at each upstream that it needs.
 *
 * The record lasts as long as its owner.  The session at the upstream is made
 * by a handshake when it is needed first, and again when the upstream has
 * forgotten it (session restore): it has another serial then.  When the owner
 * ends, a DELETE to the upstream is due (handlers->pending_delete).
 */

#ifndef _NGX_MCP_UPSTREAM_SESSION_H_INCLUDED_
#define _NGX_MCP_UPSTREAM_SESSION_H_INCLUDED_


#include "ngx_mcp_schema.h"


#define NGX_MCP_UPSTREAM_ID_SHORT  512
#define NGX_MCP_UPSTREAM_ID_MAX    4096

/* a shared one that is not touched for so long ends, ms */
#define NGX_MCP_SHARED_TIMEOUT     120000


typedef struct {
    ngx_mcp_ref_t           ref;
    ngx_str_t               id;           /* into buf; data NULL: too long;
                                             empty: the upstream gave none */
    ngx_uint_t              revision;     /* negotiated with the upstream */
    ngx_uint_t              serial;       /* another one once it is restored */
    u_char                  buf[NGX_MCP_UPSTREAM_ID_SHORT];
} ngx_mcp_upstream_session_t;


/*
 * The one of a client session at this upstream, or a shared one, which is its
 * own owner here.  NGX_OK; NGX_DECLINED: it is to be made, which is now the
 * caller's duty, and ends with made() or fail(); NGX_AGAIN: another is making
 * it, and when that has ended (ask again then), the given call is woken with
 * NGX_MCP_WAKE_UPSTREAM_SESSION if the owner is its session, and else all
 * workers with NGX_MCP_RING_UPSTREAM_SESSIONS; NGX_ERROR: the owner has ended
 * or the zone is full.
 */
ngx_int_t ngx_mcp_upstream_session_get(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, ngx_str_t *upstream, ngx_mcp_ref_t call,
    ngx_mcp_upstream_session_t *us);

/* likewise, but never claims nor waits: NGX_OK or NGX_DECLINED */
ngx_int_t ngx_mcp_upstream_session_peek(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t owner, ngx_str_t *upstream, ngx_mcp_upstream_session_t *us);

/*
 * The id of one that was got, into pool if it is too long for buf.  NGX_OK;
 * NGX_DECLINED: it has changed since; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_upstream_session_id(ngx_mcp_zone_t *zone, ngx_pool_t *pool,
    ngx_mcp_upstream_session_t *us);

/*
 * It is made with these: raw initialize params and the log level of its client;
 * empty and NGX_MCP_LEVEL_UNSET if it is shared.  Then the n-th URI that the
 * client subscribed to at this upstream; NGX_DECLINED past the last.
 */
ngx_int_t ngx_mcp_upstream_session_params(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_pool_t *pool, ngx_str_t *initialize,
    ngx_uint_t *level);
ngx_int_t ngx_mcp_upstream_session_subscription(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t n, ngx_pool_t *pool, ngx_str_t *uri);

/*
 * It is made: this id was given.  Who waits is woken.  NGX_OK; NGX_DECLINED:
 * the owner has ended; NGX_ERROR: there is no room, the claim is given up;
 * NGX_AGAIN: the client has set another log level than this one, which is to be
 * told first, and is in *level now.  level NULL: any will do.
 */
ngx_int_t ngx_mcp_upstream_session_made(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_str_t *upstream, ngx_str_t *id,
    ngx_uint_t revision, ngx_uint_t *level);

/* it could not be made; who waits is woken and the next one claims */
void ngx_mcp_upstream_session_fail(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

/* the upstream has forgotten the one with this serial */
void ngx_mcp_upstream_session_forget(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    ngx_uint_t serial);


/*
 * The upstream's GET stream on it.  For a client session one worker holds it.
 * claim(): NGX_OK and *ref when this worker now holds it; NGX_DECLINED when it
 * or another live worker does.  release(), or the death of the worker, gives it
 * up; "over": messages from now on have no reader.  The stream of a shared one
 * belongs to its holder.
 */
ngx_int_t ngx_mcp_upstream_session_stream_claim(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *upstream, ngx_mcp_ref_t *ref);
void ngx_mcp_upstream_session_stream_release(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t over);

/*
 * Before the call is sent that runs in an exclusive session: a server may ask
 * its client there, and forgets what it asks while there is no stream.  NGX_OK:
 * it stands, or has failed; NGX_DONE: the upstream offers none; NGX_DECLINED:
 * no worker holds it; NGX_AGAIN: it is about to be opened, and the call is
 * woken with NGX_MCP_WAKE_UPSTREAM_SESSION when it stands or has failed.
 */
ngx_int_t ngx_mcp_upstream_session_stream_await(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_mcp_ref_t call);

/* the upstream offers none on this session, which is not asked for again */
void ngx_mcp_upstream_session_stream_absent(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);

/*
 * The stream stands, on the session with this serial.  Unless it was resumed, a
 * client session that has lists or subscriptions to look at again learns that
 * it missed something since the stream before, if there was one, or is notified
 * by the shared upstream session there.  Whether it is notified now.
 */
ngx_uint_t ngx_mcp_upstream_session_stream_opened(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref, ngx_uint_t serial, ngx_uint_t resumed);

/*
 * It has ended for now.  While it stands a client session receives changes of
 * lists there, and not those that the shared upstream session received
 * (NGX_MCP_EVENT_SHARED).
 */
void ngx_mcp_upstream_session_stream_closed(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);


/*
 * Shared upstream sessions.  Who holds the audience's lease touches it;
 * untouched for NGX_MCP_SHARED_TIMEOUT it ends.
 */

typedef struct {
    ngx_str_t               endpoint;
    ngx_str_t               tenant;
    ngx_str_t               list_key;
    uint64_t                audience;     /* its hash; 0: of the text */
    ngx_str_t               upstream;
    ngx_str_t               id;           /* UUID text: $mcp_session where its
                                             requests are made */
    ngx_uint_t              limit;        /* of the endpoint; 0: none */
    ngx_uint_t              pooled;       /* nobody holds it, and each request
                                             that uses it touches it */
} ngx_mcp_shared_t;

/* finds or makes it: NGX_OK; NGX_BUSY: the limit; NGX_DECLINED: no room */
ngx_int_t ngx_mcp_shared_get(ngx_mcp_zone_t *zone, ngx_mcp_shared_t *in,
    ngx_mcp_ref_t *ref);

/*
 * Under this fence of the lease this worker holds it from now on, until a
 * later one does: touch it now and then.  NGX_OK; NGX_DECLINED: it has ended,
 * or another one holds it.
 */
ngx_int_t ngx_mcp_shared_claim(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t fence);
ngx_int_t ngx_mcp_shared_touch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t fence);

/* touches one that nobody holds */
void ngx_mcp_shared_keep(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref);

/* ends it, unless another one holds it or there are interests: NGX_DECLINED */
ngx_int_t ngx_mcp_shared_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t fence);


/*
 * DELETEs to upstreams under way in this worker: what a session that ends
 * leaves in the zone waits there while there are many ("full").
 */
void ngx_mcp_pending_delete_begin(ngx_mcp_zone_t *zone);
void ngx_mcp_pending_delete_end(ngx_mcp_zone_t *zone);
ngx_uint_t ngx_mcp_pending_delete_full(ngx_mcp_zone_t *zone);


#endif /* _NGX_MCP_UPSTREAM_SESSION_H_INCLUDED_ */
