
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Client manners: the differences between clients of the eras of the protocol.
 * A request has a manner as soon as it has a context, and its stream has the
 * same manner.  Calls and answerers use the functions below without knowing
 * the manner.
 *
 * Each manner is a file of its own, and an entry of the table in
 * ngx_http_mcp_request.c.
 */

#ifndef _NGX_HTTP_MCP_CLIENT_H_INCLUDED_
#define _NGX_HTTP_MCP_CLIENT_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_mcp_stamp.h"


struct ngx_http_mcp_client_s {
    /* value of the response header "Allow" */
    ngx_str_t                 methods;

    /*
     * Requests have no session: if the client closes the connection, the
     * request is cancelled, and its stream cannot be resumed.
     */
    ngx_uint_t                sessionless;

    /*
     * is() returns whether the client of this request, which is scanned, has
     * this manner; NULL: any client has it.  scanned() then copies what
     * the message says about the client to the context; NGX_OK or NGX_ERROR;
     * may be NULL.
     */
    ngx_uint_t              (*is)(ngx_http_mcp_ctx_t *ctx);
    ngx_int_t               (*scanned)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);

    /*
     * Handle requests that may use the endpoint; the content handler returns
     * their results.  get and delete may be NULL.  In a manner without
     * sessions, post also gets a message in which only params are wrong
     * (ctx->scan_error).
     */
    ngx_int_t               (*post)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);
    ngx_int_t               (*get)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);
    ngx_int_t               (*delete)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx);

    /*
     * status() returns the HTTP status of an error that is alone in its
     * response; NULL: status is kept.  error() and result() return the text of
     * an answer, in pool; its data is NULL if there is no memory.  The data of
     * an error is raw, or NULL.  If result() is NULL, results are sent as they
     * are.
     */
    ngx_uint_t              (*status)(ngx_uint_t status, ngx_int_t code);
    ngx_str_t               (*error)(ngx_pool_t *pool, ngx_uint_t revision,
                                ngx_str_t *id, ngx_int_t code,
                                ngx_str_t *message, ngx_str_t *data);
    ngx_str_t               (*result)(ngx_http_mcp_ctx_t *ctx,
                                ngx_pool_t *pool, ngx_str_t *id,
                                ngx_str_t *result);

    /*
     * Returns raw members with which each result begins, and a comma behind
     * them, in pool; data NULL: no memory.  NULL: there are no such members.
     */
    ngx_str_t               (*stamp)(ngx_http_mcp_ctx_t *ctx,
                                ngx_pool_t *pool);

    /*
     * Converts an upstream's answer, of which json is the scan, for the
     * client: sets *text, which is in r->pool then, and *status, the HTTP
     * status if the answer is an error that is alone in its response.  *status
     * at first: that of an upstream of 2026-07-28, else 0.  room: bytes in
     * front of *text that may be written; *text may then stay where it is, and
     * begin earlier.  NGX_OK or NGX_ERROR.  answer NULL: the client gets the
     * answer unchanged.
     */
    ngx_int_t               (*answer)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx, ngx_mcp_json_t *json,
                                ngx_str_t *text, size_t room,
                                ngx_uint_t *status);

    /*
     * Sets id, members and meta of *stamp, which tell how to change a result
     * that is passed in pieces, as it is too large to be kept.  NGX_OK or
     * NGX_ERROR.  pass NULL: the result is passed unchanged.
     */
    ngx_int_t               (*pass)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx,
                                ngx_mcp_stamp_t *stamp);

    /*
     * Answers a client that asks for the endpoint's offer and begins no
     * session; made->discovered keeps the result for later requests.  The
     * content handler returns what this returns.  NULL: clients begin a
     * session.
     */
    ngx_int_t               (*offer)(ngx_http_request_t *r,
                                ngx_http_mcp_ctx_t *ctx,
                                ngx_http_mcp_result_t *made);

    /*
     * Returns as ngx_http_mcp_server_request_to_client() does; NGX_DECLINED
     * also if this function has handled the message itself.
     */
    ngx_int_t               (*server_request)(ngx_http_mcp_ctx_t *ctx,
                                ngx_http_mcp_upstream_request_t *ureq,
                                ngx_str_t *text,
                                ngx_pool_t **pool, ngx_str_t *out);

    /*
     * From this revision on, a client resumes a stream that ended early;
     * NGX_MCP_REVISION_UNKNOWN: no client does.
     */
    ngx_uint_t                resumes;

    /*
     * Write parts of a stream at p, and return the end of what they wrote.
     * begin() writes the beginning of the stream, at most
     * NGX_HTTP_MCP_CLIENT_BEGIN bytes; event() what precedes the text of an
     * event, at most NGX_HTTP_MCP_STREAM_ID; retry() the pause after which the
     * client of a stream that is about to end comes back, at most
     * NGX_HTTP_MCP_CLIENT_RETRY; it may be NULL.
     */
    u_char                 *(*begin)(ngx_http_mcp_stream_t *s,
                                ngx_uint_t revision, u_char *p);
    u_char                 *(*event)(ngx_http_mcp_stream_t *s, u_char *p);
    u_char                 *(*retry)(u_char *p, ngx_msec_t time);

    /*
     * Asks the client for input that an upstream requests for the call.
     * Returns as input() of an upstream request does; NULL: clients cannot be
     * asked.
     */
    ngx_int_t               (*input)(ngx_http_mcp_call_t *call,
                                ngx_http_mcp_upstream_request_t *ureq,
                                ngx_http_mcp_input_t *input);

    /*
     * Returns the raw result that asks the client for the input, in r->pool;
     * data NULL: no memory.  NULL: clients are not asked by results.
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
