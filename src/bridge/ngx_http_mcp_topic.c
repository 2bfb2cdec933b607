
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_http_mcp_topic.h"


#define NGX_HTTP_MCP_TOPIC_SCHEME   "events://"
#define NGX_HTTP_MCP_TOPIC_LATEST   "/latest"

/* a session may keep one eighth of the topics that its tenant may have */
#define NGX_HTTP_MCP_TOPIC_SHARE    8

/* bytes of the entries of topics in a list, at most */
#define NGX_HTTP_MCP_TOPIC_ENTRIES  (1024 * 1024)

/* initial size of the buffer for entries, bytes */
#define NGX_HTTP_MCP_TOPIC_BUFFER     16384


static ngx_int_t ngx_http_mcp_topic_name(ngx_str_t *uri, ngx_pool_t *pool,
    ngx_str_t *name);
static ngx_uint_t ngx_http_mcp_topic_valid(ngx_str_t *name);
static ngx_uint_t ngx_http_mcp_topic_plain(u_char ch);
static ngx_int_t ngx_http_mcp_topic_decode(ngx_str_t *uri, u_char *buf,
    ngx_str_t *name);
static u_char *ngx_http_mcp_topic_entry(u_char *p, ngx_mcp_topic_info_t *info,
    ngx_str_t *name);


ngx_str_t  ngx_http_mcp_topic_template = ngx_string(
    "{\"uriTemplate\":\"events://{+topic}/latest\",\"name\":\"events\","
    "\"title\":\"Last events of a topic\","
    "\"description\":\"The last events that were published to a topic, newest "
    "last, each with its position. The name of a topic may contain slashes. "
    "Subscribe to be notified of new ones.\","
    "\"mimeType\":\"application/json\"}");


ngx_int_t
ngx_http_mcp_topic_uri(ngx_str_t *name, ngx_pool_t *pool, ngx_str_t *uri)
{
    u_char         *p;
    size_t          i;
    static u_char   hex[] = "0123456789ABCDEF";

    if (!ngx_http_mcp_topic_valid(name)) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(pool, sizeof(NGX_HTTP_MCP_TOPIC_SCHEME
                                 NGX_HTTP_MCP_TOPIC_LATEST) - 1
                          + name->len * 3);
    if (p == NULL) {
        return NGX_ERROR;
    }

    uri->data = p;

    p = ngx_cpymem(p, NGX_HTTP_MCP_TOPIC_SCHEME,
                   sizeof(NGX_HTTP_MCP_TOPIC_SCHEME) - 1);

    for (i = 0; i < name->len; i++) {

        if (ngx_http_mcp_topic_plain(name->data[i])) {
            *p++ = name->data[i];
            continue;
        }

        *p++ = '%';
        *p++ = hex[name->data[i] >> 4];
        *p++ = hex[name->data[i] & 0xf];
    }

    p = ngx_cpymem(p, NGX_HTTP_MCP_TOPIC_LATEST,
                   sizeof(NGX_HTTP_MCP_TOPIC_LATEST) - 1);

    uri->len = p - uri->data;

    return NGX_OK;
}


/* a name must not have control characters: $mcp_topic could not show them */

static ngx_uint_t
ngx_http_mcp_topic_valid(ngx_str_t *name)
{
    return name->len && name->len <= NGX_HTTP_MCP_TOPIC_MAX
           && ngx_mcp_utf8_valid(name, ' ')
           && memchr(name->data, 0x7f, name->len) == NULL;
}


/* characters that {+topic} does not encode (RFC 6570, 3.2.3) */

static ngx_uint_t
ngx_http_mcp_topic_plain(u_char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
           || (ch >= '0' && ch <= '9')
           || (ch && ngx_strchr("-._~:/?#[]@!$&'()*+,;=", ch) != NULL);
}


/*
 * Decodes the name of the topic in a URI.  NGX_OK; NGX_DECLINED: this is no URI
 * of a topic.
 */

static ngx_int_t
ngx_http_mcp_topic_name(ngx_str_t *uri, ngx_pool_t *pool, ngx_str_t *name)
{
    u_char  *buf;

    buf = ngx_pnalloc(pool, uri->len);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_mcp_topic_decode(uri, buf, name);
}


/*
 * Decodes the name of the topic in a URI to buf, which has at least uri->len
 * bytes.  NGX_OK; NGX_DECLINED: this is no URI of a topic.
 */

