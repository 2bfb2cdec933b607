
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_sse.h"


#define NGX_MCP_SSE_BUFFER                                                    \
    (1024 - NGX_MCP_SSE_FRONT - NGX_MCP_SSE_BEHIND)
#define NGX_MCP_SSE_BUFFER_KEPT  16384


enum {
    sse_bom = 0,
    sse_line,
    sse_comment,
    sse_field,
    sse_colon,
    sse_value,
    sse_failed
};


enum {
    sse_unknown = 0,
    sse_data,
    sse_event,
    sse_id,
    sse_retry
};


static ngx_int_t ngx_mcp_sse_start(ngx_mcp_sse_t *sse);
static ngx_int_t ngx_mcp_sse_append(ngx_mcp_sse_t *sse, u_char *p, size_t n);
static void ngx_mcp_sse_finish(ngx_mcp_sse_t *sse);
static ngx_uint_t ngx_mcp_sse_dispatch(ngx_mcp_sse_t *sse);
static void ngx_mcp_sse_reset(ngx_mcp_sse_t *sse);
static ngx_int_t ngx_mcp_sse_reserve(ngx_mcp_sse_t *sse, size_t n);
static void ngx_mcp_sse_discard(ngx_mcp_sse_t *sse);
static u_char *ngx_mcp_sse_eol(u_char *p, u_char *last);


/* bytes that are searched for an end of line at a time */
#define NGX_MCP_SSE_PART  256

#define ngx_mcp_sse_is_eol(ch)  ((ch) == LF || (ch) == CR)


void
ngx_mcp_sse_init(ngx_mcp_sse_t *sse, size_t limit, ngx_log_t *log)
{
    ngx_memzero(sse, sizeof(ngx_mcp_sse_t));

    sse->retry = NGX_CONF_UNSET_MSEC;
    sse->limit = limit;
    sse->log = log;
}


ngx_int_t
ngx_mcp_sse_feed(ngx_mcp_sse_t *sse, u_char **pos, u_char *last)
{
    u_char         ch, *p, *end;
    static u_char  bom[] = { 0xef, 0xbb, 0xbf };

    if (sse->ready) {
        ngx_mcp_sse_reset(sse);
    }

    p = *pos;

    while (p < last) {

        ch = *p;

        if (sse->skip_lf) {
            sse->skip_lf = 0;

            if (ch == LF) {
                p++;
                continue;
            }
        }

        switch (sse->state) {

        case sse_bom:
            if (ch != bom[sse->field_len]) {

                /* the bytes of half a BOM begin an unknown field */

                sse->state = sse->field_len ? sse_field : sse_line;
                break;
            }

            p++;
            sse->field[sse->field_len++] = ch;

            if (sse->field_len == sizeof(bom)) {
                sse->state = sse_line;
            }

            break;

        case sse_line:
            if (ch == ':') {
                p++;
                sse->state = sse_comment;
                break;
            }

            if (!ngx_mcp_sse_is_eol(ch)) {
                sse->field_len = 0;
                sse->state = sse_field;
                break;
            }

            p++;
            sse->skip_lf = (ch == CR);

            if (ngx_mcp_sse_dispatch(sse)) {
                *pos = p;
                return NGX_OK;
            }

            break;

        case sse_comment:
            p = ngx_mcp_sse_eol(p, last);

            if (p == last) {
                break;
            }

            sse->skip_lf = (*p++ == CR);
            sse->state = sse_line;
            break;

        case sse_field:
            if (ch != ':' && !ngx_mcp_sse_is_eol(ch)) {

                if (sse->field_len < sizeof(sse->field)) {
                    sse->field[sse->field_len++] = ch;
                }

                p++;
                break;
            }

            if (ngx_mcp_sse_start(sse) != NGX_OK) {
                goto failed;
            }

            if (ch == ':') {
                p++;
                sse->state = sse_colon;
                break;
            }

            sse->state = sse_value;
            break;

        case sse_colon:
            if (ch == ' ') {
                p++;
            }

            sse->state = sse_value;
            break;

        case sse_value:
            end = ngx_mcp_sse_eol(p, last);

            if (ngx_mcp_sse_append(sse, p, end - p) != NGX_OK) {
                goto failed;
            }

            p = end;

            if (p == last) {
                break;
            }

            sse->skip_lf = (*p++ == CR);
            ngx_mcp_sse_finish(sse);
            sse->state = sse_line;
            break;

        default: /* sse_failed */
            goto failed;
        }
    }

    *pos = p;

    return (sse->state == sse_failed) ? NGX_DECLINED : NGX_AGAIN;

failed:

    sse->state = sse_failed;
    *pos = p;

    return NGX_DECLINED;
}


