
/*
 * The module's own sessions, one for each upstream and audience (endpoint,
 * tenant, list key): records like those of clients, so that links serve them
 * alike, but no client finds, counts or reclaims one.  Who holds the
 * audience's lease touches it; untouched for NGX_MCP_OWN_TIMEOUT it ends.
 *
 * Supplies: what sessions of the audience subscribed to, once for all.  A
 * subscription either shares one, which the holder keeps at the upstream on
 * the own session, or is private: kept on the session's own link, if at all.
 */

#ifndef _NGX_MCP_OWN_H_INCLUDED_
#define _NGX_MCP_OWN_H_INCLUDED_


#include "ngx_mcp_session.h"


/* ms */
#define NGX_MCP_OWN_TIMEOUT  120000

/* ms */
#define NGX_MCP_OWN_PAIR  2000

/* what the holder asks for at a time */
#define NGX_MCP_SUPPLY_JOBS  8


/*
 * The own session with in->identity (the upstream's name) for in's endpoint,
 * tenant and list key, made when there is none; in->limit: of the endpoint.
 * NGX_OK; NGX_BUSY and NGX_DECLINED as for ngx_mcp_session_create().
 */
ngx_int_t ngx_mcp_own_get(ngx_mcp_zone_t *zone, ngx_mcp_session_new_t *in,
    ngx_mcp_ref_t *ref);

/*
 * Under this fence of the lease this worker holds it from now on, until a
 * later one does: touch it now and then.  NGX_OK; NGX_DECLINED: it has ended,
 * or another one holds it.
 */
ngx_int_t ngx_mcp_own_hold(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    uint32_t fence);
ngx_int_t ngx_mcp_own_touch(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    uint32_t fence);

/* ends it, unless another one holds it or there are supplies: NGX_DECLINED */
ngx_int_t ngx_mcp_own_end(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    uint32_t fence);

/* its listener is up, on the link with this serial, or is not */
void ngx_mcp_own_listens(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_uint_t serial, ngx_uint_t up);

/*
 * A session's own stream said n times that this resource was updated.  A
 * server that tells all who subscribed tells the own session of the audience
 * as well, a little earlier or later; each update that it hears is one that
 * the session's own streams say.
 *
 *   NGX_OK        that has told the session, or will
 *   NGX_AGAIN     it may tell it yet: ask again, as the last time, in
 *                 NGX_MCP_OWN_PAIR
 *   NGX_DECLINED  the session is told alone
 *   NGX_ABORT     likewise, for the first time since all were told
 */
ngx_int_t ngx_mcp_own_pair(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *upstream, ngx_str_t *uri, ngx_uint_t n, ngx_uint_t last);

/* its listener heard an update of the resource */
void ngx_mcp_own_heard(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_str_t *uri);


typedef enum {
    NGX_MCP_SUPPLY_WANTED = 0,
    NGX_MCP_SUPPLY_MADE,
    NGX_MCP_SUPPLY_REFUSED
} ngx_mcp_supply_e;

/*
 * Subscribes the session to what the own session supplies.  NGX_OK: it is
 * supplied; NGX_AGAIN: it will be, or not, which handlers->supplies tells in
 * all workers; NGX_DONE: the upstream refused it there; NGX_BUSY: the limit;
 * NGX_DECLINED: a session ended, or there is no room.
 */
ngx_int_t ngx_mcp_supply_join(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_mcp_ref_t session, ngx_str_t *uri, ngx_uint_t limit);

/*
 * A running call waits on the resource, and counts like a session until it is
 * closed.  NGX_OK; NGX_DECLINED: something has ended, or there is no room.
 */
ngx_int_t ngx_mcp_supply_hold(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_mcp_ref_t call, ngx_str_t *uri);

/*
 * How it stands: as for joining; NGX_DECLINED: the session is not subscribed
 * (any more), NGX_ERROR: the supply is gone, and has to be joined again.
 */
ngx_int_t ngx_mcp_supply_state(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri);

/* makes the subscription a private one */
void ngx_mcp_supply_part(ngx_mcp_zone_t *zone, ngx_mcp_ref_t session,
    ngx_str_t *uri);


/* one thing that the holder does at the upstream */

typedef struct {
    ngx_mcp_ref_t           ref;
    ngx_str_t               uri;          /* into pool */
    ngx_uint_t              subscribe;    /* or unsubscribe */
    ngx_uint_t              again;        /* it was made on another link */
} ngx_mcp_supply_job_t;

/* NGX_OK; NGX_DECLINED: nothing is to be done now; NGX_ERROR: no memory */
ngx_int_t ngx_mcp_supply_next(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    uint32_t fence, ngx_pool_t *pool, ngx_mcp_supply_job_t *job);

/*
 * It ended.  rc: NGX_OK; NGX_DECLINED: refused; NGX_AGAIN: the upstream could
 * not be asked, so that what was supplied before is to be asked for again.
 * serial: of the link on which it was, 0: none.
 */
void ngx_mcp_supply_done(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    uint32_t fence, ngx_mcp_supply_job_t *job, ngx_int_t rc,
    ngx_uint_t serial);

/*
 * What is made on the link with this serial; URIs are put into buf.  *n of
 * them at most, *n is how many.  NGX_OK; NGX_BUSY: there are more.
 */
ngx_int_t ngx_mcp_supply_made(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own,
    ngx_uint_t serial, u_char *buf, size_t size, ngx_str_t *uris,
    ngx_uint_t *n);

/* whether there are any; also NGX_DECLINED: the own session has ended */
ngx_int_t ngx_mcp_supplies(ngx_mcp_zone_t *zone, ngx_mcp_ref_t own);


#endif /* _NGX_MCP_OWN_H_INCLUDED_ */
