
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_json.h"
#include "ngx_mcp_json_token.h"


/* states of the scan, each named by the next token */

enum {
    json_value = 0,
    json_first_element,
    json_first_name,
    json_name,
    json_colon,
    json_next,
    json_done,
    json_string,
    json_number,
    json_literal,
    json_failed
};


typedef struct {
    uint64_t                mark;
    size_t                  len;
    char                    key[48];
} ngx_mcp_json_path_t;


static void ngx_mcp_json_similar(ngx_mcp_json_t *json, ngx_uint_t n,
    u_char *key);


#define ngx_mcp_json_is_digit(ch)  ((u_char) ((ch) - '0') < 10)

#define ngx_mcp_json_noted(node)  ((node) < NGX_MCP_PATH_MAX)

#define ngx_mcp_json_position(p)  ((uint32_t) ((uintptr_t) (p) - zero))

/*
 * Sets ch to the next character that is no space.  If this piece has none, the
 * scan goes on in state "next" with the next piece.
 */

#define ngx_mcp_json_await(next)                                              \
                                                                              \
    if (p == last || *p <= ' ') {                                             \
        p = ngx_mcp_json_space(p, last);                                      \
                                                                              \
        if (p == last) {                                                      \
            json->state = next;                                               \
            goto suspend;                                                     \
        }                                                                     \
    }                                                                         \
                                                                              \
    ch = *p;


/*
 * A perfect hash of the noted members.  The mark of a member is made of the
 * length of its name and of its parent's path.  The mark and the first letter
 * of the name, in upper or lower case, give the member's place in the table.
 * No two members may have the same place: if the compiler warns of an
 * overridden initializer, the factor has to be changed; it must be larger than
 * any path.
 */

#define ngx_mcp_json_mark(len, parent)  ((uint64_t) (len) * 55 + (parent))

#define ngx_mcp_json_place(mark, first)  (((mark) + ((first) & 0x1f)) & 0xff)

