
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_json_index.h"
#include "ngx_mcp_json_token.h"


/* the largest exponent; larger ones are taken for equal */
#define NGX_MCP_JSON_EXPONENT  1000000000


/* an object or array that is being read */

typedef struct {
    uint64_t                sum;          /* hash of the values so far */
    uint64_t                path;         /* hash of the beginning of the
                                             members' paths, with the dot */
    uint64_t                key;          /* hash of the current member's
                                             name */
    uint64_t                member;       /* hash of the current member's
                                             path */
    unsigned                object:1;     /* it is an object, not an array */
    unsigned                named:1;      /* a name was read, and its value
                                             comes next */
    unsigned                listed:1;     /* its members go into the index */
} ngx_mcp_json_level_t;


#define ngx_mcp_json_hash(h, ch)  (((h) ^ (ch)) * 0x100000001b3ULL)


static uint64_t ngx_mcp_json_index_members(ngx_mcp_json_index_t *index,
    ngx_str_t *text);
static void ngx_mcp_json_index_hold(ngx_mcp_json_index_t *index,
    ngx_mcp_json_level_t *level, uint64_t value);
static void ngx_mcp_json_index_add(ngx_mcp_json_index_t *index, uint64_t path,
    uint64_t value);
static u_char *ngx_mcp_json_index_string(u_char *p, u_char *last,
    uint64_t *hashes, ngx_uint_t n);
static u_char *ngx_mcp_json_index_scalar(u_char *p, u_char *last,
    uint64_t *hash);
static u_char *ngx_mcp_json_index_number(u_char *p, u_char *last,
    uint64_t *hash);
static uint64_t ngx_mcp_json_index_mix(uint64_t h);


ngx_uint_t
ngx_mcp_json_index_size(ngx_str_t *object)
{
    u_char      *p, *last;
    ngx_uint_t   n, size;

    n = 1;
    last = object->data + object->len;

    for (p = object->data; p < last; p++) {
        n += (*p == ':');
    }

    for (size = 4; size < n; size *= 2) { /* void */ }

    return size;
}


void
ngx_mcp_json_index(ngx_mcp_json_index_t *index, ngx_str_t *object,
    uint64_t seed, ngx_mcp_json_field_t *fields, ngx_uint_t size)
{
    ngx_memzero(fields, size * sizeof(ngx_mcp_json_field_t));

    index->seed = seed;
    index->n = 0;
    index->mask = (uint32_t) (size - 1);
    index->fields = fields;

    (void) ngx_mcp_json_index_members(index, object);
}


static uint64_t
ngx_mcp_json_index_members(ngx_mcp_json_index_t *index, ngx_str_t *text)
{
    u_char                *p, *last;
    uint64_t               value, hashes[2];
    ngx_uint_t             depth;
    ngx_mcp_json_level_t  *level, *outer, levels[NGX_MCP_JSON_DEPTH + 1];

    depth = 0;
    level = &levels[0];
    ngx_memzero(level, sizeof(ngx_mcp_json_level_t));

    last = text->data + text->len;

    for (p = text->data; p < last; /* void */ ) {

        switch (*p) {

        case ' ':
        case '\t':
        case '\r':
        case '\n':
        case ',':
        case ':':
            p++;
            continue;

        case '{':
        case '[':

            if (depth == NGX_MCP_JSON_DEPTH) {
                return 0;
            }

            outer = level;
            level = &levels[++depth];

            level->object = (*p == '{');
            level->named = 0;
            level->sum = level->object ? 1 : 2;
            level->listed = (index->fields != NULL && level->object
                             && (depth == 1 || outer->listed));
            level->path = (depth == 1) ? index->seed
                                       : ngx_mcp_json_hash(outer->member, '.');
            p++;
            continue;

        case '}':
        case ']':

            if (depth == 0) {
                return 0;
            }

            value = ngx_mcp_json_index_mix(index->seed ^ level->sum);
            level = &levels[--depth];
            p++;
            break;

        case '"':

            hashes[0] = index->seed;

            if (level->object && !level->named) {
                hashes[1] = level->path;
                p = ngx_mcp_json_index_string(p, last, hashes, 2);

                level->key = hashes[0];
                level->member = hashes[1];
                level->named = 1;
                continue;
            }

            p = ngx_mcp_json_index_string(p, last, hashes, 1);
            value = ngx_mcp_json_index_mix(hashes[0]);
            break;

        default:
            value = ~index->seed;
            p = ngx_mcp_json_index_scalar(p, last, &value);
            value = ngx_mcp_json_index_mix(value);
        }

        if (depth == 0) {
            return value;
        }

        ngx_mcp_json_index_hold(index, level, value);
    }

    return 0;
}


/* adds the hash of a value to the object or array that has the value */

static void
ngx_mcp_json_index_hold(ngx_mcp_json_index_t *index,
    ngx_mcp_json_level_t *level, uint64_t value)
{
    if (!level->object) {
        level->sum = ngx_mcp_json_index_mix(level->sum ^ value) + 1;
        return;
    }

    /* equal objects may have their members in any order */

    level->sum += ngx_mcp_json_index_mix(ngx_mcp_json_index_mix(level->key)
                                         + value);
    level->named = 0;

    if (level->listed) {
        ngx_mcp_json_index_add(index, level->member, value);
    }
}


