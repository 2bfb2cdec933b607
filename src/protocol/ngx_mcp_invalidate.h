
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Invalidate events ({"kind":"document",...}) and the rules that turn them
 * into notifications: the actions of "mcp_invalidate", the default rules, and
 * $field, which stands for a field of an event.
 *
 * There is no state; results are allocated from the caller's pool.
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
    NGX_MCP_RULE_RESOURCE,      /* UPDATED with a URI that has no $field */
    NGX_MCP_RULE_NOTIFY,
    NGX_MCP_RULE_DROP,
    NGX_MCP_RULE_LEVEL          /* no action: sets the level of MESSAGE */
} ngx_mcp_rule_e;


/* a rule: one action for events of one kind */

typedef struct {
    ngx_str_t               kind;         /* "*": all kinds that have no rules
                                             of their own */
    ngx_uint_t              action;       /* ngx_mcp_rule_e */
    ngx_str_t               value;        /* text behind "=" of the action:
                                             DATA, URI, method, LEVEL */
    ngx_str_t               level;        /* LEVEL of a message; empty: info */
    ngx_uint_t              json;         /* DATA is a JSON object or array */
} ngx_mcp_rule_t;


/* a cache of the members of an object up to where it was searched so far */

#define NGX_MCP_MEMBERS  16

typedef struct {
    ngx_str_t               rest;         /* text behind these members */
    ngx_uint_t              n;            /* number of these members */
    ngx_str_t               names[NGX_MCP_MEMBERS];       /* raw names */
    ngx_str_t               values[NGX_MCP_MEMBERS];      /* raw values */
} ngx_mcp_members_t;


/* an event, which the JSON scan has accepted */

typedef struct {
    ngx_str_t               text;         /* raw object */
    ngx_str_t               kind;         /* decoded */
    ngx_str_t               payload;      /* raw object whose members are
                                             fields as well, or empty */
    ngx_uint_t              coalescing;   /* 1: similar events may be coalesced,
                                             so that the count is inserted into
                                             notifications later */

    /* private */
    ngx_mcp_members_t       members;
    ngx_mcp_members_t       payload_members;
} ngx_mcp_invalidate_t;


#define ngx_mcp_invalidate_init(event)                                        \
    ngx_memzero(event, offsetof(ngx_mcp_invalidate_t, members));              \
    (event)->members.n = 0;                                                   \
    (event)->payload_members.n = 0


#define NGX_MCP_COUNTS  2

typedef struct {
    ngx_str_t               text;         /* raw notification */
    ngx_uint_t              level;        /* ngx_mcp_level_e of a message; 0:
                                             it is no message */
    ngx_str_t               uri;          /* only subscribers of this resource
                                             are notified; empty: all */
    size_t                  counts[NGX_MCP_COUNTS];  /* offsets in the text
                                                        where a count may be
                                                        put; 0: none */
} ngx_mcp_notification_t;


#define NGX_MCP_DEFAULT_RULES  7

extern ngx_mcp_rule_t  ngx_mcp_default_rules[NGX_MCP_DEFAULT_RULES];

/* members that name the addressees of an event; clients do not see these */
extern ngx_str_t  ngx_mcp_event_private[];


/*
 * Reads an ACTION of mcp_invalidate into rule->action, value and level.
 * Returns NULL, or a text that says why ACTION is not valid.
 */
const char *ngx_mcp_rule_parse(ngx_mcp_rule_t *rule, ngx_str_t *text);

/*
 * Finds the first rule for a kind, or, if prev is not NULL, the next rule after
 * prev for the kind of prev.  For a kind without rules the rules of "*" count.
 * NULL: there is no further rule.
 */
ngx_mcp_rule_t *ngx_mcp_rule_next(ngx_mcp_rule_t *rules, ngx_uint_t n,
    ngx_str_t *kind, ngx_mcp_rule_t *prev);

/*
 * Applies a rule to an event.  logger: a raw JSON string.  NGX_OK: *out is the
 * notification, which may refer to texts of the rule; NGX_DECLINED: the rule
 * makes no notification of this event; NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_rule_apply(ngx_mcp_rule_t *rule, ngx_mcp_invalidate_t *event,
    ngx_str_t *logger, ngx_pool_t *pool, ngx_mcp_notification_t *out);

/*
 * Returns whether the event has a member for the number of events that it
 * stands for; *count becomes this number.
 */
ngx_uint_t ngx_mcp_invalidate_count(ngx_mcp_invalidate_t *event,
    uint64_t *count);

/* the ngx_mcp_level_e of a LEVEL in which $fields are replaced already */
ngx_uint_t ngx_mcp_rule_level(ngx_str_t *text);


#endif /* _NGX_MCP_INVALIDATE_H_INCLUDED_ */
