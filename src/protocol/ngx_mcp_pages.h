
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

/* a further bit, which stands for no list: the server offers logging */
#define NGX_MCP_OFFERED_LOGGING    0x08


/* a notification that lists of some kinds changed */

typedef struct {
    ngx_uint_t              offered;      /* its bit of NGX_MCP_OFFERED_* */
    ngx_uint_t              kinds;        /* the lists that changed: bits of
                                             NGX_MCP_LIST_BIT() */
    ngx_uint_t              method;       /* ngx_mcp_method_e */
    ngx_str_t               notification; /* raw message */
} ngx_mcp_list_change_t;

#define NGX_MCP_LIST_CHANGED(list)                                            \
    "{\"jsonrpc\":\"2.0\","                                                   \
    "\"method\":\"notifications/" list "/list_changed\"}"

/* all such notifications; the last element has no kinds */
extern ngx_mcp_list_change_t  ngx_mcp_list_changes[];

/* finds the element for a method (ngx_mcp_method_e); NULL: there is none */
ngx_mcp_list_change_t *ngx_mcp_list_change(ngx_uint_t method);


/* most pages that are requested to fetch a list */
#define NGX_MCP_PAGES_MAX     1000

/* bytes and entries of the largest list that is cached */
#define NGX_MCP_LIST_SIZE     (8 * 1024 * 1024)
#define NGX_MCP_LIST_ENTRIES  100000

/* bytes and entries of the largest page in which a list is served */
#define NGX_MCP_PAGE_SIZE     (1024 * 1024)
#define NGX_MCP_PAGE_ENTRIES  10000

#define NGX_MCP_DIGEST_LEN    20


/* a server's hint for how its result may be cached (ttlMs, cacheScope) */

typedef struct {
    uint64_t                until;        /* time (ngx_current_msec) at which
                                             the result expires; 0: it may not
                                             be cached, or there is no hint */
    ngx_uint_t              public;       /* 1: the result is for all callers;
                                             0: only for the one that sent the
                                             request */
} ngx_mcp_hint_t;

/* sets a hint without limits, which ngx_mcp_hint_join() then restricts */
#define ngx_mcp_hint_init(hint)                                               \
    (hint)->until = (uint64_t) -1;                                            \
    (hint)->public = 1

/* restricts a hint by another hint, as the two results become one result */
#define ngx_mcp_hint_join(hint, other)                                        \
    (hint)->until = ngx_min((hint)->until, (other)->until);                   \
    (hint)->public &= (other)->public


typedef struct {
    ngx_uint_t              kind;         /* ngx_mcp_list_kind_e */
    ngx_str_t               text;         /* raw array of all entries */
    ngx_uint_t              entries;      /* number of entries */
    ngx_mcp_hint_t          hint;

    /* lists with equal digests have the same entries, in any order */
    u_char                  digest[NGX_MCP_DIGEST_LEN];

    /* lists with equal values have the same entries in the same order */
    u_char                  order[NGX_MCP_DIGEST_LEN];
} ngx_mcp_list_content_t;


typedef struct {
    ngx_uint_t              kind;         /* ngx_mcp_list_kind_e */
    ngx_pool_t             *pool;
    ngx_array_t             entries;      /* private */
    ngx_array_t             cursors;      /* raw cursors (ngx_str_t) of all
                                             pages that were requested */
    size_t                  size;         /* bytes of the lists in all pages */
    ngx_mcp_hint_t          hint;         /* hints of all pages, joined */
    ngx_str_t               cursor;       /* raw cursor of the next page;
                                             empty: there is none */
} ngx_mcp_pages_t;


/*
 * The method that lists a kind ("tools/list"), and the member of its result
 * that is the list ("tools").
 */
ngx_str_t *ngx_mcp_list_method(ngx_uint_t kind);
ngx_str_t *ngx_mcp_list_member(ngx_uint_t kind);

/* begins a list; NGX_OK or NGX_ERROR (no memory) */
ngx_int_t ngx_mcp_pages_init(ngx_mcp_pages_t *pages, ngx_uint_t kind,
    ngx_pool_t *pool);

/*
 * Adds a page: a raw result that the scan has accepted, and its hint.  NGX_OK:
 * this was the last page; NGX_AGAIN: pages->cursor is the cursor of the next
 * page; NGX_DECLINED: the list is too large; NGX_ERROR: the result is not
 * valid, and *why says why.
 */
ngx_int_t ngx_mcp_pages_add(ngx_mcp_pages_t *pages, ngx_str_t *result,
    ngx_mcp_hint_t *hint, const char **why);

/* makes the list of all pages; NGX_OK or NGX_ERROR (no memory) */
ngx_int_t ngx_mcp_pages_end(ngx_mcp_pages_t *pages,
    ngx_mcp_list_content_t *out);


/*
 * A page in which a list is served: the bytes from offset "start" to "end" of
 * the list's text, of which the brackets are no part.
 */

typedef struct {
    size_t                  start;
    size_t                  end;
    ngx_uint_t              entry;        /* number of the first entry of the
                                             page in the list, from 0 on */
} ngx_mcp_page_t;

/*
 * Bytes of a cursor: "mcp-", the version of the list, and the number of the
 * page's first entry, as 16 and 8 hexadecimal digits.
 */
#define NGX_MCP_CURSOR_LEN  28

/*
 * Divides the text of a list into pages of at most "size" bytes and "entries"
 * entries; an entry that is larger is a page of its own.  Returns an array of
 * at least one ngx_mcp_page_t; NULL: no memory.
 */
ngx_array_t *ngx_mcp_pages_split(ngx_str_t *text, size_t size,
    ngx_uint_t entries, ngx_pool_t *pool);

/* writes a cursor of NGX_MCP_CURSOR_LEN bytes; returns the end */
u_char *ngx_mcp_cursor_print(u_char *dst, uint64_t version,
    ngx_uint_t entry);

/* reads a cursor; NGX_OK; NGX_DECLINED: the text is no cursor */
ngx_int_t ngx_mcp_cursor_parse(ngx_str_t *text, uint64_t *version,
    ngx_uint_t *entry);


#endif /* _NGX_MCP_PAGES_H_INCLUDED_ */
