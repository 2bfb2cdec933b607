
/*
 * Invalidate events ({"kind":"document",...}) and the rules by which each
 * becomes notifications: what the actions of "mcp_invalidate" mean, the rules
 * that hold when none is configured, $field of an event.
 *
 * No state; results are allocated from the caller's pool.
 */

#ifndef _NGX_MCP_INVALIDATE_H_INCLUDED_
#define _NGX_MCP_INVALIDATE_H_INCLUDED_


#include "ngx_mcp_core.h"
#include "ngx_mcp_json.h"
#include "ngx_mcp_message.h"


typedef enum {
    NGX_MCP_RULE_MESSAGE = 0,
    NGX_MCP_RULE_LIST_CHANGED,
    NGX_MCP_RULE_UPDATED,
    NGX_MCP_RULE_RESOURCE,      /* UPDATED, with a URI, no template */
    NGX_MCP_RULE_NOTIFY,
    NGX_MCP_RULE_DROP,
    NGX_MCP_RULE_LEVEL          /* no rule: sets the level of MESSAGE */
} ngx_mcp_rule_e;


/* one action of one kind */

typedef struct {
    ngx_str_t               kind;         /* "*": any kind without a rule */
    ngx_uint_t              action;       /* ngx_mcp_rule_e */
    ngx_str_t               value;        /* DATA, URI, method, LEVEL */
    ngx_str_t               level;        /* of a message; empty: info */
    ngx_uint_t              json;         /* DATA is JSON */
} ngx_mcp_rule_t;


/* the first members of an object, as far as it was searched */

#define NGX_MCP_MEMBERS  16

typedef struct {
    ngx_str_t               rest;         /* of the text, behind them */
    ngx_uint_t              n;
    ngx_str_t               names[NGX_MCP_MEMBERS];       /* raw */
    ngx_str_t               values[NGX_MCP_MEMBERS];
} ngx_mcp_members_t;


/* an object that the scan has accepted */

typedef struct {
    ngx_str_t               text;
    ngx_str_t               kind;         /* decoded */
    ngx_str_t               payload;      /* raw object whose members are
                                             fields as well, or empty */
    ngx_uint_t              coalescing;   /* its count is left out */

    /* private */
    ngx_mcp_members_t       members;
    ngx_mcp_members_t       payload_members;
} ngx_mcp_invalidate_t;


#define ngx_mcp_invalidate_init(event)                                        \
    ngx_memzero(event, offsetof(ngx_mcp_invalidate_t, members));              \
    (event)->members.n = 0;                                                   \
    (event)->payload_members.n = 0


/* places in a notification where a count may be put; 0: none */

#define NGX_MCP_COUNTS  2

typedef struct {
    ngx_str_t               text;
    ngx_uint_t              level;        /* of a message, or 0 */
    ngx_str_t               uri;          /* for its subscribers, or empty */
    size_t                  counts[NGX_MCP_COUNTS];
} ngx_mcp_notification_t;


#define NGX_MCP_DEFAULT_RULES  7

extern ngx_mcp_rule_t  ngx_mcp_default_rules[NGX_MCP_DEFAULT_RULES];


/* an ACTION into action and value; NULL, or what is wrong with it */
const char *ngx_mcp_rule_parse(ngx_mcp_rule_t *rule, ngx_str_t *text);

/*
 * The first rule for a kind (prev is NULL), or the next one; those of "*" if
 * the kind has none.  NULL: there is no other.
 */
ngx_mcp_rule_t *ngx_mcp_rule_next(ngx_mcp_rule_t *rules, ngx_uint_t n,
    ngx_str_t *kind, ngx_mcp_rule_t *prev);

/*
 * logger: as JSON.  NGX_OK; NGX_DECLINED: the rule has nothing to say;
 * NGX_ERROR: no memory.  The notification may refer to texts of the rule.
 */
ngx_int_t ngx_mcp_rule_apply(ngx_mcp_rule_t *rule, ngx_mcp_invalidate_t *event,
    ngx_str_t *logger, ngx_pool_t *pool, ngx_mcp_notification_t *out);

/* 1 and how many events it stands for, when it says so */
ngx_uint_t ngx_mcp_invalidate_count(ngx_mcp_invalidate_t *event,
    uint64_t *count);

/* LEVEL as it came out of the event, to ngx_mcp_level_e */
ngx_uint_t ngx_mcp_rule_level(ngx_str_t *text);

/*
 * An object without the members named (decoded) in the list, whose last has
 * length 0.  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_mcp_json_remove(ngx_str_t *text, ngx_str_t *names,
    ngx_pool_t *pool, ngx_str_t *out);


#endif /* _NGX_MCP_INVALIDATE_H_INCLUDED_ */
