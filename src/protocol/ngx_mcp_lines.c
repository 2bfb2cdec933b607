
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_lines.h"


#define NGX_MCP_LINES_BUFFER       1024
#define NGX_MCP_LINES_BUFFER_KEPT  16384

/* the character that begins each text of a JSON text sequence */
#define NGX_MCP_LINES_RS           0x1e


static ngx_int_t ngx_mcp_lines_append(ngx_mcp_lines_t *lines, u_char *p,
    size_t n);
static ngx_uint_t ngx_mcp_lines_trim(ngx_mcp_lines_t *lines, u_char *p,
    u_char *last);


void
ngx_mcp_lines_init(ngx_mcp_lines_t *lines, size_t limit, ngx_log_t *log)
{
    ngx_memzero(lines, sizeof(ngx_mcp_lines_t));

    lines->limit = limit;
    lines->log = log;
}


ngx_int_t
ngx_mcp_lines_feed(ngx_mcp_lines_t *lines, u_char **pos, u_char *last)
{
    u_char      *p, *end;
    ngx_uint_t   ready;

    if (lines->ready) {
        lines->ready = 0;
        lines->len = 0;

        if (lines->size > NGX_MCP_LINES_BUFFER_KEPT) {
            ngx_mcp_lines_free(lines);
        }
    }

    for (p = *pos; p < last; p = end + 1) {

        end = ngx_strlchr(p, last, LF);

        if (end == NULL) {
            *pos = last;

            return ngx_mcp_lines_append(lines, p, last - p) == NGX_OK
                   ? NGX_AGAIN : NGX_ERROR;
        }

        if (lines->len == 0 && !lines->over
            && (size_t) (end - p) <= lines->limit)
        {
            /* a line that is whole in this piece needs no copy */

            if (ngx_mcp_lines_trim(lines, p, end)) {
                *pos = end + 1;
                return NGX_OK;
            }

            continue;
        }

        if (ngx_mcp_lines_append(lines, p, end - p) != NGX_OK) {
            return NGX_ERROR;
        }

        if (lines->over) {
            lines->over = 0;
            lines->skipped++;
            continue;
        }

        ready = ngx_mcp_lines_trim(lines, lines->buf, lines->buf + lines->len);

        if (ready) {
            lines->ready = 1;
            *pos = end + 1;
            return NGX_OK;
        }

        lines->len = 0;
    }

    *pos = last;

    return NGX_AGAIN;
}


ngx_int_t
ngx_mcp_lines_end(ngx_mcp_lines_t *lines)
{
    if (lines->over) {
        lines->over = 0;
        lines->skipped++;
    }

    if (lines->ready || lines->len == 0) {
        return NGX_DECLINED;
    }

    lines->ready = 1;

    return ngx_mcp_lines_trim(lines, lines->buf, lines->buf + lines->len)
           ? NGX_OK : NGX_DECLINED;
}


void
ngx_mcp_lines_free(ngx_mcp_lines_t *lines)
{
    if (lines->buf) {
        ngx_free(lines->buf);
        lines->buf = NULL;
    }

    lines->len = 0;
    lines->size = 0;
}


static ngx_int_t
ngx_mcp_lines_append(ngx_mcp_lines_t *lines, u_char *p, size_t n)
{
    u_char  *buf;
    size_t   size;

    if (lines->over || n == 0) {
        return NGX_OK;
    }

    if (n > lines->limit - lines->len) {
        ngx_mcp_lines_free(lines);
        lines->over = 1;
        return NGX_OK;
    }

    if (n > lines->size - lines->len) {

        size = lines->size ? lines->size : NGX_MCP_LINES_BUFFER;

        while (size - lines->len < n) {
            size *= 2;
        }

        buf = ngx_alloc(size, lines->log);
        if (buf == NULL) {
            return NGX_ERROR;
        }

        if (lines->buf) {
            ngx_memcpy(buf, lines->buf, lines->len);
            ngx_free(lines->buf);
        }

        lines->buf = buf;
        lines->size = size;
    }

    ngx_memcpy(lines->buf + lines->len, p, n);
    lines->len += n;

    return NGX_OK;
}


/*
 * Sets lines->data to a line without white space around it.  Returns whether
 * the line has anything else than white space.
 */

static ngx_uint_t
ngx_mcp_lines_trim(ngx_mcp_lines_t *lines, u_char *p, u_char *last)
{
    while (p < last
           && (*p == ' ' || *p == '\t' || *p == CR || *p == NGX_MCP_LINES_RS))
    {
        p++;
    }

    while (p < last
           && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == CR))
    {
        last--;
    }

    lines->data.data = p;
    lines->data.len = last - p;

    return p < last;
}
