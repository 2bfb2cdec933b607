
#include "ngx_mcp_message.h"


static const char *ngx_mcp_message_check(ngx_mcp_message_t *m);
static ngx_uint_t ngx_mcp_message_id(ngx_mcp_message_t *m);
static ngx_uint_t ngx_mcp_message_control(ngx_mcp_message_t *m,
    ngx_mcp_path_e path);
static ngx_uint_t ngx_mcp_message_method(ngx_str_t *raw);


/* who reads the first of these and who reads the last must not disagree */

static struct {
    ngx_mcp_path_e          path;
    const char             *why;
} ngx_mcp_message_once[] = {
    { NGX_MCP_PATH_JSONRPC, "duplicate member \"jsonrpc\"" },
    { NGX_MCP_PATH_ID, "duplicate member \"id\"" },
    { NGX_MCP_PATH_METHOD, "duplicate member \"method\"" },
    { NGX_MCP_PATH_PARAMS, "duplicate member \"params\"" },
    { NGX_MCP_PATH_RESULT, "duplicate member \"result\"" },
    { NGX_MCP_PATH_ERROR, "duplicate member \"error\"" },
    { NGX_MCP_PATH_NAME, "duplicate member \"params.name\"" },
    { NGX_MCP_PATH_URI, "duplicate member \"params.uri\"" },
    { NGX_MCP_PATH_META, "duplicate member \"params._meta\"" },
    { NGX_MCP_PATH_META_TOKEN,
      "duplicate member \"params._meta.progressToken\"" },
    { NGX_MCP_PATH_META_VERSION, "duplicate member "
      "\"params._meta.io.modelcontextprotocol/protocolVersion\"" },
    { NGX_MCP_PATH_TOKEN, "duplicate member \"params.progressToken\"" },
    { NGX_MCP_PATH_REQUEST_ID, "duplicate member \"params.requestId\"" },
    { NGX_MCP_PATH_VERSION, "duplicate member \"params.protocolVersion\"" },
    { NGX_MCP_PATH_NONE, NULL }
};


#define ngx_mcp_message_type(m, path)  (m)->json.members[path].type


ngx_int_t
ngx_mcp_message_parse(ngx_mcp_message_t *m, ngx_str_t *text, const char **why)
{
    m->kind = NGX_MCP_INVALID;
    m->method_code = NGX_MCP_METHOD_OTHER;
    m->text = *text;
    m->modern = 0;

    ngx_str_null(&m->id);
    ngx_str_null(&m->method);

    if (ngx_mcp_json_scan(&m->json, text) != NGX_OK) {
        *why = m->json.error;
        return NGX_MCP_PARSE_ERROR;
    }

    if (m->json.type == NGX_MCP_JSON_ARRAY) {
        m->kind = NGX_MCP_BATCH;
        return NGX_OK;
    }

    *why = ngx_mcp_message_check(m);

    if (*why) {
        return NGX_MCP_INVALID_REQUEST;
    }

    return NGX_OK;
}


ngx_str_t
ngx_mcp_message_string(ngx_mcp_message_t *m, ngx_mcp_path_e path,
    ngx_pool_t *pool)
{
    ngx_str_t  raw, value;

    ngx_str_null(&value);

    if (ngx_mcp_message_type(m, path) != NGX_MCP_JSON_STRING) {
        return value;
    }

    raw = ngx_mcp_message_member(m, path);

    value.data = ngx_pnalloc(pool, raw.len);
    if (value.data == NULL) {
        return value;
    }

    value.len = ngx_mcp_json_unescape(value.data, &raw) - value.data;

    return value;
}


/* what is wrong with it, or NULL */

