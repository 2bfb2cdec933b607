
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_message.h"


static void ngx_mcp_message_init(ngx_mcp_message_t *m, ngx_str_t *text);
static const char *ngx_mcp_message_check(ngx_mcp_message_t *m);
static const char *ngx_mcp_message_ambiguous(ngx_mcp_message_t *m,
    ngx_uint_t client);
static ngx_int_t ngx_mcp_message_subject(ngx_mcp_message_t *m,
    const char **why);
static ngx_uint_t ngx_mcp_message_id(ngx_mcp_message_t *m);
static ngx_uint_t ngx_mcp_message_control(ngx_mcp_message_t *m,
    ngx_mcp_path_e path);


/*
 * The members that an upstream may understand in another way than this module:
 * the upstream may use the first or the last of two members, or may accept a
 * similar name for the name of such a member.  once: two members with this name
 * are refused in any message; whole: half a surrogate pair in the member is
 * refused in messages of clients.  The texts say why a message is refused.
 */

#define NGX_MCP_MESSAGE_MEMBER(path, name, once, whole)                       \
    { NGX_MCP_PATH_ ## path, once, whole,                                     \
      "duplicate member \"" name "\"",                                        \
      "a member's name is similar to \"" name "\"",                           \
      "half a surrogate pair in \"" name "\"" }

