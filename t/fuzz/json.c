
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The scan in random pieces does what it does on the whole; it accepts what a
 * plain recursive reading of RFC 8259 accepts; cJSON accepts that too and
 * sees the same members; and what a message is said to be is so.
 */

#include "core.h"
#include "ngx_mcp_message.h"

#include <cjson/cJSON.h>


#define check(cond)                                                           \
    if (!(cond)) {                                                            \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);            \
        __builtin_trap();                                                     \
    }


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static const u_char *plain_value(const u_char *p, const u_char *end, int depth);


/* half a surrogate pair was seen, which cJSON refuses */
static int  plain_lone;


static const u_char *
plain_space(const u_char *p, const u_char *end)
{
    while (p < end && memchr(" \t\r\n", *p, 4)) {
        p++;
    }

    return p;
}


static int
plain_hex(const u_char *p, const u_char *end)
{
    int    i;
    char   digits[5];

    if (end - p < 4) {
        return -1;
    }

    for (i = 0; i < 4; i++) {
        if (!isxdigit(p[i])) {
            return -1;
        }

        digits[i] = p[i];
    }

    digits[4] = '\0';

    return (int) strtol(digits, NULL, 16);
}


static const u_char *
plain_string(const u_char *p, const u_char *end)
{
    int       code, n;
    uint32_t  ch;

    for (p++; p < end; /* void */ ) {

        if (*p == '"') {
            return p + 1;
        }

        if (*p < 0x20) {
            return NULL;
        }

        if (*p == '\\') {
            if (end - p < 2) {
                return NULL;
            }

            if (p[1] != 'u') {
                if (p[1] == '\0' || strchr("\"\\/bfnrt", p[1]) == NULL) {
                    return NULL;
                }

                p += 2;
                continue;
            }

            code = plain_hex(p + 2, end);
            p += 6;

            if (code < 0) {
                return NULL;
            }

            if ((code & 0xfc00) == 0xd800 && end - p >= 6
                && p[0] == '\\' && p[1] == 'u'
                && (plain_hex(p + 2, end) & 0xfc00) == 0xdc00)
            {
                p += 6;

            } else if ((code & 0xf800) == 0xd800) {
                plain_lone = 1;
            }

            continue;
        }

        if (*p < 0x80) {
            p++;
            continue;
        }

        n = (*p & 0xe0) == 0xc0 ? 1 : (*p & 0xf0) == 0xe0 ? 2
            : (*p & 0xf8) == 0xf0 ? 3 : 0;

        if (n == 0 || end - p <= n) {
            return NULL;
        }

        ch = *p++ & (0x3f >> n);

        for (code = n; code; code--, p++) {
            if ((*p & 0xc0) != 0x80) {
                return NULL;
            }

            ch = (ch << 6) | (*p & 0x3f);
        }

        if (ch > 0x10ffff || (ch >= 0xd800 && ch <= 0xdfff)
            || ch < (n == 1 ? 0x80u : n == 2 ? 0x800u : 0x10000u))
        {
            return NULL;
        }
    }

    return NULL;
}


static const u_char *
plain_digits(const u_char *p, const u_char *end)
{
    const u_char  *start;

    for (start = p; p < end && isdigit(*p); p++) { /* void */ }

    return p == start ? NULL : p;
}


static const u_char *
plain_number(const u_char *p, const u_char *end)
{
    p += (*p == '-');

    if (p < end && *p == '0') {
        p++;

    } else {
        p = plain_digits(p, end);
    }

    if (p && p < end && *p == '.') {
        p = plain_digits(p + 1, end);
    }

    if (p && p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += (p < end && (*p == '+' || *p == '-'));
        p = plain_digits(p, end);
    }

    return p;
}


static const u_char *
plain_container(const u_char *p, const u_char *end, int depth)
{
    u_char  open;

    open = *p;
    p = plain_space(p + 1, end);

    if (depth > NGX_MCP_JSON_DEPTH || p == end) {
        return NULL;
    }

    if (*p == open + 2) {
        return p + 1;
    }

    for ( ;; ) {
        if (open == '{') {
            p = plain_space(p, end);

            if (p == end || *p != '"' || (p = plain_string(p, end)) == NULL) {
                return NULL;
            }

            p = plain_space(p, end);

            if (p == end || *p++ != ':') {
                return NULL;
            }
        }

        p = plain_value(plain_space(p, end), end, depth);

        if (p == NULL) {
            return NULL;
        }

        p = plain_space(p, end);

        if (p == end) {
            return NULL;
        }

        if (*p == open + 2) {
            return p + 1;
        }

        if (*p++ != ',') {
            return NULL;
        }
    }
}


