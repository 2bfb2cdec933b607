
/*
 * requestState of calls that are parked here (ngx_http_mcp_call_park.h): the
 * place of the call, in plain base64, and a HMAC-SHA256 of that and of all that
 * the request is bound to: endpoint, tenant, identity (else the address and the
 * headers that tell callers apart), method, name and arguments.  The key is
 * mcp_state_key, else one of the zone.
 */

#ifndef _NGX_HTTP_MCP_REQUEST_STATE_H_INCLUDED_
#define _NGX_HTTP_MCP_REQUEST_STATE_H_INCLUDED_


#include "ngx_http_mcp_call.h"


typedef struct {
    ngx_mcp_ref_t           call;         /* that is parked */
    uint32_t                generation;   /* of the zone, where it is */
    uint32_t                round;        /* of the call */
    uint64_t                position;     /* in its line */
    uint64_t                expires;      /* ngx_current_msec, as the call's
                                             own time: no matter what the
                                             clock of the host is set to */
} ngx_http_mcp_request_state_t;


/* a raw JSON string from r->pool, of this zone; data NULL: no memory */
ngx_str_t ngx_http_mcp_request_state_make(ngx_http_mcp_call_t *call,
    ngx_http_mcp_request_state_t *state);

/*
 * That of the request.  NGX_OK; NGX_DECLINED: it has
 * none that was made here; NGX_ABORT: it has, but not for this request;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_request_state_read(ngx_http_mcp_call_t *call,
    ngx_http_mcp_request_state_t *state);


#endif /* _NGX_HTTP_MCP_REQUEST_STATE_H_INCLUDED_ */
