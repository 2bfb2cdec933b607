
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_message.h"
#include "ngx_mcp_splice.h"


static ngx_str_t ngx_mcp_response_compose(ngx_pool_t *pool, ngx_str_t *id,
    ngx_str_t *member, ngx_str_t *value);
static ngx_uint_t ngx_mcp_table_find(ngx_str_t *table, ngx_uint_t n,
    ngx_str_t *text);


#define NGX_MCP_METHOD_NAME(name, method)  ngx_string(method),

static ngx_str_t  ngx_mcp_methods[] = {
    ngx_string(""),
    NGX_MCP_METHODS(NGX_MCP_METHOD_NAME)
};


static ngx_str_t  ngx_mcp_revisions[] = {
    ngx_string(""),
    ngx_string("2025-03-26"),
    ngx_string("2025-06-18"),
    ngx_string("2025-11-25"),
    ngx_string("2026-07-28")
};


static ngx_str_t  ngx_mcp_levels[] = {
    ngx_string(""),
    ngx_string("debug"),
    ngx_string("info"),
    ngx_string("notice"),
    ngx_string("warning"),
    ngx_string("error"),
    ngx_string("critical"),
    ngx_string("alert"),
    ngx_string("emergency")
};


#define ngx_mcp_table_len(table)  (sizeof(table) / sizeof(table[0]))


ngx_uint_t
ngx_mcp_method_parse(ngx_str_t *text)
{
    return ngx_mcp_table_find(ngx_mcp_methods,
                              ngx_mcp_table_len(ngx_mcp_methods), text);
}


ngx_str_t *
ngx_mcp_method_name(ngx_uint_t code)
{
    return &ngx_mcp_methods[code < NGX_MCP_METHOD_MAX ? code : 0];
}


ngx_mcp_revision_e
ngx_mcp_revision_parse(ngx_str_t *text)
{
    return ngx_mcp_table_find(ngx_mcp_revisions,
                              ngx_mcp_table_len(ngx_mcp_revisions), text);
}


ngx_str_t *
ngx_mcp_revision_name(ngx_uint_t revision)
{
    if (revision >= ngx_mcp_table_len(ngx_mcp_revisions)) {
        revision = 0;
    }

    return &ngx_mcp_revisions[revision];
}


ngx_uint_t
ngx_mcp_level_parse(ngx_str_t *text)
{
    return ngx_mcp_table_find(ngx_mcp_levels,
                              ngx_mcp_table_len(ngx_mcp_levels), text);
}


ngx_int_t
ngx_mcp_error_code(ngx_str_t *raw)
{
    ngx_int_t   n;
    ngx_uint_t  minus;

    minus = (raw->len && raw->data[0] == '-');

    n = ngx_atoi(raw->data + minus, raw->len - minus);

    if (n == NGX_ERROR) {
        return 0;
    }

    return minus ? -n : n;
}


ngx_uint_t
ngx_mcp_error_valid(ngx_mcp_json_t *json, ngx_str_t *text)
{
    u_char     *last;
    ngx_str_t   code;

    if (json->members[NGX_MCP_PATH_ERROR].type != NGX_MCP_JSON_OBJECT
        || json->members[NGX_MCP_PATH_ERROR_CODE].type != NGX_MCP_JSON_NUMBER
        || json->members[NGX_MCP_PATH_ERROR_MESSAGE].type
           != NGX_MCP_JSON_STRING)
    {
        return 0;
    }

    code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

    if (code.data[0] == '-') {
        code.data++;
        code.len--;
    }

    /* clients read 1.0 as an integer */

    last = code.data + code.len;

    while (last > code.data && last[-1] == '0') {
        last--;
    }

    if (last > code.data && last[-1] == '.') {
        code.len = last - 1 - code.data;
    }

    return code.len <= NGX_MCP_ERROR_DIGITS
           && ngx_atoi(code.data, code.len) != NGX_ERROR;
}


ngx_str_t *
ngx_mcp_level_name(ngx_uint_t level)
{
    if (level == NGX_MCP_LEVEL_UNSET || level > NGX_MCP_LEVEL_EMERGENCY) {
        return NULL;
    }

    return &ngx_mcp_levels[level];
}


ngx_str_t
ngx_mcp_error_compose(ngx_pool_t *pool, ngx_uint_t revision, ngx_str_t *id,
    ngx_int_t code, ngx_str_t *message, ngx_str_t *data)
{
    size_t      len;
    u_char     *p;
    ngx_str_t   text, token;

    token = *id;

    if (token.len == 0
        && (revision == NGX_MCP_2025_03_26 || revision == NGX_MCP_2025_06_18))
    {
        ngx_str_set(&token, "null");
    }

    len = sizeof("{\"jsonrpc\":\"2.0\",\"id\":,\"error\":{\"code\":,"
                 "\"message\":,\"data\":}}") - 1
          + token.len + NGX_INT_T_LEN + ngx_mcp_json_escaped_len(message)
          + (data ? data->len : 0);

    text.len = 0;
    text.data = ngx_pnalloc(pool, len);

    if (text.data == NULL) {
        return text;
    }

    p = ngx_sprintf(text.data, "{\"jsonrpc\":\"2.0\",");

    if (token.len) {
        p = ngx_sprintf(p, "\"id\":%V,", &token);
    }

    p = ngx_sprintf(p, "\"error\":{\"code\":%i,\"message\":", code);
    p = ngx_mcp_json_escape(p, message);

    if (data) {
        p = ngx_sprintf(p, ",\"data\":%V", data);
    }

    *p++ = '}';
    *p++ = '}';

    text.len = p - text.data;

    return text;
}