static const u_char *
plain_value(const u_char *p, const u_char *end, int depth)
{
    size_t              i;
    static const char  *words[] = { "null", "true", "false" };

    if (p == end) {
        return NULL;
    }

    switch (*p) {
    case '"':
        return plain_string(p, end);
    case '{':
    case '[':
        return plain_container(p, end, depth + 1);
    }

    for (i = 0; i < 3; i++) {
        if ((size_t) (end - p) >= strlen(words[i])
            && memcmp(p, words[i], strlen(words[i])) == 0)
        {
            return p + strlen(words[i]);
        }
    }

    return plain_number(p, end);
}


static int
plain_json(const u_char *p, const u_char *end)
{
    plain_lone = 0;

    p = plain_value(plain_space(p, end), end, 0);

    return p && plain_space(p, end) == end;
}


/* cJSON reads at most 63 bytes of a number, and ends strings at a NUL */

static int
cjson_loses(const u_char *data, size_t size)
{
    size_t  i, run;

    if (plain_lone) {
        return 1;
    }

    for (run = 0, i = 0; i < size; i++) {

        run = (data[i] && strchr("0123456789+-.eE", data[i])) ? run + 1 : 0;

        if (run >= 63 || (size - i >= 6 && memcmp(data + i, "\\u0000", 6) == 0))
        {
            return 1;
        }
    }

    return 0;
}


static void
check_string(ngx_str_t *raw)
{
    u_char          *plain, *again, *twice;
    ngx_str_t        text, back;
    ngx_mcp_json_t   json;

    plain = malloc(raw->len);
    text.data = plain;
    text.len = ngx_mcp_json_unescape(plain, raw) - plain;

    back.len = ngx_mcp_json_escaped_len(&text);
    again = malloc(back.len);
    back.data = again;

    check(ngx_mcp_json_escape(again, &text) == again + back.len);
    check(ngx_mcp_json_scan(&json, &back) == NGX_OK);
    check(json.type == NGX_MCP_JSON_STRING);
    check(ngx_mcp_json_same_id(raw, &back));
    check(ngx_mcp_json_same_id(&back, raw));

    twice = malloc(back.len);
    check(ngx_mcp_json_unescape(twice, &back) == twice + text.len);
    check(memcmp(twice, plain, text.len) == 0);

    free(plain);
    free(again);
    free(twice);
}


static void
check_value(ngx_str_t *text, cJSON *item, int depth)
{
    int         n;
    ngx_str_t   rest, name, value;
    cJSON      *child;

    check(text->len > 0);

    if (depth > 20) {
        return;
    }

    rest = *text;
    n = 0;
    child = item ? item->child : NULL;

    switch (text->data[0]) {

    case '"':
        check_string(text);
        return;

    case '[':
        while (ngx_mcp_json_element(&rest, &value) == NGX_OK) {
            check_value(&value, child, depth + 1);
            child = child ? child->next : NULL;
            n++;
        }

        break;

    case '{':
        while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {
            check_string(&name);
            check_value(&value, child, depth + 1);
            child = child ? child->next : NULL;
            n++;
        }

        break;

    default:
        return;
    }

    check(item == NULL || cJSON_GetArraySize(item) == n);
}


static int
cjson_type(cJSON *item)
{
    return cJSON_IsNull(item) ? NGX_MCP_JSON_NULL
           : cJSON_IsTrue(item) ? NGX_MCP_JSON_TRUE
           : cJSON_IsFalse(item) ? NGX_MCP_JSON_FALSE
           : cJSON_IsNumber(item) ? NGX_MCP_JSON_NUMBER
           : cJSON_IsString(item) ? NGX_MCP_JSON_STRING
           : cJSON_IsObject(item) ? NGX_MCP_JSON_OBJECT
           : cJSON_IsArray(item) ? NGX_MCP_JSON_ARRAY : NGX_MCP_JSON_ABSENT;
}


/* each member, by cJSON, where nothing on its path stands there twice */