static void
ngx_mcp_json_index_add(ngx_mcp_json_index_t *index, uint64_t path,
    uint64_t value)
{
    ngx_mcp_json_field_t  *field, *bucket;

    if (index->n == index->mask) {
        return;
    }

    field = &index->fields[++index->n];
    field->path = ngx_mcp_json_index_mix(path);
    field->value = value;

    bucket = &index->fields[field->path & index->mask];
    field->next = bucket->bucket;
    bucket->bucket = index->n;
}


ngx_uint_t
ngx_mcp_json_index_find(ngx_mcp_json_index_t *index, uint64_t path,
    uint64_t *value)
{
    uint32_t               n;
    ngx_mcp_json_field_t  *field;

    for (n = index->fields[path & index->mask].bucket; n; n = field->next) {
        field = &index->fields[n];

        if (field->path == path) {
            *value = field->value;
            return 1;
        }
    }

    return 0;
}


uint64_t
ngx_mcp_json_index_path(uint64_t seed, ngx_str_t *below, ngx_str_t *name)
{
    size_t    i;
    uint64_t  hash;

    hash = seed;

    for (i = 0; i < below->len; i++) {
        hash = ngx_mcp_json_hash(hash, below->data[i]);
    }

    (void) ngx_mcp_json_index_string(name->data, name->data + name->len, &hash,
                                     1);

    return ngx_mcp_json_index_mix(hash);
}


uint64_t
ngx_mcp_json_index_value(uint64_t seed, ngx_str_t *raw)
{
    ngx_mcp_json_index_t  none;

    ngx_memzero(&none, sizeof(ngx_mcp_json_index_t));

    none.seed = seed;

    return ngx_mcp_json_index_members(&none, raw);
}


/* adds a raw string's decoded text to n hashes; returns the string's end */

static u_char *
ngx_mcp_json_index_string(u_char *p, u_char *last, uint64_t *hashes,
    ngx_uint_t n)
{
    u_char      buf[4];
    size_t      i, len;
    ngx_uint_t  k;

    for (p++; p < last && *p != '"'; /* void */ ) {

        len = ngx_mcp_json_decode(&p, last, buf);

        for (i = 0; i < len; i++) {
            for (k = 0; k < n; k++) {
                hashes[k] = ngx_mcp_json_hash(hashes[k], buf[i]);
            }
        }
    }

    return p + 1;
}


static u_char *
ngx_mcp_json_index_scalar(u_char *p, u_char *last, uint64_t *hash)
{
    if (*p == '-' || (*p >= '0' && *p <= '9')) {
        return ngx_mcp_json_index_number(p, last, hash);
    }

    for ( /* void */ ; p < last && *p >= 'a' && *p <= 'z'; p++) {
        *hash = ngx_mcp_json_hash(*hash, *p);
    }

    /* any other character is not JSON: returning "last" ends the walk */

    return (p < last && *p != ',' && *p != '}' && *p != ']' && *p > ' ')
           ? last : p;
}


/*
 * Hashes the value of a number: its digits without the zeros at both ends, the
 * sign, and the power of ten.  Returns the end of the number.
 */

static u_char *
ngx_mcp_json_index_number(u_char *p, u_char *last, uint64_t *hash)
{
    int64_t     exponent, scale;
    ngx_uint_t  negative, down, point, started, zeros;

    negative = 0;
    point = 0;
    started = 0;
    zeros = 0;
    scale = 0;

    if (*p == '-') {
        negative = 1;
        p++;
    }

    for ( /* void */ ; p < last; p++) {

        if (*p == '.') {
            point = 1;
            continue;
        }

        if (*p < '0' || *p > '9') {
            break;
        }

        scale -= point;

        if (*p == '0') {
            zeros += started;
            continue;
        }

        for ( /* void */ ; zeros; zeros--) {
            *hash = ngx_mcp_json_hash(*hash, '0');
        }

        started = 1;
        *hash = ngx_mcp_json_hash(*hash, *p);
    }

    exponent = 0;
    down = 0;

    if (p < last && (*p == 'e' || *p == 'E')) {

        for (p++; p < last; p++) {

            if (*p == '-' || *p == '+') {
                down = (*p == '-');
                continue;
            }

            if (*p < '0' || *p > '9') {
                break;
            }

            exponent = ngx_min(exponent * 10 + (*p - '0'),
                               NGX_MCP_JSON_EXPONENT);
        }
    }

    if (started) {
        scale += (int64_t) zeros + (down ? -exponent : exponent);

        *hash = ngx_mcp_json_hash(*hash, negative ? '-' : '+');
        *hash = ngx_mcp_json_index_mix(*hash + (uint64_t) scale);
    }

    return p;
}


static uint64_t
ngx_mcp_json_index_mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    h ^= h >> 33;

    return h;
}
