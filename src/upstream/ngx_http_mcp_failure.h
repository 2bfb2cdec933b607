
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Texts about a failure of an upstream.  For the client and the log: about an
 * upstream that did not answer initialize or another request of its probe, or a
 * feed that could not be opened.  For the client only: about a refusal of, or a
 * bad answer to, any request.
 */

#ifndef _NGX_HTTP_MCP_FAILURE_H_INCLUDED_
#define _NGX_HTTP_MCP_FAILURE_H_INCLUDED_


#include "ngx_http_mcp_upstream.h"


typedef struct {
    ngx_uint_t                        status;     /* HTTP, for the client */
    ngx_str_t                         why;        /* a sentence for the client
                                                     */
    ngx_str_t                         detail;     /* request and response, for
                                                     the log */
    const char                       *remedy;     /* advice, or NULL */
} ngx_http_mcp_failure_t;


/*
 * Returns a sentence, from pool, about why the message is not the result of the
 * request with this id.  Empty: the message is a request or notification, or
 * there is no memory.
 */
ngx_str_t ngx_http_mcp_failure_answer(ngx_http_mcp_exchange_t *x,
    ngx_str_t *text, ngx_str_t *id, ngx_pool_t *pool);

/*
 * Describes in *failure, with texts from pool, the failure of an exchange that
 * ended without the expected answer.  answer: a text of
 * ngx_http_mcp_failure_answer(), or empty.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_failure(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_http_mcp_failure_t *failure);

/* sets *why to the failure's sentence for the client; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_failure_why(ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_str_t *answer, ngx_pool_t *pool,
    ngx_str_t *why);

/* whether nginx itself answered, and nothing was sent to a server */
ngx_uint_t ngx_http_mcp_failure_local(ngx_http_mcp_exchange_t *x);

/* logs the failure in one line; method: of the request that failed */
void ngx_http_mcp_failure_log(ngx_http_mcp_exchange_t *x, ngx_uint_t level,
    ngx_http_mcp_upstream_t *u, ngx_str_t *method,
    ngx_http_mcp_failure_t *failure);


#endif /* _NGX_HTTP_MCP_FAILURE_H_INCLUDED_ */
