
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_listen.h"
#include "ngx_mcp_splice.h"


#define NGX_MCP_LISTEN_KEY                                                    \
    "\"io.modelcontextprotocol/subscriptionId\":"

#define NGX_MCP_LISTEN_UPDATED                                                \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","    \
    "\"params\":{"


static ngx_int_t ngx_mcp_listen_uris(ngx_str_t *array, ngx_uint_t max,
    ngx_pool_t *pool, ngx_mcp_listen_t *listen, const char **why);
static ngx_int_t ngx_mcp_listen_uri(ngx_str_t *raw, ngx_uint_t max,
    ngx_pool_t *pool, ngx_mcp_listen_t *listen, const char **why);
static ngx_uint_t ngx_mcp_listen_has_meta(u_char *text, size_t len);
static ngx_uint_t ngx_mcp_listen_keep(ngx_str_t *name, ngx_str_t *value,
    void *data);
static ngx_uint_t ngx_mcp_listen_empty(ngx_str_t *object);
static size_t ngx_mcp_listen_insert(u_char *text, size_t len, size_t at,
    const char *before, ngx_str_t *id, const char *after);
static size_t ngx_mcp_listen_tag_scanned(u_char *text, size_t len,
    ngx_str_t *id);


static struct {
    ngx_str_t   name;
    ngx_uint_t  list;
} ngx_mcp_listen_lists[] = {
    { ngx_string("toolsListChanged"), NGX_MCP_OFFERED_TOOLS },
    { ngx_string("promptsListChanged"), NGX_MCP_OFFERED_PROMPTS },
    { ngx_string("resourcesListChanged"), NGX_MCP_OFFERED_RESOURCES },
    { ngx_null_string, 0 }
};

static ngx_str_t  ngx_mcp_listen_resources =
    ngx_string("resourceSubscriptions");


