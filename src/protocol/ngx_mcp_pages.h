
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A list (tools, prompts, resources, resource templates) gathered from the
 * pages of an upstream: its entries as they were sent, and digests by which
 * lists are compared.
 *
 * All memory comes from the pool, which must live until the list is not needed
 * any more.
 */

#ifndef _NGX_MCP_PAGES_H_INCLUDED_
#define _NGX_MCP_PAGES_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_json.h"
#include "ngx_mcp_message.h"


typedef enum {
    NGX_MCP_LIST_TOOLS = 0,
    NGX_MCP_LIST_PROMPTS,
    NGX_MCP_LIST_RESOURCES,
    NGX_MCP_LIST_TEMPLATES,
    NGX_MCP_LIST_KINDS
} ngx_mcp_list_kind_e;


#define NGX_MCP_LIST_BIT(kind)  (1 << (kind))
#define NGX_MCP_LIST_ALL        0x0f


/* the notifications that a server offers */
#define NGX_MCP_OFFERED_TOOLS      0x01
#define NGX_MCP_OFFERED_PROMPTS    0x02
#define NGX_MCP_OFFERED_RESOURCES  0x04
#define NGX_MCP_OFFERED_ALL        0x07

/* not a list: the server offers logging */
#define NGX_MCP_OFFERED_LOGGING    0x08


/* a notification that lists of some kinds changed */

typedef struct {
    ngx_uint_t              offered;      /* NGX_MCP_OFFERED_* */
    ngx_uint_t              kinds;        /* NGX_MCP_LIST_BIT() */
    ngx_uint_t              method;       /* ngx_mcp_method_e */
    ngx_str_t               notification;
} ngx_mcp_list_change_t;

#define NGX_MCP_LIST_CHANGED(list)                                            \
    "{\"jsonrpc\":\"2.0\","                                                   \
    "\"method\":\"notifications/" list "/list_changed\"}"

/* the last element has no kinds */
extern ngx_mcp_list_change_t  ngx_mcp_list_changes[];

/* the element for a notification of this method, or NULL */
ngx_mcp_list_change_t *ngx_mcp_list_change(ngx_uint_t method);


/* how many pages a list may have */
#define NGX_MCP_PAGES_MAX     1000

/* a larger list is not kept */
#define NGX_MCP_LIST_SIZE     (8 * 1024 * 1024)
#define NGX_MCP_LIST_ENTRIES  100000

/* a larger list is served in pages */
#define NGX_MCP_PAGE_SIZE     (1024 * 1024)
#define NGX_MCP_PAGE_ENTRIES  10000

#define NGX_MCP_DIGEST_LEN    20


/* a server's hint for how its result may be cached (ttlMs, cacheScope) */

typedef struct {
    uint64_t                until;        /* ngx_current_msec; 0: it may not be
                                             cached, or there is no hint */
    ngx_uint_t              public;       /* 1: for all callers; 0: for the one
                                             that asked */
} ngx_mcp_hint_t;

/* sets a hint without limits, which ngx_mcp_hint_join() then restricts */
#define ngx_mcp_hint_init(hint)                                               \
    (hint)->until = (uint64_t) -1;                                            \
    (hint)->public = 1

/* restricts a hint by another one: the results of both become one result */
#define ngx_mcp_hint_join(hint, other)                                        \
    (hint)->until = ngx_min((hint)->until, (other)->until);                   \
    (hint)->public &= (other)->public


typedef struct {
    ngx_uint_t              kind;
    ngx_str_t               text;         /* an array */
    ngx_uint_t              entries;
    ngx_mcp_hint_t          hint;

    /* two lists with equal digests have the same entries, in any order */
    u_char                  digest[NGX_MCP_DIGEST_LEN];

    /* two lists with equal digests have the same entries in the same order */
    u_char                  order[NGX_MCP_DIGEST_LEN];
} ngx_mcp_list_content_t;


typedef struct {
    ngx_uint_t              kind;
    ngx_pool_t             *pool;
    ngx_array_t             entries;      /* private */
    ngx_array_t             cursors;      /* ngx_str_t, raw */
    size_t                  size;
    ngx_mcp_hint_t          hint;         /* of all pages so far, joined */
    ngx_str_t               cursor;       /* raw token of the next page */
} ngx_mcp_pages_t;


/* the method of a kind ("tools/list"), and its result's member ("tools") */
ngx_str_t *ngx_mcp_list_method(ngx_uint_t kind);
ngx_str_t *ngx_mcp_list_member(ngx_uint_t kind);

/* NGX_OK or NGX_ERROR (no memory) */
ngx_int_t ngx_mcp_pages_init(ngx_mcp_pages_t *pages, ngx_uint_t kind,
    ngx_pool_t *pool);

/*
 * Adds a page: a raw result that the scan has accepted, and its hint.  NGX_OK:
 * it was the last page; NGX_AGAIN: pages->cursor is the cursor of the next
 * one; NGX_DECLINED: the list is too large; NGX_ERROR: *why says what is
 * wrong.
 */
ngx_int_t ngx_mcp_pages_add(ngx_mcp_pages_t *pages, ngx_str_t *result,
    ngx_mcp_hint_t *hint, const char **why);

/* makes the list of all pages; NGX_OK or NGX_ERROR (no memory) */
ngx_int_t ngx_mcp_pages_end(ngx_mcp_pages_t *pages,
    ngx_mcp_list_content_t *out);


/*
 * A page in which a list is served: offsets in the list's text, without the
 * brackets.  Its cursor has the list's version and the number of the page's
 * first entry.
 */

typedef struct {
    size_t                  start;
    size_t                  end;
    ngx_uint_t              entry;        /* number of its first entry */
} ngx_mcp_page_t;

#define NGX_MCP_CURSOR_LEN  28

/*
 * Divides the text of a list into pages of at most so many bytes and entries,
 * if one entry is not larger.  The array has at least one ngx_mcp_page_t.
 * NULL: no memory.
 */
ngx_array_t *ngx_mcp_pages_split(ngx_str_t *text, size_t size,
    ngx_uint_t entries, ngx_pool_t *pool);

u_char *ngx_mcp_cursor_print(u_char *dst, uint64_t version,
    ngx_uint_t entry);
ngx_int_t ngx_mcp_cursor_parse(ngx_str_t *text, uint64_t *version,
    ngx_uint_t *entry);


#endif /* _NGX_MCP_PAGES_H_INCLUDED_ */