#define NGX_MCP_JSON_MARK(key, parent)                                        \
    ngx_mcp_json_mark(sizeof(key) - 1, NGX_MCP_PATH_ ## parent)

#define NGX_MCP_JSON_PATH(name, parent, first, key)                           \
    { NGX_MCP_JSON_MARK(key, parent), sizeof(key) - 1, key },

#define NGX_MCP_JSON_PLACE(name, parent, first, key)                          \
    [ngx_mcp_json_place(NGX_MCP_JSON_MARK(key, parent), first)]               \
        = NGX_MCP_PATH_ ## name,

static const ngx_mcp_json_path_t  ngx_mcp_json_paths[] = {
    NGX_MCP_JSON_PATHS(NGX_MCP_JSON_PATH)
};

static const u_char  ngx_mcp_json_places[256] = {
    NGX_MCP_JSON_PATHS(NGX_MCP_JSON_PLACE)
};


/* the first character of a value tells its type */

static const u_char  ngx_mcp_json_types[256] = {
    ['"'] = NGX_MCP_JSON_STRING,
    ['{'] = NGX_MCP_JSON_OBJECT,
    ['['] = NGX_MCP_JSON_ARRAY,
    ['-'] = NGX_MCP_JSON_NUMBER,
    ['0'] = NGX_MCP_JSON_NUMBER, ['1'] = NGX_MCP_JSON_NUMBER,
    ['2'] = NGX_MCP_JSON_NUMBER, ['3'] = NGX_MCP_JSON_NUMBER,
    ['4'] = NGX_MCP_JSON_NUMBER, ['5'] = NGX_MCP_JSON_NUMBER,
    ['6'] = NGX_MCP_JSON_NUMBER, ['7'] = NGX_MCP_JSON_NUMBER,
    ['8'] = NGX_MCP_JSON_NUMBER, ['9'] = NGX_MCP_JSON_NUMBER,
    ['t'] = NGX_MCP_JSON_TRUE,
    ['f'] = NGX_MCP_JSON_FALSE,
    ['n'] = NGX_MCP_JSON_NULL
};


/*
 * Returns whether a name of len bytes is equal to a known one, which has the
 * same length; memory up to last may be read.
 */

static ngx_inline ngx_uint_t
ngx_mcp_json_same(const char *known, u_char *key, size_t len, u_char *last)
{
#if (NGX_HAVE_LITTLE_ENDIAN)

    uint64_t  a, b;

    if (len <= 8 && last - key >= 8) {
        ngx_memcpy(&a, known, 8);
        ngx_memcpy(&b, key, 8);

        return ((a ^ b) << (64 - 8 * len)) == 0;
    }

#endif

    return ngx_memcmp(known, key, len) == 0;
}


/*
 * Returns the path of the noted member with this name; NGX_MCP_PATH_NONE: there
 * is none.  altered: key differs from the name (ngx_mcp_json_t).
 */

static ngx_inline ngx_uint_t
ngx_mcp_json_lookup(ngx_mcp_json_t *json, ngx_uint_t parent, u_char *key,
    size_t len, u_char *last, ngx_uint_t altered)
{
    uint64_t                    mark;
    ngx_uint_t                  n;
    const ngx_mcp_json_path_t  *path;

    if (parent == NGX_MCP_PATH_NONE) {
        return NGX_MCP_PATH_NONE;
    }

    mark = ngx_mcp_json_mark(len, parent);
    n = ngx_mcp_json_places[ngx_mcp_json_place(mark, key[0])];
    path = &ngx_mcp_json_paths[n];

    if (path->mark != mark) {
        return NGX_MCP_PATH_NONE;
    }

    if (!altered && ngx_mcp_json_same(path->key, key, len, last)) {
        return n;
    }

    ngx_mcp_json_similar(json, n, key);

    return NGX_MCP_PATH_NONE;
}


void
ngx_mcp_json_init(ngx_mcp_json_t *json)
{
    ngx_memzero(json->members, sizeof(json->members));

    json->type = NGX_MCP_JSON_ABSENT;
    json->error = NULL;
    json->offset = 0;

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
    u_char               *start, *pos, ch, bit;
    uintptr_t             zero;
    ngx_int_t             rc;
    ngx_uint_t            node, parent, object, depth;
    ngx_mcp_span_t       *member;
    ngx_mcp_json_type_e   type;

    if ((size_t) (last - p) > NGX_MAX_UINT32_VALUE - json->offset) {
        json->error = "JSON too long";
        json->state = json_failed;
        return NGX_ERROR;
    }

    if (p == last) {
        return (json->state == json_failed) ? NGX_ERROR : NGX_AGAIN;
    }

    zero = (uintptr_t) p - json->offset;

    node = json->node;
    parent = json->parent;
    object = json->object;
    depth = json->depth;

    switch (json->state) {
    case json_value:
        goto value;
    case json_first_element:
        goto first_element;
    case json_first_name:
        goto first_name;
    case json_name:
        goto name;
    case json_colon:
        goto colon;
    case json_next:
        goto next;
    case json_done:
        goto done;
    case json_string:
        goto string;
    case json_number:
        goto number;
    case json_literal:
        goto literal;
    default: /* json_failed */
        return NGX_ERROR;
    }

first_element:

    ngx_mcp_json_await(json_first_element)

    if (ch == ']') {
        goto close;
    }

value:

    ngx_mcp_json_await(json_value)

    type = ngx_mcp_json_types[ch];

    if (type == NGX_MCP_JSON_ABSENT) {
        goto failed;
    }

    if (ngx_mcp_json_noted(node)) {
        member = &json->members[node];

        member->start = ngx_mcp_json_position(p);
        member->end = member->start;
        member->type = type;

        if (member->count) {
            json->ambiguous = 1;
        }

        if (member->count < 255) {
            member->count++;
        }

    } else if (depth == 0) {
        json->type = type;
    }

    switch (type) {

    case NGX_MCP_JSON_STRING:

        p = ngx_mcp_json_skip_whole(p + 1, last);

        if (p < last && *p == '"') {
            p++;
            goto finish;
        }

        json->substate = json_plain;
        goto string;

    case NGX_MCP_JSON_NUMBER:

        json->substate = (ch == '-') ? json_minus
                         : (ch == '0') ? json_zero : json_integer;
        p++;
        goto number;

    case NGX_MCP_JSON_OBJECT:
    case NGX_MCP_JSON_ARRAY:

        if (depth == NGX_MCP_JSON_DEPTH) {
            json->error = "JSON nested too deep";
            goto failed;
        }

        object = (type == NGX_MCP_JSON_OBJECT);
        bit = (u_char) (1 << (depth & 7));

        if (object) {
            json->nesting[depth >> 3] |= bit;

        } else {
            json->nesting[depth >> 3] &= (u_char) ~bit;
        }

        /* no noted member lies so deep that path[] cannot have its parent */

        if (depth < sizeof(json->path)) {
            json->path[depth] = (u_char) node;
        }

        depth++;
        parent = node;
        node = NGX_MCP_PATH_NONE;
        p++;

        if (object) {
            goto first_name;
        }

        goto first_element;

    default:

        json->literal = (u_char *) ((type == NGX_MCP_JSON_TRUE) ? "true"
                                    : (type == NGX_MCP_JSON_FALSE) ? "false"
                                    : "null");
        goto literal;
    }

first_name:

    ngx_mcp_json_await(json_first_name)

    if (ch == '}') {
        goto close;
    }

name:

    ngx_mcp_json_await(json_name)

    if (ch != '"') {
        goto failed;
    }

    start = ++p;
    p = (parent == NGX_MCP_PATH_NONE) ? ngx_mcp_json_skip_whole(p, last)
                                      : ngx_mcp_json_skip(p, last);

    if (p == last || *p != '"') {
        p = start;

        json->name = 1;
        json->keep = ngx_mcp_json_noted(parent)
                     || parent == NGX_MCP_PATH_ROOT;
        json->cut = 0;
        json->altered = 0;
        json->key_len = 0;
        json->substate = json_plain;

        goto string;
    }

    node = ngx_mcp_json_lookup(json, parent, start, p - start, last, 0);
    p++;

colon:

    ngx_mcp_json_await(json_colon)

    if (ch != ':') {
        goto failed;
    }

    p++;
    goto value;

string:

    json->node = (u_char) node;

    pos = p;
    rc = ngx_mcp_json_string(json, &pos, last);
    p = pos;

    if (rc == NGX_AGAIN) {
        json->state = json_string;
        goto suspend;
    }

    if (rc == NGX_ERROR) {
        goto failed;
    }

    if (json->name) {
        json->name = 0;
        node = NGX_MCP_PATH_NONE;

        if (json->keep && json->key_len) {
            node = ngx_mcp_json_lookup(json, parent, json->key, json->key_len,
                                       json->key + json->key_len,
                                       json->altered);
        }

        goto colon;
    }

    goto finish;

number:

    if (json->substate == json_integer) {

        while (p < last && ngx_mcp_json_is_digit(*p)) {
            p++;
        }

        if (p < last && *p != '.' && (*p | 0x20) != 'e') {
            goto finish;
        }
    }

    pos = p;
    rc = ngx_mcp_json_number(json, &pos, last);
    p = pos;

    if (rc == NGX_AGAIN) {
        json->state = json_number;
        goto suspend;
    }

    if (rc == NGX_ERROR) {
        goto failed;
    }

    goto finish;

literal:

    for ( /* void */ ; *json->literal; json->literal++) {

        if (p == last) {
            json->state = json_literal;
            goto suspend;
        }

        if (*p != *json->literal) {
            goto failed;
        }

        p++;
    }

finish:

    if (ngx_mcp_json_noted(node)) {
        json->members[node].end = ngx_mcp_json_position(p);
    }

    if (depth == 0) {
        goto done;
    }

next:

    ngx_mcp_json_await(json_next)

    if (ch == ',') {
        p++;
        node = NGX_MCP_PATH_NONE;

        if (object) {
            goto name;
        }

        goto value;
    }

    if (ch != (object ? '}' : ']')) {
        goto failed;
    }

close:

    p++;
    depth--;

    node = parent;

    if (depth) {
        parent = (depth <= sizeof(json->path)) ? json->path[depth - 1]
                                               : NGX_MCP_PATH_NONE;
        object = (json->nesting[(depth - 1) >> 3] >> ((depth - 1) & 7)) & 1;
    }

    goto finish;

done:

    ngx_mcp_json_await(json_done)

    json->error = "bytes behind the JSON value";

failed:

    if (json->error == NULL) {
        json->error = "unexpected character in JSON";
    }

    json->offset = ngx_mcp_json_position(p);
    json->state = json_failed;

    return NGX_ERROR;

suspend:

    json->node = (u_char) node;
    json->parent = (u_char) parent;
    json->object = object;
    json->depth = (uint16_t) depth;
    json->offset = ngx_mcp_json_position(p);

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


/* sets "folded" of member n if a name is equal to its name but for the case */

static void
ngx_mcp_json_similar(ngx_mcp_json_t *json, ngx_uint_t n, u_char *key)
{
    size_t       i;
    u_char       ch;
    const char  *known;

    known = ngx_mcp_json_paths[n].key;

    for (i = 0; i < ngx_mcp_json_paths[n].len; i++) {

        if ((u_char) known[i] == key[i]) {
            continue;
        }

        ch = (u_char) (key[i] | 0x20);

        if (ch != (known[i] | 0x20) || ch < 'a' || ch > 'z') {
            return;
        }
    }

    json->members[n].folded = 1;
    json->ambiguous = 1;
}