static struct {
    ngx_mcp_path_e          path;
    unsigned                once:1;
    unsigned                whole:1;
    const char             *duplicate;
    const char             *folded;
    const char             *lone;
} ngx_mcp_message_members[] = {
    NGX_MCP_MESSAGE_MEMBER(JSONRPC, "jsonrpc", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(ID, "id", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(METHOD, "method", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(PARAMS, "params", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(RESULT, "result", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(ERROR, "error", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(NAME, "params.name", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(URI, "params.uri", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(META, "params._meta", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(META_TOKEN, "params._meta.progressToken", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(META_VERSION, "params._meta."
                           "io.modelcontextprotocol/protocolVersion", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(META_CAPABILITIES, "params._meta."
                           "io.modelcontextprotocol/clientCapabilities", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(META_CLIENT, "params._meta."
                           "io.modelcontextprotocol/clientInfo", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(META_LEVEL, "params._meta."
                           "io.modelcontextprotocol/logLevel", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(TOKEN, "params.progressToken", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(REQUEST_ID, "params.requestId", 1, 1),
    NGX_MCP_MESSAGE_MEMBER(VERSION, "params.protocolVersion", 1, 0),
    NGX_MCP_MESSAGE_MEMBER(CAPABILITIES, "params.capabilities", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(CLIENT_INFO, "params.clientInfo", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(CLIENT_NAME, "params.clientInfo.name", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(CLIENT_VERSION, "params.clientInfo.version", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(LEVEL, "params.level", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(CURSOR, "params.cursor", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(REF, "params.ref", 0, 0),
    NGX_MCP_MESSAGE_MEMBER(REF_NAME, "params.ref.name", 0, 1),
    NGX_MCP_MESSAGE_MEMBER(REF_URI, "params.ref.uri", 0, 1),
    { NGX_MCP_PATH_NONE, 0, 0, NULL, NULL, NULL }
};


/*
 * The members that may be the subject.  type, size and control say why a
 * message is refused; control NULL: ngx_mcp_message_check() refuses control
 * characters.
 */

static struct {
    ngx_mcp_path_e          path;
    const char             *type;
    const char             *size;
    const char             *control;
} ngx_mcp_message_subjects[] = {
    { NGX_MCP_PATH_NAME, "params.name must be a string that is not empty",
      "params.name is longer than 16384 bytes", NULL },
    { NGX_MCP_PATH_URI, "params.uri must be a string that is not empty",
      "params.uri is longer than 16384 bytes", NULL },
    { NGX_MCP_PATH_REF_NAME, "params.ref.name must be a string that is not "
      "empty", "params.ref.name is longer than 16384 bytes",
      "control character in \"params.ref.name\"" },
    { NGX_MCP_PATH_REF_URI, "params.ref.uri must be a string that is not "
      "empty", "params.ref.uri is longer than 16384 bytes",
      "control character in \"params.ref.uri\"" },
    { NGX_MCP_PATH_NONE, NULL, NULL, NULL }
};


#define NGX_MCP_MESSAGE_REF                                                   \
    "params.ref must be an object with a name or a uri"

#define ngx_mcp_message_type(m, path)  (m)->json.members[path].type


ngx_int_t
ngx_mcp_message_parse(ngx_mcp_message_t *m, ngx_str_t *text, const char **why)
{
    if (ngx_mcp_json_scan(&m->json, text) != NGX_OK) {
        ngx_mcp_message_init(m, text);
        *why = m->json.error;
        return NGX_MCP_PARSE_ERROR;
    }

    return ngx_mcp_message_parse_scanned(m, text, why);
}


ngx_int_t
ngx_mcp_message_parse_scanned(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why)
{
    ngx_mcp_message_init(m, text);

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


static void
ngx_mcp_message_init(ngx_mcp_message_t *m, ngx_str_t *text)
{
    m->kind = NGX_MCP_INVALID;
    m->method_code = NGX_MCP_METHOD_OTHER;
    m->text = *text;
    m->modern = 0;
    m->subject = NGX_MCP_PATH_NONE;

    ngx_str_null(&m->id);
    ngx_str_null(&m->method);
}


ngx_int_t
ngx_mcp_message_parse_client(ngx_mcp_message_t *m, ngx_str_t *text,
    const char **why)
{
    ngx_int_t  rc;

    rc = ngx_mcp_message_parse(m, text, why);

    if (rc != NGX_OK || m->kind == NGX_MCP_BATCH) {
        return rc;
    }

    if (m->json.ambiguous) {
        *why = ngx_mcp_message_ambiguous(m, 1);

        if (*why) {
            rc = NGX_MCP_INVALID_REQUEST;
            goto failed;
        }
    }

    if (m->kind == NGX_MCP_RESPONSE) {
        return NGX_OK;
    }

    if (m->method.len > NGX_MCP_URI_MAX + 2) {
        *why = "\"method\" is longer than 16384 bytes";
        rc = NGX_MCP_INVALID_REQUEST;
        goto failed;
    }

    /* an upstream may run it as a request, to which rules would have applied */

    if (ngx_mcp_message_lacks_id(m)) {
        *why = "\"method\" is a request and needs an \"id\"";
        rc = NGX_MCP_INVALID_REQUEST;
        goto failed;
    }

    rc = ngx_mcp_message_subject(m, why);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

failed:

    m->kind = NGX_MCP_INVALID;

    return rc;
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

    if (memchr(raw.data, '\\', raw.len) == NULL) {
        value.data = raw.data + 1;
        value.len = raw.len - 2;

        return value;
    }

    (void) ngx_mcp_json_text(pool, &raw, &value);

    return value;
}


/* returns the reason for which a message is refused, or NULL */

static const char *
ngx_mcp_message_check(ngx_mcp_message_t *m)
{
    ngx_str_t         raw;
    ngx_uint_t        id, valid_id, method, result, error;
    const char       *why;
    static ngx_str_t  version = ngx_string("\"2.0\"");

    if (m->json.type != NGX_MCP_JSON_OBJECT) {
        return "a message must be a JSON object";
    }

    valid_id = ngx_mcp_message_id(m);

    if (m->json.ambiguous) {
        why = ngx_mcp_message_ambiguous(m, 0);

        if (why) {
            return why;
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
    m->method_code = ngx_mcp_method_raw(&m->method);
    m->modern = (ngx_mcp_message_type(m, NGX_MCP_PATH_META_VERSION)
                 == NGX_MCP_JSON_STRING);

    return NULL;
}


/*
 * Returns the reason for which a message is refused because of duplicate or
 * similar names of members, or half surrogate pairs; or NULL.  client: 1: the
 * message is from a client, so that more is refused.
 */

static const char *
ngx_mcp_message_ambiguous(ngx_mcp_message_t *m, ngx_uint_t client)
{
    ngx_uint_t       i;
    ngx_mcp_path_e   path;
    ngx_mcp_span_t  *span;

    for (i = 0; ngx_mcp_message_members[i].duplicate; i++) {

        path = ngx_mcp_message_members[i].path;
        span = &m->json.members[path];

        if (span->count > 1 && (client || ngx_mcp_message_members[i].once)) {
            return ngx_mcp_message_members[i].duplicate;
        }

        if (span->folded && client) {
            return ngx_mcp_message_members[i].folded;
        }

        if (span->lone && ngx_mcp_message_members[i].whole
            && (client || path == NGX_MCP_PATH_ID
                || path == NGX_MCP_PATH_METHOD))
        {
            return ngx_mcp_message_members[i].lone;
        }
    }

    return NULL;
}


/*
 * Finds the subject.  NGX_OK: m->subject is set; else a JSON-RPC code, and *why
 * says what is wrong.
 */

static ngx_int_t
ngx_mcp_message_subject(ngx_mcp_message_t *m, const char **why)
{
    ngx_uint_t       i, want;
    ngx_mcp_path_e   path;
    ngx_mcp_span_t  *span;

    switch (m->method_code) {

    case NGX_MCP_METHOD_TOOLS_CALL:
    case NGX_MCP_METHOD_PROMPTS_GET:
        want = NGX_MCP_PATH_NAME;
        break;

    case NGX_MCP_METHOD_RESOURCES_READ:
    case NGX_MCP_METHOD_SUBSCRIBE:
    case NGX_MCP_METHOD_UNSUBSCRIBE:
        want = NGX_MCP_PATH_URI;
        break;

    case NGX_MCP_METHOD_COMPLETE:
        want = NGX_MCP_PATH_REF;
        break;

    default:
        want = NGX_MCP_PATH_NONE;
    }

    /* some parsers take an array of one element for that element */

    if (ngx_mcp_message_type(m, NGX_MCP_PATH_REF) == NGX_MCP_JSON_ARRAY) {
        *why = NGX_MCP_MESSAGE_REF;
        return NGX_MCP_INVALID_PARAMS;
    }

    for (i = 0; ngx_mcp_message_subjects[i].type; i++) {

        path = ngx_mcp_message_subjects[i].path;
        span = &m->json.members[path];

        if (span->type == NGX_MCP_JSON_ABSENT) {
            continue;
        }

        if (m->subject != NGX_MCP_PATH_NONE) {
            *why = "only one of params.name, params.uri, params.ref.name and "
                   "params.ref.uri may be given";
            return NGX_MCP_INVALID_REQUEST;
        }

        if (span->type != NGX_MCP_JSON_STRING
            || (want != NGX_MCP_PATH_NONE && span->end - span->start == 2))
        {
            *why = ngx_mcp_message_subjects[i].type;
            return NGX_MCP_INVALID_PARAMS;
        }

        if (span->end - span->start > NGX_MCP_URI_MAX + 2) {
            *why = ngx_mcp_message_subjects[i].size;
            return NGX_MCP_INVALID_PARAMS;
        }

        if (ngx_mcp_message_subjects[i].control
            && ngx_mcp_message_control(m, path))
        {
            *why = ngx_mcp_message_subjects[i].control;
            return NGX_MCP_INVALID_REQUEST;
        }

        m->subject = path;
    }

    if (want == NGX_MCP_PATH_NONE) {

        /* the other methods of MCP have no subject */

        if (m->method_code != NGX_MCP_METHOD_OTHER) {
            m->subject = NGX_MCP_PATH_NONE;
        }

        return NGX_OK;
    }

    if (want == m->subject
        || (want == NGX_MCP_PATH_REF
            && (m->subject == NGX_MCP_PATH_REF_NAME
                || m->subject == NGX_MCP_PATH_REF_URI)))
    {
        return NGX_OK;
    }

    switch (want) {

    case NGX_MCP_PATH_NAME:
        *why = ngx_mcp_message_subjects[0].type;
        break;

    case NGX_MCP_PATH_URI:
        *why = ngx_mcp_message_subjects[1].type;
        break;

    default: /* NGX_MCP_PATH_REF */
        *why = NGX_MCP_MESSAGE_REF;
    }

    return NGX_MCP_INVALID_PARAMS;
}


/* sets m->id and returns 1 if the message has a valid id; else returns 0 */

static ngx_uint_t
ngx_mcp_message_id(ngx_mcp_message_t *m)
{
    size_t           i;
    ngx_str_t        raw;
    ngx_mcp_span_t  *member;

    member = &m->json.members[NGX_MCP_PATH_ID];

    if (member->count != 1 || member->lone) {
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


ngx_uint_t
ngx_mcp_message_lacks_id(ngx_mcp_message_t *m)
{
    ngx_str_t         *method;
    static ngx_str_t   prefix = ngx_string("notifications/");

    if (m->kind != NGX_MCP_NOTIFICATION
        || m->method_code == NGX_MCP_METHOD_OTHER)
    {
        return 0;
    }

    method = ngx_mcp_method_name(m->method_code);

    return method->len < prefix.len
           || ngx_memcmp(method->data, prefix.data, prefix.len) != 0;
}


static ngx_uint_t
ngx_mcp_message_control(ngx_mcp_message_t *m, ngx_mcp_path_e path)
{
    ngx_str_t  raw;

    if (ngx_mcp_message_type(m, path) != NGX_MCP_JSON_STRING) {
        return 0;
    }

    raw = ngx_mcp_message_member(m, path);

    return ngx_mcp_json_control(&raw);
}


ngx_uint_t
ngx_mcp_method_raw(ngx_str_t *raw)
{
    u_char     buf[256];
    ngx_str_t  method;

    method.data = raw->data + 1;
    method.len = raw->len - 2;

    if (memchr(method.data, '\\', method.len)) {

        /* a known method is shorter, even if each letter is an escape */

        if (raw->len > sizeof(buf)) {
            return NGX_MCP_METHOD_OTHER;
        }

        method.data = buf;
        method.len = ngx_mcp_json_unescape(buf, raw) - buf;
    }

    return ngx_mcp_method_parse(&method);
}


ngx_uint_t
ngx_mcp_method_of(ngx_mcp_json_t *json, ngx_str_t *text)
{
    ngx_str_t  method;

    if (json->members[NGX_MCP_PATH_METHOD].type != NGX_MCP_JSON_STRING) {
        return NGX_MCP_METHOD_OTHER;
    }

    method = ngx_mcp_json_span(json, NGX_MCP_PATH_METHOD, text->data);

    return ngx_mcp_method_raw(&method);
}


ngx_uint_t
ngx_mcp_level_of(ngx_mcp_json_t *json, ngx_str_t *text)
{
    ngx_str_t  level;

    if (json->members[NGX_MCP_PATH_LEVEL].type != NGX_MCP_JSON_STRING) {
        return NGX_MCP_LEVEL_UNSET;
    }

    level = ngx_mcp_json_span(json, NGX_MCP_PATH_LEVEL, text->data);
    level.data++;
    level.len -= 2;

    return ngx_mcp_level_parse(&level);
}
