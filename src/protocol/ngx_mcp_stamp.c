
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_stamp.h"
#include "ngx_mcp_splice.h"


typedef enum {
    stamp_begin = 0,
    stamp_next,                  /* a name, or the end of the object */
    stamp_name,
    stamp_long,                  /* the rest of a name */
    stamp_colon,
    stamp_value,
    stamp_inside,                /* the rest of a string, object or array */
    stamp_scalar,
    stamp_behind,                /* a comma or the end after a value */
    stamp_end
} ngx_mcp_stamp_e;


typedef enum {
    stamp_answer = 1,
    stamp_result,
    stamp_meta
} ngx_mcp_stamp_level_e;


#define ngx_mcp_stamp_space(ch)                                               \
    ((ch) == ' ' || (ch) == '\t' || (ch) == '\r' || (ch) == '\n')


static ngx_uint_t ngx_mcp_stamp_quote(ngx_mcp_stamp_t *s, u_char ch);
static u_char *ngx_mcp_stamp_scalar(ngx_mcp_stamp_t *s, u_char *p,
    u_char *last);
static u_char *ngx_mcp_stamp_inside(ngx_mcp_stamp_t *s, u_char *p,
    u_char *last);
static ngx_int_t ngx_mcp_stamp_named(ngx_mcp_stamp_t *s, ngx_uint_t whole);
static ngx_int_t ngx_mcp_stamp_value(ngx_mcp_stamp_t *s, u_char ch);
static ngx_int_t ngx_mcp_stamp_open(ngx_mcp_stamp_t *s, ngx_str_t *members);
static ngx_int_t ngx_mcp_stamp_close(ngx_mcp_stamp_t *s);
static ngx_uint_t ngx_mcp_stamp_is(ngx_mcp_stamp_t *s, ngx_str_t *name);
static ngx_int_t ngx_mcp_stamp_text(ngx_mcp_stamp_t *s, const char *text);


static ngx_str_t  ngx_mcp_stamp_names[] = {
    ngx_string("id"),
    ngx_string("result"),
    ngx_string("_meta")
};


ngx_int_t
ngx_mcp_stamp(ngx_mcp_stamp_t *s, u_char *p, u_char *last)
{
    u_char     *from, ch;
    ngx_int_t   rc;

    rc = NGX_OK;

    while (p < last && rc == NGX_OK) {

        ch = *p;

        switch (s->state) {

        case stamp_begin:
            p++;

            if (ch == '{') {
                s->level = stamp_answer;
                s->state = stamp_next;
                rc = s->write(s->data, &ch, 1);
            }

            break;

        case stamp_next:
            p++;

            if (ch == '"') {
                s->len = 0;
                s->state = stamp_name;
                s->name[s->len++] = ch;

            } else if (ch == '}') {
                rc = ngx_mcp_stamp_close(s);
            }

            break;

        case stamp_name:

            if (s->len == NGX_MCP_STAMP_NAME) {
                s->state = stamp_long;
                rc = ngx_mcp_stamp_named(s, 0);
                break;
            }

            p++;
            s->name[s->len++] = ch;

            if (ngx_mcp_stamp_quote(s, ch)) {
                s->state = stamp_colon;
                rc = ngx_mcp_stamp_named(s, 1);
            }

            break;

        case stamp_long:
            from = p;

            while (p < last) {
                if (ngx_mcp_stamp_quote(s, *p++)) {
                    s->state = stamp_colon;
                    break;
                }
            }

            rc = s->write(s->data, from, p - from);
            break;

        case stamp_colon:
            p++;

            if (ch == ':') {
                s->state = stamp_value;

                if (!s->drop) {
                    rc = s->write(s->data, &ch, 1);
                }
            }

            break;

        case stamp_value:

            if (ngx_mcp_stamp_space(ch)) {
                p++;
                break;
            }

            rc = ngx_mcp_stamp_value(s, ch);

            if (s->state == stamp_next) {

                /* ngx_mcp_stamp_open() has written the brace */

                p++;
            }

            break;

        case stamp_inside:
        case stamp_scalar:
            from = p;

            p = (s->state == stamp_inside) ? ngx_mcp_stamp_inside(s, p, last)
                                           : ngx_mcp_stamp_scalar(s, p, last);

            if (!s->drop) {
                rc = s->write(s->data, from, p - from);
            }

            break;

        case stamp_behind:
            p++;

            if (ch == ',') {
                s->state = stamp_next;

            } else if (ch == '}') {
                rc = ngx_mcp_stamp_close(s);
            }

            break;

        default: /* stamp_end */
            p = last;
        }
    }

    return rc;
}


/* returns whether a character of a name is the quote at the end of the name */

static ngx_uint_t
ngx_mcp_stamp_quote(ngx_mcp_stamp_t *s, u_char ch)
{
    if (s->escaped) {
        s->escaped = 0;
        return 0;
    }

    s->escaped = (ch == '\\');

    return ch == '"';
}


/* returns the end of a number or literal, or last */