static void
check_members(ngx_mcp_json_t *json, u_char *text, cJSON *root)
{
    u_char      *plain;
    cJSON       *items[NGX_MCP_PATH_MAX + 1], *item;
    ngx_str_t    raw;
    ngx_uint_t   i, clear[NGX_MCP_PATH_MAX + 1];

#define P(name, parent, first, key)  { NGX_MCP_PATH_ ## parent, key },
    static struct {
        ngx_uint_t   parent;
        const char  *key;
    } paths[] = { NGX_MCP_JSON_PATHS(P) };
#undef P

    items[NGX_MCP_PATH_ROOT] = root;
    clear[NGX_MCP_PATH_ROOT] = 1;

    for (i = 0; i < NGX_MCP_PATH_MAX; i++) {

        item = items[paths[i].parent];
        item = cJSON_IsObject(item)
               ? cJSON_GetObjectItemCaseSensitive(item, paths[i].key) : NULL;

        items[i] = item;
        clear[i] = clear[paths[i].parent] && json->members[i].count < 2;

        if (!clear[i]) {
            continue;
        }

        check(json->members[i].count == (item != NULL));
        check(json->members[i].type == (unsigned) cjson_type(item));

        if (json->members[i].type != NGX_MCP_JSON_STRING) {
            continue;
        }

        raw = ngx_mcp_json_span(json, i, text);
        plain = malloc(raw.len);
        raw.len = ngx_mcp_json_unescape(plain, &raw) - plain;

        check(raw.len == strlen(item->valuestring));
        check(memcmp(plain, item->valuestring, raw.len) == 0);

        free(plain);
    }
}


/*
 * Which members of the whole have a name like theirs beside them, in another
 * way: after decoding, until the first NUL, by letters of any case.
 */

static void
check_folded(ngx_mcp_json_t *json, ngx_str_t *text)
{
    char        *plain, *src, *dst;
    size_t       i, k, len;
    ngx_str_t    rest, name, value;
    ngx_uint_t   folded[NGX_MCP_PATH_MAX], other;

#define P(name, parent, first, key)  { NGX_MCP_PATH_ ## parent, key },
    static struct {
        ngx_uint_t   parent;
        const char  *key;
    } paths[] = { NGX_MCP_JSON_PATHS(P) };
#undef P

    static struct {
        const char  *from;
        char         to;
    } letters[] = { { "\xc5\xbf", 's' }, { "\xe2\x84\xaa", 'k' },
                    { "\xc4\xb0", 'i' }, { "\xc4\xb1", 'i' } };

    memset(folded, 0, sizeof(folded));
    rest = *text;

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        plain = malloc(name.len + 1);
        len = ngx_mcp_json_unescape((u_char *) plain, &name)
              - (u_char *) plain;
        plain[len] = '\0';
        other = (strlen(plain) != len);

        /* it may be of half a surrogate pair, which counts as nothing */

        if (strstr(plain, "\xef\xbf\xbd")) {
            free(plain);
            return;
        }

        for (src = plain, dst = plain; *src; dst++) {
            *dst = *src;

            for (k = 0; k < sizeof(letters) / sizeof(letters[0]); k++) {
                if (strncmp(src, letters[k].from, strlen(letters[k].from)) == 0)
                {
                    *dst = letters[k].to;
                    src += strlen(letters[k].from) - 1;
                    other = 1;
                    break;
                }
            }

            src++;
        }

        *dst = '\0';

        for (i = 0; i < NGX_MCP_PATH_MAX; i++) {
            if (paths[i].parent == NGX_MCP_PATH_ROOT
                && strcasecmp(paths[i].key, plain) == 0
                && (other || strcmp(paths[i].key, plain) != 0))
            {
                folded[i] = 1;
            }
        }

        free(plain);
    }

    for (i = 0; i < NGX_MCP_PATH_MAX; i++) {
        if (paths[i].parent == NGX_MCP_PATH_ROOT) {
            check(json->members[i].folded == folded[i]);
            check(!folded[i] || json->ambiguous);
        }
    }
}


