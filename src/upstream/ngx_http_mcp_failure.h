
/*
 * The text about an upstream that did not answer initialize, or the lists
 * that it is asked for in its place: for the client and the log.
 */

#ifndef _NGX_HTTP_MCP_FAILURE_H_INCLUDED_
#define _NGX_HTTP_MCP_FAILURE_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


typedef struct {
    ngx_uint_t                        status;     /* HTTP, for the client */
    ngx_str_t                         why;        /* a sentence for it */
    ngx_str_t                         detail;     /* request and response, for
                                                     the log */
    const char                       *remedy;     /* advice, or NULL */
} ngx_http_mcp_failure_t;


/*
 * The fault of a message that is not the result for this id: in words, from
 * pool.  Empty: it is no answer at all.
 */
ngx_str_t ngx_http_mcp_failure_answer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text, ngx_str_t *id, ngx_pool_t *pool);

/*
 * The failure of an exchange that ended without the answer; answer: the fault
 * of the last message, or empty.  Texts are from pool.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_failure(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_http_mcp_failure_t *failure);

/* in one line; method: the one that was not answered */
void ngx_http_mcp_failure_log(ngx_http_mcp_exchange_t *x, ngx_uint_t level,
    ngx_http_mcp_upstream_t *u, ngx_str_t *method,
    ngx_http_mcp_failure_t *failure);


#endif /* _NGX_HTTP_MCP_FAILURE_H_INCLUDED_ */
