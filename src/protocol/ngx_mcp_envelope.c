
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_envelope.h"


/* the depth of objects in a schema down to which annotations are looked for */
#define NGX_MCP_PARAMS_DEPTH  16

/* bytes of the longest protocol version, quotes included */
#define NGX_MCP_VERSION_MAX   64

/* the most digits of an integer that all JSON parsers read exactly */
#define NGX_MCP_DIGITS_MAX    18


/* bytes that are encoded at a time, a multiple of 3 */
#define NGX_MCP_BASE64_GROUP  48


/* the value of an integer */

typedef struct {
    uint64_t                value;
    ngx_uint_t              negative;
} ngx_mcp_integer_t;


typedef struct {
    ngx_pool_t             *pool;
    ngx_mcp_param_pt        next;
    void                   *data;
} ngx_mcp_params_t;


static ngx_int_t ngx_mcp_integer_parse(ngx_str_t *text,
    ngx_mcp_integer_t *integer);
static ngx_int_t ngx_mcp_params_object(ngx_mcp_params_t *params,
    ngx_str_t *schema, ngx_str_t *value, ngx_uint_t depth);
static ngx_int_t ngx_mcp_params_property(ngx_mcp_params_t *params,
    ngx_str_t *name, ngx_str_t *schema, ngx_str_t *value, ngx_uint_t depth);
static ngx_str_t ngx_mcp_params_find(ngx_str_t *object, ngx_str_t *name,
    ngx_uint_t once, ngx_pool_t *pool);


static ngx_str_t  ngx_mcp_base64_head = ngx_string("=?base64?");
static ngx_str_t  ngx_mcp_base64_tail = ngx_string("?=");

static ngx_str_t  ngx_mcp_input_schema = ngx_string("inputSchema");
static ngx_str_t  ngx_mcp_properties = ngx_string("properties");
static ngx_str_t  ngx_mcp_annotation = ngx_string("x-mcp-header");


