
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include "ngx_http_mcp_request_state.h"
#include "ngx_http_mcp_edge.h"
#include "ngx_mcp_zone.h"


#define NGX_HTTP_MCP_STATE_PREFIX  "nginx-mcp-1."
#define NGX_HTTP_MCP_STATE_MAC     32

#define NGX_HTTP_MCP_STATE_LEN     sizeof(ngx_http_mcp_request_state_t)

#define NGX_HTTP_MCP_STATE_SIZE                                               \
    (NGX_HTTP_MCP_STATE_LEN + NGX_HTTP_MCP_STATE_MAC)


static ngx_int_t ngx_http_mcp_request_state_mac(ngx_http_mcp_call_t *call,
    u_char *packed, u_char *mac);
static u_char *ngx_http_mcp_request_state_digest(u_char *p, ngx_str_t *text);


ngx_str_t
ngx_http_mcp_request_state_make(ngx_http_mcp_call_t *call,
    ngx_http_mcp_request_state_t *state)
{
    u_char     *p, packed[NGX_HTTP_MCP_STATE_SIZE];
    ngx_str_t   out, from, to;

    out.len = 0;
    out.data = NULL;

    state->generation = ngx_mcp_zone_generation(call->ctx->conf->zone);

    p = ngx_cpymem(packed, state, NGX_HTTP_MCP_STATE_LEN);

    if (ngx_http_mcp_request_state_mac(call, packed, p) != NGX_OK) {
        return out;
    }

    from.data = packed;
    from.len = NGX_HTTP_MCP_STATE_SIZE;

    p = ngx_pnalloc(call->r->pool, sizeof("\"" NGX_HTTP_MCP_STATE_PREFIX "\"")
                                   + ngx_base64_encoded_length(from.len));
    if (p == NULL) {
        return out;
    }

    out.data = p;

    p = ngx_cpymem(p, "\"" NGX_HTTP_MCP_STATE_PREFIX,
                   sizeof("\"" NGX_HTTP_MCP_STATE_PREFIX) - 1);
    to.data = p;

    ngx_encode_base64url(&to, &from);

    p += to.len;
    *p++ = '"';

    out.len = p - out.data;

    return out;
}


ngx_int_t
ngx_http_mcp_request_state_read(ngx_http_mcp_call_t *call,
    ngx_http_mcp_request_state_t *state)
{
    u_char     mac[NGX_HTTP_MCP_STATE_MAC];
    ngx_str_t  text, packed;

    static ngx_str_t  prefix = ngx_string(NGX_HTTP_MCP_STATE_PREFIX);

    text = ngx_mcp_message_string(call->message, NGX_MCP_PATH_STATE,
                                  call->r->pool);

    if (text.data == NULL || text.len < prefix.len
        || ngx_memcmp(text.data, prefix.data, prefix.len) != 0)
    {
        return NGX_DECLINED;
    }

    text.data += prefix.len;
    text.len -= prefix.len;

    packed.data = ngx_pnalloc(call->r->pool,
                              ngx_base64_decoded_length(text.len));
    if (packed.data == NULL) {
        return NGX_ERROR;
    }

    /* no other text may stand for the same bytes */

    if (ngx_decode_base64url(&packed, &text) != NGX_OK
        || packed.len != NGX_HTTP_MCP_STATE_SIZE
        || text.len != (NGX_HTTP_MCP_STATE_SIZE * 8 + 5) / 6)
    {
        return NGX_ABORT;
    }

    if (ngx_http_mcp_request_state_mac(call, packed.data, mac) != NGX_OK) {
        return NGX_ERROR;
    }

    if (CRYPTO_memcmp(mac, packed.data + NGX_HTTP_MCP_STATE_LEN,
                      NGX_HTTP_MCP_STATE_MAC)
        != 0)
    {
        return NGX_ABORT;
    }

    ngx_memcpy(state, packed.data, NGX_HTTP_MCP_STATE_LEN);

    return NGX_OK;
}


/*
 * Makes the HMAC of the place and of a digest of each other text; as digests
 * have one length, texts cannot run into each other.
 */

static ngx_int_t
ngx_http_mcp_request_state_mac(ngx_http_mcp_call_t *call, u_char *packed,
    u_char *mac)
{
    u_char             *p, own[NGX_MCP_ZONE_KEY];
    u_char              bound[NGX_HTTP_MCP_STATE_LEN
                              + 8 * NGX_HTTP_MCP_STATE_MAC];
    ngx_str_t           key, subject, arguments, method, principal;
    ngx_uint_t          i;
    ngx_str_t          *parts[8];
    unsigned int        n;
    ngx_mcp_caller_t   *caller;
    ngx_mcp_message_t  *m;

    m = call->message;
    caller = &call->ctx->caller;

    if (ngx_http_mcp_evaluate_share(call->r, call->ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    /*
     * An identity stays when its token is replaced; without an identity, the
     * headers tell callers apart.
     */

    ngx_str_null(&principal);

    if (caller->identity.len == 0) {

        if (ngx_http_mcp_principal(call->r, call->ctx) != NGX_OK) {
            return NGX_ERROR;
        }

        principal = call->ctx->principal;
    }

    method = *ngx_mcp_method_name(m->method_code);
    subject = ngx_mcp_message_string(m, m->subject, call->r->pool);
    arguments = ngx_mcp_message_member(m, NGX_MCP_PATH_ARGUMENTS);

    parts[0] = &call->ctx->conf->name;
    parts[1] = &caller->tenant;
    parts[2] = &caller->identity;
    parts[3] = &caller->share;
    parts[4] = &principal;
    parts[5] = &method;
    parts[6] = &subject;
    parts[7] = &arguments;

    p = ngx_cpymem(bound, packed, NGX_HTTP_MCP_STATE_LEN);

    for (i = 0; i < 8; i++) {
        p = ngx_http_mcp_request_state_digest(p, parts[i]);

        if (p == NULL) {
            return NGX_ERROR;
        }
    }

    key = call->ctx->conf->state_key;

    if (key.len == 0) {
        ngx_mcp_zone_key(call->ctx->conf->zone, own);

        key.data = own;
        key.len = NGX_MCP_ZONE_KEY;
    }

    return HMAC(EVP_sha256(), key.data, (int) key.len, bound, p - bound, mac,
                &n)
           ? NGX_OK : NGX_ERROR;
}


static u_char *
ngx_http_mcp_request_state_digest(u_char *p, ngx_str_t *text)
{
    unsigned int  n;

    if (!EVP_Digest(text->len ? text->data : (u_char *) "", text->len, p, &n,
                    EVP_sha256(), NULL))
    {
        return NULL;
    }

    return p + n;
}
