
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A request to an endpoint, from the preaccess phase to its answer: reading
 * and scanning, refusals, answers that the module makes, and the filters that
 * give refusals of nginx itself a JSON-RPC body.
 */

#ifndef _NGX_HTTP_MCP_EDGE_H_INCLUDED_
#define _NGX_HTTP_MCP_EDGE_H_INCLUDED_


#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_fanout.h"


/* phases (ngx_http_mcp_request.c) */

ngx_int_t ngx_http_mcp_preaccess_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_mcp_content_handler(ngx_http_request_t *r);

/*
 * Sets *body to the body that was read, in one piece, which may be a copy in
 * r->pool.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_request_body(ngx_http_request_t *r, ngx_str_t *body);

/* contexts (ngx_http_mcp_ctx.c) */

/*
 * Keeps the request open without an answer; the content handler returns the
 * result.  reading: the read event handler meanwhile.
 */
ngx_int_t ngx_http_mcp_suspend(ngx_http_request_t *r,
    ngx_http_event_handler_pt reading);

/*
 * The manner of clients with sessions, and of clients whose manner is not known
 * yet.  It is set before workers start.
 */
extern ngx_http_mcp_client_t  *ngx_http_mcp_client_default;

/*
 * Return the context of a request.  The first makes a new one, the second only
 * if the request has none.  NULL: no memory.
 */
ngx_http_mcp_ctx_t *ngx_http_mcp_make_ctx(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf);

static ngx_inline ngx_http_mcp_ctx_t *
ngx_http_mcp_get_ctx(ngx_http_request_t *r, ngx_http_mcp_loc_conf_t *mlcf)
{
    ngx_http_mcp_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_mcp_module);

    return ctx ? ctx : ngx_http_mcp_make_ctx(r, mlcf);
}


/*
 * Sets *scope to the values that variables have for a message; texts are in
 * r->pool.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_scan_scope(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_http_mcp_scope_t *scope);

/* as ngx_http_mcp_scan_scope(), for a message whose subject is not valid */
ngx_int_t ngx_http_mcp_scan_method(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_http_mcp_scope_t *scope);

