
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * An input round: the requests that an upstream sends to the client before it
 * answers (sampling, elicitation, roots), and the client's answers to them.
 * The manner of the upstream makes the round from the message of the upstream;
 * the client manner sends the requests to the client and stores the answers.
 *
 * A round lives in the pool of the upstream request to which it belongs.
 */

#ifndef _NGX_HTTP_MCP_INPUT_H_INCLUDED_
#define _NGX_HTTP_MCP_INPUT_H_INCLUDED_


#include "ngx_http_mcp_upstream_request.h"


/* requests of one round, at most */
#define NGX_HTTP_MCP_INPUT_MAX  32


typedef struct {
    ngx_str_t                 key;          /* raw, chosen by the upstream */
    ngx_uint_t                method;       /* ngx_mcp_method_e */
    ngx_str_t                 params;       /* raw object, or empty */
    ngx_str_t                 answer;       /* raw result, or empty */

    ngx_str_t                 id;           /* id of the request at the client;
                                               used by the client manner */
} ngx_http_mcp_input_request_t;


struct ngx_http_mcp_input_s {
    ngx_http_mcp_input_request_t  *requests;
    ngx_uint_t                     n;
    ngx_str_t                      state;   /* raw requestState, to be returned
                                               with the answers; or empty */
};


/* continues ureq, when the round of ureq->input() has all its answers */
void ngx_http_mcp_upstream_request_answered(
    ngx_http_mcp_upstream_request_t *ureq);


#endif /* _NGX_HTTP_MCP_INPUT_H_INCLUDED_ */
