
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Output to a client.  Filters send what they take, now or later; NGX_AGAIN
 * says that they keep a part, which has to be written later.  nginx does so
 * once the request is finalized; this file does so before that, while an
 * exchange runs on.
 */

#ifndef _NGX_HTTP_MCP_OUTPUT_H_INCLUDED_
#define _NGX_HTTP_MCP_OUTPUT_H_INCLUDED_


#include "ngx_http_mcp_module.h"


/* add a response header; value is not copied; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);
ngx_int_t ngx_http_mcp_header_text(ngx_http_request_t *r, const char *name,
    const char *text);

/*
 * Do the same as ngx_http_send_header() and ngx_http_output_filter(), but
 * return NGX_OK instead of NGX_AGAIN; r->connection->buffered says what is
 * unsent.
 */
static ngx_inline ngx_int_t
ngx_http_mcp_send_header(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    /* no answer has a state that "If-Match" and its like could be about */

    r->disable_not_modified = 1;

    rc = ngx_http_send_header(r);

    return (rc == NGX_AGAIN) ? NGX_OK : rc;
}

ngx_int_t ngx_http_mcp_output(ngx_http_request_t *r, ngx_chain_t *out);

/* sends the header and all of a body; returns as ngx_http_mcp_output() does */
ngx_int_t ngx_http_mcp_send_chain(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_chain_t *out);

extern ngx_str_t  ngx_http_mcp_type_json;

/*
 * Writes on while the request is not finalized; limit_rate applies as usual.
 * Calls sent(r, NGX_OK) each time that all was sent, and sent(r, NGX_ERROR)
 * once, if the client cannot be written to or took nothing for send_timeout;
 * the exchange goes on then.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_output_start(ngx_http_request_t *r,
    void (*sent)(ngx_http_request_t *r, ngx_int_t rc));

/* finalizes a request; nginx writes what is left */
void ngx_http_mcp_output_finalize(ngx_http_request_t *r, ngx_int_t rc);


#endif /* _NGX_HTTP_MCP_OUTPUT_H_INCLUDED_ */