ngx_int_t
ngx_mcp_envelope_read(ngx_mcp_message_t *m, ngx_mcp_envelope_t *envelope,
    const char **why)
{
    u_char           buf[NGX_MCP_VERSION_MAX];
    ngx_str_t        raw, text;
    ngx_mcp_span_t  *members;

    members = m->json.members;
    ngx_memzero(envelope, sizeof(ngx_mcp_envelope_t));

    if (members[NGX_MCP_PATH_META].type != NGX_MCP_JSON_OBJECT) {
        *why = "params._meta must be an object with the members "
               "\"io.modelcontextprotocol/protocolVersion\" and "
               "\"io.modelcontextprotocol/clientCapabilities\"";
        return NGX_DECLINED;
    }

    if (members[NGX_MCP_PATH_META_VERSION].type != NGX_MCP_JSON_STRING) {
        *why = "\"io.modelcontextprotocol/protocolVersion\" in params._meta "
               "must be a string";
        return NGX_DECLINED;
    }

    if (members[NGX_MCP_PATH_META_CAPABILITIES].type != NGX_MCP_JSON_OBJECT) {
        *why = "\"io.modelcontextprotocol/clientCapabilities\" in params._meta "
               "must be an object";
        return NGX_DECLINED;
    }

    switch (members[NGX_MCP_PATH_META_CLIENT].type) {

    case NGX_MCP_JSON_ABSENT:
    case NGX_MCP_JSON_OBJECT:
        break;

    default:
        *why = "\"io.modelcontextprotocol/clientInfo\" in params._meta must "
               "be an object";
        return NGX_DECLINED;
    }

    raw = ngx_mcp_message_member(m, NGX_MCP_PATH_META_LEVEL);

    if (raw.len) {
        text.data = buf;
        text.len = 0;

        if (raw.data[0] == '"' && raw.len <= sizeof(buf)) {
            text.len = ngx_mcp_json_unescape(buf, &raw) - buf;
        }

        envelope->level = ngx_mcp_level_parse(&text);

        if (envelope->level == NGX_MCP_LEVEL_UNSET) {
            *why = "\"io.modelcontextprotocol/logLevel\" in params._meta must "
                   "be one of debug, info, notice, warning, error, critical, "
                   "alert, emergency";
            return NGX_DECLINED;
        }
    }

    envelope->capabilities = ngx_mcp_message_member(m,
                                              NGX_MCP_PATH_META_CAPABILITIES);
    envelope->requested = ngx_mcp_message_member(m, NGX_MCP_PATH_META_VERSION);

    if (envelope->requested.len <= sizeof(buf)) {
        text.data = buf;
        text.len = ngx_mcp_json_unescape(buf, &envelope->requested) - buf;

        envelope->revision = ngx_mcp_revision_parse(&text);
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_header_is(ngx_str_t *header, ngx_str_t *text)
{
    size_t      i;
    u_char     *p, buf[ngx_base64_encoded_length(NGX_MCP_BASE64_GROUP)];
    ngx_str_t   group, encoded, *head, *tail;

    head = &ngx_mcp_base64_head;
    tail = &ngx_mcp_base64_tail;

    if (header->len < head->len + tail->len
        || ngx_memcmp(header->data, head->data, head->len) != 0
        || ngx_memcmp(header->data + header->len - tail->len, tail->data,
                      tail->len)
           != 0)
    {
        return ngx_mcp_equal(header, text) ? NGX_OK : NGX_DECLINED;
    }

    /* a text has only one encoding that is valid */

    if (header->len - head->len - tail->len
        != ngx_base64_encoded_length(text->len))
    {
        return NGX_DECLINED;
    }

    p = header->data + head->len;
    encoded.data = buf;

    for (i = 0; i < text->len; i += group.len) {
        group.data = text->data + i;
        group.len = ngx_min(text->len - i, NGX_MCP_BASE64_GROUP);

        ngx_encode_base64(&encoded, &group);

        if (ngx_memcmp(p, encoded.data, encoded.len) != 0) {
            return NGX_DECLINED;
        }

        p += encoded.len;
    }

    return NGX_OK;
}


ngx_int_t
ngx_mcp_header_is_json(ngx_str_t *header, ngx_str_t *raw, ngx_pool_t *pool)
{
    ngx_int_t          rc;
    ngx_str_t          text;
    ngx_mcp_integer_t  a, b;

    rc = ngx_mcp_json_text(pool, raw, &text);

    if (rc != NGX_DECLINED) {
        return rc == NGX_OK ? ngx_mcp_header_is(header, &text) : NGX_ABORT;
    }

    rc = ngx_mcp_header_is(header, raw);

    if (rc == NGX_DECLINED
        && ngx_mcp_integer_parse(header, &a) == NGX_OK
        && ngx_mcp_integer_parse(raw, &b) == NGX_OK
        && a.value == b.value && a.negative == b.negative)
    {
        return NGX_OK;
    }

    return rc;
}


/* reads "42", "-42" and "42.0"; NGX_DECLINED: the text is of another form */

static ngx_int_t
ngx_mcp_integer_parse(ngx_str_t *text, ngx_mcp_integer_t *integer)
{
    u_char  *p, *last;

    p = text->data;
    last = p + text->len;

    integer->value = 0;
    integer->negative = (p < last && *p == '-');

    p += integer->negative;

    if (p == last || *p < '0' || *p > '9') {
        return NGX_DECLINED;
    }

    for ( /* void */ ; p < last && *p >= '0' && *p <= '9'; p++) {

        if (p - text->data > NGX_MCP_DIGITS_MAX) {
            return NGX_DECLINED;
        }

        integer->value = integer->value * 10 + (*p - '0');
    }

    if (p < last && *p == '.' && p + 1 < last) {
        for (p++; p < last && *p == '0'; p++) { /* void */ }
    }

    if (integer->value == 0) {
        integer->negative = 0;
    }

    return p == last ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_mcp_params_walk(ngx_str_t *tool, ngx_str_t *arguments, ngx_pool_t *pool,
    ngx_mcp_param_pt next, void *data)
{
    ngx_str_t         schema;
    ngx_mcp_params_t  params;

    params.pool = pool;
    params.next = next;
    params.data = data;

    schema = ngx_mcp_params_find(tool, &ngx_mcp_input_schema, 0, pool);

    return ngx_mcp_params_object(&params, &schema, arguments, 0);
}


/* walks over the properties of a schema, and the members of value with them */

static ngx_int_t
ngx_mcp_params_object(ngx_mcp_params_t *params, ngx_str_t *schema,
    ngx_str_t *value, ngx_uint_t depth)
{
    ngx_int_t  rc;
    ngx_str_t  rest, name, property;

    rest = ngx_mcp_params_find(schema, &ngx_mcp_properties, 0, params->pool);

    if (rest.len == 0 || rest.data[0] != '{'
        || depth == NGX_MCP_PARAMS_DEPTH)
    {
        return NGX_OK;
    }

    while (ngx_mcp_json_member(&rest, &name, &property) == NGX_OK) {

        rc = ngx_mcp_params_property(params, &name, &property, value, depth);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_params_property(ngx_mcp_params_t *params, ngx_str_t *name,
    ngx_str_t *schema, ngx_str_t *value, ngx_uint_t depth)
{
    ngx_int_t  rc;
    ngx_str_t  member, header, text;

    if (schema->data[0] != '{') {
        return NGX_OK;
    }

    if (ngx_mcp_json_text(params->pool, name, &text) != NGX_OK) {
        return NGX_ABORT;
    }

    member = ngx_mcp_params_find(value, &text, 1, params->pool);

    header = ngx_mcp_params_find(schema, &ngx_mcp_annotation, 0, params->pool);

    rc = ngx_mcp_json_text(params->pool, &header, &text);

    if (rc == NGX_DECLINED) {
        return ngx_mcp_params_object(params, schema, &member, depth + 1);
    }

    if (rc != NGX_OK) {
        return NGX_ABORT;
    }

    if (member.len) {

        switch (member.data[0]) {

        case '{':
        case '[':
        case 'n':
            member.len = 0;
        }
    }

    return params->next(params->data, &text, &member);
}


/*
 * Returns the raw value of a member; empty: there is none.  Of several members
 * with the name the last counts.  once: 1: if there are several, none counts,
 * as parsers differ in the one that they use.
 */

static ngx_str_t
ngx_mcp_params_find(ngx_str_t *object, ngx_str_t *name, ngx_uint_t once,
    ngx_pool_t *pool)
{
    u_char     *buf;
    ngx_str_t   rest, raw, value, found, text;

    ngx_str_null(&found);

    if (object->len == 0 || object->data[0] != '{') {
        return found;
    }

    rest = *object;

    while (ngx_mcp_json_member(&rest, &raw, &value) == NGX_OK) {

        /* a raw name is at least as long as the decoded one */

        if (raw.len < name->len + 2) {
            continue;
        }

        text.data = raw.data + 1;
        text.len = raw.len - 2;

        if (memchr(text.data, '\\', text.len)) {

            buf = ngx_pnalloc(pool, raw.len);
            if (buf == NULL) {
                continue;
            }

            text.data = buf;
            text.len = ngx_mcp_json_unescape(buf, &raw) - buf;
        }

        if (ngx_mcp_equal(&text, name)) {

            if (found.len && once) {
                ngx_str_null(&found);
                return found;
            }

            found = value;
        }
    }

    return found;
}