static u_char *
ngx_mcp_stamp_scalar(ngx_mcp_stamp_t *s, u_char *p, u_char *last)
{
    while (p < last && *p != ',' && *p != '}' && !ngx_mcp_stamp_space(*p)) {
        p++;
    }

    if (p < last) {
        s->state = stamp_behind;
    }

    return p;
}


static u_char *
ngx_mcp_stamp_inside(ngx_mcp_stamp_t *s, u_char *p, u_char *last)
{
    u_char  ch;

    while (p < last) {

        if (s->quoted) {

            if (s->escaped) {
                s->escaped = 0;
                p++;
                continue;
            }

            while (p < last && *p != '"' && *p != '\\') {
                p++;
            }

            if (p == last) {
                return p;
            }

            if (*p++ == '\\') {
                s->escaped = 1;
                continue;
            }

            s->quoted = 0;

            if (s->depth == 0) {
                s->state = stamp_behind;
                return p;
            }

            continue;
        }

        ch = *p++;

        switch (ch) {

        case '"':
            s->quoted = 1;
            break;

        case '{':
        case '[':
            s->depth++;
            break;

        case '}':
        case ']':

            if (--s->depth == 0) {
                s->state = stamp_behind;
                return p;
            }

            break;
        }
    }

    return p;
}


/*
 * Writes the name of a member, unless the member is left out.  whole: s->name
 * has the whole name, not only its beginning.
 */

static ngx_int_t
ngx_mcp_stamp_named(ngx_mcp_stamp_t *s, ngx_uint_t whole)
{
    ngx_str_t  *name;

    s->drop = 0;
    name = NULL;

    if (whole && s->level == stamp_result) {
        name = s->names;

    } else if (whole && s->level == stamp_meta) {
        name = s->meta_names;
    }

    for ( /* void */ ; name && name->len; name++) {

        if (ngx_mcp_stamp_is(s, name)) {
            s->drop = 1;
            return NGX_OK;
        }
    }

    if (s->begun && ngx_mcp_stamp_text(s, ",") != NGX_OK) {
        return NGX_ERROR;
    }

    s->begun = 1;

    return s->write(s->data, s->name, s->len);
}


/*
 * Begins a value with its first character, ch.  If the value is an object that
 * is changed (state stamp_next), the function has written the "{"; otherwise
 * the caller handles ch.
 */

static ngx_int_t
ngx_mcp_stamp_value(ngx_mcp_stamp_t *s, u_char ch)
{
    ngx_str_t  *names;

    names = ngx_mcp_stamp_names;

    if (s->level == stamp_answer && ngx_mcp_stamp_is(s, &names[0])) {
        s->drop = 1;

        if (s->write(s->data, s->id.data, s->id.len) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ch == '{' && s->level == stamp_answer
        && ngx_mcp_stamp_is(s, &names[1]))
    {
        s->level = stamp_result;

        return ngx_mcp_stamp_open(s, &s->members);
    }

    if (ch == '{' && s->level == stamp_result && !s->has_meta
        && ngx_mcp_stamp_is(s, &names[2]))
    {
        s->has_meta = 1;

        if (ngx_mcp_stamp_text(s, s->begun ? ",\"_meta\":" : "\"_meta\":")
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        s->level = stamp_meta;

        return ngx_mcp_stamp_open(s, &s->meta);
    }

    switch (ch) {

    case '"':
    case '{':
    case '[':
        s->state = stamp_inside;
        break;

    default:
        s->state = stamp_scalar;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_stamp_open(ngx_mcp_stamp_t *s, ngx_str_t *members)
{
    s->state = stamp_next;
    s->begun = (members->len != 0);

    if (ngx_mcp_stamp_text(s, "{") != NGX_OK) {
        return NGX_ERROR;
    }

    return members->len ? s->write(s->data, members->data, members->len)
                        : NGX_OK;
}


static ngx_int_t
ngx_mcp_stamp_close(ngx_mcp_stamp_t *s)
{
    if (s->level == stamp_result && !s->has_meta && s->meta.len
        && (ngx_mcp_stamp_text(s, s->begun ? ",\"_meta\":{" : "\"_meta\":{")
            != NGX_OK
            || s->write(s->data, s->meta.data, s->meta.len) != NGX_OK
            || ngx_mcp_stamp_text(s, "}") != NGX_OK))
    {
        return NGX_ERROR;
    }

    s->level--;
    s->state = s->level ? stamp_behind : stamp_end;
    s->begun = 1;

    return ngx_mcp_stamp_text(s, "}");
}


static ngx_uint_t
ngx_mcp_stamp_is(ngx_mcp_stamp_t *s, ngx_str_t *name)
{
    ngx_str_t  raw;

    raw.data = s->name;
    raw.len = s->len;

    return raw.len < NGX_MCP_STAMP_NAME && ngx_mcp_json_is(&raw, name);
}


static ngx_int_t
ngx_mcp_stamp_text(ngx_mcp_stamp_t *s, const char *text)
{
    return s->write(s->data, (u_char *) text, ngx_strlen(text));
}
