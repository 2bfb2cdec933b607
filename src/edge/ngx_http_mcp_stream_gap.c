
#include "ngx_http_mcp_stream_body.h"


typedef struct {
    u_char       *start;
    u_char       *pos;
    u_char       *last;
    ngx_uint_t    n;
    ngx_pool_t   *pool;
} ngx_http_mcp_gap_t;


static ngx_int_t ngx_http_mcp_stream_resync(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap);
static ngx_int_t ngx_http_mcp_gap_room(ngx_http_mcp_gap_t *gap, size_t size);
static ngx_int_t ngx_http_mcp_gap_event(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap, ngx_str_t *head, ngx_str_t *value,
    ngx_str_t *tail);
static ngx_int_t ngx_http_mcp_gap_write(ngx_http_mcp_stream_t *s,
    ngx_http_mcp_gap_t *gap);


#define NGX_HTTP_MCP_GAP_SIZE  4096


static struct {
    ngx_uint_t    offered;
    ngx_str_t     message;
} ngx_http_mcp_gap_lists[] = {

    { NGX_MCP_OFFERED_TOOLS,
      ngx_string("{\"jsonrpc\":\"2.0\","
                 "\"method\":\"notifications/tools/list_changed\"}") },

    { NGX_MCP_OFFERED_PROMPTS,
      ngx_string("{\"jsonrpc\":\"2.0\","
                 "\"method\":\"notifications/prompts/list_changed\"}") },

    { NGX_MCP_OFFERED_RESOURCES,
      ngx_string("{\"jsonrpc\":\"2.0\","
                 "\"method\":\"notifications/resources/list_changed\"}") },

    { 0, ngx_null_string }
};


static ngx_str_t  ngx_http_mcp_gap_updated =
    ngx_string("{\"jsonrpc\":\"2.0\","
               "\"method\":\"notifications/resources/updated\","
               "\"params\":{\"uri\":");
static ngx_str_t  ngx_http_mcp_gap_updated_end = ngx_string("}}");


ngx_int_t
ngx_http_mcp_stream_lagged(ngx_http_mcp_stream_t *s, size_t missed)
{
    u_char              *p;
    ngx_int_t            rc;
    ngx_pool_t          *pool;
    ngx_http_mcp_gap_t   gap;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, s->connection->log, 0,
                   "mcp stream %uD lagged", s->local);

    pool = ngx_create_pool(2 * NGX_HTTP_MCP_GAP_SIZE, s->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    gap.n = 0;
    gap.pool = pool;

    rc = ngx_http_mcp_gap_room(&gap, NGX_HTTP_MCP_GAP_SIZE);

    if (rc == NGX_OK) {
        p = ngx_cpymem(gap.start, "event: lagged\n",
                       sizeof("event: lagged\n") - 1);
        p = s->client->event(s, p);

        p = missed == NGX_MCP_LOST_UNKNOWN
            ? ngx_sprintf(p, "{\"missed\":null}\n\n")
            : ngx_sprintf(p, "{\"missed\":%uz}\n\n", missed);

        gap.pos = p;

        if (s->zs.channel == NGX_MCP_GENERAL_CHANNEL) {
            rc = ngx_http_mcp_stream_resync(s, &gap);
        }

        if (rc == NGX_OK) {
            rc = ngx_http_mcp_gap_write(s, &gap);
        }
    }

    ngx_destroy_pool(pool);

    if (gap.n) {
        ngx_http_mcp_stream_count(s, gap.n);
    }

    return rc;
}


