
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A strict, bounded, non-recursive scan of JSON (RFC 8259).  All other code
 * works on texts that this scan has accepted.  It takes text in pieces of any
 * size, copies nothing and makes no tree.  It rejects text that is not JSON
 * (also raw NULs, invalid UTF-8, trailing bytes, nesting deeper than 512, 4G
 * and more) and notes where the members of a fixed table of paths lie.
 *
 * Names are compared case-sensitively after decoding their escapes.  Other
 * parsers may accept a different name for that of a noted member, so the scan
 * notes such a name, too (ngx_mcp_span_t, "folded"): one that is equal after
 * case folding (U+017F is an s, U+212A a k, U+0130 and U+0131 an i), or when it
 * is cut at a NUL, or when half a surrogate pair is removed from it.
 *
 * Half a surrogate pair as an escape ("\ud83d") is valid by the grammar of RFC
 * 8259.  The scan accepts it and notes that the string has one ("lone"); it is
 * decoded to U+FFFD.
 *
 * The caller owns the scan state and all text; nothing is allocated.
 */

#ifndef _NGX_MCP_JSON_H_INCLUDED_
#define _NGX_MCP_JSON_H_INCLUDED_


#include "ngx_mcp_core.h"


#define NGX_MCP_JSON_DEPTH  512


typedef enum {
    NGX_MCP_JSON_ABSENT = 0,
    NGX_MCP_JSON_NULL,
    NGX_MCP_JSON_TRUE,
    NGX_MCP_JSON_FALSE,
    NGX_MCP_JSON_NUMBER,
    NGX_MCP_JSON_STRING,
    NGX_MCP_JSON_OBJECT,
    NGX_MCP_JSON_ARRAY
} ngx_mcp_json_type_e;


/*
 * The members that the scan notes: path, path of the parent object, first
 * character of the name, name.
 */

#define NGX_MCP_JSON_PATHS(_)                                                 \
    _(JSONRPC,            ROOT,        'j', "jsonrpc")                        \
    _(ID,                 ROOT,        'i', "id")                             \
    _(METHOD,             ROOT,        'm', "method")                         \
    _(PARAMS,             ROOT,        'p', "params")                         \
    _(RESULT,             ROOT,        'r', "result")                         \
    _(ERROR,              ROOT,        'e', "error")                          \
    _(KIND,               ROOT,        'k', "kind")                           \
    _(TENANT_ID,          ROOT,        't', "tenant_id")                      \
    _(SESSION_ID,         ROOT,        's', "session_id")                     \
    _(IDENTITY,           ROOT,        'i', "identity")                       \
    _(TOPIC,              ROOT,        't', "topic")                          \
    _(TOP_URI,            ROOT,        'u', "uri")                            \
    _(NAME,               PARAMS,      'n', "name")                           \
    _(ARGUMENTS,          PARAMS,      'a', "arguments")                      \
    _(URI,                PARAMS,      'u', "uri")                            \
    _(META,               PARAMS,      '_', "_meta")                          \
    _(TOKEN,              PARAMS,      'p', "progressToken")                  \
    _(REQUEST_ID,         PARAMS,      'r', "requestId")                      \
    _(VERSION,            PARAMS,      'p', "protocolVersion")                \
    _(CAPABILITIES,       PARAMS,      'c', "capabilities")                   \
    _(CLIENT_INFO,        PARAMS,      'c', "clientInfo")                     \
    _(LEVEL,              PARAMS,      'l', "level")                          \
    _(CURSOR,             PARAMS,      'c', "cursor")                         \
    _(REF,                PARAMS,      'r', "ref")                            \
    _(INPUT_RESPONSES,    PARAMS,      'i', "inputResponses")                 \
    _(STATE,              PARAMS,      'r', "requestState")                   \
    _(NOTIFICATIONS,      PARAMS,      'n', "notifications")                  \
    _(META_TOKEN,         META,        'p', "progressToken")                  \
    _(META_VERSION,       META,        'i',                                   \
      "io.modelcontextprotocol/protocolVersion")                              \
    _(META_CAPABILITIES,  META,        'i',                                   \
      "io.modelcontextprotocol/clientCapabilities")                           \
    _(META_CLIENT,        META,        'i',                                   \
      "io.modelcontextprotocol/clientInfo")                                   \
    _(META_LEVEL,         META,        'i',                                   \
      "io.modelcontextprotocol/logLevel")                                     \
    _(META_CLIENT_NAME,   META_CLIENT, 'n', "name")                           \
    _(META_CLIENT_VERSION,META_CLIENT, 'v', "version")                        \
    _(CLIENT_NAME,        CLIENT_INFO, 'n', "name")                           \
    _(CLIENT_VERSION,     CLIENT_INFO, 'v', "version")                        \
    _(REF_NAME,           REF,         'n', "name")                           \
    _(REF_URI,            REF,         'u', "uri")                            \
    _(IS_ERROR,           RESULT,      'i', "isError")                        \
    _(RESULT_VERSION,     RESULT,      'p', "protocolVersion")                \
    _(RESULT_TYPE,        RESULT,      'r', "resultType")                     \
    _(RESULT_META,        RESULT,      '_', "_meta")                          \
    _(RESULT_TTL,         RESULT,      't', "ttlMs")                          \
    _(RESULT_SCOPE,       RESULT,      'c', "cacheScope")                     \
    _(INPUT_REQUESTS,     RESULT,      'i', "inputRequests")                  \
    _(REQUEST_STATE,      RESULT,      'r', "requestState")                   \
    _(STRUCTURED,         RESULT,      's', "structuredContent")              \
    _(ERROR_CODE,         ERROR,       'c', "code")                           \
    _(ERROR_MESSAGE,      ERROR,       'm', "message")


