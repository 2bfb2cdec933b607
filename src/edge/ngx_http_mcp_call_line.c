
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_call_line.h"


/* a bit in the local number of a stream that a call reads */
#define NGX_HTTP_MCP_LINE_LOCAL   0x80000000

#define NGX_HTTP_MCP_LINE_BUFFER  4096


static void ngx_http_mcp_call_line_turn(ngx_event_t *ev);
static void ngx_http_mcp_call_line_read(ngx_http_mcp_call_line_t *line);
static ngx_int_t ngx_http_mcp_call_line_grow(ngx_http_mcp_call_line_t *line,
    size_t size);


ngx_int_t
ngx_http_mcp_call_line_open(ngx_http_mcp_call_line_t *line,
    ngx_mcp_ref_t session, uint32_t channel, ngx_mcp_cursor_t *from)
{
    ngx_int_t             rc;
    ngx_http_mcp_call_t  *call;

    call = line->call;

    if (line->buf == NULL
        && ngx_http_mcp_call_line_grow(line, NGX_HTTP_MCP_LINE_BUFFER)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    line->zs.session = session;
    line->zs.channel = channel;
    line->zs.local = call->record.local | NGX_HTTP_MCP_LINE_LOCAL;

    rc = ngx_mcp_stream_open(call->ctx->conf->zone, &line->zs, from, 0);
    if (rc != NGX_OK) {
        ngx_http_mcp_call_line_close(line);
        return rc;
    }

    line->open = 1;
    call->line = line;

    line->turn.handler = ngx_http_mcp_call_line_turn;
    line->turn.data = line;
    line->turn.log = call->r->connection->log;

    ngx_post_event(&line->turn, &ngx_posted_events);

    return NGX_OK;
}


void
ngx_http_mcp_call_line_close(ngx_http_mcp_call_line_t *line)
{
    if (line->open) {
        line->open = 0;
        line->call->line = NULL;

        ngx_mcp_stream_close(line->call->ctx->conf->zone, &line->zs,
                             NGX_MCP_COUNTER_STREAMS_DONE);
    }

    if (line->turn.posted) {
        ngx_delete_posted_event(&line->turn);
    }

    if (line->buf) {
        ngx_free(line->buf);
        line->buf = NULL;
    }
}


void
ngx_http_mcp_call_line_room(ngx_http_mcp_call_line_t *line, ngx_uint_t room)
{
    line->full = !room;

    if (room && line->open) {
        ngx_post_event(&line->turn, &ngx_posted_events);
    }
}


void
ngx_http_mcp_call_line_doorbell(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref,
    uint32_t local, ngx_uint_t why)
{
    ngx_http_mcp_call_t       *call;
    ngx_http_mcp_call_line_t  *line;

    if (!(local & NGX_HTTP_MCP_LINE_LOCAL)) {
        ngx_http_mcp_stream_doorbell(zone, ref, local, why);
        return;
    }

    call = ngx_http_mcp_call_numbered(zone, local & ~NGX_HTTP_MCP_LINE_LOCAL);
    line = call ? call->line : NULL;

    if (line && line->zs.ref.block == ref.block
        && line->zs.ref.gen == ref.gen)
    {
        ngx_post_event(&line->turn, &ngx_posted_events);
    }
}


static void
ngx_http_mcp_call_line_turn(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_mcp_call_line_t  *line;

    line = ev->data;
    c = line->call->r->connection;

    ngx_http_mcp_call_line_read(line);
    ngx_http_run_posted_requests(c);
}


/* reads messages of the line; r may be freed then */

static void
ngx_http_mcp_call_line_read(ngx_http_mcp_call_line_t *line)
{
    size_t           len;
    uint64_t         before;
    ngx_int_t        rc;
    ngx_str_t        text;
    ngx_uint_t       flags;
    ngx_mcp_zone_t  *zone;

    zone = line->call->ctx->conf->zone;

    while (line->open && !line->full) {

        before = line->zs.cursor.own;

        rc = ngx_mcp_stream_read(zone, &line->zs, line->buf, line->size, &len,
                                 &flags);

        if (rc == NGX_AGAIN) {
            return;
        }

        if (rc == NGX_OK) {
            text.data = line->buf;
            text.len = len;

            if (line->message(line, &text, flags, before) != NGX_OK) {
                return;
            }

            continue;
        }

        if (rc == NGX_BUSY && ngx_http_mcp_call_line_grow(line, len) == NGX_OK)
        {
            continue;
        }

        if (rc == NGX_ABORT) {

            /* the line has lost messages, or the answer: they are left out */

            continue;
        }

        /* the call, or its session, has ended */

        line->ended(line);
        return;
    }
}


static ngx_int_t
ngx_http_mcp_call_line_grow(ngx_http_mcp_call_line_t *line, size_t size)
{
    u_char  *p;

    p = ngx_alloc(size, line->call->r->connection->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (line->buf) {
        ngx_free(line->buf);
    }

    line->buf = p;
    line->size = size;

    return NGX_OK;
}