/*
 * Sets *value to a string of the message, decoded, with "?" for control
 * characters; *value stays as it is if the message has no such string.  NGX_OK
 * or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_ctx_value(ngx_http_request_t *r, ngx_mcp_message_t *m,
    ngx_mcp_path_e path, ngx_str_t *value);

/*
 * Replaces control characters of a value by "?"; a value with such characters
 * is copied to the pool.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_printable(ngx_pool_t *pool, ngx_str_t *value);

/* sets the header values of the context (ngx_http_mcp_headers_in.c) */
void ngx_http_mcp_read_headers(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* returns the value of a header without white space around it */
ngx_str_t ngx_http_mcp_trim(ngx_str_t value);

/* returns whether Content-Type is that of JSON */
ngx_uint_t ngx_http_mcp_is_json(ngx_http_request_t *r);

/* finds the first header with a name, in any case of letters, or NULL */
#define ngx_http_mcp_find_header(headers, name)                               \
    ngx_http_mcp_search_header(headers, name, sizeof(name) - 1)

ngx_table_elt_t *ngx_http_mcp_search_header(ngx_list_t *headers,
    const char *name, size_t len);

/*
 * Looks the request's session up by id and endpoint alone, for variables that
 * are read before the content phase finds the session.  Only the first call
 * for a request does this.
 */
void ngx_http_mcp_verify_session(ngx_http_mcp_ctx_t *ctx);

/* makes a background request (see ngx_http_mcp_upstream.h) */
ngx_http_request_t *ngx_http_mcp_background_request(
    ngx_http_conf_ctx_t *conf, ngx_http_mcp_audience_t *audience);

/*
 * Lets variables have the values of *scope; encoded: the values are
 * percent-encoded (see ngx_http_mcp_upstream.h).
 */
void ngx_http_mcp_compute_scope(ngx_http_request_t *r,
    ngx_http_mcp_scope_t *scope, ngx_uint_t encoded);

/*
 * Sends the DELETE of an upstream session, which waited in the zone
 * (ngx_http_mcp_client_legacy.c).
 */
void ngx_http_mcp_pending_delete_send(ngx_mcp_zone_t *zone,
    ngx_mcp_pending_delete_t *due);


/*
 * Returns whether pages of an Origin may use the endpoint
 * (ngx_http_mcp_origin.c).
 */

ngx_uint_t ngx_http_mcp_origin_allowed(ngx_http_request_t *r,
    ngx_http_mcp_loc_conf_t *mlcf, ngx_str_t *origin);

/* returns the host of an Origin; empty: the text is not a valid Origin */
ngx_str_t ngx_http_mcp_origin_host(ngx_str_t *origin);

/* returns an Origin without the default port of its scheme */
ngx_str_t ngx_http_mcp_origin_short(ngx_str_t *origin);

/*
 * Guards a location with mcp_publish or mcp_status: refuses requests of web
 * pages of other origins, and other methods than "methods" (bits), whose names
 * are in "allow".  NGX_DECLINED: the request is allowed; else the content
 * handler returns the result.
 */
ngx_int_t ngx_http_mcp_guard(ngx_http_request_t *r, ngx_uint_t methods,
    const char *allow);


/* answers (ngx_http_mcp_answer.c) */

/*
 * Sends a response with a whole JSON body, or without a body if body is NULL.
 * The content handler returns the result, or gives it to
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_mcp_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *body);

/* the most parts of a reply */
#define NGX_HTTP_MCP_PARTS  3

/*
 * Sends a JSON-RPC error with the id of the request's message, and returns as
 * ngx_http_mcp_answer() does.  status: HTTP status; code: JSON-RPC code;
 * message: a sentence for the client.
 */
ngx_int_t ngx_http_mcp_refuse(ngx_http_request_t *r, ngx_uint_t status,
    ngx_int_t code, const char *message);

/* refuses the request with status 405 and "Allow"; why: a sentence */
ngx_int_t ngx_http_mcp_not_allowed(ngx_http_request_t *r, const char *why);

/*
 * An answer that is not written yet: either the parts of the whole message, or
 * a raw result, or an error.  An empty reply means status 202 without a body.
 */

typedef struct {
    ngx_str_t                 parts[NGX_HTTP_MCP_PARTS];
    ngx_uint_t                nparts;     /* number of parts; 0: the reply is a
                                             result or an error */
    ngx_str_t                 result;     /* raw result, or empty */

    ngx_uint_t                status;     /* HTTP status of an error, unless it
                                             is in a batch or on a stream; 0:
                                             the reply is no error */
    ngx_int_t                 code;       /* JSON-RPC code of the error; an
                                             upstream's code may be 0 */
    ngx_str_t                 message;    /* message of the error */
    ngx_str_t                 data;       /* raw data of the error, or empty */
} ngx_http_mcp_reply_t;

/*
 * ngx_http_mcp_reply_send() sends a reply and returns as ngx_http_mcp_answer()
 * does.  ngx_http_mcp_reply_text() sets *text to the message in one piece, or
 * to an empty text if the reply is empty, and returns NGX_OK or NGX_ERROR.  id:
 * the raw id of the message.
 */
ngx_int_t ngx_http_mcp_reply_send(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_reply_t *reply);
ngx_int_t ngx_http_mcp_reply_text(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_reply_t *reply, ngx_str_t *text);

/* each sets the reply to an empty result or an error, and returns NGX_OK */
ngx_int_t ngx_http_mcp_reply_ok(ngx_http_mcp_reply_t *reply);
ngx_int_t ngx_http_mcp_reply_error(ngx_http_mcp_reply_t *reply,
    ngx_uint_t status, ngx_int_t code, const char *message);
ngx_int_t ngx_http_mcp_reply_invalid(ngx_http_mcp_reply_t *reply,
    const char *message);
ngx_int_t ngx_http_mcp_reply_no_method(ngx_http_mcp_reply_t *reply);
ngx_int_t ngx_http_mcp_reply_internal(ngx_http_mcp_reply_t *reply);

#define ngx_http_mcp_reply_empty(reply)                                       \
    ((reply)->nparts == 0 && (reply)->result.len == 0 && (reply)->status == 0)

/*
 * Sends {"jsonrpc":"2.0","id":ID,"result":RESULT}, and returns as
 * ngx_http_mcp_answer() does.
 */
ngx_int_t ngx_http_mcp_result(ngx_http_request_t *r, ngx_str_t *id,
    ngx_str_t *result);


/* errors for exchanges that brought no answer (ngx_http_mcp_outcome.c) */

/* sets the reply to the error for an outcome; x NULL: there was no exchange */
void ngx_http_mcp_reply_outcome(ngx_http_request_t *r, ngx_str_t *id,
    ngx_http_mcp_upstream_t *u, ngx_http_mcp_exchange_t *x,
    ngx_http_mcp_outcome_e outcome, ngx_http_mcp_reply_t *reply);

/* sets the reply to the error for an upstream without a profile */
void ngx_http_mcp_reply_unprobed(ngx_http_request_t *r,
    ngx_http_mcp_upstream_t *u, ngx_uint_t status, ngx_str_t *why,
    ngx_http_mcp_reply_t *reply);

/* sets the reply to the error for an upstream whose URI has a dot segment */
void ngx_http_mcp_reply_dots(ngx_http_request_t *r, ngx_http_mcp_upstream_t *u,
    ngx_http_mcp_reply_t *reply);

/*
 * Adds to the response the headers of an upstream's response that clients get.
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_copy_headers(ngx_http_request_t *r,
    ngx_http_mcp_exchange_t *x);

/* installs the filters for exchanges, answers and refusals of nginx itself */
void ngx_http_mcp_filter_init(void);


/*
 * Values (ngx_http_mcp_values.c).  They are evaluated at each call: values that
 * nginx has cached for the request are not used.
 */

/*
 * Sets tenant, identity and list key of the caller in the context.  NGX_OK;
 * NGX_DECLINED: the request is refused, and *why is the reason; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_evaluate(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, const char **why);

/*
 * Set the caller's audience: the first by the capabilities that its client
 * declares (a raw object, or empty), the second by the letter that a session
 * keeps for declared capabilities (ngx_mcp_declared.h).  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_declares(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_str_t *capabilities);
ngx_int_t ngx_http_mcp_declares_as(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, u_char letter);

/*
 * Sets ctx->caller.share, the name of the client's share of the zone, unless it
 * is set.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_evaluate_share(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/*
 * Evaluates mcp_deny for the message that ctx->scope describes.  NGX_OK: the
 * message is allowed; NGX_DECLINED: it is refused, the refusal is logged, and
 * *why is the reason; NGX_ERROR.  why NULL: a refusal is not logged.
 */
ngx_int_t ngx_http_mcp_denied(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx,
    const char **why);

/* evaluates mcp_deny as if the message had this method and decoded name */
ngx_int_t ngx_http_mcp_denied_as(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_uint_t method_code, ngx_str_t *name,
    const char **why);

/*
 * ..._edited() returns whether the list that m asks for may differ from the
 * upstream's list.  ..._edit_result() edits the upstream's raw result, or makes
 * a result if *result is empty: it puts the module's own entries in front, and
 * leaves out tools that mcp_deny refuses to this caller.  *result is then in
 * r->pool, or unchanged.  NGX_OK or NGX_ERROR.
 */
ngx_uint_t ngx_http_mcp_list_edited(ngx_http_mcp_ctx_t *ctx,
    ngx_mcp_message_t *m);
ngx_int_t ngx_http_mcp_list_edit_result(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m, ngx_str_t *result);

/*
 * Edits, as ngx_http_mcp_list_edit_result() does, a raw result within *text.
 * If the result changes, *text becomes a copy in r->pool with the new result.
 */
ngx_int_t ngx_http_mcp_list_edit_text(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m, ngx_str_t *result,
    ngx_str_t *text);

/* returns whether the request must not get a list that is kept for others */
ngx_uint_t ngx_http_mcp_list_private(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* evaluates a complex value without values that nginx cached earlier */
ngx_int_t ngx_http_mcp_evaluate_value(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, const char *directive, ngx_str_t *value);


/*
 * The principal of a caller without a session (ngx_http_mcp_principal.c), which
 * tells it from others.  The first sets ctx->principal and ctx->session_id,
 * both in r->pool; the second is the handler principal() of upstream requests
 * for a client.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_principal(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);
ngx_int_t ngx_http_mcp_principal_key(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *key);


/* initialize (ngx_http_mcp_initialize.c) */

/*
 * Makes a session for the caller, within the limits.  Sets endpoint, client
 * and limits of *in; the caller of this function sets the rest.  NGX_DECLINED:
 * the session is in ctx->caller; else it was refused, and the content handler
 * returns the result.
 */
ngx_int_t ngx_http_mcp_session_create(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_session_new_t *in);

ngx_int_t ngx_http_mcp_initialize(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);


/*
 * Handles subscriptions/listen (2026-07-28, ngx_http_mcp_listen.c) of a caller
 * that may use the endpoint; the content handler returns the result.
 * Subscribes to all that the filter in params names, then opens the stream,
 * which begins with an acknowledgement of the subscriptions that were accepted.
 */
ngx_int_t ngx_http_mcp_listen(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);


/* all other messages (ngx_http_mcp_call.c, ngx_http_mcp_notification.c) */

ngx_int_t ngx_http_mcp_call_start(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m);
ngx_int_t ngx_http_mcp_notification(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m);

/*
 * Sends a notification to the upstreams that it concerns.  NGX_OK: done() will
 * be called; NGX_DECLINED: the notification concerns no upstream; NGX_BUSY: the
 * zone has no room for the response; NGX_ERROR.
 */
ngx_int_t ngx_http_mcp_notification_send(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx, ngx_mcp_message_t *m,
    void (*done)(ngx_http_mcp_fanout_t *fanout));


/*
 * Batches (ngx_http_mcp_batch.c): elements of an array pass the preaccess and
 * access phases one after the other, each with the values of its own message,
 * then run side by side.
 */

/*
 * Parses the elements of a batch.  Each element will run the phases from the
 * handler on that follows the current one.  A fault for which the whole batch
 * is refused is noted in the context.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_http_mcp_batch_scan(ngx_http_request_t *r,
    ngx_http_mcp_ctx_t *ctx);

/* returns how many of the elements are requests */
ngx_uint_t ngx_http_mcp_batch_requests(struct ngx_http_mcp_batch_s *batch);

/* the handler of the precontent phase, which runs before all others there */
ngx_int_t ngx_http_mcp_batch_handler(ngx_http_request_t *r);

/*
 * Lets limit_req and limit_conn of an upstream's location count the exchange of
 * an element, which begins.
 */
void ngx_http_mcp_batch_exchange(struct ngx_http_mcp_batch_s *batch);

/*
 * Returns NGX_OK: all elements have passed the phases; NGX_DECLINED: the batch
 * is refused, and *why is the reason; NGX_ERROR: not all elements were checked
 * (logged).
 */
ngx_int_t ngx_http_mcp_batch_check(struct ngx_http_mcp_batch_s *batch,
    const char **why);

ngx_int_t ngx_http_mcp_batch(ngx_http_request_t *r, ngx_http_mcp_ctx_t *ctx);


/* content handler of "mcp_status": shows contents and counters of the zone */

ngx_int_t ngx_http_mcp_status_handler(ngx_http_request_t *r);


/* variables (ngx_http_mcp_variables.c) */

ngx_int_t ngx_http_mcp_add_variables(ngx_conf_t *cf);


#endif /* _NGX_HTTP_MCP_EDGE_H_INCLUDED_ */