#define NGX_MCP_JSON_PATH_ENUM(name, ...)  NGX_MCP_PATH_ ## name,

typedef enum {
    NGX_MCP_JSON_PATHS(NGX_MCP_JSON_PATH_ENUM)
    NGX_MCP_PATH_MAX,
    NGX_MCP_PATH_ROOT = NGX_MCP_PATH_MAX,
    NGX_MCP_PATH_NONE
} ngx_mcp_path_e;


/*
 * The place of a value in the text; offsets count from the first byte of the
 * first piece.
 */

typedef struct {
    uint32_t                start;
    uint32_t                end;
    unsigned                type:8;       /* ngx_mcp_json_type_e */
    unsigned                count:8;      /* number of members with this name */
    unsigned                folded:1;     /* there is a member whose name other
                                             parsers may take for this name */
    unsigned                lone:1;       /* the string has half a surrogate
                                             pair */
} ngx_mcp_span_t;


/* the fields below "members" belong to ngx_mcp_json.c */

typedef struct {
    ngx_mcp_span_t          members[NGX_MCP_PATH_MAX];
    ngx_mcp_json_type_e     type;         /* type of the whole value */
    const char             *error;        /* reason of NGX_ERROR */
    size_t                  offset;       /* number of bytes read so far */

    const u_char           *literal;      /* rest of true, false or null that
                                             is still to come */
    uint32_t                code;         /* code of the character that is
                                             being read */
    uint32_t                surrogate;    /* first half of a pair, just read */
    uint16_t                depth;
    u_char                  state;
    u_char                  substate;
    u_char                  parent;       /* path of the current container */
    u_char                  node;         /* path of the current value */
    u_char                  need;         /* digits of \uXXXX, or bytes of a
                                             UTF-8 character, still to come */
    u_char                  key_len;
    u_char                  key[48];      /* decoded part of a name */
    u_char                  path[8];      /* paths of the open containers */
    u_char                  low;          /* bounds of the next UTF-8 byte */
    u_char                  high;
    unsigned                object:1;     /* the current container is an object,
                                             not an array */
    unsigned                name:1;       /* the current string is a name */
    unsigned                keep:1;       /* the name may be that of a noted
                                             member */
    unsigned                cut:1;        /* the name has a NUL, behind which it
                                             is ignored */
    unsigned                altered:1;    /* key[] is not exactly the name: a
                                             match counts as "folded" */
    unsigned                ambiguous:1;  /* a noted member has count > 1,
                                             folded or lone */
    u_char                  nesting[NGX_MCP_JSON_DEPTH / 8];
} ngx_mcp_json_t;


/* begins a scan */
void ngx_mcp_json_init(ngx_mcp_json_t *json);

/*
 * Scans the next piece of the text.  NGX_AGAIN: the text is valid so far;
 * NGX_ERROR: it is not JSON, and json->error says why.
 */
ngx_int_t ngx_mcp_json_feed(ngx_mcp_json_t *json, u_char *p, u_char *last);

/* ends a scan; NGX_OK: the text was exactly one JSON value; NGX_ERROR */
ngx_int_t ngx_mcp_json_end(ngx_mcp_json_t *json);

