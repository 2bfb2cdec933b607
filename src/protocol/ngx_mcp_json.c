
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_json.h"
#include "ngx_mcp_json_token.h"


/* the tokens that may come next */

enum {
    json_value = 0,
    json_first_element,
    json_first_name,
    json_next_name,
    json_colon,
    json_next,
    json_done,
    json_string,
    json_number,
    json_literal,
    json_failed
};


typedef struct {
    ngx_uint_t              parent;
    size_t                  len;
    const char             *key;
} ngx_mcp_json_path_t;


static u_char *ngx_mcp_json_start(ngx_mcp_json_t *json, u_char *p,
    u_char *last);
static void ngx_mcp_json_finish(ngx_mcp_json_t *json, u_char *p);
static ngx_int_t ngx_mcp_json_push(ngx_mcp_json_t *json, u_char *p);
static void ngx_mcp_json_pop(ngx_mcp_json_t *json, u_char *p);
static ngx_uint_t ngx_mcp_json_children(ngx_uint_t parent);
static ngx_uint_t ngx_mcp_json_lookup(ngx_mcp_json_t *json, u_char *key,
    size_t len, ngx_uint_t altered);
static ngx_uint_t ngx_mcp_json_folds(const char *known, u_char *key,
    size_t len);


#define ngx_mcp_json_position(json, p)                                        \
    ((json)->offset + ((p) - (json)->piece))

#define ngx_mcp_json_is_space(ch)                                             \
    ((ch) <= ' '                                                              \
     && ((ch) == ' ' || (ch) == '\n' || (ch) == '\r' || (ch) == '\t'))

#define ngx_mcp_json_noted(node)  ((node) < NGX_MCP_PATH_MAX)


