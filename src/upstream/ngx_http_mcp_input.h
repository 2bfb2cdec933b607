
/*
 * An input round: what an upstream wants of the client before it answers a
 * request (sampling, elicitation, roots), and what the client said.  An
 * upstream's manner makes it of what the upstream asks; the client's manner
 * asks the client, whatever way that is, and puts the answers in.
 *
 * It lives in the pool of the request that it belongs to.
 */

#ifndef _NGX_HTTP_MCP_INPUT_H_INCLUDED_
#define _NGX_HTTP_MCP_INPUT_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* of one round */
#define NGX_HTTP_MCP_INPUT_MAX  32


typedef struct {
    ngx_str_t                 key;          /* raw, the upstream's own */
    ngx_uint_t                method;       /* ngx_mcp_method_e */
    ngx_str_t                 params;       /* raw object, or empty */
    ngx_str_t                 answer;       /* raw result, or empty */

    /* of who asks the client */
    ngx_str_t                 id;
} ngx_http_mcp_input_request_t;


struct ngx_http_mcp_input_s {
    ngx_http_mcp_input_request_t  *requests;
    ngx_uint_t                     n;
    ngx_str_t                      state;   /* raw, to be given back; or empty
                                               */
};


/* the round that ureq->input() was called with has all its answers */
void ngx_http_mcp_upstream_request_answered(
    ngx_http_mcp_upstream_request_t *ureq);


#endif /* _NGX_HTTP_MCP_INPUT_H_INCLUDED_ */
