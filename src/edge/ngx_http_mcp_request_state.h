
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * requestState of parked calls (ngx_http_mcp_call_park.h): the place of the
 * call, not encrypted, and an HMAC-SHA256 of the place and of all that the
 * request is bound to: endpoint, tenant, identity (else the address and the
 * headers that tell callers apart), method, name and arguments.  Both are in
 * base64url.  The key is mcp_state_key, else a key of the zone.
 */

#ifndef _NGX_HTTP_MCP_REQUEST_STATE_H_INCLUDED_
#define _NGX_HTTP_MCP_REQUEST_STATE_H_INCLUDED_


#include "ngx_http_mcp_call.h"


typedef struct {
    ngx_mcp_ref_t           call;         /* the parked call */
    uint32_t                generation;   /* generation of the call's zone */
    uint32_t                round;        /* number of the round in the call */
    uint64_t                position;     /* position in the call's line from
                                             which to read on */
    uint64_t                expires;      /* end of the client's time to answer;
                                             by ngx_current_msec, so that
                                             changes of the host's clock have no
                                             effect */
} ngx_http_mcp_request_state_t;


/*
 * Returns the requestState as a raw JSON string in r->pool; data NULL: no
 * memory.
 */
ngx_str_t ngx_http_mcp_request_state_make(ngx_http_mcp_call_t *call,
    ngx_http_mcp_request_state_t *state);

/*
 * Reads the requestState of the request into *state.  NGX_OK; NGX_DECLINED:
 * there is none, or the module did not make it; NGX_ABORT: it is damaged, or
 * was made for another request; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_mcp_request_state_read(ngx_http_mcp_call_t *call,
    ngx_http_mcp_request_state_t *state);


#endif /* _NGX_HTTP_MCP_REQUEST_STATE_H_INCLUDED_ */
