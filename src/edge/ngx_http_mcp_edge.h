
/*
 * A request to an endpoint, from the preaccess phase to its answer: reading
 * and scanning, refusals, answers made here, and the filters that give
 * refusals of nginx itself a JSON-RPC body.
 */

#ifndef _NGX_HTTP_MCP_EDGE_H_INCLUDED_
#define _NGX_HTTP_MCP_EDGE_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_fanout.h"


/* phases (ngx_http_mcp_request.c) */

ngx_int_t ngx_http_mcp_preaccess_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_content_handler(ngx_http_request_t *r);

/* contexts (ngx_http_mcp_ctx.c) */

/* of clients of which nothing is known yet; set before workers start */
extern ngx_http_mcp_client_t  *ngx_http_mcp_client_default;

/* the context of a request, made when there is none; NULL: no memory */
ngx_http_mcp_ctx_t *ngx_http_mcp_get_ctx(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf);

/* a message's values of variables, into r->pool; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_mcp_scan_scope(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_http_mcp_scope_t *scope);

/* a string of the message, decoded, "?" for control characters */
ngx_int_t ngx_http_mcp_ctx_value(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_mcp_path_e path, ngx_str_t *value);

/* the header values of the context, trimmed (ngx_http_mcp_headers_in.c) */
void ngx_http_mcp_read_headers(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* the value of a header without white space around it */
ngx_str_t ngx_http_mcp_trim(ngx_str_t value);

/* whether Content-Type says JSON */
ngx_uint_t ngx_http_mcp_is_json(ngx_http_request_t *r);

/* the first request header of this name, any case; NULL when absent */
ngx_table_elt_t *ngx_http_mcp_find_header(ngx_http_request_t *r,
    ngx_str_t *name);

/*
 * Looks the request's session up by id and endpoint alone, once, when somebody
 * wants to know of it before the content phase finds it (or a refusal does).
 */
void ngx_http_mcp_verify_session(ngx_http_mcp_ctx_t *ctx);

/* a client-less main (see ngx_http_mcp_upstream.h) */
ngx_http_request_t *ngx_http_mcp_background_request(
    ngx_http_conf_ctx_t *conf, ngx_http_mcp_audience_t *audience);

/* chooses the message whose values variables have (likewise) */
void ngx_http_mcp_compute_scope(ngx_http_request_t *r,
    ngx_http_mcp_scope_t *scope, ngx_uint_t encoded);

/* the state's handler of a pending DELETE: finds the upstream and sends it */
void ngx_http_mcp_pending_delete_send(ngx_mcp_zone_t *zone, ngx_str_t *endpoint,
    ngx_str_t *upstream, ngx_str_t *id, ngx_str_t *tenant, ngx_str_t *session,
    ngx_uint_t revision);


/* Origin (ngx_http_mcp_origin.c): whether the request's may use the endpoint */

ngx_uint_t ngx_http_mcp_origin_allowed(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *origin);

/*
 * Likewise a location with mcp_publish or mcp_status, which no web page but
 * those of allowed origins may ask: NGX_DECLINED, or what the handler has to
 * return, for the refusal is sent.
 */
ngx_int_t ngx_http_mcp_guard(ngx_http_request_t *r);


/* answers (ngx_http_mcp_answer.c) */

/*
 * Sends a whole JSON body, or none when body is NULL, and returns what the
 * content handler has to return or ngx_http_finalize_request() to be given.
 */
ngx_int_t ngx_http_mcp_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *body);

/* at most */
#define NGX_HTTP_MCP_PARTS  3

/*
 * Likewise for an error: composes the JSON-RPC body with the id of the message
 * at hand.  message is a sentence for the client.
 */
ngx_int_t ngx_http_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status,
    ngx_int_t code, const char *message);

/* 405 with "Allow" */
ngx_int_t ngx_http_mcp_not_allowed(ngx_http_request_t *r, const char *why);

/*
 * An answer before it is written: the parts of the whole message, or a raw
 * result, or an error; none of these: there is no answer (202).
 */

typedef struct {
    ngx_str_t                 parts[NGX_HTTP_MCP_PARTS];
    ngx_uint_t                nparts;
    ngx_str_t                 result;

    ngx_uint_t                status;     /* of an error that is alone in its
                                             response; 0: it is no error */
    ngx_int_t                 code;       /* an upstream's may be 0 */
    ngx_str_t                 message;
    ngx_str_t                 data;       /* raw, or empty */
} ngx_http_mcp_reply_t;

/* sends it as ngx_http_mcp_answer() does, or makes one text of it */
ngx_int_t ngx_http_mcp_reply_send(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_reply_t *reply);
ngx_int_t ngx_http_mcp_reply_text(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_reply_t *reply, ngx_str_t *text);

/* sets an error, and returns NGX_OK */
ngx_int_t ngx_http_mcp_reply_error(ngx_http_mcp_reply_t *reply,
    ngx_uint_t status, ngx_int_t code, const char *message);
ngx_int_t ngx_http_mcp_reply_internal(ngx_http_mcp_reply_t *reply);

#define ngx_http_mcp_reply_empty(reply)                                       \
    ((reply)->nparts == 0 && (reply)->result.len == 0 && (reply)->status == 0)

/* {"jsonrpc":"2.0","id":ID,"result":RESULT} */
ngx_int_t ngx_http_mcp_result(ngx_http_request_t *r, ngx_str_t *id,
    ngx_str_t *result);


/* errors for exchanges that brought no answer (ngx_http_mcp_outcome.c) */