static void
check_message(ngx_str_t *text, ngx_int_t scanned, ngx_pool_t *pool)
{
    size_t             i, k, control;
    ngx_int_t          rc;
    ngx_str_t          str, *name;
    const char        *why;
    ngx_mcp_json_t     json;
    ngx_mcp_message_t  m;

    static ngx_mcp_path_e  shown[] = {
        NGX_MCP_PATH_METHOD, NGX_MCP_PATH_NAME, NGX_MCP_PATH_URI
    };

    why = NULL;
    rc = ngx_mcp_message_parse(&m, text, &why);

    check((rc == NGX_MCP_PARSE_ERROR) == (scanned != NGX_OK));
    check(rc == NGX_OK || why != NULL);
    check(rc == NGX_OK || m.kind == NGX_MCP_INVALID);
    check(rc != NGX_OK || m.kind != NGX_MCP_INVALID);

    if (rc == NGX_OK && ngx_mcp_message_parse_client(&m, text, &why) == NGX_OK
        && m.subject != NGX_MCP_PATH_NONE)
    {
        check(m.json.members[m.subject].type == NGX_MCP_JSON_STRING);
        check(m.json.members[m.subject].count == 1);
        check(!m.json.members[m.subject].folded);
        check(!m.json.members[m.subject].lone);
    }

    why = NULL;
    check(ngx_mcp_message_parse(&m, text, &why) == rc);
    check(m.id.len <= NGX_MCP_ID_MAX);

    if (m.id.len) {
        check(ngx_mcp_json_same_id(&m.id, &m.id));
    }

    for (control = 0, i = 0; scanned == NGX_OK && i < 3; i++) {
        str = ngx_mcp_message_string(&m, shown[i], pool);

        for (k = 0; k < str.len; k++) {
            control += (str.data[k] < 0x20 || str.data[k] == 0x7f);
        }
    }

    if (rc == NGX_OK && m.method.len) {
        check(control == 0);
        str = ngx_mcp_message_string(&m, NGX_MCP_PATH_METHOD, pool);
        name = ngx_mcp_method_name(m.method_code);
        check(ngx_mcp_method_parse(&str) == m.method_code);
        check(m.method_code == NGX_MCP_METHOD_OTHER
              || (name->len == str.len
                  && memcmp(name->data, str.data, str.len) == 0));
    }

    if (why && strstr(why, "control character in \"")) {
        check(control);
    }

    str = ngx_mcp_error_compose(pool, NGX_MCP_2025_11_25, &m.id, -32600, text,
                                scanned == NGX_OK ? text : NULL);
    rc = ngx_mcp_json_scan(&json, &str);
    check(rc == NGX_OK || json.error[0] == 'J' /* too deep by now */);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char            *copy;
    u_char          *text, *piece;
    cJSON           *root;
    size_t           i, n, from;
    uint32_t         seed;
    ngx_int_t        rc, prc;
    ngx_str_t        str, value;
    ngx_pool_t      *pool;
    ngx_mcp_json_t   json, part;

    text = core_copy(data, size);
    str.data = text;
    str.len = size;

    rc = ngx_mcp_json_scan(&json, &str);

    check((rc == NGX_OK) == plain_json(text, text + size));
    for (seed = 5381, i = 0; i < size; i++) {
        seed = seed * 33 + data[i];
    }

    memset(&part, 0x5a, sizeof(part));
    ngx_mcp_json_init(&part);

    for (from = 0; from < size; from += n) {
        seed = seed * 1103515245 + 12345;
        n = ((seed >> 16) & 7) ? 1 + (seed >> 20) % 11 : 1 + (seed >> 16) % 99;
        n = ngx_min(n, size - from);

        piece = core_copy(data + from, n);
        prc = ngx_mcp_json_feed(&part, piece, piece + n);
        free(piece);

        if (prc == NGX_ERROR) {
            break;
        }
    }

    check(ngx_mcp_json_end(&part) == rc);
    check(part.type == json.type && part.offset == json.offset);
    check((rc == NGX_OK) == (json.error == NULL));
    check(rc == NGX_OK || strcmp(part.error, json.error) == 0);

    for (i = 0; i < NGX_MCP_PATH_MAX; i++) {
        check(part.members[i].start == json.members[i].start);
        check(part.members[i].end == json.members[i].end);
        check(part.members[i].type == json.members[i].type);
        check(part.members[i].count == json.members[i].count);
        check(part.members[i].folded == json.members[i].folded);
        check(part.members[i].lone == json.members[i].lone);
        check(!json.members[i].lone || plain_lone || rc != NGX_OK);
    }

    if (rc == NGX_OK) {
        root = NULL;

        if (!cjson_loses(data, size)) {
            copy = malloc(size + 1);
            memcpy(copy, data, size);
            copy[size] = '\0';

            root = cJSON_ParseWithLengthOpts(copy, size + 1, NULL, 1);
            check(root != NULL);
            check_members(&json, text, root);
            free(copy);
        }

        value = str;

        while (value.len && strchr(" \t\r\n", value.data[0])) {
            value.data++;
            value.len--;
        }

        while (value.len && strchr(" \t\r\n", value.data[value.len - 1])) {
            value.len--;
        }

        check_value(&value, root, 0);
        cJSON_Delete(root);

        if (json.type == NGX_MCP_JSON_OBJECT) {
            check_folded(&json, &value);
        }
    }

    pool = ngx_create_pool(1024, NULL);
    check_message(&str, rc, pool);
    ngx_destroy_pool(pool);

    /* these are for accepted text, but keep within any */

    piece = malloc(size ? size : 1);
    (void) ngx_mcp_json_unescape(piece, &str);
    free(piece);

    value = str;
    while (ngx_mcp_json_element(&value, &str) == NGX_OK) { /* void */ }

    free(text);

    return 0;
}