ngx_str_t
ngx_mcp_request_compose(ngx_pool_t *pool, ngx_str_t *id, ngx_str_t *method,
    ngx_str_t *params)
{
    u_char     *p;
    ngx_str_t   text;

    text.len = 0;
    text.data = ngx_pnalloc(pool,
                        sizeof("{\"jsonrpc\":\"2.0\",\"id\":,\"method\":\"\","
                               "\"params\":}") - 1
                        + id->len + method->len + params->len);

    if (text.data == NULL) {
        return text;
    }

    p = ngx_sprintf(text.data, "{\"jsonrpc\":\"2.0\"");

    if (id->len) {
        p = ngx_sprintf(p, ",\"id\":%V", id);
    }

    p = ngx_sprintf(p, ",\"method\":\"%V\"", method);

    if (params->len) {
        p = ngx_sprintf(p, ",\"params\":%V", params);
    }

    *p++ = '}';

    text.len = p - text.data;

    return text;
}


ngx_str_t
ngx_mcp_uri_compose(ngx_pool_t *pool, ngx_str_t *uri)
{
    u_char     *p;
    ngx_str_t   text;

    text.len = 0;
    text.data = ngx_pnalloc(pool, sizeof("{\"uri\":}") - 1
                                  + ngx_mcp_json_escaped_len(uri));

    if (text.data == NULL) {
        return text;
    }

    p = ngx_cpymem(text.data, "{\"uri\":", sizeof("{\"uri\":") - 1);
    p = ngx_mcp_json_escape(p, uri);
    *p++ = '}';

    text.len = p - text.data;

    return text;
}


ngx_str_t
ngx_mcp_result_compose(ngx_pool_t *pool, ngx_str_t *id, ngx_str_t *result)
{
    ngx_str_t  member = ngx_string(",\"result\":");

    return ngx_mcp_response_compose(pool, id, &member, result);
}


ngx_str_t
ngx_mcp_refusal_compose(ngx_pool_t *pool, ngx_str_t *id, ngx_str_t *error)
{
    ngx_str_t  member = ngx_string(",\"error\":");

    return ngx_mcp_response_compose(pool, id, &member, error);
}


static ngx_str_t
ngx_mcp_response_compose(ngx_pool_t *pool, ngx_str_t *id, ngx_str_t *member,
    ngx_str_t *value)
{
    u_char     *p;
    ngx_str_t   text;

    text.len = 0;
    text.data = ngx_pnalloc(pool,
                        sizeof("{\"jsonrpc\":\"2.0\",\"id\":}") - 1
                        + id->len + member->len + value->len);

    if (text.data == NULL) {
        return text;
    }

    p = ngx_cpymem(text.data, "{\"jsonrpc\":\"2.0\",\"id\":",
                   sizeof("{\"jsonrpc\":\"2.0\",\"id\":") - 1);
    p = ngx_cpymem(p, id->data, id->len);
    p = ngx_cpymem(p, member->data, member->len);
    p = ngx_cpymem(p, value->data, value->len);
    *p++ = '}';

    text.len = p - text.data;

    return text;
}


ngx_str_t
ngx_mcp_message_replace(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_json_t *json, ngx_mcp_path_e *paths, ngx_str_t *value)
{
    ngx_uint_t       n;
    ngx_mcp_edit_t   edits[2];
    ngx_mcp_span_t  *span;

    for (n = 0; n < 2 && paths[n] != NGX_MCP_PATH_NONE; n++) {
        span = &json->members[paths[n]];

        edits[n].start = span->start;
        edits[n].end = span->end;
        edits[n].text = *value;
    }

    return ngx_mcp_splice(pool, text, edits, n);
}


/*
 * Returns the number of the entry that is equal to a text; 0: no entry is.  The
 * last bytes are compared first, as entries differ most in them.
 */

static ngx_uint_t
ngx_mcp_table_find(ngx_str_t *table, ngx_uint_t n, ngx_str_t *text)
{
    u_char      last;
    ngx_uint_t  i;

    if (text->len == 0) {
        return 0;
    }

    last = text->data[text->len - 1];

    for (i = 1; i < n; i++) {
        if (table[i].len == text->len && table[i].data[text->len - 1] == last
            && ngx_mcp_equal(&table[i], text))
        {
            return i;
        }
    }

    return 0;
}