/* sets the error; x is NULL if there was no exchange */
void ngx_http_mcp_reply_outcome(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply);

/* sends it, with the upstream's headers */
ngx_int_t ngx_http_mcp_refuse_outcome(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome);

/* the number of a raw member "code" */
ngx_int_t ngx_http_mcp_error_code(ngx_str_t *code);

/* sets, or sends, the error for an upstream without a profile */
void ngx_http_mcp_reply_unprobed(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_uint_t status, ngx_str_t *why,
    ngx_http_mcp_reply_t *reply);
ngx_int_t ngx_http_mcp_refuse_unprobed(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_upstream_t *u, ngx_uint_t status, ngx_str_t *why);

/* adds an upstream's headers that reach the client (ngx_http_mcp_headers.c) */
ngx_int_t ngx_http_mcp_copy_headers(ngx_http_request_t *r,
    ngx_http_mcp_exchange_t *x);

/* pushes a response header; value is not copied */
ngx_int_t ngx_http_mcp_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* the filters: of exchanges, of answers, and of refusals of nginx itself */
void ngx_http_mcp_filter_init(void);


/* values (ngx_http_mcp_values.c), evaluated now, not from nginx's cache */

/*
 * Tenant, identity and list key of the request into its context.  NGX_OK;
 * NGX_DECLINED: refused, *why says what; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_evaluate(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, const char **why);

/*
 * The caller's audience, by what its client declares (ngx_mcp_declared.h), or
 * by the letter that a session has for it.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_declares(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_str_t *capabilities);
ngx_int_t ngx_http_mcp_declares_as(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, u_char letter);

/*
 * Likewise the share of the zone that the client has: ctx->caller.share.
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_evaluate_share(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/*
 * Evaluates mcp_deny for the message that ctx->scope describes: NGX_OK,
 * NGX_DECLINED or NGX_ERROR.  A refusal is logged, and *why has its reason.
 * why NULL: a refusal is only returned.
 */
ngx_int_t ngx_http_mcp_denied(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why);

/* likewise for a message of this method and name (decoded) instead */
ngx_int_t ngx_http_mcp_denied_as(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_uint_t method_code, ngx_str_t *name,
    const char **why);

/*
 * filtered(): whether the list that m asks for may differ from the upstream's.
 * filter_result(): edits the upstream's raw result (empty: there is none).
 * The module's own entries are put in front, and tools that mcp_deny refuses
 * to this caller are left out.  *result is in r->pool, or as it was.
 */
ngx_uint_t ngx_http_mcp_list_filtered(ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m);
ngx_int_t ngx_http_mcp_list_filter_result(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m, ngx_str_t *result);

/* likewise in a text, in which the result stands */
ngx_int_t ngx_http_mcp_list_filter_text(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m, ngx_str_t *result,
    ngx_str_t *text);

/* whether lists that others share are not for this request */
ngx_uint_t ngx_http_mcp_list_private(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* a complex value not from any value cached earlier */
ngx_int_t ngx_http_mcp_evaluate_value(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_str_t *value);


/* initialize (ngx_http_mcp_initialize.c) */

/*
 * Makes a session for the caller, within the limits; sets the endpoint, the
 * client and the limits of *in.  NGX_OK: the session is the caller's;
 * NGX_DECLINED: the content handler returns *refusal.
 */
ngx_int_t ngx_http_mcp_session_create(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_session_new_t *in, ngx_int_t *refusal);

ngx_int_t ngx_http_mcp_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);


/* all other messages (ngx_http_mcp_call.c, ngx_http_mcp_notification.c) */

ngx_int_t ngx_http_mcp_call_start(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m);
ngx_int_t ngx_http_mcp_notification(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m);

/* NGX_OK: done() will come; NGX_DECLINED: nobody has to hear it; NGX_ERROR */
ngx_int_t ngx_http_mcp_notification_send(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m,
    void (*done)(ngx_http_mcp_fanout_t *fanout));


/*
 * Batches (ngx_http_mcp_batch.c): elements of an array, each with the values
 * of its own message, pass the preaccess and access phases one after the
 * other, then run side by side.
 */

/* parses the elements; what refuses the whole is noted in the context */
ngx_int_t ngx_http_mcp_batch_scan(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* how many of the elements are requests */
ngx_uint_t ngx_http_mcp_batch_requests(struct ngx_http_mcp_batch_s *batch);

/* for our preaccess handler: the rules begin behind it */
void ngx_http_mcp_batch_phase(struct ngx_http_mcp_batch_s *batch);

/* in the precontent phase, before all other handlers of it */
ngx_int_t ngx_http_mcp_batch_handler(ngx_http_request_t *r);

/* an exchange of an element begins */
void ngx_http_mcp_batch_exchange(struct ngx_http_mcp_batch_s *batch);

/* NGX_OK: all have passed; NGX_DECLINED: refused, *why says what; NGX_ERROR */
ngx_int_t ngx_http_mcp_batch_check(struct ngx_http_mcp_batch_s *batch,
    const char **why);

ngx_int_t ngx_http_mcp_batch(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);


/* "mcp_status" of a location: what its zone holds and has counted */

ngx_int_t ngx_http_mcp_status_handler(ngx_http_request_t *r);


/* variables (ngx_http_mcp_variables.c) */

ngx_int_t ngx_http_mcp_add_variables(ngx_conf_t *cf);


#endif /* _NGX_HTTP_MCP_EDGE_H_INCLUDED_ */