static ngx_int_t
ngx_http_mcp_stream_resync(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap)
{
    ngx_str_t   uri, json;
    ngx_uint_t  i;

    for (i = 0; ngx_http_mcp_gap_lists[i].offered; i++) {

        if ((s->offered & ngx_http_mcp_gap_lists[i].offered)
            && ngx_http_mcp_gap_event(s, gap,
                                      &ngx_http_mcp_gap_lists[i].message,
                                      NULL, NULL)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    for (i = 0; /* void */ ; i++) {

        if (ngx_mcp_session_subscription(s->streams->zone, s->zs.session, i,
                                         gap->pool, &uri)
            != NGX_OK)
        {
            return NGX_OK;
        }

        json.len = ngx_mcp_json_escaped_len(&uri);
        json.data = ngx_pnalloc(gap->pool, json.len);
        if (json.data == NULL) {
            return NGX_ERROR;
        }

        json.len = ngx_mcp_json_escape(json.data, &uri) - json.data;

        if (ngx_http_mcp_gap_event(s, gap, &ngx_http_mcp_gap_updated, &json,
                                   &ngx_http_mcp_gap_updated_end)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
}


static ngx_int_t
ngx_http_mcp_gap_event(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap,
    ngx_str_t *head, ngx_str_t *value, ngx_str_t *tail)
{
    u_char     *p;
    size_t      len;
    ngx_str_t  *parts[3];
    ngx_uint_t  i;

    parts[0] = head;
    parts[1] = value;
    parts[2] = tail;

    len = NGX_HTTP_MCP_STREAM_ID + NGX_HTTP_MCP_STREAM_END;

    for (i = 0; i < 3 && parts[i]; i++) {
        len += parts[i]->len;
    }

    if (len > (size_t) (gap->last - gap->pos)
        && ngx_http_mcp_gap_write(s, gap) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (len > (size_t) (gap->last - gap->pos)
        && ngx_http_mcp_gap_room(gap, len) != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = s->client->event(s, gap->pos);

    for (i = 0; i < 3 && parts[i]; i++) {
        p = ngx_cpymem(p, parts[i]->data, parts[i]->len);
    }

    *p++ = LF;
    *p++ = LF;

    gap->pos = p;
    gap->n++;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_gap_room(ngx_http_mcp_gap_t *gap, size_t size)
{
    u_char  *p;

    p = ngx_pnalloc(gap->pool, NGX_HTTP_MCP_STREAM_HEAD + size
                               + NGX_HTTP_MCP_STREAM_TAIL);
    if (p == NULL) {
        return NGX_ERROR;
    }

    gap->start = p + NGX_HTTP_MCP_STREAM_HEAD;
    gap->pos = gap->start;
    gap->last = gap->start + size;

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_gap_write(ngx_http_mcp_stream_t *s, ngx_http_mcp_gap_t *gap)
{
    size_t  len;

    len = gap->pos - gap->start;

    if (len == 0) {
        return NGX_OK;
    }

    gap->pos = gap->start;

    return ngx_http_mcp_stream_write(s, gap->start, len);
}


ngx_int_t
ngx_http_mcp_stream_answer_lost(ngx_http_mcp_stream_t *s)
{
    u_char      *buf, *p, *text;
    ngx_int_t    rc;
    ngx_str_t    id, answer, why, data;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, s->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    if (s->answer.len) {
        answer = s->answer;
        goto found;
    }

    rc = ngx_mcp_call_id(s->streams->zone, s->zs.session, s->zs.channel, pool,
                         &id);

    if (rc != NGX_OK) {
        /* without its id the answer would belong to nothing */
        ngx_destroy_pool(pool);
        return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
    }

    ngx_str_set(&why, "events were lost");
    ngx_str_set(&data, "{\"reason\":\"events were lost\"}");

    answer = s->client->error(pool, NGX_MCP_REVISION_LATEST_LEGACY, &id,
                              NGX_MCP_INTERNAL_ERROR, &why, &data);

    if (answer.data == NULL) {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

found:

    rc = NGX_ERROR;

    buf = ngx_pnalloc(pool, NGX_HTTP_MCP_STREAM_HEAD + NGX_HTTP_MCP_STREAM_ID
                            + answer.len + NGX_HTTP_MCP_STREAM_END
                            + NGX_HTTP_MCP_STREAM_TAIL);
    if (buf) {
        buf += NGX_HTTP_MCP_STREAM_HEAD;

        text = s->client->event(s, buf);
        p = ngx_cpymem(text, answer.data, answer.len);

        ngx_mcp_sse_flatten(text, p);

        *p++ = LF;
        *p++ = LF;

        rc = ngx_http_mcp_stream_write(s, buf, p - buf);
    }

    ngx_destroy_pool(pool);

    if (rc == NGX_OK) {
        ngx_http_mcp_stream_count(s, 1);
    }

    return rc;
}
