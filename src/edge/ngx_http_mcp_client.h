
/*
 * Client manners: what differs between clients of one era of the protocol and
 * those of another.  A request has a manner from its context on, and its
 * stream has the same; calls and answerers know none of them.
 *
 * A manner is a file and an entry of the table in ngx_http_mcp_request.c.
 */

#ifndef _NGX_HTTP_MCP_CLIENT_H_INCLUDED_
#define _NGX_HTTP_MCP_CLIENT_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_mcp_stamp.h"


struct ngx_http_mcp_client_s {
    /* for "Allow" */
    ngx_str_t                 methods;

    /*
     * Requests have no session: one that its client leaves is cancelled, and
     * nobody comes back for the rest of a stream.
     */
    ngx_uint_t                sessionless;

    /*
     * Whether the client of this request, which is scanned, has this manner
     * (NULL: any); then what its message says of it is put into the context.
     */
    ngx_uint_t              (*is)(ngx_http_mcp_ctx_t *ctx);
    ngx_int_t               (*scanned)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);

    /*
     * Requests that may use the endpoint; for the content handler to return.
     * get and delete may be NULL.  Without sessions post has also a message in
     * which params alone are wrong (ctx->scan_error).
     */
    ngx_int_t               (*post)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);
    ngx_int_t               (*get)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);
    ngx_int_t               (*delete)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);

    /*
     * Versions.  version: whether MCP-Protocol-Version is one; NGX_OK, or
     * NGX_DECLINED with what the handler returns in *refusal.  negotiate: the
     * revision for a client that asks for this one, whatever it is.
     */
    ngx_int_t               (*version)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx, ngx_int_t *refusal);
    ngx_uint_t              (*negotiate)(ngx_http_mcp_ctx_t *ctx,
                                ngx_str_t *version);

    /*
     * Answers: the HTTP status of an error that is alone in its response
     * (NULL: as it is), and the texts of an error (data: raw, or NULL) and a
     * result; data NULL: no memory.
     */
    ngx_uint_t              (*status)(ngx_uint_t status, ngx_int_t code);
    ngx_str_t               (*error)(ngx_pool_t *pool, ngx_uint_t revision,
                                ngx_str_t *id, ngx_int_t code,
                                ngx_str_t *message, ngx_str_t *data);
    ngx_str_t               (*result)(ngx_http_mcp_ctx_t *ctx,
                                ngx_pool_t *pool, ngx_str_t *id,
                                ngx_str_t *result);

    /*
     * Raw members that each result has first, with a comma behind; data NULL:
     * no memory.  NULL: none.
     */
    ngx_str_t               (*stamp)(ngx_http_mcp_ctx_t *ctx,
                                ngx_pool_t *pool);

    /*
     * An upstream's answer, which is scanned, as the client is to get it:
     * *text, which is in r->pool then, and its HTTP status, if it is an error
     * that is alone in its response.  NGX_OK or NGX_ERROR; NULL: as it is.
     */
    ngx_int_t               (*answer)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json,
                                ngx_str_t *text, ngx_uint_t *status);

    /*
     * Likewise how one that is too large to be kept changes while it passes,
     * once its begin is scanned: id, members and meta of *stamp.  Also
     * NGX_DECLINED: it has to be read whole.
     */
    ngx_int_t               (*pass)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json,
                                ngx_mcp_stamp_t *stamp);

    /*
     * The answer of a client that asked what is offered, and does not begin a
     * session; made->alone has its result the next time.  For the content
     * handler to return; NULL: a session is begun.
     */
    ngx_int_t               (*offer)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx,
                                ngx_http_mcp_result_t *made);

    /* see ngx_http_mcp_server_request_to_client() */
    ngx_int_t               (*server_request)(ngx_http_mcp_ctx_t *ctx,
                                ngx_http_mcp_upstream_request_t *ureq,
                                ngx_str_t *text,
                                ngx_pool_t **pool, ngx_str_t *out);

    /*
     * The revision from which on a client whose stream ends early comes back
     * for the rest, or NGX_MCP_REVISION_UNKNOWN.
     */
    ngx_uint_t                resumes;

    /*
     * Frames of a stream, written at p, where there is room for them; they
     * return the end.  begin: of the stream, at most
     * NGX_HTTP_MCP_CLIENT_BEGIN bytes; event: what precedes the text of one,
     * at most NGX_HTTP_MCP_STREAM_ID; retry: the pause of a client whose
     * stream is about to end, at most NGX_HTTP_MCP_CLIENT_RETRY; or NULL.
     */
    u_char                 *(*begin)(ngx_http_mcp_stream_t *s,
                                ngx_uint_t revision, u_char *p);
    u_char                 *(*event)(ngx_http_mcp_stream_t *s, u_char *p);
    u_char                 *(*retry)(u_char *p, ngx_msec_t time);

    /*
     * An upstream wants input for the call: asks the client.  As input() of an
     * upstream request; NULL: clients cannot be asked.
     */
    ngx_int_t               (*input)(ngx_http_mcp_call_t *call,
                                ngx_http_mcp_upstream_request_t *ureq,
                                ngx_http_mcp_input_t *input);

    /*
     * The raw result that asks for it, where that is how clients are asked;
     * data NULL: no memory.  Else NULL.
     */
    ngx_str_t               (*round)(ngx_http_mcp_call_t *call,
                                ngx_http_mcp_input_t *input);
};


#define NGX_HTTP_MCP_CLIENT_RETRY                                             \
    (sizeof("retry: \n\n") - 1 + NGX_INT64_LEN)

#define NGX_HTTP_MCP_CLIENT_BEGIN                                             \
    (NGX_HTTP_MCP_CLIENT_RETRY + NGX_HTTP_MCP_STREAM_ID                       \
     + NGX_HTTP_MCP_STREAM_END)


/* 2025-03-26 to 2025-11-25: sessions (ngx_http_mcp_client_legacy.c) */
extern ngx_http_mcp_client_t  ngx_http_mcp_client_legacy;

/* 2026-07-28: each request is on its own (ngx_http_mcp_client_modern.c) */
extern ngx_http_mcp_client_t  ngx_http_mcp_client_modern;


#endif /* _NGX_HTTP_MCP_CLIENT_H_INCLUDED_ */