static const char *
ngx_mcp_message_check(ngx_mcp_message_t *m)
{
    ngx_str_t         raw;
    ngx_uint_t        i, id, valid_id, method, result, error;
    static ngx_str_t  version = ngx_string("\"2.0\"");

    if (m->json.type != NGX_MCP_JSON_OBJECT) {
        return "a message must be a JSON object";
    }

    valid_id = ngx_mcp_message_id(m);

    for (i = 0; m->json.twice && ngx_mcp_message_once[i].why; i++) {
        if (m->json.members[ngx_mcp_message_once[i].path].count > 1) {
            return ngx_mcp_message_once[i].why;
        }
    }

    raw = ngx_mcp_message_member(m, NGX_MCP_PATH_JSONRPC);

    if (!ngx_mcp_json_same_id(&raw, &version)) {
        return "\"jsonrpc\" must be \"2.0\"";
    }

    id = ngx_mcp_message_type(m, NGX_MCP_PATH_ID);
    method = ngx_mcp_message_type(m, NGX_MCP_PATH_METHOD);
    result = ngx_mcp_message_type(m, NGX_MCP_PATH_RESULT);
    error = ngx_mcp_message_type(m, NGX_MCP_PATH_ERROR);

    if (method && (result || error)) {
        return "both \"method\" and \"result\" or \"error\"";
    }

    if (result && error) {
        return "both \"result\" and \"error\"";
    }

    if (!method && !result && !error) {
        return "none of \"method\", \"result\" and \"error\"";
    }

    /* an error may be about a request whose id could not be read */

    if (!valid_id
        && !(method && id == NGX_MCP_JSON_ABSENT)
        && !(error && (id == NGX_MCP_JSON_ABSENT || id == NGX_MCP_JSON_NULL)))
    {
        return "\"id\" must be a string or an integer of moderate length";
    }

    if (!method) {

        if (error && error != NGX_MCP_JSON_OBJECT) {
            return "\"error\" must be an object";
        }

        m->kind = NGX_MCP_RESPONSE;

        return NULL;
    }

    if (method != NGX_MCP_JSON_STRING) {
        return "\"method\" must be a string";
    }

    switch (ngx_mcp_message_type(m, NGX_MCP_PATH_PARAMS)) {
    case NGX_MCP_JSON_ABSENT:
    case NGX_MCP_JSON_OBJECT:
    case NGX_MCP_JSON_ARRAY:
        break;
    default:
        return "\"params\" must be an object";
    }

    if (ngx_mcp_message_control(m, NGX_MCP_PATH_METHOD)) {
        return "control character in \"method\"";
    }

    if (ngx_mcp_message_control(m, NGX_MCP_PATH_NAME)) {
        return "control character in \"params.name\"";
    }

    if (ngx_mcp_message_control(m, NGX_MCP_PATH_URI)) {
        return "control character in \"params.uri\"";
    }

    m->kind = valid_id ? NGX_MCP_REQUEST : NGX_MCP_NOTIFICATION;
    m->method = ngx_mcp_message_member(m, NGX_MCP_PATH_METHOD);
    m->method_code = ngx_mcp_message_method(&m->method);
    m->modern = (ngx_mcp_message_type(m, NGX_MCP_PATH_META_VERSION)
                 == NGX_MCP_JSON_STRING);

    return NULL;
}


/* whether there is one that can be taken */

static ngx_uint_t
ngx_mcp_message_id(ngx_mcp_message_t *m)
{
    size_t           i;
    ngx_str_t        raw;
    ngx_mcp_span_t  *member;

    member = &m->json.members[NGX_MCP_PATH_ID];

    if (member->count != 1) {
        return 0;
    }

    raw = ngx_mcp_message_member(m, NGX_MCP_PATH_ID);

    if (raw.len > NGX_MCP_ID_MAX) {
        return 0;
    }

    switch (member->type) {

    case NGX_MCP_JSON_STRING:
        break;

    case NGX_MCP_JSON_NUMBER:

        for (i = 0; i < raw.len; i++) {
            if (raw.data[i] == '.' || (raw.data[i] | 0x20) == 'e') {
                return 0;
            }
        }

        break;

    default:
        return 0;
    }

    m->id = raw;

    return 1;
}


static ngx_uint_t
ngx_mcp_message_control(ngx_mcp_message_t *m, ngx_mcp_path_e path)
{
    u_char     *p, *last, ch;
    ngx_str_t   raw;

    if (ngx_mcp_message_type(m, path) != NGX_MCP_JSON_STRING) {
        return 0;
    }

    raw = ngx_mcp_message_member(m, path);

    if (memchr(raw.data, 0x7f, raw.len)) {
        return 1;
    }

    p = raw.data;
    last = p + raw.len;

    for ( ;; ) {
        p = memchr(p, '\\', last - p);

        if (p == NULL) {
            return 0;
        }

        /* a quote ends the token, so that there is something behind */

        ch = *++p;
        p++;

        switch (ch) {

        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
            return 1;

        case 'u':

            if (p[0] != '0' || p[1] != '0') {
                break;
            }

            if (p[2] == '0' || p[2] == '1'
                || (p[2] == '7' && (p[3] | 0x20) == 'f'))
            {
                return 1;
            }

            break;
        }
    }
}


static ngx_uint_t
ngx_mcp_message_method(ngx_str_t *raw)
{
    u_char     buf[256];
    ngx_str_t  method;

    method.data = raw->data + 1;
    method.len = raw->len - 2;

    if (memchr(method.data, '\\', method.len)) {

        /* none that is known is longer, however it is written */

        if (raw->len > sizeof(buf)) {
            return NGX_MCP_METHOD_OTHER;
        }

        method.data = buf;
        method.len = ngx_mcp_json_unescape(buf, raw) - buf;
    }

    return ngx_mcp_method_parse(&method);
}