/* scans a whole text; NGX_OK; NGX_ERROR: json->error says why */
ngx_int_t ngx_mcp_json_scan(ngx_mcp_json_t *json, ngx_str_t *text);

/* the raw text of a noted member (of text fed in one piece); len 0: absent */
ngx_str_t ngx_mcp_json_span(ngx_mcp_json_t *json, ngx_mcp_path_e path,
    u_char *text);

/*
 * Walks over the elements of an array that the scan has accepted.  *rest is the
 * array's text at first; text behind the array may follow.  NGX_OK: *element is
 * the next raw element; NGX_DONE: there is no further element, and rest->data
 * is behind the array.
 */
ngx_int_t ngx_mcp_json_element(ngx_str_t *rest, ngx_str_t *element);

/*
 * Walks over the members of an object, as ngx_mcp_json_element() does over
 * elements.  NGX_OK: *name is the next raw name with its quotes, *value its raw
 * value; NGX_DONE: there is no further member.
 */
ngx_int_t ngx_mcp_json_member(ngx_str_t *rest, ngx_str_t *name,
    ngx_str_t *value);

/*
 * The two halves of ngx_mcp_json_member(), for callers that may not need the
 * value, which can be long.
 */
ngx_int_t ngx_mcp_json_name(ngx_str_t *rest, ngx_str_t *name);
void ngx_mcp_json_value(ngx_str_t *rest, ngx_str_t *value);

/*
 * Decodes a raw string token (quotes included) that the scan has accepted into
 * dst, which has room for raw->len bytes.  Half a surrogate pair becomes
 * U+FFFD.  Returns the end.
 */
u_char *ngx_mcp_json_unescape(u_char *dst, ngx_str_t *raw);

/*
 * Decodes a raw value into new memory from pool.  NGX_OK; NGX_DECLINED: it is
 * no string, and *text is empty; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_json_text(ngx_pool_t *pool, ngx_str_t *raw, ngx_str_t *text);

/*
 * Whether a raw string token has a control character: an escaped one, or DEL,
 * which may also stand there without an escape.
 */
ngx_uint_t ngx_mcp_json_control(ngx_str_t *raw);

/*
 * ngx_mcp_json_escape() writes a text as a JSON string with quotes; invalid
 * UTF-8 becomes U+FFFD.  It returns the end.  ngx_mcp_json_escaped_len() is
 * the room in bytes that this needs.
 */
size_t ngx_mcp_json_escaped_len(ngx_str_t *text);
u_char *ngx_mcp_json_escape(u_char *dst, ngx_str_t *text);

/*
 * Writes the beginning of any text for a log or a message: at most
 * NGX_MCP_QUOTE bytes, white space and control characters as single spaces,
 * bytes that are not UTF-8 as "?".  Returns the end.
 */
#define NGX_MCP_QUOTE  200

u_char *ngx_mcp_json_quote(u_char *dst, ngx_str_t *text);

/*
 * Whether two raw tokens (strings or numbers) are the same JSON-RPC id.
 * Strings are compared after decoding, numbers as they are written.
 */
ngx_uint_t ngx_mcp_json_same_id(ngx_str_t *a, ngx_str_t *b);


/* whether a text is UTF-8 without characters below this one */
ngx_uint_t ngx_mcp_utf8_valid(ngx_str_t *text, u_char least);

/* bytes of the UTF-8 character at p; 0: it is invalid or incomplete */

static ngx_inline size_t
ngx_mcp_utf8_len(u_char *p, u_char *last)
{
    u_char  ch;

    ch = *p;

    if (ch < 0x80) {
        return 1;
    }

    if (ch < 0xe0) {
        return (ch >= 0xc2 && last - p >= 2 && (p[1] & 0xc0) == 0x80) ? 2 : 0;
    }

    if (ch < 0xf0) {
        if (last - p < 3
            || (p[1] & 0xc0) != 0x80
            || (p[2] & 0xc0) != 0x80
            || (ch == 0xe0 && p[1] < 0xa0)
            || (ch == 0xed && p[1] > 0x9f))
        {
            return 0;
        }

        return 3;
    }

    if (ch > 0xf4
        || last - p < 4
        || (p[1] & 0xc0) != 0x80
        || (p[2] & 0xc0) != 0x80
        || (p[3] & 0xc0) != 0x80
        || (ch == 0xf0 && p[1] < 0x90)
        || (ch == 0xf4 && p[1] > 0x8f))
    {
        return 0;
    }

    return 4;
}


#endif /* _NGX_MCP_JSON_H_INCLUDED_ */
