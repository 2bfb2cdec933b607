
/*
 * Server requests: requests of upstreams that wait for the answer of a client
 * (sampling, elicitation, roots, ping).  The client knows each by an id that
 * the module mints, so that ids of several upstreams cannot meet; the record
 * maps it to the upstream's own id and to the upstream session that asked, or
 * to the call that waits for the answer, which the record then keeps for it.
 *
 * A record belongs to the session of the client and ends with it; it is in the
 * zone, because the answer may come to any worker.
 */

#ifndef _NGX_MCP_SERVER_REQUEST_H_INCLUDED_
#define _NGX_MCP_SERVER_REQUEST_H_INCLUDED_


#include "ngx_mcp_schema.h"


/* the minted id, raw: a UUID as a JSON string; also the progress token */
#define NGX_MCP_SERVER_REQUEST_ID_LEN  (NGX_MCP_UUID_LEN + 2)


typedef struct {
    ngx_str_t               upstream;     /* its name */
    ngx_uint_t              serial;       /* of the upstream session */
    ngx_uint_t              method;       /* ngx_mcp_method_e */
    ngx_str_t               id;           /* raw, the upstream's own */
    ngx_str_t               token;        /* raw progress token, likewise, or
                                             empty */
    ngx_mcp_ref_t           call;         /* that waits for the answer; all
                                             else is empty then.  Block 0: none
                                             does */
} ngx_mcp_server_request_t;


/*
 * Opens a request under a new id of that length; where too many are open, the
 * oldest ends.
 * NGX_OK; NGX_DECLINED: the session has ended; NGX_ERROR: the zone is full, or
 * the upstream's id or token is longer than NGX_MCP_ID_MAX.
 */
ngx_int_t ngx_mcp_server_request_open(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_mcp_server_request_t *request);

/*
 * Finds an open request by its id, copies it to pool, and ends it if the
 * client has answered, unless a call waits.  NGX_OK; NGX_DECLINED: no such
 * request is open; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_server_request_find(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_uint_t answered,
    ngx_pool_t *pool, ngx_mcp_server_request_t *request);

/*
 * Likewise the oldest that is open, which ends, in a session where no call
 * waits for one.  NGX_DECLINED: none is open.
 */
ngx_int_t ngx_mcp_server_request_next(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_pool_t *pool,
    ngx_mcp_server_request_t *request);

/*
 * The raw response is kept for the call that waits, which is woken with
 * NGX_MCP_WAKE_INPUT.  NGX_OK; NGX_DECLINED: none does; NGX_ERROR: there is no
 * room.
 */
ngx_int_t ngx_mcp_server_request_answer(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_str_t *response);

/*
 * That call takes the response into pool, with which the request ends.  NGX_OK;
 * NGX_AGAIN: it is not there yet; NGX_DECLINED: the request has ended;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_server_request_take(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_pool_t *pool,
    ngx_str_t *response);

/* or it waits no longer; NGX_OK, or NGX_DECLINED: it had ended */
ngx_int_t ngx_mcp_server_request_close(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_str_t *id);

/*
 * The upstream cancels the request that has its own id: ends it.  NGX_OK with
 * the id that the client knows in buf; NGX_DECLINED: no such request is open.
 */
ngx_int_t ngx_mcp_server_request_cancel(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t session, ngx_mcp_server_request_t *request, u_char *buf,
    ngx_str_t *id);


#endif /* _NGX_MCP_SERVER_REQUEST_H_INCLUDED_ */