ngx_int_t
ngx_mcp_listen_read(ngx_mcp_message_t *m, ngx_uint_t max, ngx_pool_t *pool,
    ngx_mcp_listen_t *listen, const char **why)
{
    ngx_int_t   rc;
    ngx_str_t   rest, name, value;
    ngx_uint_t  i;

    listen->lists = 0;

    if (ngx_array_init(&listen->uris, pool, 4, sizeof(ngx_str_t)) != NGX_OK) {
        return NGX_ERROR;
    }

    if (m->json.members[NGX_MCP_PATH_NOTIFICATIONS].type
        != NGX_MCP_JSON_OBJECT)
    {
        *why = "params.notifications must be an object";
        return NGX_DECLINED;
    }

    rest = ngx_mcp_message_member(m, NGX_MCP_PATH_NOTIFICATIONS);

    while (ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&name, &ngx_mcp_listen_resources)) {
            rc = ngx_mcp_listen_uris(&value, max, pool, listen, why);

            if (rc != NGX_OK) {
                return rc;
            }

            continue;
        }

        for (i = 0; ngx_mcp_listen_lists[i].list; i++) {

            if (!ngx_mcp_json_is(&name, &ngx_mcp_listen_lists[i].name)) {
                continue;
            }

            if (value.data[0] == 't') {
                listen->lists |= ngx_mcp_listen_lists[i].list;

            } else if (value.data[0] != 'f') {
                *why = "toolsListChanged, promptsListChanged and "
                       "resourcesListChanged in params.notifications must be "
                       "true or false";
                return NGX_DECLINED;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_listen_uris(ngx_str_t *array, ngx_uint_t max, ngx_pool_t *pool,
    ngx_mcp_listen_t *listen, const char **why)
{
    ngx_int_t  rc;
    ngx_str_t  rest, raw;

    rest = *array;

    if (rest.data[0] != '[') {
        *why = "params.notifications.resourceSubscriptions must be an array";
        return NGX_DECLINED;
    }

    while (ngx_mcp_json_element(&rest, &raw) == NGX_OK) {

        if (raw.data[0] != '"') {
            *why = "params.notifications.resourceSubscriptions must be an "
                   "array of strings";
            return NGX_DECLINED;
        }

        if (raw.len == 2 || ngx_mcp_json_control(&raw)) {
            *why = "params.notifications.resourceSubscriptions has a URI that "
                   "is empty or has a control character";
            return NGX_DECLINED;
        }

        rc = ngx_mcp_listen_uri(&raw, max, pool, listen, why);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_listen_uri(ngx_str_t *raw, ngx_uint_t max, ngx_pool_t *pool,
    ngx_mcp_listen_t *listen, const char **why)
{
    ngx_str_t   uri, *known;
    ngx_uint_t  i;

    if (ngx_mcp_json_text(pool, raw, &uri) != NGX_OK) {
        return NGX_ERROR;
    }

    known = listen->uris.elts;

    for (i = 0; i < listen->uris.nelts; i++) {
        if (ngx_mcp_equal(&known[i], &uri)) {
            return NGX_OK;
        }
    }

    if (i == max) {
        *why = "params.notifications.resourceSubscriptions has more URIs than "
               "mcp_subscription_limit";
        return NGX_DECLINED;
    }

    known = ngx_array_push(&listen->uris);
    if (known == NULL) {
        return NGX_ERROR;
    }

    *known = uri;

    return NGX_OK;
}


ngx_str_t
ngx_mcp_listen_acknowledge(ngx_pool_t *pool, ngx_str_t *id,
    ngx_mcp_listen_t *listen)
{
    u_char      *p;
    size_t       len;
    ngx_str_t    text, *uri;
    ngx_uint_t   i;

    uri = listen->uris.elts;
    len = 2 * NGX_MCP_LISTEN_ROOM + id->len;

    for (i = 0; ngx_mcp_listen_lists[i].list; i++) {
        len += ngx_mcp_listen_lists[i].name.len + sizeof("\"\":true,") - 1;
    }

    for (i = 0; i < listen->uris.nelts; i++) {
        len += ngx_mcp_json_escaped_len(&uri[i]) + 1;
    }

    ngx_str_null(&text);

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return text;
    }

    text.data = p;

    p = ngx_sprintf(p, "{\"jsonrpc\":\"2.0\",\"method\":"
                       "\"notifications/subscriptions/acknowledged\","
                       "\"params\":{\"_meta\":{" NGX_MCP_LISTEN_KEY "%V},"
                       "\"notifications\":{", id);

    for (i = 0; ngx_mcp_listen_lists[i].list; i++) {

        if (listen->lists & ngx_mcp_listen_lists[i].list) {
            p = ngx_sprintf(p, "\"%V\":true,", &ngx_mcp_listen_lists[i].name);
        }
    }

    if (listen->uris.nelts) {
        p = ngx_sprintf(p, "\"resourceSubscriptions\":[");

        for (i = 0; i < listen->uris.nelts; i++) {
            p = ngx_mcp_json_escape(p, &uri[i]);
            *p++ = ',';
        }

        p[-1] = ']';
        *p++ = ',';
    }

    if (p[-1] == ',') {
        p--;
    }

    *p++ = '}';
    *p++ = '}';
    *p++ = '}';

    text.len = p - text.data;

    return text;
}


u_char *
ngx_mcp_listen_result(u_char *dst, ngx_str_t *id)
{
    return ngx_sprintf(dst, "{\"jsonrpc\":\"2.0\",\"id\":%V,"
                            "\"result\":{\"resultType\":\"complete\","
                            "\"_meta\":{" NGX_MCP_LISTEN_KEY "%V}}}", id, id);
}


size_t
ngx_mcp_listen_tag(u_char *text, size_t len, ngx_str_t *id)
{
    ngx_mcp_list_change_t  *change;

    /* the module's own notifications need no scan */

    for (change = ngx_mcp_list_changes; change->kinds; change++) {

        if (len == change->notification.len
            && ngx_memcmp(text, change->notification.data, len) == 0)
        {
            return ngx_mcp_listen_insert(text, len, len - 1,
                                         ",\"params\":{\"_meta\":{", id, "}}");
        }
    }

    if (len > sizeof(NGX_MCP_LISTEN_UPDATED)
        && ngx_memcmp(text, NGX_MCP_LISTEN_UPDATED,
                      sizeof(NGX_MCP_LISTEN_UPDATED) - 1)
           == 0
        && text[sizeof(NGX_MCP_LISTEN_UPDATED) - 1] == '"'
        && !ngx_mcp_listen_has_meta(text, len))
    {
        return ngx_mcp_listen_insert(text, len,
                                     sizeof(NGX_MCP_LISTEN_UPDATED) - 1,
                                     "\"_meta\":{", id, "},");
    }

    return ngx_mcp_listen_tag_scanned(text, len, id);
}


/* returns whether a notification may have a member "_meta" */

static ngx_uint_t
ngx_mcp_listen_has_meta(u_char *text, size_t len)
{
    u_char  *p, *last;

    if (memchr(text, '\\', len)) {
        return 1;
    }

    last = text + len - 5;

    for (p = memchr(text, '_', len);
         p && p < last;
         p = memchr(p + 1, '_', last - p))
    {
        if (ngx_memcmp(p, "_meta", 5) == 0) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_mcp_listen_keep(ngx_str_t *name, ngx_str_t *value, void *data)
{
    static ngx_str_t  key =
        ngx_string("io.modelcontextprotocol/subscriptionId");

    return !ngx_mcp_equal(name, &key);
}


static ngx_uint_t
ngx_mcp_listen_empty(ngx_str_t *object)
{
    ngx_str_t  rest, name, value;

    rest = *object;

    return ngx_mcp_json_member(&rest, &name, &value) != NGX_OK;
}


static size_t
ngx_mcp_listen_tag_scanned(u_char *text, size_t len, ngx_str_t *id)
{
    size_t           at, left;
    ngx_str_t        value, params, meta;
    ngx_uint_t       method;
    ngx_mcp_json_t   json;

    value.data = text;
    value.len = len;

    if (ngx_mcp_json_scan(&json, &value) != NGX_OK
        || json.type != NGX_MCP_JSON_OBJECT)
    {
        return 0;
    }

    method = ngx_mcp_method_of(&json, &value);

    if (method != NGX_MCP_METHOD_RESOURCES_UPDATED
        && ngx_mcp_list_change(method) == NULL)
    {
        return 0;
    }

    params = ngx_mcp_json_span(&json, NGX_MCP_PATH_PARAMS, text);
    meta = ngx_mcp_json_span(&json, NGX_MCP_PATH_META, text);

    if (json.members[NGX_MCP_PATH_META].type == NGX_MCP_JSON_OBJECT
        && json.members[NGX_MCP_PATH_META].count == 1)
    {
        /* a subscription id of the upstream is replaced */

        left = meta.len;
        (void) ngx_mcp_cut(&meta, ngx_mcp_listen_keep, NULL);
        left -= meta.len;

        ngx_memmove(meta.data + meta.len, meta.data + meta.len + left,
                    text + len - (meta.data + meta.len + left));
        len -= left;

        return ngx_mcp_listen_insert(text, len, meta.data - text + 1, "", id,
                                     ngx_mcp_listen_empty(&meta) ? "" : ",");
    }

    if (json.members[NGX_MCP_PATH_META].type != NGX_MCP_JSON_ABSENT) {
        return 0;
    }

    if (json.members[NGX_MCP_PATH_PARAMS].type == NGX_MCP_JSON_OBJECT) {
        return ngx_mcp_listen_insert(text, len, params.data - text + 1,
                                     "\"_meta\":{", id,
                                     ngx_mcp_listen_empty(&params) ? "}"
                                                                   : "},");
    }

    if (json.members[NGX_MCP_PATH_PARAMS].type != NGX_MCP_JSON_ABSENT) {
        return 0;
    }

    for (at = len; text[at - 1] != '}'; at--) { /* void */ }

    return ngx_mcp_listen_insert(text, len, at - 1, ",\"params\":{\"_meta\":{",
                                 id, "}}");
}


static size_t
ngx_mcp_listen_insert(u_char *text, size_t len, size_t at, const char *before,
    ngx_str_t *id, const char *after)
{
    u_char  *p;
    size_t   n, nbefore, nafter;

    nbefore = ngx_strlen(before);
    nafter = ngx_strlen(after);

    n = nbefore + sizeof(NGX_MCP_LISTEN_KEY) - 1 + id->len + nafter;

    ngx_memmove(text + at + n, text + at, len - at);

    p = ngx_cpymem(text + at, before, nbefore);
    p = ngx_cpymem(p, NGX_MCP_LISTEN_KEY, sizeof(NGX_MCP_LISTEN_KEY) - 1);
    p = ngx_cpymem(p, id->data, id->len);
    ngx_memcpy(p, after, nafter);

    return len + n;
}