void
ngx_mcp_sse_free(ngx_mcp_sse_t *sse)
{
    ngx_mcp_sse_discard(sse);
    ngx_str_null(&sse->data);

    sse->len = 0;
    sse->state = sse_failed;
}


void
ngx_mcp_sse_take(ngx_mcp_sse_t *sse, ngx_str_t *text, ngx_mcp_memory_t *memory)
{
    if (!ngx_mcp_sse_room(sse, text)) {
        ngx_memzero(memory, sizeof(ngx_mcp_memory_t));
        return;
    }

    memory->start = sse->buf - NGX_MCP_SSE_FRONT;
    memory->end = sse->buf + sse->size + NGX_MCP_SSE_BEHIND;

    ngx_str_null(&sse->data);

    sse->buf = NULL;
    sse->len = 0;
    sse->size = 0;
}


size_t
ngx_mcp_sse_room(ngx_mcp_sse_t *sse, ngx_str_t *text)
{
    if (!sse->ready || text->data != sse->buf || text->len < NGX_MCP_SSE_LARGE)
    {
        return 0;
    }

    return NGX_MCP_SSE_FRONT - NGX_MCP_SSE_FRAME;
}


void
ngx_mcp_sse_flatten(u_char *p, u_char *last)
{
    u_char  *lf, *cr;

    lf = p;
    cr = p;

    while ((lf = memchr(lf, LF, last - lf)) != NULL) {
        *lf++ = ' ';
    }

    while ((cr = memchr(cr, CR, last - cr)) != NULL) {
        *cr++ = ' ';
    }
}


/* sets sse->kind from the name of the line's field, which is complete */

