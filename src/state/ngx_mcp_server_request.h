
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Server requests: requests of upstreams that wait for the answer of a client
 * (sampling, elicitation, roots, ping).  The client knows each by an id that
 * the module makes, so that ids of several upstreams do not collide.  The
 * record maps this id to the upstream's own id and to the upstream session
 * that sent the request, or to the call that waits for the answer.  For a call
 * the record also stores the answer.
 *
 * A record belongs to the session of the client and ends with it.  It is in
 * the zone, because the answer may come to any worker.
 */

#ifndef _NGX_MCP_SERVER_REQUEST_H_INCLUDED_
#define _NGX_MCP_SERVER_REQUEST_H_INCLUDED_


#include "ngx_mcp_schema.h"


/* bytes of the id and progress token that the module makes, a UUID in quotes */
#define NGX_MCP_SERVER_REQUEST_ID_LEN  (NGX_MCP_UUID_LEN + 2)


typedef struct {
    ngx_str_t               upstream;     /* name of the upstream */
    ngx_uint_t              serial;       /* serial of the upstream session */
    ngx_uint_t              method;       /* ngx_mcp_method_e */
    ngx_str_t               id;           /* raw id that the upstream gave */
    ngx_str_t               token;        /* raw progress token that the
                                             upstream gave, or empty */
    ngx_mcp_ref_t           call;         /* call that waits for the answer: in
                                             this case the members above are
                                             empty; block 0: no call waits */
} ngx_mcp_server_request_t;


/*
 * Opens a request under an id that the caller has made, of
 * NGX_MCP_SERVER_REQUEST_ID_LEN bytes.  If too many are open, the oldest one
 * ends.  NGX_OK; NGX_DECLINED: the session has ended; NGX_ERROR: the zone is
 * full, or the upstream's id or token is longer than NGX_MCP_ID_MAX.
 */
ngx_int_t ngx_mcp_server_request_open(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_mcp_server_request_t *request);

/*
 * Finds an open request by its id, copies it to pool, and ends it if
 * "answered" is set.  If a call waits for the answer, only request->call is
 * set, and the request stays.  NGX_OK; NGX_DECLINED: no such request is open,
 * or the call has its answer; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_server_request_find(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_uint_t answered,
    ngx_pool_t *pool, ngx_mcp_server_request_t *request);

/*
 * Copies the oldest open request to pool, and ends it; only for a session
 * where no call waits for an answer.  NGX_OK; NGX_DECLINED: none is open;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_server_request_next(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request);

/*
 * Keeps the raw response for the call that waits for it, and wakes the call
 * with NGX_MCP_WAKE_INPUT.  NGX_OK; NGX_DECLINED: no call waits (any more);
 * NGX_BUSY: there is no room, and the call still waits.
 */
ngx_int_t ngx_mcp_server_request_answer(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_str_t *response);

/*
 * Copies the response to pool for the call that waits for it, and ends the
 * request.  NGX_OK; NGX_AGAIN: there is no response yet; NGX_DECLINED: the
 * request has ended; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_server_request_take(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_pool_t *pool,
    ngx_str_t *response);

/* ends a request; NGX_OK; NGX_DECLINED: it had ended */
ngx_int_t ngx_mcp_server_request_close(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id);

/*
 * Ends a request that its upstream cancels; *request has the upstream, the
 * serial and the upstream's own id.  NGX_OK: *id is the id that the client
 * knows, in buf; NGX_DECLINED: no such request is open.
 */
ngx_int_t ngx_mcp_server_request_cancel(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_mcp_server_request_t *request, u_char *buf,
    ngx_str_t *id);


#endif /* _NGX_MCP_SERVER_REQUEST_H_INCLUDED_ */