static ngx_int_t
ngx_http_mcp_topic_decode(ngx_str_t *uri, u_char *buf, ngx_str_t *name)
{
    u_char     *p, *src, *last;
    size_t      head, tail;
    ngx_int_t   ch;

    head = sizeof(NGX_HTTP_MCP_TOPIC_SCHEME) - 1;
    tail = sizeof(NGX_HTTP_MCP_TOPIC_LATEST) - 1;

    if (uri->len <= head + tail
        || ngx_memcmp(uri->data, NGX_HTTP_MCP_TOPIC_SCHEME, head) != 0
        || ngx_memcmp(uri->data + uri->len - tail, NGX_HTTP_MCP_TOPIC_LATEST,
                      tail)
           != 0)
    {
        return NGX_DECLINED;
    }

    p = buf;
    src = uri->data + head;
    last = uri->data + uri->len - tail;

    while (src < last) {

        if (*src == '%' && last - src > 2) {
            ch = ngx_hextoi(src + 1, 2);

            if (ch != NGX_ERROR) {
                *p++ = (u_char) ch;
                src += 3;
                continue;
            }
        }

        *p++ = *src++;
    }

    name->data = buf;
    name->len = p - buf;

    return ngx_http_mcp_topic_valid(name) ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_mcp_topic_resolve(ngx_http_mcp_bridge_t *bridge, ngx_str_t *uri,
    ngx_pool_t *pool, ngx_mcp_topic_t *topic, ngx_str_t *name)
{
    ngx_int_t  rc;

    ngx_memzero(topic, sizeof(ngx_mcp_topic_t));
    ngx_str_null(name);

    topic->limit = bridge->topic_limit;
    topic->share = ngx_max(1, bridge->topic_limit / NGX_HTTP_MCP_TOPIC_SHARE);

    if (bridge->topics) {
        rc = ngx_http_mcp_topic_name(uri, pool, name);

        if (rc == NGX_ERROR
            || (rc == NGX_OK
                && ngx_http_mcp_topic_uri(name, pool, uri) != NGX_OK))
        {
            return NGX_ERROR;
        }

        if (rc == NGX_DECLINED) {
            ngx_str_null(name);
        }
    }

    topic->uri = *uri;
    topic->other = (name->len == 0);

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_topic_read(ngx_http_mcp_bridge_t *bridge, ngx_mcp_caller_t *caller,
    ngx_mcp_topic_t *topic, ngx_str_t *name, ngx_pool_t *pool,
    ngx_str_t *result)
{
    u_char                 *p, *start;
    size_t                  len, size;
    ngx_int_t               rc;
    ngx_str_t               text;
    ngx_uint_t              n;
    ngx_mcp_ref_t           ref;
    ngx_mcp_topic_event_t   event;

    if (ngx_mcp_topic_find(bridge->zone, caller, topic, &ref) != NGX_OK) {
        return NGX_DECLINED;
    }

    /* the double size allows for events that are added during the reading */

    size = sizeof("{\"topic\":,\"events\":[]}") - 1
           + ngx_mcp_json_escaped_len(name)
           + NGX_MCP_TOPIC_EVENTS * (sizeof(",{\"position\":,\"event\":}") - 1
                                     + NGX_INT64_LEN)
           + NGX_MCP_TOPIC_BYTES * 2;

    start = ngx_pnalloc(pool, size);
    if (start == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(start, "{\"topic\":", sizeof("{\"topic\":") - 1);
    p = ngx_mcp_json_escape(p, name);
    p = ngx_cpymem(p, ",\"events\":[", sizeof(",\"events\":[") - 1);

    event.position = 0;
    rc = NGX_OK;

    for (n = 0; n < NGX_MCP_TOPIC_EVENTS; n++) {

        /*
         * Reads the event behind the place of its position, which is known only
         * after this.
         */

        event.text.data = p + sizeof(",{\"position\":,\"event\":") - 1
                          + NGX_INT64_LEN;

        if (start + size < event.text.data + NGX_MCP_TOPIC_BYTES + 3) {
            break;
        }

        rc = ngx_mcp_topic_next(bridge->zone, caller, ref, 0, &event);

        if (rc != NGX_OK) {
            break;
        }

        if (n) {
            *p++ = ',';
        }

        p = ngx_sprintf(p, "{\"position\":%uL,\"event\":", event.position);
        p = ngx_movemem(p, event.text.data, event.text.len);
        *p++ = '}';
    }

    if (rc == NGX_DONE || rc == NGX_DECLINED || n == 0) {
        return NGX_DECLINED;
    }

    *p++ = ']';
    *p++ = '}';

    text.data = start;
    text.len = p - start;

    len = sizeof("{\"contents\":[{\"uri\":,\"mimeType\":\"application/json\","
                 "\"text\":}]}") - 1
          + ngx_mcp_json_escaped_len(&topic->uri)
          + ngx_mcp_json_escaped_len(&text);

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    result->data = p;

    p = ngx_cpymem(p, "{\"contents\":[{\"uri\":",
                   sizeof("{\"contents\":[{\"uri\":") - 1);
    p = ngx_mcp_json_escape(p, &topic->uri);
    p = ngx_cpymem(p, ",\"mimeType\":\"application/json\",\"text\":",
                   sizeof(",\"mimeType\":\"application/json\",\"text\":") - 1);
    p = ngx_mcp_json_escape(p, &text);
    p = ngx_cpymem(p, "}]}", 3);

    result->len = p - result->data;

    return NGX_OK;
}


static ngx_str_t  ngx_http_mcp_topic_description = ngx_string(
    ",\"description\":\"The last events of this topic, newest last\","
    "\"mimeType\":\"application/json\","
    "\"annotations\":{\"lastModified\":\"");

/* bytes of an entry, at most: each byte of a text may be escaped to six */

#define ngx_http_mcp_topic_entry_max(info, name)                              \
    (sizeof(",{\"uri\":\"\",\"name\":\"\"YYYY-MM-DDTHH:MM:SSZ\"}},") - 1       \
     + ngx_http_mcp_topic_description.len                                     \
     + 6 * ((info)->uri.len + (name)->len))


static u_char *
ngx_http_mcp_topic_entry(u_char *p, ngx_mcp_topic_info_t *info,
    ngx_str_t *name)
{
    ngx_tm_t    tm;
    ngx_str_t  *description;

    description = &ngx_http_mcp_topic_description;

    ngx_gmtime((time_t) (info->time / 1000), &tm);

    p = ngx_cpymem(p, "{\"uri\":", sizeof("{\"uri\":") - 1);
    p = ngx_mcp_json_escape(p, &info->uri);
    p = ngx_cpymem(p, ",\"name\":", sizeof(",\"name\":") - 1);
    p = ngx_mcp_json_escape(p, name);
    p = ngx_cpymem(p, description->data, description->len);

    return ngx_sprintf(p, "%4d-%02d-%02dT%02d:%02d:%02dZ\"}}",
                       tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                       tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec);
}


ngx_int_t
ngx_http_mcp_topic_entries(ngx_http_mcp_bridge_t *bridge,
    ngx_mcp_caller_t *caller, ngx_pool_t *pool, ngx_str_t *head,
    ngx_str_t *tail, ngx_str_t *text)
{
    u_char                  *p, *start, *grown;
    u_char                   buf[NGX_MCP_TOPIC_URI_MAX];
    u_char                   uris[NGX_MCP_TOPIC_TEXTS];
    size_t                   size, need, left;
    ngx_int_t                more;
    ngx_str_t                name;
    ngx_uint_t               i, n, written, seen;
    ngx_mcp_topic_info_t     list[NGX_MCP_TOPIC_LIST];
    ngx_mcp_topic_cursor_t   cursor;

    ngx_memzero(&cursor, sizeof(ngx_mcp_topic_cursor_t));

    written = 0;
    size = head->len + tail->len + NGX_HTTP_MCP_TOPIC_BUFFER;

    start = ngx_pnalloc(pool, size);
    if (start == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(start, head->data, head->len);

    do {
        more = ngx_mcp_topic_list(bridge->zone, caller, &cursor, uris, list,
                                  &n);

        for (i = 0; i < n; i++) {

            if (ngx_http_mcp_topic_decode(&list[i].uri, buf, &name)
                != NGX_OK)
            {
                continue;
            }

            text->len = p - start;
            need = text->len + ngx_http_mcp_topic_entry_max(&list[i], &name)
                   + tail->len;

            if (need > head->len + tail->len + NGX_HTTP_MCP_TOPIC_ENTRIES) {
                more = NGX_DONE;
                break;
            }

            if (need > size) {

                /* estimates the length of the entries that follow */

                seen = cursor.seen - (n - i);

                left = (text->len - head->len) * (cursor.topics - seen)
                       / ngx_max(seen, 1);
                left = ngx_min(left, NGX_HTTP_MCP_TOPIC_ENTRIES);

                size = ngx_max(need + left + left / 8, size + size / 2);

                grown = ngx_pnalloc(pool, size);
                if (grown == NULL) {
                    return NGX_ERROR;
                }

                p = ngx_cpymem(grown, start, text->len);

                (void) ngx_pfree(pool, start);
                start = grown;
            }

            if (written++) {
                *p++ = ',';
            }

            p = ngx_http_mcp_topic_entry(p, &list[i], &name);
        }

    } while (more == NGX_OK);

    if (written && tail->data[0] != ']') {
        *p++ = ',';
    }

    p = ngx_cpymem(p, tail->data, tail->len);

    text->data = start;
    text->len = p - start;

    return NGX_OK;
}