static ngx_int_t
ngx_mcp_sse_start(ngx_mcp_sse_t *sse)
{
    u_char  *field;

    field = sse->field;

    sse->value_len = 0;
    sse->kind = sse_unknown;

    switch (sse->field_len) {

    case 2:
        if (ngx_memcmp(field, "id", 2) == 0) {
            sse->kind = sse_id;
        }

        break;

    case 4:
        if (ngx_memcmp(field, "data", 4) == 0) {
            sse->kind = sse_data;
        }

        break;

    case 5:
        if (ngx_memcmp(field, "event", 5) == 0) {
            sse->kind = sse_event;

        } else if (ngx_memcmp(field, "retry", 5) == 0) {
            sse->kind = sse_retry;
        }

        break;
    }

    if (sse->kind != sse_data) {
        return NGX_OK;
    }

    if (sse->has_data) {
        return ngx_mcp_sse_append(sse, (u_char *) "\n", 1);
    }

    sse->has_data = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_sse_append(ngx_mcp_sse_t *sse, u_char *p, size_t n)
{
    size_t  max;

    if (n == 0 || sse->kind == sse_unknown) {
        return NGX_OK;
    }

    if (sse->kind == sse_data) {

        if (sse->over) {
            return NGX_OK;
        }

        if (n > sse->limit - sse->len) {

            if (!sse->skip) {
                return NGX_DECLINED;
            }

            sse->over = 1;
            sse->len = 0;

            return NGX_OK;
        }

        if (ngx_mcp_sse_reserve(sse, n) != NGX_OK) {
            return NGX_DECLINED;
        }

        ngx_memcpy(sse->buf + sse->len, p, n);
        sse->len += n;

        return NGX_OK;
    }

    /*
     * one byte more than allowed is stored, to notice that a value is too long
     */

    max = sizeof(sse->ids[0]) + 1 - sse->value_len;
    n = ngx_min(n, max);

    if (ngx_mcp_sse_reserve(sse, sse->value_len + n) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_memcpy(sse->buf + sse->len + sse->value_len, p, n);
    sse->value_len += n;

    return NGX_OK;
}


/* stores the value of the current line, which is complete */

static void
ngx_mcp_sse_finish(ngx_mcp_sse_t *sse)
{
    u_char     *value;
    size_t      i, len;
    ngx_msec_t  retry;

    if (sse->kind == sse_unknown || sse->kind == sse_data) {
        return;
    }

    len = sse->value_len;
    value = len ? sse->buf + sse->len : (u_char *) "";

    switch (sse->kind) {

    case sse_event:
        sse->name_len = ngx_min(len, sizeof(sse->names));
        ngx_memcpy(sse->names, value, sse->name_len);
        break;

    case sse_id:
        if (len > sizeof(sse->ids[0])) {

            /* with a part of its id a stream would resume at a wrong place */

            len = 0;
        }

        if (len && memchr(value, '\0', len)) {
            break;
        }

        sse->id_len = len;
        sse->has_id = 1;
        ngx_memcpy(sse->ids[!sse->current], value, len);
        break;

    default: /* sse_retry */

        if (len == 0 || len > sizeof(sse->ids[0])) {
            break;
        }

        retry = 0;

        for (i = 0; i < len; i++) {
            if (value[i] < '0' || value[i] > '9') {
                return;
            }

            retry = retry * 10 + (value[i] - '0');
            retry = ngx_min(retry, NGX_MAX_INT32_VALUE);
        }

        sse->retry = retry;
        break;
    }
}


/* ends an event at a blank line; returns whether the event has data */

static ngx_uint_t
ngx_mcp_sse_dispatch(ngx_mcp_sse_t *sse)
{
    if (sse->has_id) {
        sse->has_id = 0;
        sse->current = !sse->current;
        sse->id.data = sse->ids[sse->current];
        sse->id.len = sse->id_len;
    }

    if (!sse->has_data) {
        sse->name_len = 0;
        return 0;
    }

    if (sse->over) {
        sse->over = 0;
        sse->skipped++;
        ngx_mcp_sse_reset(sse);
        return 0;
    }

    sse->data.data = sse->buf ? sse->buf : (u_char *) "";
    sse->data.len = sse->len;
    sse->name.data = sse->names;
    sse->name.len = sse->name_len;
    sse->ready = 1;

    return 1;
}


static void
ngx_mcp_sse_reset(ngx_mcp_sse_t *sse)
{
    sse->ready = 0;
    sse->has_data = 0;
    sse->len = 0;
    sse->name_len = 0;

    ngx_str_null(&sse->data);
    ngx_str_null(&sse->name);

    if (sse->size > NGX_MCP_SSE_BUFFER_KEPT) {
        ngx_mcp_sse_discard(sse);
    }
}


/*
 * Makes room for n bytes behind the data.  realloc() can make a large block
 * larger in its place; a copy would need twice the memory for a moment.
 */

static ngx_int_t
ngx_mcp_sse_reserve(ngx_mcp_sse_t *sse, size_t n)
{
    u_char  *p;
    size_t   size;

    if (n <= sse->size - sse->len) {
        return NGX_OK;
    }

    size = sse->size ? sse->size : NGX_MCP_SSE_BUFFER;

    while (size - sse->len < n) {
        size *= 2;
    }

    n = NGX_MCP_SSE_FRONT + size + NGX_MCP_SSE_BEHIND;

    if (sse->buf == NULL) {
        p = ngx_alloc(n, sse->log);

    } else {
        p = realloc(sse->buf - NGX_MCP_SSE_FRONT, n);

        if (p == NULL) {
            ngx_log_error(NGX_LOG_EMERG, sse->log, ngx_errno,
                          "realloc(%uz) failed", n);
        }
    }

    if (p == NULL) {
        return NGX_ERROR;
    }

    sse->buf = p + NGX_MCP_SSE_FRONT;
    sse->size = size;

    return NGX_OK;
}


static void
ngx_mcp_sse_discard(ngx_mcp_sse_t *sse)
{
    if (sse->buf) {
        ngx_free(sse->buf - NGX_MCP_SSE_FRONT);
        sse->buf = NULL;
    }

    sse->size = 0;
}


static u_char *
ngx_mcp_sse_eol(u_char *p, u_char *last)
{
    u_char  *lf, *cr, *end;

    /* in parts, as a search for LF fails again for each line that ends in CR */

    for ( /* void */ ; p < last; p = end) {
        end = p + ngx_min(last - p, NGX_MCP_SSE_PART);

        lf = memchr(p, LF, end - p);
        cr = memchr(p, CR, (lf ? lf : end) - p);

        if (cr || lf) {
            return cr ? cr : lf;
        }
    }

    return last;
}
