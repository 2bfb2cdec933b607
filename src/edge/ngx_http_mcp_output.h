
/*
 * Output to a client.  What the filters take is sent now or later: NGX_AGAIN
 * of theirs says that a part is not sent yet, which is no reason for anything
 * but to go on writing.  nginx does so once the request is finalized; until
 * then, while an exchange runs on, this file does.
 */

#ifndef _NGX_HTTP_MCP_OUTPUT_H_INCLUDED_
#define _NGX_HTTP_MCP_OUTPUT_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/*
 * As ngx_http_send_header() and ngx_http_output_filter(), but NGX_OK stands
 * for NGX_AGAIN as well; r->connection->buffered says what is unsent.
 */
ngx_int_t ngx_http_mcp_send_header(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_output(ngx_http_request_t *r, ngx_chain_t *out);

/*
 * Writes on while the request is not finalized, with limit_rate as nginx does.
 * Each time that all was sent, sent(r, NGX_OK) is called; sent(r, NGX_ERROR),
 * once, if the client cannot be written to, or took nothing for send_timeout:
 * the exchange is not ended by that.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_output_start(ngx_http_request_t *r,
    void (*sent)(ngx_http_request_t *r, ngx_int_t rc));

/* finalizes such a request: nginx writes what is left */
void ngx_http_mcp_output_finalize(ngx_http_request_t *r, ngx_int_t rc);


#endif /* _NGX_HTTP_MCP_OUTPUT_H_INCLUDED_ */
