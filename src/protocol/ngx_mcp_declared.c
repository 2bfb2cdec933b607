
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_declared.h"
#include "ngx_mcp_json.h"
#include "ngx_mcp_splice.h"


#define NGX_MCP_DECLARED_ALL          0x0f
#define NGX_MCP_DECLARED_ELICITATION  (NGX_MCP_DECLARED_FORM                  \
                                       |NGX_MCP_DECLARED_URL)

/* bytes of the longest text that ngx_mcp_declared_compose() makes */
#define NGX_MCP_DECLARED_LEN          128


static ngx_uint_t ngx_mcp_declared_object(ngx_str_t *object,
    const char *name);


ngx_uint_t
ngx_mcp_declared(ngx_str_t *capabilities)
{
    ngx_str_t   elicitation;
    ngx_uint_t  declared;

    declared = 0;

    if (capabilities->len <= 2) {
        return 0;
    }

    if (ngx_mcp_declared_object(capabilities, "sampling")) {
        declared |= NGX_MCP_DECLARED_SAMPLING;
    }

    if (ngx_mcp_declared_object(capabilities, "roots")) {
        declared |= NGX_MCP_DECLARED_ROOTS;
    }

    if (ngx_mcp_declared_object(capabilities, "elicitation")) {
        elicitation = ngx_mcp_json_get(capabilities, "elicitation");

        if (ngx_mcp_declared_object(&elicitation, "url")) {
            declared |= NGX_MCP_DECLARED_URL;
        }

        if (!(declared & NGX_MCP_DECLARED_URL)
            || ngx_mcp_declared_object(&elicitation, "form"))
        {
            declared |= NGX_MCP_DECLARED_FORM;
        }
    }

    return declared;
}


/* returns whether an object has a member with this name that is an object */

static ngx_uint_t
ngx_mcp_declared_object(ngx_str_t *object, const char *name)
{
    ngx_str_t  value;

    value = ngx_mcp_json_get(object, name);

    return value.len && value.data[0] == '{';
}


ngx_str_t
ngx_mcp_declared_compose(ngx_pool_t *pool, ngx_uint_t declared)
{
    u_char      *p;
    ngx_str_t    out;
    ngx_uint_t   i;

    /* the brace replaces the comma of the first text */

    static struct {
        ngx_uint_t  mask;
        ngx_uint_t  bits;
        ngx_str_t   text;
    } members[] = {
        { NGX_MCP_DECLARED_SAMPLING, NGX_MCP_DECLARED_SAMPLING,
          ngx_string(",\"sampling\":{}") },
        { NGX_MCP_DECLARED_ELICITATION, NGX_MCP_DECLARED_FORM,
          ngx_string(",\"elicitation\":{}") },
        { NGX_MCP_DECLARED_ELICITATION, NGX_MCP_DECLARED_URL,
          ngx_string(",\"elicitation\":{\"url\":{}}") },
        { NGX_MCP_DECLARED_ELICITATION, NGX_MCP_DECLARED_ELICITATION,
          ngx_string(",\"elicitation\":{\"form\":{},\"url\":{}}") },
        { NGX_MCP_DECLARED_ROOTS, NGX_MCP_DECLARED_ROOTS,
          ngx_string(",\"roots\":{}") }
    };

    out.len = 0;
    out.data = ngx_pnalloc(pool, NGX_MCP_DECLARED_LEN);

    if (out.data == NULL) {
        return out;
    }

    p = ngx_cpymem(out.data, "{", 1);

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {

        if ((declared & members[i].mask) == members[i].bits) {
            p = ngx_cpymem(p - (p == out.data + 1), members[i].text.data,
                           members[i].text.len);
            out.data[0] = '{';
        }
    }

    *p++ = '}';

    out.len = p - out.data;

    return out;
}


ngx_str_t
ngx_mcp_audience_key(ngx_pool_t *pool, u_char letter, ngx_str_t *list_key)
{
    ngx_str_t  key;

    static u_char  letters[] = "abcdefghijklmnop";

    key.len = 1 + list_key->len;
    key.data = &letters[(letter - ngx_mcp_declared_letter(0))
                        & NGX_MCP_DECLARED_ALL];

    if (list_key->len) {
        key.data = ngx_pnalloc(pool, key.len);

        if (key.data) {
            key.data[0] = letter;
            ngx_memcpy(key.data + 1, list_key->data, list_key->len);
        }
    }

    return key;
}


ngx_int_t
ngx_mcp_audience_key_parse(ngx_str_t *key, ngx_uint_t *declared,
    ngx_str_t *list_key)
{
    if (key->len == 0 || key->data[0] < ngx_mcp_declared_letter(0)
        || key->data[0] > ngx_mcp_declared_letter(NGX_MCP_DECLARED_ALL))
    {
        return NGX_DECLINED;
    }

    *declared = key->data[0] - ngx_mcp_declared_letter(0);
    list_key->data = key->data + 1;
    list_key->len = key->len - 1;

    return NGX_OK;
}