#define NGX_MCP_JSON_PATH(name, parent, key)                                  \
    { NGX_MCP_PATH_ ## parent, sizeof(key) - 1, key },

static const ngx_mcp_json_path_t  ngx_mcp_json_paths[] = {
    NGX_MCP_JSON_PATHS(NGX_MCP_JSON_PATH)
};


void
ngx_mcp_json_init(ngx_mcp_json_t *json)
{
    ngx_memzero(json->members, sizeof(json->members));

    json->type = NGX_MCP_JSON_ABSENT;
    json->error = NULL;
    json->offset = 0;

    json->piece = NULL;
    json->state = json_value;
    json->substate = 0;
    json->depth = 0;
    json->parent = NGX_MCP_PATH_NONE;
    json->node = NGX_MCP_PATH_ROOT;
    json->surrogate = 0;
    json->object = 0;
    json->name = 0;
    json->keep = 0;
    json->ambiguous = 0;
}


ngx_int_t
ngx_mcp_json_feed(ngx_mcp_json_t *json, u_char *p, u_char *last)
{
    u_char     ch, *pos;
    ngx_int_t  rc;

    if ((size_t) (last - p) > NGX_MAX_UINT32_VALUE - json->offset) {
        json->error = "JSON too long";
        json->state = json_failed;
        return NGX_ERROR;
    }

    json->piece = p;

    while (p < last) {

        rc = NGX_OK;
        ch = *p;

        if (json->state < json_string && ngx_mcp_json_is_space(ch)) {
            p++;
            continue;
        }

        switch (json->state) {

        case json_first_element:
            if (ch == ']') {
                ngx_mcp_json_pop(json, p++);
                break;
            }

            /* fall through */

        case json_value:
            pos = ngx_mcp_json_start(json, p, last);

            if (pos == NULL) {
                rc = NGX_ERROR;
                break;
            }

            p = pos;
            break;

        case json_first_name:
            if (ch == '}') {
                ngx_mcp_json_pop(json, p++);
                break;
            }

            /* fall through */

        case json_next_name:
            if (ch != '"') {
                rc = NGX_ERROR;
                break;
            }

            pos = ngx_mcp_json_skip(++p, last);

            if (pos < last && *pos == '"') {
                json->node = (u_char) ngx_mcp_json_lookup(json, p, pos - p, 0);
                json->state = json_colon;
                p = pos + 1;
                break;
            }

            json->name = 1;
            json->keep = (ngx_mcp_json_children(json->parent)
                          != NGX_MCP_PATH_NONE);
            json->cut = 0;
            json->altered = 0;
            json->key_len = 0;
            json->substate = json_plain;
            json->state = json_string;
            break;

        case json_colon:
            if (ch != ':') {
                rc = NGX_ERROR;
                break;
            }

            p++;
            json->state = json_value;
            break;

        case json_next:
            if (ch == ',') {
                p++;
                json->node = NGX_MCP_PATH_NONE;
                json->state = json->object ? json_next_name : json_value;
                break;
            }

            if (ch != (json->object ? '}' : ']')) {
                rc = NGX_ERROR;
                break;
            }

            ngx_mcp_json_pop(json, p++);
            break;

        case json_string:
            pos = p;
            rc = ngx_mcp_json_string(json, &pos, last);
            p = pos;

            if (rc != NGX_OK) {
                break;
            }

            if (json->name) {
                json->name = 0;
                json->node = NGX_MCP_PATH_NONE;

                if (json->keep) {
                    json->node = (u_char) ngx_mcp_json_lookup(json, json->key,
                                                              json->key_len,
                                                              json->altered);
                }

                json->state = json_colon;
                break;
            }

            ngx_mcp_json_finish(json, p);
            break;

        case json_number:
            pos = p;
            rc = ngx_mcp_json_number(json, &pos, last);
            p = pos;

            if (rc == NGX_OK) {
                ngx_mcp_json_finish(json, p);
            }

            break;

        case json_literal:
            if (ch != *json->literal) {
                rc = NGX_ERROR;
                break;
            }

            p++;

            if (*++json->literal == '\0') {
                ngx_mcp_json_finish(json, p);
            }

            break;

        case json_done:
            json->error = "bytes behind the JSON value";
            rc = NGX_ERROR;
            break;

        default: /* json_failed */
            return NGX_ERROR;
        }

        if (rc == NGX_ERROR) {
            if (json->error == NULL) {
                json->error = "unexpected character in JSON";
            }

            json->offset = ngx_mcp_json_position(json, p);
            json->state = json_failed;
            return NGX_ERROR;
        }
    }

    if (json->state == json_failed) {
        return NGX_ERROR;
    }

    json->offset = ngx_mcp_json_position(json, p);

    return NGX_AGAIN;
}


ngx_int_t
ngx_mcp_json_end(ngx_mcp_json_t *json)
{
    switch (json->state) {

    case json_done:
        return NGX_OK;

    case json_failed:
        return NGX_ERROR;

    case json_number:
        if (json->depth == 0
            && (json->substate == json_zero
                || json->substate == json_integer
                || json->substate == json_fraction
                || json->substate == json_exponent))
        {
            json->state = json_done;
            return NGX_OK;
        }

        break;
    }

    json->error = "unexpected end of JSON";
    json->state = json_failed;

    return NGX_ERROR;
}


ngx_int_t
ngx_mcp_json_scan(ngx_mcp_json_t *json, ngx_str_t *text)
{
    ngx_mcp_json_init(json);

    if (ngx_mcp_json_feed(json, text->data, text->data + text->len)
        == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return ngx_mcp_json_end(json);
}


ngx_str_t
ngx_mcp_json_span(ngx_mcp_json_t *json, ngx_mcp_path_e path, u_char *text)
{
    ngx_str_t        span;
    ngx_mcp_span_t  *member;

    member = &json->members[path];

    if (member->count == 0) {
        ngx_str_null(&span);
        return span;
    }

    span.len = member->end - member->start;
    span.data = text + member->start;

    return span;
}


/* a value begins at p; returns what it took, NULL: it is none */

static u_char *
ngx_mcp_json_start(ngx_mcp_json_t *json, u_char *p, u_char *last)
{
    ngx_mcp_span_t       *member;
    ngx_mcp_json_type_e   type;

    switch (*p) {

    case '"':
        type = NGX_MCP_JSON_STRING;
        json->substate = json_plain;
        json->state = json_string;
        break;

    case '{':
        type = NGX_MCP_JSON_OBJECT;
        break;

    case '[':
        type = NGX_MCP_JSON_ARRAY;
        break;

    case '-':
        type = NGX_MCP_JSON_NUMBER;
        json->substate = json_minus;
        json->state = json_number;
        break;

    case '0':
        type = NGX_MCP_JSON_NUMBER;
        json->substate = json_zero;
        json->state = json_number;
        break;

    case '1': case '2': case '3': case '4': case '5':
    case '6': case '7': case '8': case '9':
        type = NGX_MCP_JSON_NUMBER;
        json->substate = json_integer;
        json->state = json_number;
        break;

    case 't':
        type = NGX_MCP_JSON_TRUE;
        json->literal = (u_char *) "rue";
        json->state = json_literal;
        break;

    case 'f':
        type = NGX_MCP_JSON_FALSE;
        json->literal = (u_char *) "alse";
        json->state = json_literal;
        break;

    case 'n':
        type = NGX_MCP_JSON_NULL;
        json->literal = (u_char *) "ull";
        json->state = json_literal;
        break;

    default:
        return NULL;
    }

    if (ngx_mcp_json_noted(json->node)) {
        member = &json->members[json->node];

        member->start = (uint32_t) ngx_mcp_json_position(json, p);
        member->end = member->start;
        member->type = type;

        if (member->count) {
            json->ambiguous = 1;
        }

        if (member->count < 255) {
            member->count++;
        }

    } else if (json->depth == 0) {
        json->type = type;
    }

    if (type == NGX_MCP_JSON_OBJECT || type == NGX_MCP_JSON_ARRAY) {
        return ngx_mcp_json_push(json, p) == NGX_OK ? p + 1 : NULL;
    }

    p++;

    if (type == NGX_MCP_JSON_STRING) {
        p = ngx_mcp_json_skip(p, last);

        if (p < last && *p == '"') {
            ngx_mcp_json_finish(json, ++p);
        }
    }

    return p;
}


/* a string, number or literal ends in front of p */

static void
ngx_mcp_json_finish(ngx_mcp_json_t *json, u_char *p)
{
    if (ngx_mcp_json_noted(json->node)) {
        json->members[json->node].end =
                                    (uint32_t) ngx_mcp_json_position(json, p);
    }

    json->state = json->depth ? json_next : json_done;
}


static ngx_int_t
ngx_mcp_json_push(ngx_mcp_json_t *json, u_char *p)
{
    u_char      bit;
    ngx_uint_t  n;

    n = json->depth;

    if (n == NGX_MCP_JSON_DEPTH) {
        json->error = "JSON nested too deep";
        return NGX_ERROR;
    }

    bit = (u_char) (1 << (n & 7));

    if (*p == '{') {
        json->nesting[n >> 3] |= bit;
        json->object = 1;
        json->state = json_first_name;

    } else {
        json->nesting[n >> 3] &= (u_char) ~bit;
        json->object = 0;
        json->state = json_first_element;
    }

    /* noted members never lie as deep as path[] reaches */

    if (n < sizeof(json->path)) {
        json->path[n] = json->node;
    }

    json->parent = json->node;
    json->node = NGX_MCP_PATH_NONE;
    json->depth = (uint16_t) (n + 1);

    return NGX_OK;
}


static void
ngx_mcp_json_pop(ngx_mcp_json_t *json, u_char *p)
{
    ngx_uint_t  n;

    if (ngx_mcp_json_noted(json->parent)) {
        json->members[json->parent].end =
                                (uint32_t) ngx_mcp_json_position(json, p) + 1;
    }

    n = --json->depth;

    if (n == 0) {
        json->state = json_done;
        return;
    }

    n--;

    json->parent = (n < sizeof(json->path)) ? json->path[n]
                                            : NGX_MCP_PATH_NONE;
    json->object = (json->nesting[n >> 3] >> (n & 7)) & 1;
    json->state = json_next;
}


static ngx_uint_t
ngx_mcp_json_children(ngx_uint_t parent)
{
    switch (parent) {
    case NGX_MCP_PATH_ROOT:
        return NGX_MCP_PATH_JSONRPC;
    case NGX_MCP_PATH_PARAMS:
        return NGX_MCP_PATH_NAME;
    case NGX_MCP_PATH_META:
        return NGX_MCP_PATH_META_TOKEN;
    case NGX_MCP_PATH_META_CLIENT:
        return NGX_MCP_PATH_META_CLIENT_NAME;
    case NGX_MCP_PATH_CLIENT_INFO:
        return NGX_MCP_PATH_CLIENT_NAME;
    case NGX_MCP_PATH_REF:
        return NGX_MCP_PATH_REF_NAME;
    case NGX_MCP_PATH_RESULT:
        return NGX_MCP_PATH_IS_ERROR;
    case NGX_MCP_PATH_ERROR:
        return NGX_MCP_PATH_ERROR_CODE;
    default:
        return NGX_MCP_PATH_NONE;
    }
}


static ngx_uint_t
ngx_mcp_json_lookup(ngx_mcp_json_t *json, u_char *key, size_t len,
    ngx_uint_t altered)
{
    ngx_uint_t                  n;
    const ngx_mcp_json_path_t  *path;

    n = ngx_mcp_json_children(json->parent);

    for ( /* void */ ; n < NGX_MCP_PATH_MAX; n++) {

        path = &ngx_mcp_json_paths[n];

        if (path->parent != json->parent) {
            break;
        }

        if (path->len != len || ((path->key[0] ^ key[0]) & ~0x20)) {
            continue;
        }

        if (!altered && ngx_memcmp(path->key, key, len) == 0) {
            return n;
        }

        if (ngx_mcp_json_folds(path->key, key, len)) {
            json->members[n].folded = 1;
            json->ambiguous = 1;
            break;
        }
    }

    return NGX_MCP_PATH_NONE;
}


/* equal but for the case of letters */

static ngx_uint_t
ngx_mcp_json_folds(const char *known, u_char *key, size_t len)
{
    size_t  i;
    u_char  ch;

    for (i = 0; i < len; i++) {

        if ((u_char) known[i] == key[i]) {
            continue;
        }

        ch = (u_char) (key[i] | 0x20);

        if (ch != (known[i] | 0x20) || ch < 'a' || ch > 'z') {
            return 0;
        }
    }

    return 1;
}
